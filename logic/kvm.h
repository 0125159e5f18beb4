/*
 * What the driver that gives a device to a virtual machine may ask of the hypervisor, and what it
 * is asked: VFIO's interface for parent drivers of mediated devices, and what QEMU does with it.
 * models/vm/vm.c implements it; logic/lending/vfio.c and mdev.c stand on it.
 *
 * Everything here is about the host: addresses are host-physical but where they say guest-physical,
 * and all calls are made on CPUs of the host. Errors are negative errno values.
 */
#ifndef LOGIC_KVM_H
#define LOGIC_KVM_H

#include "logic/kapi.h"

struct k_vm;      /* a guest, as its host sees it */
struct k_eventfd; /* what raises one interrupt of a guest */

/* ---- What may be asked ----------------------------------------------------------------------- */

const char *k_vm_name(const struct k_vm *vm);
/* Resolves a guest-physical address and pins the page of the host behind it, which is one of 2 MiB:
 * *page is where it begins, *bytes its size. -EFAULT: the guest has no memory there. Charges what
 * pinning costs. From a thread. */
int k_vm_pin(struct k_vm *vm, uint64_t guest, uint64_t *page, uint64_t *bytes);
/* Once for each successful pin, with the same address. */
void k_vm_unpin(struct k_vm *vm, uint64_t guest);
/* The i-th range of the guest's memory, which QEMU knows and tells VFIO; a mediated device's parent
 * is not told. False: there are fewer. */
bool k_vm_memory(const struct k_vm *vm, unsigned i, uint64_t *guest, uint64_t *bytes);
/* Raises the interrupt; from any context of the host. While it is masked in the guest, it waits. */
void k_eventfd_signal(struct k_eventfd *eventfd);

/* ---- What is asked --------------------------------------------------------------------------- */

struct k_vm_function;
/* All from threads of the host; may sleep. Accesses to configuration space are those of the guest,
 * each of which has left the guest for it; those to the MSI-X capability's control and table do not
 * arrive: set_irq() does instead. */
struct k_vm_function_ops {
    /* The guest is to have the function; its vendor and device are set when this returns. */
    int (*open)(struct k_vm_function *function, struct k_vm *vm);
    /* Shut down, or removed: it does not touch the guest any more. */
    void (*close)(struct k_vm_function *function);
    /* Before the guest's firmware looks at it, and when the guest asks for a function-level reset.
     * The registers' addresses are set when the first one returns. */
    int (*reset)(struct k_vm_function *function);
    uint32_t (*config_read)(struct k_vm_function *function, unsigned offset, unsigned bytes);
    void (*config_write)(struct k_vm_function *function, unsigned offset, unsigned bytes,
                         uint32_t value);
    /* From now on entry `index` of the device's MSI-X table signals this eventfd; NULL: none. */
    int (*set_irq)(struct k_vm_function *function, unsigned index, struct k_eventfd *eventfd);
};

struct k_vm_function {
    const struct k_vm_function_ops *ops;
    const char *name;
    struct kernel *kernel; /* the host's */
    uint16_t vendor_id, device_id;
    uint32_t class_code;
    /* Registers, as the host's CPUs reach them: whole pages of them are mapped into the guest. */
    uint64_t bar_base[K_PCI_BARS], bar_bytes[K_PCI_BARS];
    bool gone;          /* nobody answers any more: the guest reads ones */
    void *private_data; /* the hypervisor's; NULL before the first open() */
};

#endif
