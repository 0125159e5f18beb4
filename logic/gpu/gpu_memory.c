/* Memory: the device's, and addresses for its engines. */
#include <errno.h>

#include "logic/gpu/gpu_internal.h"

/* ---- Device memory -----------------------------------------------------------------------------
 */

static struct gpu_extent *extent_new(uint64_t offset, uint64_t bytes, struct gpu_extent *next)
{
    struct gpu_extent *extent = k_zalloc(sizeof(*extent));
    *extent = (struct gpu_extent){ .offset = offset, .bytes = bytes, .next = next };
    return extent;
}

void gpud_extents_init(struct gpu *gpu)
{
    gpu->extents = extent_new(0, gpu->memory_bytes, NULL);
}

void gpud_extents_release(struct gpu *gpu)
{
    while (gpu->extents != NULL) {
        struct gpu_extent *extent = gpu->extents;
        gpu->extents = extent->next;
        k_free(extent);
    }
}

int gpu_alloc(struct gpu *gpu, uint64_t bytes, uint64_t *offset)
{
    if (bytes == 0)
        return -EINVAL;
    if (bytes > gpu->memory_bytes)
        return -ENOMEM;
    bytes = (bytes + GPU_ALLOC_BYTES - 1) / GPU_ALLOC_BYTES * GPU_ALLOC_BYTES;
    struct gpu_extent *extent = gpu->extents;
    while (extent != NULL && (extent->used || extent->bytes < bytes))
        extent = extent->next;
    if (extent == NULL)
        return -ENOMEM;
    if (extent->bytes > bytes) {
        extent->next = extent_new(extent->offset + bytes, extent->bytes - bytes, extent->next);
        extent->bytes = bytes;
    }
    extent->used = true;
    *offset = extent->offset;
    return 0;
}

static void merge_next(struct gpu_extent *extent)
{
    struct gpu_extent *next = extent->next;
    if (next == NULL || next->used || extent->used)
        return;
    extent->bytes += next->bytes;
    extent->next = next->next;
    k_free(next);
}

void gpu_free(struct gpu *gpu, uint64_t offset)
{
    struct gpu_extent *extent = gpu->extents, *before = NULL;
    while (extent != NULL && extent->offset != offset) {
        before = extent;
        extent = extent->next;
    }
    if (extent == NULL || !extent->used) {
        k_fault(gpu->kernel, "%s: nothing was allocated at %#llx of device memory",
                gpu->pci->device.name, (unsigned long long)offset);
        return;
    }
    extent->used = false;
    merge_next(extent);
    if (before != NULL)
        merge_next(before);
}

/* ---- Addresses ---------------------------------------------------------------------------------
 */

static bool reaches(const struct gpu *gpu, uint64_t bus, uint64_t bytes)
{
    return gpu->address_bits >= 64 || bus + bytes - 1 < UINT64_C(1) << gpu->address_bits;
}

int gpu_map_host(struct gpu *gpu, struct kaddr at, uint64_t bytes, enum k_dma_direction direction,
                 struct gpu_mapping *mapping)
{
    uint64_t bus;
    if (gpu->gone)
        return -ENODEV;
    int error = k_dma_map(&gpu->pci->device, at, bytes, direction, &bus);
    if (error != 0)
        return error;
    *mapping = (struct gpu_mapping){ .bus = bus, .bytes = bytes, .direction = direction };
    if (reaches(gpu, bus, bytes))
        return 0;
    gpu_unmap(gpu, mapping);
    return -ERANGE;
}

int gpu_map_peer(struct gpu *gpu, struct gpu *peer, uint64_t offset, uint64_t bytes,
                 struct gpu_mapping *mapping)
{
    uint64_t bus;
    if (gpu->gone || peer->gone)
        return -ENODEV;
    int error = k_dma_map_resource(&gpu->pci->device, &peer->pci->device, GPU_MEMORY_BAR, offset,
                                   bytes, K_DMA_BOTH, &bus);
    if (error != 0)
        return error;
    *mapping =
        (struct gpu_mapping){ .bus = bus, .bytes = bytes, .direction = K_DMA_BOTH, .peer = true };
    if (reaches(gpu, bus, bytes))
        return 0;
    gpu_unmap(gpu, mapping);
    return -ERANGE;
}

void gpu_unmap(struct gpu *gpu, const struct gpu_mapping *mapping)
{
    struct k_device *device = &gpu->pci->device;
    if (mapping->peer)
        k_dma_unmap_resource(device, mapping->bus, mapping->bytes, mapping->direction);
    else
        k_dma_unmap(device, mapping->bus, mapping->bytes, mapping->direction);
}

int gpud_memory_new(struct gpu *gpu, size_t bytes, struct gpu_memory *memory)
{
    struct k_device *device = &gpu->pci->device;
    int error = k_dma_alloc(device, device->node, bytes, &memory->at, &memory->dma);
    if (error != 0)
        return error;
    memory->bytes = bytes;
    if (reaches(gpu, memory->dma, bytes))
        return 0;
    gpud_memory_free(gpu, memory);
    return -ERANGE;
}

void gpud_memory_free(struct gpu *gpu, struct gpu_memory *memory)
{
    if (memory->bytes != 0)
        k_dma_free(&gpu->pci->device, memory->bytes, memory->at, memory->dma);
    memory->bytes = 0;
}
