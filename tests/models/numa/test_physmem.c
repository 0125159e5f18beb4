/* Physical memory: bytes, the hole, tags, residency; the page allocator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include "models/base/payload.h"
#include "models/numa/physmem.h"
#include "tests/support/numa_fixture.h"

#define GIB (UINT64_C(1) << 30)

static struct hpa at(uint64_t v)
{
    return (struct hpa){ v };
}

/* Whether fn, in a process of its own, ends with an assertion. */
static bool is_fault(void (*fn)(struct physmem *mem), struct physmem *mem)
{
    int status;
    const pid_t pid = fork();

    if (pid == 0) {
        fclose(stderr);
        fn(mem);
        _exit(0);
    }
    assert_true(pid > 0);
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void test_layout(void **state)
{
    const uint64_t bytes[] = { 6 * GIB, 3 * GIB };
    struct physmem *mem = physmem_new(2, bytes);

    (void)state;
    assert_int_equal(physmem_nodes(mem), 2);
    assert_int_equal(physmem_stride_log2(mem), 33);
    assert_int_equal(physmem_node_of(mem, at(0)), 0);
    assert_int_equal(physmem_node_of(mem, at(0xEFFFFFFF)), 0);
    assert_int_equal(physmem_node_of(mem, at(0xF0000000)), -1);
    assert_int_equal(physmem_node_of(mem, at(0xFEE00000)), -1);
    assert_int_equal(physmem_node_of(mem, at(4 * GIB)), 0);
    assert_int_equal(physmem_node_of(mem, at(6 * GIB)), -1);
    assert_int_equal(physmem_node_of(mem, at(8 * GIB)), 1);
    assert_int_equal(physmem_node_of(mem, at(11 * GIB - 1)), 1);
    assert_int_equal(physmem_node_of(mem, at(11 * GIB)), -1);
    assert_int_equal(physmem_node_of(mem, at(UINT64_MAX)), -1);
    assert_true(physmem_contains(mem, at(0xEFFFF000), 4096));
    assert_false(physmem_contains(mem, at(0xEFFFF000), 4097));
    assert_true(physmem_contains(mem, at(4 * GIB), 2 * GIB));
    assert_false(physmem_contains(mem, at(4 * GIB), 2 * GIB + 1));
    assert_int_equal(physmem_free_bytes(mem, 0), 6 * GIB - GIB / 4);
    assert_int_equal(physmem_free_bytes(mem, 1), 3 * GIB);
    physmem_free(mem);
}

static void test_bytes(void **state)
{
    const uint64_t bytes[] = { 8 * GIB, 8 * GIB };
    struct physmem *mem = physmem_new(2, bytes);
    static uint8_t in[20000], out[20000];
    uint64_t random = 1;

    (void)state;
    memset(out, 0xAA, sizeof(out));
    physmem_read(mem, at(12345), out, sizeof(out));
    for (size_t i = 0; i < sizeof(out); i++)
        assert_int_equal(out[i], 0);
    assert_int_equal(physmem_resident_bytes(mem), 0);
    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (uint8_t)fixture_random(&random);
    /* Over page and region boundaries, on both nodes, at odd places. */
    const uint64_t places[] = { 4095, 2 * 1024 * 1024 - 777, 8 * GIB + 1, 5 * GIB + 2000 };
    for (size_t i = 0; i < SIM_N_ELEMENTS(places); i++) {
        physmem_write(mem, at(places[i]), in, sizeof(in));
        physmem_read(mem, at(places[i]), out, sizeof(out));
        assert_memory_equal(in, out, sizeof(in));
    }
    physmem_write64(mem, at(64), UINT64_C(0x1122334455667788));
    assert_int_equal(physmem_read64(mem, at(64)), UINT64_C(0x1122334455667788));
    /* What was not written is still zero. */
    physmem_read(mem, at(72), out, 8);
    assert_int_equal(out[0] | out[7], 0);
    /* Memory in proportion to what was touched: 4 x 6 pages and 1, 5 regions. */
    assert_true(physmem_resident_bytes(mem) <= 25 * 4096 + 5 * 4096);
    physmem_free(mem);
}

static void test_tags(void **state)
{
    const uint64_t bytes[] = { GIB };
    struct physmem *mem = physmem_new(1, bytes);
    uint8_t in[300], out[300];

    (void)state;
    for (unsigned i = 0; i < sizeof(in); i++)
        in[i] = (uint8_t)(i + 1);
    memset(out, 0xEE, sizeof(out));
    /* From byte 60 of a line: 4 bytes of it, then whole lines, then 40 bytes. */
    physmem_write_marks(mem, at(60), in, sizeof(in));
    physmem_read_marks(mem, at(60), out, sizeof(out));
    for (unsigned i = 0; i < sizeof(out); i++) {
        const uint64_t address = 60 + i;
        const bool carried = i < 4 || address % 64 < 8;
        assert_int_equal(out[i], carried ? in[i] : 0xEE);
        uint8_t real;
        physmem_read(mem, at(address), &real, 1);
        assert_int_equal(real, carried ? in[i] : 0);
    }
    /* The rest of a line's overlap is made zero, no more than that. */
    memset(out, 0xDD, sizeof(out));
    physmem_write(mem, at(8192), out, 192);
    physmem_write_marks(mem, at(8192 + 32), in, 96);
    physmem_read(mem, at(8192), out, 192);
    for (unsigned i = 0; i < 192; i++) {
        const bool carried = (i >= 32 && i < 40) || (i >= 64 && i < 72);
        assert_int_equal(out[i], carried ? in[i - 32] : i < 32 || i >= 128 ? 0xDD : 0);
    }
    assert_memory_equal(physmem_bytes(mem, at(8192 + 40)), out + 40, 152);
    assert_int_equal(physmem_bytes(mem, at(4 << 20))[4095], 0);
    physmem_bytes_made(mem, at((4 << 20) + 100))[0] = 7;
    physmem_read(mem, at((4 << 20) + 100), out, 1);
    assert_int_equal(out[0], 7);
    /* Over a page's end, and of memory that does not exist. */
    physmem_write_marks(mem, at(4096 - 2), in, 66);
    physmem_read_marks(mem, at(4096 - 2), out, 66);
    assert_int_equal(out[0], in[0]);
    assert_int_equal(out[2], in[2]);
    memset(out, 0xEE, sizeof(out));
    physmem_read_marks(mem, at(1 << 20), out, 64);
    assert_int_equal(out[7], 0);
    assert_int_equal(out[8], 0xEE);
    physmem_free(mem);
}

static void test_alloc(void **state)
{
    const uint64_t bytes[] = { 64 << 20, 64 << 20 };
    struct physmem *mem = physmem_new(2, bytes);
    struct hpa a, b, c;

    (void)state;
    assert_true(physmem_alloc(mem, 1, 1, 4096, &a));
    assert_int_equal(physmem_node_of(mem, a), 1);
    assert_int_equal(a.v % 4096, 0);
    assert_int_equal(physmem_free_bytes(mem, 1), (64 << 20) - 4096);
    assert_true(physmem_alloc(mem, 1, 3 << 20, 2 << 20, &b));
    assert_int_equal(b.v % (2 << 20), 0);
    /* The gap that the alignment left is used. */
    assert_true(physmem_alloc(mem, 1, 4096, 4096, &c));
    assert_int_equal(c.v, a.v + 4096);
    assert_false(physmem_alloc(mem, 1, 62 << 20, 4096, &c));
    assert_false(physmem_alloc(mem, 0, (64 << 20) + 1, 4096, &c));
    physmem_release(mem, b, 3 << 20);
    physmem_release(mem, a, 1);
    physmem_release(mem, at(a.v + 4096), 4096);
    assert_int_equal(physmem_free_bytes(mem, 1), 64 << 20);
    /* All of it is one run again. */
    assert_true(physmem_alloc(mem, 1, 64 << 20, 4096, &c));
    assert_false(physmem_alloc(mem, 1, 1, 4096, &a));
    physmem_release(mem, c, 64 << 20);
    physmem_free(mem);
}

/* From 4 GiB on first, without page 0, and below 4 GiB for those who ask for that or when the rest
 * is used up; without being told to, in order of address. */
static void test_alloc_zones(void **state)
{
    const uint64_t gib = UINT64_C(1) << 30, bytes[] = { 6 * gib, 6 * gib };
    struct physmem *mem = physmem_new(2, bytes);
    struct hpa a;

    (void)state;
    assert_true(physmem_alloc(mem, 0, 4096, 4096, &a));
    assert_int_equal(a.v, 0);
    physmem_release(mem, a, 4096);
    physmem_set_high_first(mem, true);
    assert_true(physmem_alloc(mem, 0, gib, gib, &a));
    assert_int_equal(a.v, 4 * gib);
    assert_true(physmem_alloc_low(mem, 0, 4096, 4096, &a));
    assert_int_equal(a.v, 4096);
    assert_true(physmem_alloc(mem, 0, gib, 4096, &a));
    assert_int_equal(a.v, 5 * gib);
    assert_true(physmem_alloc(mem, 0, gib, 4096, &a));
    assert_int_equal(a.v, 8192);
    assert_false(physmem_alloc_low(mem, 1, 4096, 4096, &a));
    assert_true(physmem_alloc(mem, 1, 4096, 4096, &a));
    assert_int_equal(a.v, 8 * gib); /* its stride */
    physmem_free(mem);
}

/* Random allocations and releases: never overlapping, all of it free at the end. */
static void test_alloc_random(void **state)
{
    static struct hpa held[300];
    static uint64_t held_pages[300];
    static uint8_t owner[4096];
    const uint64_t bytes[] = { 16 << 20 };
    struct physmem *mem = physmem_new(1, bytes);
    uint64_t random = 3;
    unsigned granted = 0;

    (void)state;
    memset(held_pages, 0, sizeof(held_pages));
    for (unsigned i = 0; i < 30000; i++) {
        const unsigned k = (unsigned)(fixture_random(&random) % 300);
        const uint64_t pages = 1 + fixture_random(&random) % 20;
        const uint64_t align = UINT64_C(4096) << (fixture_random(&random) % 5);
        if (held_pages[k] != 0) {
            memset(&owner[held[k].v >> 12], 0, held_pages[k]);
            physmem_release(mem, held[k], held_pages[k] << 12);
            held_pages[k] = 0;
        } else if (physmem_alloc(mem, 0, pages << 12, align, &held[k])) {
            assert_int_equal(held[k].v % align, 0);
            held_pages[k] = pages;
            for (uint64_t p = 0; p < pages; p++)
                assert_int_equal(owner[(held[k].v >> 12) + p]++, 0);
            granted++;
        }
    }
    assert_true(granted > 10000);
    for (unsigned k = 0; k < 300; k++)
        if (held_pages[k] != 0)
            physmem_release(mem, held[k], held_pages[k] << 12);
    assert_int_equal(physmem_free_bytes(mem, 0), 16 << 20);
    physmem_free(mem);
}

static void read_the_hole(struct physmem *mem)
{
    physmem_read64(mem, at(0xFEE00000));
}
static void write_past_the_end(struct physmem *mem)
{
    physmem_write64(mem, at(8 * GIB - 4), 1);
}
static void release_what_is_free(struct physmem *mem)
{
    physmem_release(mem, at(1 << 20), 4096);
}
static void release_too_much(struct physmem *mem)
{
    struct hpa a;

    if (physmem_alloc(mem, 0, 4096, 4096, &a))
        physmem_release(mem, a, 8192);
}
static void release_twice(struct physmem *mem)
{
    struct hpa a;

    if (physmem_alloc(mem, 0, 4096, 4096, &a)) {
        physmem_release(mem, a, 4096);
        physmem_release(mem, a, 4096);
    }
}
static void no_fault(struct physmem *mem)
{
    physmem_write64(mem, at(0), 1);
}

static void test_faults(void **state)
{
    const uint64_t bytes[] = { 8 * GIB };
    struct physmem *mem = physmem_new(1, bytes);

    (void)state;
    assert_false(is_fault(no_fault, mem));
    assert_true(is_fault(read_the_hole, mem));
    assert_true(is_fault(write_past_the_end, mem));
    assert_true(is_fault(release_what_is_free, mem));
    assert_true(is_fault(release_too_much, mem));
    assert_true(is_fault(release_twice, mem));
    physmem_free(mem);
}

/* More pages than lie open: those that hold marks become small, and all keep what is in them. */
static void test_many_pages(void **state)
{
    enum { N_PAGES = 40000 };
    const uint64_t bytes[] = { 8 * GIB };
    struct physmem *mem = physmem_new(1, bytes);
    uint8_t in[4096] = { 0 }, out[4096];

    (void)state;
    for (uint64_t i = 0; i < N_PAGES; i++) {
        for (uint64_t line = 0; line < 64; line++) {
            const uint64_t word = i % 16 == 0 ? i + line * line
                                              : payload_word(payload_mark(3, i * 4096 + line * 64));
            memcpy(in + line * 64, &word, sizeof(word));
        }
        physmem_write(mem, at(i * 4096), in, sizeof(in));
        physmem_write64(mem, at(i * 4096 + 1000), i); /* in the midst of a line */
    }
    assert_true(physmem_resident_bytes(mem) < N_PAGES * UINT64_C(4096) / 2);
    for (unsigned round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < N_PAGES; i++) {
            physmem_read(mem, at(i * 4096), out, sizeof(out));
            for (uint64_t line = 0; line < 64; line++) {
                const uint64_t word = i % 16 == 0
                                          ? i + line * line
                                          : payload_word(payload_mark(3, i * 4096 + line * 64));
                assert_memory_equal(out + line * 64, &word, sizeof(word));
            }
            assert_int_equal(physmem_read64(mem, at(i * 4096 + 1000)), i);
        }
    }
    /* A page that is packed is cleared whole and in part. */
    physmem_clear(mem, at(4096), 4096);
    assert_int_equal(physmem_read64(mem, at(4096)), 0);
    physmem_clear(mem, at(2 * 4096), 64);
    assert_int_equal(physmem_read64(mem, at(2 * 4096)), 0);
    assert_int_equal(physmem_read64(mem, at(2 * 4096 + 1000)), 2);
    physmem_free(mem);
}

/* What physmem_bytes_made() returned stays where it is while all other pages are opened, which is
 * more than lie open at a time. */
static void test_made_page_stays(void **state)
{
    enum { N_PAGES = 30000, N_MADE = 3 };
    const uint64_t bytes[] = { 8 * GIB };
    struct physmem *mem = physmem_new(1, bytes);

    (void)state;
    for (uint64_t i = 0; i < N_PAGES; i++)
        physmem_write64(mem, at(i * 4096), i + 1);
    for (uint64_t i = 0; i < N_MADE; i++) {
        uint8_t *made = physmem_bytes_made(mem, at(i * 4096));
        for (uint64_t other = N_MADE; other < N_PAGES; other++) {
            uint64_t word;
            memcpy(&word, physmem_bytes(mem, at(other * 4096)), sizeof(word));
            assert_int_equal(word, other + 1);
        }
        memcpy(made + 8, &i, sizeof(i));
    }
    for (uint64_t i = 0; i < N_PAGES; i++) {
        assert_int_equal(physmem_read64(mem, at(i * 4096)), i + 1);
        assert_int_equal(physmem_read64(mem, at(i * 4096 + 8)), i < N_MADE ? i : 0);
    }
    physmem_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_alloc),
        cmocka_unit_test(test_alloc_zones),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_alloc_random),
        cmocka_unit_test(test_many_pages),
        cmocka_unit_test(test_made_page_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
