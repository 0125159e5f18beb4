/*
 * Models: interrupt remapping: remappable messages (handle, sub-handle) through the table in
 *     memory with an entry cache, verification of the source; compatibility-format messages blocked
 *     while remapping is on, unless software lets them through (CFI, not with extended mode).
 * Does not model: posted interrupts; delivery and trigger modes (only destination and vector are
 *     handed on); time (an interrupt's own way is timed by the root complex).
 * Sources: VT-d 3.0, 5.1 (formats, source verification), 9.10 (entries), 7.1 (faults 20h to 26h).
 */
#include "models/pcie/iommu/iommu_internal.h"

struct interrupt {
    uint16_t requester_id, index;
    bool quiet; /* the entry asks for no fault record */
    enum iommu_fault fault;
};

static bool source_allowed(struct vtd_entry128 entry, uint16_t requester_id)
{
    /* SQ 0..3: all bits, all but function bit 2, all but bits 2:1, all but bits 2:0. */
    static const uint16_t ignored[] = { 0, 4, 6, 7 };
    uint16_t id = (uint16_t)entry.hi;
    switch (vtd_get(entry.hi, 19, 18)) {
    case VTD_SVT_NONE: return true;
    case VTD_SVT_ID:
        return ((id ^ requester_id) & 0xffff & ~ignored[vtd_get(entry.hi, 17, 16)]) == 0;
    default: return requester_id >> 8 >= id >> 8 && requester_id >> 8 <= (id & 0xff);
    }
}

/* From the cache or memory. Only sound entries are cached. */
static bool irte_fetch(struct iommu *iommu, struct interrupt *interrupt, struct vtd_entry128 *irte)
{
    const struct iommu_entry *known = iommu_cache_find(&iommu->irte,
                                                       iommu_plain_key(interrupt->index));
    if (known != NULL) {
        *irte = (struct vtd_entry128){ known->value, known->aux };
        return true;
    }
    uint64_t at = (iommu->interrupt_table & VTD_BITS(63, 12)) + 16u * interrupt->index;
    if (!iommu_readable(iommu, at, 16)) {
        interrupt->fault = IOMMU_FAULT_INTERRUPT_ACCESS;
        return false;
    }
    *irte = iommu_read128(iommu, at);
    interrupt->quiet = (irte->lo & VTD_FPD) != 0;
    bool eime = (iommu->interrupt_table & VTD_IRTA_EIME) != 0;
    uint64_t reserved = VTD_IRTE_RSVD_LO | VTD_IRTE_IM;
    if (!eime)
        reserved |= VTD_BITS(63, 48) | VTD_BITS(39, 32);
    if ((irte->lo & VTD_P) == 0)
        interrupt->fault = IOMMU_FAULT_INTERRUPT_NOT_PRESENT;
    else if ((irte->lo & reserved) != 0 || (irte->hi & VTD_IRTE_RSVD_HI) != 0 ||
             vtd_get(irte->hi, 19, 18) > VTD_SVT_BUS)
        interrupt->fault = IOMMU_FAULT_INTERRUPT_RESERVED;
    if (interrupt->fault != IOMMU_OK)
        return false;
    bool fresh;
    struct iommu_entry *cached = iommu_cache_insert(&iommu->irte, iommu_plain_key(interrupt->index),
                                                    &fresh);
    *cached = (struct iommu_entry){ irte->lo, irte->hi, 0 };
    return true;
}

/* The entry that the message selects; false: fault. */
static bool remap(struct iommu *iommu, struct interrupt *interrupt, uint64_t address, uint32_t data,
                  struct vtd_entry128 *irte)
{
    bool sub_handle = (address & VTD_MSI_SHV) != 0;
    uint64_t index = vtd_get(address, 19, VTD_MSI_HANDLE_LSB) |
                     ((address & VTD_MSI_HANDLE_15) != 0 ? UINT64_C(0x8000) : 0);
    if (sub_handle && data >> 16 != 0) {
        interrupt->fault = IOMMU_FAULT_INTERRUPT_REQUEST;
        return false;
    }
    if (sub_handle)
        index += data;
    interrupt->index = (uint16_t)index;
    if (index >= UINT64_C(2) << (iommu->interrupt_table & VTD_IRTA_S)) {
        interrupt->fault = IOMMU_FAULT_INTERRUPT_INDEX;
        return false;
    }
    if (!irte_fetch(iommu, interrupt, irte))
        return false;
    interrupt->quiet = (irte->lo & VTD_FPD) != 0;
    if (source_allowed(*irte, interrupt->requester_id))
        return true;
    interrupt->fault = IOMMU_FAULT_INTERRUPT_SOURCE;
    return false;
}

static bool blocked(struct iommu *iommu, const struct interrupt *interrupt)
{
    iommu->stats.faults++;
    iommu->stats.interrupts_blocked++;
    if (!interrupt->quiet)
        iommu_fault_record(iommu, interrupt->requester_id,
                           (uint64_t)interrupt->index << VTD_FRCD_INDEX_LSB, false,
                           interrupt->fault);
    return false;
}

bool iommu_remap_interrupt(struct iommu *iommu, uint16_t requester_id, uint64_t address,
                           uint32_t data, uint32_t *destination, uint8_t *vector)
{
    struct interrupt interrupt = { .requester_id = requester_id };
    uint32_t status = iommu->reg[VTD_GSTS / 4];
    bool remapping = (status & VTD_GCMD_IRE) != 0;
    bool extended = (iommu->interrupt_table & VTD_IRTA_EIME) != 0;
    if (remapping && (address & VTD_MSI_REMAPPABLE) != 0) {
        struct vtd_entry128 irte;
        if (!remap(iommu, &interrupt, address, data, &irte))
            return blocked(iommu, &interrupt);
        *destination = extended ? (uint32_t)(irte.lo >> VTD_IRTE_DST_LSB)
                                : (uint32_t)(irte.lo >> VTD_IRTE_DST8_LSB & 0xff);
        *vector = (uint8_t)(irte.lo >> VTD_IRTE_V_LSB);
    } else {
        if (remapping && (extended || (status & VTD_GCMD_CFI) == 0)) {
            interrupt.fault = IOMMU_FAULT_INTERRUPT_COMPATIBILITY;
            return blocked(iommu, &interrupt);
        }
        *destination = (uint32_t)vtd_get(address, 19, VTD_MSI_DST8_LSB);
        *vector = (uint8_t)data;
    }
    iommu->stats.interrupts++;
    return true;
}
