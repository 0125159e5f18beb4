/*
 * Borrowed devices for guests: SmartIO's parent driver of mediated devices (section 5). A device is
 * known here without being borrowed; it is when a guest's machine is reset with the device in it,
 * or the device is added to a running guest, and it is given back when the guest shuts down or the
 * device is removed from it. It never appears in the tree of the host.
 *
 *   lend_mdev_new(host, 2, id, &mdev);
 *   vm_add(vm, lend_mdev_function(mdev));
 *   ...
 *   vm_shutdown(vm);
 *   lend_mdev_free(mdev);
 *
 * Both hosts need an IOMMU: the borrower's makes the guest's pages contiguous for windows, the
 * lender's shows those windows at guest-physical addresses. Errors are negative errno values;
 * lend_mdev_error() has the last in words, those of what the guest did among them.
 */
#ifndef LOGIC_LENDING_MDEV_H
#define LOGIC_LENDING_MDEV_H

#include "logic/kvm.h"
#include "logic/lending/lending.h"

struct lend_mdev;

/* Known from now on; nothing is asked of the peer yet. */
struct lend_mdev *lend_mdev_new(struct lend_host *host, uint32_t peer, uint16_t id);
/* What vm_add() takes. */
struct k_vm_function *lend_mdev_function(struct lend_mdev *mdev);
const struct lend_error *lend_mdev_error(const struct lend_mdev *mdev);
/* No guest has it. */
void lend_mdev_free(struct lend_mdev *mdev);

struct lend_mdev_usage {
    bool borrowed;
    unsigned windows;      /* ranges of the guest's memory, each in windows of its own */
    uint64_t probed_bytes; /* that answered, and are pinned and mapped */
    unsigned n_peers;      /* base addresses of others that it reaches */
    unsigned n_irqs;
};
struct lend_mdev_usage lend_mdev_usage(const struct lend_mdev *mdev);

#endif
