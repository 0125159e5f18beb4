/* One run: the event loop, its end and its failure. */
#include "sim/engine/sim.h"

#include <errno.h>
#include <glib.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/activity.h"
#include "sim/engine/sim_internal.h"
#include "sim/engine/steps.h"
#include "sim/engine/task.h"

#ifdef SIM_HOSTILE
#define POLL_EVENTS 2
#else
#define POLL_EVENTS 4096
#endif

/* The run that this thread is in, for messages of failed assertions and of the watchdog only. */
static _Thread_local struct sim *sim_of_thread;

struct sim *sim_of_this_thread(void)
{
    return sim_of_thread;
}

_Noreturn void sim_assert_failed(const char *file, int line, const char *cond, const char *fmt, ...)
{
    struct sim *sim = sim_of_thread;
    va_list args;

    fflush(stdout);
    fprintf(stderr, "%s:%d: assertion failed: %s: ", file, line, cond);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    if (sim != NULL) {
        struct sim_task *task = sim_task_current(sim);

        fprintf(stderr, "\n    at %llu ps, task %s", (unsigned long long)sim_now(sim),
                task != NULL ? sim_task_name(task) : "(none)");
    }
    fputc('\n', stderr);
    abort();
}

_Noreturn void sim_out_of_memory(const char *fmt, ...)
{
    va_list args;

    fflush(stdout);
    fputs("no memory for ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    errno = ENOMEM;
    abort();
}

void *sim_zalloc(size_t n, size_t bytes)
{
    void *memory = calloc(SIM_MAX(n, (size_t)1), bytes);

    if (SIM_UNLIKELY(memory == NULL))
        sim_out_of_memory("%zu times %zu bytes", n, bytes);
    return memory;
}

void *sim_grow(void *array, size_t n, size_t bytes)
{
    size_t all = 0;
    void *grown = __builtin_mul_overflow(n, bytes, &all) ? NULL : realloc(array, all);

    if (SIM_UNLIKELY(grown == NULL))
        sim_out_of_memory("%zu times %zu bytes", n, bytes);
    return grown;
}

char *sim_strdup(const char *text)
{
    return memcpy(sim_zalloc(strlen(text) + 1, 1), text, strlen(text) + 1);
}

struct sim *sim_new(uint64_t seed)
{
    struct sim *sim = sim_zalloc(1, sizeof(*sim));

    sim_queue_init(&sim->queue);
    sim->seed = seed;
    sim->tasks = sim_tasks_new();
    sim_task_set_quantum(sim, SIM_PS_PER_US);
    return sim;
}

void sim_free(struct sim *sim)
{
    if (sim == NULL)
        return;
    SIM_ASSERT(!sim->running, "sim_free() from within sim_run()");
    sim_pools_free(sim, sim->error == NULL);
    sim_tasks_free(sim->tasks);
    sim_queue_release(&sim->queue);
    g_free(sim->error);
    free(sim);
}

void sim_set_steps(struct sim *sim, struct sim_steps *steps)
{
    sim->steps = steps;
}

struct sim_steps *sim_steps(const struct sim *sim)
{
    return sim->steps;
}

void sim_set_activity(struct sim *sim, struct sim_activity *activity)
{
    sim->activity = activity;
}

struct sim_activity *sim_activity(const struct sim *sim)
{
    return sim->activity;
}

uint64_t sim_seed(const struct sim *sim)
{
    return sim->seed;
}

uint64_t sim_events_fired(const struct sim *sim)
{
    return sim->n_fired;
}

uint64_t sim_events_pending(const struct sim *sim)
{
    return sim->queue.n_pending + (sim_tasks_ready(sim) ? 1 : 0);
}

void sim_schedule(struct sim *sim, struct sim_event *event, sim_time at_ps)
{
    SIM_ASSERT(!sim_event_pending(event), "event for %llu ps is already pending for %llu ps",
               (unsigned long long)at_ps, (unsigned long long)event->time_ps);
    SIM_ASSERT(at_ps >= sim_now(sim), "event for %llu ps, in the past of %llu ps",
               (unsigned long long)at_ps, (unsigned long long)sim_now(sim));
    sim_queue_insert(&sim->queue, event, at_ps);
}

void sim_schedule_last(struct sim *sim, struct sim_event *event, sim_time at_ps)
{
    SIM_ASSERT(!sim_event_pending(event) && at_ps >= sim_now(sim),
               "event for %llu ps is pending, or in the past", (unsigned long long)at_ps);
    event->seq = SIM_QUEUE_SEQ_LAST + sim->queue.n_last++;
    sim_queue_place(&sim->queue, event, at_ps);
}

void sim_cancel(struct sim *sim, struct sim_event *event)
{
    if (sim_event_pending(event))
        sim_queue_remove(&sim->queue, event);
}

/* One multiplication on the way from event to event, the other beside it. */
static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

/* Fires up to POLL_EVENTS events; false when the run has come to its end. */
static bool run_batch(struct sim *sim)
{
    while (--sim->poll_left > 0) {
        struct sim_event *event = sim_queue_pop(&sim->queue, sim->limit_ps);

        if (SIM_LIKELY(event != NULL)) {
            sim->fingerprint = mix(sim->fingerprint, event->time_ps + (event->seq << 32));
            sim->n_fired++;
            event->fire(sim, event);
        } else if (sim_tasks_ready(sim)) {
            sim_tasks_run_ready(sim);
        } else {
            return false;
        }
        if (SIM_UNLIKELY(sim->stopped))
            return false;
    }
    return true;
}

void sim_run(struct sim *sim, sim_time until_ps, const volatile int *interrupt)
{
    struct sim *outer = sim_of_thread;
    bool more = true;

    SIM_ASSERT(!sim->running, "sim_run() from within sim_run()");
    sim_of_thread = sim;
    sim->running = true;
    sim->stopped = sim->error != NULL;
    sim->until_ps = until_ps;
    sim->limit_ps = sim_tasks_ready(sim) ? sim_now(sim) : until_ps;
    while (more && !sim->stopped && (interrupt == NULL || *interrupt == 0)) {
        sim->poll_left = POLL_EVENTS;
        more = run_batch(sim);
        sim->watchdog.n_steps += (uint64_t)(POLL_EVENTS - sim->poll_left);
        if (SIM_UNLIKELY(sim->watchdog.n_steps >= sim->watchdog.look_at) && !sim->stopped)
            sim_watchdog_look(sim);
    }
    if (!more && !sim->stopped && until_ps != SIM_TIME_MAX && until_ps > sim_now(sim))
        sim->queue.clock.now_ps = until_ps;
    sim->running = false;
    sim_of_thread = outer;
}

/* No task may advance time by itself any more. */
void sim_stop(struct sim *sim)
{
    sim->stopped = true;
    sim->limit_ps = 0;
}

bool sim_stopped(const struct sim *sim)
{
    return sim->stopped;
}

void sim_fail(struct sim *sim, const char *fmt, ...)
{
    va_list args;

    sim_stop(sim);
    if (sim->error != NULL)
        return;
    va_start(args, fmt);
    sim->error = g_strdup_vprintf(fmt, args);
    va_end(args);
}

const char *sim_error(const struct sim *sim)
{
    return sim->error;
}

uint64_t sim_fingerprint(const struct sim *sim)
{
    return sim->fingerprint;
}

void sim_fingerprint_add(struct sim *sim, uint64_t value)
{
    sim->fingerprint = mix(sim->fingerprint, value);
}
