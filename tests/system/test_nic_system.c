/*
 * Two simulated hosts with kernels, network stacks and drivers, joined by real NIC models: what a
 * program sends on one arrives at a program on the other, byte for byte, through caches, rings,
 * doorbells, TLPs and a wire. Then everything is taken down, and nothing may be left.
 */
#include "tests/support/world_fixture.h"

#include <string.h>

#include "logic/net/net.h"
#include "logic/net/xps.h"
#include "logic/nic/nic_driver.h"
#include "logic/steering/octonic.h"
#include "models/base/payload.h"
#include "models/nic/nic.h"
#include "models/os/os.h"
#include "models/pcie/endpoint/pcie_function.h"

/* A host with a slot per socket. */
#define HOST(NAME, LANES, MORE)                                               \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = " LANES "; }," \
         " { name = \"rp1\"; socket = 1; lanes = " LANES "; } );"             \
         " cpu = { sockets = 2; cores_per_socket = 4; clock_ghz = 2.0; };" MORE " };\n"
#define DEVICES(FIRMWARE)                                                              \
    "devices = { b = { type = \"nic.ethernet\"; };"                                    \
    " a = { type = \"nic.ethernet\"; functions = 2; lanes = 8; firmware = \"" FIRMWARE \
    "\"; }; };\n"
#define CABLES(WIRE)                                           \
    "cables = ( { from = \"server.s0.rp0\"; to = \"a.p0\"; }," \
    " { from = \"server.s1.rp1\"; to = \"a.p1\"; },"           \
    " { from = \"client.s0.rp0\"; to = \"b.p0\"; },"           \
    " { from = \"a.e0\"; to = \"b.e0\"; latency_ns = 100; " WIRE " } );\n"
#define HOSTS(MORE)           "hosts = {\n" HOST("server", "8", MORE) HOST("client", "16", MORE) "};\n"
#define WORLD(FIRMWARE, WIRE) HOSTS("") DEVICES(FIRMWARE) CABLES(WIRE)
#define IOMMU                 " iommu = { enabled = true; };"

#define SERVER    0
#define CLIENT    1
#define IP(host)  (0x0a000001u + (uint32_t)(host))
#define PORT      5001
#define KIB       1024u
#define MIB       (KIB * KIB)
#define SECOND    (1000 * SIM_PS_PER_MS)
#define STREAM    7u
#define UDP_BYTES 1400u
#define DATAGRAMS 500u

struct side {
    struct kernel *kernel;
    struct net *net;
    struct nic_driver *driver;
    struct net_device *dev;
    struct octonic *octonic;
    struct rig *rig;
};

struct rig {
    struct world_fixture w;
    struct side side[2];
    bool team;                        /* the server's functions are one device */
    unsigned function;                /* of the server's NIC that is used */
    unsigned cpu[2];                  /* of the programs */
    uint64_t bytes;                   /* to send */
    size_t send_bytes, receive_bytes; /* per call */
    bool udp, sg;
    unsigned up;   /* hosts that are ready */
    unsigned done; /* programs that have ended */
    unsigned down;
    sim_time start_ps, end_ps;
    uint64_t received;
};

/* ---- Up and down ----------------------------------------------------------------------------- */

static const struct octonic_device_ops team_ops = {
    .function = nic_dev_function,
    .switch_set = nic_dev_switch_set,
    .switch_delete = nic_dev_switch_delete,
};

static void team_up(struct side *s)
{
    struct net_device *lower[2] = { nic_driver_device(s->driver, 0),
                                    nic_driver_device(s->driver, 1) };
    int error = 0;
    s->octonic = octonic_new(s->net, "octo0", &octonic_params_default, &team_ops, lower, 2, &error);
    assert_non_null(s->octonic);
    s->dev = octonic_device(s->octonic);
    s->dev->ip = IP(SERVER);
    assert_int_equal(s->dev->ops->open(s->dev), 0);
}

static void up_body(void *arg)
{
    struct side *s = arg;
    unsigned host = (unsigned)(s - s->rig->side);
    unsigned n = host == SERVER ? 2 : 1;
    assert_int_equal(k_pci_register(s->kernel, nic_driver_pci(s->driver)), (int)n);
    for (unsigned i = 0; i < n; i++) {
        struct net_device *dev = nic_driver_device(s->driver, i);
        dev->ip = IP(host);
        assert_int_equal(dev->ops->open(dev), 0);
        assert_true(dev->running && dev->carrier);
        xps_map_default(dev);
    }
    s->dev = nic_driver_device(s->driver, host == SERVER ? s->rig->function : 0);
    assert_int_equal(nic_dev_function(s->dev), host == SERVER ? s->rig->function : 0);
    if (host == SERVER && s->rig->team)
        team_up(s);
    s->rig->up++;
}

static void down_body(void *arg)
{
    struct side *s = arg;
    k_sleep(s->kernel, 300 * SIM_PS_PER_MS); /* sockets' last timers */
    if (s->octonic != NULL)
        octonic_free(s->octonic);
    for (unsigned i = 0;; i++) {
        struct net_device *dev = nic_driver_device(s->driver, 0);
        if (dev == NULL || dev->device == NULL) /* NULL: it was pulled */
            break;
        assert_true(i < 2);
        k_pci_remove(K_CONTAINER(dev->device, struct k_pci_dev, device), false);
    }
    nic_driver_free(s->driver); /* unregisters the one that was pulled, too */
    net_free(s->net);
    s->rig->down++;
}

static void rig_open(struct rig *r, const char *world, const struct nic_driver_params *params)
{
    static const char *const names[] = { "server", "client" };
    fixture_open(&r->w, world);
    for (unsigned i = 0; i < 2; i++) {
        struct side *s = &r->side[i];
        struct host *host = world_host(r->w.world, names[i]);
        s->rig = r;
        s->kernel = os_new(host, host_os_params(host));
        s->net = net_new(s->kernel, &net_params_default);
        s->driver = nic_driver_new(s->net, s->kernel, params, "pf");
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

/* ---- Programs -------------------------------------------------------------------------------- */

static void check(struct rig *r, struct kernel *kernel, struct kaddr at, uint64_t bytes)
{
    struct payload_difference is;
    if (!payload_check(kernel, at, payload_mark(STREAM, r->received), bytes, &is))
        fail_msg("from byte %llu on: tag %#llx, expected %#llx", (unsigned long long)r->received,
                 (unsigned long long)is.found, (unsigned long long)is.expected);
    r->received += bytes;
}

static void server_tcp(void *arg)
{
    struct side *s = arg;
    struct rig *r = s->rig;
    struct socket *listener = socket_tcp_listen(s->net, IP(SERVER), PORT);
    assert_non_null(listener);
    struct socket *socket = socket_accept(listener);
    assert_non_null(socket);
    struct kaddr buffer = k_alloc(s->kernel, K_NODE_LOCAL, r->receive_bytes, K_PAGE_BYTES);
    r->start_ps = k_now_ps(s->kernel);
    for (;;) {
        int64_t n = socket_receive(socket, buffer, r->receive_bytes);
        assert_true(n >= 0);
        if (n == 0)
            break;
        check(r, s->kernel, buffer, (uint64_t)n);
    }
    r->end_ps = k_now_ps(s->kernel);
    assert_int_equal(r->received, r->bytes);
    socket_close(socket);
    socket_close(listener);
    r->done++;
}

static void client_tcp(void *arg)
{
    struct side *s = arg;
    struct rig *r = s->rig;
    struct socket *socket = socket_tcp_connect(s->net, IP(CLIENT), IP(SERVER), PORT);
    assert_non_null(socket);
    struct kaddr buffer = k_alloc(s->kernel, K_NODE_LOCAL, r->send_bytes, K_PAGE_BYTES);
    for (uint64_t sent = 0; sent < r->bytes; sent += r->send_bytes) {
        payload_fill(s->kernel, buffer, payload_mark(STREAM, sent), r->send_bytes);
        assert_int_equal(socket_send(socket, buffer, r->send_bytes), (int64_t)r->send_bytes);
    }
    socket_close(socket);
    r->done++;
}

/* The server sends pages of both nodes in turn, without a copy; the client receives. */
static void server_sg(void *arg)
{
    struct side *s = arg;
    struct rig *r = s->rig;
    struct socket *listener = socket_tcp_listen(s->net, IP(SERVER), PORT);
    struct socket *socket = socket_accept(listener);
    assert_non_null(socket);
    for (uint64_t sent = 0; sent < r->bytes;) {
        struct skb_frag frag[16];
        uint32_t bytes = 0;
        for (unsigned i = 0; i < 16; i++) {
            struct k_page *page = k_page_alloc(s->kernel, (int)(i % 2), 0);
            assert_non_null(page);
            frag[i] = (struct skb_frag){ page, 0, K_PAGE_BYTES, (int8_t)page->node };
            payload_fill(s->kernel, page->addr, payload_mark(STREAM, sent + bytes), K_PAGE_BYTES);
            bytes += K_PAGE_BYTES;
        }
        assert_int_equal(socket_send_pages(socket, frag, 16), bytes);
        for (unsigned i = 0; i < 16; i++)
            k_page_put(s->kernel, frag[i].page);
        sent += bytes;
    }
    socket_close(socket);
    socket_close(listener);
    r->done++;
}

static void client_sg(void *arg)
{
    struct side *s = arg;
    struct rig *r = s->rig;
    struct socket *socket = socket_tcp_connect(s->net, IP(CLIENT), IP(SERVER), PORT);
    assert_non_null(socket);
    struct kaddr buffer = k_alloc(s->kernel, K_NODE_LOCAL, r->receive_bytes, K_PAGE_BYTES);
    int64_t n;
    while ((n = socket_receive(socket, buffer, r->receive_bytes)) > 0)
        check(r, s->kernel, buffer, (uint64_t)n);
    assert_int_equal(n, 0);
    assert_int_equal(r->received, r->bytes);
    socket_close(socket);
    r->done++;
}

/* Moves the server's program between sockets every while; pulls function 1 in the midst of it. */
struct mover {
    struct side *side;
    struct k_thread *thread;
    sim_time every_ps;
    unsigned moves, pull_at; /* 0: never */
};

static void mover_body(void *arg)
{
    struct mover *m = arg;
    struct rig *r = m->side->rig;
    while (r->done == 0) {
        k_sleep(m->side->kernel, m->every_ps);
        if (r->done != 0)
            break;
        k_thread_set_cpu(m->thread, m->moves % 2 == 0 ? 5 : 1);
        m->moves++;
        if (m->moves == m->pull_at) {
            struct net_device *dev = nic_driver_device(m->side->driver, 1);
            pcie_function_remove(world_device(r->w.world, "a"), 1);
            k_sleep(m->side->kernel, 50 * SIM_PS_PER_US); /* until somebody notices */
            uint64_t start_ps = k_now_ps(m->side->kernel);
            k_pci_remove(K_CONTAINER(dev->device, struct k_pci_dev, device), true);
            /* No read of it, which would wait for the completion timeout of 50 ms. */
            assert_true(k_now_ps(m->side->kernel) - start_ps < 20 * SIM_PS_PER_MS);
        }
    }
}

/* Each datagram is answered with what it held. */
static void server_udp(void *arg)
{
    struct side *s = arg;
    struct rig *r = s->rig;
    struct socket *socket = socket_udp_bind(s->net, IP(SERVER), PORT);
    assert_non_null(socket);
    socket_udp_connect(socket, IP(CLIENT), PORT);
    struct kaddr buffer = k_alloc(s->kernel, K_NODE_LOCAL, 2048, K_PAGE_BYTES);
    r->up++;
    for (unsigned i = 0; i < DATAGRAMS; i++) {
        assert_int_equal(socket_receive(socket, buffer, 2048), UDP_BYTES);
        check(r, s->kernel, buffer, UDP_BYTES);
        assert_int_equal(socket_send(socket, buffer, UDP_BYTES), UDP_BYTES);
    }
    socket_close(socket);
    r->done++;
}

static void client_udp(void *arg)
{
    struct side *s = arg;
    struct rig *r = s->rig;
    struct socket *socket = socket_udp_bind(s->net, IP(CLIENT), PORT);
    assert_non_null(socket);
    socket_udp_connect(socket, IP(SERVER), PORT);
    struct kaddr buffer = k_alloc(s->kernel, K_NODE_LOCAL, 2048, K_PAGE_BYTES);
    k_sleep(s->kernel, 100 * SIM_PS_PER_US); /* until the server listens */
    r->start_ps = k_now_ps(s->kernel);
    for (uint64_t i = 0; i < DATAGRAMS; i++) {
        uint64_t tag = payload_mark(STREAM, i * UDP_BYTES);
        struct payload_difference is;
        payload_fill(s->kernel, buffer, tag, UDP_BYTES);
        assert_int_equal(socket_send(socket, buffer, UDP_BYTES), UDP_BYTES);
        payload_fill(s->kernel, buffer, 0, UDP_BYTES);
        assert_int_equal(socket_receive(socket, buffer, 2048), UDP_BYTES);
        assert_true(payload_check(s->kernel, buffer, tag, UDP_BYTES, &is));
    }
    r->end_ps = k_now_ps(s->kernel);
    socket_close(socket);
    r->done++;
}

static struct k_thread *start_programs(struct rig *r)
{
    struct side *server = &r->side[SERVER], *client = &r->side[CLIENT];
    struct k_thread *thread = k_thread_new(server->kernel, "server", (int)r->cpu[SERVER],
                                           r->udp  ? server_udp
                                           : r->sg ? server_sg
                                                   : server_tcp,
                                           server);
    k_thread_new(client->kernel, "client", (int)r->cpu[CLIENT],
                 r->udp  ? client_udp
                 : r->sg ? client_sg
                         : client_tcp,
                 client);
    return thread;
}

static void run_programs(struct rig *r, sim_time within_ps)
{
    start_programs(r);
    fixture_run_until(&r->w, &r->done, 2, within_ps);
}

static struct nic_drv_stats all_channels(const struct net_device *dev)
{
    struct nic_drv_stats sum = { 0 };
    for (unsigned i = 0; i < dev->n_rx_queues; i++) {
        struct nic_drv_stats s = nic_dev_channel_stats(dev, i);
        for (size_t f = 0; f < sizeof sum / sizeof(uint64_t); f++)
            ((uint64_t *)(void *)&sum)[f] += ((const uint64_t *)(const void *)&s)[f];
    }
    return sum;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void test_udp(void **state)
{
    (void)state;
    struct rig r = { .udp = true, .cpu = { 1, 2 } };
    rig_open(&r, WORLD("standard", ""), &nic_driver_params_default);
    run_programs(&r, SECOND);
    assert_int_equal(r.received, DATAGRAMS * UDP_BYTES);
    struct nic_drv_stats stats = all_channels(r.side[SERVER].dev);
    assert_int_equal(stats.rx_packets, DATAGRAMS);
    assert_int_equal(stats.tx_packets, DATAGRAMS);
    assert_int_equal(stats.rx_errors + stats.tx_errors + stats.tx_drops, 0);
    /* Both ways through two stacks: microseconds, not milliseconds. */
    sim_time rtt_ps = (r.end_ps - r.start_ps) / DATAGRAMS;
    assert_in_range(rtt_ps, 5 * SIM_PS_PER_US, 200 * SIM_PS_PER_US);
    rig_close(&r);
}

static void tcp_with(const char *world, const struct nic_driver_params *params, unsigned function,
                     unsigned server_cpu, double least_gbit_s)
{
    struct rig r = { .function = function,
                     .cpu = { server_cpu, 1 },
                     .bytes = 8 * MIB,
                     .send_bytes = 64 * KIB,
                     .receive_bytes = 64 * KIB };
    rig_open(&r, world, params);
    run_programs(&r, 10 * SECOND);
    double gbit_s = (double)r.bytes * 8e3 / (double)(r.end_ps - r.start_ps);
    const struct net_stats *sent = net_stats(r.side[CLIENT].net);
    struct nic_drv_stats rx = all_channels(r.side[SERVER].dev),
                         tx = all_channels(r.side[CLIENT].dev);
    if (gbit_s < least_gbit_s)
        fail_msg("%.2f Gb/s", gbit_s);
    assert_int_equal(rx.rx_errors + rx.tx_errors + rx.page_failures, 0);
    assert_int_equal(tx.tx_errors + tx.tx_drops, 0);
    assert_true(rx.rx_packets >= r.bytes / 1448);
    if (sent->retransmitted_segments == 0)
        assert_true(tx.tx_wqes < tx.tx_packets / 4); /* the NIC segments */
    rig_close(&r);
}

static void tcp(const char *world, unsigned function, unsigned server_cpu, double least_gbit_s)
{
    tcp_with(world, &nic_driver_params_default, function, server_cpu, least_gbit_s);
}

static void test_tcp_local(void **state)
{
    (void)state;
    tcp(WORLD("standard", ""), 0, 1, 5.0);
}

static void test_tcp_remote(void **state)
{
    (void)state;
    tcp(WORLD("standard", ""), 1, 1, 3.0);
}

static void test_tcp_octonic(void **state)
{
    (void)state;
    tcp(WORLD("octonic", ""), 0, 5, 3.0);
}

/* The NIC sees I/O virtual addresses; every mapping is made and taken back. */
static void test_tcp_iommu(void **state)
{
    (void)state;
    tcp(HOSTS(IOMMU) DEVICES("standard") CABLES(""), 0, 1, 1.0);
}

/* Completion rings on the NIC's node, smaller rings, no adaptive moderation. */
static void test_tcp_rings(void **state)
{
    (void)state;
    struct nic_driver_params params = nic_driver_params_default;
    params.completion_node = NIC_NODE_DEVICE;
    params.adaptive_rx = false;
    params.rq_wqes = 256;
    params.sq_blocks = 64;
    tcp_with(WORLD("standard", ""), &params, 1, 1, 0.5);
}

/* The NIC merges segments: the stream is whole, with few completions, with a wire that loses and
 * with an IOMMU. */
static void lro(const char *world, bool lossy)
{
    struct nic_driver_params params = nic_driver_params_default;
    struct rig r = {
        .cpu = { 1, 1 }, .bytes = 8 * MIB, .send_bytes = 64 * KIB, .receive_bytes = 64 * KIB
    };
    params.lro = true;
    rig_open(&r, world, &params);
    run_programs(&r, 10 * SECOND);
    struct nic_drv_stats rx = all_channels(r.side[SERVER].dev);
    uint64_t packets = nic_function_stats(world_device(r.w.world, "a"), 0)->rx_packets;
    assert_int_equal(rx.rx_errors + rx.tx_errors + rx.page_failures, 0);
    assert_true(packets >= r.bytes / 1448);
    if (rx.rx_packets > packets / (lossy ? 3 : 12))
        fail_msg("%llu completions for %llu packets", (unsigned long long)rx.rx_packets,
                 (unsigned long long)packets);
    if (!lossy)
        assert_int_equal(net_stats(r.side[CLIENT].net)->retransmitted_segments, 0);
    rig_close(&r);
}

static void test_lro(void **state)
{
    (void)state;
    lro(WORLD("standard", ""), false);
    lro(HOSTS(IOMMU) DEVICES("standard") CABLES(""), false);
    lro(WORLD("octonic", "loss_ratio = 0.001;"), true);
}

/* The program that receives moves between sockets: the octoNIC's functions take turns, and nothing
 * is lost or comes out of order. */
static void migrate(const char *wire, unsigned pull_at)
{
    struct rig r = { .team = true,
                     .cpu = { 1, 1 },
                     .bytes = 16 * MIB,
                     .send_bytes = 64 * KIB,
                     .receive_bytes = 64 * KIB };
    char world[2048];
    snprintf(world, sizeof(world), WORLD("octonic", "%s"), wire);
    rig_open(&r, world, &nic_driver_params_default);
    struct mover mover = { .side = &r.side[SERVER],
                           .every_ps = SIM_PS_PER_MS / 2,
                           .pull_at = pull_at };
    mover.thread = start_programs(&r);
    k_thread_new(r.side[SERVER].kernel, "mover", 2, mover_body, &mover);
    fixture_run_until(&r.w, &r.done, 2, 10 * SECOND);
    const struct net_stats *server = net_stats(r.side[SERVER].net);
    uint64_t packets[2];
    for (unsigned i = 0; i < 2; i++)
        packets[i] = all_channels(nic_driver_device(r.side[SERVER].driver, i)).rx_packets;
    assert_true(mover.moves >= 8);
    assert_true(packets[0] > 1000 && packets[1] > 1000);
    if (pull_at == 0) {
        assert_int_equal(server->out_of_order_segments, 0);
        assert_int_equal(net_stats(r.side[CLIENT].net)->retransmitted_segments, 0);
    } else {
        struct net_device *gone = nic_driver_device(r.side[SERVER].driver, 1);
        assert_false(nic_dev_present(gone) || gone->carrier || gone->running);
        assert_true(r.side[SERVER].dev->running && r.side[SERVER].dev->carrier);
    }
    rig_close(&r);
}

static void test_migration(void **state)
{
    (void)state;
    /* With 100 Gb/s eight lanes are slower: PAUSE keeps the buffer of the NIC from overflowing. */
    migrate("", 0);
    migrate("rate_gbit_s = 40;", 0);
}

/* IOctoSG: each function fetches the pages of its own node, and the stream is whole. */
static void test_octo_sg(void **state)
{
    (void)state;
    for (int on = 0; on < 2; on++) {
        struct nic_driver_params params = nic_driver_params_default;
        struct rig r = {
            .team = true, .sg = true, .cpu = { 1, 1 }, .bytes = 8 * MIB, .receive_bytes = 64 * KIB
        };
        params.octo_sg = on;
        rig_open(&r, HOSTS(IOMMU) DEVICES("octonic") CABLES("rate_gbit_s = 40;"), &params);
        run_programs(&r, SECOND);
        struct model *nic = world_device(r.w.world, "a");
        uint64_t read[2], hints = 0;
        for (unsigned i = 0; i < 2; i++) {
            read[i] = nic_function_stats(nic, i)->read_bytes;
            hints += all_channels(nic_driver_device(r.side[SERVER].driver, i)).tx_hints;
        }
        if (on) {
            assert_true(hints >= r.bytes / K_PAGE_BYTES / 2);
            assert_true(read[0] > r.bytes / 3 && read[1] > r.bytes / 3);
        } else {
            assert_int_equal(hints, 0);
            assert_true(read[0] > r.bytes || read[1] > r.bytes);
        }
        rig_close(&r);
    }
}

/* A function is pulled while it receives: the interface stays, the stream goes on. */
static void test_pulled(void **state)
{
    (void)state;
    migrate("rate_gbit_s = 40;", 5);
}

static void test_tcp_loss(void **state)
{
    (void)state;
    tcp(WORLD("standard", "loss_ratio = 0.001;"), 0, 1, 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_udp),        cmocka_unit_test(test_tcp_local),
        cmocka_unit_test(test_tcp_remote), cmocka_unit_test(test_tcp_octonic),
        cmocka_unit_test(test_tcp_loss),   cmocka_unit_test(test_tcp_iommu),
        cmocka_unit_test(test_tcp_rings),  cmocka_unit_test(test_migration),
        cmocka_unit_test(test_octo_sg),    cmocka_unit_test(test_pulled),
        cmocka_unit_test(test_lro),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
