/*
 * Models: the invalidation queue in memory, head following tail; context-cache, IOTLB, interrupt
 *     entry cache and wait descriptors; what each drops. A malformed descriptor stops the queue
 *     with IQE set until software clears it. Page-selective invalidation drops every entry that
 *     overlaps the range, superpages and (without the leaf-only hint) paging-structure entries too.
 * Does not model: device-TLB and PASID descriptors (no such caches), 256-bit descriptors. The queue
 *     is carried out when its tail is written; what that takes is known to whoever asks for it.
 * Timing: one after the other, start = max(tail written, queue free): the line with descriptor and
 *     wait is read, invalidate_ps, the status is written. The queue is free when that begins.
 * Sources: VT-d 3.0, 6.5 (invalidation), 10.4.21 to 10.4.25.
 */
#include "models/pcie/iommu/iommu_internal.h"

void iommu_invalidate_context(struct iommu *iommu, unsigned granularity, uint16_t domain_id,
                              uint16_t requester_id, unsigned function_mask)
{
    /* FM 0..3: none, function bit 2, bits 2:1, bits 2:0 are not compared. */
    static const uint16_t ignored[] = { 0, 4, 6, 7 };
    struct iommu_cache *cache = &iommu->context;
    iommu->stats.invalidations++;
    for (uint32_t i = 0; i < cache->n_sets * cache->n_ways; i++) {
        if (cache->key[i] == 0)
            continue;
        uint16_t difference = (uint16_t)((cache->key[i] ^ requester_id) & 0xffff);
        bool domain = iommu_context_domain(&cache->entry[i]) == domain_id;
        bool device = (difference & ~ignored[function_mask & 3]) == 0;
        if (granularity == VTD_GLOBAL || (domain && granularity == VTD_DOMAIN) ||
            (domain && device && granularity == VTD_SELECTIVE))
            iommu_cache_drop_way(cache, i);
    }
}

/* Entries of the domain that overlap [first, last]; span_log2[kind] is what an entry covers. */
static void pages_drop(struct iommu_cache *cache, const uint8_t *span_log2, uint16_t domain_id,
                       uint64_t first, uint64_t last)
{
    for (uint32_t i = 0; i < cache->n_sets * cache->n_ways; i++) {
        uint64_t key = cache->key[i];
        unsigned log2 = span_log2[key >> IOMMU_KIND_LSB];
        uint64_t page = key & IOMMU_KEY_PAGE;
        if (key != 0 && (key & IOMMU_KEY_DID) >> IOMMU_KEY_DID_LSB == domain_id &&
            page >= first >> log2 && page <= last >> log2)
            iommu_cache_drop_way(cache, i);
    }
}

void iommu_invalidate_iotlb(struct iommu *iommu, unsigned granularity, uint16_t domain_id,
                            uint64_t address, unsigned mask_log2, bool leaf_only)
{
    static const uint8_t span_pages[N_IOMMU_KINDS] = { 12, 12, 21, 30 };
    static const uint8_t span_pde[N_IOMMU_KINDS] = { 21, 21, 21, 21 };
    static const uint8_t span_pdpe[N_IOMMU_KINDS] = { 30, 30, 30, 30 };
    iommu->stats.invalidations++;
    uint64_t first = 0, last = UINT64_MAX, domain_mask = 0;
    if (granularity == VTD_SELECTIVE) {
        uint64_t offset_mask = (PAGE_BYTES << mask_log2) - 1;
        first = address & ~offset_mask;
        last = address | offset_mask;
        pages_drop(&iommu->iotlb, span_pages, domain_id, first, last);
        if (leaf_only)
            return;
        pages_drop(&iommu->pde, span_pde, domain_id, first, last);
        pages_drop(&iommu->pdpe, span_pdpe, domain_id, first, last);
        return;
    }
    if (granularity == VTD_DOMAIN)
        domain_mask = IOMMU_KEY_DID;
    uint64_t match = (uint64_t)domain_id << IOMMU_KEY_DID_LSB;
    iommu_cache_drop(&iommu->iotlb, match, domain_mask);
    iommu_cache_drop(&iommu->pde, match, domain_mask);
    iommu_cache_drop(&iommu->pdpe, match, domain_mask);
}

static bool context_descriptor(struct iommu *iommu, struct vtd_entry128 d)
{
    unsigned granularity = (unsigned)vtd_get(d.lo, 5, 4);
    if (granularity == 0)
        return false;
    iommu_invalidate_context(iommu, granularity, (uint16_t)(d.lo >> VTD_QI_DID_LSB),
                             (uint16_t)(d.lo >> VTD_QI_SID_LSB),
                             (unsigned)(d.lo >> VTD_QI_FM_LSB) & 3);
    return true;
}

static bool iotlb_descriptor(struct iommu *iommu, struct vtd_entry128 d)
{
    unsigned granularity = (unsigned)vtd_get(d.lo, 5, 4);
    unsigned mask_log2 = (unsigned)vtd_get(d.hi, 5, 0);
    if (granularity == 0 || (granularity == VTD_SELECTIVE && mask_log2 > IOMMU_MAMV))
        return false;
    iommu_invalidate_iotlb(iommu, granularity, (uint16_t)(d.lo >> VTD_QI_DID_LSB),
                           d.hi & VTD_BITS(63, 12), mask_log2, (d.hi & VTD_QI_IOTLB_IH) != 0);
    return true;
}

static bool interrupt_descriptor(struct iommu *iommu, struct vtd_entry128 d)
{
    iommu->stats.invalidations++;
    uint64_t mask_log2 = vtd_get(d.lo, 31, 27);
    uint64_t mask = 0;
    if ((d.lo & VTD_QI_IEC_G) != 0)
        mask = mask_log2 >= 16 ? 0 : (UINT64_C(0xffff) << mask_log2) & 0xffff;
    iommu_cache_drop(&iommu->irte, d.lo >> VTD_QI_IEC_IDX_LSB, mask);
    return true;
}

/* Everything before it is done by then, so that the fence flag asks for nothing more. */
static bool wait_descriptor(struct iommu *iommu, struct vtd_entry128 d)
{
    if ((d.lo & VTD_QI_WAIT_SW) != 0) {
        uint32_t status = (uint32_t)(d.lo >> VTD_QI_STATUS_LSB);
        uint64_t address = d.hi & VTD_BITS(63, 2);
        if (!iommu_readable(iommu, address, sizeof(status)))
            return false;
        iommu->memory.write(iommu->memory.context, (struct hpa){ address }, &status,
                            sizeof(status));
    }
    uint32_t *completion = &iommu->reg[VTD_ICS / 4];
    if ((d.lo & VTD_QI_WAIT_IF) != 0 && (*completion & VTD_ICS_IWC) == 0) {
        *completion |= VTD_ICS_IWC;
        iommu_event_raise(iommu, VTD_IECTL);
    }
    return true;
}

static bool descriptor_run(struct iommu *iommu, uint64_t at)
{
    if (!iommu_readable(iommu, at, VTD_QI_BYTES))
        return false;
    struct vtd_entry128 d = iommu_read128(iommu, at);
    switch (d.lo & (VTD_QI_TYPE | VTD_BITS(11, 9))) {
    case VTD_QI_CONTEXT: return context_descriptor(iommu, d);
    case VTD_QI_IOTLB: return iotlb_descriptor(iommu, d);
    case VTD_QI_IEC: return interrupt_descriptor(iommu, d);
    case VTD_QI_WAIT: return wait_descriptor(iommu, d);
    default: return false;
    }
}

static void queue_error(struct iommu *iommu)
{
    uint32_t *status = &iommu->reg[VTD_FSTS / 4];
    bool raised = (*status & ~VTD_FSTS_FRI) != 0;
    *status |= VTD_FSTS_IQE;
    if (!raised)
        iommu_event_raise(iommu, VTD_FECTL);
}

void iommu_queue_run(struct iommu *iommu)
{
    uint64_t address = iommu_reg64(iommu, VTD_IQA);
    uint64_t queue_bytes = PAGE_BYTES << (address & VTD_IQA_QS);
    uint32_t *head = &iommu->reg[VTD_IQH / 4];
    uint32_t tail = iommu->reg[VTD_IQT / 4];
    while ((iommu->reg[VTD_GSTS / 4] & VTD_GCMD_QIE) != 0 &&
           (iommu->reg[VTD_FSTS / 4] & VTD_FSTS_IQE) == 0 && *head != tail) {
        if (tail >= queue_bytes || !descriptor_run(iommu, (address & VTD_BITS(63, 12)) + *head)) {
            queue_error(iommu);
            return;
        }
        *head = (uint32_t)((*head + VTD_QI_BYTES) % queue_bytes);
    }
}

sim_time iommu_invalidated_ps(struct iommu *iommu, unsigned n, sim_time at_ps)
{
    const struct iommu_memory *memory = &iommu->memory;
    const uint64_t address = iommu_reg64(iommu, VTD_IQA), queue = address & VTD_BITS(63, 12);
    const uint64_t queue_bytes = PAGE_BYTES << (address & VTD_IQA_QS);
    const uint64_t pair_bytes = UINT64_C(2) * VTD_QI_BYTES;
    sim_time done_ps = at_ps;

    for (; n != 0; n--) {
        const uint64_t at = (iommu->reg[VTD_IQH / 4] + queue_bytes - n * pair_bytes) % queue_bytes;
        const uint64_t status = iommu_read128(iommu, queue + at + VTD_QI_BYTES).hi;

        done_ps = SIM_MAX(at_ps, iommu->queue_free_ps);
        done_ps = memory->read_done_ps(memory->context, (struct hpa){ queue + at }, done_ps, NULL);
        done_ps += iommu->params.invalidate_ps;
        iommu->queue_free_ps = done_ps;
        if (memory->write_done_ps != NULL)
            done_ps = memory->write_done_ps(memory->context, (struct hpa){ status }, done_ps);
        stat_mean_add(&iommu->stats.invalidation_ps, (double)(done_ps - at_ps));
    }
    return done_ps;
}
