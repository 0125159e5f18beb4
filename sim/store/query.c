/*
 * Questions to the database. A question is its SQL and the kind of its rows: one column for one
 * field, in order. Its statement stays prepared until the database is closed.
 */
#include <math.h>

#include "sim/store/query.h"
#include "sim/store/results_internal.h"
#include "sim/store/version.h"

/* ---- Rows ------------------------------------------------------------------------------------ */

enum row_kind {
    ROW_NAME,
    ROW_QUANTITY,
    ROW_VALUE,
    ROW_SAMPLE,
    ROW_BUCKET,
    ROW_PARAM,
    ROW_RUN,
    ROW_OVERVIEW,
    ROW_ORIGIN,
    ROW_COST,
    ROW_SPREAD,
    ROW_RANGE,
    N_ROWS
};

/* The fields of each, in the order of the columns: t text, i integer, r real. */
static const char *const row_fields[N_ROWS] = {
    [ROW_NAME] = "t",           [ROW_QUANTITY] = "tt",     [ROW_VALUE] = "trri",
    [ROW_SAMPLE] = "irt",       [ROW_BUCKET] = "rrit",     [ROW_PARAM] = "tttt",
    [ROW_RUN] = "tttttttttttt", [ROW_OVERVIEW] = "tiiiit", [ROW_ORIGIN] = "ttiii",
    [ROW_COST] = "tri",         [ROW_SPREAD] = "iirr",     [ROW_RANGE] = "rr",
};

/* The same bytes as fields in order and as the struct of a kind: every field has eight bytes. */
union row {
    const char *text[12];
    int64_t integer[12];
    double real[12];
    struct results_quantity quantity;
    struct results_value value;
    struct results_sample sample;
    struct results_bucket bucket;
    struct results_param param;
    struct results_run run;
    struct results_overview overview;
    struct results_origin origin;
    struct results_cost cost;
    struct results_spread spread;
    struct results_range range;
};
_Static_assert(sizeof(const char *) == 8 && sizeof(union row) == 12 * 8, "fields of eight bytes");

/* ---- Cursors --------------------------------------------------------------------------------- */

struct results_cursor {
    struct results_db *db;
    sqlite3_stmt *statement; /* the database's; NULL: it could not be prepared */
    enum row_kind rows;
    int code; /* of the last step; SQLITE_ROW: there may be more */
    union row row;
};

/* Opens a cursor with the texts as the first parameters; they have to live as long. The statement
 * stays with the database, under the address of its text. */
static struct results_cursor *ask(struct results_db *db, enum row_kind rows, const char *sql,
                                  const char *first, const char *second, const char *third)
{
    const char *const texts[] = { first, second, third };
    sqlite3_stmt *statement = g_hash_table_lookup(db->questions, sql);
    if (statement == NULL && (statement = results_prepare(db, sql)) != NULL)
        g_hash_table_insert(db->questions, (gpointer)sql, statement);
    struct results_cursor *cursor = g_new0(struct results_cursor, 1);
    cursor->db = db;
    cursor->rows = rows;
    cursor->statement = statement;
    cursor->code = statement != NULL ? SQLITE_ROW : sqlite3_errcode(db->sqlite);
    SIM_ASSERT(statement == NULL || !sqlite3_stmt_busy(statement),
               "asked while an answer is read: %s", sql);
    for (int i = 0; statement != NULL && i < 3 && texts[i] != NULL; i++)
        sqlite3_bind_text(statement, i + 1, texts[i], -1, SQLITE_STATIC);
    return cursor;
}

static void bind_seed(struct results_cursor *cursor, int parameter, uint64_t seed)
{
    if (cursor->statement != NULL)
        sqlite3_bind_int64(cursor->statement, parameter, (int64_t)seed);
}

/* A text that is NULL is "", a number NAN or 0. */
static void read_field(struct results_cursor *cursor, int i)
{
    const bool null = sqlite3_column_type(cursor->statement, i) == SQLITE_NULL;
    switch (row_fields[cursor->rows][i]) {
    case 't':
        cursor->row.text[i] = null ? "" : (const char *)sqlite3_column_text(cursor->statement, i);
        if (!g_utf8_validate(cursor->row.text[i], -1, NULL)) /* we have not written that */
            cursor->code = SQLITE_CORRUPT;
        break;
    case 'i': cursor->row.integer[i] = sqlite3_column_int64(cursor->statement, i); break;
    default: cursor->row.real[i] = null ? (double)NAN : sqlite3_column_double(cursor->statement, i);
    }
}

/* NULL after the last row. rows: what the caller takes them for. */
static const union row *next(struct results_cursor *cursor, enum row_kind rows)
{
    SIM_ASSERT(cursor->rows == rows, "rows of another kind");
    if (cursor->code == SQLITE_ROW)
        cursor->code = sqlite3_step(cursor->statement);
    if (cursor->code != SQLITE_ROW)
        return NULL;
    for (int i = 0; row_fields[rows][i] != '\0'; i++)
        read_field(cursor, i);
    return cursor->code == SQLITE_ROW ? &cursor->row : NULL;
}

bool results_end(struct results_cursor *cursor, char **message)
{
    const bool good = cursor->code == SQLITE_ROW || cursor->code == SQLITE_DONE;
    cursor->db->failed = cursor->db->failed || !good;
    if (!good && message != NULL)
        *message = g_strdup(sqlite3_errstr(cursor->code));
    if (cursor->statement != NULL) {
        sqlite3_reset(cursor->statement);
        sqlite3_clear_bindings(cursor->statement); /* the texts are the caller's */
    }
    g_free(cursor);
    return good;
}

bool results_failed(const struct results_db *db)
{
    return db->failed;
}

bool results_snapshot(struct results_db *db, char **message)
{
    /* BEGIN alone is deferred: the transaction would begin with the first question */
    const int code = sqlite3_exec(db->sqlite, "BEGIN; SELECT count(*) FROM sqlite_master", NULL,
                                  NULL, NULL);
    if (code != SQLITE_OK)
        *message = results_message(db, code);
    return code == SQLITE_OK;
}

/* Conditions on `newest` and on `run_row`, by the first two texts. */
#define OF_SCENARIO " scenario_id = (SELECT id FROM label WHERE text = ?1)"
#define OF_POINT    OF_SCENARIO " AND point_id = (SELECT id FROM label WHERE text = ?2)"

/* ---- Many rows ------------------------------------------------------------------------------- */

struct results_cursor *results_scenarios(struct results_db *db)
{
    return ask(db, ROW_NAME,
               "SELECT text FROM label WHERE id IN (SELECT scenario_id FROM newest)"
               " ORDER BY text",
               NULL, NULL, NULL);
}

struct results_cursor *results_failed_scenarios(struct results_db *db)
{
    return ask(db, ROW_NAME,
               "SELECT text FROM label WHERE id IN (SELECT scenario_id FROM run_row EXCEPT"
               " SELECT scenario_id FROM newest) ORDER BY text",
               NULL, NULL, NULL);
}

struct results_cursor *results_points(struct results_db *db, const char *scenario)
{
    return ask(db, ROW_NAME,
               "SELECT text FROM label WHERE id IN"
               " (SELECT point_id FROM newest WHERE" OF_SCENARIO ")",
               scenario, NULL, NULL);
}

struct results_cursor *results_overtaken(struct results_db *db, const char *scenario)
{
    return ask(db, ROW_NAME,
               "SELECT text FROM label WHERE id IN"
               " (SELECT w.point_id FROM newest w JOIN run_row r ON r.id = w.run_id"
               "  JOIN run_row f ON f.scenario_id = w.scenario_id AND f.point_id = w.point_id"
               "  AND f.seed = w.seed AND f.id > r.id AND f.started_utc >= r.started_utc"
               "  AND f.config_id = r.config_id AND f.status = 'failed'"
               "  WHERE w.scenario_id = (SELECT id FROM label WHERE text = ?1))",
               scenario, NULL, NULL);
}

/* The values are few, the runs many: by the sets of parameters that the runs share. */
#define NOTED                                                                         \
    " JOIN setting s ON s.name = ?2 JOIN setting_member m ON m.set_id = x.set_id AND" \
    " m.setting_id = s.id"

struct results_cursor *results_noted(struct results_db *db, const char *scenario,
                                     const char *param_name)
{
    return ask(db, ROW_NAME,
               "SELECT DISTINCT s.value FROM (SELECT DISTINCT r.set_id AS set_id FROM newest w"
               "  JOIN run_row r ON r.id = w.run_id WHERE"
               "  w.scenario_id = (SELECT id FROM label WHERE text = ?1)) x" NOTED
               " ORDER BY s.value",
               scenario, param_name, NULL);
}

struct results_cursor *results_noted_points(struct results_db *db, const char *scenario,
                                            const char *param_name)
{
    return ask(db, ROW_QUANTITY,
               "SELECT p.text, s.value FROM newest w JOIN run_row x ON x.id = w.run_id"
               " JOIN label p ON p.id = w.point_id" NOTED
               " WHERE w.scenario_id = (SELECT id FROM label WHERE text = ?1)"
               " GROUP BY p.text, s.value ORDER BY max(x.started_utc), max(x.id)",
               scenario, param_name, NULL);
}

struct results_cursor *results_not_settled(struct results_db *db, const char *scenario)
{
    return ask(db, ROW_QUANTITY,
               "SELECT p.text, min(s.value) FROM newest w JOIN run_row x ON x.id = w.run_id"
               " JOIN label p ON p.id = w.point_id JOIN setting s"
               " ON s.name >= 'note.not_settled.' AND s.name < 'note.not_settled/'"
               " JOIN setting_member m ON m.set_id = x.set_id AND m.setting_id = s.id"
               " WHERE w.scenario_id = (SELECT id FROM label WHERE text = ?1)"
               " GROUP BY p.text ORDER BY p.text",
               scenario, NULL, NULL);
}

struct results_cursor *results_failures(struct results_db *db, const char *scenario)
{
    return ask(db, ROW_QUANTITY,
               "SELECT p.text, f.error FROM (SELECT max(r.id) AS id FROM run_row r WHERE"
               "  r.scenario_id = (SELECT id FROM label WHERE text = ?1) AND r.status = 'failed'"
               "  AND NOT EXISTS (SELECT 1 FROM run_row d WHERE d.scenario_id = r.scenario_id"
               "   AND d.point_id = r.point_id AND d.seed = r.seed"
               "   AND (d.id > r.id OR d.started_utc > r.started_utc) AND d.status = 'done')"
               "  GROUP BY r.point_id) newest_failed"
               " JOIN run_row f ON f.id = newest_failed.id JOIN label p ON p.id = f.point_id"
               " ORDER BY f.id",
               scenario, NULL, NULL);
}

struct results_cursor *results_versions(struct results_db *db)
{
    return ask(db, ROW_NAME,
               "SELECT DISTINCT version FROM run"
               " WHERE id IN (SELECT run_id FROM newest) ORDER BY version",
               NULL, NULL, NULL);
}

const char *results_next_name(struct results_cursor *cursor)
{
    const union row *row = next(cursor, ROW_NAME);
    return row != NULL ? row->text[0] : NULL;
}

struct results_cursor *results_quantities(struct results_db *db, const char *scenario)
{
    return ask(db, ROW_QUANTITY,
               "SELECT name, unit FROM quantity WHERE id IN"
               " (SELECT m.quantity_id FROM newest w JOIN metric_row m"
               "  ON m.run_id = w.run_id WHERE" OF_SCENARIO ") ORDER BY id",
               scenario, NULL, NULL);
}

struct results_cursor *results_values(struct results_db *db, const char *scenario,
                                      const char *metric, const char *unit)
{
    return ask(db, ROW_VALUE,
               "SELECT point, mean, ci95, n FROM result WHERE scenario = ?1"
               " AND metric = ?2 AND unit = ?3",
               scenario, metric, unit);
}

struct results_cursor *results_series_quantities(struct results_db *db, const char *scenario)
{
    return ask(db, ROW_QUANTITY,
               "SELECT name, unit FROM quantity WHERE id IN (SELECT x.quantity_id FROM newest w"
               " JOIN series_row x ON x.run_id = w.run_id"
               " WHERE w.scenario_id = (SELECT id FROM label WHERE text = ?1)) ORDER BY name, unit",
               scenario, NULL, NULL);
}

struct results_cursor *results_series(struct results_db *db, const char *scenario,
                                      const char *point, const char *name)
{
    return ask(db, ROW_SAMPLE,
               "SELECT x.t_ps, avg(x.value), q.unit FROM newest w JOIN series_row x"
               " ON x.run_id = w.run_id JOIN quantity q ON q.id = x.quantity_id"
               " WHERE" OF_POINT " AND q.name = ?3 GROUP BY x.t_ps ORDER BY x.t_ps",
               scenario, point, name);
}

struct results_cursor *results_histogram_quantities(struct results_db *db, const char *scenario)
{
    return ask(db, ROW_QUANTITY,
               "SELECT name, unit FROM quantity WHERE id IN (SELECT x.quantity_id FROM newest w"
               " JOIN histogram_row x ON x.run_id = w.run_id"
               " WHERE w.scenario_id = (SELECT id FROM label WHERE text = ?1)) ORDER BY name, unit",
               scenario, NULL, NULL);
}

struct results_cursor *results_histogram(struct results_db *db, const char *scenario,
                                         const char *point, const char *name)
{
    return ask(db, ROW_BUCKET,
               "SELECT h.lo, h.hi, sum(h.count), q.unit FROM newest w"
               " JOIN histogram_row h ON h.run_id = w.run_id"
               " JOIN quantity q ON q.id = h.quantity_id WHERE" OF_POINT
               " AND q.name = ?3 GROUP BY h.lo, h.hi ORDER BY h.lo",
               scenario, point, name);
}

struct results_cursor *results_range(struct results_db *db, const char *scenario, const char *point,
                                     const char *metric)
{
    return ask(db, ROW_RANGE,
               "SELECT min(m.value), max(m.value) FROM newest w"
               " JOIN metric_row m ON m.run_id = w.run_id"
               " JOIN quantity q ON q.id = m.quantity_id WHERE" OF_POINT " AND q.name = ?3",
               scenario, point, metric);
}

struct results_cursor *results_params(struct results_db *db, const char *scenario,
                                      const char *point)
{
    return ask(db, ROW_PARAM,
               "SELECT name, value, unit, provenance FROM param WHERE run_id ="
               " (SELECT max(run_id) FROM newest WHERE" OF_POINT ") ORDER BY name",
               scenario, point, NULL);
}

struct results_cursor *results_params_used(struct results_db *db, const char *scenario)
{
    return ask(db, ROW_PARAM,
               "SELECT DISTINCT name, value, unit, provenance FROM param"
               " WHERE provenance <> '' AND run_id IN"
               " (SELECT run_id FROM newest WHERE" OF_SCENARIO ")",
               scenario, NULL, NULL);
}

struct results_cursor *results_runs(struct results_db *db, const char *scenario, const char *point)
{
    return ask(db, ROW_RUN,
               "SELECT id, seed, wall_s, sim_ps, events, peak_memory_bytes, version,"
               " config_sha256, command_line, host,"
               " strftime('%Y-%m-%dT%H:%M:%SZ', started_utc, 'unixepoch'), fingerprint"
               " FROM run WHERE id IN (SELECT run_id FROM newest WHERE" OF_POINT ")"
               " ORDER BY seed",
               scenario, point, NULL);
}

struct results_cursor *results_overviews(struct results_db *db)
{
    return ask(db, ROW_OVERVIEW,
               "SELECT scenario, count(DISTINCT point), count(DISTINCT seed),"
               " sum(status = 'done'), sum(status = 'failed'),"
               " strftime('%Y-%m-%d %H:%M', max(started_utc), 'unixepoch') FROM run"
               " GROUP BY scenario ORDER BY scenario",
               NULL, NULL, NULL);
}

struct results_cursor *results_origins(struct results_db *db)
{
    return ask(db, ROW_ORIGIN,
               "SELECT version, host, count(*), count(DISTINCT seed), max(started_utc)"
               " FROM run WHERE id IN (SELECT run_id FROM newest)"
               " GROUP BY version, host ORDER BY max(id)",
               NULL, NULL, NULL);
}

struct results_cursor *results_costs(struct results_db *db, const char *scenario)
{
    return ask(db, ROW_COST,
               "SELECT p.text, avg(nullif(r.wall_s, 0)), max(r.peak_memory_bytes) FROM run_row r"
               " JOIN label p ON p.id = r.point_id WHERE" OF_SCENARIO
               " AND r.status = 'done' GROUP BY r.point_id",
               scenario, NULL, NULL);
}

/* The functions results_next_<member>(). */
#define NEXT(member, kind)                                                              \
    const struct results_##member *results_next_##member(struct results_cursor *cursor) \
    {                                                                                   \
        const union row *row = next(cursor, kind);                                      \
        return row != NULL ? &row->member : NULL;                                       \
    }

NEXT(quantity, ROW_QUANTITY)
NEXT(value, ROW_VALUE)
NEXT(sample, ROW_SAMPLE)
NEXT(bucket, ROW_BUCKET)
NEXT(param, ROW_PARAM)
NEXT(run, ROW_RUN)
NEXT(overview, ROW_OVERVIEW)
NEXT(origin, ROW_ORIGIN)
NEXT(cost, ROW_COST)
NEXT(range, ROW_RANGE)

/* ---- One row --------------------------------------------------------------------------------- */

bool results_spread(struct results_db *db, const char *scenario, const char *point,
                    const char *metric, uint64_t first_seed, uint64_t last_seed,
                    struct results_spread *spread)
{
    /* the mean first, so that no digits are lost where seeds hardly differ */
    struct results_cursor *cursor =
        ask(db, ROW_SPREAD,
            "WITH seeds AS (SELECT m.value AS value FROM newest w"
            "  LEFT JOIN metric_row m ON m.run_id = w.run_id AND m.quantity_id IN"
            "  (SELECT id FROM quantity WHERE name = ?3)"
            "  WHERE" OF_POINT " AND w.seed BETWEEN ?4 AND ?5)"
            " SELECT (SELECT count(*) FROM seeds), count(value), a.mean,"
            "  sum((value - a.mean) * (value - a.mean))"
            " FROM seeds, (SELECT avg(value) AS mean FROM seeds) a",
            scenario, point, metric);
    bind_seed(cursor, 4, first_seed);
    bind_seed(cursor, 5, last_seed);
    const union row *row = next(cursor, ROW_SPREAD);
    if (row != NULL)
        *spread = row->spread;
    return results_end(cursor, NULL) && row != NULL;
}

char *results_failure(struct results_db *db, const char *scenario, const char *point)
{
    struct results_cursor *cursor = ask(db, ROW_NAME,
                                        "SELECT error FROM run WHERE scenario = ?1 AND point = ?2"
                                        " AND status = 'failed' ORDER BY id DESC LIMIT 1",
                                        scenario, point, NULL);
    const char *error = results_next_name(cursor);
    char *copy = error != NULL && *error != '\0' ? g_strdup(error) : NULL;
    results_end(cursor, NULL);
    return copy;
}

bool results_have(struct results_db *db, const char *scenario, const char *point, uint64_t seed,
                  const char *config_sha256)
{
    struct results_cursor *cursor =
        ask(db, ROW_NAME,
            "SELECT r.id FROM run_row r JOIN label s ON s.id = r.scenario_id JOIN label p"
            " ON p.id = r.point_id JOIN label v ON v.id = r.version_id JOIN label c"
            " ON c.id = r.config_id WHERE s.text = ?1 AND p.text = ?2 AND c.text = ?3"
            " AND r.seed = ?4 AND v.text = ?5 AND r.status = 'done' AND NOT EXISTS"
            " (SELECT 1 FROM run_row f WHERE f.scenario_id = r.scenario_id"
            "  AND f.point_id = r.point_id AND f.seed = r.seed AND f.config_id = r.config_id"
            "  AND f.id > r.id AND f.started_utc >= r.started_utc AND f.status = 'failed')",
            scenario, point, config_sha256);
    bind_seed(cursor, 4, seed);
    if (cursor->statement != NULL)
        sqlite3_bind_text(cursor->statement, 5, sim_version(), -1, SQLITE_STATIC);
    const bool have = results_next_name(cursor) != NULL;
    results_end(cursor, NULL);
    return have;
}

const char *results_library(void)
{
    return sqlite3_libversion();
}

/* ---- Expressions ----------------------------------------------------------------------------- */

char *results_variant_name(const char *point, const char *variant)
{
    return g_strdup_printf("%s%s" RESULTS_VARIANT "%s", point, *point != '\0' ? " " : "", variant);
}

void results_set_variant(struct results_db *db, const char *variant)
{
    g_free(db->variant);
    db->variant = g_strdup(variant);
}

/* One row, or none: SQLITE_ROW, SQLITE_DONE or an error. point NULL: that of the arguments. */
static int find_value(sqlite3_stmt *s, sqlite3_value **args, const char *point)
{
    for (int i = 0; i < 3; i++)
        sqlite3_bind_value(s, i + 1, args[i]);
    if (point != NULL)
        sqlite3_bind_text(s, 2, point, -1, SQLITE_TRANSIENT);
    return sqlite3_step(s);
}

/* v(scenario, point, metric): NULL if there is none */
static void value_function(sqlite3_context *context, int n_args, sqlite3_value **args)
{
    struct results_db *db = sqlite3_user_data(context);
    sqlite3_stmt *s = results_statement(db, STATEMENT_VALUE);
    if (s == NULL) {
        sqlite3_result_error(context, sqlite3_errmsg(db->sqlite), -1);
        return;
    }
    (void)n_args;
    int code = SQLITE_DONE;
    const char *point = (const char *)sqlite3_value_text(args[1]);
    if (db->variant != NULL && point != NULL) {
        g_autofree char *name = results_variant_name(point, db->variant);
        code = find_value(s, args, name);
        if (code == SQLITE_DONE || sqlite3_column_type(s, 0) == SQLITE_NULL) {
            sqlite3_reset(s);
            code = SQLITE_DONE;
        }
    }
    if (code == SQLITE_DONE)
        code = find_value(s, args, NULL);
    if (code == SQLITE_ROW)
        sqlite3_result_value(context, sqlite3_column_value(s, 0));
    else if (code != SQLITE_DONE)
        sqlite3_result_error_code(context, code);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s); /* the arguments are not ours to keep */
}

void results_register_functions(struct results_db *db)
{
    const int code = sqlite3_create_function_v2(db->sqlite, "v", 3, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                                                db, value_function, NULL, NULL, NULL);
    SIM_ASSERT(code == SQLITE_OK, "v(): %s", sqlite3_errstr(code));
}

static bool take_value(sqlite3_stmt *statement, double *value, char **message)
{
    const int code = sqlite3_step(statement);
    if (code != SQLITE_ROW) {
        *message = g_strdup(code == SQLITE_DONE ? "yields no value"
                            : code == SQLITE_INTERRUPT
                                ? "does not end: it takes more than 20 million "
                                  "steps"
                                : sqlite3_errmsg(sqlite3_db_handle(statement)));
        return false;
    }
    switch (sqlite3_column_type(statement, 0)) {
    case SQLITE_INTEGER:
    case SQLITE_FLOAT: *value = sqlite3_column_double(statement, 0); return true;
    case SQLITE_NULL: *value = (double)NAN; return true;
    default: *message = g_strdup("yields a text, not a number"); return false;
    }
}

/* An expression of claims reads some hundred values: what takes more, a recursive query without an
 * end say, is a mistake in it. Counted in steps, not in time, so that it is the same one
 * everywhere. */
#define STEPS_AT_A_TIME 10000
#define MOST_STEPS      20000000
#define MOST_BYTES      1000000 /* of a text in it */

/* The first bracket that ends what begins before the expression, which stands in a bracket itself:
 * "x), (y" would be two. NULL: none. Texts, names in quotes and comments may have any. */
static const char *stray_bracket(const char *expression)
{
    unsigned depth = 0;
    for (const char *c = expression; *c != '\0';) {
        const char *end = strchr("'\"`", *c) != NULL  ? strchr(c + 1, *c)
                          : *c == '['                 ? strchr(c, ']')
                          : g_str_has_prefix(c, "--") ? strchr(c, '\n')
                          : g_str_has_prefix(c, "/*") ? strstr(c + 2, "*/")
                                                      : c;
        if (end == NULL)
            return NULL;
        if (*c == ')' && depth == 0)
            return c;
        depth += *c == '(' ? 1 : *c == ')' ? -1u : 0;
        c = end + 1;
    }
    return NULL;
}

static int count_steps(void *n_times)
{
    return ++*(int *)n_times > MOST_STEPS / STEPS_AT_A_TIME;
}

bool results_evaluate(struct results_db *db, const char *expression, double *value, char **message)
{
    sqlite3_stmt *statement = NULL;
    const char *rest = NULL;
    g_autofree char *sql = g_strdup_printf("SELECT (%s\n)", expression);
    const int code = sqlite3_prepare_v2(db->sqlite, sql, -1, &statement, &rest);
    const char *stray = stray_bracket(expression);
    bool good = false;
    *value = (double)NAN;
    int n_times = 0;
    const int most_bytes = sqlite3_limit(db->sqlite, SQLITE_LIMIT_LENGTH, MOST_BYTES);
    sqlite3_progress_handler(db->sqlite, STEPS_AT_A_TIME, count_steps, &n_times);
    if (stray != NULL)
        *message = g_strdup_printf("found \"%.40s\", a bracket that nothing opens, expected one "
                                   "expression",
                                   stray);
    else if (code != SQLITE_OK || statement == NULL)
        *message = g_strdup(sqlite3_errmsg(db->sqlite));
    else if (*g_strchug((char *)(uintptr_t)rest) != '\0' || sqlite3_column_count(statement) != 1 ||
             !sqlite3_stmt_readonly(statement))
        *message = g_strdup("is not one expression");
    else
        good = take_value(statement, value, message);
    sqlite3_progress_handler(db->sqlite, 0, NULL, NULL);
    sqlite3_limit(db->sqlite, SQLITE_LIMIT_LENGTH, most_bytes);
    /* an expression's own mistake is SQLITE_ERROR */
    const int failure = sqlite3_errcode(db->sqlite) & 0xff;
    db->failed = db->failed || (!good && (failure == SQLITE_CORRUPT || failure == SQLITE_IOERR ||
                                          failure == SQLITE_NOTADB));
    sqlite3_finalize(statement);
    return good;
}
