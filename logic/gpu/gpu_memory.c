/*
 * What it does: allocates device memory (first fit), and maps host memory and registers of other
 *   devices for the GPU's engines.
 */
#include <errno.h>
#include <string.h>

#include "logic/gpu/gpu_internal.h"

/* ---- Device memory --------------------------------------------------------------------------- */

static struct gpu_extent *extent_new(uint64_t offset, uint64_t bytes, struct gpu_extent *next)
{
    struct gpu_extent *extent = k_zalloc(sizeof(*extent));
    *extent = (struct gpu_extent){ .offset = offset, .bytes = bytes, .next = next };
    return extent;
}

void gpu_drv_extents_init(struct gpu_drv *gpu)
{
    gpu->extents = extent_new(0, gpu->memory_bytes, NULL);
}

void gpu_drv_extents_release(struct gpu_drv *gpu)
{
    while (gpu->extents != NULL) {
        struct gpu_extent *extent = gpu->extents;
        gpu->extents = extent->next;
        k_free(extent);
    }
}

int gpu_alloc(struct gpu_drv *gpu, uint64_t bytes, uint64_t *offset)
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

void gpu_free(struct gpu_drv *gpu, uint64_t offset)
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

/* ---- Addresses ------------------------------------------------------------------------------- */

static bool reaches(const struct gpu_drv *gpu, uint64_t bus, uint64_t bytes)
{
    return gpu->address_bits >= 64 || bus + bytes - 1 < UINT64_C(1) << gpu->address_bits;
}

/* Behind the last run, or more of it. */
static void add_run(struct gpu_mapping *mapping, uint64_t bus, uint64_t bytes)
{
    struct gpu_run *last = &mapping->run[mapping->n_runs];
    mapping->bytes += bytes;
    if (mapping->n_runs != 0 && last[-1].bus + last[-1].bytes == bus) {
        last[-1].bytes += bytes;
    } else {
        *last = (struct gpu_run){ bus, bytes };
        mapping->n_runs++;
    }
}

/* Through the window, as page tables are written. */
static int write_table(struct gpu_drv *gpu, struct gpu_mapping *mapping)
{
    uint64_t bytes = mapping->n_runs * sizeof(struct gpu_table_entry);
    if (mapping->n_runs == 1)
        return 0;
    int error = gpu_alloc(gpu, bytes, &mapping->table);
    if (error != 0)
        return error;
    mapping->tabled = true;
    if (mapping->table + bytes > gpu_window_bytes(gpu))
        return -ENOMEM;
    for (unsigned i = 0; i < mapping->n_runs; i++) {
        uint64_t at = mapping->table + i * sizeof(struct gpu_table_entry);
        k_writeq(gpu->pci, GPU_MEMORY_BAR, at, mapping->run[i].bus);
        k_writeq(gpu->pci, GPU_MEMORY_BAR, at + 8, mapping->run[i].bytes);
    }
    return 0;
}

/* From `done` on, within one block. */
static uint64_t piece_of(struct kaddr at, uint64_t done, uint64_t bytes)
{
    uint64_t piece = GPU_HOST_BLOCK_BYTES - (at.v + done) % GPU_HOST_BLOCK_BYTES;
    return piece < bytes - done ? piece : bytes - done;
}

int gpu_map_host(struct gpu_drv *gpu, struct kaddr at, uint64_t bytes, struct gpu_mapping *mapping)
{
    if (gpu->gone)
        return -ENODEV;
    if (bytes == 0)
        return -EINVAL;
    *mapping = (struct gpu_mapping){ .at = at };
    gpu->holds++;
    mapping->run = k_zalloc((bytes / GPU_HOST_BLOCK_BYTES + 2) * sizeof(*mapping->run));
    for (uint64_t done = 0; done < bytes;) {
        uint64_t bus, piece = piece_of(at, done, bytes);
        int error = k_dma_map(&gpu->pci->device, kaddr_add(at, done), piece, K_DMA_BOTH, &bus);
        if (error == 0) {
            add_run(mapping, bus, piece);
            error = reaches(gpu, bus, piece) ? 0 : -ERANGE;
        }
        if (error != 0) {
            gpu_unmap(gpu, mapping);
            return error;
        }
        done += piece;
    }
    int error = write_table(gpu, mapping);
    if (error != 0)
        gpu_unmap(gpu, mapping);
    return error;
}

int gpu_map_device(struct gpu_drv *gpu, struct k_device *device, unsigned bar, uint64_t offset,
                   uint64_t bytes, struct gpu_mapping *mapping)
{
    uint64_t bus;
    if (gpu->gone)
        return -ENODEV;
    int error = k_dma_map_resource(&gpu->pci->device, device, bar, offset, bytes, K_DMA_BOTH, &bus);
    if (error != 0)
        return error;
    *mapping = (struct gpu_mapping){ .peer = true, .run = k_zalloc(sizeof(*mapping->run)) };
    gpu->holds++;
    add_run(mapping, bus, bytes);
    if (reaches(gpu, bus, bytes))
        return 0;
    gpu_unmap(gpu, mapping);
    return -ERANGE;
}

int gpu_map_peer(struct gpu_drv *gpu, struct gpu_drv *peer, uint64_t offset, uint64_t bytes,
                 struct gpu_mapping *mapping)
{
    if (peer->gone)
        return -ENODEV;
    return gpu_map_device(gpu, &peer->pci->device, GPU_MEMORY_BAR, offset, bytes, mapping);
}

int gpu_map_for_device(struct gpu_drv *gpu, struct k_device *device, uint64_t offset,
                       uint64_t bytes, uint64_t *dma)
{
    if (gpu->gone)
        return -ENODEV;
    return k_dma_map_resource(device, &gpu->pci->device, GPU_MEMORY_BAR, offset, bytes, K_DMA_BOTH,
                              dma);
}

int gpu_write_memory(struct gpu_drv *gpu, uint64_t offset, const void *from, uint64_t bytes)
{
    if (gpu->gone)
        return -ENODEV;
    if ((offset | bytes) % sizeof(uint64_t) != 0 || offset > gpu_window_bytes(gpu) ||
        bytes > gpu_window_bytes(gpu) - offset)
        return -EINVAL;
    for (uint64_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, (const uint8_t *)from + i, sizeof(word));
        k_writeq(gpu->pci, GPU_MEMORY_BAR, offset + i, word);
    }
    return 0;
}

/* Block by block, as they were mapped. */
static void unmap_host(struct k_device *device, const struct gpu_mapping *mapping)
{
    const struct gpu_run *run = mapping->run;
    uint64_t of_run = 0; /* bytes of it that are unmapped */
    for (uint64_t done = 0; done < mapping->bytes;) {
        uint64_t piece = piece_of(mapping->at, done, mapping->bytes);
        k_dma_unmap(device, run->bus + of_run, piece, K_DMA_BOTH);
        done += piece;
        of_run += piece;
        if (of_run == run->bytes) {
            run++;
            of_run = 0;
        }
    }
}

static void unmap(struct gpu_drv *gpu, const struct gpu_mapping *mapping)
{
    struct k_device *device = &gpu->pci->device;
    if (mapping->peer)
        k_dma_unmap_resource(device, mapping->run->bus, mapping->run->bytes, K_DMA_BOTH);
    else
        unmap_host(device, mapping);
    if (mapping->tabled)
        gpu_free(gpu, mapping->table);
}

void gpu_unmap(struct gpu_drv *gpu, struct gpu_mapping *mapping)
{
    if (!gpu->removed) {
        gpu->users++;
        unmap(gpu, mapping);
        gpu->users--;
    }
    k_free(mapping->run);
    *mapping = (struct gpu_mapping){ 0 };
    gpu_drv_put(gpu);
}

int gpu_drv_memory_new(struct gpu_drv *gpu, size_t bytes, struct gpu_memory *memory)
{
    struct k_device *device = &gpu->pci->device;
    int error = k_dma_alloc(device, device->node, bytes, &memory->at, &memory->dma);
    if (error != 0)
        return error;
    memory->bytes = bytes;
    if (reaches(gpu, memory->dma, bytes))
        return 0;
    gpu_drv_memory_free(gpu, memory);
    return -ERANGE;
}

void gpu_drv_memory_free(struct gpu_drv *gpu, struct gpu_memory *memory)
{
    if (memory->bytes != 0)
        k_dma_free(&gpu->pci->device, memory->bytes, memory->at, memory->dma);
    memory->bytes = 0;
}
