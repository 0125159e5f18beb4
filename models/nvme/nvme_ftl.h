/*
 * The flash translation layer of media = "nand": where a drive's pages of 4 KiB lie in flash. It
 * knows no time: it says what has to be done.
 *
 * A block is erased as a whole; it spans the planes of a die. It is programmed unit by unit, a unit
 * being the same flash page of all planes. Host data fill units on all dies in turn; what
 * collection moves stays on its die, in a block of its own (two streams).
 *
 * Memory grows with what is written: an array of blocks for each die that was written, four bytes
 * for each page of a block that was opened, four for each of 4096 pages around one that was
 * written. What a drive held before (enum nvme_preconditioned) is counted by block, not listed.
 */
#ifndef MODELS_NVME_NVME_FTL_H
#define MODELS_NVME_NVME_FTL_H

#include "sim/engine/sim.h"

/* What the drive held when it was plugged in. */
enum nvme_preconditioned {
    NVME_FRESH,  /* nothing */
    NVME_FULL,   /* every page, written once from the first to the last */
    NVME_STEADY, /* every page, and random writes until garbage collection had settled */
};

#define FTL_NONE UINT32_MAX

struct ftl_geometry {
    uint32_t n_dies, unit_pages, block_units;
    uint32_t n_pages;   /* that the host sees; at most UINT32_MAX - 16 */
    double spare_ratio; /* pages of flash beyond these, of these */
    uint32_t gc_blocks; /* free ones of a die at or below which blocks are collected */
    int preconditioned; /* enum nvme_preconditioned */
};

struct ftl_block {
    uint32_t n_valid;     /* pages that hold something, */
    uint32_t n_anonymous; /* of these: that the drive held before, we know not which */
    uint32_t n_erases;
    uint8_t state;  /* enum ftl_block_state */
    bool original;  /* as it was when the drive was plugged in, but for what became invalid */
    uint32_t *page; /* which page each holds, FTL_NONE or FTL_ANONYMOUS; NULL: all of the latter */
};

enum ftl_stream { FTL_HOST, FTL_MOVED, FTL_STREAMS };

struct ftl_die {
    struct ftl_block *block; /* NULL: nothing was written to the die yet */
    uint32_t n_free;
    uint32_t open[FTL_STREAMS],
        next[FTL_STREAMS];                 /* block, its next page; FTL_NONE: none is open */
    uint32_t victim, cursor, victim_valid; /* being collected; FTL_NONE: none */
    uint32_t moved_unit;                   /* that was read last of it */
    uint64_t debt;                         /* collection is behind by, in pages x reclaimed pages */
};

struct ftl {
    struct ftl_geometry geometry;
    struct sim_random *random;
    struct sim_pool *blocks, *chunks;
    uint32_t n_blocks, block_pages; /* of a die; of a block */
    uint32_t host_die;              /* whose unit is being filled */
    struct ftl_die *die;
    struct ftl_collection *collection; /* n_collections of the last write; room for all dies */
    uint32_t n_collections;
    struct ftl_chunk **chunk, *nowhere; /* nowhere: of pages that were deallocated; shared */
    uint32_t n_chunks;
    uint64_t n_written, n_moved, n_erased; /* pages by the host; by collection; blocks */
};

/* What collection did on a die. */
struct ftl_collection {
    uint32_t die, n_reads, n_programs, n_erases; /* units, units, blocks */
    uint32_t n_moved;                            /* pages */
};

/* What follows from a write. */
struct ftl_work {
    bool program;       /* the unit `unit` of die `die` is full of the host's pages */
    uint32_t die, unit; /* unit: of the die */
    /* n_collections of them, until the next write: on the die, and on those that had no room */
    const struct ftl_collection *collection;
    uint32_t n_collections;
};

/* Where a page is. */
struct ftl_place {
    bool somewhere; /* false: deallocated or never written */
    bool in_buffer; /* its unit is not full yet */
    uint32_t die, unit;
};

/* False: so little flash, or so much, cannot be managed. */
bool ftl_fits(const struct ftl_geometry *geometry);
/* geometry fits; random stays the caller's. */
void ftl_init(struct ftl *ftl, struct sim *sim, const struct ftl_geometry *geometry,
              struct sim_random *random);
void ftl_release(struct ftl *ftl);
struct ftl_place ftl_find(const struct ftl *ftl, uint32_t page);
/* The host writes the page. */
void ftl_write(struct ftl *ftl, uint32_t page, struct ftl_work *work);
/* Pages hold nothing any more. */
void ftl_deallocate(struct ftl *ftl, uint32_t first, uint32_t n);
/* Erasures of a block, the mean of all. */
double ftl_wear(const struct ftl *ftl);
/* Every page that was written is where the map says, and blocks count what they hold: for tests. */
bool ftl_consistent(const struct ftl *ftl);
/* Bytes allocated, without the heads of arrays: for tests. */
uint64_t ftl_bytes(const struct ftl *ftl);

#endif
