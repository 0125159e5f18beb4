/*
 * The configuration space of one function: 4096 real bytes, with write masks and write-one-to-clear
 * masks (PCIe Base 3.1, chapter 7; PCI Local Bus 3.0, chapter 6). cfg_add_*() append capabilities
 * to the chain. Devices read registers in decoded form (struct cfg_live), which costs one load.
 * hw/pci_regs.h has the registers.
 */
#ifndef MODELS_PCIE_CONFIG_CONFIG_SPACE_H
#define MODELS_PCIE_CONFIG_CONFIG_SPACE_H

#include "models/pcie/link/tlp.h"
#include "sim/engine/types.h"

#define CFG_SPACE_BYTES 4096u

/* Bridges: a window as programmed; base > limit when closed. */
struct cfg_window {
    uint64_t base, limit; /* limit is the last byte */
};

/* Multicast, as a port's registers say (PCIe Base 3.1, 7.21). */
struct cfg_multicast {
    uint64_t base, bytes; /* of all groups; 0 bytes while it is off */
    uint8_t position;     /* log2 of a group's bytes */
    uint8_t overlay_log2; /* 0: none */
    uint64_t overlay;
    uint64_t receive, block, block_untranslated; /* by group */
};

/* The registers in decoded form; updated whenever a register changes. */
struct cfg_live {
    bool bus_master, memory_enabled;
    bool extended_tags;
    bool completion_timeout_disabled;
    bool acs_request_redirect;
    bool ecrc; /* its requests and completions carry a digest */
    uint8_t n_bars;
    uint16_t mps_bytes, mrrs_bytes;
    uint64_t bar_base[6];
    struct cfg_window memory, prefetchable;
    uint16_t n_vfs; /* SR-IOV: that are enabled */
    bool vf_memory_enabled;
    uint64_t vf_bar_base;
    struct cfg_multicast multicast;
};

/* Behind CFG_KEPT_BYTES no device has registers: it reads as zeros. */
#define CFG_KEPT_BYTES  1024u
#define CFG_BLOCK_BYTES 128u
struct cfg_block {
    uint8_t value[CFG_BLOCK_BYTES];
    uint8_t first[CFG_BLOCK_BYTES];   /* values after a reset */
    uint8_t wmask[CFG_BLOCK_BYTES];   /* bits software may write */
    uint8_t w1cmask[CFG_BLOCK_BYTES]; /* bits that writing 1 clears */
};

struct cfg_space {
    struct cfg_live live;  /* read through the functions below */
    uint64_t bar_bytes[6]; /* 0: absent (or the upper half of a 64-bit BAR) */
    uint8_t bar_flags[6];  /* CFG_BAR_* */
    bool bridge;           /* type 1 */
    bool vf;               /* a virtual function: its physical one determines what it decodes */
    uint64_t vf_bar_bytes; /* of each VF's BAR 0 */
    uint16_t id;           /* bus/device/function captured from configuration writes; before the
                              first, the function number alone (set by the device) */
    uint16_t cap_end, ecap_end;   /* where the next capability may start, in both spaces */
    uint16_t last_cap, last_ecap; /* offsets of the last links of both chains, 0: none */
    uint16_t pcie_cap, msi_cap, msix_cap, acs_cap, aer_cap, mc_cap,
        sriov_cap;       /* offsets, 0: absent */
    bool flr, flr_asked; /* function-level reset: offered, initiated */
    struct cfg_block block[CFG_KEPT_BYTES / CFG_BLOCK_BYTES]; /* an access lies in one */
};

#define CFG_BAR_64       0x1u
#define CFG_BAR_PREFETCH 0x2u

struct cfg_identity {
    uint16_t vendor_id, device_id, subsystem_vendor_id, subsystem_id;
    uint32_t class_code; /* 24 bits */
    uint8_t revision;
    bool multi_function;
};

/* Device/port type of the PCI Express capability, PCIe Base 3.1, table 7-13. */
enum cfg_port_type {
    CFG_ENDPOINT = 0x0,
    CFG_ROOT_PORT = 0x4,
    CFG_UPSTREAM_PORT = 0x5,
    CFG_DOWNSTREAM_PORT = 0x6,
    CFG_INTEGRATED_ENDPOINT = 0x9 /* into the root complex */
};

/* Initialise the whole space. A device of several functions sets cfg->id to the function number. */
void cfg_init_endpoint(struct cfg_space *cfg, const struct cfg_identity *identity);
void cfg_init_bridge(struct cfg_space *cfg, const struct cfg_identity *identity);
/* bytes: a power of two, 16 .. 2^63 (2^31 without CFG_BAR_64); a 64-bit BAR takes idx and idx + 1.
 * Endpoints have six, bridges two. */
void cfg_add_bar(struct cfg_space *cfg, unsigned idx, uint64_t bytes, unsigned flags);
/* Adds PCI Express and advanced error reporting, without ECRC. mps_bytes_max: 128 .. 4096. */
void cfg_add_pcie(struct cfg_space *cfg, enum cfg_port_type type, unsigned max_generation,
                  unsigned max_lanes, unsigned mps_bytes_max, bool extended_tags);
/* Makes an endpoint one that is integrated into the root complex: its link registers are 0, since
 * it has no link (7.8). After cfg_add_pcie(). */
void cfg_integrate(struct cfg_space *cfg);
/* Offers ECRC generation and checking (PCIe Base 3.1, 7.10.7). After cfg_add_pcie(). */
void cfg_add_ecrc(struct cfg_space *cfg);
/* Offers function-level reset (PCIe Base 3.1, 6.6.2). After cfg_add_pcie(). */
void cfg_add_flr(struct cfg_space *cfg);
void cfg_add_msi(struct cfg_space *cfg, unsigned n_vectors_log2);
void cfg_add_msix(struct cfg_space *cfg, unsigned n_vectors, unsigned table_bar,
                  uint32_t table_offset, unsigned pba_bar, uint32_t pba_offset);
/* Adds Access Control Services of a switch port or multifunction device. After cfg_add_pcie(). */
void cfg_add_acs(struct cfg_space *cfg);

/* Adds multicast of a switch port or root port: groups 0 .. n_groups - 1 (1 .. 64). */
void cfg_add_multicast(struct cfg_space *cfg, unsigned n_groups);

/* Extended capability SR-IOV of a physical function; VFs have BAR 0 alone, 64 bits. After
 * cfg_add_pcie(). VF v (0 ..) has the requester ID of this function + first_offset + v x stride. */
struct cfg_sriov {
    uint16_t total_vfs, first_offset, stride, vf_device_id;
    uint64_t bar_bytes; /* of each VF: a power of two, at least 4096 */
    unsigned bar_flags; /* CFG_BAR_PREFETCH */
};
void cfg_add_sriov(struct cfg_space *cfg, const struct cfg_sriov *sriov);
/* Initialises a virtual function: a header without identity and BARs (SR-IOV 1.1, 3.4.1), to which
 * capabilities are added as to others. cfg_vf_follow() must be called whenever registers of the
 * physical function may have changed: it updates requester ID, BAR 0 and the sizes of TLPs. */
void cfg_init_vf(struct cfg_space *cfg, const struct cfg_identity *identity);
void cfg_vf_follow(struct cfg_space *cfg, const struct cfg_space *pf, unsigned v);
/* Append another capability (ATS, vendor-specific), whose registers are read-only zeros until
 * cfg_add_registers(). bytes includes the header. Return the offset. */
unsigned cfg_add_cap(struct cfg_space *cfg, unsigned id, unsigned bytes);
unsigned cfg_add_ecap(struct cfg_space *cfg, unsigned id, unsigned version, unsigned bytes);
/* Registers as data. */
struct cfg_register {
    uint16_t offset; /* from the base given */
    uint8_t bytes;   /* 1, 2 or 4 */
    uint32_t value, wmask, w1cmask;
};
void cfg_add_registers(struct cfg_space *cfg, unsigned base, const struct cfg_register *registers,
                       unsigned n_registers);

/* Perform a configuration request of 1, 2 or 4 aligned bytes. cfg_write() obeys the masks and
 * returns whether anything changed. */
uint32_t cfg_read(const struct cfg_space *cfg, unsigned offset, unsigned bytes);
bool cfg_write(struct cfg_space *cfg, unsigned offset, unsigned bytes, uint32_t value);

/* Whether software has initiated a function-level reset since the last call. The device must then
 * abandon its transactions, reset its own registers and call cfg_reset(). */
bool cfg_take_flr(struct cfg_space *cfg);
/* What software can write is as it was at first, but for sticky registers (error reporting, target
 * link speed), the payload size and what else belongs to the link (6.6.2). No MSI vector is
 * pending. */
void cfg_reset(struct cfg_space *cfg);

/* What the device does to its own register: no masks. */
void cfg_set(struct cfg_space *cfg, unsigned offset, unsigned bytes, uint32_t value);

/* Answers a configuration request TLP (type 0) of this function: returns the completion, ready to
 * be sent; captures bus and device number on writes (PCIe Base 3.1, 2.2.6.2). The request stays
 * the caller's. Anything but a type 0 configuration request within one double word is answered as
 * unsupported. */
struct tlp *cfg_answer(struct cfg_space *cfg, struct pcie_context *pcie, struct tlp *request);

/* ---- Live registers -------------------------------------------------------------------------- */
static inline bool cfg_bus_master(const struct cfg_space *cfg)
{
    return cfg->live.bus_master;
}
static inline bool cfg_memory_enabled(const struct cfg_space *cfg)
{
    return cfg->live.memory_enabled;
}
static inline unsigned cfg_mps_bytes(const struct cfg_space *cfg) /* 128 .. 4096 */
{
    return cfg->live.mps_bytes;
}
static inline unsigned cfg_mrrs_bytes(const struct cfg_space *cfg) /* 128 .. 4096 */
{
    return cfg->live.mrrs_bytes;
}
static inline bool cfg_extended_tags(const struct cfg_space *cfg)
{
    return cfg->live.extended_tags;
}
static inline bool cfg_completion_timeout_disabled(const struct cfg_space *cfg)
{
    return cfg->live.completion_timeout_disabled;
}
/* The base of BAR idx as programmed; 0 if absent or not programmed. */
static inline uint64_t cfg_bar_base(const struct cfg_space *cfg, unsigned idx)
{
    return cfg->live.bar_base[idx];
}
/* The BAR that covers [address, address + bytes) while memory space is enabled, or -1. */
static inline int cfg_bar_match(const struct cfg_space *cfg, uint64_t address, uint64_t bytes)
{
    if (!cfg->live.memory_enabled)
        return -1;
    for (unsigned i = 0; i < cfg->live.n_bars; i++) {
        uint64_t offset = address - cfg->live.bar_base[i];
        if (offset < cfg->bar_bytes[i] && bytes <= cfg->bar_bytes[i] - offset)
            return (int)i;
    }
    return -1;
}

/* The windows of a bridge as programmed. The caller must test whether memory space (for requests
 * downwards) or bus mastering (upwards) is enabled. */
static inline struct cfg_window cfg_bridge_memory(const struct cfg_space *cfg) /* 32 bit */
{
    return cfg->live.memory;
}
static inline struct cfg_window cfg_bridge_prefetchable(const struct cfg_space *cfg) /* 64 bit */
{
    return cfg->live.prefetchable;
}
uint8_t cfg_bridge_primary(const struct cfg_space *cfg);
uint8_t cfg_bridge_secondary(const struct cfg_space *cfg);
uint8_t cfg_bridge_subordinate(const struct cfg_space *cfg);
/* Whether ACS redirects peer-to-peer requests of this port upstream. */
static inline bool cfg_acs_p2p_request_redirect(const struct cfg_space *cfg)
{
    return cfg->live.acs_request_redirect;
}

static inline const struct cfg_multicast *cfg_multicast(const struct cfg_space *cfg)
{
    return &cfg->live.multicast;
}

/* Return the enabled virtual function (0 ..) that has this requester ID, or whose BAR 0 covers the
 * bytes and is decoded; -1: there is none. */
int cfg_vf_of_id(const struct cfg_space *pf, uint16_t id);
static inline int cfg_vf_match(const struct cfg_space *pf, uint64_t address, uint64_t bytes)
{
    uint64_t offset = address - pf->live.vf_bar_base;
    if (!pf->live.vf_memory_enabled || offset >= pf->live.n_vfs * pf->vf_bar_bytes ||
        offset % pf->vf_bar_bytes + bytes > pf->vf_bar_bytes)
        return -1;
    return (int)(offset / pf->vf_bar_bytes);
}

/* Sets what the link has trained to (link status register). */
void cfg_set_link(struct cfg_space *cfg, unsigned generation, unsigned lanes);
/* Sets, or returns, the read completion boundary in the register of a root port: 64 or 128. */
void cfg_set_rcb(struct cfg_space *cfg, unsigned rcb_bytes);
unsigned cfg_rcb_bytes(const struct cfg_space *cfg);
/* Logs an uncorrectable error (PCI_AER_*): error status, and device status by its severity. */
void cfg_log_error(struct cfg_space *cfg, uint32_t aer_bit);
/* Logs the status of a completion without data: received master abort (UR) or target abort (CA). */
void cfg_log_abort(struct cfg_space *cfg, enum tlp_status status);

/*
 * Return true with the message of an MSI or MSI-X vector that is enabled and not masked; an enabled
 * but masked vector becomes pending. If fewer MSI vectors were granted than offered, vectors are
 * taken modulo the granted number. table: the device's MSI-X table (16 bytes per vector); pba: its
 * pending bits (8 bytes per 64 vectors).
 */
bool cfg_msi_message(struct cfg_space *cfg, unsigned vector, uint64_t *address, uint32_t *data);
bool cfg_msix_message(const struct cfg_space *cfg, const uint8_t *table, uint8_t *pba,
                      unsigned vector, uint64_t *address, uint32_t *data);
/* To be called after a mask was lifted, until they return false: clear the pending bit of the
 * lowest vector that is pending and not masked, and return its message. False: there is none. */
bool cfg_msi_take_pending(struct cfg_space *cfg, uint64_t *address, uint32_t *data);
bool cfg_msix_take_pending(const struct cfg_space *cfg, const uint8_t *table, uint8_t *pba,
                           unsigned *vector, uint64_t *address, uint32_t *data);

#endif
