#include "models/numa/cache.h"

#include <string.h>

#include "sim/zeroed.h"

static size_t bytes_of(const struct cache *c)
{
    return (size_t)c->slices * c->sets * c->row_words * sizeof(uint32_t);
}

void cache_init(struct cache *c, uint32_t slices, uint32_t sets, uint32_t ways)
{
    SIM_ASSERT(slices > 0 && ways > 0 && ways <= 32 && sets > 0 && (sets & (sets - 1)) == 0,
               "%u slices of %u sets of %u ways", slices, sets, ways);
    memset(c, 0, sizeof(*c));
    c->slices = slices;
    c->sets = sets;
    c->ways = ways;
    c->sets_log2 = (uint32_t)__builtin_ctz(sets);
    c->tag_words = (ways + 3u) & ~3u;
    c->row_words = cache_row_words(ways);
    c->slice_reciprocal = slices > 1 ? UINT64_MAX / slices + 1 : 0;
    c->all_ways = (uint32_t)((UINT64_C(1) << ways) - 1);
    cache_clear(c);
}

void cache_release(struct cache *c)
{
    sim_zeroed_free(c->row, bytes_of(c));
    c->row = NULL;
}

void cache_clear(struct cache *c)
{
    cache_release(c);
    /* Fresh zero pages cost nothing until they are touched; clearing would touch them all. */
    c->row = sim_zeroed_new(bytes_of(c));
}

uint64_t cache_line_at(const struct cache *c, const uint32_t *row, int way)
{
    const size_t index = (size_t)(row - c->row) / c->row_words;
    const struct cache_place p = { c->row + index * c->row_words, row[way], (uint32_t)index };

    return cache_line_in(c, p, way);
}

void cache_each(const struct cache *c, void *context,
                void (*fn)(void *context, uint64_t line, int way, uint32_t word))
{
    const size_t rows = (size_t)c->slices * c->sets;

    for (size_t i = 0; i < rows; i++) {
        const struct cache_place p = { c->row + i * c->row_words, 0, (uint32_t)i };
        for (int way = 0; way < (int)c->ways; way++)
            if (p.row[way] != 0)
                fn(context, cache_line_in(c, p, way), way, *cache_state(c, p, way));
    }
}
