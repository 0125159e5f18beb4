#include "workloads/programs/breakdown.h"

#include <stdio.h>
#include <string.h>

#include "models/base/latency.h"

uint64_t breakdown_counter(struct host *host, const char *name)
{
    const char *prefix;
    const struct stat_desc *table;
    void *state;
    uint64_t sum = 0;
    for (unsigned i = 0; numa_stats(host_numa(host), i, &prefix, &table, &state); i++)
        for (; table != NULL && table->kind != STAT_END; table++)
            if (table->kind == STAT_COUNTER && strcmp(table->name, name) == 0)
                sum += *(const uint64_t *)(const void *)((const char *)state + table->offset);
    return sum;
}

void breakdown_record_dram(struct host *host, struct run_result *result, uint64_t n)
{
    static const char *const causes[] = {
        "read_load",    "read_rfo",          "read_dma",    "read_directory",
        "write_victim", "write_ddio_victim", "write_snoop", "write_nt",
        "write_dma",    "write_directory",   "write_flush",
    };
    char counter[64], name[64];
    for (unsigned i = 0; i < SIM_N_ELEMENTS(causes); i++) {
        snprintf(counter, sizeof(counter), "dram_%s_bytes", causes[i]);
        snprintf(name, sizeof(name), "dram_part_bytes.%s", causes[i]);
        run_result_metric(result, name, "bytes",
                          (double)breakdown_counter(host, counter) / (double)n);
    }
}

/* Sum and number of the samples of a mean of that name, over all that the host has. */
static uint64_t add_means(struct host *host, const char *name, double *sum)
{
    const char *prefix;
    const struct stat_desc *table;
    void *state;
    uint64_t n = 0;
    for (unsigned i = 0; host_stats(host, i, &prefix, &table, &state); i++)
        for (; table != NULL && table->kind != STAT_END; table++)
            if (table->kind == STAT_MEAN && strcmp(table->name, name) == 0) {
                const struct stat_mean *mean = (const void *)((const char *)state + table->offset);
                *sum += mean->sum;
                n += mean->n;
            }
    return n;
}

void breakdown_record_dma(struct host *host, struct run_result *result)
{
    char counter[64], name[64];
    for (unsigned i = 0; i < N_LATENCY_PARTS; i++) {
        double sum_ns = 0;
        snprintf(counter, sizeof(counter), "write_latency_part_ns.%s", latency_part_name[i]);
        snprintf(name, sizeof(name), "dma_write_part_ns.%s", latency_part_name[i]);
        uint64_t n = add_means(host, counter, &sum_ns);
        if (n != 0)
            run_result_metric(result, name, "ns", sum_ns / (double)n);
    }
}
