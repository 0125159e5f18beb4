/*
 * The engine `smartio`: each job is a client of a controller that a program nvme_manager before
 * this one manages, wherever both are (logic/dnvme), with a queue pair and buffers in memory of its
 * host. It polls. What a request costs is the driver's (docs/models/dnvme.md); the engine is part
 * of that.
 */
#include <errno.h>

#include "models/nvme/nvme.h"
#include "workloads/dnvme/nvme_site.h"
#include "workloads/fio/fio_engine.h"

#define NSID    1u
#define WAIT_PS (200 * SIM_PS_PER_US) /* for a completion, then again */

struct smartio_device {
    struct nvme_manager *manager;
};

struct smartio_io_u {
    struct nvme_user_command command;
    uint64_t bus; /* of the buffer */
    struct fio_io_u *next;
};

struct smartio_job {
    struct nvme_site site;
    struct dnvme_pair *pair;
    struct dnvme_buffer buffer;
    struct fio_io_u *complete, **complete_end; /* in the order of completion */
};

static struct kernel *kernel_of(const struct fio_job *job)
{
    return job->device->host->kernel;
}

static bool check(struct fio_device *device, struct sim_error_list *errors)
{
    struct smartio_device *own = device->state;
    own->manager = nvme_manager_of(device->program, device->name, errors);
    if (own->manager == NULL)
        return false;
    if (!device->host->takes_part || device->host->vm != NULL) {
        program_mistake(device->program, "on", errors,
                        "a host without a guest that takes part in the cluster (borrow = [])",
                        NULL);
        return false;
    }
    struct model *model = nvme_manager_device(own->manager);
    device->model = model;
    device->bytes = nvme_namespace_bytes(model);
    device->block_bytes = nvme_namespace_block_bytes(model);
    device->limit_bytes = nvme_transfer_bytes_max(model);
    return true;
}

/* Each job is a client with a queue pair. */
static void check_jobs(struct fio_device *device, const struct fio_load *first,
                       const struct fio_load *most, struct sim_error_list *errors)
{
    const struct smartio_device *own = device->state;
    (void)first;
    nvme_manager_take_pairs(device->program, fio_jobs_key(device->program), own->manager,
                            most->jobs, errors);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void command_done(struct nvme_user_command *command)
{
    struct fio_io_u *io_u = command->context;
    struct smartio_io_u *own = io_u->state;
    struct smartio_job *job = io_u->job->state;
    io_u->status = command->status == NVME_SC_SUCCESS ? 0 : -EIO;
    own->next = NULL;
    *job->complete_end = io_u;
    job->complete_end = &own->next;
}

static int open_pair(struct fio_job *job)
{
    struct smartio_job *own = job->state;
    struct dnvme_pair_params params = dnvme_pair_params_default;
    /* A request begins with a page, so that its list has an entry for each page of it. */
    const uint64_t stride = (job->buffer_bytes + NVME_PAGE_BYTES - 1) / NVME_PAGE_BYTES *
                            NVME_PAGE_BYTES;
    const uint64_t bytes_max = dnvme_client_bytes_max(own->site.client);
    if (bytes_max != 0 && job->buffer_bytes > bytes_max)
        return -EFBIG;
    params.entries = (uint16_t)SIM_MIN(SIM_MAX(job->depth + 1, (unsigned)params.entries),
                                       DNVME_ENTRIES_MAX);
    while (params.list_bytes < stride / NVME_PAGE_BYTES * sizeof(uint64_t))
        params.list_bytes *= 2;
    int status = dnvme_pair_new(own->site.client, &params, &own->pair, NULL);
    if (status == 0)
        status = dnvme_buffer_new(own->site.client, job->depth * stride, &own->buffer, NULL);
    for (unsigned i = 0; i < job->depth && status == 0; i++) {
        struct fio_io_u *io_u = &job->io_u[i];
        struct smartio_io_u *request = io_u->state;
        io_u->buffer = kaddr_add(own->buffer.at, i * stride);
        request->bus = own->buffer.bus[0] + i * stride;
        request->command = (struct nvme_user_command){ .done = command_done, .context = io_u };
    }
    return status;
}

static void close_job(struct fio_job *job)
{
    const struct smartio_device *device = job->device->state;
    struct smartio_job *own = job->state;
    if (own->pair != NULL)
        dnvme_pair_free(own->pair);
    if (own->buffer.bytes != 0)
        dnvme_buffer_free(own->site.client, &own->buffer);
    nvme_site_close(&own->site);
    nvme_manager_left(device->manager);
}

static int open_job(struct fio_job *job)
{
    struct smartio_device *device = job->device->state;
    struct smartio_job *own = job->state;
    struct lend_error error = { 0 };
    own->complete_end = &own->complete;
    const unsigned number = nvme_manager_expect(device->manager, 1);
    int status = nvme_site_open(&own->site, job->device->host, device->manager, number, 1, &error);
    if (status == 0)
        status = open_pair(job);
    else if (error.text[0] != '\0')
        program_fail(job->device->program, "%s: %s", job->device->name, error.text);
    if (status != 0)
        close_job(job);
    return status;
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* True: nothing of the client works any more. Says why, before fio says that a request has
 * failed. */
static bool is_lost(struct fio_job *job)
{
    const struct smartio_job *own = job->state;
    const struct fio_device *device = job->device;
    const struct smartio_device *state = device->state;
    const struct dnvme_client *client = own->site.client;
    if (!dnvme_client_lost(client))
        return false;
    if (sisci_device_lost(dnvme_client_device(client)))
        program_fail(device->program, "%s: job %u has lost the device: no path to its lender works",
                     device->name, job->number + 1);
    else
        program_fail(device->program,
                     "%s: job %u has lost its queues: the manager on %s has ended its lease or "
                     "does not answer",
                     device->name, job->number + 1, nvme_manager_host(state->manager)->name);
    return true;
}

static int submit(struct fio_job *job, struct fio_io_u *io_u)
{
    const struct smartio_job *own = job->state;
    struct smartio_io_u *request = io_u->state;
    const struct nvme_user_piece piece = { request->bus, io_u->bytes };
    const uint32_t block_bytes = job->device->block_bytes;
    dnvme_io(&request->command, io_u->write, NSID, io_u->offset / block_bytes,
             (uint32_t)(io_u->bytes / block_bytes));
    int status;
    while ((status = dnvme_pair_put(own->pair, &request->command, &piece, 1)) == -ESTALE &&
           !is_lost(job))
        k_sleep(kernel_of(job), WAIT_PS); /* the lease may still be renewed */
    return status;
}

static int commit(struct fio_job *job)
{
    const struct smartio_job *own = job->state;
    dnvme_pair_ring(own->pair); /* -ESTALE: reap() does it when the lease is renewed */
    return 0;
}

static unsigned reap(struct fio_job *job, unsigned min, unsigned max, struct fio_io_u **done)
{
    struct smartio_job *own = job->state;
    unsigned n = 0;
    if (min == 0 && own->complete == NULL)
        dnvme_pair_wait(own->pair, 0); /* one look, if the lease allows it */
    while (n < max) {
        while (n < min && own->complete == NULL && !is_lost(job)) {
            dnvme_pair_ring(own->pair);
            dnvme_pair_wait(own->pair, k_now_ps(kernel_of(job)) + WAIT_PS);
        }
        if (n < min && own->complete == NULL) /* nothing of the client works any more */
            nvme_user_qp_fail_all(dnvme_pair_qp(own->pair), NVME_SC_ABORTED_SQ_DELETED);
        struct fio_io_u *io_u = own->complete;
        if (io_u == NULL)
            break;
        const struct smartio_io_u *request = io_u->state;
        own->complete = request->next;
        if (own->complete == NULL)
            own->complete_end = &own->complete;
        done[n++] = io_u;
    }
    return n;
}

const struct fio_engine_ops fio_engine_smartio = {
    .name = "smartio",
    .help = "a client of a controller that hosts share, by SmartIO's distributed driver; it polls",
    .device_bytes = sizeof(struct smartio_device),
    .job_bytes = sizeof(struct smartio_job),
    .io_u_bytes = sizeof(struct smartio_io_u),
    .check = check,
    .check_jobs = check_jobs,
    .open = open_job,
    .submit = submit,
    .commit = commit,
    .reap = reap,
    .close = close_job,
};
