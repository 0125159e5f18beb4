/*
 * A topology for Graphviz, which lays it out: hosts with their sockets and root ports in the first
 * row, devices below what they hang on, Ethernet dashed. Of more than DETAILED_MAX hosts the graph
 * is that of topology_dot_cluster.c.
 */
#include <string.h>

#include "cli/base/html.h"
#include "cli/topology/topology_dot.h"

enum {
    DETAILED_MAX = 4, /* hosts */
    LIKE_MIN = 4      /* devices; fewer of a kind are drawn one by one */
};

struct graph {
    const struct topology *t;
    struct topology_place *place; /* of devices */
    guint *like;                  /* of devices: the one that is drawn for it and others like it */
    guint *n_like;                /* of devices drawn: how many that are */
    GString *out;
};

/* ---- Text ------------------------------------------------------------------------------------ */

static void append_quoted(GString *out, const char *text)
{
    g_string_append_c(out, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            g_string_append_c(out, '\\');
        g_string_append_c(out, *text);
    }
    g_string_append_c(out, '"');
}

void topology_dot_device(GString *out, guint index, const char *name, const char *type)
{
    g_string_append_printf(out, "  d%u [ordering=out, label=<<b>", index);
    html_text(out, name);
    g_string_append(out, "</b><br/>");
    html_text(out, type);
    g_string_append(out, ">];\n");
}

/* ---- Devices like others --------------------------------------------------------------------- */

/* The only cable of a device, or NULL: a leaf; *above: its other end. */
static const struct topology_cable *leaf_cable(const struct topology *t, guint device,
                                               const struct topology_end **above)
{
    const struct topology_cable *found = NULL;
    GArray *const lists[] = { t->cables, t->wires };
    for (int k = 0; k < 2; k++) {
        for (guint c = 0; c < lists[k]->len; c++) {
            const struct topology_cable *cable = TOPOLOGY_AT(lists[k], cable, c);
            const bool from = cable->from.kind == TOPOLOGY_DEVICE && cable->from.index == device;
            const bool to = cable->to.kind == TOPOLOGY_DEVICE && cable->to.index == device;
            if (!from && !to)
                continue;
            if (found != NULL || k == 1)
                return NULL;
            found = cable;
            *above = from ? &cable->to : &cable->from;
        }
    }
    return found;
}

/* Leaves of a type on the same switch, by cables that say the same. */
static bool are_like(const struct topology *t, guint a, guint b)
{
    const struct topology_end *above_a = NULL, *above_b = NULL;
    const struct topology_cable *x = leaf_cable(t, a, &above_a), *y = leaf_cable(t, b, &above_b);
    return x != NULL && y != NULL && above_a->kind == TOPOLOGY_DEVICE &&
           above_b->kind == TOPOLOGY_DEVICE && above_a->index == above_b->index &&
           strcmp(TOPOLOGY_AT(t->devices, device, a)->type,
                  TOPOLOGY_AT(t->devices, device, b)->type) == 0 &&
           strcmp(x->link, y->link) == 0 && x->length_m == y->length_m;
}

static void find_like(struct graph *g)
{
    const guint n = g->t->devices->len;
    for (guint i = 0; i < n; i++)
        g->like[i] = i;
    for (guint i = 0; i < n; i++) {
        guint n_like = 0;
        for (guint k = i; g->like[i] == i && k < n; k++)
            n_like += g->like[k] == k && are_like(g->t, i, k);
        g->n_like[i] = n_like >= LIKE_MIN ? n_like : 1;
        for (guint k = i + 1; n_like >= LIKE_MIN && k < n; k++) {
            if (g->like[k] == k && are_like(g->t, i, k))
                g->like[k] = i;
        }
    }
}

/* ---- Hosts ----------------------------------------------------------------------------------- */

static void append_part(GString *out, const char *text)
{
    if (*text == '\0')
        return;
    html_text(out, text);
    g_string_append(out, "<br align=\"left\"/>");
}

/* The host into whose *socket the device is integrated; TOPOLOGY_NOWHERE if into none. */
static guint socket_of(const struct topology *t, guint device, unsigned *socket)
{
    const char *name = TOPOLOGY_AT(t->devices, device, device)->root_complex; /* "server.s0" */
    for (guint h = 0; name != NULL && h < t->hosts->len; h++) {
        const char *host = TOPOLOGY_AT(t->hosts, host, h)->name;
        const size_t n = strlen(host);
        if (strncmp(name, host, n) == 0 && strncmp(name + n, ".s", 2) == 0) {
            *socket = (unsigned)g_ascii_strtoull(name + n + 2, NULL, 10);
            return h;
        }
    }
    return TOPOLOGY_NOWHERE;
}

/* A cell for each device that is integrated into the socket; how many they are. */
static unsigned append_integrated(GString *cells, const struct topology *t, guint h,
                                  unsigned socket)
{
    unsigned n = 0, own = 0;
    for (guint d = 0; d < t->devices->len; d++) {
        const struct topology_device *device = TOPOLOGY_AT(t->devices, device, d);
        if (socket_of(t, d, &own) != h || own != socket)
            continue;
        g_string_append_printf(cells,
                               "<td port=\"d%u\" border=\"1\" color=\"#6a3d00\" "
                               "bgcolor=\"#fbeedd\"><b>",
                               d);
        html_text(cells, device->name);
        g_string_append(cells, "</b><br/>");
        html_text(cells, device->type);
        g_string_append(cells, "</td>");
        n++;
    }
    return n;
}

/* What the socket holds, below it a cell for each root port and each integrated device. */
static void append_socket(GString *out, const struct topology *t, guint h, unsigned socket)
{
    const struct topology_host *host = TOPOLOGY_AT(t->hosts, host, h);
    g_autoptr(GString) ports = g_string_new(NULL);
    unsigned n_ports = 0;
    for (guint p = 0; p < t->ports->len; p++) {
        const struct topology_port *port = TOPOLOGY_AT(t->ports, port, p);
        const char *dot = strchr(port->name, '.');
        if (port->host != h || port->socket != socket)
            continue;
        g_string_append_printf(ports,
                               "<td port=\"p%u\" border=\"1\" color=\"#0b4f8a\" "
                               "bgcolor=\"#d9e8f5\" width=\"56\">",
                               p);
        html_text(ports, dot != NULL ? dot + 1 : port->name);
        g_string_append(ports, "</td>");
        n_ports++;
    }
    n_ports += append_integrated(ports, t, h, socket);
    g_string_append_printf(out,
                           "<td><table border=\"1\" cellborder=\"0\" cellspacing=\"5\" "
                           "color=\"#6a7580\" bgcolor=\"#f3f5f7\"><tr><td colspan=\"%u\" "
                           "align=\"left\" width=\"140\"><b>socket %u</b><br align=\"left\"/>",
                           MAX(n_ports, 1), socket);
    append_part(out, host->cores);
    append_part(out, host->cache);
    append_part(out, host->memory);
    g_string_append_printf(out, "</td></tr>%s%s%s</table></td>", n_ports > 0 ? "<tr>" : "",
                           ports->str, n_ports > 0 ? "</tr>" : "");
}

/* Between sockets: the lower edge of its upper cell is the line. */
static void append_interconnect(GString *out, const char *text)
{
    g_string_append(out, "<td><table border=\"0\" cellborder=\"0\" cellspacing=\"0\"><tr>"
                         "<td border=\"2\" sides=\"B\" valign=\"bottom\">");
    html_text(out, *text != '\0' ? text : " ");
    g_string_append(out, "</td></tr><tr><td></td></tr></table></td>");
}

/* One node, a table: Graphviz keeps what is in it together. */
static void append_host(GString *out, const struct topology *t, guint h, bool role_line)
{
    const struct topology_host *host = TOPOLOGY_AT(t->hosts, host, h);
    g_string_append_printf(out,
                           "  h%u [shape=plain, style=\"\", color=\"" TOPOLOGY_DOT_INK "\", "
                           "label=<<table border=\"2\" cellborder=\"0\" cellpadding=\"6\" "
                           "style=\"rounded\"><tr><td><table border=\"0\" cellborder=\"0\" "
                           "cellspacing=\"0\" cellpadding=\"0\"><tr><td align=\"left\" "
                           "colspan=\"%u\"><b>",
                           h, MAX(2 * host->n_sockets, 2u) - 1);
    html_text(out, host->name);
    g_string_append(out, "</b><br align=\"left\"/>");
    append_part(out, role_line && *host->role == '\0' ? " " : host->role);
    g_string_append(out, "<br/></td></tr><tr>");
    for (unsigned s = 0; s < host->n_sockets; s++) {
        if (s > 0)
            append_interconnect(out, host->interconnect);
        append_socket(out, t, h, s);
    }
    g_string_append(out, host->n_sockets == 0 ? "<td></td>" : "");
    g_string_append(out, "</tr></table></td></tr></table>>];\n");
}

/* All in one row, in the order of the scenario. */
static void append_hosts(struct graph *g)
{
    bool roles = false;
    for (guint h = 0; h < g->t->hosts->len; h++)
        roles = roles || *TOPOLOGY_AT(g->t->hosts, host, h)->role != '\0';
    for (guint h = 0; h < g->t->hosts->len; h++)
        append_host(g->out, g->t, h, roles);
    if (g->t->hosts->len < 2)
        return;
    g_string_append(g->out, "  {rank=same; edge [style=invis]; h0");
    for (guint h = 1; h < g->t->hosts->len; h++)
        g_string_append_printf(g->out, " -- h%u", h);
    g_string_append(g->out, ";}\n");
}

/* ---- Devices and cables ---------------------------------------------------------------------- */

/* One, or what stands for several: "a0 ... a16", "17 x pcie.requester". */
static void append_device(struct graph *g, guint index)
{
    const struct topology_device *device = TOPOLOGY_AT(g->t->devices, device, index);
    if (g->n_like[index] == 1) {
        topology_dot_device(g->out, index, device->name, device->type);
    } else {
        guint last = index;
        for (guint k = index; k < g->t->devices->len; k++)
            last = g->like[k] == index ? k : last;
        g_autofree char *name = g_strdup_printf("%s ... %s", device->name,
                                                TOPOLOGY_AT(g->t->devices, device, last)->name);
        g_autofree char *type = g_strdup_printf("%u x %s", g->n_like[index], device->type);
        topology_dot_device(g->out, index, name, type);
    }
    if (g->place[index].host == TOPOLOGY_NOWHERE)
        g_string_append_printf(g->out, "  {rank=max; d%u;}\n", index);
}

/* Rows from the top: hosts, what hangs on them by the number of cables, what they share, the
 * rest. */
static int depth_of(const struct graph *g, const struct topology_end *end)
{
    if (end->kind == TOPOLOGY_PORT ||
        TOPOLOGY_AT(g->t->devices, device, end->index)->root_complex != NULL)
        return 0;
    const struct topology_place *place = &g->place[end->index];
    const int n = (int)g->t->devices->len + 1;
    return place->host == TOPOLOGY_NOWHERE  ? 3 * n
           : place->host == TOPOLOGY_SHARED ? n + place->depth
                                            : place->depth;
}

/* How many PCIe cables come to this device from above. */
static unsigned cables_from_above(const struct graph *g, const struct topology_end *end)
{
    unsigned n = 0;
    for (guint c = 0; c < g->t->cables->len; c++) {
        const struct topology_cable *cable = TOPOLOGY_AT(g->t->cables, cable, c);
        const int from = depth_of(g, &cable->from), to = depth_of(g, &cable->to);
        n += cable->to.kind == end->kind && cable->to.index == end->index && from < to;
        n += cable->from.kind == end->kind && cable->from.index == end->index && to < from;
    }
    return n;
}

static void append_end(struct graph *g, const struct topology_end *end)
{
    unsigned socket;
    const guint h = end->kind == TOPOLOGY_DEVICE ? socket_of(g->t, end->index, &socket) : 0;
    if (end->kind == TOPOLOGY_DEVICE && h == TOPOLOGY_NOWHERE)
        g_string_append_printf(g->out, "d%u", end->index);
    else if (end->kind == TOPOLOGY_DEVICE)
        g_string_append_printf(g->out, "h%u:d%u:s", h, end->index);
    else
        g_string_append_printf(g->out, "h%u:p%u:s",
                               TOPOLOGY_AT(g->t->ports, port, end->index)->host, end->index);
}

static void append_edge(struct graph *g, const struct topology_end *a, const struct topology_end *b,
                        const char *text, const char *style, const char *busy)
{
    const bool one_of_many = *style == '\0' && g->place[b->index].host != TOPOLOGY_SHARED &&
                             cables_from_above(g, b) > 1;
    g_string_append(g->out, "  ");
    append_end(g, a);
    g_string_append(g->out, " -- ");
    append_end(g, b);
    g_string_append(g->out, " [label=\" ");
    if (one_of_many)
        g_string_append_printf(g->out, "p%u: ", b->port);
    g_string_append_printf(g->out, "%s \", weight=4%s%s];\n", text, style, busy);
}

/* The upper end first. What joins two trees of devices hangs below both, as a node with the cable's
 * text. */
static void append_cable(struct graph *g, const struct topology_cable *cable, const char *name,
                         guint index)
{
    const bool swapped = depth_of(g, &cable->to) < depth_of(g, &cable->from);
    const struct topology_end *a = swapped ? &cable->to : &cable->from;
    const struct topology_end *b = topology_other_end(cable, a);
    const char *style = !cable->kind->tree ? TOPOLOGY_DOT_ETHERNET : "";
    g_autofree char *text = topology_cable_text(cable);
    const bool drawn = b->kind == TOPOLOGY_PORT || g->like[b->index] == b->index;
    const bool tree = depth_of(g, a) != depth_of(g, b) && *style == '\0';
    if (drawn &&
        (tree || (b->kind == TOPOLOGY_DEVICE && g->place[b->index].host >= TOPOLOGY_NOWHERE))) {
        append_edge(g, a, b, text, style, topology_dot_busy(cable));
    } else if (drawn) {
        g_string_append_printf(g->out,
                               "  {rank=sink; %s%u [shape=plain, style=\"\", label=\"%s\"];}\n",
                               name, index, text);
        for (int i = 0; i < 2; i++) {
            g_string_append(g->out, "  ");
            append_end(g, i == 0 ? a : b);
            g_string_append_printf(g->out, " -- %s%u [penwidth=1.5%s%s];\n", name, index, style,
                                   topology_dot_busy(cable));
        }
    }
}

static void append_all(struct graph *g)
{
    const struct topology *t = g->t;
    g->like = g_new0(guint, t->devices->len + 1);
    g->n_like = g_new0(guint, t->devices->len + 1);
    find_like(g);
    append_hosts(g);
    for (guint i = 0; i < t->devices->len; i++) {
        if (g->like[i] == i && TOPOLOGY_AT(t->devices, device, i)->root_complex == NULL)
            append_device(g, i);
    }
    for (guint c = 0; c < t->cables->len; c++)
        append_cable(g, TOPOLOGY_AT(t->cables, cable, c), "c", c);
    for (guint w = 0; w < t->wires->len; w++)
        append_cable(g, TOPOLOGY_AT(t->wires, cable, w), "w", w);
    if (t->hosts->len == 0 && t->devices->len == 0)
        g_string_append(g->out, "  label=\"no hosts, no devices\";\n");
    g_free(g->like);
    g_free(g->n_like);
}

char *topology_dot(const struct topology *t, const char *title)
{
    struct graph g = { .t = t, .place = topology_places(t), .out = g_string_new("graph ") };
    append_quoted(g.out, title);
    g_string_append(
        g.out, " {\n"
               "  graph [fontname=\"Arial\", fontsize=14, fontcolor=\"" TOPOLOGY_DOT_INK "\", "
               "nodesep=0.35, ranksep=0.45];\n"
               "  node [shape=box, style=\"rounded,filled\", color=\"#6a3d00\", "
               "fillcolor=\"#fbeedd\", fontname=\"Arial\", fontcolor=\"" TOPOLOGY_DOT_INK "\"];\n"
               "  edge [fontname=\"Arial\", fontcolor=\"" TOPOLOGY_DOT_INK
               "\", color=\"" TOPOLOGY_DOT_INK "\", "
               "penwidth=1.5];\n");
    if (t->hosts->len > DETAILED_MAX)
        topology_dot_cluster(g.out, t, g.place);
    else
        append_all(&g);
    g_string_append(g.out, "}\n");
    g_free(g.place);
    return g_string_free(g.out, FALSE);
}
