/*
 * The inside of the driver of Intel's Data Streaming Accelerator.
 *
 *   dsa.c          the driver, its functions: set-up of queues, commands, removal
 *   dsa_channel.c  channels: descriptors, submission, ends
 */
#ifndef LOGIC_DMA_DSA_INTERNAL_H
#define LOGIC_DMA_DSA_INTERNAL_H

#include "hw/dsa_regs.h"
#include "logic/dma/dma_driver.h"
#include "logic/dma/dsa.h"

#define DSA_CHANNELS_MAX 16u

struct dsa_function;

/* Copies that were handed over together: one, or a batch. */
struct dsa_run {
    uint64_t first;
    uint32_t n;
};

struct dsa_channel {
    struct dsa_function *function;
    struct dma_channel *dma;
    struct k_irq *irq;
    unsigned wq;
    /* Of each slot: its descriptor; its record; the record of the batch that ends with it. */
    struct kaddr ring, records;
    uint64_t ring_dma, records_dma;
    uint64_t next, wanted; /* sequences: all before it are with the engine, may be */
    bool idle;             /* nothing was issued since it was started or aborted */
    bool aborted;          /* what has no record will not get one */
    bool held;             /* the last run has to end before the next one is handed over */
    bool submitting;
    unsigned unasked;    /* runs since the last one that raises an interrupt */
    struct dsa_run *run; /* a ring of wq_entries places: with the engine, oldest first */
    unsigned first_run, n_runs;
};

struct dsa_function {
    struct dsa_drv *drv;
    struct dsa_function *next;
    struct k_pci_dev *pci;
    char name[16];
    unsigned wq_entries, batch_max, n_wqs;
    bool commanding; /* somebody waits for a command's end */
    bool recovering; /* somebody sets it up again */
    bool removing;   /* nobody shall */
    struct dma_device dma;
    struct dma_channel dma_channel[DSA_CHANNELS_MAX];
    struct dsa_channel channel[DSA_CHANNELS_MAX];
};

struct dsa_drv {
    struct kernel *kernel;
    struct dma_core *core;
    struct dsa_drv_options options;
    struct k_pci_driver driver;
    struct dsa_function *functions;
    unsigned n_found;
    struct dsa_drv_stats stats;
};

extern const struct dma_channel_ops dsa_channel_ops;

/* [thread] One command, to its end. 0; -ENODEV: the device is gone; -ETIMEDOUT; -EIO: it has
 * failed. */
int dsa_command(struct dsa_function *function, enum dsa_command command, uint32_t operand);
/* [thread] After a command that has failed: resets the device and sets it up again, which ends what
 * its queues have under way. What other channels had with it does not come back: they abort it in
 * their turn. Once it returns, whatever it does, the engine accesses no memory for what was handed
 * over before, unless the device does not answer. 0; a negative errno: it does not work any
 * more. */
int dsa_recover(struct dsa_function *function);

#endif
