/*
 * The driver of NVMe controllers (data sheet: nvme_regs.h), one block device per PCI function, built
 * as that of Linux is: an admin queue, a pair of queues per CPU with an interrupt of its own,
 * physical region pages over buffers that k_dma_map() made reachable. It does not know whether its
 * device is in this host or borrowed.
 *
 * Calls marked [thread] may sleep. Errors are negative errno values.
 */
#ifndef LOGIC_NVME_NVME_DRIVER_H
#define LOGIC_NVME_NVME_DRIVER_H

#include "hw/nvme_regs.h"
#include "logic/kapi.h"

struct nvme_driver_params {
    uint16_t n_queues;      /* pairs for I/O; 0: one per CPU. Never more than the device grants. */
    uint16_t queue_entries; /* 2 .. 4096, less if the device has fewer */
    bool polled;            /* completions without interrupts: nvme_poll() */
    uint64_t timeout_ps;    /* of a command: the device is looked at, reset, given up */
};
extern const struct nvme_driver_params nvme_driver_params_default;

/* One per kernel. */
struct nvme_driver;
struct nvme_drv; /* a controller */

/* The parameters are copied. NULL: one is out of its range. */
struct nvme_driver *nvme_driver_new(struct kernel *kernel, const struct nvme_driver_params *params);
/* For k_pci_register(). */
const struct k_pci_driver *nvme_driver_pci(const struct nvme_driver *driver);
/* All its functions are removed. */
void nvme_driver_free(struct nvme_driver *driver);
/* The i-th controller that appeared; NULL: there are fewer. */
struct nvme_drv *nvme_driver_device(const struct nvme_driver *driver, unsigned i);
/* The controller of a function that this driver has taken; NULL: it has not. */
struct nvme_drv *nvme_of(struct k_pci_dev *dev);

/* ---- A controller ---------------------------------------------------------------------------- */

struct k_pci_dev *nvme_pci(const struct nvme_drv *nvme);
unsigned nvme_n_queues(const struct nvme_drv *nvme); /* pairs for I/O */
uint32_t nvme_n_namespaces(const struct nvme_drv *nvme);
/* Of namespace nsid (1 ..); 0: there is none. */
uint64_t nvme_bytes(const struct nvme_drv *nvme, uint32_t nsid);
uint32_t nvme_block_bytes(const struct nvme_drv *nvme, uint32_t nsid);
/* Of one request. */
uint64_t nvme_request_bytes_max(const struct nvme_drv *nvme);

struct nvme_request;
/* status: 0, -EIO (the device says so), -ETIMEDOUT (it had to be reset), -ENODEV (it is gone). The
 * request is the caller's again. In a hard interrupt, in nvme_poll(), or in a worker thread. */
typedef void nvme_done_fn(struct nvme_request *request, int status);
struct nvme_request {
    /* ---- filled by the caller, left alone until done ----------------------------------------- */
    bool write;
    uint32_t nsid;
    uint64_t offset, bytes; /* whole blocks; bytes at least one block */
    struct kaddr buffer;    /* contiguous, a multiple of 4 bytes; not touched until done */
    nvme_done_fn *done;
    void *context;
    /* ---- private ----------------------------------------------------------------------------- */
    uint64_t dma, deadline_ps;
};
/* [thread] Hands the request to the queue of this CPU; done() follows, if 0 is returned. -EINVAL:
 * it is none. -EBUSY: the queue is full. -EAGAIN: the device is being reset. -ENODEV. -ENOSPC and
 * the like: what k_dma_map() says. */
int nvme_submit(struct nvme_drv *nvme, struct nvme_request *request);
/* [thread] Completes what this CPU's queue has ready; returns how many. */
unsigned nvme_poll(struct nvme_drv *nvme);
/* [thread] Any number of whole blocks, one request after the other, each waited for (by polling, if
 * the driver polls). 0 or the first error. */
int nvme_transfer(struct nvme_drv *nvme, uint32_t nsid, bool write, uint64_t offset,
                  struct kaddr buffer, uint64_t bytes);
/* [thread] The same as a program's system call on user memory (O_DIRECT): block layer included. */
int nvme_direct_io(struct nvme_drv *nvme, uint32_t nsid, bool write, uint64_t offset,
                   struct kaddr buffer, uint64_t bytes);
/* [thread] One request of direct I/O that is not waited for (io_submit()). Whoever gets the
 * completion calls nvme_direct_done(). */
int nvme_direct_submit(struct nvme_drv *nvme, struct nvme_request *request);
void nvme_direct_done(struct nvme_drv *nvme, struct nvme_request *request);

struct nvme_driver_stats { /* of a controller since it was probed */
    uint64_t requests, completions, errors, interrupts, timeouts, resets;
    uint64_t outstanding; /* now */
};
struct nvme_driver_stats nvme_driver_stats(const struct nvme_drv *nvme);

#endif
