/*
 * The picture of a topology, in layers. Hosts stand side by side, their sockets within them, root
 * ports at the lower edge of their socket; devices hang below in rows, as many cables away from a
 * root port as their row says. What is as near to one host as to another (the switch of a cluster)
 * is a bar below all of them, and what hangs nowhere stands last. Many hosts are drawn brief, in
 * several rows; if they share something, as a cluster (topology_cluster.c). Cables carry
 * generation, lanes and length.
 */
#include <math.h>
#include <string.h>

#include "cli/html.h"
#include "cli/topology.h"

enum {
    MARGIN = 10,
    HOST_HEAD = 34,
    DEVICE_H = 52,
    ROW_GAP = 64,     /* the cables' labels */
    DETAILED_MAX = 4, /* hosts; more are drawn brief */
    LANE_STEP = 4     /* between cables beside each other */
};

struct sizes {
    int socket_w, socket_h;
    int socket_gap; /* the interconnect's label */
    int port_w, port_h, device_w, device_gap, host_gap;
};

static const struct sizes detailed = { 210, 150, 100, 66, 30, 170, 24, 40 };
static const struct sizes brief = { 64, 52, 14, 30, 22, 116, 12, 34 };

struct box {
    int x, y, w, h;
};

struct drawing {
    const struct topology *t;
    const struct sizes *size;
    struct topology_place *place; /* of devices */
    struct box *host, *socket_first, *port, *device;
    int *column_right; /* of hosts: where the gap begins */
    int width, height;
    GString *svg;
};

const char topology_style[] =
    ".t-host{fill:#fff;stroke:#1b1f24;stroke-width:2}.t-socket{fill:#f3f5f7;stroke:#6a7580}"
    ".t-port{fill:#d9e8f5;stroke:#0b4f8a}.t-device{fill:#fbeedd;stroke:#6a3d00;stroke-width:1.5}"
    ".t-wire{fill:none;stroke:#1b1f24;stroke-width:2}\n"
    ".topology text{font:16px system-ui,'Noto Sans',sans-serif;fill:#1b1f24}"
    ".topology .t-name{font-weight:700}.topology .t-mid{text-anchor:middle}"
    ".topology .t-small{font-size:14px}\n"
    ".t-kind0{fill:#eef6ea}.t-kind1{fill:#e4ecfa}.t-kind2{fill:#fdeeee}.t-kind3{fill:#f6ecfb}"
    ".t-kind4{fill:#fff8dc}.t-kind5{fill:#e6f6f6}\n";

/* ---- Who stands where ----------------------------------------------------------------------- */

static int host_width(const struct drawing *d, const struct topology_host *host)
{
    const int n = (int)MAX(host->n_sockets, 1u);
    return n * d->size->socket_w + (n - 1) * d->size->socket_gap + 2 * MARGIN;
}

static int row_width(const struct drawing *d, guint host, int depth)
{
    int n = 0;
    for (guint i = 0; i < d->t->devices->len; i++)
        n += d->place[i].host == host && d->place[i].depth == depth;
    return n * d->size->device_w + (n - 1) * d->size->device_gap;
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
            const int step = d->size->socket_w / n, w = MIN(d->size->port_w, step - 4);
            const int left = d->socket_first[host].x +
                             (int)s * (d->size->socket_w + d->size->socket_gap);
            d->port[p] =
                (struct box){ left + step * i + (step - w) / 2,
                              d->socket_first[host].y + d->size->socket_h - d->size->port_h, w,
                              d->size->port_h };
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
            const struct topology_end *above = topology_other_end(cable, end);
            if (end->kind != TOPOLOGY_DEVICE || end->index != device)
                continue;
            if (above->kind == TOPOLOGY_PORT)
                return d->port[above->index].x + d->port[above->index].w / 2;
            if (d->place[above->index].depth < d->place[device].depth)
                return d->device[above->index].x + d->device[above->index].w / 2;
        }
    }
    return -1;
}

/* A row below the host: each device under what it hangs on as far as its neighbours let it. */
static void place_row(struct drawing *d, guint host, int depth, int left, int right)
{
    int next = left, rest = row_width(d, host, depth);
    for (guint i = 0; i < d->t->devices->len; i++) {
        if (d->place[i].host != host || d->place[i].depth != depth)
            continue;
        const int anchor = anchor_of(d, i),
                  wanted = anchor < 0 ? next : anchor - d->size->device_w / 2;
        const int x = CLAMP(wanted, next, MAX(next, right - rest));
        d->device[i] = (struct box){ x,
                                     d->host[host].y + d->host[host].h + ROW_GAP +
                                         (depth - 1) * (DEVICE_H + ROW_GAP),
                                     d->size->device_w, DEVICE_H };
        next = x + d->size->device_w + d->size->device_gap;
        rest -= d->size->device_w + d->size->device_gap;
    }
}

static int deepest_of(const struct drawing *d, bool shared)
{
    int deepest = 0;
    for (guint i = 0; i < d->t->devices->len; i++) {
        if ((d->place[i].host == TOPOLOGY_SHARED) == shared)
            deepest = MAX(deepest, d->place[i].depth);
    }
    return deepest;
}

static int column_width(const struct drawing *d, guint host, int deepest)
{
    int w = host_width(d, TOPOLOGY_AT(d->t->hosts, host, host));
    for (int depth = 1; depth <= deepest; depth++)
        w = MAX(w, row_width(d, host, depth));
    return w;
}

/* One host with what hangs on it, its upper left corner at x, y. */
static void place_host(struct drawing *d, guint h, int x, int y, int w, int deepest)
{
    const int own = host_width(d, TOPOLOGY_AT(d->t->hosts, host, h));
    d->host[h] = (struct box){ x + (w - own) / 2, y, own, HOST_HEAD + d->size->socket_h + MARGIN };
    d->socket_first[h] = (struct box){ d->host[h].x + MARGIN, y + HOST_HEAD, d->size->socket_w,
                                       d->size->socket_h };
    d->column_right[h] = x + w;
    place_ports(d, h);
    for (int depth = 1; depth <= deepest; depth++)
        place_row(d, h, depth, x, x + w);
}

/* Bars as wide as the picture, side by side in each of their layers; the next layer's y. */
static int place_shared(struct drawing *d, int y)
{
    const int deepest = deepest_of(d, true);
    for (int depth = 1; depth <= deepest; depth++) {
        int n = 0, i = 0;
        for (guint k = 0; k < d->t->devices->len; k++)
            n += d->place[k].host == TOPOLOGY_SHARED && d->place[k].depth == depth;
        for (guint k = 0; n > 0 && k < d->t->devices->len; k++) {
            const int step = (d->width - 2 * MARGIN) / n;
            if (d->place[k].host != TOPOLOGY_SHARED || d->place[k].depth != depth)
                continue;
            d->device[k] = (struct box){ MARGIN + step * i, y,
                                         i < n - 1 ? step - d->size->device_gap : step, DEVICE_H };
            i++;
        }
        y += n > 0 ? DEVICE_H + ROW_GAP : 0;
    }
    return y;
}

/* As many side by side as the picture is wide; the y below them. */
static int place_nowhere(struct drawing *d, int y)
{
    int x = MARGIN;
    bool any = false;
    for (guint i = 0; i < d->t->devices->len; i++) {
        if (d->place[i].host != TOPOLOGY_NOWHERE)
            continue;
        if (x > MARGIN && x + d->size->device_w > d->width - MARGIN) {
            x = MARGIN;
            y += DEVICE_H + d->size->device_gap;
        }
        d->device[i] = (struct box){ x, y, d->size->device_w, DEVICE_H };
        x += d->size->device_w + d->size->device_gap;
        any = true;
    }
    return any ? y + DEVICE_H + ROW_GAP : y;
}

/* Few hosts stand in one row, many in rows and columns such that the picture is about twice as wide
 * as high. */
static void place(struct drawing *d)
{
    const int deepest = deepest_of(d, false), n = (int)d->t->hosts->len;
    const int n_columns = n <= DETAILED_MAX ? MAX(n, 1) : (int)ceil(sqrt(2.0 * n));
    const int height = HOST_HEAD + d->size->socket_h + MARGIN + deepest * (DEVICE_H + ROW_GAP);
    int x = MARGIN, y = MARGIN, same = 0;
    for (guint h = 0; n > n_columns && h < d->t->hosts->len; h++)
        same = MAX(same, column_width(d, h, deepest));
    for (guint h = 0; h < d->t->hosts->len; h++) {
        const int w = MAX(same, column_width(d, h, deepest));
        if (h > 0 && (int)h % n_columns == 0) {
            x = MARGIN;
            y += height + ROW_GAP;
        }
        place_host(d, h, x, y, w, deepest);
        x += w + d->size->host_gap;
        d->width = MAX(d->width, x - d->size->host_gap + MARGIN);
    }
    d->height = place_nowhere(d, place_shared(d, y + height + ROW_GAP)) - ROW_GAP + MARGIN;
    if (d->t->wires->len != 0)
        d->height += ROW_GAP; /* they run below the devices */
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
        box.x += (int)s * (d->size->socket_w + d->size->socket_gap);
        if (s > 0) {
            const int y = box.y + d->size->socket_h / 3, middle = box.x - d->size->socket_gap / 2;
            g_string_append_printf(d->svg,
                                   "<line class=\"t-wire\" x1=\"%d\" y1=\"%d\" x2=\"%d\" "
                                   "y2=\"%d\"/>\n",
                                   box.x - d->size->socket_gap, y, box.x, y);
            if (d->size == &detailed)
                draw_text(d, middle, y - 8, "t-mid", host->interconnect);
        }
        draw_box(d, &box, "t-socket");
        if (d->size != &detailed) {
            draw_text(d, box.x + box.w / 2, box.y + 20, "t-mid t-small", name);
            g_free(name);
            continue;
        }
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
        draw_text(d, d->port[p].x + d->port[p].w / 2, d->port[p].y + d->port[p].h * 2 / 3,
                  d->size == &detailed ? "t-mid" : "t-mid t-small", dot != NULL ? dot + 1 : name);
    }
    for (guint i = 0; i < d->t->devices->len; i++) {
        const struct topology_device *device = TOPOLOGY_AT(d->t->devices, device, i);
        const struct box *box = &d->device[i];
        draw_box(d, box, "t-device");
        draw_text(d, box->x + box->w / 2, box->y + 22, "t-mid t-name", device->name);
        draw_text(d, box->x + box->w / 2, box->y + 42,
                  d->size == &detailed ? "t-mid" : "t-mid t-small", device->type);
    }
}

static const struct box *end_box(const struct drawing *d, const struct topology_end *end)
{
    return end->kind == TOPOLOGY_PORT ? &d->port[end->index] : &d->device[end->index];
}

static guint host_of(const struct drawing *d, const struct topology_end *end)
{
    return end->kind == TOPOLOGY_PORT ? TOPOLOGY_AT(d->t->ports, port, end->index)->host
                                      : d->place[end->index].host;
}

/* Nothing stands between the lower edge of the box and the bars. */
static bool is_lowest(const struct drawing *d, const struct topology_end *end)
{
    const int depth = end->kind == TOPOLOGY_PORT ? 0 : d->place[end->index].depth;
    return depth == deepest_of(d, false);
}

/* To the bar: straight down, or in the gap right of its host, beside so many others. */
static void draw_lane(struct drawing *d, const struct topology_end *from, const struct box *bar,
                      const char *text, int n_before)
{
    const struct box *box = end_box(d, from);
    const guint host = host_of(d, from);
    const int x = box->x + box->w / 2, y = box->y + box->h, down = y + ROW_GAP / 3;
    int lane = x + LANE_STEP * n_before;
    if (!is_lowest(d, from))
        lane = d->column_right[host] + LANE_STEP * (1 + n_before);
    g_string_append_printf(d->svg, "<path class=\"t-wire\" d=\"M%d %d V%d H%d V%d", x, y, down,
                           lane, bar->y - ROW_GAP / 4);
    g_string_append_printf(d->svg, " H%d V%d\"/>\n",
                           CLAMP(lane, bar->x + MARGIN, bar->x + bar->w - MARGIN), bar->y);
    draw_text(d, x + 8, down + 18, "t-line", text);
}

/* From the lower edge of the upper box to the upper edge of the lower one; between equals from the
 * lower edges. */
static void draw_short(struct drawing *d, const struct box *a, const struct box *b,
                       const char *text)
{
    const struct box *upper = a->y <= b->y ? a : b, *lower = a->y <= b->y ? b : a;
    const int x1 = upper->x + upper->w / 2, y1 = upper->y + upper->h;
    const int y2 = lower->y > upper->y ? lower->y : y1;
    /* straight down from a root port nearby; labels of neighbours keep their distance */
    const int middle = lower->x + lower->w / 2;
    const int leeway = upper->w < d->size->device_w ? d->size->device_w / 4 : 0;
    const int x2 = y2 > y1 ? CLAMP(x1, middle - leeway, middle + leeway) : middle;
    const int bend = y2 > y1 ? (y1 + y2) / 2 : y1 + ROW_GAP / 3;
    g_string_append_printf(d->svg, "<path class=\"t-wire\" d=\"M%d %d V%d H%d V%d\"/>\n", x1, y1,
                           bend, x2, y2);
    draw_text(d, x2 + (y2 > y1 ? 8 : 0), y2 > y1 ? y2 - 10 : bend + 16,
              y2 > y1 ? "t-line" : "t-mid", text);
}

static void draw_cable(struct drawing *d, guint index)
{
    const struct topology_cable *cable = TOPOLOGY_AT(d->t->cables, cable, index);
    const struct box *a = end_box(d, &cable->from), *b = end_box(d, &cable->to);
    const bool a_shared = host_of(d, &cable->from) == TOPOLOGY_SHARED;
    const bool b_shared = host_of(d, &cable->to) == TOPOLOGY_SHARED;
    char *text = topology_cable_text(cable);
    if (a_shared == b_shared) {
        draw_short(d, a, b, text);
    } else {
        const struct topology_end *end = a_shared ? &cable->to : &cable->from;
        int n_before = 0; /* of the same host, in the same gap */
        for (guint c = 0; c < index; c++) {
            const struct topology_cable *other = TOPOLOGY_AT(d->t->cables, cable, c);
            const guint from = host_of(d, &other->from), to = host_of(d, &other->to);
            n_before += (from == TOPOLOGY_SHARED || to == TOPOLOGY_SHARED) &&
                        (from == host_of(d, end) || to == host_of(d, end));
        }
        draw_lane(d, end, a_shared ? a : b, text, n_before);
    }
    g_free(text);
}

/* Ethernet runs below the devices, from one to the other; not to those that hang on no host. */
static void draw_wire(struct drawing *d, guint index)
{
    const struct topology_cable *wire = TOPOLOGY_AT(d->t->wires, cable, index);
    const struct box *a = end_box(d, &wire->from), *b = end_box(d, &wire->to);
    char *text = topology_cable_text(wire);
    if (a->w != 0 && b->w != 0)
        draw_short(d, a, b, text);
    g_free(text);
}

/* The whole picture but for its frame: boxes and cables of every host. */
static void draw_all(struct drawing *d)
{
    const struct topology *t = d->t;
    d->size = t->hosts->len <= DETAILED_MAX ? &detailed : &brief;
    d->host = g_new0(struct box, t->hosts->len + 1);
    d->socket_first = g_new0(struct box, t->hosts->len + 1);
    d->port = g_new0(struct box, t->ports->len + 1);
    d->device = g_new0(struct box, t->devices->len + 1);
    d->column_right = g_new0(int, t->hosts->len + 1);
    place(d);
    for (guint h = 0; h < t->hosts->len; h++)
        draw_host(d, h);
    for (guint c = 0; c < t->cables->len; c++)
        draw_cable(d, c);
    for (guint w = 0; w < t->wires->len; w++)
        draw_wire(d, w);
    draw_boxes(d);
    g_free(d->host);
    g_free(d->socket_first);
    g_free(d->port);
    g_free(d->device);
    g_free(d->column_right);
}

/* Many hosts that share switches. */
static bool is_cluster(const struct drawing *d)
{
    bool shared = false;
    for (guint i = 0; i < d->t->devices->len; i++)
        shared = shared || d->place[i].host == TOPOLOGY_SHARED;
    return shared && d->t->hosts->len > DETAILED_MAX;
}

char *topology_svg(const struct topology *t, const char *id, bool alone)
{
    struct drawing d = { .t = t, .svg = g_string_new(NULL), .place = topology_places(t) };
    GString *svg = g_string_new(NULL);
    char *sentence = topology_sentence(t), *cluster = NULL;
    if (is_cluster(&d))
        cluster = topology_cluster_svg(t, &d.width, &d.height);
    else
        draw_all(&d);
    g_string_append_printf(svg,
                           "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"topology\" "
                           "style=\"min-width:%dpx\" "
                           "viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
                           "aria-labelledby=\"%s-title %s-desc\">\n<title id=\"%s-title\">"
                           "Topology</title>\n<desc id=\"%s-desc\">",
                           d.width * 3 / 5, d.width, d.height, d.width, d.height, id, id, id, id);
    html_text(svg, sentence);
    g_string_append(svg, "</desc>\n");
    if (alone)
        g_string_append_printf(svg, "<style>\n%s.topology{background:#fff}\n</style>\n",
                               topology_style);
    g_string_append_printf(svg, "%s</svg>\n", cluster != NULL ? cluster : d.svg->str);
    g_string_free(d.svg, TRUE);
    g_free(cluster);
    g_free(d.place);
    g_free(sentence);
    return g_string_free(svg, FALSE);
}
