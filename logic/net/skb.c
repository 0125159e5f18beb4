/*
 * What it does: Packet buffers: their cache lines, their references to pages, the sharing of pages
 *   between the buffer that waits for its acknowledgement and the one at the device.
 * Leaves out: linear data beside the headers (all payload is in page fragments).
 * Follows: Linux 4.14 net/core/skbuff.c (skb_release_data, skb_split, skb_clone with fclone),
 *   include/linux/skbuff.h.
 * Costs: A new buffer stores SKB_TOUCH_NEW bytes; freeing one loads one line. Putting a page costs
 *   what k_page_put() charges (its line, k_page.meta, included); a buffer that a socket sent costs
 *   sent_free_cycles.
 */
#include "logic/net/net_internal.h"

struct sk_buff *skb_new(struct net *net)
{
    struct kaddr addr;
    struct sk_buff *skb = k_cache_get(net->skbs, &addr);
    memset(skb, 0, offsetof(struct sk_buff, frag));
    skb->meta = addr;
    skb->head = kaddr_add(addr, SKB_META_BYTES);
    skb->users = 1;
    k_touch_write(net->kernel, addr, SKB_TOUCH_NEW);
    return skb;
}

/* Drops the fragments' pages once they are not shared any more. */
static void release_pages(struct net *net, struct sk_buff *skb)
{
    for (unsigned i = 0; i < NET_MAX(skb->n_frags, skb->held_frags); i++)
        k_page_put(net->kernel, skb->frag[i].page);
    skb->n_frags = skb->held_frags = 0;
    if (skb->head_page)
        k_page_put(net->kernel, skb->head_page);
    skb->head_page = NULL;
}

/* A packet of the socket left the device (tcp_wfree, sock_wfree). */
static void socket_freed(struct net *net, struct socket *sk, uint32_t truesize)
{
    sk->wmem_alloc -= truesize;
    if (sk->flow.protocol == PROTOCOL_UDP)
        udp_freed(sk);
    else if (sk->throttled && !sk->tsq_queued) {
        struct net_cpu *cpu = &net->cpu[k_cpu(net->kernel)];
        sk->throttled = false;
        sk->tsq_queued = true;
        sk->tsq_next = NULL;
        if (cpu->tsq)
            cpu->tsq_tail->tsq_next = sk;
        else
            cpu->tsq = sk;
        cpu->tsq_tail = sk;
        net_socket_get(sk);
        net_cpu_later(net);
    }
    net_socket_put(sk);
}

static void free_one(struct net *net, struct sk_buff *skb)
{
    struct sk_buff *original = skb->original;
    k_touch(net->kernel, skb->meta, SKB_TOUCH_USE);
    if (!original && --skb->users > 0)
        return; /* the last that shares its pages frees it */
    if (original) {
        if (--original->users == 0) {
            release_pages(net, original);
            k_cache_put(net->skbs, original);
        }
    } else
        release_pages(net, skb);
    struct socket *sk = skb->socket;
    uint32_t truesize = skb->truesize;
    if (skb->freed)
        skb->freed(skb);
    k_cache_put(net->skbs, skb);
    if (sk) {
        k_compute(net->kernel, net->costs->sent_free_cycles);
        socket_freed(net, sk, truesize);
    }
}

void skb_free(struct net *net, struct sk_buff *skb)
{
    for (struct sk_buff *next, *part = skb->frag_list; part; part = next) {
        next = part->next;
        free_one(net, part);
    }
    skb->frag_list = NULL;
    free_one(net, skb);
}

bool skb_header_set(struct sk_buff *skb, uint16_t bytes)
{
    struct skb_frag *first = &skb->frag[0];
    uint32_t more = bytes > skb->head_bytes ? bytes - (uint32_t)skb->head_bytes : 0;
    uint32_t less = bytes < skb->head_bytes ? skb->head_bytes - (uint32_t)bytes : 0;
    if (more == 0 && less == 0)
        return true;
    if (!skb->head_page || (more > 0 && (skb->n_frags == 0 || first->bytes < more)))
        return false;
    if (skb->n_frags == 0) { /* what is taken off the headers becomes the first fragment */
        k_page_get(skb->head_page);
        *first = (struct skb_frag){ .page = skb->head_page,
                                    .offset = (uint32_t)(skb->head.v - skb->head_page->addr.v) +
                                              skb->head_bytes,
                                    .node = (int8_t)skb->head_page->node };
        skb->n_frags = 1;
    } else if (first->page != skb->head_page ||
               first->page->addr.v + first->offset != skb->head.v + skb->head_bytes)
        return false;
    first->offset += more - less;
    first->bytes -= more - less;
    skb->bytes -= more - less;
    skb->head_bytes = bytes;
    return true;
}

struct sk_buff *net_skb_share(struct net *net, struct sk_buff *original, uint32_t skip,
                              uint32_t bytes)
{
    struct sk_buff *skb = skb_new(net);
    unsigned from = 0, n = 0;
    skb->bytes = bytes;
    while (bytes > 0 && skip >= original->frag[from].bytes)
        skip -= original->frag[from++].bytes;
    for (; bytes > 0; from++, n++) {
        struct skb_frag *frag = &skb->frag[n];
        *frag = original->frag[from];
        frag->offset += skip;
        frag->bytes = NET_MIN(frag->bytes - skip, bytes);
        bytes -= frag->bytes;
        skip = 0;
    }
    skb->n_frags = (uint16_t)n;
    skb->original = original;
    original->users++;
    return skb;
}

struct sk_buff *net_skb_split(struct net *net, struct sk_buff *skb, uint32_t at)
{
    struct sk_buff *rest = skb_new(net);
    /* A copy at the device uses the pages until it is freed: this one keeps its references. */
    if (skb->users > 1)
        skb->held_frags = NET_MAX(skb->held_frags, skb->n_frags);
    uint32_t before = at;
    unsigned from = 0, n = 0;
    while (before >= skb->frag[from].bytes)
        before -= skb->frag[from++].bytes;
    unsigned keep = from;
    for (; from < skb->n_frags; from++, n++) {
        bool cut = n == 0 && before > 0; /* both hold its page */
        rest->frag[n] = skb->frag[from];
        if (cut || from < skb->held_frags)
            k_page_get(skb->frag[from].page);
        if (!cut)
            continue;
        rest->frag[0].offset += before;
        rest->frag[0].bytes -= before;
        skb->frag[from].bytes = before;
        keep = from + 1;
    }
    rest->n_frags = (uint16_t)n;
    skb->n_frags = (uint16_t)keep;
    rest->bytes = skb->bytes - at;
    skb->bytes = at;
    return rest;
}
