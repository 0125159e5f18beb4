/* From the world to a list of boxes and cables; what a socket holds comes from the parameters. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/topology/topology.h"
#include "models/pcie/link/port.h"
#include "models/pcie/ntb/ntb.h"
#include "models/world/registry.h"
#include "models/world/world.h"

/* ---- Parameters by path ---------------------------------------------------------------------- */

static void keep_param(void *context, const char *path, const char *value, const char *unit,
                       enum param_provenance provenance, const char *origin)
{
    (void)unit, (void)provenance, (void)origin;
    g_hash_table_replace(context, g_strdup(path), g_strdup(value));
}

/* The value of hosts.NAME.KEY, or NULL. */
static const char *host_value(GHashTable *params, const char *host, const char *key)
{
    g_autofree char *path = g_strdup_printf("hosts.%s.%s", host, key);
    return g_hash_table_lookup(params, path);
}

static uint64_t host_bytes(GHashTable *params, const char *host, const char *key)
{
    const char *text = host_value(params, host, key);
    return text != NULL ? g_ascii_strtoull(text, NULL, 10) : 0;
}

static unsigned host_unsigned(GHashTable *params, const char *host, const char *key,
                              unsigned otherwise)
{
    const char *text = host_value(params, host, key);
    return text != NULL ? (unsigned)g_ascii_strtoull(text, NULL, 10) : otherwise;
}

static char *size_text(const char *bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double size = g_ascii_strtod(bytes, NULL);
    unsigned i = 0;
    for (; i + 1 < SIM_N_ELEMENTS(units) && size >= 1024.0; i++)
        size /= 1024.0;
    return g_strdup_printf("%.4g %s", size, units[i]);
}

/* "LLC 35 MiB", "L2 4 MiB of 2 cores" if that is the last. */
static char *cache_text(const struct topology_host *host, GHashTable *params)
{
    const char *llc = host_value(params, host->name, "cache.llc_size");
    const char *l2 = host_value(params, host->name, "cache.l2_size");
    const char *last = host->llc_bytes > 0 || l2 == NULL ? llc : l2;
    g_autofree char *size = last != NULL ? size_text(last) : NULL;
    if (size == NULL || (host->llc_bytes > 0 && last == llc))
        return size != NULL ? g_strdup_printf("LLC %s", size) : g_strdup("");
    return host->l2_cores > 1 ? g_strdup_printf("L2 %s of %u cores", size, host->l2_cores)
                              : g_strdup_printf("L2 %s of a core", size);
}

/* "2 x 9.6 GT/s"; a bus for each socket that meet in a hub: "by hub, 10.67 GB/s buses". */
static char *interconnect_text(const struct topology_host *host, GHashTable *params)
{
    const char *links = host_value(params, host->name, "interconnect.links");
    const char *link_rate = host_value(params, host->name, "interconnect.rate_gt_s");
    const char *bus_rate = host_value(params, host->name, "interconnect.bus_gbyte_s");
    if (g_strcmp0(host_value(params, host->name, "coherence.protocol"), "front_side_bus") == 0 &&
        bus_rate != NULL)
        return g_strdup_printf("by hub, %s GB/s buses", bus_rate);
    return links != NULL && link_rate != NULL ? g_strdup_printf("%s x %s GT/s", links, link_rate)
                                              : g_strdup("");
}

static void describe_host(struct topology_host *host, GHashTable *params)
{
    const char *cores = host_value(params, host->name, "cpu.cores_per_socket");
    const char *clock = host_value(params, host->name, "cpu.clock_ghz");
    const char *channels = host_value(params, host->name, "dram.channels");
    const char *rate = host_value(params, host->name, "dram.rate_mt_s");
    host->n_sockets = host_unsigned(params, host->name, "cpu.sockets", 1);
    host->n_cores = host_unsigned(params, host->name, "cpu.cores_per_socket", 1);
    host->l1_bytes = host_bytes(params, host->name, "cache.l1_size");
    host->l2_bytes = host_bytes(params, host->name, "cache.l2_size");
    host->llc_bytes = host_bytes(params, host->name, "cache.llc_size");
    host->l1_ways = host_unsigned(params, host->name, "cache.l1_ways", 0);
    host->l2_ways = host_unsigned(params, host->name, "cache.l2_ways", 0);
    host->llc_ways = host_unsigned(params, host->name, "cache.llc_ways", 0);
    host->l2_cores = host_unsigned(params, host->name, "cache.l2_cores", 1);
    host->node_bytes = host_bytes(params, host->name, "dram.node_size");
    host->cores = cores != NULL && clock != NULL ? g_strdup_printf("%s cores, %s GHz", cores, clock)
                                                 : g_strdup("");
    host->cache = cache_text(host, params);
    host->memory = channels != NULL && rate != NULL
                       ? g_strdup_printf("DRAM %s x %s MT/s", channels, rate)
                       : g_strdup("");
    host->interconnect = interconnect_text(host, params);
}

/* ---- The world ------------------------------------------------------------------------------- */

/* port -> where it is in the lists */
struct finder {
    struct topology *topology;
    struct world *world;
    GHashTable *ends; /* struct pcie_port * or ether_port * -> struct topology_end */
};

static void remember(struct finder *finder, const void *port, const struct topology_end *end)
{
    g_hash_table_replace(finder->ends, (gpointer)(uintptr_t)port, g_memdup2(end, sizeof(*end)));
}

static void list_hosts(struct finder *finder, GHashTable *params)
{
    struct topology *t = finder->topology;
    for (unsigned h = 0; h < world_n_hosts(finder->world); h++) {
        struct host *host = world_host_at(finder->world, h);
        struct topology_host entry = { .name = g_strdup(host_name(host)) };
        describe_host(&entry, params);
        const char *const *names = host_port_names(host);
        for (unsigned p = 0; names != NULL && names[p] != NULL; p++) {
            struct topology_port port = { .name = g_strdup(names[p]), .host = h };
            if (sscanf(names[p], "s%u.", &port.socket) != 1)
                port.socket = 0;
            const struct pcie_port *root_port = host_port(host, names[p]);
            g_snprintf(port.link, sizeof(port.link), "Gen%u x%u", root_port->max_generation,
                       root_port->max_lanes);
            remember(finder, root_port,
                     &(struct topology_end){ .kind = TOPOLOGY_PORT, .index = t->ports->len });
            g_array_append_val(t->ports, port);
        }
        g_array_append_val(t->hosts, entry);
    }
}

static const char *root_complex_of(const struct model *integrated)
{
    return pcie_port_peer(&integrated->ports[0])->model->name;
}

static void list_devices(struct finder *finder)
{
    struct topology *t = finder->topology;
    for (const char *const *name = world_device_names(finder->world); *name != NULL; name++) {
        const struct model *model = world_device(finder->world, *name);
        const bool integrated = model->n_ports != 0 && model->ports[0].integrated;
        const struct topology_device device = { g_strdup(*name), g_strdup(model->ops->type),
                                                model->ops == &pcie_ntb_ops,
                                                integrated ? g_strdup(root_complex_of(model))
                                                           : NULL };
        struct topology_end end = { .kind = TOPOLOGY_DEVICE, .index = t->devices->len };
        for (unsigned k = 0; cable_registry[k] != NULL; k++) {
            const void *port;
            end.suffix = cable_registry[k]->suffix;
            for (end.port = 0; (port = cable_port(cable_registry[k], model, end.port)) != NULL;
                 end.port++)
                remember(finder, port, &end);
        }
        g_array_append_val(t->devices, device);
    }
}

static void list_cables(struct finder *finder)
{
    struct world_cable found;
    for (unsigned i = 0; world_cable_at(finder->world, i, &found); i++) {
        struct topology_cable cable = {
            .from = *(const struct topology_end *)g_hash_table_lookup(finder->ends, found.port[0]),
            .to = *(const struct topology_end *)g_hash_table_lookup(finder->ends, found.port[1]),
            .kind = found.kind,
            .length_m = found.length_m,
            .busy = (double)NAN,
        };
        found.kind->describe(found.port[0], cable.link, sizeof(cable.link));
        g_array_append_val(found.kind->tree ? finder->topology->cables : finder->topology->wires,
                           cable);
    }
}

static void clear_host(gpointer pointer)
{
    struct topology_host *host = pointer;
    g_free(host->name);
    g_free(host->cores);
    g_free(host->cache);
    g_free(host->memory);
    g_free(host->interconnect);
    g_free(host->role);
    g_free(host->role_alike);
}

static void clear_port(gpointer port)
{
    g_free(((struct topology_port *)port)->name);
}

static void clear_device(gpointer device)
{
    g_free(((struct topology_device *)device)->name);
    g_free(((struct topology_device *)device)->type);
    g_free(((struct topology_device *)device)->root_complex);
}

static GArray *new_list(size_t bytes, GDestroyNotify clear)
{
    GArray *list = g_array_new(FALSE, TRUE, (guint)bytes);
    if (clear != NULL)
        g_array_set_clear_func(list, clear);
    return list;
}

static void read_roles(struct topology *t, struct config *config, GHashTable *params)
{
    g_autofree bool *iommu = g_new0(bool, t->hosts->len + 1);
    for (guint h = 0; h < t->hosts->len; h++) {
        const char *enabled = host_value(params, TOPOLOGY_AT(t->hosts, host, h)->name,
                                         "iommu.enabled");
        iommu[h] = enabled != NULL && strcmp(enabled, "true") == 0;
    }
    topology_read_roles(t, config, iommu);
}

struct topology *topology_new(struct config *config, struct sim_error_list *errors)
{
    const size_t before = errors->n_messages;
    struct world *world = world_new(config, 1, errors);
    struct topology *t = NULL;
    if (errors->n_messages == before) {
        g_autoptr(GHashTable) params = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                                             g_free);
        t = g_new0(struct topology, 1);
        t->hosts = new_list(sizeof(struct topology_host), clear_host);
        t->ports = new_list(sizeof(struct topology_port), clear_port);
        t->devices = new_list(sizeof(struct topology_device), clear_device);
        t->cables = new_list(sizeof(struct topology_cable), NULL);
        t->wires = new_list(sizeof(struct topology_cable), NULL);
        struct finder finder = { t, world, g_hash_table_new_full(NULL, NULL, NULL, g_free) };
        config_each_param(config, keep_param, params);
        list_hosts(&finder, params);
        list_devices(&finder);
        list_cables(&finder);
        read_roles(t, config, params);
        g_hash_table_destroy(finder.ends);
    }
    world_free(world);
    return t;
}

void topology_free(struct topology *t)
{
    if (t == NULL)
        return;
    g_array_free(t->hosts, TRUE);
    g_array_free(t->ports, TRUE);
    g_array_free(t->devices, TRUE);
    g_array_free(t->cables, TRUE);
    g_array_free(t->wires, TRUE);
    g_free(t);
}

/* ---- Who belongs to whom --------------------------------------------------------------------- */

const struct topology_end *topology_other_end(const struct topology_cable *cable,
                                              const struct topology_end *end)
{
    return end == &cable->from ? &cable->to : &cable->from;
}

struct places {
    const struct topology *t;
    struct topology_place *place;
    bool *settled; /* devices that belong to the tree of a host; from the second pass on */
};

/* The far side of a bridge. */
static bool is_across(const struct topology *t, const struct topology_end *end)
{
    return end->kind == TOPOLOGY_DEVICE && end->port != 0 &&
           TOPOLOGY_AT(t->devices, device, end->index)->bridge;
}

/* The device at this end is so many cables away if what is at the other is one less. */
static void hang(struct places *p, const struct topology_cable *cable,
                 const struct topology_end *end, int depth)
{
    const struct topology_end *above = topology_other_end(cable, end);
    if (end->kind != TOPOLOGY_DEVICE || p->settled[end->index])
        return;
    struct topology_place *place = &p->place[end->index];
    const bool at_host = above->kind == TOPOLOGY_PORT;
    if ((at_host ? 0 : p->place[above->index].depth) != depth - 1 || (!at_host && depth == 1))
        return;
    const guint host = at_host ? TOPOLOGY_AT(p->t->ports, port, above->index)->host
                               : p->place[above->index].host;
    if (place->depth == depth && place->host != host)
        place->host = TOPOLOGY_SHARED;
    else if (place->depth == 0)
        *place = (struct topology_place){ .host = host, .depth = depth };
}

/* By ascending depth; across: also along the cables between bridges. */
static void hang_all(struct places *p, bool across)
{
    for (guint depth = 1; depth <= p->t->devices->len; depth++) {
        for (guint c = 0; c < p->t->cables->len; c++) {
            const struct topology_cable *cable = TOPOLOGY_AT(p->t->cables, cable, c);
            if (!across && (is_across(p->t, &cable->from) || is_across(p->t, &cable->to)))
                continue;
            hang(p, cable, &cable->from, (int)depth);
            hang(p, cable, &cable->to, (int)depth);
        }
    }
}

/* What is in no host's tree belongs to all that it is cabled to, however far each is. */
static bool share(struct places *p, const struct topology_cable *cable)
{
    const struct topology_end *end[2] = { &cable->from, &cable->to };
    bool changed = false;
    for (int i = 0; i < 2; i++) {
        const struct topology_end *other = end[1 - i];
        if (end[i]->kind != TOPOLOGY_DEVICE || other->kind != TOPOLOGY_DEVICE ||
            p->settled[end[i]->index] || p->place[end[i]->index].depth == 0 ||
            p->place[end[i]->index].host == TOPOLOGY_SHARED ||
            p->place[end[i]->index].host == p->place[other->index].host)
            continue;
        p->place[end[i]->index].host = TOPOLOGY_SHARED;
        changed = true;
    }
    return changed;
}

struct topology_place *topology_places(const struct topology *t)
{
    struct places p = { t, g_new0(struct topology_place, t->devices->len + 1),
                        g_new0(bool, t->devices->len + 1) };
    hang_all(&p, false);
    for (guint i = 0; i < t->devices->len; i++)
        p.settled[i] = p.place[i].depth != 0;
    hang_all(&p, true);
    for (bool changed = true; changed;) {
        changed = false;
        for (guint c = 0; c < t->cables->len; c++)
            changed = share(&p, TOPOLOGY_AT(t->cables, cable, c)) || changed;
    }
    for (guint i = 0; i < t->devices->len; i++) {
        if (p.place[i].depth == 0)
            p.place[i].host = TOPOLOGY_NOWHERE;
    }
    g_free(p.settled);
    return p.place;
}

/* ---- In words -------------------------------------------------------------------------------- */

char *topology_cable_text(const struct topology_cable *cable)
{
    GString *text = g_string_new(NULL);
    g_string_append(text, cable->link);
    if (cable->length_m > 0.0)
        g_string_append_printf(text, ", %g m", cable->length_m);
    if (*cable->busy_text != '\0')
        g_string_append_printf(text, ", %s", cable->busy_text);
    return g_string_free(text, FALSE);
}

char *topology_end_text(const struct topology *t, const struct topology_end *end)
{
    if (end->kind == TOPOLOGY_DEVICE)
        return g_strdup_printf("%s.%c%u", TOPOLOGY_AT(t->devices, device, end->index)->name,
                               end->suffix, end->port);
    const struct topology_port *port = TOPOLOGY_AT(t->ports, port, end->index);
    return g_strdup_printf("%s.%s", TOPOLOGY_AT(t->hosts, host, port->host)->name, port->name);
}

static void append_part(GString *text, const char *separator, const char *part)
{
    if (*part != '\0')
        g_string_append_printf(text, "%s%s", separator, part);
}

/* "2 sockets, each with 14 cores, ...": the host without its name and role. */
static char *host_in_words(const struct topology_host *host)
{
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "%u socket%s", host->n_sockets,
                           host->n_sockets == 1 ? "" : "s, each with");
    append_part(text, host->n_sockets == 1 ? ", " : " ", host->cores);
    append_part(text, ", ", host->cache);
    append_part(text, ", ", host->memory);
    if (host->n_sockets > 1)
        append_part(text, "; interconnect ", host->interconnect);
    return g_string_free(text, FALSE);
}

static char *cable_in_words(const struct topology *t, const struct topology_cable *cable)
{
    g_autofree char *from = topology_end_text(t, &cable->from);
    g_autofree char *to = topology_end_text(t, &cable->to);
    g_autofree char *link = topology_cable_text(cable);
    const struct topology_end *end = cable->to.kind == TOPOLOGY_DEVICE ? &cable->to : &cable->from;
    const char *type = end->kind == TOPOLOGY_DEVICE
                           ? TOPOLOGY_AT(t->devices, device, end->index)->type
                           : "";
    return g_strdup_printf("%s to %s%s%s%s, %s", from, to, *type != '\0' ? " (" : "", type,
                           *type != '\0' ? ")" : "", link);
}

static const char *kind_of_end(const struct topology *t, const struct topology_end *end)
{
    return end->kind == TOPOLOGY_DEVICE ? TOPOLOGY_AT(t->devices, device, end->index)->type
                                        : "root port";
}

/* The same of both ends' kinds, for many cables: "root port to pcie.ntb, Gen3 x16". */
static char *cable_kind_in_words(const struct topology *t, const struct topology_cable *cable)
{
    g_autofree char *link = topology_cable_text(cable);
    return g_strdup_printf("%s to %s, %s", kind_of_end(t, &cable->from), kind_of_end(t, &cable->to),
                           link);
}

/* Lines that are the same, once: the names of all that have it, of more than MOST_NAMES the first
 * ones, the last and how many. */
#define MOST_NAMES  3U
#define MOST_CABLES 24U

struct alike {
    char *text;
    const char *last;
    GString *names;
    guint n;
};

static void free_alike(gpointer pointer)
{
    struct alike *alike = pointer;
    g_free(alike->text);
    g_string_free(alike->names, TRUE);
    g_free(alike);
}

/* Takes the text over. */
static void add_alike(GPtrArray *all, char *text, const char *name)
{
    struct alike *alike = NULL;
    for (guint i = 0; i < all->len && alike == NULL; i++)
        if (strcmp(((struct alike *)all->pdata[i])->text, text) == 0)
            alike = all->pdata[i];
    if (alike == NULL) {
        alike = g_new0(struct alike, 1);
        alike->text = text;
        alike->names = g_string_new(name);
        g_ptr_array_add(all, alike);
    } else {
        g_free(text);
        if (alike->n < MOST_NAMES)
            g_string_append_printf(alike->names, ", %s", name);
    }
    alike->last = name;
    alike->n++;
}

static void append_alike(GString *text, const GPtrArray *all)
{
    for (guint i = 0; i < all->len; i++) {
        const struct alike *alike = all->pdata[i];
        if (*alike->text == '\0')
            continue;
        g_string_append_printf(text, "%s%s", text->len > 0 ? "; " : "", alike->names->str);
        if (alike->n > MOST_NAMES)
            g_string_append_printf(text, " ... %s, %u hosts", alike->last, alike->n);
        g_string_append_printf(text, ": %s", alike->text);
    }
}

/* What the hosts are; then, where several are alike, what they do. */
static void append_hosts(GString *text, const struct topology *t)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(free_alike);
    g_autoptr(GPtrArray) roles = g_ptr_array_new_with_free_func(free_alike);
    for (guint h = 0; h < t->hosts->len; h++) {
        const struct topology_host *host = TOPOLOGY_AT(t->hosts, host, h);
        add_alike(all, host_in_words(host), host->name);
        add_alike(roles, g_strdup(host->role), host->name);
    }
    const bool differ = all->len == t->hosts->len;
    for (guint h = 0; differ && h < t->hosts->len; h++) {
        struct alike *alike = all->pdata[h];
        const char *role = TOPOLOGY_AT(t->hosts, host, h)->role;
        char *whole = g_strdup_printf("%s%s%s", alike->text, *role != '\0' ? "; " : "", role);
        g_free(alike->text);
        alike->text = whole;
    }
    append_alike(text, all);
    if (!differ)
        append_alike(text, roles);
}

static void append_cables(GString *text, const struct topology *t)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(free_alike);
    const bool is_many = t->cables->len > MOST_CABLES;
    for (guint c = 0; c < t->cables->len; c++) {
        const struct topology_cable *cable = TOPOLOGY_AT(t->cables, cable, c);
        add_alike(all, is_many ? cable_kind_in_words(t, cable) : cable_in_words(t, cable), "");
    }
    for (guint i = 0; i < all->len; i++) {
        const struct alike *alike = all->pdata[i];
        g_string_append(text, "; ");
        if (is_many)
            g_string_append_printf(text, "%u x ", alike->n);
        g_string_append(text, alike->text);
    }
}

char *topology_sentence(const struct topology *t)
{
    GString *text = g_string_new(NULL);
    append_hosts(text, t);
    append_cables(text, t);
    for (guint w = 0; w < t->wires->len; w++) {
        const struct topology_cable *wire = TOPOLOGY_AT(t->wires, cable, w);
        g_autofree char *from = topology_end_text(t, &wire->from);
        g_autofree char *to = topology_end_text(t, &wire->to);
        g_autofree char *rate = topology_cable_text(wire);
        g_string_append_printf(text, "; %s to %s, %s, %s", from, to, wire->kind->name, rate);
    }
    g_string_append_c(text, '.');
    return g_string_free(text, FALSE);
}
