/*
 * Tasks: stackful coroutines that carry simulated software. A task runs on the simulator's thread
 * until it waits; a switch makes no system call. It has a stack from when it first runs until its
 * body returns; the first 4096 stacks of a run have a guard page each, later ones a canary
 * (sim/engine/task_stack.h).
 *
 * Local time: a task may charge time to itself without waiting (sim_task_charge), and so runs
 * ahead of global time, by at most the quantum; it then waits until global time has caught up.
 * Before it touches anything outside its core it must synchronise (sim_task_sync).
 *
 * At equal times all events go first, then the tasks in the order in which they were made, so that
 * nothing depends on the quantum. For the same reason a task reads its own clock, sim_task_now();
 * sim_now() is the same only just after it has waited or synchronised.
 *
 * All functions without `sim` argument but sim_task_new/start/resume/free are called from within
 * the task itself.
 */
#ifndef SIM_ENGINE_TASK_H
#define SIM_ENGINE_TASK_H

#include "sim/engine/sim.h"

/* The part of a task that inline functions need; the rest is private to task.c. */
struct sim_task_head {
    struct sim *sim;
    sim_time local_ps; /* its own clock; not before global time while it runs */
    void *owner;
    const char *waits_for, *waits_in; /* sim_task_waits_for() */
};

static inline struct sim_task_head *sim_task_head(struct sim_task *task)
{
    return (struct sim_task_head *)(void *)task;
}

typedef void sim_task_fn(struct sim_task *task, void *arg);

#define SIM_TASK_STACK_BYTES_DEFAULT (64u * 1024u)

/* Makes a task that calls body(task, arg) once it is started. When the body has returned, the stack
 * goes to the next new task; sim_free() frees the task itself. `name` is copied; stack_bytes 0: the
 * default. sim_free() does not unwind the stacks of unfinished tasks. */
struct sim_task *sim_task_new(struct sim *sim, const char *name, size_t stack_bytes,
                              sim_task_fn *body, void *arg);
void sim_task_start(struct sim_task *task, sim_time at_ps);

struct sim *sim_task_sim(struct sim_task *task);
const char *sim_task_name(const struct sim_task *task);
/* The task that is running now, NULL outside of any. */
static inline struct sim_task *sim_task_current(const struct sim *sim)
{
    return ((const struct sim_clock *)(const void *)sim)->task;
}
bool sim_task_finished(const struct sim_task *task);
/* Sets what sim_task_owner() returns, for the maker of the task; NULL before. */
void sim_task_set_owner(struct sim_task *task, void *owner);
static inline void *sim_task_owner(const struct sim_task *task)
{
    return ((const struct sim_task_head *)(const void *)task)->owner;
}

/* Sets how far a task may run ahead of global time; 1 us unless set; 0: not at all. */
void sim_task_set_quantum(struct sim *sim, sim_time quantum_ps);

/* Waits until global time equals the task's own clock. */
void sim_task_sync(struct sim_task *task);
/* The task's own clock: at least sim_now(). */
static inline sim_time sim_task_now(const struct sim_task *task)
{
    const struct sim_task_head *head = (const struct sim_task_head *)(const void *)task;
    return SIM_MAX(head->local_ps, sim_now(head->sim));
}
/* Advances the task's own clock; waits when that runs beyond the quantum. */
static inline void sim_task_charge(struct sim_task *task, sim_time duration_ps)
{
    struct sim_task_head *head = sim_task_head(task);
    const struct sim_clock *clock = (const struct sim_clock *)(const void *)head->sim;
    head->local_ps += duration_ps;
    if (head->local_ps - clock->now_ps > clock->quantum_ps)
        sim_task_sync(task);
}
/* Advances the task's clock to at_ps if that is later. */
static inline void sim_task_charge_until(struct sim_task *task, sim_time at_ps)
{
    const sim_time local_ps = sim_task_head(task)->local_ps;
    if (at_ps > local_ps)
        sim_task_charge(task, at_ps - local_ps);
}
/* Says what the task waits for when it is suspended next, for the message when nothing progresses:
 * a literal such as "a tag of the root complex", and the function that waits; "" for what may well
 * wait for ever. NULL again once the wait is over. */
static inline void sim_task_waits_for(struct sim_task *task, const char *what, const char *function)
{
    sim_task_head(task)->waits_for = what;
    sim_task_head(task)->waits_in = function;
}
/* Synchronises, then waits for sim_task_resume(). */
void sim_task_suspend(struct sim_task *task);
/* Lets a suspended task go on at at_ps (absolute, not in the past). If the task has not suspended
 * itself yet, one resume is remembered (of several the earliest), and the later of both times
 * counts. Does nothing to a finished task. */
void sim_task_resume(struct sim_task *task, sim_time at_ps);

#endif
