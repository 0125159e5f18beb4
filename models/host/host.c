/*
 * Builds a host from the groups of its platform.
 *
 * Models: sockets, root ports by the platform's `ports` list, one IOMMU a socket.
 * Does not model: firmware, hot-plug, management engines.
 * Sources: the platform files.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/host/host_internal.h"
#include "sim/engine/zeroed.h"

struct port_group {
    const char *name;
    uint32_t socket, generation, lanes, stack;
};

static const struct param_desc port_params[] = {
    PARAM_TEXT("name", struct port_group, name, "rp0", "name of the root port within its socket"),
    PARAM("socket", PARAM_U32, struct port_group, socket, 0, 0, ROOT_COMPLEX_SOCKETS_MAX - 1,
          PROV_NONE, "", "socket the root port belongs to"),
    PARAM("generation", PARAM_U32, struct port_group, generation, 3, 1, 5, PROV_DATASHEET,
          "docs/sources.md#g", "highest PCIe generation"),
    PARAM("lanes", PARAM_U32, struct port_group, lanes, 8, 1, 32, PROV_DATASHEET,
          "docs/sources.md#g", "link width"),
    PARAM("stack", PARAM_U32, struct port_group, stack, 0, 0, ROOT_COMPLEX_PORTS_MAX - 1, PROV_NONE,
          "", "ports of a stack share root_complex.write_lines"),
    { .type = PARAM_END },
};

static const struct param_desc firmware_params[] = {
    PARAM("mmio_high_base_bytes", PARAM_BYTES, struct host_firmware_params, mmio_high_base_bytes,
          17592186044416, 68719476736, 70368744177664, PROV_ESTIMATE, "docs/sources.md#c3",
          "where the prefetchable window of the first socket begins; above all memory, 4 TiB each"),
    PARAM("ecrc", PARAM_BOOL, struct host_firmware_params, ecrc, 0, 0, 1, PROV_PUBLISHED,
          "docs/sources.md#pcie-bench",
          "functions that can add a digest (ECRC) to their TLPs are told to"),
    PARAM("iommu_tables_far", PARAM_BOOL, struct host_firmware_params, iommu_tables_far, 0, 0, 1,
          PROV_ESTIMATE, "docs/sources.md#iommu-hosts",
          "tables of a socket's IOMMU lie in the next socket's memory, not in its own"),
    { .type = PARAM_END },
};

static const char *const payload_names[] = { "lines", "rates", NULL };
static const struct param_desc detail_params[] = {
    PARAM_ONE_OF("payload", struct host_detail_params, payload, HOST_PAYLOAD_LINES, payload_names,
                 PROV_NONE, "",
                 "what is copied and what devices move goes through caches and links, or takes the "
                 "time of their rates only: for hosts that are not measured"),
    { .type = PARAM_END },
};

const struct host_param_group host_param_groups[] = {
    { "core", "a core's overlap of misses", core_params_table, 0 },
    { "root_complex", "root ports and the way to memory, per socket", root_complex_params_table,
      0 },
    { "iommu", "DMA remapping, per socket", iommu_params_table, 0 },
    { "firmware", "settings of the firmware", firmware_params, 0 },
    { "detail", "how closely the host is simulated", detail_params, 0 },
    { "ports", "a root port: an element of the list `ports`", port_params, 0 },
    { NULL, NULL, NULL, 0 },
};

const struct stat_desc *host_group_stats(const struct host_param_group *group)
{
    if (group->table == root_complex_params_table)
        return root_complex_ops.stats;
    return group->table == iommu_params_table ? iommu_stats_table : NULL;
}

const struct setting_desc host_settings[] = {
    { "machine", "text", "none",
      "which machine it is: values that another one's measurements decided are said to be borrowed" },
    { "ports", "a list of groups", "none", "its root ports, ( { name = \"rp0\"; socket = 0; } )" },
    { .key = NULL },
};

static char *text(const char *fmt, const char *a, unsigned s, const char *b)
{
    char buffer[160];
    snprintf(buffer, sizeof(buffer), fmt, a, s, b);
    return sim_strdup(buffer);
}

/* ---- Memory system and cores ----------------------------------------------------------------- */

static bool read_groups(struct host *host, const struct host_param_group *software,
                        struct config *config, struct config_node *group,
                        struct sim_error_list *errors)
{
    size_t before = errors->n_messages;
    for (unsigned i = 0; numa_param_groups[i].name != NULL; i++) {
        const struct numa_param_group *g = &numa_param_groups[i];
        SIM_ASSERT(i < HOST_NUMA_GROUPS_MAX, "too many groups");
        host->numa_group[i] = sim_zalloc(1, g->bytes);
        memcpy((char *)&host->numa_params + g->offset, &host->numa_group[i], sizeof(void *));
        config_read_params(config, config_get(group, g->name), g->name, g->table,
                           host->numa_group[i], errors);
    }
    config_read_params(config, config_get(group, "core"), "core", core_params_table,
                       &host->core_params, errors);
    config_read_params(config, config_get(group, "iommu"), "iommu", iommu_params_table,
                       &host->iommu_params, errors);
    host->software_params = sim_zalloc(1, software->bytes);
    config_read_params(config, config_get(group, software->name), software->name, software->table,
                       host->software_params, errors);
    config_read_params(config, config_get(group, "firmware"), "firmware", firmware_params,
                       &host->firmware_params, errors);
    config_read_params(config, config_get(group, "detail"), "detail", detail_params,
                       &host->detail_params, errors);
    config_allow_settings(group, host_settings);
    config_read_machine(group, errors);
    if (errors->n_messages != before)
        return false;
    const char *why = iommu_params_error(&host->iommu_params);
    if (why != NULL || !numa_params_check(&host->numa_params, &why)) {
        sim_error_add(errors, config_file(group), config_line(group), "%s: %s", config_path(group),
                      why);
        return false;
    }
    return true;
}

static void make_cores(struct host *host)
{
    host->numa = numa_new(host->sim, host->name, &host->numa_params);
    host->n_sockets = numa_sockets(host->numa);
    host->core = sim_zalloc(numa_cores(host->numa), sizeof(*host->core));
    for (unsigned c = 0; c < numa_cores(host->numa); c++) {
        core_init(&host->core[c], host->numa, &host->core_params, c);
        host->core[c].copies_by_rate = host_payload_by_rate(host);
    }
}

/* ---- Payload by rate ------------------------------------------------------------------------- */

static bool shortcut_read(void *context, struct iova iova, uint8_t *to, uint64_t bytes)
{
    const struct physmem *mem = numa_physmem(((struct host *)context)->numa);
    const struct hpa hpa = { iova.v };
    if (!physmem_contains(mem, hpa, bytes))
        return false;
    physmem_read_marks(mem, hpa, to, bytes);
    return true;
}

static bool shortcut_write(void *context, struct iova iova, const uint8_t *from, uint64_t bytes)
{
    struct physmem *mem = numa_physmem(((struct host *)context)->numa);
    const struct hpa hpa = { iova.v };
    if (!physmem_contains(mem, hpa, bytes))
        return false;
    physmem_write_marks(mem, hpa, from, bytes);
    return true;
}

/* Addresses of devices are those of memory. */
static void check_detail(struct host *host, struct config_node *group,
                         struct sim_error_list *errors)
{
    if (host_payload_by_rate(host) && host->iommu_params.enabled)
        config_mistake_at(config_get(group, "detail"), "payload", errors,
                          "\"lines\" where iommu.enabled is true", NULL);
    host->shortcut =
        (struct pcie_shortcut){ .read = shortcut_read, .write = shortcut_write, .context = host };
}

/* ---- Root complexes -------------------------------------------------------------------------- */

/* Reads `ports`; the descriptions of each socket's root ports, names owned by the configuration. */
static void read_ports(struct host *host, struct config *config, struct config_node *group,
                       struct root_port_desc desc[][ROOT_COMPLEX_PORTS_MAX], unsigned *count,
                       struct sim_error_list *errors)
{
    struct config_node *ports = config_get(group, "ports");
    if (ports != NULL && config_kind(ports) != CONFIG_LIST) {
        config_mistake(ports, errors, "a list of root ports, ( { name = ...; }, ... )", NULL);
        return;
    }
    for (unsigned i = 0; ports != NULL && i < config_count(ports); i++) {
        struct config_node *node = config_child(ports, i);
        struct port_group port = { .name = NULL };
        if (!config_read_params(config, node, "ports", port_params, &port, errors))
            continue;
        if (port.socket >= host->n_sockets) {
            config_mistake(config_get(node, "socket"), errors, "a socket of this host", NULL);
            continue;
        }
        unsigned *n = &count[port.socket];
        for (unsigned k = 0; k < *n; k++)
            if (strcmp(desc[port.socket][k].name, port.name) == 0)
                config_mistake(node, errors, "a name no other root port of its socket has", NULL);
        if (*n == ROOT_COMPLEX_PORTS_MAX) {
            config_mistake(node, errors, "at most 16 root ports a socket", NULL);
            continue;
        }
        desc[port.socket][(*n)++] =
            (struct root_port_desc){ .name = port.name,
                                     .max_generation = (uint8_t)port.generation,
                                     .max_lanes = (uint8_t)port.lanes,
                                     .stack = (uint8_t)port.stack };
    }
}

static void list_ports(struct host *host)
{
    unsigned n = 0;
    for (unsigned s = 0; s < host->n_sockets; s++)
        n += host->rc[s]->n_ports;
    host->port = sim_zalloc(n + 1, sizeof(*host->port));
    host->port_name = sim_zalloc(n + 1, sizeof(*host->port_name));
    for (unsigned s = 0; s < host->n_sockets; s++)
        for (unsigned p = 0; p < host->rc[s]->n_ports; p++) {
            struct pcie_port *port = &host->rc[s]->ports[p];
            host->port_name[host->n_ports] = text("%ss%u.%s", "", s, port->name);
            port->name = host->port_name[host->n_ports];
            host->port[host->n_ports++] = port;
        }
}

static void make_root_complexes(struct host *host, struct config *config, struct config_node *group,
                                struct sim_error_list *errors)
{
    struct root_port_desc desc[ROOT_COMPLEX_SOCKETS_MAX][ROOT_COMPLEX_PORTS_MAX];
    unsigned count[ROOT_COMPLEX_SOCKETS_MAX] = { 0 };
    size_t before = errors->n_messages;
    host->root_complexes.numa = host->numa;
    host->root_complexes.n_sockets = host->n_sockets;
    read_ports(host, config, group, desc, count, errors);
    for (unsigned s = 0; s < host->n_sockets; s++) {
        host->rc_name[s] = text("%s.s%u%s", host->name, s, "");
        host->rc_prefix[s] = text("%s.s%u.%s", host->name, s, "root_complex.");
        host->iommu_prefix[s] = text("%s.s%u.%s", host->name, s, "iommu.");
        host->rc[s] = model_new(host->sim, host->pcie, &root_complex_ops, host->rc_name[s], config,
                                config_get(group, "root_complex"), errors);
        if (errors->n_messages != before)
            return; /* said once: the sockets share the group */
        host->iommu[s] = (struct host_iommu){ .host = host };
        host->root_complexes.rc[s] = host->rc[s];
        if (host->iommu_params.enabled) {
            struct iommu_memory memory = root_complex_iommu_memory(&host->root_complexes, s);
            host->iommu[s].iommu = iommu_new(host->sim, host->rc_name[s], &host->iommu_params,
                                             &memory);
        }
        root_complex_attach(host->rc[s], &host->root_complexes, s, s * (256 / host->n_sockets),
                            desc[s], count[s], host->iommu[s].iommu);
    }
    list_ports(host);
}

/* Windows do not lie over memory, and begin where any base address register may. */
static void check_firmware(struct host *host, struct config_node *group,
                           struct sim_error_list *errors)
{
    const struct physmem *mem = numa_physmem(host->numa);
    uint64_t base = host->firmware_params.mmio_high_base_bytes;
    uint64_t memory = (uint64_t)physmem_nodes(mem) << physmem_stride_log2(mem);
    if (base < memory || base % (UINT64_C(1) << 36) != 0)
        sim_error_add(errors, config_file(group), config_line(group),
                      "%s.firmware.mmio_high_base_bytes: found %llu, expected a multiple of 64 GiB "
                      "above all memory, which ends at %llu",
                      config_path(group), (unsigned long long)base, (unsigned long long)memory);
}

static void pass_over(struct config_node *group, const char *name)
{
    struct config_node *node = config_get(group, name);
    if (node != NULL)
        config_mark_read(node);
}

struct host *host_new(struct pcie_context *pcie, const char *name,
                      const struct host_param_group *software, struct config *config,
                      struct config_node *group, struct sim_error_list *errors)
{
    struct host *host = sim_zeroed_new(sizeof(*host)); /* most of its tables stays empty */
    host->name = name;
    host->pcie = pcie;
    host->sim = pcie_context_sim(pcie);
    host->next_iova = IOVA_LOW;
    if (read_groups(host, software, config, group, errors)) {
        make_cores(host);
        check_firmware(host, group, errors);
        check_detail(host, group, errors);
        make_root_complexes(host, config, group, errors);
    } else { /* what depends on them is not looked at */
        pass_over(group, "ports");
        pass_over(group, "root_complex");
    }
    return host;
}

void host_start(struct host *host)
{
    for (unsigned s = 0; s < host->n_sockets; s++)
        host->rc[s]->ops->start(host->rc[s]);
}

void host_free(struct host *host)
{
    for (unsigned i = 0; i < host->n_domains; i++)
        iommu_domain_free(host->domain[i].domain);
    for (unsigned s = 0; s < ROOT_COMPLEX_SOCKETS_MAX; s++) {
        if (host->iommu[s].driver != NULL)
            iommu_driver_free(host->iommu[s].driver);
        if (host->rc[s] != NULL)
            model_free(host->rc[s]);
        if (host->iommu[s].iommu != NULL)
            iommu_free(host->iommu[s].iommu);
        free(host->rc_name[s]);
        free(host->rc_prefix[s]);
        free(host->iommu_prefix[s]);
    }
    for (unsigned i = 0; i < HOST_NUMA_STATS_MAX; i++)
        free(host->numa_prefix[i]);
    for (unsigned p = 0; p < host->n_ports; p++)
        free(host->port_name[p]);
    free(host->port_name);
    free(host->port);
    free(host->core);
    free(host->software_params);
    if (host->numa != NULL)
        numa_free(host->numa);
    for (unsigned i = 0; i < HOST_NUMA_GROUPS_MAX; i++)
        free(host->numa_group[i]);
    sim_zeroed_free(host, sizeof(*host));
}

/* ---- Looking at it --------------------------------------------------------------------------- */

const char *host_name(const struct host *host)
{
    return host->name;
}

bool host_iommu_enabled(const struct host *host)
{
    return host->iommu_params.enabled;
}

bool host_payload_by_rate(const struct host *host)
{
    return host->detail_params.payload == HOST_PAYLOAD_RATES;
}

const struct pcie_shortcut *host_shortcut(const struct host *host)
{
    return host_payload_by_rate(host) ? &host->shortcut : NULL;
}

struct sim *host_sim(const struct host *host)
{
    return host->sim;
}

struct numa *host_numa(struct host *host)
{
    return host->numa;
}

struct physmem *host_physmem(struct host *host)
{
    return numa_physmem(host->numa);
}

struct core *host_core(struct host *host, unsigned idx)
{
    SIM_ASSERT(idx < numa_cores(host->numa), "core %u of %u", idx, numa_cores(host->numa));
    return &host->core[idx];
}

const void *host_software_params(const struct host *host)
{
    return host->software_params;
}

struct root_complex_host *host_root_complexes(struct host *host)
{
    return &host->root_complexes;
}

struct pcie_port *host_port(struct host *host, const char *name)
{
    for (unsigned p = 0; p < host->n_ports; p++)
        if (strcmp(host->port_name[p], name) == 0)
            return host->port[p];
    return NULL;
}

const char *const *host_port_names(const struct host *host)
{
    return (const char *const *)host->port_name;
}

const struct pcie_found *host_functions(const struct host *host, unsigned *n)
{
    *n = host->n_functions;
    return host->function;
}

unsigned host_n_stats(const struct host *host)
{
    return host->n_sockets * (host->iommu_params.enabled ? 2 : 1) + numa_sockets(host->numa);
}

bool host_stats(struct host *host, unsigned index, const char **prefix,
                const struct stat_desc **table, void **state)
{
    if (index < host->n_sockets) {
        *prefix = host->rc_prefix[index];
        *table = root_complex_ops.stats;
        *state = host->rc[index]->state;
        return true;
    }
    index -= host->n_sockets;
    if (host->iommu_params.enabled) {
        if (index < host->n_sockets) {
            *prefix = host->iommu_prefix[index];
            *table = iommu_stats_table;
            *state = iommu_stats(host->iommu[index].iommu);
            return true;
        }
        index -= host->n_sockets;
    }
    if (!numa_stats(host->numa, index, prefix, table, state))
        return false;
    SIM_ASSERT(index < HOST_NUMA_STATS_MAX, "table %u of the memory system", index);
    if (host->numa_prefix[index] == NULL)
        host->numa_prefix[index] = text("%s.%.0u%s", host->name, 0, *prefix);
    *prefix = host->numa_prefix[index];
    return true;
}
