/* Hints to the machine that runs the simulation; nothing simulated changes. */
#include "models/numa/numa_internal.h"

/* A row of tags, recency and states of a 20-way LLC spans three of the host's cache lines. */
#define HOST_LINE_WORDS 16u

void numa_prefetch(const struct numa *numa, unsigned socket, struct hpa hpa, unsigned bytes)
{
    const struct cache *llc = &numa->socket[socket].llc;
    uint64_t line = hpa.v >> LINE_LOG2;
    const uint64_t last = (hpa.v + bytes - 1) >> LINE_LOG2;

    for (; llc->row != NULL && line <= last; line++) {
        const uint32_t *row = cache_place(llc, line).row;

        for (uint32_t word = 0; word < llc->row_words; word += HOST_LINE_WORDS)
            __builtin_prefetch(row + word, 1);
    }
}
