/*
 * fio: random reads and writes of a raw NVMe device with O_DIRECT, by jobs on CPUs of their own.
 * Requests go through an engine (fio_engine.h): `sync` makes one at a time; others are used as fio
 * does with its defaults: submissions one by one until the queue is full, then one event is waited
 * for (iodepth_batch_complete_min and _max of 1), and a submission takes its place. The span is
 * written first; every block that is read is checked against what was written there last.
 *
 * A request counts, and its latency ends, where the job gets it: at the return of submit() or of
 * reap() (fio's lat, from before the call that submits it). So in a full queue
 * depth = iops x (latency + what the job does between two requests). Without a number of operations
 * what is measured begins when all jobs have filled their queues.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/base/payload.h"
#include "workloads/fio/fio.h"
#include "workloads/fio/fio_engine.h"

#define FILL_BYTES  131072u
#define POISON      (UINT64_C(0x7ff00000000)) /* position in the stream that no block has */
#define JOBS_MAX    64u
#define SAMPLES_MIN 8192u

struct fio;

struct job {
    struct fio_job job; /* what the engine sees */
    struct fio *fio;
    struct sim_random random;
    uint64_t measured; /* operations */
    unsigned in_flight;
    bool full; /* has been: so many requests under way as may be */
};

struct fio {
    /* parameters */
    const char *host_name, *device_name;
    const char *engine_name;
    uint32_t n_jobs, cpu, queue_depth, think_cycles;
    uint64_t block_bytes, span_bytes, operations;
    double read_ratio;
    /* running */
    struct program *program;
    struct lending_host *host;
    struct fio_device device;
    uint16_t stream;
    uint64_t disk_at; /* where the span begins on the device */
    uint64_t n_blocks;
    uint32_t *version; /* of each block: how often it was written */
    bool *busy;        /* of each block: a request is under way */
    struct job *job;
    struct k_wait_queue turn_wait; /* jobs open one after the other, the first writes the span */
    bool filled, opening, failed;
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
    PARAM_TEXT("engine", struct fio, engine_name, "",
               "sync, libaio; \"\": sync with a queue depth of 1, else libaio"),
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
                    const char *expected, const char *const *names)
{
    program_mistake(fio->program, key, errors, expected, names);
}

/* False: there is none of this name. What the engine cannot use is a mistake of its own. */
static bool check_engine(struct fio *fio, struct sim_error_list *errors)
{
    const char *name = fio->engine_name;
    if (*name == '\0')
        name = fio->queue_depth == 1 ? "sync" : "libaio";
    const struct fio_engine_ops *engine = fio_engine_find(name);
    if (engine == NULL) {
        mistake(fio, "engine", errors, "an engine", fio_engine_names);
        return false;
    }
    if (engine->synchronous && fio->queue_depth != 1)
        mistake(fio, "queue_depth", errors, "1, as the engine is synchronous", NULL);
    fio->device = (struct fio_device){ .engine = engine,
                                       .program = fio->program,
                                       .host = fio->host,
                                       .name = fio->device_name,
                                       .request_bytes_max = fio->block_bytes };
    fio->device.state = program_zalloc(fio->program, 1, SIM_MAX(engine->device_bytes, (size_t)1));
    engine->check(&fio->device, errors);
    return true;
}

static void fio_check(struct program *program, struct sim_error_list *errors)
{
    struct fio *fio = program->state;
    fio->program = program;
    program->own_time = fio->operations != 0; /* served_s() */
    fio->host = program_lending_host(program, "on", fio->host_name, errors);
    if (fio->host == NULL)
        return;
    if (!check_engine(fio, errors))
        return;
    const struct fio_device *device = &fio->device;
    if (device->shared_by != NULL && fio->block_bytes < device->block_bytes)
        mistake(fio, "block_bytes", errors, "at least that of the device", NULL);
    fio->disk_at = device->shared_by != NULL
                       ? program_take(program, device->shared_by, "byte", fio->span_bytes)
                       : 0;
    if (device->bytes != 0 && fio->disk_at + fio->span_bytes > device->bytes)
        mistake(fio, "span_bytes", errors,
                fio->disk_at == 0 ? "at most capacity_bytes of the device"
                                  : "at most what other programs leave of capacity_bytes",
                NULL);
    program_check_cpus(program, "jobs", fio->host, fio->cpu, fio->n_jobs, errors);
    if (fio->block_bytes % 512 != 0 || FILL_BYTES % fio->block_bytes != 0)
        mistake(fio, "block_bytes", errors, "a power of two from 512 B to 128 KiB", NULL);
    if (fio->span_bytes % FILL_BYTES != 0 ||
        fio->span_bytes / fio->block_bytes < 2 * (uint64_t)fio->n_jobs * fio->queue_depth)
        mistake(fio, "span_bytes", errors,
                "whole units of 128 KiB, with at least two blocks for each request under way",
                NULL);
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

static void put(struct fio_io_u *io_u, uint64_t tag)
{
    const struct fio_device *device = io_u->job->device;
    if (device->engine->put != NULL)
        device->engine->put(io_u, 0, tag, io_u->bytes);
    else
        payload_fill(device->host->kernel, io_u->buffer, tag, io_u->bytes);
}

static bool same(struct fio_io_u *io_u, uint64_t tag, struct payload_difference *difference)
{
    const struct fio_device *device = io_u->job->device;
    if (device->engine->same != NULL)
        return device->engine->same(io_u, 0, tag, io_u->bytes, difference);
    return payload_check(device->host->kernel, io_u->buffer, tag, io_u->bytes, difference);
}

static uint64_t block_of(const struct fio *fio, const struct fio_io_u *io_u)
{
    return (io_u->offset - fio->disk_at) / fio->block_bytes;
}

static void choose(struct job *job, struct fio_io_u *io_u)
{
    struct fio *fio = job->fio;
    uint64_t block;
    do
        block = sim_random_below(&job->random, fio->n_blocks);
    while (fio->busy[block]);
    fio->busy[block] = true;
    io_u->write = sim_random_unit(&job->random) >= fio->read_ratio;
    io_u->offset = fio->disk_at + block * fio->block_bytes;
    io_u->bytes = fio->block_bytes;
    put(io_u, io_u->write ? tag_of(fio, block, ++fio->version[block])
                          : payload_mark(fio->stream, POISON));
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

static void check_block(struct job *job, struct fio_io_u *io_u)
{
    struct fio *fio = job->fio;
    const uint64_t block = block_of(fio, io_u);
    struct payload_difference is;
    fio->busy[block] = false;
    if (io_u->status != 0 && program_ending(fio->program))
        return; /* the device is taken away from under requests that it has not served yet */
    if (io_u->status != 0) {
        fail(fio, "a request", io_u->status);
        return;
    }
    if (!io_u->write && !same(io_u, tag_of(fio, block, fio->version[block]), &is)) {
        fio->failed = true;
        k_fault(fio->host->kernel, "%s: block %llu: %#llx where %#llx was written",
                fio->program->name, (unsigned long long)block, (unsigned long long)is.found,
                (unsigned long long)is.expected);
        return;
    }
    if (!program_measuring(fio->program) || (fio->operations == 0 && fio->n_full < fio->n_jobs))
        return;
    program_operation_ended(fio->program, io_u->start_ps);
    add_sample(fio, io_u->end_ps - io_u->start_ps);
    fio->first_ps = SIM_MIN(fio->first_ps, io_u->start_ps);
    fio->last_ps = SIM_MAX(fio->last_ps, io_u->end_ps);
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

/* False: it was not accepted, for good. */
static bool submit(struct job *job, struct fio_io_u *io_u)
{
    struct fio *fio = job->fio;
    const struct fio_engine_ops *engine = fio->device.engine;
    struct kernel *kernel = fio->host->kernel;
    k_compute(kernel, fio->think_cycles);
    choose(job, io_u);
    io_u->start_ps = k_now_ps(kernel);
    if (engine->synchronous)
        queue_is_full(job);
    int status = engine->submit(&job->job, io_u);
    if (status == 0 && engine->commit != NULL)
        status = engine->commit(&job->job);
    if (status != 0)
        fail(fio, "a submission", status);
    return status == 0;
}

static void run_sync(struct job *job)
{
    struct fio_io_u *io_u = &job->job.io_u[0];
    while (!enough(job) && submit(job, io_u)) {
        io_u->end_ps = k_now_ps(job->fio->host->kernel);
        check_block(job, io_u);
    }
}

static void run_async(struct job *job)
{
    struct fio *fio = job->fio;
    for (uint32_t i = 0; i < job->job.depth && !fio->failed; i++)
        job->in_flight += submit(job, &job->job.io_u[i]);
    queue_is_full(job);
    while (job->in_flight != 0) {
        struct fio_io_u *io_u;
        if (fio->device.engine->reap(&job->job, 1, 1, &io_u) == 0)
            continue;
        io_u->end_ps = k_now_ps(fio->host->kernel);
        job->in_flight--;
        check_block(job, io_u);
        if (!enough(job))
            job->in_flight += submit(job, io_u);
    }
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

/* With what the job has for it, if the engine has no way of its own. */
static int fill_one(struct job *job, uint64_t offset, uint64_t bytes, uint64_t tag)
{
    struct fio *fio = job->fio;
    const struct fio_engine_ops *engine = fio->device.engine;
    struct fio_io_u *io_u = &job->job.io_u[0];
    int status = 0;
    for (uint64_t at = 0; status == 0 && at < bytes; at += io_u->bytes) {
        io_u->write = true;
        io_u->offset = offset + at;
        io_u->bytes = SIM_MIN(bytes - at, job->job.buffer_bytes);
        put(io_u, payload_mark_add(tag, at));
        status = engine->submit(&job->job, io_u);
        if (status == 0 && engine->commit != NULL)
            status = engine->commit(&job->job);
        while (status == 0 && !engine->synchronous && engine->reap(&job->job, 1, 1, &io_u) == 0)
            ;
        status = status != 0 ? status : io_u->status;
    }
    return status;
}

static int fill(struct job *job, struct kaddr buffer)
{
    struct fio *fio = job->fio;
    int status = buffer.v != 0 ? 0 : -ENOMEM;
    for (uint64_t at = 0; status == 0 && at < fio->span_bytes; at += FILL_BYTES) {
        const uint64_t tag = tag_of(fio, at / fio->block_bytes, 0);
        payload_fill(fio->host->kernel, buffer, tag, FILL_BYTES);
        if (fio->device.engine->transfer != NULL)
            status = fio->device.engine->transfer(&job->job, true, fio->disk_at + at, buffer,
                                                  FILL_BYTES);
        else
            status = fill_one(job, fio->disk_at + at, FILL_BYTES, tag);
    }
    return status;
}

static void open_device(struct job *job)
{
    struct fio *fio = job->fio;
    const int status = fio->device.engine->open(&job->job);
    if (status == -EFBIG)
        program_fail(fio->program, "requests of %llu bytes are larger than the device takes",
                     (unsigned long long)fio->block_bytes);
    else if (status != 0)
        fail(fio, fio->device_name, status);
    else if (fio->device.bytes < fio->disk_at + fio->span_bytes)
        fail(fio, "a namespace too small", -EINVAL);
    fio->failed = fio->failed || status != 0;
}

/* Opens the device, one job after the other; the first then writes the span. */
static void prepare(struct job *job)
{
    struct fio *fio = job->fio;
    struct kernel *kernel = fio->host->kernel;
    struct kaddr buffer = { 0 };
    const bool first = job == &fio->job[0];
    while (fio->opening || (!first && !fio->filled))
        k_wait(kernel, &fio->turn_wait, UINT64_MAX);
    fio->opening = true;
    if (first)
        buffer = k_alloc(kernel, K_NODE_LOCAL, FILL_BYTES, K_PAGE_BYTES);
    if (!fio->failed)
        open_device(job);
    if (first && !fio->failed) {
        const int status = fill(job, buffer);
        if (status != 0)
            fail(fio, "writing the span", status);
    }
    fio->filled = true;
    fio->opening = false;
    k_wake(kernel, &fio->turn_wait);
}

static void job_body(void *arg)
{
    struct job *job = arg;
    struct fio *fio = job->fio;
    const struct fio_engine_ops *engine = fio->device.engine;
    prepare(job);
    if (!fio->failed) {
        if (engine->synchronous)
            run_sync(job);
        else
            run_async(job);
    }
    if (++fio->n_done == fio->n_jobs && fio->program->finite)
        program_finish(fio->program);
    if (engine->close != NULL && !fio->failed)
        engine->close(&job->job);
}

static void make_job(struct fio *fio, unsigned i)
{
    struct program *program = fio->program;
    const struct fio_engine_ops *engine = fio->device.engine;
    struct job *job = &fio->job[i];
    struct fio_job *seen = &job->job;
    char name[64], *state = NULL;
    job->fio = fio;
    *seen = (struct fio_job){ .device = &fio->device,
                              .number = i,
                              .cpu = fio->cpu + i,
                              .depth = fio->queue_depth,
                              .buffer_bytes = fio->block_bytes };
    seen->io_u = program_zalloc(program, seen->depth, sizeof(*seen->io_u));
    if (engine->job_bytes != 0)
        seen->state = program_zalloc(program, 1, engine->job_bytes);
    if (engine->io_u_bytes != 0)
        state = program_zalloc(program, seen->depth, engine->io_u_bytes);
    for (unsigned k = 0; k < seen->depth; k++) {
        seen->io_u[k].job = seen;
        seen->io_u[k].state = state != NULL ? state + k * engine->io_u_bytes : NULL;
    }
    snprintf(name, sizeof(name), "%.40s%u", program->name, i);
    sim_random_init(&job->random, sim_seed(program->workload->sim), name);
    program_lending_uses_cpu(program, fio->host, seen->cpu);
    k_thread_new(fio->host->kernel, name, (int)seen->cpu, job_body, job);
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
    for (unsigned i = 0; i < fio->n_jobs; i++)
        make_job(fio, i);
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
    const struct fio_engine_ops *engine = fio->device.engine;
    for (unsigned i = 0; fio->job != NULL && i < fio->n_jobs; i++)
        if (engine->release != NULL)
            engine->release(&fio->job[i].job);
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
