/*
 * Queue pairs of rdma.adapter: their states.
 *
 * Models: RESET, INIT, RTR, RTS, SQD and ERR with the transitions between them; state ERR completes
 *   everything that is posted as flushed. A reliable connection is never in state SQE.
 * Does not model: unreliable and datagram services, migration of paths, shared receive queues.
 * Timing: a transition is in force when its command runs.
 * Sources: IBTA 10.3.1 (states, figure 121), 11.2.5 (attributes), 9.9.
 */
#include <string.h>

#include "models/rdma/rdma_internal.h"

/* ---- Life ------------------------------------------------------------------------------------ */

static struct rdma_qp *make(struct rdma *rdma, uint32_t number)
{
    struct rdma_qp *qp = sim_zalloc(1, sizeof(*qp));
    qp->rdma = rdma;
    qp->number = number;
    for (unsigned kind = 0; kind < 2; kind++)
        qp->tx_tail[kind] = &qp->tx_head[kind];
    qp->requests.tail = &qp->requests.head;
    qp->answers.tail = &qp->answers.head;
    qp->answer_tail = &qp->answer_head;
    rdma_requester_init(qp);
    return qp;
}

struct rdma_qp *rdma_qp_new(struct rdma *rdma)
{
    const uint32_t n = rdma->params.n_qps - RDMA_QP_FIRST;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t number = RDMA_QP_FIRST + (rdma->next_qp + i) % n;
        struct rdma_qp *qp = rdma->qp[number];
        if (qp == NULL)
            qp = rdma->qp[number] = make(rdma, number);
        if (qp->there || qp->n_under_way != 0)
            continue;
        rdma->next_qp = number - RDMA_QP_FIRST + 1; /* numbers are used again as late as possible */
        qp->there = true;
        qp->state = RDMA_QP_RESET;
        return qp;
    }
    return NULL;
}

void rdma_qp_ended(struct rdma_qp *qp)
{
    if (--qp->n_under_way == 0)
        rdma_command_quiet(qp->rdma);
}

static void sq_clear(struct rdma_sq *sq)
{
    sq->tail = sq->fetched = sq->asked = 0;
    sq->n_buffered = 0;
    sq->blueflame_mask = 0;
}

static void rq_clear(struct rdma_rq *rq)
{
    rq->posted = rq->fetched = rq->head = 0;
    rq->failed = rq->flush_again = false;
    rq->wanted = rq->read_wanted = rq->looked = false;
}

void rdma_qp_close(struct rdma_qp *qp)
{
    qp->state = RDMA_QP_RESET;
    qp->generation++;
    sim_cancel(qp->rdma->model->sim, &qp->timer);
    sim_cancel(qp->rdma->model->sim, &qp->rnr);
    rdma_fifo_drop(&qp->requests);
    rdma_fifo_drop(&qp->answers);
    rdma_offload_close(qp);
    rdma_requester_reset(qp);
    rdma_responder_reset(qp);
    sq_clear(&qp->sq);
    rq_clear(&qp->rq);
}

void rdma_qp_error(struct rdma_qp *qp, bool tell)
{
    static const struct rdma_cqe flushed = { .status = RDMA_FLUSHED };
    if (qp->state == RDMA_QP_RESET || qp->state == RDMA_QP_ERR)
        return;
    qp->state = RDMA_QP_ERR;
    qp->epoch++;
    if (tell)
        rdma_event(qp->rdma, RDMA_EVENT_QP_FATAL, qp->number);
    rdma_requester_flush(qp);
    rdma_sq_fetch(qp);
    if (qp->has_wqe)
        rdma_rq_complete(qp, &flushed, false);
    qp->has_wqe = false;
    qp->message = RDMA_MESSAGE_NONE;
    rdma_rq_flush(qp);
    rdma_responder_run(qp); /* what waited for a receive WQE is dropped */
    rdma_tx_want(qp);
}

/* ---- Transitions ----------------------------------------------------------------------------- */

static uint8_t to_init(struct rdma_qp *qp, const struct rdma_command *c)
{
    if (qp->state != RDMA_QP_RESET && qp->state != RDMA_QP_INIT)
        return RDMA_COMMAND_STATE;
    if ((c->access & ~RDMA_ACCESS_ALL) != 0)
        return RDMA_COMMAND_BAD;
    qp->access = c->access;
    qp->state = RDMA_QP_INIT;
    return RDMA_COMMAND_OK;
}

static uint8_t to_rtr(struct rdma_qp *qp, const struct rdma_command *c)
{
    const struct rdma_params *params = &qp->rdma->params;
    if (qp->state != RDMA_QP_INIT)
        return RDMA_COMMAND_STATE;
    if ((c->access & ~RDMA_ACCESS_ALL) != 0 || c->mtu < RDMA_MTU_CODE_MIN ||
        c->mtu > RDMA_MTU_CODE_MAX || RDMA_MTU_BYTES(c->mtu) > params->mtu_bytes || c->lid == 0 ||
        c->lid > RDMA_LID_LAST || c->destination_qp > RDMA_PSN_MASK ||
        c->receive_psn > RDMA_PSN_MASK || c->remote_reads > params->reads ||
        c->rnr_timer >= RDMA_RNR_TIMERS)
        return RDMA_COMMAND_BAD;
    qp->access = c->access;
    qp->mtu_bytes = RDMA_MTU_BYTES(c->mtu);
    qp->lid = c->lid;
    qp->destination = c->destination_qp;
    qp->expected_psn = c->receive_psn;
    qp->remote_reads_max = c->remote_reads;
    qp->rnr_timer = c->rnr_timer;
    qp->state = RDMA_QP_RTR;
    rdma_rq_look(qp);
    return RDMA_COMMAND_OK;
}

static uint8_t to_rts(struct rdma_qp *qp, const struct rdma_command *c)
{
    if (qp->state == RDMA_QP_SQD || qp->state == RDMA_QP_RTS) {
        qp->state = RDMA_QP_RTS;
        qp->drained_told = false;
        rdma_sq_fetch(qp);
        return RDMA_COMMAND_OK;
    }
    if (qp->state != RDMA_QP_RTR)
        return RDMA_COMMAND_STATE;
    if (c->send_psn > RDMA_PSN_MASK || c->timeout > RDMA_TIMEOUT_MAX ||
        c->retries > RDMA_RETRIES_MAX || c->rnr_retries > RDMA_RNR_RETRIES_ALWAYS ||
        c->reads > qp->rdma->params.reads)
        return RDMA_COMMAND_BAD;
    qp->next_psn = qp->unacked_psn = qp->sent_psn = c->send_psn;
    qp->timeout_ps = c->timeout == 0 ? 0 : (RDMA_TIMEOUT_UNIT_NS * SIM_PS_PER_NS) << c->timeout;
    qp->retries = qp->retries_max = c->retries;
    qp->rnr_retries = qp->rnr_retries_max = c->rnr_retries;
    qp->reads_max = c->reads;
    qp->state = RDMA_QP_RTS;
    return RDMA_COMMAND_OK;
}

static uint8_t to_sqd(struct rdma_qp *qp)
{
    if (qp->state != RDMA_QP_RTS)
        return RDMA_COMMAND_STATE;
    qp->state = RDMA_QP_SQD;
    rdma_requester_drained(qp);
    return RDMA_COMMAND_OK;
}

uint8_t rdma_qp_modify(struct rdma_qp *qp, const struct rdma_command *c)
{
    switch (c->state) {
    case RDMA_QP_RESET: rdma_qp_close(qp); return RDMA_COMMAND_OK;
    case RDMA_QP_INIT: return to_init(qp, c);
    case RDMA_QP_RTR: return to_rtr(qp, c);
    case RDMA_QP_RTS: return to_rts(qp, c);
    case RDMA_QP_SQD: return to_sqd(qp);
    case RDMA_QP_ERR:
        if (qp->state == RDMA_QP_RESET)
            return RDMA_COMMAND_STATE;
        rdma_qp_error(qp, false);
        return RDMA_COMMAND_OK;
    default: return RDMA_COMMAND_STATE;
    }
}
