/*
 * Trials: points of scenarios run with other values of some parameters, for their claims. What they
 * give stays in a database in memory; the user's own is not touched.
 */
#ifndef CLI_CAMPAIGN_TRIALS_H
#define CLI_CAMPAIGN_TRIALS_H

#include "cli/claims/claims.h"
#include "sim/config/scenario.h"

struct trial_param {
    const char *path;
    double lo, hi; /* in the unit of the key */
    double start;  /* as the scenarios have it */
    const struct param_desc *desc;
};

struct trial_point {
    struct scenario *scenario;
    size_t index;
    bool fitted; /* a claim that is fitted to needs it */
};

struct trials {
    GArray *params;       /* struct trial_param */
    GPtrArray *scenarios; /* struct scenario */
    GArray *points;       /* struct trial_point: all that will be run */
    unsigned n_workers;
    uint64_t seed;
    struct results_db *db;
    int stop_fd;     /* of a struct stop: what comes there ends runs; -1: nothing does */
    unsigned n_runs; /* of points, so far */
    char *error;     /* why a run failed, of the first that did; g_free() */
};

/* Begins with no points; trials_release() ends. False with *message if the database refuses. */
bool trials_init(struct trials *trials, char **message);
void trials_release(struct trials *trials);
/* Adds the points that the claim's expression names; false if one is in none of the scenarios. */
bool trials_add_claim(struct trials *trials, const struct claim *claim, bool fitted);

/* The value that a parameter can take (whole picoseconds, integers) nearest to x: as written in a
 * file, g_free(). */
char *trials_value_text(const struct trial_param *param, double x);
double trials_value(const struct trial_param *param, double x);

/* Runs all points, or the fitted ones, with the parameters at x. False if one failed, or if they
 * were stopped. */
bool trials_run(struct trials *trials, const double *x, bool only_fitted);
/* The claim's value after that; NAN if its expression has none. */
double trials_claim(struct trials *trials, const struct claim *claim);

#endif
