/*
 * An expression is a list of alternatives, each a list of comparisons; to apply it, every
 * comparison is first worked out for each value of its axis, so that a point costs a look-up.
 */
#include "sim/config/filter.h"

#include <glib.h>
#include <math.h>
#include <string.h>

#include "sim/config/error.h"

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

struct filter {
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

void filter_free(struct filter *filter)
{
    if (!filter)
        return;
    g_ptr_array_free(filter->alternatives, TRUE);
    g_free(filter);
}

/* ---- Parsing --------------------------------------------------------------------------------- */

static void skip_blanks(const char **at)
{
    while (g_ascii_isspace(**at))
        ++*at;
}

static void skip_name(const char **at)
{
    while (g_ascii_isalnum(**at) || **at == '_')
        ++*at;
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

/* Whether "&&", "||", the next comparison or nothing more stands here. */
static bool value_ends(const char *at)
{
    enum comparator comparator;
    const char *name;

    skip_blanks(&at);
    name = at;
    skip_name(&at);
    if (at == name)
        return !*at || strchr("|&,", *at);
    skip_blanks(&at);
    return take_comparator(&at, &comparator);
}

/* "value", 'value', or up to a comma, an operator or what value_ends(); NULL if there is none. */
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
    while (*end && !strchr("|&,=<>!", *end) && !(g_ascii_isspace(*end) && value_ends(end)))
        end++;
    *at = end;
    return end == begin ? NULL : g_strchomp(g_strndup(begin, (gsize)(end - begin)));
}

/* NAME COMPARATOR VALUE[,VALUE]...; NULL where it is none. */
static struct comparison *take_comparison(const char **at)
{
    struct comparison *comparison = g_new0(struct comparison, 1);
    const char *begin = *at;
    char *value;
    bool several;

    comparison->values = g_ptr_array_new_with_free_func(g_free);
    skip_name(at);
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
        skip_blanks(at);
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

struct filter *filter_parse(const char *text, char **fault)
{
    struct filter *filter = g_new0(struct filter, 1);
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
    filter_free(filter);
    return NULL;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

bool filter_number(const char *text, const struct unit *plain, double *value,
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

bool filter_same_kind(enum unit_dimension a, enum unit_dimension b)
{
    return a == b || (a == UNIT_NONE && b == UNIT_SIZE) || (a == UNIT_SIZE && b == UNIT_NONE);
}

/* Numbers of one kind: their difference, 0 if only rounding tells them apart. */
static bool compare_numbers(const char *a, const char *b, const struct unit *plain,
                            double *difference)
{
    enum unit_dimension a_dimension, b_dimension;
    double x, y;

    if (!filter_number(a, plain, &x, &a_dimension) || !filter_number(b, plain, &y, &b_dimension) ||
        !filter_same_kind(a_dimension, b_dimension))
        return false;
    *difference = x - y;
    if (fabs(*difference) <= 1e-12 * fmax(fabs(x), fabs(y)))
        *difference = 0.0;
    return true;
}

static bool has_wildcards(const char *pattern)
{
    return strpbrk(pattern, "*?") != NULL;
}

static bool is_equal(const char *label, const char *value, const struct unit *plain)
{
    double difference;

    if (compare_numbers(label, value, plain, &difference))
        return difference == 0.0;
    return strcmp(label, value) == 0 ||
           (has_wildcards(value) && g_pattern_match_simple(value, label));
}

static bool is_equality(const struct comparison *comparison)
{
    return comparison->comparator == EQUAL || comparison->comparator == NOT_EQUAL;
}

/* Whether the comparison holds for a value of its axis. */
static bool holds(const struct comparison *comparison, const char *label, const struct unit *plain)
{
    double difference = 0.0;

    if (is_equality(comparison)) {
        bool any = false;

        for (guint i = 0; !any && i < comparison->values->len; i++)
            any = is_equal(label, comparison->values->pdata[i], plain);
        return any == (comparison->comparator == EQUAL);
    }
    if (!compare_numbers(label, comparison->values->pdata[0], plain, &difference))
        return false;
    switch (comparison->comparator) {
    case LESS: return difference < 0.0;
    case LESS_EQUAL: return difference <= 0.0;
    case GREATER: return difference > 0.0;
    default: return difference >= 0.0;
    }
}

/* ---- Whether it fits ------------------------------------------------------------------------- */

/* n_axes if there is none of that name. */
static size_t find_axis(const struct filter_table *table, const char *name)
{
    size_t a = 0;

    while (a < table->n_axes && strcmp(table->axis(table->context, a), name) != 0)
        a++;
    return a;
}

/* "there is no axis "cnfig"; did you mean "config"?", and the like. Ends the list of names. */
static char *no_such(const char *what, const char *found, GPtrArray *names)
{
    g_ptr_array_add(names, NULL);
    g_autofree char *suggestion = sim_suggestion(found, (const char *const *)names->pdata);
    return g_strdup_printf("%s \"%s\"%s%s", what, found, *suggestion ? "; " : "", suggestion);
}

static char *no_such_axis(const struct filter_table *table, const char *found)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();

    for (size_t a = 0; a < table->n_axes; a++)
        g_ptr_array_add(names, (gpointer)table->axis(table->context, a));
    return no_such("there is no axis", found, names);
}

static char *no_such_value(const struct filter_table *table, size_t axis, const char *found)
{
    g_autoptr(GPtrArray) labels = g_ptr_array_new();
    const char *label;

    for (size_t i = 0; (label = table->value(table->context, axis, i)) != NULL; i++)
        g_ptr_array_add(labels, (gpointer)label);
    g_autofree char *what = g_strdup_printf("axis %s has no value",
                                            table->axis(table->context, axis));
    return no_such(what, found, labels);
}

/* Whether a value of the axis can be compared with this one: equal to it, or a number as it is. */
static bool value_fits(const struct comparison *comparison, const struct filter_table *table,
                       size_t axis, const char *value)
{
    const struct unit *plain = table->unit(table->context, axis);
    const char *label;
    double difference;

    for (size_t i = 0; (label = table->value(table->context, axis, i)) != NULL; i++) {
        if (is_equality(comparison) ? is_equal(label, value, plain)
                                    : compare_numbers(label, value, plain, &difference))
            return true;
    }
    return false;
}

/* NULL, or what is wrong; *has_axis: the axis is there. */
static char *comparison_fault(const struct comparison *comparison, const struct filter_table *table,
                              bool *has_axis)
{
    const size_t axis = find_axis(table, comparison->axis);
    const char *misfit = NULL;
    guint n_fit = 0;

    *has_axis = axis < table->n_axes;
    if (!*has_axis)
        return no_such_axis(table, comparison->axis);
    for (guint i = 0; i < comparison->values->len; i++) {
        const char *value = comparison->values->pdata[i];

        if (value_fits(comparison, table, axis, value))
            n_fit++;
        else if (!misfit)
            misfit = value;
    }
    if (!misfit || (!table->complete && (n_fit > 0 || comparison->comparator == NOT_EQUAL)))
        return NULL;
    if (is_equality(comparison))
        return no_such_value(table, axis, misfit);
    return g_strdup_printf("the values of axis %s are not more or less than \"%s\"",
                           comparison->axis, misfit);
}

/* NULL if it fits one of them; else what is wrong with the first that has the axis, or the first.
 */
static char *fault_of_all(const struct comparison *comparison, const struct filter_table *tables,
                          size_t n_tables)
{
    char *fault = NULL;
    bool had_axis = false;

    for (size_t i = 0; i < n_tables; i++) {
        bool has_axis;
        g_autofree char *found = comparison_fault(comparison, &tables[i], &has_axis);

        if (!found) {
            g_free(fault);
            return NULL;
        }
        if (!fault || (has_axis && !had_axis)) {
            g_free(fault);
            fault = n_tables > 1 ? g_strdup_printf("%s: %s", tables[i].title, found)
                                 : g_strdup(found);
            had_axis = has_axis;
        }
    }
    return fault;
}

char *filter_fault(const struct filter *filter, const struct filter_table *tables, size_t n_tables)
{
    char *fault = NULL;

    for (guint i = 0; !fault && i < filter->alternatives->len; i++) {
        const GPtrArray *alternative = filter->alternatives->pdata[i];

        for (guint k = 0; !fault && k < alternative->len; k++)
            fault = fault_of_all(alternative->pdata[k], tables, n_tables);
    }
    return fault;
}

/* ---- Applying it ----------------------------------------------------------------------------- */

/* Clears selected[point] where the comparison does not hold. */
static void apply_comparison(const struct comparison *comparison, const struct filter_table *table,
                             bool *selected)
{
    const size_t axis = find_axis(table, comparison->axis);
    const bool there = axis < table->n_axes;
    const struct unit *plain = there ? table->unit(table->context, axis) : NULL;
    g_autoptr(GByteArray) good = g_byte_array_new();
    const char *label;

    for (size_t i = 0; there && (label = table->value(table->context, axis, i)) != NULL; i++) {
        const guint8 one = holds(comparison, label, plain);

        g_byte_array_append(good, &one, 1);
    }
    for (size_t point = 0; point < table->n_points; point++) {
        const size_t value = there ? table->point_value(table->context, point, axis) : SIZE_MAX;

        selected[point] = selected[point] && value < good->len && good->data[value];
    }
}

void filter_apply(const struct filter *filter, const struct filter_table *table, bool *selected)
{
    const size_t n = table->n_points;
    g_autofree bool *any = g_new0(bool, n), *all = g_new(bool, n);

    for (guint i = 0; i < filter->alternatives->len; i++) {
        const GPtrArray *alternative = filter->alternatives->pdata[i];

        memcpy(all, selected, n * sizeof(*all));
        for (guint k = 0; k < alternative->len; k++)
            apply_comparison(alternative->pdata[k], table, all);
        for (size_t point = 0; point < n; point++)
            any[point] = any[point] || all[point];
    }
    memcpy(selected, any, n * sizeof(*any));
}
