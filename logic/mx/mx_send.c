/*
 * What it does: Sends messages. Tiny, small and medium ones are kept (in the request, or in slots
 *   of the send ring) until they are acknowledged, and have ended for the caller as soon as they
 *   are there. A large one is announced by a rendezvous, pulled by the receiver, and ends when that
 *   says so. A message without room (slots, a region, the window of its pair) waits for it, and
 *   those of its pair behind it, but for notifications. Large ones have half of the regions at most:
 *   two endpoints that had them all for messages to each other could pull none of these.
 * Follows: Open-MX 0.9.2 libopen-mx/omx_send.c (omx__submit_isend_*, large_sends_avail_nr,
 *   omx__notify_request_done_early).
 * Costs: mx_lib_call_cycles per message; the copy into what is kept; the lines of request and
 *   partner.
 */
#include "logic/mx/mx_internal.h"

static bool is_local(const struct mx_partner *partner)
{
    return partner->address.nic_id == partner->lib->board->nic_id;
}

static enum mx_kind kind_of(const struct mx_lib *lib, const struct mx_partner *partner,
                            uint64_t bytes)
{
    uint32_t medium_bytes = MX_MEDIUM_BYTES;
    if (is_local(partner) && lib->port->local_bytes != 0)
        medium_bytes = lib->port->local_bytes;
    if (bytes <= MX_TINY_BYTES)
        return MX_KIND_TINY;
    if (bytes <= MX_SMALL_BYTES && !(is_local(partner) && lib->port->queue[MX_QUEUE_LOCAL].v != 0))
        return MX_KIND_SMALL;
    return bytes <= medium_bytes ? MX_KIND_MEDIUM : MX_KIND_LARGE;
}

/* ---- Commands -------------------------------------------------------------------------------- */

static void send_medium(struct mx_lib *lib, struct mx_request *r, const struct mx_send *s)
{
    const struct mx_board_ops *ops = lib->board->ops;
    uint64_t at = 0;
    for (unsigned i = 0; i < r->n_slots; i++) {
        const uint64_t left = r->bytes - at;
        const uint16_t n = (uint16_t)(left < MX_FRAGMENT_BYTES ? left : MX_FRAGMENT_BYTES);
        if (r->resends == 0)
            mx_gather(lib, r, at, lib->port->send[r->slot[i]], n);
        r->n_sending++;
        lib->n_expected++;
        if (ops->send_medium(lib->port, s, (uint8_t)i, n, r->slot[i]) != 0) {
            r->n_sending--; /* it has been sent, or is lost and sent again */
            lib->n_expected--;
        }
        at += n;
    }
}

void mx_send_again(struct mx_request *r)
{
    struct mx_partner *partner = r->partner;
    struct mx_lib *lib = partner->lib;
    const struct mx_board_ops *ops = lib->board->ops;
    const struct mx_send s = { .to = partner->address,
                               .sequence = r->sequence,
                               .ack = mx_ack_of(partner),
                               .match = r->match,
                               .bytes = (uint32_t)r->bytes };
    const struct mx_segment kept = { kaddr_add(r->lines, MX_FIELDS_BYTES), r->bytes };
    r->sent_ps = k_now_ps(lib->kernel);
    switch (r->kind) {
    case MX_KIND_TINY: ops->send_tiny(lib->port, &s, r->tiny); break;
    case MX_KIND_SMALL: ops->send_small(lib->port, &s, &kept, 1); break;
    case MX_KIND_MEDIUM: send_medium(lib, r, &s); break;
    case MX_KIND_LARGE:
        ops->send_rendezvous(lib->port, &s, r->region->number, r->region->sequence);
        break;
    default: ops->notify(lib->port, &s, r->far_region, r->far_sequence);
    }
    mx_ack_sent(partner);
}

/* ---- Beginning ------------------------------------------------------------------------------- */

/* False: there is no room. */
static bool take_room(struct mx_lib *lib, struct mx_request *r)
{
    if (mx_after(r->partner->next_send, r->partner->acked) >= (int)MX_WINDOW)
        return false;
    if (r->kind == MX_KIND_LARGE) {
        if (lib->n_large_sends == MX_LARGE_SENDS || mx_region_get(lib, r, r->bytes) != 0)
            return false;
        lib->n_large_sends++;
        return true;
    }
    if (r->kind == MX_KIND_MEDIUM) {
        const unsigned n = (unsigned)((r->bytes + MX_FRAGMENT_BYTES - 1) / MX_FRAGMENT_BYTES);
        if (lib->n_free_slots < n || !mx_may_send(lib, n))
            return false;
        for (unsigned i = 0; i < n; i++) {
            r->slot[i] = lib->free_slot[--lib->n_free_slots];
            lib->slot_user[r->slot[i]] = r;
        }
        r->n_slots = (uint8_t)n;
    }
    return true;
}

static void begin(struct mx_lib *lib, struct mx_request *r)
{
    struct mx_partner *partner = r->partner;
    r->sequence = partner->next_send++;
    k_touch_write(lib->kernel, partner->lines, K_LINE_BYTES);
    if (r->kind == MX_KIND_TINY)
        mx_gather_bytes(lib, r, r->tiny, r->bytes);
    else if (r->kind == MX_KIND_SMALL)
        mx_gather(lib, r, 0, kaddr_add(r->lines, MX_FIELDS_BYTES), r->bytes);
    mx_unacked_add(r);
    mx_send_again(r);
    if (r->kind <= MX_KIND_MEDIUM)
        mx_done(r, MX_SUCCESS, r->bytes);
    lib->stats.sent += r->kind != MX_KIND_NOTIFY;
}

/* What a message waits behind. A notification overtakes those of the caller: what they wait for may
 * be regions that notifications like it give back. */
static struct mx_link *place_of(const struct mx_request *r)
{
    struct mx_link *const waiting = &r->partner->waiting, *l = waiting->next;
    if (r->kind != MX_KIND_NOTIFY)
        return waiting;
    while (l != waiting && MX_ITEM(l, queue)->kind == MX_KIND_NOTIFY)
        l = l->next;
    return l;
}

static void begin_or_wait(struct mx_lib *lib, struct mx_request *r)
{
    struct mx_link *const place = place_of(r); /* in front of it */
    if (r->partner->end != MX_SUCCESS)
        mx_done(r, r->partner->end, 0);
    else if (place->before == &r->partner->waiting && take_room(lib, r))
        begin(lib, r);
    else {
        mx_list_append(place, &r->queue);
        lib->n_waiting++;
    }
}

int mx_send_post(struct mx_endpoint *ep, const struct mx_segment *segment, unsigned n,
                 const struct mx_peer *to, uint64_t match, void *context,
                 struct mx_request **request)
{
    struct mx_lib *lib = mx_lib_of(ep);
    k_run(lib->kernel, K_TEXT_MX_SEND, lib->costs->mx_lib_call_cycles);
    struct mx_request *r = mx_request_get(lib, MX_KIND_TINY);
    if (r == NULL)
        return -ENOMEM;
    if (mx_request_segments(r, segment, n) != 0) {
        mx_request_put(lib, r);
        return -EINVAL;
    }
    r->partner = to->partner;
    r->kind = kind_of(lib, r->partner, r->bytes);
    r->match = match;
    r->user = true;
    r->status = (struct mx_status){
        .peer = *to, .match = match, .message_bytes = r->bytes, .context = context
    };
    *request = r;
    begin_or_wait(lib, r);
    return 0;
}

void mx_send_notify(struct mx_lib *lib, struct mx_partner *partner, uint8_t region,
                    uint8_t region_sequence, uint32_t bytes)
{
    struct mx_request *r = partner->end == MX_SUCCESS ? mx_request_get(lib, MX_KIND_NOTIFY) : NULL;
    if (r == NULL)
        return;
    r->partner = partner;
    r->far_region = region;
    r->far_sequence = region_sequence;
    r->bytes = bytes;
    begin_or_wait(lib, r);
}

void mx_send_waiting(struct mx_lib *lib)
{
    bool any = true;
    lib->room = false;
    while (any && lib->n_waiting > 0) { /* one of each partner at a time */
        any = false;
        for (struct mx_partner *p = lib->all_partners; p != NULL; p = p->all) {
            struct mx_request *r = MX_ITEM(p->waiting.next, queue);
            if (mx_list_empty(&p->waiting) || !take_room(lib, r))
                continue;
            mx_list_remove(&r->queue);
            lib->n_waiting--;
            begin(lib, r);
            any = true;
        }
    }
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void free_kept(struct mx_lib *lib, struct mx_request *r)
{
    for (unsigned i = 0; i < r->n_slots; i++) {
        lib->slot_user[r->slot[i]] = NULL;
        lib->free_slot[lib->n_free_slots++] = r->slot[i];
    }
    lib->room = lib->room || r->n_slots > 0;
    r->n_slots = 0;
    if (!r->user)
        mx_request_put(lib, r);
}

void mx_send_sent_event(struct mx_lib *lib, const union mx_event *event)
{
    struct mx_request *r = lib->slot_user[event->sent.slot];
    lib->n_expected--;
    lib->room = true;
    if (r == NULL)
        return;
    if (--r->n_sending == 0 && !r->need_ack)
        free_kept(lib, r);
}

void mx_send_acked(struct mx_request *r, enum mx_code code)
{
    struct mx_partner *partner = r->partner;
    struct mx_lib *lib = partner->lib;
    mx_list_remove(&r->unacked);
    mx_list_remove(&r->of_partner);
    r->need_ack = false;
    if (r->kind == MX_KIND_LARGE) {
        if (code == MX_SUCCESS) {
            mx_hope(r);
            mx_list_append(&partner->unnotified, &r->of_partner);
            return;
        }
        mx_region_put(lib, r);
        mx_done(r, code, 0);
    } else if (r->n_sending == 0)
        free_kept(lib, r);
}
