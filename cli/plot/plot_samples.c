/*
 * Curves out of what a run recorded besides its metrics: series over time, averaged over the seeds,
 * and distributions, with the samples of all seeds together.
 */
#include <string.h>

#include "cli/plot/plot_data.h"

struct reader {
    const struct plot_spec *spec;
    struct plot_data *data;
    const char *unit; /* of what was recorded; NULL: nothing so far */
};

static void add_value(struct plot_curve *curve, double x, double y)
{
    const struct plot_value value = { .x = x, .y = y };
    g_array_append_val(curve->values, value);
}

/* Over the buckets' counts so far; from 0 at the lowest value to 1 at the highest. */
static void make_cumulative(struct plot_curve *curve)
{
    double sum = 0.0;
    for (guint i = 0; i < curve->values->len; i++) {
        struct plot_value *value = &g_array_index(curve->values, struct plot_value, i);
        sum += value->y;
        value->y = sum;
    }
    for (guint i = 0; i < curve->values->len; i++)
        g_array_index(curve->values, struct plot_value, i).y /= sum;
}

static void take_unit(struct reader *reader, const char *unit)
{
    if (reader->unit == NULL)
        reader->unit = g_string_chunk_insert_const(reader->data->strings, unit);
}

static void read_series(struct reader *reader, struct results_cursor *samples,
                        struct plot_curve *curve)
{
    for (const struct results_sample *s; (s = results_next_sample(samples)) != NULL;) {
        take_unit(reader, s->unit);
        if (curve->values->len == 0)
            plot_unit_factor(s->unit, reader->spec->y_unit, &curve->y_factor);
        add_value(curve, (double)s->t_ps, s->value * curve->y_factor);
    }
    cli_end(samples);
}

/* A distribution stays level where no bucket has samples. */
static void read_histogram(struct reader *reader, struct results_cursor *buckets,
                           struct plot_curve *curve)
{
    double end = 0.0; /* of the last bucket */
    for (const struct results_bucket *b; (b = results_next_bucket(buckets)) != NULL;) {
        take_unit(reader, b->unit);
        if (curve->values->len == 0 || b->lo > end)
            add_value(curve, b->lo, 0.0);
        add_value(curve, b->hi, (double)b->count);
        end = b->hi;
    }
    if (cli_end(buckets) && curve->values->len > 0)
        make_cumulative(curve);
}

static void scale_x(struct plot_data *data, double factor)
{
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        for (guint k = 0; k < curve->values->len; k++)
            g_array_index(curve->values, struct plot_value, k).x *= factor;
    }
}

static double last_x(const struct plot_data *data)
{
    double last = 0.0;
    for (guint i = 0; i < data->curves->len; i++) {
        const GArray *values = ((const struct plot_curve *)data->curves->pdata[i])->values;
        last = MAX(last, g_array_index(values, struct plot_value, values->len - 1).x);
    }
    return last;
}

/* The largest unit of time in which the curves end at 10 or more. */
static const char *time_unit(double last_ps)
{
    return last_ps >= 1e13 ? "s" : last_ps >= 1e10 ? "ms" : last_ps >= 1e7 ? "us" : "ns";
}

/* From what was recorded to the unit that the panel asks for, if both are of one kind. */
static void convert(struct reader *reader)
{
    struct plot_data *data = reader->data;
    const bool time = reader->spec->kind == PLOT_SERIES;
    const char *recorded = time ? "ps" : reader->unit != NULL ? reader->unit : "";
    if (*data->x_unit == '\0')
        data->x_unit = time ? time_unit(last_x(data)) : recorded;
    if (time && *data->y_unit == '\0' && reader->unit != NULL)
        data->y_unit = reader->unit;
    plot_unit_factor(recorded, data->x_unit, &data->factor);
    scale_x(data, data->factor);
}

void plot_samples_collect(struct scenario *scenario, const struct plot_spec *spec,
                          struct results_db *db, struct plot_data *data)
{
    const char *name = scenario_name(scenario);
    struct reader reader = { .spec = spec, .data = data };
    for (guint m = 0; m < spec->metrics->len; m++) {
        const char *metric = spec->metrics->pdata[m];
        for (size_t i = 0; i < scenario_n_points(scenario); i++) {
            if (!spec->shown[i])
                continue;
            const char *point = scenario_point_name(scenario, i);
            char *series = plot_series_name(spec, scenario, i);
            struct plot_curve *curve = plot_curve_new(data, plot_curve_label(spec, series, metric),
                                                      series, metric);
            curve->color = data->curves->len - 1;
            if (spec->kind == PLOT_SERIES)
                read_series(&reader, results_series(db, name, point, metric), curve);
            else
                read_histogram(&reader, results_histogram(db, name, point, metric), curve);
            if (curve->values->len == 0)
                g_ptr_array_remove_index(data->curves, data->curves->len - 1);
        }
    }
    if (data->curves->len > 0)
        convert(&reader);
}

double plot_quantile_of(const char *metric, const char *histogram)
{
    static const struct {
        const char *infix;
        double share;
    } quantiles[] = { { "_p50", 0.5 }, { "_p90", 0.9 }, { "_p999", 0.999 }, { "_p99", 0.99 } };
    for (size_t i = 0; i < SIM_N_ELEMENTS(quantiles); i++) {
        const char *at = strstr(metric, quantiles[i].infix);
        if (at == NULL)
            continue;
        g_autofree char *without = g_strdup_printf("%.*s%s", (int)(at - metric), metric,
                                                   at + strlen(quantiles[i].infix));
        const bool same = strcmp(without, histogram) == 0;
        if (same)
            return quantiles[i].share;
    }
    return 0.0;
}
