/*
 * The driver of our GPU (data sheet: gpu_regs.h), with what CUDA's programs ask of one: device
 * memory, asynchronous copies, kernels, events with times. It knows a device through logic/kapi.h
 * alone, so that the same object works on a local and on a borrowed one.
 *
 * Calls marked [thread] may sleep; all others come from a thread, too. Errors are negative errno
 * values.
 */
#ifndef LOGIC_GPU_GPU_DRIVER_H
#define LOGIC_GPU_GPU_DRIVER_H

#include "hw/gpu_regs.h"
#include "logic/kapi.h"

struct gpu_drv;
struct gpu_driver; /* one per kernel */

struct gpu_driver *gpu_driver_new(struct kernel *kernel);
/* For k_pci_register(). */
const struct k_pci_driver *gpu_driver_pci(const struct gpu_driver *driver);
/* All functions have been removed. */
void gpu_driver_free(struct gpu_driver *driver);

/* The device's; NULL: no driver of this kind has it. */
struct gpu_drv *gpu_of(const struct k_pci_dev *dev);
uint64_t gpu_memory_bytes(const struct gpu_drv *gpu);
/* How much of it, from the first byte on, other devices can reach. */
uint64_t gpu_window_bytes(const struct gpu_drv *gpu);
unsigned gpu_copy_engines(const struct gpu_drv *gpu);
/* Cycles that clock64() counts, per ms. */
uint32_t gpu_clock_khz(const struct gpu_drv *gpu);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Device memory: whole units of GPU_ALLOC_BYTES, the lowest place that is free, so that small
 * allocations can be reached by others. 0, -ENOMEM, -EINVAL (0 bytes). */
#define GPU_ALLOC_BYTES 65536u
int gpu_alloc(struct gpu_drv *gpu, uint64_t bytes, uint64_t *offset);
/* What gpu_alloc() gave, once. */
void gpu_free(struct gpu_drv *gpu, uint64_t offset);

/* Memory outside the GPU as its engines reach it: runs of bus addresses. Unmapped as it was
 * mapped. */
struct gpu_run {
    uint64_t bus, bytes;
};
struct gpu_mapping {
    struct kaddr at; /* of the host */
    uint64_t bytes;
    unsigned n_runs;
    struct gpu_run *run; /* owned by it */
    uint64_t table;      /* device memory, if there is more than one run */
    bool peer, tabled;
};
/* [thread] Pinned memory of the kernel's own (cudaHostRegister), for both directions: what makes
 * sure that writes have arrived is a read. Mapped block by block, as a scatter list of pages that
 * are neighbours in memory is: what the page allocator hands out lies together up to its largest
 * block (Linux, MAX_ORDER), blocks lie anywhere. Blocks whose addresses follow each other are a
 * run. -ERANGE: the GPU does not reach where it came to lie. */
#define GPU_HOST_BLOCK_BYTES (UINT64_C(4) << 20)
int gpu_map_host(struct gpu_drv *gpu, struct kaddr at, uint64_t bytes, struct gpu_mapping *mapping);
/* [thread] Memory of another GPU of the same kernel (cudaDeviceEnablePeerAccess); within its
 * window. */
int gpu_map_peer(struct gpu_drv *gpu, struct gpu_drv *peer, uint64_t offset, uint64_t bytes,
                 struct gpu_mapping *mapping);
/* [thread] */
void gpu_unmap(struct gpu_drv *gpu, struct gpu_mapping *mapping);

/* ---- Work --------------------------------------------------------------------------------------
 * Commands are put into the ring of a channel: 0 .. gpu_copy_engines() - 1 copy, the next one runs
 * kernels. They are done in order from gpu_submit() on. All return -EAGAIN while the ring is full,
 * -EIO once the channel has failed, -ENODEV when the device is gone or going. One thread at a time
 * uses a channel. Threads that are inside when the device goes come out before it is forgotten;
 * nothing may be called with it from then on.
 */

struct gpu_place {
    const struct gpu_mapping *mapping; /* NULL: device memory */
    uint64_t offset;
};
/* What is written outside the GPU has arrived there when the next command begins. -EINVAL: beyond a
 * mapping; both places are mappings, and one of more than one run. */
int gpu_copy(struct gpu_drv *gpu, unsigned channel, struct gpu_place to, struct gpu_place from,
             uint64_t bytes);

struct gpu_launch {
    enum gpu_kernel kernel;
    uint32_t iterations;
    uint64_t local;                   /* device memory: the word that it waits for */
    const struct gpu_mapping *remote; /* the word that it stores to */
    uint64_t times;                   /* device memory, 8 bytes per iteration; GPU_NO_TIMES */
};
/* By the channel that runs kernels. */
int gpu_launch(struct gpu_drv *gpu, const struct gpu_launch *launch);
static inline unsigned gpu_kernel_channel(const struct gpu_drv *gpu)
{
    return gpu_copy_engines(gpu);
}

/* When all that was put into the channel before is done, the GPU notes its time and, with
 * `blocking` (cudaEventBlockingSync), interrupts. One use per record. */
struct gpu_event {
    unsigned channel, slot; /* private, as is the rest */
    uint32_t payload, put;
    bool blocking;
};
int gpu_event_record(struct gpu_drv *gpu, unsigned channel, bool blocking, struct gpu_event *event);
/* Rings the doorbell. */
int gpu_submit(struct gpu_drv *gpu, unsigned channel);
/* [thread] Until the event has come: sleeps if it was recorded as blocking, else looks again and
 * again (cudaDeviceScheduleSpin). 0, -EIO, -ENODEV; -EINVAL: GPU_EVENTS others were recorded since;
 * -ETIMEDOUT: not by until_ps. */
int gpu_event_wait(struct gpu_drv *gpu, const struct gpu_event *event, uint64_t until_ps);
/* The GPU's time of an event that has come, in ns, if not more than GPU_EVENTS events of the GPU
 * were recorded since. */
#define GPU_EVENTS 64u
uint64_t gpu_event_ns(struct gpu_drv *gpu, const struct gpu_event *event);
/* What the channel says of itself. */
enum gpu_channel_status gpu_channel_state(struct gpu_drv *gpu, unsigned channel);

#endif
