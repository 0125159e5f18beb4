/*
 * A client of a shared NVMe controller with two adapters, the cable of the one in use pulled at a
 * thousand random moments of reads and writes: every I/O ends, none with an error, and what is read
 * is what was written last (the program compares). Mappings survive, or do not; both cables; pulls
 * in quick succession; a controller that is slow to let go.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/scenario_fixture.h"

#define HOST                                                                                     \
    "{ cpu = { sockets = 1; cores_per_socket = 8; }; dram = { node_size = \"1 GiB\"; };"         \
    " cache = { llc_size = 2097152; llc_slices = 2; llc_ways = 16; };"                           \
    " root_complex = { completion_timeout_us = 300.0; };"                                        \
    " ports = ( { name = \"rp0\"; socket = 0; lanes = 8; },"                                     \
    " { name = \"rp1\"; socket = 0; lanes = 8; }, { name = \"rp2\"; socket = 0; lanes = 4; } );" \
    " iommu = { enabled = %s; }; };\n"
#define BRIDGE "{ type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; bar2_bytes = \"1 GiB\"; };\n"
#define WORLD                                                                                          \
    "hosts = { borrower = " HOST "lender = " HOST "};\n"                                               \
    "devices = { a0 = " BRIDGE "a1 = " BRIDGE "b0 = " BRIDGE "b1 = " BRIDGE                            \
    " ssd = { type = \"nvme.controller\"; capacity_bytes = \"1 GiB\"; enable_latency_us = 10;"         \
    " read_latency_ns = 30000; write_latency_ns = 20000; jitter_mean_ns = 2000;"                       \
    " completion_timeout_us = %u.0; }; };\n"                                                           \
    "cables = ( { from = \"borrower.s0.rp0\"; to = \"a0.p0\"; },"                                      \
    " { from = \"borrower.s0.rp1\"; to = \"a1.p0\"; }, { from = \"lender.s0.rp0\"; to = \"b0.p0\"; }," \
    " { from = \"lender.s0.rp1\"; to = \"b1.p0\"; }, { from = \"lender.s0.rp2\"; to = \"ssd.p0\"; },"  \
    " { from = \"a0.p1\"; to = \"b0.p1\"; training_us = 20.0; },"                                      \
    " { from = \"a1.p1\"; to = \"b1.p1\"; training_us = 20.0; } );\n"                                  \
    "lending = { borrower = { host = \"borrower\"; borrow = []; hold_links = %s; };"                   \
    " lender = { host = \"lender\"; lend = [\"ssd\"]; hold_links = %s; }; };\n"                        \
    "workload = { type = \"programs\"; measured = \"borrower\"; };\n"                                  \
    "measure = { warmup_us = 5000; duration_us = 60000000; };\n"                                       \
    "programs = { m = { type = \"nvme_manager\"; on = \"lender\"; lease_ms = 500.0; };"                \
    " p = { type = \"nvme_failover\"; bridge0 = \"a0\"; bridge1 = \"a1\"; cpu = 6; %s }; };\n"

/* timeout_us: of the controller's reads; 0: 200 */
static struct run_result *run_with(bool iommu, bool hold, unsigned timeout_us, const char *program)
{
    const char *const translate = iommu ? "true" : "false", *const holds = hold ? "true" : "false";
    g_autofree char *text = g_strdup_printf(
        WORLD, translate, translate, timeout_us != 0 ? timeout_us : 200, holds, holds, program);
    return scenario_run(text);
}

static struct run_result *run(bool iommu, bool hold, const char *program)
{
    return run_with(iommu, hold, 0, program);
}

/* Pulls that are all failed over. */
static unsigned pulls_of(unsigned pulls)
{
    return test_rounds(pulls, 8);
}

static struct run_result *run_pulls(bool iommu, bool hold, unsigned pulls, const char *program)
{
    g_autofree char *text = g_strdup_printf("pulls = %u; %s", pulls, program);
    return run(iommu, hold, text);
}

static void expect(struct run_result *result, const char *metric, double value)
{
    if (scenario_value(result, metric) != value)
        fail_msg("%s: %g, expected %g", metric, scenario_value(result, metric), value);
}

static void expect_whole(struct run_result *result, double pulls)
{
    expect(result, "p.ios_lost", 0);
    expect(result, "p.ios_failed", 0);
    expect(result, "p.failovers", pulls);
    assert_true(scenario_value(result, "p.ios") > 20 * pulls);
    assert_true(scenario_value(result, "p.ios_failed_over") >= pulls);
}

/* The cable stays out: the other path goes on. */
static void test_pull(void **state)
{
    (void)state;
    struct run_result *result = run(true, true,
                                    "event = \"cable_pull\"; out_us = 3000.0; after_us = 60.0;");
    expect(result, "p.ios_lost", 0);
    expect(result, "p.failovers", 1);
    assert_true(scenario_value(result, "p.switch_us") < 1000);
    run_result_free(result);
}

/* It comes back; mappings are as they were. */
static void test_back(void **state)
{
    const unsigned pulls = pulls_of(200);
    (void)state;
    struct run_result *result =
        run_pulls(true, true, pulls, "event = \"cable_back\"; out_us = 400.0; after_us = 60.0;");
    expect_whole(result, pulls);
    expect(result, "p.paths_resumed", pulls);
    run_result_free(result);
}

/* It comes back, and all has to be mapped anew. */
static void test_remap(void **state)
{
    const unsigned pulls = pulls_of(400);
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct run_result *result =
            run_pulls(i != 0, false, pulls,
                      "event = \"remap\"; out_us = 400.0; after_us = 60.0; queue_depth = 8;");
        expect_whole(result, pulls);
        expect(result, "p.paths_rebuilt", pulls);
        run_result_free(result);
    }
}

/* The host's own adapters, both of them; in either order. */
static void test_bridges(void **state)
{
    static const char *const refused[][3] = {
        { "b0", "a1",
          "programs.p.bridge0: found \"b0\" (a string), expected a pcie.ntb of borrower with a cable" },
        { "a0", "b1",
          "programs.p.bridge1: found \"b1\" (a string), expected a pcie.ntb of borrower with a cable" },
        { "a0", "a0",
          "programs.p.bridge1: found \"a0\" (a string), expected the other adapter, as bridge0" },
        { "a0", "a11", "did you mean \"a1\"?" },
        { "ssd", "a1", "programs.p.bridge0: found \"ssd\"" },
    };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(refused); i++) {
        g_autofree char *text = g_strdup_printf(WORLD, "true", "true", 200u, "true", "true", "");
        g_auto(GStrv) parts = g_strsplit(text, "bridge0 = \"a0\"; bridge1 = \"a1\"", 2);
        g_autofree char *wrong = g_strdup_printf("%sbridge0 = \"%s\"; bridge1 = \"%s\"%s", parts[0],
                                                 refused[i][0], refused[i][1], parts[1]);
        scenario_refused(wrong, refused[i][2]);
    }
    g_autofree char *text = g_strdup_printf(WORLD, "true", "true", 200u, "true", "true",
                                            "out_us = 3000.0; after_us = 60.0;");
    g_auto(GStrv) parts = g_strsplit(text, "bridge0 = \"a0\"; bridge1 = \"a1\"", 2);
    g_autofree char *swapped = g_strconcat(parts[0], "bridge0 = \"a1\"; bridge1 = \"a0\"", parts[1],
                                           NULL);
    struct run_result *result = scenario_run(swapped);
    expect(result, "p.failovers", 1);
    run_result_free(result);
}

/* The controller holds a deletion up for longer than a client waits for the manager (100 ms): it
 * asks again, and issues nothing before the deletion is done. */
static void test_slow_deletion(void **state)
{
    (void)state;
    struct run_result *result = run_with(
        true, true, 150000,
        "event = \"cable_back\"; pulls = 8; out_us = 400.0; after_us = 60.0; read_ratio = 0.1;"
        " queue_depth = 16; block_bytes = 16384;");
    expect(result, "p.ios_lost", 0);
    expect(result, "p.ios_failed", 0);
    expect(result, "p.failovers", 8);
    assert_true(scenario_value(result, "p.switch_max_us") > 100000);
    run_result_free(result);
}

/* Both cables, the second some time after the first, and back: all goes on where connections are
 * held. */
static void test_both(void **state)
{
    (void)state;
    struct run_result *result =
        run(true, true,
            "event = \"cable_back\"; cables = 2; gap_us = 1500.0; pulls = 100; out_us = 400.0;"
            " after_us = 60.0;");
    expect(result, "p.ios_lost", 0);
    expect(result, "p.ios_failed", 0);
    assert_true(scenario_value(result, "p.ios") > 2000);
    run_result_free(result);
}

/* Where they are not held the device is lost, and all I/O ends. */
static void test_all_lost(void **state)
{
    (void)state;
    struct run_result *result =
        run(true, false, "event = \"remap\"; cables = 2; gap_us = 100.0; out_us = 400.0;");
    expect(result, "p.ios_lost", 0);
    expect(result, "p.ios_failed", 4);
    run_result_free(result);
}

/* Pulls that follow each other whatever is restored by then. */
static void test_quick(void **state)
{
    (void)state;
    struct run_result *result =
        run(true, true,
            "event = \"cable_back\"; until_whole = false; pulls = 200; out_us = 250.0;"
            " after_us = 300.0; queue_depth = 8;");
    expect(result, "p.ios_lost", 0);
    expect(result, "p.ios_failed", 0);
    assert_true(scenario_value(result, "p.failovers") > 10);
    run_result_free(result);
}

/* The same where they are not held. Now and then the lender has lost both paths when one is back:
 * it has ended the borrow then, and all I/O ends. */
static void test_quick_remap(void **state)
{
    (void)state;
    struct run_result *result =
        run(true, false,
            "event = \"remap\"; until_whole = false; pulls = 340; out_us = 250.0;"
            " after_us = 300.0;");
    expect(result, "p.ios_lost", 0);
    run_result_free(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pull),          cmocka_unit_test(test_back),
        cmocka_unit_test(test_bridges),       cmocka_unit_test(test_remap),
        cmocka_unit_test(test_slow_deletion), cmocka_unit_test(test_both),
        cmocka_unit_test(test_all_lost),      cmocka_unit_test(test_quick),
        cmocka_unit_test(test_quick_remap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
