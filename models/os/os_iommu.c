/*
 * Domains that software fills itself, and what it has to know about the host for that.
 *
 * Models: IOMMU domains with any requesters in them; the kernel's own domain of a requester rests
 *   while that is attached to another.
 * Does not model: several page sizes in one mapping; flushes of the tables' lines for an IOMMU that
 *   does not snoop; the time of invalidations when a requester is attached or detached, or a
 *   mapping takes an empty table's place.
 * Timing: iommu_map_cycles and iommu_unmap_cycles, from threads; then lines of tables and queue are
 *   stored, and for what was invalidated the tail is written (mmio_write_cycles), and the CPU
 *   polls, busy, until the hardware has done it, and loads the status. A mapping takes the largest
 *   pages that all of its numbers are multiples of, unless these are switched off.
 * Sources: Linux 4.14, drivers/iommu/iommu.c; VT-d 3.0, chapter 3.
 */
#include <errno.h>
#include <stdlib.h>

#include "models/os/os_memory.h"
#include "models/os/os_pci.h"

#define HOLE_BASE  UINT64_C(0xf0000000) /* physmem.h: 256 MiB below 4 GiB */
#define HOLE_BYTES UINT64_C(0x10000000)

struct k_iommu_domain {
    struct kernel *kernel;
    struct iommu_driver *driver;
    struct iommu_domain *domain;
    struct os_requester { /* that are attached */
        struct os_requester *next;
        uint16_t id;
    } * requesters;
    struct k_iommu_domain *next;
};

static void charge(struct kernel *kernel, uint64_t cycles)
{
    if (os_self_or_null(kernel) != NULL)
        k_compute(kernel, cycles);
}

void os_iommu_store(struct kernel *kernel, const struct iommu_driver *driver)
{
    struct iommu_run run[IOMMU_RUNS_MAX];
    if (os_self_or_null(kernel) == NULL)
        return;
    const unsigned n = iommu_driver_written(driver, run);
    for (unsigned i = 0; i < n; i++)
        k_touch_write(kernel, (struct kaddr){ run[i].first.v }, run[i].bytes);
}

void os_iommu_wait(struct kernel *kernel, struct iommu_driver *driver, uint64_t n)
{
    if (n == 0 || os_self_or_null(kernel) == NULL)
        return;
    k_compute(kernel, kernel->params.costs.mmio_write_cycles);
    const sim_time now_ps = k_now_ps(kernel);
    const sim_time done_ps = iommu_driver_done_ps(driver, (unsigned)n, now_ps);
    if (done_ps > now_ps)
        k_compute(kernel, (done_ps - now_ps + kernel->cycle_ps - 1) / kernel->cycle_ps);
    k_touch(kernel, (struct kaddr){ iommu_driver_status(driver).v }, sizeof(uint32_t));
}

bool k_iommu_on(const struct kernel *kernel, uint16_t requester_id)
{
    return kernel->guest == NULL && host_iommu_driver(kernel->host, requester_id) != NULL;
}

struct k_iommu_domain *k_iommu_domain_new(struct kernel *kernel, uint16_t requester_id)
{
    struct iommu_driver *driver = os_iommu_of(kernel, requester_id);
    struct iommu_domain *made = driver != NULL ? iommu_domain_new(driver) : NULL;
    if (made == NULL)
        return NULL;
    struct k_iommu_domain *domain = k_zalloc(sizeof(*domain));
    *domain = (struct k_iommu_domain){
        .kernel = kernel, .driver = driver, .domain = made, .next = kernel->pci->domains
    };
    kernel->pci->domains = domain;
    return domain;
}

static struct os_requester **find(struct k_iommu_domain *domain, uint16_t requester_id)
{
    struct os_requester **link = &domain->requesters;
    while (*link != NULL && (*link)->id != requester_id)
        link = &(*link)->next;
    return link;
}

int k_iommu_attach(struct k_iommu_domain *domain, uint16_t requester_id)
{
    struct kernel *kernel = domain->kernel;
    struct iommu_domain *own = host_domain_find(kernel->host, requester_id);
    if (os_iommu_of(kernel, requester_id) != domain->driver)
        return -EINVAL;
    for (struct k_iommu_domain *other = kernel->pci->domains; other != NULL; other = other->next)
        if (*find(other, requester_id) != NULL)
            return -EBUSY;
    if (own != NULL)
        iommu_domain_detach(own, requester_id);
    if (!iommu_domain_attach(domain->domain, requester_id)) {
        if (own != NULL)
            iommu_domain_attach(own, requester_id);
        return -ENOMEM;
    }
    struct os_requester *requester = k_zalloc(sizeof(*requester));
    *requester = (struct os_requester){ .next = domain->requesters, .id = requester_id };
    domain->requesters = requester;
    return 0;
}

void k_iommu_detach(struct k_iommu_domain *domain, uint16_t requester_id)
{
    struct os_requester **link = find(domain, requester_id), *requester = *link;
    struct iommu_domain *own = host_domain_find(domain->kernel->host, requester_id);
    if (requester == NULL) {
        k_fault(domain->kernel, "requester %#x is not in the domain", (unsigned)requester_id);
        return;
    }
    iommu_domain_detach(domain->domain, requester_id);
    if (own != NULL)
        iommu_domain_attach(own, requester_id);
    *link = requester->next;
    free(requester);
}

static void domain_drop(struct k_iommu_domain *domain)
{
    while (domain->requesters != NULL) {
        struct os_requester *requester = domain->requesters;
        domain->requesters = requester->next;
        free(requester);
    }
    free(domain);
}

void k_iommu_domain_free(struct k_iommu_domain *domain)
{
    while (domain->requesters != NULL)
        k_iommu_detach(domain, domain->requesters->id);
    iommu_domain_free(domain->domain);
    K_LIST_REMOVE(domain->kernel->pci->domains, domain);
    domain_drop(domain);
}

void os_domains_free(struct os_pci *pci)
{
    while (pci->domains != NULL) {
        struct k_iommu_domain *domain = pci->domains;
        pci->domains = domain->next;
        domain_drop(domain); /* the tables go with the IOMMU's driver */
    }
}

int k_iommu_map(struct k_iommu_domain *domain, uint64_t iova, uint64_t address, uint64_t bytes,
                enum k_dma_direction direction)
{
    struct kernel *kernel = domain->kernel;
    charge(kernel, kernel->params.costs.iommu_map_cycles);
    const int status = iommu_map(domain->domain, (struct iova){ iova }, (struct hpa){ address },
                                 bytes, os_iommu_page_bytes(kernel, iova, address, bytes),
                                 os_permissions_of(direction));
    os_iommu_store(kernel, domain->driver);
    return status;
}

int k_iommu_unmap(struct k_iommu_domain *domain, uint64_t iova, uint64_t bytes)
{
    charge(domain->kernel, domain->kernel->params.costs.iommu_unmap_cycles);
    const uint64_t before = iommu_driver_submitted(domain->driver);
    const int status = iommu_unmap(domain->domain, (struct iova){ iova }, bytes);
    const uint64_t n = iommu_driver_submitted(domain->driver) - before;
    os_iommu_store(domain->kernel, domain->driver);
    os_iommu_wait(domain->kernel, domain->driver, n);
    return status;
}

/* ---- The host -------------------------------------------------------------------------------- */

bool k_root_requester(const struct kernel *kernel, unsigned i, uint16_t *requester_id)
{
    const struct root_complex_host *rcs = host_root_complexes(kernel->host);
    if (kernel->guest != NULL || i >= rcs->n_sockets)
        return false;
    *requester_id = pcie_id(root_complex_bus(rcs->rc[i]), 0, 0);
    return true;
}

bool k_memory_range(const struct kernel *kernel, unsigned i, uint64_t *base, uint64_t *bytes)
{
    const struct physmem *mem = kernel->memory->mem;
    if (kernel->guest != NULL) {
        *base = i == 0 ? 0 : UINT64_C(1) << 32;
        *bytes = i == 0 ? kernel->guest->low_bytes : kernel->guest->high_bytes;
        return i < 2 && *bytes != 0;
    }
    for (unsigned n = 0; n < kernel->n_nodes; n++) {
        uint64_t first = (uint64_t)n << physmem_stride_log2(mem), all = physmem_node_bytes(mem, n);
        bool split = n == 0 && all > HOLE_BASE;
        *base = first;
        *bytes = split ? HOLE_BASE : all;
        if (i-- == 0)
            return true;
        if (!split || all <= HOLE_BASE + HOLE_BYTES)
            continue;
        *base = HOLE_BASE + HOLE_BYTES;
        *bytes = all - *base;
        if (i-- == 0)
            return true;
    }
    return false;
}

int k_pages_get(struct kernel *kernel, int node_or_local, size_t bytes, struct kaddr *at)
{
    struct os_memory *memory = kernel->memory;
    unsigned node = os_node_of(kernel, node_or_local);
    for (unsigned i = 0; i < kernel->n_nodes; i++) {
        struct hpa hpa;
        if (physmem_alloc(memory->space, (node + i) % kernel->n_nodes, bytes, PAGE_BYTES, &hpa)) {
            at->v = hpa.v;
            os_memory_clear(memory, *at, bytes);
            return 0;
        }
    }
    at->v = 0;
    return -ENOMEM;
}

void k_pages_put(struct kernel *kernel, size_t bytes, struct kaddr at)
{
    physmem_release(kernel->memory->space, (struct hpa){ at.v }, bytes);
}
