/*
 * How the addresses of this host's own devices come about.
 *
 * Models: without an IOMMU the host-physical address; with one, a domain a function, an IOVA for
 *   each mapping and each allocation, a multiple of its size, below 4 GiB as long as there is one,
 *   then up to the device's mask; pages of 2 MiB or 1 GiB where a mapping's memory allows, unless
 *   switched off; tables written at once, invalidated at once or later (os_lazy.c). Memory beyond
 *   the mask is refused without an IOMMU. Base addresses of other devices likewise: the bus
 *   address, which a switch between the two routes by itself, or an IOVA, which takes requests up
 *   to the root complex.
 * Does not model: bounce buffers, joining free IOVAs again.
 * Timing: dma_map_cycles, dma_unmap_cycles; with an IOMMU iommu_map_cycles and iommu_unmap_cycles
 *   more, and after an unmapping until the invalidation is done (os_iommu_wait()), or what
 *   os_lazy.c says. An IOVA is found and given back in constant time: free ones by powers of two of
 *   pages. After a mask was narrowed, free ones that it excludes are skipped one by one.
 * Sources: Linux 4.14, drivers/iommu (iommu_dma_alloc_iova(): below 4 GiB first);
 *   docs/models/os_memory.md (cycles).
 */
#include <errno.h>
#include <stdlib.h>

#include "models/os/os_memory.h"
#include "models/os/os_pci.h"

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

static bool reaches(const struct k_device *device, uint64_t address, uint64_t bytes)
{
    return address + bytes - 1 <= k_dma_mask(device);
}

/* ---- Without an IOMMU ------------------------------------------------------------------------ */

static int direct_map(struct k_device *device, struct kaddr at, size_t bytes,
                      enum k_dma_direction direction, uint64_t *dma)
{
    (void)direction;
    charge(device->kernel, device->kernel->params.costs.dma_map_cycles);
    if (!reaches(device, at.v, bytes))
        return -EIO;
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

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* Takes zeroed memory of the node, or of another, that `limit` does not exclude. */
static int memory_take(struct kernel *kernel, int node_or_local, uint64_t bytes, uint64_t limit,
                       struct hpa *hpa)
{
    struct physmem *mem = kernel->memory->mem;
    unsigned node = os_node_of(kernel, node_or_local);
    for (unsigned i = 0; i < kernel->n_nodes; i++) {
        if (limit >> 32 == 0 ? physmem_alloc_low(mem, node, whole_pages(bytes), PAGE_BYTES, hpa)
                             : physmem_alloc(mem, node, whole_pages(bytes), PAGE_BYTES, hpa)) {
            if (hpa->v + bytes - 1 <= limit) {
                physmem_clear(mem, *hpa, bytes);
                return 0;
            }
            physmem_release(mem, *hpa, whole_pages(bytes));
        }
        node = node + 1 < kernel->n_nodes ? node + 1 : 0;
    }
    return -ENOMEM;
}

static int direct_alloc(struct k_device *device, int node, size_t bytes, struct kaddr *at,
                        uint64_t *dma)
{
    struct hpa hpa;
    int status = memory_take(device->kernel, node, bytes, k_dma_mask(device), &hpa);
    if (status != 0)
        return status;
    dma_of(device)->live_bytes += bytes;
    *dma = at->v = hpa.v;
    return 0;
}

static void direct_free(struct k_device *device, size_t bytes, struct kaddr at, uint64_t dma)
{
    SIM_ASSERT(at.v == dma && bytes <= dma_of(device)->live_bytes,
               "%s: %zu bytes at %llx were not allocated so", device->name, bytes,
               (unsigned long long)dma);
    physmem_release(device->kernel->memory->mem, (struct hpa){ at.v }, whole_pages(bytes));
    dma_of(device)->live_bytes -= bytes;
}

/* ---- Base addresses of other devices --------------------------------------------------------- */

/* Lets the device in at the target; *address: of its bytes, in this host's tree. */
static int resource_new(struct k_device *device, struct k_device *target, unsigned bar,
                        uint64_t offset, uint64_t bytes, struct os_resource **resource,
                        uint64_t *address)
{
    const struct k_pci_dev *pci = K_CONTAINER(target, struct k_pci_dev, device);
    const uint64_t all = bar < K_PCI_BARS ? pci->bar_bytes[bar] : 0;
    if (target == device || bytes == 0 || offset >= all || bytes > all - offset)
        return -EINVAL;
    if (target->dma_ops->allow != NULL) {
        int status = target->dma_ops->allow(target, dma_of(device)->requester_id);
        if (status != 0)
            return status;
    }
    struct os_resource *made = k_zalloc(sizeof(*made));
    *made = (struct os_resource){
        .next = device->kernel->pci->resources, .device = device, .target = target, .bytes = bytes
    };
    device->kernel->pci->resources = made;
    *resource = made;
    *address = pci->bar_base[bar] + offset;
    return 0;
}

static void resource_drop(struct kernel *kernel, struct os_resource *resource)
{
    struct k_device *target = resource->target;
    const uint16_t id = dma_of(resource->device)->requester_id;
    K_LIST_REMOVE(kernel->pci->resources, resource);
    free(resource);
    if (target != NULL && target->dma_ops->revoke != NULL)
        target->dma_ops->revoke(target, id);
}

/* NULL, and a fault of the run: there is none. */
static struct os_resource *resource_find(struct k_device *device, uint64_t dma, uint64_t bytes)
{
    struct os_resource *resource = device->kernel->pci->resources;
    while (resource != NULL &&
           (resource->device != device || resource->dma != dma || resource->bytes != bytes))
        resource = resource->next;
    if (resource == NULL)
        k_fault(device->kernel, "%s: %llu bytes of registers at %llx were not mapped", device->name,
                (unsigned long long)bytes, (unsigned long long)dma);
    return resource;
}

static int direct_map_resource(struct k_device *device, struct k_device *target, unsigned bar,
                               uint64_t offset, uint64_t bytes, enum k_dma_direction direction,
                               uint64_t *dma)
{
    struct os_resource *resource;
    (void)direction;
    charge(device->kernel, device->kernel->params.costs.dma_map_cycles);
    int status = resource_new(device, target, bar, offset, bytes, &resource, dma);
    if (status == 0 && !reaches(device, *dma, bytes)) {
        resource_drop(device->kernel, resource);
        return -ERANGE;
    }
    if (status == 0)
        resource->dma = *dma;
    return status;
}

static void direct_unmap_resource(struct k_device *device, uint64_t dma, uint64_t bytes,
                                  enum k_dma_direction direction)
{
    struct os_resource *resource = resource_find(device, dma, bytes);
    (void)direction;
    charge(device->kernel, device->kernel->params.costs.dma_unmap_cycles);
    if (resource != NULL)
        resource_drop(device->kernel, resource);
}

static struct os_resource *resource_of(const struct k_device *device, bool as_target)
{
    struct os_resource *resource = device->kernel->pci->resources;
    while (resource != NULL && (as_target ? resource->target : resource->device) != device)
        resource = resource->next;
    return resource;
}

void os_resources_end(struct k_device *device)
{
    struct os_resource *resource; /* looked for anew each time: others come and go meanwhile */
    while ((resource = resource_of(device, false)) != NULL) {
        k_warn(device->kernel, "%s: its driver left registers of others mapped", device->name);
        device->dma_ops->unmap_resource(device, resource->dma, resource->bytes, K_DMA_BOTH);
    }
    while ((resource = resource_of(device, true)) != NULL) {
        resource->target = NULL;
        if (device->dma_ops->revoke != NULL)
            device->dma_ops->revoke(device, dma_of(resource->device)->requester_id);
    }
}

void os_resources_free(struct os_pci *pci)
{
    while (pci->resources != NULL) {
        struct os_resource *resource = pci->resources;
        pci->resources = resource->next;
        free(resource);
    }
}

const struct k_dma_ops os_dma_ops = {
    .map = direct_map,
    .unmap = direct_unmap,
    .alloc = direct_alloc,
    .free = direct_free,
    .map_resource = direct_map_resource,
    .unmap_resource = direct_unmap_resource,
};

/* ---- With one -------------------------------------------------------------------------------- */

static uint64_t pages_of(uint64_t at, size_t bytes)
{
    return (at % PAGE_BYTES + bytes + PAGE_BYTES - 1) / PAGE_BYTES;
}

void os_iova_give(struct os_dma *dma, unsigned order, uint64_t iova)
{
    struct os_iova_stack *stack = &dma->free[order];
    if (stack->n == stack->capacity) {
        stack->capacity = 2 * stack->capacity + 64;
        stack->iova = sim_grow(stack->iova, stack->capacity, sizeof(stack->iova[0]));
    }
    stack->iova[stack->n++] = iova;
}

static bool in_mask(uint64_t iova, uint64_t mask, unsigned order)
{
    return iova + (PAGE_BYTES << order) - 1 <= mask;
}

/* Whether a free one is on top of the stack that the mask allows. One that was taken under a larger
 * mask changes places with the next below it that it allows. */
static bool has_free(struct os_dma *dma, uint64_t mask, unsigned order)
{
    struct os_iova_stack *stack = &dma->free[order];
    if (stack->n == 0)
        return false;
    uint64_t *top = &stack->iova[stack->n - 1];
    if (SIM_LIKELY(in_mask(*top, mask, order)))
        return true;
    for (uint64_t *low = top; low-- != stack->iova;)
        if (in_mask(*low, mask, order)) {
            const uint64_t iova = *low;
            *low = *top;
            *top = iova;
            return true;
        }
    return false;
}

/* From *next on, up to `end`; what alignment skips is free for smaller ones. 0: there is none. */
static uint64_t iova_new(struct os_dma *dma, uint64_t *next, uint64_t end, unsigned order)
{
    const uint64_t bytes = PAGE_BYTES << order;
    const uint64_t iova = (*next + bytes - 1) & ~(bytes - 1);
    if (iova >= end || bytes > end - iova)
        return 0;
    while (*next < iova) {
        const unsigned skipped = (unsigned)__builtin_ctzll(*next / PAGE_BYTES);
        os_iova_give(dma, skipped, *next);
        *next += PAGE_BYTES << skipped;
    }
    *next = iova + bytes;
    return iova;
}

/* Half of a larger free one, and so on. 0: there is none. */
static uint64_t iova_split(struct os_dma *dma, uint64_t mask, unsigned order)
{
    unsigned from = order + 1;
    while (from < OS_IOVA_ORDERS && !has_free(dma, mask, from))
        from++;
    if (from == OS_IOVA_ORDERS)
        return 0;
    const uint64_t iova = dma->free[from].iova[--dma->free[from].n];
    while (from-- > order)
        os_iova_give(dma, from, iova + (PAGE_BYTES << from));
    return iova;
}

/* One that was used before, else one below 4 GiB, else any that the mask allows. 0: there is none.
 */
static uint64_t iova_take(struct os_dma *dma, uint64_t mask, unsigned order)
{
    if (SIM_LIKELY(has_free(dma, mask, order)))
        return dma->free[order].iova[--dma->free[order].n];
    uint64_t iova = iova_new(dma, &dma->next_low, SIM_MIN(mask, OS_IOVA_LOW_END - 1) + 1, order);
    if (iova == 0)
        iova = iova_split(dma, mask, order);
    if (iova == 0)
        iova = iova_new(dma, &dma->next_high, SIM_MIN(mask, OS_IOVA_HIGH_END - 1) + 1, order);
    return iova;
}

uint64_t os_iommu_page_bytes(const struct kernel *kernel, uint64_t iova, uint64_t address,
                             uint64_t bytes)
{
    static const uint64_t sizes[] = { UINT64_C(1) << 30, UINT64_C(1) << 21 };
    for (unsigned i = 0; kernel->params.iommu_superpages && i < 2; i++)
        if (((iova | address | bytes) & (sizes[i] - 1)) == 0)
            return sizes[i];
    return PAGE_BYTES;
}

unsigned os_permissions_of(enum k_dma_direction direction)
{
    return ((direction & K_DMA_TO_DEVICE) != 0 ? IOMMU_READ : 0) |
           ((direction & K_DMA_FROM_DEVICE) != 0 ? IOMMU_WRITE : 0);
}

/* Maps pages from `first` on at a free IOVA, with tables of pages of page_bytes (0: as large as
 * they may be). */
static int pages_map(struct k_device *device, uint64_t first, uint64_t n_pages, uint64_t page_bytes,
                     enum k_dma_direction direction, uint64_t *dma)
{
    struct os_dma *of_device = dma_of(device);
    const unsigned order = os_iova_order(n_pages);
    const uint64_t bytes = n_pages * PAGE_BYTES;
    if (of_device->domain == NULL)
        of_device->domain = host_domain_of(device->kernel->host, of_device->requester_id);
    if (of_device->domain == NULL || order >= OS_IOVA_ORDERS)
        return -ENOSPC;
    const uint64_t iova = iova_take(of_device, k_dma_mask(device), order);
    if (iova == 0)
        return -ENOSPC;
    int status = iommu_map(
        of_device->domain, (struct iova){ iova }, (struct hpa){ first }, bytes,
        page_bytes != 0 ? page_bytes : os_iommu_page_bytes(device->kernel, iova, first, bytes),
        os_permissions_of(direction));
    os_iommu_store(device->kernel, os_iommu_of(device->kernel, of_device->requester_id));
    if (status != 0)
        os_iova_give(of_device, order, iova);
    *dma = iova;
    return status;
}

static int pages_unmap(struct k_device *device, uint64_t dma, uint64_t n_pages)
{
    struct os_dma *of_device = dma_of(device);
    return of_device->domain == NULL ? -ENOENT
                                     : os_iova_unmap(device->kernel, of_device, dma, n_pages);
}

static int iommu_dma_map(struct k_device *device, struct kaddr at, size_t bytes,
                         enum k_dma_direction direction, uint64_t *dma)
{
    const struct k_costs *costs = &device->kernel->params.costs;
    charge(device->kernel, costs->dma_map_cycles + costs->iommu_map_cycles);
    int status = pages_map(device, at.v & ~(PAGE_BYTES - 1), pages_of(at.v, bytes), 0, direction,
                           dma);
    if (status != 0)
        return status;
    dma_of(device)->live_maps++;
    *dma += at.v % PAGE_BYTES;
    return 0;
}

static void iommu_dma_unmap(struct k_device *device, uint64_t dma, size_t bytes,
                            enum k_dma_direction direction)
{
    const struct k_costs *costs = &device->kernel->params.costs;
    (void)direction;
    charge(device->kernel, costs->dma_unmap_cycles + costs->iommu_unmap_cycles);
    if (pages_unmap(device, dma & ~(PAGE_BYTES - 1), pages_of(dma, bytes)) != 0) {
        k_fault(device->kernel, "%s: %zu bytes at %llx are unmapped that were not mapped",
                device->name, bytes, (unsigned long long)dma);
        return;
    }
    dma_of(device)->live_maps--;
}

static int iommu_dma_alloc(struct k_device *device, int node, size_t bytes, struct kaddr *at,
                           uint64_t *dma)
{
    struct kernel *kernel = device->kernel;
    struct hpa hpa;
    int status = memory_take(kernel, node, bytes, UINT64_MAX, &hpa);
    if (status != 0)
        return status;
    status = pages_map(device, hpa.v, pages_of(0, bytes), PAGE_BYTES, K_DMA_BOTH, dma);
    if (status != 0) {
        physmem_release(kernel->memory->mem, hpa, whole_pages(bytes));
        return status;
    }
    dma_of(device)->live_bytes += bytes;
    at->v = hpa.v;
    return 0;
}

static void iommu_dma_free(struct k_device *device, size_t bytes, struct kaddr at, uint64_t dma)
{
    if (pages_unmap(device, dma, pages_of(0, bytes)) != 0) {
        k_fault(device->kernel, "%s: %zu bytes of DMA memory at %llx were not allocated so",
                device->name, bytes, (unsigned long long)dma);
        return;
    }
    physmem_release(device->kernel->memory->mem, (struct hpa){ at.v }, whole_pages(bytes));
    dma_of(device)->live_bytes -= bytes;
}

static int iommu_map_resource(struct k_device *device, struct k_device *target, unsigned bar,
                              uint64_t offset, uint64_t bytes, enum k_dma_direction direction,
                              uint64_t *dma)
{
    struct os_resource *resource;
    uint64_t address;
    int status = resource_new(device, target, bar, offset, bytes, &resource, &address);
    if (status != 0)
        return status;
    status = iommu_dma_map(device, (struct kaddr){ address }, bytes, direction, &resource->dma);
    if (status != 0)
        resource_drop(device->kernel, resource);
    else
        *dma = resource->dma;
    return status;
}

static void iommu_unmap_resource(struct k_device *device, uint64_t dma, uint64_t bytes,
                                 enum k_dma_direction direction)
{
    struct os_resource *resource = resource_find(device, dma, bytes);
    if (resource == NULL)
        return;
    iommu_dma_unmap(device, dma, bytes, direction);
    resource_drop(device->kernel, resource);
}

const struct k_dma_ops os_dma_iommu_ops = {
    .map = iommu_dma_map,
    .unmap = iommu_dma_unmap,
    .alloc = iommu_dma_alloc,
    .free = iommu_dma_free,
    .map_resource = iommu_map_resource,
    .unmap_resource = iommu_unmap_resource,
};

void os_dma_release(struct os_dma *dma)
{
    for (unsigned i = 0; i < OS_IOVA_ORDERS; i++)
        free(dma->free[i].iova);
}
