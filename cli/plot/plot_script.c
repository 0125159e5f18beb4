/*
 * Writes the gnuplot script of a figure. Simulated curves are lines with filled points, measured
 * ones open points of the same colour; bars stand beside each other, measured ones lighter. The
 * colours are those of Okabe and Ito, which colour-blind readers tell apart; the point types
 * differ too.
 */
#include <math.h>
#include <string.h>

#include "cli/plot/plot_script_internal.h"

static const char *const colors[PLOT_COLORS] = { "#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                 "#E69F00", "#56B4E9", "#000000", "#7F7F7F",
                                                 "#F0E442", "#882255", "#44AA99", "#332288" };
#define SEEN_BELOW 2u /* curves above it, around which the edges of one are seen */
static const int filled_points[] = { 7, 5, 9, 11, 13, 15 };
static const int open_points[] = { 6, 4, 8, 10, 12, 14 };

#define COLOR(curve)        plot_color(curve)
#define POINT(table, curve) table[(curve)->color % SIM_N_ELEMENTS(table)]

const char *plot_color(const struct plot_curve *curve)
{
    return colors[curve->color % SIM_N_ELEMENTS(colors)];
}

/* In single quotes nothing but the quote itself is special. Quotes stand by themselves, in double
 * ones: of several in a row, or at the beginning, gnuplot takes two for the end of the string. */
void plot_append_quoted(GString *script, const char *text)
{
    do {
        const size_t n_quotes = strspn(text, "'");
        if (n_quotes > 0)
            g_string_append_printf(script, "\"%.*s\" . ", (int)n_quotes, text);
        g_string_append_c(script, '\'');
        for (text += n_quotes; *text != '\0' && *text != '\''; text++)
            g_string_append_c(script, (unsigned char)*text < ' ' ? ' ' : *text);
        g_string_append(script, *text != '\0' ? "' . " : "'");
    } while (*text != '\0');
}

bool plot_is_small(const struct plot_output *output)
{
    return output->format == PLOT_SVG && output->columns > 0;
}

/* ---- Axes ------------------------------------------------------------------------------------ */

static char *axis_label(const char *label, const char *name, const char *unit)
{
    const char *shown = *label != '\0' ? label : name;
    return *unit != '\0' && strcmp(unit, "1") != 0 ? g_strdup_printf("%s [%s]", shown, unit)
                                                   : g_strdup(shown);
}

/* "lease_ms" -> "lease [ms]"; a unit that the axis has is not repeated: "throughput_gbit_s" in
 * Gbit/s -> "throughput". */
static char *named_axis(const char *name, const char *unit)
{
    const char *own;
    g_autofree char *words = plot_metric_words(name, &own);
    return axis_label("", words, *unit != '\0' ? unit : own);
}

char *plot_y_name(const struct plot_spec *spec)
{
    enum { LONGEST = 48 };
    if (*spec->y_label != '\0')
        return g_strdup(spec->y_label);
    GString *name = g_string_new(plot_metric_name(spec, spec->metrics->pdata[0]));
    for (guint i = 1; i < spec->metrics->len; i++) {
        const char *metric = plot_metric_name(spec, spec->metrics->pdata[i]);
        if (name->len + strlen(metric) > LONGEST) {
            g_string_append(name, ", ...");
            break;
        }
        g_string_append_printf(name, ", %s", metric);
    }
    return g_string_free(name, FALSE);
}

/* As many letters of full size stand beside the frame of a small picture. */
#define SMALL_Y_LETTERS 33

/* title: "" for none */
static void append_labels(GString *script, const char *title, const struct plot_panel *panel,
                          const struct plot_output *output)
{
    const struct plot_spec *spec = panel->spec;
    g_autofree char *x = *spec->x_label != '\0'
                             ? axis_label(spec->x_label, "", panel->data.x_unit)
                             : named_axis(panel->data.x_name, panel->data.x_unit);
    g_autofree char *y_name = plot_y_name(spec);
    g_autofree char *y = *spec->y_label == '\0' && spec->metrics->len == 1
                             ? named_axis(y_name, panel->data.y_unit)
                             : axis_label("", y_name, panel->data.y_unit);
    if (!plot_is_small(output)) { /* the page has it */
        g_autoptr(GString) lines =
            g_string_new(NULL); /* gnuplot leaves out what is wider than text */
        cli_wrap(lines, title, 0, output->format == PLOT_TEXT ? output->columns - 2 : 0);
        g_auto(GStrv) line = g_strsplit(lines->str, "\n", -1);
        g_string_append(script, "set title ");
        plot_append_quoted(script, line[0] != NULL ? line[0] : "");
        for (char **more = line[0] != NULL ? line + 1 : line; *more != NULL; more++) {
            g_string_append(script, " . \"\\n\" . ");
            plot_append_quoted(script, *more);
        }
    }
    if (output->format == PLOT_TEXT) { /* has no upright text */
        g_string_append(script, " . \"\\n\" . ");
        plot_append_quoted(script, y);
    } else {
        g_string_append(script, "\nset ylabel ");
        plot_append_quoted(script, y);
        const glong n_letters = g_utf8_strlen(y, -1);
        if (plot_is_small(output) && n_letters > SMALL_Y_LETTERS)
            g_string_append_printf(script, " font ',%d'",
                                   MAX(15 * SMALL_Y_LETTERS / (int)n_letters, 9));
    }
    g_string_append(script, "\nset xlabel ");
    plot_append_quoted(script, x);
    g_string_append(script, "\n");
}

/* Moves a bound away from values that lie on it: the frame of text would hide their letters. */
static double clear_bound(const struct plot_data *data, double bound, double span, double sign)
{
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        for (guint k = 0; k < curve->values->len; k++) {
            const double y = g_array_index(curve->values, struct plot_value, k).y;
            if (fabs(y - bound) < 0.04 * span)
                return bound + sign * 0.08 * span;
        }
    }
    return bound;
}

/* Of text: a linear axis with a line of room where values lie on its ends. */
static void append_text_y_range(GString *script, const struct plot_spec *spec,
                                const struct plot_data *data)
{
    double lo = INFINITY, hi = -INFINITY;
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        for (guint k = 0; k < curve->values->len; k++) {
            const double y = g_array_index(curve->values, struct plot_value, k).y;
            lo = MIN(lo, y);
            hi = MAX(hi, y);
        }
    }
    lo = isnan(spec->y_min) ? lo : spec->y_min;
    hi = isnan(spec->y_max) ? hi : spec->y_max;
    const double span = hi > lo ? hi - lo : MAX(fabs(lo), 1.0);
    g_string_append_printf(script, "set yrange [%.17g:%.17g]\n", clear_bound(data, lo, span, -1.0),
                           clear_bound(data, hi, span, 1.0));
}

static bool has_numbers(const struct plot_panel *panel)
{
    g_autofree char *title = plot_ratio_title(panel);
    return title != NULL;
}

static void y_range(const struct plot_data *data, double *lo, double *hi)
{
    *lo = INFINITY;
    *hi = -INFINITY;
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        for (guint k = 0; k < curve->values->len; k++) {
            const double y = g_array_index(curve->values, struct plot_value, k).y;
            *lo = MIN(*lo, y);
            *hi = MAX(*hi, y);
        }
    }
}

/* gnuplot finds no end by itself for an axis with one bound that no value is on the right side of:
 * the bound that is not set, in that case. */
static double free_bound(const struct plot_spec *spec, double bound, double sign)
{
    if (spec->log_y >= 2)
        return bound * pow(spec->log_y, sign);
    return bound + sign * (bound != 0.0 ? fabs(bound) : 1.0);
}

static void append_y_range(GString *script, const struct plot_spec *spec,
                           const struct plot_data *data)
{
    double lo, hi, y_min = spec->y_min, y_max = spec->y_max;
    y_range(data, &lo, &hi);
    if (isnan(y_min) && !isnan(y_max) && lo >= y_max)
        y_min = free_bound(spec, y_max, -1.0);
    else if (isnan(y_max) && !isnan(y_min) && hi <= y_min)
        y_max = free_bound(spec, y_min, 1.0);
    const bool ends_at_zero = spec->log_y < 2 && plot_ends_at_zero(data);
    if (ends_at_zero && isnan(y_min))
        y_min = 0.0;
    g_string_append(script, "set yrange [");
    if (!isnan(y_min))
        g_string_append_printf(script, "%.17g", y_min);
    g_string_append(script, ":");
    if (!isnan(y_max))
        g_string_append_printf(script, "%.17g", y_max);
    else if (ends_at_zero) /* of an interval that begins below the axis gnuplot misses the top */
        g_string_append_printf(script, "%.17g<*", plot_top(data));
    g_string_append(script, "]\n");
}

/* Above the highest value of a picture there is room: on the frame it could not be read. */
static void append_y_axis(GString *script, const struct plot_panel *panel,
                          const struct plot_output *output)
{
    const struct plot_spec *spec = panel->spec;
    const struct plot_data *data = &panel->data;

    g_string_append(script,
                    "set format y '% .10g'\n"); /* 1200000: "1.2e+06" is none of the papers' */
    if (output->format == PLOT_TEXT && spec->log_y < 2) {
        append_text_y_range(script, spec, data);
        return;
    }
    if (spec->log_y >= 2)
        g_string_append_printf(script, "set logscale y %u\n", spec->log_y);
    if (data->shares_y && output->format != PLOT_TEXT) {
        g_string_append_printf(script, "set yrange [%.17g:%.17g]\n", data->y_lo, data->y_hi);
        return;
    }
    if (spec->log_y < 2 && isnan(spec->y_max))
        g_string_append_printf(script, "set offsets 0, 0, graph %s, 0\n",
                               !has_numbers(panel)     ? "0.02"
                               : plot_is_small(output) ? "0.14"
                                                       : "0.07");
    append_y_range(script, spec, data);
}

#define PANEL_WIDTH    760
#define ALONE_WIDTH    1200
#define HEIGHT         800 /* of panels; their title and what stands below them come on top of it */
#define TITLE_HEIGHT   44
#define NOTE_LINE      26
#define NOTE_MARGIN    16
#define NOTE_CHARACTER 8.6 /* its mean width, in pixels */

/* Up to three panels stand side by side; more, in two rows or, of many, in rows of three. */
static guint n_columns(guint n_panels)
{
    return n_panels <= 3 ? n_panels : n_panels == 4 ? 2 : 3;
}

static guint n_rows(guint n_panels)
{
    return (n_panels + n_columns(n_panels) - 1) / n_columns(n_panels);
}

/* Panels side by side are less wide each than a figure alone, and as high. */
static int picture_width(guint n_panels)
{
    return n_panels > 1 ? (int)n_columns(n_panels) * PANEL_WIDTH : ALONE_WIDTH;
}

static int note_columns(guint n_panels)
{
    return (int)(picture_width(n_panels) / NOTE_CHARACTER) - 4;
}

size_t plot_note_room(guint n_panels)
{
    return (size_t)(2 * note_columns(n_panels) - 40); /* lines end with words */
}

static bool has_note(const struct plot_output *output)
{
    return output->note != NULL && *output->note != '\0' && output->format != PLOT_TEXT &&
           !plot_is_small(output);
}

/* The note as lines; g_free(). */
static char *note_lines(guint n_panels, const struct plot_output *output)
{
    GString *lines = g_string_new(NULL);
    cli_wrap(lines, output->note, 0, note_columns(n_panels));
    return g_string_free(lines, FALSE);
}

/* Pixels below the panels. */
static int note_height(guint n_panels, const struct plot_output *output)
{
    if (!has_note(output))
        return 0;
    g_autofree char *lines = note_lines(n_panels, output);
    int n = 1;
    for (const char *c = lines; *c != '\0'; c++)
        n += *c == '\n';
    return n * NOTE_LINE + NOTE_MARGIN;
}

static int picture_height(guint n_panels, const struct plot_output *output)
{
    return HEIGHT * (int)n_rows(n_panels) + note_height(n_panels, output) +
           (n_panels > 1 ? TITLE_HEIGHT : 0);
}

/* Where panel i stands: in its row, below the title, above the note and a legend of so many
 * pixels. */
static void append_place(GString *script, guint i, guint n_panels, int legend,
                         const struct plot_output *output)
{
    const double height = picture_height(n_panels, output), below = note_height(n_panels, output);
    const guint columns = n_columns(n_panels), rows = n_rows(n_panels), row = i / columns;
    const double row_height = HEIGHT - (double)legend / rows;
    const double above = row_height * (rows - 1 - row); /* rows count from the top */
    g_string_append_printf(script, "set origin %.5f,%.5f\nset size %.5f,%.5f\n",
                           (double)(i % columns) / columns, (below + legend + above) / height,
                           1.0 / columns, row_height / height);
}

/* The legend of the whole row, between its panels and the note. */
static void append_shared_legend(GString *script, const struct plot_panel *panels, guint n_panels,
                                 int legend, const struct plot_output *output)
{
    const double height = picture_height(n_panels, output), below = note_height(n_panels, output);
    g_string_append_printf(script, "reset\nset origin 0,%.5f\nset size 1,%.5f\n", below / height,
                           legend / height);
    plot_legend_append_shared(script, &panels[0], picture_width(n_panels));
}

static void append_note(GString *script, guint n_panels, const struct plot_output *output)
{
    if (!has_note(output))
        return;
    g_autofree char *lines = note_lines(n_panels, output);
    g_auto(GStrv) line = g_strsplit(lines, "\n", -1);
    const double height = picture_height(n_panels, output);
    const int n = (int)g_strv_length(line);
    for (int i = 0; i < n; i++) {
        g_string_append(script, "set label ");
        plot_append_quoted(script, line[i]);
        g_string_append_printf(script, " at screen %.5f, screen %.5f font ',%d' front\n",
                               12.0 / picture_width(n_panels),
                               (NOTE_MARGIN / 2.0 + NOTE_LINE * (n - i - 0.5)) / height,
                               output->format == PLOT_SVG ? 16 : 12);
    }
}

static void append_terminal(GString *script, guint n_panels, const struct plot_output *output)
{
    const int width = picture_width(n_panels), height = picture_height(n_panels, output);
    switch (output->format) {
    case PLOT_TEXT:
        g_string_append_printf(script, "set terminal dumb mono noenhanced size %d,%d\n",
                               output->columns, output->rows);
        break;
    case PLOT_PNG:
        g_string_append_printf(script,
                               "if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) {\n"
                               "set terminal pngcairo noenhanced size %d,%d font 'Sans,16' "
                               "linewidth 2\n} else {\n"
                               "set terminal png noenhanced size %d,%d large linewidth 2\n}\n",
                               width, height, width, height);
        break;
    case PLOT_SVG:
        if (plot_is_small(output)) {
            g_string_append_printf(script,
                                   "set terminal svg noenhanced size %d,%d font 'Sans,15' "
                                   "linewidth 1.2 background 'white'\n",
                                   output->columns, output->rows);
            break;
        }
        g_string_append_printf(script,
                               "set terminal svg noenhanced size %d,%d font 'Sans,20' "
                               "linewidth 2 background 'white'\n",
                               width, height);
        break;
    case PLOT_GNUPLOT: break;
    }
    if (output->path != NULL) {
        g_string_append(script, "set output ");
        plot_append_quoted(script, output->path);
        g_string_append(script, "\n");
    }
}

/* ---- Curves ---------------------------------------------------------------------------------- */

/* Labels do not stand on each other: from one to the next is a share of the width. */
#define LABEL_SHARE     0.085
#define PUBLISHED_SHARE 0.2 /* where one of them has something published in it */
#define PUBLISHED_EDGE  0.15

/* Where a value stands in the frame: 0 at its left, 1 at its right. */
static double place_along_x(const struct plot_spec *spec, const struct plot_data *data,
                            const struct plot_value *v)
{
    double lo, hi;
    plot_x_range(data, &lo, &hi);
    lo = isnan(spec->x_min) ? lo : spec->x_min;
    hi = isnan(spec->x_max) ? hi : spec->x_max;
    return !(hi > lo)                     ? 0.5
           : spec->log_x >= 2 && lo > 0.0 ? log(v->x / lo) / log(hi / lo)
                                          : (v->x - lo) / (hi - lo);
}

static double label_share(const struct plot_value *v)
{
    return v->published != NULL ? PUBLISHED_SHARE : LABEL_SHARE;
}

/* A label that would reach over an edge of the frame stands beside its point, inside. */
static const char *label_justify(double at, const struct plot_value *v)
{
    const double edge = v->published != NULL ? PUBLISHED_EDGE : LABEL_SHARE / 2.0;
    return at < edge ? "left" : at > 1.0 - edge ? "right" : "center";
}

static double label_middle(double at, const struct plot_value *v)
{
    const char *justify = label_justify(at, v);
    const double half = label_share(v) / 2.0;
    return *justify == 'l' ? at + half : *justify == 'r' ? at - half : at;
}

/* Whether a label stands clear of that of the other value. */
static bool stands_clear(const struct plot_spec *spec, const struct plot_data *data,
                         const struct plot_value *v, const struct plot_value *other)
{
    const double a = label_middle(place_along_x(spec, data, v), v);
    const double b = label_middle(place_along_x(spec, data, other), other);
    return fabs(a - b) >= label_share(other);
}

/* Which values of a curve have their ratio beside them: all that say what was published, and of the
 * others those that there is room for; g_free(). */
static bool *labelled_values(const struct plot_spec *spec, const struct plot_data *data,
                             const struct plot_curve *curve)
{
    bool *labelled = g_new0(bool, curve->values->len + 1);
    for (int published = 1; published >= 0; published--) {
        for (guint k = 0; k < curve->values->len; k++) {
            const struct plot_value *v = &g_array_index(curve->values, struct plot_value, k);
            bool room = v->ratio != 0.0 && (v->published != NULL) == (published == 1);
            for (guint i = 0; room && published == 0 && i < curve->values->len; i++) {
                const struct plot_value *other = &g_array_index(curve->values, struct plot_value,
                                                                i);
                room = i == k || !labelled[i] || stands_clear(spec, data, v, other);
            }
            labelled[k] = labelled[k] || room;
        }
    }
    return labelled;
}

/* "1.30 (1.25)": simulated, and published; "" without a label. */
void plot_append_ratio_text(GString *script, const struct plot_value *v, bool labelled)
{
    g_string_append_c(script, '"');
    if (labelled)
        g_string_append_printf(script, "%.2f", v->ratio);
    if (labelled && v->published != NULL) {
        g_string_append(script, " (");
        for (const char *c = v->published; *c != '\0'; c++)
            g_string_append_c(script, *c == '"' || *c == '\\' ? '\'' : *c);
        g_string_append_c(script, ')');
    }
    g_string_append_c(script, '"');
}

/* x, y, half an interval, ratio, band, label */
void plot_append_curve_data(GString *script, const struct plot_spec *spec,
                            const struct plot_data *data)
{
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        g_autofree bool *labelled = labelled_values(spec, data, curve);
        g_string_append_printf(script, "$curve%u << END\n", i);
        for (guint k = 0; k < curve->values->len; k++) {
            const struct plot_value *v = &g_array_index(curve->values, struct plot_value, k);
            g_string_append_printf(script, "%.17g %.17g %.17g %.17g %.17g %.17g ", v->x, v->y,
                                   v->ci95, labelled[k] ? v->ratio : 0.0, v->band_lo, v->band_hi);
            plot_append_ratio_text(script, v, labelled[k]);
            g_string_append_c(script, '\n');
        }
        g_string_append(script, "END\n");
    }
}

/* What the data say, or else what the name ends with: "transfer_bytes" has B. */
static const char *x_unit(const struct plot_data *data)
{
    const char *own;
    g_free(plot_metric_words(data->x_name, &own));
    return *data->x_unit != '\0' ? data->x_unit : own;
}

char *plot_category_name(const struct plot_panel *panel, guint row)
{
    const char *value = panel->data.categories->pdata[row], *unit = x_unit(&panel->data);
    if (panel->data.tics->len > row)
        return g_strdup(g_array_index(panel->data.tics, struct plot_tic, row).name);
    char *end;
    const double number = g_ascii_strtod(value, &end);
    const bool bytes = strcmp(unit, "B") == 0 || strcmp(unit, "bytes") == 0;
    return bytes && end != value && *end == '\0' ? plot_size_text(number)
                                                 : plot_x_name(panel->spec, value);
}

static void append_category_tics(GString *script, const struct plot_panel *panel)
{
    const struct plot_data *data = &panel->data;
    if (data->categories->len == 0)
        return;
    g_string_append(script, "set xtics (");
    for (guint i = 0; i < data->categories->len; i++) {
        g_string_append(script, i > 0 ? ", " : "");
        g_autofree char *name = plot_category_name(panel, i);
        plot_append_quoted(script, name);
        g_string_append_printf(script, " %u", i);
    }
    g_string_append_printf(script, ")\nset xrange [-0.5:%u.5]\n", data->categories->len - 1);
}

bool plot_has_interval(const struct plot_curve *curve)
{
    for (guint i = 0; i < curve->values->len; i++) {
        if (g_array_index(curve->values, struct plot_value, i).ci95 > 0.0)
            return true;
    }
    return false;
}

char *plot_ratio_title(const struct plot_panel *panel)
{
    const struct plot_data *data = &panel->data;
    bool any = false, published = false;
    for (guint i = 0; i < data->curves->len; i++) {
        const GArray *values = ((const struct plot_curve *)data->curves->pdata[i])->values;
        for (guint k = 0; k < values->len; k++) {
            const struct plot_value *v = &g_array_index(values, struct plot_value, k);
            any = any || v->ratio != 0.0;
            published = published || (v->ratio != 0.0 && v->published != NULL);
        }
    }
    if (!any)
        return NULL;
    const char *more = published ? " (published)" : "";
    if (data->ratio_name != NULL)
        return g_strdup_printf("numbers: %s%s", data->ratio_name, more);
    g_autofree char *of = plot_short_series(panel->spec, panel->spec->ratio_of);
    g_autofree char *to = plot_short_series(panel->spec, panel->spec->ratio_to);
    return g_strdup_printf("numbers: %s over %s%s", of, to, more);
}

void plot_append_title(GString *script, const char *label)
{
    g_string_append(script, *label != '\0' ? "title " : "notitle");
    if (*label != '\0')
        plot_append_quoted(script, label);
}

/* On which side of its point a label stands: where the curve that it is compared with does not run,
 * but inside the frame. */
struct label_side {
    bool below;
    const char *justify;
};

static struct label_side label_side(const struct plot_spec *spec, const struct plot_data *data,
                                    const struct plot_value *v)
{
    double bottom, top;
    y_range(data, &bottom, &top);
    bottom = isnan(spec->y_min) ? bottom : spec->y_min;
    return (struct label_side){ v->ratio < 1.0 && v->y - bottom > 0.1 * (top - bottom),
                                label_justify(place_along_x(spec, data, v), v) };
}

static void append_ratios(GString *script, const struct plot_panel *panel, unsigned index)
{
    const struct plot_curve *curve = panel->data.curves->pdata[index];
    g_autofree bool *labelled = labelled_values(panel->spec, &panel->data, curve);
    for (guint k = 0; k < curve->values->len; k++) {
        const struct plot_value *v = &g_array_index(curve->values, struct plot_value, k);
        const struct label_side side = label_side(panel->spec, &panel->data, v);
        if (labelled[k])
            g_string_append_printf(
                script,
                "$curve%u every ::%u::%u using 1:2:7 with labels boxed %s offset "
                "0,%s notitle, ",
                index, k, k, side.justify, side.below ? "-0.9" : "0.9");
    }
}

/* What the numbers at points or bars are: "numbers: local over remote". */
void plot_append_ratio_title(GString *script, const struct plot_panel *panel)
{
    g_autofree char *label = plot_ratio_title(panel);
    if (label == NULL)
        return;
    g_string_append(script, ", NaN with dots lc rgb '#FFFFFF' ");
    plot_append_title(script, label);
}

bool plot_has_band(const struct plot_curve *curve)
{
    for (guint i = 0; i < curve->values->len; i++) {
        const struct plot_value *v = &g_array_index(curve->values, struct plot_value, i);
        if (v->band_lo < v->band_hi)
            return true;
    }
    return false;
}

/* So many points that they would hide their line. */
static bool is_dense(const struct plot_spec *spec, const struct plot_curve *curve)
{
    return spec->kind == PLOT_CDF || curve->values->len > 60;
}

/* Of a curve that runs over others: they are seen through its gaps. */
static const char *dash(const struct plot_curve *curve)
{
    return curve->n_below == 0 ? "" : curve->n_below == 1 ? " dt (14,10)" : " dt (6,10)";
}

void plot_append_line_style(GString *script, const struct plot_spec *spec,
                            const struct plot_curve *curve, bool small)
{
    /* Its edges are seen around those above, unless they are many. */
    const double below = 1.0 + 0.7 * MIN(curve->n_above, SEEN_BELOW);
    if (is_dense(spec, curve))
        g_string_append_printf(script, "%s lc rgb '%s' lw %g%s ",
                               spec->kind == PLOT_CDF ? "steps" : "lines", COLOR(curve),
                               1.2 * below, dash(curve));
    else
        g_string_append_printf(script, "linespoints lc rgb '%s' pt %d ps %.2g lw %g%s ",
                               COLOR(curve), POINT(filled_points, curve),
                               (small ? 0.8 : 1.4) * below, below, dash(curve));
}

static void append_curve(GString *script, const struct plot_panel *panel, unsigned index,
                         bool small)
{
    const struct plot_spec *spec = panel->spec;
    const struct plot_curve *curve = panel->data.curves->pdata[index];

    if (curve->level) {
        g_string_append_printf(script, "$curve%u using 1:2 with lines lc rgb '%s' dt 2 lw 1.2 ",
                               index, COLOR(curve));
    } else if (curve->measured) {
        if (plot_has_band(curve))
            g_string_append_printf(script,
                                   "$curve%u using 1:2:5:6 with yerrorbars lc rgb '%s' pt 0 lw 1.2 "
                                   "notitle, ",
                                   index, COLOR(curve));
        g_string_append_printf(
            script, "$curve%u using 1:2 with points lc rgb '%s' pt %d ps %s lw 1.2 ", index,
            COLOR(curve), POINT(open_points, curve), small ? "1.1" : "1.8");
    } else {
        if (plot_has_band(curve))
            g_string_append_printf(
                script,
                "$curve%u using 1:5:6 with filledcurves fc rgb '%s' fs transparent "
                "solid 0.2 noborder notitle, ",
                index, COLOR(curve));
        if (plot_has_interval(curve))
            g_string_append_printf(
                script, "$curve%u using 1:2:3 with yerrorbars lc rgb '%s' pt 0 notitle, ", index,
                COLOR(curve));
        append_ratios(script, panel, index);
        g_string_append_printf(script, "$curve%u using 1:2 with ", index);
        plot_append_line_style(script, spec, curve, small);
    }
    plot_append_title(script, panel->shared && !curve->measured ? "" : curve->label);
}

/* Beside its point, so that a bar does not hide its mark. */
#define BESIDE 0.015 /* of the width */

static void append_ratio_marks(GString *script, const struct plot_panel *panel, bool small)
{
    const struct plot_spec *spec = panel->spec;
    const struct plot_data *data = &panel->data;
    double lo, hi;
    plot_x_range(data, &lo, &hi);
    const bool logarithmic = spec->log_x >= 2 && lo > 0.0;
    const double span = hi > lo ? hi - lo : fabs(lo), ratio = hi > lo ? hi / lo : 4.0;
    bool any = false;
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        if (!curve->by_ratio)
            continue;
        g_string_append_printf(
            script,
            ", $curve%u using ($1 %s %.17g):2:5:6 with yerrorbars lc rgb '%s' pt 1 ps %s lw 1.2 "
            "notitle",
            i, logarithmic ? "*" : "+", logarithmic ? pow(ratio, BESIDE) : span * BESIDE,
            COLOR(curve), small ? "0.9" : "1.4");
        any = true;
    }
    if (any)
        g_string_append(script,
                        ", NaN with points lc rgb '#000000' pt 1 title '" PLOT_RATIO_ENTRY "'");
}

/* Letters: A, B, ... simulated, joined by dots; a, b, ... what was measured of the same series. */
static void append_text_curve(GString *script, const struct plot_spec *spec,
                              const struct plot_curve *curve, unsigned index)
{
    const char letter = (char)((curve->measured ? 'a' : 'A') + (char)(curve->color % 26));
    const guint step = curve->values->len / 40 + 1;
    if (!curve->measured)
        g_string_append_printf(script, "$curve%u using 1:2 with %s lt 0 notitle, ", index,
                               spec->kind == PLOT_CDF ? "steps" : "lines");
    g_string_append_printf(script, "$curve%u using 1:2 every %u with points pt '%c' ", index, step,
                           letter);
    plot_append_title(script, curve->label);
}

/* What was measured comes last, so that it is not hidden. */
static void append_curves(GString *script, const struct plot_panel *panel,
                          const struct plot_output *output)
{
    const struct plot_data *data = &panel->data;
    const char *separator = "plot ";
    bool one_entry = false; /* for all measured curves without a label */
    bool level = false;
    plot_append_curve_data(script, panel->spec, data);
    append_category_tics(script, panel);
    for (int measured = 0; measured <= 1; measured++) {
        for (guint i = 0; i < data->curves->len; i++) {
            const struct plot_curve *curve = data->curves->pdata[i];
            if (curve->measured != (measured == 1) || curve->values->len == 0 || curve->by_ratio)
                continue;
            g_string_append(script, separator);
            separator = ", ";
            one_entry = one_entry || *curve->label == '\0';
            level = level || curve->level;
            if (output->format == PLOT_TEXT)
                append_text_curve(script, panel->spec, curve, i);
            else
                append_curve(script, panel, i, plot_is_small(output));
        }
    }
    if (one_entry && output->format == PLOT_TEXT)
        g_string_append(script, ", NaN with points pt 'a' title '(small letters) measured'");
    else if (one_entry && level)
        g_string_append(script, ", NaN with lines lc rgb '#000000' dt 2 lw 1.2 "
                                "title 'measured (dashed)'");
    else if (one_entry)
        g_string_append_printf(script,
                               ", NaN with points lc rgb '#000000' pt 6 ps %s lw 1.2 "
                               "title 'measured (open)'",
                               plot_is_small(output) ? "1.1" : "1.8");
    if (output->format != PLOT_TEXT) {
        plot_append_ratio_title(script, panel);
        append_ratio_marks(script, panel, plot_is_small(output));
    }
    g_string_append(script, "\n");
}

#define SMALL_NAMES 43 /* letters beside each other below the frame of a small picture */

bool plot_is_rotated(const struct plot_panel *panel, bool small)
{
    const guint n = panel->data.categories->len;
    size_t longest = 0;
    if (!plot_is_bars(panel->spec))
        return false;
    for (guint i = 0; i < n; i++) {
        g_autofree char *name = plot_category_name(panel, i);
        longest = MAX(longest, strlen(name));
    }
    return n > (small ? 4U : 8U) || (small && n * (longest + 1) > SMALL_NAMES);
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* width: of one panel of several, in pixels; 0: it is alone */
static void append_panel(GString *script, const char *title, const struct plot_panel *panel,
                         int width, const struct plot_output *output)
{
    const struct plot_spec *spec = panel->spec;
    append_labels(script, title, panel, output);
    if (output->format == PLOT_TEXT) /* where it hides nothing */
        g_string_append(script, "set key below Left reverse samplen 1\n");
    else
        g_string_append(script, "set style textbox opaque noborder margins 0.2,0.2\n"
                                "set grid ytics lc rgb '#D0D0D0'\n"
                                "set xtics nomirror\nset ytics nomirror\n");
    if (output->format != PLOT_TEXT)
        plot_legend_append(script, panel, plot_is_small(output) ? output->columns : width,
                           plot_is_small(output), output->format == PLOT_SVG ? 20 : 16);
    if (plot_is_distribution(spec)) {
        plot_distribution_append(script, panel, width, output);
        return;
    }
    if (!plot_is_bars(spec) && panel->data.categories->len == 0)
        plot_append_x_axis(script, spec, &panel->data, plot_is_small(output) || width != 0);
    append_y_axis(script, panel, output);
    if (plot_is_bars(spec))
        plot_append_bars(script, panel, output);
    else
        append_curves(script, panel, output);
}

char *plot_script(const char *title, const struct plot_panel *panels, guint n_panels,
                  const struct plot_output *output)
{
    GString *script = g_string_new("set encoding utf8\n");
    append_terminal(script, n_panels, output);
    if (n_panels == 1) {
        if (has_note(output))
            append_place(script, 0, 1, 0, output);
        append_note(script, 1, output);
        append_panel(script, title, panels, 0, output);
        return g_string_free(script, FALSE);
    }
    /* the same panels, but for what stands in the legend of the row */
    g_autofree struct plot_panel *row = g_memdup2(panels, n_panels * sizeof(*panels));
    const bool shared = plot_legend_is_shared(panels, n_panels);
    const int legend = shared ? plot_legend_shared_height(panels, picture_width(n_panels)) : 0;
    for (guint i = 0; i < n_panels; i++)
        row[i].shared = shared;
    g_string_append_printf(script, "set multiplot layout %u,%u title ", n_rows(n_panels),
                           n_columns(n_panels));
    plot_append_quoted(script, title);
    g_string_append(script, "\n");
    bool titled = false;
    for (guint i = 0; i < n_panels; i++)
        titled = titled || *panels[i].spec->title != '\0' || *panels[i].data.common != '\0';
    for (guint i = 0; i < n_panels; i++) {
        g_autofree char *own = plot_title_with_common(panels[i].spec->title, &panels[i].data);
        g_string_append(script, i > 0 ? "reset\n" : "");
        append_place(script, i, n_panels, legend, output);
        if (i == 0)
            append_note(script, n_panels, output);
        g_string_append(script, "set key samplen 2\nset rmargin 4\n"); /* the last tic's number */
        plot_legend_append_room(script, row, n_panels, PANEL_WIDTH);
        append_panel(script, titled && *own == '\0' ? " " : own, /* as high as the others */
                     &row[i], PANEL_WIDTH, output);
    }
    if (shared)
        append_shared_legend(script, row, n_panels, legend, output);
    g_string_append(script, "unset multiplot\n");
    return g_string_free(script, FALSE);
}
