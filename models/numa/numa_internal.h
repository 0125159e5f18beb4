/* What the files of models/numa/ share: the parameters, and the state of a host's memory system. */
#ifndef MODELS_NUMA_NUMA_INTERNAL_H
#define MODELS_NUMA_NUMA_INTERNAL_H

#include "models/numa/coherence.h"
#include "models/numa/directory.h"
#include "models/numa/dram/dram.h"
#include "models/numa/io_directory.h"
#include "models/numa/stream_prefetch.h"
#include "models/numa/transaction.h"

#define NUMA_MAX_SOCKETS 4
/* Inner loops are compiled for these. */
#define FAST_PRIVATE_WAYS 8u /* of L1 and L2, each of one core */
#define FAST_L1_SETS      64u
#define FAST_L2_SETS      512u
#define PAIR_L1_WAYS      8u /* of two cores with one L2 */
#define PAIR_L1_SETS      64u
#define PAIR_L2_WAYS      16u
#define PAIR_L2_SETS      4096u
#define FAST_LLC_WAYS     20u /* of an inclusive LLC */
#define FAST_LLC_SETS     2048u

struct numa_cpu_params {
    uint32_t sockets;
    uint32_t cores_per_socket;
    double clock_ghz;
    uint32_t l1_hit_cycles, l2_hit_cycles;
};

struct numa_cache_params {
    uint64_t l1_bytes, l1i_bytes, l2_bytes, llc_bytes;
    uint32_t l1_ways, l1i_ways, l2_ways, llc_ways;
    uint32_t l2_cores;
    uint32_t l2_sector_lines;
    bool l1_write_through;
    struct prefetch_params prefetch;
    uint32_t llc_slices;
    bool ddio;
    uint32_t ddio_ways;
    bool inclusive;
    bool writeback_keeps_sharer;
    uint32_t filter_ways;
    sim_time llc_request_ps, llc_return_ps;
    sim_time iio_ps;
    sim_time core_snoop_clean_ps, core_snoop_dirty_ps, l1_snoop_ps;
    sim_time writeback_ps;
};

enum remote_dma_write {
    REMOTE_DMA_DEVICE_SIDE_LLC,
    REMOTE_DMA_DRAM_INVALIDATE,
    REMOTE_DMA_HOME_LLC,
    REMOTE_DMA_OWN_THEN_DRAM,
    REMOTE_DMA_OWN_THEN_BOTH
};

/* How the copies of other sockets are found. */
enum snoop_mode {
    SNOOP_MODE_DIRECTORY, /* the home agent snoops whom the directory in DRAM names */
    SNOOP_MODE_HOME,      /* no directory: the home agent snoops all others, always */
    SNOOP_MODE_EARLY      /* no directory: the requester's agent snoops all others, home included */
};

/* What becomes of DIRECTORY_A when a read of the home's socket finds that nobody else has the
 * line. */
enum directory_stale {
    DIRECTORY_STALE_CLEAR, /* I, written to DRAM */
    DIRECTORY_STALE_SHARE, /* S, written to DRAM; the reader shares the line */
    DIRECTORY_STALE_KEEP   /* nothing: the next write-back clears it */
};

struct numa_coherence_params {
    int protocol; /* index into coherence_protocols */
    int remote_dma_write;
    int snoop_mode;
    int directory_stale;
    sim_time home_agent_ps;
    sim_time snoop_lookup_ps, snoop_stall_ps;
    bool opportunistic_broadcast;
    double broadcast_load_ratio;
    uint32_t io_directory_entries;
    bool io_directory_gated;
    uint32_t request_entries, transaction_ids; /* 0: without bound; also the trackers */
    uint32_t local_trackers, remote_trackers, io_trackers;
    sim_time write_accept_ps;
    bool snoop_filter;
    uint64_t snoop_filter_bytes; /* 0: without limit */
    uint32_t snoop_filter_ways;
    sim_time hub_ps;
    sim_time hub_return_ps;
};

/* Causes of DRAM traffic. */
enum read_cause { READ_LOAD, READ_RFO, READ_DMA, READ_DIRECTORY, N_READ_CAUSES };
enum write_cause {
    WRITE_VICTIM,
    WRITE_DDIO_VICTIM,
    WRITE_SNOOP,
    WRITE_NT,
    WRITE_DMA,
    WRITE_DIRECTORY,
    WRITE_FLUSH,
    N_WRITE_CAUSES
};

/* Bytes and events of one socket; the table is in resources.c. */
struct numa_counters {
    uint64_t dram_read_bytes, dram_write_bytes;
    uint64_t read_bytes[N_READ_CAUSES], write_bytes[N_WRITE_CAUSES]; /* of them, by cause */
    uint64_t interconnect_bytes;
    uint64_t to_bytes[NUMA_MAX_SOCKETS]; /* of them, by destination */
    uint64_t message_bytes[N_MESSAGES];
    uint64_t core_llc_hits, core_llc_misses;
    uint64_t dma_read_hits, dma_read_misses;
    uint64_t dma_write_updates, dma_write_allocates, dma_write_to_dram, dma_write_pushes;
    uint64_t ddio_evictions, ddio_dirty_evictions, llc_back_invalidations, core_snoops;
    uint64_t snoops_sent;
    uint64_t io_directory_hits, io_directory_misses;
    uint64_t request_entry_wait_ps, request_entry_held_ps, transaction_id_wait_ps;
    uint64_t tracker_wait_ps, link_credit_wait_ps;
    struct dram_counts dram;
    /* No counters of their own: */
    uint32_t sockets;    /* how many to_bytes there are */
    uint64_t dram_bytes; /* read and written, by the last numa_stats() */
    struct dram_peaks dram_peaks;
    struct stat_peak to_peak[NUMA_MAX_SOCKETS]; /* of to_bytes */
};

/*
 * A core group: the cores that share one L2 (one core where L2 is private), with their L1s.
 * Invariant: L2 holds every line of its L1s; a line that is M in an L1 is M in the L2 and in no
 * other L1, and only an M line of an L1 may be stored to without asking the L2. Lines of an L1I are
 * S.
 */
struct core_group {
    /* numa_load() and numa_store() without a latency stamp, of this kind of group. */
    struct numa_result (*load)(struct numa *n, struct core_group *c, unsigned core, uint64_t line,
                               sim_time at_ps);
    struct numa_result (*store)(struct numa *n, struct core_group *c, unsigned core, uint64_t line,
                                sim_time at_ps);
    struct cache l2;
    struct cache *l1; /* l2_cores L1Ds, and then as many L1Is if there are any */
    uint32_t n_l1;
    bool fast; /* one L1, and both it and the L2 of FAST_* geometry; numa.llc_fast */
    bool pair; /* two cores, PAIR_* geometry, write-back, a prefetcher, no sectors, numa.present */
    uint64_t *l1i_changes; /* by core of the group: lines that its L1I got or lost; or NULL */
    /* All lines that an L1I has ever had are between these; if there are none: UINT64_MAX, 0. */
    uint64_t text_first, text_last;
    struct stream_prefetch *prefetch; /* NULL: there is none */
    /* When the last modified line that a fill displaced has been taken, until who filled has seen
     * that. */
    sim_time displaced_until_ps;
    sim_time observed_ps; /* numa_observed() */
    uint32_t socket;
    uint32_t sharer_bit; /* in the state words of its socket's LLC */
    /* fast: for each way of each set of the L2 the place of that line in the LLC, see agent_at().
     * The place is valid as long as the line is in the L2, because the LLC is inclusive. Else NULL.
     */
    uint32_t *llc_at;
    /* What every access needs, without a look-up by number. */
    struct numa_socket *own;
    struct numa_private_count *count; /* of its first core */
};

struct numa_socket {
    struct cache llc;    /* rows NULL: the protocol has none */
    struct cache filter; /* of a non-inclusive LLC: snoop filter of the private caches */
    struct dram dram;
    struct directory directory; /* of the lines whose home this is; protocols with home agents */
    struct io_directory io_directory;
    struct transaction_pools pools; /* protocols with home agents */
    struct numa_counters counters;
};

struct numa {
    sim_time contended_until_ps; /* numa_contended_until() */
    const struct coherence_ops *ops;
    const struct numa_params *params;
    struct sim *sim;
    const char *name;
    struct physmem *mem;
    struct numa_socket *socket;
    struct core_group *core_group;
    struct core_group **group_of;             /* by core */
    struct numa_private_count *private_count; /* by core */
    struct interconnect interconnect;         /* protocols with links between sockets */
    void *protocol; /* what else the coherence protocol keeps; may be NULL */
    /* By line, bit g: the L2 of core group g has it; further bits are the protocol's. NULL: the
     * protocol did not ask for it (in its init()), or there are more groups than bits. Says of most
     * lines that nobody has them without a look at the rows of all caches. */
    uint8_t *present;
    uint32_t sockets, groups_per_socket, cores;
    uint32_t l2_cores_log2;
    uint32_t node_log2_lines; /* stride of the nodes */
    uint64_t lines;           /* their numbers are below */
    uint32_t ddio_mask;
    uint32_t light_ratio_256;
    bool llc_fast; /* inclusive, FAST_LLC_*, narrow tags */
    /* Home agents: llc_fast, two sockets, a directory in DRAM, no trackers of another socket's
     * transactions, flits of one slot, credits that cannot run out. */
    bool home_fast;
    bool io_fills_none; /* numa_warm_by_misses() */
    bool quiet;         /* warming: state changes, no time passes, nothing is counted */
    sim_time llc_ps;    /* llc_request and llc_return */
    sim_time l1_ps, l2_ps;
    sim_time observed_ps; /* of the line fetched last for a store: all caches have seen that; 0:
                      * unknown */
    char (*prefix)[8];    /* "s0." for the statistics */
};

static inline unsigned home_of(const struct numa *n, uint64_t line)
{
    return (unsigned)(line >> n->node_log2_lines);
}

static inline uint64_t home_line(const struct numa *n, uint64_t line)
{
    return line & ((UINT64_C(1) << n->node_log2_lines) - 1);
}

/* Numbers of lines are below. */
static inline uint64_t numa_lines(const struct numa *n)
{
    return n->lines;
}

/* Notes whether the L2 of a core group has the line. */
static inline void numa_note_present(struct numa *n, unsigned group, uint64_t line, bool has)
{
    if (n->present == NULL)
        return;
    const uint8_t bit = (uint8_t)(1u << group);
    n->present[line] = has ? n->present[line] | bit : n->present[line] & (uint8_t)~bit;
}

/* False: the L2 of the core group does not have the line. */
static inline bool numa_may_have(const struct numa *n, unsigned group, uint64_t line)
{
    return n->present == NULL || ((unsigned)n->present[line] >> group & 1u) != 0;
}

/* Of a socket's core groups, from `first` on, a bit for each whose L2 may have the line. */
static inline uint32_t numa_groups_with(const struct numa *n, unsigned first, uint64_t line)
{
    const uint32_t may = n->present == NULL ? UINT32_MAX : (uint32_t)n->present[line] >> first;

    return may & ((UINT32_C(1) << n->groups_per_socket) - 1);
}

static inline unsigned core_group_of(const struct numa *n, unsigned core)
{
    return core >> n->l2_cores_log2;
}

static inline struct cache *l1_of_core(const struct numa *n, unsigned core)
{
    return &n->core_group[core >> n->l2_cores_log2].l1[core & ((1u << n->l2_cores_log2) - 1)];
}

/* ---- Resources, counted by cause (resources.c) ----------------------------------------------- */
sim_time numa_dram_read(struct numa *n, uint64_t line, enum read_cause cause, sim_time at_ps);
/* Returns when the write queue has accepted it. Whoever writes waits for that, or the queue has no
 * bound. */
sim_time numa_dram_write(struct numa *n, uint64_t line, enum write_cause cause, sim_time at_ps)
    __attribute__((warn_unused_result));
/* The same while no caches are being warmed, with the line's home. */
static inline __attribute__((always_inline)) sim_time
numa_dram_read_fast(struct numa *n, unsigned home, uint64_t line, enum read_cause cause,
                    sim_time at_ps)
{
    struct numa_socket *h = &n->socket[home];

    h->counters.dram_read_bytes += LINE_BYTES;
    h->counters.read_bytes[cause] += LINE_BYTES;
    return dram_read(&h->dram, home_line(n, line), at_ps);
}
static inline __attribute__((always_inline)) sim_time
numa_dram_write_fast(struct numa *n, unsigned home, uint64_t line, enum write_cause cause,
                     sim_time at_ps)
{
    struct numa_socket *h = &n->socket[home];

    h->counters.dram_write_bytes += LINE_BYTES;
    h->counters.write_bytes[cause] += LINE_BYTES;
    return dram_write(&h->dram, home_line(n, line), at_ps);
}
static inline void count_message(struct numa_counters *counters, unsigned to, enum message message,
                                 uint64_t bytes)
{
    counters->interconnect_bytes += bytes;
    counters->message_bytes[message] += bytes;
    counters->to_bytes[to] += bytes;
}
/* Counts bytes that from put on the interconnect (from == to: on its front-side bus). */
static inline void numa_count_message(struct numa *n, unsigned from, unsigned to,
                                      enum message message, uint64_t bytes)
{
    if (SIM_UNLIKELY(n->quiet))
        return;
    count_message(&n->socket[from].counters, to, message, bytes);
}

/* numa_send() with home_fast, while no caches are being warmed. */
static inline __attribute__((always_inline)) sim_time
numa_send_fast(struct numa *n, unsigned from, unsigned to, enum message message, sim_time at_ps)
{
    struct interconnect *ic = &n->interconnect;

    count_message(&n->socket[from].counters, to, message, ic->bytes[message]);
    return interconnect_send_flits(ic, &ic->link[from * 2 + to], message, at_ps) +
           ic->params->one_way_ps;
}

static inline sim_time numa_send(struct numa *n, unsigned from, unsigned to, enum message message,
                                 sim_time at_ps)
{
    if (SIM_UNLIKELY(n->quiet))
        return at_ps;
    numa_count_message(n, from, to, message, n->interconnect.bytes[message]);
    return interconnect_send(&n->interconnect, from, to, message, at_ps);
}

/* A transaction of `line` of socket `from`, at_ps at its slice; for_device: a device's. Returns
 * when it leaves. numa_arrive() and numa_end() have to follow. */
static inline __attribute__((always_inline)) sim_time numa_begin(struct numa *n,
                                                                 struct transaction *t,
                                                                 unsigned from, uint64_t line,
                                                                 bool for_device, sim_time at_ps)
{
    struct numa_socket *s = &n->socket[from];
    const unsigned home = home_of(n, line);
    struct transaction_pools *at_home = &n->socket[home].pools;
    struct pool *tracker = &at_home->tracker[from == home ? TRACKER_LOCAL : TRACKER_REMOTE];

    if (for_device && SIM_UNLIKELY(at_home->tracker[TRACKER_IO].n != 0))
        tracker = &at_home->tracker[TRACKER_IO];
    t->table = &s->pools.table[transaction_slice(line, s->llc.slices)];
    t->other = from == home ? tracker : &s->pools.ids[home];
    t->tracker = from == home || tracker->n == 0 ? NULL : tracker;
    t->from = from;
    t->home = home;
    if (SIM_UNLIKELY(!pool_has(t->table, 1, at_ps) || !pool_has(t->other, 1, at_ps)) && !n->quiet)
        at_ps = transaction_wait(n, t, at_ps);
    t->began_ps = at_ps;
    return at_ps;
}

/* The same with home_fast, while no caches are being warmed; numa_arrive() has nothing to do. */
static inline __attribute__((always_inline)) sim_time
numa_begin_fast(struct numa *n, struct transaction *t, unsigned from, unsigned home, bool remote,
                uint64_t line, sim_time at_ps)
{
    struct numa_socket *s = &n->socket[from];

    t->table = &s->pools.table[transaction_slice(line, s->llc.slices)];
    t->other = remote ? &s->pools.ids[home] : &s->pools.tracker[TRACKER_LOCAL];
    t->tracker = NULL;
    t->from = from;
    t->home = home;
    if (SIM_UNLIKELY(!pool_has(t->table, 1, at_ps) || !pool_has(t->other, 1, at_ps)))
        at_ps = transaction_wait(n, t, at_ps);
    t->began_ps = at_ps;
    return at_ps;
}

/* The home agent gets it at at_ps; returns when it has a tracker. */
static inline sim_time numa_arrive(struct numa *n, struct transaction *t, enum message message,
                                   sim_time at_ps)
{
    if (SIM_UNLIKELY(t->tracker != NULL) && !n->quiet)
        t->arrived_ps = at_ps = transaction_wait_at_home(n, t, message, at_ps);
    return at_ps;
}

/* The home agent is done with it at at_ps, and its socket knows at done_ps. */
static inline void numa_end(struct numa *n, const struct transaction *t, sim_time at_ps,
                            sim_time done_ps)
{
    if (SIM_UNLIKELY(n->quiet))
        return;
    n->socket[t->from].counters.request_entry_held_ps += done_ps - t->began_ps;
    pool_hold_both(t->table, t->other, t->began_ps, done_ps);
    if (SIM_UNLIKELY(t->tracker != NULL))
        pool_hold_any(t->tracker, 1, t->arrived_ps, at_ps);
}

/* The same behind numa_begin_fast(). */
static inline __attribute__((always_inline)) void
numa_end_fast(struct numa *n, const struct transaction *t, sim_time done_ps)
{
    n->socket[t->from].counters.request_entry_held_ps += done_ps - t->began_ps;
    pool_hold_both(t->table, t->other, t->began_ps, done_ps);
}

/* +1 on a counter of the socket, unless warming. */
#define NUMA_COUNT(N, SOCKET, FIELD)              \
    do {                                          \
        if (SIM_LIKELY(!(N)->quiet))              \
            (N)->socket[SOCKET].counters.FIELD++; \
    } while (0)

/* ---- Private caches (private.c, and there: numa_load(), numa_store()) ------------------------ */
void core_group_init(struct numa *n, struct core_group *c);
void core_group_release(struct numa *n, struct core_group *c);
void core_group_clear(struct numa *n, struct core_group *c);
/* State of the line in the core group. */
enum line_state core_group_peek(const struct numa *n, unsigned group, uint64_t line);
/* The L2 of the core group has the line. */
static inline bool numa_has(const struct numa *n, unsigned group, uint64_t line)
{
    return n->present != NULL ? numa_may_have(n, group, line)
                              : core_group_peek(n, group, line) != LINE_I;
}
/* Makes a valid line S; returns what it was. */
enum line_state core_group_downgrade(struct numa *n, unsigned group, uint64_t line);
/* Removes the line; returns what it was. Dirty data is the caller's. */
enum line_state core_group_invalidate(struct numa *n, unsigned group, uint64_t line);
/* One or the other; *in_l1 becomes true if one of its L1s had the line modified. */
enum line_state core_group_snoop(struct numa *n, unsigned group, uint64_t line, bool invalidate,
                                 bool *in_l1);

/* ---- The caching agent of a socket: LLC and snoop filter (agent.c) --------------------------- */
/* Checks, allocates, frees and empties those of all sockets. */
bool agents_params_check(const struct numa_params *params, const char **why);
void agents_init(struct numa *n);
void agents_release(struct numa *n);
void agents_clear(struct numa *n);
/* Lines first .. end - 1 leave all caches, whatever state they are in. */
void agents_drop(struct numa *n, uint64_t first, uint64_t end);
/* coherence_ops.llc_holder */
int agents_llc_holder(const struct numa *n, uint64_t line);
/* What a request from elsewhere wants of a socket's caches. */
enum snoop {
    SNOOP_SHARE,      /* read: copies may stay, shared */
    SNOOP_INVALIDATE, /* ownership: no copy may stay */
    SNOOP_LOOK        /* a DMA read: what is the line now; nothing changes */
};
struct snooped {
    enum line_state was;
    sim_time core_ps; /* time of the snoops of cores that were needed */
};
/* Where a socket keeps track of a line; way < 0: nowhere. */
struct holder {
    struct cache *cache;
    struct cache_place place;
    int way;
};
struct holder agent_find_anywhere(struct numa *n, unsigned socket, uint64_t line);
static inline uint32_t holder_word(struct holder h)
{
    return cache_word(h.cache, h.place, h.way);
}
static inline void holder_put(struct holder h, enum line_state state, uint32_t sharers)
{
    cache_put(h.cache, h.place, h.way, state, sharers);
}
static inline __attribute__((always_inline)) struct cache llc_fast(const struct cache *llc)
{
    return cache_known(llc, FAST_LLC_WAYS, FAST_LLC_SETS, false);
}

static inline __attribute__((always_inline)) struct cache l1_fast(const struct core_group *c)
{
    return cache_known(&c->l1[0], FAST_PRIVATE_WAYS, FAST_L1_SETS, true);
}

static inline __attribute__((always_inline)) struct cache l2_fast(const struct core_group *c)
{
    return cache_known(&c->l2, FAST_PRIVATE_WAYS, FAST_L2_SETS, true);
}

static inline __attribute__((always_inline)) struct cache l1_of_pair(const struct core_group *c,
                                                                     unsigned i)
{
    return cache_known_plain(&c->l1[i], PAIR_L1_WAYS, PAIR_L1_SETS, false);
}

static inline __attribute__((always_inline)) struct cache l2_of_pair(const struct core_group *c)
{
    return cache_known_plain(&c->l2, PAIR_L2_WAYS, PAIR_L2_SETS, true);
}

static inline struct holder agent_find(struct numa *n, unsigned socket, uint64_t line)
{
    struct cache *llc = &n->socket[socket].llc;

    if (SIM_LIKELY(n->llc_fast)) {
        const struct cache known = llc_fast(llc);
        const struct cache_place place = cache_place(&known, line);
        return (struct holder){ llc, place, cache_find(&known, place) };
    }
    return agent_find_anywhere(n, socket, line);
}
/* Packs the place of a line in a fast LLC into one number. */
static inline uint32_t agent_at(struct cache_place p, int way)
{
    return p.index << 5 | (uint32_t)way;
}

static inline struct holder agent_holder_at(struct numa *n, unsigned socket, uint32_t at)
{
    struct cache *llc = &n->socket[socket].llc;
    const struct cache known = llc_fast(llc);

    return (struct holder){ llc, { cache_row(&known, at >> 5), 0, at >> 5 }, (int)(at & 31) };
}

/* Lets the host fetch what a fast LLC knows about the line after that of h. */
static inline void agent_prefetch_next(struct holder h)
{
    const struct cache known = llc_fast(h.cache);

    cache_prefetch_next(&known, h.place);
}
/* The same of a line, of any LLCs and snoop filters: of the socket and of the line's home. */
void agent_prefetch(const struct numa *n, unsigned socket, uint64_t line);
/*
 * The common case of fetch(): a fast LLC has the line, at p, in the way of `bit`, no other core
 * group shares it and, for a store, no other socket may have it. llc: of the group's socket, from
 * llc_fast(). True: the line is granted exactly as by coherence_ops.fetch, after llc_request and
 * llc_return. False: nothing has changed.
 */
static inline __attribute__((always_inline)) bool
agent_give(struct numa *n, const struct core_group *c, const struct cache *llc,
           struct cache_place p, uint32_t bit, bool store, struct fetched *got)
{
    const int way = __builtin_ctz(bit);
    const bool owned = (p.row->owned & bit) != 0;
    if ((cache_sharers(llc, p, way) & ~c->sharer_bit) != 0 || (store && !owned))
        return false;
    cache_put_sharers_bit(llc, p, bit, c->sharer_bit);
    cache_touch_bit(llc, p, bit);
    /* The host has time until the next line is asked for, if this is a stream. */
    cache_prefetch_next(llc, p);
    if (SIM_LIKELY(!n->quiet))
        c->own->counters.core_llc_hits++;
    *got = (struct fetched){ owned ? LINE_E : LINE_S, agent_at(p, way) };
    return true;
}
/* Writes a dirty line evicted from a fast core group back to its place in the LLC. The writer was
 * the only sharer; its bit stays (writeback_keeps_sharer), or none does. */
static inline __attribute__((always_inline)) void
agent_take_back(const struct numa *n, const struct cache *llc, uint32_t at)
{
    const struct cache_place p = { cache_row(llc, at >> 5), 0, at >> 5 };
    const uint32_t bit = UINT32_C(1) << (at & 31);

    cache_put_state_bit(p, bit, LINE_M);
    if (!n->params->cache->writeback_keeps_sharer)
        cache_put_sharers_bit(llc, p, bit, 0);
}
/* Snoops the core groups in the mask, which drop the line (invalidate) or make it S. Returns
 * whether one had it M. */
bool agent_snoop_groups(struct numa *n, unsigned socket, uint32_t mask, uint64_t line,
                        bool invalidate);
/* The same to invalidate. */
static inline bool agent_drop_from_groups(struct numa *n, unsigned socket, uint32_t mask,
                                          uint64_t line)
{
    const unsigned first = socket * n->groups_per_socket;
    bool dirty = false;

    for (; mask != 0; mask &= mask - 1) {
        dirty |= core_group_invalidate(n, first + (unsigned)__builtin_ctz(mask), line) == LINE_M;
        NUMA_COUNT(n, socket, core_snoops);
    }
    return dirty;
}
/* Snoops the socket for a line already found; it stays with its holder unless SNOOP_INVALIDATE. */
struct snooped agent_snoop_holder(struct numa *n, unsigned socket, struct holder h, uint64_t line,
                                  enum snoop snoop);
static inline struct snooped agent_snoop(struct numa *n, unsigned socket, uint64_t line,
                                         enum snoop snoop)
{
    const struct holder h = agent_find(n, socket, line);

    if (h.way < 0)
        return (struct snooped){ LINE_I, 0 };
    return agent_snoop_holder(n, socket, h, line, snoop);
}
/* The same with a fast LLC; snoop: a constant. */
static inline __attribute__((always_inline)) struct snooped
agent_snoop_fast(struct numa *n, unsigned socket, uint64_t line, enum snoop snoop)
{
    struct cache *llc = &n->socket[socket].llc;
    const struct cache known = llc_fast(llc);
    const struct cache_place p = cache_place(&known, line);
    const uint32_t bit = cache_find_bit(&known, p);

    if (bit == 0)
        return (struct snooped){ LINE_I, 0 };
    const int way = __builtin_ctz(bit);
    struct snooped r = { cache_state(p, way), 0 };
    if ((p.row->shared & bit) != 0) {
        const struct numa_cache_params *params = n->params->cache;
        if (snoop != SNOOP_INVALIDATE)
            return agent_snoop_holder(n, socket, (struct holder){ llc, p, way }, line, snoop);
        const bool dirty = agent_drop_from_groups(n, socket, cache_sharers(&known, p, way), line);
        r.core_ps = dirty ? params->core_snoop_dirty_ps : params->core_snoop_clean_ps;
        if (dirty)
            r.was = LINE_M;
    }
    if (snoop == SNOOP_INVALIDATE)
        cache_drop_bits(p, bit);
    else if (snoop == SNOOP_SHARE)
        cache_put_state_bit(p, bit, LINE_S);
    return r;
}
/* The same for a look at a line that the socket's LLC owns: how long the core that may have it
 * takes. */
sim_time agent_look_ps(const struct numa *n, unsigned socket, uint32_t sharers, uint64_t line);
/* What a line displaced. */
struct victim {
    bool dirty; /* a line that had to be written back */
    /* How long that is held up (agent_write_home()): the new line waits, too. */
    sim_time waits_ps;
};
/* Inserts a line that the socket does not have, for a core group (sharers: its bit) or for a device
 * (sharers 0: into the DDIO ways). */
struct victim agent_insert(struct numa *n, unsigned socket, uint64_t line, enum line_state state,
                           uint32_t sharers, sim_time at_ps);
/* The same where the cache that takes such lines, and the line's place in it, are known; *way is
 * where it is then. */
struct victim agent_insert_at(struct numa *n, unsigned socket, struct cache *c,
                              struct cache_place p, enum line_state state, uint32_t sharers,
                              sim_time at_ps, int *way);
/* Makes room in a way that the caller fills, for a device or for a core group. */
struct victim agent_evict(struct numa *n, unsigned socket, const struct cache *c,
                          struct cache_place p, int way, bool for_device, sim_time at_ps);
/* agent_insert_at() into a fast LLC; for_device: a constant. */
static inline __attribute__((always_inline)) struct victim
agent_insert_fast(struct numa *n, unsigned socket, struct cache_place p, enum line_state state,
                  uint32_t sharers, bool for_device, sim_time at_ps, int *way)
{
    struct numa_socket *s = &n->socket[socket];
    const struct cache llc = llc_fast(&s->llc);
    const uint32_t bit = cache_victim_bit(p, for_device ? n->ddio_mask : llc.all_ways);
    struct victim victim = { false, 0 };

    *way = __builtin_ctz(bit);
    if (SIM_UNLIKELY((p.row->valid & (p.row->shared | p.row->dirty) & bit) != 0))
        victim = agent_evict(n, socket, &s->llc, p, *way, for_device, at_ps);
    else if (for_device && (p.row->valid & bit) != 0)
        NUMA_COUNT(n, socket, ddio_evictions);
    cache_fill_bit(&llc, p, bit, state, sharers);
    return victim;
}
/* A dirty line goes home: over the interconnect if it must, into DRAM. Returns how much later than
 * on an idle machine the write queue of DRAM accepts it: the buffer that holds the line is taken
 * until then. */
sim_time agent_write_home(struct numa *n, unsigned socket, uint64_t line, enum write_cause cause,
                          sim_time at_ps);
/* coherence_ops.writeback */
sim_time agent_writeback(struct numa *n, unsigned group, uint64_t line, uint32_t llc_at, bool dirty,
                         sim_time at_ps);

/* A socket that had the line M, so that nobody else has it, writes it to DRAM: the data carry the
 * directory's bits. */
static inline void numa_directory_forget(struct numa *n, uint64_t line)
{
    struct directory *d = &n->socket[home_of(n, line)].directory;

    if (directory_get(d, home_line(n, line)) != DIRECTORY_I)
        directory_set(d, home_line(n, line), DIRECTORY_I);
}

/* ---- Home agents: what a caching agent sends a line's home, and what comes back (home_agent.c) */
enum want {
    WANT_READ, /* a load */
    WANT_RFO,  /* data and ownership */
    WANT_OWN,  /* ownership only: the requester has the data or replaces all of it */
    WANT_LOOK  /* DMA read: data as they are now, no copy is kept */
};

struct home_answer {
    sim_time done_ps; /* at the requesting agent, ring included */
    enum numa_source source;
    enum line_state grant; /* what the requester may have: E, S or (WANT_LOOK) I */
};

/* The requests of home_agent_acquire() with home_fast, while no caches are being warmed. */
typedef struct home_answer home_agent_fast_fn(struct numa *n, unsigned from, uint64_t line,
                                              enum read_cause cause, sim_time at_ps);
home_agent_fast_fn home_agent_read_local, home_agent_read_remote, home_agent_rfo_local,
    home_agent_rfo_remote, home_agent_own_local, home_agent_own_remote;
/* Any request. */
struct home_answer home_agent_acquire_any(struct numa *n, unsigned from, uint64_t line,
                                          enum want want, enum read_cause cause, sim_time at_ps,
                                          struct sim_stamp *stamp);
/* Asks the home of a line that socket `from` does not have as wanted. The request leaves the
 * caching agent at at_ps. The caller puts the line where it belongs; what others had is settled. */
static inline __attribute__((always_inline)) struct home_answer
home_agent_acquire(struct numa *n, unsigned from, uint64_t line, enum want want,
                   enum read_cause cause, sim_time at_ps, struct sim_stamp *stamp)
{
    const bool remote = from != home_of(n, line);

    if (SIM_UNLIKELY(!n->home_fast || n->quiet || stamp != NULL || want == WANT_LOOK))
        return home_agent_acquire_any(n, from, line, want, cause, at_ps, stamp);
    if (want == WANT_READ)
        return remote ? home_agent_read_remote(n, from, line, cause, at_ps)
                      : home_agent_read_local(n, from, line, cause, at_ps);
    if (want == WANT_RFO)
        return remote ? home_agent_rfo_remote(n, from, line, cause, at_ps)
                      : home_agent_rfo_local(n, from, line, cause, at_ps);
    return remote ? home_agent_own_remote(n, from, line, cause, at_ps)
                  : home_agent_own_local(n, from, line, cause, at_ps);
}
/* Sends the home a device's write with its data; no cache of socket `from` has the line. All copies
 * go, and DRAM has the line. Returns when `from` knows. full: the write covers the line. */
sim_time home_agent_write(struct numa *n, unsigned from, uint64_t line, bool full, sim_time at_ps,
                          struct sim_stamp *stamp);
/* Writes a line that the socket owns, and keeps no copy of, to DRAM; returns when the socket knows
 * that it was. */
sim_time home_agent_write_owned(struct numa *n, unsigned socket, uint64_t line,
                                enum write_cause cause, sim_time at_ps, struct sim_stamp *stamp);
/* Writes a device's line that a socket owns, and keeps, to another socket's DRAM; the directory
 * says so with the data. Returns how much later than on an idle machine the write queue there
 * accepts them. */
sim_time home_agent_write_kept(struct numa *n, unsigned socket, uint64_t line, sim_time at_ps);

/* With home_fast, while no caches are being warmed: a device writes a whole line that its socket
 * does not have, whose place in its LLC is known, and whose home is the other one: ownership, the
 * line in the LLC, and home_agent_write_kept(). at_ps: the slice's answer. Returns when it is
 * done. */
sim_time home_agent_own_then_both(struct numa *n, unsigned socket, struct cache_place place,
                                  uint64_t line, sim_time at_ps);

/* ---- Lines of devices in runs ---------------------------------------------------------------- */
/* The lines of a run, in order: all but the first and the last are whole. */
struct run_line {
    uint64_t line;
    sim_time slot_ps; /* without not_before_ps */
    sim_time at_ps;
    unsigned left, bytes; /* of the run; of them in this line */
};
static inline void run_line_set(struct run_line *l, const struct numa_run *run, unsigned most)
{
    l->bytes = SIM_MIN(l->left, most);
    l->at_ps = SIM_MAX(l->slot_ps, run->not_before_ps);
}
static inline struct run_line run_first(const struct numa_run *run)
{
    struct run_line l = { .line = run->hpa.v >> LINE_LOG2,
                          .slot_ps = run->at_ps,
                          .left = run->bytes };

    run_line_set(&l, run, (unsigned)(LINE_BYTES - (run->hpa.v & (LINE_BYTES - 1))));
    return l;
}
/* False: it was the last one. */
static inline bool run_next(struct run_line *l, const struct numa_run *run)
{
    l->left -= l->bytes;
    l->line++;
    l->slot_ps += run->interval_ps;
    run_line_set(l, run, (unsigned)LINE_BYTES);
    return l->left != 0;
}
static inline void run_count(struct numa_run_done *done, const struct numa_run *run,
                             const struct run_line *l, sim_time done_ps)
{
    if (run->done_ps != NULL)
        run->done_ps[l->line - (run->hpa.v >> LINE_LOG2)] = done_ps;
    done->last_ps = SIM_MAX(done->last_ps, done_ps);
    done->held_ps += done_ps - l->at_ps;
}

/* ---- Checks ---------------------------------------------------------------------------------- */
/* A condition that parameters must not meet, and the message if they do. */
struct numa_rule {
    bool broken;
    const char *why;
};
/* False with the message of the first broken rule. */
bool numa_rules_hold(const struct numa_rule *rules, size_t n, const char **why);
/* bytes / line / slices / ways is a power of two: the sets of one slice. */
bool numa_sets_fit(uint64_t bytes, uint32_t slices, uint32_t ways);
/* Whether the invariants of all caches hold, for tests; false with a message and the line. */
bool numa_check_invariants(const struct numa *n, const char **why, uint64_t *bad_line);
/* coherence_ops.check of coherence_home.c */
void coherence_home_check(const struct numa *n, struct coherence_check *check);

#endif
