/* nudma export --histograms and --series: what runs have recorded besides their metrics. */
#include <inttypes.h>
#include <string.h>

#include "cli/base/csv.h"
#include "cli/base/json.h"
#include "cli/results/result_samples.h"

enum samples_kind { SAMPLES_HISTOGRAM, SAMPLES_SERIES };

bool result_samples_choose(const char *name, char **patterns)
{
    bool chosen = patterns == NULL;
    for (size_t i = 0; patterns != NULL && patterns[i] != NULL && !chosen; i++)
        chosen = g_pattern_match_simple(patterns[i], name);
    return chosen;
}

/* Names and, behind each, its unit; NULL: the database cannot be read. Those of `patterns`, NULL:
 * all. */
static GPtrArray *quantities(struct results_db *db, const char *scenario, enum samples_kind kind,
                             char **patterns)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    struct results_cursor *cursor = kind == SAMPLES_HISTOGRAM
                                        ? results_histogram_quantities(db, scenario)
                                        : results_series_quantities(db, scenario);
    for (const struct results_quantity *q; (q = results_next_quantity(cursor)) != NULL;) {
        if (!result_samples_choose(q->name, patterns))
            continue;
        g_ptr_array_add(names, g_strdup(q->name));
        g_ptr_array_add(names, g_strdup(q->unit));
    }
    if (cli_end(cursor))
        return names;
    g_ptr_array_free(names, TRUE);
    return NULL;
}

/* ---- Before anything is written -------------------------------------------------------------- */

static bool collect_names(const GPtrArray *sets, struct results_db *db, enum samples_kind kind,
                          GPtrArray *all)
{
    for (guint i = 0; i < sets->len; i++) {
        const struct result_set *set = sets->pdata[i];
        g_autoptr(GPtrArray) names = quantities(db, set->scenario, kind, NULL);
        if (names == NULL)
            return false;
        for (guint k = 0; k < names->len; k += 2) {
            if (!g_ptr_array_find_with_equal_func(all, names->pdata[k], g_str_equal, NULL))
                g_ptr_array_add(all, g_strdup(names->pdata[k]));
        }
    }
    return true;
}

bool result_samples_check(const GPtrArray *sets, struct results_db *db,
                          const struct result_samples *samples, struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(g_free);
    const char *what = !samples->series       ? "histogram"
                       : !samples->histograms ? "series"
                                              : "histogram or series";
    if ((samples->histograms && !collect_names(sets, db, SAMPLES_HISTOGRAM, all)) ||
        (samples->series && !collect_names(sets, db, SAMPLES_SERIES, all)))
        return false;
    const guint n = all->len;
    g_ptr_array_add(all, NULL);
    const char *const *names = (const char *const *)all->pdata;
    if (n == 0)
        sim_error_add(errors, NULL, 0, "no %s was recorded%s", what,
                      samples->series ? " (measure.sample_interval_us says how often)" : "");
    for (size_t i = 0; n > 0 && samples->metrics != NULL && samples->metrics[i] != NULL; i++) {
        bool matches = false;
        for (guint k = 0; k < n && !matches; k++)
            matches = g_pattern_match_simple(samples->metrics[i], names[k]);
        if (matches)
            continue;
        g_autofree char *suggestion = sim_suggestion(samples->metrics[i], names);
        sim_error_add(errors, NULL, 0, "--metric: no %s \"%s\"%s%s", what, samples->metrics[i],
                      *suggestion != '\0' ? "; " : "", suggestion);
    }
    return errors->n_messages == 0;
}

/* ---- CSV ------------------------------------------------------------------------------------- */

/* The axes of all sets, each once. Not owned. */
static GPtrArray *all_axes(const GPtrArray *sets)
{
    GPtrArray *axes = g_ptr_array_new();
    for (guint i = 0; i < sets->len; i++) {
        const struct result_set *set = sets->pdata[i];
        for (guint k = 0; k < set->axes->len; k++) {
            if (!g_ptr_array_find_with_equal_func(axes, set->axes->pdata[k], g_str_equal, NULL))
                g_ptr_array_add(axes, set->axes->pdata[k]);
        }
    }
    return axes;
}

/* What all rows of a quantity begin with. */
struct csv_quantity {
    const GPtrArray *axes;
    const struct result_set *set;
    const struct result_point *point;
    const char *name, *unit;
};

/* "scenario,values,metric,unit" */
static void csv_begin(FILE *out, const struct csv_quantity *q)
{
    csv_text(out, q->set->scenario);
    for (guint i = 0; i < q->axes->len; i++) {
        guint k;
        const bool found = g_ptr_array_find_with_equal_func(q->set->axes, q->axes->pdata[i],
                                                            g_str_equal, &k);
        putc(',', out);
        csv_text(out, found ? q->point->axis[k] : "");
    }
    putc(',', out);
    csv_text(out, q->name);
    putc(',', out);
    csv_text(out, q->unit);
}

static bool csv_histogram(FILE *out, const struct csv_quantity *q, struct results_cursor *buckets)
{
    for (const struct results_bucket *b; (b = results_next_bucket(buckets)) != NULL;) {
        csv_begin(out, q);
        putc(',', out);
        csv_number(out, b->lo);
        putc(',', out);
        csv_number(out, b->hi);
        fprintf(out, ",%" PRId64 "\r\n", b->count);
    }
    return cli_end(buckets);
}

static bool csv_series(FILE *out, const struct csv_quantity *q, struct results_cursor *samples)
{
    for (const struct results_sample *s; (s = results_next_sample(samples)) != NULL;) {
        csv_begin(out, q);
        fprintf(out, ",%" PRId64 ",", s->t_ps);
        csv_number(out, s->value);
        fputs("\r\n", out);
    }
    return cli_end(samples);
}

static bool csv_point(FILE *out, const GPtrArray *axes, const struct result_set *set,
                      const struct result_point *point, struct results_db *db,
                      enum samples_kind kind, const GPtrArray *names)
{
    bool good = true;
    for (guint i = 0; good && i < names->len; i += 2) {
        const struct csv_quantity q = { axes, set, point, names->pdata[i], names->pdata[i + 1] };
        good = kind == SAMPLES_HISTOGRAM
                   ? csv_histogram(out, &q,
                                   results_histogram(db, set->scenario, point->name, q.name))
                   : csv_series(out, &q, results_series(db, set->scenario, point->name, q.name));
    }
    return good;
}

bool result_samples_csv(FILE *out, const GPtrArray *sets, struct results_db *db,
                        const struct result_samples *samples)
{
    const enum samples_kind kind = samples->series ? SAMPLES_SERIES : SAMPLES_HISTOGRAM;
    g_autoptr(GPtrArray) axes = all_axes(sets);
    bool good = true;
    fputs("scenario", out);
    for (guint i = 0; i < axes->len; i++) {
        putc(',', out);
        csv_text(out, axes->pdata[i]);
    }
    fprintf(out, ",metric,unit,%s\r\n", kind == SAMPLES_SERIES ? "t_ps,value" : "lo,hi,count");
    for (guint i = 0; good && i < sets->len; i++) {
        const struct result_set *set = sets->pdata[i];
        g_autoptr(GPtrArray) names = quantities(db, set->scenario, kind, samples->metrics);
        good = names != NULL;
        for (guint k = 0; good && k < set->points->len; k++)
            good = csv_point(out, axes, set, set->points->pdata[k], db, kind, names);
    }
    return good;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static bool json_buckets(FILE *out, struct results_cursor *buckets)
{
    bool first = true;
    for (const struct results_bucket *b; (b = results_next_bucket(buckets)) != NULL;
         first = false) {
        fputs(first ? "[" : ", [", out);
        json_number(out, b->lo);
        fputs(", ", out);
        json_number(out, b->hi);
        fprintf(out, ", %" PRId64 "]", b->count);
    }
    return cli_end(buckets);
}

static bool json_samples(FILE *out, struct results_cursor *samples)
{
    bool first = true;
    for (const struct results_sample *s; (s = results_next_sample(samples)) != NULL;
         first = false) {
        fprintf(out, "%s[%" PRId64 ", ", first ? "" : ", ", s->t_ps);
        json_number(out, s->value);
        putc(']', out);
    }
    return cli_end(samples);
}

static bool json_kind(FILE *out, const struct result_set *set, const struct result_point *point,
                      struct results_db *db, enum samples_kind kind, char **patterns)
{
    const bool series = kind == SAMPLES_SERIES;
    g_autoptr(GPtrArray) names = quantities(db, set->scenario, kind, patterns);
    bool good = names != NULL;
    fprintf(out, ",\n      \"%s\": {", series ? "series" : "histograms");
    for (guint i = 0; good && i < names->len; i += 2) {
        const char *name = names->pdata[i];
        fputs(i == 0 ? "\n        " : ",\n        ", out);
        json_text(out, name);
        json_member(out, ": { ", "unit", names->pdata[i + 1]);
        fprintf(out, ", \"%s\": [", series ? "t_ps_value" : "lo_hi_count");
        good = series ? json_samples(out, results_series(db, set->scenario, point->name, name))
                      : json_buckets(out, results_histogram(db, set->scenario, point->name, name));
        fputs("] }", out);
    }
    fputs("\n      }", out);
    return good;
}

bool result_samples_json(FILE *out, const struct result_set *set, const struct result_point *point,
                         struct results_db *db, const struct result_samples *samples)
{
    return (!samples->histograms ||
            json_kind(out, set, point, db, SAMPLES_HISTOGRAM, samples->metrics)) &&
           (!samples->series || json_kind(out, set, point, db, SAMPLES_SERIES, samples->metrics));
}
