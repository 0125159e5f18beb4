/*
 * Myrinet Express on a host: the adapter's firmware if it is that of MX, else Open-MX's module on
 * the host's default interface, with or without the host's copy engines; endpoints of the board.
 */
#include "workloads/openmx/mx_site.h"

#include <stdio.h>
#include <stdlib.h>

#include "hw/mx_wire.h"
#include "logic/openmx/openmx.h"
#include "workloads/setup/copy_engines.h"

struct mx_site {
    struct program *program;
    struct network_host *host;
    const struct mx_site_settings *settings;
    struct mx_site_stalls *stalls;
    struct mx_site *next;         /* of another host, among those of `stalls` */
    struct copy_engines *engines; /* or NULL */
    struct openmx *openmx;        /* NULL: native MX */
    struct mx_board *board;
};

/* In the order of enum openmx_steer. */
const char *const mx_site_steering_names[] = { "none", "process", "cpu", NULL };

/* I/OAT of version 1.2 has no setting of these. */
static const struct copy_engines_params engine_params = {
    .ring = 1024, .batch = 32, .queues = 4, .poll_ps = 50 * SIM_PS_PER_NS
};

/* The settings of rules fit the host. */
static void check_steering(struct program *program, struct network_host *host,
                           const struct mx_site_settings *settings, struct sim_error_list *errors)
{
    const unsigned n_cpus = network_sockets(host) * network_cores_per_socket(host);
    char expected[64], decider[128];
    snprintf(decider, sizeof(decider), "%.100s.steering", config_path(program->group));
    if (settings->steering != OPENMX_STEER_CPU)
        config_no_effect(program->group, "steering_cpu", decider, errors,
                         "steering = \"cpu\" beside it: it has no effect otherwise");
    if (settings->steering != OPENMX_STEER_NONE && !network_has_rules(host)) {
        program_mistake(program, "steering", errors,
                        "\"none\", or hosts with a nic.ethernet whose interface is not bond0",
                        NULL);
    } else if (settings->steering == OPENMX_STEER_CPU && settings->steering_cpu >= n_cpus) {
        snprintf(expected, sizeof(expected), "a CPU of each host: 0 to %u", n_cpus - 1);
        program_mistake(program, "steering_cpu", errors, expected, NULL);
    }
}

/* Open-MX does not look at the MTU but for a warning: adapters refuse longer packets. */
static void check_mtu(const struct network_host *host, struct sim_error_list *errors)
{
    char expected[96];
    if (network_is_mx(host) || host->params.mtu_bytes >= MX_MTU_BYTES)
        return;
    snprintf(expected, sizeof(expected), "at least %u: Open-MX's packets have up to so many bytes",
             MX_MTU_BYTES);
    config_mistake_at(host->group, "mtu_bytes", errors, expected, NULL);
}

void mx_site_check(struct program *program, struct network_host *host,
                   const struct mx_site_settings *settings, unsigned cpu,
                   struct sim_error_list *errors)
{
    struct lending_host *lending = host->lending;
    if (program->enabled) {
        check_steering(program, host, settings, errors);
        check_mtu(host, errors);
    }
    if (!settings->ioat || !program->enabled)
        return;
    if (network_is_mx(host)) {
        program_mistake(program, "ioat", errors,
                        "false: the firmware of Myrinet Express stores messages where they belong",
                        NULL);
        return;
    }
    if (lending == NULL ||
        copy_engines_find(program->workload->world, lending, &engine_params).n_ioat == 0) {
        program_mistake(
            program, "ioat", errors,
            "hosts of the group `lending` with an ioat.engine each that the driver knows"
            " by its device_id",
            NULL);
        return;
    }
    if (lending->copy_engines == NULL) {
        struct copy_engines *engines = program_zalloc(program, 1, sizeof(*engines));
        *engines = (struct copy_engines){
            .host = lending, .params = &engine_params, .user = program->name, .cpu = cpu
        };
        lending->copy_engines = engines;
    }
    lending->copy_engines->users++;
}

static void timed_out(void *context, uint64_t since_ps, uint64_t now_ps)
{
    struct mx_site_stalls *stalls = context;
    sim_time from_ps = SIM_MAX(stalls->until_ps, since_ps);
    for (const struct mx_site *site = stalls->first; site != NULL; site = site->next) {
        struct openmx_stats stats;
        openmx_stats_get(site->openmx, &stats);
        from_ps = SIM_MAX(from_ps, stats.reply_ps);
    }
    stalls->time_outs++;
    /* CPUs may be a little ahead of each other. */
    stalls->sum_ps += now_ps - SIM_MIN(now_ps, from_ps);
    stalls->until_ps = SIM_MAX(stalls->until_ps, now_ps);
}

static bool open_openmx(struct mx_site *site)
{
    struct openmx_options options = openmx_options_default;
    struct dma_core *dma = NULL;
    options.ioat = site->settings->ioat;
    options.steer = (enum openmx_steer)site->settings->steering;
    options.steer_cpu = site->settings->steering_cpu;
    options.timed_out = timed_out;
    options.timed_out_context = site->stalls;
    if (site->settings->ioat) {
        site->engines = site->host->lending->copy_engines;
        dma = copy_engines_open(site->engines);
    }
    site->openmx = openmx_new(site->host->net, site->host->dev, dma, &options);
    if (site->openmx == NULL) {
        program_fail(site->program, "Open-MX does not attach to %s of the host \"%s\"",
                     site->host->dev->name, site->host->name);
        return false;
    }
    site->board = openmx_board(site->openmx);
    site->next = site->stalls->first;
    site->stalls->first = site;
    return true;
}

struct mx_site *mx_site_new(struct program *program, struct network_host *host,
                            const struct mx_site_settings *settings, struct mx_site_stalls *stalls)
{
    struct mx_site *site = sim_zalloc(1, sizeof(*site));
    site->program = program;
    site->host = host;
    site->settings = settings;
    site->stalls = stalls;
    site->board = host->board;
    if (site->board != NULL || open_openmx(site))
        return site;
    mx_site_free(site);
    return NULL;
}

void mx_site_free(struct mx_site *site)
{
    if (site->openmx != NULL) {
        struct mx_site **link = &site->stalls->first;
        while (*link != NULL && *link != site)
            link = &(*link)->next;
        if (*link != NULL)
            *link = site->next;
        openmx_free(site->openmx);
    }
    if (site->engines != NULL)
        copy_engines_close(site->engines);
    free(site);
}

struct mx_endpoint *mx_site_endpoint(struct mx_site *site, unsigned id, uint32_t key)
{
    struct mx_options options = mx_options_default;
    struct mx_endpoint *ep = NULL;
    options.bind = site->settings->bind;
    const int error = mx_open(site->board, (uint8_t)id, key, &options, &ep);
    if (error == 0)
        return ep;
    program_fail(site->program, "endpoint %u of the host \"%s\" does not open: %d", id,
                 site->host->name, error);
    return NULL;
}

struct mx_site_losses mx_site_losses(const struct mx_site *site)
{
    struct openmx_stats stats = { 0 };
    if (site->openmx != NULL)
        openmx_stats_get(site->openmx, &stats);
    return (struct mx_site_losses){ stats.full, stats.blocks_again };
}

uint64_t mx_site_nic_id(const struct mx_site *site)
{
    return site->board->nic_id;
}
