/*
 * The least of a function of a few variables, each within its range, from its values alone: the
 * simplex search of Nelder and Mead (1965), with points outside the ranges moved onto their edge,
 * and begun anew around its result until that does not help any more. Deterministic.
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
    /* INFINITY: x is no good; never NAN. */
    double (*cost)(void *context, const double *x);
    void *context;
    /* What came of it. */
    double best;
    unsigned n_evaluations;
    bool converged;
};

/* From x on, which is within the ranges; the best x found is in it then. */
void minimise(struct minimise *search, double *x);

#endif
