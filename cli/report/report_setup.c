/* What was simulated: topologies, parameters with where they come from, versions. */
#define _GNU_SOURCE /* strverscmp() */
#include <inttypes.h>
#include <string.h>

#include "cli/base/script.h"
#include "cli/report/report.h"
#include "cli/topology/topology.h"
#include "sim/store/version.h"
#include "workloads/experiment.h"

/* ---- Topologies ------------------------------------------------------------------------------ */

/* The point that stands for the scenario, as axes change settings, but seldom what is plugged in:
 * the first of those with results, since others may not even run; without any the first. */
static size_t typical_point(const struct report *report, const struct scenario *scenario)
{
    struct results_cursor *points = results_points(report->db, scenario_name(scenario));
    size_t first = scenario_n_points(scenario);
    for (const char *name; (name = results_next_name(points)) != NULL && first > 0;)
        first = MIN(first, scenario_point_find(scenario, name));
    cli_end(points);
    return first < scenario_n_points(scenario) ? first : 0;
}

static struct config *config_of(struct report *report, struct scenario *scenario, size_t point)
{
    struct config *config = scenario_point(scenario, point, &report->errors);
    if (config != NULL && !experiment_check(config, &report->errors))
        g_clear_pointer(&config, config_free);
    return config;
}

struct drawn {
    char *text; /* all of it: the sentence leaves out what is alike */
    struct topology *topology;
    GString *names; /* of the scenarios that have it, with the point if it is not the first */
    bool names_point;
};

static void free_drawn(gpointer pointer)
{
    struct drawn *drawn = pointer;
    g_free(drawn->text);
    topology_free(drawn->topology);
    g_string_free(drawn->names, TRUE);
    g_free(drawn);
}

/* Scenarios of the same topology share its picture; one that simulates nothing, but tells of
 * published numbers, has none. */
static void add_topology(GPtrArray *all, struct topology *topology, const struct scenario *scenario,
                         size_t point)
{
    g_autofree char *name = point == 0 ? g_strdup(scenario_name(scenario))
                                       : g_strconcat(scenario_name(scenario), " at ",
                                                     scenario_point_name(scenario, point), NULL);
    if (topology->hosts->len + topology->devices->len == 0) {
        topology_free(topology);
        return;
    }
    char *text = topology_text(topology);
    for (guint i = 0; i < all->len; i++) {
        struct drawn *drawn = all->pdata[i];
        if (strcmp(drawn->text, text) == 0) {
            g_string_append_printf(drawn->names, ", %s", name);
            drawn->names_point = drawn->names_point || point > 0;
            g_free(text);
            topology_free(topology);
            return;
        }
    }
    struct drawn *drawn = g_new0(struct drawn, 1);
    drawn->text = text;
    drawn->topology = topology;
    drawn->names = g_string_new(name);
    drawn->names_point = point > 0;
    g_ptr_array_add(all, drawn);
}

void report_setup(struct report *report, const struct report_paper *paper)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(free_drawn);
    for (guint i = 0; i < paper->scenarios->len; i++) {
        struct scenario *scenario = paper->scenarios->pdata[i];
        const size_t point = typical_point(report, scenario);
        struct config *config = config_of(report, scenario, point);
        struct topology *topology = config != NULL ? topology_new(config, &report->errors) : NULL;
        if (topology != NULL)
            add_topology(all, topology, scenario, point);
        config_free(config);
    }
    if (all->len > 0)
        g_string_append(report->html, "<h3>Set-up</h3>\n");
    for (guint i = 0; i < all->len; i++) {
        const struct drawn *drawn = all->pdata[i];
        g_autofree char *id = g_strdup_printf("p%u", report->n_pictures++);
        g_autofree char *svg = report->topology_failed ? NULL : topology_svg(drawn->topology, id);
        g_autofree char *sentence = topology_sentence(drawn->topology);
        html_add(report->html, "<p>", sentence, "</p>\n", NULL);
        report_wide(report->html, "Topology");
        g_string_append(report->html, "<figure>\n");
        g_string_append(report->html,
                        svg != NULL ? svg : "<p>The picture could not be drawn.</p>\n");
        report->topology_failed = svg == NULL;
        if (all->len > 1 || drawn->names_point)
            html_add(report->html, "<figcaption>Of ", drawn->names->str, "</figcaption>\n", NULL);
        g_string_append(report->html, "</figure></div>\n");
    }
}

/* ---- Parameters ------------------------------------------------------------------------------ */

/* A parameter over all runs of those scenarios that have the same values of it: a row. */
struct used {
    char *name, *unit, *provenance, *origin;
    GPtrArray *values; /* the different ones, char *, sorted once all are there; owned */
    GString *scenarios;
    bool apart; /* other scenarios have others */
};

static void free_used(gpointer pointer)
{
    struct used *used = pointer;
    g_free(used->name);
    g_free(used->unit);
    g_free(used->provenance);
    g_free(used->origin);
    g_ptr_array_free(used->values, TRUE);
    g_string_free(used->scenarios, TRUE);
    g_free(used);
}

static char *values_of(const struct used *used)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < used->values->len; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", (char *)used->values->pdata[i]);
    return g_strdup(text->str);
}

static int by_value(gconstpointer a, gconstpointer b)
{
    return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

/* Rows of a path stand as their scenarios do. */
static int by_path(gconstpointer a, gconstpointer b)
{
    const struct used *x = *(const struct used *const *)a, *y = *(const struct used *const *)b;
    const int order = strverscmp(x->name, y->name);
    return order != 0 ? order : strverscmp(x->scenarios->str, y->scenarios->str);
}

static bool has_value(const struct used *used, const char *value)
{
    return g_ptr_array_find_with_equal_func(used->values, value, g_str_equal, NULL);
}

/* Where the value is written, and its source; told apart by the value, as runs may have changed it.
 */
struct origin_search {
    GHashTable *by_name; /* of the scenario */
};

static void take_origin(void *context, const char *path, const char *value, const char *unit,
                        enum param_provenance provenance, const char *origin)
{
    const struct origin_search *search = context;
    struct used *used = g_hash_table_lookup(search->by_name, path);
    (void)unit, (void)provenance;
    if (used == NULL || used->origin != NULL || !has_value(used, value))
        return;
    /* "file:12, docs/sources.md#a1": a file's name without the folders above it */
    const char *slash = strstr(origin, "scenarios/");
    used->origin = g_strdup(slash != NULL ? slash : origin);
}

/* Of one scenario: struct used by name, which its name belongs to. */
static GHashTable *read_used(struct report *report, struct scenario *scenario)
{
    GHashTable *by_name = g_hash_table_new(g_str_hash, g_str_equal);
    struct results_cursor *params = results_params_used(report->db, scenario_name(scenario));
    for (const struct results_param *p; (p = results_next_param(params)) != NULL;) {
        struct used *used = g_hash_table_lookup(by_name, p->name);
        if (used == NULL) {
            used = g_new0(struct used, 1);
            used->name = g_strdup(p->name);
            used->unit = g_strdup(p->unit);
            used->provenance = g_strdup(p->provenance);
            used->values = g_ptr_array_new_with_free_func(g_free);
            used->scenarios = g_string_new(scenario_name(scenario));
            g_hash_table_insert(by_name, used->name, used);
        }
        if (!has_value(used, p->value))
            g_ptr_array_add(used->values, g_strdup(p->value));
    }
    cli_end(params);
    struct config *config = config_of(report, scenario, typical_point(report, scenario));
    if (config != NULL)
        config_each_param(config, take_origin, &(struct origin_search){ by_name });
    config_free(config);
    return by_name;
}

/* Rows with the same values are one. `rows`: struct used by path and values, which own their keys;
 * `paths`: the first row of each path. */
static void add_used(GHashTable *rows, GHashTable *paths, struct used *used)
{
    g_ptr_array_sort(used->values, by_value);
    g_autofree char *values = values_of(used);
    char *key = g_strconcat(used->name, "\n", used->provenance, "\n", values, NULL);
    struct used *same = g_hash_table_lookup(rows, key);
    if (same != NULL) {
        g_string_append_printf(same->scenarios, ", %s", used->scenarios->str);
        if (same->origin == NULL)
            same->origin = g_steal_pointer(&used->origin);
        free_used(used);
        g_free(key);
        return;
    }
    struct used *other = g_hash_table_lookup(paths, used->name);
    if (other != NULL)
        other->apart = used->apart = true;
    else
        g_hash_table_insert(paths, used->name, used);
    g_hash_table_insert(rows, key, used);
}

static void append_table(GString *html, const GPtrArray *all)
{
    report_wide(html, "Parameters");
    g_string_append(html, "<table><thead><tr><th scope=\"col\">parameter</th>"
                          "<th scope=\"col\" class=\"n\">value</th><th scope=\"col\">unit</th>"
                          "<th scope=\"col\">provenance</th><th scope=\"col\">written in, source"
                          "</th></tr></thead><tbody>\n");
    for (guint i = 0; i < all->len; i++) {
        const struct used *used = all->pdata[i];
        g_autofree char *values = values_of(used);
        html_add(html, "<tr><th scope=\"row\"><code>", used->name, "</code>",
                 used->apart ? " in " : "", "", used->apart ? used->scenarios->str : "",
                 "</th><td class=\"n\">", values, "</td><td>", used->unit, "</td><td>",
                 used->provenance, "</td><td>", used->origin != NULL ? used->origin : "",
                 "</td></tr>\n", NULL);
    }
    g_string_append(html, "</tbody></table></div>\n");
}

/* Paths, of which one with several values may have several provenances. */
static unsigned count(const GPtrArray *all, const char *provenance)
{
    unsigned n = 0;
    const char *last = "";
    for (guint i = 0; i < all->len; i++) {
        const struct used *used = all->pdata[i];
        if ((provenance != NULL && strcmp(used->provenance, provenance) != 0) ||
            strcmp(used->name, last) == 0)
            continue;
        last = used->name;
        n++;
    }
    return n;
}

void report_params(struct report *report, const struct report_paper *paper)
{
    g_autoptr(GHashTable) rows = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) paths = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(free_used);
    GHashTableIter iter;
    gpointer used;
    for (guint i = 0; i < paper->scenarios->len; i++) {
        g_autoptr(GHashTable) by_name = read_used(report, paper->scenarios->pdata[i]);
        g_hash_table_iter_init(&iter, by_name);
        while (g_hash_table_iter_next(&iter, NULL, &used)) {
            g_hash_table_iter_steal(&iter);
            add_used(rows, paths, used);
        }
    }
    g_hash_table_iter_init(&iter, rows);
    while (g_hash_table_iter_next(&iter, NULL, &used))
        g_ptr_array_add(all, used);
    g_ptr_array_sort(all, by_path);
    g_string_append_printf(report->html,
                           "<h3>Parameters</h3>\n<p>%u parameters: %u from data sheets, %u "
                           "published, %u calibrated, <strong>%u estimates</strong>.</p>\n",
                           count(all, NULL), count(all, "datasheet"), count(all, "published"),
                           count(all, "calibrated"), count(all, "estimate"));
    g_string_append(
        report->html,
        "<details class=\"parameters\"><summary>All parameters with provenance</summary>\n");
    append_table(report->html, all);
    g_string_append(report->html, "</details>\n");
}

/* ---- Versions -------------------------------------------------------------------------------- */

static char *day(int64_t utc)
{
    GDateTime *time = g_date_time_new_from_unix_utc(utc);
    char *text = g_date_time_format(time, "%Y-%m-%d %H:%M UTC");
    g_date_time_unref(time);
    return text;
}

static void append_runs(struct report *report)
{
    struct results_cursor *origins = results_origins(report->db);
    for (const struct results_origin *o; (o = results_next_origin(origins)) != NULL;) {
        g_autofree char *time = day(o->last_utc);
        g_autofree char *counts = g_strdup_printf("%" PRId64 " runs with %" PRId64 " seed(s)",
                                                  o->n_runs, o->n_seeds);
        html_add(report->html, "<tr><th scope=\"row\">Results</th><td>nudma ", o->version, ": ",
                 counts, ", on ", o->host, ", the last begun ", time, "</td></tr>\n", NULL);
    }
    cli_end(origins);
}

void report_versions(struct report *report)
{
    GString *html = report->html;
    g_autofree char *gnuplot = NULL;
    if (!report->drawing_failed)
        gnuplot = script_gnuplot("set print '-'\nprint sprintf('%.1f patchlevel %s', "
                                 "GPVAL_VERSION, GPVAL_PATCHLEVEL)\n");
    g_string_append(html, "<section aria-labelledby=\"versions\">\n<h2 id=\"versions\">Versions"
                          "</h2>\n");
    report_wide(html, "Versions");
    html_add(html, "<table><tbody>\n<tr><th scope=\"row\">This page</th><td>nudma ", sim_version(),
             ", compiler ", __VERSION__, "</td></tr>\n", NULL);
    append_runs(report);
    html_add(html, "<tr><th scope=\"row\">Tools</th><td>SQLite ", results_library(), ", gnuplot ",
             gnuplot != NULL ? g_strstrip(gnuplot) : "missing",
             "</td></tr>\n</tbody></table></div>\n</section>\n", NULL);
}
