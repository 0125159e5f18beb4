/*
 * Models: what a function's registers are at reset and which bits software may change: headers of
 * type 0 and 1, capabilities PCI Express (version 2), MSI, MSI-X, advanced error reporting, ACS,
 * SR-IOV (4 KiB pages); virtual functions; function-level reset.
 * Does not model: see config_space.c.
 * Sources: PCI Local Bus 3.0, 6.1, 6.2.5, 6.7, 6.8; PCI-to-PCI Bridge 1.2, 3.2; PCI Express Base
 * 3.1, 7.5, 7.8, 7.10, 7.16; SR-IOV 1.1, 3.3 to 3.5. Reset values that these leave open are chosen:
 * bridge windows are closed, extended tags are off.
 */
#include <string.h>

#include "hw/pci_regs.h"
#include "models/pcie/config/config_space.h"

#define WRITABLE_COMMAND                                                                   \
    (PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER | PCI_COMMAND_PARITY | PCI_COMMAND_SERR | \
     PCI_COMMAND_INTX_DISABLE)

static const struct cfg_register header_registers[] = {
    { PCI_COMMAND, 2, 0, WRITABLE_COMMAND, 0 },
    { PCI_STATUS, 2, 0, 0, PCI_STATUS_W1C },
    { PCI_CACHE_LINE, 1, 0, 0xff, 0 }, /* writable for old software, without effect (7.5.1.3) */
    { PCI_INTERRUPT, 1, 0, 0xff, 0 },  /* line; the pin stays 0: no INTx */
};

static const struct cfg_register bridge_registers[] = {
    { PCI_PRIMARY_BUS, 1, 0, 0xff, 0 },
    { PCI_SECONDARY_BUS, 1, 0, 0xff, 0 },
    { PCI_SUBORDINATE_BUS, 1, 0, 0xff, 0 },
    { PCI_SECONDARY_STATUS, 2, 0, 0, PCI_STATUS_W1C },
    { PCI_MEMORY_BASE, 2, PCI_WINDOW_ADDRESS_MASK, PCI_WINDOW_ADDRESS_MASK, 0 },
    { PCI_MEMORY_LIMIT, 2, 0, PCI_WINDOW_ADDRESS_MASK, 0 },
    { PCI_PREFETCH_BASE, 2, PCI_WINDOW_ADDRESS_MASK | PCI_WINDOW_TYPE_64, PCI_WINDOW_ADDRESS_MASK,
      0 },
    { PCI_PREFETCH_LIMIT, 2, PCI_WINDOW_TYPE_64, PCI_WINDOW_ADDRESS_MASK, 0 },
    { PCI_PREFETCH_BASE_UPPER, 4, 0, UINT32_MAX, 0 },
    { PCI_PREFETCH_LIMIT_UPPER, 4, 0, UINT32_MAX, 0 },
    { PCI_BRIDGE_CONTROL, 2, 0,
      PCI_BRIDGE_CONTROL_PARITY | PCI_BRIDGE_CONTROL_SERR | PCI_BRIDGE_CONTROL_BUS_RESET, 0 },
};

static const struct cfg_register aer_registers[] = {
    { PCI_AER_UNCORRECTABLE, 4, 0, 0, PCI_AER_UNCORRECTABLE_ALL },
    { PCI_AER_UNCORRECTABLE_MASK, 4, 0, PCI_AER_UNCORRECTABLE_ALL, 0 },
    { PCI_AER_SEVERITY, 4, PCI_AER_SEVERITY_DEFAULT, PCI_AER_UNCORRECTABLE_ALL, 0 },
    { PCI_AER_CORRECTABLE, 4, 0, 0, PCI_AER_CORRECTABLE_ALL },
    { PCI_AER_CORRECTABLE_MASK, 4, PCI_AER_CORRECTABLE_MASKED, PCI_AER_CORRECTABLE_ALL, 0 },
};

void cfg_add_registers(struct cfg_space *cfg, unsigned base, const struct cfg_register *registers,
                       unsigned n_registers)
{
    for (unsigned i = 0; i < n_registers; i++) {
        const struct cfg_register *reg = &registers[i];
        unsigned offset = base + reg->offset;
        SIM_ASSERT((reg->wmask & reg->w1cmask) == 0, "register 0x%x: a bit has two rules", offset);
        SIM_ASSERT(offset < CFG_KEPT_BYTES, "register 0x%x lies behind those that are kept",
                   offset);
        struct cfg_block *block = &cfg->block[offset / CFG_BLOCK_BYTES];
        const unsigned at = offset % CFG_BLOCK_BYTES;
        memcpy(&block->wmask[at], &reg->wmask, reg->bytes);
        memcpy(&block->w1cmask[at], &reg->w1cmask, reg->bytes);
        memcpy(&block->first[at], &reg->value, reg->bytes);
        cfg_set(cfg, offset, reg->bytes, reg->value);
    }
}

static void init_header(struct cfg_space *cfg, const struct cfg_identity *identity, bool bridge)
{
    memset(cfg, 0, sizeof(*cfg));
    cfg->bridge = bridge;
    cfg->cap_end = PCI_HEADER_BYTES;
    cfg->ecap_end = PCI_STANDARD_END;
    cfg->live.n_bars = bridge ? PCI_N_BARS_BRIDGE : PCI_N_BARS_ENDPOINT;
    cfg->live.mps_bytes = 128;
    cfg->live.mrrs_bytes = 512;
    unsigned header = (bridge ? PCI_HEADER_TYPE_BRIDGE : 0) |
                      (identity->multi_function ? PCI_HEADER_MULTI_FUNCTION : 0);
    cfg_set(cfg, PCI_VENDOR_ID, 2, identity->vendor_id);
    cfg_set(cfg, PCI_DEVICE_ID, 2, identity->device_id);
    cfg_set(cfg, PCI_REVISION, 4, identity->class_code << 8 | identity->revision);
    cfg_set(cfg, PCI_HEADER_TYPE, 1, header);
    cfg_add_registers(cfg, 0, header_registers, SIM_N_ELEMENTS(header_registers));
}

void cfg_init_endpoint(struct cfg_space *cfg, const struct cfg_identity *identity)
{
    init_header(cfg, identity, false);
    cfg_set(cfg, PCI_SUBSYSTEM_VENDOR_ID, 2, identity->subsystem_vendor_id);
    cfg_set(cfg, PCI_SUBSYSTEM_ID, 2, identity->subsystem_id);
}

void cfg_init_vf(struct cfg_space *cfg, const struct cfg_identity *identity)
{
    static const struct cfg_register command = {
        PCI_COMMAND, 2, 0, PCI_COMMAND_BUS_MASTER, 0,
    };
    struct cfg_identity nobody = *identity;
    nobody.vendor_id = nobody.device_id = PCI_NO_DEVICE;
    cfg_init_endpoint(cfg, &nobody);
    cfg->vf = true;
    cfg_add_registers(cfg, 0, &command, 1);
}

void cfg_init_bridge(struct cfg_space *cfg, const struct cfg_identity *identity)
{
    init_header(cfg, identity, true);
    cfg_add_registers(cfg, 0, bridge_registers, SIM_N_ELEMENTS(bridge_registers));
}

void cfg_add_bar(struct cfg_space *cfg, unsigned idx, uint64_t bytes, unsigned flags)
{
    bool wide = flags & CFG_BAR_64;
    SIM_ASSERT(idx + wide < cfg->live.n_bars, "BAR %u does not exist", idx);
    SIM_ASSERT(bytes >= 16 && (bytes & (bytes - 1)) == 0 && (wide || bytes <= UINT32_C(1) << 31),
               "BAR %u of 0x%llx bytes", idx, (unsigned long long)bytes);
    uint64_t mask = ~(bytes - 1);
    uint32_t low = (wide ? PCI_BAR_TYPE_64 : 0) | (flags & CFG_BAR_PREFETCH ? PCI_BAR_PREFETCH : 0);
    const struct cfg_register registers[] = {
        { 0, 4, low, (uint32_t)mask, 0 },
        { 4, 4, 0, (uint32_t)(mask >> 32), 0 },
    };
    cfg->bar_bytes[idx] = bytes;
    cfg->bar_flags[idx] = (uint8_t)flags;
    cfg_add_registers(cfg, PCI_BAR0 + 4 * idx, registers, wide ? 2 : 1);
}

unsigned cfg_add_cap(struct cfg_space *cfg, unsigned id, unsigned bytes)
{
    unsigned offset = cfg->cap_end;
    SIM_ASSERT(bytes >= 2 && offset + bytes <= PCI_STANDARD_END, "no room for capability 0x%x", id);
    cfg_set(cfg, offset, 1, id);
    cfg_set(cfg, cfg->last_cap == 0 ? PCI_CAP_POINTER : cfg->last_cap + 1u, 1, offset);
    cfg_set(cfg, PCI_STATUS, 2, cfg_read(cfg, PCI_STATUS, 2) | PCI_STATUS_CAP_LIST);
    cfg->last_cap = (uint16_t)offset;
    cfg->cap_end = (uint16_t)((offset + bytes + 3) & ~3u);
    return offset;
}

unsigned cfg_add_ecap(struct cfg_space *cfg, unsigned id, unsigned version, unsigned bytes)
{
    unsigned offset = cfg->ecap_end;
    SIM_ASSERT(bytes >= 4 && offset + bytes <= CFG_SPACE_BYTES, "no room for capability 0x%x", id);
    cfg_set(cfg, offset, 4, id | version << PCI_ECAP_VERSION_SHIFT);
    if (cfg->last_ecap != 0)
        cfg_set(cfg, cfg->last_ecap, 4,
                cfg_read(cfg, cfg->last_ecap, 4) | offset << PCI_ECAP_NEXT_SHIFT);
    cfg->last_ecap = (uint16_t)offset;
    cfg->ecap_end = (uint16_t)((offset + bytes + 3) & ~3u);
    return offset;
}

static unsigned log2_of(unsigned value)
{
    return (unsigned)__builtin_ctz(value);
}

/* Bits 1 .. generation of a supported-link-speeds vector. */
static uint32_t speeds_up_to(unsigned generation)
{
    return ((1u << generation) - 1) << PCIE_LNKCAP2_SPEED_SHIFT;
}

void cfg_add_pcie(struct cfg_space *cfg, enum cfg_port_type type, unsigned max_generation,
                  unsigned max_lanes, unsigned mps_bytes_max, bool extended_tags)
{
    SIM_ASSERT(mps_bytes_max >= 128 && mps_bytes_max <= 4096 &&
                   (mps_bytes_max & (mps_bytes_max - 1)) == 0,
               "Max_Payload_Size of %u bytes", mps_bytes_max);
    bool root = type == CFG_ROOT_PORT;
    uint32_t devcap = log2_of(mps_bytes_max / 128) | PCIE_DEVCAP_ROLE_BASED |
                      (extended_tags ? PCIE_DEVCAP_EXTENDED_TAG : 0);
    uint32_t devctl_wmask = PCIE_DEVCTL_REPORT | PCIE_DEVCTL_RELAXED_ORDERING |
                            PCIE_DEVCTL_MPS_MASK | PCIE_DEVCTL_NO_SNOOP | PCIE_DEVCTL_MRRS_MASK |
                            (extended_tags ? PCIE_DEVCTL_EXTENDED_TAG : 0);
    /* A root port reports its boundary, an endpoint is told it, a switch port has none (7.8.7). */
    uint32_t lnkctl_wmask = PCIE_LNKCTL_WRITABLE | (type == CFG_ENDPOINT ? PCIE_LNKCTL_RCB_128 : 0);
    if (cfg->vf) /* the physical function's count (SR-IOV 1.1, 3.5.4, 3.5.7) */
        devctl_wmask = lnkctl_wmask = 0;
    uint32_t link = max_generation | max_lanes << PCIE_LNKCAP_WIDTH_SHIFT;
    const struct cfg_register registers[] = {
        { PCIE_CAPABILITIES, 2,
          PCIE_CAPABILITIES_VERSION | (uint32_t)type << PCIE_CAPABILITIES_TYPE_SHIFT, 0, 0 },
        { PCIE_DEVCAP, 4, devcap, 0, 0 },
        { PCIE_DEVCTL, 2,
          PCIE_DEVCTL_RELAXED_ORDERING | PCIE_DEVCTL_NO_SNOOP |
              PCIE_SIZE_CODE_512 << PCIE_DEVCTL_MRRS_SHIFT,
          devctl_wmask, 0 },
        { PCIE_DEVSTA, 2, 0, 0,
          PCIE_DEVSTA_CORRECTABLE | PCIE_DEVSTA_NON_FATAL | PCIE_DEVSTA_FATAL |
              PCIE_DEVSTA_UNSUPPORTED },
        { PCIE_LNKCAP, 4, link | PCIE_LNKCAP_ASPM_OPTIONAL, 0, 0 },
        { PCIE_LNKCTL, 2, 0, lnkctl_wmask, 0 },
        { PCIE_LNKSTA, 2, 0, 0, 0 },
        { PCIE_ROOTCTL, 2, 0, root ? PCIE_ROOTCTL_WRITABLE : 0, 0 },
        { PCIE_ROOTSTA, 4, 0, 0, root ? PCIE_ROOTSTA_PME : 0 },
        { PCIE_DEVCAP2, 4, PCIE_DEVCAP2_TIMEOUT_DISABLE, 0, 0 },
        { PCIE_DEVCTL2, 2, 0,
          PCIE_DEVCTL2_TIMEOUT_DISABLE | PCIE_DEVCTL2_IDO_REQUEST | PCIE_DEVCTL2_IDO_COMPLETION,
          0 },
        { PCIE_LNKCAP2, 4, speeds_up_to(max_generation), 0, 0 },
        { PCIE_LNKCTL2, 2, max_generation, PCIE_LNKCTL2_SPEED_MASK, 0 },
    };
    cfg->pcie_cap = (uint16_t)cfg_add_cap(cfg, PCI_CAP_ID_PCIE, PCIE_CAP_BYTES);
    cfg_add_registers(cfg, cfg->pcie_cap, registers, SIM_N_ELEMENTS(registers));
    cfg->aer_cap = (uint16_t)cfg_add_ecap(cfg, PCI_ECAP_ID_AER, PCI_AER_VERSION, PCI_AER_BYTES);
    cfg_add_registers(cfg, cfg->aer_cap, aer_registers, SIM_N_ELEMENTS(aer_registers));
}

void cfg_add_ecrc(struct cfg_space *cfg)
{
    static const struct cfg_register control[] = {
        { PCI_AER_CONTROL, 4, PCI_AER_ECRC_GENERATION | PCI_AER_ECRC_CHECK,
          PCI_AER_ECRC_GENERATION_ENABLE | PCI_AER_ECRC_CHECK_ENABLE, 0 },
    };
    SIM_ASSERT(cfg->aer_cap != 0, "ECRC without advanced error reporting");
    cfg_add_registers(cfg, cfg->aer_cap, control, SIM_N_ELEMENTS(control));
}

void cfg_integrate(struct cfg_space *cfg)
{
    static const struct cfg_register registers[] = {
        { PCIE_CAPABILITIES, 2,
          PCIE_CAPABILITIES_VERSION | CFG_INTEGRATED_ENDPOINT << PCIE_CAPABILITIES_TYPE_SHIFT, 0,
          0 },
        { PCIE_LNKCAP, 4, 0, 0, 0 },
        { PCIE_LNKCTL, 2, 0, 0, 0 },
        { PCIE_LNKSTA, 2, 0, 0, 0 },
        { PCIE_LNKCAP2, 4, 0, 0, 0 },
        { PCIE_LNKCTL2, 2, 0, 0, 0 },
    };
    SIM_ASSERT(cfg->pcie_cap != 0, "no PCI Express capability");
    cfg_add_registers(cfg, cfg->pcie_cap, registers, SIM_N_ELEMENTS(registers));
}

void cfg_add_flr(struct cfg_space *cfg)
{
    const unsigned offset = cfg->pcie_cap + PCIE_DEVCAP;
    SIM_ASSERT(cfg->pcie_cap != 0, "function-level reset without PCI Express capability");
    cfg_set(cfg, offset, 4, cfg_read(cfg, offset, 4) | PCIE_DEVCAP_FLR);
    cfg->flr = true;
}

void cfg_add_msi(struct cfg_space *cfg, unsigned n_vectors_log2)
{
    SIM_ASSERT(n_vectors_log2 <= 5, "MSI has 32 vectors at most");
    uint32_t vectors = (uint32_t)((UINT64_C(1) << (1u << n_vectors_log2)) - 1);
    const struct cfg_register registers[] = {
        { PCI_MSI_CONTROL, 2,
          n_vectors_log2 << PCI_MSI_CONTROL_CAPABLE_SHIFT | PCI_MSI_CONTROL_64 |
              PCI_MSI_CONTROL_MASKABLE,
          PCI_MSI_CONTROL_ENABLE | PCI_MSI_CONTROL_ENABLED_MASK, 0 },
        { PCI_MSI_ADDRESS, 4, 0, ~3u, 0 },
        { PCI_MSI_ADDRESS_UPPER, 4, 0, UINT32_MAX, 0 },
        { PCI_MSI_DATA, 2, 0, 0xffff, 0 },
        { PCI_MSI_MASK, 4, 0, vectors, 0 },
    };
    cfg->msi_cap = (uint16_t)cfg_add_cap(cfg, PCI_CAP_ID_MSI, PCI_MSI_BYTES);
    cfg_add_registers(cfg, cfg->msi_cap, registers, SIM_N_ELEMENTS(registers));
}

void cfg_add_msix(struct cfg_space *cfg, unsigned n_vectors, unsigned table_bar,
                  uint32_t table_offset, unsigned pba_bar, uint32_t pba_offset)
{
    SIM_ASSERT(n_vectors >= 1 && n_vectors <= PCI_MSIX_VECTORS_MAX, "%u MSI-X vectors", n_vectors);
    SIM_ASSERT(((table_offset | pba_offset) & PCI_MSIX_BAR_MASK) == 0, "MSI-X tables unaligned");
    const struct cfg_register registers[] = {
        { PCI_MSIX_CONTROL, 2, n_vectors - 1,
          PCI_MSIX_CONTROL_FUNCTION_MASK | PCI_MSIX_CONTROL_ENABLE, 0 },
        { PCI_MSIX_TABLE, 4, table_offset | table_bar, 0, 0 },
        { PCI_MSIX_PBA, 4, pba_offset | pba_bar, 0, 0 },
    };
    cfg->msix_cap = (uint16_t)cfg_add_cap(cfg, PCI_CAP_ID_MSIX, PCI_MSIX_BYTES);
    cfg_add_registers(cfg, cfg->msix_cap, registers, SIM_N_ELEMENTS(registers));
}

void cfg_add_sriov(struct cfg_space *cfg, const struct cfg_sriov *sriov)
{
    uint64_t mask = ~(sriov->bar_bytes - 1);
    uint32_t flags = PCI_BAR_TYPE_64 | (sriov->bar_flags & CFG_BAR_PREFETCH ? PCI_BAR_PREFETCH : 0);
    SIM_ASSERT(sriov->bar_bytes >= 4096 && (sriov->bar_bytes & (sriov->bar_bytes - 1)) == 0,
               "a VF's BAR of 0x%llx bytes", (unsigned long long)sriov->bar_bytes);
    SIM_ASSERT(cfg->pcie_cap != 0, "SR-IOV without PCI Express capability");
    const struct cfg_register registers[] = {
        { PCI_SRIOV_CONTROL, 2, 0, PCI_SRIOV_CONTROL_ENABLE | PCI_SRIOV_CONTROL_MEMORY, 0 },
        { PCI_SRIOV_INITIAL_VFS, 2, sriov->total_vfs, 0, 0 },
        { PCI_SRIOV_TOTAL_VFS, 2, sriov->total_vfs, 0, 0 },
        { PCI_SRIOV_NUM_VFS, 2, 0, 0xffff, 0 },
        { PCI_SRIOV_OFFSET, 2, sriov->first_offset, 0, 0 },
        { PCI_SRIOV_STRIDE, 2, sriov->stride, 0, 0 },
        { PCI_SRIOV_VF_DEVICE_ID, 2, sriov->vf_device_id, 0, 0 },
        { PCI_SRIOV_PAGE_SIZES, 4, PCI_SRIOV_PAGE_SIZES_MUST, 0, 0 },
        { PCI_SRIOV_SYSTEM_PAGE, 4, PCI_SRIOV_PAGE_4K, 0, 0 },
        { PCI_SRIOV_BAR0, 4, flags, (uint32_t)mask, 0 },
        { PCI_SRIOV_BAR0 + 4, 4, 0, (uint32_t)(mask >> 32), 0 },
    };
    cfg->vf_bar_bytes = sriov->bar_bytes;
    unsigned at = cfg_add_ecap(cfg, PCI_ECAP_ID_SRIOV, PCI_SRIOV_VERSION, PCI_SRIOV_BYTES);
    cfg_add_registers(cfg, at, registers, SIM_N_ELEMENTS(registers));
    cfg->sriov_cap = (uint16_t)at;
}

void cfg_add_acs(struct cfg_space *cfg)
{
    /* Validation, blocking and forwarding are for ports that look downwards (7.16.2). */
    uint32_t services = PCI_ACS_REQUEST_REDIRECT | PCI_ACS_COMPLETION_REDIRECT |
                        PCI_ACS_DIRECT_TRANSLATED;
    if (cfg->bridge)
        services |= PCI_ACS_SOURCE_VALIDATION | PCI_ACS_TRANSLATION_BLOCK |
                    PCI_ACS_UPSTREAM_FORWARDING;
    const struct cfg_register registers[] = {
        { PCI_ACS_CAPABILITY, 2, services, 0, 0 },
        { PCI_ACS_CONTROL, 2, 0, services, 0 },
    };
    SIM_ASSERT(cfg->pcie_cap != 0, "ACS without PCI Express capability");
    cfg->acs_cap = (uint16_t)cfg_add_ecap(cfg, PCI_ECAP_ID_ACS, PCI_ACS_VERSION, PCI_ACS_BYTES);
    cfg_add_registers(cfg, cfg->acs_cap, registers, SIM_N_ELEMENTS(registers));
}

void cfg_add_multicast(struct cfg_space *cfg, unsigned n_groups)
{
    SIM_ASSERT(n_groups >= 1 && n_groups <= 64, "%u multicast groups", n_groups);
    struct cfg_register registers[2 + 10] = {
        { PCI_MC_CAPABILITY, 2, n_groups - 1, 0, 0 },
        { PCI_MC_CONTROL, 2, 0, PCI_MC_CONTROL_ENABLE | PCI_MC_GROUP_MASK, 0 },
    };
    for (unsigned i = 0; i < 10; i++) { /* five registers of 64 bits */
        unsigned offset = PCI_MC_BASE + 4 * i;
        uint32_t wmask = offset == PCI_MC_BASE ? ~0xfc0u : UINT32_MAX;
        registers[2 + i] = (struct cfg_register){ (uint16_t)offset, 4, 0, wmask, 0 };
    }
    cfg->mc_cap = (uint16_t)cfg_add_ecap(cfg, PCI_ECAP_ID_MULTICAST, PCI_MC_VERSION, PCI_MC_BYTES);
    cfg_add_registers(cfg, cfg->mc_cap, registers, SIM_N_ELEMENTS(registers));
}
