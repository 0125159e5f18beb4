/* One scenario in the report: picture, claims, values, where the time goes. */
#include <math.h>
#include <string.h>

#include "cli/base/script.h"
#include "cli/plot/plot_script.h"
#include "cli/report/report.h"
#include "cli/results/result_older.h"

#define PICTURE_COLUMNS 500
#define PICTURE_ROWS    430
#define NOTE_ROOM       400 /* characters below the pictures: all claims are in the table below */
#define PARTS           "latency_part_ns"

/* ---- Anchors --------------------------------------------------------------------------------- */

static char *anchor(const char *kind, const char *text)
{
    GString *id = g_string_new(kind);
    html_id(id, text);
    return g_string_free(id, FALSE);
}

char *report_claim_anchor(const struct claim *claim)
{
    return anchor("claim-", claim->id);
}

char *report_scenario_title(const struct report_paper *paper, const struct scenario *scenario)
{
    struct plot_published published;
    const char *title = *scenario_title(scenario) != '\0' ? scenario_title(scenario)
                                                          : scenario_name(scenario);
    plot_published_of(&published, scenario, paper->claims);
    char *whole = plot_published_title(&published, scenario, title);
    plot_published_release(&published);
    return whole;
}

char *report_scenario_anchor(const struct scenario *scenario)
{
    return anchor("figure-", scenario_name(scenario));
}

/* ---- Pictures -------------------------------------------------------------------------------- */

static char *replace(char *text, const char *pattern, const char *by)
{
    GRegex *regex = g_regex_new(pattern, G_REGEX_DOTALL, 0, NULL);
    char *replaced = g_regex_replace(regex, text, -1, 0, by, 0, NULL);
    g_regex_unref(regex);
    g_free(text);
    return replaced;
}

/* gnuplot's file as a part of the page: ids of its own, titles that say something. */
static void append_picture(struct report *report, char *svg, int rows, const char *title,
                           const char *alt)
{
    const unsigned n = report->n_pictures++;
    g_autofree char *ids = g_strdup_printf("\\1p%u-", n);
    svg = replace(svg, "^.*?<svg[^>]*>", "");
    svg = replace(svg, "<(title|desc)>.*?</\\1>", "");
    svg = replace(svg, "(\\bid=['\"])", ids);
    svg = replace(svg, "(href=['\"]#|url\\(#)", ids);
    g_string_append_printf(report->html,
                           "<svg xmlns=\"http://www.w3.org/2000/svg\" "
                           "xmlns:xlink=\"http://www.w3.org/1999/xlink\" "
                           "viewBox=\"0 0 %d %d\" role=\"img\" "
                           "aria-labelledby=\"p%u-title p%u-desc\">\n<title id=\"p%u-title\">",
                           PICTURE_COLUMNS, rows, n, n, n);
    html_text(report->html, title);
    g_string_append_printf(report->html, "</title>\n<desc id=\"p%u-desc\">", n);
    html_add(report->html, "", alt, "</desc>\n", NULL);
    g_string_append(report->html, svg);
    g_free(svg);
}

/* "Simulated read: 536 to 1118 ns at 14 points. Measured ..." */
static char *alternative(const struct plot_spec *spec, const struct plot_data *data)
{
    GString *text = g_string_new(NULL);
    char *y = plot_y_name(spec);
    const char *x = *spec->x_label != '\0' ? spec->x_label : data->x_name;
    g_string_append_printf(text, "%s over %s.", y, x);
    g_free(y);
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        double lo = INFINITY, hi = -INFINITY;
        char low[32], high[32];
        for (guint k = 0; k < curve->values->len; k++) {
            const double value = g_array_index(curve->values, struct plot_value, k).y;
            lo = MIN(lo, value);
            hi = MAX(hi, value);
        }
        if (curve->values->len > 0 && !curve->by_ratio)
            g_string_append_printf(text, " %s%s%s: %s to %s %s.",
                                   curve->measured ? "Measured" : "Simulated",
                                   *curve->label != '\0' ? ", " : "", curve->label,
                                   cli_number(lo, low), cli_number(hi, high), data->y_unit);
    }
    return g_string_free(text, FALSE);
}

/* caption: above the picture, which has no title; "" for none */
static void append_figure(struct report *report, const char *title, const char *caption,
                          const struct plot_panel *panel)
{
    const struct plot_output output = { .format = PLOT_SVG,
                                        .columns = PICTURE_COLUMNS,
                                        .rows = plot_legend_small_rows(panel, PICTURE_COLUMNS,
                                                                       PICTURE_ROWS) };
    g_autofree char *script = plot_script(title, panel, 1, &output);
    char *svg = report->drawing_failed ? NULL : script_gnuplot(script);
    if (svg != NULL) {
        g_autofree char *alt = alternative(panel->spec, &panel->data);
        g_string_append(report->html, "<figure>\n");
        if (*caption != '\0')
            html_add(report->html, "<figcaption>", caption, "</figcaption>\n", NULL);
        append_picture(report, svg, output.rows, title, alt);
        g_string_append(report->html, "</figure>\n");
    } else {
        report->drawing_failed = true;
        g_string_append(report->html, "<p>The picture could not be drawn.</p>\n");
    }
}

/* ---- Values as a table ----------------------------------------------------------------------- */

static int by_number(gconstpointer a, gconstpointer b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static GArray *all_x(const struct plot_data *data)
{
    GArray *xs = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        for (guint k = 0; k < curve->values->len && !curve->by_ratio; k++)
            g_array_append_val(xs, g_array_index(curve->values, struct plot_value, k).x);
    }
    g_array_sort(xs, by_number);
    for (guint i = xs->len; i-- > 1;) {
        if (g_array_index(xs, double, i) == g_array_index(xs, double, i - 1))
            g_array_remove_index(xs, i);
    }
    return xs;
}

static void append_value(GString *html, const struct plot_curve *curve, double x)
{
    char number[32];
    g_string_append(html, "<td class=\"n\">");
    for (guint i = 0; i < curve->values->len; i++) {
        const struct plot_value *value = &g_array_index(curve->values, struct plot_value, i);
        if (value->x != x)
            continue;
        g_string_append(html, cli_number(value->y, number));
        if (value->ci95 > 0.0)
            g_string_append_printf(html, " &#177;&#160;%.2g", value->ci95);
        break;
    }
    g_string_append(html, "</td>");
}

static void append_header(GString *html, const struct plot_spec *spec, const struct plot_data *data)
{
    const char *x = *spec->x_label != '\0' && spec->kind != PLOT_STACK ? spec->x_label
                                                                       : data->x_name;
    html_add(html, "<thead><tr><th scope=\"col\">", x, "", *data->x_unit != '\0' ? " [" : "", "",
             data->x_unit, "", *data->x_unit != '\0' ? "]" : "", "</th>", NULL);
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        if (curve->by_ratio)
            continue;
        g_autofree char *series = plot_short_series(spec, curve->series);
        const char *label = *curve->label != '\0' ? curve->label
                            : *series != '\0'     ? series
                                                  : "value";
        html_add(html, "<th scope=\"col\" class=\"n\">", label, "",
                 curve->measured && strstr(label, "measured") == NULL ? ", measured" : "", "</th>",
                 NULL);
    }
    g_string_append(html, "</tr></thead>\n");
}

/* A value of an axis as the point's name has it, 1048576; others are rounded. */
static const char *x_number(const struct scenario *scenario, const struct plot_spec *spec, double x,
                            char buffer[32])
{
    if (scenario_axis_find(scenario, spec->x) == scenario_n_axes(scenario))
        return cli_number(x, buffer);
    g_snprintf(buffer, 32, "%.15g", x);
    return buffer;
}

static void append_values(GString *html, const struct scenario *scenario,
                          const struct plot_spec *spec, const struct plot_data *data,
                          const char *label)
{
    g_autoptr(GArray) xs = all_x(data);
    report_wide(html, label);
    html_add(html, "<table><caption>", *spec->y_label != '\0' ? spec->y_label : "value", "",
             *data->y_unit != '\0' ? " [" : "", "", data->y_unit, "",
             *data->y_unit != '\0' ? "]" : "", "; &#177; half a 95 % interval</caption>\n", NULL);
    append_header(html, spec, data);
    g_string_append(html, "<tbody>\n");
    for (guint i = 0; i < xs->len; i++) {
        const double x = g_array_index(xs, double, i);
        char number[32];
        const char *name = data->categories->len > (guint)x && x >= 0.0
                               ? data->categories->pdata[(guint)x]
                               : x_number(scenario, spec, x, number);
        html_add(html, "<tr><th scope=\"row\">", name, "</th>", NULL);
        for (guint k = 0; k < data->curves->len; k++) {
            if (!((const struct plot_curve *)data->curves->pdata[k])->by_ratio)
                append_value(html, data->curves->pdata[k], x);
        }
        g_string_append(html, "</tr>\n");
    }
    g_string_append(html, "</tbody></table></div>\n");
}

/* ---- Claims ---------------------------------------------------------------------------------- */

static const char *verdict_class(const struct claim *claim)
{
    return claim_holds(claim) ? "ok" : claim->verdict == CLAIM_KNOWN_MISS ? "known" : "miss";
}

/* Lines may end behind dots and underscores alone. */
static void append_id(GString *html, const char *id)
{
    while (*id != '\0') {
        const size_t n = strcspn(id, "._") + 1;
        g_autofree char *part = g_strndup(id, n);
        html_text(html, part);
        id += strlen(part);
        g_string_append(html, *id != '\0' ? "<wbr/>" : "");
    }
}

/* Roles are said in full, as the page lays rows out as grids on a phone. */
static void append_claim(GString *html, const struct claim *claim)
{
    char lo[32], hi[32], value[32], error[32], *id = report_claim_anchor(claim);
    html_add(html, "<tr role=\"row\" id=\"", id,
             "\"><th role=\"rowheader\" scope=\"row\"><span class=\"id\">", "", NULL);
    append_id(html, claim->id);
    html_add(html, "</span> <span class=\"what\">", claim->text, "</span></th><td role=\"cell\">",
             claim->baseline ? "C" : "K", " <span class=\"what\">",
             claim->kind != CLAIM_UNLABELLED ? claim_kind_name(claim->kind) : "",
             "</span></td><td role=\"cell\" class=\"n",
             strchr(claim->published, ' ') != NULL ? " words" : "", "\">", claim->published,
             " <span class=\"what\">", cli_number(claim->lo, lo), "&#8211;",
             cli_number(claim->hi, hi), "</span></td><td role=\"cell\" class=\"n\">",
             isnan(claim->value) ? "-" : cli_number(claim->value, value),
             "</td><td role=\"cell\" class=\"n\">", claim_error_text(claim, error),
             "</td><td role=\"cell\" class=\"", verdict_class(claim), "\">",
             claim_verdict_name(claim->verdict), "</td></tr>\n", NULL);
    if (claim->misses != NULL)
        html_add(html, "<tr role=\"row\" class=\"why\"><td role=\"cell\" colspan=\"6\">",
                 claim->verdict == CLAIM_KNOWN_MISS ? "Known miss: " : "Marked as a known miss: ",
                 "", claim->misses, "</td></tr>\n", NULL);
    g_free(id);
}

static void begin_claims(GString *html, const char *of)
{
    report_wide(html, of);
    g_string_append(
        html,
        "<table class=\"claims\" role=\"table\"><thead role=\"rowgroup\"><tr role=\"row\"><th role=\"columnheader\" scope=\"col\">claim</th>"
        "<th role=\"columnheader\" scope=\"col\">use<span class=\"what\">kind</span></th><th role=\"columnheader\" scope=\"col\" class=\"n\">published"
        "<span class=\"what\">accepted</span></th>"
        "<th role=\"columnheader\" scope=\"col\" class=\"n\">simulated</th>"
        "<th role=\"columnheader\" scope=\"col\" class=\"n\">error %</th>"
        "<th role=\"columnheader\" scope=\"col\">verdict</th></tr></thead><tbody role=\"rowgroup\">\n");
}

static void append_claims(struct report *report, const struct report_paper *paper,
                          const char *scenario)
{
    GString *html = report->html;
    unsigned n = 0;
    g_autofree char *label = g_strdup_printf("Claims of %s", scenario);
    for (guint i = 0; paper->claims != NULL && i < paper->claims->claims->len; i++) {
        const struct claim *claim = claims_at(paper->claims, i);
        if (g_strcmp0(claim->scenario, scenario) == 0) {
            if (n++ == 0) {
                g_string_append(html, "<h4>Claims</h4>\n");
                begin_claims(html, label);
            }
            append_claim(html, claim);
        }
    }
    if (n > 0)
        g_string_append(html, "</tbody></table></div>\n");
}

void report_other_claims(struct report *report, const struct report_paper *paper)
{
    unsigned n = 0;
    for (guint i = 0; paper->claims != NULL && i < paper->claims->claims->len; i++) {
        const struct claim *claim = claims_at(paper->claims, i);
        bool shown = false;
        for (guint k = 0; k < paper->scenarios->len && !shown; k++)
            shown = g_strcmp0(claim->scenario, scenario_name(paper->scenarios->pdata[k])) == 0;
        if (!shown) {
            if (n++ == 0) {
                g_string_append(report->html, "<h3>Other claims</h3>\n");
                begin_claims(report->html, "Other claims");
            }
            append_claim(report->html, claim);
        }
    }
    if (n > 0)
        g_string_append(report->html, "</tbody></table></div>\n");
}

/* ---- Where the time goes --------------------------------------------------------------------- */

static void append_parts(struct report *report, struct scenario *scenario,
                         const struct plot_spec *figure)
{
    struct plot_spec spec = *figure;
    struct plot_panel panel = { .spec = &spec };
    spec.kind = PLOT_STACK;
    spec.x_label = spec.x_unit = spec.key = "";
    spec.y_label = "mean latency";
    spec.y_unit = "ns";
    spec.log_y = 0;
    spec.y_min = 0.0;
    spec.x_min = spec.x_max = spec.y_max = (double)NAN;
    spec.metrics = g_ptr_array_new();
    spec.measured = g_array_new(FALSE, FALSE, sizeof(struct plot_measured));
    g_ptr_array_add(spec.metrics, (gpointer)(uintptr_t)PARTS);
    if (plot_data_collect(scenario, &spec, report->db, report->options, NULL, &panel.data,
                          &report->errors)) {
        g_string_append(report->html, "<details><summary>Where the time goes</summary>\n");
        append_figure(report, "Where the time goes", "", &panel);
        append_values(report->html, scenario, &spec, &panel.data, "Parts of the latency");
        g_string_append(report->html, "</details>\n");
    }
    plot_data_release(&panel.data);
    g_ptr_array_free(spec.metrics, TRUE);
    g_array_free(spec.measured, TRUE);
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* Tables of hundreds of samples are for programs: nudma export, or the database. */
static bool is_table(const struct plot_panel *panel)
{
    return !plot_is_sampled(panel->spec);
}

/* A picture for each panel; what it shows in *panels, of which *n_shown have something to show. */
static struct plot_panel *append_panels(struct report *report, struct scenario *scenario,
                                        const struct plot_figure *figure,
                                        const struct plot_published *published, guint *n_shown)
{
    struct plot_panel *panels = g_new0(struct plot_panel, figure->panels->len + 1);
    g_autoptr(GPtrArray) missing = g_ptr_array_new();
    *n_shown = 0;
    for (guint i = 0; i < figure->panels->len; i++) {
        const size_t before = report->errors.n_messages;
        struct plot_panel *panel = &panels[*n_shown];
        panel->spec = figure->panels->pdata[i];
        if (!plot_data_collect(scenario, panel->spec, report->db, report->options, published,
                               &panel->data, &report->errors)) {
            if (report->errors.n_messages == before)
                g_ptr_array_add(missing, (gpointer)panel->spec);
            plot_data_release(&panel->data);
            continue;
        }
        ++*n_shown;
    }
    plot_arrange(panels, *n_shown);
    for (guint i = 0; i < *n_shown; i++) {
        const char *own = panels[i].spec->title;
        g_autofree char *title = plot_title_with_common(*own != '\0' ? own : figure->title,
                                                        &panels[i].data);
        const bool differs = strcmp(own, figure->title) != 0;
        g_autofree char *caption = plot_title_with_common(differs ? own : "", &panels[i].data);
        append_figure(report, title, caption, &panels[i]);
    }
    plot_data_say_missing(scenario, figure, missing, report->options, report->db);
    return panels;
}

/* "Values of the figure"; of one of several panels "Values: throughput (local)". */
static char *values_title(const struct plot_panel *panels, guint n, guint i)
{
    const struct plot_panel *panel = &panels[i];
    g_autofree char *y = plot_y_name(panel->spec);
    g_autofree char *name =
        plot_title_with_common(*panel->spec->title != '\0' ? panel->spec->title : y, &panel->data);
    return n > 1 ? g_strdup_printf("Values: %s", name) : g_strdup("Values of the figure");
}

static void append_results(struct report *report, const struct report_paper *paper,
                           struct scenario *scenario)
{
    struct plot_figure figure;
    guint n = 0;
    const bool good = plot_figure_read(scenario, &figure, &report->errors);
    struct plot_published published;
    plot_published_of(&published, scenario, paper->claims);
    g_autofree struct plot_panel *panels =
        good ? append_panels(report, scenario, &figure, &published, &n) : NULL;
    g_autofree char *note = plot_published_text(&published, NOTE_ROOM);
    if (n > 0 && *note != '\0')
        html_add(report->html, "<p class=\"published\">", note, ".</p>\n", NULL);
    plot_published_release(&published);
    append_claims(report, paper, scenario_name(scenario));
    const struct plot_spec *first = good ? figure.panels->pdata[0] : NULL;
    if (first != NULL && first->kind != PLOT_STACK)
        append_parts(report, scenario, first);
    for (guint i = 0; i < n; i++) {
        if (is_table(&panels[i])) {
            g_autofree char *what = values_title(panels, n, i);
            html_add(report->html, "<details><summary>", what, "</summary>\n", NULL);
            append_values(report->html, scenario, panels[i].spec, &panels[i].data, what);
            g_string_append(report->html, "</details>\n");
        }
        plot_data_release(&panels[i].data);
    }
    plot_figure_release(&figure);
}

/* "; all 3 that ran failed, the first of these points memory=local: needed more than ...", or how
 * many did beside n points with results. False: none did. */
static bool append_failures(struct report *report, const struct scenario *scenario, unsigned n)
{
    g_autofree char *point = NULL, *error = NULL;
    size_t first = SIZE_MAX; /* in the scenario's order: that of time is not the same twice */
    unsigned n_failed = 0;
    struct results_cursor *cursor = results_failures(report->db, scenario_name(scenario));
    for (const struct results_quantity *row; (row = results_next_quantity(cursor)) != NULL;) {
        const size_t index = scenario_point_find(scenario, row->name);
        n_failed++;
        if (index >= first)
            continue;
        first = index;
        g_free(point);
        g_free(error);
        point = g_strdup(row->name);
        error = g_strdup(row->unit);
    }
    cli_end(cursor);
    if (n_failed == 0)
        return false;
    if (n > 0)
        g_string_append_printf(report->html, "; %u failed", n_failed);
    else if (n_failed > 1)
        g_string_append_printf(report->html, "; all %u that ran failed", n_failed);
    else
        g_string_append(report->html, "; the one that ran failed");
    if (*point != '\0')
        html_add(report->html, n_failed > 1 ? ", the first of these points <code>" : ", <code>",
                 point, "</code>", NULL);
    html_add(report->html, ": ", error, NULL);
    return true;
}

void report_scenario(struct report *report, const struct report_paper *paper,
                     struct scenario *scenario)
{
    GString *html = report->html;
    const unsigned n = report_n_points(report, scenario);
    const char *name = scenario_name(scenario);
    g_autofree char *id = report_scenario_anchor(scenario);
    g_autofree char *title = report_scenario_title(paper, scenario);
    char number[32], total[32];
    html_add(html, "<section aria-labelledby=\"", id, "\">\n<h3 id=\"", id, "\">", title, "</h3>\n",
             NULL);
    if (*scenario_text(scenario) != '\0')
        html_add(html, "<p>", scenario_text(scenario), "</p>\n", NULL);
    g_snprintf(number, sizeof(number), "%u", n);
    g_snprintf(total, sizeof(total), "%zu", scenario_n_points(scenario));
    html_add(html, "<p class=\"meta\"><code>", name, "</code>, ", number, " of ", total, " points",
             NULL);
    const bool failed = append_failures(report, scenario, n);
    if (n == 0 && !failed)
        html_add(html, ": no results yet; <code>nudma run ", name, "</code> makes them", NULL);
    g_string_append(html, "</p>\n");
    g_autofree char *changes = n > 0 ? result_changes(report->db, name) : NULL;
    if (changes != NULL)
        html_add(html, "<p class=\"meta\">Changed by <code>", changes, "</code></p>\n", NULL);
    g_autofree char *sampled = n > 0 ? result_sampled(report->db, name) : NULL;
    if (sampled != NULL)
        html_add(html, "<p class=\"meta\">Sampled: ", sampled, "</p>\n", NULL);
    g_autofree char *older = n > 0 ? result_older(report->db, name, scenario) : NULL;
    if (older != NULL)
        html_add(html, "<p class=\"meta\">Of an older text of the scenario: ", older, "</p>\n",
                 NULL);
    if (n > 0)
        append_results(report, paper, scenario);
    else
        append_claims(report, paper, name);
    g_string_append(html, "</section>\n");
}
