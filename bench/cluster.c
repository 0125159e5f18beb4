/* What a host of a cluster costs: resident memory and host time of building and booting clusters of
 * hosts with a bridge each, below switches in cascade. Each size in a process of its own. */
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "models/world.h"

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

static char *scenario(unsigned n_hosts, const char *host)
{
    unsigned n_switches = (n_hosts + PER_SWITCH - 1) / PER_SWITCH;
    unsigned n_middle = (n_switches + PER_SWITCH - 1) / PER_SWITCH;
    GString *text = g_string_new("hosts = {\n");
    for (unsigned i = 0; i < n_hosts; i++)
        g_string_append_printf(text, "h%u = { %s ports = ( { name = \"rp0\"; } ); };\n", i, host);
    g_string_append(text, "};\ndevices = {\n");
    for (unsigned i = 0; i < n_hosts; i++)
        g_string_append_printf(text,
                               "n%u = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; };\n", i);
    for (unsigned i = 0; i < n_switches + n_middle + 1; i++)
        g_string_append_printf(text, "s%u = { type = \"pcie.cluster_switch\"; ports = %u; };\n", i,
                               PER_SWITCH + 2);
    g_string_append(text, "};\ncables = (\n");
    for (unsigned i = 0; i < n_hosts; i++)
        g_string_append_printf(text,
                               "%s{ from = \"h%u.s0.rp0\"; to = \"n%u.p0\"; },\n"
                               "{ from = \"n%u.p1\"; to = \"s%u.p%u\"; }",
                               i == 0 ? "" : ",\n", i, i, i, i / PER_SWITCH, 1 + i % PER_SWITCH);
    for (unsigned i = 0; i < n_switches; i++)
        g_string_append_printf(text, ",\n{ from = \"s%u.p0\"; to = \"s%u.p%u\"; }", i,
                               n_switches + i / PER_SWITCH, 1 + i % PER_SWITCH);
    for (unsigned i = 0; i < n_middle; i++)
        g_string_append_printf(text, ",\n{ from = \"s%u.p0\"; to = \"s%u.p%u\"; }", n_switches + i,
                               n_switches + n_middle, 1 + i);
    g_string_append(text, ");\n");
    return g_string_free(text, FALSE);
}

static int measure(unsigned n_hosts, const char *kind, const char *host)
{
    char path[] = "cluster_XXXXXX.cfg";
    char *text = scenario(n_hosts, host);
    struct sim_error_list errors = { 0 };
    int fd = g_mkstemp(path);
    if (fd < 0 || !g_file_set_contents(path, text, -1, NULL))
        return 1;
    close(fd);
    struct config *config = config_load(path, ".", &errors);
    g_unlink(path);
    double empty_kib = resident_kib(), start_s = now_s();
    struct world *world = world_new(config, 1, &errors);
    for (size_t i = 0; i < errors.n_messages; i++)
        fprintf(stderr, "%s\n", errors.message[i]);
    if (errors.n_messages != 0)
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
    g_free(text);
    return 0;
}

static int measure_apart(unsigned n_hosts, const char *kind, const char *host)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        status = measure(n_hosts, kind, host);
        fflush(stdout);
        _exit(status);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
               ? WEXITSTATUS(status)
               : 1;
}

int main(void)
{
    return measure_apart(1, "light", LIGHT) || measure_apart(60, "light", LIGHT) ||
           measure_apart(1000, "light", LIGHT) || measure_apart(60, "r730", "");
}
