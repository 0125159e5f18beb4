/* Addresses of different spaces are different types, so that mixing them does not compile. */
#ifndef MODELS_BASE_ADDRESS_H
#define MODELS_BASE_ADDRESS_H

#include "sim/engine/types.h"

#define LINE_BYTES UINT64_C(64)
#define LINE_LOG2  6
#define PAGE_BYTES UINT64_C(4096)
#define PAGE_LOG2  12

/* Host-physical address: what a core's page table or the IOMMU yields. One space per host. */
struct hpa {
    uint64_t v;
};
/* I/O virtual address: what a device puts on the link. Equals the host-physical address without
 * an IOMMU, or in pass-through. */
struct iova {
    uint64_t v;
};

#endif
