/* Questions to the database: is a run there, and the value of an expression over v(). */
#include <math.h>

#include "sim/store/results_internal.h"
#include "sim/store/version.h"

bool results_have(struct results_db *db, const char *scenario, const char *point, uint64_t seed,
                  const char *config_sha256)
{
    sqlite3_stmt *s = results_statement(db, STATEMENT_HAVE);
    if (s == NULL)
        return false;
    sqlite3_bind_text(s, 1, scenario, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, point, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 3, (int64_t)seed);
    sqlite3_bind_text(s, 4, sim_version(), -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 5, config_sha256, -1, SQLITE_STATIC);
    const bool have = sqlite3_step(s) == SQLITE_ROW;
    sqlite3_reset(s);
    return have;
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
    for (int i = 0; i < n_args; i++)
        sqlite3_bind_value(s, i + 1, args[i]);
    const int code = sqlite3_step(s);
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

bool results_evaluate(struct results_db *db, const char *expression, double *value, char **message)
{
    sqlite3_stmt *statement = NULL;
    const char *rest = NULL;
    char *sql = g_strdup_printf("SELECT (%s\n)", expression);
    const int code = sqlite3_prepare_v2(db->sqlite, sql, -1, &statement, &rest);
    bool good = false;
    *value = (double)NAN;
    if (code != SQLITE_OK || statement == NULL)
        *message = g_strdup(sqlite3_errmsg(db->sqlite));
    else if (*g_strchug((char *)(uintptr_t)rest) != '\0' || !sqlite3_stmt_readonly(statement))
        *message = g_strdup("is not one expression");
    else
        good = take_value(statement, value, message);
    sqlite3_finalize(statement);
    g_free(sql);
    return good;
}
