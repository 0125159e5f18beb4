/*
 * What it does: the services for PCI functions of logic/kapi.h that need nothing but configuration
 *   accesses, so that every kernel, real or fake, has the same.
 * Follows: PCI Local Bus 3.0, 6.7 (capabilities list), 6.2.2 (command register).
 * Costs: its configuration accesses.
 */
#include "hw/pci_regs.h"
#include "logic/kapi.h"

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

void k_pci_enable(struct k_pci_dev *dev)
{
    uint32_t command = k_config_read(dev, PCI_COMMAND, 2);
    k_config_write(dev, PCI_COMMAND, 2, command | PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
}
