/*
 * One run: time, the event queue, pools, random streams. No globals: a process holds any number
 * of runs. Not thread-safe; a run belongs to one thread at a time.
 */
#ifndef SIM_ENGINE_SIM_H
#define SIM_ENGINE_SIM_H

#include "sim/engine/types.h"

struct sim;
struct sim_event;
struct sim_task;

/* Called when the event's time has come; the event is no longer pending and may be rescheduled. */
typedef void sim_event_fn(struct sim *sim, struct sim_event *event);

/*
 * An event is embedded in what it concerns; the queue only links it. Order is (time_ps, seq):
 * first scheduled, first fired.
 */
struct sim_event {
    sim_time time_ps;
    uint64_t seq;
    sim_event_fn *fire;
    struct sim_event *next; /* private to the queue, as is prev_link */
    struct sim_event **prev_link;
};

/* The part of struct sim that inline functions need; the rest is private to sim.c. */
struct sim_clock {
    sim_time now_ps;
    sim_time next_ps; /* lower bound on the time of the next pending event, SIM_TIME_MAX if none */
    sim_time quantum_ps;   /* how far tasks may run ahead */
    struct sim_task *task; /* the one that runs, or NULL  */
};

/* Never NULL; ends the process when memory is exhausted. Caller frees with sim_free(). */
struct sim *sim_new(uint64_t seed);
/* Frees the run, its pools and its tasks. Pool objects still alive are a fault (SIM_ASSERT)
 * unless the run failed. */
void sim_free(struct sim *sim);

static inline sim_time sim_now(const struct sim *sim)
{
    return ((const struct sim_clock *)(const void *)sim)->now_ps;
}

uint64_t sim_seed(const struct sim *sim);
uint64_t sim_events_fired(const struct sim *sim);
/* The pending events, and one more if a task is ready to run; 0: nothing will happen any more. */
uint64_t sim_events_pending(const struct sim *sim);

/* Prepares an event that is not pending; it need not be zeroed. The caller owns its memory. */
static inline void sim_event_init(struct sim_event *event, sim_event_fn *fire)
{
    *event = (struct sim_event){ .fire = fire };
}
static inline bool sim_event_pending(const struct sim_event *event)
{
    return event->prev_link != NULL;
}
/* Schedules the event at an absolute time; SIM_ASSERT if that is past or the event is pending. */
void sim_schedule(struct sim *sim, struct sim_event *event, sim_time at_ps);
static inline void sim_schedule_in(struct sim *sim, struct sim_event *event, sim_time delay_ps)
{
    sim_schedule(sim, event, sim_now(sim) + delay_ps);
}
/* The same behind all others of its time, in whatever order these are scheduled. It takes no number
 * of theirs: a run in which it does not fire has the fingerprint that it has without it. For what
 * looks, seldom, whether something hangs. */
void sim_schedule_last(struct sim *sim, struct sim_event *event, sim_time at_ps);
/* Takes a pending event out of the queue; does nothing if it is not pending. */
void sim_cancel(struct sim *sim, struct sim_event *event);

/*
 * Fires events until none is left, the next lies beyond until_ps, sim_stop() or sim_fail() was
 * called, or *interrupt became non-zero (polled every few thousand events; may be NULL).
 * Afterwards now is the time of the last event fired, or until_ps if it ran out of earlier ones
 * (with SIM_TIME_MAX, "until nothing is left", it stays at the last event). A run that was stopped
 * or interrupted may go on with another call; one that failed does not.
 */
void sim_run(struct sim *sim, sim_time until_ps, const volatile int *interrupt);
void sim_stop(struct sim *sim);
bool sim_stopped(const struct sim *sim);

/*
 * Records that the run itself went wrong (a transfer reached the wrong place, a packet was lost)
 * and stops it. sim_error() returns the first such message, which the run owns; NULL: there is
 * none.
 */
void sim_fail(struct sim *sim, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));
const char *sim_error(const struct sim *sim);

/*
 * Returns a hash over the order of events (time and seq of each event fired) and what models added.
 * It is the same for the same scenario, seed and version, with any compiler and number of jobs.
 */
uint64_t sim_fingerprint(const struct sim *sim);
void sim_fingerprint_add(struct sim *sim, uint64_t value);

/* ---- Pools: fixed-size objects, never returned to the system before sim_free() --------------- */

struct sim_pool;

/* Makes a pool, which the run owns. `name` is for leak reports ("tlp"). Objects are aligned to 16
 * bytes. */
struct sim_pool *sim_pool_new(struct sim *sim, const char *name, size_t object_bytes);
/* Returns the pool of that name, which the first call makes; for objects that models share. All
 * calls give the same size. Looks the name up: for set-up only. */
struct sim_pool *sim_pool_shared(struct sim *sim, const char *name, size_t object_bytes);

/* The part of a pool that inline functions need; the rest is private to pool.c. A stack beside the
 * objects, which may long have left the caches. Both counts stay 0 where objects are poisoned while
 * they are free: the slow functions do all then. */
struct sim_pool_stack {
    void **free;
    size_t n_free;
    size_t n_room; /* objects that were ever handed out */
};
void *sim_pool_get_slow(struct sim_pool *pool);
void sim_pool_put_slow(struct sim_pool *pool, void *object);

/* Returns an uninitialised object, in O(1); allocates memory by the slab only. */
static inline void *sim_pool_get(struct sim_pool *pool)
{
    struct sim_pool_stack *stack = (struct sim_pool_stack *)(void *)pool;

    if (SIM_UNLIKELY(stack->n_free == 0))
        return sim_pool_get_slow(pool);
    return stack->free[--stack->n_free];
}
static inline void sim_pool_put(struct sim_pool *pool, void *object)
{
    struct sim_pool_stack *stack = (struct sim_pool_stack *)(void *)pool;

    if (SIM_UNLIKELY(stack->n_free == stack->n_room))
        sim_pool_put_slow(pool, object);
    else
        stack->free[stack->n_free++] = object;
}
uint64_t sim_pool_live(const struct sim_pool *pool);

/* ---- Random streams -------------------------------------------------------------------------- */

/* xoshiro256**; one per instance, seeded from the run's seed and the instance's name. */
struct sim_random {
    uint64_t s[4];
};

void sim_random_init(struct sim_random *random, uint64_t seed, const char *instance);
uint64_t sim_random_u64(struct sim_random *random);
/* Uniform in [0, bound), bound > 0, without modulo bias. */
uint64_t sim_random_below(struct sim_random *random, uint64_t bound);
/* Uniform in [0, 1). */
double sim_random_unit(struct sim_random *random);
/* Exponential with the given mean, by inversion. */
double sim_random_exponential(struct sim_random *random, double mean);

#endif
