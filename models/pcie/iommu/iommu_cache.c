/*
 * Models: the set-associative caches of the IOMMU. True LRU in a set; the set is a hash of the
 *     whole tag, since with sets by low page bits a buffer of exactly the cache's size would never
 *     miss and the next larger one almost always, which is not what is measured.
 * Does not model: ports, banks, parity.
 * Timing: an entry carries the time from which it is valid.
 * Sources: pcie-bench raw data (miss ratios over contiguous pages; docs/models/iommu.md).
 */
#include "models/pcie/iommu/iommu_internal.h"

#include <stdlib.h>

#define GUESSES_PER_ENTRY 8

static unsigned kind_of(uint64_t key)
{
    return (unsigned)(key >> IOMMU_KIND_LSB);
}

void iommu_cache_init(struct iommu_cache *cache, uint32_t entries, uint32_t ways)
{
    *cache = (struct iommu_cache){ .n_ways = entries == 0 ? 0 : ways };
    if (entries == 0)
        return;
    cache->n_sets = entries / ways;
    cache->n_kind[IOMMU_KIND_EMPTY] = entries;
    cache->key = sim_zalloc(entries, sizeof(*cache->key));
    cache->used = sim_zalloc(entries, sizeof(*cache->used));
    cache->entry = sim_zalloc(entries, sizeof(*cache->entry));
    uint32_t n_guesses = 1;
    while (n_guesses < GUESSES_PER_ENTRY * entries)
        n_guesses *= 2;
    cache->guess_mask = n_guesses - 1;
    cache->guess = sim_zalloc(n_guesses, sizeof(*cache->guess));
}

void iommu_cache_release(struct iommu_cache *cache)
{
    free(cache->key);
    free(cache->used);
    free(cache->entry);
    free(cache->guess);
    *cache = (struct iommu_cache){ 0 };
}

uint32_t iommu_cache_search(struct iommu_cache *cache, uint64_t key, uint64_t mixed)
{
    uint32_t first = iommu_cache_set(cache, mixed) * cache->n_ways;
    for (uint32_t i = first; i < first + cache->n_ways; i++)
        if (cache->key[i] == key) {
            cache->guess[mixed & cache->guess_mask] = i;
            return i;
        }
    return cache->n_sets * cache->n_ways;
}

struct iommu_entry *iommu_cache_insert(struct iommu_cache *cache, uint64_t key, bool *fresh)
{
    struct iommu_entry *entry = iommu_cache_find(cache, key);
    *fresh = entry == NULL;
    if (entry != NULL || cache->n_ways == 0)
        return entry;
    uint32_t victim = iommu_cache_set(cache, iommu_mix(key)) * cache->n_ways;
    for (uint32_t i = victim, end = victim + cache->n_ways; i < end; i++)
        if (cache->used[i] < cache->used[victim])
            victim = i;
    cache->n_kind[kind_of(cache->key[victim])]--;
    cache->n_kind[kind_of(key)]++;
    cache->key[victim] = key;
    cache->used[victim] = ++cache->clock;
    return &cache->entry[victim];
}

void iommu_cache_drop_way(struct iommu_cache *cache, uint32_t way_idx)
{
    cache->n_kind[kind_of(cache->key[way_idx])]--;
    cache->n_kind[IOMMU_KIND_EMPTY]++;
    cache->key[way_idx] = 0;
    cache->used[way_idx] = 0;
}

void iommu_cache_drop(struct iommu_cache *cache, uint64_t match, uint64_t mask)
{
    for (uint32_t i = 0; i < cache->n_sets * cache->n_ways; i++)
        if (((cache->key[i] ^ match) & mask) == 0)
            iommu_cache_drop_way(cache, i);
}
