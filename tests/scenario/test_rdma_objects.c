/*
 * Programs that need more objects of an RDMA adapter, or queue pairs of a controller, than there
 * are: one message before anything runs, at the setting that asks for them; with as many as are
 * needed they run.
 */
#include <glib/gstdio.h>

#include "tests/support/scenario_fixture.h"

static char *with(const char *name, const char *const changes[][2])
{
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(name, &text, NULL, NULL));
    g_autoptr(GString) changed = g_string_new(text);
    for (unsigned i = 0; changes[i][0] != NULL; i++)
        assert_int_equal(g_string_replace(changed, changes[i][0], changes[i][1], 1), 1);
    return g_strdup(changed->str);
}

#define ADAPTER(NAME, MORE)                                                              \
    {                                                                                    \
        NAME " = { type = \"rdma.adapter\";", NAME " = { type = \"rdma.adapter\"; " MORE \
    }
#define FIO(MORE)                                           \
    {                                                       \
        "type = \"fio\"; on", "type = \"fio\"; " MORE " on" \
    }
#define TARGET(MORE)                                                            \
    {                                                                           \
        "type = \"nvmeof_target\"; on", "type = \"nvmeof_target\"; " MORE " on" \
    }
#define SSD(MORE)                                                                          \
    {                                                                                      \
        "ssd = { type = \"nvme.controller\";", "ssd = { type = \"nvme.controller\"; " MORE \
    }

struct refusal {
    const char *changes[4][2];
    const char *message;
};

static void refused(const char *name, const struct refusal *refusals, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        g_autofree char *text = with(name, refusals[i].changes);
        scenario_refused(text, refusals[i].message);
    }
}

static void runs(const char *name, const char *const changes[][2])
{
    g_autofree char *text = with(name, changes);
    struct run_result *result = scenario_run(text);
    assert_true(scenario_value(result, "iops") > 10000);
    run_result_free(result);
}

#define NVMEOF "tests/scenario/settings/nvmeof.cfg"

/* A job has two connections, each with a region, and a page, and a region for each of 24 requests;
 * a second one takes a connection and 24 requests more. */
static void test_initiators(void **state)
{
    static const struct refusal refusals[] = {
        { { ADAPTER("r1", "queue_pairs = 4;"), FIO("jobs = 2;") },
          "programs.fio.jobs: found 2 (an integer), expected fewer jobs and requests, or an "
          "adapter with 3 queue pairs for the programs that use it; r1 has 2 (its queue_pairs, "
          "less those of management)" },
        { { ADAPTER("r1", "completion_queues = 1;") },
          "programs.fio.jobs: found 1 (the default), expected fewer jobs and requests, or an adapter "
          "with 2 completion queues for the programs that use it; r1 has 1 (its completion_queues)" },
        { { ADAPTER("r1", "keys = 27;") }, "27 memory regions" },
        { { ADAPTER("r1", "keys = 52;"), FIO("jobs = 2;") }, "52 memory regions" },
        { { ADAPTER("r1", "keys = 5;"),
            FIO("job_options = \"filename=x direct=1 iodepth=2 numjobs=1 name=a\";"),
            { "queue_depth = 24; read_ratio = 0.5; span_bytes = \"1 MiB\";", "" } },
          "programs.fio.job_options" },
    };
    static const char *const enough[][2] = { ADAPTER("r1", "queue_pairs = 5; keys = 53;"
                                                           " completion_queues = 3;"
                                                           " protection_domains = 1;"),
                                             FIO("jobs = 2;"),
                                             { NULL, NULL } };
    (void)state;
    refused(NVMEOF, refusals, SIM_N_ELEMENTS(refusals));
    runs(NVMEOF, enough);
}

static void test_targets(void **state)
{
    static const struct refusal refusals[] = {
        { { ADAPTER("r0", "queue_pairs = 4;"), FIO("jobs = 2;") }, "r0 has 2 (its queue_pairs" },
        { { ADAPTER("r0", "keys = 2;") }, "2 memory regions for the programs that use it; r0" },
        { { ADAPTER("r0", "keys = 3;"), TARGET("offload = true;") }, "3 memory regions" },
        { { TARGET("queues = 2;"), FIO("jobs = 2;") },
          "a target p for 3 connections, with one of administration for each initiator; its "
          "`queues` is 2" },
        { { SSD("queue_pairs = 2;"), FIO("jobs = 2;") },
          "programs.fio.jobs: found 2 (an integer), expected fewer jobs, or a controller ssd with 2 "
          "queue pairs for I/O; it has 1 (its queue_pairs, less one)" },
        { { SSD("queue_pairs = 4;"), FIO("jobs = 2;"), TARGET("offload = true;") },
          "a controller ssd with 4 queue pairs for I/O; it has 3 (its queue_pairs, less one), and "
          "each connection takes two" },
        { { SSD("queue_pairs = 2;"), TARGET("offload = true;") },
          "programs.p.offload: found true (a boolean), expected a controller with queue_pairs" },
    };
    static const char *const enough[][2] = {
        ADAPTER("r0", "queue_pairs = 5; keys = 4; completion_queues = 1; protection_domains = 1;"),
        SSD("queue_pairs = 3;"),
        TARGET("queues = 3;"),
        FIO("jobs = 2;"),
        { NULL, NULL }
    };
    static const char *const offloaded[][2] = { ADAPTER("r0", "queue_pairs = 5; keys = 6;"),
                                                SSD("queue_pairs = 5;"),
                                                TARGET("queues = 3; offload = true;"),
                                                FIO("jobs = 2;"),
                                                { NULL, NULL } };
    (void)state;
    refused(NVMEOF, refusals, SIM_N_ELEMENTS(refusals));
    runs(NVMEOF, enough);
    runs(NVMEOF, offloaded);
}

/* What programs before one have when they begin, it cannot have. */
static void test_several(void **state)
{
#define OTHER(MORE)                                                                            \
    {                                                                                          \
        "    fio = {",                                                                         \
            "    g = { type = \"fio\"; on = \"client\"; engine = \"spdk\"; device = \"ssd\"; " \
            "queue_depth = 2; cpu = 3; read_ratio = 0; " MORE " };\n    fio = {"               \
    }
    static const struct refusal refusals[] = {
        { { ADAPTER("r1", "queue_pairs = 5;"), OTHER("") }, "programs.fio.jobs" },
        { { SSD("queue_pairs = 2;"), OTHER("") }, "programs.fio.jobs" },
        { { TARGET("queues = 3;"), OTHER("") }, "programs.fio.jobs" },
    };
    static const char *const enough[][2] = { ADAPTER("r1", "queue_pairs = 6; keys = 33;"),
                                             TARGET("queues = 4;"),
                                             SSD("queue_pairs = 3;"),
                                             OTHER(""),
                                             { NULL, NULL } };
    (void)state;
    refused(NVMEOF, refusals, SIM_N_ELEMENTS(refusals));
    runs(NVMEOF, enough);
}

/* Jobs behind a stonewall have what those before it gave back: the connections of all four jobs,
 * the requests of two. */
static void test_in_turn(void **state)
{
    static const char jobs[] = "[global]\nfilename=x\ndirect=1\nbs=4k\nsize=64k\nrw=randread\n"
                               "iodepth=4\nnumjobs=2\n[a]\n[b]\nstonewall\n";
    g_autofree char *path = NULL;
    const int fd = g_file_open_tmp("jobs-XXXXXX", &path, NULL);
    assert_true(fd >= 0 && g_close(fd, NULL));
    assert_true(g_file_set_contents(path, jobs, -1, NULL));
    g_autofree char *named = g_strdup_printf("job_file = \"%s\";", path);
    const char *const enough[][2] = {
        ADAPTER("r1", "queue_pairs = 7; keys = 15; completion_queues = 5;"),
        { "queue_depth = 24; read_ratio = 0.5; span_bytes = \"1 MiB\";", named },
        { "warmup_us = 10000; duration_us = 300;", "warmup_us = 100; duration_us = 100000;" },
        { NULL, NULL }
    };
    const char *const fewer[][2] = {
        ADAPTER("r1", "keys = 14;"),
        { "queue_depth = 24; read_ratio = 0.5; span_bytes = \"1 MiB\";", named },
        { NULL, NULL }
    };
    (void)state;
    g_autofree char *running = with(NVMEOF, enough);
    g_autofree char *refused_one = with(NVMEOF, fewer);
    run_result_free(scenario_run(running));
    scenario_refused(refused_one, "programs.fio.job_file");
    g_unlink(path);
}

/* A program has what it needs of an adapter for all its devices at once. */
static void test_two_devices(void **state)
{
    static const char jobs[] = "[global]\ndirect=1\nbs=4k\nsize=64k\nrw=randwrite\niodepth=2\n"
                               "[a]\nfilename=x\n[b]\nfilename=y\n";
    g_autofree char *path = NULL;
    const int fd = g_file_open_tmp("jobs-XXXXXX", &path, NULL);
    assert_true(fd >= 0 && g_close(fd, NULL));
    assert_true(g_file_set_contents(path, jobs, -1, NULL));
    g_autofree char *named = g_strdup_printf("job_file = \"%s\"; filenames = \"x=ssd y=other\";",
                                             path);
    const char *const adapters[][3] = { { "r1", "queue_pairs = 5;", "4 queue pairs" },
                                        { "r1", "protection_domains = 1;", "2 protection domains" },
                                        { "r0", "queue_pairs = 5;", "4 queue pairs" },
                                        { "r1", "queue_pairs = 6; keys = 11;", NULL },
                                        { "r0", "queue_pairs = 6;", NULL } };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(adapters); i++) {
        g_autofree char *is = g_strconcat(adapters[i][0], " = { type = \"rdma.adapter\";", NULL);
        g_autofree char *has = g_strconcat(is, " ", adapters[i][1], NULL);
        const char *const changes[][2] = {
            { is, has },
            { "lanes = 4; } );", "lanes = 4; }, { name = \"rp2\"; socket = 0; lanes = 4; } );" },
            { "ssd = {",
              "other = { type = \"nvme.controller\"; enable_latency_us = 10; }; ssd = {" },
            { "to = \"ssd.p0\"; }",
              "to = \"ssd.p0\"; }, { from = \"server.s0.rp2\"; to = \"other.p0\"; }" },
            { "fio = {",
              "t = { type = \"nvmeof_target\"; on = \"server\"; device = \"other\"; adapter = \"r0\"; };\n    fio = {" },
            { "queue_depth = 24; read_ratio = 0.5; span_bytes = \"1 MiB\";", named },
            { "warmup_us = 10000; duration_us = 300;", "warmup_us = 100; duration_us = 100000;" },
            { NULL, NULL }
        };
        g_autofree char *text = with(NVMEOF, changes);
        if (adapters[i][2] != NULL)
            scenario_refused(text, adapters[i][2]);
        else
            run_result_free(scenario_run(text));
    }
    g_unlink(path);
}

/* More requests than a queue of the target can hold wait for room in it. */
static void test_deep(void **state)
{
    static const char *const deep[][2] = {
        { "queue_depth = 24; read_ratio = 0.5;", "queue_depth = 1024; read_ratio = 0;" },
        { "span_bytes = \"1 MiB\"", "span_bytes = \"8 MiB\"" },
        { "warmup_us = 10000; duration_us = 300", "warmup_us = 120000; duration_us = 6000" },
        { NULL, NULL }
    };
    (void)state;
    runs(NVMEOF, deep);
}

static void test_rdma_perf(void **state)
{
#define AGAIN                                                                                    \
    {                                                                                            \
        "programs = {", "programs = { q = { type = \"rdma_perf\"; on = \"server\"; peer = "      \
                        "\"client\"; device = \"r0\"; peer_device = \"r1\"; iterations = 40; };" \
    }
    static const struct refusal refusals[] = {
        { { ADAPTER("r0", "completion_queues = 1;"), AGAIN },
          "programs.p.device: found \"r0\" (a string), expected an adapter with 2 completion queues "
          "for the programs that use it; r0 has 1 (its completion_queues)" },
        { { ADAPTER("r1", "keys = 2;"), AGAIN }, "programs.p.peer_device" },
        { { ADAPTER("r1", "protection_domains = 1;"), AGAIN }, "programs.p.peer_device" },
    };
    static const char *const enough[][2] = { ADAPTER("r0", "completion_queues = 2; keys = 3; "
                                                           "protection_domains = 2; queue_pairs = "
                                                           "4;"),
                                             AGAIN,
                                             { NULL, NULL } };
    (void)state;
    refused("tests/scenario/settings/rdma.cfg", refusals, SIM_N_ELEMENTS(refusals));
    g_autofree char *text = with("tests/scenario/settings/rdma.cfg", enough);
    run_result_free(scenario_run(text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_initiators),  cmocka_unit_test(test_targets),
        cmocka_unit_test(test_several),     cmocka_unit_test(test_in_turn),
        cmocka_unit_test(test_two_devices), cmocka_unit_test(test_deep),
        cmocka_unit_test(test_rdma_perf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
