/* What the files of the IOMMU driver share; for models/host/iommu_driver*.c alone. */
#ifndef MODELS_HOST_IOMMU_DRIVER_INTERNAL_H
#define MODELS_HOST_IOMMU_DRIVER_INTERNAL_H

#include "hw/vtd_regs.h"
#include "models/host/iommu_driver.h"

#define IOMMU_N_DOMAINS 65536u /* 16-bit identifiers */
#define IOMMU_DID_PASS  1u     /* 0 is kept free (CAP.CM reserves it), 1 is all pass-through */
#define IOMMU_DID_FIRST 2u
#define IOMMU_N_IRTES   256u /* one page */

struct iommu_driver {
    struct iommu *iommu;
    struct iommu_driver_host host;
    struct iommu_domain *domains; /* list */
    struct hpa root, queue, status, interrupts;
    bool has_interrupts; /* the table exists and remapping is on */
    uint32_t queue_tail; /* byte offset */
    uint32_t status_sequence;
    uint64_t n_submitted;
    struct iommu_run run[IOMMU_RUNS_MAX]; /* lines written by the last map or unmap */
    unsigned n_runs;
    unsigned levels, mamv;
    unsigned fault_idx; /* where the next record is expected */
    uint64_t table_bytes;
    struct hpa *later; /* tables to be freed by iommu_flush() */
    size_t n_later, later_capacity;
    uint32_t next_did, next_irte;
    uint64_t did_used[IOMMU_N_DOMAINS / 64];
    uint16_t bus_devices[256]; /* context entries in use, by bus */
};

struct iommu_domain {
    struct iommu_driver *driver;
    struct iommu_domain *next;
    struct hpa top; /* table of the highest level */
    uint16_t did;
};

static inline uint64_t iommu_driver_read(const struct iommu_driver *driver, uint64_t hpa)
{
    return driver->host.read64(driver->host.context, (struct hpa){ hpa });
}
/* Without a note: what only the C code here keeps in pages that are no tables yet, or no more. */
static inline void iommu_driver_scribble(const struct iommu_driver *driver, uint64_t hpa,
                                         uint64_t value)
{
    driver->host.write64(driver->host.context, (struct hpa){ hpa }, value);
}

static inline void iommu_driver_write(struct iommu_driver *driver, uint64_t hpa, uint64_t value)
{
    const uint64_t line = hpa & ~(uint64_t)(LINE_BYTES - 1);
    struct iommu_run *run = driver->n_runs != 0 ? &driver->run[driver->n_runs - 1] : NULL;

    iommu_driver_scribble(driver, hpa, value);
    if (run == NULL || line - run->first.v > run->bytes) {
        if (driver->n_runs < IOMMU_RUNS_MAX)
            driver->run[driver->n_runs++] = (struct iommu_run){ { line }, LINE_BYTES };
    } else if (line - run->first.v == run->bytes) {
        run->bytes += LINE_BYTES;
    }
}

bool iommu_page_get(struct iommu_driver *driver, struct hpa *hpa);
void iommu_page_put(struct iommu_driver *driver, struct hpa hpa);
/* Puts the descriptor and a wait into the queue; returns when the status word says it is done. */
void iommu_queue_submit(struct iommu_driver *driver, struct vtd_entry128 descriptor);
void iommu_domain_flush(struct iommu_domain *domain);
/* Frees a table and everything below it; no invalidation. */
void iommu_tables_free(struct iommu_driver *driver, uint64_t table, unsigned level);

#endif
