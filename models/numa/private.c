/*
 * The caches of the cores: L1D per core, L2 per core or shared by a few.
 *
 * Models: L1 and L2 with write-back and write-allocate; L2 holds what its L1s hold.
 * Does not model: instruction caches, prefetchers, non-inclusive L2 (Broadwell's is not strictly
 *   inclusive of L1), bank conflicts, the TLB.
 * Timing: L1 hit l1_hit_cycles; L2 hit l2_hit_cycles; a miss is known after l2_hit_cycles and is
 *   the coherence protocol's from there.
 * Sources: docs/sources.md#a1
 */
#include "models/numa/numa_internal.h"

#include <stdlib.h>

/*
 * The functions below take the caches of the core as parameters. On the fast path (core_group.fast)
 * these are copies whose geometry is a compile-time constant, see cache_known().
 */

static bool all_fast(const struct core_group *c, const struct numa_cache_params *p)
{
    return p->l2_cores == 1 && !c->l1[0].narrow && !c->l2.narrow &&
           c->l1[0].ways == FAST_PRIVATE_WAYS && c->l1[0].sets == FAST_L1_SETS &&
           c->l2.ways == FAST_PRIVATE_WAYS && c->l2.sets == FAST_L2_SETS;
}

void core_group_init(struct numa *n, struct core_group *c)
{
    const struct numa_cache_params *p = n->params->cache;

    c->l1 = sim_zalloc(p->l2_cores, sizeof(*c->l1));
    for (uint32_t i = 0; i < p->l2_cores; i++)
        cache_init(&c->l1[i], 1, (uint32_t)(p->l1_bytes / LINE_BYTES / p->l1_ways), p->l1_ways,
                   numa_lines(n), 0);
    cache_init(&c->l2, 1, (uint32_t)(p->l2_bytes / LINE_BYTES / p->l2_ways), p->l2_ways,
               numa_lines(n), 0);
    c->fast = n->llc_fast && all_fast(c, p);
    if (c->fast) {
        c->llc_at = sim_zalloc(FAST_L2_SETS * FAST_PRIVATE_WAYS, sizeof(*c->llc_at));
    }
}

void core_group_release(struct numa *n, struct core_group *c)
{
    for (uint32_t i = 0; c->l1 != NULL && i < n->params->cache->l2_cores; i++)
        cache_release(&c->l1[i]);
    free(c->l1);
    free(c->llc_at);
    cache_release(&c->l2);
}

void core_group_clear(struct numa *n, struct core_group *c)
{
    for (uint32_t i = 0; i < n->params->cache->l2_cores; i++)
        cache_clear(&c->l1[i]);
    cache_clear(&c->l2);
}

static inline enum line_state peek_in(const struct cache *l2, uint64_t line)
{
    const struct cache_place p = cache_place(l2, line);
    const int way = cache_find(l2, p);

    return way < 0 ? LINE_I : cache_state(p, way);
}

enum line_state core_group_peek(const struct numa *n, unsigned group, uint64_t line)
{
    const struct core_group *c = &n->core_group[group];

    if (SIM_LIKELY(c->fast)) {
        const struct cache l2 = l2_fast(c);
        return peek_in(&l2, line);
    }
    return peek_in(&c->l2, line);
}

static inline void drop_from_one(const struct cache *l1, uint64_t line)
{
    const struct cache_place p = cache_place(l1, line);
    const int way = cache_find(l1, p);

    if (way >= 0)
        cache_drop(p, way);
}

/* Drops the line from the L1s of a core group but one (or all: except >= l2_cores). */
static void drop_from_l1(const struct numa *n, struct core_group *c, uint64_t line, unsigned except)
{
    for (uint32_t i = 0; i < 1u << n->l2_cores_log2; i++)
        if (i != except)
            drop_from_one(&c->l1[i], line);
}

static void share_in_l1(const struct numa *n, struct core_group *c, uint64_t line)
{
    for (uint32_t i = 0; i < n->params->cache->l2_cores; i++) {
        const struct cache_place p = cache_place(&c->l1[i], line);
        const int way = cache_find(&c->l1[i], p);
        if (way >= 0)
            cache_put_state(p, way, LINE_S);
    }
}

enum line_state core_group_downgrade(struct numa *n, unsigned group, uint64_t line)
{
    struct core_group *c = &n->core_group[group];
    const struct cache_place p = cache_place(&c->l2, line);
    const int way = cache_find(&c->l2, p);

    if (way < 0)
        return LINE_I;
    const enum line_state was = cache_state(p, way);
    if (was == LINE_M)
        share_in_l1(n, c, line);
    cache_put_state(p, way, LINE_S);
    return was;
}

static inline __attribute__((always_inline)) enum line_state
invalidate_in(const struct numa *n, struct core_group *c, uint64_t line, const struct cache *l1,
              const struct cache *l2)
{
    const struct cache_place p = cache_place(l2, line);
    const int way = cache_find(l2, p);

    if (way < 0)
        return LINE_I;
    const enum line_state was = cache_state(p, way);
    if (l1 != NULL)
        drop_from_one(l1, line);
    else
        drop_from_l1(n, c, line, UINT32_MAX);
    cache_drop(p, way);
    return was;
}

enum line_state core_group_invalidate(struct numa *n, unsigned group, uint64_t line)
{
    struct core_group *c = &n->core_group[group];

    if (SIM_LIKELY(c->fast)) {
        const struct cache l1 = l1_fast(c);
        const struct cache l2 = l2_fast(c);
        return invalidate_in(n, c, line, &l1, &l2);
    }
    return invalidate_in(n, c, line, NULL, &c->l2);
}

/* ---- Accesses of a core ---------------------------------------------------------------------- */

/* An access that is under way. fast: the core group is, and the access carries no latency stamp.
 * On the fast path the compiler keeps all fields in registers. */
struct access {
    struct numa *n;
    struct core_group *c;
    unsigned core;
    bool store;
    bool fast;
    uint64_t line;
    sim_time at_ps;
    struct sim_stamp *stamp;
    const struct cache *l1, *l2;
    const struct cache *llc; /* fast: the socket's */
};

static inline uint32_t *llc_at(const struct core_group *c, uint32_t set, int way)
{
    return &c->llc_at[set * FAST_PRIVATE_WAYS + (uint32_t)way];
}

/* A stream's lines go into consecutive sets. So many sets ahead, the real machine has time to fetch
 * a row of the LLC from its own memory. */
#define VICTIM_AHEAD 4u

/* Prefetches, on the real machine, the LLC row of the line that a stream will soon evict from the
 * L2, if that line must be written back. */
static inline __attribute__((always_inline)) void prefetch_victim(const struct access *a,
                                                                  struct cache_place p)
{
    const uint32_t set = (p.index + VICTIM_AHEAD) & (FAST_L2_SETS - 1);
    const struct cache_place next = { cache_row(a->l2, set), 0, set };
    const uint32_t old = a->l2->all_ways & ~next.row->used;
    const int way = __builtin_ctz(old | 1u << (FAST_PRIVATE_WAYS - 1));

    if (cache_state(next, way) == LINE_M) {
        cache_prefetch_at(cache_row(a->llc, *llc_at(a->c, set, way) >> 5), HOST_LINE_BYTES);
    }
}

/* Evicts `line` from the L2 to make room for that of the access. at: fast: its place in the LLC.
 * Returns how long it is held up; the LLC takes a line at once. */
static inline __attribute__((always_inline)) sim_time leave(const struct access *a,
                                                            struct cache_place p1, uint64_t line,
                                                            bool dirty, uint32_t at, sim_time at_ps)
{
    if (!a->fast) {
        drop_from_l1(a->n, a->c, line, UINT32_MAX);
        if (dirty || !a->n->params->cache->inclusive)
            return a->n->ops->writeback(a->n, core_group_of(a->n, a->core), line, at, dirty, at_ps);
        return 0;
    }
    /* What shares a set of the L2 shares one of the smaller L1. */
    const struct cache_place p = { p1.row, (uint32_t)(line >> a->l1->sets_log2), p1.index };
    const int way = cache_find(a->l1, p);

    if (way >= 0)
        cache_drop(p, way);
    if (dirty)
        agent_take_back(a->llc, at);
    return 0;
}

/* Puts the line, which the L2 does not hold, into the place of another. Returns how long that one is
 * held up. */
static inline __attribute__((always_inline)) sim_time fill_l2(const struct access *a,
                                                              struct cache_place p1,
                                                              struct cache_place p,
                                                              struct fetched line, sim_time at_ps)
{
    const int way = cache_victim(p, a->l2->all_ways);
    const bool full = cache_holds(p, way);
    const uint64_t victim = cache_line_in(a->l2, p, way);
    const bool dirty = cache_state(p, way) == LINE_M;
    uint32_t victim_at = 0;

    cache_fill(a->l2, p, way, line.state, 0);
    if (a->fast || a->c->llc_at != NULL) {
        victim_at = *llc_at(a->c, p.index, way);
        *llc_at(a->c, p.index, way) = line.llc_at;
    }
    if (a->fast)
        prefetch_victim(a, p);
    return full ? leave(a, p1, victim, dirty, victim_at, at_ps) : 0;
}

/* Gets the line from outside the core group, which knows of the miss at r->done_ps. */
static inline __attribute__((always_inline)) struct fetched fetch(const struct access *a,
                                                                  struct numa_result *r)
{
    struct fetched got;

    if (a->fast && SIM_LIKELY(agent_give(a->n, a->c, a->llc, a->line, a->store, &got))) {
        const struct numa_cache_params *p = a->n->params->cache;
        *r = (struct numa_result){ r->done_ps + p->llc_request_ps + p->llc_return_ps, NUMA_LLC };
        return got;
    }
    return a->n->ops->fetch(a->n, a->core, a->line, a->store, r->done_ps, a->stamp, r);
}

/* Adjusts the line in the other L1s of the core group after one core has fetched it. */
static void agree_in_group(const struct access *a)
{
    struct numa *n = a->n;

    if (n->l2_cores_log2 == 0)
        return;
    /* An L1 of a pair may read what the other has written, but then neither may store freely. */
    if (a->store)
        drop_from_l1(n, a->c, a->line, a->core & ((1u << n->l2_cores_log2) - 1));
    else
        share_in_l1(n, a->c, a->line);
}

/* The access missed the L1 (way1 < 0), or is a store to a line of it that is not M there. */
static inline __attribute__((always_inline)) struct numa_result
miss_l1(const struct access *a, struct cache_place p1, int way1)
{
    const struct cache_place p2 = cache_place(a->l2, a->line);
    const sim_time known_ps = a->at_ps + a->n->l2_ps;
    struct numa_result r = { known_ps, NUMA_L2 };
    struct fetched now = { LINE_I, 0 };

    const int way2 = cache_find(a->l2, p2);
    if (way2 >= 0)
        now.state = cache_state(p2, way2);
    sim_stamp_mark(a->stamp, PART_CORE, known_ps);
    /* May take other lines from our caches, but not this one. */
    if (now.state == LINE_I || (a->store && now.state == LINE_S))
        now = fetch(a, &r);
    if (a->store)
        now.state = LINE_M;
    if (way2 < 0) {
        r.done_ps += fill_l2(a, p1, p2, now, r.done_ps);
        sim_stamp_mark(a->stamp, PART_DRAM, r.done_ps);
    } else {
        cache_put_state(p2, way2, now.state);
        cache_touch(a->l2, p2, way2);
    }
    if (!a->fast)
        agree_in_group(a);
    const enum line_state in_l1 = a->store ? LINE_M : LINE_S;
    if (way1 >= 0)
        cache_put_state(p1, way1, in_l1);
    else /* The victim's state is in the L2 already (see the invariant of struct core_group). */
        cache_fill(a->l1, p1, cache_victim(p1, a->l1->all_ways), in_l1, 0);
    return r;
}

static inline __attribute__((always_inline)) struct numa_result access_in(const struct access *a)
{
    const struct cache_place p = cache_place(a->l1, a->line);
    const int way = cache_find(a->l1, p);

    if (way >= 0 && (!a->store || cache_state(p, way) == LINE_M)) {
        cache_touch(a->l1, p, way);
        sim_stamp_mark(a->stamp, PART_CORE, a->at_ps + a->n->l1_ps);
        return (struct numa_result){ a->at_ps + a->n->l1_ps, NUMA_L1 };
    }
    return miss_l1(a, p, way);
}

static __attribute__((noinline)) struct numa_result access_slow(struct numa *n, unsigned core,
                                                                uint64_t line, bool store,
                                                                sim_time at_ps,
                                                                struct sim_stamp *stamp)
{
    struct core_group *c = &n->core_group[core_group_of(n, core)];
    const struct access a = {
        .n = n,
        .c = c,
        .core = core,
        .store = store,
        .line = line,
        .at_ps = at_ps,
        .stamp = stamp,
        .l1 = l1_of_core(n, core),
        .l2 = &c->l2,
    };

    return access_in(&a);
}

/* Compiled for loads and for stores. */
static inline __attribute__((always_inline)) struct numa_result
access_any(struct numa *n, unsigned core, uint64_t line, bool store, sim_time at_ps,
           struct sim_stamp *stamp)
{
    struct core_group *c = &n->core_group[core_group_of(n, core)];

    if (SIM_UNLIKELY(!c->fast || stamp != NULL))
        return access_slow(n, core, line, store, at_ps, stamp);
    const struct cache l1 = l1_fast(c);
    const struct cache l2 = l2_fast(c);
    const struct cache llc = llc_fast(&n->socket[c->socket].llc);
    const struct access a = {
        .n = n,
        .c = c,
        .core = core,
        .store = store,
        .fast = true,
        .line = line,
        .at_ps = at_ps,
        .l1 = &l1,
        .l2 = &l2,
        .llc = &llc,
    };

    return access_in(&a);
}

struct numa_result numa_load(struct numa *n, unsigned core, struct hpa hpa, sim_time at_ps,
                             struct sim_stamp *stamp)
{
    return access_any(n, core, hpa.v >> LINE_LOG2, false, at_ps, stamp);
}

struct numa_result numa_store(struct numa *n, unsigned core, struct hpa hpa, sim_time at_ps,
                              struct sim_stamp *stamp)
{
    return access_any(n, core, hpa.v >> LINE_LOG2, true, at_ps, stamp);
}
