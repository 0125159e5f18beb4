/* Points as rows, axes and metrics as columns; one value a line with all metrics. */
#include "cli/campaign/summary.h"
#include "cli/plot/plot_choice.h"
#include "cli/results/result_table.h"

/* Those of the plan. */
static void keep_points(struct result_set *set, const struct plan *plan,
                        const struct scenario *scenario)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; i < plan->points->len; i++) {
        const struct plan_point *point = plan_point(plan, i);
        if (point->scenario == scenario)
            g_ptr_array_add(names, (gpointer)plan_point_name(point));
    }
    g_ptr_array_add(names, NULL);
    result_set_keep_points(set, (const char *const *)names->pdata);
}

static bool is_numeric(const struct result_set *set, guint axis)
{
    bool numeric = true;
    for (guint i = 0; i < set->points->len && numeric; i++)
        numeric = cli_is_number(((const struct result_point *)set->points->pdata[i])->axis[axis]);
    return numeric;
}

static void print_all(const struct result_set *set)
{
    bool any_overtaken = false;
    struct cli_table *table = cli_table_new(NULL);
    for (guint a = 0; a < set->axes->len; a++)
        cli_table_column(table, set->axes->pdata[a], is_numeric(set, a));
    cli_table_column(table, "metric", false);
    cli_table_column(table, "value", true);
    cli_table_column(table, "unit", false);
    for (guint i = 0; i < set->points->len; i++) {
        const struct result_point *point = set->points->pdata[i];
        for (guint m = 0; m < set->metrics->len; m++) {
            if (point->values[m].n == 0)
                continue;
            g_autofree char *value = result_point_text(point, m);
            any_overtaken = any_overtaken || point->overtaken;
            for (guint a = 0; a < set->axes->len; a++)
                cli_table_cell(table, "%s", point->axis[a]);
            cli_table_cell(table, "%s", result_metric(set, m)->name);
            cli_table_cell(table, "%s", value);
            cli_table_cell(table, "%s", result_metric(set, m)->unit);
        }
    }
    cli_table_print(table, "", stdout);
    cli_table_free(table);
    if (any_overtaken)
        puts(RESULT_OVERTAKEN_TEXT);
}

/* True if anything is printed: without any run that is done there is no table to have a title. */
static bool print_scenario(const struct plan *plan, struct scenario *scenario,
                           struct results_db *db, bool all, bool first)
{
    const struct result_table_choice choice = { .width = cli_line_width(),
                                                .title = scenario_title(scenario),
                                                .with_valueless = true };
    struct sim_error_list errors = { 0 }; /* no axes are asked for, so none can be wrong */
    struct result_set *set = result_set_of(db, scenario_name(scenario), NULL);
    keep_points(set, plan, scenario);
    result_set_order_as(set, scenario);
    if (!all)
        plot_keep_metrics(set, scenario);
    const bool read = set->metrics->len > 0 && result_set_read(set, db); /* else it has said why */
    if (read && all) {
        printf("%s%s: %s\n", first ? "" : "\n", set->scenario, choice.title);
        print_all(set);
    } else if (read) {
        struct result_layout *layout = result_layout_new(set, &choice, &errors);
        result_layout_print(layout, first);
        result_layout_free(layout);
    }
    if (read)
        result_not_settled_print(set, db);
    result_set_free(set);
    return read;
}

void summary_print(const struct plan *plan, struct results_db *db, bool all)
{
    bool any = false;
    for (guint i = 0; i < plan->scenarios->len; i++)
        any = print_scenario(plan, plan->scenarios->pdata[i], db, all, !any) || any;
}
