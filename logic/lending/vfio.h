/*
 * Pass-through of this host's own devices to guests, by VFIO: the comparison for mdev.h. One struct
 * vfio per kernel; it is the driver of the devices that guests may have.
 *
 *   struct vfio *vfio = vfio_new(kernel, &options);
 *   k_pci_register(kernel, vfio_driver(vfio));
 *   vm_add(vm, vfio_function(vfio, pci));        the guest has the device
 *
 * A guest's devices are in IOMMU domains of their own, which map all of its memory, and each
 * other's registers, at guest-physical addresses. Errors are negative errno values; vfio_error()
 * has the last in words.
 */
#ifndef LOGIC_LENDING_VFIO_H
#define LOGIC_LENDING_VFIO_H

#include "logic/kvm.h"
#include "logic/lending/lending.h"

struct vfio;

struct vfio_options {
    const struct k_pci_id *ids;                /* ended by { 0, 0 }; outlive it */
    bool (*want)(const struct k_pci_dev *dev); /* which of those; NULL: all */
    unsigned irq_cpu;                          /* of the host, that handles the interrupts */
};

struct vfio *vfio_new(struct kernel *kernel, const struct vfio_options *options);
const struct k_pci_driver *vfio_driver(const struct vfio *vfio);
/* What vm_add() takes; NULL: it is not this driver's. Valid as long as the driver has the device.
 */
struct k_vm_function *vfio_function(struct vfio *vfio, const struct k_pci_dev *dev);
const struct lend_error *vfio_error(const struct vfio *vfio);
/* No guest has any of the devices. The kernel's drivers end after it. */
void vfio_free(struct vfio *vfio);

struct vfio_usage {
    unsigned guests, domains; /* that have devices; of the IOMMU */
    uint64_t pinned_bytes,
        peer_bytes; /* of guests' memory; of registers mapped for other devices */
};
struct vfio_usage vfio_usage(const struct vfio *vfio);

#endif
