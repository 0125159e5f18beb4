/*
 * Pools of entries that transactions hold: n of them that are held for L carry n / L; one more
 * waits; callers may come in any order. Tables of requests, transaction IDs, trackers and credits
 * of links.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/numa_fixture.h"

#define MAX_CLIENTS 600u

static const sim_time lengths_ps[] = { 16384, 50000, 81234, 123457, 300001, 2000000 };

/* ---- The pool itself ------------------------------------------------------------------------- */

static struct pool none;

/* The client whose transaction ends first. */
static unsigned first_of(const sim_time *done_ps, unsigned n)
{
    unsigned first = 0;

    for (unsigned i = 1; i < n; i++)
        first = done_ps[i] < done_ps[first] ? i : first;
    return first;
}

/* Asking takes no memory, and leaves the pool as one that has it: the first hold counts all the
 * same. */
static void test_first_hold(void **state)
{
    const sim_time far_ps = 10 * POOL_SLOTS * POOL_SLOT_PS;
    struct pool p, also;

    (void)state;
    pool_init(&p, 1);
    pool_init(&also, 1);
    assert_int_equal(pool_wait(&p, 1, 5), 5);
    assert_int_equal(pool_wait(&p, 1, far_ps), far_ps);
    /* The slots before the window are not known any more. */
    assert_int_equal(pool_wait(&p, 1, 5), far_ps - POOL_SLOTS / 2 * POOL_SLOT_PS);
    assert_null(p.held);
    pool_hold_both(&p, &also, far_ps, far_ps + 3 * POOL_SLOT_PS);
    assert_non_null(p.held);
    assert_int_equal(pool_wait(&p, 1, far_ps), far_ps + 3 * POOL_SLOT_PS);
    assert_int_equal(pool_wait(&also, 1, far_ps), far_ps + 3 * POOL_SLOT_PS);
    pool_release(&p);
    pool_release(&also);
}

/* Three times as many clients as entries, each with one transaction after the other. */
static void test_rate_is_exact(void **state)
{
    static const uint32_t sizes[] = { 1, 2, 7, 20, 128, 200 };

    (void)state;
    for (unsigned k = 0; k < SIM_N_ELEMENTS(sizes); k++)
        for (unsigned l = 0; l < SIM_N_ELEMENTS(lengths_ps); l++) {
            const uint32_t n = sizes[k], n_clients = 3 * n;
            const sim_time length_ps = lengths_ps[l];
            const uint64_t n_transactions = (n < 100 ? 4000 : 400) * n;
            sim_time done_ps[MAX_CLIENTS] = { 0 }, last_ps = 0;
            struct pool p;
            pool_init(&p, n);
            for (uint64_t i = 0; i < n_transactions; i++) {
                const unsigned c = first_of(done_ps, n_clients);
                const sim_time at_ps = pool_wait(&p, 1, done_ps[c]);
                assert_true(at_ps >= done_ps[c]);
                pool_hold_both(&p, &none, at_ps, at_ps + length_ps);
                done_ps[c] = last_ps = at_ps + length_ps;
            }
            const sim_time took_ps = n_transactions / n * length_ps;
            /* The last entries do not end at the same time, whatever the number of transactions. */
            assert_in_range(last_ps, took_ps - 5 * POOL_SLOT_PS,
                            took_ps + length_ps + 5 * POOL_SLOT_PS);
            pool_release(&p);
        }
}

/* So many at the same time do not wait; the next one waits for the first that ends. */
static void test_full_pool_refuses(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 40; n++)
        for (unsigned l = 0; l < SIM_N_ELEMENTS(lengths_ps); l++) {
            const sim_time begin_ps = 1000000 + 777 * n, length_ps = lengths_ps[l];
            struct pool p;
            pool_init(&p, n);
            for (uint32_t i = 0; i < n; i++) {
                assert_int_equal(pool_wait(&p, 1, begin_ps), begin_ps);
                pool_hold_both(&p, &none, begin_ps, begin_ps + length_ps);
            }
            const sim_time at_ps = pool_wait(&p, 1, begin_ps);
            assert_in_range(at_ps, begin_ps + length_ps - 2 * POOL_SLOT_PS + 1,
                            begin_ps + length_ps + POOL_SLOT_PS);
            /* Who comes later than that does not wait. */
            assert_int_equal(pool_wait(&p, 1, begin_ps + length_ps + POOL_SLOT_PS),
                             begin_ps + length_ps + POOL_SLOT_PS);
            pool_release(&p);
        }
}

/* A caller that is behind others does not wait for what they hold after it, nor one far ahead of
 * them. */
static void test_callers_in_any_order(void **state)
{
    struct pool p;

    (void)state;
    pool_init(&p, 4);
    for (unsigned i = 0; i < 4; i++)
        pool_hold_both(&p, &none, 2000000, 2100000);
    assert_int_equal(pool_wait(&p, 1, 1000000), 1000000);
    assert_in_range(pool_wait(&p, 1, 2000000), 2100000 - POOL_SLOT_PS, 2100000 + POOL_SLOT_PS);
    assert_int_equal(pool_wait(&p, 1, 5000000), 5000000);
    pool_release(&p);
}

/* Long pauses, long queues and long holds: the window of slots moves on. */
static void test_beyond_the_window(void **state)
{
    const sim_time window_ps = POOL_SLOTS * POOL_SLOT_PS;
    struct pool p;
    sim_time at_ps = 0;

    (void)state;
    pool_init(&p, 1);
    for (unsigned i = 0; i < 2000; i++) { /* all ask at the beginning */
        const sim_time now_ps = pool_wait(&p, 1, 0);
        assert_true(now_ps + POOL_SLOT_PS >= at_ps);
        pool_hold_both(&p, &none, now_ps, now_ps + 500000);
        at_ps = now_ps + 500000;
    }
    assert_in_range(at_ps, 999 * SIM_PS_PER_US, 1001 * SIM_PS_PER_US);
    for (unsigned k = 1; k < 50; k++) {
        const sim_time late_ps = at_ps + k * (window_ps / 3) * k;
        assert_int_equal(pool_wait(&p, 1, late_ps), late_ps);
        pool_hold_both(&p, &none, late_ps, late_ps + 10 * window_ps);
        assert_true(pool_wait(&p, 1, late_ps) > late_ps);
        at_ps = late_ps + window_ps;
    }
    pool_release(&p);
}

static void test_no_bound(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(pool_wait(&none, 1, 5000), 5000);
        pool_hold_both(&none, &none, 5000, 900000);
    }
}

/* ---- Transactions ---------------------------------------------------------------------------- */

/* A server on which each read of DRAM takes as long as the one before. */
static void even(struct fixture *f)
{
    fixture_r730(f);
    f->dram.trfc_ps = 0;
    f->dram.page_idle_ps = 0;
    f->dram.ranks = 1;
    f->coherence.opportunistic_broadcast = false;
    f->coherence.request_entries = f->coherence.transaction_ids = f->coherence.local_trackers = 0;
}

/* Cores of socket 0 load n_lines lines of a node, all at once; when the last is there, after the
 * first request. wanted: lines of this slice only; -1: of all, so far apart that rows and banks
 * differ. */
static sim_time load_at_once(struct numa *n, unsigned node, unsigned n_lines, int wanted)
{
    const uint32_t slices = n->params->cache->llc_slices;
    sim_time last_ps = 0;
    uint64_t offset = 0;

    for (unsigned i = 0; i < n_lines; i++) {
        struct hpa hpa;
        do {
            offset += 64;
            hpa = fixture_hpa(n, node, offset);
        } while (wanted >= 0 && transaction_slice(hpa.v >> LINE_LOG2, slices) != (uint32_t)wanted);
        const struct numa_result r = numa_load(n, i % n->params->cpu->cores_per_socket, hpa,
                                               1000000, NULL);
        last_ps = SIM_MAX(last_ps, r.done_ps);
    }
    return last_ps - 1000000;
}

static void assert_took(sim_time took_ps, double expected_ps, double slots)
{
    if (fabs((double)took_ps - expected_ps) > slots * (double)POOL_SLOT_PS)
        fail_msg("%.0f ps, expected %.0f", (double)took_ps, expected_ps);
}

/* n entries of one slice, n IDs, n trackers: 360 lines take 360 / n times as long as one is held,
 * and all of them come. */
static void test_entries_ids_and_trackers(void **state)
{
    static const uint32_t sizes[] = { 1, 2, 3 };
    const unsigned n_lines = 360;

    (void)state;
    for (unsigned kind = 0; kind < 4; kind++)
        for (unsigned k = 0; k < SIM_N_ELEMENTS(sizes); k++) {
            struct fixture f;
            const unsigned node = kind == 1 || kind == 3;
            even(&f);
            uint32_t *const pool[] = { &f.coherence.request_entries, &f.coherence.transaction_ids,
                                       &f.coherence.local_trackers, &f.coherence.remote_trackers };
            *pool[kind] = sizes[k];
            struct numa *n = fixture_new(&f);
            const struct numa_counters *here = &n->socket[0].counters;
            const sim_time dram_ps = dram_idle_read_ps(&n->socket[0].dram);
            sim_time held_ps = f.coherence.home_agent_ps + dram_ps, before_ps = n->l2_ps;
            const sim_time request_ps = interconnect_idle_ps(&n->interconnect, MESSAGE_REQUEST),
                           data_ps = interconnect_idle_ps(&n->interconnect, MESSAGE_DATA);
            if (kind == 1)
                held_ps += request_ps + data_ps;
            if (kind == 3)
                before_ps += request_ps + data_ps;
            before_ps += f.cache.llc_request_ps + f.cache.llc_return_ps;
            const sim_time took_ps = load_at_once(n, node, n_lines, kind == 0 ? 3 : -1);
            /* At the other socket's, requests leave the receive buffer before they begin. */
            assert_took(took_ps, (double)before_ps + n_lines / sizes[k] * (double)held_ps,
                        6 + (kind == 3 ? (double)n_lines / sizes[k] / 10 : 0));
            assert_int_equal(n->socket[node].counters.dram_read_bytes, n_lines * 64);
            assert_int_equal(here->core_llc_misses, n_lines);
            const uint64_t waits[] = { here->request_entry_wait_ps, here->transaction_id_wait_ps,
                                       here->tracker_wait_ps,
                                       n->socket[1].counters.tracker_wait_ps };
            for (unsigned w = 0; w < 4; w++)
                assert_true((waits[w] > 0) == (w == kind));
            const char *why = NULL;
            uint64_t line;
            assert_true(numa_check_invariants(n, &why, &line));
            numa_free(n);
        }
}

/* Cores are told to stay near each other when one has waited for a pool, and not because it took an
 * entry. */
static void test_when_cores_stay_near(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 4; kind++) {
        struct fixture f;
        const unsigned node = kind == 1 || kind == 3;
        even(&f);
        uint32_t *const pool[] = { &f.coherence.request_entries, &f.coherence.transaction_ids,
                                   &f.coherence.local_trackers, &f.coherence.remote_trackers };
        *pool[kind] = 1;
        struct numa *n = fixture_new(&f);
        const sim_time *const until_ps = numa_contended_until(n), at_ps = 1000000;
        for (unsigned i = 0; i < 20; i++)
            numa_load(n, 0, fixture_hpa(n, node, i << 20), at_ps + i * 100 * SIM_PS_PER_US, NULL);
        assert_int_equal(*until_ps, 0);
        const sim_time then_ps = at_ps + SIM_PS_PER_S;
        for (unsigned i = 0; i < 20; i++) /* some of them of one slice */
            numa_load(n, 0, fixture_hpa(n, node, (32 + i) << 20), then_ps, NULL);
        assert_true(*until_ps > then_ps);
        numa_free(n);
    }
}

/* Nobody waits for a pool that is not theirs. */
static void test_who_waits_for_whom(void **state)
{
    struct fixture f;

    (void)state;
    for (unsigned io = 0; io < 2; io++) {
        even(&f);
        f.cache.ddio = false;
        f.coherence.local_trackers = 2;
        f.coherence.remote_trackers = 1;
        f.coherence.io_trackers = io;
        struct numa *n = fixture_new(&f);
        for (unsigned i = 0; i < 20; i++) /* both trackers are taken for long */
            numa_load(n, 0, fixture_hpa(n, 0, 64 * i), 1000000, NULL);
        const sim_time at_ps = 1000000;
        const struct hpa mine = fixture_hpa(n, 0, 1 << 20), next = fixture_hpa(n, 0, 2 << 20),
                         far = fixture_hpa(n, 0, 3 << 20), other = fixture_hpa(n, 1, 1 << 20);
        const sim_time idle_ps = numa_idle_load_ps(n, 0, 0);
        assert_true(numa_load(n, 0, mine, at_ps, NULL).done_ps > at_ps + 5 * idle_ps);
        /* The other socket has a tracker of its own here, and the own socket one there. */
        assert_true(numa_load(n, 14, far, at_ps, NULL).done_ps <
                    at_ps + 2 * numa_idle_load_ps(n, 1, 0));
        assert_true(numa_load(n, 0, other, at_ps, NULL).done_ps <
                    at_ps + 2 * numa_idle_load_ps(n, 0, 1));
        /* So has a device, if trackers are kept for devices. */
        const sim_time read_ps = numa_dma_read(n, 0, next, 64, at_ps, NULL, NULL) - at_ps;
        assert_true((read_ps < 2 * idle_ps) == (io != 0));
        /* What hits needs none. */
        assert_int_equal(numa_load(n, 1, mine, 3 * at_ps, NULL).source, NUMA_PEER_CACHE);
        numa_free(n);
    }
}

/* Write-backs hold what reads do: with one tracker, a line that displaces a modified one waits for
 * it. */
static void test_write_backs_hold_trackers(void **state)
{
    sim_time took_ps[2];

    (void)state;
    for (unsigned bound = 0; bound < 2; bound++) {
        struct fixture f;
        even(&f);
        f.cache.llc_bytes = UINT64_C(14) * 2048 * 1 * 64; /* one way: each fill displaces a line */
        f.cache.llc_ways = f.cache.ddio_ways = 1;
        f.coherence.local_trackers = bound;
        struct numa *n = fixture_new(&f);
        const uint64_t lines = UINT64_C(14) * 2048;
        for (uint64_t i = 0; i < lines; i++)
            numa_dma_write(n, 0, fixture_hpa(n, 0, i * 64), 64, 1000000 * i, NULL, NULL);
        const sim_time at_ps = lines * 1000000;
        sim_time last_ps = 0;
        for (uint64_t i = 0; i < 50; i++) {
            const sim_time done_ps = numa_dma_write(n, 0, fixture_hpa(n, 0, (lines + i) * 64), 64,
                                                    at_ps, NULL, NULL);
            last_ps = SIM_MAX(last_ps, done_ps);
        }
        took_ps[bound] = last_ps - at_ps;
        assert_int_equal(n->socket[0].counters.write_bytes[WRITE_DDIO_VICTIM], 50 * 64);
        numa_free(n);
    }
    assert_true(took_ps[1] > 10 * took_ps[0]);
}

/* ---- Links ----------------------------------------------------------------------------------- */

static struct interconnect links(struct fixture *f, uint32_t receive, uint32_t reserved)
{
    struct interconnect ic;

    fixture_r730(f);
    f->interconnect.receive_flits = receive;
    f->interconnect.reserved_flits = reserved;
    f->interconnect.credit_loop_ps = 200000;
    interconnect_init(&ic, &f->interconnect, 2);
    interconnect_follow_credits(&ic, false);
    return ic;
}

static sim_time lines_at_once(struct interconnect *ic, unsigned n)
{
    sim_time last_ps = 0;

    for (unsigned i = 0; i < n; i++) {
        const sim_time there_ps = interconnect_send(ic, 0, 1, MESSAGE_DATA, 1000000);
        last_ps = SIM_MAX(last_ps, there_ps);
    }
    return last_ps - 1000000;
}

/* A line takes ten credits of those that are shared; where its class has one reserved of each link,
 * so many more lines are under way. */
static void test_credits(void **state)
{
    const unsigned n = 400;

    (void)state;
    for (unsigned lines = 1; lines <= 3; lines++)
        for (unsigned reserved = 0; reserved < 2; reserved++) {
            struct fixture f;
            struct interconnect ic = links(&f, 10 * lines + reserved * 26, reserved * 26);
            const unsigned under_way = 2 * lines + 2 * reserved;
            const double idle_ps = (double)interconnect_idle_ps(&ic, MESSAGE_DATA);
            assert_took(lines_at_once(&ic, n), idle_ps + ceil((double)n / under_way - 1) * 200000.0,
                        4);
            /* A class that has not used its reserved credit is not held up by data. */
            const sim_time at_ps = 1000000 + (sim_time)(n / under_way) * 100000,
                           there_ps = interconnect_send(&ic, 0, 1, MESSAGE_RESPONSE, at_ps);
            if (reserved != 0)
                assert_true(there_ps - at_ps < 30000);
            else
                assert_true(there_ps - at_ps > 1000000);
            interconnect_release(&ic);
        }
}

/* Buffers that take all that can be sent until credits are back need not be followed; without bound
 * they never are. */
static void test_credits_that_suffice(void **state)
{
    struct fixture f;
    struct interconnect ic = links(&f, 2000, 26);

    (void)state;
    assert_null(ic.link[1].credits);
    interconnect_release(&ic);
    ic = links(&f, 500, 26);
    assert_non_null(ic.link[1].credits);
    interconnect_release(&ic);
    ic = links(&f, 0, 26);
    assert_null(ic.link[1].credits);
    interconnect_release(&ic);
}

/* Requests that wait for a tracker stay in the receive buffer, and lines behind them wait for
 * room. */
static void test_stalled_requests_hold_credits(void **state)
{
    struct fixture f;
    sim_time took_ps[2];

    (void)state;
    for (unsigned bound = 0; bound < 2; bound++) {
        even(&f);
        f.interconnect.receive_flits = 40;
        f.interconnect.reserved_flits = 0;
        f.coherence.remote_trackers = bound != 0 ? 1 : 400;
        struct numa *n = fixture_new(&f);
        for (unsigned i = 0; i < 80; i++)
            numa_load(n, 0, fixture_hpa(n, 1, 64 * i), 1000000, NULL);
        took_ps[bound] = numa_io_send(n, 0, 1, NUMA_IO_DATA, 1100000) - 1100000;
        numa_free(n);
    }
    assert_true(took_ps[1] > took_ps[0] + 300000);
}

/* Whatever stays in the receive buffer takes all of its flits there: two links with room for
 * ten. */
static void test_stalled_lines_hold_their_flits(void **state)
{
    const sim_time until_ps = 1000000;

    (void)state;
    for (unsigned lines = 0; lines < 2; lines++) {
        struct fixture f;
        fixture_r730(&f);
        f.interconnect.receive_flits = 10;
        f.interconnect.reserved_flits = 0;
        struct interconnect ic;
        interconnect_init(&ic, &f.interconnect, 2);
        interconnect_follow_credits(&ic, true);
        for (unsigned i = 0; i < 2; i++)
            interconnect_stall(&ic, 0, 1, lines != 0 ? MESSAGE_WRITEBACK : MESSAGE_REQUEST, 0,
                               until_ps);
        const sim_time there_ps = interconnect_send(&ic, 0, 1, MESSAGE_REQUEST, 100000);
        if (lines != 0)
            assert_true(there_ps >= until_ps);
        else
            assert_int_equal(there_ps, 100000 + interconnect_idle_ps(&ic, MESSAGE_REQUEST));
        interconnect_release(&ic);
    }
}

/* QPI: a header does not wait behind lines that wait but for the one on its way; what the direction
 * carries stays. */
static void test_headers_pass_lines(void **state)
{
    (void)state;
    for (unsigned passes = 0; passes < 2; passes++) {
        struct fixture f;
        struct interconnect ic;
        const unsigned n = 200;
        fixture_r730(&f);
        f.interconnect.headers_pass_data = passes != 0;
        interconnect_init(&ic, &f.interconnect, 2);
        lines_at_once(&ic, n);
        const sim_time wait_ps = interconnect_send(&ic, 0, 1, MESSAGE_SNOOP, 1000000) - 1000000 -
                                 interconnect_idle_ps(&ic, MESSAGE_SNOOP);
        if (passes != 0)
            assert_in_range(wait_ps, 1, ic.serial_ps[MESSAGE_DATA] / 2);
        else
            assert_true(wait_ps > (n - 10) * ic.serial_ps[MESSAGE_DATA] / 2);
        assert_int_equal(calendar_units_after(&ic.link[1].calendar, 0), n * 10 + 1);
        interconnect_release(&ic);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_hold),
        cmocka_unit_test(test_rate_is_exact),
        cmocka_unit_test(test_full_pool_refuses),
        cmocka_unit_test(test_callers_in_any_order),
        cmocka_unit_test(test_beyond_the_window),
        cmocka_unit_test(test_no_bound),
        cmocka_unit_test(test_entries_ids_and_trackers),
        cmocka_unit_test(test_when_cores_stay_near),
        cmocka_unit_test(test_who_waits_for_whom),
        cmocka_unit_test(test_write_backs_hold_trackers),
        cmocka_unit_test(test_credits),
        cmocka_unit_test(test_credits_that_suffice),
        cmocka_unit_test(test_stalled_requests_hold_credits),
        cmocka_unit_test(test_stalled_lines_hold_their_flits),
        cmocka_unit_test(test_headers_pass_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
