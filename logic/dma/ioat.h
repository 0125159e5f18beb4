/*
 * Driver of Intel's DMA engine (hw/ioat_regs.h): I/OAT of version 1.2 (5000 series) and 3.2 (Xeon
 * E5 v4), behind logic/dma/dma.h. Its engines are of the kind "ioat" and called "ioat0", "ioat1",
 * ... in the order in which they were found; each has the channels of one PCI function.
 *
 *   struct ioat_drv *ioat = ioat_drv_new(core, &options);
 *   k_pci_register(kernel, ioat_drv_driver(ioat));
 *   c = dma_channel_request(core, "ioat", DMA_SHARED);  ...
 */
#ifndef LOGIC_DMA_IOAT_H
#define LOGIC_DMA_IOAT_H

#include "logic/dma/dma.h"

struct ioat_drv;

struct ioat_drv_options {
    unsigned ring;               /* descriptors per channel: a power of two, 4 .. 32768 */
    unsigned cpu;                /* handles the interrupts */
    uint32_t interrupt_delay_us; /* 3.2: from one interrupt of a channel to its next, 0 .. 16383 */
    int dca_cpu;                 /* 3.2: whose cache data and completions go to; -1: to none */
    uint64_t poll_ps;            /* between looks of dma_wait(DMA_POLL) */
    uint64_t timeout_ps;         /* copies that do not come back are aborted; 0: never */
};
extern const struct ioat_drv_options ioat_drv_options_default;

/* Copies the options. NULL: one is out of range. The caller owns the result. */
struct ioat_drv *ioat_drv_new(struct dma_core *core, const struct ioat_drv_options *options);
/* What it takes, ascending, ended by { 0, 0 }. */
extern const struct k_pci_id ioat_drv_ids[];
/* It takes functions of Intel's with this number. */
bool ioat_drv_knows(uint16_t device_id);
const struct k_pci_driver *ioat_drv_driver(const struct ioat_drv *ioat);
/* When its functions have been removed, or never were: frees the driver. */
void ioat_drv_free(struct ioat_drv *ioat);

#endif
