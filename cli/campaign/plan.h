/* What a command line asks to be run: points, validated, and jobs: a point and a seed each. */
#ifndef CLI_CAMPAIGN_PLAN_H
#define CLI_CAMPAIGN_PLAN_H

#include "cli/base/scenarios.h"

struct plan_point {
    struct scenario *scenario; /* of the plan */
    size_t index;
    char *
        stored_as; /* the point's name in the database, owned; NULL: that of the scenario's point */
    bool may_fail; /* it is asked whether it fails: nothing is said of it if it does */
    char config_sha256[65]; /* once checked */
    GArray *outputs;        /* struct plan_output, files that its runs write; owned; NULL: none */
    size_t twin;    /* the first point of the same configuration; its own index: none before it */
    bool has_twins; /* it is the first of several */
    unsigned n_jobs, n_ended;
};

enum plan_state {
    PLAN_WAITING,
    PLAN_RUNNING,
    PLAN_DONE,
    PLAN_FAILED,
    PLAN_STORED_BEFORE,
    PLAN_SHARING, /* waits for the result of its twin's job */
    N_PLAN_STATES
};

struct plan_job {
    size_t point; /* index in plan->points */
    uint64_t seed;
    enum plan_state state;
    double wall_s; /* once finished */
    sim_time sim_ps;
    int64_t started_utc;     /* seconds since the epoch, once running */
    double expected_s;       /* of earlier runs, 0: unknown */
    uint64_t expected_bytes; /* of memory, 0: unknown */
};

struct plan {
    GPtrArray *scenarios; /* struct scenario, owned */
    GArray *points;       /* struct plan_point */
    GArray *jobs;         /* struct plan_job */
    unsigned n_in_state[N_PLAN_STATES];
    unsigned n_points_ended; /* all jobs of which have ended */
    unsigned n_shared;       /* jobs that took their twin's result */
};

struct plan_output {
    char *file, *path; /* {seed} in its name; the setting that says so */
    char *written_in;  /* the file of the setting */
    int line;
};

/* Which points of the scenarios named. */
struct plan_choice {
    const char *const *sets;    /* "path=value", NULL-terminated; may be NULL */
    bool quick;                 /* only the fast subset that they name */
    const char *const *filters; /* expressions over axis values, NULL-terminated; may be NULL */
    const char *filter_option;  /* that they were given by; NULL: "--filter" */
    const char
        *precision; /* a share, "0.01": what is known to it need not be measured longer; NULL */
    unsigned shard, n_shards; /* the part number `shard`, from 1 on, of n_shards; 0 of 0: all */
};

/* Loads the scenarios and lists their points. */
struct plan *plan_new(const struct cli_options *options, char **arguments,
                      const struct plan_choice *choice, struct sim_error_list *errors);
/* One without points. */
struct plan *plan_new_empty(void);
/* Adds a copy of the point; takes over its scenario, which no other point of the plan has, and
 * stored_as. */
void plan_add_point(struct plan *plan, const struct plan_point *point);
void plan_free(struct plan *plan);
/* Builds every point once, without running it, so that all mistakes come out before anything
 * runs, in up to n_processes (1..) at a time; print: writes each resolved configuration to standard
 * output, in this process alone. (plan_check.c) */
void plan_check(struct plan *plan, unsigned n_processes, bool print, struct sim_error_list *errors);
/* After plan_check(): no two runs write one file, nor one that is read; n_seeds of each point. */
void plan_check_outputs(const struct plan *plan, const char *db, unsigned n_seeds,
                        struct sim_error_list *errors);
/* Builds the first point of each scenario only: what is wrong with the file, in no time. */
void plan_check_first(const struct plan *plan, struct sim_error_list *errors);
/* Points whose configurations are the same, whatever their scenarios are, run once: finds them
 * (plan_check() has been called). Not those that write files, or that are asked whether they fail.
 * (twins.c) */
void plan_find_twins(struct plan *plan);
/* True if a job of the point's twin with that seed waits or runs. */
bool plan_twin_waits(const struct plan *plan, const struct plan_point *point, uint64_t seed);
/* The next job from *index on that shares the result of this one, or NULL; *index moves behind
 * it. */
struct plan_job *plan_next_sharing(struct plan *plan, const struct plan_job *job, guint *index);
/* Adds a job for a point. Its state is PLAN_STORED_BEFORE if the database has its run, unless
 * force. False with *message (caller g_free()s) if the database refused. */
bool plan_add_job(struct plan *plan, struct results_db *db, size_t point, uint64_t seed, bool force,
                  char **message);
/* The jobs for seeds first_seed..+n_seeds-1 of all points. False as above. */
bool plan_make_jobs(struct plan *plan, struct results_db *db, uint64_t first_seed, unsigned n_seeds,
                    bool force, char **message);

/* Sorts by expected duration, longest first; jobs of unknown duration come before all others. Keeps
 * the order of equal ones. */
void plan_sort_jobs(struct plan *plan);

struct plan_point *plan_point(const struct plan *plan, size_t index);
struct plan_job *plan_job(const struct plan *plan, size_t index);
/* Under which results of the point are stored. */
const char *plan_point_name(const struct plan_point *point);
void plan_set_state(struct plan *plan, struct plan_job *job, enum plan_state state);
unsigned plan_count(const struct plan *plan, enum plan_state state);
/* "pcie_bench/latency_size op=read transfer_bytes=64 seed 1"; g_free(). */
char *plan_job_name(const struct plan *plan, const struct plan_job *job);

#endif
