/*
 * The driver of our GPU (data sheet: hw/gpu_regs.h), with the services that CUDA programs use:
 * device memory, asynchronous copies, kernels, events with times. It accesses the device through
 * logic/kapi.h alone, so that it works alike on local and on borrowed devices.
 *
 * All calls come from threads; those marked [thread] may sleep. Errors are negative errno values.
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
/* All functions must be removed. */
void gpu_driver_free(struct gpu_driver *driver);

/* The GPU of a device. NULL: this driver does not drive it. */
struct gpu_drv *gpu_of(const struct k_pci_dev *dev);
uint64_t gpu_memory_bytes(const struct gpu_drv *gpu);
/* The bytes of device memory, from the first one, that other devices can reach. */
uint64_t gpu_window_bytes(const struct gpu_drv *gpu);
unsigned gpu_copy_engines(const struct gpu_drv *gpu);
/* The rate of clock64(). */
uint32_t gpu_clock_khz(const struct gpu_drv *gpu);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Allocates device memory in units of GPU_ALLOC_BYTES, at the lowest free place, so that other
 * devices can reach small allocations. Returns 0, -ENOMEM, or -EINVAL (0 bytes). */
#define GPU_ALLOC_BYTES 65536u
int gpu_alloc(struct gpu_drv *gpu, uint64_t bytes, uint64_t *offset);
/* Frees one allocation of gpu_alloc(). */
void gpu_free(struct gpu_drv *gpu, uint64_t offset);

/* Memory outside the GPU, mapped for its engines: runs of bus addresses. */
struct gpu_run {
    uint64_t bus, bytes;
};
struct gpu_mapping {
    struct kaddr at; /* in the host */
    uint64_t bytes;
    unsigned n_runs;
    struct gpu_run *run; /* owned by the mapping */
    uint64_t table;      /* of the runs, in device memory, if there is more than one */
    bool peer, tabled;
};
/* [thread] Maps pinned host memory (cudaHostRegister) for both directions, since a flush of writes
 * is a read. It is mapped block by block, like a scatter list: memory of the page allocator is
 * contiguous up to its largest block (Linux: MAX_ORDER). Blocks with adjacent addresses form a run.
 * -ERANGE: the GPU cannot form the address of a block. */
#define GPU_HOST_BLOCK_BYTES (UINT64_C(4) << 20)
int gpu_map_host(struct gpu_drv *gpu, struct kaddr at, uint64_t bytes, struct gpu_mapping *mapping);
/* [thread] Maps memory within the window of another GPU of the same kernel
 * (cudaDeviceEnablePeerAccess). */
int gpu_map_peer(struct gpu_drv *gpu, struct gpu_drv *peer, uint64_t offset, uint64_t bytes,
                 struct gpu_mapping *mapping);
/* [thread] Maps registers or memory of another device of the same kernel, for the GPU's kernels
 * (cudaHostRegisterIoMemory). */
int gpu_map_device(struct gpu_drv *gpu, struct k_device *device, unsigned bar, uint64_t offset,
                   uint64_t bytes, struct gpu_mapping *mapping);
/* [thread] Undoes one gpu_map_host(), gpu_map_peer() or gpu_map_device(), also after the removal of
 * the GPU, with which its addresses went. The GPU must not be used after the last one, then. */
void gpu_unmap(struct gpu_drv *gpu, struct gpu_mapping *mapping);

/* [thread] The other way (GPUDirect): *dma is where `device` finds these bytes of device memory,
 * until k_dma_unmap_resource(). They lie within the window. */
int gpu_map_for_device(struct gpu_drv *gpu, struct k_device *device, uint64_t offset,
                       uint64_t bytes, uint64_t *dma);
/* Writes to device memory through the window, 8 bytes at a time; posted. -EINVAL: the place or the
 * size is no multiple of 8, or not within the window. */
int gpu_write_memory(struct gpu_drv *gpu, uint64_t offset, const void *from, uint64_t bytes);

/* ---- Work ------------------------------------------------------------------------------------ */
/* Commands go into the ring of a channel: channels 0 .. gpu_copy_engines() - 1 copy, the next one
 * runs kernels. The GPU executes them in order after gpu_submit(). All calls return -EAGAIN while
 * the ring is full, -EIO once the channel has failed, -ENODEV when the device is being removed. One
 * thread at a time uses a channel. Removal waits for threads inside these calls; afterwards the GPU
 * must not be used any more, but by who has a mapping of it: as long as there is one they return
 * -ENODEV. */

struct gpu_place {
    const struct gpu_mapping *mapping; /* NULL: device memory */
    uint64_t offset;
};
/* Puts a copy into the ring. Its writes outside the GPU have arrived when the next command begins.
 * -EINVAL: it exceeds a mapping, or both places are mappings and one has more than one run. */
int gpu_copy(struct gpu_drv *gpu, unsigned channel, struct gpu_place to, struct gpu_place from,
             uint64_t bytes);

struct gpu_launch {
    enum gpu_kernel kernel;
    uint32_t iterations;
    uint64_t local;                   /* in device memory: the word that it polls, or its job */
    const struct gpu_mapping *remote; /* the word that it stores to; NVMe: NULL */
    uint64_t times;                   /* in device memory, 8 bytes per iteration, or GPU_NO_TIMES */
};
/* Puts a kernel into the ring of gpu_kernel_channel(). */
int gpu_launch(struct gpu_drv *gpu, const struct gpu_launch *launch);
static inline unsigned gpu_kernel_channel(const struct gpu_drv *gpu)
{
    return gpu_copy_engines(gpu);
}

/* Marks a point in a channel. When the commands before it are finished, the GPU records its time
 * and, with `blocking` (cudaEventBlockingSync), raises an interrupt. One use per record. */
struct gpu_event {
    unsigned channel, slot; /* private, as is the rest */
    uint32_t payload, put;
    bool blocking;
};
int gpu_event_record(struct gpu_drv *gpu, unsigned channel, bool blocking, struct gpu_event *event);
/* Rings the doorbell: the GPU executes the commands in the ring. */
int gpu_submit(struct gpu_drv *gpu, unsigned channel);
/* [thread] Waits for the event: sleeps if it was recorded as blocking, else polls
 * (cudaDeviceScheduleSpin). Returns 0, -EIO, -ENODEV; -EINVAL: GPU_EVENTS others were recorded
 * since; -ETIMEDOUT: it did not come by until_ps. */
int gpu_event_wait(struct gpu_drv *gpu, const struct gpu_event *event, uint64_t until_ps);
/* The GPU's time of a finished event, in ns. Fewer than GPU_EVENTS events of the GPU may have been
 * recorded since. */
#define GPU_EVENTS 64u
uint64_t gpu_event_ns(struct gpu_drv *gpu, const struct gpu_event *event);
/* Reads GPU_CHANNEL_STATUS. */
enum gpu_channel_status gpu_channel_state(struct gpu_drv *gpu, unsigned channel);

#endif
