/* A topology for graphviz: hosts as clusters of sockets, cables as edges. */
#include <string.h>

#include "cli/base/html.h"
#include "cli/topology/topology.h"

/* Within double quotes. */
static void append_quoted(GString *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            g_string_append_c(out, '\\');
        g_string_append_c(out, *text);
    }
}

static void append_line(GString *out, const char *text)
{
    if (*text == '\0')
        return;
    g_string_append(out, "<br/>");
    html_text(out, text);
}

static guint count_ports(const struct topology *t, guint host, unsigned socket)
{
    guint n = 0;
    for (guint p = 0; p < t->ports->len; p++)
        n += TOPOLOGY_AT(t->ports, port, p)->host == host &&
             TOPOLOGY_AT(t->ports, port, p)->socket == socket;
    return n;
}

/* A table: what the socket holds, below it a cell for each root port. Graphviz loses edges between
 * neighbours that are records, hence no record. */
static void append_socket(GString *out, const struct topology *t, guint h, unsigned socket)
{
    const struct topology_host *host = TOPOLOGY_AT(t->hosts, host, h);
    const guint n_ports = count_ports(t, h, socket);
    g_string_append_printf(out,
                           "    h%us%u [shape=plain, label=<<table border=\"0\" cellborder=\"1\" "
                           "cellspacing=\"0\" cellpadding=\"5\"><tr><td colspan=\"%u\">socket %u",
                           h, socket, MAX(n_ports, 1), socket);
    append_line(out, host->cores);
    append_line(out, host->cache);
    append_line(out, host->memory);
    g_string_append(out, "</td></tr>");
    for (guint p = 0, i = 0; p < t->ports->len; p++) {
        const struct topology_port *port = TOPOLOGY_AT(t->ports, port, p);
        const char *dot = strchr(port->name, '.');
        if (port->host != h || port->socket != socket)
            continue;
        g_string_append_printf(out, "%s<td port=\"p%u\">", i++ == 0 ? "<tr>" : "", p);
        html_text(out, dot != NULL ? dot + 1 : port->name);
        g_string_append(out, i == n_ports ? "</td></tr>" : "</td>");
    }
    g_string_append(out, "</table>>];\n");
}

static void append_host(GString *out, const struct topology *t, guint h)
{
    const struct topology_host *host = TOPOLOGY_AT(t->hosts, host, h);
    g_string_append_printf(out, "  subgraph cluster_h%u {\n    label=\"", h);
    append_quoted(out, host->name);
    if (*host->role != '\0') {
        g_string_append(out, "\\n");
        append_quoted(out, host->role);
    }
    g_string_append(out, "\";\n");
    for (unsigned s = 0; s < host->n_sockets; s++)
        append_socket(out, t, h, s);
    for (unsigned s = 1; s < host->n_sockets; s++) {
        g_string_append_printf(out, "    {rank=same; h%us%u -- h%us%u [label=\"", h, s - 1, h, s);
        append_quoted(out, host->interconnect);
        g_string_append(out, "\"];}\n");
    }
    g_string_append(out, "  }\n");
}

static void append_end(GString *out, const struct topology *t, const struct topology_end *end)
{
    if (end->kind == TOPOLOGY_DEVICE) {
        g_string_append_printf(out, "d%u", end->index);
        return;
    }
    const struct topology_port *port = TOPOLOGY_AT(t->ports, port, end->index);
    g_string_append_printf(out, "h%us%u:p%u:s", port->host, port->socket, end->index);
}

/* The upper end first, so that layers come out as in the picture. */
static void append_cable(GString *out, const struct topology *t, const struct topology_place *place,
                         const struct topology_cable *cable)
{
    const struct topology_end *a = &cable->from, *b = &cable->to;
    const int a_depth = a->kind == TOPOLOGY_PORT ? 0 : place[a->index].depth;
    const int b_depth = b->kind == TOPOLOGY_PORT ? 0 : place[b->index].depth;
    char *text = topology_cable_text(cable);
    g_string_append(out, "  ");
    append_end(out, t, a_depth <= b_depth ? a : b);
    g_string_append(out, " -- ");
    append_end(out, t, a_depth <= b_depth ? b : a);
    g_string_append(out, " [label=\"");
    append_quoted(out, text);
    g_string_append(out, cable->rate_gbit_s > 0.0 ? "\", style=dashed];\n" : "\"];\n");
    g_free(text);
}

char *topology_dot(const struct topology *t, const char *title)
{
    GString *out = g_string_new("graph \"");
    struct topology_place *place = topology_places(t);
    append_quoted(out, title);
    g_string_append(out, "\" {\n  graph [newrank=true, nodesep=0.4, ranksep=0.6];\n"
                         "  node [shape=box, fontname=\"sans\"];\n  edge [fontname=\"sans\"];\n");
    for (guint h = 0; h < t->hosts->len; h++)
        append_host(out, t, h);
    for (guint i = 0; i < t->devices->len; i++) {
        const struct topology_device *device = TOPOLOGY_AT(t->devices, device, i);
        g_string_append_printf(out, "  d%u [label=\"", i);
        append_quoted(out, device->name);
        g_string_append(out, "\\n");
        append_quoted(out, device->type);
        g_string_append(out, "\"];\n");
    }
    for (guint c = 0; c < t->cables->len; c++)
        append_cable(out, t, place, TOPOLOGY_AT(t->cables, cable, c));
    for (guint w = 0; w < t->wires->len; w++)
        append_cable(out, t, place, TOPOLOGY_AT(t->wires, cable, w));
    g_string_append(out, "}\n");
    g_free(place);
    return g_string_free(out, FALSE);
}
