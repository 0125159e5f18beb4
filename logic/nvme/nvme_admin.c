/*
 * Admin commands of the NVMe driver.
 *
 * What it does: Runs one command at a time and polls the completion queue, with growing sleeps;
 *   Identify, creation of queues, negotiation of their number.
 * Leaves out: admin interrupts, asynchronous events, log pages.
 * Follows: NVM Express 1.3, section 5.
 * Costs: The time of the device, rounded up to the end of a sleep of 1, 2, 4 .. 32 us.
 */
#include <errno.h>
#include <string.h>

#include "logic/nvme/nvme_internal.h"

#define SLEEP_MIN_PS K_US
#define SLEEP_MAX_PS (32 * K_US)
#define TIMEOUT_PS   (200 * K_MS) /* more than a completion time-out */
#define PROBE_PS     K_MS         /* period of checks whether the controller answers */

static int wait_for(struct nvme_drv *nvme, struct nvme_cqe *cqe)
{
    uint64_t start_ps = k_now_ps(nvme->kernel), probe_ps = start_ps + PROBE_PS;
    uint64_t sleep_ps = SLEEP_MIN_PS;
    while (!nvme_drv_queue_take(&nvme->admin, cqe)) {
        uint64_t now_ps = k_now_ps(nvme->kernel);
        if (nvme->gone)
            return -ENODEV;
        if (now_ps >= probe_ps && nvme_drv_absent(nvme))
            return -ENODEV;
        if (now_ps >= start_ps + TIMEOUT_PS)
            return -ETIMEDOUT;
        if (now_ps >= probe_ps)
            probe_ps = now_ps + PROBE_PS;
        k_sleep(nvme->kernel, sleep_ps);
        if (sleep_ps < SLEEP_MAX_PS)
            sleep_ps *= 2;
    }
    nvme_drv_queue_ring_cq(&nvme->admin);
    return 0;
}

static int execute(struct nvme_drv *nvme, struct nvme_sqe *sqe, uint32_t *result)
{
    struct nvme_cqe cqe;
    sqe->cid = nvme->admin.tail;
    if (!nvme_drv_queue_put(&nvme->admin, sqe, NULL))
        return -ENODEV;
    int error = wait_for(nvme, &cqe);
    if (error != 0) {
        if (error == -ETIMEDOUT)
            k_warn(nvme->kernel, "nvme: admin command %u was never answered", sqe->opcode);
        nvme->gone = true; /* it may still write: the queue is of no use any more */
        return error;
    }
    if (result != NULL)
        *result = cqe.result;
    if (cqe.status >> 1 != NVME_SC_SUCCESS) {
        k_warn(nvme->kernel, "nvme: admin command %u refused with status %#x", sqe->opcode,
               cqe.status >> 1);
        return -EIO;
    }
    return 0;
}

int nvme_drv_admin(struct nvme_drv *nvme, struct nvme_sqe *sqe, uint32_t *result)
{
    while (nvme->admin_busy)
        k_wait(nvme->kernel, &nvme->admin_wait, UINT64_MAX);
    nvme->admin_busy = true;
    int error = nvme->gone ? -ENODEV : execute(nvme, sqe, result);
    nvme->admin_busy = false;
    k_wake(nvme->kernel, &nvme->admin_wait);
    return error;
}

/* ---- What it is ------------------------------------------------------------------------------ */

int nvme_drv_identify_data(struct nvme_drv *nvme, uint32_t what, uint32_t nsid, uint8_t data[])
{
    struct nvme_sqe sqe = {
        .opcode = NVME_ADMIN_IDENTIFY, .nsid = nsid, .prp1 = nvme->page.dma, .cdw10 = what
    };
    int error = nvme_drv_admin(nvme, &sqe, NULL);
    if (error == 0)
        k_load(nvme->kernel, nvme->page.at, data, NVME_IDENTIFY_BYTES);
    return error;
}

static int identify_namespace(struct nvme_drv *nvme, uint32_t nsid, uint8_t data[])
{
    struct nvme_drv_namespace *namespace = &nvme->namespace[nsid - 1];
    int error = nvme_drv_identify_data(nvme, NVME_IDENTIFY_NAMESPACE, nsid, data);
    if (error != 0)
        return error;
    unsigned format = data[NVME_ID_NS_FLBAS] & 0xfu;
    uint32_t lbaf;
    memcpy(&namespace->blocks, &data[NVME_ID_NS_SIZE], sizeof namespace->blocks);
    memcpy(&lbaf, &data[NVME_ID_NS_LBAF0 + 4 * format], sizeof lbaf);
    namespace->block_log2 = (uint8_t)(lbaf >> 16);
    return namespace->block_log2 >= 9 && namespace->block_log2 <= 12 ? 0 : -ENODEV;
}

int nvme_drv_identify(struct nvme_drv *nvme)
{
    uint8_t data[NVME_IDENTIFY_BYTES];
    int error = nvme_drv_identify_data(nvme, NVME_IDENTIFY_CONTROLLER, 0, data);
    if (error != 0)
        return error;
    uint8_t mdts = data[NVME_ID_CTRL_MDTS];
    /* A list is one page at most. */
    nvme->bytes_max = (uint64_t)NVME_PAGE_BYTES * (NVME_PAGE_BYTES / 8);
    if (mdts != 0 && mdts < 9)
        nvme->bytes_max = (uint64_t)NVME_PAGE_BYTES << mdts;
    memcpy(&nvme->n_namespaces, &data[NVME_ID_CTRL_NN], sizeof nvme->n_namespaces);
    if (nvme->n_namespaces > NVMED_NAMESPACES_MAX)
        nvme->n_namespaces = NVMED_NAMESPACES_MAX;
    for (uint32_t i = 1; error == 0 && i <= nvme->n_namespaces; i++)
        error = identify_namespace(nvme, i, data);
    return error;
}

/* ---- Queues ---------------------------------------------------------------------------------- */

int nvme_drv_set_queues(struct nvme_drv *nvme, uint16_t *n)
{
    uint32_t wanted = *n - 1u, granted = 0;
    struct nvme_sqe sqe = { .opcode = NVME_ADMIN_SET_FEATURES,
                            .cdw10 = NVME_FEATURE_QUEUES,
                            .cdw11 = wanted << 16 | wanted };
    int error = nvme_drv_admin(nvme, &sqe, &granted);
    uint32_t sqs = (granted & 0xffffu) + 1, cqs = (granted >> 16) + 1;
    if (sqs < *n)
        *n = (uint16_t)sqs;
    if (cqs < *n)
        *n = (uint16_t)cqs;
    return error;
}

int nvme_drv_queue_make(struct nvme_drv_queue *queue)
{
    struct nvme_drv *nvme = queue->nvme;
    uint32_t size = (queue->entries - 1u) << 16;
    uint32_t interrupts = queue->irq != NULL ? NVME_CQ_INTERRUPTS : 0;
    struct nvme_sqe cq = { .opcode = NVME_ADMIN_CREATE_CQ,
                           .prp1 = queue->cq.dma,
                           .cdw10 = queue->number | size };
    struct nvme_sqe sq = { .opcode = NVME_ADMIN_CREATE_SQ,
                           .prp1 = queue->sq.dma,
                           .cdw10 = queue->number | size };
    cq.cdw11 = NVME_QUEUE_CONTIGUOUS | interrupts;
    if (interrupts != 0)
        cq.cdw11 |= (uint32_t)queue->vector << 16;
    sq.cdw11 = NVME_QUEUE_CONTIGUOUS | (uint32_t)queue->number << 16;
    int error = nvme_drv_admin(nvme, &cq, NULL);
    if (error == 0)
        error = nvme_drv_admin(nvme, &sq, NULL);
    queue->made = error == 0;
    return error;
}
