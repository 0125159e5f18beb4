/*
 * Configuration space of one function: 4096 real bytes, behaviour as data (write masks,
 * write-one-to-clear masks). PCIe Base 3.1, chapter 7; PCI Local Bus 3.0, chapter 6.
 * Builders of capabilities append to the chain; devices look at the live registers.
 */
#ifndef MODELS_PCIE_CONFIG_SPACE_H
#define MODELS_PCIE_CONFIG_SPACE_H

#include "models/pcie/tlp.h"
#include "sim/types.h"

#define CFG_SPACE_BYTES 4096u

struct cfg_space {
    uint8_t value[CFG_SPACE_BYTES];
    uint8_t wmask[CFG_SPACE_BYTES];   /* bits software may write */
    uint8_t w1cmask[CFG_SPACE_BYTES]; /* bits that writing 1 clears */
    uint16_t cap_end;                 /* where the next capability may start (standard space) */
    uint16_t last_cap, last_ecap;     /* offsets of the last links of both chains, 0: none */
    uint16_t pcie_cap, msi_cap, msix_cap, acs_cap; /* offsets, 0: absent */
    uint64_t bar_bytes[6]; /* 0: absent (or the upper half of a 64-bit BAR) */
    uint8_t bar_flags[6];  /* CFG_BAR_* */
    bool bridge;           /* type 1 */
    uint16_t id;           /* bus/device/function captured from configuration writes */
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
    CFG_DOWNSTREAM_PORT = 0x6
};

void cfg_init_endpoint(struct cfg_space *cfg, const struct cfg_identity *identity);
void cfg_init_bridge(struct cfg_space *cfg, const struct cfg_identity *identity);
/* bytes: a power of two, 16 .. 2^63; a 64-bit BAR takes idx and idx + 1. */
void cfg_add_bar(struct cfg_space *cfg, unsigned idx, uint64_t bytes, unsigned flags);
void cfg_add_pcie(struct cfg_space *cfg, enum cfg_port_type type, unsigned max_generation,
                  unsigned max_lanes, unsigned mps_bytes_max, bool extended_tags);
void cfg_add_msi(struct cfg_space *cfg, unsigned n_vectors_log2);
void cfg_add_msix(struct cfg_space *cfg, unsigned n_vectors, unsigned table_bar,
                  uint32_t table_offset, unsigned pba_bar, uint32_t pba_offset);
/* Extended capability; what a switch port or multifunction device can enforce. */
void cfg_add_acs(struct cfg_space *cfg);

/* What a configuration request does: 1, 2 or 4 aligned bytes. Writes obey the masks and return
 * true if anything changed. */
uint32_t cfg_read(const struct cfg_space *cfg, unsigned offset, unsigned bytes);
bool cfg_write(struct cfg_space *cfg, unsigned offset, unsigned bytes, uint32_t value);

/* Answers a configuration request TLP (type 0) of this function: returns the completion, ready to
 * be sent; captures bus and device number on writes (PCIe Base 3.1, 2.2.6.2). The request stays
 * the caller's. */
struct tlp *cfg_answer(struct cfg_space *cfg, struct pcie_fabric *fabric, struct tlp *request);

/* ---- Live registers -------------------------------------------------------------------------- */
bool cfg_bus_master(const struct cfg_space *cfg);
bool cfg_memory_enabled(const struct cfg_space *cfg);
unsigned cfg_mps_bytes(const struct cfg_space *cfg);  /* 128 .. 4096 */
unsigned cfg_mrrs_bytes(const struct cfg_space *cfg); /* 128 .. 4096 */
bool cfg_extended_tags(const struct cfg_space *cfg);
/* Base of BAR idx as programmed (0 if absent or still zero). */
uint64_t cfg_bar_base(const struct cfg_space *cfg, unsigned idx);
/* The BAR that covers [address, address + bytes) while memory space is enabled, or -1. */
int cfg_bar_match(const struct cfg_space *cfg, uint64_t address, uint64_t bytes);

/* Bridges: windows as programmed; base > limit when closed. */
struct cfg_window {
    uint64_t base, limit; /* limit is the last byte */
};
struct cfg_window cfg_bridge_memory(const struct cfg_space *cfg); /* non-prefetchable, 32 bit */
struct cfg_window cfg_bridge_prefetchable(const struct cfg_space *cfg); /* 64 bit */
uint8_t cfg_bridge_primary(const struct cfg_space *cfg);
uint8_t cfg_bridge_secondary(const struct cfg_space *cfg);
uint8_t cfg_bridge_subordinate(const struct cfg_space *cfg);
/* ACS: peer-to-peer requests of this port must be redirected upstream. */
bool cfg_acs_p2p_request_redirect(const struct cfg_space *cfg);

/* MSI and MSI-X: the message of a vector if enabled and not masked (and latches pending if masked).
 * table: the device's MSI-X table memory (16 bytes per vector), NULL for MSI. */
bool cfg_msi_message(const struct cfg_space *cfg, unsigned vector, uint64_t *address,
                     uint32_t *data);
bool cfg_msix_message(const struct cfg_space *cfg, const uint8_t *table, uint8_t *pba,
                      unsigned vector, uint64_t *address, uint32_t *data);

#endif
