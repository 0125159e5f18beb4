/* TCP of logic/net/: what is lost, and the congestion window after it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/tcp_pair.h"

static void test_fast_retransmit(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    pair_thread(p, 3, server_reads);
    pair_send_bytes(p, 1u << 20);
    p->lose_from = 0;
    p->lose_data_only = true;
    p->lose_skip = 300;
    p->lose_n = 1;
    pair_run(p, 20000);
    assert_true(p->done[1] && p->done[2]);
    const struct net_stats *a = net_stats(p->rig->end[0].net);
    assert_int_equal(a->retransmitted_segments, 1);
    assert_int_equal(a->timeouts, 0);
    assert_true(a->duplicate_acks >= 3);
    assert_true(net_stats(p->rig->end[1].net)->out_of_order_segments > 0);
    /* Beta: 717/1024 of the window at the loss. */
    const struct tcp *tp = &p->client->tcp;
    assert_int_equal(tp->ssthresh, tp->cubic.last_max * 717 / 1024);
    assert_true(tp->cwnd >= tp->ssthresh);
    pair_free(p);
}

/* Repetitions are lost, too: what is sent behind them tells, and no time-out is needed. */
static void test_lost_again(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    struct tcp *tp = &p->client->tcp;
    pair_thread(p, 3, server_reads);
    p->drop[0].number = 300;
    p->drop[0].times = 2;
    p->drop[1].number = 320;
    p->drop[1].times = 1;
    pair_send_bytes(p, 4u << 20);
    while (tp->congestion != TCP_CA_RECOVERY)
        pair_run(p, 10);
    uint32_t window = tp->ssthresh;
    pair_run(p, 20000);
    assert_true(p->done[1] && p->done[2]);
    const struct net_stats *a = net_stats(p->rig->end[0].net);
    assert_int_equal(a->timeouts, 0);
    assert_int_equal(a->retransmitted_segments, 3);
    assert_int_equal(tp->congestion, TCP_CA_OPEN);
    assert_int_equal(tp->ssthresh, window); /* reduced once */
    pair_free(p);
}

/* The time-out counts anew from each answer to what was sent before the oldest segment was sent
 * last. (After answers to what was sent behind that, RACK's timer takes its place.) */
static void test_answers_put_off_the_time_out(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    o.latency_ps = FAKE_MS(1);
    o.no_tso = true;
    struct pair *p = pair_prepare(&o, PORT);
    pair_thread(p, 1, connects);
    pair_run(p, 100000);
    struct tcp *tp = &p->client->tcp;
    unsigned older = 0, younger = 0;
    pair_thread(p, 3, server_reads);
    p->drop[0].number = 300;
    p->drop[0].times = 2; /* and its repetition */
    pair_send_bytes(p, 4u << 20);
    while (!p->done[2]) {
        uint32_t una = tp->snd_una, sacked = tp->sacked_out;
        uint64_t sent_ps = tp->packets_out > 0 ? tp->head->time_ps : 0, due_ps = tp->timer_at_ps;
        enum tcp_pending pending = tp->pending;
        pair_run(p, 1);
        if (tp->congestion != TCP_CA_RECOVERY || tp->snd_una != una || tp->sacked_out <= sacked ||
            tp->head->time_ps != sent_ps)
            continue;
        if (tp->rack_sent_ps > sent_ps) {
            assert_int_equal(tp->pending, TCP_PENDING_REORDER);
            younger++;
        } else if (pending == TCP_PENDING_RTO) {
            assert_int_equal(tp->pending, TCP_PENDING_RTO);
            assert_true(tp->timer_at_ps > due_ps);
            older++;
        }
    }
    assert_true(older > 10 && younger > 5);
    pair_free(p);
}

/* So many in a row: each goes out once more, whatever their number, and the window is reduced
 * once. */
static void test_runs(void **state)
{
    (void)state;
    const unsigned runs[] = { 1, 2, 3, 7, 20, 60 };
    for (unsigned i = 0; i < sizeof runs / sizeof runs[0]; i++)
        for (unsigned tso = 0; tso < 2; tso++) {
            struct rig_options o = pair_plain();
            o.no_tso = !tso;
            struct pair *p = pair_new(&o);
            const struct net_stats *a = net_stats(p->rig->end[0].net);
            struct tcp *tp = &p->client->tcp;
            pair_thread(p, 3, server_reads);
            pair_send_bytes(p, 4u << 20);
            p->lose_data_only = true;
            p->lose_skip = 600;
            p->lose_n = runs[i];
            while (a->retransmitted_segments == 0)
                pair_run(p, 10);
            uint32_t window = tp->ssthresh, before = tp->prior_cwnd;
            assert_int_equal(window, before * 717 / 1024);
            pair_run(p, 40000);
            assert_true(p->done[1] && p->done[2]);
            assert_int_equal(a->retransmitted_segments, runs[i]);
            assert_int_equal(a->timeouts, 0);
            assert_int_equal(a->undone, 0);
            assert_int_equal(tp->ssthresh, window);
            assert_true(tp->cwnd >= window);
            pair_free(p);
        }
}

/* Proportional rate reduction: from the first repetition on at most as many segments go out as the
 * old window's share of what arrives. */
static void test_reduction_in_proportion(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    o.latency_ps = FAKE_MS(1);
    o.ps_per_byte = 8000; /* a Gbit/s */
    o.no_tso = true;
    struct pair *p = pair_prepare(&o, PORT);
    pair_thread(p, 1, connects);
    pair_run(p, 100000);
    struct tcp *tp = &p->client->tcp;
    tp->cwnd = tp->ssthresh = 100;
    p->lose_data_only = true;
    p->lose_skip = 400;
    p->lose_n = 4;
    pair_thread(p, 3, server_reads);
    pair_send_bytes(p, 4u << 20);
    unsigned samples = 0;
    while (!p->done[2]) {
        pair_run(p, 5);
        if (tp->congestion != TCP_CA_RECOVERY)
            continue;
        uint32_t share = (tp->ssthresh * tp->prr_delivered + tp->prior_cwnd - 1) / tp->prior_cwnd;
        if (tcp_in_flight(tp) > tp->ssthresh) {
            assert_in_range(tp->prr_out, 1, share + 1);
            samples++;
        }
        assert_true(tcp_in_flight(tp) <= tp->prior_cwnd);
    }
    assert_true(samples > 20);
    assert_int_equal(net_stats(p->rig->end[0].net)->retransmitted_segments, 4);
    pair_free(p);
}

/* The last segments of all are lost: a probe finds out after two round trips, not a time-out. */
static void test_tail(void **state)
{
    (void)state;
    const unsigned tails[] = { 1, 2, 3, 10 };
    for (unsigned i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        struct rig_options o = pair_plain();
        struct pair *p = pair_new(&o);
        const struct net_stats *a = net_stats(p->rig->end[0].net);
        struct tcp *tp = &p->client->tcp;
        pair_thread(p, 3, server_reads);
        pair_send_bytes(p, 20 * tp->mss);
        pair_run(p, 2000);
        pair_forget(p);
        p->lose_data_only = true;
        p->lose_skip = 20 - tails[i];
        p->lose_n = tails[i];
        p->done[1] = p->done[2] = false;
        pair_thread(p, 3, server_reads);
        pair_send_bytes(p, 20 * tp->mss);
        uint64_t began = p->rig->kernel->now_ps;
        /* Alone, a segment waits for the time of a delayed acknowledgement, too. */
        pair_run(p, tails[i] == 1 ? 250000 : 20000);
        assert_true(p->done[1] && p->done[2]);
        assert_int_equal(a->loss_probes, 1);
        assert_int_equal(a->timeouts, 0);
        assert_int_equal(a->retransmitted_segments, tails[i]);
        const struct seen *last = pair_frame(p, 0, true, 19), *probe = pair_frame(p, 0, true, 20);
        assert_true(last->at_ps > began);
        assert_int_equal(probe->seq, last->seq); /* the last one again, which is sacked */
        if (tails[i] > 1)
            assert_in_range(probe->at_ps - last->at_ps, FAKE_MS(2), FAKE_MS(4));
        else {
            /* A probe took the loss's place: the window shrinks when that is known. */
            uint32_t window = tp->cwnd;
            assert_true(tp->probe_out);
            pair_send_bytes(p, tp->mss);
            pair_thread(p, 3, server_reads);
            pair_run(p, 1000);
            assert_false(tp->probe_out);
            assert_int_equal(tp->ssthresh, window * 717 / 1024);
        }
        pair_free(p);
    }
}

/* The probe is lost as well: its time-out counts from then. */
static void test_probe_lost(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    const struct net_stats *a = net_stats(p->rig->end[0].net);
    struct tcp *tp = &p->client->tcp;
    pair_thread(p, 3, server_reads);
    p->lose_data_only = true;
    p->lose_skip = 5;
    p->lose_n = 4 + 1;
    pair_send_bytes(p, 9 * tp->mss);
    pair_run(p, 600000);
    assert_true(p->done[1] && p->done[2]);
    assert_int_equal(a->loss_probes, 1);
    assert_int_equal(a->timeouts, 1);
    assert_int_equal(a->retransmitted_segments, 4 + 1);
    const struct seen *probe = pair_frame(p, 0, true, 9), *again = pair_frame(p, 0, true, 10);
    assert_in_range(again->at_ps - probe->at_ps, FAKE_MS(200), FAKE_MS(201));
    assert_int_equal(again->seq, pair_frame(p, 0, true, 5)->seq);
    pair_free(p);
}

/* A probe is for the end of what is sent: not while there is more that the congestion window would
 * take, as when the other side's window is full; and not once something is out of order. */
static void test_no_probe(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    struct tcp *tp = &p->client->tcp;
    p->lose_n = UINT32_MAX;
    p->lose_from = 0;
    pair_send_bytes(p, 1u << 20);
    pair_run(p, 1000);
    assert_non_null(tp->unsent);
    tp->cwnd = tcp_in_flight(tp) + 1;
    assert_false(tcp_schedule_loss_probe(p->client));
    tp->cwnd = tcp_in_flight(tp);
    tp->congestion = TCP_CA_DISORDER;
    assert_false(tcp_schedule_loss_probe(p->client));
    tp->congestion = TCP_CA_OPEN;
    assert_true(tcp_schedule_loss_probe(p->client));
    assert_int_equal(tp->pending, TCP_PENDING_LOSS_PROBE);
    /* 2 SRTT in whole jiffies, and two more. */
    assert_int_equal(tp->timer_at_ps, p->rig->kernel->now_ps + FAKE_MS(3));
    p->lose_n = 0;
    pair_thread(p, 3, server_reads);
    pair_run(p, 3000000);
    assert_true(p->done[2]);
    pair_free(p);
}

static void send_mib(struct pair *p)
{
    p->done[1] = p->done[2] = false;
    p->value = 1u << 20;
    pair_thread(p, 3, server_reads);
    pair_send_bytes(p, 1u << 20);
    pair_run(p, 200000);
    assert_true(p->done[1] && p->done[2]);
    assert_int_equal(net_stats(p->rig->end[0].net)->timeouts, 0);
}
/* The number-th frame of 1 MiB arrives so much later. */
static struct pair *one_late(unsigned number, uint64_t ps, uint64_t latency_ps)
{
    struct rig_options o = pair_plain();
    o.latency_ps = latency_ps;
    o.no_tso = true; /* frames leave one by one */
    struct pair *p = pair_prepare(&o, PORT);
    pair_thread(p, 1, connects);
    pair_run(p, 100000);
    p->late.number = number;
    p->late.ps = ps;
    send_mib(p);
    return p;
}
#define FRAME_PS ((1514 + 24) * 80)
static unsigned duplicates_reported(const struct pair *p)
{
    unsigned n = 0;
    for (unsigned i = 0; i < p->n; i++)
        n += p->seen[i].from == 1 && p->seen[i].n_sacks > 0 &&
             tcp_before(p->seen[i].sack[0].from, p->seen[i].ack);
    return n;
}
static void test_overtaken(void **state)
{
    (void)state;
    /* By one and by two: not a loss. */
    for (unsigned by = 1; by <= 2; by++) {
        struct pair *p = one_late(350, by * FRAME_PS + FRAME_PS / 2, FAKE_US(10));
        const struct net_stats *a = net_stats(p->rig->end[0].net);
        assert_int_equal(a->retransmitted_segments, 0);
        assert_true(net_stats(p->rig->end[1].net)->out_of_order_segments > 0);
        assert_true(p->client->tcp.rack_reordered);
        assert_int_equal(duplicates_reported(p), 0);
        pair_free(p);
    }
    /* By eight: taken for a loss, until the other side says that it came twice. */
    struct pair *p = one_late(350, 8 * FRAME_PS + FRAME_PS / 2, FAKE_US(10));
    struct tcp *tp = &p->client->tcp;
    assert_int_equal(net_stats(p->rig->end[0].net)->retransmitted_segments, 1);
    assert_int_equal(net_stats(p->rig->end[0].net)->undone, 1);
    assert_int_equal(duplicates_reported(p), 1);
    assert_true(tp->cwnd >= tp->prior_cwnd);
    assert_int_equal(tp->congestion, TCP_CA_OPEN);
    pair_free(p);
}

/* Time stamps, where a round trip has several, tell that the first copy has arrived; and how far it
 * was overtaken: nothing is sent again the next time. */
static void test_overtaken_on_a_long_path(void **state)
{
    (void)state;
    struct pair *p = one_late(400, 8 * FRAME_PS + FRAME_PS / 2, FAKE_MS(2));
    const struct net_stats *a = net_stats(p->rig->end[0].net);
    struct tcp *tp = &p->client->tcp;
    assert_int_equal(a->retransmitted_segments, 1);
    assert_int_equal(a->undone, 1);
    assert_true(tp->cwnd >= tp->prior_cwnd);
    assert_in_range(tp->reordering, 5, 12);
    p->late.number = p->n_data + 400;
    send_mib(p);
    assert_int_equal(a->retransmitted_segments, 1);
    pair_free(p);
}

/* The last but one is late, and nothing comes behind to count: time decides. */
static void test_overtaken_at_the_end(void **state)
{
    (void)state;
    for (unsigned late_ms = 0; late_ms <= 10; late_ms += 10) {
        struct rig_options o = pair_plain();
        struct pair *p = pair_new(&o);
        const struct net_stats *a = net_stats(p->rig->end[0].net);
        pair_thread(p, 3, server_reads);
        p->late.number = 8;
        p->late.ps = FAKE_MS(late_ms) + FAKE_US(900);
        pair_send_bytes(p, 10 * p->client->tcp.mss);
        pair_run(p, 30000);
        assert_true(p->done[1] && p->done[2]);
        assert_int_equal(a->timeouts, 0);
        assert_int_equal(a->loss_probes, 0);
        assert_int_equal(a->retransmitted_segments, late_ms > 0);
        if (late_ms > 0) {
            const struct seen *again = pair_frame(p, 0, true, 10);
            assert_int_equal(again->seq, pair_frame(p, 0, true, 8)->seq);
            /* A millisecond of patience, and the two jiffies that a timer takes at least. */
            assert_in_range(again->at_ps - pair_frame(p, 0, true, 8)->at_ps, FAKE_MS(3),
                            FAKE_MS(5));
            assert_int_equal(a->undone, 1);
        }
        pair_free(p);
    }
}

/* Every frame arrives twice: nothing is sent again, and nothing is thought lost. */
static void test_all_twice(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    const struct net_stats *a = net_stats(p->rig->end[0].net);
    p->rig->options.repeat_permille = 1000;
    pair_thread(p, 3, server_reads);
    pair_send_bytes(p, 1u << 20);
    pair_run(p, 100000);
    assert_true(p->done[1] && p->done[2]);
    assert_int_equal(a->retransmitted_segments, 0);
    assert_int_equal(a->timeouts, 0);
    assert_true(duplicates_reported(p) > 50);
    pair_free(p);
}

/* What the receiver says: the youngest block first, joined ones as one, at most three. */
static void test_blocks(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    o.no_tso = true;
    struct pair *p = pair_new(&o);
    uint32_t mss = p->client->tcp.mss, first = p->client->tcp.snd_una;
    pair_thread(p, 3, server_reads);
    p->drop[0] = (typeof(p->drop[0])){ .number = 2, .times = 1 };
    p->drop[1] = (typeof(p->drop[0])){ .number = 5, .times = 1 };
    pair_send_bytes(p, 9 * mss);
    pair_run(p, 30000);
    assert_true(p->done[2]);
    unsigned holes = 0;
    for (unsigned i = 0; i < p->n; i++) {
        const struct seen *s = &p->seen[i];
        if (s->from == 0) {
            assert_int_equal(s->n_sacks, 0);
            continue;
        }
        if (s->n_sacks == 0)
            continue;
        assert_int_equal(
            s->ack, first + (s->n_sacks == 1 && s->sack[0].from > first + 5 * mss ? 5 : 2) * mss);
        if (s->n_sacks == 1 && s->ack == first + 2 * mss) {
            assert_int_equal(s->sack[0].from, first + 3 * mss);
            assert_in_range(s->sack[0].to, first + 4 * mss, first + 9 * mss);
        } else if (s->n_sacks == 2) {
            assert_int_equal(s->sack[0].from, first + 6 * mss);
            assert_in_range(s->sack[0].to, first + 7 * mss, first + 9 * mss);
            assert_int_equal(s->sack[1].from, first + 3 * mss);
            assert_int_equal(s->sack[1].to, first + 5 * mss);
            holes++;
        }
    }
    assert_true(holes > 0);
    pair_free(p);
}

/* The list of blocks by itself, past sequence number zero. */
static void test_list_of_blocks(void **state)
{
    (void)state;
    struct tcp tp = { .sack_ok = true, .rcv_nxt = 0xffffff00u };
    struct tcp_options options;
    struct sk_buff early = { .next = NULL };
    assert_false(tcp_sack_options(&tp, &options));
    tp.out_of_order = &early;
    tcp_sack_add(&tp, 0xffffff10u, 0xffffff20u);
    tcp_sack_add(&tp, 0xffffff40u, 0x10u);
    tcp_sack_add(&tp, 0x20u, 0x30u);
    tcp_sack_add(&tp, 0x40u, 0x50u);
    tcp_sack_add(&tp, 0x60u, 0x70u);
    assert_int_equal(tp.n_sacks, TCP_SACKS); /* the oldest is forgotten */
    tcp_sack_duplicate(&tp, 0xfffffe00u, 0xfffffe10u);
    tcp_sack_duplicate(&tp, 0xfffffe10u, 0xfffffe20u);
    assert_true(tcp_sack_options(&tp, &options));
    assert_int_equal(options.n_sacks, TCP_SACKS_SENT);
    assert_int_equal(options.sack[0].from, 0xfffffe00u);
    assert_int_equal(options.sack[0].to, 0xfffffe20u);
    assert_int_equal(options.sack[1].from, 0x60);
    assert_int_equal(options.sack[2].from, 0x40);
    assert_true(tcp_sack_options(&tp, &options)); /* said once */
    assert_int_equal(options.sack[0].from, 0x60);
    tcp_sack_add(&tp, 0x10u, 0x40u); /* joins three */
    assert_int_equal(tp.n_sacks, 2);
    assert_int_equal(tp.sack[0].from, 0xffffff40u);
    assert_int_equal(tp.sack[0].to, 0x50);
    tp.rcv_nxt = 0x55;
    tcp_sack_remove(&tp);
    assert_int_equal(tp.n_sacks, 1);
    assert_int_equal(tp.sack[0].from, 0x60);
    tp.out_of_order = NULL;
    tcp_sack_remove(&tp);
    assert_int_equal(tp.n_sacks, 0);
    tp.sack_ok = false; /* not permitted: nothing is said */
    tcp_sack_add(&tp, 0x80u, 0x90u);
    tcp_sack_duplicate(&tp, 0x80u, 0x90u);
    assert_false(tcp_sack_options(&tp, &options));
}

static void cuts(void *arg)
{
    struct pair *p = arg;
    struct kernel *kernel = p->rig->kernel;
    struct net *net = p->rig->end[0].net;
    struct sk_buff *whole = skb_new(net);
    struct k_page *page[3];
    for (unsigned i = 0; i < 3; i++) {
        page[i] = k_page_alloc(kernel, K_NODE_LOCAL, 0);
        whole->frag[i] = (struct skb_frag){ page[i], 0, 1000, (int8_t)page[i]->node };
    }
    whole->n_frags = 3;
    whole->bytes = 3000;
    struct sk_buff *copy = net_skb_share(net, whole, 0, 3000);
    struct sk_buff *end = net_skb_split(net, whole, 1500);
    struct sk_buff *middle = net_skb_split(net, whole, 500);
    assert_int_equal(whole->bytes, 500);
    assert_int_equal(middle->bytes, 1000);
    assert_int_equal(middle->n_frags, 2);
    assert_int_equal(end->bytes, 1500);
    skb_free(net, end);
    skb_free(net, middle);
    skb_free(net, whole);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(page[i]->refs, 1); /* the device may still read them */
    skb_free(net, copy);
    p->done[3] = true;
}
/* A buffer is cut by SACK blocks, and acknowledged, while its copy is at the device: pages stay
 * until that is freed, and no longer. */
static void test_cut_beside_a_copy(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    pair_thread(p, 1, cuts);
    pair_run(p, 100);
    assert_true(p->done[3]);
    pair_free(p); /* no page is left over */
}

/* Segments that host 0 put onto the wire since `from`. */
static unsigned sent_since(const struct pair *p, unsigned from)
{
    unsigned n = 0;
    for (unsigned i = from; i < p->n; i++)
        n += p->seen[i].from == 0 && p->seen[i].payload > 0;
    return n;
}

/* The wire is dead until a time-out; the repetition of then is lost, too, the next is on its way.
 */
static void die_until_timeout(struct pair *p, unsigned *seen)
{
    const struct net_stats *stats = net_stats(p->rig->end[0].net);
    uint64_t before = stats->timeouts;
    p->lose_from = 2;
    p->lose_n = UINT32_MAX;
    while (stats->timeouts == before)
        pair_run(p, 50);
    p->lose_n = 0;
    for (*seen = p->n; sent_since(p, *seen) == 0;)
        pair_run(p, 10);
}

/* All that is in flight is lost, twice. In each round trip from then on as many segments are sent,
 * repeated or new, as the window has; what is lost goes first. */
static void after_timeout(bool tso)
{
    struct rig_options o = pair_plain();
    o.latency_ps = FAKE_MS(1);
    o.no_tso = !tso;
    struct pair *p = pair_prepare(&o, PORT);
    pair_thread(p, 1, connects);
    pair_run(p, 100000);
    struct tcp *tp = &p->client->tcp;
    p->value = 16u << 20;
    pair_thread(p, 3, server_reads);
    pair_send_bytes(p, p->value);
    pair_run(p, 12000);
    for (unsigned times = 1, seen; times <= 2; times++) {
        /* The second time while what was new after the first is in flight. */
        while (times == 2 && (tp->snd_nxt == tp->recover || tp->congestion != TCP_CA_LOSS))
            pair_run(p, 50);
        assert_true(tp->packets_out > 4);
        die_until_timeout(p, &seen);
        assert_int_equal(tp->congestion, TCP_CA_LOSS);
        assert_int_equal(tp->recover, tp->snd_nxt);
        pair_run(p, 1000); /* from the middle between two bursts to the next one */
        while (tp->congestion == TCP_CA_LOSS && (times == 2 || tp->snd_nxt == tp->recover)) {
            assert_in_range(sent_since(p, seen), 1, tp->cwnd);
            seen = p->n;
            pair_run(p, 2000);
        }
    }
    pair_run(p, 10000000);
    assert_true(p->done[1] && p->done[2]);
    assert_int_equal(net_stats(p->rig->end[0].net)->timeouts, 4);
    pair_free(p);
}
static void test_after_timeout(void **state)
{
    (void)state;
    after_timeout(true);
    after_timeout(false);
}

/* One loss, one reduction: found by SACK, then by time-outs, as nothing gets through any more. */
static void test_reduced_once(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    struct tcp *tp = &p->client->tcp;
    const struct net_stats *stats = net_stats(p->rig->end[0].net);
    p->drop[0].number = 300;
    p->drop[0].times = 1;
    p->value = 1u << 20;
    pair_thread(p, 3, server_reads);
    pair_send_bytes(p, p->value);
    while (tp->congestion != TCP_CA_RECOVERY)
        pair_run(p, 1);
    uint32_t window = tp->ssthresh;
    assert_true(window > 10);
    p->lose_from = 2;
    p->lose_n = UINT32_MAX;
    for (unsigned timeouts = 1; timeouts <= 2; timeouts++) {
        while (stats->timeouts < timeouts)
            pair_run(p, 100);
        assert_int_equal(tp->congestion, TCP_CA_LOSS);
        assert_int_equal(tp->ssthresh, window);
        assert_int_equal(tp->cwnd, 1);
    }
    p->lose_n = 0;
    while (tp->congestion == TCP_CA_LOSS)
        pair_run(p, 100);
    assert_int_equal(tp->ssthresh, window);
    pair_run(p, 3000000);
    assert_true(p->done[1] && p->done[2]);
    pair_free(p);
}

/* Repetitions are lost after others of the same flight have arrived: that is another loss. */
static void test_reduced_again(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    o.latency_ps = FAKE_MS(1);
    struct pair *p = pair_prepare(&o, PORT);
    pair_thread(p, 1, connects);
    pair_run(p, 100000);
    struct tcp *tp = &p->client->tcp;
    unsigned seen;
    p->value = 1u << 20;
    pair_thread(p, 3, server_reads);
    pair_send_bytes(p, p->value);
    pair_run(p, 12000);
    die_until_timeout(p, &seen);
    while (tp->cwnd < 8)
        pair_run(p, 100);
    uint32_t window = tp->cwnd, before = tp->ssthresh;
    assert_int_equal(tp->congestion, TCP_CA_LOSS);
    assert_true(tcp_before(tp->snd_una, tp->recover));
    die_until_timeout(p, &seen);
    assert_in_range(tp->ssthresh, window * 7 / 10, before - 1);
    pair_run(p, 10000000);
    assert_true(p->done[1] && p->done[2]);
    pair_free(p);
}

#define LITTLE 100u
static void client_sends_little(void *arg)
{
    struct pair *p = arg;
    for (unsigned i = 0; i < p->value / LITTLE; i++) {
        assert_int_equal(socket_send(p->client, p->buffer[0], LITTLE), LITTLE);
        k_sleep(p->rig->kernel, FAKE_US(10));
    }
    p->done[1] = true;
}
/* The window counts segments, however small they are. */
static void test_after_timeout_small(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    o.latency_ps = FAKE_MS(1);
    o.params.nagle = false;
    struct pair *p = pair_prepare(&o, PORT);
    pair_thread(p, 1, connects);
    pair_run(p, 100000);
    struct tcp *tp = &p->client->tcp;
    unsigned seen;
    tp->cwnd = 100;
    p->value = 30 * LITTLE;
    pair_thread(p, 3, server_reads);
    pair_thread(p, 1, client_sends_little);
    die_until_timeout(p, &seen);
    assert_int_equal(tp->packets_out, 30);
    pair_run(p, 1000);
    while (tp->congestion == TCP_CA_LOSS) {
        assert_in_range(sent_since(p, seen), 1, tp->cwnd);
        seen = p->n;
        pair_run(p, 2000);
    }
    assert_true(p->done[1] && p->done[2]);
    pair_free(p);
}

/* The window of CUBIC after a loss: C (t - K)^3 + Wmax, with K where it was. */
static void test_cubic(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    struct kernel *kernel = p->rig->kernel;
    struct tcp *tp = &p->client->tcp;
    tp->cwnd = 500;
    tp->ssthresh = tp->cwnd = tcp_cubic_ssthresh(tp);
    assert_int_equal(tp->cwnd, 350);
    tp->cwnd_limited = true;
    uint64_t begin = kernel->now_ps + FAKE_MS(100);
    for (unsigned i = 1; i <= 100; i++) {
        fake_run_until(kernel, begin + (i - 1) * FAKE_MS(100));
        for (uint32_t acked = 0, window = tp->cwnd; acked < window; acked += 2)
            tcp_cubic_avoid(p->client, tp->snd_una, 2);
        double t = i * 0.1 - 7.2112; /* K = cbrt(150 / 0.4) */
        double expected = 500 + 0.4 * t * t * t;
        assert_true((double)tp->cwnd > expected - 12 && (double)tp->cwnd < expected + 12);
    }
    pair_free(p);
}

/* Each single frame of a conversation may be lost. */
static void test_any_frame_lost(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 14; n++) {
        struct rig_options o = pair_plain();
        struct pair *p = pair_prepare(&o, PORT);
        p->lose_from = 2;
        p->lose_skip = n;
        p->lose_n = 1;
        pair_thread(p, 1, connects);
        pair_run(p, 4000000);
        assert_non_null(p->client);
        assert_true(p->server || n == 2); /* the last of the handshake: with data again */
        pair_send_bytes(p, 5000);
        pair_run(p, 3000000);
        assert_non_null(p->server);
        pair_thread(p, 3, server_reads);
        pair_run(p, 1000000);
        assert_true(p->done[1] && p->done[2]);
        pair_free(p);
    }
}

/* The window after a window's worth of acknowledgements. */
static uint32_t acknowledged(struct pair *p)
{
    struct tcp *tp = &p->client->tcp;
    tp->cwnd = tp->ssthresh;
    tp->cwnd_count = 0;
    tp->cwnd_limited = true;
    for (uint32_t acked = 0, window = tp->cwnd; acked < window; acked += 2)
        tcp_cubic_avoid(p->client, tp->snd_una, 2);
    return tp->cwnd;
}
/* Nothing is sent for 20 s, in which the cubic would have passed its old maximum twice over. */
static void test_cubic_pause(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    struct tcp *tp = &p->client->tcp;
    p->value = 2000;
    pair_thread(p, 3, server_reads);
    pair_send_bytes(p, 1000);
    pair_run(p, 1000);
    tp->cwnd = 500;
    tp->ssthresh = tp->cwnd = tcp_cubic_ssthresh(tp);
    assert_in_range(acknowledged(p), 350, 354);
    uint32_t epoch = tp->cubic.epoch_ms;
    uint64_t sent_ms = tp->last_send_ps / FAKE_MS(1);
    pair_run(p, 20000000);
    pair_send_bytes(p, 1000);
    pair_run(p, 50000);
    uint64_t pause = tp->last_send_ps / FAKE_MS(1) - sent_ms;
    assert_in_range(pause, 20000, 20001);
    /* Not past the time of sending. */
    assert_int_equal(tp->cubic.epoch_ms, epoch + pause - (sent_ms < epoch ? epoch - sent_ms : 0));
    assert_in_range(acknowledged(p), 350, 356);
    pair_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fast_retransmit),
        cmocka_unit_test(test_lost_again),
        cmocka_unit_test(test_answers_put_off_the_time_out),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_reduction_in_proportion),
        cmocka_unit_test(test_tail),
        cmocka_unit_test(test_probe_lost),
        cmocka_unit_test(test_no_probe),
        cmocka_unit_test(test_overtaken),
        cmocka_unit_test(test_overtaken_on_a_long_path),
        cmocka_unit_test(test_overtaken_at_the_end),
        cmocka_unit_test(test_all_twice),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_list_of_blocks),
        cmocka_unit_test(test_cut_beside_a_copy),
        cmocka_unit_test(test_any_frame_lost),
        cmocka_unit_test(test_after_timeout),
        cmocka_unit_test(test_after_timeout_small),
        cmocka_unit_test(test_reduced_once),
        cmocka_unit_test(test_reduced_again),
        cmocka_unit_test(test_cubic),
        cmocka_unit_test(test_cubic_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
