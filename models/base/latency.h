/* The parts into which a transaction's latency is broken down (sim/engine/stamp.h). */
#ifndef MODELS_BASE_LATENCY_H
#define MODELS_BASE_LATENCY_H

#include "sim/engine/stamp.h"

enum latency_part {
    PART_DEVICE,       /* the device's own engines and queues                          */
    PART_LINK,         /* serialisation, propagation, replay                           */
    PART_CREDIT,       /* waiting for flow-control credits or for the link to be free   */
    PART_SWITCH,       /* in a PCIe switch                                             */
    PART_ROOT_COMPLEX, /* in the root complex, ordering waits included                 */
    PART_IOMMU,        /* translation: look-up, waiting for a walker, walking          */
    PART_INTERCONNECT, /* QPI, UPI or front-side bus                                   */
    PART_CACHE,        /* private caches, LLC, ring, snoops, home agent                */
    PART_DRAM,         /* DRAM, queueing included                                      */
    PART_CORE,         /* the core itself                                              */
    N_LATENCY_PARTS
};
_Static_assert(N_LATENCY_PARTS <= SIM_STAMP_PARTS, "a latency stamp must hold every part");

/* "device", "link", "credit", "switch", "root_complex", "iommu", "interconnect", "cache", "dram",
 * "core"; NULL-terminated. */
extern const char *const latency_part_name[N_LATENCY_PARTS + 1];

#endif
