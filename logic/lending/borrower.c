/*
 * What it does: the borrower's side of a lease: takes what the shadow device needs before it
 *   appears, and gives it back however the borrow ends. A device has one borrower, and at least one
 *   base address.
 * Follows: Device Lending, section 5; SmartIO, 4.1 to 4.3.
 * Costs: requests to the lender, table entries, the driver's probe().
 *
 * Order. The range of DMA addresses is reserved first, so that the lender can map it while it
 * serves MSG_OPEN; then the device becomes an incoming requester and its registers get windows. A
 * failure undoes these steps in reverse. MSG_CLOSE is answered before our own addresses are
 * released: otherwise the device could write to memory that has a new owner. If the lender is lost,
 * it cannot be asked; the device is then stopped at our NTB before its driver releases anything.
 */
#include <stdio.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "logic/lending/lending_internal.h"

#define STEP_PS (20 * K_US)

/* ---- Resources ------------------------------------------------------------------------------- */

/* Chooses the memory that the device may reach: a range of I/O virtual addresses of its own, or,
 * without an IOMMU, all memory. */
static int reserve_ranges(struct lend_borrow *b, struct lend_error *error)
{
    struct lend_adapter *adapter = b->connection->adapter;
    struct msg_range *range = b->request.range;
    const uint64_t bytes = b->host->options.dma_window_bytes;
    b->translated = adapter->domain != NULL;
    if (!b->translated) {
        uint64_t base, all;
        while (k_memory_range(b->host->kernel, b->request.n_ranges, &base, &all)) {
            if (b->request.n_ranges == LEND_DMA_RANGES)
                return lend_fail(error, -E2BIG, "%s: more than %u ranges of memory and no IOMMU",
                                 b->host->options.name, LEND_DMA_RANGES);
            range[b->request.n_ranges++] = (struct msg_range){ base, all };
        }
        return 0;
    }
    if (!lend_ranges_take(&adapter->iova, bytes, bytes, &range[0].fabric))
        return lend_fail(error, -ENOSPC, "%s: %llu MiB of I/O virtual addresses: %llu MiB in use",
                         adapter->pci->device.name, (unsigned long long)(bytes >> 20),
                         (unsigned long long)(lend_ranges_taken_bytes(&adapter->iova) >> 20));
    b->reserved = true;
    b->request.n_ranges = 1;
    range[0].bytes = bytes;
    lend_pages_init(&b->pages, lend_order_of(bytes / K_PAGE_BYTES));
    return 0;
}

static int map_bars(struct lend_borrow *b, struct lend_error *error)
{
    struct lend_connection *c = b->connection;
    for (unsigned i = 0; i < K_PCI_BARS; i++) {
        const struct msg_range *bar = &b->opened.bar[i];
        if (bar->bytes == 0)
            continue;
        int status = lend_map(c->adapter, c->node, bar->fabric, bar->bytes, 0, b->name, &b->bar[i],
                              error);
        if (status != 0)
            return status;
        b->dev.bar_base[i] = b->bar[i].address;
        b->dev.bar_bytes[i] = bar->bytes;
    }
    return 0;
}

static int open_lease(struct lend_borrow *b, struct lend_error *error)
{
    struct lend_connection *c = b->connection;
    int status = lend_call(c, MSG_OPEN, &b->request, sizeof b->request, &b->opened,
                           sizeof b->opened, error);
    if (status < 0)
        return status;
    b->open = true;
    b->opened.name[LEND_NAME_BYTES - 1] = '\0';
    snprintf(b->name, sizeof b->name, "%s@%u", b->opened.name, c->peer);
    uint16_t id;
    status = lend_incoming_add(c->adapter, c->node, b->opened.device, b->opened.function, b->name,
                               &id, error);
    if (status == 0)
        b->requester_id = id;
    return status == 0 ? map_bars(b, error) : status;
}

/* Unmaps what the driver has left in the IOMMU, in pieces of page sizes, largest first. */
static void unmap_leftovers(struct lend_borrow *b)
{
    static const uint64_t piece[] = { UINT64_C(1) << 30, UINT64_C(1) << 21, K_PAGE_BYTES };
    struct k_iommu_domain *domain = b->connection->adapter->domain;
    const uint64_t base = b->request.range[0].fabric, bytes = b->request.range[0].bytes;
    k_warn(b->host->kernel, "%s: its driver left pages mapped", b->name);
    for (unsigned i = 0; i < sizeof piece / sizeof piece[0]; i++)
        for (uint64_t at = 0; at + piece[i] <= bytes; at += piece[i])
            k_iommu_unmap(domain, base + at, piece[i]); /* fails where nothing is mapped */
    b->mapped_pages = 0;
}

/* Releases everything but the structure. The shadow device is not in the tree. */
static void borrow_release(struct lend_borrow *b)
{
    struct lend_connection *c = b->connection;
    const struct msg_config request = { .lease = b->opened.lease };
    lend_pairs_release(b);
    if (b->open)
        lend_call(c, MSG_CLOSE, &request, sizeof request, NULL, 0, NULL);
    b->open = false;
    for (unsigned i = 0; i < K_PCI_BARS; i++)
        if (b->bar[i].n != 0)
            lend_unmap(c->adapter, &b->bar[i]);
    if (b->requester_id != 0)
        lend_incoming_remove(c->adapter, b->requester_id);
    b->requester_id = 0;
    if (b->mapped_pages != 0)
        unmap_leftovers(b);
    if (b->reserved) {
        lend_ranges_give(&c->adapter->iova, b->request.range[0].fabric);
        lend_pages_release(&b->pages);
    }
    b->reserved = false;
    b->connection = NULL;
    lend_connection_put(c);
}

/* ---- Borrowing ------------------------------------------------------------------------------- */

static void shadow_identify(struct lend_borrow *b)
{
    const struct lend_adapter *adapter = b->connection->adapter;
    struct k_pci_dev *dev = &b->dev;
    dev->device = (struct k_device){ .kernel = b->host->kernel,
                                     .name = b->name,
                                     .node = adapter->pci->device.node,
                                     .dma_ops = &lend_shadow_dma_ops,
                                     .dma_context = b };
    dev->id = b->requester_id != 0 ? b->requester_id : adapter->pci->id;
    dev->vendor_id = b->opened.vendor_id;
    dev->device_id = b->opened.device_id;
    dev->class_code = b->opened.class_code;
    dev->ops = &lend_shadow_ops;
}

/* Adds the shadow to our tree. A thread that ends the borrow meanwhile waits until probe() returns.
 */
static int shadow_add(struct lend_borrow *b, struct lend_error *error)
{
    struct lend_host *host = b->host;
    int status = 0;
    shadow_identify(b);
    b->starting = true;
    b->next = host->borrows;
    host->borrows = b;
    lend_shadow_init(b);
    if (b->connection->state != CONNECTION_UP)
        status = lend_fail(error, -ECONNRESET, "host %u was lost", b->connection->peer);
    if (status == 0 && (status = k_pci_add(host->kernel, &b->dev)) != 0)
        lend_fail(error, status, "%s: the kernel does not take it", b->name);
    b->injected = status == 0;
    b->starting = false;
    return status;
}

/* Asks which adapter of the lender is nearest to the device. */
static unsigned nearest_adapter(struct lend_connection *c, uint16_t id)
{
    struct lend_info info;
    for (uint32_t i = 0;; i++) {
        if (lend_call(c, MSG_LIST, &i, sizeof i, &info, sizeof info, NULL) < 0)
            return c->peer_adapter;
        if (info.id == id)
            return info.adapter;
    }
}

/* Connects to the peer's adapter that is nearest to the device, if a path leads there. */
static int connect_near(struct lend_host *host, uint32_t peer, uint16_t id,
                        struct lend_connection **c, struct lend_error *error)
{
    struct lend_path path;
    int status = lend_connect_peer(host, peer, c, error);
    if (status != 0)
        return status;
    const unsigned wanted = nearest_adapter(*c, id);
    if (wanted == (*c)->peer_adapter)
        return 0;
    if (lend_resolve(host, peer, wanted, &path, error) != 0 || path.peer_adapter != wanted)
        return 0; /* stay with the longer path */
    lend_connection_put(*c);
    return lend_connect(host, &path, c, error);
}

/* mdev: NULL, or that of virtual machine `guest`. */
static int borrow_open(struct lend_host *host, uint32_t peer, uint16_t id, struct lend_mdev *mdev,
                       uint64_t guest, struct lend_borrow **borrow, struct lend_error *error)
{
    struct lend_connection *c;
    int status = connect_near(host, peer, id, &c, error);
    if (status != 0)
        return status;
    struct lend_borrow *b = k_zalloc(sizeof *b);
    b->host = host;
    b->mdev = mdev;
    b->connection = c;
    b->request.id = id;
    b->request.mps_bytes = (uint16_t)lend_payload_of(c->adapter->pci);
    status = lend_route_payload(&c->route, b->request.mps_bytes, error); /* of our answers */
    if (mdev != NULL)
        b->request.guest = guest;
    else if (status == 0)
        status = reserve_ranges(b, error);
    if (status == 0)
        status = open_lease(b, error);
    if (status == 0 && c->state != CONNECTION_UP)
        status = lend_fail(error, -ECONNRESET, "host %u was lost", peer);
    if (status != 0) {
        borrow_release(b);
        k_free(b);
        return status;
    }
    *borrow = b;
    return 0;
}

int lend_borrow(struct lend_host *host, uint32_t peer, uint16_t id, struct lend_borrow **borrow,
                struct lend_error *error)
{
    struct lend_borrow *b;
    int status = borrow_open(host, peer, id, NULL, 0, &b, error);
    if (status != 0)
        return status;
    status = shadow_add(b, error);
    if (status == 0)
        *borrow = b;
    else
        lend_return(b);
    return status;
}

int lend_borrow_vm(struct lend_host *host, uint32_t peer, uint16_t id, struct lend_mdev *mdev,
                   uint64_t guest, struct lend_borrow **borrow, struct lend_error *error)
{
    int status = borrow_open(host, peer, id, mdev, guest, borrow, error);
    if (status != 0)
        return status;
    struct lend_borrow *b = *borrow;
    shadow_identify(b); /* peer-to-peer mappings of the guest's other devices refer to it */
    b->starting = true;
    b->next = host->borrows;
    host->borrows = b;
    lend_shadow_init(b);
    b->starting = false;
    if (b->connection->state == CONNECTION_UP)
        return 0;
    status = lend_fail(error, -ECONNRESET, "host %u was lost", peer);
    lend_return(b);
    return status;
}

struct k_pci_dev *lend_borrow_device(const struct lend_borrow *b)
{
    return b->connection != NULL && !b->ending ? (struct k_pci_dev *)&b->dev : NULL;
}

static void borrow_stop(struct lend_borrow *b, bool gone)
{
    struct lend_host *host = b->host;
    while (b->starting || (b->ending && b->connection != NULL))
        k_sleep(host->kernel, STEP_PS);
    if (b->connection == NULL)
        return;
    b->ending = true;
    gone = gone || b->connection->state == CONNECTION_LOST; /* who declared it has yet to come */
    if (gone)
        b->open = false;
    if (gone && b->requester_id != 0)
        lend_incoming_block(b->connection->adapter, b->requester_id);
    if (b->injected)
        k_pci_remove(&b->dev, gone);
    if (b->mdev != NULL)
        lend_mdev_lost(b->mdev);
    b->injected = false;
    borrow_release(b);
}

/* Ends the borrow; of several callers one does so and the others wait. gone: the device does not
 * answer any more. The caller counts as a user until it returns. */
static void borrow_end(struct lend_borrow *b, bool gone)
{
    b->users++;
    borrow_stop(b, gone);
    b->users--;
}

void lend_return(struct lend_borrow *b)
{
    borrow_end(b, false);
    while (b->users != 0) /* the server, or the thread of a reclaim */
        k_sleep(b->host->kernel, STEP_PS);
    K_LIST_REMOVE(b->host->borrows, b);
    if (b->mdev != NULL)
        lend_mdev_returned(b->mdev);
    k_free(b);
}

void lend_borrows_return(struct lend_host *host)
{
    while (host->borrows != NULL)
        lend_return(host->borrows);
}

void lend_borrows_free(struct lend_host *host)
{
    while (host->borrows != NULL) {
        struct lend_borrow *b = host->borrows;
        host->borrows = b->next;
        lend_pages_release(&b->pages);
        k_free(b);
    }
}

/* ---- Ended by the lender --------------------------------------------------------------------- */

void lend_borrower_block(struct lend_connection *c)
{
    for (struct lend_borrow *b = c->host->borrows; b != NULL; b = b->next) {
        b->users++; /* it stays in the list */
        if (b->connection == c && b->requester_id != 0)
            lend_incoming_block(c->adapter, b->requester_id);
        b->users--;
    }
}

void lend_borrower_lost(struct lend_connection *c)
{
    for (struct lend_borrow *b = c->host->borrows; b != NULL; b = b->next)
        if (b->connection == c)
            borrow_end(b, true);
}

static void reclaimed(void *arg)
{
    struct lend_borrow *b = arg;
    borrow_end(b, false);
    b->users--; /* that serve_borrower() counted */
}

int lend_serve_borrower(struct lend_connection *c, unsigned type, const void *body, void *reply,
                        size_t *bytes, struct lend_error *error)
{
    struct msg_config request;
    (void)type;
    (void)reply;
    (void)bytes;
    memcpy(&request, body, sizeof request);
    for (struct lend_borrow *b = c->host->borrows; b != NULL; b = b->next)
        if (b->connection == c && b->opened.lease == request.lease) {
            /* Not in this thread: while the driver quiets the device it needs our server. */
            b->users++;
            k_thread_new(c->host->kernel, "lend_reclaim", K_CPU_ANY, reclaimed, b);
            return 0;
        }
    return lend_lease_over(request.lease, error);
}

/* ---- Inspection ------------------------------------------------------------------------------ */

int lend_list(struct lend_host *host, uint32_t peer, unsigned i, struct lend_info *info,
              struct lend_error *error)
{
    const uint32_t index = i;
    struct lend_connection *c;
    int status = lend_connect_peer(host, peer, &c, error);
    if (status != 0)
        return status;
    status = lend_call(c, MSG_LIST, &index, sizeof index, info, sizeof *info, error);
    info->name[LEND_NAME_BYTES - 1] = '\0';
    lend_connection_put(c);
    return status;
}

struct lend_usage lend_usage(const struct lend_host *host)
{
    struct lend_usage u = { 0 };
    for (unsigned i = 0; i < host->n_adapters; i++) {
        const struct lend_adapter *adapter = &host->adapter[i];
        u.windows += lend_windows_used(adapter);
        u.outgoing += adapter->outgoing.n_used - adapter->n_cpus;
        u.incoming += adapter->incoming.n_used;
        u.exported_bytes += lend_ranges_taken_bytes(&adapter->iova);
    }
    for (const struct lend_hop *hop = host->hops; hop != NULL; hop = hop->next) {
        u.hops++;
        u.unsettled += hop->dirty;
    }
    for (const struct lend_connection *c = host->connections; c != NULL; c = c->next)
        u.connections++;
    for (const struct lend_device *d = host->devices; d != NULL; d = d->next)
        u.lent += d->lease != NULL;
    for (const struct lend_borrow *b = host->borrows; b != NULL; b = b->next) {
        u.borrowed += b->connection != NULL;
        u.mapped_pages += b->mapped_pages;
    }
    for (const struct lend_pair *pair = host->pairs; pair != NULL; pair = pair->next)
        u.peers++;
    for (const struct lend_device *d = host->devices; d != NULL; d = d->next) {
        for (const struct lend_mapping *m = d->lease != NULL ? d->lease->mappings : NULL; m;
             m = m->next)
            u.peer_entries++;
        for (const struct lend_remote_requester *r = d->lease != NULL ? d->lease->requesters : NULL;
             r; r = r->next)
            u.peer_entries++;
    }
    u.pool_bytes = lend_ranges_taken_bytes(&host->pool_space);
    return u;
}
