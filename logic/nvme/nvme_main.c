/*
 * NVMe controllers come, go, and are reset.
 *
 * What it does: Probe (reset, admin queue, Identify, a queue pair with an interrupt per CPU),
 *   handles that outlive the device (nvme_get_ctrl(), nvme_put_ctrl()),
 *   remove with shutdown, surprise removal (every outstanding request ends with -ENODEV), time-outs
 *   (the controller is checked, reset and set up again; outstanding requests end with -ETIMEDOUT).
 * Leaves out: Abort before a reset, several tries.
 * Follows: NVM Express 1.3, sections 3.1.5, 7.6; Linux 4.14, drivers/nvme/host/pci.c.
 * Costs: The time of the device, rounded up to the end of a sleep; a time-out is found at most half
 *   its time late.
 */
#include <errno.h>

#include "logic/nvme/nvme_internal.h"

#define POLL_PS         (100 * K_US) /* of CSTS */
#define DRAIN_PS        (2 * K_US)
#define TIMEOUT_UNIT_PS (500 * K_MS) /* CAP.TO */

const struct nvme_driver_params nvme_driver_params_default = {
    .queue_entries = 256,
    .timeout_ps = 30 * K_S,
};

/* ---- The controller -------------------------------------------------------------------------- */

bool nvme_drv_absent(struct nvme_drv *nvme)
{
    return k_readl(nvme->pci, 0, NVME_REG_CSTS) == UINT32_MAX;
}

/* Until the bits of CSTS are so; 0, -ENODEV, -ETIMEDOUT. */
static int wait_status(struct nvme_drv *nvme, uint32_t mask, uint32_t value)
{
    uint64_t until_ps = k_now_ps(nvme->kernel) + nvme->ready_timeout_ps;
    for (;;) {
        uint32_t status = k_readl(nvme->pci, 0, NVME_REG_CSTS);
        if (status == UINT32_MAX)
            return -ENODEV;
        if ((status & mask) == value)
            return 0;
        if (k_now_ps(nvme->kernel) >= until_ps)
            return -ETIMEDOUT;
        k_sleep(nvme->kernel, POLL_PS);
    }
}

static int disable(struct nvme_drv *nvme)
{
    k_writel(nvme->pci, 0, NVME_REG_CC, 0);
    return wait_status(nvme, NVME_CSTS_RDY, 0);
}

/* The admin queue is in memory and empty. */
static int enable(struct nvme_drv *nvme)
{
    uint32_t size = nvme->admin.entries - 1u;
    k_writel(nvme->pci, 0, NVME_REG_AQA, size << 16 | size);
    k_writeq(nvme->pci, 0, NVME_REG_ASQ, nvme->admin.sq.dma);
    k_writeq(nvme->pci, 0, NVME_REG_ACQ, nvme->admin.cq.dma);
    k_writel(nvme->pci, 0, NVME_REG_CC,
             NVME_CC_IOSQES(NVME_SQE_LOG2) | NVME_CC_IOCQES(NVME_CQE_LOG2) | NVME_CC_EN);
    int error = wait_status(nvme, NVME_CSTS_RDY, NVME_CSTS_RDY);
    nvme->admin.made = error == 0;
    return error;
}

static void shut_down(struct nvme_drv *nvme)
{
    uint32_t cc = k_readl(nvme->pci, 0, NVME_REG_CC);
    k_writel(nvme->pci, 0, NVME_REG_CC, (cc & ~NVME_CC_SHN_MASK) | NVME_CC_SHN_NORMAL);
    if (wait_status(nvme, NVME_CSTS_SHST_MASK, NVME_CSTS_SHST_COMPLETE) != 0 || disable(nvme) != 0)
        k_warn(nvme->kernel, "nvme: no orderly shutdown");
}

/* ---- Commands that do not come back ---------------------------------------------------------- */

static void watch_fires(struct k_timer *timer)
{
    struct nvme_drv *nvme = K_CONTAINER(timer, struct nvme_drv, watch);
    if (nvme->closing || nvme->watch_work.work.queued)
        return;
    nvme->n_works++;
    k_work_queue(nvme->kernel, &nvme->watch_work.work, K_CPU_ANY);
}

void nvme_drv_watch(struct nvme_drv *nvme)
{
    if (!k_timer_pending(&nvme->watch) && nvme->n_works == 0)
        k_timer_set(&nvme->watch, k_now_ps(nvme->kernel) + nvme->driver->params.timeout_ps / 2);
}

static bool overdue(const struct nvme_drv *nvme)
{
    uint64_t now_ps = k_now_ps(nvme->kernel);
    for (uint16_t q = 0; q < nvme->n_queues; q++) {
        const struct nvme_drv_queue *queue = &nvme->queue[q];
        for (uint16_t cid = 0; cid < queue->entries; cid++)
            if (queue->slot[cid] != NULL && queue->slot[cid]->deadline_ps <= now_ps)
                return true;
    }
    return false;
}

static void give_up(struct nvme_drv *nvme)
{
    nvme->gone = true;
    nvme_drv_fail_all(nvme, -ENODEV);
}

static int set_up_again(struct nvme_drv *nvme)
{
    nvme_drv_queue_clear(&nvme->admin);
    int error = enable(nvme);
    for (uint16_t q = 0; q < nvme->n_queues; q++)
        nvme_drv_queue_clear(&nvme->queue[q]);
    nvme->resetting = false; /* admin commands pass */
    for (uint16_t q = 0; error == 0 && q < nvme->n_queues; q++)
        error = nvme_drv_queue_make(&nvme->queue[q]);
    if (error == 0 && nvme->n_vfs != 0)
        error = nvme_drv_vfs_online(nvme);
    return error;
}

static void reset(struct nvme_drv *nvme)
{
    k_warn(nvme->kernel, "nvme: a command did not come back; the controller is reset");
    nvme->stats.resets++;
    nvme->resetting = true;
    int error = disable(nvme);
    nvme_drv_fail_all(nvme, error == -ENODEV ? -ENODEV : -ETIMEDOUT);
    if (error == 0)
        error = set_up_again(nvme);
    nvme->resetting = false;
    if (error != 0)
        give_up(nvme);
}

static void watch_work(struct k_work *work)
{
    struct nvme_drv *nvme = K_CONTAINER(work, struct nvme_drv, watch_work.work);
    if (!nvme->closing && !nvme->gone && overdue(nvme)) {
        nvme->stats.timeouts++;
        if (nvme_drv_absent(nvme)) {
            give_up(nvme);
        } else {
            for (uint16_t q = 0; q < nvme->n_queues; q++) /* an interrupt that was lost */
                nvme_drv_process(&nvme->queue[q]);
            if (overdue(nvme))
                reset(nvme);
        }
    }
    nvme->n_works--;
    if (nvme->stats.outstanding > 0 && !nvme->closing && !nvme->gone)
        nvme_drv_watch(nvme);
}

/* ---- Controllers come ------------------------------------------------------------------------ */

static int read_capabilities(struct nvme_drv *nvme)
{
    uint64_t cap = k_readq(nvme->pci, 0, NVME_REG_CAP);
    if (cap == UINT64_MAX || (cap & NVME_CAP_CSS_NVM) == 0 || NVME_CAP_DSTRD(cap) != 0 ||
        (cap >> 48 & 0xfu) != 0)
        return -ENODEV;
    uint32_t entries = NVME_CAP_MQES(cap);
    uint16_t wanted = nvme->driver->params.queue_entries;
    nvme->entries_max = entries < wanted ? (uint16_t)entries : wanted;
    nvme->ready_timeout_ps = ((cap >> NVME_CAP_TO_SHIFT & 0xffu) + 1) * TIMEOUT_UNIT_PS;
    nvme_drv_cmb_find(nvme);
    return 0;
}

/* A vector of the queue's own; with one vector in all, the first queue shares the administrative
 * one's (Linux: nvme_create_queue()), whose completions are then found by polling all the same. */
static int request_irq(struct nvme_drv_queue *queue)
{
    struct k_pci_dev *pci = queue->nvme->pci;
    queue->vector = queue->number;
    int error = k_irq_request(pci, queue->vector, queue->cpu, nvme_drv_interrupt, queue,
                              &queue->irq);
    if (error != -ENOSPC || queue->number != 1)
        return error;
    queue->vector = 0;
    return k_irq_request(pci, 0, queue->cpu, nvme_drv_interrupt, queue, &queue->irq);
}

/* A queue pair; without a vector left, -ENOSPC. */
static int add_queue(struct nvme_drv *nvme, uint16_t q)
{
    struct nvme_drv_queue *queue = &nvme->queue[q];
    int error = nvme_drv_queue_alloc(nvme, queue, (uint16_t)(q + 1u), q, nvme->entries_max);
    if (error != 0)
        return error;
    if (!nvme->polled)
        error = request_irq(queue);
    if (error == 0)
        error = nvme_drv_queue_make(queue);
    if (error != 0)
        nvme_drv_queue_free(queue);
    return error;
}

static int add_queues(struct nvme_drv *nvme)
{
    uint16_t n = nvme->driver->params.n_queues;
    unsigned n_cpus = k_n_cpus(nvme->kernel);
    if (n == 0 || n > n_cpus)
        n = (uint16_t)(n_cpus < NVMED_QUEUES_MAX ? n_cpus : NVMED_QUEUES_MAX);
    int error = nvme_drv_set_queues(nvme, &n);
    if (error != 0)
        return error;
    nvme_drv_cmb_share(nvme, n);
    nvme->queue = k_zalloc(n * sizeof *nvme->queue);
    while (nvme->n_queues < n) {
        error = add_queue(nvme, nvme->n_queues);
        if (error != 0)
            break;
        nvme->n_queues++;
    }
    /* With fewer, CPUs share. */
    return error == -ENOSPC && nvme->n_queues > 0 ? 0 : error;
}

static void release(struct nvme_drv *nvme)
{
    for (uint16_t q = 0; q < nvme->n_queues; q++)
        nvme_drv_queue_free(&nvme->queue[q]);
    k_free(nvme->queue);
    nvme_drv_queue_free(&nvme->admin);
    nvme_drv_memory_free(nvme, &nvme->page);
    k_timer_release(&nvme->watch);
    nvme->queue = NULL;
    nvme->n_queues = 0;
    nvme->removed = true;
    if (nvme->n_opens == 0)
        k_free(nvme);
}

static int bring_up(struct nvme_drv *nvme)
{
    int error = read_capabilities(nvme);
    if (error == 0)
        error = disable(nvme);
    if (error == 0)
        error = nvme_drv_memory_alloc(nvme, &nvme->page, NVME_PAGE_BYTES);
    if (error == 0)
        error = nvme_drv_queue_alloc(nvme, &nvme->admin, 0, 0, NVMED_ADMIN_ENTRIES);
    if (error == 0)
        error = enable(nvme);
    if (error == 0)
        error = nvme_drv_identify(nvme);
    if (error == 0)
        error = add_queues(nvme);
    return error;
}

static int nvme_probe(struct k_pci_dev *pci, void *context)
{
    struct nvme_driver *driver = context;
    if (nvme_drv_is_offline_vf(pci, driver)) /* it is offered once more */
        return -ENODEV;
    k_pci_enable(pci);
    k_dma_set_mask(&pci->device, 64);
    if (pci->bar_bytes[0] < NVME_DOORBELL_SQ(2))
        return -ENODEV;
    struct nvme_drv *nvme = k_zalloc(sizeof *nvme);
    nvme->driver = driver;
    nvme->kernel = driver->kernel;
    nvme->costs = k_costs(driver->kernel);
    nvme->pci = pci;
    nvme->polled = driver->params.polled;
    nvme->admin.nvme = nvme;
    nvme->watch_work = (struct nvme_drv_work){ .work = { .fn = watch_work }, .nvme = nvme };
    k_timer_init(&nvme->watch, nvme->kernel, watch_fires);
    int error = bring_up(nvme);
    if (error != 0) {
        if (error != -ENODEV)
            disable(nvme);
        release(nvme);
        return error;
    }
    pci->device.driver_data = nvme;
    struct nvme_drv **link = &driver->first;
    while (*link != NULL)
        link = &(*link)->next;
    *link = nvme;
    return 0;
}

/* ---- Controllers go -------------------------------------------------------------------------- */

static void nvme_remove(struct k_pci_dev *pci, bool gone)
{
    struct nvme_drv *nvme = pci->device.driver_data;
    struct nvme_drv **link = &nvme->driver->first;
    nvme->gone |= gone;
    nvme_drv_vfs_disable(nvme);
    nvme->closing = true;
    k_timer_cancel(&nvme->watch);
    while (nvme->n_works > 0)
        k_sleep(nvme->kernel, DRAIN_PS);
    if (!nvme->gone)
        shut_down(nvme);
    nvme_drv_fail_all(nvme, -ENODEV);
    while (nvme->users > 0)
        k_sleep(nvme->kernel, DRAIN_PS);
    while (*link != nvme)
        link = &(*link)->next;
    *link = nvme->next;
    pci->device.driver_data = NULL;
    release(nvme);
}

/* ---- The driver ------------------------------------------------------------------------------ */

static const struct k_pci_id nvme_ids[] = {
    { NVME_VENDOR_INTEL, NVME_DEVICE_P4800X },
    { NVME_VENDOR_MICROSEMI, NVME_DEVICE_NVRAM },
    { NVME_VENDOR_SAMSUNG, NVME_DEVICE_PM1725A },
    { 0, 0 },
};

struct nvme_driver *nvme_driver_new(struct kernel *kernel, const struct nvme_driver_params *params)
{
    if (params->queue_entries < 2 || params->queue_entries > 4096 || params->timeout_ps == 0 ||
        params->n_queues > NVMED_QUEUES_MAX)
        return NULL;
    struct nvme_driver *driver = k_zalloc(sizeof *driver);
    driver->kernel = kernel;
    driver->params = *params;
    driver->pci = (struct k_pci_driver){ .name = "nvme",
                                         .ids = nvme_ids,
                                         .probe = nvme_probe,
                                         .remove = nvme_remove,
                                         .configure_vfs = nvme_drv_configure_vfs,
                                         .context = driver };
    return driver;
}

const struct k_pci_driver *nvme_driver_pci(const struct nvme_driver *driver)
{
    return &driver->pci;
}

void nvme_driver_free(struct nvme_driver *driver)
{
    k_free(driver);
}

struct nvme_drv *nvme_driver_device(const struct nvme_driver *driver, unsigned i)
{
    struct nvme_drv *nvme = driver->first;
    while (nvme != NULL && i-- > 0)
        nvme = nvme->next;
    return nvme;
}

struct nvme_drv *nvme_of(struct k_pci_dev *dev)
{
    return dev->driver != NULL && dev->driver->probe == nvme_probe ? dev->device.driver_data : NULL;
}

/* ---- Handles --------------------------------------------------------------------------------- */

struct nvme_drv *nvme_open(struct nvme_drv *nvme)
{
    nvme->n_opens++;
    return nvme;
}

void nvme_close(struct nvme_drv *nvme)
{
    if (nvme != NULL && --nvme->n_opens == 0 && nvme->removed)
        k_free(nvme);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

struct k_pci_dev *nvme_pci(const struct nvme_drv *nvme)
{
    return nvme->pci;
}

unsigned nvme_n_queues(const struct nvme_drv *nvme)
{
    return nvme->n_queues;
}

bool nvme_is_polled(const struct nvme_drv *nvme)
{
    return nvme->polled;
}

uint32_t nvme_n_namespaces(const struct nvme_drv *nvme)
{
    return nvme->n_namespaces;
}

uint64_t nvme_bytes(const struct nvme_drv *nvme, uint32_t nsid)
{
    if (nsid == 0 || nsid > nvme->n_namespaces)
        return 0;
    return nvme->namespace[nsid - 1].blocks << nvme->namespace[nsid - 1].block_log2;
}

uint32_t nvme_block_bytes(const struct nvme_drv *nvme, uint32_t nsid)
{
    if (nsid == 0 || nsid > nvme->n_namespaces)
        return 0;
    return 1u << nvme->namespace[nsid - 1].block_log2;
}

uint64_t nvme_request_bytes_max(const struct nvme_drv *nvme)
{
    return nvme->bytes_max;
}

struct nvme_driver_stats nvme_driver_stats(const struct nvme_drv *nvme)
{
    return nvme->stats;
}
