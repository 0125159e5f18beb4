/*
 * Send queues of nic.ethernet.
 *
 * Models: doorbells that post any number of blocks, WQEs fetched ahead in batches, data gathered by
 *   reads of at most 2 KiB that end at cache lines (no line is read twice), each through the
 *   function that its hint names (IOctoSG), inline headers, segmentation with the headers that each
 *   segment has, packets of a queue in order, queues served in turn packet by packet, an on-chip
 *   buffer from the reads until the last bit has left, completions then.
 * Does not model: rate limits per queue, a limit of packets per second, headers that are not
 *   inline.
 * Timing: unloaded, from the doorbell: a DMA read of the WQE, reads of the data of one packet (none
 *   if there is none), transmit_latency, then the first bit. Loaded, the first of: wire,
 *   read requests in flight x MRRS per round trip, the PCIe link, buffer per time from read to
 *   wire. A packet's data are asked for while fewer than read_requests_max - READS_KEPT full reads
 *   of a function are under way for data, so that WQEs do not queue behind it.
 * Sources: docs/sources.md#a5; RFC 793, 3168 (flags of segments); the order of completion and wire
 *   is ours: docs/models/nic.md.
 */
#include <stdlib.h>
#include <string.h>

#include "models/nic/nic_internal.h"

/* Read requests of a function that data leaves to descriptors. */
#define READS_KEPT 4u
/* How much of the buffer must be free before a transmitter that ran into its end looks again. */
#define WAKE_SHARE 8u

static void transmit(struct nic *nic);
static void fetch_wqes(struct nic_sq *sq);

/* ---- Completions ----------------------------------------------------------------------------- */

void nic_complete(struct nic_function *function, uint16_t cq_number, uint16_t queue,
                  uint16_t wqe_index, unsigned opcode)
{
    struct nic_cq *cq = function->cq[cq_number];
    if (cq == NULL)
        return; /* the driver destroyed it first */
    struct nic_cqe cqe = {
        .segments = 1, .wqe_index = wqe_index, .queue = queue, .time_ps = nic_now(function->nic)
    };
    uint64_t iova = nic_cq_next(cq, &cqe, opcode);
    nic_post(function, iova, &cqe, sizeof(cqe));
    nic_cq_written(cq);
}

/* ---- After the wire -------------------------------------------------------------------------- */

/* Packets whose last bit has left: their part of the buffer is free. */
static void retire(struct nic *nic)
{
    sim_time now_ps = nic_now(nic);
    while (nic->sent_head != NULL && nic->sent_head->left_ps <= now_ps) {
        struct nic_tx *tx = nic->sent_head;
        nic->sent_head = tx->next;
        if (nic->sent_head == NULL)
            nic->sent_tail = &nic->sent_head;
        nic->tx_bytes -= tx->bytes;
        if (tx->completion)
            nic_complete(tx->function, tx->cq, tx->sq, tx->wqe_index, NIC_CQE_SENT);
        sim_pool_put(nic->txs, tx);
    }
}

void nic_sent_forget(struct nic_function *function, uint32_t queue)
{
    for (struct nic_tx *tx = function->nic->sent_head; tx != NULL; tx = tx->next)
        if (tx->function == function && tx->sq == queue)
            tx->completion = false;
}

/* Has retire() called when the next completion is due or, if the buffer is full, has room again.
 * What is sent later leaves later: an event that is pending is early enough for completions. */
static void schedule_retire(struct nic *nic, bool full)
{
    uint64_t freed = 0, wanted = nic->params.tx_buffer_bytes / WAKE_SHARE;
    const struct nic_tx *tx = nic->sent_head;
    if (tx == NULL || (!full && sim_event_pending(&nic->retire)))
        return;
    for (;; tx = tx->next) {
        freed += tx->bytes;
        if (tx->completion || (full && freed >= wanted))
            break;
        if (tx->next == NULL && !full)
            return;
        if (tx->next == NULL)
            break;
    }
    if (tx->left_ps == SIM_TIME_MAX)
        return; /* PAUSE: nic_retime() looks again */
    if (sim_event_pending(&nic->retire)) {
        if (nic->retire.time_ps <= tx->left_ps)
            return;
        sim_cancel(nic->model->sim, &nic->retire);
    }
    sim_schedule(nic->model->sim, &nic->retire, tx->left_ps);
}

void nic_retire_event(struct sim *sim, struct sim_event *event)
{
    struct nic *nic = SIM_CONTAINER(event, struct nic, retire);
    (void)sim;
    transmit(nic);
}

/* PAUSE. What leaves later than the pending event says is found not to have left. */
void nic_retime(struct ether_port *port, struct ether_frame *frame, sim_time left_ps)
{
    struct nic *nic = nic_of(port->model);
    if (frame != NULL)
        ((struct nic_tx *)frame->cookie)->left_ps = left_ps;
    else
        transmit(nic);
}

/* ---- Packets --------------------------------------------------------------------------------- */

/* Removes what has been used from the head of the queue's stream. */
static void drop_chunk(struct nic_sq *sq)
{
    struct nic_chunk *chunk = sq->chunk_head;
    sq->chunk_head = chunk->next;
    if (sq->chunk_head == NULL)
        sq->chunk_tail = &sq->chunk_head;
    sim_pool_put(sq->function->nic->chunks, chunk);
}

static void take_payload(struct nic_sq *sq, struct ether_frame *frame, uint32_t bytes)
{
    sq->ready_bytes -= bytes;
    while (bytes != 0) {
        struct nic_chunk *chunk = sq->chunk_head;
        uint32_t n = SIM_MIN(bytes, chunk->bytes - chunk->used);
        if (!payload_slice(&frame->payload, &chunk->payload, chunk->used, n))
            sim_fail(sq->function->nic->model->sim,
                     "%s: a packet of send queue %u.%u holds more than %u streams of payload",
                     sq->function->nic->model->name, sq->function->idx, sq->number,
                     PAYLOAD_EXTENTS_MAX);
        chunk->used += n;
        bytes -= n;
        if (chunk->used == chunk->bytes)
            drop_chunk(sq);
    }
}

static void set_checksums(struct ether_frame *frame, uint8_t wanted)
{
    struct ether_packet packet;
    ether_packet_parse(frame->header, frame->header_bytes, &packet);
    if ((wanted & NIC_CHECKSUM_L3) != 0 && packet.ipv4)
        ether_ipv4_checksum_set(frame->header, &packet);
    if ((wanted & NIC_CHECKSUM_L4) != 0 && packet.l4)
        ether_l4_checksum_set(frame, &packet);
}

/* The packet's data is here. */
static void send_packet(struct nic_sq *sq, struct nic_tx *tx)
{
    struct nic *nic = sq->function->nic;
    struct nic_function *function = sq->function;
    struct ether_frame *frame = tx->frame;
    take_payload(sq, frame, tx->payload_bytes);
    if (tx->checksum != 0)
        set_checksums(frame, tx->checksum);
    function->stats.tx_packets++;
    function->stats.tx_bytes += tx->bytes;
    tx->frame = NULL;
    frame->cookie = tx;
    tx->left_ps = ether_port_send(nic->port, frame, nic_now(nic) + nic->params.transmit_ps);
    tx->next = NULL;
    *nic->sent_tail = tx;
    nic->sent_tail = &tx->next;
    if (tx->completion)
        schedule_retire(nic, false);
}

static struct nic_tx *take_packet(struct nic_sq *sq)
{
    struct nic_tx *tx = sq->tx_head;
    sq->tx_head = tx->next;
    if (sq->tx_head == NULL)
        sq->tx_tail = &sq->tx_head;
    return tx;
}

static void send_ready(struct nic_sq *sq)
{
    while (sq->tx_head != NULL && sq->ready_bytes >= sq->tx_head->payload_bytes)
        send_packet(sq, take_packet(sq));
}

/* Something of it cannot be had: one error completion, what waits is thrown away, nothing more is
 * sent until the driver makes the queue anew. */
static void fail_queue(struct nic_sq *sq, uint16_t wqe_index)
{
    struct nic *nic = sq->function->nic;
    if (sq->failed)
        return;
    sq->failed = true;
    sq->open = false;
    nic->stats.tx_errors++;
    nic_complete(sq->function, sq->cq, sq->number, wqe_index, NIC_CQE_ERROR);
}

/* Of a failed queue: packets and data that are here. */
static void throw_away(struct nic_sq *sq)
{
    struct nic *nic = sq->function->nic;
    while (sq->tx_head != NULL) {
        struct nic_tx *tx = take_packet(sq);
        nic->tx_bytes -= tx->bytes;
        ether_frame_free(nic->model, tx->frame);
        sim_pool_put(nic->txs, tx);
    }
    while (sq->chunk_head != NULL && sq->chunk_head->done)
        drop_chunk(sq);
    sq->ready_bytes = 0;
}

static void chunk_done(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct nic_chunk *chunk = SIM_CONTAINER(request, struct nic_chunk, request);
    struct nic_sq *sq = chunk->sq;
    struct nic *nic = sq->function->nic;
    chunk->done = true;
    chunk->through->data_in_flight -= chunk->bytes;
    sq->n_ending++;
    if (SIM_UNLIKELY(status != PCIE_DMA_OK))
        fail_queue(sq, sq->tx_head != NULL ? sq->tx_head->wqe_index : sq->wqe.index);
    else if (SIM_UNLIKELY(
                 !payload_gather(&chunk->payload, chunk->buffer, request->iova.v, chunk->bytes)))
        sim_fail(nic->model->sim, "%s: data at 0x%llx holds more than %u streams of payload",
                 nic->model->name, (unsigned long long)request->iova.v, PAYLOAD_EXTENTS_MAX);
    while (sq->chunk_missing != NULL && sq->chunk_missing->done) {
        sq->ready_bytes += sq->chunk_missing->bytes;
        sq->chunk_missing = sq->chunk_missing->next;
    }
    if (SIM_UNLIKELY(sq->failed))
        throw_away(sq);
    else
        send_ready(sq);
    sq->n_ending--;
    if (SIM_UNLIKELY(sq->closing))
        nic_command_quiet(sq->function);
    transmit(nic);
}

/* ---- From a WQE to packets ------------------------------------------------------------------- */

/* Which function a data segment is read through: this one, or the one that the hint names if it is
 * there. */
static struct nic_function *through(const struct nic_sq *sq, const struct nic_wqe_data *data)
{
    struct nic *nic = sq->function->nic;
    unsigned hint = data->function_hint;
    if (hint == 0 || nic_is_vf(sq->function) || hint > nic->params.n_functions ||
        nic_is_gone(&nic->function[hint - 1]))
        return sq->function;
    return &nic->function[hint - 1];
}

/* Reads the next piece of the WQE's data: at least up to `to` of its payload, to the end of that
 * line, as far as the segment and a chunk go. */
static void read_chunk(struct nic_sq *sq, uint32_t to)
{
    struct nic_wqe *wqe = &sq->wqe;
    const struct nic_wqe_data *data = &wqe->data[wqe->data_idx];
    struct nic_chunk *chunk = sim_pool_get(sq->function->nic->chunks);
    uint64_t iova = data->iova + wqe->data_offset;
    uint64_t end = (iova + (to - wqe->covered_bytes) + LINE_BYTES - 1) & ~(LINE_BYTES - 1);
    uint32_t bytes = (uint32_t)SIM_MIN(end - iova, NIC_CHUNK_BYTES - (iova & (LINE_BYTES - 1)));
    bytes = SIM_MIN(bytes, data->bytes - wqe->data_offset);
    wqe->covered_bytes += bytes;
    wqe->data_offset += bytes;
    if (wqe->data_offset == data->bytes) {
        wqe->data_idx++;
        wqe->data_offset = 0;
    }
    chunk->sq = sq;
    chunk->through = through(sq, data);
    chunk->next = NULL;
    chunk->bytes = bytes;
    chunk->used = 0;
    chunk->done = false;
    chunk->payload.bytes = chunk->payload.n = 0;
    chunk->request = (struct pcie_dma_request){ .iova = { iova },
                                                .bytes = bytes,
                                                .buffer = chunk->buffer,
                                                .bulk = true,
                                                .whole_lines = true,
                                                .independent = true,
                                                .done = chunk_done };
    *sq->chunk_tail = chunk;
    sq->chunk_tail = &chunk->next;
    if (sq->chunk_missing == NULL)
        sq->chunk_missing = chunk;
    chunk->through->data_in_flight += bytes;
    nic_dma_read(chunk->through, &chunk->request);
}

/* What differs between the segments of one WQE: lengths, IP identification, TCP sequence number,
 * and flags: FIN and PSH on the last, CWR on the first. */
static void rewrite_headers(const struct nic_wqe *wqe, struct ether_frame *frame,
                            uint32_t payload_bytes)
{
    struct ether_packet packet;
    uint8_t *h = frame->header;
    ether_packet_parse(h, frame->header_bytes, &packet);
    if (!packet.l4 || packet.flow.protocol != IP_PROTOCOL_TCP)
        return;
    uint8_t *ip = h + packet.l3_offset, *tcp = h + packet.l4_offset;
    bool last = wqe->issued_bytes + payload_bytes == wqe->payload_bytes;
    ether_put16(ip + 2, (uint16_t)(frame->header_bytes - packet.l3_offset + payload_bytes));
    ether_put16(ip + 4, (uint16_t)(ether_get16(ip + 4) + wqe->n_segments_made));
    ether_put32(tcp + 4, ether_get32(tcp + 4) + wqe->issued_bytes);
    if (!last)
        tcp[13] &= (uint8_t) ~(TCP_FLAG_FIN | TCP_FLAG_PSH);
    if (wqe->n_segments_made != 0)
        tcp[13] &= (uint8_t)~TCP_FLAG_CWR;
}

static struct ether_frame *make_frame(struct nic_sq *sq, uint32_t payload_bytes)
{
    struct nic_wqe *wqe = &sq->wqe;
    struct ether_frame *frame = ether_frame_new(sq->function->nic->model);
    frame->header_bytes = wqe->inline_bytes;
    memcpy(frame->header,
           wqe->bytes + sizeof(struct nic_wqe_control) +
               offsetof(struct nic_wqe_ethernet, inline_start),
           wqe->inline_bytes);
    if (wqe->segment_bytes < wqe->payload_bytes)
        rewrite_headers(wqe, frame, payload_bytes);
    return frame;
}

/* Makes the next packet of the open WQE: its data is asked for. */
static void issue_packet(struct nic_sq *sq)
{
    struct nic *nic = sq->function->nic;
    struct nic_wqe *wqe = &sq->wqe;
    uint32_t bytes = SIM_MIN(wqe->segment_bytes, wqe->payload_bytes - wqe->issued_bytes);
    struct nic_tx *tx = sim_pool_get(nic->txs);
    *tx = (struct nic_tx){ .function = sq->function,
                           .frame = make_frame(sq, bytes),
                           .payload_bytes = bytes,
                           .bytes = wqe->inline_bytes + bytes,
                           .sq = sq->number,
                           .cq = sq->cq,
                           .wqe_index = wqe->index,
                           .checksum = wqe->checksum };
    nic->tx_bytes += tx->bytes;
    nic->stats.tx_buffer_max = SIM_MAX(nic->stats.tx_buffer_max, nic->tx_bytes);
    nic->stats.tx_segments += wqe->segment_bytes < wqe->payload_bytes;
    wqe->issued_bytes += bytes;
    wqe->n_segments_made++;
    if (wqe->issued_bytes == wqe->payload_bytes) {
        tx->completion = (wqe->flags & NIC_WQE_COMPLETION) != 0;
        sq->open = false;
    }
    *sq->tx_tail = tx;
    sq->tx_tail = &tx->next;
    while (wqe->covered_bytes < wqe->issued_bytes && !sq->failed)
        read_chunk(sq, wqe->issued_bytes);
}

/* ---- WQEs ------------------------------------------------------------------------------------ */

static const uint8_t *block_at(const struct nic_sq *sq, unsigned block)
{
    unsigned mask = sq->function->nic->params.prefetch_blocks - 1;
    return sq->cache + (size_t)(block & mask) * NIC_WQE_BLOCK_BYTES;
}

/* Decodes what lies in wqe->bytes. False: no driver of ours wrote that. */
static bool decode(struct nic_sq *sq, const struct nic_wqe_control *control)
{
    struct nic_wqe *wqe = &sq->wqe;
    const struct nic_wqe_ethernet *ethernet =
        (const struct nic_wqe_ethernet *)(const void *)(wqe->bytes + sizeof(*control));
    unsigned inline_units = ethernet->inline_bytes <= 2 ? 0
                                                        : (ethernet->inline_bytes - 2u + 15u) / 16u;
    unsigned headers = 2 + inline_units;
    if (ethernet->inline_bytes > ETHER_HEADER_BYTES_MAX || ethernet->inline_bytes < 14 ||
        control->n_segments < headers ||
        (control->opcode == NIC_OP_TSO && ethernet->segment_bytes == 0))
        return false;
    wqe->index = control->index;
    wqe->flags = control->flags;
    wqe->checksum = ethernet->checksum;
    wqe->inline_bytes = ethernet->inline_bytes;
    wqe->n_data = (uint8_t)(control->n_segments - headers);
    wqe->data = (const struct nic_wqe_data *)(const void *)(wqe->bytes + (size_t)headers * 16);
    wqe->payload_bytes = wqe->issued_bytes = wqe->covered_bytes = 0;
    wqe->data_idx = 0;
    wqe->data_offset = 0;
    wqe->n_segments_made = 0;
    for (unsigned i = 0; i < wqe->n_data; i++) {
        if (wqe->data[i].bytes == 0)
            return false;
        wqe->payload_bytes += wqe->data[i].bytes;
    }
    wqe->segment_bytes = control->opcode == NIC_OP_TSO ? ethernet->segment_bytes
                                                       : wqe->payload_bytes;
    uint32_t packet = wqe->inline_bytes + SIM_MIN(wqe->segment_bytes, wqe->payload_bytes);
    return packet <= sq->function->nic->params.mtu_bytes + 14;
}

/* Takes the next WQE if it is here, all of it. False: not yet, or the queue has failed. */
static bool open_wqe(struct nic_sq *sq)
{
    while (sq->fetched != sq->next) {
        struct nic_wqe_control control;
        memcpy(&control, block_at(sq, sq->next), sizeof(control));
        unsigned n = (control.n_segments + 3u) / 4u;
        bool known = control.opcode == NIC_OP_SEND || control.opcode == NIC_OP_TSO ||
                     control.opcode == NIC_OP_NOP;
        if (!known || n == 0 || n > NIC_WQE_BLOCKS_MAX) {
            fail_queue(sq, sq->next);
            return false;
        }
        if ((uint16_t)(sq->fetched - sq->next) < n)
            return false;
        for (unsigned i = 0; i < n; i++)
            memcpy(sq->wqe.bytes + (size_t)i * NIC_WQE_BLOCK_BYTES, block_at(sq, sq->next + i),
                   NIC_WQE_BLOCK_BYTES);
        uint16_t index = sq->next;
        sq->next = (uint16_t)(sq->next + n);
        fetch_wqes(sq);
        if (sq->failed)
            return false;
        if (control.opcode == NIC_OP_NOP)
            continue;
        if (!decode(sq, &control)) {
            fail_queue(sq, index);
            return false;
        }
        sq->open = true;
        return true;
    }
    return false;
}

/* ---- Fetching WQEs --------------------------------------------------------------------------- */

static void activate(struct nic_sq *sq)
{
    struct nic_function *function = sq->function;
    if (sq->active || sq->failed || sq->closing)
        return;
    sq->active = true;
    sq->next_active = NULL;
    *function->active_tail = sq;
    function->active_tail = &sq->next_active;
}

static void fetch_done(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct nic_fetch *done = SIM_CONTAINER(request, struct nic_fetch, request);
    struct nic_sq *sq = done->queue;
    done->done = true;
    done->status = (uint8_t)status;
    sq->n_ending++;
    while (sq->n_fetches != 0 && sq->fetch[sq->fetch_first].done) {
        const struct nic_fetch *fetch = &sq->fetch[sq->fetch_first];
        const bool failed = fetch->status != PCIE_DMA_OK;
        const uint16_t index = sq->fetched;
        sq->fetched = (uint16_t)(index + fetch->n);
        sq->fetch_first = (sq->fetch_first + 1) % NIC_SQ_FETCHES;
        sq->n_fetches--;
        if (failed) /* its completion may end other fetches: they come by here within it */
            fail_queue(sq, index);
    }
    sq->n_ending--;
    if (SIM_UNLIKELY(sq->closing)) {
        nic_command_quiet(sq->function);
        return;
    }
    fetch_wqes(sq);
    activate(sq);
    transmit(sq->function->nic);
}

/* As many as are posted and the cache holds, in pieces that do not wrap. */
static void fetch_wqes(struct nic_sq *sq)
{
    unsigned cache_blocks = sq->function->nic->params.prefetch_blocks;
    while (sq->n_fetches < NIC_SQ_FETCHES && sq->asked != sq->doorbell && !sq->failed &&
           !sq->closing) {
        unsigned n = (uint16_t)(sq->doorbell - sq->asked);
        unsigned slot = sq->asked & ((1u << sq->log) - 1);
        unsigned room = cache_blocks - (uint16_t)(sq->asked - sq->next);
        n = SIM_MIN(n, SIM_MIN(room, (1u << sq->log) - slot));
        n = SIM_MIN(n, cache_blocks - (sq->asked & (cache_blocks - 1)));
        if (n == 0)
            return;
        struct nic_fetch *fetch = &sq->fetch[(sq->fetch_first + sq->n_fetches++) % NIC_SQ_FETCHES];
        fetch->queue = sq;
        fetch->n = (uint16_t)n;
        fetch->done = false;
        fetch->request = (struct pcie_dma_request){
            .iova = { sq->iova + (uint64_t)slot * NIC_WQE_BLOCK_BYTES },
            .bytes = (uint64_t)n * NIC_WQE_BLOCK_BYTES,
            .buffer = sq->cache + (size_t)(sq->asked & (cache_blocks - 1)) * NIC_WQE_BLOCK_BYTES,
            .independent = true,
            .done = fetch_done,
        };
        sq->asked = (uint16_t)(sq->asked + n);
        sq->function->stats.tx_wqes += n;
        nic_dma_read(sq->function, &fetch->request);
    }
}

void nic_sq_doorbell(struct nic_sq *sq, uint16_t producer)
{
    bool nowhere_to = !ether_port_connected(sq->function->nic->port);
    if ((uint16_t)(producer - sq->next) > 1u << sq->log || nowhere_to) {
        sq->function->nic->stats.bad_doorbells++;
        return;
    }
    sq->doorbell = producer;
    fetch_wqes(sq);
}

/* ---- In turn --------------------------------------------------------------------------------- */

static bool window_open(const struct nic_function *function)
{
    const struct nic_params *params = &function->nic->params;
    uint32_t reads = params->pcie.dma.read_tlps_max != 0 ? params->pcie.dma.read_tlps_max
                                                         : PCIE_DMA_TAGS;
    reads = reads > READS_KEPT ? reads - READS_KEPT : 1;
    return function->data_in_flight < reads * cfg_mrrs_bytes(&function->pcie.cfg);
}

/* The function whose turn it is: one that has an active queue and may ask for more data. */
static struct nic_function *next_function(struct nic *nic)
{
    for (uint32_t i = 0; i < nic->n_all; i++) {
        struct nic_function *function = nic->all[nic->next_function];
        nic->next_function = nic->next_function + 1 < nic->n_all ? nic->next_function + 1 : 0;
        if (function->active_head != NULL && window_open(function))
            return function;
    }
    return NULL;
}

/* One packet of the function's next queue. */
static void serve(struct nic_function *function)
{
    struct nic_sq *sq = function->active_head;
    function->active_head = sq->next_active;
    if (function->active_head == NULL)
        function->active_tail = &function->active_head;
    sq->active = false;
    if (sq->failed || sq->closing || (!sq->open && !open_wqe(sq)))
        return;
    issue_packet(sq);
    send_ready(sq);
    if (sq->open || sq->fetched != sq->next)
        activate(sq);
}

static void transmit(struct nic *nic)
{
    struct nic_function *function;
    if (nic->sending)
        return; /* reads may end within their submission */
    nic->sending = true;
    retire(nic);
    bool full = false;
    while (!(full = nic->tx_bytes >= nic->params.tx_buffer_bytes) &&
           (function = next_function(nic)) != NULL)
        serve(function);
    nic->sending = false;
    schedule_retire(nic, full);
}

/* ---- Life ------------------------------------------------------------------------------------ */

void nic_sq_init(struct nic_sq *sq)
{
    sq->tx_tail = &sq->tx_head;
    sq->chunk_tail = &sq->chunk_head;
    sq->cache = sim_zalloc(sq->function->nic->params.prefetch_blocks, NIC_WQE_BLOCK_BYTES);
}

void nic_sq_close(struct nic_sq *sq)
{
    struct nic_function *function = sq->function;
    struct nic_sq **link = &function->active_head;
    sq->closing = true;
    if (!sq->active)
        return;
    while (*link != sq)
        link = &(*link)->next_active;
    *link = sq->next_active;
    function->active_tail = &function->active_head;
    while (*function->active_tail != NULL)
        function->active_tail = &(*function->active_tail)->next_active;
    sq->active = false;
}

void nic_sq_free(struct nic_sq *sq)
{
    throw_away(sq);
    while (sq->chunk_head != NULL) /* a run that ended early */
        drop_chunk(sq);
    free(sq->cache);
    free(sq);
}

void nic_transmit_release(struct nic *nic)
{
    sim_cancel(nic->model->sim, &nic->retire);
    while (nic->sent_head != NULL) {
        struct nic_tx *tx = nic->sent_head;
        nic->sent_head = tx->next;
        sim_pool_put(nic->txs, tx);
    }
}

/* Its packets that are on the wire know its number only. */
bool nic_sq_quiet(const struct nic_sq *sq)
{
    return sq->n_fetches == 0 && sq->tx_head == NULL && sq->chunk_missing == NULL &&
           sq->n_ending == 0;
}
