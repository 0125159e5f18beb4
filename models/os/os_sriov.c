/*
 * Virtual functions.
 *
 * Models: what a kernel does to a function with the SR-IOV capability: number, VF Enable, VF Memory
 *   Space Enable, then a device for each, with its own requester ID, part of the VF BARs, DMA
 *   addresses and interrupts; the way back.
 * Does not model: ARI, page sizes other than 4 KiB, VFs on buses of their own.
 * Timing: that of the accesses; 100 ms between VF Enable and the first access.
 * Sources: SR-IOV 1.1, 3.3; Linux 4.14, drivers/pci/iov.c (sriov_enable).
 */
#include <errno.h>
#include <stdlib.h>

#include "hw/pci_regs.h"
#include "models/os/os_pci.h"

#define SETTLE_PS (100 * SIM_PS_PER_MS)

static struct os_function *function_of(const struct k_pci_dev *dev)
{
    struct os_pci *pci = dev->device.kernel->pci;
    for (unsigned i = 0; i < pci->n_functions; i++)
        if (&pci->functions[i].dev == dev)
            return &pci->functions[i];
    return NULL; /* a borrowed one, or a VF itself */
}

/* How many bytes of the BAR each VF has: those of the BAR's lowest bit that keeps a one. */
static uint64_t bar_bytes(struct k_pci_dev *dev, unsigned at, uint32_t low, uint32_t high)
{
    k_config_write(dev, at, 4, UINT32_MAX);
    k_config_write(dev, at + 4, 4, UINT32_MAX);
    uint64_t decoded = (k_config_read(dev, at, 4) & ~PCI_BAR_FLAGS_MASK) |
                       (uint64_t)k_config_read(dev, at + 4, 4) << 32;
    k_config_write(dev, at, 4, low);
    k_config_write(dev, at + 4, 4, high);
    return decoded & (~decoded + 1);
}

/* What VF 0 has; 64-bit BARs, as enumeration left them. */
static void read_bars(struct k_pci_dev *dev, unsigned cap, struct pcie_found *found)
{
    for (unsigned i = 0; i + 1 < K_PCI_BARS; i += 2) {
        unsigned at = cap + PCI_SRIOV_BAR0 + 4 * i;
        uint32_t low = k_config_read(dev, at, 4), high = k_config_read(dev, at + 4, 4);
        if ((low & PCI_BAR_TYPE_MASK) != PCI_BAR_TYPE_64)
            continue;
        found->bar_base[i] = (low & ~PCI_BAR_FLAGS_MASK) | (uint64_t)high << 32;
        found->bar_bytes[i] = bar_bytes(dev, at, low, high);
    }
}

static void control(struct k_pci_dev *dev, unsigned cap, bool on)
{
    const uint32_t bits = PCI_SRIOV_CONTROL_ENABLE | PCI_SRIOV_CONTROL_MEMORY;
    uint32_t value = k_config_read(dev, cap + PCI_SRIOV_CONTROL, 2) & ~bits;
    k_config_write(dev, cap + PCI_SRIOV_CONTROL, 2, value | (on ? bits : 0));
}

static void vf_free(struct os_function *vf)
{
    os_dma_release(&vf->dma);
    free(vf);
}

void os_vfs_free(struct os_function *pf)
{
    while (pf->vfs != NULL) {
        struct os_function *vf = pf->vfs;
        pf->vfs = vf->next_vf;
        vf_free(vf);
    }
}

static void disable(struct os_function *pf)
{
    const struct os_slot *slot = pf->dev.private_data;
    bool gone = slot == NULL || slot->gone;
    if (pf->vfs == NULL)
        return;
    for (struct os_function *vf = pf->vfs; vf != NULL; vf = vf->next_vf)
        if (vf->dev.private_data != NULL)
            k_pci_remove(&vf->dev, gone);
    if (!gone) {
        unsigned cap = k_pci_find_extended(&pf->dev, PCI_ECAP_ID_SRIOV);
        control(&pf->dev, cap, false);
        k_config_write(&pf->dev, cap + PCI_SRIOV_NUM_VFS, 2, 0);
    }
    for (struct os_function *vf = pf->vfs; vf != NULL; vf = vf->next_vf)
        os_lazy_forget(pf->dev.device.kernel, &vf->dma);
    os_vfs_free(pf);
}

static void appear(struct os_function *pf, struct os_function ***link, struct pcie_found *vf0,
                   unsigned v, uint16_t stride)
{
    struct kernel *kernel = pf->dev.device.kernel;
    struct pcie_found found = *vf0;
    struct os_function *vf = k_zalloc(sizeof(*vf));
    found.id = (uint16_t)(found.id + v * stride);
    for (unsigned i = 0; i < K_PCI_BARS; i++)
        found.bar_base[i] += v * found.bar_bytes[i];
    os_function_init(kernel, vf, &found);
    vf->dev.pf = &pf->dev;
    vf->dev.vf_number = (uint16_t)v;
    **link = vf;
    *link = &vf->next_vf;
    k_pci_add(kernel, &vf->dev);
}

static int enable(struct os_function *pf, unsigned n)
{
    struct k_pci_dev *dev = &pf->dev;
    unsigned cap = k_pci_find_extended(dev, PCI_ECAP_ID_SRIOV);
    if (cap == 0)
        return -ENOSYS;
    if (n > k_config_read(dev, cap + PCI_SRIOV_TOTAL_VFS, 2))
        return -ERANGE;
    if (pf->vfs != NULL)
        return -EBUSY;
    struct pcie_found vf0 = { .vendor_id = dev->vendor_id, .class_code = dev->class_code };
    k_config_write(dev, cap + PCI_SRIOV_NUM_VFS, 2, n);
    vf0.id = (uint16_t)(dev->id + k_config_read(dev, cap + PCI_SRIOV_OFFSET, 2));
    vf0.device_id = (uint16_t)k_config_read(dev, cap + PCI_SRIOV_VF_DEVICE_ID, 2);
    uint16_t stride = (uint16_t)k_config_read(dev, cap + PCI_SRIOV_STRIDE, 2);
    read_bars(dev, cap, &vf0);
    control(dev, cap, true);
    k_sleep(dev->device.kernel, SETTLE_PS);
    struct os_function **link = &pf->vfs;
    for (unsigned v = 0; v < n; v++)
        appear(pf, &link, &vf0, v, stride);
    return 0;
}

int k_pci_set_vfs(struct k_pci_dev *dev, unsigned n)
{
    struct os_function *pf = function_of(dev);
    int error = 0;
    if (pf == NULL)
        return -ENOSYS;
    if (pf->setting_vfs)
        return -EBUSY;
    pf->setting_vfs = true;
    if (n != 0)
        error = enable(pf, n);
    else
        disable(pf);
    pf->setting_vfs = false;
    return error;
}

struct k_pci_dev *k_pci_vf(struct k_pci_dev *dev, unsigned v)
{
    struct os_function *pf = function_of(dev), *vf = pf != NULL ? pf->vfs : NULL;
    while (vf != NULL && vf->dev.vf_number != v)
        vf = vf->next_vf;
    return vf != NULL ? &vf->dev : NULL;
}
