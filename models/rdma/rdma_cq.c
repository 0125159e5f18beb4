/*
 * Completion and event queues of rdma.adapter.
 *
 * Models: completions as 64-byte entries with an owner bit; the consumer index in a doorbell
 *   record, which is read when no room is known of; overrun, which ends the queue pairs that use
 *   the queue; arming, for all or only solicited completions and errors; event queues with MSI-X.
 * Does not model: moderation, resizing, compressed entries. An event without room in its queue is
 *   lost and counted.
 * Timing: an entry is a posted write behind the data of its message; an event follows it, then the
 *   interrupt's message. A doorbell record that has to be read takes a round trip.
 * Sources: IBTA 11.4.2 (completion queues, notification); docs/models/rdma.md.
 */
#include <string.h>

#include "models/rdma/rdma_internal.h"

#define OWNER(producer, log) ((uint8_t)(RDMA_CQE_WRITTEN | (~((producer) >> (log)) & 1u)))
#define INDEX_MASK           0xffffffu /* of the index in a doorbell */

/* ---- Entries --------------------------------------------------------------------------------- */

static void posted(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct rdma_post *post = SIM_CONTAINER(request, struct rdma_post, request);
    struct rdma *rdma = post->rdma;
    uint32_t *n_dma = post->n_dma;
    (void)status; /* without Bus Master Enable nobody is told */
    sim_pool_put(rdma->posts, post);
    if (--*n_dma == 0)
        rdma_command_quiet(rdma);
}

static struct rdma_post *post_new(struct rdma *rdma, uint32_t *n_dma, uint64_t bytes)
{
    struct rdma_post *post = sim_pool_get(rdma->posts);
    post->next = NULL;
    post->rdma = rdma;
    post->n_dma = n_dma;
    post->solicited = false;
    post->request =
        (struct pcie_dma_request){ .bytes = bytes, .buffer = post->bytes, .done = posted };
    return post;
}

static void post_write(struct rdma_post *post, uint64_t iova)
{
    post->request.iova.v = iova;
    ++*post->n_dma;
    pcie_dma_write(&post->rdma->function.dma, &post->request, rdma_now(post->rdma));
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void eq_interrupt(struct rdma *rdma, struct rdma_eq *eq)
{
    if (!eq->armed || eq->producer == eq->consumer)
        return;
    eq->armed = false;
    pcie_function_interrupt(&rdma->function, eq->vector);
}

static void eq_push(struct rdma *rdma, struct rdma_eq *eq, enum rdma_event type, uint32_t number)
{
    struct rdma_eqe eqe = { .type = (uint8_t)type,
                            .number = number,
                            .owner = OWNER(eq->producer, eq->log) };
    if (eq->producer - eq->consumer >= 1u << eq->log) {
        rdma->stats.lost_events++;
        return;
    }
    struct rdma_post *post = post_new(rdma, &eq->n_dma, sizeof(eqe));
    memcpy(post->bytes, &eqe, sizeof(eqe));
    const uint64_t slot = eq->producer++ & ((1u << eq->log) - 1);
    rdma->stats.events++;
    post_write(post, eq->iova + slot * sizeof(eqe));
    eq_interrupt(rdma, eq);
}

void rdma_event(struct rdma *rdma, enum rdma_event type, uint32_t number)
{
    if (rdma->eq[0].there)
        eq_push(rdma, &rdma->eq[0], type, number);
}

void rdma_eq_consume(struct rdma_eq *eq, struct rdma *rdma, uint32_t consumer)
{
    if (eq->producer - consumer > 1u << eq->log) {
        rdma->stats.bad_doorbells++;
        return;
    }
    eq->consumer = consumer;
    eq->armed = true;
    eq_interrupt(rdma, eq);
}

/* ---- Completions ----------------------------------------------------------------------------- */

/* Is there an entry of the kind that is asked for behind the place of the arming? Both are counted
 * back from the producer, which is less than 2^24 entries ahead of the consumer that armed. */
static void cq_notify(struct rdma_cq *cq)
{
    const uint32_t index = cq->solicited_only ? cq->solicited_at : cq->producer;
    if (!cq->armed || cq->producer - index >= cq->producer - cq->arm_at)
        return;
    cq->armed = false;
    eq_push(cq->rdma, cq->eq, RDMA_EVENT_COMPLETION, cq->number);
}

void rdma_cq_arm(struct rdma_cq *cq, uint32_t value)
{
    cq->armed = true;
    cq->solicited_only = (value & RDMA_DOORBELL_CQ_SOLICITED) != 0;
    cq->arm_at = cq->producer - ((cq->producer - value) & INDEX_MASK);
    cq_notify(cq);
}

static bool has_room(const struct rdma_cq *cq)
{
    return cq->producer - cq->consumer < 1u << cq->log;
}

static void cq_write(struct rdma_cq *cq, struct rdma_post *post)
{
    struct rdma_cqe *cqe = (void *)post->bytes;
    const uint64_t slot = cq->producer & ((1u << cq->log) - 1);
    cqe->owner = OWNER(cq->producer, cq->log);
    cq->producer++;
    if (post->solicited)
        cq->solicited_at = cq->producer;
    else if (cq->producer - cq->solicited_at > INDEX_MASK) /* longer ago than any arming */
        cq->solicited_at = cq->producer - INDEX_MASK;
    cq->rdma->stats.cqes++;
    cq->rdma->stats.error_cqes += cqe->status != RDMA_SUCCESS;
    post_write(post, cq->iova + slot * sizeof(*cqe));
    cq_notify(cq);
}

static void drop_waiting(struct rdma_cq *cq)
{
    while (cq->wait_head != NULL) {
        struct rdma_post *post = cq->wait_head;
        cq->wait_head = post->next;
        sim_pool_put(cq->rdma->posts, post);
    }
    cq->wait_tail = &cq->wait_head;
}

/* An entry was lost: no queue pair that uses the queue may go on. */
static void overrun(struct rdma_cq *cq)
{
    struct rdma *rdma = cq->rdma;
    cq->overrun = true;
    rdma->stats.cq_overruns++;
    drop_waiting(cq);
    rdma_event(rdma, RDMA_EVENT_CQ_OVERRUN, cq->number);
    for (uint32_t i = 0; i < rdma->params.n_qps; i++) {
        struct rdma_qp *qp = rdma_qp_find(rdma, i);
        if (qp != NULL && (qp->send_cq == cq || qp->receive_cq == cq))
            rdma_qp_error(qp, true);
    }
}

static void read_record(struct rdma_cq *cq);

static void record_read(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct rdma_cq *cq = SIM_CONTAINER(request, struct rdma_cq, read);
    cq->reading = false;
    if (--cq->n_dma == 0)
        rdma_command_quiet(cq->rdma);
    if (!cq->there || cq->wait_head == NULL)
        return;
    /* An index that the queue has not been at is none that software may have reached. */
    if (status == PCIE_DMA_OK && cq->producer - cq->record <= cq->producer - cq->consumer)
        cq->consumer = cq->record;
    if (!has_room(cq)) {
        overrun(cq);
        return;
    }
    while (cq->wait_head != NULL && has_room(cq)) {
        struct rdma_post *post = cq->wait_head;
        cq->wait_head = post->next;
        post->next = NULL;
        cq_write(cq, post);
    }
    if (cq->wait_head == NULL)
        cq->wait_tail = &cq->wait_head;
    else
        read_record(cq);
}

static void read_record(struct rdma_cq *cq)
{
    struct rdma *rdma = cq->rdma;
    if (cq->reading)
        return;
    cq->reading = true;
    cq->n_dma++;
    rdma->stats.record_reads++;
    cq->read = (struct pcie_dma_request){ .iova = { cq->record_iova },
                                          .bytes = sizeof(cq->record),
                                          .buffer = (uint8_t *)&cq->record,
                                          .independent = true,
                                          .done = record_read };
    pcie_dma_read(&rdma->function.dma, &cq->read, rdma_now(rdma));
}

void rdma_cq_push(struct rdma_cq *cq, const struct rdma_cqe *cqe, bool solicited)
{
    if (!cq->there || cq->overrun)
        return;
    struct rdma_post *post = post_new(cq->rdma, &cq->n_dma, sizeof(*cqe));
    memcpy(post->bytes, cqe, sizeof(*cqe));
    post->solicited = solicited || cqe->status != RDMA_SUCCESS;
    if (cq->wait_head == NULL && has_room(cq)) {
        cq_write(cq, post);
        return;
    }
    *cq->wait_tail = post;
    cq->wait_tail = &post->next;
    read_record(cq);
}

void rdma_cq_close(struct rdma_cq *cq)
{
    cq->there = cq->armed = false;
    drop_waiting(cq);
}
