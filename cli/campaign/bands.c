/* nudma run --bands: points again, with each unconstrained value at both ends of its range. */
#include <math.h>
#include <string.h>

#include "cli/campaign/bands.h"
#include "cli/plot/plot_choice.h"
#include "workloads/experiment.h"

/* A key with its range, and where it stands: "p2p_reads_max", in two hosts. */
struct band {
    char *key, *end[2];
    GPtrArray *paths; /* char *, owned */
};

static void free_band(gpointer pointer)
{
    struct band *band = pointer;
    g_free(band->key);
    g_free(band->end[0]);
    g_free(band->end[1]);
    g_ptr_array_free(band->paths, TRUE);
    g_free(band);
}

static void take_band(void *context, const char *path, const char *lo, const char *hi)
{
    GPtrArray *bands = context;
    const char *dot = strrchr(path, '.'), *key = dot != NULL ? dot + 1 : path;
    struct band *band = NULL;
    for (guint i = 0; i < bands->len && band == NULL; i++) {
        struct band *other = bands->pdata[i];
        if (strcmp(other->key, key) == 0 && strcmp(other->end[0], lo) == 0 &&
            strcmp(other->end[1], hi) == 0)
            band = other;
    }
    if (band == NULL) {
        band = g_new0(struct band, 1);
        band->key = g_strdup(key);
        band->end[0] = g_strdup(lo);
        band->end[1] = g_strdup(hi);
        band->paths = g_ptr_array_new_with_free_func(g_free);
        g_ptr_array_add(bands, band);
    }
    g_ptr_array_add(band->paths, g_strdup(path));
}

/* The bands of a point; owned. */
static GPtrArray *bands_of(const struct plan_point *point, struct sim_error_list *errors)
{
    GPtrArray *bands = g_ptr_array_new_with_free_func(free_band);
    struct config *config = scenario_point(point->scenario, point->index, errors);
    if (config != NULL && experiment_check(config, errors))
        config_each_band(config, take_band, bands);
    config_free(config);
    return bands;
}

static void add_variant(struct plan *plan, const struct plan_point *base, const struct band *band,
                        unsigned end, const struct cli_options *options, const char *const *sets,
                        struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    g_autoptr(GPtrArray) own = g_ptr_array_new_with_free_func(g_free);
    for (size_t i = 0; sets != NULL && sets[i] != NULL; i++)
        g_ptr_array_add(all, (gpointer)(uintptr_t)sets[i]);
    for (guint i = 0; i < band->paths->len; i++) {
        char *set = g_strdup_printf("%s=%s", (char *)band->paths->pdata[i], band->end[end]);
        g_ptr_array_add(own, set);
        g_ptr_array_add(all, set);
    }
    g_ptr_array_add(all, NULL);
    const char *name = scenario_has_root(base->scenario) ? scenario_name(base->scenario)
                                                         : scenario_path(base->scenario);
    struct plan_point point = { .index = base->index };
    point.scenario = scenario_load(name, (const char *const *)options->roots,
                                   (const char *const *)all->pdata, errors);
    if (point.scenario == NULL)
        return;
    g_autofree char *variant = g_strdup_printf("%s=%s", band->key, band->end[end]);
    point.stored_as = results_variant_name(scenario_point_name(base->scenario, base->index),
                                           variant);
    plan_add_point(plan, &point);
}

bool bands_plan(struct plan *plan, const struct cli_options *options, const char *const *sets,
                bool is_part, struct sim_error_list *errors)
{
    const guint n = plan->points->len;
    const size_t before = errors->n_messages;
    for (guint i = 0; i < n && errors->n_messages == before; i++) {
        const struct plan_point base = *plan_point(plan, i); /* the array moves */
        g_autoptr(GPtrArray) bands = bands_of(&base, errors);
        for (guint k = 0; k < bands->len; k++)
            for (unsigned end = 0; end < 2; end++)
                add_variant(plan, &base, bands->pdata[k], end, options, sets, errors);
    }
    if (errors->n_messages == before && plan->points->len == n && !is_part)
        sim_error_add(errors, NULL, 0,
                      "--bands: no value of these scenarios has a range (a setting says "
                      "{ value = 32; range = [16, 64]; })");
    return errors->n_messages == before;
}

/* ---- What came out --------------------------------------------------------------------------- */

struct spread {
    double value, end[2];
    const char *at[2]; /* the variant; NULL: the value itself */
};

static double value_of(struct results_db *db, const char *scenario, const char *point,
                       const char *metric)
{
    g_autofree char *message = NULL;
    g_autofree char *sql = g_strdup_printf("v('%s','%s','%s')", scenario, point, metric);
    double value = (double)NAN;
    return results_evaluate(db, sql, &value, &message) ? value : (double)NAN;
}

static struct spread spread_of(const struct plan *plan, const struct plan_point *base,
                               struct results_db *db, const char *metric)
{
    const char *scenario = scenario_name(base->scenario), *name = plan_point_name(base);
    g_autofree char *stem = results_variant_name(name, "");
    struct spread spread = { .value = value_of(db, scenario, name, metric) };
    spread.end[0] = spread.end[1] = spread.value;
    for (guint i = 0; i < plan->points->len; i++) {
        const struct plan_point *point = plan_point(plan, i);
        if (point->stored_as == NULL || !g_str_has_prefix(point->stored_as, stem) ||
            strcmp(scenario_name(point->scenario), scenario) != 0)
            continue;
        const double value = value_of(db, scenario, point->stored_as, metric);
        if (value < spread.end[0]) {
            spread.end[0] = value;
            spread.at[0] = point->stored_as + strlen(stem);
        }
        if (value > spread.end[1]) {
            spread.end[1] = value;
            spread.at[1] = point->stored_as + strlen(stem);
        }
    }
    return spread;
}

static void print_spread(struct cli_table *table, const struct plan_point *base, const char *metric,
                         const struct spread *spread)
{
    char number[32];
    cli_table_cell(table, "%s", plan_point_name(base));
    cli_table_cell(table, "%s", metric);
    cli_table_cell(table, "%s", cli_number(spread->value, number));
    for (unsigned i = 0; i < 2; i++) {
        cli_table_cell(table, "%s", cli_number(spread->end[i], number));
        cli_table_cell(table, "%s", spread->at[i] != NULL ? spread->at[i] : "-");
    }
}

void bands_print(const struct plan *plan, struct results_db *db)
{
    for (guint s = 0; s < plan->scenarios->len; s++) {
        struct scenario *scenario = plan->scenarios->pdata[s];
        struct cli_table *table = cli_table_new("point|metric|>value|>lowest|at|>highest|at");
        bool any = false;
        struct result_set *set = result_set_of(db, scenario_name(scenario), NULL);
        plot_keep_metrics(set, scenario);
        for (guint i = 0; i < plan->points->len; i++) {
            const struct plan_point *point = plan_point(plan, i);
            if (point->scenario != scenario || point->stored_as != NULL)
                continue;
            for (guint m = 0; m < set->metrics->len; m++) {
                const char *metric = result_metric(set, m)->name;
                const struct spread spread = spread_of(plan, point, db, metric);
                print_spread(table, point, metric, &spread);
                any = true;
            }
        }
        if (any) {
            printf("%s: %s\n", scenario_name(scenario), scenario_title(scenario));
            cli_table_print(table, "", stdout);
        }
        cli_table_free(table);
        result_set_free(set);
    }
}
