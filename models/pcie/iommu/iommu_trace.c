/*
 * Records how a followed request was translated, and the table entry of every level for it, whether
 * the hardware read the entry or had it cached. These reads of memory take no time and count
 * nowhere.
 *
 * Sources: VT-d 3.0, chapter 9 (entries).
 */
#include "models/pcie/iommu/iommu_internal.h"
#include "models/pcie/link/tlp_trace.h"

static enum tlp_trace_iommu how(const struct iommu *iommu, const struct iommu_request *request,
                                const struct iommu_stats *before)
{
    const struct iommu_stats *after = &iommu->stats;

    if (request->fault != IOMMU_OK)
        return TRACE_IOMMU_FAULT;
    if (after->pass_through != before->pass_through)
        return TRACE_IOMMU_PASS;
    if (after->hits_under_miss != before->hits_under_miss)
        return TRACE_IOMMU_UNDER_MISS;
    return after->iotlb_hits != before->iotlb_hits ? TRACE_IOMMU_HIT : TRACE_IOMMU_WALK;
}

/* A present entry that leads to another table or, if it is a leaf, to the page. */
static bool is_leaf(uint64_t entry, unsigned level)
{
    return level == 1 || (level <= 3 && (entry & VTD_PTE_PS) != 0);
}

static void trace_levels(const struct iommu *iommu, const struct sim_stamp *stamp,
                         const struct iommu_request *request, struct vtd_entry128 context)
{
    const struct iommu_entry of = { context.lo, context.hi, 0 };
    uint64_t table = context.lo & VTD_CONTEXT_TABLE;

    for (unsigned level = iommu_context_levels(&of); level >= 1; level--) {
        uint64_t index = request->iova >> VTD_SPAN_LOG2(level) & (VTD_ENTRIES - 1);
        uint64_t at = table + 8 * index;
        if (!iommu_readable(iommu, at, 8))
            return;
        uint64_t entry = iommu->memory.read64(iommu->memory.context, (struct hpa){ at });
        bool leaf = is_leaf(entry, level);
        struct tlp_trace_record *record = tlp_trace_add(stamp, TRACE_IOMMU_LEVEL, iommu->name,
                                                        request->time_ps);
        record->level.at = at;
        record->level.entry = entry;
        record->level.level = (uint8_t)level;
        record->level.leaf = leaf;
        if (leaf || (entry & VTD_PTE_RW) == 0)
            return;
        table = entry & VTD_PTE_ADDR;
    }
}

void iommu_trace(const struct iommu *iommu, const struct sim_stamp *stamp,
                 const struct iommu_request *request, const struct iommu_stats *before,
                 sim_time at_ps)
{
    struct tlp_trace_record *record = tlp_trace_add(stamp, TRACE_IOMMU, iommu->name, at_ps);
    struct vtd_entry128 context = { 0, 0 };

    record->iommu.how = (uint8_t)how(iommu, request, before);
    record->iommu.fault = (uint8_t)request->fault;
    record->iommu.iova = request->iova;
    record->iommu.hpa = request->hpa;
    record->iommu.requester_id = request->requester_id;
    record->iommu.done_ps = request->time_ps;
    record->iommu.reads = (uint32_t)(iommu->stats.walk_reads - before->walk_reads);
    record->iommu.root_at = iommu->root_table + 16u * (request->requester_id >> 8);
    if (!iommu_readable(iommu, record->iommu.root_at, 16))
        return;
    record->iommu.root = iommu_read128(iommu, record->iommu.root_at).lo;
    if ((record->iommu.root & VTD_P) == 0)
        return;
    record->iommu.context_at = (record->iommu.root & VTD_ROOT_TABLE) +
                               16u * (request->requester_id & 0xff);
    if (iommu_readable(iommu, record->iommu.context_at, 16))
        context = iommu_read128(iommu, record->iommu.context_at);
    record->iommu.context_lo = context.lo;
    record->iommu.context_hi = context.hi;
    if ((context.lo & VTD_P) != 0 && record->iommu.how != TRACE_IOMMU_PASS)
        trace_levels(iommu, stamp, request, context);
}
