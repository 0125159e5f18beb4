/*
 * The caches of the cores: L1D per core, L2 per core or shared by a few.
 *
 * Models      L1 and L2 with write-back and write-allocate; L2 holds what its L1s hold.
 * Does not    model instruction caches, prefetchers, non-inclusive L2 (Broadwell's is not strictly
 *   model     inclusive of L1), bank conflicts, the TLB.
 * Timing      L1 hit l1_hit_cycles; L2 hit l2_hit_cycles; a miss is known after l2_hit_cycles and
 *             is the coherence protocol's from there.
 * Sources     docs/sources.md#a1
 */
#include "models/numa/numa_internal.h"

#include <stdlib.h>

void cluster_init(struct numa *n, struct cluster *c)
{
    const struct numa_cache_params *p = n->params->cache;

    c->l1 = calloc(p->l2_cores, sizeof(*c->l1));
    SIM_ASSERT(c->l1 != NULL, "no memory for L1 caches");
    for (uint32_t i = 0; i < p->l2_cores; i++)
        cache_init(&c->l1[i], 1, (uint32_t)(p->l1_bytes / LINE_BYTES / p->l1_ways), p->l1_ways);
    cache_init(&c->l2, 1, (uint32_t)(p->l2_bytes / LINE_BYTES / p->l2_ways), p->l2_ways);
}

void cluster_release(struct numa *n, struct cluster *c)
{
    for (uint32_t i = 0; c->l1 != NULL && i < n->params->cache->l2_cores; i++)
        cache_release(&c->l1[i]);
    free(c->l1);
    cache_release(&c->l2);
}

void cluster_clear(struct numa *n, struct cluster *c)
{
    for (uint32_t i = 0; i < n->params->cache->l2_cores; i++)
        cache_clear(&c->l1[i]);
    cache_clear(&c->l2);
}

enum line_state cluster_peek(const struct numa *n, unsigned cluster, uint64_t line)
{
    const struct cache *l2 = &n->cluster[cluster].l2;
    const struct cache_place p = cache_place(l2, line);
    const int way = cache_find(l2, p);

    return way < 0 ? LINE_I : line_state(*cache_state(l2, p, way));
}

/* Drops the line from the L1s of a cluster but one (or all: except >= l2_cores). */
static void drop_from_l1(const struct numa *n, struct cluster *c, uint64_t line, unsigned except)
{
    for (uint32_t i = 0; i < 1u << n->l2_cores_log2; i++) {
        if (i == except)
            continue;
        const struct cache_place p = cache_place(&c->l1[i], line);
        const int way = cache_find(&c->l1[i], p);
        if (way >= 0)
            cache_drop(&c->l1[i], p, way);
    }
}

static void share_in_l1(const struct numa *n, struct cluster *c, uint64_t line)
{
    for (uint32_t i = 0; i < n->params->cache->l2_cores; i++) {
        const struct cache_place p = cache_place(&c->l1[i], line);
        const int way = cache_find(&c->l1[i], p);
        if (way >= 0)
            *cache_state(&c->l1[i], p, way) = line_word(LINE_S, 0);
    }
}

enum line_state cluster_downgrade(struct numa *n, unsigned cluster, uint64_t line)
{
    struct cluster *c = &n->cluster[cluster];
    const struct cache_place p = cache_place(&c->l2, line);
    const int way = cache_find(&c->l2, p);

    if (way < 0)
        return LINE_I;
    uint32_t *word = cache_state(&c->l2, p, way);
    const enum line_state was = line_state(*word);
    if (was == LINE_M)
        share_in_l1(n, c, line);
    *word = line_word(LINE_S, 0);
    return was;
}

enum line_state cluster_invalidate(struct numa *n, unsigned cluster, uint64_t line)
{
    struct cluster *c = &n->cluster[cluster];
    const struct cache_place p = cache_place(&c->l2, line);
    const int way = cache_find(&c->l2, p);

    if (way < 0)
        return LINE_I;
    const enum line_state was = line_state(*cache_state(&c->l2, p, way));
    drop_from_l1(n, c, line, UINT32_MAX);
    cache_drop(&c->l2, p, way);
    return was;
}

static void fill_l1(struct cache *l1, struct cache_place p, enum line_state state)
{
    /* The victim's state is in the L2 already (see the invariant of struct cluster). */
    cache_fill(l1, p, cache_victim(l1, p, l1->all_ways), line_word(state, 0));
}

/* Makes room for the line, which is not there; returns its way. */
static int fill_l2(struct numa *n, unsigned cluster, struct cache_place p, enum line_state state,
                   sim_time at_ps)
{
    struct cluster *c = &n->cluster[cluster];
    const int way = cache_victim(&c->l2, p, c->l2.all_ways);

    const bool full = p.row[way] != 0;
    const uint64_t victim = cache_line_in(&c->l2, p, way);
    const enum line_state was = line_state(*cache_state(&c->l2, p, way));

    cache_fill(&c->l2, p, way, line_word(state, 0));
    if (full) {
        drop_from_l1(n, c, victim, UINT32_MAX);
        if (was == LINE_M || !n->params->cache->inclusive)
            n->ops->writeback(n, cluster, victim, was == LINE_M, at_ps);
    }
    return way;
}

/* Asks the host for what the write-back of the line that is next to go will need. */
static void prefetch_victim(const struct numa *n, const struct cluster *c, struct cache_place p)
{
    const uint32_t old = c->l2.all_ways & ~*cache_used(&c->l2, p);

    if (old != 0 && n->socket[c->socket].llc.row != NULL) {
        const int way = __builtin_ctz(old);
        if (line_state(*cache_state(&c->l2, p, way)) == LINE_M)
            cache_prefetch(&n->socket[c->socket].llc, cache_line_in(&c->l2, p, way));
    }
}

/* The access missed the L1 (way1 < 0), or is a store to a line of it that is not M there. */
static struct numa_result miss_l1(struct numa *n, unsigned core, uint64_t line, bool store,
                                  struct cache_place p1, int way1, sim_time at_ps,
                                  struct sim_stamp *stamp)
{
    const unsigned cluster = cluster_of_core(n, core);
    struct cluster *c = &n->cluster[cluster];
    struct cache *l1 = l1_of_core(n, core);
    const struct cache_place p2 = cache_place(&c->l2, line);
    struct numa_result r = { at_ps + n->l2_ps, NUMA_L2 };
    enum line_state now = LINE_I;

    int way2 = cache_find(&c->l2, p2);
    if (way2 >= 0)
        now = line_state(*cache_state(&c->l2, p2, way2));
    sim_stamp_mark(stamp, PART_CORE, r.done_ps);
    if (now == LINE_I || (store && now == LINE_S)) {
        if (n->socket[c->socket].llc.row != NULL)
            cache_prefetch(&n->socket[c->socket].llc, line);
        if (way2 < 0)
            prefetch_victim(n, c, p2);
        /* May take other lines from our caches, but not this one. */
        now = n->ops->fetch(n, core, line, store, r.done_ps, stamp, &r);
        if (way2 < 0)
            way2 = fill_l2(n, cluster, p2, now, r.done_ps);
    }
    if (store)
        now = LINE_M;
    *cache_state(&c->l2, p2, way2) = line_word(now, 0);
    cache_touch(&c->l2, p2, way2);

    /* An L1 of a pair may read what the other has written, but then neither may store freely. */
    if (n->l2_cores_log2 > 0) {
        if (store)
            drop_from_l1(n, c, line, core & ((1u << n->l2_cores_log2) - 1));
        else
            share_in_l1(n, c, line);
    }
    const enum line_state in_l1 = store ? LINE_M : LINE_S;
    if (way1 >= 0)
        *cache_state(l1, p1, way1) = line_word(in_l1, 0);
    else
        fill_l1(l1, p1, in_l1);
    return r;
}

struct numa_result private_access(struct numa *n, unsigned core, uint64_t line, bool store,
                                  sim_time at_ps, struct sim_stamp *stamp)
{
    const struct cache *l1 = l1_of_core(n, core);
    const struct cache_place p = cache_place(l1, line);
    const int way = cache_find(l1, p);

    if (SIM_LIKELY(way >= 0 && (!store || line_state(*cache_state(l1, p, way)) == LINE_M))) {
        cache_touch(l1, p, way);
        sim_stamp_mark(stamp, PART_CORE, at_ps + n->l1_ps);
        return (struct numa_result){ at_ps + n->l1_ps, NUMA_L1 };
    }
    return miss_l1(n, core, line, store, p, way, at_ps, stamp);
}
