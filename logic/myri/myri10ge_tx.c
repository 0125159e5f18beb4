/*
 * Sending: a ring in the adapter's SRAM that the driver writes.
 *
 * What it does: A packet is a request of 16 bytes for its headers and one for each part of a
 *   fragment up to a boundary of 4 KiB, all of them mapped. Four requests are a line, written
 *   through a write-combining mapping; a window of the adapter says how many of the line count. The
 *   queue stops while there may not be room for the largest packet. What has been sent is taken
 *   from the ring by the interrupt handler of slice 0, which learns of it by the count in the block
 *   that comes with an interrupt, and freed by a soft interrupt of the same CPU. An interrupt that
 *   tells of sent packets only does not begin to poll.
 * Leaves out: segmentation, several send queues, packets of more than 12 requests (dropped; Linux
 *   copies them).
 * Follows: Linux 2.6.26 drivers/net/myri10ge/myri10ge.c (myri10ge_xmit, myri10ge_submit_req_wc,
 *   myri10ge_tx_done), net/core/dev.c (dev_kfree_skb_irq, net_tx_action).
 * Costs: Per packet driver_transmit_cycles and driver_fragment_cycles, mappings, the line of books,
 *   the lines of requests, the lines of locks and counts (enum myri_line); when it was sent
 *   driver_complete_cycles, driver_put_page_cycles per fragment, two such lines.
 */
#include "logic/myri/myri10ge_internal.h"

#include <errno.h>
#include <string.h>

#define LOCK_CYCLES 20u /* one read of a lock that another CPU holds */

static bool has_room(const struct myri_tx_ring *tx)
{
    return tx->mask + 1u - (tx->requested - tx->done) > MYRI_SEND_MAX;
}

static void touch_books(struct myri10ge_dev *myri, uint32_t index, bool write)
{
    struct myri_tx_ring *tx = &myri->tx;
    struct kaddr at = kaddr_add(tx->lines->addr, (uint64_t)(index & tx->mask) * MYRI_INFO_BYTES);
    if (write)
        k_touch_write(myri->kernel, at, MYRI_INFO_BYTES);
    else
        k_touch(myri->kernel, at, MYRI_INFO_BYTES);
}

/* A packet in the making. */
struct packet {
    unsigned n;
    uint32_t bytes;
    struct myri_send request[MYRI_SEND_MAX + MYRI_SENDS_PER_LINE];
    struct myri_tx_info info[MYRI_SEND_MAX];
};

/* The parts of a mapping, each up to the next boundary. */
static int add(struct myri10ge_dev *myri, struct packet *packet, struct kaddr at, uint32_t bytes)
{
    uint64_t dma;
    int error = k_dma_map(&myri->pci->device, at, bytes, K_DMA_TO_DEVICE, &dma);
    if (error != 0)
        return error;
    for (uint32_t done = 0, n; done < bytes; done += n) {
        const uint64_t from = dma + done;
        n = MYRI_SEGMENT_MAX - (uint32_t)(from % MYRI_SEGMENT_MAX);
        if (n > bytes - done)
            n = bytes - done;
        if (packet->n == MYRI_SEND_MAX) {
            if (done == 0) /* else an earlier part has it */
                k_dma_unmap(&myri->pci->device, dma, bytes, K_DMA_TO_DEVICE);
            return -E2BIG;
        }
        packet->info[packet->n] = (struct myri_tx_info){ .dma = dma,
                                                         .bytes = done == 0 ? bytes : 0 };
        packet->request[packet->n++] = (struct myri_send){
            .high = myri_be32((uint32_t)(from >> 32)),
            .low = myri_be32((uint32_t)from),
            .bytes = myri_be16((uint16_t)n),
            .flags = (packet->bytes & 1) != 0 ? MYRI_SEND_ALIGN_ODD : 0,
        };
        packet->bytes += n;
    }
    return 0;
}

static int build(struct myri10ge_dev *myri, struct packet *packet, const struct sk_buff *skb)
{
    packet->n = packet->bytes = 0;
    int error = skb->frag_list != NULL ? -E2BIG : add(myri, packet, skb->head, skb->head_bytes);
    for (unsigned i = 0; error == 0 && i < skb->n_frags; i++)
        if (skb->frag[i].bytes > 0)
            error = add(myri, packet, kaddr_add(skb->frag[i].page->addr, skb->frag[i].offset),
                        skb->frag[i].bytes);
    if (error == 0 && packet->bytes > myri->dev.mtu_bytes + 14)
        error = -EMSGSIZE;
    if (error == 0)
        return 0;
    for (unsigned i = 0; i < packet->n; i++)
        if (packet->info[i].bytes > 0)
            k_dma_unmap(&myri->pci->device, packet->info[i].dma, packet->info[i].bytes,
                        K_DMA_TO_DEVICE);
    return error;
}

/* A protocol that the adapter does not know needs no checksum; of IPv4 it computes both. */
static void set_flags(struct packet *packet, const struct sk_buff *skb)
{
    const uint8_t flags = skb->flow.protocol != 0 ? MYRI_SEND_CHECKSUM : 0;
    for (unsigned i = 0; i < packet->n; i++)
        packet->request[i].flags |= (uint8_t)(MYRI_SEND_NO_TSO | flags);
    packet->request[0].flags |= MYRI_SEND_FIRST;
    if (packet->bytes <= MYRI_SEND_SMALL_MAX)
        packet->request[0].flags |= MYRI_SEND_SMALL;
    packet->request[0].n_segments = (uint8_t)packet->n;
}

static void submit(struct myri10ge_dev *myri, struct packet *packet, struct sk_buff *skb)
{
    struct myri_tx_ring *tx = &myri->tx;
    struct k_pci_dev *pci = myri->pci;
    packet->info[0].skb = skb;
    packet->info[packet->n - 1].last = true;
    memset(packet->request + packet->n, 0, MYRI_SENDS_PER_LINE * sizeof packet->request[0]);
    for (unsigned i = 0; i < packet->n; i++) {
        tx->info[tx->requested & tx->mask] = packet->info[i];
        touch_books(myri, tx->requested, true);
        tx->requested++;
    }
    for (unsigned at = 0; at < packet->n; at += MYRI_SENDS_PER_LINE) {
        const unsigned left = packet->n - at, n = left < 4 ? left : 4;
        k_write_lines(pci, pci->bar_base[0] + MYRI_SEND(n), &packet->request[at], MYRI_LINE_BYTES);
        myri->slice[0].stats.tx_lines++;
    }
    k_write_drain(pci);
    myri->slice[0].stats.tx_packets++;
}

static enum net_xmit drop(struct myri10ge_dev *myri, struct sk_buff *skb)
{
    myri->dev.tx[0].drops++;
    myri->slice[0].stats.tx_drops++;
    skb_free(myri->net, skb);
    return NET_XMIT_OK;
}

enum net_xmit myri10ge_start_xmit(struct sk_buff *skb, struct net_device *dev)
{
    struct myri10ge_dev *myri = myri10ge_of(dev);
    struct myri_tx_ring *tx = &myri->tx;
    while (tx->locked && !myri->closing)
        k_compute(myri->kernel, LOCK_CYCLES);
    if (!dev->running || myri->closing)
        return drop(myri, skb);
    if (!has_room(tx)) {
        net_queue_stop(dev, 0);
        return NET_XMIT_BUSY;
    }
    struct packet packet;
    tx->locked = true;
    myri10ge_look_and_lock(myri, MYRI_LINE_QUEUE); /* dev->qdisc; queue_lock */
    myri10ge_look_and_lock(myri,
                           MYRI_LINE_STATE); /* netif_queue_stopped(); __LINK_STATE_QDISC_RUNNING */
    myri10ge_lock_shared(myri, MYRI_LINE_TRANSMIT);
    k_touch(myri->kernel, myri10ge_shared(myri, MYRI_LINE_DONE), 8);
    myri10ge_change_shared(myri, MYRI_LINE_REQUESTS);
    k_run(myri->kernel, K_TEXT_MYRI_TRANSMIT,
          myri->costs->driver_transmit_cycles +
              (uint64_t)skb->n_frags * myri->costs->driver_fragment_cycles);
    const int error = build(myri, &packet, skb);
    if (error == 0) {
        set_flags(&packet, skb);
        submit(myri, &packet, skb);
        if (!has_room(tx)) {
            net_queue_stop(dev, 0);
            myri->slice[0].stats.tx_stops++;
        }
    }
    tx->locked = false;
    return error == 0 ? NET_XMIT_OK : drop(myri, skb);
}

/* The oldest packet of the ring, which gives up its mappings; NULL: it was dropped. */
static struct sk_buff *complete(struct myri10ge_dev *myri, bool charge)
{
    struct myri_tx_ring *tx = &myri->tx;
    struct sk_buff *skb = NULL;
    bool last = false;
    while (!last && tx->done != tx->requested) {
        const struct myri_tx_info info = tx->info[tx->done & tx->mask];
        if (charge)
            touch_books(myri, tx->done, false);
        if (info.skb != NULL)
            skb = info.skb;
        if (info.bytes > 0)
            k_dma_unmap(&myri->pci->device, info.dma, info.bytes, K_DMA_TO_DEVICE);
        last = info.last;
        tx->done++;
    }
    tx->packets_done++;
    return skb;
}

void myri10ge_tx_done(struct myri10ge_dev *myri)
{
    struct myri_tx_ring *tx = &myri->tx;
    struct myri_sent *sent = &myri->sent[k_cpu(myri->kernel)];
    const uint32_t until = myri->send_done;
    while ((int32_t)(until - tx->packets_done) > 0 && tx->done != tx->requested && !myri->closing) {
        myri10ge_change_shared(myri, MYRI_LINE_DONE);
        k_touch_write(myri->kernel, myri10ge_shared(myri, MYRI_LINE_STATS), 8);
        struct sk_buff *skb = complete(myri, true);
        k_touch(myri->kernel, myri10ge_shared(myri, MYRI_LINE_STATE),
                8); /* netif_queue_stopped() */
        if (skb == NULL)
            continue;
        k_run(myri->kernel, K_TEXT_MYRI_COMPLETE, myri->costs->driver_complete_cycles);
        skb->next = sent->first;
        sent->first = skb;
        k_napi_schedule(&sent->napi);
    }
}

/* Linux: net_tx_action(), the queue's wake-up as well. */
static int free_sent(struct k_napi *napi, int budget)
{
    struct myri_sent *sent = K_CONTAINER(napi, struct myri_sent, napi);
    struct myri10ge_dev *myri = sent->myri;
    struct myri_tx_ring *tx = &myri->tx;
    struct sk_buff *skb;
    (void)budget;
    while ((skb = sent->first) != NULL) {
        sent->first = skb->next;
        skb->next = NULL;
        k_compute(myri->kernel, (uint64_t)skb->n_frags * myri->costs->driver_put_page_cycles);
        skb_free(myri->net, skb);
    }
    if (myri->dev.queue_stopped[0] && !myri->closing &&
        tx->requested - tx->done < (tx->mask + 1) / 2)
        net_queue_wake(&myri->dev, 0);
    k_napi_complete(napi);
    return 0;
}

void myri10ge_sent_init(struct myri10ge_dev *myri)
{
    const unsigned n = k_n_cpus(myri->kernel);
    myri->sent = k_zalloc(n * sizeof *myri->sent);
    for (unsigned i = 0; i < n; i++) {
        myri->sent[i].myri = myri;
        k_napi_init(&myri->sent[i].napi, myri->kernel, free_sent);
    }
}

bool myri10ge_sent_waits(const struct myri10ge_dev *myri)
{
    for (unsigned i = 0; i < k_n_cpus(myri->kernel); i++)
        if (myri->sent[i].napi.scheduled)
            return true;
    return false;
}

int myri10ge_tx_new(struct myri10ge_dev *myri)
{
    struct myri_tx_ring *tx = &myri->tx;
    const uint32_t n = myri->ring_entries;
    *tx = (struct myri_tx_ring){ .mask = n - 1 };
    tx->info = k_zalloc(n * sizeof *tx->info);
    tx->lines = myri10ge_lines_new(myri, (size_t)n * MYRI_INFO_BYTES);
    myri->shared = myri10ge_lines_new(
        myri, (MYRI_LINE_SLICES + (size_t)myri->n_slices * MYRI_LINES_OF_SLICE) * K_LINE_BYTES);
    return tx->lines != NULL && myri->shared != NULL ? 0 : -ENOMEM;
}

void myri10ge_tx_free(struct myri10ge_dev *myri)
{
    struct myri_tx_ring *tx = &myri->tx;
    while (tx->info != NULL && tx->done != tx->requested) {
        struct sk_buff *skb = complete(myri, false);
        if (skb != NULL)
            skb_free(myri->net, skb);
    }
    if (tx->lines != NULL)
        k_page_put(myri->kernel, tx->lines);
    if (myri->shared != NULL)
        k_page_put(myri->kernel, myri->shared);
    tx->lines = myri->shared = NULL;
    k_free(tx->info);
    tx->info = NULL;
}
