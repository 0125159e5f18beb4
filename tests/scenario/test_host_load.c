/* Cores that stream and devices beside them, on cases with a known answer: what the programs
 * memory_stream and host_counters say of latencies, pools and queues. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/scenario_fixture.h"

/* The defaults of the R730, with rows that are closed at once and no refresh: each access takes as
 * long as the one before. DRAM: 19 + 14.16 + 14.16 + 3.333. */
#define IDLE_LOAD_NS 80.653
#define TRCD_NS      14.16
#define CHANNELS     4
#define HOST(MORE)   HOST_WITH("", MORE)
#define HOST_WITH(DRAM, MORE)                                                                   \
    "hosts = { server = { cpu = { sockets = 1; cores_per_socket = 4; };"                        \
    " dram = { node_size = \"2 GiB\"; trfc_ns = 0; page_idle_ns = 0; ranks = 1; " DRAM "};"     \
    " ports = ( { name = \"rp0\"; socket = 0; lanes = 8; } );"                                  \
    " root_complex = { write_lines = 92; }; " MORE "}; };\n"                                    \
    "devices = { nfp = { type = \"pcie.requester\"; lanes = 8; }; };\n"                         \
    "cables = ( { from = \"server.s0.rp0\"; to = \"nfp.p0\"; lanes = 8; latency_ns = 0; } );\n" \
    "lending = { server = { host = \"server\"; }; };\n"                                         \
    "workload = { type = \"programs\"; measured = \"server\"; };\n"                             \
    "measure = { warmup_us = 20; duration_us = 100; };\n"
#define COUNTERS "counters = { type = \"host_counters\"; }; "
#define STREAM(MORE)                                                                   \
    "programs = { cores = { type = \"memory_stream\"; array_bytes = \"64 MiB\"; " MORE \
    "}; " COUNTERS "};"
#define DMA(MORE)                                                                          \
    "programs = { dma = { type = \"device_dma\"; on = \"server\"; device = \"nfp\"; " MORE \
    "}; " COUNTERS "};"

static void assert_near(double value, double expected, double share)
{
    if (fabs(value - expected) > share * fabs(expected))
        fail_msg("%g, expected %g", value, expected);
}

/* A pool of n line-fill buffers and a latency L give n x 64 B / L. */
static void test_pool_of_a_core(void **state)
{
    static const unsigned buffers[] = { 1, 2, 4 };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(buffers); i++) {
        const unsigned n = buffers[i];
        char text[2000];
        snprintf(text, sizeof(text), HOST("core = { line_fill_buffers = %u; }; ") STREAM(""), n);
        struct run_result *result = scenario_run(text);
        const double rate = scenario_value(result, "core_gbyte_s");
        assert_near(scenario_value(result, "core_latency_ns"), IDLE_LOAD_NS, 1e-4);
        assert_near(rate, n * 64.0 / IDLE_LOAD_NS, 2e-3);
        assert_near(scenario_value(result, "core_fill_buffers"), n, 2e-3);
        /* Each read opens its row, and then nothing is in its way. */
        assert_near(scenario_value(result, "row_miss_ratio"), 1, 2e-3);
        assert_true(scenario_value(result, "row_conflict_ratio") == 0);
        assert_near(scenario_value(result, "read_queueing_ns"), TRCD_NS, 1e-4);
        assert_near(scenario_value(result, "read_queue_entries"), rate / 64 * TRCD_NS / CHANNELS,
                    2e-3);
        /* Less than one read in a queue has none before it: the formula is the row's activation. */
        assert_near(scenario_value(result, "read_queueing_formula_ns"), TRCD_NS, 2e-3);
        assert_true(scenario_value(result, "write_queue_full_ratio") == 0);
        run_result_free(result);
    }
}

/* A store reads its line and has it written back: as much of one as of the other, from the
 * beginning. */
static void test_read_write(void **state)
{
    (void)state;
    struct run_result *result = scenario_run(HOST("")
                                                 STREAM("access = \"read_write\"; cores = 2;"));
    const double rfo = scenario_value(result, "server.s0.dram_read_rfo_bytes");
    assert_near(scenario_value(result, "core_gbyte_s"), scenario_value(result, "memory_gbyte_s"),
                0.01);
    assert_near(scenario_value(result, "server.s0.dram_write_victim_bytes"), rfo, 0.01);
    run_result_free(result);
}

/* A line that displaces a modified one keeps its line-fill buffer until that has been taken: the
 * same time more for each line. */
static void test_write_backs_of_a_core(void **state)
{
    double line_ns[2];
    (void)state;
    for (unsigned held = 0; held < 2; held++) {
        struct run_result *result = scenario_run(
            held ? HOST("core = { line_fill_buffers = 1; }; cache = { writeback_ns = 40; }; ")
                       STREAM("access = \"read_write\"; ")
                 : HOST("core = { line_fill_buffers = 1; }; ") STREAM("access = \"read_write\"; "));
        line_ns[held] = 2 * 64 / scenario_value(result, "core_gbyte_s");
        run_result_free(result);
    }
    assert_near(line_ns[1] - line_ns[0], 40, 0.03);
}

/* Writes that find no place wait, and nothing is lost: each line that is read is written back. */
static void test_full_write_queue(void **state)
{
    (void)state;
    struct run_result *result = scenario_run(
        HOST_WITH("write_queue = 16; ", "core = { line_fill_buffers = 20; }; ")
            STREAM("access = \"read_write\"; cores = 4;"));
    const double full = scenario_value(result, "write_queue_full_ratio"),
                 wait_ns = scenario_value(result, "write_admission_ns"),
                 writes = scenario_value(result, "server.s0.dram_write_bytes") / 64;
    assert_true(full > 0.01 && full < 1);
    /* At least one write waits while the queue is full. */
    assert_true(wait_ns * writes >= full * 100e3 * CHANNELS * 0.999);
    assert_true(scenario_value(result, "write_admission_formula_ns") > 0);
    assert_near(scenario_value(result, "server.s0.dram_read_rfo_bytes") / 64, writes, 0.02);
    run_result_free(result);
}

/* One line at a time: what a read holds its entry for is the root complex both ways, the way to
 * DRAM and back; a write without DDIO goes as far as the home agent. */
static void test_device(void **state)
{
    (void)state;
    struct run_result *result =
        scenario_run(HOST("") DMA("direction = \"read\"; transfer_bytes = 64; queue_depth = 1;"));
    const double read_ns = 60 + 6 + 12 + 5 + (19 + 14.16 + 14.16 + 3.333) + 7 + 60;
    assert_near(scenario_value(result, "device_latency_ns"), read_ns, 0.01);
    assert_near(scenario_value(result, "device_gbyte_s"),
                scenario_value(result, "throughput_gbyte_s"), 0.02);
    run_result_free(result);

    result = scenario_run(HOST("cache = { ddio = false; }; coherence = { write_accept_ns = 77; }; ")
                              DMA("transfer_bytes = 64; queue_depth = 1;"));
    assert_near(scenario_value(result, "device_latency_ns"), 60 + 6 + 12 + 5 + 77 + 60, 0.001);
    assert_near(scenario_value(result, "device_gbyte_s"),
                scenario_value(result, "throughput_gbyte_s"), 0.02);
    run_result_free(result);
}

/* No core streams and no device does anything: there is no latency, and nothing waits. */
static void test_nothing(void **state)
{
    (void)state;
    struct run_result *result = scenario_run(HOST("") STREAM("cores = 0;"));
    assert_true(scenario_value(result, "core_gbyte_s") == 0);
    assert_true(scenario_value(result, "device_gbyte_s") == 0);
    assert_true(scenario_value(result, "read_queue_entries") == 0);
    run_result_free(result);
}

static void test_mistakes(void **state)
{
    (void)state;
    scenario_refused(HOST("") STREAM("cores = 5;"), "5 CPUs of the host in a row");
    scenario_refused(HOST("") STREAM("node = 1;"), "a socket of the host that has memory");
    scenario_refused(HOST("") "programs = { cores = { type = \"memory_stream\";"
                              " array_bytes = \"513 MiB\"; cores = 2; }; };",
                     "at most half of the node's memory");
    scenario_refused(HOST("") "programs = { cores = { type = \"memory_stream\";"
                              " array_bytes = 65537; }; };",
                     "whole lines");
    scenario_refused(HOST("") "programs = { c = { type = \"host_counters\"; on = \"sever\"; }; };",
                     "did you mean \"server\"?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool_of_a_core),
        cmocka_unit_test(test_read_write),
        cmocka_unit_test(test_full_write_queue),
        cmocka_unit_test(test_device),
        cmocka_unit_test(test_write_backs_of_a_core),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
