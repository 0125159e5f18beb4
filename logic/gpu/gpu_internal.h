/* The inside of the GPU's driver. */
#ifndef LOGIC_GPU_GPU_INTERNAL_H
#define LOGIC_GPU_GPU_INTERNAL_H

#include "logic/gpu/gpu_driver.h"

#define GPU_RING_LOG 7u /* commands of a channel's ring */
#define GPU_RING     (1u << GPU_RING_LOG)

struct gpu_memory { /* DMA memory */
    struct kaddr at;
    uint64_t dma;
    size_t bytes; /* 0: none */
};

struct gpu_ring {
    struct gpu_drv *gpu;
    unsigned idx;
    struct gpu_memory memory;
    uint32_t put, done; /* commands written; known to have finished */
    bool on, failed;
    struct k_irq *irq;
    uint32_t interrupts, looked; /* count; its value when the channel's state was last read */
    struct k_wait_queue waiters;
};

/* A free or allocated part of device memory. The list is sorted by offset and has no gaps. */
struct gpu_extent {
    uint64_t offset, bytes;
    bool used;
    struct gpu_extent *next;
};

struct gpu_drv {
    struct gpu_driver *driver;
    struct kernel *kernel;
    struct k_pci_dev *pci;
    uint64_t memory_bytes;
    unsigned n_engines, address_bits;
    uint32_t clock_khz;
    bool gone;
    bool removed;   /* it is there for its mappings only: neither device nor memory is any more */
    uint32_t holds; /* mappings, and the driver's own until removal has ended */
    struct gpu_ring ring[GPU_CHANNELS_MAX];
    struct gpu_memory semaphores;
    uint32_t next_event; /* events recorded so far */
    uint32_t users;      /* threads inside */
    struct gpu_extent *extents;
};

struct gpu_driver {
    struct kernel *kernel;
    struct k_pci_driver pci;
};

/* gpu_driver.c. The last hold frees it. */
void gpu_drv_put(struct gpu_drv *gpu);

/* gpu_memory.c */
void gpu_drv_extents_init(struct gpu_drv *gpu);
void gpu_drv_extents_release(struct gpu_drv *gpu);
/* Allocates DMA memory that the GPU can address. */
int gpu_drv_memory_new(struct gpu_drv *gpu, size_t bytes, struct gpu_memory *memory);
void gpu_drv_memory_free(struct gpu_drv *gpu, struct gpu_memory *memory);

/* gpu_channel.c */
int gpu_drv_ring_on(struct gpu_drv *gpu, unsigned idx);
/* Switches a channel off and waits until it is idle; also after a failed gpu_drv_ring_on(). Keeps
 * the ring's memory. */
void gpu_drv_ring_off(struct gpu_ring *ring);

#endif
