/*
 * The cables of a world: a list of { from, to } with the parameters of a PCIe link or of an
 * Ethernet wire, as the ends have it. An end is "HOST.sSOCKET.PORT", "DEVICE.pINDEX" (PCIe) or
 * "DEVICE.eINDEX" (Ethernet).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/ether/ether.h"
#include "models/world/world_internal.h"

/* Propagation in copper, 5 (4.5 to 5.5) ns/m: docs/sources.md#c1, a physical constant for every
 * cable; what cables differ in is their latency_ns. */
#define CABLE_PS_PER_M 5000.0
#define ENDS_MAX       512u

static void list_device_ends(struct world *world, unsigned device, const char **names, unsigned *n)
{
    const struct model *model = world->device[device];
    char index[16];
    for (unsigned p = 0; p < model->n_ports && *n + 1 < ENDS_MAX; p++) {
        snprintf(index, sizeof(index), ".p%u", p);
        names[(*n)++] = world_text(world, world->device_name[device], index);
    }
    for (unsigned p = 0; p < model->n_ether_ports && *n + 1 < ENDS_MAX; p++) {
        snprintf(index, sizeof(index), ".e%u", p);
        names[(*n)++] = world_text(world, world->device_name[device], index);
    }
}

static void list_ends(struct world *world, const char **names)
{
    unsigned n = 0;
    for (unsigned h = 0; h < world->n_hosts; h++) {
        const char *const *ports = host_port_names(world->host[h]);
        if (world_faulty(world, world->host_name[h]))
            continue;
        for (unsigned p = 0; ports != NULL && ports[p] != NULL && n + 1 < ENDS_MAX; p++)
            names[n++] = world_text(world, world_text(world, world->host_name[h], "."), ports[p]);
    }
    for (unsigned d = 0; d < world->n_devices; d++)
        if (!world_faulty(world, world->device_name[d]))
            list_device_ends(world, d, names, &n);
    names[n] = NULL;
}

static struct cable_end device_end(struct model *device, const char *port)
{
    struct cable_end end = { 0 };
    unsigned idx;
    char tail;
    if (sscanf(port, "p%u%c", &idx, &tail) == 1 && idx < device->n_ports)
        end.pcie = &device->ports[idx];
    else if (sscanf(port, "e%u%c", &idx, &tail) == 1 && idx < device->n_ether_ports)
        end.ether = &device->ether_ports[idx];
    return end;
}

/* At a host or device of which nothing is known but that it is faulty. */
static bool is_at_faulty(const struct world *world, const char *text)
{
    const char *dot = strchr(text, '.');
    char name[128];
    if (dot == NULL || (size_t)(dot - text) >= sizeof(name))
        return false;
    snprintf(name, sizeof(name), "%.*s", (int)(dot - text), text);
    return world_faulty(world, name);
}

/* Both NULL: there is no such end. */
static struct cable_end find_end(struct world *world, const char *text)
{
    struct cable_end none = { 0 };
    const char *dot = strchr(text, '.');
    if (dot == NULL || is_at_faulty(world, text))
        return none;
    size_t bytes = (size_t)(dot - text);
    for (unsigned h = 0; h < world->n_hosts; h++)
        if (strlen(world->host_name[h]) == bytes && strncmp(world->host_name[h], text, bytes) == 0)
            return (struct cable_end){ .pcie = host_port(world->host[h], dot + 1) };
    for (unsigned d = 0; d < world->n_devices; d++)
        if (strlen(world->device_name[d]) == bytes &&
            strncmp(world->device_name[d], text, bytes) == 0)
            return device_end(world->device[d], dot + 1);
    return none;
}

struct ether_port *world_ether_port(struct world *world, const char *name)
{
    return find_end(world, name).ether;
}

static bool end_exists(const struct cable_end *end)
{
    return end->pcie != NULL || end->ether != NULL;
}

static struct cable_end cable_end(struct world *world, struct config_node *cable, const char *key,
                                  const char *const *ends, struct sim_error_list *errors)
{
    struct cable_end none = { 0 };
    struct config_node *node = config_get(cable, key);
    if (node == NULL || config_kind(node) != CONFIG_STRING) {
        config_mistake(node != NULL ? node : cable, errors,
                       strcmp(key, "from") == 0 ? "`from`: the port where the cable begins"
                                                : "`to`: the port where the cable ends",
                       NULL);
        return none;
    }
    struct cable_end end = find_end(world, config_string(node));
    if (!end_exists(&end) && !is_at_faulty(world, config_string(node)))
        config_mistake(node, errors, "a port of a host or device", ends);
    return end;
}

struct cable_params {
    double length_m;
};
const struct param_desc world_cable_params[] = {
    PARAM("length_m", PARAM_DOUBLE, struct cable_params, length_m, 0, 0, 1000, PROV_NONE, "",
          "length of the cable, 5 ns/m; 0 for a slot"),
    { .type = PARAM_END },
};

/* Both directions of a cable have statistics, named after the port that sends. */
static void add_end(struct world *world, struct cable_end end, double length_m, const char *name)
{
    end.length_m = length_m;
    world->end[world->n_ends] = end;
    world->end_prefix[world->n_ends++] = world_text(world, name, ".tx.");
}

/* Reads the cable's settings: those of the link or wire into params, and its length. */
static bool read_settings(struct world *world, struct config_node *cable,
                          const struct param_desc *table, void *params, double *length_m,
                          struct sim_error_list *errors)
{
    struct cable_params length = { 0 };
    bool ok = config_read_params(world->config, cable, "cables", table, params, errors);
    ok = config_read_params(world->config, cable, "cables", world_cable_params, &length, errors) &&
         ok;
    *length_m = length.length_m;
    return ok;
}

static sim_time propagation_ps(double length_m)
{
    return (sim_time)(length_m * CABLE_PS_PER_M + 0.5);
}

static void build_wire(struct world *world, struct config_node *cable, const struct cable_end *from,
                       const struct cable_end *to, const char *name, struct sim_error_list *errors)
{
    struct ether_wire_params params = { 0 };
    double length_m;
    if (!read_settings(world, cable, ether_wire_params_table, &params, &length_m, errors))
        return;
    params.latency_ps += propagation_ps(length_m);
    struct ether_wire *wire = ether_wire_new(world->sim, name, &params, from->ether, to->ether,
                                             config_file(cable), config_line(cable), errors);
    if (wire == NULL)
        return;
    world->wire[world->n_wires++] = wire;
    add_end(world, *from, length_m, config_string(config_get(cable, "from")));
    add_end(world, *to, length_m, config_string(config_get(cable, "to")));
}

/* Root ports and downstream ports of switches lead away from the root; those of endpoints, and port
 * 0 of switches, to it. */
static bool leads_to_root(const struct world *world, const struct pcie_port *port)
{
    for (unsigned d = 0; d < world->n_devices; d++)
        if (port->model == world->device[d])
            return port->idx == 0 || !port->model->ops->forwards;
    return false;
}

/* Two ports of the fabric, which have no above and below; else one that leads to the root and one
 * that leads away from it. */
static bool fits_together(const struct world *world, const struct pcie_port *from,
                          const struct pcie_port *to)
{
    if (from->fabric || to->fabric)
        return from->fabric && to->fabric;
    return leads_to_root(world, from) != leads_to_root(world, to);
}

static void build_link(struct world *world, struct config_node *cable, const struct cable_end *from,
                       const struct cable_end *to, const char *name, struct sim_error_list *errors)
{
    struct pcie_link_params *params = sim_zalloc(1, sizeof(*params));
    double length_m;
    bool ok = read_settings(world, cable, pcie_link_params_table, params, &length_m, errors);
    if (from->pcie != NULL && to->pcie != NULL && !fits_together(world, from->pcie, to->pcie)) {
        config_mistake(
            cable, errors,
            "a cable from a root port, or a port p1, p2, ... of a switch, to port p0 of a "
            "switch or a port of another device; or between cable ports of bridges and cluster "
            "switches",
            NULL);
        ok = false;
    }
    params->latency_ps += propagation_ps(length_m);
    if (ok && from->pcie != NULL && to->pcie != NULL &&
        pcie_link_new(world->pcie, name, params, from->pcie, to->pcie, config_file(cable),
                      config_line(cable), errors) != NULL) {
        add_end(world, *from, length_m, config_string(config_get(cable, "from")));
        add_end(world, *to, length_m, config_string(config_get(cable, "to")));
    }
    free(params);
}

static void build_cable(struct world *world, struct config_node *cable, const char *const *ends,
                        struct sim_error_list *errors)
{
    static const char *const others[] = { "from", "to", NULL };
    struct cable_end from = cable_end(world, cable, "from", ends, errors);
    struct cable_end to = cable_end(world, cable, "to", ends, errors);
    config_allow(cable, others);
    if (end_exists(&from) && end_exists(&to) && (from.ether == NULL) != (to.ether == NULL)) {
        config_mistake(cable, errors,
                       "a cable between two PCIe ports, or between two Ethernet ports (e0, ...)",
                       NULL);
        config_mark_read(cable);
        return;
    }
    const char *name = "cable";
    if (end_exists(&from) && end_exists(&to))
        name = world_text(world, world_text(world, config_string(config_get(cable, "from")), "-"),
                          config_string(config_get(cable, "to")));
    if (from.ether != NULL && to.ether != NULL)
        build_wire(world, cable, &from, &to, name, errors);
    else if (from.ether != NULL || to.ether != NULL)
        config_mark_read(cable); /* one end is wrong; the settings are a wire's */
    else
        build_link(world, cable, &from, &to, name, errors);
}

void world_build_cables(struct world *world, struct config_node *cables,
                        struct sim_error_list *errors)
{
    const char *ends[ENDS_MAX];
    if (cables == NULL)
        return;
    list_ends(world, ends);
    world->end = sim_zalloc(2 * (size_t)config_count(cables), sizeof(*world->end));
    world->end_prefix = sim_zalloc(2 * (size_t)config_count(cables), sizeof(char *));
    world->wire = sim_zalloc(config_count(cables), sizeof(*world->wire));
    for (unsigned i = 0; i < config_count(cables); i++) {
        struct config_node *cable = config_child(cables, i);
        if (config_kind(cable) == CONFIG_GROUP)
            build_cable(world, cable, ends, errors);
        else
            config_mistake(cable, errors, "a group { from, to }", NULL);
    }
}

bool world_cable_at(const struct world *world, unsigned i, struct world_cable *cable)
{
    if (2 * i + 1 >= world->n_ends)
        return false;
    const struct cable_end *from = &world->end[2 * i], *to = from + 1;
    *cable = (struct world_cable){ { from->pcie, to->pcie },
                                   { from->ether, to->ether },
                                   from->length_m };
    return true;
}
