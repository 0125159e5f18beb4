/*
 * How far cores run ahead of global time does not decide results: what one core or one device does
 * is the same to the picosecond; what many cores share is the same within bounds that
 * docs/models/host.md states.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/world_fixture.h"
#include "workloads/experiment.h"

static const unsigned quantum_ns[] = { 0, 20, 50, 200, 1000 };

static double value_at(const char *text, unsigned quantum, uint64_t seed, const char *metric)
{
    struct sim_error_list errors = { 0 };
    struct config *config = fixture_config(text, &errors);
    struct run_result *result = run_result_new();
    struct experiment_outcome outcome;
    char *error, setting[32];
    fixture_fail(&errors);
    snprintf(setting, sizeof(setting), "%u", quantum);
    assert_true(config_set(config, "engine.quantum_ns", setting, "--set", &errors));
    assert_true(experiment_run(config, seed, result, &outcome, NULL, &error));
    double value = run_result_value(result, metric);
    assert_true(isfinite(value) != 0);
    run_result_free(result);
    config_free(config);
    return value;
}

/* Streams meet in the banks as the seed has it: a mean of seeds. */
static double mean_at(const char *text, unsigned quantum, unsigned n_seeds, const char *metric)
{
    double sum = 0;
    for (unsigned seed = 1; seed <= n_seeds; seed++)
        sum += value_at(text, quantum, seed, metric);
    return sum / n_seeds;
}

/* At most `share` of the value without running ahead; half of that with the default and less. */
static void assert_within(const char *text, unsigned n_seeds, const char *metric, double share)
{
    double reference = mean_at(text, 0, n_seeds, metric);
    for (unsigned i = 1; i < SIM_N_ELEMENTS(quantum_ns); i++) {
        double value = mean_at(text, quantum_ns[i], n_seeds, metric);
        double allowed = quantum_ns[i] <= 20 ? share / 2 : share;
        if (fabs(value - reference) > allowed * reference)
            fail_msg("%s: %.4f with a quantum of %u ns, %.4f without", metric, value, quantum_ns[i],
                     reference);
    }
}

#define HOST "hosts = { server = { ports = ( { name = \"rp0\"; lanes = 8; } ); }; };"

static void test_one_core(void **unused)
{
    (void)unused;
    assert_within(HOST "workload = { type = \"memory\"; mode = \"latency\"; to_socket = 1; };"
                       "measure = { duration_us = 300; warmup_us = 5; transactions = 1000; };",
                  1, "load_latency_ns", 0);
}

static void test_a_device(void **unused)
{
    (void)unused;
    assert_within(HOST "devices = { nfp = { type = \"pcie.requester\"; }; };"
                       "cables = ( { from = \"server.s0.rp0\"; to = \"nfp.p0\"; } );"
                       "workload = { type = \"pcie_bench\"; op = \"write_read\"; };"
                       "measure = { duration_us = 300; warmup_us = 5; };",
                  1, "latency_mean_ns", 0);
}

/* While trackers are taken, or reads queue, a core stays near the others: with any quantum the same
 * within what seeds differ by. */
static void test_many_cores(void **unused)
{
    (void)unused;
    assert_within(
        HOST "workload = { type = \"memory\"; mode = \"bandwidth\"; buffer_bytes = \"16 MiB\"; };"
             "measure = { duration_us = 300; warmup_us = 80; };",
        2, "read_gbyte_s", 0.03);
    assert_within(HOST "workload = { type = \"memory\"; mode = \"bandwidth\"; to_socket = 1;"
                       " buffer_bytes = \"16 MiB\"; };"
                       "measure = { duration_us = 40; warmup_us = 5; };",
                  1, "read_gbyte_s", 0.03);
}

/* Half of the bandwidth taken, and seven eighths: the queueing that a chase sees. */
static void test_a_core_among_others(void **unused)
{
    (void)unused;
    assert_within(HOST "workload = { type = \"memory\"; mode = \"loaded\"; inject_delay_ns = 20; };"
                       "measure = { duration_us = 150; warmup_us = 5; };",
                  1, "load_latency_ns", 0.12);
    assert_within(HOST "workload = { type = \"memory\"; mode = \"loaded\"; inject_delay_ns = 12; };"
                       "measure = { duration_us = 300; warmup_us = 80; };",
                  1, "load_latency_ns", 0.12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_core),
        cmocka_unit_test(test_a_device),
        cmocka_unit_test(test_many_cores),
        cmocka_unit_test(test_a_core_among_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
