/*
 * Rates over time. An event at the end of each interval reads what has been counted so far. Cores
 * run ahead of global time by at most the engine's quantum (engine.quantum_ns), so a sample may
 * hold that much of the next interval's work of cores: intervals are meant to be longer.
 */
#include "workloads/base/workload.h"

static void take_samples(struct rate_sampler *sampler)
{
    struct workload *workload = sampler->workload;
    const sim_time interval_ps = workload->measure.sample_interval_ps;
    const sim_time t_ps = sim_now(workload->sim) - sampler->begin_ps;
    for (unsigned i = 0; i < sampler->n_series; i++) {
        const struct rate_series *series = &sampler->series[i];
        const uint64_t count = series->count(workload, i);
        run_result_series(workload->result, series->name, series->unit, t_ps,
                          (double)(count - sampler->last[i]) * series->scale *
                              (double)SIM_PS_PER_S / (double)interval_ps);
        sampler->last[i] = count;
    }
}

/* Not beyond the last whole interval: a workload that hangs is found by nothing being left to do.
 */
static void schedule_next(struct rate_sampler *sampler)
{
    struct workload *workload = sampler->workload;
    if (sim_now(workload->sim) + workload->measure.sample_interval_ps <= sampler->end_ps)
        sim_schedule_in(workload->sim, &sampler->event, workload->measure.sample_interval_ps);
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
    SIM_ASSERT(n_series <= RATE_SERIES_MAX, "%u series", n_series);
    *sampler =
        (struct rate_sampler){ .workload = workload, .series = series, .n_series = n_series };
    if (workload->measure.sample_interval_ps == 0)
        return;
    sampler->begin_ps = sim_now(workload->sim);
    sampler->end_ps = sampler->begin_ps + workload->measure.duration_ps;
    for (unsigned i = 0; i < n_series; i++)
        sampler->last[i] = series[i].count(workload, i);
    sim_event_init(&sampler->event, interval_ends);
    schedule_next(sampler);
}

void rate_sampler_stop(struct rate_sampler *sampler)
{
    if (sampler->workload != NULL && sim_event_pending(&sampler->event))
        sim_cancel(sampler->workload->sim, &sampler->event);
}

uint64_t workload_dram_bytes(const struct workload *workload, unsigned idx)
{
    uint64_t bytes = 0;
    (void)idx;
    for (unsigned h = 0; h < world_n_hosts(workload->world); h++)
        bytes += numa_dram_bytes(host_numa(world_host_at(workload->world, h)));
    return bytes;
}
