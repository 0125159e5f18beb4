/*
 * Histograms and boxes as gnuplot draws them: values along y, so that a panel of one can stand
 * beside a panel of the other. Histograms are outlines that are filled a little, with a dashed line
 * at each median; boxes have a black line there, and crosses for the lowest and the highest sample
 * where the axis reaches them. What it does not reach stands at its ends, or in the legend of a
 * histogram.
 */
#include <string.h>

#include "cli/plot/plot_script.h"

#define CHARACTER   11.5 /* pixels, as in plot_legend.c */
#define PANEL_ALONE 1200
#define LINE        0.05 /* of text, of a panel's height */
#define FRAME       160  /* pixels of a panel that its frame leaves out */

bool plot_names_fit(const struct plot_panel *panel, int panel_width)
{
    const int width = (panel_width > 0 ? panel_width : PANEL_ALONE) - FRAME;
    size_t longest = 0;
    guint n = 0;
    for (guint i = 0; i < panel->data.curves->len; i++) {
        const struct plot_curve *curve = panel->data.curves->pdata[i];
        if (curve->measured)
            continue;
        n++;
        longest = MAX(longest, strlen(curve->label));
    }
    return CHARACTER * (double)(longest + 1) * n < (double)width;
}

static void append_values(GString *script, const struct plot_data *data)
{
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        g_string_append_printf(script, "$curve%u << END\n", i);
        for (guint k = 0; k < curve->values->len; k++) {
            const struct plot_value *v = &g_array_index(curve->values, struct plot_value, k);
            g_string_append_printf(script, "%.17g %.17g\n", v->x, v->y);
        }
        g_string_append(script, "END\n");
    }
}

static double highest_share(const struct plot_data *data)
{
    double highest = 0.0;
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        for (guint k = 0; k < plot_n_bins(curve); k++)
            highest = MAX(highest, plot_bin(curve, k).share_pct);
    }
    return highest > 0.0 ? highest : 1.0;
}

static void append_histograms(GString *script, const struct plot_spec *spec,
                              const struct plot_data *data)
{
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        g_string_append_printf(script,
                               "set arrow from graph 0, first %.17g to graph 1, first %.17g nohead "
                               "lc rgb '%s' dt 2 lw 1.2 front\n",
                               curve->box.median, curve->box.median, plot_color(curve));
    }
    g_string_append_printf(script, "set xrange [0:%.17g]\n",
                           MIN(1.08 * highest_share(data), 100.0));
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        g_string_append_printf(script,
                               "%s$curve%u using 1:2 with filledcurves closed lc rgb '%s' "
                               "fs transparent solid 0.35 noborder ",
                               i == 0 ? "plot " : ", ", i, plot_color(curve));
        g_autofree char *label = plot_legend_label(spec, curve);
        plot_append_title(script, label);
    }
    for (guint i = 0; i < data->curves->len; i++)
        g_string_append_printf(script, ", $curve%u using 1:2 with lines lc rgb '%s' lw 1.2 notitle",
                               i, plot_color(data->curves->pdata[i]));
    g_string_append(script, ", NaN with lines lc rgb '#000000' dt 2 lw 1.2 title 'medians "
                            "(dashed)'\n");
}

static void append_box_data(GString *script, const struct plot_data *data)
{
    g_string_append(script, "$boxes << END\n");
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        const struct plot_box *b = &curve->box;
        if (!curve->measured)
            g_string_append_printf(script, "%u %.17g %.17g %.17g %.17g %.17g %.17g %.17g\n", i,
                                   b->low, b->q1, b->median, b->q3, b->high, b->lowest, b->highest);
    }
    g_string_append(script, "END\n");
}

static void append_box_names(GString *script, const struct plot_panel *panel, bool blank)
{
    const GPtrArray *curves = panel->data.curves;
    guint n = 0;
    g_string_append(script, "set xtics norotate scale 0 (");
    for (guint i = 0; i < curves->len; i++) {
        const struct plot_curve *curve = curves->pdata[i];
        if (curve->measured)
            continue;
        g_string_append(script, n++ > 0 ? ", " : "");
        plot_append_quoted(script, blank ? "" : curve->label);
        g_string_append_printf(script, " %u", i);
    }
    g_string_append_printf(script, ")\nset xrange [-0.7:%g]\n", (double)n - 0.3);
}

static void append_boxes(GString *script, const struct plot_panel *panel, int panel_width,
                         bool small)
{
    const struct plot_data *data = &panel->data;
    const bool named = !small && plot_names_fit(panel, panel_width);
    bool open = false;
    append_box_data(script, data);
    append_box_names(script, panel, !named);
    g_string_append(script, "set boxwidth 0.5\n");
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        if (curve->measured)
            continue;
        g_string_append_printf(script,
                               "%s$boxes every ::%u::%u using 1:3:2:6:5 with candlesticks "
                               "lc rgb '%s' lw 1.2 fs transparent solid 0.35 border ",
                               i == 0 ? "plot " : ", ", i, i, plot_color(curve));
        plot_append_title(script, named ? "" : curve->label);
        g_string_append(script, " whiskerbars 0.5");
    }
    g_string_append(script, ", $boxes using 1:4:4:4:4 with candlesticks lc rgb '#000000' lw 2 "
                            "notitle, $boxes using 1:7 with points pt 2 ps 1 lc rgb '#000000' "
                            "title 'lowest, highest (crosses)', $boxes using 1:8 with points "
                            "pt 2 ps 1 lc rgb '#000000' notitle");
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        if (!curve->measured)
            continue;
        g_string_append_printf(script,
                               ", $curve%u using 1:2 with points lc rgb '#000000' pt 6 "
                               "ps 1.8 lw 1.2 ",
                               i);
        plot_append_title(script, open ? "" : "measured median (open)");
        open = true;
    }
    g_string_append(script, "\n");
}

char *plot_legend_label(const struct plot_spec *spec, const struct plot_curve *curve)
{
    g_autofree char *above = plot_beyond(curve, true), *below = plot_beyond(curve, false);
    if (spec->kind != PLOT_HISTOGRAM || (above == NULL && below == NULL))
        return g_strdup(curve->label);
    return g_strdup_printf("%s (not shown: %s%s%s)", curve->label, above != NULL ? above : "",
                           above != NULL && below != NULL ? ", " : "", below != NULL ? below : "");
}

/* Above a box, or below it, the highest or the lowest sample that the axis does not reach. */
static void append_beyond(GString *script, const struct plot_data *data, bool small)
{
    const double line = small ? 2.0 * LINE : LINE;
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        if (!curve->measured && curve->box.above_pct > 0.0)
            g_string_append_printf(script,
                                   "set label '\xe2\x86\x91 %.4g' at first %u, graph %g center tc "
                                   "rgb '%s' front\n",
                                   curve->box.highest, i, 1.0 - line / 2.0, plot_color(curve));
        if (!curve->measured && curve->box.below_pct > 0.0)
            g_string_append_printf(script,
                                   "set label '\xe2\x86\x93 %.4g' at first %u, graph %g center tc "
                                   "rgb '%s' front\n",
                                   curve->box.lowest, i, line / 2.0, plot_color(curve));
    }
}

void plot_distribution_append(GString *script, const struct plot_panel *panel, int panel_width,
                              const struct plot_output *output)
{
    const struct plot_spec *spec = panel->spec;
    const struct plot_data *data = &panel->data;
    if (spec->log_y >= 2 && data->y_lo > 0.0)
        g_string_append_printf(script, "set logscale y %u\n", spec->log_y);
    g_string_append_printf(script, "set yrange [%.17g:%.17g]\n", data->y_lo, data->y_hi);
    append_values(script, data);
    const bool small = output->format == PLOT_SVG && output->columns > 0;
    if (spec->kind == PLOT_BOX)
        append_beyond(script, data, small);
    if (spec->kind == PLOT_HISTOGRAM)
        append_histograms(script, spec, data);
    else
        append_boxes(script, panel, panel_width, small);
}
