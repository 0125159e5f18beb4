/* Programs in guests: GPUs that reach each other, borrowed by MDEV or local by VFIO, with their
 * unchanged driver; bandwidthTest checks every byte. What is refused, before and while it runs. */
#include <string.h>

#include "tests/support/scenario_fixture.h"

#define HOST(NAME)                                                         \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; },"      \
         " { name = \"rp1\"; socket = 0; lanes = 8; },"                    \
         " { name = \"rp2\"; socket = 0; lanes = 8; } );"                  \
         " dram = { node_size = \"4 GiB\"; };"                             \
         " cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; };" \
         " iommu = { enabled = true; }; };\n"
#define GPU "{ type = \"gpu.cuda\"; lanes = 8; };"
/* Both GPUs are in the host %s. */
#define WORLD                                                                                        \
    "hosts = { " HOST("server") HOST(                                                                \
        "lender") "};\n"                                                                             \
                  "devices = { n0 = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; };"           \
                  " n1 = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; bar2_bytes = \"%s\"; };" \
                  " gpu0 = " GPU " gpu1 = " GPU " };\n"                                              \
                  "cables = ( { from = \"server.s0.rp0\"; to = \"n0.p0\"; },"                        \
                  " { from = \"lender.s0.rp0\"; to = \"n1.p0\"; },"                                  \
                  " { from = \"%s.s0.rp1\"; to = \"gpu0.p0\"; },"                                    \
                  " { from = \"%s.s0.rp2\"; to = \"gpu1.p0\"; },"                                    \
                  " { from = \"n0.p1\"; to = \"n1.p1\"; length_m = 2.0; } );\n"                      \
                  "workload = { type = \"programs\"; measured = \"borrower\"; };\n"                  \
                  "programs = { copy = { type = \"bandwidth_test\"; direction = \"%s\";"             \
                  " transfer_bytes = 65536; volume_bytes = 262144; }; };\n"                          \
                  "measure = { warmup_us = 0; duration_us = 1000000; };\n"
#define BORROWED                                                                  \
    "lending = { lender = { host = \"lender\"; lend = [\"gpu0\", \"gpu1\"]; };\n" \
    " borrower = { host = \"server\"; borrow = [\"gpu0\", \"gpu1\"]; vm = { %s }; }; };\n"
#define LOCAL "lending = { borrower = { host = \"server\"; vm = { %s }; }; };\n"
#define SMALL "memory_bytes = \"128 MiB\"; cpus = 2;"

static char *scenario(const char *aperture, const char *where, const char *direction, bool borrowed,
                      const char *vm)
{
    char *world = g_strdup_printf(WORLD, aperture, where, where, direction);
    char *groups = borrowed ? g_strdup_printf(BORROWED, vm) : g_strdup_printf(LOCAL, vm);
    char *text = g_strconcat(world, groups, NULL);
    g_free(world);
    g_free(groups);
    return text;
}

/* Takes the text. NULL, or what the run failed with (g_free). */
static char *run_into(char *text, double *gbyte_s)
{
    struct run_result *result = run_result_new();
    char *error = scenario_run_into(text, result);
    *gbyte_s = error == NULL ? run_result_value(result, "throughput_gbyte_s") : 0;
    run_result_free(result);
    g_free(text);
    return error;
}

static void expect_copies(char *text)
{
    double gbyte_s;
    char *error = run_into(text, &gbyte_s);
    if (error != NULL)
        fail_msg("%s", error);
    assert_true(gbyte_s > 0.1 && gbyte_s < 7.88); /* eight lanes of generation 3 */
}

static void test_borrowed(void **state)
{
    (void)state;
    expect_copies(scenario("8 GiB", "lender", "read", true, SMALL));
    expect_copies(scenario("8 GiB", "lender", "write", true, SMALL));
    expect_copies(scenario("8 GiB", "lender", "peer", true, SMALL));
}

static void test_local(void **state)
{
    (void)state;
    expect_copies(scenario("8 GiB", "server", "read", false, SMALL));
    expect_copies(scenario("8 GiB", "server", "write", false, SMALL));
    expect_copies(scenario("8 GiB", "server", "peer", false, SMALL));
}

/* A page of 4 KiB per access that is not near the last one: more is looked up than with 2 MiB. */
static void test_statistics(void **state)
{
    static const char *const pages[] = { "2097152", "4096" };
    double misses[2], reads[2];
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        g_autofree char *vm = g_strdup_printf(SMALL " guest_page_bytes = %s; host_page_bytes = %s;",
                                              pages[i], pages[i]);
        struct run_result *result = run_result_new();
        g_autofree char *text = scenario("8 GiB", "server", "read", false, vm);
        char *error = scenario_run_into(text, result);
        assert_null(error);
        assert_true(run_result_value(result, "borrower.vm.exits") >= 0);
        assert_true(run_result_value(result, "borrower.vm.wakeups") <=
                    run_result_value(result, "borrower.vm.interrupts"));
        assert_true(run_result_value(result, "borrower.vm.tlb_hits") > 0);
        assert_true(run_result_value(result, "borrower.vm.tlb_l2_hits") >= 0);
        misses[i] = run_result_value(result, "borrower.vm.tlb_misses");
        reads[i] = run_result_value(result, "borrower.vm.walk_reads");
        assert_true(reads[i] >= misses[i]);
        run_result_free(result);
    }
    assert_true(misses[1] > misses[0] && reads[1] > reads[0]);
}

static void test_small_aperture(void **state)
{
    double gbyte_s;
    (void)state;
    char *error = run_into(
        scenario("1 GiB", "lender", "read", true, "memory_bytes = \"2 GiB\"; cpus = 2;"), &gbyte_s);
    assert_non_null(error);
    if (strstr(error, "the guest borrower does not get gpu0 of lender: ") == NULL ||
        strstr(error, "do not fit into its aperture of 1024 MiB") == NULL)
        fail_msg("%s", error);
    g_free(error);
}

static void expect_mistake(const char *vm, const char *what)
{
    char *text = scenario("8 GiB", "lender", "read", true, vm);
    scenario_refused_among(text, what);
    g_free(text);
}

static void test_mistakes(void **state)
{
    (void)state;
    expect_mistake("first_cpu = 3; cpus = 2;", "lending.borrower.vm.cpus: found 2 (an integer), "
                                               "expected at most 1: cores of the host server from "
                                               "first_cpu = 3 on");
    expect_mistake("first_cpu = 4;",
                   "lending.borrower.vm.first_cpu: found 4 (an integer), expected "
                   "one of the cores of the host server, 1..3");
    expect_mistake("host_page_bytes = 8192;", "lending.borrower.vm.host_page_bytes: found 8192");
    expect_mistake("guest_page_bytes = 8192;", "lending.borrower.vm.guest_page_bytes: found 8192");
    expect_mistake(
        "cpus = 1;",
        "cpu: found 1 (the default), expected a CPU of the guest borrower, 0..0"); /* the program is on CPU 1
                                                                           */
    expect_mistake("memory_bytes = 134221824;",
                   "lending.borrower.vm.memory_bytes: found 134221824 (an integer), expected a "
                   "multiple of 2 MiB");
    expect_mistake("memmory_bytes = \"1 GiB\";", "unknown setting");
    expect_mistake("tlb_4k_entries = 7;",
                   "lending.borrower.vm.tlb_4k_entries: found 7 (an integer), "
                   "expected a multiple of tlb_ways, or fewer");
    expect_mistake("tlb_ways = 5;", "lending.borrower.vm.tlb_2m_entries: found 32 (the default)");
    expect_mistake("tlb_l2_entries = 10;", "expected a multiple of tlb_l2_ways, or fewer");
}

/* Of a group whose host, or whose own settings, are wrong, the guest's settings are not unknown. */
static void test_mistakes_elsewhere(void **state)
{
    char *text = scenario("8 GiB", "lender", "read", true, SMALL);
    char **parts = g_strsplit(text, "iommu = { enabled = true;", 2);
    char *faulty = g_strjoinv("iommu = { enabled = true; iotlb_entries = 7;", parts);
    (void)state;
    scenario_refused(faulty, "the entries of a cache must be a multiple of its ways");
    g_strfreev(parts);
    g_free(faulty);
    parts = g_strsplit(text, "borrow = [", 2);
    faulty = g_strjoinv("max_peers = 0; borrow = [", parts);
    scenario_refused(faulty, "lending.borrower.max_peers: found 0");
    g_strfreev(parts);
    g_free(faulty);
    g_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_borrowed),   cmocka_unit_test(test_local),
        cmocka_unit_test(test_statistics), cmocka_unit_test(test_small_aperture),
        cmocka_unit_test(test_mistakes),   cmocka_unit_test(test_mistakes_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
