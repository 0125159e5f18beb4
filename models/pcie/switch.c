/*
 * Models: a PCIe switch: one upstream port (0), n downstream ports, each a bridge with its own
 *   configuration space; cut-through or store-and-forward; virtual output queues, one per ingress,
 *   egress and class; round robin over the ingresses of each egress; bounded receive buffers.
 * Does not model: internal bandwidth limits (non-blocking), a shared credit pool, weights or
 *   virtual channels, errors reported to the root, hot plug.
 * Timing: a TLP enters the core at a = head (cut-through) or tail (store-and-forward); where the
 *   ingress link is slower, cut-through waits until a = tail - wire time at the egress, so that the
 *   egress cannot run dry. It may leave from a + latency, when the egress is free, has credits and
 *   grants it. Its receive buffer is free when its last byte has left. The egress decides at most
 *   `latency` ahead of the moment its wire becomes free: all that can compete for that moment is
 *   in the core by then, so the decision is the same as if taken at that moment, and an idle or a
 *   busy egress costs no event of its own (the deliveries at its far end make it look again).
 *   Answers of the switch itself (configuration, unsupported requests) take the same latency.
 * Sources: docs/sources.md#c1; PCI Express Base 3.1, 2.4 and 7.3.
 */
#include "models/pcie/switch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const mode_names[] = { "cut_through", "store_and_forward", NULL };

#define SOURCE "docs/sources.md#c1"

static const struct param_desc switch_params[] = {
    PARAM("downstream_ports", PARAM_U32, struct pcie_switch, n_downstream, 2, 1, 32, PROV_NONE, "",
          "number of downstream ports; each is a device on the internal bus"),
    PARAM("generation", PARAM_U32, struct pcie_switch, generation, 3, 1, 5, PROV_DATASHEET, SOURCE,
          "highest generation of its ports"),
    PARAM("lanes", PARAM_U32, struct pcie_switch, lanes, 16, 1, 32, PROV_DATASHEET, SOURCE,
          "width of the upstream port"),
    PARAM("downstream_lanes", PARAM_U32, struct pcie_switch, downstream_lanes, 8, 1, 32,
          PROV_DATASHEET, SOURCE, "width of each downstream port"),
    PARAM("latency_ns", PARAM_TIME, struct pcie_switch, latency_ps, 110, 50, 300, PROV_ESTIMATE,
          SOURCE, "first byte in to first byte out, egress idle (PEX8733: 132 ns at most)"),
    PARAM_ONE_OF("mode", struct pcie_switch, mode, SWITCH_CUT_THROUGH, mode_names, PROV_DATASHEET,
                 SOURCE, "forwards when the head is there, or when the whole TLP is"),
    PARAM("posted_header_credits", PARAM_U32, struct pcie_switch, ph, 64, 1, 2048, PROV_ESTIMATE,
          SOURCE, "receive buffer of each port: posted headers"),
    PARAM("posted_data_credits", PARAM_U32, struct pcie_switch, pd, 512, 8, 32768, PROV_ESTIMATE,
          SOURCE, "receive buffer of each port: posted data, 16 bytes each"),
    PARAM("non_posted_header_credits", PARAM_U32, struct pcie_switch, nph, 64, 1, 2048,
          PROV_ESTIMATE, SOURCE, "receive buffer of each port: non-posted headers"),
    PARAM("non_posted_data_credits", PARAM_U32, struct pcie_switch, npd, 64, 1, 2048, PROV_ESTIMATE,
          SOURCE, "receive buffer of each port: non-posted data, 16 bytes each"),
    PARAM("completion_header_credits", PARAM_U32, struct pcie_switch, cplh, 64, 1, 2048,
          PROV_ESTIMATE, SOURCE, "receive buffer of each port: completion headers"),
    PARAM("completion_data_credits", PARAM_U32, struct pcie_switch, cpld, 512, 8, 32768,
          PROV_ESTIMATE, SOURCE, "receive buffer of each port: completion data, 16 bytes each"),
    PARAM("mps_bytes_max", PARAM_U32, struct pcie_switch, mps_bytes_max, 2048, 128, 4096,
          PROV_DATASHEET, SOURCE, "largest payload that it supports"),
    { .type = PARAM_END },
};

static const struct stat_desc switch_stats[] = {
    STAT("tlps", STAT_COUNTER, struct pcie_switch, tlps, "1", 0, "TLPs forwarded"),
    STAT("peer_to_peer", STAT_COUNTER, struct pcie_switch, peer_to_peer, "1", 0,
         "memory requests sent straight to another downstream port"),
    STAT("redirected", STAT_COUNTER, struct pcie_switch, redirected, "1", 0,
         "peer-to-peer requests sent up because of ACS"),
    STAT("unsupported_requests", STAT_COUNTER, struct pcie_switch, unsupported_requests, "1", 0,
         "requests without a destination: answered with UR, or dropped if posted"),
    STAT("unexpected_completions", STAT_COUNTER, struct pcie_switch, unexpected_completions, "1", 0,
         "completions without a requester, dropped"),
    { .kind = STAT_END },
};

/* The TLP was made by the switch and holds no receive buffer. */
#define COOKIE_OWN UINT32_MAX

/* ---- Flows ----------------------------------------------------------------------------------- */

static struct switch_flow *flow_of(struct model *model, uint32_t ingress, uint32_t egress)
{
    struct pcie_switch *sw = model->state;

    return &sw->flow[egress * model->n_ports + ingress];
}

static void flow_put(struct model *model, uint32_t ingress, uint32_t egress, struct tlp *tlp)
{
    struct pcie_switch *sw = model->state;
    struct switch_flow *flow = flow_of(model, ingress, egress);
    enum tlp_class class = tlp_class_of(tlp);

    tlp->next = NULL;
    if (flow->first[class] == NULL)
        flow->first[class] = tlp;
    else
        flow->last[class]->next = tlp;
    flow->last[class] = tlp;
    flow->n++;
    sw->port[egress].waiting_mask |= UINT64_C(1) << ingress;
}

static void flow_take(struct model *model, uint32_t ingress, uint32_t egress, enum tlp_class class)
{
    struct pcie_switch *sw = model->state;
    struct switch_flow *flow = flow_of(model, ingress, egress);

    flow->first[class] = flow->first[class]->next;
    if (--flow->n == 0)
        sw->port[egress].waiting_mask &= ~(UINT64_C(1) << ingress);
}

/* Completions pass posted requests of the same flow only with relaxed ordering, or with ID-based
 * ordering those of other functions (PCIe Base 3.1, table 2-39). */
static bool may_pass_posted(const struct tlp *posted, const struct tlp *cpl)
{
    if (cpl->attr & TLP_ATTR_RELAXED_ORDERING)
        return true;
    if (!(cpl->attr & TLP_ATTR_ID_ORDERING))
        return false;
    for (; posted != NULL; posted = posted->next)
        if (posted->sequence < cpl->sequence && posted->requester_id == cpl->completer_id)
            return false;
    return true;
}

/* The oldest TLP of the flow that ordering and credits let go, or NULL. */
static struct tlp *flow_pick(struct model *model, uint32_t ingress, uint32_t egress)
{
    struct switch_flow *flow = flow_of(model, ingress, egress);
    const struct tlp *posted = flow->first[TLP_POSTED];
    struct tlp *oldest = NULL;

    for (unsigned class = 0; class < N_TLP_CLASSES; class ++) {
        struct tlp *tlp = flow->first[class];

        if (tlp == NULL || (oldest != NULL && oldest->sequence < tlp->sequence))
            continue;
        if (class != TLP_POSTED && posted != NULL && posted->sequence < tlp->sequence &&
            (class == TLP_NON_POSTED || !may_pass_posted(posted, tlp)))
            continue;
        if (pcie_port_has_credits(&model->ports[egress], tlp))
            oldest = tlp;
    }
    return oldest;
}

/* ---- Egress ---------------------------------------------------------------------------------- */

/* The wire is open and the credits are there. The receive buffer is free when the TLP has left. */
static void start(struct model *model, uint32_t ingress, uint32_t egress, struct tlp *tlp)
{
    struct pcie_switch *sw = model->state;
    enum tlp_class class = tlp_class_of(tlp);
    unsigned data = tlp_data_credits(tlp);
    bool own = tlp->cookie == COOKIE_OWN;
    sim_time at_ps = SIM_MAX(tlp->sent_ps, sim_now(model->sim));

    sim_stamp_mark(tlp->stamp, PART_SWITCH, tlp->sent_ps);
    sim_time end_ps = pcie_port_start(&model->ports[egress], tlp, at_ps);
    if (own)
        return;
    sw->tlps++;
    pcie_port_release(&model->ports[ingress], class, data, end_ps);
}

/* The next in turn among those that may leave when the wire is free; if there is none yet, the one
 * that may leave first. */
static struct tlp *grant(struct model *model, uint32_t egress, uint32_t *granted)
{
    struct pcie_switch *sw = model->state;
    const struct switch_port *out = &sw->port[egress];
    sim_time free_ps = pcie_port_free_ps(&model->ports[egress]);
    struct tlp *first = NULL;

    for (uint32_t i = 1; i <= model->n_ports; i++) {
        uint32_t ingress = out->last_ingress + i;
        ingress -= ingress >= model->n_ports ? model->n_ports : 0;
        if ((out->waiting_mask >> ingress & 1) == 0)
            continue;
        struct tlp *tlp = flow_pick(model, ingress, egress);
        if (tlp == NULL || (first != NULL && tlp->sent_ps >= first->sent_ps))
            continue;
        first = tlp;
        *granted = ingress;
        if (tlp->sent_ps <= free_ps)
            break;
    }
    return first;
}

static void arbitrate(struct model *model, uint32_t egress)
{
    struct pcie_switch *sw = model->state;
    struct switch_port *out = &sw->port[egress];

    while (out->waiting_mask != 0 && pcie_port_wire_open(&model->ports[egress], sw->latency_ps)) {
        uint32_t ingress = 0;
        struct tlp *tlp = grant(model, egress, &ingress);

        if (tlp == NULL)
            break; /* no credits: the link calls when there are */
        flow_take(model, ingress, egress, tlp_class_of(tlp));
        out->last_ingress = ingress;
        start(model, ingress, egress, tlp);
    }
}

static void switch_credit(struct model *model, uint32_t port)
{
    arbitrate(model, port);
}

/* The TLP is in the core: it may leave `latency` from now. Its ingress is where its flow starts. */
static void enter_core(struct model *model, uint32_t ingress, uint32_t egress, struct tlp *tlp)
{
    struct pcie_switch *sw = model->state;
    struct switch_port *out = &sw->port[egress];

    tlp->sent_ps = sim_now(model->sim) + sw->latency_ps;
    tlp->sequence = ++sw->sequence;
    if (out->waiting_mask != 0) {
        /* The wire may be open all the same: those that wait may lack credits of their class. */
        flow_put(model, ingress, egress, tlp);
        arbitrate(model, egress);
    } else if (pcie_port_wire_open(&model->ports[egress], sw->latency_ps) &&
               pcie_port_has_credits(&model->ports[egress], tlp)) {
        out->last_ingress = ingress;
        start(model, ingress, egress, tlp);
    } else {
        flow_put(model, ingress, egress, tlp);
    }
}

/* ---- Ingress --------------------------------------------------------------------------------- */

/* An answer of the switch itself goes back through the port that the request came in by. */
static void answer(struct model *model, uint32_t ingress, struct tlp *request, struct tlp *cpl)
{
    sim_time tail_ps = SIM_MAX(request->tail_ps, sim_now(model->sim));

    pcie_port_release(&model->ports[ingress], TLP_NON_POSTED, tlp_data_credits(request), tail_ps);
    tlp_free(model->fabric, request);
    cpl->cookie = COOKIE_OWN;
    enter_core(model, ingress, ingress, cpl);
}

static void refuse(struct model *model, uint32_t ingress, struct tlp *tlp)
{
    struct pcie_switch *sw = model->state;
    enum tlp_class class = tlp_class_of(tlp);

    if (class == TLP_NON_POSTED) {
        sw->unsupported_requests++;
        answer(model, ingress, tlp,
               tlp_completion(model->fabric, tlp, sw->port[ingress].cfg->id, TLP_UR));
        return;
    }
    if (class == TLP_COMPLETION)
        sw->unexpected_completions++;
    else
        sw->unsupported_requests++;
    pcie_port_release(&model->ports[ingress], class, tlp_data_credits(tlp),
                      SIM_MAX(tlp->tail_ps, sim_now(model->sim)));
    tlp_free(model->fabric, tlp);
}

static void admit(struct sim *sim, struct sim_event *event)
{
    struct switch_port *in = SIM_CONTAINER(event, struct switch_port, admit);
    struct tlp *tlp = in->coming_first;

    in->coming_first = tlp->next;
    if (in->coming_first != NULL)
        sim_schedule(sim, event, SIM_MAX(in->coming_first->sent_ps, sim_now(sim)));
    enter_core(in->model, in->idx, tlp->cookie, tlp);
}

/* Cut-through from a slower link: the egress starts so late that the tail is never missing. */
static void forward(struct model *model, uint32_t ingress, uint32_t egress, struct tlp *tlp)
{
    struct pcie_switch *sw = model->state;
    struct switch_port *in = &sw->port[ingress];
    sim_time now_ps = sim_now(model->sim), ready_ps = now_ps;

    if (tlp->tail_ps > now_ps) {
        sim_time wire_ps = pcie_port_wire_ps(&model->ports[egress], tlp_wire_bytes(tlp));
        ready_ps = SIM_MAX(now_ps + wire_ps, tlp->tail_ps) - wire_ps;
    }
    tlp->cookie = egress;
    if (SIM_LIKELY(ready_ps == now_ps && in->coming_first == NULL)) {
        enter_core(model, ingress, egress, tlp);
        return;
    }
    /* TLPs of one link come in one after the other, so none overtakes here. */
    tlp->sent_ps = ready_ps;
    tlp->next = NULL;
    if (in->coming_first == NULL) {
        in->coming_first = tlp;
        sim_schedule(model->sim, &in->admit, ready_ps);
    } else {
        in->coming_last->next = tlp;
    }
    in->coming_last = tlp;
}

/* A request to one of the bridges, which may change the maximum payload size of its port. */
static void configure(struct model *model, uint32_t ingress, uint32_t target, struct tlp *tlp)
{
    struct cfg_space *cfg = ((struct pcie_switch *)model->state)->port[target].cfg;
    struct tlp *cpl = cfg_answer(cfg, model->fabric, tlp);

    model->ports[target].mps_bytes = cfg_mps_bytes(cfg);
    answer(model, ingress, tlp, cpl);
}

static void switch_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    uint32_t egress = 0;

    switch (switch_route(model, port, tlp, &egress)) {
    case SWITCH_FORWARD:
        if (SIM_LIKELY(pcie_port_connected(&model->ports[egress])))
            forward(model, port, egress, tlp);
        else
            refuse(model, port, tlp);
        break;
    case SWITCH_CONFIG: configure(model, port, egress, tlp); break;
    case SWITCH_UNSUPPORTED:
    case SWITCH_UNEXPECTED: refuse(model, port, tlp); break;
    }
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void *must_alloc(size_t n, size_t bytes)
{
    void *memory = calloc(n, bytes);

    SIM_ASSERT(memory != NULL, "no memory for a switch");
    return memory;
}

static bool lanes_exist(uint32_t lanes)
{
    return lanes == 12 || (lanes <= 32 && (lanes & (lanes - 1)) == 0);
}

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
    cfg_add_pcie(cfg, type, sw->generation, lanes, sw->mps_bytes_max, true);
    if (type == CFG_DOWNSTREAM_PORT)
        cfg_add_acs(cfg);
}

static void init_port(struct model *model, uint32_t i)
{
    struct pcie_switch *sw = model->state;
    struct switch_port *port = &sw->port[i];
    uint32_t lanes = i == 0 ? sw->lanes : sw->downstream_lanes;

    port->model = model;
    port->idx = i;
    port->cfg = must_alloc(1, sizeof(*port->cfg));
    init_cfg(sw, port->cfg, i == 0 ? CFG_UPSTREAM_PORT : CFG_DOWNSTREAM_PORT, lanes);
    sim_event_init(&port->admit, admit);
    if (i == 0)
        snprintf(port->name, sizeof(port->name), "%.40s.upstream", model->name);
    else
        snprintf(port->name, sizeof(port->name), "%.40s.downstream%u", model->name, i - 1);
    model->ports[i] = (struct pcie_port){
        .model = model,
        .idx = i,
        .max_generation = (uint8_t)sw->generation,
        .max_lanes = (uint8_t)lanes,
        .cut_through = sw->mode == SWITCH_CUT_THROUGH,
        .mps_bytes = 128,
        .mps_bytes_max = sw->mps_bytes_max,
        .advertise = { .header = { sw->ph, sw->nph, sw->cplh },
                       .data = { sw->pd, sw->npd, sw->cpld } },
        .name = port->name,
    };
}

static bool check_params(const struct model *model, struct sim_error_list *errors)
{
    const struct pcie_switch *sw = model->state;
    const char *file = model->config != NULL ? config_file(model->config) : NULL;
    int line = model->config != NULL ? config_line(model->config) : 0;
    bool lanes_ok = lanes_exist(sw->lanes) && lanes_exist(sw->downstream_lanes);
    bool mps_ok = (sw->mps_bytes_max & (sw->mps_bytes_max - 1)) == 0;

    if (!lanes_ok)
        sim_error_add(errors, file, line,
                      "%s: ports of %u and %u lanes, expected 1, 2, 4, 8, 12, 16 or 32",
                      model->name, sw->lanes, sw->downstream_lanes);
    if (!mps_ok)
        sim_error_add(errors, file, line, "%s: mps_bytes_max %u, expected a power of two",
                      model->name, sw->mps_bytes_max);
    return lanes_ok && mps_ok;
}

static void switch_init(struct model *model, struct sim_error_list *errors)
{
    struct pcie_switch *sw = model->state;

    if (!check_params(model, errors))
        return;
    model->n_ports = sw->n_downstream + 1;
    model->ports = must_alloc(model->n_ports, sizeof(*model->ports));
    sw->port = must_alloc(model->n_ports, sizeof(*sw->port));
    sw->flow = must_alloc((size_t)model->n_ports * model->n_ports, sizeof(*sw->flow));
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

static void free_list(struct pcie_fabric *fabric, struct tlp *tlp)
{
    while (tlp != NULL) {
        struct tlp *next = tlp->next;
        tlp_free(fabric, tlp);
        tlp = next;
    }
}

static void switch_release(struct model *model)
{
    struct pcie_switch *sw = model->state;

    for (uint32_t i = 0; i < model->n_ports; i++) {
        sim_cancel(model->sim, &sw->port[i].admit);
        free_list(model->fabric, sw->port[i].coming_first);
        free(sw->port[i].cfg);
    }
    for (uint32_t i = 0; i < model->n_ports * model->n_ports; i++)
        for (unsigned class = 0; class < N_TLP_CLASSES; class ++)
            free_list(model->fabric, sw->flow[i].first[class]);
    free(sw->port);
    free(sw->flow);
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
    .forwards = true,
    .release = switch_release,
};
