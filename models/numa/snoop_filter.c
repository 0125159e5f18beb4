/*
 * Models: sets and ways, replacement by pseudo-LRU.
 * Does not model: one entry for a line on both buses (each bus has its own here), the look-up's
 *   time and rate.
 * Sources: docs/sources.md#fsb
 */
#include "models/numa/snoop_filter.h"

void snoop_filter_init(struct snoop_filter *f, uint64_t bytes, uint32_t ways, uint64_t lines)
{
    cache_init(&f->tags, 1, (uint32_t)(bytes / LINE_BYTES / ways), ways, lines, 0);
}

void snoop_filter_release(struct snoop_filter *f)
{
    cache_release(&f->tags);
}

void snoop_filter_clear(struct snoop_filter *f)
{
    cache_clear(&f->tags);
}

void snoop_filter_prefetch(const struct snoop_filter *f, uint64_t line)
{
    cache_prefetch_at(cache_place(&f->tags, line).row, HOST_LINE_BYTES);
}

bool snoop_filter_has(const struct snoop_filter *f, uint64_t line)
{
    return cache_find(&f->tags, cache_place(&f->tags, line)) >= 0;
}

uint64_t snoop_filter_add(struct snoop_filter *f, uint64_t line)
{
    const struct cache_place p = cache_place(&f->tags, line);
    int way = cache_find(&f->tags, p);

    if (way >= 0) {
        cache_touch(&f->tags, p, way);
        return SNOOP_FILTER_NONE;
    }
    way = cache_victim(p, f->tags.all_ways);
    const uint64_t victim = cache_holds(p, way) ? cache_line_in(&f->tags, p, way)
                                                : SNOOP_FILTER_NONE;
    cache_fill(&f->tags, p, way, LINE_S, 0);
    return victim;
}

void snoop_filter_remove(struct snoop_filter *f, uint64_t line)
{
    const struct cache_place p = cache_place(&f->tags, line);
    const int way = cache_find(&f->tags, p);

    if (way >= 0)
        cache_drop(p, way);
}
