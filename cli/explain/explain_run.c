/* Runs the point as it stands, with each resource larger, then the same without its limit. */
#include <math.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/campaign/stop.h"
#include "cli/campaign/worker.h"
#include "cli/explain/explain.h"
#include "cli/plot/plot_spec.h"
#include "workloads/base/workload.h"
#include "workloads/experiment.h"

#define SEEDS      3   /* as figures have */
#define GONE_STEPS 3   /* a limit of 8 times as much is none */
#define BUSY_RATIO 0.9 /* of its peak: a link that may be one of several in a row */

/* ---- Runs in worker processes ---------------------------------------------------------------- */

struct batch {
    const struct explain_request *request;
    const struct explain_resource *gone; /* changed in all of them; NULL: nothing */
    GPtrArray *resources;                /* one for each job but the first, which is without */
    const char *metric;                  /* NULL: of the first job only */
    const double *first_value; /* what the first job gives, if that is known: it does not run */
    GArray *effects;           /* struct explain_effect, in this order */
    GArray *values;            /* double: of each, of each seed */
    struct run_result **base;  /* where the first job's goes; NULL: nowhere */
    char *error;               /* of the first job */
    unsigned n_ended, n_runs;
};

/* One line that is rewritten: runs may take minutes. */
static void show_progress(const struct batch *batch)
{
    if (batch->request->shows_progress)
        fprintf(stderr, "\rexplain: %u of %u runs\033[K", batch->n_ended, batch->n_runs);
}

/* "as it is, seed 2", "IOTLB of server", "3 limits together" */
static char *job_name(const struct batch *batch, size_t job)
{
    const unsigned n_seeds = MAX(batch->request->n_seeds, 1u);
    const struct explain_resource *resource =
        g_array_index(batch->effects, struct explain_effect, job / n_seeds).resource;
    if (resource == NULL)
        return g_strdup_printf("as it is, seed %" G_GUINT64_FORMAT,
                               batch->request->seed + job % n_seeds);
    return resource->parts != NULL ? g_strdup_printf("%u limits together", resource->parts->len)
                                   : g_strdup(resource->name);
}

/* "[3/38] IOTLB of server: 21.9484" */
static void print_run(const struct batch *batch, size_t job, const struct worker_report *report)
{
    char number[32] = "";
    if (!batch->request->prints_runs)
        return;
    g_autofree char *name = job_name(batch, job);
    if (report->error == NULL && report->result != NULL && batch->metric != NULL)
        cli_number(run_result_value(report->result, batch->metric), number);
    if (report->error != NULL && strstr(report->error, EXPLAIN_NO_EFFECT) != NULL)
        fprintf(stderr, "[%u/%u] %s: has no effect here\n", batch->n_ended, batch->n_runs, name);
    else
        fprintf(stderr, "[%u/%u] %s%s%s%s%s\n", batch->n_ended, batch->n_runs, name,
                *number != '\0' ? ": " : "", number, report->error != NULL ? ": failed: " : "",
                report->error != NULL ? report->error : "");
}

static void end_progress(const struct batch *batch)
{
    if (batch->request->shows_progress)
        fputs("\r\033[K", stderr);
}

static void apply(struct config *config, const struct explain_resource *resource,
                  struct sim_error_list *errors)
{
    for (guint i = 0; resource != NULL && i < resource->change->len; i++) {
        const struct explain_change *change = &g_array_index(resource->change,
                                                             struct explain_change, i);
        char number[G_ASCII_DTOSTR_BUF_SIZE];
        const char *text = change->is_switch
                               ? (change->to != 0.0 ? "true" : "false")
                               : g_ascii_formatd(number, sizeof(number), "%.15g", change->to);
        config_set(config, change->path, text, "explain", errors);
    }
}

static struct config *changed_point(const struct explain_request *request,
                                    const struct explain_resource *gone,
                                    const struct explain_resource *resource,
                                    struct sim_error_list *errors)
{
    struct config *config = scenario_point(request->scenario, request->point, errors);
    if (config == NULL)
        return NULL;
    apply(config, gone, errors);
    apply(config, resource, errors);
    return config;
}

/* In the worker. */
static void run_job(void *context, const struct worker_task *task, struct worker_report *report)
{
    const struct batch *batch = context;
    struct sim_error_list errors = { 0 };
    const struct explain_resource *resource = task->point > 0
                                                  ? batch->resources->pdata[task->point - 1]
                                                  : NULL;
    struct config *config = changed_point(batch->request, batch->gone, resource, &errors);
    worker_run(config, task, &errors, report);
}

static unsigned n_seeds_of(const struct batch *batch)
{
    return MAX(batch->request->n_seeds, 1u);
}

static void keep_job(void *context, size_t job, const struct worker_report *report)
{
    struct batch *batch = context;
    struct explain_effect *effect = &g_array_index(batch->effects, struct explain_effect,
                                                   job / n_seeds_of(batch));
    batch->n_ended++;
    show_progress(batch);
    print_run(batch, job, report);
    if (job == 0 && report->error != NULL)
        batch->error = g_strdup(report->error);
    if (report->error != NULL && effect->failure == NULL)
        effect->failure = g_strdup(report->error);
    if (report->error != NULL || report->result == NULL)
        return;
    if (batch->metric != NULL)
        g_array_index(batch->values, double, job) = run_result_value(report->result, batch->metric);
    if (job == 0 && batch->base != NULL) {
        size_t n_bytes;
        g_autofree void *packed = run_result_pack(report->result, &n_bytes);
        *batch->base = run_result_unpack(packed, n_bytes);
    }
}

static void clear_effect(gpointer effect)
{
    g_free(((struct explain_effect *)effect)->failure);
}

/* NAN if one is missing. */
static double mean_of(const double *values, unsigned n)
{
    double sum = 0.0;
    for (unsigned i = 0; i < n; i++)
        sum += values[i];
    return sum / n;
}

/* True if it was stopped. */
static bool wait_for_workers(const struct batch *batch, struct worker_pool *pool)
{
    return stop_has_come(batch->request->stop_fd) || worker_wait(pool, batch->request->stop_fd, -1);
}

/* False if the first job failed, or it was stopped. */
static bool run_batch(struct batch *batch)
{
    const guint n = 1 + (batch->resources != NULL ? batch->resources->len : 0);
    const unsigned n_seeds = n_seeds_of(batch);
    struct worker_pool *pool = worker_pool_new(
        batch->request->n_workers, (struct worker_limits){ 0 }, run_job, keep_job, batch);
    batch->effects = g_array_new(FALSE, TRUE, sizeof(struct explain_effect));
    g_array_set_clear_func(batch->effects, clear_effect);
    g_array_set_size(batch->effects, n);
    batch->values = g_array_new(FALSE, FALSE, sizeof(double));
    g_array_set_size(batch->values, n * n_seeds);
    batch->n_runs = n * n_seeds - (batch->first_value != NULL ? n_seeds : 0);
    show_progress(batch);
    for (guint i = 0; i < n; i++)
        g_array_index(batch->effects, struct explain_effect, i) = (struct explain_effect){
            .resource = i > 0 ? batch->resources->pdata[i - 1] : NULL,
        };
    bool stopped = stop_has_come(batch->request->stop_fd);
    for (guint i = 0; i < n * n_seeds; i++) {
        const struct worker_task task = { .job = i,
                                          .point = i / n_seeds,
                                          .seed = batch->request->seed + i % n_seeds };
        const bool known = batch->first_value != NULL && i < n_seeds;
        g_array_index(batch->values, double, i) = known ? *batch->first_value : (double)NAN;
        if (known)
            continue;
        while (!stopped && worker_pool_full(pool))
            stopped = wait_for_workers(batch, pool);
        if (!stopped && !worker_start(pool, &task) && i == 0)
            batch->error = g_strdup("no worker process can be made");
    }
    while (!stopped && worker_pool_running(pool) > 0)
        stopped = wait_for_workers(batch, pool);
    worker_pool_free(pool);
    end_progress(batch);
    for (guint i = 0; i < n; i++)
        g_array_index(batch->effects, struct explain_effect, i).value =
            mean_of(&g_array_index(batch->values, double, i *n_seeds), n_seeds);
    g_array_free(batch->values, TRUE);
    return batch->error == NULL && !stopped;
}

/* ---- The metric ------------------------------------------------------------------------------ */

static bool ends_in(const char *name, const char *const *endings)
{
    for (; *endings != NULL; endings++)
        if (g_str_has_suffix(name, *endings))
            return true;
    return false;
}

static bool less_is_better(const char *metric)
{
    static const char *const rates[] = { "_gbit_s", "_gbyte_s", "_mbyte_s", "_mt_s",
                                         "_per_s",  "_m_s",     "_k_s",     NULL };
    static const char *const times[] = { "_ns", "_us", "_ms", "_s", "_cycles", NULL };
    return !ends_in(metric, rates) && (ends_in(metric, times) || strstr(metric, "miss") != NULL);
}

/* Of a number or a count of bytes neither is said to be better. */
static enum explain_better which_is_better(const struct explain_request *request,
                                           const struct run_result *base, const char *metric)
{
    const char *unit = run_result_unit(base, RECORD_METRIC, metric);
    if (request->better != EXPLAIN_BY_NAME)
        return request->better;
    if (less_is_better(metric))
        return EXPLAIN_LESS;
    return unit != NULL && (strcmp(unit, "1") == 0 || strcmp(unit, "bytes") == 0) ? EXPLAIN_EITHER
                                                                                  : EXPLAIN_MORE;
}

static const char *unit_of(const char *metric)
{
    static const char *const units[][2] = {
        { "_gbit_s", "Gbit/s" }, { "_gbyte_s", "GB/s" }, { "_mbyte_s", "MB/s" },
        { "_mt_s", "MT/s" },     { "_ns", "ns" },        { "_us", "us" },
        { "_ms", "ms" },         { "_s", "s" },
    };
    for (size_t i = 0; i < SIM_N_ELEMENTS(units); i++)
        if (g_str_has_suffix(metric, units[i][0]))
            return units[i][1];
    return "";
}

/* The first that the scenario plots and the point records, else a usual one. */
static char *choose_metric(const struct explain_request *request, const struct run_result *base)
{
    static const char *const usual[] = {
        "throughput_gbit_s", "throughput_gbyte_s", "iops",           "bandwidth_gbyte_s",
        "load_latency_ns",   "latency_mean_ns",    "latency_mean_us"
    };
    struct sim_error_list ignored = { 0 };
    struct plot_figure figure = { 0 };
    char *metric = request->metric != NULL ? g_strdup(request->metric) : NULL;
    const bool read = metric == NULL && plot_figure_read(request->scenario, &figure, &ignored);
    if (read) {
        for (guint p = 0; p < figure.panels->len && metric == NULL; p++) {
            const struct plot_spec *spec = figure.panels->pdata[p];
            for (guint y = 0; y < spec->metrics->len && metric == NULL; y++)
                if (run_result_has(base, RECORD_METRIC, spec->metrics->pdata[y]))
                    metric = g_strdup(spec->metrics->pdata[y]);
        }
    }
    if (figure.panels != NULL)
        plot_figure_release(&figure);
    sim_error_release(&ignored);
    for (size_t i = 0; i < SIM_N_ELEMENTS(usual) && metric == NULL; i++)
        if (run_result_has(base, RECORD_METRIC, usual[i]))
            metric = g_strdup(usual[i]);
    return metric;
}

/* Of the value as it was: a time that is halved is 50 % better, a rate that doubles 100 %. */
static double gain(const struct explain_answer *answer, double from, double to)
{
    if (from > 0.0 && answer->better == EXPLAIN_EITHER)
        return fabs(to - from) / from;
    if (!(from > 0.0) || !(to > 0.0))
        return (double)NAN;
    return (answer->better == EXPLAIN_LESS ? from - to : to - from) / from;
}

/* ---- Counts ---------------------------------------------------------------------------------- */

/* How many per second a rate says; NAN: it is no rate of what is counted. */
static double count_rate(const struct run_result *base, const char *metric)
{
    static const struct {
        const char *unit;
        double per_s;
    } rates[] = { { "1/s", 1.0 }, { "1000/s", 1e3 }, { "MT/s", 1e6 } };
    const char *unit = run_result_unit(base, RECORD_METRIC, metric);
    for (size_t i = 0; unit != NULL && i < SIM_N_ELEMENTS(rates); i++)
        if (strcmp(unit, rates[i].unit) == 0)
            return rates[i].per_s * run_result_value(base, metric);
    return (double)NAN;
}

/* The same of a rate of bytes: that of the requests beside it, which carry them. */
static double request_rate(const struct run_result *base, const char *metric)
{
    static const char *const beside[] = { "iops", "transactions_kt_s", "transactions_mt_s" };
    const char *stem = g_strrstr(metric, "throughput_g");
    double rate = (double)NAN;
    for (size_t i = 0; stem != NULL && !isfinite(rate) && i < SIM_N_ELEMENTS(beside); i++) {
        g_autofree char *name = g_strdup_printf("%.*s%s", (int)(stem - metric), metric, beside[i]);
        rate = count_rate(base, name);
    }
    return rate;
}

static double measured_us(const struct explain_request *request)
{
    struct measure_params measure = { 0 };
    struct sim_error_list errors = { 0 };
    struct config *config = scenario_point(request->scenario, request->point, &errors);
    if (config != NULL)
        config_read_params(config, config_get(config_root(config), "measure"), "measure",
                           measure_params_table, &measure, &errors);
    config_free(config);
    sim_error_release(&errors);
    return (double)measure.duration_ps / (double)SIM_PS_PER_US;
}

/* A rate of what is counted has steps of one in the measured time. Where a number of transactions
 * ends it, the time has no steps: it is shorter, the steps found here are too small to matter. */
static void find_steps(struct explain_request *request, struct explain_answer *answer)
{
    double rate = count_rate(answer->base, answer->metric);
    if (!isfinite(rate))
        rate = request_rate(answer->base, answer->metric);
    answer->measured_us = measured_us(request);
    answer->n_counted = isfinite(rate) ? rate * answer->measured_us * 1e-6 : 0.0;
    if (answer->n_counted > 0.0) /* rounded: one more is one more */
        request->threshold_ratio = fmax(request->threshold_ratio, (1.0 + 1e-6) / answer->n_counted);
}

/* ---- Resources that stand in a row: one alone does not help ---------------------------------- */

static bool is_busy_link(const struct explain_resource *resource, const struct run_result *base)
{
    static const char head[] = "PCIe link ";
    if (base == NULL || !g_str_has_prefix(resource->name, head))
        return false;
    g_auto(GStrv) word = g_strsplit(resource->name + strlen(head), " ", 4);
    for (int e = 0; e < 3 && g_strv_length(word) == 4; e += 2) { /* "A to B (Gen3 x8)" */
        g_autofree char *name = g_strconcat(word[e], ".tx.utilization_ratio", NULL);
        if (run_result_value(base, name) >= BUSY_RATIO)
            return true;
    }
    return false;
}

static bool is_credits(const struct explain_resource *resource, const struct run_result *base)
{
    (void)base;
    return g_str_has_prefix(resource->name, "receive credits ");
}

static bool is_in_flight(const struct explain_resource *resource, const struct run_result *base)
{
    (void)base;
    return g_str_has_prefix(resource->name, "tags of ") ||
           strstr(resource->name, "eads in flight of ") != NULL ||
           g_str_has_prefix(resource->name, "read requests in flight ");
}

/* Those that belong together, if there are several; owner: of this owner alone, NULL: of any. */
static void add_joint(GPtrArray *resources, const struct run_result *base, const char *owner,
                      bool (*belongs)(const struct explain_resource *, const struct run_result *))
{
    g_autoptr(GPtrArray) parts = g_ptr_array_new();
    for (guint i = 0; i < resources->len; i++) {
        struct explain_resource *part = resources->pdata[i];
        if (part->parts == NULL && (owner == NULL || strcmp(part->owner, owner) == 0) &&
            belongs(part, base))
            g_ptr_array_add(parts, part);
    }
    if (parts->len > 1)
        g_ptr_array_add(resources, explain_join((void *)parts->pdata, parts->len));
}

static bool is_limit(const struct explain_resource *resource, const struct run_result *base)
{
    (void)base;
    return resource->kind == EXPLAIN_LIMIT;
}

/* All limits of each device, and of each host. */
static void add_joints_of_owners(GPtrArray *resources, const struct run_result *base)
{
    const guint n = resources->len;
    for (guint i = 0; i < n; i++) {
        const struct explain_resource *resource = resources->pdata[i];
        bool first = *resource->owner != '\0';
        for (guint k = 0; k < i && first; k++)
            first = strcmp(((struct explain_resource *)resources->pdata[k])->owner,
                           resource->owner) != 0;
        if (first)
            add_joint(resources, base, resource->owner, is_limit);
    }
}

static GPtrArray *find_resources(const struct explain_request *request,
                                 const struct explain_resource *gone, unsigned steps,
                                 const struct run_result *base, GPtrArray *ended,
                                 struct sim_error_list *errors)
{
    struct config *config = changed_point(request, gone, NULL, errors);
    GPtrArray *resources = NULL;
    if (config != NULL && errors->n_messages == 0 && experiment_check(config, errors))
        resources = explain_resources(config, steps, ended, errors);
    if (resources != NULL) {
        add_joint(resources, base, NULL, is_busy_link);
        add_joint(resources, base, NULL, is_credits);
        add_joint(resources, base, NULL, is_in_flight);
        add_joints_of_owners(resources, base);
    }
    config_free(config);
    return resources;
}

/* Before anything runs: reduce() and links that turn out to be busy add a few. */
static void print_plan(const struct explain_request *request, guint n_changes)
{
    const unsigned n_runs = SEEDS + n_changes + (request->brief ? 0 : 1 + n_changes);
    if (request->shows_progress || request->prints_runs)
        fprintf(stderr,
                "nudma explain: some %u runs are planned: %d of the point as it is, %u with a "
                "change%s; if seeds differ, %d of each\n",
                n_runs, SEEDS, n_changes, request->brief ? "" : ", as many without its limit",
                SEEDS);
}

/* False with mistakes in errors. */
static bool plan_runs(const struct explain_request *request, struct explain_answer *answer,
                      struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) resources = find_resources(request, NULL, 1, NULL, NULL, errors);
    struct config *config = changed_point(request, NULL, NULL, errors);
    if (config != NULL && errors->n_messages == 0 && experiment_check(config, errors))
        answer->cpu_host = explain_cpu_host(config);
    config_free(config);
    if (resources == NULL || errors->n_messages > 0)
        return false;
    print_plan(request, resources->len);
    return true;
}

/* ---- The answer ------------------------------------------------------------------------------ */

static gint by_gain(gconstpointer a, gconstpointer b)
{
    const double x = ((const struct explain_effect *)a)->gain_ratio,
                 y = ((const struct explain_effect *)b)->gain_ratio;
    const bool x_is = isfinite(x), y_is = isfinite(y);
    if (!x_is || !y_is)
        return (int)y_is - (int)x_is;
    return (x < y) - (x > y);
}

/* Whether they are the same but for what a link can do now. */
static bool is_same(const char *a, const char *b)
{
    const char *x = strstr(a, " (Gen"), *y = strstr(b, " (Gen");
    const size_t n = x != NULL ? (size_t)(x - a) : strlen(a);
    return n == (y != NULL ? (size_t)(y - b) : strlen(b)) && strncmp(a, b, n) == 0;
}

/* A faster root port has more credits, too. They are the limit where they alone do nearly as much,
 * or a part of it while the link as it is has room: it stands still for want of them. */
#define NEARLY_ALL 0.8
#define A_PART     0.25
const struct explain_effect *explain_credits_of_link(const GArray *effects, double threshold,
                                                     bool busy, const char *but,
                                                     const struct explain_effect *best)
{
    if (best == NULL || !g_str_has_prefix(best->resource->name, "PCIe link "))
        return best;
    const char *root = best->resource->root;
    const double nearly = fmax(threshold, (busy ? NEARLY_ALL : A_PART) * best->gain_ratio);
    for (guint i = 0; i < effects->len; i++) {
        const struct explain_effect *effect = &g_array_index(effects, struct explain_effect, i);
        if (g_str_has_prefix(effect->resource->name, "receive credits of root ports ") &&
            (root == NULL || strcmp(effect->resource->owner, root) == 0) &&
            (but == NULL || strcmp(effect->resource->name, but) != 0) &&
            effect->gain_ratio > nearly)
            return effect;
    }
    return best;
}

/* The one that helps most; several together only if one alone gives less than half of what they
 * do. base: what has been measured without any of them. */
static const struct explain_resource *best_limit(const GArray *effects, double threshold,
                                                 const struct run_result *base, const char *but)
{
    const struct explain_effect *single = NULL, *joint = NULL;
    for (guint i = 0; i < effects->len; i++) {
        const struct explain_effect *effect = &g_array_index(effects, struct explain_effect, i);
        if (effect->resource->kind == EXPLAIN_TIME || !(effect->gain_ratio > threshold) ||
            (but != NULL && is_same(effect->resource->name, but)))
            continue;
        const struct explain_effect **best = effect->resource->parts != NULL ? &joint : &single;
        if (*best == NULL)
            *best = effect;
    }
    const bool busy = single != NULL && is_busy_link(single->resource, base);
    single = explain_credits_of_link(effects, threshold, busy, but, single);
    if (joint != NULL && (single == NULL || joint->gain_ratio > 2.0 * single->gain_ratio))
        return joint->resource;
    return single != NULL ? single->resource : NULL;
}

/* Of several together those that matter: without any of them the others help less. A new resource
 * that `resources` owns, its effect in `effects`; the same if all matter. */
static const struct explain_resource *
reduce(const struct explain_request *request, struct explain_answer *answer,
       const struct explain_resource *gone, const struct explain_resource *joint,
       GPtrArray *resources, GArray *effects, double base, double threshold)
{
    const guint n = joint != NULL && joint->parts != NULL ? joint->parts->len : 0;
    g_autoptr(GPtrArray) tried = g_ptr_array_new_with_free_func(explain_resource_free);
    g_autoptr(GPtrArray) needed = g_ptr_array_new();
    if (n < 2)
        return joint;
    g_ptr_array_add(tried, explain_join((void *)joint->parts->pdata, n));
    for (guint i = 0; i < n; i++) {
        g_autoptr(GPtrArray) others = g_ptr_array_new();
        for (guint k = 0; k < n; k++)
            if (k != i)
                g_ptr_array_add(others, joint->parts->pdata[k]);
        g_ptr_array_add(tried, explain_join((void *)others->pdata, others->len));
    }
    struct batch batch = { .request = request,
                           .gone = gone,
                           .resources = tried,
                           .first_value = &base,
                           .metric = answer->metric };
    run_batch(&batch);
    const double all = gain(answer, base,
                            g_array_index(batch.effects, struct explain_effect, 1).value);
    for (guint i = 0; i < n; i++) {
        const double value = g_array_index(batch.effects, struct explain_effect, i + 2).value;
        if (!(gain(answer, base, value) > all - threshold))
            g_ptr_array_add(needed, joint->parts->pdata[i]);
    }
    g_free(batch.error);
    g_array_free(batch.effects, TRUE);
    if (needed->len < 2 || needed->len == n)
        return joint;
    struct explain_resource *less = explain_join((void *)needed->pdata, needed->len);
    g_autoptr(GPtrArray) last = g_ptr_array_new();
    g_ptr_array_add(last, less);
    struct batch again = { .request = request,
                           .gone = gone,
                           .resources = last,
                           .first_value = &base,
                           .metric = answer->metric };
    run_batch(&again); /* what remains has its own value: those left out do a little */
    const double value = g_array_index(again.effects, struct explain_effect, 1).value;
    const struct explain_effect effect = { less, value, gain(answer, base, value), NULL };
    g_free(again.error);
    g_array_free(again.effects, TRUE);
    g_ptr_array_add(resources, less);
    g_array_append_val(effects, effect);
    return less;
}

/* Without the first, which is the base; sorted. */
static GArray *effects_of(struct explain_answer *answer, struct batch *batch)
{
    const double base = g_array_index(batch->effects, struct explain_effect, 0).value;
    g_array_remove_index(batch->effects, 0);
    for (guint i = 0; i < batch->effects->len; i++) {
        struct explain_effect *effect = &g_array_index(batch->effects, struct explain_effect, i);
        effect->gain_ratio = gain(answer, base, effect->value);
    }
    g_array_sort(batch->effects, by_gain);
    return batch->effects;
}

/* Those of `resources` that are called as the parts are, together. */
static struct explain_resource *join_named(const GPtrArray *resources, const GPtrArray *parts)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new();
    for (guint i = 0; i < parts->len; i++)
        for (guint k = 0; k < resources->len; k++)
            if (strcmp(((struct explain_resource *)resources->pdata[k])->name,
                       ((struct explain_resource *)parts->pdata[i])->name) == 0)
                g_ptr_array_add(found, resources->pdata[k]);
    return explain_join((void *)found->pdata, found->len);
}

static bool find_next(const struct explain_request *request, struct explain_answer *answer,
                      double threshold, struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) far = find_resources(request, NULL, GONE_STEPS, answer->base, NULL,
                                              errors);
    const struct explain_resource *gone = NULL;
    struct explain_resource *joint = NULL;
    for (guint i = 0; far != NULL && i < far->len; i++)
        if (strcmp(((struct explain_resource *)far->pdata[i])->name, answer->limit->name) == 0)
            gone = far->pdata[i];
    if (far != NULL && answer->limit->parts != NULL)
        gone = joint = join_named(far, answer->limit->parts);
    if (gone == NULL)
        return errors->n_messages == 0; /* a joint is never NULL */
    struct run_result *without = NULL;
    struct batch first = {
        .request = request, .gone = gone, .metric = answer->metric, .base = &without
    };
    const bool runs = run_batch(&first);
    answer->value_without = g_array_index(first.effects, struct explain_effect, 0).value;
    g_array_free(first.effects, TRUE);
    g_free(first.error);
    if (runs && without != NULL)
        answer->gone = find_resources(request, gone, 1, without, NULL, errors);
    if (answer->gone != NULL) {
        struct batch batch = { .request = request,
                               .gone = gone,
                               .resources = answer->gone,
                               .first_value = &answer->value_without,
                               .metric = answer->metric };
        run_batch(&batch);
        g_free(batch.error);
        answer->next = effects_of(answer, &batch);
        answer->next_limit =
            reduce(request, answer, gone,
                   best_limit(answer->next, threshold, without, answer->limit->name), answer->gone,
                   answer->next, answer->value_without, threshold);
    }
    run_result_free(without);
    if (joint != NULL)
        explain_resource_free(joint);
    return errors->n_messages == 0;
}

/* The same point with other seeds: whether what they differ by is more than what would count. Then
 * values are means over them, and what differs by less is noise. */
static void look_at_seeds(struct explain_request *request, struct explain_answer *answer)
{
    double least = answer->value, most = answer->value, sum = answer->value;
    for (unsigned i = 1; i < SEEDS && request->n_seeds == 0; i++) {
        struct explain_request other = *request;
        other.seed += i;
        struct batch batch = { .request = &other, .metric = answer->metric };
        const bool runs = run_batch(&batch);
        const double value = g_array_index(batch.effects, struct explain_effect, 0).value;
        g_array_free(batch.effects, TRUE);
        g_free(batch.error);
        if (!runs || !isfinite(value))
            return;
        least = fmin(least, value);
        most = fmax(most, value);
        sum += value;
    }
    const double mean = sum / SEEDS;
    answer->n_seeds = 1;
    const bool by_one = answer->n_counted > 0.0 &&
                        (most - least) * answer->n_counted < 1.001 * answer->value;
    if (!(mean > 0.0) || by_one ||
        !((most - least) / mean > fmax(request->threshold_ratio, 2.0 * answer->noise_ratio)))
        return;
    answer->n_seeds = request->n_seeds = SEEDS;
    answer->spread_ratio = (most - least) / mean;
    answer->noise_ratio = answer->spread_ratio / 2.0;
    answer->value = mean;
}

/* Of the workload first: those without a dot. g_free(). */
static char *unknown_metric(const struct run_result *result, const char *metric)
{
    g_auto(GStrv) names = run_result_names(result, RECORD_METRIC);
    g_autofree char *near = sim_suggestion(metric, (const char *const *)names);
    g_autoptr(GString) own = g_string_new(NULL);
    for (char **name = names; *name != NULL; name++)
        if (strchr(*name, '.') == NULL)
            g_string_append_printf(own, "%s%s", own->len > 0 ? ", " : "", *name);
    if (g_str_has_prefix(near, "did you mean"))
        return g_strdup_printf("the point records no metric \"%s\"; %s", metric, near);
    return g_strdup_printf(
        "the point records no metric \"%s\"; expected one of %s, or those of hosts, "
        "devices and links (nudma results -m '*')",
        metric, own->str);
}

/* Whether the point may record what --metric names, before any run. */
static bool check_metric(const struct explain_request *request, struct sim_error_list *errors)
{
    if (request->metric == NULL)
        return true;
    struct run_result *declared = run_result_new_declaring();
    struct config *config = scenario_point(request->scenario, request->point, errors);
    const bool whole = config != NULL && experiment_declare(config, declared, errors);
    if (whole && !run_result_has(declared, RECORD_METRIC, request->metric)) {
        g_autofree char *fault = unknown_metric(declared, request->metric);
        sim_error_add(errors, NULL, 0, "--metric: %s", fault);
    }
    config_free(config);
    run_result_free(declared);
    return errors->n_messages == 0;
}

bool explain_point(const struct explain_request *asked, struct explain_answer *answer,
                   struct sim_error_list *errors, char **error)
{
    struct explain_request with_seeds = *asked;
    const struct explain_request *request = &with_seeds;
    struct batch base = { .request = request, .base = &answer->base };
    *answer = (struct explain_answer){ .value = (double)NAN, .value_without = (double)NAN };
    *error = NULL;
    if (!check_metric(request, errors) || !plan_runs(request, answer, errors))
        return false;
    const bool runs = run_batch(&base);
    g_array_free(base.effects, TRUE);
    if (stop_has_come(request->stop_fd)) {
        g_free(base.error);
        return false;
    }
    if (!runs || answer->base == NULL) {
        *error = base.error != NULL ? base.error : g_strdup("the run has left no result");
        return false;
    }
    answer->metric = choose_metric(request, answer->base);
    answer->value = answer->metric != NULL ? run_result_value(answer->base, answer->metric)
                                           : (double)NAN;
    if (!isfinite(answer->value)) {
        *error = answer->metric == NULL
                     ? g_strdup("the point records no metric that it plots; --metric names one")
                     : unknown_metric(answer->base, answer->metric);
        return false;
    }
    answer->unit = g_strdup(unit_of(answer->metric));
    answer->better = which_is_better(request, answer->base, answer->metric);
    g_autofree char *interval = g_strconcat(answer->metric, ".ci95", NULL);
    const double ci95 = run_result_value(answer->base, interval);
    answer->noise_ratio = isfinite(ci95) && answer->value > 0.0 ? ci95 / answer->value : 0.0;
    find_steps(&with_seeds, answer);
    look_at_seeds(&with_seeds, answer);
    const double threshold = fmax(request->threshold_ratio, 2.0 * answer->noise_ratio);
    answer->least_ratio = threshold;
    answer->ended = g_ptr_array_new_with_free_func(g_free);
    answer->resources = stop_has_come(request->stop_fd)
                            ? NULL
                            : find_resources(request, NULL, 1, answer->base, answer->ended, errors);
    if (answer->resources == NULL)
        return false;
    struct batch batch = { .request = request,
                           .resources = answer->resources,
                           .first_value = &answer->value,
                           .metric = answer->metric };
    run_batch(&batch);
    g_free(batch.error);
    answer->effects = effects_of(answer, &batch);
    if (stop_has_come(request->stop_fd))
        return false;
    if (!(answer->value > 0.0)) /* no share of it says how much better a change is */
        return true;
    answer->limit = reduce(request, answer, NULL,
                           best_limit(answer->effects, threshold, answer->base, NULL),
                           answer->resources, answer->effects, answer->value, threshold);
    return answer->limit == NULL || request->brief || find_next(request, answer, threshold, errors);
}

void explain_release(struct explain_answer *answer)
{
    run_result_free(answer->base);
    g_free(answer->metric);
    g_free(answer->unit);
    g_free(answer->cpu_host);
    if (answer->resources != NULL)
        g_ptr_array_free(answer->resources, TRUE);
    if (answer->ended != NULL)
        g_ptr_array_free(answer->ended, TRUE);
    if (answer->effects != NULL)
        g_array_free(answer->effects, TRUE);
    if (answer->next != NULL)
        g_array_free(answer->next, TRUE);
    if (answer->gone != NULL)
        g_ptr_array_free(answer->gone, TRUE);
}
