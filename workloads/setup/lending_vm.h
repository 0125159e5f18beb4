/* Guests of the group `lending`, for lending*.c and `describe`. */
#ifndef WORKLOADS_SETUP_LENDING_VM_H
#define WORKLOADS_SETUP_LENDING_VM_H

#include "models/vm/vm.h"
#include "workloads/setup/lending.h"

struct lending_vm_params {
    uint64_t memory_bytes;
    uint32_t first_cpu, cpus;
};
/* Group `vm` of a machine, beside vm_params_table. */
extern const struct param_desc lending_vm_params_table[];

/* host->vm, if the machine has such a group. Mistakes go to errors. */
void lending_vm_read(struct lending_host *host, struct config *config,
                     struct sim_error_list *errors);
/* As the scenario says: CPUs of the guest, and the host's core that is its first. */
unsigned lending_vm_cpus(const struct lending_host *host);
unsigned lending_vm_first_core(const struct lending_host *host);
/* Threads of the machine: boots, and host->kernel is the guest's; plugs in its devices, borrowed
 * ones among them; takes those out; its own; powers off. Failures are faults of the run. */
void lending_vm_boot(struct lending_host *host);
void lending_vm_plug(struct lending_host *host);
void lending_vm_unplug(struct lending_host *host);
void lending_vm_unplug_own(struct lending_host *host);
void lending_vm_off(struct lending_host *host);
/* Cold migration. Threads of the machines: the guest lets go of its devices and powers off; the
 * guest of this machine, which is up, is given a device that another one had. */
void lending_vm_leave(struct lending_host *host);
void lending_vm_arrive(struct lending_host *host, const char *device);
/* In the guest's tree, or NULL. */
struct k_pci_dev *lending_vm_device(struct lending_host *host, const char *name);
/* The simulation does not run on. */
void lending_vm_free(struct lending_host *host);

#endif
