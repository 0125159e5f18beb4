/*
 * fio: random reads and writes of a raw NVMe device with O_DIRECT, by jobs on CPUs of their own.
 * With a queue depth of 1 as the engine `sync` does it, pread() by pread(); else as `libaio` with its
 * defaults: submissions one by one until the queue is full, then one io_getevents() for one event
 * (iodepth_batch_complete_min and _max of 1), and a submission in its place. The span is written
 * first; every block that is read is checked against what was written there last.
 *
 * A request counts, and its latency ends, where the job gets it: at the return of pread() or of
 * io_getevents() (fio's lat, from before the call that submits it). So in a full queue
 * depth = iops x (latency + what the job does between two requests). Without a number of operations
 * what is measured begins when all jobs have filled their queues.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logic/nvme/nvme_driver.h"
#include "models/base/payload.h"
#include "models/nvme/nvme.h"
#include "workloads/programs/program.h"

#define NSID        1u
#define FILL_BYTES  131072u
#define POISON      (UINT64_C(0x7ff00000000)) /* position in the stream that no block has */
#define JOBS_MAX    64u
#define SAMPLES_MIN 8192u
#define BUSY_SLEEP  SIM_PS_PER_US
#define POLL_CYCLES 30u /* of the loop around a look at the completion queue */

struct fio;
struct job;

struct slot { /* a request and its buffer */
    struct nvme_request request;
    struct job *job;
    struct slot *next; /* that is complete */
    struct kaddr buffer;
    uint64_t block;
    uint64_t start_ps, end_ps;
    int status;
};

struct job {
    struct fio *fio;
    unsigned cpu;
    struct sim_random random;
    uint64_t measured;                     /* operations */
    struct slot *slot;                     /* queue_depth of them */
    struct slot *complete, **complete_end; /* in the order of completion, as of io_getevents() */
    struct k_wait_queue wait;
    unsigned in_flight;
    bool full; /* has been: so many requests under way as may be */
};

struct fio {
    /* parameters */
    const char *host_name, *device_name;
    uint32_t n_jobs, cpu, queue_depth, think_cycles;
    uint64_t block_bytes, span_bytes, operations;
    double read_ratio;
    /* running */
    struct program *program;
    struct lending_host *host;
    struct nvme_drv *nvme;
    uint16_t stream;
    uint64_t disk_at; /* where the span begins on the device */
    uint64_t n_blocks;
    uint32_t *version; /* of each block: how often it was written */
    bool *busy;        /* of each block: a request is under way */
    struct job *job;
    struct k_wait_queue filled_wait;
    bool filled, failed;
    unsigned n_full;  /* jobs that have filled their queues */
    sim_time full_ps; /* when the last of them had */
    unsigned n_done;
    /* measured */
    double *sample_ps; /* latencies one by one: medians are compared to a few ns */
    uint64_t n_samples, room;
    sim_time begin_ps;          /* of the measurement */
    sim_time first_ps, last_ps; /* the first submission and the last completion of these */
};

static const struct param_desc fio_params[] = {
    PARAM_TEXT("on", struct fio, host_name, "borrower", "host of the group `lending`"),
    PARAM_TEXT("device", struct fio, device_name, "ssd",
               "a nvme.controller that it borrows, or has and does not lend"),
    PARAM("jobs", PARAM_U32, struct fio, n_jobs, 1, 1, JOBS_MAX, PROV_NONE, "",
          "processes, each on a CPU of its own"),
    PARAM("cpu", PARAM_U32, struct fio, cpu, 1, 0, 255, PROV_NONE, "", "of the first job"),
    PARAM("queue_depth", PARAM_U32, struct fio, queue_depth, 1, 1, 1024, PROV_NONE, "",
          "requests of a job under way; 1: synchronous calls"),
    PARAM("block_bytes", PARAM_BYTES, struct fio, block_bytes, 4096, 512, 131072, PROV_NONE, "",
          "of a request"),
    PARAM(
        "span_bytes", PARAM_BYTES, struct fio, span_bytes, 16777216, 131072, 1e12, PROV_NONE, "",
        "of the device that is used; whole blocks of 128 KiB; behind those of programs before it"),
    PARAM("read_ratio", PARAM_DOUBLE, struct fio, read_ratio, 1, 0, 1, PROV_NONE, "",
          "share of reads, the rest are writes"),
    PARAM("operations", PARAM_U64, struct fio, operations, 0, 0, 1e12, PROV_NONE, "",
          "of each job, then it ends; 0: as long as is measured"),
    PARAM("think_cycles", PARAM_U32, struct fio, think_cycles, 600, 0, 100000, PROV_ESTIMATE,
          "docs/sources.md#c4", "of fio itself, between two requests of a job"),
    { .type = PARAM_END },
};

static const struct record_desc fio_records[] = {
    { "latency_mean_ns", RECORD_METRIC, "ns", "of a request" },
    { "latency_p50_ns", RECORD_METRIC, "ns", "quantile" },
    { "latency_p99_ns", RECORD_METRIC, "ns", "quantile" },
    { "latency_ns", RECORD_HISTOGRAM, "ns", "each" },
    { "+iops", RECORD_METRIC, "1/s", "requests that jobs got back, once their queues were full" },
    { "+throughput_gbyte_s", RECORD_METRIC, "GB/s", "payload of these" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void mistake(struct fio *fio, const char *key, struct sim_error_list *errors,
                    const char *expected)
{
    program_mistake(fio->program, key, errors, expected, NULL);
}

static void fio_check(struct program *program, struct sim_error_list *errors)
{
    struct fio *fio = program->state;
    fio->program = program;
    program->own_time = fio->operations != 0; /* served_s() */
    fio->host = program_lending_host(program, "on", fio->host_name, errors);
    if (fio->host == NULL)
        return;
    const struct model *model = program_device(program, "device", fio->host, fio->device_name,
                                               &nvme_ops, errors);
    if (model != NULL && fio->block_bytes < nvme_namespace_block_bytes(model))
        mistake(fio, "block_bytes", errors, "at least that of the device");
    fio->disk_at = model != NULL ? program_take(program, model, "byte", fio->span_bytes) : 0;
    if (model != NULL && fio->disk_at + fio->span_bytes > nvme_namespace_bytes(model))
        mistake(fio, "span_bytes", errors,
                fio->disk_at == 0 ? "at most capacity_bytes of the device"
                                  : "at most what other programs leave of capacity_bytes");
    program_check_cpus(program, "jobs", fio->host, fio->cpu, fio->n_jobs, errors);
    if (fio->block_bytes % 512 != 0 || FILL_BYTES % fio->block_bytes != 0)
        mistake(fio, "block_bytes", errors, "a power of two from 512 B to 128 KiB");
    if (fio->span_bytes % FILL_BYTES != 0 ||
        fio->span_bytes / fio->block_bytes < 2 * (uint64_t)fio->n_jobs * fio->queue_depth)
        mistake(fio, "span_bytes", errors,
                "whole units of 128 KiB, with at least two blocks for each request under way");
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static void fail(struct fio *fio, const char *what, int status)
{
    if (!fio->failed)
        program_fail(fio->program, "%s: the driver says %s", what, strerror(-status));
    fio->failed = true;
}

/* What a block holds after it has been written for the version-th time. */
static uint64_t tag_of(const struct fio *fio, uint64_t block, uint32_t version)
{
    return payload_mark(fio->stream, version * fio->span_bytes + block * fio->block_bytes);
}

static void choose(struct job *job, struct slot *slot)
{
    struct fio *fio = job->fio;
    do
        slot->block = sim_random_below(&job->random, fio->n_blocks);
    while (fio->busy[slot->block]);
    fio->busy[slot->block] = true;
    slot->request.write = sim_random_unit(&job->random) >= fio->read_ratio;
    slot->request.offset = fio->disk_at + slot->block * fio->block_bytes;
    uint64_t tag = payload_mark(fio->stream, POISON);
    if (slot->request.write)
        tag = tag_of(fio, slot->block, ++fio->version[slot->block]);
    payload_fill(fio->host->kernel, slot->buffer, tag, fio->block_bytes);
}

static void add_sample(struct fio *fio, uint64_t ps)
{
    stat_histogram_add(&fio->program->histogram_ps, ps);
    if (fio->n_samples == fio->room) {
        fio->room = 2 * fio->room + SAMPLES_MIN;
        fio->sample_ps = sim_grow(fio->sample_ps, fio->room, sizeof(*fio->sample_ps));
    }
    fio->sample_ps[fio->n_samples++] = (double)ps;
}

static void check_block(struct job *job, struct slot *slot)
{
    struct fio *fio = job->fio;
    struct kernel *kernel = fio->host->kernel;
    uint64_t tag = tag_of(fio, slot->block, fio->version[slot->block]);
    struct payload_difference is;
    fio->busy[slot->block] = false;
    if (slot->status != 0 && program_ending(fio->program))
        return; /* the device is taken away from under requests that it has not served yet */
    if (slot->status != 0) {
        fail(fio, "a request", slot->status);
        return;
    }
    if (!slot->request.write && !payload_check(kernel, slot->buffer, tag, fio->block_bytes, &is)) {
        fio->failed = true;
        k_fault(kernel, "%s: block %llu: %#llx where %#llx was written", fio->program->name,
                (unsigned long long)slot->block, (unsigned long long)is.found,
                (unsigned long long)is.expected);
        return;
    }
    if (!program_measuring(fio->program) || (fio->operations == 0 && fio->n_full < fio->n_jobs))
        return;
    program_operation_ended(fio->program, slot->start_ps);
    add_sample(fio, slot->end_ps - slot->start_ps);
    fio->first_ps = SIM_MIN(fio->first_ps, slot->start_ps);
    fio->last_ps = SIM_MAX(fio->last_ps, slot->end_ps);
    job->measured++;
    program_count_operations(fio->program, 1);
}

/* ---- Engines --------------------------------------------------------------------------------- */

static bool enough(const struct job *job)
{
    const struct fio *fio = job->fio;
    return fio->failed || program_ending(fio->program) ||
           (fio->operations != 0 && job->measured >= fio->operations);
}

static void queue_is_full(struct job *job)
{
    struct fio *fio = job->fio;
    if (!job->full && ++fio->n_full == fio->n_jobs)
        fio->full_ps = k_now_ps(fio->host->kernel);
    job->full = true;
}

static void run_sync(struct job *job)
{
    struct fio *fio = job->fio;
    struct kernel *kernel = fio->host->kernel;
    struct slot *slot = &job->slot[0];
    while (!enough(job)) {
        k_compute(kernel, fio->think_cycles);
        choose(job, slot);
        slot->start_ps = k_now_ps(kernel);
        queue_is_full(job);
        slot->status = nvme_direct_io(fio->nvme, NSID, slot->request.write, slot->request.offset,
                                      slot->buffer, fio->block_bytes);
        slot->end_ps = k_now_ps(kernel);
        check_block(job, slot);
    }
}

/* In the interrupt. */
static void request_done(struct nvme_request *request, int status)
{
    struct slot *slot = request->context;
    struct job *job = slot->job;
    slot->status = status;
    slot->next = NULL;
    *job->complete_end = slot;
    job->complete_end = &slot->next;
    k_wake(job->fio->host->kernel, &job->wait);
}

static void wait_for_room(struct fio *fio)
{
    if (!nvme_is_polled(fio->nvme) || nvme_poll(fio->nvme) == 0)
        k_sleep(fio->host->kernel, BUSY_SLEEP);
}

static void submit(struct job *job, struct slot *slot)
{
    struct fio *fio = job->fio;
    struct kernel *kernel = fio->host->kernel;
    int status;
    k_compute(kernel, fio->think_cycles);
    choose(job, slot);
    slot->start_ps = k_now_ps(kernel);
    k_syscall(kernel);
    while ((status = nvme_direct_submit(fio->nvme, &slot->request)) == -EBUSY || status == -EAGAIN)
        wait_for_room(fio);
    if (status == 0)
        job->in_flight++;
    else
        fail(fio, "a submission", status);
}

/* io_getevents() of one event; io_uring_enter() of a ring with IOPOLL if the driver polls. */
static struct slot *get_event(struct job *job)
{
    struct fio *fio = job->fio;
    struct kernel *kernel = fio->host->kernel;
    k_syscall(kernel);
    while (job->complete == NULL) {
        if (!nvme_is_polled(fio->nvme))
            k_wait(kernel, &job->wait, UINT64_MAX);
        else if (nvme_poll(fio->nvme) == 0)
            k_compute(kernel, POLL_CYCLES);
    }
    struct slot *slot = job->complete;
    job->complete = slot->next;
    if (job->complete == NULL)
        job->complete_end = &job->complete;
    nvme_direct_done(fio->nvme, &slot->request);
    slot->end_ps = k_now_ps(kernel);
    return slot;
}

static void run_async(struct job *job)
{
    struct fio *fio = job->fio;
    for (uint32_t i = 0; i < fio->queue_depth && !fio->failed; i++)
        submit(job, &job->slot[i]);
    queue_is_full(job);
    while (job->in_flight != 0) {
        struct slot *slot = get_event(job);
        job->in_flight--;
        check_block(job, slot);
        if (!enough(job))
            submit(job, slot);
    }
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

static int fill(struct fio *fio)
{
    struct kernel *kernel = fio->host->kernel;
    struct kaddr buffer = k_alloc(kernel, K_NODE_LOCAL, FILL_BYTES, K_PAGE_BYTES);
    int status = buffer.v != 0 ? 0 : -ENOMEM;
    for (uint64_t at = 0; status == 0 && at < fio->span_bytes; at += FILL_BYTES) {
        payload_fill(kernel, buffer, tag_of(fio, at / fio->block_bytes, 0), FILL_BYTES);
        status = nvme_transfer(fio->nvme, NSID, true, fio->disk_at + at, buffer, FILL_BYTES);
    }
    return status;
}

/* By the first job; false: there is no device, or not so much of it. */
static bool prepare(struct fio *fio)
{
    struct k_pci_dev *dev = lending_device(fio->host, fio->device_name);
    struct nvme_drv *nvme = dev != NULL ? nvme_of(dev) : NULL;
    if (nvme == NULL) {
        fail(fio, fio->device_name, -ENODEV);
        return false;
    }
    fio->nvme = nvme_open(nvme);
    if (nvme_bytes(fio->nvme, NSID) < fio->disk_at + fio->span_bytes ||
        nvme_request_bytes_max(fio->nvme) < fio->block_bytes) {
        fail(fio, "a namespace too small", -EINVAL);
        return false;
    }
    int status = fill(fio);
    if (status != 0)
        fail(fio, "writing the span", status);
    return status == 0;
}

static bool make_slots(struct job *job)
{
    struct fio *fio = job->fio;
    struct kernel *kernel = fio->host->kernel;
    for (uint32_t i = 0; i < fio->queue_depth; i++) {
        struct slot *slot = &job->slot[i];
        slot->job = job;
        slot->buffer = k_alloc(kernel, K_NODE_LOCAL, fio->block_bytes, K_PAGE_BYTES);
        slot->request = (struct nvme_request){ .nsid = NSID,
                                               .bytes = fio->block_bytes,
                                               .buffer = slot->buffer,
                                               .done = request_done,
                                               .context = slot };
        if (slot->buffer.v == 0) {
            fail(fio, "a buffer", -ENOMEM);
            return false;
        }
    }
    return true;
}

static void job_body(void *arg)
{
    struct job *job = arg;
    struct fio *fio = job->fio;
    struct kernel *kernel = fio->host->kernel;
    if (job == &fio->job[0]) {
        prepare(fio);
        fio->filled = true;
        k_wake(kernel, &fio->filled_wait);
    }
    while (!fio->filled)
        k_wait(kernel, &fio->filled_wait, UINT64_MAX);
    if (!fio->failed && make_slots(job)) {
        if (fio->queue_depth == 1)
            run_sync(job);
        else
            run_async(job);
    }
    if (++fio->n_done == fio->n_jobs && fio->program->finite)
        program_finish(fio->program);
}

static void fio_start(struct program *program)
{
    struct fio *fio = program->state;
    fio->stream = program_new_stream(program);
    fio->n_blocks = fio->span_bytes / fio->block_bytes;
    fio->version = program_zalloc_large(program, fio->n_blocks, sizeof(*fio->version));
    fio->busy = program_zalloc_large(program, fio->n_blocks, sizeof(*fio->busy));
    if (program_failed(program))
        return;
    fio->job = program_zalloc(program, fio->n_jobs, sizeof(*fio->job));
    program->finite = fio->operations != 0;
    for (unsigned i = 0; i < fio->n_jobs; i++) {
        struct job *job = &fio->job[i];
        char name[64];
        job->fio = fio;
        job->cpu = fio->cpu + i;
        job->complete_end = &job->complete;
        job->slot = program_zalloc(program, fio->queue_depth, sizeof(*job->slot));
        snprintf(name, sizeof(name), "%.40s%u", program->name, i);
        sim_random_init(&job->random, sim_seed(program->workload->sim), name);
        program_lending_uses_cpu(program, fio->host, job->cpu);
        k_thread_new(fio->host->kernel, name, (int)job->cpu, job_body, job);
    }
}

static void fio_measure(struct program *program)
{
    struct fio *fio = program->state;
    fio->n_samples = 0;
    fio->begin_ps = sim_now(program->workload->sim);
    fio->first_ps = UINT64_MAX;
    fio->last_ps = 0;
}

static double quantile_ns(const struct fio *fio, double q)
{
    return fio->sample_ps[(uint64_t)(q * (double)(fio->n_samples - 1))] * 1e-3;
}

/*
 * In which the requests that were measured were served. With a number of operations, from the first
 * of their submissions, which may lie before the measurement's beginning, to the last of their
 * completions: with deep queues and few operations filling and emptying the queue counts. Else what
 * was measured once all queues were full: requests under way at the end stand for those at the
 * beginning.
 */
static double served_s(const struct fio *fio, sim_time duration_ps)
{
    const bool finite = fio->operations != 0;
    const sim_time from_ps = finite ? fio->first_ps : SIM_MAX(fio->full_ps, fio->begin_ps);
    const sim_time to_ps = finite ? fio->last_ps : fio->begin_ps + duration_ps;
    return (double)(to_ps - from_ps) * 1e-12;
}

static void fio_record(struct program *program, sim_time duration_ps)
{
    struct fio *fio = program->state;
    const double n = (double)fio->n_samples;
    if (fio->n_samples == 0) {
        program_fail(program,
                     fio->n_full < fio->n_jobs
                         ? "not one request was measured: span_bytes is written first, and "
                           "measure.warmup_us and duration_us were over before"
                         : "not one request was measured: none ended within "
                           "measure.duration_us");
        return;
    }
    if (fio->operations == 0 && !program_has_measured(program, "request"))
        return;
    const double seconds = served_s(fio, duration_ps);
    program_metric(program, "latency_mean_ns", "ns", program->histogram_ps.sum / n * 1e-3);
    program_sort(fio->sample_ps, fio->n_samples);
    program_metric(program, "latency_p50_ns", "ns", quantile_ns(fio, 0.5));
    program_metric(program, "latency_p99_ns", "ns", quantile_ns(fio, 0.99));
    program_histogram(program, "latency_ns", "ns", 1e-3, &program->histogram_ps);
    program_metric(program, "iops", "1/s", n / seconds);
    program_metric(program, "throughput_gbyte_s", "GB/s",
                   n * (double)fio->block_bytes / seconds * 1e-9);
}

static void fio_release(struct program *program)
{
    struct fio *fio = program->state;
    nvme_close(fio->nvme);
    free(fio->sample_ps);
}

const struct program_ops program_fio_ops = {
    .type = "fio",
    .help = "random reads and writes of a raw NVMe device (O_DIRECT)",
    .state_bytes = sizeof(struct fio),
    .params = fio_params,
    .records = fio_records,
    .check = fio_check,
    .start = fio_start,
    .measure = fio_measure,
    .record = fio_record,
    .release = fio_release,
};
