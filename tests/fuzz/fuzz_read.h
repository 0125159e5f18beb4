/*
 * Fuzzers of what nudma reads from outside: an input is the bytes of a file, a text or a message.
 * Whatever they are, they are taken or refused with a message; nothing asserts, leaks, hangs or
 * reads beyond their end. libFuzzer drives them (fuzz_entry_read.c, `make fuzz`),
 * test_fuzz_READER.c replays the corpus.
 */
#ifndef TESTS_FUZZ_FUZZ_READ_H
#define TESTS_FUZZ_FUZZ_READ_H

#include <stddef.h>
#include <stdint.h>

#define FUZZ_READ_BYTES_MAX 65536u

struct fuzz_reader {
    const char *name;
    /* Aborts if something is wrong. The bytes are not terminated. */
    void (*read)(const uint8_t *data, size_t bytes);
};
extern const struct fuzz_reader fuzz_scenario, fuzz_claims, fuzz_measured, fuzz_filter, fuzz_report,
    fuzz_results, fuzz_jobfile, fuzz_iolog, fuzz_capture, fuzz_import, fuzz_measure, fuzz_whatif;

/* The path of a file with these bytes, which the next call of this process replaces. */
const char *fuzz_read_file(const uint8_t *data, size_t bytes);

/* main() of a replay: each file of tests/fuzz/corpus/READER/, or the files that are named. */
int fuzz_read_replay(const struct fuzz_reader *reader, int argc, char **argv);

#endif
