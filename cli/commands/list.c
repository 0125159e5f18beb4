/* nudma list: the scenarios below the roots. */
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/scenarios.h"

int cli_list(int argc, char **argv)
{
    struct cli_options options = { 0 };
    int status = CLI_DONE;
    if (cli_parse(&options, "[NAME...]", "Lists scenarios with their titles and number of points.",
                  "NAME: a scenario, or the beginning of names: a folder (pcie_bench). Without: "
                  "all.",
                  NULL, argc, argv, &status)) {
        struct sim_error_list errors = { 0 };
        char **names = cli_scenario_names(&options, options.arguments, true, &errors);
        unsigned n_listed = 0;
        struct cli_table *table = cli_table_new("scenario|>points|title");
        for (char **name = names; *name != NULL; name++) {
            struct scenario *scenario = scenario_load(*name, (const char *const *)options.roots,
                                                      NULL, &errors);
            if (scenario == NULL)
                continue;
            n_listed++;
            cli_table_cell(table, "%s", scenario_name(scenario));
            cli_table_cell(table, "%zu", scenario_n_points(scenario));
            cli_table_cell(table, "%s", scenario_title(scenario));
            scenario_free(scenario);
        }
        if (n_listed > 0)
            cli_table_print(table, "", stdout);
        cli_table_free(table);
        g_strfreev(names);
        status = errors.n_messages == 0 ? CLI_DONE : CLI_WRONG;
        cli_report(&errors);
    }
    cli_options_release(&options);
    return status;
}
