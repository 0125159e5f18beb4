/*
 * Virtual functions of one NIC, lent one by one in simulated hosts behind a cluster switch, IOMMUs
 * on: two borrowers, and the lender, whose driver of the physical function stays, send at the same
 * time. A function goes back, or its borrower is lost, or all are taken away, while the others
 * work. Every byte is checked.
 */
#include "tests/support/kernel_call.h"
#include "tests/support/world_fixture.h"

#include <errno.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "logic/lending/lending.h"
#include "logic/net/net.h"
#include "logic/net/xps.h"
#include "logic/nic/nic_driver.h"
#include "models/base/payload.h"
#include "models/nic/nic.h"
#include "models/os/os.h"
#include "models/pcie/endpoint/pcie_function.h"
#include "models/pcie/link/context.h"
#include "models/pcie/link/link.h"
#include "models/pcie/ntb/ntb.h"

#define HOST(NAME, MORE)                                                                          \
    NAME " = { cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; };"                    \
         " dram = { node_size = \"1 GiB\"; }; iommu = { enabled = true; };"                       \
         " ports = ( { name = \"rp0\"; lanes = 8; }, { name = \"rp1\"; lanes = 8; } );" MORE "};" \
         "\n"
#define BRIDGE " = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; bar2_bytes = \"4 GiB\"; };"
#define WORLD(TWO)                                                                                 \
    "hosts = { " HOST("lender", "") HOST("server", "") HOST("two", TWO)                            \
        HOST("client", "") " };\n"                                                                 \
                           "devices = { n0" BRIDGE " n1" BRIDGE " n2" BRIDGE                       \
                           " a = { type = \"nic.ethernet\"; lanes = 8; vfs = 4; };"                \
                           " b = { type = \"nic.ethernet\"; lanes = 8; };"                         \
                           " sw = { type = \"pcie.cluster_switch\"; ports = 3; lanes = 8; }; };\n" \
                           "cables = ( { from = \"lender.s0.rp0\"; to = \"n0.p0\"; },"             \
                           " { from = \"lender.s0.rp1\"; to = \"a.p0\"; },"                        \
                           " { from = \"server.s0.rp0\"; to = \"n1.p0\"; },"                       \
                           " { from = \"two.s0.rp0\"; to = \"n2.p0\"; },"                          \
                           " { from = \"client.s0.rp0\"; to = \"b.p0\"; },"                        \
                           " { from = \"n0.p1\"; to = \"sw.p0\"; length_m = 2.0; },"               \
                           " { from = \"n1.p1\"; to = \"sw.p1\"; length_m = 2.0; },"               \
                           " { from = \"n2.p1\"; to = \"sw.p2\"; length_m = 2.0; },"               \
                           " { from = \"a.e0\"; to = \"b.e0\"; latency_ns = 100; } );\n"

enum { LENDER, ONE, TWO, CLIENT, N_SIDES };
#define N_VFS    3u
#define LENT_VFS 2u /* VF 0 and VF 1; the lender keeps VF 2 */
#define IP(side) (0x0a000001u + (uint32_t)(side))
#define PORT     5001u
#define CHUNK    65536u
#define MIB      (UINT64_C(1) << 20)
#define MS       SIM_PS_PER_MS

struct rig;
struct side {
    struct rig *rig;
    struct kernel *kernel;
    struct lend_host *lend;
    struct net *net;
    struct nic_driver *driver;
    struct net_device *dev; /* that it sends and receives by */
    struct lend_borrow *borrow;
    struct lend_usage before;
    unsigned vf; /* to borrow */
    int status;
    struct lend_error error;
};
struct stream { /* from a side to the client */
    struct rig *rig;
    unsigned side;
    uint64_t bytes, received;
    unsigned done;
};
struct rig {
    struct world_fixture w;
    struct side side[N_SIDES];
    struct stream stream[N_SIDES];
    uint16_t pf_id;
};

/* ---- Calls in kernels ------------------------------------------------------------------------ */

struct call {
    struct side *side;
    void (*body)(struct side *side);
};

static void call_body(void *arg)
{
    const struct call *call = arg;
    call->body(call->side);
}

static void call(struct rig *r, unsigned side, void (*body)(struct side *side))
{
    struct call c = { .side = &r->side[side], .body = body };
    kernel_call(&r->w, r->side[side].kernel, call_body, &c);
}

/* ---- Up -------------------------------------------------------------------------------------- */

static const struct k_pci_id vf_ids[] = { { NIC_VENDOR_ID, NIC_VF_DEVICE_ID }, { 0, 0 } };

static bool wanted(const struct k_pci_dev *dev, void *context)
{
    (void)context;
    return dev->pf != NULL && dev->vf_number < LENT_VFS;
}

static void open_device(struct side *s, struct net_device *dev)
{
    assert_non_null(dev);
    s->dev = dev;
    dev->ip = IP(s - s->rig->side);
    assert_int_equal(dev->ops->open(dev), 0);
    assert_true(dev->running && dev->carrier);
    xps_map_default(dev);
    for (unsigned i = 0; i < N_SIDES; i++) { /* the client knows all, all know the client */
        struct side *other = &s->rig->side[i];
        if (other->dev == NULL || (i != CLIENT) == (s != &s->rig->side[CLIENT]))
            continue;
        net_neighbour_add(s->net, other->dev->ip, other->dev->mac);
        net_route_add(s->net, other->dev->ip, dev);
        net_neighbour_add(other->net, dev->ip, dev->mac);
        net_route_add(other->net, dev->ip, other->dev);
    }
}

static void load(struct side *s)
{
    struct lend_options options = lend_options_default;
    const unsigned side = (unsigned)(s - s->rig->side);
    if (side != CLIENT) {
        options.id = side + 1;
        options.name = side == LENDER ? "lender" : "borrower";
        options.lend = side == LENDER ? vf_ids : NULL;
        options.want = wanted;
        s->lend = lend_host_new(s->kernel, &options);
        assert_int_equal(k_pci_register(s->kernel, lend_adapter_driver(s->lend)), 1);
        assert_int_equal(k_pci_register(s->kernel, lend_lender_driver(s->lend)), 0);
        assert_int_equal(lend_start(s->lend, NULL), 0);
    }
    const int n = k_pci_register(s->kernel, nic_driver_pci(s->driver));
    assert_int_equal(n, side == LENDER || side == CLIENT ? 1 : 0);
    if (side == CLIENT)
        open_device(s, nic_driver_device(s->driver, 0));
}

static struct k_pci_dev *pf_of(struct rig *r)
{
    struct k_pci_dev *pf = os_pci_find(r->side[LENDER].kernel, r->pf_id);
    assert_non_null(pf);
    return pf;
}

static void enable_vfs(struct side *s)
{
    struct k_pci_dev *pf = pf_of(s->rig);
    assert_int_equal(k_pci_configure_vfs(pf, N_VFS), 0);
    for (unsigned v = 0; v < N_VFS; v++) {
        const struct k_pci_dev *vf = k_pci_vf(pf, v);
        assert_ptr_equal(vf->pf, pf);
        assert_ptr_equal(vf->driver,
                         v < LENT_VFS ? lend_lender_driver(s->lend) : nic_driver_pci(s->driver));
    }
    assert_null(k_pci_vf(pf, N_VFS));
    assert_string_equal(nic_driver_device(s->driver, 0)->name, "eth0");
    assert_string_equal(nic_driver_device(s->driver, 1)->name, "eth0v2");
    assert_null(nic_driver_device(s->driver, 2));
}

/* The lender sends by the physical function. */
static void open_pf(struct side *s)
{
    open_device(s, nic_driver_device(s->driver, 0));
}

static void meet(struct side *s)
{
    struct lend_info info;
    assert_true(lend_discover(s->lend) > 0);
    for (unsigned i = 0; i < LENT_VFS; i++) {
        assert_int_equal(lend_list(s->lend, LENDER + 1, i, &info, NULL), 0);
        assert_int_equal(info.device_id, NIC_VF_DEVICE_ID);
    }
    assert_int_equal(lend_list(s->lend, LENDER + 1, LENT_VFS, &info, NULL), -ENOENT);
    s->before = lend_usage(s->lend);
}

static void borrow(struct side *s)
{
    s->status = lend_borrow(s->lend, LENDER + 1, (uint16_t)(s->rig->pf_id + 1 + s->vf), &s->borrow,
                            &s->error);
}

static void open_borrowed(struct side *s)
{
    struct k_pci_dev *dev = lend_borrow_device(s->borrow);
    /* What a virtual function's own registers do not say. */
    assert_int_equal(k_config_read(dev, PCI_VENDOR_ID, 2), NIC_VENDOR_ID);
    assert_int_equal(k_config_read(dev, PCI_VENDOR_ID + 2, 2), NIC_VF_DEVICE_ID);
    assert_int_equal(k_config_read(dev, PCI_BAR0, 4) & PCI_BAR_TYPE_MASK, PCI_BAR_TYPE_64);
    assert_int_equal(k_config_read(dev, PCI_BAR0, 4) & ~PCI_BAR_FLAGS_MASK,
                     (uint32_t)dev->bar_base[0]);
    assert_int_equal(k_config_read(dev, PCI_BAR0 + 4, 4), (uint32_t)(dev->bar_base[0] >> 32));
    assert_int_equal(dev->bar_bytes[0], NIC_BAR_BYTES);
    assert_null(dev->pf);
    assert_ptr_equal(dev->driver, nic_driver_pci(s->driver));
    open_device(s, nic_driver_device(s->driver, 0));
}

static void borrow_vf(struct rig *r, unsigned side, unsigned vf)
{
    struct side *s = &r->side[side];
    s->vf = vf;
    call(r, side, borrow);
    if (s->status != 0)
        fail_msg("%d: %s", s->status, s->error.text);
    call(r, side, open_borrowed);
}

static struct rig *rig_open(const char *world)
{
    static const char *const names[] = { "lender", "server", "two", "client" };
    struct rig *r = calloc(1, sizeof(*r));
    fixture_open(&r->w, world);
    for (unsigned i = 0; i < N_SIDES; i++) {
        struct side *s = &r->side[i];
        struct host *host = world_host(r->w.world, names[i]);
        s->rig = r;
        s->kernel = os_new(host, host_os_params(host));
        s->net = net_new(s->kernel, &net_params_default);
        s->driver = nic_driver_new(s->net, s->kernel, &nic_driver_params_default, "eth");
        r->stream[i] = (struct stream){ .rig = r, .side = i };
    }
    assert_true(world_function_id(world_device(r->w.world, "a"), 0, &r->pf_id));
    for (unsigned i = 0; i < N_SIDES; i++)
        call(r, i, load);
    call(r, LENDER, enable_vfs);
    call(r, LENDER, open_pf);
    call(r, ONE, meet);
    call(r, TWO, meet);
    r->side[LENDER].before = lend_usage(r->side[LENDER].lend);
    return r;
}

/* ---- Down ------------------------------------------------------------------------------------ */

static void give_back(struct side *s)
{
    lend_return(s->borrow);
    s->borrow = NULL;
    s->dev = NULL;
}

static void remove_nics(struct side *s)
{
    struct net_device *dev;
    while ((dev = nic_driver_device(s->driver, 0)) != NULL)
        k_pci_remove(K_CONTAINER(dev->device, struct k_pci_dev, device), false);
}

static void unload(struct side *s)
{
    k_sleep(s->kernel, 300 * MS); /* sockets' last timers */
    remove_nics(s);
    nic_driver_free(s->driver);
    net_free(s->net);
    if (s->lend != NULL)
        lend_host_free(s->lend);
}

/* Nothing is lent any more, and no table holds what it did not hold before. */
static void expect_nothing_left(struct rig *r)
{
    for (unsigned i = LENDER; i <= TWO; i++) {
        const struct lend_usage now = lend_usage(r->side[i].lend), *then = &r->side[i].before;
        assert_int_equal(now.windows, then->windows);
        assert_int_equal(now.outgoing, then->outgoing);
        assert_int_equal(now.incoming, then->incoming);
        assert_int_equal(now.exported_bytes, then->exported_bytes);
        assert_int_equal(now.lent + now.borrowed + now.mapped_pages, 0);
    }
}

static void rig_close(struct rig *r)
{
    for (unsigned i = 0; i < N_SIDES; i++)
        call(r, i, unload);
    sim_run(r->w.sim, sim_now(r->w.sim) + 10 * MS, NULL);
    for (unsigned i = 0; i < N_SIDES; i++)
        os_free(r->side[i].kernel);
    fixture_close(&r->w);
    free(r);
}

/* ---- Streams --------------------------------------------------------------------------------- */

static uint64_t mark_of(const struct stream *st, uint64_t at)
{
    return payload_mark((uint16_t)(1 + st->side), at);
}

static void receiver(void *arg)
{
    struct stream *st = arg;
    struct side *s = &st->rig->side[CLIENT];
    struct socket *listener = socket_tcp_listen(s->net, s->dev->ip, (uint16_t)(PORT + st->side));
    struct socket *socket = socket_accept(listener);
    struct kaddr buffer = k_alloc(s->kernel, K_NODE_LOCAL, CHUNK, K_PAGE_BYTES);
    struct payload_difference is;
    int64_t n;
    while ((n = socket_receive(socket, buffer, CHUNK)) > 0) {
        assert_true(payload_check(s->kernel, buffer, mark_of(st, st->received), (uint64_t)n, &is));
        st->received += (uint64_t)n;
    }
    assert_int_equal(n, 0);
    assert_int_equal(st->received, st->bytes);
    socket_close(socket);
    socket_close(listener);
    st->done++;
}

static void sender(void *arg)
{
    struct stream *st = arg;
    struct side *s = &st->rig->side[st->side];
    struct socket *socket = socket_tcp_connect(s->net, s->dev->ip, IP(CLIENT),
                                               (uint16_t)(PORT + st->side));
    assert_non_null(socket);
    struct kaddr buffer = k_alloc(s->kernel, K_NODE_LOCAL, CHUNK, K_PAGE_BYTES);
    for (uint64_t sent = 0; sent < st->bytes; sent += CHUNK) {
        payload_fill(s->kernel, buffer, mark_of(st, sent), CHUNK);
        assert_int_equal(socket_send(socket, buffer, CHUNK), CHUNK);
    }
    socket_close(socket);
    st->done++;
}

static struct stream *start(struct rig *r, unsigned side, uint64_t bytes)
{
    struct stream *st = &r->stream[side];
    assert_int_equal(st->done % 2, 0);
    *st = (struct stream){ .rig = r, .side = side, .bytes = bytes };
    k_thread_new(r->side[CLIENT].kernel, "receiver", (int)side, receiver, st);
    k_thread_new(r->side[side].kernel, "sender", 1, sender, st);
    return st;
}

static void run_for(struct rig *r, sim_time ps)
{
    sim_run(r->w.sim, sim_now(r->w.sim) + ps, NULL);
    assert_null(sim_error(r->w.sim));
}

static void finish(struct rig *r, const struct stream *st)
{
    for (unsigned i = 0; i < 10000 && st->done < 2; i++)
        run_for(r, MS / 10);
    assert_int_equal(st->done, 2);
}

/* Bytes that the stream moves in this time. */
static uint64_t progress(struct rig *r, const struct stream *st, sim_time ps)
{
    const uint64_t before = st->received;
    run_for(r, ps);
    return st->received - before;
}

static const struct nic_function_stats *vf_stats(struct rig *r, unsigned v)
{
    return nic_vf_stats(world_device(r->w.world, "a"), 0, v);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* Both borrowers and the lender at once; one function goes back, is reset, and is lent again while
 * the other works. */
static void test_two_borrowers(void **state)
{
    (void)state;
    struct rig *r = rig_open(WORLD(""));
    borrow_vf(r, ONE, 0);
    borrow_vf(r, TWO, 1);
    const struct ntb *ntb = world_device(r->w.world, "n0")->state;
    assert_int_equal(lend_usage(r->side[LENDER].lend).lent, 2);
    /* One entry for the device, which its functions share; the borrowers tell them apart. */
    assert_int_equal(lend_usage(r->side[LENDER].lend).outgoing,
                     r->side[LENDER].before.outgoing + 1);
    struct stream *one = start(r, ONE, 4 * MIB), *two = start(r, TWO, 24 * MIB),
                  *lender = start(r, LENDER, 4 * MIB);
    finish(r, one);
    finish(r, lender);
    assert_int_equal(two->done, 0);
    assert_in_range(vf_stats(r, 0)->tx_bytes, 4 * MIB, 5 * MIB);
    assert_in_range(nic_function_stats(world_device(r->w.world, "a"), 0)->tx_bytes, 4 * MIB,
                    5 * MIB);
    assert_int_equal(vf_stats(r, 2)->tx_bytes, 0);
    const struct pcie_function *pf = world_device(r->w.world, "a")->ports[0].function;
    call(r, ONE, give_back);
    assert_int_equal(lend_usage(r->side[LENDER].lend).lent, 1);
    assert_true(progress(r, two, MS) > MIB / 8);
    call(r, ONE, borrow); /* it is being reset */
    assert_int_equal(r->side[ONE].status, -EAGAIN);
    assert_non_null(strstr(r->side[ONE].error.text, "is being reset"));
    assert_int_equal(two->done, 0);
    finish(r, two);
    assert_int_equal(ntb->stats.unknown_out + ntb->stats.unmapped + ntb->stats.disabled, 0);
    assert_false(pf->vf[0]->cfg.live.bus_master);
    assert_true(pf->vf[1]->cfg.live.bus_master && pf->cfg.live.bus_master);
    run_for(r, 110 * MS);
    borrow_vf(r, ONE, 0);
    finish(r, start(r, ONE, 4 * MIB));
    call(r, ONE, give_back);
    call(r, TWO, give_back);
    run_for(r, 110 * MS);
    expect_nothing_left(r);
    rig_close(r);
}

static bool lost(struct rig *r)
{
    return lend_usage(r->side[LENDER].lend).lent == 1;
}

/* The cable of one borrower comes out: its function is stopped and reset, the other one works on,
 * and its host takes the function over. */
static void test_borrower_lost(void **state)
{
    (void)state;
    struct rig *r = rig_open(WORLD(""));
    struct pcie_port *a, *b, *port = &world_device(r->w.world, "n1")->ports[1];
    struct pcie_link *cable = NULL;
    borrow_vf(r, ONE, 0);
    borrow_vf(r, TWO, 1);
    finish(r, start(r, ONE, 2 * MIB));
    struct stream *two = start(r, TWO, 64 * MIB);
    run_for(r, MS);
    for (unsigned n = 0; (cable = pcie_context_link(world_pcie(r->w.world), n, &a, &b)) != NULL;
         n++)
        if (a == port || b == port)
            break;
    pcie_link_set_up(cable, false);
    for (unsigned i = 0; i < 100 && !lost(r); i++)
        assert_true(progress(r, two, MS) > MIB / 8 || two->done != 0);
    assert_true(lost(r));
    assert_int_equal(two->done, 0);
    call(r, ONE, give_back); /* what is left of it */
    finish(r, two);
    run_for(r, 110 * MS);
    call(r, TWO, give_back);
    borrow_vf(r, TWO, 0);
    finish(r, start(r, TWO, 4 * MIB));
    call(r, TWO, give_back);
    pcie_link_set_up(cable, true);
    run_for(r, 150 * MS);
    borrow_vf(r, ONE, 1);
    finish(r, start(r, ONE, 2 * MIB));
    call(r, ONE, give_back);
    run_for(r, 110 * MS);
    expect_nothing_left(r);
    rig_close(r);
}

static void disable_vfs(struct side *s)
{
    assert_int_equal(k_pci_configure_vfs(pf_of(s->rig), 0), 0);
}

/* The lender disables its virtual functions, and unloads the physical one's driver: what is lent is
 * asked for, given back, and gone. */
static void test_taken_away(void **state)
{
    (void)state;
    struct rig *r = rig_open(WORLD(""));
    borrow_vf(r, ONE, 0);
    borrow_vf(r, TWO, 1);
    finish(r, start(r, TWO, 2 * MIB));
    struct stream *lender = start(r, LENDER, 8 * MIB);
    call(r, LENDER, disable_vfs);
    assert_null(k_pci_vf(pf_of(r), 0));
    for (unsigned i = ONE; i <= TWO; i++) {
        assert_null(lend_borrow_device(r->side[i].borrow));
        assert_null(nic_driver_device(r->side[i].driver, 0)); /* its driver has let go */
        call(r, i, give_back);
        call(r, i, borrow);
        assert_int_equal(r->side[i].status, -ENOENT);
    }
    finish(r, lender);
    call(r, LENDER, enable_vfs);
    borrow_vf(r, TWO, 0);
    finish(r, start(r, TWO, 2 * MIB));
    call(r, LENDER, remove_nics);
    assert_null(lend_borrow_device(r->side[TWO].borrow));
    call(r, TWO, give_back);
    expect_nothing_left(r);
    rig_close(r);
}

/* Payloads are those of the physical function, which others use. */
static void test_payload(void **state)
{
    (void)state;
    struct rig *r = rig_open(WORLD(" root_complex = { mps_bytes = 128; };"));
    r->side[TWO].vf = 1;
    call(r, TWO, borrow);
    assert_int_equal(r->side[TWO].status, -EMSGSIZE);
    assert_non_null(strstr(r->side[TWO].error.text, "as its physical one"));
    borrow_vf(r, ONE, 1);
    finish(r, start(r, ONE, 2 * MIB));
    call(r, ONE, give_back);
    run_for(r, 110 * MS);
    expect_nothing_left(r);
    rig_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_borrowers),
        cmocka_unit_test(test_borrower_lost),
        cmocka_unit_test(test_taken_away),
        cmocka_unit_test(test_payload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
