/*
 * What it does: the shadow device that a borrower's drivers see. It forwards configuration accesses
 *   or answers them (base addresses, interrupt pin), translates the addresses of interrupt messages
 *   to the lender's window and back, passes register accesses through the NTB, and gives DMA
 *   addresses of the lender's tree. It has neither expansion ROMs nor I/O space.
 * Follows: SmartIO, 4.1 to 4.3; PCI Local Bus 3.0, 6.2.5.1, 6.8.
 * Costs: a configuration access is a request to the lender, a register access crosses the fabric. A
 *   DMA mapping costs what one of the local IOMMU costs, and does not involve the lender.
 */
#include <string.h>

#include "hw/pci_regs.h"
#include "logic/kcosts.h"
#include "logic/lending/lending_internal.h"

#define ALL_ONES(bytes) ((bytes) == 4 ? UINT32_MAX : (1u << 8 * (bytes)) - 1)

static struct lend_borrow *borrow_of(const struct k_pci_dev *dev)
{
    return K_CONTAINER(dev, struct lend_borrow, dev);
}

/* ---- Configuration space --------------------------------------------------------------------- */

static uint32_t forward(struct lend_borrow *b, unsigned type, unsigned offset, unsigned bytes,
                        uint32_t value)
{
    const struct msg_config request = { .lease = b->opened.lease,
                                        .offset = (uint16_t)offset,
                                        .bytes = (uint16_t)bytes,
                                        .value = value };
    uint32_t answer;
    if (b->connection == NULL ||
        lend_call(b->connection, type, &request, sizeof request, &answer, sizeof answer, NULL) < 0)
        return ALL_ONES(bytes); /* as from an absent device */
    return answer;
}

/* Translates the address of an interrupt message, from the borrower's to that in the lender's
 * window. */
static uint64_t message_out(const struct lend_borrow *b, uint64_t address)
{
    return b->opened.msi + (address - MSI_BASE);
}

/* Translates one half of such an address, and back. The borrower's upper half is zero. */
static uint32_t half_out(struct lend_borrow *b, bool upper, uint32_t value)
{
    if (upper)
        return (uint32_t)(b->opened.msi >> 32);
    if (value - MSI_BASE >= MSI_BYTES) {
        k_warn(b->host->kernel, "%s: an interrupt message to %#x, which is no MSI address", b->name,
               (unsigned)value);
        return (uint32_t)message_out(b, MSI_BASE);
    }
    return (uint32_t)message_out(b, value);
}

static uint32_t half_in(const struct lend_borrow *b, bool upper, uint32_t value)
{
    if (upper)
        return 0;
    return (uint32_t)(MSI_BASE + ((value - (uint32_t)b->opened.msi) & (MSI_BYTES - 1)));
}

/* Which half of the MSI capability's address lies at the offset: 0, 1; -1: neither. */
static int msi_half(const struct lend_borrow *b, unsigned offset, unsigned bytes)
{
    if (b->msi_cap == 0 || bytes != 4)
        return -1;
    if (offset == b->msi_cap + PCI_MSI_ADDRESS)
        return 0;
    return b->msi_64 && offset == b->msi_cap + PCI_MSI_ADDRESS + 4 ? 1 : -1;
}

static uint32_t shadow_config_read(struct k_pci_dev *dev, unsigned offset, unsigned bytes)
{
    struct lend_borrow *b = borrow_of(dev);
    if (lend_bars_has(offset))
        return lend_bars_read(&b->bars, offset, bytes);
    uint32_t value = forward(b, MSG_CONFIG_READ, offset, bytes, 0);
    const int half = msi_half(b, offset, bytes);
    if (half >= 0)
        return half_in(b, half == 1, value);
    if ((offset & ~3u) == PCI_INTERRUPT && b->connection != NULL) /* no wire: pin 0 */
        value &= 0xffff00ffu >> 8 * (offset & 3);
    return value;
}

static void shadow_config_write(struct k_pci_dev *dev, unsigned offset, unsigned bytes,
                                uint32_t value)
{
    struct lend_borrow *b = borrow_of(dev);
    if (lend_bars_has(offset)) {
        lend_bars_write(&b->bars, offset, bytes, value);
        return;
    }
    const int half = msi_half(b, offset, bytes);
    if (half >= 0)
        value = half_out(b, half == 1, value);
    forward(b, MSG_CONFIG_WRITE, offset, bytes, value);
}

/* ---- Registers ------------------------------------------------------------------------------- */

/* Which half of a message address in the MSI-X table lies at the address: 0, 1; -1: neither. */
static int msix_half(const struct lend_borrow *b, uint64_t address)
{
    if (b->msix_cap == 0)
        return -1;
    uint64_t offset = address - b->dev.bar_base[b->msix_bar] - b->msix_offset;
    if (offset >= b->msix_bytes || offset % PCI_MSIX_ENTRY_BYTES >= 8)
        return -1;
    return offset % PCI_MSIX_ENTRY_BYTES >= 4 ? 1 : 0;
}

static uint64_t shadow_mmio_read(struct k_pci_dev *dev, uint64_t address, unsigned bytes)
{
    struct lend_borrow *b = borrow_of(dev);
    if (b->connection == NULL)
        return bytes == 8 ? UINT64_MAX : ALL_ONES(bytes);
    struct k_pci_dev *ntb = b->connection->adapter->pci;
    uint64_t value = ntb->ops->mmio_read(ntb, address, bytes);
    const int half = msix_half(b, address);
    if (half < 0)
        return value;
    return bytes == 8 ? (uint64_t)half_in(b, false, (uint32_t)value)
                      : half_in(b, half == 1, (uint32_t)value);
}

static void shadow_mmio_write(struct k_pci_dev *dev, uint64_t address, unsigned bytes,
                              uint64_t value)
{
    struct lend_borrow *b = borrow_of(dev);
    if (b->connection == NULL)
        return;
    struct k_pci_dev *ntb = b->connection->adapter->pci;
    const int half = msix_half(b, address);
    if (half >= 0 && bytes == 8)
        value = (uint64_t)half_out(b, true, 0) << 32 | half_out(b, false, (uint32_t)value);
    else if (half >= 0)
        value = half_out(b, half == 1, (uint32_t)value);
    ntb->ops->mmio_write(ntb, address, bytes, value);
}

static void shadow_mmio_write_lines(struct k_pci_dev *dev, uint64_t address, const void *from,
                                    size_t bytes)
{
    struct lend_borrow *b = borrow_of(dev);
    if (b->connection != NULL)
        k_write_lines(b->connection->adapter->pci, address, from, bytes);
}

static void shadow_mmio_drain(struct k_pci_dev *dev)
{
    struct lend_borrow *b = borrow_of(dev);
    if (b->connection != NULL)
        k_write_drain(b->connection->adapter->pci);
}

/* As the lender placed it. */
static uint64_t shadow_bus_address(struct k_pci_dev *dev, unsigned bar)
{
    struct lend_borrow *b = borrow_of(dev);
    const unsigned at = PCI_BAR0 + 4 * bar;
    const uint32_t low = forward(b, MSG_CONFIG_READ, at, 4, 0);
    uint64_t address = low & ~PCI_BAR_FLAGS_MASK;
    if (low == UINT32_MAX)
        return 0;
    if ((low & PCI_BAR_TYPE_MASK) == PCI_BAR_TYPE_64)
        address |= (uint64_t)forward(b, MSG_CONFIG_READ, at + 4, 4, 0) << 32;
    return b->connection != NULL ? address : 0;
}

const struct k_pci_ops lend_shadow_ops = {
    .config_read = shadow_config_read,
    .config_write = shadow_config_write,
    .mmio_read = shadow_mmio_read,
    .mmio_write = shadow_mmio_write,
    .mmio_write_lines = shadow_mmio_write_lines,
    .mmio_drain = shadow_mmio_drain,
    .bus_address = shadow_bus_address,
};

/* ---- DMA addresses --------------------------------------------------------------------------- */

static uint64_t pages_of(uint64_t at, size_t bytes)
{
    return (at % K_PAGE_BYTES + bytes + K_PAGE_BYTES - 1) / K_PAGE_BYTES;
}

/* Without an IOMMU here, the lender has windows to all of our memory. */
static int map_direct(const struct lend_borrow *b, struct kaddr at, size_t bytes, uint64_t *dma)
{
    for (unsigned i = 0; i < b->request.n_ranges; i++) {
        uint64_t offset = at.v - b->request.range[i].fabric;
        if (offset < b->request.range[i].bytes && bytes <= b->request.range[i].bytes - offset) {
            *dma = b->opened.dma[i] + offset;
            return 0;
        }
    }
    return -EFAULT;
}

static int map_pages(struct lend_borrow *b, struct kaddr at, size_t bytes,
                     enum k_dma_direction direction, uint64_t *dma)
{
    const uint64_t n_pages = pages_of(at.v, bytes);
    const unsigned order = lend_order_of(n_pages);
    uint32_t page;
    if (b->connection == NULL)
        return -ENODEV;
    if (order >= LEND_ORDERS || !lend_pages_take(&b->pages, order, &page)) {
        k_warn(b->host->kernel, "%s: its DMA window is full (dma_window_bytes of %s)", b->name,
               b->host->options.name);
        return -ENOSPC;
    }
    const uint64_t offset = (uint64_t)page * K_PAGE_BYTES;
    int status = k_iommu_map(b->connection->adapter->domain, b->request.range[0].fabric + offset,
                             at.v & ~(uint64_t)(K_PAGE_BYTES - 1), n_pages * K_PAGE_BYTES,
                             direction);
    if (status != 0) {
        lend_pages_give(&b->pages, order, page);
        return status;
    }
    b->mapped_pages += n_pages;
    *dma = b->opened.dma[0] + offset + at.v % K_PAGE_BYTES;
    return 0;
}

static void unmap_pages(struct lend_borrow *b, uint64_t dma, size_t bytes)
{
    const uint64_t n_pages = pages_of(dma, bytes);
    const uint64_t offset = (dma - b->opened.dma[0]) & ~(uint64_t)(K_PAGE_BYTES - 1);
    if (offset >= b->request.range[0].bytes ||
        k_iommu_unmap(b->connection->adapter->domain, b->request.range[0].fabric + offset,
                      n_pages * K_PAGE_BYTES) != 0) {
        k_fault(b->host->kernel, "%s: unmaps %zu bytes at %#llx, which are not mapped", b->name,
                bytes, (unsigned long long)dma);
        return;
    }
    b->mapped_pages -= n_pages;
    lend_pages_give(&b->pages, lend_order_of(n_pages), (uint32_t)(offset / K_PAGE_BYTES));
}

/* The addresses were chosen when the device was borrowed, for the bits that the lender knows of;
 * its driver is asked only now. Out of its reach is out of reach, as for a local device without an
 * IOMMU. */
static int shadow_map(struct k_device *device, struct kaddr at, size_t bytes,
                      enum k_dma_direction direction, uint64_t *dma)
{
    struct lend_borrow *b = device->dma_context;
    k_compute(device->kernel, k_costs(device->kernel)->dma_map_cycles);
    const int status = b->translated ? map_pages(b, at, bytes, direction, dma)
                                     : map_direct(b, at, bytes, dma);
    if (status != 0 || *dma + bytes - 1 <= k_dma_mask(device))
        return status;
    k_warn(
        device->kernel,
        "%s: host %u has its windows at %#llx, which the driver's DMA mask %#llx does not reach: "
        "dma_bits of the lender, or its IOMMU?",
        b->name, b->connection != NULL ? b->connection->peer : 0, (unsigned long long)*dma,
        (unsigned long long)k_dma_mask(device));
    if (b->translated)
        unmap_pages(b, *dma, bytes);
    return -EIO;
}

static void shadow_unmap(struct k_device *device, uint64_t dma, size_t bytes,
                         enum k_dma_direction direction)
{
    struct lend_borrow *b = device->dma_context;
    (void)direction;
    k_compute(device->kernel, k_costs(device->kernel)->dma_unmap_cycles);
    if (b->translated && b->connection != NULL)
        unmap_pages(b, dma, bytes);
}

static int shadow_alloc(struct k_device *device, int node, size_t bytes, struct kaddr *at,
                        uint64_t *dma)
{
    int status = k_pages_get(device->kernel, node, lend_whole_pages(bytes), at);
    if (status != 0)
        return status;
    status = shadow_map(device, *at, lend_whole_pages(bytes), K_DMA_BOTH, dma);
    if (status != 0)
        k_pages_put(device->kernel, lend_whole_pages(bytes), *at);
    return status;
}

static void shadow_free(struct k_device *device, size_t bytes, struct kaddr at, uint64_t dma)
{
    shadow_unmap(device, dma, lend_whole_pages(bytes), K_DMA_BOTH);
    k_pages_put(device->kernel, lend_whole_pages(bytes), at);
}

/* Drivers get the errno; the log has the reason. */
static int shadow_map_resource(struct k_device *device, struct k_device *target, unsigned bar,
                               uint64_t offset, uint64_t bytes, enum k_dma_direction direction,
                               uint64_t *dma)
{
    struct lend_error error;
    k_compute(device->kernel, k_costs(device->kernel)->dma_map_cycles);
    int status = lend_peer_map(device->dma_context, target, bar, offset, bytes, direction, dma,
                               &error);
    if (status != 0)
        k_warn(device->kernel, "%s does not reach %s: %s", device->name, target->name, error.text);
    return status;
}

static void shadow_unmap_resource(struct k_device *device, uint64_t dma, uint64_t bytes,
                                  enum k_dma_direction direction)
{
    (void)direction;
    k_compute(device->kernel, k_costs(device->kernel)->dma_unmap_cycles);
    if (!lend_peer_unmap(device->dma_context, dma, bytes))
        k_fault(device->kernel, "%s: %llu bytes of registers at %#llx were not mapped",
                device->name, (unsigned long long)bytes, (unsigned long long)dma);
}

static int shadow_allow(struct k_device *target, uint16_t requester_id)
{
    struct lend_error error;
    int status = lend_peer_allow(target->dma_context, requester_id, &error);
    if (status != 0)
        k_warn(target->kernel, "requester %#x does not reach %s: %s", (unsigned)requester_id,
               target->name, error.text);
    return status;
}

static void shadow_revoke(struct k_device *target, uint16_t requester_id)
{
    lend_peer_revoke(target->dma_context, requester_id);
}

const struct k_dma_ops lend_shadow_dma_ops = {
    .map = shadow_map,
    .unmap = shadow_unmap,
    .alloc = shadow_alloc,
    .free = shadow_free,
    .map_resource = shadow_map_resource,
    .unmap_resource = shadow_unmap_resource,
    .allow = shadow_allow,
    .revoke = shadow_revoke,
};

/* ---- Setting up ------------------------------------------------------------------------------ */

/* Reads the flags of the base address registers from the device itself. */
static void find_bars(struct lend_borrow *b)
{
    uint32_t registers[K_PCI_BARS] = { 0 };
    for (unsigned i = 0; i < K_PCI_BARS; i++)
        if (b->dev.bar_bytes[i] != 0)
            registers[i] = forward(b, MSG_CONFIG_READ, PCI_BAR0 + 4 * i, 4, 0);
    lend_bars_init(&b->bars, b->dev.bar_bytes, registers);
    for (unsigned i = 0; i < K_PCI_BARS; i++)
        lend_bars_place(&b->bars, i, b->dev.bar_base[i]);
}

void lend_shadow_init(struct lend_borrow *b)
{
    find_bars(b);
    unsigned cap = k_pci_find_capability(&b->dev, PCI_CAP_ID_MSIX, NULL);
    if (cap != 0) {
        uint32_t control = forward(b, MSG_CONFIG_READ, cap, 4, 0) >> 16;
        uint32_t table = forward(b, MSG_CONFIG_READ, cap + PCI_MSIX_TABLE, 4, 0);
        b->msix_cap = (uint16_t)cap;
        b->msix_bar = table & PCI_MSIX_BAR_MASK;
        b->msix_offset = table & ~PCI_MSIX_BAR_MASK;
        b->msix_bytes = (uint64_t)((control & PCI_MSIX_CONTROL_SIZE_MASK) + 1) *
                        PCI_MSIX_ENTRY_BYTES;
    }
    cap = k_pci_find_capability(&b->dev, PCI_CAP_ID_MSI, NULL);
    if (cap != 0) {
        b->msi_64 = (forward(b, MSG_CONFIG_READ, cap, 4, 0) >> 16 & PCI_MSI_CONTROL_64) != 0;
        b->msi_cap = (uint16_t)cap;
    }
}
