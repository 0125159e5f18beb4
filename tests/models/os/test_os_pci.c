/*
 * PCI functions of a kernel: drivers, registers, interrupts, DMA with and without an IOMMU. The
 * device is the test's own: an MSI-X table, a register to raise a vector, reads and writes of
 * memory.
 */
#include "tests/support/world_fixture.h"

#include <errno.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "models/os/os_memory.h"
#include "models/os/os_pci.h"
#include "models/pcie/endpoint/dma.h"
#include "models/world/registry.h"

#define INVALIDATE_PS UINT64_C(5000000) /* of the IOMMU here */
#define N_VECTORS     4u
#define TABLE         0x100u /* in BAR 0 */
#define PBA           0x800u
#define RAISE         0x10u /* write: the vector */
#define SCRATCH       0x18u

/* ---- The device ------------------------------------------------------------------------------ */

struct device {
    struct cfg_space cfg;
    struct pcie_dma dma;
    struct pcie_dma_request message[8], transfer;
    uint8_t data[8][4], buffer[4096];
    unsigned n_messages;
    enum pcie_dma_status status;
    bool done;
    uint8_t reg[4096];
};

static void device_init(struct model *model, struct sim_error_list *errors)
{
    static const struct cfg_identity identity = { .vendor_id = 0x1234, .device_id = 0x5678 };
    struct device *d = model->state;
    (void)errors;
    model->ports = calloc(1, sizeof(*model->ports));
    model->n_ports = 1;
    model->ports[0] = (struct pcie_port){
        .model = model,
        .max_generation = 3,
        .max_lanes = 8,
        .mps_bytes = 128,
        .mps_bytes_max = 256,
        .advertise = { { 32, 32, PCIE_CREDITS_INFINITE }, { 256, 32, PCIE_CREDITS_INFINITE } },
        .name = model->name,
    };
    cfg_init_endpoint(&d->cfg, &identity);
    cfg_add_bar(&d->cfg, 0, sizeof(d->reg), CFG_BAR_64);
    cfg_add_pcie(&d->cfg, CFG_ENDPOINT, 3, 8, 256, true);
    cfg_add_msix(&d->cfg, N_VECTORS, 0, TABLE, 0, PBA);
    for (unsigned v = 0; v < N_VECTORS; v++)
        d->reg[TABLE + 16 * v + PCI_MSIX_ENTRY_CONTROL] = PCI_MSIX_ENTRY_MASKED;
    const struct pcie_dma_params params = { .completion_timeout_ps = 50 * SIM_PS_PER_MS };
    pcie_dma_init(&d->dma, model, 0, &d->cfg, &params);
}

static void device_start(struct model *model)
{
    struct device *d = model->state;
    cfg_set_link(&d->cfg, 3, 8);
}

static void device_release(struct model *model)
{
    pcie_dma_release(&((struct device *)model->state)->dma);
}

static void device_raise(struct device *d, unsigned vector)
{
    uint64_t address;
    uint32_t data;
    if (!cfg_msix_message(&d->cfg, d->reg + TABLE, d->reg + PBA, vector, &address, &data))
        return;
    unsigned i = d->n_messages++ % 8;
    memcpy(d->data[i], &data, 4);
    d->message[i] =
        (struct pcie_dma_request){ .iova = { address }, .bytes = 4, .buffer = d->data[i] };
    pcie_dma_write(&d->dma, &d->message[i], 0);
}

static void device_write(struct device *d, uint64_t offset, const struct tlp *tlp)
{
    memcpy(d->reg + offset, tlp->payload, tlp->length_bytes);
    if (offset == RAISE)
        device_raise(d, d->reg[RAISE]);
}

static void device_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct device *d = model->state;
    struct tlp *answer = NULL;
    uint64_t offset = tlp->address - cfg_bar_base(&d->cfg, 0);
    switch ((enum tlp_type)tlp->type) {
    case TLP_CPL:
    case TLP_CPLD: pcie_dma_receive(&d->dma, tlp); return;
    case TLP_CFG_RD0:
    case TLP_CFG_WR0:
        answer = cfg_answer(&d->cfg, model->pcie, tlp);
        model->ports[0].mps_bytes = cfg_mps_bytes(&d->cfg);
        break;
    case TLP_MRD:
        answer = tlp_completion(model->pcie, tlp, d->cfg.id, TLP_SC);
        tlp_payload_new(model->pcie, answer);
        memcpy(answer->payload, d->reg + offset, tlp->length_bytes);
        break;
    case TLP_MWR: device_write(d, offset, tlp); break;
    default: break;
    }
    pcie_port_release(&model->ports[port], tlp_class_of(tlp), tlp_data_credits(tlp),
                      sim_now(model->sim));
    tlp_free(model->pcie, tlp);
    if (answer != NULL)
        pcie_port_send(&model->ports[port], answer, sim_now(model->sim));
}

static void device_credit(struct model *model, uint32_t port)
{
    (void)port;
    pcie_dma_credit(&((struct device *)model->state)->dma);
}

static const struct model_ops device_ops = {
    .type = "test.msix",
    .help = "the test's own",
    .state_bytes = sizeof(struct device),
    .init = device_init,
    .start = device_start,
    .receive = device_receive,
    .credit = device_credit,
    .release = device_release,
};

/* In place of the models that scenarios may name. */
const struct model_ops *const model_registry[] = { &device_ops, NULL };

/* ---- The rig --------------------------------------------------------------------------------- */

#define WORLD(IOMMU)                                                               \
    "hosts = { server = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; },"   \
    " { name = \"rp0\"; socket = 1; lanes = 8; } );"                               \
    " cpu = { sockets = 2; cores_per_socket = 4; clock_ghz = 2.0; };"              \
    " iommu = { enabled = " IOMMU "; invalidate_ns = 5000; }; }; };"               \
    "devices = { a = { type = \"test.msix\"; }; b = { type = \"test.msix\"; }; };" \
    "cables = ( { from = \"server.s0.rp0\"; to = \"a.p0\"; },"                     \
    " { from = \"server.s1.rp0\"; to = \"b.p0\"; } );"

struct rig {
    struct world_fixture w;
    struct kernel *k;
    struct k_pci_dev *dev[3];
    unsigned n_probed, n_removed;
    bool gone, refuse;
    void (*body)(struct rig *r);
    bool done;
    struct irq_count {
        struct rig *r;
        unsigned n, cpu;
        uint64_t at_ps;
        struct k_pci_dev *writes; /* the handler's last step; or NULL */
    } irq[N_VECTORS];
};

static void rig_body(void *arg)
{
    struct rig *r = arg;
    r->body(r);
    r->done = true;
}

static struct device *device_of(struct rig *r, unsigned i)
{
    return world_device(r->w.world, i == 0 ? "a" : "b")->state;
}

static void with(void (*body)(struct rig *r), int policy, bool superpages)
{
    for (unsigned on = 0; on < 2; on++) {
        struct rig r = { .body = body };
        fixture_open(&r.w, on ? WORLD("true") : WORLD("false"));
        struct os_params params = *host_os_params(r.w.host);
        params.iommu_policy = policy;
        params.iommu_superpages = superpages;
        r.k = os_new(r.w.host, &params);
        k_thread_new(r.k, "test", 0, rig_body, &r);
        sim_run(r.w.sim, SIM_TIME_MAX, NULL);
        assert_true(r.done);
        os_free(r.k);
        fixture_close(&r.w);
    }
}

static void in_kernel(void (*body)(struct rig *r))
{
    with(body, OS_IOMMU_STRICT, true);
}

static int probe(struct k_pci_dev *dev, void *context)
{
    struct rig *r = context;
    if (r->refuse)
        return -ENODEV;
    k_dma_set_mask(&dev->device, 64);
    r->dev[r->n_probed++] = dev;
    return 0;
}

static void removed(struct k_pci_dev *dev, bool gone)
{
    struct rig *r = dev->driver->context;
    r->n_removed++;
    r->gone = gone;
}

static const struct k_pci_id ids[] = { { 0x1234, 0x5678 }, { 0, 0 } };
static const struct k_pci_id other_ids[] = { { 0x1234, 0x5679 }, { 0, 0 } };

static void probe_all(struct rig *r, struct k_pci_driver *driver)
{
    *driver = (struct k_pci_driver){
        .name = "test", .ids = ids, .probe = probe, .remove = removed, .context = r
    };
    assert_int_equal(k_pci_register(r->k, driver), 2);
    assert_int_equal(r->n_probed, 2);
}

/* ---- Drivers and registers ------------------------------------------------------------------- */

static void drivers_body(struct rig *r)
{
    struct k_pci_driver driver, other = {
        .name = "other", .ids = other_ids, .probe = probe, .remove = removed, .context = r
    };
    struct k_pci_driver late = {
        .name = "late", .ids = ids, .probe = probe, .remove = removed, .context = r
    };
    const struct kaddr lock = k_alloc(r->k, 0, K_LINE_BYTES, K_LINE_BYTES);
    assert_int_equal(k_pci_register(r->k, &other), 0);
    r->refuse = true;
    assert_int_equal(k_pci_register(r->k, &late), 0);
    assert_null(os_pci_find(r->k, device_of(r, 0)->cfg.id)->driver);
    r->refuse = false;
    probe_all(r, &driver);
    assert_int_equal(k_pci_register(r->k, &driver), 0); /* they have one */
    for (unsigned i = 0; i < 2; i++) {
        struct k_pci_dev *dev = r->dev[i];
        assert_int_equal(dev->id, device_of(r, i)->cfg.id);
        assert_int_equal(dev->device.node, i);
        assert_int_equal(dev->bar_bytes[0], 4096);
        assert_int_equal(k_config_read(dev, PCI_VENDOR_ID, 4), 0x56781234);
        /* A read of a register takes its round trip; a write only what the core has to do for it,
         * unless another is on its way to the root port (60 ns). */
        uint64_t t = k_now_ps(r->k);
        k_writel(dev, 0, SCRATCH, 0xcafe0000 + i);
        assert_int_equal(k_now_ps(r->k) - t, 100 * 500);
        k_writel(dev, 0, SCRATCH, 0xcafe0000 + i);
        assert_in_range(k_now_ps(r->k) - t, 60000 + 100 * 500, 120000 + 100 * 500);
        /* So does what drains the store buffer. */
        k_readl(dev, 0, SCRATCH);
        t = k_now_ps(r->k);
        k_writel(dev, 0, SCRATCH, 0xcafe0000 + i);
        k_fence(r->k);
        assert_in_range(k_now_ps(r->k) - t, 60000, 120000);
        k_fence(r->k);
        assert_in_range(k_now_ps(r->k) - t, 60000, 120000);
        k_atomic(r->k, lock); /* its line is here now */
        t = k_now_ps(r->k);
        k_writel(dev, 0, SCRATCH, 0xcafe0000 + i);
        k_atomic(r->k, lock);
        assert_in_range(k_now_ps(r->k) - t, 60000, 120000);
        t = k_now_ps(r->k);
        assert_int_equal(k_readl(dev, 0, SCRATCH), 0xcafe0000 + i);
        assert_true(k_now_ps(r->k) - t > 200 * SIM_PS_PER_NS);
        k_writeq(dev, 0, SCRATCH, UINT64_C(0x1122334455667788));
        assert_true(k_readq(dev, 0, SCRATCH) == UINT64_C(0x1122334455667788));
        assert_int_equal(k_readl(dev, 0, SCRATCH + 4), 0x11223344);
    }
    k_pci_remove(r->dev[0], true);
    assert_int_equal(r->n_removed, 1);
    assert_true(r->gone);
    /* It comes again and finds its driver: the first that wants it. */
    assert_int_equal(k_pci_add(r->k, r->dev[0]), 0);
    assert_int_equal(r->n_probed, 3);
    assert_ptr_equal(r->dev[0]->driver, &late);
    assert_int_equal(k_pci_add(r->k, r->dev[0]), -EEXIST);
}

static void test_drivers(void **state)
{
    (void)state;
    in_kernel(drivers_body);
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

static void handler(void *arg)
{
    struct irq_count *irq = arg;
    irq->n++;
    irq->cpu = k_cpu(irq->r->k);
    irq->at_ps = k_now_ps(irq->r->k);
    if (irq->writes != NULL)
        k_writel(irq->writes, 0, SCRATCH, 1);
}

static void expect_irq(struct rig *r, struct k_pci_dev *dev, unsigned vector, unsigned cpu)
{
    const unsigned before = r->irq[vector].n;
    k_writel(dev, 0, RAISE, vector);
    k_sleep(r->k, 20 * SIM_PS_PER_US);
    assert_int_equal(r->irq[vector].n, before + 1);
    assert_int_equal(r->irq[vector].cpu, cpu);
}

/* The thread that is interrupted goes on when what the handler has written is with the root port
 * (60 ns), which takes the CPU itself 50. */
static void expect_return_behind_write(struct rig *r, struct k_pci_dev *dev, unsigned vector)
{
    const unsigned before = r->irq[vector].n;
    r->irq[vector].writes = dev;
    k_writel(dev, 0, RAISE, vector);
    while (r->irq[vector].n == before)
        k_compute(r->k, 1);
    assert_in_range(k_now_ps(r->k) - r->irq[vector].at_ps, 60000, 120000);
    r->irq[vector].writes = NULL;
}

static void irqs_body(struct rig *r)
{
    struct k_irq *irq[N_VECTORS], *none;
    struct k_pci_driver driver;
    probe_all(r, &driver);
    for (unsigned i = 0; i < 2; i++) {
        struct k_pci_dev *dev = r->dev[i];
        for (unsigned v = 0; v < N_VECTORS; v++) {
            r->irq[v].r = r;
            assert_int_equal(k_irq_request(dev, v, v * 2, handler, &r->irq[v], &irq[v]), 0);
        }
        assert_int_equal(k_irq_request(dev, N_VECTORS, 0, handler, r, &none), -ENOSPC);
        assert_int_equal(k_irq_request(dev, 1, 0, handler, r, &none), -EBUSY);
        for (unsigned v = 0; v < N_VECTORS; v++)
            expect_irq(r, dev, v, v * 2);
        expect_return_behind_write(r, dev, 0);
        /* Somewhere else, again and again: no vector is lost. */
        for (unsigned n = 0; n < 600; n++) {
            assert_int_equal(k_irq_set_cpu(irq[2], n % 8), 0);
            if (n % 50 == 0)
                expect_irq(r, dev, 2, n % 8);
        }
        /* Sent before it moves, taken all the same. */
        const unsigned before = r->irq[1].n;
        k_writel(dev, 0, RAISE, 1);
        assert_int_equal(k_irq_set_cpu(irq[1], 7), 0);
        k_sleep(r->k, 20 * SIM_PS_PER_US);
        assert_int_equal(r->irq[1].n, before + 1);
        expect_irq(r, dev, 1, 7);
        /* Nor is it lost if it moves twice. */
        const unsigned once_more = r->irq[1].n;
        k_writel(dev, 0, RAISE, 1);
        assert_int_equal(k_irq_set_cpu(irq[1], 6), 0);
        assert_int_equal(k_irq_set_cpu(irq[1], 7), 0);
        k_sleep(r->k, 20 * SIM_PS_PER_US);
        assert_int_equal(r->irq[1].n, once_more + 1);
        k_irq_free(irq[1]);
        const unsigned after = r->irq[1].n;
        k_writel(dev, 0, RAISE, 1);
        k_sleep(r->k, 20 * SIM_PS_PER_US);
        assert_int_equal(r->irq[1].n, after);
        expect_irq(r, dev, 3, 6);
        assert_int_equal(k_irq_request(dev, 1, 5, handler, &r->irq[1], &irq[1]), 0);
        expect_irq(r, dev, 1, 5);
        for (unsigned v = 0; v < N_VECTORS; v++)
            k_irq_free(irq[v]);
        assert_int_equal(r->irq[0].n, 2 * (i + 1));
    }
}

static void test_interrupts(void **state)
{
    (void)state;
    in_kernel(irqs_body);
}

/* Two threads ask for the first interrupts of a device at the same time: while the first one reads
 * where the table is. */
struct second {
    struct rig *r;
    int status;
    struct k_irq *irq;
};
static sim_time second_after_ps;
static void second_body(void *arg)
{
    struct second *second = arg;
    second->status = k_irq_request(second->r->dev[0], 1, 1, handler, &second->r->irq[1],
                                   &second->irq);
}
static void two_requests_body(struct rig *r)
{
    struct k_pci_driver driver;
    struct second second = { .r = r, .status = 1 };
    struct k_irq *irq;
    probe_all(r, &driver);
    k_thread_new(r->k, "second", 1, second_body, &second);
    k_compute(r->k, second_after_ps / 500);
    assert_int_equal(k_irq_request(r->dev[0], 0, 0, handler, &r->irq[0], &irq), 0);
    k_sleep(r->k, 200 * SIM_PS_PER_US);
    assert_int_equal(second.status, 0);
    k_irq_free(irq);
    k_irq_free(second.irq);
}

static void test_two_requests(void **state)
{
    (void)state;
    for (second_after_ps = 0; second_after_ps < 6 * SIM_PS_PER_US;
         second_after_ps += SIM_PS_PER_US / 2)
        in_kernel(two_requests_body);
}

/* CPUs of a mask get the interrupt in turns; afterwards one has it alone, and no vector is lost. */
static void turns_body(struct rig *r)
{
    struct k_irq *irq;
    struct k_pci_driver driver;
    static const unsigned turn[] = { 0, 2, 3, 7 };
    unsigned first = 0;

    probe_all(r, &driver);
    struct k_pci_dev *dev = r->dev[0];
    r->irq[0].r = r;
    assert_int_equal(k_irq_request(dev, 0, 3, handler, &r->irq[0], &irq), 0);
    if (os_iommu_of(r->k, dev->id) != NULL) {
        assert_int_equal(k_irq_set_any_cpu(irq, 1), -EOPNOTSUPP);
        k_irq_free(irq);
        return;
    }
    assert_int_equal(k_irq_set_any_cpu(irq, 0), -EINVAL);
    assert_int_equal(k_irq_set_any_cpu(irq, UINT64_C(1) << 8), -EINVAL);
    expect_irq(r, dev, 0, 3);
    for (unsigned n = 0; n < 300; n++) {
        assert_int_equal(k_irq_set_any_cpu(irq, n % 2 != 0 ? 0x8d : 0xff), 0);
        assert_int_equal(k_irq_set_cpu(irq, 3), 0);
    }
    expect_irq(r, dev, 0, 3);
    assert_int_equal(k_irq_set_any_cpu(irq, 0x8d), 0);
    k_writel(dev, 0, RAISE, 0);
    k_sleep(r->k, 20 * SIM_PS_PER_US);
    while (turn[first] != r->irq[0].cpu)
        assert_in_range(++first, 0, 3);
    for (unsigned n = 1; n < 12; n++)
        expect_irq(r, dev, 0, turn[(first + n) % 4]);
    assert_int_equal(k_irq_set_cpu(irq, 5), 0);
    expect_irq(r, dev, 0, 5);
    k_irq_free(irq);
}

static void test_interrupts_in_turns(void **state)
{
    (void)state;
    in_kernel(turns_body);
}

/* ---- DMA ------------------------------------------------------------------------------------- */

static void transfer_done(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct device *d = SIM_CONTAINER(request, struct device, transfer);
    d->status = status;
    d->done = true;
}

/* The device's own transfer, to its end. */
static enum pcie_dma_status transfer(struct rig *r, unsigned i, bool write, uint64_t dma,
                                     uint64_t bytes)
{
    struct device *d = device_of(r, i);
    d->done = false;
    d->transfer = (struct pcie_dma_request){
        .iova = { dma }, .bytes = bytes, .buffer = d->buffer, .done = transfer_done
    };
    k_sleep(r->k, SIM_PS_PER_US); /* global time is ours now */
    if (write)
        pcie_dma_write(&d->dma, &d->transfer, 0);
    else
        pcie_dma_read(&d->dma, &d->transfer, 0);
    for (unsigned n = 0; n < 100; n++)
        k_sleep(r->k, SIM_PS_PER_US);
    assert_true(d->done);
    return d->status;
}

static void dma_body(struct rig *r)
{
    struct k_pci_driver driver;
    probe_all(r, &driver);
    const bool remapped = os_iommu_of(r->k, r->dev[0]->id) != NULL;
    for (unsigned i = 0; i < 2; i++) {
        struct k_device *device = &r->dev[i]->device;
        const struct k_costs *costs = k_costs(r->k);
        struct kaddr ring, page = k_alloc(r->k, 1, 16384, 4096);
        uint8_t bytes[4096];
        uint64_t dma, map[4];
        assert_int_equal(k_dma_alloc(device, 1, 5000, &ring, &dma), 0);
        assert_int_equal(dma == ring.v, !remapped);
        for (unsigned b = 0; b < sizeof(bytes); b++)
            bytes[b] = (uint8_t)(b * 7 + i);
        k_store(r->k, ring, bytes, 600);
        assert_int_equal(transfer(r, i, false, dma, 600), PCIE_DMA_OK);
        assert_memory_equal(device_of(r, i)->buffer, bytes, 600);
        /* A buffer that is not aligned to anything, over two pages. */
        uint64_t t = k_now_ps(r->k);
        assert_int_equal(k_dma_map(device, kaddr_add(page, 3000), 3000, K_DMA_FROM_DEVICE, &map[0]),
                         0);
        /* The cycles, and with an IOMMU stores to a line of each table. */
        assert_in_range(k_now_ps(r->k) - t -
                            (costs->dma_map_cycles + (remapped ? costs->iommu_map_cycles : 0)) *
                                500,
                        remapped ? 500 : 0, remapped ? 20000 : 0);
        assert_int_equal(map[0] % 4096, 3000);
        memcpy(device_of(r, i)->buffer, bytes, 3000);
        assert_int_equal(transfer(r, i, true, map[0], 3000), PCIE_DMA_OK);
        k_load(r->k, kaddr_add(page, 3000), bytes, 3000);
        assert_memory_equal(device_of(r, i)->buffer, bytes, 3000);
        /* What is unmapped, or mapped the other way, a device does not reach. */
        if (remapped)
            assert_int_equal(transfer(r, i, false, map[0], 64), PCIE_DMA_UNSUPPORTED);
        t = k_now_ps(r->k);
        k_dma_unmap(device, map[0], 3000, K_DMA_FROM_DEVICE);
        t = k_now_ps(r->k) - t;
        if (remapped) /* and until the invalidation's status is there: two lines and a write more */
            assert_in_range(t - (costs->dma_unmap_cycles + costs->iommu_unmap_cycles +
                                 costs->mmio_write_cycles) *
                                    500,
                            INVALIDATE_PS, INVALIDATE_PS + 500000);
        else
            assert_int_equal(t, costs->dma_unmap_cycles * 500);
        if (remapped)
            assert_int_equal(transfer(r, i, false, map[0], 64), PCIE_DMA_UNSUPPORTED);
        /* Addresses are used again, and never twice at a time. */
        for (unsigned n = 0; n < 100; n++) {
            for (unsigned m = 0; m < 4; m++)
                assert_int_equal(
                    k_dma_map(device, kaddr_add(page, m * 4096 + n), 100 + m, K_DMA_BOTH, &map[m]),
                    0);
            for (unsigned m = 0; m < 4; m++)
                for (unsigned o = 0; o < m; o++)
                    assert_true(map[m] / 4096 != map[o] / 4096);
            for (unsigned m = 0; m < 4; m++)
                k_dma_unmap(device, map[m], 100 + m, K_DMA_BOTH);
        }
        const struct os_dma *state = device->dma_context;
        assert_int_equal(state->live_maps, 0);
        if (remapped)
            assert_true(state->next_low - OS_IOVA_LOW <= 16 * 4096);
        k_dma_free(device, 5000, ring, dma);
        assert_int_equal(state->live_bytes, 0);
        if (remapped)
            assert_int_equal(transfer(r, i, false, dma, 64), PCIE_DMA_UNSUPPORTED);
    }
}

static void test_dma(void **state)
{
    (void)state;
    in_kernel(dma_body);
}

#define MAPS_MAX  2000u
#define MAP_BYTES UINT64_C(0x200000)

/* Maps the same 2 MiB until there is no address left, each below `end`; returns how often. */
static unsigned map_all(struct k_device *device, struct kaddr at, uint64_t end, uint64_t *map)
{
    unsigned n = 0;
    int status = 0;
    while (n < MAPS_MAX && (status = k_dma_map(device, at, MAP_BYTES, K_DMA_BOTH, &map[n])) == 0) {
        assert_true(map[n] + MAP_BYTES <= end);
        assert_true(map[n] + MAP_BYTES <= 0xf0000000 || map[n] >= UINT64_C(1) << 32);
        n++;
    }
    assert_true(n == MAPS_MAX || status == -ENOSPC);
    return n;
}

/* Behind an IOMMU, devices of any number of bits reach all memory, at addresses below 4 GiB as long
 * as there are some. Without one, what they cannot reach is refused. */
static void masks_body(struct rig *r)
{
    static uint64_t map[MAPS_MAX];
    struct k_pci_driver driver;
    struct kaddr high = k_alloc(r->k, 1, 4096, 4096), low, page;
    uint64_t dma;
    probe_all(r, &driver);
    struct k_device *device = &r->dev[0]->device;
    device->dma_mask = 0;           /* nobody has said */
    assert_true(high.v >> 32 != 0); /* of the second node */
    if (os_iommu_of(r->k, r->dev[0]->id) == NULL) {
        assert_int_equal(k_dma_map(device, high, 64, K_DMA_BOTH, &dma), -EIO); /* 32 bits */
        assert_int_equal(k_dma_alloc(device, 1, 64, &low, &dma), 0);
        assert_true(dma >> 32 == 0 && low.v == dma);
        k_dma_free(device, 64, low, dma);
        k_dma_set_mask(device, 64);
        assert_int_equal(k_dma_map(device, high, 64, K_DMA_BOTH, &dma), 0);
        k_dma_unmap(device, dma, 64, K_DMA_BOTH);
        return;
    }
    assert_int_equal(k_pages_get(r->k, 1, 2 * MAP_BYTES, &page), 0);
    const struct kaddr at = { (page.v + MAP_BYTES - 1) & ~(MAP_BYTES - 1) };
    /* Narrower ones again at the end: free addresses are then on top that they exclude. */
    static const unsigned bits[] = { 24, 31, 32, 33, 38, 64, 32, 24 };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(bits); i++) {
        k_dma_set_mask(device, bits[i]);
        const uint64_t end = bits[i] < 64 ? UINT64_C(1) << bits[i] : UINT64_MAX;
        const unsigned n = map_all(device, at, end, map);
        /* All but 2 MiB of what is below 4 GiB, from 1 MiB on, and what is beyond. */
        const uint64_t room = SIM_MIN(end, UINT64_C(0xf0000000)) +
                              (bits[i] > 32 ? end - (UINT64_C(1) << 32) : 0);
        assert_true(n >= SIM_MIN(MAPS_MAX, room / MAP_BYTES - 1));
        assert_int_equal(transfer(r, 0, true, map[n - 1] + MAP_BYTES - 64, 64), PCIE_DMA_OK);
        for (unsigned m = 0; m < n; m++)
            k_dma_unmap(device, map[m], MAP_BYTES, K_DMA_BOTH);
        /* Large ones are cut up, and the smallest go on where there is room. */
        assert_int_equal(k_dma_map(device, high, 64, K_DMA_BOTH, &dma), 0);
        assert_true(dma < SIM_MIN(end, UINT64_C(0xf0000000)));
        k_dma_unmap(device, dma, 64, K_DMA_BOTH);
    }
    assert_int_equal(((const struct os_dma *)device->dma_context)->live_maps, 0);
    k_pages_put(r->k, 2 * MAP_BYTES, page);
}

static void test_masks(void **state)
{
    (void)state;
    in_kernel(masks_body);
}

/* Each reaches the other's registers, whole and in part, and no more than is mapped. */
static void peers_body(struct rig *r)
{
    struct k_pci_driver driver;
    probe_all(r, &driver);
    const bool remapped = os_iommu_of(r->k, r->dev[0]->id) != NULL;
    for (unsigned i = 0; i < 2; i++) {
        struct k_device *device = &r->dev[i]->device, *target = &r->dev[1 - i]->device;
        const struct os_dma *state = device->dma_context;
        uint8_t *there = device_of(r, 1 - i)->reg, bytes[256];
        uint64_t dma = 0, other;
        assert_int_equal(k_dma_map_resource(device, target, 1, 0, 4, K_DMA_BOTH, &dma), -EINVAL);
        assert_int_equal(k_dma_map_resource(device, target, 6, 0, 4, K_DMA_BOTH, &dma), -EINVAL);
        assert_int_equal(k_dma_map_resource(device, target, 0, 4000, 97, K_DMA_BOTH, &dma),
                         -EINVAL);
        assert_int_equal(k_dma_map_resource(device, device, 0, 0, 4, K_DMA_BOTH, &dma), -EINVAL);
        assert_int_equal(k_dma_map_resource(device, target, 0, 0xc00, 256, K_DMA_BOTH, &dma), 0);
        assert_int_equal(dma == r->dev[1 - i]->bar_base[0] + 0xc00, !remapped);
        assert_int_equal(k_dma_map_resource(device, target, 0, 0xc00, 64, K_DMA_BOTH, &other), 0);
        for (unsigned b = 0; b < sizeof(bytes); b++)
            bytes[b] = (uint8_t)(b * 11 + i);
        memcpy(device_of(r, i)->buffer, bytes, sizeof(bytes));
        assert_int_equal(transfer(r, i, true, dma, 256), PCIE_DMA_OK);
        assert_memory_equal(there + 0xc00, bytes, sizeof(bytes));
        memset(device_of(r, i)->buffer, 0, sizeof(bytes));
        assert_int_equal(transfer(r, i, false, other, 64), PCIE_DMA_OK);
        assert_memory_equal(device_of(r, i)->buffer, bytes, 64);
        k_dma_unmap_resource(device, dma, 256, K_DMA_BOTH);
        assert_int_equal(transfer(r, i, false, other, 64), PCIE_DMA_OK);
        k_dma_unmap_resource(device, other, 64, K_DMA_BOTH);
        if (remapped)
            assert_int_equal(transfer(r, i, false, other, 64), PCIE_DMA_UNSUPPORTED);
        assert_int_equal(state->live_maps, 0);
    }
    /* The target goes first; the driver of the other still has it mapped. */
    uint64_t dma;
    assert_int_equal(
        k_dma_map_resource(&r->dev[0]->device, &r->dev[1]->device, 0, 0, 4096, K_DMA_BOTH, &dma),
        0);
    k_pci_remove(r->dev[1], true);
    k_dma_unmap_resource(&r->dev[0]->device, dma, 4096, K_DMA_BOTH);
    assert_null(r->k->pci->resources);
}

static void test_peers(void **state)
{
    (void)state;
    in_kernel(peers_body);
}

/* ---- Domains that software fills itself ------------------------------------------------------ */

/* The domain holds 64 bytes at iova for the device, as they are in memory. */
static void expect_reads(struct rig *r, uint64_t iova, struct kaddr at)
{
    uint8_t bytes[64];
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i + iova / 4096 + at.v / 4096);
    k_store(r->k, at, bytes, sizeof(bytes));
    assert_int_equal(transfer(r, 0, false, iova, 64), PCIE_DMA_OK);
    assert_memory_equal(device_of(r, 0)->buffer, bytes, sizeof(bytes));
}

static void domains_body(struct rig *r)
{
    struct k_pci_driver driver;
    struct k_iommu_domain *domain, *other;
    const uint64_t iova = 0x40000000;
    struct kaddr page, none = k_alloc(r->k, 0, 8192, 4096);
    uint64_t own;
    probe_all(r, &driver);
    struct k_device *device = &r->dev[0]->device;
    const uint16_t id = r->dev[0]->id, proxy = (uint16_t)(id | 0xf8);
    assert_int_equal(k_iommu_on(r->k, id), os_iommu_of(r->k, id) != NULL);
    domain = k_iommu_domain_new(r->k, id);
    if (!k_iommu_on(r->k, id)) {
        assert_null(domain);
        return;
    }
    assert_int_equal(k_pages_get(r->k, 0, 8192, &page), 0);
    assert_int_equal(k_dma_map(device, page, 64, K_DMA_BOTH, &own), 0); /* the kernel's own */
    expect_reads(r, own, page);
    assert_int_equal(k_iommu_attach(domain, id), 0);
    assert_int_equal(k_iommu_attach(domain, proxy), 0); /* nobody is there: no matter */
    assert_int_equal(transfer(r, 0, false, own, 64), PCIE_DMA_UNSUPPORTED);
    uint64_t t = k_now_ps(r->k);
    assert_int_equal(k_iommu_map(domain, iova, page.v, 8192, K_DMA_TO_DEVICE), 0);
    assert_in_range(k_now_ps(r->k) - t - k_costs(r->k)->iommu_map_cycles * 500, 500, 20000);
    assert_int_equal(k_iommu_map(domain, iova + 4096, none.v, 4096, K_DMA_BOTH), -EEXIST);
    expect_reads(r, iova + 4096, kaddr_add(page, 4096));
    assert_int_equal(transfer(r, 0, false, iova + 8192, 64), PCIE_DMA_UNSUPPORTED);
    /* In one domain at a time; behind its own IOMMU. */
    other = k_iommu_domain_new(r->k, id);
    assert_int_equal(k_iommu_attach(other, id), -EBUSY);
    assert_int_equal(k_iommu_attach(other, proxy), -EBUSY);
    assert_int_equal(k_iommu_attach(other, r->dev[1]->id), -EINVAL);
    k_iommu_detach(domain, proxy);
    assert_int_equal(k_iommu_attach(other, proxy), 0);
    k_iommu_domain_free(other);
    assert_int_equal(k_iommu_unmap(domain, iova, 4096), 0);
    assert_int_equal(k_iommu_unmap(domain, iova, 4096), -ENOENT);
    assert_int_equal(transfer(r, 0, false, iova, 64), PCIE_DMA_UNSUPPORTED);
    expect_reads(r, iova + 4096, kaddr_add(page, 4096));
    /* Back with the kernel: its own mappings are as they were. */
    k_iommu_domain_free(domain);
    assert_int_equal(transfer(r, 0, false, iova + 4096, 64), PCIE_DMA_UNSUPPORTED);
    expect_reads(r, own, page);
    k_dma_unmap(device, own, 64, K_DMA_BOTH);
    k_pages_put(r->k, 8192, page);
}

static void test_domains(void **state)
{
    (void)state;
    in_kernel(domains_body);
}

/* ---- When what is unmapped is invalidated ---------------------------------------------------- */

#define LAZY_ENTRIES 250u

static uint64_t map_one(struct rig *r, struct kaddr page)
{
    uint64_t dma;
    assert_int_equal(k_dma_map(&r->dev[0]->device, page, 4096, K_DMA_BOTH, &dma), 0);
    return dma;
}

/* Invalidations of the IOMMU that device 0 is behind. */
static uint64_t invalidations(struct rig *r)
{
    return iommu_driver_submitted(os_iommu_of(r->k, r->dev[0]->id));
}

/* What a device has used it reaches after it was unmapped, until a flush: 10 ms after the first
 * that was put off, or when a CPU has put off 250 and comes with one more. An address is not given
 * out again before. */
static void lazy_body(struct rig *r)
{
    struct k_pci_driver driver;
    probe_all(r, &driver);
    if (os_iommu_of(r->k, r->dev[0]->id) == NULL)
        return;
    struct kaddr page = k_alloc(r->k, 0, 4096, 4096);
    const uint64_t first = map_one(r, page), before = invalidations(r);
    assert_int_equal(transfer(r, 0, false, first, 64), PCIE_DMA_OK);
    k_dma_unmap(&r->dev[0]->device, first, 4096, K_DMA_BOTH);
    const uint64_t unmapped_ps = k_now_ps(r->k);
    assert_int_equal(transfer(r, 0, false, first, 64), PCIE_DMA_OK);
    assert_true(map_one(r, page) != first);
    while (k_now_ps(r->k) < unmapped_ps + 9900 * SIM_PS_PER_US)
        k_sleep(r->k, 10 * SIM_PS_PER_US);
    assert_int_equal(invalidations(r) - before, 0);
    k_sleep(r->k, 200 * SIM_PS_PER_US);
    assert_int_equal(invalidations(r) - before, 1);
    assert_int_equal(transfer(r, 0, false, first, 64), PCIE_DMA_UNSUPPORTED);
    assert_int_equal(map_one(r, page), first);
    for (unsigned i = 0; i <= LAZY_ENTRIES; i++) {
        assert_int_equal(invalidations(r) - before, 1);
        k_dma_unmap(&r->dev[0]->device, map_one(r, page), 4096, K_DMA_BOTH);
    }
    assert_int_equal(invalidations(r) - before, 2);
    k_sleep(r->k, 10500 * SIM_PS_PER_US); /* of the one that came too late */
    assert_int_equal(invalidations(r) - before, 3);
}

static void test_lazy(void **state)
{
    (void)state;
    with(lazy_body, OS_IOMMU_LAZY, true);
}

/* Tables that an unmapping takes out are freed with the flush; a kernel may end before it. */
static void lazy_tables_body(struct rig *r)
{
    struct k_pci_driver driver;
    struct kaddr page;
    uint64_t dma;
    probe_all(r, &driver);
    struct iommu_driver *iommu = os_iommu_of(r->k, r->dev[0]->id);
    if (iommu == NULL)
        return;
    assert_int_equal(k_pages_get(r->k, 0, 2 * MAP_BYTES, &page), 0);
    const struct kaddr at = { page.v + 4096 };
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(k_dma_map(&r->dev[0]->device, at, MAP_BYTES, K_DMA_BOTH, &dma), 0);
        const uint64_t mapped = iommu_driver_table_bytes(iommu);
        k_dma_unmap(&r->dev[0]->device, dma, MAP_BYTES, K_DMA_BOTH);
        assert_int_equal(iommu_driver_table_bytes(iommu), mapped);
        if (i == 2)
            break;
        k_sleep(r->k, 11 * SIM_PS_PER_MS);
        assert_true(iommu_driver_table_bytes(iommu) < mapped);
    }
    k_pages_put(r->k, 2 * MAP_BYTES, page);
}

static void test_lazy_tables(void **state)
{
    (void)state;
    with(lazy_tables_body, OS_IOMMU_LAZY, true);
}

/* The table bytes of a mapping that pages of 2 MiB would do for, and of one of as many small
 * ones. */
static uint64_t n_table_bytes, n_domain_bytes; /* of the device's, of one that software fills */
static void superpages_body(struct rig *r)
{
    struct k_pci_driver driver;
    struct kaddr page;
    uint64_t dma;
    probe_all(r, &driver);
    struct iommu_driver *iommu = os_iommu_of(r->k, r->dev[0]->id);
    if (iommu == NULL)
        return;
    assert_int_equal(k_pages_get(r->k, 0, 2 * MAP_BYTES, &page), 0);
    const struct kaddr at = { (page.v + MAP_BYTES - 1) & ~(MAP_BYTES - 1) };
    const uint64_t before = iommu_driver_table_bytes(iommu);
    assert_int_equal(k_dma_map(&r->dev[0]->device, at, MAP_BYTES, K_DMA_BOTH, &dma), 0);
    n_table_bytes = iommu_driver_table_bytes(iommu) - before;
    k_dma_unmap(&r->dev[0]->device, dma, MAP_BYTES, K_DMA_BOTH);
    struct k_iommu_domain *domain = k_iommu_domain_new(r->k, r->dev[0]->id);
    const uint64_t empty = iommu_driver_table_bytes(iommu);
    assert_int_equal(k_iommu_map(domain, MAP_BYTES, at.v, MAP_BYTES, K_DMA_BOTH), 0);
    n_domain_bytes = iommu_driver_table_bytes(iommu) - empty;
    k_iommu_domain_free(domain);
    k_pages_put(r->k, 2 * MAP_BYTES, page);
}

static void test_superpages(void **state)
{
    (void)state;
    with(superpages_body, OS_IOMMU_STRICT, true);
    const uint64_t with_them = n_table_bytes, in_domain = n_domain_bytes;
    with(superpages_body, OS_IOMMU_STRICT, false);
    assert_true(n_table_bytes >= with_them + MAP_BYTES / 4096 * 8);
    assert_true(n_domain_bytes >= in_domain + MAP_BYTES / 4096 * 8);
}

static void host_body(struct rig *r)
{
    uint16_t id[3];
    uint64_t base, bytes, sum = 0;
    assert_true(k_root_requester(r->k, 0, &id[0]));
    assert_true(k_root_requester(r->k, 1, &id[1]));
    assert_false(k_root_requester(r->k, 2, &id[2]));
    assert_int_equal(id[0], 0);
    assert_int_equal(id[1], 0x8000);
    for (unsigned i = 0; k_memory_range(r->k, i, &base, &bytes); i++) {
        sum += bytes;
        assert_true(physmem_node_of(host_physmem(r->w.host), (struct hpa){ base }) >= 0);
        assert_true(physmem_node_of(host_physmem(r->w.host), (struct hpa){ base + bytes - 1 }) >=
                    0);
    }
    /* Two nodes; the hole is left out. */
    assert_true(sum == 2 * physmem_node_bytes(host_physmem(r->w.host), 0) - (UINT64_C(1) << 28));
}

static void test_host(void **state)
{
    (void)state;
    in_kernel(host_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drivers),      cmocka_unit_test(test_interrupts),
        cmocka_unit_test(test_two_requests), cmocka_unit_test(test_interrupts_in_turns),
        cmocka_unit_test(test_dma),          cmocka_unit_test(test_peers),
        cmocka_unit_test(test_domains),      cmocka_unit_test(test_host),
        cmocka_unit_test(test_masks),        cmocka_unit_test(test_lazy),
        cmocka_unit_test(test_lazy_tables),  cmocka_unit_test(test_superpages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
