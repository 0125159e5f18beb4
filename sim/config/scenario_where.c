/* Settings of some points: where = ( { points = "buffer_bytes>=512"; set = ( "path=value" ); } ). */
#include <string.h>

#include "sim/config/scenario_internal.h"

void where_free(gpointer data)
{
    struct where *where = data;

    filter_free(where->filter);
    axis_value_free(where->value);
    g_free(where->origin);
    g_free(where->holds);
    g_free(where);
}

/* What an axis sets, it sets in all points. */
static void refuse_axes(const struct scenario *scenario, const struct where *where,
                        struct sim_error_list *errors)
{
    for (guint i = 0; i < where->value->assignments->len; i++) {
        const struct assignment *set = where->value->assignments->pdata[i];
        const char *axis = scenario_axis_of_setting(scenario, set->path);

        if (axis)
            sim_error_add(errors, set->place.file, set->place.line, "%s: set by the axis %s",
                          set->path, axis);
    }
}

static void read_one(struct scenario *scenario, struct config_node *node,
                     struct sim_error_list *errors)
{
    static const char *const keys[] = { "points", "set", NULL };

    if (node->kind != CONFIG_GROUP) {
        config_mistake(node, errors, "{ points = \"axis>value\"; set = ( \"path=value\" ); }",
                       NULL);
        return;
    }
    config_allow(node, keys);
    struct config_node *points = config_get(node, "points"), *sets = config_get(node, "set");

    if (!points || !sets) {
        sim_error_add(errors, node->place.file, node->place.line,
                      "%s: no %s; expected { points = \"axis>value\"; set = ( \"path=value\" ); }",
                      node->path, points ? "set" : "points");
        config_mark_read(node);
        return;
    }
    struct filter *filter = scenario_read_filter(scenario, points, errors);

    if (!filter) {
        config_mark_read(sets);
        return;
    }
    struct where *where = g_new0(struct where, 1);
    where->origin = g_strconcat("where ", points->string, NULL);
    where->place = points->place;
    where->filter = filter;
    where->value = axis_value_new(points->string);
    g_ptr_array_add(scenario->where, where);
    axis_value_read_sets(scenario, where->value, sets, errors);
    refuse_axes(scenario, where, errors);
}

void scenario_read_where(struct scenario *scenario, struct sim_error_list *errors)
{
    struct config_node *list = config_get(scenario->base->root, "where");

    if (!config_expect(list, CONFIG_LIST, errors,
                       "a list, ( { points = \"axis>value\"; set = ( \"path=value\" ); }, ... )"))
        return;
    for (unsigned i = 0; i < config_count(list); i++)
        read_one(scenario, config_child(list, i), errors);
    config_check_unknown_below(list, errors);
}

static bool any_axis_replaced(const struct scenario *scenario)
{
    for (guint i = 0; i < scenario->axes->len; i++)
        if (((const struct axis *)scenario->axes->pdata[i])->replaced)
            return true;
    return false;
}

void scenario_match_where(struct scenario *scenario, struct sim_error_list *errors)
{
    const struct filter_table table = scenario_table(scenario);

    for (guint i = 0; i < scenario->where->len; i++) {
        struct where *where = scenario->where->pdata[i];

        where->holds = g_new(bool, scenario->n_points);
        memset(where->holds, true, scenario->n_points * sizeof(*where->holds));
        filter_apply(where->filter, &table, where->holds);
        /* --set may have left only points for which it does not hold */
        if (errors && !any_axis_replaced(scenario) &&
            !memchr(where->holds, true, scenario->n_points * sizeof(*where->holds)))
            sim_error_add(errors, where->place.file, where->place.line,
                          "where: \"%s\" holds for no point", where->value->label);
    }
}

bool scenario_where_sets(const struct scenario *scenario, const char *path)
{
    for (guint i = 0; i < scenario->where->len; i++) {
        const struct axis_value *value = ((const struct where *)scenario->where->pdata[i])->value;

        for (guint k = 0; k < value->assignments->len; k++)
            if (config_paths_overlap(
                    ((const struct assignment *)value->assignments->pdata[k])->path, path))
                return true;
    }
    return false;
}
