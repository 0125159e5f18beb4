/*
 * Driver of an adapter's DMA engine (hw/ntb_regs.h, function 1): copies between addresses of this
 * host's tree, windows to other hosts included, without a CPU. Clients use it as they use Linux's
 * dmaengine: submit, issue, then wait for the interrupt or poll.
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
 * A copy is done when its last byte has left the engine. Writes into a window are posted and may
 * reach the other host after this host has seen the completion. One thread at a time may use a
 * channel. Calls marked [thread] may sleep.
 */
#ifndef LOGIC_LENDING_NTB_DMAENGINE_H
#define LOGIC_LENDING_NTB_DMAENGINE_H

#include "logic/lending/lending.h"

struct lend_dma;

struct lend_dma_options {
    unsigned adapter;       /* of the host, by index */
    unsigned ring;          /* descriptors per channel: a power of two, 8 .. 32768 */
    unsigned cpu;           /* handles the interrupts */
    uint32_t request_bytes; /* largest read: a power of two, 64 .. 2048; 0: the chip's default */
    uint64_t timeout_ps;    /* of lend_dma_wait() */
};
extern const struct lend_dma_options lend_dma_options_default;

/* Copies the options. NULL: one is out of range. The caller owns the result. */
struct lend_dma *lend_dma_new(struct lend_host *host, const struct lend_dma_options *options);
const struct k_pci_driver *lend_dma_driver(const struct lend_dma *dma);
/* [thread] Stops the channels and frees the driver, before lend_host_free(). No copy may be under
 * way, and every lend_dma_allow() must have been revoked. */
void lend_dma_free(struct lend_dma *dma);

/* The engine, for k_dma_map() and k_dma_map_resource(); NULL: the adapter has none, or the kernel
 * has not offered it to the driver yet. */
struct k_device *lend_dma_device(struct lend_dma *dma);
unsigned lend_dma_channels(const struct lend_dma *dma);

/* [thread] Asks the peer to let the engine reach the segment, which must be connected through the
 * engine's own adapter. Once per segment. 0; -ENODEV: no engine, or another adapter; -ENOSPC: no
 * entry for the engine, here or at the peer; or an error of the connection. */
int lend_dma_allow(struct lend_dma *dma, struct lend_remote *remote, struct lend_error *error);
/* [thread] Undoes it; before lend_segment_disconnect(). */
void lend_dma_revoke(struct lend_dma *dma, struct lend_remote *remote);

#define LEND_DMA_NOTIFY    1u /* raise an interrupt when this copy is done */
#define LEND_DMA_BYTES_MAX NTB_DMA_BYTES_MASK

/* Queues a copy of 1 .. LEND_DMA_BYTES_MAX bytes. The engine may start it at once, and does after
 * lend_dma_issue(). Returns its cookie (1, 2, ... per channel); -ENOSPC: the ring is full; -EINVAL:
 * no such channel, or length or addresses out of range. */
int64_t lend_dma_submit(struct lend_dma *dma, unsigned channel, uint64_t source,
                        uint64_t destination, uint64_t bytes, unsigned flags);
void lend_dma_issue(struct lend_dma *dma, unsigned channel);
/* Loads the descriptors that may have changed. 1: the copy and all before it are done; 0: not yet;
 * -EIO: one of them has failed, and no earlier poll or wait has reported it; -ENODEV: the engine is
 * gone. A failed copy does not stop those behind it. */
int lend_dma_poll(struct lend_dma *dma, unsigned channel, int64_t cookie);
/* [thread] Sleeps until the copy is done. It, or a later one, must have LEND_DMA_NOTIFY. 0, -EIO,
 * -ENODEV, -ETIMEDOUT. */
int lend_dma_wait(struct lend_dma *dma, unsigned channel, int64_t cookie);

#endif
