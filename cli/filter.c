/* Conditions on the axes of points, and the values of axes as numbers. */
#define _GNU_SOURCE /* strverscmp(): [2] before [10] */
#include <math.h>
#include <string.h>

#include "cli/filter.h"
#include "sim/unit.h"

enum relation { EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST };

struct condition {
    char *axis;
    enum relation relation;
    char **values; /* of EQUAL and UNEQUAL: alternatives, with wildcards; else one */
    bool axis_seen, ever_held;
};

struct filter {
    GPtrArray *conditions;
    GHashTable *axes; /* of all points seen */
};

/* ---- Points and values --------------------------------------------------------------------- */

/* A word with one of these begins the next pair; one without belongs to the value before it. */
static GPtrArray *split_pairs(const char *text, const char *operators)
{
    GPtrArray *pairs = g_ptr_array_new_with_free_func(g_free);
    char **words = g_strsplit_set(text, " \t", -1);
    for (char **word = words; *word != NULL; word++) {
        if (pairs->len > 0 && strpbrk(*word, operators) == NULL) {
            char *longer = g_strconcat(pairs->pdata[pairs->len - 1], " ", *word, NULL);
            g_free(pairs->pdata[pairs->len - 1]);
            pairs->pdata[pairs->len - 1] = longer;
        } else if (**word != '\0') {
            g_ptr_array_add(pairs, g_strdup(*word));
        }
    }
    g_strfreev(words);
    return pairs;
}

char **point_split(const char *point)
{
    GPtrArray *pairs = split_pairs(point, "="), *split = g_ptr_array_new();
    for (guint i = 0; i < pairs->len; i++) {
        const char *pair = pairs->pdata[i], *equals = strchr(pair, '=');
        g_ptr_array_add(split,
                        equals != NULL ? g_strndup(pair, (gsize)(equals - pair)) : g_strdup(pair));
        g_ptr_array_add(split, g_strdup(equals != NULL ? equals + 1 : ""));
    }
    g_ptr_array_add(split, NULL);
    g_ptr_array_free(pairs, TRUE);
    return (char **)g_ptr_array_free(split, FALSE);
}

/* "4 KiB" and, of an axis buffer_kib or with no unit in its name, "4". In base units. */
static bool quantity(const char *axis, const char *text, double *value)
{
    char *end = NULL;
    *value = g_ascii_strtod(text, &end);
    if (end == text || !isfinite(*value))
        return false;
    char *symbol = g_strstrip(g_strdup(end));
    const char *suffix = strrchr(axis, '_');
    const bool bare = *symbol == '\0';
    const struct unit *unit = bare ? suffix != NULL ? unit_find(suffix + 1) : NULL
                                   : unit_find(symbol);
    if (unit != NULL)
        *value = ldexp(*value, unit->pow2) * pow(10.0, unit->pow10);
    g_free(symbol);
    return bare || unit != NULL;
}

int point_value_compare(const char *axis, const char *a, const char *b)
{
    double x, y;
    const bool a_number = quantity(axis, a, &x), b_number = quantity(axis, b, &y);
    if (a_number != b_number)
        return a_number ? -1 : 1;
    if (a_number && x < y)
        return -1;
    if (a_number && x > y)
        return 1;
    return strverscmp(a, b);
}

/* ---- Conditions ---------------------------------------------------------------------------- */

static void free_condition(gpointer pointer)
{
    struct condition *condition = pointer;
    g_free(condition->axis);
    g_strfreev(condition->values);
    g_free(condition);
}

/* Reads the operator at text; its length, 0 if there is none. */
static size_t read_relation(const char *text, enum relation *relation)
{
    static const struct {
        const char *text;
        enum relation relation;
    } operators[] = { { "!=", UNEQUAL }, { "<=", AT_MOST }, { ">=", AT_LEAST }, { "==", EQUAL },
                      { "=", EQUAL },    { "<", LESS },     { ">", MORE } };
    for (size_t i = 0; i < SIM_N_ELEMENTS(operators); i++) {
        if (g_str_has_prefix(text, operators[i].text)) {
            *relation = operators[i].relation;
            return strlen(operators[i].text);
        }
    }
    return 0;
}

static void add_condition(struct filter *filter, const char *text, struct sim_error_list *errors)
{
    enum relation relation = EQUAL;
    double number;
    const size_t n_axis = strcspn(text, "=<>!");
    const size_t n_operator = read_relation(text + n_axis, &relation);
    const char *value = text + n_axis + n_operator;
    if (n_axis == 0 || n_operator == 0 || *value == '\0') {
        sim_error_add(errors, NULL, 0,
                      "--filter: found \"%s\", expected axis=value, or != < <= > >=", text);
        return;
    }
    struct condition *condition = g_new0(struct condition, 1);
    condition->axis = g_strndup(text, n_axis);
    condition->relation = relation;
    condition->values = relation <= UNEQUAL ? g_strsplit(value, ",", -1)
                                            : g_strsplit(value, ",", 1);
    g_ptr_array_add(filter->conditions, condition);
    if (relation > UNEQUAL && !quantity(condition->axis, value, &number))
        sim_error_add(errors, NULL, 0, "--filter: %s: found \"%s\", expected a number", text,
                      value);
}

struct filter *filter_new(char **texts, struct sim_error_list *errors)
{
    struct filter *filter = g_new0(struct filter, 1);
    filter->conditions = g_ptr_array_new_with_free_func(free_condition);
    filter->axes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (; texts != NULL && *texts != NULL; texts++) {
        GPtrArray *pairs = split_pairs(*texts, "=<>!");
        for (guint i = 0; i < pairs->len; i++)
            add_condition(filter, pairs->pdata[i], errors);
        g_ptr_array_free(pairs, TRUE);
    }
    return filter;
}

void filter_free(struct filter *filter)
{
    if (filter == NULL)
        return;
    g_ptr_array_free(filter->conditions, TRUE);
    g_hash_table_destroy(filter->axes);
    g_free(filter);
}

static bool is_one_of(const struct condition *condition, const char *value)
{
    double found, wanted;
    const bool number = quantity(condition->axis, value, &found);
    for (char **text = condition->values; *text != NULL; text++) {
        if (g_pattern_match_simple(*text, value))
            return true;
        if (number && quantity(condition->axis, *text, &wanted) && found == wanted)
            return true;
    }
    return false;
}

static bool holds(const struct condition *condition, const char *value)
{
    double found, bound;
    if (condition->relation == EQUAL || condition->relation == UNEQUAL)
        return is_one_of(condition, value) == (condition->relation == EQUAL);
    if (!quantity(condition->axis, value, &found) ||
        !quantity(condition->axis, condition->values[0], &bound))
        return false;
    switch (condition->relation) {
    case LESS: return found < bound;
    case AT_MOST: return found <= bound;
    case MORE: return found > bound;
    default: return found >= bound;
    }
}

bool filter_matches(struct filter *filter, const char *point)
{
    char **split = point_split(point);
    bool matches = true;
    for (guint i = 0; i < filter->conditions->len; i++) {
        struct condition *condition = filter->conditions->pdata[i];
        const char *value = NULL;
        for (char **pair = split; *pair != NULL; pair += 2) {
            if (strcmp(pair[0], condition->axis) == 0)
                value = pair[1];
        }
        const bool held = value != NULL && holds(condition, value);
        condition->axis_seen = condition->axis_seen || value != NULL;
        condition->ever_held = condition->ever_held || held;
        matches = matches && held;
    }
    for (char **pair = split; filter->conditions->len > 0 && *pair != NULL; pair += 2) {
        if (!g_hash_table_contains(filter->axes, pair[0]))
            g_hash_table_add(filter->axes, g_strdup(pair[0]));
    }
    g_strfreev(split);
    return matches;
}

void filter_check(const struct filter *filter, struct sim_error_list *errors)
{
    char **axes = (char **)g_hash_table_get_keys_as_array(filter->axes, NULL);
    for (guint i = 0; i < filter->conditions->len; i++) {
        const struct condition *condition = filter->conditions->pdata[i];
        if (!condition->axis_seen) {
            char *suggestion = sim_suggestion(condition->axis, (const char *const *)axes);
            sim_error_add(errors, NULL, 0, "--filter: no point has an axis \"%s\"%s%s",
                          condition->axis, *suggestion != '\0' ? "; " : "", suggestion);
            g_free(suggestion);
        } else if (!condition->ever_held) {
            sim_error_add(errors, NULL, 0, "--filter: no point meets the condition on %s",
                          condition->axis);
        }
    }
    g_free(axes);
}
