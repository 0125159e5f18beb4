/*
 * Completion and event queues of an RDMA adapter.
 *
 * What it does: Polls completion queues, arms them; an event queue with an interrupt per CPU, whose
 *   handler calls those of completion queues.
 * Leaves out: moderation, resizing.
 * Follows: IBTA 11.4.2; Linux 5.4, drivers/infiniband/hw/mlx5/cq.c.
 * Costs: rdma_poll_cycles per call, rdma_complete_cycles per completion, the cache lines of
 *   entries, a store of the doorbell record per call that found something.
 */
#include <errno.h>

#include "logic/rdma/rdma_internal.h"

#define NUMBER_MASK 0xffffffu

/* The owner bit that an entry has in this pass over the ring. */
static uint8_t owner_at(uint32_t consumer, unsigned log)
{
    return (uint8_t)(RDMA_CQE_WRITTEN | (~(consumer >> log) & 1u));
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void take_event(struct rdma_drv *rdma, const struct rdma_eqe *eqe)
{
    if (eqe->type != RDMA_EVENT_COMPLETION) {
        if (eqe->type == RDMA_EVENT_QP_FATAL && eqe->number < rdma->n_qps &&
            rdma->qp[eqe->number] != NULL)
            rdma_drv_qp_failed(rdma->qp[eqe->number]);
        if (rdma->on_event != NULL)
            rdma->on_event(rdma->event_context, (enum rdma_event)eqe->type, eqe->number);
        return;
    }
    struct rdma_drv_cq *cq = eqe->number < rdma->n_cqs ? rdma->cq[eqe->number] : NULL;
    if (cq == NULL)
        return;
    cq->armed = false;
    if (cq->handler != NULL)
        cq->handler(cq->context);
}

static void interrupt(void *arg)
{
    struct rdma_drv_eq *eq = arg;
    struct rdma_drv *rdma = eq->rdma;
    struct rdma_eqe eqe;
    rdma->stats.interrupts++;
    for (;;) {
        const uint64_t slot = eq->consumer & ((1u << RDMA_DRV_EQ_LOG) - 1);
        k_load(rdma->kernel, kaddr_add(eq->ring.at, slot * sizeof eqe), &eqe, sizeof eqe);
        if (eqe.owner != owner_at(eq->consumer, RDMA_DRV_EQ_LOG))
            break;
        eq->consumer++;
        take_event(rdma, &eqe);
    }
    k_writel(rdma->pci, 0, RDMA_DOORBELL_EQ(eq->number), eq->consumer);
}

static int eq_make(struct rdma_drv *rdma, struct rdma_drv_eq *eq, uint32_t number)
{
    *eq = (struct rdma_drv_eq){ .rdma = rdma, .number = number };
    int error = rdma_drv_memory_alloc(rdma, &eq->ring, sizeof(struct rdma_eqe) << RDMA_DRV_EQ_LOG);
    if (error == 0)
        error = k_irq_request(rdma->pci, number, number, interrupt, eq, &eq->irq);
    if (error != 0)
        return error;
    struct rdma_command command = { .opcode = RDMA_CREATE_EQ,
                                    .number = number,
                                    .log_entries = RDMA_DRV_EQ_LOG,
                                    .target = number,
                                    .iova = eq->ring.dma };
    error = rdma_drv_command(rdma, &command);
    eq->made = error == 0;
    if (error == 0)
        k_writel(rdma->pci, 0, RDMA_DOORBELL_EQ(number), 0);
    return error;
}

static void eq_free(struct rdma_drv *rdma, struct rdma_drv_eq *eq)
{
    struct rdma_command command = { .opcode = RDMA_DESTROY_EQ, .number = eq->number };
    if (eq->made)
        rdma_drv_command(rdma, &command);
    if (eq->irq != NULL)
        k_irq_free(eq->irq);
    rdma_drv_memory_free(rdma, &eq->ring);
}

int rdma_drv_eqs_make(struct rdma_drv *rdma)
{
    int error = 0;
    while (error == 0 && rdma->n_eqs < k_n_cpus(rdma->kernel)) {
        error = eq_make(rdma, &rdma->eq[rdma->n_eqs], rdma->n_eqs);
        if (error != 0)
            eq_free(rdma, &rdma->eq[rdma->n_eqs]);
        else
            rdma->n_eqs++;
    }
    /* With fewer, CPUs share; the adapter says -EINVAL beyond its last one. */
    return (error == -ENOSPC || error == -EINVAL) && rdma->n_eqs > 0 ? 0 : error;
}

void rdma_drv_eqs_free(struct rdma_drv *rdma)
{
    while (rdma->n_eqs > 0)
        eq_free(rdma, &rdma->eq[--rdma->n_eqs]);
}

/* ---- Completion queues ----------------------------------------------------------------------- */

static void cq_release(struct rdma_drv_cq *cq)
{
    struct rdma_drv *rdma = cq->rdma;
    rdma_drv_memory_free(rdma, &cq->ring);
    rdma_drv_memory_free(rdma, &cq->record);
    rdma->n_objects--;
    k_free(cq);
}

int rdma_drv_cq_new(struct rdma_drv *rdma, uint32_t entries, unsigned cpu, rdma_drv_cq_fn *handler,
                    void *context, struct rdma_drv_cq **out)
{
    struct rdma_drv_cq *cq = k_zalloc(sizeof *cq);
    *cq = (struct rdma_drv_cq){ .rdma = rdma, .handler = handler, .context = context };
    rdma->n_objects++;
    while (cq->log < RDMA_RING_LOG_MAX && 1u << cq->log < entries)
        cq->log++;
    int error = 1u << cq->log < entries ? -EINVAL : 0;
    if (error == 0)
        error = rdma_drv_memory_alloc(rdma, &cq->ring, sizeof(struct rdma_cqe) << cq->log);
    if (error == 0)
        error = rdma_drv_memory_alloc(rdma, &cq->record, sizeof(uint32_t));
    if (error == 0) {
        struct rdma_command command = { .opcode = RDMA_CREATE_CQ,
                                        .log_entries = cq->log,
                                        .iova = cq->ring.dma,
                                        .record_iova = cq->record.dma,
                                        .target = cpu % rdma->n_eqs };
        error = rdma_drv_command(rdma, &command);
        cq->number = command.number;
    }
    if (error != 0) {
        cq_release(cq);
        return error;
    }
    rdma->cq[cq->number] = cq;
    *out = cq;
    return 0;
}

void rdma_drv_cq_free(struct rdma_drv_cq *cq)
{
    struct rdma_command command = { .opcode = RDMA_DESTROY_CQ, .number = cq->number };
    const int error = rdma_drv_command(cq->rdma, &command);
    if (error != 0 && error != -ENODEV)
        k_warn(cq->rdma->kernel, "rdma: a completion queue could not be destroyed (%d)", error);
    cq->rdma->cq[cq->number] = NULL;
    cq_release(cq);
}

static bool take(struct rdma_drv_cq *cq, struct rdma_drv_wc *wc)
{
    struct rdma_drv *rdma = cq->rdma;
    const uint64_t slot = cq->consumer & ((1u << cq->log) - 1);
    struct rdma_cqe cqe;
    k_load(rdma->kernel, kaddr_add(cq->ring.at, slot * sizeof cqe), &cqe, sizeof cqe);
    if (cqe.owner != owner_at(cq->consumer, cq->log))
        return false;
    cq->consumer++;
    k_compute(rdma->kernel, rdma->costs->rdma_complete_cycles);
    struct rdma_drv_qp *qp = cqe.qp < rdma->n_qps ? rdma->qp[cqe.qp] : NULL;
    wc->qp = qp;
    if (qp == NULL || !rdma_drv_qp_complete(qp, &cqe, wc)) {
        rdma->stats.stray++; /* of a queue pair that is gone */
        wc->qp = NULL;
        return true;
    }
    rdma->stats.completions++;
    rdma->stats.failed += wc->status != RDMA_SUCCESS;
    return true;
}

unsigned rdma_drv_poll(struct rdma_drv_cq *cq, struct rdma_drv_wc *wc, unsigned n)
{
    struct rdma_drv *rdma = cq->rdma;
    const uint32_t before = cq->consumer;
    unsigned n_taken = 0;
    k_compute(rdma->kernel, rdma->costs->rdma_poll_cycles);
    while (n_taken < n && take(cq, &wc[n_taken]))
        n_taken += wc[n_taken].qp != NULL;
    if (cq->consumer != before)
        k_store(rdma->kernel, cq->record.at, &cq->consumer, sizeof cq->consumer);
    for (uint32_t i = 0; rdma->gone && i < rdma->n_qps && n_taken < n; i++)
        while (n_taken < n && rdma->qp[i] != NULL &&
               rdma_drv_qp_flush(rdma->qp[i], cq, &wc[n_taken]))
            n_taken++;
    return n_taken;
}

/* Something is left to be flushed. */
static bool flushes(const struct rdma_drv_cq *cq)
{
    const struct rdma_drv *rdma = cq->rdma;
    bool any = false;
    for (uint32_t i = 0; i < rdma->n_qps && !any; i++)
        any = rdma->qp[i] != NULL && rdma_drv_qp_pending(rdma->qp[i], cq);
    return any;
}

void rdma_drv_arm(struct rdma_drv_cq *cq, bool solicited_only)
{
    const uint32_t value = (cq->consumer & NUMBER_MASK) |
                           (solicited_only ? RDMA_DOORBELL_CQ_SOLICITED : 0);
    cq->armed = true;
    if (!cq->rdma->gone)
        k_writel(cq->rdma->pci, 0, RDMA_DOORBELL_CQ(cq->number), value);
    else if (flushes(cq))
        rdma_drv_lost(cq->rdma);
}
