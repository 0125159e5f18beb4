/* What calibrate.c and calibrate_report.c share. */
#ifndef CLI_COMMANDS_CALIBRATE_H
#define CLI_COMMANDS_CALIBRATE_H

#include "cli/campaign/trials.h"
#include "cli/claims/claims.h"
#include "cli/claims/minimise.h"

struct calibration {
    struct cli_options options;
    char **param_texts, **claim_ids, **sets;
    char *write_path, *command_line;
    FILE *tables; /* standard output, if the fitted values do not go there */
    int n_workers, max_evaluations;
    int64_t seed;
    double tolerance;
    gboolean quiet;
    GPtrArray *files;  /* struct claims_file */
    GPtrArray *fitted; /* struct claim */
    GPtrArray *all;    /* struct claim: those that the scenarios named have points for */
    struct trials trials;
    double x[MINIMISE_VARIABLES_MAX];
    double *before, *after; /* values of `all` */
    struct minimise search;
    double best_x[MINIMISE_VARIABLES_MAX], best; /* of the trials so far; INFINITY: none */
    GHashTable *costs;                           /* of trials that have been: "96.5 12" -> double */
};

static inline struct trial_param *calibration_param(const struct calibration *c, guint i)
{
    return &g_array_index(c->trials.params, struct trial_param, i);
}

static inline struct claim *calibration_claim(const GPtrArray *claims, guint i)
{
    return claims->pdata[i];
}

/* All claims of the scenarios, with the parameters at x; false if a run failed. */
bool calibration_measure(struct calibration *c, const double *x, double *values);

/* calibrate_report.c. The fit and what it did; true if all fitted claims hold. */
bool calibration_print_fit(const struct calibration *c);
/* False if a run failed. */
bool calibration_print_sensitivity(struct calibration *c);
/* False if it cannot be written; said so then. */
bool calibration_write(const struct calibration *c);

#endif
