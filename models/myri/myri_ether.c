/*
 * The Ethernet firmware of myri.myri10g: rings, completions, the choice of a receive queue.
 *
 * Models: a send queue; a slice, or eight, with two rings of buffers each: small ones for short
 *   packets, big ones, of which a long packet takes several. With several slices the receive queue
 *   is that of the destination endpoint of an Open-MX packet, or goes by the ports of TCP and UDP
 *   through a table, or is the first.
 * Does not model: segmentation of TCP, Toeplitz hashes, send queues beside the first, VLANs.
 * Timing: that of myri_send.c and myri_receive.c.
 * Sources: Linux, drivers/net/myri10ge; Goglin, "NIC-assisted Cache-Efficient Receive Stack for
 *   Message Passing over Ethernet" (the hash of the endpoint).
 */
#include "models/myri/myri_internal.h"

#include <stdlib.h>
#include <string.h>

#include "hw/mx_wire.h"

/* ---- Sending --------------------------------------------------------------------------------- */

static void packet_left(struct myri *nic, struct myri_tx *tx)
{
    struct myri_ether *ether = &nic->ether;
    (void)tx;
    ether->send_done++;
    myri_interrupt_try(&ether->slice[0]);
}

/* What follows up to the next first segment makes no sense. */
static void refuse(struct myri *nic)
{
    struct myri_send_queue *queue = &nic->ether.send;
    nic->stats.bad_requests++;
    if (queue->tx != NULL)
        myri_tx_free(nic, queue->tx);
    queue->tx = NULL;
}

static void send_request(struct myri *nic, const struct myri_send *request)
{
    struct myri_send_queue *queue = &nic->ether.send;
    const uint32_t bytes = myri_be16(request->bytes);
    if ((request->flags & MYRI_SEND_FIRST) != 0) {
        if (queue->tx != NULL)
            refuse(nic);
        queue->tx = myri_tx_new(nic);
        queue->tx->header_in_host = true;
        queue->tx->sent = packet_left;
        queue->n_wanted = request->n_segments;
    }
    struct myri_tx *tx = queue->tx;
    if (tx == NULL || bytes == 0 || tx->bytes + bytes > MYRI_MTU_MAX ||
        tx->n_segments == MYRI_SEND_MAX || queue->n_wanted == 0) {
        refuse(nic);
        return;
    }
    struct myri_segment *segment = &tx->segment[tx->n_segments++];
    segment->iova = (uint64_t)myri_be32(request->high) << 32 | myri_be32(request->low);
    segment->bytes = bytes;
    tx->bytes += bytes;
    tx->checksums |= (request->flags & MYRI_SEND_CHECKSUM) != 0;
    if (tx->n_segments < queue->n_wanted)
        return;
    queue->tx = NULL;
    myri_tx_submit(nic, tx, nic->params.send_ps);
}

void myri_ether_send_line(struct myri *nic, unsigned slice, const uint8_t *line, unsigned n)
{
    struct myri_send request[MYRI_SENDS_PER_LINE];
    memcpy(request, line, sizeof(request));
    if (!nic->up || slice != 0) {
        nic->stats.bad_requests++;
        return;
    }
    for (unsigned i = 0; i < n; i++)
        send_request(nic, &request[i]);
}

/* ---- Receive buffers ------------------------------------------------------------------------- */

void myri_ether_receive_line(struct myri_ring *ring, const uint8_t *line)
{
    struct myri_receive buffer[MYRI_RECEIVES_PER_LINE];
    memcpy(buffer, line, sizeof(buffer));
    for (unsigned i = 0; i < MYRI_RECEIVES_PER_LINE; i++)
        ring->iova[ring->posted++ & ring->mask] = (uint64_t)myri_be32(buffer[i].high) << 32 |
                                                  myri_be32(buffer[i].low);
}

/* Takes buffers for a frame; their number, or 0: there are too few. */
static unsigned take_buffers(struct myri_slice *slice, uint32_t bytes, struct myri_piece *piece)
{
    struct myri_ether *ether = &slice->nic->ether;
    const bool is_small = bytes <= ether->small_bytes;
    struct myri_ring *ring = is_small ? &slice->small : &slice->big;
    const uint32_t whole = MYRI_PAD_BYTES + bytes, size = is_small ? whole : ether->big_bytes;
    const unsigned n = (whole + size - 1) / size;
    if (n > MYRI_PIECES_MAX || ring->posted - ring->used < n) {
        slice->nic->stats.rx_no_buffer++;
        *(is_small ? &ether->no_small : &ether->no_big) += 1;
        return 0;
    }
    for (unsigned i = 0; i < n; i++)
        piece[i] = (struct myri_piece){ .iova = ring->iova[ring->used++ & ring->mask],
                                        .bytes = SIM_MIN(size, whole - i * size) };
    return n;
}

/* ---- Receiving ------------------------------------------------------------------------------- */

static unsigned slice_of(const struct myri *nic, const struct ether_frame *frame,
                         const struct ether_packet *packet)
{
    const struct myri_ether *ether = &nic->ether;
    if (!ether->steering || ether->n_slices == 1)
        return 0;
    if (packet->type == MX_ETHER_TYPE && frame->header_bytes >= MX_HEAD_BYTES + 16)
        return ether->table[mx_packet_endpoint(frame->header) % ether->table_entries];
    if (packet->l4)
        return ether->table[(packet->flow.source_port + packet->flow.destination_port) %
                            ether->table_entries];
    return 0;
}

/* Ones' complement sum of all behind the Ethernet header. Of TCP and UDP that is the sum of what
 * ether_l4_checksum() complements, less the pseudo header, as the IPv4 header adds up to
 * nothing. */
static uint16_t checksum_of(const struct ether_frame *frame, const struct ether_packet *packet)
{
    if (!packet->l4)
        return 0;
    const uint64_t ip = ether_ipv4_checksum(frame->header, packet);
    const uint32_t l4_bytes = frame->header_bytes - packet->l4_offset + frame->payload.bytes;
    const struct ether_flow *flow = &packet->flow;
    uint64_t pseudo = (uint64_t)flow->source_ip + flow->destination_ip + flow->protocol + l4_bytes;
    uint64_t sum = (uint16_t)~ether_l4_checksum(frame, packet);
    while (pseudo >> 16 != 0)
        pseudo = (pseudo & 0xffff) + (pseudo >> 16);
    sum += (uint16_t)~pseudo + (ip != 0 ? (uint16_t)~ip : 0u);
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

void myri_ether_deliver(struct myri *nic, struct myri_rx *rx)
{
    struct myri_ether *ether = &nic->ether;
    struct myri_piece piece[MYRI_PIECES_MAX];
    struct ether_packet packet;
    ether_packet_parse(rx->frame->header, rx->frame->header_bytes, &packet);
    struct myri_slice *slice = &ether->slice[slice_of(nic, rx->frame, &packet) % ether->n_slices];
    const unsigned n = take_buffers(slice, rx->bytes, piece);
    if (n == 0) {
        myri_rx_drop(rx);
        return;
    }
    const struct myri_slot slot = { .checksum = myri_be16(checksum_of(rx->frame, &packet)),
                                    .bytes = myri_be16((uint16_t)rx->bytes) };
    const uint32_t entries = ether->queue_bytes / MYRI_SLOT_BYTES;
    myri_rx_write(rx, piece, n, true, 0);
    myri_post(nic, slice->queue_iova + (uint64_t)(slice->queue_next++ % entries) * MYRI_SLOT_BYTES,
              &slot, sizeof(slot));
    slice->received = true;
    myri_interrupt_try(slice);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void ring_init(struct myri_ring *ring, uint32_t entries)
{
    ring->iova = sim_zalloc(entries, sizeof(*ring->iova));
    ring->mask = entries - 1;
}

void myri_ether_init(struct myri *nic)
{
    for (unsigned i = 0; i < MYRI_SLICES_MAX; i++) {
        struct myri_slice *slice = &nic->ether.slice[i];
        slice->nic = nic;
        slice->number = i;
        ring_init(&slice->small, nic->params.ring_entries);
        ring_init(&slice->big, nic->params.ring_entries);
        myri_interrupt_init(slice);
    }
    myri_ether_reset(nic);
}

/* As after MYRI_RESET. */
void myri_ether_reset(struct myri *nic)
{
    struct myri_ether *ether = &nic->ether;
    if (ether->send.tx != NULL)
        myri_tx_free(nic, ether->send.tx);
    ether->send.tx = NULL;
    for (unsigned i = 0; i < MYRI_SLICES_MAX; i++) {
        struct myri_slice *slice = &ether->slice[i];
        slice->small.posted = slice->small.used = slice->big.posted = slice->big.used = 0;
        slice->queue_iova = slice->status_iova = 0;
        slice->queue_next = 0;
        myri_interrupt_reset(slice);
    }
    ether->n_slices = ether->table_entries = 1;
    ether->queue_bytes = ether->small_bytes = ether->big_bytes = ether->mtu_bytes = 0;
    ether->coalescing_us = ether->send_done = ether->send_told = 0;
    ether->no_small = ether->no_big = 0;
    ether->steering = false;
    ether->link_changed = true;
}

void myri_ether_release(struct myri *nic)
{
    for (unsigned i = 0; i < MYRI_SLICES_MAX; i++) {
        struct myri_slice *slice = &nic->ether.slice[i];
        sim_cancel(nic->model->sim, &slice->timer);
        free(slice->small.iova);
        free(slice->big.iova);
    }
    if (nic->ether.send.tx != NULL)
        myri_tx_free(nic, nic->ether.send.tx);
}
