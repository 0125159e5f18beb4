/*
 * What vm.c, vm_cpu.c and vm_pci.c share.
 *
 * A CPU of a guest is two things: a CPU of the guest's kernel and a thread of the host's, bound to
 * the host's CPU whose core both have. While the guest runs, that thread is in KVM_RUN: it has its
 * CPU, and its task is suspended. What the guest cannot do itself leaves it: its task is suspended
 * and the thread goes on with the work, which may sleep, and lets the guest go on at the end.
 */
#ifndef MODELS_VM_VM_INTERNAL_H
#define MODELS_VM_VM_INTERNAL_H

#include "models/os/os_memory.h"
#include "models/os/os_pci.h"
#include "models/vm/vm.h"
#include "models/vm/vm_tlb.h"

#define VM_MSIX_MAX 256u /* entries of a function's table */

typedef void vm_exit_fn(void *arg); /* on the host's CPU */

struct vm_cpu {
    struct k_vm *vm;
    unsigned idx;
    struct os_cpu *host_cpu;
    struct k_thread *thread;  /* of the host; NULL: it has not begun, or has ended */
    struct sim_task *waiting; /* of the guest, that has left it */
    vm_exit_fn *exit;         /* what to do about it; NULL: nothing */
    void *arg;
    bool inside; /* in KVM_RUN */
};

/* Masks, routes: of one entry of a function's MSI-X table. */
struct k_eventfd {
    struct k_vm *vm;
    struct sim_event event;
    unsigned cpu;
    uint8_t vector;
    bool in_use; /* set_irq() has it */
    bool masked, waits;
};

struct vm_function {
    struct k_vm *vm;
    struct k_vm_function *fn;
    struct k_pci_dev dev; /* the guest's */
    char name[OS_PCI_NAME_BYTES];
    unsigned slot;
    uint64_t guest_bar[K_PCI_BARS]; /* where the guest has put it, as QEMU knows */
    uint16_t msix_cap;              /* 0: none */
    uint16_t n_vectors;
    unsigned msix_bar;
    uint64_t msix_offset;
    bool msix_enabled, msix_masked;
    uint32_t table[VM_MSIX_MAX][4]; /* the guest's */
    struct k_eventfd eventfd[VM_MSIX_MAX];
};

/* Page tables: of the guest (by linear address) in its memory, of the host (by guest-physical
 * address) in the host's. */
enum { VM_TABLES_GUEST, VM_TABLES_HOST, VM_TABLES };
struct vm_tables {
    struct physmem *space; /* where they lie */
    unsigned node;
    unsigned leaf; /* level whose entries are pages: 1 (4 KiB) to 3 (1 GiB) */
    bool of_guest; /* addresses of tables are guest-physical */
    uint64_t root; /* the table of the top level */
    uint64_t used; /* bytes of the pieces */
    size_t n_pieces, pieces_max;
    uint64_t *piece;
};

struct vm_mmu_cpu {
    struct vm_tlb l1, l2;
    /* Paging-structure caches by level of the entry: where the table below lies. */
    struct vm_tlb guest_cache[5], host_cache[5];
};

struct k_vm {
    struct kernel *host, *guest;
    struct vm_config config;
    struct os_guest place;
    struct hpa *backing;
    uint16_t *pins; /* by huge page */
    struct vm_tables tables[VM_TABLES];
    unsigned page_shift; /* of the smaller pages: what a TLB's entry covers */
    struct vm_mmu_cpu *mmu;
    struct vm_cpu *cpu;
    unsigned n_inside; /* threads in or on the way to KVM_RUN */
    bool running, stopping;
    struct vm_function *function[VM_FUNCTIONS_MAX];
    struct vm_stats stats;
    struct k_wait_queue wait; /* on the host, for what the guest has done */
};

/* ---- vm_cpu.c -------------------------------------------------------------------------------- */
/* [thread] All CPUs are in the guest when it returns. */
int vm_cpus_start(struct k_vm *vm);
/* [thread] The guest is idle. */
void vm_cpus_stop(struct k_vm *vm);
/* From a thread of the guest: leaves it for QEMU. */
void vm_exit_to(struct k_vm *vm, vm_exit_fn *fn, void *arg);
void vm_eventfd_init(struct k_eventfd *eventfd, struct k_vm *vm);
/* Unmasked: what waits goes. */
void vm_eventfd_mask(struct k_eventfd *eventfd, bool masked);

/* ---- vm_mmu.c -------------------------------------------------------------------------------- */
/* Makes page tables and TLBs; the guest's memory and its space are there. -ENOMEM: vm_mmu_free()
 * and vm_mmu_tables_release() are still to be called. */
int vm_mmu_new(struct k_vm *vm);
/* The host's tables go back to it; again: does nothing. */
void vm_mmu_tables_release(struct k_vm *vm);
void vm_mmu_free(struct k_vm *vm);
/* The host's memory at an address that such tables have of a table. */
struct hpa vm_table_at(const struct k_vm *vm, const struct vm_tables *tables, uint64_t at);

/* ---- vm_pci.c -------------------------------------------------------------------------------- */
/* [thread] Of the host: the guest removes the device, the function is closed. */
void vm_unplug(struct vm_function *f);

#endif
