/*
 * Sampling: a warm-up that ends once nothing drifts any more, a measurement that ends once all that
 * is watched is known to measure.precision_ratio. The scenario's times are the most that either
 * takes.
 */
#ifndef WORKLOADS_BASE_SAMPLING_H
#define WORKLOADS_BASE_SAMPLING_H

#include "workloads/base/workload.h"

#define SAMPLING_WINDOWS 64u /* of a measurement, of a warm-up */

/* How a quantity is judged: relative to its own mean, or to more where it is small. */
enum sampling_kind {
    SAMPLING_VALUE, /* its own mean */
    SAMPLING_FLOW,  /* bytes: at least a twentieth of the largest flow */
    SAMPLING_SHARE, /* of one: at least a twentieth */
};

struct sampling_quantity {
    char name[96];
    enum sampling_kind kind;
    double sum[SAMPLING_WINDOWS + 1], n[SAMPLING_WINDOWS + 1]; /* at the ends of windows */
};

struct sampling;
/* Calls sampling_add() for each quantity, always in the same order. */
typedef void sampling_read_fn(void *context, struct sampling *sampling);

struct sampling {
    struct workload *workload;
    sampling_read_fn *read; /* beside the flows of the world; may be NULL */
    void *context;
    struct host *measured; /* flows of other hosts are not watched; NULL: those of all are */
    /* private */
    struct sampling_quantity *quantity;
    unsigned n_quantities, n_added;
    unsigned n_windows;
    double largest_flow; /* of a quantity, in the windows that are judged */
    /* results, for the note */
    sim_time warmup_ps, duration_ps; /* that were simulated */
    bool ended_early;                /* the measurement, as all was known */
    double half_ratio;               /* the widest interval's half, of what it is judged by */
    char widest[96];                 /* whose that is */
};

/* Only if measure.precision_ratio is not 0. */
void sampling_init(struct sampling *sampling, struct workload *workload, sampling_read_fn *read,
                   void *context);
void sampling_release(struct sampling *sampling);
/* In sampling_read_fn: the count until now of what `name` and `what` name, and of what it is
 * divided by; n < 0: by time. */
void sampling_add(struct sampling *sampling, const char *name, const char *what,
                  enum sampling_kind kind, double sum, double n);

/* Runs what is left of the warm-up, for left_ps at most. From measure.warmup_min_us on it ends once
 * no quantity has drifted over the second half of what has been simulated by more than the
 * precision, where that is known. */
void sampling_warm_up(struct sampling *sampling, sim_time left_ps);
/* As workload_run_parts(); ends earlier, before *done, once all quantities are known. */
void sampling_measure(struct sampling *sampling, const bool *done, sim_time until_ps,
                      settle_sample_fn *sample, void *context);
/* Notes what was simulated of the scenario's times, and how well what was watched is known. */
void sampling_note(const struct sampling *sampling);

#endif
