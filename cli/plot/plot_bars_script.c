/*
 * Bars and stacks as gnuplot draws them: by series, what was measured beside what was simulated and
 * lighter; numbers above them are ratios, crosses on them where published ratios would have them.
 */
#include <math.h>
#include <string.h>

#include "cli/plot/plot_script_internal.h"

/* Simulated: of its confidence; published: of its range, around the middle of it. */
static double half_interval(const struct plot_curve *curve, const struct plot_value *value)
{
    return curve->measured ? (value->band_hi - value->band_lo) / 2.0 : value->ci95;
}

/* Names below bars that can be read beside each other, upright. */
#define TICS_MAX       40
#define TICS_MAX_SMALL 20

/* Of more bars than names fit, every second (third, ...) has one, counted from the last that begins
 * with another value of another axis, and none right before such a one. */
static bool has_tic(const struct plot_data *data, guint row, bool small)
{
    const guint n = data->tics->len, most = small ? TICS_MAX_SMALL : TICS_MAX;
    const guint step = n > 0 ? (n + most - 1) / most : 1;
    guint begin = row;
    while (step > 1 && begin > 0 && !g_array_index(data->tics, struct plot_tic, begin).begins)
        begin--;
    const bool crowded = row + 1 < n && g_array_index(data->tics, struct plot_tic, row + 1).begins;
    return (row - begin) % step == 0 && (step == 1 || row == begin || !crowded);
}

static void append_bar_data(GString *script, const struct plot_panel *panel, bool small)
{
    const struct plot_data *data = &panel->data;
    g_string_append(script, "$bars << END\n");
    for (guint row = 0; row < data->categories->len; row++) {
        g_string_append_c(script, '"');
        g_autofree char *name = plot_category_name(panel, row);
        for (const char *c = name; *c != '\0' && has_tic(data, row, small); c++)
            g_string_append_c(script, *c == '"' ? '\'' : *c);
        g_string_append_c(script, '"');
        for (guint i = 0; i < data->curves->len; i++) {
            const struct plot_curve *curve = data->curves->pdata[i];
            const struct plot_value *value = plot_data_at(curve, row);
            if (value != NULL)
                g_string_append_printf(script, " %.17g %.17g", value->y,
                                       half_interval(curve, value));
            else
                g_string_append(script, " NaN 0");
        }
        g_string_append(script, "\n");
    }
    g_string_append(script, "END\n");
}

/* Curves as bars, in the order in which they stand beside each other: by series, what was measured
 * beside what was simulated. Of a stack only the parts: what was measured of it is no part. */
static GArray *bars_in_order(const struct plot_spec *spec, const struct plot_data *data)
{
    GArray *order = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint i = 0; spec->kind == PLOT_STACK && i < data->curves->len; i++) {
        if (!((const struct plot_curve *)data->curves->pdata[i])->measured)
            g_array_append_val(order, i);
    }
    if (spec->kind == PLOT_STACK)
        return order;
    unsigned highest = 0;
    for (guint i = 0; i < data->curves->len; i++)
        highest = MAX(highest, ((const struct plot_curve *)data->curves->pdata[i])->color);
    for (unsigned color = 0; color <= highest; color++) {
        for (guint i = 0; i < data->curves->len; i++) {
            const struct plot_curve *curve = data->curves->pdata[i];
            if (curve->color == color && !curve->by_ratio)
                g_array_append_val(order, i);
        }
    }
    return order;
}

/* gnuplot puts bar i of n at row + (i - (n - 1) / 2) / (n + gap), with a gap of 1. */
static double bar_x(const GArray *order, guint i, double row)
{
    return row + ((double)i - (double)(order->len - 1) / 2.0) / (double)(order->len + 1);
}

static bool append_bar_ratios(GString *script, const struct plot_data *data, const GArray *order)
{
    bool any = false;
    g_string_append(script, "$ratios << END\n");
    for (guint i = 0; i < order->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[g_array_index(order, guint, i)];
        for (guint k = 0; k < curve->values->len; k++) {
            const struct plot_value *v = &g_array_index(curve->values, struct plot_value, k);
            any = any || v->ratio != 0.0;
            if (v->ratio == 0.0)
                continue;
            g_string_append_printf(script, "%.17g %.17g ", bar_x(order, i, v->x), v->y + v->ci95);
            plot_append_ratio_text(script, v, true);
            g_string_append_c(script, '\n');
        }
    }
    g_string_append(script, "END\n");
    return any;
}

/* On the bar of its simulated curve. */
static bool append_bar_marks(GString *script, const struct plot_data *data, const GArray *order)
{
    bool any = false;
    g_string_append(script, "$marks << END\n");
    for (guint m = 0; m < data->curves->len; m++) {
        const struct plot_curve *marks = data->curves->pdata[m];
        for (guint i = 0; marks->by_ratio && i < order->len; i++) {
            const struct plot_curve *curve = data->curves->pdata[g_array_index(order, guint, i)];
            if (curve->measured || curve->color != marks->color)
                continue;
            for (guint k = 0; k < marks->values->len; k++) {
                const struct plot_value *v = &g_array_index(marks->values, struct plot_value, k);
                g_string_append_printf(script, "%.17g %.17g %.17g %.17g\n", bar_x(order, i, v->x),
                                       v->y, v->band_lo, v->band_hi);
                any = true;
            }
        }
    }
    g_string_append(script, "END\n");
    return any;
}

/* Line by line, the legend names the parts as they stand in the bars, from top to bottom. */
static void append_stack_titles(GString *script, const struct plot_data *data, const GArray *order)
{
    for (guint k = order->len; k-- > 0;) {
        const struct plot_curve *curve = data->curves->pdata[g_array_index(order, guint, k)];
        if (!plot_part_is_seen(data, curve))
            continue;
        g_string_append_printf(script, ", NaN with boxes lc rgb '%s' fs solid 0.9 ",
                               plot_color(curve));
        plot_append_title(script, curve->label);
    }
}

/* What was measured of a whole stack: points on it. */
static void append_stack_points(GString *script, const struct plot_data *data, bool small)
{
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        if (!curve->measured)
            continue;
        g_string_append_printf(
            script, ", $curve%u using 1:2 with points lc rgb '#000000' pt 6 ps %s lw 1.2 ", i,
            small ? "1.1" : "1.8");
        plot_append_title(script, *curve->label != '\0' ? curve->label : "measured");
    }
}

/* Of published values on bars. */
static bool has_range(const struct plot_curve *curve)
{
    return curve->measured && !curve->by_ratio && plot_has_band(curve);
}

void plot_append_bars(GString *script, const struct plot_panel *panel,
                      const struct plot_output *output)
{
    const struct plot_data *data = &panel->data;
    const bool stacked = panel->spec->kind == PLOT_STACK;
    g_autoptr(GArray) order = bars_in_order(panel->spec, data);
    bool intervals = false;
    for (guint i = 0; i < data->curves->len && !stacked; i++)
        intervals = intervals || plot_has_interval(data->curves->pdata[i]) ||
                    has_range(data->curves->pdata[i]);
    append_bar_data(script, panel, plot_is_small(output));
    plot_append_curve_data(script, panel->spec, data);
    const bool ratios = append_bar_ratios(script, data, order);
    const bool marks = append_bar_marks(script, data, order);
    g_string_append(script, "set style data histograms\nset boxwidth 0.9\n");
    g_string_append_printf(script, "set style histogram %s\n",
                           stacked     ? "rowstacked"
                           : intervals ? "errorbars gap 1 lw 1"
                                       : "clustered gap 1");
    g_string_append_printf(
        script, "set xrange [-0.7:%u.7]\nset xtics %s\nplot ", data->categories->len - 1,
        plot_is_rotated(panel, plot_is_small(output)) ? "rotate by -45" : "norotate");
    for (guint k = 0; k < order->len; k++) {
        const guint i = g_array_index(order, guint, k);
        const struct plot_curve *curve = data->curves->pdata[i];
        char columns[16] = "";
        if (intervals)
            g_snprintf(columns, sizeof(columns), ":%u", 2 * i + 3);
        g_string_append_printf(script, "%s$bars using %u%s:xtic(1) lc rgb '%s' fs %s ",
                               k > 0 ? ", " : "", 2 * i + 2, columns, plot_color(curve),
                               curve->measured ? "solid 0.35 border" : "solid 0.9");
        plot_append_title(script, stacked ? "" : curve->label);
    }
    if (stacked)
        append_stack_titles(script, data, order);
    if (ratios)
        g_string_append(script, ", $ratios using 1:2:3 with labels offset 0,0.7 notitle");
    plot_append_ratio_title(script, panel);
    if (marks)
        g_string_append(script,
                        ", $marks using 1:2:3:4 with yerrorbars lc rgb '#000000' pt 1 lw 1.2 "
                        "title '" PLOT_RATIO_ENTRY "'");
    if (stacked)
        append_stack_points(script, data, plot_is_small(output));
    g_string_append(script, "\n");
}
