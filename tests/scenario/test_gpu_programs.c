/* bandwidth_test and ping_pong on GPUs of one's own and on borrowed ones: the same where the way is
 * the same, and what is refused before anything runs. Every byte is checked by the programs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/scenario_fixture.h"

#define HOST(NAME, IOMMU)                                                  \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = 16; } );"   \
         " dram = { node_size = \"2 GiB\"; };"                             \
         " cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; };" \
         " firmware = { mmio_high_base_bytes = \"512 GiB\"; };"            \
         " iommu = { enabled = " IOMMU "; }; };\n"
#define BRIDGE \
    "{ type = \"pcie.ntb\"; lanes = 16; cable_lanes = 16; bar2_bytes = \"1 GiB\"; latency_ns = 110; };"
#define CHIP \
    "{ type = \"pcie.switch\"; downstream_ports = 3; lanes = 16; downstream_lanes = 16; latency_ns = 110; };"
#define GPUS "gpu0 = { type = \"gpu.cuda\"; %s }; gpu1 = { type = \"gpu.cuda\"; };"
/* One switch and one more chip between the borrower's root port and the GPUs, either way. */
#define LOCAL                                                                                                      \
    "hosts = { " HOST(                                                                                             \
        "server",                                                                                                  \
        "true") "};\n"                                                                                             \
                "devices = { chassis = " CHIP " adapter = " CHIP " other = " CHIP GPUS " };\n"                     \
                "cables = ( { from = \"server.s0.rp0\"; to = \"adapter.p0\"; },"                                   \
                " { from = \"adapter.p1\"; to = \"other.p0\"; }, { from = \"other.p1\"; to = \"chassis.p0\"; },"   \
                " { from = \"chassis.p1\"; to = \"gpu0.p0\"; }, { from = \"chassis.p2\"; to = \"gpu1.p0\"; } );\n" \
                "lending = { user = { host = \"server\"; }; };\n"
#define LENT                                                                                                    \
    "hosts = { " HOST("server", "true") HOST(                                                                   \
        "lender",                                                                                               \
        "false") "};\n"                                                                                         \
                 "devices = { n0 = " BRIDGE " n1 = " BRIDGE " chassis = " CHIP GPUS " };\n"                     \
                 "cables = ( { from = \"server.s0.rp0\"; to = \"n0.p0\"; },"                                    \
                 " { from = \"lender.s0.rp0\"; to = \"chassis.p0\"; },"                                         \
                 " { from = \"chassis.p1\"; to = \"gpu0.p0\"; }, { from = \"chassis.p2\"; to = \"gpu1.p0\"; }," \
                 " { from = \"chassis.p3\"; to = \"n1.p0\"; }, { from = \"n0.p1\"; to = \"n1.p1\"; } );\n"      \
                 "lending = { lender = { host = \"lender\"; lend = [\"gpu0\", \"gpu1\"]; };"                    \
                 " user = { host = \"server\"; borrow = [\"gpu0\", \"gpu1\"]; dma_window_bytes = \"128 MiB\"; }; };\n"
#define REST                                                      \
    "workload = { type = \"programs\"; measured = \"user\"; };\n" \
    "programs = { p = { host = \"user\"; %s }; };\n"              \
    "measure = { warmup_us = 0; duration_us = 1000000; };\n"

/* NULL, or what the run failed with (g_free). */
static char *run_into(const char *world, const char *settings, const char *program,
                      struct run_result *result)
{
    char *format = g_strconcat(world, REST, NULL);
    char *text = g_strdup_printf(format, settings, program);
    char *error = scenario_run_into(text, result);
    g_free(text);
    g_free(format);
    return error;
}

static double value(const char *world, const char *program, const char *metric)
{
    struct run_result *result = run_result_new();
    char *error = run_into(world, "", program, result);
    if (error != NULL)
        fail_msg("%s", error);
    const double v = scenario_value(result, metric);
    run_result_free(result);
    return v;
}

static void expect_equal(const char *program, const char *metric, double ratio)
{
    double local = value(LOCAL, program, metric), lent = value(LENT, program, metric);
    if (fabs(lent / local - 1.0) > ratio)
        fail_msg("%s: %s: local %.3f, lent %.3f", program, metric, local, lent);
}

#define BANDWIDTH "type = \"bandwidth_test\"; iterations = 5; timing = \"events\"; "

static void test_bandwidth(void **state)
{
    (void)state;
    expect_equal(BANDWIDTH "direction = \"read\"; transfer_bytes = 1048576;", "throughput_gbyte_s",
                 0.05);
    expect_equal(BANDWIDTH "direction = \"write\"; transfer_bytes = 1048576;", "throughput_gbyte_s",
                 0.05);
    expect_equal(BANDWIDTH "direction = \"read\"; transfer_bytes = 64;", "throughput_gbyte_s", 0.1);
}

/* What ends by itself begins with the measurement: a warm-up that would be long enough for all of
 * it changes nothing. */
static void test_warm_up(void **state)
{
    static const char *const programs[] = {
        BANDWIDTH "transfer_bytes = 65536;",
        "type = \"ping_pong\"; iterations = 50;",
    };
    static const char *const metrics[] = { "transfer_us", "latency_p50_ns" };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(programs); i++) {
        g_autoptr(GString) world = g_string_new(LOCAL REST);
        assert_int_equal(g_string_replace(world, "warmup_us = 0", "warmup_us = 50000", 0), 1);
        g_autofree char *text = g_strdup_printf(world->str, "", programs[i]);
        struct run_result *result = scenario_run(text);
        const double without = value(LOCAL, programs[i], metrics[i]);
        assert_true(fabs(scenario_value(result, metrics[i]) / without - 1) < 0.02);
        run_result_free(result);
    }
}

/* A program that is left out needs no copy engine, of which a GPU has two. */
static void test_left_out(void **state)
{
    (void)state;
    const char *const more = "transfer_bytes = 65536; }; q = { host = \"user\"; " BANDWIDTH
                             "direction = \"write\"; transfer_bytes = 65536; }; "
                             "r = { host = \"user\"; enabled = false; " BANDWIDTH;
    g_autofree char *programs = g_strconcat(BANDWIDTH, more, NULL);
    assert_true(value(LOCAL, programs, "q.throughput_gbyte_s") > 0);
}

/* Memory slower than the link bounds copies out of it and into it alike. */
static void test_slow_memory(void **state)
{
    static const char *const copies[] = { BANDWIDTH "direction = \"read\";",
                                          BANDWIDTH "direction = \"write\";" };
    static const char *const worlds[] = { LOCAL, LENT };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(worlds); i++) {
        GString *world = g_string_new(worlds[i]);
        assert_true(g_string_replace(world, "type = \"gpu.cuda\";",
                                     "type = \"gpu.cuda\"; memory_gbyte_s = 1;", 0) > 0);
        for (unsigned k = 0; k < SIM_N_ELEMENTS(copies); k++) {
            const double rate = value(world->str, copies[k], "throughput_gbyte_s");
            assert_true(rate > 0.98 && rate < 1.0);
        }
        g_string_free(world, TRUE);
    }
}

/* The switch leads from one to the other, if nobody's IOMMU is in the way: the lender's is off. */
static void test_peers(void **state)
{
    (void)state;
    const char *const copy = BANDWIDTH "direction = \"peer\"; transfer_bytes = 1048576;";
    assert_true(value(LENT, copy, "throughput_gbyte_s") > 11.0);
    /* All packets of the local ones go up to the root complex for their IOMMU. */
    double local_ns = value(LOCAL, "type = \"ping_pong\"; iterations = 100;", "latency_p50_ns");
    double lent_ns = value(LENT, "type = \"ping_pong\"; iterations = 100;", "latency_p50_ns");
    assert_true(lent_ns > 1300.0 && lent_ns < 1700.0);
    assert_true(local_ns > lent_ns + 500.0);
}

#define AND_Q2 "}; r = { host = \"user\"; cpu = 3; "
#define AND_Q  "}; q = { host = \"user\"; cpu = 2; "

/* A copy engine and a direction of the links each: writes are about as fast as alone. What reads
 * ask for shares the direction of the writes, and waits: 128 lines under way, which are all that
 * the root complex takes, are fewer GB/s then. */
static void test_both_directions(void **state)
{
    static const char *const alone[] = { BANDWIDTH "direction = \"read\";",
                                         BANDWIDTH "direction = \"write\";" };
    static const char *const worlds[] = { LOCAL, LENT };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(worlds); i++) {
        struct run_result *result = run_result_new();
        char *error = run_into(
            worlds[i], "",
            BANDWIDTH "direction = \"read\";" AND_Q BANDWIDTH "direction = \"write\";", result);
        if (error != NULL)
            fail_msg("%s", error);
        const double read = value(worlds[i], alone[0], "throughput_gbyte_s"),
                     write = value(worlds[i], alone[1], "p.throughput_gbyte_s");
        const double p = scenario_value(result, "p.throughput_gbyte_s"),
                     q = scenario_value(result, "q.throughput_gbyte_s");
        assert_true(p > 0.7 * read && p < 1.01 * read);
        assert_true(q > 0.8 * write && q < 1.01 * write);
        assert_false(run_result_has(result, RECORD_METRIC, "throughput_gbyte_s"));
        run_result_free(result);
    }
}

/* Two types with metrics of the same names; copies of one GPU beside its kernels. */
static void test_types_together(void **state)
{
    (void)state;
    struct run_result *result = run_result_new();
    char *error = run_into(LENT, "",
                           "type = \"ping_pong\"; iterations = 100;" AND_Q BANDWIDTH
                           "transfer_bytes = 65536;",
                           result);
    if (error != NULL)
        fail_msg("%s", error);
    assert_true(scenario_value(result, "p.latency_p50_ns") ==
                scenario_value(result, "latency_p50_ns"));
    assert_true(scenario_value(result, "q.transfer_us") == scenario_value(result, "transfer_us"));
    run_result_free(result);
}

/* ---- A GPU and an NVMe device ---------------------------------------------------------------- */

/* Instead of the second GPU a controller, which the programs drive themselves. */
static char *storage_world(const char *user)
{
    GString *world = g_string_new(LENT);
    assert_true(g_string_replace(world, "gpu1 = { type = \"gpu.cuda\";",
                                 "gpu1 = { type = \"nvme.controller\"; lanes = 16;"
                                 " capacity_bytes = \"1 GiB\"; enable_latency_us = 10;",
                                 0) == 1);
    assert_true(g_string_replace(world, "user = {", user, 0) == 1);
    assert_true(g_string_replace(world, "gpu1", "ssd", 0) > 2);
    return g_string_free(world, FALSE);
}
#define STORAGE   "type = \"gpu_storage\"; iterations = 200; "
#define NO_DRIVER "user = { nvme_driver = false; "

static void test_storage(void **state)
{
    struct run_result *gpu = run_result_new(), *host = run_result_new(), *deep = run_result_new();
    char *world = storage_world(NO_DRIVER);
    (void)state;
    assert_null(run_into(world, "", STORAGE, gpu));
    assert_null(run_into(world, "", STORAGE "initiator = \"host\";", host));
    assert_null(run_into(world, "", STORAGE "queue_depth = 8;", deep));
    /* The bridge is crossed four times less: question, command, doorbell or completion, answer. */
    assert_true(scenario_value(host, "latency_p50_ns") >
                scenario_value(gpu, "latency_p50_ns") + 4 * 110);
    /* Little: what is left is the kernel's launch, and its work between two commands. */
    const double one = scenario_value(gpu, "iops") * scenario_value(gpu, "latency_mean_ns") * 1e-9;
    const double eight = scenario_value(deep, "iops") * scenario_value(deep, "latency_mean_ns") *
                         1e-9;
    assert_true(one > 0.9 && one <= 1.0);
    assert_true(eight > 7.0 && eight <= 8.0);
    assert_true(scenario_value(deep, "iops") > 3 * scenario_value(gpu, "iops"));
    run_result_free(gpu);
    run_result_free(host);
    run_result_free(deep);
    g_free(world);
}

static void refused_in(const char *world, const char *settings, const char *program,
                       const char *expected)
{
    struct run_result *result = run_result_new();
    char *error = run_into(world, settings, program, result);
    if (error == NULL || strstr(error, expected) == NULL)
        fail_msg("expected \"%s\", got \"%s\"", expected, error != NULL ? error : "nothing");
    g_free(error);
    run_result_free(result);
}

static void refused(const char *settings, const char *program, const char *expected)
{
    refused_in(LENT, settings, program, expected);
}

static void test_storage_mistakes(void **state)
{
    char *driven = storage_world("user = { "), *world = storage_world(NO_DRIVER);
    (void)state;
    refused_in(driven, "", STORAGE, "a host with nvme_driver = false");
    refused_in(world, "", STORAGE "initiator = \"host\"; queue_depth = 2;",
               "expected 1 where initiator");
    refused_in(world, "", STORAGE "device = \"gpu0\";", "a device of type nvme.controller");
    refused_in(world, "", STORAGE "span_bytes = 5000;", "a multiple of 4096");
    refused_in(world, "", STORAGE "span_bytes = 1073745920;", "span_bytes");
    refused_in(world, "", STORAGE AND_Q STORAGE, "a GPU on which no other program has a kernel");
    g_free(driven);
    g_free(world);
}

static void test_mistakes(void **state)
{
    (void)state;
    refused("", BANDWIDTH "gpu = \"n0\";", "a device of type gpu.cuda that the host borrows");
    refused("", BANDWIDTH "direction = \"peer\"; peer = \"gpu0\";", "another GPU");
    refused("", BANDWIDTH AND_Q BANDWIDTH AND_Q2 BANDWIDTH,
            "programs.r.gpu: found \"gpu0\" (the default), expected a GPU with 3 copy engines");
    refused("", "type = \"ping_pong\";" AND_Q "type = \"ping_pong\";",
            "a GPU on which no other program has a kernel");
    refused("", BANDWIDTH "transfer_bytes = 100;", "a multiple of 64 bytes");
    refused("", BANDWIDTH "analyser = \"chassis\";", "pcie.ntb");
    refused("", "type = \"ping_pong\"; peer = \"gpu0\";", "another GPU");
    /* 38 bits do not reach the aperture at 512 GiB: the driver says so, and nothing runs. */
    refused("address_bits = 38;", BANDWIDTH, "no driver");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warm_up),        cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_bandwidth),      cmocka_unit_test(test_slow_memory),
        cmocka_unit_test(test_peers),          cmocka_unit_test(test_both_directions),
        cmocka_unit_test(test_types_together), cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_storage),        cmocka_unit_test(test_storage_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
