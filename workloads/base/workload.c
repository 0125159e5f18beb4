/* What workloads share. */
#include "workloads/base/workload.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/engine/watchdog.h"

const struct setting_desc workload_settings[] = {
    { "type", "a workload", "required", "what is done, and measured" },
    { .key = NULL },
};

const struct setting_desc program_settings[] = {
    { "type", "a program", "required", "what runs" },
    { .key = NULL },
};

const struct param_desc measure_params_table[] = {
    PARAM("warmup_us", PARAM_TIME, struct measure_params, warmup_ps, 20, 0, 1e9, PROV_NONE, "",
          "simulated time before measurement"),
    PARAM("warmup_min_us", PARAM_TIME, struct measure_params, warmup_min_ps, 1e9, 0, 1e9, PROV_NONE,
          "",
          "with precision_ratio: the warm-up may end from then on, once nothing drifts; from"
          " warmup_us on: never"),
    PARAM("duration_us", PARAM_TIME, struct measure_params, duration_ps, 1000, 0.001, 1e9,
          PROV_NONE, "", "simulated time measured at most"),
    PARAM("precision_ratio", PARAM_DOUBLE, struct measure_params, precision_ratio, 0, 0, 1,
          PROV_NONE, "",
          "measure until half the 95 % interval of what is measured is this share of it; 0: off"),
    PARAM("transactions", PARAM_U64, struct measure_params, transactions, 0, 0, 1e12, PROV_NONE, "",
          "measure so many transactions at most; 0: no bound"),
    PARAM("latency_parts", PARAM_BOOL, struct measure_params, latency_parts, 0, 0, 1, PROV_NONE, "",
          "record where latency comes from (latency_part_ns.*)"),
    PARAM("sample_interval_us", PARAM_TIME, struct measure_params, sample_interval_ps, 0, 0, 1e9,
          PROV_NONE, "",
          "record rates and mean latencies over time, a sample each such interval; 0: none"),
    { .type = PARAM_END },
};

void workload_mistake(struct workload *workload, const char *key, struct sim_error_list *errors,
                      const char *expected, const char *const *names)
{
    config_mistake_at(workload->group, key, errors, expected, names);
}

void workload_no_effect(struct workload *workload, const char *key, const char *decider,
                        struct sim_error_list *errors, const char *expected)
{
    char path[128];
    snprintf(path, sizeof(path), "workload.%s", decider != NULL ? decider : "type");
    config_no_effect(workload->group, key, path, errors, expected);
}

void workload_measure_no_effect(struct workload *workload, const char *key, const char *decider,
                                struct sim_error_list *errors, const char *expected)
{
    char path[128];
    struct config_node *measure = config_find(config_root(workload->config), "measure");
    snprintf(path, sizeof(path), "workload.%s", decider != NULL ? decider : "type");
    if (measure != NULL && config_kind(measure) == CONFIG_GROUP)
        config_no_effect(measure, key, path, errors, expected);
}

bool workload_measured(struct workload *workload, const struct stat_mean *mean)
{
    const struct measure_params *measure = &workload->measure;
    if (measure->transactions != 0 && mean->n >= measure->transactions)
        return true;
    if (!stat_precision_reached(&workload->precision, mean))
        return false;
    if (!workload->is_noted) {
        char text[128];
        snprintf(text, sizeof(text), "%llu transactions, whose mean is known to %.3g %%",
                 (unsigned long long)mean->n, 100 * measure->precision_ratio);
        run_result_note(workload->result, "sampled", text);
        workload->is_noted = true;
    }
    return true;
}

bool workload_goes_on(const struct workload *workload)
{
    return sim_error(workload->sim) == NULL &&
           (workload->interrupt == NULL || *workload->interrupt == 0);
}

void workload_run_until(struct workload *workload, const bool *done, sim_time until_ps)
{
    while (!*done && sim_now(workload->sim) < until_ps && workload_goes_on(workload) &&
           (sim_events_pending(workload->sim) != 0 || until_ps != SIM_TIME_MAX))
        sim_run(workload->sim, until_ps, workload->interrupt);
    if (!*done && until_ps == SIM_TIME_MAX && sim_events_pending(workload->sim) == 0 &&
        workload_goes_on(workload))
        sim_fail_waiting(workload->sim, "the workload is not done, and nothing goes on");
}

void part_means_add(struct workload *workload, struct part_means *means,
                    const struct sim_stamp *stamp, sim_time end_ps)
{
    sim_time sum_ps = 0;
    for (unsigned i = 0; i < N_LATENCY_PARTS; i++) {
        means->total_ps[i] += stamp->part_ps[i];
        sum_ps += stamp->part_ps[i];
    }
    means->n++;
    if (sum_ps != end_ps - stamp->start_ps)
        sim_fail(workload->sim, "latency parts sum to %llu ps, the transaction took %llu ps",
                 (unsigned long long)sum_ps, (unsigned long long)(end_ps - stamp->start_ps));
}

void part_means_record(struct workload *workload, const struct part_means *means)
{
    char name[64];
    for (unsigned i = 0; i < N_LATENCY_PARTS && means->n != 0; i++) {
        snprintf(name, sizeof(name), "latency_part_ns.%s", latency_part_name[i]);
        run_result_metric(workload->result, name, "ns",
                          (double)means->total_ps[i] / (double)means->n / 1000.0);
    }
}

const struct record_desc workload_world_records[] = {
    { "memory_gbyte_s", RECORD_METRIC, "GB/s",
      "DRAM traffic of the host measured, else of all; others' is <host>.memory_gbyte_s" },
    { "interconnect_gbyte_s.*", RECORD_METRIC, "GB/s",
      "from socket to socket, .s0_s1: of the host measured, else the first; others' after <host>." },
    { "bottleneck.pcie_ratio", RECORD_METRIC, "1",
      "of the PCIe link's direction nearest to its peak" },
    { "bottleneck.credits_ratio", RECORD_METRIC, "1",
      "of the time, for which the link that waited most had no credits" },
    { "bottleneck.ethernet_ratio", RECORD_METRIC, "1", "of the Ethernet wire nearest to its peak" },
    { "bottleneck.dram_ratio", RECORD_METRIC, "1", "of the socket's memory nearest to its peak" },
    { "bottleneck.interconnect_ratio", RECORD_METRIC, "1",
      "of the link between sockets nearest to its peak" },
    { "bottleneck.device_ratio", RECORD_METRIC, "1",
      "of the medium or engine of a device nearest to its peak" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static double gbyte_s(uint64_t bytes, sim_time duration_ps)
{
    return duration_ps != 0 ? (double)bytes * 1000.0 / (double)duration_ps : 0.0;
}

static void record_interconnect(struct workload *workload, struct host *host, const char *prefix,
                                sim_time duration_ps)
{
    unsigned n = numa_sockets(host_numa(host));
    char name[160];
    for (unsigned from = 0; from < n; from++)
        for (unsigned to = 0; to < n; to++) {
            if (from == to)
                continue;
            snprintf(name, sizeof(name), "%sinterconnect_gbyte_s.s%u_s%u", prefix, from, to);
            run_result_metric(
                workload->result, name, "GB/s",
                gbyte_s(numa_interconnect_bytes(host_numa(host), from, to), duration_ps));
        }
}

/* What may limit a run, by the statistic that has the resource's peak; the first that fits. */
static const struct {
    const char *stat, *metric; /* "*" at the end: any name that begins so */
} bottlenecks[] = {
    { "tlp_bytes", "bottleneck.pcie_ratio" },
    { "credit_stall_ns", "bottleneck.credits_ratio" },
    { "bytes", "bottleneck.ethernet_ratio" },
    { "dram_*", "bottleneck.dram_ratio" },
    { "interconnect_*", "bottleneck.interconnect_ratio" },
    { "*", "bottleneck.device_ratio" },
};
#define N_BOTTLENECKS   SIM_N_ELEMENTS(bottlenecks)
#define BOTTLENECK_WAIT 1 /* has no peak: a share of the time */

static bool bottleneck_is(size_t i, const struct stat_desc *stat)
{
    const size_t n = strlen(bottlenecks[i].stat);
    if (i == BOTTLENECK_WAIT ? stat->has_peak : !stat->has_peak)
        return false;
    return bottlenecks[i].stat[n - 1] == '*' ? strncmp(stat->name, bottlenecks[i].stat, n - 1) == 0
                                             : strcmp(stat->name, bottlenecks[i].stat) == 0;
}

/* Of each kind the resource that was nearest to its peak; without resources of a kind there is
 * none. */
static void record_bottlenecks(struct workload *workload, sim_time duration_ps)
{
    double highest[N_BOTTLENECKS];
    const char *prefix;
    const struct stat_desc *table;
    void *state;
    for (size_t i = 0; i < N_BOTTLENECKS; i++)
        highest[i] = -1.0;
    for (unsigned k = 0; world_stats(workload->world, k, &prefix, &table, &state); k++)
        for (const struct stat_desc *stat = table; stat != NULL && stat->kind != STAT_END; stat++) {
            size_t i = 0;
            while (i < N_BOTTLENECKS && !bottleneck_is(i, stat))
                i++;
            if (i == N_BOTTLENECKS || !stat_exists(stat, state))
                continue;
            const uint64_t value = *(const uint64_t *)((const char *)state + stat->offset);
            const double share = duration_ps == 0 ? 0.0
                                 : i == BOTTLENECK_WAIT
                                     ? (double)value / (double)duration_ps
                                     : stat_utilization(stat, state, duration_ps);
            highest[i] = fmax(highest[i], isfinite(share) ? share : 0.0);
        }
    for (size_t i = 0; i < N_BOTTLENECKS; i++)
        if (highest[i] >= 0.0)
            run_result_metric(workload->result, bottlenecks[i].metric, "1", highest[i]);
}

void workload_record_world(struct workload *workload, struct host *measured, sim_time duration_ps)
{
    const char *prefix;
    const struct stat_desc *table;
    void *state;
    char name[96];
    for (unsigned i = 0; world_stats(workload->world, i, &prefix, &table, &state); i++)
        if (table != NULL) {
            run_result_stats(workload->result, prefix, table, state, duration_ps);
            if (duration_ps != 0)
                stat_check_peaks(table, state, prefix, duration_ps);
        }

    for (unsigned h = 0; h < world_n_hosts(workload->world); h++) {
        struct host *host = world_host_at(workload->world, h);
        const bool first = measured != NULL ? host == measured : h == 0;
        snprintf(name, sizeof(name), "%.60s%s", first ? "" : host_name(host), first ? "" : ".");
        record_interconnect(workload, host, name, duration_ps);
        if (measured == NULL || host == measured)
            continue;
        snprintf(name, sizeof(name), "%s.memory_gbyte_s", host_name(host));
        run_result_metric(workload->result, name, "GB/s",
                          gbyte_s(numa_dram_bytes(host_numa(host)), duration_ps));
    }
    run_result_metric(workload->result, "memory_gbyte_s", "GB/s",
                      gbyte_s(measured != NULL ? numa_dram_bytes(host_numa(measured))
                                               : workload_dram_bytes(workload, 0),
                              duration_ps));
    record_bottlenecks(workload, duration_ps);
}

static void declare_record(struct run_result *declared, const struct record_desc *record)
{
    const size_t stem = strlen(record->name) - 1;
    char name[96];
    if (record->name[stem] != '*') {
        run_result_declare(declared, record->kind, record->name, record->unit);
        return;
    }
    for (unsigned i = 0; i < N_LATENCY_PARTS; i++) {
        snprintf(name, sizeof(name), "%.*s%s", (int)stem, record->name, latency_part_name[i]);
        run_result_declare(declared, record->kind, name, record->unit);
    }
}

/* Series only if the scenario asks for samples. */
static void declare_records(struct workload *workload, struct run_result *declared,
                            const struct record_desc *records)
{
    for (const struct record_desc *record = records; record->name != NULL; record++)
        if (record->kind != RECORD_SERIES || workload->measure.sample_interval_ps != 0)
            declare_record(declared, record);
}

void workload_declare(struct workload *workload, struct run_result *declared)
{
    struct run_result *result = workload->result;
    workload->result = declared;
    workload_record_world(workload, NULL, 0);
    if (workload->ops->declare != NULL)
        workload->ops->declare(workload, declared);
    if (workload->ops->stats != NULL)
        run_result_stats(declared, "", workload->ops->stats, workload->state, 0);
    declare_records(workload, declared, workload->ops->records);
    workload->result = result;
}
