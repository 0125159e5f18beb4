/*
 * Sending by myri.myri10g.
 *
 * Models: packets of up to 12 segments, gathered in the SRAM and put on the wire in the order of
 *   their requests; a bound on the SRAM they take, from the first read until the last bit has left;
 *   packets to the adapter's own address, which come back without the wire.
 * Does not model: segmentation of TCP, what padding needs.
 * Timing: from the request: the processor's time for it; reads of all segments, side by side; the
 *   wire. Loaded, the first of: processor, wire, reads in flight, SRAM per time from read to wire.
 * Sources: docs/sources.md#e1; Linux, drivers/net/myri10ge.
 */
#include "models/myri/myri_internal.h"

#include <string.h>

static void pump(struct myri *nic);

struct myri_tx *myri_tx_new(struct myri *nic)
{
    struct myri_tx *tx = sim_pool_get(nic->txs);
    tx->nic = nic;
    tx->next = NULL;
    tx->frame = ether_frame_new(nic->model);
    tx->frame->header_bytes = 0;
    tx->bytes = 0;
    tx->header_in_host = tx->checksums = tx->begun = tx->failed = false;
    tx->n_segments = tx->n_missing = 0;
    tx->sent = NULL;
    nic->n_under_way++;
    return tx;
}

void myri_tx_free(struct myri *nic, struct myri_tx *tx)
{
    if (tx->frame != NULL)
        ether_frame_free(nic->model, tx->frame);
    sim_pool_put(nic->txs, tx);
    nic->n_under_way--;
}

/* Its place in the SRAM is free. */
static void finish(struct myri *nic, struct myri_tx *tx)
{
    nic->tx_used_bytes -= tx->bytes;
    if (tx->sent != NULL)
        tx->sent(nic, tx);
    myri_tx_free(nic, tx);
    pump(nic);
    myri_ended(nic);
}

/* ---- The wire -------------------------------------------------------------------------------- */

static void schedule_retire(struct myri *nic)
{
    const struct myri_tx *tx = nic->sent_head;
    if (tx == NULL || tx->left_ps == SIM_TIME_MAX || sim_event_pending(&nic->retire))
        return;
    sim_schedule(nic->model->sim, &nic->retire, SIM_MAX(tx->left_ps, myri_now(nic)));
}

void myri_send_retire(struct sim *sim, struct sim_event *event)
{
    struct myri *nic = SIM_CONTAINER(event, struct myri, retire);
    (void)sim;
    while (nic->sent_head != NULL && nic->sent_head->left_ps <= myri_now(nic)) {
        struct myri_tx *tx = nic->sent_head;
        nic->sent_head = tx->next;
        if (nic->sent_head == NULL)
            nic->sent_tail = &nic->sent_head;
        finish(nic, tx);
    }
    schedule_retire(nic);
}

/* PAUSE. What leaves later than the pending event says is found not to have left. */
void myri_retime(struct ether_port *port, struct ether_frame *frame, sim_time left_ps)
{
    struct myri *nic = myri_of(port->model);
    if (frame != NULL)
        ((struct myri_tx *)frame->cookie)->left_ps = left_ps;
    else
        schedule_retire(nic);
}

static void to_wire(struct myri *nic, struct myri_tx *tx)
{
    struct ether_frame *frame = tx->frame;
    nic->stats.tx_packets++;
    nic->stats.tx_bytes += tx->bytes;
    tx->frame = NULL;
    if (ether_get_mac(frame->header) == nic->mac) {
        nic->stats.loopback++;
        frame->tail_ps = myri_now(nic);
        finish(nic, tx);
        myri_take_frame(nic, frame);
    } else if (!ether_port_connected(nic->port)) {
        ether_frame_free(nic->model, frame);
        finish(nic, tx);
    } else {
        frame->cookie = tx;
        tx->left_ps = ether_port_send(nic->port, frame, myri_now(nic));
        tx->next = NULL;
        *nic->sent_tail = tx;
        nic->sent_tail = &tx->next;
        schedule_retire(nic);
    }
}

/* ---- What is gathered ------------------------------------------------------------------------ */

static void set_checksums(struct ether_frame *frame)
{
    struct ether_packet packet;
    ether_packet_parse(frame->header, frame->header_bytes, &packet);
    if (packet.ipv4)
        ether_ipv4_checksum_set(frame->header, &packet);
    if (packet.l4)
        ether_l4_checksum_set(frame, &packet);
}

static void build_frame(struct myri *nic, struct myri_tx *tx)
{
    struct ether_frame *frame = tx->frame;
    uint32_t at = 0;
    for (unsigned i = 0; i < tx->n_segments; i++) {
        const struct myri_segment *segment = &tx->segment[i];
        uint32_t skip = 0;
        if (i == 0 && tx->header_in_host) {
            skip = SIM_MIN(segment->bytes, ETHER_HEADER_BYTES_MAX);
            memcpy(frame->header, tx->buffer, skip);
            frame->header_bytes = (uint16_t)skip;
        }
        if (segment->bytes > skip && !payload_gather(&frame->payload, tx->buffer + at + skip,
                                                     segment->iova + skip, segment->bytes - skip))
            sim_fail(nic->model->sim, "%s: data at 0x%llx holds more than %u streams of payload",
                     nic->model->name, (unsigned long long)segment->iova, PAYLOAD_EXTENTS_MAX);
        at += segment->bytes;
    }
    if (tx->checksums)
        set_checksums(frame);
}

/* In the order of the requests. */
static void send_ready(struct myri *nic)
{
    while (nic->read_head != NULL && nic->read_head->begun && nic->read_head->n_missing == 0) {
        struct myri_tx *tx = nic->read_head;
        nic->read_head = tx->next;
        if (nic->read_head == NULL)
            nic->read_tail = &nic->read_head;
        if (tx->failed) {
            nic->stats.tx_errors++;
            finish(nic, tx);
            continue;
        }
        build_frame(nic, tx);
        to_wire(nic, tx);
    }
}

static void read_done(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct myri_tx *tx = SIM_CONTAINER(request, struct myri_segment, read)->tx;
    tx->failed |= status != PCIE_DMA_OK;
    if (--tx->n_missing == 0)
        send_ready(tx->nic);
}

static void begin(struct myri *nic, struct myri_job *job)
{
    struct myri_tx *tx = SIM_CONTAINER(job, struct myri_tx, job);
    const unsigned n = tx->n_segments;
    uint32_t at = 0;
    tx->begun = true;
    tx->n_missing = (uint8_t)n;
    for (unsigned i = 0; i < n; i++) {
        struct myri_segment *segment = &tx->segment[i];
        const uint32_t bytes = segment->bytes;
        segment->tx = tx;
        segment->read = (struct pcie_dma_request){ .iova = { segment->iova },
                                                   .bytes = bytes,
                                                   .buffer = tx->buffer + at,
                                                   .bulk = i > 0 || !tx->header_in_host,
                                                   .whole_lines = true,
                                                   .independent = true,
                                                   .done = read_done };
        at += bytes;
        pcie_dma_read(&nic->pcie.dma, &segment->read, myri_now(nic)); /* the last may end it all */
    }
    if (n == 0)
        send_ready(nic);
}

/* Begins packets while there is room for them. */
static void pump(struct myri *nic)
{
    while (nic->wait_head != NULL &&
           nic->tx_used_bytes + nic->wait_head->bytes <= nic->params.tx_buffer_bytes) {
        struct myri_tx *tx = nic->wait_head;
        nic->wait_head = tx->next;
        if (nic->wait_head == NULL)
            nic->wait_tail = &nic->wait_head;
        nic->tx_used_bytes += tx->bytes;
        tx->next = NULL;
        *nic->read_tail = tx;
        nic->read_tail = &tx->next;
        myri_work(nic, &tx->job, tx->work_ps, begin);
    }
}

void myri_tx_submit(struct myri *nic, struct myri_tx *tx, sim_time work_ps)
{
    tx->work_ps = work_ps;
    tx->next = NULL;
    *nic->wait_tail = tx;
    nic->wait_tail = &tx->next;
    pump(nic);
}

static void list_free(struct myri *nic, struct myri_tx *tx)
{
    for (struct myri_tx *next; tx != NULL; tx = next) {
        next = tx->next;
        myri_tx_free(nic, tx);
    }
}

void myri_send_release(struct myri *nic)
{
    sim_cancel(nic->model->sim, &nic->retire);
    list_free(nic, nic->sent_head);
}
