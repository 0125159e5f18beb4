/* Names of scenarios: what an argument means, and what there is. */
#include <string.h>
#include <sys/stat.h>

#include "cli/base/scenarios.h"
#include "workloads/experiment.h"

static GPtrArray *all_names(const struct cli_options *options)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (char **root = options->roots; *root != NULL; root++) {
        g_auto(GStrv) names = scenario_list(*root);
        for (char **name = names; *name != NULL; name++) {
            if (g_hash_table_contains(seen, *name))
                continue;
            g_ptr_array_add(all, g_strdup(*name));
            g_hash_table_add(seen, all->pdata[all->len - 1]);
        }
    }
    return all;
}

static void add_once(GPtrArray *names, const char *name)
{
    for (guint i = 0; i < names->len; i++) {
        if (strcmp(names->pdata[i], name) == 0)
            return;
    }
    g_ptr_array_add(names, g_strdup(name));
}

/* True if a name begins so. */
static bool add_beginning(GPtrArray *names, const GPtrArray *all, const char *prefix)
{
    bool found = false;
    for (guint i = 0; i < all->len; i++) {
        if (g_str_has_prefix(all->pdata[i], prefix)) {
            add_once(names, all->pdata[i]);
            found = true;
        }
    }
    return found;
}

/* A folder stands for what is in it; anything else for itself, or what begins so. */
static void add_argument(GPtrArray *names, const GPtrArray *all, const char *argument,
                         bool beginnings)
{
    g_autofree char *folder = g_strconcat(argument, g_str_has_suffix(argument, "/") ? "" : "/",
                                          NULL);
    const bool is_name = g_ptr_array_find_with_equal_func((GPtrArray *)all, argument, g_str_equal,
                                                          NULL) ||
                         g_file_test(argument, G_FILE_TEST_IS_REGULAR);
    if (!add_beginning(names, all, folder) &&
        (is_name || !beginnings || *argument == '\0' || !add_beginning(names, all, argument)))
        add_once(names, argument);
}

char **cli_scenario_names(const struct cli_options *options, char **arguments, bool beginnings,
                          struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) all = all_names(options);
    GPtrArray *names = g_ptr_array_new();
    for (guint i = 0; *arguments == NULL && i < all->len; i++)
        g_ptr_array_add(names, g_strdup(all->pdata[i]));
    for (; *arguments != NULL; arguments++)
        add_argument(names, all, *arguments, beginnings);
    if (names->len == 0)
        sim_error_add(errors, NULL, 0,
                      "no scenarios found (--scenarios DIR or NUDMA_SCENARIOS says where)");
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

static void free_scenario(gpointer scenario)
{
    scenario_free(scenario);
}

/* Takes the scenario over. Results are stored under its name, so that two files of one name would
 * overwrite each other's; the same file, named in two ways, counts once. */
static void add_scenario(GPtrArray *scenarios, struct scenario *scenario,
                         struct sim_error_list *errors)
{
    for (guint i = 0; i < scenarios->len; i++) {
        const struct scenario *other = scenarios->pdata[i];
        if (strcmp(scenario_name(other), scenario_name(scenario)) != 0)
            continue;
        if (!cli_same_file(scenario_path(other), scenario_path(scenario)))
            sim_error_add(errors, scenario_path(scenario), 0,
                          "has the name \"%s\", and so has %s: their results would be mixed",
                          scenario_name(scenario), scenario_path(other));
        scenario_free(scenario);
        return;
    }
    g_ptr_array_add(scenarios, scenario);
}

GPtrArray *cli_load_scenarios(const struct cli_options *options, char **arguments,
                              const char *const *sets, struct sim_error_list *errors)
{
    GPtrArray *scenarios = g_ptr_array_new_with_free_func(free_scenario);
    g_auto(GStrv) names = cli_scenario_names(options, arguments, false, errors);
    for (char **name = names; *name != NULL; name++) {
        struct scenario *scenario = scenario_load(*name, (const char *const *)options->roots, sets,
                                                  errors);
        if (scenario != NULL)
            add_scenario(scenarios, scenario, errors);
    }
    return scenarios;
}

/* NULL with what is wrong in errors. */
static struct scenario *load_sound(const struct cli_options *options, const char *name,
                                   struct sim_error_list *errors)
{
    struct scenario *scenario = scenario_load(name, (const char *const *)options->roots, NULL,
                                              errors);
    struct config *config = scenario != NULL && errors->n_messages == 0
                                ? scenario_point(scenario, 0, errors)
                                : NULL;
    const bool sound = config != NULL && experiment_check(config, errors);
    config_free(config);
    if (!sound)
        scenario_free(scenario);
    return sound ? scenario : NULL;
}

GPtrArray *cli_load_sound_scenarios(const struct cli_options *options, unsigned *n_broken,
                                    struct sim_error_list *errors)
{
    char *all[] = { NULL };
    GPtrArray *scenarios = g_ptr_array_new_with_free_func(free_scenario);
    g_auto(GStrv) names = cli_scenario_names(options, all, false, errors);
    *n_broken = 0;
    for (char **name = names; *name != NULL; name++) {
        struct sim_error_list broken = { 0 };
        struct scenario *scenario = load_sound(options, *name, &broken);
        if (scenario != NULL) {
            add_scenario(scenarios, scenario, errors);
            continue;
        }
        cli_report(&broken);
        fprintf(stderr, "%s: left out because of that\n", *name);
        ++*n_broken;
    }
    return scenarios;
}
