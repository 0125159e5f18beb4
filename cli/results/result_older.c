/* Points whose runs were made with another text of the scenario than others, or than its file has
 * now. */
#include <string.h>

#include "cli/results/result_older.h"

#define NAMES_SHOWN 3

/* "file:1a2b3c4d memory=local:5e6f7a8b": each part of the text with its digest. Takes those of the
 * newest runs, or keeps what is there. */
static void take_parts(GHashTable *current, const char *note, bool replace)
{
    g_auto(GStrv) parts = g_strsplit(note, " ", -1);
    for (char **part = parts; *part != NULL; part++) {
        char *colon = strrchr(*part, ':');
        if (colon == NULL)
            continue;
        g_autofree char *key = g_strndup(*part, (gsize)(colon - *part));
        if (replace || !g_hash_table_contains(current, key))
            g_hash_table_insert(current, g_steal_pointer(&key), g_strdup(colon + 1));
    }
}

static bool differs(GHashTable *current, const char *note)
{
    g_auto(GStrv) parts = g_strsplit(note, " ", -1);
    for (char **part = parts; *part != NULL; part++) {
        char *colon = strrchr(*part, ':');
        if (colon == NULL)
            continue;
        *colon = '\0';
        const char *now = g_hash_table_lookup(current, *part);
        if (now != NULL && strcmp(now, colon + 1) != 0)
            return true;
    }
    return false;
}

/* What --set has changed may be what the file says by now, and is said anyway. */
static GHashTable *changed_points(struct results_db *db, const char *scenario_name)
{
    GHashTable *changed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    struct results_cursor *cursor = results_noted_points(db, scenario_name, RESULT_NOTE_CHANGES);
    for (const struct results_quantity *row; (row = results_next_quantity(cursor)) != NULL;)
        g_hash_table_add(changed, g_strdup(row->name));
    cli_end(cursor);
    return changed;
}

GPtrArray *result_older_points(struct results_db *db, const char *scenario_name,
                               struct scenario *scenario)
{
    GPtrArray *older = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GHashTable) current = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GHashTable) notes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GPtrArray) order = g_ptr_array_new(); /* points, freed below */
    struct results_cursor *cursor = results_noted_points(db, scenario_name, RESULT_NOTE_TEXT);
    for (size_t i = 0; scenario != NULL && i < scenario_n_points(scenario); i++) {
        g_autofree char *digest = scenario_digest(scenario, i);
        take_parts(current, digest, true);
    }
    for (const struct results_quantity *row; (row = results_next_quantity(cursor)) != NULL;) {
        take_parts(current, row->unit, scenario == NULL); /* the newest come last */
        if (!g_hash_table_contains(notes, row->name))
            g_ptr_array_add(order, g_strdup(row->name));
        g_hash_table_insert(notes, g_strdup(row->name), g_strdup(row->unit));
    }
    cli_end(cursor);
    g_autoptr(GHashTable) changed = changed_points(db, scenario_name);
    for (guint i = 0; i < order->len; i++) {
        g_autofree char *point = order->pdata[i];
        if (!g_hash_table_contains(changed, point) &&
            differs(current, g_hash_table_lookup(notes, point)))
            g_ptr_array_add(older, g_steal_pointer(&point));
    }
    return older;
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *result_older(struct results_db *db, const char *scenario_name, struct scenario *scenario)
{
    g_autoptr(GPtrArray) older = result_older_points(db, scenario_name, scenario);
    unsigned n_points = 0;
    if (older->len == 0)
        return NULL;
    struct results_cursor *cursor = results_points(db, scenario_name);
    while (results_next_name(cursor) != NULL)
        n_points++;
    cli_end(cursor);
    GString *text = g_string_new(NULL);
    g_ptr_array_sort(older, by_name);
    g_string_printf(text, "%u of %u points", older->len, n_points);
    for (guint i = 0; i < older->len && i < NAMES_SHOWN && older->len < n_points; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? "; " : ": ", (char *)older->pdata[i]);
    if (older->len > NAMES_SHOWN && older->len < n_points)
        g_string_append_printf(text, "; and %u more", older->len - NAMES_SHOWN);
    return g_string_free(text, FALSE);
}

char *result_older_by_name(struct results_db *db, const char *scenario_name, char **roots)
{
    struct sim_error_list errors = { 0 };
    struct scenario *scenario = scenario_load(scenario_name, (const char *const *)roots, NULL,
                                              &errors);
    char *text = result_older(db, scenario_name, errors.n_messages == 0 ? scenario : NULL);
    scenario_free(scenario);
    sim_error_release(&errors);
    return text;
}
