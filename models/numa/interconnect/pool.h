/*
 * A pool of entries of which each transaction holds some for a while: tables of requests,
 * transaction IDs, trackers, credits.
 *
 * Models: at most n entries are held at any time; whoever comes when too few are left waits until
 *   there are enough. A ring of slots of time has how many are held in each, so callers may come in
 *   any order: a request waits for what is held at its time, whoever took that, and in whatever
 *   order. Does not model: an order among those that wait.
 * Timing: an entry that is there is had at once; one that is waited for from the begin of a slot
 *   on. Holding an entry for L takes it for L / slot slots, a part of a slot going to the next
 *   time: n entries that are always held carry n / L, exactly.
 * Costs: to ask is a look at one slot, to hold an addition for each eight of them (131 ns). A hold,
 *   and a wait beyond the slots kept, counts as POOL_SLOTS / 2 slots at most (34 us).
 *
 * Invariant: slots [base, base + POOL_SLOTS) are kept; the window moves on as a calendar's.
 */
#ifndef MODELS_NUMA_INTERCONNECT_POOL_H
#define MODELS_NUMA_INTERCONNECT_POOL_H

#include "sim/engine/types.h"

#define POOL_SLOT_LOG2 14u   /* ps: 16.4 ns */
#define POOL_SLOTS     4096u /* a power of two: 67 us */
#define POOL_SLOT_PS   (UINT64_C(1) << POOL_SLOT_LOG2)
#define POOL_MAX       4096u /* entries; more may be held by callers that are late */

#define POOL_LANES 8u
typedef uint16_t pool_lanes __attribute__((vector_size(2 * POOL_LANES)));

struct pool {
    uint32_t n; /* entries; 0: without bound, and nothing is kept */
    uint32_t carry_ps;
    uint64_t base;
    uint64_t hold_end;           /* base + POOL_SLOTS, or 0 as long as `held` is NULL */
    uint64_t full_from, full_to; /* slots that are known to have no entry left */
    const uint16_t *known;       /* `held`, or zeros */
    uint16_t *held; /* of each slot; POOL_LANES more that stay 0; NULL: no entry ever was */
};

/* For the last, incomplete addition: so many ones, then zeros. */
extern const pool_lanes pool_ones[POOL_LANES + 1];

void pool_init(struct pool *p, uint32_t n);
void pool_release(struct pool *p);
/* The uncommon cases of pool_wait() and pool_hold(). */
sim_time pool_wait_any(struct pool *p, uint32_t entries, sim_time at_ps);
void pool_hold_any(struct pool *p, uint32_t entries, sim_time from_ps, sim_time until_ps);
void pool_hold_each(struct pool *p, struct pool *also, sim_time from_ps, sim_time until_ps);

/* Whether `entries` are left at at_ps, as far as that is known without looking further. */
static inline bool pool_has(const struct pool *p, uint32_t entries, sim_time at_ps)
{
    const uint64_t slot = at_ps >> POOL_SLOT_LOG2;

    return p->n == 0 || SIM_LIKELY(slot - p->base < POOL_SLOTS &&
                                   p->known[slot & (POOL_SLOTS - 1)] + entries <= p->n);
}

/* The first time from at_ps on at which `entries` (at most n) are left. Nothing is taken. */
static inline sim_time pool_wait(struct pool *p, uint32_t entries, sim_time at_ps)
{
    return pool_has(p, entries, at_ps) ? at_ps : pool_wait_any(p, entries, at_ps);
}

/* Adds `ones` to the slots of a vector. */
static inline void pool_add(uint16_t *held, pool_lanes ones)
{
    pool_lanes lanes;

    __builtin_memcpy(&lanes, held, sizeof(lanes));
    lanes += ones;
    __builtin_memcpy(held, &lanes, sizeof(lanes));
}

/* Holds an entry of each from from_ps, which pool_wait() has returned, until until_ps. `also` may
 * be a pool without bound. */
static inline void pool_hold_both(struct pool *p, struct pool *also, sim_time from_ps,
                                  sim_time until_ps)
{
    const uint64_t slot = from_ps >> POOL_SLOT_LOG2;
    const sim_time held_ps = until_ps - from_ps + p->carry_ps;
    const uint64_t count = held_ps >> POOL_SLOT_LOG2;
    const uint32_t at = slot & (POOL_SLOTS - 1);

    /* The first bounds `count`; a slot before the window, or of no window, is far behind it. */
    if (SIM_UNLIKELY(at + count > POOL_SLOTS ||
                     slot + POOL_SLOTS - p->hold_end >= POOL_SLOTS - count ||
                     slot + POOL_SLOTS - also->hold_end >= POOL_SLOTS - count)) {
        pool_hold_each(p, also, from_ps, until_ps);
        return;
    }
    p->carry_ps = held_ps & (POOL_SLOT_PS - 1);
    for (uint64_t i = 0;; i += POOL_LANES) {
        const pool_lanes ones = pool_ones[SIM_MIN(count - i, (uint64_t)POOL_LANES)];
        pool_add(&p->held[at + i], ones);
        pool_add(&also->held[at + i], ones);
        if (SIM_LIKELY(count - i <= POOL_LANES))
            break;
    }
}

#endif
