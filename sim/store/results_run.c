/* One run's result in memory: metrics, histograms, series, parameters, and its fingerprint. */
#include <math.h>
#include <string.h>

#include "sim/store/results_internal.h"

struct run_result *run_result_new(void)
{
    struct run_result *result = g_new0(struct run_result, 1);
    result->strings = g_string_chunk_new(1024);
    result->metric_index = g_hash_table_new(g_str_hash, g_str_equal);
    result->histograms = g_hash_table_new(g_str_hash, g_str_equal);
    result->series = g_hash_table_new(g_str_hash, g_str_equal);
    result->metrics = g_array_new(FALSE, FALSE, sizeof(struct result_metric));
    result->buckets = g_array_new(FALSE, FALSE, sizeof(struct result_bucket));
    result->samples = g_array_new(FALSE, FALSE, sizeof(struct result_sample));
    result->params = g_array_new(FALSE, FALSE, sizeof(struct result_param));
    result->notes = g_array_new(FALSE, FALSE, sizeof(struct result_param));
    return result;
}

struct run_result *run_result_new_declaring(void)
{
    struct run_result *result = run_result_new();
    result->declares = true;
    return result;
}

void run_result_free(struct run_result *result)
{
    if (result == NULL)
        return;
    g_array_free(result->notes, TRUE);
    g_array_free(result->params, TRUE);
    g_array_free(result->samples, TRUE);
    g_array_free(result->buckets, TRUE);
    g_array_free(result->metrics, TRUE);
    g_hash_table_destroy(result->series);
    g_hash_table_destroy(result->histograms);
    g_hash_table_destroy(result->metric_index);
    g_string_chunk_free(result->strings);
    g_free(result);
}

static const char *intern(struct run_result *result, const char *text)
{
    return g_string_chunk_insert_const(result->strings, text != NULL ? text : "");
}

void run_result_metric(struct run_result *result, const char *name, const char *unit, double value)
{
    SIM_ASSERT(isfinite(value) || result->declares, "metric %s is %f", name, value);
    const struct result_metric metric = { g_string_chunk_insert(result->strings, name),
                                          intern(result, unit), value };
    g_array_append_val(result->metrics, metric);
    const bool new = g_hash_table_insert(result->metric_index, (gpointer)metric.name,
                                         GUINT_TO_POINTER(result->metrics->len));
    SIM_ASSERT(new, "metric %s twice", name);
}

double run_result_value(const struct run_result *result, const char *name)
{
    const guint index = GPOINTER_TO_UINT(g_hash_table_lookup(result->metric_index, name));
    return index == 0 ? (double)NAN
                      : g_array_index(result->metrics, struct result_metric, index - 1).value;
}

struct bucket_context {
    struct run_result *result;
    const char *name, *unit;
    double scale;
};

static void add_bucket(void *context, uint64_t lo, uint64_t hi, uint64_t count)
{
    const struct bucket_context *c = context;
    const struct result_bucket bucket = { c->name, c->unit, (double)lo * c->scale,
                                          (double)hi * c->scale, count };
    g_array_append_val(c->result->buckets, bucket);
}

void run_result_histogram(struct run_result *result, const char *name, const char *unit,
                          double scale, const struct stat_histogram *h)
{
    SIM_ASSERT(!g_hash_table_contains(result->histograms, name), "histogram %s twice", name);
    struct bucket_context context = { result, intern(result, name), intern(result, unit), scale };
    g_hash_table_insert(result->histograms, (gpointer)context.name, (gpointer)context.unit);
    stat_histogram_each(h, add_bucket, &context);
}

void run_result_series(struct run_result *result, const char *name, const char *unit, sim_time t_ps,
                       double value)
{
    SIM_ASSERT(isfinite(value), "series %s has %f", name, value);
    const struct result_sample sample = { intern(result, name), intern(result, unit), t_ps, value };
    g_hash_table_insert(result->series, (gpointer)sample.name, (gpointer)sample.unit);
    g_array_append_val(result->samples, sample);
}

/* ---- Tables of statistics -------------------------------------------------------------------- */

/* latency_ns, "p99" -> latency_p99_ns; queue_depth, "p99" -> queue_depth_p99 */
static char *name_with(const char *prefix, const char *name, const char *what)
{
    static const char *const units[] = { "_gbyte_s", "_mbyte_s", "_gbit_s", "_bytes", "_ratio",
                                         "_mpps",    "_kpps",    "_pct",    "_ps",    "_ns",
                                         "_us",      "_ms",      "_s" };
    for (size_t i = 0; i < SIM_N_ELEMENTS(units); i++) {
        if (g_str_has_suffix(name, units[i])) {
            const int stem = (int)(strlen(name) - strlen(units[i]));
            return g_strdup_printf("%s%.*s_%s%s", prefix, stem, name, what, units[i]);
        }
    }
    return g_strdup_printf("%s%s_%s", prefix, name, what);
}

static void add_part(struct run_result *result, const char *prefix, const struct stat_desc *stat,
                     const char *what, double value)
{
    g_autofree char *name = name_with(prefix, stat->name, what);
    run_result_metric(result, name, stat->unit, value);
}

static void add_histogram(struct run_result *result, const char *prefix,
                          const struct stat_desc *stat, double scale,
                          const struct stat_histogram *h)
{
    static const struct {
        const char *what;
        double q;
    } parts[] = { { "p50", 0.5 },    { "p90", 0.9 }, { "p99", 0.99 },
                  { "p999", 0.999 }, { "min", 0.0 }, { "max", 1.0 } };
    if (h->n == 0 && !result->declares)
        return;
    add_part(result, prefix, stat, "mean", h->sum / (double)h->n * scale);
    for (size_t i = 0; i < SIM_N_ELEMENTS(parts); i++)
        add_part(result, prefix, stat, parts[i].what,
                 (double)stat_histogram_quantile(h, parts[i].q) * scale);
    g_autofree char *name = g_strconcat(prefix, stat->name, NULL);
    run_result_histogram(result, name, stat->unit, scale, h);
}

static void add_mean(struct run_result *result, const char *name, const char *unit, double scale,
                     const struct stat_mean *mean)
{
    if (mean->n == 0 && !result->declares)
        return;
    run_result_metric(result, name, unit, stat_mean_value(mean) * scale);
    if (isfinite(stat_mean_ci95(mean)) || result->declares) {
        g_autofree char *ci = g_strconcat(name, ".ci95", NULL);
        run_result_metric(result, ci, unit, stat_mean_ci95(mean) * fabs(scale));
    }
}

/* What a resource carried of what it could. */
static void add_utilization(struct run_result *result, const char *prefix,
                            const struct stat_desc *stat, const void *state, sim_time duration_ps)
{
    char stem[64];
    const double share = stat_utilization(stat, state, duration_ps);
    if (!stat->has_peak || (!result->declares && !isfinite(share)))
        return;
    g_autofree char *name = g_strconcat(prefix, stat_utilization_name(stat, stem), NULL);
    run_result_metric(result, name, "1", isfinite(share) ? share : 0.0);
}

void run_result_stats(struct run_result *result, const char *prefix, const struct stat_desc *table,
                      const void *state, sim_time duration_ps)
{
    const double seconds = (double)duration_ps / (double)SIM_PS_PER_S;
    for (const struct stat_desc *stat = table; stat != NULL && stat->kind != STAT_END; stat++) {
        const void *field = (const char *)state + stat->offset;
        const double scale = stat->scale != 0.0 ? stat->scale : 1.0;
        if (!stat_exists(stat, state))
            continue;
        char *name = g_strconcat(prefix, stat->name, NULL);
        switch (stat->kind) {
        case STAT_COUNTER:
        case STAT_MAX:
            run_result_metric(result, name, stat->unit, (double)*(const uint64_t *)field * scale);
            break;
        case STAT_RATE:
            if (duration_ps != 0 || result->declares)
                run_result_metric(result, name, stat->unit,
                                  (double)*(const uint64_t *)field * scale / seconds);
            break;
        case STAT_MEAN: add_mean(result, name, stat->unit, scale, field); break;
        case STAT_HISTOGRAM: add_histogram(result, prefix, stat, scale, field); break;
        case STAT_BOUND:
        case STAT_END: break;
        }
        g_free(name);
        add_utilization(result, prefix, stat, state, duration_ps);
    }
}

/* ---- Names ----------------------------------------------------------------------------------- */

static GHashTable *names_of(const struct run_result *result, enum record_kind kind)
{
    switch (kind) {
    case RECORD_HISTOGRAM: return result->histograms;
    case RECORD_SERIES: return result->series;
    default: return result->metric_index;
    }
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void run_result_declare(struct run_result *result, enum record_kind kind, const char *name,
                        const char *unit)
{
    if (kind == RECORD_METRIC)
        run_result_metric(result, name, unit, 0.0);
    else
        g_hash_table_insert(names_of(result, kind), (gpointer)intern(result, name),
                            (gpointer)intern(result, unit));
}

const char *run_result_unit(const struct run_result *result, enum record_kind kind,
                            const char *name)
{
    const gpointer value = g_hash_table_lookup(names_of(result, kind), name);
    if (value == NULL || kind != RECORD_METRIC)
        return value;
    return g_array_index(result->metrics, struct result_metric, GPOINTER_TO_UINT(value) - 1).unit;
}

bool run_result_has(const struct run_result *result, enum record_kind kind, const char *name)
{
    return g_hash_table_contains(names_of(result, kind), name);
}

char **run_result_names(const struct run_result *result, enum record_kind kind)
{
    GPtrArray *names = g_ptr_array_new();
    GHashTableIter iter;
    gpointer name;
    g_hash_table_iter_init(&iter, names_of(result, kind));
    while (g_hash_table_iter_next(&iter, &name, NULL))
        g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, by_name);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

const char *run_result_undeclared(const struct run_result *result,
                                  const struct run_result *declared)
{
    for (int kind = RECORD_METRIC; kind <= RECORD_SERIES; kind++) {
        GHashTableIter iter;
        gpointer name;
        g_hash_table_iter_init(&iter, names_of(result, (enum record_kind)kind));
        while (g_hash_table_iter_next(&iter, &name, NULL)) {
            if (!run_result_has(declared, (enum record_kind)kind, name))
                return name;
        }
    }
    return NULL;
}

/* ---- Parameters and the fingerprint ---------------------------------------------------------- */

static void add_param(void *context, const char *path, const char *value, const char *unit,
                      enum param_provenance provenance, const char *origin)
{
    static const char *const names[] = { "", "datasheet", "published", "calibrated", "estimate" };
    struct run_result *result = context;
    const struct result_param param = { intern(result, path), intern(result, value),
                                        intern(result, unit), names[provenance] };
    (void)origin;
    g_array_append_val(result->params, param);
}

void run_result_params(struct run_result *result, const struct config *config)
{
    g_array_set_size(result->params, 0);
    config_each_param(config, add_param, result);
    g_array_append_vals(result->params, result->notes->data, result->notes->len);
}

void run_result_note(struct run_result *result, const char *name, const char *text)
{
    g_autofree char *whole = g_strconcat("note.", name, NULL);
    const struct result_param note = { intern(result, whole), intern(result, text), "", "" };
    g_array_append_val(result->notes, note);
}

const char *run_result_note_text(const struct run_result *result, const char *stem, unsigned i)
{
    g_autofree char *whole = g_strconcat("note.", stem, NULL);
    for (guint k = 0; k < result->notes->len; k++) {
        const struct result_param *note = &g_array_index(result->notes, struct result_param, k);
        if (g_str_has_prefix(note->name, whole) && i-- == 0)
            return note->value;
    }
    return NULL;
}

/* MurmurHash3's finaliser over what came so far and the next word */
static uint64_t mix(uint64_t hash, uint64_t word)
{
    uint64_t z = (hash ^ word) + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    z = (z ^ (z >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return z ^ (z >> 33);
}

static uint64_t mix_double(uint64_t hash, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return mix(hash, bits);
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = mix(hash, (unsigned char)*text);
    return mix(hash, 0);
}

uint64_t run_result_fingerprint(const struct run_result *result, uint64_t events_fingerprint)
{
    uint64_t hash = mix(0, events_fingerprint);
    for (guint i = 0; i < result->metrics->len; i++) {
        const struct result_metric *m = &g_array_index(result->metrics, struct result_metric, i);
        hash = mix_double(mix_text(mix_text(hash, m->name), m->unit), m->value);
    }
    for (guint i = 0; i < result->buckets->len; i++) {
        const struct result_bucket *b = &g_array_index(result->buckets, struct result_bucket, i);
        hash = mix(mix_double(mix_text(hash, b->name), b->lo), b->count);
    }
    for (guint i = 0; i < result->samples->len; i++) {
        const struct result_sample *s = &g_array_index(result->samples, struct result_sample, i);
        hash = mix_double(mix(mix_text(hash, s->name), s->t_ps), s->value);
    }
    return hash;
}
