/* A host's kernel with one guest on it. */
#ifndef TESTS_SUPPORT_VM_RIG_H
#define TESTS_SUPPORT_VM_RIG_H

#include "models/vm/vm_internal.h"
#include "tests/support/kernel_call.h"
#include "tests/support/world_fixture.h"

struct vm_rig {
    struct world_fixture w;
    struct kernel *host;
    struct k_vm *vm;
    struct vm_config config; /* of the next guest */
    int status, expect;      /* of the last call; what a test wants of it */
};

/* world: the text of hosts and devices; its first host has four CPUs or more. The guest is to have
 * n_cpus CPUs, from the host's third on, and 64 MiB. */
void vm_rig_open(struct vm_rig *rig, const char *world, unsigned n_cpus);
/* Threads of the host's kernel (arg: the rig): the guest is made, or shut down, with the outcome in
 * rig->status. */
void vm_rig_new_body(void *arg);
void vm_rig_shutdown_body(void *arg);
/* The same, which has to succeed; a guest that is shut down has no memory pinned. */
void vm_rig_boot(struct vm_rig *rig);
void vm_rig_shutdown(struct vm_rig *rig);
/* Frees the guest, which is shut down, its host's kernel and the world. */
void vm_rig_close(struct vm_rig *rig);

#endif
