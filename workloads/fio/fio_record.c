/* What the program records: of all jobs together, and of each job of a job file. */
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/fio/fio_internal.h"

const struct record_desc fio_records[] = {
    { "latency_mean_ns", RECORD_METRIC, "ns", "of a request" },
    { "latency_stddev_ns", RECORD_METRIC, "ns", "deviation of the sample" },
    { "latency_min_ns", RECORD_METRIC, "ns", "the shortest" },
    { "latency_max_ns", RECORD_METRIC, "ns", "the longest" },
    { "latency_p50_ns", RECORD_METRIC, "ns", "quantile" },
    { "latency_p90_ns", RECORD_METRIC, "ns", "quantile" },
    { "latency_p95_ns", RECORD_METRIC, "ns", "quantile" },
    { "latency_p99_ns", RECORD_METRIC, "ns", "quantile" },
    { "latency_p999_ns", RECORD_METRIC, "ns", "quantile 0.999, of 1,000 requests or more" },
    { "latency_p9999_ns", RECORD_METRIC, "ns", "quantile 0.9999, of 10,000 or more" },
    { "latency_ns", RECORD_HISTOGRAM, "ns", "each" },
    { "+iops", RECORD_METRIC, "1/s", "requests that jobs got back, once their queues were full" },
    { "+read_iops", RECORD_METRIC, "1/s", "those that read" },
    { "+write_iops", RECORD_METRIC, "1/s", "those that wrote" },
    { "+throughput_gbyte_s", RECORD_METRIC, "GB/s", "payload of these" },
    { "+failed_requests", RECORD_METRIC, "1", "with continue_on_error" },
    { "+fio_gbyte_s", RECORD_METRIC, "GB/s", "throughput_gbyte_s" },
    { "latency_mean_ns", RECORD_SERIES, "ns", "of requests that ended in an interval" },
    { "+iops", RECORD_SERIES, "1/s", "requests per interval, once all queues were full" },
    { "+read_iops", RECORD_SERIES, "1/s", "those that read" },
    { "+write_iops", RECORD_SERIES, "1/s", "those that wrote" },
    { "+throughput_gbyte_s", RECORD_SERIES, "GB/s", "payload of these" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static uint64_t reads(const struct program *program)
{
    return ((const struct fio *)program->state)->n_of[FIO_READ];
}

static uint64_t writes(const struct program *program)
{
    return ((const struct fio *)program->state)->n_of[FIO_WRITE];
}

static uint64_t requests(const struct program *program)
{
    return reads(program) + writes(program);
}

static uint64_t request_bytes(const struct program *program)
{
    return (uint64_t)((const struct fio *)program->state)->bytes;
}

const struct program_rate fio_rates[] = {
    { "latency_mean_ns", 1e-3, program_latencies_ps, program_latencies },
    { "iops", 1, requests, NULL },
    { "read_iops", 1, reads, NULL },
    { "write_iops", 1, writes, NULL },
    { "throughput_gbyte_s", 1e-9, request_bytes, NULL },
    { NULL, 0, NULL, NULL },
};

/* ---- All jobs -------------------------------------------------------------------------------- */

/* The one rule for the program and for its jobs: of n sorted samples that of rank q (n - 1),
 * rounded down. */
static double quantile_ns(const double *ps, uint64_t n, double q)
{
    return ps[(uint64_t)(q * (double)(n - 1))] * 1e-3;
}

/* Sorted, of all jobs; or of one job and direction: `of` as in struct fio. At least one; free(). */
static double *sorted_samples(const struct fio *fio, const uint32_t *of, uint64_t *n)
{
    double *ps = sim_zalloc(fio->n_samples, sizeof(*ps));
    *n = 0;
    for (uint64_t i = 0; i < fio->n_samples; i++)
        if (of == NULL || fio->sample_of[i] == *of)
            ps[(*n)++] = fio->sample_ps[i];
    program_sort(ps, *n);
    return ps;
}

/* Of the sample, in two passes. */
static double deviation_ns(const struct fio *fio)
{
    const double mean = fio->program->histogram_ps.sum / (double)fio->n_samples;
    double sum = 0;
    for (uint64_t i = 0; i < fio->n_samples; i++)
        sum += (fio->sample_ps[i] - mean) * (fio->sample_ps[i] - mean);
    return fio->n_samples > 1 ? sqrt(sum / (double)(fio->n_samples - 1)) * 1e-3 : 0;
}

/*
 * In which the requests that were measured were served. Of jobs that end by themselves, from the
 * first of their submissions, which may lie before the measurement's beginning, to the last of
 * their completions: with deep queues and few operations filling and emptying the queue counts.
 * Else what was measured once all queues were full: requests under way at the end stand for those
 * at the beginning.
 */
static double served_s(const struct fio *fio, sim_time duration_ps)
{
    const bool finite = fio->program->finite;
    const sim_time from_ps = finite ? fio->first_ps : SIM_MAX(fio->full_ps, fio->begin_ps);
    const sim_time to_ps = finite ? fio->last_ps : fio->begin_ps + duration_ps;
    return (double)(to_ps - from_ps) * 1e-12;
}

static void record_latencies(struct fio *fio)
{
    static const struct {
        const char *name;
        double q;
        uint64_t n_min; /* fewer say nothing about it */
    } quantiles[] = {
        { "latency_p50_ns", 0.5, 1 },       { "latency_p90_ns", 0.9, 1 },
        { "latency_p95_ns", 0.95, 1 },      { "latency_p99_ns", 0.99, 1 },
        { "latency_p999_ns", 0.999, 1000 }, { "latency_p9999_ns", 0.9999, 10000 },
    };
    struct program *program = fio->program;
    program_metric(program, "latency_mean_ns", "ns",
                   program->histogram_ps.sum / (double)fio->n_samples * 1e-3);
    program_metric(program, "latency_stddev_ns", "ns", deviation_ns(fio));
    uint64_t n;
    double *ps = sorted_samples(fio, NULL, &n);
    program_metric(program, "latency_min_ns", "ns", quantile_ns(ps, n, 0));
    program_metric(program, "latency_max_ns", "ns", quantile_ns(ps, n, 1));
    for (unsigned i = 0; i < SIM_N_ELEMENTS(quantiles); i++)
        if (n >= quantiles[i].n_min)
            program_metric(program, quantiles[i].name, "ns", quantile_ns(ps, n, quantiles[i].q));
    free(ps);
    program_histogram(program, "latency_ns", "ns", 1e-3, &program->histogram_ps);
}

/* ---- Jobs of a file -------------------------------------------------------------------------- */

static const char *const directions[FIO_DIRECTIONS] = { "read", "write" };
static const struct {
    const char *name, *unit, *help;
} of_job[] = {
    { "iops", "1/s", "of one job of the job file, over its own time" },
    { "throughput_gbyte_s", "GB/s", "the same" },
    { "latency_mean_ns", "ns", "of one job's requests" },
    { "latency_p50_ns", "ns", "the same" },
    { "latency_p99_ns", "ns", "the same" },
};

#define JOB_NAME_BYTES 64u

/* Letters, digits and `_` of the job's name. */
static void job_name(const struct fio *fio, unsigned job, char name[JOB_NAME_BYTES])
{
    g_strlcpy(name, fio->description[job].options->name, JOB_NAME_BYTES);
    for (char *c = name; *c != '\0'; c++)
        if (!g_ascii_isalnum(*c))
            *c = '_';
}

/* "JOB.read_iops" */
static void job_metric_name(const struct fio *fio, unsigned job, unsigned direction, unsigned i,
                            char *name, size_t bytes)
{
    char own[JOB_NAME_BYTES];
    job_name(fio, job, own);
    snprintf(name, bytes, "%s.%s_%s", own, directions[direction], of_job[i].name);
}

/* By a job before it, whose metrics would have the same names: "a-b" and "a_b". */
static bool name_is_taken(const struct fio *fio, unsigned job)
{
    char own[JOB_NAME_BYTES], other[JOB_NAME_BYTES];
    job_name(fio, job, own);
    for (unsigned i = 0; i < job; i++) {
        job_name(fio, i, other);
        if (strcmp(other, own) == 0)
            return true;
    }
    return false;
}

void fio_records_make(struct fio *fio)
{
    const unsigned n_each = FIO_DIRECTIONS * SIM_N_ELEMENTS(of_job),
                   n_own = SIM_N_ELEMENTS(fio_records);
    struct record_desc *all = program_zalloc(fio->program, n_own + n_each * fio->n_descriptions,
                                             sizeof(*all));
    unsigned n = n_own - 1;
    memcpy(all, fio_records, n * sizeof(*all));
    for (unsigned job = 0; job < fio->n_descriptions; job++)
        for (unsigned i = 0; i < n_each && !name_is_taken(fio, job); i++) {
            char name[128] = ".";
            const unsigned k = i / FIO_DIRECTIONS;
            job_metric_name(fio, job, i % FIO_DIRECTIONS, k, name + 1, sizeof(name) - 1);
            all[n++] = (struct record_desc){ fio_strings_keep(fio->strings, name), RECORD_METRIC,
                                             of_job[k].unit, of_job[k].help };
        }
    fio->program->records = all;
}

static void record_direction(struct fio *fio, unsigned job, unsigned direction,
                             const struct fio_stats *stats)
{
    const struct fio_direction_stats *of = &stats->of[direction];
    const double seconds = (double)(stats->end_ps - stats->begin_ps) * 1e-12;
    const uint32_t which = fio_sample_of(job, direction);
    uint64_t n;
    double *ps = sorted_samples(fio, &which, &n);
    const double value[] = { (double)of->n / seconds, (double)of->bytes / seconds * 1e-9,
                             of->lat.ps.sum / (double)of->n * 1e-3, quantile_ns(ps, n, 0.5),
                             quantile_ns(ps, n, 0.99) };
    free(ps);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(of_job); i++) {
        char name[128];
        job_metric_name(fio, job, direction, i, name, sizeof(name));
        program_metric(fio->program, name, of_job[i].unit, value[i]);
    }
}

struct fio_stats fio_stats_of(const struct fio_thread *thread)
{
    const struct fio *fio = thread->fio;
    struct fio_stats stats = thread->stats;
    stats.begin_ps = SIM_MAX(thread->counts_from_ps, fio->begin_ps);
    if (!thread->ended)
        stats.end_ps = sim_now(fio->program->workload->sim);
    stats.end_ps = SIM_MAX(stats.begin_ps, stats.end_ps);
    return stats;
}

/* All clones; of several jobs whose metrics have one name the first. */
static void record_job(struct fio *fio, unsigned job)
{
    struct fio_stats sum;
    if (name_is_taken(fio, job))
        return;
    fio_stats_init(&sum);
    for (unsigned i = 0; i < fio->n_threads; i++) {
        const struct fio_stats one = fio_stats_of(fio->thread[i]);
        if (fio->thread[i]->description == job)
            fio_stats_merge(&sum, &one);
    }
    for (unsigned i = 0; i < FIO_DIRECTIONS; i++)
        if (sum.of[i].n != 0)
            record_direction(fio, job, i, &sum);
    fio_stats_release(&sum);
}

/* ---- The run --------------------------------------------------------------------------------- */

static void write_json(struct fio *fio)
{
    g_autofree char *error = NULL;
    if (fio->json_path != NULL && !fio_json_write(fio, &error))
        program_fail(fio->program, "json_output: %s", error);
}

void fio_record(struct program *program, sim_time duration_ps)
{
    struct fio *fio = program->state;
    const double n = (double)fio->n_samples;
    if (fio->n_samples == 0) {
        program_fail(program,
                     !fio->from_file && !fio->laid_out && fio->n_full < fio->n_threads
                         ? "not one request was measured: span_bytes is written first, and "
                           "measure.warmup_us and duration_us were over before; it need not be "
                           "with laid_out = true"
                         : "not one request was measured: none ended within "
                           "measure.duration_us");
        return;
    }
    if (!program->finite && !program_has_measured(program, "request"))
        return;
    const double seconds = served_s(fio, duration_ps);
    record_latencies(fio);
    program_metric(program, "iops", "1/s", n / seconds);
    program_metric(program, "read_iops", "1/s", (double)fio->n_of[FIO_READ] / seconds);
    program_metric(program, "write_iops", "1/s", (double)fio->n_of[FIO_WRITE] / seconds);
    program_metric(program, "throughput_gbyte_s", "GB/s", fio->bytes / seconds * 1e-9);
    program_metric(program, "fio_gbyte_s", "GB/s", fio->bytes / seconds * 1e-9);
    program_metric(program, "failed_requests", "1", (double)fio->n_errors);
    for (unsigned i = 0; fio->from_file && i < fio->n_descriptions; i++)
        record_job(fio, i);
    write_json(fio);
}
