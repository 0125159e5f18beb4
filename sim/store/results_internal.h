/* What the results_*.c files share: a run's result in memory, and the database handle. */
#ifndef SIM_STORE_RESULTS_INTERNAL_H
#define SIM_STORE_RESULTS_INTERNAL_H

#include <glib.h>
#include <sqlite3.h>

#include "sim/store/results.h"

/* All strings are owned by the result's chunk. */
struct result_metric {
    const char *name, *unit;
    double value;
};

struct result_bucket {
    const char *name, *unit;
    double lo, hi;
    uint64_t count;
};

struct result_sample {
    const char *name, *unit;
    sim_time t_ps;
    double value;
};

struct result_param {
    const char *name, *value, *unit, *provenance;
};

struct run_result {
    GStringChunk *strings;
    GHashTable *metric_index; /* name -> index + 1 */
    GHashTable *histograms;   /* names of those stored */
    GHashTable *series;       /* the same */
    GArray *metrics, *buckets, *samples, *params;
    GArray *notes; /* struct result_param: what is put behind the parameters */
    bool declares; /* names count, values do not */
};

/* The statements that a database keeps prepared. */
enum results_statement {
    STATEMENT_LABEL_ADD,
    STATEMENT_LABEL_GET,
    STATEMENT_QUANTITY_ADD,
    STATEMENT_QUANTITY_GET,
    STATEMENT_SETTING_ADD,
    STATEMENT_SETTING_GET,
    STATEMENT_SET_ADD,
    STATEMENT_SET_GET,
    STATEMENT_SET_MEMBER,
    STATEMENT_RUN,
    STATEMENT_METRIC,
    STATEMENT_BUCKET,
    STATEMENT_SAMPLE,
    STATEMENT_NEWEST_CLEAR,
    STATEMENT_NEWEST,
    STATEMENT_FIND,
    STATEMENT_VALUE,
    N_STATEMENTS
};

struct results_db {
    sqlite3 *sqlite;
    char *path;
    char *variant; /* results_set_variant(); NULL: none */
    bool read_only;
    bool failed;           /* results_failed() */
    bool busy;             /* results_is_busy() */
    bool was_there;        /* results_was_there() */
    results_wait_fn *wait; /* NULL: 20 s */
    void *wait_context;
    int64_t wait_began_us;
    double waited_s;                       /* of that, when `wait` was asked last */
    sqlite3_stmt *statement[N_STATEMENTS]; /* NULL until first used */
    GHashTable *questions;                 /* of query.c: SQL, by address -> its statement */
    GHashTable
        *ids; /* "<statement>\nkey" -> row id, of committed rows and those of this transaction */
};

/* results_schema.c */
#define RESULTS_SCHEMA_VERSION 2
#define RESULTS_APPLICATION_ID 0x6e75646d /* "nudm" */

/* The URI by which SQLite opens the file; g_free(). */
char *results_uri(const char *path, bool read_only);
/* Removes what reading a database has left beside it, once it is closed. */
void results_tidy(const char *path);
sqlite3_stmt *results_statement(struct results_db *db, enum results_statement which);
/* Prepares a statement of our own for many uses. NULL if the file cannot be read, or its tables
 * are not as ours; sqlite3_errcode() says which. */
sqlite3_stmt *results_prepare(struct results_db *db, const char *sql);
/* "results/nudma.db: database or disk is full", with a hint at a remedy. g_free(). */
char *results_message(const struct results_db *db, int code);

/* Waits a moment for another process, the n-th time (from 0 on) for the same lock; 0: give up. */
int results_wait_for_lock(void *db, int n);

/* query.c: registers v() */
void results_register_functions(struct results_db *db);

#endif
