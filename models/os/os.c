/*
 * The kernel of a host: CPUs, time, statistics.
 *
 * Models: a kernel without preemption inside itself (PREEMPT_VOLUNTARY): interrupts come in at any
 *   charge of time, another thread runs only where this one gives way (k_syscall, k_yield, k_sleep,
 *   k_wait, os_poll).
 * Does not model: the scheduler's periodic tick, user and kernel address spaces, signals.
 * Timing: computation is cycles times the cycle. A computation is cut where an interrupt is due;
 *   since nothing is due sooner than interrupt_ps after it was raised, and a task is never let
 *   further ahead of global time than that while it computes, the cut is exact.
 * Sources: docs/sources.md#a6; docs/models/os.md.
 */
#include "models/os/os.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/os/os_memory.h"
#include "models/os/os_pci.h"
#include "models/os/os_text.h"
#include "sim/engine/activity.h"
#include "sim/engine/steps.h"
#include "sim/engine/watchdog.h"

/* ---- Making ---------------------------------------------------------------------------------- */

static void cpu_init(struct kernel *kernel, unsigned idx)
{
    struct os_cpu *cpu = &kernel->cpu[idx];
    const unsigned core = idx + (kernel->guest != NULL ? kernel->guest->first_core : 0);
    unsigned socket = numa_socket_of_core(host_numa(kernel->host), core);
    cpu->kernel = kernel;
    cpu->idx = idx;
    cpu->core = host_core(kernel->host, core);
    cpu->socket = socket;
    cpu->node = SIM_MIN(socket, kernel->n_nodes - 1); /* a guest has one */
    cpu->due_ps = SIM_TIME_MAX;
    cpu->pending_last = &cpu->pending_first;
    cpu->work_last = &cpu->work_first;
    cpu->napi_last = &cpu->napi_first;
    os_sched_init(cpu);
}

static struct kernel *make(struct host *host, const struct os_params *params,
                           const struct os_guest *guest)
{
    struct numa *numa = host_numa(host);
    unsigned n_cpus = guest != NULL ? guest->n_cpus : numa_cores(numa);
    struct kernel *kernel = k_zalloc(sizeof(*kernel) + n_cpus * sizeof(kernel->cpu[0]));
    kernel->host = host;
    kernel->guest = guest;
    kernel->name = guest != NULL ? guest->name : host_name(host);
    kernel->sim = host_sim(host);
    kernel->activity = sim_activity(kernel->sim);
    kernel->params = *params;
    kernel->cycle_ps = numa_cycle_ps(numa);
    kernel->n_cpus = n_cpus;
    kernel->n_nodes = guest != NULL ? 1 : physmem_nodes(numa_physmem(numa));
    kernel->cleared_ps = sim_now(kernel->sim);
    for (unsigned c = 0; c < n_cpus; c++)
        cpu_init(kernel, c);
    os_memory_new(kernel);
    os_pci_new(kernel);
    os_text_new(kernel);
    return kernel;
}

struct kernel *os_new(struct host *host, const struct os_params *params)
{
    struct root_complex_host *root_complexes = host_root_complexes(host);
    SIM_ASSERT(root_complexes->interrupt == NULL, "%s has a kernel already", host_name(host));
    struct kernel *kernel = make(host, params, NULL);
    root_complexes->interrupt = os_interrupt_arrived;
    root_complexes->interrupt_context = kernel;
    return kernel;
}

struct kernel *os_guest_new(struct host *host, const struct os_params *params,
                            const struct os_guest *guest)
{
    return make(host, params, guest);
}

void os_free(struct kernel *kernel)
{
    if (kernel->guest == NULL)
        host_root_complexes(kernel->host)->interrupt = NULL;
    os_timers_release(kernel);
    while (kernel->threads != NULL) {
        struct k_thread *thread = kernel->threads;
        kernel->threads = thread->all_next;
        os_timer_cancel(&thread->timer);
        free(thread);
    }
    os_pci_free(kernel);
    os_text_free(kernel);
    os_memory_free(kernel);
    for (unsigned c = 0; c < kernel->n_cpus; c++)
        os_vectors_release(&kernel->cpu[c]);
    free(kernel);
}

struct host *os_host(struct kernel *kernel)
{
    return kernel->host;
}

void *k_zalloc(size_t bytes)
{
    return sim_zalloc(1, bytes);
}

void k_free(void *p)
{
    free(p);
}

/* ---- Time, CPUs, costs ----------------------------------------------------------------------- */

const struct k_costs *k_costs(const struct kernel *kernel)
{
    return &kernel->params.costs;
}

uint64_t k_now_ps(struct kernel *kernel)
{
    struct sim_task *task = sim_task_current(kernel->sim);
    return task != NULL ? sim_task_now(task) : sim_now(kernel->sim);
}

unsigned k_cpu(struct kernel *kernel)
{
    return os_cpu(kernel)->idx;
}

unsigned k_n_cpus(const struct kernel *kernel)
{
    return kernel->n_cpus;
}

unsigned k_n_nodes(const struct kernel *kernel)
{
    return kernel->n_nodes;
}

unsigned k_node_of_cpu(const struct kernel *kernel, unsigned cpu)
{
    SIM_ASSERT(cpu < kernel->n_cpus, "CPU %u of %u", cpu, kernel->n_cpus);
    return kernel->cpu[cpu].node;
}

#define LONG_PS (10 * SIM_PS_PER_US) /* worth the event that ends it */

/* How far the task may compute without looking for interrupts again; 0: it must synchronise. */
static sim_time computable_ps(const struct k_thread *self, sim_time now_ps)
{
    const struct os_cpu *cpu = self->on;
    if (cpu->in_hard)
        return SIM_TIME_MAX;
    /* Every interrupt that is due by then has been raised. */
    sim_time known_ps = sim_now(self->kernel->sim) + self->kernel->params.interrupt_ps;
    sim_time until_ps = SIM_MIN(cpu->due_ps, known_ps);
    return until_ps > now_ps ? until_ps - now_ps : 0;
}

void os_charge(struct k_thread *self, sim_time ps)
{
    for (;;) {
        sim_time now_ps = sim_task_now(self->task);
        if (SIM_UNLIKELY(now_ps >= self->on->due_ps)) {
            os_interrupts_take(self);
            continue;
        }
        if (ps == 0)
            return;
        if (SIM_UNLIKELY(ps >= LONG_PS) && !self->on->in_hard && self->kernel->guest == NULL) {
            ps -= os_compute_long(self, ps);
            continue;
        }
        sim_time step_ps = SIM_MIN(ps, computable_ps(self, now_ps));
        if (step_ps == 0) {
            sim_task_sync(self->task);
            continue;
        }
        sim_task_charge(self->task, step_ps);
        ps -= step_ps;
    }
}

void k_compute(struct kernel *kernel, uint64_t cycles)
{
    os_charge_cycles(os_self(kernel), cycles);
}

void k_syscall(struct kernel *kernel)
{
    struct k_thread *self = os_self(kernel);
    os_preempt(self);
    os_run_text(self, K_TEXT_SYSCALL, kernel->params.costs.syscall_cycles);
}

void k_fault(struct kernel *kernel, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    sim_fail(kernel->sim, "%s: %s", kernel->name, text);
}

void k_warn(struct kernel *kernel, const char *fmt, ...)
{
    va_list args;
    for (unsigned i = 0; i < kernel->n_warned; i++)
        if (kernel->warned[i] == fmt)
            return;
    if (kernel->n_warned == SIM_N_ELEMENTS(kernel->warned))
        return;
    kernel->warned[kernel->n_warned++] = fmt;
    fprintf(stderr, "%s: at %.3f us: ", kernel->name, (double)k_now_ps(kernel) * 1e-6);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

void k_trace(struct kernel *kernel, const char *step, uint64_t number)
{
    struct sim_steps *steps = sim_steps(kernel->sim);
    if (SIM_LIKELY(steps == NULL))
        return;
    const struct sim_step noted = { .at_ps = k_now_ps(kernel),
                                    .where = kernel->name,
                                    .what = step,
                                    .cpu = k_cpu(kernel),
                                    .number = number };
    sim_steps_add(steps, &noted);
}

/* ---- For programs, looking at it ------------------------------------------------------------- */

struct core *os_core(struct kernel *kernel)
{
    sim_progress(kernel->sim); /* what follows may stay within the nearest caches */
    return os_cpu(kernel)->core;
}

struct sim_task *os_task(struct kernel *kernel)
{
    return os_self(kernel)->task;
}

void os_poll(struct kernel *kernel)
{
    struct k_thread *self = os_self(kernel);
    os_interrupts_of(self);
    os_preempt(self);
}

sim_time os_busy_ps(const struct kernel *kernel, unsigned cpu_idx)
{
    SIM_ASSERT(cpu_idx < kernel->n_cpus, "CPU %u of %u", cpu_idx, kernel->n_cpus);
    const struct os_cpu *cpu = &kernel->cpu[cpu_idx];
    sim_time now_ps = sim_now(kernel->sim), idle_ps = cpu->idle_ps;
    if (cpu->idling)
        idle_ps += now_ps - SIM_MAX(cpu->idle_since_ps, kernel->cleared_ps);
    return now_ps - kernel->cleared_ps - idle_ps;
}

void os_stats_clear(struct kernel *kernel)
{
    kernel->cleared_ps = sim_now(kernel->sim);
    for (unsigned c = 0; c < kernel->n_cpus; c++) {
        struct os_cpu *cpu = &kernel->cpu[c];
        cpu->stats = (struct os_stats){ 0 };
        memset(cpu->account, 0, sizeof(cpu->account));
        cpu->counted = numa_private_count(cpu->core->numa, cpu->core->idx);
        cpu->idle_ps = 0;
        cpu->soft_since_ps = SIM_MAX(cpu->soft_since_ps, kernel->cleared_ps);
    }
}

struct os_stats *os_cpu_stats(struct kernel *kernel, unsigned cpu)
{
    kernel->cpu[cpu].stats.busy_ps = os_busy_ps(kernel, cpu);
    return &kernel->cpu[cpu].stats;
}
