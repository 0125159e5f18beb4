/*
 * The operating system of a host: logic/kapi.h on simulated cores. Made on demand by a workload
 * that needs one; its parameters are the group `os` of the platform file.
 *
 * Every CPU has an idle task and a run queue of threads (each a task of sim/engine/task.h). An interrupt
 * is taken by the task that runs on the CPU, at its next charge of time, on that task's stack, as
 * hardware does; an idle CPU is woken, after the exit latency of the C-state that it had reached.
 */
#ifndef MODELS_OS_OS_H
#define MODELS_OS_OS_H

#include "logic/kapi.h"
#include "logic/kcosts.h"
#include "models/base/payload.h"
#include "models/host/host.h"

struct os_params {
    struct k_costs costs;
    /* idle states: entered where the idle period is expected to last *_after, left in *_exit */
    sim_time c1_exit_ps, c1e_after_ps, c1e_exit_ps, c6_after_ps, c6_exit_ps;
    sim_time interrupt_ps;           /* root complex to the core's vector: APIC and ring */
    sim_time scheduler_tick_ps;      /* time slice of threads that share a CPU */
    uint32_t softirq_budget_packets; /* netdev_budget */
    sim_time softirq_budget_ps;      /* netdev_budget_usecs */
    uint32_t napi_weight;
};
extern const struct host_param_group os_param_group; /* `os`, into a struct os_params */
static inline const struct os_params *host_os_params(const struct host *host)
{
    return host_software_params(host);
}

/* The host is booted. One kernel a host. Its CPUs idle. params are copied (host_os_params()). */
struct kernel *kernel_new(struct host *host, const struct os_params *params);
/* The simulation does not run on afterwards: its tasks are in the midst of the kernel. */
void kernel_free(struct kernel *kernel);
struct host *kernel_host(struct kernel *kernel);

/* The function of this host with this requester ID; NULL: enumeration found none. */
struct k_pci_dev *os_pci_find(struct kernel *kernel, uint16_t id);

/* ---- For programs that touch cache lines themselves (STREAM, PageRank) ----------------------- */
/* Core and task of the code that runs now. Valid until it next sleeps or migrates. */
struct core *kernel_core(struct kernel *kernel);
struct sim_task *kernel_task(struct kernel *kernel);
/* Takes interrupts that are pending, and lets another thread run if the time slice is over: at
 * least every microsecond of what is done through kernel_core(). */
void kernel_poll(struct kernel *kernel);

/* ---- Payload that is checked (models/base/payload.h): no time, no traffic -------------------- */
/* As if the program had filled the buffer with bytes of a stream, from this tag on. */
void payload_fill(struct kernel *kernel, struct kaddr at, uint64_t tag, size_t bytes);
/* The buffer holds the stream from this tag on; false otherwise: with what lies at the first place
 * that differs, and what should. */
bool kernel_check(struct kernel *kernel, struct kaddr at, uint64_t tag, size_t bytes,
                  struct payload_difference *difference);

/* ---- Looking at it --------------------------------------------------------------------------- */
/* Time that the CPU was not idle since the statistics were cleared. */
sim_time kernel_busy_ps(const struct kernel *kernel, unsigned cpu);
void kernel_stats_clear(struct kernel *kernel);
struct os_stats { /* of one CPU */
    uint64_t hard_irqs, soft_irqs, polls, context_switches, wakeups, migrations, ksoftirqd_runs;
    sim_time busy_ps, soft_irq_ps;
};
extern const struct stat_desc os_stats_table[];
struct os_stats *kernel_cpu_stats(struct kernel *kernel, unsigned cpu);

#endif
