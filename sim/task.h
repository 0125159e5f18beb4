/*
 * Tasks: stackful coroutines that carry simulated software. A task runs on the simulator's
 * thread until it waits; its stack has a guard page below; a switch makes no system call.
 *
 * Local time: a task may charge time to itself without waiting (sim_task_charge), and so runs
 * ahead of global time, by at most the quantum; it then waits until global time has caught up.
 * Before it touches anything outside its core it must synchronise (sim_task_sync).
 *
 * All functions without `sim` argument but sim_task_new/start/resume/free are called from within
 * the task itself.
 */
#ifndef SIM_TASK_H
#define SIM_TASK_H

#include "sim/sim.h"

typedef void sim_task_fn(struct sim_task *task, void *arg);

#define SIM_TASK_STACK_BYTES_DEFAULT (64u * 1024u)

/* A task that will call body(task, arg) once started. Freed by the run when its body returned or
 * at sim_free(). The name is copied. stack_bytes 0 means the default. */
struct sim_task *sim_task_new(struct sim *sim, const char *name, size_t stack_bytes,
                              sim_task_fn *body, void *arg);
void sim_task_start(struct sim_task *task, sim_time at_ps);

struct sim *sim_task_sim(struct sim_task *task);
const char *sim_task_name(const struct sim_task *task);
/* The task that is running now, NULL outside of any. */
struct sim_task *sim_task_current(struct sim *sim);
bool sim_task_finished(const struct sim_task *task);

/* How far a task may run ahead of global time; default 1 us; 0: never. */
void sim_task_set_quantum(struct sim *sim, sim_time quantum_ps);

/* The task's own clock: at least sim_now(). */
sim_time sim_task_now(const struct sim_task *task);
/* Advances the task's own clock; waits when that runs beyond the quantum. */
void sim_task_charge(struct sim_task *task, sim_time duration_ps);
/* Advances the task's clock to at_ps if that is later. */
void sim_task_charge_until(struct sim_task *task, sim_time at_ps);
/* Waits until global time equals the task's own clock. */
void sim_task_sync(struct sim_task *task);
/* Waits until someone calls sim_task_resume(); synchronises first. */
void sim_task_suspend(struct sim_task *task);
/* Lets a suspended task go on at at_ps (absolute, not in the past). A resume that arrives before
 * the task suspended itself is remembered, once; the later of both times counts. */
void sim_task_resume(struct sim_task *task, sim_time at_ps);

#endif
