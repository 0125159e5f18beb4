/* nudma results: what is in the database as tables. */
#include <inttypes.h>

#include "cli/base/scenarios.h"
#include "cli/plot/plot_choice.h"
#include "cli/results/result_older.h"
#include "cli/results/result_table.h"

struct results_request {
    struct cli_options options;
    char **metrics, **filters;
    struct result_table_choice table;
};

static void free_layout(gpointer layout)
{
    result_layout_free(layout);
}

#define FAILURES_SHOWN 20

/* Why points have no results, or older ones. */
static bool print_failures(struct results_db *db, const char *scenario)
{
    unsigned n = 0;
    struct results_cursor *cursor = results_failures(db, scenario);
    for (const struct results_quantity *row; (row = results_next_quantity(cursor)) != NULL; n++)
        if (n < FAILURES_SHOWN)
            printf("failed: %s%s%s: %s\n", scenario, *row->name != '\0' ? " " : "", row->name,
                   row->unit);
    if (n > FAILURES_SHOWN)
        printf("and %u points more\n", n - FAILURES_SHOWN);
    return cli_end(cursor);
}

/* Below its tables. */
static bool print_remarks(struct results_db *db, const char *scenario, char **roots)
{
    g_autofree char *changes = result_changes(db, scenario);
    if (changes != NULL)
        printf("changed by %s\n", changes);
    g_autofree char *sampled = result_sampled(db, scenario);
    if (sampled != NULL)
        printf("sampled: %s\n", sampled);
    g_autofree char *older = result_older_by_name(db, scenario, roots);
    if (older != NULL)
        printf("of an older text of the scenario: %s\n", older);
    return print_failures(db, scenario);
}

/* As the scenario has them if it can be found. */
static void order_and_choose(struct result_set *set, const struct results_request *request)
{
    struct sim_error_list errors = { 0 };
    struct scenario *scenario =
        scenario_load(set->scenario, (const char *const *)request->options.roots, NULL, &errors);
    if (scenario != NULL)
        result_set_order_as(set, scenario);
    if (request->metrics == NULL)
        plot_keep_metrics(set, scenario);
    scenario_free(scenario);
    sim_error_release(&errors);
}

static int print_results(struct results_request *request, struct results_db *db)
{
    cli_name_scenario_files(&request->options);
    g_autoptr(GPtrArray) failed = g_ptr_array_new_with_free_func(g_free);
    const struct result_choice choice = { request->options.arguments, request->metrics,
                                          request->filters, failed };
    struct sim_error_list errors = { 0 };
    g_autoptr(GPtrArray) sets = result_sets_find(db, &choice, &errors);
    if (results_failed(db)) {
        cli_report(&errors);
        return CLI_FAILED;
    }
    int status = CLI_DONE;
    g_autoptr(GPtrArray) layouts = g_ptr_array_new_with_free_func(free_layout);
    for (guint i = 0; i < sets->len; i++) {
        struct result_set *set = sets->pdata[i];
        order_and_choose(set, request);
        g_ptr_array_add(layouts, result_layout_new(set, &request->table, &errors));
    }
    for (guint i = 0; errors.n_messages == 0 && status == CLI_DONE && i < layouts->len; i++) {
        const struct result_set *set = sets->pdata[i];
        const bool read = result_set_read(sets->pdata[i], db);
        if (read)
            result_layout_print(layouts->pdata[i], i == 0);
        if (!read || !result_not_settled_print(set, db) ||
            !print_remarks(db, set->scenario, request->options.roots))
            status = CLI_FAILED;
    }
    for (guint i = 0; errors.n_messages == 0 && i < failed->len; i++) {
        print_failures(db, failed->pdata[i]);
        fprintf(stderr, "%s: no results: all runs have failed\n", (const char *)failed->pdata[i]);
        status = CLI_FAILED;
    }
    if (errors.n_messages > 0)
        status = CLI_WRONG;
    cli_report(&errors);
    return status;
}

/* ---- What there is --------------------------------------------------------------------------- */

static int print_overview(struct results_db *db)
{
    struct cli_table *table = cli_table_new("scenario|>points|>seeds|>done|>failed|last run (UTC)");
    g_autoptr(GPtrArray) failed = g_ptr_array_new_with_free_func(g_free);
    struct results_cursor *cursor = results_overviews(db);
    for (const struct results_overview *row; (row = results_next_overview(cursor)) != NULL;) {
        const int64_t numbers[] = { row->n_points, row->n_seeds, row->n_done, row->n_failed };
        cli_table_cell(table, "%s", row->scenario);
        for (size_t i = 0; i < SIM_N_ELEMENTS(numbers); i++)
            cli_table_cell(table, "%" PRId64, numbers[i]);
        cli_table_cell(table, "%s", row->last_utc);
        if (row->n_failed > 0)
            g_ptr_array_add(failed, g_strdup(row->scenario));
    }
    bool good = cli_end(cursor);
    if (good)
        cli_table_print(table, "", stdout);
    cli_table_free(table);
    for (guint i = 0; good && i < failed->len; i++)
        good = print_failures(db, failed->pdata[i]);
    return good ? CLI_DONE : CLI_FAILED;
}

/* ---- The command ----------------------------------------------------------------------------- */

static int show(struct results_request *request)
{
    if (request->table.width < -1) {
        fprintf(stderr, "nudma results: --width %d: expected 0 or more\n", request->table.width);
        return CLI_WRONG;
    }
    if (request->table.width < 0)
        request->table.width = cli_line_width();
    struct results_db *db = cli_open_for_reading(&request->options);
    if (db == NULL)
        return CLI_FAILED;
    const bool overview = *request->options.arguments == NULL && request->metrics == NULL &&
                          request->filters == NULL && request->table.rows == NULL &&
                          request->table.columns == NULL;
    int status = CLI_FAILED;
    if (cli_snapshot(db))
        status = overview ? print_overview(db) : print_results(request, db);
    if (results_failed(db))
        status = CLI_FAILED;
    results_close(db);
    return status;
}

int cli_results(int argc, char **argv)
{
    struct results_request request = { .table = { .width = -1 } };
    const GOptionEntry entries[] = {
        { "metric", 'm', 0, G_OPTION_ARG_STRING_ARRAY, &request.metrics,
          "Only these; with * and ? (again for more; default: what the scenario plots)", "NAME" },
        { "filter", 'f', 0, G_OPTION_ARG_STRING_ARRAY, &request.filters,
          "Only points that meet all conditions: 'op=read transfer_bytes>64'", "CONDITION" },
        { "rows", 0, 0, G_OPTION_ARG_STRING_ARRAY, &request.table.rows,
          "Axes that make rows: op,cache; \"metric\" is one too (default: all the others)",
          "AXES" },
        { "columns", 0, 0, G_OPTION_ARG_STRING_ARRAY, &request.table.columns,
          "Axes that make columns (default: the metrics only)", "AXES" },
        { "width", 0, 0, G_OPTION_ARG_INT, &request.table.width,
          "Columns of text a line; 0: no end (default: the terminal's, no end elsewhere)", "N" },
        { .long_name = NULL },
    };
    int status = CLI_DONE;
    if (cli_parse(
            &request.options, "[SCENARIO...]", "Shows results as tables.",
            "SCENARIO is a name, a folder of names, or has wildcards: 'pcie_bench/*'. Without "
            "anything: which\nscenarios there are. Values are means over seeds, with the 95 % "
            "confidence interval where it is known.\nAxes that are neither rows nor columns, "
            "where both are given, make a table for each of their values.",
            entries, argc, argv, &status))
        status = show(&request);
    cli_options_release(&request.options);
    g_strfreev(request.metrics);
    g_strfreev(request.filters);
    g_strfreev(request.table.rows);
    g_strfreev(request.table.columns);
    return status;
}
