/* Hints to the machine that runs the simulation; nothing simulated changes. */
#include "models/numa/numa_internal.h"

/* Inlined, so that a known cache is one of constants. */
static inline __attribute__((always_inline)) void prefetch_rows_of(const struct cache *llc,
                                                                   uint64_t line, uint64_t last)
{
    const uint32_t block_mask = SIM_MIN(CACHE_FOLD_LINES, llc->sets) - 1;
    const char *row = (const char *)cache_place(llc, line).row;

    for (;;) {
        cache_prefetch_at(row, llc->row_bytes);
        if (line++ == last)
            return;
        /* Lines of a block have rows in a row. */
        row = (line & block_mask) == 0 ? (const char *)cache_place(llc, line).row
                                       : row + llc->row_bytes;
    }
}

static void prefetch_rows(const struct numa *numa, unsigned socket, uint64_t line, uint64_t last)
{
    const struct cache *llc = &numa->socket[socket].llc, *filter = &numa->socket[socket].filter;

    if (SIM_LIKELY(numa->llc_fast)) {
        const struct cache known = llc_fast(llc);
        prefetch_rows_of(&known, line, last);
        return;
    }
    if (llc->row != NULL)
        prefetch_rows_of(llc, line, last);
    if (filter->row != NULL)
        prefetch_rows_of(filter, line, last);
}

void agent_prefetch(const struct numa *numa, unsigned socket, uint64_t line)
{
    const unsigned home = home_of(numa, line);

    prefetch_rows(numa, socket, line, line);
    if (home != socket && home < numa->sockets)
        prefetch_rows(numa, home, line, line);
}

/* The rows of the L2s that have the lines, which a snoop will look at. */
static void prefetch_present(const struct numa *numa, uint64_t first, uint64_t last)
{
    for (uint64_t line = first; line <= last; line++)
        for (uint32_t g = 0; g < numa->sockets * numa->groups_per_socket; g++)
            if (((unsigned)numa->present[line] >> g & 1u) != 0)
                cache_prefetch_at(cache_place(&numa->core_group[g].l2, line).row, HOST_LINE_BYTES);
}

void numa_prefetch(const struct numa *numa, unsigned socket, struct hpa hpa, unsigned bytes)
{
    const uint64_t line = hpa.v >> LINE_LOG2, last = (hpa.v + bytes - 1) >> LINE_LOG2;
    const unsigned home = home_of(numa, line);

    if (last >= numa_lines(numa)) /* no memory: another device, or nothing */
        return;
    if (numa->present != NULL)
        prefetch_present(numa, line, last);
    prefetch_rows(numa, socket, line, last);
    /* Another socket's memory is also looked up there, unless the device's LLC owns the line. */
    if (home != socket && home < numa->sockets)
        prefetch_rows(numa, home, line, last);
}

void numa_prefetch_load(const struct numa *numa, unsigned core, struct hpa hpa)
{
    const struct core_group *c = &numa->core_group[core_group_of(numa, core)];
    const struct cache *llc = &numa->socket[c->socket].llc;
    const uint64_t line = hpa.v >> LINE_LOG2;
    const unsigned home = home_of(numa, line);

    if (line >= numa_lines(numa))
        return;
    const struct cache_place p2 = cache_place(&c->l2, line);
    cache_prefetch_at(cache_place(l1_of_core(numa, core), line).row, HOST_LINE_BYTES);
    cache_prefetch_at(p2.row, HOST_LINE_BYTES);
    if (c->llc_at != NULL)
        cache_prefetch_at(&c->llc_at[p2.index * FAST_PRIVATE_WAYS], HOST_LINE_BYTES);
    if (llc->row == NULL)
        return;
    cache_prefetch_at(cache_place(llc, line).row, llc->row_bytes);
    if (numa->socket[home].directory.block != NULL)
        directory_prefetch(&numa->socket[home].directory, home_line(numa, line));
    if (home != c->socket)
        cache_prefetch_at(cache_place(&numa->socket[home].llc, line).row, llc->row_bytes);
}
