/* Workloads from configuration to metrics: what is recorded, what is refused, what fails. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/scenario_fixture.h"
#include "workloads/base/workload.h"

#define PORT "ports = ( { name = \"rp0\"; lanes = 8; } );"
#define NFP                                                \
    "hosts = { server = { " PORT " }; };"                  \
    "devices = { nfp = { type = \"pcie.requester\"; }; };" \
    "cables = ( { from = \"server.s0.rp0\"; to = \"nfp.p0\"; } );\n"
#define SHORT "measure = { duration_us = 60; warmup_us = 5; };\n"

struct outcome {
    struct run_result *result;
    char *error;
    bool ok;
};

static struct outcome run(const char *text)
{
    struct outcome outcome = { .result = run_result_new() };
    outcome.error = scenario_run_into(text, outcome.result);
    outcome.ok = outcome.error == NULL;
    return outcome;
}

static void done(struct outcome *outcome)
{
    run_result_free(outcome->result);
    g_free(outcome->error);
}

static double value(const struct outcome *outcome, const char *metric)
{
    return scenario_value(outcome->result, metric);
}

static void test_every_operation_carries_every_byte(void **unused)
{
    static const char *const ops[] = { "read", "write", "write_read", "read_write" };
    static const char *const caches[] = { "cold", "host_warm", "device_warm" };
    char text[1024];
    (void)unused;
    for (unsigned o = 0; o < 4; o++)
        for (unsigned c = 0; c < 3; c++)
            for (unsigned bytes = 0; bytes < 2; bytes++) {
                snprintf(
                    text, sizeof(text),
                    NFP SHORT "workload = { type = \"pcie_bench\"; op = \"%s\"; cache = \"%s\";"
                              " measure = \"%s\"; payload = \"%s\"; transfer_bytes = 300; };",
                    ops[o], caches[c], o == 2 ? "latency" : "bandwidth", bytes ? "bytes" : "tag");
                struct outcome outcome = run(text);
                if (!outcome.ok)
                    fail_msg("%s %s: %s", ops[o], caches[c], outcome.error);
                assert_true(value(&outcome, "transactions") > 10);
                done(&outcome);
            }
}

static void test_parts_sum_to_the_latency(void **unused)
{
    char name[64];
    double sum_ns = 0;
    (void)unused;
    struct outcome outcome = run(
        NFP "workload = { type = \"pcie_bench\"; op = \"read\"; memory_socket = 1; };"
            "measure = { duration_us = 200; warmup_us = 5; latency_parts = true; };");
    assert_true(outcome.ok);
    for (unsigned i = 0; i < N_LATENCY_PARTS; i++) {
        snprintf(name, sizeof(name), "latency_part_ns.%s", latency_part_name[i]);
        sum_ns += value(&outcome, name);
    }
    assert_true(fabs(sum_ns - value(&outcome, "latency_mean_ns")) < 1e-6);
    assert_true(value(&outcome, "latency_part_ns.interconnect") > 0);
    done(&outcome);
}

static void test_measurement_ends(void **unused)
{
    (void)unused;
    struct outcome counted = run(
        NFP "workload = { type = \"pcie_bench\"; };"
            "measure = { duration_us = 100000; warmup_us = 5; transactions = 321; };");
    assert_true(value(&counted, "transactions") == 321);
    done(&counted);
    struct outcome precise = run(
        NFP "workload = { type = \"pcie_bench\"; window_bytes = 1048576; };"
            "measure = { duration_us = 100000; warmup_us = 5; precision_ratio = 0.005; };");
    assert_true(value(&precise, "latency_mean_ns.ci95") <=
                0.0051 * value(&precise, "latency_mean_ns"));
    assert_true(value(&precise, "transactions") < 100000);
    done(&precise);
}

/* Units whose transfer would cross a page are not used: 3 of 8 KiB in units of 1280 bytes. One that
 * did would take a request more. With an offset others do. */
static void test_no_transfer_crosses_a_page(void **unused)
{
    static const char *const more[] = { "pattern = \"random\";", "pattern = \"sequential\";",
                                        "pattern = \"random\"; offset_bytes = 20;",
                                        "pattern = \"random\"; low_memory = true;" };
    char text[512];
    (void)unused;
    for (size_t i = 0; i < SIM_N_ELEMENTS(more); i++) {
        snprintf(text, sizeof(text),
                 NFP "workload = { type = \"pcie_bench\"; transfer_bytes = 1280; %s };"
                     "measure = { warmup_us = 5; duration_us = 1000; transactions = 500; };",
                 more[i]);
        struct outcome outcome = run(text);
        assert_true(outcome.ok);
        assert_true(fabs(value(&outcome, "nfp.dma_read_tlps") - 500) <= 1);
        done(&outcome);
    }
    struct outcome longer = run(
        NFP "workload = { type = \"pcie_bench\"; transfer_bytes = 8192; };"
            "measure = { warmup_us = 5; duration_us = 1000; transactions = 50; };");
    assert_true(fabs(value(&longer, "nfp.dma_read_tlps") - 100) <= 2);
    done(&longer);
}

/* What begins late in a line takes as many lines as it touches. */
static void test_offset_touches_a_line_more(void **unused)
{
    static const struct {
        const char *more;
        double lines; /* of 500 transfers of 64 bytes */
    } cases[] = { { "", 500 },
                  { "offset_bytes = 4;", 1000 },
                  { "op = \"write_read\"; offset_bytes = 8;", 1000 } };
    char text[512];
    (void)unused;
    for (size_t i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        snprintf(text, sizeof(text),
                 NFP "workload = { type = \"pcie_bench\"; cache = \"cold\"; %s };"
                     "measure = { warmup_us = 5; duration_us = 1000; transactions = 500; };",
                 cases[i].more);
        struct outcome outcome = run(text);
        assert_true(outcome.ok);
        const double lines = value(&outcome, "server.s0.dma_read_misses") +
                             value(&outcome, "server.s0.dma_read_hits");
        assert_true(fabs(lines - cases[i].lines) <= 4);
        done(&outcome);
    }
}

/* The window is where the core that wrote it left it. */
static void test_which_socket_warms(void **unused)
{
    (void)unused;
    struct outcome own = run(
        NFP "workload = { type = \"pcie_bench\"; cache = \"host_warm\"; };"
            "measure = { warmup_us = 5; duration_us = 1000; transactions = 500; };");
    struct outcome other = run(
        NFP "workload = { type = \"pcie_bench\"; cache = \"host_warm\"; warm_socket = 1; };"
            "measure = { warmup_us = 5; duration_us = 1000; transactions = 500; };");
    assert_true(value(&other, "latency_mean_ns") > value(&own, "latency_mean_ns") + 20);
    done(&own);
    done(&other);
    scenario_refused(
        NFP "workload = { type = \"pcie_bench\"; warm_socket = 5; };\n",
        ":2: workload.warm_socket: found 5 (an integer), expected a socket of the host");
    scenario_refused(
        NFP "workload = { type = \"pcie_bench\"; low_memory = true; memory_socket = 1; };\n",
        "expected memory of socket 0, which alone has some below 4 GiB, and no IOMMU");
}

/* What is queued when the measurement ends goes on, but is not counted by any statistic. */
static void test_bytes_and_time_end_together(void **unused)
{
    static const double seconds = 20e-6, operation = 512;
    static const struct {
        const char *op, *statistic;
        double in_flight; /* operations that the adapter has under way at most */
    } cases[] = { { "write", "nfp.p0.tx.payload_bytes", 16 },
                  { "read", "server.s0.rp0.tx.payload_bytes", 34 },
                  { "read", "server.s0.dram_read_bytes", 34 } };
    char text[512];
    (void)unused;
    for (size_t i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        snprintf(text, sizeof(text),
                 NFP "workload = { type = \"pcie_bench\"; measure = \"bandwidth\"; op = \"%s\";"
                     " cache = \"cold\"; window_bytes = \"8 MiB\"; transfer_bytes = 512;"
                     " queue_depth = 4096; };"
                     "measure = { warmup_us = 5; duration_us = 20; };",
                 cases[i].op);
        struct outcome outcome = run(text);
        assert_true(outcome.ok);
        const double bytes = value(&outcome, "throughput_gbit_s") / 8 * 1e9 * seconds;
        const double counted = value(&outcome, cases[i].statistic);
        if (fabs(counted - bytes) > cases[i].in_flight * operation)
            fail_msg("%s: %.0f bytes measured, %s %.0f", cases[i].op, bytes, cases[i].statistic,
                     counted);
        done(&outcome);
    }
    struct outcome cores = run("hosts = { server = { }; };\n"
                               "workload = { type = \"memory\"; mode = \"bandwidth\"; };"
                               "measure = { warmup_us = 5; duration_us = 5; };");
    assert_true(cores.ok);
    const double read = value(&cores, "read_gbyte_s"), memory = value(&cores, "memory_gbyte_s");
    /* 14 cores with 16 lines each under way; 5 us. */
    if (fabs(read - memory) > 14 * 16 * 64 / 5e3)
        fail_msg("cores read %.2f GB/s, memory gave %.2f GB/s", read, memory);
    done(&cores);
}

/* A chase has been through its buffer before time begins: what fits a cache is in it, to the last
 * line, however short the warm-up. R730: 32 KiB, 256 KiB, 35 MiB. */
static void test_chases_are_warm(void **unused)
{
    static const struct {
        const char *buffer;
        double lo_ns, hi_ns;
        bool remote_is_more;
    } cases[] = {
        { "32 KiB", 2, 2, false },
        { "100 KiB", 6, 6, false },
        { "1 MiB", 24.5, 25.001,
          false },                    /* of a cycle four times the L2, nearly nothing is in it */
        { "80 MiB", 80.7, 90, true }, /* and of one twice the LLC nearly nothing in that */
    };
    char text[512];
    (void)unused;
    for (size_t i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        double ns[2];
        for (unsigned to = 0; to < 2; to++) {
            snprintf(text, sizeof(text),
                     "hosts = { server = { }; };\n"
                     "workload = { type = \"memory\"; buffer_bytes = \"%s\"; to_socket = %u; };"
                     "measure = { warmup_us = 0; duration_us = 100; };",
                     cases[i].buffer, to);
            struct outcome outcome = run(text);
            assert_true(outcome.ok);
            ns[to] = value(&outcome, "load_latency_ns");
            assert_true(value(&outcome, "server.s1.dram_write_directory_bytes") == 0);
            done(&outcome);
        }
        if (ns[0] < cases[i].lo_ns - 1e-9 || ns[0] > cases[i].hi_ns + 1e-9)
            fail_msg("%s: %g ns", cases[i].buffer, ns[0]);
        assert_true(cases[i].remote_is_more ? ns[1] > ns[0] + 30 : fabs(ns[1] - ns[0]) < 0.1);
    }
}

/* A line between two cores of a socket: the LLC, the core that has modified it; the store that
 * follows asks for ownership. Between sockets both take longer. */
static void test_a_line_goes_to_and_fro(void **unused)
{
    double load[2], store[2];
    char text[400];
    (void)unused;
    for (unsigned i = 0; i < 2; i++) {
        snprintf(text, sizeof(text),
                 "hosts = { server = { }; };\n"
                 "workload = { type = \"memory\"; mode = \"transfer\"; peer_core = %u; };"
                 "measure = { warmup_us = 1; duration_us = 100; transactions = 100; };",
                 i == 0 ? 1 : 14);
        struct outcome outcome = run(text);
        assert_true(outcome.ok);
        load[i] = value(&outcome, "load_latency_ns");
        store[i] = value(&outcome, "store_latency_ns");
        done(&outcome);
    }
    assert_true(fabs(load[0] - 40) < 0.1);
    assert_true(store[0] > 6 && store[0] < load[0]);
    assert_true(load[1] > load[0] + 35 && store[1] > store[0] + 35);
}

/* Cores of both sockets read from one of them: more than one socket's can. */
static void test_both_sockets(void **unused)
{
    double read[2];
    (void)unused;
    for (unsigned sockets = 1; sockets <= 2; sockets++) {
        char text[400];
        snprintf(text, sizeof(text),
                 "hosts = { server = { }; };\n"
                 "workload = { type = \"memory\"; mode = \"bandwidth\"; sockets = %u; cores = 2;"
                 " buffer_bytes = \"64 MiB\"; };"
                 "measure = { warmup_us = 5; duration_us = 20; };",
                 sockets);
        struct outcome outcome = run(text);
        assert_true(outcome.ok);
        read[sockets - 1] = value(&outcome, "read_gbyte_s");
        done(&outcome);
    }
    assert_true(read[1] > 1.4 * read[0] && read[1] < 2 * read[0]);
}

/* A pass over remote memory finds the directory as the last pass left it: nothing is written. */
static void test_streams_are_warm(void **unused)
{
    (void)unused;
    struct outcome outcome = run("hosts = { server = { }; };\n"
                                 "workload = { type = \"memory\"; mode = \"bandwidth\";"
                                 " buffer_bytes = \"16 MiB\"; to_socket = 1; };"
                                 "measure = { warmup_us = 5; duration_us = 20; };");
    assert_true(outcome.ok);
    assert_true(value(&outcome, "server.s1.dram_write_directory_bytes") == 0);
    /* 2 x 9.6 GT/s x 20 lanes: a line in 10 flits of 8 bytes; less the last microsecond's. */
    assert_true(value(&outcome, "read_gbyte_s") > 30 && value(&outcome, "read_gbyte_s") < 31);
    done(&outcome);
    outcome = run(
        "hosts = { server = { }; };\n"
        "workload = { type = \"memory\"; mode = \"bandwidth\"; buffer_bytes = \"2 MiB\"; };"
        "measure = { warmup_us = 5; duration_us = 20; };");
    assert_true(outcome.ok);
    assert_true(value(&outcome, "memory_gbyte_s") == 0);
    done(&outcome);
}

/* A host whose LLC is soon full. */
#define SMALL \
    "hosts = { server = { cache = { llc_size = 4194304; llc_slices = 2; llc_ways = 16; }; }; };\n"

/* Stores write back what they read; copies and sums store a line for each, or for every two, that
 * they load, through the caches or past them; of a remote socket as well. */
static void test_accesses(void **unused)
{
    static const struct {
        const char *access, *read, *write;
        double written;
    } cases[] = { { "read", "load", "nt", 0 },    { "store", "rfo", "victim", 1 },
                  { "triad", "load", "nt", 0.5 }, { "add", "load", "victim", 0.5 },
                  { "copy_nt", "load", "nt", 1 }, { "copy", "load", "victim", 1 } };
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(cases); i++)
        for (unsigned to = 0; to < 2; to++) {
            char text[400], name[64];
            snprintf(text, sizeof(text),
                     SMALL "workload = { type = \"memory\"; mode = \"bandwidth\"; access = \"%s\";"
                           " buffer_bytes = \"16 MiB\"; to_socket = %u; };"
                           "measure = { warmup_us = 5; duration_us = 20; };",
                     cases[i].access, to);
            struct outcome outcome = run(text);
            assert_true(outcome.ok);
            snprintf(name, sizeof(name), "server.s%u.dram_read_%s_bytes", to, cases[i].read);
            const double read = value(&outcome, name);
            snprintf(name, sizeof(name), "server.s%u.dram_write_%s_bytes", to, cases[i].write);
            const double written = value(&outcome, name);
            /* A copy's and a sum's victims alternate with lines that were only read. */
            const double within = i > 2 && strcmp(cases[i].write, "victim") == 0 ? 0.15 : 0.03;
            assert_true(read > 100000 && fabs(written / read - cases[i].written) < within);
            /* Less what is under way at the edges. */
            assert_true(fabs(value(&outcome, "read_gbyte_s") * 20000 / read - 1) < 0.03);
            done(&outcome);
        }
}

/* text: what the note says, if there is one. */
static bool settled_but(const double *value, unsigned n, double least, const char *text)
{
    struct workload workload = { .result = run_result_new() };
    const bool good = workload_settled(&workload, "rate", value, n, least);
    const char *note = run_result_note_text(workload.result, "not_settled.rate", 0);
    assert_true(good == (note == NULL));
    if (!good && strstr(note, text) == NULL)
        fail_msg("\"%s\" without \"%s\"", note, text);
    run_result_free(workload.result);
    return good;
}

static bool settled(const double *value, unsigned n, double least)
{
    return settled_but(value, n, least,
                       " % from the first half of the measured time to the second");
}

/* A drift and a step are seen, chance and what is small is not. */
static void test_the_rule_of_settling(void **unused)
{
    double drift[16], step[16], chance[16], small[16], few[16], window[16];
    struct sim_random random;
    (void)unused;
    sim_random_init(&random, 1, "settle");
    for (unsigned i = 0; i < 16; i++) {
        drift[i] = 1000 + 20 * i;
        step[i] = i < 8 ? 100 : 110;
        small[i] = 100 + 0.25 * i;
        few[i] = 3 + i % 2;
        window[i] = 10000 * (i < 8 ? 20 + i % 2 : 35 + i % 2);
    }
    assert_false(settled(drift, 16, 0));
    assert_false(settled(step, 16, 0));
    assert_true(settled(small, 16, 0));
    few[15]++;
    assert_true(settled(few, 16, 1));         /* an operation or two more in a half */
    assert_false(settled(window, 16, 65536)); /* several operations' worth more in each part */
    assert_true(settled(drift, 9, 0));        /* too few to judge */
    unsigned wrong = 0;
    for (unsigned trial = 0; trial < 1000; trial++) {
        for (unsigned i = 0; i < 16; i++)
            chance[i] = 50 + 100 * sim_random_unit(&random);
        wrong += !settled(chance, 16, 0);
    }
    print_message("%u of 1000 random series taken for a drift\n", wrong);
    assert_true(wrong <= 3);
}

/* A half with nothing in it: no share of it is printed, and what has stopped is not to be measured
 * later. */
static void test_half_of_nothing(void **unused)
{
    double late[16], over[16], none[16] = { 0 };
    (void)unused;
    for (unsigned i = 0; i < 16; i++) {
        late[i] = i < 8 ? 0 : 100;
        over[i] = i < 8 ? 100 : 0;
    }
    assert_false(
        settled_but(late, 16, 1,
                    "rate: nothing in the first half of the measured time, all of it in the "
                    "second; a longer measure.warmup_us?"));
    assert_false(settled_but(over, 16, 1,
                             "rate: nothing in the second half of the measured time, all of it in "
                             "the first; it has stopped, and a longer measure.warmup_us does not"));
    assert_true(settled(none, 16, 1));
}

/* A device that fills its ways of the LLC, then waits for one slow channel of DRAM. */
static void test_warmup_too_short_is_noticed(void **unused)
{
    static const unsigned warmup_us[] = { 0, 800 };
    char text[640];
    (void)unused;
    for (unsigned i = 0; i < 2; i++) {
        snprintf(text, sizeof(text),
                 "hosts = { server = { " PORT " cache = { ddio_ways = 1; };"
                 " dram = { channels = 1; rate_mt_s = 400.0; }; }; };"
                 "devices = { nfp = { type = \"pcie.requester\"; }; };"
                 "cables = ( { from = \"server.s0.rp0\"; to = \"nfp.p0\"; } );\n"
                 "workload = { type = \"pcie_bench\"; measure = \"bandwidth\"; op = \"write\";"
                 " cache = \"cold\"; window_bytes = \"16 MiB\"; transfer_bytes = 512; };"
                 "measure = { warmup_us = %u; duration_us = 600; };",
                 warmup_us[i]);
        struct outcome outcome = run(text);
        assert_true(outcome.ok);
        const char *note = run_result_note_text(outcome.result, "not_settled.", 0);
        if (i == 0 ? note == NULL : note != NULL)
            fail_msg("warm-up of %u us: %s", warmup_us[i], note != NULL ? note : "no note");
        done(&outcome);
    }
}

static void test_too_short_for_a_transfer(void **unused)
{
    (void)unused;
    struct outcome outcome = run(NFP
                                 "workload = { type = \"pcie_bench\"; measure = \"bandwidth\"; };"
                                 "measure = { warmup_us = 5; duration_us = 0.001; };");
    assert_false(outcome.ok);
    assert_non_null(strstr(outcome.error, "transaction ended within measure.duration_us"));
    done(&outcome);
    /* 64 KiB take about 10 us: one may end within any microsecond, and make 500 Gbit/s of 63. */
    for (unsigned i = 0; i < 12; i++) {
        char text[640];
        snprintf(text, sizeof(text),
                 NFP "workload = { type = \"pcie_bench\"; measure = \"bandwidth\";"
                     " transfer_bytes = 65536; window_bytes = \"1 MiB\"; };"
                     "measure = { warmup_us = %u; duration_us = 1; };",
                 100 + i);
        outcome = run(text);
        assert_false(outcome.ok);
        done(&outcome);
    }
}

/* A latency of no load is none. */
static void test_too_short_for_a_load(void **unused)
{
    (void)unused;
    scenario_fails(NFP "workload = { type = \"memory\"; buffer_bytes = \"16 MiB\"; };"
                       "measure = { warmup_us = 5.02; duration_us = 0.001; };",
                   "not one load began within measure.duration_us");
}

static void test_two_hosts(void **unused)
{
    (void)unused;
    struct outcome outcome = run(
        "hosts = { server = { " PORT " }; other = { " PORT " }; };"
        "devices = { nfp = { type = \"pcie.requester\"; }; };"
        "cables = ( { from = \"other.s0.rp0\"; to = \"nfp.p0\"; } );\n" SHORT
        "workload = { type = \"pcie_bench\"; host = \"other\"; cache = \"cold\"; };");
    assert_true(outcome.ok);
    assert_true(value(&outcome, "other.s0.dma_read_misses") > 0);
    assert_true(value(&outcome, "server.s0.dma_read_misses") == 0);
    done(&outcome);
    scenario_refused("hosts = { server = { " PORT " }; other = { " PORT " }; };"
                     "devices = { nfp = { type = \"pcie.requester\"; }; };"
                     "cables = ( { from = \"other.s0.rp0\"; to = \"nfp.p0\"; } );\n"
                     "workload = { type = \"pcie_bench\"; device = \"nfp\"; };",
                     "a device that cables plug into the workload's host");
}

static void test_refusals(void **unused)
{
    (void)unused;
    scenario_refused(
        NFP "workload = { type = \"pcie_bench\"; measure = \"bandwidth\";\n"
            " op = \"write_read\"; };",
        ":3: workload.op: found \"write_read\" (a string), expected read, write or read_write");
    scenario_refused(NFP "workload = { type = \"pcie_bench\"; window_bytes = 99000000000L; };",
                     ":2: workload.window_bytes: found 99000000000 (an integer), expected at most "
                     "the 68719476736 bytes of socket 0's memory");
    scenario_refused(NFP "workload = { type = \"memory\"; mode = \"bandwidth\"; };\n"
                         "measure = { transactions = 5; };",
                     ":3: measure.transactions: found 5");
    scenario_refused(NFP "workload = { type = \"memory\"; mode = \"loaded\"; };\n"
                         "measure = { transactions = 5; };",
                     ":3: measure.transactions: found 5 (an integer), expected no transactions");
    scenario_refused(
        NFP "workload = { type = \"memory\"; mode = \"bandwidth\"; };\n"
            "measure = { latency_parts = true; };",
        ":3: measure.latency_parts: found true (a boolean), expected no latency_parts");
    scenario_refused(
        NFP "workload = { type = \"pcie_bench\"; queue_depth = 8; };\n",
        ":2: workload.queue_depth: found 8 (an integer), expected measure = \"bandwidth\"");
    scenario_refused(
        NFP "workload = { type = \"pcie_bench\"; measure = \"bandwidth\"; gap_ns = 8; };\n",
        ":2: workload.gap_ns: found 8 (an integer), expected measure = \"latency\" beside it");
    scenario_refused(
        NFP "workload = { type = \"memory\"; inject_delay_ns = 8; };\n",
        ":2: workload.inject_delay_ns: found 8 (an integer), expected mode = \"loaded\"");
    scenario_refused(NFP "workload = { type = \"memory\"; mode = \"bandwidth\"; sockets = 3; };\n",
                     ":2: workload.sockets: found 3 (an integer), expected at most the host's");
    scenario_refused(
        NFP "workload = { type = \"memory\"; mode = \"transfer\"; peer_core = 28; };\n",
        ":2: workload.peer_core: found 28 (an integer), expected a core of the host other than");
    scenario_refused(NFP "workload = { type = \"memory\"; peer_core = 2; };\n",
                     ":2: workload.peer_core: found 2 (an integer), expected mode = \"transfer\"");
    scenario_refused(NFP "workload = { type = \"memory\"; sockets = 2; };\n",
                     ":2: workload.sockets: found 2 (an integer), expected 1 with mode");
    scenario_refused(
        "hosts = { server = { coherence = { protocol = \"front_side_bus\"; };"
        " cache = { llc_size = 0; }; }; };\n"
        "workload = { type = \"memory\"; to_socket = 1; };",
        ":2: workload.to_socket: found 1 (an integer), expected a socket of the host that has "
        "memory");
}

/* Asked for or not; a workload that has measured enough before is not sampled on. */
static void test_series(void **unused)
{
    static const char text[] = NFP "workload = { type = \"pcie_bench\"; };"
                                   "measure = { duration_us = 60; warmup_us = 5; %s };";
    char whole[1024];
    (void)unused;
    for (int sampled = 0; sampled <= 2; sampled++) {
        snprintf(whole, sizeof(whole), text,
                 sampled == 0   ? ""
                 : sampled == 1 ? "sample_interval_us = 20;"
                                : "sample_interval_us = 20; transactions = 3;");
        struct outcome outcome = run(whole);
        assert_true(outcome.ok);
        assert_int_equal(run_result_has(outcome.result, RECORD_SERIES, "throughput_gbit_s"),
                         sampled == 1);
        done(&outcome);
    }
    scenario_refused(NFP "workload = { type = \"pcie_bench\"; };"
                         "measure = { duration_us = 60; sample_interval_ns = 1; };",
                     "unknown setting");
    scenario_refused(
        NFP "workload = { type = \"pcie_bench\"; };"
            "measure = { duration_us = 60; sample_interval_us = 0.0005; };",
        "measure.sample_interval_us: found 0.0005 (a number), expected 0.0006..60 us: 1 to "
        "100000 samples in measure.duration_us");
    scenario_refused(NFP "workload = { type = \"pcie_bench\"; };"
                         "measure = { duration_us = 60; sample_interval_us = 61; };",
                     "measure.sample_interval_us: found 61 (an integer), expected 0.0006..60 us: ");
}

static void test_nothing_to_run(void **unused)
{
    (void)unused;
    scenario_refused("", ".cfg: neither hosts nor workload are in it");
    scenario_refused("hosts = { server = { }; };", ".cfg: there is no group `workload`");
    scenario_refused("workload = 5;", ":1: workload: found 5 (an integer), expected a group");
}

static void test_what_does_not_fit_fails_the_run(void **unused)
{
    (void)unused;
    struct outcome outcome = run(NFP SHORT "workload = { type = \"pcie_bench\";"
                                           " window_bytes = \"68 GB\"; };");
    assert_false(outcome.ok);
    assert_non_null(strstr(outcome.error, "no memory for a window of 68000000000 bytes"));
    done(&outcome);
}

static void test_memory_modes(void **unused)
{
    static const char *const modes[] = { "latency", "bandwidth", "loaded" };
    char text[512];
    (void)unused;
    for (unsigned m = 0; m < 3; m++) {
        snprintf(text, sizeof(text),
                 SMALL SHORT "workload = { type = \"memory\"; mode = \"%s\"; to_socket = 1;"
                             " buffer_bytes = \"16 MiB\"; };",
                 modes[m]);
        struct outcome outcome = run(text);
        assert_true(outcome.ok);
        if (m != 1)
            assert_true(value(&outcome, "load_latency_ns") > 100);
        else
            assert_true(isfinite(run_result_value(outcome.result, "load_latency_ns")) == 0);
        if (m != 0)
            assert_true(value(&outcome, "read_gbyte_s") > 20);
        assert_true(value(&outcome, "interconnect_gbyte_s.s1_s0") > 0);
        done(&outcome);
    }
}

/* Two hosts with a NIC each. */
#define TWO_NICS                                                        \
    "hosts = { a = { " PORT " }; b = { " PORT " }; };"                  \
    "devices = { na = { type = \"nic.ethernet\"; lanes = 8; };"         \
    " nb = { type = \"nic.ethernet\"; lanes = 8; };"                    \
    " sa = { type = \"ether.switch\"; ports = 2; };"                    \
    " sb = { type = \"ether.switch\"; ports = 2; }; };"                 \
    "network = { a = { host = \"a\"; device = \"na\"; channels = 1; };" \
    " b = { host = \"b\"; device = \"nb\"; channels = 1; }; };"         \
    "workload = { type = \"programs\"; measured = \"a\"; };"            \
    "measure = { warmup_us = 500; duration_us = 500; };"                \
    "cables = ( { from = \"a.s0.rp0\"; to = \"na.p0\"; },"              \
    " { from = \"b.s0.rp0\"; to = \"nb.p0\"; }"
/* Each NIC has a wire, but not to the other. */
#define NO_CABLE \
    ", { from = \"na.e0\"; to = \"sa.e0\"; }, { from = \"nb.e0\"; to = \"sb.e0\"; } );\n"
#define CABLE   ", { from = \"na.e0\"; to = \"nb.e0\"; } );\n"
#define BETWEEN "server = \"a\"; client = \"b\"; "

/* What never got a connection has no throughput of 0: the run fails, and says why. */
static void test_no_connection(void **unused)
{
    static const char *const programs[] = { "netperf", "sendfile", "memcached", "netperf_rr" };
    char text[2048];
    (void)unused;
    for (unsigned p = 0; p < 4; p++)
        for (unsigned cable = 0; cable < 2; cable++) {
            snprintf(text, sizeof(text), TWO_NICS "%sprograms = { x = { type = \"%s\"; %s }; };",
                     cable ? CABLE : NO_CABLE, programs[p],
                     p == 2 ? BETWEEN "clients = 1; workers = 1; value_bytes = 65536;" : BETWEEN);
            struct outcome outcome = run(text);
            if (outcome.ok != (cable == 1))
                fail_msg("%s, cable %u: %s", programs[p], cable, outcome.error);
            if (!outcome.ok && strstr(outcome.error, "is there a cable") == NULL)
                fail_msg("%s: \"%s\"", programs[p], outcome.error);
            done(&outcome);
        }
}

/* Time passes, too, where nothing happens. */
static void test_quiet_hosts(void **unused)
{
    (void)unused;
    struct outcome outcome = run(TWO_NICS CABLE "programs = { x = { type = \"netperf\"; " BETWEEN
                                                "instances = 0; }; };");
    if (!outcome.ok)
        fail_msg("%s", outcome.error);
    assert_true(value(&outcome, "memory_gbit_s") >= 0);
    assert_true(value(&outcome, "throughput_gbit_s") == 0);
    done(&outcome);
    outcome = run(TWO_NICS NO_CABLE "programs = { x = { type = \"sockperf\"; " BETWEEN "}; };");
    assert_false(outcome.ok);
    assert_non_null(
        strstr(outcome.error, "x: not one round trip began and ended within the 500 us"));
    done(&outcome);
}

#define TABLES                                                                                \
    "trends = { nic = ( { year = 2009; port_gbit_s = 10; }, { year = 2012; port_gbit_s = 40;" \
    " } ); cores = ( { year = 2010; n = 12; }, { year = 2014; n = 18; } ); };\n"

/* By hand: the last entry that is not younger, times directions, ports or a core's rate. */
static void test_trends(void **unused)
{
    static const struct {
        const char *kind;
        unsigned year;
        double gbit_s;
    } point[] = { { "nic_single", 2010, 20 },     { "nic_single", 2011, 20 },
                  { "nic_dual", 2012, 160 },      { "cpu_10gbit", 2013, 120 },
                  { "cpu_513mbit", 2014, 9.234 }, { "cpu_10gbit", 2030, 180 } };
    char text[512];
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(point); i++) {
        snprintf(text, sizeof(text),
                 TABLES "workload = { type = \"trends\"; kind = \"%s\"; year = %u; };",
                 point[i].kind, point[i].year);
        struct outcome outcome = run(text);
        assert_true(outcome.ok);
        assert_true(fabs(value(&outcome, "gbit_s") - point[i].gbit_s) < 1e-9);
        done(&outcome);
    }
    scenario_refused(
        TABLES "workload = { type = \"trends\"; kind = \"cpu_10gbit\"; year = 2009; };",
        ":2: workload.year: found 2009 (an integer), expected a year that the tables reach");
    scenario_refused("trends = { nic = ( { year = 2012; port_gbit_s = 40; }, { year = 2009;"
                     " port_gbit_s = 10; } ); cores = ( { year = 2010; n = 12; } ); };\n"
                     "workload = { type = \"trends\"; year = 2013; };",
                     "a later year than the one before");
    scenario_refused("trends = { nic = ( { year = 2012; port_gbit_s = 40; } );"
                     " cores = ( { year = 2010; } ); };\nworkload = { type = \"trends\"; };",
                     "cores");
    scenario_refused("trends = { nic = ( 5 ); cores = ( { year = 2010; n = 12; } ); };\n"
                     "workload = { type = \"trends\"; };",
                     "trends.nic.[0]: found 5");
    scenario_refused("trends = { nic = ( { year = 2012; port_gbit_s = 40; } ); };\n"
                     "workload = { type = \"trends\"; };",
                     "tables `nic` and `cores`");
    scenario_refused("workload = { type = \"trends\"; };", "a group `trends`");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operation_carries_every_byte),
        cmocka_unit_test(test_parts_sum_to_the_latency),
        cmocka_unit_test(test_measurement_ends),
        cmocka_unit_test(test_no_transfer_crosses_a_page),
        cmocka_unit_test(test_offset_touches_a_line_more),
        cmocka_unit_test(test_which_socket_warms),
        cmocka_unit_test(test_bytes_and_time_end_together),
        cmocka_unit_test(test_the_rule_of_settling),
        cmocka_unit_test(test_half_of_nothing),
        cmocka_unit_test(test_warmup_too_short_is_noticed),
        cmocka_unit_test(test_chases_are_warm),
        cmocka_unit_test(test_streams_are_warm),
        cmocka_unit_test(test_accesses),
        cmocka_unit_test(test_a_line_goes_to_and_fro),
        cmocka_unit_test(test_both_sockets),
        cmocka_unit_test(test_too_short_for_a_transfer),
        cmocka_unit_test(test_too_short_for_a_load),
        cmocka_unit_test(test_two_hosts),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_series),
        cmocka_unit_test(test_nothing_to_run),
        cmocka_unit_test(test_what_does_not_fit_fails_the_run),
        cmocka_unit_test(test_memory_modes),
        cmocka_unit_test(test_trends),
        cmocka_unit_test(test_no_connection),
        cmocka_unit_test(test_quiet_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
