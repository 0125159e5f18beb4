/*
 * Virtual machines: a guest is a kernel of its own on some CPUs of a host, with memory made of the
 * host's pages, and devices that a driver of the host gives it (logic/kvm.h). Unchanged software
 * runs in it: logic/kapi.h is the same. docs/models/vm.md.
 *
 *   struct vm_config config = { .name = "guest", .first_cpu = 2, .n_cpus = 2,
 *                               .memory_bytes = 4 GiB, .node = 0 };
 *   int status = vm_new(host_kernel, &config, &vm);          boots
 *   k_pci_register(vm_kernel(vm), driver);                   from a thread of the guest
 *   status = vm_add(vm, function);                           the guest has it when this returns
 *   ...
 *   status = vm_shutdown(vm);
 *   vm_free(vm);                                             after the simulation
 *
 * Calls marked [thread] are made from threads of the host's kernel and may sleep. Errors are
 * negative errno values.
 */
#ifndef MODELS_VM_VM_H
#define MODELS_VM_VM_H

#include "logic/kvm.h"
#include "models/os/os.h"

#define VM_CPUS_MAX      64u
#define VM_FUNCTIONS_MAX 31u

struct vm_params {
    uint32_t exit_cycles, entry_cycles; /* out of the guest into the host's kernel, and back */
    uint32_t user_exit_cycles;          /* more of what QEMU handles: to it and back */
    uint32_t eventfd_cycles;            /* of who signals, until the guest's APIC has it */
    bool posted_interrupts;             /* a running guest takes them without an exit */
    /* vm_mmu.c. Pages of the guest's kernel's map: 4 KiB, 2 MiB, 1 GiB; of the host under them:
     * 4 KiB, 2 MiB. */
    uint64_t guest_page_bytes, host_page_bytes;
    uint32_t tlb_4k_entries, tlb_2m_entries, tlb_ways; /* of data, first level */
    uint32_t tlb_l2_entries, tlb_l2_ways, tlb_l2_cycles;
    uint32_t pde_cache_entries, pdpte_cache_entries, pml4e_cache_entries;
};
extern const struct param_desc vm_params_table[];

struct vm_config {
    const char *name; /* outlives the guest */
    unsigned first_cpu, n_cpus;
    uint64_t memory_bytes; /* whole huge pages of 2 MiB */
    unsigned node;         /* of the host, where its memory is; others if that is full */
    struct vm_params params;
};
/* Whether these are page sizes that there are (vm_params). */
bool vm_pages_possible(uint64_t guest_page_bytes, uint64_t host_page_bytes);
/* All parameters at their defaults, and the rest zero. */
struct vm_config vm_config_default(void);

/* [thread] The CPUs are the guest's until it is shut down: threads of the host that run there move
 * away. -EINVAL: no such CPUs or pages, or memory of no size; -EBUSY: they are a guest's already;
 * -ENOMEM. */
int vm_new(struct kernel *host, const struct vm_config *config, struct k_vm **vm);
/* Its kernel, for all that runs in it. */
struct kernel *vm_kernel(struct k_vm *vm);
/* [thread] Plugs the function in: it is opened, reset, found by the guest, and offered to the
 * guest's drivers. Errors are those of the function's open() and reset(), -ENOSPC: no slot, or no
 * guest-physical addresses; nothing is left behind then. */
int vm_add(struct k_vm *vm, struct k_vm_function *function);
/* [thread] Hot-remove: the guest's driver lets go of it, it is closed. */
void vm_remove(struct k_vm *vm, struct k_vm_function *function);
/* The device in the guest; NULL: it has no such. */
struct k_pci_dev *vm_device(struct k_vm *vm, const struct k_vm_function *function);
/* [thread] The guest lets go of its devices and powers off; CPUs and memory are the host's again.
 * -EBUSY: a program in it is still running (after a second); to be called again then. Threads that
 * sleep in it never wake up again. */
int vm_shutdown(struct k_vm *vm);
bool vm_running(const struct k_vm *vm);
/* The simulation does not run on afterwards. */
void vm_free(struct k_vm *vm);

/* ---- Looking at it --------------------------------------------------------------------------- */
struct vm_stats {
    uint64_t exits;                  /* accesses that QEMU handled */
    uint64_t interrupts;             /* injected */
    uint64_t woken;                  /* of them, to a CPU that had halted */
    uint64_t pins;                   /* pages pinned now */
    uint64_t tlb_hits;               /* in the first level */
    uint64_t tlb_l2_hits, tlb_walks; /* of misses of the first level */
    uint64_t tlb_reads;              /* of page tables, by these walks */
};
/* All but the pins. */
extern const struct stat_desc vm_stats_table[];
struct vm_stats vm_stats(const struct k_vm *vm);
/* The measurement begins: all but the pins count from 0. */
void vm_stats_clear(struct k_vm *vm);
/* The host-physical address of a guest-physical one; false: no memory is there. */
bool vm_resolve(const struct k_vm *vm, uint64_t guest, uint64_t *address);

#endif
