/* The bytes of a configuration space, as lspci -x .. -xxxx prints them (PCI 3.0, 6.1; PCIe 4.0,
 * 7.5). */
#include "cli/import/machine.h"
#include "hw/pci_regs.h"

struct space {
    const uint8_t *bytes;
    size_t n;
};

/* Bytes that were not printed read as 0. */
static unsigned read8(const struct space *s, size_t offset)
{
    return offset < s->n ? s->bytes[offset] : 0;
}

static unsigned read16(const struct space *s, size_t offset)
{
    return read8(s, offset) | read8(s, offset + 1) << 8;
}

static uint32_t read32(const struct space *s, size_t offset)
{
    return read16(s, offset) | (uint32_t)read16(s, offset + 2) << 16;
}

/* The offset of the capability, 0: it has none. */
static size_t find_capability(const struct space *s, unsigned id)
{
    if ((read16(s, PCI_STATUS) & PCI_STATUS_CAP_LIST) == 0)
        return 0;
    size_t at = read8(s, PCI_CAP_POINTER) & PCI_CAP_POINTER_MASK;
    for (unsigned n = 0; n < PCI_CAPS_MAX && at >= PCI_HEADER_BYTES; n++) {
        if (read8(s, at) == id)
            return at;
        at = read8(s, at + 1) & PCI_CAP_POINTER_MASK;
    }
    return 0;
}

static size_t find_extended(const struct space *s, unsigned id)
{
    size_t at = PCI_STANDARD_END;
    for (unsigned n = 0; n < (PCI_CONFIG_BYTES - PCI_STANDARD_END) / 8 && at >= PCI_STANDARD_END;
         n++) {
        const uint32_t header = read32(s, at);
        if ((header & 0xffffu) == id)
            return at;
        at = (header >> 20) & 0xffcu;
    }
    return 0;
}

static enum import_kind kind_of(unsigned type)
{
    switch (type) {
    case 0: /* endpoint */
    case 1: /* legacy endpoint */ return IMPORT_ENDPOINT;
    case 4: return IMPORT_ROOT_PORT;
    case 5: return IMPORT_UPSTREAM;
    case 6: return IMPORT_DOWNSTREAM;
    case 7: /* PCI Express to PCI */
    case 8: /* and back */ return IMPORT_PCI_BRIDGE;
    case 9: /* integrated endpoint */
    case 10: /* event collector */ return IMPORT_INTEGRATED;
    default: return IMPORT_UNKNOWN;
    }
}

static void set(struct import_function *f, struct import_fact *fact, uint64_t value)
{
    import_fact_set(fact, value, f->file, f->line);
}

static void take_link(struct import_function *f, struct import_link *link, unsigned speed,
                      unsigned lanes)
{
    if (lanes == 0 || lanes > 32)
        return;
    set(f, &link->lanes, lanes);
    if (speed >= 1 && speed <= 6)
        set(f, &link->generation, speed);
}

static void take_express(struct import_function *f, const struct space *s, size_t at)
{
    const unsigned control = read16(s, at + PCIE_DEVCTL);
    const uint32_t can = read32(s, at + PCIE_LNKCAP);
    const unsigned is = read16(s, at + PCIE_LNKSTA);
    const unsigned code[3] = { read32(s, at + PCIE_DEVCAP) & PCIE_DEVCAP_MPS_MASK,
                               (control & PCIE_DEVCTL_MPS_MASK) >> PCIE_DEVCTL_MPS_SHIFT,
                               (control & PCIE_DEVCTL_MRRS_MASK) >> PCIE_DEVCTL_MRRS_SHIFT };
    struct import_fact *size[3] = { &f->mps_possible, &f->mps, &f->mrrs };
    if (f->kind == IMPORT_UNKNOWN)
        f->kind = kind_of((read16(s, at + PCIE_CAPABILITIES) & PCIE_CAPABILITIES_TYPE_MASK) >>
                          PCIE_CAPABILITIES_TYPE_SHIFT);
    for (int i = 0; i < 3; i++)
        if (code[i] <= PCIE_SIZE_CODE_MAX)
            set(f, size[i], UINT64_C(128) << code[i]);
    if (f->kind == IMPORT_INTEGRATED)
        return;
    take_link(f, &f->possible, can & 0xfu, (can >> PCIE_LNKCAP_WIDTH_SHIFT) & 0x3fu);
    take_link(f, &f->trained, is & PCIE_LNKSTA_SPEED_MASK,
              (is & PCIE_LNKSTA_WIDTH_MASK) >> PCIE_LNKSTA_WIDTH_SHIFT);
}

void import_config_space(struct import_function *f, const uint8_t *bytes, size_t n)
{
    const struct space s = { bytes, n };
    if (f->vendor_id == 0) {
        f->vendor_id = read16(&s, PCI_VENDOR_ID);
        f->device_id = read16(&s, PCI_DEVICE_ID);
    }
    if (f->class_code == IMPORT_NO_CLASS)
        f->class_code = read16(&s, PCI_CLASS + 1);
    if ((read8(&s, PCI_HEADER_TYPE) & PCI_HEADER_TYPE_MASK) == PCI_HEADER_TYPE_BRIDGE) {
        f->bridge = true;
        if (f->secondary == 0)
            f->secondary = read8(&s, PCI_SECONDARY_BUS);
    }
    const size_t express = find_capability(&s, PCI_CAP_ID_PCIE);
    if (express != 0)
        take_express(f, &s, express);
    const size_t sriov = n > PCI_STANDARD_END ? find_extended(&s, PCI_ECAP_ID_SRIOV) : 0;
    if (sriov != 0)
        set(f, &f->vfs, read16(&s, sriov + PCI_SRIOV_TOTAL_VFS));
}
