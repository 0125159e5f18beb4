/* Hosts with Myri-10G adapters in the group `network`: TCP and UDP go over the Ethernet firmware;
 * what does not fit is refused by name; hosts with the firmware of Myrinet Express come up and go
 * down. */
#include <stdio.h>

#include "tests/support/scenario_fixture.h"

#define HOST                                          \
    "{ cpu = { sockets = 2; cores_per_socket = 2; };" \
    " ports = ( { name = \"rp0\"; socket = 0; lanes = 8; generation = 1; } ); }; "
#define NIC(FIRMWARE) "{ type = \"myri.myri10g\"; generation = 1; firmware = \"" FIRMWARE "\"; }; "
#define WORLD(SERVER, CLIENT, NETWORK, PROGRAM)                                   \
    "hosts = { server = " HOST "client = " HOST "};\n"                            \
    "devices = { nic = " SERVER "client_nic = " CLIENT "};\n"                     \
    "cables = ( { from = \"server.s0.rp0\"; to = \"nic.p0\"; },"                  \
    " { from = \"client.s0.rp0\"; to = \"client_nic.p0\"; },"                     \
    " { from = \"nic.e0\"; to = \"client_nic.e0\"; } );\n"                        \
    "network = { server = { host = \"server\"; device = \"nic\"; " NETWORK " };"  \
    " client = { host = \"client\"; device = \"client_nic\"; " NETWORK " }; };\n" \
    "workload = { type = \"programs\"; };\n"                                      \
    "measure = { warmup_us = 1000; duration_us = 1000; };\n"                      \
    "programs = { p = { " PROGRAM " }; };"
#define JUMBO "mtu_bytes = 9000;"

/* 9.9 Gbit/s of payload is what the wire carries with that MTU. */
static void test_tcp_fills_the_wire(void **unused)
{
    (void)unused;
    struct run_result *result =
        scenario_run(WORLD(NIC("ethernet"), NIC("multiqueue"), JUMBO, "type = \"netperf\";"));
    const double gbit_s = scenario_value(result, "throughput_gbit_s");
    assert_true(gbit_s > 9.1 && gbit_s < 9.95);
    run_result_free(result);
}

/* With a coalescing time each datagram waits for it, at both ends. */
static void test_coalescing(void **unused)
{
    double us[2];
    (void)unused;
    for (unsigned i = 0; i < 2; i++) {
        struct run_result *result = scenario_run(
            i == 0 ? WORLD(NIC("multiqueue"), NIC("ethernet"), JUMBO, "type = \"sockperf\";")
                   : WORLD(NIC("multiqueue"), NIC("ethernet"),
                           JUMBO "adaptive_moderation = false; rx_moderation_us = 75;",
                           "type = \"sockperf\";"));
        us[i] = scenario_value(result, "latency_us");
        run_result_free(result);
    }
    assert_true(us[0] < 20);
    assert_true(us[1] > 30 && us[1] < 80);
}

static void test_refused(void **unused)
{
    (void)unused;
    scenario_refused_among(
        WORLD(NIC("ethernet"), NIC("ethernet"), "mtu_bytes = 9200;", "type = \"netperf\";"),
        "at most devices.nic.mtu_bytes, 9000");
    scenario_refused(WORLD(NIC("mx"), NIC("ethernet"), "", "type = \"netperf\";"),
                     "a NIC with Ethernet firmware");
    scenario_refused(WORLD(NIC("ethernet"), NIC("mx"), "", "type = \"netperf\";"),
                     "a NIC with Ethernet firmware");
    scenario_refused(WORLD(NIC("ethernet"), NIC("infiniband"), "", "type = \"netperf\";"),
                     "\"ethernet\", \"multiqueue\", \"mx\"");
}

static void test_hosts_without_an_interface(void **unused)
{
    (void)unused;
    struct run_result *result =
        scenario_run(WORLD(NIC("mx"), NIC("mx"), "", "type = \"stream\"; first_core = 0;"));
    assert_true(scenario_value(result, "stream_gbyte_s") > 1);
    run_result_free(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tcp_fills_the_wire),
        cmocka_unit_test(test_coalescing),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_hosts_without_an_interface),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
