/*
 * Points: the combinations of axis values, less those that a constraint leaves out. Axes in
 * lock-step take the value of the same number; all others are independent of each other.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/config/scenario_internal.h"

#define MAX_POINTS 1000000

/* ---- As a table for filters ------------------------------------------------------------------ */

static const char *table_axis(const void *scenario, size_t axis)
{
    return scenario_axis_name(scenario, axis);
}

/* By the setting's name, or by the axis' own. */
static const struct unit *table_unit(const void *context, size_t a)
{
    const struct scenario *scenario = context;
    const struct axis *axis = scenario->axes->pdata[a];

    return param_unit_in_name(axis->setting ? axis->setting : axis->name);
}

static const char *table_value(const void *scenario, size_t axis, size_t value)
{
    return value < scenario_axis_n_values(scenario, axis)
               ? scenario_axis_value(scenario, axis, value)
               : NULL;
}

static size_t table_point_value(const void *scenario, size_t point, size_t axis)
{
    return scenario_point_value(scenario, point, axis);
}

struct filter_table scenario_table(const struct scenario *scenario)
{
    return (struct filter_table){ .title = scenario->name,
                                  .complete = true,
                                  .n_axes = scenario->axes->len,
                                  .n_points = scenario->n_points,
                                  .context = scenario,
                                  .axis = table_axis,
                                  .unit = table_unit,
                                  .value = table_value,
                                  .point_value = table_point_value };
}

static const char *table_file_value(const void *context, size_t a, size_t value)
{
    const struct scenario *scenario = context;
    const struct axis *axis = scenario->axes->pdata[a];

    if (value < axis->values->len || !axis->replaced)
        return table_value(scenario, a, value);
    value -= axis->values->len;
    return value < axis->replaced->len
               ? ((const struct axis_value *)axis->replaced->pdata[value])->label
               : NULL;
}

struct filter_table scenario_file_table(const struct scenario *scenario)
{
    struct filter_table table = scenario_table(scenario);

    table.value = table_file_value;
    return table;
}

/* ---- Constraints ----------------------------------------------------------------------------- */

struct filter *scenario_read_filter(struct scenario *scenario, struct config_node *node,
                                    struct sim_error_list *errors)
{
    const struct filter_table table = scenario_table(scenario);
    struct filter *filter;
    g_autofree char *fault = NULL;

    if (!config_expect(node, CONFIG_STRING, errors, "a string \"axis>value || axis=value\""))
        return NULL;
    filter = filter_parse(node->string, &fault);
    if (filter)
        fault = filter_fault(filter, &table, 1);
    if (!fault)
        return filter;
    sim_error_add(errors, node->place.file, node->place.line, "%s: %s", node->path, fault);
    filter_free(filter);
    return NULL;
}

void scenario_read_constraints(struct scenario *scenario, struct sim_error_list *errors)
{
    struct config_node *list = config_get(scenario->base->root, "constraints");

    if (!config_expect(list, CONFIG_LIST, errors, "a list, ( \"axis>value || axis=value\", ... )"))
        return;
    for (unsigned i = 0; i < config_count(list); i++) {
        struct filter *filter = scenario_read_filter(scenario, config_child(list, i), errors);

        if (filter)
            g_ptr_array_add(scenario->constraints, filter);
    }
}

/* ---- Making points --------------------------------------------------------------------------- */

/* How many combinations there are; 1 with a message if there are too many. */
static size_t count_combinations(const struct scenario *scenario, struct sim_error_list *errors)
{
    size_t n = 1;

    for (size_t a = 0; a < scenario->axes->len; a++) {
        if (scenario_axis_leader(scenario, a) != a)
            continue;
        n *= scenario_axis_n_values(scenario, a);
        if (n > MAX_POINTS) {
            sim_error_add(errors, scenario->path, 0, "the axes have more than %d points",
                          MAX_POINTS);
            return 1;
        }
    }
    return n;
}

static void fill_points(struct scenario *scenario)
{
    size_t n_axes = scenario->axes->len;

    for (size_t point = 0; point < scenario->n_points; point++) {
        size_t rest = point, *values = scenario->points + point * n_axes;

        for (size_t a = n_axes; a-- > 0;) {
            size_t n_values = scenario_axis_n_values(scenario, a);

            if (scenario_axis_leader(scenario, a) == a) {
                values[a] = rest % n_values;
                rest /= n_values;
            }
        }
        for (size_t a = 0; a < n_axes; a++) /* a leader stands before those that follow it */
            values[a] = values[scenario_axis_leader(scenario, a)];
    }
}

static void apply_constraints(struct scenario *scenario, struct sim_error_list *errors)
{
    size_t n_axes = scenario->axes->len, n_left = 0;
    const struct filter_table table = scenario_table(scenario);
    g_autofree bool *selected = g_new(bool, scenario->n_points);

    memset(selected, true, scenario->n_points * sizeof(*selected));
    for (guint i = 0; i < scenario->constraints->len; i++)
        filter_apply(scenario->constraints->pdata[i], &table, selected);
    for (size_t point = 0; point < scenario->n_points; point++) {
        if (selected[point])
            memmove(scenario->points + n_left++ * n_axes, scenario->points + point * n_axes,
                    n_axes * sizeof(*scenario->points));
    }
    if (n_left == 0)
        sim_error_add(errors, scenario->path, 0, "the constraints leave no point");
    else
        scenario->n_points = n_left;
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void name_points(struct scenario *scenario)
{
    size_t n_axes = scenario->axes->len;
    g_autofree const char **sorted = g_new0(const char *, n_axes + 1);

    for (size_t a = 0; a < n_axes; a++)
        sorted[a] = scenario_axis_name(scenario, a);
    qsort(sorted, n_axes, sizeof(*sorted), by_name);
    scenario->point_names = g_new0(char *, scenario->n_points + 1);
    for (size_t point = 0; point < scenario->n_points; point++) {
        GString *name = g_string_new(NULL);

        for (size_t i = 0; i < n_axes; i++) {
            size_t a = scenario_axis_find(scenario, sorted[i]);

            g_string_append_printf(
                name, "%s%s=%s", i ? " " : "", sorted[i],
                scenario_axis_value(scenario, a, scenario_point_value(scenario, point, a)));
        }
        scenario->point_names[point] = g_string_free(name, FALSE);
    }
}

/* One point of the first values where axes do not fit together: there is a message then. */
void scenario_make_points(struct scenario *scenario, struct sim_error_list *errors)
{
    bool fits = scenario_check_leaders(scenario, errors);

    scenario->n_points = fits ? count_combinations(scenario, errors) : 1;
    scenario->points = g_new0(size_t, scenario->n_points * SIM_MAX(scenario->axes->len, (guint)1));
    if (fits) {
        fill_points(scenario);
        if (scenario->constraints->len > 0)
            apply_constraints(scenario, errors);
    }
    scenario_match_where(scenario, fits ? errors : NULL);
    name_points(scenario);
}

/* ---- Reading them ---------------------------------------------------------------------------- */

size_t scenario_point_value(const struct scenario *scenario, size_t point, size_t axis)
{
    SIM_ASSERT(point < scenario->n_points && axis < scenario->axes->len, "point %zu, axis %zu",
               point, axis);
    return scenario->points[point * scenario->axes->len + axis];
}

bool scenario_has_quick(const struct scenario *scenario)
{
    for (size_t a = 0; a < scenario->axes->len; a++) {
        const struct axis *axis = scenario->axes->pdata[a];
        if (axis->quick)
            return true;
    }
    return false;
}

bool scenario_point_is_quick(const struct scenario *scenario, size_t point)
{
    for (size_t a = 0; a < scenario->axes->len; a++) {
        const struct axis *axis = scenario->axes->pdata[a];
        size_t value = scenario_point_value(scenario, point, a);

        if (axis->quick && !g_strv_contains((const char *const *)axis->quick,
                                            scenario_axis_value(scenario, a, value)))
            return false;
    }
    return true;
}
