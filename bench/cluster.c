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
#include "tests/support/cluster_scenario.h"
#include "workloads/experiment.h"

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

static struct config *load(unsigned n_hosts, const char *host, unsigned n_borrowed,
                           struct sim_error_list *errors)
{
    char path[] = "cluster_XXXXXX.cfg";
    char *text = cluster_scenario(n_hosts, host, n_borrowed);
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
    if (report(&errors) || config == NULL)
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
    if (report(&errors) || config == NULL)
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
        return measure_apart(measure_work, (unsigned)atoi(argv[1]), "light", CLUSTER_LIGHT,
                             (unsigned)atoi(argv[2]));
    return measure_apart(measure, 1, "light", CLUSTER_LIGHT, 0) ||
           measure_apart(measure, 60, "light", CLUSTER_LIGHT, 0) ||
           measure_apart(measure, 1000, "light", CLUSTER_LIGHT, 0) ||
           measure_apart(measure, 60, "r730", "", 0) ||
           measure_apart(measure_work, 60, "r730", "", 30) ||
           measure_apart(measure_work, 1000, "light", CLUSTER_LIGHT, 100);
}
