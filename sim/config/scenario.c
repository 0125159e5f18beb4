/* Finding and loading scenarios; points. */
#include "sim/config/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "sim/config/scenario_internal.h"
#include "sim/config/text.h"

/* Settings of the file that are no part of the simulated system. */
static const char *const aside[] = { "title", "text",        "axes",  "plot", "set",
                                     "quick", "constraints", "where", NULL };

/* ---- Finding --------------------------------------------------------------------------------- */

static bool holds_parts(const char *folder)
{
    static const char *const parts[] = { "families", "platforms", "devices", "templates" };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(parts); i++)
        if (strcmp(folder, parts[i]) == 0)
            return true;
    return false;
}

static void list_folder(GPtrArray *names, const char *root, const char *below)
{
    g_autofree char *path = *below ? g_build_filename(root, below, NULL) : g_strdup(root);
    GDir *dir = g_dir_open(path, 0, NULL);
    const char *entry;

    while (dir && (entry = g_dir_read_name(dir))) {
        g_autofree char *name = *below ? g_strconcat(below, "/", entry, NULL) : g_strdup(entry);
        g_autofree char *full = g_build_filename(root, name, NULL);

        if (*entry == '.') {
            /* hidden */
        } else if (g_file_test(full, G_FILE_TEST_IS_DIR)) {
            if (!holds_parts(entry) && !g_file_test(full, G_FILE_TEST_IS_SYMLINK))
                list_folder(names, root, name);
        } else if (g_str_has_suffix(entry, ".cfg") && strcmp(entry, "claims.cfg") != 0 &&
                   strcmp(entry, "whatif.cfg") != 0) {
            g_ptr_array_add(names, g_strndup(name, strlen(name) - 4));
        }
    }
    if (dir)
        g_dir_close(dir);
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **scenario_list(const char *root)
{
    GPtrArray *names = g_ptr_array_new();

    list_folder(names, root, "");
    g_ptr_array_sort(names, by_name);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

/* The folder of scenarios nearest to what was asked for; owned by `folders`, which it adds to. */
static const char *near_folder(const char *name, const GPtrArray *all, GPtrArray *folders)
{
    for (guint i = 0; i + 1 < all->len; i++)
        g_ptr_array_add(folders, g_path_get_dirname(all->pdata[i]));
    g_ptr_array_add(folders, NULL);
    return sim_nearest_name(name, (const char *const *)folders->pdata);
}

/* Of the files beside the one that is missing, the nearest, as it would be written; g_free(). */
static char *near_file(const char *name)
{
    g_autofree char *folder = g_path_get_dirname(name), *base = g_path_get_basename(name);
    const bool with_ending = g_str_has_suffix(name, ".cfg");
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(g_free);
    GDir *dir = g_dir_open(folder, 0, NULL);

    for (const char *file; dir && (file = g_dir_read_name(dir));) {
        if (g_str_has_suffix(file, ".cfg"))
            g_ptr_array_add(files, g_strndup(file, strlen(file) - (with_ending ? 0 : 4)));
    }
    if (dir)
        g_dir_close(dir);
    g_ptr_array_sort(files, by_name);
    g_ptr_array_add(files, NULL);
    const char *near = sim_nearest_name(base, (const char *const *)files->pdata);
    if (!near)
        return NULL;
    return strchr(name, '/') ? g_build_filename(folder, near, NULL) : g_strdup(near);
}

/* The existing scenario nearest to what was asked for, by its whole name or its last part, or a
 * folder of scenarios, or a file beside it. */
static void report_missing(const char *asked, const char *const *roots,
                           struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) bases = g_ptr_array_new();
    g_autoptr(GPtrArray) folders = g_ptr_array_new_with_free_func(g_free);
    const bool with_ending = g_str_has_suffix(asked, ".cfg");
    g_autofree char *name = g_strndup(asked, strlen(asked) - (with_ending ? 4 : 0));
    g_autofree char *file = near_file(asked);
    const char *near, *base = strrchr(name, '/');
    g_autofree char *what =
        with_ending ? g_strdup_printf("file \"%s\", and no scenario of this name", asked)
                    : g_strdup_printf("scenario \"%s\"", asked);
    g_autoptr(GString) where = g_string_new(NULL);

    for (size_t i = 0; roots && roots[i]; i++) {
        g_autofree char **names = scenario_list(roots[i]);

        for (char **n = names; *n; n++) {
            g_ptr_array_add(all, *n);
            g_ptr_array_add(bases, strrchr(*n, '/') ? strrchr(*n, '/') + 1 : *n);
        }
        g_string_append_printf(where, "%s%s", i ? ", " : "", roots[i]);
    }
    g_ptr_array_add(all, NULL);
    g_ptr_array_add(bases, NULL);
    near = sim_nearest_name(name, (const char *const *)all->pdata);
    if (near && g_ascii_strncasecmp(near, name, strlen(name)) == 0 &&
        strchr(near + strlen(name), '/')) /* the beginning of a folder's name */
        near = near_folder(name, all, folders);
    if (!near) {
        near = sim_nearest_name(base ? base + 1 : name, (const char *const *)bases->pdata);
        for (guint i = 0; near && i + 1 < bases->len; i++) {
            if (bases->pdata[i] == near)
                near = all->pdata[i];
        }
    }
    if (!near)
        near = near_folder(name, all, folders);
    if (file && (with_ending || !near))
        near = file;
    if (where->len == 0)
        sim_error_add(errors, NULL, 0,
                      "no %s, and no folder of scenarios was found; --scenarios DIR or "
                      "NUDMA_SCENARIOS names one",
                      what);
    else if (near)
        sim_error_add(errors, NULL, 0, "no %s in %s; did you mean \"%s\"?", what, where->str, near);
    else
        sim_error_add(errors, NULL, 0, "no %s in %s", what, where->str);
}

static char *file_if_there(char *path)
{
    if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
        return path;
    g_free(path);
    return NULL;
}

/* With ".cfg" added, then as it is. */
static char *find_in(const char *root, const char *name)
{
    g_autofree char *with_ending = g_strconcat(name, ".cfg", NULL);
    char *path = file_if_there(root ? g_build_filename(root, with_ending, NULL)
                                    : g_strdup(with_ending));

    if (path || !g_str_has_suffix(name, ".cfg"))
        return path ? path : (root ? NULL : file_if_there(g_strdup(name)));
    return file_if_there(root ? g_build_filename(root, name, NULL) : g_strdup(name));
}

/* What of path lies below root, NULL if it is elsewhere. */
static char *below_root(const char *root, const char *path)
{
    char *real_root = realpath(root, NULL), *real_path = realpath(path, NULL), *below = NULL;
    size_t n = real_root ? strlen(real_root) : 0;

    if (real_root && real_path && strncmp(real_root, real_path, n) == 0 && real_path[n] == '/')
        below = g_strdup(real_path + n + 1);
    free(real_root);
    free(real_path);
    return below;
}

static char *name_of(const char *path, const char *const *roots, size_t *root)
{
    char *name = NULL;

    for (*root = 0; roots && roots[*root]; ++*root) {
        name = below_root(roots[*root], path);
        if (name)
            break;
    }
    if (!name)
        name = g_path_get_basename(path);
    if (g_str_has_suffix(name, ".cfg"))
        name[strlen(name) - 4] = '\0';
    return name;
}

static char *find_file(const char *name, const char *const *roots, struct sim_error_list *errors)
{
    char *path = NULL;

    for (size_t i = 0; roots && roots[i] && !path && !g_path_is_absolute(name); i++)
        path = find_in(roots[i], name);
    if (!path)
        path = find_in(NULL, name);
    if (!path && g_file_test(name, G_FILE_TEST_EXISTS) && !g_file_test(name, G_FILE_TEST_IS_DIR))
        sim_error_add(errors, name, 0, "cannot be read: it is no regular file");
    else if (!path)
        report_missing(name, roots, errors);
    return path;
}

/* Where included files are: the root of the file first, or if it is outside of all of them its own
 * folder, then the others. g_strfreev() it. */
static char **include_dirs(const char *path, const char *const *roots, size_t own)
{
    GPtrArray *dirs = g_ptr_array_new();
    size_t n_roots = 0;

    while (roots && roots[n_roots])
        n_roots++;
    if (own < n_roots)
        g_ptr_array_add(dirs, g_strdup(roots[own]));
    else
        g_ptr_array_add(dirs, g_path_get_dirname(path));
    for (size_t i = 0; i < n_roots; i++) {
        if (i != own)
            g_ptr_array_add(dirs, g_strdup(roots[i]));
    }
    g_ptr_array_add(dirs, NULL);
    return (char **)g_ptr_array_free(dirs, FALSE);
}

static char *read_text(struct config *config, const char *key, struct sim_error_list *errors)
{
    struct config_node *node = config_get(config->root, key);

    if (node && node->kind != CONFIG_STRING)
        config_mistake(node, errors, "a string", NULL);
    return g_strdup(node && node->kind == CONFIG_STRING ? node->string : "");
}

/* ---- Settings that replace others ------------------------------------------------------------ */

static char *find_set_file(const struct scenario *scenario, const char *name, bool here_first)
{
    char *path = here_first ? file_if_there(g_strdup(name)) : NULL;

    for (char **dir = scenario->include_dirs; *dir && !path && !g_path_is_absolute(name); dir++)
        path = file_if_there(g_build_filename(*dir, name, NULL));
    return path ? path : file_if_there(g_strdup(name));
}

/* A setting of the file, of its own; groups are those of the base, with what else is in them. */
static void apply_node(struct scenario *scenario, const struct config_node *node, bool axes_win,
                       struct sim_error_list *errors)
{
    const char *axis = axes_win ? NULL : scenario_axis_of_setting(scenario, node->path);

    if (*node->path && !axes_win && scenario_refuse_set(node->path, node->place, errors))
        return;
    if (node->kind == CONFIG_GROUP && !config_value_form((struct config_node *)node)) {
        for (unsigned i = 0; i < config_count(node); i++)
            apply_node(scenario, node->children->pdata[i], axes_win, errors);
    } else if (axis) {
        sim_error_add(errors, node->place.file, node->place.line, "%s: set by the axis %s",
                      node->path, axis);
    } else if (!axes_win && scenario_where_sets(scenario, node->path)) {
        g_ptr_array_add(scenario->late,
                        assignment_new(node->path, (struct config_node *)node, NULL, node->place));
    } else {
        config_set_node(scenario->base, node->path, node, NULL, errors);
    }
}

struct config *scenario_load_set_file(const struct scenario *scenario, const char *name,
                                      struct config_place place, bool here_first,
                                      struct sim_error_list *errors)
{
    g_autofree char *path = find_set_file(scenario, name, here_first);
    struct config *config = NULL;

    if (!path)
        sim_error_add(errors, place.file, place.line, "found \"@%s\", but there is no such file",
                      name);
    else
        config = config_load_searching(path, (const char *const *)scenario->include_dirs, errors);
    return config;
}

/* Whether the file, or one that it includes, has a word that stands in an outline. Each file is
 * read once. */
static bool tells_outline(const struct scenario *scenario, const char *name, GHashTable *seen)
{
    static const char *const words[] = { "title", "axes", "quick", "constraints" };
    g_autofree char *path = find_set_file(scenario, name, false), *text = NULL;
    const char *why = NULL;

    if (path == NULL || !g_hash_table_add(seen, g_strdup(path)))
        return false;
    text = text_read(path, &why);
    for (size_t i = 0; text != NULL && i < SIM_N_ELEMENTS(words); i++)
        if (strstr(text, words[i]) != NULL)
            return true;
    for (const char *p = text; p != NULL && (p = strstr(p, "@include")) != NULL;) {
        const char *from = strchr(p, '"'), *to = from != NULL ? strchr(from + 1, '"') : NULL;
        g_autofree char *file = to != NULL ? g_strndup(from + 1, (size_t)(to - from - 1)) : NULL;

        if (file != NULL && tells_outline(scenario, file, seen))
            return true;
        p = to;
    }
    return false;
}

bool scenario_skips_file(const struct scenario *scenario, const char *name)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char *path = scenario->is_outline ? find_set_file(scenario, name, false) : NULL;

    return path != NULL && !tells_outline(scenario, name, seen);
}

/* Settings of a host or device that the scenario does not have, in a file that changes what is
 * there; one that also plugs something in is a platform, which brings its own. */
static void refuse_others(const struct scenario *scenario, const struct config *config,
                          struct sim_error_list *errors)
{
    static const char *const groups[] = { "hosts", "devices" };

    if (config_find(config->root, "cables"))
        return;
    for (size_t i = 0; i < SIM_N_ELEMENTS(groups); i++) {
        struct config_node *there = config_find(scenario->base->root, groups[i]);
        struct config_node *found = config_find(config->root, groups[i]);

        if (!there || !found || config_count(there) == 0)
            continue;
        g_autofree const char **names = g_new0(const char *, config_count(there) + 1);

        for (unsigned k = 0; k < config_count(there); k++)
            names[k] = config_name(config_child(there, k));
        for (unsigned k = 0; k < config_count(found); k++) {
            struct config_node *group = config_child(found, k);

            if (!g_strv_contains(names, config_name(group)))
                config_no_such(group, errors, i == 0 ? "host" : "device", names);
        }
    }
}

/* "@fitted.cfg": all settings of the file, each with its place there. */
static void apply_set_file(struct scenario *scenario, const char *name, struct config_place place,
                           bool from_command, struct sim_error_list *errors)
{
    struct config *config;

    if (scenario_skips_file(scenario, name))
        return;
    config = scenario_load_set_file(scenario, name, place, from_command, errors);
    if (config && from_command)
        refuse_others(scenario, config, errors);
    if (config) {
        apply_node(scenario, config->root, !from_command, errors);
        g_ptr_array_add(scenario->parsed, config); /* what is late is of it */
    }
}

static void apply_file_sets(struct scenario *scenario, struct sim_error_list *errors)
{
    struct config *config = scenario->base;
    struct config_node *sets = config_get(config->root, "set");

    if (!config_expect(sets, CONFIG_LIST, errors, "a list of settings, ( \"path=value\" )"))
        return;
    for (unsigned i = 0; i < config_count(sets); i++) {
        struct config_node *element = config_child(sets, i);
        g_autofree char *path = NULL, *value = NULL;

        if (element->kind != CONFIG_STRING) {
            config_mistake(element, errors, "a string \"path=value\"", NULL);
        } else if (*element->string == '@') {
            apply_set_file(scenario, element->string + 1, element->place, false, errors);
        } else if (config_split_setting(element->string, &path, &value, element->place, errors)) {
            config_set_at(config, path, value, element->place, errors);
        }
    }
}

bool scenario_refuse_set(const char *path, struct config_place place, struct sim_error_list *errors)
{
    static const char *const fixed[][2] = {
        { "axes", "--set axes.NAME=a,b chooses values of an axis" },
        { "constraints", "--filter chooses points" },
        { "quick", "--filter chooses points" },
        { "set", "--set PATH=VALUE changes a setting" },
        { "where", "--set PATH=VALUE changes a setting of all points" },
    };

    for (size_t i = 0; i < SIM_N_ELEMENTS(fixed); i++) {
        if (!config_paths_overlap(path, fixed[i][0]))
            continue;
        sim_error_add(errors, place.file, place.line,
                      "%s: cannot be changed here, since it has been read before; %s", path,
                      fixed[i][1]);
        return true;
    }
    return false;
}

static void apply_set(struct scenario *scenario, const char *text, struct sim_error_list *errors)
{
    struct config_place place = { .file = "--set", .origin = "--set" };
    g_autofree char *path = NULL, *value = NULL;
    const char *axis;

    if (*text == '@') {
        apply_set_file(scenario, text + 1, place, true, errors);
        return;
    }
    if (!config_split_setting(text, &path, &value, place, errors))
        return;
    axis = scenario_axis_naming(scenario, path);
    if (g_str_has_prefix(path, "axes."))
        scenario_override_axis(scenario, path + strlen("axes."), value, errors);
    else if (scenario_refuse_set(path, place, errors))
        return;
    else if (axis)
        sim_error_add(errors, "--set", 0,
                      "%s: set by the axis %s; to choose its values, --set axes.%s=...", path, axis,
                      axis);
    else if (scenario_set_is_late(scenario, path))
        g_ptr_array_add(scenario->late, assignment_new(path, NULL, value, place));
    else
        config_set_at(scenario->base, path, value, place, errors);
}

void scenario_sample(struct scenario *scenario, const char *text, struct sim_error_list *errors)
{
    static const char precision[] = "measure.precision_ratio", counted[] = "measure.transactions";
    const struct config_place place = { .file = "--precision", .origin = "--precision" };
    struct config_node *root = scenario->base->root;

    g_free(scenario->precision);
    scenario->precision = g_strdup(text);
    if (config_find(root, precision) || scenario_axis_naming(scenario, precision) ||
        scenario_where_sets(scenario, precision) || config_find(root, counted) ||
        scenario_axis_naming(scenario, counted) || scenario_where_sets(scenario, counted))
        return;
    if (scenario_set_is_late(scenario, precision))
        g_ptr_array_add(scenario->late, assignment_new(precision, NULL, text, place));
    else
        config_set_at(scenario->base, precision, text, place, errors);
}

/* ---- Loading --------------------------------------------------------------------------------- */

static char *changes_of(const char *const *sets)
{
    GString *text = g_string_new(NULL);

    for (; sets && *sets; sets++)
        if (!g_str_has_prefix(*sets, "axes.") && !g_str_has_prefix(*sets, "plot."))
            g_string_append_printf(text, "%s%s", text->len ? "; " : "", *sets);
    return g_string_free(text, FALSE);
}

static void free_config(gpointer config)
{
    config_free(config);
}

static void free_constraint(gpointer filter)
{
    filter_free(filter);
}

static struct scenario *load(const char *name_or_path, const char *const *roots,
                             const char *const *sets, bool is_outline,
                             struct sim_error_list *errors)
{
    char *path = find_file(name_or_path, roots, errors);
    struct scenario *scenario;
    struct config *base;
    size_t root;
    char *name, **dirs;

    if (!path)
        return NULL;
    name = name_of(path, roots, &root);
    dirs = include_dirs(path, roots, root);
    base = config_load_searching(path, (const char *const *)dirs, errors);
    if (!base) {
        g_strfreev(dirs);
        g_free(name);
        g_free(path);
        return NULL;
    }
    scenario = g_new0(struct scenario, 1);
    scenario->name = name;
    scenario->path = path;
    scenario->asked = g_strdup(name_or_path);
    scenario->roots = g_strdupv((char **)(uintptr_t)roots);
    scenario->sets = g_strdupv((char **)(uintptr_t)sets);
    scenario->has_root = roots && roots[root];
    scenario->is_outline = is_outline;
    scenario->base = base;
    scenario->include_dirs = dirs;
    scenario->axes = g_ptr_array_new_with_free_func(axis_free);
    scenario->parsed = g_ptr_array_new_with_free_func(free_config);
    scenario->late = g_ptr_array_new_with_free_func(assignment_free);
    scenario->constraints = g_ptr_array_new_with_free_func(free_constraint);
    scenario->where = g_ptr_array_new_with_free_func(where_free);
    apply_file_sets(scenario, errors);
    scenario_read_axes(scenario, errors);
    scenario_read_quick(scenario, errors);
    scenario_read_constraints(scenario, errors);
    if (!is_outline)
        scenario_read_where(scenario, errors);
    scenario->digest = is_outline ? NULL : scenario_digest_base(base);
    for (size_t i = 0; sets && sets[i]; i++)
        apply_set(scenario, sets[i], errors);
    scenario->changes = changes_of(sets);
    scenario->title = read_text(base, "title", errors);
    scenario->text = read_text(base, "text", errors);
    for (size_t i = 0; aside[i]; i++) {
        struct config_node *node = config_child_named(base->root, aside[i], NULL);

        if (node)
            config_mark_below(node, CONFIG_ASIDE);
    }
    scenario_make_points(scenario, errors);
    if (!is_outline)
        scenario_tell_axes(scenario);
    return scenario;
}

struct scenario *scenario_load(const char *name_or_path, const char *const *roots,
                               const char *const *sets, struct sim_error_list *errors)
{
    return load(name_or_path, roots, sets, false, errors);
}

const char *const *scenario_sets(const struct scenario *scenario)
{
    return (const char *const *)scenario->sets;
}

struct scenario *scenario_with_sets(const struct scenario *scenario, const char *const *sets,
                                    struct sim_error_list *errors)
{
    struct scenario *other = scenario_load(scenario->asked, (const char *const *)scenario->roots,
                                           sets, errors);

    if (other && scenario->precision)
        scenario_sample(other, scenario->precision, errors);
    return other;
}

struct scenario *scenario_load_outline(const char *name_or_path, const char *const *roots,
                                       struct sim_error_list *errors)
{
    return load(name_or_path, roots, NULL, true, errors);
}

void scenario_free(struct scenario *scenario)
{
    if (!scenario)
        return;
    g_strfreev(scenario->point_names);
    g_strfreev(scenario->include_dirs);
    g_free(scenario->points);
    g_ptr_array_free(scenario->constraints, TRUE);
    g_ptr_array_free(scenario->where, TRUE);
    g_ptr_array_free(scenario->late, TRUE);
    g_ptr_array_free(scenario->axes, TRUE);
    g_ptr_array_free(scenario->parsed, TRUE);
    config_free(scenario->base);
    g_strfreev(scenario->roots);
    g_strfreev(scenario->sets);
    g_free(scenario->asked);
    g_free(scenario->precision);
    g_free(scenario->changes);
    g_free(scenario->digest);
    g_free(scenario->title);
    g_free(scenario->text);
    g_free(scenario->name);
    g_free(scenario->path);
    g_free(scenario);
}

/* ---- Points ---------------------------------------------------------------------------------- */

static bool set_value(struct config *config, const struct axis_value *value, const char *origin,
                      struct sim_error_list *errors)
{
    bool good = true;

    for (guint i = 0; i < value->assignments->len; i++) {
        const struct assignment *assignment = value->assignments->pdata[i];
        struct config_place place = assignment->place;

        place.origin = origin;
        if (assignment->node)
            good &= config_set_node(config, assignment->path, assignment->node, origin, errors);
        else
            good &= config_set_at(config, assignment->path, assignment->text, place, errors);
    }
    return good;
}

struct config *scenario_point(struct scenario *scenario, size_t point,
                              struct sim_error_list *errors)
{
    struct config *config = config_copy(scenario->base);
    bool good = true;

    SIM_ASSERT(!scenario->is_outline, "a point of the outline of %s", scenario->name);
    config_name_point(config, scenario_point_name(scenario, point));

    /* the copy's names of the aside settings are known, so that a slip of "plot" is near to it */
    for (size_t i = 0; aside[i]; i++)
        config_valid_name(config->root, aside[i]);
    for (size_t a = 0; a < scenario->axes->len; a++) {
        const struct axis *axis = scenario->axes->pdata[a];

        good &= set_value(config, axis->values->pdata[scenario_point_value(scenario, point, a)],
                          axis->origin, errors);
    }
    for (guint i = 0; i < scenario->where->len; i++) {
        const struct where *where = scenario->where->pdata[i];

        if (where->holds[point])
            good &= set_value(config, where->value, where->origin, errors);
    }
    for (guint i = 0; i < scenario->late->len; i++) {
        const struct assignment *set = scenario->late->pdata[i];

        if (set->node)
            good &= config_set_node(config, set->path, set->node, NULL, errors);
        else
            good &= config_set_at(config, set->path, set->text, set->place, errors);
    }
    if (good)
        return config;
    config_free(config);
    return NULL;
}

/* ---- Accessors ------------------------------------------------------------------------------- */

const char *scenario_name(const struct scenario *scenario)
{
    return scenario->name;
}

const char *scenario_path(const struct scenario *scenario)
{
    return scenario->path;
}

const char *scenario_title(const struct scenario *scenario)
{
    return scenario->title;
}

const char *scenario_text(const struct scenario *scenario)
{
    return scenario->text;
}

const char *scenario_changes(const struct scenario *scenario)
{
    return scenario->changes;
}

bool scenario_has_root(const struct scenario *scenario)
{
    return scenario->has_root;
}

struct config *scenario_base(struct scenario *scenario)
{
    return scenario->base;
}

size_t scenario_n_points(const struct scenario *scenario)
{
    return scenario->n_points;
}

const char *scenario_point_name(const struct scenario *scenario, size_t point)
{
    SIM_ASSERT(point < scenario->n_points, "point %zu", point);
    return scenario->point_names[point];
}

size_t scenario_point_find(const struct scenario *scenario, const char *name)
{
    size_t i = 0;

    while (i < scenario->n_points && strcmp(scenario->point_names[i], name) != 0)
        i++;
    return i;
}

size_t scenario_n_axes(const struct scenario *scenario)
{
    return scenario->axes->len;
}

const char *scenario_axis_name(const struct scenario *scenario, size_t axis)
{
    SIM_ASSERT(axis < scenario->axes->len, "axis %zu", axis);
    return ((const struct axis *)scenario->axes->pdata[axis])->name;
}

size_t scenario_axis_n_values(const struct scenario *scenario, size_t axis)
{
    SIM_ASSERT(axis < scenario->axes->len, "axis %zu", axis);
    return ((const struct axis *)scenario->axes->pdata[axis])->values->len;
}

size_t scenario_axis_leader(const struct scenario *scenario, size_t axis)
{
    SIM_ASSERT(axis < scenario->axes->len, "axis %zu", axis);
    return ((const struct axis *)scenario->axes->pdata[axis])->leader;
}

const char *scenario_axis_value(const struct scenario *scenario, size_t axis, size_t value)
{
    const struct axis *a;

    SIM_ASSERT(value < scenario_axis_n_values(scenario, axis), "axis %zu, value %zu", axis, value);
    a = scenario->axes->pdata[axis];
    return ((const struct axis_value *)a->values->pdata[value])->label;
}
