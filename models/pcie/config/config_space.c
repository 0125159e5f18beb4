/*
 * Models: reads and writes of a function's configuration space by write masks, decoding of the
 * registers that devices look at, the answer to configuration requests, function-level reset.
 * Does not model: power management, configuration request retry, bus reset, I/O space, expansion
 * ROM, slots.
 * Timing: the model that answers a configuration request adds it.
 * Sources: PCI Local Bus 3.0, chapter 6; PCI-to-PCI Bridge 1.2, chapter 3; PCI Express Base 3.1,
 * 2.2.6.2 (captured IDs), 2.2.9 (completions), 2.3.1 (request handling), 6.6.2 (what a
 * function-level reset leaves alone), chapter 7; SR-IOV 1.1, chapter 3.
 */
#include "models/pcie/config/config_space.h"

#include <string.h>

#include "hw/pci_regs.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "configuration space is little endian and so are the machines this runs on");

static uint32_t load(const uint8_t *bytes, unsigned n)
{
    uint32_t value = 0;
    memcpy(&value, bytes, n);
    return value;
}

static void check_access(unsigned offset, unsigned bytes)
{
    SIM_ASSERT((bytes == 1 || bytes == 2 || bytes == 4) && offset % bytes == 0 &&
                   offset + bytes <= CFG_SPACE_BYTES,
               "configuration access of %u bytes at 0x%x", bytes, offset);
}

static struct cfg_block *block_of(struct cfg_space *cfg, unsigned offset)
{
    return &cfg->block[offset / CFG_BLOCK_BYTES];
}

static const uint8_t *value_at(const struct cfg_space *cfg, unsigned offset)
{
    static const uint8_t none[4];
    if (SIM_UNLIKELY(offset >= CFG_KEPT_BYTES))
        return none;
    return &cfg->block[offset / CFG_BLOCK_BYTES].value[offset % CFG_BLOCK_BYTES];
}

uint32_t cfg_read(const struct cfg_space *cfg, unsigned offset, unsigned bytes)
{
    check_access(offset, bytes);
    return load(value_at(cfg, offset), bytes);
}

static unsigned size_of_code(unsigned code)
{
    return 128u << SIM_MIN(code, PCIE_SIZE_CODE_MAX);
}

static void decode_pcie(struct cfg_space *cfg)
{
    struct cfg_live *live = &cfg->live;
    unsigned devcap = cfg_read(cfg, cfg->pcie_cap + PCIE_DEVCAP, 4);
    unsigned devctl = cfg_read(cfg, cfg->pcie_cap + PCIE_DEVCTL, 2);
    unsigned devctl2 = cfg_read(cfg, cfg->pcie_cap + PCIE_DEVCTL2, 2);

    unsigned supported = size_of_code(devcap & PCIE_DEVCAP_MPS_MASK);
    unsigned mps = size_of_code((devctl & PCIE_DEVCTL_MPS_MASK) >> PCIE_DEVCTL_MPS_SHIFT);
    live->mps_bytes = (uint16_t)SIM_MIN(mps, supported);
    live->mrrs_bytes = (uint16_t)size_of_code((devctl & PCIE_DEVCTL_MRRS_MASK) >>
                                              PCIE_DEVCTL_MRRS_SHIFT);
    live->extended_tags = devctl & PCIE_DEVCTL_EXTENDED_TAG;
    live->completion_timeout_disabled = devctl2 & PCIE_DEVCTL2_TIMEOUT_DISABLE;
    live->ecrc = cfg->aer_cap != 0 &&
                 cfg_read(cfg, cfg->aer_cap + PCI_AER_CONTROL, 4) & PCI_AER_ECRC_GENERATION_ENABLE;
}

static void decode_bars(struct cfg_space *cfg)
{
    for (unsigned i = 0; i < cfg->live.n_bars; i++) {
        if (cfg->bar_bytes[i] == 0)
            continue;
        unsigned offset = PCI_BAR0 + 4 * i;
        uint64_t base = cfg_read(cfg, offset, 4) & ~PCI_BAR_FLAGS_MASK;
        if (cfg->bar_flags[i] & CFG_BAR_64)
            base |= (uint64_t)cfg_read(cfg, offset + 4, 4) << 32;
        cfg->live.bar_base[i] = base;
    }
}

static uint64_t window_address(const struct cfg_space *cfg, unsigned offset, unsigned upper)
{
    uint64_t address = (uint64_t)(cfg_read(cfg, offset, 2) & PCI_WINDOW_ADDRESS_MASK) << 16;
    if (upper != 0)
        address |= (uint64_t)cfg_read(cfg, upper, 4) << 32;
    return address;
}

static void decode_windows(struct cfg_space *cfg)
{
    const uint64_t last = (UINT64_C(1) << PCI_WINDOW_GRANULE_LOG2) - 1;
    struct cfg_live *live = &cfg->live;
    live->memory.base = window_address(cfg, PCI_MEMORY_BASE, 0);
    live->memory.limit = window_address(cfg, PCI_MEMORY_LIMIT, 0) | last;
    live->prefetchable.base = window_address(cfg, PCI_PREFETCH_BASE, PCI_PREFETCH_BASE_UPPER);
    live->prefetchable.limit = window_address(cfg, PCI_PREFETCH_LIMIT, PCI_PREFETCH_LIMIT_UPPER) |
                               last;
}

static uint64_t load64(const struct cfg_space *cfg, unsigned offset)
{
    return cfg_read(cfg, offset, 4) | (uint64_t)cfg_read(cfg, offset + 4, 4) << 32;
}

static void decode_multicast(struct cfg_space *cfg)
{
    struct cfg_multicast *mc = &cfg->live.multicast;
    uint32_t control = cfg_read(cfg, cfg->mc_cap + PCI_MC_CONTROL, 2);
    uint64_t base = load64(cfg, cfg->mc_cap + PCI_MC_BASE);
    uint64_t overlay = load64(cfg, cfg->mc_cap + PCI_MC_OVERLAY);
    uint64_t n_groups = (control & PCI_MC_GROUP_MASK) + 1;
    unsigned size = (unsigned)overlay & PCI_MC_POSITION_MASK;

    *mc = (struct cfg_multicast){ .position = (uint8_t)(base & PCI_MC_POSITION_MASK) };
    bool valid = mc->position >= PCI_MC_POSITION_MIN && n_groups <= UINT64_MAX >> mc->position;
    mc->base = base & ~UINT64_C(0xfff);
    mc->bytes = valid && control & PCI_MC_CONTROL_ENABLE ? n_groups << mc->position : 0;
    mc->overlay_log2 = size >= PCI_MC_OVERLAY_MIN ? (uint8_t)size : 0;
    mc->overlay = overlay & ~((UINT64_C(1) << size) - 1);
    mc->receive = load64(cfg, cfg->mc_cap + PCI_MC_RECEIVE);
    mc->block = load64(cfg, cfg->mc_cap + PCI_MC_BLOCK_ALL);
    mc->block_untranslated = load64(cfg, cfg->mc_cap + PCI_MC_BLOCK_UNTRANSLATED);
}

/* How many VFs there are: NumVFs above TotalVFs means nothing (SR-IOV 1.1, 3.3.7). */
static void decode_sriov(struct cfg_space *cfg)
{
    struct cfg_live *live = &cfg->live;
    unsigned at = cfg->sriov_cap, control = cfg_read(cfg, at + PCI_SRIOV_CONTROL, 2);
    unsigned n = cfg_read(cfg, at + PCI_SRIOV_NUM_VFS, 2);
    bool enabled = (control & PCI_SRIOV_CONTROL_ENABLE) != 0 &&
                   n <= cfg_read(cfg, at + PCI_SRIOV_TOTAL_VFS, 2);
    live->n_vfs = enabled ? (uint16_t)n : 0;
    live->vf_memory_enabled = (control & PCI_SRIOV_CONTROL_MEMORY) != 0;
    live->vf_bar_base = (cfg_read(cfg, at + PCI_SRIOV_BAR0, 4) & ~PCI_BAR_FLAGS_MASK) |
                        (uint64_t)cfg_read(cfg, at + PCI_SRIOV_BAR0 + 4, 4) << 32;
}

static uint16_t vf_id(const struct cfg_space *pf, unsigned v)
{
    return (uint16_t)(pf->id + cfg_read(pf, pf->sriov_cap + PCI_SRIOV_OFFSET, 2) +
                      v * cfg_read(pf, pf->sriov_cap + PCI_SRIOV_STRIDE, 2));
}

int cfg_vf_of_id(const struct cfg_space *pf, uint16_t id)
{
    for (unsigned v = 0; v < pf->live.n_vfs; v++)
        if (vf_id(pf, v) == id)
            return (int)v;
    return -1;
}

void cfg_vf_follow(struct cfg_space *cfg, const struct cfg_space *pf, unsigned v)
{
    struct cfg_live *live = &cfg->live;
    cfg->id = vf_id(pf, v);
    cfg->bar_bytes[0] = pf->vf_bar_bytes;
    live->memory_enabled = pf->live.vf_memory_enabled && v < pf->live.n_vfs;
    live->bar_base[0] = pf->live.vf_bar_base + v * pf->vf_bar_bytes;
    live->mps_bytes = pf->live.mps_bytes;
    live->ecrc = pf->live.ecrc;
    live->mrrs_bytes = pf->live.mrrs_bytes;
    live->extended_tags = pf->live.extended_tags;
    live->completion_timeout_disabled = pf->live.completion_timeout_disabled;
}

static void decode(struct cfg_space *cfg)
{
    unsigned command = cfg_read(cfg, PCI_COMMAND, 2);
    cfg->live.bus_master = command & PCI_COMMAND_BUS_MASTER;
    if (cfg->vf)
        return;
    if (cfg->sriov_cap != 0)
        decode_sriov(cfg);
    cfg->live.memory_enabled = command & PCI_COMMAND_MEMORY;
    decode_bars(cfg);
    if (cfg->bridge)
        decode_windows(cfg);
    if (cfg->pcie_cap != 0)
        decode_pcie(cfg);
    if (cfg->mc_cap != 0)
        decode_multicast(cfg);
    if (cfg->acs_cap != 0)
        cfg->live.acs_request_redirect = cfg_read(cfg, cfg->acs_cap + PCI_ACS_CONTROL, 2) &
                                         PCI_ACS_REQUEST_REDIRECT;
}

/* Whether these bytes, as they are written, initiate a function-level reset. */
static bool asks_for_flr(const struct cfg_space *cfg, unsigned offset, unsigned bytes,
                         uint32_t value)
{
    const unsigned at = cfg->pcie_cap + PCIE_DEVCTL + 1; /* its upper byte */
    return cfg->flr && at - offset < bytes &&
           (value >> 8 * (at - offset) & PCIE_DEVCTL_FLR >> 8) != 0;
}

bool cfg_take_flr(struct cfg_space *cfg)
{
    bool asked = cfg->flr_asked;
    cfg->flr_asked = false;
    return asked;
}

void cfg_reset(struct cfg_space *cfg)
{
    const unsigned control = cfg->pcie_cap + PCIE_DEVCTL, link = cfg->pcie_cap + PCIE_LNKCTL;
    const uint32_t mps = cfg_read(cfg, control, 2) & PCIE_DEVCTL_MPS_MASK;
    const unsigned link2 = cfg->pcie_cap + PCIE_LNKCTL2;
    const uint32_t kept = cfg_read(cfg, link, 2) & PCIE_LNKCTL_FLR_KEEPS;
    const uint32_t speed = cfg_read(cfg, link2, 2); /* sticky */
    for (unsigned i = 0; i < CFG_KEPT_BYTES; i++) {
        struct cfg_block *block = block_of(cfg, i);
        const unsigned at = i % CFG_BLOCK_BYTES;
        const uint8_t mask = block->wmask[at] | block->w1cmask[at];
        if (i - cfg->aer_cap >= PCI_AER_BYTES)
            block->value[at] = (uint8_t)((block->value[at] & ~mask) | (block->first[at] & mask));
    }
    cfg_set(cfg, control, 2, (cfg_read(cfg, control, 2) & ~PCIE_DEVCTL_MPS_MASK) | mps);
    cfg_set(cfg, link, 2, (cfg_read(cfg, link, 2) & ~PCIE_LNKCTL_FLR_KEEPS) | kept);
    cfg_set(cfg, link2, 2, speed);
    if (cfg->msi_cap != 0)
        cfg_set(cfg, cfg->msi_cap + PCI_MSI_PENDING, 4, 0);
}

bool cfg_write(struct cfg_space *cfg, unsigned offset, unsigned bytes, uint32_t value)
{
    check_access(offset, bytes);
    if (SIM_UNLIKELY(asks_for_flr(cfg, offset, bytes, value)))
        cfg->flr_asked = true;
    if (offset >= CFG_KEPT_BYTES)
        return false;
    struct cfg_block *block = block_of(cfg, offset);
    const unsigned at = offset % CFG_BLOCK_BYTES;
    uint32_t old = load(&block->value[at], bytes);
    uint32_t wmask = load(&block->wmask[at], bytes);
    uint32_t w1cmask = load(&block->w1cmask[at], bytes);
    uint32_t new = ((old & ~wmask) | (value & wmask)) & ~(value & w1cmask);
    if (new == old)
        return false;
    memcpy(&block->value[at], &new, bytes);
    decode(cfg);
    return true;
}

void cfg_set(struct cfg_space *cfg, unsigned offset, unsigned bytes, uint32_t value)
{
    check_access(offset, bytes);
    SIM_ASSERT(offset < CFG_KEPT_BYTES, "register 0x%x lies behind those that are kept", offset);
    memcpy(&block_of(cfg, offset)->value[offset % CFG_BLOCK_BYTES], &value, bytes);
    decode(cfg);
}

struct tlp *cfg_answer(struct cfg_space *cfg, struct pcie_context *pcie, struct tlp *request)
{
    bool write = request->type == TLP_CFG_WR0;
    uint64_t offset = request->address;
    unsigned bytes = request->length_bytes;
    bool supported = (write || request->type == TLP_CFG_RD0) && offset < CFG_SPACE_BYTES &&
                     bytes > 0 && offset % 4 + bytes <= 4;
    if (request->poisoned) { /* only a write has data */
        cfg_log_error(cfg, PCI_AER_POISONED);
        supported = false;
    }
    if (supported && write)
        cfg->id = request->completer_id;

    struct tlp *answer = tlp_completion(pcie, request, cfg->id, supported ? TLP_SC : TLP_UR);
    if (!supported)
        return answer;
    if (!write) {
        tlp_payload_new(pcie, answer);
        memcpy(answer->payload, value_at(cfg, (unsigned)offset), bytes);
        return answer;
    }
    /* By bytes: any combination of byte enables is legal, masks are per bit anyway. */
    for (unsigned i = 0; i < bytes; i++)
        cfg_write(cfg, (unsigned)offset + i, 1, request->payload[i]);
    return answer;
}

uint8_t cfg_bridge_primary(const struct cfg_space *cfg)
{
    return *value_at(cfg, PCI_PRIMARY_BUS);
}

uint8_t cfg_bridge_secondary(const struct cfg_space *cfg)
{
    return *value_at(cfg, PCI_SECONDARY_BUS);
}

uint8_t cfg_bridge_subordinate(const struct cfg_space *cfg)
{
    return *value_at(cfg, PCI_SUBORDINATE_BUS);
}

void cfg_set_link(struct cfg_space *cfg, unsigned generation, unsigned lanes)
{
    SIM_ASSERT(cfg->pcie_cap != 0, "no PCI Express capability");
    cfg_set(cfg, cfg->pcie_cap + PCIE_LNKSTA, 2,
            generation | lanes << PCIE_LNKSTA_WIDTH_SHIFT | PCIE_LNKSTA_DLL_ACTIVE);
}

void cfg_set_rcb(struct cfg_space *cfg, unsigned rcb_bytes)
{
    SIM_ASSERT(cfg->pcie_cap != 0 && (rcb_bytes == 64 || rcb_bytes == 128),
               "read completion boundary of %u bytes", rcb_bytes);
    unsigned offset = cfg->pcie_cap + PCIE_LNKCTL;
    uint32_t others = cfg_read(cfg, offset, 2) & ~PCIE_LNKCTL_RCB_128;
    cfg_set(cfg, offset, 2, others | (rcb_bytes == 128 ? PCIE_LNKCTL_RCB_128 : 0));
}

unsigned cfg_rcb_bytes(const struct cfg_space *cfg)
{
    SIM_ASSERT(cfg->pcie_cap != 0, "no PCI Express capability");
    return cfg_read(cfg, cfg->pcie_cap + PCIE_LNKCTL, 2) & PCIE_LNKCTL_RCB_128 ? 128 : 64;
}

static void set_bits(struct cfg_space *cfg, unsigned offset, unsigned bytes, uint32_t bits)
{
    cfg_set(cfg, offset, bytes, cfg_read(cfg, offset, bytes) | bits);
}

void cfg_log_error(struct cfg_space *cfg, uint32_t aer_bit)
{
    if (cfg->pcie_cap == 0)
        return;
    bool fatal = cfg_read(cfg, cfg->aer_cap + PCI_AER_SEVERITY, 4) & aer_bit;
    uint32_t status = fatal ? PCIE_DEVSTA_FATAL : PCIE_DEVSTA_NON_FATAL;
    if (aer_bit == PCI_AER_UNSUPPORTED)
        status |= PCIE_DEVSTA_UNSUPPORTED;
    set_bits(cfg, cfg->aer_cap + PCI_AER_UNCORRECTABLE, 4, aer_bit);
    set_bits(cfg, cfg->pcie_cap + PCIE_DEVSTA, 2, status);
}

void cfg_log_abort(struct cfg_space *cfg, enum tlp_status status)
{
    if (status == TLP_UR)
        set_bits(cfg, PCI_STATUS, 2, PCI_STATUS_RECEIVED_MASTER_ABORT);
    else if (status == TLP_CA)
        set_bits(cfg, PCI_STATUS, 2, PCI_STATUS_RECEIVED_TARGET_ABORT);
}
