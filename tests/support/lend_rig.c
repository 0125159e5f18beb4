#include "tests/support/lend_rig.h"

/* ---- An ordinary driver of the device -------------------------------------------------------- */

struct driver_device driver_devices[DRIVERS];
unsigned n_driven, n_probed, driver_bits;

static void driver_irq(void *arg)
{
    struct driver_device *d = arg;
    d->n_irqs++;
    k_wake(d->pci->device.kernel, &d->wait);
}

static int driver_probe(struct k_pci_dev *pci, void *context)
{
    struct driver_device *d = driver_devices;
    (void)context;
    while (d->busy)
        d++;
    assert_true(d < driver_devices + DRIVERS);
    *d = (struct driver_device){ .pci = pci, .busy = true };
    n_probed++;
    n_driven++;
    pci->device.driver_data = d;
    uint32_t command = k_config_read(pci, 4, 2);
    k_config_write(pci, 4, 2, command | 6);
    k_dma_set_mask(&pci->device, driver_bits);
    int status = k_dma_alloc(&pci->device, 0, 4096, &d->page, &d->dma);
    if (status != 0 && driver_bits < 64) {
        d->busy = false;
        n_driven--;
        return status;
    }
    assert_int_equal(status, 0);
    assert_int_equal(k_irq_request(pci, 0, 1, driver_irq, d, &d->irq), 0);
    return 0;
}

static void driver_remove(struct k_pci_dev *pci, bool gone)
{
    struct driver_device *d = pci->device.driver_data;
    if (!gone)
        k_writel(pci, 0, LF_REG_BYTES, 0);
    k_irq_free(d->irq);
    k_dma_free(&pci->device, 4096, d->page, d->dma);
    n_driven--;
    d->busy = false;
}

const struct k_pci_driver lend_driver = {
    .name = "small", .ids = lf_ids, .probe = driver_probe, .remove = driver_remove
};

uint32_t driver_run(struct k_pci_dev *pci, uint32_t command, uint64_t dma, uint32_t bytes)
{
    struct driver_device *d = pci->device.driver_data;
    unsigned before = d->n_irqs;
    k_writeq(pci, 0, LF_REG_ADDRESS, dma);
    k_writel(pci, 0, LF_REG_BYTES, bytes);
    k_writel(pci, 0, LF_REG_COMMAND, command);
    for (unsigned i = 0; i < 100 && d->n_irqs == before; i++)
        k_wait(pci->device.kernel, &d->wait, k_now_ps(pci->device.kernel) + FAKE_US(10));
    uint32_t status = k_readl(pci, 0, LF_REG_STATUS);
    assert_true(d->n_irqs > before || status == UINT32_MAX);
    return status;
}

void driver_copies(struct k_pci_dev *pci, uint8_t first)
{
    struct kernel *kernel = pci->device.kernel;
    struct kaddr from = k_alloc(kernel, 1, 8192, 4096), to = k_alloc(kernel, 0, 8192, 4096);
    uint8_t out[3000], in[3000];
    uint64_t dma[2];
    for (unsigned i = 0; i < sizeof out; i++)
        out[i] = (uint8_t)(first + i * 7);
    k_store(kernel, kaddr_add(from, 2000), out, sizeof out);
    assert_int_equal(
        k_dma_map(&pci->device, kaddr_add(from, 2000), sizeof out, K_DMA_TO_DEVICE, &dma[0]), 0);
    assert_int_equal(
        k_dma_map(&pci->device, kaddr_add(to, 64), sizeof in, K_DMA_FROM_DEVICE, &dma[1]), 0);
    assert_int_equal(driver_run(pci, 1, dma[0], sizeof out), 1);
    assert_int_equal(driver_run(pci, 2, dma[1], sizeof in), 1);
    k_load(kernel, kaddr_add(to, 64), in, sizeof in);
    assert_memory_equal(in, out, sizeof in);
    k_dma_unmap(&pci->device, dma[0], sizeof out, K_DMA_TO_DEVICE);
    k_dma_unmap(&pci->device, dma[1], sizeof in, K_DMA_FROM_DEVICE);
    if (kernel->options.iommu) /* not mapped any more */
        assert_int_equal(driver_run(pci, 2, dma[1], 64), 2);
}

/* ---- Rigs ------------------------------------------------------------------------------------ */

const struct fake_options lend_plain = { .seed = 3, .msix = true };

void lend_rig_init(struct lf_rig *rig)
{
    memset(rig, 0, sizeof *rig);
    memset(driver_devices, 0, sizeof driver_devices);
    n_driven = n_probed = 0;
    driver_bits = 64;
    lf_driver_now = &lend_driver;
}

void two_hosts(struct lf_rig *rig, bool borrower_iommu, bool lender_iommu)
{
    struct fake_options a = lend_plain, b = lend_plain;
    lend_rig_init(rig);
    a.iommu = borrower_iommu;
    b.iommu = lender_iommu;
    lf_host_add(rig, &a, 1, 0);
    lf_host_add(rig, &b, 1, 2);
}

void three_hosts(struct lf_rig *rig, bool iommu)
{
    struct fake_options o = lend_plain;
    lend_rig_init(rig);
    o.iommu = iommu;
    rig->through_switch = true;
    for (unsigned i = 0; i < 3; i++)
        lf_host_add(rig, &o, 1, i == 1 ? 2 : 0);
}

void start_all(struct lf_rig *rig)
{
    for (unsigned i = 0; i < rig->n_hosts; i++) {
        struct lend_options options = lf_options(&rig->host[i]);
        lf_host_start(&rig->host[i], &options);
    }
}

void discover(struct lf_host *host, void *arg)
{
    const int *expected = arg;
    assert_int_equal(lend_discover(host->lend), *expected);
}

void try_borrow(struct lf_host *host, void *arg)
{
    struct attempt *a = arg;
    if (!lend_path_at(host->lend, 0, &(struct lend_path){ 0 }))
        lend_discover(host->lend);
    a->error = (struct lend_error){ 0 };
    a->status = lend_borrow(host->lend, a->peer, a->id, &a->borrow, &a->error);
    assert_int_equal(a->error.code, a->status);
    if (a->status != 0)
        assert_true(a->error.text[0] != '\0');
}

void give_back_body(struct lf_host *host, void *arg)
{
    (void)host;
    lend_return(arg);
}

void borrow_one(struct lf_rig *rig, struct attempt *a)
{
    *a = (struct attempt){ .id = DEVICE(0), .peer = 2 };
    lf_call(&rig->host[0], try_borrow, a);
    if (a->status != 0)
        fail_msg("%d: %s", a->status, a->error.text);
    assert_int_equal(n_driven, 1);
}

void expect_same(const struct lend_usage *a, const struct lend_usage *b)
{
    assert_memory_equal(a, b, sizeof *a);
}

bool any_busy(void *arg)
{
    struct lf_call *call = arg;
    for (; call->host != NULL; call++)
        if (!call->done)
            return true;
    return false;
}
