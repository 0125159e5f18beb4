/* Hints to the machine that runs the simulation; nothing simulated changes. */
#include "models/numa/numa_internal.h"

#define HOST_LINE_WORDS 16u

void numa_prefetch(const struct numa *numa, unsigned socket, struct hpa hpa, unsigned bytes)
{
    const struct cache *llc = &numa->socket[socket].llc;
    /* Of the states, those of the devices' ways. */
    const uint32_t words = llc->tag_words + 2 + numa->params->cache->ddio_ways;
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
