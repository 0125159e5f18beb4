/* A figure as a script for gnuplot, or as text by itself. */
#ifndef CLI_PLOT_PLOT_SCRIPT_H
#define CLI_PLOT_PLOT_SCRIPT_H

#include "cli/plot/plot_data.h"

enum plot_format { PLOT_TEXT, PLOT_PNG, PLOT_SVG, PLOT_GNUPLOT };

struct plot_output {
    enum plot_format format;
    const char *path; /* NULL: standard output */
    /* PLOT_TEXT: characters. PLOT_SVG: pixels of a small picture, as for a page; 0: as for a file.
     */
    int columns, rows;
    const char *note; /* one or two lines below the picture, of plot_note_room(); NULL: none */
};

struct plot_panel {
    const struct plot_spec *spec;
    struct plot_data data;
    bool shared; /* the legend of the row has what was simulated */
};

/* Makes the panels of a figure comparable: a name has one colour in all of them, panels of the same
 * metric along the same x have one y axis (unless one goes more than four times as high as the
 * other), curves that run over each other know it (plot_arrange.c). */
void plot_arrange(struct plot_panel *panels, guint n_panels);
/* Whether no value is below 0, but the interval of one is: the y axis then ends at 0. */
bool plot_ends_at_zero(const struct plot_data *data);
/* The highest value, or end of an interval or band. */
double plot_top(const struct plot_data *data);
/* The script; g_free(). Several panels stand side by side, below the title; not with PLOT_TEXT. */
char *plot_script(const char *title, const struct plot_panel *panels, guint n_panels,
                  const struct plot_output *output);
/* How many characters may stand below a picture of so many panels. */
size_t plot_note_room(guint n_panels);
/* The title of the y axis: its label, else the metrics; g_free(). */
char *plot_y_name(const struct plot_spec *spec);
/* The meaning of the numbers at points or bars, for the legend; NULL: there are none; g_free(). */
char *plot_ratio_title(const struct plot_panel *panel);
/* The legend of marks where simulated values would be if published ratios held. */
#define PLOT_RATIO_ENTRY "by the published ratio"
/* Whether names along x are rotated. small: in a picture for a page. */
bool plot_is_rotated(const struct plot_panel *panel, bool small);
/* plot_legend.c: where the legend stands; panel_width: of one panel of several, in pixels, 0 for a
 * lone one. is_small: of a picture for a page, panel_width of all of it. And the same room below
 * each of several. */
void plot_legend_append(GString *script, const struct plot_panel *panel, int panel_width,
                        bool is_small, int font_points);
/* How high a small picture has to be for its frame to be as high as with a legend of one line and
 * `rows`. */
int plot_legend_small_rows(const struct plot_panel *panel, int width, int rows);
void plot_legend_append_room(GString *script, const struct plot_panel *panels, guint n_panels,
                             int panel_width);
/* Whether panels of lines have the same curves, so that one legend below all of them will do; its
 * height in pixels; and its place in the plot. */
bool plot_legend_is_shared(const struct plot_panel *panels, guint n_panels);
int plot_legend_shared_height(const struct plot_panel *panel, int picture_width);
void plot_legend_append_shared(GString *script, const struct plot_panel *panel, int picture_width);
/* plot_distribution_script.c: the ranges of both axes and the plot command of PLOT_HISTOGRAM and
 * PLOT_BOX; panel_width as below. */
void plot_distribution_append(GString *script, const struct plot_panel *panel, int panel_width,
                              const struct plot_output *output);
/* For the files that write parts of the script: the curve's colour, "#0072B2"; `title 'label'`; a
 * string of gnuplot. */
#define PLOT_COLORS 12u
const char *plot_color(const struct plot_curve *curve);
void plot_append_title(GString *script, const char *label);
void plot_append_quoted(GString *script, const char *text);
/* 4096 -> "4Ki"; what is no multiple of 256 stays as it is. g_free(). */
char *plot_size_text(double value);
/* What stands below a category: its label, a size with prefix, or the value. g_free(). */
char *plot_category_name(const struct plot_panel *panel, guint row);
/* What the legend calls the curve: its label; of a histogram, with what of it the axis does not
 * reach. g_free(). */
char *plot_legend_label(const struct plot_spec *spec, const struct plot_curve *curve);
/* Of PLOT_HISTOGRAM and PLOT_BOX: what the legend says besides the curves. */
#define PLOT_EXTRA_ENTRY(spec) \
    ((spec)->kind == PLOT_HISTOGRAM ? "medians (dashed)" : "lowest, highest (crosses)")
/* Boxes of PLOT_BOX have their names below them, which the panel's width leaves room for. */
bool plot_names_fit(const struct plot_panel *panel, int panel_width);
/* A line for each box, or for each bin and curve. */
void plot_text_distribution(const char *title, const struct plot_panel *panel, int columns,
                            FILE *out);
/* Bars lie down in text: a line each; gnuplot's own do not tell their series apart. */
void plot_text_bars(const char *title, const struct plot_panel *panel, int columns, FILE *out);

#endif
