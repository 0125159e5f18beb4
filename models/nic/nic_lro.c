/*
 * Large receive offload of nic.ethernet: a receive queue with NIC_COMMAND_LRO merges segments of a
 * flow that follow each other into one buffer with one completion.
 *
 * Models: sessions of a queue, each a flow's with a buffer. A segment is written behind those
 * before it as it comes in; the completion follows when the session ends, and says what the headers
 * of the whole would be (last acknowledgement, window and time stamps; PSH). Merged are IPv4
 * packets without IP options and fragments, whose checksums are right, with payload, no flags but
 * ACK and PSH, no TCP options but time stamps, with the sequence number that is expected. A session
 * ends behind a segment with PSH, before a packet of its flow that may not be merged or does not
 * fit (buffer, 64 KiB, 255 segments), lro_timeout after its first packet, when its place is needed
 * by another flow (the oldest goes), and before the answer to a rule of flow table or switch. Does
 * not model: IPv6, merging of acknowledgements without payload, ECN marks (not merged). Timing:
 * none of its own; a completion is written when its session ends. Sources: docs/sources.md#a5.
 */
#include <stdlib.h>
#include <string.h>

#include "models/nic/nic_internal.h"

#define ETHERNET_BYTES 14u
#define IP_BYTES_MAX   65535u
#define SEGMENTS_MAX   255u
#define TCP_BYTES      20u
#define TIME_BYTES     12u /* NOP, NOP, time stamps */
#define TIME_OPTION    0x0101080au

/* What of a packet decides. */
struct segment {
    struct ether_flow flow;
    uint32_t sequence, ack, tsval, tsecr;
    uint16_t window, payload_bytes;
    uint8_t flags, tos;
    bool tcp;       /* of a flow that may have a session */
    bool mergeable; /* by itself */
};

static struct segment look_at(const struct nic_rx *rx)
{
    const struct ether_frame *frame = rx->frame;
    struct ether_packet packet;
    struct segment s = { 0 };
    ether_packet_parse(frame->header, frame->header_bytes, &packet);
    if (!packet.l4 || packet.flow.protocol != IP_PROTOCOL_TCP)
        return s;
    const uint8_t *ip = frame->header + packet.l3_offset, *tcp = frame->header + packet.l4_offset;
    uint32_t options = packet.l4_header_bytes - TCP_BYTES;
    bool time = options == TIME_BYTES && ether_get32(tcp + TCP_BYTES) == TIME_OPTION;
    s.tcp = true;
    s.flow = packet.flow;
    s.sequence = ether_get32(tcp + 4);
    s.ack = ether_get32(tcp + 8);
    s.window = ether_get16(tcp + 14);
    s.flags = tcp[13];
    s.tos = ip[1];
    s.tsval = time ? ether_get32(tcp + TCP_BYTES + 4) : 0;
    s.tsecr = time ? ether_get32(tcp + TCP_BYTES + 8) : 0;
    uint32_t headers = (uint32_t)packet.l4_offset + packet.l4_header_bytes - packet.l3_offset;
    s.payload_bytes = (uint16_t)frame->payload.bytes;
    s.mergeable = (rx->cqe.flags & NIC_CQE_CHECKSUM_OK) != 0 && frame->payload.bytes != 0 &&
                  packet.l4_offset == packet.l3_offset + 20 && (options == 0 || time) &&
                  frame->header_bytes == packet.l3_offset + headers &&
                  ether_get16(ip + 2) == headers + frame->payload.bytes &&
                  (s.flags & (uint8_t)~TCP_FLAG_PSH) == TCP_FLAG_ACK && (s.tos & 3) != 3;
    return s;
}

/* ---- Sessions -------------------------------------------------------------------------------- */

static void end_session(struct nic_lro *lro)
{
    struct nic_rq *rq = lro->rq;
    struct nic_function *function = rq->function;
    struct nic_cq *cq = function->cq[rq->cq];
    sim_cancel(function->nic->model->sim, &lro->timer);
    lro->open = false;
    rq->n_lro--;
    function->n_lro--;
    if (cq == NULL)
        return; /* the driver destroyed it first */
    uint64_t iova = nic_cq_next(cq, &lro->cqe, NIC_CQE_RECEIVED);
    nic_post(function, iova, &lro->cqe, sizeof(lro->cqe));
    nic_cq_written(cq);
}

static void timed_out(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    end_session(SIM_CONTAINER(event, struct nic_lro, timer));
}

static struct nic_lro *session_of(const struct nic_rq *rq, const struct ether_flow *flow)
{
    uint32_t n = rq->n_lro;
    for (struct nic_lro *lro = rq->lro; n != 0; lro++) {
        n -= lro->open;
        if (lro->open && ether_flow_equal(&lro->flow, flow))
            return lro;
    }
    return NULL;
}

static struct nic_lro *free_session(const struct nic_rq *rq)
{
    struct nic_lro *oldest = rq->lro;
    for (uint32_t i = 0; i < rq->function->nic->params.lro_sessions; i++) {
        if (!rq->lro[i].open)
            return &rq->lro[i];
        if (rq->lro[i].timer.time_ps < oldest->timer.time_ps)
            oldest = &rq->lro[i];
    }
    end_session(oldest);
    return oldest;
}

static bool fits(const struct nic_lro *lro, const struct segment *s, const struct nic_rx *rx)
{
    uint32_t bytes = lro->cqe.bytes + s->payload_bytes;
    return s->mergeable && s->sequence == lro->sequence && s->tos == lro->tos &&
           rx->frame->header_bytes == lro->cqe.header_bytes && bytes <= lro->buffer_bytes &&
           bytes - ETHERNET_BYTES <= IP_BYTES_MAX && lro->cqe.segments < SEGMENTS_MAX;
}

static void take_over(struct nic_lro *lro, const struct segment *s)
{
    lro->sequence = s->sequence + s->payload_bytes;
    lro->cqe.lro_ack = s->ack;
    lro->cqe.lro_window = s->window;
    lro->cqe.lro_tsval = s->tsval;
    lro->cqe.lro_tsecr = s->tsecr;
    lro->cqe.lro_flags |= s->flags;
    if ((s->flags & TCP_FLAG_PSH) != 0)
        end_session(lro);
}

bool nic_lro_fits(struct nic_rq *rq, const struct nic_rx *rx)
{
    if (rq->n_lro == 0)
        return false;
    struct segment s = look_at(rx);
    struct nic_lro *lro = s.tcp ? session_of(rq, &s.flow) : NULL;
    if (lro == NULL)
        return false;
    if (fits(lro, &s, rx))
        return true;
    end_session(lro);
    return false;
}

void nic_lro_append(struct nic_rq *rq, struct nic_rx *rx)
{
    struct segment s = look_at(rx);
    struct nic_lro *lro = session_of(rq, &s.flow);
    uint64_t iova = lro->iova + lro->cqe.bytes;
    lro->cqe.segments++;
    lro->cqe.bytes += s.payload_bytes;
    rq->function->nic->stats.lro_merged++;
    nic_rx_write(rq, rx, iova, false);
    take_over(lro, &s);
}

bool nic_lro_begin(struct nic_rq *rq, struct nic_rx *rx, const struct nic_wqe_data *wqe)
{
    struct nic *nic = rq->function->nic;
    struct segment s = look_at(rx);
    if (!s.mergeable || (s.flags & TCP_FLAG_PSH) != 0)
        return false;
    struct nic_lro *lro = free_session(rq);
    lro->open = true;
    lro->flow = s.flow;
    lro->tos = s.tos;
    lro->iova = wqe->iova;
    lro->buffer_bytes = wqe->bytes;
    lro->cqe = rx->cqe;
    rq->n_lro++;
    rq->function->n_lro++;
    sim_schedule_in(nic->model->sim, &lro->timer, nic->params.lro_timeout_ps);
    nic_rx_write(rq, rx, wqe->iova, true);
    take_over(lro, &s);
    return true;
}

void nic_lro_flush(struct nic_rq *rq)
{
    uint32_t n = rq->lro != NULL ? rq->function->nic->params.lro_sessions : 0;
    for (uint32_t i = 0; i < n && rq->n_lro != 0; i++)
        if (rq->lro[i].open)
            end_session(&rq->lro[i]);
}

void nic_lro_flush_all(struct nic_function *function)
{
    for (uint32_t i = 0; i < function->nic->params.n_queues && function->n_lro != 0; i++)
        if (function->rq[i] != NULL)
            nic_lro_flush(function->rq[i]);
}

void nic_lro_init(struct nic_rq *rq)
{
    uint32_t n = rq->function->nic->params.lro_sessions;
    rq->lro = sim_zalloc(n, sizeof(*rq->lro));
    for (uint32_t i = 0; i < n; i++) {
        rq->lro[i].rq = rq;
        sim_event_init(&rq->lro[i].timer, timed_out);
    }
}

void nic_lro_free(struct nic_rq *rq)
{
    uint32_t n = rq->lro != NULL ? rq->function->nic->params.lro_sessions : 0;
    for (uint32_t i = 0; i < n; i++) {
        rq->function->n_lro -= rq->lro[i].open;
        sim_cancel(rq->function->nic->model->sim, &rq->lro[i].timer);
    }
    free(rq->lro);
}
