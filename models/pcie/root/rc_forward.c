/*
 * Peer to peer through root complexes: requests by address, completions by requester ID.
 *
 * Models: forwarding between any two root ports of a host, per-class queues in front of the
 *   egress transmitter; the ingress buffer is free once the TLP is handed to it. Per class in
 *   order; writes pass what waits in the other classes, those pass no earlier write that came in
 *   by the same port, except completions with relaxed or ID-based ordering. Completions from memory
 *   and from peers that find the egress full leave in the order of their times.
 *   Reads may be split and re-originated (rc_reads.c).
 *   Between sockets over the interconnect, whose messages carry a line at most: a read asks for
 *   each of its lines, data are a message a line, each line of a posted write is answered.
 * Does not model: what makes peers of two sockets slower on real Xeons than the interconnect is
 *   (the mechanism is not published).
 * Timing: p2p. Between sockets besides: the latest of its messages (numa_io_send), and p2p_socket.
 *   Lines of posted writes pass one each p2p_line_interval, so a socket forwards 64 B per interval
 *   at most.
 * Sources: PCIe Base 3.1, 2.4.1 (table 2-39); docs/sources.md#a2, #c2.
 */
#include "models/pcie/link/tlp_trace.h"
#include "models/pcie/root/rc_internal.h"

/* The step's TLP may go as far as its own class is concerned. */
static bool has_room(const struct rc_step *step)
{
    return pcie_port_ready(&step->out_rc->ports[step->out_port], tlp_class_of(step->tlp)) &&
           (!rc_split_reads(step->out_rc, step->tlp) ||
            rc_reads_ready(step->out_rc, step->out_port));
}

/* False: only a piece of it went. */
static bool step_out(struct rc_step *step)
{
    struct model *rc = step->rc;
    struct tlp *tlp = step->tlp;
    enum tlp_class class = tlp_class_of(tlp);
    unsigned credits = tlp_data_credits(tlp);
    uint32_t ingress = tlp->ingress;
    if (rc_split_reads(step->out_rc, tlp)) {
        if (!rc_reads_issue(step))
            return false;
        rc_step_free(step);
        return true;
    }
    pcie_port_send(&step->out_rc->ports[step->out_port], tlp, sim_now(rc->sim));
    if (!step->own)
        pcie_port_release(&rc->ports[ingress], class, credits, sim_now(rc->sim));
    rc_step_free(step);
    return true;
}

/* Table 2-39, column of posted requests: what waits may not be passed by what came later the same
 * way, unless the attributes of a completion allow it. */
static bool may_pass(const struct rc_step *write, const struct rc_step *step)
{
    const struct tlp *tlp = step->tlp;
    if (write->rc != step->rc || write->tlp->ingress != tlp->ingress ||
        write->sequence > step->sequence)
        return true;
    if (tlp_class_of(tlp) != TLP_COMPLETION)
        return false;
    return (tlp->attr & TLP_ATTR_RELAXED_ORDERING) != 0 ||
           ((tlp->attr & TLP_ATTR_ID_ORDERING) != 0 &&
            write->tlp->requester_id != tlp->completer_id);
}

static bool behind_a_write(const struct rc_port *out, const struct rc_step *step)
{
    if (tlp_class_of(step->tlp) == TLP_POSTED || step->own)
        return false;
    for (const struct rc_step *w = out->forward[TLP_POSTED].head; w != NULL; w = w->next)
        if (!may_pass(w, step))
            return true;
    return false;
}

static void wait_for_port(struct rc_queue *queue, struct rc_step *step)
{
    *queue->tail = step;
    queue->tail = &step->next;
}

/* If they went past a completion of a peer that waits for room, there would never be any. */
void rc_forward_own(struct rc_step *step, uint32_t port)
{
    struct model *rc = step->rc;
    struct rc_port *out = &rc_of(rc)->port[port];
    const struct rc_step *peer = out->forward[TLP_COMPLETION].head;

    if (SIM_LIKELY(out->forward[RC_QUEUE_OWN].head == NULL &&
                   (peer == NULL || behind_a_write(out, peer)))) {
        pcie_port_send(&rc->ports[port], step->tlp, sim_now(rc->sim));
        rc_step_free(step);
        return;
    }
    step->own = true;
    step->out_rc = rc;
    step->out_port = port;
    step->sequence = ++out->forward_sequence;
    wait_for_port(&out->forward[RC_QUEUE_OWN], step);
}

static void forward_leaves(struct sim *sim, struct sim_event *event)
{
    struct rc_step *step = SIM_CONTAINER(event, struct rc_step, event);
    enum tlp_class class = tlp_class_of(step->tlp);
    struct rc_port *out = &rc_of(step->out_rc)->port[step->out_port];
    struct rc_queue *queue = &out->forward[class];
    (void)sim;
    step->sequence = ++out->forward_sequence;
    if (queue->head == NULL)
        while (!behind_a_write(out, step) && has_room(step))
            if (step_out(step))
                return;
    wait_for_port(queue, step);
}

/* The lines that the TLP carries or asks for; 1 if it has none. */
static uint64_t lines_of(const struct tlp *tlp)
{
    return (tlp->address + SIM_MAX(tlp->length_bytes, 1u) - 1) / LINE_BYTES -
           tlp->address / LINE_BYTES + 1;
}

/* When the lines of a posted write have passed: one after the other, whatever port they came by. */
static sim_time lines_passed(struct rc_state *state, const struct tlp *tlp, sim_time at_ps)
{
    sim_time start_ps = SIM_MAX(at_ps, state->p2p_free_ps);
    state->p2p_free_ps = start_ps + lines_of(tlp) * state->params.p2p_line_interval_ps;
    return start_ps;
}

/* When the TLP, sent from socket to socket at at_ps, is there. */
static sim_time crosses(const struct rc_state *from, const struct rc_state *to,
                        const struct tlp *tlp, sim_time at_ps)
{
    const enum numa_io what = tlp_has_data(tlp)      ? NUMA_IO_DATA
                              : tlp->type == TLP_MRD ? NUMA_IO_REQUEST
                                                     : NUMA_IO_COMPLETION;
    struct numa *numa = from->host->numa;
    sim_time there_ps = at_ps;

    for (uint64_t left = lines_of(tlp); left != 0; left--) {
        const sim_time line_ps = numa_io_send(numa, from->socket, to->socket, what, at_ps);
        if (tlp->type == TLP_MWR) /* nobody waits for it */
            numa_io_send(numa, to->socket, from->socket, NUMA_IO_COMPLETION, line_ps);
        there_ps = SIM_MAX(there_ps, line_ps);
    }
    return there_ps + from->params.p2p_socket_ps;
}

void rc_forward(struct model *rc, uint32_t port, struct tlp *tlp, struct model *out_rc,
                unsigned out_port, sim_time at_ps)
{
    struct rc_state *state = rc_of(rc);
    struct rc_port *in = &state->port[port];
    struct rc_step *step = rc_step_new(rc, tlp, forward_leaves);
    if (tlp->type == TLP_MWR && state->params.p2p_line_interval_ps != 0)
        at_ps = lines_passed(state, tlp, at_ps);
    if (out_rc != rc) {
        sim_stamp_mark(tlp->stamp, PART_ROOT_COMPLEX, at_ps);
        at_ps = crosses(state, rc_of(out_rc), tlp, at_ps);
        sim_stamp_mark(tlp->stamp, PART_INTERCONNECT, at_ps);
    }
    at_ps = SIM_MAX(at_ps, in->last_commit_ps);
    if (tlp_class_of(tlp) == TLP_COMPLETION)
        in->last_answer_ps = at_ps = SIM_MAX(at_ps, in->last_answer_ps);
    sim_stamp_mark(tlp->stamp, PART_ROOT_COMPLEX, at_ps);
    if (tlp_traced(tlp))
        tlp_trace_port(tlp_trace_add_tlp(tlp, TRACE_PEER, rc->name, at_ps)->to,
                       &out_rc->ports[out_port]);
    if (tlp_class_of(tlp) == TLP_POSTED)
        in->last_commit_ps = at_ps;
    step->out_rc = out_rc;
    step->out_port = out_port;
    tlp->ingress = (uint16_t)port;
    state->stats.p2p_tlps++;
    sim_schedule(rc->sim, &step->event, at_ps);
}

/* The oldest of the queues in `mask` that may go now, or NULL. */
static struct rc_step *next_to_leave(struct model *rc, uint32_t port, unsigned mask)
{
    struct rc_port *out = &rc_of(rc)->port[port];
    struct rc_step *oldest = NULL;
    for (unsigned q = 0; q < RC_N_QUEUES; q++) {
        struct rc_step *step = out->forward[q].head;
        if (step == NULL || (mask >> q & 1) == 0 || behind_a_write(out, step) || !has_room(step))
            continue;
        if (oldest == NULL || step->sequence < oldest->sequence)
            oldest = step;
    }
    return oldest;
}

static void credit(struct model *rc, uint32_t port, unsigned mask)
{
    struct rc_step *step;
    while ((step = next_to_leave(rc, port, mask)) != NULL) {
        const unsigned q = step->own ? RC_QUEUE_OWN : tlp_class_of(step->tlp);
        struct rc_queue *queue = &rc_of(rc)->port[port].forward[q];
        struct rc_step *next = step->next;
        sim_stamp_mark(step->tlp->stamp, PART_CREDIT, sim_now(rc->sim));
        if (!step_out(step))
            continue;
        queue->head = next;
        if (next == NULL)
            queue->tail = &queue->head;
    }
}

void rc_forward_credit(struct model *rc, uint32_t port)
{
    credit(rc, port, (1u << RC_N_QUEUES) - 1);
}

void rc_forward_credit_class(struct model *rc, uint32_t port, enum tlp_class class)
{
    credit(rc, port, 1u << class);
}
