/*
 * struct kernel and its CPUs, for models/os/ only.
 *
 * Invariants:
 *   - Of a CPU's threads at most one is `running`; its task, or that of the thread before it while
 *     the switch takes its time, is the only one that charges time on the CPU.
 *   - A thread is in a run queue exactly while it is READY.
 *   - due_ps is the time of the first interrupt that the CPU knows of and may take, SIM_TIME_MAX if
 *     there is none: one comparison with the task's clock at each charge.
 */
#ifndef MODELS_OS_OS_INTERNAL_H
#define MODELS_OS_OS_INTERNAL_H

#include "models/os/os.h"

#define OS_N_VECTORS      256u
#define OS_VECTORS_BLOCK  16u
#define OS_FIRST_VECTOR   0x30u /* below: exceptions and the like */
#define OS_LAST_VECTOR    0xeeu /* above: the kernel's own */
#define OS_IDLE_PERIODS   8u    /* that the idle governor looks back on */
#define OS_NAME_BYTES     32u
#define OS_WARNINGS       64u
#define OS_STACK_BYTES    (128u * 1024u) /* a thread, soft and hard interrupts on top of it */
#define OS_SOFTIRQ_ROUNDS 10u            /* MAX_SOFTIRQ_RESTART */

struct os_memory; /* os_memory.c: pages, caches */
struct os_pci;    /* os_pci.c: functions, drivers, interrupts of devices */
struct os_text;   /* os_text.c: where pieces of software are */

enum os_thread_state {
    OS_RUNNING, /* on a CPU */
    OS_READY,   /* in the run queue of its CPU */
    OS_BLOCKED, /* until woken */
    OS_DEAD,
};

/* By at_ps, then first in first out. */
struct os_timer_list {
    struct os_timer *first, *last;
};

/* A timer of the kernel: what k_timer and sleeping threads have of one. */
struct os_timer {
    struct sim_event event; /* pending until interrupt_ps before it is due at most */
    sim_time at_ps;
    struct os_cpu *cpu;         /* that armed it */
    struct os_timer_list *list; /* that it is in, or NULL */
    struct os_timer *next, *prev;
    struct k_timer *timer;     /* whose function runs in a soft interrupt, or NULL: */
    struct k_thread *thread;   /* this one is woken in the hard interrupt */
    struct os_timer *all_next; /* of the kernel */
    struct os_timer *free_next;
};

struct k_waiter {
    struct k_thread *thread;
    struct k_wait_queue *queue;   /* NULL: woken */
    struct k_waiter *next, *prev; /* a ring */
};

struct k_thread {
    struct kernel *kernel;
    struct sim_task *task;
    struct os_cpu *cpu; /* whose run queue it belongs to */
    struct os_cpu *on;  /* that it has now, or NULL; not `cpu` where it is to move */
    enum os_thread_state state;
    bool started;
    bool floats;          /* k_thread_float() */
    uint8_t account;      /* k_account() */
    sim_time vruntime_ps; /* CPU time, comparable to that of the other threads of: */
    struct os_cpu *vruntime_of;
    sim_time account_ps;   /* its clock when vruntime was last brought up to date */
    sim_time run_since_ps; /* since when it has the CPU without a break */
    struct k_thread *next; /* in the run queue */
    struct os_timer timer; /* of k_sleep() and k_wait() */
    k_thread_fn *body;
    void *arg;
    char name[OS_NAME_BYTES];
    struct k_thread *all_next, **all_link; /* of the kernel */
};

struct os_vector {
    k_irq_fn *handler; /* NULL: free */
    void *arg;
    sim_time due_ps;
    bool pending;
    struct os_vector *next; /* that are pending, in the order of due_ps */
};

enum { OS_SOFT_TIMER = 1u, OS_SOFT_NET = 2u };

struct os_cpu {
    /* read at every charge */
    sim_time due_ps;
    struct kernel *kernel;
    struct core *core;
    struct k_thread *running;
    unsigned idx, node, socket;
    sim_time mmio_done_ps; /* the root port has the last register write */

    /* interrupts */
    bool in_hard, in_soft; /* in_hard: no other interrupt is taken */
    unsigned bh_off;       /* k_bh_disable() less k_bh_enable() */
    unsigned soft_pending; /* OS_SOFT_* */
    struct os_vector *pending_first, **pending_last;
    struct os_timer_list fired;   /* timers that interrupt at at_ps */
    struct os_timer_list expired; /* those that wait for their soft interrupt */
    struct k_napi *napi_first, **napi_last;
    struct k_thread *ksoftirqd;
    struct os_pause *pause;    /* of the thread that runs, in os_spin.c; or NULL */
    struct sim_task *in_guest; /* of the thread that lets a guest run here, while it does */

    /* threads */
    struct k_thread idle;
    struct k_thread *ready; /* by vruntime, first in first out among equals */
    bool resched;           /* who runs has had its turn: the next place to give way is one */
    unsigned n_threads;     /* whose CPU it is, the kernel's own not counted */
    bool isolated;          /* a guest's: only threads that ask for it */
    sim_time min_vruntime_ps;
    struct k_thread *worker;
    bool worker_parked; /* it waits for work, and nobody is waking it yet */
    struct k_work *work_first, **work_last;

    /* idling */
    bool asleep;      /* the idle task waits for something to do */
    bool idling;      /* from idle_since_ps on, exit latency included */
    sim_time exit_ps; /* of the idle state it is in */
    sim_time idle_since_ps, idle_ps;
    sim_time period_ps[OS_IDLE_PERIODS], period_sum_ps;
    unsigned next_period;

    struct os_stats stats;
    struct numa_private_count counted; /* of the core, when it was last asked for */
    struct numa_private_count account[K_ACCOUNTS];
    sim_time soft_since_ps;
    struct os_vector *vectors[OS_N_VECTORS / OS_VECTORS_BLOCK]; /* NULL: none of them was used */
};

/* Where a guest is (vm.c): its CPUs, its memory. The addresses that its software has are
 * guest-physical. */
struct os_guest {
    const char *name;
    unsigned first_core, n_cpus; /* of the host */
    struct physmem *space;       /* which addresses exist and which are free; no bytes */
    const struct hpa *backing;   /* by guest-physical address / OS_HUGE_BYTES; 0: nothing there */
    uint64_t n_backing;
    uint64_t low_bytes, high_bytes; /* of its memory, from 0 and from 4 GiB */
    /* What its host does about a timer's interrupt: while it runs, and when the CPU has halted. */
    uint32_t timer_cycles, timer_halted_cycles;
    /* One of its CPUs is about to touch a guest-physical address: charges its task what the
     * translation takes. */
    void (*touch)(const struct os_guest *guest, unsigned cpu, struct core *core,
                  struct sim_task *task, uint64_t address);
};
#define OS_HUGE_BYTES (UINT64_C(1) << 21)

struct kernel {
    struct sim *sim;
    struct host *host;            /* whose cores it runs on */
    const struct os_guest *guest; /* NULL: it is the host's own */
    const char *name;
    struct sim_activity *activity; /* NULL: nobody listens */
    struct os_params params;
    sim_time cycle_ps;
    unsigned n_cpus, n_nodes;
    sim_time cleared_ps; /* when the statistics were */
    struct k_thread *threads;
    struct os_timer *timers, *free_timers;
    struct os_memory *memory;
    struct os_pci *pci;
    struct os_text *text;            /* NULL: instructions cost no time to fetch */
    const char *warned[OS_WARNINGS]; /* the formats of k_warn() so far */
    unsigned n_warned;
    struct os_cpu cpu[];
};

/* The thread that runs now, NULL outside of the kernel's threads. */
static inline struct k_thread *os_self_or_null(const struct kernel *kernel)
{
    struct sim_task *task = sim_task_current(kernel->sim);
    struct k_thread *self = task != NULL ? sim_task_owner(task) : NULL;
    return self != NULL && self->kernel == kernel ? self : NULL;
}
static inline struct k_thread *os_self(const struct kernel *kernel)
{
    return sim_task_owner(sim_task_current(kernel->sim));
}
static inline struct os_cpu *os_cpu(const struct kernel *kernel)
{
    return os_self(kernel)->on;
}

/* Waits until the root port has the CPU's last write of a register. Loads from and stores to
 * uncached memory stay in order, so the next access of a register begins no earlier. */
static inline void os_registers_written(struct k_thread *self)
{
    sim_task_charge_until(self->task, self->on->mmio_done_ps);
}
/* The same for all stores before, which leave the store buffer in order: what fences, locked
 * operations, interrupts and serializing instructions (IRET) wait for (docs/sources.md#a4). */
static inline void os_drain(struct k_thread *self)
{
    core_fence(self->on->core, self->task);
    os_registers_written(self);
}

/* ---- os.c ------------------------------------------------------------------------------------ */
/* A guest's kernel; guest outlives it. */
struct kernel *os_guest_new(struct host *host, const struct os_params *params,
                            const struct os_guest *guest);
/* Charges computation; interrupts come in at their time. */
void os_charge(struct k_thread *self, sim_time ps);
static inline void os_charge_cycles(struct k_thread *self, uint64_t cycles)
{
    os_charge(self, cycles * self->kernel->cycle_ps);
}

/* ---- os_spin.c ------------------------------------------------------------------------------- */
struct os_pause;
/* Ends the pause at at_ps, or when that is over; unless it ends before. */
void os_pause_until(struct os_pause *pause, sim_time at_ps);
/* A thread has become ready on the CPU of the pause. */
void os_pause_within(struct os_pause *pause);
/* Computes for up to `ps`, but not beyond the time at which an interrupt is due. Returns the time
 * that it has computed for. Not in a hard interrupt. */
sim_time os_compute_long(struct k_thread *self, sim_time ps);

/* ---- os_irq.c -------------------------------------------------------------------------------- */
/* Takes the interrupts that are due, and what follows from them. */
void os_interrupts_take(struct k_thread *self);
/* To be called after time was charged by other means than os_charge(). */
static inline void os_interrupts_of(struct k_thread *self)
{
    if (SIM_UNLIKELY(sim_task_now(self->task) >= self->on->due_ps))
        os_interrupts_take(self);
}
static inline void os_interrupts(struct kernel *kernel)
{
    os_interrupts_of(os_self(kernel));
}
/* A vector of the CPU for an interrupt: where a message has to go. False: none is left. */
bool os_vector_alloc(struct kernel *kernel, unsigned cpu, k_irq_fn *handler, void *arg,
                     uint32_t *destination, uint8_t *vector);
/* The same one of each CPU in the mask, of CPUs 0 to 7. */
bool os_vector_alloc_all(struct kernel *kernel, unsigned cpus, k_irq_fn *handler, void *arg,
                         uint8_t *vector);
/* What is pending is dropped. True: something was. */
bool os_vector_free(struct kernel *kernel, unsigned cpu, uint8_t vector);
void os_vectors_release(struct os_cpu *cpu);
/* root_complex_host.interrupt */
void os_interrupt_arrived(void *context, uint32_t destination, uint8_t vector);
/* due_ps after one of its sources has changed. */
void os_due_update(struct os_cpu *cpu);

/* ---- os_account.c ---------------------------------------------------------------------------- */
/* What the core has counted since the last call was the account's. */
void os_account_settle(struct os_cpu *cpu, unsigned account);

/* ---- os_softirq.c ---------------------------------------------------------------------------- */
/* At the end of a hard interrupt, or when soft interrupts are allowed again: runs what is pending,
 * unless ksoftirqd is at it. */
void os_softirq_run(struct k_thread *self);

/* ---- os_timer.c ------------------------------------------------------------------------------ */
/* Armed already: moved. */
void os_timer_set(struct os_cpu *cpu, struct os_timer *timer, sim_time at_ps);
void os_timer_cancel(struct os_timer *timer);
/* What the timer interrupt does with timers that are due: wakes threads, leaves the others to the
 * soft interrupt. */
void os_timer_interrupt(struct k_thread *self);
/* The soft interrupt. */
void os_timer_softirq(struct k_thread *self);
void os_timers_release(struct kernel *kernel);

/* ---- os_sched.c ------------------------------------------------------------------------------ */
void os_sched_init(struct os_cpu *cpu);
/* Blocked until it is woken for the first time. */
struct k_thread *os_thread_new(struct os_cpu *cpu, const char *name, k_thread_fn *body, void *arg);
/* A thread that waits for the CPU may have it: its time slice is over, or it is the idle task. */
static inline bool os_need_resched(const struct k_thread *self)
{
    const struct os_cpu *cpu = self->on;
    return cpu->ready != NULL && (self == &cpu->idle || cpu->resched ||
                                  sim_task_now(self->task) - self->run_since_ps >=
                                      self->kernel->params.scheduler_tick_ps);
}
/* A place where another thread may go on instead; none within interrupts. */
void os_preempt(struct k_thread *self);
/* Gives the CPU away until woken; self->state is OS_BLOCKED, or OS_RUNNING if that has happened
 * already. */
void os_block(struct k_thread *self);
/* The same, until os_wake_thread(). */
static inline void os_park(struct k_thread *self)
{
    self->state = OS_BLOCKED;
    sim_task_waits_for(self->task, "", NULL); /* for something to do */
    os_block(self);
    sim_task_waits_for(self->task, NULL, NULL);
}
/* Makes a blocked thread ready; without charge. */
void os_wake_thread(struct k_thread *thread);
/* What that costs self, which synchronises if the thread is another CPU's: others may wake the
 * thread meanwhile. */
void os_charge_wake(struct k_thread *self, const struct k_thread *thread);
/* Both, for a thread that only self wakes. */
void os_wake_charged(struct k_thread *self, struct k_thread *thread);
/* If the CPU is idle: it has something to do from at_ps on. */
void os_kick_idle(struct os_cpu *cpu, sim_time at_ps);

#endif
