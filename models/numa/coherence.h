/*
 * A coherence protocol of a host's memory system: what happens to an access that the private caches
 * of a core cannot serve, and to the accesses of devices.
 *
 * A protocol is one file with its struct coherence_ops and one line in COHERENCE_PROTOCOLS. Nothing
 * outside its files asks which protocol a host has.
 */
#ifndef MODELS_NUMA_COHERENCE_H
#define MODELS_NUMA_COHERENCE_H

#include "models/numa/cache.h"
#include "models/numa/interconnect/interconnect.h"
#include "models/numa/numa.h"

/* All protocols: the value of the parameter coherence.protocol, and the operations. */
#define COHERENCE_PROTOCOLS(X)                    \
    X("home_snoop_directory", coherence_home_ops) \
    X("front_side_bus", coherence_fsb_ops)

struct core_group;

/* A line granted to a core group: its state there (E or S), and its place in the LLC
 * (core_group.llc_at). */
struct fetched {
    enum line_state state;
    uint32_t llc_at;
};

/* The first fault that a check of invariants found; why is NULL as long as there is none. */
struct coherence_check {
    const char *why;
    uint64_t line;
};

/*
 * Functions that return a time walk the transaction through the resources that it needs, beginning
 * at at_ps, and return when it is done. While n->quiet is set (warming), they change states, but
 * take no time and count nothing. stamp may be NULL where a function takes one.
 */
struct coherence_ops {
    /* ---- Set-up; all of them are required ---- */
    /* Checks the parameters that only this protocol uses; false with a message in *why. */
    bool (*params_check)(const struct numa_params *params, const char **why);
    /* The number of memory nodes. */
    unsigned (*nodes)(const struct numa_params *params);
    /* Allocates what the protocol keeps; cores and their caches do not exist yet, DRAM does. */
    void (*init)(struct numa *n);
    void (*release)(struct numa *n);

    /* ---- Accesses; all of them but the runs are required ---- */
    /* Serves a load or store that misses in the core's group; the miss is known at at_ps. Sets
     * *result. The caller puts the line into the private caches. */
    struct fetched (*fetch)(struct numa *n, unsigned core, uint64_t line, bool store,
                            sim_time at_ps, struct sim_stamp *stamp, struct numa_result *result);
    /* The same without a latency stamp, where the socket has a fast LLC (numa_internal.h) that does
     * not have the line, and where it would be is known. NULL: there are no fast LLCs. */
    struct fetched (*fetch_missed)(struct numa *n, const struct core_group *group,
                                   struct cache_place place, uint64_t line, bool store,
                                   sim_time at_ps, struct numa_result *result);
    /* Takes a line evicted from the core group: dirty ones, and clean ones unless the LLC is
     * inclusive. llc_at: as fetch() returned it, if the core group keeps it. Returns how long full
     * queues hold it up: what displaced it waits as long. */
    sim_time (*writeback)(struct numa *n, unsigned group, uint64_t line, uint32_t llc_at,
                          bool dirty, sim_time at_ps);
    /* As numa_store_nt(), numa_flush(), numa_dma_read() and numa_dma_write(). full: the write
     * covers the line. *source is always set. */
    sim_time (*store_nt)(struct numa *n, unsigned core, uint64_t line, sim_time at_ps,
                         struct sim_stamp *stamp);
    sim_time (*flush)(struct numa *n, unsigned core, uint64_t line, sim_time at_ps);
    sim_time (*dma_read)(struct numa *n, unsigned socket, uint64_t line, sim_time at_ps,
                         struct sim_stamp *stamp, enum numa_source *source);
    sim_time (*dma_write)(struct numa *n, unsigned socket, uint64_t line, bool full, sim_time at_ps,
                          struct sim_stamp *stamp, enum numa_source *source);
    /* As numa_dma_read_run() and numa_dma_write_run(). NULL: line by line. */
    struct numa_run_done (*dma_read_run)(struct numa *n, unsigned socket,
                                         const struct numa_run *run);
    struct numa_run_done (*dma_write_run)(struct numa *n, unsigned socket,
                                          const struct numa_run *run);
    /* Sends a message that carries no line from one socket to another one; returns its arrival. */
    sim_time (*io_send)(struct numa *n, unsigned from, unsigned to, enum message message,
                        sim_time at_ps);
    /* What a socket can have put on its links to another one (or, to itself, on its front-side bus)
     * by now_ps, in bytes as numa_count_message() counts; all zero: nothing is counted there. */
    struct stat_peak (*to_peak)(const struct numa *n, unsigned from, unsigned to, sim_time now_ps);
    /* The latency of a load that misses everywhere, without contention and refresh. */
    sim_time (*idle_load_ps)(const struct numa *n, unsigned from, unsigned home);

    /* ---- Warming ---- */
    /* Invalidates all copies of lines first .. end - 1, those of private caches included; then
     * nobody has them. */
    void (*drop)(struct numa *n, uint64_t first, uint64_t end);
    /* Empties what the protocol keeps; the private caches are empty already. NULL: keeps no
     * lines. */
    void (*drop_all)(struct numa *n);
    /* After drop(): leaves what a core of the socket leaves when it reads the lines and evicts them
     * silently. NULL: such a read leaves nothing. */
    void (*leave_stale)(struct numa *n, unsigned socket, uint64_t first, uint64_t end);

    /* ---- Observation ---- */
    /* The first socket whose LLC holds the line, -1: none does. NULL: there are no LLCs. */
    int (*llc_holder)(const struct numa *n, uint64_t line);
    /* Checks the protocol's own invariants, for tests; reports by coherence_check_fail(). NULL: it
     * has none beyond those of the private caches. */
    void (*check)(const struct numa *n, struct coherence_check *check);
};

#define COHERENCE_DECLARE(NAME, OPS) extern const struct coherence_ops OPS;
COHERENCE_PROTOCOLS(COHERENCE_DECLARE)
#undef COHERENCE_DECLARE

/* Names of the protocols and their operations, in the same order; NULL-terminated. */
extern const char *const coherence_protocol_names[];
extern const struct coherence_ops *const coherence_protocols[];

/* Whether all required operations are there; false with the name of one that is missing in *why. */
bool coherence_ops_valid(const struct coherence_ops *ops, const char **why);

/* Keeps the first fault. why: static. */
static inline void coherence_check_fail(struct coherence_check *check, uint64_t line,
                                        const char *why)
{
    if (check->why == NULL)
        *check = (struct coherence_check){ why, line };
}

#endif
