/* The interval of a metric between seeds. */
#include <math.h>
#include <string.h>

#include "cli/campaign/until.h"

bool until_parse(struct until *until, const char *text)
{
    g_auto(GStrv) words = g_strsplit_set(text, " \t", 0);
    char *end = NULL;
    const char *word[2] = { NULL, NULL };
    guint n_words = 0;
    for (char **w = words; *w != NULL; w++) {
        if (**w != '\0' && n_words++ < 2)
            word[n_words - 1] = *w;
    }
    *until = (struct until){ 0 };
    bool good = n_words == 2 && g_ascii_isdigit(*word[1]);
    if (good) {
        until->half_width = g_ascii_strtod(word[1], &end);
        until->is_share = *end == '%';
        good = until->half_width > 0.0 && isfinite(until->half_width) &&
               strcmp(end, until->is_share ? "%" : "") == 0;
    }
    if (good) {
        until->metric = g_strdup(word[0]);
        until->half_width /= until->is_share ? 100.0 : 1.0;
    }
    return good;
}

void until_release(struct until *until)
{
    g_free(until->metric);
    until->metric = NULL;
}

enum until_verdict until_judge(const struct until *until, struct results_db *db,
                               const struct plan_point *point, uint64_t first_seed,
                               unsigned n_seeds)
{
    struct results_spread s;
    if (!results_spread(db, scenario_name(point->scenario), plan_point_name(point), until->metric,
                        first_seed, first_seed + n_seeds - 1, &s))
        return UNTIL_TIGHT; /* whoever stores the next run says what is wrong with the database */
    const double n = (double)s.n;
    const double limit = until->is_share ? until->half_width * fabs(s.mean) : until->half_width;
    if (s.n_runs > 0 && s.n == 0)
        return UNTIL_NO_METRIC;
    if (s.n == 1 ||
        (s.n > 1 && stat_student_t95((uint32_t)s.n - 1) * sqrt(s.squares / (n - 1) / n) > limit))
        return UNTIL_WIDE;
    return UNTIL_TIGHT;
}
