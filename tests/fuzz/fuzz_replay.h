/* Plays the inputs of a corpus, or the files that are named. */
#ifndef TESTS_FUZZ_FUZZ_REPLAY_H
#define TESTS_FUZZ_FUZZ_REPLAY_H

#include <stddef.h>
#include <stdint.h>

typedef void fuzz_play_fn(const void *context, const uint8_t *data, size_t bytes);

/* main() of a replay: of each file of tests/fuzz/corpus/NAME/, or of those that are named, the
 * first bytes_max bytes. */
int fuzz_replay_all(const char *name, fuzz_play_fn *play_one, const void *context, size_t bytes_max,
                    int argc, char **argv);

#endif
