/* What plot_script.c shares with the files that write parts of the script. */
#ifndef CLI_PLOT_PLOT_SCRIPT_INTERNAL_H
#define CLI_PLOT_PLOT_SCRIPT_INTERNAL_H

#include "cli/plot/plot_script.h"

/* In a picture for a page. */
bool plot_is_small(const struct plot_output *output);
/* "lines" or "linespoints" with colour, mark and dash of a simulated curve of lines. */
void plot_append_line_style(GString *script, const struct plot_spec *spec,
                            const struct plot_curve *curve, bool small);
/* Whether any value of the curve has a confidence interval; a band, or a published range. */
bool plot_has_interval(const struct plot_curve *curve);
bool plot_has_band(const struct plot_curve *curve);
/* The values of all curves, as data blocks $curve0, $curve1, ...: x, y, half an interval, ratio,
 * band, the ratio's label. */
void plot_append_curve_data(GString *script, const struct plot_spec *spec,
                            const struct plot_data *data);
/* "1.30 (1.25)" in double quotes: the value's ratio, and the published one; "" if not labelled. */
void plot_append_ratio_text(GString *script, const struct plot_value *v, bool labelled);
/* A legend entry that says what the numbers of the panel are, if it has any. */
void plot_append_ratio_title(GString *script, const struct plot_panel *panel);
/* plot_axis.c: the least and the greatest x of all curves. */
void plot_x_range(const struct plot_data *data, double *lo, double *hi);
/* Range and tics of x, for curves. With a little room at both ends, or text terminals
 * draw the frame over the points. */
void plot_append_x_axis(GString *script, const struct plot_spec *spec, const struct plot_data *data,
                        bool narrow);
/* plot_bars_script.c: data and plot command of PLOT_BARS and PLOT_STACK. */
void plot_append_bars(GString *script, const struct plot_panel *panel,
                      const struct plot_output *output);

#endif
