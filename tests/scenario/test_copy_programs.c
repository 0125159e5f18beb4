/* The programs of workloads/copy on a small host with a DMA engine: what must hold of their results
 * whatever the costs are, and what is refused. */
#include <stdio.h>

#include "tests/support/scenario_fixture.h"
#include "tests/support/test.h"

#define HOST_WITH(MORE, US)                                                                    \
    "hosts = { server = { cpu = { sockets = 1; cores_per_socket = 2; };"                       \
    " cache = { llc_size = 1048576; llc_slices = 2; llc_ways = 16; }; " MORE                   \
    " dram = { node_size = 268435456; }; ports = ( { name = \"rp0\"; socket = 0; } ); }; };\n" \
    "lending = { server = { host = \"server\"; }; };\n"                                        \
    "workload = { type = \"programs\"; measured = \"server\"; };\n"                            \
    "measure = { warmup_us = 1000; duration_us = " US "; };\n"
#define HOST HOST_WITH("", "10000000")
#define BUS_HOST                                                                               \
    "hosts = { server = { cpu = { sockets = 2; cores_per_socket = 2; };"                       \
    " cache = { llc_size = 0; l2_size = 2097152; l2_ways = 8; ddio = false; };"                \
    " coherence = { protocol = \"front_side_bus\"; };"                                         \
    " dram = { node_size = 268435456; }; ports = ( { name = \"rp0\"; socket = 0; } ); }; };\n" \
    "lending = { server = { host = \"server\"; }; };\n"                                        \
    "workload = { type = \"programs\"; measured = \"server\"; };\n"                            \
    "measure = { warmup_us = 1000; duration_us = 10000000; };\n"
#define ENGINE "devices = { engine = { type = \"ioat.engine\"; integrated = \"server.s0\"; }; };\n"
#define FUNCTIONS                                                                \
    "devices = { engine = { type = \"ioat.engine\"; integrated = \"server.s0\";" \
    " version = \"cb3.2\"; device_id = 28448; functions = 8; channels = 1; }; };\n"
#define PROGRAM(TEXT) "programs = { p = { " TEXT " }; };\n"

static double value(const char *program, const char *name)
{
    char text[3000];
    snprintf(text, sizeof(text), HOST ENGINE PROGRAM("%s"), program);
    struct run_result *result = scenario_run(text);
    const double is = scenario_value(result, name);
    run_result_free(result);
    return is;
}

/* A copy alone is not slower than one of a window, and four channels are quicker than one. */
static void test_copies(void **state)
{
    (void)state;
#define BY_ENGINE "by = \"engine\"; message_bytes = 262144; volume_bytes = 1048576;"
    const double four_us = value("type = \"copy_latency\"; " BY_ENGINE, "latency_us");
    const double one_us = value("type = \"copy_latency\"; channels = 1; " BY_ENGINE, "latency_us");
    const double mbyte_s = value("type = \"copy_bandwidth\"; " BY_ENGINE, "bandwidth_mbyte_s");
    assert_true(four_us > 0 && four_us < one_us);
    assert_true(mbyte_s > 262144 / four_us);
    /* Pages of cold buffers have to be pinned first. */
    assert_true(value("type = \"copy_latency\"; cache = \"cold\"; area_bytes = 4194304; " BY_ENGINE,
                      "latency_us") > four_us);
}

/* Channels of several functions, each of which has addresses of its own behind the IOMMU. */
static void test_functions(void **state)
{
    static const char *const programs[] = {
        "type = \"copy_latency\"; channels = 8; " BY_ENGINE,
        "type = \"dma_copy\"; channels = 8; message_bytes = 65536; buffer_bytes = 1048576;",
    };
    static const char *const us[] = { "10000000", "100" };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(programs); i++) {
        char text[3000];
        snprintf(text, sizeof(text),
                 HOST_WITH("iommu = { enabled = true; };", "%s") FUNCTIONS PROGRAM("%s"), us[i],
                 programs[i]);
        struct run_result *result = scenario_run(text);
        assert_true(scenario_value(result, "engine.bytes") > 0);
        assert_int_equal((int)scenario_value(result, "engine.errors"), 0);
        assert_int_equal((int)scenario_value(result, "server.s0.root_complex.iommu_blocked"), 0);
        run_result_free(result);
    }
}

/* Numbers of functions follow each other, and the driver does not know all: an engine that it does
 * not take is none, and one of which it takes some functions has their channels. */
static void test_device_ids(void **state)
{
    static const struct {
        unsigned id, functions, channels;
        const char *message; /* NULL: it copies */
    } cases[] = {
        { 65534, 1, 1, "whose device_id the driver knows: 6712, 8225, or 28448 to 28455" },
        { 65534, 8, 1, "engine.device_id: found 65534, expected at most 65527 with 8 functions" },
        { 65528, 8, 1, "engine.device_id: found 65528" },
        { 65527, 8, 1, "whose device_id the driver knows" },
        { 6711, 2, 2, "at most 1, the channels of copy engines of the host" },
        { 6711, 2, 1, NULL },
        { 8225, 8, 8, NULL },
    };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        char text[3000];
        snprintf(
            text, sizeof(text),
            HOST_WITH(
                "", "100") "devices = { engine = { type = \"ioat.engine\";"
                           " integrated = \"server.s0\"; version = \"cb3.2\";"
                           " channels = 1; device_id = %u; functions = %u; }; };\n" PROGRAM(
                               "type = \"dma_copy\"; message_bytes = 65536; buffer_bytes = 1048576;"
                               " channels = %u;"),
            cases[i].id, cases[i].functions, cases[i].channels);
        if (cases[i].message != NULL) {
            scenario_refused(text, cases[i].message);
            continue;
        }
        struct run_result *result = scenario_run(text);
        assert_true(scenario_value(result, "engine.bytes") > 0);
        run_result_free(result);
    }
}

/* What an engine does not take at once is told by its name and the setting's. */
static void test_pieces(void **state)
{
    (void)state;
    scenario_fails(HOST "devices = { engine = { type = \"ioat.engine\"; integrated = \"server.s0\";"
                        " transfer_bytes_max = 4096; }; };\n" PROGRAM(
                            "type = \"dma_copy\"; piece_bytes = 8192;"),
                   "p: ioat0 copies 4096 bytes at most by a descriptor: a smaller piece_bytes?");
}

/* The same buffers again and again: memcpy() finds them in the caches, but not the engine, which
 * leaves nothing there. So on a bus, where nothing else puts its lines into caches. */
static void test_hot(void **state)
{
    static const char *const by[] = { "cpu", "engine" }, *const cache[] = { "hot", "in_cache",
                                                                            "in_no_cache" };
    double us[2][3];
    (void)state;
    for (unsigned i = 0; i < 2; i++)
        for (unsigned k = 0; k < 3; k++) {
            char text[4000];
            snprintf(text, sizeof(text),
                     BUS_HOST ENGINE PROGRAM("type = \"copy_latency\"; message_bytes = 65536;"
                                             " copies = 4; by = \"%s\"; cache = \"%s\";"),
                     by[i], cache[k]);
            struct run_result *result = scenario_run(text);
            us[i][k] = scenario_value(result, "latency_us");
            run_result_free(result);
        }
    assert_true(us[0][0] == us[0][1] && us[0][0] < us[0][2] / 2);
    assert_true(us[1][0] == us[1][2] && us[1][0] < us[1][1]);
}

static void test_overlap(void **state)
{
    (void)state;
    const double engine = value("type = \"copy_overlap\"; " BY_ENGINE, "overlap");
    const double cpu = value(
        "type = \"copy_overlap\"; message_bytes = 262144; volume_bytes = 1048576;", "overlap");
    assert_true(engine > 0.2 && engine < 1);
    assert_true(cpu > -0.05 && cpu < 0.05);
    const double pins =
        value("type = \"copy_overheads\"; cache = \"cold\"; area_bytes = 4194304; " BY_ENGINE,
              "pin_share");
    const double cached = value("type = \"copy_overheads\"; " BY_ENGINE, "pin_share");
    assert_true(pins > 0.05 && cached < pins / 3);
}

/* The engine fills no cache, the CPU's copy evicts all of the buffer. */
static void test_pollution(void **state)
{
    (void)state;
#define POLLUTION "type = \"cache_pollution\"; buffer_bytes = 65536; copy_bytes = 4194304;"
    const double none_ns = value(POLLUTION " by = \"none\";", "access_time_ns");
    assert_true(value(POLLUTION " by = \"cpu\";", "access_time_ns") > 1.3 * none_ns);
    assert_true(value(POLLUTION " by = \"engine\"; ", "access_time_ns") < 1.3 * none_ns);
}

/* A round trip is two messages, each at most as quick as in a window. */
static void test_messages(void **state)
{
    static const char *const mechanism[] = { "adce", "kammc", "shared_memory" };
    (void)state;
    for (unsigned i = 0; i < 3; i += scenario_stride(3)) {
        char text[300];
        snprintf(text, sizeof(text),
                 "type = \"copy_ipc\"; message_bytes = 1048576; volume_bytes = 4194304;"
                 " mechanism = \"%s\";",
                 mechanism[i]);
        const double trip_us = value(text, "latency_us");
        const double mbyte_s = value(text, "bandwidth_mbyte_s");
        assert_true(mbyte_s > 0 && trip_us > 0.8 * 2 * 1048576 / mbyte_s);
    }
}

static void test_refused(void **state)
{
    (void)state;
    scenario_refused(HOST ENGINE PROGRAM("type = \"copy_latency\"; cpu = 2;"), "cpu");
    scenario_refused(HOST ENGINE PROGRAM("type = \"copy_latency\"; by = \"nobody\";"), "engine");
    scenario_refused(HOST ENGINE PROGRAM("type = \"copy_latency\"; cache = \"cold\";"
                                         " area_bytes = 65536; message_bytes = 65536;"),
                     "two messages");
    scenario_refused(HOST ENGINE PROGRAM("type = \"copy_overheads\"; by = \"cpu\";"),
                     "the CPU has no such overheads");
    scenario_refused(HOST ENGINE PROGRAM("type = \"copy_ipc\"; peer_cpu = 0;"), "another CPU");
    scenario_refused(HOST ENGINE PROGRAM("type = \"copy_ipc\"; mechanism = \"nlbc\";"), "network");
    scenario_refused(HOST ENGINE PROGRAM("type = \"copy_mixed\"; schedule = \"dedicated\";"
                                         " dedicated_channels = 4;"),
                     "fewer than `channels`");
    scenario_refused(
        HOST ENGINE PROGRAM("type = \"copy_mixed\"; small_from = 4096; small_to = 64;"),
        "at least small_from");
    scenario_refused(HOST ENGINE PROGRAM("type = \"cache_pollution\"; row_bytes = 100;"),
                     "whole lines");
    scenario_refused(HOST PROGRAM("type = \"copy_latency\"; by = \"engine\";"),
                     "a host with a copy engine");
    scenario_refused(
        HOST ENGINE PROGRAM("type = \"copy_latency\"; cache = \"cold\"; area_bytes = 131072;"),
        "both areas fit in the caches");
}

/* Settings that have no effect as another one stands, or for want of an engine that has them. */
static void test_without_effect(void **state)
{
    static const struct {
        const char *program, *message;
    } z[] = {
        { "type = \"copy_latency\"; channels = 1;",
          "channels: found 1 (an integer), expected by = \"engine\"" },
        { "type = \"copy_overlap\"; ring = 64;",
          "ring: found 64 (an integer), expected by = \"engine\"" },
        { "type = \"cache_pollution\"; by = \"none\"; pin_cache_pages = 1;", "by = \"engine\"" },
        { "type = \"copy_latency\"; area_bytes = 4194304;", "cache = \"cold\"" },
        { "type = \"copy_latency\"; by = \"engine\"; queue = \"shared\";",
          "expected a host with a dsa.accelerator" },
        { "type = \"copy_mixed\"; queues = 2;", "expected a host with a dsa.accelerator" },
        { "type = \"dma_copy\"; batch = 2;", "expected a host with a dsa.accelerator" },
        { "type = \"dma_copy\"; interrupt_delay_us = 2;", "completion = \"interrupt\"" },
        { "type = \"dma_copy\"; interrupt_delay_us = 2; completion = \"interrupt\";",
          "expected a host with an ioat.engine of version 3.2" },
        { "type = \"copy_mixed\"; dedicated_channels = 2;", "schedule = \"dedicated\"" },
        { "type = \"copy_mixed\"; small_bytes = 4096;",
          "schedule = \"dedicated\" or \"adaptive\"" },
        { "type = \"copy_mixed\"; schedule = \"dedicated\"; reserve_us = 4;",
          "schedule = \"adaptive\"" },
        { "type = \"copy_ipc\"; mechanism = \"kammc\"; channels = 2;", "mechanism = \"adce\"" },
        { "type = \"copy_ipc\"; slots = 2;", "mechanism = \"shared_memory\"" },
        { "type = \"copy_ipc\"; mechanism = \"shared_memory\"; pin_cache_pages = 1;", "\"kammc\"" },
    };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(z); i++) {
        char text[3000];
        snprintf(text, sizeof(text), HOST ENGINE PROGRAM("%s"), z[i].program);
        scenario_refused(text, z[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),         cmocka_unit_test(test_hot),
        cmocka_unit_test(test_overlap),        cmocka_unit_test(test_pollution),
        cmocka_unit_test(test_messages),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_without_effect), cmocka_unit_test(test_functions),
        cmocka_unit_test(test_device_ids),     cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
