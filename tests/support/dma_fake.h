/*
 * A copy engine on the fake kernel, behind logic/dma/dma_driver.h: bytes move when a copy ends,
 * some time after its issue, so that memory which is freed too early is a fault of the fake kernel.
 * It may be late, fail, halt, finish out of order, stop for good, or be removed, at random by the
 * kernel's seed.
 */
#ifndef TESTS_SUPPORT_DMA_FAKE_H
#define TESTS_SUPPORT_DMA_FAKE_H

#include "logic/dma/dma_driver.h"
#include "tests/support/fake/fake_kapi.h"

#define DMA_FAKE_CHANNELS_MAX 16u
#define DMA_FAKE_RING_MAX     1024u

struct dma_fake_options {
    unsigned n_channels, ring; /* ring: a power of two */
    uint64_t copy_ps;          /* of a copy, and 250 ps a byte */
    unsigned error_permille;   /* of copies fail, having written some of their bytes */
    unsigned halt_percent;     /* of those: the channel halts */
    unsigned hang_permille;    /* of copies never end, and nothing behind them, until an abort */
    bool any_order;            /* copies end in any order */
    uint64_t copy_bytes_max;   /* 0: a page */
};

struct dma_fake;
struct dma_fake_channel {
    struct dma_fake *fake;
    struct dma_channel *dma;
    uint64_t next, end, cleaned;      /* sequences: to be copied, up to, seen by the driver */
    uint8_t state[DMA_FAKE_RING_MAX]; /* enum dma_state of slots */
    bool at_work, hangs, halted, stopped_said;
    uint64_t run; /* events of earlier ones do nothing */
};
struct dma_fake {
    struct kernel *kernel;
    struct dma_fake_options options;
    struct k_pci_dev pci;
    struct k_irq *irq;
    struct dma_device device;
    struct dma_channel channel[DMA_FAKE_CHANNELS_MAX];
    struct dma_fake_channel own[DMA_FAKE_CHANNELS_MAX];
    uint64_t n_copies, n_errors, n_hangs, n_aborts;
};

/* [thread, or the test itself] Registers it. */
void dma_fake_init(struct dma_fake *fake, struct kernel *kernel, struct dma_core *core,
                   const struct dma_fake_options *options);
/* [thread, or the test itself] Removes it; gone: by surprise. */
void dma_fake_remove(struct dma_fake *fake, bool gone);

#endif
