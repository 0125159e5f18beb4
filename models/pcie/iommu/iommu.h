/*
 * DMA remapping after Intel VT-d 3.0: root and context entries and multi-level page tables in
 * simulated memory, domains, IOTLB and paging-structure caches, concurrent page walkers, queued
 * invalidation, fault records, pass-through, interrupt remapping.
 *
 * This is the hardware. It reads tables from simulated memory through struct iommu_memory; the
 * software that builds them is models/host/iommu_driver.h.
 */
#ifndef MODELS_PCIE_IOMMU_IOMMU_H
#define MODELS_PCIE_IOMMU_IOMMU_H

#include "models/base/address.h"
#include "models/base/latency.h"
#include "sim/config/param.h"
#include "sim/engine/sim.h"
#include "sim/engine/stat.h"

struct iommu;

/* Access to the host's memory; the root complex supplies it. */
struct iommu_memory {
    void *context;
    /* Returns when the data of a read of a table entry are back. stamp is NULL: the reads of a walk
     * are part of PART_IOMMU (models/base/latency.h). */
    sim_time (*read_done_ps)(void *context, struct hpa hpa, sim_time at_ps,
                             struct sim_stamp *stamp);
    /* Returns when a status word written from at_ps on is ordered. NULL: at once. */
    sim_time (*write_done_ps)(void *context, struct hpa hpa, sim_time at_ps);
    uint64_t (*read64)(void *context, struct hpa hpa);
    /* Writes status words of invalidation waits, and the IOMMU's own interrupt messages
     * (0xFEEx_xxxx), which it sends once software has unmasked them. */
    void (*write)(void *context, struct hpa hpa, const void *from, unsigned bytes);
    /* Whether [hpa, hpa + bytes) is memory; a table elsewhere is an access error. NULL: all is. */
    bool (*readable)(void *context, struct hpa hpa, unsigned bytes);
};

struct iommu_params {
    bool enabled;    /* false: there is no IOMMU; requests pass, registers read zero */
    uint32_t levels; /* highest number supported, 3, 4 or 5: 39, 48 or 57 bits */
    /* Sizes of 0 leave a cache out; otherwise entries are a multiple of ways. */
    uint32_t iotlb_entries, iotlb_ways;
    uint32_t context_entries, context_ways; /* context cache */
    uint32_t pde_entries, pde_ways;   /* paging-structure cache of last-level tables (2 MiB) */
    uint32_t pdpe_entries, pdpe_ways; /* of directory tables (1 GiB) */
    uint32_t walkers;
    sim_time walk_interval_ps; /* between the starts of two walks */
    uint32_t read_piece_bytes; /* a read that missed goes on in such pieces ... */
    sim_time read_piece_ps;    /* ... each of which holds the next walk up for so long */
    sim_time lookup_ps;        /* added to every translated request, hit or miss */
    sim_time walk_step_ps;     /* per table read, in addition to the memory access */
    sim_time walk_fixed_ps;    /* per walk */
    sim_time invalidate_ps;    /* an invalidation, beside its descriptors */
};
extern const struct param_desc iommu_params_table[];
/* Returns a static message that says what is wrong with the parameters, NULL if nothing is. */
const char *iommu_params_error(const struct iommu_params *params);

/* params must have no error and, like name, must outlive the IOMMU; memory is copied. */
struct iommu *iommu_new(struct sim *sim, const char *name, const struct iommu_params *params,
                        const struct iommu_memory *memory);
void iommu_free(struct iommu *iommu);

/* VT-d 3.0, 7.1: reasons of non-recoverable faults. */
enum iommu_fault {
    IOMMU_OK = 0,
    IOMMU_FAULT_ROOT_NOT_PRESENT = 0x1,
    IOMMU_FAULT_CONTEXT_NOT_PRESENT = 0x2,
    IOMMU_FAULT_CONTEXT_INVALID = 0x3,
    IOMMU_FAULT_ADDRESS_WIDTH = 0x4,
    IOMMU_FAULT_WRITE_DENIED = 0x5,
    IOMMU_FAULT_READ_DENIED = 0x6,
    IOMMU_FAULT_TABLE_INVALID = 0x7, /* a paging entry points to no memory */
    IOMMU_FAULT_ROOT_ACCESS = 0x8,
    IOMMU_FAULT_CONTEXT_ACCESS = 0x9,
    IOMMU_FAULT_ROOT_RESERVED = 0xa,
    IOMMU_FAULT_CONTEXT_RESERVED = 0xb,
    IOMMU_FAULT_RESERVED_BIT = 0xc, /* in a paging entry */
    IOMMU_FAULT_INTERRUPT_REQUEST = 0x20,
    IOMMU_FAULT_INTERRUPT_INDEX = 0x21,
    IOMMU_FAULT_INTERRUPT_NOT_PRESENT = 0x22,
    IOMMU_FAULT_INTERRUPT_ACCESS = 0x23,
    IOMMU_FAULT_INTERRUPT_RESERVED = 0x24,
    IOMMU_FAULT_INTERRUPT_COMPATIBILITY = 0x25,
    IOMMU_FAULT_INTERRUPT_SOURCE = 0x26,
};

struct iommu_translation {
    struct hpa hpa;
    sim_time done_ps;       /* when the translation is known */
    enum iommu_fault fault; /* IOMMU_OK: hpa is valid up to the end of its 4 KiB page */
};

/*
 * Translates a request of `bytes` within one 4 KiB page that arrives at at_ps. Timing by
 * reservation: a miss takes the first free walker, or joins a walk for the same page that is under
 * way. A fault writes a fault record and sets the fault status; the caller must not perform the
 * access then. While remapping is off, and in pass-through, hpa = iova.
 */
struct iommu_translation iommu_translate(struct iommu *iommu, uint16_t requester_id,
                                         struct iova iova, unsigned bytes, bool write,
                                         sim_time at_ps, struct sim_stamp *stamp);

/* Remaps an interrupt message: a write to 0xFEEx_xxxx, which is never translated as DMA. False: the
 * message is blocked and a fault recorded. While interrupt remapping is off, returns destination
 * and vector of the message itself. Takes no time. */
bool iommu_remap_interrupt(struct iommu *iommu, uint16_t requester_id, uint64_t address,
                           uint32_t data, uint32_t *destination, uint8_t *vector);

/* Read and write memory-mapped registers (VT-d 3.0, chapter 10), 4 or 8 bytes at an offset in the
 * 4 KiB window: root table address, global command and status, queued invalidation (head, tail,
 * address), fault status and recording, interrupt-remapping table address, capabilities. A write of
 * the tail executes the queued invalidation descriptors in memory; wait descriptors write their
 * status to memory. */
uint64_t iommu_reg_read(struct iommu *iommu, unsigned offset, unsigned bytes);
void iommu_reg_write(struct iommu *iommu, unsigned offset, unsigned bytes, uint64_t value);

/* The time of the last n invalidations in the queue, each with a wait behind it, whose tail was
 * written at at_ps: returns when the status of the last is ordered. Their effect was there when the
 * tail was written; whoever waits for it asks here. n is 1 or more, and no more than the queue
 * has. */
sim_time iommu_invalidated_ps(struct iommu *iommu, unsigned n, sim_time at_ps);

/* Describes the statistics that iommu_stats() returns. Requests = hits + hits under miss + misses +
 * pass-through + faults before the look-up in the IOTLB. */
extern const struct stat_desc iommu_stats_table[];
void *iommu_stats(struct iommu *iommu);

#endif
