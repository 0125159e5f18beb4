/* Links: latency, rate, ordering, credits, errors. */
#include "tests/support/death.h"
#include "tests/support/pcie_rig.h"

#include "models/pcie/link/link.h"

#define ABOVE_4G UINT64_C(0x100000000)

struct pair {
    struct rig rig;
    struct end_device *a, *b;
};

static void pair_init(struct pair *pair, unsigned generation, unsigned lanes)
{
    pcie_rig_init(&pair->rig, 1);
    pair->a = end_new(&pair->rig, "a", generation, lanes);
    pair->b = end_new(&pair->rig, "b", generation, lanes);
}

static void pair_join(struct pair *pair, sim_time latency_ps)
{
    struct pcie_link_params params = pcie_rig_link_params(latency_ps);

    pcie_rig_join(&pair->rig, &pair->a->port, &pair->b->port, &params);
}

/* Everything arrived, was freed and its credits are accounted for. */
static void pair_done(struct pair *pair)
{
    assert_int_equal(tlp_live(pair->rig.pcie), 0);
    assert_true(pcie_port_credits_whole(&pair->a->port));
    assert_true(pcie_port_credits_whole(&pair->b->port));
    end_free(pair->a);
    end_free(pair->b);
    pcie_rig_release(&pair->rig);
}

/* ---- Latency --------------------------------------------------------------------------------- */

static void unloaded_once(unsigned generation, unsigned lanes, enum tlp_type type, unsigned bytes,
                          bool cut_through)
{
    const sim_time at_ps = 12345, latency_ps = 54321;
    struct pair pair;

    pair_init(&pair, generation, lanes);
    pair.b->port.cut_through = cut_through;
    pair_join(&pair, latency_ps);
    struct tlp *tlp = pcie_rig_tlp(&pair.rig, type, ABOVE_4G, bytes, 1);
    tlp->stamp = stamp_new(pair.rig.pcie, 0);
    sim_time wire_ps = spec_wire_ps(generation, lanes, tlp_wire_bytes(tlp));
    assert_int_equal(pcie_port_wire_ps(&pair.a->port, tlp_wire_bytes(tlp)), wire_ps);
    pcie_port_send(&pair.a->port, tlp, at_ps);
    pcie_rig_run(&pair.rig);

    const struct arrival *got = pair.b->got;
    assert_int_equal(pair.b->n_got, 1);
    assert_int_equal(got->head_ps, at_ps + latency_ps);
    assert_int_equal(got->tail_ps, at_ps + wire_ps + latency_ps);
    assert_int_equal(got->now_ps, cut_through ? got->head_ps : got->tail_ps);
    assert_int_equal(got->stamp.part_ps[PART_CREDIT], at_ps);
    assert_int_equal(got->stamp.part_ps[PART_LINK], got->now_ps - at_ps);
    pair_done(&pair);
}

/* The second of two TLPs of 84 bytes starts at the next multiple of the alignment, which is no more
 * than what a data path of 250 MHz has: 4 bytes for 1 GB/s. */
static void tlps_start_where_the_data_path_lets_them(void **state)
{
    static const struct {
        unsigned generation, lanes, align_bytes, start_bytes;
    } row[] = {
        { 3, 8, 0, 84 },    { 3, 8, 4, 84 },   { 3, 8, 16, 96 }, { 3, 8, 64, 96 },
        { 3, 16, 64, 128 }, { 3, 1, 16, 84 },  { 1, 8, 16, 88 }, { 1, 4, 16, 84 },
        { 2, 4, 16, 88 },   { 2, 12, 16, 96 }, { 5, 4, 16, 96 },
    };

    (void)state;
    for (size_t i = 0; i < SIM_N_ELEMENTS(row); i++) {
        struct pcie_link_params params = pcie_rig_link_params(1000);
        struct pair pair;

        params.tlp_align_bytes = row[i].align_bytes;
        pair_init(&pair, row[i].generation, row[i].lanes);
        pcie_rig_join(&pair.rig, &pair.a->port, &pair.b->port, &params);
        for (unsigned n = 0; n < 2; n++)
            pcie_port_send(&pair.a->port, pcie_rig_tlp(&pair.rig, TLP_MWR, 0x1000, 64, n), 0);
        pcie_rig_run(&pair.rig);
        assert_int_equal(pair.b->n_got, 2);
        const sim_time start_ps = pair.b->got[1].head_ps - pair.b->got[0].head_ps;
        const sim_time wire_ps = pair.b->got[1].tail_ps - pair.b->got[1].head_ps;
        const sim_time apart_ps = spec_wire_ps(row[i].generation, row[i].lanes, row[i].start_bytes);
        const sim_time own_ps = spec_wire_ps(row[i].generation, row[i].lanes, 84);
        assert_int_equal(start_ps, apart_ps);
        assert_in_range(wire_ps, own_ps - 1, own_ps); /* the fraction of a ps is carried over */
        pair_done(&pair);
    }
}

static void unloaded_latency_is_the_formula(void **state)
{
    static const unsigned lanes[] = { 1, 2, 4, 8, 12, 16, 32 };
    static const unsigned bytes[] = { 4, 64, 256, 4096 };

    (void)state;
    for (unsigned generation = 1; generation <= 5; generation++) {
        for (size_t l = 0; l < SIM_N_ELEMENTS(lanes); l++) {
            for (size_t i = 0; i < SIM_N_ELEMENTS(bytes); i++) {
                unloaded_once(generation, lanes[l], TLP_MWR, bytes[i], false);
                unloaded_once(generation, lanes[l], TLP_CPLD, bytes[i], true);
            }
            unloaded_once(generation, lanes[l], TLP_MRD, 512, false);
            unloaded_once(generation, lanes[l], TLP_MSG, 0, true);
        }
    }
}

/* 2.5 GT/s, 4 symbols of 1538; 8 GT/s, one block of 376. */
static void skp_sets_take_their_share(void **state)
{
    static const struct {
        unsigned generation;
        long double byte_ps;
    } row[] = { { 1, 4000.0L * 1538 / 1534 }, { 3, 1015.625L * 376 / 375 } };

    (void)state;
    for (size_t i = 0; i < SIM_N_ELEMENTS(row); i++) {
        struct pair pair;
        struct pcie_link_params params = pcie_rig_link_params(0);
        params.skp_overhead_ratio = -1;
        pair_init(&pair, row[i].generation, 4);
        pcie_rig_join(&pair.rig, &pair.a->port, &pair.b->port, &params);
        sim_time wire_ps = pcie_port_wire_ps(&pair.a->port, 1000000);
        long double expected_ps = row[i].byte_ps / 4 * 1000000;
        assert_true((long double)wire_ps >= expected_ps - 0.001L);
        assert_true((long double)wire_ps <= expected_ps + 1.001L);
        pair_done(&pair);
    }
}

/* A posted request of another source takes the place of the first completion that has not started;
 * the others go later by its wire time, and none is lost. Behind posted ones it waits. */
static void a_write_goes_ahead_of_completions(void **state)
{
    const sim_time latency_ps = 50000;
    const unsigned n = 20;
    struct pair pair;

    (void)state;
    pair_init(&pair, 3, 8);
    pair_join(&pair, latency_ps);
    sim_time wire_ps[2] = { 0 };
    for (unsigned i = 0; i < n; i++) {
        struct tlp *tlp = pcie_rig_tlp(&pair.rig, TLP_CPLD, 0, 256, i);
        tlp->stamp = stamp_new(pair.rig.pcie, 0);
        wire_ps[0] = pcie_port_wire_ps(&pair.a->port, tlp_wire_bytes(tlp));
        pcie_port_send(&pair.a->port, tlp, 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct tlp *tlp = pcie_rig_tlp(&pair.rig, TLP_MWR, ABOVE_4G, 8, 100 + i);
        wire_ps[1] = pcie_port_wire_ps(&pair.a->port, tlp_wire_bytes(tlp));
        /* ready in the middle of the third completion */
        pcie_port_send_ahead(&pair.a->port, tlp, 2 * wire_ps[0] + wire_ps[0] / 2);
    }
    pcie_rig_run(&pair.rig);

    assert_int_equal(pair.b->n_got, n + 2);
    for (unsigned i = 0; i < n + 2; i++) {
        const struct arrival *got = &pair.b->got[i];
        unsigned writes = i <= 2 ? 0 : SIM_MIN(i - 2, 2u);
        if (i == 3 || i == 4) {
            assert_int_equal(got->id, 100 + i - 3);
            continue;
        }
        assert_int_equal(got->id, i - writes);
        sim_time end_ps = (i - writes + 1) * wire_ps[0] + writes * wire_ps[1] + latency_ps;
        assert_true(got->tail_ps <= end_ps && got->tail_ps + n + 2 >= end_ps);
        assert_int_equal(got->stamp.part_ps[PART_CREDIT] + got->stamp.part_ps[PART_LINK],
                         got->tail_ps);
    }
    pair_done(&pair);
}

/* ---- Rate ------------------------------------------------------------------------------------ */

static unsigned stream_bytes;
static enum tlp_type stream_type;

static struct tlp *make_stream(struct end_device *end, uint64_t i)
{
    return pcie_rig_tlp(end->rig, stream_type, ABOVE_4G + i * 4096, stream_bytes, i);
}

static void stream_start(struct end_device *end, uint64_t n, uint32_t tx_queue_tlps)
{
    end->make = make_stream;
    end->n_to_send = n;
    end->port.tx_queue_tlps = tx_queue_tlps;
}

static void assert_in_order(const struct end_device *end, uint64_t n)
{
    assert_int_equal(end->n_got, n);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(end->got[i].id, i);
}

/* The n-th TLP ends after the wire time of all bytes, to the picosecond: no gap, no drift. */
static void one_way_once(unsigned generation, unsigned lanes, enum tlp_type type, unsigned bytes,
                         uint32_t tx_queue_tlps, bool cut_through)
{
    const uint64_t n = 3000;
    const sim_time latency_ps = 40000;
    struct pair pair;

    pair_init(&pair, generation, lanes);
    pair.b->port.cut_through = cut_through;
    pair_join(&pair, latency_ps);
    stream_type = type;
    stream_bytes = bytes;
    stream_start(pair.a, n, tx_queue_tlps);
    end_credit(&pair.a->model, 0);
    pcie_rig_run(&pair.rig);
    assert_in_order(pair.b, n);
    unsigned wire_bytes = type == TLP_MWR ? bytes + 24 : bytes + 20;
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(pair.b->got[i].tail_ps,
                         spec_wire_ps(generation, lanes, (i + 1) * wire_bytes) + latency_ps);
    const struct pcie_link_stats *stats = pcie_port_stats(&pair.a->port);
    assert_int_equal(stats->tlps, n);
    assert_int_equal(stats->tlp_bytes, n * wire_bytes);
    assert_int_equal(stats->payload_bytes, n * bytes);
    assert_int_equal(stats->credit_stall_ps, 0);
    assert_int_equal(stats->dllps, 0);
    pair_done(&pair);
}

/* TLPs are given to the wire far ahead of time; at any time those count that have started, whether
 * or not others looked, or cleared the statistics, before. */
static void statistics_keep_up_with_time(void **state)
{
    const uint64_t n = 40;
    struct pair pair;

    (void)state;
    pair_init(&pair, 1, 1);
    pair_join(&pair, 40000);
    stream_type = TLP_MWR;
    stream_bytes = 64;
    stream_start(pair.a, n, 0);
    end_credit(&pair.a->model, 0);
    const sim_time tlp_ps = spec_wire_ps(1, 1, 88);
    for (uint64_t i = 0; i < n; i++) {
        struct pcie_link_stats *stats = pcie_port_stats(&pair.a->port);
        sim_run(pair.rig.sim, i * tlp_ps + tlp_ps / 2, NULL);
        stats = pcie_port_stats(&pair.a->port);
        assert_int_equal(stats->tlps, 1);
        assert_int_equal(stats->tlp_bytes, 88);
        assert_int_equal(stats->payload_bytes, 64);
        stat_clear(pcie_link_stats_table, stats);
    }
    pcie_rig_run(&pair.rig);
    assert_int_equal(pcie_port_stats(&pair.a->port)->tlps, 0);
    pair_done(&pair);
}

static struct pcie_link_stats *saturated;
static sim_time saturated_ps;

static void check_saturated(void)
{
    stat_check_peaks(pcie_link_stats_table, saturated, "a.", saturated_ps);
}

/* A link that is never idle carries its peak, and not more; one byte less of the rate is
 * noticed. */
static void statistics_stay_below_the_peak(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair, 3, 8);
    pair_join(&pair, 40000);
    stream_type = TLP_MWR;
    stream_bytes = 256;
    stream_start(pair.a, 3000, 0);
    end_credit(&pair.a->model, 0);
    saturated_ps = spec_wire_ps(3, 8, 2000 * UINT64_C(280));
    sim_run(pair.rig.sim, saturated_ps, NULL);
    saturated = pcie_port_stats(&pair.a->port);
    assert_in_range(saturated->tlps, 2000, 2001);
    check_saturated();
    saturated->wire.slack = 280;
    check_saturated();
    saturated->wire.per_s *= 0.999;
    assert_aborts(check_saturated, "a.tlp_bytes is", "more than its peak", NULL);
    pcie_rig_run(&pair.rig);
    pair_done(&pair);
}

static void saturated_one_way_leaves_no_gap(void **state)
{
    static const unsigned bytes[] = { 64, 128, 256 };

    (void)state;
    for (size_t i = 0; i < SIM_N_ELEMENTS(bytes); i++) {
        one_way_once(3, 16, TLP_MWR, bytes[i], 4, false);
        one_way_once(3, 16, TLP_CPLD, bytes[i], 4, true);
        one_way_once(3, 8, TLP_MWR, bytes[i], 0, true);
        one_way_once(3, 12, TLP_MWR, bytes[i], 2, false);
        one_way_once(1, 1, TLP_MWR, bytes[i], 1, false);
        one_way_once(2, 4, TLP_CPLD, bytes[i], 1, true);
        one_way_once(5, 16, TLP_MWR, bytes[i], 2, true);
    }
}

/* A saturated hop costs little more than one event per TLP. */
static void saturated_hop_costs_one_event(void **state)
{
    const uint64_t n = 4000;
    struct pair pair;

    (void)state;
    pair_init(&pair, 3, 16);
    pair_join(&pair, 40000);
    stream_type = TLP_MWR;
    stream_bytes = 256;
    stream_start(pair.a, n, 4);
    end_credit(&pair.a->model, 0);
    pcie_rig_run(&pair.rig);
    assert_in_order(pair.b, n);
    assert_true(sim_events_fired(pair.rig.sim) < n + n / 50);
    pair_done(&pair);
}

/* Both ways: each direction also carries an ACK for every 4 TLPs and an UpdateFC for every quarter
 * of the headers, or after the guideline of 203 symbols (x8, 256 bytes; a symbol is 1 ns). */
static void both_ways_once(unsigned bytes, enum tlp_type type, uint32_t headers)
{
    const uint64_t n = 8192;
    struct pair pair;

    pair_init(&pair, 3, 8);
    pair.a->port.advertise.header[tlp_class_of(&(struct tlp){ .type = (uint8_t)type })] = headers;
    pair.b->port.advertise = pair.a->port.advertise;
    pair_join(&pair, 10000);
    stream_type = type;
    stream_bytes = bytes;
    stream_start(pair.a, n, 4);
    stream_start(pair.b, n, 4);
    end_credit(&pair.a->model, 0);
    end_credit(&pair.b->model, 0);
    pcie_rig_run(&pair.rig);
    assert_in_order(pair.a, n);
    assert_in_order(pair.b, n);
    unsigned tlp_bytes = bytes + (type == TLP_MWR ? 24 : 20);
    unsigned by_timer = (unsigned)(203000 / spec_wire_ps(3, 8, tlp_bytes + 3)) + 1;
    unsigned fc_every = SIM_MIN(headers / 4, by_timer);
    double dllps = (double)(n / 4 + n / fc_every);
    assert_true((double)pcie_port_stats(&pair.a->port)->dllps < dllps * 1.01);
    assert_true((double)pcie_port_stats(&pair.b->port)->dllps > dllps * 0.99);
    double bound_ps = (double)spec_wire_ps(3, 8, n * tlp_bytes) +
                      dllps * (double)spec_wire_ps(3, 8, 8);
    double took_ps = (double)(pair.b->got[n - 1].tail_ps - 10000);
    assert_true(took_ps < bound_ps * 1.001 && took_ps > bound_ps * 0.999);
    pair_done(&pair);
}

static void saturated_both_ways_pays_for_dllps(void **state)
{
    (void)state;
    both_ways_once(64, TLP_MWR, 32);
    both_ways_once(128, TLP_MWR, 32);
    both_ways_once(256, TLP_MWR, 16);
    both_ways_once(256, TLP_MWR, 256); /* the timer */
    both_ways_once(64, TLP_CPLD, 32);
    both_ways_once(256, TLP_CPLD, 16);
}

/* ---- Credits --------------------------------------------------------------------------------- */

/* docs/sources.md, section G: in symbols of 1 ns at Gen3. */
static void ack_limits_are_those_of_the_table(void **state)
{
    static const struct {
        unsigned lanes, symbols[3];
    } row[] = { { 4, { 169, 214, 250 } }, { 8, { 163, 203, 182 } }, { 16, { 144, 168, 182 } } };

    (void)state;
    for (size_t i = 0; i < SIM_N_ELEMENTS(row); i++) {
        struct pair pair;
        pair_init(&pair, 3, row[i].lanes);
        pair_join(&pair, 0);
        for (unsigned k = 0; k < 3; k++) {
            pair.a->port.mps_bytes = 128u << k;
            assert_int_equal(link_limit_ps(pair.a->port.tx), row[i].symbols[k] * 1000);
        }
        pair_done(&pair);
    }
}

/* With two headers and a long cable: TLP i + 2 starts when the UpdateFC of TLP i is there, however
 * many freed headers an UpdateFC may otherwise wait for. */
static void credit_loop_once(uint32_t fc_update_ratio_pct)
{
    const sim_time latency_ps = 500000;
    const uint64_t n = 50;
    struct pcie_link_params params = pcie_rig_link_params(latency_ps);
    struct pair pair;

    params.fc_update_ratio_pct = fc_update_ratio_pct;
    pair_init(&pair, 3, 16);
    pair.b->port.advertise.header[TLP_POSTED] = 2;
    pcie_rig_join(&pair.rig, &pair.a->port, &pair.b->port, &params);
    stream_type = TLP_MWR;
    stream_bytes = 64;
    stream_start(pair.a, n, 0);
    end_credit(&pair.a->model, 0);
    pcie_rig_run(&pair.rig);
    assert_in_order(pair.b, n);
    sim_time wire_ps = spec_wire_ps(3, 16, 88), dllp_ps = spec_wire_ps(3, 16, 8);
    sim_time loop_ps = wire_ps + latency_ps + dllp_ps + latency_ps;
    for (uint64_t i = 0; i + 2 < n; i++)
        assert_int_equal(pair.b->got[i + 2].head_ps - pair.b->got[i].head_ps, loop_ps);
    sim_time stall_ps = pcie_port_stats(&pair.a->port)->credit_stall_ps;
    assert_true(stall_ps > (n / 2 - 1) * (loop_ps - 2 * wire_ps - 2));
    assert_true(stall_ps < (n / 2) * loop_ps);
    pair_done(&pair);
}

static void credit_loop_limits_the_rate(void **state)
{
    (void)state;
    credit_loop_once(25);
    credit_loop_once(100);
}

/* Data credits: 20 of them, TLPs of 16, so one at a time. */
static void data_credits_limit_too(void **state)
{
    const sim_time latency_ps = 10000;
    const uint64_t n = 20;
    struct pair pair;

    (void)state;
    pair_init(&pair, 4, 4);
    pair.b->port.advertise.data[TLP_COMPLETION] = 20;
    pair_join(&pair, latency_ps);
    stream_type = TLP_CPLD;
    stream_bytes = 256;
    stream_start(pair.a, n, 0);
    end_credit(&pair.a->model, 0);
    pcie_rig_run(&pair.rig);
    assert_in_order(pair.b, n);
    sim_time loop_ps = spec_wire_ps(4, 4, 276) + spec_wire_ps(4, 4, 8) + 2 * latency_ps;
    for (uint64_t i = 0; i + 1 < n; i++)
        assert_int_equal(pair.b->got[i + 1].head_ps - pair.b->got[i].head_ps, loop_ps);
    pair_done(&pair);
}

/* The receiver gives a buffer back each 200 ns; the sender may not be faster, nor slower. */
static void slow_receiver_holds_the_sender_back(void **state)
{
    const uint64_t n = 500;
    struct pair pair;

    (void)state;
    for (int cut_through = 0; cut_through < 2; cut_through++) {
        pair_init(&pair, 3, 16);
        pair.b->port.cut_through = cut_through;
        pair.b->port.advertise = (struct pcie_credits){ { 8, 8, 8 }, { 128, 8, 128 } };
        pair.b->service_ps = 200000;
        pair_join(&pair, 20000);
        stream_type = TLP_MWR;
        stream_bytes = 256;
        stream_start(pair.a, n, 2);
        end_credit(&pair.a->model, 0);
        pcie_rig_run(&pair.rig);
        assert_in_order(pair.b, n);
        sim_time took_ps = pair.b->got[n - 1].tail_ps - pair.b->got[0].tail_ps;
        assert_true(took_ps <= (n - 1) * 200000);
        assert_true(took_ps >= (n - 10) * 200000);
        assert_true(pcie_port_stats(&pair.a->port)->credit_stall_ps > took_ps / 2);
        pair_done(&pair);
    }
}

/* A receiver may know when a buffer will be free before it is. */
static void credits_can_be_given_back_for_later(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair, 3, 4);
    pair.b->port.advertise.header[TLP_NON_POSTED] = 1;
    pair.b->service_ps = 1000000;
    pair_join(&pair, 10000);
    for (uint64_t i = 0; i < 3; i++)
        pcie_port_send(&pair.a->port, pcie_rig_tlp(&pair.rig, TLP_MRD, ABOVE_4G, 64, i), 0);
    pcie_rig_run(&pair.rig);
    assert_in_order(pair.b, 3);
    sim_time step_ps = 1000000 + spec_wire_ps(3, 4, 8) + 2 * 10000 + spec_wire_ps(3, 4, 24);
    assert_int_equal(pair.b->got[1].tail_ps - pair.b->got[0].tail_ps, step_ps);
    assert_int_equal(pair.b->got[2].tail_ps - pair.b->got[1].tail_ps, step_ps);
    pair_done(&pair);
}

static void infinite_credits_never_stop(void **state)
{
    const uint64_t n = 2000;
    struct pair pair;

    (void)state;
    pair_init(&pair, 3, 16);
    pair.b->port.advertise.header[TLP_COMPLETION] = PCIE_CREDITS_INFINITE;
    pair.b->port.advertise.data[TLP_COMPLETION] = PCIE_CREDITS_INFINITE;
    pair.b->hold[TLP_COMPLETION] = true;
    pair_join(&pair, 10000);
    stream_type = TLP_CPLD;
    stream_bytes = 64;
    stream_start(pair.a, n, 0);
    end_credit(&pair.a->model, 0);
    pcie_rig_run(&pair.rig);
    assert_in_order(pair.b, n);
    assert_int_equal(pair.b->got[n - 1].tail_ps, spec_wire_ps(3, 16, n * 84) + 10000);
    while (pair.b->held_header[TLP_COMPLETION] != 0)
        end_release_held(pair.b, TLP_COMPLETION, 4);
    pair_done(&pair);
}

/* ---- Ordering -------------------------------------------------------------------------------- */

static void assert_arrived(const struct end_device *end, size_t n, const uint64_t *ids)
{
    assert_int_equal(end->n_got, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(end->got[i].id, ids[i]);
}

/* One non-posted header: posted requests and completions pass the read that waits for it. */
static void others_pass_blocked_non_posted(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair, 3, 4);
    pair.b->port.advertise.header[TLP_NON_POSTED] = 1;
    pair.b->hold[TLP_NON_POSTED] = true;
    pair_join(&pair, 10000);
    struct pcie_port *port = &pair.a->port;
    pcie_port_send(port, pcie_rig_tlp(&pair.rig, TLP_MRD, 0, 64, 1), 0);
    pcie_port_send(port, pcie_rig_tlp(&pair.rig, TLP_MRD, 0, 64, 2), 0);
    pcie_port_send(port, pcie_rig_tlp(&pair.rig, TLP_MWR, 0, 64, 3), 0);
    pcie_port_send(port, pcie_rig_tlp(&pair.rig, TLP_CPLD, 0, 64, 4), 0);
    pcie_port_send(port, pcie_rig_tlp(&pair.rig, TLP_CFG_RD0, 0, 4, 5), 0);
    pcie_rig_run(&pair.rig);
    assert_arrived(pair.b, 3, (uint64_t[]){ 1, 3, 4 });
    end_release_held(pair.b, TLP_NON_POSTED, 0);
    pcie_rig_run(&pair.rig);
    assert_arrived(pair.b, 4, (uint64_t[]){ 1, 3, 4, 2 });
    end_release_held(pair.b, TLP_NON_POSTED, 0);
    pcie_rig_run(&pair.rig);
    assert_arrived(pair.b, 5, (uint64_t[]){ 1, 3, 4, 2, 5 });
    end_release_held(pair.b, TLP_NON_POSTED, 0);
    pair_done(&pair);
}

/* One posted header: nothing passes the write that waits for it but completions that may. */
static void only_relaxed_completions_pass_blocked_posted(void **state)
{
    struct pair pair;
    struct tlp *tlp[8];

    (void)state;
    pair_init(&pair, 3, 4);
    pair.b->port.advertise.header[TLP_POSTED] = 1;
    pair.b->hold[TLP_POSTED] = true;
    pair_join(&pair, 10000);
    tlp[0] = pcie_rig_tlp(&pair.rig, TLP_MWR, 0, 64, 0);
    tlp[1] = pcie_rig_tlp(&pair.rig, TLP_MWR, 0, 64, 1);
    tlp[1]->requester_id = 0x0100;
    tlp[2] = pcie_rig_tlp(&pair.rig, TLP_MRD, 0, 64, 2);
    tlp[3] = pcie_rig_tlp(&pair.rig, TLP_CPLD, 0, 64, 3);
    tlp[3]->attr = TLP_ATTR_RELAXED_ORDERING;
    tlp[4] = pcie_rig_tlp(&pair.rig, TLP_CPLD, 0, 64, 4);
    tlp[4]->attr = TLP_ATTR_ID_ORDERING;
    tlp[4]->completer_id = 0x0200;
    tlp[5] = pcie_rig_tlp(&pair.rig, TLP_CPLD, 0, 64, 5);
    tlp[5]->attr = TLP_ATTR_ID_ORDERING;
    tlp[5]->completer_id = 0x0100; /* the function that wrote 1 */
    tlp[6] = pcie_rig_tlp(&pair.rig, TLP_CPLD, 0, 64, 6);
    tlp[6]->attr = TLP_ATTR_RELAXED_ORDERING; /* but completions stay in order */
    for (size_t i = 0; i < 7; i++)
        pcie_port_send(&pair.a->port, tlp[i], 0);
    pcie_rig_run(&pair.rig);
    assert_arrived(pair.b, 3, (uint64_t[]){ 0, 3, 4 });
    end_release_held(pair.b, TLP_POSTED, 4);
    pcie_rig_run(&pair.rig);
    assert_arrived(pair.b, 7, (uint64_t[]){ 0, 3, 4, 1, 2, 5, 6 });
    end_release_held(pair.b, TLP_POSTED, 4);
    pair_done(&pair);
}

/* What waits for its own credits does not wait for a younger write without credits as well. */
static void a_younger_write_holds_nobody_back(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair, 3, 4);
    pair.b->port.advertise.header[TLP_POSTED] = 1;
    pair.b->port.advertise.header[TLP_NON_POSTED] = 1;
    pair.b->port.advertise.header[TLP_COMPLETION] = 1;
    for (unsigned class = 0; class < N_TLP_CLASSES; class ++)
        pair.b->hold[class] = true;
    pair_join(&pair, 10000);
    struct pcie_port *port = &pair.a->port;
    static const enum tlp_type types[] = { TLP_MWR, TLP_CPL, TLP_MRD, TLP_CPL, TLP_MRD, TLP_MWR };
    for (uint64_t i = 0; i < SIM_N_ELEMENTS(types); i++)
        pcie_port_send(port, pcie_rig_tlp(&pair.rig, types[i], 0, types[i] == TLP_CPL ? 0 : 64, i),
                       0);
    pcie_rig_run(&pair.rig);
    assert_arrived(pair.b, 3, (uint64_t[]){ 0, 1, 2 });
    end_release_held(pair.b, TLP_COMPLETION, 0);
    pcie_rig_run(&pair.rig);
    assert_arrived(pair.b, 4, (uint64_t[]){ 0, 1, 2, 3 });
    end_release_held(pair.b, TLP_NON_POSTED, 0);
    pcie_rig_run(&pair.rig);
    assert_arrived(pair.b, 5, (uint64_t[]){ 0, 1, 2, 3, 4 });
    end_release_held(pair.b, TLP_POSTED, 4);
    pcie_rig_run(&pair.rig);
    assert_arrived(pair.b, 6, (uint64_t[]){ 0, 1, 2, 3, 4, 5 });
    end_release_held(pair.b, TLP_POSTED, 4);
    end_release_held(pair.b, TLP_NON_POSTED, 0);
    end_release_held(pair.b, TLP_COMPLETION, 0);
    pair_done(&pair);
}

/* Random mixes through the smallest buffers that the specification allows, in both directions, the
 * receivers slow at random: all arrives, nothing passes what it may not. */
struct mix {
    struct sent *sent;
    uint64_t n;
};

static void mix_send(struct end_device *end, struct mix *mix, uint64_t n)
{
    struct sim_random *random = &end->model.random;
    sim_time at_ps = sim_now(end->rig->sim);

    mix->n = n;
    mix->sent = calloc(n, sizeof(*mix->sent));
    for (uint64_t i = 0; i < n; i++) {
        static const enum tlp_type types[] = { TLP_MWR, TLP_MRD,     TLP_CPLD,
                                               TLP_CPL, TLP_CFG_WR0, TLP_MSG };
        enum tlp_type type = types[sim_random_below(random, SIM_N_ELEMENTS(types))];
        unsigned bytes = type == TLP_CFG_WR0 ? 4
                         : type == TLP_CPL || type == TLP_MSG
                             ? 0
                             : 1 + (unsigned)sim_random_below(random, 256);
        struct tlp *tlp = pcie_rig_tlp(end->rig, type, ABOVE_4G, bytes, i);
        uint64_t dice = sim_random_below(random, 8);
        if (type == TLP_CPLD || type == TLP_CPL)
            tlp->attr = dice == 0   ? TLP_ATTR_RELAXED_ORDERING
                        : dice == 1 ? TLP_ATTR_ID_ORDERING
                                    : 0;
        tlp->completer_id = (uint16_t)sim_random_below(random, 2);
        mix->sent[i] = (struct sent){ (uint8_t)tlp_class_of(tlp), tlp->attr, tlp->requester_id,
                                      tlp->completer_id };
        at_ps += sim_random_below(random, 40000);
        pcie_port_send(&end->port, tlp, at_ps);
    }
}

static void mix_check(const struct mix *mix, const struct end_device *end)
{
    bool *seen = calloc(mix->n, sizeof(*seen));
    uint64_t first_missing = 0;

    assert_int_equal(end->n_got, mix->n);
    for (uint64_t k = 0; k < mix->n; k++) {
        uint64_t id = end->got[k].id;
        assert_true(id < mix->n && !seen[id]);
        seen[id] = true;
        for (uint64_t i = first_missing; i < id; i++)
            if (!seen[i])
                assert_true(spec_may_pass(&mix->sent[i], &mix->sent[id]));
        while (first_missing < mix->n && seen[first_missing])
            first_missing++;
    }
    free(seen);
    free(mix->sent);
}

static void mix_once(uint64_t seed, double bit_error_ratio, uint64_t n, bool cut_through)
{
    struct pair pair;
    struct mix a, b;
    struct pcie_link_params params = pcie_rig_link_params(15000);

    pair_init(&pair, 3, 4);
    sim_random_init(&pair.a->model.random, seed, "a");
    sim_random_init(&pair.b->model.random, seed, "b");
    pair.b->port.cut_through = cut_through;
    pair.a->port.advertise = pair.b->port.advertise = (struct pcie_credits){ { 1, 1, 1 },
                                                                             { 17, 1, 17 } };
    pair.a->random_service_ps = pair.b->random_service_ps = 100000;
    params.bit_error_ratio = bit_error_ratio;
    params.fc_update_ratio_pct = (uint32_t)(1 + seed % 100);
    params.ack_tlps = (uint32_t)(1 + seed % 5);
    pcie_rig_join(&pair.rig, &pair.a->port, &pair.b->port, &params);
    mix_send(pair.a, &a, n);
    mix_send(pair.b, &b, n);
    pcie_rig_run(&pair.rig);
    mix_check(&a, pair.b);
    mix_check(&b, pair.a);
    const struct pcie_link_stats *stats = pcie_port_stats(&pair.a->port);
    assert_int_equal(stats->tlps, n);
    if (bit_error_ratio >= 1e-4) {
        assert_true(stats->replays > 0);
        assert_true(pcie_port_stats(&pair.b->port)->nak_dllps > 0);
    } else if (bit_error_ratio == 0) {
        assert_int_equal(stats->replays, 0);
    }
    pair_done(&pair);
}

static void random_mixes_keep_the_rules(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++)
        mix_once(seed, 0, 400, seed % 2 == 0);
}

/* ---- Bit errors ------------------------------------------------------------------------------ */

static void replay_delivers_exactly_once(void **state)
{
    static const double ratio[] = { 1e-6, 1e-5, 1e-4, 1e-3 };

    (void)state;
    for (size_t i = 0; i < SIM_N_ELEMENTS(ratio); i++)
        for (uint64_t seed = 1; seed <= 6; seed++)
            mix_once(seed, ratio[i], 300, seed % 2 == 0);
}

static uint64_t replay_stream(double ratio, uint64_t n, sim_time *took_ps)
{
    struct pair pair;
    struct pcie_link_params params = pcie_rig_link_params(20000);

    params.bit_error_ratio = ratio;
    pair_init(&pair, 3, 8);
    pcie_rig_join(&pair.rig, &pair.a->port, &pair.b->port, &params);
    stream_type = TLP_MWR;
    stream_bytes = 256;
    stream_start(pair.a, n, 4);
    end_credit(&pair.a->model, 0);
    pcie_rig_run(&pair.rig);
    assert_in_order(pair.b, n);
    uint64_t replays = pcie_port_stats(&pair.a->port)->replays;
    *took_ps = pair.b->got[n - 1].tail_ps;
    pair_done(&pair);
    return replays;
}

/* Errors cost time, and the more the more; without any the wire is as full as without replay. */
static void bit_errors_cost_throughput(void **state)
{
    const uint64_t n = 4000;
    sim_time none_ps, few_ps, many_ps;

    (void)state;
    assert_int_equal(replay_stream(1e-15, n, &none_ps), 0);
    assert_true(none_ps <= spec_wire_ps(3, 8, n * 280) + n + 20000);
    uint64_t few = replay_stream(1e-5, n, &few_ps), many = replay_stream(1e-4, n, &many_ps);
    /* 2.2 % and 20 % of the TLPs are corrupt; each takes those on the wire behind it along. */
    assert_true(few > n * 15 / 1000 && few < n / 2);
    assert_true(many > 3 * few);
    assert_true(few_ps > none_ps && many_ps > few_ps);
    /* The same seed draws the same errors. */
    sim_time again_ps;
    assert_int_equal(replay_stream(1e-4, n, &again_ps), many);
    assert_int_equal(again_ps, many_ps);
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

static void expect_mistake(struct pair *pair, const struct pcie_link_params *params,
                           const char *part)
{
    assert_null(pcie_link_new(pair->rig.pcie, "cable", params, &pair->a->port, &pair->b->port,
                              "x.cfg", 17, &pair->rig.errors));
    assert_int_equal(pair->rig.errors.n_messages, 1);
    assert_non_null(strstr(pair->rig.errors.message[0], "x.cfg:17: "));
    assert_non_null(strstr(pair->rig.errors.message[0], part));
    sim_error_release(&pair->rig.errors);
}

/* To the lower generation and the lower width; the cable says which of both it was. */
static void unequal_ports_train_down(void **state)
{
    static const struct {
        unsigned generation[2], lanes[2], to_generation, to_lanes;
        const char *said[2];
    } row[] = {
        { { 3, 3 }, { 8, 8 }, 3, 8, { NULL, NULL } },
        { { 3, 3 }, { 8, 16 }, 3, 8, { "lanes 8: trained down, b.p0 has 16", NULL } },
        { { 5, 3 },
          { 16, 4 },
          3,
          4,
          { "lanes 4: trained down, a.p0 has 16", "generation 3: trained down, a.p0 has 5" } },
        { { 2, 4 }, { 4, 4 }, 2, 4, { "generation 2: trained down, b.p0 has 4", NULL } },
        { { 3, 3 }, { 12, 16 }, 3, 8, { "lanes 8: trained down, b.p0 has 16", NULL } },
    };

    (void)state;
    for (size_t i = 0; i < SIM_N_ELEMENTS(row); i++) {
        struct cable_setting setting;
        struct pair pair;
        char text[160];

        pair_init(&pair, row[i].generation[0], row[i].lanes[0]);
        pair.b->port.max_generation = (uint8_t)row[i].generation[1];
        pair.b->port.max_lanes = (uint8_t)row[i].lanes[1];
        pair_join(&pair, 1000);
        assert_int_equal(pcie_port_generation(&pair.a->port), row[i].to_generation);
        assert_int_equal(pcie_port_lanes(&pair.b->port), row[i].to_lanes);
        for (unsigned n = 0; n < 2; n++) {
            const bool said = pcie_cable.settled(&pair.a->port, n, &setting);
            assert_int_equal(said, row[i].said[n] != NULL);
            if (!said)
                break;
            snprintf(text, sizeof(text), "%s %u: %s", setting.key, setting.value, setting.why);
            assert_string_equal(text, row[i].said[n]);
        }
        pair_done(&pair);
    }
}

static void mistakes_are_named(void **state)
{
    struct pcie_link_params params = pcie_rig_link_params(0);
    struct pair pair;

    (void)state;
    pair_init(&pair, 3, 8);
    pair.b->port.max_lanes = 16;
    params.lanes = 16;
    expect_mistake(&pair, &params, "16 lanes, but port a.p0 has 8");
    params.lanes = 3;
    expect_mistake(&pair, &params, "3 lanes, expected 1, 2, 4");
    params.lanes = 8;
    params.generation = 4;
    expect_mistake(&pair, &params, "generation 4, but port a.p0 has generation 3");
    params.generation = 3;
    pair.b->port.max_generation = 6;
    expect_mistake(&pair, &params, "port b.p0 has generation 6");
    pair.b->port.max_generation = 4;
    pair.b->port.advertise.data[TLP_POSTED] = 0;
    expect_mistake(&pair, &params, "port b.p0 advertises no posted credits");
    pair.b->port.advertise.data[TLP_POSTED] = 16;
    params.bit_error_ratio = 0.5;
    expect_mistake(&pair, &params, "bit_error_ratio");
    params.bit_error_ratio = 0;
    assert_false(pcie_port_connected(&pair.a->port));

    struct pcie_link *link = pcie_rig_join(&pair.rig, &pair.a->port, &pair.b->port, &params);
    assert_string_equal(pcie_link_name(link), "a-b");
    assert_int_equal(pcie_port_generation(&pair.b->port), 3);
    assert_int_equal(pcie_port_lanes(&pair.b->port), 8);
    assert_ptr_equal(pcie_port_peer(&pair.b->port), &pair.a->port);
    struct end_device *c = end_new(&pair.rig, "c", 3, 8);
    assert_null(pcie_link_new(pair.rig.pcie, "second", &params, &c->port, &pair.b->port, "x.cfg",
                              18, &pair.rig.errors));
    assert_non_null(strstr(pair.rig.errors.message[0], "port b.p0 is plugged twice"));
    end_free(c);

    struct pcie_port *a = NULL, *b = NULL;
    assert_ptr_equal(pcie_context_link(pair.rig.pcie, 0, &a, &b), link);
    assert_true(a == &pair.a->port && b == &pair.b->port);
    assert_null(pcie_context_link(pair.rig.pcie, 1, NULL, NULL));
    pair_done(&pair);
}

/* What is queued, on the wire or in the replay buffer when a run is cut short is freed. */
static void cut_short(void **state)
{
    (void)state;
    for (int errors = 0; errors < 2; errors++) {
        struct pair pair;
        struct pcie_link_params params = pcie_rig_link_params(20000);
        params.bit_error_ratio = errors ? 1e-4 : 0;
        pair_init(&pair, 3, 8);
        pair.b->port.advertise.header[TLP_POSTED] = 4;
        pcie_rig_join(&pair.rig, &pair.a->port, &pair.b->port, &params);
        for (uint64_t i = 0; i < 100; i++)
            pcie_port_send(&pair.a->port, pcie_rig_tlp(&pair.rig, TLP_MWR, 0, 256, i), 0);
        sim_run(pair.rig.sim, 300000, NULL);
        assert_true(pair.b->n_got > 0 && pair.b->n_got < 50);
        assert_false(pcie_port_credits_whole(&pair.b->port));
        end_free(pair.a);
        end_free(pair.b);
        pcie_rig_release(&pair.rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unloaded_latency_is_the_formula),
        cmocka_unit_test(tlps_start_where_the_data_path_lets_them),
        cmocka_unit_test(skp_sets_take_their_share),
        cmocka_unit_test(statistics_keep_up_with_time),
        cmocka_unit_test(statistics_stay_below_the_peak),
        cmocka_unit_test(saturated_one_way_leaves_no_gap),
        cmocka_unit_test(saturated_hop_costs_one_event),
        cmocka_unit_test(saturated_both_ways_pays_for_dllps),
        cmocka_unit_test(ack_limits_are_those_of_the_table),
        cmocka_unit_test(credit_loop_limits_the_rate),
        cmocka_unit_test(data_credits_limit_too),
        cmocka_unit_test(slow_receiver_holds_the_sender_back),
        cmocka_unit_test(credits_can_be_given_back_for_later),
        cmocka_unit_test(infinite_credits_never_stop),
        cmocka_unit_test(others_pass_blocked_non_posted),
        cmocka_unit_test(only_relaxed_completions_pass_blocked_posted),
        cmocka_unit_test(a_younger_write_holds_nobody_back),
        cmocka_unit_test(a_write_goes_ahead_of_completions),
        cmocka_unit_test(random_mixes_keep_the_rules),
        cmocka_unit_test(replay_delivers_exactly_once),
        cmocka_unit_test(bit_errors_cost_throughput),
        cmocka_unit_test(unequal_ports_train_down),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(cut_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
