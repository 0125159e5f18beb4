/*
 * The operating system of a host: logic/kapi.h on simulated cores. Made on demand by a workload
 * that needs one; its parameters are the group `os` of the platform file.
 *
 * Every CPU has an idle task and a run queue of threads (each a task of sim/engine/task.h). An
 * interrupt is taken by the task that runs on the CPU, at its next charge of time, on that task's
 * stack, as hardware does; an idle CPU is woken, after the exit latency of the C-state that it had
 * reached.
 */
#ifndef MODELS_OS_OS_H
#define MODELS_OS_OS_H

#include "logic/kapi.h"
#include "logic/kcosts.h"
#include "models/base/payload.h"
#include "models/host/host.h"

/* When translations of what is unmapped are invalidated. */
enum os_iommu_policy { OS_IOMMU_STRICT, OS_IOMMU_LAZY };

struct os_params {
    struct k_costs costs;
    int iommu_policy;
    bool iommu_superpages;
    /* idle states: entered where the idle period is expected to last *_after, left in *_exit */
    sim_time c1_exit_ps, c1e_after_ps, c1e_exit_ps, c6_after_ps, c6_exit_ps;
    sim_time interrupt_ps;           /* root complex to the core's vector: APIC and ring */
    sim_time scheduler_tick_ps;      /* time slice of threads that share a CPU */
    sim_time wakeup_granularity_ps;  /* a lead that a woken thread does not wait for; 0: it waits */
    uint32_t softirq_budget_packets; /* netdev_budget */
    sim_time softirq_budget_ps;      /* netdev_budget_usecs */
    uint32_t napi_weight;
    bool softirq_yields; /* to threads, and to ksoftirqd */
    uint32_t text_pct;   /* of the lines of logic/ktext.h */
    uint32_t text_run_lines;
};
extern const struct host_param_group os_param_group; /* `os`, into a struct os_params */
static inline const struct os_params *host_os_params(const struct host *host)
{
    return host_software_params(host);
}

/* Makes the kernel of a booted host, one per host; its CPUs idle. Copies `params`
 * (host_os_params()). os_free() frees it. */
struct kernel *os_new(struct host *host, const struct os_params *params);
/* Frees the kernel. The simulation must not run afterwards: its tasks are inside the kernel. */
void os_free(struct kernel *kernel);
struct host *os_host(struct kernel *kernel);

/* Returns the function of this host with requester ID `id`; NULL if enumeration found none. */
struct k_pci_dev *os_pci_find(struct kernel *kernel, uint16_t id);

/* ---- For programs that touch cache lines themselves (STREAM, PageRank) ----------------------- */
/* Return core and task of the running code, valid until it sleeps or migrates. */
struct core *os_core(struct kernel *kernel);
struct sim_task *os_task(struct kernel *kernel);
/* Takes pending interrupts, and lets another thread run if the time slice is over. Call it at least
 * once per microsecond of work on os_core(). */
void os_poll(struct kernel *kernel);

/* ---- Payload that is checked (models/base/payload.h): no time, no traffic -------------------- */
/* Fills the buffer with the bytes of a stream from `tag` on. */
void payload_fill(struct kernel *kernel, struct kaddr at, uint64_t tag, size_t bytes);
/* Returns whether the buffer holds the stream from `tag` on; if not, *difference has the first
 * place that differs, with what lies there and what should. */
bool payload_check(struct kernel *kernel, struct kaddr at, uint64_t tag, size_t bytes,
                   struct payload_difference *difference);

/* ---- Looking at it --------------------------------------------------------------------------- */
/* What all CPUs have counted under an account of k_account() since the statistics were cleared. */
struct numa_private_count os_account(struct kernel *kernel, unsigned account);
/* Returns the time that the CPU was not idle since the statistics were cleared. */
sim_time os_busy_ps(const struct kernel *kernel, unsigned cpu);
void os_stats_clear(struct kernel *kernel);
struct os_stats {       /* of one CPU */
    uint64_t hard_irqs; /* taken */
    uint64_t soft_irqs; /* times that pending soft interrupts were run */
    uint64_t polls;     /* of NAPI */
    uint64_t context_switches, wakeups, ksoftirqd_runs;
    uint64_t migrations;           /* threads that left this CPU for another */
    sim_time busy_ps, soft_irq_ps; /* not idle; in soft interrupts, hard ones within them too */
};
struct os_stats *os_cpu_stats(struct kernel *kernel, unsigned cpu);

#endif
