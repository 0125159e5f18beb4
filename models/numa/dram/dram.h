/*
 * The DRAM channels of one socket (or of one memory controller hub).
 *
 * Models: channels interleaved by line with a hash; banks, unevenly filled, with an open row that
 *   an idle timer closes; groups of banks, whose column commands are tCCD_L apart; row hits,
 *   misses, conflicts; a read queue with a bound, whose reads of a row that is still open go before
 *   those of others; data bus as a slot calendar; writes that wait in a queue, go one by one while
 *   no read waits, and in write mode from three quarters of the queue down to one quarter, oldest
 *   first; banks that writes keep busy; a rank that is read tWTR after its last write; refresh,
 *   staggered over the ranks, put off until the rank has nothing to do or as many are due as may be
 *   postponed; gaps on the bus for changes of rank, as many as are expected of the bursts that
 *   become ready within the same 256 bursts' time if they are served in that order, ranks mixed at
 *   random, and fewer the more of them wait, since the controller collects those of a rank. With
 *   fb_dimm all of this is fbdimm.c's.
 * Does not model: what a read that goes first costs those of other rows, whose time has been told;
 *   commands' bus, tFAW (with 2 ranks never the limit at these rates), reads served from the write
 *   queue, the end of write mode for reads that starve, refreshes before they are due. Callers who
 *   run ahead do not know of those behind. What has become of a write is decided by the next read,
 *   or when the queue is full. That a rank is idle, and how long reads wait, is judged by the calls
 *   so far. While reads wait, cores are told to stay near each other (contended_until_ps).
 * Timing:
 *   idle read = controller + tRCD + tCL + burst; row hit without tRCD, conflict with tRP
 *   (and tRAS since the activation). Plus what is left of a refresh.
 * Sources: docs/sources.md#h
 */
#ifndef MODELS_NUMA_DRAM_DRAM_H
#define MODELS_NUMA_DRAM_DRAM_H

#include "models/numa/dram/calendar.h"
#include "sim/engine/stat.h"

struct numa_dram_params {
    uint64_t node_bytes;
    bool high_first; /* memory from 4 GiB on is given first */
    uint32_t channels;
    uint32_t ranks;
    uint32_t banks;
    uint32_t row_lines;
    double data_rate_mt_s;
    uint32_t bus_bytes;
    sim_time controller_ps;
    sim_time trcd_ps, tcl_ps, trp_ps, tras_ps;
    sim_time trfc_ps, trefi_ps;
    uint32_t refresh_postponed;
    sim_time refresh_idle_ps;
    sim_time tcwl_ps, twtr_ps;
    sim_time rank_switch_ps;
    sim_time page_idle_ps;
    uint32_t write_batch;
    uint32_t write_queue;
    uint32_t read_queue;
    uint32_t bank_groups;
    sim_time tccd_l_ps;
    sim_time twr_ps;
    bool fb_dimm; /* the channels are branches */
    uint32_t dimms;
    sim_time buffer_ps, hop_ps;
};

#define DRAM_CLOSING   3u  /* a queue of 22 to 48 reads over 32 banks */
#define DRAM_MAX_READS 64u /* that wait in a channel */

/* From when until when a row takes column commands. */
struct dram_closing {
    sim_time from_ps, until_ps;
    uint32_t row;
};

/* One interval [busy_from, busy_until) of work that is reserved and touches; a request that fits
 * before it belongs to a caller behind the others and is not queued behind them. */
struct dram_bank {
    sim_time busy_from_ps, busy_until_ps;
    sim_time act_ps;       /* last activation */
    sim_time recovered_ps; /* of writes: the open row may be closed (tWR) */
    uint32_t row;
    /* Rows that are closed before the last one is opened, latest first. */
    struct dram_closing closing[DRAM_CLOSING];
};

#define DRAM_MAX_CHANNELS 16u
#define DRAM_MAX_RANKS    8u
#define DRAM_MAX_WRITES   128u /* that wait in a channel */
#define WRITTEN_WORDS     16u  /* longer than callers are apart */
#define DRAM_MIXES        16u  /* windows kept: as long as the bus calendar */

/* How many bursts of which rank are ready in a window of time. */
struct dram_mix {
    uint64_t window;    /* number of the window since time 0 */
    sim_time waited_ps; /* by all reads for the bus, and each for itself */
    uint32_t n;         /* bursts */
    uint32_t squares;   /* sum of of_rank^2 */
    uint32_t changes;   /* of rank, expected, in 1/256 */
    uint16_t of_rank[DRAM_MAX_RANKS];
};

/* Refreshes of a rank: the last one keeps those waiting who come in [from, until). */
struct dram_rank {
    sim_time due_ps; /* of the first that has not been done */
    sim_time from_ps, until_ps;
    sim_time used_ps; /* end of the last data */
};

/* As of a bank: column commands of a group of banks that touch, each of which takes tCCD_L. */
struct dram_group {
    sim_time busy_from_ps, busy_until_ps;
};

/* A write that waits since at_ps. */
struct dram_write {
    sim_time at_ps;
    uint32_t row;
    uint32_t bank; /* within the channel */
};

/* A read that waits from at_ps until its column command. */
struct dram_waiting {
    sim_time at_ps, column_ps;
};

/* Which slots of the bus, of 64 that follow each other, have data of writes to a rank. */
struct dram_written {
    uint64_t word; /* their number since time 0, in 64 */
    uint64_t bits;
};

struct dram_channel {
    /* The pages of the long arrays behind are not touched before the first access. */
    struct dram_rank rank[DRAM_MAX_RANKS];
    sim_time full_until_ps; /* counts.write_full_ps is complete until then */
    sim_time turned_ps;     /* reads from here on are behind no write */
    /* Write modes that follow each other without a pause end at drained_ps and began at
     * drain_from_ps; who is before that is not queued behind them. */
    sim_time drain_from_ps, drained_ps;
    sim_time known_ps;        /* no more reads are expected before */
    struct dram_bank *bank;   /* the channel's */
    struct dram_group *group; /* the same */
    sim_time waited_ps;       /* for the bus, by reads: 256 times the mean of the last 256 or so */
    uint32_t n_given;         /* writes, in these modes */
    uint32_t last_rank;       /* given */
    uint32_t n_queued;
    uint32_t n_arrived; /* of these, before known_ps: what the controller has in its queue */
    uint32_t oldest;    /* of `waiting` */
    uint32_t gap_due;   /* 1/256 clocks of gaps not yet taken from the bus */
    struct calendar bus;
    struct dram_write queued[DRAM_MAX_WRITES + 1];
    struct dram_written written[DRAM_MAX_RANKS][WRITTEN_WORDS];
    /* The reads of the latest column commands, as many as the queue has places, in their order from
     * `oldest` on, round. */
    struct dram_waiting waiting[DRAM_MAX_READS];
    struct dram_mix mix[DRAM_MIXES];
};

/* What happened; the statistics that numa keeps of each socket. With fb_dimm nothing is counted. */
struct dram_counts {
    uint64_t read_activates, read_conflicts; /* rows opened; those for which another was closed */
    uint64_t write_modes;                    /* batches of writes */
    sim_time read_wait_ps;  /* of all reads, from the channel's queue to the column command */
    sim_time write_wait_ps; /* of all writes, until the write queue has taken them */
    sim_time write_full_ps; /* of all channels, in which a write waited for the write queue */
};

struct fbdimm_branch;

/* Where the lines of a rank's turn are: 128 of each channel that follow each other. */
struct dram_turn {
    uint64_t key;  /* number of the turn, plus 1; 0: none is kept here */
    uint32_t bank; /* of the channel; group 0 */
    uint32_t row;
    uint32_t hash; /* the turn's part of what channel numbers are hashed with */
};
#define DRAM_TURNS 64u /* kept, by number */

/* What fbdimm.c works out once. */
struct fbdimm_shape {
    uint32_t banks_log2, banks_mask, rank_mask, dimm_mask; /* of a branch */
    uint32_t ranks;                                        /* the same, of all its DIMMs */
    sim_time command_ps, write_delay_ps, chain_ps;
};

struct dram {
    const struct numa_dram_params *params;
    struct fbdimm_branch *branch; /* fb_dimm; else NULL */
    struct fbdimm_shape fbdimm;
    struct dram_channel *channel;
    struct dram_bank *bank;     /* of all channels */
    struct dram_group *group;   /* the same */
    struct dram_counts *counts; /* never NULL */
    struct dram_counts own_counts;
    sim_time *contended_until_ps; /* callers should come in order of time until then; never NULL */
    sim_time own_contended_ps;
    sim_time burst_ps;
    uint32_t n_banks; /* per channel, ranks included; a power of two */
    uint32_t rank_log2, bank_log2, row_log2,
        group_log2;      /* bank: of a rank; group: interleaved by line */
    uint32_t n_groups;   /* per rank */
    sim_time column_ps;  /* between column commands of a group */
    uint32_t group_mask; /* of a line's number in its channel */
    uint32_t rank_switch_clocks;
    bool rank_switches;             /* cost something */
    uint32_t write_high, write_low; /* writes queued: write mode begins, ends */
    sim_time write_read_ps;         /* end of a write's data to those of a read of its rank */
    uint32_t write_read_slots;      /* in how many slots, the last one included, a write may be */
    uint64_t channel_reciprocal;
    /* Of a line's number among the channels and up to 7 of a hash: the channel. */
    uint8_t channel_of[DRAM_MAX_CHANNELS + 8];
    bool whole_turns; /* a turn lies in one row of a bank of each group */
    struct dram_turn turn[DRAM_TURNS];
    uint64_t trefi_reciprocal; /* 2^64 / tREFI, rounded up */
    /* FB-DIMM: of each rank of each DIMM of each branch: tREFI less the offset of its refreshes. */
    sim_time refresh_ps[DRAM_MAX_CHANNELS * DRAM_MAX_RANKS];
};

/* FB-DIMM: the end of the refresh that covers at_ps on this rank (an index into refresh_ps), or
 * at_ps. */
static inline sim_time dram_after_refresh(const struct dram *dram, uint32_t rank, sim_time at_ps)
{
    const struct numa_dram_params *params = dram->params;

    if (params->trfc_ps == 0)
        return at_ps;
    const sim_time since_ps = at_ps + dram->refresh_ps[rank];
    /* The rounded-up reciprocal may give one interval too many, never too few. */
    const uint64_t n = (uint64_t)(((unsigned __int128)since_ps * dram->trefi_reciprocal) >> 64);
    const uint64_t interval = n * params->trefi_ps > since_ps ? n - 1 : n;
    const sim_time phase_ps = since_ps - interval * params->trefi_ps;

    return phase_ps < params->trfc_ps ? at_ps + params->trfc_ps - phase_ps : at_ps;
}

/* counts: where to count; NULL: nowhere that anybody sees. */
void dram_init(struct dram *dram, const struct numa_dram_params *params,
               struct dram_counts *counts);
void dram_release(struct dram *dram);
/* line: number of the line within the node. Time at which the data leave the controller. */
sim_time dram_read(struct dram *dram, uint64_t line, sim_time at_ps);
/* Posted; time at which the write queue has accepted it. */
sim_time dram_write(struct dram *dram, uint64_t line, sim_time at_ps);
sim_time dram_idle_read_ps(const struct dram *dram);
/* What the channels can carry (read, written, both). The slack: bursts that are reserved after
 * now_ps, and writes that are queued. Not hot. */
struct dram_peaks {
    struct stat_peak read, write, both;
};
struct dram_peaks dram_peaks(const struct dram *dram, sim_time now_ps);

#endif
