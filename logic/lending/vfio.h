/*
 * Pass-through of this host's own devices to guests by VFIO; mdev.h does so with borrowed devices.
 * Each kernel has one struct vfio, the driver of the devices that guests may have.
 *
 *   struct vfio *vfio = vfio_new(kernel, &options);
 *   k_pci_register(kernel, vfio_driver(vfio));
 *   vm_add(vm, vfio_function(vfio, pci));        the guest has the device
 *
 * The devices of a guest are in IOMMU domains of the guest, which map all of its memory and the
 * registers of its other devices at guest-physical addresses. Errors are negative errno values;
 * vfio_error() has the text of the last one.
 */
#ifndef LOGIC_LENDING_VFIO_H
#define LOGIC_LENDING_VFIO_H

#include "logic/kvm.h"
#include "logic/lending/lending.h"

struct vfio;

struct vfio_options {
    const struct k_pci_id *ids;                /* ended by { 0, 0 }; outlive the driver */
    bool (*want)(const struct k_pci_dev *dev); /* accepts a device; NULL: all */
    unsigned irq_cpu;                          /* CPU of the host that handles the interrupts */
};

/* Copies the options. The caller owns the result. */
struct vfio *vfio_new(struct kernel *kernel, const struct vfio_options *options);
const struct k_pci_driver *vfio_driver(const struct vfio *vfio);
/* The function to give to vm_add(), valid as long as the driver has the device; NULL: it does not.
 */
struct k_vm_function *vfio_function(struct vfio *vfio, const struct k_pci_dev *dev);
const struct lend_error *vfio_error(const struct vfio *vfio);
/* Frees the driver, just before the kernel ends. No guest may have any of its devices. */
void vfio_free(struct vfio *vfio);

struct vfio_usage {
    unsigned guests;       /* that have devices */
    unsigned domains;      /* of the IOMMU */
    uint64_t pinned_bytes; /* of guests' memory */
    uint64_t peer_bytes;   /* registers that are mapped for other devices */
};
struct vfio_usage vfio_usage(const struct vfio *vfio);

#endif
