/*
 * Timers: of the kernel (k_timer) and of threads that sleep.
 *
 * Models: one-shot timers of the CPU's own interrupt controller, exact to the picosecond (as high
 *   resolution timers are, not the timer wheel's jiffies). Timers that are due together share an
 *   interrupt. Threads are woken in it; functions run in the soft interrupt after it.
 * Does not model: the cost of arming; slack.
 * Timing: the interrupt is due at the timer's time; in a guest it takes what its host does besides
 *   (vm.c). Its event fires interrupt_ps before, so that a task that runs ahead of global time
 *   knows of it.
 * Sources: docs/sources.md#a6.
 */
#include <stdlib.h>

#include "models/os/os_internal.h"

static void list_insert(struct os_timer_list *list, struct os_timer *timer)
{
    struct os_timer *before = list->last;
    while (before != NULL && before->at_ps > timer->at_ps)
        before = before->prev;
    timer->list = list;
    timer->prev = before;
    timer->next = before != NULL ? before->next : list->first;
    *(timer->next != NULL ? &timer->next->prev : &list->last) = timer;
    *(before != NULL ? &before->next : &list->first) = timer;
}

static void list_remove(struct os_timer *timer)
{
    struct os_timer_list *list = timer->list;
    *(timer->next != NULL ? &timer->next->prev : &list->last) = timer->prev;
    *(timer->prev != NULL ? &timer->prev->next : &list->first) = timer->next;
    timer->list = NULL;
}

static void arrives(struct os_timer *timer)
{
    struct os_cpu *cpu = timer->cpu;
    list_insert(&cpu->fired, timer);
    os_due_update(cpu);
    os_kick_idle(cpu, timer->at_ps);
}

static void fires(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    arrives(SIM_CONTAINER(event, struct os_timer, event));
}

static void set(struct os_cpu *cpu, struct os_timer *timer, sim_time at_ps,
                void (*schedule)(struct sim *sim, struct sim_event *event, sim_time at_ps))
{
    struct sim *sim = cpu->kernel->sim;
    sim_time early_ps = cpu->kernel->params.interrupt_ps;
    os_timer_cancel(timer);
    timer->cpu = cpu;
    timer->at_ps = SIM_MAX(at_ps, sim_now(sim));
    if (timer->at_ps <= sim_now(sim) + early_ps) {
        arrives(timer);
        return;
    }
    timer->event.fire = fires;
    schedule(sim, &timer->event, timer->at_ps - early_ps);
}

void os_timer_set(struct os_cpu *cpu, struct os_timer *timer, sim_time at_ps)
{
    set(cpu, timer, at_ps, sim_schedule);
}

void os_timer_cancel(struct os_timer *timer)
{
    if (timer->list != NULL) {
        list_remove(timer);
        os_due_update(timer->cpu);
    } else if (sim_event_pending(&timer->event)) {
        sim_cancel(timer->cpu->kernel->sim, &timer->event);
    }
}

void os_timer_interrupt(struct k_thread *self)
{
    struct os_cpu *cpu = self->on;
    const struct os_guest *guest = self->kernel->guest;
    struct os_timer *timer;
    if (guest != NULL)
        os_charge_cycles(self,
                         self == &cpu->idle ? guest->timer_halted_cycles : guest->timer_cycles);
    while ((timer = cpu->fired.first) != NULL && timer->at_ps <= sim_task_now(self->task)) {
        if (timer->thread != NULL) {
            os_charge_wake(self, timer->thread);
            if (timer != cpu->fired.first)
                continue; /* meanwhile its thread, on another CPU, was woken and went on */
            list_remove(timer);
            os_wake_thread(timer->thread);
        } else {
            list_remove(timer);
            list_insert(&cpu->expired, timer);
            cpu->soft_pending |= OS_SOFT_TIMER;
        }
    }
}

void os_timer_softirq(struct k_thread *self)
{
    struct os_cpu *cpu = self->on;
    struct os_timer *timer;
    while ((timer = cpu->expired.first) != NULL) {
        os_charge_cycles(self, self->kernel->params.costs.timer_cycles);
        if (timer != cpu->expired.first)
            continue; /* meanwhile another CPU has cancelled, moved or released it */
        list_remove(timer);
        timer->timer->fn(timer->timer);
    }
}

/* ---- k_timer --------------------------------------------------------------------------------- */

void k_timer_init(struct k_timer *timer, struct kernel *kernel, k_timer_fn *fn)
{
    *timer = (struct k_timer){ .kernel = kernel, .fn = fn };
}

static struct os_timer *os_timer_new(struct kernel *kernel)
{
    struct os_timer *timer = kernel->free_timers;
    if (timer != NULL) {
        kernel->free_timers = timer->free_next;
        return timer;
    }
    timer = k_zalloc(sizeof(*timer));
    timer->all_next = kernel->timers;
    kernel->timers = timer;
    return timer;
}

void os_timers_release(struct kernel *kernel)
{
    while (kernel->timers != NULL) {
        struct os_timer *timer = kernel->timers;
        kernel->timers = timer->all_next;
        os_timer_cancel(timer);
        free(timer);
    }
}

static struct os_timer *own_timer(struct k_timer *timer)
{
    struct os_timer *own = timer->private_data;
    if (own == NULL) {
        own = timer->private_data = os_timer_new(timer->kernel);
        own->timer = timer;
    }
    return own;
}

void k_timer_set(struct k_timer *timer, uint64_t at_ps)
{
    os_timer_set(os_cpu(timer->kernel), own_timer(timer), at_ps);
}

void k_timer_set_watchdog(struct k_timer *timer, uint64_t at_ps)
{
    set(os_cpu(timer->kernel), own_timer(timer), at_ps, sim_schedule_last);
}

void k_timer_cancel(struct k_timer *timer)
{
    if (timer->private_data != NULL)
        os_timer_cancel(timer->private_data);
}

bool k_timer_pending(const struct k_timer *timer)
{
    const struct os_timer *own = timer->private_data;
    return own != NULL && (own->list != NULL || sim_event_pending(&own->event));
}

void k_timer_release(struct k_timer *timer)
{
    struct os_timer *own = timer->private_data;
    if (own == NULL)
        return;
    os_timer_cancel(own);
    own->free_next = timer->kernel->free_timers;
    timer->kernel->free_timers = own;
    timer->private_data = NULL;
}
