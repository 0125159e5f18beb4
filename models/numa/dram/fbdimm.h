/*
 * FB-DIMM branches of a memory controller: what stands behind dram.h where dram.fb_dimm is set.
 *
 * A branch is two channels in lockstep (dram.channels counts branches, dram.bus_bytes is 16), each
 * with `dimms` DIMMs in a chain. Read data go north, write data south at half that rate; behind the
 * buffer of each DIMM is a DDR2 bus of its own.
 */
#ifndef MODELS_NUMA_DRAM_FBDIMM_H
#define MODELS_NUMA_DRAM_FBDIMM_H

#include "models/numa/dram/dram.h"

#define FBDIMM_MAX_DIMMS 4u
#define FBDIMM_MAX_QUEUE 64u

/* Where a line is. */
struct fbdimm_place {
    struct fbdimm_branch *branch;
    struct calendar_slots *bank;
    uint32_t dimm;
    uint32_t refresh; /* index into dram.refresh_ps */
};

struct fbdimm_branch {
    struct calendar north;                 /* a slot: one line */
    struct calendar south;                 /* the same, twice as long */
    struct calendar bus[FBDIMM_MAX_DIMMS]; /* DDR2, reads and writes */
    struct calendar_slots *bank;           /* a slot: one access, precharge included */
    /* As struct dram_channel. */
    sim_time drain_from_ps, drained_ps;
    uint32_t n_queued;
    struct fbdimm_place queued[FBDIMM_MAX_QUEUE];
};

/* dram->params and dram->burst_ps are set. */
void fbdimm_init(struct dram *dram);
void fbdimm_release(struct dram *dram);
/* As dram_read(), dram_write(), dram_idle_read_ps() and dram_peaks(). */
sim_time fbdimm_read(struct dram *dram, uint64_t line, sim_time at_ps);
sim_time fbdimm_write(struct dram *dram, uint64_t line, sim_time at_ps);
sim_time fbdimm_idle_read_ps(const struct dram *dram);
struct dram_peaks fbdimm_peaks(const struct dram *dram, sim_time now_ps);

#endif
