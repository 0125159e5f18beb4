/*
 * Host speed of IOctopus' TCP receive (ioctopus/fig06_tcp_rx, 64 KiB): the real scenario over a
 * short and over a longer measurement; what the difference of both costs is what time under load
 * costs, without set-up, warm-up and drain. The same with a light client: its payload goes by rate.
 * Processor time, for a machine that is shared; of each the least of three: the least difference
 * would be that of the slowest short one.
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sim/config/scenario.h"
#include "workloads/experiment.h"

#define SCENARIO  "ioctopus/fig06_tcp_rx"
#define WARMUP_US 5000u
#define SHORT_US  1000u
#define LONG_US   31000u
#define N_TRIES   3

static const char *const roots[] = { "scenarios", NULL };

struct cost {
    double host_s, sim_s, packets;
};

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool run_config(struct config *config, unsigned duration_us, struct cost *cost)
{
    struct experiment_outcome outcome = { 0 };
    struct run_result *result = run_result_new();
    const int never = 0;
    char *error = NULL;
    const double start_s = cpu_s();
    const bool done = experiment_run(config, 1, result, &outcome, &never, &error);
    cost->host_s = cpu_s() - start_s;
    cost->sim_s = (double)outcome.sim_ps * 1e-12;
    /* The rate is that of the measurement: millions a second. */
    cost->packets = run_result_value(result, "packet_rate_mpps") * (double)duration_us;
    if (!done)
        fprintf(stderr, "%s: %s\n", SCENARIO, error != NULL ? error : "failed");
    g_free(error);
    run_result_free(result);
    return done;
}

/* payload: of the client, "lines" or "rates". */
static bool measure(const char *point, const char *payload, unsigned duration_us, struct cost *cost)
{
    char *warmup = g_strdup_printf("measure.warmup_us=%u", WARMUP_US);
    char *duration = g_strdup_printf("measure.duration_us=%u", duration_us);
    char *detail = g_strconcat("hosts.client.detail.payload=", payload, NULL);
    const char *const sets[] = { warmup, duration, detail, NULL };
    struct sim_error_list errors = { 0 };
    struct scenario *scenario = scenario_load(SCENARIO, roots, sets, &errors);
    bool done = false;
    for (size_t i = 0; scenario != NULL && i < scenario_n_points(scenario); i++) {
        if (strcmp(scenario_point_name(scenario, i), point) != 0)
            continue;
        struct config *config = scenario_point(scenario, i, &errors);
        done = config != NULL && run_config(config, duration_us, cost);
        config_free(config);
    }
    for (size_t i = 0; i < errors.n_messages; i++)
        fprintf(stderr, "%s\n", errors.message[i]);
    done = done && errors.n_messages == 0;
    sim_error_release(&errors);
    scenario_free(scenario);
    g_free(warmup);
    g_free(duration);
    g_free(detail);
    return done;
}

/* Keeps what took less time. */
static bool measure_again(const char *point, const char *payload, unsigned duration_us,
                          struct cost *least)
{
    struct cost cost = { 0 };
    if (!measure(point, payload, duration_us, &cost))
        return false;
    if (least->host_s == 0 || cost.host_s < least->host_s)
        *least = cost;
    return true;
}

static bool bench(const char *name, const char *point, const char *payload)
{
    struct cost first = { 0 }, second = { 0 };
    for (int i = 0; i < N_TRIES; i++)
        if (!measure_again(point, payload, SHORT_US, &first) ||
            !measure_again(point, payload, LONG_US, &second))
            return false;
    const double host_s = second.host_s - first.host_s;
    printf("ioctopus.fig06_%s %.2f host_s/sim_s\n", name, host_s / (second.sim_s - first.sim_s));
    printf("ioctopus.fig06_%s_packets %.1f kpackets/s\n", name,
           (second.packets - first.packets) / host_s / 1000);
    return true;
}

int main(void)
{
    static const char *const run[][3] = {
        { "local", "buffer_bytes=65536 config=local", "lines" },
        { "remote", "buffer_bytes=65536 config=remote", "lines" },
        { "local_light", "buffer_bytes=65536 config=local", "rates" },
        { "remote_light", "buffer_bytes=65536 config=remote", "rates" },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(run); i++)
        if (!bench(run[i][0], run[i][1], run[i][2]))
            return 1;
    return 0;
}
