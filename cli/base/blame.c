/*
 * Which --set makes a mistake: the point is built once more without each of them, and if none of
 * these takes the mistake away, with each of them alone. What brings other mistakes tells nothing.
 */
#include "cli/base/blame.h"

#include <string.h>

#include "workloads/experiment.h"

#define SHOWN 60 /* characters of a --set */

struct question {
    const struct scenario *scenario;
    size_t point;
    const struct sim_error_list *errors; /* of the point */
    GHashTable *places;                  /* of each of them; "": none yet */
};

/* ---- Building the point with other --set ----------------------------------------------------- */

enum which { WITHOUT, ALONE };

static bool has(const struct sim_error_list *errors, const char *message)
{
    bool found = false;
    for (size_t i = 0; i < errors->n_messages && !found; i++)
        found = strcmp(errors->message[i], message) == 0;
    return found;
}

static bool is_of_axis(const char *set)
{
    return g_str_has_prefix(set, "axes.");
}

/* Number `i` of the sets can make a mistake of a point, and none before it is the same. */
static bool counts(const char *const *sets, size_t i)
{
    bool first = true;
    for (size_t k = 0; k < i && first; k++)
        first = strcmp(sets[k], sets[i]) != 0;
    return first && !is_of_axis(sets[i]);
}

/* The point of that name; NULL: there is none, or it cannot be made. */
static struct config *point_named(struct scenario *scenario, const char *name,
                                  struct sim_error_list *errors)
{
    const size_t point = scenario != NULL ? scenario_point_find(scenario, name) : 0;
    const bool found = scenario != NULL && point < scenario_n_points(scenario);
    return found ? scenario_point(scenario, point, errors) : NULL;
}

/* The point's mistakes without the --set, or with it alone, and NULL with none; those of axes are
 * always there. The caller releases them. False: there are others than those in question. */
static bool find_mistakes(const struct question *q, enum which which, const char *set,
                          struct sim_error_list *found)
{
    g_autoptr(GPtrArray) sets = g_ptr_array_new();
    for (const char *const *all = scenario_sets(q->scenario); *all != NULL; all++)
        if (is_of_axis(*all) || (set != NULL && strcmp(*all, set) == 0) == (which == ALONE))
            g_ptr_array_add(sets, (gpointer)(uintptr_t)*all);
    g_ptr_array_add(sets, NULL);
    struct scenario *other = scenario_with_sets(q->scenario, (const char *const *)sets->pdata,
                                                found);
    struct config *config = point_named(other, scenario_point_name(q->scenario, q->point), found);
    bool good = config != NULL;
    if (good)
        experiment_check(config, found);
    for (size_t i = 0; i < found->n_messages && good; i++)
        good = has(q->errors, found->message[i]);
    config_free(config);
    scenario_free(other);
    return good;
}

/* ---- Places ---------------------------------------------------------------------------------- */

/* The message names the option already, or the line of the file that "@FILE" is. */
static bool names_set(const char *message, const char *set)
{
    const char *colon = strchr(message, ':');
    if (g_str_has_prefix(message, "--"))
        return true;
    if (*set != '@' || colon == NULL)
        return false;
    g_autofree char *file = g_strndup(message, (gsize)(colon - message));
    g_autofree char *found = g_path_get_basename(file), *given = g_path_get_basename(set + 1);
    return strcmp(found, given) == 0;
}

static void append_option(GString *text, const char *set)
{
    const bool cut = g_utf8_strlen(set, -1) > SHOWN;
    const int n = cut ? (int)(g_utf8_offset_to_pointer(set, SHOWN) - set) : (int)strlen(set);
    g_string_append_printf(text, "%s--set %.*s%s", text->len > 0 ? ", " : "", n, set,
                           cut ? "..." : "");
}

/* WITHOUT: the mistakes that go with the --set. ALONE: of those in `open`, the ones it makes. */
static void blame(const struct question *q, enum which which, const char *set, GHashTable *open)
{
    struct sim_error_list found = { 0 };
    const bool good = find_mistakes(q, which, set, &found);
    for (size_t i = 0; i < q->errors->n_messages && good; i++) {
        const char *message = q->errors->message[i];
        if (!names_set(message, set) && has(&found, message) == (which == ALONE) &&
            (open == NULL || g_hash_table_contains(open, message)))
            append_option(g_hash_table_lookup(q->places, message), set);
    }
    sim_error_release(&found);
}

static void find_places(const struct question *q)
{
    const char *const *sets = scenario_sets(q->scenario);
    g_autoptr(GHashTable) open = g_hash_table_new(g_str_hash, g_str_equal);
    struct sim_error_list none = { 0 };
    for (size_t i = 0; sets[i] != NULL; i++)
        if (counts(sets, i))
            blame(q, WITHOUT, sets[i], NULL);
    if (find_mistakes(q, ALONE, NULL, &none)) {
        for (size_t i = 0; i < q->errors->n_messages; i++) {
            char *message = q->errors->message[i];
            const GString *place = g_hash_table_lookup(q->places, message);
            if (place->len == 0 && !has(&none, message))
                g_hash_table_add(open, message);
        }
    }
    for (size_t i = 0; sets[i] != NULL && g_hash_table_size(open) > 0; i++)
        if (counts(sets, i))
            blame(q, ALONE, sets[i], open);
    sim_error_release(&none);
}

static void free_place(gpointer place)
{
    g_string_free(place, TRUE);
}

GHashTable *cli_places_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_place);
}

void cli_blame_sets(const struct scenario *scenario, size_t point, GHashTable *places,
                    struct sim_error_list *errors)
{
    const struct question question = { scenario, point, errors, cli_places_new() };
    bool fresh = false;
    for (size_t i = 0; i < errors->n_messages; i++) {
        const char *message = errors->message[i];
        fresh = fresh ||
                (!g_str_has_prefix(message, "--") && !g_hash_table_contains(places, message));
        g_hash_table_insert(question.places, g_strdup(message), g_string_new(NULL));
    }
    if (fresh && scenario_sets(scenario) != NULL && *scenario_sets(scenario) != NULL)
        find_places(&question);
    for (size_t i = 0; i < errors->n_messages; i++) {
        const char *message = errors->message[i];
        const GString *place = g_hash_table_lookup(fresh ? question.places : places, message);
        if (fresh)
            g_hash_table_insert(places, g_strdup(message), g_string_new(place->str));
        if (place != NULL && place->len > 0)
            sim_error_set_place(errors, i, place->str);
    }
    g_hash_table_destroy(question.places);
}

struct config *cli_checked_point(struct scenario *scenario, size_t point,
                                 struct sim_error_list *errors)
{
    struct sim_error_list own = { 0 };
    struct config *config = scenario_point(scenario, point, &own);
    if (config == NULL || !experiment_check(config, &own)) {
        g_autoptr(GHashTable) places = cli_places_new();
        config_free(config);
        config = NULL;
        cli_blame_sets(scenario, point, places, &own);
    }
    sim_error_move(errors, &own);
    return config;
}
