/* Questions to the results: what was stored comes back, of the newest runs, in the order
 * promised. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <glib/gstdio.h>

#include "sim/store/query.h"
#include "sim/store/results_internal.h"
#include "sim/store/version.h"
#include "tests/support/death.h"

static const struct run_record some_run = {
    .scenario = "demo/sizes",
    .point = "op=read",
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
    .peak_memory_bytes = 1000,
};

static void store(struct results_db *db, const struct run_record *record,
                  const struct run_result *result)
{
    char *message = NULL;
    if (!results_store(db, record, NULL, result, &message))
        fail_msg("%s", message);
}

/* Two seeds of op=read, with values 10 and 14, and one of op=write, begun an hour later on another
 * host, which lacks the second metric. */
static int make_db(void **state)
{
    char *message = NULL;
    struct results_db *db = results_open(RESULTS_IN_MEMORY, false, &message);
    struct run_record record = some_run;
    for (uint64_t run = 0; db != NULL && run < 3; run++) {
        struct run_result *result = run_result_new();
        struct stat_histogram h = { 0 };
        record.seed = run % 2 + 1;
        record.point = run < 2 ? "op=read" : "op=write";
        record.host = run < 2 ? "here" : "there";
        record.started_utc = some_run.started_utc + (run < 2 ? 0 : 3600);
        record.peak_memory_bytes = 1000 * (run + 1);
        run_result_metric(result, "latency_ns", "ns", 10.0 + 4.0 * (double)run);
        if (run < 2)
            run_result_metric(result, "bytes", "", 64.0);
        run_result_metric(result, "bytes.ci95", "", 1.5);
        run_result_series(result, "rate_gbit_s", "Gbit/s", 100, (double)run);
        run_result_series(result, "rate_gbit_s", "Gbit/s", 50, 8.0);
        stat_histogram_add(&h, 1500);
        run_result_histogram(result, "spread_ns", "ns", 0.001, &h);
        run_result_note(result, "text", run == 0 ? "first" : "second");
        g_array_append_vals(result->params, result->notes->data, result->notes->len);
        store(db, &record, result);
        stat_histogram_release(&h);
        run_result_free(result);
    }
    *state = db;
    return db == NULL;
}

static int close_db(void **state)
{
    results_close(*state);
    return 0;
}

/* "a b " */
static void assert_names(struct results_cursor *cursor, const char *expected)
{
    GString *names = g_string_new(NULL);
    for (const char *name; (name = results_next_name(cursor)) != NULL;)
        g_string_append_printf(names, "%s ", name);
    assert_null(results_next_name(cursor)); /* and stays at the end */
    assert_true(results_end(cursor, NULL));
    assert_string_equal(names->str, expected);
    g_string_free(names, TRUE);
}

static void names_of_what_is_there(void **state)
{
    struct results_db *db = *state;
    struct run_record other = some_run;
    other.scenario = "a/first";
    store(db, &other, NULL);
    assert_names(results_scenarios(db), "a/first demo/sizes ");
    assert_names(results_points(db, "a/first"), "op=read ");
    assert_names(results_points(db, "nowhere"), "");
    char *version = g_strconcat(sim_version(), " ", NULL);
    assert_names(results_versions(db), version);
    g_free(version);
}

static void values_with_intervals(void **state)
{
    struct results_db *db = *state;
    struct results_cursor *cursor = results_values(db, "demo/sizes", "latency_ns", "ns");
    int n_points = 0;
    for (const struct results_value *v; (v = results_next_value(cursor)) != NULL; n_points++) {
        const bool read = strcmp(v->point, "op=read") == 0;
        assert_int_equal(v->n, read ? 2 : 1);
        assert_true(v->mean == (read ? 12.0 : 18.0));
        if (read) /* values 10 and 14, one degree of freedom */
            assert_true(fabs(v->ci95 - 12.7062 * 2.0) < 1e-3);
        else
            assert_true(isnan(v->ci95));
    }
    assert_true(results_end(cursor, NULL));
    assert_int_equal(n_points, 2);
    cursor = results_values(db, "demo/sizes", "latency_ns", "us");
    assert_null(results_next_value(cursor));
    assert_true(results_end(cursor, NULL));
}

static void quantities_in_order_of_storing(void **state)
{
    struct results_cursor *cursor = results_quantities(*state, "demo/sizes");
    static const char *const names[] = { "latency_ns", "bytes", "bytes.ci95" };
    for (size_t i = 0; i < SIM_N_ELEMENTS(names); i++) {
        const struct results_quantity *q = results_next_quantity(cursor);
        assert_non_null(q);
        assert_string_equal(q->name, names[i]);
        assert_string_equal(q->unit, i == 0 ? "ns" : "");
    }
    assert_null(results_next_quantity(cursor));
    assert_true(results_end(cursor, NULL));
}

static void samples_of_all_seeds(void **state)
{
    struct results_cursor *series = results_series(*state, "demo/sizes", "op=read", "rate_gbit_s");
    const struct results_sample *sample = results_next_sample(series);
    assert_non_null(sample);
    assert_true(sample->t_ps == 50 && sample->value == 8.0);
    sample = results_next_sample(series);
    assert_non_null(sample);
    assert_true(sample->t_ps == 100 && sample->value == 0.5);
    assert_string_equal(sample->unit, "Gbit/s");
    assert_null(results_next_sample(series));
    assert_true(results_end(series, NULL));

    struct results_cursor *buckets = results_histogram(*state, "demo/sizes", "op=read",
                                                       "spread_ns");
    const struct results_bucket *bucket = results_next_bucket(buckets);
    assert_non_null(bucket);
    assert_true(bucket->lo <= 1.5 && 1.5 < bucket->hi);
    assert_int_equal(bucket->count, 2);
    assert_null(results_next_bucket(buckets));
    assert_true(results_end(buckets, NULL));
}

static void spread_between_seeds(void **state)
{
    struct results_spread spread = { 0 };
    assert_true(results_spread(*state, "demo/sizes", "op=read", "latency_ns", 1, 2, &spread));
    assert_true(spread.n_runs == 2 && spread.n == 2);
    assert_true(spread.mean == 12.0 && spread.squares == 8.0);
    assert_true(results_spread(*state, "demo/sizes", "op=read", "latency_ns", 2, 9, &spread));
    assert_true(spread.n_runs == 1 && spread.mean == 14.0);
    assert_true(results_spread(*state, "demo/sizes", "op=write", "bytes", 1, 9, &spread));
    assert_true(spread.n_runs == 1 && spread.n == 0);
}

static void runs_and_what_they_took(void **state)
{
    struct results_db *db = *state;
    struct results_cursor *runs = results_runs(db, "demo/sizes", "op=read");
    for (int seed = 1; seed <= 2; seed++) {
        const struct results_run *run = results_next_run(runs);
        assert_non_null(run);
        assert_int_equal(atoi(run->seed), seed);
        assert_string_equal(run->wall_s, "0.25");
        assert_string_equal(run->started_utc, "2023-11-14T22:13:20Z");
        assert_string_equal(run->fingerprint, "fedcba9876543210");
    }
    assert_null(results_next_run(runs));
    assert_true(results_end(runs, NULL));

    struct results_cursor *costs = results_costs(db, "demo/sizes");
    for (const struct results_cost *c; (c = results_next_cost(costs)) != NULL;)
        assert_int_equal(c->peak_memory_bytes, strcmp(c->point, "op=read") == 0 ? 2000 : 3000);
    assert_true(results_end(costs, NULL));

    struct results_cursor *origins = results_origins(db);
    const struct results_origin *origin = results_next_origin(origins);
    assert_string_equal(origin->host, "here");
    assert_true(origin->n_runs == 2 && origin->n_seeds == 2);
    origin = results_next_origin(origins);
    assert_string_equal(origin->host, "there");
    assert_int_equal(origin->last_utc, some_run.started_utc + 3600);
    assert_null(results_next_origin(origins));
    assert_true(results_end(origins, NULL));
}

static void failed_runs_count_in_the_overview_only(void **state)
{
    struct results_db *db = *state;
    struct run_record failed = some_run;
    failed.status = "failed";
    failed.error = "link down";
    failed.point = "op=atomic";
    assert_null(results_failure(db, failed.scenario, failed.point));
    store(db, &failed, NULL);
    char *error = results_failure(db, failed.scenario, failed.point);
    assert_string_equal(error, "link down");
    g_free(error);
    assert_false(results_have(db, failed.scenario, failed.point, 1, "00ff"));
    struct results_cursor *cursor = results_overviews(db);
    const struct results_overview *row = results_next_overview(cursor);
    assert_non_null(row);
    assert_true(row->n_points == 3 && row->n_seeds == 2);
    assert_true(row->n_done == 3 && row->n_failed == 1);
    assert_string_equal(row->last_utc, "2023-11-14 23:13");
    assert_null(results_next_overview(cursor));
    assert_true(results_end(cursor, NULL));
}

static unsigned n_overtaken(struct results_db *db)
{
    unsigned n = 0;
    struct results_cursor *cursor = results_overtaken(db, "demo/sizes");
    for (const char *point; (point = results_next_name(cursor)) != NULL; n++)
        assert_string_equal(point, "op=read");
    assert_true(results_end(cursor, NULL));
    return n;
}

/* By a failure of the same seed, later and in the same configuration, until there is a run
 * again. */
static void points_are_overtaken_by_failures(void **state)
{
    struct results_db *db = *state;
    struct run_record record = some_run;
    record.status = "failed";
    record.error = "link down";
    record.seed = 3; /* of which there is no run */
    store(db, &record, NULL);
    record.seed = 2;
    record.started_utc = some_run.started_utc - 1; /* merged later */
    store(db, &record, NULL);
    assert_int_equal(n_overtaken(db), 0);
    record.started_utc = some_run.started_utc + 1;
    store(db, &record, NULL);
    assert_int_equal(n_overtaken(db), 1);
    struct run_result *result = run_result_new();
    record.status = "done";
    record.error = NULL;
    store(db, &record, result);
    run_result_free(result);
    assert_int_equal(n_overtaken(db), 0);
}

static void parameters_of_the_run_stored_last(void **state)
{
    struct results_cursor *cursor = results_params(*state, "demo/sizes", "op=read");
    const struct results_param *param = results_next_param(cursor);
    assert_non_null(param);
    assert_string_equal(param->name, "note.text");
    assert_string_equal(param->value, "second");
    assert_null(results_next_param(cursor));
    assert_true(results_end(cursor, NULL));
    cursor = results_params_used(*state, "demo/sizes"); /* a note has no provenance */
    assert_null(results_next_param(cursor));
    assert_true(results_end(cursor, NULL));
}

static void cursors_end_early_and_start_again(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct results_cursor *cursor = results_points(*state, "demo/sizes");
        assert_non_null(results_next_name(cursor));
        struct results_cursor *other = results_scenarios(*state);
        assert_non_null(results_next_name(other));
        assert_true(results_end(other, NULL));
        assert_true(results_end(cursor, NULL));
    }
}

static void a_failure_is_reported_at_the_end(void **state)
{
    struct results_db *db = *state;
    struct results_cursor *cursor = results_quantities(db, "demo/sizes");
    char *message = NULL;
    assert_true(results_end(cursor, &message));
    assert_null(message);
    sqlite3_exec(db->sqlite, "DROP TABLE metric_row", NULL, NULL, NULL);
    cursor = results_quantities(db, "demo/sizes");
    assert_null(results_next_quantity(cursor));
    assert_null(results_next_quantity(cursor));
    assert_false(results_failed(db));
    assert_false(results_end(cursor, &message));
    assert_true(results_failed(db));
    assert_non_null(message);
    g_free(message);
}

/* Of a file, as another process may write while it is read. */
static void a_snapshot_begins_at_once(void **state)
{
    g_autofree char *folder = g_dir_make_tmp("nudma-query-XXXXXX", NULL), *message = NULL;
    g_autofree char *path = g_build_filename(folder, "test.db", NULL);
    struct results_db *writer = results_open(path, false, &message);
    struct results_db *reader = results_open(path, true, &message);
    (void)state;
    assert_non_null(reader);
    assert_true(results_snapshot(reader, &message));
    store(writer, &some_run, NULL);
    struct results_cursor *cursor = results_scenarios(reader);
    assert_null(results_next_name(cursor));
    assert_true(results_end(cursor, &message));
    assert_false(results_failed(reader));
    assert_false(results_snapshot(reader, &message)); /* within another */
    assert_non_null(message);
    results_close(reader);
    results_close(writer);
    g_unlink(path);
    g_rmdir(folder);
}

static struct results_db *asked;

static void ask_twice(void)
{
    results_next_name(results_scenarios(asked));
    results_scenarios(asked);
}

static void take_for_other_rows(void)
{
    results_next_value(results_scenarios(asked));
}

static void faults_of_the_caller(void **state)
{
    asked = *state;
    assert_aborts(ask_twice, "asked while an answer is read", NULL);
    assert_aborts(take_for_other_rows, "rows of another kind", NULL);
}

#define WITH_DB(test) cmocka_unit_test_setup_teardown(test, make_db, close_db)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DB(names_of_what_is_there),
        WITH_DB(values_with_intervals),
        WITH_DB(quantities_in_order_of_storing),
        WITH_DB(samples_of_all_seeds),
        WITH_DB(spread_between_seeds),
        WITH_DB(runs_and_what_they_took),
        WITH_DB(failed_runs_count_in_the_overview_only),
        WITH_DB(points_are_overtaken_by_failures),
        WITH_DB(parameters_of_the_run_stored_last),
        WITH_DB(cursors_end_early_and_start_again),
        WITH_DB(a_failure_is_reported_at_the_end),
        cmocka_unit_test(a_snapshot_begins_at_once),
        WITH_DB(faults_of_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
