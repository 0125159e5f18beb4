/*
 * Slot calendar: when a contended resource serves its units of work.
 *
 * Models: a server of `capacity` units per slot of slot_ps. A request at time t takes the first
 * units that are free from t's slot on, so it waits only for work that was reserved in that stretch
 * of time, in whatever order the callers came. Does not model: reordering of what has been
 * reserved. Timing: an idle server starts at t exactly. A unit in a later slot starts at the slot's
 * begin plus the units before it. Never more than `capacity` units in a slot.
 *
 * Invariant: slots [base, base + N) are kept; the window moves forward in whole words when a
 * request comes near its end, by which the slots behind are forgotten.
 */
#ifndef MODELS_NUMA_DRAM_CALENDAR_H
#define MODELS_NUMA_DRAM_CALENDAR_H

#include "sim/engine/types.h"

#define CALENDAR_SLOTS 4096u /* a power of two, >= 256; some microseconds of any resource here */
#define CALENDAR_WORDS (CALENDAR_SLOTS / 64u)

#define CALENDAR_MAX_CAPACITY 16u

struct calendar {
    sim_time slot_ps;
    uint64_t reciprocal; /* 2^64 / slot_ps, rounded up */
    uint64_t base;       /* index of the first slot kept; a multiple of 64 */
    uint32_t capacity;   /* units per slot */
    uint32_t offset_ps[CALENDAR_MAX_CAPACITY + 1]; /* of a unit from its slot's begin */
    uint64_t full[CALENDAR_WORDS];
    uint8_t used[CALENDAR_SLOTS];
};

/* A calendar of whole slots: a ninth of the memory, for servers of which there are many. */
struct calendar_slots {
    sim_time slot_ps;
    uint64_t reciprocal, base; /* as above */
    uint64_t full[CALENDAR_WORDS];
};

/* A grant: when the first unit starts, and when the last slot taken has reached it. */
struct calendar_grant {
    sim_time start_ps;
    sim_time end_ps; /* >= start of the last unit + its service time */
};

void calendar_init(struct calendar *c, sim_time slot_ps, uint32_t capacity);
/* The uncommon cases of calendar_take(). */
struct calendar_grant calendar_take_any(struct calendar *c, sim_time at_ps, uint32_t n);

/* at_ps / slot_ps; the rounded-up reciprocal may be one too high, never too low. */
static inline uint64_t calendar_divide(sim_time at_ps, uint64_t reciprocal, sim_time slot_ps)
{
    const uint64_t q = (uint64_t)(((unsigned __int128)at_ps * reciprocal) >> 64);

    return q * slot_ps > at_ps ? q - 1 : q;
}
static inline uint64_t calendar_slot_of(const struct calendar *c, sim_time at_ps)
{
    return calendar_divide(at_ps, c->reciprocal, c->slot_ps);
}

/* Takes n units (n > 0) at or after at_ps, which is in `slot`; they need not be adjacent. */
static inline struct calendar_grant calendar_take_in(struct calendar *c, uint64_t slot,
                                                     sim_time at_ps, uint32_t n)
{
    const uint32_t used = c->used[slot & (CALENDAR_SLOTS - 1u)];

    /* Usually the first slot that is asked for has room for all. */
    if (SIM_UNLIKELY(slot - c->base >= CALENDAR_SLOTS || used + n > c->capacity))
        return calendar_take_any(c, at_ps, n);
    const sim_time begin_ps = slot * c->slot_ps;
    const sim_time place_ps = begin_ps + c->offset_ps[used];

    c->used[slot & (CALENDAR_SLOTS - 1u)] = (uint8_t)(used + n);
    if (used + n == c->capacity)
        c->full[(slot >> 6) & (CALENDAR_WORDS - 1u)] |= UINT64_C(1) << (slot & 63);
    return (struct calendar_grant){ SIM_MAX(at_ps, place_ps), begin_ps + c->offset_ps[used + n] };
}
static inline struct calendar_grant calendar_take(struct calendar *c, sim_time at_ps, uint32_t n)
{
    return calendar_take_in(c, calendar_slot_of(c, at_ps), at_ps, n);
}
/* Units that are taken after at_ps, as far as they are known: never fewer than there are, but for
 * those beyond the slots kept, and at most all of the slots kept. Not hot. */
uint64_t calendar_units_after(const struct calendar *c, sim_time at_ps);

void calendar_slots_init(struct calendar_slots *c, sim_time slot_ps);
/* The uncommon cases of calendar_slots_take(). */
sim_time calendar_slots_take_any(struct calendar_slots *c, sim_time at_ps);
/* Takes a slot; returns the start of its work. */
static inline sim_time calendar_slots_take(struct calendar_slots *c, sim_time at_ps)
{
    const uint64_t slot = calendar_divide(at_ps, c->reciprocal, c->slot_ps);
    uint64_t *full = &c->full[(slot >> 6) & (CALENDAR_WORDS - 1u)];
    const uint64_t clear = ~*full & (UINT64_MAX << (slot & 63));

    if (SIM_UNLIKELY(slot - c->base >= CALENDAR_SLOTS || clear == 0))
        return calendar_slots_take_any(c, at_ps);
    *full |= clear & -clear;
    const uint64_t taken = (slot & ~UINT64_C(63)) + (uint64_t)__builtin_ctzll(clear);
    return SIM_MAX(taken * c->slot_ps, at_ps);
}

/* The first slot from `slot` on that is not full. */
uint64_t calendar_next_free(struct calendar *c, uint64_t slot);
/* Of 64 slots from `slot` on a bit for each that is full. */
static inline uint64_t calendar_full_from(const struct calendar *c, uint64_t slot)
{
    const uint32_t word = (uint32_t)(slot >> 6) & (CALENDAR_WORDS - 1u), bit = slot & 63;

    const uint64_t end = c->base + CALENDAR_SLOTS;

    if (slot < c->base || slot >= end)
        return 0;
    if (bit == 0 || (slot | 63) + 1 >= end) /* beyond the window nothing is taken */
        return c->full[word] >> bit;
    return c->full[word] >> bit | c->full[(word + 1) & (CALENDAR_WORDS - 1u)] << (64 - bit);
}
/* How many slots before `slot`, at most 64, are not full and follow each other. */
static inline uint32_t calendar_idle_before(const struct calendar *c, uint64_t slot)
{
    if (slot < c->base + 64 || slot >= c->base + CALENDAR_SLOTS)
        return 64;
    const uint64_t full = calendar_full_from(c, slot - 64);
    return full != 0 ? (uint32_t)__builtin_clzll(full) : 64;
}

#endif
