/*
 * What it does: Copies by an engine (I/OAT). Replies of large messages go from their packet to the
 *   region while the handler goes on; a packet is freed when a look finds that its copies have
 *   ended. There is a look whenever a block of the message is complete, and one at its end; if
 *   copies are left then, a worker waits for them. A copy that the engine refuses or fails is done
 *   by a CPU. Messages within the host are copied while the caller waits.
 * Leaves out: more than one channel for a message.
 * Follows: Open-MX 0.9.2 driver/linux/omx_pull.c, omx_dma.h, omx_shared.c; Goglin, "Improving
 *   Message Passing over Ethernet with I/OAT Copy Offload in Open-MX", CLUSTER 2008.
 * Costs: of a reply a mapping of both sides and a descriptor per piece within pages, and a
 *   doorbell; within the host the same per piece of a segment of at most what the engine copies at
 *   once, as its memory is contiguous (logic/dma).
 */
#include "logic/openmx/openmx_internal.h"

#define LOOK_AGAIN_PS K_US

int openmx_copies_init(struct openmx *omx, struct dma_core *dma)
{
    while (omx->n_channels < OPENMX_CHANNELS) {
        struct dma_channel *channel = dma_channel_request(dma, NULL, DMA_SHARED);
        if (channel == NULL)
            break;
        for (unsigned i = 0; i < omx->n_channels; i++)
            if (omx->channel[i] == channel) { /* there are no more */
                dma_channel_release(channel);
                return 0;
            }
        omx->channel[omx->n_channels++] = channel;
    }
    return omx->n_channels > 0 ? 0 : -ENODEV;
}

void openmx_copies_release(struct openmx *omx)
{
    for (unsigned i = 0; i < omx->n_channels; i++)
        dma_channel_release(omx->channel[i]);
    for (struct openmx_copy *copy = omx->free_copies, *next; copy != NULL; copy = next) {
        next = copy->next;
        k_free(copy);
    }
}

static struct openmx_copy *copy_get(struct openmx *omx)
{
    struct openmx_copy *copy = omx->free_copies;
    if (copy != NULL)
        omx->free_copies = copy->next;
    else
        copy = k_zalloc(sizeof *copy);
    copy->next = NULL;
    copy->n_parts = 0;
    return copy;
}

static void copy_put(struct openmx *omx, struct openmx_copy *copy)
{
    copy->next = omx->free_copies;
    omx->free_copies = copy;
}

/* ---- One piece ------------------------------------------------------------------------------- */

static int piece(struct dma_channel *channel, struct kaddr to, struct kaddr from, uint64_t bytes,
                 uint64_t *dma_to, uint64_t *dma_from, dma_cookie *cookie)
{
    struct k_device *device = dma_channel_device(channel);
    struct dma_descriptor *d;
    if (device == NULL)
        return -ENODEV;
    int result = k_dma_map(device, from, bytes, K_DMA_TO_DEVICE, dma_from);
    if (result != 0)
        return result;
    result = k_dma_map(device, to, bytes, K_DMA_FROM_DEVICE, dma_to);
    if (result == 0) {
        result = dma_prepare_copy(channel, *dma_to, *dma_from, bytes, 0, &d);
        if (result == 0) {
            *cookie = dma_submit(d);
            return 0;
        }
        k_dma_unmap(device, *dma_to, bytes, K_DMA_FROM_DEVICE);
    }
    k_dma_unmap(device, *dma_from, bytes, K_DMA_TO_DEVICE);
    return result;
}

/* ---- Replies --------------------------------------------------------------------------------- */

static void unmap(struct openmx_pull *pull, const struct openmx_copy *copy)
{
    struct k_device *device = dma_channel_device(pull->channel);
    for (unsigned i = 0; i < copy->n_parts && device != NULL; i++) {
        k_dma_unmap(device, copy->part[i].from, copy->part[i].bytes, K_DMA_TO_DEVICE);
        k_dma_unmap(device, copy->part[i].to, copy->part[i].bytes, K_DMA_FROM_DEVICE);
    }
}

/* Where a byte of the packet's data is, and how many go on from there. */
static struct kaddr skb_at(const struct sk_buff *skb, uint32_t offset, uint64_t *n)
{
    unsigned i = 0;
    *n = skb_together(skb, offset, *n);
    for (; offset >= skb->frag[i].bytes; i++)
        offset -= skb->frag[i].bytes;
    const uint64_t room = skb->frag[i].bytes - offset;
    *n = *n < room ? *n : room;
    return kaddr_add(skb->frag[i].page->addr, skb->frag[i].offset + offset);
}

bool openmx_copy_begin(struct openmx_pull *pull, struct sk_buff *skb, uint32_t skb_offset,
                       uint32_t offset, uint32_t bytes)
{
    struct openmx *omx = pull->omx;
    struct openmx_copy *copy = copy_get(omx);
    uint32_t done = 0;
    while (done < bytes) {
        uint64_t n = bytes - done;
        unsigned segment;
        dma_cookie cookie;
        const struct kaddr from = skb_at(skb, skb_offset + done, &n);
        const struct kaddr to = openmx_region_at(pull->region, offset + done, &n, &segment);
        const unsigned p = copy->n_parts;
        n = openmx_in_page(to, n);
        if (p == sizeof copy->part / sizeof copy->part[0] ||
            piece(pull->channel, to, from, n, &copy->part[p].to, &copy->part[p].from, &cookie) != 0)
            break;
        copy->part[p].bytes = n;
        copy->part[p].cookie = cookie;
        copy->n_parts++;
        omx->stats.engine_copies++;
        omx->stats.engine_bytes += n;
        done += (uint32_t)n;
    }
    if (copy->n_parts == 0) {
        copy_put(omx, copy);
        return false;
    }
    dma_issue_pending(pull->channel);
    if (done < bytes) { /* the rest by this CPU */
        const struct openmx_data data = { .skb = skb,
                                          .offset = skb_offset + done,
                                          .bytes = bytes - done };
        openmx_region_write(pull->region, offset + done, &data);
    }
    copy->skb = skb;
    copy->skb_offset = skb_offset;
    copy->offset = offset;
    copy->bytes = done;
    if (pull->copies == NULL)
        pull->copies = copy;
    else
        pull->copies_last->next = copy;
    pull->copies_last = copy;
    return true;
}

/* It has ended, well or not. */
static void copy_ended(struct openmx_pull *pull, struct openmx_copy *copy, bool failed)
{
    struct openmx *omx = pull->omx;
    unmap(pull, copy);
    if (failed) {
        const struct openmx_data data = { .skb = copy->skb,
                                          .offset = copy->skb_offset,
                                          .bytes = copy->bytes };
        omx->stats.engine_failed++;
        openmx_region_write(pull->region, copy->offset, &data);
    }
    skb_free(omx->net, copy->skb);
    copy_put(omx, copy);
}

/* Of all its parts. */
static enum dma_state state_of(const struct openmx_pull *pull, const struct openmx_copy *copy)
{
    enum dma_state state = DMA_COMPLETE;
    for (unsigned i = copy->n_parts; i-- > 0 && state == DMA_COMPLETE;)
        state = dma_status(pull->channel, copy->part[i].cookie);
    return state;
}

bool openmx_copies_look(struct openmx_pull *pull)
{
    if (pull->looking) /* another CPU is at it */
        return false;
    pull->looking = true;
    while (pull->copies != NULL) {
        struct openmx_copy *copy = pull->copies;
        const enum dma_state state = state_of(pull, copy);
        if (state == DMA_IN_PROGRESS)
            break;
        pull->copies = copy->next;
        copy_ended(pull, copy, state != DMA_COMPLETE);
    }
    pull->looking = false;
    return pull->copies == NULL;
}

void openmx_copies_wait(struct openmx_pull *pull)
{
    while (pull->copies != NULL) {
        const struct openmx_copy *copy = pull->copies;
        dma_wait(pull->channel, copy->part[copy->n_parts - 1].cookie, DMA_POLL, UINT64_MAX);
        if (!openmx_copies_look(pull) && pull->looking)
            k_sleep(pull->omx->kernel, LOOK_AGAIN_PS); /* until the other has freed the packet */
    }
}

/* ---- Within the host ------------------------------------------------------------------------- */

/* [thread] True: an engine has copied it. */
static bool by_engine(struct openmx *omx, struct kaddr to, struct kaddr from, uint64_t bytes)
{
    struct dma_channel *channel = omx->channel[omx->next_channel++ % omx->n_channels];
    struct k_device *device = dma_channel_device(channel);
    uint64_t dma_to, dma_from;
    dma_cookie cookie;
    if (device == NULL || piece(channel, to, from, bytes, &dma_to, &dma_from, &cookie) != 0)
        return false;
    dma_issue_pending(channel);
    const int result = dma_wait(channel, cookie, DMA_POLL, UINT64_MAX);
    device = dma_channel_device(channel);
    if (device != NULL) {
        k_dma_unmap(device, dma_from, bytes, K_DMA_TO_DEVICE);
        k_dma_unmap(device, dma_to, bytes, K_DMA_FROM_DEVICE);
    }
    omx->stats.engine_copies++;
    omx->stats.engine_bytes += bytes;
    omx->stats.engine_failed += result != 0;
    return result == 0;
}

void openmx_copy_regions(struct openmx *omx, struct openmx_region *to, struct openmx_region *from,
                         uint64_t bytes)
{
    const bool engine = omx->n_channels > 0 && bytes >= omx->options.ioat_local_bytes;
    const unsigned before = k_account(omx->kernel, MX_ACCOUNT_DATA);
    uint64_t done = 0;
    while (done < bytes) {
        uint64_t n = bytes - done;
        unsigned i;
        const struct kaddr source = openmx_region_at(from, done, &n, &i);
        const struct kaddr target = openmx_region_at(to, done, &n, &i);
        if (engine)
            n = n < dma_channel_limits(omx->channel[0])->copy_bytes_max
                    ? n
                    : dma_channel_limits(omx->channel[0])->copy_bytes_max;
        if (!engine || !by_engine(omx, target, source, n))
            k_copy(omx->kernel, target, source, n);
        done += n;
    }
    k_account(omx->kernel, before);
}
