/*
 * The engine `spdk`: jobs are threads of one process that drives the device itself, without the
 * kernel and without interrupts, and polls for completions. The device is a controller of the host
 * that no driver of the kernel has (nvme_driver = false), or one that a program nvmeof_target
 * before this one exports, which the host's RDMA adapter reaches. Each job has a queue pair of its
 * own. Buffers are pinned, or registered, memory of the process.
 *
 * A request costs fio_plugin_cycles, half of them when it is submitted and half when it is reaped,
 * and what the driver's calls cost (logic/nvme/nvme_local.h, logic/nvmeof/nvmeof.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "logic/kcosts.h"
#include "logic/nvme/nvme_local.h"
#include "models/nvme/nvme.h"
#include "workloads/fio/fio_engine.h"
#include "workloads/nvmeof/nvmeof_target.h"
#include "workloads/rdma/rdma_objects.h"

#define ENTRIES_MIN 128u
#define TIMEOUT_PS  (100 * SIM_PS_PER_MS)

struct spdk_device {
    struct nvme_local *local; /* one of both, once it is open */
    struct nvmeof_initiator *initiator;
    struct nvmeof_service *service; /* NULL: the controller is the host's own */
    struct nvmeof_caller caller;
    const char *adapter;
    unsigned n_open, n_taken; /* jobs that use it; queue pairs that jobs have had */
};

struct spdk_io_u {
    union {
        struct nvme_user_command command;
        struct nvmeof_request request;
    };
    uint64_t bus; /* of the buffer */
    struct fio_io_u *next;
};

/* SPDK waits for ever: it has no time-out unless a program asks for one, and fio's plugin does not.
 * A run that polls for so long in vain has nothing to tell any more. */
#define STUCK_PS SIM_PS_PER_S

struct spdk_job {
    struct spdk_device *device;
    unsigned number; /* of its queue pair */
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

/* ---- Settings -------------------------------------------------------------------------------- */

/* A device that a target exports. */
static struct model *check_remote(struct fio_device *device, struct sim_error_list *errors)
{
    struct spdk_device *own = device->state;
    const struct lending_host *there = nvmeof_service_host(own->service);
    own->adapter = nvmeof_adapter(device->program, device->host);
    own->caller = (struct nvmeof_caller){ .service = own->service };
    if (own->adapter == NULL)
        program_mistake(device->program, "on", errors,
                        "a host with one RDMA adapter, by which it reaches the device", NULL);
    if (there == device->host)
        program_mistake(device->program, "device", errors,
                        "one that the host does not export itself", NULL);
    return nvmeof_service_model(own->service);
}

static void no_device(struct fio_device *device, struct sim_error_list *errors)
{
    const char **names = program_device_names(device->program, device->host, &nvme_ops);
    program_mistake(device->program, "device", errors,
                    "an nvme.controller that the host borrows, or has and does not lend, or that a "
                    "program nvmeof_target before this one, and not switched off, exports",
                    names);
    free(names);
}

static struct model *check_local(struct fio_device *device, struct sim_error_list *errors)
{
    if (!lending_uses(device->host, device->name) &&
        !function_faulty(device->program->workload->world, device->name)) {
        no_device(device, errors);
        return NULL;
    }
    struct model *model = program_device(device->program, "device", device->host, device->name,
                                         &nvme_ops, errors);
    if (model != NULL && device->host->params.nvme_driver) {
        program_mistake(device->program, "engine", errors,
                        "another engine, or nvme_driver = false for the host: the kernel's driver "
                        "has its controllers",
                        NULL);
        return NULL;
    }
    if (model != NULL)
        program_take_controller(device->program, model, device->name, errors);
    return model;
}

static bool check(struct fio_device *device, struct sim_error_list *errors)
{
    struct spdk_device *own = device->state;
    own->service = nvmeof_service_find(device->program, device->name);
    struct model *model = own->service != NULL ? check_remote(device, errors)
                                               : check_local(device, errors);
    if (model == NULL)
        return false;
    device->model = model;
    device->bytes = nvme_namespace_bytes(model);
    device->block_bytes = nvme_namespace_block_bytes(model);
    device->limit_bytes = SIM_MIN(nvme_transfer_bytes_max(model),
                                  nvme_local_params_default.bytes_max);
    return true;
}

/* An initiator has a protection domain and a page, and for each queue, that of administration too,
 * a connection with its completion queue and its memory; each request has a buffer. */
static struct rdma_objects objects_of(unsigned n_queues, unsigned n_requests)
{
    return (struct rdma_objects){ .queue_pairs = n_queues + 1,
                                  .completion_queues = n_queues + 1,
                                  .regions = n_queues + 2 + n_requests,
                                  .protection_domains = 1 };
}

static void check_remote_jobs(struct fio_device *device, const struct fio_load *first,
                              const struct fio_load *most, struct sim_error_list *errors)
{
    const struct spdk_device *own = device->state;
    const char *const key = fio_jobs_key(device->program);
    const unsigned there = SIM_MIN(nvmeof_service_queues(own->service), NVMEOF_QUEUES_MAX);
    /* It asks for a queue for each job that there will be, and takes what it gets. */
    const unsigned n = SIM_MAX(most->jobs, SIM_MIN(device->n_jobs, there));
    const struct rdma_objects at_first = objects_of(n, first->requests);
    const struct rdma_objects at_most = objects_of(n, most->requests);
    const struct rdma_objects none = { 0 };
    if (own->adapter == NULL)
        return; /* there is a message */
    if (most->jobs > NVMEOF_QUEUES_MAX) {
        program_mistake(device->program, key, errors,
                        "at most 64 jobs at a time on a device over RDMA", NULL);
        return;
    }
    nvmeof_service_take(device->program, key, own->service, n, first->jobs != 0, errors);
    program_take_rdma(device->program, key, "fewer jobs and requests, or ",
                      world_device(device->program->workload->world, own->adapter), own->adapter,
                      first->jobs != 0 ? &at_first : &none, &at_most, errors);
}

static void check_jobs(struct fio_device *device, const struct fio_load *first,
                       const struct fio_load *most, struct sim_error_list *errors)
{
    const struct spdk_device *own = device->state;
    struct function_name f;
    char expected[160];
    if (own->service != NULL) {
        check_remote_jobs(device, first, most, errors);
        return;
    }
    if (!function_find(device->program->workload->world, device->name, &f) ||
        f.vf != FUNCTION_PHYSICAL || most->jobs < nvme_queue_pairs(device->model))
        return; /* virtual functions have as many as they are given */
    snprintf(
        expected, sizeof(expected),
        "at most as many jobs at a time as %.60s has queue pairs for I/O: %u (its queue_pairs, "
        "less one)",
        device->name, nvme_queue_pairs(device->model) - 1);
    program_mistake(device->program, fio_jobs_key(device->program), errors, expected, NULL);
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* Requests that find no entry wait for one. */
static uint16_t entries_of(const struct fio_job *job, unsigned most)
{
    return (uint16_t)SIM_MIN(SIM_MAX(job->depth + 1, ENTRIES_MIN), most);
}

static int open_local(struct fio_job *job, struct spdk_device *device)
{
    struct k_pci_dev *dev = lending_device(job->device->host, job->device->name);
    struct nvme_local_params params = nvme_local_params_default;
    if (dev == NULL)
        return -ENODEV;
    params.n_queues = (uint16_t)SIM_MIN(job->device->n_jobs, NVME_LOCAL_QUEUES_MAX);
    params.entries = entries_of(job, NVME_LOCAL_ENTRIES_MAX);
    return nvme_local_open(dev, &params, &device->local);
}

static int open_remote(struct fio_job *job, struct spdk_device *device)
{
    struct rdma_drv *rdma = nvmeof_adapter_up(job->device->program, job->device->host,
                                              device->adapter);
    if (rdma == NULL)
        return -ENODEV;
    device->caller.kernel = kernel_of(job);
    const struct nvmeof_initiator_params params = {
        .rdma = rdma,
        .subsystem = nvmeof_service_subsystem(device->service),
        .host = job->device->host->name,
        .n_queues = (uint16_t)SIM_MIN(job->device->n_jobs, NVMEOF_QUEUES_MAX),
        .entries = entries_of(job, NVMEOF_ENTRIES_MAX),
        .mtu_bytes = rdma_drv_limits(rdma).mtu_bytes,
        .timeout_ps = TIMEOUT_PS,
        .exchange = nvmeof_service_exchange,
        .context = &device->caller,
    };
    return nvmeof_initiator_open(&params, &device->initiator);
}

/* By the first job, for all. */
static int open_device(struct fio_job *job)
{
    struct spdk_device *device = job->device->state;
    if (device->local != NULL || device->initiator != NULL)
        return 0;
    const int error = device->service != NULL ? open_remote(job, device) : open_local(job, device);
    if (error != 0)
        return error;
    const struct nvme_user_namespace ns = device->local != NULL
                                              ? nvme_local_namespace(device->local)
                                              : nvmeof_namespace(device->initiator);
    job->device->bytes = ns.blocks << ns.block_log2;
    return 0;
}

static void complete(struct fio_io_u *io_u, int status)
{
    struct spdk_io_u *own = io_u->state;
    struct spdk_job *job = io_u->job->state;
    io_u->status = status;
    own->next = NULL;
    *job->complete_end = io_u;
    job->complete_end = &own->next;
}

static void command_done(struct nvme_user_command *command)
{
    complete(command->context, command->status == NVME_SC_SUCCESS ? 0 : -EIO);
}

static void request_done(struct nvmeof_request *request)
{
    complete(request->context, request->error);
}

static int make_buffer(struct fio_job *job, struct fio_io_u *io_u)
{
    const struct spdk_device *device = job->device->state;
    struct spdk_io_u *own = io_u->state;
    struct nvme_user_memory memory = { .bus = 0 };
    int error;
    if (device->local != NULL) {
        error = nvme_local_memory(device->local, K_NODE_LOCAL, job->buffer_bytes, &memory);
        own->command = (struct nvme_user_command){ .done = command_done, .context = io_u };
        own->bus = memory.bus;
        io_u->buffer = memory.at;
        return error;
    }
    own->request = (struct nvmeof_request){ .done = request_done, .context = io_u };
    error = nvmeof_buffer_new(device->initiator, K_NODE_LOCAL, job->buffer_bytes,
                              &own->request.buffer);
    io_u->buffer = own->request.buffer.at;
    return error;
}

/* The queue pair of the job; a device, or a target, may have fewer than there are jobs. */
static int open_queue(struct fio_job *job)
{
    const struct spdk_device *device = job->device->state;
    struct spdk_job *own = job->state;
    if (device->initiator != NULL) {
        if (job->buffer_bytes > nvmeof_bytes_max(device->initiator))
            return -EFBIG;
        return own->number < nvmeof_n_queues(device->initiator) ? 0 : -EBUSY;
    }
    if (job->buffer_bytes > nvme_local_bytes_max(device->local))
        return -EFBIG;
    if (own->number >= nvme_local_n_queues(device->local))
        return -EBUSY;
    own->qp = nvme_local_qp(device->local, own->number);
    return 0;
}

static void close_job(struct fio_job *job)
{
    struct spdk_job *own = job->state;
    struct spdk_device *device = own->device;
    own->open = false;
    if (--device->n_open != 0)
        return;
    struct nvme_local *local = device->local;
    struct nvmeof_initiator *initiator = device->initiator;
    device->local = NULL;
    device->initiator = NULL;
    device->n_taken = 0;
    if (local != NULL)
        nvme_local_close(local);
    if (initiator != NULL)
        nvmeof_initiator_close(initiator);
}

static int open_job(struct fio_job *job)
{
    struct spdk_job *own = job->state;
    int error = open_device(job);
    if (error != 0)
        return error;
    own->device = job->device->state;
    own->device->n_open++;
    own->number = own->device->n_taken++;
    own->open = true;
    own->complete_end = &own->complete;
    error = open_queue(job);
    for (unsigned i = 0; i < job->depth && error == 0; i++)
        error = make_buffer(job, &job->io_u[i]);
    if (error != 0)
        close_job(job);
    return error;
}

static void release(struct fio_job *job)
{
    struct spdk_job *own = job->state;
    if (!own->open || --own->device->n_open != 0)
        return;
    nvme_local_abandon(own->device->local);
    nvmeof_initiator_abandon(own->device->initiator);
    own->device->local = NULL;
    own->device->initiator = NULL;
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void poll(const struct fio_job *job)
{
    const struct spdk_job *own = job->state;
    if (own->device->local != NULL)
        nvme_user_qp_poll(own->qp, 0);
    else
        nvmeof_poll(own->device->initiator, own->number);
}

static int try_to_submit(struct fio_job *job, struct fio_io_u *io_u)
{
    const struct spdk_job *own = job->state;
    const struct spdk_device *device = own->device;
    struct spdk_io_u *request = io_u->state;
    const struct nvme_user_piece piece = { request->bus, io_u->bytes };
    if (device->local != NULL) {
        nvme_local_transfer(device->local, &request->command, io_u->write, io_u->offset,
                            io_u->bytes);
        return nvme_user_qp_submit(own->qp, &request->command, &piece, 1);
    }
    nvmeof_transfer(device->initiator, &request->request, io_u->write, io_u->offset, io_u->bytes);
    return nvmeof_submit(device->initiator, own->number, &request->request);
}

/* A target may have fewer entries than the job has requests. */
static int submit(struct fio_job *job, struct fio_io_u *io_u)
{
    int error;
    plugin(job);
    while ((error = try_to_submit(job, io_u)) == -EBUSY)
        poll(job);
    return error;
}

/* Until a request has ended; the run ends if none does. */
static void poll_long(struct fio_job *job)
{
    const struct spdk_job *own = job->state;
    struct kernel *kernel = kernel_of(job);
    const uint64_t until_ps = k_now_ps(kernel) + STUCK_PS;
    while (own->complete == NULL) {
        poll(job);
        if (own->complete == NULL && k_now_ps(kernel) > until_ps)
            k_fault(kernel,
                    "%s: job %u has polled for %g s, and no request of it has ended: %s does not "
                    "answer",
                    job->device->program->name, job->number + 1,
                    (double)STUCK_PS / (double)SIM_PS_PER_S, job->device->name);
    }
}

static unsigned reap(struct fio_job *job, unsigned min, unsigned max, struct fio_io_u **done)
{
    struct spdk_job *own = job->state;
    unsigned n = 0;
    if (min == 0 && own->complete == NULL)
        poll(job);
    while (n < max) {
        if (n < min)
            poll_long(job);
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
    .help = "a process that drives the controller itself and polls, or one over RDMA",
    .device_bytes = sizeof(struct spdk_device),
    .job_bytes = sizeof(struct spdk_job),
    .io_u_bytes = sizeof(struct spdk_io_u),
    .check = check,
    .check_jobs = check_jobs,
    .open = open_job,
    .submit = submit,
    .reap = reap,
    .close = close_job,
    .release = release,
};
