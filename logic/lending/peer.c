/*
 * What it does: peer to peer, the borrower's side: the address by which one device reaches
 *   registers of another, where at least one of the two is borrowed. Only the borrower knows where
 *   both are; it asks each lender for its part. SmartIO maps all base addresses of all borrowed
 *   devices in advance; here a mapping takes what it needs when it is made, and gives that back
 *   when it ends.
 * Follows: SmartIO, 4.4.
 * Costs: same lender: one request. Local target: an export and two requests to the source's lender.
 *   Two lenders: three requests.
 *
 * Order. The target lets the source in before the source gets the address; the source loses the
 * address before the target shuts it out.
 */
#include <string.h>

#include "logic/lending/lending_internal.h"

#define STEP_PS (20 * K_US)

/* ---- One pair -------------------------------------------------------------------------------- */

static struct lend_pair *pair_new(struct lend_host *host, struct lend_borrow *source,
                                  struct lend_borrow *target)
{
    struct lend_pair *pair = k_zalloc(sizeof *pair);
    *pair = (struct lend_pair){
        .next = host->pairs, .source = source, .target = target, .busy = true, .outgoing = -1
    };
    host->pairs = pair;
    return pair;
}

static void source_close(struct lend_pair *pair)
{
    const struct msg_peer_map request = { .lease = pair->source->opened.lease,
                                          .mapping = pair->mapping };
    if (pair->source->connection != NULL)
        lend_call(pair->source->connection, MSG_PEER_CLOSE, &request, sizeof request, NULL, 0,
                  NULL);
    pair->mapping = 0;
}

static void target_close(struct lend_pair *pair)
{
    const struct msg_peer_revoke request = { .lease = pair->target->opened.lease,
                                             .requester = pair->requester };
    if (pair->target->connection != NULL)
        lend_call(pair->target->connection, MSG_PEER_REVOKE, &request, sizeof request, NULL, 0,
                  NULL);
    pair->requester = 0;
}

/* Releases what the pair holds, here and at the lenders. The pair is busy. */
static void pair_undo(struct lend_host *host, struct lend_pair *pair)
{
    if (pair->mapping != 0)
        source_close(pair);
    if (pair->requester != 0)
        target_close(pair);
    if (pair->routed)
        lend_route_give(host, pair->adapter, &pair->route, (unsigned)pair->outgoing);
    pair->routed = false;
    if (pair->outgoing >= 0)
        lend_outgoing_remove(pair->adapter, (unsigned)pair->outgoing);
    pair->outgoing = -1;
    if (pair->fabric_bytes != 0)
        lend_unexport(pair->adapter, pair->fabric, pair->fabric_bytes);
    pair->fabric_bytes = 0;
}

static void pair_free(struct lend_host *host, struct lend_pair *pair)
{
    K_LIST_REMOVE(host->pairs, pair);
    k_free(pair);
}

static bool going(const struct lend_borrow *b)
{
    return b != NULL &&
           (b->connection == NULL || b->ending || b->connection->state != CONNECTION_UP);
}

static int gone(const struct lend_borrow *b, struct lend_error *error)
{
    return lend_fail(error, -ENODEV, "%s is going back", b->name);
}

/* ---- Requests to the source's lender --------------------------------------------------------- */

/* The mapping that is being made. */
struct mapping_request {
    struct lend_pair *pair;
    struct k_pci_dev *target;
    unsigned bar;
    uint64_t offset, bytes;
    enum k_dma_direction direction;
    uint64_t at;     /* where the source shall find them; 0: anywhere */
    uint64_t fabric; /* of the bytes at the target's host */
};

static int source_open(const struct mapping_request *want, uint32_t host, uint32_t adapter,
                       uint32_t target, struct msg_peer_opened *opened, struct lend_error *error)
{
    struct lend_borrow *source = want->pair->source;
    const struct msg_peer_open request = { .lease = source->opened.lease,
                                           .host = host,
                                           .adapter = adapter,
                                           .target = target,
                                           .bar = want->bar,
                                           .direction = want->direction,
                                           .offset = want->offset,
                                           .bytes = want->bytes,
                                           .at = want->at };
    int status = lend_call(source->connection, MSG_PEER_OPEN, &request, sizeof request, opened,
                           sizeof *opened, error);
    if (status == 0)
        want->pair->mapping = opened->mapping;
    return status;
}

static int source_map(const struct mapping_request *want, struct lend_error *error)
{
    struct lend_pair *pair = want->pair;
    const struct msg_peer_map request = { .lease = pair->source->opened.lease,
                                          .mapping = pair->mapping,
                                          .direction = want->direction,
                                          .fabric = want->fabric,
                                          .bytes = want->bytes,
                                          .at = want->at };
    return lend_call(pair->source->connection, MSG_PEER_MAP, &request, sizeof request, &pair->dma,
                     sizeof pair->dma, error);
}

/* ---- Three cases ----------------------------------------------------------------------------- */

static int same_lender(struct mapping_request *want, struct lend_error *error)
{
    const struct lend_borrow *target = want->pair->target;
    struct msg_peer_opened opened;
    int status = source_open(want, target->connection->peer, LEND_ANY, target->opened.lease,
                             &opened, error);
    if (status == 0)
        want->pair->dma = opened.dma;
    return status;
}

/* The source can send to us already, for our memory; the target's bytes are exported likewise. */
static int local_target(struct mapping_request *want, struct lend_error *error)
{
    struct lend_pair *pair = want->pair;
    struct lend_connection *c = pair->source->connection;
    const uint64_t address = want->target->bar_base[want->bar] + want->offset;
    struct msg_peer_opened opened;
    int status = lend_export(c->adapter, address, want->bytes, &pair->fabric, error);
    if (status != 0)
        return status;
    pair->adapter = c->adapter;
    pair->fabric_bytes = want->bytes;
    want->fabric = pair->fabric;
    status = source_open(want, pair->source->host->options.id, c->adapter->index, 0, &opened,
                         error);
    return status == 0 ? source_map(want, error) : status;
}

static int other_lender(struct mapping_request *want, struct lend_error *error)
{
    struct lend_pair *pair = want->pair;
    struct lend_connection *c = pair->target->connection;
    struct msg_peer_opened opened;
    struct msg_peer_allowed allowed;
    int status = source_open(want, c->peer, c->peer_adapter, 0, &opened, error);
    if (status != 0)
        return status;
    const struct msg_peer_allow request = { .lease = pair->target->opened.lease,
                                            .adapter = opened.adapter,
                                            .node = opened.node,
                                            .device = opened.device,
                                            .function = opened.function,
                                            .n_cpus = opened.n_cpus,
                                            .bar = want->bar,
                                            .offset = want->offset,
                                            .bytes = want->bytes };
    status = lend_call(c, MSG_PEER_ALLOW, &request, sizeof request, &allowed, sizeof allowed,
                       error);
    if (status != 0)
        return status;
    pair->requester = allowed.requester;
    want->fabric = allowed.fabric;
    return source_map(want, error);
}

static int pair_map(struct mapping_request *want, struct lend_error *error)
{
    const struct lend_borrow *source = want->pair->source, *target = want->pair->target;
    if (target == NULL)
        return local_target(want, error);
    if (target->connection->peer == source->connection->peer)
        return same_lender(want, error);
    return other_lender(want, error);
}

int lend_peer_map(struct lend_borrow *source, struct k_device *target, unsigned bar,
                  uint64_t offset, uint64_t bytes, enum k_dma_direction direction, uint64_t *dma,
                  struct lend_error *error)
{
    return lend_peer_map_at(source, target, bar, offset, bytes, direction, 0, dma, error);
}

int lend_peer_map_at(struct lend_borrow *source, struct k_device *target, unsigned bar,
                     uint64_t offset, uint64_t bytes, enum k_dma_direction direction, uint64_t at,
                     uint64_t *dma, struct lend_error *error)
{
    struct lend_host *host = source->host;
    struct k_pci_dev *pci = K_CONTAINER(target, struct k_pci_dev, device);
    struct lend_borrow *borrowed = target->dma_ops == &lend_shadow_dma_ops ? target->dma_context
                                                                           : NULL;
    const uint64_t all = bar < K_PCI_BARS ? pci->bar_bytes[bar] : 0;
    if (borrowed == source || target->kernel != host->kernel || bytes == 0 || offset >= all ||
        bytes > all - offset)
        return lend_fail(error, -EINVAL, "%s: no %#llx bytes at %#llx of base address %u for %s",
                         target->name, (unsigned long long)bytes, (unsigned long long)offset, bar,
                         source->name);
    if (going(source) || going(borrowed))
        return gone(going(source) ? source : borrowed, error);
    struct lend_pair *pair = pair_new(host, source, borrowed);
    struct mapping_request want = { pair, pci, bar, offset, bytes, direction, at, 0 };
    pair->bytes = bytes;
    int status = pair_map(&want, error);
    if (status == 0 && (going(source) || going(borrowed)))
        status = gone(going(source) ? source : borrowed, error);
    if (status != 0) {
        pair_undo(host, pair);
        pair_free(host, pair);
        return status;
    }
    pair->busy = false;
    *dma = pair->dma;
    return 0;
}

/* Of several such pairs, one that is not busy. */
static struct lend_pair *pair_find(const struct lend_borrow *source, uint64_t dma, uint64_t bytes)
{
    struct lend_pair *found = NULL;
    for (struct lend_pair *pair = source->host->pairs; pair != NULL; pair = pair->next)
        if (pair->source == source && pair->dma == dma && pair->bytes == bytes &&
            (found == NULL || found->busy))
            found = pair;
    return found;
}

bool lend_peer_unmap(struct lend_borrow *source, uint64_t dma, uint64_t bytes)
{
    struct lend_pair *pair;
    while ((pair = pair_find(source, dma, bytes)) != NULL && pair->busy)
        k_sleep(source->host->kernel, STEP_PS); /* the target's borrow ends, which keeps the pair */
    if (pair == NULL)
        return false;
    pair->busy = true; /* no other thread frees it */
    pair_undo(source->host, pair);
    pair_free(source->host, pair);
    return true;
}

/* ---- Local devices as sources ---------------------------------------------------------------- */

static int allow(struct lend_pair *pair, struct lend_error *error)
{
    struct lend_connection *c = pair->target->connection;
    struct msg_peer_allowed allowed;
    pair->adapter = c->adapter;
    pair->outgoing = lend_outgoing_add(c->adapter, pair->requester_id, pair->target->name, error);
    if (pair->outgoing < 0)
        return pair->outgoing;
    pair->route = c->route;
    int status = lend_route_take(pair->target->host, c->adapter, &pair->route,
                                 (unsigned)pair->outgoing, error);
    if (status != 0)
        return status;
    pair->routed = true;
    const struct msg_peer_allow request = { .lease = pair->target->opened.lease,
                                            .adapter = LEND_ANY,
                                            .node = c->adapter->node,
                                            .device = (uint16_t)pair->outgoing,
                                            .function = pair->requester_id & 7 };
    status = lend_call(c, MSG_PEER_ALLOW, &request, sizeof request, &allowed, sizeof allowed,
                       error);
    if (status == 0)
        pair->requester = allowed.requester;
    return status;
}

int lend_peer_allow(struct lend_borrow *target, uint16_t requester_id, struct lend_error *error)
{
    if (going(target))
        return gone(target, error);
    struct lend_pair *pair = pair_new(target->host, NULL, target);
    pair->requester_id = requester_id;
    int status = allow(pair, error);
    if (status == 0 && going(target))
        status = gone(target, error);
    if (status != 0) {
        pair_undo(target->host, pair);
        pair_free(target->host, pair);
        return status;
    }
    pair->busy = false;
    return 0;
}

void lend_peer_revoke(struct lend_borrow *target, uint16_t requester_id)
{
    struct lend_pair *pair = target->host->pairs;
    while (pair != NULL && (pair->source != NULL || pair->target != target || pair->busy ||
                            pair->requester_id != requester_id))
        pair = pair->next;
    if (pair == NULL)
        return; /* the borrow has ended */
    pair->busy = true;
    pair_undo(target->host, pair);
    pair_free(target->host, pair);
}

/* ---- The end --------------------------------------------------------------------------------- */

static struct lend_pair *pair_next_of(const struct lend_borrow *b)
{
    struct lend_pair *pair = b->host->pairs;
    while (pair != NULL && pair->source != b && pair->target != b)
        pair = pair->next;
    return pair;
}

void lend_pairs_release(struct lend_borrow *b)
{
    struct lend_pair *pair;
    while ((pair = pair_next_of(b)) != NULL) {
        if (pair->busy) { /* the thread at work sees that the borrow ends */
            k_sleep(b->host->kernel, STEP_PS);
            continue;
        }
        pair->busy = true;
        if (pair->source == b)
            k_warn(b->host->kernel, "%s: its driver left registers of other devices mapped",
                   b->name);
        pair_undo(b->host, pair);
        if (pair->source == b || pair->source == NULL) {
            pair_free(b->host, pair);
        } else {
            pair->target = NULL; /* the source's driver still has to unmap it */
            pair->busy = false;
        }
    }
}

void lend_pairs_free(struct lend_host *host)
{
    while (host->pairs != NULL)
        pair_free(host, host->pairs);
}
