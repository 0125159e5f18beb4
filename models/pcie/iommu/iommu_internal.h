/* What the files of the IOMMU model share; for models/pcie/iommu/ alone. */
#ifndef MODELS_PCIE_IOMMU_IOMMU_INTERNAL_H
#define MODELS_PCIE_IOMMU_IOMMU_INTERNAL_H

#include "hw/vtd_regs.h"
#include "models/pcie/iommu/iommu.h"

/* ---- Set-associative caches: true LRU in a set ----------------------------------------------- */

/* What a key stands for is in its top bits; 0 marks an empty way. */
#define IOMMU_KIND_LSB 61
enum { IOMMU_KIND_EMPTY, IOMMU_KIND_4K, IOMMU_KIND_2M, IOMMU_KIND_1G, N_IOMMU_KINDS };
#define IOMMU_KIND_ANY IOMMU_KIND_4K /* caches that hold one kind only */

struct iommu_entry {
    uint64_t value, aux;    /* meaning by cache, below */
    sim_time valid_from_ps; /* installed when its walk was reserved, there from this time on */
};

struct iommu_cache {
    uint32_t n_sets, n_ways;
    uint32_t n_kind[N_IOMMU_KINDS]; /* ways that hold each kind */
    uint32_t guess_mask;
    uint64_t clock;       /* counts uses, for LRU */
    uint64_t *key, *used; /* [set * n_ways + way] */
    struct iommu_entry *entry;
    uint32_t *guess; /* by hash: where the key was last; spares the host the search of the set */
};

void iommu_cache_init(struct iommu_cache *cache, uint32_t entries, uint32_t ways);
void iommu_cache_release(struct iommu_cache *cache);
/* The entry for key, which takes the place of the least recently used one of its set if it is not
 * there yet; *fresh tells. NULL if the cache has no entries. */
struct iommu_entry *iommu_cache_insert(struct iommu_cache *cache, uint64_t key, bool *fresh);
/* Drops every entry for which (key ^ match) & mask is 0. */
void iommu_cache_drop(struct iommu_cache *cache, uint64_t match, uint64_t mask);
void iommu_cache_drop_way(struct iommu_cache *cache, uint32_t way_idx);

/* The finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014; constants by Stafford): a general
 * mixer, after which any bits serve as an index. */
static inline uint64_t iommu_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint32_t iommu_cache_set(const struct iommu_cache *cache, uint64_t mixed)
{
    return (uint32_t)(((mixed >> 32) * cache->n_sets) >> 32);
}

/* The way's index, or the number of all if key is not there. Changes nothing that counts. */
uint32_t iommu_cache_search(struct iommu_cache *cache, uint64_t key, uint64_t mixed);

/* NULL, or the entry, which becomes the most recently used. */
static inline struct iommu_entry *iommu_cache_find(struct iommu_cache *cache, uint64_t key)
{
    if (SIM_UNLIKELY(cache->n_sets == 0))
        return NULL;
    uint64_t mixed = iommu_mix(key);
    uint32_t way_idx = cache->guess[mixed & cache->guess_mask];
    if (SIM_UNLIKELY(cache->key[way_idx] != key)) {
        way_idx = iommu_cache_search(cache, key, mixed);
        if (way_idx == cache->n_sets * cache->n_ways)
            return NULL;
    }
    cache->used[way_idx] = ++cache->clock;
    return &cache->entry[way_idx];
}

/* ---- Keys ------------------------------------------------------------------------------------ */
#define IOMMU_KEY_DID_LSB 45 /* below it: the page number, 57 - 12 bits at most */
#define IOMMU_KEY_DID     VTD_BITS(60, IOMMU_KEY_DID_LSB)
#define IOMMU_KEY_PAGE    VTD_BITS(IOMMU_KEY_DID_LSB - 1, 0)

/* IOTLB and paging-structure caches: tagged with the domain, so that devices of a domain share. */
static inline uint64_t iommu_page_key(unsigned kind, uint16_t domain_id, uint64_t page)
{
    return (uint64_t)kind << IOMMU_KIND_LSB | (uint64_t)domain_id << IOMMU_KEY_DID_LSB | page;
}
/* Context cache (requester ID) and interrupt entry cache (index). */
static inline uint64_t iommu_plain_key(uint16_t value)
{
    return (uint64_t)IOMMU_KIND_ANY << IOMMU_KIND_LSB | value;
}

/* ---- The instance ---------------------------------------------------------------------------- */
#define IOMMU_IRTE_CACHE_ENTRIES 64
#define IOMMU_IRTE_CACHE_WAYS    8
#define IOMMU_WALKERS_MAX        64

struct iommu_stats {
    uint64_t requests, iotlb_hits, hits_under_miss, iotlb_misses, pass_through;
    uint64_t context_misses, pde_hits, pdpe_hits, walk_reads;
    uint64_t faults, faults_lost, invalidations;
    uint64_t interrupts, interrupts_blocked;
    struct stat_mean walk_ps, walker_wait_ps, invalidation_ps;
};

struct iommu {
    struct sim *sim;
    const char *name;
    struct iommu_params params;
    struct iommu_memory memory;
    bool translating;                     /* enabled and GSTS.TES */
    uint64_t root_table, interrupt_table; /* RTADDR and IRTA, as latched by SRTP and SIRTP */
    uint32_t fault_idx;                   /* where the next fault is recorded */
    struct iommu_cache context;           /* value, aux: the context entry */
    struct iommu_cache iotlb; /* value: page | R, W; aux: mask of the offset in the page */
    struct iommu_cache pde;   /* value: last-level table | R, W of all levels above */
    struct iommu_cache pdpe;  /* value: directory table | R, W of all levels above */
    struct iommu_cache irte;  /* value, aux: the entry */
    struct iommu_stats stats;
    sim_time walker_free_ps[IOMMU_WALKERS_MAX];
    sim_time walk_next_ps;  /* no walk starts before */
    sim_time queue_free_ps; /* the invalidation queue has done what was submitted */
    uint32_t reg[VTD_WINDOW_BYTES / 4];
};

/* One request on its way; time_ps is what is known of done_ps. */
struct iommu_request {
    uint64_t iova;
    sim_time time_ps;
    uint64_t hpa;
    uint32_t bytes;
    uint16_t requester_id;
    bool write;
    bool quiet; /* its context entry asks for no fault record */
    enum iommu_fault fault;
};

static inline uint16_t iommu_context_domain(const struct iommu_entry *context)
{
    return (uint16_t)(context->aux >> VTD_CONTEXT_DID_LSB);
}
static inline unsigned iommu_context_levels(const struct iommu_entry *context)
{
    return (unsigned)(context->aux & 7) + 2;
}
static inline unsigned iommu_context_type(const struct iommu_entry *context)
{
    return (unsigned)(context->value >> VTD_CONTEXT_TT_LSB) & 3;
}

/* iommu.c: what context entry and IOTLB say. True: the request is settled (translated, passed or at
 * fault); false: the tables must be walked. */
bool iommu_settle(struct iommu *iommu, struct iommu_request *request,
                  const struct iommu_entry *context);
/* R and W are both of VTD_PTE_RW; sets the fault. */
bool iommu_check_permission(struct iommu_request *request, uint64_t permissions);

/* iommu_trace.c: writes down a followed request and the tables' entries for it; before, after: what
 * the statistics said. */
void iommu_trace(const struct iommu *iommu, const struct sim_stamp *stamp,
                 const struct iommu_request *request, const struct iommu_stats *before,
                 sim_time at_ps);

/* iommu_walk.c: takes a walker; context is NULL if it is not cached. */
void iommu_walk(struct iommu *iommu, struct iommu_request *request,
                const struct iommu_entry *context);
bool iommu_readable(const struct iommu *iommu, uint64_t hpa, unsigned bytes);
struct vtd_entry128 iommu_read128(const struct iommu *iommu, uint64_t hpa);

/* iommu_regs.c */
void iommu_regs_reset(struct iommu *iommu);
/* info: the lower quadword of the record. */
void iommu_fault_record(struct iommu *iommu, uint16_t requester_id, uint64_t info, bool read,
                        enum iommu_fault fault);
uint64_t iommu_reg64(const struct iommu *iommu, unsigned offset);
/* An event's interrupt (FECTL or IECTL): sent, or left pending while masked. */
void iommu_event_raise(struct iommu *iommu, unsigned control_offset);

/* iommu_invalidate.c */
void iommu_queue_run(struct iommu *iommu);
void iommu_invalidate_context(struct iommu *iommu, unsigned granularity, uint16_t domain_id,
                              uint16_t requester_id, unsigned function_mask);
/* Pages: 2^mask_log2 pages from address on; leaf_only keeps the paging-structure caches. */
void iommu_invalidate_iotlb(struct iommu *iommu, unsigned granularity, uint16_t domain_id,
                            uint64_t address, unsigned mask_log2, bool leaf_only);
#define IOMMU_MAMV 18u /* the largest mask_log2: 1 GiB */

#endif
