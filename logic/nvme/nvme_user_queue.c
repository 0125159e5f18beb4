/*
 * Queue pairs of NVMe as a process drives them that polls.
 *
 * What it does: Gives command identifiers from a stack, writes entries and PRP lists into memory of
 *   this host or through a window to that of another, rings doorbells; finds completions by their
 *   phase, in any order of their commands, and tells the device once per batch.
 * Leaves out: interrupts, locks, time-outs of commands (its users know how long they wait), SGLs
 *   and metadata unless the caller fills them in, PRP lists of more than one page.
 * Follows: NVM Express 1.3, sections 4.1 (queues), 4.3 (PRP), 4.6 (completions).
 * Costs: submit_cycles and complete_cycles per command, poll_cycles per look, the cache lines of
 *   entries (behind a window: a line written, and drained before the doorbell), one doorbell per
 *   batch.
 */
#include <errno.h>
#include <string.h>

#include "logic/nvme/nvme_user.h"

#define ENTRIES_MAX   4096u
#define LIST_PRPS_MAX (NVME_PAGE_BYTES / 8)

/* ---- Windows --------------------------------------------------------------------------------- */

static uint32_t bar_read32(void *context, uint64_t offset)
{
    struct k_pci_dev *dev = context;
    return (uint32_t)dev->ops->mmio_read(dev, offset, 4);
}

static uint64_t bar_read64(void *context, uint64_t offset)
{
    struct k_pci_dev *dev = context;
    return dev->ops->mmio_read(dev, offset, 8);
}

static void bar_write32(void *context, uint64_t offset, uint32_t value)
{
    struct k_pci_dev *dev = context;
    dev->ops->mmio_write(dev, offset, 4, value);
}

static void bar_write64(void *context, uint64_t offset, uint64_t value)
{
    struct k_pci_dev *dev = context;
    dev->ops->mmio_write(dev, offset, 8, value);
}

static void bar_write_lines(void *context, uint64_t offset, const void *from, size_t bytes)
{
    k_write_lines(context, offset, from, bytes);
}

static void bar_drain(void *context)
{
    k_write_drain(context);
}

struct nvme_user_window nvme_user_bar_window(struct k_pci_dev *dev, unsigned bar)
{
    static const struct nvme_user_window_ops ops = { bar_read32,  bar_read64,      bar_write32,
                                                     bar_write64, bar_write_lines, bar_drain };
    return (struct nvme_user_window){ &ops, dev, dev->bar_base[bar] };
}

/* Through a window, whole lines: `bytes` is a multiple of them. */
static void store(const struct nvme_user_qp *qp, const struct nvme_user_memory *memory,
                  uint64_t offset, const void *from, size_t bytes)
{
    const struct nvme_user_window *window = &memory->window;
    if (memory->at.v != 0)
        k_store(qp->params.kernel, kaddr_add(memory->at, offset), from, bytes);
    else
        window->ops->write_lines(window->context, window->base + offset, from, bytes);
}

static void drain(const struct nvme_user_memory *memory)
{
    const struct nvme_user_window *window = &memory->window;
    if (memory->at.v == 0 && window->ops->drain != NULL)
        window->ops->drain(window->context);
}

static void ring(const struct nvme_user_qp *qp, uint64_t doorbell, uint16_t value)
{
    const struct nvme_user_window *window = &qp->params.registers;
    window->ops->write32(window->context, doorbell, value);
}

/* ---- Life ------------------------------------------------------------------------------------ */

/* The CPU can write to it. */
static bool is_writable(const struct nvme_user_memory *memory, uint64_t align)
{
    const struct nvme_user_window *window = &memory->window;
    return memory->bus % align == 0 &&
           (memory->at.v != 0 || (window->ops != NULL && window->ops->write_lines != NULL &&
                                  window->base % K_LINE_BYTES == 0));
}

static bool are_valid(const struct nvme_user_qp_params *p)
{
    if (p->entries < 2 || p->entries > ENTRIES_MAX || p->id >= NVME_QUEUES_MAX)
        return false;
    if (p->registers.ops == NULL || p->doorbell_bytes % 4 != 0)
        return false;
    if (p->list_bytes != 0 &&
        (p->list_bytes < K_LINE_BYTES || p->list_bytes > NVME_PAGE_BYTES ||
         (p->list_bytes & (p->list_bytes - 1)) != 0 || !is_writable(&p->lists, p->list_bytes)))
        return false;
    return is_writable(&p->sq, NVME_PAGE_BYTES) && is_writable(&p->cq, NVME_PAGE_BYTES);
}

static void start_over(struct nvme_user_qp *qp)
{
    qp->tail = qp->rung = qp->head = 0;
    qp->phase = 1;
}

int nvme_user_qp_init(struct nvme_user_qp *qp, const struct nvme_user_qp_params *params)
{
    if (!are_valid(params))
        return -EINVAL;
    *qp = (struct nvme_user_qp){ .params = *params };
    const uint64_t stride = params->doorbell_bytes != 0 ? params->doorbell_bytes : 4;
    qp->sq_doorbell = params->registers.base + NVME_REG_DOORBELLS + 2 * params->id * stride;
    qp->cq_doorbell = qp->sq_doorbell + stride;
    qp->slot = k_zalloc(params->entries * sizeof *qp->slot);
    qp->free_cid = k_zalloc(params->entries * sizeof *qp->free_cid);
    /* One entry stays empty, so that full differs from empty (4.1.2). Low identifiers go first. */
    for (uint16_t i = (uint16_t)(params->entries - 1); i > 0; i--)
        qp->free_cid[qp->n_free++] = (uint16_t)(i - 1);
    start_over(qp);
    return 0;
}

void nvme_user_qp_release(struct nvme_user_qp *qp)
{
    k_free(qp->slot);
    k_free(qp->free_cid);
    qp->slot = NULL;
    qp->free_cid = NULL;
    qp->n_free = 0;
}

void nvme_user_qp_clear(struct nvme_user_qp *qp)
{
    static const uint8_t none[K_LINE_BYTES] = { 0 };
    const uint64_t bytes = (uint64_t)qp->params.entries * NVME_CQE_BYTES;
    for (uint64_t at = 0; at < bytes; at += sizeof none) /* the memory has whole pages */
        store(qp, &qp->params.cq, at, none, sizeof none);
    drain(&qp->params.cq);
    start_over(qp);
}

/* ---- Submission ------------------------------------------------------------------------------ */

/* The list's entries, behind the first page. Returns their number; -EINVAL: the pieces make no
 * list, or a longer one. */
static int list_of(const struct nvme_user_piece *piece, unsigned n, uint64_t entry[])
{
    unsigned n_entries = 0;
    if (piece[0].bus % 4 != 0)
        return -EINVAL;
    for (unsigned i = 0; i < n; i++) {
        const uint64_t end = piece[i].bus + piece[i].bytes;
        uint64_t at = piece[i].bus;
        if (piece[i].bytes == 0 || (i != 0 && at % NVME_PAGE_BYTES != 0) ||
            (i != n - 1 && end % NVME_PAGE_BYTES != 0))
            return -EINVAL;
        if (i == 0)
            at += NVME_PAGE_BYTES - at % NVME_PAGE_BYTES;
        for (; at < end; at += NVME_PAGE_BYTES) {
            if (n_entries == LIST_PRPS_MAX)
                return -EINVAL;
            entry[n_entries++] = at;
        }
    }
    return (int)n_entries;
}

static int put_prps(const struct nvme_user_qp *qp, struct nvme_sqe *sqe, uint16_t cid,
                    const struct nvme_user_piece *piece, unsigned n)
{
    uint64_t entry[LIST_PRPS_MAX];
    const int listed = list_of(piece, n, entry);
    if (listed < 0 || (listed > 1 && (uint32_t)listed * sizeof entry[0] > qp->params.list_bytes))
        return -EINVAL;
    sqe->prp1 = piece[0].bus;
    sqe->prp2 = listed == 1 ? entry[0] : 0;
    if (listed <= 1)
        return 0;
    const uint64_t offset = (uint64_t)cid * qp->params.list_bytes;
    size_t bytes = (size_t)listed * sizeof entry[0];
    if (qp->params.lists.at.v == 0 && bytes % K_LINE_BYTES != 0) {
        const size_t whole = (bytes / K_LINE_BYTES + 1) * K_LINE_BYTES;
        memset(&entry[listed], 0, whole - bytes);
        bytes = whole;
    }
    store(qp, &qp->params.lists, offset, entry, bytes);
    sqe->prp2 = qp->params.lists.bus + offset;
    return 0;
}

int nvme_user_qp_put(struct nvme_user_qp *qp, struct nvme_user_command *command,
                     const struct nvme_user_piece *piece, unsigned n)
{
    if (qp->n_free == 0)
        return -EBUSY;
    const uint16_t cid = qp->free_cid[qp->n_free - 1];
    k_compute(qp->params.kernel, qp->params.costs.submit_cycles);
    command->sqe.cid = cid;
    if (n != 0 && put_prps(qp, &command->sqe, cid, piece, n) != 0)
        return -EINVAL;
    qp->n_free--;
    qp->slot[cid] = command;
    store(qp, &qp->params.sq, (uint64_t)qp->tail * NVME_SQE_BYTES, &command->sqe,
          sizeof command->sqe);
    qp->tail = (uint16_t)(qp->tail + 1u == qp->params.entries ? 0 : qp->tail + 1u);
    qp->stats.submitted++;
    return 0;
}

void nvme_user_qp_ring(struct nvme_user_qp *qp)
{
    if (qp->rung == qp->tail)
        return;
    drain(&qp->params.sq);
    if (qp->params.list_bytes != 0)
        drain(&qp->params.lists);
    ring(qp, qp->sq_doorbell, qp->tail);
    qp->rung = qp->tail;
    qp->stats.sq_rings++;
}

int nvme_user_qp_submit(struct nvme_user_qp *qp, struct nvme_user_command *command,
                        const struct nvme_user_piece *piece, unsigned n)
{
    const int error = nvme_user_qp_put(qp, command, piece, n);
    if (error == 0)
        nvme_user_qp_ring(qp);
    return error;
}

/* ---- Completion ------------------------------------------------------------------------------ */

/* The entry at the head, if it is there. */
static bool look(const struct nvme_user_qp *qp, struct nvme_cqe *cqe)
{
    const struct nvme_user_memory *cq = &qp->params.cq;
    const uint64_t offset = (uint64_t)qp->head * NVME_CQE_BYTES;
    if (cq->at.v != 0) {
        k_load(qp->params.kernel, kaddr_add(cq->at, offset), cqe, sizeof *cqe);
        return (cqe->status & NVME_CQE_PHASE) == qp->phase;
    }
    const struct nvme_user_window *window = &cq->window;
    uint64_t half = window->ops->read64(window->context, window->base + offset + 8);
    memcpy((char *)cqe + 8, &half, sizeof half);
    if (half == UINT64_MAX || (cqe->status & NVME_CQE_PHASE) != qp->phase)
        return false; /* nobody answers: no completion has such identifiers */
    half = window->ops->read64(window->context, window->base + offset);
    memcpy(cqe, &half, sizeof half);
    return true;
}

static void end(struct nvme_user_qp *qp, uint16_t cid, uint16_t status, uint32_t result)
{
    struct nvme_user_command *command = qp->slot[cid];
    qp->slot[cid] = NULL;
    qp->free_cid[qp->n_free++] = cid;
    qp->stats.completed++;
    qp->stats.failed += status != NVME_SC_SUCCESS;
    command->status = status;
    command->result = result;
    command->done(command);
}

static void take(struct nvme_user_qp *qp, const struct nvme_cqe *cqe)
{
    qp->head = (uint16_t)(qp->head + 1u);
    if (qp->head == qp->params.entries) {
        qp->head = 0;
        qp->phase ^= 1;
    }
    if (cqe->cid >= qp->params.entries || qp->slot[cqe->cid] == NULL ||
        cqe->sq_id != qp->params.id) {
        qp->stats.stray++;
        k_warn(qp->params.kernel, "nvme: completion of a command that was not given (%u)",
               cqe->cid);
        return;
    }
    k_compute(qp->params.kernel, qp->params.costs.complete_cycles);
    end(qp, cqe->cid, (uint16_t)(cqe->status >> 1), cqe->result);
}

unsigned nvme_user_qp_poll(struct nvme_user_qp *qp, unsigned most)
{
    struct nvme_cqe cqe;
    unsigned n_taken = 0;
    if (qp->polling)
        return 0;
    qp->polling = true;
    k_compute(qp->params.kernel, qp->params.costs.poll_cycles);
    /* A controller that writes what it was not asked for must not keep us here. */
    while ((most == 0 || n_taken < most) && n_taken < qp->params.entries && look(qp, &cqe)) {
        take(qp, &cqe);
        n_taken++;
    }
    if (n_taken != 0) {
        ring(qp, qp->cq_doorbell, qp->head);
        qp->stats.cq_rings++;
    }
    qp->polling = false;
    return n_taken;
}

void nvme_user_qp_fail_all(struct nvme_user_qp *qp, uint16_t status)
{
    for (uint16_t cid = 0; cid < qp->params.entries; cid++)
        if (qp->slot[cid] != NULL)
            end(qp, cid, status, 0);
}
