/*
 * The one rule for whether a run had settled when it was measured, for all workloads.
 *
 * A quantity of the measured time (a rate, a mean latency) is known for equal parts of it, in
 * order. It has not settled if the mean of the second half differs from that of the first
 * - by more than SETTLE_SHARE of their mean, and
 * - by more than SETTLE_DEVIATIONS standard deviations of such a difference, where the variance of
 *   a part is half the mean square of the difference between neighbours (von Neumann, Ann. Math.
 *   Stat. 12, 1941): a drift hardly widens that, while chance widens it as it does the halves.
 *
 * Counts are known to one operation only. Where an operation lies to either side of the end of a
 * part is even between 0 and 1, of variance 1/12; the sums of the halves differ by the counts at
 * the end and the beginning less twice that in the middle, so that this alone has a variance of (1
 * + 1 + 4)/12.
 */
#include "workloads/base/workload.h"

#include <math.h>
#include <stdio.h>

#define SETTLE_SHARE 0.05
#define SETTLE_DEVIATIONS \
    5.0 /* Student's t for one in a thousand and some ten degrees of freedom */

struct halves {
    double mean[2];
    double deviation; /* of the difference between them, by chance */
};

static struct halves halves_of(const double *value, unsigned n, double least)
{
    const unsigned half = n / 2;
    struct halves h = { { 0, 0 }, 0 };
    double squares = 0;

    for (unsigned i = 0; i < half; i++) {
        h.mean[0] += value[i] / half;
        h.mean[1] += value[n - half + i] / half;
    }
    for (unsigned i = 1; i < n; i++)
        squares += (value[i] - value[i - 1]) * (value[i] - value[i - 1]);
    const double variance = squares / (2.0 * (n - 1));
    h.deviation = SIM_MAX(sqrt(variance * 2.0 / half), least * sqrt(0.5) / half);
    return h;
}

/* A share of nothing is none: where a half has nothing, that is the message. What has stopped does
 * not settle later, so that a longer warm-up would measure nothing at all. */
static void describe_change(char *text, size_t n_text, const char *what, const double mean[2])
{
    if (mean[0] == 0)
        snprintf(
            text, n_text,
            "%.70s: nothing in the first half of the measured time, all of it in the second; a "
            "longer measure.warmup_us?",
            what);
    else if (mean[1] == 0)
        snprintf(
            text, n_text,
            "%.70s: nothing in the second half of the measured time, all of it in the first; it "
            "has stopped, and a longer measure.warmup_us does not help",
            what);
    else
        snprintf(text, n_text,
                 "%.70s: %+.0f %% from the first half of the measured time to the second; a longer "
                 "measure.warmup_us?",
                 what, 100 * (mean[1] / mean[0] - 1));
}

bool workload_settled(struct workload *workload, const char *what, const double *value, unsigned n,
                      double least)
{
    char name[96], text[512];

    if (n < SETTLE_PARTS_MIN)
        return true;
    const struct halves h = halves_of(value, n, least);
    const double difference = fabs(h.mean[1] - h.mean[0]);
    const double share = difference / ((fabs(h.mean[0]) + fabs(h.mean[1])) / 2);
    if (!(share > SETTLE_SHARE) || difference <= SETTLE_DEVIATIONS * h.deviation)
        return true;
    snprintf(name, sizeof(name), "not_settled.%.70s", what);
    describe_change(text, sizeof(text), what, h.mean);
    run_result_note(workload->result, name, text);
    return false;
}

bool workload_mean_settled(struct workload *workload, const char *what,
                           const struct stat_mean *mean)
{
    return workload_settled(workload, what, mean->batch_mean, mean->n_batches, 0);
}

/* ---- Counts at the ends of equal parts ------------------------------------------------------- */

void workload_run_parts(struct workload *workload, const bool *done, sim_time until_ps,
                        settle_sample_fn *sample, void *context)
{
    const sim_time begin_ps = sim_now(workload->sim);

    sample(context, 0);
    for (unsigned i = 1; i <= SETTLE_PARTS && !*done && workload_goes_on(workload); i++) {
        /* In this order: the products of long times do not fit. */
        const sim_time part_ps = (until_ps - begin_ps) / SETTLE_PARTS;
        workload_run_until(workload, done, i == SETTLE_PARTS ? until_ps : begin_ps + i * part_ps);
        if (!*done)
            sample(context, i);
    }
}

bool workload_count_settled(struct workload *workload, const char *what, const double *count,
                            double unit)
{
    double rate[SETTLE_PARTS];

    for (unsigned i = 0; i < SETTLE_PARTS; i++)
        rate[i] = count[i + 1] - count[i];
    return workload_settled(workload, what, rate, SETTLE_PARTS, unit);
}
