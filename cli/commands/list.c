/* nudma list: the scenarios below the roots; for completion also what else is named on command
 * lines. */
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/scenarios.h"

static void list_with_titles(const struct cli_options *options, char **names,
                             struct sim_error_list *errors)
{
    unsigned n_listed = 0;
    struct cli_table *table = cli_table_new("scenario|>points|title");
    for (char **name = names; *name != NULL; name++) {
        struct scenario *scenario =
            scenario_load_outline(*name, (const char *const *)options->roots, errors);
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
}

/* The folders of scenarios that hold such a file. */
static void list_folders(const struct cli_options *options, const char *file,
                         struct sim_error_list *errors)
{
    char *none[] = { NULL };
    g_autoptr(GPtrArray) paths = cli_files_beside(options, file, "", none, errors);
    for (guint i = 0; i < paths->len; i++) {
        g_autofree char *folder = cli_folder_of(paths->pdata[i], file);
        puts(folder);
    }
}

static void list_names(const struct cli_options *options, const char *kind,
                       struct sim_error_list *errors)
{
    static const char *const kinds[] = { "scenarios", "claims",  "whatifs", "platforms",
                                         "machines",  "devices", NULL };
    char **names = NULL;
    if (strcmp(kind, "scenarios") == 0) {
        names = cli_scenario_names(options, options->arguments, true, errors);
    } else if (strcmp(kind, "claims") == 0) {
        list_folders(options, "claims.cfg", errors);
    } else if (strcmp(kind, "whatifs") == 0) {
        list_folders(options, "whatif.cfg", errors);
    } else if (strcmp(kind, "platforms") == 0 || strcmp(kind, "devices") == 0) {
        names = cli_names_in(options, kind);
    } else if (strcmp(kind, "machines") == 0) {
        names = cli_machine_names(options);
    } else {
        const char *near = sim_nearest_name(kind, kinds);
        sim_error_add(errors, NULL, 0,
                      "--names=%s: expected scenarios, claims, whatifs, platforms, machines or "
                      "devices%s%s%s",
                      kind, near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
                      near != NULL ? "\"?" : "");
    }
    for (char **name = names; name != NULL && *name != NULL; name++)
        puts(*name);
    g_strfreev(names);
}

int cli_list(int argc, char **argv)
{
    struct cli_options options = { .no_db = true };
    g_autofree char *kind = NULL;
    const GOptionEntry entries[] = {
        { "names", 0, 0, G_OPTION_ARG_STRING, &kind,
          "Names alone, a line each: scenarios, claims (folders that have some), whatifs, platforms, "
          "machines (platforms that are one machine), devices",
          "KIND" },
        { .long_name = NULL },
    };
    int status = CLI_DONE;
    if (cli_parse(&options, "[NAME...]", "Lists scenarios with their titles and number of points.",
                  "NAME: a scenario, or the beginning of names: a folder (pcie_bench). Without: "
                  "all.",
                  entries, argc, argv, &status)) {
        struct sim_error_list errors = { 0 };
        if (kind != NULL) {
            list_names(&options, kind, &errors);
        } else {
            char **names = cli_scenario_names(&options, options.arguments, true, &errors);
            list_with_titles(&options, names, &errors);
            g_strfreev(names);
        }
        status = errors.n_messages == 0 ? CLI_DONE : CLI_WRONG;
        cli_report(&errors);
    }
    cli_options_release(&options);
    return status;
}
