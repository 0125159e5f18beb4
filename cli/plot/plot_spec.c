/*
 * Reads the group `plot`: scalars through a parameter table, lists by hand. A panel has what its
 * own group says, and what that leaves out from the group `plot`.
 */
#include <math.h>
#include <string.h>

#include "cli/plot/plot_spec.h"
#include "sim/config/unit.h"

static const char *const kind_names[] = { "lines", "bars",      "stack", "series",
                                          "cdf",   "histogram", "box",   NULL };
static const char *const whisker_names[] = { "iqr", "minmax", NULL };

/* Means "as the values ask for": no figure has such a bound. */
#define FREE 1e300

#define CHOICE(KEY, TYPE, FIELD, DEF, LO, HI, HELP) \
    PARAM(KEY, TYPE, struct plot_spec, FIELD, DEF, LO, HI, PROV_NONE, NULL, HELP)

static const struct param_desc params[] = {
    PARAM_ONE_OF("kind", struct plot_spec, kind, 0, kind_names, PROV_NONE, NULL,
                 "curves, groups of bars, bars stacked of parts, over time, distributions"),
    PARAM_ONE_OF("whiskers", struct plot_spec, whiskers, 0, whisker_names, PROV_NONE, NULL,
                 "of boxes: to 1.5 interquartile ranges, or to the lowest and the highest value"),
    PARAM_TEXT("title", struct plot_spec, title, "", "default: that of the scenario"),
    PARAM_TEXT("x", struct plot_spec, x, "", "an axis of the scenario, or a metric"),
    PARAM_TEXT("x_label", struct plot_spec, x_label, "", "default: x"),
    PARAM_TEXT("x_unit", struct plot_spec, x_unit, "", "of the values along x"),
    PARAM_TEXT("y_label", struct plot_spec, y_label, "", "default: the first of y"),
    PARAM_TEXT("y_unit", struct plot_spec, y_unit, "", "of the metrics"),
    PARAM_TEXT("key", struct plot_spec, key, "", "where the legend stands, in gnuplot's words"),
    PARAM_TEXT("filter", struct plot_spec, filter, "", "which points are shown; default: all"),
    PARAM_TEXT("ratio_labels", struct plot_spec, ratio_labels, "",
               "\"config=a/config=b\": points of the first say how large they are in the second"),
    CHOICE("normalised", PARAM_BOOL, normalised, 0, 0, 1,
           "lines: each curve relative to its first value"),
    CHOICE("slowdown", PARAM_BOOL, slowdown, 0, 0, 1,
           "with normalised or relative_to: the reference over the value"),
    CHOICE("log_x", PARAM_U32, log_x, 0, 0, 16, "base of a logarithmic x axis; 0: linear"),
    CHOICE("log_y", PARAM_U32, log_y, 0, 0, 16, "base of a logarithmic y axis; 0: linear"),
    CHOICE("x_min", PARAM_DOUBLE, x_min, FREE, -FREE, FREE, "where the x axis begins"),
    CHOICE("x_max", PARAM_DOUBLE, x_max, FREE, -FREE, FREE, "where the x axis ends"),
    CHOICE("y_min", PARAM_DOUBLE, y_min, FREE, -FREE, FREE, "where the y axis begins"),
    CHOICE("y_max", PARAM_DOUBLE, y_max, FREE, -FREE, FREE, "where the y axis ends"),
    { .type = PARAM_END },
};

static const char *const list_names[] = { "y",        "metric", "series",
                                          "measured", "labels", "relative_to" };
static const char *const label_names[] = { "of", "label", NULL };
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
    if (!config_expect(node, CONFIG_LIST, errors, "a string or a list of strings"))
        return;
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
            g_autofree char *suggestion = sim_suggestion(config_name(child), names);
            sim_error_add(errors, config_file(child), config_line(child), "%s: unknown setting%s%s",
                          config_path(child), *suggestion != '\0' ? "; " : "", suggestion);
        }
    }
}

static const char *group_string(struct config_node *group, const char *key, const char *def,
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
            .series = group_string(group, "series", "", errors),
            .file = group_string(group, "file", NULL, errors),
            .label = group_string(group, "label", "", errors),
            .node = group,
        };
        if (measured.file != NULL)
            g_array_append_val(spec->measured, measured);
    }
}

/* A value of an axis as a filter has it; a metric is looked for when all panels are read. */
static void check_label(const struct scenario *scenario, const struct plot_label *label,
                        struct sim_error_list *errors)
{
    const struct filter_table known = scenario_file_table(scenario);
    g_autofree char *fault = NULL;
    if (strchr(label->of, '=') == NULL)
        return;
    struct filter *filter = filter_parse(label->of, &fault);
    if (filter != NULL)
        fault = filter_fault(filter, &known, 1);
    filter_free(filter);
    if (fault != NULL)
        sim_error_add(errors, config_file(label->node), config_line(label->node), "%s.of: %s",
                      config_path(label->node), fault);
}

/* own: the list is this panel's, not that of the figure, which is checked once. */
static void read_labels(const struct scenario *scenario, struct config_node *list, bool own,
                        struct plot_spec *spec, struct sim_error_list *errors)
{
    struct sim_error_list said = { 0 };
    struct sim_error_list *list_errors = own ? errors : &said;
    if (config_kind(list) != CONFIG_LIST)
        config_mistake(list, list_errors, "a list of groups { of, label }", NULL);
    for (unsigned i = 0; config_kind(list) == CONFIG_LIST && i < config_count(list); i++) {
        struct config_node *group = config_child(list, i);
        if (config_kind(group) != CONFIG_GROUP) {
            config_mistake(group, list_errors, "a group { of, label }", NULL);
            continue;
        }
        check_names(group, label_names, list_errors);
        const struct plot_label label = { group_string(group, "of", NULL, list_errors),
                                          group_string(group, "label", NULL, list_errors), group };
        if (label.of == NULL || label.label == NULL)
            continue;
        check_label(scenario, &label, list_errors);
        g_array_append_val(spec->labels, label);
    }
    sim_error_release(&said);
}

const char *plot_label_of(const struct plot_spec *spec, const char *of)
{
    for (guint i = 0; i < spec->labels->len; i++) {
        const struct plot_label *label = &g_array_index(spec->labels, struct plot_label, i);
        if (strcmp(label->of, of) == 0)
            return label->label;
    }
    return NULL;
}

static const char **axis_names(const struct scenario *scenario)
{
    const char **names = g_new0(const char *, scenario_n_axes(scenario) + 1);
    for (size_t i = 0; i < scenario_n_axes(scenario); i++)
        names[i] = scenario_axis_name(scenario, i);
    return names;
}

/* Without `series`: all axes but x and those in lock-step with it; none if x is a metric, since
 * then a curve runs through all; all if a point is a curve. */
static void default_series(const struct scenario *scenario, struct plot_spec *spec)
{
    const size_t x = scenario_axis_find(scenario, spec->x), n_axes = scenario_n_axes(scenario);
    const bool all = plot_is_sampled(spec);
    for (size_t i = 0; (x < n_axes || all) && i < n_axes; i++) {
        if (all || scenario_axis_leader(scenario, i) != scenario_axis_leader(scenario, x))
            g_ptr_array_add(spec->series, (gpointer)scenario_axis_name(scenario, i));
    }
}

static void check_series(const GPtrArray *nodes, const struct scenario *scenario,
                         struct sim_error_list *errors)
{
    g_autofree const char **axes = axis_names(scenario);
    for (guint i = 0; i < nodes->len; i++) {
        if (!g_strv_contains(axes, config_string(nodes->pdata[i])))
            config_mistake(nodes->pdata[i], errors, "an axis", axes);
    }
}

static double bound(double value)
{
    return value >= FREE ? (double)NAN : value;
}

/* ---- One group ------------------------------------------------------------------------------- */

static struct plot_spec *new_spec(struct config_node *group)
{
    struct plot_spec *spec = g_new0(struct plot_spec, 1);
    spec->group = group;
    spec->metrics = g_ptr_array_new();
    spec->metric_nodes = g_ptr_array_new();
    spec->series = g_ptr_array_new();
    spec->relative_to = g_ptr_array_new();
    spec->measured = g_array_new(FALSE, FALSE, sizeof(struct plot_measured));
    spec->labels = g_array_new(FALSE, FALSE, sizeof(struct plot_label));
    return spec;
}

static void free_spec(gpointer pointer)
{
    struct plot_spec *spec = pointer;
    if (spec == NULL)
        return;
    g_ptr_array_free(spec->metrics, TRUE);
    g_ptr_array_free(spec->metric_nodes, TRUE);
    g_ptr_array_free(spec->series, TRUE);
    g_ptr_array_free(spec->relative_to, TRUE);
    g_array_free(spec->measured, TRUE);
    g_array_free(spec->labels, TRUE);
    g_free(spec->shown);
    g_free(spec->ratio_of);
    g_free(spec->ratio_to);
    g_free(spec);
}

/* What the group says, with defaults, as it stands there; NULL with mistakes in errors. */
static struct plot_spec *read_group(struct scenario *scenario, struct config_node *group,
                                    bool whole, struct sim_error_list *errors)
{
    struct plot_spec *spec = new_spec(group);
    const char *names[SIM_N_ELEMENTS(params) + SIM_N_ELEMENTS(list_names) + 1] = { NULL };
    size_t n_names = 0;
    for (const struct param_desc *desc = params; desc->type != PARAM_END; desc++)
        names[n_names++] = desc->key;
    for (size_t i = 0; i < SIM_N_ELEMENTS(list_names); i++)
        names[n_names++] = list_names[i];
    if (whole)
        names[n_names++] = "panels";
    check_names(group, names, errors);
    if (!config_read_params(scenario_base(scenario), group, config_path(group), params, spec,
                            errors))
        g_clear_pointer(&spec, free_spec);
    return spec;
}

static size_t field_bytes(const struct param_desc *desc)
{
    switch (desc->type) {
    case PARAM_STRING: return sizeof(const char *);
    case PARAM_ENUM: return sizeof(int);
    case PARAM_U32: return sizeof(uint32_t);
    case PARAM_BOOL: return sizeof(bool);
    default: return sizeof(double);
    }
}

/* What a panel with something else along x does not take over, and no panel does. */
static bool is_own(const char *key, bool same_x)
{
    return strcmp(key, "title") == 0 ||
           (!same_x && (g_str_has_prefix(key, "x") || strcmp(key, "log_x") == 0));
}

/* What the panel's own group does not say. */
static void inherit(struct plot_spec *panel, const struct plot_spec *whole)
{
    if (config_get(panel->group, "kind") == NULL)
        panel->kind = whole->kind;
    const bool same_x = panel->kind == whole->kind ||
                        (!plot_is_sampled(panel) && !plot_is_sampled(whole));
    for (const struct param_desc *desc = params; desc->type != PARAM_END; desc++) {
        if (config_get(panel->group, desc->key) == NULL && !is_own(desc->key, same_x))
            memcpy((char *)panel + desc->offset, (const char *)whole + desc->offset,
                   field_bytes(desc));
    }
}

/* A setting of the panel, or else of the figure. */
static struct config_node *setting(const struct plot_spec *spec, const struct plot_spec *whole,
                                   const char *key)
{
    struct config_node *node = config_get(spec->group, key);
    return node != NULL || whole == NULL ? node : config_get(whole->group, key);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

/* What another kind has: a mistake where this group says it, no matter where it is inherited. */
static void refuse(const struct plot_spec *spec, const char *key, const char *why,
                   struct sim_error_list *errors)
{
    struct config_node *node = config_get(spec->group, key);
    if (node != NULL)
        config_mistake(node, errors, why, NULL);
}

/* One point has nothing to stand along x: a scenario without axes may get one of one value. */
static void no_x(const struct scenario *scenario, const struct plot_spec *spec,
                 struct sim_error_list *errors)
{
    const char *what = scenario_n_axes(scenario) > 0
                           ? "expected an axis or a metric"
                           : "and the scenario has no axes: expected a metric, or an axis of one "
                             "value, axes = ( { name = \"config\"; variants = ( { name = \"this\"; "
                             "set = (); } ); } ), as x";
    sim_error_add(errors, config_file(spec->group), config_line(spec->group),
                  "%s: no setting \"x\", %s", config_path(spec->group), what);
}

static void read_metrics(const struct scenario *scenario, struct plot_spec *spec,
                         const struct plot_spec *whole, struct sim_error_list *errors)
{
    const char *key = plot_is_sampled(spec) ? "metric" : "y";
    struct config_node *node = setting(spec, whole, key);
    if (plot_is_sampled(spec)) {
        const char *along = spec->kind == PLOT_SERIES ? "no x: along it is time"
                            : spec->kind == PLOT_CDF  ? "no x: along it are values of the metric"
                                                      : "no x: values of the metric are along y";
        refuse(spec, "x", along, errors);
        refuse(spec, "y", "`metric` instead: a series or a histogram", errors);
        spec->x = "";
    } else {
        refuse(spec, "metric",
               "`y` instead (`metric` is of the kinds series, cdf, histogram and box)", errors);
        spec->x_node = setting(spec, whole, "x");
    }
    if (node != NULL)
        read_strings(node, spec->metrics, spec->metric_nodes, errors);
    if (spec->metrics->len == 0)
        sim_error_add(errors, config_file(spec->group), config_line(spec->group),
                      "%s: no setting \"%s\", expected the metric to plot",
                      config_path(spec->group), key);
    if (!plot_is_sampled(spec) && *spec->x == '\0')
        no_x(scenario, spec, errors);
}

static void read_series(struct scenario *scenario, struct plot_spec *spec,
                        const struct plot_spec *whole, struct sim_error_list *errors)
{
    struct config_node *series = setting(spec, whole, "series");
    if (series == NULL) {
        default_series(scenario, spec);
        return;
    }
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    read_strings(series, spec->series, nodes, errors);
    check_series(nodes, scenario, errors);
}

static void read_filter(struct scenario *scenario, struct plot_spec *spec,
                        const struct plot_spec *whole, struct sim_error_list *errors)
{
    const struct filter_table table = scenario_table(scenario);
    const struct filter_table known = scenario_file_table(scenario);
    g_autofree char *fault = NULL;
    spec->shown = g_new(bool, table.n_points);
    memset(spec->shown, true, table.n_points * sizeof(*spec->shown));
    if (*spec->filter == '\0')
        return;
    struct config_node *node = setting(spec, whole, "filter");
    struct filter *filter = filter_parse(spec->filter, &fault);
    if (filter != NULL)
        fault = filter_fault(filter, &known, 1);
    if (fault != NULL)
        sim_error_add(errors, config_file(node), config_line(node), "%s: %s", config_path(node),
                      fault);
    else
        filter_apply(filter, &table, spec->shown);
    filter_free(filter);
}

bool plot_is_own_reference(const struct plot_spec *spec, const char *relative_to)
{
    const size_t x = strlen(spec->x);
    return x != 0 && strncmp(relative_to, spec->x, x) == 0 && relative_to[x] == '=' &&
           strchr(relative_to, ' ') == NULL;
}

/* What values are relative to. */
static void read_reference(struct plot_spec *spec, const struct plot_spec *whole,
                           struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    struct config_node *node = setting(spec, whole, "relative_to");
    if (node != NULL)
        read_strings(node, spec->relative_to, nodes, errors);
    if (spec->normalised && spec->kind != PLOT_LINES)
        refuse(spec, "normalised", "kind lines with it", errors);
    if (spec->relative_to->len > 0 && spec->kind != PLOT_LINES && spec->kind != PLOT_BARS)
        refuse(spec, "relative_to", "kind lines or bars with it", errors);
    if (spec->relative_to->len > 0 && spec->normalised)
        refuse(spec, "relative_to", "no `normalised` beside it", errors);
    if (spec->relative_to->len > 1 && spec->relative_to->len != spec->metrics->len)
        refuse(spec, "relative_to", "one string, or as many as there are in y", errors);
    if (spec->slowdown && spec->relative_to->len == 0 && !spec->normalised)
        refuse(spec, "slowdown", "relative_to or normalised beside it", errors);
}

/* "config=local/config=remote" */
static void read_ratio(struct plot_spec *spec, const struct plot_spec *whole,
                       struct sim_error_list *errors)
{
    static const char expected[] = "the names of two curves, \"config=local/config=remote\"";
    const char *slash = strchr(spec->ratio_labels, '/');
    if (*spec->ratio_labels == '\0')
        return;
    if (spec->kind == PLOT_STACK || plot_is_sampled(spec)) {
        refuse(spec, "ratio_labels", "kind lines or bars with it", errors);
    } else if (slash == NULL) {
        config_mistake(setting(spec, whole, "ratio_labels"), errors, expected, NULL);
    } else {
        spec->ratio_of = g_strndup(spec->ratio_labels, (gsize)(slash - spec->ratio_labels));
        spec->ratio_to = g_strdup(slash + 1);
    }
}

/* ---- Whole ----------------------------------------------------------------------------------- */

static void label_distribution(struct plot_spec *spec)
{
    const char *box = spec->whiskers == PLOT_WHISKERS_IQR
                          ? "quartiles, median; whiskers: 1.5 IQR"
                          : "quartiles, median; whiskers: lowest, highest";
    if (*spec->x_label == '\0')
        spec->x_label = spec->kind == PLOT_BOX ? box : "share of samples";
    spec->x_unit = spec->kind == PLOT_BOX ? "" : "%";
}

static void set_defaults(struct plot_spec *spec)
{
    spec->x_min = bound(spec->x_min);
    spec->x_max = bound(spec->x_max);
    spec->y_min = bound(spec->y_min);
    spec->y_max = bound(spec->y_max);
    if (spec->kind == PLOT_SERIES && *spec->x_label == '\0')
        spec->x_label = "time";
    if (plot_is_distribution(spec))
        label_distribution(spec);
    if (spec->kind != PLOT_CDF)
        return;
    spec->x_label = *spec->x_label != '\0' || spec->metrics->len == 0 ? spec->x_label
                                                                      : spec->metrics->pdata[0];
    spec->y_label = *spec->y_label != '\0' ? spec->y_label : "share of samples";
    spec->y_min = isnan(spec->y_min) ? 0.0 : spec->y_min;
    spec->y_max = isnan(spec->y_max) ? 1.0 : spec->y_max;
}

/* No axis has its end before its beginning, and no logarithm the base 1. */
static void check_axis(const struct plot_spec *spec, const struct plot_spec *whole,
                       const char *axis, double min, double max, uint32_t base,
                       struct sim_error_list *errors)
{
    char number[UNIT_TEXT_BYTES];
    g_autofree char *min_key = g_strdup_printf("%s_min", axis);
    g_autofree char *max_key = g_strdup_printf("%s_max", axis);
    g_autofree char *log_key = g_strdup_printf("log_%s", axis);
    struct config_node *node = setting(spec, whole, max_key);
    const bool at_max = node != NULL;
    if (base == 1)
        config_mistake(setting(spec, whole, log_key), errors, "0 (linear), or a base of 2..16",
                       NULL);
    if (base >= 2 && max <= 0.0)
        config_mistake(node, errors, "more than 0: the axis is logarithmic", NULL);
    if (isnan(min) || isnan(max) || min < max)
        return;
    g_autofree char *expected = g_strdup_printf("%s than %s, %s", at_max ? "more" : "less",
                                                at_max ? min_key : max_key,
                                                unit_format_double(at_max ? min : max, number));
    config_mistake(at_max ? node : setting(spec, whole, min_key), errors, expected, NULL);
}

/* first_panel: what a figure says for all its panels is checked with the first. */
static void complete(struct scenario *scenario, struct plot_spec *spec,
                     const struct plot_spec *whole, bool *first_panel,
                     struct sim_error_list *errors)
{
    struct config_node *measured = setting(spec, whole, "measured");
    if (!is_key_position(spec->key))
        config_mistake(setting(spec, whole, "key"), errors, "words such as \"left top\"", NULL);
    spec->x_unit_node = setting(spec, whole, "x_unit");
    spec->y_unit_node = setting(spec, whole, "y_unit");
    read_metrics(scenario, spec, whole, errors);
    read_series(scenario, spec, whole, errors);
    if (plot_is_distribution(spec)) {
        refuse(spec, "measured", "kind cdf for a measured distribution", errors);
        refuse(spec, "x_unit", "`y_unit`: values of the metric are along y", errors);
    } else if (measured != NULL)
        read_measured(measured, spec, errors);
    struct config_node *labels = setting(spec, whole, "labels");
    if (labels != NULL)
        read_labels(scenario, labels, config_get(spec->group, "labels") != NULL || *first_panel,
                    spec, errors);
    *first_panel = false;
    read_filter(scenario, spec, whole, errors);
    read_reference(spec, whole, errors);
    read_ratio(spec, whole, errors);
    set_defaults(spec);
    check_axis(spec, whole, "x", spec->x_min, spec->x_max, spec->log_x, errors);
    check_axis(spec, whole, "y", spec->y_min, spec->y_max, spec->log_y, errors);
}

static void read_panel(struct scenario *scenario, struct config_node *group,
                       const struct plot_spec *whole, bool *first_panel, struct plot_figure *figure,
                       struct sim_error_list *errors)
{
    if (!config_expect(group, CONFIG_GROUP, errors, "a group { y, ... }"))
        return;
    struct plot_spec *panel = read_group(scenario, group, false, errors);
    if (panel == NULL)
        return;
    g_ptr_array_add(figure->panels, panel);
    inherit(panel, whole);
    complete(scenario, panel, whole, first_panel, errors);
}

static void read_panels(struct scenario *scenario, struct plot_spec *whole,
                        struct plot_figure *figure, struct sim_error_list *errors)
{
    struct config_node *panels = config_get(whole->group, "panels");
    bool first_panel = true;
    figure->title = *whole->title != '\0' ? whole->title : scenario_title(scenario);
    if (panels == NULL) {
        whole->title = figure->title;
        g_ptr_array_add(figure->panels, whole);
        complete(scenario, whole, NULL, &first_panel, errors);
        return;
    }
    if (config_kind(panels) != CONFIG_LIST || config_count(panels) == 0)
        config_mistake(panels, errors, "a list of groups ( { y, ... }, ... )", NULL);
    for (unsigned i = 0; config_kind(panels) == CONFIG_LIST && i < config_count(panels); i++)
        read_panel(scenario, config_child(panels, i), whole, &first_panel, figure, errors);
    free_spec(whole);
}

/* A label of no panel's metric is of nothing. */
static void check_labels(const struct plot_figure *figure, struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) metrics = g_ptr_array_new();
    g_autoptr(GHashTable) seen = g_hash_table_new(g_direct_hash, g_direct_equal);
    for (guint i = 0; i < figure->panels->len; i++) {
        const struct plot_spec *spec = figure->panels->pdata[i];
        for (guint k = 0; k < spec->metrics->len; k++)
            g_ptr_array_add(metrics, spec->metrics->pdata[k]);
    }
    g_ptr_array_add(metrics, NULL);
    for (guint i = 0; i < figure->panels->len; i++) {
        const struct plot_spec *spec = figure->panels->pdata[i];
        for (guint k = 0; k < spec->labels->len; k++) {
            const struct plot_label *label = &g_array_index(spec->labels, struct plot_label, k);
            if (strchr(label->of, '=') == NULL && g_hash_table_add(seen, label->node) &&
                !g_strv_contains((const char *const *)metrics->pdata, label->of))
                config_mistake(config_get(label->node, "of"), errors,
                               "a metric that the figure shows, or a value of an axis, "
                               "\"<axis>=<value>\"",
                               (const char *const *)metrics->pdata);
        }
    }
}

bool plot_figure_read(struct scenario *scenario, struct plot_figure *figure,
                      struct sim_error_list *errors)
{
    struct config_node *plot = config_get(config_root(scenario_base(scenario)), "plot");
    const size_t before = errors->n_messages;
    *figure = (struct plot_figure){ .title = "" };
    figure->panels = g_ptr_array_new_with_free_func(free_spec);
    if (!config_expect(plot, CONFIG_GROUP, errors, "a group"))
        return false;
    struct plot_spec *whole = read_group(scenario, plot, true, errors);
    if (whole != NULL)
        read_panels(scenario, whole, figure, errors);
    if (errors->n_messages == before)
        check_labels(figure, errors);
    return errors->n_messages == before;
}

void plot_figure_release(struct plot_figure *figure)
{
    g_ptr_array_free(figure->panels, TRUE);
}

bool plot_figure_shows(const struct plot_figure *figure, const char *metric)
{
    for (guint i = 0; i < figure->panels->len; i++) {
        const struct plot_spec *spec = figure->panels->pdata[i];
        if (strcmp(spec->x, metric) == 0)
            return true;
        for (guint k = 0; k < spec->metrics->len; k++) {
            const char *y = spec->metrics->pdata[k];
            const size_t n = strlen(y);
            if (strcmp(metric, y) == 0 ||
                (spec->kind == PLOT_STACK && strncmp(metric, y, n) == 0 && metric[n] == '.'))
                return true;
        }
    }
    return false;
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
