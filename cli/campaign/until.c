/* The interval of a metric between seeds. */
#include <math.h>
#include <sqlite3.h>
#include <string.h>

#include "cli/campaign/until.h"

bool until_parse(struct until *until, const char *text)
{
    char **words = g_strsplit_set(text, " \t", 0), *end = NULL;
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
    g_strfreev(words);
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
    /* the mean first, so that no digits are lost where seeds hardly differ */
    static const char sql[] =
        "WITH seeds AS (SELECT m.value AS value FROM newest w LEFT JOIN metric_row m"
        "  ON m.run_id = w.run_id AND m.quantity_id IN (SELECT id FROM quantity WHERE name = ?3)"
        "  WHERE w.scenario_id = (SELECT id FROM label WHERE text = ?1)"
        "  AND w.point_id = (SELECT id FROM label WHERE text = ?2) AND w.seed BETWEEN ?4 AND ?5)"
        " SELECT (SELECT count(*) FROM seeds), count(value), a.mean,"
        "  sum((value - a.mean) * (value - a.mean))"
        " FROM seeds, (SELECT avg(value) AS mean FROM seeds) a";
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(results_handle(db), sql, -1, &statement, NULL) != SQLITE_OK)
        return UNTIL_TIGHT; /* whoever stores the next run says what is wrong with the database */
    sqlite3_bind_text(statement, 1, scenario_name(point->scenario), -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, plan_point_name(point), -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 3, until->metric, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 4, (int64_t)first_seed);
    sqlite3_bind_int64(statement, 5, (int64_t)(first_seed + n_seeds - 1));
    enum until_verdict verdict = UNTIL_TIGHT;
    if (sqlite3_step(statement) == SQLITE_ROW) {
        const int n_runs = sqlite3_column_int(statement, 0), n = sqlite3_column_int(statement, 1);
        const double mean = sqlite3_column_double(statement, 2);
        const double squares = sqlite3_column_double(statement, 3);
        const double limit = until->is_share ? until->half_width * fabs(mean) : until->half_width;
        if (n_runs > 0 && n == 0)
            verdict = UNTIL_NO_METRIC;
        else if (n == 1)
            verdict = UNTIL_WIDE;
        else if (n > 1 && stat_student_t95((uint32_t)n - 1) * sqrt(squares / (n - 1) / n) > limit)
            verdict = UNTIL_WIDE;
    }
    sqlite3_finalize(statement);
    return verdict;
}
