/*
 * Models: peer to peer, at the lenders: what the source's lender opens for it, to a device of its
 *   own or through a bridge to another host, and whom the target's lender lets in.
 * Does not model: requests of one lender to another: the borrower asks both in turn, so that no
 *   server waits for another.
 * Timing: entries of windows and requesters, IOMMU calls, as they come.
 * Sources: SmartIO, 4.4; PCI Express Base 3.1, 2.2.4.1 (routing by address).
 *
 * With the lender's IOMMU off, a device and its target in one tree use bus addresses, and what
 * switch lies between them takes the shortest way; a bridge beside the device likewise. With it on,
 * all of that is in the device's domain, and requests rise to the root complex.
 */
#include <string.h>

#include "logic/lending/lending_internal.h"

#define PAGE_MASK ((uint64_t)K_PAGE_BYTES - 1)

/* ---- The source ------------------------------------------------------------------------------ */

static void peer_drop(struct lend *lend, struct lend_peer *peer)
{
    struct lend_peer **link = &lend->peers;
    while (*link != peer)
        link = &(*link)->next;
    *link = peer->next;
    if (peer->iova_bytes != 0)
        lend_hide(lend, peer->iova, peer->iova_bytes);
    if (peer->map.n != 0)
        lend_unmap(peer->adapter, &peer->map);
    if (peer->outgoing >= 0 && lend_outgoing_remove(peer->adapter, (unsigned)peer->outgoing))
        lend_switches_forget(lend->device->host, peer->adapter, (unsigned)peer->outgoing);
    k_free(peer);
}

static struct lend_peer *peer_new(struct lend *lend)
{
    struct lend_peer *peer = k_zalloc(sizeof *peer);
    *peer = (struct lend_peer){ .next = lend->peers,
                                .number = ++lend->device->host->next_peer,
                                .outgoing = -1 };
    lend->peers = peer;
    return peer;
}

static struct lend_peer *peer_find(struct lend *lend, uint32_t number)
{
    struct lend_peer *peer = lend->peers;
    while (peer != NULL && peer->number != number)
        peer = peer->next;
    return peer;
}

/* Shows pages of our tree to the source; *dma: of the first of those bytes. */
static int peer_show(struct lend *lend, struct lend_peer *peer, uint64_t address, uint64_t bytes,
                     uint32_t direction, uint64_t at, uint64_t *dma, struct lend_error *error)
{
    const uint64_t within = address & PAGE_MASK, all = (within + bytes + PAGE_MASK) & ~PAGE_MASK;
    const enum k_dma_direction way = (enum k_dma_direction)direction;
    *dma = at - within;
    int status = at == 0 ? lend_show(lend, address - within, all, way, dma, error)
                         : lend_show_at(lend, address - within, all, way, at - within, error);
    if (status != 0)
        return status;
    peer->iova = *dma;
    peer->iova_bytes = all;
    *dma += within;
    return 0;
}

/* Some lend of ours to the host that asks, by whatever adapter. */
static struct lend *lend_by_number(struct lend_connection *c, uint32_t number)
{
    for (struct lend_device *d = c->host->devices; d != NULL; d = d->next)
        if (d->lend != NULL && d->lend->number == number && d->lend->connection->peer == c->peer)
            return d->lend;
    return NULL;
}

static int over(uint32_t number, struct lend_error *error)
{
    return lend_fail(error, -ENOENT, "lend %u is over", number);
}

/* Bytes of a base address register, in our tree. */
static int bytes_of(const struct lend *lend, uint32_t bar, uint64_t offset, uint64_t bytes,
                    uint64_t *address, struct lend_error *error)
{
    const struct k_pci_dev *pci = lend->device->pci;
    *address = 0;
    if (bar >= K_PCI_BARS || bytes == 0 || offset >= pci->bar_bytes[bar] ||
        bytes > pci->bar_bytes[bar] - offset)
        return lend_fail(error, -EINVAL, "%s: no %#llx bytes at %#llx of base address %u",
                         lend->device->name, (unsigned long long)bytes, (unsigned long long)offset,
                         bar);
    *address = pci->bar_base[bar] + offset;
    return 0;
}

static int open_here(struct lend *lend, struct lend_peer *peer, struct lend_connection *c,
                     const struct msg_peer_open *request, uint64_t *dma, struct lend_error *error)
{
    uint64_t address;
    peer->target = lend_by_number(c, request->target);
    if (peer->target == NULL || peer->target == lend)
        return over(request->target, error);
    int status = bytes_of(peer->target, request->bar, request->offset, request->bytes, &address,
                          error);
    return status == 0 ? peer_show(lend, peer, address, request->bytes, request->direction,
                                   request->at, dma, error)
                       : status;
}

/* The way to the target's host: back to the borrower by the adapter that it came by, to others by
 * the one that is nearest to both devices. */
static int find_way(struct lend *lend, const struct msg_peer_open *request, struct lend_path *path,
                    struct lend_error *error)
{
    struct lend_connection *c = lend->connection;
    struct lend_host *host = c->host;
    const unsigned own = lend_near_adapter(lend->device);
    if (request->host == c->peer) {
        *path = (struct lend_path){ c->peer, c->adapter->index, c->node, c->peer_adapter };
        return 0;
    }
    if (lend_resolve_by(host, request->host, own, request->adapter, path, NULL) == 0)
        return 0;
    lend_discover(host); /* it came later, or we have never looked */
    return lend_resolve_by(host, request->host, own, request->adapter, path, error);
}

static int open_away(struct lend *lend, struct lend_peer *peer, const struct msg_peer_open *request,
                     struct msg_peer_opened *reply, struct lend_error *error)
{
    struct lend_path path;
    const struct k_pci_dev *pci = lend->device->pci;
    int status = find_way(lend, request, &path, error);
    if (status != 0)
        return status;
    struct lend_adapter *adapter = &lend->device->host->adapter[path.adapter];
    peer->adapter = adapter;
    peer->node = path.node;
    peer->outgoing = lend_outgoing_add(adapter, pci->id, lend->device->name, error);
    if (peer->outgoing < 0)
        return peer->outgoing;
    reply->adapter = path.peer_adapter;
    reply->node = adapter->node;
    reply->device = (uint16_t)peer->outgoing;
    reply->function = pci->id & 7;
    reply->n_cpus = adapter->n_cpus;
    return 0;
}

static int serve_open(struct lend_connection *c, const struct msg_peer_open *request,
                      struct msg_peer_opened *reply, struct lend_error *error)
{
    struct lend *lend = lend_by_number(c, request->lend);
    if (lend == NULL)
        return over(request->lend, error);
    struct lend_peer *peer = peer_new(lend);
    *reply = (struct msg_peer_opened){ .peer = peer->number };
    int status = request->host == c->host->options.id
                     ? open_here(lend, peer, c, request, &reply->dma, error)
                     : open_away(lend, peer, request, reply, error);
    if (status != 0)
        peer_drop(lend, peer);
    return status;
}

static int serve_map(struct lend_connection *c, const struct msg_peer_map *request, uint64_t *dma,
                     struct lend_error *error)
{
    struct lend *lend = lend_by_number(c, request->lend);
    struct lend_peer *peer = lend != NULL ? peer_find(lend, request->peer) : NULL;
    if (peer == NULL || peer->adapter == NULL || peer->map.n != 0)
        return over(request->lend, error);
    const unsigned bits = lend->device->dma_bits;
    const uint64_t limit = lend->domain != NULL || bits >= 64 ? 0 : UINT64_C(1) << bits;
    int status = lend_map(peer->adapter, peer->node, request->fabric, request->bytes, limit,
                          lend->device->name, &peer->map, error);
    return status == 0 ? peer_show(lend, peer, peer->map.address, request->bytes,
                                   request->direction, request->at, dma, error)
                       : status; /* the borrower closes what it has opened */
}

static int serve_close(struct lend_connection *c, const struct msg_peer_map *request,
                       struct lend_error *error)
{
    struct lend *lend = lend_by_number(c, request->lend);
    struct lend_peer *peer = lend != NULL ? peer_find(lend, request->peer) : NULL;
    if (peer == NULL)
        return over(request->lend, error);
    peer_drop(lend, peer);
    return 0;
}

/* ---- The target ------------------------------------------------------------------------------ */

static void guest_drop(struct lend *lend, struct lend_guest *guest)
{
    struct lend_guest **link = &lend->guests;
    while (*link != guest)
        link = &(*link)->next;
    *link = guest->next;
    while (guest->n_ids > 0)
        lend_incoming_remove(guest->adapter, guest->id[--guest->n_ids]);
    if (guest->bytes != 0)
        lend_unexport(guest->adapter, guest->fabric, guest->bytes);
    k_free(guest);
}

/* By the adapter by which it is lent, all of its registers are there already. */
static int guest_export(struct lend *lend, struct lend_guest *guest,
                        const struct msg_peer_admit *request, uint64_t *fabric,
                        struct lend_error *error)
{
    uint64_t address;
    int status = bytes_of(lend, request->bar, request->offset, request->bytes, &address, error);
    if (status != 0)
        return status;
    if (guest->adapter == lend->connection->adapter) {
        *fabric = lend->bar[request->bar].fabric + request->offset;
        return 0;
    }
    const uint64_t within = address & PAGE_MASK,
                   bytes = (within + request->bytes + PAGE_MASK) & ~PAGE_MASK;
    status = lend_export(guest->adapter, address - within, bytes, &guest->fabric, error);
    if (status != 0)
        return status;
    guest->bytes = bytes;
    *fabric = guest->fabric + within;
    return 0;
}

static int guest_add_id(struct lend *lend, struct lend_guest *guest, uint32_t node, unsigned device,
                        unsigned function, struct lend_error *error)
{
    int status = lend_incoming_add(guest->adapter, node, device, function, lend->device->name,
                                   &guest->id[guest->n_ids], error);
    guest->n_ids += status == 0;
    return status;
}

static int serve_admit(struct lend_connection *c, const struct msg_peer_admit *request,
                       struct msg_peer_admitted *reply, struct lend_error *error)
{
    struct lend *lend = lend_by_number(c, request->lend);
    struct lend_host *host = c->host;
    if (lend == NULL)
        return over(request->lend, error);
    if (request->n_cpus >= LEND_GUEST_IDS ||
        (request->adapter != LEND_ANY && request->adapter >= host->n_adapters))
        return lend_fail(error, -EPROTO, "%u CPUs, adapter %u", request->n_cpus, request->adapter);
    struct lend_guest *guest = k_zalloc(sizeof *guest);
    *guest = (struct lend_guest){ .next = lend->guests,
                                  .number = ++host->next_peer,
                                  .adapter = request->adapter == LEND_ANY
                                                 ? lend->connection->adapter
                                                 : &host->adapter[request->adapter] };
    lend->guests = guest;
    *reply = (struct msg_peer_admitted){ .guest = guest->number };
    int status = guest_add_id(lend, guest, request->node, request->device, request->function,
                              error);
    for (unsigned i = 0; status == 0 && i < request->n_cpus; i++)
        status = guest_add_id(lend, guest, request->node, i, 0, error);
    if (status == 0 && request->bytes != 0)
        status = guest_export(lend, guest, request, &reply->fabric, error);
    if (status != 0)
        guest_drop(lend, guest);
    return status;
}

static int serve_dismiss(struct lend_connection *c, const struct msg_peer_dismiss *request,
                         struct lend_error *error)
{
    struct lend *lend = lend_by_number(c, request->lend);
    struct lend_guest *guest = lend != NULL ? lend->guests : NULL;
    while (guest != NULL && guest->number != request->guest)
        guest = guest->next;
    if (guest == NULL)
        return over(request->lend, error);
    guest_drop(lend, guest);
    return 0;
}

/* ---- Requests -------------------------------------------------------------------------------- */

int lend_serve_peer(struct lend_connection *c, unsigned type, const void *body, size_t n,
                    void *reply, size_t *bytes, struct lend_error *error)
{
    union {
        struct msg_peer_open open;
        struct msg_peer_map map;
        struct msg_peer_admit admit;
        struct msg_peer_dismiss dismiss;
    } request;
    union {
        struct msg_peer_opened opened;
        struct msg_peer_admitted admitted;
        uint64_t dma;
    } answer;
    const size_t wanted = type == MSG_PEER_OPEN      ? sizeof request.open
                          : type == MSG_PEER_ADMIT   ? sizeof request.admit
                          : type == MSG_PEER_DISMISS ? sizeof request.dismiss
                                                     : sizeof request.map;
    const size_t answered = type == MSG_PEER_OPEN    ? sizeof answer.opened
                            : type == MSG_PEER_ADMIT ? sizeof answer.admitted
                            : type == MSG_PEER_MAP   ? sizeof answer.dma
                                                     : 0;
    int status;
    if (n != wanted)
        return lend_fail(error, -EPROTO, "a request of %zu bytes", n);
    memcpy(&request, body, n);
    lend_lock(c->host, &c->host->lender_lock);
    switch (type) {
    case MSG_PEER_OPEN: status = serve_open(c, &request.open, &answer.opened, error); break;
    case MSG_PEER_MAP: status = serve_map(c, &request.map, &answer.dma, error); break;
    case MSG_PEER_CLOSE: status = serve_close(c, &request.map, error); break;
    case MSG_PEER_ADMIT: status = serve_admit(c, &request.admit, &answer.admitted, error); break;
    default: status = serve_dismiss(c, &request.dismiss, error); break;
    }
    lend_unlock(c->host, &c->host->lender_lock);
    if (status == 0) {
        memcpy(reply, &answer, answered);
        *bytes = answered;
    }
    return status;
}

/* ---- The end --------------------------------------------------------------------------------- */

void lend_peers_end(struct lend *lend)
{
    while (lend->peers != NULL)
        peer_drop(lend, lend->peers);
    while (lend->guests != NULL)
        guest_drop(lend, lend->guests);
    for (struct lend_device *d = lend->device->host->devices; d != NULL; d = d->next)
        for (struct lend_peer *peer = d->lend != NULL ? d->lend->peers : NULL; peer != NULL;) {
            struct lend_peer *next = peer->next;
            if (peer->target == lend)
                peer_drop(d->lend, peer);
            peer = next;
        }
}

void lend_peers_free(struct lend *lend)
{
    while (lend->peers != NULL) {
        struct lend_peer *peer = lend->peers;
        lend->peers = peer->next;
        k_free(peer);
    }
    while (lend->guests != NULL) {
        struct lend_guest *guest = lend->guests;
        lend->guests = guest->next;
        k_free(guest);
    }
}
