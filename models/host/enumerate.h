/*
 * Enumeration: software that finds devices, sizes BARs, assigns bus numbers and windows and
 * switches on Bus Master, through configuration requests only. The caller supplies how a
 * configuration request is made (from a task: the root complex's ECAM window; in tests: directly).
 */
#ifndef MODELS_HOST_ENUMERATE_H
#define MODELS_HOST_ENUMERATE_H

#include "models/pcie/config/config_space.h"

struct pcie_cfg_access {
    void *context;
    /* All ones where nothing answers. bytes 1, 2 or 4. */
    uint32_t (*read)(void *context, uint16_t id, unsigned offset, unsigned bytes);
    void (*write)(void *context, uint16_t id, unsigned offset, unsigned bytes, uint32_t value);
};

struct pcie_enumerate_options {
    unsigned first_bus, last_bus;                   /* of this host bridge, inclusive */
    uint64_t memory_base, memory_bytes;             /* 32-bit non-prefetchable MMIO window */
    uint64_t prefetchable_base, prefetchable_bytes; /* 64-bit window */
    unsigned mps_bytes;  /* 0: the largest that the whole tree supports */
    unsigned mrrs_bytes; /* 0: 512 */
    bool extended_tags;  /* switch on where supported */
    bool ecrc;           /* switch on ECRC generation and checking where supported */
    bool acs;            /* switch on ACS redirection (an IOMMU is in use) */
};

struct pcie_found {
    uint16_t id, vendor_id, device_id;
    uint32_t class_code;
    bool bridge;
    uint8_t secondary, subordinate; /* bridges */
    uint16_t mps_bytes;             /* Max_Payload_Size that it was given; 0: not PCI Express */
    uint64_t bar_base[6], bar_bytes[6];
};

/* Scans, assigns, enables. Returns the number of functions found (at most max are stored), or -1
 * with a static message in *why if windows or bus numbers do not suffice. */
int pcie_enumerate(const struct pcie_cfg_access *access,
                   const struct pcie_enumerate_options *options, struct pcie_found *found,
                   unsigned max, const char **why);

/* Gives the functions found another Max_Payload_Size: one that enumeration gave one of them. */
void pcie_set_mps(const struct pcie_cfg_access *access, struct pcie_found *found, unsigned n_found,
                  unsigned mps_bytes);

/* Offset of a capability in standard configuration space; 0 if the function, or it, is not there.
 */
unsigned pcie_find_capability(const struct pcie_cfg_access *access, uint16_t id, unsigned cap_id);

#endif
