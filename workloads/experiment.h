/* One point of a scenario: built, booted, run, recorded. */
#ifndef WORKLOADS_EXPERIMENT_H
#define WORKLOADS_EXPERIMENT_H

#include "sim/config/config.h"
#include "sim/store/results.h"

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

struct stamp_trace;
struct sim_steps;

/* The transfers of a device to follow. */
struct experiment_followed {
    const char *device;           /* NULL: the first that does any */
    uint64_t nth_write, nth_read; /* counted from the end of the warm-up, from 1; 0: none */
    uint64_t bytes_min;           /* smaller ones do not count */
};

/*
 * Runs one point until what is followed has come to its end, or the point has; nothing is kept of
 * what it records. A run that ends in its midst leaves memory of the simulated software behind, as
 * one that is interrupted does. outcome may be NULL; its fingerprint is that of a run that was
 * recorded, if the point came to its end. What was written down (models/pcie/link/tlp_trace.h), the
 * caller's. NULL: mistakes are in errors (the device is none of the scenario), nothing has run; or
 * the run failed, *error as above.
 */
struct stamp_trace *experiment_follow(struct config *config, uint64_t seed,
                                      const struct experiment_followed *followed,
                                      struct experiment_outcome *outcome,
                                      struct sim_error_list *errors, char **error);

/* Likewise, until as many steps of software (sim/engine/steps.h) have been noted as there is room
 * for, behind the warm-up. Their texts are valid as long as the process. */
void experiment_trace(struct config *config, uint64_t seed, struct sim_steps *steps,
                      struct sim_error_list *errors, char **error);

struct world;

/* Somebody who looks at a run: attaches to the world's models and changes nothing that is
 * simulated. */
struct experiment_observer {
    void *arg;
    /* Called when the world is built, before it boots. False: the run does not begin; mistakes of
     * the input are in errors. */
    bool (*attach)(void *arg, struct world *world, struct sim_error_list *errors);
    /* Called when the run has ended, before the world is taken down, if attach() was. */
    void (*detach)(void *arg);
    const volatile int *interrupt; /* non-zero ends the run; no error */
};
/* Runs one point, or until the interrupt; nothing is kept of what it records. outcome: as of
 * experiment_follow(). False: it did not begin, see attach(), or failed, *error (g_malloc'ed) says
 * so. */
bool experiment_observe(struct config *config, uint64_t seed,
                        const struct experiment_observer *observer,
                        struct experiment_outcome *outcome, struct sim_error_list *errors,
                        char **error);

#endif
