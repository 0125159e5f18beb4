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

/* The first point stands for the scenario: axes change settings, seldom what is plugged in. */
static struct config *first_point(struct report *report, struct scenario *scenario)
{
    struct config *config = scenario_point(scenario, 0, &report->errors);
    if (config != NULL && !experiment_check(config, &report->errors))
        g_clear_pointer(&config, config_free);
    return config;
}

struct drawn {
    char *text; /* all of it: the sentence leaves out what is alike */
    struct topology *topology;
    GString *names; /* of the scenarios that have it */
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
static void add_topology(GPtrArray *all, struct topology *topology, const char *name)
{
    if (topology->hosts->len + topology->devices->len == 0) {
        topology_free(topology);
        return;
    }
    char *text = topology_text(topology);
    for (guint i = 0; i < all->len; i++) {
        struct drawn *drawn = all->pdata[i];
        if (strcmp(drawn->text, text) == 0) {
            g_string_append_printf(drawn->names, ", %s", name);
            g_free(text);
            topology_free(topology);
            return;
        }
    }
    struct drawn *drawn = g_new0(struct drawn, 1);
    drawn->text = text;
    drawn->topology = topology;
    drawn->names = g_string_new(name);
    g_ptr_array_add(all, drawn);
}

void report_setup(struct report *report, const struct report_paper *paper)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(free_drawn);
    for (guint i = 0; i < paper->scenarios->len; i++) {
        struct scenario *scenario = paper->scenarios->pdata[i];
        struct config *config = first_point(report, scenario);
        struct topology *topology = config != NULL ? topology_new(config, &report->errors) : NULL;
        if (topology != NULL)
            add_topology(all, topology, scenario_name(scenario));
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
        if (all->len > 1)
            html_add(report->html, "<figcaption>Of ", drawn->names->str, "</figcaption>\n", NULL);
        g_string_append(report->html, "</figure></div>\n");
    }
}

/* ---- Parameters ------------------------------------------------------------------------------ */

/* A parameter over all runs of a paper. */
struct used {
    char *name, *unit, *provenance, *origin;
    GString *values; /* the different ones */
    unsigned n_values;
};

static void free_used(gpointer pointer)
{
    struct used *used = pointer;
    g_free(used->name);
    g_free(used->unit);
    g_free(used->provenance);
    g_free(used->origin);
    g_string_free(used->values, TRUE);
    g_free(used);
}

static int by_path(gconstpointer a, gconstpointer b)
{
    return strverscmp((*(const struct used *const *)a)->name,
                      (*(const struct used *const *)b)->name);
}

static bool has_value(const struct used *used, const char *value)
{
    g_auto(GStrv) values = g_strsplit(used->values->str, ", ", -1);
    return g_strv_contains((const char *const *)values, value);
}

/* Where the value is written, and its source; told apart by the value, as runs may have changed it.
 */
struct origin_search {
    GHashTable *by_name;
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

static void read_used(struct report *report, GHashTable *by_name, const char *scenario)
{
    struct results_cursor *params = results_params_used(report->db, scenario);
    for (const struct results_param *p; (p = results_next_param(params)) != NULL;) {
        struct used *used = g_hash_table_lookup(by_name, p->name);
        if (used == NULL) {
            used = g_new0(struct used, 1);
            used->name = g_strdup(p->name);
            used->unit = g_strdup(p->unit);
            used->provenance = g_strdup(p->provenance);
            used->values = g_string_new(p->value);
            g_hash_table_insert(by_name, used->name, used);
        } else if (!has_value(used, p->value)) {
            g_string_append_printf(used->values, ", %s", p->value);
        }
    }
    cli_end(params);
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
        html_add(html, "<tr><th scope=\"row\"><code>", used->name, "</code></th><td class=\"n\">",
                 used->values->str, "</td><td>", used->unit, "</td><td>", used->provenance,
                 "</td><td>", used->origin != NULL ? used->origin : "", "</td></tr>\n", NULL);
    }
    g_string_append(html, "</tbody></table></div>\n");
}

static unsigned count(const GPtrArray *all, const char *provenance)
{
    unsigned n = 0;
    for (guint i = 0; i < all->len; i++)
        n += strcmp(((const struct used *)all->pdata[i])->provenance, provenance) == 0;
    return n;
}

void report_params(struct report *report, const struct report_paper *paper)
{
    g_autoptr(GHashTable) by_name = g_hash_table_new(g_str_hash, g_str_equal);
    struct origin_search search = { by_name };
    for (guint i = 0; i < paper->scenarios->len; i++)
        read_used(report, by_name, scenario_name(paper->scenarios->pdata[i]));
    for (guint i = 0; i < paper->scenarios->len; i++) {
        struct config *config = first_point(report, paper->scenarios->pdata[i]);
        if (config != NULL)
            config_each_param(config, take_origin, &search);
        config_free(config);
    }
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(free_used);
    GHashTableIter iter;
    gpointer used;
    g_hash_table_iter_init(&iter, by_name);
    while (g_hash_table_iter_next(&iter, NULL, &used))
        g_ptr_array_add(all, used);
    g_ptr_array_sort(all, by_path);
    g_string_append_printf(report->html,
                           "<h3>Parameters</h3>\n<p>%u parameters: %u from data sheets, %u "
                           "published, %u calibrated, <strong>%u estimates</strong>.</p>\n",
                           all->len, count(all, "datasheet"), count(all, "published"),
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
