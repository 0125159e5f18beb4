/* The results database: what goes in comes out, and nothing is half there. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sqlite3.h>

#include "sim/store/query.h"
#include "sim/store/results_internal.h"
#include "sim/store/version.h"

static char *folder; /* of this test, removed afterwards */
static char *path;

static int make_folder(void **state)
{
    (void)state;
    folder = g_dir_make_tmp("nudma-results-XXXXXX", NULL);
    path = g_build_filename(folder, "test.db", NULL);
    return folder == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    GDir *dir = g_dir_open(folder, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir)) != NULL;) {
        char *file = g_build_filename(folder, name, NULL);
        g_unlink(file);
        g_free(file);
    }
    g_dir_close(dir);
    g_rmdir(folder);
    g_free(path);
    g_free(folder);
    return 0;
}

static struct results_db *open_db(void)
{
    char *message = NULL;
    struct results_db *db = results_open(path, false, &message);
    if (db == NULL)
        fail_msg("%s", message);
    return db;
}

static double query(struct results_db *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(db->sqlite, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    const bool null = sqlite3_column_type(statement, 0) == SQLITE_NULL;
    const double value = null ? (double)NAN : sqlite3_column_double(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

static void query_text(struct results_db *db, const char *sql, const char *expected)
{
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(db->sqlite, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(statement, 0), expected);
    sqlite3_finalize(statement);
}

static const struct run_record some_run = {
    .scenario = "demo/sizes",
    .point = "op=read transfer_bytes=64",
    .seed = 1,
    .status = "done",
    .config_sha256 = "00ff",
    .command_line = "nudma run demo/sizes",
    .host = "here",
    .started_utc = 1700000000,
    .wall_s = 0.25,
    .sim_ps = 5000000,
    .events = 77,
    .fingerprint = UINT64_C(0xfedcba9876543210),
};

static void store_value(struct results_db *db, const struct run_record *record, double value)
{
    struct run_result *result = run_result_new();
    char *message = NULL;
    run_result_metric(result, "latency_mean_ns", "ns", value);
    if (!results_store(db, record, NULL, result, &message))
        fail_msg("%s", message);
    run_result_free(result);
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static void views_give_back_what_was_stored(void **state)
{
    (void)state;
    struct stat_histogram h = { 0 };
    stat_histogram_add(&h, 1500);
    stat_histogram_add(&h, 1500);
    stat_histogram_add(&h, 90000);
    struct run_result *result = run_result_new();
    run_result_metric(result, "throughput_gbit_s", "Gbit/s", 0.1);
    run_result_histogram(result, "latency_ns", "ns", 0.001, &h);
    run_result_series(result, "pf0_gbit_s", "Gbit/s", 50, 1.5);
    run_result_series(result, "pf0_gbit_s", "Gbit/s", 50, 2.5); /* two at one time are two */
    struct results_db *db = open_db();
    char *message = NULL;
    assert_true(results_store(db, &some_run, NULL, result, &message));
    results_close(db);

    db = results_open(path, true, &message);
    assert_non_null(db);
    query_text(db,
               "select scenario||'|'||point||'|'||seed||'|'||status||'|'||ifnull(error,'-')||'|'||"
               "config_sha256||'|'||started_utc||'|'||wall_s||'|'||sim_ps||'|'||events||'|'||"
               "fingerprint||'|'||command_line||'|'||host from run",
               "demo/sizes|op=read transfer_bytes=64|1|done|-|00ff|1700000000|0.25|5000000|77|"
               "fedcba9876543210|nudma run demo/sizes|here");
    query_text(db, "select version from run", sim_version());
    assert_true(query(db, "select value from metric where name='throughput_gbit_s'") == 0.1);
    query_text(db, "select unit from metric", "Gbit/s");
    query_text(db, "select group_concat(count) from histogram where name='latency_ns'", "2,1");
    assert_true(query(db, "select lo <= 1.5 and 1.5 < hi from histogram where count=2") == 1.0);
    query_text(db, "select group_concat(t_ps||':'||value) from series where unit='Gbit/s'",
               "50:1.5,50:2.5");
    results_close(db);
    run_result_free(result);
    stat_histogram_release(&h);
}

static void seeds_give_mean_and_interval(void **state)
{
    (void)state;
    struct results_db *db = open_db();
    struct run_record record = some_run;
    static const double values[] = { 10.0, 11.0, 12.0, 15.0 };
    for (record.seed = 1; record.seed <= 4; record.seed++)
        store_value(db, &record, values[record.seed - 1]);
    record.seed = 2;
    store_value(db, &record, 11.5); /* run anew: the newest counts */
    record.status = "failed";
    record.error = "link down";
    record.seed = 3;
    assert_true(results_store(db, &record, NULL, NULL, NULL)); /* a failed one does not */
    assert_true(query(db, "select n from result") == 4.0);
    assert_true(query(db, "select mean from result") == 12.125);
    /* sum of squares about 12.125: 4.515625 + 0.390625 + 0.015625 + 8.265625 */
    const double expected = 3.1824 * sqrt(13.1875 / 3.0 / 4.0);
    assert_true(fabs(query(db, "select ci95 from result") - expected) < 1e-9);
    assert_true(query(db, "select count(*) from run") == 6.0);
    query_text(db, "select error from run where status='failed'", "link down");
    results_close(db);
}

/* As stat_student_t95() has it, within and beyond the table of the database. */
static void intervals_of_many_seeds(void **state)
{
    (void)state;
    struct results_db *db = open_db();
    struct run_record record = some_run;
    for (uint32_t n = 0; n < 260;) {
        record.seed = ++n;
        store_value(db, &record, n % 2 != 0 ? 1.0 : -1.0);
        if (n < 198 || n % 2 != 0)
            continue;
        const double expected = stat_student_t95(n - 1) * sqrt(1.0 / (n - 1));
        const double found = query(db, "select ci95 from result");
        assert_true(fabs(found - expected) < 1e-4 * expected);
    }
    results_close(db);
}

static void single_run_has_its_own_interval(void **state)
{
    (void)state;
    struct results_db *db = open_db();
    struct run_result *result = run_result_new();
    run_result_metric(result, "a_ns", "ns", 5.0);
    run_result_metric(result, "a_ns.ci95", "ns", 0.5);
    run_result_metric(result, "b_ns", "ns", 6.0);
    assert_true(results_store(db, &some_run, NULL, result, NULL));
    assert_true(query(db, "select ci95 from result where metric='a_ns'") == 0.5);
    assert_true(isnan(query(db, "select ci95 from result where metric='b_ns'")));
    run_result_free(result);
    results_close(db);
}

/* Seeds of an older configuration are not averaged with those of the newest. */
static void configurations_do_not_mix(void **state)
{
    (void)state;
    struct results_db *db = open_db();
    struct run_record record = some_run;
    char *message = NULL;
    store_value(db, &record, 1.0);
    record.seed = 2;
    store_value(db, &record, 3.0);
    g_strlcpy(record.config_sha256, "11aa", sizeof(record.config_sha256));
    store_value(db, &record, 100.0);
    assert_true(query(db, "select mean from result") == 100.0);
    assert_true(query(db, "select n from result") == 1.0);
    assert_true(results_select(db, some_run.scenario, some_run.point, 1, "00ff", &message));
    assert_true(query(db, "select mean from result") == 1.0);
    assert_true(results_select(db, some_run.scenario, some_run.point, 2, "00ff", &message));
    assert_true(query(db, "select mean from result") == 2.0);
    assert_true(results_select(db, some_run.scenario, some_run.point, 9, "00ff", &message));
    assert_true(query(db, "select mean from result") == 2.0); /* there is no seed 9 */
    /* the configuration asked for last has no result: neither has the view */
    g_strlcpy(record.config_sha256, "22bb", sizeof(record.config_sha256));
    record.status = "failed";
    record.error = "no memory";
    assert_true(results_store(db, &record, NULL, NULL, NULL));
    assert_true(query(db, "select count(*) from result") == 0.0);
    results_close(db);
}

static void have_means_exactly_this_run(void **state)
{
    (void)state;
    struct results_db *db = open_db();
    struct run_record failed = some_run;
    failed.status = "failed";
    failed.seed = 5;
    store_value(db, &some_run, 1.0);
    assert_false(results_was_there(db));
    store_value(db, &some_run, 1.0);
    assert_true(results_was_there(db));
    assert_true(results_store(db, &failed, NULL, NULL, NULL));
    assert_false(results_was_there(db));
    const char *scenario = some_run.scenario, *point = some_run.point;
    assert_true(results_have(db, scenario, point, 1, "00ff"));
    assert_false(results_have(db, scenario, point, 2, "00ff"));
    assert_false(results_have(db, scenario, point, 1, "00fe"));
    assert_false(results_have(db, scenario, "op=write transfer_bytes=64", 1, "00ff"));
    assert_false(results_have(db, "demo/other", point, 1, "00ff"));
    assert_false(results_have(db, scenario, point, 5, "00ff"));
    results_close(db);
}

/* ---- Expressions ----------------------------------------------------------------------------- */

static double evaluate(struct results_db *db, const char *expression)
{
    double value = 0.0;
    char *message = NULL;
    if (!results_evaluate(db, expression, &value, &message))
        fail_msg("%s: %s", expression, message);
    return value;
}

static void refused(struct results_db *db, const char *expression)
{
    double value = 0.0;
    char *message = NULL;
    assert_false(results_evaluate(db, expression, &value, &message));
    assert_non_null(message);
    g_free(message);
}

#define V64 "v('demo/sizes','op=read transfer_bytes=64','latency_mean_ns')"

static void expressions_over_v(void **state)
{
    (void)state;
    struct results_db *db = open_db();
    struct run_record record = some_run;
    store_value(db, &record, 10.0);
    record.seed = 2;
    store_value(db, &record, 20.0);
    record.point = "op=read transfer_bytes=128";
    store_value(db, &record, 60.0);
    assert_true(evaluate(db, V64) == 15.0);
    assert_true(
        evaluate(db, "v('demo/sizes','op=read transfer_bytes=128','latency_mean_ns')/" V64) == 4.0);
    assert_true(
        isnan(evaluate(db, "v('demo/sizes','op=read transfer_bytes=4','latency_mean_ns')")));
    assert_true(isnan(evaluate(db, "v('demo/sizes','op=read transfer_bytes=64','nothing')")));
    assert_true(isnan(evaluate(db, "1 - v('nowhere','','nothing') / " V64)));
    assert_true(evaluate(db,
                         "(select max(r) from (select v('demo/sizes','op=read transfer_bytes='"
                         "||column1,'latency_mean_ns') r from (values('64'),('128'))))") == 60.0);
    refused(db, "v('demo/sizes'");
    refused(db, "v('demo/sizes','x')");
    refused(db, "'a text'");
    refused(db, "1); DROP TABLE run_row; SELECT (1");
    refused(db, "1), (2");
    refused(db, "1) FROM (SELECT 2");
    refused(db, "1 /* ( */), (2");
    refused(db, "unknown_column");
    assert_true(evaluate(db, "length(')') + (2 /* ) */ + 1) -- )") == 4.0);
    assert_true(query(db, "select count(*) from run") == 3.0);
    results_close(db);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void refuses_to_open(const char *file, bool read_only, const char *because)
{
    char *message = NULL;
    assert_null(results_open(file, read_only, &message));
    assert_non_null(message);
    if (strstr(message, because) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", message, because);
    g_free(message);
}

static void execute_in_file(const char *sql)
{
    sqlite3 *sqlite = NULL;
    assert_int_equal(sqlite3_open(path, &sqlite), SQLITE_OK);
    assert_int_equal(sqlite3_exec(sqlite, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(sqlite);
}

static void other_schema_version_is_left_alone(void **state)
{
    (void)state;
    struct results_db *db = open_db();
    store_value(db, &some_run, 1.0);
    results_close(db);
    execute_in_file("PRAGMA user_version = 99");
    refuses_to_open(path, false, "schema version 99");
    refuses_to_open(path, true, "schema version 99");
    execute_in_file("PRAGMA user_version = 2");
    db = open_db();
    assert_true(query(db, "select count(*) from run") == 1.0);
    results_close(db);
}

static void foreign_files_are_left_alone(void **state)
{
    (void)state;
    execute_in_file("CREATE TABLE music(title)");
    refuses_to_open(path, false, "not a results database");
    /* with our marks, but without our tables */
    execute_in_file("PRAGMA application_id = 1853187181; PRAGMA user_version = 2");
    refuses_to_open(path, false, "not a results database");
    refuses_to_open(path, true, "not a results database");
    assert_true(g_file_set_contents(path,
                                    "This is a text of more than a hundred bytes, which is "
                                    "what SQLite reads as the head of its files, at least.",
                                    -1, NULL));
    refuses_to_open(path, false, "not a database");
    char *content = NULL;
    assert_true(g_file_get_contents(path, &content, NULL, NULL));
    assert_int_equal(strncmp(content, "This is a text", 14), 0);
    g_free(content);
}

static void missing_files_and_folders(void **state)
{
    (void)state;
    char *deep = g_build_filename(folder, "none", "test.db", NULL);
    refuses_to_open(deep, false, "unable to open");
    refuses_to_open(path, true, "No such file");
    assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    g_free(deep);
}

static bool is_beside(const char *suffix)
{
    char *name = g_strconcat(path, suffix, NULL);
    const bool there = g_file_test(name, G_FILE_TEST_EXISTS);
    g_free(name);
    return there;
}

/* What SQLite makes for readers goes with the last of them; a writer's stays, and a log that a kill
 * has left, too. */
static void readers_leave_no_files(void **state)
{
    (void)state;
    char *message = NULL;
    struct results_merged merged;
    struct results_db *db = open_db();
    store_value(db, &some_run, 4.0);
    results_close(db);
    db = results_open(path, true, &message);
    struct results_db *other = results_open(path, true, &message);
    assert_true(evaluate(db, V64) == 4.0);
    assert_true(evaluate(other, V64) == 4.0);
    assert_true(is_beside("-shm"));
    results_close(db);
    assert_true(evaluate(other, V64) == 4.0);
    results_close(other);
    assert_false(is_beside("-shm"));
    assert_false(is_beside("-wal"));
    struct results_db *target = results_open(RESULTS_IN_MEMORY, false, &message);
    assert_true(results_merge(target, path, &merged, &message));
    assert_false(is_beside("-shm"));
    assert_false(is_beside("-wal"));
    results_close(target);

    struct results_db *writer = open_db();
    db = results_open(path, true, &message);
    assert_true(evaluate(db, V64) == 4.0);
    results_close(db);
    assert_true(is_beside("-wal"));
    struct run_record record = some_run;
    record.seed = 2;
    store_value(writer, &record, 6.0);
    db = results_open(path, true, &message);
    assert_true(evaluate(db, V64) == 5.0);
    results_close(db);
    results_close(writer);
    assert_false(is_beside("-wal"));
}

/* In a folder that may not be written, reading leaves nothing behind and works nevertheless. */
static void reads_in_a_read_only_folder(void **state)
{
    (void)state;
    struct results_db *db = open_db();
    store_value(db, &some_run, 4.0);
    results_close(db);
    assert_int_equal(chmod(folder, 0555), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        char *message = NULL;
        double value = 0.0;
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(2);
        db = results_open(path, true, &message);
        if (db == NULL || !results_evaluate(db, V64, &value, &message) || value != 4.0)
            _exit(3);
        results_close(db);
        _exit(results_open(path, false, &message) == NULL && strstr(message, "writable") ? 0 : 4);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- Trouble --------------------------------------------------------------------------------- */

static void full_disk_loses_only_the_run_at_hand(void **state)
{
    (void)state;
    struct results_db *db = open_db();
    struct run_result *large = run_result_new();
    struct run_record record = some_run;
    char *message = NULL;
    store_value(db, &record, 1.0);
    query(db, "PRAGMA max_page_count = 40");
    for (unsigned i = 0; i < 50000; i++)
        run_result_series(large, "long_series", "1", i, 1.0);
    record.seed = 2;
    record.host = "elsewhere"; /* a label that is rolled back with the rest */
    assert_false(results_store(db, &record, NULL, large, &message));
    assert_non_null(strstr(message, "full"));
    g_free(message);
    assert_true(query(db, "select count(*) from run") == 1.0);
    query(db, "PRAGMA max_page_count = 100000");
    assert_true(results_store(db, &record, NULL, large, &message));
    assert_true(query(db, "select count(*) from series") == 50000.0);
    query_text(db, "select group_concat(host) from run", "here,elsewhere");
    query_text(db, "PRAGMA integrity_check", "ok");
    run_result_free(large);
    results_close(db);
}

/* Child process: stores runs from first_seed on until it has n, or for ever with n 0; writes one
 * byte per stored run. */
static pid_t start_writer(uint64_t first_seed, unsigned n, int report_fd)
{
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct results_db *db = open_db();
    struct run_record record = some_run;
    for (record.seed = first_seed; n == 0 || record.seed < first_seed + n; record.seed++) {
        store_value(db, &record, 1.0);
        if (write(report_fd, "x", 1) != 1)
            _exit(1);
    }
    results_close(db);
    _exit(0);
}

static void two_writers_and_a_reader(void **state)
{
    (void)state;
    int fd[2];
    char byte;
    unsigned reported = 0;
    assert_int_equal(pipe(fd), 0);
    const pid_t a = start_writer(1, 40, fd[1]), b = start_writer(1000, 40, fd[1]);
    close(fd[1]);
    while (read(fd[0], &byte, 1) == 1) {
        char *message = NULL;
        struct results_db *db = results_open(path, true, &message);
        assert_non_null(db);
        assert_true(query(db, "select count(*) from run") >= ++reported);
        results_close(db);
    }
    close(fd[0]);
    int status[2];
    waitpid(a, &status[0], 0);
    waitpid(b, &status[1], 0);
    assert_true(status[0] == 0 && status[1] == 0);
    struct results_db *db = open_db();
    assert_true(query(db, "select n from result") == 80.0);
    results_close(db);
}

/* Another connection takes the lock of a writer when the statement that changes the journal's mode
 * first starts, which is when SQLite itself does not wait, and gives it back when it starts
 * again. */
static sqlite3 *rival;
static int n_changes_of_mode;

static int meet_rival(unsigned event, void *unused, void *statement, void *sql)
{
    (void)event, (void)unused, (void)statement;
    if (rival != NULL && g_str_has_prefix(sql, "PRAGMA journal_mode"))
        assert_int_equal(sqlite3_exec(rival,
                                      n_changes_of_mode++ == 0 ? "BEGIN IMMEDIATE" : "ROLLBACK",
                                      NULL, NULL, NULL),
                         SQLITE_OK);
    return 0;
}

static int watch_statements(sqlite3 *opened, char **message,
                            const struct sqlite3_api_routines *unused)
{
    (void)message, (void)unused;
    return sqlite3_trace_v2(opened, SQLITE_TRACE_STMT, meet_rival, NULL);
}

static void two_make_the_file(void **state)
{
    (void)state;
    n_changes_of_mode = 0;
    assert_int_equal(sqlite3_open(path, &rival), SQLITE_OK);
    sqlite3_auto_extension((void (*)(void))watch_statements);
    char *message = NULL;
    struct results_db *db = results_open(path, false, &message);
    sqlite3_reset_auto_extension();
    sqlite3_close(rival);
    rival = NULL;
    if (db == NULL)
        fail_msg("%s", message);
    assert_int_equal(n_changes_of_mode, 2);
    query_text(db, "PRAGMA journal_mode", "wal");
    results_close(db);
}

/* The program that holds the file, for as long as it is asked to wait n_waits times. */
struct holder {
    sqlite3 *sqlite;
    unsigned n_waits;
    bool gives_up;
};

static bool wait_for_holder(void *context, const char *held, double before_s, double waited_s)
{
    struct holder *holder = context;
    assert_string_equal(held, path);
    assert_true(before_s <= waited_s);
    if (--holder->n_waits == 0 && !holder->gives_up)
        sqlite3_exec(holder->sqlite, "ROLLBACK", NULL, NULL, NULL);
    return holder->n_waits > 0 || !holder->gives_up;
}

static void waits_for_another_program(void **state)
{
    (void)state;
    struct holder holder = { .n_waits = 4 };
    char *message = NULL;
    results_close(open_db());
    assert_int_equal(sqlite3_open(path, &holder.sqlite), SQLITE_OK);
    sqlite3_exec(holder.sqlite, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    struct results_db *db = results_open_waiting(path, wait_for_holder, &holder, &message);
    assert_non_null(db);
    assert_int_equal(holder.n_waits, 0);
    sqlite3_exec(holder.sqlite, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    holder = (struct holder){ holder.sqlite, 3, true };
    assert_false(results_store(db, &some_run, NULL, NULL, &message));
    assert_true(results_is_busy(db));
    g_clear_pointer(&message, g_free);
    holder = (struct holder){ holder.sqlite, 3, false };
    assert_true(results_store(db, &some_run, NULL, NULL, &message));
    assert_false(results_is_busy(db));
    assert_true(query(db, "select count(*) from run") == 1.0);
    sqlite3_close(holder.sqlite);
    results_close(db);
}

static void a_file_that_is_deleted_is_missed(void **state)
{
    (void)state;
    char *message = NULL;
    struct results_db *db = open_db();
    store_value(db, &some_run, 1.0);
    assert_false(results_is_gone(db));
    g_unlink(path);
    assert_true(results_is_gone(db));
    assert_false(results_store(db, &some_run, NULL, NULL, &message));
    assert_non_null(strstr(message, "deleted"));
    assert_false(results_is_busy(db));
    g_free(message);
    results_close(db);
}

static void a_killed_writer_loses_no_finished_run(void **state)
{
    (void)state;
    uint64_t reported = 0;
    for (uint64_t round = 1; round <= 8; round++) {
        int fd[2];
        char bytes[4096];
        assert_int_equal(pipe(fd), 0);
        const pid_t pid = start_writer(round * 100000, 0, fd[1]);
        close(fd[1]);
        for (uint64_t n = 0; n < round * 3;) {
            const ssize_t got = read(fd[0], bytes, 1);
            assert_int_equal(got, 1);
            n++;
            reported++;
        }
        kill(pid, SIGKILL);
        for (ssize_t got; (got = read(fd[0], bytes, sizeof(bytes))) > 0;)
            reported += (uint64_t)got;
        close(fd[0]);
        waitpid(pid, NULL, 0);
        struct results_db *db = open_db();
        const double stored = query(db, "select count(*) from run");
        /* at most the one that was stored and not yet reported, in each round */
        assert_in_range((uint64_t)stored, reported, reported + round);
        assert_true(query(db, "select count(*) from metric") == stored);
        query_text(db, "PRAGMA integrity_check", "ok");
        results_close(db);
    }
}

/* ---- A result in memory ---------------------------------------------------------------------- */

struct device {
    uint64_t reads, bytes, high_water;
    struct stat_mean occupancy, unused;
    struct stat_histogram latency, depth, empty;
};

static const struct stat_desc device_stats[] = {
    STAT("reads", STAT_COUNTER, struct device, reads, "1", 0, "reads"),
    STAT("read_gbit_s", STAT_RATE, struct device, bytes, "Gbit/s", 8e-9, "rate"),
    STAT("high_water", STAT_MAX, struct device, high_water, "1", 0, "queue"),
    STAT("occupancy", STAT_MEAN, struct device, occupancy, "1", 0, "mean"),
    STAT("unused", STAT_MEAN, struct device, unused, "1", 0, "mean"),
    STAT("latency_ns", STAT_HISTOGRAM, struct device, latency, "ns", 0.001, "latency"),
    STAT("depth", STAT_HISTOGRAM, struct device, depth, "1", 0, "depth"),
    STAT("empty_ns", STAT_HISTOGRAM, struct device, empty, "ns", 0, "nothing"),
    { .kind = STAT_END },
};

static void statistics_become_metrics(void **state)
{
    (void)state;
    struct device device = { .reads = 3, .bytes = 1000000000, .high_water = 9 };
    stat_histogram_add(&device.latency, 1000);
    stat_histogram_add(&device.latency, 3000);
    stat_histogram_add(&device.depth, 4);
    for (int i = 0; i < 20; i++)
        stat_mean_add(&device.occupancy, 2.0);
    struct run_result *r = run_result_new();
    run_result_stats(r, "nfp.", device_stats, &device, SIM_PS_PER_S / 2);
    assert_true(run_result_value(r, "nfp.reads") == 3.0);
    assert_true(fabs(run_result_value(r, "nfp.read_gbit_s") - 16.0) < 1e-9);
    assert_true(run_result_value(r, "nfp.high_water") == 9.0);
    assert_true(run_result_value(r, "nfp.occupancy") == 2.0);
    assert_true(run_result_value(r, "nfp.occupancy.ci95") == 0.0);
    assert_true(run_result_value(r, "nfp.latency_mean_ns") == 2.0);
    assert_true(run_result_value(r, "nfp.latency_min_ns") == 1.0);
    assert_true(run_result_value(r, "nfp.latency_max_ns") == 3.0);
    assert_true(fabs(run_result_value(r, "nfp.latency_p50_ns") - 1.0) <= 1.0 / 256);
    assert_true(run_result_value(r, "nfp.latency_p999_ns") == 3.0);
    assert_true(run_result_value(r, "nfp.depth_p90") == 4.0);
    assert_true(isnan(run_result_value(r, "nfp.unused")));
    assert_true(isnan(run_result_value(r, "nfp.empty_mean_ns")));
    assert_true(isnan(run_result_value(r, "reads")));
    run_result_free(r);
    stat_release(device_stats, &device);
}

static struct run_result *make_result(double last)
{
    struct run_result *r = run_result_new();
    struct stat_histogram h = { 0 };
    stat_histogram_add(&h, 5);
    stat_histogram_add(&h, 500);
    run_result_metric(r, "a", "ns", -0.5);
    run_result_metric(r, "b", "1", last);
    run_result_histogram(r, "h", "ns", 1.0, &h);
    run_result_series(r, "s", "1", 7, 8.0);
    stat_histogram_release(&h);
    return r;
}

struct declared_state {
    uint64_t count;
    struct stat_mean mean;
    struct stat_histogram histogram;
};

/* Without a sample, what a table records with samples is known by name. */
static void declared_before_it_is_recorded(void **unused)
{
    static const struct stat_desc table[] = {
        STAT("reads", STAT_RATE, struct declared_state, count, "1/s", 0, ""),
        STAT("wait_ns", STAT_MEAN, struct declared_state, mean, "ns", 0, ""),
        STAT("latency_ns", STAT_HISTOGRAM, struct declared_state, histogram, "ns", 0, ""),
        { .kind = STAT_END },
    };
    struct declared_state state = { 0 };
    struct run_result *declared = run_result_new_declaring(), *result = run_result_new();

    (void)unused;
    stat_clear(table, &state);
    run_result_stats(declared, "d.", table, &state, 0);
    run_result_declare(declared, RECORD_METRIC, "own_ns", "ns");
    assert_string_equal(run_result_unit(declared, RECORD_METRIC, "own_ns"), "ns");
    assert_string_equal(run_result_unit(declared, RECORD_METRIC, "d.latency_p999_ns"), "ns");
    assert_string_equal(run_result_unit(declared, RECORD_HISTOGRAM, "d.latency_ns"), "ns");
    assert_null(run_result_unit(declared, RECORD_HISTOGRAM, "own_ns"));
    run_result_declare(declared, RECORD_SERIES, "own_gbit_s", "Gbit/s");
    assert_string_equal(run_result_unit(declared, RECORD_SERIES, "own_gbit_s"), "Gbit/s");
    assert_true(run_result_has(declared, RECORD_METRIC, "d.wait_ns.ci95"));
    assert_true(run_result_has(declared, RECORD_METRIC, "d.latency_p999_ns"));
    assert_true(run_result_has(declared, RECORD_HISTOGRAM, "d.latency_ns"));
    assert_false(run_result_has(declared, RECORD_METRIC, "d.latency_ns"));
    char **names = run_result_names(declared, RECORD_SERIES);
    assert_string_equal(names[0], "own_gbit_s");
    assert_null(names[1]);
    g_strfreev(names);

    for (unsigned i = 0; i < 1000; i++) {
        stat_mean_add(&state.mean, i);
        stat_histogram_add(&state.histogram, i);
    }
    run_result_stats(result, "d.", table, &state, SIM_PS_PER_S);
    run_result_metric(result, "own_ns", "ns", 1.0);
    run_result_series(result, "own_gbit_s", "Gbit/s", 5, 1.0);
    assert_null(run_result_undeclared(result, declared));
    run_result_series(result, "own_ns", "ns", 5, 1.0); /* declared as another kind */
    assert_string_equal(run_result_undeclared(result, declared), "own_ns");
    stat_release(table, &state);
    run_result_free(result);
    run_result_free(declared);
}

static void packed_and_unpacked(void **state)
{
    (void)state;
    size_t n_bytes = 0;
    struct run_result *r = make_result(2.0);
    char *bytes = run_result_pack(r, &n_bytes);
    struct run_result *copy = run_result_unpack(bytes, n_bytes);
    assert_non_null(copy);
    assert_true(run_result_value(copy, "a") == -0.5 && run_result_value(copy, "b") == 2.0);
    assert_true(run_result_fingerprint(copy, 1) == run_result_fingerprint(r, 1));
    for (int kind = RECORD_METRIC; kind <= RECORD_SERIES; kind++) {
        char **names = run_result_names(r, (enum record_kind)kind);
        char **copied = run_result_names(copy, (enum record_kind)kind);
        assert_true(*names != NULL &&
                    g_strv_equal((const char *const *)names, (const char *const *)copied));
        g_strfreev(names);
        g_strfreev(copied);
    }
    for (size_t cut = 0; cut < n_bytes; cut++) {
        char *part = g_memdup2(bytes, cut); /* so that a sanitizer sees reads beyond the end */
        assert_null(run_result_unpack(part, cut));
        g_free(part);
    }
    char *longer = g_malloc0(n_bytes + 1);
    memcpy(longer, bytes, n_bytes);
    assert_null(run_result_unpack(longer, n_bytes + 1));
    g_free(longer);
    run_result_free(copy);
    run_result_free(r);
    g_free(bytes);
}

static void fingerprint_sees_everything(void **state)
{
    (void)state;
    struct run_result *a = make_result(2.0), *same = make_result(2.0);
    struct run_result *other = make_result(nextafter(2.0, 3.0)), *more = make_result(2.0);
    run_result_series(more, "s", "1", 8, 8.0);
    const uint64_t fingerprint = run_result_fingerprint(a, 1);
    assert_true(fingerprint == run_result_fingerprint(same, 1));
    assert_true(fingerprint != run_result_fingerprint(a, 2));
    assert_true(fingerprint != run_result_fingerprint(other, 1));
    assert_true(fingerprint != run_result_fingerprint(more, 1));
    run_result_free(a);
    run_result_free(same);
    run_result_free(other);
    run_result_free(more);
}

static bool metric_aborts(const char *name, double value)
{
    const pid_t pid = fork();
    if (pid == 0) {
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        struct run_result *r = run_result_new();
        run_result_metric(r, "latency_ns", "ns", 1.0);
        run_result_metric(r, name, "ns", value);
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void faults_of_the_caller(void **state)
{
    (void)state;
    assert_false(metric_aborts("other", 1.0));
    assert_true(metric_aborts("latency_ns", 1.0));
    assert_true(metric_aborts("other", (double)NAN));
    assert_true(metric_aborts("other", (double)INFINITY));
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(views_give_back_what_was_stored),
        WITH_FOLDER(seeds_give_mean_and_interval),
        WITH_FOLDER(intervals_of_many_seeds),
        WITH_FOLDER(single_run_has_its_own_interval),
        WITH_FOLDER(configurations_do_not_mix),
        WITH_FOLDER(have_means_exactly_this_run),
        WITH_FOLDER(expressions_over_v),
        WITH_FOLDER(other_schema_version_is_left_alone),
        WITH_FOLDER(foreign_files_are_left_alone),
        WITH_FOLDER(missing_files_and_folders),
        WITH_FOLDER(readers_leave_no_files),
        WITH_FOLDER(reads_in_a_read_only_folder),
        WITH_FOLDER(full_disk_loses_only_the_run_at_hand),
        WITH_FOLDER(two_writers_and_a_reader),
        WITH_FOLDER(two_make_the_file),
        WITH_FOLDER(a_killed_writer_loses_no_finished_run),
        WITH_FOLDER(waits_for_another_program),
        WITH_FOLDER(a_file_that_is_deleted_is_missed),
        cmocka_unit_test(statistics_become_metrics),
        cmocka_unit_test(declared_before_it_is_recorded),
        cmocka_unit_test(packed_and_unpacked),
        cmocka_unit_test(fingerprint_sees_everything),
        cmocka_unit_test(faults_of_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
