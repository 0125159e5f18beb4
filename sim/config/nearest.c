/* The nearest valid name, for messages. */
#include <glib.h>
#include <string.h>

#include "sim/config/error.h"

#define NAME_MAX_CHARS 64 /* longer names are near to nothing */
#define FEW_NAMES      20 /* so many are listed when nothing is near */

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t ab = SIM_MIN(a, b);

    return SIM_MIN(ab, c);
}

/* Damerau-Levenshtein distance (optimal string alignment), case aside. */
static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t rows[3][NAME_MAX_CHARS + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];

    for (size_t j = 0; j <= n_b; j++)
        last[j] = j;
    memcpy(before, last, sizeof(rows[0]));
    for (size_t i = 1; i <= n_a; i++) {
        size_t *recycled = before;

        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            char ca = g_ascii_tolower(a[i - 1]), cb = g_ascii_tolower(b[j - 1]);

            row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + (ca != cb));
            if (i > 1 && j > 1 && ca == g_ascii_tolower(b[j - 2]) &&
                cb == g_ascii_tolower(a[i - 2]))
                row[j] = SIM_MIN(row[j], before[j - 2] + 1);
        }
        before = last;
        last = row;
        row = recycled;
    }
    return last[n_b];
}

static const char *nearest_by_edits(const char *found, size_t n_found, const char *const *names)
{
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;

    for (size_t i = 0; names[i]; i++) {
        size_t n_name = strlen(names[i]), d;

        if (n_name > NAME_MAX_CHARS)
            continue;
        d = distance(found, n_found, names[i], n_name);
        if (d <= SIM_MAX(n_found, n_name) / 3 && d < best_distance) {
            best = names[i];
            best_distance = d;
        }
    }
    return best;
}

/* The shortest name that continues `found`, else the longest that `found` continues. */
static const char *nearest_by_prefix(const char *found, size_t n_found, const char *const *names)
{
    const char *best = NULL, *begun = NULL;

    for (size_t i = 0; names[i]; i++) {
        size_t n_name = strlen(names[i]);

        if (n_found >= 2 && n_name > n_found && g_ascii_strncasecmp(names[i], found, n_found) == 0)
            best = !best || n_name < strlen(best) ? names[i] : best;
        if (n_name >= 3 && n_name < n_found && g_ascii_strncasecmp(names[i], found, n_name) == 0)
            begun = !begun || n_name > strlen(begun) ? names[i] : begun;
    }
    return best ? best : begun;
}

const char *sim_nearest_name(const char *found, const char *const *names)
{
    size_t n_found = strlen(found);
    const char *name;

    if (n_found == 0 || n_found > NAME_MAX_CHARS)
        return NULL;
    name = nearest_by_edits(found, n_found, names);
    return name ? name : nearest_by_prefix(found, n_found, names);
}

char *sim_suggestion(const char *found, const char *const *names)
{
    const char *nearest = names ? sim_nearest_name(found, names) : NULL;
    size_t n_names = 0;
    GString *text;

    if (nearest && strcmp(nearest, found) == 0) /* known: it is something else that is wrong */
        return g_strdup("");
    if (nearest)
        return g_strdup_printf("did you mean \"%s\"?", nearest);
    while (names && names[n_names])
        n_names++;
    if (n_names == 0 || n_names > FEW_NAMES)
        return g_strdup("");
    text = g_string_new(n_names == 1 ? "expected " : "expected one of ");
    for (size_t i = 0; i < n_names; i++)
        g_string_append_printf(text, "%s\"%s\"", i ? ", " : "", names[i]);
    return g_string_free(text, FALSE);
}

void sim_error_suggest(struct sim_error_list *errors, const char *found, const char *const *names)
{
    char *suggestion = sim_suggestion(found, names);

    sim_error_append(errors, errors->n_messages - 1, suggestion);
    g_free(suggestion);
}
