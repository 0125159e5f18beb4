/*
 * The receive side of nic.ethernet.
 *
 * Models: the multi-PF switch (by destination MAC, or by 5-tuple with a default function), the flow
 *   table of each function (ARFS), RSS, rules by words of the headers for packets other than
 *   IPv4's, checks of checksums, an on-chip buffer that overflows, receive WQEs fetched ahead in
 *   batches, doorbell records read when few buffers are known, drops when none is posted, headers
 *   written as real bytes and payload as tags, the completion behind the data (LRO: nic_lro.c);
 *   PAUSE before the buffer overflows, which stops the senders to all functions.
 * Does not model: per-priority buffers, header split, striding buffers, parsing of anything but
 *   IPv4.
 * Timing: unloaded, the first byte of the packet goes to the link receive_latency after its last
 * bit came in (the wire adds that, ether.h); packets are stored whole. If no WQE is on the chip: a
 * read of the doorbell record, a read of WQEs. Loaded: the PCIe link's writes. Sources:
 * docs/sources.md#a5; Microsoft's RSS; IOctopus, section 4 (the switch by 5-tuple).
 */
#include <stdlib.h>
#include <string.h>

#include "models/nic/nic_internal.h"

static void pump(struct nic_rq *rq);

/* ---- The buffer on the chip ------------------------------------------------------------------ */

static inline void buffer_take(struct nic *nic, uint32_t bytes)
{
    ether_buffer_take(&nic->rx_buffer, bytes);
    nic->stats.rx_buffer_max = SIM_MAX(nic->stats.rx_buffer_max, nic->rx_buffer.used_bytes);
}

/* ---- The way into memory --------------------------------------------------------------------- */

/* The last of it was handed to the link: its place on the chip is free. */
static void data_written(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct nic_rx *rx = SIM_CONTAINER(request, struct nic_rx, data);
    struct nic *nic = rx->function->nic;
    (void)status;
    ether_buffer_give_back(&nic->rx_buffer, rx->bytes);
    if (rx->alone) {
        sim_pool_put(nic->rx_buffers, rx->buffer);
        sim_pool_put(nic->rxs, rx);
    }
}

static void completion_written(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct nic_rx *rx = SIM_CONTAINER(request, struct nic_rx, completion);
    struct nic *nic = rx->function->nic;
    (void)status;
    sim_pool_put(nic->rx_buffers, rx->buffer);
    sim_pool_put(nic->rxs, rx);
}

/* Lays the frame out as it will lie at the address: real header bytes; of the TLPs that begin
 * before their end all bytes, zeros between the tags. */
static void lay_out(struct nic_rx *rx, const struct ether_frame *frame, uint64_t iova,
                    uint32_t tlp_bytes_max)
{
    uint32_t whole = SIM_MIN(rx->bytes, tlp_bytes_max + frame->header_bytes);
    memcpy(rx->buffer, frame->header, frame->header_bytes);
    memset(rx->buffer + frame->header_bytes, 0, whole - frame->header_bytes);
    payload_scatter(&frame->payload, 0, frame->payload.bytes, rx->buffer + frame->header_bytes,
                    iova + frame->header_bytes);
}

static void write_completion(struct nic_rq *rq, struct nic_rx *rx)
{
    struct nic_function *function = rq->function;
    struct nic_cq *cq = function->cq[rq->cq];
    uint64_t iova = nic_cq_next(cq, &rx->cqe, NIC_CQE_RECEIVED);
    rx->completion = (struct pcie_dma_request){ .iova = { iova },
                                                .bytes = sizeof(rx->cqe),
                                                .buffer = (uint8_t *)&rx->cqe,
                                                .done = completion_written };
    nic_dma_write(function, &rx->completion);
    nic_cq_written(cq);
}

/* Hands the data to the link. */
static void write_data(struct nic_rq *rq, struct nic_rx *rx, uint64_t iova, bool with_headers)
{
    struct nic_function *function = rq->function;
    struct ether_frame *frame = rx->frame;
    uint32_t headers = with_headers ? frame->header_bytes : 0;
    rx->buffer = sim_pool_get(function->nic->rx_buffers);
    if (with_headers)
        lay_out(rx, frame, iova, cfg_mps_bytes(&function->pcie.cfg));
    else
        payload_scatter(&frame->payload, 0, frame->payload.bytes, rx->buffer, iova);
    rx->data = (struct pcie_dma_request){ .iova = { iova },
                                          .bytes = headers + frame->payload.bytes,
                                          .buffer = rx->buffer,
                                          .bulk = true,
                                          .whole_lines = true,
                                          .bulk_from = headers,
                                          .done = data_written };
    ether_frame_free(function->nic->model, frame);
    rx->frame = NULL;
    function->stats.rx_packets++;
    function->stats.rx_bytes += rx->bytes;
    nic_dma_write(function, &rx->data);
}

void nic_rx_write(struct nic_rq *rq, struct nic_rx *rx, uint64_t iova, bool with_headers)
{
    rx->alone = true;
    write_data(rq, rx, iova, with_headers);
}

/* Into the buffer of a WQE. */
static void deliver(struct nic_rq *rq, struct nic_rx *rx, const struct nic_wqe_data *wqe,
                    uint16_t index)
{
    rx->cqe.wqe_index = index;
    rx->cqe.queue = rq->number;
    if (rq->lro != NULL && nic_lro_begin(rq, rx, wqe))
        return;
    if (rq->function->cq[rq->cq] == NULL) { /* the driver destroyed it first */
        nic_rx_write(rq, rx, wqe->iova, true);
        return;
    }
    write_data(rq, rx, wqe->iova, true);
    write_completion(rq, rx);
}

/* ---- Packets that wait for a buffer ---------------------------------------------------------- */

static struct nic_rx *take_waiting(struct nic_rq *rq)
{
    struct nic_rx *rx = rq->rx_head;
    rq->rx_head = rx->next;
    if (rq->rx_head == NULL)
        rq->rx_tail = &rq->rx_head;
    return rx;
}

/* The packet is on its way to memory, or was dropped. */
static void waits_no_longer(struct nic_function *function, unsigned epoch)
{
    if (--function->n_waiting[epoch] == 0)
        nic_command_passed(function);
}

static void throw_away(struct nic_function *function, struct nic_rx *rx)
{
    struct nic *nic = function->nic;
    unsigned epoch = rx->epoch;
    ether_buffer_give_back(&nic->rx_buffer, rx->bytes);
    ether_frame_free(nic->model, rx->frame);
    sim_pool_put(nic->rxs, rx);
    waits_no_longer(function, epoch);
}

static void drop_waiting(struct nic_rq *rq, uint64_t *counter)
{
    while (rq->rx_head != NULL) {
        struct nic_rx *rx = take_waiting(rq);
        *counter += 1;
        throw_away(rq->function, rx);
    }
}

/* The buffer that the packet goes to is too short: the packet is dropped, the buffer is the next's.
 */
static void drop_too_long(struct nic_rq *rq)
{
    rq->function->nic->stats.rx_too_long++;
    throw_away(rq->function, take_waiting(rq));
}

/* ---- Buffers --------------------------------------------------------------------------------- */

/* Its entries or their number cannot be had: one error completion, what waits and what comes is
 * thrown away until the driver makes the queue anew. */
static void fail_queue(struct nic_rq *rq)
{
    if (rq->failed)
        return;
    rq->failed = true;
    nic_complete(rq->function, rq->cq, rq->number, rq->next, NIC_CQE_ERROR);
}

static uint16_t posted_ahead(const struct nic_rq *rq)
{
    return (uint16_t)(rq->posted - rq->asked);
}

static void wqes_here(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct nic_fetch *fetch = SIM_CONTAINER(request, struct nic_fetch, request);
    struct nic_rq *rq = fetch->queue;
    rq->fetching = false;
    if (status == PCIE_DMA_OK)
        rq->fetched = (uint16_t)(rq->fetched + fetch->n);
    else
        fail_queue(rq);
    pump(rq);
}

/* Up to a batch of WQEs, ending on a line where it can. */
static void fetch_wqes(struct nic_rq *rq)
{
    unsigned per_line = LINE_BYTES / NIC_RQ_WQE_BYTES, batch = rq->function->nic->params.rq_batch;
    unsigned slot = rq->asked & ((1u << rq->log) - 1), place = rq->asked % NIC_RQ_CACHE_WQES;
    unsigned room = NIC_RQ_CACHE_WQES - (uint16_t)(rq->asked - rq->next);
    unsigned n = SIM_MIN((unsigned)posted_ahead(rq), batch);
    n = SIM_MIN(n, SIM_MIN(room, (1u << rq->log) - slot));
    n = SIM_MIN(n, NIC_RQ_CACHE_WQES - place);
    if (n > per_line)
        n -= (slot + n) % per_line;
    if (n == 0)
        return;
    rq->fetching = true;
    rq->fetch.queue = rq;
    rq->fetch.n = (uint16_t)n;
    rq->fetch.request = (struct pcie_dma_request){
        .iova = { rq->iova + (uint64_t)slot * NIC_RQ_WQE_BYTES },
        .bytes = (uint64_t)n * NIC_RQ_WQE_BYTES,
        .buffer = (uint8_t *)&rq->cache[place],
        .independent = true,
        .done = wqes_here,
    };
    rq->asked = (uint16_t)(rq->asked + n);
    rq->function->stats.rx_wqes += n;
    nic_dma_read(rq->function, &rq->fetch.request);
}

static void record_here(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct nic_rq *rq = SIM_CONTAINER(request, struct nic_rq, record);
    uint16_t posted = (uint16_t)(rq->record_bytes[0] | rq->record_bytes[1] << 8);
    rq->reading_record = false;
    if (status != PCIE_DMA_OK)
        fail_queue(rq);
    else if ((uint16_t)(posted - rq->next) <= 1u << rq->log)
        rq->posted = posted;
    else
        rq->function->nic->stats.bad_doorbells++;
    /* What waited for this answer got it: there is no buffer. */
    if (posted_ahead(rq) == 0 && !rq->fetching && rq->fetched == rq->next && !rq->failed) {
        uint64_t before = rq->function->stats.rx_no_buffer;
        drop_waiting(rq, &rq->function->stats.rx_no_buffer);
        rq->function->dropped_no_buffer += (uint32_t)(rq->function->stats.rx_no_buffer - before);
    }
    pump(rq);
}

static void read_record(struct nic_rq *rq)
{
    rq->reading_record = true;
    rq->record = (struct pcie_dma_request){ .iova = { rq->record_iova },
                                            .bytes = sizeof(rq->record_bytes),
                                            .buffer = rq->record_bytes,
                                            .independent = true,
                                            .done = record_here };
    nic_dma_read(rq->function, &rq->record);
}

/* Keeps the chip supplied: the next batch once there is room for it, and the record once fewer than
 * two batches are known to be posted. */
static void prefetch(struct nic_rq *rq)
{
    unsigned batch = rq->function->nic->params.rq_batch;
    if (!rq->fetching && posted_ahead(rq) != 0 &&
        (uint16_t)(rq->asked - rq->next) + batch <= NIC_RQ_CACHE_WQES)
        fetch_wqes(rq);
    if (!rq->reading_record && !rq->failed && (uint16_t)(rq->posted - rq->next) < 2 * batch)
        read_record(rq);
}

/* Serves what waits as far as there are WQEs on the chip. Whoever waits when there are none has a
 * fetch or a record's read to wait for. */
static void pump(struct nic_rq *rq)
{
    if (rq->pumping)
        return; /* reads may end within their submission */
    rq->pumping = true;
    while (rq->rx_head != NULL && !rq->failed && !rq->closing) {
        if (rq->lro != NULL && nic_lro_fits(rq, rq->rx_head)) {
            unsigned epoch = rq->rx_head->epoch;
            nic_lro_append(rq, take_waiting(rq));
            waits_no_longer(rq->function, epoch);
            continue;
        }
        if (rq->fetched == rq->next)
            break;
        const struct nic_wqe_data *wqe = &rq->cache[rq->next % NIC_RQ_CACHE_WQES];
        if (rq->rx_head->bytes > wqe->bytes) {
            drop_too_long(rq);
            continue;
        }
        struct nic_rx *rx = take_waiting(rq);
        unsigned epoch = rx->epoch;
        deliver(rq, rx, wqe, rq->next);
        rq->next++;
        waits_no_longer(rq->function, epoch);
        prefetch(rq);
    }
    if (rq->rx_head != NULL && !rq->failed && !rq->closing)
        prefetch(rq);
    if (rq->failed || rq->closing)
        drop_waiting(rq, &rq->function->stats.rx_no_queue);
    rq->pumping = false;
    if (rq->closing)
        nic_command_quiet(rq->function);
}

void nic_rq_init(struct nic_rq *rq)
{
    rq->rx_tail = &rq->rx_head;
    if ((rq->flags & NIC_COMMAND_LRO) != 0)
        nic_lro_init(rq);
}

void nic_rq_close(struct nic_rq *rq)
{
    rq->closing = true;
    drop_waiting(rq, &rq->function->stats.rx_no_queue);
    nic_lro_flush(rq);
}

bool nic_rq_quiet(const struct nic_rq *rq)
{
    return !rq->fetching && !rq->reading_record && !rq->pumping;
}

void nic_rq_free(struct nic_rq *rq)
{
    drop_waiting(rq, &rq->function->stats.rx_no_queue);
    nic_lro_free(rq);
    free(rq);
}

/* ---- Which queue ----------------------------------------------------------------------------- */

/* The function that a flow without a rule goes to. */
static struct nic_function *default_function(struct nic *nic)
{
    struct nic_function *function = &nic->function[nic->default_function];
    for (uint32_t i = 0; nic_is_gone(function) && i < nic->params.n_functions; i++)
        if (!nic_is_gone(&nic->function[i]))
            function = &nic->function[i];
    return function;
}

/* The rule for a packet other than IPv4's. */
static inline const struct nic_match_entry *match_of(const struct nic_match_table *table,
                                                     const struct ether_frame *frame,
                                                     const struct ether_packet *packet)
{
    if (table->n == 0 || packet->type == ETHER_TYPE_IPV4)
        return NULL;
    return nic_match_find(table, packet->type, frame->header, frame->header_bytes);
}

/* NULL: the frame is for nobody here. */
static struct nic_function *multi_pf_switch(struct nic *nic, const struct ether_frame *frame,
                                            const struct ether_packet *packet)
{
    const struct nic_flow_entry *rule;
    bool own = packet->destination_mac == nic->function[0].mac;
    if (nic->params.firmware == NIC_FIRMWARE_STANDARD || !own) { /* octonic: virtual functions */
        struct ether_flow key = nic_mac_key(packet->destination_mac);
        rule = nic_flow_find(&nic->rules, &key);
        nic->stats.switch_hits += rule != NULL;
        return rule != NULL ? nic->all[rule->target] : NULL;
    }
    rule = packet->l4 ? nic_flow_find(&nic->rules, &packet->flow) : NULL;
    if (rule != NULL) {
        nic->stats.switch_hits++;
        return nic->all[rule->target];
    }
    const struct nic_match_entry *match = match_of(&nic->switch_matches, frame, packet);
    if (match != NULL) {
        nic->stats.switch_hits++;
        return nic->all[match->target];
    }
    nic->stats.switch_default++;
    return default_function(nic);
}

static struct nic_rq *queue_of(struct nic_function *function, const struct ether_frame *frame,
                               const struct ether_packet *packet, struct nic_cqe *cqe)
{
    const struct nic_flow_entry *flow = NULL;
    const struct nic_match_entry *match = match_of(&function->matches, frame, packet);
    if (packet->ipv4) {
        cqe->rss_hash = nic_rss_hash(&function->nic->rss, &packet->flow, packet->l4);
        cqe->flags |= NIC_CQE_HASH;
    }
    if (packet->l4)
        flow = nic_flow_find(&function->flows, &packet->flow);
    if (flow != NULL) {
        function->stats.arfs_hits++;
        return function->rq[flow->target];
    }
    if (match != NULL) {
        function->stats.arfs_hits++;
        return function->rq[match->target];
    }
    if (!function->rss_set)
        return NULL;
    function->stats.rss_hits++;
    return function->rq[function->rss_table[cqe->rss_hash & function->rss_mask]];
}

/* Hands the frame to a function: onto the chip, then to its queue. */
static void receive_for(struct nic_function *function, struct ether_frame *frame,
                        const struct ether_packet *packet, uint8_t flags)
{
    struct nic *nic = function->nic;
    struct nic_cqe cqe = { .flags = flags,
                           .segments = 1,
                           .header_bytes = frame->header_bytes,
                           .bytes = frame->header_bytes + frame->payload.bytes,
                           .time_ps = frame->tail_ps };
    struct nic_rq *rq = nic_is_gone(function) ? NULL : queue_of(function, frame, packet, &cqe);
    uint64_t *counter = NULL;
    if (rq == NULL || rq->failed || rq->closing)
        counter = &function->stats.rx_no_queue;
    else if (nic->rx_buffer.used_bytes + cqe.bytes > nic->params.rx_buffer_bytes)
        counter = &function->stats.rx_overflow;
    if (counter != NULL) {
        *counter += 1;
        ether_frame_free(nic->model, frame);
        return;
    }
    struct nic_rx *rx = sim_pool_get(nic->rxs);
    rx->next = NULL;
    rx->frame = frame;
    rx->function = function;
    rx->bytes = cqe.bytes;
    rx->cqe = cqe;
    rx->alone = false;
    rx->epoch = (uint8_t)function->command.epoch;
    function->n_waiting[rx->epoch]++;
    buffer_take(nic, rx->bytes);
    *rq->rx_tail = rx;
    rq->rx_tail = &rx->next;
    pump(rq);
}

/* Every function that has a queue for it gets a copy. */
static void receive_for_all(struct nic *nic, struct ether_frame *frame,
                            const struct ether_packet *packet, uint8_t flags)
{
    for (uint32_t i = 0; i < nic->n_all; i++) {
        struct nic_function *function = nic->all[i];
        bool wanted = nic->params.firmware == NIC_FIRMWARE_STANDARD || nic_is_vf(function)
                          ? function->rss_set && !nic_is_gone(function)
                          : function == default_function(nic);
        if (!wanted)
            continue;
        struct ether_frame *copy = ether_frame_copy(nic->model, frame);
        copy->tail_ps = frame->tail_ps;
        receive_for(function, copy, packet, flags);
    }
    ether_frame_free(nic->model, frame);
}

static bool checksums_right(const struct ether_frame *frame, const struct ether_packet *packet)
{
    return ether_ipv4_checksum(frame->header, packet) == 0 &&
           (!packet->l4 || ether_l4_checksum(frame, packet) == 0);
}

void nic_receive_frame(struct ether_port *port, struct ether_frame *frame)
{
    struct nic *nic = nic_of(port->model);
    struct ether_packet packet;
    uint8_t flags = 0;
    if (frame->header_bytes + frame->payload.bytes > nic->params.mtu_bytes + 14) {
        nic->stats.rx_too_long++;
        ether_frame_free(nic->model, frame);
        return;
    }
    ether_packet_parse(frame->header, frame->header_bytes, &packet);
    if (packet.ipv4 && checksums_right(frame, &packet))
        flags |= NIC_CQE_CHECKSUM_OK;
    else if (packet.ipv4)
        nic->stats.rx_bad_checksum++; /* handed on: software decides */
    if ((packet.destination_mac >> 40 & 1) != 0) {
        receive_for_all(nic, frame, &packet, flags);
        return;
    }
    struct nic_function *function = multi_pf_switch(nic, frame, &packet);
    if (function == NULL) {
        nic->stats.rx_filtered++;
        ether_frame_free(nic->model, frame);
        return;
    }
    receive_for(function, frame, &packet, flags);
}
