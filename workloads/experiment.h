/* One point of a scenario: built, booted, run, recorded. */
#ifndef WORKLOADS_EXPERIMENT_H
#define WORKLOADS_EXPERIMENT_H

#include "sim/config.h"
#include "sim/results.h"

struct experiment_outcome {
    sim_time sim_ps;
    uint64_t events, fingerprint;
};

/* Builds everything the configuration names and takes it down again; false with all mistakes in
 * errors. */
bool experiment_check(struct config *config, struct sim_error_list *errors);

/* Declares in `declared` (run_result_new_declaring()) all names that a run of the configuration may
 * record. False with mistakes in errors. */
bool experiment_declare(struct config *config, struct run_result *declared,
                        struct sim_error_list *errors);

/* Builds and runs one point. False with *error (g_malloc'ed) if the run itself failed. interrupt:
 * polled; non-zero ends the run as failed with "interrupted". */
bool experiment_run(struct config *config, uint64_t seed, struct run_result *result,
                    struct experiment_outcome *outcome, const volatile int *interrupt,
                    char **error);

#endif
