/* Reads results out of the database, the axes of each point apart. */
#include <math.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/point_name.h"
#include "cli/results/result_set.h"
#include "sim/config/filter.h"
#include "sim/config/param.h"

/* ---- Memory ---------------------------------------------------------------------------------- */

static void clear_quantity(gpointer pointer)
{
    struct result_quantity *quantity = pointer;
    g_free(quantity->name);
    g_free(quantity->unit);
}

static void free_point(gpointer pointer)
{
    struct result_point *point = pointer;
    if (point == NULL)
        return;
    g_free(point->name);
    g_strfreev(point->axis);
    g_free(point->rank);
    g_free(point->values);
    g_free(point->changes);
    g_free(point);
}

static void free_array(gpointer array)
{
    g_ptr_array_free(array, TRUE);
}

void result_set_free(struct result_set *set)
{
    g_free(set->scenario);
    g_ptr_array_free(set->axes, TRUE);
    g_ptr_array_free(set->values, TRUE);
    g_array_free(set->metrics, TRUE);
    g_hash_table_destroy(set->by_name);
    g_ptr_array_free(set->points, TRUE);
    g_free(set);
}

static void free_set(gpointer set)
{
    result_set_free(set);
}

static struct result_set *new_set(const char *scenario)
{
    struct result_set *set = g_new0(struct result_set, 1);
    set->scenario = g_strdup(scenario);
    set->axes = g_ptr_array_new_with_free_func(g_free);
    set->values = g_ptr_array_new_with_free_func(free_array);
    set->metrics = g_array_new(FALSE, FALSE, sizeof(struct result_quantity));
    g_array_set_clear_func(set->metrics, clear_quantity);
    set->points = g_ptr_array_new_with_free_func(free_point);
    set->by_name = g_hash_table_new(g_str_hash, g_str_equal);
    return set;
}

/* ---- Names ----------------------------------------------------------------------------------- */

static char **stored_scenarios(struct results_db *db)
{
    GPtrArray *names = g_ptr_array_new();
    struct results_cursor *cursor = results_scenarios(db);
    for (const char *name; (name = results_next_name(cursor)) != NULL;)
        g_ptr_array_add(names, g_strdup(name));
    cli_end(cursor);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

/* By name, by wildcards, or by the folder that it is in. */
static bool means(const char *asked, const char *scenario)
{
    const size_t n = strlen(asked);
    return g_pattern_match_simple(asked, scenario) || (n > 0 && strncmp(asked, scenario, n) == 0 &&
                                                       (asked[n - 1] == '/' || scenario[n] == '/'));
}

/* Scenarios that have runs, but none that is done; sorted, owned. */
static GPtrArray *failed_scenarios(struct results_db *db)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    struct results_cursor *cursor = results_failed_scenarios(db);
    for (const char *name; (name = results_next_name(cursor)) != NULL;)
        g_ptr_array_add(names, g_strdup(name));
    cli_end(cursor);
    return names;
}

bool result_all_failed(struct results_db *db, const char *scenario)
{
    g_autoptr(GPtrArray) names = failed_scenarios(db);
    return g_ptr_array_find_with_equal_func(names, scenario, g_str_equal, NULL);
}

/* Moves those of the failed ones that are asked for to choice->failed; true if there are some. */
static bool choose_failed(GPtrArray *failed, const char *asked, const struct result_choice *choice)
{
    bool any = false;
    for (guint i = 0; choice->failed != NULL && i < failed->len; i++) {
        const char *name = failed->pdata[i];
        if (!means(asked, name))
            continue;
        any = true;
        if (!g_ptr_array_find_with_equal_func(choice->failed, name, g_str_equal, NULL))
            g_ptr_array_add(choice->failed, g_strdup(name));
    }
    return any;
}

/* Takes those out of the list that are not asked for. */
static void choose_scenarios(char **names, GPtrArray *failed, const struct result_choice *choice,
                             struct sim_error_list *errors)
{
    g_autofree bool *wanted = g_new0(bool, g_strv_length(names) + 1);
    for (char **a = choice->scenarios; *a != NULL; a++) {
        bool any = choose_failed(failed, *a, choice);
        for (size_t i = 0; names[i] != NULL; i++) {
            const bool meant = means(*a, names[i]);
            wanted[i] = wanted[i] || meant;
            any = any || meant;
        }
        if (any)
            continue;
        if (g_ptr_array_find_with_equal_func(failed, *a, g_str_equal, NULL)) {
            sim_error_add(errors, NULL, 0, "no results of %s: all runs have failed", *a);
            continue;
        }
        g_autofree char *suggestion = sim_suggestion(*a, (const char *const *)names);
        sim_error_add(errors, NULL, 0, "no results of a scenario \"%s\"%s%s", *a,
                      *suggestion != '\0' ? "; " : "", suggestion);
    }
    size_t n = 0;
    for (size_t i = 0; names[i] != NULL; i++) {
        char *name = names[i];
        names[i] = NULL;
        if (wanted[i])
            names[n++] = name;
        else
            g_free(name);
    }
}

static void add_point(struct result_set *set, const char *name)
{
    struct result_point *point = g_new0(struct result_point, 1);
    point->name = g_strdup(name);
    g_ptr_array_add(set->points, point);
    g_hash_table_insert(set->by_name, point->name, point);
}

static void find_points(struct result_set *set, struct results_db *db)
{
    struct results_cursor *cursor = results_points(db, set->scenario);
    for (const char *name; (name = results_next_name(cursor)) != NULL;)
        add_point(set, name);
    cli_end(cursor);
}

static void add_metric(struct result_set *set, const struct results_quantity *stored)
{
    const struct result_quantity quantity = { g_strdup(stored->name), g_strdup(stored->unit) };
    g_array_append_val(set->metrics, quantity);
}

static bool is_interval(const char *metric)
{
    return g_str_has_suffix(metric, ".ci95");
}

static bool is_asked_for(const char *metric, char **patterns, bool *used)
{
    bool asked = patterns == NULL;
    for (size_t i = 0; patterns != NULL && patterns[i] != NULL; i++) {
        const bool matches = g_pattern_match_simple(patterns[i], metric);
        used[i] = used[i] || matches;
        asked = asked || matches;
    }
    return asked;
}

/* Intervals stand beside what they belong to and are no metrics of their own here. */
static void find_metrics(struct result_set *set, struct results_db *db, char **patterns, bool *used,
                         GHashTable *all)
{
    struct results_cursor *cursor = results_quantities(db, set->scenario);
    for (const struct results_quantity *q; (q = results_next_quantity(cursor)) != NULL;) {
        if (is_interval(q->name))
            continue;
        if (!g_hash_table_contains(all, q->name))
            g_hash_table_add(all, g_strdup(q->name));
        if (is_asked_for(q->name, patterns, used))
            add_metric(set, q);
    }
    cli_end(cursor);
}

static void check_metrics(char **patterns, const bool *used, GHashTable *all,
                          struct sim_error_list *errors)
{
    g_autofree char **names = (char **)g_hash_table_get_keys_as_array(all, NULL);
    for (size_t i = 0; patterns != NULL && patterns[i] != NULL; i++) {
        if (used[i])
            continue;
        g_autofree char *suggestion = sim_suggestion(patterns[i], (const char *const *)names);
        sim_error_add(errors, NULL, 0, "--metric: no metric \"%s\"%s%s", patterns[i],
                      *suggestion != '\0' ? "; " : "", suggestion);
    }
}

/* ---- Axes ------------------------------------------------------------------------------------ */

static int by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The order of a file is by place in it, else by value. */
struct value_order {
    const char *axis;
    GHashTable *places; /* value -> place; NULL: by value */
};

static int by_value(gconstpointer a, gconstpointer b, gpointer pointer)
{
    const struct value_order *order = pointer;
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    if (order->places == NULL)
        return point_value_compare(order->axis, x, y);
    return GPOINTER_TO_INT(g_hash_table_lookup(order->places, x)) -
           GPOINTER_TO_INT(g_hash_table_lookup(order->places, y));
}

/* Of the values of an axis in the scenario; NULL if it has not got all of them. */
static GHashTable *places_of(const struct scenario *scenario, const char *axis,
                             const GPtrArray *values)
{
    const size_t i = scenario != NULL ? scenario_axis_find(scenario, axis) : 0;
    if (scenario == NULL || i == scenario_n_axes(scenario))
        return NULL;
    GHashTable *places = g_hash_table_new(g_str_hash, g_str_equal);
    for (size_t v = scenario_axis_n_values(scenario, i); v-- > 0;)
        g_hash_table_replace(places, (gpointer)scenario_axis_value(scenario, i, v),
                             GINT_TO_POINTER((int)v));
    bool whole = true;
    for (guint v = 0; v < values->len; v++)
        whole = whole && g_hash_table_contains(places, values->pdata[v]);
    if (!whole)
        g_clear_pointer(&places, g_hash_table_destroy);
    return places;
}

static int by_rank(gconstpointer a, gconstpointer b, gpointer pointer)
{
    const struct result_set *set = pointer;
    const struct result_point *x = *(const struct result_point *const *)a;
    const struct result_point *y = *(const struct result_point *const *)b;
    guint i = 0;
    while (i + 1 < set->axes->len && x->rank[i] == y->rank[i])
        i++;
    return set->axes->len == 0 ? 0 : (x->rank[i] > y->rank[i]) - (x->rank[i] < y->rank[i]);
}

/* Each different value of an axis is read as a number a few times only, however many points. */
static void rank_values(struct result_set *set, guint axis, const struct scenario *scenario)
{
    g_autoptr(GHashTable) ranks = g_hash_table_new(g_str_hash, g_str_equal);
    GPtrArray *values = g_ptr_array_new(); /* the points' */
    for (guint i = 0; i < set->points->len; i++) {
        char *value = ((struct result_point *)set->points->pdata[i])->axis[axis];
        if (g_hash_table_add(ranks, value))
            g_ptr_array_add(values, value);
    }
    const char *name = set->axes->pdata[axis];
    struct value_order order = { name, places_of(scenario, name, values) };
    g_ptr_array_sort_with_data(values, by_value, &order);
    if (order.places != NULL)
        g_hash_table_destroy(order.places);
    for (guint i = 0; i < values->len; i++)
        g_hash_table_replace(ranks, values->pdata[i], GUINT_TO_POINTER(i));
    for (guint i = 0; i < set->points->len; i++) {
        struct result_point *point = set->points->pdata[i];
        point->rank[axis] = GPOINTER_TO_UINT(g_hash_table_lookup(ranks, point->axis[axis]));
    }
    g_ptr_array_add(set->values, values);
}

static int by_place(gconstpointer a, gconstpointer b, gpointer pointer)
{
    const struct scenario *scenario = pointer;
    const size_t x = scenario_axis_find(scenario, *(const char *const *)a);
    const size_t y = scenario_axis_find(scenario, *(const char *const *)b);
    return x != y ? (x > y) - (x < y) : by_text(a, b);
}

/* The union of the axes of all points: a scenario may have gained one. scenario: whose order they
 * get; NULL: by name and value. */
static void split_axes(struct result_set *set, const struct scenario *scenario)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    g_autofree char ***split = g_new0(char **, set->points->len + 1);
    g_ptr_array_set_size(set->values, 0);
    g_ptr_array_set_size(set->axes, 0);
    for (guint i = 0; i < set->points->len; i++) {
        split[i] = point_split(((struct result_point *)set->points->pdata[i])->name);
        for (char **pair = split[i]; *pair != NULL; pair += 2) {
            if (g_hash_table_add(seen, pair[0]))
                g_ptr_array_add(set->axes, g_strdup(pair[0]));
        }
    }
    if (scenario != NULL)
        g_ptr_array_sort_with_data(set->axes, by_place, (gpointer)scenario);
    else
        g_ptr_array_sort(set->axes, by_text);
    for (guint i = 0; i < set->points->len; i++) {
        struct result_point *point = set->points->pdata[i];
        g_strfreev(point->axis);
        g_free(point->rank);
        point->axis = g_new0(char *, set->axes->len + 1);
        point->rank = g_new0(guint, set->axes->len + 1);
        for (guint a = 0; a < set->axes->len; a++) {
            const char *value = "";
            for (char **pair = split[i]; *pair != NULL; pair += 2)
                value = strcmp(pair[0], set->axes->pdata[a]) == 0 ? pair[1] : value;
            point->axis[a] = g_strdup(value);
        }
    }
    for (guint i = 0; i < set->points->len; i++)
        g_strfreev(split[i]);
    for (guint a = 0; a < set->axes->len; a++)
        rank_values(set, a, scenario);
    g_ptr_array_sort_with_data(set->points, by_rank, set);
}

/* ---- Filters --------------------------------------------------------------------------------- */

static const char *table_axis(const void *context, size_t axis)
{
    const struct result_set *set = context;
    return set->axes->pdata[axis];
}

static const struct unit *table_unit(const void *context, size_t axis)
{
    return param_unit_in_name(table_axis(context, axis));
}

static const char *table_value(const void *context, size_t axis, size_t value)
{
    const struct result_set *set = context;
    const GPtrArray *values = set->values->pdata[axis];
    return value < values->len ? values->pdata[value] : NULL;
}

static size_t table_point_value(const void *context, size_t point, size_t axis)
{
    const struct result_set *set = context;
    const struct result_point *row = set->points->pdata[point];
    return *row->axis[axis] != '\0' ? row->rank[axis] : SIZE_MAX;
}

static struct filter_table table_of(const struct result_set *set)
{
    return (struct filter_table){ .title = set->scenario,
                                  .n_axes = set->axes->len,
                                  .n_points = set->points->len,
                                  .context = set,
                                  .axis = table_axis,
                                  .unit = table_unit,
                                  .value = table_value,
                                  .point_value = table_point_value };
}

/* Whether each of them means something in one of the sets. */
static bool check_filters(GPtrArray *filters, GPtrArray *sets, struct sim_error_list *errors)
{
    g_autofree struct filter_table *tables = g_new(struct filter_table, sets->len + 1);
    const size_t n_before = errors->n_messages;
    for (guint i = 0; i < sets->len; i++)
        tables[i] = table_of(sets->pdata[i]);
    for (guint i = 0; sets->len > 0 && i < filters->len; i++) {
        g_autofree char *fault = filter_fault(filters->pdata[i], tables, sets->len);
        if (fault != NULL)
            sim_error_add(errors, NULL, 0, "--filter: %s", fault);
    }
    return errors->n_messages == n_before;
}

/* Takes the points away that one of the filters leaves out, and axes that no other point has. */
static void apply_filters(struct result_set *set, GPtrArray *filters)
{
    const struct filter_table table = table_of(set);
    g_autofree bool *selected = g_new(bool, set->points->len + 1);
    memset(selected, true, set->points->len * sizeof(*selected));
    for (guint i = 0; i < filters->len; i++)
        filter_apply(filters->pdata[i], &table, selected);
    g_autoptr(GPtrArray) all = set->points;
    set->points = g_ptr_array_new_with_free_func(free_point);
    g_hash_table_remove_all(set->by_name);
    for (guint i = 0; i < all->len; i++) {
        struct result_point *point = all->pdata[i];
        if (!selected[i])
            continue;
        all->pdata[i] = NULL;
        g_ptr_array_add(set->points, point);
        g_hash_table_insert(set->by_name, point->name, point);
    }
    split_axes(set, NULL);
}

GPtrArray *result_sets_find(struct results_db *db, const struct result_choice *choice,
                            struct sim_error_list *errors)
{
    GPtrArray *sets = g_ptr_array_new_with_free_func(free_set);
    g_autoptr(GHashTable) all = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) filters = cli_filters((const char *const *)choice->filters, "--filter",
                                               errors);
    g_autofree bool *used =
        g_new0(bool, choice->metrics != NULL ? g_strv_length(choice->metrics) + 1 : 1);
    const bool good = errors->n_messages == 0;
    const bool chosen = choice->scenarios != NULL && *choice->scenarios != NULL;
    g_auto(GStrv) names = stored_scenarios(db);
    g_autoptr(GPtrArray) failed = failed_scenarios(db);
    if (results_failed(db)) /* then what is missing is no mistake of who asks */
        return sets;
    if (*names == NULL && (failed->len == 0 || !chosen))
        sim_error_add(errors, NULL, 0, "the database has no finished runs");
    else if (chosen)
        choose_scenarios(names, failed, choice, errors);
    for (char **name = names; good && *name != NULL; name++) {
        struct result_set *set = new_set(*name);
        g_ptr_array_add(sets, set);
        find_points(set, db);
        find_metrics(set, db, choice->metrics, used, all);
        split_axes(set, NULL);
    }
    if (results_failed(db))
        return sets;
    if (good && *names != NULL) {
        const bool apply = check_filters(filters, sets, errors) && filters->len > 0;
        check_metrics(choice->metrics, used, all, errors);
        for (guint i = 0; apply && i < sets->len; i++)
            apply_filters(sets->pdata[i], filters);
    }
    for (guint i = sets->len; i-- > 0;) {
        const struct result_set *set = sets->pdata[i];
        if (set->points->len == 0 || set->metrics->len == 0)
            g_ptr_array_remove_index(sets, i);
    }
    const bool any_failed = choice->failed != NULL && choice->failed->len > 0;
    if (sets->len == 0 && errors->n_messages == 0 && !any_failed)
        sim_error_add(errors, NULL, 0, "no point meets all conditions");
    return sets;
}

/* By its name, or by how it begins: "latency_part_ns." */
static bool is_named(const char *metric, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (g_str_has_suffix(*names, ".") ? g_str_has_prefix(metric, *names) && !is_interval(metric)
                                          : strcmp(metric, *names) == 0)
            return true;
    }
    return false;
}

struct result_set *result_set_of(struct results_db *db, const char *scenario,
                                 const char *const *metrics)
{
    struct result_set *set = new_set(scenario);
    struct results_cursor *cursor = results_quantities(db, scenario);
    for (const struct results_quantity *q; (q = results_next_quantity(cursor)) != NULL;) {
        if (metrics != NULL ? is_named(q->name, metrics) : !is_interval(q->name))
            add_metric(set, q);
    }
    cli_end(cursor);
    find_points(set, db);
    split_axes(set, NULL);
    return set;
}

void result_set_keep_points(struct result_set *set, const char *const *names)
{
    g_hash_table_remove_all(set->by_name);
    g_ptr_array_set_size(set->points, 0);
    for (; *names != NULL; names++)
        add_point(set, *names);
    split_axes(set, NULL);
}

void result_set_order_as(struct result_set *set, const struct scenario *scenario)
{
    split_axes(set, scenario);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static bool read_metric(struct result_set *set, guint metric, struct results_db *db)
{
    const struct result_quantity *quantity = result_metric(set, metric);
    struct results_cursor *cursor = results_values(db, set->scenario, quantity->name,
                                                   quantity->unit);
    for (const struct results_value *v; (v = results_next_value(cursor)) != NULL;) {
        struct result_point *point = result_set_point(set, v->point);
        if (point != NULL)
            point->values[metric] = (struct result_value){ v->mean, v->ci95, (int)v->n };
    }
    return cli_end(cursor);
}

static bool read_overtaken(struct result_set *set, struct results_db *db)
{
    struct results_cursor *cursor = results_overtaken(db, set->scenario);
    for (const char *name; (name = results_next_name(cursor)) != NULL;) {
        struct result_point *point = result_set_point(set, name);
        if (point != NULL)
            point->overtaken = true;
    }
    return cli_end(cursor);
}

static bool read_changes(struct result_set *set, struct results_db *db)
{
    struct results_cursor *cursor = results_noted_points(db, set->scenario, RESULT_NOTE_CHANGES);
    for (const struct results_quantity *row; (row = results_next_quantity(cursor)) != NULL;) {
        struct result_point *point = result_set_point(set, row->name);
        if (point != NULL) {
            g_free(point->changes);
            point->changes = g_strdup(row->unit);
        }
    }
    return cli_end(cursor);
}

bool result_set_read(struct result_set *set, struct results_db *db)
{
    bool good = read_overtaken(set, db) && read_changes(set, db);
    for (guint i = 0; i < set->points->len; i++) {
        struct result_point *point = set->points->pdata[i];
        g_free(point->values);
        point->values = g_new0(struct result_value, set->metrics->len);
    }
    for (guint m = 0; good && m < set->metrics->len; m++)
        good = read_metric(set, m, db);
    return good;
}

static unsigned count_names(struct results_cursor *cursor)
{
    unsigned n = 0;
    while (results_next_name(cursor) != NULL)
        n++;
    return cli_end(cursor) ? n : 0;
}

char *result_changes(struct results_db *db, const char *scenario)
{
    GString *text = g_string_new(NULL);
    struct results_cursor *cursor = results_noted(db, scenario, RESULT_NOTE_CHANGES);
    for (const char *change; (change = results_next_name(cursor)) != NULL;)
        g_string_append_printf(text, "%s--set %s", text->len > 0 ? ", " : "", change);
    if (!cli_end(cursor) || text->len == 0)
        return g_string_free(text, TRUE);
    unsigned n_changed = 0;
    cursor = results_noted_points(db, scenario, RESULT_NOTE_CHANGES);
    while (results_next_quantity(cursor) != NULL)
        n_changed++;
    if (cli_end(cursor) && n_changed < count_names(results_points(db, scenario)))
        g_string_append(text, "; at some points only");
    return g_string_free(text, FALSE);
}

char *result_sampled(struct results_db *db, const char *scenario)
{
    g_autoptr(GHashTable) points = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    struct results_cursor *cursor = results_noted_points(db, scenario, RESULT_NOTE_SAMPLED);
    for (const struct results_quantity *row; (row = results_next_quantity(cursor)) != NULL;)
        g_hash_table_add(points, g_strdup(row->name)); /* one for each text */
    const guint n = g_hash_table_size(points);
    if (!cli_end(cursor) || n == 0)
        return NULL;
    GString *text = g_string_new(NULL);
    g_string_printf(text, "%u of %u points", n, count_names(results_points(db, scenario)));
    /* Parts of a series are simulated by a plan, whatever its swings (workloads/base/sampler.c). */
    bool in_parts = false;
    cursor = results_noted(db, scenario, RESULT_NOTE_SAMPLED);
    for (const char *note; (note = results_next_name(cursor)) != NULL;)
        in_parts = in_parts || g_str_has_prefix(note, "series:");
    if (!cli_end(cursor) || in_parts) {
        g_string_append(text, ", parts of their time");
        return g_string_free(text, FALSE);
    }
    const char *before = ", to ";
    cursor = results_noted(db, scenario, "measure.precision_ratio");
    for (const char *ratio; (ratio = results_next_name(cursor)) != NULL; before = ", ") {
        const double value = g_ascii_strtod(ratio, NULL);
        if (value > 0)
            g_string_append_printf(text, "%s%g %%", before, 100 * value);
    }
    cli_end(cursor);
    return g_string_free(text, FALSE);
}

const struct result_value *result_set_value(const struct result_set *set, const char *point,
                                            const char *metric)
{
    const struct result_point *there = result_set_point(set, point);
    for (guint m = set->metrics->len; there != NULL && m-- > 0;) {
        if (there->values[m].n > 0 && strcmp(result_metric(set, m)->name, metric) == 0)
            return &there->values[m];
    }
    return NULL;
}

struct result_point *result_set_point(const struct result_set *set, const char *name)
{
    return g_hash_table_lookup(set->by_name, name);
}

const struct result_quantity *result_metric(const struct result_set *set, guint index)
{
    return &g_array_index(set->metrics, struct result_quantity, index);
}

int result_set_metric(const struct result_set *set, const char *name, const char *unit)
{
    for (guint i = 0; i < set->metrics->len; i++) {
        const struct result_quantity *quantity = result_metric(set, i);
        if (strcmp(quantity->name, name) == 0 && strcmp(quantity->unit, unit) == 0)
            return (int)i;
    }
    return -1;
}

char *result_metric_title(const struct result_quantity *quantity)
{
    return *quantity->unit != '\0' ? g_strdup_printf("%s [%s]", quantity->name, quantity->unit)
                                   : g_strdup(quantity->name);
}

/* What rounds to nothing beside the mean is noise of the arithmetic. */
bool result_value_has_interval(const struct result_value *value)
{
    return value->ci95 > 1e-9 * fabs(value->mean); /* false for NAN */
}

char *result_value_text(const struct result_value *value)
{
    char mean[32];
    if (value->n == 0)
        return g_strdup("-");
    cli_number(value->mean, mean);
    return result_value_has_interval(value) ? g_strdup_printf("%s +-%.2g", mean, value->ci95)
                                            : g_strdup(mean);
}

char *result_point_text(const struct result_point *point, guint metric)
{
    g_autofree char *text = result_value_text(&point->values[metric]);
    return g_strconcat(text, point->overtaken && point->values[metric].n > 0 ? " *" : "", NULL);
}
