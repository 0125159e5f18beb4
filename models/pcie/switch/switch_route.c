/*
 * Models: where a switch sends a TLP, by the live registers of its bridges: memory requests by the
 *   prefetchable and non-prefetchable windows, completions by bus number, configuration requests
 *   by the target's bus number with conversion to type 0, messages from below to the root.
 *   Peer to peer between downstream ports takes the direct way unless the ingress port's ACS
 *   request redirection sends it up. Writes to multicast groups go to every port that receives the
 *   group, but the one they came in by, through the overlay of that port.
 * Does not model: I/O space, broadcast and vendor messages downwards, ACS source validation,
 *   translation blocking, direct translated peer to peer, and completion redirection.
 * Timing: see switch.c.
 * Sources: PCI Express Base 3.1, 2.2.4 (routing), 6.12 (ACS), 6.14 (multicast), 7.3
 * (configuration); PCI-to-PCI Bridge 1.2, 3.2.5 (bus numbers) and 4 (windows).
 */
#include "models/pcie/link/tlp_trace.h"
#include "models/pcie/switch/switch.h"

static const struct cfg_space *cfg_of(const struct model *model, uint32_t port)
{
    return ((const struct pcie_switch *)model->state)->port[port].cfg;
}

static bool covers(struct cfg_window window, uint64_t address)
{
    return address >= window.base && address <= window.limit;
}

/* The bridge takes the address from its primary to its secondary side. */
static bool claims(const struct cfg_space *cfg, uint64_t address)
{
    return covers(cfg_bridge_memory(cfg), address) || covers(cfg_bridge_prefetchable(cfg), address);
}

static bool is_behind(const struct cfg_space *cfg, unsigned bus)
{
    return bus >= cfg_bridge_secondary(cfg) && bus <= cfg_bridge_subordinate(cfg) &&
           cfg_bridge_secondary(cfg) != 0;
}

/* The downstream port whose window covers the address, or 0. */
static uint32_t claimed_by(const struct model *model, uint64_t address)
{
    for (uint32_t i = 1; i < model->n_ports; i++)
        if (claims(cfg_of(model, i), address))
            return i;
    return 0;
}

static enum switch_verdict route_memory_down(const struct model *model, uint64_t address,
                                             uint32_t *egress)
{
    const struct cfg_space *up = cfg_of(model, 0);

    if (!cfg_memory_enabled(up) || !claims(up, address))
        return SWITCH_UNSUPPORTED;
    *egress = claimed_by(model, address);
    return *egress != 0 && cfg_memory_enabled(cfg_of(model, *egress)) ? SWITCH_FORWARD
                                                                      : SWITCH_UNSUPPORTED;
}

/* From below: to another downstream port if it claims the address; up if nothing here does. What
 * the ingress port or the switch as a whole claims without an owner would come back, so it is
 * nobody's. */
static enum switch_verdict route_memory_up(const struct model *model, uint32_t ingress,
                                           uint64_t address, uint32_t *egress)
{
    struct pcie_switch *sw = model->state;
    const struct cfg_space *up = cfg_of(model, 0), *in = cfg_of(model, ingress);

    if (!cfg_bus_master(in))
        return SWITCH_UNSUPPORTED;
    uint32_t peer = claimed_by(model, address);
    if (peer == ingress || (peer == 0 && claims(up, address)))
        return SWITCH_UNSUPPORTED;
    if (peer != 0 && !cfg_acs_p2p_request_redirect(in)) {
        *egress = peer;
        if (!cfg_memory_enabled(cfg_of(model, peer)))
            return SWITCH_UNSUPPORTED;
        sw->peer_to_peer++;
        return SWITCH_FORWARD;
    }
    *egress = 0;
    if (!cfg_bus_master(up))
        return SWITCH_UNSUPPORTED;
    sw->redirected += peer != 0;
    return SWITCH_FORWARD;
}

static enum switch_verdict route_completion(const struct model *model, uint32_t ingress,
                                            const struct tlp *tlp, uint32_t *egress)
{
    unsigned bus = tlp->requester_id >> 8;

    *egress = 0;
    for (uint32_t i = 1; i < model->n_ports; i++)
        if (is_behind(cfg_of(model, i), bus))
            *egress = i;
    /* No requester on the switch's own buses, and none behind the port the completion comes from.
     */
    bool own = *egress == 0 && (ingress == 0 || is_behind(cfg_of(model, 0), bus));
    return own || *egress == ingress ? SWITCH_UNEXPECTED : SWITCH_FORWARD;
}

/* From above only: a type 1 request for the internal bus is for the bridge of that device number;
 * for a downstream port's secondary bus it leaves as type 0; below that it stays type 1. */
static enum switch_verdict route_config(const struct model *model, struct tlp *tlp,
                                        uint32_t *egress)
{
    bool type0 = tlp->type == TLP_CFG_RD0 || tlp->type == TLP_CFG_WR0;
    bool read = tlp->type == TLP_CFG_RD0 || tlp->type == TLP_CFG_RD1;
    unsigned bus = tlp->completer_id >> 8, device = tlp->completer_id >> 3 & 31,
             function = tlp->completer_id & 7;
    const struct cfg_space *up = cfg_of(model, 0);

    *egress = 0;
    if (type0)
        return device == 0 && function == 0 ? SWITCH_CONFIG : SWITCH_UNSUPPORTED;
    if (!is_behind(up, bus))
        return SWITCH_UNSUPPORTED;
    if (bus == cfg_bridge_secondary(up)) {
        *egress = device + 1;
        if (*egress >= model->n_ports || function != 0)
            return SWITCH_UNSUPPORTED;
        tlp->type = read ? TLP_CFG_RD0 : TLP_CFG_WR0;
        return SWITCH_CONFIG;
    }
    for (*egress = 1; *egress < model->n_ports; ++*egress) {
        const struct cfg_space *down = cfg_of(model, *egress);
        if (!is_behind(down, bus))
            continue;
        if (bus == cfg_bridge_secondary(down)) {
            if (device != 0)
                return SWITCH_UNSUPPORTED; /* one device below a link (7.3.1) */
            tlp->type = read ? TLP_CFG_RD0 : TLP_CFG_WR0;
        }
        return SWITCH_FORWARD;
    }
    return SWITCH_UNSUPPORTED;
}

/* ---- Multicast ------------------------------------------------------------------------------- */

/* Decided where the write comes in (6.14.2): a port that forwards nothing lets no group through. */
static bool hits_group(const struct model *model, uint32_t ingress, const struct tlp *tlp)
{
    const struct cfg_space *in = cfg_of(model, ingress);

    return tlp->type == TLP_MWR &&
           tlp->address - cfg_multicast(in)->base < cfg_multicast(in)->bytes &&
           (ingress == 0 ? cfg_memory_enabled(in) : cfg_bus_master(in));
}

/* The overlay of the port where a copy goes out takes the place of the upper bits (6.14.5). */
static uint64_t overlaid(const struct cfg_multicast *out, uint64_t address)
{
    uint64_t kept = (UINT64_C(1) << out->overlay_log2) - 1;

    return out->overlay_log2 == 0 ? address : out->overlay | (address & kept);
}

uint64_t switch_multicast(const struct model *model, uint32_t ingress, const struct tlp *tlp,
                          uint64_t *address)
{
    const struct cfg_multicast *in = cfg_multicast(cfg_of(model, ingress));
    unsigned group = (unsigned)((tlp->address - in->base) >> in->position);
    uint64_t mask = 0, block = in->block;

    if (tlp->at != TLP_AT_TRANSLATED)
        block |= in->block_untranslated;
    for (uint32_t i = 0; i < model->n_ports && !(block >> group & 1); i++) {
        const struct cfg_multicast *out = cfg_multicast(cfg_of(model, i));
        if (i == ingress || !(out->receive >> group & 1) ||
            !pcie_port_connected(&model->ports[i]) || model->ports[i].down)
            continue;
        mask |= UINT64_C(1) << i;
        address[i] = overlaid(out, tlp->address);
    }
    return mask;
}

enum switch_verdict switch_route(const struct model *model, uint32_t ingress, struct tlp *tlp,
                                 uint32_t *egress)
{
    if (SIM_UNLIKELY(hits_group(model, ingress, tlp)))
        return SWITCH_MULTICAST;
    switch (tlp->type) {
    case TLP_MRD:
    case TLP_MWR:
    case TLP_DMWR:
        return ingress == 0 ? route_memory_down(model, tlp->address, egress)
                            : route_memory_up(model, ingress, tlp->address, egress);
    case TLP_CPL:
    case TLP_CPLD: return route_completion(model, ingress, tlp, egress);
    case TLP_MSG: *egress = 0; return ingress == 0 ? SWITCH_UNSUPPORTED : SWITCH_FORWARD;
    default: return ingress == 0 ? route_config(model, tlp, egress) : SWITCH_UNSUPPORTED;
    }
}

/* ---- Written down ---------------------------------------------------------------------------- */

static struct cfg_window window_of(const struct model *model, uint32_t port, uint64_t address)
{
    struct cfg_window memory = cfg_bridge_memory(cfg_of(model, port));

    return covers(memory, address) ? memory : cfg_bridge_prefetchable(cfg_of(model, port));
}

void switch_explain(const struct model *model, uint32_t ingress, uint32_t egress,
                    const struct tlp *tlp, sim_time at_ps)
{
    struct tlp_trace_record *record = tlp_trace_add(tlp->stamp, TRACE_ROUTE, model->name, at_ps);
    const struct cfg_space *out = cfg_of(model, egress);

    tlp_trace_port(record->from, &model->ports[ingress]);
    tlp_trace_port(record->to, &model->ports[egress]);
    if (tlp_class_of(tlp) == TLP_COMPLETION) {
        record->route.why = egress != 0 ? TRACE_ROUTE_BUS : TRACE_ROUTE_BUS_UP;
        record->route.base = cfg_bridge_secondary(out);
        record->route.limit = cfg_bridge_subordinate(out);
        return;
    }
    uint32_t owner = egress != 0 ? egress : claimed_by(model, tlp->address);
    if (owner != 0) {
        struct cfg_window window = window_of(model, owner, tlp->address);
        record->route.base = window.base;
        record->route.limit = window.limit;
    }
    if (egress != 0)
        record->route.why = ingress == 0 ? TRACE_ROUTE_WINDOW : TRACE_ROUTE_PEER;
    else
        record->route.why = owner != 0 ? TRACE_ROUTE_ACS : TRACE_ROUTE_UP;
}
