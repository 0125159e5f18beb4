/*
 * Coherence by home agents: cores and devices of a socket. What a home agent does for them is in
 * home_agent.c.
 *
 * Models:
 *   a hit in the socket's LLC or, if another core has the line, in that core; a miss goes to the
 *   line's home agent. A device's write updates a line that the LLC has; else it allocates there
 *   or, for another socket's memory, goes where remote_dma_write says. A device's read changes
 *   nothing.
 * Timing:
 *   idle load, local  = L2 + request + home agent + DRAM idle read + return
 *   idle load, remote = local + request flit + data flits + 2 one-way
 *   DMA write, hit    = IIO + request [+ core snoop]
 *   DMA write, miss   = hit + ownership + (if a dirty victim) request + home agent, the
 *   victim's way to its home agent or to the link to it, + what full queues (link, DRAM
 *   writes) hold it up; a core's fill waits for the latter, too.
 * Sources: docs/sources.md#a1, #a4 (DMA)
 */
#include "models/numa/numa_internal.h"

#include <math.h>
#include <stdlib.h>

/* ---- Cores ----------------------------------------------------------------------------------- */

/* The socket has the line, and other core groups of it may have copies: what the core may have. */
static enum line_state hit_load(struct numa *n, unsigned socket, struct holder h, uint32_t bit,
                                uint64_t line, sim_time *t, struct numa_result *result)
{
    const struct numa_cache_params *p = n->params->cache;
    const uint32_t word = holder_word(h);
    enum line_state state = line_state(word);
    uint32_t others = word & LINE_SHARERS_MASK & ~bit;
    const bool cores_only = h.cache == &n->socket[socket].filter;

    result->source = NUMA_LLC;
    if (others != 0 && (others & (others - 1)) == 0 && (word & bit) == 0 && state >= LINE_E) {
        const unsigned owner = socket * n->groups_per_socket + (unsigned)__builtin_ctz(others);
        const enum line_state was = core_group_downgrade(n, owner, line);
        NUMA_COUNT(n, socket, core_snoops);
        *t += was == LINE_M ? p->core_snoop_dirty_ps : p->core_snoop_clean_ps;
        if (was == LINE_M)
            state = LINE_M;
        if (was == LINE_I)
            others = 0; /* it had gone silently */
        else
            result->source = NUMA_PEER_CACHE;
    } else if (cores_only && others != 0) {
        *t += p->core_snoop_clean_ps;
        result->source = NUMA_PEER_CACHE;
    }
    holder_put(h, state, others | bit);
    return others == 0 && state >= LINE_E ? LINE_E : LINE_S;
}

static enum line_state hit_store(struct numa *n, unsigned socket, struct holder h, uint32_t bit,
                                 uint64_t line, sim_time *t, struct sim_stamp *stamp,
                                 struct numa_result *result)
{
    const struct numa_cache_params *p = n->params->cache;
    const uint32_t word = holder_word(h);
    const uint32_t others = word & LINE_SHARERS_MASK & ~bit;
    sim_time snooped_ps = *t;
    bool dirty = false;

    result->source = NUMA_LLC;
    if (others != 0) {
        dirty = agent_snoop_groups(n, socket, others, line, true);
        snooped_ps += dirty ? p->core_snoop_dirty_ps : p->core_snoop_clean_ps;
        if (dirty)
            result->source = NUMA_PEER_CACHE;
    }
    if (line_state(word) == LINE_S) {
        const struct home_answer a = home_agent_acquire(n, socket, line, WANT_OWN, READ_RFO, *t,
                                                        stamp);
        *t = a.done_ps;
        holder_put(h, LINE_E, bit);
    } else {
        holder_put(h, line_state(word), bit);
    }
    *t = SIM_MAX(*t, snooped_ps);
    return LINE_E;
}

/* No cache of the core's socket has the line, whose place in a fast LLC is known. The core asks at
 * t. */
static inline __attribute__((always_inline)) struct fetched
miss_fast(struct numa *n, unsigned socket, uint32_t bit, struct cache_place place, uint64_t line,
          bool store, sim_time t, struct numa_result *result)
{
    int way;

    NUMA_COUNT(n, socket, core_llc_misses);
    const struct home_answer a =
        store ? home_agent_acquire(n, socket, line, WANT_RFO, READ_RFO, t, NULL)
              : home_agent_acquire(n, socket, line, WANT_READ, READ_LOAD, t, NULL);
    const struct victim victim = agent_insert_fast(n, socket, place, a.grant, bit, false, t, &way);
    *result = (struct numa_result){
        SIM_MAX(a.done_ps, t + victim.waits_ps) + n->params->cache->llc_return_ps, a.source
    };
    return (struct fetched){ a.grant, agent_at(place, way) };
}

static struct fetched fetch_missed(struct numa *n, const struct core_group *group,
                                   struct cache_place place, uint64_t line, bool store,
                                   sim_time at_ps, struct numa_result *result)
{
    const sim_time t = at_ps + n->params->cache->llc_request_ps;

    agent_prefetch_next((struct holder){ &group->own->llc, place, -1 });
    return miss_fast(n, group->socket, group->sharer_bit, place, line, store, t, result);
}

static struct fetched fetch(struct numa *n, unsigned core, uint64_t line, bool store,
                            sim_time at_ps, struct sim_stamp *stamp, struct numa_result *result)
{
    const struct numa_cache_params *p = n->params->cache;
    const struct core_group *group = &n->core_group[core_group_of(n, core)];
    const unsigned socket = group->socket;
    const uint32_t bit = group->sharer_bit;
    struct holder h = agent_find(n, socket, line);
    sim_time t = at_ps + p->llc_request_ps;
    enum line_state state;

    /* The host has time until the next line is asked for, if this is a stream. */
    if (SIM_LIKELY(n->llc_fast))
        agent_prefetch_next(h);
    else
        agent_prefetch(n, socket, line + 1);
    if (h.way < 0 && SIM_LIKELY(n->llc_fast && stamp == NULL))
        return miss_fast(n, socket, bit, h.place, line, store, t, result);
    sim_stamp_mark(stamp, PART_CACHE, t);
    if (h.way < 0) {
        NUMA_COUNT(n, socket, core_llc_misses);
        const struct home_answer a = home_agent_acquire(
            n, socket, line, store ? WANT_RFO : WANT_READ, store ? READ_RFO : READ_LOAD, t, stamp);
        const struct victim victim = agent_insert_at(n, socket, h.cache, h.place, a.grant, bit, t,
                                                     &h.way);
        const sim_time there_ps = SIM_MAX(a.done_ps, t + victim.waits_ps);
        sim_stamp_mark(stamp, PART_DRAM, there_ps);
        result->source = a.source;
        result->done_ps = there_ps + p->llc_return_ps;
        sim_stamp_mark(stamp, PART_CACHE, result->done_ps);
        return (struct fetched){ a.grant, agent_at(h.place, h.way) };
    }
    NUMA_COUNT(n, socket, core_llc_hits);
    cache_touch(h.cache, h.place, h.way);
    state = store ? hit_store(n, socket, h, bit, line, &t, stamp, result)
                  : hit_load(n, socket, h, bit, line, &t, result);
    if (!p->inclusive && h.cache == &n->socket[socket].llc) {
        /* A victim cache gives the line up to the private caches. */
        const enum line_state held = line_state(holder_word(h));
        cache_drop(h.place, h.way);
        t += agent_insert(n, socket, line, held, bit, t).waits_ps;
        sim_stamp_mark(stamp, PART_DRAM, t);
    }
    result->done_ps = t + p->llc_return_ps;
    sim_stamp_mark(stamp, PART_CACHE, result->done_ps);
    return (struct fetched){ state, agent_at(h.place, h.way) };
}

/* The socket gives up its copy, which is at h. True if it was its own (E or M): nobody else has one
 * then. */
static bool drop_own(struct numa *n, unsigned socket, struct holder h, uint64_t line, bool *dirty)
{
    *dirty = false;
    if (h.way < 0)
        return false;
    const struct snooped s = agent_snoop_holder(n, socket, h, line, SNOOP_INVALIDATE);

    *dirty = s.was == LINE_M;
    return s.was >= LINE_E;
}

static sim_time store_nt(struct numa *n, unsigned core, uint64_t line, sim_time at_ps,
                         struct sim_stamp *stamp)
{
    const unsigned socket = n->core_group[core_group_of(n, core)].socket;
    sim_time t = at_ps + n->l2_ps + n->params->cache->llc_request_ps;
    bool dirty;

    sim_stamp_mark(stamp, PART_CORE, at_ps + n->l2_ps);
    sim_stamp_mark(stamp, PART_CACHE, t);
    /* The old content of our own copy need not be kept: the whole line is replaced. */
    if (!drop_own(n, socket, agent_find(n, socket, line), line, &dirty))
        t = home_agent_acquire(n, socket, line, WANT_OWN, READ_RFO, t, stamp).done_ps;
    return home_agent_write_owned(n, socket, line, WRITE_NT, t, stamp);
}

static sim_time flush(struct numa *n, unsigned core, uint64_t line, sim_time at_ps)
{
    const unsigned socket = n->core_group[core_group_of(n, core)].socket;
    sim_time t = at_ps + n->l2_ps + n->params->cache->llc_request_ps;
    bool dirty;

    if (!drop_own(n, socket, agent_find(n, socket, line), line, &dirty)) {
        t = home_agent_acquire(n, socket, line, WANT_OWN, READ_RFO, t, NULL).done_ps;
        /* Nobody keeps a copy, nor does the requester; the next owner finds the directory as it
         * is, which may name this socket. */
    }
    if (dirty)
        t += agent_write_home(n, socket, line, WRITE_FLUSH, t);
    return t + n->params->cache->llc_return_ps;
}

/* ---- Devices --------------------------------------------------------------------------------- */

/* The line is in the LLC, and no core of the socket has a copy. */
static inline bool line_is_llcs_only(const struct cache *llc, struct holder h)
{
    return h.cache == llc && (h.place.row->shared >> h.way & 1u) == 0;
}

static __attribute__((noinline)) sim_time dma_read_rest(struct numa *n, unsigned socket,
                                                        uint64_t line, sim_time at_ps,
                                                        struct sim_stamp *stamp,
                                                        enum numa_source *source)
{
    const struct numa_cache_params *p = n->params->cache;
    sim_time t = at_ps + p->iio_ps + p->llc_request_ps;
    const struct holder h = agent_find(n, socket, line);

    sim_stamp_mark(stamp, PART_CACHE, t);
    if (h.way >= 0) {
        NUMA_COUNT(n, socket, dma_read_hits);
        /* Data that only the LLC has need no look at cores. */
        if (!line_is_llcs_only(&n->socket[socket].llc, h))
            t += agent_snoop_holder(n, socket, h, line, SNOOP_LOOK).core_ps;
        *source = NUMA_LLC;
    } else {
        NUMA_COUNT(n, socket, dma_read_misses);
        const struct home_answer a = home_agent_acquire(n, socket, line, WANT_LOOK, READ_DMA, t,
                                                        stamp);
        *source = a.source;
        t = a.done_ps;
    }
    t += p->llc_return_ps;
    sim_stamp_mark(stamp, PART_CACHE, t);
    return t;
}

/* A fast LLC has the line: what nearly all reads find. As agent_snoop_holder() to look; the rest
 * looks the line up again: to hand over where it was would cost the plain hit more than that. */
static sim_time dma_read(struct numa *n, unsigned socket, uint64_t line, sim_time at_ps,
                         struct sim_stamp *stamp, enum numa_source *source)
{
    const struct numa_cache_params *p = n->params->cache;

    if (SIM_LIKELY(n->llc_fast && stamp == NULL)) {
        const struct cache llc = llc_fast(&n->socket[socket].llc);
        const struct cache_place place = cache_place(&llc, line);
        const uint32_t bit = cache_find_bit(&llc, place);
        if (SIM_LIKELY(bit != 0)) {
            sim_time t = at_ps + p->iio_ps + p->llc_request_ps + p->llc_return_ps;
            NUMA_COUNT(n, socket, dma_read_hits);
            *source = NUMA_LLC;
            if ((bit & place.row->shared & place.row->owned) != 0)
                t += agent_look_ps(n, socket, cache_sharers(&llc, place, __builtin_ctz(bit)), line);
            return t;
        }
    }
    return dma_read_rest(n, socket, line, at_ps, stamp, source);
}

/* dma_read() of each line. */
static struct numa_run_done dma_read_run(struct numa *n, unsigned socket,
                                         const struct numa_run *run)
{
    const struct numa_cache_params *p = n->params->cache;
    const sim_time hit_ps = p->iio_ps + p->llc_request_ps + p->llc_return_ps;
    const struct cache llc = llc_fast(&n->socket[socket].llc);
    const bool fast = n->llc_fast;
    struct run_line l = run_first(run);
    struct numa_run_done done = { 0, 0 };
    uint64_t hits = 0;
    enum numa_source source;

    do {
        const struct cache_place place = cache_place(&llc, l.line);
        const uint32_t bit = fast ? cache_find_bit(&llc, place) : 0;
        if (SIM_UNLIKELY(bit == 0)) {
            run_count(&done, run, &l, dma_read_rest(n, socket, l.line, l.at_ps, NULL, &source));
            continue;
        }
        sim_time t = l.at_ps + hit_ps;
        if ((bit & place.row->shared & place.row->owned) != 0)
            t += agent_look_ps(n, socket, cache_sharers(&llc, place, __builtin_ctz(bit)), l.line);
        run_count(&done, run, &l, t);
        hits++;
    } while (run_next(&l, run));
    if (SIM_LIKELY(!n->quiet))
        n->socket[socket].counters.dma_read_hits += hits;
    return done;
}

/* The line is in this socket: the cores' copies go, the data are put where the line is. */
static sim_time update(struct numa *n, unsigned socket, struct holder h, uint64_t line,
                       sim_time at_ps, struct sim_stamp *stamp)
{
    const struct numa_cache_params *p = n->params->cache;
    const uint32_t word = holder_word(h);
    const uint32_t sharers = word & LINE_SHARERS_MASK;
    const bool shared = line_state(word) == LINE_S;
    sim_time t = at_ps;

    if (sharers != 0) {
        const bool dirty = agent_snoop_groups(n, socket, sharers, line, true);
        t += dirty ? p->core_snoop_dirty_ps : p->core_snoop_clean_ps;
    }
    if (shared) {
        const sim_time owned_ps =
            home_agent_acquire(n, socket, line, WANT_OWN, READ_DMA, at_ps, stamp).done_ps;
        t = SIM_MAX(t, owned_ps);
    }
    if (h.cache == &n->socket[socket].llc) {
        holder_put(h, LINE_M, 0);
        cache_touch(h.cache, h.place, h.way);
    } else {
        cache_drop(h.place, h.way);
        sim_stamp_mark(stamp, PART_CACHE, t);
        t += agent_insert(n, socket, line, LINE_M, 0, t).waits_ps;
        sim_stamp_mark(stamp, PART_DRAM, t);
    }
    NUMA_COUNT(n, socket, dma_write_updates);
    return t;
}

/* remote_dma_write = dram_invalidate: the data go to the home agent with the request. own: the copy
 * of the device's socket. */
static sim_time write_to_dram(struct numa *n, unsigned socket, struct holder own, uint64_t line,
                              bool full, sim_time at_ps, struct sim_stamp *stamp)
{
    bool dirty;

    /* A partial write keeps the rest: a modified copy of ours is written back first. */
    drop_own(n, socket, own, line, &dirty);
    if (dirty && !full) {
        at_ps += agent_write_home(n, socket, line, WRITE_SNOOP, at_ps);
        sim_stamp_mark(stamp, PART_DRAM, at_ps);
    }
    NUMA_COUNT(n, socket, dma_write_to_dram);
    return home_agent_write(n, socket, line, full, at_ps, stamp);
}

/* remote_dma_write = own_then_dram: ownership is asked for without the data, which go home when it
 * has come. A partial write reads the line with it. own: the copy of the device's socket. */
static sim_time own_then_dram(struct numa *n, unsigned socket, struct holder own, uint64_t line,
                              bool full, sim_time at_ps, struct sim_stamp *stamp)
{
    bool dirty;
    sim_time t = at_ps;

    /* A modified copy of ours is what a partial write changes: it is not written back before. */
    if (!drop_own(n, socket, own, line, &dirty))
        t = home_agent_acquire(n, socket, line, full ? WANT_OWN : WANT_RFO, READ_DMA, t, stamp)
                .done_ps;
    NUMA_COUNT(n, socket, dma_write_to_dram);
    return home_agent_write_owned(n, socket, line, WRITE_DMA, t, stamp);
}

/* The line goes into this socket's LLC; h: agent_find(); at_ps: the slice's answer. */
static sim_time write_to_llc(struct numa *n, unsigned socket, struct holder h, uint64_t line,
                             bool full, sim_time at_ps, struct sim_stamp *stamp,
                             enum numa_source *source)
{
    struct victim displaced;
    sim_time t;
    int way;

    if (h.way >= 0) {
        *source = NUMA_LLC;
        return update(n, socket, h, line, at_ps, stamp);
    }
    NUMA_COUNT(n, socket, dma_write_allocates);
    t = home_agent_acquire(n, socket, line, full ? WANT_OWN : WANT_RFO, READ_DMA, at_ps, stamp)
            .done_ps;
    /* The way is free once the victim's data are with a home agent or on the link to one. */
    if (h.cache == &n->socket[socket].llc)
        displaced = agent_insert_at(n, socket, h.cache, h.place, LINE_M, 0, t, &way);
    else
        displaced = agent_insert(n, socket, line, LINE_M, 0, t);
    if (displaced.dirty)
        t += n->params->cache->llc_request_ps + n->params->coherence->home_agent_ps;
    sim_stamp_mark(stamp, PART_CACHE, t);
    t += displaced.waits_ps;
    sim_stamp_mark(stamp, PART_DRAM, t);
    return t;
}

/*
 * remote_dma_write = own_then_both: as into the own LLC, and the data also go to the home's DRAM at
 * once. The line stays in the own LLC, exclusive (WbMtoE), which the directory says from then on.
 */
static sim_time own_then_both(struct numa *n, unsigned socket, struct holder own, uint64_t line,
                              bool full, sim_time at_ps, struct sim_stamp *stamp,
                              enum numa_source *source)
{
    sim_time t = write_to_llc(n, socket, own, line, full, at_ps, stamp, source);
    const struct holder h = agent_find(n, socket, line);

    cache_put_state(h.place, h.way, LINE_E);
    sim_stamp_mark(stamp, PART_CACHE, t);
    t += home_agent_write_kept(n, socket, line, t);
    sim_stamp_mark(stamp, PART_DRAM, t);
    NUMA_COUNT(n, socket, dma_write_to_dram);
    return t;
}

/*
 * remote_dma_write = home_llc, a design that no machine has (IOctopus, section 2.4): the data cross
 * the interconnect and go on as if a device of the home's socket had written them. The device's own
 * socket keeps no copy; a modified one completes a partial write.
 */
static sim_time write_to_home_llc(struct numa *n, unsigned socket, struct holder own, uint64_t line,
                                  bool full, sim_time at_ps, struct sim_stamp *stamp,
                                  enum numa_source *source)
{
    const unsigned home = home_of(n, line);
    bool dirty;

    drop_own(n, socket, own, line, &dirty);
    sim_time t = numa_send(n, socket, home, MESSAGE_WRITEBACK, at_ps);
    sim_stamp_mark(stamp, PART_INTERCONNECT, t);
    t += n->params->coherence->snoop_lookup_ps;
    sim_stamp_mark(stamp, PART_CACHE, t);
    t = write_to_llc(n, home, agent_find(n, home, line), line, full || dirty, t, stamp, source);
    sim_stamp_mark(stamp, PART_CACHE, t);
    if (*source == NUMA_LLC)
        *source = NUMA_REMOTE_CACHE;
    t = numa_send(n, home, socket, MESSAGE_RESPONSE, t);
    sim_stamp_mark(stamp, PART_INTERCONNECT, t);
    NUMA_COUNT(n, socket, dma_write_pushes);
    return t;
}

/* Where a write of a device here to the line goes, if its LLC has the line or may take it: into
 * that LLC, for another socket's memory as remote_dma_write says; with DDIO off to DRAM. */
static enum remote_dma_write write_policy(const struct numa *n, unsigned socket, uint64_t line)
{
    if (!n->params->cache->ddio)
        return REMOTE_DMA_DRAM_INVALIDATE;
    return home_of(n, line) == socket
               ? REMOTE_DMA_DEVICE_SIDE_LLC
               : (enum remote_dma_write)n->params->coherence->remote_dma_write;
}

/* What numa_warm_by_misses() makes of a write that would allocate in an LLC: it goes to DRAM
 * instead. A line that cores of the device's socket read, or of the home's with home_llc, comes
 * into that LLC by their misses then. own_then_both: what is read at home never comes into the
 * device's LLC, and the rest of the warm-up fills its DDIO ways. own: the copy of the device's
 * socket. */
static enum remote_dma_write without_allocation(struct numa *n, enum remote_dma_write policy,
                                                struct holder own, uint64_t line)
{
    const bool home_llc = policy == REMOTE_DMA_HOME_LLC;

    if (home_llc ? agent_find(n, home_of(n, line), line).way >= 0 : own.way >= 0)
        return policy;
    if (home_llc || policy == REMOTE_DMA_DEVICE_SIDE_LLC)
        return REMOTE_DMA_DRAM_INVALIDATE;
    return policy == REMOTE_DMA_OWN_THEN_BOTH ? REMOTE_DMA_OWN_THEN_DRAM : policy;
}

/* All but what dma_write() does itself. */
static __attribute__((noinline)) sim_time dma_write_rest(struct numa *n, unsigned socket,
                                                         uint64_t line, bool full, sim_time at_ps,
                                                         struct sim_stamp *stamp,
                                                         enum numa_source *source)
{
    const struct numa_cache_params *p = n->params->cache;
    const struct holder h = agent_find(n, socket, line);
    enum remote_dma_write policy = write_policy(n, socket, line);
    if (SIM_UNLIKELY(n->io_fills_none))
        policy = without_allocation(n, policy, h, line);

    at_ps += p->iio_ps + p->llc_request_ps; /* the slice's answer */
    sim_stamp_mark(stamp, PART_CACHE, at_ps);
    *source = home_of(n, line) == socket ? NUMA_LOCAL_DRAM : NUMA_REMOTE_DRAM;
    if (policy == REMOTE_DMA_DRAM_INVALIDATE)
        return write_to_dram(n, socket, h, line, full, at_ps, stamp);
    if (policy == REMOTE_DMA_HOME_LLC)
        return write_to_home_llc(n, socket, h, line, full, at_ps, stamp, source);
    if (policy == REMOTE_DMA_OWN_THEN_DRAM)
        return own_then_dram(n, socket, h, line, full, at_ps, stamp);
    if (policy == REMOTE_DMA_OWN_THEN_BOTH)
        return own_then_both(n, socket, h, line, full, at_ps, stamp, source);
    const sim_time t = write_to_llc(n, socket, h, line, full, at_ps, stamp, source);
    sim_stamp_mark(stamp, PART_CACHE, t);
    return t;
}

/* A fast LLC owns the line, and a write belongs there: what nearly all writes find. As update().
 * True: *t, the slice's answer, is when it is done. False: nothing has changed. */
static inline __attribute__((always_inline)) bool
write_hit(struct numa *n, unsigned socket, const struct cache *llc, uint64_t line, sim_time *t)
{
    const struct cache_place place = cache_place(llc, line);
    const uint32_t bit = cache_find_bit(llc, place);

    if ((bit & place.row->owned) == 0)
        return false;
    if ((bit & place.row->shared) != 0) {
        const struct numa_cache_params *p = n->params->cache;
        const uint32_t sharers = cache_sharers(llc, place, __builtin_ctz(bit));
        const bool dirty = agent_drop_from_groups(n, socket, sharers, line);
        *t += dirty ? p->core_snoop_dirty_ps : p->core_snoop_clean_ps;
    }
    cache_put_state_bit(place, bit, LINE_M);
    cache_put_sharers_bit(llc, place, bit, 0);
    cache_touch_bit(llc, place, bit);
    return true;
}

/* own_then_both() of a whole line that the device's socket does not have, with a fast LLC; false:
 * it has it, and nothing has changed. *t: the slice's answer, then when it is done. */
static inline __attribute__((always_inline)) bool own_then_both_fast(struct numa *n,
                                                                     unsigned socket,
                                                                     const struct cache *llc,
                                                                     uint64_t line, sim_time *t)
{
    const struct cache_place place = cache_place(llc, line);

    if (cache_find_bit(llc, place) != 0)
        return false;
    *t = home_agent_own_then_both(n, socket, place, line, *t);
    return true;
}

static sim_time dma_write(struct numa *n, unsigned socket, uint64_t line, bool full, sim_time at_ps,
                          struct sim_stamp *stamp, enum numa_source *source)
{
    const struct numa_cache_params *p = n->params->cache;
    const struct cache llc = llc_fast(&n->socket[socket].llc);
    sim_time t = at_ps + p->iio_ps + p->llc_request_ps;

    if (SIM_UNLIKELY(!n->llc_fast || stamp != NULL) ||
        write_policy(n, socket, line) != REMOTE_DMA_DEVICE_SIDE_LLC ||
        !write_hit(n, socket, &llc, line, &t))
        return dma_write_rest(n, socket, line, full, at_ps, stamp, source);
    NUMA_COUNT(n, socket, dma_write_updates);
    *source = NUMA_LLC;
    return t;
}

/* dma_write() of each line; all have one home. */
static struct numa_run_done dma_write_run(struct numa *n, unsigned socket,
                                          const struct numa_run *run)
{
    const struct numa_cache_params *p = n->params->cache;
    const sim_time hit_ps = p->iio_ps + p->llc_request_ps;
    const struct cache llc = llc_fast(&n->socket[socket].llc);
    struct run_line l = run_first(run);
    const enum remote_dma_write policy = write_policy(n, socket, l.line);
    const bool fast = n->llc_fast && policy == REMOTE_DMA_DEVICE_SIDE_LLC;
    const bool both = n->home_fast && !n->quiet && policy == REMOTE_DMA_OWN_THEN_BOTH &&
                      !n->io_fills_none;
    struct numa_run_done done = { 0, 0 };
    uint64_t updates = 0;
    enum numa_source source;

    do {
        sim_time t = l.at_ps + hit_ps;
        if (fast && SIM_LIKELY(write_hit(n, socket, &llc, l.line, &t)))
            updates++;
        else if (!both || l.bytes != LINE_BYTES || !own_then_both_fast(n, socket, &llc, l.line, &t))
            t = dma_write_rest(n, socket, l.line, l.bytes == LINE_BYTES, l.at_ps, NULL, &source);
        run_count(&done, run, &l, t);
    } while (run_next(&l, run));
    if (SIM_LIKELY(!n->quiet))
        n->socket[socket].counters.dma_write_updates += updates;
    return done;
}

static sim_time io_send(struct numa *n, unsigned from, unsigned to, enum message message,
                        sim_time at_ps)
{
    return numa_send(n, from, to, message, at_ps);
}

static struct stat_peak to_peak(const struct numa *n, unsigned from, unsigned to, sim_time now_ps)
{
    if (from == to)
        return (struct stat_peak){ 0, 0 };
    const struct calendar *link = &n->interconnect.link[from * n->sockets + to].calendar;
    const double bytes = n->params->interconnect->flit_payload_bytes;
    /* A slot may be cut by either edge. */
    return (struct stat_peak){ link->capacity * bytes * 1e12 / (double)link->slot_ps,
                               ((double)calendar_units_after(link, now_ps) + link->capacity) *
                                   bytes };
}

static sim_time idle_load_ps(const struct numa *n, unsigned from, unsigned home)
{
    const struct numa_cache_params *p = n->params->cache;
    sim_time t = n->l2_ps + p->llc_request_ps + n->params->coherence->home_agent_ps +
                 dram_idle_read_ps(&n->socket[home].dram) + p->llc_return_ps;

    if (from != home)
        t += interconnect_idle_ps(&n->interconnect, MESSAGE_REQUEST) +
             interconnect_idle_ps(&n->interconnect, MESSAGE_DATA);
    return t;
}

/* ---- Set-up and warming ---------------------------------------------------------------------- */

/* Every socket has memory of its own. */
static unsigned nodes(const struct numa_params *params)
{
    return params->cpu->sockets;
}

/* Ownership of a line that a remote device writes and that goes home at once; others keep their
 * lines longer than an entry of the I/O directory cache is to be held. */
static bool io_directory_used(const struct numa *n)
{
    const struct numa_coherence_params *p = n->params->coherence;

    return p->snoop_mode == SNOOP_MODE_DIRECTORY &&
           (p->remote_dma_write == REMOTE_DMA_OWN_THEN_DRAM ||
            p->remote_dma_write == REMOTE_DMA_OWN_THEN_BOTH);
}

/* See struct numa. */
static bool home_fast(const struct numa *n)
{
    const struct numa_coherence_params *p = n->params->coherence;
    bool fast = n->llc_fast && n->sockets == 2 && p->snoop_mode == SNOOP_MODE_DIRECTORY &&
                p->remote_trackers == 0 && p->io_trackers == 0;

    for (uint32_t i = 0; i < n->interconnect.n_links; i++)
        fast = fast && !n->interconnect.link[i].special;
    return fast;
}

static void init(struct numa *n)
{
    const uint64_t lines = UINT64_C(1) << (physmem_stride_log2(n->mem) - LINE_LOG2);

    interconnect_init(&n->interconnect, n->params->interconnect, n->sockets);
    n->light_ratio_256 = (uint32_t)llround(256 * n->params->coherence->broadcast_load_ratio);
    for (uint32_t i = 0; i < n->sockets; i++) {
        struct io_directory *io = &n->socket[i].io_directory;
        directory_init(&n->socket[i].directory, lines);
        io->n = io_directory_used(n) ? n->params->coherence->io_directory_entries : 0;
        io->free_ps = io->n != 0 ? sim_zalloc(io->n, sizeof(*io->free_ps)) : NULL;
    }
    agents_init(n);
    transactions_init(n);
    /* Where each transaction ID has a tracker, receivers take all that comes. */
    interconnect_follow_credits(&n->interconnect, n->params->coherence->remote_trackers != 0 ||
                                                      n->params->coherence->io_trackers != 0);
    for (uint32_t i = 0; i < n->interconnect.n_links; i++)
        if (n->interconnect.link[i].credits != NULL)
            n->interconnect.link[i].credits->wait_ps =
                &n->socket[i / n->sockets].counters.link_credit_wait_ps;
    n->home_fast = home_fast(n);
}

static void release(struct numa *n)
{
    agents_release(n);
    transactions_release(n);
    for (uint32_t i = 0; i < n->sockets; i++) {
        directory_release(&n->socket[i].directory);
        free(n->socket[i].io_directory.free_ps);
    }
    interconnect_release(&n->interconnect);
}

/* Of the lines those that are the home's. */
static void put_in_directory(struct numa *n, unsigned home, uint64_t first, uint64_t end,
                             enum directory_state state)
{
    const uint64_t begins = (uint64_t)home << n->node_log2_lines;
    const uint64_t ends = begins + (UINT64_C(1) << n->node_log2_lines);

    directory_set_range(&n->socket[home].directory, home_line(n, SIM_MAX(first, begins)),
                        SIM_MIN(end, ends) - begins, state);
}

static void drop(struct numa *n, uint64_t first, uint64_t end)
{
    agents_drop(n, first, end);
    for (unsigned home = home_of(n, first); home <= home_of(n, end - 1); home++)
        put_in_directory(n, home, first, end, DIRECTORY_I);
}

static void drop_all(struct numa *n)
{
    agents_clear(n);
    for (uint32_t i = 0; i < n->sockets; i++)
        directory_clear(&n->socket[i].directory);
}

/* The directory is not told of clean evictions. */
static void leave_stale(struct numa *n, unsigned socket, uint64_t first, uint64_t end)
{
    for (unsigned home = home_of(n, first); home <= home_of(n, end - 1); home++)
        if (home != socket)
            put_in_directory(n, home, first, end, DIRECTORY_A);
}

const struct coherence_ops coherence_home_ops = {
    .params_check = agents_params_check,
    .nodes = nodes,
    .init = init,
    .release = release,
    .fetch = fetch,
    .fetch_missed = fetch_missed,
    .writeback = agent_writeback,
    .store_nt = store_nt,
    .flush = flush,
    .dma_read = dma_read,
    .dma_write = dma_write,
    .dma_read_run = dma_read_run,
    .dma_write_run = dma_write_run,
    .io_send = io_send,
    .to_peak = to_peak,
    .idle_load_ps = idle_load_ps,
    .drop = drop,
    .drop_all = drop_all,
    .leave_stale = leave_stale,
    .llc_holder = agents_llc_holder,
    .check = coherence_home_check,
};
