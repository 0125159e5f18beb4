/*
 * Instruction caches: what they hold comes through the L2, whose line a core's loads find there,
 * too; a line leaves with that of the L2, and when anybody stores to it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/numa_fixture.h"

#define WAYS  2u
#define SETS  4u
#define CYCLE UINT64_C(500)
#define L1    (3 * CYCLE)
#define L2    (14 * CYCLE)
#define APART UINT64_C(1000000) /* no contention */

static struct numa *small_l1i(struct fixture *f)
{
    fixture_clovertown(f);
    f->cpu.clock_ghz = 2;
    f->cpu.l1_hit_cycles = 3;
    f->cpu.l2_hit_cycles = 14;
    f->cache.prefetch.streams = 0;
    f->cache.l1i_bytes = WAYS * SETS * LINE_BYTES;
    f->cache.l1i_ways = WAYS;
    return fixture_new(f);
}

static struct hpa line_of(uint64_t line)
{
    return (struct hpa){ line << LINE_LOG2 };
}

/* What served the fetch, at a time of its own. */
static enum numa_source fetch(struct numa *n, unsigned core, uint64_t line, sim_time *t)
{
    *t += APART;
    const struct numa_result r = numa_fetch(n, core, line_of(line), *t);
    if (r.source == NUMA_L1)
        assert_int_equal(r.done_ps, *t + L1);
    else
        assert_true(r.done_ps >= *t + L2);
    return r.source;
}

static void check(const struct numa *n)
{
    const char *why;
    uint64_t line;
    if (!numa_check_invariants(n, &why, &line))
        fail_msg("line %llu: %s", (unsigned long long)line, why);
}

static void test_own_cache_in_front_of_the_l2(void **state)
{
    struct fixture f;
    struct numa *n = small_l1i(&f);
    sim_time t = 0;

    (void)state;
    assert_true(numa_has_l1i(n));
    assert_int_equal(fetch(n, 0, 100, &t), NUMA_LOCAL_DRAM);
    assert_int_equal(numa_private_count(n, 0).l2_accesses, 1);
    assert_int_equal(numa_private_count(n, 0).l2_misses, 1);
    assert_int_equal(fetch(n, 0, 100, &t), NUMA_L1);
    assert_int_equal(numa_private_count(n, 0).l2_accesses, 1);
    /* The data cache is another one: a load finds the line in the L2, as does the die's other
     * core. */
    t += APART;
    assert_int_equal(numa_load(n, 0, line_of(100), t, NULL).source, NUMA_L2);
    t += APART;
    assert_int_equal(numa_fetch(n, 1, line_of(100), t).done_ps, t + L2);
    assert_int_equal(numa_private_count(n, 1).l2_accesses, 1);
    assert_int_equal(numa_private_count(n, 1).l2_misses, 0);
    /* Three lines of a set of two ways. */
    assert_int_equal(numa_l1i_changes(n, 0), 1);
    assert_int_equal(fetch(n, 0, 100 + SETS, &t), NUMA_LOCAL_DRAM);
    assert_int_equal(fetch(n, 0, 100 + 2 * SETS, &t), NUMA_LOCAL_DRAM);
    assert_int_equal(numa_l1i_changes(n, 0), 3);
    assert_int_equal(fetch(n, 0, 100 + 2 * SETS, &t), NUMA_L1);
    assert_int_equal(numa_l1i_changes(n, 0), 3);
    assert_int_equal(fetch(n, 0, 101, &t), NUMA_LOCAL_DRAM); /* another set */
    check(n);
    numa_free(n);
}

static void test_stores_and_the_l2_take_lines(void **state)
{
    struct fixture f;
    struct numa *n = small_l1i(&f);
    sim_time t = 0;

    (void)state;
    for (unsigned core = 0; core < 2; core++) {
        fetch(n, core, 100, &t);
        assert_int_equal(fetch(n, core, 100, &t), NUMA_L1);
    }
    /* The core itself, its data cache and the other core's. */
    t += APART;
    numa_store(n, 0, line_of(100), t, NULL);
    check(n);
    assert_int_equal(numa_l1i_changes(n, 0), 2);
    t += APART; /* its L1D has modified it: the L2 asks there first */
    assert_int_equal(numa_fetch(n, 0, line_of(100), t).done_ps, t + L2 + L1 + L2);
    assert_int_equal(fetch(n, 1, 100, &t), NUMA_L2);
    check(n);
    /* A core of the other socket. */
    t += APART;
    numa_store(n, 4, line_of(100), t, NULL);
    check(n);
    assert_int_equal(numa_l1i_changes(n, 1), 4);
    assert_true(fetch(n, 1, 100, &t) > NUMA_L2);
    /* As many lines of the L2's set as it has ways. */
    const uint64_t sets = f.cache.l2_bytes / LINE_BYTES / f.cache.l2_ways;
    for (unsigned i = 1; i <= f.cache.l2_ways; i++) {
        t += APART;
        numa_load(n, 0, line_of(100 + i * sets), t, NULL);
    }
    check(n);
    assert_int_equal(fetch(n, 1, 100, &t), NUMA_LOCAL_DRAM);
    numa_warm_drop_all(n);
    assert_int_equal(fetch(n, 1, 100, &t), NUMA_LOCAL_DRAM);
    numa_free(n);
}

/* Wherever text is, and in whatever order it was fetched. */
static void test_lines_far_apart(void **state)
{
    static const uint64_t text[] = { 5000, 101, 900002, 103 }; /* each in a set of its own */
    struct fixture f;
    struct numa *n = small_l1i(&f);
    sim_time t = 0;

    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(text); i++)
        fetch(n, 0, text[i], &t);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(text); i++) {
        t += APART;
        numa_store(n, 4, line_of(text[i]), t, NULL);
        assert_int_equal(numa_l1i_changes(n, 0), SIM_N_ELEMENTS(text) + i + 1);
        check(n);
    }
    for (unsigned i = 0; i < SIM_N_ELEMENTS(text); i++)
        assert_true(fetch(n, 0, text[i], &t) > NUMA_L2);
    numa_free(n);
}

/* Loads and stores go the same way with and without it, on a platform whose inner loops are
 * compiled for its caches, too. */
static void test_nothing_of_data_changes(void **state)
{
    struct fixture f;
    sim_time done[2] = { 0, 0 };

    (void)state;
    for (unsigned with = 0; with < 2; with++) {
        uint64_t random = 1;
        fixture_r730(&f);
        f.cache.l1i_bytes = with != 0 ? 32768 : 0;
        struct numa *n = fixture_new(&f);
        assert_int_equal(numa_has_l1i(n), with != 0);
        for (unsigned i = 0; i < 20000; i++) {
            const uint64_t r = fixture_random(&random);
            const struct hpa at = fixture_hpa(n, r & 1, ((r >> 8) % 20000) * LINE_BYTES);
            const unsigned core = (unsigned)(r >> 32) % 4;
            done[with] +=
                ((r >> 40) % 4 == 0 ? numa_store : numa_load)(n, core, at, i * 50000, NULL).done_ps;
        }
        numa_free(n);
    }
    assert_true(done[0] == done[1]);
}

/* With an L2 of its own, too, a core's store takes the line from its L1I. */
static void test_private_l2(void **state)
{
    struct fixture f;
    (void)state;
    fixture_r730(&f);
    f.cache.l1i_bytes = 32768;
    struct numa *n = fixture_new(&f);
    numa_fetch(n, 0, line_of(100), 1000000);
    const uint64_t before = numa_l1i_changes(n, 0);
    numa_store(n, 0, line_of(100), 2000000, NULL);
    assert_int_equal(numa_l1i_changes(n, 0), before + 1);
    assert_true(numa_fetch(n, 0, line_of(100), 3000000).source != NUMA_L1);
    numa_free(n);
}

/* Hints for what is no memory, as of a device's write to another device. */
static void test_prefetch_beyond_memory(void **state)
{
    struct fixture f;
    (void)state;
    fixture_clovertown(&f);
    struct numa *n = fixture_new(&f);
    assert_non_null(n->present);
    numa_prefetch(n, 0, (struct hpa){ UINT64_C(1) << 46 }, 64);
    numa_prefetch(n, 0, (struct hpa){ numa_lines(n) << LINE_LOG2 }, 256);
    numa_prefetch_load(n, 0, (struct hpa){ UINT64_C(1) << 46 });
    numa_prefetch_load(n, 0, (struct hpa){ numa_lines(n) << LINE_LOG2 });
    numa_free(n);
}

/* Loads and stores of random lines by all cores; returns the sum of their latencies. */
static sim_time scattered(struct numa *n, bool hinted)
{
    uint64_t random = 1;
    sim_time t = 1000000, sum = 0;

    for (unsigned i = 0; i < 4000; i++) {
        const unsigned core = i % numa_cores(n);
        const struct hpa at = fixture_hpa(n, i % numa_sockets(n) % physmem_nodes(numa_physmem(n)),
                                          fixture_random(&random) % 20000 * LINE_BYTES);
        if (hinted)
            numa_prefetch_load(n, core, at);
        const sim_time done = i % 3 == 0 ? numa_store(n, core, at, t, NULL).done_ps
                                         : numa_load(n, core, at, t, NULL).done_ps;
        sum += done - t;
        t += 1000;
    }
    return sum;
}

/* A hint changes nothing that is simulated: with an LLC of the fast geometry, and without an
 * LLC. */
static void test_hints_change_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct fixture f;
        sim_time sum[2];
        for (unsigned hinted = 0; hinted < 2; hinted++) {
            if (i == 0)
                fixture_r730(&f);
            else
                fixture_clovertown(&f);
            struct numa *n = fixture_new(&f);
            sum[hinted] = scattered(n, hinted != 0);
            const char *why;
            uint64_t bad_line;
            assert_true(numa_check_invariants(n, &why, &bad_line));
            numa_free(n);
        }
        assert_true(sum[0] > 0);
        assert_int_equal(sum[0], sum[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_cache_in_front_of_the_l2),
        cmocka_unit_test(test_stores_and_the_l2_take_lines),
        cmocka_unit_test(test_lines_far_apart),
        cmocka_unit_test(test_nothing_of_data_changes),
        cmocka_unit_test(test_private_l2),
        cmocka_unit_test(test_prefetch_beyond_memory),
        cmocka_unit_test(test_hints_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
