/* Why a claim has no value: which name in its expression the database does not know. */
#include <string.h>

#include "cli/base/point_name.h"
#include "cli/claims/claims.h"

static void add_name(GPtrArray *names, const char *name)
{
    if (!g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL))
        g_ptr_array_add(names, g_strdup(name));
}

/* Owned, each once, NULL-terminated by suggestion(). */
static GPtrArray *names_new(void)
{
    return g_ptr_array_new_with_free_func(g_free);
}

/* "; did you mean "y"?", or ""; g_free(). */
static char *suggestion(const char *found, GPtrArray *names)
{
    g_ptr_array_add(names, NULL);
    g_autofree char *text = sim_suggestion(found, (const char *const *)names->pdata);
    return g_strconcat(*text != '\0' ? "; " : "", text, NULL);
}

static GPtrArray *names_of(struct results_cursor *cursor)
{
    GPtrArray *names = names_new();
    for (const char *name; (name = results_next_name(cursor)) != NULL;)
        g_ptr_array_add(names, g_strdup(name));
    cli_end(cursor);
    return names;
}

/* ---- Points ---------------------------------------------------------------------------------- */

/* Whether both have the same values, in any order of the axes. */
static bool same_point(char **a, char **b)
{
    bool same = g_strv_length(a) == g_strv_length(b);
    for (char **x = a; same && *x != NULL; x += 2) {
        bool found = false;
        for (char **y = b; *y != NULL; y += 2)
            found = found || (strcmp(x[0], y[0]) == 0 && strcmp(x[1], y[1]) == 0);
        same = found;
    }
    return same;
}

/* The axis, or the value of one, that no point has; NULL: each is there by itself. g_free(). */
static char *unknown_part(const char *scenario, char **asked, const GPtrArray *points)
{
    for (char **pair = asked; *pair != NULL; pair += 2) {
        g_autoptr(GPtrArray) axes = names_new();
        g_autoptr(GPtrArray) values = names_new();
        for (guint i = 0; i < points->len; i++) {
            g_auto(GStrv) split = point_split(points->pdata[i]);
            for (char **other = split; *other != NULL; other += 2) {
                add_name(axes, other[0]);
                if (strcmp(other[0], pair[0]) == 0)
                    add_name(values, other[1]);
            }
        }
        const bool no_axis = values->len == 0;
        if (!no_axis && g_ptr_array_find_with_equal_func(values, pair[1], g_str_equal, NULL))
            continue;
        g_autofree char *hint = suggestion(pair[no_axis ? 0 : 1], no_axis ? axes : values);
        return no_axis
                   ? g_strdup_printf("no point of %s has an axis \"%s\"%s", scenario, pair[0], hint)
                   : g_strdup_printf("no point of %s has %s=%s%s", scenario, pair[0], pair[1],
                                     hint);
    }
    return NULL;
}

/* NULL: it is there, or only not run. */
static char *missing_point(struct results_db *db, const struct claim_reference *r,
                           const struct scenario *scenario)
{
    g_autoptr(GPtrArray) points = names_of(results_points(db, r->scenario));
    if (g_ptr_array_find_with_equal_func(points, r->point, g_str_equal, NULL))
        return NULL;
    for (size_t i = 0; scenario != NULL && i < scenario_n_points(scenario); i++)
        if (strcmp(scenario_point_name(scenario, i), r->point) == 0)
            return NULL;
    g_auto(GStrv) asked = point_split(r->point);
    for (guint i = 0; i < points->len; i++) {
        g_auto(GStrv) other = point_split(points->pdata[i]);
        if (same_point(asked, other))
            return g_strdup_printf("%s has no point \"%s\"; did you mean \"%s\"?", r->scenario,
                                   r->point, (const char *)points->pdata[i]);
    }
    char *part = unknown_part(r->scenario, asked, points);
    return part != NULL ? part
                        : g_strdup_printf("no results of %s at \"%s\", but at \"%s\"", r->scenario,
                                          r->point, (const char *)points->pdata[0]);
}

/* ---- All three ------------------------------------------------------------------------------- */

/* NULL: the scenario records it. */
static char *missing_metric(struct results_db *db, const struct claim_reference *r)
{
    g_autoptr(GPtrArray) names = names_new();
    struct results_cursor *cursor = results_quantities(db, r->scenario);
    for (const struct results_quantity *q; (q = results_next_quantity(cursor)) != NULL;)
        add_name(names, q->name);
    cli_end(cursor);
    if (g_ptr_array_find_with_equal_func(names, r->metric, g_str_equal, NULL))
        return NULL;
    g_autofree char *hint = suggestion(r->metric, names);
    return g_strdup_printf("%s records no metric \"%s\"%s", r->scenario, r->metric, hint);
}

/* Of a scenario without results. NULL: it has a file, so that only its runs are missing. */
static char *missing_scenario(struct results_db *db, const struct claim_reference *r,
                              const struct scenario *scenario)
{
    if (scenario != NULL)
        return NULL;
    g_autoptr(GPtrArray) scenarios = names_of(results_scenarios(db));
    g_autofree char *hint = suggestion(r->scenario, scenarios);
    return g_strdup_printf("no results of a scenario \"%s\"%s", r->scenario, hint);
}

static void free_scenario(gpointer scenario)
{
    scenario_free(scenario);
}

GHashTable *claim_scenarios_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_scenario);
}

/* NULL: there is none of this name, or it cannot be read. */
static struct scenario *load_once(GHashTable *scenarios, const struct cli_options *options,
                                  const char *name)
{
    gpointer scenario = NULL;
    if (g_str_has_suffix(name, ".cfg")) /* results have a name without */
        return NULL;
    if (!g_hash_table_lookup_extended(scenarios, name, NULL, &scenario)) {
        struct sim_error_list ignored = { 0 };
        scenario = scenario_load(name, (const char *const *)options->roots, NULL, &ignored);
        g_hash_table_insert(scenarios, g_strdup(name), scenario);
        sim_error_release(&ignored);
    }
    return scenario;
}

bool claim_scenario_has_results(struct results_db *db, const char *scenario)
{
    struct results_cursor *cursor = results_points(db, scenario);
    const bool any = results_next_name(cursor) != NULL;
    cli_end(cursor);
    return any;
}

/* NULL: none of the point has failed for good. */
static char *failed_run(struct results_db *db, const struct claim_reference *r)
{
    char *message = NULL;
    struct results_cursor *cursor = results_failures(db, r->scenario);
    for (const struct results_quantity *row; (row = results_next_quantity(cursor)) != NULL;) {
        if (message == NULL && strcmp(row->name, r->point) == 0)
            message = g_strdup_printf("%s %s failed: %s", r->scenario, r->point, row->unit);
    }
    cli_end(cursor);
    return message;
}

char *claim_missing_name(const struct claim *claim, const struct cli_options *options,
                         GHashTable *scenarios, struct results_db *db)
{
    g_autoptr(GArray) references = claim_references(claim);
    char *message = NULL;
    for (guint i = 0; i < references->len && message == NULL; i++) {
        const struct claim_reference *r = &g_array_index(references, struct claim_reference, i);
        const struct scenario *scenario = load_once(scenarios, options, r->scenario);
        if ((message = failed_run(db, r)) != NULL)
            continue;
        if (!claim_scenario_has_results(db, r->scenario))
            message = claim->has_scenario ? NULL : missing_scenario(db, r, scenario);
        else if ((message = missing_point(db, r, scenario)) == NULL)
            message = missing_metric(db, r);
    }
    return message;
}
