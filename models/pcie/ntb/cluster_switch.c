/*
 * Models: a switch between bridges: requests go by the node in their address, completions by the
 *   node of their requester, through a table of routes; a table of requesters with a limited number
 *   of entries, taken by software or by the first request of a device that it passes on, and given
 *   back by software; multicast writes, copied to every port that has subscribed to the group but
 *   the one they came in by; registers that any host can reach through the fabric, for which this
 *   switch needs no entry; TLPs above Max_Payload_Size, which are malformed; cables that can be
 *   pulled.
 * Does not model: one table of requesters per port, partitions, more than one route to a node,
 *   loops, overlays (the bridge at the end has one).
 * Timing: that of the crossbar.
 * Sources: docs/models/ntb.md; docs/sources.md#ntb; PCI Express Base 3.1, 6.14 (multicast).
 */
#include "models/pcie/ntb/cluster_switch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/pcie/link/tlp_trace.h"

#define SOURCE CROSSBAR_SOURCE

static const struct param_desc cluster_params[] = {
    CROSSBAR_PARAMS(struct cluster_switch, chip, 170,
                    "first byte in to first byte out, egress idle (PM8536: 170 ns)"),
    PARAM("ports", PARAM_U32, struct cluster_switch, n_ports, 12, 2, CROSSBAR_PORTS_MAX,
          PROV_DATASHEET, SOURCE, "number of ports"),
    PARAM("lanes", PARAM_U32, struct cluster_switch, lanes, 8, 1, 32, PROV_DATASHEET, SOURCE,
          "width of each; links may be narrower"),
    PARAM("requesters", PARAM_U32, struct cluster_switch, n_requesters, 512, 1, 65535,
          PROV_ESTIMATE, SOURCE, "devices and CPUs whose requests it can pass at a time"),
    PARAM("node", PARAM_U32, struct cluster_switch, node, 0, 0, NTB_NODE_MAX, PROV_NONE, "",
          "its number on the fabric; 0: the lowest that is free, after those of bridges"),
    { .type = PARAM_END },
};

#define CLUSTER_STAT(FIELD, HELP) \
    STAT(#FIELD, STAT_COUNTER, struct cluster_switch, FIELD, "1", 0, HELP)

static const struct stat_desc cluster_stats[] = {
    STAT("tlps", STAT_COUNTER, struct cluster_switch, xbar.tlps, "1", 0, "TLPs forwarded"),
    CLUSTER_STAT(unroutable, "requests for a node to which there is no route, refused"),
    CLUSTER_STAT(unexpected_completions, "completions for such a node, dropped"),
    CLUSTER_STAT(unsupported, "requests that it has no answer for"),
    CLUSTER_STAT(oversized, "TLPs dropped: more payload than the chip supports"),
    CLUSTER_STAT(table_full, "requests of a requester for which there was no entry, refused"),
    STAT("lost", STAT_COUNTER, struct cluster_switch, xbar.lost, "1", 0,
         "TLPs dropped or refused because a cable was pulled"),
    CLUSTER_STAT(multicast_in, "multicast writes that came in"),
    CLUSTER_STAT(multicast_copies, "copies of these that went out"),
    CLUSTER_STAT(multicast_blocked, "multicast writes without a group, blocked or unsubscribed"),
    { .kind = STAT_END },
};

/* ---- Tables ---------------------------------------------------------------------------------- */

/* The device has an entry, or gets one. */
static bool admit_requester(struct cluster_switch *sw, const struct tlp *tlp)
{
    uint32_t node = (uint32_t)tlp->domain << 8 | tlp->requester_id >> 8;
    uint32_t bit = UINT32_C(1) << (tlp->requester_id >> NTB_INCOMING_DEVICE_SHIFT & 31u);

    if (node >= sw->n_nodes)
        return false;
    if (SIM_LIKELY(sw->requester[node] & bit))
        return true;
    if (sw->n_entries >= sw->n_requesters)
        return false;
    sw->requester[node] |= bit;
    sw->n_entries++;
    return true;
}

static void set_requesters(struct cluster_switch *sw, uint32_t node, uint32_t devices)
{
    uint32_t others = sw->n_entries - (uint32_t)__builtin_popcount(sw->requester[node]);

    if (others + (uint32_t)__builtin_popcount(devices) > sw->n_requesters)
        return; /* as many as there are: the write has no effect */
    sw->requester[node] = devices;
    sw->n_entries = others + (uint32_t)__builtin_popcount(devices);
}

/* ---- Registers ------------------------------------------------------------------------------- */

static uint64_t live_ports(const struct model *model)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < model->n_ports; i++)
        if (pcie_port_connected(&model->ports[i]) && !model->ports[i].down)
            mask |= UINT64_C(1) << i;
    return mask;
}

/* The 8-byte register of a port that the offset lies in, or NULL. */
static uint64_t *port_register(struct model *model, uint64_t offset)
{
    struct cluster_switch *sw = model->state;
    uint64_t bytes = 8 * (uint64_t)model->n_ports;

    if (offset - CLUSTER_MC_RECEIVE < bytes)
        return &sw->mc_receive[(offset - CLUSTER_MC_RECEIVE) / 8];
    if (offset - CLUSTER_MC_BLOCK < bytes)
        return &sw->mc_block[(offset - CLUSTER_MC_BLOCK) / 8];
    return NULL;
}

static uint32_t neighbour_at(struct model *model, uint64_t port)
{
    const struct cluster_switch *sw = model->state;
    const uint32_t mps = (uint32_t)__builtin_ctz(sw->chip.mps_bytes_max / 128)
                         << CLUSTER_NEIGHBOUR_MPS_SHIFT;
    return live_ports(model) >> port & 1 ? sw->neighbour[port] | mps : 0;
}

static uint32_t register_read(struct model *model, uint64_t offset)
{
    struct cluster_switch *sw = model->state;
    const uint64_t *port = port_register(model, offset);
    uint64_t node = (offset - CLUSTER_ROUTE) / 4, holder = (offset - CLUSTER_REQUESTER) / 4;

    if (port != NULL)
        return (uint32_t)(*port >> (offset & 4) * 8);
    if (offset - CLUSTER_NEIGHBOUR < 4 * (uint64_t)model->n_ports)
        return neighbour_at(model, (offset - CLUSTER_NEIGHBOUR) / 4);
    if (node < sw->n_nodes)
        return sw->route[node] == CLUSTER_NO_ROUTE ? 0 : CLUSTER_ROUTE_VALID | sw->route[node];
    if (holder < sw->n_nodes)
        return sw->requester[holder];
    switch (offset) {
    case CLUSTER_ID: return CLUSTER_SWITCH_ID;
    case CLUSTER_NODE: return sw->node;
    case CLUSTER_PORTS: return model->n_ports;
    case CLUSTER_REQUESTERS: return sw->n_entries | sw->n_requesters << 16;
    case CLUSTER_LINKS: return (uint32_t)live_ports(model);
    case CLUSTER_LINKS + 4: return (uint32_t)(live_ports(model) >> 32);
    case CLUSTER_MC_CONTROL: return sw->mc_control;
    default: return 0;
    }
}

static void register_write(struct model *model, uint64_t offset, uint32_t value)
{
    struct cluster_switch *sw = model->state;
    uint64_t *port = port_register(model, offset);
    uint64_t node = (offset - CLUSTER_ROUTE) / 4, holder = (offset - CLUSTER_REQUESTER) / 4;

    if (port != NULL)
        memcpy((uint8_t *)port + (offset & 4), &value, 4);
    else if (node < sw->n_nodes)
        sw->route[node] = (value & CLUSTER_ROUTE_VALID) && (value & 0xff) < model->n_ports
                              ? (uint8_t)value
                              : CLUSTER_NO_ROUTE;
    else if (holder < sw->n_nodes)
        set_requesters(sw, (uint32_t)holder, value);
    else if (offset == CLUSTER_MC_CONTROL)
        sw->mc_control = value;
}

/* A request for the switch itself; uses the TLP up. */
static void access_registers(struct model *model, uint32_t ingress, struct tlp *tlp)
{
    struct cluster_switch *sw = model->state;
    uint64_t offset = tlp->address & NTB_FABRIC_ADDRESS_MASK;

    if (!(tlp->address & NTB_FABRIC_REGISTERS) || tlp->address % 4 != 0 ||
        (tlp->length_bytes != 4 && tlp->length_bytes != 8)) {
        sw->unsupported++;
        crossbar_refuse(&sw->xbar, ingress, tlp);
        return;
    }
    if (tlp->type == TLP_MWR) {
        for (unsigned i = 0; i < tlp->length_bytes && !tlp->poisoned; i += 4) {
            uint32_t value;
            memcpy(&value, &tlp->payload[i], 4);
            register_write(model, offset + i, value);
        }
        crossbar_drop(&sw->xbar, ingress, tlp);
        return;
    }
    struct tlp *cpl = tlp_completion(model->pcie, tlp, (uint16_t)(sw->node << 8), TLP_SC);
    tlp_payload_new(model->pcie, cpl);
    for (unsigned i = 0; i < tlp->length_bytes; i += 4) {
        uint32_t value = register_read(model, offset + i);
        memcpy(&cpl->payload[i], &value, 4);
    }
    crossbar_answer(&sw->xbar, ingress, tlp, cpl);
}

/* False: there is no entry for its requester, and the request is refused. Only what is passed on
 * takes one. */
static bool has_entry(struct cluster_switch *sw, uint32_t ingress, struct tlp *tlp)
{
    if (SIM_LIKELY(admit_requester(sw, tlp)))
        return true;
    sw->table_full++;
    crossbar_refuse(&sw->xbar, ingress, tlp);
    return false;
}

/* ---- Multicast ------------------------------------------------------------------------------- */

static void multicast(struct model *model, uint32_t ingress, struct tlp *tlp)
{
    struct cluster_switch *sw = model->state;
    unsigned position = sw->mc_control >> NTB_MC_POSITION_SHIFT & NTB_MC_POSITION_MASK;
    uint64_t group = (tlp->address & ((UINT64_C(1) << NTB_NODE_SHIFT) - 1)) >> position;
    uint64_t address[CROSSBAR_PORTS_MAX], mask = 0;

    sw->multicast_in++;
    if (tlp->type == TLP_MWR && sw->mc_control & NTB_MC_ENABLE && position >= NTB_MC_LOG2_MIN &&
        group <= (sw->mc_control & NTB_MC_LAST_GROUP_MASK) && !(sw->mc_block[ingress] >> group & 1))
        for (uint32_t i = 0; i < model->n_ports; i++)
            if (i != ingress && sw->mc_receive[i] >> group & 1 &&
                pcie_port_connected(&model->ports[i]) && !model->ports[i].down) {
                mask |= UINT64_C(1) << i;
                address[i] = tlp->address;
            }
    if (mask == 0) {
        sw->multicast_blocked++;
        crossbar_refuse(&sw->xbar, ingress, tlp);
        return;
    }
    if (!has_entry(sw, ingress, tlp))
        return;
    sw->multicast_copies += (uint64_t)__builtin_popcountll(mask);
    crossbar_multicast(&sw->xbar, ingress, tlp, mask, address);
}

/* ---- What comes in --------------------------------------------------------------------------- */

/* The port towards the node, but not back where the TLP came from; CLUSTER_NO_ROUTE if none. */
static uint32_t port_towards(const struct model *model, uint32_t ingress, uint64_t node)
{
    const struct cluster_switch *sw = model->state;
    uint32_t port = node < sw->n_nodes ? sw->route[node] : CLUSTER_NO_ROUTE;

    return port != CLUSTER_NO_ROUTE && port != ingress && pcie_port_connected(&model->ports[port])
               ? port
               : CLUSTER_NO_ROUTE;
}

/* struct crossbar's explain(). */
static void explain(const struct model *model, uint32_t ingress, uint32_t egress,
                    const struct tlp *tlp, sim_time at_ps)
{
    const struct cluster_switch *sw = model->state;
    uint32_t holder = (uint32_t)tlp->domain << 8 | tlp->requester_id >> 8;
    uint32_t node = tlp_class_of(tlp) == TLP_COMPLETION
                        ? holder
                        : (uint32_t)(tlp->address >> NTB_NODE_SHIFT);
    struct tlp_trace_record *record = tlp_trace_add(tlp->stamp, TRACE_CLUSTER, model->name, at_ps);

    tlp_trace_port(record->from, &model->ports[ingress]);
    tlp_trace_port(record->to, &model->ports[egress]);
    record->cluster.node = node;
    record->cluster.own_node = sw->node;
    record->cluster.route_entry = node < sw->n_nodes && sw->route[node] != CLUSTER_NO_ROUTE
                                      ? CLUSTER_ROUTE_VALID | sw->route[node]
                                      : 0;
    record->cluster.requester = (uint32_t)tlp->domain << 16 | tlp->requester_id;
    record->cluster.holders = holder < sw->n_nodes ? sw->requester[holder] : 0;
    record->cluster.n_entries = sw->n_entries;
    record->cluster.n_entries_max = sw->n_requesters;
}

static void request(struct model *model, uint32_t ingress, struct tlp *tlp)
{
    struct cluster_switch *sw = model->state;
    uint64_t node = tlp->address >> NTB_NODE_SHIFT;

    if (node == NTB_NODE_PARTNER || node == sw->node) { /* answered by the port it came in by */
        access_registers(model, ingress, tlp);
        return;
    }
    if (node == NTB_NODE_MULTICAST) {
        multicast(model, ingress, tlp);
        return;
    }
    uint32_t egress = port_towards(model, ingress, node);
    if (egress == CLUSTER_NO_ROUTE) {
        sw->unroutable++;
        crossbar_refuse(&sw->xbar, ingress, tlp);
        return;
    }
    if (SIM_LIKELY(!model->ports[egress].down) && !has_entry(sw, ingress, tlp))
        return;
    crossbar_forward(&sw->xbar, ingress, egress, tlp);
}

static void cluster_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct cluster_switch *sw = model->state;
    uint32_t egress;

    if (SIM_UNLIKELY(tlp->length_bytes > sw->chip.mps_bytes_max && tlp_has_data(tlp))) {
        sw->oversized++; /* a malformed TLP (PCIe Base 3.1, 2.2.2) */
        crossbar_drop(&sw->xbar, port, tlp);
        return;
    }
    switch ((enum tlp_type)tlp->type) {
    case TLP_CPL:
    case TLP_CPLD:
        egress = port_towards(model, port, (uint32_t)tlp->domain << 8 | tlp->requester_id >> 8);
        if (egress != CLUSTER_NO_ROUTE) {
            crossbar_forward(&sw->xbar, port, egress, tlp);
        } else {
            sw->unexpected_completions++;
            crossbar_drop(&sw->xbar, port, tlp);
        }
        break;
    case TLP_MRD:
    case TLP_MWR: request(model, port, tlp); break;
    default:
        sw->unsupported++;
        crossbar_refuse(&sw->xbar, port, tlp);
        break;
    }
}

static void cluster_link_change(struct model *model, uint32_t port)
{
    if (model->ports[port].down)
        crossbar_flush(&((struct cluster_switch *)model->state)->xbar, port);
}

static void cluster_credit(struct model *model, uint32_t port)
{
    crossbar_credit(&((struct cluster_switch *)model->state)->xbar, port);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void cluster_init(struct model *model, struct sim_error_list *errors)
{
    struct cluster_switch *sw = model->state;

    if (!crossbar_check(model, &sw->chip, sw->lanes, errors))
        return;
    model->n_ports = sw->n_ports;
    model->ports = sim_zalloc(sw->n_ports, sizeof(*model->ports));
    sw->name = sim_zalloc(sw->n_ports, sizeof(*sw->name));
    for (uint32_t i = 0; i < sw->n_ports; i++) {
        snprintf(sw->name[i], sizeof(sw->name[i]), "%.40s.p%u", model->name, i);
        crossbar_port_init(model, i, &sw->chip, sw->lanes, sw->name[i]);
        model->ports[i].fabric = true;
    }
    crossbar_init(&sw->xbar, model, sw->chip.latency_ps, false);
    sw->xbar.explain = explain;
}

static void cluster_release(struct model *model)
{
    struct cluster_switch *sw = model->state;

    crossbar_release(&sw->xbar);
    free(sw->name);
    free(sw->route);
    free(sw->requester);
}

void cluster_switch_set_node(struct model *model, uint32_t node, uint32_t n_nodes)
{
    struct cluster_switch *sw = model->state;

    free(sw->route);
    free(sw->requester);
    sw->node = node;
    sw->n_nodes = n_nodes;
    sw->route = sim_zalloc(n_nodes, sizeof(*sw->route));
    sw->requester = sim_zalloc(n_nodes, sizeof(*sw->requester));
    memset(sw->route, CLUSTER_NO_ROUTE, n_nodes);
}

void cluster_switch_set_route(struct model *model, uint32_t node, uint32_t port)
{
    ((struct cluster_switch *)model->state)->route[node] = (uint8_t)port;
}

void cluster_switch_set_neighbour(struct model *model, uint32_t port, uint32_t neighbour)
{
    ((struct cluster_switch *)model->state)->neighbour[port] = neighbour;
}

uint32_t cluster_switch_route(const struct model *model, uint32_t node)
{
    const struct cluster_switch *sw = model->state;
    return node < sw->n_nodes ? sw->route[node] : CLUSTER_NO_ROUTE;
}

uint32_t cluster_switch_node(const struct model *model)
{
    return ((const struct cluster_switch *)model->state)->node;
}

const struct model_ops pcie_cluster_switch_ops = {
    .type = "pcie.cluster_switch",
    .help = "switch between non-transparent bridges: every port is a cable",
    .state_bytes = sizeof(struct cluster_switch),
    .params = cluster_params,
    .stats = cluster_stats,
    .init = cluster_init,
    .receive = cluster_receive,
    .credit = cluster_credit,
    .link_change = cluster_link_change,
    .release = cluster_release,
};
