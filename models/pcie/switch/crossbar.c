/*
 * Models: the inside of a switch chip: cut-through or store-and-forward; virtual output queues, one
 *   per ingress, egress and class; round robin over the ingresses of each egress, for its wire and,
 *   class by class, for its credits; bounded receive buffers; copies of multicast writes, which
 *   share the buffer of the original; what becomes of TLPs whose egress link is down; a source of
 *   TLPs within the chip (a DMA engine).
 * Does not model: internal bandwidth limits (non-blocking), a shared credit pool, weights or
 *   virtual channels.
 * Fairness: port arbitration by TLPs (6.3.3.4). The wire goes round the ingresses that have
 *   something to send. That alone starves where credits of a class come one at a time: between two
 *   of them the wire serves other classes, the turn stands at the same ingress again whenever one
 *   comes, and the next behind it gets them all. So while a class is short of credits, an ingress
 *   that has sent of it waits until each other that has some to send has sent one.
 * Timing: a TLP enters the core at a = head (cut-through) or tail (store-and-forward); where the
 *   ingress link is slower, cut-through waits until a = tail - wire time at the egress, so that the
 *   egress cannot run dry. It may leave from a + latency, when the egress is free, has credits and
 *   grants it. Its receive buffer is free when its last byte has left (the last of its copies').
 *   The egress decides at most `latency` ahead of the moment its wire becomes free: all that can
 *   compete for that moment is in the core by then, so the decision is the same as if taken at that
 *   moment, and an idle or a busy egress costs no event of its own (the deliveries at its far end
 *   make it look again). Answers of the chip itself take the same latency.
 * Sources: docs/sources.md#c1; PCI Express Base 3.1, 2.4, 2.9.1, 6.3.3, 6.14.
 */
#include "models/pcie/switch/crossbar.h"

#include <stdlib.h>
#include <string.h>

#include "models/pcie/link/tlp_trace.h"

/* In the cookie of a TLP that the crossbar owns. */
#define COOKIE_EGRESS_MASK 0xffu
#define COOKIE_SHARE_SHIFT 8u
#define COOKIE_SHARE_MASK  0x3fffff00u
#define COOKIE_SHARED      0x40000000u /* with other copies, one receive buffer */
#define COOKIE_OWN         0x80000000u /* made by the chip: holds no receive buffer */
#define NO_SHARE           UINT32_MAX

/* ---- Flows ----------------------------------------------------------------------------------- */

static struct crossbar_flow *flow_of(struct crossbar *xbar, uint32_t ingress, uint32_t egress)
{
    return &xbar->flow[egress * xbar->n_ingresses + ingress];
}

static void flow_put(struct crossbar *xbar, uint32_t ingress, uint32_t egress, struct tlp *tlp)
{
    struct crossbar_flow *flow = flow_of(xbar, ingress, egress);
    enum tlp_class class = tlp_class_of(tlp);

    tlp->next = NULL;
    if (flow->first[class] == NULL)
        flow->first[class] = tlp;
    else
        flow->last[class]->next = tlp;
    flow->last[class] = tlp;
    flow->n++;
    xbar->port[egress].waiting_mask |= UINT64_C(1) << ingress;
}

static void flow_take(struct crossbar *xbar, uint32_t ingress, uint32_t egress,
                      enum tlp_class class)
{
    struct crossbar_flow *flow = flow_of(xbar, ingress, egress);

    flow->first[class] = flow->first[class]->next;
    if (--flow->n == 0)
        xbar->port[egress].waiting_mask &= ~(UINT64_C(1) << ingress);
}

/* Whether ordering lets the first TLP of the class go (table 2-39). */
static bool in_order(const struct crossbar_flow *flow, enum tlp_class class)
{
    const struct tlp *posted = flow->first[TLP_POSTED], *tlp = flow->first[class];

    return class == TLP_POSTED || posted == NULL || posted->sequence > tlp->sequence ||
           (class == TLP_COMPLETION && tlp_may_pass_posted(posted, tlp));
}

/* The class is short of credits, and the ingress has had its turn while others wait for theirs. If
 * none does, the next round begins. */
static __attribute__((noinline)) bool others_turn(struct crossbar *xbar, uint32_t ingress,
                                                  uint32_t egress, enum tlp_class class)
{
    struct crossbar_port *out = &xbar->port[egress];
    struct crossbar_turns *turns = &out->turns[class];

    if ((turns->served_mask >> ingress & 1) == 0)
        return false;
    for (uint64_t left = out->waiting_mask & ~turns->served_mask; left != 0; left &= left - 1) {
        const struct crossbar_flow *flow = flow_of(xbar, (uint32_t)__builtin_ctzll(left), egress);
        if (flow->first[class] != NULL && in_order(flow, class))
            return true;
    }
    *turns = (struct crossbar_turns){ 0 };
    return false;
}

/* A TLP of the class goes. A second one of an ingress begins a round. */
static inline void turn_taken(struct crossbar_port *out, uint32_t ingress, enum tlp_class class)
{
    const uint64_t bit = UINT64_C(1) << ingress;
    struct crossbar_turns *turns = &out->turns[class];

    out->last_ingress = ingress;
    turns->served_mask = (turns->served_mask & bit) != 0 ? bit : turns->served_mask | bit;
}

/* Whether the egress has the credits for the TLP. */
static bool has_credits(struct crossbar *xbar, uint32_t egress, const struct tlp *tlp)
{
    if (SIM_LIKELY(pcie_port_has_credits(&xbar->model->ports[egress], tlp)))
        return true;
    xbar->port[egress].turns[tlp_class_of(tlp)].is_short = true;
    return false;
}

/* The oldest TLP of the flow that ordering, turn and credits let go, or NULL. */
static struct tlp *flow_pick(struct crossbar *xbar, uint32_t ingress, uint32_t egress)
{
    struct crossbar_flow *flow = flow_of(xbar, ingress, egress);
    const struct crossbar_turns *turns = xbar->port[egress].turns;
    struct tlp *oldest = NULL;

    for (unsigned class = 0; class < N_TLP_CLASSES; class ++) {
        struct tlp *tlp = flow->first[class];

        if (tlp == NULL || (oldest != NULL && oldest->sequence < tlp->sequence))
            continue;
        if (!in_order(flow, (enum tlp_class) class) ||
            (SIM_UNLIKELY(turns[class].is_short) &&
             others_turn(xbar, ingress, egress, (enum tlp_class) class)))
            continue;
        if (has_credits(xbar, egress, tlp))
            oldest = tlp;
    }
    return oldest;
}

/* ---- Receive buffers ------------------------------------------------------------------------- */

/* One of the copies has left, or will have at end_ps: the last frees the buffer. */
static void share_release(struct crossbar *xbar, uint32_t ingress, const struct tlp *tlp,
                          unsigned data, sim_time end_ps)
{
    uint32_t idx = (tlp->cookie & COOKIE_SHARE_MASK) >> COOKIE_SHARE_SHIFT;
    struct crossbar_share *share = &xbar->share[idx];

    share->end_ps = SIM_MAX(share->end_ps, end_ps);
    if (--share->n_left != 0)
        return;
    pcie_port_release(&xbar->model->ports[ingress], TLP_POSTED, data,
                      SIM_MAX(share->end_ps, sim_now(xbar->model->sim)));
    share->next_free = xbar->free_share;
    xbar->free_share = idx;
}

/* A free one; more by doubling, which ends once there are as many as multicasts in flight. */
static uint32_t share_new(struct crossbar *xbar, uint32_t n_copies)
{
    if (xbar->free_share == NO_SHARE) {
        uint32_t n = xbar->n_shares == 0 ? 16 : 2 * xbar->n_shares;
        xbar->share = sim_grow(xbar->share, n, sizeof(*xbar->share));
        SIM_ASSERT(n <= COOKIE_SHARE_MASK >> COOKIE_SHARE_SHIFT, "%u multicasts in flight", n);
        for (uint32_t i = xbar->n_shares; i < n; i++)
            xbar->share[i].next_free = i + 1 < n ? i + 1 : NO_SHARE;
        xbar->free_share = xbar->n_shares;
        xbar->n_shares = n;
    }
    uint32_t idx = xbar->free_share;
    xbar->free_share = xbar->share[idx].next_free;
    xbar->share[idx] = (struct crossbar_share){ .n_left = n_copies };
    return idx;
}

/* Frees the buffer that the TLP occupies, if it does, at at_ps (>= now). */
static void release(struct crossbar *xbar, uint32_t ingress, const struct tlp *tlp, sim_time at_ps)
{
    if (tlp->cookie & COOKIE_SHARED)
        share_release(xbar, ingress, tlp, tlp_data_credits(tlp), at_ps);
    else if (!(tlp->cookie & COOKIE_OWN))
        pcie_port_release(&xbar->model->ports[ingress], tlp_class_of(tlp), tlp_data_credits(tlp),
                          at_ps);
}

/* ---- Egress ---------------------------------------------------------------------------------- */

/* A TLP with a stamp leaves: what the chip took, and for one that is followed why it leaves here.
 */
static __attribute__((cold, noinline)) void leave_stamped(struct crossbar *xbar, uint32_t ingress,
                                                          uint32_t egress, const struct tlp *tlp,
                                                          sim_time at_ps)
{
    const struct model *model = xbar->model;

    sim_stamp_mark(tlp->stamp, PART_SWITCH, tlp->sent_ps);
    if (tlp->stamp->trace == NULL)
        return;
    if (xbar->explain != NULL && !(tlp->cookie & COOKIE_OWN))
        xbar->explain(model, ingress, egress, tlp,
                      model->ports[ingress].cut_through ? tlp->head_ps : tlp->tail_ps);
    struct tlp_trace_record *record = tlp_trace_add(tlp->stamp, TRACE_PASS, model->name, at_ps);
    /* A source within the chip has no port of its own. */
    if (ingress < model->n_ports)
        tlp_trace_port(record->from, &model->ports[ingress]);
    tlp_trace_port(record->to, &model->ports[egress]);
    record->pass.ready_ps = tlp->sent_ps;
}

static void tell_left(struct crossbar *xbar, enum tlp_class class, unsigned tag, sim_time end_ps)
{
    if (class == TLP_POSTED && tag != 0)
        xbar->left(xbar->model, tag, end_ps);
}

/* The wire is open and the credits are there. The receive buffer is free when the TLP has left. */
static void start(struct crossbar *xbar, uint32_t ingress, uint32_t egress, struct tlp *tlp)
{
    struct model *model = xbar->model;
    uint32_t cookie = tlp->cookie;
    enum tlp_class class = tlp_class_of(tlp);
    unsigned data = tlp_data_credits(tlp), tag = tlp->tag;
    sim_time at_ps = SIM_MAX(tlp->sent_ps, sim_now(model->sim));

    if (SIM_UNLIKELY(tlp->stamp != NULL))
        leave_stamped(xbar, ingress, egress, tlp, at_ps);
    sim_time end_ps = pcie_port_start(&model->ports[egress], tlp, at_ps);
    if (SIM_UNLIKELY(cookie & (COOKIE_OWN | COOKIE_SHARED))) {
        if (cookie & COOKIE_SHARED) {
            xbar->tlps++;
            share_release(xbar, ingress, &(const struct tlp){ .cookie = cookie }, data, end_ps);
        } else if (ingress >= model->n_ports) {
            xbar->tlps++;
            tell_left(xbar, class, tag, end_ps);
        }
        return;
    }
    xbar->tlps++;
    pcie_port_release(&model->ports[ingress], class, data, end_ps);
}

/* The next in turn among those that may leave when the wire is free; if there is none yet, the one
 * that may leave first. */
static struct tlp *grant(struct crossbar *xbar, uint32_t egress, uint32_t *granted)
{
    const struct crossbar_port *out = &xbar->port[egress];
    uint32_t n = xbar->n_ingresses;
    sim_time free_ps = pcie_port_free_ps(&xbar->model->ports[egress]);
    struct tlp *first = NULL;

    for (uint32_t i = 1; i <= n; i++) {
        uint32_t ingress = out->last_ingress + i;
        ingress -= ingress >= n ? n : 0;
        if ((out->waiting_mask >> ingress & 1) == 0)
            continue;
        struct tlp *tlp = flow_pick(xbar, ingress, egress);
        if (tlp == NULL || (first != NULL && tlp->sent_ps >= first->sent_ps))
            continue;
        first = tlp;
        *granted = ingress;
        if (tlp->sent_ps <= free_ps)
            break;
    }
    return first;
}

static void arbitrate(struct crossbar *xbar, uint32_t egress)
{
    struct crossbar_port *out = &xbar->port[egress];

    while (out->waiting_mask != 0 &&
           pcie_port_wire_open(&xbar->model->ports[egress], xbar->latency_ps)) {
        uint32_t ingress = 0;
        struct tlp *tlp = grant(xbar, egress, &ingress);

        if (tlp == NULL)
            break; /* no credits: the link calls when there are */
        flow_take(xbar, ingress, egress, tlp_class_of(tlp));
        turn_taken(out, ingress, tlp_class_of(tlp));
        start(xbar, ingress, egress, tlp);
    }
}

void crossbar_credit(struct crossbar *xbar, uint32_t port)
{
    arbitrate(xbar, port);
}

static void enter_core(struct crossbar *xbar, uint32_t ingress, uint32_t egress, struct tlp *tlp);

/* The chip's own completion, by the port that received the request. */
static void send_own(struct crossbar *xbar, uint32_t port, struct tlp *completion)
{
    const struct cfg_space *cfg = xbar->port[port].cfg;

    completion->cookie = COOKIE_OWN;
    completion->digest = cfg != NULL && cfg->live.ecrc;
    enter_core(xbar, port, port, completion);
}

/* The egress link is down (2.9.1): who waits for an answer gets one, all else is lost. */
static void lose(struct crossbar *xbar, uint32_t ingress, uint32_t egress, struct tlp *tlp)
{
    struct model *model = xbar->model;
    const struct cfg_space *cfg = xbar->port[ingress].cfg;
    enum tlp_class class = tlp_class_of(tlp);
    unsigned tag = tlp->tag;
    bool inner = ingress >= model->n_ports;

    xbar->lost++;
    if (tlp_traced(tlp))
        tlp_trace_add_tlp(tlp, TRACE_REFUSED, model->name, sim_now(model->sim));
    release(xbar, ingress, tlp, SIM_MAX(tlp->tail_ps, sim_now(model->sim)));
    if (class == TLP_NON_POSTED) {
        struct tlp *cpl = tlp_completion(model->pcie, tlp, cfg != NULL ? cfg->id : 0, TLP_UR);
        if (xbar->returned != NULL && !xbar->returned(model, egress, cpl)) {
            tlp_free(model->pcie, cpl);
        } else if (inner) {
            xbar->answered(model, cpl);
        } else {
            send_own(xbar, ingress, cpl);
        }
    }
    tlp_free(model->pcie, tlp);
    if (inner)
        tell_left(xbar, class, tag, sim_now(model->sim));
}

/* The TLP is in the core: it may leave `latency` from now. Its ingress is where its flow starts. */
static void enter_at(struct crossbar *xbar, uint32_t ingress, uint32_t egress, struct tlp *tlp,
                     sim_time latency_ps)
{
    struct model *model = xbar->model;
    struct crossbar_port *out = &xbar->port[egress];

    if (SIM_UNLIKELY(model->ports[egress].down)) {
        lose(xbar, ingress, egress, tlp);
        return;
    }
    tlp->sent_ps = sim_now(model->sim) + latency_ps;
    tlp->sequence = ++xbar->sequence;
    if (out->waiting_mask != 0) {
        /* The wire may be open all the same: those that wait may lack credits of their class. */
        flow_put(xbar, ingress, egress, tlp);
        arbitrate(xbar, egress);
    } else if (pcie_port_wire_open(&model->ports[egress], xbar->latency_ps) &&
               has_credits(xbar, egress, tlp)) {
        turn_taken(out, ingress, tlp_class_of(tlp));
        start(xbar, ingress, egress, tlp);
    } else {
        flow_put(xbar, ingress, egress, tlp);
    }
}

static void enter_core(struct crossbar *xbar, uint32_t ingress, uint32_t egress, struct tlp *tlp)
{
    enter_at(xbar, ingress, egress, tlp, xbar->latency_ps);
}

void crossbar_send_near(struct crossbar *xbar, uint32_t ingress, uint32_t egress, struct tlp *tlp,
                        sim_time latency_ps)
{
    tlp->cookie = COOKIE_OWN;
    enter_at(xbar, ingress, egress, tlp, latency_ps);
}

void crossbar_flush(struct crossbar *xbar, uint32_t egress)
{
    for (uint32_t ingress = 0; ingress < xbar->n_ingresses; ingress++) {
        struct crossbar_flow *flow = flow_of(xbar, ingress, egress);
        for (unsigned class = 0; class < N_TLP_CLASSES; class ++)
            while (flow->first[class] != NULL) {
                struct tlp *tlp = flow->first[class];
                flow_take(xbar, ingress, egress, (enum tlp_class) class);
                lose(xbar, ingress, egress, tlp);
            }
    }
}

/* ---- Ingress --------------------------------------------------------------------------------- */

static void admit(struct sim *sim, struct sim_event *event)
{
    struct crossbar_port *in = SIM_CONTAINER(event, struct crossbar_port, admit);
    struct tlp *tlp = in->coming_first;

    in->coming_first = tlp->next;
    if (in->coming_first != NULL)
        sim_schedule(sim, event, SIM_MAX(in->coming_first->sent_ps, sim_now(sim)));
    enter_core(in->xbar, in->idx, tlp->cookie & COOKIE_EGRESS_MASK, tlp);
}

/* The TLP is ready for the core at ready_ps. TLPs of one link come in one after the other, so none
 * overtakes here. */
static void come_in(struct crossbar *xbar, uint32_t ingress, uint32_t egress, struct tlp *tlp,
                    sim_time ready_ps)
{
    struct crossbar_port *in = &xbar->port[ingress];

    tlp->cookie |= egress;
    if (SIM_LIKELY(ready_ps == sim_now(xbar->model->sim) && in->coming_first == NULL)) {
        enter_core(xbar, ingress, egress, tlp);
        return;
    }
    tlp->sent_ps = ready_ps;
    tlp->next = NULL;
    if (in->coming_first == NULL) {
        in->coming_first = tlp;
        sim_schedule(xbar->model->sim, &in->admit, ready_ps);
    } else {
        in->coming_last->next = tlp;
    }
    in->coming_last = tlp;
}

/* Cut-through from a slower link: the egress starts so late that the tail is never missing. */
static sim_time ready_for(struct crossbar *xbar, uint32_t egress, const struct tlp *tlp)
{
    sim_time now_ps = sim_now(xbar->model->sim);

    if (tlp->tail_ps <= now_ps || xbar->model->ports[egress].down)
        return now_ps;
    sim_time wire_ps = pcie_port_wire_ps(&xbar->model->ports[egress], tlp_wire_bytes(tlp));
    return SIM_MAX(now_ps + wire_ps, tlp->tail_ps) - wire_ps;
}

/* Most TLPs find nothing before them, the wire open and the credits there: neither arbitration nor
 * the long way would do anything else with them. False: nothing has happened. */
static inline bool pass(struct crossbar *xbar, uint32_t ingress, uint32_t egress, struct tlp *tlp)
{
    struct pcie_port *ports = xbar->model->ports;
    struct crossbar_port *out = &xbar->port[egress];
    const enum tlp_class class = tlp_class_of(tlp);

    if (!xbar->same_size || out->waiting_mask != 0 || xbar->port[ingress].coming_first != NULL ||
        SIM_UNLIKELY(ports[egress].down || tlp->stamp != NULL) ||
        !pcie_port_pass(&ports[ingress], &ports[egress], tlp, xbar->latency_ps))
        return false;
    turn_taken(out, ingress, class);
    xbar->tlps++;
    return true;
}

void crossbar_forward(struct crossbar *xbar, uint32_t ingress, uint32_t egress, struct tlp *tlp)
{
    if (SIM_LIKELY(pass(xbar, ingress, egress, tlp)))
        return;
    const struct pcie_port *ports = xbar->model->ports;
    /* What comes in no faster than it goes out needs no look at its wire time: it is ready now. */
    const bool at_once = xbar->same_size && pcie_port_no_faster(&ports[egress], &ports[ingress]);

    tlp->cookie = 0;
    come_in(xbar, ingress, egress, tlp,
            at_once ? sim_now(xbar->model->sim) : ready_for(xbar, egress, tlp));
}

void crossbar_send(struct crossbar *xbar, uint32_t ingress, uint32_t egress, struct tlp *tlp,
                   sim_time at_ps)
{
    tlp->cookie = COOKIE_OWN;
    come_in(xbar, ingress, egress, tlp, at_ps);
}

void crossbar_multicast(struct crossbar *xbar, uint32_t ingress, struct tlp *tlp,
                        uint64_t egress_mask, const uint64_t *address)
{
    struct pcie_context *pcie = xbar->model->pcie;
    uint32_t n_copies = (uint32_t)__builtin_popcountll(egress_mask);
    uint32_t cookie = COOKIE_SHARED | share_new(xbar, n_copies) << COOKIE_SHARE_SHIFT;

    for (uint64_t left = egress_mask; left != 0; left &= left - 1) {
        uint32_t egress = (uint32_t)__builtin_ctzll(left);
        struct tlp *copy = (left & (left - 1)) == 0 ? tlp : tlp_copy(pcie, tlp);
        copy->address = address[egress];
        copy->cookie = cookie;
        come_in(xbar, ingress, egress, copy, ready_for(xbar, egress, copy));
    }
}

void crossbar_answer(struct crossbar *xbar, uint32_t ingress, struct tlp *request,
                     struct tlp *completion)
{
    struct model *model = xbar->model;
    sim_time tail_ps = SIM_MAX(request->tail_ps, sim_now(model->sim));

    pcie_port_release(&model->ports[ingress], TLP_NON_POSTED, tlp_data_credits(request), tail_ps);
    tlp_free(model->pcie, request);
    send_own(xbar, ingress, completion);
}

void crossbar_drop(struct crossbar *xbar, uint32_t ingress, struct tlp *tlp)
{
    struct model *model = xbar->model;

    pcie_port_release(&model->ports[ingress], tlp_class_of(tlp), tlp_data_credits(tlp),
                      SIM_MAX(tlp->tail_ps, sim_now(model->sim)));
    tlp_free(model->pcie, tlp);
}

void crossbar_refuse(struct crossbar *xbar, uint32_t ingress, struct tlp *tlp)
{
    const struct cfg_space *cfg = xbar->port[ingress].cfg;

    if (tlp_traced(tlp))
        tlp_trace_add_tlp(tlp, TRACE_REFUSED, xbar->model->name, sim_now(xbar->model->sim));
    if (tlp_class_of(tlp) != TLP_NON_POSTED) {
        crossbar_drop(xbar, ingress, tlp);
        return;
    }
    crossbar_answer(xbar, ingress, tlp,
                    tlp_completion(xbar->model->pcie, tlp, cfg != NULL ? cfg->id : 0, TLP_UR));
}

/* ---- Parameters ------------------------------------------------------------------------------ */

const char *const crossbar_mode_names[] = { "cut_through", "store_and_forward", NULL };

static bool lanes_exist(uint32_t lanes)
{
    return lanes == 12 || (lanes != 0 && lanes <= 32 && (lanes & (lanes - 1)) == 0);
}

bool crossbar_check(const struct model *model, const struct crossbar_params *params, uint32_t lanes,
                    struct sim_error_list *errors)
{
    bool mps_ok = (params->mps_bytes_max & (params->mps_bytes_max - 1)) == 0;

    if (!lanes_exist(lanes))
        model_mistake(model, errors, ": ports of %u lanes, expected 1, 2, 4, 8, 12, 16 or 32",
                      lanes);
    if (!mps_ok)
        model_mistake(model, errors, ": mps_bytes_max %u, expected a power of two",
                      params->mps_bytes_max);
    return lanes_exist(lanes) && mps_ok;
}

void crossbar_port_init(struct model *model, uint32_t i, const struct crossbar_params *params,
                        uint32_t lanes, const char *name)
{
    model->ports[i] = (struct pcie_port){
        .model = model,
        .idx = i,
        .max_generation = (uint8_t)params->generation,
        .max_lanes = (uint8_t)lanes,
        .cut_through = params->mode == CROSSBAR_CUT_THROUGH,
        .mps_bytes = 128,
        .mps_bytes_max = params->mps_bytes_max,
        .advertise = { .header = { params->ph, params->nph, params->cplh },
                       .data = { params->pd, params->npd, params->cpld } },
        .name = name,
    };
}

/* ---- Life ------------------------------------------------------------------------------------ */

void crossbar_init(struct crossbar *xbar, struct model *model, sim_time latency_ps, bool inner)
{
    size_t n = model->n_ports + (inner ? 1 : 0);

    SIM_ASSERT(model->n_ports != 0 && n <= CROSSBAR_PORTS_MAX, "%s: a crossbar of %zu ports",
               model->name, n);
    xbar->model = model;
    xbar->latency_ps = latency_ps;
    xbar->free_share = NO_SHARE;
    xbar->port = sim_zalloc(n, sizeof(*xbar->port));
    xbar->n_ingresses = (uint32_t)n;
    xbar->flow = sim_zalloc(model->n_ports * n, sizeof(*xbar->flow));
    for (uint32_t i = 0; i < n; i++) {
        xbar->port[i].xbar = xbar;
        xbar->port[i].idx = i;
        sim_event_init(&xbar->port[i].admit, admit);
    }
}

void crossbar_release(struct crossbar *xbar)
{
    uint32_t n = xbar->port != NULL ? xbar->n_ingresses : 0;

    for (uint32_t i = 0; i < n; i++) {
        sim_cancel(xbar->model->sim, &xbar->port[i].admit);
        tlp_free_list(xbar->model->pcie, xbar->port[i].coming_first);
    }
    for (uint32_t i = 0; i < n * (n != 0 ? xbar->model->n_ports : 0); i++)
        for (unsigned class = 0; class < N_TLP_CLASSES; class ++)
            tlp_free_list(xbar->model->pcie, xbar->flow[i].first[class]);
    free(xbar->share);
    free(xbar->port);
    free(xbar->flow);
}
