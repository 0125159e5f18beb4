/*
 * What it does: peer to peer, the lenders' side. The source's lender maps the target for it, in its
 *   own tree or through a window to another host; the target's lender lets remote requesters in.
 *   Lenders never ask each other: the borrower asks both in turn, so no server waits for another.
 * Follows: SmartIO, 4.4; PCI Express Base 3.1, 2.2.4.1 (routing by address).
 * Costs: window and requester entries, IOMMU calls, as they come.
 *
 * With the lender's IOMMU off, a device uses bus addresses for a target in the same tree or for a
 * window, and the switch between them routes by the shortest path. With it on, all of that is
 * mapped in the device's domain, and its requests go up to the root complex.
 */
#include <string.h>

#include "logic/lending/lending_internal.h"

/* ---- The source ------------------------------------------------------------------------------ */

void lend_mapping_drop(struct lend_lease *lease, struct lend_mapping *mapping)
{
    K_LIST_REMOVE(lease->mappings, mapping);
    if (mapping->iova_bytes != 0)
        lend_lease_unmap(lease, mapping->iova, mapping->iova_bytes);
    if (mapping->map.n != 0)
        lend_unmap(mapping->adapter, &mapping->map);
    if (mapping->routed)
        lend_route_give(lease->device->host, mapping->adapter, &mapping->route,
                        (unsigned)mapping->outgoing);
    if (mapping->outgoing >= 0)
        lend_outgoing_remove(mapping->adapter, (unsigned)mapping->outgoing);
    if (mapping->adapter != NULL)
        lend_route_close(lease->device->host, mapping->adapter, &mapping->route);
    k_free(mapping);
}

struct lend_mapping *lend_mapping_new(struct lend_lease *lease)
{
    struct lend_mapping *mapping = k_zalloc(sizeof *mapping);
    *mapping = (struct lend_mapping){ .next = lease->mappings,
                                      .number = ++lease->device->host->next_mapping,
                                      .outgoing = -1 };
    lease->mappings = mapping;
    return mapping;
}

static struct lend_mapping *mapping_find(struct lend_lease *lease, uint32_t number)
{
    struct lend_mapping *mapping = lease->mappings;
    while (mapping != NULL && mapping->number != number)
        mapping = mapping->next;
    return mapping;
}

int lend_mapping_map(struct lend_lease *lease, struct lend_mapping *mapping, uint64_t address,
                     uint64_t bytes, uint32_t direction, uint64_t at, uint64_t *dma,
                     struct lend_error *error)
{
    const enum k_dma_direction access = (enum k_dma_direction)direction;
    *dma = at;
    int status = at == 0 ? lend_lease_map(lease, address, bytes, access, dma, error)
                         : lend_lease_map_at(lease, address, bytes, access, at, error);
    if (status != 0)
        return status;
    mapping->iova = *dma;
    mapping->iova_bytes = bytes;
    return 0;
}

/* A lease of the host that asks, by whichever adapter. */
static struct lend_lease *lease_to_host(struct lend_connection *c, uint32_t number)
{
    for (struct lend_device *d = c->host->devices; d != NULL; d = d->next)
        if (d->lease != NULL && d->lease->connection != NULL && d->lease->number == number &&
            d->lease->connection->peer == c->peer)
            return d->lease;
    return NULL;
}

/* Checks bytes of a base address register, and finds their address in our tree. */
static int bytes_of(const struct lend_lease *lease, uint32_t bar, uint64_t offset, uint64_t bytes,
                    uint64_t *address, struct lend_error *error)
{
    const struct k_pci_dev *pci = lease->device->pci;
    *address = 0;
    if (bar >= K_PCI_BARS || bytes == 0 || offset >= pci->bar_bytes[bar] ||
        bytes > pci->bar_bytes[bar] - offset)
        return lend_fail(error, -EINVAL, "%s: no %#llx bytes at %#llx of base address %u",
                         lease->device->name, (unsigned long long)bytes, (unsigned long long)offset,
                         bar);
    *address = pci->bar_base[bar] + offset;
    return 0;
}

static int open_here(struct lend_lease *lease, struct lend_mapping *mapping,
                     struct lend_connection *c, const struct msg_peer_open *request, uint64_t *dma,
                     struct lend_error *error)
{
    uint64_t address;
    mapping->target = lease_to_host(c, request->target);
    if (mapping->target == NULL || mapping->target == lease)
        return lend_lease_over(request->target, error);
    int status = bytes_of(mapping->target, request->bar, request->offset, request->bytes, &address,
                          error);
    return status == 0 ? lend_mapping_map(lease, mapping, address, request->bytes,
                                          request->direction, request->at, dma, error)
                       : status;
}

/* Finds a path to the target's host: to the borrower by the adapter of the lease, to others by the
 * adapters that are nearest to the two devices. */
static int find_path(struct lend_lease *lease, const struct msg_peer_open *request,
                     struct lend_path *path, struct lend_error *error)
{
    struct lend_connection *c = lease->connection;
    struct lend_host *host = c->host;
    const unsigned own = lend_near_adapter(lease->device);
    if (request->host == c->peer) {
        *path = (struct lend_path){ c->peer, c->adapter->index, c->node, c->peer_adapter };
        return 0;
    }
    if (lend_resolve_by(host, request->host, own, request->adapter, path, NULL) == 0)
        return 0;
    lend_look_for(host, request->host); /* it started later, or there was no discovery yet */
    return lend_resolve_by(host, request->host, own, request->adapter, path, error);
}

int lend_mapping_reach(struct lend_lease *lease, struct lend_mapping *mapping,
                       const struct lend_path *path, struct msg_peer_opened *reply,
                       struct lend_error *error)
{
    const struct k_pci_dev *pci = lease->device->pci;
    struct lend_host *host = lease->device->host;
    struct lend_adapter *adapter = &host->adapter[path->adapter];
    mapping->adapter = adapter;
    mapping->node = path->node;
    mapping->outgoing = lend_outgoing_add(adapter, pci->id, lease->device->name, error);
    if (mapping->outgoing < 0)
        return mapping->outgoing;
    /* Reads through our IOMMU go as those of our root complexes. */
    int status = lend_route_open(host, adapter, path->node, &mapping->route, error);
    if (status == 0)
        status = lend_route_take(host, adapter, &mapping->route, (unsigned)mapping->outgoing,
                                 error);
    if (status != 0)
        return status;
    mapping->routed = true;
    status = lend_route_payload(&mapping->route, lease->payload_bytes, error);
    if (status != 0)
        return status;
    reply->adapter = path->peer_adapter;
    reply->node = adapter->node;
    reply->device = (uint16_t)mapping->outgoing;
    reply->function = pci->id & 7;
    reply->n_cpus = adapter->n_cpus;
    return 0;
}

static int open_away(struct lend_lease *lease, struct lend_mapping *mapping,
                     const struct msg_peer_open *request, struct msg_peer_opened *reply,
                     struct lend_error *error)
{
    struct lend_path path;
    const int status = find_path(lease, request, &path, error);
    return status == 0 ? lend_mapping_reach(lease, mapping, &path, reply, error) : status;
}

static int serve_open(struct lend_connection *c, const struct msg_peer_open *request, void *reply,
                      size_t *bytes, struct lend_error *error)
{
    struct lend_lease *lease = lease_to_host(c, request->lease);
    if (lease == NULL)
        return lend_lease_over(request->lease, error);
    struct lend_mapping *mapping = lend_mapping_new(lease);
    struct msg_peer_opened opened = { .mapping = mapping->number };
    int status = request->host == c->host->options.id
                     ? open_here(lease, mapping, c, request, &opened.dma, error)
                     : open_away(lease, mapping, request, &opened, error);
    if (status == 0)
        return lend_reply(reply, bytes, &opened, sizeof opened);
    lend_mapping_drop(lease, mapping);
    return status;
}

int lend_mapping_window(struct lend_lease *lease, struct lend_mapping *mapping,
                        const struct msg_peer_map *request, uint64_t *dma, struct lend_error *error)
{
    const unsigned bits = lease->device->dma_bits;
    const uint64_t limit = lease->domain != NULL || bits >= 64 ? 0 : UINT64_C(1) << bits;
    int status = lend_map(mapping->adapter, mapping->node, request->fabric, request->bytes, limit,
                          lease->device->name, &mapping->map, error);
    return status == 0 ? lend_mapping_map(lease, mapping, mapping->map.address, request->bytes,
                                          request->direction, request->at, dma, error)
                       : status;
}

static int serve_map(struct lend_connection *c, const struct msg_peer_map *request, void *reply,
                     size_t *bytes, struct lend_error *error)
{
    uint64_t dma;
    struct lend_lease *lease = lease_to_host(c, request->lease);
    struct lend_mapping *mapping = lease != NULL ? mapping_find(lease, request->mapping) : NULL;
    if (mapping == NULL || mapping->adapter == NULL || mapping->map.n != 0)
        return lend_lease_over(request->lease, error);
    /* After an error the borrower closes the mapping. */
    const int status = lend_mapping_window(lease, mapping, request, &dma, error);
    return status == 0 ? lend_reply(reply, bytes, &dma, sizeof dma) : status;
}

static int serve_close(struct lend_connection *c, const struct msg_peer_map *request,
                       struct lend_error *error)
{
    struct lend_lease *lease = lease_to_host(c, request->lease);
    struct lend_mapping *mapping = lease != NULL ? mapping_find(lease, request->mapping) : NULL;
    if (mapping == NULL)
        return lend_lease_over(request->lease, error);
    lend_mapping_drop(lease, mapping);
    return 0;
}

/* ---- The target ------------------------------------------------------------------------------ */

static void requester_drop(struct lend_lease *lease, struct lend_remote_requester *requester)
{
    K_LIST_REMOVE(lease->requesters, requester);
    while (requester->n_ids > 0)
        lend_incoming_remove(requester->adapter, requester->id[--requester->n_ids]);
    if (requester->bytes != 0)
        lend_unexport(requester->adapter, requester->fabric, requester->bytes);
    k_free(requester);
}

/* Exports the bytes; if the adapter is that of the lease, all registers are exported already. */
static int requester_export(struct lend_lease *lease, struct lend_remote_requester *requester,
                            const struct msg_peer_allow *request, uint64_t *fabric,
                            struct lend_error *error)
{
    uint64_t address;
    int status = bytes_of(lease, request->bar, request->offset, request->bytes, &address, error);
    if (status != 0)
        return status;
    if (requester->adapter == lease->connection->adapter) {
        *fabric = lease->bar[request->bar].fabric + request->offset;
        return 0;
    }
    status = lend_export(requester->adapter, address, request->bytes, &requester->fabric, error);
    if (status != 0)
        return status;
    requester->bytes = request->bytes;
    *fabric = requester->fabric;
    return 0;
}

static int requester_add_id(struct lend_lease *lease, struct lend_remote_requester *requester,
                            uint32_t node, unsigned device, unsigned function,
                            struct lend_error *error)
{
    int status = lend_incoming_add(requester->adapter, node, device, function, lease->device->name,
                                   &requester->id[requester->n_ids], error);
    requester->n_ids += status == 0;
    return status;
}

static int serve_allow(struct lend_connection *c, const struct msg_peer_allow *request, void *reply,
                       size_t *bytes, struct lend_error *error)
{
    struct lend_lease *lease = lease_to_host(c, request->lease);
    struct lend_host *host = c->host;
    if (lease == NULL)
        return lend_lease_over(request->lease, error);
    if (request->n_cpus >= LEND_REMOTE_IDS ||
        (request->adapter != LEND_ANY && request->adapter >= host->n_adapters))
        return lend_fail(error, -EPROTO, "%u CPUs, adapter %u", request->n_cpus, request->adapter);
    struct lend_remote_requester *requester = k_zalloc(sizeof *requester);
    *requester =
        (struct lend_remote_requester){ .next = lease->requesters,
                                        .number = ++host->next_mapping,
                                        .adapter = request->adapter == LEND_ANY
                                                       ? lease->connection->adapter
                                                       : &host->adapter[request->adapter] };
    lease->requesters = requester;
    struct msg_peer_allowed allowed = { .requester = requester->number };
    int status = requester_add_id(lease, requester, request->node, request->device,
                                  request->function, error);
    for (unsigned i = 0; status == 0 && i < request->n_cpus; i++)
        status = requester_add_id(lease, requester, request->node, i, 0, error);
    if (status == 0 && request->bytes != 0)
        status = requester_export(lease, requester, request, &allowed.fabric, error);
    if (status == 0)
        return lend_reply(reply, bytes, &allowed, sizeof allowed);
    requester_drop(lease, requester);
    return status;
}

static int serve_revoke(struct lend_connection *c, const struct msg_peer_revoke *request,
                        struct lend_error *error)
{
    struct lend_lease *lease = lease_to_host(c, request->lease);
    struct lend_remote_requester *requester = lease != NULL ? lease->requesters : NULL;
    while (requester != NULL && requester->number != request->requester)
        requester = requester->next;
    if (requester == NULL)
        return lend_lease_over(request->lease, error);
    requester_drop(lease, requester);
    return 0;
}

/* ---- Requests -------------------------------------------------------------------------------- */

int lend_serve_peer(struct lend_connection *c, unsigned type, const void *body, void *reply,
                    size_t *bytes, struct lend_error *error)
{
    union {
        struct msg_peer_open open;
        struct msg_peer_map map;
        struct msg_peer_allow allow;
        struct msg_peer_revoke revoke;
    } request;
    memcpy(&request, body, sizeof request);
    switch (type) {
    case MSG_PEER_OPEN: return serve_open(c, &request.open, reply, bytes, error);
    case MSG_PEER_MAP: return serve_map(c, &request.map, reply, bytes, error);
    case MSG_PEER_CLOSE: return serve_close(c, &request.map, error);
    case MSG_PEER_ALLOW: return serve_allow(c, &request.allow, reply, bytes, error);
    default: return serve_revoke(c, &request.revoke, error);
    }
}

/* ---- The end --------------------------------------------------------------------------------- */

void lend_mappings_release(struct lend_lease *lease)
{
    while (lease->mappings != NULL)
        lend_mapping_drop(lease, lease->mappings);
    while (lease->requesters != NULL)
        requester_drop(lease, lease->requesters);
    for (struct lend_device *d = lease->device->host->devices; d != NULL; d = d->next)
        for (struct lend_mapping *mapping = d->lease != NULL ? d->lease->mappings : NULL;
             mapping != NULL;) {
            struct lend_mapping *next = mapping->next;
            if (mapping->target == lease)
                lend_mapping_drop(d->lease, mapping);
            mapping = next;
        }
}

void lend_mappings_free(struct lend_lease *lease)
{
    while (lease->mappings != NULL) {
        struct lend_mapping *mapping = lease->mappings;
        lease->mappings = mapping->next;
        k_free(mapping);
    }
    while (lease->requesters != NULL) {
        struct lend_remote_requester *requester = lease->requesters;
        lease->requesters = requester->next;
        k_free(requester);
    }
}
