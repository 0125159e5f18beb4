/*
 * Threads that poll memory.
 *
 * Models: looks at a line every period, from the call on; the one that finds other bytes there is the first
 *   at or after the time at which a device's write was performed.
 * Does not model: misses of looks between the loss of the line and the performance of the write.
 * Timing: a multiple of the period. The CPU is busy; interrupts and other threads come in once a
 *   microsecond.
 */
#include <string.h>

#include "models/os/os_memory.h"

#define BREAK_PS SIM_PS_PER_US /* between two times that interrupts and other threads come in */

struct spin {
    struct physmem_watch watch;
    struct sim_event event;
    struct sim *sim;
    struct sim_task *task;
    bool over;
};

static void end(struct spin *spin)
{
    if (!spin->over)
        sim_task_resume(spin->task, sim_now(spin->sim));
    spin->over = true;
}

static void written(struct physmem_watch *watch)
{
    end(SIM_CONTAINER(watch, struct spin, watch));
}

static void break_comes(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    end(SIM_CONTAINER(event, struct spin, event));
}

/* Until the line is written, or at_ps. */
static void sleep_until(struct k_thread *self, struct hpa hpa, uint64_t bytes, sim_time at_ps)
{
    struct kernel *kernel = self->kernel;
    struct spin spin = { .watch = { .hpa = hpa, .bytes = bytes, .written = written },
                         .sim = kernel->sim,
                         .task = self->task };
    physmem_watch_add(kernel->memory->mem, &spin.watch);
    sim_event_init(&spin.event, break_comes);
    sim_schedule(kernel->sim, &spin.event, at_ps);
    sim_task_suspend(self->task);
    sim_cancel(kernel->sim, &spin.event);
    physmem_watch_remove(kernel->memory->mem, &spin.watch);
}

void k_spin(struct kernel *kernel, struct kaddr at, const void *seen, size_t bytes,
            uint64_t period_ps, uint64_t until_ps)
{
    struct k_thread *self = os_self(kernel);
    SIM_ASSERT(period_ps > 0 && at.v % LINE_BYTES + bytes <= LINE_BYTES, "%zu bytes at %#llx",
               bytes, (unsigned long long)at.v);
    for (;;) {
        const struct hpa hpa = os_hpa(kernel->memory, at);
        sim_task_sync(self->task);
        const sim_time now_ps = sim_task_now(self->task);
        const uint8_t *there = physmem_bytes(kernel->memory->mem, hpa);
        if (now_ps >= until_ps || memcmp(there, seen, bytes) != 0)
            return;
        sleep_until(self, hpa, bytes, SIM_MIN(until_ps, now_ps + BREAK_PS));
        const sim_time looks = (sim_now(kernel->sim) - now_ps + period_ps - 1) / period_ps;
        sim_task_charge_until(self->task, now_ps + looks * period_ps);
        os_interrupts_of(self);
        os_preempt(self);
        self = os_self(kernel);
    }
}
