/*
 * Peer to peer in simulated hosts: DMA engines and memories of two lenders, in a chassis each, and
 * of the borrower, behind a cluster switch. Each engine reaches each memory by an address from
 * k_dma_map_resource(), with the IOMMUs of both sides, either, or none; every byte is checked. With
 * the lender's IOMMU off, nothing of it passes its root port.
 */
#include <stdlib.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "logic/lending/lending.h"
#include "models/base/model.h"
#include "models/os/os.h"
#include "models/pcie/config/config_space.h"
#include "models/pcie/link/context.h"
#include "models/pcie/ntb/cluster_switch.h"
#include "models/pcie/ntb/ntb.h"
#include "models/pcie/switch/switch.h"
#include "models/world/registry.h"
#include "tests/support/kernel_call.h"
#include "tests/support/world_fixture.h"

/*
 * A device with nothing but memory behind BAR 0, for tests of peer to peer: takes writes, answers
 * reads in completions of Max_Payload_Size.
 */

#define MEMORY_DEVICE_VENDOR 0x1234u
#define MEMORY_DEVICE_ID     0x1111u
#define MEMORY_DEVICE_BYTES  (UINT64_C(1) << 20)

struct memory_device {
    struct cfg_space cfg;
    struct tlp *head, **tail; /* completions that wait for the port */
    uint64_t n_unsupported;
    uint8_t bytes[MEMORY_DEVICE_BYTES];
};

static void memory_device_init(struct model *model, struct sim_error_list *errors)
{
    static const struct cfg_identity identity = { .vendor_id = MEMORY_DEVICE_VENDOR,
                                                  .device_id = MEMORY_DEVICE_ID,
                                                  .class_code = 0x058000 };
    struct memory_device *d = model->state;
    (void)errors;
    model->ports = calloc(1, sizeof(*model->ports));
    model->n_ports = 1;
    model->ports[0] = (struct pcie_port){
        .model = model,
        .max_generation = 3,
        .max_lanes = 8,
        .mps_bytes = 128,
        .mps_bytes_max = 256,
        .tx_queue_tlps = 4,
        .advertise = { { 32, 32, PCIE_CREDITS_INFINITE }, { 256, 32, PCIE_CREDITS_INFINITE } },
        .name = model->name,
    };
    d->tail = &d->head;
    cfg_init_endpoint(&d->cfg, &identity);
    cfg_add_bar(&d->cfg, 0, MEMORY_DEVICE_BYTES, CFG_BAR_64 | CFG_BAR_PREFETCH);
    cfg_add_pcie(&d->cfg, CFG_ENDPOINT, 3, 8, 256, true);
}

static void memory_device_start(struct model *model)
{
    struct memory_device *d = model->state;
    cfg_set_link(&d->cfg, 3, 8);
}

static void memory_device_credit(struct model *model, uint32_t port)
{
    struct memory_device *d = model->state;
    while (d->head != NULL && pcie_port_ready(&model->ports[port], TLP_COMPLETION)) {
        struct tlp *tlp = d->head;
        d->head = tlp->next;
        if (d->head == NULL)
            d->tail = &d->head;
        tlp->next = NULL;
        pcie_port_send(&model->ports[port], tlp, sim_now(model->sim));
    }
}

static void memory_device_queue(struct memory_device *d, struct tlp *tlp)
{
    tlp->next = NULL;
    *d->tail = tlp;
    d->tail = &tlp->next;
}

static void memory_device_read(struct model *model, struct tlp *tlp)
{
    struct memory_device *d = model->state;
    const uint64_t offset = tlp->address - cfg_bar_base(&d->cfg, 0);
    const unsigned mps = cfg_mps_bytes(&d->cfg);
    if (cfg_bar_match(&d->cfg, tlp->address, tlp->length_bytes) != 0) {
        d->n_unsupported++;
        memory_device_queue(d, tlp_completion(model->pcie, tlp, d->cfg.id, TLP_UR));
        return;
    }
    for (unsigned done = 0; done < tlp->length_bytes;) {
        struct tlp *answer = tlp_completion(model->pcie, tlp, d->cfg.id, TLP_SC);
        unsigned piece = mps - (unsigned)((tlp->address + done) % mps);
        piece = SIM_MIN(piece, (unsigned)tlp->length_bytes - done);
        answer->address = tlp->address + done;
        answer->byte_count = (uint16_t)(tlp->length_bytes - done);
        answer->length_bytes = (uint16_t)piece;
        tlp_payload_new(model->pcie, answer);
        memcpy(answer->payload, d->bytes + offset + done, piece);
        memory_device_queue(d, answer);
        done += piece;
    }
}

static void memory_device_write(struct memory_device *d, const struct tlp *tlp)
{
    if (cfg_bar_match(&d->cfg, tlp->address, tlp->length_bytes) != 0)
        d->n_unsupported++;
    else
        memcpy(d->bytes + (tlp->address - cfg_bar_base(&d->cfg, 0)), tlp->payload,
               tlp->length_bytes);
}

static void memory_device_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct memory_device *d = model->state;
    switch ((enum tlp_type)tlp->type) {
    case TLP_CFG_RD0:
    case TLP_CFG_WR0:
        memory_device_queue(d, cfg_answer(&d->cfg, model->pcie, tlp));
        model->ports[0].mps_bytes = cfg_mps_bytes(&d->cfg);
        break;
    case TLP_MRD: memory_device_read(model, tlp); break;
    case TLP_MWR: memory_device_write(d, tlp); break;
    default: break;
    }
    pcie_port_release(&model->ports[port], tlp_class_of(tlp), tlp_data_credits(tlp),
                      sim_now(model->sim));
    tlp_free(model->pcie, tlp);
    memory_device_credit(model, port);
}

static void memory_device_release(struct model *model)
{
    struct memory_device *d = model->state;
    while (d->head != NULL) {
        struct tlp *tlp = d->head;
        d->head = tlp->next;
        tlp_free(model->pcie, tlp);
    }
}

static const struct model_ops memory_device_ops = {
    .type = "test.memory",
    .help = "memory behind a base address",
    .state_bytes = sizeof(struct memory_device),
    .init = memory_device_init,
    .start = memory_device_start,
    .receive = memory_device_receive,
    .credit = memory_device_credit,
    .release = memory_device_release,
};

const struct model_ops *const model_registry[] = { &pcie_requester_ops, &pcie_switch_ops,
                                                   &pcie_ntb_ops,       &pcie_cluster_switch_ops,
                                                   &memory_device_ops,  NULL };

#define HOST(NAME, IOMMU)                                                                 \
    NAME " = { cpu = { sockets = 1; cores_per_socket = 2; clock_ghz = 2.0; };"            \
         " dram = { node_size = \"256 MiB\"; channels = 1; }; iommu = { enabled = " IOMMU \
         "; }; ports = ( { name = \"rp0\"; lanes = 8; }, { name = \"rp1\"; lanes = 8; }," \
         " { name = \"rp2\"; lanes = 8; } ); };\n"
#define BRIDGE " = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; bar2_bytes = \"1 GiB\"; };"
#define ENGINE                                                                       \
    " = { type = \"pcie.requester\"; lanes = 8; bar_bytes = 65536; mps_bytes = 256;" \
    " extended_tags = true; completion_timeout_us = 60; };"
#define MEMORY " = { type = \"test.memory\"; };"
#define CHASSIS \
    " = { type = \"pcie.switch\"; downstream_ports = 3; lanes = 8; downstream_lanes = 8; };"
#define CABLE(FROM, TO) " { from = \"" FROM "\"; to = \"" TO "\"; },"
#define LAST(FROM, TO)  " { from = \"" FROM "\"; to = \"" TO "\"; }"
#define WORLD                                                                                      \
    "hosts = { " HOST("server", "%s") HOST("first", "%s")                                          \
        HOST("second",                                                                             \
             "%s") " };\n"                                                                         \
                   "devices = { n0" BRIDGE " n1" BRIDGE " n2" BRIDGE " d0" ENGINE " d1" ENGINE     \
                   " d2" ENGINE " m0" MEMORY " m1" MEMORY " m2" MEMORY " c1" CHASSIS " c2" CHASSIS \
                   " sw = { type = \"pcie.cluster_switch\"; ports = 3; lanes = 8; }; };\n"         \
                   "cables = (" CABLE("server.s0.rp0", "n0.p0") CABLE("server.s0.rp1", "m0.p0")    \
                       CABLE("server.s0.rp2", "d0.p0") CABLE("first.s0.rp0", "c1.p0")              \
                           CABLE("c1.p1", "n1.p0") CABLE("c1.p2", "d1.p0") CABLE("c1.p3", "m1.p0") \
                               CABLE("second.s0.rp0", "c2.p0") CABLE("c2.p1", "n2.p0")             \
                                   CABLE("c2.p2", "d2.p0") CABLE("c2.p3", "m2.p0")                 \
                                       CABLE("n0.p1", "sw.p0") CABLE("n1.p1", "sw.p1")             \
                                           LAST("n2.p1", "sw.p2") " );\n"

#define N_SIDES 3u /* borrower, first and second lender */
#define BYTES   65536u
#define OFFSET  0x4100u
#define MS      SIM_PS_PER_MS

struct rig;
struct side {
    struct kernel *kernel;
    struct lend_host *lend;
    struct rig *rig;
};
struct rig {
    struct world_fixture w;
    struct side side[N_SIDES];
    /* Of each side, as the borrower's kernel has them. */
    struct k_pci_dev *engine[N_SIDES], *memory[N_SIDES];
    struct lend_borrow *borrow[2 * N_SIDES];
    unsigned n_borrows;
    struct lend_usage before[N_SIDES];
    unsigned source, target;
    uint64_t dma;
    uint8_t out[BYTES], in[BYTES];
    struct fixture_op op;
};

static const struct k_pci_id ids[] = { { 0x19ee, 0x6000 },
                                       { MEMORY_DEVICE_VENDOR, MEMORY_DEVICE_ID },
                                       { 0, 0 } };
static const char *const hosts[] = { "server", "first", "second" };
static const char *const engines[] = { "d0", "d1", "d2" };
static const char *const memories[] = { "m0", "m1", "m2" };

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

/* The driver of all of them; the borrower's own come first. */
static int probe(struct k_pci_dev *pci, void *context)
{
    struct rig *r = context;
    struct k_pci_dev **own = pci->vendor_id == MEMORY_DEVICE_VENDOR ? r->memory : r->engine;
    if (*own == NULL)
        *own = pci;
    k_pci_enable(pci);
    k_dma_set_mask(&pci->device, 64);
    return 0;
}

static void removed(struct k_pci_dev *pci, bool gone)
{
    (void)pci;
    (void)gone;
}

static struct k_pci_driver driver = {
    .name = "test", .ids = ids, .probe = probe, .remove = removed
};

static void up(struct side *s)
{
    const unsigned i = (unsigned)(s - s->rig->side);
    struct lend_options options = lend_options_default;
    struct lend_error error;
    options.id = i + 1;
    options.name = hosts[i];
    options.lend = i > 0 ? ids : NULL;
    s->lend = lend_host_new(s->kernel, &options);
    assert_int_equal(k_pci_register(s->kernel, lend_adapter_driver(s->lend)), 1);
    assert_int_equal(k_pci_register(s->kernel, lend_lender_driver(s->lend)), i > 0 ? 2 : 0);
    assert_int_equal(lend_start(s->lend, &error), 0);
    if (i == 0)
        assert_int_equal(k_pci_register(s->kernel, &driver), 2);
}

/* All that is lent; the local ones by their numbers. */
static void borrow(struct side *s)
{
    struct rig *r = s->rig;
    struct lend_error error = { 0 };
    struct lend_info info;
    if (r->n_borrows == 0)
        lend_discover(s->lend);
    r->n_borrows = 0;
    for (uint32_t peer = 2; peer <= N_SIDES; peer++)
        for (unsigned i = 0; lend_list(s->lend, peer, i, &info, &error) == 0; i++) {
            struct lend_borrow **borrowed = &r->borrow[r->n_borrows++];
            if (lend_borrow(s->lend, peer, info.id, borrowed, &error) != 0)
                fail_msg("%s", error.text);
            struct k_pci_dev *dev = lend_borrow_device(*borrowed);
            assert_ptr_equal(dev->driver, &driver);
            if (info.vendor_id == MEMORY_DEVICE_VENDOR)
                r->memory[peer - 1] = dev;
            else
                r->engine[peer - 1] = dev;
        }
    assert_int_equal(r->n_borrows, 4);
}

static void lease_release(struct side *s)
{
    for (unsigned i = 0; i < s->rig->n_borrows; i++)
        lend_return(s->rig->borrow[i]);
}

static void map(struct side *s)
{
    struct rig *r = s->rig;
    assert_int_equal(k_dma_map_resource(&r->engine[r->source]->device,
                                        &r->memory[r->target]->device, 0, OFFSET, BYTES, K_DMA_BOTH,
                                        &r->dma),
                     0);
}

static void unmap(struct side *s)
{
    struct rig *r = s->rig;
    k_dma_unmap_resource(&r->engine[r->source]->device, r->dma, BYTES, K_DMA_BOTH);
}

static void down(struct side *s)
{
    lend_host_free(s->lend);
}

/* ---- Up and down ----------------------------------------------------------------------------- */

static struct rig *rig_open(bool borrower, bool lenders)
{
    struct rig *r = calloc(1, sizeof(*r));
    const char *b = borrower ? "true" : "false", *l = lenders ? "true" : "false";
    char *text = g_strdup_printf(WORLD, b, l, l);
    driver.context = r;
    fixture_open(&r->w, text);
    g_free(text);
    for (unsigned i = 0; i < N_SIDES; i++) {
        struct host *host = world_host(r->w.world, hosts[i]);
        r->side[i] = (struct side){ .kernel = os_new(host, host_os_params(host)), .rig = r };
    }
    for (unsigned i = 0; i < N_SIDES; i++)
        call(r, i, up);
    for (unsigned i = 0; i < BYTES; i++)
        r->out[i] = (uint8_t)(i * 13 + i / 256);
    call(r, 0, borrow);
    return r;
}

static void rig_close(struct rig *r)
{
    call(r, 0, lease_release);
    for (unsigned i = 0; i < N_SIDES; i++) {
        struct lend_usage u = lend_usage(r->side[i].lend);
        assert_int_equal(u.lent + u.borrowed + u.peers + u.peer_entries + u.outgoing, 0);
        call(r, i, down);
    }
    sim_run(r->w.sim, sim_now(r->w.sim) + 10 * MS, NULL);
    for (unsigned i = 0; i < N_SIDES; i++)
        os_free(r->side[i].kernel);
    fixture_close(&r->w);
    free(r);
}

/* ---- Transfers ------------------------------------------------------------------------------- */

static struct memory_device *memory(struct rig *r)
{
    return world_device(r->w.world, memories[r->target])->state;
}

static enum pcie_dma_status transfer(struct rig *r, bool write, uint64_t at, unsigned bytes)
{
    r->op = (struct fixture_op){ .op = { .write = write,
                                         .interface = PCIE_REQUESTER_BULK,
                                         .iova = { at },
                                         .bytes = bytes,
                                         .buffer = write ? r->out : r->in,
                                         .done = fixture_op_done,
                                         .context = &r->op } };
    pcie_requester_submit(world_device(r->w.world, engines[r->source]), &r->op.op);
    for (unsigned i = 0; i < 200 && !r->op.done; i++)
        sim_run(r->w.sim, sim_now(r->w.sim) + MS / 100, NULL);
    sim_run(r->w.sim, sim_now(r->w.sim) + MS / 50, NULL); /* posted writes arrive */
    assert_true(r->op.done);
    return r->op.status;
}

/* Bytes that have passed the root port of a lender, both ways. */
static uint64_t at_root(struct rig *r, unsigned side)
{
    struct pcie_port *port = &world_device(r->w.world, side == 1 ? "c1" : "c2")->ports[0];
    return pcie_port_stats(port)->payload_bytes +
           pcie_port_stats(pcie_port_peer(port))->payload_bytes;
}

/* There and back, and by which way; `root`: of which of the lenders, bits 1 and 2. */
static void expect_transfer(struct rig *r, unsigned source, unsigned target, unsigned root)
{
    uint64_t before[N_SIDES] = { 0 };
    r->source = source;
    r->target = target;
    call(r, 0, map);
    struct memory_device *there = memory(r);
    memset(there->bytes, 0, sizeof(there->bytes));
    memset(r->in, 0, BYTES);
    for (unsigned i = 1; i < N_SIDES; i++)
        before[i] = at_root(r, i);
    assert_int_equal(transfer(r, true, r->dma, BYTES), PCIE_DMA_OK);
    assert_memory_equal(there->bytes + OFFSET, r->out, BYTES);
    for (unsigned i = 0; i < OFFSET; i++)
        assert_int_equal(there->bytes[i] + there->bytes[OFFSET + BYTES + i], 0);
    assert_int_equal(transfer(r, false, r->dma, BYTES), PCIE_DMA_OK);
    assert_memory_equal(r->in, r->out, BYTES);
    for (unsigned i = 1; i < N_SIDES; i++) {
        uint64_t passed = at_root(r, i) - before[i];
        /* What is written, up and down (completions go by requester ID, and the chassis may know
         * that way by itself); else signs of life between hosts, at most. */
        if (root >> i & 1)
            assert_true(passed >= 2 * BYTES);
        else
            assert_true(passed < 1024);
    }
    call(r, 0, unmap);
    assert_int_equal(there->n_unsupported, 0);
}

static const struct pcie_switch *chassis(struct rig *r, const char *name)
{
    return world_device(r->w.world, name)->state;
}

static void all_ways(bool borrower, bool lenders)
{
    struct rig *r = rig_open(borrower, lenders);
    struct lend_usage before = lend_usage(r->side[1].lend);
    const unsigned one = lenders ? 1u << 1 : 0, two = lenders ? 1u << 2 : 0;
    /* The same lender; the borrower's own memory; another lender; from the borrower; at home. */
    expect_transfer(r, 1, 1, one);
    expect_transfer(r, 2, 2, two);
    expect_transfer(r, 1, 0, one);
    expect_transfer(r, 2, 0, two);
    expect_transfer(r, 1, 2, one | two);
    expect_transfer(r, 2, 1, one | two);
    expect_transfer(r, 0, 1, one);
    expect_transfer(r, 0, 2, two);
    expect_transfer(r, 0, 0, 0);
    if (!lenders) /* five times what is written, from engine to memory, to or from the bridge */
        assert_true(chassis(r, "c1")->peer_to_peer >= 5 * BYTES / 256);
    struct lend_usage after = lend_usage(r->side[1].lend);
    assert_memory_equal(&before, &after, sizeof(before));
    /* Not mapped any more: other hosts are out of reach. */
    r->source = 1;
    r->target = 2;
    call(r, 0, map);
    assert_int_equal(transfer(r, false, r->dma, 64), PCIE_DMA_OK);
    call(r, 0, unmap);
    assert_int_equal(transfer(r, false, r->dma, 64), PCIE_DMA_UNSUPPORTED);
    rig_close(r);
}

static void test_no_iommu(void **state)
{
    (void)state;
    all_ways(false, false);
}

static void test_borrower_iommu(void **state)
{
    (void)state;
    all_ways(true, false);
}

static void test_lender_iommus(void **state)
{
    (void)state;
    all_ways(false, true);
}

static void test_all_iommus(void **state)
{
    (void)state;
    all_ways(true, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_iommu),
        cmocka_unit_test(test_borrower_iommu),
        cmocka_unit_test(test_lender_iommus),
        cmocka_unit_test(test_all_iommus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
