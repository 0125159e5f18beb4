/*
 * The driver of a bridge's DMA engine (data sheet: ntb_regs.h, function 1): copies between addresses
 * of this host's tree, those in windows to other hosts included, without a CPU. Used as clients use
 * Linux's dmaengine: submit, issue, then wait for the interrupt or poll.
 *
 *   struct lend_dma *dma = lend_dma_new(host, &options);
 *   k_pci_register(kernel, lend_dma_driver(dma));      before or after lend_start()
 *   lend_dma_allow(dma, &remote, &error);              a segment that is connected
 *   k_dma_map(lend_dma_device(dma), buffer, bytes, K_DMA_TO_DEVICE, &source);
 *   cookie = lend_dma_submit(dma, channel, source, remote.map.address, bytes,
 *                            LEND_DMA_NOTIFY);
 *   lend_dma_issue(dma, channel);
 *   status = lend_dma_wait(dma, channel, cookie);
 *
 * A copy is done when its last byte has left the engine: writes into a window are posted, and may
 * reach the other host later than this host hears of it. One thread at a time uses a channel.
 */
#ifndef LOGIC_LENDING_NTB_DMAENGINE_H
#define LOGIC_LENDING_NTB_DMAENGINE_H

#include "logic/lending/lending.h"

struct lend_dma;

struct lend_dma_options {
    unsigned adapter;       /* whose engine, of the host's adapters */
    unsigned ring;          /* descriptors per channel, a power of two, 8 .. 32768 */
    unsigned cpu;           /* of the interrupts */
    uint32_t request_bytes; /* largest read, a power of two, 64 .. 2048; 0: what the chip has */
    uint64_t timeout_ps;    /* lend_dma_wait() */
};
extern const struct lend_dma_options lend_dma_options_default;

/* The options are copied; NULL: out of range. */
struct lend_dma *lend_dma_new(struct lend_host *host, const struct lend_dma_options *options);
const struct k_pci_driver *lend_dma_driver(const struct lend_dma *dma);
/* [thread] Pauses the channels, withdraws what was admitted, frees it. All copies are done. */
void lend_dma_free(struct lend_dma *dma);

/* NULL: the adapter has no engine, or the driver has not been offered it. For k_dma_map() and
 * k_dma_map_resource(). */
struct k_device *lend_dma_device(struct lend_dma *dma);
unsigned lend_dma_channels(const struct lend_dma *dma);

/* [thread] The peer lets the engine's requests in, for segments that are connected by way of the
 * same adapter. Once for each segment. 0; -ENODEV: no engine, or another adapter's segment;
 * -ENOSPC: no entry, here or there. */
int lend_dma_allow(struct lend_dma *dma, struct lend_remote *remote, struct lend_error *error);
/* [thread] Before the segment is disconnected. */
void lend_dma_revoke(struct lend_dma *dma, struct lend_remote *remote);

#define LEND_DMA_NOTIFY    1u /* raise an interrupt when this one is done */
#define LEND_DMA_BYTES_MAX NTB_DMA_BYTES_MASK

/* Queues a copy of 1 .. LEND_DMA_BYTES_MAX bytes; the chip may not look before lend_dma_issue().
 * Its cookie (at least 1, ascending); -ENOSPC: the ring is full; -EINVAL. */
int64_t lend_dma_submit(struct lend_dma *dma, unsigned channel, uint64_t source,
                        uint64_t destination, uint64_t bytes, unsigned flags);
void lend_dma_issue(struct lend_dma *dma, unsigned channel);
/* 1: done; 0: not yet; -EIO: it, or one before it that nobody has asked for since, has failed;
 * -ENODEV: the engine is gone.
 * Copies behind a failed one are done all the same. Loads the descriptors that may have changed. */
int lend_dma_poll(struct lend_dma *dma, unsigned channel, int64_t cookie);
/* [thread] Sleeps until a copy that notifies, this or a later one, is done. 0, -EIO, -ENODEV,
 * -ETIMEDOUT. */
int lend_dma_wait(struct lend_dma *dma, unsigned channel, int64_t cookie);

#endif
