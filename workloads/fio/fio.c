/*
 * fio: jobs that read and write NVMe devices, as threads on CPUs of their own, through an engine
 * (fio_engine.h). Jobs are described by fio's job files (fio_setup.c), or by the settings below:
 * random reads and writes with O_DIRECT of a span that is written first (if anything is read, and
 * not laid_out), submissions one by one until the queue is full, then one event is waited for and a
 * submission takes its place. Every block that is read is checked against what was written there
 * last.
 *
 * A request counts, and its latency ends, where the job gets it: at the return of submit() or of
 * reap() (fio's lat, from before the call that submits it). So in a full queue
 * depth = iops x (latency + what the job does between two requests). Without a number of operations
 * what is measured begins when all jobs have filled their queues.
 */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>

#include "workloads/fio/fio.h"
#include "workloads/fio/fio_internal.h"

#define JOBS_MAX    64u
#define SAMPLES_MIN 8192u

static const struct param_desc fio_params[] = {
    PARAM_TEXT("on", struct fio, host_name, "borrower", "host of the group `lending`"),
    PARAM_TEXT("device", struct fio, device_name, "ssd",
               "a nvme.controller that it borrows, or has and does not lend"),
    PARAM_TEXT("engine", struct fio, engine_name, "",
               "one of docs/fio.md; \"\": as the job file says, or sync with a queue depth of 1, "
               "else libaio"),
    PARAM_TEXT("job_file", struct fio, job_file, "",
               "fio's description of jobs, relative to this file, instead of the settings below"),
    PARAM_TEXT("job_options", struct fio, job_options, "",
               "KEY=VALUE ... of job files, in all jobs after the file's; alone: one job"),
    PARAM_TEXT(
        "filenames", struct fio, filenames, "",
        "FILENAME=DEVICE ...: which device a job file's filename is; \"\": `device`, if there "
        "is one filename"),
    PARAM_TEXT(
        "json_output", struct fio, json_output, "",
        "file for the results as fio --output-format=json writes them; {seed} in its name is "
        "the run's seed, {point} its point, axis=value,axis=value"),
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
    PARAM("laid_out", PARAM_BOOL, struct fio, laid_out, 0, 0, 1, PROV_NONE, "",
          "what is read was written before the run, and need not be written first"),
    PARAM("operations", PARAM_U64, struct fio, operations, 0, 0, 1e12, PROV_NONE, "",
          "of each job, then it ends; 0: as long as is measured"),
    PARAM("think_cycles", PARAM_U32, struct fio, think_cycles, 600, 0, 100000, PROV_ESTIMATE,
          "docs/sources.md#c4", "of fio itself, between two requests of a job"),
    { .type = PARAM_END },
};

static void mistake(struct fio *fio, const char *key, struct sim_error_list *errors,
                    const char *expected, const char *const *names)
{
    program_mistake(fio->program, key, errors, expected, names);
}

/* ---- Jobs by the settings -------------------------------------------------------------------- */

/* NULL: there is none of this name. What the engine cannot use is a mistake of its own. */
static struct fio_device *plain_device(struct fio *fio, struct sim_error_list *errors)
{
    struct fio_device *device = &fio->device[0];
    const char *name = fio->engine_name;
    if (*name == '\0')
        name = fio->queue_depth == 1 ? "sync" : "libaio";
    const struct fio_engine_ops *engine = fio_engine_find(name);
    if (engine == NULL) {
        mistake(fio, "engine", errors, "an engine", fio_engine_names);
        return NULL;
    }
    if (engine->synchronous && fio->queue_depth != 1)
        mistake(fio, "queue_depth", errors, "1, as the engine is synchronous", NULL);
    *device = (struct fio_device){ .engine = engine,
                                   .program = fio->program,
                                   .host = fio->host,
                                   .name = fio->device_name,
                                   .request_bytes_max = fio->block_bytes,
                                   .n_jobs = fio->n_jobs };
    fio->n_devices = 1;
    if (engine->device_bytes != 0)
        device->state = program_zalloc(fio->program, 1, engine->device_bytes);
    device->bad = !engine->check(device, errors);
    return device;
}

/* The span, which all jobs share, behind those of programs before this one. */
static struct fio_file *plain_file(struct fio *fio, const struct fio_device *device,
                                   struct sim_error_list *errors)
{
    struct fio_file *file = program_zalloc(fio->program, 1, sizeof(*file));
    fio->file = sim_zalloc(1, sizeof(*fio->file));
    fio->file[fio->n_files++] = file;
    *file = (struct fio_file){ .name = fio->program->name,
                               .device_name = fio->device_name,
                               .bytes = fio->span_bytes,
                               .unit_bytes = fio->block_bytes,
                               .fill = fio->read_ratio > 0 };
    if (!device->bad && fio->block_bytes < device->block_bytes)
        mistake(fio, "block_bytes", errors, "at least that of the device", NULL);
    if (!device->bad && device->limit_bytes != 0 && fio->block_bytes > device->limit_bytes) {
        g_autofree char *expected = g_strdup_printf(
            "at most %" G_GUINT64_FORMAT " bytes, the largest request of engine %s on %s",
            device->limit_bytes, device->engine->name, device->name);
        mistake(fio, "block_bytes", errors, expected, NULL);
    }
    if (!device->bad)
        file->begin = program_take(fio->program, device->model, "byte", fio->span_bytes);
    if (device->bytes != 0 && file->begin + fio->span_bytes > device->bytes)
        mistake(fio, "span_bytes", errors,
                file->begin == 0 ? "at most capacity_bytes of the device"
                                 : "at most what other programs leave of capacity_bytes",
                NULL);
    return file;
}

static void plain_threads(struct fio *fio, struct fio_device *device, struct fio_file *file)
{
    fio_options_default(&fio->plain);
    fio->plain.name = fio->program->name;
    fio->plain.depth = fio->queue_depth;
    fio->plain.random = true;
    fio->plain.writes = fio->read_ratio < 1;
    fio->plain.reads = fio->read_ratio > 0;
    fio->description = program_zalloc(fio->program, 1, sizeof(*fio->description));
    fio->description[0].options = &fio->plain;
    fio->description[0].waits_for = -1;
    fio->n_descriptions = 1;
    fio->thread = sim_zalloc(fio->n_jobs, sizeof(struct fio_thread *));
    for (unsigned i = 0; i < fio->n_jobs; i++) {
        struct fio_thread *thread = program_zalloc(fio->program, 1, sizeof(*thread));
        thread->fio = fio;
        thread->options = &fio->plain;
        thread->file = file;
        thread->span = fio->span_bytes;
        thread->job = (struct fio_job){ .device = device,
                                        .number = i,
                                        .cpu = fio->cpu + i,
                                        .depth = fio->queue_depth,
                                        .buffer_bytes = fio->block_bytes };
        snprintf(thread->name, sizeof(thread->name), "%.40s%u", fio->program->name, i);
        fio_stats_init(&thread->stats);
        fio->thread[fio->n_threads++] = thread;
    }
}

static void plain_setup(struct fio *fio, struct sim_error_list *errors)
{
    struct fio_device *device = plain_device(fio, errors);
    if (device == NULL)
        return;
    struct fio_file *file = plain_file(fio, device, errors);
    program_check_cpus(fio->program, fio->cpu < lending_cpus(fio->host) ? "jobs" : "cpu", fio->host,
                       fio->cpu, fio->n_jobs, errors);
    if (fio->block_bytes % 512 != 0 || FIO_FILL_BYTES % fio->block_bytes != 0)
        mistake(fio, "block_bytes", errors, "a power of two from 512 B to 128 KiB", NULL);
    if (fio->span_bytes % FIO_FILL_BYTES != 0 ||
        fio->span_bytes / fio->block_bytes < 2 * (uint64_t)fio->n_jobs * fio->queue_depth)
        mistake(fio, "span_bytes", errors,
                "whole units of 128 KiB, with at least two blocks for each request under way",
                NULL);
    plain_threads(fio, device, file);
}

/* Settings that describe a job, beside a description. */
static void refuse_both(struct fio *fio, struct sim_error_list *errors)
{
    static const char *const keys[] = { "jobs",       "queue_depth", "block_bytes",
                                        "span_bytes", "read_ratio",  "operations" };
    const char *decider = *fio->job_file != '\0' ? "job_file" : "job_options";
    char expected[64];
    g_snprintf(expected, sizeof(expected), "none, as %s describes the jobs", decider);
    g_autofree char *path = g_strconcat(config_path(fio->program->group), ".", decider, NULL);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(keys); i++)
        config_no_effect(fio->program->group, keys[i], path, errors, expected);
}

static struct fio *first_from_file(struct fio *fio)
{
    const struct program *earlier;
    for (unsigned i = 0; (earlier = program_earlier(fio->program, i)) != NULL; i++) {
        struct fio *other = earlier->state;
        if (earlier->ops == &program_fio_ops && other->from_file)
            return other;
    }
    return fio;
}

/* Of jobs between the same stonewalls as those of description `after`, that wait for no other. */
static struct fio_load load_after(const struct fio *fio, const struct fio_device *device,
                                  unsigned after)
{
    struct fio_load load = { 0 };
    for (unsigned i = 0; i < fio->n_threads; i++) {
        const struct fio_thread *thread = fio->thread[i];
        const struct fio_group_job *job = &fio->description[thread->description];
        if (thread->job.device != device || job->waits_for >= 0 || job->after != after)
            continue;
        load.jobs++;
        load.requests += thread->job.depth;
    }
    return load;
}

static void check_jobs(struct fio *fio, struct sim_error_list *errors)
{
    for (unsigned i = 0; i < fio->n_devices; i++) {
        struct fio_device *device = &fio->device[i];
        const struct fio_load first = load_after(fio, device, 0);
        struct fio_load most = first;
        if (device->bad || device->engine->check_jobs == NULL)
            continue;
        for (unsigned k = 0; k < fio->n_descriptions; k++) {
            const struct fio_load load = load_after(fio, device, fio->description[k].after);
            most.jobs = SIM_MAX(most.jobs, load.jobs);
            most.requests = SIM_MAX(most.requests, load.requests);
        }
        device->engine->check_jobs(device, &first, &most, errors);
    }
}

/* Where the results go is looked for before the run, which may be long. */
static void check_folder(struct fio *fio, struct sim_error_list *errors)
{
    g_autofree char *folder = g_path_get_dirname(fio->json_path);
    if (strstr(folder, "{seed}") != NULL)
        return;
    if (!g_file_test(folder, G_FILE_TEST_IS_DIR))
        mistake(fio, "json_output", errors, "a file in a folder that there is", NULL);
    else if (g_file_test(fio->json_path, G_FILE_TEST_IS_DIR))
        mistake(fio, "json_output", errors, "a file; that is a folder", NULL);
}

/* {point} is known here, {seed} when it is written. */
static void note_output(struct fio *fio, struct sim_error_list *errors)
{
    struct config *config = fio->program->workload->config;
    const struct config_node *node = config_find(fio->program->group, "json_output");
    if (*fio->json_output == '\0' || node == NULL || !fio->program->enabled)
        return;
    GString *point = g_string_new(config_point_name(config));
    GString *file = g_string_new(fio->json_output);
    g_string_replace(point, " ", ",", 0);
    g_string_replace(point, "/", "_", 0);
    g_string_replace(file, "{point}", point->str, 0);
    fio->json_path = memcpy(program_zalloc(fio->program, file->len + 1, 1), file->str,
                            file->len + 1);
    config_add_output(config, node, fio->json_path);
    check_folder(fio, errors);
    g_string_free(point, TRUE);
    g_string_free(file, TRUE);
}

static void fio_check(struct program *program, struct sim_error_list *errors)
{
    struct fio *fio = program->state;
    fio->program = program;
    fio->from_file = *fio->job_file != '\0' || *fio->job_options != '\0';
    fio->first = first_from_file(fio);
    note_output(fio, errors);
    program->own_time = fio->operations != 0 || fio->from_file; /* served_s() */
    fio->host = program_lending_host(program, "on", fio->host_name, errors);
    if (fio->from_file)
        refuse_both(fio, errors);
    else if (*fio->filenames != '\0')
        mistake(fio, "filenames", errors, "none without job_file or job_options", NULL);
    if (fio->host == NULL)
        return;
    if (fio->from_file)
        fio_setup(fio, errors);
    else
        plain_setup(fio, errors);
    check_jobs(fio, errors);
    if (fio->from_file)
        fio_records_make(fio);
}

/* ---- Running --------------------------------------------------------------------------------- */

static void fio_start(struct program *program)
{
    struct fio *fio = program->state;
    program->finite = fio->operations != 0 || fio->from_file;
    fio_run_start(fio);
}

static void fio_measure(struct program *program)
{
    struct fio *fio = program->state;
    fio->n_samples = 0;
    fio->bytes = 0;
    fio->n_of[FIO_READ] = fio->n_of[FIO_WRITE] = fio->n_errors = 0;
    fio->begin_ps = sim_now(program->workload->sim);
    fio->first_ps = UINT64_MAX;
    fio->last_ps = 0;
    for (unsigned i = 0; i < fio->n_threads; i++) {
        const uint64_t end_ps = fio->thread[i]->stats.end_ps;
        fio_stats_clear(&fio->thread[i]->stats);
        fio->thread[i]->stats.end_ps = end_ps;
    }
}

void fio_measured(struct fio_thread *thread, const struct fio_io_u *io_u)
{
    struct fio *fio = thread->fio;
    const uint64_t ps = io_u->end_ps - io_u->start_ps;
    program_operation_ended(fio->program, io_u->start_ps);
    stat_histogram_add(&fio->program->histogram_ps, ps);
    if (fio->n_samples == fio->room) {
        fio->room = 2 * fio->room + SAMPLES_MIN;
        fio->sample_ps = sim_grow(fio->sample_ps, fio->room, sizeof(*fio->sample_ps));
        if (fio->from_file)
            fio->sample_of = sim_grow(fio->sample_of, fio->room, sizeof(*fio->sample_of));
    }
    if (fio->from_file)
        fio->sample_of[fio->n_samples] = fio_sample_of(thread->description,
                                                       io_u->write ? FIO_WRITE : FIO_READ);
    fio->sample_ps[fio->n_samples++] = (double)ps;
    fio->bytes += (double)io_u->bytes;
    fio->n_of[io_u->write ? FIO_WRITE : FIO_READ]++;
    fio->first_ps = SIM_MIN(fio->first_ps, io_u->start_ps);
    fio->last_ps = SIM_MAX(fio->last_ps, io_u->end_ps);
    program_count_operations(fio->program, 1);
}

static void fio_release(struct program *program)
{
    struct fio *fio = program->state;
    for (unsigned i = 0; i < fio->n_threads; i++) {
        struct fio_job *job = &fio->thread[i]->job;
        if (job->io_u != NULL && job->device->engine->release != NULL)
            job->device->engine->release(job);
    }
    fio_setup_release(fio);
    free(fio->sample_ps);
    free(fio->sample_of);
}

const struct program_ops program_fio_ops = {
    .type = "fio",
    .help = "reads and writes of raw NVMe devices (O_DIRECT), by settings or by fio's job files",
    .state_bytes = sizeof(struct fio),
    .params = fio_params,
    .records = fio_records,
    .rates = fio_rates,
    .check = fio_check,
    .start = fio_start,
    .measure = fio_measure,
    .record = fio_record,
    .release = fio_release,
};
