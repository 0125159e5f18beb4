/*
 * The caching agent of one socket: the LLC with its sharer bits, or (non-inclusive LLC) LLC and
 * snoop filter.
 *
 * Models: inclusive LLC: every line of a private cache is in it, and goes from there when it is
 *   evicted here; sharer bits, which clean evictions of private caches leave set, and
 *   write-backs, too, with writeback_keeps_sharer; DDIO ways.
 *   Non-inclusive LLC: a victim cache of the private caches; lines that these hold are in the snoop
 *   filter instead.
 * Does not model: cache-line forwarding between slices, quad-age replacement.
 * Timing: a line that displaces a dirty one waits as long as full pools and queues (table, IDs,
 *   trackers, link, DRAM writes) hold up the write-back; the write-back's own way is not waited
 *   for. A snoop of cores adds core_snoop_clean or, if one had it modified, core_snoop_dirty; it is
 *   needed when exactly one core group may own a line, when copies must be invalidated, or when
 *   only cores hold the data (non-inclusive).
 * Sources: docs/sources.md#a1, docs/sources.md#a4, docs/sources.md#b (non-inclusive)
 */
#include "models/numa/numa_internal.h"

/* ---- Set-up ---------------------------------------------------------------------------------- */

bool agents_params_check(const struct numa_params *params, const char **why)
{
    const struct numa_cache_params *cache = params->cache;
    const struct numa_rule rules[] = {
        { cache->llc_bytes == 0,
          "cache.llc_size must not be 0: this coherence.protocol needs an LLC" },
        { !numa_sets_fit(cache->llc_bytes, cache->llc_slices, cache->llc_ways),
          "cache.llc_size / 64 / cache.llc_slices / cache.llc_ways must be a power of two" },
        { cache->ddio_ways > cache->llc_ways, "cache.ddio_ways must not exceed cache.llc_ways" },
    };

    return numa_rules_hold(rules, SIM_N_ELEMENTS(rules), why);
}

void agents_init(struct numa *n)
{
    const struct numa_cache_params *c = n->params->cache;
    const uint32_t sets = (uint32_t)(c->llc_bytes / LINE_BYTES / c->llc_slices / c->llc_ways);
    const uint64_t lines = numa_lines(n);
    const uint32_t ddio = (uint32_t)((UINT64_C(1) << c->ddio_ways) - 1);

    for (uint32_t i = 0; i < n->sockets; i++) {
        struct numa_socket *s = &n->socket[i];
        cache_init(&s->llc, c->llc_slices, sets, c->llc_ways, lines, n->groups_per_socket);
        if (!c->inclusive)
            cache_init(&s->filter, c->llc_slices, sets, c->filter_ways, lines,
                       n->groups_per_socket);
    }
    n->ddio_mask = ddio << (c->llc_ways - c->ddio_ways);
    const struct cache *llc = &n->socket[0].llc;
    n->llc_fast = c->inclusive && llc->ways == FAST_LLC_WAYS && llc->sets == FAST_LLC_SETS &&
                  llc->narrow;
}

void agents_release(struct numa *n)
{
    for (uint32_t i = 0; i < n->sockets; i++) {
        cache_release(&n->socket[i].llc);
        cache_release(&n->socket[i].filter);
    }
}

void agents_clear(struct numa *n)
{
    for (uint32_t i = 0; i < n->sockets; i++) {
        cache_clear(&n->socket[i].llc);
        if (n->socket[i].filter.row != NULL)
            cache_clear(&n->socket[i].filter);
    }
}

/* ---- Looking up and snooping ----------------------------------------------------------------- */

int agents_llc_holder(const struct numa *n, uint64_t line)
{
    for (unsigned s = 0; s < n->sockets; s++) {
        const struct cache *llc = &n->socket[s].llc;
        if (cache_find(llc, cache_place(llc, line)) >= 0)
            return (int)s;
    }
    return -1;
}

struct holder agent_find_anywhere(struct numa *n, unsigned socket, uint64_t line)
{
    struct numa_socket *s = &n->socket[socket];
    struct holder h = { .cache = &s->llc, .place = cache_place(&s->llc, line) };

    h.way = cache_find(h.cache, h.place);
    if (h.way < 0 && !n->params->cache->inclusive) {
        h.cache = &s->filter;
        h.place = cache_place(&s->filter, line);
        h.way = cache_find(h.cache, h.place);
    }
    return h;
}

bool agent_snoop_groups(struct numa *n, unsigned socket, uint32_t mask, uint64_t line,
                        bool invalidate)
{
    const unsigned first = socket * n->groups_per_socket;
    bool dirty = false;

    for (; mask != 0; mask &= mask - 1) {
        const unsigned group = first + (unsigned)__builtin_ctz(mask);
        const enum line_state was = invalidate ? core_group_invalidate(n, group, line)
                                               : core_group_downgrade(n, group, line);
        dirty |= was == LINE_M;
        NUMA_COUNT(n, socket, core_snoops);
    }
    return dirty;
}

/* Whether exactly one core group may have the line E, or M after it went from E to M silently. */
static bool may_be_owned(uint32_t word)
{
    const uint32_t sharers = word & LINE_SHARERS_MASK;

    return line_state(word) >= LINE_E && sharers != 0 && (sharers & (sharers - 1)) == 0;
}

static bool owner_is_dirty(const struct numa *n, unsigned socket, uint32_t sharers, uint64_t line)
{
    const unsigned group = socket * n->groups_per_socket + (unsigned)__builtin_ctz(sharers);

    return core_group_peek(n, group, line) == LINE_M;
}

sim_time agent_look_ps(const struct numa *n, unsigned socket, uint32_t sharers, uint64_t line)
{
    const struct numa_cache_params *p = n->params->cache;

    if (sharers == 0 || (sharers & (sharers - 1)) != 0)
        return 0;
    return owner_is_dirty(n, socket, sharers, line) ? p->core_snoop_dirty_ps
                                                    : p->core_snoop_clean_ps;
}

struct snooped agent_snoop_holder(struct numa *n, unsigned socket, struct holder h, uint64_t line,
                                  enum snoop snoop)
{
    const struct numa_cache_params *p = n->params->cache;
    const uint32_t word = holder_word(h);
    const uint32_t sharers = word & LINE_SHARERS_MASK;
    const bool in_cores_only = h.cache == &n->socket[socket].filter;
    struct snooped r = { line_state(word), 0 };
    bool asked = in_cores_only;
    bool dirty = false;

    if (snoop == SNOOP_INVALIDATE) {
        asked = sharers != 0;
        dirty = agent_snoop_groups(n, socket, sharers, line, true);
        cache_drop(h.place, h.way);
    } else if (may_be_owned(word)) {
        asked = true;
        if (snoop == SNOOP_SHARE)
            dirty = agent_snoop_groups(n, socket, sharers, line, false);
        else
            dirty = owner_is_dirty(n, socket, sharers, line);
    }
    if (dirty)
        r.was = LINE_M;
    if (snoop == SNOOP_SHARE)
        holder_put(h, LINE_S, sharers);
    if (asked)
        r.core_ps = dirty ? p->core_snoop_dirty_ps : p->core_snoop_clean_ps;
    return r;
}

/* Drops what a cache of the socket has of the lines; it may have none. */
static void drop_those_in(struct numa *n, unsigned socket, const struct cache *c, uint64_t first,
                          uint64_t end)
{
    for (uint32_t i = 0; c->row != NULL && i < c->slices * c->sets; i++) {
        const struct cache_place p = { cache_row(c, i), 0, i };
        for (uint32_t valid = p.row->valid; valid != 0; valid &= valid - 1) {
            const uint64_t line = cache_line_in(c, p, __builtin_ctz(valid));
            if (line >= first && line < end)
                agent_snoop(n, socket, line, SNOOP_INVALIDATE);
        }
    }
}

void agents_drop(struct numa *n, uint64_t first, uint64_t end)
{
    for (unsigned s = 0; s < n->sockets; s++) {
        const struct numa_socket *socket = &n->socket[s];
        if (end - first > (uint64_t)socket->llc.slices * socket->llc.sets) {
            drop_those_in(n, s, &socket->llc, first, end);
            drop_those_in(n, s, &socket->filter, first, end);
            continue;
        }
        for (uint64_t line = first; line < end; line++)
            agent_snoop(n, s, line, SNOOP_INVALIDATE);
    }
}

/* ---- Lines come and go ----------------------------------------------------------------------- */

sim_time agent_write_home(struct numa *n, unsigned socket, uint64_t line, enum write_cause cause,
                          sim_time at_ps)
{
    const unsigned home = home_of(n, line);
    sim_time idle_ps = at_ps;
    struct transaction held;
    sim_time t = numa_begin(n, &held, socket, line, false, at_ps);

    numa_directory_forget(n, line);
    if (home != socket) {
        idle_ps += interconnect_idle_ps(&n->interconnect, MESSAGE_WRITEBACK);
        t = numa_send(n, socket, home, MESSAGE_WRITEBACK, t);
    }
    t = numa_dram_write(n, line, cause, numa_arrive(n, &held, MESSAGE_WRITEBACK, t));
    numa_end(n, &held, t, home != socket ? numa_send(n, home, socket, MESSAGE_RESPONSE, t) : t);
    return t > idle_ps ? t - idle_ps : 0;
}

static inline __attribute__((always_inline)) struct victim evict(struct numa *n, unsigned socket,
                                                                 const struct cache *c,
                                                                 struct cache_place p, int way,
                                                                 bool for_device, sim_time at_ps)
{
    struct victim victim = { false, 0 };
    const uint64_t line = cache_line_in(c, p, way);
    const uint32_t sharers = cache_sharers(c, p, way);
    bool dirty = (p.row->dirty >> way & 1u) != 0;

    if (sharers != 0) {
        dirty |= agent_snoop_groups(n, socket, sharers, line, true);
        NUMA_COUNT(n, socket, llc_back_invalidations);
    }
    if (dirty)
        victim = (struct victim){ true, agent_write_home(
                                            n, socket, line,
                                            for_device ? WRITE_DDIO_VICTIM : WRITE_VICTIM, at_ps) };
    if (for_device) {
        NUMA_COUNT(n, socket, ddio_evictions);
        if (dirty)
            NUMA_COUNT(n, socket, ddio_dirty_evictions);
    }
    return victim;
}

struct victim agent_evict(struct numa *n, unsigned socket, const struct cache *c,
                          struct cache_place p, int way, bool for_device, sim_time at_ps)
{
    return evict(n, socket, c, p, way, for_device, at_ps);
}

static inline __attribute__((always_inline)) struct victim
insert_at(struct numa *n, unsigned socket, struct cache_place p, const struct cache *c,
          enum line_state state, uint32_t sharers, sim_time at_ps, int *way)
{
    const bool for_device = sharers == 0;
    const uint32_t bit = cache_victim_bit(p, for_device ? n->ddio_mask : c->all_ways);
    struct victim victim = { false, 0 };

    *way = __builtin_ctz(bit);
    if ((p.row->valid & bit) != 0)
        victim = evict(n, socket, c, p, *way, for_device, at_ps);
    cache_fill_bit(c, p, bit, state, sharers);
    return victim;
}

struct victim agent_insert_at(struct numa *n, unsigned socket, struct cache *c,
                              struct cache_place p, enum line_state state, uint32_t sharers,
                              sim_time at_ps, int *way)
{
    if (SIM_LIKELY(n->llc_fast)) {
        const struct cache known = llc_fast(c);
        return insert_at(n, socket, p, &known, state, sharers, at_ps, way);
    }
    return insert_at(n, socket, p, c, state, sharers, at_ps, way);
}

struct victim agent_insert(struct numa *n, unsigned socket, uint64_t line, enum line_state state,
                           uint32_t sharers, sim_time at_ps)
{
    struct numa_socket *s = &n->socket[socket];
    struct cache *c = n->params->cache->inclusive || sharers == 0 ? &s->llc : &s->filter;

    int way;

    return agent_insert_at(n, socket, c, cache_place(c, line), state, sharers, at_ps, &way);
}

/* Non-inclusive: the last copy of the private caches moves into the LLC. Returns how long the LLC's
 * victim is held up. */
static sim_time move_to_llc(struct numa *n, unsigned socket, uint64_t line, enum line_state state,
                            sim_time at_ps)
{
    struct victim victim = { false, 0 };
    struct cache *llc = &n->socket[socket].llc;
    const struct cache_place p = cache_place(llc, line);
    const int way = cache_victim(p, llc->all_ways);

    if (cache_holds(p, way))
        victim = evict(n, socket, llc, p, way, false, at_ps);
    cache_fill(llc, p, way, state, 0);
    return victim.waits_ps;
}

sim_time agent_writeback(struct numa *n, unsigned group, uint64_t line, uint32_t llc_at, bool dirty,
                         sim_time at_ps)
{
    const unsigned socket = n->core_group[group].socket;
    const struct holder h = n->core_group[group].llc_at != NULL
                                ? agent_holder_at(n, socket, llc_at)
                                : agent_find_anywhere(n, socket, line);

    SIM_ASSERT(h.way >= 0, "line %llx leaves a core but its socket does not know it",
               (unsigned long long)line);
    const struct numa_cache_params *p = n->params->cache;
    const uint32_t word = holder_word(h);
    const uint32_t leaves = p->inclusive && p->writeback_keeps_sharer
                                ? 0
                                : n->core_group[group].sharer_bit;
    const uint32_t sharers = word & LINE_SHARERS_MASK & ~leaves;
    const enum line_state state = dirty ? LINE_M : line_state(word);

    holder_put(h, state, sharers);
    if (h.cache != &n->socket[socket].filter || sharers != 0)
        return 0;
    cache_drop(h.place, h.way);
    return move_to_llc(n, socket, line, state, at_ps);
}
