/* What a host of a cluster costs: resident memory and host time of building and booting clusters of
 * hosts with a bridge each, below switches in cascade; and of such clusters at work: kernels on all
 * hosts, which all take part in device lending, devices borrowed across the cluster, and what these
 * write to their borrowers' memory for a millisecond. Each size in a process of its own. */
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "models/world/world.h"
#include "workloads/experiment.h"

#define PER_SWITCH 10u

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double resident_kib(void)
{
    unsigned long long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm == NULL || fscanf(statm, "%*u %llu", &pages) != 1)
        pages = 0;
    if (statm != NULL)
        fclose(statm);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1024.0;
}

/* What a node of a large cluster needs; the other kind has the memory system of an R730. */
#define LIGHT                                                                                      \
    "cpu = { sockets = 1; cores_per_socket = 1; }; cache = { llc_size = 81920; llc_slices = 1; "   \
    "llc_ways = 20; l2_size = 32768; l1_size = 8192; }; dram = { node_size = 268435456; channels " \
    "= 1; }; "

/* Hosts of which one lends, and its neighbour borrows what one in the next such group lends: traffic
 * crosses switches, of which most is below the lowest, as their tables of requesters have it. */
static unsigned group_of(unsigned n_hosts, unsigned n_borrowed)
{
    return n_hosts / n_borrowed;
}
static unsigned lender_of(unsigned device, unsigned n_hosts, unsigned n_borrowed)
{
    return device * group_of(n_hosts, n_borrowed);
}
static unsigned borrower_of(unsigned device, unsigned n_hosts, unsigned n_borrowed)
{
    return (device + n_borrowed - 1) % n_borrowed * group_of(n_hosts, n_borrowed) + 1;
}

/* All hosts take part. The list of nodes saves reading the registers of all switches. */
static void append_lending(GString *text, unsigned n_hosts, unsigned n_borrowed)
{
    const unsigned group = group_of(n_hosts, n_borrowed);
    g_string_append(text, "lending = {\n");
    for (unsigned i = 0; i < n_hosts; i++) {
        const unsigned d = i / group;
        g_string_append_printf(text,
                               "h%u = { host = \"h%u\"; dma_window_bytes = \"16 MiB\"; "
                               "nodes_listed = true; ",
                               i, i);
        if (d < n_borrowed && i % group == 0)
            g_string_append_printf(text, "lend = [\"d%u\"]; };\n", d);
        else if (d < n_borrowed && i % group == 1)
            g_string_append_printf(text, "borrow = [\"d%u\"]; };\n", (d + 1) % n_borrowed);
        else
            g_string_append(text, "lend = []; };\n");
    }
    g_string_append_printf(text,
                           "};\nworkload = { type = \"programs\"; measured = \"h%u\"; };\n"
                           "measure = { warmup_us = 20; duration_us = 1000; };\nprograms = {\n",
                           borrower_of(0, n_hosts, n_borrowed));
    for (unsigned i = 0; i < n_borrowed; i++)
        g_string_append_printf(text,
                               "p%u = { type = \"device_dma\"; on = \"h%u\"; device = \"d%u\"; "
                               "buffer_bytes = 65536; queue_depth = 4; };\n",
                               i, borrower_of(i, n_hosts, n_borrowed), i);
    g_string_append(text, "};\n");
}

/* Switches of all levels: each has PER_SWITCH below it, up to one that has the rest. */
static unsigned n_switches(unsigned n_hosts)
{
    unsigned n = 0, level = n_hosts;
    do
        n += level = (level + PER_SWITCH - 1) / PER_SWITCH;
    while (level > 1);
    return n;
}

/* The cables between switches; those of the lowest level come first. */
static void append_cascade(GString *text, unsigned n_hosts)
{
    unsigned first = 0, level = (n_hosts + PER_SWITCH - 1) / PER_SWITCH;
    while (level > 1) {
        for (unsigned i = 0; i < level; i++)
            g_string_append_printf(text, ",\n{ from = \"s%u.p0\"; to = \"s%u.p%u\"; }", first + i,
                                   first + level + i / PER_SWITCH, 1 + i % PER_SWITCH);
        first += level;
        level = (level + PER_SWITCH - 1) / PER_SWITCH;
    }
}

/* n_borrowed: devices; 0: no lending at all. */
static char *scenario(unsigned n_hosts, const char *host, unsigned n_borrowed)
{
    GString *text = g_string_new("hosts = {\n");
    for (unsigned i = 0; i < n_hosts; i++)
        g_string_append_printf(
            text,
            "h%u = { %s ports = ( { name = \"rp0\"; }, { name = \"rp1\"; lanes = 4; } ); "
            "iommu = { enabled = %s; }; };\n",
            i, host, n_borrowed != 0 && i % group_of(n_hosts, n_borrowed) == 1 ? "true" : "false");
    g_string_append(text, "};\ndevices = {\n");
    for (unsigned i = 0; i < n_hosts; i++)
        g_string_append_printf(text,
                               "n%u = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; };\n", i);
    for (unsigned i = 0; i < n_borrowed; i++)
        g_string_append_printf(
            text,
            "d%u = { type = \"pcie.requester\"; generation = 1; lanes = 1; bar_bytes = 65536; };\n",
            i);
    for (unsigned i = 0; i < n_switches(n_hosts); i++)
        g_string_append_printf(text, "s%u = { type = \"pcie.cluster_switch\"; ports = %u; };\n", i,
                               PER_SWITCH + 2);
    g_string_append(text, "};\ncables = (\n");
    for (unsigned i = 0; i < n_hosts; i++)
        g_string_append_printf(text,
                               "%s{ from = \"h%u.s0.rp0\"; to = \"n%u.p0\"; },\n"
                               "{ from = \"n%u.p1\"; to = \"s%u.p%u\"; }",
                               i == 0 ? "" : ",\n", i, i, i, i / PER_SWITCH, 1 + i % PER_SWITCH);
    for (unsigned i = 0; i < n_borrowed; i++)
        g_string_append_printf(text, ",\n{ from = \"h%u.s0.rp1\"; to = \"d%u.p0\"; }",
                               lender_of(i, n_hosts, n_borrowed), i);
    append_cascade(text, n_hosts);
    g_string_append(text, ");\n");
    if (n_borrowed != 0)
        append_lending(text, n_hosts, n_borrowed);
    return g_string_free(text, FALSE);
}

static struct config *load(unsigned n_hosts, const char *host, unsigned n_borrowed,
                           struct sim_error_list *errors)
{
    char path[] = "cluster_XXXXXX.cfg";
    char *text = scenario(n_hosts, host, n_borrowed);
    struct config *config = NULL;
    int fd = g_mkstemp(path);
    if (fd >= 0 && g_file_set_contents(path, text, -1, NULL))
        config = config_load(path, ".", errors);
    if (fd >= 0) {
        close(fd);
        g_unlink(path);
    }
    g_free(text);
    return config;
}

static int report(const struct sim_error_list *errors)
{
    for (size_t i = 0; i < errors->n_messages; i++)
        fprintf(stderr, "%s\n", errors->message[i]);
    return errors->n_messages != 0;
}

static int measure(unsigned n_hosts, const char *kind, const char *host, unsigned n_borrowed)
{
    struct sim_error_list errors = { 0 };
    struct config *config = load(n_hosts, host, n_borrowed, &errors);
    if (config == NULL)
        return 1;
    double empty_kib = resident_kib(), start_s = now_s();
    struct world *world = world_new(config, 1, &errors);
    if (report(&errors))
        return 1;
    double built_s = now_s(), built_kib = resident_kib();
    if (!world_boot(world, NULL))
        return 1;
    double booted_s = now_s(), booted_kib = resident_kib();
    printf("cluster.%s_%u.built_memory %.1f KiB/host\n", kind, n_hosts,
           (built_kib - empty_kib) / n_hosts);
    printf("cluster.%s_%u.booted_memory %.1f KiB/host\n", kind, n_hosts,
           (booted_kib - empty_kib) / n_hosts);
    printf("cluster.%s_%u.build %.3f ms/host\n", kind, n_hosts,
           (built_s - start_s) * 1e3 / n_hosts);
    printf("cluster.%s_%u.boot %.3f ms/host\n", kind, n_hosts,
           (booted_s - built_s) * 1e3 / n_hosts);
    world_free(world);
    config_free(config);
    return 0;
}

/* Built, booted, borrowed, run, returned. */
static int measure_work(unsigned n_hosts, const char *kind, const char *host, unsigned n_borrowed)
{
    struct sim_error_list errors = { 0 };
    struct config *config = load(n_hosts, host, n_borrowed, &errors);
    struct run_result *result = run_result_new();
    struct experiment_outcome outcome;
    struct rusage usage;
    char *error = NULL;
    if (config == NULL || report(&errors))
        return 1;
    double start_s = now_s();
    if (!experiment_run(config, 1, result, &outcome, NULL, &error)) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("cluster.%s_%u_lending.wall %.2f s\n", kind, n_hosts, now_s() - start_s);
    printf("cluster.%s_%u_lending.cpu %.2f s\n", kind, n_hosts,
           (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec));
    printf("cluster.%s_%u_lending.peak_memory %.1f MiB\n", kind, n_hosts,
           (double)usage.ru_maxrss / 1024.0);
    printf("cluster.%s_%u_lending.simulated %.2f ms\n", kind, n_hosts,
           (double)outcome.sim_ps * 1e-9);
    printf("cluster.%s_%u_lending.events %.2f Mevents\n", kind, n_hosts,
           (double)outcome.events * 1e-6);
    printf("cluster.%s_%u_lending.traffic %.2f GB/s\n", kind, n_hosts,
           run_result_value(result, "throughput_gbyte_s"));
    run_result_free(result);
    config_free(config);
    return 0;
}

typedef int measure_fn(unsigned n_hosts, const char *kind, const char *host, unsigned n_borrowed);

static int measure_apart(measure_fn *fn, unsigned n_hosts, const char *kind, const char *host,
                         unsigned n_borrowed)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        status = fn(n_hosts, kind, host, n_borrowed);
        fflush(stdout);
        _exit(status);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
               ? WEXITSTATUS(status)
               : 1;
}

/* cluster N M: only a cluster of N light hosts that borrow M devices. */
int main(int argc, char **argv)
{
    if (argc == 3)
        return measure_apart(measure_work, (unsigned)atoi(argv[1]), "light", LIGHT,
                             (unsigned)atoi(argv[2]));
    return measure_apart(measure, 1, "light", LIGHT, 0) ||
           measure_apart(measure, 60, "light", LIGHT, 0) ||
           measure_apart(measure, 1000, "light", LIGHT, 0) ||
           measure_apart(measure, 60, "r730", "", 0) ||
           measure_apart(measure_work, 60, "r730", "", 30) ||
           measure_apart(measure_work, 1000, "light", LIGHT, 100);
}
