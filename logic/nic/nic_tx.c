/*
 * Sending: a ring of work queue entries of 64 B blocks.
 *
 * What it does: A packet is a control segment, an Ethernet segment with all headers in it
 *   (ConnectX-4 asks for that with packets that it segments, our data sheet always), and a data
 *   segment for each fragment, mapped one by one. The doorbell record and the doorbell are written
 *   for each packet unless more follow at once; the last entry before a doorbell asks for a
 *   completion, which stands for all entries up to it. The queue stops while there may not be room
 *   for the largest entry. With octo_sg, a fragment on the node of another function of the card is
 *   mapped for that function and carries its number, so that the NIC fetches it there.
 * Leaves out: Several traffic classes, fragment lists, padding at the end of the ring (an entry may
 *   wrap around).
 * Follows: Linux 4.14 mlx5/core/en_tx.c; docs/sources.md#nic.
 * Costs: Per packet driver_transmit_cycles and driver_fragment_cycles, mappings, the cache lines of
 *   headers, ring and bookkeeping, and, unless more packets follow, the record and one doorbell;
 *   per completed packet driver_complete_cycles, driver_put_page_cycles per fragment, the cache
 *   lines of the bookkeeping.
 */
#include "logic/nic/nic_internal.h"

#include <errno.h>
#include <string.h>

#define SEGMENT_BYTES 16u
#define WQE_BYTES_MAX (NIC_WQE_BLOCKS_MAX * NIC_WQE_BLOCK_BYTES)
#define LOCK_CYCLES   20u /* one read of a lock that another CPU holds */
#define DMA_PER_BLOCK 4u

/* An entry in the making. */
struct wqe {
    uint32_t n_segments, n_data;
    uint8_t bytes[WQE_BYTES_MAX];
};

static bool has_room(const struct nic_drv_sq *sq)
{
    return sq->mask + 1u - (sq->pc - sq->cc) >= NIC_WQE_BLOCKS_MAX;
}

/* ---- Mappings -------------------------------------------------------------------------------- */

static void unmap_oldest(struct nic_drv *nic, struct nic_drv_sq *sq)
{
    const struct nic_sq_dma *dma = &sq->dma[sq->dma_cc++ & sq->dma_mask];
    struct nic_drv *through = nic->card->function[dma->function];
    /* A function that is gone took its mappings along. */
    if (through != NULL && through->pci != NULL)
        k_dma_unmap(&through->pci->device, dma->dma, dma->bytes, K_DMA_TO_DEVICE);
}

/* The function to fetch a fragment through: the one on its node, else this one. */
static struct nic_drv *function_for(struct nic_drv *nic, int node)
{
    if (!nic->params->octo_sg || node < 0 || node == nic->node)
        return nic;
    for (unsigned i = 0; i < nic->n_functions; i++) {
        struct nic_drv *other = nic->card->function[i];
        if (other != NULL && other->node == node && !other->gone && other->pci != NULL)
            return other;
    }
    return nic;
}

static int add_data(struct nic_channel *channel, struct wqe *wqe, struct kaddr at, uint32_t bytes,
                    int node)
{
    struct nic_drv *nic = channel->nic;
    struct nic_drv_sq *sq = &channel->sq;
    struct nic_drv *through = function_for(nic, node);
    struct nic_wqe_data data = { .bytes = bytes };
    int error = k_dma_map(&through->pci->device, at, bytes, K_DMA_TO_DEVICE, &data.iova);
    if (error != 0)
        return error;
    if (through != nic) {
        data.function_hint = (uint8_t)(through->function + 1);
        channel->stats->tx_hints++;
    }
    sq->dma[(sq->dma_pc + wqe->n_data++) & sq->dma_mask] = (struct nic_sq_dma){
        .dma = data.iova,
        .bytes = bytes,
        .function = through->function,
    };
    memcpy(wqe->bytes + (size_t)wqe->n_segments++ * SEGMENT_BYTES, &data, sizeof data);
    return 0;
}

static void unmap_unposted(struct nic_drv *nic, struct nic_drv_sq *sq, uint32_t n)
{
    uint32_t cc = sq->dma_cc;
    sq->dma_cc = sq->dma_pc;
    for (uint32_t i = 0; i < n; i++)
        unmap_oldest(nic, sq);
    sq->dma_cc = cc;
}

/* ---- Entries --------------------------------------------------------------------------------- */

/* Everything but the control segment. 0 or a negative errno with nothing mapped. */
static int wqe_build(struct nic_channel *channel, struct wqe *wqe, const struct sk_buff *skb)
{
    struct nic_drv *nic = channel->nic;
    wqe->n_data = 0;
    if (skb->frag_list != NULL || skb->head_bytes > NET_HEADER_BYTES)
        return -EINVAL;
    struct nic_wqe_ethernet ethernet = {
        .checksum = NIC_CHECKSUM_L3 | NIC_CHECKSUM_L4,
        .segment_bytes = skb->gso_bytes,
        .inline_bytes = skb->head_bytes,
    };
    size_t inline_at = SEGMENT_BYTES + offsetof(struct nic_wqe_ethernet, inline_start);
    wqe->n_segments = (uint32_t)((inline_at + skb->head_bytes + SEGMENT_BYTES - 1) / SEGMENT_BYTES);
    memcpy(wqe->bytes + SEGMENT_BYTES, &ethernet, sizeof ethernet);
    k_load(nic->kernel, skb->head, wqe->bytes + inline_at, skb->head_bytes);
    size_t end = inline_at + skb->head_bytes;
    memset(wqe->bytes + end, 0, (size_t)wqe->n_segments * SEGMENT_BYTES - end);
    int error = 0;
    for (unsigned i = 0; error == 0 && i < skb->n_frags; i++) {
        const struct skb_frag *frag = &skb->frag[i];
        error = add_data(channel, wqe, kaddr_add(frag->page->addr, frag->offset), frag->bytes,
                         frag->node);
    }
    if (error != 0)
        unmap_unposted(nic, &channel->sq, wqe->n_data);
    return error;
}

/* Stores blocks of an entry where they belong, around the end of the ring if need be. */
static void ring_store(struct kernel *kernel, struct nic_drv_sq *sq, uint32_t first,
                       const uint8_t *bytes, uint32_t n_blocks)
{
    uint32_t slot = first & sq->mask, before_end = sq->mask + 1u - slot;
    uint32_t n = n_blocks < before_end ? n_blocks : before_end;
    k_store(kernel, kaddr_add(sq->ring.at, (uint64_t)slot * NIC_WQE_BLOCK_BYTES), bytes,
            (size_t)n * NIC_WQE_BLOCK_BYTES);
    if (n < n_blocks)
        k_store(kernel, sq->ring.at, bytes + (size_t)n * NIC_WQE_BLOCK_BYTES,
                (size_t)(n_blocks - n) * NIC_WQE_BLOCK_BYTES);
}

/* Lines of n entries of `bytes` of a ring of books. */
static void touch_books(struct kernel *kernel, const struct k_page *lines, uint32_t first,
                        uint32_t n, uint32_t mask, uint32_t bytes, bool write)
{
    first &= mask;
    while (n > 0) {
        uint32_t part = n < mask + 1 - first ? n : mask + 1 - first;
        struct kaddr at = kaddr_add(lines->addr, (uint64_t)first * bytes);
        if (write)
            k_touch_write(kernel, at, (size_t)part * bytes);
        else
            k_touch(kernel, at, (size_t)part * bytes);
        n -= part;
        first = 0;
    }
}

/* Record, then doorbell. The record's store is ordered before it, as are those of the entries: the
 * barrier is in the cost of the doorbell. */
static void ring_doorbell(struct nic_channel *channel)
{
    struct nic_drv *nic = channel->nic;
    struct nic_drv_sq *sq = &channel->sq;
    sq->rung_pc = sq->pc;
    channel->stats->tx_doorbells++;
    k_store(nic->kernel, sq->record.at, &sq->pc, sizeof sq->pc);
    k_writeq(nic->pci, 0, NIC_DOORBELL_SQ(sq->number), sq->rung_pc & 0xffffu);
}

static void post(struct nic_channel *channel, struct wqe *wqe, struct sk_buff *skb)
{
    struct nic_drv *nic = channel->nic;
    struct nic_drv_sq *sq = &channel->sq;
    uint32_t first = sq->pc, first_dma = sq->dma_pc;
    uint32_t n_blocks = (wqe->n_segments * SEGMENT_BYTES + NIC_WQE_BLOCK_BYTES - 1) /
                        NIC_WQE_BLOCK_BYTES;
    memset(wqe->bytes + (size_t)wqe->n_segments * SEGMENT_BYTES, 0,
           (size_t)n_blocks * NIC_WQE_BLOCK_BYTES - (size_t)wqe->n_segments * SEGMENT_BYTES);
    sq->pc += n_blocks;
    sq->dma_pc += wqe->n_data;
    sq->wqe[first & sq->mask] = (struct nic_sq_wqe){ skb, (uint8_t)n_blocks, (uint8_t)wqe->n_data };
    bool last = !skb->xmit_more;
    if (!has_room(sq)) {
        /* Whoever frees room wakes it: this entry's completion at the latest. */
        net_queue_stop(&nic->dev, channel->index);
        channel->stats->tx_stops++;
        last = true;
    }
    struct nic_wqe_control control = {
        .opcode = skb->gso_bytes != 0 ? NIC_OP_TSO : NIC_OP_SEND,
        .n_segments = (uint8_t)wqe->n_segments,
        .index = (uint16_t)first,
        .queue = sq->number,
        .flags = last ? NIC_WQE_COMPLETION : 0,
    };
    memcpy(wqe->bytes, &control, sizeof control);
    sq->last_wqe = (uint16_t)first;
    channel->stats->tx_packets += skb->gso_bytes != 0 && skb->gso_segments > 1 ? skb->gso_segments
                                                                               : 1;
    channel->stats->tx_wqes++;
    touch_books(nic->kernel, sq->wqe_lines, first, 1, sq->mask, NIC_SQ_WQE_BYTES, true);
    touch_books(nic->kernel, sq->dma_lines, first_dma, wqe->n_data, sq->dma_mask, NIC_SQ_DMA_BYTES,
                true);
    ring_store(nic->kernel, sq, first, wqe->bytes, n_blocks);
    if (last)
        ring_doorbell(channel);
}

/* Entries wait for a doorbell that the packet which was to ring it cannot ring: the last of them
 * asks for the completion now. */
static void flush(struct nic_channel *channel)
{
    struct nic_drv_sq *sq = &channel->sq;
    if (sq->rung_pc == sq->pc)
        return;
    uint8_t flags = NIC_WQE_COMPLETION;
    k_store(channel->nic->kernel,
            kaddr_add(sq->ring.at, (uint64_t)(sq->last_wqe & sq->mask) * NIC_WQE_BLOCK_BYTES +
                                       offsetof(struct nic_wqe_control, flags)),
            &flags, sizeof flags);
    ring_doorbell(channel);
}

static enum net_xmit drop(struct nic_drv *nic, struct sk_buff *skb)
{
    uint16_t queue = skb->queue < NET_QUEUES_MAX ? skb->queue : 0;
    nic->dev.tx[queue].drops++;
    nic->stats[queue].tx_drops++;
    skb_free(nic->net, skb);
    return NET_XMIT_OK;
}

static bool takes_packets(const struct nic_drv *nic, const struct sk_buff *skb)
{
    return nic->dev.running && !nic->closing && skb->queue < nic->n_channels;
}

enum net_xmit nic_drv_start_xmit(struct sk_buff *skb, struct net_device *dev)
{
    struct nic_drv *nic = nic_drv_of(dev);
    if (!takes_packets(nic, skb))
        return drop(nic, skb);
    struct nic_channel *channel = &nic->channel[skb->queue];
    struct nic_drv_sq *sq = &channel->sq;
    while (sq->locked) {
        k_compute(nic->kernel, LOCK_CYCLES);
        if (!takes_packets(nic, skb)) /* the channel may not be there any more */
            return drop(nic, skb);
    }
    if (!has_room(sq)) {
        net_queue_stop(dev, channel->index);
        return NET_XMIT_BUSY;
    }
    sq->locked = true;
    struct wqe wqe;
    bool more = skb->xmit_more;
    enum net_xmit result = NET_XMIT_OK;
    k_compute(nic->kernel, nic->costs->driver_transmit_cycles +
                               (uint64_t)skb->n_frags * nic->costs->driver_fragment_cycles);
    if (wqe_build(channel, &wqe, skb) == 0) {
        post(channel, &wqe, skb);
    } else {
        channel->stats->tx_errors++;
        result = drop(nic, skb);
        if (!more)
            flush(channel);
    }
    sq->locked = false;
    return result;
}

/* ---- Completions ----------------------------------------------------------------------------- */

/* The oldest entry under way. */
static void complete_oldest(struct nic_channel *channel, bool charge)
{
    struct nic_drv *nic = channel->nic;
    struct nic_drv_sq *sq = &channel->sq;
    struct nic_sq_wqe wqe = sq->wqe[sq->cc & sq->mask];
    if (charge) {
        touch_books(nic->kernel, sq->wqe_lines, sq->cc, 1, sq->mask, NIC_SQ_WQE_BYTES, false);
        touch_books(nic->kernel, sq->dma_lines, sq->dma_cc, wqe.n_dma, sq->dma_mask,
                    NIC_SQ_DMA_BYTES, false);
        k_compute(nic->kernel, nic->costs->driver_complete_cycles +
                                   (uint64_t)wqe.skb->n_frags * nic->costs->driver_put_page_cycles);
    }
    for (unsigned i = 0; i < wqe.n_dma; i++)
        unmap_oldest(nic, sq);
    sq->cc += wqe.n_blocks;
    skb_free(nic->net, wqe.skb);
}

/* All entries up to the one that the device reports. */
static void complete(struct nic_channel *channel, const struct nic_cqe *cqe)
{
    struct nic_drv *nic = channel->nic;
    struct nic_drv_sq *sq = &channel->sq;
    channel->stats->tx_completions++;
    if (cqe->op_own >> 4 != NIC_CQE_SENT) {
        channel->stats->tx_errors++;
        k_warn(nic->kernel, "%s: channel %u: send completion %#x", nic->name, channel->index,
               cqe->op_own);
        nic_drv_recover(nic, &channel->stats->tx_recoveries);
    }
    uint32_t ahead = (cqe->wqe_index - sq->cc) & sq->mask, reported = sq->cc + ahead;
    if (ahead >= sq->rung_pc - sq->cc) {
        channel->stats->tx_errors++;
        k_warn(nic->kernel, "%s: channel %u: completion of entry %u, which is not under way",
               nic->name, channel->index, cqe->wqe_index);
        return;
    }
    while ((int32_t)(sq->cc - reported) <= 0)
        complete_oldest(channel, true);
}

bool nic_drv_sq_poll(struct nic_channel *channel)
{
    struct nic_drv *nic = channel->nic;
    struct nic_drv_sq *sq = &channel->sq;
    struct nic_cqe cqe;
    unsigned n = 0;
    while (n < NIC_TX_POLL_CQES && !nic->closing && nic_drv_cq_next(nic->kernel, &sq->cq, &cqe)) {
        sq->cq.ci++;
        complete(channel, &cqe);
        n++;
    }
    if (n > 0 && nic->dev.queue_stopped[channel->index] && !nic->closing && has_room(sq)) {
        channel->stats->tx_wakes++;
        net_queue_wake(&nic->dev, channel->index);
    }
    return n == NIC_TX_POLL_CQES;
}

/* ---- Life ------------------------------------------------------------------------------------ */

int nic_drv_sq_alloc(struct nic_channel *channel)
{
    struct nic_drv *nic = channel->nic;
    struct nic_drv_sq *sq = &channel->sq;
    uint32_t size = nic->params->sq_blocks;
    sq->mask = (uint16_t)(size - 1);
    sq->dma_mask = DMA_PER_BLOCK * size - 1;
    sq->number = channel->index;
    sq->wqe = k_zalloc(size * sizeof *sq->wqe);
    sq->dma = k_zalloc((size_t)DMA_PER_BLOCK * size * sizeof *sq->dma);
    sq->wqe_lines = nic_drv_lines_alloc(nic, channel->node, (size_t)size * NIC_SQ_WQE_BYTES);
    sq->dma_lines = nic_drv_lines_alloc(nic, channel->node,
                                        (size_t)DMA_PER_BLOCK * size * NIC_SQ_DMA_BYTES);
    if (sq->wqe_lines == NULL || sq->dma_lines == NULL)
        return -ENOMEM;
    int error = nic_drv_memory_alloc(nic, &sq->ring, channel->node,
                                     (size_t)size * NIC_WQE_BLOCK_BYTES);
    return error != 0 ? error : nic_drv_memory_alloc(nic, &sq->record, channel->node, K_LINE_BYTES);
}

void nic_drv_sq_release(struct nic_channel *channel)
{
    struct nic_drv *nic = channel->nic;
    struct nic_drv_sq *sq = &channel->sq;
    if (sq->wqe != NULL) {
        while (sq->cc != sq->pc)
            complete_oldest(channel, false);
        k_free(sq->wqe);
        k_free(sq->dma);
    }
    nic_drv_memory_free(nic, &sq->ring);
    nic_drv_memory_free(nic, &sq->record);
    nic_drv_lines_free(nic, sq->wqe_lines);
    nic_drv_lines_free(nic, sq->dma_lines);
}
