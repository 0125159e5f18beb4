/*
 * Coherence by home agents: home snoop with an in-memory directory and opportunistic broadcast.
 *
 * Models:
 *   every miss of a socket's caching agent goes to the line's home agent, which reads
 *   DRAM (data and directory come together), looks into its own socket's caches, and
 *   snoops the other sockets if the directory says so, or at once if the link is lightly
 *   loaded (opportunistic broadcast). It answers when it knows enough:
 *     load, store   a cache that has the line answers at once; else DRAM and every snoop
 *                   that the directory asks for
 *     DMA read      DRAM and the snoop of the home's caches, whichever is later; a line
 *                   modified in a third place comes from there
 *     ownership     (full-line DMA write, non-temporal store, upgrade) from a remote
 *                   agent: the directory read, for which DRAM is read; a remote
 *                   device's line may be tracked by the I/O directory cache instead.
 *                   From the home's own socket: as long as the links are light, snoops
 *                   are broadcast and DRAM is not read; else the directory is
 *   Directory changes are DRAM writes, unless data is written to the line anyway.
 * Does not model: home-tracker limits, the directory cache for migratory lines (HitME), conflicts
 *   between concurrent requests to a line (a transaction is atomic).
 * Timing:
 *   idle load, local  = L2 + request + home agent + DRAM idle read + return
 *   idle load, remote = local + request flit + data flits + 2 one-way
 *   DMA write, hit    = IIO + request [+ core snoop]
 *   DMA write, miss   = hit + ownership + (if a dirty victim) request + home agent, the
 *   victim's way to its home agent or to the link to it, + what full queues (link, DRAM
 *   writes) hold it up; a core's fill waits for the latter, too. Ownership: local = home agent +
 *   2 one-way + 2 flits + snoop; remote = 2 one-way + 2 flits + home agent + DRAM.
 * Sources: docs/sources.md#a1, #a3 (snoop modes), #a4 (DMA)
 */
#include "models/numa/numa_internal.h"

#include <math.h>
#include <stdlib.h>

enum want {
    WANT_READ, /* a load */
    WANT_RFO,  /* data and ownership */
    WANT_OWN,  /* ownership only: the requester has the data or replaces all of it */
    WANT_LOOK  /* DMA read: data as they are now, no copy is kept */
};

static const enum snoop snoop_of[] = {
    [WANT_READ] = SNOOP_SHARE,
    [WANT_RFO] = SNOOP_INVALIDATE,
    [WANT_OWN] = SNOOP_INVALIDATE,
    [WANT_LOOK] = SNOOP_LOOK,
};

/* When the snoop of another socket was sent, was there, was answered. All 0: there was none. */
struct snoop_path {
    sim_time sent_ps, there_ps, answered_ps;
};

/* One transaction at a home agent. */
struct request {
    uint64_t line;
    unsigned from, home; /* sockets */
    enum want want;
    enum read_cause cause;
    sim_time home_ps;       /* the home agent has it */
    sim_time dram_ps;       /* data and directory are there; home_ps if DRAM is not read */
    sim_time reply_ps;      /* the last answer the home agent waits for */
    sim_time forward_ps;    /* data from another socket's cache reach the requester, or 0 */
    struct snoop_path path; /* that led to forward_ps, or else to reply_ps */
    enum directory_state directory, directory_then;
    sim_time waits_ps; /* the DRAM's full write queue holds up what the home agent writes */
    bool home_had;     /* the home's caches had a copy ... */
    bool home_dirty;   /* ... which was modified */
    bool others_keep;  /* a socket besides requester and home may have a copy afterwards */
    bool wrote;        /* data were written to the line in DRAM: the directory goes with them */
    bool tracked;      /* by the I/O directory cache: the directory is neither read nor changed */
    bool blind;        /* ownership without a look at the directory: everybody is asked */
};

struct answer {
    sim_time done_ps; /* at the requesting agent, ring included */
    enum numa_source source;
    enum line_state grant;
};

/* The home agent writes the line, or its directory alone, and keeps the transaction open until the
 * write queue has accepted that. */
static void write_home(struct numa *n, struct request *q, enum write_cause cause, sim_time at_ps)
{
    const sim_time accepted_ps = numa_dram_write(n, q->line, cause, at_ps);

    q->waits_ps = SIM_MAX(q->waits_ps, accepted_ps - at_ps);
}

/* The home agent looks into its own socket's caches for a remote requester. */
static void snoop_home(struct numa *n, struct request *q)
{
    const struct snooped s = agent_snoop(n, q->home, q->line, snoop_of[q->want]);

    q->reply_ps = q->home_ps + n->params->coherence->snoop_lookup_ps + s.core_ps;
    q->home_had = s.was != LINE_I;
    q->home_dirty = s.was == LINE_M;
    if (q->home_dirty && (q->want == WANT_READ || q->want == WANT_OWN)) {
        write_home(n, q, WRITE_SNOOP, q->reply_ps);
        q->wrote = true;
    }
}

/* Another socket answers a snoop: data to the requester if it had them modified. */
static void answer_snoop(struct numa *n, struct request *q, unsigned socket, enum line_state was,
                         struct snoop_path path)
{
    const bool dirty = was == LINE_M;
    const sim_time t = path.answered_ps;

    if (dirty && q->want != WANT_OWN) {
        q->forward_ps = numa_send(n, socket, q->from, MESSAGE_DATA, t);
        q->path = path;
        if (q->from != q->home)
            numa_send(n, socket, q->home, MESSAGE_RESPONSE, t);
    } else {
        const enum message m = dirty ? MESSAGE_WRITEBACK : MESSAGE_RESPONSE;
        const sim_time back_ps = numa_send(n, socket, q->home, m, t);
        if (back_ps > q->reply_ps && q->forward_ps == 0)
            q->path = path;
        q->reply_ps = SIM_MAX(q->reply_ps, back_ps);
    }
    if (dirty && (q->want == WANT_READ || q->want == WANT_OWN)) {
        if (q->want == WANT_READ && q->from != q->home)
            numa_send(n, socket, q->home, MESSAGE_WRITEBACK, t);
        write_home(n, q, WRITE_SNOOP, t);
        q->wrote = true;
    }
    if (was != LINE_I && q->want != WANT_RFO && q->want != WANT_OWN)
        q->others_keep = true;
}

/* The home agent may send the socket a snoop before it knows the directory. */
static bool may_broadcast(const struct numa *n, const struct request *q, unsigned socket)
{
    return n->params->coherence->opportunistic_broadcast &&
           interconnect_light(&n->interconnect, q->home, socket, q->home_ps, n->light_ratio_256);
}

/* Ownership for an agent of the home's socket: snoops to all others spare the DRAM read of the
 * directory, if the home agent may send them. */
static bool broadcast_instead(const struct numa *n, const struct request *q)
{
    if (q->want != WANT_OWN || q->from != q->home)
        return false;
    for (unsigned s = 0; s < n->sockets; s++) {
        if (s != q->home && !may_broadcast(n, q, s))
            return false;
    }
    return true;
}

static void snoop_others(struct numa *n, struct request *q)
{
    const struct numa_coherence_params *p = n->params->coherence;
    const bool own = q->want == WANT_RFO || q->want == WANT_OWN;
    const bool blind = q->blind;
    const bool must = blind || q->directory == DIRECTORY_A || (own && q->directory == DIRECTORY_S);
    bool found = false, asked = false;

    if (!must && q->directory == DIRECTORY_S)
        q->others_keep = true;
    if (n->sockets == 2 && q->from != q->home)
        return;
    for (unsigned s = 0; s < n->sockets; s++) {
        if (s == q->from || s == q->home)
            continue;
        const bool early = blind || may_broadcast(n, q, s);
        if (!must && !early)
            continue;
        const sim_time send_ps = early ? q->home_ps : q->dram_ps;
        const sim_time there_ps = numa_send(n, q->home, s, MESSAGE_SNOOP, send_ps);
        const sim_time looked_ps = there_ps + p->snoop_lookup_ps;
        NUMA_COUNT(n, q->home, snoops_sent);
        if (!must) { /* nobody waits for the answer, and there is nothing to find */
            numa_send(n, s, q->home, MESSAGE_RESPONSE, looked_ps);
            continue;
        }
        asked = true;
        /* What the directory does not know of is not there: no look into the host's memory. */
        const struct snooped r = q->directory == DIRECTORY_I
                                     ? (struct snooped){ LINE_I, 0 }
                                     : agent_snoop(n, s, q->line, snoop_of[q->want]);
        found |= r.was != LINE_I;
        answer_snoop(n, q, s, r.was,
                     (struct snoop_path){ send_ps, there_ps, looked_ps + r.core_ps });
    }
    /* All others have been asked: what the directory says of them is known now. A look changes
     * nothing but may find that nobody has it any more. A blind snoop that found nothing leaves
     * the directory unread. */
    if (q->from != q->home || !asked)
        return;
    if (blind ? found : (own || !found))
        q->directory_then = DIRECTORY_I;
    else if (found && q->want == WANT_READ)
        q->directory_then = DIRECTORY_S;
}

/* What the requester may have, and what the directory says then. */
static enum line_state grant(struct request *q)
{
    const bool remote = q->from != q->home;

    if (q->want == WANT_LOOK)
        return LINE_I;
    if (q->want != WANT_READ) {
        if (remote && !q->tracked)
            q->directory_then = DIRECTORY_A;
        return LINE_E;
    }
    const bool alone = !q->home_had && !q->others_keep;
    if (remote && alone && q->directory != DIRECTORY_S)
        q->directory_then = DIRECTORY_A;
    else if (remote)
        q->directory_then = DIRECTORY_S;
    return alone && !(remote && q->directory == DIRECTORY_S) ? LINE_E : LINE_S;
}

/* When the home agent answers, and from where the data come. */
static sim_time answer_ps(const struct request *q, enum numa_source *source)
{
    const bool remote = q->from != q->home;

    *source = remote ? NUMA_REMOTE_DRAM : NUMA_LOCAL_DRAM;
    if (q->home_had && q->want != WANT_OWN) {
        *source = NUMA_REMOTE_CACHE;
        /* A load is answered by the home's cache at once. So is a store if the cache owned the
         * line; if it was shared, others have to be asked first. */
        if (q->want == WANT_READ || (q->want == WANT_RFO && q->home_dirty))
            return q->reply_ps;
    }
    return SIM_MAX(q->dram_ps, q->reply_ps);
}

/* What the home agent has waited for until ready_ps, or for a forward until it was sent. */
static void mark_wait(const struct request *q, sim_time ready_ps, struct sim_stamp *stamp)
{
    if (stamp == NULL)
        return;
    if (q->forward_ps == 0 && ready_ps == q->dram_ps) {
        sim_stamp_mark(stamp, PART_DRAM, ready_ps);
        return;
    }
    if (q->path.sent_ps == 0) {
        sim_stamp_mark(stamp, PART_CACHE, ready_ps); /* the home's own caches */
        return;
    }
    sim_stamp_mark(stamp, PART_DRAM, q->path.sent_ps); /* the directory was waited for */
    sim_stamp_mark(stamp, PART_INTERCONNECT, q->path.there_ps);
    sim_stamp_mark(stamp, PART_CACHE, q->path.answered_ps);
    if (q->forward_ps == 0)
        sim_stamp_mark(stamp, PART_INTERCONNECT, ready_ps);
}

/* Ownership of a line that a remote device writes and that goes home at once; others keep their
 * lines longer than an entry of the I/O directory cache is to be held. */
static bool track(struct numa *n, const struct request *q, enum read_cause cause)
{
    struct io_directory *d = &n->socket[q->home].io_directory;

    if (q->want != WANT_OWN || cause != READ_DMA || q->from == q->home || n->quiet || d->n == 0 ||
        n->params->coherence->remote_dma_write != REMOTE_DMA_OWN_THEN_DRAM)
        return false;
    const bool taken = io_directory_take(d, q->home_ps);
    if (taken)
        NUMA_COUNT(n, q->home, io_directory_hits);
    else
        NUMA_COUNT(n, q->home, io_directory_misses);
    return taken;
}

static struct answer acquire(struct numa *n, unsigned from, uint64_t line, enum want want,
                             enum read_cause cause, sim_time at_ps, struct sim_stamp *stamp)
{
    const struct numa_coherence_params *p = n->params->coherence;
    struct request q = { .line = line, .from = from, .home = home_of(n, line), .want = want };
    struct directory *directory = &n->socket[q.home].directory;
    const bool remote = from != q.home;
    struct answer a;

    q.home_ps = remote ? numa_send(n, from, q.home, MESSAGE_REQUEST, at_ps) : at_ps;
    sim_stamp_mark(stamp, PART_INTERCONNECT, q.home_ps);
    q.home_ps += p->home_agent_ps;
    sim_stamp_mark(stamp, PART_CACHE, q.home_ps);
    q.directory = q.directory_then = directory_get(directory, home_line(n, line));
    q.dram_ps = q.reply_ps = q.home_ps;
    q.tracked = track(n, &q, cause);
    q.blind = q.tracked || broadcast_instead(n, &q);
    if (!q.blind)
        q.dram_ps = numa_dram_read(n, line, want == WANT_OWN ? READ_DIRECTORY : cause, q.home_ps);
    if (remote)
        snoop_home(n, &q);
    if (n->sockets > 1)
        snoop_others(n, &q);
    a.grant = grant(&q);

    const sim_time ready_ps = answer_ps(&q, &a.source);
    if (q.directory_then != q.directory) {
        directory_set(directory, home_line(n, line), q.directory_then);
        if (!q.wrote)
            write_home(n, &q, WRITE_DIRECTORY, SIM_MAX(ready_ps, q.dram_ps));
    }
    a.done_ps = ready_ps;
    mark_wait(&q, ready_ps, stamp);
    if (q.forward_ps != 0) {
        a.done_ps = q.forward_ps;
        a.source = NUMA_REMOTE_CACHE;
    } else if (remote) {
        a.done_ps = numa_send(n, q.home, from, want == WANT_OWN ? MESSAGE_RESPONSE : MESSAGE_DATA,
                              ready_ps);
    }
    sim_stamp_mark(stamp, PART_INTERCONNECT, a.done_ps);
    a.done_ps += q.waits_ps;
    sim_stamp_mark(stamp, PART_DRAM, a.done_ps);
    return a;
}

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
        const struct answer a = acquire(n, socket, line, WANT_OWN, READ_RFO, *t, stamp);
        *t = a.done_ps;
        holder_put(h, LINE_E, bit);
    } else {
        holder_put(h, line_state(word), bit);
    }
    *t = SIM_MAX(*t, snooped_ps);
    return LINE_E;
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
    agent_prefetch_next(n, h);
    sim_stamp_mark(stamp, PART_CACHE, t);
    if (h.way < 0) {
        NUMA_COUNT(n, socket, core_llc_misses);
        const struct answer a = acquire(n, socket, line, store ? WANT_RFO : WANT_READ,
                                        store ? READ_RFO : READ_LOAD, t, stamp);
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

/* A line that the socket owns is written to DRAM; returns when the socket knows that it was. */
static sim_time write_owned(struct numa *n, unsigned socket, uint64_t line, enum write_cause cause,
                            sim_time t, struct sim_stamp *stamp)
{
    const unsigned home = home_of(n, line);

    if (home != socket) {
        t = numa_send(n, socket, home, MESSAGE_WRITEBACK, t);
        directory_set(&n->socket[home].directory, home_line(n, line), DIRECTORY_I);
        sim_stamp_mark(stamp, PART_INTERCONNECT, t);
    }
    t += n->params->coherence->home_agent_ps;
    sim_stamp_mark(stamp, PART_CACHE, t);
    t = numa_dram_write(n, line, cause, t);
    if (cause == WRITE_DMA)
        t += n->params->coherence->write_accept_ps;
    sim_stamp_mark(stamp, PART_DRAM, t);
    io_directory_release(&n->socket[home].io_directory, t);
    if (home != socket)
        t = numa_send(n, home, socket, MESSAGE_RESPONSE, t);
    sim_stamp_mark(stamp, PART_INTERCONNECT, t);
    return t;
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
        t = acquire(n, socket, line, WANT_OWN, READ_RFO, t, stamp).done_ps;
    return write_owned(n, socket, line, WRITE_NT, t, stamp);
}

static sim_time flush(struct numa *n, unsigned core, uint64_t line, sim_time at_ps)
{
    const unsigned socket = n->core_group[core_group_of(n, core)].socket;
    sim_time t = at_ps + n->l2_ps + n->params->cache->llc_request_ps;
    bool dirty;

    if (!drop_own(n, socket, agent_find(n, socket, line), line, &dirty)) {
        t = acquire(n, socket, line, WANT_OWN, READ_RFO, t, NULL).done_ps;
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

static sim_time dma_read(struct numa *n, unsigned socket, uint64_t line, sim_time at_ps,
                         struct sim_stamp *stamp, enum numa_source *source)
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
        const struct answer a = acquire(n, socket, line, WANT_LOOK, READ_DMA, t, stamp);
        *source = a.source;
        t = a.done_ps;
    }
    t += p->llc_return_ps;
    sim_stamp_mark(stamp, PART_CACHE, t);
    return t;
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
            acquire(n, socket, line, WANT_OWN, READ_RFO, at_ps, stamp).done_ps;
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
    const struct numa_coherence_params *p = n->params->coherence;
    const unsigned home = home_of(n, line);
    struct request q = { .line = line, .from = socket, .home = home, .want = WANT_OWN };
    struct directory *directory = &n->socket[home].directory;
    const bool remote = home != socket;
    bool dirty;

    /* A partial write keeps the rest: a modified copy of ours is written back first. */
    drop_own(n, socket, own, line, &dirty);
    if (dirty && !full) {
        at_ps += agent_write_home(n, socket, line, WRITE_SNOOP, at_ps);
        sim_stamp_mark(stamp, PART_DRAM, at_ps);
    }
    sim_time t = remote ? numa_send(n, socket, home, MESSAGE_WRITEBACK, at_ps) : at_ps;
    sim_stamp_mark(stamp, PART_INTERCONNECT, t);
    q.home_ps = t + p->home_agent_ps;
    sim_stamp_mark(stamp, PART_CACHE, q.home_ps);
    q.directory = q.directory_then = directory_get(directory, home_line(n, line));
    /* As for ownership. */
    q.dram_ps = q.reply_ps = q.home_ps;
    q.blind = broadcast_instead(n, &q);
    if (!q.blind || !full)
        q.dram_ps = numa_dram_read(n, line, full ? READ_DIRECTORY : READ_DMA, q.home_ps);
    if (remote)
        snoop_home(n, &q);
    snoop_others(n, &q);
    t = SIM_MAX(q.dram_ps, q.reply_ps);
    mark_wait(&q, t, stamp);
    directory_set(directory, home_line(n, line), DIRECTORY_I); /* written with the data */
    t = numa_dram_write(n, line, WRITE_DMA, t + q.waits_ps) + p->write_accept_ps;
    sim_stamp_mark(stamp, PART_DRAM, t);
    if (remote)
        t = numa_send(n, home, socket, MESSAGE_RESPONSE, t);
    sim_stamp_mark(stamp, PART_INTERCONNECT, t);
    NUMA_COUNT(n, socket, dma_write_to_dram);
    return t;
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
        t = acquire(n, socket, line, full ? WANT_OWN : WANT_RFO, READ_DMA, t, stamp).done_ps;
    NUMA_COUNT(n, socket, dma_write_to_dram);
    return write_owned(n, socket, line, WRITE_DMA, t, stamp);
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
    t = acquire(n, socket, line, full ? WANT_OWN : WANT_RFO, READ_DMA, at_ps, stamp).done_ps;
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

/* Where a write of a device here to the line goes: into the own LLC, for another socket's memory as
 * remote_dma_write says; with DDIO off to DRAM. */
static enum remote_dma_write write_policy(const struct numa *n, unsigned socket, uint64_t line)
{
    if (!n->params->cache->ddio)
        return REMOTE_DMA_DRAM_INVALIDATE;
    return home_of(n, line) == socket
               ? REMOTE_DMA_DEVICE_SIDE_LLC
               : (enum remote_dma_write)n->params->coherence->remote_dma_write;
}

/* All but the plain hit; at_ps: the slice's answer. The line is looked up again: to hand over where
 * it was would cost the plain hit more than that. */
static __attribute__((noinline)) sim_time dma_write_rest(struct numa *n, unsigned socket,
                                                         uint64_t line, bool full, sim_time at_ps,
                                                         struct sim_stamp *stamp,
                                                         enum numa_source *source)
{
    const enum remote_dma_write policy = write_policy(n, socket, line);
    const struct holder h = agent_find(n, socket, line);

    *source = home_of(n, line) == socket ? NUMA_LOCAL_DRAM : NUMA_REMOTE_DRAM;
    if (policy == REMOTE_DMA_DRAM_INVALIDATE)
        return write_to_dram(n, socket, h, line, full, at_ps, stamp);
    if (policy == REMOTE_DMA_HOME_LLC)
        return write_to_home_llc(n, socket, h, line, full, at_ps, stamp, source);
    if (policy == REMOTE_DMA_OWN_THEN_DRAM)
        return own_then_dram(n, socket, h, line, full, at_ps, stamp);
    const sim_time t = write_to_llc(n, socket, h, line, full, at_ps, stamp, source);
    sim_stamp_mark(stamp, PART_CACHE, t);
    return t;
}

static sim_time dma_write(struct numa *n, unsigned socket, uint64_t line, bool full, sim_time at_ps,
                          struct sim_stamp *stamp, enum numa_source *source)
{
    const struct numa_cache_params *p = n->params->cache;
    const struct cache *llc = &n->socket[socket].llc;
    const struct holder h = agent_find(n, socket, line);
    sim_time t = at_ps + p->iio_ps + p->llc_request_ps;

    sim_stamp_mark(stamp, PART_CACHE, t);
    if (SIM_UNLIKELY(h.way < 0 || h.cache != llc || cache_state(h.place, h.way) == LINE_S ||
                     write_policy(n, socket, line) != REMOTE_DMA_DEVICE_SIDE_LLC))
        return dma_write_rest(n, socket, line, full, t, stamp, source);
    /* What update() comes to for a line that only this socket has: what nearly all writes find. */
    if (!line_is_llcs_only(llc, h)) {
        const uint32_t sharers = cache_sharers(llc, h.place, h.way);
        const bool dirty = agent_snoop_groups(n, socket, sharers, line, true);
        t += dirty ? p->core_snoop_dirty_ps : p->core_snoop_clean_ps;
        sim_stamp_mark(stamp, PART_CACHE, t);
    }
    cache_put(llc, h.place, h.way, LINE_M, 0);
    cache_touch(llc, h.place, h.way);
    NUMA_COUNT(n, socket, dma_write_updates);
    *source = NUMA_LLC;
    return t;
}

static sim_time io_send(struct numa *n, unsigned from, unsigned to, enum message message,
                        sim_time at_ps)
{
    return numa_send(n, from, to, message, at_ps);
}

static struct stat_peak to_peak(const struct numa *n, unsigned from, unsigned to, sim_time now_ps)
{
    const struct calendar *link = &n->interconnect.link[from * n->sockets + to].calendar;
    const double bytes = n->params->interconnect->flit_payload_bytes;

    if (from == to)
        return (struct stat_peak){ 0, 0 };
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

static void init(struct numa *n)
{
    const uint64_t lines = UINT64_C(1) << (physmem_stride_log2(n->mem) - LINE_LOG2);

    interconnect_init(&n->interconnect, n->params->interconnect, n->sockets);
    n->light_ratio_256 = (uint32_t)llround(256 * n->params->coherence->broadcast_load_ratio);
    for (uint32_t i = 0; i < n->sockets; i++) {
        struct io_directory *io = &n->socket[i].io_directory;
        directory_init(&n->socket[i].directory, lines);
        io->n = n->params->coherence->io_directory_entries;
        io->free_ps = io->n != 0 ? sim_zalloc(io->n, sizeof(*io->free_ps)) : NULL;
    }
    agents_init(n);
}

static void release(struct numa *n)
{
    agents_release(n);
    for (uint32_t i = 0; i < n->sockets; i++) {
        directory_release(&n->socket[i].directory);
        free(n->socket[i].io_directory.free_ps);
    }
    interconnect_release(&n->interconnect);
}

static void drop(struct numa *n, uint64_t line)
{
    for (uint32_t i = 0; i < n->sockets; i++)
        agent_snoop(n, i, line, SNOOP_INVALIDATE);
    directory_set(&n->socket[home_of(n, line)].directory, home_line(n, line), DIRECTORY_I);
}

static void drop_all(struct numa *n)
{
    agents_clear(n);
    for (uint32_t i = 0; i < n->sockets; i++)
        directory_clear(&n->socket[i].directory);
}

/* The directory is not told of clean evictions. */
static void leave_stale(struct numa *n, unsigned socket, uint64_t line)
{
    const unsigned home = home_of(n, line);

    if (home != socket)
        directory_set(&n->socket[home].directory, home_line(n, line), DIRECTORY_A);
}

const struct coherence_ops coherence_home_ops = {
    .params_check = agents_params_check,
    .nodes = nodes,
    .init = init,
    .release = release,
    .fetch = fetch,
    .writeback = agent_writeback,
    .store_nt = store_nt,
    .flush = flush,
    .dma_read = dma_read,
    .dma_write = dma_write,
    .io_send = io_send,
    .to_peak = to_peak,
    .idle_load_ps = idle_load_ps,
    .drop = drop,
    .drop_all = drop_all,
    .leave_stale = leave_stale,
    .llc_holder = agents_llc_holder,
    .check = coherence_home_check,
};
