/*
 * Random loads, stores, DMA, flushes of all agents on a few hundred lines: the invariants of
 * models/numa/check.c hold after each batch, every dirty line is written exactly once, devices
 * allocate nowhere but in the DDIO ways, and warming leaves the state that timed accesses leave.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/engine/zeroed.h"
#include "tests/support/numa_fixture.h"

#define TEST_LINES 600u

/* Caches so small that every kind of eviction happens all the time. */
static void shrink(struct fixture *f, bool inclusive)
{
    fixture_r730(f);
    f->cpu.cores_per_socket = 4;
    f->cache.l1_bytes = 4 * 2 * 64;
    f->cache.l1_ways = 2;
    f->cache.l2_bytes = 8 * 4 * 64;
    f->cache.l2_ways = 4;
    f->cache.llc_slices = 3;
    f->cache.llc_ways = 6;
    f->cache.llc_bytes = UINT64_C(3) * 8 * 6 * 64;
    f->cache.inclusive = inclusive;
    f->cache.filter_ways = 5;
    f->dram.node_bytes = UINT64_C(1) << 30;
}

static struct hpa some_line(struct numa *n, uint64_t *random)
{
    const uint64_t r = fixture_random(random);
    const unsigned nodes = physmem_nodes(numa_physmem(n));

    return fixture_hpa(n, (unsigned)(r % nodes), ((r >> 8) % TEST_LINES) * 64);
}

/* One random access to the line, stamped unless that is NULL; its end, which is never before its
 * beginning. */
static sim_time step_at(struct numa *n, struct hpa hpa, uint64_t *random, sim_time *t,
                        struct sim_stamp *stamp)
{
    const uint64_t r = fixture_random(random);
    const unsigned core = (unsigned)(r >> 32) % numa_cores(n);
    const unsigned socket = (unsigned)(r >> 32) % numa_sockets(n);
    /* Callers are up to a microsecond out of order. */
    const sim_time at = *t + (r >> 40) % 1000000;
    sim_time done;

    if (stamp != NULL)
        sim_stamp_start(stamp, at);
    switch (r % 16) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4: done = numa_load(n, core, hpa, at, stamp).done_ps; break;
    case 5:
    case 6:
    case 7:
    case 8: done = numa_store(n, core, hpa, at, stamp).done_ps; break;
    case 9:
    case 10: done = numa_dma_read(n, socket, hpa, 64, at, stamp, NULL); break;
    case 11:
    case 12: done = numa_dma_write(n, socket, hpa, 64, at, stamp, NULL); break;
    case 13: done = numa_dma_write(n, socket, hpa, 8, at, stamp, NULL); break;
    case 14: done = numa_store_nt(n, core, hpa, at, stamp).done_ps; break;
    default: done = numa_flush(n, core, hpa, at); break;
    }
    assert_true(done > at);
    *t += 3000;
    return done;
}

static void step(struct numa *n, uint64_t *random, sim_time *t)
{
    step_at(n, some_line(n, random), random, t, NULL);
}

/* numa.present, where there is one, says of each line which L2s have it. */
static void assert_notes_are_exact(struct numa *n)
{
    for (unsigned i = 0; i < TEST_LINES; i++)
        for (unsigned g = 0; g < n->sockets * n->groups_per_socket; g++) {
            const uint64_t line = fixture_hpa(n, 0, UINT64_C(64) * i).v >> LINE_LOG2;
            const struct cache *l2 = &n->core_group[g].l2;
            const bool there = cache_find(l2, cache_place(l2, line)) >= 0;
            if (numa_has(n, g, line) != there)
                fail_msg("line %u is%s in L2 %u", i, there ? "" : " not", g);
        }
}

static void assert_invariants(struct numa *n)
{
    const char *why;
    uint64_t line;

    if (!numa_check_invariants(n, &why, &line))
        fail_msg("line %llx: %s", (unsigned long long)line, why);
    if (n->present != NULL)
        assert_notes_are_exact(n);
}

static void run_random(struct fixture *f, uint64_t seed)
{
    struct numa *n = fixture_new(f);
    sim_time t = 1000000;

    for (unsigned batch = 0; batch < 400; batch++) {
        for (unsigned i = 0; i < 25; i++)
            step(n, &seed, &t);
        assert_invariants(n);
    }
    numa_free(n);
}

static void test_invariants_inclusive(void **state)
{
    struct fixture f;

    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        shrink(&f, true);
        f.cache.writeback_keeps_sharer = seed != 2;
        run_random(&f, seed);
        f.coherence.remote_dma_write = REMOTE_DMA_DRAM_INVALIDATE;
        run_random(&f, seed + 10);
        f.coherence.remote_dma_write = REMOTE_DMA_HOME_LLC;
        run_random(&f, seed + 15);
        f.coherence.remote_dma_write = REMOTE_DMA_OWN_THEN_DRAM;
        f.coherence.io_directory_entries = 4 * (uint32_t)(seed - 1);
        f.coherence.directory_stale = (int)(seed - 1);
        run_random(&f, seed + 17);
        f.coherence.remote_dma_write = REMOTE_DMA_OWN_THEN_BOTH;
        run_random(&f, seed + 18);
        f.coherence.opportunistic_broadcast = false;
        run_random(&f, seed + 20);
        f.coherence.snoop_mode = (int)(seed % 3);
        run_random(&f, seed + 22);
        f.cache.ddio = false;
        run_random(&f, seed + 25);
    }
}

/* The sizes that the inner loops are compiled for; one slice, of whose sets few are used: every
 * cache overflows all the same. */
static void usual_params(struct fixture *f)
{
    fixture_r730(f);
    f->cpu.cores_per_socket = 2;
    f->cache.llc_slices = 1;
    f->cache.llc_bytes = UINT64_C(64) * FAST_LLC_SETS * FAST_LLC_WAYS;
    f->dram.node_bytes = UINT64_C(1) << 30;
}

static struct numa *usual_sizes(struct fixture *f)
{
    usual_params(f);
    struct numa *n = fixture_new(f);
    assert_true(n->llc_fast && n->core_group[0].fast);
    return n;
}

/* Two sets of the LLC, n_tags lines of each node in both. */
static struct hpa usual_line(struct numa *n, uint64_t *random, unsigned n_tags)
{
    const uint64_t r = fixture_random(random);
    const uint64_t line = (r >> 8) % 2 + (r >> 16) % n_tags * FAST_LLC_SETS;

    return fixture_hpa(n, (unsigned)(r % 2), line * 64);
}

static void test_invariants_usual_sizes(void **state)
{
    struct fixture f;
    uint64_t random = 7;
    sim_time t = 1000000;

    (void)state;
    struct numa *n = usual_sizes(&f);
    for (unsigned batch = 0; batch < 200; batch++) {
        for (unsigned i = 0; i < 50; i++)
            step_at(n, usual_line(n, &random, 60), &random, &t, NULL);
        assert_invariants(n);
    }
    assert_true(n->socket[0].counters.llc_back_invalidations > 0);
    assert_true(n->socket[0].counters.write_bytes[WRITE_VICTIM] > 0);
    numa_free(n);
}

/* Home agents that are compiled for usual machines against those for any: nobody can tell, whatever
 * devices' writes do. */
static void test_usual_homes_change_nothing(void **state)
{
    static const int policies[] = { REMOTE_DMA_DEVICE_SIDE_LLC, REMOTE_DMA_DRAM_INVALIDATE,
                                    REMOTE_DMA_HOME_LLC, REMOTE_DMA_OWN_THEN_DRAM,
                                    REMOTE_DMA_OWN_THEN_BOTH };
    (void)state;
    for (unsigned i = 0; i < 4 * SIM_N_ELEMENTS(policies); i++) {
        struct fixture f[2];
        struct numa *n[2];
        uint64_t random[2] = { 11 + i, 11 + i };
        sim_time t[2] = { 1000000, 1000000 }, done[2];
        for (unsigned k = 0; k < 2; k++) {
            usual_params(&f[k]);
            f[k].coherence.remote_dma_write = policies[i / 4];
            f[k].coherence.opportunistic_broadcast = i % 2 == 0;
            f[k].coherence.io_directory_entries = i % 4 < 2 ? 16 : 0;
            f[k].cache.writeback_keeps_sharer = i % 4 != 1;
            f[k].cache.ddio = i % 4 != 2;
            n[k] = fixture_new(&f[k]);
            assert_true(n[k]->home_fast);
        }
        n[1]->home_fast = false;
        for (unsigned j = 0; j < 5000; j++) {
            for (unsigned k = 0; k < 2; k++)
                done[k] = step_at(n[k], usual_line(n[k], &random[k], 40), &random[k], &t[k], NULL);
            assert_int_equal(done[0], done[1]);
        }
        for (unsigned s = 0; s < 2; s++)
            assert_memory_equal(&n[0]->socket[s].counters, &n[1]->socket[s].counters,
                                sizeof(struct numa_counters));
        assert_true(n[0]->socket[0].counters.snoops_sent > 100);
        for (unsigned k = 0; k < 2; k++) {
            assert_invariants(n[k]);
            numa_free(n[k]);
        }
    }
}

/* Stamped accesses of cores take the general way through the caches, those of DMA the same one with
 * marks: nobody can tell by the result. */
static void test_stamps_change_nothing(void **state)
{
    struct fixture f[2];
    struct numa *n[2];
    uint64_t random[2] = { 11, 11 };
    sim_time t[2] = { 1000000, 1000000 }, done[2];
    struct sim_stamp stamp;

    (void)state;
    for (unsigned k = 0; k < 2; k++)
        n[k] = usual_sizes(&f[k]);
    for (unsigned i = 0; i < 20000; i++) {
        for (unsigned k = 0; k < 2; k++)
            done[k] = step_at(n[k], usual_line(n[k], &random[k], 12), &random[k], &t[k],
                              k == 0 ? NULL : &stamp);
        assert_int_equal(done[0], done[1]);
    }
    for (unsigned s = 0; s < 2; s++)
        assert_memory_equal(&n[0]->socket[s].counters, &n[1]->socket[s].counters,
                            sizeof(struct numa_counters));
    assert_true(n[0]->socket[0].counters.core_llc_hits > 1000);
    assert_true(n[0]->socket[0].counters.write_bytes[WRITE_VICTIM] > 0);
    for (unsigned k = 0; k < 2; k++)
        numa_free(n[k]);
}

/* A run of a device's lines on one, the same line by line on the other. */
static void check_run(struct numa *const n[2], uint64_t *random, sim_time t)
{
    const uint64_t r = fixture_random(random);
    const bool write = (r & 1) != 0;
    const unsigned socket = (unsigned)(r >> 1) % numa_sockets(n[0]);
    const unsigned node = (unsigned)(r >> 8) % physmem_nodes(numa_physmem(n[0]));
    const struct numa_run run = {
        .hpa = fixture_hpa(n[0], node, (r >> 16) % (TEST_LINES * 64)),
        .bytes = 1 + (unsigned)(r >> 32) % 600,
        .at_ps = t,
        .interval_ps = (r >> 48) % 3000,
        .not_before_ps = (r >> 60) % 2 == 0 ? 0 : t + 5000,
    };
    const struct numa_run_done done = write ? numa_dma_write_run(n[0], socket, &run)
                                            : numa_dma_read_run(n[0], socket, &run);
    struct numa_run_done each = { 0, 0 };
    sim_time slot_ps = t;

    for (unsigned at = 0, bytes; at < run.bytes; at += bytes, slot_ps += run.interval_ps) {
        const struct hpa hpa = { run.hpa.v + at };
        const sim_time at_ps = SIM_MAX(slot_ps, run.not_before_ps);
        bytes = SIM_MIN(run.bytes - at, 64 - (unsigned)(hpa.v % 64));
        const sim_time done_ps = write ? numa_dma_write(n[1], socket, hpa, bytes, at_ps, NULL, NULL)
                                       : numa_dma_read(n[1], socket, hpa, bytes, at_ps, NULL, NULL);
        each.last_ps = SIM_MAX(each.last_ps, done_ps);
        each.held_ps += done_ps - at_ps;
    }
    assert_int_equal(done.last_ps, each.last_ps);
    assert_int_equal(done.held_ps, each.held_ps);
}

static void compare_runs(struct numa *const n[2])
{
    uint64_t random[2] = { 21, 21 }, of_runs = 22;
    sim_time t[2] = { 1000000, 1000000 };

    for (unsigned i = 0; i < 3000; i++) {
        for (unsigned k = 0; k < 2; k++)
            step(n[k], &random[k], &t[k]);
        check_run(n, &of_runs, t[0]);
    }
    for (unsigned s = 0; s < n[0]->sockets; s++)
        assert_memory_equal(&n[0]->socket[s].counters, &n[1]->socket[s].counters,
                            sizeof(struct numa_counters));
    const struct numa_counters *counters = &n[0]->socket[0].counters;
    assert_true(counters->dma_read_hits + counters->dma_read_misses > 1000);
    numa_free(n[0]);
    numa_free(n[1]);
}

static void test_runs_are_their_lines(void **state)
{
    struct fixture f[2];
    struct numa *n[2];

    (void)state;
    for (unsigned kind = 0; kind < 5; kind++) {
        for (unsigned k = 0; k < 2; k++) {
            if (kind == 0)
                fixture_clovertown(&f[k]);
            else if (kind == 1)
                shrink(&f[k], false);
            else
                fixture_r730(&f[k]);
            f[k].cache.ddio = kind != 2;
            if (kind == 3)
                f[k].coherence.remote_dma_write = REMOTE_DMA_OWN_THEN_DRAM;
            n[k] = fixture_new(&f[k]);
        }
        assert_int_equal(n[0]->llc_fast, kind > 1);
        compare_runs(n);
    }
}

static void test_invariants_non_inclusive(void **state)
{
    struct fixture f;

    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        shrink(&f, false);
        run_random(&f, seed + 30);
        f.coherence.remote_dma_write = REMOTE_DMA_HOME_LLC;
        run_random(&f, seed + 35);
        f.coherence.remote_dma_write = REMOTE_DMA_OWN_THEN_DRAM;
        f.coherence.io_directory_entries = 96;
        run_random(&f, seed + 37);
        f.coherence.remote_dma_write = REMOTE_DMA_OWN_THEN_BOTH;
        run_random(&f, seed + 39);
    }
}

static void test_invariants_four_sockets(void **state)
{
    struct fixture f;

    (void)state;
    shrink(&f, true);
    f.cpu.sockets = 4;
    run_random(&f, 41);
    f.coherence.remote_dma_write = REMOTE_DMA_DRAM_INVALIDATE;
    run_random(&f, 42);
    f.coherence.remote_dma_write = REMOTE_DMA_HOME_LLC;
    run_random(&f, 43);
    f.coherence.remote_dma_write = REMOTE_DMA_OWN_THEN_DRAM;
    f.coherence.io_directory_entries = 8;
    run_random(&f, 44);
    f.coherence.remote_dma_write = REMOTE_DMA_OWN_THEN_BOTH;
    run_random(&f, 45);
}

static void test_invariants_front_side_bus(void **state)
{
    struct fixture f;

    (void)state;
    fixture_clovertown(&f);
    f.cache.l1_bytes = 4 * 2 * 64;
    f.cache.l1_ways = 2;
    f.cache.l2_bytes = 8 * 4 * 64;
    f.cache.l2_ways = 4;
    run_random(&f, 51);
    f.coherence.snoop_filter = false;
    run_random(&f, 52);
}

/* Sectors, write-through, prefetches; a snoop filter smaller than the caches. */
static void shrink_blackford(struct fixture *f)
{
    fixture_blackford(f);
    f->cache.l1_bytes = 4 * 2 * 64;
    f->cache.l1_ways = 2;
    f->cache.l2_bytes = 8 * 4 * 64;
    f->cache.l2_ways = 4;
    f->coherence.snoop_filter_ways = 4;
}

static void test_invariants_blackford(void **state)
{
    struct fixture f;

    (void)state;
    shrink_blackford(&f);
    run_random(&f, 53);
    f.coherence.snoop_filter = true;
    f.coherence.snoop_filter_bytes = 8 * 4 * 64;
    run_random(&f, 54);
    f.cache.l2_cores = 2;
    f.coherence.snoop_filter_bytes = 4 * 4 * 64;
    run_random(&f, 55);
    f.cache.l1_write_through = false;
    run_random(&f, 56);
}

/* What is noted of lines (numa.present) saves looks at caches and filters: without it every access
 * ends at the same time. */
static void test_presence_changes_nothing(void **state)
{
    struct fixture f;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        uint64_t random = 60 + i, again = random;
        sim_time t = 1000000, t_again = t;
        shrink_blackford(&f);
        if (i == 1)
            fixture_clovertown(&f);
        f.coherence.snoop_filter_bytes = i == 2 ? 0 : UINT64_C(4) * 16 * 64;
        struct numa *n = fixture_new(&f), *looks = fixture_new(&f);
        assert_non_null(n->present);
        sim_zeroed_free(looks->present, numa_lines(looks));
        looks->present = NULL;
        for (unsigned k = 0; k < 20000; k++) {
            const sim_time done = step_at(n, some_line(n, &random), &random, &t, NULL);
            assert_int_equal(step_at(looks, some_line(looks, &again), &again, &t_again, NULL),
                             done);
            if (k == 10000) {
                numa_warm_drop_all(n);
                numa_warm_drop_all(looks);
            }
        }
        unsigned n_held = 0;
        for (unsigned line = 0; line < TEST_LINES; line++)
            for (unsigned g = 0; g < n->sockets * n->groups_per_socket; g++) {
                const uint64_t at = fixture_hpa(n, 0, line * 64).v / 64;
                const bool held = core_group_peek(looks, g, at) != LINE_I;
                assert_int_equal(numa_may_have(n, g, at), held);
                n_held += held;
            }
        assert_true(n_held > 20);
        assert_int_equal(numa_dram_bytes(n), numa_dram_bytes(looks));
        numa_free(n);
        numa_free(looks);
    }
}

/* ---- No written data are lost, none are written twice ---------------------------------------- */

static bool is_dirty(struct numa *n, uint64_t line)
{
    bool dirty = false;

    for (unsigned c = 0; c < n->sockets * n->groups_per_socket; c++)
        dirty |= core_group_peek(n, c, line) == LINE_M;
    for (unsigned s = 0; s < n->sockets && n->socket[s].llc.row != NULL; s++) {
        const struct holder h = agent_find(n, s, line);
        dirty |= h.way >= 0 && line_state(holder_word(h)) == LINE_M;
    }
    return dirty;
}

static uint64_t lines_written_back(const struct numa *n)
{
    uint64_t bytes = 0;

    for (unsigned s = 0; s < n->sockets; s++) {
        const struct numa_counters *c = &n->socket[s].counters;
        bytes += c->write_bytes[WRITE_VICTIM] + c->write_bytes[WRITE_DDIO_VICTIM] +
                 c->write_bytes[WRITE_SNOOP] + c->write_bytes[WRITE_FLUSH];
    }
    return bytes / 64;
}

static uint64_t lines_written_directly(const struct numa *n)
{
    uint64_t bytes = 0;

    for (unsigned s = 0; s < n->sockets; s++)
        bytes += n->socket[s].counters.write_bytes[WRITE_NT] +
                 n->socket[s].counters.write_bytes[WRITE_DMA];
    return bytes / 64;
}

/*
 * Of each step: a line that was dirty and is no more has been written to DRAM, unless the step
 * replaced it in DRAM; and no more lines have been written than became clean, but for the step's
 * own line, which may be written on its way from one owner to the next.
 */
static void run_conserving(struct fixture *f, uint64_t seed)
{
    static bool dirty[4][TEST_LINES];
    struct numa *n = fixture_new(f);
    const unsigned nodes = physmem_nodes(numa_physmem(n));
    sim_time t = 1000000;
    uint64_t back = 0, direct = 0, total_cleaned = 0;

    memset(dirty, 0, sizeof(dirty));
    for (unsigned i = 0; i < 2500; i++) {
        uint64_t cleaned = 0;
        step(n, &seed, &t);
        for (unsigned node = 0; node < nodes; node++) {
            for (unsigned l = 0; l < TEST_LINES; l++) {
                const bool now = is_dirty(n, fixture_hpa(n, node, l * UINT64_C(64)).v >> LINE_LOG2);
                cleaned += dirty[node][l] && !now;
                dirty[node][l] = now;
            }
        }
        const uint64_t written = lines_written_back(n) - back;
        const uint64_t replaced = lines_written_directly(n) - direct;
        back += written;
        direct += replaced;
        total_cleaned += cleaned;
        assert_true(replaced <= 1);
        assert_true(cleaned <= written + replaced);
        assert_true(written <= cleaned + 1);
    }
    assert_true(total_cleaned > 200);
    numa_free(n);
}

static void test_dirty_lines_are_conserved(void **state)
{
    struct fixture f;

    (void)state;
    shrink(&f, true);
    run_conserving(&f, 61);
    f.coherence.remote_dma_write = REMOTE_DMA_DRAM_INVALIDATE;
    run_conserving(&f, 62);
    f.coherence.remote_dma_write = REMOTE_DMA_HOME_LLC;
    run_conserving(&f, 65);
    f.coherence.remote_dma_write = REMOTE_DMA_OWN_THEN_DRAM;
    f.coherence.io_directory_entries = 8;
    run_conserving(&f, 66);
    shrink(&f, false);
    run_conserving(&f, 63);
    fixture_clovertown(&f);
    f.cache.l1_bytes = 4 * 2 * 64;
    f.cache.l1_ways = 2;
    f.cache.l2_bytes = 8 * 4 * 64;
    f.cache.l2_ways = 4;
    run_conserving(&f, 64);
}

/* ---- Exact counts ---------------------------------------------------------------------------- */

struct dirty_count {
    uint64_t lines;
};

static void count_dirty(void *context, uint64_t line, int way, uint32_t word)
{
    struct dirty_count *count = context;

    (void)line;
    (void)way;
    count->lines += line_state(word) == LINE_M;
}

/* Every store by one core to a distinct line: as many write-backs as lines that left the caches. */
static void test_victims_are_written_once(void **state)
{
    struct fixture f;
    struct dirty_count left = { 0 };
    uint64_t written = 0;

    (void)state;
    shrink(&f, true);
    struct numa *n = fixture_new(&f);
    for (unsigned i = 0; i < 5000; i++)
        numa_store(n, 0, fixture_hpa(n, i & 1, (uint64_t)i / 2 * 64), i * UINT64_C(100000), NULL);
    for (unsigned s = 0; s < 2; s++)
        written += n->socket[s].counters.write_bytes[WRITE_VICTIM] / 64;
    /* Lines M in an L2 may be E in the LLC: count the lines of the LLC that are M in either. */
    const struct numa_socket *s0 = &n->socket[0];
    for (uint32_t row = 0; row < s0->llc.slices * s0->llc.sets; row++) {
        for (int way = 0; way < (int)s0->llc.ways; way++) {
            const struct cache_place p = { .row = cache_row(&s0->llc, row), .index = row };
            if (!cache_holds(p, way))
                continue;
            const uint64_t line = cache_line_in(&s0->llc, p, way);
            left.lines += cache_state(p, way) == LINE_M || core_group_peek(n, 0, line) == LINE_M;
        }
    }
    assert_int_equal(written + left.lines, 5000);
    numa_free(n);
}

static void test_dma_victims_are_written_once(void **state)
{
    struct fixture f;
    struct dirty_count left = { 0 };

    (void)state;
    shrink(&f, true);
    struct numa *n = fixture_new(&f);
    for (unsigned i = 0; i < 5000; i++)
        numa_dma_write(n, 0, fixture_hpa(n, i & 1, (uint64_t)i / 2 * 64), 64, i * UINT64_C(100000),
                       NULL, NULL);
    cache_each(&n->socket[0].llc, &left, count_dirty);
    const uint64_t written = (n->socket[0].counters.write_bytes[WRITE_DDIO_VICTIM] +
                              n->socket[1].counters.write_bytes[WRITE_DDIO_VICTIM]) /
                             64;
    assert_int_equal(written + left.lines, 5000);
    assert_int_equal(left.lines, 3 * 8 * 2);
    assert_int_equal(n->socket[0].counters.ddio_dirty_evictions, written);
    assert_int_equal(n->socket[0].counters.dma_write_allocates, 5000);
    /* A full line needs no data: DRAM is read for the directory alone, at the remote home alone. */
    assert_int_equal(n->socket[0].counters.dram_read_bytes, 0);
    assert_int_equal(n->socket[1].counters.dram_read_bytes, 2500 * 64);
    assert_int_equal(n->socket[1].counters.read_bytes[READ_DIRECTORY], 2500 * 64);
    numa_free(n);
}

/* ---- Way masks ------------------------------------------------------------------------------- */

struct ways_seen {
    uint32_t mask;
};

static void see_way(void *context, uint64_t line, int way, uint32_t word)
{
    struct ways_seen *seen = context;

    (void)line;
    (void)word;
    seen->mask |= UINT32_C(1) << way;
}

static void test_way_masks(void **state)
{
    struct fixture f;
    struct ways_seen dma = { 0 }, core = { 0 };
    uint64_t random = 5;

    (void)state;
    fixture_r730(&f);
    struct numa *n = fixture_new(&f);
    for (unsigned i = 0; i < 200000; i++)
        numa_dma_write(n, 0, fixture_hpa(n, i & 1, (fixture_random(&random) % 1000000) * 64), 64,
                       i * UINT64_C(10000), NULL, NULL);
    cache_each(&n->socket[0].llc, &dma, see_way);
    assert_int_equal(dma.mask, 0xC0000);
    for (unsigned i = 0; i < 1200000; i++)
        numa_load(n, i % 14, fixture_hpa(n, 0, (UINT64_C(1) << 30) + i * UINT64_C(64)),
                  i * UINT64_C(10000), NULL);
    cache_each(&n->socket[0].llc, &core, see_way);
    assert_int_equal(core.mask, 0xFFFFF);
    numa_free(n);
}

/* ---- Warming --------------------------------------------------------------------------------- */

struct digest {
    uint64_t hash;
};

static void add_line(void *context, uint64_t line, int way, uint32_t word)
{
    struct digest *d = context;

    d->hash = (d->hash ^ line ^ ((uint64_t)way << 40) ^ ((uint64_t)word << 20)) *
              UINT64_C(0x100000001B3);
}

static uint64_t digest(struct numa *n)
{
    struct digest d = { 1469598103934665603u };

    for (unsigned s = 0; s < n->sockets; s++)
        cache_each(&n->socket[s].llc, &d, add_line);
    for (unsigned c = 0; c < n->sockets * n->groups_per_socket; c++)
        cache_each(&n->core_group[c].l2, &d, add_line);
    for (unsigned i = 0; i < TEST_LINES; i++)
        for (unsigned s = 0; s < n->sockets; s++)
            add_line(&d, directory_get(&n->socket[s].directory, i), 0, 0);
    return d.hash;
}

static void test_warming_is_the_timed_path(void **state)
{
    struct fixture f;

    (void)state;
    shrink(&f, true);
    struct numa *timed = fixture_new(&f), *warm = fixture_new(&f);
    for (unsigned node = 0; node < 2; node++) {
        for (unsigned i = 0; i < 500; i++)
            numa_store(timed, 1, fixture_hpa(timed, node, i * UINT64_C(64)), i * UINT64_C(200000),
                       NULL);
        numa_warm_core(warm, 1, fixture_hpa(warm, node, 0), 500 * 64);
    }
    assert_int_equal(digest(timed), digest(warm));
    for (unsigned i = 0; i < 300; i++)
        numa_dma_write(timed, 1, fixture_hpa(timed, 0, i * UINT64_C(64)), 64, i * UINT64_C(200000),
                       NULL, NULL);
    numa_warm_device(warm, 1, fixture_hpa(warm, 0, 0), 300 * 64);
    assert_int_equal(digest(timed), digest(warm));
    assert_int_equal(numa_dram_bytes(warm), 0);
    assert_int_equal(numa_interconnect_bytes(warm, 0, 1), 0);
    assert_true(numa_dram_bytes(timed) > 0);

    numa_warm_drop(warm, fixture_hpa(warm, 0, 0), 500 * 64);
    numa_warm_drop(warm, fixture_hpa(warm, 1, 0), 500 * 64);
    numa_warm_drop_all(timed);
    assert_int_equal(digest(timed), digest(warm));
    numa_free(timed);
    numa_free(warm);
}

/* A range that is larger than the caches is looked for by what these have, a small one line by
 * line: what becomes of it, and of the lines beside it, is the same. */
static void dropped_at_once_or_line_by_line(bool inclusive)
{
    const uint64_t first = 100, end = TEST_LINES - 50;
    uint64_t random[2] = { 7, 7 };
    struct numa *machine[2];
    struct fixture f;

    shrink(&f, inclusive);
    for (unsigned m = 0; m < 2; m++) {
        sim_time t = 0;
        machine[m] = fixture_new(&f);
        for (unsigned i = 0; i < 5000; i++)
            step_at(machine[m], some_line(machine[m], &random[m]), &random[m], &t, NULL);
    }
    const uint64_t before = digest(machine[0]);
    assert_int_equal(digest(machine[1]), before);
    for (unsigned node = 0; node < 2; node++) {
        numa_warm_forgotten(machine[0], node, fixture_hpa(machine[0], node ^ 1, first * 64),
                            (end - first) * 64 - 1);
        numa_warm_drop(machine[0], fixture_hpa(machine[0], node, first * 64), (end - first) * 64);
    }
    for (unsigned node = 0; node < 2; node++) {
        for (uint64_t i = first; i < end; i++)
            numa_warm_forgotten(machine[1], node, fixture_hpa(machine[1], node ^ 1, i * 64), 1);
        for (uint64_t i = first; i < end; i++)
            numa_warm_drop(machine[1], fixture_hpa(machine[1], node, i * 64), 64);
    }
    assert_int_not_equal(digest(machine[0]), before);
    assert_int_equal(digest(machine[0]), digest(machine[1]));
    for (unsigned m = 0; m < 2; m++)
        numa_free(machine[m]);
}

static void test_a_large_range_is_its_lines(void **state)
{
    (void)state;
    dropped_at_once_or_line_by_line(true);
    dropped_at_once_or_line_by_line(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_invariants_inclusive),
        cmocka_unit_test(test_invariants_usual_sizes),
        cmocka_unit_test(test_usual_homes_change_nothing),
        cmocka_unit_test(test_stamps_change_nothing),
        cmocka_unit_test(test_runs_are_their_lines),
        cmocka_unit_test(test_invariants_non_inclusive),
        cmocka_unit_test(test_invariants_four_sockets),
        cmocka_unit_test(test_invariants_front_side_bus),
        cmocka_unit_test(test_presence_changes_nothing),
        cmocka_unit_test(test_invariants_blackford),
        cmocka_unit_test(test_dirty_lines_are_conserved),
        cmocka_unit_test(test_victims_are_written_once),
        cmocka_unit_test(test_dma_victims_are_written_once),
        cmocka_unit_test(test_way_masks),
        cmocka_unit_test(test_warming_is_the_timed_path),
        cmocka_unit_test(test_a_large_range_is_its_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
