/*
 * The memory system of one host: private caches, sliced last-level caches (LLC) with way masks and
 * DDIO, coherence between sockets, interconnect links, DRAM channels.
 *
 * Timing is by reservation: each function walks a transaction through the resources it needs,
 * beginning at at_ps, and returns the time at which it is done; nothing is scheduled. Callers may
 * be ahead of global time and of each other by up to a quantum; contended resources are calendars
 * of time slots, so that a slightly early request is not queued behind a later one.
 *
 * Function (the bytes) is physmem's; this side only knows which line is where and in which state.
 */
#ifndef MODELS_NUMA_NUMA_H
#define MODELS_NUMA_NUMA_H

#include "models/base/address.h"
#include "models/base/latency.h"
#include "models/numa/physmem.h"
#include "sim/config/param.h"
#include "sim/engine/sim.h"
#include "sim/engine/stat.h"

struct numa;

/* What the platform file says: one table per group, filled by config_read_params(). */
struct numa_params {
    struct numa_cpu_params *cpu;                   /* group `cpu` */
    struct numa_cache_params *cache;               /* group `cache` */
    struct numa_coherence_params *coherence;       /* group `coherence` */
    struct numa_interconnect_params *interconnect; /* group `interconnect` */
    struct numa_dram_params *dram;                 /* group `dram` */
};

/* The groups in a fixed order, each with its table and the size of its struct, so that builder,
 * `describe` and the manual need not know the fields. NULL-name-terminated. */
struct numa_param_group {
    const char *name; /* "cpu", "cache", "coherence", "interconnect", "dram" */
    const struct param_desc *table;
    size_t bytes;
    size_t offset; /* of the pointer in struct numa_params */
};
extern const struct numa_param_group numa_param_groups[];

/* Checks the parameters against each other (false with a message in *why, static) before new. */
bool numa_params_check(const struct numa_params *params, const char **why);
/* params (and what it points to) must outlive the object. physmem is owned by it. */
struct numa *numa_new(struct sim *sim, const char *name, const struct numa_params *params);
void numa_free(struct numa *numa);

unsigned numa_sockets(const struct numa *numa);
unsigned
numa_cores(const struct numa *numa); /* of all sockets; core c is on socket c / per-socket */
/* One cycle of the cores' clock. */
sim_time numa_cycle_ps(const struct numa *numa);
unsigned numa_socket_of_core(const struct numa *numa, unsigned core);
struct physmem *numa_physmem(struct numa *numa);

/* Where an access was served from. */
enum numa_source {
    NUMA_L1,
    NUMA_L2,
    NUMA_LLC,
    NUMA_PEER_CACHE,
    NUMA_REMOTE_CACHE,
    NUMA_LOCAL_DRAM,
    NUMA_REMOTE_DRAM,
    N_NUMA_SOURCES
};

struct numa_result {
    sim_time done_ps; /* load: data in a register; store: ownership gained, data in L1 */
    enum numa_source source;
};

/*
 * One core access to the line that holds hpa. The line's state changes at once. Which accesses may
 * overlap is the core's business (models/host/core.c: line-fill buffers).
 */
struct numa_result numa_load(struct numa *numa, unsigned core, struct hpa hpa, sim_time at_ps,
                             struct sim_stamp *stamp);
struct numa_result numa_store(struct numa *numa, unsigned core, struct hpa hpa, sim_time at_ps,
                              struct sim_stamp *stamp);
/* Whether such an access would be satisfied by the core's L1 or L2 (a store: they own the line).
 * Changes nothing. */
bool numa_private_hit(const struct numa *numa, unsigned core, struct hpa hpa, bool store);
/* Non-temporal store of a full line: invalidates copies, goes to DRAM; done when accepted. */
struct numa_result numa_store_nt(struct numa *numa, unsigned core, struct hpa hpa, sim_time at_ps,
                                 struct sim_stamp *stamp);
/* CLFLUSH: writes back and invalidates everywhere. */
sim_time numa_flush(struct numa *numa, unsigned core, struct hpa hpa, sim_time at_ps);

/*
 * One cache line (or part of it: 1..64 bytes within one line) read or written by the root complex
 * of `socket`. Read: time at which the data is back at the root complex; never allocates. Write:
 * time at which the write is globally ordered (ownership gained, data in the LLC or accepted by
 * the home agent, by the policy). bytes < 64 needs the rest of the line first (read for ownership
 * on a miss). source tells where a read was served from, or whether a write updated (NUMA_LLC) or
 * allocated (NUMA_LOCAL_DRAM/NUMA_REMOTE_DRAM by home); may be NULL.
 */
sim_time numa_dma_read(struct numa *numa, unsigned socket, struct hpa hpa, unsigned bytes,
                       sim_time at_ps, struct sim_stamp *stamp, enum numa_source *source);
sim_time numa_dma_write(struct numa *numa, unsigned socket, struct hpa hpa, unsigned bytes,
                        sim_time at_ps, struct sim_stamp *stamp, enum numa_source *source);

/* The first socket whose LLC holds the line, -1 if none does (behind a front-side bus there is no
 * LLC). Changes nothing. */
int numa_llc_holder(const struct numa *numa, struct hpa hpa);

/* What crosses between sockets besides lines: reads of registers and their data, writes of
 * registers and interrupts, which carry data too, and the completions of writes. */
enum numa_io { NUMA_IO_REQUEST, NUMA_IO_DATA, NUMA_IO_COMPLETION };
/* When such a message sent at at_ps is at the other socket; at_ps if that is the same one, and
 * where sockets have no links of their own but a common hub (devices are there). */
sim_time numa_io_send(struct numa *numa, unsigned from, unsigned to, enum numa_io what,
                      sim_time at_ps);

/* The lines will be asked for by the root complex of `socket` soon: lets the host machine fetch
 * what is known about them. No simulated effect. */
void numa_prefetch(const struct numa *numa, unsigned socket, struct hpa hpa, unsigned bytes);

/* ---- For set-up of experiments: no time passes, no traffic is counted ------------------------ */
/* Drops every line of [hpa, hpa + bytes) from all caches (directory entries too). */
void numa_warm_drop(struct numa *numa, struct hpa hpa, uint64_t bytes);
/* Drops everything from all caches. */
void numa_warm_drop_all(struct numa *numa);
/* As if `core` had written the range in ascending order / as if the device at `socket` had. */
void numa_warm_core(struct numa *numa, unsigned core, struct hpa hpa, uint64_t bytes);
void numa_warm_device(struct numa *numa, unsigned socket, struct hpa hpa, uint64_t bytes);

/* As if cores of `socket` had read the range once, long ago: no cache has it any more, but where
 * there is an in-memory directory, it does not know that of lines of other sockets. */
void numa_warm_forgotten(struct numa *numa, unsigned socket, struct hpa hpa, uint64_t bytes);

/* ---- Statistics ------------------------------------------------------------------------------ */
/* Tables and their states for run_result_stats(), one per call with ascending index until false;
 * prefix is "" or "s0." and so on. Bytes of DRAM and interconnect, by cause. */
bool numa_stats(struct numa *numa, unsigned index, const char **prefix,
                const struct stat_desc **table, void **state);
/* Sums over everything, for derived metrics. */
uint64_t numa_dram_bytes(const struct numa *numa);
uint64_t numa_interconnect_bytes(const struct numa *numa, unsigned from_socket, unsigned to_socket);
/* Idle latency of a load that misses everywhere, by the formula at the head of numa.c; for tests
 * and docs. */
sim_time numa_idle_load_ps(const struct numa *numa, unsigned from_socket, unsigned home_socket);

#endif
