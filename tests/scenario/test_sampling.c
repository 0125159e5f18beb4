/* measure.precision_ratio: what is sampled is what all of it gives, within that; what must not be
 * cut is not; twice the same. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/store/results_internal.h"
#include "tests/support/scenario_fixture.h"
#include "workloads/base/workload.h"

#define PORT "{ name = \"rp0\"; socket = 0; lanes = 8; }"
#define TWO  "{ cpu = { sockets = 2; cores_per_socket = 2; }; ports = ( " PORT " ); }; "
#define BENCH                                              \
    "hosts = { server = { ports = ( " PORT " ); }; };"     \
    "devices = { nfp = { type = \"pcie.requester\"; }; };" \
    "cables = ( { from = \"server.s0.rp0\"; to = \"nfp.p0\"; } );\n"
#define READS \
    BENCH "workload = { type = \"pcie_bench\"; measure = \"bandwidth\"; transfer_bytes = 512; };\n"
#define MEMORY                       \
    "hosts = { server = " TWO "};\n" \
    "workload = { type = \"memory\"; mode = \"bandwidth\"; buffer_bytes = 1048576; };\n"
#define NETWORK                                                                                       \
    "hosts = { server = " TWO "client = " TWO "};\n"                                                  \
    "devices = { nic = { type = \"nic.ethernet\"; }; client_nic = { type = \"nic.ethernet\"; }; };\n" \
    "cables = ( { from = \"server.s0.rp0\"; to = \"nic.p0\"; },"                                      \
    " { from = \"client.s0.rp0\"; to = \"client_nic.p0\"; },"                                         \
    " { from = \"nic.e0\"; to = \"client_nic.e0\"; } );\n"                                            \
    "network = { server = { host = \"server\"; device = \"nic\"; };"                                  \
    " client = { host = \"client\"; device = \"client_nic\"; }; };\n"                                 \
    "workload = { type = \"programs\"; };\n"
#define PKTGEN NETWORK "programs = { p = { type = \"pktgen\"; }; };\n"
#define GPU                                                                                           \
    "hosts = { server = { ports = ( { name = \"rp0\"; socket = 0; lanes = 16; } );"                   \
    " dram = { node_size = \"2 GiB\"; }; firmware = { mmio_high_base_bytes = \"512 GiB\"; }; }; };\n" \
    "devices = { gpu0 = { type = \"gpu.cuda\"; }; };\n"                                               \
    "cables = ( { from = \"server.s0.rp0\"; to = \"gpu0.p0\"; } );\n"                                 \
    "lending = { user = { host = \"server\"; }; };\n"                                                 \
    "workload = { type = \"programs\"; measured = \"user\"; };\n"                                     \
    "programs = { p = { type = \"bandwidth_test\"; host = \"user\"; timing = \"events\"; %s }; };\n"
#define COPIES "measure = { warmup_us = 0; duration_us = 1000000; precision_ratio = %s; };\n"

/* What is asked for of a scenario, exact and sampled. */
struct pair {
    struct run_result *exact, *sampled;
};

/* format: with a %s for the precision; other: a second text for it, or NULL. */
static struct pair run_both(const char *format, const char *other)
{
    struct pair pair;
    char text[4096];
    const char *const precision[2] = { "0.0", "0.02" };
    for (unsigned i = 0; i < 2; i++) {
        if (other != NULL)
            snprintf(text, sizeof(text), format, other, precision[i]);
        else
            snprintf(text, sizeof(text), format, precision[i]);
        *(i == 0 ? &pair.exact : &pair.sampled) = scenario_run(text);
    }
    assert_null(run_result_note_text(pair.exact, "sampled", 0));
    return pair;
}

static void release(struct pair *pair)
{
    run_result_free(pair->exact);
    run_result_free(pair->sampled);
}

static void expect_near(const struct pair *pair, const char *metric)
{
    const double exact = scenario_value(pair->exact, metric),
                 sampled = scenario_value(pair->sampled, metric);
    if (!(fabs(sampled / exact - 1) <= 0.02))
        fail_msg("%s: exact %g, sampled %g", metric, exact, sampled);
}

static double noted(const struct run_result *result, const char *name)
{
    const char *text = run_result_note_text(result, name, 0);
    if (text == NULL)
        fail_msg("no note %s", name);
    return strtod(text, NULL);
}

static void test_bandwidths(void **unused)
{
    static const struct {
        const char *text, *metric;
        double duration_us;
    } cases[] = {
        { READS "measure = { warmup_us = 20; duration_us = 400; precision_ratio = %s; };",
          "throughput_gbit_s", 400 },
        { MEMORY "measure = { warmup_us = 20; duration_us = 200; precision_ratio = %s; };",
          "read_gbyte_s", 200 },
        { PKTGEN "measure = { warmup_us = 5000; duration_us = 3000; precision_ratio = %s; };",
          "packet_rate_kpps", 3000 },
    };
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        struct pair pair = run_both(cases[i].text, NULL);
        expect_near(&pair, cases[i].metric);
        assert_true(noted(pair.sampled, "sampled_duration_us") <= cases[i].duration_us / 2);
        assert_true(noted(pair.sampled, "sampled_interval_ratio") <= 0.02);
        release(&pair);
    }
}

/* Copies that are alike end when their mean is known; of a long one there are parts. */
static void test_copies(void **unused)
{
    static const char *const copies[][2] = {
        { "transfer_bytes = 65536; volume_bytes = 4194304;", "8 of 64 copies" },
        { "transfer_bytes = 16777216; direction = \"write\";", "parts of 14680064 bytes" },
    };
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(copies); i++) {
        struct pair pair = run_both(GPU COPIES, copies[i][0]);
        const char *note = run_result_note_text(pair.sampled, "sampled", 0);
        expect_near(&pair, "throughput_gbyte_s");
        expect_near(&pair, "transfer_us");
        if (note == NULL || strstr(note, copies[i][1]) == NULL)
            fail_msg("expected \"%s\": %s", copies[i][1], note != NULL ? note : "no note");
        release(&pair);
    }
}

/* A warm-up ends early only where the scenario says from when on it may. */
static void test_warm_up(void **unused)
{
    struct run_result *result = scenario_run(
        READS "measure = { warmup_us = 400; duration_us = 200; precision_ratio = 0.01;"
              " };");
    (void)unused;
    assert_true(noted(result, "sampled_warmup_us") == 400);
    run_result_free(result);
    result = scenario_run(READS
                          "measure = { warmup_us = 400; warmup_min_us = 150; duration_us = 200;"
                          " precision_ratio = 0.01; };");
    assert_true(noted(result, "sampled_warmup_us") == 150);
    run_result_free(result);
}

/* What happens at a set time, series, programs that end by themselves. */
static void test_all_of_it(void **unused)
{
    static const char *const texts[] = {
        PKTGEN "measure = { warmup_us = 300; duration_us = 800; precision_ratio = 0.1;"
               " sample_interval_us = 100; };",
        NETWORK "programs = { p = { type = \"netperf\"; migrate_after_us = 700; }; };\n"
                "measure = { warmup_us = 300; duration_us = 800; precision_ratio = 0.2; };",
        NETWORK
        "programs = { p = { type = \"pktgen\"; };"
        " q = { type = \"stream\"; pairs = 1; first_core = 0; socket = 1; array_bytes = 65536; start_us = 1000; }; };\n"
        "measure = { warmup_us = 300; duration_us = 800; precision_ratio = 0.2; };",
        NETWORK "programs = { p = { type = \"pktgen\"; };"
                " q = { type = \"pagerank\"; scale = 10; threads_per_socket = 1;"
                " first_core = 1; }; };\n"
                "measure = { warmup_us = 10; duration_us = 1000000; precision_ratio = 0.2; };",
    };
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(texts); i++) {
        struct run_result *result = scenario_run(texts[i]);
        assert_null(run_result_note_text(result, "sampled", 0));
        run_result_free(result);
    }
}

/* A tenth of intervals, but the first, that of the event and the next. */
static void test_parts_of_series(void **unused)
{
    struct workload workload = { .measure = { .sample_interval_ps = 50 * SIM_PS_PER_MS,
                                              .duration_ps = SIM_PS_PER_S },
                                 .series_event_ps = 225 * SIM_PS_PER_MS };
    (void)unused;
    assert_true(workload_series_long(&workload));
    assert_int_equal(workload_simulated_ps(&workload, 430 * SIM_PS_PER_MS), 430 * SIM_PS_PER_MS);
    workload.series_sampled = true;
    static const unsigned ms[][2] = { { 0, 0 },     { 30, 30 },   { 50, 50 },  { 52, 52 },
                                      { 60, 55 },   { 200, 65 },  { 225, 90 }, { 300, 165 },
                                      { 301, 166 }, { 350, 170 }, { 430, 180 } };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(ms); i++)
        assert_int_equal(workload_simulated_ps(&workload, ms[i][0] * SIM_PS_PER_MS),
                         ms[i][1] * SIM_PS_PER_MS);
    /* Of the n-th after the event (200 ms) n = 8, 10, 12, 14 (600, 700, 800, 900 ms); the last. */
    static const unsigned sparse[][2] = { { 600, 195 }, { 605, 200 }, { 650, 200 },
                                          { 700, 200 }, { 750, 205 }, { 850, 210 },
                                          { 900, 210 }, { 950, 215 }, { 1000, 220 } };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(sparse); i++)
        assert_int_equal(workload_simulated_ps(&workload, sparse[i][0] * SIM_PS_PER_MS),
                         sparse[i][1] * SIM_PS_PER_MS);
    /* An event within the first interval: the next one is whole. */
    workload.series_event_ps = 30 * SIM_PS_PER_MS;
    assert_int_equal(workload_simulated_ps(&workload, 30 * SIM_PS_PER_MS), 30 * SIM_PS_PER_MS);
    assert_int_equal(workload_simulated_ps(&workload, 100 * SIM_PS_PER_MS), 100 * SIM_PS_PER_MS);
    assert_int_equal(workload_simulated_ps(&workload, 150 * SIM_PS_PER_MS), 105 * SIM_PS_PER_MS);
    /* Without an event, nor an end in sight: of 1,000 intervals 8, 4, 4 and every eighth. */
    workload.series_event_ps = 0;
    workload.measure.duration_ps = 100 * SIM_PS_PER_S;
    assert_int_equal(workload_simulated_ps(&workload, 50 * SIM_PS_PER_S),
                     (50 + 5 * (7 + 4 + 4 + (1000 - 32) / 8)) * SIM_PS_PER_MS);
    workload.measure.sample_interval_ps = 39 * SIM_PS_PER_MS;
    assert_false(workload_series_long(&workload));
}

#define sample_at(RESULT, I) g_array_index((RESULT)->samples, struct result_sample, I)

static void test_series(void **unused)
{
    static const char text[] = NETWORK
        "programs = { p = { type = \"sockperf\"; }; };\n"
        "measure = { warmup_us = 10000; duration_us = 160000; sample_interval_us = 40000;"
        " precision_ratio = %s; };\n";
    struct pair pair = run_both(text, NULL);
    (void)unused;
    expect_near(&pair, "latency_us");
    assert_string_equal(
        run_result_note_text(pair.sampled, "sampled", 0),
        "series: 52000 of 160000 us simulated, a tenth of intervals in which nothing"
        " is done, and one in two to eight of them");
    /* Of the function, of the program, and of the program by the bare name. */
    assert_int_equal(pair.exact->samples->len, 12);
    assert_int_equal(pair.sampled->samples->len, 12);
    for (unsigned i = 0; i < 12; i++) {
        static const char *const names[] = { "pf0_gbit_s", "p.latency_us", "latency_us" };
        const struct result_sample *exact = &sample_at(pair.exact, i),
                                   *sampled = &sample_at(pair.sampled, i);
        assert_string_equal(sampled->name, names[i % 3]);
        assert_int_equal(sampled->t_ps, (i / 3 + 1) * 40 * SIM_PS_PER_MS);
        assert_int_equal(exact->t_ps, sampled->t_ps);
        assert_true(exact->value > 0 && fabs(sampled->value / exact->value - 1) < 0.02);
    }
    release(&pair);
}

/* 0.1 % of a swinging stream is not known in a millisecond: nothing is left out. */
static void test_not_known(void **unused)
{
    (void)unused;
    struct run_result *result = scenario_run(NETWORK
                                             "programs = { p = { type = \"netperf\"; }; };\n"
                                             "measure = { warmup_us = 300; duration_us = 800;"
                                             " precision_ratio = 0.001; };");
    assert_null(run_result_note_text(result, "sampled", 0));
    run_result_free(result);
}

static void test_twice(void **unused)
{
    static const char text[] = PKTGEN
        "measure = { warmup_us = 5000; duration_us = 3000; precision_ratio = 0.02; };";
    struct run_result *first = scenario_run(text), *second = scenario_run(text);
    (void)unused;
    assert_non_null(run_result_note_text(first, "sampled", 0));
    assert_true(run_result_fingerprint(first, 0) == run_result_fingerprint(second, 0));
    assert_string_equal(run_result_note_text(first, "sampled", 0),
                        run_result_note_text(second, "sampled", 0));
    run_result_free(first);
    run_result_free(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bandwidths),      cmocka_unit_test(test_copies),
        cmocka_unit_test(test_warm_up),         cmocka_unit_test(test_all_of_it),
        cmocka_unit_test(test_not_known),       cmocka_unit_test(test_twice),
        cmocka_unit_test(test_parts_of_series), cmocka_unit_test(test_series),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
