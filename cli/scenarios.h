/* Which scenarios the arguments mean. */
#ifndef CLI_SCENARIOS_H
#define CLI_SCENARIOS_H

#include "cli/cli.h"
#include "sim/scenario.h"

/*
 * The names that the arguments mean, each once, in their order: a scenario's name, a folder of them
 * ("pcie_bench"), or a file; beginnings: or how names begin. Without arguments: all below the
 * roots. What is not there is left to scenario_load() to report. NULL-terminated; g_strfreev().
 */
char **cli_scenario_names(const struct cli_options *options, char **arguments, bool beginnings,
                          struct sim_error_list *errors);
/* All of them loaded (struct scenario, owned); mistakes in errors. */
GPtrArray *cli_load_scenarios(const struct cli_options *options, char **arguments,
                              const char *const *sets, struct sim_error_list *errors);

#endif
