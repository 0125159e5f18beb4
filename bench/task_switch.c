/*
 * Tasks: what a switch costs by itself, what waking a task through the event queue costs (one
 * event, two switches, the look for other events of the time) for populations of tasks, and what a
 * synchronisation costs that finds nothing in the way. The best of a few repetitions.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sim/engine/task.h"
#include "sim/engine/task_context.h"

#define REPETITIONS 5

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- The switch itself ----------------------------------------------------------------------- */

struct pair {
    struct sim_context main, other;
};

static void bounce(void *arg)
{
    struct pair *pair = arg;

    for (;;)
        sim_context_switch(&pair->other, &pair->main);
}

static double switch_ns(void)
{
    static _Alignas(16) char stack[65536];
    const unsigned n_round_trips = 4000000;
    struct pair pair;
    double best_ns = 1e9;

    sim_context_prepare(&pair.other, stack, sizeof(stack), bounce, &pair);
    for (unsigned repetition = 0; repetition < REPETITIONS; repetition++) {
        double start_s = now_s();

        for (unsigned i = 0; i < n_round_trips; i++)
            sim_context_switch(&pair.main, &pair.other);
        best_ns = SIM_MIN(best_ns, 1e9 * (now_s() - start_s) / (2.0 * n_round_trips));
    }
    return best_ns;
}

/* ---- Tasks of a run -------------------------------------------------------------------------- */

struct wakes {
    uint64_t n_left;
    sim_time step_ps;
};

static void wake_body(struct sim_task *task, void *arg)
{
    struct wakes *wakes = arg;

    for (;;) {
        sim_task_charge(task, wakes->step_ps);
        sim_task_sync(task);
        if (--wakes->n_left == 0)
            sim_stop(sim_task_sim(task));
    }
}

/* With one task nothing is ever in the way; with more, tasks wait for each other. */
static double wake_ns(unsigned n_tasks, uint64_t n_wakes)
{
    struct sim *sim = sim_new(1);
    struct wakes wakes = { .step_ps = 1000 * (sim_time)n_tasks };
    double best_ns = 1e9;

    for (unsigned i = 0; i < n_tasks; i++)
        sim_task_start(sim_task_new(sim, "task", 16384, wake_body, &wakes), 1000 * (sim_time)i);
    for (unsigned repetition = 0; repetition < REPETITIONS; repetition++) {
        wakes.n_left = n_wakes;
        double start_s = now_s();

        sim_run(sim, SIM_TIME_MAX, NULL);
        best_ns = SIM_MIN(best_ns, 1e9 * (now_s() - start_s) / (double)n_wakes);
    }
    sim_free(sim);
    return best_ns;
}

int main(void)
{
    static const unsigned populations[] = { 2, 16, 256, 10000 };
    double ns = switch_ns();

    printf("task.switch %.1f Mswitches/s\n", 1e3 / ns);
    printf("task.switch_time %.1f ns\n", ns);
    printf("task.sync_alone %.1f ns\n", wake_ns(1, 4000000));
    for (unsigned i = 0; i < SIM_N_ELEMENTS(populations); i++)
        printf("task.wake_of_%u %.1f ns\n", populations[i], wake_ns(populations[i], 1000000));
    return 0;
}
