/* fio and training on small machines, local and borrowed: what is read is what was written (the
 * programs check every byte), rates are those of the media, mistakes are said. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/store/query.h"
#include "tests/support/scenario_fixture.h"

#define HOST                                                                                   \
    "{ cpu = { sockets = 1; cores_per_socket = 4; }; dram = { node_size = \"2 GiB\"; };"       \
    " ports = ( { name = \"rp0\"; socket = 0; lanes = 8; },"                                   \
    " { name = \"rp1\"; socket = 0; lanes = 8; }, { name = \"rp2\"; socket = 0; lanes = 8; }," \
    " { name = \"rp3\"; socket = 0; lanes = 8; } ); iommu = { enabled = true; }; }; "
#define SSD    "ssd = { type = \"nvme.controller\"; capacity_bytes = \"2 GiB\"; }; "
#define BRIDGE "{ type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; bar2_bytes = \"1 GiB\"; }; "
#define LOCAL  LOCAL_WITH("")
#define LOCAL_WITH(MORE)                                                               \
    "hosts = { borrower = " HOST "};\ndevices = { ssd = { type = \"nvme.controller\";" \
    " capacity_bytes = \"2 GiB\"; " MORE "}; };\n"                                     \
    "cables = ( { from = \"borrower.s0.rp1\"; to = \"ssd.p0\"; lanes = 4; } );\n"      \
    "lending = { borrower = { host = \"borrower\"; }; };\n"
#define LENT                                                                                 \
    "hosts = { borrower = " HOST "lender = " HOST "};\n"                                     \
    "devices = { n0 = " BRIDGE "n1 = " BRIDGE SSD "};\n"                                     \
    "cables = ( { from = \"borrower.s0.rp0\"; to = \"n0.p0\"; },"                            \
    " { from = \"lender.s0.rp0\"; to = \"n1.p0\"; }, { from = \"n0.p1\"; to = \"n1.p1\"; }," \
    " { from = \"lender.s0.rp1\"; to = \"ssd.p0\"; lanes = 4; } );\n"                        \
    "lending = { borrower = { host = \"borrower\"; borrow = [\"ssd\"]; };"                   \
    " lender = { host = \"lender\"; lend = [\"ssd\"]; }; };\n"
#define ENGINE "{ type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; dma_channels = 1; }; "
#define SHARED                                                                               \
    "hosts = { borrower = " HOST "lender = " HOST "};\n"                                     \
    "devices = { n0 = " ENGINE "n1 = " ENGINE SSD                                            \
    "ssd2 = { type = \"nvme.controller\"; capacity_bytes = \"2 GiB\"; }; };\n"               \
    "cables = ( { from = \"borrower.s0.rp0\"; to = \"n0.p0\"; },"                            \
    " { from = \"lender.s0.rp0\"; to = \"n1.p0\"; }, { from = \"n0.p1\"; to = \"n1.p1\"; }," \
    " { from = \"lender.s0.rp1\"; to = \"ssd.p0\"; lanes = 4; },"                            \
    " { from = \"lender.s0.rp2\"; to = \"ssd2.p0\"; lanes = 4; } );\n"                       \
    "lending = { borrower = { host = \"borrower\"; borrow = []; };"                          \
    " lender = { host = \"lender\"; lend = [\"ssd\", \"ssd2\"]; }; };\n"
#define GPU "{ type = \"gpu.cuda\"; lanes = 8; device_id = 7089; }; "
#define GPUS                                                            \
    "hosts = { borrower = " HOST "};\n"                                 \
    "devices = { gpu0 = " GPU "gpu1 = " GPU SSD "};\n"                  \
    "cables = ( { from = \"borrower.s0.rp0\"; to = \"gpu0.p0\"; },"     \
    " { from = \"borrower.s0.rp2\"; to = \"gpu1.p0\"; },"               \
    " { from = \"borrower.s0.rp1\"; to = \"ssd.p0\"; lanes = 4; } );\n" \
    "lending = { borrower = { host = \"borrower\"; }; };\n"
#define WORKLOAD "workload = { type = \"programs\"; measured = \"borrower\"; };\n"
#define FIO(MORE)                                                     \
    WORKLOAD "measure = { warmup_us = 5000; duration_us = 5000; };\n" \
             "programs = { fio = { type = \"fio\"; span_bytes = \"4 MiB\"; " MORE "}; };"

static double metric(const char *text, const char *name)
{
    struct run_result *result = scenario_run(text);
    double v = scenario_value(result, name);
    run_result_free(result);
    return v;
}

/* A host with clients of two managers, beside a program that has a segment there, too. */
static void test_two_managers(void **state)
{
    (void)state;
    static const char text[] = SHARED WORKLOAD
        "measure = { warmup_us = 5000; duration_us = 1000000; };\n"
        "programs = { copy = { type = \"ntb_dma\"; on = \"lender\";"
        " peer = \"borrower\"; transfers = 50; };"
        " m = { type = \"nvme_manager\"; };"
        " c = { type = \"nvme_clients\"; span_bytes = 131072; };"
        " m2 = { type = \"nvme_manager\"; device = \"ssd2\"; cpu = 1; };"
        " c2 = { type = \"nvme_clients\"; device = \"ssd2\"; cpu = 2;"
        " span_bytes = 131072; }; };";
    struct run_result *result = scenario_run(text);
    assert_true(scenario_value(result, "c.iops") > 50000);
    assert_true(scenario_value(result, "c2.iops") > 50000);
    run_result_free(result);
}

/* A manager and its clients, left out by one switch. */
static void test_left_out(void **state)
{
    (void)state;
    static const char text[] = SHARED WORKLOAD
        "measure = { warmup_us = 5000; duration_us = 1000000; };\n"
        "programs = { m = { type = \"nvme_manager\"; enabled = false; };"
        " c = { type = \"nvme_clients\"; enabled = false; };"
        " f = { type = \"fio\"; engine = \"smartio\"; enabled = false; };"
        " m2 = { type = \"nvme_manager\"; device = \"ssd2\"; };"
        " c2 = { type = \"nvme_clients\"; device = \"ssd2\"; operations = 20;"
        " span_bytes = 131072; }; };";
    assert_true(metric(text, "iops") > 50000);
}

/* A controller that two programs would drive past the kernel, each for itself. */
static void test_one_driver(void **state)
{
    static const char *const programs[] = {
        "a = { type = \"fio\"; engine = \"spdk\"; }; b = { type = \"fio\"; engine = \"spdk\"; };",
        "a = { type = \"gpu_storage\"; }; b = { type = \"fio\"; engine = \"spdk\"; cpu = 2; };",
        "a = { type = \"fio\"; engine = \"spdk\"; cpu = 2; }; b = { type = \"gpu_storage\"; };",
    };
    static const char *const shared[] = {
        "a = { type = \"nvme_manager\"; }; b = { type = \"nvme_manager\"; cpu = 1; };",
        "a = { type = \"nvme_manager\"; }; b = { type = \"nvme_multicast\"; };",
        "a = { type = \"nvme_multicast\"; }; b = { type = \"nvme_multicast\"; group = 2; };",
    };
    static const char message[] =
        "programs.b.device: found \"ssd\" (the default), expected a controller that no other "
        "program drives";
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(programs); i++) {
        g_autofree char *text =
            g_strdup_printf("%s" WORKLOAD "programs = { %s };\n"
                            "measure = { warmup_us = 0; duration_us = 100000; };\n",
                            GPUS, programs[i]);
        g_autoptr(GString) with = g_string_new(text);
        g_string_replace(with, "host = \"borrower\";", "host = \"borrower\"; nvme_driver = false;",
                         1);
        scenario_refused(with->str, message);
    }
    for (unsigned i = 0; i < SIM_N_ELEMENTS(shared); i++) {
        g_autofree char *text = g_strdup_printf("%s" WORKLOAD "programs = { %s };\n", SHARED,
                                                shared[i]);
        scenario_refused(text, message);
    }
}

/* Rates of clients that end by themselves are over their own time, whoever is measured beside them:
 * a command at a time, so rate x latency is 1, less what a client does between two commands. */
static void test_clients_end(void **state)
{
    (void)state;
    static const char text[] = SHARED WORKLOAD
        "measure = { warmup_us = 5000; duration_us = 1000000; };\n"
        "programs = { m = { type = \"nvme_manager\"; };"
        " c = { type = \"nvme_clients\"; span_bytes = 131072; operations = 100; };"
        " m2 = { type = \"nvme_manager\"; device = \"ssd2\"; cpu = 1; };"
        " c2 = { type = \"nvme_clients\"; device = \"ssd2\"; cpu = 2;"
        " span_bytes = 131072; operations = 2000; }; };";
    static const char *const clients[] = { "c", "c2" };
    struct run_result *result = scenario_run(text);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(clients); i++) {
        char iops[32], latency[32];
        snprintf(iops, sizeof(iops), "%s.iops", clients[i]);
        snprintf(latency, sizeof(latency), "%s.latency_mean_ns", clients[i]);
        const double depth = scenario_value(result, iops) * scenario_value(result, latency) * 1e-9;
        assert_true(depth > 0.9 && depth <= 1);
    }
    run_result_free(result);
}

/* One at a time: at least what the device alone takes; the same whatever ends it. */
static void test_sync(void **state)
{
    (void)state;
    double local = metric(LOCAL FIO(""), "latency_p50_ns");
    assert_true(local > 4200 && local < 16000);
    assert_true(metric(LOCAL FIO("operations = 50;"), "latency_p50_ns") > 4200);
    double lent = metric(LENT FIO(""), "latency_p50_ns");
    assert_true(lent > local && lent < local + 5000);
}

/* A process that drives the controller itself is faster than the kernel that polls: it has no
 * system call and no block layer. It works on a borrowed device, too, by several jobs with writes
 * among reads, and not on a controller that the kernel's driver has. */
static double spdk(const char *text, const char *lending, const char *name)
{
    g_auto(GStrv) parts = g_strsplit(text, "borrower = { host", 2);
    g_autofree char *set = g_strconcat(parts[0], "borrower = { ", lending, " host", parts[1], NULL);
    return metric(set, name);
}

static void test_spdk(void **state)
{
    (void)state;
    static const char free_one[] = "nvme_driver = false;";
    const double polled_ns = spdk(LOCAL FIO(""), "nvme_polled = true;", "latency_p50_ns");
    const double spdk_ns = spdk(LOCAL FIO("engine = \"spdk\";"), free_one, "latency_p50_ns");
    assert_true(spdk_ns > 4200 && spdk_ns < polled_ns - 1000);
    assert_true(spdk(LOCAL FIO("engine = \"spdk\"; queue_depth = 16; jobs = 2; read_ratio = 0.5;"),
                     free_one, "iops") > 300000);
    assert_true(spdk(LENT FIO("engine = \"spdk\"; block_bytes = 131072;"), free_one,
                     "throughput_gbyte_s") > 1.0);
    scenario_refused(LOCAL FIO("engine = \"spdk\";"), "nvme_driver = false");
    scenario_refused(
        LOCAL FIO("engine = \"spdk\"; device = \"ssd1\";"),
        "or that a program nvmeof_target before this one, and not switched off, exports; "
        "did you mean \"ssd\"?");
    g_autoptr(GString) few = g_string_new(LOCAL_WITH("queue_pairs = 2;")
                                              FIO("engine = \"spdk\"; jobs = 2;"));
    g_string_replace(few, "host = \"borrower\";", "host = \"borrower\"; nvme_driver = false;", 1);
    scenario_refused(few->str,
                     "programs.fio.jobs: found 2 (an integer), expected at most as many jobs at a "
                     "time as ssd has queue pairs for I/O: 1");
}

/* The kernel's engines, and what reads files, where the kernel has no driver. */
static void test_no_kernel_driver(void **state)
{
    static const char *const texts[] = {
        LOCAL FIO(""),
        LOCAL WORKLOAD "programs = { fio = { type = \"fio\"; job_options ="
                       " \"size=1m rw=randread direct=1 ioengine=io_uring\"; }; };",
        GPUS WORKLOAD "programs = { t = { type = \"training\"; }; };",
    };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(texts); i++) {
        g_auto(GStrv) parts = g_strsplit(texts[i], "borrower = { host", 2);
        g_autofree char *text = g_strconcat(parts[0], "borrower = { nvme_driver = false; host",
                                            parts[1], NULL);
        scenario_refused(text, "an NVMe device whose host has nvme_driver = true");
    }
}

/* An engine by its name. The system call that libaio has more is made while the device works: not
 * in the latency, but in the processor's time. */
static void test_engine(void **state)
{
    (void)state;
    static const char *const engines[] = { "", "engine = \"sync\";", "engine = \"libaio\";" };
    double latency[3], busy[3];
    for (unsigned i = 0; i < 3; i++) {
        g_autofree char *text = g_strdup_printf(LOCAL FIO("operations = 50; %s"), engines[i]);
        struct run_result *result = scenario_run(text);
        latency[i] = scenario_value(result, "latency_p50_ns");
        busy[i] = scenario_value(result, "cpu_utilization_ratio");
        run_result_free(result);
    }
    assert_true(latency[0] == latency[1] && busy[0] == busy[1]);
    assert_true(fabs(latency[2] - latency[0]) < 200 && busy[2] > busy[0]);
    scenario_refused(LOCAL FIO("engine = \"libaoi\";"), "did you mean \"libaio\"");
    scenario_refused(LOCAL FIO("engine = \"sync\"; queue_depth = 2;"),
                     "queue_depth: found 2 (an integer), expected 1, as the engine is synchronous");
}

static char *replaced(const char *text, const char *part, const char *other)
{
    g_auto(GStrv) parts = g_strsplit(text, part, -1);
    assert_true(g_strv_length(parts) > 1); /* else the test is one of something else */
    return g_strjoinv(other, parts);
}

static char *nvmeof_with(const char *part, const char *other)
{
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents("tests/scenario/settings/nvmeof.cfg", &text, NULL, NULL));
    return replaced(text, part, other);
}

/* The adapter that serves reads writes the queue's head into responses that it finds inline. */
static void test_nvmeof_adapters(void **state)
{
    (void)state;
    g_autofree char *gathered = nvmeof_with("\"rdma.adapter\";",
                                            "\"rdma.adapter\"; inline_bytes = 15;");
    g_autofree char *offloaded = replaced(gathered, "adapter = \"r0\";",
                                          "adapter = \"r0\"; offload = true;");
    struct run_result *result = scenario_run(gathered);
    assert_true(scenario_value(result, "iops") > 10000);
    run_result_free(result);
    scenario_refused(offloaded, "programs.p.offload: found true (a boolean), expected an adapter "
                                "with inline_bytes of at least 16");
}

/* A packet that is lost near the end is sent again after its time-out, and the target is still
 * there to answer. Two thirds of the time is such time-outs: of three ends one lies in one. */
static void test_nvmeof_loss(void **state)
{
    static const char *const duration[] = { "80000", "120000", "170000" };
    (void)state;
    g_autofree char *lossy = nvmeof_with("to = \"r1.i0\";", "to = \"r1.i0\"; loss_ratio = 0.001;");
    g_autofree char *alone = replaced(lossy, "queue_depth = 24;",
                                      "queue_depth = 1; laid_out = true;");
    for (size_t i = 0; i < SIM_N_ELEMENTS(duration); i += scenario_stride(3)) {
        g_autofree char *measure = g_strdup_printf("duration_us = %s;", duration[i]);
        g_autofree char *longer = replaced(alone, "duration_us = 300;", measure);
        struct run_result *result = scenario_run(longer);
        assert_true(scenario_value(result, "iops") > 500);
        run_result_free(result);
    }
}

/* Names that the group `functions` defines: one message for a mistake, which says what the name
 * is. */
static void test_names(const char *text)
{
    static const char *const refused[][2] = {
        { "functions = { port = \"ssd.vf9\"; };", "functions.port: found \"ssd.vf9\"" },
        { "functions = { port = \"n1\"; };",
          "expected a device of the host, not its bridge to others (functions.port stands for \"n1\")" },
        { "functions = { prot = \"ssd.vf1\"; };",
          "lend.[0]: found \"port\" (a string), expected a device that is plugged into the host, or a "
          "name that the group `functions` defines" },
        { "functions = { port = \"ssd.vf0\"; };",
          "programs.vf.device: found \"ssd.vf0\" (a string), expected a device of type "
          "nvme.controller that the host borrows, or has and does not lend (it is lent, as \"port\")" },
    };
    g_autofree char *named = replaced(text, "\"ssd.vf1\"", "\"port\"");
    for (unsigned i = 0; i < SIM_N_ELEMENTS(refused); i++) {
        g_autofree char *wrong = g_strconcat(named, refused[i][0], NULL);
        scenario_refused(wrong, refused[i][1]);
    }
}

/* Three hosts' worth of controllers on one drive: its own, and two in virtual functions, one of
 * which is lent; all at once, and the media is shared. */
static void test_virtual_functions(void **state)
{
    (void)state;
    static const char text[] =
        "hosts = { borrower = " HOST "lender = " HOST "};\n"
        "devices = { n0 = " BRIDGE "n1 = " BRIDGE
        "ssd = { type = \"nvme.controller\"; capacity_bytes = \"2 GiB\"; virtual_functions = 3; }; };\n"
        "cables = ( { from = \"borrower.s0.rp0\"; to = \"n0.p0\"; },"
        " { from = \"lender.s0.rp0\"; to = \"n1.p0\"; }, { from = \"n0.p1\"; to = \"n1.p1\"; },"
        " { from = \"lender.s0.rp1\"; to = \"ssd.p0\"; lanes = 4; } );\n"
        "lending = { borrower = { host = \"borrower\"; borrow = [\"ssd.vf1\"]; };"
        " lender = { host = \"lender\"; sriov_numvfs = 2; lend = [\"ssd.vf1\"]; }; };\n" WORKLOAD
        "measure = { warmup_us = 5000; duration_us = 5000; };\n"
        "programs = { "
        "pf = { type = \"fio\"; on = \"lender\"; device = \"ssd\"; span_bytes = \"4 MiB\"; cpu = 1;"
        " queue_depth = 16; }; "
        "vf = { type = \"fio\"; on = \"lender\"; device = \"ssd.vf0\"; span_bytes = \"4 MiB\"; cpu = 2;"
        " queue_depth = 16; }; "
        "lent = { type = \"fio\"; on = \"borrower\"; device = \"ssd.vf1\"; span_bytes = \"4 MiB\";"
        " cpu = 1; queue_depth = 16; }; };";
    static const char *const names[] = { "pf.throughput_gbyte_s", "vf.throughput_gbyte_s",
                                         "lent.throughput_gbyte_s" };
    struct run_result *result = scenario_run(text);
    double sum = 0;
    for (unsigned i = 0; i < 3; i++) {
        const double rate = scenario_value(result, names[i]);
        assert_true(rate > 0.7 && rate < 0.9); /* a third of 2.4 each */
        sum += rate;
    }
    /* 48 requests of 4 KiB, 1.6 % of the measured bytes, are under way at either end. */
    if (sum <= 2.4 * 0.95 || sum >= 2.4 * 1.01)
        fail_msg("%.3f GB/s of 2.4", sum);
    run_result_free(result);
    g_autofree char *wrong = g_strdup(text);
    memcpy(strstr(wrong, "sriov_numvfs = 2"), "sriov_numvfs = 4", strlen("sriov_numvfs = 4"));
    scenario_refused(wrong,
                     "sriov_numvfs: found 4 (an integer), expected at most 3, as many virtual "
                     "functions as ssd has");
    test_names(text);
}

/* Queues are no longer than the controller's may be: what finds no entry waits, or is refused. */
static void test_short_queues(void **state)
{
#define MEASURE "measure = { warmup_us = 100; duration_us = 1000000; };\n"
    static const char clients[] = SHARED WORKLOAD MEASURE
        "programs = { m = { type = \"nvme_manager\"; };"
        " c = { type = \"nvme_clients\"; span_bytes = 131072; operations = 100; queue_depth = 16; }; };";
    static const char jobs[] = SHARED WORKLOAD MEASURE
        "programs = { m = { type = \"nvme_manager\"; };"
        " f = { type = \"fio\"; engine = \"smartio\"; job_options = \"filename=x direct=1 bs=4k"
        " size=16m rw=randwrite iodepth=4096 number_ios=5000\"; }; };";
    static const char *const entries[] = { "2", "16", "4096", "65536" };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(entries); i++) {
        g_autofree char *ssd = g_strdup_printf("ssd = { queue_entries = %s;", entries[i]);
        g_autofree char *text = replaced(jobs, "ssd = {", ssd);
        assert_true(metric(text, "f.iops") > 1000);
    }
    g_autofree char *few = replaced(clients, "ssd = {", "ssd = { queue_entries = 16;");
    g_autofree char *enough = replaced(few, "queue_depth = 16;", "queue_depth = 15;");
    scenario_refused(few,
                     "programs.c.queue_depth: found 16 (an integer), expected fewer than the 16 "
                     "entries of a queue of ssd");
    assert_true(metric(enough, "c.iops") > 1000);
}

/* Many at a time: the media's 2.4 GB/s, the commands' interval. */
static void test_depth(void **state)
{
    (void)state;
    double local = metric(LOCAL FIO("queue_depth = 16; jobs = 3;"), "throughput_gbyte_s");
    assert_true(local > 2.4 * 0.97 && local < 2.4 * 1.01);
    double iops = metric(LENT FIO("queue_depth = 16; jobs = 3; block_bytes = 512;"), "iops");
    assert_true(iops > 588000 * 0.97 && iops < 588000 * 1.01);
}

/* Rates of few operations begin with the first submission: one request at a time makes one request
 * in the time that it takes; many make no more than the media give. */
static void test_few_operations(void **state)
{
    (void)state;
    struct run_result *result = scenario_run(LOCAL FIO("operations = 1;"));
    double iops = scenario_value(result, "iops"),
           latency = scenario_value(result, "latency_mean_ns");
    assert_true(fabs(iops * latency * 1e-9 - 1.0) < 1e-6);
    run_result_free(result);
    double deep = metric(LOCAL FIO("operations = 1; queue_depth = 64;"), "throughput_gbyte_s");
    assert_true(deep > 0.6 && deep < 2.4);
    deep = metric(LOCAL FIO("operations = 800; queue_depth = 16; jobs = 3;"), "throughput_gbyte_s");
    assert_true(deep > 2.2 && deep < 2.4 * 1.01);
}

/* Little's law: what is under way is rate times time, whatever bounds the rate, and rates do not
 * hang on how long is measured. A job spends 600 cycles of 2 GHz between two requests of a slot. */
static void test_littles_law(void **state)
{
    static const unsigned depths[] = { 2, 16, 128, 512 };
    double iops[SIM_N_ELEMENTS(depths)][2];
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(depths); i++)
        for (unsigned k = 0; k < 2; k++) {
            char text[4096];
            snprintf(text, sizeof(text),
                     LOCAL WORKLOAD "measure = { warmup_us = 9000; duration_us = %u; };\n"
                                    "programs = { fio = { type = \"fio\"; span_bytes = \"4 MiB\";"
                                    " block_bytes = 512; queue_depth = %u; jobs = %u; }; };",
                     k == 0 ? 3000u : 6000u, depths[i], i < 2 ? 2u : 1u);
            struct run_result *result = scenario_run(text);
            iops[i][k] = scenario_value(result, "iops");
            const double s = scenario_value(result, "latency_mean_ns") * 1e-9,
                         under_way = iops[i][k] * s, slots = depths[i] * (i < 2 ? 2u : 1u),
                         own = iops[i][k] * 300e-9;
            if (fabs(under_way + own - slots) > 0.03 * slots)
                fail_msg("depth %u: %.2f under way, %.2f being made", depths[i], under_way, own);
            run_result_free(result);
        }
    for (unsigned i = 0; i < SIM_N_ELEMENTS(depths); i++)
        assert_true(fabs(iops[i][1] / iops[i][0] - 1.0) < 0.02);
    assert_true(fabs(iops[2][0] / iops[3][0] - 1.0) < 0.02);
}

/* Queues that are polled: no messages, and neither interrupt nor wake-up is in the latency. */
static void test_polled(void **state)
{
    static const char *const worlds[] = { LOCAL, LENT };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(worlds); i++)
        for (unsigned depth = 1; depth <= 300; depth = depth * 17 + 1) {
            double latency[2], iops[2], messages[2];
            for (unsigned polled = 0; polled < 2; polled++) {
                char *program = g_strdup_printf(FIO("queue_depth = %u;"), depth);
                char *text = g_strconcat(worlds[i], program, NULL);
                if (polled == 1) {
                    char **parts = g_strsplit(text, "lending = { borrower = {", 2);
                    g_free(text);
                    text = g_strjoin("lending = { borrower = { nvme_polled = true; ", parts[0],
                                     parts[1], NULL);
                    g_strfreev(parts);
                }
                struct run_result *result = scenario_run(text);
                latency[polled] = scenario_value(result, "latency_mean_ns");
                iops[polled] = scenario_value(result, "iops");
                messages[polled] = scenario_value(result, "ssd.interrupts");
                run_result_free(result);
                g_free(text);
                g_free(program);
            }
            assert_true(messages[0] > 0 && messages[1] == 0);
            assert_true(latency[1] < latency[0] - 500 && iops[1] > 1.05 * iops[0]);
            assert_true(fabs(iops[1] * latency[1] * 1e-9 / depth - 1.0) < 0.1);
        }
}

static struct run_result *run_cmb(const char *world, const char *fio, unsigned cmb_bytes,
                                  unsigned cmb_ns, unsigned cable_ns)
{
    g_autofree char *device = g_strdup_printf("capacity_bytes = \"2 GiB\"; fetch_burst = 1;"
                                              " cmb_bytes = %u; cmb_latency_ns = %u;",
                                              cmb_bytes, cmb_ns);
    g_autofree char *cable = g_strdup_printf("lanes = 4; latency_ns = %u; }", cable_ns);
    GString *text = g_string_new("");
    g_string_append_printf(text, "%s%s", world, fio);
    g_string_replace(text, "capacity_bytes = \"2 GiB\";", device, 1);
    g_string_replace(text, "lanes = 4; }", cable, 1);
    g_string_replace(text, "lending = { borrower = {",
                     "lending = { borrower = { nvme_polled = true;", 1);
    struct run_result *result = scenario_run(text->str);
    g_string_free(text, TRUE);
    assert_true(scenario_value(result, "ssd.errors") == 0);
    return result;
}

static double cmb_latency(const char *world, unsigned cmb_bytes, unsigned cmb_ns, unsigned cable_ns)
{
    struct run_result *result = run_cmb(world, FIO(""), cmb_bytes, cmb_ns, cable_ns);
    const double latency = scenario_value(result, "latency_p50_ns");
    const bool there = cmb_bytes >= 16384;
    /* The only reads of a controller that reads blocks are those of commands in memory. */
    assert_true((scenario_value(result, "ssd.dma_read_tlps") == 0) == there);
    assert_true(scenario_value(result, "ssd.cmb_fetches") ==
                (there ? scenario_value(result, "ssd.sqe_fetches") : 0));
    run_result_free(result);
    return latency;
}

/* Submission queues in the controller's memory buffer. A read crosses a cable four times, of which
 * twice to fetch its command: with the buffer twice. The buffer's latency is in it once. With four
 * CPUs, a page each is the least that is used. */
static void test_memory_buffer(void **state)
{
    static const char *const worlds[] = { LOCAL, LENT };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(worlds); i += scenario_stride(2)) {
        const double memory = cmb_latency(worlds[i], 0, 100, 10),
                     memory_far = cmb_latency(worlds[i], 0, 100, 2010),
                     cmb = cmb_latency(worlds[i], 65536, 100, 10),
                     cmb_far = cmb_latency(worlds[i], 65536, 100, 2010),
                     slow = cmb_latency(worlds[i], 65536, 1100, 10);
        assert_true(fabs(memory_far - memory - 8000) < 30);
        assert_true(fabs(cmb_far - cmb - 4000) < 30);
        assert_true(fabs(slow - cmb - 1000) < 30);
        assert_true(cmb < memory && cmb_far < memory_far - 4000);
        assert_true(fabs(cmb_latency(worlds[i], 8192, 100, 10) - memory) < 30);
        assert_true(fabs(cmb_latency(worlds[i], 16384, 100, 10) - cmb) < 30);
    }
}

/* A queue has one command after the other fetched: over a far cable a round trip each, and out of
 * the buffer none. */
static void test_memory_buffer_rate(void **state)
{
    static const char *const worlds[] = { LOCAL, LENT };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(worlds); i++)
        for (unsigned cmb = 0; cmb < 2; cmb++) {
            struct run_result *result =
                run_cmb(worlds[i], FIO("queue_depth = 48; block_bytes = 512; read_ratio = 0.9;"),
                        cmb * 65536, 100, 5000);
            const double iops = scenario_value(result, "iops");
            assert_true(cmb != 0 ? iops > 200000 : iops < 1e9 / 10000);
            run_result_free(result);
        }
}

/* Several on one device, each with blocks of its own: rates add up, latencies have their programs'
 * names alone. */
static void test_two_of_them(void **state)
{
    (void)state;
    struct run_result *result = scenario_run(
        LOCAL FIO("queue_depth = 4; }; other = { type = \"fio\"; span_bytes = \"2 MiB\"; cpu = 2;"
                  " read_ratio = 0.5; "));
    const double iops = scenario_value(result, "fio.iops"),
                 other = scenario_value(result, "other.iops");
    assert_true(iops > 100000 && other > 40000);
    assert_true(fabs(iops + other - scenario_value(result, "iops")) < 1);
    assert_true(scenario_value(result, "fio.latency_p50_ns") > 4200 &&
                scenario_value(result, "other.latency_p50_ns") > 4200);
    assert_false(run_result_has(result, RECORD_METRIC, "latency_p50_ns"));
    assert_false(run_result_has(result, RECORD_HISTOGRAM, "latency_ns"));
    assert_true(run_result_has(result, RECORD_HISTOGRAM, "other.latency_ns"));
    run_result_free(result);
    /* Of a number of operations each takes a time of its own. */
    result = scenario_run(
        LOCAL FIO("operations = 100; }; other = { type = \"fio\"; span_bytes = \"2 MiB\"; cpu = 2;"
                  " operations = 200; "));
    assert_true(scenario_value(result, "other.iops") > 40000);
    assert_false(run_result_has(result, RECORD_METRIC, "iops"));
    run_result_free(result);
    scenario_refused(LOCAL FIO("}; other = { type = \"fio\"; span_bytes = \"2 GiB\"; cpu = 2;"),
                     "programs.other.span_bytes: found \"2 GiB\" (a string), expected at most what "
                     "other programs leave of capacity_bytes");
}

/* A request larger than the device takes is split, and its parts are under way at once. */
static void test_split(void **state)
{
    (void)state;
    static const char *const engines[] = { "sync", "libaio", "io_uring" };
    const double whole = metric(LOCAL FIO("block_bytes = 131072; operations = 10;"),
                                "latency_p50_ns");
    for (unsigned i = 0; i < SIM_N_ELEMENTS(engines); i++) {
        g_autofree char *text = g_strdup_printf(
            LOCAL_WITH("transfer_bytes_max = 8192; ")
                FIO("block_bytes = 131072; engine = \"%s\"; read_ratio = 0.5; operations = 40;"),
            engines[i]);
        struct run_result *result = scenario_run(text);
        const double requests = scenario_value(result, "ssd.reads") +
                                scenario_value(result, "ssd.writes");
        assert_true(requests >= 40 * 16);
        assert_true(scenario_value(result, "latency_p50_ns") < 3 * whole);
        run_result_free(result);
    }
}

/* The run is over, the device goes back, and requests still wait for media of 20 MB/s (1 MB/s: not
 * one ended): their jobs get errors from a device that is not there any more. */
static void test_ends_before_requests(void **state)
{
    (void)state;
    static const char *const worlds[] = { LOCAL, LENT };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(worlds); i++)
        for (unsigned slow = 0; slow < 2; slow++) {
            GString *text = g_string_new(worlds[i]);
            g_string_append(text, FIO("block_bytes = 16384; queue_depth = 64; jobs = 2;"));
            g_string_replace(text, "capacity_bytes = \"2 GiB\";",
                             slow ? "capacity_bytes = \"2 GiB\"; read_gbyte_s = 0.001;"
                                  : "capacity_bytes = \"2 GiB\"; read_gbyte_s = 0.02;",
                             1);
            g_string_replace(text, "duration_us = 5000;", "duration_us = 250000;", 1);
            if (slow) {
                scenario_fails(text->str, "fio: not one request");
            } else {
                struct run_result *result = scenario_run(text->str);
                const double rate = scenario_value(result, "throughput_gbyte_s");
                assert_true(rate > 0.015 && rate < 0.0205);
                run_result_free(result);
            }
            g_string_free(text, TRUE);
        }
}

/* Writes among reads: what is read is what was written last. */
static void test_mixed(void **state)
{
    (void)state;
    static const char *const texts[] = {
        LOCAL FIO("read_ratio = 0.5;"),
        LENT FIO("read_ratio = 0.5; queue_depth = 8; jobs = 2; block_bytes = 131072;"),
        LENT FIO("read_ratio = 0.3; queue_depth = 8; jobs = 3; block_bytes = 512;"),
    };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(texts); i++) {
        struct run_result *result = scenario_run(texts[i]);
        assert_true(scenario_value(result, "ssd.writes") > 0 &&
                    scenario_value(result, "ssd.reads") > 0);
        assert_true(scenario_value(result, "ssd.errors") == 0);
        run_result_free(result);
    }
}

static void test_training(void **state)
{
    (void)state;
    struct run_result *result = scenario_run(
        GPUS WORKLOAD
        "measure = { warmup_us = 0; duration_us = 10000000; };\n"
        "programs = { t = { type = \"training\"; epochs = 2; batch_images = 4;"
        " compute_ms = 10; decode_cycles = 1000; epoch_steps = 10; layers = 9; }; };");
    const double weights_bytes = 14.02e6; /* of nine layers of VGG-19 */
    double step = scenario_value(result, "step_ms"),
           compute = scenario_value(result, "step_compute_ms");
    double epoch = scenario_value(result, "epoch_s");
    assert_true(compute >= 10.0 && compute < 10.1);
    /* The weights there, the gradients back over a link of 8 lanes. */
    assert_true(step - compute > 2 * weights_bytes / 7.9e6 &&
                step - compute < 2 * weights_bytes / 5.0e6);
    /* Ten steps, and the weights once to the host and, call by call, to media of 2.0 GB/s. */
    assert_true(epoch > step / 100.0 + weights_bytes / 2.0e9 &&
                epoch < step / 100.0 + weights_bytes / 0.8e9);
    run_result_free(result);
}

/* The least and the largest time of a series. */
static void series_times(struct run_result *result, const char *name, int64_t time_ps[2])
{
    const struct run_record record = {
        .scenario = "s", .point = "", .seed = 1, .status = "done", .command_line = "", .host = ""
    };
    char *message = NULL;
    struct results_db *db = results_open(RESULTS_IN_MEMORY, false, &message);
    assert_non_null(db);
    assert_true(results_store(db, &record, NULL, result, &message));
    struct results_cursor *cursor = results_series(db, "s", "", name);
    time_ps[0] = INT64_MAX;
    time_ps[1] = INT64_MIN;
    for (const struct results_sample *s; (s = results_next_sample(cursor)) != NULL;) {
        time_ps[0] = SIM_MIN(time_ps[0], s->t_ps);
        time_ps[1] = SIM_MAX(time_ps[1], s->t_ps);
    }
    assert_true(results_end(cursor, NULL));
    results_close(db);
}

/* Begins with the measurement, and counts from there. */
static void test_training_warm_up(void **state)
{
    (void)state;
    struct run_result *result = scenario_run(
        GPUS WORKLOAD
        "measure = { warmup_us = 300000; duration_us = 10000000; };\n"
        "programs = { t = { type = \"training\"; epochs = 2; batch_images = 4; files = 4;"
        " compute_ms = 10; decode_cycles = 1000; epoch_steps = 10; layers = 4; }; };");
    const double epoch_ps = scenario_value(result, "epoch_s") * 1e12;
    int64_t time_ps[2];
    series_times(result, "epoch_s", time_ps);
    assert_true(time_ps[0] > 10 * (int64_t)SIM_PS_PER_MS && (double)time_ps[0] < epoch_ps);
    assert_true(time_ps[1] > time_ps[0] && (double)time_ps[1] < 2 * epoch_ps);
    run_result_free(result);
}

/* Epochs that are alike: four tell, and one more reads back what was written. */
static void test_training_sampled(void **state)
{
    static const char text[] = GPUS WORKLOAD
        "measure = { warmup_us = 0; duration_us = 10000000; precision_ratio = %s; };\n"
        "programs = { t = { type = \"training\"; epochs = 12; batch_images = 4;"
        " compute_ms = 10; decode_cycles = 1000; epoch_steps = 10; layers = 4; }; };";
    (void)state;
    char *exact_text = g_strdup_printf(text, "0.0"), *sampled_text = g_strdup_printf(text, "0.05");
    struct run_result *exact = scenario_run(exact_text), *sampled = scenario_run(sampled_text);
    const char *note = run_result_note_text(sampled, "sampled", 0);
    assert_null(run_result_note_text(exact, "sampled", 0));
    assert_non_null(note);
    assert_non_null(strstr(note, "t: 5 of 12 epochs"));
    const double epoch_s = scenario_value(exact, "epoch_s");
    assert_true(fabs(scenario_value(sampled, "epoch_s") / epoch_s - 1) < 0.05);
    assert_true(scenario_value(sampled, "ssd.errors") == 0);
    run_result_free(exact);
    run_result_free(sampled);
    g_free(exact_text);
    g_free(sampled_text);
}

/* GPUs that are faster than the loader, which is in the midst of a batch when the last epoch is
 * over and the devices are taken down. */
static void test_slow_loader(void **state)
{
    (void)state;
    struct run_result *result = scenario_run(
        GPUS WORKLOAD
        "measure = { warmup_us = 0; duration_us = 10000000; };\n"
        "programs = { t = { type = \"training\"; epochs = 1; steps = 2; batch_images = 4;"
        " files = 4; compute_ms = 0; decode_cycles = 100000000; layers = 4; }; };");
    assert_true(scenario_value(result, "step_load_ms") > 0);
    assert_true(scenario_value(result, "ssd.errors") == 0);
    run_result_free(result);
}

static void test_refused(void **state)
{
    (void)state;
    scenario_refused(LOCAL FIO("device = \"nvme0\";"), "device");
    scenario_refused(LOCAL FIO("block_bytes = 3000;"), "power of two");
    scenario_refused(LOCAL FIO("cpu = 99;"), ".cpu: found 99");
    scenario_refused(LOCAL FIO("jobs = 4;"), "4 CPUs of the host in a row");
    scenario_refused(LOCAL FIO("queue_depth = 1024;"), "two blocks");
    scenario_refused(LOCAL WORKLOAD
                     "programs = { f = { type = \"fio\"; span_bytes = \"3 GiB\"; }; };",
                     "at most capacity_bytes");
    scenario_refused(GPUS WORKLOAD
                     "programs = { t = { type = \"training\"; batch_images = 3; }; };",
                     "even number");
    scenario_refused(GPUS WORKLOAD "programs = { t = { type = \"training\"; gpu1 = \"gpu0\"; }; };",
                     "another GPU");
    scenario_refused(GPUS WORKLOAD
                     "programs = { t = { type = \"training\"; image_bytes = 1000; }; };",
                     "whole blocks of the device");
    scenario_refused(GPUS WORKLOAD "programs = { t = { type = \"training\"; ssd = \"gpu0\"; }; };",
                     "nvme.controller");
}

/* STREAM beside fio: its kernels read six lines and store four of ten; stores read their lines
 * first, unless they are non-temporal. Twice the instances, nearly twice the traffic. */
static void test_stream_benchmark(void **state)
{
    static const char *const stores[] = { "ordinary", "non_temporal" };
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        double rate[2];
        for (unsigned n = 1; n <= 2; n++) {
            char text[2000];
            snprintf(text, sizeof(text),
                     LOCAL WORKLOAD
                     "measure = { warmup_us = 100; duration_us = 400; };\n"
                     "programs = { s = { type = \"stream_benchmark\"; on = \"borrower\";"
                     " instances = %u; block_bytes = 4096; stores = \"%s\"; }; };",
                     n, stores[i]);
            struct run_result *result = scenario_run(text);
            const double bytes = scenario_value(result, "stream_gbyte_s") * 400e3,
                         loads = scenario_value(result, "borrower.s0.dram_read_load_bytes"),
                         rfos = scenario_value(result, "borrower.s0.dram_read_rfo_bytes"),
                         victims = scenario_value(result, "borrower.s0.dram_write_victim_bytes"),
                         nt = scenario_value(result, "borrower.s0.dram_write_nt_bytes");
            assert_true(fabs(loads / bytes - 0.6) < 0.03);
            assert_true(fabs((i == 0 ? rfos : nt) / bytes - 0.4) < 0.03);
            assert_true(i == 0 ? victims > 0.35 * bytes : rfos < 0.01 * bytes);
            rate[n - 1] = scenario_value(result, "stream_gbyte_s");
            run_result_free(result);
        }
        assert_true(rate[0] > 4 && rate[1] > 1.7 * rate[0] && rate[1] < 2.02 * rate[0]);
    }
    scenario_refused(LOCAL WORKLOAD "programs = { s = { type = \"stream_benchmark\";"
                                    " on = \"borrower\"; instances = 4; }; };",
                     "4 CPUs of the host in a row");
    scenario_refused(LOCAL WORKLOAD "programs = { s = { type = \"stream_benchmark\";"
                                    " on = \"borrower\"; node = 1; }; };",
                     "a socket of the host that has memory");
    scenario_refused(LOCAL WORKLOAD "programs = { s = { type = \"stream_benchmark\";"
                                    " on = \"borrower\"; array_bytes = \"1 GiB\"; }; };",
                     "at most half of the node's memory");
    scenario_refused(LOCAL WORKLOAD "programs = { s = { type = \"stream_benchmark\";"
                                    " on = \"borrower\"; block_bytes = 100; }; };",
                     "whole lines");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_managers),
        cmocka_unit_test(test_clients_end),
        cmocka_unit_test(test_training_warm_up),
        cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_one_driver),
        cmocka_unit_test(test_sync),
        cmocka_unit_test(test_engine),
        cmocka_unit_test(test_spdk),
        cmocka_unit_test(test_no_kernel_driver),
        cmocka_unit_test(test_nvmeof_adapters),
        cmocka_unit_test(test_nvmeof_loss),
        cmocka_unit_test(test_virtual_functions),
        cmocka_unit_test(test_short_queues),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_few_operations),
        cmocka_unit_test(test_two_of_them),
        cmocka_unit_test(test_littles_law),
        cmocka_unit_test(test_polled),
        cmocka_unit_test(test_memory_buffer),
        cmocka_unit_test(test_memory_buffer_rate),
        cmocka_unit_test(test_ends_before_requests),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_training_sampled),
        cmocka_unit_test(test_slow_loader),
        cmocka_unit_test(test_stream_benchmark),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
