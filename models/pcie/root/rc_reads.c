/*
 * Peer-to-peer reads that the root complex splits and re-originates, as Xeons do: each becomes
 * requests of the root complex itself, cut at p2p_chunk_bytes, of which an egress port has
 * p2p_reads_max in flight. Off while both are 0; reads then pass unchanged (rc_forward.c).
 *
 * Models: cutting, tags and requester ID of the root complex, the bound on what is in flight, the
 *   original's completions in address order with its requester ID and tag; errors and time-outs,
 *   which end the original with one completion. The original's receive buffer is free when its last
 *   piece has been sent.
 * Does not model: a limit to the completions that wait for earlier ones; writes cut up (seen for
 *   reads only).
 * Timing: each piece and each completion takes the p2p time; a piece waits for a tag.
 * Sources: SmartIO 7.3.1 (a tracer saw reads of 256 B leave as 4 of 64 B); docs/sources.md#c2.
 */
#include <stdlib.h>

#include "models/pcie/root/rc_internal.h"

/* A read that is being answered; in the order of its pieces. */
struct rc_read {
    struct tlp *tlp; /* the original */
    struct model *in_rc, *out_rc;
    uint32_t in_port, out_port;
    uint32_t issued_bytes, answered_bytes;
    uint32_t n_pieces;
    bool over; /* answered completely, or with an error */
    struct rc_piece *first, *last;
};

struct rc_piece {
    struct rc_piece *next;
    struct rc_read *read;
    uint32_t bytes, received_bytes;
    bool complete;
    struct tlp *held_first, *held_last; /* completions that wait for earlier pieces */
};

static uint32_t n_tags(const struct rc_state *state)
{
    return state->params.p2p_reads_max != 0 ? state->params.p2p_reads_max : RC_READ_TAGS_MAX;
}

bool rc_split_reads(const struct model *out_rc, const struct tlp *tlp)
{
    const struct rc_state *state = out_rc->state;
    return tlp->type == TLP_MRD &&
           (state->params.p2p_chunk_bytes != 0 || state->params.p2p_reads_max != 0);
}

bool rc_reads_ready(const struct model *out_rc, uint32_t port)
{
    const struct rc_state *state = out_rc->state;
    return state->port[port].n_reads < n_tags(state);
}

/* ---- Tags ------------------------------------------------------------------------------------ */

static void finish(struct rc_read *read);

/* Whether the root port sends the original's completions with a digest. */
static bool has_digest(const struct rc_read *read)
{
    const struct rc_state *state = read->in_rc->state;
    return state->port[read->in_port].cfg.live.ecrc;
}

static void tag_free(struct rc_read_tag *tag)
{
    struct rc_port *port = &rc_of(tag->rc)->port[tag->port];
    tag->busy = false;
    port->n_reads--;
    rc_forward_credit(tag->rc, tag->port);
}

/* The piece's time is up: the original ends with an error. The tag rests until the answer comes, or
 * time is up again. */
static void times_out(struct sim *sim, struct sim_event *event)
{
    struct rc_read_tag *tag = SIM_CONTAINER(event, struct rc_read_tag, timeout);
    struct rc_state *state = rc_of(tag->rc);
    struct rc_piece *piece = tag->piece;

    if (piece == NULL) {
        tag_free(tag);
        return;
    }
    state->stats.p2p_timeouts++;
    sim_schedule_in(sim, event, state->params.completion_timeout_ps);
    tag->piece = NULL;
    piece->complete = true;
    if (!piece->read->over) {
        struct rc_read *read = piece->read;
        struct tlp *cpl = tlp_completion(tag->rc->pcie, read->tlp, rc_id(state), TLP_CA);
        cpl->byte_count = (uint16_t)(read->tlp->length_bytes - read->answered_bytes);
        cpl->digest = has_digest(read);
        read->over = true;
        rc_complete_at(read->in_rc, cpl, read->in_port, sim_now(sim) + state->params.p2p_ps);
    }
    finish(piece->read);
}

static struct rc_read_tag *tag_new(struct model *rc, uint32_t port_idx)
{
    struct rc_state *state = rc_of(rc);
    struct rc_port *port = &state->port[port_idx];
    uint32_t n = n_tags(state);

    if (port->read_tag == NULL) {
        port->read_tag = sim_zalloc(n, sizeof(*port->read_tag));
    }
    for (uint32_t i = 0; i < n; i++) {
        struct rc_read_tag *tag = &port->read_tag[(port->next_read_tag + i) % n];
        if (tag->busy)
            continue;
        port->next_read_tag = (uint32_t)(tag - port->read_tag + 1) % n;
        *tag = (struct rc_read_tag){ .rc = rc, .port = port_idx, .busy = true };
        sim_event_init(&tag->timeout, times_out);
        port->n_reads++;
        return tag;
    }
    SIM_ASSERT(false, "%s: no tag, though %u of %u are in use", rc->name, port->n_reads, n);
    return NULL;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

static struct rc_read *read_new(const struct rc_step *step)
{
    struct rc_read *read = sim_pool_get(rc_of(step->rc)->reads);
    *read = (struct rc_read){ .tlp = step->tlp,
                              .in_rc = step->rc,
                              .in_port = step->tlp->ingress,
                              .out_rc = step->out_rc,
                              .out_port = step->out_port };
    return read;
}

/* The next piece ends at a multiple of p2p_chunk_bytes. */
static uint32_t piece_bytes(const struct rc_state *state, const struct rc_read *read)
{
    uint32_t left = read->tlp->length_bytes - read->issued_bytes;
    uint64_t chunk = state->params.p2p_chunk_bytes, at = read->tlp->address + read->issued_bytes;

    return chunk == 0 ? left : SIM_MIN(left, (uint32_t)(chunk - (at & (chunk - 1))));
}

static void send_piece(struct model *rc, uint32_t port, struct rc_read *read)
{
    struct rc_state *state = rc_of(rc);
    struct rc_read_tag *tag = tag_new(rc, port);
    struct rc_piece *piece = sim_pool_get(state->pieces);
    struct tlp *tlp = tlp_new(rc->pcie, TLP_MRD);

    *piece = (struct rc_piece){ .read = read, .bytes = piece_bytes(state, read) };
    tag->piece = piece;
    tlp->address = read->tlp->address + read->issued_bytes;
    tlp->length_bytes = (uint16_t)piece->bytes;
    tlp->attr = read->tlp->attr;
    tlp->bulk = read->tlp->bulk;
    tlp->digest = state->port[port].cfg.live.ecrc;
    tlp->requester_id = rc_id(state);
    tlp->tag = (uint16_t)(RC_MMIO_TAGS + (uint32_t)(tag - state->port[port].read_tag));
    if (read->tlp->stamp != NULL)
        tlp->stamp = stamp_copy(rc->pcie, read->tlp->stamp);
    if (read->first == NULL)
        read->first = piece;
    else
        read->last->next = piece;
    read->last = piece;
    read->n_pieces++;
    read->issued_bytes += piece->bytes;
    state->stats.p2p_reads++;
    sim_schedule_in(rc->sim, &tag->timeout, state->params.completion_timeout_ps);
    pcie_port_send(&rc->ports[port], tlp, sim_now(rc->sim));
}

bool rc_reads_issue(struct rc_step *step)
{
    struct model *rc = step->out_rc;

    if (step->read == NULL)
        step->read = read_new(step);
    struct rc_read *read = step->read;
    if (!read->over) /* an earlier piece failed: what is left is not asked for */
        send_piece(rc, step->out_port, read);
    if (!read->over && read->issued_bytes < read->tlp->length_bytes)
        return false;
    pcie_port_release(&read->in_rc->ports[read->in_port], TLP_NON_POSTED,
                      tlp_data_credits(read->tlp), sim_now(rc->sim));
    read->issued_bytes = read->tlp->length_bytes;
    finish(read);
    return true;
}

/* ---- Answers --------------------------------------------------------------------------------- */

static void drop(struct rc_read *read, struct tlp *cpl)
{
    pcie_port_release(&read->out_rc->ports[read->out_port], TLP_COMPLETION, tlp_data_credits(cpl),
                      sim_now(read->out_rc->sim));
    tlp_free(read->out_rc->pcie, cpl);
}

/* Nothing more is to be sent or to come: the original is done with. */
static void finish(struct rc_read *read)
{
    while (read->first != NULL && read->over && read->first->complete) {
        struct rc_piece *piece = read->first;
        while (piece->held_first != NULL) { /* behind an error: nobody wants them */
            struct tlp *cpl = piece->held_first;
            piece->held_first = cpl->next;
            drop(read, cpl);
        }
        read->first = piece->next;
        sim_pool_put(rc_of(read->out_rc)->pieces, piece);
    }
    if (!read->over || read->first != NULL || read->issued_bytes < read->tlp->length_bytes)
        return;
    tlp_free(read->in_rc->pcie, read->tlp);
    sim_pool_put(rc_of(read->in_rc)->reads, read);
}

/* The completion goes on as one of the original's, behind the writes that came before it. */
static void answer(struct rc_read *read, struct tlp *cpl)
{
    struct model *rc = read->out_rc;
    struct rc_state *state = rc_of(rc);

    cpl->requester_id = read->tlp->requester_id;
    cpl->tag = read->tlp->tag;
    cpl->completer_id = rc_id(state);
    cpl->attr = read->tlp->attr;
    cpl->digest = has_digest(read);
    cpl->byte_count = (uint16_t)(read->tlp->length_bytes - read->answered_bytes);
    read->answered_bytes += cpl->length_bytes;
    rc_forward(rc, read->out_port, cpl, read->in_rc, read->in_port,
               sim_now(rc->sim) + state->params.p2p_ps);
}

/* Data of the first piece that is not answered yet goes on. */
static void pass_on(struct rc_read *read)
{
    while (read->first != NULL && !read->over) {
        struct rc_piece *piece = read->first;
        while (piece->held_first != NULL) {
            struct tlp *cpl = piece->held_first;
            piece->held_first = cpl->next;
            answer(read, cpl);
        }
        if (!piece->complete)
            return;
        read->over = read->answered_bytes == read->tlp->length_bytes;
        read->first = piece->next;
        sim_pool_put(rc_of(read->out_rc)->pieces, piece);
    }
}

static void hold(struct rc_piece *piece, struct tlp *cpl)
{
    cpl->next = NULL;
    if (piece->held_first == NULL)
        piece->held_first = cpl;
    else
        piece->held_last->next = cpl;
    piece->held_last = cpl;
    piece->received_bytes += cpl->length_bytes;
    piece->complete = piece->received_bytes == piece->bytes;
}

/* The tag that the completion is for, with what it still lacks; NULL: unexpected. */
static struct rc_read_tag *tag_of(struct rc_state *state, uint32_t port, const struct tlp *tlp)
{
    uint32_t idx = tlp->tag - RC_MMIO_TAGS;

    if (tlp->tag < RC_MMIO_TAGS || idx >= n_tags(state) || state->port[port].read_tag == NULL)
        return NULL;
    struct rc_read_tag *tag = &state->port[port].read_tag[idx];
    if (!tag->busy)
        return NULL;
    const struct rc_piece *piece = tag->piece;
    if (piece != NULL && tlp->status == TLP_SC &&
        (tlp->payload == NULL || tlp->byte_count != piece->bytes - piece->received_bytes ||
         tlp->length_bytes > tlp->byte_count))
        return NULL;
    return tag;
}

/* An answer to a piece that is still wanted. */
static void piece_answered(struct rc_piece *piece, struct tlp *tlp)
{
    struct rc_read *read = piece->read;

    if (tlp->status == TLP_SC) {
        hold(piece, tlp);
        pass_on(read);
    } else {
        piece->complete = true;
        if (read->over)
            drop(read, tlp);
        else
            answer(read, tlp);
        read->over = true;
    }
    finish(read);
}

bool rc_reads_completion(struct model *rc, uint32_t port, struct tlp *tlp)
{
    struct rc_read_tag *tag = tag_of(rc_of(rc), port, tlp);

    if (tag == NULL)
        return false;
    struct rc_piece *piece = tag->piece;
    bool last = tlp->status != TLP_SC || tlp->length_bytes == tlp->byte_count;
    if (last) {
        sim_cancel(rc->sim, &tag->timeout);
        tag->piece = NULL;
    }
    if (piece != NULL) {
        piece_answered(piece, tlp);
    } else { /* late: its original has ended */
        pcie_port_release(&rc->ports[port], TLP_COMPLETION, tlp_data_credits(tlp),
                          sim_now(rc->sim));
        tlp_free(rc->pcie, tlp);
    }
    if (last)
        tag_free(tag);
    return true;
}

void rc_reads_init(struct model *rc)
{
    rc_of(rc)->reads = sim_pool_new(rc->sim, "peer-to-peer read", sizeof(struct rc_read));
    rc_of(rc)->pieces = sim_pool_new(rc->sim, "piece of a read", sizeof(struct rc_piece));
}

void rc_reads_release(struct model *rc)
{
    struct rc_state *state = rc_of(rc);

    for (unsigned p = 0; p < state->n_ports + state->n_integrated && state->port != NULL; p++) {
        for (uint32_t i = 0; state->port[p].read_tag != NULL && i < n_tags(state); i++)
            sim_cancel(rc->sim, &state->port[p].read_tag[i].timeout);
        free(state->port[p].read_tag);
    }
}
