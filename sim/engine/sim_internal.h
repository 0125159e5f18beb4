/* struct sim, for the files of the engine only. */
#ifndef SIM_ENGINE_SIM_INTERNAL_H
#define SIM_ENGINE_SIM_INTERNAL_H

#include "sim/engine/queue.h"
#include "sim/engine/sim.h"

struct sim_tasks;
struct task_stacks;
struct sim_waits;

/* watchdog.c: counts of steps, which are events and advances of tasks. */
struct sim_watchdog {
    uint64_t n_steps, look_at;
    uint64_t moved_at;  /* the last look but one that found another time than the one before */
    uint64_t worked_at; /* likewise, of work */
    sim_time worked_ps;
    bool said; /* that nothing has worked since */
    uint64_t work, n_progress;
    sim_time seen_ps;
    struct sim_watch *watches;
    uint64_t seen_at_tick; /* of the signal */
    unsigned n_ticks;
};
#define SIM_LOOK_STEPS 1000000u

struct sim {
    struct sim_queue queue; /* first: sim_now() reads its clock */
    sim_time until_ps;      /* of the sim_run() under way */
    sim_time limit_ps; /* nothing later may happen yet: until_ps, or now when tasks are ready */
    int64_t poll_left; /* events and advances until *interrupt is looked at */
    bool stopped, running;
    uint64_t fingerprint;
    uint64_t n_fired;
    uint64_t seed;
    char *error;
    struct sim_steps *steps;       /* NULL: none are noted */
    struct sim_activity *activity; /* NULL: nobody listens */
    struct sim_pool *pools;
    struct sim_tasks *tasks; /* never NULL */
    struct sim_watchdog watchdog;
};
_Static_assert(offsetof(struct sim, queue) == 0 && offsetof(struct sim_queue, clock) == 0,
               "struct sim_clock must be the first member");

/* pool.c: frees all pools of the run; with check, live objects are a fault. */
void sim_pools_free(struct sim *sim, bool check);

/* task.c */
struct sim_tasks *sim_tasks_new(void);
void sim_tasks_free(struct sim_tasks *tasks);
const struct task_stacks *sim_tasks_stacks(const struct sim *sim);
/* Runs the first of the tasks whose time has come; there must be one (limit_ps says so). */
void sim_tasks_run_ready(struct sim *sim);
bool sim_tasks_ready(const struct sim *sim);
void sim_tasks_describe(const struct sim *sim, struct sim_waits *waits);

/* watchdog.c: fails the run if nothing has progressed for long. */
void sim_watchdog_look(struct sim *sim);
/* sim.c: the run that this thread is in, or NULL. */
struct sim *sim_of_this_thread(void);

/* Moves global time to at_ps without an event if nothing stands in the way. */
static inline bool sim_advance(struct sim *sim, sim_time at_ps)
{
    if (at_ps > sim->limit_ps || --sim->poll_left <= 0)
        return false;
    if (at_ps >= sim->queue.clock.next_ps && !sim_queue_idle_until(&sim->queue, at_ps))
        return false;
    sim->queue.clock.now_ps = at_ps;
    return true;
}

#endif
