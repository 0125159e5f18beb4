/* Hints to the machine that runs the simulation; nothing simulated changes. */
#include "models/numa/numa_internal.h"

static void prefetch_rows(const struct cache *llc, struct hpa hpa, unsigned bytes)
{
    const uint32_t block_mask = SIM_MIN(CACHE_FOLD_LINES, llc->sets) - 1;
    uint64_t line = hpa.v >> LINE_LOG2;
    const uint64_t last = (hpa.v + bytes - 1) >> LINE_LOG2;

    if (llc->row == NULL)
        return;
    const char *row = (const char *)cache_place(llc, line).row;
    for (;;) {
        for (uint32_t at = 0; at < llc->row_bytes; at += HOST_LINE_BYTES)
            __builtin_prefetch(row + at, 1);
        if (line++ == last)
            return;
        /* Lines of a block have rows in a row. */
        row = (line & block_mask) == 0 ? (const char *)cache_place(llc, line).row
                                       : row + llc->row_bytes;
    }
}

/* The rows of the L2s that have the lines, which a snoop will look at. */
static void prefetch_present(const struct numa *numa, struct hpa hpa, unsigned bytes)
{
    for (uint64_t line = hpa.v >> LINE_LOG2; line <= (hpa.v + bytes - 1) >> LINE_LOG2; line++)
        for (uint32_t g = 0; g < numa->sockets * numa->groups_per_socket; g++)
            if (((unsigned)numa->present[line] >> g & 1u) != 0)
                cache_prefetch_at(cache_place(&numa->core_group[g].l2, line).row, HOST_LINE_BYTES);
}

void numa_prefetch(const struct numa *numa, unsigned socket, struct hpa hpa, unsigned bytes)
{
    const unsigned home = home_of(numa, hpa.v >> LINE_LOG2);

    if ((hpa.v + bytes - 1) >> LINE_LOG2 >=
        numa_lines(numa)) /* no memory: another device, or nothing */
        return;
    if (numa->present != NULL)
        prefetch_present(numa, hpa, bytes);
    prefetch_rows(&numa->socket[socket].llc, hpa, bytes);
    /* Another socket's memory is also looked up there, unless the device's LLC owns the line. */
    if (home != socket && home < numa->sockets)
        prefetch_rows(&numa->socket[home].llc, hpa, bytes);
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
