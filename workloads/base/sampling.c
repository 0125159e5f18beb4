/*
 * When a run has warmed up, and when what it measures is known (measure.precision_ratio).
 *
 * What is watched: the bytes that every resource with a peak has carried (links, wires, DRAM,
 * interconnects), and what the workload adds (operations, latencies, processors). Time is cut into
 * equal windows; a quantity of a window is a batch mean.
 *
 * Known: half the 95 % interval of the mean is at most the precision. Neighbouring windows know of
 * each other while they are shorter than a load's swings, which makes the interval too narrow (or,
 * of what comes at a steady beat, too wide). So it is taken from batches of two lengths, one twice
 * the other, the longer ones at least eight, and the wider counts: batches that are still
 * correlated widen as they grow (Law, Simulation Modeling and Analysis, 5th ed., section 9.5.3;
 * Pawlikowski, ACM Computing Surveys 22, 1990). Looked at after half and three quarters of
 * measure.duration_us: looking again and again favours lucky ends, and loads that drift slowly (TCP
 * that is still opening its windows, an LLC that fills) look steady for an eighth or a quarter of
 * it. With a first look after an eighth, ioctopus/fig07_tcp_tx was wrong by 4.8 % at one of its
 * points, and pcie_bench by 2 %.
 *
 * Settled: the halves of the time differ by the precision at most. That they do not differ
 * significantly is not enough: a short look sees no drift either.
 *
 * No rule that looks at what has been sees what has yet to come. Rates that have stood still may
 * change when something has filled: pcie_bench's reads and writes of 1025 B are 50.8 Gbit/s until
 * some 150 us, when what adapters have written begins to leave the LLC, and 48.4 from then on. How
 * long that takes is for the scenario to say; so a warm-up ends early only where it allows that
 * (measure.warmup_min_us).
 */
#include "workloads/base/sampling.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES_MIN    8u
#define FLOOR_SHARE    0.05 /* of the largest flow, of a processor: less is no line in a figure */
#define WARMUP_WINDOWS 64u  /* of a whole warm-up */
#define FIRST_WINDOWS  (SAMPLING_WINDOWS / 2) /* the first look at a measurement */
#define WINDOWS        SAMPLING_WINDOWS       /* of a whole measurement */

void sampling_init(struct sampling *sampling, struct workload *workload, sampling_read_fn *read,
                   void *context)
{
    *sampling = (struct sampling){ .workload = workload, .read = read, .context = context };
}

void sampling_release(struct sampling *sampling)
{
    free(sampling->quantity);
    sampling->quantity = NULL;
    sampling->n_quantities = 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

void sampling_add(struct sampling *sampling, const char *name, const char *what,
                  enum sampling_kind kind, double sum, double n)
{
    const unsigned i = sampling->n_added++;
    if (i == sampling->n_quantities) {
        SIM_ASSERT(sampling->n_windows == 0, "%s%s: read for the first time after %u windows", name,
                   what, sampling->n_windows);
        sampling->quantity = sim_grow(sampling->quantity, ++sampling->n_quantities,
                                      sizeof(*sampling->quantity));
        struct sampling_quantity *added = &sampling->quantity[i];
        *added = (struct sampling_quantity){ .kind = kind };
        snprintf(added->name, sizeof(added->name), "%.60s%.30s", name, what);
    }
    sampling->quantity[i].sum[sampling->n_windows] = sum;
    sampling->quantity[i].n[sampling->n_windows] = n >= 0
                                                       ? n
                                                       : (double)sim_now(sampling->workload->sim);
}

/* It is of a host that is not measured. */
static bool is_aside(const struct sampling *sampling, const char *prefix)
{
    const size_t n = strcspn(prefix, ".");
    if (sampling->measured == NULL || (strncmp(prefix, host_name(sampling->measured), n) == 0 &&
                                       strlen(host_name(sampling->measured)) == n))
        return false;
    for (unsigned h = 0; h < world_n_hosts(sampling->workload->world); h++) {
        const char *name = host_name(world_host_at(sampling->workload->world, h));
        if (strlen(name) == n && strncmp(prefix, name, n) == 0)
            return true;
    }
    return false;
}

static void add_flows(struct sampling *sampling)
{
    const char *prefix;
    const struct stat_desc *table;
    void *state;
    for (unsigned i = 0; world_stats(sampling->workload->world, i, &prefix, &table, &state); i++) {
        if (is_aside(sampling, prefix))
            continue;
        for (const struct stat_desc *s = table; s != NULL && s->kind != STAT_END; s++)
            if (s->has_peak && strcmp(s->unit, "bytes") == 0 && stat_exists(s, state))
                sampling_add(
                    sampling, prefix, s->name, SAMPLING_FLOW,
                    (double)*(const uint64_t *)(const void *)((const char *)state + s->offset), -1);
    }
}

static void read_all(struct sampling *sampling)
{
    sampling->n_added = 0;
    add_flows(sampling);
    if (sampling->read != NULL)
        sampling->read(sampling->context, sampling);
    SIM_ASSERT(sampling->n_added == sampling->n_quantities, "%u quantities, now %u",
               sampling->n_quantities, sampling->n_added);
}

static void begin(struct sampling *sampling)
{
    sampling_release(sampling);
    sampling->n_windows = 0;
    read_all(sampling);
}

/* A window has ended. */
static void end_window(struct sampling *sampling)
{
    sampling->n_windows++;
    read_all(sampling);
}

/* ---- Judging --------------------------------------------------------------------------------- */

/* Over windows first..end. False: something of it is missing in a batch. */
static bool batch_means(const struct sampling_quantity *quantity, unsigned first, unsigned end,
                        unsigned windows, double *mean)
{
    for (unsigned i = 0; i < (end - first) / windows; i++) {
        const unsigned from = first + i * windows, to = from + windows;
        const double n = quantity->n[to] - quantity->n[from];
        if (!(n > 0))
            return false;
        mean[i] = (quantity->sum[to] - quantity->sum[from]) / n;
    }
    return true;
}

static double mean_of(const double *value, unsigned n)
{
    double mean = 0;
    for (unsigned i = 0; i < n; i++)
        mean += value[i] / n;
    return mean;
}

/* Half the 95 % interval, the wider one of two batch lengths; INFINITY: it cannot be told. */
static double half_interval(const struct sampling_quantity *quantity, unsigned first, unsigned end)
{
    double value[SAMPLING_WINDOWS], half = 0;
    for (unsigned windows = SIM_MAX((end - first) / (2 * BATCHES_MIN), 1);
         windows <= (end - first) / BATCHES_MIN; windows *= 2) {
        const unsigned n = (end - first) / windows;
        double squares = 0;
        if (!batch_means(quantity, first, end, windows, value))
            return (double)INFINITY;
        const double mean = mean_of(value, n);
        for (unsigned i = 0; i < n; i++)
            squares += (value[i] - mean) * (value[i] - mean);
        half = SIM_MAX(half, stat_student_t95(n - 1) * sqrt(squares / (n - 1) / n));
    }
    return half;
}

static double total(const struct sampling_quantity *quantity, unsigned first, unsigned end)
{
    const double n = quantity->n[end] - quantity->n[first];
    return n > 0 ? fabs(quantity->sum[end] - quantity->sum[first]) / n : 0;
}

/* What an interval and a drift of the quantity are compared with. */
static double base_of(const struct sampling *sampling, const struct sampling_quantity *quantity,
                      unsigned first, unsigned end)
{
    const double mean = total(quantity, first, end);
    switch (quantity->kind) {
    case SAMPLING_FLOW: return SIM_MAX(mean, FLOOR_SHARE * sampling->largest_flow);
    case SAMPLING_SHARE: return SIM_MAX(mean, FLOOR_SHARE);
    case SAMPLING_VALUE: break;
    }
    return mean;
}

/* Whether all that is watched is known to half_ratio over windows first..end, without a drift of
 * more than drift_ratio. */
static bool known(struct sampling *sampling, unsigned first, unsigned end, double half_ratio,
                  double drift_ratio)
{
    const unsigned middle = first + (end - first) / 2;
    bool good = true;
    sampling->largest_flow = sampling->half_ratio = 0;
    for (unsigned q = 0; q < sampling->n_quantities; q++)
        if (sampling->quantity[q].kind == SAMPLING_FLOW)
            sampling->largest_flow = SIM_MAX(sampling->largest_flow,
                                             total(&sampling->quantity[q], first, end));
    for (unsigned q = 0; q < sampling->n_quantities; q++) {
        const struct sampling_quantity *quantity = &sampling->quantity[q];
        const double base = base_of(sampling, quantity, first, end);
        if (!(base > 0))
            continue; /* it counts nothing in this run */
        const double half = half_interval(quantity, first, end) / base;
        const double drift = fabs(total(quantity, middle, end) - total(quantity, first, middle)) /
                             base;
        if (half > sampling->half_ratio) {
            sampling->half_ratio = half;
            memcpy(sampling->widest, quantity->name, sizeof(sampling->widest));
        }
        good = good && half <= half_ratio && drift <= drift_ratio;
    }
    /* Where nothing is watched, nothing is known. */
    return good && sampling->largest_flow > 0;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Windows after which a warm-up is looked at. */
static bool looks_at(unsigned windows)
{
    return windows == 16 || windows == 24 || windows == 32 || windows == 48;
}

void sampling_warm_up(struct sampling *sampling, sim_time left_ps)
{
    struct workload *workload = sampling->workload;
    const bool never = false;
    const sim_time begin_ps = sim_now(workload->sim);
    const sim_time before_ps = workload->measure.warmup_ps - left_ps;
    const double ratio = workload->measure.precision_ratio;
    begin(sampling);
    for (unsigned i = 1; i <= WARMUP_WINDOWS && workload_goes_on(workload); i++) {
        /* In this order: the products of long times do not fit. */
        workload_run_until(workload, &never,
                           i == WARMUP_WINDOWS ? begin_ps + left_ps
                                               : begin_ps + i * (left_ps / WARMUP_WINDOWS));
        if (i == WARMUP_WINDOWS || !workload_goes_on(workload))
            break;
        end_window(sampling);
        if (looks_at(i) &&
            before_ps + sim_now(workload->sim) - begin_ps >= workload->measure.warmup_min_ps &&
            known(sampling, i / 2, i, 2 * ratio, ratio))
            break;
    }
    sampling->warmup_ps = before_ps + sim_now(workload->sim) - begin_ps;
}

void sampling_measure(struct sampling *sampling, const bool *done, sim_time until_ps,
                      settle_sample_fn *sample, void *context)
{
    struct workload *workload = sampling->workload;
    const double ratio = workload->measure.precision_ratio;
    const sim_time begin_ps = sim_now(workload->sim);
    begin(sampling);
    sample(context, 0);
    for (unsigned i = 1; i <= WINDOWS && !*done && workload_goes_on(workload); i++) {
        workload_run_until(workload, done,
                           i == WINDOWS ? until_ps
                                        : begin_ps + i * ((until_ps - begin_ps) / WINDOWS));
        if (*done || !workload_goes_on(workload))
            break;
        if (i % (WINDOWS / SETTLE_PARTS) == 0)
            sample(context, i / (WINDOWS / SETTLE_PARTS));
        end_window(sampling);
        if (i % (FIRST_WINDOWS / 2) == 0 && i >= FIRST_WINDOWS &&
            known(sampling, 0, i, ratio, ratio) && i != WINDOWS) {
            sampling->ended_early = true;
            break;
        }
    }
    sampling->duration_ps = sim_now(workload->sim) - begin_ps;
}

void sampling_note(const struct sampling *sampling)
{
    const struct measure_params *measure = &sampling->workload->measure;
    char text[512], value[32];
    if (!sampling->ended_early && sampling->warmup_ps >= measure->warmup_ps)
        return;
    snprintf(
        text, sizeof(text),
        "%.6g of %.6g us warmed up, %.6g of %.6g us measured; half 95 %% interval at most %.2g "
        "%% (%.90s), asked for %.3g %%",
        (double)sampling->warmup_ps / 1e6, (double)measure->warmup_ps / 1e6,
        (double)sampling->duration_ps / 1e6, (double)measure->duration_ps / 1e6,
        100 * sampling->half_ratio, sampling->widest, 100 * measure->precision_ratio);
    run_result_note(sampling->workload->result, "sampled", text);
    snprintf(value, sizeof(value), "%.9g", (double)sampling->warmup_ps / 1e6);
    run_result_note(sampling->workload->result, "sampled_warmup_us", value);
    snprintf(value, sizeof(value), "%.9g", (double)sampling->duration_ps / 1e6);
    run_result_note(sampling->workload->result, "sampled_duration_us", value);
    snprintf(value, sizeof(value), "%.3g", sampling->half_ratio);
    run_result_note(sampling->workload->result, "sampled_interval_ratio", value);
}
