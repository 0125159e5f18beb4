/*
 * From the scenario's groups to a running world.
 *
 * `hosts` is a group of named hosts, `devices` a group of named devices (each with its `type`),
 * `cables` a list: world_cables.c.
 */
#include <stdlib.h>
#include <string.h>

#include "models/os/os.h"
#include "models/pcie/link/tlp_trace.h"
#include "models/pcie/ntb/fabric_domain.h"
#include "models/world/registry.h"
#include "models/world/world_internal.h"
#include "sim/engine/steps.h"

char *world_text(struct world *world, const char *a, const char *b)
{
    size_t bytes = strlen(a) + strlen(b) + 1;
    char *text = sim_zalloc(1, bytes);
    snprintf(text, bytes, "%s%s", a, b);
    if (world->n_texts == world->max_texts) {
        world->max_texts = 2 * world->max_texts + 16;
        world->text = sim_grow(world->text, world->max_texts, sizeof(*world->text));
    }
    world->text[world->n_texts++] = text;
    return text;
}

/* ---- Hosts and devices ----------------------------------------------------------------------- */

/* --set a.b=c makes the groups that it names: of a host or device whose name is misspelt. */
static bool made_by_set(const struct config_node *group)
{
    return config_line(group) == 0;
}

static void report_made(struct config_node *parent, struct config_node *group, const char *what,
                        struct sim_error_list *errors)
{
    const char *names[64];
    unsigned n = 0;
    for (unsigned i = 0; i < config_count(parent) && n < 63; i++)
        if (!made_by_set(config_child(parent, i)))
            names[n++] = config_name(config_child(parent, i));
    names[n] = NULL;
    config_no_such(group, errors, what, names);
    config_mark_read(group);
}

/* There is a message about the host or device of this name. */
static void add_faulty(struct world *world, const char *name)
{
    sim_map_add(world->faulty, name, 0);
}

static void add_roots(struct world *world, unsigned host)
{
    const struct root_complex_host *roots = host_root_complexes(world->host[host]);
    for (unsigned s = 0; s < roots->n_sockets; s++)
        if (roots->rc[s] != NULL)
            sim_map_add_address(world->root_idx, roots->rc[s], host);
}

static void build_hosts(struct world *world, struct config_node *hosts,
                        struct sim_error_list *errors)
{
    static const char *const parts[] = { "cpu", "core", "cache", "dram", NULL };
    if (hosts != NULL && config_report_included(hosts, parts, 2, errors)) {
        world->any_faulty = true;
        hosts = NULL;
    }
    unsigned n = hosts != NULL ? config_count(hosts) : 0;
    world->host = sim_zalloc(n, sizeof(*world->host));
    world->host_name = sim_zalloc(n + 1, sizeof(*world->host_name));
    for (unsigned i = 0; i < n; i++) {
        const char *name = config_name(config_child(hosts, i));
        struct config_node *group = config_get(hosts, name);
        struct sim_error_list own = { 0 };
        if (config_kind(group) != CONFIG_GROUP) {
            config_mistake(group, errors, "a group that describes a host", NULL);
            add_faulty(world, name);
            continue;
        }
        if (made_by_set(group)) {
            report_made(hosts, group, "host", errors);
            continue;
        }
        sim_map_add(world->host_idx, name, world->n_hosts);
        world->host_name[world->n_hosts] = name;
        world->host[world->n_hosts] = host_new(world->pcie, name, &os_param_group, world->config,
                                               group, &own);
        add_roots(world, world->n_hosts++);
        if (sim_error_move(errors, &own))
            add_faulty(world, name);
    }
}

/* The section nudma_models, by the linker; NULL if no object has one. */
extern const struct model_ops *const __start_nudma_models[] __attribute__((weak));
extern const struct model_ops *const __stop_nudma_models[] __attribute__((weak));

const struct model_ops *model_at(unsigned index)
{
    unsigned n = 0;
    while (model_registry[n] != NULL && n < index)
        n++;
    if (model_registry[n] != NULL)
        return model_registry[n];
    return index - n < (size_t)(__stop_nudma_models - __start_nudma_models)
               ? __start_nudma_models[index - n]
               : NULL;
}

const struct model_ops *model_find(const char *type)
{
    const struct model_ops *ops;
    for (unsigned i = 0; (ops = model_at(i)) != NULL; i++) {
        if (strcmp(ops->type, type) == 0)
            return ops;
    }
    return NULL;
}

static const struct model_ops *device_ops(struct config_node *group, struct sim_error_list *errors)
{
    const char *names[64] = { NULL };
    struct config_node *type = config_get(group, "type");
    for (unsigned i = 0; i < 63 && model_at(i) != NULL; i++)
        names[i] = model_at(i)->type;
    if (type == NULL || config_kind(type) != CONFIG_STRING) {
        config_mistake(type != NULL ? type : group, errors, "the type of the device", names);
        config_mark_read(group);
        return NULL;
    }
    const struct model_ops *ops = model_find(config_string(type));
    if (ops == NULL) {
        config_mistake(type, errors, "a device model", names);
        config_mark_read(group);
    }
    return ops;
}

static void integrate_ports(struct model *rc, struct model *device, struct config_node *at,
                            struct sim_error_list *errors)
{
    for (uint32_t p = 0; p == 0 || p < device->n_ports; p++) {
        const char *why = NULL;
        if (p >= device->n_ports || device->ports[p].function == NULL)
            why = "only endpoints can be integrated, and this is none";
        else if (!root_complex_integrate(rc, &device->ports[p]))
            why = "this root complex has as many integrated endpoints as it can have";
        if (why != NULL) {
            sim_error_add(errors, config_file(at), config_line(at), "%s: %s (%s is of type %s)",
                          config_path(at), why, device->name, device->ops->type);
            return;
        }
    }
}

/* "server.s0" where a mistake in the host leaves open which sockets it has. */
static bool is_of_faulty_host(const struct world *world, struct config_node *at)
{
    const char *text = config_kind(at) == CONFIG_STRING ? config_string(at) : "";
    const char *dot = strrchr(text, '.');
    char host[64];
    if (dot == NULL || (size_t)(dot - text) >= sizeof(host))
        return false;
    snprintf(host, sizeof(host), "%.*s", (int)(dot - text), text);
    return world_faulty(world, host);
}

static void list_sockets(struct world *world, const char **names, unsigned max)
{
    unsigned n = 0;
    for (unsigned h = 0; h < world->n_hosts && n < max; h++) {
        char socket[16];
        for (unsigned s = 0; s < host_root_complexes(world->host[h])->n_sockets && n < max; s++) {
            snprintf(socket, sizeof(socket), ".s%u", s);
            names[n++] = world_text(world, world->host_name[h], socket);
        }
    }
    names[n] = NULL;
}

/* The host of "server.s1" with *socket 1, or NULL. */
static struct host *host_of_socket(const struct world *world, struct config_node *at,
                                   unsigned *socket)
{
    const char *text = config_kind(at) == CONFIG_STRING ? config_string(at) : "";
    const char *dot = strrchr(text, '.');
    size_t h;
    if (dot == NULL || !sim_map_find_n(world->host_idx, text, (size_t)(dot - text), &h))
        return NULL;
    for (*socket = 0; *socket < host_root_complexes(world->host[h])->n_sockets; ++*socket) {
        char name[16];
        snprintf(name, sizeof(name), ".s%u", *socket);
        if (strcmp(dot, name) == 0)
            return world->host[h];
    }
    return NULL;
}

const struct setting_desc world_device_settings[] = {
    { "type", "a device model", "required", "what it is a model of" },
    { "integrated", "a socket", "none",
      "endpoints: part of this socket's root complex, server.s0, and plugged in with no cable" },
    { .key = NULL },
};

/* `integrated` names a socket, "server.s0": the endpoint is part of its root complex. */
static void integrate(struct world *world, struct model *device, struct config_node *at,
                      struct sim_error_list *errors)
{
    unsigned socket;
    struct host *host = host_of_socket(world, at, &socket);
    const char *names[64];
    if (is_of_faulty_host(world, at))
        return;
    if (host != NULL) {
        integrate_ports(host_root_complexes(host)->rc[socket], device, at, errors);
        return;
    }
    list_sockets(world, names, 63);
    config_mistake(at, errors, "a socket of a host", names);
}

static void build_devices(struct world *world, struct config_node *devices,
                          struct sim_error_list *errors)
{
    static const char *const parts[] = { "type", NULL };
    if (devices != NULL && config_report_included(devices, parts, 1, errors)) {
        world->any_faulty = true;
        devices = NULL;
    }
    unsigned n = devices != NULL ? config_count(devices) : 0;
    world->device = sim_zalloc(n, sizeof(*world->device));
    world->device_name = sim_zalloc(n + 1, sizeof(*world->device_name));
    world->device_prefix = sim_zalloc(n, sizeof(*world->device_prefix));
    for (unsigned i = 0; i < n; i++) {
        const char *name = config_name(config_child(devices, i));
        struct config_node *group = config_get(devices, name);
        struct sim_error_list own = { 0 };
        if (config_kind(group) != CONFIG_GROUP) {
            config_mistake(group, errors, "a group that describes a device", NULL);
            add_faulty(world, name);
            continue;
        }
        if (made_by_set(group)) {
            report_made(devices, group, "device", errors);
            continue;
        }
        const struct model_ops *ops = device_ops(group, errors);
        if (ops == NULL) {
            add_faulty(world, name);
            continue;
        }
        config_allow_settings(group, world_device_settings);
        sim_map_add(world->device_idx, name, world->n_devices);
        world->device_name[world->n_devices] = name;
        world->device_prefix[world->n_devices] = world_text(world, name, ".");
        world->device[world->n_devices++] = model_new(pcie_context_sim(world->pcie), world->pcie,
                                                      ops, name, world->config, group, &own);
        if (own.n_messages == 0 && config_get(group, "integrated") != NULL)
            integrate(world, world->device[world->n_devices - 1], config_get(group, "integrated"),
                      &own);
        if (sim_error_move(errors, &own))
            add_faulty(world, name);
    }
}

/* Devices that belong to one host whose payload goes by rate. */
static void take_shortcuts(struct world *world)
{
    for (unsigned d = 0; d < world->n_devices; d++) {
        struct model *device = world->device[d];
        struct host *host = world_host_of(world, device);
        for (uint32_t p = 1; p < device->n_ports && host != NULL; p++)
            if (device->ports[p].fabric || (pcie_port_connected(&device->ports[p]) &&
                                            world_host_of_port(world, device, p) != host))
                host = NULL;
        device->shortcut = host != NULL && !device->ops->forwards ? host_shortcut(host) : NULL;
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

static struct config_node *named_group(struct world *world, const char *name, enum config_kind kind,
                                       struct sim_error_list *errors)
{
    struct config_node *node = config_get(config_root(world->config), name);
    if (node != NULL && config_kind(node) != kind) {
        config_mistake(node, errors, kind == CONFIG_GROUP ? "a group" : "a list", NULL);
        world->any_faulty |= kind == CONFIG_GROUP;
        return NULL;
    }
    return node;
}

/* What is registered was checked when it was written, or the fault is ours. */
static void check_registries(void)
{
    const char *why = NULL;

    for (unsigned i = 0; model_at(i) != NULL; i++) {
        SIM_ASSERT(model_ops_valid(model_at(i), &why), "model %s: %s", model_at(i)->type, why);
        SIM_ASSERT(model_find(model_at(i)->type) == model_at(i), "two models of type %s",
                   model_at(i)->type);
    }
    for (unsigned i = 0; cable_registry[i] != NULL; i++)
        SIM_ASSERT(cable_kind_valid(cable_registry[i], &why), "kind of cable %s: %s",
                   cable_registry[i]->name, why);
}

/* A poll hits a core's nearest cache, and sends nothing. */
static uint64_t work(struct sim_watch *watch)
{
    struct world *world = SIM_CONTAINER(watch, struct world, watch);
    const struct stat_desc *table;
    const char *prefix;
    uint64_t sum = 0;
    void *state;

    for (unsigned i = 0; world_stats(world, i, &prefix, &table, &state); i++)
        sum += stat_sum(table, state);
    for (unsigned h = 0; h < world->n_hosts; h++)
        for (unsigned c = 0; c < numa_cores(host_numa(world->host[h])); c++)
            sum += numa_private_count(host_numa(world->host[h]), c).l2_accesses;
    return sum;
}

struct world *world_new(struct config *config, uint64_t seed, struct sim_error_list *errors)
{
    struct world *world = sim_zalloc(1, sizeof(*world));
    struct sim_error_list own = { 0 };

    check_registries();
    world->config = config;
    world->sim = sim_new(seed);
    world->pcie = pcie_context_new(world->sim);
    world->host_idx = sim_map_new();
    world->device_idx = sim_map_new();
    world->root_idx = sim_map_new();
    world->faulty = sim_map_new();
    build_hosts(world, named_group(world, "hosts", CONFIG_GROUP, &own), &own);
    build_devices(world, named_group(world, "devices", CONFIG_GROUP, &own), &own);
    world_build_cables(world, named_group(world, "cables", CONFIG_LIST, &own), &own);
    if (own.n_messages == 0)
        fabric_domain_setup(world->device, world->n_devices, &own);
    world->unsound = sim_error_move(errors, &own);
    if (!world->unsound)
        take_shortcuts(world);
    for (unsigned h = 0; h < world->n_hosts && !world->unsound; h++)
        host_start(world->host[h]);
    for (unsigned d = 0; d < world->n_devices && !world->unsound; d++)
        if (world->device[d]->ops->start != NULL)
            world->device[d]->ops->start(world->device[d]);
    world->watch.work = work;
    sim_watch_add(world->sim, &world->watch);
    return world;
}

void world_free(struct world *world)
{
    sim_watch_remove(world->sim, &world->watch);
    for (unsigned i = 0; i < world->n_cables; i++)
        if (world->cable[i].ends.kind->free != NULL)
            world->cable[i].ends.kind->free(world->cable[i].object);
    for (unsigned d = 0; d < world->n_devices; d++)
        model_free(world->device[d]);
    for (unsigned h = 0; h < world->n_hosts; h++)
        host_free(world->host[h]);
    pcie_context_free(world->pcie);
    sim_free(world->sim);
    for (unsigned i = 0; i < world->n_texts; i++)
        free(world->text[i]);
    free(world->text);
    sim_map_free(world->host_idx);
    sim_map_free(world->device_idx);
    sim_map_free(world->root_idx);
    sim_map_free(world->faulty);
    free(world->host);
    free(world->host_name);
    free(world->device);
    free(world->device_name);
    free(world->device_prefix);
    free(world->cable);
    free(world);
}

struct sim *world_sim(struct world *world)
{
    return world->sim;
}

struct pcie_context *world_pcie(struct world *world)
{
    return world->pcie;
}

bool world_sound(const struct world *world)
{
    return !world->unsound;
}

bool world_faulty(const struct world *world, const char *name)
{
    size_t any;
    return world->any_faulty || sim_map_find(world->faulty, name, &any);
}

struct host *world_host(struct world *world, const char *name)
{
    size_t h;
    return sim_map_find(world->host_idx, name, &h) && !world_faulty(world, name) ? world->host[h]
                                                                                 : NULL;
}

struct model *world_device(struct world *world, const char *name)
{
    size_t d;
    return sim_map_find(world->device_idx, name, &d) && !world_faulty(world, name)
               ? world->device[d]
               : NULL;
}

struct host *world_host_of_port(struct world *world, const struct model *device, unsigned port)
{
    /* upstream is port 0 of switches; a tree has at most 256 buses */
    for (unsigned depth = 0; depth < 256 && port < device->n_ports && !device->ports[port].fabric &&
                             pcie_port_connected(&device->ports[port]);
         depth++) {
        size_t h;
        device = pcie_port_peer(&device->ports[port])->model;
        port = 0;
        if (sim_map_find_address(world->root_idx, device, &h))
            return world->host[h];
    }
    return NULL;
}

struct host *world_host_of(struct world *world, const struct model *device)
{
    return world_host_of_port(world, device, 0);
}

bool world_function_id(const struct model *device, unsigned port, uint16_t *id)
{
    if (port >= device->n_ports || device->ports[port].fabric ||
        !pcie_port_connected(&device->ports[port]))
        return false;
    const struct cfg_space *bridge = pcie_port_peer(&device->ports[port])->bridge;
    if (device->ports[port].integrated) {
        *id = pcie_port_peer(&device->ports[port])->integrated_id;
        return true;
    }
    if (bridge == NULL)
        return false;
    *id = (uint16_t)(cfg_bridge_secondary(bridge) << 8);
    return cfg_bridge_secondary(bridge) != 0;
}

struct config *world_config(const struct world *world)
{
    return world->config;
}

const char *const *world_host_names(const struct world *world)
{
    return world->host_name;
}

const char *const *world_device_names(const struct world *world)
{
    return world->device_name;
}

unsigned world_n_hosts(const struct world *world)
{
    return world->n_hosts;
}

struct host *world_host_at(struct world *world, unsigned idx)
{
    return world->host[idx];
}

static bool all_booted(struct world *world)
{
    const char *why;
    for (unsigned h = 0; h < world->n_hosts; h++)
        if (!host_booted(world->host[h], &why))
            return false;
    return true;
}

bool world_boot(struct world *world, const volatile int *interrupt)
{
    const char *why;
    for (unsigned h = 0; h < world->n_hosts; h++)
        host_boot(world->host[h]);
    while (!all_booted(world) && sim_error(world->sim) == NULL &&
           sim_events_pending(world->sim) != 0 && (interrupt == NULL || *interrupt == 0))
        sim_run(world->sim, SIM_TIME_MAX, interrupt); /* each boot task stops it at its end */
    for (unsigned h = 0; h < world->n_hosts; h++)
        if (sim_error(world->sim) == NULL && !host_booted(world->host[h], &why))
            sim_fail(world->sim, "host %s did not boot: %s", world->host_name[h],
                     why != NULL ? why : "interrupted");
    return sim_error(world->sim) == NULL;
}

/* The index-th table of all hosts. Whoever asks goes through all, so it goes on where it was. */
static bool host_table(struct world *world, unsigned index, const char **prefix,
                       const struct stat_desc **table, void **state)
{
    if (index < world->stats_at.first || index == 0)
        world->stats_at.host = world->stats_at.first = 0;
    while (world->stats_at.host < world->n_hosts) {
        struct host *host = world->host[world->stats_at.host];
        if (host_stats(host, index - world->stats_at.first, prefix, table, state))
            return true;
        world->stats_at.host++;
        world->stats_at.first += host_n_stats(host);
    }
    world->stats_at.host = world->stats_at.first = 0;
    return false;
}

bool world_stats(struct world *world, unsigned index, const char **prefix,
                 const struct stat_desc **table, void **state)
{
    if (index < world->n_devices) {
        if (world->device[index]->ops->settle != NULL)
            world->device[index]->ops->settle(world->device[index]);
        *prefix = world->device_prefix[index];
        *table = world->device[index]->ops->stats;
        *state = world->device[index]->state;
        return true;
    }
    index -= world->n_devices;
    if (index < 2 * world->n_cables) {
        const struct cable *cable = &world->cable[index / 2];
        const struct cable_kind *kind = cable->ends.kind;
        *prefix = cable->prefix[index % 2];
        *table = kind->stats;
        *state = kind->stats != NULL ? kind->port_stats(cable->ends.port[index % 2]) : NULL;
        return true;
    }
    return host_table(world, index - 2 * world->n_cables, prefix, table, state);
}

void world_stats_clear(struct world *world)
{
    const char *prefix;
    const struct stat_desc *table;
    void *state;
    for (unsigned i = 0; world_stats(world, i, &prefix, &table, &state); i++)
        if (table != NULL)
            stat_clear(table, state);
    if (world->trace != NULL)
        tlp_trace_arm(world->trace);
    if (sim_steps(world->sim) != NULL)
        sim_steps(world->sim)->armed = true;
    if (world->measurement_begins != NULL)
        world->measurement_begins(world->measurement_arg, sim_now(world->sim));
}

void world_at_measurement(struct world *world, void (*begins)(void *arg, sim_time now_ps),
                          void *arg)
{
    world->measurement_begins = begins;
    world->measurement_arg = arg;
}

void world_trace(struct world *world, struct stamp_trace *trace)
{
    world->trace = trace;
    for (unsigned i = 0; i < world->n_devices; i++)
        if (trace->device == NULL || trace->device == world->device[i])
            world->device[i]->trace = trace;
}

/* The connected ports of that kind of cable. */
static unsigned list_ports(const struct world *world, const struct cable_kind *kind, void **ports)
{
    unsigned n = 0;

    for (unsigned i = 0; i < world->n_cables; i++) {
        const struct world_cable *cable = &world->cable[i].ends;
        if (cable->kind == kind) {
            ports[n++] = cable->port[0];
            ports[n++] = cable->port[1];
        }
    }
    return n;
}

bool world_check_idle(struct world *world)
{
    void **ports = sim_zalloc(2 * (size_t)world->n_cables, sizeof(*ports));
    bool idle = pcie_context_check_idle(world->pcie);

    for (unsigned k = 0; idle && cable_registry[k] != NULL; k++) {
        const struct cable_kind *kind = cable_registry[k];
        if (kind->check_idle != NULL)
            idle = kind->check_idle(world->sim, ports, list_ports(world, kind, ports));
    }
    free(ports);
    return idle;
}
