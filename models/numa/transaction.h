/*
 * What a transaction between a caching agent and a home agent holds, from when it leaves its slice
 * of the LLC until that knows that it is over.
 *
 * Models: an entry of the slice's table of requests (TOR), request_entries; for another socket's
 *   memory one of the socket's transaction IDs of that home, transaction_ids, and from its arrival
 *   a tracker of the home, remote_trackers; for memory of its own socket a tracker, local_trackers.
 *   Trackers are split: a transaction of a device takes one of io_trackers, if there are any.
 *   Write-backs take what reads take. One that lacks an entry, an ID or a tracker of its own socket
 *   waits at its slice and holds none of them; others pass it. One that lacks a tracker of another
 *   socket's home waits there, in the receive buffer of the link (interconnect.h).
 * Does not model: table entries of hits, of requests that are rejected, and of snoops; entries that
 *   are reserved for a kind of request; several home agents of a socket, each with a share of its
 *   trackers.
 * Timing: the latest of what is waited for.
 * Sources: docs/sources.md#k
 */
#ifndef MODELS_NUMA_TRANSACTION_H
#define MODELS_NUMA_TRANSACTION_H

#include "models/numa/interconnect/interconnect.h"

struct numa;

enum tracker { TRACKER_LOCAL, TRACKER_REMOTE, TRACKER_IO, N_TRACKERS };

#define TRANSACTION_MAX_SOCKETS 4

/* Which of n slices has the table that a line's requests are in: lines that follow each other go to
 * different ones, evenly (multiples of the golden ratio). cache.h keeps lines of a page in one
 * slice, where that only balances sets. */
static inline uint32_t transaction_slice(uint64_t line, uint32_t n)
{
    return (uint32_t)(((uint64_t)((uint32_t)line * UINT32_C(0x9E3779B1)) * n) >> 32);
}

/* Of one socket. */
struct transaction_pools {
    struct pool *table;                       /* by slice of its LLC */
    struct pool ids[TRANSACTION_MAX_SOCKETS]; /* by home, held by this socket's slices */
    struct pool tracker[N_TRACKERS];          /* of its home agents */
};

struct transaction {
    struct pool *table;
    struct pool *other; /* the other one that is held as long: IDs, or trackers of the own socket */
    struct pool *tracker; /* of another socket's home; NULL: as many as there are IDs */
    unsigned from, home;
    sim_time began_ps, arrived_ps;
};

void transactions_init(struct numa *n);
void transactions_release(struct numa *n);
/* The uncommon cases of numa_begin() and numa_arrive() (numa_internal.h): something is waited
 * for. */
sim_time transaction_wait(struct numa *n, const struct transaction *t, sim_time at_ps);
sim_time transaction_wait_at_home(struct numa *n, const struct transaction *t, enum message message,
                                  sim_time at_ps);

#endif
