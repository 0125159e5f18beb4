/* Points as rows, axes and metrics as columns; one value a line with all metrics. */
#include <math.h>
#include <sqlite3.h>
#include <string.h>

#include "cli/plot_spec.h"
#include "cli/summary.h"

#define MAX_COLUMNS 6 /* metrics of a scenario that does not plot any */

struct column {
    char *metric, *unit;
};

static void clear_column(gpointer column)
{
    g_free(((struct column *)column)->metric);
    g_free(((struct column *)column)->unit);
}

/* Those of a model's instance have a prefix; intervals stand beside what they belong to. */
static bool is_main_metric(const char *metric)
{
    return strchr(metric, '.') == NULL;
}

static GArray *stored_columns(struct results_db *db, const char *scenario, bool all)
{
    static const char sql[] = "SELECT DISTINCT q.name, q.unit FROM newest w"
                              " JOIN metric_row m ON m.run_id = w.run_id"
                              " JOIN quantity q ON q.id = m.quantity_id WHERE w.scenario_id ="
                              " (SELECT id FROM label WHERE text = ?1) ORDER BY q.id";
    GArray *columns = g_array_new(FALSE, FALSE, sizeof(struct column));
    g_array_set_clear_func(columns, clear_column);
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(results_handle(db), sql, -1, &statement, NULL) != SQLITE_OK)
        return columns;
    sqlite3_bind_text(statement, 1, scenario, -1, SQLITE_STATIC);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        const struct column column = { g_strdup(name),
                                       g_strdup((const char *)sqlite3_column_text(statement, 1)) };
        if (g_str_has_suffix(name, ".ci95") || (!all && !is_main_metric(name)))
            clear_column((gpointer)&column);
        else
            g_array_append_val(columns, column);
    }
    sqlite3_finalize(statement);
    return columns;
}

/* What the scenario plots, else the first few. */
static void choose(GArray *columns, struct scenario *scenario)
{
    struct sim_error_list errors = { 0 };
    struct plot_figure figure;
    bool any = false;
    const bool plots = plot_figure_read(scenario, &figure, &errors);
    for (guint i = 0; plots && i < columns->len; i++)
        any = any || plot_figure_shows(&figure, g_array_index(columns, struct column, i).metric);
    for (guint i = columns->len; any && i-- > 0;) {
        if (!plot_figure_shows(&figure, g_array_index(columns, struct column, i).metric))
            g_array_remove_index(columns, i);
    }
    if (columns->len > MAX_COLUMNS)
        g_array_set_size(columns, MAX_COLUMNS);
    plot_figure_release(&figure);
    sim_error_release(&errors);
}

static sqlite3_stmt *prepare_value(struct results_db *db)
{
    sqlite3_stmt *statement = NULL;
    sqlite3_prepare_v2(results_handle(db),
                       "SELECT mean, ci95, n FROM result WHERE scenario = ?1 AND point = ?2"
                       " AND metric = ?3 AND unit = ?4",
                       -1, &statement, NULL);
    return statement;
}

/* "552.4 ±1.2"; the interval with two digits, as more mean nothing. */
static char *value_text(sqlite3_stmt *statement, const char *scenario, const char *point,
                        const struct column *column)
{
    char mean[32], *text = NULL;
    sqlite3_reset(statement);
    sqlite3_bind_text(statement, 1, scenario, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, point, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 3, column->metric, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 4, column->unit, -1, SQLITE_STATIC);
    if (sqlite3_step(statement) != SQLITE_ROW)
        return g_strdup("-");
    cli_number(sqlite3_column_double(statement, 0), mean);
    const double ci = sqlite3_column_double(statement, 1); /* NULL reads as 0 */
    /* what rounds to nothing beside the mean is noise of the arithmetic */
    if (ci > 1e-9 * fabs(sqlite3_column_double(statement, 0)))
        text = g_strdup_printf("%s +-%.2g", mean, ci);
    sqlite3_reset(statement);
    return text != NULL ? text : g_strdup(mean);
}

static struct cli_table *new_table(const struct scenario *scenario)
{
    struct cli_table *table = cli_table_new();
    for (size_t i = 0; i < scenario_n_axes(scenario); i++)
        cli_table_column(table, scenario_axis_name(scenario, i), false);
    return table;
}

static void axis_cells(struct cli_table *table, const struct plan_point *point)
{
    const struct scenario *scenario = point->scenario;
    for (size_t i = 0; i < scenario_n_axes(scenario); i++) {
        const size_t value = scenario_point_value(scenario, point->index, i);
        cli_table_cell(table, "%s", scenario_axis_value(scenario, i, value));
    }
}

static void print_rows(const struct plan *plan, const struct scenario *scenario,
                       const GArray *columns, sqlite3_stmt *statement, bool all)
{
    struct cli_table *table = new_table(scenario);
    for (guint c = 0; !all && c < columns->len; c++) {
        const struct column *column = &g_array_index(columns, struct column, c);
        char *title = g_strdup_printf("%s [%s]", column->metric, column->unit);
        cli_table_column(table, title, true);
        g_free(title);
    }
    if (all) {
        cli_table_column(table, "metric", false);
        cli_table_column(table, "value", true);
        cli_table_column(table, "unit", false);
    }
    for (guint i = 0; i < plan->points->len; i++) {
        const struct plan_point *point = plan_point(plan, i);
        if (point->scenario != scenario)
            continue;
        if (!all)
            axis_cells(table, point);
        for (guint c = 0; c < columns->len; c++) {
            const struct column *column = &g_array_index(columns, struct column, c);
            char *value = value_text(statement, scenario_name(scenario), plan_point_name(point),
                                     column);
            const bool skip = all && strcmp(value, "-") == 0;
            if (all && !skip) {
                axis_cells(table, point);
                cli_table_cell(table, "%s", column->metric);
            }
            if (!skip)
                cli_table_cell(table, "%s", value);
            if (all && !skip)
                cli_table_cell(table, "%s", column->unit);
            g_free(value);
        }
    }
    cli_table_print(table, "", stdout);
    cli_table_free(table);
}

void summary_print(const struct plan *plan, struct results_db *db, bool all)
{
    sqlite3_stmt *statement = prepare_value(db);
    for (guint i = 0; i < plan->scenarios->len; i++) {
        struct scenario *scenario = plan->scenarios->pdata[i];
        GArray *columns = stored_columns(db, scenario_name(scenario), all);
        if (!all)
            choose(columns, scenario);
        printf("%s%s: %s\n", i > 0 ? "\n" : "", scenario_name(scenario), scenario_title(scenario));
        print_rows(plan, scenario, columns, statement, all);
        g_array_free(columns, TRUE);
    }
    sqlite3_finalize(statement);
}
