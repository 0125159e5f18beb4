/*
 * Models: sets and ways, replacement by pseudo-LRU.
 * Does not model: one entry for a line on both buses (each bus has its own here), the look-up's
 *   time and rate.
 * Sources: docs/sources.md#fsb
 */
#include "models/numa/snoop_filter.h"

#define USUAL_WAYS 16u /* of Intel's 5000X, per bus */
#define USUAL_SETS 8192u

void snoop_filter_init(struct snoop_filter *f, uint64_t bytes, uint32_t ways, uint64_t lines)
{
    cache_init(&f->tags, 1, (uint32_t)(bytes / LINE_BYTES / ways), ways, lines, 0);
    f->usual = f->tags.ways == USUAL_WAYS && f->tags.sets == USUAL_SETS && f->tags.narrow;
}

void snoop_filter_release(struct snoop_filter *f)
{
    cache_release(&f->tags);
}

void snoop_filter_clear(struct snoop_filter *f)
{
    cache_clear(&f->tags);
}

/* The usual shape is one that the compiler knows. */
static inline __attribute__((always_inline)) struct cache tags_of(const struct snoop_filter *f)
{
    return cache_known_plain(&f->tags, USUAL_WAYS, USUAL_SETS, true);
}

void snoop_filter_prefetch(const struct snoop_filter *f, uint64_t line)
{
    cache_prefetch_at(cache_place(&f->tags, line).row, HOST_LINE_BYTES);
}

bool snoop_filter_has(const struct snoop_filter *f, uint64_t line)
{
    return cache_find(&f->tags, cache_place(&f->tags, line)) >= 0;
}

static inline __attribute__((always_inline)) uint64_t add(const struct cache *tags, uint64_t line)
{
    const struct cache_place p = cache_place(tags, line);
    int way = cache_find(tags, p);

    if (way >= 0) {
        cache_touch(tags, p, way);
        return SNOOP_FILTER_NONE;
    }
    way = cache_victim(p, tags->all_ways);
    const uint64_t victim = cache_holds(p, way) ? cache_line_in(tags, p, way) : SNOOP_FILTER_NONE;
    cache_fill(tags, p, way, LINE_S, 0);
    return victim;
}

uint64_t snoop_filter_add(struct snoop_filter *f, uint64_t line)
{
    if (SIM_LIKELY(f->usual)) {
        const struct cache tags = tags_of(f);
        return add(&tags, line);
    }
    return add(&f->tags, line);
}

void snoop_filter_remove(struct snoop_filter *f, uint64_t line)
{
    const struct cache_place p = cache_place(&f->tags, line);
    const int way = cache_find(&f->tags, p);

    if (way >= 0)
        cache_drop(p, way);
}
