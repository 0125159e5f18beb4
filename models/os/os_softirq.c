/*
 * Soft interrupts, NAPI, work queues.
 *
 * Models: soft interrupts at the end of a hard one or of k_bh_disable(), in rounds while more comes
 *   in, until the budget of time or of rounds is over or a thread's turn has come; ksoftirqd takes
 *   over then, a thread like any other, and while it is ready nobody else runs them (Linux 4.9 and
 *   later); without softirq_yields ten rounds are all that ends them, and interrupts run them
 *   whatever ksoftirqd does (Linux 2.6); the network's budget of packets and time; NAPI; a worker
 *   thread a CPU.
 * Does not model: tasklets, block and RCU soft interrupts, workers of a pool that run in parallel.
 * Timing: soft_irq_cycles from the return of the handler to the first of them; timer_cycles a
 *   timer, work_cycles a piece of work.
 * Sources: Linux 4.14, kernel/softirq.c and net/core/dev.c (net_rx_action); Linux 2.6.26,
 *   kernel/softirq.c (__do_softirq, irq_exit); docs/sources.md#a5, #a6.
 */
#include <stdio.h>

#include "models/os/os_text.h"
#include "sim/engine/activity.h"

/* ---- NAPI ------------------------------------------------------------------------------------ */

void k_napi_init(struct k_napi *napi, struct kernel *kernel, k_napi_poll_fn *poll)
{
    *napi = (struct k_napi){ .kernel = kernel, .poll = poll };
}

static void napi_append(struct os_cpu *cpu, struct k_napi *napi)
{
    napi->queued = true;
    napi->next = NULL;
    *cpu->napi_last = napi;
    cpu->napi_last = &napi->next;
}

static struct k_napi *napi_take(struct os_cpu *cpu)
{
    struct k_napi *napi = cpu->napi_first;
    cpu->napi_first = napi->next;
    if (cpu->napi_first == NULL)
        cpu->napi_last = &cpu->napi_first;
    napi->queued = false;
    return napi;
}

void k_napi_schedule(struct k_napi *napi)
{
    struct k_thread *self = os_self(napi->kernel);
    struct os_cpu *cpu = self->on;
    if (napi->scheduled) {
        napi->missed = true;
        return;
    }
    napi->scheduled = true;
    napi_append(cpu, napi);
    cpu->soft_pending |= OS_SOFT_NET;
    if (!cpu->in_hard && !cpu->in_soft && cpu->bh_off == 0)
        os_softirq_run(self);
}

bool k_napi_complete(struct k_napi *napi)
{
    struct os_cpu *cpu = os_cpu(napi->kernel);
    if (!napi->missed) {
        napi->scheduled = false;
        return true;
    }
    napi->missed = false;
    napi_append(cpu, napi);
    cpu->soft_pending |= OS_SOFT_NET;
    return false;
}

static void net_softirq(struct k_thread *self)
{
    struct os_cpu *cpu = self->on;
    const struct os_params *params = &self->kernel->params;
    sim_time until_ps = sim_task_now(self->task) + params->softirq_budget_ps;
    int64_t budget = params->softirq_budget_packets;
    while (cpu->napi_first != NULL) {
        if (budget <= 0 || sim_task_now(self->task) >= until_ps) {
            cpu->soft_pending |= OS_SOFT_NET;
            return;
        }
        struct k_napi *napi = napi_take(cpu);
        cpu->stats.polls++;
        int done = napi->poll(napi, (int)params->napi_weight);
        budget -= done;
        if (done >= (int)params->napi_weight && napi->scheduled && !napi->queued)
            napi_append(cpu, napi);
    }
}

/* ---- Soft interrupts ------------------------------------------------------------------------- */

static void ksoftirqd_wake(struct k_thread *self);

/* In rounds; what is then still pending is ksoftirqd's. */
static void run(struct k_thread *self)
{
    struct os_cpu *cpu = self->on;
    const struct os_params *params = &self->kernel->params;
    sim_time start_ps = sim_task_now(self->task);
    unsigned rounds = OS_SOFTIRQ_ROUNDS;
    cpu->in_soft = true;
    cpu->soft_since_ps = start_ps;
    cpu->stats.soft_irqs++;
    os_run_text(self, K_TEXT_SOFT_IRQ, params->costs.soft_irq_cycles);
    for (;;) {
        unsigned pending = cpu->soft_pending;
        cpu->soft_pending = 0;
        if (pending & OS_SOFT_TIMER)
            os_timer_softirq(self);
        if (pending & OS_SOFT_NET)
            net_softirq(self);
        if (cpu->soft_pending == 0)
            break;
        if (--rounds == 0 || (params->softirq_yields &&
                              (os_need_resched(self) ||
                               sim_task_now(self->task) - start_ps >= params->softirq_budget_ps))) {
            ksoftirqd_wake(self);
            break;
        }
    }
    cpu->in_soft = false;
    cpu->stats.soft_irq_ps += sim_task_now(self->task) - cpu->soft_since_ps;
}

void os_softirq_run(struct k_thread *self)
{
    const struct k_thread *ksoftirqd = self->on->ksoftirqd;
    struct sim_activity *activity = self->kernel->activity;
    const sim_time from_ps = sim_task_now(self->task);
    if (ksoftirqd == NULL || ksoftirqd->state == OS_BLOCKED || !self->kernel->params.softirq_yields)
        run(self);
    if (SIM_UNLIKELY(activity != NULL))
        activity->interrupted(activity, self->kernel->name, self->on->idx, "soft interrupt",
                              from_ps, sim_task_now(self->task));
}

static void ksoftirqd_body(void *arg)
{
    struct os_cpu *cpu = arg;
    struct k_thread *self = cpu->ksoftirqd;
    for (;;) {
        while (cpu->soft_pending == 0)
            os_park(self);
        cpu->stats.ksoftirqd_runs++;
        run(self);
        os_poll(cpu->kernel);
    }
}

static void ksoftirqd_wake(struct k_thread *self)
{
    struct os_cpu *cpu = self->on;
    if (cpu->ksoftirqd == NULL) {
        char name[OS_NAME_BYTES];
        snprintf(name, sizeof(name), "ksoftirqd/%u", cpu->idx);
        cpu->ksoftirqd = os_thread_new(cpu, name, ksoftirqd_body, cpu);
    }
    if (cpu->ksoftirqd->state == OS_BLOCKED)
        os_wake_charged(self, cpu->ksoftirqd);
}

void k_bh_disable(struct kernel *kernel)
{
    os_cpu(kernel)->bh_off++;
}

void k_bh_enable(struct kernel *kernel)
{
    struct k_thread *self = os_self(kernel);
    struct os_cpu *cpu = self->on;
    SIM_ASSERT(cpu->bh_off > 0, "soft interrupts are on");
    if (--cpu->bh_off == 0 && cpu->soft_pending != 0 && !cpu->in_hard && !cpu->in_soft)
        os_softirq_run(self);
}

/* ---- Work ------------------------------------------------------------------------------------ */

static void worker_body(void *arg)
{
    struct os_cpu *cpu = arg;
    for (;;) {
        while (cpu->work_first == NULL) {
            cpu->worker_parked = true;
            os_park(cpu->worker);
        }
        struct k_work *work = cpu->work_first;
        cpu->work_first = work->next;
        if (cpu->work_first == NULL)
            cpu->work_last = &cpu->work_first;
        work->queued = false;
        k_compute(cpu->kernel, cpu->kernel->params.costs.work_cycles);
        work->fn(work);
        os_poll(cpu->kernel);
    }
}

void k_work_queue(struct kernel *kernel, struct k_work *work, int cpu_idx)
{
    struct k_thread *self = os_self_or_null(kernel);
    SIM_ASSERT(cpu_idx == K_CPU_ANY || (unsigned)cpu_idx < kernel->n_cpus, "CPU %d of %u", cpu_idx,
               kernel->n_cpus);
    unsigned idx = cpu_idx != K_CPU_ANY ? (unsigned)cpu_idx : self != NULL ? self->on->idx : 0;
    struct os_cpu *cpu = &kernel->cpu[idx];
    if (work->queued)
        return;
    work->queued = true;
    work->next = NULL;
    *cpu->work_last = work;
    cpu->work_last = &work->next;
    if (cpu->worker == NULL) {
        char name[OS_NAME_BYTES];
        snprintf(name, sizeof(name), "kworker/%u", idx);
        cpu->worker = os_thread_new(cpu, name, worker_body, cpu);
        cpu->worker_parked = true;
    }
    if (!cpu->worker_parked) /* it runs, or work sleeps */
        return;
    cpu->worker_parked = false;
    if (self != NULL)
        os_wake_charged(self, cpu->worker);
    else
        os_wake_thread(cpu->worker);
}
