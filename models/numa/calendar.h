/*
 * Slot calendar: when a contended resource serves its units of work.
 *
 * Models      a server of `capacity` units per slot of slot_ps. A request at time t takes the first
 *             units that are free from t's slot on, so it waits only for work that was reserved in
 *             that stretch of time, in whatever order the callers came.
 * Does not    reorder what has been reserved.
 *   model
 * Timing      idle: starts at t exactly. A unit in a later slot starts at the slot's begin plus the
 *             units before it. Never more than `capacity` units in a slot.
 * Sources     none; a queueing device.
 *
 * Invariant: slots [base, base + N) are kept; the window moves forward in whole words when a
 * request comes near its end, by which the slots behind are forgotten.
 */
#ifndef MODELS_NUMA_CALENDAR_H
#define MODELS_NUMA_CALENDAR_H

#include "sim/types.h"

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

/* A grant: when the first unit starts, and when the last slot taken has reached it. */
struct calendar_grant {
    sim_time start_ps;
    sim_time end_ps; /* >= start of the last unit + its service time */
};

void calendar_init(struct calendar *c, sim_time slot_ps, uint32_t capacity);
/* Takes n units (n > 0) at or after at_ps; they need not be adjacent. */
struct calendar_grant calendar_take(struct calendar *c, sim_time at_ps, uint32_t n);
/* The whole-slot case, capacity 1: returns the start of the slot's work. */
sim_time calendar_take_slot(struct calendar *c, sim_time at_ps);

#endif
