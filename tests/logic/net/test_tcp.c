/* TCP of logic/net/ on a fake kernel: streams over a wire that loses, repeats and reorders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/tcp_pair.h"

/* ---- A stream from one host to the other ----------------------------------------------------- */

struct stream {
    struct rig *rig;
    unsigned number, from;
    uint64_t bytes; /* to be sent */
    uint32_t write_max, read_max;
    unsigned pause_permille; /* reader and writer sleep now and then */
    uint64_t pause_ps;
    uint64_t sent, received;
    bool pages; /* sent without a copy */
    bool writer_done, reader_done;
};

static void pause_maybe(struct stream *s)
{
    struct kernel *kernel = s->rig->kernel;
    if (fake_random(kernel, 1000) < s->pause_permille)
        k_sleep(kernel, fake_random(kernel, s->pause_ps));
}

static uint32_t some(struct kernel *kernel, uint32_t max)
{
    /* Small and large ones alike. */
    uint32_t below = fake_random(kernel, 2) ? max : max < 100 ? max : 100;
    return 1 + (uint32_t)fake_random(kernel, below);
}

static int64_t send_pages(struct stream *s, struct socket *sk, uint32_t n)
{
    struct kernel *kernel = s->rig->kernel;
    struct skb_frag frag[4] = { { .page = NULL } };
    unsigned n_frags = 0;
    uint32_t done = 0;
    while (done < n && n_frags < 4) {
        struct k_page *page = k_page_alloc(kernel, K_NODE_LOCAL, 0);
        assert_non_null(page);
        uint32_t offset = (uint32_t)fake_random(kernel, 2000);
        uint32_t part = n - done < K_PAGE_BYTES - offset ? n - done : K_PAGE_BYTES - offset;
        net_rig_fill(kernel, kaddr_add(page->addr, offset), s->number, s->sent + done, part);
        frag[n_frags++] = (struct skb_frag){ page, offset, part, (int8_t)page->node };
        done += part;
    }
    int64_t sent = socket_send_pages(sk, frag, n_frags);
    assert_int_equal(sent, done);
    for (unsigned i = 0; i < n_frags; i++)
        k_page_put(kernel, frag[i].page);
    return sent;
}

static void writer(void *arg)
{
    struct stream *s = arg;
    struct kernel *kernel = s->rig->kernel;
    struct net *net = s->rig->end[s->from].net;
    struct kaddr buffer = k_alloc(kernel, K_NODE_LOCAL, s->write_max, 64);
    struct socket *sk = socket_tcp_connect(net, 0, RIG_IP(!s->from), (uint16_t)(PORT + s->number));
    assert_non_null(sk);
    while (s->sent < s->bytes) {
        uint32_t n = some(kernel, s->write_max);
        n = n < s->bytes - s->sent ? n : (uint32_t)(s->bytes - s->sent);
        int64_t done;
        if (s->pages)
            done = send_pages(s, sk, n);
        else {
            net_rig_fill(kernel, buffer, s->number, s->sent, n);
            done = socket_send(sk, buffer, n);
            if (done == -ENOMEM) {
                k_sleep(kernel, FAKE_US(10));
                continue;
            }
            assert_true(done > 0 && done <= n);
        }
        s->sent += (uint64_t)done;
        pause_maybe(s);
    }
    socket_close(sk);
    s->writer_done = true;
}

static void reader(void *arg)
{
    struct stream *s = arg;
    struct kernel *kernel = s->rig->kernel;
    struct net *net = s->rig->end[!s->from].net;
    struct kaddr buffer = k_alloc(kernel, K_NODE_LOCAL, s->read_max, 64);
    struct socket *listener = socket_tcp_listen(net, 0, (uint16_t)(PORT + s->number));
    struct socket *sk = socket_accept(listener);
    assert_non_null(sk);
    for (;;) {
        int64_t n = socket_receive(sk, buffer, some(kernel, s->read_max));
        if (n <= 0) {
            assert_int_equal(n, 0);
            break;
        }
        net_rig_check(kernel, buffer, s->number, s->received, (size_t)n);
        s->received += (uint64_t)n;
        pause_maybe(s);
    }
    assert_int_equal(s->received, s->bytes);
    socket_close(sk);
    socket_close(listener);
    s->reader_done = true;
}

static void streams_start(struct stream *s, unsigned n, unsigned shift)
{
    struct kernel *kernel = s->rig->kernel;
    for (unsigned i = 0; i < n; i++)
        k_thread_new(kernel, "reader", (int)(!s[i].from * 2u + shift), reader, &s[i]);
    fake_run_until(kernel, kernel->now_ps + FAKE_MS(1));
    for (unsigned i = 0; i < n; i++)
        k_thread_new(kernel, "writer", (int)(s[i].from * 2 + i % 2), writer, &s[i]);
}

static struct rig_options plain(uint64_t seed)
{
    struct rig_options o = {
        .seed = seed, .params = net_params_default, .latency_ps = FAKE_US(2), .ps_per_byte = 80
    };
    return o;
}

static struct stream stream_of(struct rig *rig, unsigned number, uint64_t bytes, uint32_t write_max,
                               uint32_t read_max)
{
    return (struct stream){
        .rig = rig, .number = number, .bytes = bytes, .write_max = write_max, .read_max = read_max
    };
}

static void run(struct rig *rig, uint64_t ms)
{
    fake_run_until(rig->kernel, rig->kernel->now_ps + FAKE_MS(ms));
}

/* ---- Whole streams --------------------------------------------------------------------------- */

static void test_stream(void **state)
{
    (void)state;
    struct rig_options o = plain(1);
    o.moderation_ps = FAKE_US(8);
    struct rig *rig = net_rig_new(&o);
    struct stream s = stream_of(rig, 0, 20u << 20, 65536, 65536);
    streams_start(&s, 1, 1);
    run(rig, 1000);
    assert_true(s.writer_done && s.reader_done);
    const struct net_stats *a = net_stats(rig->end[0].net), *b = net_stats(rig->end[1].net);
    assert_int_equal(a->retransmitted_segments, 0);
    assert_int_equal(a->timeouts, 0);
    assert_int_equal(b->out_of_order_segments, 0);
    assert_int_equal(rig->end[0].payload, 20u << 20);
    /* Buffers grow to all that a packet may be, and are merged again. */
    assert_int_equal(rig->end[0].largest, 45 * 1448);
    assert_true(b->gro_merged > 10000);
    run(rig, 130000); /* TIME_WAIT passes */
    net_rig_free(rig);
}

/* The scoreboard is right whenever something is sent. */
static bool look(struct rig *rig, unsigned from, const uint8_t *head, uint32_t bytes, void *arg)
{
    (void)head;
    (void)bytes;
    (void)arg;
    for (struct socket *sk = rig->end[from].net->all; sk; sk = sk->next)
        if (sk->flow.protocol == PROTOCOL_TCP && !sk->listening)
            scoreboard_check(sk);
    return false;
}

/* Everything at once: loss, damage, repetition, overtaking, stalls of CPUs, moving interrupts,
 * small rings, two streams in each direction, all sizes. */
static void test_streams_at_random(void **state)
{
    (void)state;
    uint64_t retransmitted = 0, lost = 0, timeouts = 0, merged = 0, damaged = 0, bad = 0;
    uint64_t used[2] = { 0, 0 };
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct rig_options o = plain(seed);
        o.stall_percent = seed % 3 ? 1 : 0;
        o.loss_permille = seed % 4 ? (unsigned)seed % 51 : 0;
        o.repeat_permille = seed % 6 == 1 ? 50 : (unsigned)seed % 11;
        o.damage_permille = seed % 8 == 2 ? 10 : 0;
        o.unchecked = seed % 8 == 5;
        o.overtake_permille = seed % 5 == 0 ? 50 : 0;
        o.ring = seed % 2 ? 4 : 64;
        o.wander = seed % 3 == 1;
        o.spread = seed % 13 == 6;
        o.one_queue = seed % 3 == 2;
        o.moderation_ps = seed % 2 ? FAKE_US(10) : 0;
        o.no_tso = seed % 7 == 3;
        o.params.tso = seed % 7 != 4;
        o.params.gro = seed % 6 != 5;
        o.params.nagle = seed % 8 != 7;
        o.params.rto_min_ps = FAKE_MS(5);
        o.mtu_bytes = seed % 9 == 8 ? 9000 : 1500;
        o.params.receive_buffer_bytes = seed % 5 == 1 ? 65536 : 6291456;
        o.fail_page_every = seed % 10 == 9 ? 500 : 0;
        struct rig *rig = net_rig_new(&o);
        rig->filter = look;
        struct stream s[4];
        for (unsigned i = 0; i < 4; i++) {
            s[i] = stream_of(rig, i, 1u << (17 + i), i % 2 ? 300 : 150000, i < 2 ? 70000 : 5000);
            s[i].from = i / 2;
            s[i].pause_permille = i * 3;
            s[i].pause_ps = FAKE_US(300);
            s[i].pages = i == 2 && !o.fail_page_every;
        }
        streams_start(s, 4, seed & 1);
        for (unsigned i = 0; i < 3000; i++) {
            bool done = true;
            for (unsigned j = 0; j < 4; j++)
                done = done && s[j].writer_done && s[j].reader_done;
            if (done)
                break;
            run(rig, 20);
        }
        for (unsigned i = 0; i < 4; i++)
            if (!s[i].reader_done || !s[i].writer_done)
                fail_msg("seed %d: stream %u stands at %d of %d bytes", (int)seed, i,
                         (int)s[i].received, (int)s[i].bytes);
        for (unsigned host = 0; host < 2; host++) {
            const struct net_stats *stats = net_stats(rig->end[host].net);
            retransmitted += stats->retransmitted_segments;
            timeouts += stats->timeouts;
            merged += stats->gro_merged;
            bad += stats->bad_checksums;
        }
        lost += rig->lost;
        damaged += rig->damaged;
        used[0] += rig->end[0].on_queue[0];
        used[1] += rig->end[0].on_queue[1];
        if (rig->lost + rig->damaged == 0 && !o.overtake_permille && !o.fail_page_every)
            assert_int_equal(net_stats(rig->end[0].net)->timeouts, 0);
        run(rig, 130000);
        net_rig_free(rig);
    }
    if (getenv("NET_PRINT"))
        print_message("lost %d retransmitted %d timeouts %d merged %d\n", (int)lost,
                      (int)retransmitted, (int)timeouts, (int)merged);
    assert_true(lost > 300);
    assert_true(retransmitted >= lost / 2);
    assert_true(merged > 1000);
    assert_true(bad > 100);
    assert_in_range(bad, damaged / 2, damaged); /* others break a header */
    assert_true(used[0] > 1000 && used[1] > 1000);
    assert_true(timeouts > 0 && timeouts < retransmitted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_streams_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
