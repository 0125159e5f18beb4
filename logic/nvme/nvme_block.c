/*
 * Requests that are waited for, and direct I/O: what a program's read of a raw block device costs.
 *
 * What it does: Requests that a thread waits for, and direct I/O on a raw block device: a system
 *   call, user memory pinned page by page, the block layer as cycles, the driver's work on its
 *   cache lines and registers, interrupt, wake-up and context switch.
 * Leaves out: the page cache, file systems, plugging and merging, I/O schedulers.
 * Follows: docs/sources.md#c4 (kernel O_DIRECT 4 kB).
 * Costs: syscall_cycles, pin_cycles (and per page), block_submit_cycles, then the driver; at the
 *   end, in the interrupt, block_complete_cycles.
 */
#include <errno.h>

#include "logic/nvme/nvme_internal.h"

#define BUSY_PS K_US

struct waited {
    struct nvme_request request;
    struct kernel *kernel;
    struct k_wait_queue queue;
    uint32_t end_cycles; /* of the block layer */
    int status;
    bool done;
};

static void waited_done(struct nvme_request *request, int status)
{
    struct waited *waited = request->context;
    if (waited->end_cycles != 0)
        k_compute(waited->kernel, waited->end_cycles);
    waited->status = status;
    waited->done = true;
    k_wake(waited->kernel, &waited->queue);
}

/* One request; again while there is no room or the device is being reset. */
static int transfer_one(struct nvme_drv *nvme, struct waited *waited)
{
    struct kernel *kernel = nvme->kernel;
    int error;
    waited->done = false;
    while ((error = nvme_submit(nvme, &waited->request)) == -EBUSY || error == -EAGAIN)
        if (!nvme->polled || nvme_poll(nvme) == 0)
            k_sleep(kernel, BUSY_PS);
    if (error != 0)
        return error;
    while (!waited->done) {
        bool polled = nvme->polled && !nvme->gone && !nvme->closing;
        if (polled && !nvme->resetting)
            nvme_poll(nvme);
        else
            k_wait(kernel, &waited->queue, polled ? k_now_ps(kernel) + BUSY_PS : UINT64_MAX);
    }
    return waited->status;
}

static int transfer(struct nvme_drv *nvme, const struct nvme_request *whole, uint32_t begin_cycles,
                    uint32_t end_cycles)
{
    struct waited waited = { .request = *whole, .kernel = nvme->kernel, .end_cycles = end_cycles };
    int error = 0;
    waited.request.done = waited_done;
    waited.request.context = &waited;
    for (uint64_t at = 0; error == 0 && at < whole->bytes; at += waited.request.bytes) {
        uint64_t left = whole->bytes - at;
        waited.request.offset = whole->offset + at;
        waited.request.buffer = kaddr_add(whole->buffer, at);
        waited.request.bytes = left < nvme->bytes_max ? left : nvme->bytes_max;
        if (begin_cycles != 0)
            k_compute(nvme->kernel, begin_cycles);
        error = transfer_one(nvme, &waited);
    }
    return error;
}

int nvme_transfer(struct nvme_drv *nvme, uint32_t nsid, bool write, uint64_t offset,
                  struct kaddr buffer, uint64_t bytes)
{
    struct nvme_request whole = {
        .write = write, .nsid = nsid, .offset = offset, .bytes = bytes, .buffer = buffer
    };
    nvme->users++;
    int error = transfer(nvme, &whole, 0, 0);
    nvme->users--;
    return error;
}

int nvme_direct_io(struct nvme_drv *nvme, uint32_t nsid, bool write, uint64_t offset,
                   struct kaddr buffer, uint64_t bytes)
{
    struct nvme_request whole = {
        .write = write, .nsid = nsid, .offset = offset, .bytes = bytes, .buffer = buffer
    };
    nvme->users++;
    k_syscall(nvme->kernel);
    int error = k_pin(nvme->kernel, buffer, bytes);
    if (error == 0) {
        error = transfer(nvme, &whole, nvme->costs->block_submit_cycles,
                         nvme->costs->block_complete_cycles);
        k_unpin(nvme->kernel, buffer, bytes);
    }
    nvme->users--;
    return error;
}

int nvme_direct_submit(struct nvme_drv *nvme, struct nvme_request *request)
{
    nvme->users++;
    int error = k_pin(nvme->kernel, request->buffer, request->bytes);
    if (error == 0) {
        k_compute(nvme->kernel, nvme->costs->block_submit_cycles);
        error = nvme_submit(nvme, request);
        if (error != 0)
            k_unpin(nvme->kernel, request->buffer, request->bytes);
    }
    nvme->users--;
    return error;
}

void nvme_direct_done(struct nvme_drv *nvme, struct nvme_request *request)
{
    k_compute(nvme->kernel, nvme->costs->block_complete_cycles);
    k_unpin(nvme->kernel, request->buffer, request->bytes);
}
