/*
 * How the addresses of this host's own devices come about.
 *
 * Models: without an IOMMU the host-physical address; with one, a domain a function, an IOVA for
 *   each mapping, tables written and invalidated at once (strict mode).
 * Does not model: bounce buffers, deferred invalidation, the cache lines of the page tables.
 * Timing: dma_map_cycles, dma_unmap_cycles; with an IOMMU iommu_map_cycles and iommu_unmap_cycles
 *   more. An IOVA is found and given back in constant time: free ones by powers of two of pages.
 * Sources: Linux 4.14, drivers/iommu; docs/models/os_memory.md (cycles).
 */
#include <errno.h>
#include <stdlib.h>

#include "models/host/host_internal.h"
#include "models/host/os_memory.h"
#include "models/host/os_pci.h"

static struct os_dma *dma_of(struct k_device *device)
{
    return device->dma_context;
}

/* Set-up outside of all threads takes no time. */
static void charge(struct kernel *kernel, uint64_t cycles)
{
    if (os_self_or_null(kernel) != NULL)
        k_compute(kernel, cycles);
}

/* ---- Without an IOMMU --------------------------------------------------------------------------
 */

static int direct_map(struct k_device *device, struct kaddr at, size_t bytes,
                      enum k_dma_direction direction, uint64_t *dma)
{
    (void)bytes;
    (void)direction;
    charge(device->kernel, device->kernel->params.costs.dma_map_cycles);
    dma_of(device)->live_maps++;
    *dma = at.v;
    return 0;
}

static void direct_unmap(struct k_device *device, uint64_t dma, size_t bytes,
                         enum k_dma_direction direction)
{
    (void)dma;
    (void)bytes;
    (void)direction;
    SIM_ASSERT(dma_of(device)->live_maps > 0, "%s: more is unmapped than mapped", device->name);
    dma_of(device)->live_maps--;
    charge(device->kernel, device->kernel->params.costs.dma_unmap_cycles);
}

static int device_alloc(struct k_device *device, int node_or_local, size_t bytes, struct kaddr *at,
                        uint64_t *dma)
{
    struct kernel *kernel = device->kernel;
    struct os_dma *of_device = dma_of(device);
    unsigned node = os_node_of(kernel, node_or_local);
    int status = -ENOMEM;
    for (unsigned i = 0; status == -ENOMEM && i < kernel->n_nodes; i++) {
        struct hpa hpa;
        struct iova iova;
        status = host_dma_alloc(kernel->host, of_device->requester_id, node, bytes, PAGE_BYTES,
                                &hpa, &iova);
        if (status == 0) {
            physmem_clear(kernel->memory->mem, hpa, bytes);
            of_device->live_bytes += bytes;
            at->v = hpa.v;
            *dma = iova.v;
        }
        node = node + 1 < kernel->n_nodes ? node + 1 : 0;
    }
    return status;
}

static void device_free(struct k_device *device, size_t bytes, struct kaddr at, uint64_t dma)
{
    int status = host_dma_free(device->kernel->host, dma_of(device)->requester_id, bytes,
                               PAGE_BYTES, (struct hpa){ at.v }, (struct iova){ dma });
    if (status != 0) {
        k_fault(device->kernel, "%s: %zu bytes of DMA memory at %llx were not allocated so",
                device->name, bytes, (unsigned long long)dma);
        return;
    }
    dma_of(device)->live_bytes -= bytes;
}

const struct k_dma_ops os_dma_ops = {
    .map = direct_map,
    .unmap = direct_unmap,
    .alloc = device_alloc,
    .free = device_free,
};

/* ---- With one ----------------------------------------------------------------------------------
 */

static unsigned order_of(uint64_t n_pages)
{
    return n_pages <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(n_pages - 1);
}

static uint64_t pages_of(uint64_t at, size_t bytes)
{
    return (at % PAGE_BYTES + bytes + PAGE_BYTES - 1) / PAGE_BYTES;
}

/* 0: there is none. */
static uint64_t iova_take(struct os_dma *dma, unsigned order)
{
    struct os_iova_stack *stack = &dma->free[order];
    if (stack->n > 0)
        return stack->iova[--stack->n];
    const uint64_t bytes = PAGE_BYTES << order;
    if (bytes > OS_IOVA_END - dma->next)
        return 0;
    dma->next += bytes;
    return dma->next - bytes;
}

static void iova_give(struct os_dma *dma, unsigned order, uint64_t iova)
{
    struct os_iova_stack *stack = &dma->free[order];
    if (stack->n == stack->capacity) {
        stack->capacity = 2 * stack->capacity + 64;
        stack->iova = realloc(stack->iova, stack->capacity * sizeof(stack->iova[0]));
        SIM_ASSERT(stack->iova != NULL, "out of memory");
    }
    stack->iova[stack->n++] = iova;
}

unsigned os_permissions_of(enum k_dma_direction direction)
{
    return ((direction & K_DMA_TO_DEVICE) != 0 ? IOMMU_READ : 0) |
           ((direction & K_DMA_FROM_DEVICE) != 0 ? IOMMU_WRITE : 0);
}

static int iommu_dma_map(struct k_device *device, struct kaddr at, size_t bytes,
                         enum k_dma_direction direction, uint64_t *dma)
{
    const struct k_costs *costs = &device->kernel->params.costs;
    struct os_dma *of_device = dma_of(device);
    const uint64_t n_pages = pages_of(at.v, bytes);
    const unsigned order = order_of(n_pages);
    charge(device->kernel, costs->dma_map_cycles + costs->iommu_map_cycles);
    if (of_device->domain == NULL)
        of_device->domain = host_domain_of(device->kernel->host, of_device->requester_id);
    const uint64_t iova = order < OS_IOVA_ORDERS ? iova_take(of_device, order) : 0;
    if (of_device->domain == NULL || iova == 0)
        return -ENOSPC;
    int status = iommu_map(of_device->domain, (struct iova){ iova },
                           (struct hpa){ at.v & ~(PAGE_BYTES - 1) }, n_pages * PAGE_BYTES,
                           PAGE_BYTES, os_permissions_of(direction));
    if (status != 0) {
        iova_give(of_device, order, iova);
        return status;
    }
    of_device->live_maps++;
    *dma = iova + at.v % PAGE_BYTES;
    return 0;
}

static void iommu_dma_unmap(struct k_device *device, uint64_t dma, size_t bytes,
                            enum k_dma_direction direction)
{
    const struct k_costs *costs = &device->kernel->params.costs;
    struct os_dma *of_device = dma_of(device);
    const uint64_t n_pages = pages_of(dma, bytes), iova = dma & ~(PAGE_BYTES - 1);
    (void)direction;
    charge(device->kernel, costs->dma_unmap_cycles + costs->iommu_unmap_cycles);
    if (of_device->domain == NULL ||
        iommu_unmap(of_device->domain, (struct iova){ iova }, n_pages * PAGE_BYTES) != 0) {
        k_fault(device->kernel, "%s: %zu bytes at %llx are unmapped that were not mapped",
                device->name, bytes, (unsigned long long)dma);
        return;
    }
    iova_give(of_device, order_of(n_pages), iova);
    of_device->live_maps--;
}

const struct k_dma_ops os_dma_iommu_ops = {
    .map = iommu_dma_map,
    .unmap = iommu_dma_unmap,
    .alloc = device_alloc,
    .free = device_free,
};

void os_dma_release(struct os_dma *dma)
{
    for (unsigned i = 0; i < OS_IOVA_ORDERS; i++)
        free(dma->free[i].iova);
}
