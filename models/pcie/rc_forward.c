/*
 * Peer to peer through root complexes: requests by address, completions by requester ID.
 *
 * Models: forwarding between any two root ports of a host, per-class queues in front of the
 *   egress transmitter; the ingress buffer is free once the TLP is handed to it.
 * Does not model: re-chunking of requests (docs/sources.md#c2: a read of 256 B
 *   becomes 4 x 64 B), bandwidth of the path between
 *   sockets (the egress link is the narrower one).
 * Timing: p2p, and p2p_socket more when the ports belong to different sockets.
 * Sources: docs/sources.md#c2.
 */
#include "models/pcie/rc_internal.h"

static void step_out(struct rc_step *step)
{
    struct model *rc = step->rc;
    struct tlp *tlp = step->tlp;
    enum tlp_class class = tlp_class_of(tlp);
    unsigned credits = tlp_data_credits(tlp);
    uint32_t ingress = tlp->ingress;
    pcie_port_send(&step->out_rc->ports[step->out_port], tlp, sim_now(rc->sim));
    pcie_port_release(&rc->ports[ingress], class, credits, sim_now(rc->sim));
    rc_step_free(step);
}

static void forward_leaves(struct sim *sim, struct sim_event *event)
{
    struct rc_step *step = SIM_CONTAINER(event, struct rc_step, event);
    enum tlp_class class = tlp_class_of(step->tlp);
    struct rc_queue *queue = &rc_of(step->out_rc)->port[step->out_port].forward[class];
    (void)sim;
    if (queue->head == NULL && pcie_port_ready(&step->out_rc->ports[step->out_port], class)) {
        step_out(step);
        return;
    }
    *queue->tail = step;
    queue->tail = &step->next;
}

void rc_forward(struct model *rc, uint32_t port, struct tlp *tlp, struct model *out_rc,
                unsigned out_port, sim_time at_ps)
{
    struct rc_state *state = rc_of(rc);
    struct rc_port *in = &state->port[port];
    struct rc_step *step = rc_step_new(rc, tlp, forward_leaves);
    if (out_rc != rc)
        at_ps += state->params.p2p_socket_ps;
    sim_stamp_mark(tlp->stamp, PART_ROOT_COMPLEX, at_ps);
    if (tlp_class_of(tlp) == TLP_POSTED)
        in->last_commit_ps = SIM_MAX(in->last_commit_ps, at_ps);
    step->out_rc = out_rc;
    step->out_port = out_port;
    tlp->ingress = (uint16_t)port;
    state->stats.p2p_tlps++;
    sim_schedule(rc->sim, &step->event, at_ps);
}

void rc_forward_credit(struct model *rc, uint32_t port)
{
    for (unsigned c = 0; c < N_TLP_CLASSES; c++) {
        struct rc_queue *queue = &rc_of(rc)->port[port].forward[c];
        while (queue->head != NULL && pcie_port_ready(&rc->ports[port], (enum tlp_class)c)) {
            struct rc_step *step = queue->head;
            queue->head = step->next;
            if (queue->head == NULL)
                queue->tail = &queue->head;
            sim_stamp_mark(step->tlp->stamp, PART_CREDIT, sim_now(rc->sim));
            step_out(step);
        }
    }
}
