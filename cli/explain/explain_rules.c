/* Which settings make which resource larger. */
#include <string.h>

#include "cli/explain/explain.h"
#include "models/pcie/link/port.h"
#include "models/world/world.h"

enum how {
    UP,     /* twice as much */
    UP_FAR, /* 16 times: of what holds working sets */
    DOWN,   /* half the time */
    ON,     /* false to true */
};

/* The first rule whose path fits a setting says what it belongs to; "*" of hosts, devices and
 * programs is its owner's name. */
struct rule {
    const char *path;
    enum how how;
    enum explain_kind kind;
    const char *name; /* %s: the owner */
};

static const struct rule rules[] = {
    { "hosts.*.cpu.clock_ghz", UP, EXPLAIN_LIMIT, "cores of %s (clock)" },
    { "hosts.*.core.line_fill_buffers", UP, EXPLAIN_LIMIT,
      "misses in flight of a core of %s (fill buffers, superqueue)" },
    { "hosts.*.core.superqueue_entries", UP, EXPLAIN_LIMIT,
      "misses in flight of a core of %s (fill buffers, superqueue)" },
    { "hosts.*.core.store_buffer_entries", UP, EXPLAIN_LIMIT, "store buffer of a core of %s" },
    { "hosts.*.cache.ddio_ways", UP, EXPLAIN_LIMIT, "DDIO ways of %s" },
    { "hosts.*.cache.l2_size", UP, EXPLAIN_LIMIT, "L2 of %s" },
    { "hosts.*.cache.prefetch_in_flight", UP, EXPLAIN_LIMIT, "L2 prefetcher of %s" },
    { "hosts.*.cache.llc_size", UP, EXPLAIN_LIMIT, "last-level cache of %s" },
    { "hosts.*.cache.llc_request_ns", DOWN, EXPLAIN_TIME, "way to the LLC of %s" },
    { "hosts.*.cache.llc_return_ns", DOWN, EXPLAIN_TIME, "way to the LLC of %s" },
    { "hosts.*.dram.channels", UP, EXPLAIN_LIMIT, "DRAM channels of %s" },
    { "hosts.*.dram.banks", UP, EXPLAIN_LIMIT, "DRAM banks of %s" },
    { "hosts.*.dram.controller_ns", DOWN, EXPLAIN_TIME, "latency of DRAM of %s" },
    { "hosts.*.dram.trcd_ns", DOWN, EXPLAIN_TIME, "latency of DRAM of %s" },
    { "hosts.*.dram.tcl_ns", DOWN, EXPLAIN_TIME, "latency of DRAM of %s" },
    { "hosts.*.dram.trp_ns", DOWN, EXPLAIN_TIME, "latency of DRAM of %s" },
    { "hosts.*.interconnect.rate_gt_s", UP, EXPLAIN_LIMIT, "interconnect between sockets of %s" },
    { "hosts.*.interconnect.bus_gbyte_s", UP, EXPLAIN_LIMIT, "front-side bus of %s" },
    { "hosts.*.interconnect.bus_address_ns", DOWN, EXPLAIN_LIMIT, "front-side bus of %s" },
    { "hosts.*.interconnect.one_way_ns", DOWN, EXPLAIN_TIME, "latency between sockets of %s" },
    { "hosts.*.root_complex.*_credits", UP, EXPLAIN_LIMIT, "receive credits of root ports of %s" },
    { "hosts.*.root_complex.line_interval_ns", DOWN, EXPLAIN_LIMIT,
      "line rate of the root complex of %s" },
    { "hosts.*.root_complex.write_lines", UP, EXPLAIN_LIMIT,
      "lines of writes that a stack of %s has under way" },
    { "hosts.*.root_complex.read_lines", UP, EXPLAIN_LIMIT,
      "lines of reads that a stack of %s has under way" },
    { "hosts.*.root_complex.inbound_ns", DOWN, EXPLAIN_TIME, "latency of the root complex of %s" },
    { "hosts.*.root_complex.outbound_ns", DOWN, EXPLAIN_TIME, "latency of the root complex of %s" },
    { "hosts.*.root_complex.p2p_reads_max", UP, EXPLAIN_LIMIT,
      "reads between peers that the root complex of %s has in flight" },
    { "hosts.*.root_complex.p2p_line_interval_ns", DOWN, EXPLAIN_LIMIT,
      "writes between peers through the root complex of %s" },
    { "hosts.*.root_complex.p2p_ns", DOWN, EXPLAIN_TIME,
      "latency between peers through the root complex of %s" },
    { "hosts.*.iommu.iotlb_entries", UP_FAR, EXPLAIN_LIMIT, "IOTLB of %s" },
    { "hosts.*.iommu.walkers", UP, EXPLAIN_LIMIT, "page walkers of the IOMMU of %s" },
    { "hosts.*.iommu.walk_interval_ns", DOWN, EXPLAIN_LIMIT,
      "rate of page walks of the IOMMU of %s" },
    { "hosts.*.iommu.walk_fixed_ns", DOWN, EXPLAIN_TIME, "page walks of the IOMMU of %s" },
    { "devices.*.extended_tags", ON, EXPLAIN_LIMIT, "tags of %s" },
    { "devices.*.read_requests_max", UP, EXPLAIN_LIMIT, "read requests in flight of %s" },
    { "devices.*.reads_in_flight", UP, EXPLAIN_LIMIT, "reads in flight of the engine of %s" },
    { "devices.*.writes_in_flight", UP, EXPLAIN_LIMIT, "writes in flight of the engine of %s" },
    { "devices.*.dma_reads_in_flight", UP, EXPLAIN_LIMIT,
      "reads in flight of the bridge's engine, %s" },
    { "devices.*.dma_request_bytes", UP, EXPLAIN_LIMIT, "request size of the bridge's engine, %s" },
    { "devices.*.read_buffers", UP, EXPLAIN_LIMIT, "read buffers of %s" },
    { "devices.*.descriptors_ahead", UP, EXPLAIN_LIMIT, "descriptors that %s fetches ahead" },
    { "devices.*.engine_interval_ns", DOWN, EXPLAIN_LIMIT, "copy rate of the engine of %s" },
    { "devices.*.descriptor_interval_ns", DOWN, EXPLAIN_LIMIT, "descriptor rate of %s" },
    { "devices.*.read_interval_ns", DOWN, EXPLAIN_LIMIT, "issue rate of %s" },
    { "devices.*.descriptor_ns", DOWN, EXPLAIN_LIMIT, "local memory of %s" },
    { "devices.*.word_ns", DOWN, EXPLAIN_LIMIT, "local memory of %s" },
    { "devices.*.line_ns", DOWN, EXPLAIN_LIMIT, "local memory of %s" },
    { "devices.*.bank_word_ns", DOWN, EXPLAIN_LIMIT, "local memory of %s" },
    { "devices.*.remainder_ns", DOWN, EXPLAIN_LIMIT, "local memory of %s" },
    { "devices.*.posted_data_credits", UP, EXPLAIN_LIMIT, "receive credits of %s" },
    { "devices.*.completion_data_credits", UP, EXPLAIN_LIMIT, "receive credits of %s" },
    { "devices.*_credits", UP, EXPLAIN_LIMIT, "receive credits of %s" },
    { "devices.*.tx_queue_tlps", UP, EXPLAIN_LIMIT, "transmit queue of %s" },
    { "devices.*.command_interval_ns", DOWN, EXPLAIN_LIMIT, "command rate of drive %s" },
    { "devices.*.commands_max", UP, EXPLAIN_LIMIT, "commands in flight of drive %s" },
    { "devices.*.fetch_burst", UP, EXPLAIN_LIMIT, "command fetch of drive %s" },
    { "devices.*.channel_gbyte_s", UP, EXPLAIN_LIMIT, "media of drive %s" },
    { "devices.*.read_gbyte_s", UP, EXPLAIN_LIMIT, "media of drive %s" },
    { "devices.*.write_gbyte_s", UP, EXPLAIN_LIMIT, "media of drive %s" },
    { "devices.*.dies", UP, EXPLAIN_LIMIT, "media of drive %s" },
    { "devices.*.read_latency_ns", DOWN, EXPLAIN_TIME, "media latency of drive %s" },
    { "devices.*.write_latency_ns", DOWN, EXPLAIN_TIME, "media latency of drive %s" },
    { "devices.*.die_read_ns", DOWN, EXPLAIN_TIME, "media latency of drive %s" },
    { "devices.*.die_write_ns", DOWN, EXPLAIN_TIME, "media latency of drive %s" },
    { "devices.*.rate_gbit_s", UP, EXPLAIN_LIMIT, "network" },
    { "cables.*.rate_gbit_s", UP, EXPLAIN_LIMIT, "network" },
    { "devices.*.rx_buffer_bytes", UP, EXPLAIN_LIMIT, "packet buffers of %s" },
    { "devices.*.tx_buffer_bytes", UP, EXPLAIN_LIMIT, "packet buffers of %s" },
    { "devices.*.wqe_prefetch_blocks", UP, EXPLAIN_LIMIT, "descriptors that %s fetches ahead" },
    { "devices.*.rq_prefetch_wqes", UP, EXPLAIN_LIMIT, "descriptors that %s fetches ahead" },
    { "devices.*.packet_interval_ns", DOWN, EXPLAIN_LIMIT, "packet rate of %s" },
    { "devices.*.transmit_latency_ns", DOWN, EXPLAIN_TIME, "latency of %s" },
    { "devices.*.receive_latency_ns", DOWN, EXPLAIN_TIME, "latency of %s" },
    { "devices.*.firmware_*_ns", DOWN, EXPLAIN_LIMIT, "firmware of %s" },
    { "devices.*.memory_gbyte_s", UP, EXPLAIN_LIMIT, "memory of %s" },
    { "devices.*.inbound_*_gbyte_s", UP, EXPLAIN_LIMIT, "access of peers to the memory of %s" },
    { "devices.*.inbound_*_latency_ns", DOWN, EXPLAIN_TIME,
      "latency of the memory of %s for peers" },
    { "devices.*.command_*_ns", DOWN, EXPLAIN_TIME, "latency of %s" },
    { "devices.*.bulk_*_ns", DOWN, EXPLAIN_TIME, "latency of %s" },
    { "devices.*.latency_ns", DOWN, EXPLAIN_TIME, "latency of %s" },
    { "workload.queue_depth", UP, EXPLAIN_LOAD, "operations that the workload has under way" },
    { "workload.gap_ns", DOWN, EXPLAIN_LOAD, "pause of the workload between operations" },
    { "workload.cores", UP, EXPLAIN_LOAD, "cores that the workload uses" },
    { "workload.window", UP, EXPLAIN_LOAD, "operations that the workload has under way" },
    { "programs.*.queue_depth", UP, EXPLAIN_LOAD, "operations that %s has under way" },
    { "programs.*.pairs", UP, EXPLAIN_LOAD, "threads of %s" },
};

const char *explain_rule_path(size_t index)
{
    return index < SIM_N_ELEMENTS(rules) ? rules[index].path : NULL;
}

/* ---- Resources from settings ----------------------------------------------------------------- */

struct collector {
    struct config *config;
    GPtrArray *resources;
    unsigned steps;
    GHashTable *values; /* path -> text, of all settings */
    GPtrArray *paths;   /* in their order */
    GPtrArray *ended;   /* texts of what has no more; NULL: nobody asks */
};

void explain_resource_free(gpointer pointer)
{
    struct explain_resource *resource = pointer;
    for (guint i = 0; i < resource->change->len; i++)
        g_free(g_array_index(resource->change, struct explain_change, i).path);
    g_array_free(resource->change, TRUE);
    if (resource->parts != NULL)
        g_ptr_array_free(resource->parts, TRUE);
    g_free(resource->name);
    g_free(resource->owner);
    g_free(resource->root);
    g_free(resource);
}

static struct explain_resource *resource_new(enum explain_kind kind, const char *name,
                                             const char *owner)
{
    struct explain_resource *resource = g_new0(struct explain_resource, 1);
    *resource = (struct explain_resource){
        .kind = kind,
        .name = g_strdup(name),
        .owner = g_strdup(owner),
        .change = g_array_new(FALSE, FALSE, sizeof(struct explain_change)),
    };
    return resource;
}

static struct explain_resource *resource_named(struct collector *c, enum explain_kind kind,
                                               const char *name, const char *owner)
{
    for (guint i = 0; i < c->resources->len; i++) {
        struct explain_resource *resource = c->resources->pdata[i];
        if (strcmp(resource->name, name) == 0)
            return resource;
    }
    struct explain_resource *resource = resource_new(kind, name, owner);
    g_ptr_array_add(c->resources, resource);
    return resource;
}

static void add_change(struct explain_resource *resource, const char *path, double from, double to,
                       bool is_switch)
{
    const struct explain_change change = { g_strdup(path), from, to, is_switch, false };
    g_array_append_val(resource->change, change);
}

/* "server" of "hosts.server.dram.channels" */
static char *owner_of(const char *path)
{
    const char *begin = strchr(path, '.');
    return begin != NULL ? g_strndup(begin + 1, strcspn(begin + 1, ".")) : g_strdup("");
}

/* As far as its range goes, at least a part of a step; a number that was doubled stays a power of
 * two if it was one. *ends: the range ends before all steps are done. */
static double changed(const struct rule *rule, const struct param_desc *desc, double from,
                      unsigned steps, bool *ends)
{
    const unsigned doublings = steps * (rule->how == UP_FAR ? 4 : 1);
    const bool is_count = desc->type == PARAM_U32 || desc->type == PARAM_U64 ||
                          desc->type == PARAM_BYTES;
    double to = from;
    *ends = false;
    for (unsigned i = 0; i < doublings && rule->how != ON; i++) {
        const double next = rule->how == DOWN ? to / 2 : to * 2;
        *ends = next > desc->hi || next < desc->lo;
        if (*ends && (i == 0 || !is_count))
            to = rule->how == DOWN ? desc->lo : desc->hi;
        if (*ends)
            break;
        to = next;
    }
    return rule->how == ON ? 1.0 : to;
}

static void apply_rule(struct collector *c, const struct rule *rule, const char *path,
                       const char *text)
{
    const struct param_desc *desc = config_param_desc(c->config, path);
    const bool is_switch = strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
    if (desc == NULL || (rule->how == ON) != is_switch)
        return;
    const double from = is_switch ? strcmp(text, "true") == 0 : g_ascii_strtod(text, NULL);
    bool ends;
    const double to = changed(rule, desc, from, c->steps, &ends);
    if (to == from && ends && from > 0.0 && c->ended != NULL)
        g_ptr_array_add(c->ended, g_strdup_printf("%s = %s", path, text));
    if (to == from || (!is_switch && !(from > 0.0)))
        return;
    g_autofree char *owner = owner_of(path);
    g_auto(GStrv) around = g_strsplit(rule->name, "%s", 2);
    g_autofree char *name = g_strjoinv(owner, around);
    g_autofree char *group = g_strndup(path, (gsize)(strchr(path, '.') - path) + 1 + strlen(owner));
    struct explain_resource *resource = resource_named(c, rule->kind, name, group);
    add_change(resource, path, from, to, is_switch);
    g_array_index(resource->change, struct explain_change, resource->change->len - 1).ends = ends;
}

static void keep_param(void *context, const char *path, const char *value, const char *unit,
                       enum param_provenance provenance, const char *origin)
{
    struct collector *c = context;
    (void)unit, (void)provenance, (void)origin;
    g_ptr_array_add(c->paths, g_strdup(path));
    g_hash_table_replace(c->values, g_strdup(path), g_strdup(value));
}

static const char *value_at(const struct collector *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static const char *value_at(const struct collector *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    g_autofree char *path = g_strdup_vprintf(fmt, args);
    va_end(args);
    return g_hash_table_lookup(c->values, path);
}

/* A setting that does nothing as the point stands. */
static bool is_idle(const struct collector *c, const char *path)
{
    g_autofree char *owner = owner_of(path);
    if (strstr(path, ".iommu.") == NULL)
        return false;
    return g_strcmp0(value_at(c, "hosts.%s.iommu.enabled", owner), "true") != 0;
}

static void apply_rules(struct collector *c)
{
    for (guint i = 0; i < c->paths->len; i++) {
        const char *path = c->paths->pdata[i];
        for (size_t r = 0; r < SIM_N_ELEMENTS(rules); r++) {
            if (!g_pattern_match_simple(rules[r].path, path))
                continue;
            if (!is_idle(c, path))
                apply_rule(c, &rules[r], path, g_hash_table_lookup(c->values, path));
            break;
        }
    }
}

/* ---- Links ----------------------------------------------------------------------------------- */

#define GENERATION_MAX 5u

/* The settings that bound the generation of an end, "HOST.sN.PORT" or "DEVICE.pN". */
static void raise_end(const struct collector *c, struct explain_resource *link, const char *end,
                      unsigned generation)
{
    g_auto(GStrv) part = g_strsplit(end, ".", 3);
    g_autofree char *path = g_strdup_printf("devices.%s.generation", part[0]);
    for (unsigned k = 0; g_strv_length(part) == 3; k++) {
        const char *name = value_at(c, "hosts.%s.ports.[%u].name", part[0], k);
        const char *socket = value_at(c, "hosts.%s.ports.[%u].socket", part[0], k);
        if (name == NULL || socket == NULL)
            return;
        if (strcmp(name, part[2]) != 0 || strcmp(socket, part[1] + 1) != 0)
            continue;
        g_free(path);
        path = g_strdup_printf("hosts.%s.ports.[%u].generation", part[0], k);
        break;
    }
    const char *is = g_hash_table_lookup(c->values, path);
    if (is != NULL && g_ascii_strtod(is, NULL) < generation)
        add_change(link, path, g_ascii_strtod(is, NULL), generation, false);
}

static bool is_switch(const struct collector *c, const char *device)
{
    g_autofree char *path = g_strdup_printf("devices.%s.type", device);
    struct config_node *type = config_find(config_root(c->config), path);
    return type != NULL && g_strcmp0(config_text(type), "pcie.switch") == 0;
}

/* Adds the host at this end of a cable, or those that the switch there leads to. */
static void add_hosts(const struct collector *c, const char *end, GHashTable *seen,
                      GHashTable *hosts)
{
    g_auto(GStrv) part = g_strsplit(end, ".", 3);
    const char *from, *to;
    if (g_strv_length(part) == 3)
        g_hash_table_add(hosts, g_strdup(part[0]));
    if (g_strv_length(part) != 2 || g_hash_table_contains(seen, part[0]) || !is_switch(c, part[0]))
        return;
    g_hash_table_add(seen, g_strdup(part[0]));
    for (unsigned i = 0; (from = value_at(c, "cables.[%u].from", i)) != NULL; i++) {
        to = value_at(c, "cables.[%u].to", i);
        g_auto(GStrv) a = g_strsplit(from, ".", 2), b = g_strsplit(to != NULL ? to : "", ".", 2);
        if (g_strcmp0(a[0], part[0]) == 0 && to != NULL)
            add_hosts(c, to, seen, hosts);
        if (g_strcmp0(b[0], part[0]) == 0)
            add_hosts(c, from, seen, hosts);
    }
}

/* "hosts.NAME" of the only host that a cable's ends lead to; NULL: there are none, or several. */
static char *root_of(const struct collector *c, const char *const end[2])
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) hosts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GHashTableIter iter;
    gpointer name;
    add_hosts(c, end[0], seen, hosts);
    add_hosts(c, end[1], seen, hosts);
    g_hash_table_iter_init(&iter, hosts);
    return g_hash_table_size(hosts) == 1 && g_hash_table_iter_next(&iter, &name, NULL)
               ? g_strconcat("hosts.", (const char *)name, NULL)
               : NULL;
}

/* Other cables keep their generation, though a device that both hang on can do more now. */
static void add_link(struct collector *c, struct world *world, unsigned index,
                     const struct world_cable *cable)
{
    const char *end[2] = { value_at(c, "cables.[%u].from", index),
                           value_at(c, "cables.[%u].to", index) };
    const unsigned is = pcie_port_generation(cable->port[0]);
    const unsigned generation = MIN(is + c->steps, GENERATION_MAX);
    struct world_cable other;
    if (generation == is && c->ended != NULL)
        g_ptr_array_add(c->ended, g_strdup_printf("cables.[%u].generation = %u", index, is));
    if (generation == is || end[0] == NULL || end[1] == NULL)
        return;
    g_autofree char *name = g_strdup_printf("PCIe link %s to %s (Gen%u x%u)", end[0], end[1], is,
                                            pcie_port_lanes(cable->port[0]));
    struct explain_resource *link = resource_named(c, EXPLAIN_LIMIT, name, "");
    link->root = root_of(c, end);
    for (int e = 0; e < 2; e++)
        raise_end(c, link, end[e], generation);
    for (unsigned i = 0; world_cable_at(world, i, &other); i++) {
        g_autofree char *path = g_strdup_printf("cables.[%u].generation", i);
        if (i == index)
            add_change(link, path, is, generation, false);
        else if (other.kind == cable->kind)
            add_change(link, path, pcie_port_generation(other.port[0]),
                       pcie_port_generation(other.port[0]), false);
    }
}

static void add_links(struct collector *c, struct config *config, struct sim_error_list *errors)
{
    struct world *world = world_new(config, 1, errors);
    struct world_cable cable;
    for (unsigned i = 0; world_cable_at(world, i, &cable); i++)
        if (cable.kind == &pcie_cable)
            add_link(c, world, i, &cable);
    world_free(world);
}

/* The workload's `measured` is a host of the group `network`, else of `lending`. */
char *explain_cpu_host(const struct config *config)
{
    struct collector c = {
        .values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
        .paths = g_ptr_array_new_with_free_func(g_free),
    };
    g_autoptr(GHashTable) hosts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    config_each_param(config, keep_param, &c);
    for (guint i = 0; i < c.paths->len; i++)
        if (g_str_has_prefix(c.paths->pdata[i], "hosts."))
            g_hash_table_add(hosts, owner_of(c.paths->pdata[i]));
    const char *measured = value_at(&c, "workload.measured"), *host = NULL;
    if (measured != NULL && g_hash_table_size(hosts) > 1)
        host = value_at(&c, "network.%s.host", measured);
    if (host == NULL && measured != NULL && g_hash_table_size(hosts) > 1)
        host = value_at(&c, "lending.%s.host", measured);
    char *found = g_strdup(host);
    g_ptr_array_free(c.paths, TRUE);
    g_hash_table_destroy(c.values);
    return found;
}

GPtrArray *explain_resources(struct config *config, unsigned steps, GPtrArray *ended,
                             struct sim_error_list *errors)
{
    struct collector c = {
        .config = config,
        .resources = g_ptr_array_new_with_free_func(explain_resource_free),
        .steps = steps,
        .ended = ended,
        .values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
        .paths = g_ptr_array_new_with_free_func(g_free),
    };
    config_each_param(config, keep_param, &c);
    apply_rules(&c);
    add_links(&c, config, errors);
    g_ptr_array_free(c.paths, TRUE);
    g_hash_table_destroy(c.values);
    return c.resources;
}

/* Of a setting that several change, the larger change stays. */
static void join_changes(struct explain_resource *joint, const struct explain_resource *part)
{
    for (guint i = 0; i < part->change->len; i++) {
        struct explain_change change = g_array_index(part->change, struct explain_change, i);
        bool there = false;
        for (guint k = 0; k < joint->change->len; k++) {
            struct explain_change *old = &g_array_index(joint->change, struct explain_change, k);
            if (strcmp(old->path, change.path) != 0)
                continue;
            there = true;
            if (old->to == old->from) {
                old->to = change.to;
                old->ends = change.ends;
            }
        }
        if (!there) {
            change.path = g_strdup(change.path);
            g_array_append_val(joint->change, change);
        }
    }
}

struct explain_resource *explain_join(struct explain_resource *const *parts, guint n)
{
    g_autoptr(GString) name = g_string_new("only together:");
    struct explain_resource *joint = resource_new(EXPLAIN_LIMIT, "", "");
    joint->parts = g_ptr_array_new();
    for (guint i = 0; i < n; i++) {
        g_string_append_printf(name, "%s %s", i > 0 ? "," : "", parts[i]->name);
        join_changes(joint, parts[i]);
        g_ptr_array_add(joint->parts, parts[i]);
    }
    g_free(joint->name);
    joint->name = g_strdup(name->str);
    return joint;
}
