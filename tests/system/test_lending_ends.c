/*
 * The ends of lends in simulated hosts behind a cluster switch, IOMMUs of both sides on: a device
 * that leaves its windows, a borrower that dies and a cable that comes out in the midst of a
 * transfer, a lender that takes its device back. What the device may reach is asked of the
 * hardware: a requester submits transfers with addresses of the test's choice.
 */
#include "tests/support/kernel_call.h"
#include "tests/support/world_fixture.h"

#include <errno.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "logic/lending/lending.h"
#include "models/host/host_internal.h"
#include "models/os/os.h"
#include "models/pcie/link/context.h"
#include "models/pcie/link/link.h"
#include "models/pcie/ntb/cluster_switch.h"
#include "models/pcie/ntb/ntb.h"
#include "models/pcie/root/rc_internal.h"

#define HOST(NAME)                                                                          \
    NAME " = { cpu = { sockets = 1; cores_per_socket = 2; clock_ghz = 2.0; };"              \
         " dram = { node_size = \"256 MiB\"; channels = 1; }; iommu = { enabled = true; };" \
         " ports = ( { name = \"rp0\"; lanes = 8; }, { name = \"rp1\"; lanes = 8; } ); };\n"
#define BRIDGE " = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; bar2_bytes = \"1 GiB\"; };"
#define WORLD                                                                                         \
    "hosts = { " HOST("server") HOST("lender") HOST(                                                  \
        "other") " };\n"                                                                              \
                 "devices = { n0" BRIDGE " n1" BRIDGE " n2" BRIDGE                                    \
                 " dma = { type = \"pcie.requester\"; lanes = 8; bar_bytes = 65536; mps_bytes = 256;" \
                 " extended_tags = true; completion_timeout_us = 60; };"                              \
                 " sw = { type = \"pcie.cluster_switch\"; ports = 3; lanes = 8; }; };\n"              \
                 "cables = ( { from = \"server.s0.rp0\"; to = \"n0.p0\"; },"                          \
                 " { from = \"lender.s0.rp0\"; to = \"n1.p0\"; },"                                    \
                 " { from = \"lender.s0.rp1\"; to = \"dma.p0\"; },"                                   \
                 " { from = \"other.s0.rp0\"; to = \"n2.p0\"; },"                                     \
                 " { from = \"n0.p1\"; to = \"sw.p0\"; length_m = 2.0; },"                            \
                 " { from = \"n1.p1\"; to = \"sw.p1\"; length_m = 2.0; },"                            \
                 " { from = \"n2.p1\"; to = \"sw.p2\"; length_m = 2.0; } );\n"

#define BORROWER 0
#define LENDER   1
#define OTHER    2
#define N_SIDES  3
#define BYTES    65536u
#define MS       SIM_PS_PER_MS

struct side {
    struct kernel *kernel;
    struct lend_host *lend;
    struct rig *rig;
};
struct rig {
    struct world_fixture w;
    struct side side[N_SIDES];
    struct lend_borrow *borrow;
    struct k_pci_dev *dev; /* as its driver has it; NULL: removed */
    struct k_driver_data {
        struct kaddr buffer;
        uint64_t dma;
    } data;
    bool gone;
    int status;
    unsigned entries; /* of the switch, while nothing is lent */
    uint8_t out[BYTES], in[BYTES];
    struct fixture_op op;
};

/* ---- Bodies in kernels ----------------------------------------------------------------------- */

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

/* The driver: a buffer that the device can reach. */
static const struct k_pci_id ids[] = { { 0x19ee, 0x6000 }, { 0, 0 } };

static int probe(struct k_pci_dev *pci, void *context)
{
    struct rig *r = context;
    k_pci_enable(pci);
    assert_int_equal(k_dma_alloc(&pci->device, 0, BYTES, &r->data.buffer, &r->data.dma), 0);
    r->dev = pci;
    return 0;
}

static void removed(struct k_pci_dev *pci, bool gone)
{
    struct rig *r = pci->driver->context;
    k_dma_free(&pci->device, BYTES, r->data.buffer, r->data.dma);
    r->gone = gone;
    r->dev = NULL;
}

static struct k_pci_driver driver;

static void up(struct side *s)
{
    static const char *const names[] = { "borrower", "lender", "other" };
    const unsigned i = (unsigned)(s - s->rig->side);
    struct lend_options options = lend_options_default;
    struct lend_error error;
    options.id = i + 1;
    options.name = names[i];
    options.lend = i == LENDER ? ids : NULL;
    s->lend = lend_host_new(s->kernel, &options);
    assert_int_equal(k_pci_register(s->kernel, lend_adapter_driver(s->lend)), 1);
    assert_int_equal(k_pci_register(s->kernel, lend_lender_driver(s->lend)), i == LENDER);
    assert_int_equal(lend_start(s->lend, &error), 0);
    if (i != LENDER)
        k_pci_register(s->kernel, &driver);
}

static void borrow(struct side *s)
{
    struct lend_info info;
    struct lend_error error;
    lend_discover(s->lend);
    s->rig->status = lend_list(s->lend, LENDER + 1, 0, &info, &error);
    if (s->rig->status == 0)
        s->rig->status = lend_borrow(s->lend, LENDER + 1, info.id, &s->rig->borrow, &error);
}

static void give_back(struct side *s)
{
    lend_return(s->rig->borrow);
}

static void reclaim(struct side *s)
{
    assert_int_equal(lend_reclaim(s->lend, pcie_requester_id(world_device(s->rig->w.world, "dma"))),
                     0);
}

static void down(struct side *s)
{
    lend_host_free(s->lend);
}

static unsigned switch_entries(struct rig *r)
{
    return ((const struct cluster_switch *)world_device(r->w.world, "sw")->state)->n_entries;
}

static struct rig *rig_open(void)
{
    static const char *const names[] = { "server", "lender", "other" };
    struct rig *r = calloc(1, sizeof(*r));
    driver = (struct k_pci_driver){
        .name = "test", .ids = ids, .probe = probe, .remove = removed, .context = r
    };
    fixture_open(&r->w, WORLD);
    for (unsigned i = 0; i < N_SIDES; i++) {
        struct host *host = world_host(r->w.world, names[i]);
        r->side[i] = (struct side){ .kernel = os_new(host, host_os_params(host)), .rig = r };
    }
    for (unsigned i = 0; i < N_SIDES; i++)
        call(r, i, up);
    for (unsigned i = 0; i < BYTES; i++)
        r->out[i] = (uint8_t)(i * 13 + i / 256);
    /* A first time, so that all who talk have talked. */
    for (unsigned i = 0; i < N_SIDES; i += OTHER) {
        call(r, i, borrow);
        assert_int_equal(r->status, 0);
        call(r, i, give_back);
        assert_null(r->dev);
    }
    r->entries = switch_entries(r);
    call(r, BORROWER, borrow);
    assert_int_equal(r->status, 0);
    assert_non_null(r->dev);
    return r;
}

static void rig_close(struct rig *r, bool borrower_lives)
{
    for (unsigned i = 0; i < N_SIDES; i++)
        if (i != BORROWER || borrower_lives)
            call(r, i, down);
        else
            lend_host_free(r->side[i].lend);
    sim_run(r->w.sim, sim_now(r->w.sim) + 10 * MS, NULL);
    for (unsigned i = 0; i < N_SIDES; i++)
        os_free(r->side[i].kernel);
    fixture_close(&r->w);
    free(r);
}

/* ---- Transfers ------------------------------------------------------------------------------- */

static void submit(struct rig *r, bool write, uint64_t at, unsigned bytes)
{
    r->op = (struct fixture_op){ .op = { .write = write,
                                         .interface = PCIE_REQUESTER_BULK,
                                         .iova = { at },
                                         .bytes = bytes,
                                         .buffer = write ? r->out : r->in,
                                         .done = fixture_op_done,
                                         .context = &r->op } };
    pcie_requester_submit(world_device(r->w.world, "dma"), &r->op.op);
}

static enum pcie_dma_status transfer(struct rig *r, bool write, uint64_t at, unsigned bytes)
{
    submit(r, write, at, bytes);
    for (unsigned i = 0; i < 200 && !r->op.done; i++)
        sim_run(r->w.sim, sim_now(r->w.sim) + MS / 100, NULL);
    assert_true(r->op.done);
    return r->op.status;
}

/* To the buffer of whoever has the device now, and back. */
static void works(struct rig *r, unsigned side)
{
    struct physmem *mem = host_physmem(os_host(r->side[side].kernel));
    static uint8_t there[BYTES];
    assert_non_null(r->dev);
    assert_int_equal(transfer(r, true, r->data.dma, BYTES), PCIE_DMA_OK);
    sim_run(r->w.sim, sim_now(r->w.sim) + MS / 10, NULL);
    physmem_read(mem, (struct hpa){ r->data.buffer.v }, there, BYTES);
    assert_memory_equal(there, r->out, BYTES);
    memset(r->in, 0, BYTES);
    assert_int_equal(transfer(r, false, r->data.dma, BYTES), PCIE_DMA_OK);
    assert_memory_equal(r->in, r->out, BYTES);
}

/* What its driver left in it: read by whoever has it now. */
#define MARK    UINT32_C(0x600dcafe)
#define MARK_AT 0x100u
static uint32_t mark;

static void mark_write(struct side *s)
{
    k_writel(s->rig->dev, 0, MARK_AT, MARK);
    mark = k_readl(s->rig->dev, 0, MARK_AT);
}

static void mark_read(struct side *s)
{
    mark = k_readl(s->rig->dev, 0, MARK_AT);
}

/* Taken by force: it is reset, and nobody gets it meanwhile; then nothing of before is in it. */
static void expect_reset(struct rig *r)
{
    call(r, OTHER, borrow);
    assert_int_equal(r->status, -EAGAIN);
    sim_run(r->w.sim, sim_now(r->w.sim) + 110 * MS, NULL);
    call(r, OTHER, borrow);
    assert_int_equal(r->status, 0);
    call(r, OTHER, mark_read);
    assert_int_equal(mark, 0);
    call(r, OTHER, give_back);
}

/* Requests that the lender's IOMMU has refused. */
static uint64_t n_blocked(struct rig *r)
{
    const struct host *host = os_host(r->side[LENDER].kernel);
    return ((const struct rc_state *)host->rc[0]->state)->stats.faults;
}

static void works_elsewhere(struct rig *r)
{
    call(r, OTHER, borrow);
    assert_int_equal(r->status, 0);
    works(r, OTHER);
    call(r, OTHER, give_back);
    assert_null(r->dev);
    assert_int_equal(switch_entries(r), r->entries);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void test_outside(void **state)
{
    (void)state;
    struct rig *r = rig_open();
    static const uint64_t wrong[] = {
        0, 0x1000, 0x10000000, 0xf0000000, UINT64_C(1) << 38, UINT64_C(1) << 44
    };
    works(r, BORROWER);
    /* Addresses of the lender: memory, registers, its bridge's windows as CPUs see them. */
    uint64_t blocked = n_blocked(r);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(wrong); i++)
        assert_int_equal(transfer(r, false, wrong[i], 64), PCIE_DMA_UNSUPPORTED);
    assert_int_equal(n_blocked(r) - blocked, SIM_N_ELEMENTS(wrong));
    blocked = n_blocked(r);
    /* In the window, but not mapped by the borrower; beyond the window. */
    assert_int_equal(transfer(r, false, r->data.dma + BYTES, 64), PCIE_DMA_UNSUPPORTED);
    assert_int_equal(transfer(r, false, r->data.dma + (64 << 20), 64), PCIE_DMA_UNSUPPORTED);
    /* Writes are posted: nobody says so, nothing changes. */
    static uint8_t before[4096], after[4096];
    struct physmem *mem = host_physmem(os_host(r->side[LENDER].kernel));
    physmem_read(mem, (struct hpa){ 0x1000 }, before, sizeof(before));
    transfer(r, true, 0x1000, 4096);
    sim_run(r->w.sim, sim_now(r->w.sim) + MS / 10, NULL);
    assert_true(n_blocked(r) - blocked >= 4096 / 256);
    physmem_read(mem, (struct hpa){ 0x1000 }, after, sizeof(after));
    assert_memory_equal(before, after, sizeof(before));
    works(r, BORROWER);
    call(r, BORROWER, give_back);
    assert_int_equal(switch_entries(r), r->entries);
    rig_close(r, true);
}

static void run_while(struct rig *r, bool (*busy)(struct rig *r))
{
    sim_time until_ps = sim_now(r->w.sim) + 200 * MS;
    while (busy(r) && sim_now(r->w.sim) < until_ps)
        sim_run(r->w.sim, sim_now(r->w.sim) + MS / 20, NULL);
    assert_false(busy(r));
}

static bool lent(struct rig *r)
{
    return lend_usage(r->side[LENDER].lend).lent != 0;
}

static bool has_device(struct rig *r)
{
    return lend_borrow_device(r->borrow) != NULL;
}

static void test_borrower_dies(void **state)
{
    (void)state;
    for (unsigned write = 0; write < 2; write++) {
        struct rig *r = rig_open();
        works(r, BORROWER);
        call(r, BORROWER, mark_write);
        assert_int_equal(mark, MARK);
        const uint64_t dma = r->data.dma;
        submit(r, write, dma, BYTES);
        sim_run(r->w.sim, sim_now(r->w.sim) + 5 * SIM_PS_PER_US, NULL);
        lend_host_kill(r->side[BORROWER].lend);
        run_while(r, lent);
        sim_run(r->w.sim, sim_now(r->w.sim) + MS, NULL);
        assert_true(r->op.done);
        /* It reaches nothing any more. */
        assert_int_equal(transfer(r, false, dma, 64), PCIE_DMA_BUS_MASTER_OFF);
        assert_int_equal(switch_entries(r), r->entries);
        r->dev = NULL;
        expect_reset(r);
        works_elsewhere(r);
        rig_close(r, false);
    }
}

static void test_reclaim(void **state)
{
    (void)state;
    struct rig *r = rig_open();
    works(r, BORROWER);
    submit(r, false, r->data.dma, BYTES);
    sim_run(r->w.sim, sim_now(r->w.sim) + 5 * SIM_PS_PER_US, NULL);
    call(r, LENDER, reclaim);
    assert_false(lent(r));
    assert_null(r->dev);
    assert_false(r->gone); /* it could say good-bye to the device */
    run_while(r, has_device);
    call(r, BORROWER, give_back);
    works_elsewhere(r);
    call(r, BORROWER, borrow);
    works(r, BORROWER);
    call(r, BORROWER, give_back);
    rig_close(r, true);
}

static void test_cable(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct rig *r = rig_open();
        /* The borrower's or the lender's. */
        struct pcie_port *a, *b, *port = &world_device(r->w.world, i & 1 ? "n1" : "n0")->ports[1];
        struct pcie_link *cable = NULL;
        for (unsigned n = 0; (cable = pcie_context_link(world_pcie(r->w.world), n, &a, &b)) != NULL;
             n++)
            if (a == port || b == port)
                break;
        assert_non_null(cable);
        works(r, BORROWER);
        submit(r, i >> 1, r->data.dma, BYTES);
        sim_run(r->w.sim, sim_now(r->w.sim) + 5 * SIM_PS_PER_US, NULL);
        pcie_link_set_up(cable, false);
        run_while(r, lent);
        run_while(r, has_device);
        assert_null(r->dev);
        assert_true(r->gone);
        sim_run(r->w.sim, sim_now(r->w.sim) + MS, NULL);
        assert_true(r->op.done);
        call(r, BORROWER, give_back); /* what is left of it */
        assert_int_equal(lend_usage(r->side[BORROWER].lend).mapped_pages, 0);
        call(r, BORROWER, borrow);
        assert_true(r->status < 0);
        pcie_link_set_up(cable, true);
        sim_run(r->w.sim, sim_now(r->w.sim) + 50 * MS, NULL);
        expect_reset(r);
        call(r, BORROWER, borrow);
        assert_int_equal(r->status, 0);
        works(r, BORROWER);
        call(r, BORROWER, give_back);
        works_elsewhere(r);
        rig_close(r, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outside),
        cmocka_unit_test(test_borrower_dies),
        cmocka_unit_test(test_reclaim),
        cmocka_unit_test(test_cable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
