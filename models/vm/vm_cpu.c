/*
 * CPUs of a guest: exits, interrupts.
 *
 * Models: a thread of the host for each CPU of the guest, on the same core; exits that QEMU handles
 *   in it; interrupts of the host for such a CPU, which are taken while the guest goes on; eventfds
 *   that raise interrupts of the guest: at once if it is out of it, or takes posted interrupts;
 *   with an exit and an entry if it runs and takes none; after a switch to the CPU's thread and an
 *   entry if it has halted.
 * Does not model: exits of halts (of idle CPUs, whose time nobody misses) and interrupt
 *   controllers; time that the guest loses to an interrupt by exit, and to the host's own; polling
 *   before a halted CPU's thread sleeps.
 * Timing: exit_cycles, user_exit_cycles, what the handler takes, entry_cycles. A signal takes
 *   eventfd_cycles, and a wake-up if the CPU has halted. Timers: vm.c, os_timer_interrupt().
 * Sources: docs/sources.md#kvm.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "models/vm/vm_internal.h"

#define STEP_PS (10 * SIM_PS_PER_US)

/* ---- Exits ----------------------------------------------------------------------------------- */

/* KVM_RUN: returns when the guest has left, or an interrupt of the host is there. */
static void run_guest(struct vm_cpu *v, struct k_thread *self)
{
    sim_task_sync(self->task);
    struct sim_task *guest = v->waiting;
    v->waiting = NULL;
    v->inside = true;
    if (guest != NULL)
        sim_task_resume(guest, sim_task_now(self->task));
    self->on->in_guest = self->task;
    if (self->on->due_ps != SIM_TIME_MAX) /* that is under way already */
        sim_task_resume(self->task, SIM_MAX(self->on->due_ps, sim_task_now(self->task)));
    sim_task_waits_for(self->task, "", NULL); /* its guest, which says what for */
    sim_task_suspend(self->task);
    self->on->in_guest = NULL;
    os_interrupts_of(self);
}

static void cpu_body(void *arg)
{
    struct vm_cpu *v = arg;
    struct k_vm *vm = v->vm;
    struct k_thread *self = os_self(vm->host);
    const struct vm_params *params = &vm->config.params;
    vm->n_inside++;
    while (!vm->stopping) {
        run_guest(v, self);
        if (v->exit == NULL)
            continue;
        vm_exit_fn *handler = v->exit;
        v->inside = false;
        k_compute(vm->host, params->user_exit_cycles);
        handler(v->arg);
        v->exit = NULL;
        k_compute(vm->host, params->entry_cycles);
    }
    v->thread = NULL;
    vm->n_inside--;
}

void vm_exit_to(struct k_vm *vm, vm_exit_fn *fn, void *arg)
{
    struct k_thread *self = os_self(vm->guest);
    struct vm_cpu *v = &vm->cpu[self->on->idx];
    sim_task_charge(self->task, vm->config.params.exit_cycles * vm->guest->cycle_ps);
    os_registers_written(self);
    sim_task_sync(self->task);
    vm->stats.exits++;
    v->arg = arg;
    v->exit = fn;
    v->waiting = self->task;
    sim_task_resume(v->thread->task, sim_task_now(self->task));
    sim_task_waits_for(self->task, "its host to handle an exit", NULL);
    sim_task_suspend(self->task);
    os_interrupts_of(self);
}

/* ---- Starting and stopping ------------------------------------------------------------------- */

static bool of_the_cpu(const struct os_cpu *cpu, const struct k_thread *thread)
{
    return thread == cpu->worker || thread == cpu->ksoftirqd;
}

/* The host's other threads go elsewhere, at their next chance. */
static int clear_cpu(struct kernel *host, struct os_cpu *cpu)
{
    for (struct k_thread *next, *thread = host->threads; thread != NULL; thread = next) {
        unsigned to = 0;
        next = thread->all_next;
        if (thread->cpu != cpu || thread->state == OS_DEAD || of_the_cpu(cpu, thread))
            continue;
        while (to < host->n_cpus && host->cpu[to].isolated)
            to++;
        if (to == host->n_cpus)
            return -EBUSY;
        k_thread_set_cpu(thread, to);
    }
    return 0;
}

static void isolate(struct k_vm *vm, bool isolated)
{
    for (unsigned c = 0; c < vm->config.n_cpus; c++)
        vm->host->cpu[vm->config.first_cpu + c].isolated = isolated;
}

int vm_cpus_start(struct k_vm *vm)
{
    struct kernel *host = vm->host;
    int status = 0;
    isolate(vm, true);
    for (unsigned c = 0; c < vm->config.n_cpus && status == 0; c++)
        status = clear_cpu(host, &host->cpu[vm->config.first_cpu + c]);
    if (status != 0) {
        isolate(vm, false);
        return status;
    }
    for (unsigned c = 0; c < vm->config.n_cpus; c++) {
        struct vm_cpu *v = &vm->cpu[c];
        const unsigned cpu = vm->config.first_cpu + c;
        char name[OS_NAME_BYTES];
        snprintf(name, sizeof name, "%.20s/%u", vm->config.name, c);
        *v = (struct vm_cpu){ .vm = vm, .idx = c, .host_cpu = &host->cpu[cpu] };
        v->thread = k_thread_new(host, name, (int)cpu, cpu_body, v);
    }
    for (unsigned c = 0; c < vm->config.n_cpus; c++)
        while (!vm->cpu[c].inside)
            k_sleep(host, STEP_PS);
    return 0;
}

void vm_cpus_stop(struct k_vm *vm)
{
    vm->stopping = true;
    for (unsigned c = 0; c < vm->config.n_cpus; c++)
        sim_task_resume(vm->cpu[c].thread->task, k_now_ps(vm->host));
    while (vm->n_inside > 0)
        k_sleep(vm->host, STEP_PS);
    isolate(vm, false);
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

static void inject(struct sim *sim, struct sim_event *event)
{
    struct k_eventfd *e = SIM_CONTAINER(event, struct k_eventfd, event);
    struct k_vm *vm = e->vm;
    (void)sim;
    if (!vm->running || !e->in_use)
        return;
    if (e->masked) { /* meanwhile */
        e->waits = true;
        return;
    }
    vm->stats.interrupts++;
    os_interrupt_arrived(vm->guest, e->cpu, e->vector);
}

void vm_eventfd_init(struct k_eventfd *e, struct k_vm *vm)
{
    e->vm = vm;
    e->masked = true;
    sim_event_init(&e->event, inject);
}

/* Until the guest's APIC has it; charges whoever wakes the CPU's thread. */
static sim_time way_ps(struct k_vm *vm, const struct k_eventfd *e)
{
    const struct vm_params *params = &vm->config.params;
    const struct k_costs *costs = &vm->host->params.costs;
    const struct vm_cpu *v = &vm->cpu[e->cpu];
    const sim_time cycle_ps = vm->host->cycle_ps;
    if (!v->inside)
        return 0; /* it is looked for at the entry */
    if (vm->guest->cpu[e->cpu].asleep) {
        vm->stats.woken++;
        if (os_self_or_null(vm->host) != NULL)
            k_compute(vm->host, costs->wakeup_cycles + costs->remote_wakeup_cycles);
        return (costs->context_switch_cycles + params->entry_cycles) * cycle_ps;
    }
    return params->posted_interrupts ? 0 : (params->exit_cycles + params->entry_cycles) * cycle_ps;
}

static void raise_interrupt(struct k_eventfd *e)
{
    struct k_vm *vm = e->vm;
    struct k_thread *self = os_self_or_null(vm->host);
    sim_time after_ps = way_ps(vm, e);
    if (self != NULL)
        sim_task_sync(self->task);
    if (!sim_event_pending(&e->event)) /* else it is the same interrupt */
        sim_schedule_in(vm->host->sim, &e->event, after_ps);
}

void k_eventfd_signal(struct k_eventfd *e)
{
    struct kernel *host = e->vm->host;
    if (os_self_or_null(host) != NULL)
        k_compute(host, e->vm->config.params.eventfd_cycles);
    if (e->masked)
        e->waits = true;
    else
        raise_interrupt(e);
}

void vm_eventfd_mask(struct k_eventfd *e, bool masked)
{
    e->masked = masked;
    if (masked || !e->waits)
        return;
    e->waits = false;
    raise_interrupt(e);
}
