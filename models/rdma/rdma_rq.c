/*
 * Receive queues of rdma.adapter.
 *
 * Models: WQEs read ahead into the adapter, as far as the doorbell record says they are posted; the
 *   record is read again when few are left on the adapter and none are known of beyond; a queue
 *   that the record says is empty; flushing.
 * Does not model: shared receive queues.
 * Timing: reading ahead happens beside the messages; a message that finds no WQE on the adapter
 *   waits for the reads of the record and of WQEs.
 * Sources: IBTA 10.7, 11.4.1.2; docs/models/rdma.md.
 */
#include <string.h>

#include "models/rdma/rdma_internal.h"

static uint32_t ready(const struct rdma_rq *rq)
{
    return rq->fetched - rq->head;
}

/* ---- WQEs ------------------------------------------------------------------------------------ */

static void parse(const uint8_t *bytes, uint32_t n_segments, struct rdma_receive_wqe *wqe)
{
    uint64_t total = 0;
    wqe->n_sges = 0;
    for (uint32_t i = 0; i < n_segments; i++) {
        struct rdma_wqe_data data;
        memcpy(&data, bytes + i * sizeof(data), sizeof(data));
        if (data.lkey == RDMA_KEY_NONE)
            break;
        wqe->sge[wqe->n_sges++] =
            (struct rdma_sge){ .bytes = data.bytes, .key = data.lkey, .va = data.va };
        total += data.bytes;
    }
    wqe->bytes = (uint32_t)SIM_MIN(total, RDMA_MESSAGE_MAX);
}

static void fetched(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct rdma_qp *qp = SIM_CONTAINER(request, struct rdma_qp, rq.request);
    struct rdma_rq *rq = &qp->rq;
    const uint32_t entry_bytes = 16u << rq->entry_log;
    rq->fetching = false;
    if (rq->generation == qp->generation && qp->state != RDMA_QP_ERR) {
        rq->failed |= status != PCIE_DMA_OK;
        for (uint32_t i = 0; i < rq->n_fetch && !rq->failed; i++)
            parse(rq->buffer + (size_t)i * entry_bytes, 1u << rq->entry_log,
                  &rq->wqe[rq->fetched++ % qp->rdma->params.prefetch_wqes]);
        rdma_rq_prefetch(qp);
        rdma_responder_run(qp);
    }
    rdma_qp_ended(qp);
}

static void fetch(struct rdma_qp *qp)
{
    struct rdma *rdma = qp->rdma;
    struct rdma_rq *rq = &qp->rq;
    const uint32_t at = rq->fetched & ((1u << rq->log) - 1), entry_bytes = 16u << rq->entry_log;
    uint32_t n = SIM_MIN(rq->posted - rq->fetched, rdma->params.prefetch_wqes - ready(rq));
    n = SIM_MIN(n, (1u << rq->log) - at);
    rq->n_fetch = n;
    rq->fetching = true;
    rq->generation = qp->generation;
    qp->n_under_way++;
    rdma->stats.receive_fetches++;
    rq->request = (struct pcie_dma_request){ .iova = { rq->iova + (uint64_t)at * entry_bytes },
                                             .bytes = (uint64_t)n * entry_bytes,
                                             .buffer = rq->buffer,
                                             .independent = true,
                                             .done = fetched };
    pcie_dma_read(&rdma->function.dma, &rq->request, rdma_now(rdma));
}

/* ---- The record ------------------------------------------------------------------------------ */

static void flush_posted(struct rdma_qp *qp)
{
    static const struct rdma_cqe flushed = { .status = RDMA_FLUSHED };
    struct rdma_rq *rq = &qp->rq;
    while (rq->head != rq->posted) {
        qp->wqe_index = rq->head++;
        rdma_rq_complete(qp, &flushed, false);
    }
    rq->fetched = rq->posted;
    if (rq->flush_again) {
        rq->flush_again = false;
        rdma_rq_flush(qp);
    }
}

static void read_record(struct rdma_qp *qp);

/* A message found the queue empty by what was known when it came. */
static void look_for_message(struct rdma_qp *qp)
{
    struct rdma_rq *rq = &qp->rq;
    if (rq->wanted && !rq->read_wanted && rq->posted == rq->fetched && !rq->failed) {
        read_record(qp); /* the one that has ended began before the message came */
        return;
    }
    rq->looked = rq->read_wanted;
    rdma_rq_prefetch(qp);
    rdma_responder_run(qp);
}

static void record_read(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct rdma_qp *qp = SIM_CONTAINER(request, struct rdma_qp, rq.record_request);
    struct rdma_rq *rq = &qp->rq;
    rq->reading = false;
    if (rq->record_generation == qp->generation) {
        rq->failed |= status != PCIE_DMA_OK;
        /* More than the ring has cannot be posted. */
        if (status == PCIE_DMA_OK && rq->record - rq->head <= 1u << rq->log &&
            rq->record - rq->posted <= 1u << rq->log)
            rq->posted = rq->record;
        if (qp->state == RDMA_QP_ERR)
            flush_posted(qp);
        else
            look_for_message(qp);
    }
    rdma_qp_ended(qp);
}

static void read_record(struct rdma_qp *qp)
{
    struct rdma *rdma = qp->rdma;
    struct rdma_rq *rq = &qp->rq;
    rq->reading = true;
    rq->read_wanted = rq->wanted;
    rq->record_generation = qp->generation;
    qp->n_under_way++;
    rdma->stats.record_reads++;
    rq->record_request = (struct pcie_dma_request){ .iova = { rq->record_iova },
                                                    .bytes = sizeof(rq->record),
                                                    .buffer = (uint8_t *)&rq->record,
                                                    .independent = true,
                                                    .done = record_read };
    pcie_dma_read(&rdma->function.dma, &rq->record_request, rdma_now(rdma));
}

void rdma_rq_prefetch(struct rdma_qp *qp)
{
    struct rdma_rq *rq = &qp->rq;
    const uint32_t few = qp->rdma->params.prefetch_wqes / 2;
    if (!rq->failed && !rq->fetching && rq->posted != rq->fetched && ready(rq) <= few)
        fetch(qp);
}

void rdma_rq_look(struct rdma_qp *qp)
{
    struct rdma_rq *rq = &qp->rq;
    rdma_rq_prefetch(qp);
    if (!rq->failed && !rq->reading && rq->posted == rq->fetched)
        read_record(qp);
}

/* ---- Taking ---------------------------------------------------------------------------------- */

enum rdma_rq_answer rdma_rq_take(struct rdma_qp *qp)
{
    struct rdma_rq *rq = &qp->rq;
    if (ready(rq) != 0) {
        qp->wqe = rq->wqe[rq->head % qp->rdma->params.prefetch_wqes];
        qp->wqe_index = rq->head++;
        qp->rdma->stats.receive_wqes++;
        rq->wanted = rq->looked = false;
        if (ready(rq) <= qp->rdma->params.prefetch_wqes / 2)
            rdma_rq_look(qp);
        return RDMA_RQ_TAKEN;
    }
    if (rq->failed)
        return RDMA_RQ_FAILED;
    if (rq->posted == rq->fetched && rq->looked) {
        rq->wanted = rq->looked = false; /* the next message looks again */
        return RDMA_RQ_EMPTY;
    }
    rq->wanted = true;
    rdma_rq_look(qp);
    return RDMA_RQ_WAIT;
}

void rdma_rq_complete(struct rdma_qp *qp, const struct rdma_cqe *rest, bool solicited)
{
    struct rdma_cqe cqe = *rest;
    cqe.qp = qp->number;
    cqe.wqe_index = (uint16_t)qp->wqe_index;
    cqe.flags |= RDMA_CQE_RECEIVE;
    if (cqe.opcode == 0)
        cqe.opcode = RDMA_OP_SEND;
    rdma_cq_push(qp->receive_cq, &cqe, solicited);
}

void rdma_rq_flush(struct rdma_qp *qp)
{
    if (qp->rq.reading)
        qp->rq.flush_again = true; /* for what was posted since */
    else if (!qp->rq.failed)
        read_record(qp);
}
