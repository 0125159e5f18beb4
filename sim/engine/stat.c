/*
 * Means by batch means, precision, and what is done to whole tables of statistics.
 *
 * Batch means: Law, Simulation Modeling and Analysis, 5th ed., section 9.5.3; the doubling of the
 * batch size keeps between 32 and 64 batches, so that the t quantile hardly matters and the batches
 * grow with the run until their means no longer know of each other.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/engine/stat.h"

/* 97.5 % quantiles of Student's t, df 1..30 */
static const double student_t95[] = {
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010,  2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796,  2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
};

double stat_student_t95(uint32_t df)
{
    SIM_ASSERT(df >= 1, "Student's t needs a degree of freedom");
    if (df <= SIM_N_ELEMENTS(student_t95))
        return student_t95[df - 1];
    /* Cornish-Fisher expansion around the normal quantile: 26.7.5 in Abramowitz and Stegun */
    const double z = 1.959963985, v = (double)df;
    const double z3 = z * z * z, z5 = z3 * z * z;
    return z + (z3 + z) / (4.0 * v) + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * v * v);
}

double stat_interval_ratio(const double *value, uint32_t n)
{
    double mean = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++)
        mean += value[i] / n;
    for (uint32_t i = 0; i < n; i++)
        squares += (value[i] - mean) * (value[i] - mean);
    return stat_student_t95(n - 1) * sqrt(squares / (n - 1) / n) / mean;
}

void stat_mean_init(struct stat_mean *mean)
{
    *mean = (struct stat_mean){ .min = INFINITY, .max = -INFINITY, .batch_size = 1 };
}

static void merge_pairs(struct stat_mean *mean)
{
    for (uint32_t i = 0; i < STAT_BATCHES / 2; i++)
        mean->batch_mean[i] = (mean->batch_mean[2 * i] + mean->batch_mean[2 * i + 1]) / 2.0;
    mean->n_batches = STAT_BATCHES / 2;
    mean->batch_size *= 2;
}

void stat_mean_add(struct stat_mean *mean, double value)
{
    SIM_ASSERT(isfinite(value), "a statistic was given %f", value);
    if (SIM_UNLIKELY(mean->batch_size == 0)) /* zeroed memory will do */
        stat_mean_init(mean);
    mean->n++;
    mean->sum += value;
    mean->min = SIM_MIN(mean->min, value);
    mean->max = SIM_MAX(mean->max, value);
    mean->batch_sum += value;
    if (++mean->in_batch < mean->batch_size)
        return;
    mean->batch_mean[mean->n_batches++] = mean->batch_sum / (double)mean->batch_size;
    mean->batch_sum = 0.0;
    mean->in_batch = 0;
    if (mean->n_batches == STAT_BATCHES)
        merge_pairs(mean);
}

double stat_mean_value(const struct stat_mean *mean)
{
    return mean->n == 0 ? (double)NAN : mean->sum / (double)mean->n;
}

double stat_mean_ci95(const struct stat_mean *mean)
{
    if (mean->n_batches < STAT_MIN_BATCHES)
        return (double)INFINITY;
    /* from the first batch, so that equal ones differ by nothing at all */
    const double k = mean->n_batches, origin = mean->batch_mean[0];
    double center = 0.0, squares = 0.0;
    for (uint32_t i = 0; i < mean->n_batches; i++)
        center += (mean->batch_mean[i] - origin) / k;
    for (uint32_t i = 0; i < mean->n_batches; i++) {
        const double d = mean->batch_mean[i] - origin - center;
        squares += d * d;
    }
    return stat_student_t95(mean->n_batches - 1) * sqrt(squares / (k - 1.0) / k);
}

bool stat_precision_reached(struct stat_precision *precision, const struct stat_mean *mean)
{
    const uint32_t min_batches = precision->min_batches != 0 ? precision->min_batches
                                                             : STAT_PRECISION_BATCHES;
    if (precision->reached)
        return true;
    if (!(precision->ratio > 0.0) || mean->n < precision->min_samples ||
        mean->n_batches < min_batches || mean->n - precision->checked_n < mean->batch_size)
        return false;
    precision->checked_n = mean->n;
    precision->reached = stat_mean_ci95(mean) <= precision->ratio * fabs(stat_mean_value(mean));
    return precision->reached;
}

static void *field_of(const struct stat_desc *stat, void *state)
{
    return (char *)state + stat->offset;
}

void stat_clear(const struct stat_desc *table, void *state)
{
    for (const struct stat_desc *stat = table; stat != NULL && stat->kind != STAT_END; stat++) {
        switch (stat->kind) {
        case STAT_COUNTER:
        case STAT_RATE:
        case STAT_BOUND:
        case STAT_MAX: *(uint64_t *)field_of(stat, state) = 0; break;
        case STAT_MEAN: stat_mean_init(field_of(stat, state)); break;
        case STAT_HISTOGRAM: stat_histogram_clear(field_of(stat, state)); break;
        case STAT_END: break;
        }
    }
}

uint64_t stat_sum(const struct stat_desc *table, const void *state)
{
    uint64_t sum = 0;

    for (const struct stat_desc *stat = table; stat != NULL && stat->kind != STAT_END; stat++) {
        const void *field = (const char *)state + stat->offset;

        switch (stat->kind) {
        case STAT_COUNTER:
        case STAT_RATE:
        case STAT_BOUND:
        case STAT_MAX: sum += *(const uint64_t *)field; break;
        case STAT_MEAN: sum += ((const struct stat_mean *)field)->n; break;
        case STAT_HISTOGRAM: sum += ((const struct stat_histogram *)field)->n; break;
        case STAT_END: break;
        }
    }
    return sum;
}

void stat_release(const struct stat_desc *table, void *state)
{
    for (const struct stat_desc *stat = table; stat != NULL && stat->kind != STAT_END; stat++) {
        if (stat->kind == STAT_HISTOGRAM)
            stat_histogram_release(field_of(stat, state));
    }
}

double stat_utilization(const struct stat_desc *stat, const void *state, sim_time duration_ps)
{
    const char *base = state;
    if (!stat->has_peak || duration_ps == 0)
        return NAN;
    const struct stat_peak *peak = (const void *)(base + stat->peak_offset);
    const uint64_t value = *(const uint64_t *)(const void *)(base + stat->offset);
    if (!(peak->per_s > 0))
        return NAN;
    return (double)value / (peak->per_s * (double)duration_ps / (double)SIM_PS_PER_S);
}

const char *stat_utilization_name(const struct stat_desc *stat, char buffer[64])
{
    static const char *const endings[] = { "tlp_bytes", "bytes", "busy_ps" };
    size_t stem = strlen(stat->name);
    for (size_t i = 0; i < SIM_N_ELEMENTS(endings); i++) {
        const size_t n = strlen(endings[i]);
        if (stem < n || strcmp(stat->name + stem - n, endings[i]) != 0)
            continue;
        stem -= n;
        break;
    }
    snprintf(buffer, 64, "%.*sutilization_ratio", (int)SIM_MIN(stem, 40u), stat->name);
    return buffer;
}

/* The rate is a double: as many bytes as a run of days has may be out by rounding. */
#define ROUNDING 1e-9

void stat_check_peaks(const struct stat_desc *table, const void *state, const char *prefix,
                      sim_time duration_ps)
{
    for (const struct stat_desc *stat = table; stat != NULL && stat->kind != STAT_END; stat++) {
        if (!stat->has_peak || !stat_exists(stat, state))
            continue;
        const char *base = state;
        const uint64_t value = *(const uint64_t *)(const void *)(base + stat->offset);
        const struct stat_peak *peak = (const void *)(base + stat->peak_offset);
        const double most =
            peak->per_s * (double)duration_ps / (double)SIM_PS_PER_S * (1 + ROUNDING) + peak->slack;
        SIM_ASSERT(peak->per_s <= 0 || (double)value <= most,
                   "%s%s is %llu after %llu ps, more than its peak of %g per second and %g allow",
                   prefix, stat->name, (unsigned long long)value, (unsigned long long)duration_ps,
                   peak->per_s, peak->slack);
    }
}
