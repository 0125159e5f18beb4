/*
 * The cables of a world: a list of { from, to } with the parameters of their kind, which follows
 * from the ends. An end is "HOST.sSOCKET.PORT" (PCIe), or "DEVICE.pINDEX" with the suffix of the
 * kind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/pcie/link/port.h"
#include "models/world/registry.h"
#include "models/world/world_internal.h"

/* Propagation in copper, 5 (4.5 to 5.5) ns/m: docs/sources.md#c1, a physical constant for every
 * cable; what cables differ in is their latency_ns. */
#define CABLE_PS_PER_M 5000.0
#define ENDS_MAX       512u

/* An end of a cable. kind NULL: there is no such port. */
struct end {
    const struct cable_kind *kind;
    void *port;
};

static void list_device_ends(struct world *world, unsigned device, const char **names, unsigned *n)
{
    char index[16];

    for (unsigned k = 0; cable_registry[k] != NULL; k++) {
        const struct cable_kind *kind = cable_registry[k];
        for (unsigned p = 0;
             *n + 1 < ENDS_MAX && cable_port(kind, world->device[device], p) != NULL; p++) {
            snprintf(index, sizeof(index), ".%c%u", kind->suffix, p);
            names[(*n)++] = world_text(world, world->device_name[device], index);
        }
    }
}

static void list_ends(struct world *world, const char **names)
{
    unsigned n = 0;
    for (unsigned h = 0; h < world->n_hosts; h++) {
        const char *const *ports = host_port_names(world->host[h]);
        if (world_faulty(world, world->host_name[h]))
            continue;
        for (unsigned p = 0; ports != NULL && ports[p] != NULL && n + 1 < ENDS_MAX; p++)
            names[n++] = world_text(world, world_text(world, world->host_name[h], "."), ports[p]);
    }
    for (unsigned d = 0; d < world->n_devices; d++)
        if (!world_faulty(world, world->device_name[d]))
            list_device_ends(world, d, names, &n);
    names[n] = NULL;
}

static struct end device_end(const struct model *device, const char *port)
{
    const char suffix = *port, *digits = port + (suffix != '\0');
    const size_t n_digits = strspn(digits, "0123456789");
    const unsigned idx = (unsigned)strtoul(digits, NULL, 10);

    if (n_digits == 0 || n_digits > 6 || digits[n_digits] != '\0' ||
        (*digits == '0' && n_digits > 1))
        return (struct end){ 0 };
    for (unsigned k = 0; cable_registry[k] != NULL; k++) {
        void *found = cable_registry[k]->suffix == suffix
                          ? cable_port(cable_registry[k], device, idx)
                          : NULL;
        if (found != NULL)
            return (struct end){ cable_registry[k], found };
    }
    return (struct end){ 0 };
}

/* At a host or device of which nothing is known but that it is faulty. */
static bool is_at_faulty(const struct world *world, const char *text)
{
    const char *dot = strchr(text, '.');
    char name[128];
    if (dot == NULL || (size_t)(dot - text) >= sizeof(name))
        return false;
    snprintf(name, sizeof(name), "%.*s", (int)(dot - text), text);
    return world_faulty(world, name);
}

static struct end find_end(struct world *world, const char *text)
{
    const struct end none = { 0 };
    const char *dot = strchr(text, '.');
    if (dot == NULL || is_at_faulty(world, text))
        return none;
    const size_t n = (size_t)(dot - text);
    size_t i;
    if (sim_map_find_n(world->host_idx, text, n, &i)) {
        struct pcie_port *port = host_port(world->host[i], dot + 1);
        return port != NULL ? (struct end){ &pcie_cable, port } : none;
    }
    if (sim_map_find_n(world->device_idx, text, n, &i))
        return device_end(world->device[i], dot + 1);
    return none;
}

void *world_port(struct world *world, const struct cable_kind *kind, const char *name)
{
    const struct end end = find_end(world, name);

    return end.kind == kind ? end.port : NULL;
}

static struct end cable_end(struct world *world, struct config_node *cable, const char *key,
                            const char *const *ends, struct sim_error_list *errors)
{
    struct config_node *node = config_get(cable, key);
    if (node == NULL || config_kind(node) != CONFIG_STRING) {
        config_mistake(node != NULL ? node : cable, errors,
                       strcmp(key, "from") == 0 ? "`from`: the port where the cable begins"
                                                : "`to`: the port where the cable ends",
                       NULL);
        return (struct end){ 0 };
    }
    struct end end = find_end(world, config_string(node));
    if (end.kind == NULL && !is_at_faulty(world, config_string(node)))
        config_mistake(node, errors, "a port of a host or device", ends);
    return end;
}

struct cable_params {
    double length_m;
};
const struct setting_desc world_cable_settings[] = {
    { "from", "a port", "required", "where it begins: a port of a host or device, server.s0.rp0" },
    { "to", "a port", "required", "where it ends: a port of the same kind, nic.p0" },
    { .key = NULL },
};

const struct param_desc world_cable_params[] = {
    PARAM("length_m", PARAM_DOUBLE, struct cable_params, length_m, 0, 0, 1000, PROV_NONE, "",
          "length of the cable, 5 ns/m; 0 for a slot"),
    { .type = PARAM_END },
};

/* Reads the cable's settings: those of its kind into params, and its length. */
static bool read_settings(struct world *world, struct config_node *cable,
                          const struct cable_kind *kind, void *params, double *length_m,
                          struct sim_error_list *errors)
{
    struct cable_params length = { 0 };
    bool ok = config_read_params(world->config, cable, "cables", kind->params, params, errors);
    ok = config_read_params(world->config, cable, "cables", world_cable_params, &length, errors) &&
         ok;
    *length_m = length.length_m;
    *(sim_time *)(void *)((char *)params + kind->latency_offset) +=
        (sim_time)(length.length_m * CABLE_PS_PER_M + 0.5);
    return ok;
}

/* Both directions of a cable have statistics, named after the port that sends. */
static void add_cable(struct world *world, const struct cable_kind *kind, void *const port[2],
                      const char *const name[2], double length_m, void *object)
{
    world->cable[world->n_cables++] = (struct cable){
        .ends = { kind, { port[0], port[1] }, length_m },
        .object = object,
        .prefix = { world_text(world, name[0], ".tx."), world_text(world, name[1], ".tx.") },
    };
}

static void join(struct world *world, struct config_node *cable, const struct cable_kind *kind,
                 void *const port[2], const void *params, double length_m,
                 struct sim_error_list *errors)
{
    const char *const name[2] = { config_string(config_get(cable, "from")),
                                  config_string(config_get(cable, "to")) };
    const struct cable_plan plan = {
        .name = world_text(world, world_text(world, name[0], "-"), name[1]),
        .port = { port[0], port[1] },
        .params = params,
        .file = config_file(cable),
        .line = config_line(cable),
    };
    void *object = kind->join(&plan, errors);

    if (object == NULL)
        return;
    add_cable(world, kind, port, name, length_m, object);
    struct cable_setting setting;
    for (unsigned i = 0; kind->settled != NULL && kind->settled(port[0], i, &setting); i++)
        config_settle(world->config, cable, setting.key, setting.value, setting.why);
}

/* port: one of them is NULL if it is wrong; then the settings are only checked. */
static void build_kind(struct world *world, struct config_node *cable,
                       const struct cable_kind *kind, void *const port[2],
                       struct sim_error_list *errors)
{
    void *params = sim_zalloc(1, kind->params_bytes);
    double length_m;
    bool ok = read_settings(world, cable, kind, params, &length_m, errors);

    if (port[0] != NULL && port[1] != NULL) {
        const char *expected = kind->mismatch != NULL ? kind->mismatch(port[0], port[1]) : NULL;
        if (expected != NULL)
            config_mistake(cable, errors, expected, NULL);
        else if (ok)
            join(world, cable, kind, port, params, length_m, errors);
    }
    free(params);
}

static void report_mixed(struct config_node *cable, struct sim_error_list *errors)
{
    char text[256] = "a cable between two ports of one kind:";
    size_t at = strlen(text);

    for (unsigned k = 0; cable_registry[k] != NULL && at < sizeof(text); k++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s %s (%c0, ...)", k == 0 ? "" : ",",
                               cable_registry[k]->name, cable_registry[k]->suffix);
    config_mistake(cable, errors, text, NULL);
}

static void build_cable(struct world *world, struct config_node *cable, const char *const *ends,
                        struct sim_error_list *errors)
{
    const struct end from = cable_end(world, cable, "from", ends, errors);
    const struct end to = cable_end(world, cable, "to", ends, errors);
    const struct cable_kind *kind = from.kind != NULL ? from.kind : to.kind;

    config_allow_settings(cable, world_cable_settings);
    if (kind == NULL) {
        config_mark_read(cable); /* of which kind the settings are is not known */
    } else if (from.kind != NULL && to.kind != NULL && from.kind != to.kind) {
        report_mixed(cable, errors);
        config_mark_read(cable);
    } else {
        build_kind(world, cable, kind, (void *[2]){ from.port, to.port }, errors);
    }
}

void world_build_cables(struct world *world, struct config_node *cables,
                        struct sim_error_list *errors)
{
    const char *ends[ENDS_MAX];
    if (cables == NULL)
        return;
    list_ends(world, ends);
    world->cable = sim_zalloc(config_count(cables), sizeof(*world->cable));
    for (unsigned i = 0; i < config_count(cables); i++) {
        struct config_node *cable = config_child(cables, i);
        if (config_kind(cable) == CONFIG_GROUP)
            build_cable(world, cable, ends, errors);
        else
            config_mistake(cable, errors, "a group { from, to }", NULL);
    }
}

bool world_cable_at(const struct world *world, unsigned i, struct world_cable *cable)
{
    if (i >= world->n_cables)
        return false;
    *cable = world->cable[i].ends;
    return true;
}
