/*
 * The picture of a topology. Hosts stand side by side, their sockets within them, root ports at the
 * lower edge of their socket; devices hang below in rows, as many cables away from a root port as
 * their row says. Cables carry generation, lanes and length.
 */
#include <string.h>

#include "cli/html.h"
#include "cli/topology.h"

enum {
    MARGIN = 10,
    SOCKET_W = 210,
    SOCKET_H = 150,
    SOCKET_GAP = 100, /* the interconnect's label */
    PORT_W = 66,
    PORT_H = 30,
    HOST_HEAD = 34,
    DEVICE_W = 170,
    DEVICE_H = 52,
    DEVICE_GAP = 24,
    ROW_GAP = 64, /* the cables' labels */
    HOST_GAP = 40
};

struct box {
    int x, y, w, h;
};

struct drawing {
    const struct topology *t;
    struct box *host, *socket_first, *port, *device;
    int *depth;   /* of devices: cables from a root port; 0: not plugged in */
    guint *owner; /* of devices: the host below which they stand */
    int width, height;
    GString *svg;
};

/* ---- Who stands where ----------------------------------------------------------------------- */

static int host_width(const struct topology_host *host)
{
    const int n = (int)MAX(host->n_sockets, 1u);
    return n * SOCKET_W + (n - 1) * SOCKET_GAP + 2 * MARGIN;
}

static const struct topology_end *other_end(const struct topology_cable *cable,
                                            const struct topology_end *end)
{
    return end == &cable->from ? &cable->to : &cable->from;
}

/* The device at this end hangs below what is at the other, if that has its place already. */
static bool hang(struct drawing *d, const struct topology_cable *cable,
                 const struct topology_end *end)
{
    const struct topology_end *above = other_end(cable, end);
    if (end->kind != TOPOLOGY_DEVICE || d->depth[end->index] > 0)
        return false;
    if (above->kind == TOPOLOGY_DEVICE && d->depth[above->index] == 0)
        return false;
    const bool at_host = above->kind == TOPOLOGY_PORT;
    d->depth[end->index] = at_host ? 1 : d->depth[above->index] + 1;
    d->owner[end->index] = at_host ? TOPOLOGY_AT(d->t->ports, port, above->index)->host
                                   : d->owner[above->index];
    return true;
}

static int find_depths(struct drawing *d)
{
    int deepest = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (guint c = 0; c < d->t->cables->len; c++) {
            const struct topology_cable *cable = TOPOLOGY_AT(d->t->cables, cable, c);
            changed = hang(d, cable, &cable->from) || hang(d, cable, &cable->to) || changed;
        }
    }
    for (guint i = 0; i < d->t->devices->len; i++)
        deepest = MAX(deepest, d->depth[i]);
    for (guint i = 0; i < d->t->devices->len; i++) /* what hangs nowhere: a row of its own */
        d->depth[i] = d->depth[i] == 0 ? deepest + 1 : d->depth[i];
    for (guint i = 0; i < d->t->devices->len; i++)
        deepest = MAX(deepest, d->depth[i]);
    return deepest;
}

static int row_width(const struct drawing *d, guint host, int depth)
{
    int n = 0;
    for (guint i = 0; i < d->t->devices->len; i++)
        n += d->owner[i] == host && d->depth[i] == depth;
    return n * DEVICE_W + (n - 1) * DEVICE_GAP;
}

static void place_ports(struct drawing *d, guint host)
{
    const struct topology *t = d->t;
    for (unsigned s = 0; s < TOPOLOGY_AT(t->hosts, host, host)->n_sockets; s++) {
        int n = 0, i = 0;
        for (guint p = 0; p < t->ports->len; p++)
            n += TOPOLOGY_AT(t->ports, port, p)->host == host &&
                 TOPOLOGY_AT(t->ports, port, p)->socket == s;
        for (guint p = 0; p < t->ports->len; p++) {
            const struct topology_port *port = TOPOLOGY_AT(t->ports, port, p);
            if (port->host != host || port->socket != s)
                continue;
            const int step = SOCKET_W / n, w = MIN(PORT_W, step - 4);
            const int left = d->socket_first[host].x + (int)s * (SOCKET_W + SOCKET_GAP);
            d->port[p] = (struct box){ left + step * i + (step - w) / 2,
                                       d->socket_first[host].y + SOCKET_H - PORT_H, w, PORT_H };
            i++;
        }
    }
}

/* The middle of what the device hangs on; -1 without. */
static int anchor_of(const struct drawing *d, guint device)
{
    for (guint c = 0; c < d->t->cables->len; c++) {
        const struct topology_cable *cable = TOPOLOGY_AT(d->t->cables, cable, c);
        for (int side = 0; side < 2; side++) {
            const struct topology_end *end = side == 0 ? &cable->to : &cable->from;
            const struct topology_end *above = other_end(cable, end);
            if (end->kind != TOPOLOGY_DEVICE || end->index != device)
                continue;
            if (above->kind == TOPOLOGY_PORT)
                return d->port[above->index].x + d->port[above->index].w / 2;
            if (d->depth[above->index] < d->depth[device])
                return d->device[above->index].x + DEVICE_W / 2;
        }
    }
    return -1;
}

/* A row below the host: each device under what it hangs on as far as its neighbours let it. */
static void place_row(struct drawing *d, guint host, int depth, int left, int right)
{
    int next = left, rest = row_width(d, host, depth);
    for (guint i = 0; i < d->t->devices->len; i++) {
        if (d->owner[i] != host || d->depth[i] != depth)
            continue;
        const int anchor = anchor_of(d, i), wanted = anchor < 0 ? next : anchor - DEVICE_W / 2;
        const int x = CLAMP(wanted, next, MAX(next, right - rest));
        d->device[i] = (struct box){ x,
                                     d->host[host].y + d->host[host].h + ROW_GAP +
                                         (depth - 1) * (DEVICE_H + ROW_GAP),
                                     DEVICE_W, DEVICE_H };
        next = x + DEVICE_W + DEVICE_GAP;
        rest -= DEVICE_W + DEVICE_GAP;
    }
}

static void place(struct drawing *d)
{
    const int deepest = find_depths(d);
    int x = MARGIN;
    for (guint h = 0; h < d->t->hosts->len; h++) {
        const int own = host_width(TOPOLOGY_AT(d->t->hosts, host, h));
        int w = own;
        for (int depth = 1; depth <= deepest; depth++)
            w = MAX(w, row_width(d, h, depth));
        d->host[h] = (struct box){ x + (w - own) / 2, MARGIN, own, HOST_HEAD + SOCKET_H + MARGIN };
        d->socket_first[h] = (struct box){ d->host[h].x + MARGIN, MARGIN + HOST_HEAD, SOCKET_W,
                                           SOCKET_H };
        place_ports(d, h);
        for (int depth = 1; depth <= deepest; depth++)
            place_row(d, h, depth, x, x + w);
        x += w + HOST_GAP;
    }
    d->width = x - HOST_GAP + MARGIN;
    d->height = 2 * MARGIN + HOST_HEAD + SOCKET_H + MARGIN + deepest * (DEVICE_H + ROW_GAP);
}

/* ---- Drawing -------------------------------------------------------------------------------- */

static void draw_box(struct drawing *d, const struct box *box, const char *class)
{
    g_string_append_printf(d->svg,
                           "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
                           "rx=\"4\"/>\n",
                           class, box->x, box->y, box->w, box->h);
}

static void draw_text(struct drawing *d, int x, int y, const char *class, const char *text)
{
    g_string_append_printf(d->svg, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
    html_text(d->svg, text);
    g_string_append(d->svg, "</text>\n");
}

static void draw_host(struct drawing *d, guint index)
{
    const struct topology_host *host = TOPOLOGY_AT(d->t->hosts, host, index);
    draw_box(d, &d->host[index], "t-host");
    draw_text(d, d->host[index].x + MARGIN, d->host[index].y + 23, "t-name", host->name);
    for (unsigned s = 0; s < host->n_sockets; s++) {
        struct box box = d->socket_first[index];
        char *name = g_strdup_printf("socket %u", s);
        box.x += (int)s * (SOCKET_W + SOCKET_GAP);
        if (s > 0) {
            const int y = box.y + SOCKET_H / 3, middle = box.x - SOCKET_GAP / 2;
            g_string_append_printf(d->svg,
                                   "<line class=\"t-wire\" x1=\"%d\" y1=\"%d\" x2=\"%d\" "
                                   "y2=\"%d\"/>\n",
                                   box.x - SOCKET_GAP, y, box.x, y);
            draw_text(d, middle, y - 8, "t-mid", host->interconnect);
        }
        draw_box(d, &box, "t-socket");
        draw_text(d, box.x + MARGIN, box.y + 24, "t-name", name);
        draw_text(d, box.x + MARGIN, box.y + 48, "t-line", host->cores);
        draw_text(d, box.x + MARGIN, box.y + 70, "t-line", host->cache);
        draw_text(d, box.x + MARGIN, box.y + 92, "t-line", host->memory);
        g_free(name);
    }
}

static void draw_boxes(struct drawing *d)
{
    for (guint p = 0; p < d->t->ports->len; p++) {
        const char *name = TOPOLOGY_AT(d->t->ports, port, p)->name, *dot = strchr(name, '.');
        draw_box(d, &d->port[p], "t-port");
        draw_text(d, d->port[p].x + d->port[p].w / 2, d->port[p].y + 21, "t-mid",
                  dot != NULL ? dot + 1 : name);
    }
    for (guint i = 0; i < d->t->devices->len; i++) {
        const struct topology_device *device = TOPOLOGY_AT(d->t->devices, device, i);
        const struct box *box = &d->device[i];
        draw_box(d, box, "t-device");
        draw_text(d, box->x + DEVICE_W / 2, box->y + 22, "t-mid t-name", device->name);
        draw_text(d, box->x + DEVICE_W / 2, box->y + 42, "t-mid", device->type);
    }
}

static const struct box *end_box(const struct drawing *d, const struct topology_end *end)
{
    return end->kind == TOPOLOGY_PORT ? &d->port[end->index] : &d->device[end->index];
}

/* From the lower edge of the upper box to the upper edge of the lower one; between equals from the
 * lower edges. */
static void draw_cable(struct drawing *d, const struct topology_cable *cable)
{
    const struct box *a = end_box(d, &cable->from), *b = end_box(d, &cable->to);
    const struct box *upper = a->y <= b->y ? a : b, *lower = a->y <= b->y ? b : a;
    const int x1 = upper->x + upper->w / 2, y1 = upper->y + upper->h;
    const int y2 = lower->y > upper->y ? lower->y : y1;
    /* straight down from a root port nearby; labels of neighbours keep their distance */
    const int middle = lower->x + lower->w / 2, leeway = upper->w < DEVICE_W ? 40 : 0;
    const int x2 = y2 > y1 ? CLAMP(x1, middle - leeway, middle + leeway) : middle;
    const int bend = y2 > y1 ? (y1 + y2) / 2 : y1 + ROW_GAP / 3;
    char *text = topology_cable_text(cable);
    g_string_append_printf(d->svg, "<path class=\"t-wire\" d=\"M%d %d V%d H%d V%d\"/>\n", x1, y1,
                           bend, x2, y2);
    draw_text(d, x2 + (y2 > y1 ? 8 : 0), y2 > y1 ? y2 - 10 : bend + 16,
              y2 > y1 ? "t-line" : "t-mid", text);
    g_free(text);
}

char *topology_svg(const struct topology *t, const char *id)
{
    struct drawing d = { .t = t, .svg = g_string_new(NULL) };
    char *sentence = topology_sentence(t);
    d.host = g_new0(struct box, t->hosts->len + 1);
    d.socket_first = g_new0(struct box, t->hosts->len + 1);
    d.port = g_new0(struct box, t->ports->len + 1);
    d.device = g_new0(struct box, t->devices->len + 1);
    d.depth = g_new0(int, t->devices->len + 1);
    d.owner = g_new0(guint, t->devices->len + 1);
    place(&d);
    g_string_append_printf(d.svg,
                           "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"topology\" "
                           "style=\"min-width:%dpx\" "
                           "viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
                           "aria-labelledby=\"%s-title %s-desc\">\n<title id=\"%s-title\">"
                           "Topology</title>\n<desc id=\"%s-desc\">",
                           d.width * 3 / 5, d.width, d.height, d.width, d.height, id, id, id, id);
    html_text(d.svg, sentence);
    g_string_append(d.svg, "</desc>\n");
    for (guint h = 0; h < t->hosts->len; h++)
        draw_host(&d, h);
    for (guint c = 0; c < t->cables->len; c++)
        draw_cable(&d, TOPOLOGY_AT(t->cables, cable, c));
    draw_boxes(&d);
    g_string_append(d.svg, "</svg>\n");
    g_free(d.host);
    g_free(d.socket_first);
    g_free(d.port);
    g_free(d.device);
    g_free(d.depth);
    g_free(d.owner);
    g_free(sentence);
    return g_string_free(d.svg, FALSE);
}
