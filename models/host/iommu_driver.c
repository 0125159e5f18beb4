/*
 * Models: an operating system's IOMMU driver but for its page tables (iommu_driver_map.c): set-up,
 *     domains, context entries, invalidation through the queue with a wait after each command,
 *     fault records, interrupt-remapping entries.
 * Does not model: the software's time (whoever calls charges it), deferred (batched) invalidation,
 *     fault interrupts (records are polled).
 * Sources: VT-d 3.0, 6.5, 7.2, chapters 9 to 11 (set-up sequences).
 */
#include "models/host/iommu_driver_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool iommu_page_get(struct iommu_driver *driver, struct hpa *hpa)
{
    if (!driver->host.page_alloc(driver->host.context, hpa))
        return false;
    driver->table_bytes += PAGE_BYTES;
    return true;
}

void iommu_page_put(struct iommu_driver *driver, struct hpa hpa)
{
    driver->table_bytes -= PAGE_BYTES;
    driver->host.page_free(driver->host.context, hpa);
}

static void reg_write(struct iommu_driver *driver, unsigned offset, unsigned bytes, uint64_t value)
{
    iommu_reg_write(driver->iommu, offset, bytes, value);
}

/* Sets bits of the command register, beside those that last, and sees them come true. */
static void command_set(struct iommu_driver *driver, uint32_t bits)
{
    uint32_t lasting = VTD_GCMD_TE | VTD_GCMD_QIE | VTD_GCMD_IRE;
    uint32_t status = (uint32_t)iommu_reg_read(driver->iommu, VTD_GSTS, 4);
    reg_write(driver, VTD_GCMD, 4, (status & lasting) | bits);
    status = (uint32_t)iommu_reg_read(driver->iommu, VTD_GSTS, 4);
    SIM_ASSERT((status & bits) == bits, "GSTS %#x lacks %#x", status, bits);
}

/* ---- Invalidation ---------------------------------------------------------------------------- */

static void queue_put(struct iommu_driver *driver, struct vtd_entry128 descriptor)
{
    uint64_t at = driver->queue.v + driver->queue_tail;
    iommu_driver_write(driver, at, descriptor.lo);
    iommu_driver_write(driver, at + 8, descriptor.hi);
    driver->queue_tail = (driver->queue_tail + VTD_QI_BYTES) % (uint32_t)PAGE_BYTES;
}

void iommu_queue_submit(struct iommu_driver *driver, struct vtd_entry128 descriptor)
{
    uint32_t sequence = ++driver->status_sequence;
    driver->n_submitted++;
    queue_put(driver, descriptor);
    queue_put(driver, (struct vtd_entry128){ VTD_QI_WAIT | VTD_QI_WAIT_SW |
                                                 (uint64_t)sequence << VTD_QI_STATUS_LSB,
                                             driver->status.v });
    reg_write(driver, VTD_IQT, 8, driver->queue_tail);
    uint32_t done = (uint32_t)iommu_driver_read(driver, driver->status.v);
    SIM_ASSERT(done == sequence, "invalidation stuck: status %u, expected %u", done, sequence);
}

uint64_t iommu_driver_submitted(const struct iommu_driver *driver)
{
    return driver->n_submitted;
}

sim_time iommu_driver_done_ps(struct iommu_driver *driver, unsigned n, sim_time at_ps)
{
    return iommu_invalidated_ps(driver->iommu, n, at_ps);
}

unsigned iommu_driver_written(const struct iommu_driver *driver,
                              struct iommu_run run[IOMMU_RUNS_MAX])
{
    memcpy(run, driver->run, driver->n_runs * sizeof(run[0]));
    return driver->n_runs;
}

struct hpa iommu_driver_status(const struct iommu_driver *driver)
{
    return driver->status;
}

static void context_invalidate(struct iommu_driver *driver, unsigned granularity, uint16_t did,
                               uint16_t requester_id)
{
    iommu_queue_submit(driver, (struct vtd_entry128){ VTD_QI_CONTEXT |
                                                          (uint64_t)granularity << VTD_QI_G_LSB |
                                                          (uint64_t)did << VTD_QI_DID_LSB |
                                                          (uint64_t)requester_id << VTD_QI_SID_LSB,
                                                      0 });
}

static void iotlb_invalidate(struct iommu_driver *driver, unsigned granularity, uint16_t did)
{
    iommu_queue_submit(driver,
                       (struct vtd_entry128){ VTD_QI_IOTLB | (uint64_t)granularity << VTD_QI_G_LSB |
                                                  (uint64_t)did << VTD_QI_DID_LSB,
                                              0 });
}

void iommu_domain_flush(struct iommu_domain *domain)
{
    iotlb_invalidate(domain->driver, VTD_DOMAIN, domain->did);
}

static void later_free(struct iommu_driver *driver)
{
    while (driver->n_later != 0)
        iommu_page_put(driver, driver->later[--driver->n_later]);
}

void iommu_flush(struct iommu_driver *driver)
{
    driver->n_runs = 0;
    iotlb_invalidate(driver, VTD_GLOBAL, 0);
    later_free(driver);
}

/* ---- Faults ---------------------------------------------------------------------------------- */

bool iommu_driver_fault(struct iommu_driver *driver, uint16_t *requester_id, struct iova *iova,
                        bool *write, enum iommu_fault *reason)
{
    uint32_t status = (uint32_t)iommu_reg_read(driver->iommu, VTD_FSTS, 4);
    if ((status & VTD_FSTS_PPF) == 0) {
        /* All records are read: let new ones in. */
        if ((status & VTD_FSTS_PFO) != 0)
            reg_write(driver, VTD_FSTS, 4, VTD_FSTS_PFO);
        return false;
    }
    unsigned record = VTD_FRCD + driver->fault_idx * VTD_FRCD_BYTES;
    uint64_t hi = iommu_reg_read(driver->iommu, record + 8, 8);
    if ((hi & VTD_FRCD_F) == 0) {
        /* Records were taken by somebody else since. */
        driver->fault_idx = (status & VTD_FSTS_FRI) >> VTD_FSTS_FRI_SHIFT;
        record = VTD_FRCD + driver->fault_idx * VTD_FRCD_BYTES;
        hi = iommu_reg_read(driver->iommu, record + 8, 8);
    }
    *requester_id = (uint16_t)hi;
    *write = (hi & VTD_FRCD_T1) == 0;
    *reason = (enum iommu_fault)vtd_get(hi, 39, VTD_FRCD_FR_SHIFT);
    iova->v = iommu_reg_read(driver->iommu, record, 8);
    reg_write(driver, record + 12, 4, VTD_FRCD_F >> 32);
    driver->fault_idx = (driver->fault_idx + 1) % VTD_N_FRCD;
    return true;
}

/* What an earlier driver did not read. */
static void faults_discard(struct iommu_driver *driver)
{
    uint16_t requester_id;
    struct iova iova;
    bool write;
    enum iommu_fault reason;
    while (iommu_driver_fault(driver, &requester_id, &iova, &write, &reason))
        ;
    driver->fault_idx = 0;
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static bool base_pages_get(struct iommu_driver *driver)
{
    if (!iommu_page_get(driver, &driver->root))
        return false;
    if (iommu_page_get(driver, &driver->queue)) {
        if (iommu_page_get(driver, &driver->status))
            return true;
        iommu_page_put(driver, driver->queue);
    }
    iommu_page_put(driver, driver->root);
    return false;
}

static void hardware_start(struct iommu_driver *driver)
{
    uint64_t capability = iommu_reg_read(driver->iommu, VTD_CAP, 8);
    driver->levels = (capability & VTD_CAP_SAGAW_5) != 0   ? 5
                     : (capability & VTD_CAP_SAGAW_4) != 0 ? 4
                                                           : 3;
    driver->mamv = (unsigned)vtd_get(capability, 53, VTD_CAP_MAMV_SHIFT);
    faults_discard(driver);
    /* An earlier driver may have left its last position; the queue starts empty. */
    reg_write(driver, VTD_IQT, 8, 0);
    reg_write(driver, VTD_IQA, 8, driver->queue.v);
    command_set(driver, VTD_GCMD_QIE);
    reg_write(driver, VTD_RTADDR, 8, driver->root.v);
    command_set(driver, VTD_GCMD_SRTP);
    context_invalidate(driver, VTD_GLOBAL, 0, 0);
    iotlb_invalidate(driver, VTD_GLOBAL, 0);
    command_set(driver, VTD_GCMD_TE);
}

struct iommu_driver *iommu_driver_new(struct iommu *iommu, const struct iommu_driver_host *host)
{
    if (iommu_reg_read(iommu, VTD_VER, 4) == 0)
        return NULL;
    struct iommu_driver *driver = sim_zalloc(1, sizeof(*driver));
    driver->iommu = iommu;
    driver->host = *host;
    driver->next_did = IOMMU_DID_FIRST;
    if (!base_pages_get(driver)) {
        free(driver);
        return NULL;
    }
    hardware_start(driver);
    return driver;
}

/* ---- Context entries ------------------------------------------------------------------------- */

/* Address of the requester's context entry; 0 if its bus has no table. */
static uint64_t context_find(const struct iommu_driver *driver, uint16_t requester_id)
{
    uint64_t root = iommu_driver_read(driver, driver->root.v + 16u * (requester_id >> 8));
    return (root & VTD_P) == 0 ? 0 : (root & VTD_ROOT_TABLE) + 16u * (requester_id & 0xff);
}

static bool context_attach(struct iommu_driver *driver, uint16_t requester_id, uint64_t lo,
                           uint16_t did)
{
    uint64_t at = context_find(driver, requester_id);
    if (at != 0 && (iommu_driver_read(driver, at) & VTD_P) != 0)
        return false;
    unsigned bus = requester_id >> 8;
    if (at == 0) {
        struct hpa table;
        if (!iommu_page_get(driver, &table))
            return false;
        iommu_driver_write(driver, driver->root.v + 16u * bus, table.v | VTD_P);
        at = table.v + 16u * (requester_id & 0xff);
    }
    /* The half with the present bit last. */
    iommu_driver_write(driver, at + 8,
                       (uint64_t)did << VTD_CONTEXT_DID_LSB | VTD_AW_OF_LEVELS(driver->levels));
    iommu_driver_write(driver, at, lo | VTD_P);
    driver->bus_devices[bus]++;
    return true;
}

static void context_detach(struct iommu_driver *driver, uint16_t requester_id, uint16_t did)
{
    uint64_t at = context_find(driver, requester_id);
    SIM_ASSERT(at != 0 && (iommu_driver_read(driver, at) & VTD_P) != 0 &&
                   (uint16_t)(iommu_driver_read(driver, at + 8) >> VTD_CONTEXT_DID_LSB) == did,
               "requester %#x is not attached to domain %u", requester_id, did);
    iommu_driver_write(driver, at, 0);
    iommu_driver_write(driver, at + 8, 0);
    unsigned bus = requester_id >> 8;
    bool last = --driver->bus_devices[bus] == 0;
    if (last)
        iommu_driver_write(driver, driver->root.v + 16u * bus, 0);
    context_invalidate(driver, VTD_SELECTIVE, did, requester_id);
    iotlb_invalidate(driver, VTD_DOMAIN, did);
    if (last)
        iommu_page_put(driver, (struct hpa){ at & ~(PAGE_BYTES - 1) });
}

bool iommu_domain_attach(struct iommu_domain *domain, uint16_t requester_id)
{
    return context_attach(domain->driver, requester_id,
                          domain->top.v | VTD_TT_MULTI_LEVEL << VTD_CONTEXT_TT_LSB, domain->did);
}

void iommu_domain_detach(struct iommu_domain *domain, uint16_t requester_id)
{
    context_detach(domain->driver, requester_id, domain->did);
}

bool iommu_attach_pass_through(struct iommu_driver *driver, uint16_t requester_id)
{
    return context_attach(driver, requester_id, VTD_TT_PASS_THROUGH << VTD_CONTEXT_TT_LSB,
                          IOMMU_DID_PASS);
}

void iommu_detach_pass_through(struct iommu_driver *driver, uint16_t requester_id)
{
    context_detach(driver, requester_id, IOMMU_DID_PASS);
}

/* Detaches every device of a domain. */
static void domain_detach_all(struct iommu_driver *driver, uint16_t did)
{
    for (uint32_t id = 0; id < 0x10000; id++) {
        if (driver->bus_devices[id >> 8] == 0) {
            id |= 0xff;
            continue;
        }
        uint64_t at = context_find(driver, (uint16_t)id);
        if ((iommu_driver_read(driver, at) & VTD_P) != 0 &&
            (uint16_t)(iommu_driver_read(driver, at + 8) >> VTD_CONTEXT_DID_LSB) == did)
            context_detach(driver, (uint16_t)id, did);
    }
}

/* ---- Domains --------------------------------------------------------------------------------- */

/* The next free one after the last given out, so that a number does not come back at once. */
static bool did_get(struct iommu_driver *driver, uint16_t *did)
{
    for (uint32_t n = 0; n < IOMMU_N_DOMAINS; n++) {
        uint32_t candidate = (driver->next_did + n) % IOMMU_N_DOMAINS;
        uint64_t bit = UINT64_C(1) << candidate % 64;
        if (candidate < IOMMU_DID_FIRST || (driver->did_used[candidate / 64] & bit) != 0)
            continue;
        driver->did_used[candidate / 64] |= bit;
        driver->next_did = candidate + 1;
        *did = (uint16_t)candidate;
        return true;
    }
    return false;
}

struct iommu_domain *iommu_domain_new(struct iommu_driver *driver)
{
    struct iommu_domain *domain = sim_zalloc(1, sizeof(*domain));
    domain->driver = driver;
    if (!iommu_page_get(driver, &domain->top)) {
        free(domain);
        return NULL;
    }
    if (!did_get(driver, &domain->did)) {
        iommu_page_put(driver, domain->top);
        free(domain);
        return NULL;
    }
    domain->next = driver->domains;
    driver->domains = domain;
    return domain;
}

void iommu_domain_free(struct iommu_domain *domain)
{
    struct iommu_driver *driver = domain->driver;
    domain_detach_all(driver, domain->did); /* which invalidates; nobody can bring more */
    iommu_tables_free(driver, domain->top.v, driver->levels);
    driver->did_used[domain->did / 64] &= ~(UINT64_C(1) << domain->did % 64);
    struct iommu_domain **link = &driver->domains;
    while (*link != domain)
        link = &(*link)->next;
    *link = domain->next;
    free(domain);
}

void iommu_driver_free(struct iommu_driver *driver)
{
    while (driver->domains != NULL)
        iommu_domain_free(driver->domains);
    domain_detach_all(driver, IOMMU_DID_PASS);
    later_free(driver);
    free(driver->later);
    reg_write(driver, VTD_GCMD, 4, 0);
    if (driver->has_interrupts)
        iommu_page_put(driver, driver->interrupts);
    iommu_page_put(driver, driver->status);
    iommu_page_put(driver, driver->queue);
    iommu_page_put(driver, driver->root);
    SIM_ASSERT(driver->table_bytes == 0, "%llu bytes of tables are left",
               (unsigned long long)driver->table_bytes);
    free(driver);
}

uint64_t iommu_driver_table_bytes(const struct iommu_driver *driver)
{
    return driver->table_bytes;
}

/* ---- Interrupt remapping --------------------------------------------------------------------- */

static bool interrupts_start(struct iommu_driver *driver)
{
    if (driver->has_interrupts)
        return true;
    if (!iommu_page_get(driver, &driver->interrupts))
        return false;
    driver->has_interrupts = true;
    uint64_t size = 7; /* 2^(7+1) entries */
    _Static_assert(IOMMU_N_IRTES == 256 && IOMMU_N_IRTES * 16 == PAGE_BYTES, "one page of them");
    reg_write(driver, VTD_IRTA, 8, driver->interrupts.v | VTD_IRTA_EIME | size);
    command_set(driver, VTD_GCMD_SIRTP);
    iommu_queue_submit(driver, (struct vtd_entry128){ VTD_QI_IEC, 0 });
    command_set(driver, VTD_GCMD_IRE);
    return true;
}

int iommu_irte_new(struct iommu_driver *driver, uint16_t requester_id, uint32_t destination,
                   uint8_t vector, uint64_t *message_address, uint32_t *message_data)
{
    if (!interrupts_start(driver))
        return -ENOMEM;
    for (uint32_t n = 0; n < IOMMU_N_IRTES; n++) {
        uint32_t index = (driver->next_irte + n) % IOMMU_N_IRTES;
        uint64_t at = driver->interrupts.v + 16 * index;
        if ((iommu_driver_read(driver, at) & VTD_P) != 0)
            continue;
        driver->next_irte = index + 1;
        iommu_driver_write(driver, at + 8, requester_id | VTD_SVT_ID << VTD_IRTE_SVT_LSB);
        iommu_driver_write(driver, at,
                           (uint64_t)destination << VTD_IRTE_DST_LSB |
                               (uint64_t)vector << VTD_IRTE_V_LSB | VTD_P);
        *message_address = VTD_MSI_BASE | (uint64_t)index << VTD_MSI_HANDLE_LSB |
                           VTD_MSI_REMAPPABLE;
        *message_data = 0;
        return (int)index;
    }
    return -ENOSPC;
}

void iommu_irte_free(struct iommu_driver *driver, int index)
{
    SIM_ASSERT(driver->has_interrupts && index >= 0 && (unsigned)index < IOMMU_N_IRTES,
               "no interrupt entry %d", index);
    uint64_t at = driver->interrupts.v + 16u * (unsigned)index;
    SIM_ASSERT((iommu_driver_read(driver, at) & VTD_P) != 0, "interrupt entry %d is free", index);
    iommu_driver_write(driver, at, 0);
    iommu_driver_write(driver, at + 8, 0);
    iommu_queue_submit(driver,
                       (struct vtd_entry128){ VTD_QI_IEC | VTD_QI_IEC_G |
                                                  (uint64_t)(unsigned)index << VTD_QI_IEC_IDX_LSB,
                                              0 });
}
