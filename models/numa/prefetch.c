/* Hints to the machine that runs the simulation; nothing simulated changes. */
#include "models/numa/numa_internal.h"

#define HOST_LINE_WORDS 16u

void numa_prefetch(const struct numa *numa, unsigned socket, struct hpa hpa, unsigned bytes)
{
    const struct cache *llc = &numa->socket[socket].llc;
    const uint32_t words = llc->row_words;
    const uint32_t block_mask = SIM_MIN(CACHE_FOLD_LINES, llc->sets) - 1;
    uint64_t line = hpa.v >> LINE_LOG2;
    const uint64_t last = (hpa.v + bytes - 1) >> LINE_LOG2;

    if (llc->row == NULL)
        return;
    const uint32_t *row = cache_place(llc, line).row;
    for (;;) {
        for (uint32_t word = 0; word < words; word += HOST_LINE_WORDS)
            __builtin_prefetch(row + word, 1);
        if (line++ == last)
            return;
        /* Lines of a block have rows in a row. */
        row = (line & block_mask) == 0 ? cache_place(llc, line).row : row + llc->row_words;
    }
}

void numa_prefetch_core(const struct numa *numa, unsigned core, struct hpa hpa)
{
    const uint64_t line = hpa.v >> LINE_LOG2;
    const struct cluster *c = &numa->cluster[cluster_of_core(numa, core)];
    const struct cache *llc = &numa->socket[c->socket].llc;
    const struct cache_place p = cache_place(&c->l2, line);
    const uint32_t old = c->l2.all_ways & ~*cache_used(&c->l2, p);

    if (llc->row == NULL)
        return;
    cache_prefetch(llc, line);
    if (old == 0)
        return;
    const int way = __builtin_ctz(old);
    if (line_state(*cache_state(&c->l2, p, way)) == LINE_M)
        cache_prefetch(llc, cache_line_in(&c->l2, p, way));
}
