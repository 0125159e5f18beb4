/* Which scenarios the arguments mean. */
#ifndef CLI_BASE_SCENARIOS_H
#define CLI_BASE_SCENARIOS_H

#include "cli/base/cli.h"
#include "sim/config/scenario.h"

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
/* All below the roots that can be loaded and of which the first point can be built; what is wrong
 * with the others goes to standard error, and their number to *n_broken. Errors: none are found, or
 * two of the same name. */
GPtrArray *cli_load_sound_scenarios(const struct cli_options *options, unsigned *n_broken,
                                    struct sim_error_list *errors);

#endif
