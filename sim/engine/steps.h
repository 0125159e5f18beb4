/*
 * Steps of simulated software, for nudma run --trace: what happened, where and when. Kernels add
 * them (k_trace()) from the end of the warm-up on, until there is no room; a run without such a
 * list has no more than a look at a pointer.
 */
#ifndef SIM_ENGINE_STEPS_H
#define SIM_ENGINE_STEPS_H

#include "sim/engine/types.h"

struct sim;

struct sim_step {
    sim_time at_ps;
    const char *where, *what; /* of the host's name and a literal, valid as long as the run */
    unsigned cpu;
    uint64_t number;
};
struct sim_steps {
    bool armed;        /* from the end of the warm-up on */
    volatile int full; /* an interrupt of the run */
    unsigned n, room;
    struct sim_step *step; /* room of them */
};

/* The caller owns the list; NULL: none. */
void sim_set_steps(struct sim *sim, struct sim_steps *steps);
struct sim_steps *sim_steps(const struct sim *sim);

static inline void sim_steps_add(struct sim_steps *steps, const struct sim_step *step)
{
    if (!steps->armed || steps->n == steps->room)
        return;
    steps->step[steps->n++] = *step;
    steps->full = steps->n == steps->room;
}

#endif
