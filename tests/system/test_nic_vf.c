/*
 * Virtual functions, from configuration space to streams: two simulated hosts whose NICs have a
 * physical and four virtual functions each, behind IOMMUs; programs that talk through the physical
 * and two virtual ones at once; functions that come, go and come again.
 */
#include "tests/support/world_fixture.h"

#include <errno.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "logic/net/net.h"
#include "logic/net/xps.h"
#include "logic/nic/nic_driver.h"
#include "models/base/payload.h"
#include "models/nic/nic.h"
#include "models/os/os.h"
#include "models/os/os_pci.h"
#include "models/pcie/endpoint/pcie_function.h"

#define HOST(NAME)                                                         \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = 16; } );"   \
         " cpu = { sockets = 2; cores_per_socket = 4; clock_ghz = 2.0; };" \
         " iommu = { enabled = true; }; };\n"
#define WORLD                                                                                       \
    "hosts = {\n" HOST("server") HOST(                                                              \
        "client") "};\n"                                                                            \
                  "devices = { a = { type = \"nic.ethernet\"; vfs = 4; firmware = \"FIRMWARE\"; };" \
                  " b = { type = \"nic.ethernet\"; vfs = 4; }; };\n"                                \
                  "cables = ( { from = \"server.s0.rp0\"; to = \"a.p0\"; },"                        \
                  " { from = \"client.s0.rp0\"; to = \"b.p0\"; },"                                  \
                  " { from = \"a.e0\"; to = \"b.e0\"; latency_ns = 100; } );\n"

#define N_STREAMS 3u /* physical function, VF 0, VF 1 */
#define N_VFS     4u
#define BYTES     (UINT64_C(4) << 20)
#define CHUNK     65536u
#define PORT      5001
#define MS        SIM_PS_PER_MS

struct rig;
struct side {
    struct rig *rig;
    struct kernel *kernel;
    struct net *net;
    struct nic_driver *driver;
};
struct stream {
    struct rig *rig;
    unsigned i;
    uint64_t received;
    sim_time start_ps, end_ps;
};
struct rig {
    struct world_fixture w;
    struct side side[2]; /* server, client */
    struct stream stream[N_STREAMS];
    unsigned count;
};

static uint32_t ip_of(unsigned host, unsigned i)
{
    return 0x0a000001u + 256u * host + i;
}

static struct net_device *device(const struct side *s, unsigned i)
{
    struct net_device *dev = nic_driver_device(s->driver, i);
    assert_non_null(dev);
    return dev;
}

static void open_device(struct side *s, unsigned i)
{
    struct net_device *dev = device(s, i);
    dev->ip = ip_of((unsigned)(s - s->rig->side), i);
    assert_int_equal(dev->ops->open(dev), 0);
    assert_true(dev->running && dev->carrier);
    xps_map_default(dev);
}

static void up_body(void *arg)
{
    struct side *s = arg;
    assert_int_equal(k_pci_register(s->kernel, nic_driver_pci(s->driver)), 1);
    struct net_device *pf = device(s, 0);
    assert_int_equal(nic_dev_set_vfs(pf, N_VFS + 1), -ENOSPC);
    sim_time before_ps = k_now_ps(s->kernel);
    assert_int_equal(nic_dev_set_vfs(pf, N_VFS), 0);
    assert_true(k_now_ps(s->kernel) - before_ps >= 100 * MS);
    assert_int_equal(nic_dev_set_vfs(pf, 1), -EBUSY);
    assert_null(nic_driver_device(s->driver, 1 + N_VFS));
    assert_string_equal(device(s, 1)->name, "pf0v0");
    assert_string_equal(device(s, 4)->name, "pf0v3");
    for (unsigned i = 0; i < N_STREAMS; i++)
        open_device(s, i);
    s->rig->count++;
}

/* One more life of the virtual functions, then down. */
static void down_body(void *arg)
{
    struct side *s = arg;
    struct net_device *pf = device(s, 0);
    k_sleep(s->kernel, 300 * MS); /* sockets' last timers */
    assert_int_equal(nic_dev_set_vfs(pf, 0), 0);
    assert_null(nic_driver_device(s->driver, 1));
    assert_true(pf->running);
    assert_int_equal(nic_dev_set_vfs(pf, 2), 0);
    open_device(s, 2);
    device(s, 2)->ops->stop(device(s, 2));
    k_pci_remove(K_CONTAINER(pf->device, struct k_pci_dev, device), false); /* and they with it */
    assert_null(nic_driver_device(s->driver, 0));
    nic_driver_free(s->driver);
    net_free(s->net);
    s->rig->count++;
}

static void run_until(struct rig *r, unsigned count, sim_time within_ps)
{
    fixture_run_until(&r->w, &r->count, count, within_ps);
    r->count = 0;
}

static void server(void *arg)
{
    struct stream *st = arg;
    struct side *s = &st->rig->side[0];
    struct socket *listener = socket_tcp_listen(s->net, ip_of(0, st->i), PORT);
    struct socket *socket = socket_accept(listener);
    struct kaddr buffer = k_alloc(s->kernel, K_NODE_LOCAL, CHUNK, K_PAGE_BYTES);
    int64_t n;
    st->start_ps = k_now_ps(s->kernel);
    while ((n = socket_receive(socket, buffer, CHUNK)) > 0) {
        uint64_t tag = payload_mark((uint16_t)(1 + st->i), st->received);
        struct payload_difference is;
        assert_true(payload_check(s->kernel, buffer, tag, (uint64_t)n, &is));
        st->received += (uint64_t)n;
    }
    st->end_ps = k_now_ps(s->kernel);
    assert_int_equal(n, 0);
    assert_true(st->received == BYTES);
    socket_close(socket);
    socket_close(listener);
    st->rig->count++;
}

static void client(void *arg)
{
    struct stream *st = arg;
    struct side *s = &st->rig->side[1];
    struct socket *socket = socket_tcp_connect(s->net, ip_of(1, st->i), ip_of(0, st->i), PORT);
    assert_non_null(socket);
    struct kaddr buffer = k_alloc(s->kernel, K_NODE_LOCAL, CHUNK, K_PAGE_BYTES);
    for (uint64_t sent = 0; sent < BYTES; sent += CHUNK) {
        payload_fill(s->kernel, buffer, payload_mark((uint16_t)(1 + st->i), sent), CHUNK);
        assert_int_equal(socket_send(socket, buffer, CHUNK), CHUNK);
    }
    socket_close(socket);
    st->rig->count++;
}

static void rig_open(struct rig *r, const char *world)
{
    static const char *const names[] = { "server", "client" };
    fixture_open(&r->w, world);
    for (unsigned i = 0; i < 2; i++) {
        struct side *s = &r->side[i];
        struct host *host = world_host(r->w.world, names[i]);
        s->rig = r;
        s->kernel = os_new(host, host_os_params(host));
        s->net = net_new(s->kernel, &net_params_default);
        s->driver = nic_driver_new(s->net, s->kernel, &nic_driver_params_default, "pf");
        k_thread_new(s->kernel, "up", 0, up_body, s);
    }
    run_until(r, 2, 1000 * MS);
    for (unsigned i = 0; i < 2; i++)
        for (unsigned k = 0; k < N_STREAMS; k++) {
            struct side *s = &r->side[i];
            net_neighbour_add(s->net, ip_of(!i, k), device(&r->side[!i], k)->mac);
            net_route_add(s->net, ip_of(!i, k), device(s, k));
        }
}

static void rig_close(struct rig *r)
{
    for (unsigned i = 0; i < 2; i++)
        k_thread_new(r->side[i].kernel, "down", 0, down_body, &r->side[i]);
    run_until(r, 2, 2000 * MS);
    sim_run(r->w.sim, sim_now(r->w.sim) + 10 * MS, NULL);
    for (unsigned i = 0; i < 2; i++)
        os_free(r->side[i].kernel);
    fixture_close(&r->w);
}

/* What software finds: identity, place and windows. */
static void check_functions(struct rig *r)
{
    struct side *s = &r->side[0];
    const struct k_pci_dev *pf = K_CONTAINER(device(s, 0)->device, struct k_pci_dev, device);
    const struct iommu_domain *domain[1 + N_VFS];
    for (unsigned v = 0; v < N_VFS; v++) {
        const struct k_pci_dev *vf = K_CONTAINER(device(s, 1 + v)->device, struct k_pci_dev,
                                                 device);
        assert_int_equal(vf->id, pf->id + 1 + v);
        assert_int_equal(vf->vendor_id, NIC_VENDOR_ID);
        assert_int_equal(vf->device_id, NIC_VF_DEVICE_ID);
        assert_int_equal(vf->bar_bytes[0], NIC_BAR_BYTES);
        assert_true(vf->bar_base[0] % NIC_BAR_BYTES == 0);
        assert_true(vf->bar_base[0] >= pf->bar_base[0] + pf->bar_bytes[0] ||
                    vf->bar_base[0] + NIC_BAR_BYTES <= pf->bar_base[0]);
        uint64_t mac = 0;
        for (unsigned i = 0; i < NET_MAC_BYTES; i++)
            mac = mac << 8 | device(s, 1 + v)->mac.byte[i];
        assert_true(mac == nic_vf_mac(world_device(r->w.world, "a"), 0, v));
        assert_true(mac != nic_function_mac(world_device(r->w.world, "a"), 0));
    }
    for (unsigned i = 0; i < N_STREAMS;
         i++) { /* those that are open map into domains of their own */
        const struct os_dma *dma = device(s, i)->device->dma_context;
        assert_int_equal(dma->requester_id, pf->id + i);
        domain[i] = dma->domain;
        assert_non_null(domain[i]);
        for (unsigned k = 0; k < i; k++)
            assert_ptr_not_equal(domain[i], domain[k]);
    }
}

static void streams(const char *world)
{
    struct rig r = { 0 };
    rig_open(&r, world);
    check_functions(&r);
    for (unsigned i = 0; i < N_STREAMS; i++) {
        r.stream[i] = (struct stream){ .rig = &r, .i = i };
        k_thread_new(r.side[0].kernel, "server", (int)i + 1, server, &r.stream[i]);
        k_thread_new(r.side[1].kernel, "client", (int)i + 1, client, &r.stream[i]);
    }
    run_until(&r, 2 * N_STREAMS, 1000 * MS);
    const struct model *nic = world_device(r.w.world, "a");
    for (unsigned i = 0; i < N_STREAMS; i++) {
        const struct nic_function_stats *stats = i == 0 ? nic_function_stats(nic, 0)
                                                        : nic_vf_stats(nic, 0, i - 1);
        /* its stream and nothing else, both ways, with interrupts of its own */
        assert_in_range(stats->rx_bytes, BYTES, BYTES + BYTES / 8);
        assert_true(stats->tx_packets > 10 && stats->tx_bytes < BYTES / 8);
        const struct pcie_function *pf = nic->ports[0].function;
        assert_true((i == 0 ? pf : pf->vf[i - 1])->stats.interrupts > 10);
        assert_int_equal(stats->rx_no_buffer + stats->rx_overflow + stats->rx_no_queue, 0);
        for (unsigned k = 0; k < i; k++) /* at once */
            assert_true(r.stream[k].start_ps < r.stream[i].end_ps &&
                        r.stream[i].start_ps < r.stream[k].end_ps);
    }
    assert_int_equal(nic_vf_stats(nic, 0, 2)->rx_packets, 0);
    rig_close(&r);
}

static const char *with_firmware(char *text, size_t bytes, const char *firmware)
{
    const char *world = WORLD, *at = strstr(world, "FIRMWARE");
    snprintf(text, bytes, "%.*s%s%s", (int)(at - world), world, firmware, at + strlen("FIRMWARE"));
    return text;
}

static void test_streams(void **state)
{
    char text[2048];
    (void)state;
    streams(with_firmware(text, sizeof(text), "standard"));
}

/* The switch by 5-tuple knows the virtual functions by their addresses. */
static void test_octonic(void **state)
{
    char text[2048];
    (void)state;
    streams(with_firmware(text, sizeof(text), "octonic"));
}

/* ---- Several at once ------------------------------------------------------------------------- */

static void enable_body(void *arg)
{
    struct side *s = arg;
    struct net_device *pf = device(s, 0);
    const sim_time before_ps = k_now_ps(s->kernel);
    assert_int_equal(nic_dev_set_vfs(pf, 2), 0);
    assert_true(k_now_ps(s->kernel) - before_ps < 110 * MS);
    s->rig->count++;
}

/* Finds no driver when its turn comes. */
static void late_body(void *arg)
{
    struct side *s = arg;
    struct net_device *pf = device(s, 0);
    k_sleep(s->kernel, 70 * MS);
    assert_int_equal(nic_dev_set_vfs(pf, 0), -ENOENT);
    s->rig->count++;
}

/* While functions are being made nobody makes others, or takes them away; who comes then waits. */
static void rival_body(void *arg)
{
    struct side *s = arg;
    struct net_device *pf = device(s, 0);
    struct k_pci_dev *pci = K_CONTAINER(pf->device, struct k_pci_dev, device);
    k_sleep(s->kernel, 300 * MS);
    assert_int_equal(nic_dev_set_vfs(pf, 0), 0);
    k_thread_new(s->kernel, "enable", 0, enable_body, s);
    k_sleep(s->kernel, 50 * MS);
    assert_int_equal(k_pci_set_vfs(pci, 1), -EBUSY);
    assert_int_equal(k_pci_set_vfs(pci, 0), -EBUSY);
    assert_int_equal(nic_dev_set_vfs(pf, 1), -EBUSY);
    assert_int_equal(s->rig->count, 1);
    assert_non_null(nic_driver_device(s->driver, 2));
    assert_null(nic_driver_device(s->driver, 3));
    open_device(s, 2);
    device(s, 2)->ops->stop(device(s, 2));
    assert_int_equal(nic_dev_set_vfs(pf, 0), 0);
    k_thread_new(s->kernel, "enable", 0, enable_body, s);
    k_thread_new(s->kernel, "late", 2, late_body, s);
    k_sleep(s->kernel, 50 * MS);
    k_pci_remove(pci, false);
    k_sleep(s->kernel, MS);
    assert_int_equal(s->rig->count, 3);
    assert_null(nic_driver_device(s->driver, 0));
    nic_driver_free(s->driver);
    net_free(s->net);
    s->rig->count++;
}

static void test_several_at_once(void **state)
{
    char text[2048];
    struct rig r = { .count = 0 };
    (void)state;
    rig_open(&r, with_firmware(text, sizeof(text), "standard"));
    k_thread_new(r.side[0].kernel, "rival", 1, rival_body, &r.side[0]);
    run_until(&r, 4, 2000 * MS);
    k_thread_new(r.side[1].kernel, "down", 0, down_body, &r.side[1]);
    run_until(&r, 1, 2000 * MS);
    for (unsigned i = 0; i < 2; i++)
        os_free(r.side[i].kernel);
    fixture_close(&r.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_octonic),
        cmocka_unit_test(test_several_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
