/* Files of records: the limit, the ring, a file system that refuses; each ends behind a whole
 * record. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>
#include <errno.h>

#include "sim/trace/trace_file.h"

static char path[] = "/tmp/test_trace_file.XXXXXX";
static const struct trace_watch nobody;

/* Records are lines "123\n", so that what is in the file is seen to be whole. */
static void add_lines(struct trace_file *file, unsigned from, unsigned to)
{
    char line[16];

    for (unsigned i = from; i < to; i++)
        trace_file_add(file, line, (size_t)snprintf(line, sizeof(line), "%u\n", i));
}

/* The file has the head, then the lines from..to-1, then nothing. */
static void expect(const char *head, unsigned from, unsigned to)
{
    FILE *in = fopen(path, "r");
    char line[64];

    assert_non_null(in);
    if (*head != '\0') {
        assert_non_null(fgets(line, sizeof(line), in));
        assert_string_equal(line, head);
    }
    for (unsigned i = from; i < to; i++) {
        assert_non_null(fgets(line, sizeof(line), in));
        assert_int_equal(strtoul(line, NULL, 10), i);
        assert_int_equal(line[strlen(line) - 1], '\n');
    }
    assert_null(fgets(line, sizeof(line), in));
    fclose(in);
}

static struct trace_file *begin(uint64_t limit_bytes, bool ring)
{
    struct trace_file *file = trace_file_new(path, limit_bytes, ring, nobody);

    assert_non_null(file);
    assert_true(trace_file_head(file, "head\n", 5));
    return file;
}

static void count(void *n, const char *of)
{
    assert_string_equal(of, path);
    ++*(unsigned *)n;
}

static void test_large_is_told_once(void **state)
{
    unsigned n = 0;
    struct trace_file_counts counts;
    const struct trace_watch watch = { .bytes = 19, .is_large = count, .arg = &n };
    struct trace_file *file = trace_file_new(path, 1000, false, watch);
    (void)state;

    assert_true(trace_file_head(file, "head\n", 5));
    add_lines(file, 0, 7); /* 19 bytes by then */
    assert_int_equal(n, 0);
    add_lines(file, 7, 8);
    assert_int_equal(n, 1);
    add_lines(file, 8, 100);
    trace_file_close(file, &counts);
    assert_int_equal(n, 1);

    file = trace_file_new(path, 1000, true, watch);
    add_lines(file, 0, 100);
    trace_file_close(file, &counts);
    assert_int_equal(counts.records, 100);
    assert_int_equal(n, 1);
}

static void test_limit(void **state)
{
    struct trace_file *file = begin(5 + 10 * 2 + 3 * 5 + 1, false);
    struct trace_file_counts counts;
    (void)state;

    add_lines(file, 0, 15);
    assert_false(trace_file_ended(file));
    add_lines(file, 15, 40);
    assert_true(trace_file_ended(file));
    trace_file_close(file, &counts);
    assert_int_equal(counts.records, 15);
    assert_int_equal(counts.dropped, 25);
    assert_int_equal(counts.bytes, 40);
    assert_int_equal(counts.error, 0);
    expect("head\n", 0, 15);
}

/* For any size of the ring, whatever it wraps at, the last records are there in order. */
static void test_ring(void **state)
{
    (void)state;
    for (uint64_t limit = 5 + 20; limit < 5 + 120; limit++) {
        struct trace_file *file = begin(limit, true);
        struct trace_file_counts counts;
        add_lines(file, 0, 1234);
        assert_false(trace_file_ended(file));
        trace_file_close(file, &counts);
        assert_int_equal(counts.records + counts.dropped, 1234);
        assert_true(counts.bytes <= limit);
        assert_true(counts.records >= (limit - 5) / 9 - 2);
        expect("head\n", 1234 - (unsigned)counts.records, 1234);
    }
}

static void test_ring_refuses_what_never_fits(void **state)
{
    struct trace_file *file = begin(5 + 40, true);
    struct trace_file_counts counts;
    char large[64] = "";
    (void)state;

    add_lines(file, 0, 3);
    assert_false(trace_file_add(file, large, sizeof(large)));
    assert_false(trace_file_ended(file));
    add_lines(file, 3, 4);
    assert_true(trace_file_tail(file, "4\n", 2)); /* behind what the ring has */
    trace_file_close(file, &counts);
    assert_int_equal(counts.dropped, 1);
    expect("head\n", 0, 5);
}

/* A ring is written when the file is closed: it ends, as far as it got, at its first records. */
static void fill_file_system(bool ring)
{
    const struct rlimit small = { 300000, RLIM_INFINITY };
    struct rlimit before;
    struct trace_file_counts counts;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct trace_file *file = begin(ring ? 4000000 : UINT64_MAX, ring);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    add_lines(file, 0, 200000);
    assert_int_equal(trace_file_ended(file), !ring);
    trace_file_close(file, &counts);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(counts.error, EFBIG);
    assert_int_equal(counts.records + counts.dropped, 200000);
    assert_true(counts.bytes <= 300000 && counts.records > 20000);
    expect("head\n", 0, (unsigned)counts.records);
}

static void test_full_file_system(void **state)
{
    (void)state;
    fill_file_system(false);
    fill_file_system(true);
}

static void test_cannot_be_opened(void **state)
{
    struct trace_file_counts counts = { .records = 1 };
    (void)state;

    assert_null(trace_file_new("/tmp", 100, false, nobody));
    assert_int_equal(errno, EISDIR);
    trace_file_close(NULL, &counts);
    assert_int_equal(counts.records, 0);
    struct trace_file *file = trace_file_new(path, 4, false, nobody);
    assert_false(trace_file_head(file, "head\n", 5));
    assert_true(trace_file_ended(file));
    trace_file_close(file, &counts);
    assert_int_equal(counts.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_large_is_told_once),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_ring_refuses_what_never_fits),
        cmocka_unit_test(test_full_file_system),
        cmocka_unit_test(test_cannot_be_opened),
    };
    const int fd = mkstemp(path);

    if (fd < 0)
        return 1;
    close(fd);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
