/* Virtual machines of the group `lending`, for lending*.c, `describe` and cold migration. */
#ifndef WORKLOADS_SETUP_LENDING_VM_H
#define WORKLOADS_SETUP_LENDING_VM_H

#include "models/vm/vm.h"
#include "workloads/setup/lending.h"

struct lending_vm_params {
    uint64_t memory_bytes;
    uint32_t first_cpu, cpus;
};
/* Settings of a host's group `vm`, beside vm_params_table. */
extern const struct param_desc lending_vm_params_table[];

/* Reads the group `vm`, if the host has one, and sets host->vm. Adds mistakes to `errors`. */
void lending_vm_read(struct lending_host *host, struct config *config,
                     struct sim_error_list *errors);
/* By the scenario: how many CPUs the guest has, and which core of the host is its first. */
unsigned lending_vm_cpus(const struct lending_host *host);
unsigned lending_vm_first_core(const struct lending_host *host);
/* All of these run in a thread of the host's kernel. A refusal is recorded by lending_refuse().
 *
 * Boots the guest and sets host->kernel to its kernel. */
void lending_vm_boot(struct lending_host *host);
/* Adds the host's own devices and the borrowed ones to the guest. */
void lending_vm_plug(struct lending_host *host);
/* Removes the borrowed devices; the host's own. */
void lending_vm_unplug(struct lending_host *host);
void lending_vm_unplug_own(struct lending_host *host);
/* Powers off; faults if a program still runs or memory is still pinned. */
void lending_vm_off(struct lending_host *host);
/* Cold migration: removes all devices of the guest and powers it off. */
void lending_vm_leave(struct lending_host *host);
/* Cold migration: the guest of this host, which is up, gets a device that another guest had. */
void lending_vm_arrive(struct lending_host *host, const char *device);

/* The device in the guest's tree; NULL: it is not there. */
struct k_pci_dev *lending_vm_device(struct lending_host *host, const char *name);
/* What its guest has counted since the measurement began (vm_stats_table), or nothing if it is not
 * up. False: the host has none by the scenario. */
bool lending_vm_stats(const struct lending_host *host, struct vm_stats *stats);
void lending_vm_stats_clear(struct lending_host *host);
/* Frees the guest; the simulation must not run any more. */
void lending_vm_free(struct lending_host *host);

#endif
