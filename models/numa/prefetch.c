/* Hints to the machine that runs the simulation; nothing simulated changes. */
#include "models/numa/numa_internal.h"

void numa_prefetch(const struct numa *numa, unsigned socket, struct hpa hpa, unsigned bytes)
{
    const struct cache *llc = &numa->socket[socket].llc;
    const uint64_t last = (hpa.v + bytes - 1) >> LINE_LOG2;

    for (uint64_t line = hpa.v >> LINE_LOG2; llc->row != NULL && line <= last; line++)
        cache_prefetch(llc, line);
}
