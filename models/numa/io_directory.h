/*
 * The I/O directory cache of one home (Skylake-SP: IODC): lines that a remote device is about to
 * write. While it has an entry for a line, the home need not read the line's directory bits from
 * DRAM to grant ownership, nor change them; the entry goes with the write-back. Entries are taken
 * in turn: one that is held longer than the others keeps the next from being taken.
 */
#ifndef MODELS_NUMA_IO_DIRECTORY_H
#define MODELS_NUMA_IO_DIRECTORY_H

#include "sim/engine/types.h"

struct io_directory {
    sim_time *free_ps; /* when each entry is free; NULL: there are none */
    uint32_t n, next;
    sim_time *taken; /* by the last io_directory_take(); NULL: it was refused */
};

/* Takes an entry at at_ps, until io_directory_release(); false: none is free. */
static inline bool io_directory_take(struct io_directory *d, sim_time at_ps)
{
    d->taken = d->n != 0 && d->free_ps[d->next] <= at_ps ? &d->free_ps[d->next] : NULL;
    if (d->taken == NULL)
        return false;
    d->next = d->next + 1 == d->n ? 0 : d->next + 1;
    return true;
}

/* The line of the last io_directory_take() is written back at at_ps; nothing if that was
 * refused. */
static inline void io_directory_release(struct io_directory *d, sim_time at_ps)
{
    if (d->taken != NULL)
        *d->taken = at_ps;
    d->taken = NULL;
}

#endif
