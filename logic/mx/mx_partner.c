/*
 * What it does: Partners: the endpoints that this one has connected to, or that have connected to
 *   it, each known by NIC, number and session. A connection is a request and a reply, repeated
 *   until one comes. A partner ends when it does not acknowledge, when its NIC says that the
 *   endpoint is not there (or is there anew), or when it does not answer while something is hoped
 *   from it that it need not acknowledge: then it is asked, by a request to connect, every
 *   resend_ps.
 *   A partner that has ended may be connected again, though its session be the same and it have
 *   noticed nothing: numbers of messages go on then, beyond those of packets that may still come.
 *   The peer is told the first that is expected; it has not sent as many, knows by that, and ends
 *   on its side what was under way. Who asks after a connection that has ended is told so, ends it
 *   as well, and connects anew if a call waits for that.
 * Leaves out: throttling by session; the asking is not in Open-MX, whose large messages wait for
 *   ever.
 * Follows: Open-MX 0.9.2 libopen-mx/omx_partner.c, which numbers what it sends as the peer expects
 *   it (target_recv_seqnum_start), but expects number 1 again itself.
 */
#include "logic/mx/mx_internal.h"

#define FIRST_SEQUENCE 1u
#define ANEW_AHEAD     (2 * MX_WINDOW) /* nobody has sent so far ahead of what is expected */

static unsigned slot_of(uint64_t nic_id, uint8_t endpoint)
{
    return (unsigned)((nic_id ^ nic_id >> 6) * 16 + endpoint) % MX_PARTNER_SLOTS;
}

struct mx_partner *mx_partner_find(struct mx_lib *lib, uint64_t nic_id, uint8_t endpoint)
{
    struct mx_partner *partner = lib->partner[slot_of(nic_id, endpoint)];
    while (partner != NULL &&
           (partner->address.nic_id != nic_id || partner->address.endpoint != endpoint))
        partner = partner->next;
    return partner;
}

struct mx_partner *mx_partner_of_event(struct mx_lib *lib, const struct mx_event_source *source)
{
    struct mx_partner *partner = mx_partner_find(lib, mx_nic_from_bytes(source->nic),
                                                 source->endpoint);
    if (partner == NULL || partner->end != MX_SUCCESS || partner->address.session == 0 ||
        (uint8_t)partner->address.session != source->generation) {
        lib->stats.dropped++;
        return NULL;
    }
    partner->heard_ps = k_now_ps(lib->kernel);
    partner->n_pings = 0;
    return partner;
}

static void start_anew(struct mx_partner *partner)
{
    partner->next_send = partner->acked = FIRST_SEQUENCE;
    partner->next_match = partner->last_ack = FIRST_SEQUENCE;
    partner->ack_number = partner->ack_seen = 0;
    partner->end = MX_SUCCESS;
    partner->anew = false;
    partner->n_pings = 0;
}

struct mx_partner *mx_partner_get(struct mx_lib *lib, uint64_t nic_id, uint8_t endpoint)
{
    struct mx_partner *partner = mx_partner_find(lib, nic_id, endpoint);
    if (partner != NULL)
        return partner;
    const struct kaddr lines = mx_lines_get(lib, MX_PARTNER_BYTES);
    if (lines.v == 0)
        return NULL;
    partner = k_zalloc(sizeof *partner);
    partner->lib = lib;
    partner->lines = lines;
    partner->address = (struct mx_destination){ .nic_id = nic_id, .endpoint = endpoint };
    mx_list_init(&partner->waiting);
    mx_list_init(&partner->unacked);
    mx_list_init(&partner->unnotified);
    mx_list_init(&partner->partial);
    mx_list_init(&partner->early);
    start_anew(partner);
    partner->next = lib->partner[slot_of(nic_id, endpoint)];
    lib->partner[slot_of(nic_id, endpoint)] = partner;
    partner->all = lib->all_partners;
    lib->all_partners = partner;
    return partner;
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void end_waiting(struct mx_partner *partner, enum mx_code code)
{
    while (!mx_list_empty(&partner->waiting)) {
        struct mx_request *r = MX_ITEM(partner->waiting.next, queue);
        mx_list_remove(&r->queue);
        partner->lib->n_waiting--;
        mx_done(r, code, 0);
    }
}

void mx_partner_ends(struct mx_partner *partner, enum mx_code code)
{
    struct mx_lib *lib = partner->lib;
    if (partner->end != MX_SUCCESS)
        return;
    partner->end = code;
    partner->connection++;
    while (!mx_list_empty(&partner->unacked))
        mx_send_acked(MX_ITEM(partner->unacked.next, of_partner), code);
    while (!mx_list_empty(&partner->unnotified)) {
        struct mx_request *r = MX_ITEM(partner->unnotified.next, of_partner);
        mx_list_remove(&r->of_partner);
        mx_hope_ends(r);
        mx_region_put(lib, r);
        mx_done(r, code, 0);
    }
    end_waiting(partner, code);
    mx_receive_forget(partner, code);
    if (partner->need != MX_NEED_NO_ACK)
        mx_list_remove(&partner->acks);
    partner->need = MX_NEED_NO_ACK;
    if (partner->connecting) {
        partner->asked = true;
        partner->connect_result = -ENOENT;
    }
}

void mx_partner_free_all(struct mx_lib *lib)
{
    for (struct mx_partner *partner = lib->all_partners, *next; partner != NULL; partner = next) {
        next = partner->all;
        k_free(partner);
    }
    lib->all_partners = NULL;
}

/* ---- Connections ----------------------------------------------------------------------------- */

/* It has ended: the next connection, if it is of the same sessions. */
static void expect_anew(struct mx_partner *partner)
{
    if (partner->anew)
        return;
    partner->anew = true;
    partner->next_match = (uint16_t)(partner->next_match + ANEW_AHEAD);
    partner->last_ack = partner->next_match;
}

/* That connection is there: the peer expects number `target`. */
static void is_anew(struct mx_partner *partner, uint16_t target)
{
    expect_anew(partner);
    partner->anew = false;
    partner->next_send = partner->acked = target;
    partner->end = MX_SUCCESS;
}

static void ask(struct mx_partner *partner)
{
    struct mx_lib *lib = partner->lib;
    const struct mx_connect_command c = { .to = partner->address,
                                          .connect_sequence = ++partner->connect_sequence,
                                          .key = partner->key,
                                          .target_sequence = partner->next_match,
                                          .source_sequence = partner->next_send };
    lib->board->ops->connect(lib->port, &c);
}

int mx_partner_connect(struct mx_endpoint *ep, uint64_t nic_id, uint8_t endpoint, uint32_t key,
                       uint64_t until_ps, struct mx_peer *peer)
{
    struct mx_lib *lib = mx_lib_of(ep);
    struct mx_partner *partner = mx_partner_get(lib, nic_id, endpoint);
    if (partner == NULL)
        return -ENOMEM;
    if (partner->end != MX_SUCCESS)
        expect_anew(partner);
    partner->connecting = true;
    partner->asked = false;
    partner->key = key;
    while (!partner->asked && k_now_ps(lib->kernel) < until_ps) {
        uint64_t again_ps = k_now_ps(lib->kernel) + lib->options.resend_ps;
        again_ps = again_ps < until_ps ? again_ps : until_ps;
        ask(partner);
        for (;;) {
            mx_progress(lib);
            if (partner->asked || k_now_ps(lib->kernel) >= again_ps)
                break;
            mx_idle(lib, again_ps);
        }
    }
    partner->connecting = false;
    if (!partner->asked)
        return -ETIMEDOUT;
    peer->partner = partner;
    return partner->connect_result;
}

/* The one that it was; a call that connects waits for the next. */
static void has_gone(struct mx_partner *partner)
{
    const bool connecting = partner->connecting;
    partner->connecting = false;
    mx_partner_ends(partner, MX_PEER_DEAD);
    partner->connecting = connecting;
}

/* It is there, with this session. */
static void session_is(struct mx_partner *partner, uint32_t session)
{
    partner->heard_ps = k_now_ps(partner->lib->kernel);
    partner->n_pings = 0;
    if (partner->address.session == session)
        return;
    if (partner->address.session != 0)
        has_gone(partner);
    start_anew(partner);
    partner->address.session = session;
}

/* Of an endpoint that has been closed since: it comes late. */
static bool is_older(const struct mx_partner *partner, uint32_t session)
{
    return partner->address.session != 0 && (int32_t)(session - partner->address.session) < 0;
}

/* What it expects is further on than what has been sent, in this pair of sessions. */
static bool begins_anew(const struct mx_partner *partner, const union mx_event *event)
{
    return event->connect.source.session == partner->lib->port->session &&
           mx_after(event->connect.target_sequence, partner->next_send) > 0;
}

/* Whether the request is of a connection that has ended here. */
static bool is_over(const struct mx_partner *partner, const union mx_event *event)
{
    return partner != NULL && partner->end != MX_SUCCESS &&
           partner->address.session == event->connect.source_session &&
           !begins_anew(partner, event);
}

/* The connection that a request asked for, or asked after, has ended there. */
static void has_ended(struct mx_partner *partner, const union mx_event *event)
{
    session_is(partner, event->connect.source_session);
    if (partner->end == MX_SUCCESS && mx_after(event->connect.target_sequence, partner->acked) < 0)
        return; /* an earlier one */
    has_gone(partner);
    if (!partner->connecting)
        return;
    partner->anew = false; /* it has known what was expected so far */
    expect_anew(partner);
    ask(partner);
}

static void reply_event(struct mx_lib *lib, const union mx_event *event)
{
    struct mx_partner *partner = mx_partner_find(lib, mx_nic_from_bytes(event->connect.source.nic),
                                                 event->connect.source.endpoint);
    if (partner == NULL || event->connect.connect_sequence != partner->connect_sequence ||
        is_older(partner, event->connect.source_session))
        return;
    if (event->connect.status == MX_CONNECT_BAD_SESSION) {
        has_ended(partner, event);
        return;
    }
    if (event->connect.status == MX_CONNECT_DONE) {
        session_is(partner, event->connect.source_session);
        if (partner->end != MX_SUCCESS && partner->connecting)
            is_anew(partner, event->connect.target_sequence);
    } else if (partner->address.session != 0 &&
               partner->address.session != event->connect.source_session)
        has_gone(partner);
    else { /* a reply all the same */
        partner->heard_ps = k_now_ps(lib->kernel);
        partner->n_pings = 0;
    }
    partner->asked = true;
    partner->connect_result = event->connect.status == MX_CONNECT_DONE ? 0 : -EPERM;
}

static void request_event(struct mx_lib *lib, const union mx_event *event)
{
    const struct mx_event_source *source = &event->connect.source;
    const uint64_t nic_id = mx_nic_from_bytes(source->nic);
    struct mx_partner *partner = mx_partner_find(lib, nic_id, source->endpoint);
    struct mx_connect_command c = { .to = { .nic_id = nic_id,
                                            .endpoint = source->endpoint,
                                            .session = event->connect.source_session },
                                    .is_reply = true,
                                    .connect_sequence = event->connect.connect_sequence,
                                    .status = MX_CONNECT_BAD_KEY };
    if (is_over(partner, event)) {
        c.status = MX_CONNECT_BAD_SESSION;
        c.target_sequence = (uint16_t)(partner->next_match - (partner->anew ? ANEW_AHEAD : 0));
    } else if (event->connect.key == lib->ep.key) {
        partner = mx_partner_get(lib, nic_id, source->endpoint);
        if (partner == NULL || is_older(partner, event->connect.source_session))
            return;
        session_is(partner, event->connect.source_session);
        if (begins_anew(partner, event)) {
            has_gone(partner);
            if (mx_after(event->connect.source_sequence, partner->next_match) >= 0)
                partner->anew = false; /* it has known that: its packets may be on their way */
            is_anew(partner, event->connect.target_sequence);
        }
        c.status = MX_CONNECT_DONE;
        c.target_sequence = partner->next_match;
    }
    lib->board->ops->connect(lib->port, &c);
}

void mx_partner_connect_event(struct mx_lib *lib, const union mx_event *event)
{
    if (event->connect.is_reply)
        reply_event(lib, event);
    else
        request_event(lib, event);
}

void mx_partner_nack_event(struct mx_lib *lib, const union mx_event *event)
{
    const struct mx_event_source *source = &event->nack.source;
    struct mx_partner *partner = mx_partner_find(lib, mx_nic_from_bytes(source->nic),
                                                 source->endpoint);
    if (partner == NULL)
        return;
    if (event->nack.refused == MX_PACKET_CONNECT) {
        if (partner->connecting) {
            partner->asked = true;
            partner->connect_result = -ENOENT;
        }
    } else if (event->nack.refused_session != partner->address.session)
        return; /* of an earlier connection */
    if (partner->address.session != 0)
        mx_partner_ends(partner, MX_BAD_ENDPOINT);
}

/* ---- Is it there? ---------------------------------------------------------------------------- */

void mx_hope(struct mx_request *r)
{
    struct mx_lib *lib = r->partner->lib;
    const uint64_t at_ps = k_now_ps(lib->kernel) + lib->options.resend_ps;
    r->hope = true;
    r->partner->n_hopes++;
    if (lib->ping_ps == UINT64_MAX)
        lib->ping_ps = at_ps;
}

void mx_hope_ends(struct mx_request *r)
{
    if (r->hope)
        r->partner->n_hopes--;
    r->hope = false;
}

void mx_partners_ping(struct mx_lib *lib, uint64_t now_ps)
{
    bool any = false;
    if (now_ps < lib->ping_ps)
        return;
    for (struct mx_partner *partner = lib->all_partners; partner != NULL; partner = partner->all) {
        if (partner->n_hopes == 0 || partner->end != MX_SUCCESS)
            continue;
        any = true;
        if (partner->heard_ps + lib->options.resend_ps > now_ps || partner->connecting)
            continue;
        if (partner->n_pings++ >= lib->options.resends_max)
            mx_partner_ends(partner, MX_PEER_DEAD);
        else
            ask(partner);
    }
    lib->ping_ps = any ? now_ps + lib->options.resend_ps : UINT64_MAX;
}
