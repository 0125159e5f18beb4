/*
 * From descriptions of jobs to threads, blocks and devices, and all mistakes that can be told
 * before time starts.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "workloads/fio/fio.h"
#include "workloads/fio/fio_internal.h"

#define DEVICES_NAMED_MAX 4u

/* What is wrong with keys of a job, "bs, offset; bsrange" (those after the semicolon bear on it
 * without being named): at its section, or, if one of them has been set by job_options, at that
 * setting, once for all jobs. */
__attribute__((format(printf, 4, 5))) static void wrong(struct sim_error_list *errors,
                                                        const struct fio_options *options,
                                                        const char *keys, const char *fmt, ...)
{
    struct fio_override *override = options->override;
    va_list args;
    va_start(args, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, args);
    va_end(args);
    const int n = (int)strcspn(keys, ";");
    if (!fio_options_overridden(options, keys))
        sim_error_add(errors, options->file, options->line, "[%s]: %.*s: %s", options->name, n,
                      keys, text);
    else if (g_hash_table_add(override->told, g_strdup(keys)))
        sim_error_add(errors, override->file, override->line, "%s: %.*s: %s (job [%s])",
                      override->path, n, keys, text, options->name);
}

/* ---- Devices --------------------------------------------------------------------------------- */

/* Engines of fio 3 that are not here: a job file may name one where `engine` chooses another. */
static bool is_fios(const char *name)
{
    static const char *const fios[] = {
        "cpuio",      "dev-dax",    "dfs",      "e4defrag",  "exec",       "falloc",
        "filecreate", "filedelete", "filestat", "ftruncate", "gfapi",      "gfapi_async",
        "guasi",      "http",       "ime_aio",  "ime_psync", "ime_psyncv", "io_uring_cmd",
        "libblkio",   "libcufile",  "libhdfs",  "libiscsi",  "libpmem",    "libzbc",
        "mmap",       "mtd",        "nbd",      "net",       "netsplice",  "nfs",
        "null",       "pmemblk",    "posixaio", "rados",     "rbd",        "rdma",
        "sg",         "solarisaio", "splice",   "vsync",     "windowsaio", "xnvme",
        NULL
    };
    return g_strv_contains(fios, name);
}

static const struct fio_engine_ops *engine_named(const char *name)
{
    static const char *const same[][2] = { { "psync", "sync" },
                                           { "pvsync", "sync" },
                                           { "pvsync2", "sync" } };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(same); i++)
        if (strcmp(name, same[i][0]) == 0)
            name = same[i][1];
    return fio_engine_find(name);
}

static void no_engine(const struct fio_options *options, struct sim_error_list *errors)
{
    g_autofree char *suggestion = sim_suggestion(options->engine, fio_engine_names);
    wrong(errors, options, "ioengine", "no engine \"%s\"%s%s", options->engine,
          *suggestion != '\0' ? "; " : "", suggestion);
}

/* Of the setting `engine`, else of the job. A name that is none is a mistake in either case. */
static const struct fio_engine_ops *engine_of(struct fio *fio, const struct fio_options *options,
                                              struct sim_error_list *errors)
{
    const bool chosen = *fio->engine_name != '\0';
    const struct fio_engine_ops *own = engine_named(options->engine != NULL ? options->engine
                                                                            : "sync");
    if (own == NULL && !(chosen && is_fios(options->engine))) {
        no_engine(options, errors);
        return NULL;
    }
    if (!chosen)
        return own;
    const struct fio_engine_ops *engine = engine_named(fio->engine_name);
    if (engine == NULL)
        program_mistake(fio->program, "engine", errors, "an engine", fio_engine_names);
    return engine;
}

/* The device of one name for one engine; checked once. NULL after a mistake. */
static struct fio_device *device_of(struct fio *fio, const struct fio_engine_ops *engine,
                                    const char *name, uint64_t request_bytes,
                                    struct sim_error_list *errors)
{
    for (unsigned i = 0; i < fio->n_devices; i++) {
        struct fio_device *known = &fio->device[i];
        if (known->engine != engine || strcmp(known->name, name) != 0)
            continue;
        known->request_bytes_max = SIM_MAX(known->request_bytes_max, request_bytes);
        return known->bad ? NULL : known;
    }
    if (fio->n_devices == FIO_DEVICES_MAX) {
        program_mistake(fio->program, "job_file", errors, "fewer devices and engines", NULL);
        return NULL;
    }
    struct fio_device *device = &fio->device[fio->n_devices++];
    *device = (struct fio_device){ .engine = engine,
                                   .program = fio->program,
                                   .host = fio->host,
                                   .name = name,
                                   .request_bytes_max = request_bytes };
    if (engine->device_bytes != 0)
        device->state = program_zalloc(fio->program, 1, engine->device_bytes);
    device->bad = !engine->check(device, errors);
    return device->bad ? NULL : device;
}

/* "/dev/nvme0n1=ssd /dev/nvme1n1=ssd1" */
static const char *device_named(struct fio *fio, const char *filename)
{
    g_auto(GStrv) pair = g_strsplit_set(fio->filenames, " ,", -1);
    for (unsigned i = 0; pair[i] != NULL; i++) {
        char *equals = strrchr(pair[i], '=');
        if (equals == NULL || equals[1] == '\0')
            continue;
        *equals = '\0';
        if (strcmp(pair[i], filename) == 0)
            return fio_strings_keep(fio->strings, equals + 1);
    }
    return NULL;
}

/* The device of a job; all jobs that name another file need the setting `filenames`. */
static const char *device_name_of(struct fio *fio, const struct fio_options *options,
                                  struct sim_error_list *errors)
{
    if (options->filename == NULL)
        return fio->device_name;
    const char *name = device_named(fio, options->filename);
    if (name != NULL)
        return name;
    bool alone = *fio->filenames == '\0';
    for (unsigned i = 0; i < fio->list.n_jobs; i++) {
        const char *other = fio->list.job[i]->filename;
        alone = alone && (other == NULL || strcmp(other, options->filename) == 0);
    }
    if (alone)
        return fio->device_name;
    wrong(errors, options, "filename",
          "which device is %s? The setting `filenames` of the program says so: \"%s=ssd\"",
          options->filename, options->filename);
    return NULL;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static struct fio_file *new_file(struct fio *fio, const char *name, const char *device_name)
{
    struct fio_file *file = program_zalloc(fio->program, 1, sizeof(*file));
    file->name = fio_strings_keep(fio->strings, name);
    file->device_name = device_name;
    fio->file = sim_grow(fio->file, fio->n_files + 1, sizeof(*fio->file));
    return fio->file[fio->n_files++] = file;
}

/* The blocks that all jobs with this filename share. */
static struct fio_file *shared_file(struct fio *fio, const char *name, const char *device_name)
{
    for (unsigned i = 0; i < fio->n_files; i++)
        if (!fio->file[i]->own && strcmp(fio->file[i]->device_name, device_name) == 0)
            return fio->file[i];
    return new_file(fio, name, device_name);
}

/* What divides every place and size of the thread's requests. */
static uint64_t unit_of(const struct fio_thread *thread)
{
    const struct fio_options *options = thread->options;
    uint64_t unit = fio_common_divisor(thread->begin, options->random ? 0 : options->modifier);
    if (thread->trace != NULL)
        return fio_common_divisor(thread->begin, thread->trace->unit_bytes);
    unit = fio_common_divisor(unit, options->align[FIO_READ]);
    for (unsigned i = 0; i < FIO_DIRECTIONS; i++) {
        const struct fio_block_sizes *sizes = &options->size_of[i];
        if (!(i == FIO_READ ? options->reads : options->writes))
            continue;
        unit = fio_common_divisor(unit, sizes->min);
        for (unsigned k = 0; k < sizes->n_splits; k++)
            unit = fio_common_divisor(unit, sizes->split[k].bytes);
    }
    return unit;
}

/* In bytes; rounded up to the block size if it is a share. */
static uint64_t size_in(const struct fio_size *size, uint64_t whole, uint64_t block_bytes)
{
    if (size->percent == 0)
        return size->bytes;
    const uint64_t bytes = (uint64_t)(size->percent / 100 * (double)whole);
    return (bytes + block_bytes - 1) / block_bytes * block_bytes;
}

static uint64_t largest_request(const struct fio_options *options, const struct fio_trace *trace)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; trace != NULL && i < trace->n_steps; i++)
        bytes = SIM_MAX(bytes, trace->step[i].bytes);
    if (trace != NULL)
        return bytes;
    if (options->reads)
        bytes = options->size_of[FIO_READ].max;
    if (options->writes)
        bytes = SIM_MAX(bytes, options->size_of[FIO_WRITE].max);
    return bytes;
}

/* ---- Threads --------------------------------------------------------------------------------- */

static unsigned n_cpus_of(const struct fio_options *options)
{
    unsigned n = 0;
    for (unsigned i = 0; i < FIO_CPUS_MAX; i++)
        n += options->cpu[i];
    return n;
}

/* The i-th of those allowed, in turn. */
static unsigned cpu_of(const struct fio *fio, const struct fio_options *options, unsigned i)
{
    if (!options->has_cpus)
        return (fio->cpu + fio->n_threads) % SIM_MAX(lending_cpus(fio->host), 1u);
    unsigned left = i % n_cpus_of(options), cpu = 0;
    for (;; cpu++)
        if (options->cpu[cpu] && left-- == 0)
            return cpu;
}

static struct fio_thread *new_thread(struct fio *fio, unsigned description, unsigned i)
{
    const struct fio_group_job *job = &fio->description[description];
    struct fio_thread *thread = program_zalloc(fio->program, 1, sizeof(*thread));
    thread->fio = fio;
    thread->options = job->options;
    thread->description = description;
    thread->trace = job->trace.n_steps != 0 ? &job->trace : NULL;
    thread->job.number = fio->n_threads;
    thread->job.cpu = cpu_of(fio, job->options, i);
    fio_stats_init(&thread->stats);
    fio->thread = sim_grow(fio->thread, fio->n_threads + 1, sizeof(*fio->thread));
    return fio->thread[fio->n_threads++] = thread;
}

/* The part of the file that clone i uses. False after a mistake. */
static bool place_thread(struct fio_thread *thread, unsigned i, uint64_t whole,
                         struct sim_error_list *errors)
{
    const struct fio_options *options = thread->options;
    const uint64_t block = fio_smallest_request(options);
    thread->begin = size_in(&options->offset, whole, block) +
                    i * size_in(&options->offset_increment, whole, block);
    const uint64_t wanted = size_in(&options->size, whole, block);
    if (thread->begin >= whole ||
        (!thread->file->own && wanted != 0 && wanted > whole - thread->begin)) {
        wrong(errors, options, "size; offset, offset_increment, filesize",
              "%" G_GUINT64_FORMAT " bytes from %" G_GUINT64_FORMAT
              " on, expected at most the %" G_GUINT64_FORMAT " bytes that there are",
              wanted, thread->begin, whole);
        return false;
    }
    thread->span = whole - thread->begin;
    if (wanted != 0)
        thread->span = SIM_MIN(thread->span, wanted);
    thread->io_bytes = size_in(&options->io_size, whole, block);
    if (thread->io_bytes == 0)
        thread->io_bytes = fio_next_pass_bytes(options, thread->span);
    if (thread->trace == NULL && thread->span < largest_request(options, NULL)) {
        wrong(errors, options, "bs; bsrange, bssplit, size, filesize",
              "%" G_GUINT64_FORMAT " bytes, expected at most size, %" G_GUINT64_FORMAT " bytes",
              largest_request(options, NULL), thread->span);
        return false;
    }
    if (thread->trace != NULL && thread->trace->end > whole) {
        wrong(errors, options, "read_iolog",
              "a request ends at byte %" G_GUINT64_FORMAT
              ", expected one within the %" G_GUINT64_FORMAT " bytes that there are",
              thread->trace->end, whole);
        return false;
    }
    return true;
}

/* ---- One job --------------------------------------------------------------------------------- */

static void check_align(const struct fio_options *options, uint64_t span,
                        struct sim_error_list *errors)
{
    if (options->align[FIO_READ] != options->align[FIO_WRITE])
        wrong(errors, options, "blockalign", "expected the same for reads and writes");
    else if (options->align[FIO_READ] > span)
        wrong(errors, options, "blockalign; size", "expected at most size");
}

static void check_times(const struct fio_options *options, struct sim_error_list *errors)
{
    if (options->time_based && options->runtime_ps == 0)
        wrong(errors, options, "time_based; runtime", "expected runtime beside it");
    if (options->think_spin_ps > options->think_ps)
        wrong(errors, options, "thinktime_spin; thinktime", "expected at most thinktime");
    for (unsigned i = 0; i < FIO_DIRECTIONS; i++)
        if (options->rate[i] != 0 && options->rate_iops[i] != 0)
            wrong(errors, options, "rate_iops; rate", "expected rate or rate_iops, not both");
}

static void check_depths(const struct fio_options *options, struct sim_error_list *errors)
{
    if (options->complete_max != 0 && options->complete_max < options->complete_min)
        wrong(errors, options, "iodepth_batch_complete_max; iodepth_batch_complete_min",
              "expected at least "
              "iodepth_batch_complete_min");
    if (options->batch_submit > options->depth)
        wrong(errors, options, "iodepth_batch_submit; iodepth",
              "found %u, expected at most iodepth, %u", options->batch_submit, options->depth);
    if (options->depth_low > options->depth)
        wrong(errors, options, "iodepth_low; iodepth", "found %u, expected at most iodepth, %u",
              options->depth_low, options->depth);
}

static void check_cpus(struct fio *fio, const struct fio_options *options,
                       struct sim_error_list *errors)
{
    const unsigned n = lending_cpus(fio->host);
    for (unsigned i = n; options->has_cpus && i < FIO_CPUS_MAX; i++)
        if (options->cpu[i]) {
            wrong(errors, options, "cpus_allowed",
                  "found CPU %u, expected CPUs of the host, 0 to %u", i, n - 1);
            return;
        }
}

static void check_blocks(const struct fio_thread *thread, uint64_t unit,
                         struct sim_error_list *errors)
{
    const struct fio_device *device = thread->job.device;
    const char *key = thread->trace != NULL ? "read_iolog" : "bs; bsrange, bssplit";
    if (device->block_bytes != 0 && unit % device->block_bytes != 0)
        wrong(errors, thread->options, "bs, offset; bsrange, bssplit, blockalign, rw",
              "expected multiples of the device's blocks of %u bytes", device->block_bytes);
    if (device->limit_bytes != 0 && thread->job.buffer_bytes > device->limit_bytes)
        wrong(errors, thread->options, key,
              "requests of %" G_GUINT64_FORMAT " bytes, expected at most %" G_GUINT64_FORMAT
              " bytes, the largest request of engine %s on %s",
              thread->job.buffer_bytes, device->limit_bytes, device->engine->name, device->name);
}

/* Relative to the job file; g_free(). */
static char *trace_path(const struct fio_options *options)
{
    g_autofree char *folder = g_path_get_dirname(options->file);
    return g_path_is_absolute(options->read_iolog)
               ? g_strdup(options->read_iolog)
               : g_build_filename(folder, options->read_iolog, NULL);
}

/* Whether the log would be written over a file that is there already, and read. */
static bool would_replace(const char *log, const char *read)
{
    struct stat a, b;
    return read != NULL && stat(log, &a) == 0 && stat(read, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Another program's fio before this one. */
static bool another_writes(const struct fio *fio, const char *log)
{
    const struct program *earlier;
    for (unsigned i = 0; (earlier = program_earlier(fio->program, i)) != NULL; i++) {
        const struct fio *other = earlier->state;
        for (unsigned k = 0; earlier->ops == &program_fio_ops && k < other->n_descriptions; k++)
            if (g_strcmp0(other->description[k].options->write_iolog, log) == 0)
                return true;
    }
    return false;
}

static void check_iologs(struct fio *fio, unsigned description, struct sim_error_list *errors)
{
    const struct fio_options *options = fio->description[description].options;
    if (options->write_iolog == NULL)
        return;
    if (options->jobs > 1)
        wrong(errors, options, "write_iolog; numjobs",
              "expected a file for each job, and numjobs=1");
    g_autofree char *trace = options->read_iolog != NULL ? trace_path(options) : NULL;
    const char *const read[] = { config_file(fio->program->group), options->file, trace };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(read); i++)
        if (would_replace(options->write_iolog, read[i]))
            wrong(errors, options, "write_iolog", "%s is read here, expected another file",
                  options->write_iolog);
    if (another_writes(fio, options->write_iolog))
        wrong(errors, options, "write_iolog", "a program before this one writes the same file");
    for (unsigned i = 0; i < description; i++) {
        const char *other = fio->description[i].options->write_iolog;
        if (other != NULL && strcmp(other, options->write_iolog) == 0)
            wrong(errors, options, "write_iolog", "[%s] writes the same file",
                  fio->description[i].options->name);
    }
}

/* The trace's actions, instead of rw=. */
static void read_trace(struct fio_group_job *job, struct sim_error_list *errors)
{
    struct fio_options *options = job->options;
    if (options->read_iolog == NULL)
        return;
    g_autofree char *path = trace_path(options);
    if (!fio_trace_read(path, options, &job->trace, errors))
        return;
    options->reads = options->writes = false;
    for (uint64_t i = 0; i < job->trace.n_steps; i++) {
        options->reads = options->reads || job->trace.step[i].action == FIO_ACTION_READ;
        options->writes = options->writes || job->trace.step[i].action == FIO_ACTION_WRITE;
    }
    options->verify = FIO_VERIFY_NONE;
}

static void find_waited(struct fio *fio, unsigned description, struct sim_error_list *errors)
{
    struct fio_group_job *job = &fio->description[description];
    const char *name = job->options->wait_for;
    unsigned n = 0;
    job->waits_for = -1;
    for (unsigned i = 0; name != NULL && i < description; i++)
        if (strcmp(fio->description[i].options->name, name) == 0) {
            job->waits_for = (int)i;
            n++;
        }
    if (name != NULL && n != 1)
        wrong(errors, job->options, "wait_for",
              n == 0 ? "no job \"%s\" stands before this one" : "several jobs are called \"%s\"",
              name);
}

/* The threads of a job, on blocks of which only the size is known yet. */
static void expand_job(struct fio *fio, unsigned description, struct sim_error_list *errors)
{
    struct fio_group_job *job = &fio->description[description];
    struct fio_options *options = job->options;
    read_trace(job, errors);
    const struct fio_trace *trace = job->trace.n_steps != 0 ? &job->trace : NULL;
    const struct fio_engine_ops *engine = engine_of(fio, options, errors);
    const char *name = device_name_of(fio, options, errors);
    if (engine == NULL || name == NULL)
        return;
    struct fio_device *device = device_of(fio, engine, name, largest_request(options, trace),
                                          errors);
    if (engine->needs_direct && (!options->direct || options->buffered))
        wrong(errors, options, "direct; buffered, ioengine",
              "expected direct=1, as there is no page cache (`job_options = \"direct=1\"` "
              "sets it in all jobs)");
    if (options->filename == NULL && (options->size.bytes == 0 && options->file_size.bytes == 0))
        wrong(errors, options, "size; filename, filesize",
              "expected bytes, as the job has no filename");
    check_times(options, errors);
    check_depths(options, errors);
    check_cpus(fio, options, errors);
    check_iologs(fio, description, errors);
    find_waited(fio, description, errors);
    if (fio->n_threads + options->jobs > FIO_THREADS_MAX) {
        wrong(errors, options, "numjobs", "expected at most %u jobs in all", FIO_THREADS_MAX);
        return;
    }
    for (unsigned i = 0; device != NULL && errors->n_messages == 0 && i < options->jobs; i++) {
        struct fio_thread *thread = new_thread(fio, description, i);
        g_autofree char *own = g_strdup_printf("%s.%u.0", options->name, i);
        thread->job.device = device;
        device->n_jobs++;
        thread->job.depth = engine->synchronous ? 1 : options->depth;
        thread->job.buffer_bytes = largest_request(options, trace);
        thread->file = options->filename != NULL ? shared_file(fio, options->filename, name)
                                                 : new_file(fio, own, name);
        thread->file->own = options->filename == NULL;
        thread->file->fill = thread->file->own && options->reads;
        g_snprintf(thread->name, sizeof(thread->name), "%.20s.%.30s.%u", fio->program->name,
                   options->name, i);
        job->n_running++;
    }
}

/* Reports of jobs and the order in which they run. */
static void find_groups(struct fio *fio)
{
    unsigned group = 0, after = 0;
    for (unsigned i = 0; i < fio->n_descriptions; i++) {
        const struct fio_options *options = fio->description[i].options;
        if (i != 0 && (options->new_group || options->stonewall))
            group++;
        if (options->stonewall)
            after = i;
        fio->description[i].group = group;
        fio->description[i].after = after;
    }
}

/* ---- Blocks of all jobs on a device ---------------------------------------------------------- */

static uint64_t own_bytes(const struct fio_options *options)
{
    return SIM_MAX(options->file_size.bytes, options->size.bytes);
}

/* Places the threads of the file in it; returns how much of it they use. */
static uint64_t place_threads(struct fio *fio, struct fio_file *file, uint64_t whole,
                              struct sim_error_list *errors)
{
    uint64_t end = 0, unit = 0;
    unsigned description = UINT32_MAX, i = 0;
    for (unsigned t = 0; t < fio->n_threads; t++) {
        struct fio_thread *thread = fio->thread[t];
        i = thread->description == description ? i + 1 : 0;
        description = thread->description;
        if (thread->file != file)
            continue;
        if (!place_thread(thread, file->own ? 0 : i, whole, errors))
            return 0;
        unit = fio_common_divisor(unit, unit_of(thread));
        check_blocks(thread, unit_of(thread), errors);
        check_align(thread->options, thread->span, errors);
        end = SIM_MAX(end, thread->begin + thread->span);
        if (thread->trace != NULL)
            end = SIM_MAX(end, thread->trace->end);
    }
    file->unit_bytes = unit;
    return end;
}

/* Shared blocks first, then those of jobs of their own. */
static void place_files(struct fio *fio, const char *device_name, struct sim_error_list *errors)
{
    const struct fio_device *device = NULL;
    const struct fio_options *last = NULL;
    for (unsigned i = 0; i < fio->n_threads; i++)
        if (strcmp(fio->thread[i]->file->device_name, device_name) == 0) {
            device = fio->thread[i]->job.device;
            last = fio->thread[i]->options;
        }
    const uint64_t base = program_take(fio->program, device->model, "byte", 0);
    const uint64_t whole = device->bytes > base ? device->bytes - base : 0;
    uint64_t at = 0;
    for (unsigned own = 0; own < 2; own++)
        for (unsigned i = 0; i < fio->n_files && errors->n_messages == 0; i++) {
            struct fio_file *file = fio->file[i];
            if (file->own != (own == 1) || strcmp(file->device_name, device_name) != 0)
                continue;
            uint64_t bytes = whole;
            for (unsigned t = 0; file->own && t < fio->n_threads; t++)
                if (fio->thread[t]->file == file)
                    bytes = own_bytes(fio->thread[t]->options);
            file->begin = base + at;
            file->bytes = bytes;
            const uint64_t end = place_threads(fio, file, bytes, errors);
            const uint64_t step = file->own ? FIO_FILL_BYTES : SIM_MAX(device->block_bytes, 1u);
            at += ((file->own ? bytes : end) + step - 1) / step * step;
        }
    program_take(fio->program, device->model, "byte", at);
    if (errors->n_messages == 0 && at > whole)
        wrong(errors, last, "size; offset, offset_increment, filesize, numjobs",
              "the jobs need %" G_GUINT64_FORMAT " bytes of %s, which has %" G_GUINT64_FORMAT
              " for this program",
              at, device_name, whole);
}

static void place_all(struct fio *fio, struct sim_error_list *errors)
{
    unsigned n_named = 0;
    for (unsigned i = 0; i < fio->n_files; i++) {
        bool seen = false;
        for (unsigned k = 0; k < i; k++)
            seen = seen || strcmp(fio->file[k]->device_name, fio->file[i]->device_name) == 0;
        if (seen)
            continue;
        if (++n_named > DEVICES_NAMED_MAX) {
            program_mistake(fio->program, "filenames", errors, "at most 4 devices", NULL);
            return;
        }
        place_files(fio, fio->file[i]->device_name, errors);
    }
}

/* CPUs in use, as a range. */
static void say_cpus(struct fio *fio, struct sim_error_list *errors)
{
    unsigned first = UINT32_MAX, last = 0;
    for (unsigned i = 0; i < fio->n_threads; i++) {
        first = SIM_MIN(first, fio->thread[i]->job.cpu);
        last = SIM_MAX(last, fio->thread[i]->job.cpu);
    }
    if (fio->n_threads != 0)
        program_check_cpus(fio->program, "cpu", fio->host, first, last - first + 1, errors);
}

/* ---- Files that are read --------------------------------------------------------------------- */

/* Relative to the file that says so; from the command line, to the working directory. */
static char *path_of(struct fio *fio, const char *key, const char *name)
{
    const struct config_node *node = config_find(fio->program->group, key);
    const char *file = node != NULL ? config_file(node) : "--set";
    if (g_path_is_absolute(name) || strcmp(file, "--set") == 0)
        return g_strdup(name);
    g_autofree char *folder = g_path_get_dirname(file);
    return g_build_filename(folder, name, NULL);
}

/* What the files say is a part of the configuration: with other contents a run is another one. */
static void note_contents(struct fio *fio, struct sim_error_list *errors)
{
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    for (unsigned i = 0; i < fio->n_descriptions; i++) {
        const struct fio_group_job *job = &fio->description[i];
        g_checksum_update(checksum, (const guchar *)job->options->name, -1);
        if (job->options->text != NULL)
            g_checksum_update(checksum, (const guchar *)job->options->text, -1);
        for (uint64_t k = 0; k < job->trace.n_steps; k++) {
            const struct fio_step *step = &job->trace.step[k];
            const uint64_t part[] = { step->action, step->at_us, step->offset, step->bytes };
            g_checksum_update(checksum, (const guchar *)part, sizeof(part));
        }
    }
    g_autofree char *path = g_strconcat(config_path(fio->program->group), ".jobs_sha256", NULL);
    g_autofree char *text = g_strdup_printf("\"%s\"", g_checksum_get_string(checksum));
    config_set(fio->program->workload->config, path, text, "the job file", errors);
    config_get(fio->program->group, "jobs_sha256");
}

/* Names the path that was looked at: what it is relative to is not seen from what was written. */
static void no_job_file(struct fio *fio, const char *path, struct sim_error_list *errors)
{
    const struct config_node *node = config_find(fio->program->group, "job_file");
    const char *file = node != NULL ? config_file(node) : "--set";
    g_autofree char *whole = g_canonicalize_filename(path, NULL);
    g_autofree char *beside = g_path_is_absolute(fio->job_file) ? g_strdup("")
                              : strcmp(file, "--set") == 0
                                  ? g_strdup(" (with --set relative to the working directory)")
                                  : g_strdup_printf(" (relative to the folder of %s)", file);
    g_autofree char *expected = g_strdup_printf(
        "a job file: %s %s%s", whole,
        g_file_test(path, G_FILE_TEST_IS_DIR) ? "is a folder" : "does not exist", beside);
    program_mistake(fio->program, "job_file", errors, expected, NULL);
}

static struct fio_override *new_override(struct fio *fio)
{
    const struct config_node *node = config_find(fio->program->group, "job_options");
    struct fio_override *override = program_zalloc(fio->program, 1, sizeof(*override));
    g_autofree char *path = g_strconcat(config_path(fio->program->group), ".job_options", NULL);
    override->path = fio_strings_keep(fio->strings, path);
    override->file = node != NULL ? config_file(node) : NULL;
    override->line = node != NULL ? config_line(node) : 0;
    override->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return fio->override = override;
}

static bool read_jobs(struct fio *fio, struct sim_error_list *errors)
{
    bool good = true;
    if (*fio->job_file != '\0') {
        g_autofree char *path = path_of(fio, "job_file", fio->job_file);
        if (!g_file_test(path, G_FILE_TEST_EXISTS) || g_file_test(path, G_FILE_TEST_IS_DIR)) {
            no_job_file(fio, path, errors);
            return false;
        }
        good = fio_job_file_read(path, fio->strings, &fio->list, errors);
    }
    if (good && *fio->job_options != '\0')
        good = fio_job_options_set(fio->job_options, fio->program->name, new_override(fio),
                                   fio->strings, &fio->list, errors);
    return good;
}

void fio_setup(struct fio *fio, struct sim_error_list *errors)
{
    struct sim_error_list own = { 0 };
    fio->strings = fio_strings_new();
    if (read_jobs(fio, &own)) {
        fio->n_descriptions = fio->list.n_jobs;
        fio->description = program_zalloc(fio->program, fio->n_descriptions,
                                          sizeof(*fio->description));
        for (unsigned i = 0; i < fio->n_descriptions; i++)
            fio->description[i].options = fio->list.job[i];
        for (unsigned i = 0; i < fio->n_descriptions; i++)
            expand_job(fio, i, &own);
        find_groups(fio);
        note_contents(fio, &own);
    }
    if (own.n_messages == 0)
        place_all(fio, &own);
    if (own.n_messages == 0)
        say_cpus(fio, &own);
    sim_error_move(errors, &own);
}

void fio_setup_release(struct fio *fio)
{
    for (unsigned i = 0; i < fio->n_descriptions; i++)
        fio_trace_release(&fio->description[i].trace);
    for (unsigned i = 0; i < fio->n_threads; i++) {
        fio_stats_release(&fio->thread[i]->stats);
        free(fio->thread[i]->written);
    }
    for (unsigned i = 0; i < fio->n_files; i++)
        fio_data_release(fio->file[i]);
    free(fio->thread);
    free(fio->file);
    if (fio->override != NULL)
        g_hash_table_destroy(fio->override->told);
    fio_job_list_release(&fio->list);
    fio_strings_free(fio->strings);
}
