/*
 * The part of the fake of logic/kapi.h that is an IOMMU: domains as lists of extents, who is in
 * which, and what a requester's address means.
 */
#include "tests/support/fake/fake_kapi.h"

static bool fake_iommu_fails(struct kernel *kernel)
{
    return ++kernel->iommu_calls == kernel->iommu_fail_at;
}

bool k_iommu_on(const struct kernel *kernel, uint16_t requester_id)
{
    (void)requester_id;
    return kernel->options.iommu;
}

struct k_iommu_domain *k_iommu_domain_new(struct kernel *kernel, uint16_t requester_id)
{
    (void)requester_id;
    if (!kernel->options.iommu || fake_iommu_fails(kernel))
        return NULL;
    struct k_iommu_domain *domain = k_zalloc(sizeof *domain);
    domain->kernel = kernel;
    domain->next = kernel->domains;
    kernel->domains = domain;
    return domain;
}

static bool fake_is_member(const struct k_iommu_domain *domain, uint16_t id)
{
    return domain->member[id / 8] >> id % 8 & 1;
}

void k_iommu_domain_free(struct k_iommu_domain *domain)
{
    struct k_iommu_domain **link = &domain->kernel->domains;
    while (*link != domain)
        link = &(*link)->next;
    *link = domain->next;
    for (struct fake_extent *next, *extent = domain->extents; extent; extent = next) {
        next = extent->next;
        domain->kernel->iommu_pages_live -= extent->bytes / K_PAGE_BYTES;
        free(extent);
    }
    free(domain);
}

void fake_domains_free(struct kernel *kernel)
{
    while (kernel->domains)
        k_iommu_domain_free(kernel->domains);
}

int k_iommu_attach(struct k_iommu_domain *domain, uint16_t id)
{
    if (fake_iommu_fails(domain->kernel))
        return -ENOMEM;
    for (struct k_iommu_domain *other = domain->kernel->domains; other; other = other->next)
        if (fake_is_member(other, id))
            return -EBUSY;
    domain->member[id / 8] |= (uint8_t)(1 << id % 8);
    return 0;
}

void k_iommu_detach(struct k_iommu_domain *domain, uint16_t id)
{
    FAKE_CHECK(domain->kernel, fake_is_member(domain, id));
    domain->member[id / 8] &= (uint8_t) ~(1 << id % 8);
}

int k_iommu_map(struct k_iommu_domain *domain, uint64_t iova, uint64_t address, uint64_t bytes,
                enum k_dma_direction direction)
{
    struct kernel *kernel = domain->kernel;
    FAKE_CHECK(kernel, bytes > 0 && (iova | address | bytes) % K_PAGE_BYTES == 0);
    k_compute(kernel, kernel->costs.iommu_map_cycles);
    if (fake_iommu_fails(kernel))
        return -ENOMEM;
    for (struct fake_extent *e = domain->extents; e; e = e->next)
        if (iova < e->iova + e->bytes && e->iova < iova + bytes)
            return -EEXIST;
    struct fake_extent *extent = k_zalloc(sizeof *extent);
    *extent = (struct fake_extent){ domain->extents, iova, address, bytes, direction };
    domain->extents = extent;
    kernel->iommu_pages_live += bytes / K_PAGE_BYTES;
    return 0;
}

int k_iommu_unmap(struct k_iommu_domain *domain, uint64_t iova, uint64_t bytes)
{
    struct kernel *kernel = domain->kernel;
    k_compute(kernel, kernel->costs.iommu_unmap_cycles);
    for (struct fake_extent **link = &domain->extents; *link; link = &(*link)->next)
        if ((*link)->iova == iova && (*link)->bytes == bytes) {
            struct fake_extent *extent = *link;
            *link = extent->next;
            free(extent);
            kernel->iommu_pages_live -= bytes / K_PAGE_BYTES;
            return 0;
        }
    return -ENOENT;
}

bool fake_translate(struct kernel *kernel, uint16_t id, uint64_t iova, bool write,
                    uint64_t *address)
{
    *address = iova;
    if (!kernel->options.iommu)
        return true;
    for (struct k_iommu_domain *domain = kernel->domains; domain; domain = domain->next)
        if (fake_is_member(domain, id))
            for (struct fake_extent *e = domain->extents; e; e = e->next)
                if (iova - e->iova < e->bytes &&
                    (e->direction & (write ? K_DMA_FROM_DEVICE : K_DMA_TO_DEVICE))) {
                    *address = e->address + (iova - e->iova);
                    return true;
                }
    return false;
}

bool k_root_requester(const struct kernel *kernel, unsigned i, uint16_t *id)
{
    *id = (uint16_t)(i << 15);
    return i < (kernel->options.n_roots ? kernel->options.n_roots : 1);
}

/* 64 MiB a node; memory at higher addresses than that is seen as a fault by who needs it. */
bool k_memory_range(const struct kernel *kernel, unsigned i, uint64_t *base, uint64_t *bytes)
{
    *base = (uint64_t)(i + 1) << 40;
    *bytes = UINT64_C(1) << 26;
    return i < kernel->options.n_nodes;
}

int k_pages_get(struct kernel *kernel, int node, size_t bytes, struct kaddr *at)
{
    at->v = 0;
    if (fake_fails(&kernel->n_page_allocs, kernel->options.fail_page_every))
        return -ENOMEM;
    at->v = fake_map_pages(kernel, fake_node(kernel, node), bytes / K_PAGE_BYTES, 1);
    kernel->dma_live++;
    return 0;
}

void k_pages_put(struct kernel *kernel, size_t bytes, struct kaddr at)
{
    FAKE_CHECK(kernel, kernel->dma_live > 0);
    kernel->dma_live--;
    fake_unmap_pages(kernel, at.v, bytes / K_PAGE_BYTES);
}
