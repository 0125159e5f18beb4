/*
 * A host: sockets with cores and memory, root complexes with their root ports, IOMMUs; and the
 * part of an operating system that every experiment needs: it enumerates PCIe, sets the IOMMU up
 * and hands out memory that devices may reach.
 */
#ifndef MODELS_HOST_HOST_H
#define MODELS_HOST_HOST_H

#include "models/host/core.h"
#include "models/host/enumerate.h"
#include "models/host/iommu_driver.h"
#include "models/pcie/endpoint/dma.h"
#include "models/pcie/root/root_complex.h"

#define HOST_FUNCTIONS_MAX 256u

struct host;
struct host_param_group;

/* Builds a host from its group of the scenario (`hosts.NAME`); `software` describes the group of
 * its operating system. Mistakes go to errors; the host may then only be freed. name must outlive
 * it. */
struct host *host_new(struct pcie_context *pcie, const char *name,
                      const struct host_param_group *software, struct config *config,
                      struct config_node *group, struct sim_error_list *errors);
void host_free(struct host *host);
/* Links are joined; time is 0. */
void host_start(struct host *host);

const char *host_name(const struct host *host);
bool host_iommu_enabled(const struct host *host); /* by its parameters */
/* Payload is moved without cache lines and, by devices of which all ports are below the host,
 * without TLPs: copies and DMA take the time of their rates (core.h, pcie/endpoint/dma.h). For a
 * host that is not measured. host_shortcut(): of such devices, or NULL. */
bool host_payload_by_rate(const struct host *host);
const struct pcie_shortcut *host_shortcut(const struct host *host);
struct sim *host_sim(const struct host *host);
struct numa *host_numa(struct host *host);
struct physmem *host_physmem(struct host *host);
struct core *host_core(struct host *host, unsigned idx);
/* What was read from the group `software` of host_new(). Owned by the host. */
const void *host_software_params(const struct host *host);
struct root_complex_host *host_root_complexes(struct host *host);
/* A root port by its name ("s0.rp1"), or NULL; names are in a NULL-terminated list. */
struct pcie_port *host_port(struct host *host, const char *name);
const char *const *host_port_names(const struct host *host);

/* Starts the boot task at time 0: enumeration of every root bus, IOMMU set-up. */
void host_boot(struct host *host);
/* Booted; false with the reason in *why (NULL while booting) if it could not. */
bool host_booted(const struct host *host, const char **why);
/* What enumeration found. */
const struct pcie_found *host_functions(const struct host *host, unsigned *n);

/* The socket whose root complex the requester is below. */
unsigned host_socket_of(const struct host *host, uint16_t requester_id);
/* The driver of the IOMMU that the requester is behind; NULL: there is none, or not yet. */
struct iommu_driver *host_iommu_driver(const struct host *host, uint16_t requester_id);
/* The requester's own domain. host_domain_of() makes it if need be; NULL: no IOMMU, or no room for
 * more. host_domain_find(): NULL: it never had one. */
struct iommu_domain *host_domain_of(struct host *host, uint16_t requester_id);
struct iommu_domain *host_domain_find(const struct host *host, uint16_t requester_id);

/*
 * DMA memory: physically contiguous bytes on a node, reachable by the device with this requester
 * ID at *iova. With the IOMMU on, mapped with pages of iommu_page_bytes (4 KiB, 2 MiB, 1 GiB) in
 * the device's own domain; else *iova = *hpa. 0 or a negative errno; nothing is left behind then.
 */
int host_dma_alloc(struct host *host, uint16_t requester_id, unsigned node, uint64_t bytes,
                   uint64_t iommu_page_bytes, struct hpa *hpa, struct iova *iova);
/* Exactly what host_dma_alloc() gave. */
int host_dma_free(struct host *host, uint16_t requester_id, uint64_t bytes,
                  uint64_t iommu_page_bytes, struct hpa hpa, struct iova iova);
/* What a driver does to the Max_Read_Request_Size of its device (128 .. 4096). From a task. */
void host_set_mrrs(struct host *host, struct sim_task *task, uint16_t id, unsigned mrrs_bytes);

/* Statistics of everything in the host, one table per call with ascending index until false;
 * *prefix is "server.", "server.s0." and so on (owned by the host). */
bool host_stats(struct host *host, unsigned index, const char **prefix,
                const struct stat_desc **table, void **state);
/* How many tables those are. */
unsigned host_n_stats(const struct host *host);

/* The parameter groups of a host beside numa_param_groups, for `describe`. */
struct host_param_group {
    const char *name, *help;
    const struct param_desc *table;
    size_t bytes; /* of the struct that they are read into; 0 in host_param_groups */
};
extern const struct host_param_group host_param_groups[];
/* What a part of a host counts that such a group describes; NULL: nothing. */
const struct stat_desc *host_group_stats(const struct host_param_group *group);
/* Settings of a host that are no parameters. */
extern const struct setting_desc host_settings[];

#endif
