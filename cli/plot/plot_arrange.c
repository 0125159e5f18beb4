/* Panels of one figure beside each other: colours, axes, and curves that hide others. */
#include <math.h>
#include <string.h>

#include "cli/plot/plot_script.h"

#define HIGHER_MAX \
    4.0             /* of panels that share an axis: the lower one could not be read beyond that */
#define CLOSE 0.012 /* of what the curves span: less than half a point */

static const struct plot_curve *curve_at(const struct plot_data *data, guint i)
{
    return data->curves->pdata[i];
}

/* ---- Colours --------------------------------------------------------------------------------- */

/* Measured curves follow the simulated one whose colour they had. */
static void color_panel(struct plot_data *data, GHashTable *colors)
{
    g_autofree unsigned *before = g_new0(unsigned, data->curves->len + 1);
    for (guint i = 0; i < data->curves->len; i++)
        before[i] = curve_at(data, i)->color;
    for (int measured = 0; measured <= 1; measured++) {
        for (guint i = 0; i < data->curves->len; i++) {
            struct plot_curve *curve = data->curves->pdata[i];
            bool followed = false;
            if (curve->measured != (measured == 1))
                continue;
            for (guint k = 0; curve->measured && k < data->curves->len && !followed; k++) {
                followed = !curve_at(data, k)->measured && before[k] == before[i];
                if (followed)
                    curve->color = curve_at(data, k)->color;
            }
            if (followed)
                continue;
            if (!g_hash_table_contains(colors, curve->label))
                g_hash_table_insert(colors, g_strdup(curve->label),
                                    GUINT_TO_POINTER(g_hash_table_size(colors)));
            curve->color = GPOINTER_TO_UINT(g_hash_table_lookup(colors, curve->label));
        }
    }
}

/* ---- Axes ------------------------------------------------------------------------------------ */

bool plot_ends_at_zero(const struct plot_data *data)
{
    bool crosses = false;
    for (guint i = 0; i < data->curves->len; i++) {
        const GArray *values = curve_at(data, i)->values;
        for (guint k = 0; k < values->len; k++) {
            const struct plot_value *v = &g_array_index(values, struct plot_value, k);
            const bool band = v->band_lo < v->band_hi;
            if (v->y < 0.0 || (band && v->band_lo < 0.0))
                return false;
            crosses = crosses || v->y < v->ci95;
        }
    }
    return crosses;
}

static void extent(const struct plot_data *data, bool along_x, double *lo, double *hi)
{
    *lo = INFINITY;
    *hi = -INFINITY;
    for (guint i = 0; i < data->curves->len; i++) {
        const GArray *values = curve_at(data, i)->values;
        for (guint k = 0; k < values->len; k++) {
            const struct plot_value *v = &g_array_index(values, struct plot_value, k);
            const bool band = v->band_lo < v->band_hi;
            const double low = along_x ? v->x : band ? MIN(v->band_lo, v->y) : v->y - v->ci95;
            const double high = along_x ? v->x : band ? MAX(v->band_hi, v->y) : v->y + v->ci95;
            *lo = MIN(*lo, low);
            *hi = MAX(*hi, high);
        }
    }
    if (!along_x && plot_ends_at_zero(data))
        *lo = 0.0;
}

double plot_top(const struct plot_data *data)
{
    double top = -INFINITY;
    for (guint i = 0; i < data->curves->len; i++) {
        const GArray *values = curve_at(data, i)->values;
        for (guint k = 0; k < values->len; k++) {
            const struct plot_value *v = &g_array_index(values, struct plot_value, k);
            top = fmax(top, fmax(v->y + v->ci95, v->band_lo < v->band_hi ? v->band_hi : v->y));
        }
    }
    return top;
}

static bool same_metrics(const struct plot_spec *a, const struct plot_spec *b)
{
    bool same = a->metrics->len == b->metrics->len;
    for (guint i = 0; same && i < a->metrics->len; i++)
        same = strcmp(a->metrics->pdata[i], b->metrics->pdata[i]) == 0;
    return same;
}

static bool same_reference(const struct plot_spec *a, const struct plot_spec *b)
{
    return a->normalised == b->normalised && a->slowdown == b->slowdown &&
           (a->relative_to->len > 0) == (b->relative_to->len > 0);
}

static bool is_compared(const struct plot_panel *a, const struct plot_panel *b)
{
    double lo, hi, other_lo, other_hi, bottom, top, other_bottom, other_top;
    if (a->spec->kind != b->spec->kind || !same_metrics(a->spec, b->spec) ||
        !same_reference(a->spec, b->spec) || a->spec->log_y != b->spec->log_y ||
        strcmp(a->data.y_unit, b->data.y_unit) != 0)
        return false;
    extent(&a->data, true, &lo, &hi);
    extent(&b->data, true, &other_lo, &other_hi);
    extent(&a->data, false, &bottom, &top);
    extent(&b->data, false, &other_bottom, &other_top);
    return (a->spec->kind == PLOT_SERIES || (lo == other_lo && hi == other_hi)) && top > 0.0 &&
           other_top > 0.0 && top <= HIGHER_MAX * other_top && other_top <= HIGHER_MAX * top;
}

/* A bound of its own stays. */
static bool may_share(const struct plot_panel *panel)
{
    const enum plot_kind kind = (enum plot_kind)panel->spec->kind;
    return (kind == PLOT_LINES || kind == PLOT_BARS || kind == PLOT_SERIES) &&
           isnan(panel->spec->y_max);
}

static bool has_numbers(const struct plot_panel *panel)
{
    g_autofree char *title = plot_ratio_title(panel);
    return title != NULL;
}

static void share_axis(struct plot_panel *a, struct plot_panel *b)
{
    double lo, hi, other_lo, other_hi;
    const bool numbers = has_numbers(a) || has_numbers(b);
    const bool logarithmic = a->spec->log_y >= 2;
    extent(&a->data, false, &lo, &hi);
    extent(&b->data, false, &other_lo, &other_hi);
    lo = MIN(lo, other_lo);
    hi = MAX(hi, other_hi);
    const double room = numbers ? 0.14 : 0.08; /* above the highest; numbers stand there */
    const double margin = logarithmic ? pow(hi / lo, 0.08) : 0.08 * (hi - MIN(lo, 0.0));
    const double top = logarithmic ? hi * pow(hi / lo, room) : hi + room * (hi - MIN(lo, 0.0));
    double bottom = !isnan(a->spec->y_min) ? a->spec->y_min
                    : logarithmic          ? lo / margin
                                           : lo - margin;
    if (isnan(a->spec->y_min) && lo >= 0.0 && !logarithmic)
        bottom = MAX(bottom, 0.0);
    if (!(top > bottom) || (logarithmic && !(lo > 0.0)))
        return;
    struct plot_panel *const both[] = { a, b };
    for (size_t i = 0; i < SIM_N_ELEMENTS(both); i++) {
        struct plot_data *data = &both[i]->data;
        data->y_lo = data->shares_y ? MIN(data->y_lo, bottom) : bottom;
        data->y_hi = data->shares_y ? MAX(data->y_hi, top) : top;
        data->shares_y = true;
    }
}

/* Twice, as the last pair may widen the axis of the first. */
static void share_axes(struct plot_panel *panels, guint n_panels)
{
    for (guint i = 0; i < 2 * n_panels; i++) {
        struct plot_panel *a = &panels[i % n_panels];
        for (guint k = 0; k < n_panels; k++) {
            struct plot_panel *b = &panels[k];
            if (a == b || !may_share(a) || !may_share(b) || !is_compared(a, b))
                continue;
            share_axis(a, b);
            if (a->data.shares_y && b->data.shares_y) {
                a->data.y_lo = b->data.y_lo = MIN(a->data.y_lo, b->data.y_lo);
                a->data.y_hi = b->data.y_hi = MAX(a->data.y_hi, b->data.y_hi);
            }
        }
    }
}

/* ---- Curves that hide others ----------------------------------------------------------------- */

static const struct plot_value *value_at(const struct plot_curve *curve, double x)
{
    for (guint i = 0; i < curve->values->len; i++) {
        const struct plot_value *value = &g_array_index(curve->values, struct plot_value, i);
        if (value->x == x)
            return value;
    }
    return NULL;
}

/* At more than half of the places that both have. */
static bool run_together(const struct plot_curve *a, const struct plot_curve *b, double span)
{
    guint n = 0, n_close = 0;
    for (guint i = 0; i < a->values->len; i++) {
        const struct plot_value *v = &g_array_index(a->values, struct plot_value, i);
        const struct plot_value *other = value_at(b, v->x);
        n += other != NULL ? 1 : 0;
        n_close += other != NULL && fabs(other->y - v->y) <= CLOSE * span ? 1 : 0;
    }
    return n > 0 && 2 * n_close > n;
}

/* Of a cumulative distribution: the value below which this share of the samples lies. */
static double quantile(const struct plot_curve *curve, double share)
{
    guint i = 0;
    while (i + 1 < curve->values->len &&
           g_array_index(curve->values, struct plot_value, i).y < share)
        i++;
    return g_array_index(curve->values, struct plot_value, i).x;
}

static bool steps_together(const struct plot_curve *a, const struct plot_curve *b, double span)
{
    unsigned n_close = 0;
    for (unsigned i = 1; i < 10; i++)
        n_close += fabs(quantile(a, i / 10.0) - quantile(b, i / 10.0)) <= CLOSE * span ? 1 : 0;
    return n_close >= 5;
}

static void find_hidden(const struct plot_spec *spec, struct plot_data *data)
{
    const bool steps = spec->kind == PLOT_CDF;
    double lo, hi;
    extent(data, steps, &lo, &hi);
    if ((spec->kind != PLOT_LINES && !steps) || !(hi >= lo))
        return;
    const double bottom = steps || isnan(spec->y_min) ? lo : spec->y_min;
    for (guint i = 0; i < data->curves->len; i++) {
        for (guint k = i + 1; k < data->curves->len; k++) {
            struct plot_curve *below = data->curves->pdata[i], *above = data->curves->pdata[k];
            if (below->measured || above->measured || below->values->len == 0 ||
                above->values->len == 0 ||
                !(steps ? steps_together(below, above, hi - bottom)
                        : run_together(below, above, hi - bottom)))
                continue;
            below->n_above++;
            above->n_below++;
        }
    }
}

void plot_arrange(struct plot_panel *panels, guint n_panels)
{
    g_autoptr(GHashTable) colors = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < n_panels; i++) {
        if (panels[i].spec->kind != PLOT_STACK) /* whose parts have theirs in all figures */
            color_panel(&panels[i].data, colors);
        find_hidden(panels[i].spec, &panels[i].data);
    }
    share_axes(panels, n_panels);
}
