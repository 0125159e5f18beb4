/*
 * The DMA engine of a bridge and its driver, on two simulated hosts back to back, with and without
 * IOMMUs: every byte at its destination, rings that wrap, failures, rates that follow from reads in
 * flight, nothing left behind.
 */
#include "tests/support/world_fixture.h"

#include <errno.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "logic/lending/ntb_dmaengine.h"
#include "models/base/payload.h"
#include "models/os/os.h"
#include "models/pcie/link/link.h"
#include "models/pcie/ntb/ntb.h"

#define HOST(NAME, IOMMU)                                                  \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; } );"    \
         " dram = { node_size = \"2 GiB\"; };"                             \
         " cpu = { sockets = 1; cores_per_socket = 2; clock_ghz = 2.0; };" \
         " root_complex = { completion_timeout_us = 60; };"                \
         " iommu = { enabled = " IOMMU "; }; };\n"
#define BRIDGE                                                                    \
    "{ type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; bar2_bytes = \"8 GiB\"; " \
    "latency_ns = 110; dma_channels = 2; dma_reads_in_flight = %u; dma_completion_timeout_us = 60; };"
#define WORLD                                                                  \
    "hosts = { " HOST("server", "%s")                                          \
        HOST("peer",                                                           \
             "%s") "};\n"                                                      \
                   "devices = { n0 = " BRIDGE " n1 = " BRIDGE " };\n"          \
                   "cables = ( { from = \"server.s0.rp0\"; to = \"n0.p0\"; }," \
                   " { from = \"peer.s0.rp0\"; to = \"n1.p0\"; },"             \
                   " { from = \"n0.p1\"; to = \"n1.p1\"; length_m = 2.0; latency_ns = 40; } );\n"

#define N_SIDES       2
#define SERVER        0
#define PEER          1
#define SEGMENT       7u
#define SEGMENT_BYTES (1024u * 1024)
#define SECOND        (1000 * SIM_PS_PER_MS)
#define US            SIM_PS_PER_US
/* Latency of a chip, of a cable with both PHYs. */
#define CHIP_NS  110.0
#define CABLE_NS (40.0 + 2.0 * 5.0)

struct rig;
struct side {
    struct rig *rig;
    struct kernel *kernel;
    struct lend_host *lend;
};
struct rig {
    struct world_fixture w;
    struct side side[N_SIDES];
    struct lend_dma *dma; /* of the server */
    struct lend_remote remote;
    struct kaddr local, segment;
    uint64_t local_dma;
    void (*body)(struct rig *rig);
    unsigned ready;
};

static struct ntb *bridge(const struct rig *r, unsigned side)
{
    return world_device(r->w.world, side == SERVER ? "n0" : "n1")->state;
}

/* ---- Up and down ----------------------------------------------------------------------------- */

static void await(struct rig *r, unsigned n)
{
    sim_time until_ps = sim_now(r->w.sim) + 5 * SECOND;
    while (r->ready < n && sim_now(r->w.sim) < until_ps) {
        sim_run(r->w.sim, sim_now(r->w.sim) + SIM_PS_PER_MS, NULL);
        assert_null(sim_error(r->w.sim));
    }
    assert_int_equal(r->ready, n);
}

static void up_body(void *arg)
{
    struct side *s = arg;
    struct rig *r = s->rig;
    struct lend_options options = lend_options_default;
    struct lend_error error = { 0 };
    options.id = s == &r->side[SERVER] ? 1 : 2;
    options.pool_bytes = 4 * SEGMENT_BYTES;
    s->lend = lend_host_new(s->kernel, &options);
    assert_non_null(s->lend);
    assert_int_equal(k_pci_register(s->kernel, lend_adapter_driver(s->lend)), 1);
    assert_int_equal(lend_start(s->lend, &error), 0);
    if (s == &r->side[PEER])
        assert_int_equal(lend_segment_new(s->lend, SEGMENT, SEGMENT_BYTES, &r->segment, &error), 0);
    r->ready++;
}

static void test_body(void *arg)
{
    struct side *s = arg;
    struct rig *r = s->rig;
    struct lend_dma_options options = lend_dma_options_default;
    struct lend_error error = { 0 };
    options.ring = 8;
    assert_int_equal(lend_discover(s->lend), 1);
    assert_int_equal(lend_segment_connect(s->lend, 2, SEGMENT, &r->remote, &error), 0);
    r->dma = lend_dma_new(s->lend, &options);
    assert_non_null(r->dma);
    assert_null(lend_dma_device(r->dma));
    assert_int_equal(lend_dma_allow(r->dma, &r->remote, &error), -ENODEV);
    assert_int_equal(k_pci_register(s->kernel, lend_dma_driver(r->dma)), 1);
    assert_int_equal(lend_dma_channels(r->dma), 2);
    r->local = k_alloc(s->kernel, K_NODE_LOCAL, SEGMENT_BYTES, K_PAGE_BYTES);
    assert_int_equal(
        k_dma_map(lend_dma_device(r->dma), r->local, SEGMENT_BYTES, K_DMA_BOTH, &r->local_dma), 0);
    r->body(r);
    k_dma_unmap(lend_dma_device(r->dma), r->local_dma, SEGMENT_BYTES, K_DMA_BOTH);
    lend_dma_free(r->dma);
    lend_segment_disconnect(&r->remote);
    r->ready++;
}

static void down_body(void *arg)
{
    struct side *s = arg;
    struct lend_usage usage = lend_usage(s->lend);
    assert_int_equal(usage.outgoing, 0);
    lend_host_free(s->lend);
    s->rig->ready++;
}

static void run(void (*body)(struct rig *rig), bool iommu, unsigned reads_in_flight)
{
    static const char *const names[] = { "server", "peer" };
    const char *on = iommu ? "true" : "false";
    struct rig r = { .body = body };
    char *text = g_strdup_printf(WORLD, on, on, reads_in_flight, reads_in_flight);
    fixture_open(&r.w, text);
    g_free(text);
    for (unsigned i = 0; i < N_SIDES; i++) {
        struct host *host = world_host(r.w.world, names[i]);
        r.side[i] = (struct side){ .rig = &r, .kernel = os_new(host, host_os_params(host)) };
        k_thread_new(r.side[i].kernel, "up", 0, up_body, &r.side[i]);
    }
    await(&r, 2);
    k_thread_new(r.side[SERVER].kernel, "test", 0, test_body, &r.side[SERVER]);
    await(&r, 3);
    assert_int_equal(bridge(&r, SERVER)->stats.dma.unsupported, 0);
    for (unsigned i = 0; i < N_SIDES; i++)
        k_thread_new(r.side[i].kernel, "down", 0, down_body, &r.side[i]);
    await(&r, 5);
    sim_run(r.w.sim, sim_now(r.w.sim) + 10 * SIM_PS_PER_MS, NULL);
    for (unsigned i = 0; i < N_SIDES; i++)
        os_free(r.side[i].kernel);
    fixture_close(&r.w);
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static void fill(struct kernel *kernel, struct kaddr at, unsigned seed)
{
    uint8_t bytes[4096];
    for (uint64_t offset = 0; offset < SEGMENT_BYTES; offset += sizeof bytes) {
        for (unsigned i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)((offset + i) * 7 + (offset + i) / 251 + seed);
        k_poke(kernel, kaddr_add(at, offset), bytes, sizeof bytes);
    }
}

static uint8_t *dump(struct kernel *kernel, struct kaddr at)
{
    uint8_t *bytes = malloc(SEGMENT_BYTES);
    assert_non_null(bytes);
    k_peek(kernel, at, bytes, SEGMENT_BYTES);
    return bytes;
}

struct copy {
    uint64_t from, to, bytes;
    bool out; /* to the other host */
};

/* One copy by itself; all of both memories is compared with what it has to be. */
static void check_copy(struct rig *r, const struct copy *c, unsigned channel, bool poll)
{
    struct kernel *here = r->side[SERVER].kernel, *there = r->side[PEER].kernel;
    uint64_t local = r->local_dma + (c->out ? c->from : c->to);
    uint64_t window = r->remote.map.address + (c->out ? c->to : c->from);
    fill(here, r->local, 1);
    fill(there, r->segment, 91);
    uint8_t *expected = dump(c->out ? there : here, c->out ? r->segment : r->local);
    uint8_t *source = dump(c->out ? here : there, c->out ? r->local : r->segment);
    memcpy(expected + c->to, source + c->from, c->bytes);
    int64_t cookie = lend_dma_submit(r->dma, channel, c->out ? local : window,
                                     c->out ? window : local, c->bytes, poll ? 0 : LEND_DMA_NOTIFY);
    assert_true(cookie > 0);
    assert_int_equal(lend_dma_poll(r->dma, channel, cookie), 0);
    lend_dma_issue(r->dma, channel);
    int status = 0;
    while (poll && (status = lend_dma_poll(r->dma, channel, cookie)) == 0)
        k_compute(here, 100);
    if (!poll)
        status = lend_dma_wait(r->dma, channel, cookie) == 0 ? 1 : -1;
    assert_int_equal(status, 1);
    k_sleep(here, 10 * US); /* posted writes are still under way */
    uint8_t *now = dump(c->out ? there : here, c->out ? r->segment : r->local);
    uint8_t *kept = dump(c->out ? here : there, c->out ? r->local : r->segment);
    assert_memory_equal(now, expected, SEGMENT_BYTES);
    assert_memory_equal(kept, source, SEGMENT_BYTES);
    free(now);
    free(kept);
    free(expected);
    free(source);
}

static void bytes_body(struct rig *r)
{
    static const struct copy copies[] = {
        { 0, 0, 4096, true },          { 0, 0, 4096, false },         { 1, 4094, 7, true },
        { 4095, 3, 4098, false },      { 64, 128, 64, true },         { 63, 64, 1, false },
        { 4032, 8128, 100000, true },  { 777, 12345, 65537, true },   { 12345, 776, 65537, false },
        { 0, 0, SEGMENT_BYTES, true }, { 0, 0, SEGMENT_BYTES, false }
    };
    assert_int_equal(lend_dma_allow(r->dma, &r->remote, NULL), 0);
    for (unsigned i = 0; i < sizeof copies / sizeof copies[0]; i++)
        check_copy(r, &copies[i], i % 2, i % 3 == 0);
    lend_dma_revoke(r->dma, &r->remote);
    const struct ntb *ntb = bridge(r, SERVER);
    assert_int_equal(ntb->stats.dma.descriptors, sizeof copies / sizeof copies[0]);
    assert_int_equal(ntb->stats.dma.failed, 0);
    assert_int_equal(bridge(r, PEER)->stats.unknown_in, 0);
}

static void test_bytes(void **state)
{
    (void)state;
    run(bytes_body, false, 64);
}

static void test_bytes_iommus(void **state)
{
    (void)state;
    run(bytes_body, true, 64);
}

static void test_bytes_few_reads(void **state)
{
    (void)state;
    run(bytes_body, false, 3);
}

/* ---- Rings ----------------------------------------------------------------------------------- */

#define PIECE 512u

/* Both channels, many more copies than their rings have entries, issued in odd groups; every second
 * piece goes by the other channel. */
static void ring_body(struct rig *r)
{
    struct kernel *here = r->side[SERVER].kernel, *there = r->side[PEER].kernel;
    int64_t cookie[2] = { 0, 0 };
    const unsigned n = 500;
    assert_int_equal(lend_dma_allow(r->dma, &r->remote, NULL), 0);
    fill(here, r->local, 5);
    fill(there, r->segment, 50);
    for (unsigned i = 0; i < n; i++) {
        unsigned channel = i % 2;
        int64_t got;
        while ((got = lend_dma_submit(r->dma, channel, r->local_dma + i * PIECE,
                                      r->remote.map.address + (n - 1 - i) * PIECE, PIECE,
                                      LEND_DMA_NOTIFY)) == -ENOSPC) {
            lend_dma_issue(r->dma, channel);
            assert_int_equal(lend_dma_wait(r->dma, channel, cookie[channel] - 3), 0);
        }
        assert_int_equal(got, cookie[channel] + 1);
        cookie[channel] = got;
        if (i % 5 == 0)
            lend_dma_issue(r->dma, channel);
    }
    for (unsigned channel = 0; channel < 2; channel++) {
        lend_dma_issue(r->dma, channel);
        assert_int_equal(lend_dma_wait(r->dma, channel, cookie[channel]), 0);
    }
    k_sleep(here, 10 * US);
    uint8_t *from = dump(here, r->local), *to = dump(there, r->segment);
    for (unsigned i = 0; i < n; i++)
        assert_memory_equal(from + i * PIECE, to + (n - 1 - i) * PIECE, PIECE);
    free(from);
    free(to);
    lend_dma_revoke(r->dma, &r->remote);
    assert_int_equal(bridge(r, SERVER)->stats.dma.bytes, n * PIECE);
}

static void test_rings(void **state)
{
    (void)state;
    run(ring_body, false, 64);
    run(ring_body, true, 5);
}

static void refused_body(struct rig *r)
{
    struct lend_dma *dma = r->dma;
    assert_int_equal(lend_dma_submit(dma, 2, 0, 0, 64, 0), -EINVAL);
    assert_int_equal(lend_dma_submit(dma, 0, 0, 0, 0, 0), -EINVAL);
    assert_int_equal(lend_dma_submit(dma, 0, UINT64_C(1) << 48, 0, 64, 0), -EINVAL);
    assert_int_equal(lend_dma_submit(dma, 0, 0, 0, LEND_DMA_BYTES_MAX + UINT64_C(1), 0), -EINVAL);
    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(lend_dma_submit(dma, 0, r->local_dma, r->local_dma + 4096, 64, 0), i + 1);
    assert_int_equal(lend_dma_submit(dma, 0, r->local_dma, r->local_dma + 4096, 64, 0), -ENOSPC);
    lend_dma_issue(dma, 0);
    while (lend_dma_poll(dma, 0, 7) == 0)
        k_compute(r->side[SERVER].kernel, 100);
}

static void test_refused(void **state)
{
    (void)state;
    run(refused_body, false, 64);
}

/* ---- Failures -------------------------------------------------------------------------------- */

/* A good copy, one that must fail, three good ones: they are done all the same. */
static void fails_between(struct rig *r, uint64_t source, uint64_t destination)
{
    struct kernel *here = r->side[SERVER].kernel;
    int64_t bad = 0, last = 0;
    fill(here, r->local, 9);
    for (unsigned i = 0; i < 5; i++) {
        uint64_t at = r->local_dma + i * 8192;
        last = lend_dma_submit(r->dma, 0, i == 1 ? source : at,
                               i == 1 ? destination : at + SEGMENT_BYTES / 2, 8192,
                               LEND_DMA_NOTIFY);
        assert_true(last > 0);
        if (i == 1)
            bad = last;
    }
    lend_dma_issue(r->dma, 0);
    assert_int_equal(lend_dma_wait(r->dma, 0, bad - 1), 0);
    assert_int_equal(lend_dma_wait(r->dma, 0, bad), -EIO);
    assert_int_equal(lend_dma_wait(r->dma, 0, last), 0);
    uint8_t *bytes = dump(here, r->local);
    for (unsigned i = 0; i < 5; i++)
        if (i != 1)
            assert_memory_equal(bytes + i * 8192, bytes + SEGMENT_BYTES / 2 + i * 8192, 8192);
    free(bytes);
}

/* Two of four fail before anybody asks: each is told, and the good ones are good. */
static void both_fail(struct rig *r, uint64_t source)
{
    int64_t cookie[4];
    for (unsigned i = 0; i < 4; i++) {
        cookie[i] = lend_dma_submit(r->dma, 0, i % 2 == 0 ? source : r->local_dma,
                                    r->local_dma + SEGMENT_BYTES / 2, 4096, LEND_DMA_NOTIFY);
        assert_true(cookie[i] > 0);
    }
    lend_dma_issue(r->dma, 0);
    for (unsigned i = 0; i < 50; i++) { /* of an earlier copy: what has failed is issued again */
        k_sleep(r->side[SERVER].kernel, 10 * US);
        assert_int_equal(lend_dma_poll(r->dma, 0, cookie[0] - 1), 1);
    }
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(lend_dma_poll(r->dma, 0, cookie[i]), i % 2 == 0 ? -EIO : 1);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(lend_dma_poll(r->dma, 0, cookie[i]), 1);
}

static void failure_body(struct rig *r)
{
    const uint64_t window = r->remote.map.address;
    const uint64_t aperture = bridge(r, SERVER)->function.cfg.live.bar_base[2];
    const uint64_t unmapped = aperture + bridge(r, SERVER)->aperture_bytes[0] - 65536;
    /* No entry in the bridge's table; then only in ours, not in the peer's. */
    fails_between(r, window, r->local_dma + 900000);
    both_fail(r, window);
    assert_true(bridge(r, SERVER)->stats.unknown_out > 0);
    assert_int_equal(lend_dma_allow(r->dma, &r->remote, NULL), 0);
    fails_between(r, unmapped, r->local_dma + 900000);
    assert_true(bridge(r, SERVER)->stats.unmapped > 0);
    /* The peer takes its entry away. */
    uint32_t *incoming = bridge(r, PEER)->incoming, kept[8];
    memcpy(kept, incoming, sizeof kept);
    memset(incoming, 0, sizeof kept);
    fails_between(r, window, r->local_dma + 900000);
    assert_true(bridge(r, PEER)->stats.unknown_in > 0);
    memcpy(incoming, kept, sizeof kept);
    assert_int_equal(bridge(r, SERVER)->stats.dma.failed, 3 + 2);
    check_copy(r, &(struct copy){ 100, 200, 30000, true }, 0, false);
    check_copy(r, &(struct copy){ 100, 200, 30000, false }, 0, false);
    lend_dma_revoke(r->dma, &r->remote);
}

static void test_failures(void **state)
{
    (void)state;
    run(failure_body, false, 64);
    run(failure_body, true, 64);
}

/* Writes to a window that nobody answers for are lost without a word, as the bus has it. */
static void lost_body(struct rig *r)
{
    fill(r->side[SERVER].kernel, r->local, 3);
    fill(r->side[PEER].kernel, r->segment, 4);
    uint8_t *before = dump(r->side[PEER].kernel, r->segment);
    int64_t cookie = lend_dma_submit(r->dma, 0, r->local_dma, r->remote.map.address, 8192,
                                     LEND_DMA_NOTIFY);
    lend_dma_issue(r->dma, 0);
    assert_int_equal(lend_dma_wait(r->dma, 0, cookie), 0);
    k_sleep(r->side[SERVER].kernel, 10 * US);
    uint8_t *after = dump(r->side[PEER].kernel, r->segment);
    assert_memory_equal(before, after, SEGMENT_BYTES);
    assert_true(bridge(r, SERVER)->stats.unknown_out >= 8192 / 128);
    free(before);
    free(after);
}

static void test_lost(void **state)
{
    (void)state;
    run(lost_body, false, 64);
}

static bool lose(struct pcie_tap *tap, struct tlp *tlp)
{
    (void)tap, (void)tlp;
    return false;
}

/* A read whose data are lost waits for as long as its time-out is disabled, and no longer. */
static void disabled_body(struct rig *r)
{
    struct kernel *kernel = r->side[SERVER].kernel;
    struct k_pci_dev *pci = K_CONTAINER(lend_dma_device(r->dma), struct k_pci_dev, device);
    struct pcie_port *peer = &world_device(r->w.world, "n1")->ports[NTB_CABLE];
    struct pcie_tap tap = { .befalls = lose };
    uint32_t header;
    const unsigned control2 = k_pci_find_capability(pci, PCI_CAP_ID_PCIE, &header) + PCIE_DEVCTL2;
    assert_int_equal(lend_dma_allow(r->dma, &r->remote, NULL), 0);
    k_config_write(pci, control2, 2, PCIE_DEVCTL2_TIMEOUT_DISABLE);
    pcie_port_add_tap(peer, &tap);
    int64_t cookie = lend_dma_submit(r->dma, 0, r->remote.map.address, r->local_dma, 64,
                                     LEND_DMA_NOTIFY);
    lend_dma_issue(r->dma, 0);
    k_sleep(kernel, 200 * US);
    pcie_port_remove_tap(peer, &tap);
    assert_int_equal(lend_dma_poll(r->dma, 0, cookie), 0);
    k_config_write(pci, control2, 2, 0);
    k_sleep(kernel, 10 * US);
    assert_int_equal(lend_dma_poll(r->dma, 0, cookie), -EIO);
    lend_dma_revoke(r->dma, &r->remote);
}

static void test_disabled(void **state)
{
    (void)state;
    run(disabled_body, false, 64);
}

/* No interrupt tells of a copy that is done: whoever waits finds that, if late. */
static void unnoticed_body(struct rig *r)
{
    fill(r->side[SERVER].kernel, r->local, 3);
    const uint64_t start_ps = k_now_ps(r->side[SERVER].kernel);
    int64_t cookie = lend_dma_submit(r->dma, 0, r->local_dma, r->remote.map.address, 8192, 0);
    lend_dma_issue(r->dma, 0);
    assert_int_equal(lend_dma_wait(r->dma, 0, cookie), 0);
    assert_true(k_now_ps(r->side[SERVER].kernel) - start_ps >= K_MS);
}

static void test_unnoticed(void **state)
{
    (void)state;
    run(unnoticed_body, false, 64);
}

struct waiter {
    struct rig *r;
    int status;
    bool done;
};

static void waiter_body(void *arg)
{
    struct waiter *waiter = arg;
    waiter->status = lend_dma_wait(waiter->r->dma, 1, 1);
    waiter->done = true;
}

/* The engine goes while a thread waits for a copy that was never issued; what was admitted can
 * still be withdrawn. Then it comes back. */
static void gone_body(struct rig *r)
{
    struct kernel *kernel = r->side[SERVER].kernel;
    struct k_pci_dev *pci = K_CONTAINER(lend_dma_device(r->dma), struct k_pci_dev, device);
    struct waiter waiter = { .r = r };
    assert_int_equal(lend_dma_allow(r->dma, &r->remote, NULL), 0);
    assert_int_equal(
        lend_dma_submit(r->dma, 1, r->local_dma, r->remote.map.address, 64, LEND_DMA_NOTIFY), 1);
    k_thread_new(kernel, "waiter", 1, waiter_body, &waiter);
    k_sleep(kernel, 10 * US);
    assert_false(waiter.done);
    k_dma_unmap(lend_dma_device(r->dma), r->local_dma, SEGMENT_BYTES, K_DMA_BOTH);
    k_pci_remove(pci, false);
    k_sleep(kernel, 10 * US);
    assert_true(waiter.done);
    assert_int_equal(waiter.status, -ENODEV);
    lend_dma_issue(r->dma, 1);
    assert_int_equal(lend_dma_poll(r->dma, 1, 1), -ENODEV);
    lend_dma_revoke(r->dma, &r->remote);
    assert_int_equal(k_pci_add(kernel, pci), 0);
    assert_int_equal(lend_dma_channels(r->dma), 2);
    assert_int_equal(
        k_dma_map(lend_dma_device(r->dma), r->local, SEGMENT_BYTES, K_DMA_BOTH, &r->local_dma), 0);
    assert_int_equal(lend_dma_allow(r->dma, &r->remote, NULL), 0);
    check_copy(r, &(struct copy){ 100, 200, 3000, true }, 0, false);
    lend_dma_revoke(r->dma, &r->remote);
}

static void test_gone(void **state)
{
    (void)state;
    run(gone_body, true, 64);
}

/* ---- Two threads ----------------------------------------------------------------------------- */

struct user {
    struct rig *r;
    bool done;
};

static void revoke_body(void *arg)
{
    struct user *user = arg;
    lend_dma_revoke(user->r->dma, &user->r->remote);
    user->done = true;
}

/* One thread revokes what is the last, another one asks for the engine at any moment of it: what it
 * was given must be there for its copy, and gone in the end (down_body()). */
static void users_body(struct rig *r)
{
    struct kernel *kernel = r->side[SERVER].kernel;
    for (unsigned i = 0; i < 24; i++) {
        struct user user = { .r = r };
        assert_int_equal(lend_dma_allow(r->dma, &r->remote, NULL), 0);
        k_thread_new(kernel, "revoke", 1, revoke_body, &user);
        k_sleep(kernel, i * US / 2);
        assert_int_equal(lend_dma_allow(r->dma, &r->remote, NULL), 0);
        assert_int_equal(lend_usage(r->side[SERVER].lend).outgoing, 1);
        const int64_t cookie = lend_dma_submit(r->dma, 0, r->remote.map.address, r->local_dma, 200,
                                               LEND_DMA_NOTIFY);
        lend_dma_issue(r->dma, 0);
        assert_int_equal(lend_dma_wait(r->dma, 0, cookie), 0);
        while (!user.done)
            k_sleep(kernel, 10 * US);
        lend_dma_revoke(r->dma, &r->remote);
    }
}

static void test_two_users(void **state)
{
    (void)state;
    run(users_body, true, 64);
}

/* ---- Rates ----------------------------------------------------------------------------------- */

static uint64_t copy_ps(struct rig *r, bool out, uint64_t bytes)
{
    struct kernel *kernel = r->side[SERVER].kernel;
    uint64_t window = r->remote.map.address, start_ps = k_now_ps(kernel);
    int64_t cookie = lend_dma_submit(r->dma, 0, out ? r->local_dma : window,
                                     out ? window : r->local_dma, bytes, 0);
    lend_dma_issue(r->dma, 0);
    while (lend_dma_poll(r->dma, 0, cookie) == 0)
        k_compute(kernel, 10);
    return k_now_ps(kernel) - start_ps;
}

/* Time per read, without what a copy costs once. */
static double read_ns(struct rig *r, bool out)
{
    copy_ps(r, !out, 2 * 65536); /* what is read has been written by a device, on both sides */
    copy_ps(r, out, 65536);      /* warms up */
    uint64_t shorter = copy_ps(r, out, 65536), longer = copy_ps(r, out, 2 * 65536);
    return (double)(longer - shorter) / 1000.0 / (65536 / NTB_DMA_SIZE_MIN);
}

static double rate[2][2]; /* by number of reads in flight, by direction */
static void rate_body(struct rig *r)
{
    unsigned w = bridge(r, SERVER)->engine.reads_in_flight;
    assert_int_equal(lend_dma_allow(r->dma, &r->remote, NULL), 0);
    for (unsigned out = 0; out < 2; out++)
        rate[w == 1 ? 0 : 1][out] = read_ns(r, out != 0);
    lend_dma_revoke(r->dma, &r->remote);
}

static void test_rates(void **state)
{
    (void)state;
    /* One at a time: a round trip and the way to the wire each. Four: four of them in that time, as
     * long as nothing else binds. Reads of the other host pass our chip, the cable and its chip,
     * all twice; but then it is only the writes to the other host that pass our chip. The two do
     * not meet the same refreshes. */
    run(rate_body, false, 1);
    run(rate_body, false, 4);
    for (unsigned out = 0; out < 2; out++)
        assert_true(rate[0][out] / rate[1][out] > 3.9 && rate[0][out] / rate[1][out] < 4.1);
    double further_ns = rate[0][0] - rate[0][1];
    double path_ns = 3 * CHIP_NS + 2 * CABLE_NS;
    assert_true(further_ns > path_ns - 0.5 && further_ns < path_ns + 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),           cmocka_unit_test(test_bytes_iommus),
        cmocka_unit_test(test_rings),           cmocka_unit_test(test_refused),
        cmocka_unit_test(test_failures),        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_unnoticed),       cmocka_unit_test(test_gone),
        cmocka_unit_test(test_two_users),       cmocka_unit_test(test_rates),
        cmocka_unit_test(test_bytes_few_reads), cmocka_unit_test(test_disabled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
