/*
 * What it does: the services for PCI functions of logic/kapi.h that need nothing but configuration
 *   accesses, so that every kernel, real or fake, has the same.
 * Follows: PCI Local Bus 3.0, 6.7 (capabilities list), 6.2.2 (command register); PCI Express Base
 *   3.1, 7.9 (extended capabilities).
 * Costs: its configuration accesses.
 */
#include <errno.h>

#include "hw/pci_regs.h"
#include "logic/kapi.h"

#define ECAPS_MAX 480u /* as many as fit into the extended configuration space, of 8 bytes each */

unsigned k_pci_find_capability(struct k_pci_dev *dev, unsigned id, uint32_t *header)
{
    if ((k_config_read(dev, PCI_STATUS, 2) & PCI_STATUS_CAP_LIST) == 0)
        return 0;
    unsigned at = k_config_read(dev, PCI_CAP_POINTER, 1) & PCI_CAP_POINTER_MASK;
    /* A broken chain may be circular. */
    for (unsigned i = 0; at != 0 && i < PCI_CAPS_MAX; i++) {
        uint32_t first = k_config_read(dev, at, 4);
        if ((first & 0xff) == id) {
            if (header != NULL)
                *header = first;
            return at;
        }
        at = first >> 8 & PCI_CAP_POINTER_MASK;
    }
    return 0;
}

unsigned k_pci_find_extended(struct k_pci_dev *dev, unsigned id)
{
    unsigned at = PCI_STANDARD_END;
    /* A broken chain may be circular. */
    for (unsigned i = 0; at >= PCI_STANDARD_END && i < ECAPS_MAX; i++) {
        const uint32_t header = k_config_read(dev, at, 4);
        if (header == 0 || header == UINT32_MAX)
            return 0;
        if ((header & 0xffffu) == id)
            return at;
        at = header >> PCI_ECAP_NEXT_SHIFT & ~3u;
    }
    return 0;
}

int k_pci_configure_vfs(struct k_pci_dev *dev, unsigned n)
{
    struct kernel *kernel = dev->device.kernel;
    while (dev->configuring) /* afterwards the driver may have left */
        k_wait(kernel, &dev->configured, UINT64_MAX);
    if (dev->driver == NULL)
        return -ENOENT;
    if (dev->driver->configure_vfs == NULL)
        return -ENOSYS;
    dev->configuring = true;
    const int error = dev->driver->configure_vfs(dev, n);
    dev->configuring = false;
    k_wake(kernel, &dev->configured);
    return error;
}

void k_pci_write_bars(struct k_pci_dev *dev)
{
    for (unsigned i = 0; i < K_PCI_BARS; i++) {
        const uint64_t base = dev->bar_base[i];
        if (dev->bar_bytes[i] == 0)
            continue;
        const uint32_t low = k_config_read(dev, PCI_BAR0 + 4 * i, 4);
        k_config_write(dev, PCI_BAR0 + 4 * i, 4, (uint32_t)base);
        if ((low & PCI_BAR_TYPE_MASK) == PCI_BAR_TYPE_64)
            k_config_write(dev, PCI_BAR0 + 4 * i + 4, 4, (uint32_t)(base >> 32));
    }
}

int k_pci_restore(struct k_pci_dev *dev)
{
    const uint32_t wanted = PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER;
    const uint32_t command = k_config_read(dev, PCI_COMMAND, 2);
    if (command == UINT16_MAX)
        return -ENODEV;
    if ((command & wanted) == wanted)
        return 0;
    if (dev->pf == NULL) /* a virtual function has none of its own */
        k_pci_write_bars(dev);
    k_pci_enable(dev);
    return 0;
}

void k_pci_enable(struct k_pci_dev *dev)
{
    uint32_t command = k_config_read(dev, PCI_COMMAND, 2);
    k_config_write(dev, PCI_COMMAND, 2, command | PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
}
