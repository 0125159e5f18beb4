/*
 * What software on a core pays: hits their issue or latency, misses a line-fill buffer, and only
 * misses. An idle R730; no refresh is met.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/host/core.h"
#include "tests/support/numa_fixture.h"

#define CYCLE 500
#define ISSUE (2 * CYCLE)
#define L1    (4 * CYCLE)
#define L2    (12 * CYCLE)

static const struct core_params params = { .line_fill_buffers = 10,
                                           .superqueue_entries = 16,
                                           .issue_cycles = 2 };

struct rig {
    struct fixture f;
    struct sim *sim;
    struct numa *n;
    struct core core;
    uint64_t next_line;
};

static void run_on(void fixture(struct fixture *), const struct core_params *core,
                   sim_task_fn *body)
{
    struct rig rig = { 0 };

    fixture(&rig.f);
    rig.f.dram.trfc_ps = 0;
    rig.n = fixture_new(&rig.f);
    rig.sim = sim_new(1);
    sim_task_set_quantum(rig.sim, 0);
    core_init(&rig.core, rig.n, core, 0);
    struct sim_task *task = sim_task_new(rig.sim, "core", 0, body, &rig);
    sim_task_start(task, 1000000);
    sim_run(rig.sim, SIM_TIME_MAX, NULL);
    assert_true(sim_task_finished(task));
    sim_free(rig.sim);
    numa_free(rig.n);
}

static void run(sim_task_fn *body)
{
    run_on(fixture_r730, &params, body);
}

/* A line that nobody has, in a row and a bank of its own. */
static struct hpa fresh(struct rig *rig)
{
    return fixture_hpa(rig->n, 0, 0x10000000 + ++rig->next_line * (0x100000 + 64));
}

static sim_time load_async(struct rig *rig, struct sim_task *task, struct hpa hpa)
{
    const sim_time t = sim_task_now(task);

    core_load_async(&rig->core, task, hpa);
    return sim_task_now(task) - t;
}

/* ---- Hits ------------------------------------------------------------------------------------ */

static void hits_body(struct sim_task *task, void *arg)
{
    struct rig *rig = arg;
    const struct hpa in_l1 = fresh(rig);
    const struct hpa shared = fresh(rig);

    numa_load(rig->n, 1, shared, sim_task_now(task), NULL);
    core_load(&rig->core, task, shared, NULL);
    core_load(&rig->core, task, in_l1, NULL);
    core_store(&rig->core, task, in_l1);
    const struct hpa in_l2 = fixture_hpa(rig->n, 0, 0x1000);
    core_load(&rig->core, task, in_l2, NULL);
    for (unsigned i = 1; i <= 8; i++)
        core_load(&rig->core, task, fixture_hpa(rig->n, 0, 0x1000 + i * 4096), NULL);
    /* All buffers taken, by misses that have long to go. */
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(load_async(rig, task, fresh(rig)), ISSUE);
    const sim_time free_ps = rig->core.buffer_done_ps[0];
    assert_int_equal(load_async(rig, task, in_l1), ISSUE);
    sim_time t = sim_task_now(task);
    core_store(&rig->core, task, in_l1);
    assert_int_equal(sim_task_now(task) - t, ISSUE);
    t = sim_task_now(task);
    core_load(&rig->core, task, in_l1, NULL);
    assert_int_equal(sim_task_now(task) - t, L1);
    t = sim_task_now(task);
    core_load(&rig->core, task, in_l2, NULL);
    assert_int_equal(sim_task_now(task) - t, L2);
    assert_true(sim_task_now(task) < free_ps);
    /* There to be read, but not owned: the store has to ask. */
    assert_true(numa_private_hit(rig->n, 0, shared, false));
    assert_false(numa_private_hit(rig->n, 0, shared, true));
    core_store(&rig->core, task, shared);
    assert_int_equal(sim_task_now(task), free_ps + ISSUE);
}

static void test_hits_need_no_buffer(void **state)
{
    (void)state;
    run(hits_body);
}

/* ---- Prefetches ------------------------------------------------------------------------------ */

/* A load of what is being fetched waits for that, and then no more; other loads do not. */
static void prefetch_body(struct sim_task *task, void *arg)
{
    struct rig *rig = arg;
    const sim_time idle = numa_idle_load_ps(rig->n, 0, 0);
    const struct hpa other = fresh(rig), lines = fixture_hpa(rig->n, 0, 0x2000);

    core_load(&rig->core, task, other, NULL);
    for (unsigned i = 0; i < 3; i++) {
        const struct hpa hpa = i < 2 ? fresh(rig) : lines;
        sim_time t = sim_task_now(task);
        core_load_async(&rig->core, task, hpa);
        core_load(&rig->core, task, other, NULL);
        assert_int_equal(sim_task_now(task) - t, ISSUE + L1);
        if (i == 0)
            core_load(&rig->core, task, hpa, NULL);
        else if (i == 1)
            core_load_range(&rig->core, task, hpa, 64);
        else {
            struct numa_result arrived = { 0 };
            core_copy(&rig->core, task, other, hpa, 64, 0, false, &arrived);
            core_wait(&rig->core, task, arrived);
        }
        assert_int_equal(sim_task_now(task) - t, idle);
        t = sim_task_now(task);
        core_load(&rig->core, task, hpa, NULL);
        assert_int_equal(sim_task_now(task) - t, L1);
    }
}

static void test_prefetch_takes_its_time(void **state)
{
    (void)state;
    run(prefetch_body);
}

/* ---- Misses ---------------------------------------------------------------------------------- */

static void misses_body(struct sim_task *task, void *arg)
{
    struct rig *rig = arg;
    const sim_time t = sim_task_now(task), idle = numa_idle_load_ps(rig->n, 0, 0);

    for (unsigned i = 0; i < 10; i++)
        load_async(rig, task, fresh(rig));
    assert_int_equal(sim_task_now(task) - t, 10 * ISSUE);
    /* The eleventh waits for the first, the next for the second. */
    load_async(rig, task, fresh(rig));
    assert_int_equal(sim_task_now(task) - t, idle + ISSUE);
    core_store(&rig->core, task, fresh(rig));
    assert_true(sim_task_now(task) - t >= idle + 2 * ISSUE);
    assert_true(sim_task_now(task) - t < 2 * idle);
}

static void test_misses_overlap(void **state)
{
    (void)state;
    run(misses_body);
}

/* A load that is waited for needs a buffer, too; the wait is the core's part of its latency. */
static void dependent_body(struct sim_task *task, void *arg)
{
    struct rig *rig = arg;
    const sim_time idle = numa_idle_load_ps(rig->n, 0, 0);
    struct sim_stamp stamp;

    for (unsigned i = 0; i < 10; i++)
        load_async(rig, task, fresh(rig));
    const sim_time free_ps = rig->core.buffer_done_ps[0], t = sim_task_now(task);
    sim_stamp_start(&stamp, t);
    core_load(&rig->core, task, fresh(rig), &stamp);
    assert_int_equal(sim_task_now(task), free_ps + idle);
    assert_int_equal(stamp.part_ps[PART_CORE], free_ps - t + L2);
    assert_int_equal(stamp.cursor_ps, sim_task_now(task));
    sim_time sum = 0;
    for (unsigned i = 0; i < SIM_STAMP_PARTS; i++)
        sum += stamp.part_ps[i];
    assert_int_equal(sum, free_ps - t + idle);
}

static void test_dependent_load_waits_for_a_buffer(void **state)
{
    (void)state;
    run(dependent_body);
}

static void stream_body(struct sim_task *task, void *arg)
{
    struct rig *rig = arg;
    const sim_time t = sim_task_now(task), idle = numa_idle_load_ps(rig->n, 0, 0);

    for (unsigned i = 0; i < 16; i++)
        core_load_stream(&rig->core, task, fresh(rig));
    assert_int_equal(sim_task_now(task) - t, 16 * ISSUE);
    core_load_stream(&rig->core, task, fresh(rig));
    assert_int_equal(sim_task_now(task) - t, idle + ISSUE);
}

static void test_a_stream_has_the_superqueue(void **state)
{
    (void)state;
    run(stream_body);
}

/* ---- The rest -------------------------------------------------------------------------------- */

/* Stores past the caches hold their buffers until memory has accepted them. */
static void store_nt_body(struct sim_task *task, void *arg)
{
    struct rig *rig = arg;

    for (unsigned i = 0; i < params.line_fill_buffers; i++) {
        const sim_time t = sim_task_now(task);
        core_store_nt(&rig->core, task, fresh(rig));
        assert_int_equal(sim_task_now(task) - t, ISSUE);
    }
    const sim_time first = rig->core.buffer_done_ps[0];
    assert_true(first > sim_task_now(task) + ISSUE);
    core_store_nt(&rig->core, task, fresh(rig));
    assert_int_equal(sim_task_now(task), first + ISSUE);
    assert_int_equal(rig->n->socket[0].counters.write_bytes[WRITE_NT], 11 * 64);
}

static void test_non_temporal_stores(void **state)
{
    (void)state;
    run(store_nt_body);
}

/* A copy past the caches: whole lines of the destination are in no cache then and were not read;
 * the parts of lines at its ends were. The end covers the stores. */
static void copy_nt_body(struct sim_task *task, void *arg)
{
    struct rig *rig = arg;
    const struct hpa from = fixture_hpa(rig->n, 0, 0x40000), to = fixture_hpa(rig->n, 0, 0x80020);
    const struct numa_counters *counters = &rig->n->socket[0].counters;
    struct numa_result arrived = { 0 };

    numa_store(rig->n, 1, (struct hpa){ to.v + 64 }, sim_task_now(task), NULL);
    const uint64_t reads = counters->dram_read_bytes;
    core_copy(&rig->core, task, to, from, 1024, 0, true, &arrived);
    assert_int_equal(counters->write_bytes[WRITE_NT], 15 * 64);
    assert_int_equal(counters->dram_read_bytes - reads, (16 + 2) * 64);
    assert_false(numa_private_hit(rig->n, 1, (struct hpa){ to.v + 64 }, false));
    assert_false(numa_private_hit(rig->n, 0, (struct hpa){ to.v + 64 }, false));
    assert_true(numa_private_hit(rig->n, 0, to, true));
    assert_true(numa_private_hit(rig->n, 0, (struct hpa){ to.v + 1023 }, true));
    sim_time last = 0;
    for (unsigned i = 0; i < CORE_BUFFERS_MAX; i++)
        last = SIM_MAX(last, rig->core.buffer_done_ps[i]);
    assert_true(arrived.done_ps > sim_task_now(task));
    core_wait(&rig->core, task, arrived);
    assert_true(sim_task_now(task) >= arrived.done_ps && arrived.done_ps <= last);
}

static void test_copy_past_the_caches(void **state)
{
    (void)state;
    run(copy_nt_body);
}

/* Copies of pages on a front-side bus. */
#define BUS_ADDRESS 7500 /* ps */
#define BUS_LINE_PS 6936 /* 24 cycles at 3.46 GHz */

static sim_time copy_pages(struct rig *rig, struct sim_task *task, uint64_t bytes, bool past_caches)
{
    const sim_time t = sim_task_now(task);
    struct numa_result arrived = { 0 };

    for (uint64_t at = 0; at < bytes; at += PAGE_BYTES)
        core_copy(&rig->core, task, (struct hpa){ 0x8000000 + at }, (struct hpa){ 0x4000000 + at },
                  PAGE_BYTES, BUS_LINE_PS, past_caches, &arrived);
    core_wait(&rig->core, task, arrived);
    return sim_task_now(task) - t;
}

/* What the L2 holds is copied as fast as lines are issued; what it does not hold, not faster than
 * the address phases allow: read and write of a line, each with a deferred reply, and the
 * write-back; past the caches a read with its reply, and the write. Nor much slower. */
static void bus_copy_body(struct sim_task *task, void *arg)
{
    struct rig *rig = arg;
    const uint64_t small = 65536, large = UINT64_C(4) << 20, lines = large / LINE_BYTES;

    copy_pages(rig, task, small, false);
    const sim_time hot = copy_pages(rig, task, small, false);
    assert_in_range(hot, small / LINE_BYTES * BUS_LINE_PS,
                    small / LINE_BYTES * BUS_LINE_PS + 20000);
    copy_pages(rig, task, large, false);
    assert_in_range(copy_pages(rig, task, large, false), lines * 5 * BUS_ADDRESS,
                    lines * 6 * BUS_ADDRESS);
    copy_pages(rig, task, large, true);
    assert_in_range(copy_pages(rig, task, large, true), lines * 3 * BUS_ADDRESS,
                    lines * 4 * BUS_ADDRESS);
}

static void test_copies_on_a_bus(void **state)
{
    static const struct core_params netburst = { .line_fill_buffers = 6,
                                                 .superqueue_entries = 6,
                                                 .issue_cycles = 4 };

    (void)state;
    run_on(fixture_blackford, &netburst, bus_copy_body);
}

/* When the last of n cold lines that are copied has come, in latencies of a load; how far the
 * target is behind a multiple of eight. */
static double copied_after(struct rig *rig, struct sim_task *task, unsigned n, uint64_t odd)
{
    const struct hpa from = fresh(rig), to = fresh(rig);
    struct numa_result arrived = { 0 };

    core_drain(&rig->core, task);
    const sim_time t = sim_task_now(task);
    core_copy(&rig->core, task, (struct hpa){ to.v + odd }, from, n * LINE_BYTES - 8, 0, false,
              &arrived);
    return (double)(arrived.done_ps - t) / (double)numa_idle_load_ps(rig->n, 0, 0);
}

/* 20 steps of 16 bytes are five lines, of 8 bytes not three. A line more waits for the first: its
 * data, then the line they are stored into. */
static void store_buffer_body(struct sim_task *task, void *arg)
{
    struct rig *rig = arg;

    assert_true(copied_after(rig, task, 5, 0) < 1.5);
    assert_true(copied_after(rig, task, 6, 0) > 2.7);
    assert_true(copied_after(rig, task, 3, 4) < 1.5);
    assert_true(copied_after(rig, task, 4, 4) > 2.7);
    assert_true(copied_after(rig, task, 6, 4) < 3.5);
    assert_true(copied_after(rig, task, 7, 4) > 4.5);
}

static void no_store_buffer_body(struct sim_task *task, void *arg)
{
    assert_true(copied_after(arg, task, 6, 4) < 1.5);
}

static void test_a_copy_fills_the_store_buffer(void **state)
{
    struct core_params wide = params;

    (void)state;
    wide.line_fill_buffers = wide.superqueue_entries = 32;
    run_on(fixture_r730, &wide, no_store_buffer_body);
    wide.store_buffer_entries = 20;
    run_on(fixture_r730, &wide, store_buffer_body);
}

/* A locked operation waits for the stores before it, and then for its own line; without a store
 * buffer for the line alone. */
static void atomic_body(struct sim_task *task, void *arg)
{
    struct rig *rig = arg;
    const sim_time idle = numa_idle_load_ps(rig->n, 0, 0);
    const bool buffered = rig->core.params->store_buffer_entries > 0;
    const struct hpa own = fresh(rig);

    core_load(&rig->core, task, own, NULL);
    sim_time t = sim_task_now(task);
    core_fence(&rig->core, task);
    assert_int_equal(sim_task_now(task), t);
    core_store(&rig->core, task, fresh(rig));
    assert_true(sim_task_now(task) < t + idle / 2);
    core_atomic(&rig->core, task, own);
    assert_int_equal(sim_task_now(task) > t + idle / 2, buffered);
    t = sim_task_now(task);
    core_atomic(&rig->core, task, fresh(rig));
    assert_true(sim_task_now(task) > t + idle / 2);
    t = sim_task_now(task);
    core_store(&rig->core, task, fresh(rig));
    core_fence(&rig->core, task);
    assert_int_equal(sim_task_now(task) > t + idle / 2, buffered);
}

static void test_atomics_wait_for_stores(void **state)
{
    struct core_params buffered = params;

    (void)state;
    run(atomic_body);
    buffered.store_buffer_entries = 20;
    run_on(fixture_r730, &buffered, atomic_body);
}

/* Two lines that nobody has, on a front-side bus: the second is asked for when all caches have seen
 * the first. */
static sim_time two_stores(struct rig *rig, struct sim_task *task)
{
    core_fence(&rig->core, task);
    const sim_time t = sim_task_now(task);
    core_store(&rig->core, task, fresh(rig));
    core_store(&rig->core, task, fresh(rig));
    assert_true(sim_task_now(task) < t + 10000); /* the core itself goes on */
    core_fence(&rig->core, task);
    return sim_task_now(task) - t;
}

static sim_time took[2];

static void in_order_body(struct sim_task *task, void *arg)
{
    struct rig *rig = arg;

    took[rig->core.params->stores_in_order] = two_stores(rig, task);
}

static void test_stores_in_order(void **state)
{
    struct core_params core = params;
    struct fixture f;

    (void)state;
    fixture_clovertown(&f);
    core.store_buffer_entries = 20;
    run_on(fixture_clovertown, &core, in_order_body);
    core.stores_in_order = true;
    run_on(fixture_clovertown, &core, in_order_body);
    assert_true(took[1] > took[0] + f.coherence.snoop_lookup_ps);
    assert_true(took[1] < 3 * took[0] / 2);
}

static void drain_body(struct sim_task *task, void *arg)
{
    struct rig *rig = arg;
    sim_time t = sim_task_now(task), last = 0;

    core_drain(&rig->core, task); /* nothing under way */
    assert_int_equal(sim_task_now(task), t);
    core_compute(&rig->core, task, 123);
    assert_int_equal(sim_task_now(task) - t, 123 * CYCLE);
    t = sim_task_now(task);
    for (unsigned i = 0; i < 12; i++)
        core_load_stream(&rig->core, task, fresh(rig));
    core_store(&rig->core, task, fresh(rig));
    for (unsigned i = 0; i < CORE_BUFFERS_MAX; i++)
        last = SIM_MAX(last, rig->core.buffer_done_ps[i]);
    core_drain(&rig->core, task);
    assert_int_equal(sim_task_now(task), last);
    assert_true(last > t + numa_idle_load_ps(rig->n, 0, 0));
}

static void test_drain_and_compute(void **state)
{
    (void)state;
    run(drain_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hits_need_no_buffer),
        cmocka_unit_test(test_prefetch_takes_its_time),
        cmocka_unit_test(test_misses_overlap),
        cmocka_unit_test(test_dependent_load_waits_for_a_buffer),
        cmocka_unit_test(test_a_stream_has_the_superqueue),
        cmocka_unit_test(test_non_temporal_stores),
        cmocka_unit_test(test_copy_past_the_caches),
        cmocka_unit_test(test_copies_on_a_bus),
        cmocka_unit_test(test_a_copy_fills_the_store_buffer),
        cmocka_unit_test(test_stores_in_order),
        cmocka_unit_test(test_atomics_wait_for_stores),
        cmocka_unit_test(test_drain_and_compute),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
