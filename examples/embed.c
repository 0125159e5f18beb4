/*
 * A simulation within another program: runs the points of a scenario and prints a metric of each.
 *   cc embed.c $(pkg-config --cflags --libs nudma) -o embed
 *   ./embed pcie_bench/latency_size latency_mean_ns axes.op=write_read axes.transfer_bytes=64,2048
 */
#include <nudma.h>
#include <stdio.h>

static int fail(char *error)
{
    fprintf(stderr, "%s\n", error);
    nudma_free(error);
    return 1;
}

int main(int argc, char **argv)
{
    char *error;
    if (argc < 3) {
        fprintf(stderr, "usage: embed SCENARIO METRIC [PATH=VALUE...]\n");
        return 2;
    }
    /* What follows the metric are changes of settings; argv ends with NULL, as they have to. */
    struct nudma_scenario *scenario = nudma_scenario_load(argv[1], (const char *const *)argv + 3,
                                                          &error);
    if (scenario == NULL)
        return fail(error);
    for (size_t i = 0; i < nudma_scenario_n_points(scenario); i++) {
        struct nudma_result *result = nudma_run(scenario, i, 1, &error);
        double value;
        if (result == NULL)
            return fail(error);
        if (nudma_result_value(result, argv[2], &value))
            printf("%s: %s = %.6g\n", nudma_scenario_point(scenario, i), argv[2], value);
        else
            printf("%s: no metric %s\n", nudma_scenario_point(scenario, i), argv[2]);
        nudma_result_free(result);
    }
    nudma_scenario_free(scenario);
    return 0;
}
