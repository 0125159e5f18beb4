/*
 * Models: which memory write an MSI or MSI-X vector is, masks, pending bits.
 * Does not model: INTx, steering tags in MSI-X entries.
 * Timing: that of a memory write.
 * Sources: PCI Local Bus 3.0, 6.8.1 (MSI), 6.8.2 (MSI-X), 6.8.3 (masks, pending bits).
 */
#include <string.h>

#include "hw/pci_regs.h"
#include "models/pcie/config/config_space.h"

static bool msi_enabled(const struct cfg_space *cfg)
{
    return cfg->msi_cap != 0 &&
           cfg_read(cfg, cfg->msi_cap + PCI_MSI_CONTROL, 2) & PCI_MSI_CONTROL_ENABLE;
}

/* Granted vectors - 1; software may not grant more than offered, and has no effect if it does. */
static uint32_t msi_vector_mask(const struct cfg_space *cfg)
{
    uint32_t control = cfg_read(cfg, cfg->msi_cap + PCI_MSI_CONTROL, 2);
    uint32_t granted = (control & PCI_MSI_CONTROL_ENABLED_MASK) >> PCI_MSI_CONTROL_ENABLED_SHIFT;
    uint32_t offered = control >> PCI_MSI_CONTROL_CAPABLE_SHIFT & 7u;
    return (1u << SIM_MIN(granted, offered)) - 1;
}

static void msi_compose(const struct cfg_space *cfg, uint32_t vector, uint64_t *address,
                        uint32_t *data)
{
    unsigned cap = cfg->msi_cap;
    *address = cfg_read(cfg, cap + PCI_MSI_ADDRESS, 4) |
               (uint64_t)cfg_read(cfg, cap + PCI_MSI_ADDRESS_UPPER, 4) << 32;
    *data = (cfg_read(cfg, cap + PCI_MSI_DATA, 2) & ~msi_vector_mask(cfg)) | vector;
}

bool cfg_msi_message(struct cfg_space *cfg, unsigned vector, uint64_t *address, uint32_t *data)
{
    if (!msi_enabled(cfg))
        return false;
    uint32_t folded = vector & msi_vector_mask(cfg);
    if (cfg_read(cfg, cfg->msi_cap + PCI_MSI_MASK, 4) >> folded & 1) {
        unsigned pending = cfg->msi_cap + PCI_MSI_PENDING;
        cfg_set(cfg, pending, 4, cfg_read(cfg, pending, 4) | 1u << folded);
        return false;
    }
    msi_compose(cfg, folded, address, data);
    return true;
}

bool cfg_msi_take_pending(struct cfg_space *cfg, uint64_t *address, uint32_t *data)
{
    if (!msi_enabled(cfg))
        return false;
    unsigned offset = cfg->msi_cap + PCI_MSI_PENDING;
    uint32_t pending = cfg_read(cfg, offset, 4);
    uint32_t ready = pending & ~cfg_read(cfg, cfg->msi_cap + PCI_MSI_MASK, 4);
    if (ready == 0)
        return false;
    uint32_t vector = (uint32_t)__builtin_ctz(ready);
    cfg_set(cfg, offset, 4, pending & ~(1u << vector));
    msi_compose(cfg, vector & msi_vector_mask(cfg), address, data);
    return true;
}

static uint32_t msix_control(const struct cfg_space *cfg)
{
    return cfg->msix_cap == 0 ? 0 : cfg_read(cfg, cfg->msix_cap + PCI_MSIX_CONTROL, 2);
}

static bool msix_masked(uint32_t control, const uint8_t *entry)
{
    return control & PCI_MSIX_CONTROL_FUNCTION_MASK ||
           entry[PCI_MSIX_ENTRY_CONTROL] & PCI_MSIX_ENTRY_MASKED;
}

static void msix_compose(const uint8_t *entry, uint64_t *address, uint32_t *data)
{
    memcpy(address, entry + PCI_MSIX_ENTRY_ADDRESS, sizeof(*address));
    memcpy(data, entry + PCI_MSIX_ENTRY_DATA, sizeof(*data));
}

bool cfg_msix_message(const struct cfg_space *cfg, const uint8_t *table, uint8_t *pba,
                      unsigned vector, uint64_t *address, uint32_t *data)
{
    uint32_t control = msix_control(cfg);
    if (!(control & PCI_MSIX_CONTROL_ENABLE))
        return false;
    SIM_ASSERT(vector <= (control & PCI_MSIX_CONTROL_SIZE_MASK), "no MSI-X vector %u", vector);
    const uint8_t *entry = table + (size_t)PCI_MSIX_ENTRY_BYTES * vector;
    if (msix_masked(control, entry)) {
        pba[vector / 8] |= (uint8_t)(1u << vector % 8);
        return false;
    }
    msix_compose(entry, address, data);
    return true;
}

bool cfg_msix_take_pending(const struct cfg_space *cfg, const uint8_t *table, uint8_t *pba,
                           unsigned *vector, uint64_t *address, uint32_t *data)
{
    uint32_t control = msix_control(cfg);
    if (!(control & PCI_MSIX_CONTROL_ENABLE) || control & PCI_MSIX_CONTROL_FUNCTION_MASK)
        return false;
    unsigned n_vectors = (control & PCI_MSIX_CONTROL_SIZE_MASK) + 1;
    for (unsigned i = 0; i < n_vectors; i++) {
        if (pba[i / 8] == 0) {
            i |= 7; /* none of these eight */
            continue;
        }
        const uint8_t *entry = table + (size_t)PCI_MSIX_ENTRY_BYTES * i;
        if (!(pba[i / 8] >> i % 8 & 1) || msix_masked(control, entry))
            continue;
        pba[i / 8] &= (uint8_t) ~(1u << i % 8);
        msix_compose(entry, address, data);
        *vector = i;
        return true;
    }
    return false;
}
