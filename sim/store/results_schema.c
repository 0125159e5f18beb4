/*
 * The database file: its tables, the documented views over them, and opening it. docs/results.md
 * is the manual. Names are in dictionaries and everything of a run is clustered by the run's id:
 * a metric costs about 20 bytes, a set of parameters is stored once for all runs that share it.
 */
#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sim/store/results_internal.h"

#define LONGEST_WAIT_S 20.0 /* for another process, unless results_set_wait() says otherwise */

static const char tables_sql[] =
    "CREATE TABLE label(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);"
    "CREATE TABLE quantity(id INTEGER PRIMARY KEY, name TEXT NOT NULL, unit TEXT NOT NULL,"
    " UNIQUE(name, unit));"
    "CREATE TABLE setting(id INTEGER PRIMARY KEY, name TEXT NOT NULL, value TEXT NOT NULL,"
    " unit TEXT NOT NULL, provenance TEXT NOT NULL, UNIQUE(name, value, unit, provenance));"
    "CREATE TABLE setting_set(id INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE);"
    "CREATE TABLE setting_member(set_id INTEGER NOT NULL, setting_id INTEGER NOT NULL,"
    " PRIMARY KEY(set_id, setting_id)) WITHOUT ROWID;"
    "CREATE TABLE run_row(id INTEGER PRIMARY KEY, scenario_id INTEGER NOT NULL,"
    " point_id INTEGER NOT NULL, seed INTEGER NOT NULL, status TEXT NOT NULL, error TEXT,"
    " version_id INTEGER NOT NULL, config_id INTEGER NOT NULL, command_id INTEGER NOT NULL,"
    " host_id INTEGER NOT NULL, set_id INTEGER, started_utc INTEGER NOT NULL,"
    " wall_s REAL NOT NULL, sim_ps INTEGER NOT NULL, events INTEGER NOT NULL,"
    " fingerprint INTEGER NOT NULL, peak_memory_bytes INTEGER NOT NULL);"
    "CREATE INDEX run_row_by_point ON run_row(scenario_id, point_id, seed);"
    "CREATE TABLE newest(scenario_id INTEGER NOT NULL, point_id INTEGER NOT NULL,"
    " seed INTEGER NOT NULL, run_id INTEGER NOT NULL,"
    " PRIMARY KEY(scenario_id, point_id, seed)) WITHOUT ROWID;"
    "CREATE TABLE metric_row(run_id INTEGER NOT NULL, quantity_id INTEGER NOT NULL,"
    " value REAL NOT NULL, PRIMARY KEY(run_id, quantity_id)) WITHOUT ROWID;"
    "CREATE TABLE histogram_row(run_id INTEGER NOT NULL, quantity_id INTEGER NOT NULL,"
    " lo REAL NOT NULL, hi REAL NOT NULL, count INTEGER NOT NULL,"
    " PRIMARY KEY(run_id, quantity_id, lo)) WITHOUT ROWID;"
    "CREATE TABLE series_row(run_id INTEGER NOT NULL, quantity_id INTEGER NOT NULL,"
    " seq INTEGER NOT NULL, t_ps INTEGER NOT NULL, value REAL NOT NULL,"
    " PRIMARY KEY(run_id, quantity_id, seq)) WITHOUT ROWID;"
    "CREATE TABLE student_t(df INTEGER PRIMARY KEY, t95 REAL NOT NULL);";

static const char views_sql[] =
    "CREATE VIEW run AS SELECT r.id AS id, s.text AS scenario, p.text AS point, r.seed AS seed,"
    " r.status AS status, r.error AS error, v.text AS version, c.text AS config_sha256,"
    " r.started_utc AS started_utc, r.wall_s AS wall_s, r.sim_ps AS sim_ps, r.events AS events,"
    " printf('%016x', r.fingerprint) AS fingerprint, m.text AS command_line, h.text AS host,"
    " r.peak_memory_bytes AS peak_memory_bytes"
    " FROM run_row r JOIN label s ON s.id = r.scenario_id JOIN label p ON p.id = r.point_id"
    " JOIN label v ON v.id = r.version_id JOIN label c ON c.id = r.config_id"
    " JOIN label m ON m.id = r.command_id JOIN label h ON h.id = r.host_id;"

    "CREATE VIEW param AS SELECT r.id AS run_id, s.name AS name, s.value AS value,"
    " s.unit AS unit, s.provenance AS provenance FROM run_row r"
    " JOIN setting_member m ON m.set_id = r.set_id JOIN setting s ON s.id = m.setting_id;"

    "CREATE VIEW metric AS SELECT m.run_id AS run_id, q.name AS name, q.unit AS unit,"
    " m.value AS value FROM metric_row m JOIN quantity q ON q.id = m.quantity_id;"

    "CREATE VIEW histogram AS SELECT h.run_id AS run_id, q.name AS name, q.unit AS unit,"
    " h.lo AS lo, h.hi AS hi, h.count AS count"
    " FROM histogram_row h JOIN quantity q ON q.id = h.quantity_id;"

    "CREATE VIEW series AS SELECT x.run_id AS run_id, q.name AS name, q.unit AS unit,"
    " x.t_ps AS t_ps, x.value AS value"
    " FROM series_row x JOIN quantity q ON q.id = x.quantity_id;"

    /* ci95: between seeds by Student's t, beyond the table by the first terms of the expansion in
     * stat_student_t95(); of a single run its own interval by batch means. Grouped by the texts
     * themselves, so that a condition on them reaches the indices. */
    "CREATE VIEW result AS SELECT g.scenario AS scenario, g.point AS point, g.metric AS metric,"
    " g.unit AS unit, g.mean AS mean,"
    " CASE g.n WHEN 1 THEN"
    "  (SELECT own.value FROM quantity oq JOIN metric_row own ON own.quantity_id = oq.id"
    "   AND own.run_id = g.run_id WHERE oq.name = g.metric || '.ci95' AND oq.unit = g.unit)"
    " ELSE coalesce((SELECT t95 FROM student_t WHERE df = g.n - 1), 1.959964 + 2.372 / (g.n - 1))"
    " * sqrt("
    "  (SELECT sum((m.value - g.mean) * (m.value - g.mean)) FROM newest w"
    "   JOIN metric_row m ON m.run_id = w.run_id AND m.quantity_id = g.quantity_id"
    "   WHERE w.scenario_id = g.scenario_id AND w.point_id = g.point_id) / (g.n - 1) / g.n)"
    " END AS ci95, g.n AS n"
    " FROM (SELECT s.text AS scenario, p.text AS point, q.name AS metric, q.unit AS unit,"
    "  w.scenario_id AS scenario_id, w.point_id AS point_id, m.quantity_id AS quantity_id,"
    "  max(w.run_id) AS run_id, count(*) AS n, avg(m.value) AS mean"
    "  FROM newest w JOIN metric_row m ON m.run_id = w.run_id"
    "  JOIN label s ON s.id = w.scenario_id JOIN label p ON p.id = w.point_id"
    "  JOIN quantity q ON q.id = m.quantity_id GROUP BY s.text, p.text, q.name, q.unit) g;";

static const char *const statements[N_STATEMENTS] = {
    [STATEMENT_LABEL_ADD] = "INSERT OR IGNORE INTO label(text) VALUES(?1)",
    [STATEMENT_LABEL_GET] = "SELECT id FROM label WHERE text = ?1",
    [STATEMENT_QUANTITY_ADD] = "INSERT OR IGNORE INTO quantity(name, unit) VALUES(?1, ?2)",
    [STATEMENT_QUANTITY_GET] = "SELECT id FROM quantity WHERE name = ?1 AND unit = ?2",
    [STATEMENT_SETTING_ADD] =
        "INSERT OR IGNORE INTO setting(name, value, unit, provenance) VALUES(?1, ?2, ?3, ?4)",
    [STATEMENT_SETTING_GET] = "SELECT id FROM setting WHERE name = ?1 AND value = ?2"
                              " AND unit = ?3 AND provenance = ?4",
    [STATEMENT_SET_ADD] = "INSERT INTO setting_set(sha256) VALUES(?1)",
    [STATEMENT_SET_GET] = "SELECT id FROM setting_set WHERE sha256 = ?1",
    [STATEMENT_SET_MEMBER] =
        "INSERT OR IGNORE INTO setting_member(set_id, setting_id) VALUES(?1, ?2)",
    [STATEMENT_RUN] =
        "INSERT INTO run_row(scenario_id, point_id, seed, status, error, version_id, config_id,"
        " command_id, host_id, set_id, started_utc, wall_s, sim_ps, events, fingerprint,"
        " peak_memory_bytes)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    [STATEMENT_METRIC] = "INSERT INTO metric_row(run_id, quantity_id, value) VALUES(?1, ?2, ?3)",
    [STATEMENT_BUCKET] = "INSERT INTO histogram_row(run_id, quantity_id, lo, hi, count)"
                         " VALUES(?1, ?2, ?3, ?4, ?5)",
    [STATEMENT_SAMPLE] = "INSERT INTO series_row(run_id, quantity_id, seq, t_ps, value)"
                         " VALUES(?1, ?2, ?3, ?4, ?5)",
    /* what another version or configuration found at this point is no longer the newest */
    [STATEMENT_NEWEST_CLEAR] =
        "DELETE FROM newest WHERE scenario_id = ?1 AND point_id = ?2 AND run_id IN"
        " (SELECT w.run_id FROM newest w JOIN run_row r ON r.id = w.run_id"
        "  WHERE w.scenario_id = ?1 AND w.point_id = ?2"
        "  AND (r.version_id <> ?3 OR r.config_id <> ?4))",
    [STATEMENT_NEWEST] = "INSERT OR REPLACE INTO newest(scenario_id, point_id, seed, run_id)"
                         " VALUES(?1, ?2, ?3, ?4)",
    [STATEMENT_FIND] = "SELECT max(id) FROM run_row WHERE scenario_id = ?1 AND point_id = ?2"
                       " AND seed = ?3 AND version_id = ?4 AND config_id = ?5"
                       " AND status = 'done'",
    [STATEMENT_VALUE] = "SELECT avg(m.value) FROM newest w JOIN metric_row m ON m.run_id = w.run_id"
                        " WHERE w.scenario_id = (SELECT id FROM label WHERE text = ?1)"
                        " AND w.point_id = (SELECT id FROM label WHERE text = ?2)"
                        " AND m.quantity_id IN (SELECT id FROM quantity WHERE name = ?3)",
};

sqlite3_stmt *results_prepare(struct results_db *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    sqlite3_prepare_v3(db->sqlite, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL);
    return statement;
}

sqlite3_stmt *results_statement(struct results_db *db, enum results_statement which)
{
    if (db->statement[which] == NULL)
        db->statement[which] = results_prepare(db, statements[which]);
    return db->statement[which];
}

/* What SQLite could not do, ": nudma.db-shm ..."; "" if it does not say. g_free(). */
static char *refused(const struct results_db *db, int code)
{
    const int exact = sqlite3_extended_errcode(db->sqlite);
    if ((exact & 0xff) != (code & 0xff))
        return g_strdup("");
    switch (exact) {
    case SQLITE_IOERR_SHMOPEN:
    case SQLITE_IOERR_SHMSIZE:
    case SQLITE_IOERR_SHMMAP:
        return g_strdup_printf(": %s-shm, which readers need as well, cannot be written", db->path);
    case SQLITE_IOERR_WRITE:
    case SQLITE_IOERR_FSYNC:
    case SQLITE_IOERR_TRUNCATE:
    case SQLITE_IOERR_DIR_FSYNC:
        return g_strdup(": the file, or its log beside it (-wal), cannot be written");
    case SQLITE_IOERR_READ:
    case SQLITE_IOERR_SHORT_READ: return g_strdup(": the file cannot be read");
    default: return g_strdup("");
    }
}

/* " (ulimit -f allows files of 4 KiB)"; "" where files may be of any size. g_free(). */
static char *size_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return g_strdup("");
    return g_strdup_printf("; ulimit -f allows files of %" G_GUINT64_FORMAT " KiB",
                           (guint64)limit.rlim_cur / 1024);
}

char *results_message(const struct results_db *db, int code)
{
    g_autofree char *limit = size_limit();
    g_autofree char *what = refused(db, code);
    g_autofree char *hint = NULL;
    switch (code & 0xff) {
    case SQLITE_IOERR: /* also what ulimit -f or a quota refuses */
        hint = g_strdup_printf(
            " (if there is no room left, free some, or write elsewhere with --db FILE%s)", limit);
        break;
    case SQLITE_FULL:
        hint = g_strdup_printf(" (free some space, or write elsewhere with --db FILE%s)", limit);
        break;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        hint = g_strdup(" (is the folder writable? --db FILE writes elsewhere)");
        break;
    case SQLITE_NOTADB: hint = g_strdup(" (--db FILE names another file)"); break;
    case SQLITE_BUSY: hint = g_strdup(" (another program holds the file)"); break;
    default: break;
    }
    return g_strdup_printf("%s: %s%s%s", db->path, sqlite3_errstr(code & 0xff), what,
                           hint != NULL ? hint : "");
}

static int64_t pragma_int(struct results_db *db, const char *pragma, int *code)
{
    sqlite3_stmt *statement = NULL;
    int64_t value = -1;
    *code = sqlite3_prepare_v2(db->sqlite, pragma, -1, &statement, NULL);
    if (*code == SQLITE_OK)
        *code = sqlite3_step(statement);
    if (*code == SQLITE_ROW) {
        value = sqlite3_column_int64(statement, 0);
        *code = SQLITE_OK;
    }
    sqlite3_finalize(statement);
    return value;
}

static int create_tables(struct results_db *db)
{
    int code = sqlite3_exec(db->sqlite, tables_sql, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_exec(db->sqlite, views_sql, NULL, NULL, NULL);
    for (uint32_t df = 1; df <= 200 && code == SQLITE_OK; df++) {
        char sql[96], number[G_ASCII_DTOSTR_BUF_SIZE];
        g_snprintf(sql, sizeof(sql), "INSERT INTO student_t VALUES(%u, %s)", df,
                   g_ascii_formatd(number, sizeof(number), "%.4f", stat_student_t95(df)));
        code = sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL);
    }
    g_autofree char *sql = g_strdup_printf("PRAGMA application_id = %d; PRAGMA user_version = %d",
                                           RESULTS_APPLICATION_ID, RESULTS_SCHEMA_VERSION);
    if (code == SQLITE_OK)
        code = sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL);
    return code;
}

/* SQL: how many of our tables and views the file has. */
static const char count_ours[] =
    "SELECT count(*) FROM sqlite_master WHERE type IN ('table', 'view') AND name IN ('label',"
    " 'quantity', 'setting', 'setting_set', 'setting_member', 'run_row', 'newest', 'metric_row',"
    " 'histogram_row', 'series_row', 'student_t', 'run', 'param', 'metric', 'histogram', 'series',"
    " 'result')";
enum { N_OURS = 17 };

/* An empty file becomes a database; one that is not ours, or not of this version, is refused. */
static bool check_or_create(struct results_db *db, bool read_only, int *code, char **message)
{
    const int64_t version = pragma_int(db, "PRAGMA user_version", code);
    const int64_t owner = *code == SQLITE_OK ? pragma_int(db, "PRAGMA application_id", code) : 0;
    const int64_t n_tables = *code == SQLITE_OK
                                 ? pragma_int(db, "SELECT count(*) FROM sqlite_master", code)
                                 : 0;
    const int64_t n_ours = *code == SQLITE_OK ? pragma_int(db, count_ours, code) : 0;
    if (*code != SQLITE_OK)
        return false;
    const bool current = owner == RESULTS_APPLICATION_ID && version == RESULTS_SCHEMA_VERSION;
    if (current && n_ours == N_OURS)
        return true;
    if (owner == RESULTS_APPLICATION_ID && !current)
        *message = g_strdup_printf("%s: is of schema version %d, this nudma reads and writes "
                                   "version %d; move it away or name another with --db FILE",
                                   db->path, (int)version, RESULTS_SCHEMA_VERSION);
    else if (n_tables != 0 || version != 0 || read_only)
        *message = g_strdup_printf("%s: is not a results database of nudma", db->path);
    else
        *code = create_tables(db);
    return *message == NULL && *code == SQLITE_OK;
}

int results_wait_for_lock(void *context, int n)
{
    struct results_db *db = context;
    const int64_t now = g_get_monotonic_time();
    const double before_s = n > 0 ? db->waited_s : 0.0;
    if (n == 0)
        db->wait_began_us = now;
    db->waited_s = (double)(now - db->wait_began_us) / 1e6;
    if (db->wait != NULL ? !db->wait(db->wait_context, db->path, before_s, db->waited_s)
                         : db->waited_s >= LONGEST_WAIT_S)
        return 0;
    g_usleep(1000 * (gulong)MIN(1 + n, 50));
    return 1;
}

void results_set_wait(struct results_db *db, results_wait_fn *wait, void *context)
{
    db->wait = wait;
    db->wait_context = context;
}

bool results_is_gone(const struct results_db *db)
{
    int moved = 0;
    return sqlite3_file_control(db->sqlite, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
           moved != 0;
}

bool results_is_busy(const struct results_db *db)
{
    return db->busy;
}

bool results_was_there(const struct results_db *db)
{
    return db->was_there;
}

/* A killed process loses nothing in WAL mode with NORMAL; only a power failure could. SQLite does
 * not ask its busy handler while the mode changes: the connection has a read lock by then, and two
 * that wait for each other's would do so for ever. It lets go of the lock, so waiting is up to
 * us. */
static int use_wal(struct results_db *db)
{
    int code, n = 0;
    do {
        code = sqlite3_exec(db->sqlite, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL",
                            NULL, NULL, NULL);
    } while ((code & 0xff) == SQLITE_BUSY && results_wait_for_lock(db, n++) != 0);
    return code;
}

static bool prepare_schema(struct results_db *db, bool read_only, char **message)
{
    int code = sqlite3_busy_handler(db->sqlite, results_wait_for_lock, db);
    if (read_only) {
        const bool ready = check_or_create(db, true, &code, message);
        if (!ready && *message == NULL)
            *message = results_message(db, code);
        return ready;
    }
    /* so that of two who make the file one waits, and a reader never sees half of it */
    code = sqlite3_exec(db->sqlite, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    const bool ready = code == SQLITE_OK && check_or_create(db, false, &code, message);
    if (ready)
        code = sqlite3_exec(db->sqlite, "COMMIT", NULL, NULL, NULL);
    if (ready && code == SQLITE_OK)
        code = use_wal(db);
    if (ready && code == SQLITE_OK)
        return true;
    if (*message == NULL)
        *message = results_message(db, code);
    if (!sqlite3_get_autocommit(db->sqlite))
        sqlite3_exec(db->sqlite, "ROLLBACK", NULL, NULL, NULL);
    return false;
}

static bool has_log(const char *path)
{
    g_autofree char *wal = g_strconcat(path, "-wal", NULL);
    GStatBuf log = { .st_size = 0 };
    return g_stat(wal, &log) == 0 && log.st_size > 0;
}

static bool has_index(const char *path)
{
    g_autofree char *shm = g_strconcat(path, "-shm", NULL);
    return g_file_test(shm, G_FILE_TEST_EXISTS);
}

/* A reader of a WAL database needs its -shm file; where that cannot be made, or not removed again,
 * and no other process has left one, nobody writes either, and the file may be read as it is. Not
 * with a log beside it, the runs in which would be left out: SQLite then says that it cannot open
 * the file. */
static bool is_immutable(const char *path)
{
    g_autofree char *folder = g_path_get_dirname(path);
    return (g_access(folder, W_OK) != 0 || g_access(path, W_OK) != 0) && !has_index(path) &&
           !has_log(path);
}

/* SQLite leaves it to a connection that may write to remove the -shm and -wal files that a reader
 * has made: one more, which does nothing else. It is refused the lock for that while any other
 * connection is open. A log that has something in it is left to the next that writes. */
void results_tidy(const char *path)
{
    sqlite3 *sqlite = NULL;
    if (!has_index(path) || has_log(path))
        return;
    g_autofree char *absolute = g_canonicalize_filename(path, NULL);
    if (sqlite3_open_v2(absolute, &sqlite, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK)
        sqlite3_exec(sqlite, "PRAGMA schema_version", NULL, NULL, NULL);
    sqlite3_close(sqlite);
}

char *results_uri(const char *path, bool read_only)
{
    g_autofree char *absolute = g_canonicalize_filename(path, NULL);
    g_autofree char *escaped = g_uri_escape_string(absolute, "/", TRUE);
    return g_strdup_printf("file:%s?mode=%s%s", escaped, read_only ? "ro" : "rwc",
                           read_only && is_immutable(path) ? "&immutable=1" : "");
}

static int open_file(const char *path, bool read_only, sqlite3 **sqlite)
{
    g_autofree char *uri = strcmp(path, RESULTS_IN_MEMORY) == 0 ? g_strdup(path)
                                                                : results_uri(path, read_only);
    const int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    return sqlite3_open_v2(uri, sqlite, flags | SQLITE_OPEN_URI, NULL);
}

static void finalize(gpointer statement)
{
    sqlite3_finalize(statement);
}

static struct results_db *open_database(const char *path, bool read_only, results_wait_fn *wait,
                                        void *context, char **message)
{
    *message = NULL;
    if (read_only && g_access(path, R_OK) != 0)
        *message = g_strdup_printf("%s: %s", path, g_strerror(errno));
    else if (g_file_test(path, G_FILE_TEST_EXISTS) && !g_file_test(path, G_FILE_TEST_IS_REGULAR))
        *message = g_strdup_printf("%s: is no regular file (--db FILE names another)", path);
    if (*message != NULL)
        return NULL;
    struct results_db *db = g_new0(struct results_db, 1);
    db->path = g_strdup(path);
    db->read_only = read_only;
    results_set_wait(db, wait, context);
    db->questions = g_hash_table_new_full(NULL, NULL, NULL, finalize);
    db->ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    const int code = open_file(path, read_only, &db->sqlite);
    if (code != SQLITE_OK)
        *message = results_message(db, code);
    else if (prepare_schema(db, read_only, message))
        results_register_functions(db);
    if (*message == NULL)
        return db;
    results_close(db);
    return NULL;
}

struct results_db *results_open(const char *path, bool read_only, char **message)
{
    return open_database(path, read_only, NULL, NULL, message);
}

struct results_db *results_open_waiting(const char *path, results_wait_fn *wait, void *context,
                                        char **message)
{
    return open_database(path, false, wait, context, message);
}

const char *results_path(const struct results_db *db)
{
    return db->path;
}

void results_close(struct results_db *db)
{
    if (db == NULL)
        return;
    for (int i = 0; i < N_STATEMENTS; i++)
        sqlite3_finalize(db->statement[i]);
    g_hash_table_destroy(db->questions);
    sqlite3_close(db->sqlite);
    if (db->read_only)
        results_tidy(db->path);
    g_hash_table_destroy(db->ids);
    g_free(db->path);
    g_free(db->variant);
    g_free(db);
}
