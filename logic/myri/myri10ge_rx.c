/*
 * Receiving: rings of buffers in the adapter, completions in memory, a poll function per slice.
 *
 * What it does: Posts parts of pages, eight in a line: small ones for packets of up to 1518 bytes
 *   (126 with an MTU of 1500), big ones of a page, of which a longer packet takes several. A
 *   completion of 4 bytes is new when its length is not 0, which the driver then clears. A packet
 *   goes up as headers and one fragment per buffer; where its headers end is known for IPv4 only.
 *   The interrupt of slice 0 comes with a block of counters. It is acknowledged at once, and once
 *   more when the poll function has found nothing.
 * Leaves out: LRO in software (Linux' inet_lro; the stack's GRO does the same), INTx.
 * Follows: Linux 2.6.26 drivers/net/myri10ge/myri10ge.c (myri10ge_alloc_rx_pages, myri10ge_rx_done,
 *   myri10ge_clean_rx_done, myri10ge_poll, myri10ge_intr).
 * Costs: per interrupt driver_irq_cycles and the block's line; per poll driver_poll_cycles; per
 *   packet driver_receive_cycles, the lines of completion, books, the first 64 bytes, which are
 *   copied, and those of the slice's and the device's state that a packet changes (enum myri_line);
 *   per buffer driver_refill_cycles, a new page where one begins.
 */
#include "logic/myri/myri10ge_internal.h"

#include <errno.h>
#include <string.h>

#define COPIED_BYTES     64u /* MYRI10GE_HLEN */
#define ETHER_BYTES      14u
#define IPV4_BYTES       20u
#define ETHER_TYPE_IPV4  0x0800u
#define PROTOCOL_TCP     6u
#define PROTOCOL_UDP     17u
#define REFILL_RETRY_PS  K_MS
#define COMPLETIONS_RING 2u /* completions a slice, in entries of a ring: for both rings */

static uint32_t get16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

/* ---- Buffers --------------------------------------------------------------------------------- */

static void touch_books(struct myri10ge_slice *slice, const struct myri_rx_ring *ring,
                        uint32_t index, uint32_t n, bool write)
{
    struct kaddr at = kaddr_add(ring->lines->addr,
                                (uint64_t)(index & ring->mask) * MYRI_INFO_BYTES);
    if (write)
        k_touch_write(slice->myri->kernel, at, (size_t)n * MYRI_INFO_BYTES);
    else
        k_touch(slice->myri->kernel, at, (size_t)n * MYRI_INFO_BYTES);
}

static bool next_page(struct myri10ge_slice *slice, struct myri_rx_ring *ring)
{
    struct myri10ge_dev *myri = slice->myri;
    struct k_page *page = k_page_alloc(myri->kernel, K_NODE_LOCAL, 0);
    uint64_t dma;
    if (page == NULL)
        return false;
    if (k_dma_map(&myri->pci->device, page->addr, K_PAGE_BYTES, K_DMA_FROM_DEVICE, &dma) != 0) {
        k_page_put(myri->kernel, page);
        return false;
    }
    ring->page = page;
    ring->page_dma = dma;
    ring->page_offset = 0;
    return true;
}

/* The next buffer; the last of a page takes the ring's reference with it. False: no page. */
static bool fill_one(struct myri10ge_slice *slice, struct myri_rx_ring *ring)
{
    struct myri_rx_info *info = &ring->info[ring->filled & ring->mask];
    if (ring->page == NULL && !next_page(slice, ring))
        return false;
    *info = (struct myri_rx_info){ .page = ring->page,
                                   .dma = ring->page_dma,
                                   .offset = ring->page_offset };
    ring->page_offset += ring->stride;
    info->last = ring->page_offset + ring->bytes > K_PAGE_BYTES;
    if (info->last)
        ring->page = NULL;
    else
        k_page_get(info->page);
    ring->filled++;
    return true;
}

static void post_line(struct myri10ge_slice *slice, const struct myri_rx_ring *ring)
{
    struct myri10ge_dev *myri = slice->myri;
    struct myri_receive line[MYRI_RECEIVES_PER_LINE];
    const uint32_t first = ring->filled - MYRI_RECEIVES_PER_LINE;
    for (unsigned i = 0; i < MYRI_RECEIVES_PER_LINE; i++) {
        const struct myri_rx_info *info = &ring->info[(first + i) & ring->mask];
        const uint64_t dma = info->dma + info->offset;
        line[i].high = myri_be32((uint32_t)(dma >> 32));
        line[i].low = myri_be32((uint32_t)dma);
    }
    k_run(myri->kernel, K_TEXT_MYRI_REFILL,
          (uint64_t)MYRI_RECEIVES_PER_LINE * myri->costs->driver_refill_cycles);
    touch_books(slice, ring, first, MYRI_RECEIVES_PER_LINE, true);
    k_write_lines(myri->pci,
                  myri->pci->bar_base[0] + ring->window + slice->number * MYRI_LINE_BYTES, line,
                  sizeof line);
    k_write_drain(myri->pci);
}

static bool refill_ring(struct myri10ge_slice *slice, struct myri_rx_ring *ring)
{
    while (ring->filled - ring->used <= ring->mask) {
        if (!fill_one(slice, ring)) {
            slice->stats.page_failures++;
            return false;
        }
        if (ring->filled % MYRI_RECEIVES_PER_LINE == 0)
            post_line(slice, ring);
    }
    return true;
}

static bool is_low(const struct myri_rx_ring *ring)
{
    return ring->filled - ring->used < MYRI_REFILL_BELOW;
}

void myri10ge_refill(struct myri10ge_slice *slice)
{
    struct myri10ge_dev *myri = slice->myri;
    bool there = true;
    if (is_low(&slice->small))
        there = refill_ring(slice, &slice->small);
    if (is_low(&slice->big))
        there = refill_ring(slice, &slice->big) && there;
    if (!there && !myri->closing)
        k_timer_set(&slice->retry, k_now_ps(myri->kernel) + REFILL_RETRY_PS);
}

static void retry(struct k_timer *timer)
{
    myri10ge_schedule(K_CONTAINER(timer, struct myri10ge_slice, retry));
}

/* ---- Packets --------------------------------------------------------------------------------- */

/* Takes the next buffer of a ring; the page's reference is the caller's. */
static struct myri_rx_info take(struct myri10ge_slice *slice, struct myri_rx_ring *ring)
{
    struct myri10ge_dev *myri = slice->myri;
    const struct myri_rx_info info = ring->info[ring->used & ring->mask];
    touch_books(slice, ring, ring->used, 1, false);
    myri10ge_change_slice(slice, MYRI_LINE_BUFFERS + (ring == &slice->big));
    if (info.last)
        k_dma_unmap(&myri->pci->device, info.dma, K_PAGE_BYTES, K_DMA_FROM_DEVICE);
    ring->used++;
    return info;
}

/* Bytes of the headers of a packet, as far as this driver knows them. */
static uint32_t header_bytes(const uint8_t *head, uint32_t bytes)
{
    const uint32_t known = bytes < COPIED_BYTES ? bytes : COPIED_BYTES;
    const uint8_t *ip = head + ETHER_BYTES, *l4 = ip + IPV4_BYTES;
    uint32_t n = ETHER_BYTES + IPV4_BYTES;
    if (known < n + 8 || get16(head + 12) != ETHER_TYPE_IPV4 || ip[0] != 0x45)
        return known;
    if (ip[9] == PROTOCOL_TCP && known >= n + 20)
        n += (uint32_t)(l4[12] >> 4) * 4;
    else if (ip[9] == PROTOCOL_UDP)
        n += 8;
    else
        return known;
    return n <= bytes ? n : known;
}

/* The adapter's sum with that of the pseudo header: all ones if it is right. */
static enum net_checksum check(const uint8_t *head, uint32_t bytes, uint16_t sum_of_packet)
{
    const uint8_t *ip = head + ETHER_BYTES;
    if (bytes < ETHER_BYTES + IPV4_BYTES || get16(head + 12) != ETHER_TYPE_IPV4)
        return NET_CHECKSUM_NONE;
    uint32_t sum = sum_of_packet + ip[9] + get16(ip + 2) - IPV4_BYTES;
    for (unsigned i = 12; i < IPV4_BYTES; i += 2)
        sum += get16(ip + i);
    while (sum >> 16 != 0)
        sum = (sum & 0xffffu) + (sum >> 16);
    return sum == 0xffffu ? NET_CHECKSUM_RIGHT : NET_CHECKSUM_WRONG;
}

/* Headers and the rest of the first buffer. */
static void first_buffer(struct myri10ge_slice *slice, struct sk_buff *skb,
                         const struct myri_rx_info *info, uint32_t in_first, uint16_t checksum)
{
    struct kernel *kernel = slice->myri->kernel;
    uint8_t head[COPIED_BYTES];
    const uint32_t offset = info->offset + MYRI_PAD_BYTES;
    const uint32_t copied = in_first < COPIED_BYTES ? in_first : COPIED_BYTES;
    const struct kaddr linear = skb->head;
    skb->head = kaddr_add(info->page->addr, offset);
    skb->head_page = info->page;
    skb->copied_bytes = (uint16_t)copied;
    k_load(kernel, skb->head, head, copied);
    k_touch_write(kernel, linear, copied); /* where Linux copies them */
    skb->head_bytes = (uint16_t)header_bytes(head, in_first);
    skb->checksum = (uint8_t)check(head, copied, checksum);
    if (in_first == skb->head_bytes)
        return;
    k_page_get(info->page);
    skb->frag[skb->n_frags++] = (struct skb_frag){ .page = info->page,
                                                   .offset = offset + skb->head_bytes,
                                                   .bytes = in_first - skb->head_bytes,
                                                   .node = (int8_t)info->page->node };
}

static void receive(struct myri10ge_slice *slice, uint32_t bytes, uint16_t checksum)
{
    struct myri10ge_dev *myri = slice->myri;
    struct myri_rx_ring *ring = bytes <= myri->small_bytes ? &slice->small : &slice->big;
    const uint32_t whole = bytes + MYRI_PAD_BYTES;
    const uint32_t n = (whole + ring->bytes - 1) / ring->bytes;
    if (ring->filled - ring->used < n || bytes < ETHER_BYTES) {
        slice->stats.rx_errors++;
        k_warn(myri->kernel, "%s: slice %u: a completion of %u bytes without a buffer", myri->name,
               slice->number, bytes);
        return;
    }
    struct myri_rx_info info = take(slice, ring);
    k_prefetch(myri->kernel, kaddr_add(info.page->addr, info.offset), K_LINE_BYTES);
    struct sk_buff *skb = skb_new(myri->net);
    skb->dev = &myri->dev;
    skb->queue = (uint16_t)slice->number;
    uint32_t done = whole < ring->bytes ? whole : ring->bytes;
    first_buffer(slice, skb, &info, done - MYRI_PAD_BYTES, checksum);
    while (done < whole) {
        const uint32_t part = whole - done < ring->bytes ? whole - done : ring->bytes;
        info = take(slice, ring);
        skb->frag[skb->n_frags++] = (struct skb_frag){
            .page = info.page, .offset = info.offset, .bytes = part, .node = (int8_t)info.page->node
        };
        done += part;
    }
    skb->bytes = bytes - skb->head_bytes;
    skb->truesize = n * ring->bytes + 256;
    k_touch_write(myri->kernel, myri10ge_shared(myri, MYRI_LINE_STATS), 8);
    k_touch_write(myri->kernel, myri10ge_shared(myri, MYRI_LINE_LAST_RX), 8);
    k_run(myri->kernel, K_TEXT_MYRI_RECEIVE, myri->costs->driver_receive_cycles);
    slice->stats.rx_packets++;
    net_gro_receive(&slice->napi, skb);
}

static int clean(struct myri10ge_slice *slice, int budget)
{
    struct myri10ge_dev *myri = slice->myri;
    const struct myri_slot none = { .bytes = 0 };
    int n = 0;
    for (; n < budget && !myri->closing; n++) {
        struct myri_slot slot;
        struct kaddr at = kaddr_add(
            slice->queue, (uint64_t)(slice->queue_next & slice->queue_mask) * MYRI_SLOT_BYTES);
        k_load(myri->kernel, at, &slot, sizeof slot);
        if (slot.bytes == 0)
            break;
        k_store(myri->kernel, at, &none, sizeof none);
        slice->queue_next++;
        myri10ge_change_slice(slice, MYRI_LINE_COMPLETIONS);
        receive(slice, myri_be16(slot.bytes), myri_be16(slot.checksum));
    }
    return n;
}

/* ---- Polling and interrupts ------------------------------------------------------------------ */

static void acknowledge(struct myri10ge_slice *slice, uint32_t which)
{
    struct myri10ge_dev *myri = slice->myri;
    k_writel(myri->pci, 0, myri->ack_at + slice->number * MYRI_ACK_BYTES + which,
             myri_be32(MYRI_ACK_VALUE));
}

int myri10ge_poll(struct k_napi *napi, int budget)
{
    struct myri10ge_slice *slice = K_CONTAINER(napi, struct myri10ge_slice, napi);
    struct myri10ge_dev *myri = slice->myri;
    int n = 0;
    slice->inside++;
    slice->stats.polls++;
    if (!myri->closing) {
        k_run(myri->kernel, K_TEXT_MYRI_POLL, myri->costs->driver_poll_cycles);
        if (slice->number == 0) {
            if (myri->link_told)
                net_device_carrier(&myri->dev, myri->link_up);
            myri->link_told = false;
        }
        n = clean(slice, budget);
        net_gro_flush(napi, myri->net);
        net_rx_polled(&slice->progress, (uint32_t)n, n < budget);
        if (!myri->closing)
            myri10ge_refill(slice);
    }
    if (n < budget && k_napi_complete(napi)) {
        slice->active = false;
        myri10ge_lock_slice(slice, MYRI_LINE_NAPI);
        if (!myri->closing)
            acknowledge(slice, MYRI_ACK_CLAIM);
    }
    slice->inside--;
    return n;
}

void myri10ge_schedule(struct myri10ge_slice *slice)
{
    if (slice->myri->closing)
        return;
    slice->active = true;
    myri10ge_look_and_lock(slice->myri, MYRI_LINE_SLICES + slice->number * MYRI_LINES_OF_SLICE +
                                            MYRI_LINE_NAPI); /* napi_schedule_prep() */
    k_napi_schedule(&slice->napi);
}

/* Slice 0's block, and what it tells of sent packets. True: there is something for the poll
 * function. */
static bool read_status(struct myri10ge_dev *myri)
{
    struct myri_status status;
    const uint8_t none = 0;
    k_load(myri->kernel, myri->status, &status, sizeof status);
    if (status.valid == 0)
        return false;
    k_store(myri->kernel, kaddr_add(myri->status, offsetof(struct myri_status, valid)), &none,
            sizeof none);
    myri->send_done = myri_be32(status.send_done);
    if (status.updated != 0) {
        myri->link_up = myri_be32(status.link_up) == 1;
        myri->link_told = true;
    }
    return (status.valid & MYRI_VALID_RECEIVE) != 0 || status.updated != 0;
}

void myri10ge_interrupt(void *arg)
{
    struct myri10ge_slice *slice = arg;
    struct myri10ge_dev *myri = slice->myri;
    if (myri->closing)
        return;
    slice->inside++;
    slice->stats.interrupts++;
    myri10ge_lock_slice(slice, MYRI_LINE_IRQ);
    myri10ge_change_slice(slice, MYRI_LINE_IRQ_STATE);
    k_run(myri->kernel, K_TEXT_MYRI_IRQ, myri->costs->driver_irq_cycles);
    if (slice->number != 0 || read_status(myri))
        myri10ge_schedule(slice);
    if (slice->number == 0)
        myri10ge_tx_done(myri);
    if (slice->number == 0 && !myri->closing)
        acknowledge(slice, MYRI_ACK_STATUS);
    slice->inside--;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static int ring_new(struct myri10ge_slice *slice, struct myri_rx_ring *ring, uint32_t bytes,
                    uint32_t window)
{
    const uint32_t n = slice->myri->ring_entries;
    *ring = (struct myri_rx_ring){ .mask = n - 1, .bytes = bytes, .window = window };
    ring->stride = (bytes + K_LINE_BYTES - 1) / K_LINE_BYTES * K_LINE_BYTES;
    ring->info = k_zalloc(n * sizeof *ring->info);
    ring->lines = myri10ge_lines_new(slice->myri, (size_t)n * MYRI_INFO_BYTES);
    return ring->lines != NULL ? 0 : -ENOMEM;
}

static void ring_free(struct myri10ge_slice *slice, struct myri_rx_ring *ring)
{
    struct kernel *kernel = slice->myri->kernel;
    for (; ring->info != NULL && ring->used != ring->filled; ring->used++) {
        const struct myri_rx_info *info = &ring->info[ring->used & ring->mask];
        if (info->last)
            k_dma_unmap(&slice->myri->pci->device, info->dma, K_PAGE_BYTES, K_DMA_FROM_DEVICE);
        k_page_put(kernel, info->page);
    }
    if (ring->page != NULL) {
        k_dma_unmap(&slice->myri->pci->device, ring->page_dma, K_PAGE_BYTES, K_DMA_FROM_DEVICE);
        k_page_put(kernel, ring->page);
    }
    if (ring->lines != NULL)
        k_page_put(kernel, ring->lines);
    k_free(ring->info);
    *ring = (struct myri_rx_ring){ .mask = 0 };
}

int myri10ge_slice_new(struct myri10ge_slice *slice)
{
    struct myri10ge_dev *myri = slice->myri;
    const uint32_t n = COMPLETIONS_RING * myri->ring_entries;
    k_napi_init(&slice->napi, myri->kernel, myri10ge_poll);
    k_timer_init(&slice->retry, myri->kernel, retry);
    slice->queue_mask = n - 1;
    slice->queue_next = 0;
    slice->progress = (struct net_rx_progress){ .entries = n };
    int error = ring_new(slice, &slice->small, myri->small_bytes + MYRI_PAD_BYTES,
                         MYRI_RECEIVE_SMALL);
    if (error == 0)
        error = ring_new(slice, &slice->big, K_PAGE_BYTES, MYRI_RECEIVE_BIG);
    if (error != 0)
        return error;
    return k_dma_alloc(&myri->pci->device, (int)k_node_of_cpu(myri->kernel, slice->cpu),
                       (size_t)n * MYRI_SLOT_BYTES, &slice->queue, &slice->queue_dma);
}

void myri10ge_slice_free(struct myri10ge_slice *slice)
{
    struct myri10ge_dev *myri = slice->myri;
    k_timer_release(&slice->retry);
    ring_free(slice, &slice->small);
    ring_free(slice, &slice->big);
    if (slice->queue.v != 0)
        k_dma_free(&myri->pci->device, (size_t)(slice->queue_mask + 1) * MYRI_SLOT_BYTES,
                   slice->queue, slice->queue_dma);
    slice->queue.v = 0;
}
