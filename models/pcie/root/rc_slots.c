/*
 * When line requests of a socket's root complex go to the memory system.
 *
 * Models: one request at a time, each taking line_interval; asked for ahead of time (a write asks
 *   when it arrives, for inbound later; a read when it is due), granted in order of the time for
 *   which they were asked: whoever is due earlier finds the gap before what is due later.
 * Does not model: arbitration between ports.
 * Timing: the earliest line_interval at or after the time asked for that is free.
 * Sources: docs/sources.md#a4.
 *
 * Busy stretches ascend and neither overlap nor touch. Those that are past are dropped by the next
 * search; should there be too many, the gap between the two earliest is given up, which only
 * delays.
 */
#include "models/pcie/root/rc_internal.h"

static struct rc_stretch *at(struct rc_slots *slots, unsigned i)
{
    return &slots->busy[(slots->first + i) % RC_SLOTS_STRETCHES];
}

static void drop_first(struct rc_slots *slots)
{
    slots->first = (slots->first + 1) % RC_SLOTS_STRETCHES;
    slots->n--;
}

static void insert(struct rc_slots *slots, unsigned i, struct rc_stretch stretch)
{
    if (slots->n == RC_SLOTS_STRETCHES) {
        if (i == 0) {
            at(slots, 0)->from_ps = stretch.from_ps;
            return;
        }
        at(slots, 1)->from_ps = at(slots, 0)->from_ps;
        drop_first(slots);
        i--;
    }
    for (unsigned k = slots->n++; k > i; k--)
        *at(slots, k) = *at(slots, k - 1);
    *at(slots, i) = stretch;
}

/* Stretch i - 1 ends where the new one begins, or stretch i begins where it ends, or neither. */
static void add(struct rc_slots *slots, unsigned i, struct rc_stretch stretch)
{
    bool joins_last = i > 0 && at(slots, i - 1)->until_ps == stretch.from_ps;
    bool joins_next = i < slots->n && at(slots, i)->from_ps == stretch.until_ps;
    if (joins_last && joins_next) {
        at(slots, i - 1)->until_ps = at(slots, i)->until_ps;
        for (unsigned k = i; k + 1 < slots->n; k++)
            *at(slots, k) = *at(slots, k + 1);
        slots->n--;
    } else if (joins_last) {
        at(slots, i - 1)->until_ps = stretch.until_ps;
    } else if (joins_next) {
        at(slots, i)->from_ps = stretch.from_ps;
    } else {
        insert(slots, i, stretch);
    }
}

sim_time rc_slots_search(struct rc_slots *slots, sim_time now_ps, sim_time at_ps,
                         sim_time interval_ps)
{
    while (slots->n != 0 && at(slots, 0)->until_ps <= now_ps)
        drop_first(slots);
    unsigned i = slots->n;
    if (i != 0 && at_ps < at(slots, i - 1)->from_ps) {
        for (i = 0; at(slots, i)->until_ps <= at_ps; i++)
            continue;
        while (i < slots->n && at(slots, i)->from_ps < at_ps + interval_ps) {
            at_ps = SIM_MAX(at_ps, at(slots, i)->until_ps);
            i++;
        }
    } else if (i != 0) {
        at_ps = SIM_MAX(at_ps, at(slots, i - 1)->until_ps);
    }
    add(slots, i, (struct rc_stretch){ at_ps, at_ps + interval_ps });
    return at_ps;
}
