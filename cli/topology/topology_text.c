/*
 * A topology as lines: each host with its root ports, below them what is plugged in, as a tree;
 * then what several hosts share. A host that looks like one before it takes a line.
 */
#include <string.h>

#include "cli/topology/topology.h"

#define INDENT 2

struct printer {
    const struct topology *t;
    const struct topology_place *place;
    GString *out;
    guint host;    /* whose lines these are */
    bool names;    /* of devices and hosts; without, two hosts that look alike print the same */
    bool shared;   /* names of what hosts share */
    bool *seen;    /* devices */
    GString *list; /* names of the devices printed */
};

static void print_device(struct printer *p, const struct topology_end *end, int indent);

static const char *shown(const struct printer *p, const char *name)
{
    return p->names ? name : "*";
}

/* "Gen3 x8 -- nfp.p0 (pcie.requester)", and what hangs on it. */
static void print_far(struct printer *p, const struct topology_cable *cable,
                      const struct topology_end *end, int indent)
{
    g_autofree char *link = topology_cable_text(cable);
    g_string_append_printf(p->out, " -- %s -- ", link);
    if (end->kind == TOPOLOGY_PORT) {
        const struct topology_port *port = TOPOLOGY_AT(p->t->ports, port, end->index);
        const struct topology_host *host = TOPOLOGY_AT(p->t->hosts, host, port->host);
        g_string_append_printf(p->out, "%s.%s\n", shown(p, host->name), port->name);
        return;
    }
    const struct topology_device *device = TOPOLOGY_AT(p->t->devices, device, end->index);
    const guint host = p->place[end->index].host;
    const bool shared = host == TOPOLOGY_SHARED, other = !shared && host != p->host;
    if (p->names || (shared && p->shared))
        g_string_append_printf(p->out, "%s", device->name);
    if (p->names || !shared)
        g_string_append_printf(p->out, ".p%u", end->port);
    const char *where = shared ? ", shared" : p->seen[end->index] ? ", above" : "";
    g_string_append_printf(p->out, " (%s%s", device->type, where);
    if (other && host < p->t->hosts->len)
        g_string_append_printf(p->out, ", of %s",
                               shown(p, TOPOLOGY_AT(p->t->hosts, host, host)->name));
    g_string_append(p->out, ")\n");
    if (!shared && !other && !p->seen[end->index])
        print_device(p, end, indent + INDENT);
}

/* The other ports of a device at whose port `entry` we are; of a shared one that is not told. */
static void print_device(struct printer *p, const struct topology_end *entry, int indent)
{
    const struct topology *t = p->t;
    const char *name = TOPOLOGY_AT(t->devices, device, entry->index)->name;
    p->seen[entry->index] = true;
    g_string_append_printf(p->list, "%s%s", p->list->len > 0 ? ", " : "", name);
    for (guint c = 0; c < t->cables->len; c++) {
        const struct topology_cable *cable = TOPOLOGY_AT(t->cables, cable, c);
        for (int side = 0; side < 2; side++) {
            const struct topology_end *near = side == 0 ? &cable->from : &cable->to;
            const struct topology_end *far = topology_other_end(cable, near);
            const bool back = far->kind == TOPOLOGY_DEVICE && p->seen[far->index];
            if (near->kind != TOPOLOGY_DEVICE || near->index != entry->index ||
                near->port == entry->port || back)
                continue;
            g_string_append_printf(p->out, "%*s%s.p%u", indent, "", shown(p, name), near->port);
            print_far(p, cable, far, indent);
        }
    }
}

static const struct topology_cable *cable_at(const struct topology *t, guint port,
                                             const struct topology_end **far)
{
    for (guint c = 0; c < t->cables->len; c++) {
        const struct topology_cable *cable = TOPOLOGY_AT(t->cables, cable, c);
        const bool from = cable->from.kind == TOPOLOGY_PORT && cable->from.index == port;
        const bool to = cable->to.kind == TOPOLOGY_PORT && cable->to.index == port;
        *far = from ? &cable->to : &cable->from;
        if (from || to)
            return cable;
    }
    return NULL;
}

static void append_part(GString *text, const char *separator, const char *part)
{
    if (*part != '\0')
        g_string_append_printf(text, "%s%s", separator, part);
}

/* "s0.rp0 (Gen3 x8); s0.rp2, s1.rp0 (each Gen3 x4)": those that can do the same are named
 * together. */
static void print_empty(struct printer *p, GPtrArray *empty)
{
    const char *separator = ": ";
    if (empty->len > 0)
        g_string_append_printf(p->out, "%*snothing plugged in", INDENT, "");
    for (guint i = 0; i < empty->len; i++) {
        const struct topology_port *first = empty->pdata[i];
        unsigned n = 0;
        for (guint k = i; first != NULL && k < empty->len; k++) {
            const struct topology_port *port = empty->pdata[k];
            if (port == NULL || strcmp(port->link, first->link) != 0)
                continue;
            g_string_append_printf(p->out, "%s%s", n++ > 0 ? ", " : separator, port->name);
            empty->pdata[k] = NULL;
        }
        if (first != NULL)
            g_string_append_printf(p->out, " (%s%s)", n > 1 ? "each " : "", first->link);
        separator = "; ";
    }
    if (empty->len > 0)
        g_string_append_c(p->out, '\n');
}

static void print_host(struct printer *p, guint index)
{
    const struct topology *t = p->t;
    const struct topology_host *host = TOPOLOGY_AT(t->hosts, host, index);
    g_autoptr(GString) parts = g_string_new(NULL);
    g_autoptr(GPtrArray) empty = g_ptr_array_new(); /* ports */
    append_part(parts, ", ", host->cores);
    append_part(parts, ", ", host->cache);
    append_part(parts, ", ", host->memory);
    g_string_append_printf(p->out, "%s: %u socket%s", shown(p, host->name), host->n_sockets,
                           host->n_sockets == 1 ? "" : "s");
    append_part(p->out, ", interconnect ", host->n_sockets > 1 ? host->interconnect : "");
    if (parts->len > 0)
        g_string_append_printf(p->out, "\n%*s%s: %s", INDENT, "",
                               host->n_sockets == 1 ? "socket" : "each socket", parts->str + 2);
    const char *role = p->names ? host->role : host->role_alike;
    if (*role != '\0')
        g_string_append_printf(p->out, "\n%*s%s", INDENT, "", role);
    g_string_append_c(p->out, '\n');
    for (guint i = 0; i < t->ports->len; i++) {
        const struct topology_port *port = TOPOLOGY_AT(t->ports, port, i);
        const struct topology_end *far = NULL;
        if (port->host != index)
            continue;
        const struct topology_cable *cable = cable_at(t, i, &far);
        if (cable == NULL) {
            g_ptr_array_add(empty, (gpointer)(uintptr_t)port);
            continue;
        }
        g_string_append_printf(p->out, "%*s%s", INDENT, "", port->name);
        print_far(p, cable, far, INDENT);
    }
    print_empty(p, empty);
}

/* The lines of a host; in *list the names of its devices. */
static char *host_lines(const struct topology *t, const struct topology_place *place, guint host,
                        bool names, char **list)
{
    struct printer p = {
        t, place, g_string_new(NULL), host, names, true, NULL, g_string_new(NULL)
    };
    p.seen = g_new0(bool, t->devices->len + 1);
    print_host(&p, host);
    g_free(p.seen);
    *list = g_string_free(p.list, FALSE);
    return g_string_free(p.out, FALSE);
}

char *topology_host_text(const struct topology *t, const struct topology_place *place, guint host,
                         bool names)
{
    struct printer p = {
        t, place, g_string_new(NULL), host, names, names, NULL, g_string_new(NULL)
    };
    p.seen = g_new0(bool, t->devices->len + 1);
    print_host(&p, host);
    g_free(p.seen);
    g_string_free(p.list, TRUE);
    return g_string_free(p.out, FALSE);
}

static void print_hosts(const struct topology *t, const struct topology_place *place, GString *out)
{
    g_autoptr(GHashTable) alike = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint h = 0; h < t->hosts->len; h++) {
        char *list, *shape = host_lines(t, place, h, false, &list);
        const char *first = g_hash_table_lookup(alike, shape);
        const char *name = TOPOLOGY_AT(t->hosts, host, h)->name;
        if (first != NULL) {
            const char *role = TOPOLOGY_AT(t->hosts, host, h)->role;
            const bool names = strcmp(role, TOPOLOGY_AT(t->hosts, host, h)->role_alike) != 0;
            g_string_append_printf(out, "%s: as %s%s%s%s%s\n", name, first,
                                   *list != '\0' ? ", with " : "", list, names ? "; " : "",
                                   names ? role : "");
            g_free(shape);
        } else {
            char *all;
            g_autofree char *lines = host_lines(t, place, h, true, &all);
            g_string_append(out, lines);
            g_hash_table_insert(alike, shape, (gpointer)name);
            g_free(all);
        }
        g_free(list);
    }
}

static void print_shared(const struct topology *t, guint index, GString *out)
{
    const struct topology_device *device = TOPOLOGY_AT(t->devices, device, index);
    g_string_append_printf(out, "%s (%s), shared\n", device->name, device->type);
    for (guint c = 0; c < t->cables->len; c++) {
        const struct topology_cable *cable = TOPOLOGY_AT(t->cables, cable, c);
        for (int side = 0; side < 2; side++) {
            const struct topology_end *near = side == 0 ? &cable->from : &cable->to;
            if (near->kind != TOPOLOGY_DEVICE || near->index != index)
                continue;
            g_autofree char *link = topology_cable_text(cable);
            g_autofree char *far = topology_end_text(t, topology_other_end(cable, near));
            g_string_append_printf(out, "%*sp%u -- %s -- %s\n", INDENT, "", near->port, link, far);
        }
    }
}

static void print_wires(const struct topology *t, GString *out)
{
    const struct cable_kind *kind = NULL;
    for (guint w = 0; w < t->wires->len; w++) {
        const struct topology_cable *wire = TOPOLOGY_AT(t->wires, cable, w);
        if (wire->kind != kind)
            g_string_append_printf(out, "%s\n", wire->kind->name);
        kind = wire->kind;
        g_autofree char *from = topology_end_text(t, &wire->from);
        g_autofree char *to = topology_end_text(t, &wire->to);
        g_autofree char *rate = topology_cable_text(wire);
        g_string_append_printf(out, "%*s%s -- %s -- %s\n", INDENT, "", from, rate, to);
    }
}

char *topology_text(const struct topology *t)
{
    GString *out = g_string_new(NULL);
    g_autofree struct topology_place *place = topology_places(t);
    print_hosts(t, place, out);
    for (guint i = 0; i < t->devices->len; i++) {
        if (place[i].host == TOPOLOGY_SHARED)
            print_shared(t, i, out);
    }
    for (guint i = 0; i < t->devices->len; i++) {
        const struct topology_device *device = TOPOLOGY_AT(t->devices, device, i);
        if (device->root_complex != NULL)
            g_string_append_printf(out, "%s (%s), integrated into %s\n", device->name, device->type,
                                   device->root_complex);
        else if (place[i].host == TOPOLOGY_NOWHERE)
            g_string_append_printf(out, "%s (%s), at no host\n", device->name, device->type);
    }
    print_wires(t, out);
    return g_string_free(out, FALSE);
}
