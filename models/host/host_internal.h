/* What host.c and host_boot.c share. */
#ifndef MODELS_HOST_HOST_INTERNAL_H
#define MODELS_HOST_HOST_INTERNAL_H

#include "models/host/host.h"

#define HOST_NUMA_GROUPS_MAX 8u
#define HOST_NUMA_STATS_MAX  16u
#define HOST_NUMA_STATS_MAX  16u
#define HOST_DOMAINS_MAX     256u

struct host_domain {
    uint16_t requester_id;
    struct iommu_domain *domain;
};

/* The IOMMU driver's callbacks need to know the socket. */
struct host_iommu {
    struct host *host;
    struct iommu *iommu;
    struct iommu_driver *driver; /* NULL until booted */
};

/* DMA addresses are given below 4 GiB first, as Linux does, without 0 and what is not memory
 * there. */
#define IOVA_LOW     UINT64_C(0x00100000)
#define IOVA_LOW_END UINT64_C(0xf0000000)
#define IOVA_HIGH    (UINT64_C(1) << 32)

/* What the firmware's set-up menu asks. */
struct host_firmware_params {
    uint64_t mmio_high_base_bytes;
    bool ecrc;
    bool iommu_tables_far;
};

/* How closely the host is simulated. */
enum host_payload { HOST_PAYLOAD_LINES, HOST_PAYLOAD_RATES };
struct host_detail_params {
    int payload; /* enum host_payload */
};

struct host {
    const char *name;
    struct sim *sim;
    struct pcie_context *pcie;
    void *numa_group[HOST_NUMA_GROUPS_MAX]; /* states of numa_param_groups */
    struct numa_params numa_params;
    struct core_params core_params;
    struct iommu_params iommu_params;
    void *software_params; /* of the group that host_new() was given */
    struct host_firmware_params firmware_params;
    struct host_detail_params detail_params;
    struct pcie_shortcut shortcut;
    struct numa *numa;
    struct core *core;
    unsigned n_sockets;
    struct root_complex_host root_complexes;
    struct model *rc[ROOT_COMPLEX_SOCKETS_MAX];
    char *rc_name[ROOT_COMPLEX_SOCKETS_MAX];
    char *rc_prefix[ROOT_COMPLEX_SOCKETS_MAX]; /* of statistics */
    char *iommu_prefix[ROOT_COMPLEX_SOCKETS_MAX];
    char *numa_prefix[HOST_NUMA_STATS_MAX];
    struct host_iommu iommu[ROOT_COMPLEX_SOCKETS_MAX];
    char **port_name; /* "s0.rp0", NULL-terminated */
    struct pcie_port **port;
    unsigned n_ports;
    unsigned n_functions, n_domains;
    uint64_t next_iova;
    bool booted;
    const char *boot_error;
    /* Last, since most stay unused, and take no memory of the real machine. */
    struct pcie_found function[HOST_FUNCTIONS_MAX];
    struct host_domain domain[HOST_DOMAINS_MAX];
};

#endif
