/* measure.sample_interval_us: each program that has a rate records it over time, as a series whose
 * mean is the metric of its name. Without, nothing is recorded, nor promised. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/store/results_internal.h"
#include "tests/scenario/settings/table.h"
#include "tests/support/scenario_fixture.h"

#define FOLDER    "tests/scenario/settings/"
#define EVERY(US) "measure.sample_interval_us=" #US

/* A base of settings/table.h with more settings. */
struct sampled {
    const char *base, *sets;
    const char *rates;                /* whole names */
    const char *mean, *weight;        /* a mean, and the rate of what it is the mean of; or NULL */
    double tolerance, mean_tolerance; /* of both */
};

static void set_all(struct config *config, const char *text, struct sim_error_list *errors)
{
    g_auto(GStrv) parts = g_strsplit(text, " ", 0);
    for (char **part = parts; *part != NULL; part++) {
        g_auto(GStrv) pair = g_strsplit(*part, "=", 2);
        if (**part != '\0')
            config_set(config, pair[0], pair[1], "--set", errors);
    }
}

static struct config *load(const char *base_name, const char *sets)
{
    static const char *const folders[] = { "scenarios", NULL };
    const struct base *base = find_base(base_name);
    g_autofree char *path = g_strdup_printf(FOLDER "%s.cfg", base->file);
    struct sim_error_list errors = { 0 };
    struct config *config = config_load_searching(path, folders, &errors);
    fixture_fail(&errors);
    set_all(config, base->sets, &errors);
    set_all(config, sets, &errors);
    fixture_fail(&errors);
    return config;
}

static struct run_result *run(const char *base, const char *sets)
{
    struct run_result *result = run_result_new();
    struct config *config = load(base, sets);
    struct experiment_outcome outcome;
    char *error = NULL;
    if (!experiment_run(config, 1, result, &outcome, NULL, &error))
        fail_msg("%s %s: %s", base, sets, error);
    config_free(config);
    return result;
}

/* Of all samples, each times its sample of `weight`, if there is one. */
static double mean_of(const struct run_result *result, const char *name, const char *weight,
                      unsigned *n)
{
    double sum = 0, weights = 0;
    *n = 0;
    for (unsigned i = 0; i < result->samples->len; i++) {
        const struct result_sample *sample = &g_array_index(result->samples, struct result_sample,
                                                            i);
        double by = 1;
        if (strcmp(sample->name, name) != 0)
            continue;
        for (unsigned k = 0; weight != NULL && k < result->samples->len; k++) {
            const struct result_sample *other = &g_array_index(result->samples,
                                                               struct result_sample, k);
            if (strcmp(other->name, weight) == 0 && other->t_ps == sample->t_ps)
                by = other->value;
        }
        sum += sample->value * by;
        weights += by;
        ++*n;
    }
    return sum / weights;
}

static void expect_mean(const struct sampled *of, const struct run_result *result, const char *name,
                        const char *weight, double tolerance)
{
    unsigned n;
    const double mean = mean_of(result, name, weight, &n);
    const double metric = run_result_value(result, name);
    if (n < 4 || !(fabs(mean - metric) <= tolerance * metric))
        fail_msg("%s %s: %s is %.12g, the mean of its %u samples %.12g", of->base, of->sets, name,
                 metric, n, mean);
}

/* Exact where the measurement is whole intervals and a program is measured as long as it. */
static const struct sampled programs[] = {
    { "net", EVERY(15), "p.throughput_gbit_s", NULL, NULL, 1e-9, 0 },
    { "net.tx", EVERY(15), "p.throughput_gbit_s", NULL, NULL, 1e-9, 0 },
    { "net.tx", EVERY(15) " programs.q.type=pktgen programs.q.core=3",
      "p.throughput_gbit_s q.throughput_gbit_s throughput_gbit_s", NULL, NULL, 1e-9, 0 },
    { "rr", EVERY(200) " measure.duration_us=2000", "", "p.rtt_us", NULL, 0, 0.05 },
    { "udp", EVERY(200) " measure.duration_us=2000", "", "p.latency_us", NULL, 0, 0.05 },
    { "pktgen", EVERY(15), "p.throughput_gbit_s", NULL, NULL, 1e-9, 0 },
    { "sendfile", EVERY(15), "p.throughput_gbit_s", NULL, NULL, 1e-9, 0 },
    { "memcached", EVERY(40), "p.transactions_kt_s p.memcached_gbit_s", "p.transaction_mean_us",
      "p.transactions_kt_s", 1e-9, 1e-9 },
    { "stream", EVERY(15), "p.stream_read_gbyte_s p.stream_write_gbyte_s p.stream_gbyte_s", NULL,
      NULL, 1e-9, 0 },
    { "local.stream", EVERY(10), "p.stream_gbyte_s", NULL, NULL, 1e-9, 0 },
    { "local.load", EVERY(10), "p.core_gbyte_s", "p.core_latency_ns", "p.core_gbyte_s", 1e-9,
      1e-9 },
    { "local.load", EVERY(10) " programs.p.access=read_write", "p.core_gbyte_s",
      "p.core_latency_ns", "p.core_gbyte_s", 1e-9, 1e-9 },
    /* Nanoseconds are whole ones there. */
    { "dma", EVERY(5) " programs.h.type=host_counters programs.h.on=borrower",
      "p.throughput_gbyte_s h.device_gbyte_s", "p.latency_mean_ns", "p.throughput_gbyte_s", 1e-9,
      1e-3 },
    { "fio", EVERY(30), "p.iops p.read_iops p.throughput_gbyte_s", "p.latency_mean_ns", "p.iops",
      1e-9, 1e-9 },
    { "fio.many", EVERY(30), "p.iops p.read_iops p.write_iops p.throughput_gbyte_s",
      "p.latency_mean_ns", "p.iops", 1e-9, 1e-9 },
    /* The metric is over the time of the operations. */
    { "fio", EVERY(10) " programs.p.operations=100 measure.duration_us=100000", "p.iops",
      "p.latency_mean_ns", "p.iops", 0.05, 0.01 },
    { "dnvme", EVERY(30), "p.iops p.throughput_gbyte_s", "p.latency_mean_ns", "p.iops", 1e-9,
      1e-3 },
    { "dnvme.two", EVERY(1000), "p.iops p.throughput_gbyte_s", "p.latency_mean_ns", "p.iops", 1e-9,
      1e-3 },
    /* Of these a little is done before their own time begins, or in the last part of an interval.
     */
    { "rdma", EVERY(2) " measure.duration_us=20000 programs.p.iterations=400",
      "p.throughput_gbyte_s p.message_rate_mpps", "p.latency_mean_ns", "p.message_rate_mpps", 0.1,
      0.1 },
    { "rdma.write", EVERY(100) " measure.duration_us=50000 programs.p.iterations=4000",
      "p.throughput_gbyte_s p.message_rate_mpps", "p.latency_mean_ns", "p.message_rate_mpps", 0.1,
      0.1 },
    { "pagerank", EVERY(20) " measure.duration_us=50000 programs.p.scale=16",
      "p.pagerank_edges_per_us", NULL, NULL, 0.1, 0 },
    { "bench.bw", EVERY(5), "throughput_gbit_s memory_gbyte_s", "latency_mean_ns",
      "throughput_gbit_s", 1e-3, 1e-3 },
    { "memory.bw", EVERY(5), "read_gbyte_s memory_gbyte_s", NULL, NULL, 0.01, 0 },
    { "memory", EVERY(5), "", "load_latency_ns", NULL, 0, 0.02 },
};

static void expect_means(const struct sampled *of)
{
    struct run_result *result = run(of->base, of->sets);
    g_auto(GStrv) rates = g_strsplit(of->rates, " ", 0);
    for (char **rate = rates; *rate != NULL; rate++)
        expect_mean(of, result, *rate, NULL, of->tolerance);
    if (of->mean != NULL)
        expect_mean(of, result, of->mean, of->weight, of->mean_tolerance);
    run_result_free(result);
}

static void test_means(void **unused)
{
    const unsigned stride = scenario_stride(4);
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(programs); i += stride)
        expect_means(&programs[i]);
}

static bool declares(const char *base, const char *sets, const char *name)
{
    struct run_result *declared = run_result_new_declaring();
    struct config *config = load(base, sets);
    struct sim_error_list errors = { 0 };
    assert_true(experiment_declare(config, declared, &errors));
    const bool is = run_result_has(declared, RECORD_SERIES, name);
    run_result_free(declared);
    config_free(config);
    return is;
}

/* Bare names are those of metrics: of one program, of the sum, or none. */
static void test_names(void **unused)
{
    (void)unused;
    assert_false(declares("fio", "", "p.iops"));
    assert_true(declares("fio", EVERY(30), "p.iops"));
    assert_true(declares("fio", EVERY(30), "latency_mean_ns"));
    assert_true(declares("dma", EVERY(30), "p.latency_mean_ns"));
    assert_false(declares("dma", EVERY(30), "latency_mean_ns"));
    /* By a sampler of their own. */
    assert_false(declares("vf", "", "p.receiver_gbyte_s"));
    assert_true(declares("vf", EVERY(10), "p.receiver_gbyte_s"));
    assert_false(declares("fault", "", "f.payload_gbit_s"));
    assert_true(declares("fault", EVERY(10), "f.payload_gbit_s"));
    /* That is no rate. */
    assert_true(declares("training", "", "p.epoch_s"));
    assert_false(declares("rr",
                          EVERY(30) " programs.q.type=netperf_rr programs.q.core=1"
                                    " programs.q.client_core=1",
                          "rtt_us"));
}

/* What has no rate is told, instead of a run without series. */
static void test_refused(void **unused)
{
    static const char *const texts[] = {
        "workload = { type = \"trends\"; year = 2010; };"
        "trends = { nic = ( { year = 2000; port_gbit_s = 1.0; } );"
        " cores = ( { year = 2000; n = 1; } ); };",
        "hosts = { a = { }; }; devices = { e = { type = \"ioat.engine\"; integrated = \"a.s0\"; }; };"
        "lending = { a = { host = \"a\"; }; }; workload = { type = \"programs\"; measured = \"a\"; };"
        "programs = { p = { type = \"dma_copy\"; on = \"a\"; }; };",
    };
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(texts); i++) {
        g_autofree char *text = g_strconcat(texts[i], "\nmeasure = { sample_interval_us = 10; };",
                                            NULL);
        scenario_refused(text, ":2: measure.sample_interval_us: found 10 (an integer), expected no "
                               "sample_interval_us");
    }
    /* A sample for each epoch, however long an interval is. */
    struct sim_error_list errors = { 0 };
    struct config *config = load("training", EVERY(1000));
    assert_false(experiment_check(config, &errors));
    assert_non_null(strstr(errors.message[0], "expected no sample_interval_us"));
    sim_error_release(&errors);
    config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_means),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
