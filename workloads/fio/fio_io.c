/*
 * A job's requests: chosen, submitted, taken back, checked and counted, in the order of fio's
 * do_io(): submit until the queue is full, then take what iodepth_batch_complete_min and _max say;
 * wait where rates, pauses and traces say so. A request's latency begins before the call that
 * submits it and ends when the job has it back (fio's lat).
 */
#include <errno.h>

#include "workloads/fio/fio_internal.h"

/* Of checking or making data that a processor has just read: CRC32 of 8 bytes takes 3 cycles when
 * each depends on the one before (Fog, Instruction tables, Haswell). */
#define CRC32C_CYCLES_8 3u

/* ---- Completions ----------------------------------------------------------------------------- */

/* What the processor does with data that is verified. */
static void charge_verify(struct fio_thread *thread, struct fio_io_u *io_u)
{
    const enum fio_verify verify = thread->options->verify;
    if (verify == FIO_VERIFY_NONE || verify == FIO_VERIFY_NULL || fio_engine(thread)->put != NULL)
        return;
    if (io_u->write)
        k_touch_write(fio_kernel(thread), io_u->buffer, io_u->bytes);
    else
        k_touch(fio_kernel(thread), io_u->buffer, io_u->bytes);
    if (verify == FIO_VERIFY_CRC32C)
        k_compute(fio_kernel(thread), io_u->bytes / 8 * CRC32C_CYCLES_8);
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
    k_fault(fio_kernel(thread), "%s: byte %llu of %s: %#llx where %#llx was written",
            fio->program->name, (unsigned long long)at, thread->file->name,
            (unsigned long long)is->found, (unsigned long long)is->expected);
    k_wake(fio_kernel(thread), &fio->turn_wait);
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
    fio_stats_add(&thread->stats, io_u, !fio_engine(thread)->synchronous);
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
    const struct fio_engine_ops *engine = fio_engine(thread);
    const int status = engine->commit != NULL ? engine->commit(&thread->job) : 0;
    const uint64_t now_ps = k_now_ps(fio_kernel(thread));
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
    const unsigned n = fio_engine(thread)->reap(&thread->job, SIM_MIN(min, thread->in_flight),
                                                SIM_MIN(max, thread->job.depth), thread->done);
    const uint64_t now_ps = k_now_ps(fio_kernel(thread));
    if (statistics_on(thread, now_ps))
        fio_stats_batch(thread->stats.complete, n);
    for (unsigned i = 0; i < n; i++) {
        thread->done[i]->end_ps = now_ps;
        complete(thread, thread->done[i]);
    }
    return n;
}

/* Until nothing is under way. */
void fio_io_quiesce(struct fio_thread *thread)
{
    while (thread->in_flight != 0)
        reap(thread, 1, 1);
}

/* As the iodepth_batch settings say. */
void fio_io_take(struct fio_thread *thread)
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
    const struct fio_engine_ops *engine = fio_engine(thread);
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
    const struct fio_engine_ops *engine = fio_engine(thread);
    struct kernel *kernel = fio_kernel(thread);
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

static bool any_exits_all(const struct fio *fio)
{
    for (unsigned i = 0; i < fio->n_descriptions; i++)
        if (fio->description[i].options->exit_all)
            return true;
    return false;
}

void fio_sleep_until(struct fio_thread *thread, uint64_t until_ps)
{
    struct fio *fio = thread->fio;
    struct kernel *kernel = fio_kernel(thread);
    uint64_t now_ps;
    while (!fio_stops(thread) && (now_ps = k_now_ps(kernel)) < until_ps)
        if (any_exits_all(fio))
            k_wait(kernel, &fio->turn_wait, until_ps);
        else
            k_sleep(kernel, until_ps - now_ps);
}

/* Until this time, or the end of runtime. */
static void sleep_until(struct fio_thread *thread, uint64_t until_ps)
{
    fio_sleep_until(thread, SIM_MIN(until_ps, fio_end_ps(thread)));
}

/* It has waited for longer than it may work. */
static bool is_late(const struct fio_thread *thread)
{
    return fio_stops(thread) || k_now_ps(fio_kernel(thread)) >= fio_end_ps(thread);
}

/* Waits with an empty queue until the rate allows a request of this direction, or of the other one,
 * if that comes first; returns which. */
static unsigned pace(struct fio_thread *thread, unsigned direction)
{
    const struct fio_options *options = thread->options;
    const unsigned other = 1 - direction;
    const uint64_t now_ps = k_now_ps(fio_kernel(thread));
    if (thread->due_ps[direction] <= now_ps)
        return direction;
    if (options->reads && options->writes && thread->due_ps[other] < thread->due_ps[direction])
        direction = other;
    if (thread->due_ps[direction] <= now_ps)
        return direction;
    fio_io_quiesce(thread);
    sleep_until(thread, thread->due_ps[direction]);
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
void fio_io_flush(struct fio_thread *thread)
{
    fio_io_quiesce(thread);
    k_syscall(fio_kernel(thread));
    thread->stats.n_syncs++;
}

static struct fio_io_u *take_free(struct fio_thread *thread)
{
    struct fio_io_u *io_u = thread->free;
    thread->free = io_u->next;
    return io_u;
}

void fio_io_issue(struct fio_thread *thread, unsigned direction, uint64_t at, uint64_t bytes)
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
        fio_io_flush(thread);
}

void fio_io_next(struct fio_thread *thread)
{
    uint64_t at, bytes;
    const unsigned direction = pace(thread, fio_next_direction(thread));
    if (is_late(thread))
        return;
    k_compute(fio_kernel(thread), thread->fio->think_cycles);
    fio_next_place(thread, direction, &at, &bytes);
    fio_io_issue(thread, direction, thread->begin + at, bytes);
    set_due(thread, direction, bytes);
}

void fio_io_pause(struct fio_thread *thread)
{
    const struct fio_options *options = thread->options;
    if (options->think_ps == 0 || thread->issued % options->think_blocks != 0)
        return;
    fio_io_quiesce(thread);
    const uint64_t begin_ps = k_now_ps(fio_kernel(thread));
    uint64_t now_ps = begin_ps;
    while (now_ps < begin_ps + options->think_spin_ps && !is_late(thread)) {
        k_compute(fio_kernel(thread), 1000);
        now_ps = k_now_ps(fio_kernel(thread));
    }
    sleep_until(thread, begin_ps + options->think_ps);
}

/* A step of a trace when it is time; completions are taken meanwhile. */
void fio_io_replay(struct fio_thread *thread)
{
    const struct fio_step *step = &thread->trace->step[thread->step++];
    const struct fio_options *options = thread->options;
    const uint64_t due_ps =
        thread->loop_ps +
        (options->no_stall ? 0 : step->at_us * 100 / options->time_scale * SIM_PS_PER_US);
    while (k_now_ps(fio_kernel(thread)) < due_ps && !is_late(thread)) {
        if (thread->in_flight != 0)
            reap(thread, 0, thread->job.depth);
        else
            sleep_until(thread, due_ps);
    }
    if (is_late(thread))
        return;
    k_compute(fio_kernel(thread), thread->fio->think_cycles);
    if (step->action == FIO_ACTION_SYNC)
        fio_io_flush(thread);
    else
        fio_io_issue(thread, step->action == FIO_ACTION_WRITE ? FIO_WRITE : FIO_READ, step->offset,
                     step->bytes);
}

void fio_io_plain(struct fio_thread *thread)
{
    struct fio_io_u *io_u = take_free(thread);
    k_compute(fio_kernel(thread), thread->fio->think_cycles);
    choose_plain(thread, io_u);
    start(thread, io_u);
}
