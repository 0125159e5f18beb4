/*
 * What CPUs do, for traces: kernels say which thread has a CPU, and when interrupts were taken. A
 * run without somebody who listens has no more than a look at a pointer.
 */
#ifndef SIM_ENGINE_ACTIVITY_H
#define SIM_ENGINE_ACTIVITY_H

#include "sim/engine/types.h"

struct sim;

struct sim_activity {
    /* From at_ps on the thread has the CPU; NULL: nobody has. Names are valid as long as the
     * thread. */
    void (*runs)(struct sim_activity *activity, const char *host, unsigned cpu, const char *thread,
                 sim_time at_ps);
    /* Something, of which `what` is a literal, has taken the CPU from its thread for this time. */
    void (*interrupted)(struct sim_activity *activity, const char *host, unsigned cpu,
                        const char *what, sim_time from_ps, sim_time to_ps);
};

/* Before kernels are made. The caller owns it; NULL: nobody listens. */
void sim_set_activity(struct sim *sim, struct sim_activity *activity);
struct sim_activity *sim_activity(const struct sim *sim);

#endif
