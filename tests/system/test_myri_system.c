/*
 * Two simulated hosts with Myri-10G adapters and Ethernet firmware: frames of an Ethernet type of
 * their own go from one to the other, mark for mark, in every size; the adapter's own address comes
 * back; with several receive queues each endpoint of Open-MX has its own; TCP works. Then all is
 * taken down, and nothing may be left.
 */
#include "tests/support/world_fixture.h"

#include <string.h>

#include "hw/mx_wire.h"
#include "logic/myri/myri10ge.h"
#include "logic/net/net.h"
#include "models/base/payload.h"
#include "models/myri/myri.h"
#include "models/os/os.h"

#define HOST(NAME)                                                                     \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; generation = 1; });" \
         " cpu = { sockets = 1; cores_per_socket = 8; clock_ghz = 2.0; };"             \
         " os = { c1_exit_ns = 0; c1e_exit_ns = 0; c6_exit_ns = 0; }; };\n"
#define NIC(NAME, MORE) \
    NAME " = { type = \"myri.myri10g\"; lanes = 8; generation = 1; " MORE " };\n"
#define WORLD(MORE)                                                                             \
    "hosts = {\n" HOST("server") HOST(                                                          \
        "client") "};\n"                                                                        \
                  "devices = {\n" NIC("a", MORE)                                                \
                      NIC("b", MORE) "};\n"                                                     \
                                     "cables = ( { from = \"server.s0.rp0\"; to = \"a.p0\"; }," \
                                     " { from = \"client.s0.rp0\"; to = \"b.p0\"; },"           \
                                     " { from = \"a.e0\"; to = \"b.e0\"; latency_ns = 100; } );\n"
#define SEVERAL_QUEUES "firmware = \"multiqueue\";"
#define ONE            WORLD("")
#define SEVERAL        WORLD(SEVERAL_QUEUES)

#define SERVER       0
#define CLIENT       1
#define IP(host)     (0x0a000001u + (uint32_t)(host))
#define SECOND       (1000 * SIM_PS_PER_MS)
#define STREAM       9u
#define HEADER_BYTES 32u
#define TCP_BYTES    (1u << 20)

struct side {
    struct rig *rig;
    struct kernel *kernel;
    struct net *net;
    struct myri10ge *driver;
    struct net_device *dev;
    struct k_page *data; /* 16 KiB of marks */
    unsigned n_received, to_receive;
    uint32_t bytes_expected;
    uint16_t queue; /* of the last packet */
    unsigned cpu;
    uint64_t at_ps;
};
struct rig {
    struct world_fixture w;
    struct side side[2];
    unsigned up, done, down;
    uint64_t took_ps; /* of the last frame */
};

/* ---- Frames ---------------------------------------------------------------------------------- */

/* Sends `bytes` of the side's marks behind a header of MX, from another place in a page for each
 * size. */
static void send_frame(struct side *s, const struct net_mac *to, uint8_t endpoint, uint32_t bytes)
{
    struct sk_buff *skb = skb_new(s->net);
    uint8_t head[HEADER_BYTES] = { [12] = MX_ETHER_TYPE >> 8,
                                   [13] = MX_ETHER_TYPE & 0xff,
                                   [16] = MX_PACKET_MEDIUM,
                                   [17] = endpoint };
    memcpy(head, to->byte, NET_MAC_BYTES);
    memcpy(head + NET_MAC_BYTES, s->dev->mac.byte, NET_MAC_BYTES);
    k_store(s->kernel, skb->head, head, sizeof head);
    skb->dev = s->dev;
    skb->head_bytes = sizeof head;
    skb->gso_segments = 1;
    skb->bytes = bytes;
    if (bytes > 0) {
        k_page_get(s->data);
        skb->frag[skb->n_frags++] = (struct skb_frag){ s->data, bytes % 61, bytes, 0 };
    }
    net_dev_queue_xmit(s->net, skb);
}

static void receive_frame(struct sk_buff *skb, void *arg)
{
    struct side *s = arg;
    uint32_t done = 0;
    assert_true(skb_header_set(skb, HEADER_BYTES));
    assert_int_equal(skb->bytes, s->bytes_expected);
    for (unsigned i = 0; i < skb->n_frags; i++) {
        const struct skb_frag *frag = &skb->frag[i];
        struct payload_difference is;
        if (!payload_check(s->kernel, kaddr_add(frag->page->addr, frag->offset),
                           payload_mark(STREAM, s->bytes_expected % 61 + done), frag->bytes, &is))
            fail_msg("%u bytes: fragment %u: found %#llx, expected %#llx", skb->bytes, i,
                     (unsigned long long)is.found, (unsigned long long)is.expected);
        done += frag->bytes;
    }
    assert_int_equal(done, s->bytes_expected);
    s->queue = skb->queue;
    s->cpu = k_cpu(s->kernel);
    skb_free(s->net, skb);
    s->at_ps = k_now_ps(s->kernel);
    s->n_received++;
}

static void wait_for(struct side *s, unsigned n)
{
    for (unsigned i = 0; i < 2000 && s->n_received < n; i++)
        k_sleep(s->kernel, 5 * K_US);
    assert_int_equal(s->n_received, n);
}

/* ---- Up and down ----------------------------------------------------------------------------- */

static void up_body(void *arg)
{
    struct side *s = arg;
    assert_int_equal(k_pci_register(s->kernel, myri10ge_pci(s->driver)), 1);
    s->dev = myri10ge_device(s->driver, 0);
    s->dev->ip = IP(s - s->rig->side);
    assert_int_equal(s->dev->ops->open(s->dev), 0);
    assert_true(s->dev->running && s->dev->carrier);
    assert_int_equal(net_protocol_register(s->net, MX_ETHER_TYPE, receive_frame, s), 0);
    s->data = k_page_alloc(s->kernel, 0, 2);
    payload_fill(s->kernel, s->data->addr, payload_mark(STREAM, 0), 4 * K_PAGE_BYTES);
    s->rig->up++;
}

static void down_body(void *arg)
{
    struct side *s = arg;
    k_sleep(s->kernel, 300 * SIM_PS_PER_MS); /* sockets' last timers */
    net_protocol_unregister(s->net, MX_ETHER_TYPE);
    k_page_put(s->kernel, s->data);
    k_pci_remove(K_CONTAINER(s->dev->device, struct k_pci_dev, device), false);
    assert_null(myri10ge_device(s->driver, 0));
    myri10ge_free(s->driver);
    net_free(s->net);
    s->rig->down++;
}

static void rig_open(struct rig *r, const char *world)
{
    static const char *const names[] = { "server", "client" };
    *r = (struct rig){ .up = 0 };
    fixture_open(&r->w, world);
    for (unsigned i = 0; i < 2; i++) {
        struct side *s = &r->side[i];
        struct host *host = world_host(r->w.world, names[i]);
        s->rig = r;
        s->kernel = os_new(host, host_os_params(host));
        s->net = net_new(s->kernel, &net_params_default);
        s->driver = myri10ge_new(s->net, s->kernel, &myri10ge_params_default, "myri");
        assert_non_null(s->driver);
        k_thread_new(s->kernel, "up", 0, up_body, s);
    }
    fixture_run_until(&r->w, &r->up, 2, SECOND);
    for (unsigned i = 0; i < 2; i++) {
        net_neighbour_add(r->side[i].net, IP(!i), r->side[!i].dev->mac);
        net_route_add(r->side[i].net, IP(!i), r->side[i].dev);
    }
}

static void rig_close(struct rig *r)
{
    for (unsigned i = 0; i < 2; i++)
        k_thread_new(r->side[i].kernel, "down", 0, down_body, &r->side[i]);
    fixture_run_until(&r->w, &r->down, 2, SECOND);
    sim_run(r->w.sim, sim_now(r->w.sim) + 10 * SIM_PS_PER_MS, NULL);
    for (unsigned i = 0; i < 2; i++)
        os_free(r->side[i].kernel);
    fixture_close(&r->w);
}

/* Runs a thread of the client to its end. */
static void run_client(struct rig *r, k_thread_fn *body)
{
    k_thread_new(r->side[CLIENT].kernel, "client", 1, body, &r->side[CLIENT]);
    fixture_run_until(&r->w, &r->done, 1, SECOND);
}

static struct model *nic_of(struct rig *r, const char *name)
{
    struct model *nic = world_device(r->w.world, name);
    assert_non_null(nic);
    return nic;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* Every size of frame, small and big buffers, several of them, both sides of each boundary. */
static void sizes_body(void *arg)
{
    static const uint32_t sizes[] = { 0,    1,    28,   32,   33,   95,   128,  1486, 1487,
                                      1500, 4000, 4062, 4063, 4096, 8158, 8159, 8192, 8982 };
    struct side *s = arg, *to = &s->rig->side[SERVER];
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        to->bytes_expected = sizes[i];
        send_frame(s, &to->dev->mac, 0, sizes[i]);
        wait_for(to, i + 1);
    }
    s->rig->done++;
}

static void test_frames_of_all_sizes(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, ONE);
    run_client(&r, sizes_body);
    assert_int_equal(myri_stats(nic_of(&r, "a"))->rx_packets, 18);
    assert_int_equal(myri_drops(nic_of(&r, "a")), 0);
    rig_close(&r);
}

/* From the call that sends to the handler of the soft interrupt, the processor of the adapter idle.
 * The shortest of four: a load from memory may meet a refresh. */
static void latency_body(void *arg)
{
    struct side *s = arg, *to = &s->rig->side[SERVER];
    to->bytes_expected = 64;
    for (unsigned i = 0; i < 4; i++) {
        k_sleep(s->kernel, 100 * K_US);
        const uint64_t begin_ps = k_now_ps(s->kernel);
        send_frame(s, &to->dev->mac, 0, 64);
        while (to->n_received == i)
            k_compute(s->kernel, 100);
        if (i == 0 || to->at_ps - begin_ps < s->rig->took_ps)
            s->rig->took_ps = to->at_ps - begin_ps;
    }
    s->rig->done++;
}

static uint64_t one_way_ps(const char *world)
{
    struct rig r;
    rig_open(&r, world);
    run_client(&r, latency_body);
    const uint64_t took_ps = r.took_ps;
    rig_close(&r);
    return took_ps;
}

/* Each time of the firmware is in it once: a microsecond more there is a microsecond more here. */
static void test_latency_is_the_sum_of_its_parts(void **state)
{
    static const char *const longer[] = { WORLD("firmware_send_ns = 1750;"),
                                          WORLD("firmware_receive_ns = 1750;"),
                                          WORLD("port_latency_ns = 1150;") };
    (void)state;
    const uint64_t one_ps = one_way_ps(WORLD(""));
    assert_in_range(one_ps, 3 * SIM_PS_PER_US, 6 * SIM_PS_PER_US);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(longer); i++)
        assert_int_equal(one_way_ps(longer[i]), one_ps + SIM_PS_PER_US);
    const uint64_t several_ps = one_way_ps(WORLD(SEVERAL_QUEUES));
    assert_int_equal(one_way_ps(WORLD(SEVERAL_QUEUES "firmware_multiqueue_ns = 1600;")),
                     several_ps + SIM_PS_PER_US);
}

/* A sent packet is told of as soon as it has left, though nothing is received. */
static void sent_body(void *arg)
{
    struct side *s = arg;
    k_sleep(s->kernel, 200 * K_US); /* past the coalescing time after the link's interrupt */
    const struct myri10ge_stats before = myri10ge_stats(s->dev, 0);
    send_frame(s, &s->rig->side[SERVER].dev->mac, 0, 64);
    k_sleep(s->kernel, 6 * K_US);
    assert_int_equal(myri10ge_stats(s->dev, 0).interrupts, before.interrupts + 1);
    assert_int_equal(myri10ge_stats(s->dev, 0).polls,
                     before.polls); /* the handler has seen to it */
    assert_int_equal(s->data->refs, 1);
    wait_for(&s->rig->side[SERVER], 1);
    s->rig->done++;
}

static void test_sent_packets_interrupt(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, ONE);
    r.side[SERVER].bytes_expected = 64;
    run_client(&r, sent_body);
    rig_close(&r);
}

/* More than the rings hold; all arrive, in order or not, and all buffers are free again. */
static void many_body(void *arg)
{
    struct side *s = arg, *to = &s->rig->side[SERVER];
    to->bytes_expected = 4096;
    for (unsigned i = 0; i < 3000; i++) {
        send_frame(s, &to->dev->mac, 0, 4096);
        k_compute(s->kernel, 5000); /* the queueing discipline drops what is too much */
    }
    wait_for(to, 3000);
    s->rig->done++;
}

static void test_many_frames(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, ONE);
    run_client(&r, many_body);
    assert_int_equal(myri_drops(nic_of(&r, "a")), 0);
    assert_true(myri10ge_stats(r.side[SERVER].dev, 0).interrupts < 3000);
    rig_close(&r);
}

static void loopback_body(void *arg)
{
    struct side *s = arg;
    for (unsigned i = 0; i < 10; i++) {
        s->bytes_expected = 512 * i;
        send_frame(s, &s->dev->mac, 3, s->bytes_expected);
        wait_for(s, i + 1);
    }
    s->rig->done++;
}

static void test_own_address_comes_back(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, ONE);
    run_client(&r, loopback_body);
    assert_int_equal(myri_stats(nic_of(&r, "b"))->loopback, 10);
    assert_int_equal(myri_stats(nic_of(&r, "a"))->rx_packets, 0);
    rig_close(&r);
}

/* Endpoint e comes in by queue e modulo 8, on the CPU of that queue; and after its interrupt has
 * moved, on the new one. */
static void endpoints_body(void *arg)
{
    struct side *s = arg, *to = &s->rig->side[SERVER];
    to->bytes_expected = 64;
    for (unsigned e = 0; e < 16; e++) {
        send_frame(s, &to->dev->mac, (uint8_t)e, 64);
        wait_for(to, e + 1);
        assert_int_equal(to->queue, mx_endpoint_queue((uint8_t)e, 8));
        assert_int_equal(to->cpu, e % 8);
        assert_int_equal(to->dev->rx_queue_of_cpu[e % 8], e % 8);
    }
    assert_int_equal(myri10ge_set_cpu(to->dev, 5, 2), 0);
    send_frame(s, &to->dev->mac, 5, 64);
    wait_for(to, 17);
    assert_int_equal(to->queue, 5);
    assert_int_equal(to->cpu, 2);
    assert_int_equal(to->dev->rx_queue_of_cpu[5], -1);
    assert_int_equal(myri10ge_set_cpu(to->dev, 8, 2), -EINVAL);
    s->rig->done++;
}

static void test_a_queue_per_endpoint(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, SEVERAL);
    assert_int_equal(r.side[SERVER].dev->n_rx_queues, 8);
    run_client(&r, endpoints_body);
    rig_close(&r);
}

static void server_tcp(void *arg)
{
    struct side *s = arg;
    struct socket *listener = socket_tcp_listen(s->net, IP(SERVER), 5001);
    struct socket *socket = socket_accept(listener);
    struct kaddr buffer = k_alloc(s->kernel, 0, TCP_BYTES, K_PAGE_BYTES);
    uint64_t done = 0;
    for (int64_t n; (n = socket_receive(socket, buffer, TCP_BYTES)) > 0; done += (uint64_t)n) {
        struct payload_difference is;
        assert_true(payload_check(s->kernel, buffer, payload_mark(STREAM, done), (uint64_t)n, &is));
    }
    assert_int_equal(done, TCP_BYTES);
    socket_close(socket);
    socket_close(listener);
    s->rig->done++;
}

static void client_tcp(void *arg)
{
    struct side *s = arg;
    struct kaddr buffer = k_alloc(s->kernel, 0, TCP_BYTES, K_PAGE_BYTES);
    struct socket *socket = socket_tcp_connect(s->net, IP(CLIENT), IP(SERVER), 5001);
    payload_fill(s->kernel, buffer, payload_mark(STREAM, 0), TCP_BYTES);
    assert_int_equal(socket_send(socket, buffer, TCP_BYTES), TCP_BYTES);
    socket_close(socket);
    s->rig->done++;
}

static void test_tcp(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, SEVERAL);
    k_thread_new(r.side[SERVER].kernel, "server", 2, server_tcp, &r.side[SERVER]);
    k_thread_new(r.side[CLIENT].kernel, "client", 2, client_tcp, &r.side[CLIENT]);
    fixture_run_until(&r.w, &r.done, 2, SECOND);
    assert_int_equal(net_stats(r.side[SERVER].net)->bad_checksums, 0);
    rig_close(&r);
}

/* Open and stop again and again; what comes in while it is down is dropped. */
static void reopen_body(void *arg)
{
    struct side *s = arg;
    for (unsigned i = 0; i < 3; i++) {
        s->dev->ops->stop(s->dev);
        assert_false(s->dev->carrier);
        assert_int_equal(s->dev->ops->open(s->dev), 0);
        assert_true(s->dev->carrier);
        s->bytes_expected = 4096;
        send_frame(s, &s->dev->mac, 0, 4096);
        wait_for(s, i + 1);
    }
    s->rig->done++;
}

static void test_open_again(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, SEVERAL);
    run_client(&r, reopen_body);
    rig_close(&r);
}

/* A protocol that handles a packet for long is asked to go meanwhile. */
#define OTHER_TYPE UINT16_C(0x88b5)
static struct {
    bool runs, left;
} slow;

static void slow_receive(struct sk_buff *skb, void *arg)
{
    struct side *s = arg;
    slow.runs = true;
    k_compute(s->kernel, 400000); /* 200 us */
    skb_free(s->net, skb);
    slow.runs = false;
}

static void leaving_body(void *arg)
{
    struct side *s = arg;
    while (!slow.runs)
        k_sleep(s->kernel, K_US);
    net_protocol_unregister(s->net, OTHER_TYPE);
    assert_false(slow.runs);
    slow.left = true;
}

static void to_slow_body(void *arg)
{
    struct side *s = arg, *to = &s->rig->side[SERVER];
    struct sk_buff *skb = skb_new(s->net);
    uint8_t head[HEADER_BYTES] = { [12] = OTHER_TYPE >> 8, [13] = OTHER_TYPE & 0xff };
    memcpy(head, to->dev->mac.byte, NET_MAC_BYTES);
    k_store(s->kernel, skb->head, head, sizeof head);
    skb->dev = s->dev;
    skb->head_bytes = sizeof head;
    skb->gso_segments = 1;
    net_dev_queue_xmit(s->net, skb);
    while (!slow.left)
        k_sleep(s->kernel, K_US);
    s->rig->done++;
}

static void test_unregister_waits(void **state)
{
    struct rig r;
    (void)state;
    slow.runs = slow.left = false;
    rig_open(&r, ONE);
    struct side *s = &r.side[SERVER];
    assert_int_equal(net_protocol_register(s->net, OTHER_TYPE, slow_receive, s), 0);
    k_thread_new(s->kernel, "leaving", 3, leaving_body, s);
    run_client(&r, to_slow_body);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_of_all_sizes),
        cmocka_unit_test(test_latency_is_the_sum_of_its_parts),
        cmocka_unit_test(test_sent_packets_interrupt),
        cmocka_unit_test(test_many_frames),
        cmocka_unit_test(test_own_address_comes_back),
        cmocka_unit_test(test_a_queue_per_endpoint),
        cmocka_unit_test(test_tcp),
        cmocka_unit_test(test_open_again),
        cmocka_unit_test(test_unregister_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
