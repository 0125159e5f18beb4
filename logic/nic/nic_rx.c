/*
 * Receiving: a ring of buffers, each a part of a page.
 *
 * What it does: A cyclic receive queue. A ring entry keeps its page until the largest packet does
 *   not fit behind those received into it; the page then goes to the queue's page cache, still
 *   mapped, and is posted again once the stack has dropped its references. The owner bit marks new
 *   completions; headers are prefetched; a packet goes up to GRO as headers and one fragment, with
 *   the device's hash and checksum result. With LRO buffers are 64 KiB and a sixteenth as many;
 *   they complete in any order and are posted again in the order of completion, and the headers of
 *   merged packets are corrected.
 * Leaves out: striding receive queues, compressed completions, header splitting.
 * Follows: Linux 4.14 mlx5/core/en_rx.c (mlx5e_lro_update_hdr); docs/sources.md#nic.
 * Costs: per packet driver_receive_cycles, the lines of completion, ring entry, page structure and
 *   (by the prefetch) headers; per buffer driver_refill_cycles, a part of the ring's line, the page
 *   cache and page structure; per poll the doorbell record.
 */
#include "logic/nic/nic_internal.h"

#include <errno.h>
#include <string.h>

#define WQES_PER_LINE (K_LINE_BYTES / NIC_RQ_WQE_BYTES)
#define SKB_BYTES     256u /* of the structure, in what a packet is accounted for */

#define ETHERNET_BYTES 14u
#define IPV4_BYTES     20u
#define TCP_BYTES      20u
#define TIME_BYTES     12u

static void put16(uint8_t *at, uint32_t v)
{
    at[0] = (uint8_t)(v >> 8);
    at[1] = (uint8_t)v;
}

static void put32(uint8_t *at, uint32_t v)
{
    put16(at, v >> 16);
    put16(at + 2, v);
}

/* ---- Pages ----------------------------------------------------------------------------------- */

static struct kaddr cache_line(const struct nic_drv_rq *rq, uint32_t index)
{
    return kaddr_add(rq->cache_lines->addr,
                     (uint64_t)(index % NIC_PAGE_CACHE) * NIC_RX_CACHE_BYTES);
}

/* Takes the oldest page of the cache if no other reference to it is left. */
static bool cache_get(struct nic_channel *channel, struct nic_rx_page *page)
{
    struct kernel *kernel = channel->nic->kernel;
    struct nic_drv_rq *rq = &channel->rq;
    if (rq->cache_head == rq->cache_tail) {
        channel->stats->cache_empty++;
        return false;
    }
    const struct nic_rx_page *head = &rq->cache[rq->cache_head % NIC_PAGE_CACHE];
    k_touch(kernel, cache_line(rq, rq->cache_head), NIC_RX_CACHE_BYTES);
    k_touch(kernel, head->page->meta, sizeof(uint32_t));
    if (head->page->refs != 1) {
        channel->stats->cache_busy++;
        return false;
    }
    *page = *head;
    rq->cache_head++;
    channel->stats->cache_hits++;
    return true;
}

static bool cache_put(struct nic_channel *channel, const struct nic_rx_page *page)
{
    struct nic_drv_rq *rq = &channel->rq;
    if (page->page->node != rq->node)
        return false;
    if (rq->cache_tail - rq->cache_head == NIC_PAGE_CACHE) {
        channel->stats->cache_full++;
        return false;
    }
    k_touch_write(channel->nic->kernel, cache_line(rq, rq->cache_tail), NIC_RX_CACHE_BYTES);
    rq->cache[rq->cache_tail++ % NIC_PAGE_CACHE] = *page;
    return true;
}

static bool page_get(struct nic_channel *channel, struct nic_rx_page *page)
{
    struct nic_drv *nic = channel->nic;
    struct nic_drv_rq *rq = &channel->rq;
    if (cache_get(channel, page))
        return true;
    page->page = k_page_alloc(nic->kernel, rq->node, rq->order);
    if (page->page == NULL)
        return false;
    if (k_dma_map(&nic->pci->device, page->page->addr, rq->page_bytes, K_DMA_FROM_DEVICE,
                  &page->dma) == 0)
        return true;
    k_page_put(nic->kernel, page->page);
    page->page = NULL;
    return false;
}

static void page_drop(struct nic_drv *nic, const struct nic_drv_rq *rq, struct nic_rx_page *page)
{
    k_dma_unmap(&nic->pci->device, page->dma, rq->page_bytes, K_DMA_FROM_DEVICE);
    k_page_put(nic->kernel, page->page);
    page->page = NULL;
}

/* ---- Posting --------------------------------------------------------------------------------- */

/* As many as lie in one cache line of the ring and there are pages for; false: no page. */
static bool refill_line(struct nic_channel *channel, uint32_t n)
{
    struct nic_drv *nic = channel->nic;
    struct nic_drv_rq *rq = &channel->rq;
    struct nic_wqe_data wqe[WQES_PER_LINE];
    uint32_t first = rq->posted & rq->mask, done = 0;
    if (n > WQES_PER_LINE - first % WQES_PER_LINE)
        n = WQES_PER_LINE - first % WQES_PER_LINE;
    for (; done < n; done++) {
        struct nic_rx_buffer *buffer = &rq->buffer[first + done];
        if (buffer->held.page != NULL) {
            channel->stats->page_halves++;
        } else {
            if (!page_get(channel, &buffer->held))
                break;
            buffer->offset = 0;
        }
        wqe[done] = (struct nic_wqe_data){
            .bytes = rq->buffer_bytes - NIC_RX_HEADROOM,
            .iova = buffer->held.dma + buffer->offset + NIC_RX_HEADROOM,
        };
    }
    if (done > 0) {
        k_touch_write(nic->kernel,
                      kaddr_add(rq->buffer_lines->addr, (uint64_t)first * NIC_RX_BUFFER_BYTES),
                      (size_t)done * NIC_RX_BUFFER_BYTES);
        k_store(nic->kernel, kaddr_add(rq->ring.at, (uint64_t)first * NIC_RQ_WQE_BYTES), wqe,
                (size_t)done * NIC_RQ_WQE_BYTES);
        rq->posted += done;
    }
    return done == n;
}

void nic_drv_rq_refill(struct nic_channel *channel)
{
    struct nic_drv *nic = channel->nic;
    struct nic_drv_rq *rq = &channel->rq;
    uint32_t before = rq->posted, size = rq->mask + 1u;
    bool there = true;
    while (there && rq->posted - rq->consumed < size)
        there = refill_line(channel, size - (rq->posted - rq->consumed));
    if (rq->posted != before) {
        k_compute(nic->kernel, (uint64_t)(rq->posted - before) * nic->costs->driver_refill_cycles);
        k_store(nic->kernel, rq->record.at, &rq->posted, sizeof rq->posted);
    }
    if (!there) {
        channel->stats->page_failures++;
        if (!nic->closing)
            k_timer_set(&rq->retry, k_now_ps(nic->kernel) + NIC_REFILL_RETRY_PS);
    }
}

static void retry(struct k_timer *timer)
{
    nic_drv_channel_schedule(K_CONTAINER(timer, struct nic_channel, rq.retry));
}

/* ---- Packets --------------------------------------------------------------------------------- */

/* What a packet takes of its page, with what the kernel keeps around it (MLX5_SKB_FRAG_SZ). */
static uint32_t fragment_bytes(uint32_t bytes)
{
    const uint32_t lines = (NIC_RX_HEADROOM + bytes + K_LINE_BYTES - 1) / K_LINE_BYTES;
    return lines * K_LINE_BYTES + NIC_RX_TAIL_BYTES;
}

/* Of a page that has room for several of the largest packets each has an equal share. */
static uint32_t share_bytes(const struct nic_drv_rq *rq, const struct nic_cqe *cqe)
{
    return rq->buffer_bytes <= K_PAGE_BYTES / 2 ? rq->buffer_bytes : fragment_bytes(cqe->bytes);
}

/* What comes after a packet in its page is posted next, if the largest packet fits; a page without
 * more goes. */
static void buffer_advance(struct nic_channel *channel, struct nic_rx_buffer *buffer,
                           const struct nic_cqe *cqe)
{
    struct nic_drv_rq *rq = &channel->rq;
    buffer->offset += share_bytes(rq, cqe);
    if (buffer->offset + rq->buffer_bytes <= rq->page_bytes && buffer->held.page->node == rq->node)
        return;
    if (cache_put(channel, &buffer->held))
        buffer->held.page = NULL;
    else
        page_drop(channel->nic, rq, &buffer->held);
}

static void skb_fill(struct sk_buff *skb, struct nic_channel *channel,
                     const struct nic_rx_buffer *buffer, const struct nic_cqe *cqe)
{
    struct k_page *page = buffer->held.page;
    uint32_t offset = buffer->offset + NIC_RX_HEADROOM;
    skb->dev = &channel->nic->dev;
    skb->queue = channel->index;
    skb->head = kaddr_add(page->addr, offset);
    skb->head_page = page;
    skb->head_bytes = cqe->header_bytes;
    k_page_get(page);
    skb->bytes = cqe->bytes - cqe->header_bytes;
    skb->n_frags = skb->bytes > 0;
    if (skb->n_frags > 0) {
        skb->frag[0] = (struct skb_frag){
            .page = page,
            .offset = offset + cqe->header_bytes,
            .bytes = skb->bytes,
            .node = (int8_t)page->node,
        };
        k_page_get(page);
    }
    skb->hash = (cqe->flags & NIC_CQE_HASH) != 0 ? cqe->rss_hash : 0;
    /* The device checks each packet of IPv4, and others are not for the stack. */
    skb->checksum = (cqe->flags & NIC_CQE_CHECKSUM_OK) != 0 ? NET_CHECKSUM_RIGHT
                                                            : NET_CHECKSUM_WRONG;
    skb->gso_segments = cqe->segments;
    skb->gso_bytes = 0;
    if (cqe->segments > 1)
        skb->gso_bytes = (uint16_t)((skb->bytes + cqe->segments - 1u) / cqe->segments);
    skb->truesize = share_bytes(&channel->rq, cqe) + SKB_BYTES;
    skb->time_ps = cqe->time_ps;
}

/* The device merged packets behind the headers of the first: they become those of the whole. The
 * checksum over payload stays as it is: with NET_CHECKSUM_RIGHT the stack does not read it. */
static void lro_set_headers(struct nic_drv *nic, struct kaddr at, const struct nic_cqe *cqe)
{
    uint8_t head[NET_HEADER_BYTES], *ip = head + ETHERNET_BYTES, *tcp = ip + IPV4_BYTES;
    uint32_t sum = 0;
    if (cqe->header_bytes > sizeof head ||
        cqe->header_bytes < ETHERNET_BYTES + IPV4_BYTES + TCP_BYTES)
        return;
    k_load(nic->kernel, at, head, cqe->header_bytes);
    put16(ip + 2, cqe->bytes - ETHERNET_BYTES);
    put16(ip + 10, 0);
    for (unsigned i = 0; i < IPV4_BYTES; i += 2)
        sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
    while (sum >> 16 != 0)
        sum = (sum & 0xffffu) + (sum >> 16);
    put16(ip + 10, ~sum);
    put32(tcp + 8, cqe->lro_ack);
    tcp[13] |= cqe->lro_flags;
    put16(tcp + 14, cqe->lro_window);
    if (cqe->header_bytes >= ETHERNET_BYTES + IPV4_BYTES + TCP_BYTES + TIME_BYTES) {
        put32(tcp + TCP_BYTES + 4, cqe->lro_tsval); /* behind NOP, NOP, kind, length */
        put32(tcp + TCP_BYTES + 8, cqe->lro_tsecr);
    }
    k_store(nic->kernel, at, head, cqe->header_bytes);
}

/* The entry has been received into; those that all before them have, too, can be posted again. */
static void entry_done(struct nic_drv_rq *rq, uint32_t slot)
{
    rq->buffer[slot].done = true;
    while (rq->buffer[rq->consumed & rq->mask].done)
        rq->buffer[rq->consumed++ & rq->mask].done = false;
}

static bool sensible(const struct nic_drv_rq *rq, const struct nic_cqe *cqe)
{
    uint32_t slot = cqe->wqe_index & rq->mask, next = rq->consumed & rq->mask;
    uint32_t ahead = (slot - next) & rq->mask;
    return cqe->op_own >> 4 == NIC_CQE_RECEIVED && ahead < rq->posted - rq->consumed &&
           (rq->lro || ahead == 0) && !rq->buffer[slot].done &&
           cqe->bytes <= rq->buffer_bytes - NIC_RX_HEADROOM && cqe->bytes >= cqe->header_bytes;
}

/* The device could not read the queue's entries or their number: it drops what comes until the
 * queue is made anew. */
static void queue_failed(struct nic_channel *channel)
{
    struct nic_drv *nic = channel->nic;
    channel->stats->rx_errors++;
    k_warn(nic->kernel, "%s: channel %u: the receive queue has failed", nic->name, channel->index);
    nic_drv_recover(nic, &channel->stats->rx_recoveries);
}

static void receive(struct nic_channel *channel, const struct nic_cqe *cqe)
{
    struct nic_drv *nic = channel->nic;
    struct nic_drv_rq *rq = &channel->rq;
    if (cqe->op_own >> 4 == NIC_CQE_ERROR) {
        queue_failed(channel);
        return;
    }
    bool good = sensible(rq, cqe);
    /* Of one that makes no sense the next buffer is posted once more as it is. */
    uint32_t slot = (good ? cqe->wqe_index : rq->consumed) & rq->mask;
    struct nic_rx_buffer *buffer = &rq->buffer[slot];
    k_touch(nic->kernel, kaddr_add(rq->buffer_lines->addr, (uint64_t)slot * NIC_RX_BUFFER_BYTES),
            NIC_RX_BUFFER_BYTES);
    entry_done(rq, slot);
    if (!good) {
        channel->stats->rx_errors++;
        k_warn(nic->kernel, "%s: channel %u: receive completion %#x for entry %u, not %u",
               nic->name, channel->index, cqe->op_own, cqe->wqe_index & rq->mask, slot);
        return;
    }
    struct kaddr head = kaddr_add(buffer->held.page->addr, buffer->offset + NIC_RX_HEADROOM);
    k_prefetch(nic->kernel, head, cqe->header_bytes);
    struct sk_buff *skb = skb_new(nic->net);
    skb_fill(skb, channel, buffer, cqe);
    if (cqe->segments > 1)
        lro_set_headers(nic, head, cqe);
    k_touch_write(nic->kernel, buffer->held.page->meta, sizeof(uint32_t));
    k_compute(nic->kernel, nic->costs->driver_receive_cycles);
    buffer_advance(channel, buffer, cqe);
    channel->rx_packets++;
    channel->rx_bytes += cqe->bytes;
    channel->stats->rx_packets++;
    net_gro_receive(&channel->napi, skb);
}

int nic_drv_rq_poll(struct nic_channel *channel, int budget)
{
    struct nic_drv_cq *cq = &channel->rq.cq;
    struct nic_cqe cqe;
    int n = 0;
    while (n < budget && !channel->nic->closing &&
           nic_drv_cq_next(channel->nic->kernel, cq, &cqe)) {
        cq->ci++;
        receive(channel, &cqe);
        n++;
    }
    return n;
}

/* Charges nothing. */
static bool completion_there(struct kernel *kernel, const struct nic_drv_cq *cq)
{
    uint8_t op_own;
    uint64_t slot = cq->ci & cq->mask;
    k_peek(kernel,
           kaddr_add(cq->ring.at, slot * sizeof(struct nic_cqe) + offsetof(struct nic_cqe, op_own)),
           &op_own, sizeof op_own);
    return (op_own & 1u) != (cq->ci >> cq->log & 1u);
}

bool nic_drv_rx_passed(struct net_device *dev, uint16_t rxq, struct net_rx_mark *mark)
{
    const struct nic_drv *nic = nic_drv_of(dev);
    if (!dev->running || nic->closing || rxq >= nic->n_channels)
        return true;
    const struct nic_channel *channel = &nic->channel[rxq];
    bool idle = !channel->active && channel->inside == 0 &&
                !completion_there(nic->kernel, &channel->rq.cq);
    return net_rx_passed(&channel->rq.progress, idle, mark);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static uint32_t power_of_two(uint32_t n)
{
    uint32_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

int nic_drv_rq_alloc(struct nic_channel *channel)
{
    struct nic_drv *nic = channel->nic;
    struct nic_drv_rq *rq = &channel->rq;
    uint32_t size = nic->params->rq_wqes;
    rq->buffer_bytes = fragment_bytes(18 + nic->params->mtu_bytes);
    if (rq->buffer_bytes <= K_PAGE_BYTES / 2)
        rq->buffer_bytes = power_of_two(rq->buffer_bytes);
    if (nic->params->lro) {
        rq->buffer_bytes = NIC_LRO_BUFFER;
        rq->lro = true;
        size = size >= 64 ? size / 16 : 4;
    }
    while (K_PAGE_BYTES << rq->order < rq->buffer_bytes)
        rq->order++;
    rq->page_bytes = K_PAGE_BYTES << rq->order;
    rq->mask = (uint16_t)(size - 1);
    rq->number = channel->index;
    rq->progress.entries = size;
    rq->node = channel->node;
    k_timer_init(&rq->retry, nic->kernel, retry);
    rq->buffer = k_zalloc(size * sizeof *rq->buffer);
    rq->buffer_lines = nic_drv_lines_alloc(nic, rq->node, (size_t)size * NIC_RX_BUFFER_BYTES);
    rq->cache_lines = nic_drv_lines_alloc(nic, rq->node, NIC_PAGE_CACHE * NIC_RX_CACHE_BYTES);
    if (rq->buffer_lines == NULL || rq->cache_lines == NULL)
        return -ENOMEM;
    int error = nic_drv_memory_alloc(nic, &rq->ring, rq->node, (size_t)size * NIC_RQ_WQE_BYTES);
    return error != 0 ? error : nic_drv_memory_alloc(nic, &rq->record, rq->node, K_LINE_BYTES);
}

void nic_drv_rq_release(struct nic_channel *channel)
{
    struct nic_drv *nic = channel->nic;
    struct nic_drv_rq *rq = &channel->rq;
    if (rq->buffer != NULL) {
        k_timer_release(&rq->retry);
        for (uint32_t i = 0; i <= rq->mask; i++) {
            if (rq->buffer[i].held.page != NULL)
                page_drop(nic, rq, &rq->buffer[i].held);
        }
        for (; rq->cache_head != rq->cache_tail; rq->cache_head++)
            page_drop(nic, rq, &rq->cache[rq->cache_head % NIC_PAGE_CACHE]);
        k_free(rq->buffer);
    }
    nic_drv_memory_free(nic, &rq->ring);
    nic_drv_memory_free(nic, &rq->record);
    nic_drv_lines_free(nic, rq->buffer_lines);
    nic_drv_lines_free(nic, rq->cache_lines);
}
