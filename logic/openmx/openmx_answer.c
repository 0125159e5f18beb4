/*
 * What it does: Answers requests to pull: one reply for each frame of the block, sent from the
 *   pages of the region itself. A reply of bytes that lie in more pieces than a packet has
 *   fragments is copied together.
 * Follows: Open-MX 0.9.2 driver/linux/omx_pull.c (omx_recv_pull_request).
 * Costs: omx_send_cycles per reply, the region's lines and those of its pages' structures, whose
 *   counts are atomic; what the stack and the driver take. The region's count goes up with each
 *   reply, and down when it has been sent.
 */
#include "logic/openmx/openmx_internal.h"

#define PIECES_MAX 16u

static void refuse(struct openmx *omx, const struct mx_head *head,
                   const struct mx_pull_header *request, enum mx_nack nack)
{
    const struct mx_nack_pull_header h = { .type = MX_PACKET_NACK_PULL,
                                           .nack = (uint8_t)nack,
                                           .handle = request->handle,
                                           .magic = request->magic };
    openmx_transmit(omx, openmx_packet_new(omx, head->source, &h, sizeof h));
}

static void reply_sent(struct sk_buff *skb)
{
    struct openmx_region *region = skb->freed_arg;
    struct openmx_port *port = region->port; /* the packet has held it */
    openmx_atomic(port->omx->kernel, region->lines, MX_ACCOUNT_PULL);
    openmx_region_put(region);
    openmx_port_drop(port);
}

/* False: too many pieces. */
static bool add_pieces(struct sk_buff *skb, struct openmx_region *region, uint64_t offset,
                       uint32_t bytes)
{
    uint32_t done = 0;
    while (done < bytes) {
        uint64_t n = bytes - done;
        unsigned i;
        const struct kaddr at = openmx_region_at(region, offset + done, &n, &i);
        n = openmx_in_page(at, n);
        if (skb->n_frags == PIECES_MAX) {
            while (skb->n_frags > 0)
                skb->frag[--skb->n_frags].page->refs--;
            return false;
        }
        struct k_page *page = openmx_region_page(region, i, at);
        k_page_get(page);
        openmx_touch(region->omx->kernel, page->meta, 8, false, MX_ACCOUNT_KERNEL); /* its flags */
        openmx_atomic(region->omx->kernel, page->meta, MX_ACCOUNT_KERNEL);
        skb->frag[skb->n_frags++] = (struct skb_frag){ page, (uint32_t)(at.v - page->addr.v),
                                                       (uint32_t)n, (int8_t)page->node };
        done += (uint32_t)n;
    }
    return true;
}

/* False: there is no memory. */
static bool add_copy(struct openmx *omx, struct sk_buff *skb, struct openmx_region *region,
                     uint64_t offset, uint32_t bytes)
{
    struct k_page *page = k_page_alloc(omx->kernel, K_NODE_LOCAL, bytes > K_PAGE_BYTES ? 1 : 0);
    uint32_t done = 0;
    if (page == NULL)
        return false;
    while (done < bytes) {
        uint64_t n = bytes - done;
        unsigned i;
        const struct kaddr at = openmx_region_at(region, offset + done, &n, &i);
        k_copy(omx->kernel, kaddr_add(page->addr, done), at, n);
        done += (uint32_t)n;
    }
    skb->frag[0] = (struct skb_frag){ page, 0, bytes, (int8_t)page->node };
    skb->n_frags = 1;
    return true;
}

/* The region is held. False: there is no memory. */
static bool reply(struct openmx_port *port, struct openmx_region *region,
                  const struct mx_head *head, const struct mx_pull_header *request, uint32_t offset,
                  uint32_t bytes, uint32_t frame)
{
    struct openmx *omx = port->omx;
    const struct mx_reply_header h = { .type = MX_PACKET_PULL_REPLY,
                                       .frame = (uint8_t)frame,
                                       .bytes = mx_be16((uint16_t)bytes),
                                       .offset = mx_be32(offset),
                                       .handle = request->handle,
                                       .magic = request->magic };
    struct sk_buff *skb = openmx_packet_new(omx, head->source, &h, sizeof h);
    if (!add_pieces(skb, region, offset, bytes) && !add_copy(omx, skb, region, offset, bytes)) {
        omx->stats.no_memory++;
        skb_free(omx->net, skb);
        return false;
    }
    skb->bytes = bytes;
    skb->freed = reply_sent;
    skb->freed_arg = region;
    region->users++;
    port->refs++;
    openmx_atomic(omx->kernel, region->lines, MX_ACCOUNT_PULL);
    openmx_transmit(omx, skb);
    return true;
}

void openmx_answer(struct openmx_port *port, const struct mx_head *head,
                   const struct mx_pull_header *request)
{
    struct openmx *omx = port->omx;
    const uint32_t offset = mx_be32(request->block_offset), bytes = mx_be32(request->block_bytes);
    const uint32_t frame_bytes = mx_be16(request->frame_bytes);
    if (mx_be32(request->common.session) != port->port.session) {
        refuse(omx, head, request, MX_NACK_BAD_SESSION);
        return;
    }
    struct openmx_region *region = openmx_region_get(port, request->region,
                                                     request->region_sequence, false);
    if (region == NULL || (uint64_t)offset + bytes > region->bytes || frame_bytes == 0 ||
        frame_bytes > MX_REPLY_BYTES_JUMBO || offset % frame_bytes != 0 ||
        bytes > 32 * frame_bytes) {
        refuse(omx, head, request, MX_NACK_BAD_REGION);
        if (region != NULL)
            openmx_region_put(region);
        return;
    }
    for (uint32_t done = 0; done < bytes; done += frame_bytes) {
        const uint32_t left = bytes - done;
        if (region->closing ||
            !reply(port, region, head, request, offset + done,
                   left < frame_bytes ? left : frame_bytes, (offset + done) / frame_bytes))
            break;
    }
    openmx_atomic(omx->kernel, region->lines, MX_ACCOUNT_PULL);
    openmx_region_put(region);
}
