/*
 * Receiving by myri.myri10g: from the wire to the data's way to memory.
 *
 * Models: the filter by address, the SRAM that packets wait in, PAUSE before it overflows, the
 *   processor's time for each packet, data in up to four pieces of memory.
 * Does not model: multicast groups (it takes all), runts, damaged frames.
 * Timing: from the last bit: port_latency, the processor's time (firmware_receive; with several
 *   receive queues firmware_multiqueue besides), the writes.
 * Sources: docs/sources.md#e1; thresholds of PAUSE as in nic_receive.c.
 */
#include "models/myri/myri_internal.h"

#include <string.h>

#define ETHER_BYTES 14u

/* ---- The SRAM -------------------------------------------------------------------------------- */

static void rx_free(struct myri_rx *rx)
{
    struct myri *nic = rx->nic;
    ether_buffer_give_back(&nic->rx_buffer, rx->bytes);
    sim_pool_put(nic->rxs, rx);
    nic->n_under_way--;
    myri_ended(nic);
}

void myri_rx_drop(struct myri_rx *rx)
{
    ether_frame_free(rx->nic->model, rx->frame);
    rx_free(rx);
}

void myri_rx_taken(struct myri_rx *rx)
{
    rx->nic->stats.rx_packets++;
    rx->nic->stats.rx_bytes += rx->bytes;
    myri_rx_drop(rx);
}

/* ---- To memory ------------------------------------------------------------------------------- */

static void write_done(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct myri_rx *rx = SIM_CONTAINER(request, struct myri_rx_write, request)->rx;
    (void)status;
    if (--rx->n_writes == 0)
        rx_free(rx);
}

/* Lays a piece out as it will lie at its address: headers are real bytes; of the TLPs that begin
 * before their end all bytes, zeros between the marks. Returns how much of it is not payload. */
static uint32_t lay_out_headers(const struct myri_rx *rx, uint8_t *at, uint32_t bytes)
{
    const struct ether_frame *frame = rx->frame;
    const uint32_t headers = MYRI_PAD_BYTES + frame->header_bytes;
    const uint32_t whole = SIM_MIN(bytes, headers + cfg_mps_bytes(&rx->nic->pcie.cfg));
    memset(at, 0, MYRI_PAD_BYTES);
    memcpy(at + MYRI_PAD_BYTES, frame->header, frame->header_bytes);
    memset(at + headers, 0, whole - headers);
    return headers;
}

void myri_rx_write(struct myri_rx *rx, const struct myri_piece *piece, unsigned n,
                   bool with_headers, uint32_t from)
{
    struct myri *nic = rx->nic;
    uint8_t *at = rx->buffer;
    for (unsigned i = 0; i < n; i++) {
        const uint32_t bytes = piece[i].bytes;
        const uint32_t skip = i == 0 && with_headers ? lay_out_headers(rx, at, bytes) : 0;
        payload_scatter(&rx->frame->payload, from, bytes - skip, at + skip, piece[i].iova + skip);
        rx->write[i].rx = rx;
        rx->write[i].request = (struct pcie_dma_request){ .iova = { piece[i].iova },
                                                          .bytes = bytes,
                                                          .buffer = at,
                                                          .bulk = true,
                                                          .whole_lines = true,
                                                          .bulk_from = skip,
                                                          .done = write_done };
        from += bytes - skip;
        at += bytes;
    }
    ether_frame_free(nic->model, rx->frame);
    rx->frame = NULL;
    nic->stats.rx_packets++;
    nic->stats.rx_bytes += rx->bytes;
    rx->n_writes = (uint8_t)n;
    for (unsigned i = 0; i < n; i++)
        pcie_dma_write(&nic->pcie.dma, &rx->write[i].request, myri_now(nic));
}

/* ---- From the wire --------------------------------------------------------------------------- */

static void noticed(struct myri *nic, struct myri_job *job)
{
    struct myri_rx *rx = SIM_CONTAINER(job, struct myri_rx, job);
    if (!nic->up) {
        nic->stats.rx_closed++;
        myri_rx_drop(rx);
    } else if (nic->mx != NULL)
        myri_mx_deliver(nic, rx);
    else
        myri_ether_deliver(nic, rx);
}

/* What must be counted before the frame is dropped; NULL: it is taken. */
static uint64_t *refusal(struct myri *nic, const struct ether_frame *frame, uint32_t bytes)
{
    const uint64_t to = ether_get_mac(frame->header);
    if (!nic->up)
        return &nic->stats.rx_closed;
    if (to != nic->mac && (to >> 40 & 1) == 0)
        return &nic->stats.rx_filtered;
    if (bytes > (nic->mx != NULL ? nic->params.mtu_bytes + ETHER_BYTES : nic->ether.mtu_bytes))
        return &nic->stats.rx_too_long;
    if (nic->rx_buffer.used_bytes + bytes > nic->params.rx_buffer_bytes)
        return &nic->stats.rx_overflow;
    return NULL;
}

void myri_take_frame(struct myri *nic, struct ether_frame *frame)
{
    const uint32_t bytes = frame->header_bytes + frame->payload.bytes;
    uint64_t *counter = refusal(nic, frame, bytes);
    if (counter != NULL) {
        *counter += 1;
        ether_frame_free(nic->model, frame);
        return;
    }
    struct myri_rx *rx = sim_pool_get(nic->rxs);
    sim_time work_ps = nic->params.receive_ps;
    rx->nic = nic;
    rx->frame = frame;
    rx->bytes = bytes;
    nic->n_under_way++;
    ether_buffer_take(&nic->rx_buffer, bytes);
    if (nic->mx != NULL)
        work_ps = nic->params.mx_ps;
    else if (nic->params.firmware == MYRI_FIRMWARE_MULTIQUEUE)
        work_ps += nic->params.multiqueue_ps;
    myri_work(nic, &rx->job, work_ps, noticed);
}

void myri_receive_frame(struct ether_port *port, struct ether_frame *frame)
{
    myri_take_frame(myri_of(port->model), frame);
}
