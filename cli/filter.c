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
    GPtrArray *texts; /* all of them hold: GPtrArray of alternatives, each one of conditions */
    GHashTable *axes; /* of all points seen */
};

/* ---- Points and values --------------------------------------------------------------------- */

/* A word with "=" begins the next pair; one without belongs to the value before it. */
char **point_split(const char *point)
{
    GPtrArray *split = g_ptr_array_new();
    char **words = g_strsplit(point, " ", -1);
    for (char **word = words; *word != NULL; word++) {
        const char *equals = strchr(*word, '=');
        if (equals != NULL) {
            g_ptr_array_add(split, g_strndup(*word, (gsize)(equals - *word)));
            g_ptr_array_add(split, g_strdup(equals + 1));
        } else if (split->len > 0) {
            char *longer = g_strconcat(split->pdata[split->len - 1], " ", *word, NULL);
            g_free(split->pdata[split->len - 1]);
            split->pdata[split->len - 1] = longer;
        }
    }
    g_strfreev(words);
    g_ptr_array_add(split, NULL);
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

static void skip_blanks(const char **at)
{
    while (g_ascii_isspace(**at))
        ++*at;
}

static size_t name_length(const char *text)
{
    size_t n = 0;
    while (g_ascii_isalnum(text[n]) || text[n] == '_')
        n++;
    return n;
}

/* "and" or "or" stands here, or the next condition, or nothing more. */
static bool value_ends(const char *at)
{
    enum relation relation;
    skip_blanks(&at);
    const size_t n = name_length(at);
    const char *after = at + n;
    skip_blanks(&after);
    return *at == '\0' || g_str_has_prefix(at, "&&") || g_str_has_prefix(at, "||") ||
           (n > 0 && read_relation(after, &relation) > 0);
}

/* In quotes, or up to a comma or what value_ends(): "4 KiB" needs no quotes. NULL if there is none.
 */
static char *take_value(const char **at)
{
    skip_blanks(at);
    const char *begin = *at, *end = begin;
    if (*begin == '"' || *begin == '\'') {
        end = strchr(begin + 1, *begin);
        *at = end != NULL ? end + 1 : begin;
        return end != NULL ? g_strndup(begin + 1, (gsize)(end - begin - 1)) : NULL;
    }
    while (*end != '\0' && *end != ',' && strchr("=<>!", *end) == NULL &&
           !g_str_has_prefix(end, "&&") && !g_str_has_prefix(end, "||") &&
           !(g_ascii_isspace(*end) && value_ends(end)))
        end++;
    *at = end;
    return end > begin ? g_strchomp(g_strndup(begin, (gsize)(end - begin))) : NULL;
}

/* axis RELATION value[,value]...; NULL where it is none. */
static struct condition *take_condition(const char **at)
{
    struct condition *condition = g_new0(struct condition, 1);
    GPtrArray *values = g_ptr_array_new();
    skip_blanks(at);
    const size_t n_axis = name_length(*at);
    condition->axis = g_strndup(*at, n_axis);
    *at += n_axis;
    skip_blanks(at);
    const size_t n_relation = read_relation(*at, &condition->relation);
    *at += n_relation;
    const bool several = condition->relation == EQUAL || condition->relation == UNEQUAL;
    char *value = NULL;
    do {
        value = n_axis > 0 && n_relation > 0 ? take_value(at) : NULL;
        if (value != NULL)
            g_ptr_array_add(values, value);
    } while (value != NULL && several && **at == ',' && ++*at != NULL);
    g_ptr_array_add(values, NULL);
    condition->values = (char **)g_ptr_array_free(values, FALSE);
    double number;
    if (value != NULL && (several || quantity(condition->axis, value, &number)))
        return condition;
    free_condition(condition);
    return NULL;
}

static void free_array(gpointer array)
{
    g_ptr_array_free(array, TRUE);
}

/* Alternatives parted by "||", conditions by blanks or "&&"; NULL if it is something else. */
static GPtrArray *parse(const char *at)
{
    GPtrArray *alternatives = g_ptr_array_new_with_free_func(free_array);
    GPtrArray *conditions = NULL;
    for (;;) {
        struct condition *condition = take_condition(&at);
        if (condition == NULL) {
            g_ptr_array_free(alternatives, TRUE);
            return NULL;
        }
        if (conditions == NULL) {
            conditions = g_ptr_array_new_with_free_func(free_condition);
            g_ptr_array_add(alternatives, conditions);
        }
        g_ptr_array_add(conditions, condition);
        skip_blanks(&at);
        if (*at == '\0')
            return alternatives;
        if (g_str_has_prefix(at, "||"))
            conditions = NULL;
        if (g_str_has_prefix(at, "||") || g_str_has_prefix(at, "&&"))
            at += 2;
    }
}

struct filter *filter_new(char **texts, struct sim_error_list *errors)
{
    struct filter *filter = g_new0(struct filter, 1);
    filter->texts = g_ptr_array_new_with_free_func(free_array);
    filter->axes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (; texts != NULL && *texts != NULL; texts++) {
        GPtrArray *alternatives = parse(*texts);
        if (alternatives != NULL)
            g_ptr_array_add(filter->texts, alternatives);
        else
            sim_error_add(errors, NULL, 0,
                          "--filter: found \"%s\", expected conditions such as \"op=read "
                          "transfer_bytes>64\", alternatives after \"||\"",
                          *texts);
    }
    return filter;
}

void filter_free(struct filter *filter)
{
    if (filter == NULL)
        return;
    g_ptr_array_free(filter->texts, TRUE);
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

static bool condition_met(struct condition *condition, char **split)
{
    const char *value = NULL;
    for (char **pair = split; *pair != NULL; pair += 2) {
        if (strcmp(pair[0], condition->axis) == 0)
            value = pair[1];
    }
    const bool met = value != NULL && holds(condition, value);
    condition->axis_seen = condition->axis_seen || value != NULL;
    condition->ever_held = condition->ever_held || met;
    return met;
}

static bool alternatives_met(GPtrArray *alternatives, char **split)
{
    bool any = false;
    for (guint i = 0; i < alternatives->len; i++) {
        GPtrArray *conditions = alternatives->pdata[i];
        bool all = true;
        for (guint k = 0; k < conditions->len; k++)
            all = condition_met(conditions->pdata[k], split) && all;
        any = any || all;
    }
    return any;
}

bool filter_matches(struct filter *filter, const char *point)
{
    bool matches = true;
    if (filter->texts->len == 0)
        return true;
    char **split = point_split(point);
    for (guint i = 0; i < filter->texts->len; i++)
        matches = alternatives_met(filter->texts->pdata[i], split) && matches;
    for (char **pair = split; *pair != NULL; pair += 2) {
        if (!g_hash_table_contains(filter->axes, pair[0]))
            g_hash_table_add(filter->axes, g_strdup(pair[0]));
    }
    g_strfreev(split);
    return matches;
}

static void check_condition(const struct condition *condition, char **axes,
                            struct sim_error_list *errors)
{
    if (!condition->axis_seen) {
        char *suggestion = sim_suggestion(condition->axis, (const char *const *)axes);
        sim_error_add(errors, NULL, 0, "--filter: no point has an axis \"%s\"%s%s", condition->axis,
                      *suggestion != '\0' ? "; " : "", suggestion);
        g_free(suggestion);
    } else if (!condition->ever_held) {
        sim_error_add(errors, NULL, 0, "--filter: no point meets the condition on %s",
                      condition->axis);
    }
}

void filter_check(const struct filter *filter, struct sim_error_list *errors)
{
    char **axes = (char **)g_hash_table_get_keys_as_array(filter->axes, NULL);
    for (guint i = 0; i < filter->texts->len; i++) {
        const GPtrArray *alternatives = filter->texts->pdata[i];
        for (guint k = 0; k < alternatives->len; k++) {
            const GPtrArray *conditions = alternatives->pdata[k];
            for (guint c = 0; c < conditions->len; c++)
                check_condition(conditions->pdata[c], axes, errors);
        }
    }
    g_free(axes);
}
