/*
 * The responder of a reliable connection: requests to memory, completions and answers.
 *
 * Models: sequence numbers, sequence and length of a message's packets, receive WQEs with scatter
 *   lists, RDMA writes with and without immediate data, RDMA reads, atomics (one at a time of all
 *   queue pairs), ACKs of which the newest stands for those that have not left, NAK once per gap,
 *   RNR NAK, duplicates answered again without effect.
 * Does not model: end-to-end credits; atomics with respect to the processor's own.
 * Timing: a packet's data is handed to PCIe when it is processed, then its ACK is made; see
 *   rdma_port.c.
 * Sources: IBTA 9.7.3, 9.7.4 (validation of requests), 9.7.5 (responses), 9.7.7, 9.9.3 (errors of
 *   the responder).
 */
#include <string.h>

#include "models/rdma/rdma_internal.h"

enum outcome {
    TAKEN,  /* the packet may be freed */
    STORED, /* it is being stored; it frees itself */
    WAITS,  /* for a receive WQE */
};

/* ---- Answers --------------------------------------------------------------------------------- */

static struct rdma_answer *answer_new(struct rdma_qp *qp, enum ib_opcode opcode, uint32_t psn)
{
    struct rdma_answer *answer = sim_pool_get(qp->rdma->answer_pool);
    *answer = (struct rdma_answer){ .opcode = (uint8_t)opcode,
                                    .syndrome = IB_SYNDROME_ACK,
                                    .psn = psn,
                                    .msn = qp->msn,
                                    .n_psns = 1 };
    *qp->answer_tail = answer;
    qp->answer_tail = &answer->next;
    return answer;
}

void rdma_answer_unuse(struct rdma_qp *qp, struct rdma_answer *answer)
{
    if (--answer->n_tx == 0 && answer->ended)
        sim_pool_put(qp->rdma->answer_pool, answer);
}

/* Takes the oldest from the queue. */
static void answer_end(struct rdma_qp *qp)
{
    struct rdma_answer *answer = qp->answer_head;
    qp->answer_head = answer->next;
    if (qp->answer_head == NULL)
        qp->answer_tail = &qp->answer_head;
    qp->n_answer_reads -= answer->opcode != IB_ACK;
    answer->ended = true;
    if (answer->n_tx == 0)
        sim_pool_put(qp->rdma->answer_pool, answer);
}

static void acknowledge(struct rdma_qp *qp, uint32_t psn)
{
    if (qp->answer_head != NULL) {
        struct rdma_answer *last = SIM_CONTAINER(qp->answer_tail, struct rdma_answer, next);
        if (last->opcode == IB_ACK && last->syndrome == IB_SYNDROME_ACK) {
            last->psn = psn;
            last->msn = qp->msn;
            return;
        }
    }
    answer_new(qp, IB_ACK, psn);
    rdma_tx_want(qp);
}

static void nak(struct rdma_qp *qp, uint32_t psn, unsigned syndrome)
{
    answer_new(qp, IB_ACK, psn)->syndrome = (uint8_t)syndrome;
    qp->nak_sent = true;
    rdma_tx_want(qp);
}

/* The request ends the queue pair. Its NAK says that all before it was done, reads too. */
static enum outcome refuse(struct rdma_qp *qp, enum ib_nak code)
{
    nak(qp, qp->expected_psn, IB_SYNDROME_NAK | code);
    qp->refused = true;
    rdma_qp_error(qp, true);
    return TAKEN;
}

/* So does the receive WQE that the message has taken. */
static enum outcome fail_receive(struct rdma_qp *qp, enum rdma_status status, enum ib_nak code)
{
    const struct rdma_cqe cqe = { .status = (uint8_t)status };
    if (qp->has_wqe)
        rdma_rq_complete(qp, &cqe, true);
    qp->has_wqe = false;
    return refuse(qp, code);
}

void rdma_responder_fault(struct rdma_qp *qp, uint32_t psn, enum rdma_fault fault)
{
    nak(qp, psn, IB_SYNDROME_NAK | (fault == RDMA_FAULT_BUS ? IB_NAK_OPERATION : IB_NAK_ACCESS));
    qp->refused = false;
    rdma_qp_error(qp, true);
}

static enum ib_opcode read_opcode(uint32_t k, uint32_t n)
{
    if (n == 1)
        return IB_READ_ONLY;
    if (k == 0)
        return IB_READ_FIRST;
    return k + 1 == n ? IB_READ_LAST : IB_READ_MIDDLE;
}

static struct rdma_tx *next_data(struct rdma_qp *qp, struct rdma_answer *answer)
{
    const uint32_t k = answer->sent_psns++;
    const uint64_t offset = (uint64_t)k * qp->mtu_bytes;
    struct rdma_tx *tx = rdma_tx_new(qp, read_opcode(k, answer->n_psns),
                                     rdma_psn_add(answer->psn, k), true);
    tx->packet->bytes = (uint32_t)SIM_MIN(answer->sge.bytes - offset, qp->mtu_bytes);
    tx->answer = answer;
    answer->n_tx++;
    tx->move = (struct rdma_move){ .sge = &answer->sge,
                                   .n_sges = 1,
                                   .offset = offset,
                                   .bytes = tx->packet->bytes,
                                   .access = RDMA_ACCESS_REMOTE_READ };
    return tx;
}

struct rdma_tx *rdma_responder_next(struct rdma_qp *qp)
{
    /* In state ERR the answers before, and why, still leave, but no more data unless a request that
     * came behind is why. */
    while (qp->state == RDMA_QP_ERR && !qp->refused && qp->answer_head != NULL &&
           qp->answer_head->opcode == IB_READ_ONLY)
        answer_end(qp);
    struct rdma_answer *answer = qp->answer_head;
    if (answer == NULL)
        return NULL;
    struct rdma_tx *tx;
    if (answer->opcode == IB_READ_ONLY) {
        tx = next_data(qp, answer);
    } else {
        answer->sent_psns++;
        tx = rdma_tx_new(qp, (enum ib_opcode)answer->opcode, answer->psn, true);
    }
    tx->packet->syndrome = answer->syndrome;
    tx->packet->msn = answer->msn;
    tx->packet->original = answer->original;
    if (answer->sent_psns == answer->n_psns)
        answer_end(qp);
    return tx;
}

/* ---- Messages -------------------------------------------------------------------------------- */

static bool is_write(uint8_t opcode)
{
    return opcode >= IB_WRITE_FIRST && opcode <= IB_WRITE_ONLY_IMM;
}
static bool has_immediate(uint8_t opcode)
{
    return opcode == IB_SEND_LAST_IMM || opcode == IB_SEND_ONLY_IMM ||
           opcode == IB_WRITE_LAST_IMM || opcode == IB_WRITE_ONLY_IMM;
}
/* Of a send or write: its packet's place in the message. */
static uint8_t place_of(uint8_t opcode)
{
    return is_write(opcode) ? (uint8_t)(opcode - (IB_WRITE_FIRST - IB_SEND_FIRST)) : opcode;
}
static bool begins(uint8_t opcode)
{
    return place_of(opcode) == IB_SEND_FIRST || place_of(opcode) >= IB_SEND_ONLY;
}
static bool ends(uint8_t opcode)
{
    return place_of(opcode) >= IB_SEND_LAST;
}

/* Sequence of opcodes, length of the packet (9.7.4.1.2, 9.7.4.1.4, 9.7.4.1.6). */
static bool fits(const struct rdma_qp *qp, const struct ib_packet *packet)
{
    const uint8_t message = is_write(packet->opcode) ? RDMA_MESSAGE_WRITE : RDMA_MESSAGE_SEND;
    if (packet->opcode > IB_WRITE_ONLY_IMM)
        return qp->message == RDMA_MESSAGE_NONE && packet->bytes == 0;
    if (qp->message != (begins(packet->opcode) ? RDMA_MESSAGE_NONE : message))
        return false;
    if (!ends(packet->opcode))
        return packet->bytes == qp->mtu_bytes;
    return packet->bytes <= qp->mtu_bytes && (packet->bytes != 0 || begins(packet->opcode));
}

/* A packet of a message is where it belongs. */
static void advance(struct rdma_qp *qp, const struct ib_packet *packet)
{
    const bool write = is_write(packet->opcode), immediate = has_immediate(packet->opcode);
    qp->expected_psn = rdma_psn_add(qp->expected_psn, 1);
    qp->received += packet->bytes;
    qp->message = write ? RDMA_MESSAGE_WRITE : RDMA_MESSAGE_SEND;
    if (ends(packet->opcode)) {
        const struct rdma_cqe cqe = { .bytes = (uint32_t)qp->received,
                                      .immediate = packet->immediate,
                                      .opcode = write ? RDMA_OP_WRITE_IMM : RDMA_OP_SEND,
                                      .flags = immediate ? RDMA_CQE_IMMEDIATE : 0 };
        qp->message = RDMA_MESSAGE_NONE;
        qp->msn = rdma_psn_add(qp->msn, 1);
        if (qp->has_wqe)
            rdma_rq_complete(qp, &cqe, packet->solicited);
        qp->has_wqe = false;
    }
    if (packet->ack_request)
        acknowledge(qp, packet->psn);
}

static void stored(struct rdma_move *move)
{
    struct rdma_rx *rx = SIM_CONTAINER(move, struct rdma_rx, move);
    struct rdma_qp *qp = rx->qp;
    if (rx->generation != qp->generation)
        return;
    qp->requests.busy = false;
    rdma_fifo_next(&qp->requests);
    if (qp->state == RDMA_QP_ERR) {
        qp->rdma->stats.dropped++;
    } else if (move->fault == RDMA_FAULT_NONE) {
        advance(qp, rx->packet);
    } else if (is_write(rx->packet->opcode)) {
        refuse(qp, move->fault == RDMA_FAULT_BUS ? IB_NAK_OPERATION : IB_NAK_ACCESS);
    } else {
        fail_receive(qp, move->fault == RDMA_FAULT_BUS ? RDMA_LOCAL_QP : RDMA_LOCAL_PROTECTION,
                     IB_NAK_OPERATION);
    }
    rdma_responder_run(qp);
}

static void store_ended(struct rdma_move *move)
{
    rdma_rx_free(SIM_CONTAINER(move, struct rdma_rx, move));
}

static enum outcome store(struct rdma_qp *qp, struct rdma_rx *rx, const struct rdma_sge *sge,
                          uint32_t n_sges, uint8_t access)
{
    if (rx->packet->bytes == 0) {
        advance(qp, rx->packet);
        return TAKEN;
    }
    rx->move = (struct rdma_move){
        .qp = qp,
        .sge = sge,
        .n_sges = n_sges,
        .offset = qp->received,
        .bytes = rx->packet->bytes,
        .access = access,
        .write = true,
        .buffer = rx->packet->payload,
        .issued = stored,
        .ended = store_ended,
    };
    qp->requests.busy = true;
    rdma_move_start(&rx->move);
    return STORED;
}

/* The message needs a receive WQE. TAKEN: it has none, and was answered; STORED: it has one. */
static enum outcome take_wqe(struct rdma_qp *qp)
{
    if (qp->has_wqe)
        return STORED;
    switch (rdma_rq_take(qp)) {
    case RDMA_RQ_WAIT: return WAITS;
    case RDMA_RQ_EMPTY: nak(qp, qp->expected_psn, IB_SYNDROME_RNR | qp->rnr_timer); return TAKEN;
    case RDMA_RQ_FAILED: return refuse(qp, IB_NAK_OPERATION);
    default: break;
    }
    qp->has_wqe = true;
    return STORED;
}

static enum outcome take_send(struct rdma_qp *qp, struct rdma_rx *rx)
{
    if (begins(rx->packet->opcode))
        qp->received = 0;
    if (qp->offload != NULL && rx->packet->opcode == IB_SEND_ONLY &&
        rdma_offload_take(qp, rx->packet)) {
        advance(qp, rx->packet);
        return TAKEN;
    }
    const enum outcome wqe = take_wqe(qp);
    if (wqe != STORED)
        return wqe;
    if (qp->received + rx->packet->bytes > qp->wqe.bytes)
        return fail_receive(qp, RDMA_LOCAL_LENGTH, IB_NAK_INVALID);
    return store(qp, rx, qp->wqe.sge, qp->wqe.n_sges, RDMA_ACCESS_LOCAL_WRITE);
}

/* Access of the queue pair and of the region, of more than no bytes. */
static bool allowed(const struct rdma_qp *qp, const struct ib_packet *packet, uint32_t bytes,
                    uint8_t access)
{
    const struct rdma_sge sge = { .bytes = bytes, .key = packet->rkey, .va = packet->va };
    return bytes == 0 ||
           ((qp->access & access) == access && rdma_access_allowed(qp->rdma, qp->pd, &sge, access));
}

static enum outcome take_write(struct rdma_qp *qp, struct rdma_rx *rx)
{
    const struct ib_packet *packet = rx->packet;
    if (begins(packet->opcode)) {
        if (!allowed(qp, packet, packet->dma_bytes, RDMA_ACCESS_REMOTE_WRITE))
            return refuse(qp, IB_NAK_ACCESS);
        qp->received = 0;
        qp->write_va = packet->va;
        qp->write_key = packet->rkey;
        qp->write_bytes = packet->dma_bytes;
    }
    const uint64_t received = qp->received + packet->bytes;
    if (received > qp->write_bytes || (ends(packet->opcode) && received != qp->write_bytes))
        return refuse(qp, IB_NAK_INVALID);
    if (has_immediate(packet->opcode)) {
        const enum outcome wqe = take_wqe(qp);
        if (wqe != STORED)
            return wqe;
    }
    rx->sge =
        (struct rdma_sge){ .bytes = qp->write_bytes, .key = qp->write_key, .va = qp->write_va };
    return store(qp, rx, &rx->sge, 1, RDMA_ACCESS_REMOTE_WRITE);
}

/* ---- Reads ----------------------------------------------------------------------------------- */

static uint32_t read_psns(const struct rdma_qp *qp, uint32_t bytes)
{
    return bytes == 0 ? 1 : (bytes - 1) / qp->mtu_bytes + 1;
}

static void answer_read(struct rdma_qp *qp, const struct ib_packet *packet)
{
    struct rdma_answer *answer = answer_new(qp, IB_READ_ONLY, packet->psn);
    answer->n_psns = read_psns(qp, packet->dma_bytes);
    answer->sge =
        (struct rdma_sge){ .bytes = packet->dma_bytes, .key = packet->rkey, .va = packet->va };
    qp->n_answer_reads++;
    rdma_tx_want(qp);
}

static enum outcome take_read(struct rdma_qp *qp, const struct ib_packet *packet)
{
    if (packet->dma_bytes > RDMA_MESSAGE_MAX || qp->n_answer_reads >= qp->remote_reads_max)
        return refuse(qp, IB_NAK_INVALID);
    if (!allowed(qp, packet, packet->dma_bytes, RDMA_ACCESS_REMOTE_READ))
        return refuse(qp, IB_NAK_ACCESS);
    qp->msn = rdma_psn_add(qp->msn, 1);
    qp->expected_psn = rdma_psn_add(qp->expected_psn, read_psns(qp, packet->dma_bytes));
    answer_read(qp, packet);
    return TAKEN;
}

/* ---- Atomics --------------------------------------------------------------------------------- */

static void atomic_begin(struct rdma *rdma);

static void answer_atomic(struct rdma_qp *qp, uint32_t psn, uint64_t original)
{
    answer_new(qp, IB_ATOMIC_ACK, psn)->original = original;
    qp->n_answer_reads++;
    rdma_tx_want(qp);
}

static void atomic_end(struct rdma_rx *rx)
{
    struct rdma *rdma = rx->rdma;
    rdma->atomic = NULL;
    rdma_rx_free(rx);
    atomic_begin(rdma);
}

/* Done, or refused because of the fault: the next request may follow. */
static void atomic_done(struct rdma_rx *rx, enum rdma_fault fault)
{
    struct rdma_qp *qp = rx->qp;
    if (rx->generation != qp->generation)
        return;
    qp->requests.busy = false;
    rdma_fifo_next(&qp->requests);
    if (qp->state == RDMA_QP_ERR) {
        qp->rdma->stats.dropped++;
    } else if (fault != RDMA_FAULT_NONE) {
        refuse(qp, fault == RDMA_FAULT_BUS ? IB_NAK_OPERATION : IB_NAK_ACCESS);
    } else {
        qp->atomic[qp->next_atomic++ % RDMA_READS_MAX] = (struct rdma_atomic){
            .psn = rx->packet->psn, .there = true, .original = rx->packet->original
        };
        qp->msn = rdma_psn_add(qp->msn, 1);
        qp->expected_psn = rdma_psn_add(qp->expected_psn, 1);
        answer_atomic(qp, rx->packet->psn, rx->packet->original);
    }
    rdma_responder_run(qp);
}

static void atomic_written(struct rdma_move *move)
{
    atomic_done(SIM_CONTAINER(move, struct rdma_rx, move), (enum rdma_fault)move->fault);
}

static void atomic_write_ended(struct rdma_move *move)
{
    atomic_end(SIM_CONTAINER(move, struct rdma_rx, move));
}

static void atomic_read_ended(struct rdma_move *move)
{
    struct rdma_rx *rx = SIM_CONTAINER(move, struct rdma_rx, move);
    struct ib_packet *packet = rx->packet;
    if (move->fault != RDMA_FAULT_NONE || rx->generation != rx->qp->generation) {
        atomic_done(rx, (enum rdma_fault)move->fault);
        atomic_end(rx);
        return;
    }
    packet->original = rx->value;
    if (packet->opcode == IB_FETCH_ADD)
        rx->value += packet->swap_or_add;
    else if (rx->value == packet->compare)
        rx->value = packet->swap_or_add;
    rx->move.write = true;
    rx->move.issued = atomic_written;
    rx->move.ended = atomic_write_ended;
    rdma_move_start(&rx->move);
}

static void atomic_begin(struct rdma *rdma)
{
    struct rdma_rx *rx = rdma->atomic_wait_head;
    if (rdma->atomic != NULL || rx == NULL)
        return;
    rdma->atomic = rx;
    rdma->atomic_wait_head = rx->next_atomic;
    rx->sge = (struct rdma_sge){ .bytes = sizeof(rx->value),
                                 .key = rx->packet->rkey,
                                 .va = rx->packet->va };
    rx->move = (struct rdma_move){ .qp = rx->qp,
                                   .sge = &rx->sge,
                                   .n_sges = 1,
                                   .bytes = sizeof(rx->value),
                                   .access = RDMA_ACCESS_REMOTE_ATOMIC,
                                   .buffer = (uint8_t *)&rx->value,
                                   .ended = atomic_read_ended };
    rdma_move_start(&rx->move);
}

static enum outcome take_atomic(struct rdma_qp *qp, struct rdma_rx *rx)
{
    struct rdma *rdma = qp->rdma;
    struct rdma_rx **link = &rdma->atomic_wait_head;
    if (rx->packet->va % sizeof(rx->value) != 0 || qp->n_answer_reads >= qp->remote_reads_max)
        return refuse(qp, IB_NAK_INVALID);
    if (!allowed(qp, rx->packet, sizeof(rx->value), RDMA_ACCESS_REMOTE_ATOMIC))
        return refuse(qp, IB_NAK_ACCESS);
    qp->requests.busy = true;
    rx->next_atomic = NULL;
    while (*link != NULL)
        link = &(*link)->next_atomic;
    *link = rx;
    atomic_begin(rdma);
    return STORED;
}

/* ---- Packets --------------------------------------------------------------------------------- */

/* Has been there before: answered again, without effect (9.7.5.1.4, 9.7.7). */
static void take_duplicate(struct rdma_qp *qp, const struct ib_packet *packet)
{
    qp->rdma->stats.duplicates++;
    if (packet->opcode <= IB_WRITE_ONLY_IMM) {
        if (packet->ack_request)
            acknowledge(qp, rdma_psn_add(qp->expected_psn, RDMA_PSN_MASK));
    } else if (qp->n_answer_reads >= 2 * qp->remote_reads_max) {
        qp->rdma->stats.dropped++;
    } else if (packet->opcode == IB_READ_REQUEST) {
        if (packet->dma_bytes <= RDMA_MESSAGE_MAX &&
            allowed(qp, packet, packet->dma_bytes, RDMA_ACCESS_REMOTE_READ))
            answer_read(qp, packet);
    } else {
        for (uint32_t i = 0; i < RDMA_READS_MAX; i++)
            if (qp->atomic[i].there && qp->atomic[i].psn == packet->psn) {
                answer_atomic(qp, packet->psn, qp->atomic[i].original);
                break;
            }
    }
}

static enum outcome take(struct rdma_qp *qp, struct rdma_rx *rx)
{
    const struct ib_packet *packet = rx->packet;
    const uint32_t ahead = rdma_psn_distance(qp->expected_psn, packet->psn);
    if (qp->state == RDMA_QP_ERR) {
        qp->rdma->stats.dropped++;
        return TAKEN;
    }
    if (ahead >= RDMA_PSN_HALF) {
        take_duplicate(qp, packet);
        return TAKEN;
    }
    if (ahead != 0) {
        if (!qp->nak_sent)
            nak(qp, qp->expected_psn, IB_SYNDROME_NAK | IB_NAK_SEQUENCE);
        return TAKEN;
    }
    qp->nak_sent = false;
    if (!fits(qp, packet))
        return refuse(qp, IB_NAK_INVALID);
    if (packet->opcode <= IB_SEND_ONLY_IMM)
        return take_send(qp, rx);
    if (is_write(packet->opcode))
        return take_write(qp, rx);
    return packet->opcode == IB_READ_REQUEST ? take_read(qp, packet) : take_atomic(qp, rx);
}

void rdma_responder_run(struct rdma_qp *qp)
{
    if (qp->requests.running)
        return;
    qp->requests.running = true;
    while (!qp->requests.busy && qp->requests.head != NULL) {
        struct rdma_rx *rx = qp->requests.head;
        const enum outcome outcome = take(qp, rx);
        if (outcome == WAITS)
            break;
        if (outcome == TAKEN) {
            rdma_fifo_next(&qp->requests);
            rdma_rx_free(rx);
        }
    }
    qp->requests.running = false;
}

void rdma_responder_reset(struct rdma_qp *qp)
{
    while (qp->answer_head != NULL)
        answer_end(qp);
    qp->answer_tail = &qp->answer_head;
    qp->n_answer_reads = 0;
    qp->nak_sent = qp->refused = qp->has_wqe = false;
    qp->message = RDMA_MESSAGE_NONE;
    qp->msn = 0;
    qp->received = 0;
    qp->next_atomic = 0;
    memset(qp->atomic, 0, sizeof(qp->atomic));
}
