/*
 * Packets of rdma.adapter: how they are made and leave, how they come in.
 *
 * Models: queue pairs take turns packet by packet; payload buffers that bound what is read ahead of
 *   the wire; packets of a queue pair leave in the order in which they were made, requests and
 *   answers each, and as soon as they are ready; receive buffers that are given back when what a
 *   packet holds has been handed to PCIe.
 * Does not model: service levels, rate limits, packets to the port itself (loopback).
 * Timing: a packet is begun at most every packet_interval. It is ready transmit_latency after its
 *   payload is on the adapter, and leaves when the wire is free and the other side has room. A
 *   packet that came in is processed receive_latency after its tail, one every packet_interval.
 * Sources: IBTA 9.2 (headers), 7.8; docs/sources.md#rdma.
 */
#include "models/rdma/rdma_internal.h"

enum { REQUESTS, ANSWERS };

static void turn(struct rdma *rdma);
static void port_pump(struct rdma *rdma);

/* ---- Packets that are made ------------------------------------------------------------------- */

struct rdma_tx *rdma_tx_new(struct rdma_qp *qp, enum ib_opcode opcode, uint32_t psn, bool is_answer)
{
    struct rdma *rdma = qp->rdma;
    struct rdma_tx *tx = sim_pool_get(rdma->txs);
    const unsigned kind = is_answer ? ANSWERS : REQUESTS;
    *tx = (struct rdma_tx){ .qp = qp,
                            .generation = qp->generation,
                            .epoch = qp->epoch,
                            .is_answer = is_answer,
                            .packet = ib_packet_new(rdma->packets) };
    tx->packet->opcode = (uint8_t)opcode;
    tx->packet->dlid = qp->lid;
    tx->packet->slid = (uint16_t)rdma->lid;
    tx->packet->qp = qp->destination;
    tx->packet->psn = psn;
    *qp->tx_tail[kind] = tx;
    qp->tx_tail[kind] = &tx->next;
    return tx;
}

static bool is_stale(const struct rdma_tx *tx)
{
    return tx->failed || tx->generation != tx->qp->generation ||
           (!tx->is_answer && tx->epoch != tx->qp->epoch);
}

/* Without its packet, if that has been sent. */
static void tx_free(struct rdma_tx *tx)
{
    struct rdma *rdma = tx->qp->rdma;
    if (tx->send != NULL)
        rdma_send_unuse(tx->qp, tx->send);
    if (tx->answer != NULL)
        rdma_answer_unuse(tx->qp, tx->answer);
    if (tx->packet != NULL) {
        rdma->tx_bytes -= tx->packet->bytes;
        sim_pool_put(rdma->packets, tx->packet);
    }
    sim_pool_put(rdma->txs, tx);
}

static void tx_ready(struct sim *sim, struct sim_event *event)
{
    struct rdma_tx *tx = SIM_CONTAINER(event, struct rdma_tx, event);
    struct rdma_qp *qp = tx->qp;
    struct rdma *rdma = qp->rdma;
    const unsigned kind = tx->is_answer ? ANSWERS : REQUESTS;
    (void)sim;
    tx->ready = true;
    while (qp->tx_head[kind] != NULL && qp->tx_head[kind]->ready) {
        tx = qp->tx_head[kind];
        qp->tx_head[kind] = tx->next;
        if (tx->next == NULL)
            qp->tx_tail[kind] = &qp->tx_head[kind];
        tx->next = NULL;
        *rdma->ready_tail = tx;
        rdma->ready_tail = &tx->next;
    }
    port_pump(rdma);
    turn(rdma);
}

static void tx_finish(struct rdma_tx *tx)
{
    struct rdma *rdma = tx->qp->rdma;
    sim_event_init(&tx->event, tx_ready);
    sim_schedule_in(rdma->model->sim, &tx->event, rdma->params.transmit_ps);
}

static void tx_gathered(struct rdma_move *move)
{
    struct rdma_tx *tx = SIM_CONTAINER(move, struct rdma_tx, move);
    if (move->fault != RDMA_FAULT_NONE && !is_stale(tx)) {
        if (tx->is_answer)
            rdma_responder_fault(tx->qp, tx->packet->psn, (enum rdma_fault)move->fault);
        else
            rdma_requester_fault(tx->qp, tx->send, (enum rdma_fault)move->fault);
    }
    tx->failed |= move->fault != RDMA_FAULT_NONE;
    tx_finish(tx);
}

static void tx_start(struct rdma_tx *tx)
{
    tx->qp->rdma->tx_bytes += tx->packet->bytes;
    if (tx->move.bytes == 0) {
        tx_finish(tx);
        return;
    }
    tx->move.qp = tx->qp;
    tx->move.buffer = tx->packet->payload;
    tx->move.ended = tx_gathered;
    rdma_move_start(&tx->move);
}

/* ---- Turns ----------------------------------------------------------------------------------- */

/* Answers and requests of a queue pair in turn. */
static struct rdma_tx *next_packet(struct rdma_qp *qp)
{
    struct rdma_tx *tx;
    if (qp->answer_last) {
        tx = rdma_requester_next(qp);
        if (tx == NULL)
            tx = rdma_responder_next(qp);
    } else {
        tx = rdma_responder_next(qp);
        if (tx == NULL)
            tx = rdma_requester_next(qp);
    }
    qp->answer_last = tx != NULL && tx->is_answer;
    return tx;
}

static void queue_up(struct rdma_qp *qp)
{
    struct rdma *rdma = qp->rdma;
    qp->wants_tx = true;
    qp->next_tx = NULL;
    *rdma->tx_qp_tail = qp;
    rdma->tx_qp_tail = &qp->next_tx;
}

static void turn(struct rdma *rdma)
{
    if (rdma->in_turn)
        return;
    rdma->in_turn = true;
    while (rdma->tx_qp_head != NULL && rdma->tx_bytes < rdma->params.tx_buffer_bytes) {
        const sim_time now_ps = rdma_now(rdma);
        struct rdma_qp *qp = rdma->tx_qp_head;
        if (rdma->tx_free_ps > now_ps) {
            if (!sim_event_pending(&rdma->tx_turn))
                sim_schedule(rdma->model->sim, &rdma->tx_turn, rdma->tx_free_ps);
            break;
        }
        rdma->tx_qp_head = qp->next_tx;
        if (rdma->tx_qp_head == NULL)
            rdma->tx_qp_tail = &rdma->tx_qp_head;
        qp->wants_tx = false;
        struct rdma_tx *tx = next_packet(qp);
        if (tx == NULL)
            continue;
        queue_up(qp);
        rdma->tx_free_ps = now_ps + rdma->params.packet_ps;
        tx_start(tx);
    }
    rdma->in_turn = false;
}

static void turn_again(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    turn(SIM_CONTAINER(event, struct rdma, tx_turn));
}

void rdma_tx_want(struct rdma_qp *qp)
{
    if (!qp->wants_tx)
        queue_up(qp);
    turn(qp->rdma);
}

/* ---- The wire -------------------------------------------------------------------------------- */

static void count_sent(struct rdma *rdma, const struct rdma_tx *tx)
{
    const struct ib_packet *packet = tx->packet;
    const unsigned type = packet->syndrome & IB_SYNDROME_TYPE;
    if (!tx->is_answer) {
        rdma->stats.requests++;
        rdma_requester_sent(tx->qp, packet);
        return;
    }
    rdma->stats.responses++;
    if (packet->opcode == IB_ACK) {
        rdma->stats.acks += type == 0;
        rdma->stats.rnr_naks += type == IB_SYNDROME_RNR;
        rdma->stats.naks += type == IB_SYNDROME_NAK;
    }
}

static void port_pump(struct rdma *rdma)
{
    while (rdma->ready_head != NULL) {
        struct rdma_tx *tx = rdma->ready_head;
        const bool stale = is_stale(tx), connected = ib_port_connected(rdma->port);
        if (!stale && connected && !ib_port_ready(rdma->port, tx->packet))
            return;
        rdma->ready_head = tx->next;
        if (rdma->ready_head == NULL)
            rdma->ready_tail = &rdma->ready_head;
        if (!stale)
            count_sent(rdma, tx);
        if (!stale && connected) {
            rdma->leaving_bytes = tx->packet->bytes;
            ib_port_send(rdma->port, tx->packet);
            tx->packet = NULL;
        }
        tx_free(tx);
    }
}

static void port_ready(struct ib_port *port)
{
    struct rdma *rdma = port->model->state;
    rdma->tx_bytes -= rdma->leaving_bytes;
    rdma->leaving_bytes = 0;
    port_pump(rdma);
    turn(rdma);
}

static void port_up(struct ib_port *port, bool up)
{
    (void)up;
    rdma_event(port->model->state, RDMA_EVENT_LINK, 0);
}

/* ---- Packets that come in -------------------------------------------------------------------- */

void rdma_rx_free(struct rdma_rx *rx)
{
    struct rdma *rdma = rx->rdma;
    if (ib_port_connected(rdma->port)) /* at the end of a run wires go first */
        ib_port_release(rdma->port, ib_packet_credits(rx->packet));
    sim_pool_put(rdma->packets, rx->packet);
    sim_pool_put(rdma->rxs, rx);
}

void rdma_fifo_next(struct rdma_fifo *fifo)
{
    fifo->head = fifo->head->next;
    if (fifo->head == NULL)
        fifo->tail = &fifo->head;
}

void rdma_fifo_drop(struct rdma_fifo *fifo)
{
    if (fifo->busy) /* it is freed when it has been stored */
        rdma_fifo_next(fifo);
    fifo->busy = false;
    while (fifo->head != NULL) {
        struct rdma_rx *rx = fifo->head;
        rdma_fifo_next(fifo);
        rdma_rx_free(rx);
    }
}

static void process(struct sim *sim, struct sim_event *event)
{
    struct rdma_rx *rx = SIM_CONTAINER(event, struct rdma_rx, event);
    struct rdma *rdma = rx->rdma;
    const struct ib_packet *packet = rx->packet;
    struct rdma_qp *qp = rdma_qp_find(rdma, packet->qp);
    const bool is_answer = packet->opcode >= IB_READ_FIRST && packet->opcode <= IB_ATOMIC_ACK;
    (void)sim;
    rdma->stats.received++;
    if (qp == NULL || qp->state < RDMA_QP_RTR || packet->dlid != rdma->lid ||
        packet->slid != qp->lid) {
        rdma->stats.dropped++;
        rdma_rx_free(rx);
        return;
    }
    struct rdma_fifo *fifo = is_answer ? &qp->answers : &qp->requests;
    rx->qp = qp;
    rx->generation = qp->generation;
    *fifo->tail = rx;
    fifo->tail = &rx->next;
    if (is_answer)
        rdma_requester_run(qp);
    else
        rdma_responder_run(qp);
}

static void port_receive(struct ib_port *port, struct ib_packet *packet)
{
    struct rdma *rdma = port->model->state;
    struct rdma_rx *rx = sim_pool_get(rdma->rxs);
    const sim_time at_ps = SIM_MAX(rdma_now(rdma) + rdma->params.receive_ps, rdma->rx_free_ps);
    *rx = (struct rdma_rx){ .rdma = rdma, .packet = packet };
    rdma->rx_free_ps = at_ps + rdma->params.packet_ps;
    sim_event_init(&rx->event, process);
    sim_schedule(rdma->model->sim, &rx->event, at_ps);
}

void rdma_port_init(struct rdma *rdma)
{
    struct ib_port *port = model_ports_new(rdma->model, &ib_cable, 1);
    snprintf(rdma->port_name, sizeof(rdma->port_name), "%s.i0", rdma->model->name);
    *port = (struct ib_port){ .model = rdma->model,
                              .name = rdma->port_name,
                              .rate_gbit_s_max = rdma->params.rate_gbit_s,
                              .buffer_bytes = rdma->params.rx_buffer_bytes,
                              .mtu_bytes = rdma->params.mtu_bytes,
                              .receive = port_receive,
                              .ready = port_ready,
                              .up = port_up };
    rdma->port = port;
    rdma->tx_qp_tail = &rdma->tx_qp_head;
    rdma->ready_tail = &rdma->ready_head;
    sim_event_init(&rdma->tx_turn, turn_again);
}
