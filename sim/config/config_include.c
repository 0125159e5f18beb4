/* Files that are included: where they are searched, where it was said, and what is said of one in
 * the wrong place. */
#include <string.h>

#include "sim/config/config_internal.h"

#define MISPLACED_MIN   3u /* unknown settings of one included file: it is in the wrong place */
#define MISPLACED_NAMED 4u /* of them in the message */

/* ---- Searching ------------------------------------------------------------------------------- */

char *config_find_include(const char *const *dirs, const char *name, GString *searched)
{
    if (g_path_is_absolute(name))
        return g_strdup(name);
    for (size_t i = 0; dirs && dirs[i]; i++) {
        char *path = g_build_filename(dirs[i], name, NULL);

        if (g_file_test(path, G_FILE_TEST_EXISTS))
            return path;
        g_free(path);
        g_string_append_printf(searched, "%s%s", i ? ", " : "", dirs[i]);
    }
    return NULL;
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char *config_include_suggestion(const char *const *dirs, const char *name)
{
    g_autofree char *below = g_path_get_dirname(name), *base = g_path_get_basename(name);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *nearest;

    for (size_t i = 0; dirs && dirs[i]; i++) {
        g_autofree char *path = g_build_filename(dirs[i], below, NULL);
        g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
        const char *entry;

        while (dir && (entry = g_dir_read_name(dir)) != NULL)
            if (g_str_has_suffix(entry, ".cfg"))
                g_ptr_array_add(names, g_strdup(entry));
    }
    g_ptr_array_sort(names, by_name); /* folders have no order of their own */
    g_ptr_array_add(names, NULL);
    nearest = sim_nearest_name(base, (const char *const *)names->pdata);
    if (!nearest)
        return g_strdup("");
    return strcmp(below, ".") == 0 ? g_strdup_printf("; did you mean \"%s\"?", nearest)
                                   : g_strdup_printf("; did you mean \"%s/%s\"?", below, nearest);
}

/* ---- Where it was said ----------------------------------------------------------------------- */

struct include {
    char *file, *group; /* that it is included into: its path */
    char *by;           /* the file that includes it */
    int line;           /* in there */
};

static void clear_include(gpointer data)
{
    struct include *include = data;

    g_free(include->file);
    g_free(include->group);
    g_free(include->by);
}

GArray *config_includes_new(void)
{
    GArray *includes = g_array_new(FALSE, FALSE, sizeof(struct include));

    g_array_set_clear_func(includes, clear_include);
    return includes;
}

void config_note_include(GArray *includes, const char *file, const char *group,
                         struct config_place at)
{
    const struct include include = { g_strdup(file), g_strdup(group), g_strdup(at.file), at.line };

    g_array_append_val(includes, include);
}

void config_take_includes(struct config *config, GArray *includes)
{
    g_array_unref(config->includes);
    config->includes = g_array_ref(includes);
}

/* How the file came into the group: the outermost include there of which it is a part. NULL: none
 * is known. */
static const struct include *find_included(const struct config_node *group, const char *file)
{
    const GArray *includes = group->config->includes;
    const struct include *found = NULL;

    /* what a file includes stands behind it */
    for (guint i = includes->len; i-- > 0;) {
        const struct include *include = &g_array_index(includes, struct include, i);
        if (strcmp(include->file, found ? found->by : file) == 0 &&
            strcmp(include->group, group->path) == 0)
            found = include;
    }
    return found;
}

/* ---- In the wrong place ---------------------------------------------------------------------- */

/* The group in which most of these settings are known, by all that has been read; NULL: none with
 * more than half of them. g_free() */
static char *group_that_knows(const struct config *config, GPtrArray *names)
{
    g_autoptr(GHashTable) groups = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GHashTableIter all;
    gpointer key, count;
    const char *best = NULL;
    guint most = names->len / 2;

    g_hash_table_iter_init(&all, config->resolved);
    while (g_hash_table_iter_next(&all, &key, NULL)) {
        const char *path = ((const struct config_kept *)key)->path, *last = strrchr(path, '.');
        if (!last || !g_ptr_array_find_with_equal_func(names, last + 1, g_str_equal, NULL))
            continue;
        char *group = g_strndup(path, (size_t)(last - path));
        count = g_hash_table_lookup(groups, group);
        g_hash_table_replace(groups, group, GUINT_TO_POINTER(GPOINTER_TO_UINT(count) + 1));
    }
    g_hash_table_iter_init(&all, groups);
    while (g_hash_table_iter_next(&all, &key, &count)) {
        const guint n = GPOINTER_TO_UINT(count);
        if (n > most || (best && n == most && strcmp(key, best) < 0)) {
            most = n;
            best = key;
        }
    }
    return g_strdup(best);
}

/* Where settings of these names belong, "; expected ..."; g_free(). */
static char *right_place(const struct config *config, GPtrArray *names)
{
    static const char *const in_host = "in a host: hosts = { NAME = { @include \"FILE\" }; };";
    static const char *const in_device =
        "in a device: devices = { NAME = { @include \"FILE\" }; };";
    const char *const only[][2] = { { "hosts", "outside of all groups" },
                                    { "devices", "outside of all groups" },
                                    { "cpu", in_host },
                                    { "type", in_device } };
    g_autofree char *group = group_that_knows(config, names);

    for (size_t i = 0; i < SIM_N_ELEMENTS(only); i++)
        if (g_ptr_array_find_with_equal_func(names, only[i][0], g_str_equal, NULL))
            return g_strconcat("; expected ", only[i][1], NULL);
    if (!group)
        return g_strdup("");
    if (g_str_has_prefix(group, "devices."))
        return g_strconcat("; expected ", in_device, NULL);
    const char *last = strrchr(group, '.');
    return g_strdup_printf("; expected in a group \"%s\"", last ? last + 1 : group);
}

static void report_place(const struct config_node *node, const char *file, GPtrArray *names,
                         struct sim_error_list *errors)
{
    const struct include *include = find_included(node, file);
    g_autofree char *expected = right_place(node->config, names);
    g_autoptr(GString) some = g_string_new(NULL);

    for (guint i = 0; i < names->len && i < MISPLACED_NAMED; i++)
        g_string_append_printf(some, "%s%s", i > 0 ? ", " : "", (const char *)names->pdata[i]);
    if (names->len > MISPLACED_NAMED)
        g_string_append_printf(some, " and %u more", names->len - MISPLACED_NAMED);
    sim_error_add(errors, include ? include->by : node->place.file,
                  include ? include->line : node->place.line,
                  "%s%s%s is included in the wrong place; unknown here: %s%s", node->path,
                  *node->path ? ": " : "", include ? include->file : file, some->str, expected);
}

bool config_report_misplaced(const struct config_node *group, unsigned first,
                             struct sim_error_list *errors)
{
    const struct config_node *node = group->children->pdata[first];
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    unsigned n_known = 0;
    bool said = false;

    if (node->place.origin || !node->place.file ||
        g_strcmp0(node->place.file, group->place.file) == 0)
        return false;
    for (unsigned i = 0; i < config_count(group); i++) {
        const struct config_node *child = group->children->pdata[i];
        if (child->place.origin || g_strcmp0(child->place.file, node->place.file) != 0)
            continue;
        if (!config_is_unknown(group, child)) {
            n_known++;
            continue;
        }
        said |= i < first;
        g_ptr_array_add(names, (gpointer)(uintptr_t)child->name);
    }
    if (names->len < MISPLACED_MIN || names->len <= n_known)
        return false;
    if (!said)
        report_place(group, node->place.file, names, errors);
    return true;
}

bool config_report_included(struct config_node *group, const char *const *parts, unsigned n_min,
                            struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    const char *file = NULL;
    unsigned n = 0;

    for (unsigned i = 0; i < config_count(group); i++) {
        const struct config_node *child = group->children->pdata[i];
        if (child->place.origin || g_strcmp0(child->place.file, group->place.file) == 0 ||
            (file && strcmp(child->place.file, file) != 0))
            continue;
        file = child->place.file;
        n += g_strv_contains(parts, child->name) ? 1 : 0;
        g_ptr_array_add(names, (gpointer)(uintptr_t)child->name);
    }
    if (n < n_min)
        return false;
    config_mark_read(group);
    report_place(group, file, names, errors);
    return true;
}
