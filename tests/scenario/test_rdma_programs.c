/*
 * rdma_perf on two small hosts: each of its tests runs and checks its bytes, latencies and rates
 * are what their definitions say, wrong settings are refused, two programs share adapters.
 */
#include <math.h>

#include "tests/support/scenario_fixture.h"

#define HOST(NAME)                                                       \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = 16; } );" \
         " dram = { node_size = \"1 GiB\"; };"                           \
         " cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; }; };\n"
#define SCENARIO(PROGRAMS)                                                                            \
    "hosts = { " HOST("a") HOST(                                                                      \
        "b") "};\n"                                                                                   \
             "devices = { r0 = { type = \"rdma.adapter\"; }; r1 = { type = \"rdma.adapter\"; }; };\n" \
             "cables = ( { from = \"a.s0.rp0\"; to = \"r0.p0\"; },"                                   \
             " { from = \"b.s0.rp0\"; to = \"r1.p0\"; }, { from = \"r0.i0\"; to = \"r1.i0\"; } );\n"  \
             "lending = { a = { host = \"a\"; }; b = { host = \"b\"; }; };\n"                         \
             "workload = { type = \"programs\"; measured = \"a\"; };\n"                               \
             "programs = { " PROGRAMS " };\n"                                                         \
             "measure = { warmup_us = 500; duration_us = 1000000; };\n"
#define PERF(NAME, MORE)                                                                               \
    NAME                                                                                               \
        " = { type = \"rdma_perf\"; on = \"a\"; peer = \"b\"; device = \"r0\"; peer_device = \"r1\"; " \
        "iterations = 60; " MORE " };"

static double run(const char *text, const char *metric)
{
    struct run_result *result = scenario_run(text);
    const double value = scenario_value(result, metric);
    run_result_free(result);
    return value;
}

static void test_every_test_runs(void **state)
{
    static const char *const tests[] = { "write_lat", "read_lat", "send_lat",
                                         "write_bw",  "read_bw",  "send_bw" };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(tests); i++)
        for (unsigned size = 0; size < 2; size++) {
            char *text =
                g_strdup_printf(SCENARIO(PERF("p", "test = \"%s\"; bytes = %u; queue_depth = 8;")),
                                tests[i], size == 0 ? 2 : 10000);
            struct run_result *result = scenario_run(text);
            const double latency_ns = scenario_value(result, "p.latency_p50_ns");
            print_message("%s: %.0f ns\n", tests[i], latency_ns);
            assert_true(latency_ns > 600);
            assert_true(scenario_value(result, "latency_p99_ns") >= latency_ns);
            assert_true(scenario_value(result, "throughput_gbyte_s") < 12.5);
            run_result_free(result);
            g_free(text);
        }
}

/* An adapter that serves fewer reads at once than the other one could ask for is asked for as many,
 * on a good wire and on a bad one. */
static void test_reads_that_the_peer_serves(void **state)
{
    static const char text[] =
        SCENARIO(PERF("p", "test = \"read_bw\"; bytes = 4097; mtu_bytes = 256; queue_depth = 64;"));
    static const char *const more[] = { "inline_bytes = 256;", "reads_in_flight = 4;",
                                        "reads_in_flight = 1;" };
    double mpps[SIM_N_ELEMENTS(more)];
    (void)state;
    for (unsigned i = 0; i < 2 * SIM_N_ELEMENTS(more); i++) {
        g_autoptr(GString) changed = g_string_new(text);
        g_autofree char *r1 = g_strdup_printf("r1 = { type = \"rdma.adapter\"; %s", more[i / 2]);
        g_string_replace(changed, "r1 = { type = \"rdma.adapter\";", r1, 1);
        if (i % 2 == 1)
            g_string_replace(changed, "to = \"r1.i0\";", "to = \"r1.i0\"; loss_ratio = 0.005;", 1);
        const double is = run(changed->str, "message_rate_mpps");
        if (i % 2 == 0)
            mpps[i / 2] = is;
    }
    assert_true(mpps[0] > 1.2 * mpps[2]);
    assert_true(mpps[1] > 1.2 * mpps[2]);
}

/* Sends find their receive, which costs more than a byte in memory; a read goes there and back. */
static void test_order_of_latencies(void **state)
{
    (void)state;
    const double write_ns = run(SCENARIO(PERF("p", "test = \"write_lat\";")), "latency_p50_ns");
    const double send_ns = run(SCENARIO(PERF("p", "test = \"send_lat\";")), "latency_p50_ns");
    const double read_ns = run(SCENARIO(PERF("p", "test = \"read_lat\";")), "latency_p50_ns");
    const double doorbell_ns = run(SCENARIO(PERF("p", "test = \"write_lat\"; blueflame = false;")),
                                   "latency_p50_ns");
    print_message("write %.0f, by doorbell %.0f, send %.0f, read %.0f ns\n", write_ns, doorbell_ns,
                  send_ns, read_ns);
    assert_true(write_ns < send_ns && send_ns < read_ns);
    assert_true(doorbell_ns > write_ns + 200); /* the read of the entry */
    assert_true(write_ns > 700 && write_ns < 1000);
}

static void test_two_programs_share_the_wire(void **state)
{
    (void)state;
    struct run_result *result = scenario_run(
        SCENARIO(PERF("p", "test = \"write_bw\"; bytes = 65536; queue_depth = 8;")
                     PERF("q", "test = \"write_bw\"; bytes = 65536; queue_depth = 8;")));
    const double p = scenario_value(result, "p.throughput_gbyte_s");
    const double q = scenario_value(result, "q.throughput_gbyte_s");
    assert_true(p > 5.5 && q > 5.5 && p + q < 13.5); /* the ends of their times differ */
    assert_true(isnan(run_result_value(result, "throughput_gbyte_s"))); /* so they do not add up */
    run_result_free(result);
}

/* Adapters have local identifiers, however many hosts there are. */
static void test_many_hosts(void **state)
{
    g_autoptr(GString) hosts = g_string_new("hosts = { ");
    g_autoptr(GString) lending = g_string_new("lending = { ");
    (void)state;
    for (unsigned i = 0; i < 257; i++) {
        g_string_append_printf(
            hosts,
            "h%u = { ports = ( { name = \"rp0\"; socket = 0; lanes = 16; } ); cpu = { sockets = 1;"
            " cores_per_socket = 2; }; dram = { node_size = \"64 MiB\"; }; };\n",
            i);
        g_string_append_printf(lending, "h%u = { host = \"h%u\"; };\n", i, i);
    }
    static const unsigned peers[] = { 190, 191, 254, 255, 256 };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(peers); i++) {
        g_autofree char *text = g_strdup_printf(
            "%s};\n%s};\ndevices = { r0 = { type = \"rdma.adapter\"; }; r1 = { type = "
            "\"rdma.adapter\"; }; };\ncables = ( { from = \"h0.s0.rp0\"; to = \"r0.p0\"; },"
            " { from = \"h%u.s0.rp0\"; to = \"r1.p0\"; }, { from = \"r0.i0\"; to = \"r1.i0\"; } );\n"
            "workload = { type = \"programs\"; measured = \"h0\"; };\n"
            "programs = { p = { type = \"rdma_perf\"; on = \"h0\"; peer = \"h%u\"; device = \"r0\";"
            " peer_device = \"r1\"; iterations = 20; }; };\n"
            "measure = { warmup_us = 500; duration_us = 1000000; };\n",
            hosts->str, lending->str, peers[i], peers[i]);
        assert_true(run(text, "latency_p50_ns") > 600);
    }
}

/* A borrowed adapter that a cable takes away: who polls gets what is posted back, or sees that the
 * adapter is gone, and the run says so. */
static void test_borrowed_adapter_goes(void **state)
{
#define LENDER(NAME)                                                                                \
    NAME                                                                                            \
        " = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; }, { name = \"rp1\"; socket = 0;"  \
        " lanes = 8; }, { name = \"rp2\"; socket = 0; lanes = 8; } ); iommu = { enabled = true; };" \
        " dram = { node_size = \"1 GiB\"; };"                                                       \
        " cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; }; };\n"
#define NTB " = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; bar2_bytes = \"1 GiB\"; };"
    static const char text[] = "hosts = { " LENDER("a") LENDER(
        "b") "};\n"
             "devices = { r0 = { type = \"rdma.adapter\"; }; r1 = { type = \"rdma.adapter\"; };"
             " n0" NTB " n1" NTB " };\n"
             "cables = ( { from = \"a.s0.rp0\"; to = \"n0.p0\"; }, { from = \"b.s0.rp0\"; to = \"n1.p0\"; },"
             " { from = \"b.s0.rp1\"; to = \"r0.p0\"; }, { from = \"b.s0.rp2\"; to = \"r1.p0\"; },"
             " { from = \"n0.p1\"; to = \"n1.p1\"; }, { from = \"r0.i0\"; to = \"r1.i0\"; } );\n"
             "lending = { a = { host = \"a\"; borrow = [\"r0\"]; };"
             " b = { host = \"b\"; lend = [\"r0\"]; }; };\n"
             "workload = { type = \"programs\"; measured = \"a\"; };\n"
             "measure = { warmup_us = 1000; duration_us = 500000; };\n"
             "programs = { " PERF("p", "") " f = { type = \"fault\"; device = \"n0\"; port = 1;"
                                           " event = \"link_down\"; after_us = 200; }; };\n";
    static const char *const cases[][2] = {
        { "test = \"write_bw\";", "a message ended with status 5" },
        { "test = \"send_lat\";", "a message ended with status 5" },
        { "test = \"write_lat\";", "a, waiting for a message: No such device" },
    };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        g_autofree char *test = g_strconcat("iterations = 10000000; ", cases[i][0], NULL);
        g_autoptr(GString) changed = g_string_new(text);
        assert_int_equal(g_string_replace(changed, "iterations = 60;", test, 1), 1);
        scenario_fails(changed->str, cases[i][1]);
    }
}

static void test_wrong_settings(void **state)
{
    (void)state;
    scenario_refused(SCENARIO(PERF("p", "mtu_bytes = 1000;")), "mtu_bytes");
    scenario_refused(SCENARIO(PERF("p", "cpu = 7;")), "cpu");
    scenario_refused_among(SCENARIO("p = { type = \"rdma_perf\"; on = \"a\"; peer = \"a\"; "
                                    "device = \"r0\"; peer_device = \"r0\"; };"),
                           "another host than `on`");
    scenario_refused(SCENARIO("p = { type = \"rdma_perf\"; on = \"a\"; peer = \"b\"; "
                              "device = \"r0\"; peer_device = \"r0\"; };"),
                     "peer_device");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_test_runs),
        cmocka_unit_test(test_reads_that_the_peer_serves),
        cmocka_unit_test(test_order_of_latencies),
        cmocka_unit_test(test_two_programs_share_the_wire),
        cmocka_unit_test(test_many_hosts),
        cmocka_unit_test(test_borrowed_adapter_goes),
        cmocka_unit_test(test_wrong_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
