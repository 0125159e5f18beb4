/*
 * Questions to the results database. Everything that shows or judges results asks here: no other
 * folder contains SQL or knows a table.
 *
 * A question with many rows is answered by a cursor:
 *
 *     struct results_cursor *cursor = results_points(db, "pcie_bench/latency_size");
 *     for (const char *point; (point = results_next_name(cursor)) != NULL;)
 *         printf("%s\n", point);
 *     if (!results_end(cursor, &message))
 *         ...
 *
 * - A row and its texts are valid until the next row is read or the cursor is closed.
 * - A database answers one question of a kind at a time: a second results_points() aborts while the
 *   first is open.
 * - After an error the cursor has no more rows; results_end() then reports it.
 *
 * "The newest runs" of a scenario are those that the view `result` is about: of each point and seed
 * the newest finished run, all seeds of a point of one version and configuration.
 */
#ifndef SIM_STORE_QUERY_H
#define SIM_STORE_QUERY_H

#include "sim/store/results.h"

struct results_cursor;

/* Closes the cursor. False with *message (caller g_free()s) if not all rows could be read. */
bool results_end(struct results_cursor *cursor, char **message);
/* True if any question since results_open() could not be answered whole. */
bool results_failed(const struct results_db *db);
/* All questions up to results_close() see the database as it is now, whatever is written later.
 * False with *message (caller g_free()s) if it cannot be read. */
bool results_snapshot(struct results_db *db, char **message);

/* ---- Names ----------------------------------------------------------------------------------- */
/* Scenarios with newest runs, sorted. */
struct results_cursor *results_scenarios(struct results_db *db);
/* Scenarios that have runs, but none that is done; sorted. */
struct results_cursor *results_failed_scenarios(struct results_db *db);
/* The points of its newest runs, in no particular order. */
struct results_cursor *results_points(struct results_db *db, const char *scenario);
/* The points of which a run has failed after the newest run of its seed, in the same configuration:
 * what is known of them is older than the last trial. In no particular order. */
struct results_cursor *results_overtaken(struct results_db *db, const char *scenario);
/* Parameter note.<name> of the newest runs that have it: each value once. */
struct results_cursor *results_noted(struct results_db *db, const char *scenario,
                                     const char *param_name);
/* The versions of all newest runs, sorted. */
struct results_cursor *results_versions(struct results_db *db);
/* The next name of one of the above, or NULL. */
const char *results_next_name(struct results_cursor *cursor);

/* ---- Values ---------------------------------------------------------------------------------- */
struct results_quantity {
    const char *name, *unit;
};

/* The metrics of the scenario's newest runs, "<metric>.ci95" among them, in the order in which they
 * were first stored. */
struct results_cursor *results_quantities(struct results_db *db, const char *scenario);
const struct results_quantity *results_next_quantity(struct results_cursor *cursor);

/* The points of the newest runs that have the parameter, each with its value; the newest run's
 * comes last. */
struct results_cursor *results_noted_points(struct results_db *db, const char *scenario,
                                            const char *param_name);
/* The points of which a newest run had not settled when it was measured, sorted, each with one of
 * its quantities that had not, and how. */
struct results_cursor *results_not_settled(struct results_db *db, const char *scenario);
/* Failed runs after which none of the same point and seed is done, of whatever configuration: the
 * point, and why; of each point the newest. */
struct results_cursor *results_failures(struct results_db *db, const char *scenario);

struct results_value {
    const char *point;
    double mean, ci95; /* half the 95 % confidence interval; NAN: unknown */
    int64_t n;         /* seeds */
};

/* One metric at all points of a scenario: the view `result`. */
struct results_cursor *results_values(struct results_db *db, const char *scenario,
                                      const char *metric, const char *unit);
const struct results_value *results_next_value(struct results_cursor *cursor);

struct results_sample {
    int64_t t_ps;
    double value; /* mean over the seeds */
    const char *unit;
};

/* The series that a scenario's newest runs have recorded, with their units, sorted. */
struct results_cursor *results_series_quantities(struct results_db *db, const char *scenario);
/* A series of a point, ascending in time. */
struct results_cursor *results_series(struct results_db *db, const char *scenario,
                                      const char *point, const char *name);
const struct results_sample *results_next_sample(struct results_cursor *cursor);

struct results_bucket {
    double lo, hi;
    int64_t count; /* over all seeds */
    const char *unit;
};

/* The histograms that a scenario's newest runs have recorded, with their units, sorted. */
struct results_cursor *results_histogram_quantities(struct results_db *db, const char *scenario);
/* A histogram of a point, ascending; buckets without samples are left out. */
struct results_cursor *results_histogram(struct results_db *db, const char *scenario,
                                         const char *point, const char *name);
const struct results_bucket *results_next_bucket(struct results_cursor *cursor);

/* The least and the most that a metric of a point came to, among its seeds: one row; NAN: there is
 * none. */
struct results_range {
    double least, most;
};
struct results_cursor *results_range(struct results_db *db, const char *scenario, const char *point,
                                     const char *metric);
const struct results_range *results_next_range(struct results_cursor *cursor);

/* A point that was run again with a value at an end of its range is stored as "<point> ~<variant>",
 * "op=read ~p2p_reads_max=16": no name of an axis begins so. */
#define RESULTS_VARIANT "~"
char *results_variant_name(const char *point, const char *variant); /* g_free() */
/* From now on v() takes what is stored of this variant of a point, where there is any; NULL: of
 * none. */
void results_set_variant(struct results_db *db, const char *variant);
/* Evaluates an SQL expression over v(scenario, point, metric), the mean over the newest runs. False
 * with *message (caller g_free()s) on an error; NAN if a value is missing. */
bool results_evaluate(struct results_db *db, const char *expression, double *value, char **message);

struct results_spread {
    int64_t n_runs; /* newest runs of these seeds */
    int64_t n;      /* those that have the metric */
    double mean;
    double squares; /* sum of the squared differences from the mean */
};

/* How a metric of a point differs between the seeds first_seed..last_seed. False if the database
 * cannot be read. */
bool results_spread(struct results_db *db, const char *scenario, const char *point,
                    const char *metric, uint64_t first_seed, uint64_t last_seed,
                    struct results_spread *spread);

/* ---- Parameters ------------------------------------------------------------------------------ */
struct results_param {
    const char *name, *value, *unit, *provenance; /* unit and provenance may be "" */
};

/* The parameters of a point's newest run (of several seeds the run stored last), sorted by name. */
struct results_cursor *results_params(struct results_db *db, const char *scenario,
                                      const char *point);
/* All different parameters with a provenance of the scenario's newest runs, in no particular
 * order. */
struct results_cursor *results_params_used(struct results_db *db, const char *scenario);
const struct results_param *results_next_param(struct results_cursor *cursor);

/* ---- Runs ------------------------------------------------------------------------------------ */
/* A row of the view `run`; numbers are decimal texts, as SQLite writes them. */
struct results_run {
    const char *id, *seed, *wall_s, *sim_ps, *events, *peak_memory_bytes;
    const char *version, *config_sha256, *command_line, *host;
    const char *started_utc; /* "2026-11-22T15:35:00Z" */
    const char *fingerprint;
};

/* The newest runs of a point, by seed. */
struct results_cursor *results_runs(struct results_db *db, const char *scenario, const char *point);
const struct results_run *results_next_run(struct results_cursor *cursor);

struct results_overview {
    const char *scenario;
    int64_t n_points, n_seeds, n_done, n_failed;
    const char *last_utc; /* when its last run was started: "2026-11-22 15:35" */
};

/* A row for each scenario of which anything is stored, over all its runs, sorted. */
struct results_cursor *results_overviews(struct results_db *db);
const struct results_overview *results_next_overview(struct results_cursor *cursor);

struct results_origin {
    const char *version, *host;
    int64_t n_runs, n_seeds;
    int64_t last_utc; /* when the last of them was started, in seconds since the epoch */
};

/* Which versions made the newest runs, on which hosts; the one that stored the last run comes
 * last. */
struct results_cursor *results_origins(struct results_db *db);
const struct results_origin *results_next_origin(struct results_cursor *cursor);

struct results_cost {
    const char *point;
    double wall_s;             /* mean */
    int64_t peak_memory_bytes; /* the largest; 0: unknown */
};

/* What the finished runs of each point took, whatever their version and configuration. */
struct results_cursor *results_costs(struct results_db *db, const char *scenario);
const struct results_cost *results_next_cost(struct results_cursor *cursor);

/* A finished run of this scenario, point, seed, version and configuration exists, and no later one
 * of this configuration has failed. */
bool results_have(struct results_db *db, const char *scenario, const char *point, uint64_t seed,
                  const char *config_sha256);
/* The message of the point's failed run that was stored last, or NULL. Caller g_free()s. */
char *results_failure(struct results_db *db, const char *scenario, const char *point);
/* The version of the database library: "3.40.1". */
const char *results_library(void);

#endif
