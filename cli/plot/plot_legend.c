/*
 * Where legends stand. gnuplot takes their height from the panel that they belong to; beside each
 * other panels are as high as each other only if all leave the same room below.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plot/plot_script_internal.h"

/* Pixels, as our fonts are drawn; if letters are narrower, there is space left. */
#define CHARACTER     11.5
#define ENTRY         115.0 /* the sample, and space */
#define AXIS_LINES    4.0   /* tics and label of the x axis */
#define NAMES_SHARE   0.75 /* of a panel's width that an entry may take with letters of full size */
#define ROTATED_LINES 0.33 /* a letter of a tic at 45 degrees, in lines */

struct entries {
    guint n;
    size_t longest;
};

static void add_entry(struct entries *entries, const char *label)
{
    entries->n++;
    entries->longest = MAX(entries->longest, strlen(label));
}

static struct entries entries_of(const struct plot_panel *panel, int panel_width)
{
    struct entries entries = { 0 };
    const struct plot_data *data = &panel->data;
    const bool stacked = panel->spec->kind == PLOT_STACK;
    const bool named = panel->spec->kind == PLOT_BOX && plot_names_fit(panel, panel_width);
    bool open = false, by_ratio = false;
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        if (curve->by_ratio)
            by_ratio = true;
        else if (*curve->label == '\0')
            open = true;
        else if ((named || panel->shared) && !curve->measured)
            continue;
        else if (curve->measured || !stacked || plot_part_is_seen(data, curve)) {
            g_autofree char *label = plot_legend_label(panel->spec, curve);
            add_entry(&entries, label);
        }
    }
    if (plot_is_distribution(panel->spec)) /* medians; the lowest and the highest */
        add_entry(&entries, PLOT_EXTRA_ENTRY(panel->spec));
    if (open)
        add_entry(&entries, "measured (open)");
    if (by_ratio)
        add_entry(&entries, PLOT_RATIO_ENTRY);
    g_autofree char *ratios = plot_ratio_title(panel);
    if (ratios != NULL)
        add_entry(&entries, ratios);
    return entries;
}

static bool is_below(const struct plot_spec *spec)
{
    return *spec->key == '\0' || strstr(spec->key, "below") != NULL;
}

static guint columns_of(const struct plot_panel *panel, int panel_width)
{
    const struct entries entries = entries_of(panel, panel_width);
    const char *said = strstr(panel->spec->key, "maxcols ");
    const double width = CHARACTER * (double)entries.longest + ENTRY;
    const int fit = CLAMP((int)(NAMES_SHARE * (double)panel_width / width), 1,
                          MAX((int)entries.n, 1));
    const int most = said != NULL ? atoi(said + strlen("maxcols ")) : fit;
    return (guint)CLAMP(most, 1, fit);
}

/* Lines below the frame of one panel. */
static double room_below(const struct plot_panel *panel, int panel_width)
{
    const struct entries entries = entries_of(panel, panel_width);
    const guint columns = columns_of(panel, panel_width);
    double lines = AXIS_LINES;
    size_t longest = 0;
    for (guint i = 0; i < panel->data.categories->len; i++)
        longest = MAX(longest, strlen(panel->data.categories->pdata[i]));
    if (plot_is_rotated(panel, false))
        lines += ROTATED_LINES * (double)longest;
    if (is_below(panel->spec)) {
        const guint rows = (entries.n + columns - 1) / columns;
        lines += rows;
    }
    return lines;
}

void plot_legend_append_room(GString *script, const struct plot_panel *panels, guint n_panels,
                             int panel_width)
{
    double lines = 0.0;
    for (guint i = 0; i < n_panels; i++)
        lines = MAX(lines, room_below(&panels[i], panel_width));
    g_string_append_printf(script, "set bmargin %.1f\n", ceil(lines));
}

/* gnuplot leaves a legend out that would stand beyond the picture: long names get smaller
 * letters. */
static double letters_of(const struct plot_panel *panel, int panel_width)
{
    const struct entries entries = entries_of(panel, panel_width);
    const double width = CHARACTER * (double)entries.longest + ENTRY;
    return MAX(MIN(NAMES_SHARE * (double)panel_width / width, 1.0), 0.5);
}

/* Of a picture for a page, whose letters are smaller. gnuplot takes legends to be as wide as the
 * frame. */
#define SMALL_FONT      15
#define SMALL_CHARACTER 9.0
#define SMALL_ENTRY     72.0
#define SMALL_LINE      20
#define SMALL_FRAME     0.74 /* of the picture's width */

static guint small_columns(const struct plot_panel *panel, int width)
{
    const struct entries entries = entries_of(panel, width);
    const double entry = SMALL_CHARACTER * (double)entries.longest + SMALL_ENTRY;
    return (guint)CLAMP((int)(SMALL_FRAME * (double)width / entry), 1, MAX((int)entries.n, 1));
}

/* Where gnuplot takes a legend to be wider than what is to the right of the middle of the frame,
 * twice, its samples would stand beyond the picture: long names get smaller letters, here as
 * well. */
#define SMALL_FONT_CHARACTER 10.0 /* as wide as gnuplot takes one to be */
#define SMALL_SAMPLE         66.0
#define SMALL_RIGHT          0.93 /* of the picture's width, twice from the middle of the frame */

static double small_letters_of(const struct plot_panel *panel, int width)
{
    const struct entries entries = entries_of(panel, width);
    const double room = SMALL_RIGHT * (double)width - SMALL_SAMPLE;
    return MAX(MIN(room / (SMALL_FONT_CHARACTER * (double)entries.longest), 1.0), 0.6);
}

int plot_legend_small_rows(const struct plot_panel *panel, int width, int rows)
{
    const guint n = entries_of(panel, width).n, columns = small_columns(panel, width);
    return is_below(panel->spec) && n > columns ? rows + SMALL_LINE * (int)((n - 1) / columns)
                                                : rows;
}

void plot_legend_append(GString *script, const struct plot_panel *panel, int panel_width,
                        bool is_small, int font_points)
{
    const struct plot_spec *spec = panel->spec;
    g_string_append_printf(script, "set key %s%s height 1", is_small ? "samplen 2 " : "",
                           *spec->key != '\0' ? spec->key : "below");
    if (is_small && is_below(spec)) {
        const double letters = small_letters_of(panel, panel_width);
        g_string_append_printf(script, " maxcols %u", small_columns(panel, panel_width));
        if (letters < 1.0)
            g_string_append_printf(script, " font ',%d'", (int)(letters * SMALL_FONT));
    } else if (panel_width > 0 && is_below(spec)) {
        const double letters = letters_of(panel, panel_width);
        g_string_append_printf(script, " maxcols %u", columns_of(panel, panel_width));
        if (letters < 1.0)
            g_string_append_printf(script, " font ',%.0f'", letters * font_points);
    }
    g_string_append(script, "\n");
}

/* ---- One legend of a row of panels ----------------------------------------------------------- */

#define SHARED_LINE   30 /* pixels */
#define SHARED_MARGIN 12

static bool stands_in_shared(const struct plot_curve *curve)
{
    return !curve->measured && !curve->by_ratio && curve->values->len > 0 && *curve->label != '\0';
}

static bool has_same(const struct plot_panel *panel, const struct plot_curve *curve)
{
    for (guint i = 0; i < panel->data.curves->len; i++) {
        const struct plot_curve *other = panel->data.curves->pdata[i];
        if (stands_in_shared(other) && strcmp(other->label, curve->label) == 0)
            return other->color == curve->color;
    }
    return false;
}

static guint count_shared(const struct plot_panel *panel)
{
    guint n = 0;
    for (guint i = 0; i < panel->data.curves->len; i++)
        n += stands_in_shared(panel->data.curves->pdata[i]) ? 1u : 0u;
    return n;
}

bool plot_legend_is_shared(const struct plot_panel *panels, guint n_panels)
{
    bool same = n_panels > 1 && count_shared(&panels[0]) > 0;
    for (guint p = 0; p < n_panels && same; p++) {
        same = panels[p].spec->kind == PLOT_LINES && is_below(panels[p].spec) &&
               count_shared(&panels[p]) == count_shared(&panels[0]);
        for (guint i = 0; i < panels[p].data.curves->len && same; i++) {
            const struct plot_curve *curve = panels[p].data.curves->pdata[i];
            same = !stands_in_shared(curve) || has_same(&panels[0], curve);
        }
    }
    return same;
}

static guint shared_columns(const struct plot_panel *panel, int picture_width)
{
    size_t longest = 0;
    for (guint i = 0; i < panel->data.curves->len; i++) {
        const struct plot_curve *curve = panel->data.curves->pdata[i];
        longest = MAX(longest, stands_in_shared(curve) ? strlen(curve->label) : 0);
    }
    const double width = CHARACTER * (double)longest + ENTRY;
    return (guint)CLAMP((int)((double)picture_width / width), 1, (int)count_shared(panel));
}

int plot_legend_shared_height(const struct plot_panel *panel, int picture_width)
{
    const guint columns = shared_columns(panel, picture_width);
    return (int)((count_shared(panel) + columns - 1) / columns) * SHARED_LINE + SHARED_MARGIN;
}

void plot_legend_append_shared(GString *script, const struct plot_panel *panel, int picture_width)
{
    const char *separator = "plot ";
    g_string_append_printf(script,
                           "unset border\nunset xtics\nunset ytics\nset margins 0,0,0,0\n"
                           "set xrange [0:1]\nset yrange [0:1]\n"
                           "set key center center horizontal samplen 2 maxcols %u\n",
                           shared_columns(panel, picture_width));
    for (guint i = 0; i < panel->data.curves->len; i++) {
        const struct plot_curve *curve = panel->data.curves->pdata[i];
        if (!stands_in_shared(curve))
            continue;
        g_string_append_printf(script, "%sNaN with ", separator);
        plot_append_line_style(script, panel->spec, curve, false);
        plot_append_title(script, curve->label);
        separator = ", ";
    }
    g_string_append(script, "\n");
}
