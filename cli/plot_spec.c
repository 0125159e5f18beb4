/* Reads the group `plot`: scalars through a parameter table, lists by hand. */
#include <math.h>
#include <string.h>

#include "cli/plot_spec.h"

static const char *const kind_names[] = { "lines", "bars", "stack", NULL };

/* Means "as the values ask for": no figure has such a bound. */
#define FREE 1e300

#define CHOICE(KEY, TYPE, FIELD, DEF, LO, HI, HELP) \
    PARAM(KEY, TYPE, struct plot_spec, FIELD, DEF, LO, HI, PROV_NONE, NULL, HELP)

static const struct param_desc params[] = {
    PARAM_ONE_OF("kind", struct plot_spec, kind, 0, kind_names, PROV_NONE, NULL,
                 "curves, groups of bars, or bars stacked of parts"),
    PARAM_TEXT("title", struct plot_spec, title, "", "default: that of the scenario"),
    PARAM_TEXT("x", struct plot_spec, x, "", "an axis of the scenario, or a metric"),
    PARAM_TEXT("x_label", struct plot_spec, x_label, "", "default: x"),
    PARAM_TEXT("x_unit", struct plot_spec, x_unit, "", "of the values along x"),
    PARAM_TEXT("y_label", struct plot_spec, y_label, "", "default: the first of y"),
    PARAM_TEXT("y_unit", struct plot_spec, y_unit, "", "of the metrics"),
    PARAM_TEXT("key", struct plot_spec, key, "", "where the legend stands, in gnuplot's words"),
    CHOICE("log_x", PARAM_U32, log_x, 0, 0, 16, "base of a logarithmic x axis; 0: linear"),
    CHOICE("log_y", PARAM_U32, log_y, 0, 0, 16, "base of a logarithmic y axis; 0: linear"),
    CHOICE("x_min", PARAM_DOUBLE, x_min, FREE, -FREE, FREE, "where the x axis begins"),
    CHOICE("x_max", PARAM_DOUBLE, x_max, FREE, -FREE, FREE, "where the x axis ends"),
    CHOICE("y_min", PARAM_DOUBLE, y_min, FREE, -FREE, FREE, "where the y axis begins"),
    CHOICE("y_max", PARAM_DOUBLE, y_max, FREE, -FREE, FREE, "where the y axis ends"),
    { .type = PARAM_END },
};

static const char *const list_names[] = { "y", "series", "measured" };
static const char *const measured_names[] = { "series", "file", "label", NULL };

/* Adds the strings of a setting that is a string or a list of strings, and where each stands. */
static void read_strings(struct config_node *node, GPtrArray *strings, GPtrArray *nodes,
                         struct sim_error_list *errors)
{
    if (config_kind(node) == CONFIG_STRING) {
        g_ptr_array_add(strings, (gpointer)config_string(node));
        g_ptr_array_add(nodes, node);
        return;
    }
    if (config_kind(node) != CONFIG_LIST) {
        config_mistake(node, errors, "a string or a list of strings", NULL);
        return;
    }
    for (unsigned i = 0; i < config_count(node); i++) {
        struct config_node *child = config_child(node, i);
        if (config_kind(child) != CONFIG_STRING) {
            config_mistake(child, errors, "a string", NULL);
            continue;
        }
        g_ptr_array_add(strings, (gpointer)config_string(child));
        g_ptr_array_add(nodes, child);
    }
}

/* It goes into the script for gnuplot as it is. */
static bool is_key_position(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789., ") == strlen(text);
}

static void check_names(struct config_node *group, const char *const *names,
                        struct sim_error_list *errors)
{
    for (unsigned i = 0; i < config_count(group); i++) {
        struct config_node *child = config_child(group, i);
        if (!g_strv_contains(names, config_name(child))) {
            char *suggestion = sim_suggestion(config_name(child), names);
            sim_error_add(errors, config_file(child), config_line(child), "%s: unknown setting%s%s",
                          config_path(child), *suggestion != '\0' ? "; " : "", suggestion);
            g_free(suggestion);
        }
    }
}

static const char *measured_string(struct config_node *group, const char *key, const char *def,
                                   struct sim_error_list *errors)
{
    struct config_node *node = config_get(group, key);
    if (node != NULL && config_kind(node) == CONFIG_STRING)
        return config_string(node);
    if (node != NULL)
        config_mistake(node, errors, "a string", NULL);
    else if (def == NULL)
        sim_error_add(errors, config_file(group), config_line(group), "%s: no setting \"%s\"",
                      config_path(group), key);
    return def;
}

static void read_measured(struct config_node *list, struct plot_spec *spec,
                          struct sim_error_list *errors)
{
    if (config_kind(list) != CONFIG_LIST)
        config_mistake(list, errors, "a list of groups { series, file, label }", NULL);
    for (unsigned i = 0; i < config_count(list); i++) {
        struct config_node *group = config_child(list, i);
        if (config_kind(group) != CONFIG_GROUP) {
            config_mistake(group, errors, "a group { series, file, label }", NULL);
            continue;
        }
        check_names(group, measured_names, errors);
        const struct plot_measured measured = {
            .series = measured_string(group, "series", "", errors),
            .file = measured_string(group, "file", NULL, errors),
            .label = measured_string(group, "label", "", errors),
            .node = group,
        };
        if (measured.file != NULL)
            g_array_append_val(spec->measured, measured);
    }
}

static const char **axis_names(const struct scenario *scenario)
{
    const char **names = g_new0(const char *, scenario_n_axes(scenario) + 1);
    for (size_t i = 0; i < scenario_n_axes(scenario); i++)
        names[i] = scenario_axis_name(scenario, i);
    return names;
}

/* Without `series`: all axes but x and those in lock-step with it; none if x is a metric, since
 * then a curve runs through all. */
static void default_series(const struct scenario *scenario, struct plot_spec *spec)
{
    const size_t x = scenario_axis_find(scenario, spec->x), n_axes = scenario_n_axes(scenario);
    for (size_t i = 0; x < n_axes && i < n_axes; i++) {
        if (scenario_axis_leader(scenario, i) != scenario_axis_leader(scenario, x))
            g_ptr_array_add(spec->series, (gpointer)scenario_axis_name(scenario, i));
    }
}

static void check_series(const GPtrArray *nodes, const struct scenario *scenario,
                         struct sim_error_list *errors)
{
    const char **axes = axis_names(scenario);
    for (guint i = 0; i < nodes->len; i++) {
        if (!g_strv_contains(axes, config_string(nodes->pdata[i])))
            config_mistake(nodes->pdata[i], errors, "an axis", axes);
    }
    g_free(axes);
}

static double bound(double value)
{
    return value >= FREE ? (double)NAN : value;
}

static void read_lists(struct scenario *scenario, struct config_node *plot, struct plot_spec *spec,
                       struct sim_error_list *errors)
{
    struct config_node *y = config_get(plot, "y"), *series = config_get(plot, "series");
    struct config_node *measured = config_get(plot, "measured");
    if (y != NULL)
        read_strings(y, spec->metrics, spec->metric_nodes, errors);
    if (spec->metrics->len == 0)
        sim_error_add(errors, config_file(plot), config_line(plot),
                      "plot: no setting \"y\", expected the metric to plot");
    if (series != NULL) {
        GPtrArray *nodes = g_ptr_array_new();
        read_strings(series, spec->series, nodes, errors);
        check_series(nodes, scenario, errors);
        g_ptr_array_free(nodes, TRUE);
    } else {
        default_series(scenario, spec);
    }
    if (measured != NULL)
        read_measured(measured, spec, errors);
}

bool plot_spec_read(struct scenario *scenario, struct plot_spec *spec,
                    struct sim_error_list *errors)
{
    struct config *base = scenario_base(scenario);
    struct config_node *plot = config_get(config_root(base), "plot");
    const size_t before = errors->n_messages;
    *spec = (struct plot_spec){ .metrics = g_ptr_array_new(),
                                .metric_nodes = g_ptr_array_new(),
                                .series = g_ptr_array_new() };
    spec->measured = g_array_new(FALSE, FALSE, sizeof(struct plot_measured));
    if (plot == NULL)
        return false;
    if (config_kind(plot) != CONFIG_GROUP) {
        config_mistake(plot, errors, "a group", NULL);
        return false;
    }
    const char *names[SIM_N_ELEMENTS(params) + SIM_N_ELEMENTS(list_names)] = { NULL };
    size_t n_names = 0;
    for (const struct param_desc *desc = params; desc->type != PARAM_END; desc++)
        names[n_names++] = desc->key;
    for (size_t i = 0; i < SIM_N_ELEMENTS(list_names); i++)
        names[n_names++] = list_names[i];
    check_names(plot, names, errors);
    if (!config_read_params(base, plot, "plot", params, spec, errors))
        return false;
    if (*spec->title == '\0')
        spec->title = scenario_title(scenario);
    spec->x_min = bound(spec->x_min);
    spec->x_max = bound(spec->x_max);
    spec->y_min = bound(spec->y_min);
    spec->y_max = bound(spec->y_max);
    if (!is_key_position(spec->key))
        config_mistake(config_get(plot, "key"), errors, "words such as \"left top\"", NULL);
    if (*spec->x == '\0')
        sim_error_add(errors, config_file(plot), config_line(plot),
                      "plot: no setting \"x\", expected an axis or a metric");
    spec->x_node = config_get(plot, "x");
    read_lists(scenario, plot, spec, errors);
    return errors->n_messages == before;
}

void plot_spec_release(struct plot_spec *spec)
{
    g_ptr_array_free(spec->metrics, TRUE);
    g_ptr_array_free(spec->metric_nodes, TRUE);
    g_ptr_array_free(spec->series, TRUE);
    g_array_free(spec->measured, TRUE);
}

const char *plot_axis_value(const struct scenario *scenario, size_t point, const char *axis)
{
    const size_t i = scenario_axis_find(scenario, axis);
    return i < scenario_n_axes(scenario)
               ? scenario_axis_value(scenario, i, scenario_point_value(scenario, point, i))
               : NULL;
}

char *plot_series_name(const struct plot_spec *spec, const struct scenario *scenario, size_t point)
{
    GString *name = g_string_new(NULL);
    for (guint i = 0; i < spec->series->len; i++) {
        const char *axis = spec->series->pdata[i];
        g_string_append_printf(name, "%s%s=%s", i > 0 ? " " : "", axis,
                               plot_axis_value(scenario, point, axis));
    }
    return g_string_free(name, FALSE);
}
