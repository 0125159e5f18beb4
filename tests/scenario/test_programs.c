/* Programs on networks of whole hosts, small and short: what they carry arrives (the programs check
 * every byte), what they record, what is refused. */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/scenario_fixture.h"

#define HOST_WITH(cpu, more)                                                                  \
    "{ cpu = { sockets = 2; " cpu " }; ports = ( { name = \"rp0\"; socket = 0; lanes = 8; }," \
    " { name = \"rp0\"; socket = 1; lanes = 8; } ); " more "}; "
#define HOST_OF(cores) HOST_WITH("cores_per_socket = " cores ";", "")
#define HOST           HOST_OF("2")
#define ONE_SOCKET                                    \
    "{ cpu = { sockets = 1; cores_per_socket = 2; };" \
    " ports = ( { name = \"rp0\"; socket = 0; lanes = 8; } ); }; "
#define NIC "{ type = \"nic.ethernet\"; lanes = 8; }; "

/* A server with a NIC of two functions, a client with one of one. */
#define OCTO           OCTO_OF("2")
#define OCTO_OF(cores) OCTO_WITH(HOST_OF(cores), HOST)
#define OCTO_WITH(server, client)                                                        \
    "hosts = { server = " server "client = " client "};\n"                               \
    "devices = { nic = { type = \"nic.ethernet\"; functions = 2; lanes = 8;"             \
    " firmware = \"octonic\"; }; client_nic = " NIC "};\n"                               \
    "cables = ( { from = \"server.s0.rp0\"; to = \"nic.p0\"; },"                         \
    " { from = \"server.s1.rp0\"; to = \"nic.p1\"; },"                                   \
    " { from = \"client.s0.rp0\"; to = \"client_nic.p0\"; },"                            \
    " { from = \"nic.e0\"; to = \"client_nic.e0\"; } );\n"                               \
    "network = { server = { host = \"server\"; device = \"nic\"; interface = \"octo0\";" \
    " octo_sg = %s; }; client = { host = \"client\"; device = \"client_nic\"; }; };\n"

/* A server with two NICs behind a switch that has them in one group. */
#define BOND                                                                   \
    "hosts = { server = " HOST "client = " HOST "};\n"                         \
    "devices = { nic0 = " NIC "nic1 = " NIC "client_nic = " NIC                \
    "switch = { type = \"ether.switch\"; ports = 3; groups = \"0+1\"; }; };\n" \
    "cables = ( { from = \"server.s0.rp0\"; to = \"nic0.p0\"; },"              \
    " { from = \"server.s1.rp0\"; to = \"nic1.p0\"; },"                        \
    " { from = \"client.s0.rp0\"; to = \"client_nic.p0\"; },"                  \
    " { from = \"nic0.e0\"; to = \"switch.e0\"; },"                            \
    " { from = \"nic1.e0\"; to = \"switch.e1\"; },"                            \
    " { from = \"client_nic.e0\"; to = \"switch.e2\"; } );\n"                  \
    "network = { server = { host = \"server\"; device = \"nic0\"; %s"          \
    " interface = \"bond0\"; };"                                               \
    " client = { host = \"client\"; device = \"client_nic\"; }; };\n"

#define PROGRAMS "workload = { type = \"programs\"; };\n"
#define SHORT    "measure = { warmup_us = 300; duration_us = 600; };\n"

/* Pages of both nodes arrive whole; with the hint each comes through its own node's function. */
static void test_sendfile(void **unused)
{
    static const char *const pages[] = { "local", "remote", "alternating" };
    /* of the two functions: which read data, without and with the hint */
    static const bool reads[3][2][2] = { { { 1, 0 }, { 1, 0 } },
                                         { { 1, 0 }, { 0, 1 } },
                                         { { 1, 0 }, { 1, 1 } } };
    char text[4096], name[32];
    (void)unused;
    for (unsigned p = 0; p < 3; p++)
        for (unsigned hint = 0; hint < 2; hint++) {
            snprintf(text, sizeof(text),
                     OCTO PROGRAMS SHORT
                     "programs = { sendfile = { type = \"sendfile\"; instances = 2;"
                     " pages = \"%s\"; }; off = { type = \"pktgen\"; enabled = false; }; };",
                     hint ? "true" : "false", pages[p]);
            struct run_result *result = scenario_run(text);
            assert_true(scenario_value(result, "throughput_gbit_s") > 1);
            assert_int_equal(scenario_value(result, "hinted_fragments_per_packet") > 0,
                             hint == 1 && p != 0);
            double payload = scenario_value(result, "throughput_gbit_s") / 8 * 600e-6 * 1e9;
            for (unsigned f = 0; f < 2; f++) {
                snprintf(name, sizeof(name), "nic.pf%u_dma_read_bytes", f);
                assert_int_equal(scenario_value(result, name) > payload / 4, reads[p][hint][f]);
            }
            run_result_free(result);
        }
}

/* A client whose payload goes by rate: nothing of its DMA but headers and descriptors is TLPs, what
 * arrives is the same (netperf checks it), and so is what the server, which is the slower one, does
 * with it. */
static void test_payload_by_rate(void **unused)
{
    static const char *const same[2][2] = { { "throughput_gbit_s", "nic.pf0_dma_write_bytes" },
                                            { "throughput_gbit_s", "nic.pf0_dma_read_bytes" } };
    char text[4096];
    (void)unused;
    for (unsigned tx = 0; tx < 2; tx++) {
        struct run_result *result[2];
        for (unsigned by_rate = 0; by_rate < 2; by_rate++) {
            snprintf(text, sizeof(text),
                     OCTO_WITH(HOST_WITH("cores_per_socket = 2; clock_ghz = 1.0;", ""),
                               HOST_WITH("cores_per_socket = 2; clock_ghz = 3.0;", "%s")) PROGRAMS
                     "measure = { warmup_us = 8000; duration_us = 8000; };\n"
                     "programs = { a = { type = \"netperf\"; direction = \"%s\"; }; };",
                     by_rate ? "detail = { payload = \"rates\"; }; " : "", "false",
                     tx ? "tx" : "rx");
            result[by_rate] = scenario_run(text);
        }
        for (unsigned i = 0; i < 2; i++) {
            const double lines = scenario_value(result[0], same[tx][i]),
                         rates = scenario_value(result[1], same[tx][i]);
            assert_true(fabs(rates - lines) < 0.05 * lines);
        }
        const char *payload = tx ? "client_nic.p0.tx.payload_bytes"
                                 : "client.s0.rp0.tx.payload_bytes";
        assert_true(scenario_value(result[1], payload) < 0.3 * scenario_value(result[0], payload));
        run_result_free(result[0]);
        run_result_free(result[1]);
    }
}

/* Programs of a kind together, and each by its name. */
static void test_two_of_a_kind(void **unused)
{
    char text[4096];
    (void)unused;
    snprintf(text, sizeof(text),
             OCTO PROGRAMS SHORT "programs = { a = { type = \"netperf\"; };"
                                 " b = { type = \"netperf\"; server_socket = 1; first_core = 1;"
                                 " client_first_core = 1; direction = \"tx\"; }; };",
             "false");
    struct run_result *result = scenario_run(text);
    double a = scenario_value(result, "a.throughput_gbit_s"),
           b = scenario_value(result, "b.throughput_gbit_s");
    assert_true(a > 1 && b > 1);
    assert_true(fabs(a + b - scenario_value(result, "throughput_gbit_s")) < 1e-9);
    run_result_free(result);
}

/* Connections that are made while they are measured: slow start counts. */
static void test_late_connections(void **unused)
{
    static const char *const measure[] = { "measure = { warmup_us = 0; duration_us = 400; };\n",
                                           SHORT };
    char text[4096];
    (void)unused;
    for (unsigned i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), OCTO PROGRAMS "programs = { a = { type = \"netperf\"; }; };%s",
                 "false", measure[i]);
        struct run_result *result = scenario_run(text);
        const char *note = run_result_note_text(result, "not_settled.a.connections", 0);
        assert_int_equal(note != NULL, i == 0);
        assert_true(i != 0 || strstr(note, "1 made within the measured time") != NULL);
        run_result_free(result);
    }
}

/* Without GRO each segment of 1,448 bytes passes IP and TCP by itself, 3,500 cycles at 2 GHz: no
 * core receives more than 6.6 Gbit/s. With it one passage serves many, on each of the
 * interfaces. */
static void test_gro(void **unused)
{
    static const char *const interfaces[] = { "pf0", "octo0" };
    const double bound_gbit_s = 2e9 / 3500 * 1448 * 8e-9;
    char text[4096], settings[64];
    (void)unused;
    for (unsigned gro = 0; gro < 2; gro++)
        for (unsigned i = 0; i < SIM_N_ELEMENTS(interfaces); i++) {
            snprintf(settings, sizeof(settings), "false; gro = %s", gro ? "true" : "false");
            snprintf(text, sizeof(text),
                     OCTO PROGRAMS SHORT "programs = { n = { type = \"netperf\"; }; };", settings);
            if (strcmp(interfaces[i], "pf0") == 0) {
                char *at = strstr(text, "\"octo0\"");
                memcpy(at, "\"pf0\"  ", strlen("\"octo0\""));
            }
            struct run_result *result = scenario_run(text);
            const double gbit_s = scenario_value(result, "throughput_gbit_s");
            if (gro != (gbit_s > bound_gbit_s))
                fail_msg("%s, gro = %u: %.2f Gbit/s", interfaces[i], gro, gbit_s);
            run_result_free(result);
        }
}

/* Two flows, a link each; their receivers move, they do not. */
static void test_bond(void **unused)
{
    char text[4096];
    (void)unused;
    snprintf(text, sizeof(text),
             BOND PROGRAMS SHORT
             "programs = { netperf = { type = \"netperf\"; direction = \"rx\"; instances = 2;"
             " migrate_after_us = 300; }; };",
             "second_device = \"nic1\";");
    struct run_result *result = scenario_run(text);
    assert_true(scenario_value(result, "throughput_before_gbit_s") > 1);
    assert_true(scenario_value(result, "throughput_after_gbit_s") > 1);
    assert_true(scenario_value(result, "nic0.pf0_rx_packets") > 100);
    assert_true(scenario_value(result, "nic1.pf0_rx_packets") > 100);
    assert_false(run_result_has(result, RECORD_METRIC, "nic0.pf1_rx_packets"));
    assert_true(run_result_has(result, RECORD_METRIC, "server.s0.interconnect_to_s1_bytes"));
    assert_false(run_result_has(result, RECORD_METRIC, "server.s0.interconnect_to_s2_bytes"));
    assert_true(scenario_value(result, "packets_reordered") == 0);
    run_result_free(result);
}

/* More cores than two functions have queues for: cores share. */
static void test_many_cores_of_a_team(void **unused)
{
    char text[4096];
    (void)unused;
    snprintf(text, sizeof(text),
             OCTO_OF("20") PROGRAMS SHORT "programs = { n = { type = \"netperf\"; }; };", "false");
    struct run_result *result = scenario_run(text);
    assert_true(scenario_value(result, "throughput_gbit_s") > 1);
    run_result_free(result);
}

/* Each packet goes out through the function of the thread's node, not the first one only. */
static void test_pktgen_of_a_team(void **unused)
{
    char text[4096], name[32];
    (void)unused;
    for (unsigned socket = 0; socket < 2; socket++) {
        snprintf(text, sizeof(text),
                 OCTO PROGRAMS SHORT
                 "programs = { pktgen = { type = \"pktgen\"; socket = %u; }; };",
                 "false", socket);
        struct run_result *result = scenario_run(text);
        snprintf(name, sizeof(name), "nic.pf%u_tx_packets", socket);
        assert_true(scenario_value(result, name) > 500);
        snprintf(name, sizeof(name), "nic.pf%u_tx_packets", 1 - socket);
        assert_true(scenario_value(result, name) == 0);
        run_result_free(result);
    }
}

/* What a core waited for before the measurement is not the program's that moves there in it. */
static void test_waits_of_a_new_core(void **unused)
{
    static const char *const moves[] = { "", "migrate_after_us = 599.9;" };
    char text[4096];
    double wait_ns[2];
    (void)unused;
    for (unsigned i = 0; i < 2; i++) {
        snprintf(text, sizeof(text),
                 OCTO PROGRAMS SHORT
                 "programs = { n = { type = \"netperf\"; server_socket = 1; %s }; };",
                 "false", moves[i]);
        struct run_result *result = scenario_run(text);
        wait_ns[i] = scenario_value(result, "cpu_part_ns.remote_cache");
        run_result_free(result);
    }
    assert_true(fabs(wait_ns[1] - wait_ns[0]) <= 0.05 * wait_ns[0]);
}

/* A run that ends before its hosts have been shut down leaves memory of theirs behind. */
static void fails_in_a_child(const char *text, const char *says)
{
    int status = -1;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        scenario_fails(text, says);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* More memory than a socket has is refused where it is asked for, alone or with other programs;
 * what only does not fit beside the kernel's own fails the run. */
static void test_memory(void **unused)
{
    static const struct {
        const char *program, *says;
        bool fails;
    } cases[] = {
        { "type = \"stream\"; array_bytes = \"9 GiB\";",
          "programs.p.array_bytes: found \"9 GiB\" (a string), expected 1024 MiB of memory at "
          "most on socket 1 of the host \"server\" (with it, programs need 18432 MiB)",
          false },
        { "type = \"stream\"; array_bytes = 400000000; }; q = { type = \"stream\"; socket = 1;"
          " first_core = 0; array_bytes = 400000000;",
          "programs.q.array_bytes: found 400000000 (an integer), expected 1024 MiB", false },
        { "type = \"stream\"; array_bytes = 530000000;",
          "p: no memory left on socket 1 for an array of 530000000 bytes", true },
        { "type = \"memcached\"; clients = 1; workers = 1; items = 1000000;",
          "programs.p.items: found 1000000 (an integer), expected 1024 MiB of memory at most on "
          "socket 0",
          false },
        { "type = \"memcached\"; clients = 1; workers = 1; items = 2010;",
          "p: no memory for 524576 bytes on node 0 of the host \"server\"", true },
        { "type = \"pagerank\"; threads_per_socket = 2; scale = 28;",
          "programs.p.scale: found 28 (an integer), expected 1024 MiB of memory", false },
        { "type = \"sendfile\"; instances = 2; file_bytes = 999948288; pages = \"remote\";",
          "programs.p.file_bytes: found 999948288 (an integer), expected 1024 MiB of memory at most "
          "on socket 1",
          false },
        { "type = \"sendfile\"; instances = 2; file_bytes = 536805376;",
          "p: no memory left on socket 0 of the host \"server\" for a file of 536805376 bytes",
          true },
    };
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        GString *text = g_string_new("");
        g_string_append_printf(text, OCTO_OF("4") PROGRAMS SHORT "programs = { p = { %s }; };",
                               "false", cases[i].program);
        g_string_replace(text, "cpu = {", "dram = { node_size = \"1 GiB\"; }; cpu = {", 1);
        if (cases[i].fails)
            fails_in_a_child(text->str, cases[i].says);
        else
            scenario_refused(text->str, cases[i].says);
        g_string_free(text, TRUE);
    }
}

/* A rate over less time than an operation takes says nothing. */
static void test_short_window(void **unused)
{
    static const char *const programs[][2] = {
        { "type = \"netperf\"; buffer_bytes = 16777216;", "not one receive call began and ended" },
        { "type = \"sendfile\";", "not one receive call began and ended" },
        { "type = \"memcached\"; clients = 1; workers = 1;", "not one request began and ended" },
        { "type = \"netperf_rr\";", "not one round trip began and ended" },
    };
    char text[4096];
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(programs); i++) {
        snprintf(text, sizeof(text),
                 OCTO PROGRAMS "measure = { warmup_us = 1000; duration_us = 0.001; };\n"
                               "programs = { p = { %s }; };",
                 "false", programs[i][0]);
        scenario_fails(text, programs[i][1]);
    }
    snprintf(text, sizeof(text),
             OCTO PROGRAMS "measure = { warmup_us = 0; duration_us = 5; };\n"
                           "programs = { p = { type = \"netperf\"; }; };",
             "false");
    scenario_fails(text, "made before the measurement ended: raise measure.warmup_us");
    /* What calls have copied, not what they have returned: from the end of one window on the next
     * goes on, so that both together have what one as long has. */
    double gbit[2];
    for (unsigned i = 0; i < 2; i++) {
        snprintf(text, sizeof(text),
                 OCTO PROGRAMS "measure = { warmup_us = %u; duration_us = %u; };\n"
                               "programs = { n = { type = \"netperf\"; direction = \"rx\";"
                               " buffer_bytes = 1048576; }; };",
                 "false", 1000 + i * 700, 1400 - i * 700);
        struct run_result *result = scenario_run(text);
        gbit[i] = scenario_value(result, "throughput_gbit_s");
        run_result_free(result);
    }
    assert_true(gbit[0] > 1 && gbit[1] > 0.7 * gbit[0] && gbit[1] < 1.3 * gbit[0]);
}

/* Two programs of a type on the same address, and two that go to and fro. */
static void test_side_by_side(void **unused)
{
    static const char *const programs[] = {
        "a = { type = \"netperf\"; }; b = { type = \"netperf\"; first_core = 1;"
        " client_first_core = 1; };",
        "a = { type = \"sendfile\"; }; b = { type = \"sendfile\"; first_core = 1;"
        " client_first_core = 1; };",
        "a = { type = \"netperf_rr\"; }; b = { type = \"sockperf\"; core = 1; client_core = 1; };",
    };
    char text[4096];
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(programs); i++) {
        snprintf(text, sizeof(text), OCTO PROGRAMS SHORT "programs = { %s };", "false",
                 programs[i]);
        struct run_result *result = scenario_run(text);
        if (i < 2)
            assert_true(scenario_value(result, "throughput_gbit_s") > 1);
        else
            assert_true(scenario_value(result, "rtt_us") > 1 &&
                        scenario_value(result, "latency_us") > 1);
        run_result_free(result);
    }
}

/* The metrics are about the host that `measured` names, whichever it is. */
static void test_measured(void **unused)
{
    static const char *const metrics[] = { "memory_gbyte_s", "interconnect_gbyte_s.s1_s0" };
    char text[4096], name[64];
    (void)unused;
    for (unsigned client = 0; client < 2; client++) {
        snprintf(text, sizeof(text),
                 OCTO "workload = { type = \"programs\"; measured = \"%s\"; };\n" SHORT
                      "programs = { s = { type = \"stream\"; pairs = 1; first_core = 0; socket = 0;"
                      " memory_socket = 1; }; };", /* on the server */
                 "false", client ? "client" : "server");
        struct run_result *result = scenario_run(text);
        for (unsigned m = 0; m < SIM_N_ELEMENTS(metrics); m++) {
            snprintf(name, sizeof(name), "%s.%s", client ? "server" : "client", metrics[m]);
            const double measured = scenario_value(result, metrics[m]),
                         other = scenario_value(result, name);
            assert_true(client ? other > 1 && measured < 0.1 : measured > 1 && other < 0.1);
        }
        run_result_free(result);
    }
}

/* What is said per packet adds up: all DRAM traffic has a cause, all writes' time a part. */
static void test_breakdown(void **unused)
{
    static const char *const causes[] = { "read_load",       "read_rfo",     "read_dma",
                                          "read_directory",  "write_victim", "write_ddio_victim",
                                          "write_snoop",     "write_nt",     "write_dma",
                                          "write_directory", "write_flush" };
    char text[4096], name[64];
    double bytes = 0, part_ns = 0, whole_ns = 0, n = 0;
    (void)unused;
    snprintf(text, sizeof(text),
             OCTO PROGRAMS SHORT "programs = { netperf = { type = \"netperf\"; }; };", "false");
    struct run_result *result = scenario_run(text);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(causes); i++) {
        snprintf(name, sizeof(name), "dram_part_bytes.%s", causes[i]);
        bytes += scenario_value(result, name);
    }
    double packets = scenario_value(result, "packet_rate_kpps") * 0.6;
    assert_true(fabs(bytes * packets / (scenario_value(result, "memory_gbyte_s") * 600e3) - 1) <
                1e-6);
    for (unsigned i = 0; i < N_LATENCY_PARTS; i++) {
        snprintf(name, sizeof(name), "dma_write_part_ns.%s", latency_part_name[i]);
        double part = run_result_value(result, name);
        part_ns += isfinite(part) ? part : 0;
    }
    for (unsigned s = 0; s < 2; s++) {
        snprintf(name, sizeof(name), "server.s%u.root_complex.write_latency_ns", s);
        double mean = run_result_value(result, name);
        if (isfinite(mean) != 0) {
            whole_ns += mean;
            n++;
        }
    }
    assert_true(n == 1); /* one function carries it all */
    assert_true(fabs(part_ns - whole_ns) < 1e-6 && whole_ns > 100);
    run_result_free(result);
}

/* Values go both ways, every byte is checked; one worker drives all connections. */
static void test_memcached(void **unused)
{
    static const unsigned set_pct[] = { 0, 50, 100 };
    char text[4096];
    (void)unused;
    for (unsigned workers = 1; workers <= 2; workers++)
        for (unsigned i = 0; i < SIM_N_ELEMENTS(set_pct); i++) {
            snprintf(text, sizeof(text),
                     OCTO PROGRAMS "measure = { warmup_us = 500; duration_us = 1500; };\n"
                                   "programs = { m = { type = \"memcached\"; clients = 2;"
                                   " workers = %u; items = 3; value_bytes = 65536; set_pct = %u;"
                                   " client_socket = 0; }; };",
                     "false", workers, set_pct[i]);
            struct run_result *result = scenario_run(text);
            double kt_s = scenario_value(result, "transactions_kt_s");
            assert_true(kt_s > 2);
            assert_true(fabs(scenario_value(result, "memcached_gbit_s") - kt_s * 65536 * 8e-6) <
                        1e-6);
            assert_true(run_result_has(result, RECORD_HISTOGRAM, "m.transaction_us"));
            /* Little's law: two clients, each with one request under way */
            assert_true(fabs(kt_s * 1e-3 * scenario_value(result, "m.transaction_mean_us") - 2) <
                        0.2);
            /* what crosses the wire is what was asked for, and requests */
            double in = scenario_value(result, "nic.pf0_rx_bytes") +
                        scenario_value(result, "nic.pf1_rx_bytes");
            double out = scenario_value(result, "nic.pf0_tx_bytes") +
                         scenario_value(result, "nic.pf1_tx_bytes");
            assert_int_equal(in > 1.5e-3 * kt_s * 1000 * 65536 * 0.2, set_pct[i] != 0);
            assert_int_equal(out > 1.5e-3 * kt_s * 1000 * 65536 * 0.2, set_pct[i] != 100);
            run_result_free(result);
        }
    /* Nobody asks: nothing is done, and nothing is wrong with it. */
    snprintf(text, sizeof(text),
             OCTO PROGRAMS SHORT "programs = { m = { type = \"memcached\"; clients = 0;"
                                 " workers = 2; }; n = { type = \"netperf\"; }; };",
             "false");
    struct run_result *result = scenario_run(text);
    assert_true(scenario_value(result, "transactions_kt_s") == 0);
    run_result_free(result);
}

/* Two hosts that do the same for each other, each a server and a client, some 90 requests either
 * way: as much crosses the wire both ways if both draw the same GETs and SETs, else not. */
static void test_memcached_programs_draw_apart(void **unused)
{
    (void)unused;
    struct run_result *result = scenario_run(
        "hosts = { server = " ONE_SOCKET "client = " ONE_SOCKET "};\n"
        "devices = { nic = " NIC "client_nic = " NIC "};\n"
        "cables = ( { from = \"server.s0.rp0\"; to = \"nic.p0\"; },"
        " { from = \"client.s0.rp0\"; to = \"client_nic.p0\"; },"
        " { from = \"nic.e0\"; to = \"client_nic.e0\"; } );\n"
        "network = { server = { host = \"server\"; device = \"nic\"; };"
        " client = { host = \"client\"; device = \"client_nic\"; }; };\n"
        "workload = { type = \"programs\"; connect_within_us = 0; };\n"
        "measure = { warmup_us = 0; duration_us = 10000; };\n"
        "programs = { a = { type = \"memcached\"; clients = 1; workers = 1; items = 3; value_bytes = 65536;"
        " set_pct = 50; client_first_core = 1; };"
        " b = { type = \"memcached\"; clients = 1; workers = 1; items = 3; value_bytes = 65536;"
        " set_pct = 50; client_first_core = 1; server = \"client\"; client = \"server\"; }; };");
    const double in = scenario_value(result, "nic.pf0_rx_bytes"),
                 out = scenario_value(result, "client_nic.pf0_rx_bytes");
    assert_true(fabs(in - out) > 4 * 65536);
    run_result_free(result);
}

/* Ranks of a graph in which every vertex has outgoing edges sum to one after any iteration; the
 * measurement ends with the program. */
static void test_pagerank(void **unused)
{
    char text[4096];
    double first_s = 0;
    (void)unused;
    for (unsigned iterations = 1; iterations <= 3; iterations += 2) {
        snprintf(text, sizeof(text),
                 OCTO PROGRAMS "measure = { warmup_us = 100; duration_us = 100000; };\n"
                               "programs = { p = { type = \"pagerank\"; threads_per_socket = 2;"
                               " scale = 10; degree = 20; skew = 1.0; iterations = %u; }; };",
                 "false", iterations);
        struct run_result *result = scenario_run(text);
        double s = scenario_value(result, "pagerank_s");
        assert_true(fabs(scenario_value(result, "pagerank_score_sum") - 1) < 1e-3);
        assert_true(fabs(scenario_value(result, "pagerank_edges_per_us") * s * 1e6 -
                         iterations * 20480) < 0.01);
        assert_true(s > iterations * 20480 * 4 / 2e9 / 4 && s < 0.001 * iterations);
        if (iterations == 1)
            first_s = s;
        else
            assert_true(s > 2 * first_s && s < 3 * first_s); /* its lines are there by then */
        run_result_free(result);
    }
}

/* Of those that end by themselves the ones that have not are named, and the setting that helps. */
static void test_not_ended(void **unused)
{
    char text[4096];
    (void)unused;
    snprintf(text, sizeof(text),
             OCTO PROGRAMS "measure = { warmup_us = 0; duration_us = 2000; };\n"
                           "programs = { stream = { type = \"netperf\"; };"
                           " small = { type = \"pagerank\"; threads_per_socket = 1; scale = 8; };"
                           " a = { type = \"pagerank\"; threads_per_socket = 1; first_core = 1;"
                           " scale = 20; }; };",
             "false");
    scenario_breaks_off(
        text, "a: not ended within the 2000 us of measure.duration_us, as programs that end by "
              "themselves must: raise measure.duration_us");
}

/* Another program ends the measurement long before the processes would have moved; by then they are
 * gone. */
static void test_ends_before_migration(void **unused)
{
    char text[4096];
    (void)unused;
    snprintf(text, sizeof(text),
             OCTO PROGRAMS "measure = { warmup_us = 300; duration_us = 20000; };\n"
                           "programs = { p = { type = \"netperf\"; migrate_after_us = 15000; };"
                           " q = { type = \"pagerank\"; threads_per_socket = 1; first_core = 1;"
                           " scale = 15; }; };",
             "false");
    mallopt(M_PERTURB, 0xa5); /* what is free does not look like a thread */
    scenario_fails(text, "the measurement ended before migrate_after_us (15000 us) had passed");
    mallopt(M_PERTURB, 0);
}

/* A fault that would come after all has been measured. */
static void test_late_fault(void **unused)
{
    char text[4096];
    (void)unused;
    snprintf(text, sizeof(text),
             OCTO PROGRAMS SHORT "programs = { p = { type = \"netperf\"; };"
                                 " f = { type = \"fault\"; device = \"nic\"; after_us = 600; }; };",
             "false");
    scenario_refused(text, "programs.f.after_us: found 600 (an integer), expected less than "
                           "measure.duration_us");
}

/* What its driver would not find is known before: functions without a cable, too few queues. */
static void test_nic_refusals(void **unused)
{
#define FOUR(FROM)                                                                   \
    "hosts = { server = " HOST "};\n"                                                \
    "devices = { nic = { type = \"nic.ethernet\"; functions = 4; lanes = 4; }; };\n" \
                                                                                     \
    "cables = ( { from = \"server.s0.rp0\"; to = \"nic.p" FROM "\"; lanes = 4; },"   \
    " { from = \"server.s1.rp0\"; to = \"nic.p2\"; lanes = 4; } );\n"                \
    "network = { server = { host = \"server\"; device = \"nic\"; }; };\n"            \
    "workload = { type = \"programs\"; };\nprograms = { p = { type = \"pktgen\"; }; };\n"
#define ONE(SETTINGS, NETWORK)                                                         \
    "hosts = { server = " HOST "};\n"                                                  \
    "devices = { nic = { type = \"nic.ethernet\"; lanes = 8;\n" SETTINGS " };"         \
    " wire = { type = \"ether.switch\"; ports = 2; }; };\n"                            \
    "cables = ( { from = \"server.s0.rp0\"; to = \"nic.p0\"; },"                       \
    " { from = \"nic.e0\"; to = \"wire.e0\"; } );\n"                                   \
    "network = { server = { host = \"server\"; device = \"nic\";\n" NETWORK " }; };\n" \
    "workload = { type = \"programs\"; };\nprograms = { p = { type = \"pktgen\"; }; };\n"
    (void)unused;
    scenario_refused(
        FOUR("0"),
        "network.server.device: found \"nic\" (a string), expected a NIC with a cable to the "
        "host \"server\" at each function's port: p1, p3 have none");
    scenario_refused(FOUR("3"), "at each function's port: p0, p1 have none");
    scenario_refused(
        ONE("queues = 1;", ""),
        ":3: devices.nic.queues: found 1 (an integer), expected at least 2: the driver needs");
    scenario_refused(
        ONE("queues = 7;", "channels = 4;"),
        ":6: network.server.channels: found 4 (an integer), expected at most 3: a channel");
    scenario_refused(ONE("", "rx_moderation_us = 8;"),
                     ":6: network.server.rx_moderation_us: found 8 (an integer), expected "
                     "adaptive_moderation = false beside it");
    scenario_refused(
        ONE("", "octo_sg = true;"),
        ":6: network.server.octo_sg: found true (a boolean), expected interface = \"octo0\"");
    scenario_refused("hosts = { server = " HOST "};\n"
                     "devices = { nic = { type = \"nic.ethernet\"; lanes = 8; }; };\n"
                     "cables = ( { from = \"server.s0.rp0\"; to = \"nic.p0\"; } );\n"
                     "network = { server = { host = \"server\"; device = \"nic\"; }; };\n"
                     "workload = { type = \"programs\"; };\n"
                     "programs = { p = { type = \"pktgen\"; }; };\n",
                     "expected a NIC with a wire: no cable begins or ends at nic.e0");
    scenario_refused(ONE("", "") "measure = { transactions = 10; };",
                     "measure.transactions: found 10 (an integer), expected no transactions");
#undef FOUR
#undef ONE
}

static void test_refusals(void **unused)
{
    char text[4096];
    (void)unused;
    snprintf(text, sizeof(text), BOND PROGRAMS "programs = { n = { type = \"netperf\"; }; };", "");
    scenario_refused(text, "`device` and `second_device` of one function each for bond0");
    snprintf(text, sizeof(text), OCTO PROGRAMS "programs = { n = { type = \"netperf\"; }; };",
             "false; channels = 33");
    scenario_refused(text,
                     "network.server.channels: found 33 (an integer), expected at most 32, as 2");
    snprintf(text, sizeof(text), OCTO PROGRAMS "programs = { n = { type = \"netperf\"; }; };",
             "false; xps = false");
    scenario_refused(text,
                     "network.server.xps: found false (a boolean), expected true: octo0 and bond0");
    snprintf(text, sizeof(text), OCTO PROGRAMS "programs = { n = { type = \"netperf\"; }; };",
             "false; mtu_bytes = { value = 4000; source = \"mine\"; }");
    scenario_refused(text,
                     "network.server.mtu_bytes.value: found 4000 (an integer), expected at most "
                     "devices.nic.mtu_bytes, 1500");
    snprintf(text, sizeof(text), BOND PROGRAMS "programs = { n = { type = \"netperf\"; }; };",
             "second_device = \"nic0\";");
    scenario_refused(text, "another NIC than `device`");
    snprintf(text, sizeof(text),
             OCTO PROGRAMS "programs = { s = { type = \"sendfile\"; call_bytes = 65535; }; };",
             "true");
    scenario_refused(text, "whole pages, of which a whole number makes the file");
    snprintf(text, sizeof(text),
             OCTO PROGRAMS "programs = { s = { type = \"sendfile\"; file_bytes = 65536; }; };",
             "true");
    scenario_refused(text, "at least twice send_buffer of the server");
    snprintf(text, sizeof(text),
             OCTO PROGRAMS
             "programs = { s = { type = \"sendfile\"; instances = 2; first_core = 1; }; };",
             "true");
    scenario_refused(
        text, "programs.s.instances: found 2 (an integer), expected at most 1: a socket of the "
              "host \"server\" has 2 cores, first_core is 1");
    snprintf(text, sizeof(text),
             OCTO PROGRAMS "programs = { n = { type = \"netperf\"; same_core = true;"
                           " first_core = 2; }; };",
             "true");
    scenario_refused(
        text, "programs.n.first_core: found 2 (an integer), expected a core of a socket of the "
              "host \"server\", 0..1");
    snprintf(text, sizeof(text),
             OCTO PROGRAMS "programs = { n = { type = \"pktgen\"; socket = 2; core = 1; }; };",
             "true");
    scenario_refused(text, "programs.n.socket: found 2 (an integer), expected a socket of the host "
                           "\"server\", 0..1");
}

static void test_programs_refusals(void **unused)
{
    char text[4096];
    (void)unused;
    snprintf(text, sizeof(text),
             OCTO PROGRAMS "programs = { m = { type = \"memcached\"; clients = 2; }; };", "true");
    scenario_refused(
        text, ".cfg:6: programs.m.workers: found 4 (the default), expected at most 2: a socket");
    snprintf(text, sizeof(text),
             OCTO PROGRAMS
             "programs = { m = { type = \"memcached\"; workers = 2; clients = 3; }; };",
             "true");
    scenario_refused(text,
                     "programs.m.clients: found 3 (an integer), expected at most 2: a socket");
    snprintf(text, sizeof(text),
             OCTO PROGRAMS "programs = { p = { type = \"pagerank\"; threads_per_socket = 3; }; };",
             "true");
    scenario_refused(text,
                     "programs.p.threads_per_socket: found 3 (an integer), expected at most 2: a");
    scenario_refused("hosts = { server = " ONE_SOCKET "client = " ONE_SOCKET "};\n"
                     "devices = { nic = " NIC "client_nic = " NIC "};\n"
                     "cables = ( { from = \"server.s0.rp0\"; to = \"nic.p0\"; },"
                     " { from = \"client.s0.rp0\"; to = \"client_nic.p0\"; },"
                     " { from = \"nic.e0\"; to = \"client_nic.e0\"; } );\n"
                     "network = { server = { host = \"server\"; device = \"nic\"; };"
                     " client = { host = \"client\"; device = \"client_nic\"; }; };\n" PROGRAMS
                     "programs = { n = { type = \"netperf\"; migrate_after_us = 300; }; };",
                     "0 for a server of one socket");
    snprintf(text, sizeof(text),
             OCTO PROGRAMS SHORT
             "programs = { n = { type = \"netperf\"; migrate_after_us = 600; }; };",
             "true");
    scenario_refused(
        text, "programs.n.migrate_after_us: found 600 (an integer), expected less than measure");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sendfile),
        cmocka_unit_test(test_gro),
        cmocka_unit_test(test_bond),
        cmocka_unit_test(test_pktgen_of_a_team),
        cmocka_unit_test(test_waits_of_a_new_core),
        cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_short_window),
        cmocka_unit_test(test_measured),
        cmocka_unit_test(test_many_cores_of_a_team),
        cmocka_unit_test(test_breakdown),
        cmocka_unit_test(test_memcached),
        cmocka_unit_test(test_memcached_programs_draw_apart),
        cmocka_unit_test(test_pagerank),
        cmocka_unit_test(test_not_ended),
        cmocka_unit_test(test_late_fault),
        cmocka_unit_test(test_ends_before_migration),
        cmocka_unit_test(test_payload_by_rate),
        cmocka_unit_test(test_two_of_a_kind),
        cmocka_unit_test(test_late_connections),
        cmocka_unit_test(test_nic_refusals),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_programs_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
