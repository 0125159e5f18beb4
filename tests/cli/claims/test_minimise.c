/* The simplex search: it finds the least, stays within the ranges, and says when it gave up. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after those */
#include <cmocka.h>

#include "cli/claims/minimise.h"

struct watched {
    const struct minimise *search;
    unsigned n_calls;
    double least_x, most_x;
};

static void watch(struct watched *watched, const double *x)
{
    watched->n_calls++;
    for (unsigned i = 0; i < watched->search->n; i++) {
        watched->least_x = fmin(watched->least_x, x[i]);
        watched->most_x = fmax(watched->most_x, x[i]);
    }
}

static double parabola(void *context, const double *x)
{
    watch(context, x);
    return (x[0] - 96.0) * (x[0] - 96.0);
}

/* A narrow bent valley, the least at (1, 1). */
static double rosenbrock(void *context, const double *x)
{
    watch(context, x);
    const double a = 1.0 - x[0], b = x[1] - x[0] * x[0];
    return a * a + 100.0 * b * b;
}

static double slope(void *context, const double *x)
{
    watch(context, x);
    return x[0] + 2.0 * x[1];
}

/* A staircase: what a simulation of whole picoseconds looks like. */
static double steps(void *context, const double *x)
{
    watch(context, x);
    return fabs(floor(x[0]) - 42.0);
}

static double walled(void *context, const double *x)
{
    watch(context, x);
    return x[0] > 5.0 ? (double)INFINITY : (x[0] - 6.0) * (x[0] - 6.0);
}

static struct minimise new_search(struct watched *watched, unsigned n, const double *lo,
                                  const double *hi, double (*cost)(void *, const double *))
{
    *watched = (struct watched){ .least_x = (double)INFINITY, .most_x = -(double)INFINITY };
    return (struct minimise){ .n = n,
                              .lo = lo,
                              .hi = hi,
                              .tolerance = 1e-5,
                              .max_evaluations = 1000,
                              .cost = cost,
                              .context = watched };
}

static void one_variable(void **state)
{
    const double lo[] = { 1.0 }, hi[] = { 1000.0 };
    const double starts[] = { 1.0, 40.0, 96.0, 1000.0 };
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct watched watched;
        struct minimise search = new_search(&watched, 1, lo, hi, parabola);
        double x[] = { starts[i] };
        watched.search = &search;
        minimise(&search, x);
        assert_true(search.converged);
        assert_true(fabs(x[0] - 96.0) < 0.02);
        assert_true(search.best < 1e-3);
        assert_int_equal(search.n_evaluations, watched.n_calls);
        assert_true(watched.least_x >= 1.0 && watched.most_x <= 1000.0);
    }
}

static void two_variables(void **state)
{
    const double lo[] = { -2.0, -2.0 }, hi[] = { 2.0, 2.0 };
    struct watched watched;
    struct minimise search = new_search(&watched, 2, lo, hi, rosenbrock);
    double x[] = { -1.2, 1.0 };
    (void)state;
    watched.search = &search;
    minimise(&search, x);
    assert_true(search.converged);
    assert_true(fabs(x[0] - 1.0) < 1e-2 && fabs(x[1] - 1.0) < 1e-2);
}

static void least_on_the_edge(void **state)
{
    const double lo[] = { 3.0, -1.0 }, hi[] = { 9.0, 8.0 };
    struct watched watched;
    struct minimise search = new_search(&watched, 2, lo, hi, slope);
    double x[] = { 8.0, 7.0 };
    (void)state;
    watched.search = &search;
    minimise(&search, x);
    assert_true(search.converged);
    assert_true(fabs(x[0] - 3.0) < 1e-3 && fabs(x[1] + 1.0) < 1e-3);
    assert_true(watched.least_x >= -1.0 && watched.most_x <= 9.0);
}

static void staircase(void **state)
{
    const double lo[] = { 0.0 }, hi[] = { 100.0 };
    struct watched watched;
    struct minimise search = new_search(&watched, 1, lo, hi, steps);
    double x[] = { 90.0 };
    (void)state;
    watched.search = &search;
    minimise(&search, x);
    assert_true(search.best < 0.5 && floor(x[0]) >= 42.0 && floor(x[0]) < 43.0);
}

static void points_that_fail(void **state)
{
    const double lo[] = { 0.0 }, hi[] = { 10.0 };
    struct watched watched;
    struct minimise search = new_search(&watched, 1, lo, hi, walled);
    double x[] = { 1.0 };
    (void)state;
    watched.search = &search;
    minimise(&search, x);
    assert_true(x[0] <= 5.0 && x[0] > 4.99);
}

static void limited(void **state)
{
    const double lo[] = { -2.0, -2.0 }, hi[] = { 2.0, 2.0 };
    struct watched watched;
    struct minimise search = new_search(&watched, 2, lo, hi, rosenbrock);
    double x[] = { -1.2, 1.0 };
    (void)state;
    watched.search = &search;
    search.max_evaluations = 20;
    minimise(&search, x);
    assert_false(search.converged);
    assert_true(search.n_evaluations <= 24);
    assert_true(search.best <= 24.2); /* no worse than the start */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_variable),      cmocka_unit_test(two_variables),
        cmocka_unit_test(least_on_the_edge), cmocka_unit_test(staircase),
        cmocka_unit_test(points_that_fail),  cmocka_unit_test(limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
