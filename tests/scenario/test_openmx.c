/* The programs of workloads/openmx on two hosts with Myri-10G adapters: what must hold of their
 * results whatever the costs are (every message is checked where it arrives, else a run fails), and
 * what is refused. */
#include <stdio.h>
#include <string.h>

#include "tests/support/scenario_fixture.h"
#include "tests/support/test.h"

#define HOST(NAME)                                                                             \
    NAME " = { cpu = { sockets = 2; cores_per_socket = 4; };"                                  \
         " cache = { l2_size = \"4 MiB\"; l2_ways = 16; llc_size = 0; l2_cores = 2;"           \
         " ddio = false; };"                                                                   \
         " coherence = { protocol = \"front_side_bus\"; }; dram = { node_size = \"1 GiB\"; };" \
         " os = { c1_exit_ns = 2000; c1e_after_us = 0; c1e_exit_ns = 4000; };"                 \
         " ports = ( { name = \"rp0\"; socket = 0; lanes = 8; } ); };"
#define NET(NAME, NIC)                                                       \
    NAME " = { host = \"" NAME "\"; device = \"" NIC "\"; mtu_bytes = 9000;" \
         " adaptive_moderation = false; rx_moderation_us = 0; interrupts = \"%s\"; };"
#define TEXT                                                                                                \
    "hosts = { " HOST("server") HOST(                                                                       \
        "client") " };\n"                                                                                   \
                  "devices = { a = { type = \"myri.myri10g\"; firmware = \"%s\"; };"                        \
                  " b = { type = \"myri.myri10g\"; firmware = \"%s\"; }; };\n"                              \
                  "cables = ( { from = \"server.s0.rp0\"; to = \"a.p0\"; },"                                \
                  " { from = \"client.s0.rp0\"; to = \"b.p0\"; }, { from = \"a.e0\"; to = \"b.e0\"; } );\n" \
                  "network = { " NET("server", "a")                                                         \
                      NET("client",                                                                         \
                          "b") " };\n"                                                                      \
                               "workload = { type = \"programs\"; measured = \"server\"; };\n"              \
                               "measure = { warmup_us = 1000; duration_us = 10000000; };\n"                 \
                               "programs = { p = { %s }; };\n"

struct setup {
    const char *firmware, *interrupts;
};
static const struct setup one_queue = { "ethernet", "fixed" },
                          in_turns = { "ethernet", "round_robin" },
                          queues = { "multiqueue", "fixed" }, native = { "mx", "fixed" };

static char text[4000];

static const char *scenario(const struct setup *setup, const char *program)
{
    snprintf(text, sizeof(text), TEXT, setup->firmware, setup->firmware, setup->interrupts,
             setup->interrupts, program);
    return text;
}

static double value(const struct setup *setup, const char *program, const char *name)
{
    struct run_result *result = scenario_run(scenario(setup, program));
    const double is = scenario_value(result, name);
    run_result_free(result);
    return is;
}

#define PING_PONG "type = \"imb\"; repetitions = 20; "

#define LAPS PING_PONG "warm_ups = 1100; " /* of the queues of events: their lines are known */

/* A process on the interrupt's core keeps the lines of events, one elsewhere gets them from another
 * cache. */
static void test_user_misses(void **state)
{
    (void)state;
    const double same = value(&one_queue, LAPS, "l2_miss_user_pct");
    const double shared = value(&one_queue, LAPS "cpu = 1;", "l2_miss_user_pct");
    const double other = value(&one_queue, LAPS "cpu = 4;", "l2_miss_user_pct");
    const double turns = value(&in_turns, LAPS, "l2_miss_user_pct");
    assert_true(same < other / 3 && shared < other / 3);
    assert_true(same < turns / 3 && turns > 10);
}

/* An idle core has to wake up before it handles a packet; a busy one not. */
static void test_idle_cores(void **state)
{
    (void)state;
    const double busy_us = value(&in_turns, PING_PONG, "latency_0b_us");
    const double idle_us = value(&in_turns, PING_PONG "busy = false;", "latency_0b_us");
    const double bound_us = value(&one_queue, PING_PONG "busy = false;", "latency_0b_us");
    assert_true(idle_us > busy_us + 1.5 && idle_us < busy_us + 6);
    assert_true(bound_us < busy_us + 1);
}

/* More bytes take longer, and no more than the wire goes through: 10 Gbit/s are 1192 MiB/s. */
static void test_sizes(void **state)
{
    (void)state;
    const double small_us = value(&queues, PING_PONG "message_bytes = 100;", "time_us");
    const double large_us = value(&queues, PING_PONG "message_bytes = 30000;", "time_us");
    const double mib_s = value(&queues, "type = \"imb\"; repetitions = 4; message_bytes = 1048576;",
                               "throughput_mib_s");
    const double native_us = value(&native, PING_PONG "message_bytes = 100;", "time_us");
    assert_true(small_us > 2 && small_us + 20 < large_us);
    assert_true(mib_s > 300 && mib_s < 1192);
    assert_true(native_us < small_us);
}

/* Bruck, linear, pairwise; each with its messages within the host and between hosts. */
static void test_alltoall(void **state)
{
    static const struct setup *const setups[] = { &one_queue, &in_turns, &queues, &native };
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        const double least_us =
            value(setups[i],
                  "type = \"imb\"; benchmark = \"alltoall\"; repetitions = 3; message_bytes = 16;",
                  "time_us");
        const double most_us = value(
            setups[i],
            "type = \"imb\"; benchmark = \"alltoall\"; repetitions = 2; message_bytes = 5000;",
            "time_us");
        assert_true(least_us > 4 * 2 && most_us > 2 * least_us);
    }
}

/* Computation is part of the time, and units are alike. */
static void test_nas(void **state)
{
    (void)state;
#define CG "type = \"nas\"; benchmark = \"cg.B.16\"; "
    const double none_s = value(&queues, CG "compute_us = 0;", "time_s");
    struct run_result *result = scenario_run(scenario(&queues, CG "compute_us = 2000; units = 3;"));
    const double some_s = scenario_value(result, "time_s");
    const double computed_s = 75 * 26 * 0.002;
    assert_true(none_s > 0.1 && some_s > computed_s && some_s < computed_s + 2 * none_s);
    assert_true(scenario_value(result, "unit_spread_pct") < 20);
    run_result_free(result);
}

/* Over native MX: IS' parts that differ in size (mpi_alltoallv), and MG's neighbours on a torus.
 * They cannot take less than the wire takes for what goes to the other host. */
static void test_nas_natively(void **state)
{
#define ONE "type = \"nas\"; compute_us = 0; warm_units = 0; units = 1; "
    static const struct {
        const char *program;
        double bytes, most; /* of all units to the other host; of their time on the wire */
    } cases[] = {
        /* A quarter of all keys; eight faces of the finest level, three times. */
        { ONE "benchmark = \"is.B.16\";", 10 * (4.0 * (1u << 25) / 4), 2 },
        { ONE "benchmark = \"mg.B.16\";", 20 * (3 * 8 * 8.0 * 130 * 130), 3 },
    };
    (void)state;
    for (unsigned i = 0; i < 2; i += scenario_stride(2)) {
        const double wire_s = cases[i].bytes / 1.25e9;
        const double time_s = value(&native, cases[i].program, "time_s");
        assert_true(time_s > wire_s && time_s < cases[i].most * wire_s);
    }
}

/* Rules of a nic.ethernet: on the process's core its lines stay, on another core they come from
 * there, the sooner if it is of the same socket. */
#define NIC_HOST(NAME)                                                        \
    NAME " = { cpu = { sockets = 2; cores_per_socket = 2; };"                 \
         " cache = { llc_size = \"4 MiB\"; llc_slices = 2; llc_ways = 16; };" \
         " dram = { node_size = \"1 GiB\"; };"                                \
         " ports = ( { name = \"rp0\"; socket = 0; lanes = 8; } ); };"
#define NIC_NET(NAME, NIC)                                                   \
    NAME " = { host = \"" NAME "\"; device = \"" NIC "\"; mtu_bytes = 9000;" \
         " adaptive_moderation = false; rx_moderation_us = 0; };"
#define NIC_TEXT                                                                                   \
    "hosts = { " NIC_HOST("server") NIC_HOST(                                                      \
        "client") " };\n"                                                                          \
                  "devices = { a = { type = \"nic.ethernet\"; lanes = 8; mtu_bytes = 9000; };"     \
                  " b = { type = \"nic.ethernet\"; lanes = 8; mtu_bytes = 9000; }; };\n"           \
                  "cables = ( { from = \"server.s0.rp0\"; to = \"a.p0\"; },"                       \
                  " { from = \"client.s0.rp0\"; to = \"b.p0\"; },"                                 \
                  " { from = \"a.e0\"; to = \"b.e0\"; } );\n"                                      \
                  "network = { " NIC_NET("server", "a")                                            \
                      NIC_NET("client",                                                            \
                              "b") " };\n"                                                         \
                                   "workload = { type = \"programs\"; measured = \"server\"; };\n" \
                                   "measure = { warmup_us = 1000; duration_us = 10000000; };\n"    \
                                   "programs = { p = { " PING_PONG

static double steered(const char *setting, const char *name)
{
    struct run_result *result;
    snprintf(text, sizeof(text), "%s%s }; };\n", NIC_TEXT, setting);
    result = scenario_run(text);
    const double is = scenario_value(result, name);
    run_result_free(result);
    return is;
}

static void test_steering(void **state)
{
    (void)state;
    const double own_us = steered("steering = \"process\";", "latency_0b_us");
    const double near_us = steered("steering = \"cpu\"; steering_cpu = 1;", "latency_0b_us");
    const double far_us = steered("steering = \"cpu\"; steering_cpu = 3;", "latency_0b_us");
    assert_true(own_us > 2 && near_us > 2 && far_us > near_us + 0.2);
    const double own = steered("steering = \"process\";", "p.l2_misses.endpoint");
    const double other = steered("steering = \"cpu\"; steering_cpu = 1;", "p.l2_misses.endpoint");
    assert_true(own < 0.3 && other > 1);
    const double in_llc = steered("steering = \"cpu\"; steering_cpu = 1;", "p.llc_misses.endpoint");
    const double over_link = steered("steering = \"cpu\"; steering_cpu = 3;",
                                     "p.llc_misses.endpoint");
    assert_true(in_llc < 0.3 && over_link > 1);
    snprintf(text, sizeof(text), "%ssteering = \"cpu\"; steering_cpu = 4; }; };\n", NIC_TEXT);
    scenario_refused(text, "a CPU of each host: 0 to 3");
    scenario(&queues, PING_PONG);
    memcpy(strstr(text, "mtu_bytes = 9000"), "mtu_bytes = 4129", 16);
    scenario_refused(text, "at least 4130");
}

/* A whole exchange is extrapolated from shorter ones: the same within a tenth, computation not
 * included. */
static void test_sample(void **state)
{
    static const struct setup *const setups[] = { &queues, &native };
    (void)state;
#define FT "type = \"nas\"; benchmark = \"ft.W.16\"; compute_us = 3000; units = 3; "
    for (unsigned i = 0; i < 2; i += scenario_stride(2)) {
        struct run_result *whole = scenario_run(scenario(setups[i], FT));
        struct run_result *part = scenario_run(scenario(setups[i], FT "sample = true;"));
        const double computed_s = 7 * 0.003;
        const double whole_s = scenario_value(whole, "time_s") - computed_s;
        const double part_s = scenario_value(part, "time_s") - computed_s;
        assert_true(whole_s > 7 * 0.0016); /* 2 MiB each way: 1.7 ms of the wire */
        assert_true(part_s > 0.9 * whole_s && part_s < 1.1 * whole_s && part_s != whole_s);
        assert_true(scenario_value(whole, "sampled") == 1 && scenario_value(part, "sampled") == 4);
        assert_true(scenario_value(whole, "stalled_s") == 0 &&
                    scenario_value(part, "time_outs") == 0);
        run_result_free(whole);
        run_result_free(part);
    }
}

static void test_refused(void **state)
{
    (void)state;
    scenario_refused_among(scenario(&queues, PING_PONG "}; q = { " PING_PONG "cpu = 1;"),
                           "programs.q.first: found \"server\" (the default), expected a host on "
                           "which no other program has Myrinet Express");
    scenario_refused(scenario(&queues, PING_PONG "cpu = 8;"), "7 or less: 1 processes run from it");
    scenario_refused(scenario(&queues, "type = \"nas\"; cpu = 1;"), "0 or less: 8 processes");
    scenario_refused(scenario(&queues, PING_PONG "second = \"server\";"),
                     "another host than `first`");
    scenario_refused(scenario(&queues, PING_PONG "ioat = true;"), "ioat.engine");
    scenario_refused(scenario(&native, PING_PONG "ioat = true;"),
                     "stores messages where they belong");
    scenario_refused(scenario(&queues, "type = \"imb\"; benchmark = \"alltoall\"; then = true;"),
                     "benchmark = \"ping_pong\" beside it");
    scenario_refused(scenario(&queues, PING_PONG "steering = \"process\";"), "a nic.ethernet");
    scenario_refused(scenario(&queues, "type = \"imb\"; repetitions = 1; warm_ups = 2;"),
                     "more repetitions than one");
    scenario_refused(scenario(&queues, "type = \"imb\"; message_bytes = 8388609; warm_ups = 0;"),
                     "a larger volume_bytes");
    scenario_refused(scenario(&queues, PING_PONG "steering_cpu = 3;"),
                     "it has no effect otherwise");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_user_misses), cmocka_unit_test(test_idle_cores),
        cmocka_unit_test(test_sizes),       cmocka_unit_test(test_alltoall),
        cmocka_unit_test(test_nas),         cmocka_unit_test(test_nas_natively),
        cmocka_unit_test(test_sample),      cmocka_unit_test(test_steering),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
