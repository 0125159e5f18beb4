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

/* A folder of files, not of names: that is another one, even if it is below a root. */
static void refuse_folder(const struct cli_options *options, const GPtrArray *all,
                          const char *argument, struct sim_error_list *errors)
{
    g_autofree char *roots = g_strjoinv(", ", options->roots);
    g_autofree char *path = g_canonicalize_filename(argument, NULL), *hint = NULL;
    g_autoptr(GPtrArray) below = g_ptr_array_new_with_free_func(g_free);
    for (char **root = options->roots; *root != NULL && hint == NULL; root++) {
        g_autofree char *folder = g_canonicalize_filename(*root, NULL);
        const size_t n = strlen(folder);
        const char *name = strncmp(path, folder, n) == 0 && path[n] == '/' ? path + n + 1 : "";
        g_autofree char *prefix = g_strconcat(name, "/", NULL);
        if (*name != '\0' && add_beginning(below, all, prefix))
            hint = g_strdup_printf("; did you mean \"%s\"?", name);
        if (strcmp(path, folder) == 0) {
            sim_error_add(errors, argument, 0,
                          "is a folder of folders of scenarios, expected one of these (nudma list "
                          "shows all)");
            return;
        }
    }
    sim_error_add(errors, argument, 0, "is a folder without scenarios below %s%s", roots,
                  hint != NULL ? hint : " (nudma list shows their names)");
}

/* A folder stands for what is in it; anything else for itself, or what begins so. */
static void add_argument(const struct cli_options *options, GPtrArray *names, const GPtrArray *all,
                         const char *argument, bool beginnings, struct sim_error_list *errors)
{
    g_autofree char *folder = g_strconcat(argument, g_str_has_suffix(argument, "/") ? "" : "/",
                                          NULL);
    const bool is_name = g_ptr_array_find_with_equal_func((GPtrArray *)all, argument, g_str_equal,
                                                          NULL) ||
                         g_file_test(argument, G_FILE_TEST_IS_REGULAR);
    if (add_beginning(names, all, folder) ||
        (!is_name && beginnings && *argument != '\0' && add_beginning(names, all, argument)))
        return;
    if (!is_name && g_file_test(argument, G_FILE_TEST_IS_DIR))
        refuse_folder(options, all, argument, errors);
    else
        add_once(names, argument);
}

char **cli_scenario_names(const struct cli_options *options, char **arguments, bool beginnings,
                          struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) all = all_names(options);
    GPtrArray *names = g_ptr_array_new();
    const size_t before = errors->n_messages;
    for (guint i = 0; *arguments == NULL && i < all->len; i++)
        g_ptr_array_add(names, g_strdup(all->pdata[i]));
    for (; *arguments != NULL; arguments++)
        add_argument(options, names, all, *arguments, beginnings, errors);
    if (names->len == 0 && errors->n_messages == before)
        sim_error_add(errors, NULL, 0,
                      "no scenarios found (--scenarios DIR or NUDMA_SCENARIOS says where)");
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

bool cli_is_machine(const struct cli_options *options, const char *name)
{
    g_autofree char *file = g_strconcat("platforms/", name, ".cfg", NULL);
    g_autofree char *path = cli_find_file(options, file);
    struct sim_error_list errors = { 0 };
    struct config *config =
        path != NULL ? config_load_searching(path, (const char *const *)options->roots, &errors)
                     : NULL;
    const bool has_hosts = config != NULL && config_get(config_root(config), "hosts") != NULL;
    config_free(config);
    sim_error_release(&errors);
    return !has_hosts;
}

char **cli_machine_names(const struct cli_options *options)
{
    char **names = cli_names_in(options, "platforms"), **kept = names;
    for (char **name = names; *name != NULL; name++) {
        if (cli_is_machine(options, *name))
            *kept++ = *name;
        else
            g_free(*name);
    }
    *kept = NULL;
    return names;
}

char **cli_scenarios_that_name(const struct cli_options *options, const char *file, unsigned most)
{
    g_autoptr(GPtrArray) names = all_names(options);
    GPtrArray *found = g_ptr_array_new();
    for (guint i = 0; i < names->len && found->len < most; i++) {
        g_autofree char *scenario = g_strconcat(names->pdata[i], ".cfg", NULL);
        g_autofree char *path = cli_find_file(options, scenario), *text = NULL;
        if (path != NULL && g_file_get_contents(path, &text, NULL, NULL) &&
            strstr(text, file) != NULL)
            g_ptr_array_add(found, g_strdup(names->pdata[i]));
    }
    g_ptr_array_add(found, NULL);
    return (char **)g_ptr_array_free(found, FALSE);
}

void cli_name_scenario_files(struct cli_options *options)
{
    for (char **argument = options->arguments; *argument != NULL; argument++) {
        if (!g_str_has_suffix(*argument, ".cfg") || !g_file_test(*argument, G_FILE_TEST_IS_REGULAR))
            continue;
        struct sim_error_list ignored = { 0 };
        struct scenario *scenario = scenario_load(*argument, (const char *const *)options->roots,
                                                  NULL, &ignored);
        if (scenario != NULL) {
            g_free(*argument);
            *argument = g_strdup(scenario_name(scenario));
        }
        scenario_free(scenario);
        sim_error_release(&ignored);
    }
}

/* By its settings; `list`: one that a scenario does not have. */
static bool is_scenario(const struct cli_options *options, const char *path, const char *list)
{
    struct sim_error_list ignored = { 0 };
    struct config *config = g_file_test(path, G_FILE_TEST_IS_REGULAR)
                                ? config_load_searching(path, (const char *const *)options->roots,
                                                        &ignored)
                                : NULL;
    struct config_node *root = config != NULL ? config_root(config) : NULL;
    const bool scenario = root != NULL && config_find(root, list) == NULL &&
                          (config_find(root, "workload") != NULL ||
                           config_find(root, "hosts") != NULL);
    config_free(config);
    sim_error_release(&ignored);
    return scenario;
}

bool cli_refuse_scenario(const struct cli_options *options, const char *path, const char *list,
                         const char *expected, struct sim_error_list *errors)
{
    const bool scenario = is_scenario(options, path, list);
    if (scenario)
        sim_error_add(errors, path, 0, "is a scenario, expected %s", expected);
    return scenario;
}

static void free_scenario(gpointer scenario)
{
    scenario_free(scenario);
}

GPtrArray *cli_scenario_array(void)
{
    return g_ptr_array_new_with_free_func(free_scenario);
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
    GPtrArray *scenarios = cli_scenario_array();
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

void cli_add_sound_scenario(const struct cli_options *options, GPtrArray *scenarios,
                            const char *name, unsigned *n_broken, struct sim_error_list *errors)
{
    struct sim_error_list broken = { 0 };
    struct scenario *scenario = load_sound(options, name, &broken);
    if (scenario != NULL) {
        add_scenario(scenarios, scenario, errors);
        return;
    }
    cli_report(&broken);
    fprintf(stderr, "%s: left out because of that\n", name);
    ++*n_broken;
}

GPtrArray *cli_load_sound_scenarios(const struct cli_options *options, unsigned *n_broken,
                                    struct sim_error_list *errors)
{
    char *all[] = { NULL };
    GPtrArray *scenarios = cli_scenario_array();
    g_auto(GStrv) names = cli_scenario_names(options, all, false, errors);
    *n_broken = 0;
    for (char **name = names; *name != NULL; name++)
        cli_add_sound_scenario(options, scenarios, *name, n_broken, errors);
    return scenarios;
}

/* ---- Files beside scenarios ------------------------------------------------------------------ */

static int by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each file of the name in a folder below the roots; a folder of that name in an earlier root hides
 * it. */
static GPtrArray *all_beside(const struct cli_options *options, const char *file)
{
    GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (char **root = options->roots; *root != NULL; root++) {
        GDir *dir = g_dir_open(*root, 0, NULL);
        for (const char *name; dir != NULL && (name = g_dir_read_name(dir)) != NULL;) {
            char *path = g_build_filename(*root, name, file, NULL);
            if (g_file_test(path, G_FILE_TEST_IS_REGULAR) && g_hash_table_add(seen, g_strdup(name)))
                g_ptr_array_add(paths, path);
            else
                g_free(path);
        }
        if (dir != NULL)
            g_dir_close(dir);
    }
    g_ptr_array_sort(paths, by_name);
    return paths;
}

char *cli_folder_of(const char *path, const char *file)
{
    g_autofree char *base = g_path_get_basename(path), *folder = g_path_get_dirname(path);
    return strcmp(base, file) == 0 && strcmp(folder, ".") != 0 ? g_path_get_basename(folder)
                                                               : g_strdup(path);
}

char *cli_file_beside(const char *scenario, const char *file)
{
    g_autofree char *folder = g_path_get_dirname(scenario);
    char *path = strcmp(folder, ".") == 0 ? g_strdup(file) : g_build_filename(folder, file, NULL);
    if (!g_file_test(path, G_FILE_TEST_IS_REGULAR))
        g_clear_pointer(&path, g_free);
    return path;
}

/* A folder, or a file in this one, with the nearest folder that has such a file. */
static void report_missing(const struct cli_options *options, const char *file, const char *name,
                           struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) folders = all_beside(options, file);
    for (guint i = 0; i < folders->len; i++) {
        g_autofree char *path = folders->pdata[i];
        folders->pdata[i] = cli_folder_of(path, file);
    }
    g_ptr_array_add(folders, NULL);
    g_autofree char *suggestion = sim_suggestion(name, (const char *const *)folders->pdata);
    sim_error_add(errors, NULL, 0, "\"%s\": neither a file nor a folder of scenarios with a %s%s%s",
                  name, file, *suggestion != '\0' ? "; " : "", suggestion);
}

/* NULL with a mistake in errors. */
static char *find_beside(const struct cli_options *options, const char *file, const char *list,
                         const char *argument, struct sim_error_list *errors)
{
    if (g_file_test(argument, G_FILE_TEST_IS_REGULAR)) {
        char *beside = is_scenario(options, argument, list) ? cli_file_beside(argument, file)
                                                            : NULL;
        return beside != NULL ? beside : g_strdup(argument);
    }
    g_autofree char *name = g_build_filename(argument, file, NULL);
    if (g_file_test(name, G_FILE_TEST_IS_REGULAR)) /* "scenarios/pcie_bench" */
        return g_strdup(name);
    g_autofree char *as_scenario = g_strconcat(argument, ".cfg", NULL);
    g_autofree char *scenario = cli_find_file(options, as_scenario);
    char *path = cli_find_file(options, name);
    if (path == NULL && scenario != NULL) /* "pcie_bench/latency_size" */
        path = cli_file_beside(scenario, file);
    if (path == NULL && strchr(argument, '/') == NULL && !g_file_test(argument, G_FILE_TEST_EXISTS))
        report_missing(options, file, argument, errors);
    else if (path == NULL)
        path = g_strdup(argument); /* config_load() says what is wrong */
    return path;
}

GPtrArray *cli_files_beside(const struct cli_options *options, const char *file, const char *list,
                            char **arguments, struct sim_error_list *errors)
{
    if (*arguments == NULL) {
        GPtrArray *all = all_beside(options, file);
        if (all->len == 0)
            sim_error_add(errors, NULL, 0, "no %s beside any scenario", file);
        return all;
    }
    GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);
    for (; *arguments != NULL; arguments++) {
        g_autofree char *path = find_beside(options, file, list, *arguments, errors);
        bool known = path == NULL;
        for (guint i = 0; !known && i < paths->len; i++)
            known = cli_same_file(paths->pdata[i], path);
        if (!known)
            g_ptr_array_add(paths, g_steal_pointer(&path));
    }
    return paths;
}

const char *cli_string(struct config_node *group, const char *key, struct sim_error_list *errors)
{
    struct config_node *value = config_get(group, key);
    if (value == NULL || !config_expect(value, CONFIG_STRING, errors, "a string"))
        return NULL;
    return config_string(value);
}

const char *cli_required_string(struct config_node *group, const char *key,
                                struct sim_error_list *errors)
{
    if (config_find(group, key) == NULL)
        cli_missing(group, key, errors);
    return cli_string(group, key, errors);
}

void cli_missing(const struct config_node *group, const char *key, struct sim_error_list *errors)
{
    sim_error_add(errors, config_file(group), config_line(group), "%s: no setting \"%s\"",
                  config_path(group), key);
}

char **cli_names_in(const struct cli_options *options, const char *folder)
{
    GPtrArray *names = g_ptr_array_new();
    for (char **root = options->roots; *root != NULL; root++) {
        g_autofree char *path = g_build_filename(*root, folder, NULL);
        GDir *dir = g_dir_open(path, 0, NULL);
        for (const char *entry; dir != NULL && (entry = g_dir_read_name(dir)) != NULL;)
            if (g_str_has_suffix(entry, ".cfg"))
                g_ptr_array_add(names, g_strndup(entry, strlen(entry) - 4));
        if (dir != NULL)
            g_dir_close(dir);
    }
    g_ptr_array_sort(names, by_name);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}
