/*
 * Minimises a function of a few variables, each within a range, without derivatives: the simplex
 * search of Nelder and Mead (1965). Points outside the ranges are moved to the bound; the search is
 * restarted around its result until that brings no improvement. Deterministic.
 */
#ifndef CLI_CLAIMS_MINIMISE_H
#define CLI_CLAIMS_MINIMISE_H

#include "sim/engine/types.h"

#define MINIMISE_VARIABLES_MAX 16

struct minimise {
    unsigned n; /* variables, 1..MINIMISE_VARIABLES_MAX */
    const double *lo, *hi;
    double tolerance;         /* how well to find x, as a share of the ranges */
    unsigned max_evaluations; /* about: an iteration is not broken off */
    /* INFINITY if x is invalid; never NAN. */
    double (*cost)(void *context, const double *x);
    void *context;
    /* The outcome. */
    double best;
    unsigned n_evaluations;
    bool converged;
};

/* Searches from x, which has to be within the ranges, and leaves the best x found there. */
void minimise(struct minimise *search, double *x);

#endif
