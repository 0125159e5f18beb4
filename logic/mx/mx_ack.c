/*
 * What it does: Acknowledgements and sending again. Every message carries the number up to which
 *   all of its receiver's messages have arrived; an acknowledgement goes by itself if none has gone
 *   with a message for ack_delay_ps, at once if acks_max messages wait for it, or if a message came
 *   again. What is not acknowledged within resend_ps is sent again, resends_max times; then the
 *   peer is dead.
 * Follows: Open-MX 0.9.2 libopen-mx/omx_ack.c, omx_recv.c (not_acked_max), omx_lib.h (delays).
 */
#include "logic/mx/mx_internal.h"

uint16_t mx_ack_of(const struct mx_partner *partner)
{
    if (mx_list_empty(&partner->partial))
        return partner->next_match;
    return MX_ITEM(partner->partial.next, partial)->arrival.sequence;
}

/* ---- Ours ------------------------------------------------------------------------------------ */

static void need(struct mx_partner *partner, enum mx_need how)
{
    struct mx_lib *lib = partner->lib;
    if (partner->need >= how)
        return;
    if (partner->need == MX_NEED_NO_ACK)
        partner->need_ps = k_now_ps(lib->kernel);
    else
        mx_list_remove(&partner->acks);
    partner->need = how;
    mx_list_append(how == MX_NEED_ACK_NOW ? &lib->acks_now : &lib->acks_later, &partner->acks);
}

void mx_ack_advance(struct mx_partner *partner)
{
    const int n = mx_after(mx_ack_of(partner), partner->last_ack);
    if (n > 0)
        need(partner,
             n >= (int)partner->lib->options.acks_max ? MX_NEED_ACK_NOW : MX_NEED_ACK_LATER);
}

void mx_ack_now(struct mx_partner *partner)
{
    need(partner, MX_NEED_ACK_NOW);
}

void mx_ack_sent(struct mx_partner *partner)
{
    partner->last_ack = mx_ack_of(partner);
    if (partner->need != MX_NEED_NO_ACK)
        mx_list_remove(&partner->acks);
    partner->need = MX_NEED_NO_ACK;
}

static void send_ack(struct mx_partner *partner)
{
    struct mx_lib *lib = partner->lib;
    lib->stats.acks++;
    mx_ack_sent(partner);
    lib->board->ops->ack(lib->port, &partner->address, ++partner->ack_number, partner->last_ack);
}

void mx_acks_send(struct mx_lib *lib, uint64_t now_ps, bool all)
{
    while (!mx_list_empty(&lib->acks_now))
        send_ack(K_CONTAINER(lib->acks_now.next, struct mx_partner, acks));
    while (!mx_list_empty(&lib->acks_later)) {
        struct mx_partner *partner = K_CONTAINER(lib->acks_later.next, struct mx_partner, acks);
        if (!all && partner->need_ps + lib->options.ack_delay_ps > now_ps)
            break;
        send_ack(partner);
    }
}

/* ---- The peers' ------------------------------------------------------------------------------ */

void mx_ack_received(struct mx_partner *partner, uint16_t ack)
{
    if (mx_after(ack, partner->acked) <= 0 || mx_after(ack, partner->next_send) > 0)
        return;
    partner->acked = ack;
    partner->lib->room = true;
    while (!mx_list_empty(&partner->unacked)) {
        struct mx_request *r = MX_ITEM(partner->unacked.next, of_partner);
        if (mx_after(ack, r->sequence) <= 0)
            break;
        mx_send_acked(r, MX_SUCCESS);
    }
}

void mx_ack_event(struct mx_lib *lib, const union mx_event *event)
{
    const struct mx_event_source *source = &event->ack.source;
    struct mx_partner *partner = mx_partner_of_event(lib, source);
    if (partner == NULL || (int32_t)(event->ack.number - partner->ack_seen) <= 0)
        return;
    partner->ack_seen = event->ack.number;
    mx_ack_received(partner, source->ack);
}

/* ---- Sending again --------------------------------------------------------------------------- */

void mx_unacked_add(struct mx_request *r)
{
    struct mx_lib *lib = r->partner->lib;
    r->need_ack = true;
    mx_list_append(&lib->unacked, &r->unacked);
    mx_list_append(&r->partner->unacked, &r->of_partner);
}

void mx_resend(struct mx_lib *lib, uint64_t now_ps)
{
    /* What has come meanwhile is looked at before all of it is sent again. */
    for (unsigned n = 0; n < MX_EVENTS_AT_ONCE && !mx_list_empty(&lib->unacked); n++) {
        struct mx_request *r = MX_ITEM(lib->unacked.next, unacked);
        if (r->sent_ps + lib->options.resend_ps > now_ps)
            return;
        if (r->resends >= lib->options.resends_max) {
            mx_partner_ends(r->partner, MX_PEER_DEAD);
            continue;
        }
        mx_list_remove(&r->unacked);
        mx_list_append(&lib->unacked, &r->unacked);
        r->sent_ps = now_ps;
        if (r->n_sending > 0 || !mx_may_send(lib, r->n_slots))
            continue; /* the board has not even sent all of it; or there is no room for its
                       * events */
        r->resends++;
        lib->stats.resent++;
        mx_send_again(r);
    }
}

uint64_t mx_next_deadline(const struct mx_lib *lib)
{
    uint64_t at_ps = UINT64_MAX;
    const uint64_t now_ps = k_now_ps(lib->kernel);
    if (!mx_list_empty(&lib->acks_now))
        return now_ps;
    if (!mx_list_empty(&lib->unacked))
        at_ps = MX_ITEM(lib->unacked.next, unacked)->sent_ps + lib->options.resend_ps;
    if (!mx_list_empty(&lib->acks_later)) {
        const struct mx_partner *partner = K_CONTAINER(lib->acks_later.next, struct mx_partner,
                                                       acks);
        const uint64_t ack_ps = partner->need_ps + lib->options.ack_delay_ps;
        at_ps = ack_ps < at_ps ? ack_ps : at_ps;
    }
    if (lib->n_waiting > 0 || !mx_list_empty(&lib->pullable))
        at_ps = lib->retry_ps < at_ps ? lib->retry_ps : at_ps;
    return lib->ping_ps < at_ps ? lib->ping_ps : at_ps;
}
