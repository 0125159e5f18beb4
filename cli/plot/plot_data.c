/* Collects what a figure shows. */
#include <math.h>
#include <string.h>

#include "cli/plot/plot_data_internal.h"
#include "cli/plot/plot_measured.h"
#include "cli/plot/plot_script.h"
#include "cli/results/result_set.h"

#define STACK_PIXELS 500 /* a part of less than one of them cannot be seen */

struct collector {
    struct scenario *scenario;
    const struct plot_spec *spec;
    const struct result_set *set; /* what the panel's metrics came to */
    const struct cli_options *options;
    struct plot_data *data;
    struct sim_error_list *errors;
};

static void free_curve(gpointer pointer)
{
    struct plot_curve *curve = pointer;
    g_free(curve->label);
    g_free(curve->series);
    g_array_free(curve->values, TRUE);
    g_free(curve);
}

struct plot_curve *plot_curve_new(struct plot_data *data, char *label, char *series,
                                  const char *metric)
{
    struct plot_curve *curve = g_new0(struct plot_curve, 1);
    curve->label = label;
    curve->series = series;
    curve->metric = metric;
    curve->y_factor = 1.0;
    curve->values = g_array_new(FALSE, TRUE, sizeof(struct plot_value));
    g_ptr_array_add(data->curves, curve);
    return curve;
}

const struct plot_value *plot_data_at(const struct plot_curve *curve, guint category)
{
    for (guint i = 0; i < curve->values->len; i++) {
        const struct plot_value *value = &g_array_index(curve->values, struct plot_value, i);
        if (value->x == (double)category)
            return value;
    }
    return NULL;
}

/* ---- Numbers and categories along x ---------------------------------------------------------- */

static bool to_number(const char *text, double *number)
{
    char *end = NULL;
    *number = g_ascii_strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*number);
}

bool plot_has_x_axis(const struct scenario *scenario, const struct plot_spec *spec)
{
    return scenario_axis_find(scenario, spec->x) < scenario_n_axes(scenario);
}

/* Along an axis with names, or under bars: those of its values that points shown have. */
static void find_categories(struct collector *c)
{
    const struct scenario *scenario = c->scenario;
    const size_t axis = scenario_axis_find(scenario, c->spec->x);
    bool numbers = c->spec->kind == PLOT_LINES;
    double number;
    if (axis == scenario_n_axes(scenario))
        return;
    const size_t n = scenario_axis_n_values(scenario, axis);
    g_autofree bool *used = g_new0(bool, n);
    for (size_t i = 0; i < scenario_n_points(scenario); i++)
        used[scenario_point_value(scenario, i, axis)] |= c->spec->shown[i];
    for (size_t i = 0; i < n; i++)
        numbers = numbers && to_number(scenario_axis_value(scenario, axis, i), &number);
    for (size_t i = 0; !numbers && i < n; i++) {
        if (used[i])
            g_ptr_array_add(c->data->categories, g_strdup(scenario_axis_value(scenario, axis, i)));
    }
}

bool plot_data_to_x(const struct plot_data *data, const char *text, double *x)
{
    if (data->categories->len == 0)
        return to_number(text, x);
    for (guint i = 0; i < data->categories->len; i++) {
        if (strcmp(data->categories->pdata[i], text) == 0) {
            *x = (double)i;
            return true;
        }
    }
    return false;
}

/* ---- Simulated ------------------------------------------------------------------------------- */

static int by_x(gconstpointer a, gconstpointer b)
{
    const double x = ((const struct plot_value *)a)->x, y = ((const struct plot_value *)b)->x;
    return (x > y) - (x < y);
}

/* A name says what it is of, "remote"; a number, or "off", does not. */
static bool says_enough(const char *value)
{
    static const char *const switches[] = { "on", "off", "true", "false", "yes", "no", NULL };
    return *value != '\0' && !g_ascii_isdigit(*value) && *value != '-' && *value != '.' &&
           !g_strv_contains(switches, value);
}

/* "local_dram" -> "local DRAM", "s1" -> "socket 1"; g_free(). */
static char *in_words(const char *name)
{
    static const char *const capitals[] = { "CMB", "CPU",   "DDIO",  "DMA",   "DRAM", "GPU", "HCA",
                                            "I/O", "IOMMU", "IOTLB", "LLC",   "L1",   "L2",  "MDEV",
                                            "MX",  "NIC",   "NTB",   "NVRAM", "PCIe", "RAM", "RDMA",
                                            "SGL", "SPDK",  "TLP",   "VFIO",  "VM" };
    g_autoptr(GString) text = g_string_new(NULL);
    g_auto(GStrv) words = g_strsplit(name, "_", -1);
    for (char **word = words; *word != NULL; word++) {
        const char *written = *word;
        for (size_t i = 0; i < SIM_N_ELEMENTS(capitals); i++)
            if (g_ascii_strcasecmp(*word, capitals[i]) == 0)
                written = capitals[i];
        const bool socket = written[0] == 's' && g_ascii_isdigit(written[1]) && written[2] == '\0';
        g_string_append_printf(text, "%s%s%s", word != words ? " " : "", socket ? "socket " : "",
                               socket ? written + 1 : written);
    }
    return g_strdup(text->str);
}

/* A name in words: "back_to_back" -> "back to back"; g_free(). */
char *plot_value_name(const char *value)
{
    return says_enough(value) ? in_words(value) : g_strdup(value);
}

char *plot_x_name(const struct plot_spec *spec, const char *value)
{
    g_autofree char *of = g_strconcat(spec->x, "=", value, NULL);
    const char *label = plot_label_of(spec, of);
    return label != NULL ? g_strdup(label) : plot_value_name(value);
}

/* A value that does not say what it is of: "transfer_bytes=4096" -> "transfer 4 KiB". */
static char *value_in_words(const char *word, const char *value)
{
    g_autofree char *name = g_strndup(word, (size_t)(value - 1 - word)), *words = NULL;
    const char *unit, *prefixes[] = { "", "Ki", "Mi", "Gi", "Ti" };
    char *end;
    double number = g_ascii_strtod(value, &end);
    size_t i = 0;

    words = plot_metric_words(name, &unit);
    if (end == value || *end != '\0' || *unit == '\0')
        return g_strdup_printf("%s %s", words, value);
    if (strcmp(unit, "B") != 0)
        return g_strdup_printf("%s %s %s", words, value, unit);
    for (; i + 1 < SIM_N_ELEMENTS(prefixes) && number >= 1024.0 && fmod(number, 256.0) == 0.0; i++)
        number /= 1024.0;
    return i > 0 ? g_strdup_printf("%s %g %sB", words, number, prefixes[i])
                 : g_strdup_printf("%s %s B", words, value);
}

/* "op=read transfer_bytes=64" -> "read transfer 64 B" */
char *plot_short_series(const struct plot_spec *spec, const char *series)
{
    GString *name = g_string_new(NULL);
    g_auto(GStrv) words = g_strsplit(series, " ", -1);
    for (char **word = words; *word != NULL; word++) {
        const char *equals = strchr(*word, '=');
        const bool bare = equals != NULL && says_enough(equals + 1);
        const char *label = plot_label_of(spec, *word);
        g_autofree char *value = bare             ? plot_value_name(equals + 1)
                                 : equals != NULL ? value_in_words(*word, equals + 1)
                                                  : g_strdup(*word);
        g_string_append_printf(name, "%s%s", word != words ? " " : "",
                               label != NULL ? label : value);
    }
    return g_string_free(name, FALSE);
}

char *plot_metric_words(const char *name, const char **unit)
{
    static const struct {
        const char *suffix, *unit;
    } units[] = { { "_gbyte_s", "GB/s" },  { "_mbyte_s", "MB/s" }, { "_mib_s", "MiB/s" },
                  { "_gbit_s", "Gbit/s" }, { "_bytes", "B" },      { "_ratio", "" },
                  { "_mpps", "Mpps" },     { "_kpps", "kpps" },    { "_pct", "%" },
                  { "_ps", "ps" },         { "_ns", "ns" },        { "_us", "us" },
                  { "_ms", "ms" },         { "_s", "s" } };
    char *words = g_strdup(name);
    *unit = "";
    for (size_t i = 0; i < SIM_N_ELEMENTS(units); i++) {
        if (strlen(words) <= strlen(units[i].suffix) || !g_str_has_suffix(words, units[i].suffix))
            continue;
        words[strlen(words) - strlen(units[i].suffix)] = '\0';
        *unit = units[i].unit;
        break;
    }
    g_autofree char *name_in_words = in_words(words);
    g_free(words);
    return g_steal_pointer(&name_in_words);
}

const char *plot_metric_name(const struct plot_spec *spec, const char *metric)
{
    const char *label = plot_label_of(spec, metric);
    return label != NULL ? label : metric;
}

/* With several metrics theirs too; one alone is called as its axis. */
char *plot_curve_label(const struct plot_spec *spec, const char *series, const char *metric)
{
    g_autofree char *shown = plot_short_series(spec, series);
    const char *label = plot_label_of(spec, metric), *unit;
    const bool alone = spec->metrics->len == 1 && *shown == '\0';
    g_autofree char *words = alone ? plot_metric_words(metric, &unit) : g_strdup(metric);
    const char *of = label != NULL                     ? label
                     : alone && *spec->y_label != '\0' ? spec->y_label
                                                       : words;
    return *shown == '\0'           ? g_strdup(of)
           : spec->metrics->len > 1 ? g_strdup_printf("%s, %s", shown, of)
                                    : g_strdup(shown);
}

static struct plot_curve *curve_of(struct collector *c, const char *series, const char *metric,
                                   guint first)
{
    for (guint i = first; i < c->data->curves->len; i++) {
        struct plot_curve *curve = c->data->curves->pdata[i];
        if (strcmp(curve->series, series) == 0)
            return curve;
    }
    struct plot_curve *curve = plot_curve_new(c->data, plot_curve_label(c->spec, series, metric),
                                              g_strdup(series), metric);
    curve->color = c->data->curves->len - 1;
    return curve;
}

/* The lowest and the highest value of the point and its variants. */
static void take_band(const struct collector *c, const char *point, const char *metric,
                      struct plot_value *value)
{
    g_autofree char *stem = results_variant_name(point, "");
    value->band_lo = value->band_hi = value->y;
    for (guint i = 0; i < c->set->points->len; i++) {
        const char *name = ((const struct result_point *)c->set->points->pdata[i])->name;
        const struct result_value *variant = g_str_has_prefix(name, stem)
                                                 ? result_set_value(c->set, name, metric)
                                                 : NULL;
        if (variant != NULL) {
            value->band_lo = fmin(value->band_lo, variant->mean);
            value->band_hi = fmax(value->band_hi, variant->mean);
        }
    }
}

void plot_sort_values(struct plot_curve *curve)
{
    g_array_sort(curve->values, by_x);
}

/* From the unit that the metric was stored in to that of the y axis. False with a mistake in
 * errors. */
static bool find_factor(struct collector *c, const char *metric, double *factor)
{
    *factor = 1.0;
    for (guint i = 0; i < c->set->metrics->len; i++) {
        const struct result_quantity *quantity = result_metric(c->set, i);
        if (strcmp(quantity->name, metric) == 0)
            return plot_check_unit(c->spec, metric, quantity->unit, factor, c->errors);
    }
    return true;
}

static void scale_value(struct plot_value *value, double factor)
{
    value->y *= factor;
    value->ci95 *= factor;
    value->band_lo *= factor;
    value->band_hi *= factor;
}

static void collect_metric(struct collector *c, const char *metric)
{
    const guint first = c->data->curves->len;
    double factor = 1.0; /* of ratios: scale_ratios() */
    if (!plot_is_relative(c->spec) && !find_factor(c, metric, &factor))
        return;
    const bool x_is_axis = plot_has_x_axis(c->scenario, c->spec);
    for (size_t i = 0; i < scenario_n_points(c->scenario); i++) {
        const char *name = scenario_point_name(c->scenario, i);
        const struct result_value *y = result_set_value(c->set, name, metric);
        const struct result_value *x = x_is_axis ? y : result_set_value(c->set, name, c->spec->x);
        if (x == NULL || y == NULL || !c->spec->shown[i])
            continue;
        struct plot_value value = { .x = x->mean,
                                    .y = y->mean,
                                    .ci95 = result_value_has_interval(y) ? y->ci95 : 0.0 };
        if (x_is_axis &&
            !plot_data_to_x(c->data, plot_axis_value(c->scenario, i, c->spec->x), &value.x))
            continue;
        take_band(c, name, metric, &value);
        scale_value(&value, factor);
        g_autofree char *series = plot_series_name(c->spec, c->scenario, i);
        struct plot_curve *curve = curve_of(c, series, metric, first);
        curve->y_factor = factor;
        g_array_append_val(curve->values, value);
    }
    for (guint i = first; x_is_axis && i < c->data->curves->len; i++)
        plot_sort_values(c->data->curves->pdata[i]);
}

/* ---- Stacks: a bar for each point, a curve for each part ------------------------------------- */

/* "read 64" */
static char *short_point_name(const struct scenario *scenario, size_t point)
{
    GString *name = g_string_new(NULL);
    for (size_t i = 0; i < scenario_n_axes(scenario); i++)
        g_string_append_printf(
            name, "%s%s", i > 0 ? " " : "",
            scenario_axis_value(scenario, i, scenario_point_value(scenario, point, i)));
    return g_string_free(name, FALSE);
}

static char *axis_names(const struct scenario *scenario)
{
    GString *names = g_string_new(NULL);
    for (size_t i = 0; i < scenario_n_axes(scenario); i++)
        g_string_append_printf(names, "%s%s", i > 0 ? ", " : "", scenario_axis_name(scenario, i));
    return g_string_free(names, FALSE);
}

static bool is_zero(const struct result_set *set, guint metric)
{
    for (guint i = 0; i < set->points->len; i++) {
        if (((const struct result_point *)set->points->pdata[i])->values[metric].mean > 0.0)
            return false;
    }
    return true;
}

static void collect_part(struct collector *c, const char *prefix, const char *part, unsigned color)
{
    double factor;
    if (!find_factor(c, part, &factor))
        return;
    struct plot_curve *curve = plot_curve_new(c->data, in_words(part + strlen(prefix) + 1),
                                              g_strdup(part), prefix);
    double row = 0.0;
    curve->color = color;
    for (size_t i = 0; i < scenario_n_points(c->scenario); i++) {
        const struct result_value *y = result_set_value(c->set, scenario_point_name(c->scenario, i),
                                                        part);
        const struct plot_value value = { .x = row, .y = y != NULL ? y->mean * factor : 0.0 };
        row += c->spec->shown[i];
        if (y != NULL && c->spec->shown[i])
            g_array_append_val(curve->values, value);
    }
    if (curve->values->len == 0)
        g_ptr_array_remove_index(c->data->curves, c->data->curves->len - 1);
}

#define FEW_BARS 8 /* with whole names */

/* "read 1Ki"; before: the point whose bar stands to the left, of whose first values those that are
 * the same need not stand there again; NULL: it is the first. */
static struct plot_tic tic_of(const struct collector *c, size_t point, const size_t *before)
{
    const struct scenario *scenario = c->scenario;
    const size_t n = scenario_n_axes(scenario);
    GString *name = g_string_new(NULL);
    size_t i = 0;
    while (before != NULL && i + 1 < n &&
           scenario_point_value(scenario, point, i) == scenario_point_value(scenario, *before, i))
        i++;
    const bool begins = i + 1 < n;
    for (; i < n; i++) {
        const char *value = scenario_axis_value(scenario, i,
                                                scenario_point_value(scenario, point, i));
        char *end;
        const double number = g_ascii_strtod(value, &end);
        const bool is_size = g_str_has_suffix(scenario_axis_name(scenario, i), "_bytes") &&
                             end != value && *end == '\0';
        g_autofree char *text = is_size ? plot_size_text(number) : plot_value_name(value);
        g_string_append_printf(name, "%s%s", name->len > 0 ? " " : "", text);
    }
    return (struct plot_tic){ g_string_free(name, FALSE), begins };
}

static void clear_tic(gpointer tic)
{
    g_free(((struct plot_tic *)tic)->name);
}

static void collect_tics(struct collector *c)
{
    const size_t *before = NULL;
    size_t last;
    for (size_t i = 0; c->data->categories->len > FEW_BARS && i < scenario_n_points(c->scenario);
         i++) {
        if (!c->spec->shown[i])
            continue;
        const struct plot_tic tic = tic_of(c, i, before);
        g_array_append_val(c->data->tics, tic);
        last = i;
        before = &last;
    }
}

/* A part has the same colour in all figures, whichever others are zero there. */
static void collect_stack(struct collector *c)
{
    for (size_t i = 0; i < scenario_n_points(c->scenario); i++) {
        if (c->spec->shown[i])
            g_ptr_array_add(c->data->categories, short_point_name(c->scenario, i));
    }
    collect_tics(c);
    for (guint m = 0; m < c->set->metrics->len; m++) {
        if (!is_zero(c->set, m))
            collect_part(c, c->spec->metrics->pdata[0], result_metric(c->set, m)->name, m);
    }
}

double plot_stack_height(const struct plot_data *data, guint row)
{
    double sum = 0.0;
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        const struct plot_value *value = curve->measured ? NULL : plot_data_at(curve, row);
        sum += value != NULL ? MAX(value->y, 0.0) : 0.0;
    }
    return sum;
}

bool plot_part_is_seen(const struct plot_data *data, const struct plot_curve *part)
{
    double highest = 0.0;
    bool seen = false;
    for (guint row = 0; row < data->categories->len; row++)
        highest = MAX(highest, plot_stack_height(data, row));
    for (guint i = 0; i < part->values->len; i++)
        seen = seen ||
               g_array_index(part->values, struct plot_value, i).y * STACK_PIXELS >= highest;
    return seen;
}

/* ---- Measured -------------------------------------------------------------------------------- */

static void add_rows(struct collector *c, struct plot_curve *curve, const char *path,
                     const GArray *rows)
{
    for (guint i = 0; i < rows->len; i++) {
        const struct plot_row *row = &g_array_index(rows, struct plot_row, i);
        struct plot_value value = { .y = row->y };
        if (plot_data_to_x(c->data, row->x, &value.x))
            g_array_append_val(curve->values, value);
        else if (c->data->categories->len == 0)
            sim_error_add(c->errors, path, row->line, "\"%s\": expected a number", row->x);
    }
}

/* "" for a curve: the legend then says once what open points are. */
char *plot_measured_label(const struct plot_spec *spec, const char *own,
                          const struct plot_curve *simulated)
{
    if (*own != '\0')
        return g_strdup(own);
    if (!plot_is_bars(spec))
        return g_strdup("");
    if (simulated != NULL && spec->series->len > 0)
        return g_strdup_printf("%s (measured)", simulated->label);
    return g_strdup("measured");
}

static void collect_measured(struct collector *c, const struct plot_measured *measured)
{
    const struct plot_curve *simulated = NULL;
    for (guint i = 0; i < c->data->curves->len && simulated == NULL; i++) {
        const struct plot_curve *curve = c->data->curves->pdata[i];
        if (!curve->measured && strcmp(curve->series, measured->series) == 0)
            simulated = curve;
    }
    g_autofree char *path = NULL;
    g_autoptr(GArray) rows = plot_measured_rows(c->options, c->scenario, measured, &path,
                                                c->errors);
    if (rows == NULL)
        return;
    struct plot_curve *curve =
        plot_curve_new(c->data, plot_measured_label(c->spec, measured->label, simulated),
                       g_strdup(measured->series), NULL);
    curve->measured = true;
    curve->color = simulated != NULL ? simulated->color : c->data->curves->len - 1;
    add_rows(c, curve, path, rows);
}

/* ---- What all curves are of ------------------------------------------------------------------ */

static bool all_have(const struct plot_data *data, const char *word)
{
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        g_auto(GStrv) words = g_strsplit(curve->series, " ", -1);
        if (!g_strv_contains((const char *const *)words, word))
            return false;
    }
    return true;
}

/* The words of a series that all curves have, or those that they have not; g_free(). */
static char *words_of(const struct plot_data *data, const char *series, bool common)
{
    g_autoptr(GString) text = g_string_new("");
    g_auto(GStrv) words = g_strsplit(series, " ", -1);
    for (char **word = words; *word != NULL; word++)
        if (**word != '\0' && all_have(data, *word) == common)
            g_string_append_printf(text, "%s%s", text->len > 0 ? " " : "", *word);
    return g_strdup(text->str);
}

/* Without those by which the panel was chosen, where its own title says what it shows. */
static char *unsaid(const struct plot_spec *spec, const char *words)
{
    g_autoptr(GString) text = g_string_new("");
    g_auto(GStrv) chosen = g_strsplit(spec->filter, " ", -1);
    g_auto(GStrv) word = g_strsplit(words, " ", -1);
    const bool titled = config_find(spec->group, "title") != NULL;
    for (guint i = 0; word[i] != NULL; i++)
        if (!titled || !g_strv_contains((const char *const *)chosen, word[i]))
            g_string_append_printf(text, "%s%s", text->len > 0 ? " " : "", word[i]);
    return g_strdup(text->str);
}

/* Before there are any but simulated curves. One alone keeps its name. */
static void take_common(const struct plot_spec *spec, struct plot_data *data)
{
    const struct plot_curve *first = data->curves->len > 1 ? data->curves->pdata[0] : NULL;
    g_autofree char *words = first != NULL ? words_of(data, first->series, true) : g_strdup("");
    g_autofree char *said = unsaid(spec, words);
    data->common = plot_short_series(spec, said);
    for (guint i = 0; *words != '\0' && i < data->curves->len; i++) {
        struct plot_curve *curve = data->curves->pdata[i];
        g_autofree char *own = words_of(data, curve->series, false);
        g_free(curve->label);
        curve->label = plot_curve_label(spec, own, curve->metric);
    }
}

char *plot_title_with_common(const char *title, const struct plot_data *data)
{
    if (*title == '\0' || *data->common == '\0')
        return g_strdup(*title != '\0' ? title : data->common);
    return g_strdup_printf("%s (%s)", title, data->common);
}

/* Where something is measured, bars say that they are simulated, and so does a lonely curve. */
static void tell_apart(const struct plot_spec *spec, struct plot_data *data)
{
    bool any_measured = false;
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        any_measured = any_measured || (curve->measured && !curve->by_ratio);
    }
    for (guint i = 0; any_measured && spec->kind != PLOT_STACK && i < data->curves->len; i++) {
        struct plot_curve *curve = data->curves->pdata[i];
        if (curve->measured || (!plot_is_bars(spec) && *curve->series != '\0'))
            continue;
        char *label = *curve->series != '\0' ? g_strdup_printf("%s (simulated)", curve->label)
                                             : g_strdup("simulated");
        g_free(curve->label);
        curve->label = label;
    }
}

/* ---- Ratios ---------------------------------------------------------------------------------- */

struct plot_curve *plot_simulated_curve(const struct plot_data *data, const char *series,
                                        const char *metric)
{
    for (guint i = 0; i < data->curves->len; i++) {
        struct plot_curve *curve = data->curves->pdata[i];
        if (!curve->measured && strcmp(curve->series, series) == 0 &&
            strcmp(curve->metric, metric) == 0)
            return curve;
    }
    return NULL;
}

/* Points at the same x; of a value of 0 nothing is said. */
static void set_ratios(const struct plot_curve *of, const struct plot_curve *to)
{
    for (guint i = 0; i < of->values->len; i++) {
        struct plot_value *value = &g_array_index(of->values, struct plot_value, i);
        for (guint k = 0; k < to->values->len; k++) {
            const struct plot_value *other = &g_array_index(to->values, struct plot_value, k);
            if (other->x == value->x && other->y != 0.0)
                value->ratio = value->y / other->y;
        }
    }
}

static void collect_ratios(const struct collector *c)
{
    for (guint i = 0; c->spec->ratio_of != NULL && i < c->spec->metrics->len; i++) {
        const char *metric = c->spec->metrics->pdata[i];
        const struct plot_curve *of = plot_simulated_curve(c->data, c->spec->ratio_of, metric);
        const struct plot_curve *to = plot_simulated_curve(c->data, c->spec->ratio_to, metric);
        if (of != NULL && to != NULL)
            set_ratios(of, to);
    }
}

/* Where the curve begins when all points that the panel shows have results; its first value, if x
 * is no axis. */
static double whole_curve_begins(const struct collector *c, const struct plot_curve *curve)
{
    double begin = g_array_index(curve->values, struct plot_value, 0).x, x;
    for (size_t i = 0; plot_has_x_axis(c->scenario, c->spec) && i < scenario_n_points(c->scenario);
         i++) {
        g_autofree char *series = plot_series_name(c->spec, c->scenario, i);
        if (c->spec->shown[i] && strcmp(series, curve->series) == 0 &&
            plot_data_to_x(c->data, plot_axis_value(c->scenario, i, c->spec->x), &x))
            begin = MIN(begin, x);
    }
    return begin;
}

static void divide_values(struct plot_curve *curve, double by)
{
    for (guint k = 0; k < curve->values->len; k++) {
        struct plot_value *value = &g_array_index(curve->values, struct plot_value, k);
        value->y /= by;
        value->ci95 /= fabs(by);
    }
}

/* Relative to the curve's first value; nothing is said of curves that begin with 0. */
static void normalise_curve(struct plot_curve *curve)
{
    const double first = g_array_index(curve->values, struct plot_value, 0).y;
    if (first != 0.0)
        divide_values(curve, first);
}

/* A curve without results at its beginning has nothing to be relative to. */
static void normalise(const struct collector *c)
{
    for (guint i = c->data->curves->len; c->spec->normalised && i-- > 0;) {
        struct plot_curve *curve = c->data->curves->pdata[i];
        const double begin = whole_curve_begins(c, curve);
        if (g_array_index(curve->values, struct plot_value, 0).x == begin) {
            normalise_curve(curve);
            continue;
        }
        char number[32];
        fprintf(stderr,
                "%s: %s%s%s is normalised to its value at %s=%s, of which there are no results: it "
                "is left out\n",
                scenario_name(c->scenario), curve->metric, *curve->series != '\0' ? " of " : "",
                curve->series, c->spec->x,
                c->data->categories->len > 0
                    ? (const char *)c->data->categories->pdata[(guint)begin]
                    : cli_number(begin, number));
        g_ptr_array_remove_index(c->data->curves, i);
    }
}

struct plot_value *plot_value_at(const struct plot_curve *curve, double x)
{
    for (guint i = 0; i < curve->values->len; i++) {
        struct plot_value *value = &g_array_index(curve->values, struct plot_value, i);
        if (value->x == x)
            return value;
    }
    return NULL;
}

/* Values over those of `to` at the same x; its uncertainty is theirs, too, and it is exactly 1.
 * What it has no value for, or 0, is left out. */
static void divide_curve(struct plot_curve *curve, const struct plot_curve *to)
{
    for (guint i = curve->values->len; i-- > 0;) {
        struct plot_value *value = &g_array_index(curve->values, struct plot_value, i);
        const struct plot_value *other = plot_value_at(to, value->x);
        if (other == NULL || other->y == 0.0) {
            g_array_remove_index(curve->values, i);
            continue;
        }
        const double y = value->y / other->y;
        value->ci95 = hypot(value->ci95, y * other->ci95) / fabs(other->y);
        value->y = y;
    }
}

/* Each curve of the metric relative to its own value at x = `at`; one without that is left out. */
static void make_relative_to_own(const struct collector *c, const char *metric, const char *at)
{
    double x;
    const bool known = plot_data_to_x(c->data, at, &x);
    for (guint i = c->data->curves->len; i-- > 0;) {
        struct plot_curve *curve = c->data->curves->pdata[i];
        const struct plot_value *first = known ? plot_value_at(curve, x) : NULL;
        if (strcmp(curve->metric, metric) != 0)
            continue;
        if (first != NULL && first->y != 0.0)
            divide_values(curve, first->y);
        else
            g_ptr_array_remove_index(c->data->curves, i);
    }
}

static void make_relative_to(const struct collector *c, const char *metric, const char *name)
{
    struct plot_curve *to = plot_simulated_curve(c->data, name, metric);
    for (guint i = c->data->curves->len; i-- > 0;) {
        struct plot_curve *curve = c->data->curves->pdata[i];
        if (strcmp(curve->metric, metric) != 0 || curve == to)
            continue;
        if (to != NULL)
            divide_curve(curve, to);
        if (to == NULL || curve->values->len == 0)
            g_ptr_array_remove_index(c->data->curves, i);
    }
    for (guint k = 0; to != NULL && k < to->values->len; k++) {
        struct plot_value *value = &g_array_index(to->values, struct plot_value, k);
        value->y = value->y != 0.0 ? 1.0 : value->y;
        value->ci95 = 0.0;
    }
    if (to == NULL)
        fprintf(stderr, "%s: %s is shown relative to %s, of which there are no results\n",
                scenario_name(c->scenario), metric, name);
}

static void make_relative(const struct collector *c)
{
    const struct plot_spec *spec = c->spec;
    for (guint i = 0; spec->relative_to->len > 0 && i < spec->metrics->len; i++) {
        const char *to = spec->relative_to->pdata[MIN(i, spec->relative_to->len - 1)];
        if (plot_is_own_reference(spec, to))
            make_relative_to_own(c, spec->metrics->pdata[i], strchr(to, '=') + 1);
        else
            make_relative_to(c, spec->metrics->pdata[i], to);
    }
}

/* The reference over each value; of a value of 0 nothing is said. */
static void invert(const struct collector *c)
{
    for (guint i = 0; c->spec->slowdown && i < c->data->curves->len; i++) {
        struct plot_curve *curve = c->data->curves->pdata[i];
        for (guint k = curve->values->len; k-- > 0;) {
            struct plot_value *value = &g_array_index(curve->values, struct plot_value, k);
            if (value->y == 0.0) {
                g_array_remove_index(curve->values, k);
                continue;
            }
            value->ci95 /= value->y * value->y;
            value->y = 1.0 / value->y;
        }
    }
}

/* What is shown relative to another value has no band: that value would move as well. */
static void drop_bands(const struct collector *c)
{
    const bool relative = c->spec->normalised || c->spec->relative_to->len > 0;
    for (guint i = 0; relative && i < c->data->curves->len; i++) {
        const struct plot_curve *curve = c->data->curves->pdata[i];
        for (guint k = 0; k < curve->values->len; k++) {
            struct plot_value *value = &g_array_index(curve->values, struct plot_value, k);
            value->band_lo = value->band_hi = 0.0;
        }
    }
}

/* Ratios in percent, if the y axis has these. */
static void scale_ratios(const struct collector *c)
{
    double factor;
    if (!plot_is_relative(c->spec) || !plot_check_unit(c->spec, "a ratio", "1", &factor, c->errors))
        return;
    for (guint i = 0; i < c->data->curves->len; i++) {
        struct plot_curve *curve = c->data->curves->pdata[i];
        curve->y_factor = factor;
        for (guint k = 0; k < curve->values->len; k++)
            scale_value(&g_array_index(curve->values, struct plot_value, k), factor);
    }
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* The results of the metrics that the panel shows along y, and x if it is none of the axes. */
static struct result_set *read_metrics(const struct scenario *scenario,
                                       const struct plot_spec *spec, struct results_db *db)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autofree char *parts = g_strconcat(spec->metrics->pdata[0], ".", NULL);
    if (spec->kind == PLOT_STACK)
        g_ptr_array_add(names, parts);
    for (guint i = 0; spec->kind != PLOT_STACK && i < spec->metrics->len; i++)
        g_ptr_array_add(names, spec->metrics->pdata[i]);
    if (spec->kind != PLOT_STACK && !plot_has_x_axis(scenario, spec))
        g_ptr_array_add(names, (gpointer)spec->x);
    g_ptr_array_add(names, NULL);
    struct result_set *set = result_set_of(db, scenario_name(scenario),
                                           (const char *const *)names->pdata);
    if (!result_set_read(set, db)) /* it has said why */
        g_clear_pointer(&set, result_set_free);
    return set;
}

static void collect_simulated(struct collector *c, struct results_db *db)
{
    const struct plot_spec *spec = c->spec;
    if (plot_is_distribution(spec)) {
        plot_distributions_collect(c->scenario, spec, db, c->data);
        return;
    }
    if (plot_is_sampled(spec)) {
        plot_samples_collect(c->scenario, spec, db, c->data);
        return;
    }
    struct result_set *set = read_metrics(c->scenario, spec, db);
    c->set = set;
    if (set != NULL && spec->kind == PLOT_STACK) {
        collect_stack(c);
    } else if (set != NULL) {
        find_categories(c);
        for (guint i = 0; i < spec->metrics->len; i++)
            collect_metric(c, spec->metrics->pdata[i]);
        collect_ratios(c);
        normalise(c);
        make_relative(c);
        invert(c);
        drop_bands(c);
        scale_ratios(c);
    }
    g_clear_pointer(&set, result_set_free);
}

bool plot_data_collect(struct scenario *scenario, const struct plot_spec *spec,
                       struct results_db *db, const struct cli_options *options,
                       const struct plot_published *published, struct plot_data *data,
                       struct sim_error_list *errors)
{
    struct collector c = { scenario, spec, NULL, options, data, errors };
    const size_t before = errors->n_messages;
    data->curves = g_ptr_array_new_with_free_func(free_curve);
    data->categories = g_ptr_array_new_with_free_func(g_free);
    data->tics = g_array_new(FALSE, FALSE, sizeof(struct plot_tic));
    g_array_set_clear_func(data->tics, clear_tic);
    data->strings = g_string_chunk_new(64);
    data->x_name = spec->kind == PLOT_STACK ? axis_names(scenario) : g_strdup(spec->x);
    data->x_unit = spec->x_unit;
    data->factor = 1.0;
    data->y_unit = spec->y_unit;
    collect_simulated(&c, db);
    take_common(spec, data);
    const bool any = data->curves->len > 0;
    for (guint i = 0; any && i < spec->measured->len; i++)
        collect_measured(&c, &g_array_index(spec->measured, struct plot_measured, i));
    if (any && published != NULL)
        plot_claims_collect(scenario, spec, published, data);
    tell_apart(spec, data);
    return any && errors->n_messages == before;
}

void plot_data_release(struct plot_data *data)
{
    g_free(data->x_name);
    g_free(data->common);
    g_free(data->ratio_name);
    g_string_chunk_free(data->strings);
    g_ptr_array_free(data->curves, TRUE);
    g_ptr_array_free(data->categories, TRUE);
    g_array_free(data->tics, TRUE);
}
