/*
 * The distributed NVMe driver in simulated hosts: a manager on any of them, clients with queues in
 * any place, with and without IOMMUs. The programs compare every block with what was written; a run
 * fails if a window, a table entry or a mapping is left at its end.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/scenario_fixture.h"

#define HOST                                                                             \
    "{ cpu = { sockets = 1; cores_per_socket = 4; }; dram = { node_size = \"1 GiB\"; };" \
    " cache = { llc_size = 2097152; llc_slices = 2; llc_ways = 16; };"                   \
    " ports = ( { name = \"rp0\"; socket = 0; lanes = 8; },"                             \
    " { name = \"rp1\"; socket = 0; lanes = 8; } ); iommu = { enabled = %s; }; };\n"
#define BRIDGE "{ type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; bar2_bytes = \"1 GiB\"; };\n"
#define WORLD                                                                                               \
    "hosts = { borrower = " HOST "other = " HOST "lender = " HOST "};\n"                                    \
    "devices = { n0 = " BRIDGE "n1 = " BRIDGE "n2 = " BRIDGE                                                \
    " middle = { type = \"pcie.cluster_switch\"; };\n"                                                      \
    " chassis = { type = \"pcie.switch\"; downstream_ports = 3; lanes = 8; };\n"                            \
    " gpu = { type = \"gpu.cuda\"; lanes = 8; };\n"                                                         \
    " small = { type = \"pcie.requester\"; lanes = 4; };\n"                                                 \
    " ssd = { type = \"nvme.controller\"; capacity_bytes = \"1 GiB\"; enable_latency_us = 10;"              \
    " jitter_mean_ns = 100; %s }; };\n"                                                                     \
    "cables = ( { from = \"borrower.s0.rp0\"; to = \"n0.p0\"; },"                                           \
    " { from = \"other.s0.rp0\"; to = \"n1.p0\"; }, { from = \"lender.s0.rp0\"; to = \"n2.p0\"; },"         \
    " { from = \"n0.p1\"; to = \"middle.p0\"; length_m = 2.0; },"                                           \
    " { from = \"n1.p1\"; to = \"middle.p1\"; length_m = 2.0; },"                                           \
    " { from = \"n2.p1\"; to = \"middle.p2\"; length_m = 2.0; },"                                           \
    " { from = \"lender.s0.rp1\"; to = \"chassis.p0\"; },"                                                  \
    " { from = \"chassis.p1\"; to = \"gpu.p0\"; },"                                                         \
    " { from = \"chassis.p2\"; to = \"ssd.p0\"; lanes = 4; },"                                              \
    " { from = \"chassis.p3\"; to = \"small.p0\"; lanes = 4; } );\n"                                        \
    "lending = { lender = { host = \"lender\"; lend = [\"gpu\", \"ssd\", \"small\"]; };"                    \
    " borrower = { host = \"borrower\"; borrow = [%s]; }; other = { host = \"other\"; borrow = []; }; };\n" \
    "workload = { type = \"programs\"; measured = \"borrower\"; };\n"                                       \
    "measure = { warmup_us = %u; duration_us = %u; };\n"                                                    \
    "programs = { m = { type = \"nvme_manager\"; %s };"                                                     \
    " p = { type = \"nvme_clients\"; %s %s }; };\n"

struct set {
    bool iommu, lender_iommu, gpu;
    unsigned warmup_us, duration_us; /* 0: 5000, 300 */
    const char *manager, *clients, *ssd;
};

static char *text_of(struct set s)
{
    const char *const clients = s.iommu ? "true" : "false";
    return g_strdup_printf(
        WORLD, clients, clients, s.lender_iommu ? "true" : "false", s.ssd != NULL ? s.ssd : "",
        s.gpu ? "\"gpu\"" : "", s.warmup_us != 0 ? s.warmup_us : 5000,
        s.duration_us != 0 ? s.duration_us : 300, s.manager != NULL ? s.manager : "",
        strstr(s.clients, "span_bytes") == NULL ? "span_bytes = 131072;" : "", s.clients);
}

static struct run_result *run(struct set s)
{
    g_autofree char *text = text_of(s);
    return scenario_run(text);
}

static double metric(struct set s, const char *name)
{
    struct run_result *result = run(s);
    const double value = scenario_value(result, name);
    run_result_free(result);
    return value;
}

/* SmartIO, 7.4.1: a queue that is closer to the device than the client is lets commands be complete
 * sooner, most of all one within the device; nothing is sooner than the media. */
static void test_places(void **state)
{
    static const char *const place[] = { "sq = \"local_ram\";", "sq = \"remote_ram\";",
                                         "sq = \"remote_gpu\"; sq_gpu = \"gpu\";",
                                         "sq = \"cmb\";" };
    double p50[4];
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        p50[i] = metric(
            (struct set){
                .iommu = true, .gpu = true, .clients = place[i], .ssd = "cmb_bytes = 262144;" },
            "p.latency_p50_ns");
    assert_true(p50[1] < p50[0] - 500 && p50[2] < p50[0] - 500);
    assert_true(p50[3] < p50[1] - 200 && p50[3] < p50[2] - 200 && p50[3] > 4200);
}

/* With every combination of IOMMUs; data in memory of the host and of a borrowed GPU. */
static void test_iommus(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct set s = { .iommu = (i & 1) != 0, .lender_iommu = (i & 2) != 0 };
        s.clients = "sq = \"remote_ram\"; clients = 2;";
        assert_true(metric(s, "p.clients_progressing") == 2);
        s.gpu = s.iommu; /* else all memory of the borrower would have to fit into the lender's
                      * aperture */
        s.clients = s.gpu ? "gpu = \"gpu\";" : "";
        assert_true(metric(s, "p.iops") > 50000);
    }
}

/* The manager runs anywhere, also where a client does; so does a client. */
static void test_anywhere(void **state)
{
    struct set s = { .iommu = true, .clients = "clients = 2;" };
    (void)state;
    s.manager = "on = \"other\";";
    assert_true(metric(s, "p.clients_progressing") == 2);
    s.manager = "on = \"borrower\";";
    assert_true(metric(s, "p.clients_progressing") == 2);
    const double remote = metric((struct set){ .iommu = true, .clients = "" }, "p.latency_p50_ns");
    const double local = metric((struct set){ .iommu = true, .clients = "on = \"lender\";" },
                                "p.latency_p50_ns");
    assert_true(local < remote - 500 && local > 4200);
}

/* Writes and reads, PRP lists, deep queues, of two clients at once. */
static void test_mixed(void **state)
{
    (void)state;
    struct run_result *result = run((struct set){
        .lender_iommu = true,
        .warmup_us = 7000,
        .duration_us = 1000,
        .clients = "clients = 2; read_ratio = 0.5; queue_depth = 16; block_bytes = 16384;"
                   " span_bytes = 1048576;" });
    assert_true(scenario_value(result, "p.throughput_gbyte_s") > 1.5);
    assert_true(scenario_value(result, "p.clients_progressing") == 2);
    assert_true(scenario_value(result, "m.requests_refused") == 0);
    run_result_free(result);
}

/* NVM Express 1.3, section 4.13: of two clients that both keep more commands under way than the
 * controller takes, each has the same in turn; eight times as much as the other by weight; all of
 * it if it is urgent. The controller ends a command in longer than it takes to fetch the next one
 * of a queue: else the other queue comes into its own meanwhile. */
static void test_arbitration(void **state)
{
    static const struct {
        const char *manager, *p, *q;
        double least, most; /* of all commands, those of p */
    } is[] = {
        { "", "", "", 0.45, 0.55 },
        { "arbitration = \"weighted\"; weight_high = 8;", "priority = \"high\";",
          "priority = \"low\";", 0.86, 0.91 },
        { "arbitration = \"weighted\";", "priority = \"urgent\";", "", 1, 1 },
    };
    (void)state;
    for (unsigned i = 0; i < sizeof is / sizeof is[0]; i++) {
        g_autofree char *two = g_strdup_printf(
            "queue_depth = 32; span_bytes = 524288; %s }; q = { type = \"nvme_clients\"; on = \"other\";"
            " cpu = 2; queue_depth = 32; span_bytes = 524288; %s",
            is[i].p, is[i].q);
        struct run_result *result =
            run((struct set){ .warmup_us = 7000,
                              .duration_us = 2000,
                              .manager = is[i].manager,
                              .clients = two,
                              .ssd = "commands_max = 16; command_interval_ns = 5000;" });
        const double p = scenario_value(result, "p.iops"), q = scenario_value(result, "q.iops");
        assert_true(p + q > 100000);
        assert_true(p / (p + q) >= is[i].least && p / (p + q) <= is[i].most);
        assert_true(scenario_value(result, "q.clients_progressing") == (is[i].most < 1));
        run_result_free(result);
    }
}

/* A client whose host dies in the midst of a command: the manager takes its queues when the lease
 * is over, the other client goes on, the controller too. If a read of the dead host is under way,
 * the deletion waits for the controller's completion time-out: whether one is depends on when the
 * host dies. */
static void test_death(void **state)
{
    static const unsigned dies_us[] = { 100, 150, 200 };
    unsigned n_waiting = 0;
    (void)state;
    for (unsigned i = 0; i < 2 * SIM_N_ELEMENTS(dies_us); i++) {
        g_autofree char *clients = g_strdup_printf("clients = 2; dies = 2; dies_us = %u;",
                                                   dies_us[i / 2]);
        struct run_result *result = run((struct set){ .iommu = true,
                                                      .lender_iommu = i % 2 != 0,
                                                      .duration_us = 60000,
                                                      .manager = "lease_ms = 5.0;",
                                                      .clients = clients });
        assert_true(scenario_value(result, "m.leases_expired") == 1);
        assert_true(scenario_value(result, "m.queues_reclaimed") == 1);
        assert_true(scenario_value(result, "p.others_after_death") == 1);
        const double after_us = scenario_value(result, "p.reclaimed_after_us");
        const bool waits = after_us > 50000 && after_us < 50500; /* completion_timeout_us */
        assert_true(waits || (after_us > 3000 && after_us < 6500));
        n_waiting += waits;
        assert_true(scenario_value(result, "ssd.fatal") == 0);
        run_result_free(result);
    }
    assert_in_range(n_waiting, 1, 2 * SIM_N_ELEMENTS(dies_us) - 1);
}

/* fio's engine: two jobs are two clients; the manager is on another host. */
static void test_fio(void **state)
{
    (void)state;
    g_autofree char *clients = text_of(
        (struct set){ .iommu = true,
                      .warmup_us = 9000,
                      .duration_us = 1000,
                      .manager = "on = \"other\";",
                      .clients = "jobs = 2; queue_depth = 4; block_bytes = 16384; read_ratio = 0.5;"
                                 " engine = \"smartio\"; span_bytes = 2097152;" });
    g_auto(GStrv) parts = g_strsplit(clients, "\"nvme_clients\"", 2);
    g_autofree char *text = g_strconcat(parts[0], "\"fio\"", parts[1], NULL);
    struct run_result *result = scenario_run(text);
    assert_true(scenario_value(result, "p.iops") > 50000);
    assert_true(scenario_value(result, "m.leases_expired") == 0);
    run_result_free(result);
}

/* Requests that are no whole pages and larger than 128 KiB: their lists have room for all pages. */
static void test_fio_blocks(void **state)
{
    (void)state;
    g_autofree char *clients = text_of((struct set){
        .iommu = true,
        .warmup_us = 1000,
        .duration_us = 400000,
        .ssd = "transfer_bytes_max = 1048576;",
        .clients = "engine = \"smartio\";"
                   " job_options = \"rw=randread bs=134656 iodepth=8 loops=20 size=2693120\";" });
    g_auto(GStrv) parts = g_strsplit(clients, "\"nvme_clients\"", 2);
    g_auto(GStrv) more = g_strsplit(parts[1], "span_bytes = 131072;", 2);
    g_autofree char *text = g_strconcat(parts[0], "\"fio\"", more[0], more[1], NULL);
    struct run_result *result = scenario_run(text);
    assert_true(scenario_value(result, "p.throughput_gbyte_s") > 1);
    run_result_free(result);
}

/* A command that takes longer than programs wait for one (50 ms) ends the run with a message, as
 * does a span that is not written when the run ends; what the device may still execute stays until
 * the queue pair is gone. */
static void test_slow_device(void **state)
{
    (void)state;
    g_autofree char *fill = text_of((struct set){
        .iommu = true, .warmup_us = 200000, .ssd = "write_latency_ns = 60000000;", .clients = "" });
    scenario_fails(fill, "p: borrower: cannot begin: Connection timed out");
    g_autofree char *span = text_of(
        (struct set){ .iommu = true, .warmup_us = 1000, .clients = "span_bytes = 134217728;" });
    scenario_fails(span, "p: not one command was measured: span_bytes is written first");
    g_autofree char *wild = text_of((struct set){
        .iommu = true,
        .warmup_us = 8000,
        .duration_us = 900000,
        .ssd = "read_latency_ns = 60000000;",
        .clients = "on = \"other\"; }; r = { type = \"nvme_rogue\"; on = \"borrower\";"
                   " victim = \"other\"; cpu = 2;" });
    scenario_fails(wild, "r: a command: Connection timed out");
}

/* A client whose commands have wild addresses, beside one that compares what it reads: without the
 * lender's IOMMU its memory is harmed and read out; with it not a line, and nobody stops. The
 * buffer of another client is mapped for the same function, so that is no protection for it. */
static void test_rogue(void **state)
{
    static const char rogue[] =
        "}; r = { type = \"nvme_rogue\"; on = \"other\"; victim = \"borrower\";"
        " commands = 60; attack = \"%s\";";
    static const char *const attacks[] = { "all", "queue" };
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        g_autofree char *more = g_strdup_printf(rogue, attacks[i / 2]);
        g_autofree char *clients = g_strconcat("read_ratio = 0.5;", more, NULL);
        const bool on = i % 2 != 0, queues = i / 2 != 0;
        struct run_result *result = run((struct set){
            .lender_iommu = on, .warmup_us = 8000, .duration_us = 100000, .clients = clients });
        const double overwritten = scenario_value(result, "r.lender_lines_overwritten");
        const double leaked = scenario_value(result, "r.lender_lines_leaked");
        assert_true(on ? overwritten == 0 && leaked == 0
                       : overwritten > 0 && (queues || leaked > 0));
        assert_true(scenario_value(result, "r.victim_lines_overwritten") > 0);
        assert_true(scenario_value(result, "r.rogue_errors") > 0 || queues);
        assert_true(scenario_value(result, "p.clients_progressing") == 1);
        assert_true(scenario_value(result, "ssd.fatal") == 0);
        run_result_free(result);
    }
}

/* fio while a host dies: the manager's, the lender, its own. It says what has happened and ends. */
static void test_fio_death(void **state)
{
    static const char lease[] = "has ended its lease or does not answer";
    static const struct {
        const char *manager, *on, *dies, *message;
        double lease_ms;
    } death[] = {
        { "other", "other", "other", lease, 5 },
        { "lender", "other", "lender", lease, 5 },
        { "lender", "borrower", "borrower", lease, 5 },
        { "other", "other", "lender", "job 1 has lost the device: no path to its lender", 500 },
    };
    (void)state;
    for (unsigned i = 0; i < sizeof(death) / sizeof(death[0]); i++) {
        g_autofree char *manager = g_strdup_printf("on = \"%s\"; lease_ms = 5.0;",
                                                   death[i].manager);
        g_autofree char *more = g_strdup_printf(
            "engine = \"smartio\"; queue_depth = 4; span_bytes = 2097152; };"
            " x = { type = \"device_taken\"; on = \"%s\"; from = \"lender\"; device = \"small\";"
            " event = \"death\"; dies = \"%s\"; after_us = 10000.0;",
            death[i].on, death[i].dies);
        g_autofree char *clients = text_of((struct set){ .iommu = true,
                                                         .warmup_us = 9000,
                                                         .duration_us = 200000,
                                                         .manager = manager,
                                                         .clients = more });
        g_auto(GStrv) parts = g_strsplit(clients, "\"nvme_clients\"", 2);
        g_autofree char *text = g_strconcat(parts[0], "\"fio\"", parts[1], NULL);
        scenario_fails(text, death[i].message);
    }
}

static void test_refused(void **state)
{
    static const struct {
        struct set set;
        const char *message;
    } refused[] = {
        { { .clients = "clients = 3;" }, "programs.p.clients: found 3" },
        { { .clients = "device = \"gpu\";" },
          "that a program nvme_manager before this one manages" },
        { { .clients = "sq = \"near\";" }, "programs.p.sq" },
        { { .clients = "dies = 2;" }, "the number of a client, from 1, or 0" },
        { { .clients = "dies = 1; dies_us = 900.0;", .duration_us = 900 },
          "programs.p.dies_us: found 900 (a number), expected less than measure.duration_us" },
        { { .clients = "clients = 2;", .ssd = "queue_pairs = 2;" },
          "programs.p.clients: found 2 (an integer), expected at most the 1 queue pairs for I/O of ssd" },
        { { .clients = "}; f = { type = \"fio\"; on = \"other\"; engine = \"smartio\"; jobs = 2;"
                       " span_bytes = 131072;",
            .ssd = "queue_pairs = 3;" },
          "programs.f.jobs: found 2 (an integer), expected at most the 2 queue pairs for I/O of ssd (its "
          "queue_pairs, less that of administration), one for each client and path: this program "
          "needs 2, those before it have 1" },
        { { .clients = "}; r = { type = \"nvme_rogue\"; on = \"other\";" },
          "programs.r.victim: found \"other\" (the default), expected another host than `on`" },
        { { .clients = "span_bytes = 100000;" }, "programs.p.span_bytes" },
        { { .clients = "", .manager = "device = \"gpu\";" },
          "an nvme.controller that a host lends" },
        { { .clients = "", .manager = "poll_us = 900.0;" }, "at most a 32nd of lease_ms" },
    };
    (void)state;
    for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        g_autofree char *text = text_of(refused[i].set);
        scenario_refused_among(text, refused[i].message);
    }
}

/* What only shows at run time: no memory buffer, or an IOMMU that keeps the controller from its
 * own. */
static void test_no_cmb(void **state)
{
    (void)state;
    g_autofree char *none = text_of((struct set){ .clients = "sq = \"cmb\";" });
    scenario_fails(none, "no memory buffer for submission queues");
    g_autofree char *translated = text_of((struct set){
        .lender_iommu = true, .clients = "sq = \"cmb\";", .ssd = "cmb_bytes = 262144;" });
    scenario_fails(translated, "no memory buffer for submission queues");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),      cmocka_unit_test(test_iommus),
        cmocka_unit_test(test_anywhere),    cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_arbitration), cmocka_unit_test(test_death),
        cmocka_unit_test(test_fio),         cmocka_unit_test(test_fio_blocks),
        cmocka_unit_test(test_slow_device), cmocka_unit_test(test_fio_death),
        cmocka_unit_test(test_rogue),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_cmb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
