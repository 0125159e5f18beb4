/*
 * The engine `spdk`: jobs are threads of one process that drives the device itself, without the kernel
 * and without interrupts, and polls for completions. The device is a controller of the host that no
 * driver of the kernel has (nvme_driver = false); each job has a queue pair of its own. Buffers are
 * pinned memory of the process.
 *
 * A request costs fio_plugin_cycles, half of them when it is submitted and half when it is reaped, and
 * what the driver's calls cost (logic/nvme/nvme_local.h).
 */
#include <errno.h>

#include "logic/kcosts.h"
#include "logic/nvme/nvme_local.h"
#include "models/nvme/nvme.h"
#include "workloads/fio/fio_engine.h"

struct spdk_device {
    struct nvme_local *local;
    unsigned n_open; /* jobs that use it */
};

struct spdk_io_u {
    struct nvme_user_command command;
    uint64_t bus; /* of the buffer */
    struct fio_io_u *next;
};

struct spdk_job {
    struct nvme_user_qp *qp;
    struct fio_io_u *complete, **complete_end; /* in the order of completion */
    bool open;
};

static struct kernel *kernel_of(const struct fio_job *job)
{
    return job->device->host->kernel;
}

static void plugin(const struct fio_job *job)
{
    k_compute(kernel_of(job), k_costs(kernel_of(job))->fio_plugin_cycles / 2);
}

static bool check(struct fio_device *device, struct sim_error_list *errors)
{
    const struct model *model = program_device(device->program, "device", device->host,
                                               device->name, &nvme_ops, errors);
    if (model == NULL)
        return false;
    if (device->host->params.nvme_driver) {
        program_mistake(device->program, "engine", errors,
                        "another engine, or nvme_driver = false for the host: the kernel's driver "
                        "has its controllers",
                        NULL);
        return false;
    }
    device->shared_by = model;
    device->bytes = nvme_namespace_bytes(model);
    device->block_bytes = nvme_namespace_block_bytes(model);
    return true;
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* By the first job; a queue pair for each CPU, as far as the device grants them. */
static int open_device(struct fio_job *job)
{
    struct spdk_device *device = job->device->state;
    struct k_pci_dev *dev = lending_device(job->device->host, job->device->name);
    struct nvme_local_params params = nvme_local_params_default;
    const unsigned n_cpus = k_n_cpus(kernel_of(job));
    if (dev == NULL)
        return -ENODEV;
    params.n_queues = (uint16_t)SIM_MIN(n_cpus, 255u);
    params.entries = (uint16_t)SIM_MAX(job->depth + 1, (unsigned)params.entries);
    const int error = nvme_local_open(dev, &params, &device->local);
    if (error != 0)
        return error;
    const struct nvme_user_namespace ns = nvme_local_namespace(device->local);
    job->device->bytes = ns.blocks << ns.block_log2;
    return 0;
}

static void command_done(struct nvme_user_command *command)
{
    struct fio_io_u *io_u = command->context;
    struct spdk_io_u *own = io_u->state;
    struct spdk_job *job = io_u->job->state;
    io_u->status = command->status == NVME_SC_SUCCESS ? 0 : -EIO;
    own->next = NULL;
    *job->complete_end = io_u;
    job->complete_end = &own->next;
}

static int make_buffers(struct fio_job *job)
{
    const struct spdk_device *device = job->device->state;
    int error = 0;
    for (unsigned i = 0; i < job->depth && error == 0; i++) {
        struct fio_io_u *io_u = &job->io_u[i];
        struct spdk_io_u *own = io_u->state;
        struct nvme_user_memory memory = { 0 };
        error = nvme_local_memory(device->local, K_NODE_LOCAL, job->buffer_bytes, &memory);
        io_u->buffer = memory.at;
        own->bus = memory.bus;
        own->command = (struct nvme_user_command){ .done = command_done, .context = io_u };
    }
    return error;
}

static int open_job(struct fio_job *job)
{
    struct spdk_device *device = job->device->state;
    struct spdk_job *own = job->state;
    int error = 0;
    if (device->local == NULL)
        error = open_device(job);
    if (error != 0)
        return error;
    device->n_open++;
    own->open = true;
    own->complete_end = &own->complete;
    if (nvme_local_bytes_max(device->local) < job->buffer_bytes)
        return -EFBIG;
    if (job->number >= nvme_local_n_queues(device->local))
        return -EBUSY; /* it has no queue pair left */
    own->qp = nvme_local_qp(device->local, job->number);
    return make_buffers(job);
}

static void close_job(struct fio_job *job)
{
    struct spdk_device *device = job->device->state;
    struct spdk_job *own = job->state;
    own->open = false;
    if (--device->n_open != 0)
        return;
    struct nvme_local *local = device->local;
    device->local = NULL;
    nvme_local_close(local);
}

static void release(struct fio_job *job)
{
    struct spdk_device *device = job->device->state;
    const struct spdk_job *own = job->state;
    if (!own->open || --device->n_open != 0)
        return;
    nvme_local_abandon(device->local);
    device->local = NULL;
}

/* ---- Requests -------------------------------------------------------------------------------- */

static int submit(struct fio_job *job, struct fio_io_u *io_u)
{
    const struct spdk_device *device = job->device->state;
    const struct spdk_job *own = job->state;
    struct spdk_io_u *request = io_u->state;
    const struct nvme_user_piece piece = { request->bus, io_u->bytes };
    plugin(job);
    nvme_local_transfer(device->local, &request->command, io_u->write, io_u->offset, io_u->bytes);
    return nvme_user_qp_submit(own->qp, &request->command, &piece, 1);
}

static unsigned reap(struct fio_job *job, unsigned min, unsigned max, struct fio_io_u **done)
{
    struct spdk_job *own = job->state;
    unsigned n = 0;
    if (min == 0 && own->complete == NULL)
        nvme_user_qp_poll(own->qp, 0);
    while (n < max) {
        while (n < min && own->complete == NULL)
            nvme_user_qp_poll(own->qp, 0);
        struct fio_io_u *io_u = own->complete;
        if (io_u == NULL)
            break;
        const struct spdk_io_u *request = io_u->state;
        own->complete = request->next;
        if (own->complete == NULL)
            own->complete_end = &own->complete;
        plugin(job);
        done[n++] = io_u;
    }
    return n;
}

const struct fio_engine_ops fio_engine_spdk = {
    .name = "spdk",
    .help = "a process that drives the controller itself and polls",
    .device_bytes = sizeof(struct spdk_device),
    .job_bytes = sizeof(struct spdk_job),
    .io_u_bytes = sizeof(struct spdk_io_u),
    .check = check,
    .open = open_job,
    .submit = submit,
    .reap = reap,
    .close = close_job,
    .release = release,
};
