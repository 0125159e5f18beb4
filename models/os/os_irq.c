/*
 * Hard interrupts.
 *
 * Models: 256 vectors a CPU; a message that arrives while its vector is pending is the same
 *   interrupt (the request register has one bit a vector); handlers run with interrupts off, on
 *   the stack of whatever runs on the CPU, first come first served.
 * Does not model: priorities of vectors and tasks, spurious interrupts. An APIC ID is the CPU's
 *   number, its logical one a bit of eight (flat model).
 * Timing: due interrupt_ps after the message has reached the processors; then entry and return
 *   take hard_irq_cycles and the handler what it charges; irq_return_cycles behind it and its soft
 *   interrupts, before the interrupted thread goes on. An idle CPU first leaves its idle state.
 * Sources: Intel SDM 3, chapter 10; docs/sources.md#a6.
 */
#include "models/os/os_text.h"
#include "sim/engine/activity.h"

void os_due_update(struct os_cpu *cpu)
{
    sim_time due_ps = SIM_TIME_MAX;
    if (!cpu->in_hard) {
        if (cpu->pending_first != NULL)
            due_ps = cpu->pending_first->due_ps;
        if (cpu->fired.first != NULL)
            due_ps = SIM_MIN(due_ps, cpu->fired.first->at_ps);
    }
    cpu->due_ps = due_ps;
    if (SIM_UNLIKELY(cpu->pause != NULL))
        os_pause_until(cpu->pause, due_ps);
}

/* NULL: it has never had a handler. */
static struct os_vector *vector_find(const struct os_cpu *cpu, unsigned number)
{
    struct os_vector *block = cpu->vectors[number / OS_VECTORS_BLOCK];
    return block != NULL ? &block[number % OS_VECTORS_BLOCK] : NULL;
}

static struct os_vector *vector_get(struct os_cpu *cpu, unsigned number)
{
    struct os_vector **block = &cpu->vectors[number / OS_VECTORS_BLOCK];
    if (*block == NULL)
        *block = k_zalloc(OS_VECTORS_BLOCK * sizeof((*block)[0]));
    return &(*block)[number % OS_VECTORS_BLOCK];
}

void os_vectors_release(struct os_cpu *cpu)
{
    for (unsigned i = 0; i < SIM_N_ELEMENTS(cpu->vectors); i++)
        k_free(cpu->vectors[i]);
}

void os_interrupt_arrived(void *context, uint32_t destination, uint8_t number)
{
    struct kernel *kernel = context;
    struct os_cpu *cpu = destination < kernel->n_cpus ? &kernel->cpu[destination] : NULL;
    struct os_vector *vector = cpu != NULL ? vector_find(cpu, number) : NULL;
    if (vector == NULL || vector->handler == NULL) {
        k_warn(kernel, "interrupt for nobody");
        return;
    }
    if (vector->pending)
        return;
    vector->pending = true;
    vector->due_ps = sim_now(kernel->sim) + kernel->params.interrupt_ps;
    vector->next = NULL;
    *cpu->pending_last = vector;
    cpu->pending_last = &vector->next;
    os_due_update(cpu);
    os_kick_idle(cpu, vector->due_ps);
}

/* Accepts the first: from now on the same vector may become pending again. */
static struct os_vector *accept(struct os_cpu *cpu)
{
    struct os_vector *vector = cpu->pending_first;
    cpu->pending_first = vector->next;
    if (cpu->pending_first == NULL)
        cpu->pending_last = &cpu->pending_first;
    vector->pending = false;
    return vector;
}

/* One interrupt that is due; false: there is none. */
static bool take_one(struct k_thread *self)
{
    struct os_cpu *cpu = self->on;
    struct os_vector *vector = cpu->pending_first;
    const struct os_timer *timer = cpu->fired.first;
    sim_time vector_ps = vector != NULL ? vector->due_ps : SIM_TIME_MAX;
    sim_time timer_ps = timer != NULL ? timer->at_ps : SIM_TIME_MAX;
    if (SIM_MIN(vector_ps, timer_ps) > sim_task_now(self->task))
        return false;
    vector = vector_ps <= timer_ps ? accept(cpu) : NULL;
    k_irq_fn *handler = vector != NULL ? vector->handler : NULL;
    void *arg = vector != NULL ? vector->arg : NULL;
    cpu->stats.hard_irqs++;
    os_drain(self);
    os_run_text(self, K_TEXT_IRQ, self->kernel->params.costs.hard_irq_cycles);
    if (handler != NULL)
        handler(arg);
    else
        os_timer_interrupt(self);
    return true;
}

void os_interrupts_take(struct k_thread *self)
{
    struct os_cpu *cpu = self->on;
    struct sim_activity *activity = self->kernel->activity;
    const sim_time from_ps = sim_task_now(self->task);
    const unsigned account = k_account(self->kernel, 0);
    cpu->in_hard = true;
    os_due_update(cpu);
    while (take_one(self))
        ;
    if (SIM_UNLIKELY(activity != NULL))
        activity->interrupted(activity, self->kernel->name, cpu->idx, "interrupt", from_ps,
                              sim_task_now(self->task));
    cpu->in_hard = false;
    os_due_update(cpu);
    if (!cpu->in_soft && cpu->bh_off == 0) {
        if (cpu->soft_pending != 0)
            os_softirq_run(self);
        if (self->kernel->params.costs.irq_return_cycles > 0)
            os_run_text(self, K_TEXT_IRQ_RETURN, self->kernel->params.costs.irq_return_cycles);
    }
    os_drain(self); /* IRET is a serializing instruction */
    k_account(self->kernel, account);
}

bool os_vector_alloc(struct kernel *kernel, unsigned cpu_idx, k_irq_fn *handler, void *arg,
                     uint32_t *destination, uint8_t *vector)
{
    SIM_ASSERT(cpu_idx < kernel->n_cpus, "CPU %u of %u", cpu_idx, kernel->n_cpus);
    struct os_cpu *cpu = &kernel->cpu[cpu_idx];
    for (unsigned v = OS_FIRST_VECTOR; v <= OS_LAST_VECTOR; v++) {
        struct os_vector *candidate = vector_get(cpu, v);
        if (candidate->handler != NULL || candidate->pending)
            continue;
        candidate->handler = handler;
        candidate->arg = arg;
        *destination = cpu_idx;
        *vector = (uint8_t)v;
        return true;
    }
    return false;
}

static bool vector_is_free(const struct kernel *kernel, unsigned cpus, unsigned v)
{
    for (; cpus != 0; cpus &= cpus - 1) {
        const struct os_vector *vector = vector_find(&kernel->cpu[__builtin_ctz(cpus)], v);
        if (vector != NULL && (vector->handler != NULL || vector->pending))
            return false;
    }
    return true;
}

bool os_vector_alloc_all(struct kernel *kernel, unsigned cpus, k_irq_fn *handler, void *arg,
                         uint8_t *vector)
{
    for (unsigned v = OS_FIRST_VECTOR; v <= OS_LAST_VECTOR; v++) {
        if (!vector_is_free(kernel, cpus, v))
            continue;
        for (unsigned rest = cpus; rest != 0; rest &= rest - 1)
            *vector_get(&kernel->cpu[__builtin_ctz(rest)],
                        v) = (struct os_vector){ .handler = handler, .arg = arg };
        *vector = (uint8_t)v;
        return true;
    }
    return false;
}

bool os_vector_free(struct kernel *kernel, unsigned cpu_idx, uint8_t number)
{
    struct os_cpu *cpu = &kernel->cpu[cpu_idx];
    struct os_vector *vector = vector_get(cpu, number);
    const bool pending = vector->pending;
    if (pending) {
        struct os_vector **link = &cpu->pending_first;
        while (*link != vector)
            link = &(*link)->next;
        *link = vector->next;
        if (*link == NULL)
            cpu->pending_last = link;
        os_due_update(cpu);
    }
    *vector = (struct os_vector){ .handler = NULL };
    return pending;
}
