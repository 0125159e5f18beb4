/*
 * Rates over time. An event at the end of each interval reads what has been counted so far. Cores
 * run ahead of global time by at most the engine's quantum (engine.quantum_ns), so a sample may
 * hold that much of the next interval's work of cores: intervals are meant to be longer.
 */
#include <stdlib.h>

#include "workloads/base/workload.h"

#define SHARE        10u /* one of so many parts of an interval is simulated */
#define SHARE_MIN_PS (4 * SIM_PS_PER_MS)
#define DENSE        8u /* intervals after the start and after an event */
#define EVERY_MAX    8u

bool workload_series_long(const struct workload *workload)
{
    return workload->measure.sample_interval_ps / SHARE >= SHARE_MIN_PS;
}

/* Of what changes at once all is simulated, of a load that goes on as it did less and less: a part
 * of every interval, from DENSE on of every second, from twice that on of every fourth, then of
 * every eighth. */
static bool is_passed(uint64_t intervals_since)
{
    unsigned every = 1;
    while (every < EVERY_MAX && intervals_since >= (uint64_t)DENSE * every)
        every *= 2;
    return intervals_since % every != 0;
}

/* Of an interval; 0: it is passed over. */
static sim_time interval_ps(const struct workload *workload, uint64_t interval)
{
    const sim_time whole_ps = workload->measure.sample_interval_ps;
    const uint64_t event = workload->series_event_ps / whole_ps; /* 0: at the start, as without */
    if (!workload->series_sampled || interval == 0 || interval == event ||
        (workload->series_event_ps != 0 && interval == event + 1))
        return whole_ps;
    /* The level from which an event starts, and where the figure ends. */
    if (interval + 1 == event || (interval + 2) * whole_ps > workload->measure.duration_ps)
        return whole_ps / SHARE;
    return is_passed(interval > event ? interval - event : interval) ? 0 : whole_ps / SHARE;
}

sim_time workload_simulated_ps(const struct workload *workload, sim_time measured_ps)
{
    sim_time sum_ps = 0;
    if (!workload->series_sampled)
        return measured_ps;
    const uint64_t n = measured_ps / workload->measure.sample_interval_ps;
    for (uint64_t i = 0; i < n; i++)
        sum_ps += interval_ps(workload, i);
    const sim_time rest_ps = measured_ps % workload->measure.sample_interval_ps;
    return sum_ps + SIM_MIN(rest_ps, interval_ps(workload, n));
}

static struct rate_counts counts_now(const struct rate_sampler *sampler, unsigned i)
{
    const struct rate_series *series = &sampler->series[i];
    return (struct rate_counts){ series->count(sampler->workload, i),
                                 series->of != NULL ? series->of(sampler->workload, i) : 0 };
}

static void take_samples(struct rate_sampler *sampler)
{
    struct workload *workload = sampler->workload;
    const sim_time simulated_ps = interval_ps(workload, sampler->n_intervals++);
    const sim_time t_ps = sampler->n_intervals * workload->measure.sample_interval_ps;
    for (unsigned i = 0; i < sampler->n_series; i++) {
        const struct rate_series *series = &sampler->series[i];
        const struct rate_counts now = counts_now(sampler, i), last = sampler->last[i];
        const double sum = (double)(now.count - last.count) * series->scale;
        if (series->of == NULL)
            run_result_series(workload->result, series->name, series->unit, t_ps,
                              sum * (double)SIM_PS_PER_S / (double)simulated_ps);
        else if (now.of != last.of)
            run_result_series(workload->result, series->name, series->unit, t_ps,
                              sum / (double)(now.of - last.of));
        sampler->last[i] = now;
    }
}

/* Not beyond the last whole interval: a workload that hangs is found by nothing being left to do.
 */
static void schedule_next(struct rate_sampler *sampler)
{
    struct workload *workload = sampler->workload;
    const struct measure_params *measure = &workload->measure;
    for (; (sampler->n_intervals + 1) * measure->sample_interval_ps <= measure->duration_ps;
         sampler->n_intervals++) {
        const sim_time simulated_ps = interval_ps(workload, sampler->n_intervals);
        if (simulated_ps == 0)
            continue;
        sim_schedule_in(workload->sim, &sampler->event, simulated_ps);
        return;
    }
}

static void interval_ends(struct sim *sim, struct sim_event *event)
{
    struct rate_sampler *sampler = SIM_CONTAINER(event, struct rate_sampler, event);
    (void)sim;
    take_samples(sampler);
    schedule_next(sampler);
}

void rate_sampler_start(struct rate_sampler *sampler, struct workload *workload,
                        const struct rate_series *series, unsigned n_series)
{
    *sampler =
        (struct rate_sampler){ .workload = workload, .series = series, .n_series = n_series };
    if (workload->measure.sample_interval_ps == 0)
        return;
    sampler->last = sim_zalloc(n_series, sizeof(*sampler->last));
    for (unsigned i = 0; i < n_series; i++)
        sampler->last[i] = counts_now(sampler, i);
    sim_event_init(&sampler->event, interval_ends);
    schedule_next(sampler);
}

void rate_sampler_stop(struct rate_sampler *sampler)
{
    if (sampler->workload != NULL && sim_event_pending(&sampler->event))
        sim_cancel(sampler->workload->sim, &sampler->event);
    free(sampler->last);
    sampler->last = NULL;
}

uint64_t workload_dram_bytes(const struct workload *workload, unsigned idx)
{
    uint64_t bytes = 0;
    (void)idx;
    for (unsigned h = 0; h < world_n_hosts(workload->world); h++)
        bytes += numa_dram_bytes(host_numa(world_host_at(workload->world, h)));
    return bytes;
}
