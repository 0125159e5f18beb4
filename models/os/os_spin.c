/*
 * Threads that poll memory or compute for long.
 *
 * Models: looks at lines every period, from the call on; the one that finds other bytes there is
 *   the first at or after the time at which a device's write was performed. Long computations, of
 *   which the simulation needs no more than the end.
 * Does not model: misses of looks between the loss of the line and the performance of the write.
 * Timing: a multiple of the period, or what is to be computed. The CPU is busy; interrupts come in
 *   at their time, a thread that becomes ready on the CPU within a microsecond.
 */
#include <string.h>

#include "models/os/os_memory.h"

#define BREAK_PS   SIM_PS_PER_US         /* until the thread sees that another is ready */
#define AT_MOST_PS (100 * SIM_PS_PER_US) /* then it looks around in any case */

/* A thread that holds its CPU and does nothing that the simulation has to see. */
struct os_pause {
    struct sim_event event;
    struct sim *sim;
    struct sim_task *task;
    sim_time at_ps; /* of the event */
    bool polls;     /* and gives way to other threads */
    bool over;
};
struct place {
    struct physmem_watch watch;
    struct os_pause *pause;
};

static void end(struct os_pause *pause)
{
    if (!pause->over)
        sim_task_resume(pause->task, sim_now(pause->sim));
    pause->over = true;
}

/* By a device, now, or by another CPU, at its own time. */
static void written(struct physmem_watch *watch)
{
    struct os_pause *pause = SIM_CONTAINER(watch, struct place, watch)->pause;
    struct sim_task *writer = sim_task_current(pause->sim);
    os_pause_until(pause, writer != NULL ? sim_task_now(writer) : sim_now(pause->sim));
}

static void time_comes(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    end(SIM_CONTAINER(event, struct os_pause, event));
}

void os_pause_until(struct os_pause *pause, sim_time at_ps)
{
    if (pause->over || at_ps >= pause->at_ps)
        return;
    sim_cancel(pause->sim, &pause->event);
    pause->at_ps = SIM_MAX(at_ps, sim_now(pause->sim));
    sim_schedule(pause->sim, &pause->event, pause->at_ps);
}

void os_pause_within(struct os_pause *pause)
{
    if (pause->polls)
        os_pause_until(pause, sim_now(pause->sim) + BREAK_PS);
}

/* Until at_ps, an interrupt is due, or one of n places is written (0: none is polled); at the
 * latest at some time. The thread has synchronised. A guest's thread looks around once a
 * microsecond, as its host may want the CPU. */
static void rest(struct k_thread *self, sim_time at_ps, const struct k_spin_at *at, unsigned n)
{
    struct kernel *kernel = self->kernel;
    struct os_cpu *cpu = self->on;
    const sim_time now_ps = sim_now(kernel->sim);
    struct os_pause pause = { .sim = kernel->sim, .task = self->task, .polls = n > 0 };
    struct place place[K_SPIN_MAX];
    const bool wanted = cpu->ready != NULL || self->cpu != cpu || kernel->guest != NULL;
    const sim_time most_ps = n > 0 && wanted ? BREAK_PS : AT_MOST_PS;
    pause.at_ps = SIM_MAX(now_ps, SIM_MIN(SIM_MIN(at_ps, now_ps + most_ps), cpu->due_ps));
    for (unsigned i = 0; i < n; i++) {
        place[i] = (struct place){ .watch = { .hpa = os_hpa(kernel->memory, at[i].at),
                                              .bytes = at[i].bytes,
                                              .written = written },
                                   .pause = &pause };
        physmem_watch_add(kernel->memory->mem, &place[i].watch);
    }
    kernel->memory->n_polled += n;
    sim_event_init(&pause.event, time_comes);
    sim_schedule(kernel->sim, &pause.event, pause.at_ps);
    cpu->pause = &pause;
    sim_task_waits_for(self->task, n > 0 ? "a write to memory that it polls" : "its computation",
                       NULL);
    sim_task_suspend(self->task);
    cpu->pause = NULL;
    sim_cancel(kernel->sim, &pause.event);
    kernel->memory->n_polled -= n;
    for (unsigned i = 0; i < n; i++)
        physmem_watch_remove(kernel->memory->mem, &place[i].watch);
}

sim_time os_compute_long(struct k_thread *self, sim_time ps)
{
    sim_task_sync(self->task);
    const sim_time begin_ps = sim_task_now(self->task);
    if (begin_ps >= self->on->due_ps)
        return 0;
    rest(self, begin_ps + ps, NULL, 0);
    sim_task_charge_until(self->task, sim_now(self->kernel->sim));
    return sim_now(self->kernel->sim) - begin_ps;
}

static bool differs(struct kernel *kernel, const struct k_spin_at *at, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct hpa hpa = os_hpa(kernel->memory, at[i].at);
        if (memcmp(physmem_bytes(kernel->memory->mem, hpa), at[i].seen, at[i].bytes) != 0)
            return true;
    }
    return false;
}

void k_spin_any(struct kernel *kernel, const struct k_spin_at *at, unsigned n, uint64_t period_ps,
                uint64_t until_ps)
{
    struct k_thread *self = os_self(kernel);
    SIM_ASSERT(period_ps > 0 && n > 0 && n <= K_SPIN_MAX, "%u places", n);
    for (unsigned i = 0; i < n; i++)
        SIM_ASSERT(at[i].at.v % LINE_BYTES + at[i].bytes <= LINE_BYTES, "%zu bytes at %#llx",
                   at[i].bytes, (unsigned long long)at[i].at.v);
    for (;;) {
        sim_task_sync(self->task);
        const sim_time now_ps = sim_task_now(self->task);
        if (now_ps >= until_ps || differs(kernel, at, n))
            return;
        rest(self, until_ps, at, n);
        const sim_time looks = (sim_now(kernel->sim) - now_ps + period_ps - 1) / period_ps;
        sim_task_charge_until(self->task, now_ps + looks * period_ps);
        os_interrupts_of(self);
        os_preempt(self);
        self = os_self(kernel);
    }
}
