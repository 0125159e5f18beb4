#include "models/numa/interconnect/pool.h"

#include <stdlib.h>
#include <string.h>

#define SLOT_MASK (POOL_SLOTS - 1u)
#define STEP      32u /* slots: by so many the window moves */

const pool_lanes pool_ones[POOL_LANES + 1] = {
    { 0 },
    { 1 },
    { 1, 1 },
    { 1, 1, 1 },
    { 1, 1, 1, 1 },
    { 1, 1, 1, 1, 1 },
    { 1, 1, 1, 1, 1, 1 },
    { 1, 1, 1, 1, 1, 1, 1 },
    { 1, 1, 1, 1, 1, 1, 1, 1 },
};

/* Nothing is held; what pools look at before the first hold. */
static const uint16_t held_never[POOL_SLOTS + POOL_LANES];

void pool_init(struct pool *p, uint32_t n)
{
    SIM_ASSERT(n <= POOL_MAX, "a pool of %u entries", n);
    *p = (struct pool){ .n = n, .known = held_never };
}

void pool_release(struct pool *p)
{
    free(p->held);
    p->held = NULL;
    p->known = NULL;
    p->hold_end = 0;
}

/* Whether it had to be made. */
static bool make(struct pool *p)
{
    if (p->held != NULL || p->n == 0)
        return false;
    p->known = p->held = sim_zalloc(POOL_SLOTS + POOL_LANES, sizeof(*p->held));
    p->hold_end = p->base + POOL_SLOTS;
    return true;
}

/* Moves the window so that `slot` lies in its first half, forgetting what is behind. */
static void advance(struct pool *p, uint64_t slot)
{
    const uint64_t base = (slot - POOL_SLOTS / 2) & ~(uint64_t)(STEP - 1);
    const uint64_t n = SIM_MIN(base - p->base, (uint64_t)POOL_SLOTS);

    for (uint64_t i = 0; p->held != NULL && i < n;
         i += STEP) /* few enough for instructions without a call */
        memset(&p->held[(p->base + i) & SLOT_MASK], 0, STEP * sizeof(*p->held));
    p->base = base;
    if (p->held != NULL)
        p->hold_end = base + POOL_SLOTS;
}

sim_time pool_wait_any(struct pool *p, uint32_t entries, sim_time at_ps)
{
    const uint64_t first = SIM_MAX(at_ps >> POOL_SLOT_LOG2, p->base);
    uint64_t slot = first;

    /* One entry is asked for by nearly all. */
    if (slot >= p->full_from && slot < p->full_to)
        slot = p->full_to;
    while (slot < p->base + POOL_SLOTS && p->known[slot & SLOT_MASK] + entries > p->n)
        slot++;
    if (slot >= p->base + POOL_SLOTS)
        advance(p, slot);
    if (entries == 1 && slot > first) {
        if (first < p->full_from || first > p->full_to)
            p->full_from = first;
        p->full_to = slot;
    }
    return SIM_MAX(at_ps, slot << POOL_SLOT_LOG2);
}

void pool_hold_any(struct pool *p, uint32_t entries, sim_time from_ps, sim_time until_ps)
{
    const sim_time held_ps = until_ps - from_ps + p->carry_ps;
    uint64_t slot = from_ps >> POOL_SLOT_LOG2;

    if (p->n == 0)
        return;
    make(p);
    const uint64_t end = slot + SIM_MIN(held_ps >> POOL_SLOT_LOG2, (uint64_t)POOL_SLOTS / 2 - STEP);
    p->carry_ps = held_ps & (POOL_SLOT_PS - 1);
    if (end >= p->base + POOL_SLOTS)
        advance(p, slot);
    for (slot = SIM_MAX(slot, p->base); slot < end; slot++)
        p->held[slot & SLOT_MASK] = (uint16_t)(p->held[slot & SLOT_MASK] + entries);
}

void pool_hold_each(struct pool *p, struct pool *also, sim_time from_ps, sim_time until_ps)
{
    const bool made = make(p), also_made = make(also);

    if (made || also_made) {
        pool_hold_both(p, also, from_ps, until_ps);
        return;
    }
    pool_hold_any(p, 1, from_ps, until_ps);
    pool_hold_any(also, 1, from_ps, until_ps);
}
