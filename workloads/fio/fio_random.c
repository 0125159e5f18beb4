/*
 * Random blocks: uniform, Zipf, Pareto, normal, by zones. Zipf is drawn exactly, by rejection from
 * the integral of x^-theta (W. Hormann, G. Derflinger: Rejection-inversion to generate variates
 * from monotone discrete distributions, ACM TOMACS 6, 1996), where fio approximates (Gray et al.,
 * SIGMOD 1994). Pareto is fio's: a share h of the blocks gets 1 - h of the requests. Ranks of both
 * are spread over the span by a permutation, so that blocks that are often used are no neighbours;
 * fio hashes them.
 */
#include <math.h>

#include "workloads/fio/fio_internal.h"

/* ---- Zipf ------------------------------------------------------------------------------------ */

/* (exp(x) - 1) / x, and its counterpart below, near 0 by their series. */
static double expm1_over(double x)
{
    return fabs(x) > 1e-8 ? expm1(x) / x : 1 + x / 2 * (1 + x / 3);
}

static double log1p_over(double x)
{
    return fabs(x) > 1e-8 ? log1p(x) / x : 1 - x * (0.5 - x / 3);
}

/* The integral of x^-theta, up to a constant: (x^(1 - theta) - 1) / (1 - theta), log(x) for 1. */
static double integral(const struct fio_zipf *zipf, double x)
{
    const double l = log(x);
    return expm1_over((1 - zipf->theta) * l) * l;
}

static double inverse(const struct fio_zipf *zipf, double y)
{
    const double t = SIM_MAX(y * (1 - zipf->theta), -1.0);
    return exp(log1p_over(t) * y);
}

static double height(const struct fio_zipf *zipf, double x)
{
    return exp(-zipf->theta * log(x));
}

void fio_zipf_init(struct fio_zipf *zipf, uint64_t n, double theta)
{
    *zipf = (struct fio_zipf){ .theta = theta, .n = n };
    zipf->integral_half = integral(zipf, 1.5) - 1;
    zipf->integral_n = integral(zipf, (double)n + 0.5);
    zipf->threshold = 2 - inverse(zipf, integral(zipf, 2.5) - height(zipf, 2));
}

uint64_t fio_zipf_draw(const struct fio_zipf *zipf, struct sim_random *random)
{
    for (;;) {
        const double u = zipf->integral_n +
                         sim_random_unit(random) * (zipf->integral_half - zipf->integral_n);
        const double x = inverse(zipf, u);
        const double k = SIM_MIN(SIM_MAX(floor(x + 0.5), 1.0), (double)zipf->n);
        if (k - x <= zipf->threshold || u >= integral(zipf, k + 0.5) - height(zipf, k))
            return (uint64_t)k;
    }
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

uint64_t fio_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void fio_draw_init(struct fio_draw *draw, const struct fio_options *options, uint64_t n,
                   struct sim_random *random)
{
    *draw = (struct fio_draw){ .options = options, .n = n };
    if (options->distribution == FIO_ZIPF)
        fio_zipf_init(&draw->zipf, n, options->theta);
    if (options->distribution != FIO_ZIPF && options->distribution != FIO_PARETO)
        return;
    /* Near the golden section of n: neighbouring ranks are far from each other. */
    draw->step = SIM_MAX((uint64_t)((double)n * 0.6180339887498949), (uint64_t)1);
    while (fio_common_divisor(draw->step, n) != 1)
        draw->step++;
    draw->shift = options->centre < 0 ? sim_random_below(random, n)
                                      : (uint64_t)(options->centre * (double)(n - 1));
}

static uint64_t place(const struct fio_draw *draw, uint64_t rank)
{
    return (uint64_t)(((unsigned __int128)rank * draw->step + draw->shift) % draw->n);
}

static uint64_t pareto_rank(const struct fio_draw *draw, struct sim_random *random)
{
    const double h = draw->options->theta, power = log(h) / log(1 - h);
    return (uint64_t)((double)(draw->n - 1) * pow(sim_random_unit(random), power) + 0.5);
}

/* Within the span: draws again what lies outside. */
static uint64_t normal_block(const struct fio_draw *draw, struct sim_random *random)
{
    const double n = (double)draw->n, centre = draw->options->centre;
    const double mean = (centre < 0 ? 0.5 : centre) * n, deviation = draw->options->theta / 100 * n;
    for (;;) {
        const double u = 1 - sim_random_unit(random), v = sim_random_unit(random);
        const double at = mean + deviation * sqrt(-2 * log(u)) * cos(2 * M_PI * v);
        if (at >= 0 && at < n)
            return (uint64_t)at;
    }
}

static uint64_t zoned_block(const struct fio_draw *draw, struct sim_random *random)
{
    const struct fio_options *options = draw->options;
    double u = sim_random_unit(random) * 100, from = 0;
    unsigned i = 0;
    for (; i + 1 < options->n_zones && u >= options->zone[i].access; i++) {
        u -= options->zone[i].access;
        from += options->zone[i].space;
    }
    const double at = from + options->zone[i].space * sim_random_unit(random);
    return SIM_MIN((uint64_t)(at / 100 * (double)draw->n), draw->n - 1);
}

uint64_t fio_draw_block(const struct fio_draw *draw, struct sim_random *random)
{
    switch (draw->options->distribution) {
    case FIO_ZIPF: return place(draw, fio_zipf_draw(&draw->zipf, random) - 1);
    case FIO_PARETO: return place(draw, pareto_rank(draw, random));
    case FIO_NORMAL: return normal_block(draw, random);
    case FIO_ZONED: return zoned_block(draw, random);
    default: return sim_random_below(random, draw->n);
    }
}
