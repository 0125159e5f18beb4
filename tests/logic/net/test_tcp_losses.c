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

/* The repetition is lost too: a time-out, after which what the other side has is not sent again. */
static void test_lost_again(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    pair_thread(p, 3, server_reads);
    p->drop[0].number = 300;
    p->drop[0].times = 2;
    p->drop[1].number = 320;
    p->drop[1].times = 1;
    pair_send_bytes(p, 1u << 20);
    pair_run(p, 2000000);
    assert_true(p->done[1] && p->done[2]);
    const struct net_stats *a = net_stats(p->rig->end[0].net);
    assert_int_equal(a->timeouts, 1);
    /* 300 twice, 320, and as many as the answer to the first allowed: it acknowledged 20. */
    assert_in_range(a->retransmitted_segments, 3, 3 + 20);
    assert_int_equal(p->client->tcp.congestion, TCP_CA_OPEN);
    pair_free(p);
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

/* One loss, one reduction: found by duplicate acknowledgements, then by time-outs, as its
 * repetitions are lost, too. */
static void test_reduced_once(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    struct tcp *tp = &p->client->tcp;
    const struct net_stats *stats = net_stats(p->rig->end[0].net);
    p->drop[0].number = 300;
    p->drop[0].times = 3;
    p->value = 1u << 20;
    pair_thread(p, 3, server_reads);
    pair_send_bytes(p, p->value);
    while (tp->congestion != TCP_CA_RECOVERY)
        pair_run(p, 10);
    uint32_t window = tp->ssthresh;
    assert_true(window > 10);
    for (unsigned timeouts = 1; timeouts <= 2; timeouts++) {
        while (stats->timeouts < timeouts)
            pair_run(p, 100);
        assert_int_equal(tp->congestion, TCP_CA_LOSS);
        assert_int_equal(tp->ssthresh, window);
        assert_int_equal(tp->cwnd, 1);
    }
    pair_run(p, 2000000);
    assert_true(p->done[1] && p->done[2]);
    assert_int_equal(tp->ssthresh, window);
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

/* 2 GiB and more after the last loss. */
static void test_loss_after_2_gib(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    p->client->tcp.recover = p->client->tcp.snd_una - 0x80000100u;
    p->value = 1u << 20;
    pair_thread(p, 3, server_reads);
    pair_send_bytes(p, p->value);
    p->lose_from = 0;
    p->lose_data_only = true;
    p->lose_skip = 300;
    p->lose_n = 1;
    pair_run(p, 20000);
    assert_true(p->done[1] && p->done[2]);
    assert_int_equal(net_stats(p->rig->end[0].net)->retransmitted_segments, 1);
    assert_int_equal(net_stats(p->rig->end[0].net)->timeouts, 0);
    pair_free(p);
}

/* The client is told so often that the other side waits for p->value. */
static void client_is_told(void *arg)
{
    struct pair *p = arg;
    struct tcp *tp = &p->client->tcp;
    struct sk_buff ack = { .tcp_seq = tp->rcv_nxt,
                           .tcp_ack = (uint32_t)p->value,
                           .tcp_window = (uint16_t)(tp->snd_wnd >> tp->snd_scale),
                           .tcp_flags = TCP_ACK };
    net_socket_lock(p->client);
    for (unsigned i = 0; i < 4; i++)
        assert_true(tcp_ack(p->client, &ack));
    net_socket_unlock(p->client);
}
static void ends(void *arg)
{
    struct pair *p = arg;
    struct socket *both[] = { p->client, p->server };
    for (unsigned i = 0; i < 2; i++) {
        net_socket_lock(both[i]);
        tcp_done(both[i], -ECONNRESET);
        net_socket_unlock(both[i]);
    }
}
static void tell(struct pair *p, uint32_t ack)
{
    p->value = ack;
    pair_thread(p, 1, client_is_told);
    pair_run(p, 100);
}
/* After a recovery that ended at the end of what had been sent, duplicate acknowledgements may be
 * answers to repetitions, until something new is acknowledged; and not any more from then on. */
static void test_careful(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    struct tcp *tp = &p->client->tcp;
    const struct net_stats *stats = net_stats(p->rig->end[0].net);
    uint32_t first = tp->snd_una, mss = tp->mss;
    p->lose_from = 0;
    p->lose_n = UINT32_MAX; /* the test answers */
    pair_send_bytes(p, 6 * mss);
    pair_run(p, 100);
    assert_int_equal(tp->packets_out, 6);
    tell(p, first);
    assert_int_equal(tp->congestion, TCP_CA_RECOVERY);
    assert_int_equal(stats->retransmitted_segments, 1);
    tell(p, first + 6 * mss);
    assert_int_equal(tp->congestion, TCP_CA_OPEN);
    pair_send_bytes(p, 6 * mss);
    pair_run(p, 100);
    tell(p, first + 6 * mss);
    assert_int_equal(tp->congestion, TCP_CA_OPEN);
    assert_int_equal(stats->retransmitted_segments, 1);
    tell(p, first + 7 * mss);
    assert_int_equal(tp->congestion, TCP_CA_RECOVERY);
    assert_int_equal(stats->retransmitted_segments, 2);
    pair_thread(p, 1, ends); /* they would never agree again */
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
        cmocka_unit_test(test_any_frame_lost),
        cmocka_unit_test(test_after_timeout),
        cmocka_unit_test(test_after_timeout_small),
        cmocka_unit_test(test_loss_after_2_gib),
        cmocka_unit_test(test_reduced_once),
        cmocka_unit_test(test_reduced_again),
        cmocka_unit_test(test_careful),
        cmocka_unit_test(test_cubic),
        cmocka_unit_test(test_cubic_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
