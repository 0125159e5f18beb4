/*
 * Models: a PCIe switch: one upstream port (0), n downstream ports, each a bridge with its own
 *   configuration space; the crossbar between them (crossbar.c).
 * Does not model: errors reported to the root, hot plug; what crossbar.c does not.
 * Timing: that of the crossbar.
 * Sources: docs/sources.md#c1; PCI Express Base 3.1, 2.4 and 7.3.
 */
#include "models/pcie/switch/switch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hw/pci_regs.h"

static const struct param_desc switch_params[] = {
    PARAM("downstream_ports", PARAM_U32, struct pcie_switch, n_downstream, 2, 1, 32, PROV_NONE, "",
          "number of downstream ports; each is a device on the internal bus"),
    CROSSBAR_PARAMS(struct pcie_switch, chip, 110,
                    "first byte in to first byte out, egress idle (PEX8733: 132 ns at most)"),
    PARAM("lanes", PARAM_U32, struct pcie_switch, lanes, 16, 1, 32, PROV_DATASHEET, CROSSBAR_SOURCE,
          "width of the upstream port"),
    PARAM("downstream_lanes", PARAM_U32, struct pcie_switch, downstream_lanes, 8, 1, 32,
          PROV_DATASHEET, CROSSBAR_SOURCE, "width of each downstream port"),
    PARAM("multicast_groups", PARAM_U32, struct pcie_switch, n_groups, 64, 0, 64, PROV_ESTIMATE,
          CROSSBAR_SOURCE, "groups of its multicast capability; 0: it has none"),
    { .type = PARAM_END },
};

#define SWITCH_STAT(FIELD, HELP) STAT(#FIELD, STAT_COUNTER, struct pcie_switch, FIELD, "1", 0, HELP)
static const struct stat_desc switch_stats[] = {
    STAT("tlps", STAT_COUNTER, struct pcie_switch, xbar.tlps, "1", 0, "TLPs forwarded"),
    SWITCH_STAT(peer_to_peer, "memory requests sent straight to another downstream port"),
    SWITCH_STAT(redirected, "peer-to-peer requests sent up because of ACS"),
    SWITCH_STAT(unsupported_requests,
                "requests without a destination: answered with UR, or dropped if posted"),
    SWITCH_STAT(unexpected_completions, "completions without a requester, dropped"),
    SWITCH_STAT(multicast_in, "writes to multicast groups that came in"),
    SWITCH_STAT(multicast_copies, "copies of these that went out"),
    SWITCH_STAT(multicast_blocked, "of these, those that were blocked, or that no port receives"),
    { .kind = STAT_END },
};

/* A refused TLP is answered, or dropped, and counted. */
static void refuse(struct model *model, uint32_t ingress, struct tlp *tlp)
{
    struct pcie_switch *sw = model->state;

    if (tlp_class_of(tlp) == TLP_COMPLETION)
        sw->unexpected_completions++;
    else
        sw->unsupported_requests++;
    crossbar_refuse(&sw->xbar, ingress, tlp);
}

/* A request to one of the bridges, which may change the maximum payload size of its port. */
static void configure(struct model *model, uint32_t ingress, uint32_t target, struct tlp *tlp)
{
    struct pcie_switch *sw = model->state;
    struct cfg_space *cfg = sw->port[target].cfg;
    struct tlp *cpl = cfg_answer(cfg, model->pcie, tlp);

    model->ports[target].mps_bytes = cfg_mps_bytes(cfg);
    crossbar_answer(&sw->xbar, ingress, tlp, cpl);
}

static void multicast(struct model *model, uint32_t ingress, struct tlp *tlp)
{
    struct pcie_switch *sw = model->state;
    uint64_t address[CROSSBAR_PORTS_MAX];
    uint64_t egress_mask = switch_multicast(model, ingress, tlp, address);

    sw->multicast_in++;
    if (egress_mask == 0) {
        sw->multicast_blocked++;
        crossbar_drop(&sw->xbar, ingress, tlp);
        return;
    }
    sw->multicast_copies += (uint64_t)__builtin_popcountll(egress_mask);
    crossbar_multicast(&sw->xbar, ingress, tlp, egress_mask, address);
}

/* The egress is there, and takes the TLP: one without buffers for a deferrable memory write lets
 * none out. */
static bool can_leave(const struct model *model, uint32_t egress, const struct tlp *tlp)
{
    const struct pcie_port *port = &model->ports[egress];

    return SIM_LIKELY(pcie_port_connected(port) && !port->down) &&
           (SIM_LIKELY(tlp->type != TLP_DMWR) || pcie_port_can_carry(port, tlp));
}

static void switch_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct pcie_switch *sw = model->state;
    uint32_t egress = 0;

    switch (switch_route(model, port, tlp, &egress)) {
    case SWITCH_FORWARD:
        if (SIM_LIKELY(can_leave(model, egress, tlp)))
            crossbar_forward(&sw->xbar, port, egress, tlp);
        else
            refuse(model, port, tlp);
        break;
    case SWITCH_MULTICAST: multicast(model, port, tlp); break;
    case SWITCH_CONFIG: configure(model, port, egress, tlp); break;
    case SWITCH_UNSUPPORTED:
    case SWITCH_UNEXPECTED: refuse(model, port, tlp); break;
    }
}

static void switch_credit(struct model *model, uint32_t port)
{
    crossbar_credit(&((struct pcie_switch *)model->state)->xbar, port);
}

/* Not the upstream port's: with that link everything below would be reset. */
static void switch_link_change(struct model *model, uint32_t port)
{
    struct pcie_switch *sw = model->state;

    if (!model->ports[port].down)
        return;
    cfg_log_error(sw->port[port].cfg, PCI_AER_SURPRISE_DOWN);
    crossbar_flush(&sw->xbar, port);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void init_cfg(struct pcie_switch *sw, struct cfg_space *cfg, enum cfg_port_type type,
                     uint32_t lanes)
{
    /* A PEX8733 of PLX (10b5:8733), class 060400h: PCI-to-PCI bridge. */
    static const struct cfg_identity identity = {
        .vendor_id = 0x10b5,
        .device_id = 0x8733,
        .class_code = 0x060400,
        .revision = 0xaa,
    };

    cfg_init_bridge(cfg, &identity);
    cfg_add_pcie(cfg, type, sw->chip.generation, lanes, sw->chip.mps_bytes_max, true);
    if (type == CFG_DOWNSTREAM_PORT)
        cfg_add_acs(cfg);
    if (sw->n_groups != 0)
        cfg_add_multicast(cfg, sw->n_groups);
}

static void init_port(struct model *model, uint32_t i)
{
    struct pcie_switch *sw = model->state;
    struct switch_port *port = &sw->port[i];
    uint32_t lanes = i == 0 ? sw->lanes : sw->downstream_lanes;

    port->cfg = sim_zalloc(1, sizeof(*port->cfg));
    init_cfg(sw, port->cfg, i == 0 ? CFG_UPSTREAM_PORT : CFG_DOWNSTREAM_PORT, lanes);
    sw->xbar.port[i].cfg = port->cfg;
    if (i == 0)
        snprintf(port->name, sizeof(port->name), "%.40s.upstream", model->name);
    else
        snprintf(port->name, sizeof(port->name), "%.40s.downstream%u", model->name, i - 1);
    crossbar_port_init(model, i, &sw->chip, lanes, port->name);
    model->ports[i].bridge = i == 0 ? NULL : port->cfg;
}

static void switch_init(struct model *model, struct sim_error_list *errors)
{
    struct pcie_switch *sw = model->state;

    if (!crossbar_check(model, &sw->chip, sw->lanes, errors) ||
        !crossbar_check(model, &sw->chip, sw->downstream_lanes, errors))
        return;
    model->n_ports = sw->n_downstream + 1;
    model->ports = sim_zalloc(model->n_ports, sizeof(*model->ports));
    sw->port = sim_zalloc(model->n_ports, sizeof(*sw->port));
    crossbar_init(&sw->xbar, model, sw->chip.latency_ps, false);
    sw->xbar.explain = switch_explain;
    sw->xbar.same_size = true;
    for (uint32_t i = 0; i < model->n_ports; i++)
        init_port(model, i);
}

static void switch_start(struct model *model)
{
    struct pcie_switch *sw = model->state;

    for (uint32_t i = 0; i < model->n_ports; i++)
        if (pcie_port_connected(&model->ports[i]))
            cfg_set_link(sw->port[i].cfg, pcie_port_generation(&model->ports[i]),
                         pcie_port_lanes(&model->ports[i]));
}

static void switch_release(struct model *model)
{
    struct pcie_switch *sw = model->state;

    crossbar_release(&sw->xbar);
    for (uint32_t i = 0; i < model->n_ports; i++)
        free(sw->port[i].cfg);
    free(sw->port);
}

const struct model_ops pcie_switch_ops = {
    .type = "pcie.switch",
    .help = "PCIe switch: one upstream port (0), n downstream ports",
    .state_bytes = sizeof(struct pcie_switch),
    .params = switch_params,
    .stats = switch_stats,
    .init = switch_init,
    .start = switch_start,
    .receive = switch_receive,
    .credit = switch_credit,
    .link_change = switch_link_change,
    .forwards = true,
    .release = switch_release,
};
