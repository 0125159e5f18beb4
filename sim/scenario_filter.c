/*
 * Choosing points by their axis values, for `constraints` and --filter. An expression is a list of
 * alternatives, each a list of comparisons; to apply it, every comparison is first worked out for
 * each value of its axis, so that a point costs a look-up.
 */
#include <math.h>
#include <string.h>

#include "sim/scenario_private.h"
#include "sim/unit.h"

enum comparator { EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL };

/* Of two that fit the longer stands first. */
static const struct {
    const char *text;
    enum comparator comparator;
} comparators[] = {
    { "==", EQUAL },         { "=", EQUAL }, { "!=", NOT_EQUAL }, { "<=", LESS_EQUAL },
    { ">=", GREATER_EQUAL }, { "<", LESS },  { ">", GREATER },
};

struct comparison {
    char *axis;
    enum comparator comparator;
    GPtrArray *values; /* char *, owned; several with = and != only */
};

struct scenario_filter {
    GPtrArray *alternatives; /* of GPtrArray of struct comparison, all owned */
};

static void comparison_free(gpointer data)
{
    struct comparison *comparison = data;

    g_free(comparison->axis);
    g_ptr_array_free(comparison->values, TRUE);
    g_free(comparison);
}

static void alternative_free(gpointer alternative)
{
    g_ptr_array_free(alternative, TRUE);
}

void scenario_filter_free(struct scenario_filter *filter)
{
    if (!filter)
        return;
    g_ptr_array_free(filter->alternatives, TRUE);
    g_free(filter);
}

/* ---- Parsing ------------------------------------------------------------------------------- */

static void skip_blanks(const char **at)
{
    while (g_ascii_isspace(**at))
        ++*at;
}

/* "value", 'value', or up to a blank, a comma, "&&" or "||"; NULL if there is none. */
static char *take_value(const char **at)
{
    const char *begin = *at, *end = begin;

    if (*begin == '"' || *begin == '\'') {
        end = strchr(begin + 1, *begin);
        if (!end)
            return NULL;
        *at = end + 1;
        return g_strndup(begin + 1, (gsize)(end - begin - 1));
    }
    while (*end && !g_ascii_isspace(*end) && !strchr("|&,=<>!", *end))
        end++;
    *at = end;
    return end == begin ? NULL : g_strndup(begin, (gsize)(end - begin));
}

static bool take_comparator(const char **at, enum comparator *comparator)
{
    for (size_t i = 0; i < SIM_N_ELEMENTS(comparators); i++) {
        if (g_str_has_prefix(*at, comparators[i].text)) {
            *at += strlen(comparators[i].text);
            *comparator = comparators[i].comparator;
            return true;
        }
    }
    return false;
}

/* NAME COMPARATOR VALUE[,VALUE]...; NULL where it is none. */
static struct comparison *take_comparison(const char **at)
{
    struct comparison *comparison = g_new0(struct comparison, 1);
    const char *begin = *at;
    char *value;
    bool several;

    comparison->values = g_ptr_array_new_with_free_func(g_free);
    while (g_ascii_isalnum(**at) || **at == '_')
        ++*at;
    comparison->axis = g_strndup(begin, (gsize)(*at - begin));
    skip_blanks(at);
    if (!*comparison->axis || !take_comparator(at, &comparison->comparator)) {
        comparison_free(comparison);
        return NULL;
    }
    several = comparison->comparator == EQUAL || comparison->comparator == NOT_EQUAL;
    do {
        skip_blanks(at);
        value = take_value(at);
        if (value)
            g_ptr_array_add(comparison->values, value);
    } while (value && several && **at == ',' && ++*at);
    if (value)
        return comparison;
    comparison_free(comparison);
    return NULL;
}

/* Comparisons up to "||" or the end; NULL where something else stands, or nothing. */
static GPtrArray *take_alternative(const char **at)
{
    GPtrArray *alternative = g_ptr_array_new_with_free_func(comparison_free);

    for (;;) {
        struct comparison *comparison;

        skip_blanks(at);
        comparison = take_comparison(at);
        if (!comparison)
            break;
        g_ptr_array_add(alternative, comparison);
        skip_blanks(at);
        if (!**at || g_str_has_prefix(*at, "||"))
            return alternative;
        if (g_str_has_prefix(*at, "&&"))
            *at += 2;
    }
    alternative_free(alternative);
    return NULL;
}

struct scenario_filter *scenario_filter_parse(const char *text, char **fault)
{
    struct scenario_filter *filter = g_new0(struct scenario_filter, 1);
    const char *at = text;

    filter->alternatives = g_ptr_array_new_with_free_func(alternative_free);
    for (;;) {
        GPtrArray *alternative = take_alternative(&at);

        if (!alternative)
            break;
        g_ptr_array_add(filter->alternatives, alternative);
        if (!*at)
            return filter;
        at += strlen("||");
    }
    *fault = g_strdup_printf("found \"%.80s\", expected comparisons such as "
                             "\"config=remote buffer_bytes>1024\", alternatives after \"||\"",
                             text);
    scenario_filter_free(filter);
    return NULL;
}

/* ---- Comparing ----------------------------------------------------------------------------- */

/* A number in the base of its unit: "64KiB", "0x10", "1e3 ns"; without a unit in `plain`'s, which
 * may be NULL. False if the text is something else. */
static bool parse_number(const char *text, const struct unit *plain, double *value,
                         enum unit_dimension *dimension)
{
    const struct unit *unit = plain;
    bool hexadecimal = g_str_has_prefix(text, "0x");
    char *end;

    if (!g_ascii_isdigit(*text) && !strchr("+-.", *text))
        return false;
    *value = hexadecimal ? (double)g_ascii_strtoull(text, &end, 16) : g_ascii_strtod(text, &end);
    if (end == text || !isfinite(*value))
        return false;
    while (g_ascii_isspace(*end))
        end++;
    if (*end && strcmp(end, "L") != 0) {
        unit = unit_find(end);
        if (!unit)
            return false;
    }
    *dimension = unit ? unit->dimension : UNIT_NONE;
    if (unit)
        *value = ldexp(*value, unit->pow2) * pow(10, unit->pow10);
    return true;
}

/* What a plain number of the axis is in: by the setting's name, or by its own. */
static const struct unit *axis_unit(const struct axis *axis)
{
    return param_unit_in_name(axis->setting ? axis->setting : axis->name);
}

/* Numbers of one kind: their difference, 0 if only rounding tells them apart. */
static bool compare_numbers(const struct axis *axis, const char *label, const char *value,
                            double *difference)
{
    const struct unit *plain = axis_unit(axis);
    enum unit_dimension label_dimension, value_dimension;
    double a, b;

    if (!parse_number(label, plain, &a, &label_dimension) ||
        !parse_number(value, plain, &b, &value_dimension) || label_dimension != value_dimension)
        return false;
    *difference = a - b;
    if (fabs(*difference) <= 1e-12 * fmax(fabs(a), fabs(b)))
        *difference = 0.0;
    return true;
}

static bool is_one_of(const struct axis *axis, const char *label, const GPtrArray *values)
{
    for (guint i = 0; i < values->len; i++) {
        double difference;

        if (compare_numbers(axis, label, values->pdata[i], &difference)
                ? difference == 0.0
                : strcmp(label, values->pdata[i]) == 0)
            return true;
    }
    return false;
}

/* Whether the comparison holds for a value of the axis. */
static bool holds(const struct comparison *comparison, const struct axis *axis, const char *label)
{
    double difference = 0.0;

    if (comparison->comparator == EQUAL || comparison->comparator == NOT_EQUAL)
        return is_one_of(axis, label, comparison->values) == (comparison->comparator == EQUAL);
    if (!compare_numbers(axis, label, comparison->values->pdata[0], &difference))
        return false;
    switch (comparison->comparator) {
    case LESS: return difference < 0.0;
    case LESS_EQUAL: return difference <= 0.0;
    case GREATER: return difference > 0.0;
    default: return difference >= 0.0;
    }
}

/* ---- Whether it fits ----------------------------------------------------------------------- */

/* "there is no axis "cnfig"; did you mean "config"?", and the like */
static char *no_such(const char *what, const char *found, const GPtrArray *names)
{
    char *suggestion = sim_suggestion(found, (const char *const *)names->pdata);
    char *fault = g_strdup_printf("%s \"%s\"%s%s", what, found, *suggestion ? "; " : "",
                                  suggestion);

    g_free(suggestion);
    return fault;
}

static char *no_such_axis(const struct scenario *scenario, const char *found)
{
    GPtrArray *names = g_ptr_array_new();
    char *fault;

    for (guint i = 0; i < scenario->axes->len; i++)
        g_ptr_array_add(names, ((struct axis *)scenario->axes->pdata[i])->name);
    g_ptr_array_add(names, NULL);
    fault = no_such("there is no axis", found, names);
    g_ptr_array_free(names, TRUE);
    return fault;
}

static char *no_such_value(const struct axis *axis, const char *found)
{
    GPtrArray *labels = g_ptr_array_new();
    char *what = g_strdup_printf("axis %s has no value", axis->name), *fault;

    for (guint i = 0; i < axis->values->len; i++)
        g_ptr_array_add(labels, ((struct axis_value *)axis->values->pdata[i])->label);
    g_ptr_array_add(labels, NULL);
    fault = no_such(what, found, labels);
    g_ptr_array_free(labels, TRUE);
    g_free(what);
    return fault;
}

/* Whether a value of the axis can be compared with this one: equal to it, or a number as it is. */
static bool value_fits(const struct comparison *comparison, const struct axis *axis,
                       const char *value)
{
    const bool equality = comparison->comparator == EQUAL || comparison->comparator == NOT_EQUAL;
    double difference;

    for (guint i = 0; i < axis->values->len; i++) {
        const char *label = ((const struct axis_value *)axis->values->pdata[i])->label;

        if (compare_numbers(axis, label, value, &difference)
                ? !equality || difference == 0.0
                : equality && strcmp(label, value) == 0)
            return true;
    }
    return false;
}

/* NULL, or what is wrong; *has_axis: the axis is there. */
static char *comparison_fault(const struct comparison *comparison, const struct scenario *scenario,
                              bool *has_axis)
{
    const size_t a = scenario_axis_find(scenario, comparison->axis);
    const struct axis *axis;

    *has_axis = a < scenario->axes->len;
    if (!*has_axis)
        return no_such_axis(scenario, comparison->axis);
    axis = scenario->axes->pdata[a];
    for (guint i = 0; i < comparison->values->len; i++) {
        const char *value = comparison->values->pdata[i];

        if (value_fits(comparison, axis, value))
            continue;
        if (comparison->comparator == EQUAL || comparison->comparator == NOT_EQUAL)
            return no_such_value(axis, value);
        return g_strdup_printf("the values of axis %s are not more or less than \"%s\"", axis->name,
                               value);
    }
    return NULL;
}

/* NULL if it fits one of them; else what is wrong with the first that has the axis, or the first.
 */
static char *fault_of_all(const struct comparison *comparison,
                          const struct scenario *const *scenarios, size_t n_scenarios)
{
    char *fault = NULL;
    bool had_axis = false;

    for (size_t i = 0; i < n_scenarios; i++) {
        bool has_axis;
        char *found = comparison_fault(comparison, scenarios[i], &has_axis);

        if (!found) {
            g_free(fault);
            return NULL;
        }
        if (!fault || (has_axis && !had_axis)) {
            g_free(fault);
            fault = n_scenarios > 1 ? g_strdup_printf("%s: %s", scenarios[i]->name, found)
                                    : g_strdup(found);
            had_axis = has_axis;
        }
        g_free(found);
    }
    return fault;
}

bool scenario_filter_fits(const struct scenario_filter *filter,
                          const struct scenario *const *scenarios, size_t n_scenarios, char **fault)
{
    *fault = NULL;
    for (guint i = 0; !*fault && i < filter->alternatives->len; i++) {
        const GPtrArray *alternative = filter->alternatives->pdata[i];

        for (guint k = 0; !*fault && k < alternative->len; k++)
            *fault = fault_of_all(alternative->pdata[k], scenarios, n_scenarios);
    }
    return !*fault;
}

/* ---- Applying it --------------------------------------------------------------------------- */

/* Clears selected[point] where the comparison does not hold. */
static void apply_comparison(const struct comparison *comparison, const struct scenario *scenario,
                             bool *selected)
{
    const size_t a = scenario_axis_find(scenario, comparison->axis);
    const bool there = a < scenario->axes->len;
    const struct axis *axis = there ? scenario->axes->pdata[a] : NULL;
    bool *good = g_new0(bool, there ? axis->values->len : 1);

    for (guint i = 0; there && i < axis->values->len; i++)
        good[i] = holds(comparison, axis,
                        ((const struct axis_value *)axis->values->pdata[i])->label);
    for (size_t point = 0; point < scenario->n_points; point++)
        selected[point] = selected[point] && there &&
                          good[scenario_point_value(scenario, point, a)];
    g_free(good);
}

void scenario_filter_apply(const struct scenario_filter *filter, const struct scenario *scenario,
                           bool *selected)
{
    const size_t n = scenario->n_points;
    bool *any = g_new0(bool, n), *all = g_new(bool, n);

    for (guint i = 0; i < filter->alternatives->len; i++) {
        const GPtrArray *alternative = filter->alternatives->pdata[i];

        memcpy(all, selected, n * sizeof(*all));
        for (guint k = 0; k < alternative->len; k++)
            apply_comparison(alternative->pdata[k], scenario, all);
        for (size_t point = 0; point < n; point++)
            any[point] = any[point] || all[point];
    }
    memcpy(selected, any, n * sizeof(*any));
    g_free(all);
    g_free(any);
}
