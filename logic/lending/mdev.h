/*
 * Borrowed devices for guests: SmartIO's parent driver of mediated devices (section 5). The guest's
 * host knows such a device without having borrowed it. It borrows the device when a guest that has
 * it is reset, or when it is added to a running guest, and returns it when the guest shuts down or
 * the device is removed. The device never appears in the host's own tree.
 *
 *   mdev = lend_mdev_new(host, 2, id);
 *   vm_add(vm, lend_mdev_function(mdev));
 *   ...
 *   vm_shutdown(vm);
 *   lend_mdev_free(mdev);
 *
 * Both hosts need an IOMMU: the borrower's makes the guest's pages contiguous for windows, the
 * lender's maps those windows at guest-physical addresses. Errors are negative errno values;
 * lend_mdev_error() has the text of the last one, whether the host or the guest caused it.
 */
#ifndef LOGIC_LENDING_MDEV_H
#define LOGIC_LENDING_MDEV_H

#include "logic/kvm.h"
#include "logic/lending/lending.h"

struct lend_mdev;

/* Records the device for guest `guest`, not 0; asks nothing of the peer yet. The caller owns the
 * result. The number stands for the guest's UUID: the guest keeps it when it goes on at another
 * host, and finds in the device what it left there; for any other guest the device is reset first,
 * if it can be. */
struct lend_mdev *lend_mdev_new(struct lend_host *host, uint32_t peer, uint16_t id, uint64_t guest);
/* The function to give to vm_add(). */
struct k_vm_function *lend_mdev_function(struct lend_mdev *mdev);
const struct lend_error *lend_mdev_error(const struct lend_mdev *mdev);
/* No guest may have the device. */
void lend_mdev_free(struct lend_mdev *mdev);

struct lend_mdev_usage {
    bool borrowed;
    unsigned windows;      /* ranges of the guest's memory, each mapped by the lender */
    uint64_t probed_bytes; /* memory that the probe has found, pinned and mapped */
    unsigned n_peers;      /* base addresses of other devices that it reaches */
    unsigned n_irqs;
};
struct lend_mdev_usage lend_mdev_usage(const struct lend_mdev *mdev);

#endif
