/*
 * What tests of copy engines' drivers share, on a simulated host (ioat_rig.h, test_dsa_system.c): a
 * world with a kernel, mapped buffers, bytes that can be told, copies whose ends are counted, and
 * somebody who copies while the engine is taken away.
 */
#ifndef TESTS_SUPPORT_DMA_RIG_H
#define TESTS_SUPPORT_DMA_RIG_H

#include "logic/dma/dma.h"
#include "tests/support/kernel_call.h"

/* Opens the world, boots its host (*kernel) and runs the body in a thread of CPU 0 to its end, then
 * a millisecond more. The caller checks what is left and closes the world. */
void dma_rig_run(struct world_fixture *w, struct kernel **kernel, const char *text,
                 void (*body)(void *arg), void *arg);
/* Frees the kernel and closes the world. */
void dma_rig_close(struct world_fixture *w, struct kernel *kernel);

/* ---- Memory ---------------------------------------------------------------------------------- */

struct dma_buffer {
    struct kaddr at;
    uint64_t dma;
    size_t bytes;
};
struct dma_buffer dma_buffer_new(struct k_pci_dev *pci, size_t bytes);
void dma_buffer_free(struct k_pci_dev *pci, const struct dma_buffer *buffer);

/* Fills and compares bytes, by a pattern of a seed from its byte `from` on; no time passes. All are
 * below 80h: none can be taken for a mark of bulk payload. */
void dma_rig_fill(struct kernel *kernel, struct kaddr at, size_t bytes, unsigned seed);
bool dma_rig_holds(struct kernel *kernel, struct kaddr at, size_t bytes, unsigned seed,
                   size_t from);

/* ---- Copies ---------------------------------------------------------------------------------- */

/* Ends of copies of one channel, which have to come in order. */
struct dma_tally {
    dma_cookie last;
    unsigned n, n_complete, n_error, n_aborted;
};

/* Submits a copy; its end is counted in `tally`, unless that is NULL. 0: there is no room. */
dma_cookie dma_rig_copy(struct dma_channel *channel, uint64_t to, uint64_t from, uint64_t bytes,
                        unsigned flags, struct dma_tally *tally);
/* Copies and waits; fails unless it succeeds. */
void dma_rig_copy_now(struct dma_channel *channel, uint64_t to, uint64_t from, uint64_t bytes);

/* A thread of CPU 2 that copies while something happens to the engine. */
struct dma_victim {
    /* Set by the caller; the copies are more than the engine does within 100 us. */
    struct kernel *kernel;
    struct dma_core *core;
    struct k_pci_dev *pci;
    const char *engine;
    unsigned n_copies, flags;
    size_t copy_bytes;
    bool sleeps; /* instead of polling */
    /* For the caller to use and, the channel and the buffers, to free. */
    struct dma_channel *channel;
    struct dma_buffer from, to;
    struct dma_tally tally;
    int status; /* of the wait for the last one */
    bool done;
};
void dma_victim_begin(struct dma_victim *victim);
/* Until its wait is over. */
void dma_victim_wait(const struct dma_victim *victim);
/* The same; and every copy has ended, some of them aborted, the last one among them. */
void dma_victim_end(const struct dma_victim *victim);

#endif
