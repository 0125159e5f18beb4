/*
 * The requester of a reliable connection: send WQEs to packets, answers to completions.
 *
 * Models: packet sequence numbers, packets of the path MTU, ACKs that stand for all before them,
 *   NAK and RNR NAK, going back to the oldest packet without an ACK after a NAK, a gap in the
 *   answers or a time-out, with retry counts; read and atomic requests, at most `reads` in flight,
 *   fences; completions in order; state SQD.
 * Does not model: end-to-end credits (the credit count of ACKs is invalid: RNR NAKs do their work),
 *   selective repetition, migration of paths.
 * Timing: see rdma_port.c. The local ACK timer runs 4.096 us x 2^timeout after the last packet that
 *   was sent or acknowledged; the specification allows up to four times that.
 * Sources: IBTA 9.7.3 (acknowledgement), 9.7.5 (responses), 9.7.6 (retries), 9.7.7 (reads,
 *   atomics), 9.9.2 (errors of the requester), 10.3.1 (states).
 */
#include <string.h>

#include "models/rdma/rdma_internal.h"

#define ACK_EVERY 64u /* packets of a long message ask for an ACK */

static const uint32_t rnr_timer_10us[RDMA_RNR_TIMERS] = RDMA_RNR_TIMERS_10US();

static bool is_read(const struct rdma_send *send)
{
    return send->opcode >= RDMA_OP_READ;
}

static uint32_t last_psn(const struct rdma_send *send)
{
    return rdma_psn_add(send->first_psn, send->n_psns - 1);
}

static enum rdma_status status_of(enum rdma_fault fault)
{
    return fault == RDMA_FAULT_BUS ? RDMA_LOCAL_QP : RDMA_LOCAL_PROTECTION;
}

/* ---- Life of a send -------------------------------------------------------------------------- */

static void send_free(struct rdma_qp *qp, struct rdma_send *send)
{
    if (send->n_tx == 0)
        sim_pool_put(qp->rdma->sends, send);
}

void rdma_send_unuse(struct rdma_qp *qp, struct rdma_send *send)
{
    send->n_tx--;
    if (send->ended)
        send_free(qp, send);
}

/* The oldest is complete. */
static void complete_head(struct rdma_qp *qp, enum rdma_status status)
{
    struct rdma_send *send = qp->send_head;
    qp->send_head = send->next;
    if (qp->send_head == NULL)
        qp->send_tail = &qp->send_head;
    if (qp->cursor == send) {
        qp->cursor = send->next;
        qp->cursor_psns = 0;
    }
    qp->n_sends--;
    qp->n_reads -= send->asked;
    if (send->slot != NULL)
        rdma_offload_slot_free(send->slot);
    if (!send->offloaded && (status != RDMA_SUCCESS || (send->flags & RDMA_WQE_COMPLETION) != 0)) {
        const bool data = status == RDMA_SUCCESS && is_read(send);
        const struct rdma_cqe cqe = { .qp = qp->number,
                                      .bytes = data ? send->bytes : 0,
                                      .wqe_index = send->index,
                                      .status = (uint8_t)status,
                                      .opcode = send->opcode };
        rdma_cq_push(qp->send_cq, &cqe, false);
    }
    send->ended = true;
    send_free(qp, send);
}

void rdma_requester_flush(struct rdma_qp *qp)
{
    while (qp->send_head != NULL)
        complete_head(qp, RDMA_FLUSHED);
}

/* The oldest has failed, and with it the queue pair. */
static void fail_head(struct rdma_qp *qp, enum rdma_status status)
{
    complete_head(qp, status);
    rdma_qp_error(qp, false);
}

/* One that could not be sent fails when all before it are complete. */
static bool head_fails(struct rdma_qp *qp)
{
    if (qp->send_head == NULL || qp->send_head->status == RDMA_SUCCESS)
        return false;
    fail_head(qp, (enum rdma_status)qp->send_head->status);
    return true;
}

void rdma_requester_add(struct rdma_qp *qp, struct rdma_send *send)
{
    const uint32_t n = (uint32_t)(((uint64_t)send->bytes + qp->mtu_bytes - 1) / qp->mtu_bytes);
    const bool one = n == 0 || send->opcode > RDMA_OP_READ || send->status != RDMA_SUCCESS;
    send->n_psns = one ? 1 : n;
    send->first_psn = qp->next_psn;
    if (qp->offload != NULL)
        rdma_offload_response(qp, send);
    *qp->send_tail = send;
    qp->send_tail = &send->next;
    qp->n_sends++;
    if (qp->state == RDMA_QP_ERR) {
        complete_head(qp, RDMA_FLUSHED);
        return;
    }
    qp->next_psn = rdma_psn_add(qp->next_psn, send->n_psns);
    if (qp->cursor == NULL)
        qp->cursor = send;
    if (!head_fails(qp))
        rdma_tx_want(qp);
}

void rdma_requester_reset(struct rdma_qp *qp)
{
    while (qp->send_head != NULL) {
        struct rdma_send *send = qp->send_head;
        qp->send_head = send->next;
        send->ended = true;
        send_free(qp, send);
    }
    qp->send_tail = &qp->send_head;
    qp->cursor = NULL;
    qp->n_sends = qp->n_reads = qp->cursor_psns = 0;
    qp->going_back = qp->drained_told = false;
    qp->rnr_until_ps = 0;
    qp->epoch++;
}

/* ---- Packets --------------------------------------------------------------------------------- */

static enum ib_opcode opcode_of(const struct rdma_send *send, uint32_t k)
{
    const bool first = k == 0, last = k + 1 == send->n_psns;
    const bool immediate = send->opcode == RDMA_OP_SEND_IMM || send->opcode == RDMA_OP_WRITE_IMM;
    const bool write = send->opcode == RDMA_OP_WRITE || send->opcode == RDMA_OP_WRITE_IMM;
    const enum ib_opcode base = write ? IB_WRITE_FIRST : IB_SEND_FIRST;
    switch (send->opcode) {
    case RDMA_OP_READ: return IB_READ_REQUEST;
    case RDMA_OP_COMPARE_SWAP: return IB_COMPARE_SWAP;
    case RDMA_OP_FETCH_ADD: return IB_FETCH_ADD;
    default: break;
    }
    if (first && last)
        return (enum ib_opcode)(base + (IB_SEND_ONLY - IB_SEND_FIRST) + immediate);
    if (last)
        return (enum ib_opcode)(base + (IB_SEND_LAST - IB_SEND_FIRST) + immediate);
    return first ? base : (enum ib_opcode)(base + (IB_SEND_MIDDLE - IB_SEND_FIRST));
}

/* The next packet may be made. */
static bool may_send(const struct rdma_qp *qp)
{
    const struct rdma_send *send = qp->cursor;
    if (send == NULL || send->status != RDMA_SUCCESS ||
        (qp->state != RDMA_QP_RTS && qp->state != RDMA_QP_SQD) ||
        rdma_now(qp->rdma) < qp->rnr_until_ps)
        return false;
    if ((send->flags & RDMA_WQE_FENCE) != 0 && qp->cursor_psns == 0 && qp->n_reads != 0)
        return false;
    if (is_read(send) && qp->n_reads >= qp->reads_max)
        return false;
    const uint32_t psn = rdma_psn_add(send->first_psn,
                                      is_read(send) ? send->n_psns - 1 : qp->cursor_psns);
    return rdma_psn_distance(qp->unacked_psn, psn) < RDMA_PSN_HALF; /* 9.7.2: half may be out */
}

/* What is left of a read, or an atomic. */
static void fill_read(struct rdma_qp *qp, struct rdma_send *send, struct ib_packet *packet)
{
    const uint64_t offset = (uint64_t)qp->cursor_psns * qp->mtu_bytes;
    packet->va = send->va + offset;
    packet->rkey = send->rkey;
    packet->dma_bytes = send->bytes - (uint32_t)offset;
    packet->swap_or_add = send->swap_or_add;
    packet->compare = send->compare;
    packet->ack_request = true;
    send->asked = true;
    qp->n_reads++;
    qp->cursor_psns = send->n_psns;
}

static void fill_data(struct rdma_qp *qp, struct rdma_send *send, struct rdma_tx *tx)
{
    struct ib_packet *packet = tx->packet;
    const uint32_t k = qp->cursor_psns++;
    const uint64_t offset = (uint64_t)k * qp->mtu_bytes;
    const bool last = k + 1 == send->n_psns;
    packet->bytes = (uint32_t)SIM_MIN(send->bytes - offset, qp->mtu_bytes);
    packet->ack_request = last || (k + 1) % ACK_EVERY == 0;
    packet->solicited = last && (send->flags & RDMA_WQE_SOLICITED) != 0;
    packet->immediate = send->immediate;
    packet->va = send->va;
    packet->rkey = send->rkey;
    packet->dma_bytes = send->bytes;
    if (send->inlined)
        memcpy(packet->payload, send->data + offset, packet->bytes);
    else
        tx->move = (struct rdma_move){
            .sge = send->sge, .n_sges = send->n_sges, .offset = offset, .bytes = packet->bytes
        };
}

struct rdma_tx *rdma_requester_next(struct rdma_qp *qp)
{
    if (!may_send(qp))
        return NULL;
    struct rdma_send *send = qp->cursor;
    const uint32_t k = qp->cursor_psns;
    struct rdma_tx *tx = rdma_tx_new(qp, opcode_of(send, k), rdma_psn_add(send->first_psn, k),
                                     false);
    tx->send = send;
    send->n_tx++;
    if (is_read(send))
        fill_read(qp, send, tx->packet);
    else
        fill_data(qp, send, tx);
    if (qp->cursor_psns == send->n_psns) {
        qp->cursor = send->next;
        qp->cursor_psns = 0;
    }
    return tx;
}

/* ---- Time-outs, going back ------------------------------------------------------------------- */

static void set_deadline(struct rdma_qp *qp)
{
    if (qp->timeout_ps == 0)
        return;
    qp->deadline_ps = rdma_now(qp->rdma) + qp->timeout_ps;
    if (!sim_event_pending(&qp->timer))
        sim_schedule(qp->rdma->model->sim, &qp->timer, qp->deadline_ps);
}

void rdma_requester_sent(struct rdma_qp *qp, const struct ib_packet *packet)
{
    uint32_t next = rdma_psn_add(packet->psn, 1);
    if (packet->opcode == IB_READ_REQUEST && packet->dma_bytes > qp->mtu_bytes)
        next = rdma_psn_add(packet->psn, (packet->dma_bytes - 1) / qp->mtu_bytes + 1);
    const uint32_t out = rdma_psn_distance(qp->unacked_psn, next);
    if (out <= RDMA_PSN_HALF && out > rdma_psn_distance(qp->unacked_psn, qp->sent_psn))
        qp->sent_psn = next;
    set_deadline(qp);
}

/* Sends again from the oldest packet without an ACK on. */
static void go_back(struct rdma_qp *qp)
{
    struct rdma_send *send = qp->send_head;
    qp->epoch++; /* packets that are being made are dropped */
    qp->going_back = true;
    qp->n_reads = 0;
    for (struct rdma_send *s = send; s != NULL; s = s->next)
        s->asked = false;
    qp->cursor = send;
    qp->cursor_psns = send != NULL ? rdma_psn_distance(send->first_psn, qp->unacked_psn) : 0;
    qp->deadline_ps = rdma_now(qp->rdma) + qp->timeout_ps;
    rdma_tx_want(qp);
}

static void retry(struct rdma_qp *qp)
{
    if (qp->retries == 0) {
        fail_head(qp, RDMA_RETRY_EXCEEDED);
        return;
    }
    qp->retries--;
    qp->rdma->stats.retries++;
    go_back(qp);
}

static bool is_outstanding(const struct rdma_qp *qp)
{
    return qp->send_head != NULL && qp->unacked_psn != qp->sent_psn;
}

static void timer_fires(struct sim *sim, struct sim_event *event)
{
    struct rdma_qp *qp = SIM_CONTAINER(event, struct rdma_qp, timer);
    if (!is_outstanding(qp) || (qp->state != RDMA_QP_RTS && qp->state != RDMA_QP_SQD))
        return;
    if (sim_now(sim) < qp->deadline_ps) {
        sim_schedule(sim, event, qp->deadline_ps);
        return;
    }
    qp->rdma->stats.timeouts++;
    retry(qp);
    if (is_outstanding(qp) && !sim_event_pending(event))
        sim_schedule(sim, event, qp->deadline_ps);
}

static void rnr_over(struct sim *sim, struct sim_event *event)
{
    struct rdma_qp *qp = SIM_CONTAINER(event, struct rdma_qp, rnr);
    if (sim_now(sim) < qp->rnr_until_ps)
        sim_schedule(sim, event, qp->rnr_until_ps);
    else
        rdma_tx_want(qp);
}

void rdma_requester_init(struct rdma_qp *qp)
{
    sim_event_init(&qp->timer, timer_fires);
    sim_event_init(&qp->rnr, rnr_over);
    rdma_requester_reset(qp);
}

void rdma_requester_fault(struct rdma_qp *qp, struct rdma_send *send, enum rdma_fault fault)
{
    if (send->ended || send->status != RDMA_SUCCESS || fault == RDMA_FAULT_CLOSED)
        return;
    send->status = (uint8_t)status_of(fault);
    if (!head_fails(qp))
        go_back(qp); /* as far as to this one */
}

void rdma_requester_drained(struct rdma_qp *qp)
{
    if (qp->state != RDMA_QP_SQD || qp->send_head != NULL || qp->drained_told)
        return;
    qp->drained_told = true;
    rdma_event(qp->rdma, RDMA_EVENT_SQ_DRAINED, qp->number);
}

/* ---- Answers --------------------------------------------------------------------------------- */

static void progress(struct rdma_qp *qp, uint32_t unacked)
{
    const uint32_t n = rdma_psn_distance(qp->unacked_psn, unacked);
    if (n == 0)
        return;
    if (n > rdma_psn_distance(qp->unacked_psn, qp->sent_psn))
        qp->sent_psn = unacked;
    qp->unacked_psn = unacked;
    if (qp->cursor != NULL && qp->cursor == qp->send_head) { /* what was sent before going back */
        const uint32_t done = rdma_psn_distance(qp->cursor->first_psn, unacked);
        qp->cursor_psns = SIM_MAX(qp->cursor_psns, SIM_MIN(done, qp->cursor->n_psns - 1));
    }
    qp->retries = qp->retries_max;
    qp->rnr_retries = qp->rnr_retries_max;
    qp->going_back = false;
    qp->deadline_ps = rdma_now(qp->rdma) + qp->timeout_ps;
}

/* Something was answered or completed: goes on. */
static void go_on(struct rdma_qp *qp)
{
    if (head_fails(qp))
        return;
    rdma_sq_fetch(qp);
    rdma_tx_want(qp);
    rdma_requester_drained(qp);
}

/* All before `psn` have arrived. False: an answer with data of one of them is missing, or the queue
 * pair has ended. What is under way, and the oldest message, can each be half of all numbers: which
 * is older is asked of the oldest without an ACK. */
static bool acknowledge(struct rdma_qp *qp, uint32_t psn)
{
    while (qp->send_head != NULL) {
        struct rdma_send *send = qp->send_head;
        const uint32_t ahead = rdma_psn_distance(qp->unacked_psn, psn);
        if (ahead == 0 || ahead > RDMA_PSN_HALF)
            return true;
        if (is_read(send)) /* what comes next of its data, and nothing else */
            return false;
        if (rdma_psn_distance(send->first_psn, psn) < send->n_psns) {
            progress(qp, psn);
            return true;
        }
        progress(qp, rdma_psn_add(send->first_psn, send->n_psns));
        complete_head(qp, RDMA_SUCCESS);
        if (qp->state == RDMA_QP_ERR)
            return false;
    }
    return true;
}

static void gap(struct rdma_qp *qp)
{
    if (!qp->going_back && qp->state != RDMA_QP_ERR)
        retry(qp);
}

static void take_rnr(struct rdma_qp *qp, unsigned timer)
{
    const sim_time wait_ps = rnr_timer_10us[timer % RDMA_RNR_TIMERS] * 10 * SIM_PS_PER_US;
    if (qp->rnr_retries == 0) {
        fail_head(qp, RDMA_RNR_RETRY_EXCEEDED);
        return;
    }
    if (qp->rnr_retries_max != RDMA_RNR_RETRIES_ALWAYS)
        qp->rnr_retries--;
    qp->rdma->stats.rnr_waits++;
    qp->rnr_until_ps = rdma_now(qp->rdma) + wait_ps;
    if (!sim_event_pending(&qp->rnr))
        sim_schedule(qp->rdma->model->sim, &qp->rnr, qp->rnr_until_ps);
    go_back(qp);
    qp->deadline_ps += wait_ps;
}

static void take_nak(struct rdma_qp *qp, unsigned code)
{
    switch (code) {
    case IB_NAK_SEQUENCE: retry(qp); break;
    case IB_NAK_INVALID: fail_head(qp, RDMA_REMOTE_INVALID); break;
    case IB_NAK_ACCESS: fail_head(qp, RDMA_REMOTE_ACCESS); break;
    default: fail_head(qp, RDMA_REMOTE_OPERATION); break;
    }
}

static void take_ack(struct rdma_qp *qp, const struct ib_packet *packet)
{
    const unsigned type = packet->syndrome & IB_SYNDROME_TYPE;
    const unsigned value = packet->syndrome & ~IB_SYNDROME_TYPE;
    /* An ACK stands for its packet, a NAK for those before it. */
    if (!acknowledge(qp, type == 0 ? rdma_psn_add(packet->psn, 1) : packet->psn)) {
        gap(qp);
        return;
    }
    if (type != 0 && qp->send_head != NULL && packet->psn == qp->unacked_psn) {
        if (type == IB_SYNDROME_RNR)
            take_rnr(qp, value);
        else
            take_nak(qp, value);
    }
    go_on(qp);
}

/* ---- Answers with data ----------------------------------------------------------------------- */

/* Bytes of the answer with the next sequence number. */
static uint32_t bytes_wanted(const struct rdma_qp *qp, const struct rdma_send *send)
{
    const uint64_t offset = (uint64_t)rdma_psn_distance(send->first_psn, qp->unacked_psn) *
                            qp->mtu_bytes;
    return (uint32_t)SIM_MIN(send->bytes - offset, qp->mtu_bytes);
}

static void data_issued(struct rdma_move *move)
{
    struct rdma_rx *rx = SIM_CONTAINER(move, struct rdma_rx, move);
    struct rdma_qp *qp = rx->qp;
    struct rdma_send *send = rx->send;
    const bool ended = send->ended; /* flushed meanwhile */
    const bool last = rx->packet->psn == last_psn(send);
    rdma_send_unuse(qp, send);
    if (rx->generation != qp->generation)
        return;
    qp->answers.busy = false;
    rdma_fifo_next(&qp->answers);
    if (!ended && move->fault != RDMA_FAULT_NONE) {
        fail_head(qp, status_of((enum rdma_fault)move->fault));
    } else if (!ended) {
        progress(qp, rdma_psn_add(qp->unacked_psn, 1));
        if (last)
            complete_head(qp, RDMA_SUCCESS);
        go_on(qp);
    }
    rdma_requester_run(qp);
}

static void data_ended(struct rdma_move *move)
{
    rdma_rx_free(SIM_CONTAINER(move, struct rdma_rx, move));
}

/* True: the packet is being stored, and will be freed. */
static bool take_data(struct rdma_qp *qp, struct rdma_rx *rx)
{
    struct ib_packet *packet = rx->packet;
    const bool atomic = packet->opcode == IB_ATOMIC_ACK;
    if (!acknowledge(qp, packet->psn) || qp->send_head == NULL || packet->psn != qp->unacked_psn) {
        gap(qp);
        return false;
    }
    struct rdma_send *send = qp->send_head;
    if (!is_read(send) || atomic != (send->opcode > RDMA_OP_READ) ||
        packet->bytes != (atomic ? 0 : bytes_wanted(qp, send))) {
        fail_head(qp, RDMA_BAD_RESPONSE);
        return false;
    }
    if (atomic) {
        memcpy(packet->payload, &packet->original, sizeof(packet->original));
        packet->bytes = sizeof(packet->original);
    }
    send->n_tx++; /* its segments stay until the data is stored */
    rx->send = send;
    rx->move = (struct rdma_move){
        .qp = qp,
        .sge = send->sge,
        .n_sges = send->n_sges,
        .offset = (uint64_t)rdma_psn_distance(send->first_psn, packet->psn) * qp->mtu_bytes,
        .bytes = packet->bytes,
        .access = RDMA_ACCESS_LOCAL_WRITE,
        .write = true,
        .buffer = packet->payload,
        .issued = data_issued,
        .ended = data_ended,
    };
    qp->answers.busy = true;
    rdma_move_start(&rx->move);
    return true;
}

static bool is_expected(const struct rdma_qp *qp, const struct ib_packet *packet)
{
    const uint32_t n_outstanding = rdma_psn_distance(qp->unacked_psn, qp->sent_psn);
    return (qp->state == RDMA_QP_RTS || qp->state == RDMA_QP_SQD) && qp->send_head != NULL &&
           (rdma_psn_distance(qp->unacked_psn, packet->psn) < n_outstanding);
}

void rdma_requester_run(struct rdma_qp *qp)
{
    if (qp->answers.running)
        return;
    qp->answers.running = true;
    while (!qp->answers.busy && qp->answers.head != NULL) {
        struct rdma_rx *rx = qp->answers.head;
        if (is_expected(qp, rx->packet)) {
            if (rx->packet->opcode != IB_ACK) {
                if (take_data(qp, rx))
                    continue;
            } else {
                take_ack(qp, rx->packet);
            }
        } else {
            qp->rdma->stats.duplicates++;
        }
        rdma_fifo_next(&qp->answers);
        rdma_rx_free(rx);
    }
    qp->answers.running = false;
}
