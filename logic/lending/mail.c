/*
 * What it does: requests and replies between two hosts, and heartbeats. A host writes a message
 *   into the peer's memory through a window and rings a doorbell; a server thread answers. A pair
 *   of hosts has one request under way in each direction; nobody polls instead of taking
 *   interrupts.
 * Follows: our own protocol; the papers only say that the modules of two hosts communicate.
 * Costs: a store to the window for every 8 bytes. A request takes two interrupts and two wake-ups.
 */
#include "logic/lending/lending_internal.h"

#include <stdio.h>
#include <string.h>

#define WAIT_STEP (50 * K_US) /* the wake-up may come before the wait */

struct message {
    struct lend_header head;
    uint8_t body[BODY_BYTES];
};

struct kaddr lend_mailbox(const struct lend_host *host, unsigned box, unsigned offset)
{
    return kaddr_add(host->pool, (uint64_t)box * LEND_MAILBOX_BYTES + offset);
}

/* Writes into the peer's mailbox for us, the first word last, and rings the doorbell. */
static void send(struct lend_connection *c, unsigned box_offset, struct message *message,
                 unsigned doorbell)
{
    const uint64_t at = (uint64_t)c->peer_box * LEND_MAILBOX_BYTES + box_offset;
    const unsigned n = (unsigned)(sizeof message->head + message->head.bytes + 7) / 8;
    for (unsigned i = n; i-- > 0;) {
        uint64_t word;
        memcpy(&word, (const uint8_t *)message + 8 * (size_t)i, 8);
        lend_map_write(c->adapter, &c->pool, at + 8 * (uint64_t)i, 8, word);
    }
    lend_map_write(c->adapter, &c->registers, NTB_FABRIC_DOORBELL, 4, 1u << doorbell);
}

static void load(struct lend_host *host, unsigned box, unsigned box_offset, struct message *message)
{
    struct kaddr at = lend_mailbox(host, box, box_offset);
    k_load(host->kernel, at, &message->head, sizeof message->head);
    if (message->head.bytes > BODY_BYTES)
        message->head.bytes = BODY_BYTES;
    k_load(host->kernel, kaddr_add(at, sizeof message->head), message->body, message->head.bytes);
}

/* ---- Requests -------------------------------------------------------------------------------- */

static uint32_t reply_sequence(struct lend_connection *c)
{
    uint32_t sequence;
    k_peek(c->host->kernel, lend_mailbox(c->host, c->box, BOX_REPLY), &sequence, sizeof sequence);
    return sequence;
}

static int await_reply(struct lend_connection *c, struct lend_error *error)
{
    struct kernel *kernel = c->host->kernel;
    const uint64_t until_ps = k_now_ps(kernel) + c->host->options.timeout_ps;
    while (reply_sequence(c) != c->sequence) {
        const uint64_t now_ps = k_now_ps(kernel);
        if (c->state != CONNECTION_UP)
            return lend_fail(error, -ECONNRESET, "host %u (node %u) was lost", c->peer, c->node);
        if (now_ps >= until_ps)
            return lend_fail(error, -ETIMEDOUT, "host %u (node %u) does not answer", c->peer,
                             c->node);
        k_wait(kernel, &c->reply, now_ps + WAIT_STEP < until_ps ? now_ps + WAIT_STEP : until_ps);
    }
    return 0;
}

int lend_call(struct lend_connection *c, unsigned type, const void *request, size_t request_bytes,
              void *reply, size_t reply_bytes, struct lend_error *error)
{
    struct message message = { .head = { .type = (uint16_t)type,
                                         .bytes = (uint16_t)request_bytes } };
    memcpy(message.body, request, request_bytes);
    lend_lock(c->host, &c->busy);
    int status = -ECONNRESET;
    if (c->state == CONNECTION_UP && !c->host->dead) {
        message.head.sequence = ++c->sequence;
        send(c, BOX_REQUEST, &message, DOORBELL_REQUEST);
        status = await_reply(c, error);
    } else {
        lend_fail(error, status, "host %u (node %u) was lost", c->peer, c->node);
    }
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

static int dispatch(struct lend_connection *c, const struct message *request, uint8_t *body,
                    size_t *bytes, struct lend_error *error)
{
    const struct lend_header *head = &request->head;
    switch (head->type) {
    case MSG_SEGMENT: return lend_serve_segment(c, request->body, head->bytes, body, bytes, error);
    case MSG_DMA_ENGINE: return lend_serve_dma_engine(c, request->body, head->bytes, error);
    case MSG_RECLAIM: return lend_serve_borrower(c, request->body, head->bytes, error);
    case MSG_LIST:
    case MSG_OPEN:
    case MSG_CLOSE:
    case MSG_CONFIG_READ:
    case MSG_CONFIG_WRITE:
        return lend_serve_lender(c, head->type, request->body, head->bytes, body, bytes, error);
    case MSG_PEER_OPEN:
    case MSG_PEER_MAP:
    case MSG_PEER_CLOSE:
    case MSG_PEER_ALLOW:
    case MSG_PEER_REVOKE:
        return lend_serve_peer(c, head->type, request->body, head->bytes, body, bytes, error);
    case MSG_VM_MAP:
    case MSG_VM_UNMAP:
    case MSG_VM_IRQ: return lend_serve_vm(c, head->type, request->body, head->bytes, error);
    default: return lend_fail(error, -EPROTO, "request %u is not known", (unsigned)head->type);
    }
}

static void serve_one(struct lend_connection *c)
{
    struct message request, reply = { .head = { .sequence = 0 } };
    struct lend_error error = { 0 };
    size_t bytes = 0;
    load(c->host, c->box, BOX_REQUEST, &request);
    c->served = request.head.sequence;
    int status = dispatch(c, &request, reply.body, &bytes, &error);
    if (status < 0)
        bytes = (size_t)snprintf((char *)reply.body, BODY_BYTES, "%s", error.text) + 1;
    reply.head = (struct lend_header){ .sequence = request.head.sequence,
                                       .type = request.head.type,
                                       .bytes = (uint16_t)bytes,
                                       .status = status };
    if (c->state == CONNECTION_UP && !c->host->dead)
        send(c, BOX_REPLY, &reply, DOORBELL_REPLY);
}

/* Answers all requests that have arrived. */
static void serve_all(struct lend_host *host)
{
    struct lend_connection *c = NULL;
    while ((c = lend_connection_next(host, c)) != NULL) {
        uint32_t sequence;
        k_load(host->kernel, lend_mailbox(host, c->box, BOX_REQUEST), &sequence, sizeof sequence);
        if (c->state == CONNECTION_UP && sequence != c->served && sequence != 0)
            serve_one(c);
    }
}

/* ---- Threads --------------------------------------------------------------------------------- */

/* A link went down or came up: peers behind links that are down are lost. */
static void link_changed(struct lend_host *host)
{
    for (unsigned i = 0; i < host->n_adapters; i++) {
        struct lend_adapter *adapter = &host->adapter[i];
        k_writel(adapter->pci, 0, NTB_REG_STATUS, NTB_STATUS_LINK_CHANGE);
        if (lend_adapter_link_up(adapter))
            continue;
        struct lend_connection *c = NULL;
        while ((c = lend_connection_next(host, c)) != NULL)
            if (c->adapter == adapter)
                lend_peer_lost(c, "the link is down");
    }
}

void lend_server(void *arg)
{
    struct lend_host *host = arg;
    while (!host->stopping && !host->dead) {
        unsigned rung = host->rung;
        host->rung = 0;
        if (rung == 0) {
            k_wait(host->kernel, &host->work, UINT64_MAX);
            continue;
        }
        if ((rung & 1u << N_DOORBELLS) != 0)
            link_changed(host);
        if ((rung & 1u << DOORBELL_HELLO) != 0)
            lend_hellos_answer(host);
        if ((rung & 1u << DOORBELL_REQUEST) != 0)
            serve_all(host);
    }
    host->n_threads--;
    k_wake(host->kernel, &host->stopped);
}

/* Sends a heartbeat to the peer, and checks that the peer's counter still changes. */
static void heartbeat(struct lend_connection *c)
{
    struct lend_host *host = c->host;
    uint64_t heard;
    lend_map_write(c->adapter, &c->pool, (uint64_t)c->peer_box * LEND_MAILBOX_BYTES + BOX_HEARTBEAT,
                   8, ++c->heartbeat_sent);
    k_load(host->kernel, lend_mailbox(host, c->box, BOX_HEARTBEAT), &heard, sizeof heard);
    if (heard != c->heartbeat_seen) {
        c->heartbeat_seen = heard;
        c->heartbeat_seen_ps = k_now_ps(host->kernel);
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
