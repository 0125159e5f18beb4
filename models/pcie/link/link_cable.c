/* The link of link.c as a kind of cable. Its context owns it and checks that it is idle. */
#include <stdio.h>

#include "models/pcie/link/port.h"

static void *port_of(const struct model *model, uint32_t idx)
{
    return idx < model->n_ports ? &model->ports[idx] : NULL;
}

/* Root ports and downstream ports of switches lead away from the root; those of endpoints, and port
 * 0 of switches, to it. */
static bool leads_to_root(const struct pcie_port *port)
{
    const struct model_ops *ops = port->model->ops;

    return !ops->names_ports && (port->idx == 0 || !ops->forwards);
}

/* Two ports of the fabric, which have no above and below; else one that leads to the root and one
 * that leads away from it. */
static const char *mismatch(const void *a, const void *b)
{
    const struct pcie_port *from = a, *to = b;
    const bool fits = from->fabric || to->fabric ? from->fabric && to->fabric
                                                 : leads_to_root(from) != leads_to_root(to);

    return fits ? NULL
                : "a cable from a root port, or a port p1, p2, ... of a switch, to port p0 of a "
                  "switch or a port of another device; or between cable ports of bridges and "
                  "cluster switches";
}

static void *join(const struct cable_plan *plan, struct sim_error_list *errors)
{
    struct pcie_port *from = plan->port[0];

    return pcie_link_new(from->model->pcie, plan->name, plan->params, from, plan->port[1],
                         plan->file, plan->line, errors);
}

static void *stats_of(void *port)
{
    return pcie_port_stats(port);
}

static void describe(const void *port, char *text, size_t bytes)
{
    snprintf(text, bytes, "Gen%u x%u", pcie_port_generation(port), pcie_port_lanes(port));
}

/* The width, then the generation, if the ports differ and the scenario says neither. */
static bool settled(const void *port, unsigned i, struct cable_setting *setting)
{
    const struct pcie_port *a = port, *b = pcie_port_peer(port);
    const bool narrowed = a->max_lanes != b->max_lanes &&
                          pcie_port_lanes(a) <= SIM_MIN(a->max_lanes, b->max_lanes);
    const bool slowed = a->max_generation != b->max_generation;
    char name[PCIE_PORT_NAME_BYTES];

    if (narrowed && i-- == 0) {
        const struct pcie_port *more = a->max_lanes > b->max_lanes ? a : b;
        setting->key = "lanes";
        setting->value = pcie_port_lanes(a);
        snprintf(setting->why, sizeof(setting->why), "trained down, %s has %u",
                 pcie_port_cable_name(more, name), more->max_lanes);
        return true;
    }
    if (!slowed || i != 0)
        return false;
    const struct pcie_port *more = a->max_generation > b->max_generation ? a : b;
    setting->key = "generation";
    setting->value = pcie_port_generation(a);
    snprintf(setting->why, sizeof(setting->why), "trained down, %s has %u",
             pcie_port_cable_name(more, name), more->max_generation);
    return true;
}

const struct cable_kind pcie_cable = {
    .name = "PCIe",
    .type = "link",
    .help = "a cable's link: settings of `cables`",
    .suffix = 'p',
    .tree = true,
    .port = port_of,
    .params = pcie_link_params_table,
    .params_bytes = sizeof(struct pcie_link_params),
    .latency_offset = offsetof(struct pcie_link_params, latency_ps),
    .mismatch = mismatch,
    .join = join,
    .stats = pcie_link_stats_table,
    .port_stats = stats_of,
    .describe = describe,
    .settled = settled,
};
