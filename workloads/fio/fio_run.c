/*
 * The life of a job: its blocks are written, unless they are there, it opens the device, waits for
 * the jobs before it and for programs beside it, does its loops, reads back what it has written.
 * One thread for each clone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "models/nvme/nvme.h"
#include "workloads/fio/fio_internal.h"

#define NSID      1u
#define OTHERS_PS SIM_PS_PER_US /* between two looks whether other programs may begin */

void fio_fail(struct fio *fio, const char *what, int status)
{
    if (!fio->failed)
        program_fail(fio->program, "%s: the driver says %s", what, strerror(-status));
    fio->failed = true;
    k_wake(fio->host->kernel, &fio->turn_wait);
}

/* ---- Loops ----------------------------------------------------------------------------------- */

static bool over_plain(const struct fio_thread *thread)
{
    const struct fio *fio = thread->fio;
    return fio_stops(thread) || (fio->operations != 0 && thread->measured >= fio->operations);
}

static bool out_of_time(struct fio_thread *thread)
{
    return fio_stops(thread) || k_now_ps(fio_kernel(thread)) >= fio_end_ps(thread);
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
        fio_io_plain(thread);
        if (thread->in_flight != 0)
            fio_io_take(thread);
    }
    fio_io_quiesce(thread);
}

static int by_place(const void *a, const void *b)
{
    const struct fio_range *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Reads back what this loop wrote, in the order of the writes, or of places if these were
 * random. */
static void read_back(struct fio_thread *thread)
{
    thread->reads_back = true;
    if (thread->options->random && thread->n_written > 1)
        qsort(thread->written, thread->n_written, sizeof(*thread->written), by_place);
    for (uint64_t i = 0; i < thread->n_written && !fio_stops(thread); i++) {
        const struct fio_range *range = &thread->written[i];
        if (i != 0 && range->at == range[-1].at && range->bytes == range[-1].bytes)
            continue;
        k_compute(fio_kernel(thread), thread->fio->think_cycles);
        fio_io_issue(thread, FIO_READ, range->at, range->bytes);
        if (thread->in_flight != 0)
            fio_io_take(thread);
    }
    fio_io_quiesce(thread);
    thread->reads_back = false;
    thread->n_written = 0;
}

static void run_loop(struct fio_thread *thread)
{
    thread->loop_ps = k_now_ps(fio_kernel(thread));
    thread->issued = thread->step = 0;
    thread->issued_bytes[FIO_READ] = thread->issued_bytes[FIO_WRITE] = 0;
    fio_next_rewind(thread);
    while (!over(thread)) {
        if (thread->trace != NULL)
            fio_io_replay(thread);
        else
            fio_io_next(thread);
        if (thread->in_flight != 0)
            fio_io_take(thread);
        fio_io_pause(thread);
    }
    fio_io_quiesce(thread);
    if (thread->options->sync_at_end && thread->n_writes != 0)
        fio_io_flush(thread);
    read_back(thread);
}

/* With what the job has for it, if the engine has no way of its own. */
static int fill_one(struct fio_thread *thread, uint64_t offset, uint64_t bytes, uint64_t tag)
{
    const struct fio_engine_ops *engine = fio_engine(thread);
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

/* No request is for less than a unit. */
static uint64_t whole_units(const struct fio_file *file, uint64_t bytes)
{
    return bytes / file->unit_bytes * file->unit_bytes;
}

static int fill(struct fio_thread *thread, struct kaddr buffer)
{
    struct fio_file *file = thread->file;
    const struct fio_engine_ops *engine = fio_engine(thread);
    int status = buffer.v != 0 ? 0 : -ENOMEM;
    const uint64_t end = whole_units(file, file->bytes);
    for (uint64_t at = 0; status == 0 && at < end; at += FIO_FILL_BYTES) {
        const uint64_t tag = fio_data_tag(file, 0, at),
                       bytes = SIM_MIN(end - at, (uint64_t)FIO_FILL_BYTES);
        payload_fill(fio_kernel(thread), buffer, tag, bytes);
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
    struct kernel *kernel = fio_kernel(thread);
    struct kaddr buffer = { 0 };
    while (fio->opening || (thread->file->fill && !fills && !thread->file->filled))
        k_wait(kernel, &fio->turn_wait, UINT64_MAX);
    fio->opening = true;
    if (fills)
        buffer = k_alloc(kernel, K_NODE_LOCAL, FIO_FILL_BYTES, K_PAGE_BYTES);
    if (!fio->failed && !fio_stops(thread))
        open_device(thread);
    if (fills && thread->opened && !fio->failed) {
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

/* No job has to end before this one begins: it may hold its queue pair from the beginning. */
static bool is_first(const struct fio_thread *thread)
{
    const struct fio_group_job *own = &thread->fio->description[thread->description];
    return own->after == 0 && own->waits_for < 0;
}

/* Programs with job files begin together; those on other hosts have other kernels, which cannot
 * wake this one's threads. */
static void wait_for_others(struct fio_thread *thread)
{
    const struct fio *first = thread->fio->first;
    while (!fio_stops(thread) && first->n_all_ready < first->n_all_threads)
        k_sleep(fio_kernel(thread), OTHERS_PS);
}

/* All blocks are there and devices open, of all programs; jobs before this one are done, startdelay
 * is over. */
static void wait_to_begin(struct fio_thread *thread)
{
    struct fio *fio = thread->fio;
    const struct fio_options *options = thread->options;
    const bool fills = thread->file->fill && !thread->file->filled;
    if (fills || is_first(thread))
        prepare(thread, fills);
    fio->n_ready++;
    fio->first->n_all_ready++;
    k_wake(fio_kernel(thread), &fio->turn_wait);
    while (!fio_stops(thread) && !may_begin(thread))
        k_wait(fio_kernel(thread), &fio->turn_wait, UINT64_MAX);
    wait_for_others(thread);
    const uint64_t range_ps = options->delay_ps[1] - options->delay_ps[0] + 1;
    if (!fio_stops(thread) && options->delay_ps[1] != 0)
        fio_sleep_until(thread, k_now_ps(fio_kernel(thread)) + options->delay_ps[0] +
                                    sim_random_below(&thread->times, range_ps));
    if (!fio_stops(thread) && !thread->opened)
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
    thread->begun_ps = k_now_ps(fio_kernel(thread));
    thread->counts_from_ps = thread->begun_ps + thread->options->ramp_ps;
    thread->due_ps[FIO_READ] = thread->due_ps[FIO_WRITE] = thread->begun_ps;
    if (!fio_stops(thread))
        begin_log(thread);
    for (uint32_t i = 0; i < thread->options->loops && !out_of_time(thread); i++)
        run_loop(thread);
    thread->stats.end_ps = k_now_ps(fio_kernel(thread));
    end_log(thread);
}

/* In turn with jobs that open it. */
static void close_device(struct fio_thread *thread)
{
    struct fio *fio = thread->fio;
    const struct fio_engine_ops *engine = fio_engine(thread);
    if (engine->close == NULL || !thread->opened)
        return;
    while (fio->opening)
        k_wait(fio_kernel(thread), &fio->turn_wait, UINT64_MAX);
    fio->opening = true;
    engine->close(&thread->job);
    fio->opening = false;
    k_wake(fio_kernel(thread), &fio->turn_wait);
}

/* Jobs that wait for this one begin. */
static void end_job(struct fio_thread *thread)
{
    struct fio *fio = thread->fio;
    struct fio_group_job *own = &fio->description[thread->description];
    close_device(thread);
    own->n_running--;
    for (unsigned i = 0; thread->options->exit_all && i < fio->n_threads; i++)
        if (fio->description[fio->thread[i]->description].group == own->group)
            fio->thread[i]->stopped = true;
    k_wake(fio_kernel(thread), &fio->turn_wait);
}

static void finish(struct fio_thread *thread)
{
    struct fio *fio = thread->fio;
    thread->ended = true;
    if (fio->from_file)
        end_job(thread);
    if (++fio->n_done == fio->n_threads && fio->program->finite)
        program_finish(fio->program);
    if (!fio->from_file)
        close_device(thread);
    fio->program->closing = ++fio->n_closed < fio->n_threads;
}

static void thread_body(void *arg)
{
    struct fio_thread *thread = arg;
    struct fio *fio = thread->fio;
    if (fio->from_file) {
        run_from_file(thread);
    } else {
        prepare(thread, thread->file->fill && !thread->file->filled && thread == fio->thread[0]);
        thread->begun_ps = thread->counts_from_ps = k_now_ps(fio_kernel(thread));
        run_plain(thread);
        thread->stats.end_ps = k_now_ps(fio_kernel(thread));
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
    char name[96];
    if (thread->fio->from_file) /* jobs may have one name */
        snprintf(name, sizeof(name), "%s#%u", thread->name, thread->job.number);
    else
        snprintf(name, sizeof(name), "%s", thread->name);
    const size_t n = strlen(name);
    sim_random_init(&thread->next.offsets, from, name);
    snprintf(name + n, sizeof(name) - n, ".mix");
    sim_random_init(&thread->next.mix, from, name);
    snprintf(name + n, sizeof(name) - n, ".sizes");
    sim_random_init(&thread->next.sizes, from, name);
    snprintf(name + n, sizeof(name) - n, ".times");
    sim_random_init(&thread->times, from, name);
}

static void make_thread(struct fio_thread *thread)
{
    struct program *program = thread->fio->program;
    const struct fio_engine_ops *engine = fio_engine(thread);
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

/* What jobs read of it was written before the run. */
static void lay_out(const struct fio *fio, struct fio_file *file)
{
    struct model *model = NULL;
    uint64_t end = 0;
    for (unsigned i = 0; i < fio->n_threads; i++) {
        const struct fio_thread *thread = fio->thread[i];
        if (thread->file != file || !thread->options->reads)
            continue;
        model = thread->job.device->model;
        end = SIM_MAX(end, thread->begin + thread->span);
        if (thread->trace != NULL)
            end = SIM_MAX(end, thread->trace->end);
    }
    file->filled = true;
    if (model == NULL)
        return;
    file->fill = true;
    nvme_hold(model, NSID, file->begin, whole_units(file, end), fio_data_tag(file, 0, 0));
}

void fio_run_start(struct fio *fio)
{
    if (fio->from_file)
        fio->first->n_all_threads += fio->n_threads;
    for (unsigned i = 0; i < fio->n_files; i++)
        fio_data_init(fio->file[i], fio->program, !fio->from_file);
    for (unsigned i = 0; fio->laid_out && i < fio->n_files; i++)
        lay_out(fio, fio->file[i]);
    for (unsigned i = 0; i < fio->n_threads; i++)
        make_thread(fio->thread[i]);
    for (unsigned i = 0; i < fio->n_threads && !program_failed(fio->program); i++) {
        struct fio_thread *thread = fio->thread[i];
        program_lending_uses_cpu(fio->program, fio->host, thread->job.cpu);
        k_thread_new(fio->host->kernel, thread->name, (int)thread->job.cpu, thread_body, thread);
        fio->program->closing = true;
    }
}
