/*
 * Histograms and boxes out of the distributions that a run recorded, with the samples of all seeds
 * together. Within a bucket of what was recorded samples count as evenly spread: quantiles are
 * interpolated, and a bin gets of a bucket what it overlaps. Where metrics say more, as they are of
 * the samples themselves (latency_min_ns, latency_p50_ns ... of a histogram latency_ns), quantiles
 * keep to them: what lies between two that are known, of all seeds, lies between their values.
 */
#include <math.h>
#include <string.h>

#include "cli/plot/plot_data.h"

#define BINS_MAX     48u
#define BUCKETS_MIN  16.0 /* that the y axis spans: what is finer was not recorded */
#define WHISKERS_IQR 1.5
#define MARGIN       0.12 /* of the y axis, at both ends, where the samples beyond it are named */

struct bucket {
    double lo, hi, count;
    double width; /* as recorded: read_known() may move lo and hi of the outermost */
};

/* Quantiles that a run records as metrics of their own, ascending. */
static const struct {
    const char *infix;
    double share;
} known[] = {
    { "_min", 0.0 },  { "_p50", 0.5 },    { "_p90", 0.9 },      { "_p95", 0.95 },
    { "_p99", 0.99 }, { "_p999", 0.999 }, { "_p9999", 0.9999 }, { "_max", 1.0 },
};

struct distribution {
    GArray *buckets; /* struct bucket, ascending; none is empty */
    double total;
    struct results_range known[SIM_N_ELEMENTS(known)]; /* over all seeds; NAN: not recorded */
};

static struct bucket *bucket_at(const struct distribution *d, guint i)
{
    return &g_array_index(d->buckets, struct bucket, i);
}

/* ---- Boxes ----------------------------------------------------------------------------------- */

/* Between the nearest quantiles that are known. */
static double keep_between(const struct distribution *d, double share, double value)
{
    for (size_t i = 0; i < SIM_N_ELEMENTS(known); i++) {
        const struct results_range *range = &d->known[i];
        if (known[i].share <= share && value < range->least)
            value = range->least;
        if (known[i].share >= share && value > range->most)
            value = range->most;
    }
    return value;
}

static double interpolated(const struct distribution *d, double share)
{
    double below = 0.0;
    for (guint i = 0; i < d->buckets->len; i++) {
        const struct bucket *b = bucket_at(d, i);
        if (below + b->count >= share * d->total)
            return b->lo + (b->hi - b->lo) * (share * d->total - below) / b->count;
        below += b->count;
    }
    return bucket_at(d, d->buckets->len - 1)->hi;
}

static double quantile(const struct distribution *d, double share)
{
    return keep_between(d, share, interpolated(d, share));
}

static struct plot_box box_of(const struct distribution *d, enum plot_whiskers whiskers)
{
    struct plot_box box = { .q1 = quantile(d, 0.25),
                            .median = quantile(d, 0.5),
                            .q3 = quantile(d, 0.75),
                            .lowest = bucket_at(d, 0)->lo,
                            .highest = bucket_at(d, d->buckets->len - 1)->hi };
    const double reach = WHISKERS_IQR * (box.q3 - box.q1);
    box.low = box.lowest;
    box.high = box.highest;
    if (whiskers == PLOT_WHISKERS_MINMAX)
        return box;
    box.low = box.q1;
    box.high = box.q3;
    for (guint i = 0; i < d->buckets->len; i++) {
        const struct bucket *b = bucket_at(d, i);
        if (b->hi >= box.q1 - reach && b->lo < box.low)
            box.low = MAX(b->lo, box.q1 - reach);
        if (b->lo <= box.q3 + reach && b->hi > box.high)
            box.high = MIN(b->hi, box.q3 + reach);
    }
    return box;
}

/* ---- Bins ------------------------------------------------------------------------------------ */

static bool is_logarithmic(const struct plot_spec *spec, const struct plot_data *data)
{
    return spec->log_y >= 2 && data->y_lo > 0.0;
}

/* The lower edge of bin i of n. */
static double edge(const struct plot_spec *spec, const struct plot_data *data, guint i, guint n)
{
    const double part = (double)i / n;
    return is_logarithmic(spec, data) ? data->y_lo * pow(data->y_hi / data->y_lo, part)
                                      : data->y_lo + (data->y_hi - data->y_lo) * part;
}

static double share_pct(const struct distribution *d, double lo, double hi)
{
    double count = 0.0;
    for (guint i = 0; i < d->buckets->len; i++) {
        const struct bucket *b = bucket_at(d, i);
        const double overlap = MIN(b->hi, hi) - MAX(b->lo, lo);
        if (b->hi > b->lo && overlap > 0.0)
            count += b->count * overlap / (b->hi - b->lo);
        else if (b->hi <= b->lo && b->lo >= lo && b->lo < hi)
            count += b->count;
    }
    return 100.0 * count / d->total;
}

static void find_beyond(const struct distribution *d, const struct plot_data *data,
                        struct plot_box *box)
{
    box->below_pct = box->lowest < data->y_lo ? share_pct(d, -INFINITY, data->y_lo) : 0.0;
    box->above_pct = box->highest > data->y_hi ? share_pct(d, data->y_hi, INFINITY) : 0.0;
}

char *plot_beyond(const struct plot_curve *curve, bool above)
{
    const struct plot_box *box = &curve->box;
    const double share = above ? box->above_pct : box->below_pct;
    return share > 0.0 ? g_strdup_printf("%.2g %% %s %.4g", share, above ? "up to" : "down to",
                                         above ? box->highest : box->lowest)
                       : NULL;
}

static void add_point(struct plot_curve *curve, double x, double y)
{
    const struct plot_value value = { .x = x, .y = y };
    g_array_append_val(curve->values, value);
}

static void add_outline(const struct plot_spec *spec, const struct plot_data *data,
                        const struct distribution *d, guint n_bins, struct plot_curve *curve)
{
    add_point(curve, 0.0, data->y_lo);
    for (guint i = 0; i < n_bins; i++) {
        const double lo = edge(spec, data, i, n_bins), hi = edge(spec, data, i + 1, n_bins);
        const double share = share_pct(d, lo, hi);
        add_point(curve, share, lo);
        add_point(curve, share, hi);
    }
    add_point(curve, 0.0, data->y_hi);
}

guint plot_n_bins(const struct plot_curve *curve)
{
    return (curve->values->len - 2) / 2;
}

struct plot_bin plot_bin(const struct plot_curve *curve, guint i)
{
    const struct plot_value *lo = &g_array_index(curve->values, struct plot_value, 1 + 2 * i);
    return (struct plot_bin){ lo[0].y, lo[1].y, lo[0].x };
}

/* ---- All of them ----------------------------------------------------------------------------- */

static void free_distribution(gpointer pointer)
{
    struct distribution *d = pointer;
    g_array_free(d->buckets, TRUE);
    g_free(d);
}

/* NULL: no samples. */
static struct distribution *read_distribution(struct results_cursor *cursor, struct plot_data *data,
                                              const char **unit)
{
    struct distribution *d = g_new0(struct distribution, 1);
    d->buckets = g_array_new(FALSE, FALSE, sizeof(struct bucket));
    for (const struct results_bucket *b; (b = results_next_bucket(cursor)) != NULL;) {
        const struct bucket bucket = { b->lo, b->hi, (double)b->count, b->hi - b->lo };
        if (*unit == NULL)
            *unit = g_string_chunk_insert_const(data->strings, b->unit);
        if (b->count > 0)
            g_array_append_val(d->buckets, bucket);
        d->total += bucket.count;
    }
    if (!cli_end(cursor) || d->buckets->len == 0)
        g_clear_pointer(&d, free_distribution);
    return d;
}

/* "latency_ns" -> "latency_p50_ns"; g_free(). */
static char *quantile_name(const char *histogram, const char *infix)
{
    const char *unit = strrchr(histogram, '_');
    return unit == NULL
               ? NULL
               : g_strdup_printf("%.*s%s%s", (int)(unit - histogram), histogram, infix, unit);
}

/* What metrics say of the distribution; the outermost buckets end with the samples. */
static void read_known(struct distribution *d, struct results_db *db, const char *scenario,
                       const char *point, const char *histogram)
{
    for (size_t i = 0; i < SIM_N_ELEMENTS(known); i++) {
        g_autofree char *name = quantile_name(histogram, known[i].infix);
        d->known[i] = (struct results_range){ NAN, NAN };
        if (name == NULL)
            continue;
        struct results_cursor *cursor = results_range(db, scenario, point, name);
        const struct results_range *range = results_next_range(cursor);
        if (range != NULL)
            d->known[i] = *range;
        cli_end(cursor);
    }
    struct bucket *first = bucket_at(d, 0), *last = bucket_at(d, d->buckets->len - 1);
    const double least = d->known[0].least, most = d->known[SIM_N_ELEMENTS(known) - 1].most;
    if (least >= first->lo && least <= first->hi)
        first->lo = least;
    if (most >= last->lo && most <= last->hi)
        last->hi = most;
}

/* From what was recorded to the unit that the panel asks for, if both are of one kind. */
static void convert(struct plot_data *data, const GPtrArray *distributions, const char *recorded)
{
    if (*data->y_unit == '\0')
        data->y_unit = recorded;
    plot_unit_factor(recorded, data->y_unit, &data->factor);
    for (guint i = 0; i < distributions->len; i++) {
        struct distribution *d = distributions->pdata[i];
        for (guint k = 0; k < d->buckets->len; k++) {
            bucket_at(d, k)->lo *= data->factor;
            bucket_at(d, k)->hi *= data->factor;
            bucket_at(d, k)->width *= data->factor;
        }
        for (size_t k = 0; k < SIM_N_ELEMENTS(known); k++) {
            d->known[k].least *= data->factor;
            d->known[k].most *= data->factor;
        }
    }
}

/* Of the buckets between the ends. */
static double widest_bucket(const GPtrArray *distributions, double lo, double hi)
{
    double widest = 0.0;
    for (guint i = 0; i < distributions->len; i++) {
        const struct distribution *d = distributions->pdata[i];
        for (guint k = 0; k < d->buckets->len; k++) {
            const struct bucket *b = bucket_at(d, k);
            if (b->hi >= lo && b->lo <= hi)
                widest = MAX(widest, b->width);
        }
    }
    return widest;
}

/* What the panel says, else as far as the whiskers reach, so that a histogram and the boxes beside
 * it have the same. */
static void find_range(const struct plot_spec *spec, const GPtrArray *distributions,
                       struct plot_data *data)
{
    double lo = INFINITY, hi = -INFINITY;
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        lo = MIN(lo, curve->box.low);
        hi = MAX(hi, curve->box.high);
    }
    if (hi <= lo) { /* one value */
        lo -= 0.01 * fabs(lo);
        hi += hi != 0.0 ? 0.01 * fabs(hi) : 1.0;
    }
    const double more = BUCKETS_MIN * widest_bucket(distributions, lo, hi) - (hi - lo);
    if (more > 0.0) {
        lo = lo > more / 2.0 ? lo - more / 2.0 : lo;
        hi += more / 2.0;
    }
    const bool logarithmic = spec->log_y >= 2 && lo > 0.0;
    const double margin = logarithmic ? pow(hi / lo, MARGIN) : (hi - lo) * MARGIN;
    data->y_lo = logarithmic ? lo / margin : lo > 0.0 ? MAX(lo - margin, 0.0) : lo - margin;
    data->y_hi = logarithmic ? hi * margin : hi + margin;
    if (!isnan(spec->y_min) && spec->y_min < data->y_hi)
        data->y_lo = spec->y_min;
    if (!isnan(spec->y_max) && spec->y_max > data->y_lo)
        data->y_hi = spec->y_max;
}

/* None is narrower than a bucket of what was recorded. */
static guint bins_of(const GPtrArray *distributions, const struct plot_data *data)
{
    const double widest = widest_bucket(distributions, data->y_lo, data->y_hi);
    const double fit = widest > 0.0 ? (data->y_hi - data->y_lo) / widest : BINS_MAX;
    return (guint)CLAMP(fit, 1.0, (double)BINS_MAX);
}

void plot_distributions_collect(struct scenario *scenario, const struct plot_spec *spec,
                                struct results_db *db, struct plot_data *data)
{
    g_autoptr(GPtrArray) distributions = g_ptr_array_new_with_free_func(free_distribution);
    const char *name = scenario_name(scenario), *unit = NULL;
    for (guint m = 0; m < spec->metrics->len; m++) {
        const char *metric = spec->metrics->pdata[m];
        for (size_t i = 0; i < scenario_n_points(scenario); i++) {
            struct distribution *d = NULL;
            if (spec->shown[i])
                d = read_distribution(
                    results_histogram(db, name, scenario_point_name(scenario, i), metric), data,
                    &unit);
            if (d == NULL)
                continue;
            read_known(d, db, name, scenario_point_name(scenario, i), metric);
            g_ptr_array_add(distributions, d);
            char *series = plot_series_name(spec, scenario, i);
            struct plot_curve *curve = plot_curve_new(data, plot_curve_label(spec, series, metric),
                                                      series, metric);
            curve->color = data->curves->len - 1;
        }
    }
    if (distributions->len == 0)
        return;
    convert(data, distributions, unit);
    for (guint i = 0; i < distributions->len; i++)
        ((struct plot_curve *)data->curves->pdata[i])->box =
            box_of(distributions->pdata[i], (enum plot_whiskers)spec->whiskers);
    find_range(spec, distributions, data);
    const guint n_bins = bins_of(distributions, data);
    for (guint i = 0; i < distributions->len; i++) {
        struct plot_curve *curve = data->curves->pdata[i];
        find_beyond(distributions->pdata[i], data, &curve->box);
        if (spec->kind == PLOT_HISTOGRAM)
            add_outline(spec, data, distributions->pdata[i], n_bins, curve);
        else
            add_point(curve, (double)i, curve->box.median);
    }
}
