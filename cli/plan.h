/* What a command line asks to be run: points, validated, and jobs: a point and a seed each. */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

#include "cli/scenarios.h"

struct plan_point {
    struct scenario *scenario; /* not owned */
    size_t index;
    char config_sha256[65]; /* once checked */
};

enum plan_state {
    PLAN_WAITING,
    PLAN_RUNNING,
    PLAN_DONE,
    PLAN_FAILED,
    PLAN_STORED_BEFORE,
    N_PLAN_STATES
};

struct plan_job {
    size_t point; /* index in plan->points */
    uint64_t seed;
    enum plan_state state;
    double wall_s;       /* once finished */
    int64_t started_utc; /* seconds since the epoch, once running */
};

struct plan {
    GPtrArray *scenarios; /* struct scenario, owned */
    GArray *points;       /* struct plan_point */
    GArray *jobs;         /* struct plan_job */
    unsigned n_in_state[N_PLAN_STATES];
};

/* Which points of the scenarios named. */
struct plan_choice {
    const char *const *sets;  /* "path=value", NULL-terminated; may be NULL */
    bool quick;               /* only the fast subset that they name */
    const char *filter;       /* an expression over axis values, or NULL */
    unsigned shard, n_shards; /* the part number `shard`, from 1 on, of n_shards; 0 of 0: all */
};

/* Loads the scenarios and lists their points. */
struct plan *plan_new(const struct cli_options *options, char **arguments,
                      const struct plan_choice *choice, struct sim_error_list *errors);
void plan_free(struct plan *plan);
/* Builds every point once, without running it, so that all mistakes come out before anything
 * runs; print: writes each resolved configuration to standard output. */
void plan_check(struct plan *plan, bool print, struct sim_error_list *errors);
/* The jobs for seeds first_seed..+n_seeds-1; those that the database has are PLAN_STORED_BEFORE
 * unless force. False with *message if the database refused. */
bool plan_make_jobs(struct plan *plan, struct results_db *db, uint64_t first_seed, unsigned n_seeds,
                    bool force, char **message);

struct plan_point *plan_point(const struct plan *plan, size_t index);
struct plan_job *plan_job(const struct plan *plan, size_t index);
const char *plan_point_name(const struct plan_point *point);
void plan_set_state(struct plan *plan, struct plan_job *job, enum plan_state state);
unsigned plan_count(const struct plan *plan, enum plan_state state);
/* "pcie_bench/latency_size op=read transfer_bytes=64 seed 1"; g_free(). */
char *plan_job_name(const struct plan *plan, const struct plan_job *job);

#endif
