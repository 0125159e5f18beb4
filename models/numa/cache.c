#include "models/numa/cache.h"

#include <stdlib.h>
#include <string.h>

#include "sim/engine/zeroed.h"

#define SMALL_BYTES ((size_t)16 << 10)

static size_t bytes_of(const struct cache *c)
{
    return (size_t)c->slices * c->sets * c->row_bytes;
}

void cache_init(struct cache *c, uint32_t slices, uint32_t sets, uint32_t ways, uint64_t lines,
                uint32_t sharers)
{
    SIM_ASSERT(slices > 0 && ways > 0 && ways <= 32 && sets > 0 && (sets & (sets - 1)) == 0,
               "%u slices of %u sets of %u ways", slices, sets, ways);
    memset(c, 0, sizeof(*c));
    c->slices = slices;
    c->sets = sets;
    c->ways = ways;
    c->sets_log2 = (uint32_t)__builtin_ctz(sets);
    /* cache_place() adds what cache_fold() says before it divides. */
    const uint64_t top_tag = (lines / sets + CACHE_FOLD_MAX) / slices;
    c->narrow = ways <= CACHE_NARROW_WAYS && ways > CACHE_NARROW_WAYS / 2 &&
                top_tag < CACHE_NARROW_TAGS && sharers <= CACHE_NARROW_SHARERS;
    c->row_bytes = cache_head_bytes(ways, c->narrow);
    if (sharers > 0) {
        c->sharers_at = c->row_bytes;
        c->row_bytes += cache_sharers_bytes(ways, c->narrow);
    }
    c->slice_reciprocal = slices > 1 ? UINT64_MAX / slices + 1 : 0;
    c->all_ways = (uint32_t)((UINT64_C(1) << ways) - 1);
    cache_clear(c);
}

/* Rows of an L1 do not fill the pages that sim_zeroed_new() gives. All of them would begin there in
 * the same sets of the real machine's caches, and drive each other out. */
static bool is_small(const struct cache *c)
{
    return bytes_of(c) < SMALL_BYTES;
}

void cache_release(struct cache *c)
{
    if (is_small(c))
        free(c->row);
    else
        sim_zeroed_free(c->row, bytes_of(c));
    c->row = NULL;
}

void cache_clear(struct cache *c)
{
    cache_release(c);
    if (is_small(c)) {
        c->row = aligned_alloc(HOST_LINE_BYTES, bytes_of(c));
        if (c->row == NULL)
            sim_out_of_memory("%zu bytes of cache tags", bytes_of(c));
        memset(c->row, 0, bytes_of(c));
        return;
    }
    /* Fresh zero pages cost nothing until they are touched; clearing would touch them all. */
    c->row = sim_zeroed_new(bytes_of(c));
}

void cache_each(const struct cache *c, void *context,
                void (*fn)(void *context, uint64_t line, int way, uint32_t word))
{
    for (uint32_t i = 0; i < c->slices * c->sets; i++) {
        const struct cache_place p = { cache_row(c, i), 0, i };
        for (uint32_t valid = p.row->valid; valid != 0; valid &= valid - 1) {
            const int way = __builtin_ctz(valid);
            fn(context, cache_line_in(c, p, way), way, cache_word(c, p, way));
        }
    }
}
