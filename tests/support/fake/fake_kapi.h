/*
 * A small fake of logic/kapi.h without any simulator, for tests of what stands on it alone. Its
 * objects come first in the link of such a test, which must not touch models/os: that kernel then
 * stays in its archive. Deterministic by seed.
 *
 *   struct fake_options options = { .seed = 7, .n_cpus = 4, .n_nodes = 2, .stall_percent = 20 };
 *   struct kernel *kernel = fake_new(&options);
 *   k_thread_new(kernel, "reader", 1, body, arg);   or call logic from the test itself
 *   fake_at(kernel, 5000, wire, arg);               what hardware does, at a time
 *   fake_run_until(kernel, FAKE_MS(10));
 *   assert_int_equal(kernel->pages_live, 0);
 *   fake_free(kernel);
 *
 * Every CPU has threads (coroutines that run until they block), one soft interrupt context and hard
 * interrupts. A call that charges time is where others go on: CPUs in the order of their times,
 * ties at random. Stalls (stall_percent of the charges last up to stall_ps longer, and the thread
 * may then lose its CPU to another of its queue) shake that order: races that a real machine shows
 * once a year come out within seeds. The test itself runs outside of all CPUs, as the CPU that
 * fake_on() has named; when it sleeps or waits, everything else goes on.
 *
 * Memory: bytes in pages at addresses that are never used twice. Access to what is not allocated,
 * or is freed already, is a fault. A fault aborts, or is counted if the options say so.
 */
#ifndef TESTS_SUPPORT_FAKE_FAKE_KAPI_H
#define TESTS_SUPPORT_FAKE_FAKE_KAPI_H

#include <errno.h>
#include <sanitizer/asan_interface.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "logic/kapi.h"
#include "logic/kcosts.h"
#include "sim/engine/task_context.h"

#define FAKE_CPUS_MAX 16u
#define FAKE_US(us)   ((uint64_t)(us)*1000000u)
#define FAKE_MS(ms)   ((uint64_t)(ms)*1000000000u)
#define FAKE_LINE_PS  4000u /* a line of this node; another node's takes three times as long */
#define FAKE_FRAMES   4096u

struct fake_options {
    uint64_t seed;
    unsigned n_cpus, n_nodes; /* 0: 4 and 2; CPU i is on node i * n_nodes / n_cpus */
    unsigned stall_percent;   /* of the charging calls */
    uint64_t stall_ps;        /* 0: 20 us */
    unsigned fail_page_every; /* every n-th allocation of pages or DMA memory fails; 0: none */
    unsigned fail_map_every;  /* every n-th k_dma_map() */
    unsigned fail_pin_every;  /* every n-th k_pin() */
    bool count_faults;        /* instead of aborting */
    bool iommu;               /* requesters' addresses are translated */
    bool msix;                /* k_irq_request() writes the device's MSI-X table */
    unsigned n_roots;         /* root complexes; 0: one */
};

enum fake_state { FAKE_READY, FAKE_RUNNING, FAKE_BLOCKED, FAKE_DONE };
struct k_waiter {
    struct k_waiter *next;
    struct k_thread *thread; /* NULL: the test itself */
    bool woken;
};
struct k_thread {
    struct sim_context context;
    void *stack;
    void *fake_stack; /* of the address sanitizer */
    struct kernel *kernel;
    struct k_thread *next, *next_ready;
    k_thread_fn *body;
    void *arg;
    char name[24];
    unsigned cpu; /* where it shall run */
    bool soft;
    unsigned account;
    enum fake_state state;
    uint64_t resume_ps;
    uint64_t until_ps; /* blocked */
    struct k_waiter waiter;
};
struct k_irq {
    struct k_irq *next;
    struct k_pci_dev *dev;
    unsigned index, cpu, vector; /* vector: its message's data, with options.msix */
    k_irq_fn *handler;
    void *arg;
    bool pending;
    uint64_t at_ps;
};
struct fake_timer {
    struct fake_timer *next;
    struct k_timer *timer;
    uint64_t at_ps;
    unsigned cpu;
};
struct fake_event {
    struct fake_event *next;
    uint64_t at_ps;
    void (*fn)(void *arg);
    void *arg;
};
struct fake_cpu {
    struct k_thread *thread; /* on the CPU, whether interrupted or not */
    struct k_thread *ready, *ready_tail;
    struct k_thread *soft;
    bool soft_active, completed; /* completed: the poll that runs has called k_napi_complete() */
    unsigned bh_disabled;
    struct k_napi *polls, *polls_tail;
    struct fake_timer *timers; /* by time */
    uint64_t irq_ps;           /* taken by the handler that runs */
    struct k_work *works, *works_tail;
    struct k_wait_queue worker_wait;
    bool worker;
    uint64_t busy_ps;
};
struct fake_frame {
    struct fake_frame *next;
    uint64_t number;
    uint8_t byte[K_PAGE_BYTES];
};
/* Somebody polls memory. */
struct fake_spin {
    struct fake_spin *next;
    const struct k_spin_at *at;
    unsigned n;
    struct k_wait_queue written;
};
struct k_cache {
    struct k_cache *next;
    struct kernel *kernel;
    const char *name;
    size_t bytes, touched_bytes;
    struct fake_object *free;
    struct fake_object *all;
    uint64_t live;
};
struct fake_object {
    struct fake_object *next, *next_free;
    struct kaddr addr;
    _Alignas(64) char body[];
};

struct kernel {
    struct fake_options options;
    struct k_costs costs;
    uint64_t now_ps, until_ps, rng;
    struct sim_context loop; /* the test, which runs everything */
    void *loop_fake_stack;
    const void *loop_stack;
    size_t loop_stack_bytes;
    struct k_thread *current; /* NULL: the test, an event or a hard interrupt */
    unsigned cpu_now;
    bool in_hard_irq, in_event;
    struct fake_cpu cpu[FAKE_CPUS_MAX];
    struct k_waiter waiter; /* of the test itself */
    struct k_thread *threads;
    struct k_irq *irqs;
    unsigned irqs_pending;
    struct fake_event *events;
    struct fake_spin *spins;
    struct fake_frame *frame[FAKE_FRAMES];
    uint64_t node_next[FAKE_CPUS_MAX];
    struct k_cache *caches;
    struct k_pci_dev *pci[16];
    const struct k_pci_driver *pci_driver[8];
    unsigned n_pci, n_pci_drivers;
    unsigned n_page_allocs, n_maps, n_pins, n_vectors;
    struct k_iommu_domain *domains;
    struct fake_resource *resources;
    unsigned iommu_calls, iommu_fail_at; /* the n-th from now on fails; 0: none */
    /* For tests to look at. */
    struct kaddr page_lines; /* k_page_line() */
    uint64_t pages_live, dma_live, maps_live, pins_live, timers_live, iommu_pages_live;
    uint64_t cycles, lines, n_faults, n_warnings, n_fences;
    char fault[160]; /* the last one */
};

/* ---- Time and who goes on -------------------------------------------------------------------- */

uint64_t fake_random(struct kernel *kernel, uint64_t below);

#define FAKE_CHECK(kernel, condition)                  \
    do {                                               \
        if (!(condition))                              \
            k_fault(kernel, "misuse: %s", #condition); \
    } while (0)

void fake_charge(struct kernel *kernel, uint64_t ps);

void fake_run_until(struct kernel *kernel, uint64_t until_ps);

/* The test itself acts as this CPU from now on. */
void fake_on(struct kernel *kernel, unsigned cpu);

/* fn(arg) happens at a time, outside of all CPUs: a device, a wire. It may not wait. */
void fake_at(struct kernel *kernel, uint64_t at_ps, void (*fn)(void *), void *arg);

/* ---- The whole ------------------------------------------------------------------------------- */

struct kernel *fake_new(const struct fake_options *options);

/* Threads that still wait are dropped with their stacks. */
void fake_free(struct kernel *kernel);

/* ---- Devices and their interrupts ------------------------------------------------------------ */

/* Base addresses of other devices, as they are in this host. */
struct fake_resource {
    struct fake_resource *next;
    struct k_device *device, *target; /* target NULL: it has gone */
    uint16_t requester;
    uint64_t dma, bytes;
};
void fake_resources_free(struct kernel *kernel);

/* A device that is no PCI function, or the part of one that is. */
void fake_device_init(struct kernel *kernel, struct k_device *device, int node, const char *name);

/* A message to 0xfeexxxxx; false if nobody asked for it. */
bool fake_message(struct kernel *kernel, uint64_t address, uint32_t data);

/* The device's message for an entry of its MSI-X table; false if nobody asked for it. */
bool fake_irq_raise(struct kernel *kernel, const struct k_pci_dev *dev, unsigned index);

/* ---- IOMMU ----------------------------------------------------------------------------------- */

struct fake_extent {
    struct fake_extent *next;
    uint64_t iova, address, bytes;
    enum k_dma_direction direction;
};
struct k_iommu_domain {
    struct k_iommu_domain *next;
    struct kernel *kernel;
    struct fake_extent *extents;
    uint8_t member[65536 / 8];
};

void fake_domains_free(struct kernel *kernel);

/* What a requester's address is in the host. False: refused. */
bool fake_translate(struct kernel *kernel, uint16_t id, uint64_t iova, bool write,
                    uint64_t *address);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Address: node + 1 from bit 40 on. */
unsigned fake_node_of(struct kaddr at);

uint64_t fake_map_pages(struct kernel *kernel, unsigned node, uint64_t n_pages,
                        uint64_t align_pages);

void fake_unmap_pages(struct kernel *kernel, uint64_t at, uint64_t n_pages);

/* Copies between simulated memory and `bytes` at p; p NULL: only looks whether it is there. */
void fake_bytes(struct kernel *kernel, struct kaddr at, void *to, const void *from, size_t bytes);

/* One of the places is not any more what was seen. */
bool fake_spin_differs(struct kernel *kernel, const struct fake_spin *spin);

bool fake_fails(unsigned *count, unsigned every);

unsigned fake_node(struct kernel *kernel, int node);

#endif
