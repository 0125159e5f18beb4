/*
 * TLPs a second of processor time, end to end: DMA writes of 256 B (MPS) from an adapter through a
 * switch and a root complex into the LLC, four cache lines each. The scenario is
 * examples/write_stream_switch.
 */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "sim/config/scenario.h"
#include "workloads/experiment.h"

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double run_once(struct scenario *scenario, double *tlps)
{
    struct sim_error_list errors = { 0 };
    struct config *config = scenario_point(scenario, 0, &errors);
    struct run_result *result = run_result_new();
    struct experiment_outcome outcome;
    char *error = NULL;
    const double start_s = cpu_s();
    if (config == NULL || !experiment_run(config, 1, result, &outcome, NULL, &error)) {
        fprintf(stderr, "dma_stream: %s\n", error != NULL ? error : errors.message[0]);
        exit(1);
    }
    const double took_s = cpu_s() - start_s;
    *tlps = run_result_value(result, "server.s0.root_complex.writes");
    printf("dma_stream.events_per_tlp %.2f events\n", (double)outcome.events / *tlps);
    run_result_free(result);
    config_free(config);
    return took_s;
}

int main(void)
{
    const char *roots[] = { "scenarios", NULL };
    const char *sets[] = { "axes.op=write", "measure.duration_us=20000", NULL };
    struct sim_error_list errors = { 0 };
    struct scenario *scenario = scenario_load("examples/write_stream_switch", roots, sets, &errors);
    if (scenario == NULL || errors.n_messages != 0) {
        fprintf(stderr, "dma_stream: %s (run it from the top of the tree)\n", errors.message[0]);
        return 1;
    }
    double tlps, took_s = run_once(scenario, &tlps);
    printf("dma_stream.256B_writes_into_llc %.2f MTLP/s\n", tlps / took_s / 1e6);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("dma_stream.peak_memory %.1f MiB\n", (double)usage.ru_maxrss / 1024.0);
    scenario_free(scenario);
    return 0;
}
