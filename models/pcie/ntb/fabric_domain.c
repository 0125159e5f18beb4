/*
 * Models: numbers and routes as a fabric's firmware has them in its EEPROMs; software may change
 *   routes later, through the switches' registers.
 * Does not model: discovery by messages, partitions, several routes to one node.
 * Timing: none; it happens before time starts.
 * Sources: docs/models/ntb.md.
 */
#include "models/pcie/ntb/fabric_domain.h"

#include <stdlib.h>

#include "models/pcie/ntb/cluster_switch.h"
#include "models/pcie/ntb/ntb.h"

struct domain {
    struct model *const *device;
    unsigned n_devices;
    struct model **switches; /* those of device[] */
    unsigned n_switches;
    bool *used; /* by number */
    uint32_t n_nodes;
    struct pcie_port **queue; /* ports of switches, by which a TLP from the node would come in */
};

static bool is_switch(const struct model *model)
{
    return model->ops == &pcie_cluster_switch_ops;
}

static bool is_node(const struct model *model)
{
    return model->ops == &pcie_ntb_ops || is_switch(model);
}

static uint32_t node_of(const struct model *model)
{
    return is_switch(model) ? cluster_switch_node(model) : ntb_node(model);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static bool take_given(struct domain *domain, struct sim_error_list *errors)
{
    bool ok = true;
    for (unsigned i = 0; i < domain->n_devices; i++) {
        struct model *model = domain->device[i];
        uint32_t node = is_node(model) ? node_of(model) : 0;
        if (node == 0)
            continue;
        if (domain->used[node]) {
            model_mistake(model, errors, ": expected a `node` that no other bridge or switch has");
            ok = false;
        }
        domain->used[node] = true;
        domain->n_nodes = SIM_MAX(domain->n_nodes, node + 1);
    }
    return ok;
}

static bool number(struct domain *domain, struct model *model, uint32_t *next)
{
    while (*next <= NTB_NODE_MAX && domain->used[*next])
        ++*next;
    if (*next > NTB_NODE_MAX)
        return false;
    domain->used[*next] = true;
    domain->n_nodes = SIM_MAX(domain->n_nodes, *next + 1);
    if (is_switch(model))
        cluster_switch_set_node(model, *next, 0);
    else
        ntb_set_node(model, *next);
    return true;
}

static bool number_all(struct domain *domain, struct sim_error_list *errors)
{
    uint32_t next = 1;
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < domain->n_devices; i++) {
            struct model *model = domain->device[i];
            if (!is_node(model) || is_switch(model) != (pass == 1) || node_of(model) != 0)
                continue;
            if (!number(domain, model, &next)) {
                model_mistake(model, errors, ": too many nodes on the fabric");
                return false;
            }
        }
    return true;
}

/* ---- Routes ---------------------------------------------------------------------------------- */

/* The port at the other end of the cable if a switch is there that does not know the node yet. */
static struct pcie_port *unknowing_peer(struct pcie_port *port, uint32_t node)
{
    if (!pcie_port_connected(port))
        return NULL;
    struct pcie_port *peer = pcie_port_peer(port);
    return is_switch(peer->model) && cluster_switch_node(peer->model) != node &&
                   cluster_switch_route(peer->model, node) == CLUSTER_NO_ROUTE
               ? peer
               : NULL;
}

/* Breadth first from the node: each switch on the way notes the port it was reached by. */
static void route_to(struct domain *domain, struct model *target)
{
    uint32_t node = node_of(target), first = 0, last = 0;
    struct model *from = target;
    uint32_t except = UINT32_MAX;

    for (;;) {
        for (uint32_t p = is_switch(from) ? 0 : NTB_CABLE; p < from->n_ports; p++) {
            struct pcie_port *peer = p != except ? unknowing_peer(&from->ports[p], node) : NULL;
            if (peer == NULL)
                continue;
            cluster_switch_set_route(peer->model, node, peer->idx);
            domain->queue[last++] = peer;
        }
        if (first == last)
            return;
        from = domain->queue[first]->model;
        except = domain->queue[first++]->idx;
    }
}

/* The switch that the node's only cable leads to, or NULL. */
static struct pcie_port *only_switch(const struct model *node)
{
    struct pcie_port *only = NULL;
    if (is_switch(node))
        return NULL;
    for (uint32_t p = NTB_CABLE; p < node->n_ports; p++) {
        if (!pcie_port_connected(&node->ports[p]))
            continue;
        if (only != NULL)
            return NULL;
        only = pcie_port_peer(&node->ports[p]);
    }
    return only != NULL && is_switch(only->model) ? only : NULL;
}

/* A node on one cable is reached as the switch at its other end is: what route_to() would find.
 * Those of switches are known. */
static void route_as(struct domain *domain, struct model *target, const struct pcie_port *port)
{
    const uint32_t node = node_of(target), at = node_of(port->model);
    for (unsigned i = 0; i < domain->n_switches; i++) {
        struct model *model = domain->switches[i];
        const uint32_t route = model == port->model ? port->idx : cluster_switch_route(model, at);
        if (route != CLUSTER_NO_ROUTE)
            cluster_switch_set_route(model, node, route);
    }
}

static void route_all(struct domain *domain)
{
    for (unsigned i = 0; i < domain->n_devices; i++)
        if (is_node(domain->device[i]) && only_switch(domain->device[i]) == NULL)
            route_to(domain, domain->device[i]);
    for (unsigned i = 0; i < domain->n_devices; i++) {
        const struct pcie_port *port = is_node(domain->device[i]) ? only_switch(domain->device[i])
                                                                  : NULL;
        if (port != NULL)
            route_as(domain, domain->device[i], port);
    }
}

/* Each port of a switch learns who is at the other end. */
static void meet_neighbours(struct model *model)
{
    for (uint32_t p = 0; p < model->n_ports; p++) {
        if (!pcie_port_connected(&model->ports[p]))
            continue;
        const struct model *peer = pcie_port_peer(&model->ports[p])->model;
        if (is_node(peer))
            cluster_switch_set_neighbour(model, p,
                                         CLUSTER_NEIGHBOUR_VALID | node_of(peer) |
                                             (is_switch(peer) ? CLUSTER_NEIGHBOUR_SWITCH : 0));
    }
}

void fabric_domain_setup(struct model *const *device, unsigned n_devices,
                         struct sim_error_list *errors)
{
    struct domain domain = { .device = device, .n_devices = n_devices };
    bool any = false;

    for (unsigned i = 0; i < n_devices; i++)
        any = any || is_node(device[i]);
    if (!any)
        return;
    domain.used = sim_zalloc(NTB_NODE_MAX + 1, sizeof(*domain.used));
    domain.queue = sim_zalloc(n_devices, sizeof(*domain.queue));
    domain.switches = sim_zalloc(n_devices, sizeof(*domain.switches));
    if (take_given(&domain, errors) && number_all(&domain, errors)) {
        for (unsigned i = 0; i < n_devices; i++)
            if (is_switch(device[i])) {
                domain.switches[domain.n_switches++] = device[i];
                cluster_switch_set_node(device[i], node_of(device[i]), domain.n_nodes);
                meet_neighbours(device[i]);
            }
        route_all(&domain);
    }
    free(domain.used);
    free(domain.queue);
    free(domain.switches);
}
