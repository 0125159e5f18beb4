/* Scenarios that lend and borrow: programs on a borrowed device and its unchanged driver, what is
 * refused before anything runs, and what only the tables of the bridges refuse. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/scenario_fixture.h"

#define HOST(NAME)                                                         \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; },"      \
         " { name = \"rp1\"; socket = 0; lanes = 8; } );"                  \
         " dram = { node_size = \"2 GiB\"; };"                             \
         " cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; };" \
         " iommu = { enabled = true; }; };\n"
/* `server` is back to back with `lender`, whose NIC has a cable to that of `client`. */
#define NTB_CABLE_TEXT " { from = \"n0.p1\"; to = \"n1.p1\"; length_m = 2.0; },"
#define WORLD                                                                                             \
    "hosts = { " HOST("server") HOST("lender") HOST(                                                      \
        "client") "};\n"                                                                                  \
                  "devices = { n0 = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; };"                \
                  " n1 = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; outgoing_requesters = %u; };" \
                  " nic = { type = \"nic.ethernet\"; lanes = 8; };"                                       \
                  " client_nic = { type = \"nic.ethernet\"; lanes = 8; }; };\n"                           \
                  "cables = ( { from = \"server.s0.rp0\"; to = \"n0.p0\"; },"                             \
                  " { from = \"lender.s0.rp0\"; to = \"n1.p0\"; },"                                       \
                  " { from = \"lender.s0.rp1\"; to = \"nic.p0\"; },"                                      \
                  " { from = \"client.s0.rp0\"; to = \"client_nic.p0\"; }," NTB_CABLE_TEXT                \
                  " { from = \"nic.e0\"; to = \"client_nic.e0\"; latency_ns = 100; } );\n"                \
                  "network = { server = { host = \"%s\"; device = \"nic\"; };"                            \
                  " client = { host = \"client\"; device = \"client_nic\"; }; };\n"                       \
                  "workload = { type = \"programs\"; };\n"                                                \
                  "programs = { bulk = { type = \"netperf\"; direction = \"%s\"; }; };\n"                 \
                  "measure = { warmup_us = %u; duration_us = %u; };\n"
#define LENDING                                                   \
    "lending = { lender = { host = \"lender\"; lend = [%s]; };\n" \
    "borrower = { host = \"%s\"; borrow = [%s]; %s }; };\n"

static char *world_lasting(unsigned outgoing, const char *host, const char *direction, unsigned us)
{
    return g_strdup_printf(WORLD, outgoing, host, direction, us, us);
}

static char *world(unsigned outgoing, const char *host, const char *direction)
{
    return world_lasting(outgoing, host, direction, 600);
}

/* Takes the text. NULL, or what the run failed with (g_free). */
static char *run_into(char *text, struct run_result *result)
{
    char *error = scenario_run_into(text, result);
    g_free(text);
    return error;
}

static double throughput(char *text)
{
    struct run_result *result = run_result_new();
    char *error = run_into(text, result);
    if (error != NULL)
        fail_msg("%s", error);
    double v = run_result_value(result, "throughput_gbit_s");
    run_result_free(result);
    return v;
}

static char *both(char *first, char *second)
{
    char *text = g_strconcat(first, second, NULL);
    g_free(first);
    g_free(second);
    return text;
}

/* TCP over a borrowed NIC, as over the lender's own; netperf checks every byte. */
static void test_borrowed_nic(void **state)
{
    (void)state;
    const char *const direction[] = { "rx", "tx" };
    for (unsigned i = 0; i < 2; i++) {
        double local = throughput(world(32, "lender", direction[i]));
        double lent = throughput(both(world(32, "server", direction[i]),
                                      g_strdup_printf(LENDING, "\"nic\"", "server", "\"nic\"",
                                                      "dma_window_bytes = \"128 MiB\";")));
        assert_true(local > 1.0);
        assert_true(lent > 0.5 * local && lent < 2.0 * local);
    }
}

/* The same call, and the same scenario but for one list, for a local device. */
static void test_local(void **state)
{
    (void)state;
    /* Long enough for a rate that does not depend on when the connection began. */
    double alone = throughput(world_lasting(32, "lender", "rx", 20000));
    double with = throughput(both(world_lasting(32, "lender", "rx", 20000),
                                  g_strdup_printf(LENDING, "", "server", "", "")));
    assert_true(with > 0.9 * alone && with < 1.1 * alone);
}

static void refused(char *text, const char *message)
{
    scenario_refused_among(text, message);
    g_free(text);
}

/* The text with a part taken out. */
static char *without(char *text, const char *part)
{
    char *at = strstr(text, part);
    assert_non_null(at);
    memmove(at, at + strlen(part), strlen(at + strlen(part)) + 1);
    return text;
}

static char *lending(const char *lend, const char *host, const char *borrow, const char *more)
{
    return both(world(32, "server", "rx"), g_strdup_printf(LENDING, lend, host, borrow, more));
}

static void test_mistakes(void **state)
{
    (void)state;
    refused(lending("\"nic\"", "sever", "\"nic\"", ""), "did you mean \"server\"");
    refused(lending("\"nic\"", "server", "\"nick\"", ""), "did you mean \"nic\"");
    refused(lending("\"nic\"", "server", "\"client_nic\"", ""), "a device that another host lends");
    refused(lending("\"client_nic\"", "server", "", ""), "a device that is plugged into the host");
    refused(lending("\"n1\"", "server", "", ""), "a device of the host, not its bridge to others");
    refused(lending("\"nic\", \"nic\"", "server", "", ""), "a device once");
    refused(lending("\"nic\"", "server", "\"nic\", \"nic\"", ""), "expected a device once");
    refused(both(world(32, "server", "rx"),
                 g_strdup("lending = { lender = { host = \"lender\"; lend = [\"nic\"]; };"
                          " borrower = { host = \"server\"; borrow = [\"nic\"]; };"
                          " third = { host = \"client\"; borrow = [\"nic\"]; }; };\n")),
            "a device that nobody else borrows: borrower does");
    refused(without(lending("\"nic\"", "server", "\"nic\"", ""), NTB_CABLE_TEXT),
            "cables, directly or through switches, from port p1 of a pcie.ntb of borrower to that "
            "of one of lender, which lends nic");
    refused(lending("\"nic\"", "lender", "", ""), "a host that no other group has");
    refused(lending("\"nic\"", "client", "\"nic\"", ""),
            "a pcie.ntb in the tree of a host that lends or borrows");
    refused(lending("\"nic\"", "server", "\"nic\"", "dma_window_bytes = 100000;"),
            "a power of two");
    refused(lending("\"nic\"", "server", "\"nic\"", "max_peers = 1000;"), "pool_bytes");
    refused(lending("\"nic\"", "server", "\"nic\"", "dma_windows_bytes = 65536;"),
            "dma_window_bytes");
    refused(lending("1", "server", "", ""), "the name of a device");
    refused(lending("\"nic\"", "server", "", ""),
            "a nic.ethernet that the host borrows, or has and does not lend");
    /* What is lent is not there for its owner. */
    refused(both(world(32, "lender", "rx"), g_strdup_printf(LENDING, "\"nic\"", "server", "", "")),
            "a nic.ethernet that the host borrows, or has and does not lend");
}

/* The lender's bridge has entries for its CPUs alone. */
static void test_full_table(void **state)
{
    (void)state;
    refused(both(world(1, "server", "rx"),
                 g_strdup_printf(LENDING, "\"nic\"", "server", "\"nic\"", "")),
            "2 or more: one for each of the 1 root complexes of lender, one for a device");
}

/* ---- Without a network ----------------------------------------------------------------------- */

#define ADAPTERS                                                                                          \
    "hosts = { " HOST("near") HOST(                                                                       \
        "far") "};\n"                                                                                     \
               "devices = { n0 = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; };"                   \
               " n1 = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; outgoing_requesters = 3; };"     \
               " sw = { type = \"pcie.switch\"; downstream_ports = 3; lanes = 8;"                         \
               " downstream_lanes = 8; };"                                                                \
               " own = " SMALL " d0 = " SMALL " d1 = " SMALL " d2 = " SMALL "};\n"                        \
               "cables = ( { from = \"near.s0.rp0\"; to = \"n0.p0\"; },"                                  \
               " { from = \"near.s0.rp1\"; to = \"own.p0\"; },"                                           \
               " { from = \"far.s0.rp0\"; to = \"n1.p0\"; }, { from = \"far.s0.rp1\"; to = \"sw.p0\"; }," \
               " { from = \"sw.p1\"; to = \"d0.p0\"; }, { from = \"sw.p2\"; to = \"d1.p0\"; },"           \
               " { from = \"sw.p3\"; to = \"d2.p0\"; },"                                                  \
               " { from = \"n0.p1\"; to = \"n1.p1\"; length_m = 2.0; } );\n"                              \
               "lending = { near = { host = \"near\"; borrow = [%s]; };"                                  \
               " far = { host = \"far\"; lend = [\"d0\", \"d1\", \"d2\"]; }; };\n"                        \
               "workload = { type = \"programs\"; measured = \"near\"; };\n"                              \
               "measure = { warmup_us = 20; duration_us = 100000; };\n"
#define SMALL "{ type = \"pcie.requester\"; lanes = 8; bar_bytes = \"64 KiB\"; };"

static char *adapters(const char *borrow, const char *programs)
{
    return both(g_strdup_printf(ADAPTERS, borrow), g_strdup(programs));
}

/* Its own adapter and a borrowed one, by the same driver; what they write and read is checked. */
static void test_device_dma(void **state)
{
    (void)state;
    const char *const direction[] = { "write", "read" };
    for (unsigned i = 0; i < 2; i++) {
        struct run_result *result = run_result_new();
        char *programs = g_strdup_printf(
            "programs = { own = { type = \"device_dma\"; on = \"near\"; device = \"own\";"
            " direction = \"%s\"; queue_depth = 1; };"
            " lent = { type = \"device_dma\"; on = \"near\"; device = \"d1\";"
            " direction = \"%s\"; queue_depth = 1; }; };\n",
            direction[i], direction[i]);
        char *text = adapters("\"d1\"", programs);
        memcpy(strstr(text, "100000"), "   200", 6); /* these do not end by themselves */
        char *error = run_into(text, result);
        if (error != NULL)
            fail_msg("%s", error);
        double own = run_result_value(result, "own.latency_mean_ns");
        double lent = run_result_value(result, "lent.latency_mean_ns");
        assert_true(run_result_value(result, "own.throughput_gbyte_s") > 0.1);
        if (i == 1) /* four chips and two cables each way, at 110 ns or more */
            assert_true(lent > own + 600 && lent < own + 3000);
        g_free(programs);
        run_result_free(result);
    }
}

static char *replaced(char *text, const char *what, const char *by)
{
    char **parts = g_strsplit(text, what, 2);
    char *now = g_strjoinv(by, parts);
    assert_int_equal(g_strv_length(parts), 2);
    g_strfreev(parts);
    g_free(text);
    return now;
}

/* With one write at a time over a cable of 100 us, the driver is at work long after the measurement
 * has ended: the hosts go down behind it. */
static void test_device_dma_ends_late(void **state)
{
    (void)state;
    char *text = adapters("\"d1\"", "programs = { lent = { type = \"device_dma\"; on = \"near\";"
                                    " device = \"d1\"; }; };\n");
    text = replaced(text, "length_m = 2.0;", "latency_ns = 100000.0;");
    text = replaced(text, "{ type = \"pcie.ntb\";",
                    "{ type = \"pcie.ntb\"; posted_header_credits = 1;");
    text = replaced(text, "warmup_us = 20; duration_us = 100000;",
                    "warmup_us = 50; duration_us = 50;");
    scenario_fails(text, "not one transfer began and ended");
    g_free(text);
}

/* Little's law: transfers under way are their rate times their time. */
static void test_littles_law(void **state)
{
    (void)state;
    for (unsigned depth = 1; depth <= 64; depth *= 8) {
        struct run_result *result = run_result_new();
        char *programs = g_strdup_printf(
            "programs = { own = { type = \"device_dma\"; on = \"near\"; device = \"own\";"
            " direction = \"read\"; queue_depth = %u; };"
            " lent = { type = \"device_dma\"; on = \"near\"; device = \"d1\";"
            " direction = \"write\"; queue_depth = %u; }; };\n",
            depth, depth);
        char *text = adapters("\"d1\"", programs);
        memcpy(strstr(text, "100000"), "   500", 6);
        memcpy(strstr(text, "= 20;"), "=200;", 5); /* mapping the buffer takes time, too */
        char *error = run_into(text, result);
        if (error != NULL)
            fail_msg("%s", error);
        const char *const names[] = { "own", "lent" };
        for (unsigned i = 0; i < 2; i++) {
            char rate[64], time[64];
            snprintf(rate, sizeof(rate), "%s.throughput_gbyte_s", names[i]);
            snprintf(time, sizeof(time), "%s.latency_mean_ns", names[i]);
            const double under_way = run_result_value(result, rate) / 4096 *
                                     run_result_value(result, time);
            if (fabs(under_way - depth) > 0.03 * depth)
                fail_msg("%s: depth %u, %.3f under way", names[i], depth, under_way);
        }
        g_free(programs);
        run_result_free(result);
    }
}

/* Three entries, one of them the CPUs': two devices, and an error code for the third. */
static void test_limit(void **state)
{
    (void)state;
    struct run_result *result = run_result_new();
    char *error = run_into(
        adapters("", "programs = { limit = { type = \"borrow_limit\"; on = \"near\"; }; };"),
        result);
    if (error != NULL)
        fail_msg("%s", error);
    assert_true(run_result_value(result, "devices_borrowed") == 2);
    assert_true(run_result_value(result, "limit.lenders_refused") == 1);
    assert_true(run_result_value(result, "limit.refusal_errno") == 28); /* ENOSPC */
    run_result_free(result);
}

/* A device that is taken away at work: back to back both ends see that the cable is out, the device
 * is reset, which takes 100 ms, and works again; a lender that asks for it has it at once. */
static void test_taken(void **state)
{
    static const char *const event[] = { "cable", "reclaim" }, *const direction[] = { "write",
                                                                                      "read" };
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct run_result *result = run_result_new();
        char *programs = g_strdup_printf(
            "programs = { victim = { type = \"device_taken\"; on = \"near\"; from = \"far\";"
            " device = \"d1\"; bridge = \"n0\"; event = \"%s\"; direction = \"%s\";"
            " out_ms = 10; }; };\n",
            event[i / 2], direction[i % 2]);
        char *text = adapters("", programs);
        memcpy(strstr(text, "100000"), "999999", 6);
        char *error = run_into(text, result);
        if (error != NULL)
            fail_msg("%s", error);
        double again_ms = run_result_value(result, "borrowed_after_ms");
        assert_true(run_result_value(result, "transfers_before") > 3);
        assert_true(run_result_value(result, "transfers_failed") > 0);
        assert_in_range((uint64_t)run_result_value(result, "removed_after_us"), 5, 300);
        if (i < 2)
            assert_true(again_ms > 100 && again_ms < 103);
        else
            assert_true(again_ms < 2);
        g_free(programs);
        run_result_free(result);
    }
}

/* Runs device_taken with these settings besides. */
static struct run_result *taken(const char *settings, const char *direction)
{
    struct run_result *result = run_result_new();
    char *programs = g_strdup_printf(
        "programs = { victim = { type = \"device_taken\"; on = \"near\"; from = \"far\";"
        " device = \"d1\"; direction = \"%s\"; %s }; };\n",
        direction, settings);
    char *text = adapters("", programs);
    memcpy(strstr(text, "100000"), "999999", 6);
    char *error = run_into(text, result);
    if (error != NULL)
        fail_msg("%s", error);
    g_free(programs);
    return result;
}

/* Back to back the other host sees its link go down at once. */
static void test_death(void **state)
{
    static const char *const direction[] = { "write", "read" };
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct run_result *result = taken("event = \"death\"; dies = \"near\";", direction[i]);
        assert_true(run_result_value(result, "transfers_failed") > 0);
        assert_in_range((uint64_t)run_result_value(result, "lease_over_after_us"), 10, 300);
        run_result_free(result);
        result = taken("event = \"death\"; dies = \"far\";", direction[i]);
        assert_in_range((uint64_t)run_result_value(result, "removed_after_us"), 5, 100);
        run_result_free(result);
    }
}

/* The cable is back before its transfers have ended, several times. */
static void test_cable_back(void **state)
{
    static const char *const settings[] = {
        "bridge = \"n0\"; returns = \"at_work\"; out_ms = 0.002;",
        "bridge = \"n1\"; returns = \"at_work\"; out_ms = 0.05; pulls = 5;",
    };
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct run_result *result = taken(settings[i / 2], i % 2 == 0 ? "write" : "read");
        assert_in_range((uint64_t)run_result_value(result, "removed_after_us"), 5, 100);
        assert_true(run_result_value(result, "borrowed_after_ms") > 100);
        run_result_free(result);
    }
}

#define TAKEN "type = \"device_taken\"; on = \"near\"; from = \"far\"; "

static void test_program_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *borrow, *program, *message;
    } wrong[] = {
        { "\"d1\"", TAKEN "device = \"d1\"; bridge = \"n0\";", "that no host borrows" },
        { "", TAKEN "device = \"own\"; bridge = \"n0\";", "a device that the host `from` lends" },
        { "", TAKEN "device = \"d1\";", "a pcie.ntb with a cable" },
        { "", TAKEN "device = \"d1\"; event = \"death\"; dies = \"fra\";",
          "the host `on` or `from`" },
        { "", TAKEN "device = \"d1\"; event = \"death\"; dies = \"near\"; next = \"far\";",
          "a third host" },
        { "", TAKEN "device = \"d1\"; bridge = \"n0\"; pulls = 2;", "1, or returns = " },
        { "\"d1\"", "type = \"cold_migration\"; from = \"near\"; to = \"far\"; gpu = \"d1\";",
          "a GPU that the host `from` borrows" },
        { "\"d1\"", "type = \"borrow_limit\"; on = \"near\"; from = \"near\";",
          "another host than `on`" },
    };
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char *programs = g_strdup_printf("programs = { p = { %s }; };\n", wrong[i].program);
        refused(adapters(wrong[i].borrow, programs), wrong[i].message);
        g_free(programs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_borrowed_nic), cmocka_unit_test(test_local),
        cmocka_unit_test(test_mistakes),     cmocka_unit_test(test_full_table),
        cmocka_unit_test(test_device_dma),   cmocka_unit_test(test_device_dma_ends_late),
        cmocka_unit_test(test_littles_law),  cmocka_unit_test(test_limit),
        cmocka_unit_test(test_taken),        cmocka_unit_test(test_death),
        cmocka_unit_test(test_cable_back),   cmocka_unit_test(test_program_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
