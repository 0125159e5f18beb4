/*
 * What firmware and operating system do before anything else: PCIe enumeration through
 * configuration requests, from a task on core 0; IOMMU set-up; DMA memory.
 *
 * Models: one root bus a socket with an equal share of bus numbers and MMIO windows; one
 *   Max_Payload_Size for all of them, so that peers on any two may write to each other; a domain
 *   per requester ID; an IOMMU's tables in its own socket's memory or the next one's, elsewhere if
 *   there is none.
 * Does not model: the time that drivers spend in mapping (workloads charge what they measure).
 * Timing: each configuration access takes its round trip.
 * Sources: PCI Firmware 3.0 (ECAM); Intel VT-d 3.0, chapter 6.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "models/host/host_internal.h"

/* Below 4 GiB, beside interrupt addresses; physmem.h leaves it free. */
#define MMIO_BASE  UINT64_C(0xf0000000)
#define MMIO_BYTES UINT64_C(0x0e000000)
/* Above all memory, from firmware.mmio_high_base_bytes on: 4 TiB a socket. */
#define MMIO64_BYTES     (UINT64_C(1) << 42)
#define BOOT_STACK_BYTES (128u * 1024u)

struct boot_context {
    struct host *host;
    struct sim_task *task;
};

/* ---- IOMMU ----------------------------------------------------------------------------------- */

static bool table_page_alloc(void *context, struct hpa *hpa)
{
    static const uint8_t zeros[PAGE_BYTES];
    struct host_iommu *iommu = context;
    struct host *host = iommu->host;
    struct physmem *mem = numa_physmem(host->numa);
    unsigned n_nodes = physmem_nodes(mem);
    unsigned socket = (unsigned)(iommu - host->iommu) + host->firmware_params.iommu_tables_far;
    for (unsigned i = 0; i < n_nodes; i++)
        if (physmem_alloc(mem, (socket + i) % n_nodes, PAGE_BYTES, PAGE_BYTES, hpa)) {
            physmem_write(mem, *hpa, zeros, PAGE_BYTES);
            return true;
        }
    return false;
}

static void table_page_free(void *context, struct hpa hpa)
{
    physmem_release(numa_physmem(((struct host_iommu *)context)->host->numa), hpa, PAGE_BYTES);
}

static uint64_t table_read64(void *context, struct hpa hpa)
{
    return physmem_read64(numa_physmem(((struct host_iommu *)context)->host->numa), hpa);
}

static void table_write64(void *context, struct hpa hpa, uint64_t value)
{
    physmem_write64(numa_physmem(((struct host_iommu *)context)->host->numa), hpa, value);
}

static bool start_iommu(struct host *host, unsigned socket)
{
    struct iommu_driver_host callbacks = { .context = &host->iommu[socket],
                                           .page_alloc = table_page_alloc,
                                           .page_free = table_page_free,
                                           .read64 = table_read64,
                                           .write64 = table_write64 };
    host->iommu[socket].driver = iommu_driver_new(host->iommu[socket].iommu, &callbacks);
    return host->iommu[socket].driver != NULL;
}

/* ---- Boot ------------------------------------------------------------------------------------ */

static uint32_t boot_read(void *context, uint16_t id, unsigned offset, unsigned bytes)
{
    struct boot_context *boot = context;
    return root_complex_config_read(&boot->host->root_complexes, 0, boot->task, id, offset, bytes);
}

static void boot_write(void *context, uint16_t id, unsigned offset, unsigned bytes, uint32_t value)
{
    struct boot_context *boot = context;
    root_complex_config_write(&boot->host->root_complexes, 0, boot->task, id, offset, bytes, value);
}

static struct pcie_cfg_access cfg_access(struct boot_context *boot)
{
    return (struct pcie_cfg_access){ .context = boot, .read = boot_read, .write = boot_write };
}

static bool boot_socket(struct boot_context *boot, unsigned s)
{
    struct host *host = boot->host;
    struct model *rc = host->rc[s];
    uint64_t share = MMIO_BYTES / host->n_sockets & ~UINT64_C(0xfffff);
    struct pcie_cfg_access access = cfg_access(boot);
    struct pcie_enumerate_options options = {
        .first_bus = root_complex_bus(rc),
        .last_bus = root_complex_bus(rc) + 256 / host->n_sockets - 1,
        .memory_base = MMIO_BASE + s * share,
        .memory_bytes = share,
        .prefetchable_base = host->firmware_params.mmio_high_base_bytes + s * MMIO64_BYTES,
        .prefetchable_bytes = MMIO64_BYTES,
        .extended_tags = true,
        .ecrc = host->firmware_params.ecrc,
        .acs = host->iommu_params.enabled,
    };
    root_complex_set_last_bus(rc, options.last_bus);
    root_complex_set_windows(
        rc, (struct cfg_window){ options.memory_base, options.memory_base + share - 1 },
        (struct cfg_window){ options.prefetchable_base,
                             options.prefetchable_base + MMIO64_BYTES - 1 });
    unsigned room = HOST_FUNCTIONS_MAX - host->n_functions;
    int n = pcie_enumerate(&access, &options, &host->function[host->n_functions], room,
                           &host->boot_error);
    if (n < 0)
        return false;
    if ((unsigned)n > room) {
        host->boot_error = "more PCI functions than a host can have";
        return false;
    }
    host->n_functions += (unsigned)n;
    return true;
}

/* The least that any root bus was given, for all. */
static void boot_mps(struct boot_context *boot)
{
    struct host *host = boot->host;
    struct pcie_cfg_access access = cfg_access(boot);
    unsigned mps_bytes = 4096;
    for (unsigned i = 0; i < host->n_functions; i++)
        if (host->function[i].mps_bytes != 0)
            mps_bytes = SIM_MIN(mps_bytes, host->function[i].mps_bytes);
    pcie_set_mps(&access, host->function, host->n_functions, mps_bytes);
}

static bool boot_sockets(struct boot_context *boot)
{
    struct host *host = boot->host;
    for (unsigned s = 0; s < host->n_sockets; s++) {
        if (!boot_socket(boot, s))
            return false;
        if (host->iommu_params.enabled && !start_iommu(host, s)) {
            host->boot_error = "no memory for the IOMMU's tables";
            return false;
        }
    }
    boot_mps(boot);
    return true;
}

static void boot_body(struct sim_task *task, void *arg)
{
    struct boot_context boot = { .host = arg, .task = task };
    boot.host->booted = boot_sockets(&boot);
    sim_task_sync(task);
    sim_stop(boot.host->sim);
}

void host_boot(struct host *host)
{
    char name[96];
    snprintf(name, sizeof(name), "%s.boot", host->name);
    struct sim_task *task = sim_task_new(host->sim, name, BOOT_STACK_BYTES, boot_body, host);
    sim_task_start(task, sim_now(host->sim));
}

bool host_booted(const struct host *host, const char **why)
{
    *why = host->boot_error;
    return host->booted;
}

/* ---- Domains --------------------------------------------------------------------------------- */

unsigned host_socket_of(const struct host *host, uint16_t requester_id)
{
    return (unsigned)(requester_id >> 8) / (256 / host->n_sockets);
}

struct iommu_driver *host_iommu_driver(const struct host *host, uint16_t requester_id)
{
    return host->iommu[host_socket_of(host, requester_id)].driver;
}

struct iommu_domain *host_domain_find(const struct host *host, uint16_t requester_id)
{
    for (unsigned i = 0; i < host->n_domains; i++)
        if (host->domain[i].requester_id == requester_id)
            return host->domain[i].domain;
    return NULL;
}

struct iommu_domain *host_domain_of(struct host *host, uint16_t requester_id)
{
    struct iommu_driver *driver = host_iommu_driver(host, requester_id);
    struct iommu_domain *domain = host_domain_find(host, requester_id);
    if (domain != NULL)
        return domain;
    if (host->n_domains == HOST_DOMAINS_MAX || driver == NULL)
        return NULL;
    domain = iommu_domain_new(driver);
    if (domain == NULL)
        return NULL;
    if (!iommu_domain_attach(domain, requester_id)) {
        iommu_domain_free(domain);
        return NULL;
    }
    host->domain[host->n_domains++] = (struct host_domain){ .requester_id = requester_id,
                                                            .domain = domain };
    return domain;
}

/* ---- DMA memory ------------------------------------------------------------------------------ */

static uint64_t whole_pages(const struct host *host, uint64_t bytes, uint64_t iommu_page_bytes)
{
    uint64_t page = host->iommu_params.enabled ? iommu_page_bytes : PAGE_BYTES;
    return (bytes + page - 1) / page * page;
}

int host_dma_alloc(struct host *host, uint16_t requester_id, unsigned node, uint64_t bytes,
                   uint64_t iommu_page_bytes, struct hpa *hpa, struct iova *iova)
{
    struct physmem *mem = numa_physmem(host->numa);
    uint64_t page = host->iommu_params.enabled ? iommu_page_bytes : PAGE_BYTES;
    bytes = whole_pages(host, bytes, iommu_page_bytes);
    if (!physmem_alloc(mem, node, bytes, page, hpa))
        return -ENOMEM;
    if (!host->iommu_params.enabled) {
        iova->v = hpa->v;
        return 0;
    }
    struct iommu_domain *domain = host_domain_of(host, requester_id);
    iova->v = (host->next_iova + page - 1) / page * page;
    if (iova->v < IOVA_HIGH && iova->v + bytes > IOVA_LOW_END)
        iova->v = (IOVA_HIGH + page - 1) / page * page;
    int status = domain == NULL
                     ? -ENOSPC
                     : iommu_map(domain, *iova, *hpa, bytes, page, IOMMU_READ | IOMMU_WRITE);
    if (status != 0) {
        physmem_release(mem, *hpa, bytes);
        return status;
    }
    host->next_iova = iova->v + bytes;
    return 0;
}

int host_dma_free(struct host *host, uint16_t requester_id, uint64_t bytes,
                  uint64_t iommu_page_bytes, struct hpa hpa, struct iova iova)
{
    bytes = whole_pages(host, bytes, iommu_page_bytes);
    if (host->iommu_params.enabled) {
        struct iommu_domain *domain = host_domain_of(host, requester_id);
        int status = domain == NULL ? -ENOENT : iommu_unmap(domain, iova, bytes);
        if (status != 0)
            return status;
    }
    physmem_release(numa_physmem(host->numa), hpa, bytes);
    return 0;
}

void host_set_mrrs(struct host *host, struct sim_task *task, uint16_t id, unsigned mrrs_bytes)
{
    struct root_complex_host *rcs = &host->root_complexes;
    struct boot_context context = { .host = host, .task = task };
    struct pcie_cfg_access access = cfg_access(&context);
    unsigned cap = pcie_find_capability(&access, id, PCI_CAP_ID_PCIE);
    if (cap == 0)
        return;
    uint32_t control = root_complex_config_read(rcs, 0, task, id, cap + PCIE_DEVCTL, 2);
    unsigned code = 0;
    while (code < 5 && 128u << code < mrrs_bytes)
        code++;
    control = (control & ~PCIE_DEVCTL_MRRS_MASK) | code << PCIE_DEVCTL_MRRS_SHIFT;
    root_complex_config_write(rcs, 0, task, id, cap + PCIE_DEVCTL, 2, control);
}
