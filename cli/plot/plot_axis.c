/*
 * The axis of x: its range and tics.
 */
#include <math.h>
#include <string.h>

#include "cli/plot/plot_script_internal.h"

void plot_x_range(const struct plot_data *data, double *lo, double *hi)
{
    *lo = INFINITY;
    *hi = -INFINITY;
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        for (guint k = 0; k < curve->values->len; k++) {
            const double x = g_array_index(curve->values, struct plot_value, k).x;
            *lo = MIN(*lo, x);
            *hi = MAX(*hi, x);
        }
    }
}

/* 4096 -> "4Ki" */
static char *binary_number(double value)
{
    static const char *const prefixes[] = { "", "Ki", "Mi", "Gi", "Ti" };
    unsigned i = 0;
    for (; i + 1 < SIM_N_ELEMENTS(prefixes) && value >= 1024.0; i++)
        value /= 1024.0;
    return g_strdup_printf("%g%s", value, prefixes[i]);
}

char *plot_size_text(double value)
{
    if (value >= 1024.0 && fmod(value, 256.0) == 0.0)
        return binary_number(value);
    return g_strdup_printf(fmod(value, 1.0) == 0.0 ? "%.17g" : "%.6g", value);
}

/* Powers of two, as people write sizes. */
static void append_binary_tics(GString *script, double lo, double hi, int n_max)
{
    const int first = (int)ceil(log2(lo) - 1e-9), last = (int)floor(log2(hi) + 1e-9);
    const int step = MAX((last - first) / n_max + 1, 1);
    g_string_append(script, "set xtics (");
    for (int e = first; e <= last; e += step) {
        g_autofree char *label = binary_number(ldexp(1.0, e));
        g_string_append_printf(script, "%s'%s' %.17g", e > first ? ", " : "", label, ldexp(1.0, e));
    }
    g_string_append(script, ")\n");
}

/* 1, 2 and 5 of each power of ten, for what is no size in bytes. */
static void append_decimal_tics(GString *script, double lo, double hi)
{
    static const double steps[] = { 1.0, 2.0, 5.0 };
    const char *separator = "set xtics (";
    for (int e = (int)floor(log10(lo)); e <= (int)ceil(log10(hi)); e++) {
        for (size_t i = 0; i < SIM_N_ELEMENTS(steps); i++) {
            const double x = steps[i] * pow(10.0, e);
            if (x < lo * 0.96 || x > hi * 1.04)
                continue;
            g_string_append_printf(script, "%s'%.15g' %.17g", separator, x, x);
            separator = ", ";
        }
    }
    g_string_append(script, *separator == ',' ? ")\n" : "");
}

static bool is_time(const char *unit)
{
    static const char *const times[] = { "ps", "ns", "us", "ms", "s", NULL };
    return unit != NULL && g_strv_contains(times, unit);
}

/* The values themselves, where there are too few for tics at powers of two. */
static void append_value_tics(GString *script, const struct plot_data *data)
{
    const char *separator = "set xtics (";
    g_autoptr(GHashTable) seen = g_hash_table_new(g_double_hash, g_double_equal);
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        for (guint k = 0; k < curve->values->len; k++) {
            struct plot_value *value = &g_array_index(curve->values, struct plot_value, k);
            if (!g_hash_table_add(seen, &value->x))
                continue;
            g_autofree char *label = plot_size_text(value->x);
            g_string_append_printf(script, "%s'%s' %.17g", separator, label, value->x);
            separator = ", ";
        }
    }
    g_string_append(script, *separator == ',' ? ")\n" : "");
}

void plot_append_x_axis(GString *script, const struct plot_spec *spec, const struct plot_data *data,
                        bool narrow)
{
    double lo, hi;
    plot_x_range(data, &lo, &hi);
    lo = isnan(spec->x_min) ? lo : spec->x_min;
    hi = isnan(spec->x_max) ? hi : spec->x_max;
    const bool logarithmic = spec->log_x >= 2 && lo > 0.0;
    if (logarithmic)
        g_string_append_printf(script, "set logscale x %u\n", spec->log_x);
    if (logarithmic && is_time(spec->x_unit) && hi / lo >= 4.0)
        append_decimal_tics(script, lo, hi);
    else if (logarithmic && spec->log_x == 2 && hi / lo >= 4.0)
        append_binary_tics(script, lo, hi, narrow ? 8 : 12);
    else if (logarithmic && spec->log_x == 2)
        append_value_tics(script, data);
    if (!(hi >= lo))
        return;
    if (hi == lo && spec->log_x < 2)
        append_value_tics(script, data);
    double margin = logarithmic ? pow(hi / lo, 0.04) : (hi - lo) * 0.04;
    if (hi == lo) /* a single place, to which gnuplot gives no range in time for its labels */
        margin = logarithmic ? 2.0 : lo != 0.0 ? fabs(lo) / 2.0 : 1.0;
    const double left = logarithmic ? lo / margin : lo - margin;
    const double right = logarithmic ? hi * margin : hi + margin;
    g_string_append_printf(script, "set xrange [%.17g:%.17g]\n",
                           isnan(spec->x_min) ? left : spec->x_min,
                           isnan(spec->x_max) ? right : spec->x_max);
}
