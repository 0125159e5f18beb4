/*
 * Engines over the kernel's NVMe driver, direct I/O on the raw device: `sync` is pread() by
 * pread(); `libaio` is io_submit() of what was collected, and io_getevents(); `io_uring` is
 * io_uring_enter() of what was collected, and a look at the ring. If the driver polls
 * (nvme_polled), a thread that waits looks at the completion queue itself, as io_uring_enter() does
 * with IORING_SETUP_IOPOLL. What calls cost is the kernel's (logic/nvme/nvme_block.c).
 */
#include <errno.h>

#include "logic/nvme/nvme_driver.h"
#include "models/nvme/nvme.h"
#include "workloads/fio/fio_engine.h"

#define NSID        1u
#define BUSY_SLEEP  SIM_PS_PER_US
#define POLL_CYCLES 30u /* of the loop around a look at the completion queue */

/* The block layer splits what is larger than the device takes. */
struct kernel_io_u {
    struct nvme_request *part;    /* parts_max of them */
    unsigned n_parts, n_left;     /* n_parts: those that the driver took */
    struct fio_io_u *io_u, *next; /* in the list of those collected, or complete */
};

struct kernel_job {
    struct nvme_drv *nvme;
    uint64_t part_bytes; /* the largest that the device takes */
    struct fio_io_u *collected, **collected_end;
    struct fio_io_u *complete,
        **complete_end; /* in the order of completion, as of io_getevents() */
    struct k_wait_queue wait;
};

static struct kernel *kernel_of(const struct fio_job *job)
{
    return job->device->host->kernel;
}

static bool check(struct fio_device *device, struct sim_error_list *errors)
{
    struct model *model = program_block_device(device->program, "device", device->host,
                                               device->name, errors);
    if (model == NULL)
        return false;
    device->model = model;
    device->bytes = nvme_namespace_bytes(model);
    device->block_bytes = nvme_namespace_block_bytes(model);
    return true;
}

/* ---- A list of requests ---------------------------------------------------------------------- */

static void append(struct fio_io_u *io_u, struct fio_io_u ***end)
{
    struct kernel_io_u *own = io_u->state;
    own->next = NULL;
    **end = io_u;
    *end = &own->next;
}

static struct fio_io_u *take(struct fio_io_u **first, struct fio_io_u ***end)
{
    struct fio_io_u *io_u = *first;
    const struct kernel_io_u *own = io_u->state;
    *first = own->next;
    if (*first == NULL)
        *end = first;
    return io_u;
}

/* ---- Both ------------------------------------------------------------------------------------ */

/* True: it was the last. */
static bool part_done(struct kernel_io_u *own, int status)
{
    struct kernel_job *job = own->io_u->job->state;
    if (own->io_u->status == 0)
        own->io_u->status = status;
    if (--own->n_left != 0)
        return false;
    append(own->io_u, &job->complete_end);
    return true;
}

/* In the interrupt. */
static void request_done(struct nvme_request *request, int status)
{
    struct kernel_io_u *own = request->context;
    struct kernel_job *job = own->io_u->job->state;
    if (part_done(own, status))
        k_wake(kernel_of(own->io_u->job), &job->wait);
}

static int open_job(struct fio_job *job)
{
    struct kernel_job *own = job->state;
    struct k_pci_dev *dev = lending_device(job->device->host, job->device->name);
    struct nvme_drv *nvme = dev != NULL ? nvme_of(dev) : NULL;
    if (nvme == NULL)
        return -ENODEV;
    own->nvme = nvme_open(nvme);
    own->collected_end = &own->collected;
    own->complete_end = &own->complete;
    own->part_bytes = nvme_request_bytes_max(nvme);
    job->device->bytes = nvme_bytes(nvme, NSID);
    const uint64_t parts_max = (job->buffer_bytes + own->part_bytes - 1) / own->part_bytes;
    for (unsigned i = 0; i < job->depth; i++) {
        struct kernel_io_u *io_u = job->io_u[i].state;
        io_u->io_u = &job->io_u[i];
        io_u->part = program_zalloc(job->device->program, parts_max, sizeof(*io_u->part));
    }
    return fio_buffers_alloc(job);
}

static int transfer(struct fio_job *job, bool write, uint64_t offset, struct kaddr buffer,
                    uint64_t bytes)
{
    const struct kernel_job *own = job->state;
    return nvme_transfer(own->nvme, NSID, write, offset, buffer, bytes);
}

static void release(struct fio_job *job)
{
    const struct kernel_job *own = job->state;
    nvme_close(own->nvme);
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void wait_for_room(struct fio_job *job)
{
    const struct kernel_job *own = job->state;
    if (!nvme_is_polled(own->nvme) || nvme_poll(own->nvme) == 0)
        k_sleep(kernel_of(job), BUSY_SLEEP);
}

/* False: not taken, for good. */
static bool start_part(struct fio_job *job, struct nvme_request *part, int *status)
{
    const struct kernel_job *own = job->state;
    while ((*status = nvme_direct_submit(own->nvme, part)) == -EBUSY || *status == -EAGAIN)
        wait_for_room(job);
    return *status == 0;
}

/* One after the other; what cannot be submitted is complete, with its error. */
static void start(struct fio_job *job, struct fio_io_u *io_u)
{
    const struct kernel_job *own = job->state;
    struct kernel_io_u *request = io_u->state;
    int status = 0;
    io_u->status = 0;
    request->n_parts = 0;
    request->n_left = 1; /* until all have been submitted */
    for (uint64_t at = 0; at < io_u->bytes; at += own->part_bytes) {
        struct nvme_request *part = &request->part[request->n_parts];
        *part = (struct nvme_request){ .write = io_u->write,
                                       .nsid = NSID,
                                       .offset = io_u->offset + at,
                                       .bytes = SIM_MIN(io_u->bytes - at, own->part_bytes),
                                       .buffer = kaddr_add(io_u->buffer, at),
                                       .done = request_done,
                                       .context = request };
        request->n_left++;
        if (!start_part(job, part, &status)) {
            request->n_left--;
            break;
        }
        request->n_parts++;
    }
    part_done(request, status);
}

static void wait_for_completion(struct fio_job *job)
{
    struct kernel_job *own = job->state;
    while (own->complete == NULL) {
        if (!nvme_is_polled(own->nvme))
            k_wait(kernel_of(job), &own->wait, UINT64_MAX);
        else if (nvme_poll(own->nvme) == 0)
            k_compute(kernel_of(job), POLL_CYCLES);
    }
}

/* The processor's part of a completed request. */
static void finish(const struct kernel_job *own, struct fio_io_u *io_u)
{
    const struct kernel_io_u *request = io_u->state;
    for (unsigned i = 0; i < request->n_parts; i++)
        nvme_direct_done(own->nvme, &request->part[i]);
}

/* ---- sync ------------------------------------------------------------------------------------ */

static int sync_submit(struct fio_job *job, struct fio_io_u *io_u)
{
    struct kernel_job *own = job->state;
    if (io_u->bytes > own->part_bytes) { /* all parts at once */
        k_syscall(kernel_of(job));
        start(job, io_u);
        wait_for_completion(job);
        finish(own, take(&own->complete, &own->complete_end));
        return 0;
    }
    io_u->status = nvme_direct_io(own->nvme, NSID, io_u->write, io_u->offset, io_u->buffer,
                                  io_u->bytes);
    return 0;
}

/* ---- libaio ---------------------------------------------------------------------------------- */

static int libaio_submit(struct fio_job *job, struct fio_io_u *io_u)
{
    struct kernel_job *own = job->state;
    append(io_u, &own->collected_end);
    return 0;
}

static int libaio_commit(struct fio_job *job)
{
    struct kernel_job *own = job->state;
    if (own->collected == NULL)
        return 0;
    k_syscall(kernel_of(job));
    while (own->collected != NULL)
        start(job, take(&own->collected, &own->collected_end));
    return 0;
}

/* Those that are complete, and those that come until there are `min`, `n` included. */
static unsigned take_events(struct fio_job *job, unsigned n, unsigned min, unsigned max,
                            struct fio_io_u **done)
{
    struct kernel_job *own = job->state;
    while (n < max) {
        if (n < min)
            wait_for_completion(job);
        if (own->complete == NULL)
            break;
        struct fio_io_u *io_u = take(&own->complete, &own->complete_end);
        finish(own, io_u);
        done[n++] = io_u;
    }
    return n;
}

static unsigned libaio_reap(struct fio_job *job, unsigned min, unsigned max, struct fio_io_u **done)
{
    struct kernel_job *own = job->state;
    k_syscall(kernel_of(job));
    if (min == 0 && own->complete == NULL && nvme_is_polled(own->nvme))
        nvme_poll(own->nvme);
    return take_events(job, 0, min, max, done);
}

/* ---- io_uring -------------------------------------------------------------------------------- */

/* The interrupt puts completions into the ring, where the process finds them; io_uring_enter()
 * where it has to wait, or the kernel has to poll (IORING_SETUP_IOPOLL). */
static unsigned ring_reap(struct fio_job *job, unsigned min, unsigned max, struct fio_io_u **done)
{
    struct kernel_job *own = job->state;
    const unsigned n = take_events(job, 0, 0, max, done);
    if (n >= min && (n != 0 || !nvme_is_polled(own->nvme)))
        return n;
    k_syscall(kernel_of(job));
    if (own->complete == NULL && nvme_is_polled(own->nvme))
        nvme_poll(own->nvme);
    return take_events(job, n, min, max, done);
}

/* What the engines share. */
#define KERNEL_ENGINE                                                                 \
    .job_bytes = sizeof(struct kernel_job), .io_u_bytes = sizeof(struct kernel_io_u), \
    .needs_direct = true, .check = check, .open = open_job, .transfer = transfer,     \
    .release = release

const struct fio_engine_ops fio_engine_sync = {
    .name = "sync",
    .help = "pread() and pwrite() of the kernel's block device, one at a time",
    .synchronous = true,
    .submit = sync_submit,
    KERNEL_ENGINE,
};

const struct fio_engine_ops fio_engine_libaio = {
    .name = "libaio",
    .help = "io_submit() and io_getevents() of the kernel's block device",
    .submit = libaio_submit,
    .commit = libaio_commit,
    .reap = libaio_reap,
    KERNEL_ENGINE,
};

const struct fio_engine_ops fio_engine_io_uring = {
    .name = "io_uring",
    .help = "io_uring_enter() of what was collected; completions are found in the ring",
    .submit = libaio_submit,
    .commit = libaio_commit,
    .reap = ring_reap,
    KERNEL_ENGINE,
};
