/*
 * What it does: Receives messages: brings those of a partner into the order of their numbers, finds
 *   the receive that each meets, puts medium ones together from their fragments. A message that
 *   comes before its turn is kept as if nobody had asked for it, and looks for its receive when its
 *   turn comes.
 * Leaves out: tables of matching (the lists are searched one by one).
 * Follows: Open-MX 0.9.2 libopen-mx/omx_recv.c (omx__process_recv, early packets, partial mediums).
 * Costs: mx_lib_call_cycles per receive posted; the copies from ring to segments, or to a buffer
 *   and from there; the lines of request and partner.
 */
#include "logic/mx/mx_internal.h"

static bool fits(uint64_t message, uint64_t match, uint64_t mask)
{
    return (message & mask) == (match & mask);
}

static struct kaddr kept_of(const struct mx_request *r)
{
    return r->buffer != NULL ? r->buffer->page->addr : kaddr_add(r->lines, MX_FIELDS_BYTES);
}

static bool is_whole(const struct mx_arrival *a)
{
    return a->kind != MX_KIND_MEDIUM || a->arrived >= a->bytes;
}

void mx_receive_ends(struct mx_request *r, enum mx_code code, uint64_t bytes)
{
    mx_hope_ends(r);
    if (code == MX_SUCCESS && r->arrival.bytes > r->bytes)
        code = MX_TRUNCATED;
    r->partner->lib->stats.received++;
    mx_done(r, code, bytes < r->bytes ? bytes : r->bytes);
}

/* ---- Data ------------------------------------------------------------------------------------ */

/* False: the fragment was there. */
static bool add_fragment(struct mx_lib *lib, struct mx_request *r, const union mx_event *event,
                         struct kaddr data)
{
    struct mx_arrival *a = &r->arrival;
    const uint8_t bit = (uint8_t)(1u << event->message.fragment);
    const uint64_t at = (uint64_t)event->message.fragment * MX_FRAGMENT_BYTES;
    if (a->fragments & bit)
        return false;
    a->fragments |= bit;
    if (r->kind == MX_KIND_RECEIVE)
        mx_scatter(lib, r, at, data, event->message.fragment_bytes);
    else
        mx_buffer_fill(lib, kaddr_add(kept_of(r), at), data, event->message.fragment_bytes);
    a->arrived += event->message.fragment_bytes;
    return true;
}

static void add_data(struct mx_lib *lib, struct mx_request *r, const union mx_event *event,
                     struct kaddr data)
{
    const struct mx_arrival *a = &r->arrival;
    if (a->kind == MX_KIND_TINY && r->kind == MX_KIND_RECEIVE)
        mx_scatter_bytes(lib, r, event->tiny.data, a->bytes);
    else if (a->kind == MX_KIND_TINY)
        memcpy(r->tiny, event->tiny.data, a->bytes);
    else if (a->kind == MX_KIND_SMALL && r->kind == MX_KIND_RECEIVE)
        mx_scatter(lib, r, 0, data, a->bytes);
    else if (a->kind == MX_KIND_SMALL)
        mx_buffer_fill(lib, kept_of(r), data, a->bytes);
    else if (a->kind == MX_KIND_MEDIUM)
        add_fragment(lib, r, event, data);
}

static void fill(struct mx_request *r, struct mx_partner *partner, const union mx_event *event)
{
    struct mx_arrival *a = &r->arrival;
    *a = (struct mx_arrival){ .sequence = event->message.source.sequence,
                              .connection = partner->connection };
    r->partner = partner;
    switch (event->type) {
    case MX_EVENT_TINY:
        a->kind = MX_KIND_TINY;
        a->bytes = event->tiny.bytes;
        break;
    case MX_EVENT_NOTIFY:
        a->kind = MX_KIND_NOTIFY;
        r->event = *event;
        return;
    default:
        a->kind = event->type == MX_EVENT_SMALL    ? MX_KIND_SMALL
                  : event->type == MX_EVENT_MEDIUM ? MX_KIND_MEDIUM
                                                   : MX_KIND_LARGE;
        a->bytes = event->message.bytes;
        a->region = event->message.region;
        a->region_sequence = event->message.region_sequence;
    }
    r->status.peer.partner = partner;
    r->status.match = event->message.match;
    r->status.message_bytes = a->bytes;
}

/* A request that keeps the message. NULL: no memory. */
static struct mx_request *keep(struct mx_lib *lib, struct mx_partner *partner,
                               const union mx_event *event, struct kaddr data)
{
    struct mx_request *r = mx_request_get(lib, MX_KIND_UNEXPECTED);
    if (r == NULL)
        return NULL;
    fill(r, partner, event);
    if (r->arrival.kind == MX_KIND_MEDIUM) {
        r->buffer = mx_buffer_get(lib);
        if (r->buffer == NULL) {
            mx_request_put(lib, r);
            return NULL;
        }
    }
    add_data(lib, r, event, data);
    return r;
}

/* ---- Meeting --------------------------------------------------------------------------------- */

static struct mx_request *find_posted(struct mx_lib *lib, uint64_t match)
{
    for (struct mx_link *l = lib->posted.next; l != &lib->posted; l = l->next) {
        struct mx_request *r = MX_ITEM(l, queue);
        if (fits(match, r->match, r->mask))
            return r;
    }
    return NULL;
}

/* A receive that has met a message of which it has all that has come so far. */
static void met(struct mx_request *r)
{
    const struct mx_arrival *a = &r->arrival;
    if (a->kind == MX_KIND_LARGE)
        mx_large_pull(r);
    else if (is_whole(a))
        mx_receive_ends(r, MX_SUCCESS, a->bytes);
}

/* The message that `u` keeps is for r. */
static void hand_over(struct mx_lib *lib, struct mx_request *r, struct mx_request *u)
{
    const struct mx_arrival *a = &u->arrival;
    void *const context = r->status.context;
    r->partner = u->partner;
    r->arrival = *a;
    r->status = u->status;
    r->status.context = context;
    if (a->kind == MX_KIND_TINY)
        mx_scatter_bytes(lib, r, u->tiny, a->bytes);
    else if (a->kind == MX_KIND_SMALL)
        mx_scatter(lib, r, 0, kept_of(u), a->bytes);
    for (unsigned i = 0; i < MX_FRAGMENTS_MAX && a->kind == MX_KIND_MEDIUM; i++) {
        const uint64_t at = (uint64_t)i * MX_FRAGMENT_BYTES, left = a->bytes - at;
        if (a->fragments & 1u << i)
            mx_scatter(lib, r, at, kaddr_add(kept_of(u), at),
                       left < MX_FRAGMENT_BYTES ? left : MX_FRAGMENT_BYTES);
    }
    if (mx_listed(&u->partial)) { /* the same place */
        mx_hope_ends(u);
        mx_list_append(&u->partial, &r->partial);
        mx_list_remove(&u->partial);
        mx_hope(r);
    }
    mx_request_put(lib, u);
    met(r);
}

static void add_partial(struct mx_request *r)
{
    if (is_whole(&r->arrival))
        return;
    mx_list_append(&r->partner->partial, &r->partial);
    mx_hope(r);
}

/* The turn of a message that is kept. */
static void introduce(struct mx_lib *lib, struct mx_request *u)
{
    u->partner->next_match++;
    if (u->arrival.kind == MX_KIND_NOTIFY) {
        mx_large_notified(u->partner, &u->event);
        mx_request_put(lib, u);
        return;
    }
    add_partial(u);
    struct mx_request *r = find_posted(lib, u->status.match);
    if (r != NULL) {
        mx_list_remove(&r->queue);
        hand_over(lib, r, u);
    } else {
        lib->stats.unexpected++;
        mx_list_append(&lib->unexpected, &u->queue);
    }
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* A message of an earlier number: a fragment, or it has come twice. */
static void old_event(struct mx_lib *lib, struct mx_partner *partner, const union mx_event *event,
                      struct kaddr data)
{
    for (struct mx_link *l = partner->partial.next; l != &partner->partial; l = l->next) {
        struct mx_request *r = MX_ITEM(l, partial);
        if (r->arrival.sequence != event->message.source.sequence)
            continue;
        if (!add_fragment(lib, r, event, data))
            lib->stats.duplicates++;
        else if (is_whole(&r->arrival)) {
            mx_list_remove(&r->partial);
            mx_hope_ends(r);
            if (r->kind == MX_KIND_RECEIVE)
                mx_receive_ends(r, MX_SUCCESS, r->arrival.bytes);
        }
        return;
    }
    lib->stats.duplicates++;
    mx_ack_now(partner);
}

static void early_event(struct mx_lib *lib, struct mx_partner *partner, const union mx_event *event,
                        struct kaddr data)
{
    const uint16_t sequence = event->message.source.sequence;
    struct mx_link *l = partner->early.next;
    while (l != &partner->early && mx_after(sequence, MX_ITEM(l, queue)->arrival.sequence) > 0)
        l = l->next;
    if (l != &partner->early && MX_ITEM(l, queue)->arrival.sequence == sequence) {
        if (event->type != MX_EVENT_MEDIUM || !add_fragment(lib, MX_ITEM(l, queue), event, data))
            lib->stats.duplicates++;
        return;
    }
    struct mx_request *u = keep(lib, partner, event, data);
    if (u == NULL)
        return;
    lib->stats.early++;
    mx_list_append(l, &u->queue); /* in front of l */
}

static bool in_turn(struct mx_lib *lib, struct mx_partner *partner, const union mx_event *event,
                    struct kaddr data)
{
    if (event->type == MX_EVENT_NOTIFY) {
        partner->next_match++;
        mx_large_notified(partner, event);
        return true;
    }
    struct mx_request *r = find_posted(lib, event->message.match);
    if (r == NULL) {
        struct mx_request *u = keep(lib, partner, event, data);
        if (u != NULL)
            introduce(lib, u);
        return u != NULL;
    }
    mx_list_remove(&r->queue);
    partner->next_match++;
    k_touch_write(lib->kernel, r->lines, MX_FIELDS_BYTES);
    fill(r, partner, event);
    add_data(lib, r, event, data);
    add_partial(r);
    met(r);
    return true;
}

void mx_receive_event(struct mx_lib *lib, const union mx_event *event, struct kaddr data)
{
    struct mx_partner *partner = mx_partner_of_event(lib, &event->message.source);
    if (partner == NULL)
        return;
    k_touch_write(lib->kernel, partner->lines, K_LINE_BYTES);
    mx_ack_received(partner, event->message.source.ack);
    const int ahead = mx_after(event->message.source.sequence, partner->next_match);
    if (ahead < 0)
        old_event(lib, partner, event, data);
    else if (ahead > 0 && ahead < (int)MX_WINDOW)
        early_event(lib, partner, event, data);
    else if (ahead > 0 || !in_turn(lib, partner, event, data)) {
        lib->stats.dropped++;
        return;
    }
    while (!mx_list_empty(&partner->early)) {
        struct mx_request *u = MX_ITEM(partner->early.next, queue);
        if (u->arrival.sequence != partner->next_match)
            break;
        mx_list_remove(&u->queue);
        introduce(lib, u);
    }
    mx_ack_advance(partner);
}

void mx_receive_forget(struct mx_partner *partner, enum mx_code code)
{
    struct mx_lib *lib = partner->lib;
    while (!mx_list_empty(&partner->partial)) {
        struct mx_request *r = MX_ITEM(partner->partial.next, partial);
        mx_list_remove(&r->partial);
        mx_hope_ends(r);
        if (r->kind == MX_KIND_RECEIVE)
            mx_receive_ends(r, code, 0);
    }
    while (!mx_list_empty(&partner->early)) {
        struct mx_request *u = MX_ITEM(partner->early.next, queue);
        mx_list_remove(&u->queue);
        mx_request_put(lib, u);
    }
    for (struct mx_link *l = lib->unexpected.next, *next; l != &lib->unexpected; l = next) {
        struct mx_request *u = MX_ITEM(l, queue);
        next = l->next;
        if (u->partner != partner || (is_whole(&u->arrival) && u->arrival.kind != MX_KIND_LARGE))
            continue;
        mx_list_remove(&u->queue);
        mx_request_put(lib, u);
    }
}

/* ---- Calls ----------------------------------------------------------------------------------- */

int mx_receive_post(struct mx_endpoint *ep, const struct mx_segment *segment, unsigned n,
                    uint64_t match, uint64_t mask, void *context, struct mx_request **request)
{
    struct mx_lib *lib = mx_lib_of(ep);
    struct mx_request *r = mx_request_get(lib, MX_KIND_RECEIVE);
    if (r == NULL)
        return -ENOMEM;
    k_run(lib->kernel, K_TEXT_MX_RECEIVE, lib->costs->mx_lib_call_cycles);
    if (mx_request_segments(r, segment, n) != 0) {
        mx_request_put(lib, r);
        return -EINVAL;
    }
    r->match = match;
    r->mask = mask;
    r->user = true;
    r->status.context = context;
    r->status.match = match & mask;
    *request = r;
    for (struct mx_link *l = lib->unexpected.next; l != &lib->unexpected; l = l->next) {
        struct mx_request *u = MX_ITEM(l, queue);
        if (!fits(u->status.match, match, mask))
            continue;
        mx_list_remove(&u->queue);
        k_touch(lib->kernel, u->lines, MX_FIELDS_BYTES);
        hand_over(lib, r, u);
        return 0;
    }
    mx_list_append(&lib->posted, &r->queue);
    return 0;
}

bool mx_receive_probe(struct mx_lib *lib, uint64_t match, uint64_t mask, struct mx_status *status)
{
    for (const struct mx_link *l = lib->unexpected.next; l != &lib->unexpected; l = l->next) {
        const struct mx_request *u = K_CONTAINER(l, const struct mx_request, queue);
        if (!fits(u->status.match, match, mask))
            continue;
        *status = u->status;
        return true;
    }
    return false;
}
