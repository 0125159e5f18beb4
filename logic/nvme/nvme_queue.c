/*
 * Queue pairs of the NVMe driver.
 *
 * What it does: Submits under a lock per queue, with PRP entries and lists over a contiguous
 *   buffer; finds completions by their phase, in the interrupt or by polling.
 * Leaves out: scattered buffers, metadata, more than one list per request.
 * Follows: NVM Express 1.3, section 4; Linux 4.14, drivers/nvme/host/pci.c.
 * Costs: nvme_submit_cycles and nvme_complete_cycles per request, nvme_irq_cycles per interrupt,
 *   the cache lines of entries (or a line written to the device: nvme_cmb.c), one doorbell per
 *   request and per batch of completions.
 */
#include <errno.h>

#include "logic/nvme/nvme_internal.h"

#define LOCK_CYCLES 50u

/* ---- Memory ---------------------------------------------------------------------------------- */

int nvme_drv_memory_alloc(struct nvme_drv *nvme, struct nvme_drv_memory *memory, size_t bytes)
{
    int error = k_dma_alloc(&nvme->pci->device, nvme->pci->device.node, bytes, &memory->at,
                            &memory->dma);
    memory->bytes = error == 0 ? bytes : 0;
    return error;
}

void nvme_drv_memory_free(struct nvme_drv *nvme, struct nvme_drv_memory *memory)
{
    if (memory->bytes != 0)
        k_dma_free(&nvme->pci->device, memory->bytes, memory->at, memory->dma);
    memory->bytes = 0;
}

/* A power of two, so that no list crosses a page. */
static size_t list_bytes(const struct nvme_drv *nvme)
{
    size_t bytes = 64;
    while (bytes < nvme->bytes_max / NVME_PAGE_BYTES * 8)
        bytes *= 2;
    return bytes;
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + K_PAGE_BYTES - 1) & ~(size_t)(K_PAGE_BYTES - 1);
}

int nvme_drv_queue_alloc(struct nvme_drv *nvme, struct nvme_drv_queue *queue, uint16_t number,
                         uint16_t cpu, uint16_t entries)
{
    *queue =
        (struct nvme_drv_queue){ .nvme = nvme, .number = number, .cpu = cpu, .entries = entries };
    int error = 0;
    if (!nvme_drv_cmb_place(queue))
        error = nvme_drv_memory_alloc(nvme, &queue->sq,
                                      whole_pages((size_t)entries * NVME_SQE_BYTES));
    if (error == 0)
        error = nvme_drv_memory_alloc(nvme, &queue->cq,
                                      whole_pages((size_t)entries * NVME_CQE_BYTES));
    if (error == 0 && number != 0)
        error = nvme_drv_memory_alloc(nvme, &queue->lists, whole_pages(entries * list_bytes(nvme)));
    if (error != 0) {
        nvme_drv_queue_free(queue);
        return error;
    }
    queue->slot = k_zalloc(entries * sizeof *queue->slot);
    queue->free_cid = k_zalloc(entries * sizeof *queue->free_cid);
    /* One entry stays empty, so that full differs from empty (4.1.2). */
    for (uint16_t i = (uint16_t)(entries - 1); i > 0; i--)
        queue->free_cid[queue->n_free++] = (uint16_t)(i - 1);
    nvme_drv_queue_clear(queue);
    return 0;
}

void nvme_drv_queue_free(struct nvme_drv_queue *queue)
{
    if (queue->irq != NULL)
        k_irq_free(queue->irq);
    nvme_drv_memory_free(queue->nvme, &queue->sq);
    nvme_drv_memory_free(queue->nvme, &queue->cq);
    nvme_drv_memory_free(queue->nvme, &queue->lists);
    k_free(queue->slot);
    k_free(queue->free_cid);
    queue->irq = NULL;
    queue->slot = NULL;
    queue->free_cid = NULL;
}

void nvme_drv_queue_clear(struct nvme_drv_queue *queue)
{
    static const struct nvme_cqe none = { 0 };
    queue->tail = queue->head = 0;
    queue->phase = 1;
    queue->made = false;
    for (uint16_t i = 0; i < queue->entries; i++)
        k_poke(queue->nvme->kernel, kaddr_add(queue->cq.at, (uint64_t)i * NVME_CQE_BYTES), &none,
               sizeof none);
}

/* ---- Submission ------------------------------------------------------------------------------ */

bool nvme_drv_queue_put(struct nvme_drv_queue *queue, const struct nvme_sqe *sqe,
                        struct nvme_request *request)
{
    struct nvme_drv *nvme = queue->nvme;
    while (queue->locked)
        k_compute(nvme->kernel, LOCK_CYCLES);
    bool alive = queue->made && !nvme->resetting && !nvme->gone;
    if (!alive)
        return false;
    queue->locked = true;
    if (request != NULL)
        queue->slot[sqe->cid] = request;
    uint16_t at = queue->tail;
    queue->tail = (uint16_t)((at + 1u) % queue->entries);
    if (queue->sq_cmb != 0)
        nvme_drv_cmb_put(queue, at, sqe);
    else
        k_store(nvme->kernel, kaddr_add(queue->sq.at, (uint64_t)at * NVME_SQE_BYTES), sqe,
                sizeof *sqe);
    /* It may have been reset meanwhile, and the request have ended. */
    if (queue->made)
        k_writel(nvme->pci, 0, NVME_DOORBELL_SQ(queue->number), queue->tail);
    queue->locked = false;
    return true;
}

/* PRP entries of a buffer that is contiguous for the device; lists go into the identifier's own. */
static void put_prps(struct nvme_drv_queue *queue, struct nvme_sqe *sqe, uint64_t dma,
                     uint64_t bytes)
{
    struct nvme_drv *nvme = queue->nvme;
    uint64_t entry[NVME_PAGE_BYTES / 8], first = NVME_PAGE_BYTES - dma % NVME_PAGE_BYTES;
    unsigned n = 0;
    sqe->prp1 = dma;
    if (bytes <= first)
        return;
    if (bytes - first <= NVME_PAGE_BYTES) {
        sqe->prp2 = dma + first;
        return;
    }
    for (uint64_t at = first; at < bytes; at += NVME_PAGE_BYTES)
        entry[n++] = dma + at;
    uint64_t offset = (uint64_t)sqe->cid * list_bytes(nvme);
    k_store(nvme->kernel, kaddr_add(queue->lists.at, offset), entry, n * sizeof entry[0]);
    sqe->prp2 = queue->lists.dma + offset;
}

static bool valid(const struct nvme_drv *nvme, const struct nvme_request *request)
{
    if (request->nsid == 0 || request->nsid > nvme->n_namespaces)
        return false;
    const struct nvme_drv_namespace *namespace = &nvme->namespace[request->nsid - 1];
    uint64_t mask = (UINT64_C(1) << namespace->block_log2) - 1;
    uint64_t bytes = namespace->blocks << namespace->block_log2;
    return request->bytes != 0 && ((request->offset | request->bytes) & mask) == 0 &&
           request->bytes <= nvme->bytes_max && request->buffer.v % 4 == 0 &&
           request->offset < bytes && request->bytes <= bytes - request->offset;
}

static enum k_dma_direction direction_of(const struct nvme_request *request)
{
    return request->write ? K_DMA_TO_DEVICE : K_DMA_FROM_DEVICE;
}

static void release(struct nvme_drv_queue *queue, uint16_t cid)
{
    queue->slot[cid] = NULL;
    queue->free_cid[queue->n_free++] = cid;
    if (k_has_waiters(&queue->room))
        k_wake(queue->nvme->kernel, &queue->room);
}

static int submit(struct nvme_drv_queue *queue, struct nvme_request *request)
{
    struct nvme_drv *nvme = queue->nvme;
    const struct nvme_drv_namespace *namespace = &nvme->namespace[request->nsid - 1];
    uint64_t block = request->offset >> namespace->block_log2;
    if (queue->n_free == 0)
        return -EBUSY;
    struct nvme_sqe sqe = { .opcode = request->write ? NVME_WRITE : NVME_READ,
                            .cid = queue->free_cid[--queue->n_free],
                            .nsid = request->nsid,
                            .cdw10 = (uint32_t)block,
                            .cdw11 = (uint32_t)(block >> 32) };
    sqe.cdw12 = (uint32_t)(request->bytes >> namespace->block_log2) - 1;
    k_compute(nvme->kernel, nvme->costs->nvme_submit_cycles);
    int error = k_dma_map(&nvme->pci->device, request->buffer, request->bytes,
                          direction_of(request), &request->dma);
    if (error == 0) {
        put_prps(queue, &sqe, request->dma, request->bytes);
        request->deadline_ps = k_now_ps(nvme->kernel) + nvme->driver->params.timeout_ps;
        if (nvme_drv_queue_put(queue, &sqe, request)) {
            nvme->stats.requests++;
            return 0;
        }
        k_dma_unmap(&nvme->pci->device, request->dma, request->bytes, direction_of(request));
        error = nvme->gone ? -ENODEV : -EAGAIN;
    }
    release(queue, sqe.cid);
    return error;
}

int nvme_submit(struct nvme_drv *nvme, struct nvme_request *request)
{
    if (nvme->gone || nvme->closing)
        return -ENODEV;
    if (nvme->resetting)
        return -EAGAIN;
    if (!valid(nvme, request))
        return -EINVAL;
    nvme->users++;
    nvme->stats.outstanding++;
    nvme_drv_watch(nvme);
    int error = submit(&nvme->queue[k_cpu(nvme->kernel) % nvme->n_queues], request);
    nvme->stats.outstanding -= error != 0;
    nvme->users--;
    return error;
}

/* ---- Completion ------------------------------------------------------------------------------ */

bool nvme_drv_queue_take(struct nvme_drv_queue *queue, struct nvme_cqe *cqe)
{
    if (!queue->made)
        return false;
    k_load(queue->nvme->kernel, kaddr_add(queue->cq.at, (uint64_t)queue->head * NVME_CQE_BYTES),
           cqe, sizeof *cqe);
    if (!queue->made || (cqe->status & NVME_CQE_PHASE) != queue->phase)
        return false;
    queue->head = (uint16_t)((queue->head + 1u) % queue->entries);
    if (queue->head == 0)
        queue->phase ^= 1;
    return true;
}

void nvme_drv_queue_ring_cq(const struct nvme_drv_queue *queue)
{
    k_writel(queue->nvme->pci, 0, NVME_DOORBELL_CQ(queue->number), queue->head);
}

static void end_request(struct nvme_drv_queue *queue, uint16_t cid, int status)
{
    struct nvme_drv *nvme = queue->nvme;
    struct nvme_request *request = queue->slot[cid];
    release(queue, cid);
    nvme->stats.outstanding--;
    nvme->stats.completions++;
    nvme->stats.errors += status != 0;
    k_dma_unmap(&nvme->pci->device, request->dma, request->bytes, direction_of(request));
    request->done(request, status);
}

static void take_completion(struct nvme_drv_queue *queue, const struct nvme_cqe *cqe)
{
    struct nvme_drv *nvme = queue->nvme;
    if (cqe->cid >= queue->entries || queue->slot[cqe->cid] == NULL) {
        k_warn(nvme->kernel, "nvme: completion of a command that was not given (%u)", cqe->cid);
        return;
    }
    if (cqe->status >> 1 != NVME_SC_SUCCESS)
        k_warn(nvme->kernel, "nvme: a request ended with status %#x", cqe->status >> 1);
    k_compute(nvme->kernel, nvme->costs->nvme_complete_cycles);
    end_request(queue, cqe->cid, cqe->status >> 1 == NVME_SC_SUCCESS ? 0 : -EIO);
}

unsigned nvme_drv_process(struct nvme_drv_queue *queue)
{
    struct nvme_cqe cqe;
    unsigned n = 0, batch;
    queue->again = true;
    if (queue->processing) /* that one sees it */
        return 0;
    queue->processing = true;
    while (queue->again) {
        queue->again = false;
        for (batch = 0; nvme_drv_queue_take(queue, &cqe); batch++)
            take_completion(queue, &cqe);
        if (batch != 0 && queue->made)
            nvme_drv_queue_ring_cq(queue);
        n += batch;
    }
    queue->processing = false;
    return n;
}

void nvme_drv_interrupt(void *arg)
{
    struct nvme_drv_queue *queue = arg;
    k_compute(queue->nvme->kernel, queue->nvme->costs->nvme_irq_cycles);
    queue->nvme->stats.interrupts++;
    nvme_drv_process(queue);
}

unsigned nvme_poll(struct nvme_drv *nvme)
{
    if (nvme->gone || nvme->closing || nvme->resetting)
        return 0;
    nvme->users++;
    unsigned n = nvme_drv_process(&nvme->queue[k_cpu(nvme->kernel) % nvme->n_queues]);
    nvme->users--;
    return n;
}

void nvme_drv_fail_all(struct nvme_drv *nvme, int status)
{
    for (uint16_t q = 0; q < nvme->n_queues; q++) {
        struct nvme_drv_queue *queue = &nvme->queue[q];
        queue->made = false;
        while (queue->locked || queue->processing)
            k_compute(nvme->kernel, LOCK_CYCLES);
        for (uint16_t cid = 0; cid < queue->entries; cid++)
            if (queue->slot[cid] != NULL)
                end_request(queue, cid, status);
    }
}
