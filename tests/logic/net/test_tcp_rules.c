/* TCP of logic/net/, rule by rule: timers, acknowledgements, Nagle, windows, closing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/tcp_pair.h"

/* ---- Timers ---------------------------------------------------------------------------------- */

static void test_retransmission_timeout(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    /* One sample, of the handshake: R. RTO = R + max(4 R/2, 200 ms) (RFC 6298, 2.2; Linux' bound).
     */
    uint64_t srtt = p->client->tcp.srtt_ps;
    assert_in_range(srtt, FAKE_US(20), FAKE_US(30));
    assert_int_equal(p->client->tcp.rto_ps, srtt + FAKE_MS(200));
    p->lose_from = 0;
    p->lose_n = 3;
    uint64_t rto = p->client->tcp.rto_ps;
    pair_send_bytes(p, 100);
    pair_run(p, 3000000);
    const struct seen *first = pair_frame(p, 0, true, 0), *again = pair_frame(p, 0, true, 1);
    const struct seen *third = pair_frame(p, 0, true, 2), *fourth = pair_frame(p, 0, true, 3);
    /* The first is a loss probe: it is due no later than a time-out, and none itself. */
    assert_at(again->at_ps, first->at_ps + rto - SLACK_PS / 2);
    assert_at(third->at_ps, again->at_ps + rto - SLACK_PS / 2);
    assert_at(fourth->at_ps, third->at_ps + 2 * rto - SLACK_PS / 2);
    assert_null(pair_frame(p, 0, true, 4));
    assert_int_equal(fourth->seq, first->seq);
    assert_int_equal(net_stats(p->rig->end[0].net)->timeouts, 2);
    assert_int_equal(net_stats(p->rig->end[0].net)->loss_probes, 1);
    /* Karn: no sample of what was sent twice; the back-off ends with the acknowledgement. */
    assert_int_equal(p->client->tcp.srtt_ps, srtt);
    assert_int_equal(p->client->tcp.backoff, 0);
    p->value = 100;
    pair_thread(p, 3, server_reads);
    pair_run(p, 1000);
    assert_true(p->done[2]);
    pair_free(p);
}

static void test_rtt_estimator(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    struct tcp *tp = &p->client->tcp;
    tp->srtt_ps = 0;
    tcp_rtt_sample(p->client, FAKE_MS(100));
    assert_int_equal(tp->srtt_ps, FAKE_MS(100));
    assert_int_equal(tp->rttvar_ps, FAKE_MS(50));
    assert_int_equal(tp->rto_ps, FAKE_MS(300));
    tcp_rtt_sample(p->client, FAKE_MS(180));
    /* RTTVAR = 3/4 50 + 1/4 80, SRTT = 7/8 100 + 1/8 180. */
    assert_int_equal(tp->rttvar_ps, FAKE_US(57500));
    assert_int_equal(tp->srtt_ps, FAKE_MS(110));
    assert_int_equal(tp->rto_ps, FAKE_MS(340));
    pair_free(p);
}

/* At first every segment is acknowledged at once; later a single one after 40 ms, two full ones at
 * once. */
static void test_delayed_ack(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    o.no_tso = true;
    struct pair *p = pair_new(&o);
    unsigned quick = 0;
    while (quick < 100) {
        pair_forget(p);
        pair_send_bytes(p, 1448);
        pair_run(p, 1000);
        if (pair_frames(p, 1, false) == 0)
            break;
        quick++;
    }
    /* While the window grows by two segments each from 29,200 bytes up to what unread data leaves
     * of the buffer: 29200 + 2896 n < (376960 - 2304 n) / 2, 40 times; then as many as there are
     * pairs of segments in 29,200 bytes. */
    assert_int_equal(quick, 40 + 29200 / (2 * 1448));
    const struct seen *data = pair_frame(p, 0, true, 0);
    pair_run(p, 38000);
    assert_null(pair_frame(p, 1, false, 0));
    pair_run(p, 3000);
    assert_non_null(pair_frame(p, 1, false, 0));
    assert_at(pair_frame(p, 1, false, 0)->at_ps,
              data->at_ps + FAKE_US(10) + (1448 + 66 + 24) * 80 + FAKE_MS(40));
    /* With a reader that keeps the window open. */
    p->value = (quick + 1 + 100) * 1448;
    pair_thread(p, 3, server_reads);
    pair_run(p, 60000);
    uint64_t left = p->value - (quick + 1) * 1448;
    for (; left > 2 * 1448; left -= 1448) {
        p->value = 1448;
        pair_thread(p, 1, client_sends);
        pair_run(p, 60000);
    }
    pair_forget(p);
    pair_send_bytes(p, 1448);
    pair_run(p, 5000);
    assert_int_equal(pair_frames(p, 1, false), 0);
    pair_send_bytes(p, 1448);
    pair_run(p, 100);
    assert_int_equal(pair_frames(p, 1, false), 1);
    assert_true(p->done[2]);
    pair_free(p);
}

static void nagle(bool on)
{
    struct rig_options o = pair_plain();
    o.params.nagle = on;
    struct pair *p = pair_new(&o);
    pair_send_bytes(p, 100);
    pair_run(p, 5);
    pair_send_bytes(p, 100);
    pair_run(p, 5);
    pair_send_bytes(p, 50);
    pair_run(p, 1000);
    const struct seen *ack = pair_frame(p, 1, false, 0);
    assert_int_equal(pair_frame(p, 0, true, 0)->payload, 100);
    if (on) { /* one small segment in flight; what follows goes together when it has arrived */
        assert_int_equal(pair_frame(p, 0, true, 1)->payload, 150);
        assert_true(pair_frame(p, 0, true, 1)->at_ps > ack->at_ps + FAKE_US(10));
    } else {
        assert_int_equal(pair_frame(p, 0, true, 1)->payload, 100);
        assert_int_equal(pair_frame(p, 0, true, 2)->payload, 50);
        assert_true(pair_frame(p, 0, true, 2)->at_ps < ack->at_ps + FAKE_US(10));
    }
    p->value = 250;
    pair_thread(p, 3, server_reads);
    pair_run(p, 1000);
    pair_free(p);
}
static void test_nagle(void **state)
{
    (void)state;
    nagle(true);
    nagle(false);
}

/* ---- Requests and answers -------------------------------------------------------------------- */

#define ROUNDS 500u
static void client_asks(void *arg)
{
    struct pair *p = arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        assert_int_equal(socket_send(p->client, p->buffer[0], 1), 1);
        assert_int_equal(socket_receive(p->client, p->buffer[0], 64), 1);
    }
    p->done[1] = true;
}
static void server_answers(void *arg)
{
    struct pair *p = arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        assert_int_equal(socket_receive(p->server, p->buffer[1], 64), 1);
        assert_int_equal(socket_send(p->server, p->buffer[1], 1), 1);
    }
    p->done[2] = true;
}
static void test_answers_carry_acknowledgements(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    pair_thread(p, 3, server_answers);
    pair_thread(p, 1, client_asks);
    pair_run(p, 100000);
    assert_true(p->done[1] && p->done[2]);
    assert_int_equal(pair_frames(p, 0, true), ROUNDS);
    assert_int_equal(pair_frames(p, 1, true), ROUNDS);
    assert_true(pair_frames(p, 0, false) + pair_frames(p, 1, false) < 10);
    pair_free(p);
}

/* ---- Windows --------------------------------------------------------------------------------- */

static void zero_window(bool lose_update)
{
    struct rig_options o = pair_plain();
    o.params.receive_buffer_bytes = 65536;
    struct pair *p = pair_new(&o);
    pair_send_bytes(p, 1u << 20);
    pair_run(p, 100000);
    assert_false(p->done[1]);
    struct tcp *tp = &p->client->tcp;
    assert_true(tp->snd_wnd < 1448);
    assert_int_equal(tp->packets_out, 0);
    assert_int_equal(tp->pending, TCP_PENDING_PROBE);
    pair_forget(p);
    pair_run(p, 3000000); /* probes after RTO, 2 RTO, 4 RTO ... less than seven in all */
    assert_in_range(pair_frames(p, 0, false), 2, 5);
    assert_int_equal(pair_frames(p, 0, false), pair_frames(p, 1, false));
    assert_int_equal(pair_frames(p, 0, true), 0);
    assert_int_equal(pair_frame(p, 0, false, 0)->seq, tp->snd_una - 1);
    uint64_t gap = pair_frame(p, 0, false, 1)->at_ps - pair_frame(p, 0, false, 0)->at_ps;
    assert_in_range(gap, FAKE_MS(395), FAKE_MS(810));
    if (lose_update) {
        p->lose_from = 1;
        p->lose_n = 1;
    }
    pair_thread(p, 3, server_reads);
    pair_run(p, 1000);
    assert_int_equal(p->done[2], !lose_update);
    pair_run(p, 10000000);
    assert_true(p->done[1] && p->done[2]);
    assert_int_equal(net_stats(p->rig->end[0].net)->timeouts, 0);
    pair_free(p);
}
static void test_zero_window(void **state)
{
    (void)state;
    zero_window(false);
    zero_window(true);
}

static void first_buffers(uint32_t mtu, uint32_t send, uint32_t client, uint32_t server)
{
    struct rig_options o = pair_plain();
    o.mtu_bytes = mtu;
    struct pair *p = pair_new(&o);
    assert_int_equal(p->client->send_buffer, send);
    assert_int_equal(p->server->send_buffer, send);
    assert_int_equal(p->client->receive_buffer, client);
    assert_int_equal(p->server->receive_buffer, server);
    /* A window of 50 segments that is not full, and no room for writers. */
    p->client->tcp.cwnd = 50;
    p->client->no_space = true;
    tcp_new_space(p->client);
    assert_int_equal(p->client->send_buffer, 5 * send);
    pair_free(p);
}
/* Sending: twice 10 segments, each 256 and the power of two that holds it with 640 bytes more.
 * Receiving: eight times 20 segments, or as many as are in 29,200 bytes, each with 896 bytes more;
 * the side that connects has already taken 12 off for the time stamps. */
static void test_first_buffers(void **state)
{
    (void)state;
    first_buffers(1500, 20 * (4096 + 256), 8 * 20 * (1448 + 896), 8 * 20 * (1460 + 896));
    first_buffers(1448, 20 * (2048 + 256), 8 * 20 * (1396 + 896), 8 * 20 * (1408 + 896));
    first_buffers(9000, 20 * (16384 + 256), 8 * 3 * (8948 + 896), 8 * 3 * (8960 + 896));
    struct rig_options o = pair_plain();
    o.params.send_buffer_bytes = 65536; /* at most */
    o.params.receive_buffer_bytes = 131072;
    struct pair *p = pair_new(&o);
    assert_int_equal(p->client->send_buffer, 65536);
    assert_int_equal(p->client->receive_buffer, 131072);
    pair_free(p);
}

#define TURN 10000u
static void client_sends_in_turns(void *arg)
{
    struct pair *p = arg;
    for (uint64_t left = p->value; left > 0; left -= TURN) {
        assert_int_equal(socket_send(p->client, p->buffer[0], TURN), TURN);
        k_sleep(p->rig->kernel, FAKE_MS(2));
    }
}

/* The window never shrinks, and never passes what is allowed. The buffer grows with what is read in
 * a round trip (space) once that is more than the first window: to four times it and 32 segments,
 * or twice as much while it grows fast. */
static void window_edge(bool in_turns)
{
    struct rig_options o = pair_plain();
    o.stall_percent = 2;
    struct pair *p = pair_new(&o);
    const struct socket *server = p->server;
    uint32_t edge = 0, begin = p->client->tcp.snd_nxt, first = server->receive_buffer;
    p->value = in_turns ? 200 * TURN : 8u << 20;
    pair_thread(p, 1, in_turns ? client_sends_in_turns : client_sends);
    pair_thread(p, 3, server_reads);
    pair_run(p, 1000000);
    assert_true(p->done[2]);
    unsigned scale = p->client->tcp.snd_scale;
    assert_int_equal(scale, 7); /* 6 MiB */
    for (unsigned i = 0; i < p->n; i++)
        if (p->seen[i].from == 1) {
            uint32_t now = p->seen[i].ack - begin + (p->seen[i].window << scale);
            assert_true(now >= edge);
            assert_true(p->seen[i].window << scale <= 3u << 20);
            edge = now;
        }
    if (in_turns) { /* at most two turns are read in a round trip */
        assert_int_equal(server->tcp.space, 29200);
        assert_int_equal(server->receive_buffer, first);
    } else {
        uint32_t least = 4 * server->tcp.space + 32 * server->tcp.mss;
        assert_true(least > first);
        assert_in_range(server->receive_buffer, least, 2 * least);
    }
    pair_free(p);
}
static void test_window_edge(void **state)
{
    (void)state;
    window_edge(false);
    window_edge(true);
}

/* What is at the device is bounded, however slow it is. */
static void test_small_queue(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    o.ps_per_byte = 8000; /* 1 Gb/s */
    struct pair *p = pair_new(&o);
    pair_send_bytes(p, 4u << 20);
    pair_thread(p, 3, server_reads);
    pair_run(p, 100000);
    assert_true(p->done[1] && p->done[2]);
    assert_true(p->peak_alloc > 65536);
    assert_true(p->peak_alloc <= 262144 + 66560);
    assert_int_equal(net_stats(p->rig->end[0].net)->retransmitted_segments, 0);
    /* About a millisecond of it at 1 Gb/s, not more, once the rate is known. */
    p->peak_alloc = 0;
    p->value = 2u << 20;
    p->done[1] = p->done[2] = false;
    pair_send_bytes(p, 2u << 20);
    pair_thread(p, 3, server_reads);
    pair_run(p, 100000);
    assert_true(p->done[1] && p->done[2]);
    assert_true(p->peak_alloc <= 3 * 131072);
    pair_free(p);
}

/* ---- Long paths, small writes ---------------------------------------------------------------- */

/* 1 Gb/s and 20 ms: slow start ends before the path overflows, the receiver opens its window, the
 * socket goes on as its packets leave the device, and the wire is busy. After a pause the window is
 * the initial one. */
static void test_long_path(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    o.latency_ps = FAKE_MS(10);
    o.ps_per_byte = 8000;
    struct pair *p = pair_prepare(&o, PORT);
    pair_thread(p, 1, connects);
    pair_run(p, 100000);
    assert_non_null(p->client);
    const struct tcp *tp = &p->client->tcp;
    p->value = 64u << 20;
    pair_thread(p, 3, server_reads);
    pair_send_bytes(p, 64u << 20);
    pair_run(p, 3000000);
    assert_true(p->done[1] && p->done[2]);
    assert_int_equal(net_stats(p->rig->end[0].net)->retransmitted_segments, 0);
    assert_in_range(tp->ssthresh, 400, 2 * 1650); /* the path holds 1650 segments */
    assert_in_range(p->server->receive_buffer, 4u << 20, 6291456);
    unsigned n = pair_frames(p, 0, true), half = n - (16u << 20) / 1448;
    uint64_t took = p->seen[0].at_ps;
    for (unsigned i = 0, data = 0; i < p->n; i++) {
        data += p->seen[i].from == 0 && p->seen[i].payload > 0;
        if (data == half)
            took = p->seen[i].at_ps;
    }
    took = p->rig->end[0].free_ps - took;
    uint64_t wire = (uint64_t)(n - half) * (1448 + 66 + 24) * 8000;
    assert_in_range(took, wire / 100 * 95, wire / 100 * 110);
    /* Two megabytes at once, which are gone before the first answer: a bounded queue at the device
     * goes on as it empties. */
    p->client->tcp.cwnd = 2000;
    p->client->tcp.last_send_ps = p->rig->kernel->now_ps;
    pair_forget(p);
    p->value = 2u << 20;
    p->done[1] = p->done[2] = false;
    pair_thread(p, 3, server_reads);
    pair_send_bytes(p, 2u << 20);
    pair_run(p, 500000);
    assert_true(p->done[1] && p->done[2]);
    took = p->rig->end[0].free_ps - pair_frame(p, 0, true, 0)->at_ps;
    wire = (uint64_t)pair_frames(p, 0, true) * (1448 + 66 + 24) * 8000;
    assert_in_range(took, wire / 100 * 98, wire / 100 * 105);
    p->value = 1000;
    pair_thread(p, 3, server_reads);
    pair_run(p, 2000000);
    pair_send_bytes(p, 1000);
    pair_run(p, 100000);
    assert_in_range(tp->cwnd, 10, 11);
    pair_free(p);
}

/* Small writes wait for each other while the device has something of the socket. */
static void client_writes_little(void *arg)
{
    struct pair *p = arg;
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(socket_send(p->client, p->buffer[0], 64), 64);
    p->done[1] = true;
}
static void test_autocork(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    o.params.nagle = false;
    o.ps_per_byte = 8000;
    struct pair *p = pair_new(&o);
    p->client->tcp.cwnd = 2000;
    p->value = 64000;
    pair_thread(p, 3, server_reads);
    pair_thread(p, 1, client_writes_little);
    pair_run(p, 100000);
    assert_true(p->done[1] && p->done[2]);
    assert_in_range(pair_frames(p, 0, true), 64000 / 1448, 100);
    pair_free(p);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void server_receives_end(void *arg)
{
    struct pair *p = arg;
    p->value = (uint64_t)socket_receive(p->server, p->buffer[1], 100);
    p->done[2] = true;
}
static void client_closes(void *arg)
{
    struct pair *p = arg;
    socket_close(p->client);
    p->client = NULL;
}
static void test_refused_and_reset(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    /* Nobody listens there. */
    struct socket *kept = p->client;
    p->client = NULL;
    p->port = PORT + 1;
    pair_thread(p, 1, connects);
    pair_run(p, 1000);
    assert_true(p->done[0]);
    assert_null(p->client);
    p->client = kept;
    /* The client goes with data unread: the server is told. */
    p->value = 0;
    pair_thread(p, 3, server_receives_end);
    pair_run(p, 100);
    struct socket *server = p->server;
    assert_false(p->done[2]);
    assert_int_equal(server->tcp.state, TCP_ESTABLISHED);
    p->client->rx_head = skb_new(p->rig->end[0].net);
    p->client->rx_tail = p->client->rx_head;
    pair_thread(p, 1, client_closes);
    pair_run(p, 1000);
    assert_true(p->done[2]);
    assert_int_equal((int64_t)p->value, -ECONNRESET);
    assert_int_equal(server->tcp.state, TCP_CLOSED);
    pair_free(p);
}

/* Half-open connections end on both sides. */
static void test_never_answered(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_prepare(&o, PORT);
    uint64_t begin = p->rig->kernel->now_ps;
    p->lose_from = 1;
    p->lose_n = UINT32_MAX;
    pair_thread(p, 1, connects);
    pair_run(p, 126000000);
    assert_false(p->done[0]);
    pair_run(p, 2000000); /* 1 + 2 + 4 + ... + 64 s */
    assert_true(p->done[0]);
    assert_null(p->client);
    assert_null(p->server);
    assert_int_equal(pair_frames(p, 0, false), 7);
    assert_in_range(pair_frame(p, 0, false, 6)->at_ps - begin, FAKE_MS(63000), FAKE_MS(63001));
    pair_run(p, 200000000);
    pair_free(p);
}

/* Of the handshake only the SYN arrives: the other side tells five times, then forgets. */
static void test_half_open(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_prepare(&o, PORT);
    uint64_t begin = p->rig->kernel->now_ps;
    p->lose_from = 0;
    p->lose_skip = 1;
    p->lose_n = UINT32_MAX;
    pair_thread(p, 1, connects);
    pair_run(p, 62000000);
    assert_non_null(p->client);
    assert_int_equal(p->listener->tcp.n_accept, 1);
    pair_run(p, 2000000); /* 1 + 2 + 4 + ... + 32 s */
    assert_int_equal(p->listener->tcp.n_accept, 0);
    assert_null(p->server);
    assert_int_equal(pair_frames(p, 1, false), 6);
    assert_in_range(pair_frame(p, 1, false, 5)->at_ps - begin, FAKE_MS(31000), FAKE_MS(31001));
    p->lose_n = 0;
    pair_free(p);
}

/* ---- Segments that no handshake has ---------------------------------------------------------- */

/* A server that waits for the last segment of a handshake: the client's are lost but its SYN. */
struct half_open {
    struct pair *p;
    uint8_t syn[60], frame[60]; /* the client's SYN; what came last from the server */
    uint32_t seq, ack, window;  /* what the server expects */
    unsigned n_answers;
};
static bool keep_syn(struct rig *rig, unsigned from, const uint8_t *head, uint32_t bytes, void *arg)
{
    struct half_open *h = arg;
    bool first = from == 0 && h->seq == 0;
    (void)rig, (void)bytes;
    memcpy(from == 0 ? h->syn : h->frame, head, 54);
    if (first)
        h->seq = RIG_SEQ(head) + 1;
    h->n_answers += from == 1;
    return !first; /* nothing else arrives */
}
static struct half_open *half_open_new(void)
{
    struct rig_options o = pair_plain();
    struct half_open *h = k_zalloc(sizeof *h);
    h->p = pair_prepare(&o, PORT);
    h->p->rig->filter = keep_syn;
    h->p->rig->filter_arg = h;
    pair_thread(h->p, 1, connects);
    pair_run(h->p, 500);
    assert_int_equal(h->p->listener->tcp.n_accept, 1);
    assert_int_equal(RIG_FLAGS(h->frame), TCP_SYN | TCP_ACK);
    h->ack = RIG_SEQ(h->frame) + 1;
    h->window = RIG_WINDOW(h->frame);
    return h;
}
static void half_open_free(struct half_open *h)
{
    pair_run(h->p, 130000000); /* the client gives up */
    h->p->rig->filter = NULL;
    pair_free(h->p);
    free(h);
}
/* Flags of the server's answer to it; 0: none. */
static uint8_t answer_to(struct half_open *h, uint8_t flags, uint32_t seq, uint32_t ack)
{
    uint8_t frame[54];
    memcpy(frame, h->syn, sizeof frame);
    net_rig_put(frame + 16, 40, 2); /* headers without options */
    frame[46] = 0x50;
    frame[47] = flags;
    net_rig_put(frame + 38, seq, 4);
    net_rig_put(frame + 42, ack, 4);
    h->n_answers = 0;
    net_rig_inject(h->p->rig, 1, frame, sizeof frame);
    pair_run(h->p, 100);
    assert_in_range(h->n_answers, 0, 1);
    return h->n_answers ? RIG_FLAGS(h->frame) : 0;
}
static void assert_is_ack(const struct half_open *h)
{
    assert_int_equal(RIG_SEQ(h->frame), h->ack);
    assert_int_equal(RIG_ACK(h->frame), h->seq);
}

/* tcp_check_req(), RFC 5961 3.2. */
static void test_segments_in_a_handshake(void **state)
{
    (void)state;
    struct half_open *h = half_open_new();
    const struct tcp *listener = &h->p->listener->tcp;
    /* Resets: beyond the window, before it, for another handshake; in the window. */
    assert_int_equal(answer_to(h, TCP_RST, h->seq + h->window + 1, 0), 0);
    assert_int_equal(answer_to(h, TCP_RST, h->seq - 1, 0), 0);
    assert_int_equal(answer_to(h, TCP_RST | TCP_ACK, h->seq, h->ack + 1), 0);
    assert_int_equal(answer_to(h, TCP_RST, h->seq + 1, 0), TCP_ACK);
    assert_is_ack(h);
    assert_int_equal(answer_to(h, TCP_RST, h->seq + h->window - 1, 0), TCP_ACK);
    /* Acknowledgements of what was not sent. */
    assert_int_equal(answer_to(h, TCP_ACK, h->seq, h->ack + 1), TCP_RST);
    assert_int_equal(RIG_SEQ(h->frame), h->ack + 1);
    assert_int_equal(answer_to(h, TCP_ACK, h->seq, h->ack - 1), TCP_RST);
    /* Right ones, but not in the window; neither; the SYN again. */
    assert_int_equal(answer_to(h, TCP_ACK, h->seq + 2 * h->window, h->ack), TCP_ACK);
    assert_is_ack(h);
    assert_int_equal(answer_to(h, 0, h->seq, 0), 0);
    assert_int_equal(answer_to(h, TCP_SYN, h->seq - 1, 0), TCP_SYN | TCP_ACK);
    assert_int_equal(listener->n_accept, 1);
    assert_null(listener->accept_first);
    /* The right one. */
    assert_int_equal(answer_to(h, TCP_ACK, h->seq, h->ack), 0);
    assert_non_null(h->p->server);
    half_open_free(h);
}
static void test_resets_in_a_handshake(void **state)
{
    (void)state;
    static const uint8_t ends[] = { TCP_RST, TCP_RST | TCP_ACK, TCP_SYN };
    for (unsigned i = 0; i < sizeof ends; i++) {
        struct half_open *h = half_open_new();
        bool again = ends[i] == TCP_SYN; /* another one, in the window */
        assert_int_equal(answer_to(h, ends[i], h->seq + again, h->ack),
                         again ? TCP_RST | TCP_ACK : 0);
        assert_int_equal(h->p->listener->tcp.n_accept, 0);
        half_open_free(h);
    }
}

static void test_orderly_end(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    struct socket *client = p->client;
    net_socket_get(client);
    p->value = 99;
    pair_thread(p, 3, server_receives_end);
    pair_thread(p, 1, client_closes);
    pair_run(p, 1000);
    assert_true(p->done[2]);
    assert_int_equal(p->value, 0);
    assert_int_equal(p->server->tcp.state, TCP_CLOSE_WAIT);
    pair_run(p, 50000); /* the acknowledgement of the FIN waited for one of the other side */
    assert_int_equal(client->tcp.state, TCP_FIN_WAIT2);
    pair_thread(p, 1, closes);
    pair_run(p, 1000);
    p->server = p->listener = NULL;
    assert_int_equal(client->tcp.state, TCP_TIME_WAIT);
    pair_run(p, 59000000);
    assert_int_equal(client->tcp.state, TCP_TIME_WAIT);
    pair_run(p, 2000000);
    assert_int_equal(client->tcp.state, TCP_CLOSED);
    net_socket_put(client);
    pair_free(p);
}

static void listener_closes(void *arg)
{
    struct pair *p = arg;
    socket_close(p->listener);
    p->listener = NULL;
}
static void connects_again(void *arg)
{
    struct pair *p = arg;
    struct socket *sk = socket_tcp_connect(p->rig->end[0].net, 0, RIG_IP(1), p->port);
    assert_non_null(sk);
    k_sleep(p->rig->kernel, FAKE_MS(2));
    p->value = (uint64_t)socket_receive(sk, p->buffer[0], 10);
    socket_close(sk);
    p->done[3] = true;
}
static void test_listener_closes(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    pair_thread(p, 1, connects_again);
    pair_run(p, 1000);
    assert_non_null(p->listener->tcp.accept_first);
    pair_thread(p, 3, listener_closes);
    pair_run(p, 3000);
    assert_true(p->done[3]);
    assert_int_equal((int64_t)p->value, -ECONNRESET);
    pair_free(p);
}

/* Sequence numbers pass zero. */
static void test_sequence_wraps(void **state)
{
    (void)state;
    struct flow_key flow = { .source_ip = RIG_IP(1),
                             .destination_ip = RIG_IP(0),
                             .destination_port = 32768,
                             .protocol = 6 };
    uint16_t port = 1000;
    for (flow.source_port = port; net_toeplitz(&flow) < 0xfff00000u; flow.source_port = ++port)
        assert_true(port < 65535);
    for (unsigned seed = 1; seed < 4; seed++) {
        struct rig_options o = pair_plain();
        o.seed = seed;
        o.loss_permille = (seed - 1) * 5;
        struct pair *p = pair_prepare(&o, port);
        pair_thread(p, 1, connects);
        pair_run(p, 5000000);
        assert_non_null(p->client);
        uint32_t before = p->client->tcp.snd_nxt;
        assert_true(before >= 0xfff00000u);
        pair_send_bytes(p, 3u << 20);
        pair_thread(p, 3, server_reads);
        pair_run(p, 60000000);
        assert_true(p->done[1] && p->done[2]);
        assert_true(p->client->tcp.snd_nxt < before);
        p->rig->options.loss_permille = 0;
        pair_free(p);
    }
}

/* ---- Sets of sockets ------------------------------------------------------------------------- */

#define N_SET 3u
struct many {
    struct pair *p;
    struct socket *sk[N_SET], *peer[N_SET];
    unsigned got[N_SET], order[30], n;
};
static void many_serve(void *arg)
{
    struct many *m = arg;
    struct net *net = m->p->rig->end[1].net;
    struct socket *listener = socket_tcp_listen(net, 0, PORT + 7);
    struct socket_set *set = socket_set_new(net);
    unsigned n = 0, zero = 0;
    char listens;
    socket_set_add(set, listener, &listens);
    while (zero < N_SET) {
        void *data = socket_set_wait(set);
        if (data == &listens) {
            m->peer[n] = socket_accept(listener);
            socket_set_add(set, m->peer[n], &m->peer[n]);
            n++;
            continue;
        }
        unsigned i = (unsigned)((struct socket **)data - m->peer);
        int64_t bytes = socket_receive_nowait(m->peer[i], m->p->buffer[1], 10);
        assert_true(bytes >= 0);
        if (bytes == 0) {
            zero++;
            socket_close(m->peer[i]);
            continue;
        }
        m->order[m->n++] = i;
        m->got[i] += (unsigned)bytes;
    }
    socket_close(listener);
    socket_set_free(set);
    m->p->done[2] = true;
}
static void many_ask(void *arg)
{
    struct many *m = arg;
    for (unsigned i = 0; i < N_SET; i++)
        m->sk[i] = socket_tcp_connect(m->p->rig->end[0].net, 0, RIG_IP(1), PORT + 7);
    k_sleep(m->p->rig->kernel, FAKE_MS(1));
    for (unsigned i = 0; i < N_SET; i++)
        socket_send(m->sk[i], m->p->buffer[0], 40);
    k_sleep(m->p->rig->kernel, FAKE_MS(1));
    for (unsigned i = 0; i < N_SET; i++)
        socket_close(m->sk[i]);
}
static void test_socket_set(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    struct many m = { .p = p };
    k_thread_new(p->rig->kernel, "serve", 3, many_serve, &m);
    pair_run(p, 100);
    k_thread_new(p->rig->kernel, "ask", 1, many_ask, &m);
    pair_run(p, 10000);
    assert_true(p->done[2]);
    for (unsigned i = 0; i < N_SET; i++)
        assert_int_equal(m.got[i], 40);
    assert_int_equal(m.n, N_SET * 4);
    /* No socket waits while another is served twice. */
    for (unsigned i = N_SET; i + N_SET < m.n; i++)
        assert_true(m.order[i] != m.order[i + 1] || m.order[i] != m.order[i + 2]);
    pair_free(p);
}

/* A send that does not wait takes what there is room for; the set tells when there is room again.
 */
static void set_sends(void *arg)
{
    struct pair *p = arg;
    struct socket_set *set = socket_set_new(p->rig->end[1].net);
    uint64_t sent = 0;
    socket_set_add(set, p->server, p);
    while (sent < p->value) {
        int64_t n = socket_send_nowait(p->server, kaddr_add(p->buffer[1], sent), p->value - sent);
        if (n == -EAGAIN) {
            p->drop[0].number++; /* waits */
            assert_ptr_equal(socket_set_wait(set), p);
            continue;
        }
        assert_true(n > 0);
        sent += (uint64_t)n;
    }
    socket_set_free(set);
    p->done[2] = true;
}
static void client_reads(void *arg)
{
    struct pair *p = arg;
    for (uint64_t got = 0; got < p->value;) {
        int64_t n = socket_receive(p->client, kaddr_add(p->buffer[0], got), p->value - got);
        assert_true(n > 0);
        got += (uint64_t)n;
    }
    net_rig_check(p->rig->kernel, p->buffer[0], 3, 0, p->value);
    p->done[1] = true;
}
static void test_send_without_waiting(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct pair *p = pair_new(&o);
    p->value = 1u << 20;
    net_rig_fill(p->rig->kernel, p->buffer[1], 3, 0, p->value);
    pair_thread(p, 3, set_sends);
    pair_run(p, 100);
    assert_false(p->done[2]);
    pair_run(p, 5000);
    const unsigned waits = p->drop[0].number;
    assert_true(waits > 0);
    pair_run(p, 5000); /* nobody reads: sleeps on */
    assert_int_equal(p->drop[0].number, waits);
    assert_false(p->done[2]);
    pair_thread(p, 1, client_reads);
    pair_run(p, 100000);
    assert_true(p->done[1] && p->done[2]);
    assert_in_range(p->drop[0].number, waits, waits + 20);
    p->drop[0].number = 0;
    pair_free(p);
}

/* ---- Addresses ------------------------------------------------------------------------------- */

struct second {
    struct pair *p;
    struct net_device dev;
    struct socket *listener, *accepted, *udp, *client;
};
#define SECOND_IP RIG_IP(7)

static void second_serves(void *arg)
{
    struct second *s = arg;
    s->listener = socket_tcp_listen(s->p->rig->end[1].net, SECOND_IP, PORT + 1);
    s->udp = socket_udp_bind(s->p->rig->end[1].net, SECOND_IP, PORT + 2);
    socket_udp_connect(s->udp, RIG_IP(0), PORT);
    s->accepted = socket_accept(s->listener);
    assert_int_equal(socket_send(s->accepted, s->p->buffer[1], 100000), 100000);
    assert_int_equal(socket_send(s->udp, s->p->buffer[1], 100), 100);
}
static void second_asks(void *arg)
{
    struct second *s = arg;
    struct net *net = s->p->rig->end[0].net;
    assert_null(socket_tcp_connect(net, 0, SECOND_IP, PORT + 9)); /* its reset, too */
    s->client = socket_tcp_connect(net, 0, SECOND_IP, PORT + 1);
    for (uint64_t got = 0; got < 100000;) {
        int64_t n = socket_receive(s->client, s->p->buffer[0], 1u << 20);
        assert_true(n > 0);
        got += (uint64_t)n;
    }
    s->p->done[0] = true;
}
static void second_closes(void *arg)
{
    struct second *s = arg;
    socket_close(s->client);
    socket_close(s->accepted);
    socket_close(s->listener);
    socket_close(s->udp);
}
static uint64_t sent_packets(const struct net_device *dev)
{
    uint64_t n = 0;
    for (unsigned q = 0; q < dev->n_tx_queues; q++)
        n += dev->tx[q].packets;
    return n;
}

/* What is from an address leaves through the device that has it, though the route to the peer is
 * through another; without that device, through the other. */
static void test_address_decides_device(void **state)
{
    (void)state;
    struct rig_options o = pair_plain();
    struct second s = { .p = pair_new(&o) };
    struct rig_end *end = &s.p->rig->end[1];
    s.dev = (struct net_device){ .name = "b1",
                                 .ops = end->dev.ops,
                                 .mac = { { 0, 0, 0, 0, 0, 9 } },
                                 .ip = SECOND_IP,
                                 .mtu_bytes = 1500,
                                 .features = end->dev.features,
                                 .n_tx_queues = end->dev.n_tx_queues,
                                 .n_rx_queues = end->dev.n_rx_queues,
                                 .running = true,
                                 .carrier = true,
                                 .private_data = end };
    assert_int_equal(net_device_register(end->net, &s.dev), 0);
    xps_map_default(&s.dev);
    net_route_add(s.p->rig->end[0].net, SECOND_IP, &s.p->rig->end[0].dev);
    net_neighbour_add(s.p->rig->end[0].net, SECOND_IP, s.dev.mac);
    const uint64_t first_sent = sent_packets(&end->dev);
    k_thread_new(s.p->rig->kernel, "serves", 3, second_serves, &s);
    pair_run(s.p, 10);
    k_thread_new(s.p->rig->kernel, "asks", 1, second_asks, &s);
    pair_run(s.p, 10000);
    assert_true(s.p->done[0]);
    assert_int_equal(sent_packets(&end->dev), first_sent);
    assert_true(sent_packets(&s.dev) > 3);
    assert_ptr_equal(s.accepted->dev, &s.dev);
    assert_ptr_equal(s.udp->dev, &s.dev);
    assert_ptr_equal(s.p->server->dev, &end->dev);
    net_device_unregister(&s.dev);
    assert_true(net_route_socket(s.accepted));
    assert_ptr_equal(s.accepted->dev, &end->dev);
    k_thread_new(s.p->rig->kernel, "closes", 1, second_closes, &s);
    pair_run(s.p, 1000);
    pair_free(s.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_retransmission_timeout),
        cmocka_unit_test(test_rtt_estimator),
        cmocka_unit_test(test_delayed_ack),
        cmocka_unit_test(test_nagle),
        cmocka_unit_test(test_answers_carry_acknowledgements),
        cmocka_unit_test(test_zero_window),
        cmocka_unit_test(test_first_buffers),
        cmocka_unit_test(test_window_edge),
        cmocka_unit_test(test_small_queue),
        cmocka_unit_test(test_long_path),
        cmocka_unit_test(test_autocork),
        cmocka_unit_test(test_refused_and_reset),
        cmocka_unit_test(test_never_answered),
        cmocka_unit_test(test_half_open),
        cmocka_unit_test(test_segments_in_a_handshake),
        cmocka_unit_test(test_resets_in_a_handshake),
        cmocka_unit_test(test_orderly_end),
        cmocka_unit_test(test_listener_closes),
        cmocka_unit_test(test_sequence_wraps),
        cmocka_unit_test(test_socket_set),
        cmocka_unit_test(test_send_without_waiting),
        cmocka_unit_test(test_address_decides_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
