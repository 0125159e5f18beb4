/*
 * What an operating system does to an IOMMU: builds root, context and page tables in simulated
 * memory, programs the registers, invalidates through the queue. Function only; whoever calls it
 * charges the software's time.
 */
#ifndef MODELS_HOST_IOMMU_DRIVER_H
#define MODELS_HOST_IOMMU_DRIVER_H

#include "models/pcie/iommu/iommu.h"

struct iommu_driver;
struct iommu_domain;

/* Where it gets pages for tables (zeroed, 4 KiB) and how it writes them. */
struct iommu_driver_host {
    void *context;
    bool (*page_alloc)(void *context, struct hpa *hpa);
    void (*page_free)(void *context, struct hpa hpa);
    uint64_t (*read64)(void *context, struct hpa hpa);
    void (*write64)(void *context, struct hpa hpa, uint64_t value);
};

/* Sets up root table, queued invalidation, fault recording; translation is on afterwards, with
 * nothing mapped. NULL if pages ran out or there is no IOMMU. */
struct iommu_driver *iommu_driver_new(struct iommu *iommu, const struct iommu_driver_host *host);
/* Translation and interrupt remapping off; frees all that is left, domains included. */
void iommu_driver_free(struct iommu_driver *driver);

/* Page tables of as many levels as the IOMMU supports. NULL: no page or no identifier is left. */
struct iommu_domain *iommu_domain_new(struct iommu_driver *driver);
/* Unmaps everything, detaches devices, frees tables. */
void iommu_domain_free(struct iommu_domain *domain);
/* False: it is attached somewhere already, or no page is left. */
bool iommu_domain_attach(struct iommu_domain *domain, uint16_t requester_id);
void iommu_domain_detach(struct iommu_domain *domain, uint16_t requester_id);
/* The device's addresses are host-physical addresses (context entry type pass-through). */
bool iommu_attach_pass_through(struct iommu_driver *driver, uint16_t requester_id);
void iommu_detach_pass_through(struct iommu_driver *driver, uint16_t requester_id);

#define IOMMU_READ  0x1u
#define IOMMU_WRITE 0x2u
/* All multiples of page_bytes (4 KiB, 2 MiB, 1 GiB). 0, or a negative errno: -EEXIST (something is
 * mapped there), -ENOMEM, -EINVAL; then nothing was changed. An empty table left where a larger
 * page goes is taken out and invalidated. */
int iommu_map(struct iommu_domain *domain, struct iova iova, struct hpa hpa, uint64_t bytes,
              uint64_t page_bytes, unsigned permissions);
/* Removes the mappings and invalidates; tables that lie wholly in the range are freed. 0, -ENOENT
 * if a part was not mapped, -EINVAL if a larger page would have to be split (nothing changed). */
int iommu_unmap(struct iommu_domain *domain, struct iova iova, uint64_t bytes);
/* The same without invalidating: what the IOMMU's caches know of the range goes on to work, and its
 * tables stay allocated, until iommu_flush(). */
int iommu_unmap_later(struct iommu_domain *domain, struct iova iova, uint64_t bytes);
/* Invalidates the translations of all domains, and frees the tables that iommu_unmap_later() has
 * left. */
void iommu_flush(struct iommu_driver *driver);
/* The oldest unread fault record, cleared by reading. False: none. */
bool iommu_driver_fault(struct iommu_driver *driver, uint16_t *requester_id, struct iova *iova,
                        bool *write, enum iommu_fault *reason);
/* Interrupt remapping: an entry for this requester, whose message no other may send. Returns its
 * index (message address and data follow from it), or -ENOSPC, -ENOMEM. Remapping (extended mode)
 * goes on with the first entry: from then on messages in compatibility format are blocked. The
 * table has 256 entries. */
int iommu_irte_new(struct iommu_driver *driver, uint16_t requester_id, uint32_t destination,
                   uint8_t vector, uint64_t *message_address, uint32_t *message_data);
void iommu_irte_free(struct iommu_driver *driver, int index);
/* Lines that the last iommu_map(), iommu_unmap(), iommu_unmap_later() or iommu_flush() has written,
 * of tables and queue, in order: at most IOMMU_RUNS_MAX runs of neighbours; what is more is
 * forgotten. Returns how many. */
#define IOMMU_RUNS_MAX 16u
struct iommu_run {
    struct hpa first;
    uint64_t bytes;
};
unsigned iommu_driver_written(const struct iommu_driver *driver,
                              struct iommu_run run[IOMMU_RUNS_MAX]);
/* Commands submitted to the invalidation queue so far, each with a wait behind it: the difference
 * is what a call has submitted. */
uint64_t iommu_driver_submitted(const struct iommu_driver *driver);
/* When the status of the last n commands is written if their tail was at at_ps; n is 1 to 64. */
sim_time iommu_driver_done_ps(struct iommu_driver *driver, unsigned n, sim_time at_ps);
/* Where waits write their status. */
struct hpa iommu_driver_status(const struct iommu_driver *driver);
/* Bytes of table memory in use; for leak checks. */
uint64_t iommu_driver_table_bytes(const struct iommu_driver *driver);

#endif
