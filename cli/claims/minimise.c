/* The simplex lives in the unit cube: u = (x - lo) / (hi - lo). */
#include <math.h>
#include <string.h>

#include "cli/claims/minimise.h"

#define FIRST_STEP   0.1  /* of the range */
#define RESTART_STEP 0.02 /* smaller: only what a collapsed simplex may have missed */
#define RESTARTS_MAX 4u

struct vertex {
    double u[MINIMISE_VARIABLES_MAX];
    double cost;
};

struct simplex {
    struct minimise *search;
    struct vertex vertex[MINIMISE_VARIABLES_MAX + 1]; /* ascending in cost */
};

static void evaluate(struct minimise *search, struct vertex *vertex)
{
    double x[MINIMISE_VARIABLES_MAX];
    for (unsigned i = 0; i < search->n; i++) {
        vertex->u[i] = SIM_MIN(SIM_MAX(vertex->u[i], 0.0), 1.0);
        x[i] = search->lo[i] + vertex->u[i] * (search->hi[i] - search->lo[i]);
    }
    vertex->cost = search->cost(search->context, x);
    search->n_evaluations++;
}

/* Stable, so that equal costs keep their order. */
static void sort(struct simplex *simplex)
{
    for (unsigned i = 1; i <= simplex->search->n; i++) {
        const struct vertex moved = simplex->vertex[i];
        unsigned k = i;
        for (; k > 0 && simplex->vertex[k - 1].cost > moved.cost; k--)
            simplex->vertex[k] = simplex->vertex[k - 1];
        simplex->vertex[k] = moved;
    }
}

static void build(struct simplex *simplex, const struct vertex *start, double step)
{
    const unsigned n = simplex->search->n;
    simplex->vertex[0] = *start;
    for (unsigned i = 0; i < n; i++) {
        struct vertex *vertex = &simplex->vertex[i + 1];
        *vertex = *start;
        vertex->u[i] += start->u[i] + step <= 1.0 ? step : -step;
        evaluate(simplex->search, vertex);
    }
    sort(simplex);
}

static double size(const struct simplex *simplex)
{
    double largest = 0.0;
    for (unsigned i = 1; i <= simplex->search->n; i++)
        for (unsigned k = 0; k < simplex->search->n; k++)
            largest = fmax(largest, fabs(simplex->vertex[i].u[k] - simplex->vertex[0].u[k]));
    return largest;
}

/* The worst vertex on its line through the middle of the others; factor -1: reflected. */
static struct vertex along(const struct simplex *simplex, double factor)
{
    const unsigned n = simplex->search->n;
    struct vertex vertex = { .cost = 0.0 };
    for (unsigned k = 0; k < n; k++) {
        double middle = 0.0;
        for (unsigned i = 0; i < n; i++)
            middle += simplex->vertex[i].u[k] / n;
        vertex.u[k] = middle + factor * (simplex->vertex[n].u[k] - middle);
    }
    evaluate(simplex->search, &vertex);
    return vertex;
}

static void shrink(struct simplex *simplex)
{
    for (unsigned i = 1; i <= simplex->search->n; i++) {
        struct vertex *vertex = &simplex->vertex[i];
        for (unsigned k = 0; k < simplex->search->n; k++)
            vertex->u[k] = (vertex->u[k] + simplex->vertex[0].u[k]) / 2.0;
        evaluate(simplex->search, vertex);
    }
}

static void iterate(struct simplex *simplex)
{
    struct vertex *worst = &simplex->vertex[simplex->search->n];
    const double best = simplex->vertex[0].cost;
    const double second_worst = simplex->vertex[simplex->search->n - 1].cost;
    const struct vertex reflected = along(simplex, -1.0);
    if (reflected.cost < best) {
        const struct vertex expanded = along(simplex, -2.0);
        *worst = expanded.cost < reflected.cost ? expanded : reflected;
    } else if (reflected.cost < second_worst) {
        *worst = reflected;
    } else {
        const struct vertex contracted = along(simplex, reflected.cost < worst->cost ? -0.5 : 0.5);
        if (contracted.cost < SIM_MIN(reflected.cost, worst->cost))
            *worst = contracted;
        else
            shrink(simplex);
    }
    sort(simplex);
}

static bool run(struct simplex *simplex, const struct vertex *start, double step)
{
    struct minimise *search = simplex->search;
    build(simplex, start, step);
    while (size(simplex) > search->tolerance) {
        if (search->n_evaluations >= search->max_evaluations)
            return false;
        iterate(simplex);
    }
    return true;
}

void minimise(struct minimise *search, double *x)
{
    struct simplex simplex = { .search = search };
    struct vertex best = { .cost = 0.0 };
    SIM_ASSERT(search->n >= 1 && search->n <= MINIMISE_VARIABLES_MAX, "%u variables", search->n);
    search->n_evaluations = 0;
    for (unsigned i = 0; i < search->n; i++)
        best.u[i] = (x[i] - search->lo[i]) / (search->hi[i] - search->lo[i]);
    evaluate(search, &best);
    search->converged = run(&simplex, &best, FIRST_STEP);
    best = simplex.vertex[0];
    for (unsigned i = 0; i < RESTARTS_MAX && search->converged && best.cost > 0.0; i++) {
        const double before = best.cost;
        search->converged = run(&simplex, &best, RESTART_STEP);
        best = simplex.vertex[0];
        if (before - best.cost <= 1e-9 * before)
            break;
    }
    search->best = best.cost;
    for (unsigned i = 0; i < search->n; i++)
        x[i] = search->lo[i] + best.u[i] * (search->hi[i] - search->lo[i]);
}
