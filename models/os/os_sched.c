/*
 * Threads: who has the CPU, who waits; idle CPUs and their states.
 *
 * Models: a run queue a CPU; the thread that has had the least time is next (as CFS does, all with
 *   the same weight), a thread may keep the CPU for a time slice, one that has slept may have up to
 *   a slice more than its share; a woken one takes the CPU at once from one that has had more time
 *   by wakeup_granularity_us, if that is set. Threads stay on their CPU until they are moved; those
 *   that float are woken on an idle one of the socket if theirs is not. An idle CPU goes into the
 *   deepest state whose residency the mean of its last idle periods reaches.
 * Does not model: load balancing (threads that do not sleep are not moved), priorities, the timer
 *   as a bound of the predicted idle period, preemption within the kernel.
 * Timing: a switch to a thread takes context_switch_cycles, one to idle nothing; a wake-up takes
 *   wakeup_cycles of who wakes, and remote_wakeup_cycles more if the thread is another CPU's,
 *   which hears of it interrupt_ps later if it is idle (it watches a line: no handler runs).
 * Sources: docs/sources.md#a6; Linux 4.14, kernel/sched/fair.c and
 * drivers/cpuidle/governors/menu.c.
 */
#include <stdio.h>
#include <stdlib.h>

#include "models/os/os_internal.h"
#include "sim/engine/activity.h"

/* ---- Run queues ------------------------------------------------------------------------------ */

/* Brings the time that the CPU's thread has had up to date, by the clock of whoever asks. */
static void account(struct os_cpu *cpu, sim_time now_ps)
{
    struct k_thread *running = cpu->running;
    if (running == &cpu->idle || running->on != cpu || now_ps <= running->account_ps)
        return;
    running->vruntime_ps += now_ps - running->account_ps;
    running->account_ps = now_ps;
    sim_time least_ps = running->vruntime_ps;
    if (cpu->ready != NULL)
        least_ps = SIM_MIN(least_ps, cpu->ready->vruntime_ps);
    cpu->min_vruntime_ps = SIM_MAX(cpu->min_vruntime_ps, least_ps);
}
static void account_self(struct k_thread *self)
{
    account(self->on, sim_task_now(self->task));
}

/* Credit or debt go along to another CPU. */
static void rebase(struct k_thread *thread, struct os_cpu *to)
{
    account(to, k_now_ps(to->kernel));
    int64_t ahead_ps = (int64_t)(thread->vruntime_ps - thread->vruntime_of->min_vruntime_ps);
    int64_t vruntime_ps = (int64_t)to->min_vruntime_ps + ahead_ps;
    thread->vruntime_ps = (sim_time)SIM_MAX(vruntime_ps, 0);
    thread->vruntime_of = to;
}

static void enqueue(struct os_cpu *cpu, struct k_thread *thread)
{
    struct k_thread **link = &cpu->ready;
    if (thread->vruntime_of != cpu)
        rebase(thread, cpu);
    while (*link != NULL && (*link)->vruntime_ps <= thread->vruntime_ps)
        link = &(*link)->next;
    thread->next = *link;
    *link = thread;
    thread->state = OS_READY;
    if (SIM_UNLIKELY(cpu->pause != NULL))
        os_pause_within(cpu->pause);
}

static void dequeue(struct os_cpu *cpu, struct k_thread *thread)
{
    K_LIST_REMOVE(cpu->ready, thread);
}

/* ---- Switching ------------------------------------------------------------------------------- */

static void go_on(struct os_cpu *cpu, struct k_thread *thread, sim_time at_ps)
{
    thread->on = cpu;
    struct sim_activity *activity = cpu->kernel->activity;
    thread->run_since_ps = thread->account_ps = at_ps;
    if (SIM_UNLIKELY(activity != NULL))
        activity->runs(activity, cpu->kernel->name, cpu->idx,
                       thread != &cpu->idle ? thread->name : NULL, at_ps);
    if (thread->started) {
        sim_task_resume(thread->task, at_ps);
    } else {
        thread->started = true;
        sim_task_start(thread->task, at_ps);
    }
}

/*
 * The CPU goes to the next thread, or to idle. self is no longer OS_RUNNING; returns when it is
 * again, unless it is dead. While the switch takes its time, self may be woken, and may even be
 * resumed on another CPU: its task remembers that until it suspends itself.
 */
static void leave(struct k_thread *self)
{
    struct os_cpu *cpu = self->on;
    struct k_thread *next = cpu->ready != NULL ? cpu->ready : &cpu->idle;
    os_account_settle(cpu, self->account);
    cpu->running = next;
    cpu->resched = false;
    /* It is in no queue from here on, and others run before it goes on. */
    next->state = OS_RUNNING;
    self->on = NULL;
    if (next != &cpu->idle) {
        cpu->ready = next->next;
        cpu->stats.context_switches++;
        sim_task_charge(self->task,
                        cpu->kernel->params.costs.context_switch_cycles * cpu->kernel->cycle_ps);
    }
    sim_task_sync(self->task);
    go_on(cpu, next, sim_task_now(self->task));
    if (self->state == OS_DEAD)
        return;
    if (self == &cpu->idle)
        sim_task_waits_for(self->task, "", NULL);
    else if (sim_task_head(self->task)->waits_for == NULL)
        sim_task_waits_for(self->task, "its turn on a CPU", NULL);
    sim_task_suspend(self->task);
}

static void may_sleep(const struct k_thread *self)
{
    const struct os_cpu *cpu = self->on;
    SIM_ASSERT(!cpu->in_hard && !cpu->in_soft && cpu->bh_off == 0 && self != &cpu->idle,
               "%s waits in an interrupt", self->name);
}

static void move(struct k_thread *self)
{
    const struct k_costs *costs = &self->kernel->params.costs;
    os_charge_cycles(self, costs->wakeup_cycles + costs->remote_wakeup_cycles);
    sim_task_sync(self->task);
    if (self->cpu == self->on)
        return; /* and back, meanwhile */
    self->on->stats.migrations++;
    enqueue(self->cpu, self);
    os_kick_idle(self->cpu, sim_task_now(self->task) + self->kernel->params.interrupt_ps);
    leave(self);
}

void os_preempt(struct k_thread *self)
{
    struct os_cpu *cpu = self->on;
    if (cpu->in_hard || cpu->in_soft || cpu->bh_off != 0 || self == &cpu->idle)
        return;
    if (SIM_UNLIKELY(self->cpu != cpu)) {
        account_self(self);
        move(self);
        return;
    }
    if (!os_need_resched(self))
        return;
    account_self(self);
    if (cpu->ready->vruntime_ps >= self->vruntime_ps)
        return;
    enqueue(cpu, self);
    leave(self);
}

void os_block(struct k_thread *self)
{
    sim_task_sync(self->task); /* who wakes it until now does */
    if (self->state == OS_RUNNING)
        return;
    account_self(self);
    leave(self);
}

void k_yield(struct kernel *kernel)
{
    struct k_thread *self = os_self(kernel);
    struct os_cpu *cpu = self->on;
    may_sleep(self);
    os_interrupts_of(self);
    if (self->cpu != cpu) {
        os_preempt(self);
        return;
    }
    if (cpu->ready == NULL)
        return;
    account_self(self);
    self->vruntime_ps = SIM_MAX(self->vruntime_ps, cpu->ready->vruntime_ps);
    enqueue(cpu, self);
    leave(self);
}

/* ---- Waking ---------------------------------------------------------------------------------- */

/* As check_preempt_wakeup() does: a thread that is due long before the one that runs need not wait
 * for the end of its slice. */
static void preempt_woken(struct os_cpu *cpu, const struct k_thread *thread)
{
    const sim_time lead_ps = cpu->kernel->params.wakeup_granularity_ps;
    const struct k_thread *running = cpu->running;
    if (lead_ps > 0 && running != &cpu->idle &&
        running->vruntime_ps > thread->vruntime_ps + lead_ps)
        cpu->resched = true;
}

void os_wake_thread(struct k_thread *thread)
{
    struct os_cpu *cpu = thread->cpu;
    sim_time credit_ps = cpu->kernel->params.scheduler_tick_ps;
    if (thread->state != OS_BLOCKED)
        return;
    if (thread->on != NULL) { /* it has not even left the CPU */
        thread->state = OS_RUNNING;
        return;
    }
    account(cpu, k_now_ps(cpu->kernel));
    if (thread->vruntime_of != cpu)
        rebase(thread, cpu);
    if (cpu->min_vruntime_ps > credit_ps)
        thread->vruntime_ps = SIM_MAX(thread->vruntime_ps, cpu->min_vruntime_ps - credit_ps);
    enqueue(cpu, thread);
    preempt_woken(cpu, thread);
    os_kick_idle(cpu, k_now_ps(cpu->kernel) + cpu->kernel->params.interrupt_ps);
}

/* Nothing runs or wants to run there but interrupts; ksoftirqd is a thread. */
static bool is_idle(const struct os_cpu *cpu)
{
    return cpu->running == &cpu->idle && cpu->ready == NULL && !cpu->isolated;
}

/* Chooses the CPU on which a thread that floats will wake up. Who wakes it has synchronised, as he
 * looks at other CPUs. */
static void choose_cpu(struct k_thread *thread)
{
    struct kernel *kernel = thread->kernel;
    struct os_cpu *from = thread->cpu;
    if (thread->state != OS_BLOCKED || thread->on != NULL || is_idle(from))
        return;
    for (unsigned i = 1; i < kernel->n_cpus; i++) {
        struct os_cpu *cpu = &kernel->cpu[(from->idx + i) % kernel->n_cpus];
        if (cpu->socket != from->socket || !is_idle(cpu))
            continue;
        from->n_threads--;
        cpu->n_threads++;
        from->stats.migrations++;
        thread->cpu = cpu;
        return;
    }
}

/* What it costs self to wake the thread; then global time is that of self if the thread is another
 * CPU's. */
void os_charge_wake(struct k_thread *self, const struct k_thread *thread)
{
    const struct k_costs *costs = &self->kernel->params.costs;
    bool remote = thread->cpu != self->on;
    self->on->stats.wakeups++;
    os_charge_cycles(self, costs->wakeup_cycles + (remote ? costs->remote_wakeup_cycles : 0));
    if (remote)
        sim_task_sync(self->task);
}

void os_wake_charged(struct k_thread *self, struct k_thread *thread)
{
    os_charge_wake(self, thread);
    os_wake_thread(thread);
}

static void waiter_add(struct k_wait_queue *queue, struct k_waiter *waiter)
{
    struct k_waiter *first = queue->first;
    waiter->queue = queue;
    if (first == NULL) {
        queue->first = waiter->next = waiter->prev = waiter;
        return;
    }
    waiter->next = first;
    waiter->prev = first->prev;
    first->prev->next = waiter;
    first->prev = waiter;
}

static void waiter_remove(struct k_waiter *waiter)
{
    struct k_wait_queue *queue = waiter->queue;
    waiter->queue = NULL;
    if (waiter->next == waiter) {
        queue->first = NULL;
        return;
    }
    waiter->next->prev = waiter->prev;
    waiter->prev->next = waiter->next;
    if (queue->first == waiter)
        queue->first = waiter->next;
}

bool k_wait_named(struct kernel *kernel, struct k_wait_queue *queue, uint64_t until_ps,
                  const char *what, const char *function)
{
    struct k_thread *self = os_self(kernel);
    struct k_waiter waiter = { .thread = self };
    may_sleep(self);
    if (until_ps <= sim_task_now(self->task))
        return false;
    waiter_add(queue, &waiter);
    self->state = OS_BLOCKED;
    if (until_ps != UINT64_MAX)
        os_timer_set(self->on, &self->timer, until_ps);
    sim_task_waits_for(self->task, what, function);
    os_block(self);
    sim_task_waits_for(self->task, NULL, NULL);
    os_timer_cancel(&self->timer);
    if (waiter.queue == NULL)
        return true;
    waiter_remove(&waiter);
    return false;
}

void k_wake(struct kernel *kernel, struct k_wait_queue *queue)
{
    struct k_thread *self = os_self_or_null(kernel);
    struct k_wait_queue those = { queue->first };
    struct k_waiter *waiter = those.first;
    if (waiter == NULL)
        return;
    /* Who waits again while the others are woken is not woken again. */
    do {
        waiter->queue = &those;
        waiter = waiter->next;
    } while (waiter != those.first);
    queue->first = NULL;
    while ((waiter = those.first) != NULL) {
        if (SIM_UNLIKELY(waiter->thread->floats)) {
            if (self != NULL)
                sim_task_sync(self->task);
            if (those.first != waiter)
                continue;
            choose_cpu(waiter->thread);
        }
        if (self != NULL)
            os_charge_wake(self, waiter->thread);
        if (those.first != waiter)
            continue; /* its time was over meanwhile */
        waiter_remove(waiter);
        os_wake_thread(waiter->thread);
    }
}

bool k_has_waiters(const struct k_wait_queue *queue)
{
    return queue->first != NULL;
}

void k_sleep(struct kernel *kernel, uint64_t ps)
{
    struct k_thread *self = os_self(kernel);
    may_sleep(self);
    self->state = OS_BLOCKED;
    os_timer_set(self->on, &self->timer, sim_task_now(self->task) + ps);
    os_block(self);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static void thread_main(struct sim_task *task, void *arg)
{
    struct k_thread *self = arg;
    self->body(self->arg);
    may_sleep(self);
    sim_task_sync(task);
    account_self(self);
    self->cpu->n_threads--;
    self->state = OS_DEAD;
    leave(self);
    *self->all_link = self->all_next;
    if (self->all_next != NULL)
        self->all_next->all_link = self->all_link;
    sim_task_set_owner(task, NULL);
    free(self);
}

static struct os_cpu *least_loaded(struct kernel *kernel)
{
    struct os_cpu *best = &kernel->cpu[0];
    for (unsigned c = 1; c < kernel->n_cpus; c++)
        if (!kernel->cpu[c].isolated &&
            (best->isolated || kernel->cpu[c].n_threads < best->n_threads))
            best = &kernel->cpu[c];
    return best;
}

struct k_thread *os_thread_new(struct os_cpu *cpu, const char *name, k_thread_fn *body, void *arg)
{
    struct kernel *kernel = cpu->kernel;
    struct k_thread *thread = k_zalloc(sizeof(*thread));
    char task_name[96];
    snprintf(thread->name, sizeof(thread->name), "%s", name);
    snprintf(task_name, sizeof(task_name), "%s.%s", kernel->name, name);
    thread->kernel = kernel;
    thread->cpu = cpu;
    thread->body = body;
    thread->arg = arg;
    thread->state = OS_BLOCKED;
    account(cpu, k_now_ps(kernel));
    thread->vruntime_ps = cpu->min_vruntime_ps;
    thread->vruntime_of = cpu;
    thread->timer.thread = thread;
    thread->all_next = kernel->threads;
    thread->all_link = &kernel->threads;
    if (thread->all_next != NULL)
        thread->all_next->all_link = &thread->all_next;
    kernel->threads = thread;
    thread->task = sim_task_new(kernel->sim, task_name, OS_STACK_BYTES, thread_main, thread);
    sim_task_set_owner(thread->task, thread);
    return thread;
}

struct k_thread *k_thread_new(struct kernel *kernel, const char *name, int cpu, k_thread_fn *body,
                              void *arg)
{
    struct k_thread *self = os_self_or_null(kernel);
    SIM_ASSERT(cpu == K_CPU_ANY || (unsigned)cpu < kernel->n_cpus, "CPU %d of %u", cpu,
               kernel->n_cpus);
    struct os_cpu *on = cpu == K_CPU_ANY ? least_loaded(kernel) : &kernel->cpu[cpu];
    struct k_thread *thread = os_thread_new(on, name, body, arg);
    on->n_threads++;
    if (self != NULL)
        os_charge_wake(self, thread);
    os_wake_thread(thread);
    return thread;
}

struct k_thread *k_thread_self(struct kernel *kernel)
{
    return os_self(kernel);
}

void k_thread_float(struct k_thread *thread)
{
    thread->floats = true;
}

unsigned k_thread_cpu(const struct k_thread *thread)
{
    return thread->cpu->idx;
}

void k_thread_set_cpu(struct k_thread *thread, unsigned cpu_idx)
{
    struct kernel *kernel = thread->kernel;
    struct k_thread *self = os_self_or_null(kernel);
    SIM_ASSERT(cpu_idx < kernel->n_cpus, "CPU %u of %u", cpu_idx, kernel->n_cpus);
    struct os_cpu *to = &kernel->cpu[cpu_idx];
    if (self != NULL && self != thread)
        sim_task_sync(self->task);
    if (thread->cpu == to)
        return;
    struct os_cpu *from = thread->cpu;
    from->n_threads--;
    to->n_threads++;
    thread->cpu = to;
    if (thread->state == OS_READY) {
        dequeue(from, thread);
        from->stats.migrations++;
        enqueue(to, thread);
        os_kick_idle(to, k_now_ps(kernel) + kernel->params.interrupt_ps);
    } else if (thread == self) {
        may_sleep(self);
        os_preempt(self);
    }
}

/* ---- Idle CPUs ------------------------------------------------------------------------------- */

void os_kick_idle(struct os_cpu *cpu, sim_time at_ps)
{
    if (cpu->in_guest != NULL) /* vm_cpu.c */
        sim_task_resume(cpu->in_guest, SIM_MAX(at_ps, sim_now(cpu->kernel->sim)));
    if (!cpu->asleep)
        return;
    cpu->asleep = false;
    sim_task_resume(cpu->idle.task, SIM_MAX(at_ps, sim_now(cpu->kernel->sim)) + cpu->exit_ps);
}

/* The deepest state that the idle period is expected to be worth. */
static sim_time choose_exit_ps(const struct os_cpu *cpu)
{
    const struct os_params *params = &cpu->kernel->params;
    sim_time expected_ps = cpu->period_sum_ps / OS_IDLE_PERIODS;
    if (expected_ps >= params->c6_after_ps)
        return params->c6_exit_ps;
    if (expected_ps >= params->c1e_after_ps)
        return params->c1e_exit_ps;
    return params->c1_exit_ps;
}

/* A period counts for at most twice what makes the deepest state worth it: a single long one does
 * not hide many short ones. */
static void remember_period(struct os_cpu *cpu, sim_time period_ps)
{
    sim_time most_ps = 2 * cpu->kernel->params.c6_after_ps;
    sim_time *oldest = &cpu->period_ps[cpu->next_period++ % OS_IDLE_PERIODS];
    period_ps = SIM_MIN(period_ps, most_ps);
    cpu->period_sum_ps += period_ps - *oldest;
    *oldest = period_ps;
}

static void idle_sleep(struct os_cpu *cpu)
{
    struct sim_task *task = cpu->idle.task;
    sim_task_sync(task);
    sim_time since_ps = sim_task_now(task);
    if (cpu->ready != NULL || cpu->due_ps <= since_ps)
        return;
    cpu->exit_ps = choose_exit_ps(cpu);
    cpu->idle_since_ps = since_ps;
    cpu->asleep = cpu->idling = true;
    if (cpu->due_ps != SIM_TIME_MAX)
        os_kick_idle(cpu, cpu->due_ps);
    sim_task_waits_for(task, "", NULL); /* for ever, if nothing is to be done */
    sim_task_suspend(task);
    cpu->idling = false;
    sim_time now_ps = sim_task_now(task);
    remember_period(cpu, now_ps - cpu->exit_ps - since_ps);
    cpu->idle_ps += now_ps - SIM_MAX(since_ps, cpu->kernel->cleared_ps);
}

static void idle_main(struct sim_task *task, void *arg)
{
    struct k_thread *self = arg;
    struct os_cpu *cpu = self->on;
    (void)task;
    for (;;) {
        os_interrupts_of(self);
        if (cpu->ready != NULL)
            leave(self);
        else
            idle_sleep(cpu);
    }
}

void os_sched_init(struct os_cpu *cpu)
{
    struct kernel *kernel = cpu->kernel;
    struct k_thread *idle = &cpu->idle;
    char name[96];
    snprintf(idle->name, sizeof(idle->name), "idle/%u", cpu->idx);
    snprintf(name, sizeof(name), "%s.%s", kernel->name, idle->name);
    idle->kernel = kernel;
    idle->cpu = idle->on = cpu;
    idle->state = OS_RUNNING;
    idle->started = true;
    idle->task = sim_task_new(kernel->sim, name, OS_STACK_BYTES, idle_main, idle);
    sim_task_set_owner(idle->task, idle);
    cpu->running = idle;
    sim_task_start(idle->task, sim_now(kernel->sim));
}
