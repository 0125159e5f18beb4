/*
 * RDMA adapters come and go.
 *
 * What it does: Probe (limits, command block, an event queue with an interrupt per CPU); remove,
 *   which waits for the users of the adapter.
 * Leaves out: sysfs, user contexts, a subnet manager: rdma_drv_set_lid() is called by the
 *   administrator.
 * Follows: Linux 5.4, drivers/net/ethernet/mellanox/mlx5/core/main.c.
 * Costs: the commands.
 */
#include <errno.h>

#include "logic/rdma/rdma_internal.h"

#define DRAIN_PS (2 * K_US)
#define PROBE_PS K_MS /* period of checks whether it answers, while its users let go of it */

/* ---- Adapters come --------------------------------------------------------------------------- */

static int read_limits(struct rdma_drv *rdma)
{
    struct k_pci_dev *pci = rdma->pci;
    if (k_readl(pci, 0, RDMA_REG_VERSION) != RDMA_VERSION)
        return -ENODEV;
    rdma->n_qps = k_readl(pci, 0, RDMA_REG_N_QPS);
    rdma->n_cqs = k_readl(pci, 0, RDMA_REG_N_CQS);
    rdma->limits.inline_bytes = k_readl(pci, 0, RDMA_REG_INLINE_BYTES);
    rdma->limits.reads = k_readl(pci, 0, RDMA_REG_READS);
    rdma->limits.mtu_bytes = k_readl(pci, 0, RDMA_REG_MTU_BYTES);
    rdma->limits.rate_gbit_s = k_readl(pci, 0, RDMA_REG_RATE_GBIT_S);
    return rdma->n_qps > RDMA_QPS_MAX || rdma->n_cqs > RDMA_CQS_MAX ? -ENODEV : 0;
}

static void release(struct rdma_drv *rdma)
{
    rdma_drv_eqs_free(rdma);
    rdma_drv_memory_free(rdma, &rdma->command);
    k_free(rdma->eq);
    k_free(rdma->cq);
    k_free(rdma->qp);
    k_free(rdma);
}

static int bring_up(struct rdma_drv *rdma)
{
    int error = read_limits(rdma);
    if (error != 0)
        return error;
    rdma->eq = k_zalloc(k_n_cpus(rdma->kernel) * sizeof *rdma->eq);
    rdma->cq = k_zalloc(rdma->n_cqs * sizeof(struct rdma_drv_cq *));
    rdma->qp = k_zalloc(rdma->n_qps * sizeof(struct rdma_drv_qp *));
    error = rdma_drv_memory_alloc(rdma, &rdma->command, sizeof(struct rdma_command));
    return error == 0 ? rdma_drv_eqs_make(rdma) : error;
}

static int rdma_probe(struct k_pci_dev *pci, void *context)
{
    struct rdma_driver *driver = context;
    k_pci_enable(pci);
    k_dma_set_mask(&pci->device, 64);
    if (pci->bar_bytes[0] < RDMA_BAR_BYTES)
        return -ENODEV;
    struct rdma_drv *rdma = k_zalloc(sizeof *rdma);
    *rdma = (struct rdma_drv){
        .driver = driver, .kernel = driver->kernel, .costs = k_costs(driver->kernel), .pci = pci
    };
    const int error = bring_up(rdma);
    if (error != 0) {
        release(rdma);
        return error;
    }
    pci->device.driver_data = rdma;
    struct rdma_drv **link = &driver->first;
    while (*link != NULL)
        link = &(*link)->next;
    *link = rdma;
    return 0;
}

/* ---- Adapters go ----------------------------------------------------------------------------- */

void rdma_drv_lost(struct rdma_drv *rdma)
{
    rdma->gone = true;
    for (uint32_t i = 0; i < rdma->n_cqs; i++) {
        struct rdma_drv_cq *cq = rdma->cq[i];
        if (cq != NULL && cq->armed && cq->handler != NULL) {
            cq->armed = false;
            cq->handler(cq->context);
        }
    }
}

/* Has the adapter flush what is posted, so that nobody waits for it. Users may free what they have
 * meanwhile. */
static void end_queue_pairs(struct rdma_drv *rdma)
{
    for (uint32_t i = 0; i < rdma->n_qps && !rdma->gone; i++) {
        struct rdma_command command = { .opcode = RDMA_MODIFY_QP,
                                        .number = i,
                                        .state = RDMA_QP_ERR };
        const struct rdma_drv_qp *qp = rdma->qp[i];
        if (qp != NULL && rdma_drv_command(rdma, &command) == 0 && rdma->qp[i] == qp)
            rdma_drv_qp_failed(rdma->qp[i]);
    }
}

static void rdma_remove(struct k_pci_dev *pci, bool gone)
{
    struct rdma_drv *rdma = pci->device.driver_data;
    rdma->closing = true;
    if (gone)
        rdma_drv_lost(rdma);
    else
        end_queue_pairs(rdma);
    for (uint64_t probe_ps = 0; rdma->n_objects != 0 || rdma->command_busy;) {
        const uint64_t now_ps = k_now_ps(rdma->kernel);
        if (now_ps >= probe_ps && !rdma->gone) { /* it may go before its users have let go of it */
            probe_ps = now_ps + PROBE_PS;
            if (k_readl(pci, 0, RDMA_REG_VERSION) == UINT32_MAX)
                rdma_drv_lost(rdma);
        }
        k_sleep(rdma->kernel, DRAIN_PS);
    }
    K_LIST_REMOVE(rdma->driver->first, rdma);
    pci->device.driver_data = NULL;
    release(rdma);
}

/* ---- The driver ------------------------------------------------------------------------------ */

static const struct k_pci_id rdma_ids[] = { { RDMA_VENDOR_ID, RDMA_DEVICE_ID }, { 0, 0 } };

struct rdma_driver *rdma_driver_new(struct kernel *kernel)
{
    struct rdma_driver *driver = k_zalloc(sizeof *driver);
    driver->kernel = kernel;
    driver->pci = (struct k_pci_driver){ .name = "rdma",
                                         .ids = rdma_ids,
                                         .probe = rdma_probe,
                                         .remove = rdma_remove,
                                         .context = driver };
    return driver;
}

const struct k_pci_driver *rdma_driver_pci(const struct rdma_driver *driver)
{
    return &driver->pci;
}

void rdma_driver_free(struct rdma_driver *driver)
{
    k_free(driver);
}

struct rdma_drv *rdma_driver_device(const struct rdma_driver *driver, unsigned i)
{
    struct rdma_drv *rdma = driver->first;
    while (rdma != NULL && i-- > 0)
        rdma = rdma->next;
    return rdma;
}

struct rdma_drv *rdma_drv_of(struct k_pci_dev *dev)
{
    return dev->driver != NULL && dev->driver->probe == rdma_probe ? dev->device.driver_data : NULL;
}

/* ---- An adapter ------------------------------------------------------------------------------ */

struct k_pci_dev *rdma_drv_pci(const struct rdma_drv *rdma)
{
    return rdma->pci;
}

struct rdma_drv_limits rdma_drv_limits(const struct rdma_drv *rdma)
{
    return rdma->limits;
}

bool rdma_drv_gone(const struct rdma_drv *rdma)
{
    return rdma->gone || rdma->closing;
}

bool rdma_drv_link_up(struct rdma_drv *rdma)
{
    return !rdma->gone && k_readl(rdma->pci, 0, RDMA_REG_LINK) == 1;
}

int rdma_drv_set_lid(struct rdma_drv *rdma, uint16_t lid)
{
    if (lid == 0 || lid > RDMA_LID_LAST)
        return -EINVAL;
    if (rdma->gone)
        return -ENODEV;
    k_writel(rdma->pci, 0, RDMA_REG_LID, lid);
    if (k_readl(rdma->pci, 0, RDMA_REG_LID) != lid)
        return -ENODEV;
    rdma->lid = lid;
    return 0;
}

void rdma_drv_on_event(struct rdma_drv *rdma, rdma_drv_event_fn *fn, void *context)
{
    rdma->event_context = context;
    rdma->on_event = fn;
}

struct rdma_driver_stats rdma_driver_stats(const struct rdma_drv *rdma)
{
    return rdma->stats;
}
