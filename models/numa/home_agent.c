/*
 * A home agent: home snoop with an in-memory directory and opportunistic broadcast.
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
 *   Without a directory (snoop_mode) all others are snooped and all answers waited for: by
 *   the home agent (home) or, at the time of the request, by the requester's agent (early).
 *   Transactions hold entries of tables, IDs and trackers, and wait for them (transaction.h).
 * Does not model: the directory cache for migratory lines (HitME), conflicts
 *   between concurrent requests to a line (a transaction is atomic).
 * Timing:
 *   data: home agent + DRAM or a snoop, whichever is waited for. Ownership: local = home agent +
 *   2 one-way + 2 flits + snoop; remote = 2 one-way + 2 flits + home agent + DRAM.
 * Sources: docs/sources.md#a3
 */
#include "models/numa/numa_internal.h"

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
    unsigned from, home; /* sockets ... */
    bool remote;         /* ... that are not the same */
    enum want want;
    enum read_cause cause;
    sim_time home_ps;       /* the home agent has it */
    sim_time snoop_ps;      /* when other sockets may be snooped at the earliest ... */
    unsigned snooper;       /* ... and from which socket */
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
    bool fast;         /* numa.home_fast, and no caches are being warmed */
};

/*
 * The functions below are compiled for any machine, and for requests of some kinds on one that is
 * fast: then `fast`, `want` and whether the requester is another socket are constants.
 */

static inline __attribute__((always_inline)) sim_time send(struct numa *n, const struct request *q,
                                                           unsigned from, unsigned to,
                                                           enum message message, sim_time at_ps)
{
    return q->fast ? numa_send_fast(n, from, to, message, at_ps)
                   : numa_send(n, from, to, message, at_ps);
}

static inline __attribute__((always_inline)) struct snooped
look_into(struct numa *n, const struct request *q, unsigned socket)
{
    return q->fast ? agent_snoop_fast(n, socket, q->line, snoop_of[q->want])
                   : agent_snoop(n, socket, q->line, snoop_of[q->want]);
}

static inline __attribute__((always_inline)) bool has_directory(const struct numa *n,
                                                                const struct request *q)
{
    return q->fast || n->params->coherence->snoop_mode == SNOOP_MODE_DIRECTORY;
}

/* The home agent writes the line, or its directory alone, and keeps the transaction open until the
 * write queue has accepted that. */
static inline __attribute__((always_inline)) void write_home(struct numa *n, struct request *q,
                                                             enum write_cause cause, sim_time at_ps)
{
    const sim_time accepted_ps = q->fast ? numa_dram_write_fast(n, q->home, q->line, cause, at_ps)
                                         : numa_dram_write(n, q->line, cause, at_ps);

    q->waits_ps = SIM_MAX(q->waits_ps, accepted_ps - at_ps);
}

/* The home agent looks into its own socket's caches for a remote requester. */
static inline __attribute__((always_inline)) void snoop_home(struct numa *n, struct request *q)
{
    const struct snooped s = look_into(n, q, q->home);
    sim_time there_ps = q->home_ps;

    if (!q->fast && n->params->coherence->snoop_mode == SNOOP_MODE_EARLY)
        there_ps = send(n, q, q->from, q->home, MESSAGE_SNOOP, q->snoop_ps);
    q->reply_ps = there_ps + n->params->coherence->snoop_lookup_ps + s.core_ps;
    q->home_had = s.was != LINE_I;
    q->home_dirty = s.was == LINE_M;
    if (q->home_dirty && (q->want == WANT_READ || q->want == WANT_OWN)) {
        write_home(n, q, WRITE_SNOOP, q->reply_ps);
        q->wrote = true;
    }
}

/* Another socket answers a snoop: data to the requester if it had them modified. */
static inline __attribute__((always_inline)) void answer_snoop(struct numa *n, struct request *q,
                                                               unsigned socket, enum line_state was,
                                                               struct snoop_path path)
{
    const bool dirty = was == LINE_M;
    const sim_time t = path.answered_ps;

    if (dirty && q->want != WANT_OWN) {
        q->forward_ps = send(n, q, socket, q->from, MESSAGE_DATA, t);
        q->path = path;
        if (q->remote)
            send(n, q, socket, q->home, MESSAGE_RESPONSE, t);
    } else {
        const enum message m = dirty ? MESSAGE_WRITEBACK : MESSAGE_RESPONSE;
        const sim_time back_ps = send(n, q, socket, q->home, m, t);
        if (back_ps > q->reply_ps && q->forward_ps == 0)
            q->path = path;
        q->reply_ps = SIM_MAX(q->reply_ps, back_ps);
    }
    if (dirty && (q->want == WANT_READ || q->want == WANT_OWN)) {
        if (q->want == WANT_READ && q->remote)
            send(n, q, socket, q->home, MESSAGE_WRITEBACK, t);
        write_home(n, q, WRITE_SNOOP, t);
        q->wrote = true;
    }
    if (was != LINE_I && q->want != WANT_RFO && q->want != WANT_OWN)
        q->others_keep = true;
}

/* The home agent may send the socket a snoop before it knows the directory. */
static inline __attribute__((always_inline)) bool
may_broadcast(const struct numa *n, const struct request *q, unsigned socket)
{
    return n->params->coherence->opportunistic_broadcast &&
           interconnect_light(&n->interconnect, q->home, socket, q->home_ps, n->light_ratio_256);
}

static inline __attribute__((always_inline)) bool may_broadcast_to_all(const struct numa *n,
                                                                       const struct request *q)
{
    if (q->fast)
        return may_broadcast(n, q, q->home ^ 1);
    for (unsigned s = 0; s < n->sockets; s++) {
        if (s != q->home && !may_broadcast(n, q, s))
            return false;
    }
    return true;
}

/* Ownership for an agent of the home's socket: snoops to all others spare the DRAM read of the
 * directory, if the home agent may send them. So they do for all where there is none. */
static inline __attribute__((always_inline)) bool broadcast_instead(const struct numa *n,
                                                                    const struct request *q)
{
    if (q->want != WANT_OWN)
        return false;
    return !has_directory(n, q) || (!q->remote && may_broadcast_to_all(n, q));
}

/* All others have been asked for an agent of the home's socket: what the directory says of them is
 * known now. A look changes nothing but may find that nobody has the line any more. A blind snoop
 * that found nothing leaves the directory unread. Data that are about to be written need no other
 * write. Where a stale entry is cleared (Broadwell-EP) nothing but that and remote reads is counted
 * as a change: that others share the line now is only noted with data. */
static inline __attribute__((always_inline)) void all_known(const struct numa *n, struct request *q,
                                                            bool found)
{
    const int stale = n->params->coherence->directory_stale;
    const bool own = q->want == WANT_RFO || q->want == WANT_OWN;

    if (found && q->want == WANT_READ)
        q->directory_then = stale != DIRECTORY_STALE_CLEAR || q->wrote ? DIRECTORY_S : q->directory;
    else if (found && !own)
        return;
    else if (stale == DIRECTORY_STALE_CLEAR && (found || !q->blind))
        q->directory_then = DIRECTORY_I;
    else if (stale == DIRECTORY_STALE_SHARE && q->want == WANT_READ)
        q->directory_then = DIRECTORY_S;
}

/* Another socket is snooped if it must be, or may be before the directory is known. True: it must,
 * and *found becomes true if it had the line. */
static inline __attribute__((always_inline)) bool snoop_other(struct numa *n, struct request *q,
                                                              unsigned s, bool must, bool *found)
{
    const bool early = q->blind || !has_directory(n, q) || may_broadcast(n, q, s);

    if (!must && !early)
        return false;
    const sim_time send_ps = early ? q->snoop_ps : q->dram_ps;
    const sim_time there_ps = send(n, q, q->snooper, s, MESSAGE_SNOOP, send_ps);
    const sim_time looked_ps = there_ps + n->params->coherence->snoop_lookup_ps;
    if (q->fast || !n->quiet)
        n->socket[q->home].counters.snoops_sent++;
    if (!must) { /* nobody waits for the answer, and there is nothing to find */
        send(n, q, s, q->home, MESSAGE_RESPONSE, looked_ps);
        return false;
    }
    /* What the directory does not know of is not there: no look into the host's memory. */
    const struct snooped r = q->directory == DIRECTORY_I ? (struct snooped){ LINE_I, 0 }
                                                         : look_into(n, q, s);
    *found |= r.was != LINE_I;
    answer_snoop(n, q, s, r.was, (struct snoop_path){ send_ps, there_ps, looked_ps + r.core_ps });
    return true;
}

static inline __attribute__((always_inline)) void snoop_others(struct numa *n, struct request *q)
{
    const bool own = q->want == WANT_RFO || q->want == WANT_OWN;
    const bool must = q->blind || q->directory == DIRECTORY_A ||
                      (own && q->directory == DIRECTORY_S);
    bool found = false, asked = false;

    if (!must && q->directory == DIRECTORY_S)
        q->others_keep = true;
    if (q->remote && (q->fast || n->sockets == 2))
        return;
    if (q->fast)
        asked = snoop_other(n, q, q->home ^ 1, must, &found);
    else
        for (unsigned s = 0; s < n->sockets; s++)
            if (s != q->from && s != q->home)
                asked |= snoop_other(n, q, s, must, &found);
    if (!asked || !has_directory(n, q))
        return;
    if (!q->remote)
        all_known(n, q, found);
    if (!found && q->want == WANT_READ &&
        n->params->coherence->directory_stale == DIRECTORY_STALE_SHARE)
        q->others_keep = true;
}

/* What the requester may have, and what the directory says then. */
static inline __attribute__((always_inline)) enum line_state grant(struct request *q)
{
    const bool remote = q->remote;

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
static inline __attribute__((always_inline)) sim_time answer_ps(const struct request *q,
                                                                enum numa_source *source)
{
    const bool remote = q->remote;

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
static inline __attribute__((always_inline)) void
mark_wait(const struct request *q, sim_time ready_ps, struct sim_stamp *stamp)
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

/* The I/O directory cache tracks ownership of a line that a remote device is about to write. */
static inline __attribute__((always_inline)) bool track(struct numa *n, const struct request *q,
                                                        enum read_cause cause)
{
    struct io_directory *d = &n->socket[q->home].io_directory;

    if (q->want != WANT_OWN || cause != READ_DMA || !q->remote || d->n == 0 ||
        (!q->fast && n->quiet))
        return false;
    const bool taken = (!n->params->coherence->io_directory_gated || may_broadcast_to_all(n, q)) &&
                       io_directory_take(d, q->home_ps);
    if (taken)
        n->socket[q->home].counters.io_directory_hits++;
    else
        n->socket[q->home].counters.io_directory_misses++;
    return taken;
}

/* The home agent has got a request, or a write, that its socket `from` sent at at_ps. */
static inline __attribute__((always_inline)) void arrive(const struct numa *n, struct request *q,
                                                         sim_time at_ps, sim_time arrived_ps)
{
    const struct numa_coherence_params *p = n->params->coherence;
    const bool early = !q->fast && p->snoop_mode == SNOOP_MODE_EARLY;

    q->home_ps = q->dram_ps = q->reply_ps = arrived_ps + p->home_agent_ps;
    q->snoop_ps = early ? at_ps : q->home_ps;
    q->snooper = early ? q->from : q->home;
    q->directory = has_directory(n, q)
                       ? directory_get(&n->socket[q->home].directory, home_line(n, q->line))
                       : DIRECTORY_A;
    q->directory_then = q->directory;
}

/* Compiled without and with a stamp, and with all of the above, so that the request need not be in
 * memory. */
static inline __attribute__((always_inline)) struct home_answer
acquire(struct numa *n, struct request q, enum read_cause cause, sim_time at_ps,
        struct sim_stamp *stamp)
{
    struct transaction t;
    struct home_answer a;

    at_ps = q.fast ? numa_begin_fast(n, &t, q.from, q.home, q.remote, q.line, at_ps)
                   : numa_begin(n, &t, q.from, q.line, cause == READ_DMA, at_ps);
    sim_stamp_mark(stamp, PART_CACHE, at_ps);
    const sim_time there_ps = q.remote ? send(n, &q, q.from, q.home, MESSAGE_REQUEST, at_ps)
                                       : at_ps;
    sim_stamp_mark(stamp, PART_INTERCONNECT, there_ps);
    arrive(n, &q, at_ps, q.fast ? there_ps : numa_arrive(n, &t, MESSAGE_REQUEST, there_ps));
    sim_stamp_mark(stamp, PART_CACHE, q.home_ps);
    q.tracked = track(n, &q, cause);
    q.blind = q.tracked || broadcast_instead(n, &q);
    const enum read_cause read_for = q.want == WANT_OWN ? READ_DIRECTORY : cause;
    if (!q.blind)
        q.dram_ps = q.fast ? numa_dram_read_fast(n, q.home, q.line, read_for, q.home_ps)
                           : numa_dram_read(n, q.line, read_for, q.home_ps);
    if (q.remote)
        snoop_home(n, &q);
    if (q.fast || n->sockets > 1)
        snoop_others(n, &q);
    a.grant = grant(&q);

    const sim_time ready_ps = answer_ps(&q, &a.source);
    if (q.directory_then != q.directory && has_directory(n, &q)) {
        directory_set(&n->socket[q.home].directory, home_line(n, q.line), q.directory_then);
        if (!q.wrote)
            write_home(n, &q, WRITE_DIRECTORY, SIM_MAX(ready_ps, q.dram_ps));
    }
    a.done_ps = ready_ps;
    mark_wait(&q, ready_ps, stamp);
    if (q.forward_ps != 0) {
        a.done_ps = q.forward_ps;
        a.source = NUMA_REMOTE_CACHE;
    } else if (q.remote) {
        a.done_ps = send(n, &q, q.home, q.from,
                         q.want == WANT_OWN ? MESSAGE_RESPONSE : MESSAGE_DATA, ready_ps);
    }
    sim_stamp_mark(stamp, PART_INTERCONNECT, a.done_ps);
    a.done_ps += q.waits_ps;
    if (q.fast)
        numa_end_fast(n, &t, a.done_ps);
    else
        numa_end(n, &t, SIM_MAX(ready_ps, q.dram_ps) + q.waits_ps, a.done_ps);
    sim_stamp_mark(stamp, PART_DRAM, a.done_ps);
    return a;
}

/* A request on a fast machine; want, remote: constants. */
static inline __attribute__((always_inline)) struct home_answer
acquire_fast(struct numa *n, unsigned from, uint64_t line, enum want want, bool remote,
             enum read_cause cause, sim_time at_ps)
{
    const struct request q = { .line = line,
                               .from = from,
                               .home = remote ? from ^ 1 : from,
                               .remote = remote,
                               .want = want,
                               .fast = true };

    return acquire(n, q, cause, at_ps, NULL);
}

#define ACQUIRE_FAST(NAME, WANT, REMOTE)                                                         \
    struct home_answer NAME(struct numa *n, unsigned from, uint64_t line, enum read_cause cause, \
                            sim_time at_ps) {                                                    \
        return acquire_fast(n, from, line, WANT, REMOTE, cause, at_ps);                          \
    }

ACQUIRE_FAST(home_agent_read_local, WANT_READ, false)
ACQUIRE_FAST(home_agent_read_remote, WANT_READ, true)
ACQUIRE_FAST(home_agent_rfo_local, WANT_RFO, false)
ACQUIRE_FAST(home_agent_rfo_remote, WANT_RFO, true)
ACQUIRE_FAST(home_agent_own_local, WANT_OWN, false)
ACQUIRE_FAST(home_agent_own_remote, WANT_OWN, true)

struct home_answer home_agent_acquire_any(struct numa *n, unsigned from, uint64_t line,
                                          enum want want, enum read_cause cause, sim_time at_ps,
                                          struct sim_stamp *stamp)
{
    const unsigned home = home_of(n, line);
    const struct request q = {
        .line = line, .from = from, .home = home, .remote = from != home, .want = want
    };

    return stamp == NULL ? acquire(n, q, cause, at_ps, NULL) : acquire(n, q, cause, at_ps, stamp);
}

/* The home's part of a write that brings its data: as ownership, then DRAM. */
static sim_time write_at_home(struct numa *n, struct request *q, bool full, struct sim_stamp *stamp)
{
    const bool remote = q->from != q->home;

    q->blind = broadcast_instead(n, q);
    if (!q->blind || !full)
        q->dram_ps = numa_dram_read(n, q->line, full ? READ_DIRECTORY : READ_DMA, q->home_ps);
    if (remote)
        snoop_home(n, q);
    snoop_others(n, q);
    const sim_time known_ps = SIM_MAX(q->dram_ps, q->reply_ps);
    mark_wait(q, known_ps, stamp);
    /* Written with the data. */
    directory_set(&n->socket[q->home].directory, home_line(n, q->line), DIRECTORY_I);
    return numa_dram_write(n, q->line, WRITE_DMA, known_ps + q->waits_ps) +
           n->params->coherence->write_accept_ps;
}

sim_time home_agent_write(struct numa *n, unsigned from, uint64_t line, bool full, sim_time at_ps,
                          struct sim_stamp *stamp)
{
    const unsigned home = home_of(n, line);
    const bool remote = from != home;
    struct request q = {
        .line = line, .from = from, .home = home, .remote = remote, .want = WANT_OWN
    };
    struct transaction held;

    at_ps = numa_begin(n, &held, from, line, true, at_ps);
    sim_stamp_mark(stamp, PART_CACHE, at_ps);
    const sim_time there_ps = remote ? numa_send(n, from, q.home, MESSAGE_WRITEBACK, at_ps) : at_ps;
    sim_stamp_mark(stamp, PART_INTERCONNECT, there_ps);
    arrive(n, &q, at_ps, numa_arrive(n, &held, MESSAGE_WRITEBACK, there_ps));
    sim_stamp_mark(stamp, PART_CACHE, q.home_ps);
    const sim_time accepted_ps = write_at_home(n, &q, full, stamp);
    sim_stamp_mark(stamp, PART_DRAM, accepted_ps);
    const sim_time done_ps = remote ? numa_send(n, q.home, from, MESSAGE_RESPONSE, accepted_ps)
                                    : accepted_ps;
    sim_stamp_mark(stamp, PART_INTERCONNECT, done_ps);
    numa_end(n, &held, accepted_ps, done_ps);
    return done_ps;
}

sim_time home_agent_write_owned(struct numa *n, unsigned socket, uint64_t line,
                                enum write_cause cause, sim_time at_ps, struct sim_stamp *stamp)
{
    const unsigned home = home_of(n, line);
    struct transaction held;
    sim_time t = numa_begin(n, &held, socket, line, cause == WRITE_DMA, at_ps);

    numa_directory_forget(n, line);
    sim_stamp_mark(stamp, PART_CACHE, t);
    if (home != socket) {
        t = numa_send(n, socket, home, MESSAGE_WRITEBACK, t);
        sim_stamp_mark(stamp, PART_INTERCONNECT, t);
    }
    t = numa_arrive(n, &held, MESSAGE_WRITEBACK, t) + n->params->coherence->home_agent_ps;
    sim_stamp_mark(stamp, PART_CACHE, t);
    t = numa_dram_write(n, line, cause, t);
    if (cause == WRITE_DMA)
        t += n->params->coherence->write_accept_ps;
    sim_stamp_mark(stamp, PART_DRAM, t);
    io_directory_release(&n->socket[home].io_directory, t);
    const sim_time done_ps = home != socket ? numa_send(n, home, socket, MESSAGE_RESPONSE, t) : t;
    sim_stamp_mark(stamp, PART_INTERCONNECT, done_ps);
    numa_end(n, &held, t, done_ps);
    return done_ps;
}

/* fast: as of a request, a constant. */
static inline __attribute__((always_inline)) sim_time
write_kept(struct numa *n, bool fast, unsigned socket, unsigned home, uint64_t line, sim_time at_ps)
{
    const sim_time home_agent_ps = n->params->coherence->home_agent_ps;
    const sim_time idle_ps = at_ps + interconnect_idle_ps(&n->interconnect, MESSAGE_WRITEBACK) +
                             home_agent_ps;
    const struct request q = { .fast = fast };
    struct transaction held;
    sim_time t = fast ? numa_begin_fast(n, &held, socket, home, true, line, at_ps)
                      : numa_begin(n, &held, socket, line, true, at_ps);

    t = send(n, &q, socket, home, MESSAGE_WRITEBACK, t);
    if (!fast)
        t = numa_arrive(n, &held, MESSAGE_WRITEBACK, t);
    if (has_directory(n, &q))
        directory_set(&n->socket[home].directory, home_line(n, line), DIRECTORY_A);
    t += home_agent_ps;
    t = fast ? numa_dram_write_fast(n, home, line, WRITE_DMA, t)
             : numa_dram_write(n, line, WRITE_DMA, t);
    io_directory_release(&n->socket[home].io_directory, t);
    const sim_time done_ps = send(n, &q, home, socket, MESSAGE_RESPONSE, t);
    if (fast)
        numa_end_fast(n, &held, done_ps);
    else
        numa_end(n, &held, t, done_ps);
    return t > idle_ps ? t - idle_ps : 0;
}

sim_time home_agent_write_kept(struct numa *n, unsigned socket, uint64_t line, sim_time at_ps)
{
    return n->home_fast && !n->quiet ? write_kept(n, true, socket, socket ^ 1, line, at_ps)
                                     : write_kept(n, false, socket, home_of(n, line), line, at_ps);
}

sim_time home_agent_own_then_both(struct numa *n, unsigned socket, struct cache_place place,
                                  uint64_t line, sim_time at_ps)
{
    struct numa_counters *counters = &n->socket[socket].counters;
    int way;
    sim_time t = acquire_fast(n, socket, line, WANT_OWN, true, READ_DMA, at_ps).done_ps;
    const struct victim displaced = agent_insert_fast(n, socket, place, LINE_E, 0, true, t, &way);

    counters->dma_write_allocates++;
    counters->dma_write_to_dram++;
    if (displaced.dirty)
        t += n->params->cache->llc_request_ps + n->params->coherence->home_agent_ps;
    t += displaced.waits_ps;
    return t + write_kept(n, true, socket, socket ^ 1, line, t);
}
