/*
 * Models: DMA remapping in legacy mode: context cache, then IOTLB (4 KiB, 2 MiB and 1 GiB pages in
 *     one structure, tagged with the domain), then a page walk (iommu_walk.c); pass-through; faults
 *     with their records (iommu_regs.c). A request that reaches beyond its mappings gets nothing.
 * Does not model: scalable mode, first-level tables, device TLBs (ATS), page requests, posted
 *     interrupts, write buffers; contention for the look-up port.
 * Timing: by reservation, nothing is scheduled.
 *     look-up    t0 = at_ps + lookup_ps
 *     hit        done = t0
 *     under miss done = max(t0, end of the walk that fetches the entry)
 *     miss       done = end of the walk: iommu_walk.c
 *     Remapping off: done = at_ps. An entry is installed when its walk is reserved and carries the
 *     end of that walk; what it evicts is therefore gone a walk's time early.
 * Sources: VT-d 3.0, chapters 3, 6, 7; costs: pcie-bench (docs/models/iommu.md).
 */
#include "models/pcie/iommu/iommu_internal.h"
#include "models/pcie/link/tlp_trace.h"

#include <stdlib.h>

#define PARAM_IOMMU(KEY, TYPE, FIELD, DEF, LO, HI, PROV, SOURCE, HELP) \
    PARAM(KEY, TYPE, struct iommu_params, FIELD, DEF, LO, HI, PROV, SOURCE, HELP)
#define SRC_VTD   "docs/sources.md#vtd"
#define SRC_BENCH "docs/sources.md#pcie-bench"

const struct param_desc iommu_params_table[] = {
    PARAM_IOMMU("enabled", PARAM_BOOL, enabled, 0, 0, 1, PROV_NONE, NULL, "there is an IOMMU"),
    PARAM_IOMMU("levels", PARAM_U32, levels, 4, 3, 5, PROV_DATASHEET, SRC_VTD,
                "most levels of page tables: 3, 4, 5 translate 39, 48, 57 bits"),
    PARAM_IOMMU("iotlb_entries", PARAM_U32, iotlb_entries, 128, 0, 65536, PROV_ESTIMATE, SRC_BENCH,
                "entries of the IOTLB, pages of all sizes; 0: none"),
    PARAM_IOMMU("iotlb_ways", PARAM_U32, iotlb_ways, 16, 1, 65536, PROV_ESTIMATE, SRC_BENCH,
                "associativity of the IOTLB; sets are chosen by a hash"),
    PARAM_IOMMU("context_entries", PARAM_U32, context_entries, 64, 0, 65536, PROV_ESTIMATE, SRC_VTD,
                "entries of the context cache; 0: none"),
    PARAM_IOMMU("context_ways", PARAM_U32, context_ways, 8, 1, 65536, PROV_ESTIMATE, SRC_VTD,
                "associativity of the context cache"),
    PARAM_IOMMU("pde_entries", PARAM_U32, pde_entries, 64, 0, 65536, PROV_ESTIMATE, SRC_VTD,
                "entries of the cache of last-level tables, 2 MiB each; 0: none"),
    PARAM_IOMMU("pde_ways", PARAM_U32, pde_ways, 16, 1, 65536, PROV_ESTIMATE, SRC_VTD,
                "associativity of the cache of last-level tables"),
    PARAM_IOMMU("pdpe_entries", PARAM_U32, pdpe_entries, 16, 0, 65536, PROV_ESTIMATE, SRC_VTD,
                "entries of the cache of directory tables, 1 GiB each; 0: none"),
    PARAM_IOMMU("pdpe_ways", PARAM_U32, pdpe_ways, 16, 1, 65536, PROV_ESTIMATE, SRC_VTD,
                "associativity of the cache of directory tables"),
    PARAM_IOMMU("walkers", PARAM_U32, walkers, 8, 1, IOMMU_WALKERS_MAX, PROV_ESTIMATE, SRC_BENCH,
                "page walks at a time: seven at least, 290 ns each and one every 44"),
    PARAM_IOMMU("walk_interval_ns", PARAM_TIME, walk_interval_ps, 44, 0, 10000, PROV_PUBLISHED,
                SRC_BENCH, "between the starts of two walks: writes of 128 B that all miss"),
    PARAM_IOMMU("read_piece_bytes", PARAM_U32, read_piece_bytes, 128, 64, 4096, PROV_PUBLISHED,
                SRC_BENCH, "a read that missed goes on in pieces that end at multiples of this"),
    PARAM_IOMMU("read_piece_ns", PARAM_TIME, read_piece_ps, 8, 0, 1000, PROV_PUBLISHED, SRC_BENCH,
                "for which each such piece holds the next walk up"),
    PARAM_IOMMU("lookup_ns", PARAM_TIME, lookup_ps, 2, 0, 1000, PROV_PUBLISHED, SRC_BENCH,
                "look-up of context cache and IOTLB, of every translated request"),
    PARAM_IOMMU("walk_step_ns", PARAM_TIME, walk_step_ps, 5, 0, 10000, PROV_ESTIMATE, SRC_BENCH,
                "per table entry that a walk reads, beside the memory access"),
    PARAM_IOMMU("walk_fixed_ns", PARAM_TIME, walk_fixed_ps, 170, 0, 100000, PROV_ESTIMATE,
                SRC_BENCH, "per walk: miss handling, arbitration, fill"),
    PARAM_IOMMU("invalidate_ns", PARAM_TIME, invalidate_ps, 500, 0, 100000, PROV_ESTIMATE,
                "docs/sources.md#iommu-software",
                "an invalidation, once its descriptor is there, until its wait writes the status"),
    { .type = PARAM_END },
};

#define STAT_IOMMU(NAME, KIND, FIELD, UNIT, SCALE, HELP) \
    STAT(NAME, KIND, struct iommu_stats, FIELD, UNIT, SCALE, HELP)

const struct stat_desc iommu_stats_table[] = {
    STAT_IOMMU("requests", STAT_COUNTER, requests, "1", 0, "requests while translation is on"),
    STAT_IOMMU("iotlb_hits", STAT_COUNTER, iotlb_hits, "1", 0, "found in the IOTLB"),
    STAT_IOMMU("iotlb_hits_under_miss", STAT_COUNTER, hits_under_miss, "1", 0,
               "joined a walk under way"),
    STAT_IOMMU("iotlb_misses", STAT_COUNTER, iotlb_misses, "1", 0, "page walks"),
    STAT_IOMMU("pass_through", STAT_COUNTER, pass_through, "1", 0, "passed by their context entry"),
    STAT_IOMMU("context_misses", STAT_COUNTER, context_misses, "1", 0,
               "walks that read root and context entry"),
    STAT_IOMMU("pde_hits", STAT_COUNTER, pde_hits, "1", 0, "walks that began at the last level"),
    STAT_IOMMU("pdpe_hits", STAT_COUNTER, pdpe_hits, "1", 0, "walks that began at a directory"),
    STAT_IOMMU("walk_reads", STAT_COUNTER, walk_reads, "1", 0, "entries read from memory"),
    STAT_IOMMU("walk_ns", STAT_MEAN, walk_ps, "ns", 0.001, "a walk, from walker taken to freed"),
    STAT_IOMMU("walker_wait_ns", STAT_MEAN, walker_wait_ps, "ns", 0.001, "wait for a walker"),
    STAT_IOMMU("faults", STAT_COUNTER, faults, "1", 0, "requests and interrupts refused"),
    STAT_IOMMU("faults_lost", STAT_COUNTER, faults_lost, "1", 0, "of these, not recorded"),
    STAT_IOMMU("invalidations", STAT_COUNTER, invalidations, "1", 0, "invalidation commands"),
    STAT_IOMMU("interrupts", STAT_COUNTER, interrupts, "1", 0, "interrupt messages let through"),
    STAT_IOMMU("interrupts_blocked", STAT_COUNTER, interrupts_blocked, "1", 0,
               "interrupt messages refused"),
    STAT_IOMMU("invalidation_ns", STAT_MEAN, invalidation_ps, "ns", 0.001,
               "tail written to status written, of what software waited for"),
    { .kind = STAT_END },
};

const char *iommu_params_error(const struct iommu_params *params)
{
    const uint32_t geometry[][2] = {
        { params->iotlb_entries, params->iotlb_ways },
        { params->context_entries, params->context_ways },
        { params->pde_entries, params->pde_ways },
        { params->pdpe_entries, params->pdpe_ways },
    };
    for (size_t i = 0; i < SIM_N_ELEMENTS(geometry); i++)
        if (geometry[i][0] != 0 && (geometry[i][1] == 0 || geometry[i][0] % geometry[i][1] != 0))
            return "the entries of a cache must be a multiple of its ways";
    if (params->levels < 3 || params->levels > 5)
        return "levels must be 3, 4 or 5";
    if (params->read_piece_bytes == 0 ||
        (params->read_piece_bytes & (params->read_piece_bytes - 1)) != 0)
        return "read_piece_bytes must be a power of two";
    if (params->walkers < 1 || params->walkers > IOMMU_WALKERS_MAX)
        return "walkers must be 1 to 64";
    return NULL;
}

struct iommu *iommu_new(struct sim *sim, const char *name, const struct iommu_params *params,
                        const struct iommu_memory *memory)
{
    const char *error = iommu_params_error(params);
    SIM_ASSERT(error == NULL, "%s: %s", name, error);
    struct iommu *iommu = sim_zalloc(1, sizeof(*iommu));
    iommu->sim = sim;
    iommu->name = name;
    iommu->params = *params;
    iommu->memory = *memory;
    iommu_cache_init(&iommu->iotlb, params->iotlb_entries, params->iotlb_ways);
    iommu_cache_init(&iommu->context, params->context_entries, params->context_ways);
    iommu_cache_init(&iommu->pde, params->pde_entries, params->pde_ways);
    iommu_cache_init(&iommu->pdpe, params->pdpe_entries, params->pdpe_ways);
    iommu_cache_init(&iommu->irte, IOMMU_IRTE_CACHE_ENTRIES, IOMMU_IRTE_CACHE_WAYS);
    stat_mean_init(&iommu->stats.walk_ps);
    stat_mean_init(&iommu->stats.walker_wait_ps);
    stat_mean_init(&iommu->stats.invalidation_ps);
    iommu_regs_reset(iommu);
    return iommu;
}

void iommu_free(struct iommu *iommu)
{
    iommu_cache_release(&iommu->iotlb);
    iommu_cache_release(&iommu->context);
    iommu_cache_release(&iommu->pde);
    iommu_cache_release(&iommu->pdpe);
    iommu_cache_release(&iommu->irte);
    free(iommu);
}

void *iommu_stats(struct iommu *iommu)
{
    return &iommu->stats;
}

/* By each page size of which there are entries. */
static inline struct iommu_entry *iotlb_find(struct iommu_cache *iotlb, uint16_t domain_id,
                                             uint64_t iova)
{
    for (unsigned kind = IOMMU_KIND_4K; kind < N_IOMMU_KINDS; kind++) {
        if (iotlb->n_kind[kind] == 0)
            continue;
        uint64_t key = iommu_page_key(kind, domain_id, iova >> VTD_SPAN_LOG2(kind));
        struct iommu_entry *entry = iommu_cache_find(iotlb, key);
        if (entry != NULL)
            return entry;
    }
    return NULL;
}
_Static_assert(IOMMU_KIND_4K == 1 && IOMMU_KIND_2M == 2 && IOMMU_KIND_1G == 3,
               "a kind is the level of the tables that hold such pages");

bool iommu_check_permission(struct iommu_request *request, uint64_t permissions)
{
    uint64_t needed = request->write ? VTD_PTE_W : VTD_PTE_R;
    if (SIM_LIKELY((permissions & needed) != 0))
        return true;
    request->fault = request->write ? IOMMU_FAULT_WRITE_DENIED : IOMMU_FAULT_READ_DENIED;
    return false;
}

bool iommu_settle(struct iommu *iommu, struct iommu_request *request,
                  const struct iommu_entry *context)
{
    request->time_ps = SIM_MAX(request->time_ps, context->valid_from_ps);
    request->quiet = (context->value & VTD_FPD) != 0;
    if (SIM_UNLIKELY(request->iova >> VTD_WIDTH_OF_LEVELS(iommu_context_levels(context)) != 0)) {
        request->fault = IOMMU_FAULT_ADDRESS_WIDTH;
        return true;
    }
    if (SIM_UNLIKELY(iommu_context_type(context) == VTD_TT_PASS_THROUGH)) {
        iommu->stats.pass_through++;
        request->hpa = request->iova;
        return true;
    }
    const struct iommu_entry *entry = iotlb_find(&iommu->iotlb, iommu_context_domain(context),
                                                 request->iova);
    if (entry == NULL)
        return false;
    if (SIM_LIKELY(entry->valid_from_ps <= request->time_ps)) {
        iommu->stats.iotlb_hits++;
    } else {
        iommu->stats.hits_under_miss++;
        request->time_ps = entry->valid_from_ps;
    }
    if (iommu_check_permission(request, entry->value))
        request->hpa = (entry->value & VTD_PTE_ADDR) | (request->iova & entry->aux);
    return true;
}

struct iommu_translation iommu_translate(struct iommu *iommu, uint16_t requester_id,
                                         struct iova iova, unsigned bytes, bool write,
                                         sim_time at_ps, struct sim_stamp *stamp)
{
    if (!iommu->translating) {
        if (stamp_traced(stamp))
            tlp_trace_add(stamp, TRACE_IOMMU, iommu->name, at_ps)->iommu.how = TRACE_IOMMU_OFF;
        return (struct iommu_translation){ .hpa = { iova.v }, .done_ps = at_ps };
    }
    iommu->stats.requests++;
    struct iommu_request request = {
        .iova = iova.v,
        .bytes = bytes,
        .time_ps = at_ps + iommu->params.lookup_ps,
        .requester_id = requester_id,
        .write = write,
    };
    struct iommu_stats before;
    if (stamp_traced(stamp))
        before = iommu->stats;
    const struct iommu_entry *context = iommu_cache_find(&iommu->context,
                                                         iommu_plain_key(requester_id));
    if (context == NULL || SIM_UNLIKELY(!iommu_settle(iommu, &request, context)))
        iommu_walk(iommu, &request, context);
    if (SIM_UNLIKELY(request.fault != IOMMU_OK)) {
        iommu->stats.faults++;
        if (!request.quiet)
            iommu_fault_record(iommu, requester_id, iova.v & ~(PAGE_BYTES - 1), !write,
                               request.fault);
    }
    sim_stamp_mark(stamp, PART_IOMMU, request.time_ps);
    if (stamp_traced(stamp))
        iommu_trace(iommu, stamp, &request, &before, at_ps);
    return (struct iommu_translation){ .hpa = { request.hpa },
                                       .done_ps = request.time_ps,
                                       .fault = request.fault };
}
