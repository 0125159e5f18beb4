/*
 * Driver of Intel's Data Streaming Accelerator (hw/dsa_regs.h) behind logic/dma/dma.h. Its engines
 * are of the kind "dsa" and called "dsa0", "dsa1", ... in the order in which they were found.
 * Without PASIDs: all addresses are the device's.
 *
 *   struct dsa_drv *dsa = dsa_drv_new(core, &options);
 *   k_pci_register(kernel, dsa_drv_driver(dsa));
 *   c = dma_channel_request(core, "dsa", DMA_SHARED);  ...
 */
#ifndef LOGIC_DMA_DSA_H
#define LOGIC_DMA_DSA_H

#include "logic/dma/dma.h"

struct dsa_drv;

struct dsa_drv_options {
    unsigned channels; /* of each engine: 1 .. 16, at most its work queues unless they share one */
    /* All channels submit to one shared work queue (ENQCMD); else each has a dedicated one
     * (MOVDIR64B). */
    bool shared;
    unsigned batch_max;  /* copies that are handed over as one batch at most: 1 .. 1024 */
    unsigned ring;       /* copies per channel: a power of two, 4 .. 32768 */
    uint64_t copy_log2;  /* log2 of the longest copy: 12 .. 31, at most the device's */
    unsigned cpu;        /* handles the interrupts */
    uint64_t poll_ps;    /* between looks of dma_wait(DMA_POLL) */
    uint64_t timeout_ps; /* copies that do not come back are aborted; 0: never */
};
extern const struct dsa_drv_options dsa_drv_options_default;

/* Copies the options. NULL: one is out of range. The caller owns the result. */
struct dsa_drv *dsa_drv_new(struct dma_core *core, const struct dsa_drv_options *options);
const struct k_pci_driver *dsa_drv_driver(const struct dsa_drv *dsa);
/* When its functions have been removed, or never were: frees the driver. */
void dsa_drv_free(struct dsa_drv *dsa);

struct dsa_drv_stats {
    uint64_t submissions; /* descriptors stored into portals, batches as one */
    uint64_t batches;
    uint64_t retries; /* ENQCMD: refused */
};
const struct dsa_drv_stats *dsa_drv_stats(const struct dsa_drv *dsa);

#endif
