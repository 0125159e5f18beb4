/*
 * The memory system of one host: private caches, sliced last-level caches (LLC) with way masks and
 * DDIO, coherence between sockets, interconnect links, DRAM channels.
 *
 * Timing is by reservation: each function walks a transaction through the resources it needs,
 * beginning at at_ps, and returns the time at which the transaction is done. No events are
 * scheduled. Callers may be ahead of global time and of each other by up to a quantum; contended
 * resources are calendars of time slots, so that an early request does not queue behind a later
 * one.
 *
 * physmem.h holds the bytes; this side only knows which line is where and in which state.
 *
 * `stamp` parameters are latency stamps and may be NULL. They are marked with what each part of the
 * transaction took.
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

/* The parameters of a platform: one structure per group, filled by config_read_params(). */
struct numa_params {
    struct numa_cpu_params *cpu;                   /* group `cpu` */
    struct numa_cache_params *cache;               /* group `cache` */
    struct numa_coherence_params *coherence;       /* group `coherence` */
    struct numa_interconnect_params *interconnect; /* group `interconnect` */
    struct numa_dram_params *dram;                 /* group `dram` */
};

/* The groups in a fixed order, each with its table and the size of its structure, so that the code
 * that reads and describes them need not know the fields. Ends with a name of NULL. */
struct numa_param_group {
    const char *name; /* "cpu", "cache", "coherence", "interconnect", "dram" */
    const struct param_desc *table;
    size_t bytes;
    size_t offset; /* of the pointer in struct numa_params */
};
extern const struct numa_param_group numa_param_groups[];

/* Checks the parameters against each other; false with a static message in *why. */
bool numa_params_check(const struct numa_params *params, const char **why);
/* Creates the memory system and its physical memory. The parameters must have passed the check;
 * they and all they point to must outlive it. */
struct numa *numa_new(struct sim *sim, const char *name, const struct numa_params *params);
void numa_free(struct numa *numa);

unsigned numa_sockets(const struct numa *numa);
/* The number of cores of all sockets; core c is on socket c / cores_per_socket. */
unsigned numa_cores(const struct numa *numa);
/* Bytes that the caches of a socket hold, private ones and its LLC. */
uint64_t numa_cache_bytes(const struct numa *numa);
/* The length of a cycle of the cores' clock. */
sim_time numa_cycle_ps(const struct numa *numa);
unsigned numa_socket_of_core(const struct numa *numa, unsigned core);
struct physmem *numa_physmem(struct numa *numa);

/* What served an access. */
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
 * Loads from, or stores to, the line that holds hpa. The line's state changes at the call. The
 * caller decides which accesses overlap (models/host/core.c: line-fill buffers).
 */
struct numa_result numa_load(struct numa *numa, unsigned core, struct hpa hpa, sim_time at_ps,
                             struct sim_stamp *stamp);
struct numa_result numa_store(struct numa *numa, unsigned core, struct hpa hpa, sim_time at_ps,
                              struct sim_stamp *stamp);
/*
 * Fetches the line of instructions that holds hpa into the core's L1I (numa_has_l1i()), which is
 * read only. A hit is done l1_hit_cycles later like a load's; whether that costs time is the
 * caller's choice.
 */
struct numa_result numa_fetch(struct numa *numa, unsigned core, struct hpa hpa, sim_time at_ps);
bool numa_has_l1i(const struct numa *numa);
/* How many lines the core's L1I has got and lost so far: while the number stays, so does what is in
 * it. */
uint64_t numa_l1i_changes(const struct numa *numa, unsigned core);
/* Whether such an access would hit in the core's L1 or L2 (a store: with ownership). Changes
 * nothing. */
bool numa_private_hit(const struct numa *numa, unsigned core, struct hpa hpa, bool store);
/* Where it stands until when a modified line that the last fill of the core's L2 displaced needs
 * its buffer (cache.writeback_ns). Who has seen it sets it to 0. */
sim_time *numa_displaced_until(struct numa *numa, unsigned core);
/* Where the core's core group notes when the line of the store that had a bus transaction last was
 * observed by all other caches. */
sim_time *numa_observed(struct numa *numa, unsigned core);
/* Where it stands until when callers should come in order of time: a pool that they share has been
 * empty, or reads have waited for a channel, a microsecond before. */
const sim_time *numa_contended_until(const struct numa *numa);
/* Stores a full line non-temporally: invalidates all copies and writes to DRAM. Done when the home
 * agent or the hub has accepted it. */
struct numa_result numa_store_nt(struct numa *numa, unsigned core, struct hpa hpa, sim_time at_ps,
                                 struct sim_stamp *stamp);
/* CLFLUSH: writes the line back and invalidates all copies. Returns when it is done. */
sim_time numa_flush(struct numa *numa, unsigned core, struct hpa hpa, sim_time at_ps);

/*
 * The root complex of `socket` reads or writes 1 to 64 bytes within one cache line.
 * numa_dma_read() returns when the data are back at the root complex; it never allocates.
 * numa_dma_write() returns when the write is globally ordered: ownership gained, data in the LLC or
 * accepted by the home agent, as the policy says. A write of less than 64 bytes that misses reads
 * the line for ownership first. *source (may be NULL): what served the read; of a write, NUMA_LLC
 * if it updated a line in place, else NUMA_LOCAL_DRAM or NUMA_REMOTE_DRAM by the line's home.
 */
sim_time numa_dma_read(struct numa *numa, unsigned socket, struct hpa hpa, unsigned bytes,
                       sim_time at_ps, struct sim_stamp *stamp, enum numa_source *source);
sim_time numa_dma_write(struct numa *numa, unsigned socket, struct hpa hpa, unsigned bytes,
                        sim_time at_ps, struct sim_stamp *stamp, enum numa_source *source);
/* The lines of [hpa, hpa + bytes), which is memory of one node, in order: the i-th goes at at_ps +
 * i * interval_ps, but not before not_before_ps. */
struct numa_run {
    struct hpa hpa;
    unsigned bytes;
    sim_time at_ps, interval_ps, not_before_ps;
    sim_time *done_ps; /* NULL, or a place for when each line is done */
};
struct numa_run_done {
    sim_time last_ps; /* the latest of all */
    sim_time held_ps; /* how long they took, all together */
};
/* As numa_dma_read() and numa_dma_write() for each line, without a stamp. */
struct numa_run_done numa_dma_read_run(struct numa *numa, unsigned socket,
                                       const struct numa_run *run);
struct numa_run_done numa_dma_write_run(struct numa *numa, unsigned socket,
                                        const struct numa_run *run);

bool numa_has_llc(const struct numa *numa);
/* Returns the first socket whose LLC holds the line, -1: none does, or there are no LLCs. Changes
 * nothing. */
int numa_llc_holder(const struct numa *numa, struct hpa hpa);

/* Messages between sockets that carry no line. */
enum numa_io {
    NUMA_IO_REQUEST,   /* a read of a register */
    NUMA_IO_DATA,      /* its data; a write of a register; an interrupt */
    NUMA_IO_COMPLETION /* of a write */
};
/* Sends such a message at at_ps; returns its arrival. at_ps if both sockets are the same, or if
 * sockets share a hub at which the devices are. */
sim_time numa_io_send(struct numa *numa, unsigned from, unsigned to, enum numa_io what,
                      sim_time at_ps);

/* Prefetches the state of lines that the root complex of `socket` will access soon, on the real
 * machine. No simulated effect. */
void numa_prefetch(const struct numa *numa, unsigned socket, struct hpa hpa, unsigned bytes);
/* The same for the state of a line that `core` will load, or store to, in a few accesses' time.
 * Pays where the addresses are known but scattered: those of a stream are fetched ahead anyway. */
void numa_prefetch_load(const struct numa *numa, unsigned core, struct hpa hpa);

/* ---- For set-up of experiments: no time passes, no traffic is counted ------------------------ */
/* Invalidates every line of [hpa, hpa + bytes) in all caches and in the directory. */
void numa_warm_drop(struct numa *numa, struct hpa hpa, uint64_t bytes);
/* Empties all caches and the directory. */
void numa_warm_drop_all(struct numa *numa);
/* Leaves the state that `core`, or a device at `socket`, leaves when it writes the range in
 * ascending order. */
void numa_warm_core(struct numa *numa, unsigned core, struct hpa hpa, uint64_t bytes);
void numa_warm_device(struct numa *numa, unsigned socket, struct hpa hpa, uint64_t bytes);

/* Leaves the state that a load of `core` leaves. */
void numa_warm_load(struct numa *numa, unsigned core, struct hpa hpa);
/* Leaves the state that cores of `socket` leave when they read the range and evict it silently: no
 * cache has the lines, but an in-memory directory still lists those of other sockets' memory. */
void numa_warm_forgotten(struct numa *numa, unsigned socket, struct hpa hpa, uint64_t bytes);

/*
 * While it is on, what a device's write would allocate in an LLC (of its own socket, with home_llc
 * of the line's home) goes to DRAM unless that LLC has the line: each line that cores read is
 * brought in by a core's miss. A line of a buffer that is written and read over and over leaves
 * DDIO's ways like that, at its first miss, anyway; this lets all of them miss at once
 * (docs/models/memory.md#warm). Time passes, traffic is counted.
 */
void numa_warm_by_misses(struct numa *numa, bool on);

/* ---- Statistics ------------------------------------------------------------------------------ */
/* The table of each socket. */
extern const struct stat_desc numa_counter_table[];
/* Returns the index-th table of statistics with its prefix ("s0.") and its state; false beyond the
 * last. They count bytes of DRAM and interconnect by cause. */
bool numa_stats(struct numa *numa, unsigned index, const char **prefix,
                const struct stat_desc **table, void **state);
/* Loads, stores and fetches of instructions of one core that its L1 could not answer by itself;
 * those of them whose line its L2 did not have; those whose line no cache of its socket had (a
 * store to a line that one of them has, and that must be owned first, is none). And what its
 * accesses made the L2's prefetcher look for in the L2, and the lines that it then fetched. Since
 * the beginning, never cleared. */
struct numa_private_count {
    uint64_t l2_accesses, l2_misses, llc_misses;
    uint64_t prefetches, prefetched;
};
struct numa_private_count numa_private_count(const struct numa *numa, unsigned core);
/* Bytes read from and written to DRAM, of all sockets. */
uint64_t numa_dram_bytes(const struct numa *numa);
/* What a request can wait for in a channel of DRAM. */
struct numa_dram_timing {
    unsigned channels; /* of a node */
    sim_time burst_ps; /* of a line */
    sim_time activate_ps, precharge_ps;
    sim_time
        turnaround_ps; /* tWTR and two clocks: by which a write mode delays a read that waits */
};
struct numa_dram_timing numa_dram_timing(const struct numa *numa);
/* Bytes that from_socket has sent to to_socket. */
uint64_t numa_interconnect_bytes(const struct numa *numa, unsigned from_socket, unsigned to_socket);
/* The latency of a load that misses everywhere, without contention and refresh; the protocol's file
 * has the formula. */
sim_time numa_idle_load_ps(const struct numa *numa, unsigned from_socket, unsigned home_socket);

#endif
