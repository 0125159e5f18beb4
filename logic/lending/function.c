/*
 * What it does: the lender's changes to a leased device's configuration space: it quiets the
 *   device, sets its payload size, resets it, and filters what a borrower may write. It does not
 *   reset the bus of devices that have no function-level reset.
 * Follows: PCI Local Bus 3.0, chapter 6; PCI Express Base 3.1, 6.6.2 (reset), 7.8.
 * Costs: configuration accesses; 100 ms after a function-level reset.
 */
#include "hw/pci_regs.h"
#include "logic/lending/lending_internal.h"

#define FLR_PS (100 * K_MS) /* no access for so long after a reset */

/* ---- Devices --------------------------------------------------------------------------------- */

static void config_update(struct k_pci_dev *dev, unsigned offset, uint32_t clear, uint32_t set)
{
    uint32_t value = k_config_read(dev, offset, 2);
    k_config_write(dev, offset, 2, (value & ~clear) | set);
}

void lend_device_init(struct lend_device *d, struct k_pci_dev *pci)
{
    d->pci = pci;
    d->pcie_cap = (uint16_t)k_pci_find_capability(pci, PCI_CAP_ID_PCIE, NULL);
    d->msix_cap = (uint16_t)k_pci_find_capability(pci, PCI_CAP_ID_MSIX, NULL);
    d->msi_cap = (uint16_t)k_pci_find_capability(pci, PCI_CAP_ID_MSI, NULL);
}

/* The completion of the last read arrives after everything that the device has sent. */
void lend_device_quiet(struct lend_device *d)
{
    config_update(d->pci, PCI_COMMAND, PCI_COMMAND_BUS_MASTER,
                  PCI_COMMAND_MEMORY | PCI_COMMAND_INTX_DISABLE);
    if (d->msix_cap != 0)
        config_update(d->pci, d->msix_cap + PCI_MSIX_CONTROL, PCI_MSIX_CONTROL_ENABLE, 0);
    if (d->msi_cap != 0)
        config_update(d->pci, d->msi_cap + PCI_MSI_CONTROL, PCI_MSI_CONTROL_ENABLE, 0);
    k_config_read(d->pci, PCI_COMMAND, 2);
}

/* Writes the base addresses again that firmware had assigned. */
static void header_restore(struct lend_device *d)
{
    for (unsigned i = 0; i < K_PCI_BARS; i++) {
        const uint64_t base = d->pci->bar_base[i];
        if (d->pci->bar_bytes[i] == 0)
            continue;
        uint32_t low = k_config_read(d->pci, PCI_BAR0 + 4 * i, 4);
        k_config_write(d->pci, PCI_BAR0 + 4 * i, 4, (uint32_t)base);
        if ((low & PCI_BAR_TYPE_MASK) == PCI_BAR_TYPE_64)
            k_config_write(d->pci, PCI_BAR0 + 4 * i + 4, 4, (uint32_t)(base >> 32));
    }
}

static void reset_body(void *arg)
{
    struct lend_device *d = arg;
    config_update(d->pci, d->pcie_cap + PCIE_DEVCTL, 0, PCIE_DEVCTL_FLR);
    k_sleep(d->host->kernel, FLR_PS);
    header_restore(d);
    k_config_write(d->pci, d->pcie_cap + PCIE_DEVCTL, 2, d->device_control);
    lend_device_quiet(d);
    d->resetting = false;
}

unsigned lend_payload_of(struct k_pci_dev *pci)
{
    unsigned cap = k_pci_find_capability(pci, PCI_CAP_ID_PCIE, NULL);
    if (cap == 0)
        return 128;
    uint32_t control = k_config_read(pci, cap + PCIE_DEVCTL, 2);
    return 128u << ((control & PCIE_DEVCTL_MPS_MASK) >> PCIE_DEVCTL_MPS_SHIFT);
}

int lend_device_payload(struct lend_device *d, unsigned borrower_mps, struct lend_error *error)
{
    if (d->pcie_cap == 0)
        return 0;
    const unsigned at = d->pcie_cap + PCIE_DEVCTL;
    d->device_control = k_config_read(d->pci, at, 2);
    unsigned mps = 128u << ((d->device_control & PCIE_DEVCTL_MPS_MASK) >> PCIE_DEVCTL_MPS_SHIFT);
    unsigned code = 0;
    if (borrower_mps > mps)
        return lend_fail(error, -EMSGSIZE,
                         "%s: payloads of %u bytes here, of %u bytes at the borrower: its answers "
                         "would not get through",
                         d->name, mps, borrower_mps);
    while (128u << code < borrower_mps)
        code++;
    config_update(d->pci, at, PCIE_DEVCTL_MPS_MASK, code << PCIE_DEVCTL_MPS_SHIFT);
    return 0;
}

bool lend_device_filter(const struct lend_device *d, unsigned offset, unsigned bytes,
                        uint32_t *value)
{
    const unsigned control = d->pcie_cap + PCIE_DEVCTL;
    if (offset >= PCI_BAR0 && offset < PCI_BARS_END)
        return true;
    if (offset == PCI_COMMAND)
        *value |= PCI_COMMAND_INTX_DISABLE;
    if (offset == PCI_COMMAND + 1)
        *value |= PCI_COMMAND_INTX_DISABLE >> 8;
    if (d->pcie_cap == 0 || offset < control || offset >= control + 2)
        return false;
    uint32_t keep = PCIE_DEVCTL_MPS_MASK >> 8 * (offset - control);
    uint32_t now = k_config_read(d->pci, offset, bytes);
    *value = (*value & ~keep) | (now & keep);
    *value &= ~(PCIE_DEVCTL_FLR >> 8 * (offset - control));
    return false;
}

void lend_device_restore(struct lend_device *d, bool forced)
{
    if (d->pcie_cap == 0)
        return;
    config_update(d->pci, d->pcie_cap + PCIE_DEVCTL, PCIE_DEVCTL_MPS_MASK,
                  d->device_control & PCIE_DEVCTL_MPS_MASK);
    if (!forced || (k_config_read(d->pci, d->pcie_cap + PCIE_DEVCAP, 4) & PCIE_DEVCAP_FLR) == 0)
        return;
    d->resetting = true; /* the caller does not wait */
    k_thread_new(d->host->kernel, "lend_reset", K_CPU_ANY, reset_body, d);
}
