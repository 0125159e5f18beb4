/*
 * Results in the form of fio 3's --output-format=json, for tools that read that: names, nesting and
 * units are fio's (docs/fio.md). What is not measured is left out (processor time, context
 * switches, use of disks), what cannot happen is zero (short requests, page faults, trims).
 */
#include <errno.h>
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/fio/fio_internal.h"

struct json {
    GString *text;
    unsigned depth;
    bool first; /* of what is open */
};

/* ---- Writing --------------------------------------------------------------------------------- */

static void put_text(GString *out, const char *text)
{
    g_string_append_c(out, '"');
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            g_string_append_printf(out, "\\%c", c);
        else if (c < 0x20)
            g_string_append_printf(out, "\\u%04x", c);
        else
            g_string_append_c(out, (char)c);
    }
    g_string_append_c(out, '"');
}

static void item(struct json *json, const char *name)
{
    g_string_append(json->text, json->first ? "\n" : ",\n");
    g_string_append_printf(json->text, "%*s", (int)(2 * json->depth), "");
    json->first = false;
    if (name == NULL)
        return;
    put_text(json->text, name);
    g_string_append(json->text, " : ");
}

static void open_group(struct json *json, const char *name, char bracket)
{
    if (json->depth != 0)
        item(json, name);
    g_string_append_c(json->text, bracket);
    json->depth++;
    json->first = true;
}

static void close_group(struct json *json, char bracket)
{
    json->depth--;
    if (!json->first)
        g_string_append_printf(json->text, "\n%*s", (int)(2 * json->depth), "");
    g_string_append_c(json->text, bracket);
    json->first = false;
}

static void put_int(struct json *json, const char *name, uint64_t value)
{
    item(json, name);
    g_string_append_printf(json->text, "%" G_GUINT64_FORMAT, value);
}

static void put_number(struct json *json, const char *name, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    item(json, name);
    g_string_append(json->text,
                    g_ascii_formatd(text, sizeof(text), "%.6f", isfinite(value) ? value : 0));
}

static void put_string(struct json *json, const char *name, const char *value)
{
    item(json, name);
    put_text(json->text, value);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static uint64_t to_ns(double ps)
{
    return (uint64_t)(ps / 1000 + 0.5);
}

/* percentiles of `options`, or NULL. */
static void put_latency(struct json *json, const char *name, const struct fio_latency *latency,
                        const struct fio_options *options)
{
    const struct stat_histogram *h = &latency->ps;
    open_group(json, name, '{');
    put_int(json, "min", h->n != 0 ? to_ns((double)h->min) : 0);
    put_int(json, "max", h->n != 0 ? to_ns((double)h->max) : 0);
    put_number(json, "mean", h->n != 0 ? h->sum / (double)h->n / 1000 : 0);
    put_number(json, "stddev", fio_latency_deviation(latency) / 1000);
    put_int(json, "N", h->n);
    if (options != NULL && h->n != 0) {
        open_group(json, "percentile", '{');
        for (unsigned i = 0; i < options->n_percentiles; i++) {
            char key[32];
            g_ascii_formatd(key, sizeof(key), "%.6f", options->percentile[i]);
            put_int(json, key,
                    to_ns((double)stat_histogram_quantile(h, options->percentile[i] / 100)));
        }
        close_group(json, '}');
    }
    close_group(json, '}');
}

/* fio samples bandwidth every 500 ms, which no run here lasts. */
static void put_samples(struct json *json)
{
    static const char *const zero[] = { "bw_min",    "bw_max",      "bw_agg",      "bw_mean",
                                        "bw_dev",    "bw_samples",  "iops_min",    "iops_max",
                                        "iops_mean", "iops_stddev", "iops_samples" };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(zero); i++)
        put_int(json, zero[i], 0);
}

static void put_direction(struct json *json, const char *name, const struct fio_direction_stats *of,
                          const struct fio_options *options, double seconds)
{
    const double per_s = of->n != 0 && seconds > 0 ? 1 / seconds : 0;
    open_group(json, name, '{');
    put_int(json, "io_bytes", of->bytes);
    put_int(json, "io_kbytes", of->bytes / 1024);
    put_int(json, "bw_bytes", (uint64_t)((double)of->bytes * per_s));
    put_int(json, "bw", (uint64_t)((double)of->bytes * per_s / 1024));
    put_number(json, "iops", (double)of->n * per_s);
    put_int(json, "runtime", of->n != 0 ? (uint64_t)ceil(seconds * 1000) : 0);
    put_int(json, "total_ios", of->n);
    put_int(json, "short_ios", 0);
    put_int(json, "drop_ios", 0);
    put_latency(json, "slat_ns", &of->slat, options->slat_percentiles ? options : NULL);
    put_latency(json, "clat_ns", &of->clat, options->clat_percentiles ? options : NULL);
    put_latency(json, "lat_ns", &of->lat, options->lat_percentiles ? options : NULL);
    put_samples(json);
    close_group(json, '}');
}

/* Shares in percent of their sum. */
static void put_levels(struct json *json, const char *name, const char *const *labels,
                       const uint64_t *level, unsigned n, uint64_t sum)
{
    open_group(json, name, '{');
    for (unsigned i = 0; i < n; i++)
        put_number(json, labels[i], sum != 0 ? 100 * (double)level[i] / (double)sum : 0);
    close_group(json, '}');
}

static uint64_t sum_of(const uint64_t *level, unsigned n)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += level[i];
    return sum;
}

static void put_all_levels(struct json *json, const struct fio_stats *stats)
{
    static const char *const depths[] = { "1", "2", "4", "8", "16", "32", ">=64" };
    static const char *const batches[] = { "0", "4", "8", "16", "32", "64", ">=64" };
    static const char *const times[] = { "2",   "4",   "10",  "20",   "50",   "100",
                                         "250", "500", "750", "1000", "2000", ">=2000" };
    const uint64_t n = sum_of(stats->level_ns, FIO_NS_LEVELS) +
                       sum_of(stats->level_us, FIO_NS_LEVELS) +
                       sum_of(stats->level_ms, FIO_MS_LEVELS);
    put_levels(json, "iodepth_level", depths, stats->depth, FIO_DEPTH_LEVELS,
               sum_of(stats->depth, FIO_DEPTH_LEVELS));
    put_levels(json, "iodepth_submit", batches, stats->submit, FIO_DEPTH_LEVELS,
               sum_of(stats->submit, FIO_DEPTH_LEVELS));
    put_levels(json, "iodepth_complete", batches, stats->complete, FIO_DEPTH_LEVELS,
               sum_of(stats->complete, FIO_DEPTH_LEVELS));
    put_levels(json, "latency_ns", times, stats->level_ns, FIO_NS_LEVELS, n);
    put_levels(json, "latency_us", times, stats->level_us, FIO_NS_LEVELS, n);
    put_levels(json, "latency_ms", times, stats->level_ms, FIO_MS_LEVELS, n);
}

/* Each key once, with what it was set to last. */
static void put_options(struct json *json, const struct fio_options *options)
{
    g_auto(GStrv) line = g_strsplit(options->text != NULL ? options->text : "", "\n", -1);
    open_group(json, "job options", '{');
    put_string(json, "name", options->name);
    for (unsigned i = 0; line[i] != NULL; i++) {
        char *equals = strchr(line[i], '=');
        bool again = equals == NULL || g_str_has_prefix(line[i], "name=");
        for (unsigned k = i + 1; !again && line[k] != NULL; k++)
            again = strncmp(line[i], line[k], (size_t)(equals - line[i]) + 1) == 0;
        if (again)
            continue;
        *equals = '\0';
        put_string(json, line[i], equals + 1);
        *equals = '=';
    }
    close_group(json, '}');
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

static void put_job(struct json *json, const struct fio_thread *thread, unsigned group,
                    const struct fio_stats *stats)
{
    const struct fio_options *options = thread->options;
    const double seconds = (double)(stats->end_ps - stats->begin_ps) * 1e-12;
    struct fio_direction_stats none = { 0 };
    struct fio_latency no_syncs = { 0 };
    open_group(json, NULL, '{');
    put_string(json, "jobname", options->name);
    put_int(json, "groupid", group);
    put_int(json, "error", (uint64_t)stats->first_error);
    put_int(json, "eta", 0);
    put_int(json, "elapsed", (uint64_t)ceil(seconds));
    if (options->description != NULL)
        put_string(json, "desc", options->description);
    put_options(json, options);
    put_direction(json, "read", &stats->of[FIO_READ], options, seconds);
    put_direction(json, "write", &stats->of[FIO_WRITE], options, seconds);
    put_direction(json, "trim", &none, options, seconds);
    open_group(json, "sync", '{');
    put_int(json, "total_ios", stats->n_syncs);
    put_latency(json, "lat_ns", &no_syncs, NULL);
    close_group(json, '}');
    put_int(json, "job_runtime", (uint64_t)ceil(seconds * 1000));
    put_int(json, "majf", 0);
    put_int(json, "minf", 0);
    put_all_levels(json, stats);
    put_int(json, "latency_depth", options->depth);
    put_int(json, "latency_target", 0);
    put_number(json, "latency_percentile", 100);
    put_int(json, "latency_window", 0);
    put_int(json, "total_err", stats->n_errors);
    put_int(json, "first_error", (uint64_t)stats->first_error);
    close_group(json, '}');
}

static unsigned group_of(const struct fio *fio, const struct fio_thread *thread)
{
    return fio->description[thread->description].group;
}

/* It is a part of its group's entry. */
static bool is_grouped(const struct fio_thread *thread)
{
    return thread->options->group_reporting && !thread->options->no_stats;
}

static bool reported_before(const struct fio *fio, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (is_grouped(fio->thread[k]) &&
            group_of(fio, fio->thread[k]) == group_of(fio, fio->thread[i]))
            return true;
    return false;
}

/* All jobs of the group that say group_reporting, in the name of the first; none with stats=0. */
static void put_group(struct json *json, const struct fio *fio, unsigned first)
{
    const unsigned group = group_of(fio, fio->thread[first]);
    struct fio_stats sum;
    fio_stats_init(&sum);
    for (unsigned i = first; i < fio->n_threads; i++) {
        const struct fio_stats one = fio_stats_of(fio->thread[i]);
        if (is_grouped(fio->thread[i]) && group_of(fio, fio->thread[i]) == group)
            fio_stats_merge(&sum, &one);
    }
    put_job(json, fio->thread[first], group, &sum);
    fio_stats_release(&sum);
}

static void put_jobs(struct json *json, const struct fio *fio)
{
    open_group(json, "jobs", '[');
    for (unsigned i = 0; i < fio->n_threads; i++) {
        const struct fio_thread *thread = fio->thread[i];
        const struct fio_stats stats = fio_stats_of(thread);
        if (thread->options->no_stats)
            continue;
        if (!thread->options->group_reporting)
            put_job(json, thread, group_of(fio, thread), &stats);
        else if (!reported_before(fio, i))
            put_group(json, fio, i);
    }
    close_group(json, ']');
}

/* Through what has this name, not in its place: it may be a pipe, a link or a device. 0 or an
 * errno. */
static int write_through(const char *path, const GString *text)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return errno;
    const int failure = fwrite(text->str, 1, text->len, file) == text->len ? 0 : errno;
    return fclose(file) == 0 || failure != 0 ? failure : errno;
}

bool fio_json_write(const struct fio *fio, char **error)
{
    struct json json = { .text = g_string_new("") };
    GString *path = g_string_new(fio->json_path);
    g_autofree char *seed = g_strdup_printf("%" G_GUINT64_FORMAT,
                                            sim_seed(fio->program->workload->sim));
    open_group(&json, NULL, '{');
    put_string(&json, "fio version", "nudma (in the form of fio 3.36)");
    put_int(&json, "timestamp", 0);
    put_int(&json, "timestamp_ms", 0);
    put_string(&json, "time", "Thu Jan  1 00:00:00 1970");
    put_jobs(&json, fio);
    open_group(&json, "disk_util", '[');
    close_group(&json, ']');
    close_group(&json, '}');
    g_string_append_c(json.text, '\n');
    g_string_replace(path, "{seed}", seed, 0);
    const int failure = write_through(path->str, json.text);
    *error = failure == 0 ? NULL : g_strdup_printf("%s: %s", path->str, strerror(failure));
    g_string_free(path, TRUE);
    g_string_free(json.text, TRUE);
    return failure == 0;
}
