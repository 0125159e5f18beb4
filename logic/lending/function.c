/*
 * What it does: the lender's changes to a leased device's configuration space: it quiets the
 *   device, sets its payload size, resets it, answers for registers that a virtual function lacks,
 *   and filters what a borrower may write. Between two guests, and between a host and a guest, it
 *   resets a device, so that the next one finds nothing of the last one in it; a guest that goes on
 *   at another host keeps its device as it is. It does not reset the bus of devices that have no
 *   function-level reset. A virtual function is reset at the end of each lease: its physical one
 *   does not change hands, so no driver of the next borrower sets up the whole device anew.
 * Follows: PCI Local Bus 3.0, chapter 6; PCI Express Base 3.1, 6.6.2 (reset), 7.8; SR-IOV 1.1, 3.4,
 *   3.5.
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

/* What vendor, device and base address registers of a virtual function would say: its own read as
 * ones and zeros, the physical one's extended capability has them (SR-IOV 1.1, 3.4.1). */
static void header_emulate(struct lend_device *d)
{
    struct k_pci_dev *pf = d->pci->pf;
    const unsigned cap = k_pci_find_extended(pf, PCI_ECAP_ID_SRIOV);
    uint32_t registers[K_PCI_BARS] = { 0 };
    for (unsigned i = 0; i < K_PCI_BARS; i++)
        if (d->pci->bar_bytes[i] != 0)
            registers[i] = k_config_read(pf, cap + PCI_SRIOV_BAR0 + 4 * i, 4);
    lend_bars_init(&d->vf_bars, d->pci->bar_bytes, registers);
    for (unsigned i = 0; i < K_PCI_BARS; i++)
        lend_bars_place(&d->vf_bars, i, d->pci->bar_base[i]);
}

uint32_t lend_device_read(struct lend_device *d, unsigned offset, unsigned bytes)
{
    const uint32_t ids = (uint32_t)d->pci->device_id << 16 | d->pci->vendor_id;
    if (d->pci->pf != NULL && lend_bars_has(offset))
        return lend_bars_read(&d->vf_bars, offset, bytes);
    if (d->pci->pf != NULL && offset < 4)
        return bytes == 4 ? ids : ids >> 8 * offset & ((1u << 8 * bytes) - 1);
    return k_config_read(d->pci, offset, bytes);
}

void lend_device_init(struct lend_device *d, struct k_pci_dev *pci)
{
    d->pci = pci;
    if (pci->pf != NULL)
        header_emulate(d);
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

static void reset(struct lend_device *d)
{
    config_update(d->pci, d->pcie_cap + PCIE_DEVCTL, 0, PCIE_DEVCTL_FLR);
    k_sleep(d->pci->device.kernel, FLR_PS);
    d->used = false;
    if (d->pci->pf == NULL)
        k_pci_write_bars(d->pci);
}

static void reset_body(void *arg)
{
    struct lend_device *d = arg;
    const unsigned at = d->pcie_cap + PCIE_DEVCTL;
    const uint32_t control = d->lease != NULL ? k_config_read(d->pci, at, 2) : d->device_control;
    reset(d);
    k_config_write(d->pci, at, 2, d->lease != NULL ? control : d->device_control);
    lend_device_quiet(d);
    if (d->lease != NULL)
        k_pci_enable(d->pci);
    d->resetting = false;
}

static bool has_reset(const struct lend_device *d)
{
    return d->pcie_cap != 0 &&
           (k_config_read(d->pci, d->pcie_cap + PCIE_DEVCAP, 4) & PCIE_DEVCAP_FLR) != 0;
}

unsigned lend_payload_of(struct k_pci_dev *pci)
{
    unsigned cap = k_pci_find_capability(pci, PCI_CAP_ID_PCIE, NULL);
    if (cap == 0)
        return 128;
    uint32_t control = k_config_read(pci, cap + PCIE_DEVCTL, 2);
    return 128u << ((control & PCIE_DEVCTL_MPS_MASK) >> PCIE_DEVCTL_MPS_SHIFT);
}

/* That of the physical function applies, and other functions use it (SR-IOV 1.1, 3.5.4). */
static int vf_payload(const struct lend_device *d, unsigned borrower_mps, struct lend_error *error)
{
    const unsigned mps = lend_payload_of(d->pci->pf);
    if (borrower_mps == mps)
        return 0;
    return lend_fail(error, -EMSGSIZE,
                     "%s: a virtual function has payloads of %u bytes, as its physical one; at the "
                     "borrower they are of %u bytes",
                     d->name, mps, borrower_mps);
}

int lend_device_payload(struct lend_device *d, unsigned borrower_mps, struct lend_error *error)
{
    if (d->pcie_cap == 0)
        return 0;
    const unsigned at = d->pcie_cap + PCIE_DEVCTL;
    d->device_control = k_config_read(d->pci, at, 2);
    if (d->pci->pf != NULL)
        return vf_payload(d, borrower_mps, error);
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
    if (d->pci->pf == NULL)
        config_update(d->pci, d->pcie_cap + PCIE_DEVCTL, PCIE_DEVCTL_MPS_MASK,
                      d->device_control & PCIE_DEVCTL_MPS_MASK);
    if (forced || d->pci->pf != NULL)
        lend_device_reset(d, NULL);
}

int lend_device_reset(struct lend_device *d, struct lend_error *error)
{
    if (!has_reset(d))
        return lend_fail(error, -EOPNOTSUPP, "%s has no function-level reset", d->name);
    if (d->resetting) /* the service has let it be reset, and the lease has ended since */
        return 0;
    d->resetting = true; /* the caller does not wait */
    k_thread_new(d->host->kernel, "lend_reset", K_CPU_ANY, reset_body, d);
    return 0;
}

void lend_device_reset_now(struct lend_device *d)
{
    const unsigned at = d->pcie_cap + PCIE_DEVCTL;
    if (!has_reset(d))
        return;
    const uint32_t control = k_config_read(d->pci, at, 2);
    reset(d);
    config_update(d->pci, at, PCIE_DEVCTL_MPS_MASK, control & PCIE_DEVCTL_MPS_MASK);
    lend_device_quiet(d);
}

void lend_device_used(struct lend_device *d, uint64_t guest)
{
    d->used = true;
    d->used_by = guest;
}

int lend_device_ready(struct lend_device *d, uint64_t guest, struct lend_error *error)
{
    if (!d->resetting && d->used && d->used_by != guest)
        lend_device_reset(d, NULL);
    return d->resetting ? lend_fail(error, -EAGAIN, "%s is being reset", d->name) : 0;
}
