/*
 * A borrowed NIC in simulated hosts: the borrower's kernel, network stack and unchanged driver work
 * on a device in the lender's tree, through two bridges back to back and the IOMMUs of both sides,
 * either, or none. Every byte is checked at its destination. Then it goes back, and nothing is
 * left.
 */
#include "tests/support/world_fixture.h"

#include <string.h>

#include "hw/pci_regs.h"
#include "logic/lending/lending.h"
#include "logic/net/net.h"
#include "logic/net/xps.h"
#include "logic/nic/nic_driver.h"
#include "models/base/payload.h"
#include "models/nic/nic.h"
#include "models/os/os.h"
#include "models/pcie/link/link.h"
#include "models/pcie/ntb/ntb.h"

#define HOST(NAME, IOMMU)                                                  \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; },"      \
         " { name = \"rp1\"; socket = 0; lanes = 8; } );"                  \
         " dram = { node_size = \"2 GiB\"; };"                             \
         " cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; };" \
         " iommu = { enabled = " IOMMU "; }; };\n"
#define BRIDGE "{ type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; bar2_bytes = \"%s\"; };"
/* `server` borrows, `lender` has the device, `client` is at the other end of the wire. */
#define WORLD                                                                               \
    "hosts = { " HOST("server", "%s") HOST("lender", "%s")                                  \
        HOST("client", "false") "};\n"                                                      \
                                "devices = { n0 = " BRIDGE " n1 = " BRIDGE                  \
                                " a = { type = \"nic.ethernet\"; lanes = 8; };"             \
                                " b = { type = \"nic.ethernet\"; lanes = 8; }; };\n"        \
                                "cables = ( { from = \"server.s0.rp0\"; to = \"n0.p0\"; }," \
                                " { from = \"lender.s0.rp0\"; to = \"n1.p0\"; },"           \
                                " { from = \"lender.s0.rp1\"; to = \"a.p0\"; },"            \
                                " { from = \"client.s0.rp0\"; to = \"b.p0\"; },"            \
                                " { from = \"n0.p1\"; to = \"n1.p1\"; length_m = 2.0; },"   \
                                " { from = \"a.e0\"; to = \"b.e0\"; latency_ns = 100; } );\n"

#define GIB8     "8 GiB"
#define BORROWER 0
#define LENDER   1
#define CLIENT   2
#define N_SIDES  3
#define IP(side) (0x0a000001u + (uint32_t)(side))
#define PORT     5001
#define KIB      1024u
#define MIB      (KIB * KIB)
#define SECOND   (1000 * SIM_PS_PER_MS)
#define STREAM   9u

struct rig;
struct side {
    struct kernel *kernel;
    struct lend_host *lend;
    struct net *net;
    struct nic_driver *driver;
    struct net_device *dev;
    struct rig *rig;
};
struct rig {
    struct world_fixture w;
    struct side side[N_SIDES];
    struct lend_borrow *borrow;
    struct lend_usage before[2]; /* of borrower and lender, after the first contact */
    bool to_client;              /* the borrower sends */
    bool expect_cut;             /* the streams end in the midst */
    uint64_t bytes, received;
    unsigned ready, done, down;
};

/* ---- Up -------------------------------------------------------------------------------------- */

static const struct k_pci_id nic_ids[] = { { NIC_VENDOR_ID, NIC_DEVICE_ID }, { 0, 0 } };

static void wait_for(struct rig *r, const unsigned *count, unsigned n, sim_time within_ps)
{
    sim_time until_ps = sim_now(r->w.sim) + within_ps;
    while (*count < n && sim_now(r->w.sim) < until_ps) {
        sim_run(r->w.sim, sim_now(r->w.sim) + SIM_PS_PER_MS, NULL);
        assert_null(sim_error(r->w.sim));
    }
    assert_int_equal(*count, n);
}

static void nic_up(struct side *s)
{
    s->dev = nic_driver_device(s->driver, 0);
    assert_non_null(s->dev);
    s->dev->ip = IP(s - s->rig->side);
    assert_int_equal(s->dev->ops->open(s->dev), 0);
    assert_true(s->dev->running && s->dev->carrier);
    xps_map_default(s->dev);
}

static void lend_up(struct side *s, uint32_t id, const struct k_pci_id *lend)
{
    struct lend_options options = lend_options_default;
    struct lend_error error;
    options.id = id;
    options.name = id == 1 ? "borrower" : "lender";
    options.lend = lend;
    s->lend = lend_host_new(s->kernel, &options);
    assert_non_null(s->lend);
    assert_int_equal(k_pci_register(s->kernel, lend_adapter_driver(s->lend)), 1);
    assert_int_equal(k_pci_register(s->kernel, lend_lender_driver(s->lend)), lend != NULL ? 1 : 0);
    assert_int_equal(lend_start(s->lend, &error), 0);
}

static void up_body(void *arg)
{
    struct side *s = arg;
    const unsigned side = (unsigned)(s - s->rig->side);
    if (side == CLIENT) {
        assert_int_equal(k_pci_register(s->kernel, nic_driver_pci(s->driver)), 1);
        nic_up(s);
    } else {
        lend_up(s, side + 1, side == LENDER ? nic_ids : NULL);
    }
    if (side == BORROWER) /* offered nothing yet: the device comes later */
        assert_int_equal(k_pci_register(s->kernel, nic_driver_pci(s->driver)), 0);
    s->rig->ready++;
}

static void borrow_body(void *arg)
{
    struct side *s = arg;
    struct rig *r = s->rig;
    struct lend_info info;
    struct lend_error error = { 0 };
    assert_int_equal(lend_discover(s->lend), 1);
    assert_int_equal(lend_list(s->lend, LENDER + 1, 0, &info, &error), 0);
    assert_int_equal(info.vendor_id, NIC_VENDOR_ID);
    assert_int_equal(info.lent_to, 0);
    assert_int_equal(lend_list(s->lend, LENDER + 1, 1, &info, &error), -ENOENT);
    r->before[0] = lend_usage(s->lend);
    r->before[1] = lend_usage(r->side[LENDER].lend);
    int status = lend_borrow(s->lend, LENDER + 1, info.id, &r->borrow, &error);
    if (status != 0)
        fail_msg("%d: %s", status, error.text);
    struct k_pci_dev *dev = lend_borrow_device(r->borrow);
    assert_non_null(dev);
    assert_non_null(dev->driver);
    /* What is forwarded and what is not. */
    assert_int_equal(k_config_read(dev, PCI_VENDOR_ID, 2), NIC_VENDOR_ID);
    assert_int_equal(k_config_read(dev, PCI_INTERRUPT + 1, 1), 0);
    assert_int_equal(k_config_read(dev, PCI_BAR0, 4) & ~PCI_BAR_FLAGS_MASK,
                     (uint32_t)dev->bar_base[0]);
    struct lend_borrow *second;
    assert_int_equal(lend_borrow(s->lend, LENDER + 1, info.id, &second, &error), -EBUSY);
    assert_non_null(strstr(error.text, "lent to host 1"));
    nic_up(s);
    r->ready++;
}

static void rig_open(struct rig *r, bool borrower_iommu, bool lender_iommu, const char *aperture)
{
    static const char *const names[] = { "server", "lender", "client" };
    char *text = g_strdup_printf(WORLD, borrower_iommu ? "true" : "false",
                                 lender_iommu ? "true" : "false", aperture, aperture);
    fixture_open(&r->w, text);
    g_free(text);
    for (unsigned i = 0; i < N_SIDES; i++) {
        struct side *s = &r->side[i];
        struct host *host = world_host(r->w.world, names[i]);
        s->rig = r;
        s->kernel = os_new(host, host_os_params(host));
        if (i != LENDER) {
            s->net = net_new(s->kernel, &net_params_default);
            s->driver = nic_driver_new(s->net, s->kernel, &nic_driver_params_default, "eth");
        }
        k_thread_new(s->kernel, "up", 0, up_body, s);
    }
    wait_for(r, &r->ready, N_SIDES, SECOND);
    r->ready = 0;
    k_thread_new(r->side[BORROWER].kernel, "borrow", 0, borrow_body, &r->side[BORROWER]);
    wait_for(r, &r->ready, 1, SECOND);
    for (unsigned i = BORROWER; i <= CLIENT; i += CLIENT) {
        struct side *s = &r->side[i], *other = &r->side[CLIENT - i];
        net_neighbour_add(s->net, other->dev->ip, other->dev->mac);
        net_route_add(s->net, other->dev->ip, s->dev);
    }
}

/* ---- Down ------------------------------------------------------------------------------------ */

static void nic_down(struct side *s)
{
    struct net_device *dev = nic_driver_device(s->driver, 0);
    if (dev != NULL && dev->device != NULL)
        k_pci_remove(K_CONTAINER(dev->device, struct k_pci_dev, device), false);
}

static void return_body(void *arg)
{
    struct side *s = arg;
    k_sleep(s->kernel, 300 * SIM_PS_PER_MS); /* sockets' last timers */
    if (s == &s->rig->side[CLIENT])
        nic_down(s);
    else
        lend_return(s->rig->borrow);
    nic_driver_free(s->driver);
    net_free(s->net);
    s->rig->down++;
}

static void free_body(void *arg)
{
    struct side *s = arg;
    lend_host_free(s->lend);
    s->rig->down++;
}

static void expect_usage(const struct lend_usage *now, const struct lend_usage *then)
{
    assert_int_equal(now->windows, then->windows);
    assert_int_equal(now->outgoing, then->outgoing);
    assert_int_equal(now->incoming, then->incoming);
    assert_int_equal(now->exported_bytes, then->exported_bytes);
    assert_int_equal(now->lent + now->borrowed, 0);
    assert_int_equal(now->mapped_pages, 0);
}

static void rig_close(struct rig *r)
{
    k_thread_new(r->side[CLIENT].kernel, "down", 0, return_body, &r->side[CLIENT]);
    k_thread_new(r->side[BORROWER].kernel, "down", 0, return_body, &r->side[BORROWER]);
    wait_for(r, &r->down, 2, 2 * SECOND);
    for (unsigned i = 0; i < 2; i++) {
        struct lend_usage now = lend_usage(r->side[i].lend);
        expect_usage(&now, &r->before[i]);
        k_thread_new(r->side[i].kernel, "free", 0, free_body, &r->side[i]);
    }
    wait_for(r, &r->down, 4, SECOND);
    sim_run(r->w.sim, sim_now(r->w.sim) + 10 * SIM_PS_PER_MS, NULL);
    for (unsigned i = 0; i < N_SIDES; i++)
        os_free(r->side[i].kernel);
    fixture_close(&r->w);
}

/* ---- Streams --------------------------------------------------------------------------------- */

static void check(struct rig *r, struct kernel *kernel, struct kaddr at, uint64_t bytes)
{
    struct payload_difference is;
    if (!payload_check(kernel, at, payload_mark(STREAM, r->received), bytes, &is))
        fail_msg("from byte %llu on: tag %#llx, expected %#llx", (unsigned long long)r->received,
                 (unsigned long long)is.found, (unsigned long long)is.expected);
    r->received += bytes;
}

static void receiver(void *arg)
{
    struct side *s = arg;
    struct rig *r = s->rig;
    struct socket *listener = socket_tcp_listen(s->net, s->dev->ip, PORT);
    struct socket *socket = socket_accept(listener);
    assert_non_null(socket);
    struct kaddr buffer = k_alloc(s->kernel, K_NODE_LOCAL, 64 * KIB, K_PAGE_BYTES);
    int64_t n;
    while ((n = socket_receive(socket, buffer, 64 * KIB)) > 0)
        check(r, s->kernel, buffer, (uint64_t)n);
    assert_int_equal(n, 0);
    assert_int_equal(r->received, r->bytes);
    socket_close(socket);
    socket_close(listener);
    r->done++;
}

static void sender(void *arg)
{
    struct side *s = arg;
    struct rig *r = s->rig;
    struct side *to = &r->side[r->to_client ? CLIENT : BORROWER];
    struct socket *socket = socket_tcp_connect(s->net, s->dev->ip, IP(to - r->side), PORT);
    assert_non_null(socket);
    struct kaddr buffer = k_alloc(s->kernel, K_NODE_LOCAL, 64 * KIB, K_PAGE_BYTES);
    for (uint64_t sent = 0; sent < r->bytes; sent += 64 * KIB) {
        payload_fill(s->kernel, buffer, payload_mark(STREAM, sent), 64 * KIB);
        assert_int_equal(socket_send(socket, buffer, 64 * KIB), 64 * KIB);
    }
    socket_close(socket);
    r->done++;
}

static void stream(struct rig *r, bool to_client)
{
    struct side *b = &r->side[BORROWER], *c = &r->side[CLIENT];
    r->to_client = to_client;
    r->received = 0;
    r->done = 0;
    k_thread_new(b->kernel, "program", 1, to_client ? sender : receiver, b);
    k_thread_new(c->kernel, "program", 1, to_client ? receiver : sender, c);
    wait_for(r, &r->done, 2, SECOND);
}

static const struct ntb_stats *bridge(struct rig *r, const char *name)
{
    return &((const struct ntb *)world_device(r->w.world, name)->state)->stats;
}

static void both_ways(bool borrower_iommu, bool lender_iommu)
{
    struct rig r = { .bytes = 4 * MIB };
    rig_open(&r, borrower_iommu, lender_iommu, GIB8);
    stream(&r, false);
    /* The packets came by the bridges, into the borrower's memory and nowhere else. */
    assert_true(bridge(&r, "n0")->requests_in > 4 * MIB / 256);
    stream(&r, true);
    const struct ntb_stats *in = bridge(&r, "n0"), *out = bridge(&r, "n1");
    assert_int_equal(in->unknown_in + in->misrouted + in->oversized + in->disabled, 0);
    assert_int_equal(out->unknown_out + out->unmapped + out->disabled + out->oversized, 0);
    rig_close(&r);
    assert_int_equal(r.down, 4);
}

static void test_no_iommu(void **state)
{
    (void)state;
    both_ways(false, false);
}

static void test_borrower_iommu(void **state)
{
    (void)state;
    both_ways(true, false);
}

static void test_lender_iommu(void **state)
{
    (void)state;
    both_ways(false, true);
}

static void test_both_iommus(void **state)
{
    (void)state;
    both_ways(true, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_iommu),
        cmocka_unit_test(test_borrower_iommu),
        cmocka_unit_test(test_lender_iommu),
        cmocka_unit_test(test_both_iommus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
