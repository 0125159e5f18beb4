#include "models/base/latency.h"

const char *const latency_part_name[N_LATENCY_PARTS + 1] = {
    [PART_DEVICE] = "device",
    [PART_LINK] = "link",
    [PART_CREDIT] = "credit",
    [PART_SWITCH] = "switch",
    [PART_ROOT_COMPLEX] = "root_complex",
    [PART_IOMMU] = "iommu",
    [PART_INTERCONNECT] = "interconnect",
    [PART_CACHE] = "cache",
    [PART_DRAM] = "dram",
    [PART_CORE] = "core",
};
