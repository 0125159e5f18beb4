/*
 * The interface between a hypervisor and a driver that passes a device to a virtual machine: VFIO's
 * interface for parent drivers of mediated devices, and QEMU's part in it. models/vm/ implements
 * the hypervisor's side; logic/lending/vfio.c and mdev.c are such drivers.
 *
 * All calls are made on CPUs of the host. Addresses are host-physical unless called guest-physical.
 * Errors are negative errno values.
 */
#ifndef LOGIC_KVM_H
#define LOGIC_KVM_H

#include "logic/kapi.h"

struct k_vm;      /* a guest, as seen by its host */
struct k_eventfd; /* raises one interrupt of a guest */

/* ---- Services of the hypervisor -------------------------------------------------------------- */

const char *k_vm_name(const struct k_vm *vm);
/* Resolves a guest-physical address and pins the 2 MiB page of the host that backs it. Returns 0,
 * the page's address in *page and its size in *bytes; -EFAULT: the guest has no memory there.
 * Charges the cost of pinning. From a thread. */
int k_vm_pin(struct k_vm *vm, uint64_t guest, uint64_t *page, uint64_t *bytes);
/* Undoes one successful k_vm_pin() of the same address. */
void k_vm_unpin(struct k_vm *vm, uint64_t guest);
/* The i-th range of the guest's memory. QEMU tells it to VFIO, but not to the parent driver of a
 * mediated device. False: there are fewer ranges. */
bool k_vm_memory(const struct k_vm *vm, unsigned i, uint64_t *guest, uint64_t *bytes);
/* Raises the interrupt. It stays pending while it is masked in the guest. From any context of the
 * host. */
void k_eventfd_signal(struct k_eventfd *eventfd);

/* ---- Duties of the driver -------------------------------------------------------------------- */

struct k_vm_function;
/* The hypervisor calls these from threads of the host; they may sleep. config_read() and
 * config_write() serve accesses of the guest, each of which causes a VM exit. The hypervisor itself
 * handles accesses to the control register and the table of the MSI-X capability, and calls
 * set_irq(). */
struct k_vm_function_ops {
    /* Gives the function to the guest. vendor_id, device_id and class_code are set when this
     * returns. */
    int (*open)(struct k_vm_function *function, struct k_vm *vm);
    /* Takes the function back (shut-down or removal): it does not access the guest any more when
     * this returns. */
    void (*close)(struct k_vm_function *function);
    /* Resets the function: before the guest's firmware runs, and when the guest asks for a
     * function-level reset. The first call sets bar_base and bar_bytes. */
    int (*reset)(struct k_vm_function *function);
    uint32_t (*config_read)(struct k_vm_function *function, unsigned offset, unsigned bytes);
    void (*config_write)(struct k_vm_function *function, unsigned offset, unsigned bytes,
                         uint32_t value);
    /* Connects entry `index` of the device's MSI-X table to this eventfd; NULL: disconnects it. */
    int (*set_irq)(struct k_vm_function *function, unsigned index, struct k_eventfd *eventfd);
};

struct k_vm_function {
    const struct k_vm_function_ops *ops;
    const char *name;
    struct kernel *kernel; /* the host's */
    uint16_t vendor_id, device_id;
    uint32_t class_code;
    /* Addresses of the registers in the host. Whole pages of them are mapped into the guest. */
    uint64_t bar_base[K_PCI_BARS], bar_bytes[K_PCI_BARS];
    bool gone;          /* does not answer any more: the guest reads all ones */
    void *private_data; /* the hypervisor's; NULL before the first open() */
};

#endif
