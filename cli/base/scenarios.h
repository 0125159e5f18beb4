/* Which scenarios the arguments mean. */
#ifndef CLI_BASE_SCENARIOS_H
#define CLI_BASE_SCENARIOS_H

#include "cli/base/cli.h"
#include "sim/config/scenario.h"

/*
 * The scenarios that the arguments name, each once, in their order. An argument is the name of a
 * scenario, a folder of scenarios ("pcie_bench") or a file; with `beginnings` also the beginning of
 * names. Without arguments: all below the roots. Names that do not exist are returned too:
 * scenario_load() reports them; folders of files that are none of names are mistakes.
 * NULL-terminated; g_strfreev().
 */
char **cli_scenario_names(const struct cli_options *options, char **arguments, bool beginnings,
                          struct sim_error_list *errors);
/* Replaces arguments that are files of scenarios by the names under which their results are
 * stored. */
void cli_name_scenario_files(struct cli_options *options);
/* The names of the files root/folder/NAME.cfg of all roots, sorted, NULL-terminated;
 * g_strfreev(). */
char **cli_names_in(const struct cli_options *options, const char *folder);
/* The platform of that name is one machine, which a host includes. One that cannot be read counts
 * as one: whoever uses it hears why. */
bool cli_is_machine(const struct cli_options *options, const char *name);
/* The names of those platforms that are one machine, which a host includes; the others are whole
 * set-ups of hosts and devices. The same. */
char **cli_machine_names(const struct cli_options *options);
/* The names of up to `most` scenarios that name the file; the same, without order. */
char **cli_scenarios_that_name(const struct cli_options *options, const char *file, unsigned most);
/* An empty array of struct scenario, which it owns. */
GPtrArray *cli_scenario_array(void);
/* All of them loaded (struct scenario, owned); mistakes in errors. */
GPtrArray *cli_load_scenarios(const struct cli_options *options, char **arguments,
                              const char *const *sets, struct sim_error_list *errors);
/* Loads all scenarios below the roots whose first point can be built. Mistakes in the others are
 * printed to standard error, and *n_broken is their number. errors: there are no scenarios, or two
 * have the same name. */
GPtrArray *cli_load_sound_scenarios(const struct cli_options *options, unsigned *n_broken,
                                    struct sim_error_list *errors);
/* The same of one more: a name or a file. */
void cli_add_sound_scenario(const struct cli_options *options, GPtrArray *scenarios,
                            const char *name, unsigned *n_broken, struct sim_error_list *errors);

/* ---- Files beside scenarios: claims.cfg, whatif.cfg ------------------------------------------ */
/* The paths of the files that the arguments mean: a file with such a list, a folder of scenarios
 * that holds a file called `file`, or a scenario beside which it stands; without arguments all such
 * files, sorted. char *, owned. Mistakes go to errors. */
GPtrArray *cli_files_beside(const struct cli_options *options, const char *file, const char *list,
                            char **arguments, struct sim_error_list *errors);
/* The file of that name in the folder of a scenario's file; g_free(). NULL: there is none. */
char *cli_file_beside(const char *scenario, const char *file);
/* True with a mistake if the file is a scenario, where one with that list is expected. */
bool cli_refuse_scenario(const struct cli_options *options, const char *path, const char *list,
                         const char *expected, struct sim_error_list *errors);
/* The string of a setting of such a file; NULL: it is not there, or no string, which is a
 * mistake. */
const char *cli_string(struct config_node *group, const char *key, struct sim_error_list *errors);
/* The same; a mistake, too, if it is not there. */
const char *cli_required_string(struct config_node *group, const char *key,
                                struct sim_error_list *errors);
/* The mistake that the group has no such setting. */
void cli_missing(const struct config_node *group, const char *key, struct sim_error_list *errors);
/* "scenarios/pcie_bench/claims.cfg" -> "pcie_bench"; a path to a file called otherwise as it is.
 * g_free(). */
char *cli_folder_of(const char *path, const char *file);

#endif
