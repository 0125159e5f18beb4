/*
 * The results database at the size of a large campaign: 100,000 runs of 20 metrics, as 2,000 points
 * of 5 scenarios with 10 seeds each. How long they take to store, one transaction a run; how large
 * the file is; how long it takes to join two halves of it, as nudma merge does; how long the
 * questions take that commands ask. docs/results.md states the values. With an argument: the file
 * to make and to leave there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <glib.h>
#include <glib/gstdio.h>
#include <sqlite3.h>

#include "sim/engine/sim.h"
#include "sim/store/query.h"
#include "sim/store/results_internal.h"

enum { N_SCENARIOS = 5, N_POINTS = 2000, N_SEEDS = 10, N_METRICS = 20 };
enum { N_RUNS = N_SCENARIOS * N_POINTS * N_SEEDS };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "results_db: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

static void store_run(struct results_db *db, int scenario, int point, uint64_t seed,
                      struct sim_random *random)
{
    char scenario_name[64], point_name[64], metric[64], config[65], *message = NULL;
    struct run_result *result = run_result_new();
    g_snprintf(scenario_name, sizeof(scenario_name), "bench/scenario_%d", scenario);
    g_snprintf(point_name, sizeof(point_name), "op=%s size_bytes=%d",
               point % 2 == 0 ? "read" : "write", 64 * (1 + point / 2));
    for (int m = 0; m < N_METRICS; m++) {
        g_snprintf(metric, sizeof(metric), "part%d.latency_mean_ns", m);
        run_result_metric(result, metric, "ns", 100.0 * m + sim_random_unit(random));
    }
    const struct run_record record = {
        .scenario = scenario_name,
        .point = point_name,
        .seed = seed,
        .status = "done",
        .command_line = "nudma run bench --seeds 10",
        .host = "here",
        .started_utc = 1700000000,
        .wall_s = 0.25,
        .sim_ps = 5000000,
        .events = 77,
        .fingerprint = sim_random_u64(random),
    };
    struct run_record with_config = record;
    g_snprintf(config, sizeof(config), "%032d%032d", scenario, point);
    memcpy(with_config.config_sha256, config, sizeof(config));
    if (!results_store(db, &with_config, NULL, result, &message))
        fail("storing", message);
    run_result_free(result);
}

/* Seconds that the query takes; *rows: how many it finds. */
static double query_s(struct results_db *db, const char *sql, long *rows)
{
    sqlite3_stmt *statement = NULL;
    const double start = now_s();
    int code = sqlite3_prepare_v2(db->sqlite, sql, -1, &statement, NULL);
    *rows = 0;
    while (code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        ++*rows;
    if (code == SQLITE_OK)
        code = sqlite3_finalize(statement);
    if (code != SQLITE_OK)
        fail(sql, sqlite3_errmsg(db->sqlite));
    return now_s() - start;
}

static void query(struct results_db *db, const char *name, const char *sql, long expected)
{
    long rows;
    const double seconds = query_s(db, sql, &rows);
    if (rows != expected) {
        fprintf(stderr, "results_db: %s: %ld rows, expected %ld\n", name, rows, expected);
        exit(EXIT_FAILURE);
    }
    printf("results_db.%s %.4f s\n", name, seconds);
}

static struct results_db *open_db(const char *path, bool read_only)
{
    char *message = NULL;
    struct results_db *db = results_open(path, read_only, &message);
    if (db == NULL)
        fail("opening", message);
    return db;
}

/* Closed in time, too: then the log goes into the file. */
static double store_s(const char *path, uint64_t first_seed, uint64_t n_seeds)
{
    struct sim_random random;
    struct results_db *db = open_db(path, false);
    sim_random_init(&random, first_seed, "results_db");
    const double start = now_s();
    for (uint64_t seed = first_seed; seed < first_seed + n_seeds; seed++) {
        for (int scenario = 0; scenario < N_SCENARIOS; scenario++) {
            for (int point = 0; point < N_POINTS; point++)
                store_run(db, scenario, point, seed, &random);
        }
    }
    results_close(db);
    return now_s() - start;
}

static double merge_s(const char *path, const char *source)
{
    struct results_db *db = open_db(path, false);
    struct results_merged merged;
    char *message = NULL;
    const double start = now_s();
    if (!results_merge(db, source, &merged, &message))
        fail("joining", message);
    results_close(db);
    if (merged.n_joined != N_RUNS / 2 || merged.n_there != 0)
        fail("joining", "not all runs came in");
    return now_s() - start;
}

static void query_all(const char *path)
{
    struct results_db *db = open_db(path, true);
    query(db, "one_value",
          "SELECT mean, ci95 FROM result WHERE scenario = 'bench/scenario_3' AND"
          " point = 'op=read size_bytes=640' AND metric = 'part7.latency_mean_ns' AND n = 10",
          1);
    query(db, "curve",
          "SELECT point, mean, ci95 FROM result WHERE scenario = 'bench/scenario_3' AND"
          " metric = 'part7.latency_mean_ns'",
          N_POINTS);
    query(db, "runs_by_scenario", "SELECT scenario, status, count(*) FROM run GROUP BY 1, 2",
          N_SCENARIOS);
    query(db, "whole_view", "SELECT * FROM result", (long)N_SCENARIOS * N_POINTS * N_METRICS);
    results_close(db);
}

int main(int argc, char **argv)
{
    char *folder = g_dir_make_tmp("nudma-results-XXXXXX", NULL);
    if (folder == NULL)
        fail("a folder", "cannot be made");
    char *path = argc > 1 ? g_strdup(argv[1]) : g_build_filename(folder, "bench.db", NULL);
    char *half = g_build_filename(folder, "half.db", NULL);
    const double seconds = store_s(path, 1, N_SEEDS / 2) +
                           store_s(half, 1 + N_SEEDS / 2, N_SEEDS / 2);
    printf("results_db.store %.2f s\n", seconds);
    printf("results_db.store_rate %.0f runs/s\n", N_RUNS / seconds);
    printf("results_db.merge_half %.2f s\n", merge_s(path, half));
    struct stat file;
    if (stat(path, &file) != 0)
        fail(path, "is not there");
    printf("results_db.file %.1f MB\n", (double)file.st_size / 1e6);
    printf("results_db.metric %.1f bytes\n", (double)file.st_size / N_RUNS / N_METRICS);
    query_all(path);
    g_unlink(half);
    if (argc == 1)
        g_unlink(path);
    g_rmdir(folder);
    g_free(half);
    g_free(path);
    g_free(folder);
    return EXIT_SUCCESS;
}
