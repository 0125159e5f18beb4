/* UDP of logic/net/ on a fake kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "logic/net/net_internal.h"
#include "tests/support/net_rig.h"

#define PORT 9000u

struct talk {
    struct rig *rig;
    struct socket *a, *b;
    struct kaddr buffer[2];
    unsigned n; /* datagrams */
    unsigned received;
    uint32_t bytes_max;
    uint64_t pause_ps;
    bool done[2];
};

static struct talk *talk_new(const struct rig_options *o)
{
    struct talk *t = k_zalloc(sizeof *t);
    t->rig = net_rig_new(o);
    for (unsigned host = 0; host < 2; host++)
        t->buffer[host] = k_alloc(t->rig->kernel, (int)host, 65536, 64);
    t->a = socket_udp_bind(t->rig->end[0].net, RIG_IP(0), PORT);
    t->b = socket_udp_bind(t->rig->end[1].net, 0, PORT + 1);
    assert_non_null(t->a);
    assert_non_null(t->b);
    assert_null(socket_udp_bind(t->rig->end[0].net, RIG_IP(0), PORT));
    socket_udp_connect(t->a, RIG_IP(1), PORT + 1);
    return t;
}

static void talk_free(struct talk *t)
{
    socket_close(t->a);
    socket_close(t->b);
    fake_run_until(t->rig->kernel, t->rig->kernel->now_ps + FAKE_MS(10));
    net_rig_free(t->rig);
    free(t);
}

static struct rig_options plain(void)
{
    struct rig_options o = {
        .seed = 1, .params = net_params_default, .latency_ps = FAKE_US(2), .ps_per_byte = 80
    };
    return o;
}

static uint32_t size_of(const struct talk *t, unsigned i)
{
    return 1 + i * 7919u % t->bytes_max;
}

static void sends(void *arg)
{
    struct talk *t = arg;
    for (unsigned i = 0; i < t->n; i++) {
        uint32_t bytes = size_of(t, i);
        net_rig_fill(t->rig->kernel, t->buffer[0], i, 0, bytes);
        assert_int_equal(socket_send(t->a, t->buffer[0], bytes), bytes);
        k_sleep(t->rig->kernel, t->pause_ps);
    }
    t->done[0] = true;
}
static void receives(void *arg)
{
    struct talk *t = arg;
    for (unsigned i = 0; i < t->n; i++) {
        int64_t n = socket_receive(t->b, t->buffer[1], 2000);
        assert_int_equal(n, size_of(t, i));
        net_rig_check(t->rig->kernel, t->buffer[1], i, 0, (size_t)n);
        t->received++;
    }
    t->done[1] = true;
}

/* Every datagram as it was sent, in order, whatever its size (small ones are padded on the wire).
 */
static void test_datagrams(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 6; seed++) {
        struct rig_options o = plain();
        o.seed = seed;
        o.stall_percent = seed % 2;
        o.ring = seed % 2 ? 3 : 64;
        struct talk *t = talk_new(&o);
        t->n = 1000;
        t->bytes_max = 1472;
        t->pause_ps = FAKE_US(30);
        k_thread_new(t->rig->kernel, "b", 3, receives, t);
        k_thread_new(t->rig->kernel, "a", 1, sends, t);
        fake_run_until(t->rig->kernel, FAKE_MS(200));
        assert_true(t->done[0] && t->done[1]);
        assert_int_equal(net_stats(t->rig->end[1].net)->dropped_packets, 0);
        talk_free(t);
    }
}

/* A damaged one is dropped; a device that does not check is believed. */
static void test_checksums(void **state)
{
    (void)state;
    for (unsigned unchecked = 0; unchecked < 2; unchecked++) {
        struct rig_options o = plain();
        o.unchecked = unchecked;
        struct talk *t = talk_new(&o);
        const struct net_stats *stats = net_stats(t->rig->end[1].net);
        t->n = 100;
        t->bytes_max = 1472;
        t->rig->options.damage_permille = unchecked ? 0 : 1000;
        k_thread_new(t->rig->kernel, "b", 3, receives, t);
        k_thread_new(t->rig->kernel, "a", 1, sends, t);
        fake_run_until(t->rig->kernel, FAKE_MS(100));
        assert_true(t->done[0]);
        assert_int_equal(t->received, unchecked ? 100 : 0);
        assert_int_equal(stats->bad_checksums, unchecked ? 0 : 100);
        assert_int_equal(stats->dropped_packets, unchecked ? 0 : 100);
        t->rig->options.damage_permille = 0;
        if (!unchecked) {
            k_thread_new(t->rig->kernel, "a", 1, sends, t);
            fake_run_until(t->rig->kernel, FAKE_MS(200));
        }
        assert_true(t->done[1]);
        talk_free(t);
    }
}

/* Who does not read loses what does not fit; the sender waits for its device, nothing else. */
static void test_buffers(void **state)
{
    (void)state;
    struct rig_options o = plain();
    o.ps_per_byte = 8000;
    struct talk *t = talk_new(&o);
    t->n = 400;
    t->bytes_max = 1472;
    k_thread_new(t->rig->kernel, "a", 1, sends, t);
    fake_run_until(t->rig->kernel, FAKE_US(500));
    assert_false(t->done[0]);
    assert_in_range(t->a->wmem_alloc, 212992 / 2, 212992 + 2752);
    fake_run_until(t->rig->kernel, FAKE_MS(20));
    assert_true(t->done[0]);
    assert_int_equal(t->a->wmem_alloc, 0);
    unsigned kept = 212992 / 2304 + 1; /* of one that is not full the next one is taken */
    assert_int_equal(net_stats(t->rig->end[1].net)->dropped_packets, t->n - kept);
    t->n = kept;
    k_thread_new(t->rig->kernel, "b", 3, receives, t);
    fake_run_until(t->rig->kernel, FAKE_MS(30));
    assert_int_equal(t->received, kept);
    talk_free(t);
}

static void odd_ones(void *arg)
{
    struct talk *t = arg;
    struct kernel *kernel = t->rig->kernel;
    assert_int_equal(socket_send(t->a, t->buffer[0], 1473), -EMSGSIZE);
    assert_int_equal(socket_send(t->b, t->buffer[1], 10), -ENOTCONN);
    assert_int_equal(socket_receive_nowait(t->b, t->buffer[1], 10), -EAGAIN);
    net_rig_fill(kernel, t->buffer[0], 5, 0, 100);
    assert_int_equal(socket_send(t->a, t->buffer[0], 100), 100);
    assert_int_equal(socket_send(t->a, t->buffer[0], 60), 60);
    /* The rest of a datagram is gone with it. */
    assert_int_equal(socket_receive(t->b, t->buffer[1], 30), 30);
    net_rig_check(kernel, t->buffer[1], 5, 0, 30);
    assert_int_equal(socket_receive(t->b, t->buffer[1], 1000), 60);
    /* An answer; one from a stranger does not reach a connected socket. */
    socket_udp_connect(t->b, RIG_IP(0), PORT);
    assert_int_equal(socket_send(t->b, t->buffer[1], 8), 8);
    assert_int_equal(socket_receive(t->a, t->buffer[0], 100), 8);
    struct socket *stranger = socket_udp_bind(t->rig->end[1].net, 0, PORT + 2);
    socket_udp_connect(stranger, RIG_IP(0), PORT);
    assert_int_equal(socket_send(stranger, t->buffer[1], 9), 9);
    k_sleep(kernel, FAKE_MS(1));
    assert_int_equal(socket_receive_nowait(t->a, t->buffer[0], 10), -EAGAIN);
    socket_close(stranger);
    t->done[0] = true;
}
static void test_odd_ones(void **state)
{
    (void)state;
    struct rig_options o = plain();
    struct talk *t = talk_new(&o);
    k_thread_new(t->rig->kernel, "odd", 1, odd_ones, t);
    fake_run_until(t->rig->kernel, FAKE_MS(20));
    assert_true(t->done[0]);
    assert_int_equal(net_stats(t->rig->end[0].net)->dropped_packets, 1);
    talk_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_datagrams),
        cmocka_unit_test(test_checksums),
        cmocka_unit_test(test_buffers),
        cmocka_unit_test(test_odd_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
