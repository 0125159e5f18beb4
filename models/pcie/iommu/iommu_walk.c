/*
 * Models: the page walks: at most `walkers` at a time, begun walk_interval after one another; the
 *     request that a walk was for goes on through the same unit, a read in pieces, and holds the
 *     next walk up meanwhile. Context cache and paging-structure caches shorten a walk; what it
 *     reads and may cache, it caches. Entries are checked in the order in which they are read.
 * Does not model: setting accessed and dirty bits (an option of first-level tables), speculative
 *     walks, sharing of single entry reads between walks under way.
 * Timing: start = max(at_ps + lookup_ps, first walker free, next) next = start + walk_interval_ps +
 *         for each piece of a read: read_piece_ps (taken when the
 *                 walk starts, not when it ends)
 *         end   = start + walk_fixed_ps + for each entry read: walk_step_ps + memory access
 *     entries: root and context entry unless the context is cached, then one per level from the
 *     lowest table that the caches know by then down to the leaf.
 * Sources: VT-d 3.0, 3.4 to 3.7, 6.2 (caches), 7.1 (faults), chapter 9 (entries); rates: pcie-bench
 *     (docs/sources.md#pcie-bench).
 */
#include "models/pcie/iommu/iommu_internal.h"

bool iommu_readable(const struct iommu *iommu, uint64_t hpa, unsigned bytes)
{
    const struct iommu_memory *memory = &iommu->memory;
    return memory->readable == NULL ||
           memory->readable(memory->context, (struct hpa){ hpa }, bytes);
}

struct vtd_entry128 iommu_read128(const struct iommu *iommu, uint64_t hpa)
{
    const struct iommu_memory *memory = &iommu->memory;
    return (struct vtd_entry128){ memory->read64(memory->context, (struct hpa){ hpa }),
                                  memory->read64(memory->context, (struct hpa){ hpa + 8 }) };
}

/* The time of one entry read; false (and the fault): there is no memory. */
static bool entry_fetch(struct iommu *iommu, struct iommu_request *request, uint64_t hpa,
                        unsigned bytes, enum iommu_fault error)
{
    request->time_ps += iommu->params.walk_step_ps;
    if (!iommu_readable(iommu, hpa, bytes)) {
        request->fault = error;
        return false;
    }
    iommu->stats.walk_reads++;
    request->time_ps = iommu->memory.read_done_ps(iommu->memory.context, (struct hpa){ hpa },
                                                  request->time_ps, NULL);
    return true;
}

static enum iommu_fault context_check(const struct iommu *iommu, struct vtd_entry128 entry)
{
    if ((entry.lo & VTD_P) == 0)
        return IOMMU_FAULT_CONTEXT_NOT_PRESENT;
    if ((entry.lo & VTD_CONTEXT_RSVD_LO) != 0 || (entry.hi & VTD_CONTEXT_RSVD_HI) != 0)
        return IOMMU_FAULT_CONTEXT_RESERVED;
    uint64_t type = entry.lo >> VTD_CONTEXT_TT_LSB & 3;
    uint64_t width = entry.hi & 7;
    if (type != VTD_TT_MULTI_LEVEL && type != VTD_TT_PASS_THROUGH)
        return IOMMU_FAULT_CONTEXT_INVALID;
    if (width < VTD_AW_OF_LEVELS(3) || width > VTD_AW_OF_LEVELS(iommu->params.levels))
        return IOMMU_FAULT_CONTEXT_INVALID;
    return IOMMU_OK;
}

/* Reads root and context entry; false: fault. Only what is present and sound is cached. */
static bool context_fetch(struct iommu *iommu, struct iommu_request *request,
                          struct iommu_entry *context)
{
    iommu->stats.context_misses++;
    uint64_t at = iommu->root_table + 16u * (request->requester_id >> 8);
    if (!entry_fetch(iommu, request, at, 16, IOMMU_FAULT_ROOT_ACCESS))
        return false;
    struct vtd_entry128 root = iommu_read128(iommu, at);
    if ((root.lo & VTD_P) == 0)
        request->fault = IOMMU_FAULT_ROOT_NOT_PRESENT;
    else if ((root.lo & VTD_ROOT_RSVD_LO) != 0 || root.hi != 0)
        request->fault = IOMMU_FAULT_ROOT_RESERVED;
    if (request->fault != IOMMU_OK)
        return false;
    at = (root.lo & VTD_ROOT_TABLE) + 16u * (request->requester_id & 0xff);
    if (!entry_fetch(iommu, request, at, 16, IOMMU_FAULT_CONTEXT_ACCESS))
        return false;
    struct vtd_entry128 entry = iommu_read128(iommu, at);
    request->quiet = (entry.lo & VTD_FPD) != 0;
    request->fault = context_check(iommu, entry);
    if (request->fault != IOMMU_OK)
        return false;
    *context = (struct iommu_entry){ entry.lo, entry.hi, request->time_ps };
    bool fresh;
    struct iommu_entry *cached = iommu_cache_insert(&iommu->context,
                                                    iommu_plain_key(request->requester_id), &fresh);
    if (cached != NULL)
        *cached = *context;
    return true;
}

/* Remembers a table; of two walks under way, the first one's read makes it known. */
static void table_cache(struct iommu_cache *cache, uint64_t key, uint64_t value, sim_time at_ps)
{
    bool fresh;
    struct iommu_entry *entry = iommu_cache_insert(cache, key, &fresh);
    if (entry == NULL)
        return;
    entry->value = value;
    entry->valid_from_ps = fresh ? at_ps : SIM_MIN(at_ps, entry->valid_from_ps);
}

static const struct iommu_entry *table_find(struct iommu_cache *cache, uint64_t key, sim_time at_ps)
{
    const struct iommu_entry *entry = iommu_cache_find(cache, key);
    return entry != NULL && entry->valid_from_ps <= at_ps ? entry : NULL;
}

/* The lowest table known: its level; *table gets its address and the permissions above it. */
static unsigned walk_begin(struct iommu *iommu, const struct iommu_request *request,
                           const struct iommu_entry *context, uint64_t *table)
{
    uint16_t domain_id = iommu_context_domain(context);
    const struct iommu_entry *known =
        table_find(&iommu->pde, iommu_page_key(IOMMU_KIND_ANY, domain_id, request->iova >> 21),
                   request->time_ps);
    if (known != NULL) {
        iommu->stats.pde_hits++;
        *table = known->value;
        return 1;
    }
    known = table_find(&iommu->pdpe, iommu_page_key(IOMMU_KIND_ANY, domain_id, request->iova >> 30),
                       request->time_ps);
    if (known != NULL) {
        iommu->stats.pdpe_hits++;
        *table = known->value;
        return 2;
    }
    *table = (context->value & VTD_CONTEXT_TABLE) | VTD_PTE_RW;
    return iommu_context_levels(context);
}

static bool is_leaf(uint64_t entry, unsigned level)
{
    return level == 1 || (level <= 3 && (entry & VTD_PTE_PS) != 0);
}

static uint64_t reserved_bits(uint64_t entry, unsigned level)
{
    if (is_leaf(entry, level))
        return VTD_PTE_TM | (level > 1 ? VTD_BITS(VTD_SPAN_LOG2(level) - 1, 12) : 0);
    return level > 3 ? VTD_PTE_PS : 0;
}

/* From the lowest known table to the leaf, which goes to the IOTLB. */
static void tables_walk(struct iommu *iommu, struct iommu_request *request,
                        const struct iommu_entry *context)
{
    uint16_t domain_id = iommu_context_domain(context);
    uint64_t table, entry;
    unsigned level = walk_begin(iommu, request, context, &table);
    for (;; level--) {
        uint64_t index = request->iova >> VTD_SPAN_LOG2(level) & (VTD_ENTRIES - 1);
        uint64_t at = (table & VTD_PTE_ADDR) + 8 * index;
        if (!entry_fetch(iommu, request, at, 8, IOMMU_FAULT_TABLE_INVALID))
            return;
        entry = iommu->memory.read64(iommu->memory.context, (struct hpa){ at });
        uint64_t permissions = entry & table & VTD_PTE_RW;
        if ((entry & VTD_PTE_RW) != 0 && (entry & reserved_bits(entry, level)) != 0) {
            request->fault = IOMMU_FAULT_RESERVED_BIT;
            return;
        }
        if (!iommu_check_permission(request, permissions))
            return;
        table = (entry & VTD_PTE_ADDR) | permissions;
        if (is_leaf(entry, level))
            break;
        if (level == 2 || level == 3)
            table_cache(
                level == 2 ? &iommu->pde : &iommu->pdpe,
                iommu_page_key(IOMMU_KIND_ANY, domain_id, request->iova >> VTD_SPAN_LOG2(level)),
                table, request->time_ps);
    }
    uint64_t offset_mask = VTD_BITS(VTD_SPAN_LOG2(level) - 1, 0);
    request->hpa = (table & VTD_PTE_ADDR) | (request->iova & offset_mask);
    bool fresh;
    struct iommu_entry *cached = iommu_cache_insert(
        &iommu->iotlb, iommu_page_key(level, domain_id, request->iova >> VTD_SPAN_LOG2(level)),
        &fresh);
    if (cached != NULL)
        *cached = (struct iommu_entry){ table, offset_mask, request->time_ps };
}

/* For how long a walk for the request keeps others from starting. */
static sim_time walk_holds_ps(const struct iommu_params *params,
                              const struct iommu_request *request)
{
    const uint64_t last = request->iova + SIM_MAX(request->bytes, 1u) - 1;

    if (request->write)
        return params->walk_interval_ps;
    return params->walk_interval_ps +
           (last / params->read_piece_bytes - request->iova / params->read_piece_bytes + 1) *
               params->read_piece_ps;
}

void iommu_walk(struct iommu *iommu, struct iommu_request *request,
                const struct iommu_entry *context)
{
    sim_time *walker = iommu->walker_free_ps;
    for (uint32_t i = 1; i < iommu->params.walkers; i++)
        if (iommu->walker_free_ps[i] < *walker)
            walker = &iommu->walker_free_ps[i];
    sim_time start_ps = SIM_MAX(request->time_ps, SIM_MAX(*walker, iommu->walk_next_ps));
    iommu->walk_next_ps = start_ps + walk_holds_ps(&iommu->params, request);
    stat_mean_add(&iommu->stats.walker_wait_ps, (double)(start_ps - request->time_ps));
    request->time_ps = start_ps + iommu->params.walk_fixed_ps;

    struct iommu_entry fetched;
    bool settled = false;
    sim_time end_ps = request->time_ps;
    if (context == NULL) {
        context = &fetched;
        settled = !context_fetch(iommu, request, &fetched);
        end_ps = request->time_ps;
        /* Another device of the domain may have brought the page: then the walk ends here. */
        settled = settled || iommu_settle(iommu, request, context);
    }
    if (!settled) {
        iommu->stats.iotlb_misses++;
        tables_walk(iommu, request, context);
        end_ps = request->time_ps;
    }
    *walker = end_ps;
    stat_mean_add(&iommu->stats.walk_ps, (double)(end_ps - start_ps));
}
