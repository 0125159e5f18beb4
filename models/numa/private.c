/*
 * The caches of the cores: L1D and, where there is one, L1I per core, L2 per core or shared by a
 * few.
 *
 * Models: L1 and L2 with write-back (L1: or write-through) and write-allocate; L2 holds what its
 *   L1s hold; L2 with sectors of two lines (one tag, so that both leave together); prefetches into
 *   the L2 (stream_prefetch.c says which).
 * Does not model: non-inclusive L2 (Broadwell's is not strictly inclusive of L1), bank conflicts,
 *   the TLB; Broadwell's prefetchers are in what a core has in flight. Fetches of instructions
 *   teach the L2's prefetcher nothing.
 * Timing: L1 hit l1_hit_cycles (the caller decides what one of the L1I costs); L2 hit
 *   l2_hit_cycles, and l1_hit + l2_hit more if another L1 of the group has modified the line; a
 *   miss is known after l2_hit_cycles and is the coherence protocol's from there.
 * Sources: docs/sources.md#a1
 */
#include "models/numa/numa_internal.h"

#include <stdlib.h>

#include "sim/engine/zeroed.h"

#define LLC_AT_BYTES (FAST_L2_SETS * FAST_PRIVATE_WAYS * sizeof(uint32_t))

/*
 * The functions below take the caches of the core as parameters. On the fast path
 * (core_group.fast), and for the accesses of a pair (core_group.pair), these are copies whose
 * geometry is a compile-time constant, see cache_known().
 */

static bool all_fast(const struct core_group *c, const struct numa_cache_params *p)
{
    return p->l2_cores == 1 && p->l2_sector_lines == 1 && !p->l1_write_through && c->n_l1 == 1 &&
           c->prefetch == NULL && !c->l1[0].narrow && !c->l2.narrow &&
           c->l1[0].ways == FAST_PRIVATE_WAYS && c->l1[0].sets == FAST_L1_SETS &&
           c->l2.ways == FAST_PRIVATE_WAYS && c->l2.sets == FAST_L2_SETS;
}

static bool is_pair(const struct numa *n, const struct core_group *c)
{
    const struct numa_cache_params *p = n->params->cache;

    return p->l2_cores == 2 && p->l2_sector_lines == 1 && !p->l1_write_through &&
           c->prefetch != NULL && n->present != NULL && !c->l1[0].narrow && c->l2.narrow &&
           c->l1[0].ways == PAIR_L1_WAYS && c->l1[0].sets == PAIR_L1_SETS &&
           c->l2.ways == PAIR_L2_WAYS && c->l2.sets == PAIR_L2_SETS &&
           (c->n_l1 == 2 ||
            (!c->l1[2].narrow && c->l1[2].ways == PAIR_L1_WAYS && c->l1[2].sets == PAIR_L1_SETS));
}

static void choose_accesses(struct core_group *c);

void core_group_init(struct numa *n, struct core_group *c)
{
    const struct numa_cache_params *p = n->params->cache;

    c->n_l1 = p->l1i_bytes > 0 ? 2 * p->l2_cores : p->l2_cores;
    c->l1 = sim_zalloc(c->n_l1, sizeof(*c->l1));
    for (uint32_t i = 0; i < p->l2_cores; i++)
        cache_init(&c->l1[i], 1, (uint32_t)(p->l1_bytes / LINE_BYTES / p->l1_ways), p->l1_ways,
                   numa_lines(n), 0);
    for (uint32_t i = p->l2_cores; i < c->n_l1; i++)
        cache_init(&c->l1[i], 1, (uint32_t)(p->l1i_bytes / LINE_BYTES / p->l1i_ways), p->l1i_ways,
                   numa_lines(n), 0);
    c->text_first = UINT64_MAX;
    if (p->l1i_bytes > 0)
        c->l1i_changes = sim_zalloc(p->l2_cores, sizeof(*c->l1i_changes));
    cache_init(&c->l2, 1, (uint32_t)(p->l2_bytes / LINE_BYTES / p->l2_ways), p->l2_ways,
               numa_lines(n), 0);
    if (p->prefetch.streams > 0) {
        c->prefetch = sim_zalloc(1, sizeof(*c->prefetch));
        c->prefetch->params = &p->prefetch;
    }
    c->fast = n->llc_fast && all_fast(c, p);
    c->pair = is_pair(n, c);
    choose_accesses(c);
    if (c->fast)
        c->llc_at = sim_zeroed_new(LLC_AT_BYTES);
}

void core_group_release(struct numa *n, struct core_group *c)
{
    (void)n;
    for (uint32_t i = 0; c->l1 != NULL && i < c->n_l1; i++)
        cache_release(&c->l1[i]);
    free(c->l1);
    free(c->l1i_changes);
    free(c->prefetch);
    sim_zeroed_free(c->llc_at, LLC_AT_BYTES);
    cache_release(&c->l2);
}

void core_group_clear(struct numa *n, struct core_group *c)
{
    for (uint32_t i = 0; i < c->n_l1; i++)
        cache_clear(&c->l1[i]);
    for (uint32_t i = 0; c->l1i_changes != NULL && i < n->params->cache->l2_cores; i++)
        c->l1i_changes[i]++;
    cache_clear(&c->l2);
    if (c->prefetch != NULL)
        *c->prefetch = (struct stream_prefetch){ .params = c->prefetch->params };
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
    return numa_may_have(n, group, line) ? peek_in(&c->l2, line) : LINE_I;
}

/* Returns whether the L1 had the line modified. */
static inline __attribute__((always_inline)) bool drop_from_one(const struct cache *l1,
                                                                uint64_t line)
{
    const struct cache_place p = cache_place(l1, line);
    const int way = cache_find(l1, p);

    if (way < 0)
        return false;
    const bool dirty = cache_state(p, way) == LINE_M;
    cache_drop(p, way);
    return dirty;
}

/* The L1 may not store into the line freely any more. Returns whether it had stored. */
static inline __attribute__((always_inline)) bool share_in_one(const struct cache *l1,
                                                               uint64_t line)
{
    const struct cache_place p = cache_place(l1, line);
    const int way = cache_find(l1, p);

    if (way < 0)
        return false;
    const bool dirty = cache_state(p, way) == LINE_M;
    cache_put_state(p, way, LINE_S);
    return dirty;
}

static inline __attribute__((always_inline)) bool share_in_one_of_pair(const struct core_group *c,
                                                                       unsigned i, uint64_t line)
{
    const struct cache l1 = l1_of_pair(c, i);

    return share_in_one(&l1, line);
}

static inline __attribute__((always_inline)) bool drop_from_one_of_pair(const struct core_group *c,
                                                                        unsigned i, uint64_t line)
{
    const struct cache l1 = l1_of_pair(c, i);

    return drop_from_one(&l1, line);
}

/* It may be in an L1I. */
static inline bool is_text(const struct core_group *c, uint64_t line)
{
    return line >= c->text_first && line <= c->text_last;
}

static __attribute__((noinline)) void drop_from_l1i(const struct numa *n, struct core_group *c,
                                                    uint64_t line)
{
    const uint32_t n_cores = 1u << n->l2_cores_log2;

    for (uint32_t i = 0; i < n_cores; i++) {
        const struct cache *l1i = &c->l1[n_cores + i];
        const struct cache_place p = cache_place(l1i, line);
        const int way = cache_find(l1i, p);
        if (way < 0)
            continue;
        cache_drop(p, way);
        c->l1i_changes[i]++;
    }
}

/* Drops the line from the L1s of a core group but one L1D (or all: except >= l2_cores). Returns
 * whether one had it modified. */
static bool drop_from_l1(const struct numa *n, struct core_group *c, uint64_t line, unsigned except)
{
    bool dirty = false;

    if (c->pair) {
        dirty = except != 0 && drop_from_one_of_pair(c, 0, line);
        dirty |= except != 1 && drop_from_one_of_pair(c, 1, line);
    } else {
        for (uint32_t i = 0; i < 1u << n->l2_cores_log2; i++)
            if (i != except)
                dirty |= drop_from_one(&c->l1[i], line);
    }
    if (is_text(c, line))
        drop_from_l1i(n, c, line);
    return dirty;
}

/* No L1 of the group may store into the line freely any more. Returns whether one had stored. */
static bool share_in_l1(const struct numa *n, struct core_group *c, uint64_t line)
{
    bool dirty = false;

    if (c->pair) {
        dirty = share_in_one_of_pair(c, 0, line);
        return share_in_one_of_pair(c, 1, line) || dirty;
    }
    for (uint32_t i = 0; i < n->params->cache->l2_cores; i++)
        dirty |= share_in_one(&c->l1[i], line);
    return dirty;
}

static inline __attribute__((always_inline)) enum line_state
downgrade_in(const struct numa *n, struct core_group *c, const struct cache *l2, uint64_t line,
             bool *in_l1)
{
    const struct cache_place p = cache_place(l2, line);
    const int way = cache_find(l2, p);

    *in_l1 = false;
    if (way < 0)
        return LINE_I;
    const enum line_state was = cache_state(p, way);
    if (was == LINE_M)
        *in_l1 = share_in_l1(n, c, line);
    cache_put_state(p, way, LINE_S);
    return was;
}

enum line_state core_group_downgrade(struct numa *n, unsigned group, uint64_t line)
{
    struct core_group *c = &n->core_group[group];
    bool in_l1;

    return numa_may_have(n, group, line) ? downgrade_in(n, c, &c->l2, line, &in_l1) : LINE_I;
}

static inline __attribute__((always_inline)) enum line_state
invalidate_in(const struct numa *n, struct core_group *c, const struct cache *l2, uint64_t line,
              bool *in_l1)
{
    const struct cache_place p = cache_place(l2, line);
    const int way = cache_find(l2, p);

    *in_l1 = false;
    if (way < 0)
        return LINE_I;
    const enum line_state was = cache_state(p, way);
    *in_l1 = drop_from_l1(n, c, line, UINT32_MAX);
    cache_drop(p, way);
    return was;
}

static enum line_state invalidate_fast(const struct core_group *c, uint64_t line)
{
    const struct cache l1 = l1_fast(c);
    const struct cache l2 = l2_fast(c);
    const struct cache_place p = cache_place(&l2, line);
    const int way = cache_find(&l2, p);

    if (way < 0)
        return LINE_I;
    const enum line_state was = cache_state(p, way);
    drop_from_one(&l1, line);
    cache_drop(p, way);
    return was;
}

enum line_state core_group_invalidate(struct numa *n, unsigned group, uint64_t line)
{
    struct core_group *c = &n->core_group[group];
    bool in_l1;

    if (SIM_LIKELY(c->fast))
        return invalidate_fast(c, line);
    if (!numa_may_have(n, group, line))
        return LINE_I;
    numa_note_present(n, group, line, false);
    return invalidate_in(n, c, &c->l2, line, &in_l1);
}

enum line_state core_group_snoop(struct numa *n, unsigned group, uint64_t line, bool invalidate,
                                 bool *in_l1)
{
    struct core_group *c = &n->core_group[group];
    const struct cache l2 = l2_of_pair(c);
    enum line_state was;
    bool here;

    if (invalidate) {
        numa_note_present(n, group, line, false);
        was = c->pair ? invalidate_in(n, c, &l2, line, &here)
                      : invalidate_in(n, c, &c->l2, line, &here);
    } else {
        was = c->pair ? downgrade_in(n, c, &l2, line, &here)
                      : downgrade_in(n, c, &c->l2, line, &here);
    }
    *in_l1 |= here;
    return was;
}

/* ---- Accesses of a core ---------------------------------------------------------------------- */

/* An access that is under way. fast, pair: the core group is, and the access carries no latency
 * stamp. On these paths the compiler keeps all fields in registers. */
struct access {
    struct numa *n;
    struct core_group *c;
    unsigned core;
    bool store;
    bool fast, pair;
    bool fetch; /* of instructions: l1 is the L1I */
    uint64_t line;
    sim_time at_ps;
    struct sim_stamp *stamp;
    const struct cache *l1, *l2;
    const struct cache *llc; /* fast: the socket's */
};

static inline __attribute__((always_inline)) bool has_sectors(const struct access *a)
{
    return !a->fast && !a->pair && a->n->params->cache->l2_sector_lines > 1;
}

static inline __attribute__((always_inline)) bool has_prefetcher(const struct access *a)
{
    return a->pair || (!a->fast && a->c->prefetch != NULL);
}

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

    if ((next.row->dirty >> way & 1u) != 0) {
        cache_prefetch_at(cache_row(a->llc, *llc_at(a->c, set, way) >> 5), HOST_LINE_BYTES);
    }
}

/* A modified line has left the L2 at at_ps. */
static inline __attribute__((always_inline)) void note_displaced(const struct access *a,
                                                                 sim_time at_ps)
{
    const sim_time held_ps = a->n->params->cache->writeback_ps;

    if (held_ps != 0)
        a->c->displaced_until_ps = at_ps + held_ps;
}

/* A line has left the L2 of a core group that is not fast. Returns how long it is held up. */
static sim_time write_back(const struct access *a, uint64_t line, uint32_t at, bool dirty,
                           sim_time at_ps)
{
    if (!dirty && a->n->params->cache->inclusive)
        return 0;
    const sim_time waits_ps = a->n->ops->writeback(a->n, core_group_of(a->n, a->core), line, at,
                                                   dirty, at_ps);
    if (dirty)
        note_displaced(a, at_ps + waits_ps);
    return waits_ps;
}

/* Evicts `line` from the L2 to make room for that of the access. at: fast: its place in the LLC.
 * Returns how long it is held up; the LLC takes a line at once. */
static inline __attribute__((always_inline)) sim_time leave(const struct access *a,
                                                            struct cache_place p1, uint64_t line,
                                                            bool dirty, uint32_t at, sim_time at_ps)
{
    if (!a->fast) {
        numa_note_present(a->n, core_group_of(a->n, a->core), line, false);
        drop_from_l1(a->n, a->c, line, UINT32_MAX);
        return write_back(a, line, at, dirty, at_ps);
    }
    /* What shares a set of the L2 shares one of the smaller L1. */
    const struct cache_place p = { p1.row, (uint32_t)(line >> a->l1->sets_log2), p1.index };
    const uint32_t in_l1 = cache_find_bit(a->l1, p);

    if (in_l1 != 0)
        cache_drop_bits(p, in_l1);
    if (dirty) {
        agent_take_back(a->n, a->llc, at);
        note_displaced(a, at_ps);
    }
    return 0;
}

/* ---- Sectors: lines 2k and 2k + 1 are in the same way of neighbouring rows, under one tag ---- */

static struct cache_place other_of_sector(const struct cache *l2, struct cache_place p)
{
    return (struct cache_place){ cache_row(l2, p.index ^ 1), p.tag, p.index ^ 1 };
}

static void touch_sector(const struct cache *l2, struct cache_place p, int way)
{
    cache_touch(l2, p, way);
    cache_touch(l2, other_of_sector(l2, p), way);
}

/* The way of a sector for which there is none yet: an empty one, else one not recently used. */
static int sector_victim(const struct cache *l2, struct cache_place p, struct cache_place other)
{
    const uint32_t empty = l2->all_ways & ~(p.row->valid | other.row->valid);

    if (empty != 0)
        return __builtin_ctz(empty);
    if ((l2->all_ways & ~(p.row->used | other.row->used)) == 0)
        p.row->used = other.row->used = 0;
    return __builtin_ctz(l2->all_ways & ~(p.row->used | other.row->used));
}

/* Evicts what is in that way of the row, if anything. Returns how long it is held up. */
static sim_time empty_way(const struct access *a, struct cache_place p, int way, sim_time at_ps)
{
    if (!cache_holds(p, way))
        return 0;
    const uint64_t line = cache_line_in(a->l2, p, way);
    const bool dirty = cache_state(p, way) == LINE_M;

    cache_drop(p, way);
    numa_note_present(a->n, core_group_of(a->n, a->core), line, false);
    drop_from_l1(a->n, a->c, line, UINT32_MAX);
    return write_back(a, line, 0, dirty, at_ps);
}

/* As fill_l2(): if the other line of the sector is there, the line joins it. */
static __attribute__((noinline)) sim_time fill_sector(const struct access *a, struct cache_place p,
                                                      struct fetched line, sim_time at_ps)
{
    const struct cache_place other = other_of_sector(a->l2, p);
    int way = cache_find(a->l2, other);
    sim_time waits_ps = 0;

    if (way < 0) {
        way = sector_victim(a->l2, p, other);
        waits_ps = empty_way(a, p, way, at_ps);
        const sim_time other_ps = empty_way(a, other, way, at_ps);
        waits_ps = SIM_MAX(waits_ps, other_ps);
    }
    cache_fill(a->l2, p, way, line.state, 0);
    numa_note_present(a->n, core_group_of(a->n, a->core), cache_line_in(a->l2, p, way), true);
    cache_touch(a->l2, other, way);
    return waits_ps;
}

/* Puts the line, which the L2 does not hold, into the place of another. Returns how long that one
 * is held up. */
static inline __attribute__((always_inline)) sim_time fill_l2(const struct access *a,
                                                              struct cache_place p1,
                                                              struct cache_place p,
                                                              struct fetched line, sim_time at_ps)
{
    if (has_sectors(a))
        return fill_sector(a, p, line, at_ps);
    const uint32_t bit = a->fast ? cache_victim_of_all(a->l2, p)
                                 : cache_victim_bit(p, a->l2->all_ways);
    const int way = __builtin_ctz(bit);
    const bool full = (p.row->valid & bit) != 0;
    const bool dirty = (p.row->dirty & bit) != 0;
    const uint64_t victim = cache_line_in(a->l2, p, way);
    uint32_t victim_at = 0;

    cache_fill_bit(a->l2, p, bit, line.state, 0);
    if (a->fast || (!a->pair && a->c->llc_at != NULL)) {
        victim_at = *llc_at(a->c, p.index, way);
        *llc_at(a->c, p.index, way) = line.llc_at;
    }
    if (a->fast)
        prefetch_victim(a, p);
    else
        numa_note_present(a->n, core_group_of(a->n, a->core), cache_line_in(a->l2, p, way), true);
    return full ? leave(a, p1, victim, dirty, victim_at, at_ps) : 0;
}

/* Gets the line from outside the core group, which knows of the miss at r->done_ps. Counts what
 * neither the own socket's LLC nor a cache of one of its cores had. */
static inline __attribute__((always_inline)) struct fetched fetch(const struct access *a,
                                                                  struct numa_result *r)
{
    struct numa_result result; /* not *r, which then needs no place in memory on the fast path */
    struct fetched got;
    bool missed = false; /* the socket's LLC */

    if (a->fast) {
        const struct cache_place p = cache_place(a->llc, a->line);
        const uint32_t bit = cache_find_bit(a->llc, p);
        if (SIM_LIKELY(bit != 0) &&
            SIM_LIKELY(agent_give(a->n, a->c, a->llc, p, bit, a->store, &got))) {
            *r = (struct numa_result){ r->done_ps + a->n->llc_ps, NUMA_LLC };
            return got;
        }
        missed = bit == 0;
        if (missed)
            got = a->n->ops->fetch_missed(a->n, a->c, p, a->line, a->store, r->done_ps, &result);
    }
    if (!missed)
        got = a->n->ops->fetch(a->n, a->core, a->line, a->store, r->done_ps, a->stamp, &result);
    a->n->private_count[a->core].llc_misses += result.source >= NUMA_REMOTE_CACHE;
    if (a->store)
        a->c->observed_ps = a->n->observed_ps;
    *r = result;
    return got;
}

/* The number of the first of n lines from `from` on that the L2 of the core group does not have, or
 * n; without a branch for each where it is noted. */
static inline unsigned first_missing(const struct access *a, const uint64_t *line, unsigned from,
                                     unsigned n)
{
    const unsigned group = core_group_of(a->n, a->core);
    uint64_t missing = UINT64_C(1) << n;

    if (!a->pair) {
        while (from < n && numa_has(a->n, group, line[from]))
            from++;
        return from;
    }
    for (unsigned i = from; i < n; i++)
        missing |= (uint64_t)(~(unsigned)a->n->present[line[i]] >> group & 1u) << i;
    return (unsigned)__builtin_ctzll(missing);
}

/* Fetches into the L2 what the prefetcher asks for after the access, which was known to be a miss,
 * or not, at at_ps. */
static inline __attribute__((always_inline)) void prefetch_after(const struct access *a, bool miss,
                                                                 sim_time at_ps)
{
    struct stream_prefetch *prefetch = a->c->prefetch;
    struct numa_private_count *count = &a->n->private_count[a->core];
    const bool store = a->store && prefetch->params->owns;
    uint64_t asked[PREFETCH_MAX_ASKED];

    if (a->n->quiet)
        return;
    const unsigned n = stream_prefetch_access(prefetch, a->line, miss, at_ps, asked);
    bool room = n > 0 && stream_prefetch_room(prefetch, at_ps);
    for (unsigned i = 0; i < n && room; i++) {
        const unsigned from = i;
        i = first_missing(a, asked, from, n); /* a fetch may take others from our caches */
        count->prefetches += SIM_MIN(i + 1, n) - from;
        if (i == n)
            break;
        const struct cache_place p = cache_place(a->l2, asked[i]);
        struct numa_result r = { at_ps, NUMA_L2 };
        count->prefetched++;
        const struct fetched got = a->n->ops->fetch(a->n, a->core, asked[i], store, at_ps, NULL,
                                                    &r);
        r.done_ps += fill_l2(a, p, p, got, r.done_ps);
        stream_prefetch_note(prefetch, asked[i], r, at_ps);
        room = stream_prefetch_room(prefetch, at_ps);
    }
}

/* Adjusts the line in the other L1s of the core group after one core has fetched it. Returns how
 * long that takes: the L2 asks an L1 that has modified the line, takes it and is read once more. */
static inline __attribute__((always_inline)) sim_time agree_in_group(const struct access *a)
{
    struct numa *n = a->n;
    bool dirty;

    if (!a->pair && a->c->n_l1 == 1)
        return 0;
    /* An L1 of a pair may read what the other has written, but then neither may store freely. */
    if (a->store && a->pair) {
        dirty = drop_from_one_of_pair(a->c, (a->core & 1) ^ 1, a->line);
        if (is_text(a->c, a->line))
            drop_from_l1i(n, a->c, a->line);
    } else if (a->store)
        dirty = drop_from_l1(n, a->c, a->line, a->core & ((1u << n->l2_cores_log2) - 1));
    else if (a->pair) /* it missed its own L1 */
        dirty = share_in_one_of_pair(a->c, (a->core & 1) ^ 1, a->line);
    else
        dirty = share_in_l1(n, a->c, a->line);
    return !dirty                              ? 0
           : n->params->cache->l1_snoop_ps > 0 ? n->params->cache->l1_snoop_ps
                                               : n->l1_ps + n->l2_ps;
}

/* The access missed the L1 (in_l1 is 0), or is a store to a line of it that is not M there; in_l1
 * is the bit of its way then. */
static inline __attribute__((always_inline)) struct numa_result
miss_l1(const struct access *a, struct cache_place p1, uint32_t in_l1)
{
    const struct cache_place p2 = cache_place(a->l2, a->line);
    const sim_time known_ps = a->at_ps + a->n->l2_ps;
    struct numa_private_count *count = a->fast ? a->c->count : &a->n->private_count[a->core];
    struct numa_result r = { known_ps, NUMA_L2 };

    const uint32_t in_l2 = cache_find_bit(a->l2, p2);
    count->l2_accesses++;
    sim_stamp_mark(a->stamp, PART_CORE, known_ps);
    if (in_l2 == 0) {
        count->l2_misses++;
        /* May take other lines from our caches, but not this one. */
        struct fetched now = fetch(a, &r);
        now.state = a->store ? LINE_M : SIM_MIN(now.state, LINE_E);
        r.done_ps += fill_l2(a, p1, p2, now, r.done_ps);
        sim_stamp_mark(a->stamp, PART_DRAM, r.done_ps);
    } else {
        if (a->store && (p2.row->owned & in_l2) == 0)
            fetch(a, &r);
        else if (has_prefetcher(a))
            stream_prefetch_take(a->c->prefetch, a->line, known_ps, &r);
        if (a->store)
            cache_put_state_bit(p2, in_l2, LINE_M);
        if (has_sectors(a))
            touch_sector(a->l2, p2, __builtin_ctz(in_l2));
        else
            cache_touch_bit(a->l2, p2, in_l2);
        if (!a->fast) /* else, and if the L2 did not have it, no other L1 has it */
            r.done_ps += agree_in_group(a);
    }
    if (!a->fast)
        sim_stamp_mark(a->stamp, PART_CACHE, r.done_ps);
    const bool dirty = a->store && (a->fast || a->pair || !a->n->params->cache->l1_write_through);
    const enum line_state state = dirty ? LINE_M : LINE_S;
    if (in_l1 != 0)
        cache_put_state_bit(p1, in_l1, state);
    else if (a->fast) /* The victim's state is in the L2 already (see the invariant of struct
                  * core_group). */
        cache_fill_bit(a->l1, p1, cache_victim_of_all(a->l1, p1), state, 0);
    else
        cache_fill_bit(a->l1, p1, cache_victim_bit(p1, a->l1->all_ways), state, 0);
    if (has_prefetcher(a) && !a->fetch)
        prefetch_after(a, in_l2 == 0, known_ps);
    return r;
}

static inline __attribute__((always_inline)) struct numa_result access_in(const struct access *a)
{
    const struct cache_place p = cache_place(a->l1, a->line);
    const uint32_t in_l1 = cache_find_bit(a->l1, p);

    if ((a->store ? in_l1 & p.row->dirty : in_l1) != 0) {
        cache_touch_bit(a->l1, p, in_l1);
        sim_stamp_mark(a->stamp, PART_CORE, a->at_ps + a->n->l1_ps);
        return (struct numa_result){ a->at_ps + a->n->l1_ps, NUMA_L1 };
    }
    return miss_l1(a, p, in_l1);
}

static inline __attribute__((always_inline)) struct numa_result
access_of_pair(struct numa *n, struct core_group *c, unsigned core, uint64_t line, bool store,
               sim_time at_ps)
{
    const struct cache l1 = l1_of_pair(c, core & 1);
    const struct cache l2 = l2_of_pair(c);
    const struct access a = {
        .n = n,
        .c = c,
        .core = core,
        .store = store,
        .pair = true,
        .line = line,
        .at_ps = at_ps,
        .l1 = &l1,
        .l2 = &l2,
    };

    return access_in(&a);
}

static __attribute__((noinline)) struct numa_result
load_of_pair(struct numa *n, struct core_group *c, unsigned core, uint64_t line, sim_time at_ps)
{
    return access_of_pair(n, c, core, line, false, at_ps);
}

static __attribute__((noinline)) struct numa_result
store_of_pair(struct numa *n, struct core_group *c, unsigned core, uint64_t line, sim_time at_ps)
{
    return access_of_pair(n, c, core, line, true, at_ps);
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
access_fast(struct numa *n, struct core_group *c, unsigned core, uint64_t line, bool store,
            sim_time at_ps)
{
    const struct cache l1 = l1_fast(c);
    const struct cache l2 = l2_fast(c);
    const struct cache llc = llc_fast(&c->own->llc);
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

static struct numa_result load_fast(struct numa *n, struct core_group *c, unsigned core,
                                    uint64_t line, sim_time at_ps)
{
    return access_fast(n, c, core, line, false, at_ps);
}

static struct numa_result store_fast(struct numa *n, struct core_group *c, unsigned core,
                                     uint64_t line, sim_time at_ps)
{
    return access_fast(n, c, core, line, true, at_ps);
}

static struct numa_result load_slow(struct numa *n, struct core_group *c, unsigned core,
                                    uint64_t line, sim_time at_ps)
{
    (void)c;
    return access_slow(n, core, line, false, at_ps, NULL);
}

static struct numa_result store_slow(struct numa *n, struct core_group *c, unsigned core,
                                     uint64_t line, sim_time at_ps)
{
    (void)c;
    return access_slow(n, core, line, true, at_ps, NULL);
}

static void choose_accesses(struct core_group *c)
{
    c->load = c->fast ? load_fast : c->pair ? load_of_pair : load_slow;
    c->store = c->fast ? store_fast : c->pair ? store_of_pair : store_slow;
}

/* These only branch to others. */
struct numa_result numa_load(struct numa *n, unsigned core, struct hpa hpa, sim_time at_ps,
                             struct sim_stamp *stamp)
{
    struct core_group *c = n->group_of[core];
    const uint64_t line = hpa.v >> LINE_LOG2;

    if (SIM_UNLIKELY(stamp != NULL))
        return access_slow(n, core, line, false, at_ps, stamp);
    return c->load(n, c, core, line, at_ps);
}

struct numa_result numa_store(struct numa *n, unsigned core, struct hpa hpa, sim_time at_ps,
                              struct sim_stamp *stamp)
{
    struct core_group *c = n->group_of[core];
    const uint64_t line = hpa.v >> LINE_LOG2;

    if (SIM_UNLIKELY(stamp != NULL))
        return access_slow(n, core, line, true, at_ps, stamp);
    return c->store(n, c, core, line, at_ps);
}

static __attribute__((noinline)) struct numa_result
fetch_slow(struct numa *n, struct core_group *c, unsigned core, struct hpa hpa, sim_time at_ps)
{
    const unsigned n_cores = 1u << n->l2_cores_log2, in_group = core & (n_cores - 1);
    const struct access a = {
        .n = n,
        .c = c,
        .core = core,
        .fetch = true,
        .line = hpa.v >> LINE_LOG2,
        .at_ps = at_ps,
        .l1 = &c->l1[n_cores + in_group],
        .l2 = &c->l2,
    };

    SIM_ASSERT(c->l1i_changes != NULL, "%s has no L1I", n->name);
    c->text_first = SIM_MIN(c->text_first, a.line);
    c->text_last = SIM_MAX(c->text_last, a.line);
    const struct numa_result result = access_in(&a);
    c->l1i_changes[in_group] += result.source != NUMA_L1;
    return result;
}

struct numa_result numa_fetch(struct numa *n, unsigned core, struct hpa hpa, sim_time at_ps)
{
    struct core_group *c = &n->core_group[core_group_of(n, core)];

    if (SIM_LIKELY(c->pair && c->n_l1 > 2)) {
        const struct cache l1i = l1_of_pair(c, 2 + (core & 1));
        const struct cache_place p = cache_place(&l1i, hpa.v >> LINE_LOG2);
        const uint32_t bit = cache_find_bit(&l1i, p);
        if (SIM_LIKELY(bit != 0)) {
            cache_touch_bit(&l1i, p, bit);
            return (struct numa_result){ at_ps + n->l1_ps, NUMA_L1 };
        }
    }
    return fetch_slow(n, c, core, hpa, at_ps);
}

bool numa_has_l1i(const struct numa *n)
{
    return n->params->cache->l1i_bytes > 0;
}

uint64_t numa_l1i_changes(const struct numa *n, unsigned core)
{
    return n->core_group[core_group_of(n, core)].l1i_changes[core & ((1u << n->l2_cores_log2) - 1)];
}

sim_time *numa_observed(struct numa *n, unsigned core)
{
    return &n->core_group[core_group_of(n, core)].observed_ps;
}

sim_time *numa_displaced_until(struct numa *n, unsigned core)
{
    return &n->core_group[core_group_of(n, core)].displaced_until_ps;
}

const sim_time *numa_contended_until(const struct numa *n)
{
    return &n->contended_until_ps;
}
