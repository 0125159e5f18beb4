/*
 * What it does: what a service on top of device lending needs of it: connections, requests, notice
 *   of losses, and the lender's means for devices that the service has itself (service.h).
 * Follows: SmartIO, 6: what Device Lending, MDEV and the SISCI extension have in common.
 * Costs: those of the functions that it calls.
 */
#include "logic/lending/service.h"

#include "hw/pci_regs.h"
#include "logic/lending/lending_internal.h"

_Static_assert(LEND_SERVICE_BYTES == BODY_BYTES, "a request is one message");

void lend_service_register(struct lend_host *host, const struct lend_service_ops *ops,
                           void *context)
{
    host->service = ops;
    host->service_context = context;
}

void lend_service_lock(struct lend_host *host)
{
    lend_lock(host, &host->lender_lock);
}

void lend_service_unlock(struct lend_host *host)
{
    lend_unlock(host, &host->lender_lock);
}

struct kernel *lend_kernel(const struct lend_host *host)
{
    return host->kernel;
}

const struct lend_options *lend_options_of(const struct lend_host *host)
{
    return &host->options;
}

/* ---- Connections ----------------------------------------------------------------------------- */

/* A path by the adapters that are wanted. */
static int find_path(struct lend_host *host, uint32_t peer, unsigned adapter, unsigned peer_adapter,
                     struct lend_path *path, struct lend_error *error)
{
    const int status = lend_resolve_by(host, peer, adapter, peer_adapter, path, error);
    if (status != 0)
        return status;
    if ((adapter != LEND_ANY && path->adapter != adapter) ||
        (peer_adapter != LEND_ANY && path->peer_adapter != peer_adapter))
        return lend_fail(error, -EHOSTUNREACH,
                         "%s: no path to host %u from adapter %d to its adapter %d that is up",
                         host->options.name, peer, (int)adapter, (int)peer_adapter);
    return 0;
}

int lend_service_connect(struct lend_host *host, uint32_t peer, unsigned adapter,
                         unsigned peer_adapter, struct lend_connection **connection,
                         struct lend_error *error)
{
    struct lend_path path;
    if (adapter != LEND_ANY && adapter >= host->n_adapters)
        return lend_fail(error, -ENODEV, "%s: no adapter %u, there are %u", host->options.name,
                         adapter, host->n_adapters);
    int status = find_path(host, peer, adapter, peer_adapter, &path, NULL);
    if (status != 0) {
        lend_look_for(host, peer); /* it started later, or nobody has looked yet */
        status = find_path(host, peer, adapter, peer_adapter, &path, error);
    }
    return status == 0 ? lend_connect(host, &path, connection, error) : status;
}

void lend_service_get(struct lend_connection *c)
{
    c->users++;
}

void lend_service_put(struct lend_connection *c)
{
    lend_connection_put(c);
}

int lend_service_call(struct lend_connection *c, const void *request, size_t request_bytes,
                      void *reply, size_t reply_bytes, struct lend_error *error)
{
    return lend_call(c, MSG_SERVICE, request, request_bytes, reply, reply_bytes, error);
}

bool lend_service_up(const struct lend_connection *c)
{
    return c->state == CONNECTION_UP;
}

uint32_t lend_service_peer(const struct lend_connection *c)
{
    return c->peer;
}

struct lend_adapter *lend_service_adapter(const struct lend_connection *c)
{
    return c->adapter;
}

uint32_t lend_service_node(const struct lend_connection *c)
{
    return c->node;
}

unsigned lend_service_peer_adapter(const struct lend_connection *c)
{
    return c->peer_adapter;
}

uint32_t lend_service_incarnation(const struct lend_connection *c)
{
    return c->incarnation;
}

struct lend_connection *lend_service_find(struct lend_host *host, uint32_t peer,
                                          uint32_t incarnation)
{
    struct lend_connection *found = NULL;
    for (struct lend_connection *c = host->connections; c != NULL; c = c->next)
        if (c->peer == peer && c->state == CONNECTION_UP &&
            (incarnation == 0 || c->incarnation == incarnation) &&
            (found == NULL || found->adapter->down))
            found = c;
    return found;
}

unsigned lend_adapter_payload(struct lend_adapter *adapter)
{
    return lend_payload_of(adapter->pci);
}

int lend_serve_service(struct lend_connection *c, unsigned type, const void *body, void *reply,
                       size_t *bytes, struct lend_error *error)
{
    (void)type;
    if (c->host->service == NULL)
        return lend_fail(error, -EOPNOTSUPP, "%s does not take part in SISCI",
                         c->host->options.name);
    return c->host->service->serve(c->host->service_context, c, body, reply, bytes, error);
}

/* ---- Devices --------------------------------------------------------------------------------- */

bool lend_offered(struct lend_host *host, unsigned i, struct lend_info *info,
                  struct k_pci_dev **pci)
{
    const struct lend_device *d = host->devices;
    while (d != NULL && i-- > 0)
        d = d->next;
    if (d == NULL)
        return false;
    lend_device_info(d, info);
    *pci = d->pci;
    return true;
}

int lend_claim(struct lend_host *host, uint16_t id, struct lend_lease **result,
               struct lend_error *error)
{
    struct lend_device *d = lend_device_find(host, id);
    struct lend_info info;
    if (d == NULL)
        return lend_fail(error, -ENOENT, "%s has no device %04x to lend", host->options.name,
                         (unsigned)id);
    lend_device_info(d, &info);
    if (d->lease != NULL)
        return lend_fail(error, -EBUSY, "%s is lent to host %u", d->name, info.lent_to);
    int status = lend_device_ready(d, 0, error);
    if (status != 0)
        return status;
    struct lend_lease *lease = k_zalloc(sizeof *lease);
    *lease = (struct lend_lease){ .device = d, .number = ++host->next_lease, .outgoing = -1 };
    d->lease = lease;
    lend_device_quiet(d);
    lease->payload_bytes = lend_payload_of(d->pci);
    status = lend_device_payload(d, lease->payload_bytes, error);
    if (status == 0)
        status = lend_lease_isolate(lease, error);
    if (status == 0)
        *result = lease;
    else
        lend_lease_release(lease);
    return status;
}

void lend_claim_end(struct lend_lease *lease, bool forced)
{
    struct lend_device *d = lease->device;
    lend_device_quiet(d);
    lend_device_used(d, 0);
    lend_lease_release(lease);
    lend_device_restore(d, forced);
}

void lend_claim_enable(struct lend_lease *lease)
{
    k_pci_enable(lease->device->pci);
}

int lend_claim_payload(struct lend_lease *lease, unsigned bytes, struct lend_error *error)
{
    struct lend_device *d = lease->device;
    if (bytes == lease->payload_bytes)
        return 0;
    if (lease->mappings != NULL)
        return lend_fail(
            error, -EMSGSIZE,
            "%s: payloads of %u bytes for those that have it mapped memory, of %u bytes "
            "for another host",
            d->name, lease->payload_bytes, bytes);
    lend_device_restore(d, false);
    const int status = lend_device_payload(d, bytes, error);
    if (status == 0)
        lease->payload_bytes = bytes;
    return status;
}

int lend_claim_reset(struct lend_lease *lease, struct lend_error *error)
{
    return lend_device_reset(lease->device, error);
}

bool lend_claim_resetting(const struct lend_lease *lease)
{
    return lease->device->resetting;
}

struct k_pci_dev *lend_claim_pci(const struct lend_lease *lease)
{
    return lease->device->pci;
}

bool lend_claim_isolated(const struct lend_lease *lease)
{
    return lease->domain != NULL;
}

unsigned lend_claim_payload_of(const struct lend_lease *lease)
{
    return lease->payload_bytes;
}

unsigned lend_claim_tree_payload(const struct lend_lease *lease)
{
    const uint32_t control = lease->device->device_control;
    return lease->device->pcie_cap == 0
               ? lease->payload_bytes
               : 128u << ((control & PCIE_DEVCTL_MPS_MASK) >> PCIE_DEVCTL_MPS_SHIFT);
}

int lend_claim_path(struct lend_host *host, unsigned near, uint32_t peer, struct lend_path *path,
                    struct lend_error *error)
{
    if (lend_resolve_by(host, peer, near, LEND_ANY, path, NULL) == 0)
        return 0;
    lend_look_for(host, peer);
    return lend_resolve_by(host, peer, near, LEND_ANY, path, error);
}

unsigned lend_claim_near(const struct lend_lease *lease)
{
    return lend_near_adapter(lease->device);
}

struct k_pci_dev *lend_leased_to(struct lend_host *host, uint16_t id, uint32_t peer)
{
    const struct lend_device *d = lend_device_find(host, id);
    if (d == NULL || d->lease == NULL ||
        (d->lease->connection != NULL && d->lease->connection->peer != peer))
        return NULL;
    return d->pci;
}

bool lend_borrowed_from(struct lend_host *host, const struct k_pci_dev *pci, uint32_t *lender,
                        uint16_t *id)
{
    for (const struct lend_borrow *b = host->borrows; b != NULL; b = b->next)
        if (&b->dev == pci && b->connection != NULL && !b->ending) {
            *lender = b->connection->peer;
            *id = b->request.id;
            return true;
        }
    return false;
}

/* ---- What a claimed device reaches ----------------------------------------------------------- */

int lend_claim_open(struct lend_lease *lease, const struct lend_path *path,
                    struct lend_mapping **result, struct lend_requester *requester,
                    struct lend_error *error)
{
    struct lend_mapping *mapping = lend_mapping_new(lease);
    struct msg_peer_opened opened = { 0 };
    const int status = lend_mapping_reach(lease, mapping, path, &opened, error);
    if (status != 0) {
        lend_mapping_drop(lease, mapping);
        return status;
    }
    *requester = (struct lend_requester){ .adapter = path->adapter,
                                          .peer_adapter = path->peer_adapter,
                                          .node = opened.node,
                                          .device = opened.device,
                                          .function = opened.function,
                                          .n_cpus = opened.n_cpus,
                                          .payload_bytes = lease->payload_bytes };
    *result = mapping;
    return 0;
}

int lend_claim_open_multicast(struct lend_lease *lease, unsigned index,
                              struct lend_mapping **result, struct lend_error *error)
{
    struct lend_adapter *adapter = &lease->device->host->adapter[index];
    struct lend_mapping *mapping = lend_mapping_new(lease);
    mapping->adapter = adapter;
    mapping->node = NTB_NODE_MULTICAST;
    mapping->outgoing = lend_outgoing_add(adapter, lease->device->pci->id, lease->device->name,
                                          error);
    if (mapping->outgoing < 0) {
        const int status = mapping->outgoing;
        lend_mapping_drop(lease, mapping);
        return status;
    }
    *result = mapping;
    return 0;
}

int lend_claim_map(struct lend_lease *lease, struct lend_mapping *mapping, uint64_t fabric,
                   uint64_t bytes, enum k_dma_direction direction, uint64_t *dma,
                   struct lend_error *error)
{
    const struct msg_peer_map request = { .direction = direction,
                                          .fabric = fabric,
                                          .bytes = bytes };
    return lend_mapping_window(lease, mapping, &request, dma, error);
}

int lend_claim_map_here(struct lend_lease *lease, uint64_t address, uint64_t bytes,
                        enum k_dma_direction direction, struct lend_mapping **result, uint64_t *dma,
                        struct lend_error *error)
{
    struct lend_mapping *mapping = lend_mapping_new(lease);
    const int status = lend_mapping_map(lease, mapping, address, bytes, direction, 0, dma, error);
    if (status == 0)
        *result = mapping;
    else
        lend_mapping_drop(lease, mapping);
    return status;
}

void lend_claim_close(struct lend_lease *lease, struct lend_mapping *mapping)
{
    lend_mapping_drop(lease, mapping);
}
