/*
 * What it does: the lender's side of a lease. It is the driver of the devices that it lends. A
 *   lease has an IOMMU domain for the device, windows to the borrower's memory and interrupt
 *   addresses, and exports of the device's registers; a lender ends it by force if need be. Legacy
 *   interrupts are not forwarded, and there are no quotas.
 * Follows: Device Lending, section 5; SmartIO, 4.1 to 4.3; PCI Express Base 3.1, 6.6.2.
 * Costs: configuration accesses, table writes and IOMMU calls as they come.
 */
#include <stdio.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "logic/lending/lending_internal.h"

/* I/O virtual addresses of a leased device: first fit, so below 4 GiB as long as there is room, for
 * devices that reach no further; the hole is what firmware gives to registers and interrupts. */
#define IOVA_FIRST      UINT64_C(0x00100000)
#define IOVA_HOLE       UINT64_C(0xe0000000)
#define IOVA_HOLE_BYTES UINT64_C(0x20000000)
#define IOVA_END        (UINT64_C(1) << 39)
#define IOVA_ALIGN_MAX  (UINT64_C(1) << 30)

/* ---- Devices --------------------------------------------------------------------------------- */

static int lender_probe(struct k_pci_dev *pci, void *context)
{
    struct lend_host *host = context;
    if (pci->ops == &lend_shadow_ops || /* a borrowed device is not lent on */
        (host->options.want != NULL && !host->options.want(pci, host->options.context)))
        return -ENODEV;
    struct lend_device *d = k_zalloc(sizeof *d);
    *d = (struct lend_device){ .next = host->devices, .host = host };
    lend_device_init(d, pci);
    snprintf(d->name, sizeof d->name, "%s", pci->device.name);
    d->dma_bits = 64;
    if (host->options.dma_bits != NULL)
        d->dma_bits = host->options.dma_bits(pci, host->options.context);
    host->devices = d;
    pci->device.driver_data = d;
    lend_device_quiet(d);
    return 0;
}

static void lender_remove(struct k_pci_dev *pci, bool gone)
{
    struct lend_device *d = pci->device.driver_data;
    (void)gone;
    d->leaving = true;
    lend_reclaim(d->host, pci->id);
    while (d->resetting)
        k_sleep(d->host->kernel, K_MS);
    K_LIST_REMOVE(d->host->devices, d);
    k_free(d);
}

void lend_lender_init(struct lend_host *host)
{
    static const struct k_pci_id none[] = { { 0, 0 } };
    host->lender_driver = (struct k_pci_driver){
        .name = "lender",
        .ids = host->options.lend != NULL ? host->options.lend : none,
        .probe = lender_probe,
        .remove = lender_remove,
        .context = host,
    };
}

void lend_devices_free(struct lend_host *host)
{
    for (struct lend_device *d = host->devices; d != NULL && !host->dead; d = d->next)
        while (d->resetting)
            k_sleep(host->kernel, K_MS);
    while (host->devices != NULL) {
        struct lend_device *d = host->devices;
        host->devices = d->next;
        if (d->lease != NULL) {
            lend_mappings_free(d->lease);
            lend_vm_free(d->lease);
            lend_ranges_release(&d->lease->iova);
        }
        k_free(d->lease);
        k_free(d);
    }
}

/* ---- Resources of a lease -------------------------------------------------------------------- */

void lend_lease_release(struct lend_lease *lease)
{
    struct lend_connection *c = lease->connection;
    struct lend_adapter *adapter = c != NULL ? c->adapter
                                             : NULL; /* a service's lease has no more */
    struct lend_device *d = lease->device;
    for (unsigned i = 0; i < K_PCI_BARS; i++)
        if (lease->bar[i].bytes != 0)
            lend_unexport(adapter, lease->bar[i].fabric, lease->bar[i].bytes);
    lend_vm_release(lease);
    lend_mappings_release(lease);
    if (lease->domain != NULL)
        k_iommu_domain_free(lease->domain);
    lend_ranges_release(&lease->iova);
    for (unsigned i = 0; i < lease->n_ranges; i++)
        if (lease->range[i].n != 0)
            lend_unmap(adapter, &lease->range[i]);
    if (lease->msi.n != 0)
        lend_unmap(adapter, &lease->msi);
    if (lease->routed)
        lend_route_give(d->host, adapter, &c->route, (unsigned)lease->outgoing);
    if (lease->outgoing >= 0)
        lend_outgoing_remove(adapter, (unsigned)lease->outgoing);
    d->lease = NULL;
    if (c != NULL)
        lend_connection_put(c);
    k_free(lease);
}

static int open_windows(struct lend_lease *lease, const struct msg_open *request,
                        struct lend_error *error)
{
    struct lend_connection *c = lease->connection;
    const bool translated = lease->domain != NULL;
    const unsigned bits = lease->device->dma_bits;
    const uint64_t limit = translated || bits >= 64 ? 0 : UINT64_C(1) << bits;
    const char *name = lease->device->name;
    if (lease->for_vm) /* the lender takes its interrupts; MSG_VM_MAP adds memory */
        return 0;
    int status = lend_map(c->adapter, c->node, MSI_BASE, MSI_BYTES, limit, name, &lease->msi,
                          error);
    for (unsigned i = 0; status == 0 && i < request->n_ranges; i++) {
        status = lend_map(c->adapter, c->node, request->range[i].fabric, request->range[i].bytes,
                          limit, name, &lease->range[i], error);
        lease->n_ranges = i + 1;
    }
    lease->msi_address = lease->msi.address;
    for (unsigned i = 0; i < lease->n_ranges; i++)
        lease->dma[i] = lease->range[i].address;
    return status;
}

static int lacks_address_bits(const struct lend_lease *lease, uint64_t address,
                              struct lend_error *error)
{
    return lend_fail(error, -ERANGE, "%s: %u bits of address: it does not reach %#llx",
                     lease->device->name, lease->device->dma_bits, (unsigned long long)address);
}

/* Maps pages in the device's domain, at addresses that are taken and given back after an error. */
static int domain_map(struct lend_lease *lease, uint64_t iova, uint64_t address, uint64_t bytes,
                      enum k_dma_direction direction, struct lend_error *error)
{
    const int status = k_iommu_map(lease->domain, iova, address, bytes, direction);
    if (status == 0)
        return 0;
    lend_ranges_give(&lease->iova, iova);
    return lend_fail(error, status, "%s: %llu MiB could not be mapped in the IOMMU",
                     lease->device->name, (unsigned long long)(bytes >> 20));
}

int lend_lease_map(struct lend_lease *lease, uint64_t address, uint64_t bytes,
                   enum k_dma_direction direction, uint64_t *dma, struct lend_error *error)
{
    const char *name = lease->device->name;
    const unsigned bits = lease->device->dma_bits;
    const uint64_t within = address % K_PAGE_BYTES, pages = lend_whole_pages(within + bytes);
    uint64_t iova, align = UINT64_C(1) << lend_order_of(pages);
    *dma = address;
    if (lease->domain == NULL)
        return bits < 64 && (address + bytes - 1) >> bits != 0
                   ? lacks_address_bits(lease, address, error)
                   : 0;
    if (align > IOVA_ALIGN_MAX)
        align = IOVA_ALIGN_MAX;
    if (!lend_ranges_take(&lease->iova, pages, align, &iova))
        return lend_fail(error, -ERANGE,
                         "%s: %u bits of address: no room for %llu MiB more below %#llx, %llu MiB "
                         "in use",
                         name, bits, (unsigned long long)(pages >> 20),
                         (unsigned long long)lease->iova.end,
                         (unsigned long long)(lend_ranges_taken_bytes(&lease->iova) >> 20));
    *dma = iova + within;
    return domain_map(lease, iova, address - within, pages, direction, error);
}

int lend_lease_map_at(struct lend_lease *lease, uint64_t address, uint64_t bytes,
                      enum k_dma_direction direction, uint64_t at, struct lend_error *error)
{
    const struct lend_device *d = lease->device;
    const uint64_t within = address % K_PAGE_BYTES, pages = lend_whole_pages(within + bytes);
    if (lease->domain == NULL)
        return lend_fail(error, -EOPNOTSUPP, "%s: no IOMMU: %#llx cannot be mapped at %#llx",
                         d->name, (unsigned long long)address, (unsigned long long)at);
    if (!lend_ranges_take_at(&lease->iova, at - within, pages))
        return lend_fail(error, -ERANGE,
                         "%s: %u bits of address: [%#llx, + %#llx) is beyond, or in use", d->name,
                         d->dma_bits, (unsigned long long)at, (unsigned long long)bytes);
    return domain_map(lease, at - within, address - within, pages, direction, error);
}

void lend_lease_unmap(struct lend_lease *lease, uint64_t dma, uint64_t bytes)
{
    if (lease->domain == NULL)
        return;
    const uint64_t within = dma % K_PAGE_BYTES;
    if (k_iommu_unmap(lease->domain, dma - within, lend_whole_pages(within + bytes)) != 0)
        k_fault(lease->device->host->kernel, "%s: %#llx was not mapped", lease->device->name,
                (unsigned long long)dma);
    lend_ranges_give(&lease->iova, dma - within);
}

/* Which addresses of its domain the device may be given. */
static void iova_init(struct lend_lease *lease)
{
    const unsigned bits = lease->device->dma_bits;
    const uint64_t end = bits >= 39 ? IOVA_END : UINT64_C(1) << bits;
    if (lease->for_vm) { /* guest-physical addresses, but those of interrupts */
        lend_ranges_init(&lease->iova, 0, end);
        if (end > MSI_BASE)
            lend_ranges_take_at(&lease->iova, MSI_BASE, MSI_BYTES);
        return;
    }
    lend_ranges_init(&lease->iova, IOVA_FIRST, end);
    if (end > IOVA_HOLE)
        lend_ranges_take_at(&lease->iova, IOVA_HOLE,
                            end - IOVA_HOLE < IOVA_HOLE_BYTES ? end - IOVA_HOLE : IOVA_HOLE_BYTES);
}

static int map_windows(struct lend_lease *lease, struct lend_error *error)
{
    if (lease->domain == NULL || lease->for_vm)
        return 0;
    int status = lend_lease_map(lease, lease->msi.address, lease->msi.bytes, K_DMA_BOTH,
                                &lease->msi_address, error);
    for (unsigned i = 0; status == 0 && i < lease->n_ranges; i++)
        status = lend_lease_map(lease, lease->range[i].address, lease->range[i].bytes, K_DMA_BOTH,
                                &lease->dma[i], error);
    return status;
}

int lend_lease_isolate(struct lend_lease *lease, struct lend_error *error)
{
    const struct k_pci_dev *pci = lease->device->pci;
    if (!k_iommu_on(lease->device->host->kernel, pci->id))
        return !lease->for_vm ? 0
                              : lend_fail(error, -EOPNOTSUPP,
                                          "%s: no IOMMU: its addresses cannot be those of a guest",
                                          lease->device->name);
    lease->domain = k_iommu_domain_new(lease->device->host->kernel, pci->id);
    if (lease->domain == NULL)
        return lend_fail(error, -ENOMEM, "%s: no IOMMU domain is left", lease->device->name);
    iova_init(lease);
    int status = k_iommu_attach(lease->domain, pci->id);
    return status == 0
               ? 0
               : lend_fail(error, status, "%s is in another IOMMU domain", lease->device->name);
}

static int export_bars(struct lend_lease *lease, struct lend_error *error)
{
    const struct k_pci_dev *pci = lease->device->pci;
    for (unsigned i = 0; i < K_PCI_BARS; i++) {
        const uint64_t bytes = pci->bar_bytes[i];
        uint64_t fabric;
        if (bytes == 0)
            continue;
        int status = lend_export(lease->connection->adapter, pci->bar_base[i], bytes, &fabric,
                                 error);
        if (status != 0)
            return status;
        lease->bar[i] = (struct msg_range){ fabric, bytes };
    }
    return 0;
}

/* ---- Requests -------------------------------------------------------------------------------- */

struct lend_device *lend_device_find(struct lend_host *host, uint16_t id)
{
    struct lend_device *d = host->devices;
    while (d != NULL && d->pci->id != id)
        d = d->next;
    return d;
}

struct lend_lease *lend_lease_find(struct lend_connection *c, uint32_t number)
{
    for (struct lend_device *d = c->host->devices; d != NULL; d = d->next)
        if (d->lease != NULL && d->lease->number == number && d->lease->connection == c)
            return d->lease;
    return NULL;
}

unsigned lend_near_adapter(const struct lend_device *d)
{
    const struct lend_host *host = d->host;
    for (unsigned i = 0; i < host->n_adapters; i++)
        if (host->adapter[i].pci->device.node == d->pci->device.node)
            return i;
    return 0;
}

/* The service's devices count as lent to this host itself. */
static uint32_t lent_to(const struct lend_device *d)
{
    if (d->lease == NULL)
        return 0;
    return d->lease->connection != NULL ? d->lease->connection->peer : d->host->options.id;
}

void lend_device_info(const struct lend_device *d, struct lend_info *info)
{
    *info = (struct lend_info){ .id = d->pci->id,
                                .vendor_id = d->pci->vendor_id,
                                .device_id = d->pci->device_id,
                                .adapter = (uint16_t)lend_near_adapter(d),
                                .lent_to = lent_to(d),
                                .dma_bits = d->dma_bits };
    memcpy(info->name, d->name, sizeof info->name);
}

static int serve_list(struct lend_host *host, uint32_t index, void *reply, size_t *bytes,
                      struct lend_error *error)
{
    const struct lend_device *d = host->devices;
    while (d != NULL && index-- > 0)
        d = d->next;
    if (d == NULL)
        return lend_fail(error, -ENOENT, "no more devices");
    struct lend_info info;
    lend_device_info(d, &info);
    return lend_reply(reply, bytes, &info, sizeof info);
}

static void fill_reply(const struct lend_lease *lease, struct msg_opened *reply)
{
    const struct lend_device *d = lease->device;
    *reply = (struct msg_opened){ .lease = lease->number,
                                  .device = (uint16_t)lease->outgoing,
                                  .function = d->pci->id & 7,
                                  .vendor_id = d->pci->vendor_id,
                                  .device_id = d->pci->device_id,
                                  .class_code = d->pci->class_code,
                                  .msi = lease->msi_address };
    memcpy(reply->dma, lease->dma, sizeof reply->dma);
    memcpy(reply->bar, lease->bar, sizeof reply->bar);
    memcpy(reply->name, d->name, sizeof reply->name);
}

static int serve_open(struct lend_connection *c, const struct msg_open *request, void *reply,
                      size_t *bytes, struct lend_error *error)
{
    struct lend_device *d = lend_device_find(c->host, request->id);
    if (d == NULL || d->leaving || request->n_ranges > LEND_DMA_RANGES)
        return lend_fail(error, -ENOENT, "no device %04x to lend", (unsigned)request->id);
    if (d->lease != NULL)
        return lend_fail(error, -EBUSY, "%s is lent to host %u", d->name, lent_to(d));
    const bool for_vm = request->n_ranges == 0;
    const uint64_t guest = for_vm ? request->guest : 0;
    int status = lend_device_ready(d, guest, error);
    if (status != 0)
        return status;
    struct lend_lease *lease = k_zalloc(sizeof *lease);
    *lease = (struct lend_lease){ .device = d,
                                  .connection = c,
                                  .number = ++c->host->next_lease,
                                  .payload_bytes = request->mps_bytes,
                                  .for_vm = for_vm,
                                  .guest = guest };
    d->lease = lease;
    c->users++;
    lend_device_quiet(d);
    lease->outgoing = lend_outgoing_add(c->adapter, d->pci->id, d->name, error);
    status = lease->outgoing < 0 ? lease->outgoing
                                 : lend_route_take(c->host, c->adapter, &c->route,
                                                   (unsigned)lease->outgoing, error);
    lease->routed = status == 0;
    if (status == 0)
        status = lend_route_payload(&c->route, request->mps_bytes, error);
    if (status == 0)
        status = lend_lease_isolate(lease, error);
    if (status == 0)
        status = open_windows(lease, request, error);
    if (status == 0)
        status = map_windows(lease, error);
    if (status == 0)
        status = export_bars(lease, error);
    if (status == 0)
        status = lend_device_payload(d, request->mps_bytes, error);
    if (status != 0) {
        lend_lease_release(lease);
        return status;
    }
    struct msg_opened opened;
    fill_reply(lease, &opened);
    return lend_reply(reply, bytes, &opened, sizeof opened);
}

/* Ends a lease. forced: the borrower has not closed it. */
static void lease_close(struct lend_lease *lease, bool forced)
{
    struct lend_device *d = lease->device;
    lend_device_quiet(d);
    lend_device_used(d, lease->guest);
    lend_lease_release(lease);
    lend_device_restore(d, forced);
}

static int serve_config(struct lend_lease *lease, bool write, const struct msg_config *request,
                        uint32_t *value, struct lend_error *error)
{
    const unsigned offset = request->offset, bytes = request->bytes;
    if ((bytes != 1 && bytes != 2 && bytes != 4) || offset % bytes != 0 ||
        offset + bytes > PCI_CONFIG_BYTES)
        return lend_fail(error, -EINVAL, "configuration access of %u bytes at %u", bytes, offset);
    *value = request->value;
    if (!write)
        *value = lend_device_read(lease->device, offset, bytes);
    else if (!lend_device_filter(lease->device, offset, bytes, value))
        k_config_write(lease->device->pci, offset, bytes, *value);
    return 0;
}

static int serve_lease(struct lend_connection *c, unsigned type, const struct msg_config *request,
                       void *reply, size_t *bytes, struct lend_error *error)
{
    uint32_t value = 0;
    struct lend_lease *lease = lend_lease_find(c, request->lease);
    if (lease == NULL)
        return lend_lease_over(request->lease, error);
    if (type == MSG_CLOSE) {
        lease_close(lease, false);
        return 0;
    }
    int status = serve_config(lease, type == MSG_CONFIG_WRITE, request, &value, error);
    return status == 0 ? lend_reply(reply, bytes, &value, sizeof value) : status;
}

int lend_serve_lender(struct lend_connection *c, unsigned type, const void *body, void *reply,
                      size_t *bytes, struct lend_error *error)
{
    union {
        uint32_t index;
        struct msg_open open;
        struct msg_config config;
    } request;
    memcpy(&request, body, sizeof request);
    switch (type) {
    case MSG_LIST: return serve_list(c->host, request.index, reply, bytes, error);
    case MSG_OPEN: return serve_open(c, &request.open, reply, bytes, error);
    default: return serve_lease(c, type, &request.config, reply, bytes, error);
    }
}

/* ---- Forced returns -------------------------------------------------------------------------- */

void lend_lender_lost(struct lend_connection *c)
{
    struct lend_host *host = c->host;
    lend_lock(host, &host->lender_lock);
    for (struct lend_device *d = host->devices; d != NULL; d = d->next)
        if (d->lease != NULL && d->lease->connection == c)
            lease_close(d->lease, true);
    lend_unlock(host, &host->lender_lock);
}

int lend_reclaim(struct lend_host *host, uint16_t id)
{
    struct lend_device *d = lend_device_find(host, id);
    if (d == NULL)
        return -ENOENT;
    lend_lock(host, &host->lender_lock);
    struct lend_lease *lease = d->lease;
    struct lend_connection *c = lease != NULL ? lease->connection : NULL;
    const uint32_t number = lease != NULL ? lease->number : 0;
    if (c != NULL)
        c->users++;
    lend_unlock(host, &host->lender_lock);
    if (lease != NULL && c == NULL) {
        host->service->take_back(host->service_context, lease);
        return 0;
    }
    if (c == NULL)
        return -EALREADY;
    const struct msg_config request = { .lease = number };
    const uint64_t until_ps = k_now_ps(host->kernel) + host->options.reclaim_ps;
    lend_call(c, MSG_RECLAIM, &request, sizeof request, NULL, 0, NULL);
    while (lend_lease_find(c, number) != NULL && k_now_ps(host->kernel) < until_ps)
        k_sleep(host->kernel, 50 * K_US);
    lend_lock(host, &host->lender_lock);
    if ((lease = lend_lease_find(c, number)) != NULL)
        lease_close(lease, true);
    lend_unlock(host, &host->lender_lock);
    lend_connection_put(c);
    return 0;
}
