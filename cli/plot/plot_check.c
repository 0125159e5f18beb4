/* Whether there will be anything to show: the metrics of a figure, before they are recorded; and
 * what says that there is nothing. */
#include <string.h>

#include "cli/base/point_name.h"
#include "cli/plot/plot_data.h"
#include "cli/results/result_set.h"
#include "workloads/experiment.h"

/* A setting that names what a run records. */
struct wanted {
    struct config_node *node;
    enum record_kind kind;
    const char *name;
    bool is_prefix; /* of the parts "<name>.<part>" */
    bool or_axis;
    bool found;
    char *unit; /* once it is found; owned */
};

static void clear_wanted(gpointer wanted)
{
    g_free(((struct wanted *)wanted)->unit);
}

static void want(GArray *list, struct config_node *node, enum record_kind kind, const char *name)
{
    const struct wanted wanted = { .node = node, .kind = kind, .name = name };
    g_array_append_val(list, wanted);
}

static GArray *wanted_by(const struct scenario *scenario, const struct plot_spec *spec)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(struct wanted));
    g_array_set_clear_func(list, clear_wanted);
    const enum record_kind kind = spec->kind == PLOT_SERIES ? RECORD_SERIES
                                  : plot_is_sampled(spec)   ? RECORD_HISTOGRAM
                                                            : RECORD_METRIC;
    if (!plot_is_sampled(spec) && spec->kind != PLOT_BARS &&
        scenario_axis_find(scenario, spec->x) == scenario_n_axes(scenario)) {
        want(list, spec->x_node, RECORD_METRIC, spec->x);
        g_array_index(list, struct wanted, 0).or_axis = true;
    }
    for (guint i = 0; i < spec->metrics->len; i++) {
        want(list, spec->metric_nodes->pdata[i], kind, spec->metrics->pdata[i]);
        g_array_index(list, struct wanted, list->len - 1).is_prefix = spec->kind == PLOT_STACK;
    }
    return list;
}

static bool is_declared(struct wanted *wanted, const struct run_result *declared)
{
    if (!wanted->is_prefix) {
        wanted->unit = g_strdup(run_result_unit(declared, wanted->kind, wanted->name));
        return run_result_has(declared, wanted->kind, wanted->name);
    }
    g_auto(GStrv) names = run_result_names(declared, wanted->kind);
    const size_t n = strlen(wanted->name);
    bool found = false;
    for (char **name = names; *name != NULL && !found; name++) {
        found = strncmp(*name, wanted->name, n) == 0 && (*name)[n] == '.';
        if (found)
            wanted->unit = g_strdup(run_result_unit(declared, wanted->kind, *name));
    }
    return found;
}

/* What the point of that number may record; NULL if it cannot be built. */
static struct run_result *declared_by(struct scenario *scenario, size_t point)
{
    struct sim_error_list errors = { 0 };
    struct run_result *declared = run_result_new_declaring();
    struct config *config = scenario_point(scenario, point, &errors);
    if (config == NULL || !experiment_declare(config, declared, &errors))
        g_clear_pointer(&declared, run_result_free);
    config_free(config);
    sim_error_release(&errors);
    return declared;
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* With a prefix, "latency_part_ns.cache" is not what was meant, "latency_part_ns" is. */
static char **valid_names(const struct scenario *scenario, const struct wanted *wanted,
                          GHashTable *known)
{
    GPtrArray *names = g_ptr_array_new();
    GHashTableIter iter;
    gpointer key;
    for (size_t i = 0; wanted->or_axis && i < scenario_n_axes(scenario); i++)
        g_ptr_array_add(names, g_strdup(scenario_axis_name(scenario, i)));
    g_hash_table_iter_init(&iter, known);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        const char *name = key, *dot = strrchr(name, '.');
        if (!wanted->is_prefix)
            g_ptr_array_add(names, g_strdup(name));
        else if (dot != NULL)
            g_ptr_array_add(names, g_strndup(name, (gsize)(dot - name)));
    }
    g_ptr_array_sort(names, by_name);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

static void complain(const struct scenario *scenario, const struct wanted *wanted,
                     GHashTable *known, struct sim_error_list *errors)
{
    static const char *const whats[] = { "metric", "histogram", "series" };
    g_auto(GStrv) names = valid_names(scenario, wanted, known);
    const bool unsampled = wanted->kind == RECORD_SERIES && g_hash_table_size(known) == 0;
    g_autofree char *expected =
        g_strdup_printf("%s%s that the workload records%s",
                        wanted->or_axis ? "an axis, or a " : "a ", whats[wanted->kind],
                        wanted->is_prefix ? " in parts, \"<name>.<part>\""
                        : unsampled       ? " (none without measure.sample_interval_us)"
                                          : "");
    config_mistake(wanted->node, errors, expected, (const char *const *)names);
}

static void learn(GHashTable *const known[], const struct run_result *declared)
{
    for (int kind = RECORD_METRIC; kind <= RECORD_SERIES; kind++) {
        g_autofree char **names = run_result_names(declared, (enum record_kind)kind);
        for (char **name = names; *name != NULL; name++)
            g_hash_table_add(known[kind], *name); /* takes it */
    }
}

/* Whether it can be the name of a curve: by its axes. Which values they have is another question:
 * --set may have left some out. */
static bool is_curve_name(const struct plot_spec *spec, const char *name)
{
    g_autoptr(GPtrArray) axes = g_ptr_array_new();
    g_auto(GStrv) split = point_split(name);
    bool known = g_strv_length(split) == 2 * spec->series->len;
    for (guint i = 0; i < spec->series->len; i++)
        g_ptr_array_add(axes, spec->series->pdata[i]);
    g_ptr_array_add(axes, NULL);
    for (char **pair = split; *pair != NULL; pair += 2)
        known = known && g_strv_contains((const char *const *)axes->pdata, *pair);
    return known;
}

/* "the name of a curve, "op=... size=..."" */
static char *expected_curve(const struct plot_spec *spec)
{
    GString *expected = g_string_new("the name of a curve, \"");
    for (guint i = 0; i < spec->series->len; i++)
        g_string_append_printf(expected, "%s%s=...", i > 0 ? " " : "",
                               (const char *)spec->series->pdata[i]);
    g_string_append_c(expected, '"');
    return g_string_free(expected, FALSE);
}

/* The values of a curve's name, which the file has to have. --set may have left them out. */
static void check_curve_values(const struct scenario *scenario, const char *name,
                               const struct config_node *node, struct sim_error_list *errors)
{
    const struct filter_table known = scenario_file_table(scenario);
    g_autofree char *fault = NULL;
    struct filter *filter = filter_parse(name, &fault);
    if (filter != NULL)
        fault = filter_fault(filter, &known, 1);
    filter_free(filter);
    if (fault != NULL)
        sim_error_add(errors, config_file(node), config_line(node), "%s: %s", config_path(node),
                      fault);
}

static void check_curves(const struct scenario *scenario, const struct plot_spec *spec,
                         struct sim_error_list *errors)
{
    g_autofree char *expected = expected_curve(spec);
    for (guint i = 0; i < spec->measured->len; i++) {
        const struct plot_measured *measured = &g_array_index(spec->measured, struct plot_measured,
                                                              i);
        if (*measured->series != '\0' && !is_curve_name(spec, measured->series))
            config_mistake(config_get(measured->node, "series"), errors, expected, NULL);
        else if (*measured->series != '\0')
            check_curve_values(scenario, measured->series, config_get(measured->node, "series"),
                               errors);
    }
    if (spec->ratio_of != NULL &&
        !(is_curve_name(spec, spec->ratio_of) && is_curve_name(spec, spec->ratio_to))) {
        const struct config_node *node = config_get(spec->group, "ratio_labels");
        config_mistake(node != NULL ? node : spec->group, errors, expected, NULL);
    }
    for (guint i = 0; i < spec->relative_to->len; i++) {
        const struct config_node *node = config_get(spec->group, "relative_to");
        if (!is_curve_name(spec, spec->relative_to->pdata[i]) &&
            !plot_is_own_reference(spec, spec->relative_to->pdata[i]))
            config_mistake(node != NULL ? node : spec->group, errors, expected, NULL);
    }
    if (spec->kind == PLOT_SERIES && spec->measured->len > 0 && *spec->x_unit == '\0')
        config_mistake(spec->group, errors, "`x_unit`: that of the time in measured files", NULL);
}

/* Where each point is a curve, each needs its name. */
static void check_names(struct scenario *scenario, const struct plot_spec *spec,
                        struct sim_error_list *errors)
{
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    bool unique = true;
    for (size_t i = 0; plot_is_sampled(spec) && unique && i < scenario_n_points(scenario); i++)
        unique = !spec->shown[i] || g_hash_table_add(names, plot_series_name(spec, scenario, i));
    if (!unique)
        config_mistake(spec->group, errors,
                       "`series` with the axes that tell all points apart, or a `filter`", NULL);
}

bool plot_check_unit(const struct plot_spec *spec, const char *metric, const char *recorded,
                     double *factor, struct sim_error_list *errors)
{
    const bool along_x = spec->kind == PLOT_CDF;
    const char *shown = along_x ? spec->x_unit : spec->y_unit;
    const struct config_node *node = along_x ? spec->x_unit_node : spec->y_unit_node;
    if (plot_unit_factor(recorded, shown, factor))
        return true;
    g_auto(GStrv) units = plot_units_like(recorded);
    const char *of_bits = unit_of_bits(shown);
    if (of_bits != NULL && !g_strv_contains((const char *const *)units, of_bits))
        of_bits = NULL; /* a rate, where there is none */
    const bool near = of_bits == NULL &&
                      sim_nearest_name(shown, (const char *const *)units) != NULL;
    g_autofree char *all = g_strjoinv(", ", units);
    g_autofree char *expected =
        g_strdup_printf("a unit for %s, which is in %s: %s%s%s%s", metric, recorded, all,
                        of_bits != NULL ? "; did you mean \"" : "", of_bits != NULL ? of_bits : "",
                        of_bits != NULL ? "\"?" : "");
    config_mistake(node != NULL ? node : spec->group, errors, expected,
                   near ? (const char *const *)units : NULL);
    return false;
}

/* What values along y, of a distribution along x, are to be shown in. */
static void check_units(const struct plot_spec *spec, const GArray *list,
                        struct sim_error_list *errors)
{
    double factor;
    for (guint k = 0; k < list->len; k++) {
        const struct wanted *wanted = &g_array_index(list, struct wanted, k);
        if (wanted->unit == NULL || wanted->or_axis)
            continue;
        if (plot_is_relative(spec))
            plot_check_unit(spec, "a ratio", "1", &factor, errors);
        else
            plot_check_unit(spec, wanted->name, wanted->unit, &factor, errors);
    }
    if (spec->kind == PLOT_SERIES && !plot_unit_factor("ps", spec->x_unit, &factor))
        config_mistake(spec->x_unit_node, errors, "a unit of time: ps, ns, us, ms, s", NULL);
}

/* Bars stand beside each other by the values of an axis: along a metric there is no place for
 * them. */
static void check_bars(const struct scenario *scenario, const struct plot_spec *spec,
                       struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) axes = g_ptr_array_new();
    if (spec->kind != PLOT_BARS ||
        scenario_axis_find(scenario, spec->x) < scenario_n_axes(scenario))
        return;
    for (size_t i = 0; i < scenario_n_axes(scenario); i++)
        g_ptr_array_add(axes, (gpointer)(uintptr_t)scenario_axis_name(scenario, i));
    g_ptr_array_add(axes, NULL);
    config_mistake(spec->x_node, errors, "an axis, at the values of which bars stand",
                   (const char *const *)axes->pdata);
}

static void check_panel(struct scenario *scenario, const struct plot_spec *spec,
                        struct sim_error_list *errors)
{
    check_bars(scenario, spec, errors);
    check_curves(scenario, spec, errors);
    check_names(scenario, spec, errors);
    g_autoptr(GArray) list = wanted_by(scenario, spec);
    GHashTable *known[RECORD_SERIES + 1];
    guint n_missing = list->len;
    bool whole = true;
    for (int kind = RECORD_METRIC; kind <= RECORD_SERIES; kind++)
        known[kind] = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (size_t i = 0; whole && n_missing > 0 && i < scenario_n_points(scenario); i++) {
        struct run_result *declared = declared_by(scenario, i);
        whole = declared != NULL;
        for (guint k = 0; whole && k < list->len; k++) {
            struct wanted *wanted = &g_array_index(list, struct wanted, k);
            const bool found = !wanted->found && is_declared(wanted, declared);
            wanted->found = wanted->found || found;
            n_missing -= found;
        }
        if (whole && n_missing > 0)
            learn(known, declared);
        run_result_free(declared);
    }
    for (guint k = 0; whole && k < list->len; k++) {
        const struct wanted *wanted = &g_array_index(list, struct wanted, k);
        if (!wanted->found)
            complain(scenario, wanted, known[wanted->kind], errors);
    }
    check_units(spec, list, errors);
    for (int kind = RECORD_METRIC; kind <= RECORD_SERIES; kind++)
        g_hash_table_destroy(known[kind]);
}

/* "memory, window": axes in which two points differ. */
static char *differing_axes(const struct scenario *scenario, size_t a, size_t b)
{
    GString *axes = g_string_new(NULL);
    for (size_t i = 0; i < scenario_n_axes(scenario); i++) {
        if (scenario_point_value(scenario, a, i) != scenario_point_value(scenario, b, i))
            g_string_append_printf(axes, "%s%s", axes->len > 0 ? ", " : "",
                                   scenario_axis_name(scenario, i));
    }
    return g_string_free(axes, FALSE);
}

char *plot_ambiguous_axes(const struct scenario *scenario, const struct plot_spec *spec)
{
    const bool on_axis = !plot_is_sampled(spec) &&
                         scenario_axis_find(scenario, spec->x) < scenario_n_axes(scenario);
    g_autoptr(GHashTable) point_of = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    char *axes = NULL;
    for (size_t i = 0; on_axis && axes == NULL && i < scenario_n_points(scenario); i++) {
        gpointer other = NULL;
        if (!spec->shown[i])
            continue;
        g_autofree char *series = plot_series_name(spec, scenario, i);
        char *name = g_strdup_printf("%s at %s", series, plot_axis_value(scenario, i, spec->x));
        if (g_hash_table_lookup_extended(point_of, name, NULL, &other))
            axes = differing_axes(scenario, GPOINTER_TO_SIZE(other), i);
        g_hash_table_replace(point_of, name, GSIZE_TO_POINTER(i));
    }
    return axes;
}

/* Of the points first..end-1. */
static char *unknown_metric(struct scenario *scenario, size_t first, size_t end, const char *metric)
{
    GHashTable *known[RECORD_SERIES + 1];
    bool found = false, whole = true;
    char *fault = NULL;
    for (int kind = RECORD_METRIC; kind <= RECORD_SERIES; kind++)
        known[kind] = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (size_t i = first; whole && !found && i < end; i++) {
        struct run_result *declared = declared_by(scenario, i);
        whole = declared != NULL;
        found = whole && run_result_has(declared, RECORD_METRIC, metric);
        if (whole && !found)
            learn(known, declared);
        run_result_free(declared);
    }
    if (whole && !found) {
        const struct wanted wanted = { .kind = RECORD_METRIC };
        g_auto(GStrv) names = valid_names(scenario, &wanted, known[RECORD_METRIC]);
        g_autofree char *suggestion = sim_suggestion(metric, (const char *const *)names);
        fault = g_strdup_printf("%s records no metric \"%s\"%s%s", scenario_name(scenario), metric,
                                *suggestion != '\0' ? "; " : "", suggestion);
    }
    for (int kind = RECORD_METRIC; kind <= RECORD_SERIES; kind++)
        g_hash_table_destroy(known[kind]);
    return fault;
}

char *plot_unknown_metric(struct scenario *scenario, const char *metric)
{
    return unknown_metric(scenario, 0, scenario_n_points(scenario), metric);
}

char *plot_unknown_metric_at(struct scenario *scenario, size_t point, const char *metric)
{
    return unknown_metric(scenario, point, point + 1, metric);
}

void plot_figure_check(struct scenario *scenario, const struct plot_figure *figure,
                       struct sim_error_list *errors)
{
    for (guint i = 0; i < figure->panels->len; i++)
        check_panel(scenario, figure->panels->pdata[i], errors);
}

/* "latency_mean_ns", ""bond, two flows" where flows=2" */
static void append_panel_name(GString *text, const struct plot_spec *spec, bool titled)
{
    if (titled && *spec->title != '\0')
        g_string_append_printf(text, "\"%s\"", spec->title);
    else
        g_string_append(text, spec->metrics->pdata[0]);
    if (*spec->filter != '\0')
        g_string_append_printf(text, " where %s", spec->filter);
}

/* What `nudma run` takes: a file as it was named, or a name. */
static const char *asked_as(const struct scenario *scenario, const struct cli_options *options)
{
    const char *path = scenario_path(scenario);
    return options->arguments != NULL &&
                   g_strv_contains((const char *const *)options->arguments, path)
               ? path
               : scenario_name(scenario);
}

void plot_data_say_missing(const struct scenario *scenario, const struct plot_figure *figure,
                           const GPtrArray *missing, const struct cli_options *options,
                           struct results_db *db)
{
    const bool one = figure->panels->len == 1, all = missing->len == figure->panels->len && !one;
    g_autoptr(GString) text = g_string_new("");
    for (guint i = 0; !all && i < missing->len; i++) {
        g_string_append(text, i == 0 ? " of " : "; ");
        append_panel_name(text, missing->pdata[i], !one);
    }
    if (missing->len == 0)
        return;
    const char *asked = asked_as(scenario, options);
    if (result_all_failed(db, scenario_name(scenario)))
        fprintf(stderr,
                "%s: no results%s in %s: all runs have failed (nudma results %s says why)\n",
                scenario_name(scenario), text->str, options->db, asked);
    else
        fprintf(stderr, "%s: no results%s in %s (nudma run %s makes them)\n",
                scenario_name(scenario), text->str, options->db, asked);
}
