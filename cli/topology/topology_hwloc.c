/*
 * A host as hwloc's XML (hwloc 2: objects Package, NUMANode, L3Cache .. PU, Bridge, PCIDev). What
 * the simulator numbers only when a host boots is numbered here: buses by socket, in the order of
 * the tree.
 */
#include <stdio.h>
#include <string.h>

#include "cli/topology/topology.h"

struct writer {
    const struct topology *t;
    GString *out;
    guint host;
    unsigned n_objects, bus;
    bool *seen; /* devices */
};

static void open_object(struct writer *w, const char *type, const char *attributes, bool empty)
{
    w->n_objects++;
    g_string_append_printf(w->out, "<object type=\"%s\" gp_index=\"%u\" id=\"obj%u\"%s%s>\n", type,
                           w->n_objects, w->n_objects, attributes, empty ? "/" : "");
}

static void close_object(struct writer *w)
{
    g_string_append(w->out, "</object>\n");
}

/* " cpuset=..", " complete_cpuset=.." and the same of nodes: bits from..from + n - 1, and
 * first_node.. */
static char *sets(unsigned from, unsigned n, unsigned first_node, unsigned n_nodes)
{
    g_autoptr(GString) cpus = g_string_new(NULL);
    g_autofree char *nodes = g_strdup_printf("0x%08x", ((1u << n_nodes) - 1) << first_node);
    for (unsigned word = (from + n - 1) / 32 + 1; word-- > 0;) {
        uint32_t bits = 0;
        for (unsigned b = 0; b < 32; b++)
            if (word * 32 + b >= from && word * 32 + b < from + n)
                bits |= UINT32_C(1) << b;
        g_string_append_printf(cpus, "0x%08x%s", bits, word > 0 ? "," : "");
    }
    return g_strdup_printf(" cpuset=\"%s\" complete_cpuset=\"%s\" nodeset=\"%s\" "
                           "complete_nodeset=\"%s\"",
                           cpus->str, cpus->str, nodes, nodes);
}

static void append_cache(struct writer *w, const char *type, unsigned depth, uint64_t bytes,
                         unsigned ways, const char *where)
{
    g_autofree char *attributes = g_strdup_printf("%s cache_size=\"%" G_GUINT64_FORMAT
                                                  "\" depth=\"%u\" cache_linesize=\"64\" "
                                                  "cache_associativity=\"%u\" cache_type=\"%u\"",
                                                  where, bytes, depth, ways, depth == 1 ? 1u : 0u);
    open_object(w, type, attributes, false);
}

/* With the L2 around it, at the first and the last of the cores that share one. */
static void append_core(struct writer *w, const struct topology_host *host, unsigned socket,
                        unsigned core)
{
    const unsigned cpu = socket * host->n_cores + core;
    g_autofree char *where = sets(cpu, 1, socket, 1);
    g_autofree char *as_core = g_strdup_printf("%s os_index=\"%u\"", where, core);
    g_autofree char *as_pu = g_strdup_printf("%s os_index=\"%u\"", where, cpu);
    if (host->l2_bytes > 0 && core % host->l2_cores == 0) {
        g_autofree char *shared = sets(cpu, host->l2_cores, socket, 1);
        append_cache(w, "L2Cache", 2, host->l2_bytes, host->l2_ways, shared);
    }
    if (host->l1_bytes > 0)
        append_cache(w, "L1Cache", 1, host->l1_bytes, host->l1_ways, where);
    open_object(w, "Core", as_core, false);
    open_object(w, "PU", as_pu, true);
    for (int i = 0; i < 1 + (host->l1_bytes > 0); i++)
        close_object(w);
    if (host->l2_bytes > 0 && (core + 1) % host->l2_cores == 0)
        close_object(w);
}

/* ---- PCI ------------------------------------------------------------------------------------- */

/* GB/s of "Gen3 x8", as hwloc has it: after the encoding. */
static double speed_of(const struct topology_cable *cable)
{
    static const double lane[] = { 0.25, 0.5, 128.0 / 130, 256.0 / 130, 512.0 / 130 };
    unsigned generation, lanes;
    if (cable == NULL || sscanf(cable->link, "Gen%u x%u", &generation, &lanes) != 2 ||
        generation < 1 || generation > SIM_N_ELEMENTS(lane))
        return 0.0;
    return lane[generation - 1] * lanes;
}

/* The class by kind of model; lstopo shows no devices of class ff00 by itself. */
static const char *type_of(const char *model)
{
    static const char *const types[][2] = {
        { "nic.ethernet", "0200" }, { "pcie.requester", "0200" },  { "myri.myri10g", "0200" },
        { "rdma.adapter", "0207" }, { "nvme.controller", "0108" }, { "gpu.cuda", "0302" },
        { "ioat.engine", "0880" },  { "dsa.accelerator", "0880" }, { "pcie.ntb", "0680" },
    };
    for (size_t i = 0; i < SIM_N_ELEMENTS(types); i++)
        if (strcmp(types[i][0], model) == 0)
            return types[i][1];
    return "ff00";
}

static const struct topology_cable *
cable_of(const struct topology *t, const struct topology_end *end, const struct topology_end **far)
{
    for (guint c = 0; c < t->cables->len; c++) {
        const struct topology_cable *cable = TOPOLOGY_AT(t->cables, cable, c);
        for (int e = 0; e < 2; e++) {
            const struct topology_end *near = e == 0 ? &cable->from : &cable->to;
            *far = topology_other_end(cable, near);
            if (near->kind == end->kind && near->index == end->index && near->port == end->port)
                return cable;
        }
    }
    return NULL;
}

static void append_name(struct writer *w, const char *name)
{
    g_autofree char *quoted = g_markup_escape_text(name, -1);
    g_string_append_printf(w->out, "<info name=\"PCIDevice\" value=\"%s\"/>\n", quoted);
}

static void append_behind(struct writer *w, const struct topology_end *far, double speed,
                          unsigned depth);

/* A bridge on bus `on`, with what `inside` writes; the last bus behind it is known after that. */
static void append_bridge(struct writer *w, unsigned on, unsigned device, unsigned depth,
                          double speed, const char *name,
                          void (*inside)(struct writer *, const void *, unsigned), const void *arg)
{
    const unsigned secondary = ++w->bus;
    const gsize begin = w->out->len;
    w->n_objects++;
    const unsigned object = w->n_objects;
    append_name(w, name);
    inside(w, arg, depth + 1);
    close_object(w);
    g_autofree char *head = g_strdup_printf(
        "<object type=\"Bridge\" gp_index=\"%u\" id=\"obj%u\" bridge_type=\"1-1\" depth=\"%u\" "
        "bridge_pci=\"0000:[%02x-%02x]\" pci_busid=\"0000:%02x:%02x.0\" "
        "pci_type=\"0604 [0000:0000] [0000:0000] 00\" pci_link_speed=\"%.6f\">\n",
        object, object, depth, secondary, w->bus, on, device, speed);
    g_string_insert(w->out, (gssize)begin, head);
}

struct hanging {
    const struct topology_end *far;
    double speed;
};

static void inside_port(struct writer *w, const void *arg, unsigned depth)
{
    const struct hanging *hanging = arg;
    append_behind(w, hanging->far, hanging->speed, depth);
}

/* The downstream ports of the switch, each with what hangs on it. */
static void inside_switch(struct writer *w, const void *arg, unsigned depth)
{
    const struct topology_end *entry = arg;
    const char *name = TOPOLOGY_AT(w->t->devices, device, entry->index)->name;
    const unsigned on = w->bus;
    for (guint port = 0; port < 64; port++) {
        const struct topology_end end = { .kind = TOPOLOGY_DEVICE,
                                          .index = entry->index,
                                          .port = port };
        struct hanging hanging = { NULL, 0.0 };
        const struct topology_cable *cable = cable_of(w->t, &end, &hanging.far);
        if (port == entry->port || cable == NULL)
            continue;
        g_autofree char *text = g_strdup_printf("%s port %u", name, port);
        hanging.speed = speed_of(cable);
        append_bridge(w, on, port & 31, depth, hanging.speed, text, inside_port, &hanging);
    }
}

static void append_behind(struct writer *w, const struct topology_end *far, double speed,
                          unsigned depth)
{
    if (far->kind != TOPOLOGY_DEVICE || w->seen[far->index])
        return;
    const struct topology_device *device = TOPOLOGY_AT(w->t->devices, device, far->index);
    w->seen[far->index] = true;
    if (strcmp(device->type, "pcie.switch") == 0) {
        append_bridge(w, w->bus, 0, depth, speed, device->name, inside_switch, far);
        return;
    }
    g_autofree char *attributes =
        g_strdup_printf(" pci_busid=\"0000:%02x:00.0\" pci_type=\"%s [0000:0000] [0000:0000] 00\" "
                        "pci_link_speed=\"%.6f\"",
                        w->bus, type_of(device->type), speed);
    open_object(w, "PCIDev", attributes, false);
    append_name(w, device->name);
    close_object(w);
}

static void inside_socket(struct writer *w, unsigned socket, unsigned on)
{
    unsigned device = 0;
    for (guint p = 0; p < w->t->ports->len; p++) {
        const struct topology_port *port = TOPOLOGY_AT(w->t->ports, port, p);
        const struct topology_end end = { .kind = TOPOLOGY_PORT, .index = p };
        struct hanging hanging = { NULL, 0.0 };
        const struct topology_cable *cable = cable_of(w->t, &end, &hanging.far);
        if (port->host != w->host || port->socket != socket || cable == NULL)
            continue;
        hanging.speed = speed_of(cable);
        append_bridge(w, on, ++device & 31, 1, hanging.speed, port->name, inside_port, &hanging);
    }
}

static void append_host_bridge(struct writer *w, unsigned socket, unsigned n_sockets)
{
    const gsize begin = w->out->len;
    const unsigned on = 256 / n_sockets * socket;
    w->bus = on;
    w->n_objects++;
    const unsigned object = w->n_objects;
    inside_socket(w, socket, on);
    if (w->out->len == begin)
        return; /* hwloc has no root bus without devices */
    g_autofree char *head = g_strdup_printf(
        "<object type=\"Bridge\" gp_index=\"%u\" id=\"obj%u\" bridge_type=\"0-1\" depth=\"0\" "
        "bridge_pci=\"0000:[%02x-%02x]\">\n",
        object, object, on, w->bus);
    g_string_insert(w->out, (gssize)begin, head);
    close_object(w);
}

/* ---- The host -------------------------------------------------------------------------------- */

static void append_socket(struct writer *w, const struct topology_host *host, unsigned socket)
{
    g_autofree char *where = sets(socket * host->n_cores, host->n_cores, socket, 1);
    g_autofree char *package = g_strdup_printf("%s os_index=\"%u\"", where, socket);
    g_autofree char *node = g_strdup_printf("%s os_index=\"%u\" local_memory=\"%" G_GUINT64_FORMAT
                                            "\"",
                                            where, socket, host->node_bytes);
    open_object(w, "Package", package, false);
    open_object(w, "NUMANode", node, true);
    if (host->llc_bytes > 0)
        append_cache(w, "L3Cache", 3, host->llc_bytes, host->llc_ways, where);
    for (unsigned core = 0; core < host->n_cores; core++)
        append_core(w, host, socket, core);
    if (host->llc_bytes > 0)
        close_object(w);
    append_host_bridge(w, socket, host->n_sockets);
    close_object(w);
}

/* The host of the name, or the only one; false with the mistake in errors. */
static bool find_host(const struct topology *t, const char *name, guint *index,
                      struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (*index = 0; *index < t->hosts->len; (*index)++) {
        const struct topology_host *host = TOPOLOGY_AT(t->hosts, host, *index);
        if (name != NULL ? strcmp(host->name, name) == 0 : t->hosts->len == 1)
            return true;
        g_ptr_array_add(names, host->name);
    }
    g_ptr_array_add(names, NULL);
    if (name == NULL) {
        const struct topology_host *first = TOPOLOGY_AT(t->hosts, host, 0);
        sim_error_add(errors, NULL, 0,
                      "--format hwloc: found %u hosts, expected one, which --host names: --host %s",
                      t->hosts->len, first->name);
    } else {
        g_autofree char *hint = sim_suggestion(name, (const char *const *)names->pdata);
        sim_error_add(errors, NULL, 0, "--host %s: no such host%s%s", name,
                      *hint != '\0' ? "; " : "", hint);
    }
    return false;
}

char *topology_hwloc(const struct topology *t, const char *host_name, struct sim_error_list *errors)
{
    guint index;
    if (!find_host(t, host_name, &index, errors))
        return NULL;
    const struct topology_host *host = TOPOLOGY_AT(t->hosts, host, index);
    struct writer w = {
        .t = t, .host = index, .out = g_string_new(NULL), .seen = g_new0(bool, t->devices->len + 1)
    };
    g_autofree char *all = sets(0, host->n_sockets * host->n_cores, 0, host->n_sockets);
    g_autofree char *name = g_markup_escape_text(host->name, -1);
    g_string_append(w.out,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                    "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n");
    g_autofree char *machine = g_strdup_printf("%s os_index=\"0\"", all);
    open_object(&w, "Machine", machine, false);
    g_string_append_printf(w.out, "<info name=\"HostName\" value=\"%s\"/>\n", name);
    for (unsigned s = 0; s < host->n_sockets; s++)
        append_socket(&w, host, s);
    close_object(&w);
    g_string_append(w.out, "</topology>\n");
    g_free(w.seen);
    return g_string_free(w.out, FALSE);
}
