/* The programs ntb_dma, ntb_latency and ntb_stores: what is refused before anything runs; latencies
 * and rates that follow the lengths and widths of what lies between two machines. */
#include <math.h>
#include <string.h>

#include "tests/support/scenario_fixture.h"

#define HOST(NAME)                                                       \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; } ); " \
         "dram = { node_size = \"1 GiB\"; }; "                           \
         "cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; }; };\n"
#define BRIDGE                                                                                \
    "{ type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; latency_ns = %u; dma_channels = %u; " \
    "dma_reads_in_flight = %u; };"
#define WORLD                                                                                    \
    "hosts = { " HOST("server") HOST(                                                            \
        "other") "};\n"                                                                          \
                 "devices = { n0 = " BRIDGE " n1 = " BRIDGE " };\n"                              \
                 "cables = ( { from = \"server.s0.rp0\"; to = \"n0.p0\"; },"                     \
                 " { from = \"other.s0.rp0\"; to = \"n1.p0\"; },"                                \
                 " { from = \"n0.p1\"; to = \"n1.p1\"; length_m = 2.0; latency_ns = 0.0; } );\n" \
                 "lending = { server = { host = \"server\"; borrow = []; };"                     \
                 " other = { host = \"other\"; %s pool_bytes = \"4 MiB\"; }; };\n"               \
                 "workload = { type = \"programs\"; };\n"                                        \
                 "programs = { p = { on = \"server\"; %s }; };\n"                                \
                 "measure = { warmup_us = 2000; duration_us = 1000000; };\n"

struct setup {
    unsigned latency_ns, channels, reads;
    const char *member, *program;
};

static char *world(const struct setup *s)
{
    return g_strdup_printf(WORLD, s->latency_ns, s->channels, s->reads, s->latency_ns, s->channels,
                           s->reads, s->member, s->program);
}

static double run(const struct setup *setup, const char *metric, const char *fails)
{
    double value = 0.0;
    char *text = world(setup);
    if (fails != NULL)
        scenario_fails(text, fails);
    else {
        struct run_result *result = scenario_run(text);
        value = run_result_value(result, metric);
        run_result_free(result);
    }
    g_free(text);
    return value;
}

static void refused(const struct setup *setup, const char *message)
{
    char *text = world(setup);
    scenario_refused_among(text, message);
    g_free(text);
}

#define MEMBER    "lend = [];"
#define LATENCY   "type = \"ntb_latency\"; peer = \"other\"; round_trips = 50;"
#define DMA(MORE) "type = \"ntb_dma\"; peer = \"other\"; transfers = 1; " MORE

static void test_mistakes(void **state)
{
    (void)state;
    const struct {
        const char *member, *program, *message;
    } wrong[] = {
        { MEMBER, "type = \"ntb_latency\"; peer = \"othr\";", "did you mean \"other\"" },
        { MEMBER, "type = \"ntb_latency\"; peer = \"server\";", "another host than `on`" },
        { "", LATENCY, "a host that lends or borrows" },
        { "", DMA(""), "a host that lends or borrows" },
        { MEMBER "vm = { first_cpu = 1; cpus = 2; };", DMA(""), "without a group `vm`" },
        { MEMBER "vm = { first_cpu = 1; cpus = 2; };", LATENCY, "without a group `vm`" },
        { MEMBER, DMA("transfer_bytes = 100;"), "a multiple of 64 bytes" },
        { MEMBER, DMA("local = \"n0\";"),
          "a device of type gpu.cuda that the host borrows, or has" },
        { MEMBER, DMA("remote = \"gpu\";"),
          "a device of type gpu.cuda that the host borrows, or has" },
        { MEMBER, DMA("direction = \"up\";"), "direction" },
    };
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refused(&(struct setup){ 100, 1, 64, wrong[i].member, wrong[i].program }, wrong[i].message);
}

/* What only shows when it runs. */
static void test_failures(void **state)
{
    (void)state;
    run(&(struct setup){ 100, 0, 64, MEMBER, DMA("") }, NULL, "no engine");
    run(&(struct setup){ 100, 1, 64, MEMBER, DMA("transfer_bytes = \"8 MiB\";") }, NULL,
        "pool_bytes");
}

/* Two chips are in the way of a store. */
static void test_latency(void **state)
{
    (void)state;
    double nearer = run(&(struct setup){ 100, 0, 64, MEMBER, LATENCY }, "write_latency_ns", NULL);
    double further = run(&(struct setup){ 200, 0, 64, MEMBER, LATENCY }, "write_latency_ns", NULL);
    assert_true(nearer > 200.0 && nearer < 700.0);
    assert_true(fabs(further - nearer - 200.0) < 5.0);
}

/* Few reads in flight: rates are in proportion to them, and longer ways cost more; both directions,
 * by interrupt and by looking. */
static void test_rates(void **state)
{
    (void)state;
    const char *const program[] = { DMA("direction = \"write\"; transfer_bytes = \"1 MiB\";"),
                                    DMA("direction = \"read\"; transfer_bytes = \"1 MiB\"; "
                                        "completion = \"poll\";") };
    double rate[2][3];
    for (unsigned i = 0; i < 2; i++) {
        const struct setup setup[3] = { { 100, 4, 4, MEMBER, program[i] },
                                        { 100, 4, 8, MEMBER, program[i] },
                                        { 200, 4, 4, MEMBER, program[i] } };
        for (unsigned k = 0; k < 3; k++)
            rate[i][k] = run(&setup[k], "throughput_gbyte_s", NULL);
        assert_true(fabs(rate[i][1] / rate[i][0] - 2.0) < 0.1);
        assert_true(rate[i][2] < 0.95 * rate[i][0]);
    }
    /* Time that a place is taken: 100 ns of chip more for a write, 400 ns more for a read. */
    for (unsigned i = 0; i < 2; i++) {
        double more_ns = 4 * 64 / rate[i][2] - 4 * 64 / rate[i][0];
        assert_true(fabs(more_ns - (i == 0 ? 100.0 : 400.0)) < 15.0);
    }
}

/* Several on a bridge have a channel each, and share the engine's reads; with none left it is said.
 * Latency programs spin on a CPU each. */
static void test_several(void **state)
{
    (void)state;
    const char *const two = DMA(
        "direction = \"write\"; transfer_bytes = \"1 MiB\"; };"
        " q = { on = \"server\"; type = \"ntb_dma\"; peer = \"other\"; transfers = 1;"
        " direction = \"write\"; transfer_bytes = \"1 MiB\";");
    const struct setup setup = { 100, 4, 8, MEMBER, two }, one_channel = { 100, 1, 8, MEMBER, two };
    assert_true(run(&setup, "p.throughput_gbyte_s", NULL) > 0.1);
    assert_true(run(&setup, "q.throughput_gbyte_s", NULL) > 0.1);
    /* Each is over a time of its own: they do not add up. */
    char *text = world(&setup);
    struct run_result *result = scenario_run(text);
    assert_false(run_result_has(result, RECORD_METRIC, "throughput_gbyte_s"));
    run_result_free(result);
    g_free(text);
    run(&one_channel, NULL, "the engine has 1 channels, each for one program");
    const char *const pings = "type = \"ntb_latency\"; peer = \"other\"; round_trips = 50; };"
                              " q = { type = \"ntb_latency\"; on = \"other\"; peer = \"server\";"
                              " round_trips = 50;";
    const struct setup latency = { 100, 4, 8, MEMBER, pings };
    const double p = run(&latency, "p.write_latency_ns", NULL),
                 q = run(&latency, "q.write_latency_ns", NULL);
    assert_true(p > 300 && p < 2000 && fabs(p - q) < 0.1 * p);
}

#define STORES(MORE) "type = \"ntb_stores\"; peer = \"other\"; transfers = 3; " MORE

/* Write-combined, 64 bytes take a TLP with a header of 12 or 16 bytes, framing 4, sequence number 2
 * and LCRC 4 on a link of 8 lanes at 8 GT/s, on which TLPs begin at multiples of 16; uncached, each
 * 8 bytes wait for those before. The other host finds every byte where it was stored. */
static void test_stores(void **state)
{
    (void)state;
    const double link = 8 * 8e9 * 128 / 130 / 8 / 1e9;
    const struct setup combined = { 100, 4, 8, MEMBER, STORES("transfer_bytes = \"256 KiB\";") },
                       far = { 300, 4, 8, MEMBER, STORES("transfer_bytes = \"256 KiB\";") },
                       uncached = { 100, 4, 8, MEMBER, STORES("stores = \"uncached\";") };
    const double rate = run(&combined, "throughput_gbyte_s", NULL);
    assert_true(rate > 0.95 * link * 64 / (64 + 32) && rate < link * 64 / (64 + 32) * 1.01);
    /* Posted: longer ways cost nothing as long as there are credits. */
    assert_true(fabs(run(&far, "throughput_gbyte_s", NULL) / rate - 1) < 0.03);
    const double slow = run(&uncached, "throughput_gbyte_s", NULL);
    assert_true(slow > 0.02 && slow < rate / 10);
    const struct setup odd = { 100, 4, 8, MEMBER, STORES("transfer_bytes = 100;") },
                       same = { 100, 4, 8, MEMBER, "type = \"ntb_stores\"; peer = \"server\";" },
                       large = { 100, 4, 8, MEMBER, STORES("transfer_bytes = \"8 MiB\";") };
    refused(&odd, "a multiple of 64 bytes");
    refused(&same, "another host than `on`");
    run(&large, NULL, "lending.other.pool_bytes?");
}

/* What is still on a cable of 0.1 ms when a copy has ended is waited for, not missed. */
static void test_long_cable(void **state)
{
    static const char *const programs[] = { DMA("direction = \"write\";"), STORES("") };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(programs); i++) {
        const struct setup setup = { 100, 1, 64, MEMBER, programs[i] };
        g_autofree char *short_one = world(&setup);
        g_autoptr(GString) text = g_string_new(short_one);
        assert_int_equal(g_string_replace(text, "latency_ns = 0.0", "latency_ns = 100000.0", 0), 1);
        struct run_result *result = scenario_run(text->str);
        assert_true(run_result_value(result, "throughput_gbyte_s") > 0);
        run_result_free(result);
    }
}

/* Words on a link that stores fill: each waits for at least a TLP of 64 bytes now and then (11.2
 * ns, one way of two), and never for more than what the first bridge has credits for (64 TLPs). The
 * stores connect while processors of both hosts spin. */
static void test_beside(void **state)
{
    (void)state;
    const char *const both = "type = \"ntb_latency\"; peer = \"other\"; round_trips = 1000; };"
                             " q = { on = \"server\"; cpu = 2; transfer_bytes = \"1 MiB\"; "
                             "type = \"ntb_stores\"; peer = \"other\"; transfers = 5;";
    const struct setup alone = { 100, 0, 64, MEMBER, LATENCY },
                       beside = { 100, 0, 64, MEMBER, both };
    const double quiet = run(&alone, "write_latency_ns", NULL),
                 busy = run(&beside, "p.write_latency_ns", NULL);
    assert_true(busy > quiet + 11.2 / 2);
    assert_true(busy < quiet + 64 * 11.2 / 2);
    assert_true(run(&beside, "q.throughput_gbyte_s", NULL) > 5.0);
}

#define HOST_OF_TWO                                                                      \
    "server = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; },"                   \
    " { name = \"rp1\"; socket = 0; lanes = 8; } ); dram = { node_size = \"1 GiB\"; }; " \
    "cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; }; };\n"
#define PLAIN_BRIDGE "{ type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; };"

/* Each of two programs has a segment of its own on the host that they share: what the one gives
 * back when it is done is not what the other's peer, behind a cable of 0.1 ms, asks for then. */
static void test_segments(void **state)
{
    (void)state;
    static const char text[] = "hosts = { " HOST_OF_TWO HOST("near") HOST(
        "far") "};\n"
               "devices = { n0 = " PLAIN_BRIDGE " n1 = " PLAIN_BRIDGE " f0 = " PLAIN_BRIDGE
               " f1 = " PLAIN_BRIDGE " };\n"
               "cables = ( { from = \"server.s0.rp0\"; to = \"n0.p0\"; },"
               " { from = \"near.s0.rp0\"; to = \"n1.p0\"; }, { from = \"n0.p1\"; to = \"n1.p1\"; },"
               " { from = \"server.s0.rp1\"; to = \"f0.p0\"; }, { from = \"far.s0.rp0\"; to = \"f1.p0\"; },"
               " { from = \"f0.p1\"; to = \"f1.p1\"; latency_ns = 100000.0; } );\n"
               "lending = { server = { host = \"server\"; borrow = []; };"
               " near = { host = \"near\"; lend = []; }; far = { host = \"far\"; lend = []; }; };\n"
               "workload = { type = \"programs\"; };\n"
               "programs = {"
               " p = { type = \"ntb_latency\"; on = \"server\"; peer = \"far\"; round_trips = 5; };"
               " q = { type = \"ntb_latency\"; on = \"server\"; peer = \"near\"; round_trips = 1; }; };\n"
               "measure = { warmup_us = 0; duration_us = 1000000; };\n";
    struct run_result *result = scenario_run(text);
    assert_true(run_result_value(result, "p.write_latency_ns") > 100000);
    assert_true(run_result_value(result, "q.write_latency_ns") < 2000);
    run_result_free(result);
}

/* A CPU that spins is shared with no other program. */
static void test_spinning(void **state)
{
    (void)state;
#define WITH_STORES(PING, STORE)                                               \
    "type = \"ntb_latency\"; peer = \"other\"; round_trips = 50; " PING " }; " \
    "q = { type = \"ntb_stores\"; on = \"server\"; peer = \"other\"; transfers = 1; " STORE
    const struct setup shared = { 100, 0, 64, MEMBER, WITH_STORES("", "") },
                       later = { 100, 0, 64, MEMBER, WITH_STORES("cpu = 3;", "cpu = 3;") },
                       apart = { 100, 0, 64, MEMBER, WITH_STORES("cpu = 3;", "") },
                       none = { 100, 0, 64, MEMBER, WITH_STORES("cpu = 4;", "") };
    refused(&shared, "a CPU of server of its own: p spins on CPU 1 until it ends");
    refused(&later, "a CPU of server of its own: p spins on CPU 3 until it ends");
    refused(&none, "a CPU that both hosts have");
    assert_true(run(&apart, "p.write_latency_ns", NULL) > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spinning), cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_failures), cmocka_unit_test(test_latency),
        cmocka_unit_test(test_rates),    cmocka_unit_test(test_several),
        cmocka_unit_test(test_stores),   cmocka_unit_test(test_long_cable),
        cmocka_unit_test(test_beside),   cmocka_unit_test(test_segments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
