/*
 * The jobs: threads that choose requests, submit them, take completions, and wait where rates,
 * pauses, traces and other jobs say so, in the order of fio's do_io(): submit until the queue is
 * full, then take what iodepth_batch_complete_min and _max say. A request's latency begins before
 * the call that submits it and ends when the job has it back (fio's lat).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/fio/fio_internal.h"

/* Of checking or making data that a processor has just read: CRC32 of 8 bytes takes 3 cycles when
 * each depends on the one before (Fog, Instruction tables, Haswell). */
#define CRC32C_CYCLES_8 3u

static struct kernel *kernel_of(const struct fio_thread *thread)
{
    return thread->fio->host->kernel;
}

static const struct fio_engine_ops *engine_of(const struct fio_thread *thread)
{
    return thread->job.device->engine;
}

void fio_fail(struct fio *fio, const char *what, int status)
{
    if (!fio->failed)
        program_fail(fio->program, "%s: the driver says %s", what, strerror(-status));
    fio->failed = true;
    k_wake(fio->host->kernel, &fio->turn_wait);
}

static bool stops(const struct fio_thread *thread)
{
    const struct fio *fio = thread->fio;
    return fio->failed || thread->stopped || program_ending(fio->program);
}

/* ---- Completions ----------------------------------------------------------------------------- */

/* What the processor does with data that is verified. */
static void charge_verify(struct fio_thread *thread, struct fio_io_u *io_u)
{
    const enum fio_verify verify = thread->options->verify;
    if (verify == FIO_VERIFY_NONE || verify == FIO_VERIFY_NULL || engine_of(thread)->put != NULL)
        return;
    if (io_u->write)
        k_touch_write(kernel_of(thread), io_u->buffer, io_u->bytes);
    else
        k_touch(kernel_of(thread), io_u->buffer, io_u->bytes);
    if (verify == FIO_VERIFY_CRC32C)
        k_compute(kernel_of(thread), io_u->bytes / 8 * CRC32C_CYCLES_8);
}

static void request_failed(struct fio_thread *thread, const struct fio_io_u *io_u)
{
    struct fio_stats *stats = &thread->stats;
    stats->n_errors++;
    stats->first_error = stats->first_error != 0 ? stats->first_error : -io_u->status;
    thread->fio->n_errors += program_measuring(thread->fio->program);
    if (!thread->options->continue_on[io_u->write ? FIO_WRITE : FIO_READ])
        fio_fail(thread->fio, "a request", io_u->status);
}

static void wrong_data(struct fio_thread *thread, const struct payload_difference *is, uint64_t at)
{
    struct fio *fio = thread->fio;
    fio->failed = true;
    k_fault(kernel_of(thread), "%s: byte %llu of %s: %#llx where %#llx was written",
            fio->program->name, (unsigned long long)at, thread->file->name,
            (unsigned long long)is->found, (unsigned long long)is->expected);
    k_wake(kernel_of(thread), &fio->turn_wait);
}

/* To be read back. */
static void remember_write(struct fio_thread *thread, const struct fio_io_u *io_u)
{
    if (thread->n_written == thread->room_written) {
        thread->room_written = 2 * thread->room_written + 256;
        thread->written = sim_grow(thread->written, thread->room_written, sizeof(*thread->written));
    }
    thread->written[thread->n_written++] = (struct fio_range){ io_u->offset - thread->file->begin,
                                                               io_u->bytes };
}

/* Of a mixed job only what it reads back must have been written, as in fio. */
static void verify(struct fio_thread *thread, struct fio_io_u *io_u)
{
    if (thread->options->writes && !thread->reads_back)
        return;
    charge_verify(thread, io_u);
    if (!fio_data_written(thread->file, io_u->offset - thread->file->begin, io_u->bytes)) {
        program_fail(thread->fio->program,
                     "verify: %s reads %llu bytes at %llu, which were never written", thread->name,
                     (unsigned long long)io_u->bytes,
                     (unsigned long long)(io_u->offset - thread->file->begin));
        fio_fail(thread->fio, "verify", -EILSEQ);
    }
}

static void count(struct fio_thread *thread, struct fio_io_u *io_u)
{
    struct fio *fio = thread->fio;
    const uint64_t latency_max_ps = thread->options->latency_max_ps;
    if (latency_max_ps != 0 && io_u->end_ps - io_u->start_ps > latency_max_ps)
        fio_fail(fio, "max_latency", -ETIMEDOUT);
    if (!program_measuring(fio->program) || io_u->end_ps < thread->counts_from_ps ||
        (!fio->from_file && fio->operations == 0 && fio->n_full < fio->n_threads))
        return;
    fio_stats_add(&thread->stats, io_u, !engine_of(thread)->synchronous);
    thread->measured++;
    fio_measured(thread, io_u);
}

static void complete(struct fio_thread *thread, struct fio_io_u *io_u)
{
    struct fio *fio = thread->fio;
    struct payload_difference is;
    uint64_t at;
    const bool right = fio_data_end(thread->file, io_u, &is, &at);
    thread->in_flight--;
    io_u->next = thread->free;
    thread->free = io_u;
    if (io_u->status != 0 && program_ending(fio->program))
        return; /* the device is taken away from under requests that it has not served yet */
    if (io_u->status != 0) {
        request_failed(thread, io_u);
        return;
    }
    if (!right) {
        wrong_data(thread, &is, at);
        return;
    }
    if (thread->options->verify != FIO_VERIFY_NONE && !io_u->write)
        verify(thread, io_u);
    else if (thread->options->verify != FIO_VERIFY_NONE && thread->options->do_verify)
        remember_write(thread, io_u);
    count(thread, io_u);
}

/* ---- Submissions ----------------------------------------------------------------------------- */

static void queue_is_full(struct fio_thread *thread)
{
    struct fio *fio = thread->fio;
    if (!thread->full && ++fio->n_full == fio->n_threads)
        fio->full_ps = k_now_ps(fio->host->kernel);
    thread->full = true;
}

static bool statistics_on(const struct fio_thread *thread, uint64_t now_ps)
{
    return program_measuring(thread->fio->program) && now_ps >= thread->counts_from_ps;
}

/* What is queued is under way afterwards. */
static void commit(struct fio_thread *thread)
{
    const struct fio_engine_ops *engine = engine_of(thread);
    const int status = engine->commit != NULL ? engine->commit(&thread->job) : 0;
    const uint64_t now_ps = k_now_ps(kernel_of(thread));
    if (thread->n_queued != 0 && statistics_on(thread, now_ps))
        fio_stats_batch(thread->stats.submit, thread->n_queued);
    for (; thread->queued != NULL; thread->queued = thread->queued->next)
        thread->queued->issue_ps = now_ps;
    thread->n_queued = 0;
    if (status != 0)
        fio_fail(thread->fio, "a submission", status);
}

/* Takes min to max events; returns how many there were. */
static unsigned reap(struct fio_thread *thread, unsigned min, unsigned max)
{
    if (thread->n_queued != 0)
        commit(thread);
    if (thread->in_flight == 0)
        return 0;
    const unsigned n = engine_of(thread)->reap(&thread->job, SIM_MIN(min, thread->in_flight),
                                               SIM_MIN(max, thread->job.depth), thread->done);
    const uint64_t now_ps = k_now_ps(kernel_of(thread));
    if (statistics_on(thread, now_ps))
        fio_stats_batch(thread->stats.complete, n);
    for (unsigned i = 0; i < n; i++) {
        thread->done[i]->end_ps = now_ps;
        complete(thread, thread->done[i]);
    }
    return n;
}

/* Until nothing is under way. */
static void quiesce(struct fio_thread *thread)
{
    while (thread->in_flight != 0)
        reap(thread, 1, 1);
}

/* As the iodepth_batch settings say. */
static void take_completions(struct fio_thread *thread)
{
    const struct fio_options *options = thread->options;
    const bool full = thread->free == NULL;
    const unsigned min = full ? SIM_MAX(options->complete_min, 1u) : 0;
    const unsigned max = options->complete_max != 0   ? options->complete_max
                         : options->complete_min != 0 ? options->complete_min
                                                      : thread->job.depth;
    const unsigned low = options->depth_low != 0 ? options->depth_low : thread->job.depth;
    if (full)
        queue_is_full(thread);
    else if (options->complete_min != 0)
        return;
    do
        reap(thread, min, max);
    while (full && thread->in_flight > low);
}

static bool submit(struct fio_thread *thread, struct fio_io_u *io_u)
{
    const struct fio_engine_ops *engine = engine_of(thread);
    int status;
    thread->in_flight++;
    while ((status = engine->submit(&thread->job, io_u)) == -EBUSY && thread->in_flight > 1) {
        thread->in_flight--;
        reap(thread, 1, 1);
        thread->in_flight++;
    }
    if (status == 0)
        return true;
    io_u->status = status;
    fio_fail(thread->fio, "a submission", status);
    complete(thread, io_u);
    return false;
}

static void start(struct fio_thread *thread, struct fio_io_u *io_u)
{
    const struct fio_engine_ops *engine = engine_of(thread);
    struct kernel *kernel = kernel_of(thread);
    fio_data_begin(thread->file, io_u);
    if (io_u->write)
        charge_verify(thread, io_u);
    io_u->start_ps = k_now_ps(kernel);
    if (thread->log != NULL)
        fprintf(thread->log, "%llu %s %s %llu %llu\n",
                (unsigned long long)((io_u->start_ps - thread->begun_ps) / SIM_PS_PER_US),
                thread->file->name, io_u->write ? "write" : "read",
                (unsigned long long)(io_u->offset - thread->file->begin),
                (unsigned long long)io_u->bytes);
    if (engine->synchronous)
        queue_is_full(thread);
    if (!submit(thread, io_u))
        return;
    if (statistics_on(thread, io_u->start_ps))
        fio_stats_depth(&thread->stats, thread->in_flight);
    if (engine->synchronous) {
        io_u->end_ps = k_now_ps(kernel);
        complete(thread, io_u);
        return;
    }
    io_u->next = thread->queued;
    thread->queued = io_u;
    thread->n_queued++;
    const uint32_t batch = thread->options->batch_submit;
    if (thread->n_queued >= (batch != 0 ? batch : thread->job.depth))
        commit(thread);
}

/* ---- What comes next ------------------------------------------------------------------------- */

/* Any block that is not in use, then a direction. */
static void choose_plain(struct fio_thread *thread, struct fio_io_u *io_u)
{
    struct fio *fio = thread->fio;
    uint64_t block;
    do
        block = sim_random_below(&thread->next.offsets, fio->span_bytes / fio->block_bytes);
    while (thread->file->busy[block]);
    io_u->write = sim_random_unit(&thread->next.offsets) >= fio->read_ratio;
    io_u->offset = thread->file->begin + block * fio->block_bytes;
    io_u->bytes = fio->block_bytes;
}

static uint64_t rate_of(const struct fio_thread *thread, unsigned direction)
{
    const struct fio_options *options = thread->options;
    if (options->rate_iops[direction] != 0)
        return options->rate_iops[direction] * options->size_of[direction].min;
    return options->rate[direction];
}

/* Waits with an empty queue until the rate allows a request of this direction, or of the other one, if
 * that comes first; returns which. */
static unsigned pace(struct fio_thread *thread, unsigned direction)
{
    const struct fio_options *options = thread->options;
    const unsigned other = 1 - direction;
    uint64_t now_ps = k_now_ps(kernel_of(thread));
    if (thread->due_ps[direction] <= now_ps)
        return direction;
    if (options->reads && options->writes && thread->due_ps[other] < thread->due_ps[direction])
        direction = other;
    if (thread->due_ps[direction] <= now_ps)
        return direction;
    quiesce(thread);
    now_ps = k_now_ps(kernel_of(thread));
    if (thread->due_ps[direction] > now_ps)
        k_sleep(kernel_of(thread), thread->due_ps[direction] - now_ps);
    return direction;
}

static void set_due(struct fio_thread *thread, unsigned direction, uint64_t bytes)
{
    const uint64_t rate = rate_of(thread, direction);
    if (rate == 0)
        return;
    const double mean_ps = (double)bytes * 1e12 / (double)rate;
    thread->due_ps[direction] += (uint64_t)(thread->options->poisson
                                                ? sim_random_exponential(&thread->times, mean_ps)
                                                : mean_ps);
}

static bool overlaps(const struct fio_thread *thread, const struct fio_io_u *io_u)
{
    for (unsigned i = 0; i < thread->job.depth; i++) {
        const struct fio_io_u *other = &thread->job.io_u[i];
        bool is_free = other == io_u;
        for (const struct fio_io_u *f = thread->free; f != NULL && !is_free; f = f->next)
            is_free = f == other;
        if (!is_free && other->offset < io_u->offset + io_u->bytes &&
            io_u->offset < other->offset + other->bytes)
            return true;
    }
    return false;
}

/* fsync() of a raw device without a volatile cache. */
static void flush(struct fio_thread *thread)
{
    quiesce(thread);
    k_syscall(kernel_of(thread));
    thread->stats.n_syncs++;
}

static struct fio_io_u *take_free(struct fio_thread *thread)
{
    struct fio_io_u *io_u = thread->free;
    thread->free = io_u->next;
    return io_u;
}

static void issue_one(struct fio_thread *thread, unsigned direction, uint64_t at, uint64_t bytes)
{
    struct fio_io_u *io_u = take_free(thread);
    io_u->write = direction == FIO_WRITE;
    io_u->offset = thread->file->begin + at;
    io_u->bytes = bytes;
    while (thread->options->serialize_overlap && overlaps(thread, io_u))
        reap(thread, 1, 1);
    thread->issued++;
    thread->issued_bytes[direction] += bytes;
    start(thread, io_u);
    thread->n_writes += direction == FIO_WRITE;
    if (direction == FIO_WRITE && thread->options->sync_after != 0 &&
        thread->n_writes % thread->options->sync_after == 0)
        flush(thread);
}

static void next_request(struct fio_thread *thread)
{
    uint64_t at, bytes;
    const unsigned direction = pace(thread, fio_next_direction(thread));
    if (stops(thread))
        return;
    k_compute(kernel_of(thread), thread->fio->think_cycles);
    fio_next_place(thread, direction, &at, &bytes);
    issue_one(thread, direction, thread->begin + at, bytes);
    set_due(thread, direction, bytes);
}

static void pause_between(struct fio_thread *thread)
{
    const struct fio_options *options = thread->options;
    if (options->think_ps == 0 || thread->issued % options->think_blocks != 0)
        return;
    quiesce(thread);
    const uint64_t begin_ps = k_now_ps(kernel_of(thread));
    uint64_t now_ps = begin_ps;
    while (now_ps < begin_ps + options->think_spin_ps && !stops(thread)) {
        k_compute(kernel_of(thread), 1000);
        now_ps = k_now_ps(kernel_of(thread));
    }
    if (now_ps < begin_ps + options->think_ps && !stops(thread))
        k_sleep(kernel_of(thread), begin_ps + options->think_ps - now_ps);
}

/* A step of a trace when it is time; completions are taken meanwhile. */
static void replay_step(struct fio_thread *thread)
{
    const struct fio_step *step = &thread->trace->step[thread->step++];
    const struct fio_options *options = thread->options;
    const uint64_t due_ps =
        thread->begun_ps +
        (options->no_stall ? 0 : step->at_us * 100 / options->time_scale * SIM_PS_PER_US);
    uint64_t now_ps;
    while ((now_ps = k_now_ps(kernel_of(thread))) < due_ps && !stops(thread)) {
        if (thread->in_flight != 0)
            reap(thread, 0, thread->job.depth);
        else
            k_sleep(kernel_of(thread), due_ps - now_ps);
    }
    if (stops(thread))
        return;
    k_compute(kernel_of(thread), thread->fio->think_cycles);
    if (step->action == FIO_ACTION_SYNC)
        flush(thread);
    else
        issue_one(thread, step->action == FIO_ACTION_WRITE ? FIO_WRITE : FIO_READ, step->offset,
                  step->bytes);
}

/* ---- A job ----------------------------------------------------------------------------------- */

static bool over_plain(const struct fio_thread *thread)
{
    const struct fio *fio = thread->fio;
    return stops(thread) || (fio->operations != 0 && thread->measured >= fio->operations);
}

static bool out_of_time(struct fio_thread *thread)
{
    const uint64_t runtime_ps = thread->options->runtime_ps;
    return stops(thread) ||
           (runtime_ps != 0 && k_now_ps(kernel_of(thread)) >= thread->counts_from_ps + runtime_ps);
}

static bool over(struct fio_thread *thread)
{
    const struct fio_options *options = thread->options;
    const uint64_t bytes = thread->issued_bytes[FIO_READ] + thread->issued_bytes[FIO_WRITE];
    if (out_of_time(thread) || (options->number_ios != 0 && thread->issued >= options->number_ios))
        return true;
    if (thread->trace != NULL)
        return thread->step == thread->trace->n_steps;
    return !options->time_based && bytes >= thread->io_bytes;
}

static void run_plain(struct fio_thread *thread)
{
    while (!over_plain(thread)) {
        struct fio_io_u *io_u = take_free(thread);
        k_compute(kernel_of(thread), thread->fio->think_cycles);
        choose_plain(thread, io_u);
        start(thread, io_u);
        if (thread->in_flight != 0)
            take_completions(thread);
    }
    quiesce(thread);
}

static int by_place(const void *a, const void *b)
{
    const struct fio_range *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Reads back what this loop wrote, in the order of the writes, or of places if these were random. */
static void read_back(struct fio_thread *thread)
{
    thread->reads_back = true;
    if (thread->options->random && thread->n_written > 1)
        qsort(thread->written, thread->n_written, sizeof(*thread->written), by_place);
    for (uint64_t i = 0; i < thread->n_written && !stops(thread); i++) {
        const struct fio_range *range = &thread->written[i];
        if (i != 0 && range->at == range[-1].at && range->bytes == range[-1].bytes)
            continue;
        k_compute(kernel_of(thread), thread->fio->think_cycles);
        issue_one(thread, FIO_READ, range->at, range->bytes);
        if (thread->in_flight != 0)
            take_completions(thread);
    }
    quiesce(thread);
    thread->reads_back = false;
    thread->n_written = 0;
}

static void run_loop(struct fio_thread *thread)
{
    thread->issued = thread->step = 0;
    thread->issued_bytes[FIO_READ] = thread->issued_bytes[FIO_WRITE] = 0;
    fio_next_rewind(thread);
    while (!over(thread)) {
        if (thread->trace != NULL)
            replay_step(thread);
        else
            next_request(thread);
        if (thread->in_flight != 0)
            take_completions(thread);
        pause_between(thread);
    }
    quiesce(thread);
    if (thread->options->sync_at_end && thread->n_writes != 0)
        flush(thread);
    read_back(thread);
}

/* With what the job has for it, if the engine has no way of its own. */
static int fill_one(struct fio_thread *thread, uint64_t offset, uint64_t bytes, uint64_t tag)
{
    const struct fio_engine_ops *engine = engine_of(thread);
    struct fio_job *job = &thread->job;
    struct fio_io_u *io_u = &job->io_u[0];
    int status = 0;
    for (uint64_t at = 0; status == 0 && at < bytes; at += io_u->bytes) {
        io_u->write = true;
        io_u->offset = offset + at;
        io_u->bytes = SIM_MIN(bytes - at, job->buffer_bytes);
        fio_data_put(io_u, 0, payload_mark_add(tag, at), io_u->bytes);
        status = engine->submit(job, io_u);
        if (status == 0 && engine->commit != NULL)
            status = engine->commit(job);
        while (status == 0 && !engine->synchronous && engine->reap(job, 1, 1, &io_u) == 0)
            ;
        status = status != 0 ? status : io_u->status;
    }
    return status;
}

static int fill(struct fio_thread *thread, struct kaddr buffer)
{
    struct fio_file *file = thread->file;
    const struct fio_engine_ops *engine = engine_of(thread);
    int status = buffer.v != 0 ? 0 : -ENOMEM;
    for (uint64_t at = 0; status == 0 && at < file->bytes; at += FIO_FILL_BYTES) {
        const uint64_t tag = fio_data_tag(file, 0, at),
                       bytes = SIM_MIN(file->bytes - at, (uint64_t)FIO_FILL_BYTES);
        payload_fill(kernel_of(thread), buffer, tag, bytes);
        if (engine->transfer != NULL)
            status = engine->transfer(&thread->job, true, file->begin + at, buffer, bytes);
        else
            status = fill_one(thread, file->begin + at, bytes, tag);
    }
    return status;
}

static void open_device(struct fio_thread *thread)
{
    struct fio *fio = thread->fio;
    const struct fio_device *device = thread->job.device;
    const struct fio_file *file = thread->file;
    const int status = device->engine->open(&thread->job);
    thread->opened = status == 0;
    if (status == -EFBIG)
        program_fail(fio->program, "requests of %llu bytes are larger than the device takes",
                     (unsigned long long)thread->job.buffer_bytes);
    else if (status != 0)
        fio_fail(fio, device->name, status);
    else if (device->bytes <
             file->begin + (fio->from_file ? thread->begin + thread->span : file->bytes))
        fio_fail(fio, "a namespace too small", -EINVAL);
    fio->failed = fio->failed || status != 0;
}

/* Opens the device, one job after the other, and writes the blocks if this is the job that does. */
static void prepare(struct fio_thread *thread, bool fills)
{
    struct fio *fio = thread->fio;
    struct kernel *kernel = kernel_of(thread);
    struct kaddr buffer = { 0 };
    while (fio->opening || (thread->file->fill && !fills && !thread->file->filled))
        k_wait(kernel, &fio->turn_wait, UINT64_MAX);
    fio->opening = true;
    if (fills)
        buffer = k_alloc(kernel, K_NODE_LOCAL, FIO_FILL_BYTES, K_PAGE_BYTES);
    if (!fio->failed)
        open_device(thread);
    if (fills && !fio->failed) {
        const int status = fill(thread, buffer);
        if (status != 0)
            fio_fail(fio, "writing the span", status);
    }
    thread->file->filled = thread->file->filled || fills;
    fio->opening = false;
    k_wake(kernel, &fio->turn_wait);
}

/* False: jobs that this one waits for are still at work. */
static bool may_begin(const struct fio_thread *thread)
{
    const struct fio *fio = thread->fio;
    const struct fio_group_job *own = &fio->description[thread->description];
    for (unsigned i = 0; i < own->after; i++)
        if (fio->description[i].n_running != 0)
            return false;
    return fio->n_ready == fio->n_threads &&
           (own->waits_for < 0 || fio->description[own->waits_for].n_running == 0);
}

/* All blocks are there, jobs before this one are done, startdelay is over, the device is open. */
static void wait_to_begin(struct fio_thread *thread)
{
    struct fio *fio = thread->fio;
    const struct fio_options *options = thread->options;
    if (thread->file->fill)
        prepare(thread, true);
    fio->n_ready++;
    k_wake(kernel_of(thread), &fio->turn_wait);
    while (!stops(thread) && !may_begin(thread))
        k_wait(kernel_of(thread), &fio->turn_wait, UINT64_MAX);
    const uint64_t range_ps = options->delay_ps[1] - options->delay_ps[0] + 1;
    if (!stops(thread) && options->delay_ps[1] != 0)
        k_sleep(kernel_of(thread),
                options->delay_ps[0] + sim_random_below(&thread->times, range_ps));
    if (!stops(thread) && !thread->opened)
        prepare(thread, false);
}

static void begin_log(struct fio_thread *thread)
{
    const char *path = thread->options->write_iolog;
    if (path == NULL)
        return;
    thread->log = fopen(path, "w");
    if (thread->log == NULL)
        program_fail(thread->fio->program, "%s: %s", path, strerror(errno));
    else
        fprintf(thread->log, "fio version 3 iolog\n0 %s add\n0 %s open\n", thread->file->name,
                thread->file->name);
    thread->fio->failed = thread->fio->failed || thread->log == NULL;
}

static void end_log(struct fio_thread *thread)
{
    if (thread->log == NULL)
        return;
    fprintf(thread->log, "%llu %s close\n",
            (unsigned long long)((thread->stats.end_ps - thread->begun_ps) / SIM_PS_PER_US),
            thread->file->name);
    const bool bad = ferror(thread->log) != 0;
    if ((fclose(thread->log) != 0 || bad) && !thread->fio->failed)
        fio_fail(thread->fio, thread->options->write_iolog, -EIO);
    thread->log = NULL;
}

static void run_from_file(struct fio_thread *thread)
{
    wait_to_begin(thread);
    thread->begun_ps = k_now_ps(kernel_of(thread));
    thread->counts_from_ps = thread->begun_ps + thread->options->ramp_ps;
    thread->due_ps[FIO_READ] = thread->due_ps[FIO_WRITE] = thread->begun_ps;
    if (!stops(thread))
        begin_log(thread);
    for (uint32_t i = 0; i < thread->options->loops && !out_of_time(thread); i++)
        run_loop(thread);
    thread->stats.end_ps = k_now_ps(kernel_of(thread));
    end_log(thread);
}

static void finish(struct fio_thread *thread)
{
    struct fio *fio = thread->fio;
    struct fio_group_job *own = &fio->description[thread->description];
    const struct fio_engine_ops *engine = engine_of(thread);
    thread->ended = true;
    if (fio->from_file) {
        own->n_running--;
        for (unsigned i = 0; thread->options->exit_all && i < fio->n_threads; i++)
            if (fio->description[fio->thread[i]->description].group == own->group)
                fio->thread[i]->stopped = true;
        k_wake(kernel_of(thread), &fio->turn_wait);
    }
    if (++fio->n_done == fio->n_threads && fio->program->finite)
        program_finish(fio->program);
    if (engine->close != NULL && thread->opened && !fio->failed)
        engine->close(&thread->job);
}

static void thread_body(void *arg)
{
    struct fio_thread *thread = arg;
    struct fio *fio = thread->fio;
    if (fio->from_file) {
        run_from_file(thread);
    } else {
        prepare(thread, thread == fio->thread[0]);
        thread->begun_ps = thread->counts_from_ps = k_now_ps(kernel_of(thread));
        run_plain(thread);
        thread->stats.end_ps = k_now_ps(kernel_of(thread));
    }
    finish(thread);
}

/* ---- Threads --------------------------------------------------------------------------------- */

/* Each choice has a stream of random numbers of its own. */
static void seed(struct fio_thread *thread)
{
    const struct fio_options *options = thread->options;
    const uint64_t from = options->has_seed ? options->seed
                                            : sim_seed(thread->fio->program->workload->sim);
    char name[80];
    sim_random_init(&thread->next.offsets, from, thread->name);
    snprintf(name, sizeof(name), "%s.mix", thread->name);
    sim_random_init(&thread->next.mix, from, name);
    snprintf(name, sizeof(name), "%s.sizes", thread->name);
    sim_random_init(&thread->next.sizes, from, name);
    snprintf(name, sizeof(name), "%s.times", thread->name);
    sim_random_init(&thread->times, from, name);
}

static void make_thread(struct fio_thread *thread)
{
    struct program *program = thread->fio->program;
    const struct fio_engine_ops *engine = engine_of(thread);
    struct fio_job *job = &thread->job;
    char *state = NULL;
    job->io_u = program_zalloc(program, job->depth, sizeof(*job->io_u));
    thread->done = program_zalloc(program, job->depth, sizeof(*thread->done));
    if (engine->job_bytes != 0)
        job->state = program_zalloc(program, 1, engine->job_bytes);
    if (engine->io_u_bytes != 0)
        state = program_zalloc(program, job->depth, engine->io_u_bytes);
    for (unsigned i = job->depth; i-- > 0;) {
        job->io_u[i].job = job;
        job->io_u[i].state = state != NULL ? state + i * engine->io_u_bytes : NULL;
        job->io_u[i].next = thread->free;
        thread->free = &job->io_u[i];
    }
    seed(thread);
    if (thread->fio->from_file && thread->trace == NULL)
        fio_next_init(thread);
}

void fio_run_start(struct fio *fio)
{
    for (unsigned i = 0; i < fio->n_files; i++)
        fio_data_init(fio->file[i], fio->program, !fio->from_file);
    for (unsigned i = 0; i < fio->n_threads; i++)
        make_thread(fio->thread[i]);
    for (unsigned i = 0; i < fio->n_threads && !program_failed(fio->program); i++) {
        struct fio_thread *thread = fio->thread[i];
        program_lending_uses_cpu(fio->program, fio->host, thread->job.cpu);
        k_thread_new(fio->host->kernel, thread->name, (int)thread->job.cpu, thread_body, thread);
    }
}
