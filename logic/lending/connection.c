/*
 * What it does: opens, finds and closes connections. A host introduces itself by a hello in the
 *   peer's scratchpads, which are open to every node and need no table entry. There are no routes
 *   through other hosts, and a connection in use keeps its path.
 * Follows: SmartIO, 2.2, 3.3; docs/models/ntb.md.
 * Costs: register accesses over the fabric; a thread of the peer answers a hello.
 *
 * Hellos. The caller prepares its side (mailbox, windows), writes a word into one of the peer's
 * four hello scratchpads, chosen by its node number, and rings the doorbell. The peer clears the
 * word, prepares its own side and answers in the caller's acknowledgement scratchpad. Two callers
 * that use the same scratchpad at a time overwrite each other's word, so a caller that gets no
 * answer writes it again.
 *
 * Numbers. Each side gives the connection a number and names it: the caller in its hello, the peer
 * in its answer. A hello with a number that is not that of the peer's connection says that the
 * caller has lost the old one, for a reason that the peer need not have noticed (a cable that was
 * out for less than the time-out). The peer then ends the old connection, leases and all, before it
 * answers. The caller lets the peer's CPUs in only after the answer: until then the peer's leased
 * devices may use windows to memory of ours that has a new owner. The peer writes to our mailbox
 * when it has seen our first heartbeat there.
 */
#include "logic/lending/lending_internal.h"

#include <stdio.h>
#include <string.h>

#define ANSWER_LOOK   (5 * K_US)
#define ANSWER_WAIT   (400 * K_US) /* then the word is written again */
#define ANSWER_ROUNDS 20u
#define LOST_ROUND    3u /* from then on the interrupt of the hello may have been lost */

/* ---- Locks ----------------------------------------------------------------------------------- */

void lend_lock(struct lend_host *host, struct lend_mutex *mutex)
{
    while (mutex->held)
        k_wait(host->kernel, &mutex->wait, UINT64_MAX);
    mutex->held = true;
}

void lend_unlock(struct lend_host *host, struct lend_mutex *mutex)
{
    mutex->held = false;
    k_wake(host->kernel, &mutex->wait);
}

/* ---- Connections ----------------------------------------------------------------------------- */

static struct lend_connection *connection_find(struct lend_host *host,
                                               const struct lend_adapter *adapter, uint32_t node)
{
    struct lend_connection *c = host->connections;
    while (c != NULL && (c->adapter != adapter || c->node != node))
        c = c->next;
    return c;
}

static bool mailbox_take(struct lend_host *host, unsigned *box)
{
    for (unsigned i = 0; i < host->options.max_peers; i++)
        if (!host->mailbox_used[i]) {
            host->mailbox_used[i] = 1;
            *box = i;
            return true;
        }
    return false;
}

/* Releases what the connection holds on our side, and frees it. */
static void tear_down(struct lend_connection *c)
{
    struct lend_host *host = c->host;
    K_LIST_REMOVE(host->connections, c);
    lend_mail_free(c);
    for (unsigned i = 0; i < c->n_cpus; i++)
        lend_incoming_remove(c->adapter, c->cpu_id[i]);
    if (c->engine_users != 0)
        lend_incoming_remove(c->adapter, c->engine_id);
    if (c->pool.n != 0)
        lend_unmap(c->adapter, &c->pool);
    if (c->registers.n != 0)
        lend_unmap(c->adapter, &c->registers);
    lend_route_close(host, c->adapter, &c->route);
    host->mailbox_used[c->box] = 0;
    k_free(c);
}

/* Enters the peer's CPUs as requesters. */
static int cpus_allow(struct lend_connection *c, struct lend_error *error)
{
    char owner[LEND_OWNER_BYTES];
    int status = 0;
    snprintf(owner, sizeof owner, "node %u", c->node);
    while (status == 0 && c->n_cpus < c->n_peer_cpus) {
        status = lend_incoming_add(c->adapter, c->node, c->n_cpus, 0, owner, &c->cpu_id[c->n_cpus],
                                   error);
        if (status == 0)
            c->n_cpus++;
    }
    return status;
}

static int no_answer(const struct lend_connection *c, struct lend_error *error)
{
    return lend_fail(error, -EHOSTUNREACH, "%s: node %u does not answer",
                     c->adapter->pci->device.name, c->node);
}

/* Opens windows to the peer, reads what it publishes. */
static int set_up(struct lend_connection *c, struct lend_error *error)
{
    struct lend_adapter *adapter = c->adapter;
    char owner[LEND_OWNER_BYTES];
    snprintf(owner, sizeof owner, "node %u", c->node);
    int status = lend_route_open(c->host, adapter, c->node, &c->route, error);
    if (status == 0)
        status = lend_map(adapter, c->node, NTB_FABRIC_REGISTERS, 4096, 0, owner, &c->registers,
                          error);
    if (status != 0)
        return status;
    if (lend_pad_read(adapter, &c->registers, PAD_MAGIC) != LEND_MAGIC)
        return no_answer(c, error);
    const uint32_t shape = lend_pad_read(adapter, &c->registers, PAD_SHAPE);
    c->n_peer_cpus = shape >> 8 & 0xff;
    if (c->n_peer_cpus > sizeof c->cpu_id / sizeof c->cpu_id[0])
        c->n_peer_cpus = sizeof c->cpu_id / sizeof c->cpu_id[0];
    c->peer = lend_pad_read(adapter, &c->registers, PAD_HOST);
    c->peer_adapter = shape & 0xff;
    c->incarnation = lend_pad_read(adapter, &c->registers, PAD_INCARNATION);
    uint64_t pool = lend_pad_read(adapter, &c->registers, PAD_POOL_LOW);
    pool |= (uint64_t)lend_pad_read(adapter, &c->registers, PAD_POOL_HIGH) << 32;
    if (shape == UINT32_MAX || c->peer == UINT32_MAX || (uint32_t)pool == UINT32_MAX ||
        pool >> 32 == UINT32_MAX)
        return no_answer(c, error); /* any more */
    return lend_map(adapter, c->node, pool, UINT64_C(1) << (shape >> 16 & 0x3f), 0, owner, &c->pool,
                    error);
}

/* The caller is the first user. */
static int connection_new(struct lend_host *host, struct lend_adapter *adapter, uint32_t node,
                          struct lend_connection **result, struct lend_error *error)
{
    static const uint8_t zeros[LEND_MAILBOX_BYTES];
    unsigned box;
    if (!mailbox_take(host, &box))
        return lend_fail(error, -ENOSPC,
                         "%s: %u of %u mailboxes in use, by as many peers; max_peers has to be "
                         "%u at least",
                         host->options.name, host->options.max_peers, host->options.max_peers,
                         host->options.max_peers + 1);
    struct lend_connection *c = k_zalloc(sizeof *c);
    *c = (struct lend_connection){
        .next = host->connections,
        .host = host,
        .adapter = adapter,
        .node = node,
        .box = box,
        .users = 1,
    };
    if (++host->last_number == 0)
        host->last_number = 1;
    c->number = host->last_number;
    host->connections = c;
    k_store(host->kernel, lend_mailbox(host, box, 0), zeros, sizeof zeros);
    int status = set_up(c, error);
    if (status != 0) {
        c->state = CONNECTION_LOST;
        lend_connection_put(c);
        return status;
    }
    c->heartbeat_seen_ps = k_now_ps(host->kernel);
    c->ready = true;
    *result = c;
    return 0;
}

static void pad_write(struct lend_connection *c, unsigned pad, uint32_t value)
{
    lend_map_write(c->adapter, &c->registers, NTB_FABRIC_SCRATCHPAD + 4 * pad, 4, value);
}

static void hello_send(struct lend_connection *c, unsigned what)
{
    const unsigned slot = c->adapter->node % N_HELLOS;
    pad_write(c, PAD_HELLO + slot, 0);
    pad_write(c, PAD_HELLO_NUMBER + slot, HELLO_NUMBER(c->adapter->node, c->number));
    pad_write(c, PAD_HELLO + slot, HELLO(c->adapter->node, c->box, what));
    lend_ring(c, DOORBELL_HELLO);
}

/* The peer has named its mailbox and its number; the connection is up when its CPUs are let in. Not
 * to be called while another thread does so (c->rising). */
static int bring_up(struct lend_connection *c, unsigned peer_box, uint16_t peer_number,
                    struct lend_error *error)
{
    c->rising = true;
    const int status = cpus_allow(c, error);
    c->rising = false;
    if (status != 0 || c->state == CONNECTION_LOST)
        return status != 0 ? status : lend_fail(error, -ECONNRESET, "node %u was lost", c->node);
    c->peer_box = peer_box;
    c->peer_number = peer_number;
    c->heartbeat_seen_ps = k_now_ps(c->host->kernel);
    c->state = CONNECTION_UP;
    return 0;
}

/* Its own hello may have brought the connection up meanwhile. */
static int answered(struct lend_connection *c, unsigned peer_box, uint16_t peer_number,
                    struct lend_error *error)
{
    const int status = c->state == CONNECTION_UP ? 0 : bring_up(c, peer_box, peer_number, error);
    if (status == 0) {
        c->heard = true; /* it has let our CPUs in before it answered */
        lend_heartbeat_send(c);
    }
    return status;
}

/* Sends hellos until the peer has answered. */
static int await_answer(struct lend_connection *c, struct lend_error *error)
{
    struct k_pci_dev *pci = c->adapter->pci;
    for (unsigned round = 0; round < ANSWER_ROUNDS; round++) {
        hello_send(c, HELLO_CONNECT);
        if (round >= LOST_ROUND) /* a doorbell that stays rung raises no other interrupt */
            lend_ring(c, DOORBELL_REQUEST);
        uint64_t until_ps = k_now_ps(c->host->kernel) + ANSWER_WAIT;
        while (k_now_ps(c->host->kernel) < until_ps) {
            const uint32_t numbers = k_readl(pci, 0, NTB_REG_SCRATCHPAD + 4 * PAD_ACK_NUMBERS);
            const uint32_t word = k_readl(pci, 0, NTB_REG_SCRATCHPAD + 4 * PAD_ACK);
            const bool ours = word >> 16 == c->node && numbers >> 16 == c->number;
            if (c->state == CONNECTION_LOST)
                return lend_fail(error, -ECONNRESET, "node %u was lost", c->node);
            if (ours && (word & 0xf) == HELLO_CONNECT && !c->rising)
                return answered(c, word >> 4 & 0xfff, (uint16_t)numbers, error);
            if (ours && (word & 0xf) == HELLO_REFUSED)
                return lend_fail(error, -ECONNREFUSED,
                                 "host %u (node %u) has no entries left for another peer: windows "
                                 "or requesters of its adapter, or requesters of a switch",
                                 c->peer, c->node);
            k_sleep(c->host->kernel, ANSWER_LOOK);
        }
    }
    const int status = lend_route_full(c->adapter, &c->route, error); /* its answer cannot pass */
    return status != 0 ? status
                       : lend_fail(error, -ETIMEDOUT, "host %u (node %u) does not answer hellos",
                                   c->peer, c->node);
}

/* Brings up a connection that the caller has made, and is a user of; after an error it is not. */
static int introduce(struct lend_connection *c, struct lend_error *error)
{
    k_writel(c->adapter->pci, 0, NTB_REG_SCRATCHPAD + 4 * PAD_ACK, 0);
    int status = await_answer(c, error);
    if (status == 0 && c->state == CONNECTION_LOST) /* since its answer */
        status = lend_fail(error, -ECONNRESET, "node %u was lost", c->node);
    if (status == 0)
        return 0;
    hello_send(c, HELLO_BYE); /* the peer may have answered */
    if (c->state == CONNECTION_UP)
        lend_peer_lost(c, NULL); /* its own hello brought it up: it may have borrowed */
    else
        c->state = CONNECTION_LOST;
    lend_connection_put(c);
    return status;
}

int lend_connect(struct lend_host *host, const struct lend_path *path,
                 struct lend_connection **connection, struct lend_error *error)
{
    struct lend_adapter *adapter = &host->adapter[path->adapter];
    int status = 0;
    lend_lock(host, &host->connect_lock); /* PAD_ACK holds one answer at a time */
    struct lend_connection *c = connection_find(host, adapter, path->node);
    while (c != NULL && c->state == CONNECTION_OPENING) { /* the peer's hello came first */
        k_sleep(host->kernel, ANSWER_LOOK);
        c = connection_find(host, adapter, path->node);
    }
    if (c == NULL) {
        status = connection_new(host, adapter, path->node, &c, error);
        if (status == 0)
            status = introduce(c, error);
    } else if (c->state == CONNECTION_UP) {
        c->users++;
    } else {
        status = lend_fail(error, -ECONNRESET, "%s: node %u was lost", host->options.name, c->node);
    }
    if (status == 0)
        *connection = c;
    lend_unlock(host, &host->connect_lock);
    return status;
}

int lend_connect_peer(struct lend_host *host, uint32_t peer, struct lend_connection **connection,
                      struct lend_error *error)
{
    struct lend_path path;
    if (host->options.nodes != NULL && lend_resolve(host, peer, LEND_ANY, &path, NULL) != 0)
        lend_look_for(host, peer);
    const int status = lend_resolve(host, peer, LEND_ANY, &path, error);
    return status == 0 ? lend_connect(host, &path, connection, error) : status;
}

void lend_connection_put(struct lend_connection *c)
{
    if (--c->users == 0 && c->state == CONNECTION_LOST)
        tear_down(c);
}

struct lend_connection *lend_connection_next(struct lend_host *host, struct lend_connection *after)
{
    struct lend_connection *next = after != NULL ? after->next : host->connections;
    if (next != NULL)
        next->users++;
    if (after != NULL)
        lend_connection_put(after);
    return next;
}

/* ---- Hellos of peers ------------------------------------------------------------------------- */

static uint32_t pad_incarnation(struct lend_connection *c)
{
    return lend_pad_read(c->adapter, &c->registers, PAD_INCARNATION);
}

static void answer_by(struct lend_adapter *adapter, const struct lend_map *registers,
                      uint32_t numbers, uint32_t word)
{
    const uint64_t at = NTB_FABRIC_SCRATCHPAD;
    lend_map_write(adapter, registers, at + 4 * PAD_ACK, 4, 0);
    lend_map_write(adapter, registers, at + 4 * PAD_ACK_NUMBERS, 4, numbers);
    lend_map_write(adapter, registers, at + 4 * PAD_ACK, 4, word);
}

/* There is no connection to refuse by: writes the word through a window of its own. */
static void refuse(struct lend_host *host, struct lend_adapter *adapter, uint32_t node,
                   uint16_t number)
{
    struct lend_route route;
    struct lend_map map;
    if (lend_route_open(host, adapter, node, &route, NULL) != 0)
        return;
    if (lend_map(adapter, node, NTB_FABRIC_REGISTERS, 4096, 0, "refusal", &map, NULL) == 0) {
        answer_by(adapter, &map, HELLO_NUMBER(number, 0), HELLO(adapter->node, 0, HELLO_REFUSED));
        lend_unmap(adapter, &map);
    }
    lend_route_close(host, adapter, &route);
}

/* The peer wants to connect. The caller is a user of the connection, which may get lost. */
static void hello_accept(struct lend_connection *c, uint32_t word, uint16_t number)
{
    struct lend_adapter *adapter = c->adapter;
    if (c->state == CONNECTION_UP) {
        const bool restarted = pad_incarnation(c) != c->incarnation;
        if (restarted || c->peer_number != number)
            lend_peer_lost(c, restarted ? "it has restarted" : "it has lost us and connects anew");
    }
    if (c->state == CONNECTION_LOST || !c->ready || c->rising)
        return; /* being closed, or opened: the peer tries again */
    if (c->state != CONNECTION_UP && bring_up(c, word >> 4 & 0xfff, number, NULL) != 0) {
        if (c->users == 1)
            c->state = CONNECTION_LOST; /* freed after the refusal */
        refuse(c->host, adapter, c->node, number);
        return;
    }
    answer_by(adapter, &c->registers, HELLO_NUMBER(number, c->number),
              HELLO(adapter->node, c->box, HELLO_CONNECT));
}

static void hello_received(struct lend_host *host, struct lend_adapter *adapter, uint32_t word,
                           uint16_t number)
{
    const uint32_t node = word >> 16;
    struct lend_connection *c = connection_find(host, adapter, node);
    if ((word & 0xf) == HELLO_BYE) {
        if (c != NULL && c->peer_number == number)
            lend_peer_lost(c, c->users > 0 ? "it said good-bye" : NULL);
        return;
    }
    if (c != NULL)
        c->users++;
    else if (connection_new(host, adapter, node, &c, NULL) != 0) {
        refuse(host, adapter, node, number);
        return;
    }
    hello_accept(c, word, number);
    lend_connection_put(c);
}

void lend_hellos_answer(struct lend_host *host)
{
    for (unsigned i = 0; i < host->n_adapters; i++)
        for (unsigned h = 0; h < N_HELLOS; h++) {
            struct lend_adapter *adapter = &host->adapter[i];
            const uint64_t pad = NTB_REG_SCRATCHPAD + 4 * (uint64_t)(PAD_HELLO + h);
            const uint32_t number = k_readl(adapter->pci, 0, pad + 4 * HELLO_NUMBER_OF_WORD);
            const uint32_t word = k_readl(adapter->pci, 0, pad);
            if (word == 0 || word == UINT32_MAX)
                continue;
            k_writel(adapter->pci, 0, pad, 0);
            if (number >> 16 == word >> 16) /* or another sender's: both try again */
                hello_received(host, adapter, word, (uint16_t)number);
        }
}

/* ---- The end --------------------------------------------------------------------------------- */

/* Waits for other peers (pairs of devices of two lenders) and for drivers, so neither the heartbeat
 * thread nor the server may do it. */
static void undo(void *arg)
{
    struct lend_connection *c = arg;
    struct lend_host *host = c->host;
    if (!host->dead) {
        if (host->service != NULL)
            host->service->lost(host->service_context, c);
        lend_lender_lost(c);
        lend_borrower_lost(c);
        lend_connection_put(c);
    }
    host->n_threads--;
    k_wake(host->kernel, &host->stopped);
}

void lend_peer_lost(struct lend_connection *c, const char *why)
{
    struct lend_host *host = c->host;
    if (c->state == CONNECTION_LOST)
        return;
    if (why != NULL)
        k_warn(host->kernel, "%s: host %u is lost: %s", host->options.name, c->peer, why);
    c->state = CONNECTION_LOST;
    c->users++;
    k_wake(host->kernel, &c->reply);
    for (unsigned i = 0; i < c->n_cpus; i++)
        lend_incoming_block(c->adapter, c->cpu_id[i]);
    if (c->engine_users != 0)
        lend_incoming_block(c->adapter, c->engine_id);
    lend_borrower_block(c);
    if (host->service != NULL)
        host->service->cut(host->service_context, c);
    host->n_threads++;
    k_thread_new(host->kernel, "lend_undo", K_CPU_ANY, undo, c);
}

void lend_connections_close(struct lend_host *host, bool all)
{
    struct lend_connection *c = NULL;
    while ((c = lend_connection_next(host, c)) != NULL)
        if (c->state == CONNECTION_UP && (all || c->users == 1)) {
            hello_send(c, HELLO_BYE);
            c->state = CONNECTION_LOST; /* its last user frees it */
        }
}

/* ---- Publishing ------------------------------------------------------------------------------ */

int lend_publish(struct lend_host *host, struct lend_error *error)
{
    for (unsigned i = 0; i < host->n_adapters; i++) {
        struct lend_adapter *adapter = &host->adapter[i];
        int status = lend_export(adapter, host->pool.v, host->options.pool_bytes,
                                 &host->pool_fabric[i], error);
        if (status != 0) {
            while (i-- > 0)
                lend_unexport(&host->adapter[i], host->pool_fabric[i], host->options.pool_bytes);
            return status;
        }
        const uint32_t pad[] = {
            [PAD_HOST] = host->options.id,
            [PAD_SHAPE] = adapter->index | adapter->n_cpus << 8 |
                          (uint32_t)__builtin_ctzll(host->options.pool_bytes) << 16,
            [PAD_INCARNATION] = host->incarnation,
            [PAD_POOL_LOW] = (uint32_t)host->pool_fabric[i],
            [PAD_POOL_HIGH] = (uint32_t)(host->pool_fabric[i] >> 32),
        };
        for (unsigned p = PAD_HOST; p < sizeof pad / sizeof pad[0]; p++)
            k_writel(adapter->pci, 0, NTB_REG_SCRATCHPAD + 4 * p, pad[p]);
        k_writel(adapter->pci, 0, NTB_REG_SCRATCHPAD + 4 * PAD_MAGIC, LEND_MAGIC);
    }
    return 0;
}

void lend_unpublish(struct lend_host *host)
{
    for (unsigned i = 0; i < host->n_adapters; i++) {
        k_writel(host->adapter[i].pci, 0, NTB_REG_SCRATCHPAD + 4 * PAD_MAGIC, 0);
        lend_unexport(&host->adapter[i], host->pool_fabric[i], host->options.pool_bytes);
    }
}
