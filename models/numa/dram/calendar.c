#include "models/numa/dram/calendar.h"

#include <stddef.h>
#include <string.h>

#define SLOT_MASK (CALENDAR_SLOTS - 1u)
#define WORD_MASK (CALENDAR_WORDS - 1u)

void calendar_init(struct calendar *c, sim_time slot_ps, uint32_t capacity)
{
    SIM_ASSERT(slot_ps > 1 && capacity > 0 && capacity <= CALENDAR_MAX_CAPACITY,
               "slot %llu ps of %u units", (unsigned long long)slot_ps, capacity);
    memset(c, 0, offsetof(struct calendar, full));
    /* Pages that are zero stay untouched: a large cluster has hosts whose links carry nothing. */
    for (uint32_t i = 0; i < CALENDAR_WORDS; i++)
        if (c->full[i] != 0)
            c->full[i] = 0;
    for (uint32_t i = 0; i < CALENDAR_SLOTS; i++)
        if (c->used[i] != 0)
            c->used[i] = 0;
    c->slot_ps = slot_ps;
    c->reciprocal = UINT64_MAX / slot_ps + 1;
    c->capacity = capacity;
    for (uint32_t i = 0; i <= capacity; i++)
        c->offset_ps[i] = (uint32_t)(i * slot_ps / capacity);
}

/* Moves the window so that `slot` lies in its first half, forgetting what is behind. */
static void advance(struct calendar *c, uint64_t slot)
{
    const uint64_t base = (slot - CALENDAR_SLOTS / 2) & ~UINT64_C(63);

    if (base - c->base >= CALENDAR_SLOTS) {
        memset(c->full, 0, sizeof(c->full));
        memset(c->used, 0, sizeof(c->used));
    } else {
        for (uint64_t s = c->base; s < base; s += 64) {
            c->full[(s >> 6) & WORD_MASK] = 0;
            memset(&c->used[s & SLOT_MASK], 0, 64);
        }
    }
    c->base = base;
}

/* The first slot from `slot` on that has a free unit. */
static inline uint64_t next_free(struct calendar *c, uint64_t slot)
{
    uint64_t word = slot >> 6;
    uint64_t clear = ~c->full[word & WORD_MASK] & (UINT64_MAX << (slot & 63));

    while (SIM_UNLIKELY(clear == 0)) {
        word++;
        if (SIM_UNLIKELY(word << 6 >= c->base + CALENDAR_SLOTS))
            advance(c, word << 6);
        clear = ~c->full[word & WORD_MASK];
    }
    return (word << 6) + (uint64_t)__builtin_ctzll(clear);
}

static inline uint64_t first_slot(struct calendar *c, sim_time at_ps)
{
    const uint64_t slot = calendar_slot_of(c, at_ps);

    if (SIM_UNLIKELY(slot >= c->base + CALENDAR_SLOTS))
        advance(c, slot);
    return SIM_LIKELY(slot >= c->base) ? slot : c->base;
}

/* Takes n units from `slot` on, of several slots. */
static __attribute__((noinline)) struct calendar_grant take_slots(struct calendar *c, uint64_t slot,
                                                                  sim_time at_ps, uint32_t n)
{
    struct calendar_grant grant = { 0, 0 };
    bool first = true;

    while (n > 0) {
        slot = next_free(c, slot);
        const uint32_t used = c->used[slot & SLOT_MASK];
        const uint32_t taken = SIM_MIN(n, c->capacity - used);
        const sim_time begin_ps = slot * c->slot_ps;

        if (first) {
            const sim_time place_ps = begin_ps + c->offset_ps[used];
            grant.start_ps = SIM_MAX(at_ps, place_ps);
            first = false;
        }
        n -= taken;
        c->used[slot & SLOT_MASK] = (uint8_t)(used + taken);
        if (used + taken == c->capacity)
            c->full[(slot >> 6) & WORD_MASK] |= UINT64_C(1) << (slot & 63);
        grant.end_ps = begin_ps + c->offset_ps[used + taken];
    }
    return grant;
}

static __attribute__((noinline)) struct calendar_grant take_far(struct calendar *c, sim_time at_ps,
                                                                uint32_t n)
{
    return take_slots(c, next_free(c, first_slot(c, at_ps)), at_ps, n);
}

struct calendar_grant calendar_take_any(struct calendar *c, sim_time at_ps, uint32_t n)
{
    uint64_t slot = calendar_slot_of(c, at_ps);
    const uint64_t clear = ~c->full[(slot >> 6) & WORD_MASK] & (UINT64_MAX << (slot & 63));

    if (SIM_UNLIKELY(slot - c->base >= CALENDAR_SLOTS || clear == 0))
        return take_far(c, at_ps, n);
    slot = (slot & ~UINT64_C(63)) + (uint64_t)__builtin_ctzll(clear);
    /* Mostly that slot has room for all. */
    const uint32_t used = c->used[slot & SLOT_MASK];
    if (SIM_UNLIKELY(used + n > c->capacity))
        return take_slots(c, slot, at_ps, n);
    const sim_time begin_ps = slot * c->slot_ps, place_ps = begin_ps + c->offset_ps[used];
    c->used[slot & SLOT_MASK] = (uint8_t)(used + n);
    if (used + n == c->capacity)
        c->full[(slot >> 6) & WORD_MASK] |= clear & -clear;
    return (struct calendar_grant){ SIM_MAX(at_ps, place_ps), begin_ps + c->offset_ps[used + n] };
}

uint64_t calendar_units_after(const struct calendar *c, sim_time at_ps)
{
    const uint64_t slot = calendar_slot_of(c, at_ps), most = (uint64_t)CALENDAR_SLOTS * c->capacity;
    uint64_t units = 0;

    if (slot < c->base) /* forgotten: may have been full */
        units = SIM_MIN(c->base - slot, (uint64_t)CALENDAR_SLOTS) * c->capacity;
    for (uint64_t s = SIM_MAX(slot, c->base); s < c->base + CALENDAR_SLOTS; s++)
        units += c->used[s & SLOT_MASK];
    return SIM_MIN(units, most);
}

uint64_t calendar_next_free(struct calendar *c, uint64_t slot)
{
    return next_free(c, slot < c->base ? c->base : slot);
}

/* ---- Whole slots ----------------------------------------------------------------------------- */

void calendar_slots_init(struct calendar_slots *c, sim_time slot_ps)
{
    SIM_ASSERT(slot_ps > 1, "slot %llu ps", (unsigned long long)slot_ps);
    *c = (struct calendar_slots){ .slot_ps = slot_ps, .reciprocal = UINT64_MAX / slot_ps + 1 };
}

/* As advance(). */
static void slots_advance(struct calendar_slots *c, uint64_t slot)
{
    const uint64_t base = (slot - CALENDAR_SLOTS / 2) & ~UINT64_C(63);

    if (base - c->base >= CALENDAR_SLOTS)
        memset(c->full, 0, sizeof(c->full));
    else
        for (uint64_t s = c->base; s < base; s += 64)
            c->full[(s >> 6) & WORD_MASK] = 0;
    c->base = base;
}

sim_time calendar_slots_take_any(struct calendar_slots *c, sim_time at_ps)
{
    uint64_t slot = calendar_divide(at_ps, c->reciprocal, c->slot_ps);

    if (SIM_UNLIKELY(slot >= c->base + CALENDAR_SLOTS))
        slots_advance(c, slot);
    slot = SIM_MAX(slot, c->base);
    uint64_t word = slot >> 6, clear = ~c->full[word & WORD_MASK] & (UINT64_MAX << (slot & 63));
    while (SIM_UNLIKELY(clear == 0)) {
        word++;
        if (SIM_UNLIKELY(word << 6 >= c->base + CALENDAR_SLOTS))
            slots_advance(c, word << 6);
        clear = ~c->full[word & WORD_MASK];
    }
    c->full[word & WORD_MASK] |= clear & -clear;
    const sim_time begin_ps = ((word << 6) + (uint64_t)__builtin_ctzll(clear)) * c->slot_ps;
    return SIM_MAX(begin_ps, at_ps);
}
