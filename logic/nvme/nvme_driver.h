/*
 * The driver of NVMe controllers (hw/nvme_regs.h), with one block device per PCI function, built
 * like that of Linux: an admin queue, a pair of queues per CPU with an interrupt of its own,
 * physical region pages over buffers mapped by k_dma_map(). It works alike on local and on borrowed
 * devices.
 *
 * Calls marked [thread] may sleep. Errors are negative errno values.
 */
#ifndef LOGIC_NVME_NVME_DRIVER_H
#define LOGIC_NVME_NVME_DRIVER_H

#include "hw/nvme_regs.h"
#include "logic/kapi.h"

struct nvme_driver_params {
    uint16_t n_queues;      /* pairs for I/O; 0: one per CPU. Limited by the device. */
    uint16_t queue_entries; /* 2 .. 4096; limited by the device */
    bool polled;            /* completions without interrupts: nvme_poll() */
    uint64_t timeout_ps;    /* of a command: then the driver checks, resets, gives up the device */
};
extern const struct nvme_driver_params nvme_driver_params_default;

/* One per kernel. */
struct nvme_driver;
struct nvme_drv; /* a controller */

/* Creates the driver. The parameters are copied. NULL: one is out of range. */
struct nvme_driver *nvme_driver_new(struct kernel *kernel, const struct nvme_driver_params *params);
/* For k_pci_register(). */
const struct k_pci_driver *nvme_driver_pci(const struct nvme_driver *driver);
/* All functions must be removed. */
void nvme_driver_free(struct nvme_driver *driver);
/* The i-th controller that appeared; NULL: there are fewer. */
struct nvme_drv *nvme_driver_device(const struct nvme_driver *driver, unsigned i);
/* The controller of a function. NULL: this driver does not drive it. */
struct nvme_drv *nvme_of(struct k_pci_dev *dev);

/* Opens a controller: the handle stays valid until nvme_close(), also once the controller is gone.
 * From then on calls with it return -ENODEV, and requests that were under way have ended with that;
 * nvme_pci() must not be called any more. Returns `nvme`. */
struct nvme_drv *nvme_open(struct nvme_drv *nvme);
/* Undoes one nvme_open(). The caller has no request under way. NULL: nothing happens. */
void nvme_close(struct nvme_drv *nvme);

/* ---- A controller ---------------------------------------------------------------------------- */

struct k_pci_dev *nvme_pci(const struct nvme_drv *nvme);
unsigned nvme_n_queues(const struct nvme_drv *nvme); /* pairs for I/O */
uint32_t nvme_n_namespaces(const struct nvme_drv *nvme);
/* Sizes of namespace nsid (1 ..) and of its blocks; 0: there is none. */
uint64_t nvme_bytes(const struct nvme_drv *nvme, uint32_t nsid);
uint32_t nvme_block_bytes(const struct nvme_drv *nvme, uint32_t nsid);
/* The largest request. */
uint64_t nvme_request_bytes_max(const struct nvme_drv *nvme);

struct nvme_request;
/* Ends a request: the caller owns it again. status: 0; -EIO: the device reports an error;
 * -ETIMEDOUT: the device had to be reset; -ENODEV: it is gone. Called in a hard interrupt, in
 * nvme_poll(), or in a worker thread. */
typedef void nvme_done_fn(struct nvme_request *request, int status);
struct nvme_request {
    /* ---- set by the caller, unchanged until done --------------------------------------------- */
    bool write;
    uint32_t nsid;
    uint64_t offset, bytes; /* whole blocks, at least one */
    struct kaddr buffer;    /* contiguous, 4-byte aligned; not accessed until done */
    nvme_done_fn *done;
    void *context;
    /* ---- private ----------------------------------------------------------------------------- */
    uint64_t dma, deadline_ps;
};
/* [thread] Submits the request to the queue of the calling CPU. If it returns 0, done() follows.
 * -EINVAL: the request is invalid; -EBUSY: the queue is full; -EAGAIN: the device is being reset;
 * -ENODEV: it is gone; others: errors of k_dma_map(). */
int nvme_submit(struct nvme_drv *nvme, struct nvme_request *request);
/* Whether its completions come without interrupts, so that threads that wait call nvme_poll(). */
bool nvme_is_polled(const struct nvme_drv *nvme);
/* [thread] Ends the completed requests of the calling CPU's queue; returns their number. */
unsigned nvme_poll(struct nvme_drv *nvme);
/* [thread] Transfers whole blocks, one request after the other, and waits for each (by polling, if
 * the driver polls). Returns 0 or the first error. */
int nvme_transfer(struct nvme_drv *nvme, uint32_t nsid, bool write, uint64_t offset,
                  struct kaddr buffer, uint64_t bytes);
/* [thread] Like nvme_transfer(), as a system call on user memory (O_DIRECT), with the block
 * layer. */
int nvme_direct_io(struct nvme_drv *nvme, uint32_t nsid, bool write, uint64_t offset,
                   struct kaddr buffer, uint64_t bytes);
/* [thread] Submits one request of direct I/O without waiting (io_submit()). The thread that gets
 * the completion calls nvme_direct_done(). */
int nvme_direct_submit(struct nvme_drv *nvme, struct nvme_request *request);
void nvme_direct_done(struct nvme_drv *nvme, struct nvme_request *request);

struct nvme_driver_stats { /* of a controller since it was probed */
    uint64_t requests, completions, errors, interrupts, timeouts, resets;
    uint64_t outstanding; /* now */
};
struct nvme_driver_stats nvme_driver_stats(const struct nvme_drv *nvme);

#endif
