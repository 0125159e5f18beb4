/*
 * What it does: requests and replies between two hosts, and heartbeats. A host writes a message
 *   into the peer's memory through a window and rings a doorbell; a server thread answers. A pair
 *   of hosts has one request under way in each direction; nobody polls instead of taking
 *   interrupts. A request is repeated until it is answered, and carried out once; a peer is given
 *   up when its heartbeats end, not when it is slow.
 * Follows: our own protocol; the papers only say that the modules of two hosts communicate.
 * Costs: a store to the window for every 8 bytes. A request takes two interrupts and two wake-ups.
 */
#include "logic/lending/lending_internal.h"

#include <stdio.h>
#include <string.h>

#define WAIT_STEP (50 * K_US) /* the wake-up may come before the wait */
#define REPEAT_PS (5 * K_MS)  /* a request without a reply is sent again */

#define NUMBER_SHIFT 48u /* in a heartbeat */

struct lend_message {
    struct lend_header head;
    uint8_t body[BODY_BYTES];
};

struct kaddr lend_mailbox(const struct lend_host *host, unsigned box, unsigned offset)
{
    return kaddr_add(host->pool, (uint64_t)box * LEND_MAILBOX_BYTES + offset);
}

/* Writes into the peer's mailbox for us, the first word last, and rings the doorbell. */
static void send(struct lend_connection *c, unsigned box_offset, struct lend_message *message,
                 unsigned doorbell)
{
    const unsigned n = (unsigned)(sizeof message->head + message->head.bytes + 7) / 8;
    for (unsigned i = n; i-- > 0;) {
        uint64_t word;
        memcpy(&word, (const uint8_t *)message + 8 * (size_t)i, 8);
        lend_mailbox_write(c, box_offset + 8 * (uint64_t)i, word);
    }
    lend_ring(c, doorbell);
}

static void load(struct lend_host *host, unsigned box, unsigned box_offset,
                 struct lend_message *message)
{
    struct kaddr at = lend_mailbox(host, box, box_offset);
    k_load(host->kernel, at, &message->head, sizeof message->head);
    if (message->head.bytes > BODY_BYTES)
        message->head.bytes = BODY_BYTES;
    k_load(host->kernel, kaddr_add(at, sizeof message->head), message->body, message->head.bytes);
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* The peer has let our CPUs in: it has answered our hello, or sends heartbeats. */
static bool is_heard(struct lend_connection *c)
{
    uint64_t heartbeat;
    if (c->heard)
        return true;
    k_peek(c->host->kernel, lend_mailbox(c->host, c->box, BOX_HEARTBEAT), &heartbeat,
           sizeof heartbeat);
    c->heard = heartbeat >> NUMBER_SHIFT == c->number;
    return c->heard;
}

static bool is_answered(struct lend_connection *c)
{
    struct lend_header head;
    k_peek(c->host->kernel, lend_mailbox(c->host, c->box, BOX_REPLY), &head, sizeof head);
    return head.sequence == c->sequence && head.connection == c->number;
}

/* Sends the request until the reply is here, or the connection lost. */
static int ask(struct lend_connection *c, struct lend_message *message, struct lend_error *error)
{
    struct kernel *kernel = c->host->kernel;
    uint64_t again_ps = 0;
    message->head.sequence = ++c->sequence;
    message->head.connection = c->peer_number;
    while (c->state == CONNECTION_UP && !c->host->dead && !is_answered(c)) {
        if (k_now_ps(kernel) >= again_ps && is_heard(c)) {
            message->head.attempt++;
            send(c, BOX_REQUEST, message, DOORBELL_REQUEST);
            again_ps = k_now_ps(kernel) + REPEAT_PS;
        }
        k_wait(kernel, &c->reply, k_now_ps(kernel) + WAIT_STEP);
    }
    return c->state == CONNECTION_UP && !c->host->dead
               ? 0
               : lend_fail(error, -ECONNRESET, "host %u (node %u) was lost", c->peer, c->node);
}

int lend_call(struct lend_connection *c, unsigned type, const void *request, size_t request_bytes,
              void *reply, size_t reply_bytes, struct lend_error *error)
{
    struct lend_message message = { .head = { .type = (uint16_t)type,
                                              .bytes = (uint16_t)request_bytes } };
    memcpy(message.body, request, request_bytes);
    lend_lock(c->host, &c->busy);
    const int status = ask(c, &message, error);
    if (status == 0)
        load(c->host, c->box, BOX_REPLY, &message);
    lend_unlock(c->host, &c->busy);
    if (status != 0)
        return status;
    if (message.head.status < 0) {
        message.body[BODY_BYTES - 1] = '\0';
        return lend_fail(error, message.head.status, "host %u: %s", c->peer,
                         (const char *)message.body);
    }
    if (message.head.bytes != reply_bytes)
        return lend_fail(error, -EPROTO, "host %u: an answer of %u bytes instead of %zu", c->peer,
                         (unsigned)message.head.bytes, reply_bytes);
    if (reply_bytes != 0)
        memcpy(reply, message.body, reply_bytes);
    return message.head.status;
}

/* ---- Replies --------------------------------------------------------------------------------- */

static const struct {
    uint16_t bytes; /* of the request; 0: any number, with zeros behind them */
    bool locked;    /* under lender_lock */
    lend_serve_fn *serve;
} requests[] = {
    [MSG_LIST] = { sizeof(uint32_t), true, lend_serve_lender },
    [MSG_OPEN] = { sizeof(struct msg_open), true, lend_serve_lender },
    [MSG_CLOSE] = { sizeof(struct msg_config), true, lend_serve_lender },
    [MSG_CONFIG_READ] = { sizeof(struct msg_config), true, lend_serve_lender },
    [MSG_CONFIG_WRITE] = { sizeof(struct msg_config), true, lend_serve_lender },
    [MSG_RECLAIM] = { sizeof(struct msg_config), false, lend_serve_borrower },
    [MSG_SEGMENT] = { sizeof(uint32_t), false, lend_serve_segment },
    [MSG_PEER_OPEN] = { sizeof(struct msg_peer_open), true, lend_serve_peer },
    [MSG_PEER_MAP] = { sizeof(struct msg_peer_map), true, lend_serve_peer },
    [MSG_PEER_CLOSE] = { sizeof(struct msg_peer_map), true, lend_serve_peer },
    [MSG_PEER_ALLOW] = { sizeof(struct msg_peer_allow), true, lend_serve_peer },
    [MSG_PEER_REVOKE] = { sizeof(struct msg_peer_revoke), true, lend_serve_peer },
    [MSG_VM_MAP] = { sizeof(struct msg_vm_map), true, lend_serve_vm },
    [MSG_VM_UNMAP] = { sizeof(struct msg_vm_map), true, lend_serve_vm },
    [MSG_VM_IRQ] = { sizeof(struct msg_vm_irq), true, lend_serve_vm },
    [MSG_DMA_ENGINE] = { sizeof(struct msg_dma_engine), false, lend_serve_dma_engine },
    [MSG_SERVICE] = { 0, true, lend_serve_service },
};

static int dispatch(struct lend_connection *c, const struct lend_message *request, uint8_t *reply,
                    size_t *bytes, struct lend_error *error)
{
    const unsigned type = request->head.type;
    if (type >= sizeof requests / sizeof requests[0] || requests[type].serve == NULL)
        return lend_fail(error, -EPROTO, "request %u is not known", type);
    if (requests[type].bytes != 0 && request->head.bytes != requests[type].bytes)
        return lend_fail(error, -EPROTO, "a request of %u bytes", (unsigned)request->head.bytes);
    if (requests[type].locked)
        lend_lock(c->host, &c->host->lender_lock);
    const int status = c->state == CONNECTION_UP
                           ? requests[type].serve(c, type, request->body, reply, bytes, error)
                           : lend_fail(error, -ECONNRESET, "host %u was lost", c->peer);
    if (requests[type].locked)
        lend_unlock(c->host, &c->host->lender_lock);
    return status;
}

static void serve_one(struct lend_connection *c)
{
    struct lend_message request = { .head = { .sequence = 0 } };
    struct lend_error error = { 0 };
    size_t bytes = 0;
    if (c->answer == NULL)
        c->answer = k_zalloc(sizeof *c->answer);
    load(c->host, c->box, BOX_REQUEST, &request);
    c->served = request.head.sequence;
    c->served_attempt = request.head.attempt;
    int status = dispatch(c, &request, c->answer->body, &bytes, &error);
    if (status < 0)
        bytes = (size_t)snprintf((char *)c->answer->body, BODY_BYTES, "%s", error.text) + 1;
    c->answer->head = (struct lend_header){ .sequence = request.head.sequence,
                                            .type = request.head.type,
                                            .bytes = (uint16_t)bytes,
                                            .status = status,
                                            .connection = c->peer_number };
}

/* Answers all requests that have arrived. False: there are none. */
static bool serve_all(struct lend_host *host)
{
    struct lend_connection *c = NULL;
    bool any = false;
    while ((c = lend_connection_next(host, c)) != NULL) {
        struct lend_header head;
        k_load(host->kernel, lend_mailbox(host, c->box, BOX_REQUEST), &head, sizeof head);
        const bool fresh = head.sequence != c->served;
        if (c->state != CONNECTION_UP || head.sequence == 0 || head.connection != c->number ||
            (!fresh && head.attempt == c->served_attempt))
            continue;
        any = true;
        if (fresh)
            serve_one(c);
        c->served_attempt = head.attempt;
        if (c->state == CONNECTION_UP && !host->dead)
            send(c, BOX_REPLY, c->answer, DOORBELL_REPLY);
    }
    return any;
}

void lend_mail_free(struct lend_connection *c)
{
    k_free(c->answer);
    c->answer = NULL;
}

/* ---- Threads --------------------------------------------------------------------------------- */

/* A link went down or came up: peers behind links that are down are lost, unless they are given the
 * time that they have for a heartbeat. */
static void link_changed(struct lend_host *host)
{
    for (unsigned i = 0; i < host->n_adapters; i++) {
        struct lend_adapter *adapter = &host->adapter[i];
        k_writel(adapter->pci, 0, NTB_REG_STATUS, NTB_STATUS_LINK_CHANGE);
        const bool up = lend_adapter_link_up(adapter);
        const bool changed = adapter->down == up;
        adapter->down = !up;
        if (host->service != NULL && changed)
            host->service->link(host->service_context, i, up);
        if (!up && host->options.hold_links)
            continue;
        if (up) {
            lend_routes_settle(host);
            continue;
        }
        struct lend_connection *c = NULL;
        while ((c = lend_connection_next(host, c)) != NULL)
            if (c->adapter == adapter)
                lend_peer_lost(c, "the link is down");
    }
}

/* Somebody whose hello nobody answers has rung for a request: the interrupt of the hello may be
 * lost. */
static void look_for_hellos(struct lend_host *host)
{
    for (unsigned i = 0; i < host->n_adapters; i++)
        lend_doorbell_lost(host, &host->adapter[i], DOORBELL_HELLO);
}

void lend_server(void *arg)
{
    struct lend_host *host = arg;
    bool woken = false; /* there was nothing to do before this */
    while (!host->stopping && !host->dead) {
        unsigned rung = host->rung;
        host->rung = 0;
        if (rung == 0) {
            k_wait(host->kernel, &host->work, UINT64_MAX);
            woken = true;
            continue;
        }
        host->serving = true;
        if ((rung & 1u << N_DOORBELLS) != 0)
            link_changed(host);
        if ((rung & 1u << DOORBELL_HELLO) != 0)
            lend_hellos_answer(host);
        if ((rung & 1u << DOORBELL_REQUEST) != 0 && !serve_all(host) && woken)
            look_for_hellos(host);
        woken = host->serving = false;
    }
    host->n_threads--;
    k_wake(host->kernel, &host->stopped);
}

void lend_heartbeat_send(struct lend_connection *c)
{
    lend_mailbox_write(c, BOX_HEARTBEAT,
                       (uint64_t)c->peer_number << NUMBER_SHIFT | ++c->heartbeat_sent);
}

static void is_lost(struct lend_connection *c, unsigned doorbell, const char *what)
{
    k_warn(c->host->kernel, "%s: no interrupt has told of the %s of host %u", c->host->options.name,
           what, c->peer);
    lend_doorbell_lost(c->host, c->adapter, doorbell);
}

/* A doorbell whose interrupt gets lost stays rung, and the chip raises no other for it. What has
 * been here since the last heartbeat, and nobody looks after it, is looked after as if the
 * interrupt had come. */
static void look_for_request(struct lend_connection *c)
{
    struct lend_host *host = c->host;
    struct lend_header head;
    k_peek(host->kernel, lend_mailbox(host, c->box, BOX_REQUEST), &head, sizeof head);
    const bool here = head.sequence != 0 && head.connection == c->number && !host->serving &&
                      host->rung == 0 &&
                      (head.sequence != c->served || head.attempt != c->served_attempt);
    const bool lost = here && c->waiting == head.sequence;
    c->waiting = here ? head.sequence : 0;
    if (lost)
        is_lost(c, DOORBELL_REQUEST, "request");
}

static void look_for_events(struct lend_connection *c)
{
    bool lost = false;
    for (unsigned i = 0; i < c->n_events; i++) {
        struct lend_event *event = &c->event[i];
        uint64_t count;
        k_peek(c->host->kernel, lend_mailbox(c->host, c->box, BOX_EVENTS + 8 * i), &count,
               sizeof count);
        lost = lost || (event->used && count != event->seen && count == event->waiting);
        event->waiting = count;
    }
    if (lost)
        is_lost(c, DOORBELL_EVENT, "event");
}

/* Sends a heartbeat to the peer, and checks that the peer's counter still changes. */
static void heartbeat(struct lend_connection *c)
{
    struct lend_host *host = c->host;
    uint64_t heard;
    if (is_heard(c))
        lend_heartbeat_send(c);
    k_load(host->kernel, lend_mailbox(host, c->box, BOX_HEARTBEAT), &heard, sizeof heard);
    if (heard != c->heartbeat_seen && heard >> NUMBER_SHIFT == c->number) {
        c->heartbeat_seen = heard;
        c->heartbeat_seen_ps = k_now_ps(host->kernel);
        look_for_request(c);
        look_for_events(c);
    } else if (k_now_ps(host->kernel) - c->heartbeat_seen_ps > host->options.timeout_ps) {
        lend_peer_lost(c, "no heartbeat");
    }
}

void lend_heartbeats(void *arg)
{
    struct lend_host *host = arg;
    while (!host->stopping && !host->dead) {
        k_wait(host->kernel, &host->stopped, k_now_ps(host->kernel) + host->options.heartbeat_ps);
        struct lend_connection *c = NULL;
        while ((c = lend_connection_next(host, c)) != NULL)
            if (c->state == CONNECTION_UP && !host->dead)
                heartbeat(c);
    }
    host->n_threads--;
    k_wake(host->kernel, &host->stopped);
}
