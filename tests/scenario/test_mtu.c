/* Networks of hosts whose interfaces have other MTUs than 1500: what they carry arrives (netperf
 * checks every byte), and how fast. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/scenario_fixture.h"

#define HOST                                          \
    "{ cpu = { sockets = 2; cores_per_socket = 2; };" \
    " ports = ( { name = \"rp0\"; socket = 0; lanes = 8; } ); }; "

/* Server and client; each MTU is that of the NIC, then that of its interface; what is measured,
 * the program's settings. */
#define SCENARIO                                                                      \
    "hosts = { server = " HOST "client = " HOST "};\n"                                \
    "devices = { nic = { type = \"nic.ethernet\"; lanes = 8; mtu_bytes = %u; };"      \
    " client_nic = { type = \"nic.ethernet\"; lanes = 8; mtu_bytes = %u; }; };\n"     \
    "cables = ( { from = \"server.s0.rp0\"; to = \"nic.p0\"; },"                      \
    " { from = \"client.s0.rp0\"; to = \"client_nic.p0\"; },"                         \
    " { from = \"nic.e0\"; to = \"client_nic.e0\"; } );\n"                            \
    "network = { server = { host = \"server\"; device = \"nic\"; mtu_bytes = %u; };"  \
    " client = { host = \"client\"; device = \"client_nic\"; mtu_bytes = %u; }; };\n" \
    "workload = { type = \"programs\"; };\n"                                          \
    "measure = { warmup_us = %u; duration_us = %u; };\n"                              \
    "programs = { n = { type = \"netperf\"; %s }; };"

struct mtus {
    unsigned nic, client_nic, server, client;
};

static struct run_result *run(struct mtus mtu, unsigned warmup_us, unsigned duration_us,
                              const char *settings)
{
    struct run_result *result = run_result_new();
    char text[4096];
    snprintf(text, sizeof(text), SCENARIO, mtu.nic, mtu.client_nic, mtu.server, mtu.client,
             warmup_us, duration_us, settings);
    char *error = scenario_run_into(text, result);
    if (error != NULL)
        fail_msg("MTU %u of the server, %u of the client, %s: %s", mtu.server, mtu.client, settings,
                 error);
    return result;
}

static double payload_bytes(struct run_result *result)
{
    return scenario_value(result, "throughput_gbit_s") * 1e6 / 8.0 /
           scenario_value(result, "packet_rate_kpps");
}

/* Both ends agree on the smaller MTU; six times the payload in a packet is less work for a byte. */
static void test_smaller_mtu_counts(void **unused)
{
    double gbit_s[2], payload[2];
    (void)unused;
    for (unsigned i = 0; i < 2; i++) {
        struct run_result *result = run((struct mtus){ 9000, 9000, i == 0 ? 1500 : 9000, 9000 },
                                        2000, 1000, "");
        gbit_s[i] = scenario_value(result, "throughput_gbit_s");
        payload[i] = payload_bytes(result);
        run_result_free(result);
    }
    assert_true(payload[1] > 3 * payload[0]);
    assert_true(gbit_s[1] > 1.1 * gbit_s[0]);
}

/* Packets begin and end anywhere in a line, and so do calls: what arrives is the stream. */
static void test_any_mtu(void **unused)
{
    static const unsigned mtu[] = { 576,  1280, 1400, 1420, 1450, 1496, 1499,
                                    1501, 2000, 3000, 4000, 8000, 9000, 9216 };
    static const char *const settings[] = { "buffer_bytes = 4104;", "buffer_bytes = 10001;",
                                            "buffer_bytes = 997; direction = \"tx\";" };
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(mtu); i += scenario_stride(7))
        for (unsigned s = 0; s < SIM_N_ELEMENTS(settings); s++) {
            struct run_result *result = run((struct mtus){ mtu[i], mtu[i], mtu[i], mtu[i] }, 1500,
                                            500, settings[s]);
            assert_true(scenario_value(result, "throughput_gbit_s") > 0);
            run_result_free(result);
        }
}

/* A receiver with a larger MTU than the sender has buffers for more than what arrives. It takes at
 * least what it does with the sender's MTU, and that is received all the time. */
static void test_receiver_takes_more(void **unused)
{
    static const unsigned mtu[][2] = { { 1800, 1500 }, { 2000, 1500 }, { 3000, 1500 },
                                       { 4000, 1500 }, { 9000, 1500 }, { 9000, 2000 },
                                       { 9000, 576 },  { 9216, 1000 } };
    unsigned before = 0;
    double gbit_s[2];
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(mtu); i += scenario_stride(8)) {
        const unsigned server = mtu[i][0], client = mtu[i][1];
        for (unsigned same = 0; same < (client == before ? 1 : 2); same++) {
            const unsigned own = same != 0 ? client : server;
            struct run_result *result = run((struct mtus){ own, client, own, client }, 30000, 8000,
                                            "");
            gbit_s[same] = scenario_value(result, "throughput_gbit_s");
            run_result_free(result);
        }
        before = client;
        if (gbit_s[0] < 0.9 * gbit_s[1])
            fail_msg("MTU %u of the server, %u of the client: %g Gbit/s, not %g", server, client,
                     gbit_s[0], gbit_s[1]);
    }
}

/* Over before anything has come: that is no measurement of 0 Gbit/s. */
static void test_nothing_moves(void **unused)
{
    struct sim_error_list errors = { 0 };
    struct run_result *result = run_result_new();
    struct experiment_outcome ended;
    char text[4096], *error = NULL;
    (void)unused;
    snprintf(text, sizeof(text), SCENARIO, 9000U, 9000U, 9000U, 9000U, 100U, 1U, "");
    struct config *config = fixture_config(text, &errors);
    fixture_fail(&errors);
    assert_false(experiment_run(config, 1, result, &ended, NULL, &error));
    assert_non_null(strstr(error, "n: not one receive call began and ended within the 1 us"));
    g_free(error);
    run_result_free(result);
    config_free(config);
}

static struct config *read_config(struct mtus mtu, const char *const (*sets)[2], unsigned n_sets)
{
    struct sim_error_list errors = { 0 };
    char text[4096];
    snprintf(text, sizeof(text), SCENARIO, mtu.nic, mtu.client_nic, mtu.server, mtu.client, 2000U,
             500U, "");
    struct config *config = fixture_config(text, &errors);
    for (unsigned i = 0; i < n_sets; i++)
        assert_true(config_set(config, sets[i][0], sets[i][1], "test", &errors));
    fixture_fail(&errors);
    return config;
}

/* An interface whose MTU is larger than what its NIC takes, NICs whose buffers on the chip are
 * smaller than what their MTU and PAUSE need, or whose switch has no room for their addresses. */
static void test_refused(void **unused)
{
    static const struct {
        struct mtus mtu;
        const char *set[2][2];
        const char *message;
    } refused[] = {
        { { 1000, 9000, 1500, 9000 },
          { { "devices.nic.flow_control", "true" } },
          "network.server.mtu_bytes: found 1500 (an integer), expected at most "
          "devices.nic.mtu_bytes, 1000" },
        { { 9000, 9000, 9000, 9000 },
          { { "devices.nic.tx_buffer_bytes", "8192" } },
          "nic.tx_buffer_bytes: found 8192, expected room for a packet" },
        { { 9000, 9000, 9000, 9000 },
          { { "devices.nic.rx_buffer_bytes", "9013" } },
          "nic.rx_buffer_bytes: found 9013, expected room for a packet" },
        { { 1500, 1500, 1500, 1500 },
          { { "devices.nic.rx_buffer_bytes", "8192" } },
          "nic.e0 has a receive buffer of 8192 bytes; with flow_control it takes more than" },
        { { 9000, 9000, 9000, 9000 },
          { { "devices.client_nic.rx_buffer_bytes", "65536" } },
          "client_nic.e0 has a receive buffer of 65536 bytes; with flow_control it takes more" },
        { { 1500, 1500, 1500, 1500 },
          { { "devices.nic.switch_entries", "2" }, { "devices.nic.vfs", "2" } },
          "nic.switch_entries: found 2, expected at least 3, one for the address of each" },
    };
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(refused); i++) {
        struct sim_error_list errors = { 0 };
        struct config *config = read_config(refused[i].mtu, refused[i].set,
                                            refused[i].set[1][0] != NULL ? 2 : 1);
        assert_false(experiment_check(config, &errors));
        assert_int_equal(errors.n_messages, 1);
        if (strstr(errors.message[0], refused[i].message) == NULL)
            fail_msg("\"%s\" instead of \"%s\"", errors.message[0], refused[i].message);
        sim_error_release(&errors);
        config_free(config);
    }
}

/* The smallest buffers that are taken lose nothing; without flow control smaller ones are taken,
 * too, and lose. */
static void test_small_buffers(void **unused)
{
    static const char *const with[][2] = { { "devices.nic.rx_buffer_bytes", "39400" },
                                           { "devices.client_nic.tx_buffer_bytes", "2048" } };
    static const char *const without[][2] = { { "devices.nic.rx_buffer_bytes", "8192" },
                                              { "devices.nic.flow_control", "false" } };
    (void)unused;
    for (unsigned i = 0; i < 2; i++) {
        struct run_result *result = run_result_new();
        struct experiment_outcome ended;
        char *error = NULL;
        struct config *config = read_config((struct mtus){ 1500, 1500, 1500, 1500 },
                                            i == 0 ? with : without, 2);
        if (!experiment_run(config, 1, result, &ended, NULL, &error))
            fail_msg("%s", error);
        assert_true(scenario_value(result, "throughput_gbit_s") > 1);
        if (i == 0) {
            assert_true(scenario_value(result, "nic.pf0_rx_overflow") == 0);
            assert_true(scenario_value(result, "client_nic.tx_buffer_max_bytes") < 2048 + 1514);
        }
        run_result_free(result);
        config_free(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smaller_mtu_counts),
        cmocka_unit_test(test_any_mtu),
        cmocka_unit_test(test_receiver_takes_more),
        cmocka_unit_test(test_nothing_moves),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_small_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
