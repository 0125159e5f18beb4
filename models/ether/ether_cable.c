/* The wire of ether.c as a kind of cable. */
#include <stdio.h>

#include "models/ether/ether.h"

static void *join(const struct cable_plan *plan, struct sim_error_list *errors)
{
    struct ether_port *from = plan->port[0];

    return ether_wire_new(from->model->sim, plan->name, plan->params, from, plan->port[1],
                          plan->file, plan->line, errors);
}

static void wire_free(void *wire)
{
    ether_wire_free(wire);
}

static void *stats_of(void *port)
{
    return ether_port_stats(port);
}

static void describe(const void *port, char *text, size_t bytes)
{
    snprintf(text, bytes, "%g Gbit/s", ether_port_rate_gbit_s(port));
}

static bool check_idle(struct sim *sim, void *const *ports, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct ether_port *port = ports[i];
        if (ether_port_in_flight(port) != 0) {
            sim_fail(sim, "%llu Ethernet frames sent by %s are still on the wire",
                     (unsigned long long)ether_port_in_flight(port), port->name);
            return false;
        }
    }
    if (ether_frames_live(sim) != 0)
        sim_fail(sim, "%llu Ethernet frames are still held by a device",
                 (unsigned long long)ether_frames_live(sim));
    return ether_frames_live(sim) == 0;
}

const struct cable_kind ether_cable = {
    .name = "Ethernet",
    .type = "ethernet",
    .help = "a cable between Ethernet ports: settings of `cables`",
    .suffix = 'e',
    .port_bytes = sizeof(struct ether_port),
    .params = ether_wire_params_table,
    .params_bytes = sizeof(struct ether_wire_params),
    .latency_offset = offsetof(struct ether_wire_params, latency_ps),
    .join = join,
    .free = wire_free,
    .stats = ether_stats_table,
    .port_stats = stats_of,
    .describe = describe,
    .check_idle = check_idle,
};
