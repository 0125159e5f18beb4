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

#include "cli/base/html.h"
#include "cli/topology/topology_svg.h"

enum {
    MARGIN = TOPOLOGY_MARGIN,
    ROW_GAP = TOPOLOGY_ROW_GAP,
    HOST_HEAD = 34,
    ROLE_H = 22, /* a line: IOMMU and lending */
    DEVICE_H = 52,
    DETAILED_MAX = 4, /* hosts; more are drawn brief */
    LIKE_MIN = 4      /* devices; fewer of a kind are drawn one by one */
};

static const struct sizes detailed = { 210, 150, 100, 66, 30, 170, 24, 40 };
static const struct sizes brief = { 64, 52, 14, 30, 22, 116, 12, 34 };

const char topology_style[] =
    ".t-host{fill:#fff;stroke:#1b1f24;stroke-width:2}.t-socket{fill:#f3f5f7;stroke:#6a7580}"
    ".t-port{fill:#d9e8f5;stroke:#0b4f8a}.t-device{fill:#fbeedd;stroke:#6a3d00;stroke-width:1.5}"
    ".t-wire{fill:none;stroke:#1b1f24;stroke-width:2}.t-ether{stroke:#0b6e4f;stroke-dasharray:8 4}\n"
    ".topology text{font:16px system-ui,'Noto Sans',sans-serif;fill:#1b1f24}"
    ".topology .t-name{font-weight:700}.topology .t-mid{text-anchor:middle}"
    ".topology .t-small{font-size:14px}"
    ".topology .t-line{paint-order:stroke;stroke:#fff;stroke-width:5px;stroke-linejoin:round}\n"
    ".t-kind0{fill:#eef6ea}.t-kind1{fill:#e4ecfa}.t-kind2{fill:#fdeeee}.t-kind3{fill:#f6ecfb}"
    ".t-kind4{fill:#fff8dc}.t-kind5{fill:#e6f6f6}\n";

/* ---- Who stands where ------------------------------------------------------------------------ */

static int host_width(const struct drawing *d, const struct topology_host *host)
{
    const int n = (int)MAX(host->n_sockets, 1u);
    const int sockets = n * d->size->socket_w + (n - 1) * d->size->socket_gap;
    return MAX(sockets, d->brief ? 0 : topology_text_width(host->role)) + 2 * MARGIN;
}

static int row_width(const struct drawing *d, guint host, int depth)
{
    int w = 0;
    for (guint i = 0; i < d->t->devices->len; i++) {
        if (d->like[i] == i && d->place[i].host == host && d->place[i].depth == depth)
            w += topology_device_width(d, i) + d->size->device_gap;
    }
    return w - d->size->device_gap;
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

/* The middle of what the device hangs on, of several their mean; -1 without. */
static int anchor_of(const struct drawing *d, guint device)
{
    int sum = 0, n = 0;
    for (guint c = 0; c < d->t->cables->len; c++) {
        const struct topology_cable *cable = TOPOLOGY_AT(d->t->cables, cable, c);
        for (int side = 0; side < 2; side++) {
            const struct topology_end *end = side == 0 ? &cable->to : &cable->from;
            const struct topology_end *above = topology_other_end(cable, end);
            if (end->kind != TOPOLOGY_DEVICE || end->index != device)
                continue;
            if (above->kind == TOPOLOGY_DEVICE &&
                d->place[above->index].depth >= d->place[device].depth)
                continue;
            const struct box *box = above->kind == TOPOLOGY_PORT ? &d->port[above->index]
                                                                 : &d->device[above->index];
            sum += box->x + box->w / 2;
            n++;
        }
    }
    return n > 0 ? sum / n : -1;
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
           x->generation == y->generation && x->lanes == y->lanes && x->length_m == y->length_m;
}

static void find_like(struct drawing *d)
{
    const guint n = d->t->devices->len;
    d->like = g_new0(guint, n + 1);
    d->n_like = g_new0(guint, n + 1);
    for (guint i = 0; i < n; i++)
        d->like[i] = i;
    for (guint i = 0; i < n; i++) {
        guint n_like = 0;
        for (guint k = i; d->like[i] == i && k < n; k++)
            n_like += d->like[k] == k && are_like(d->t, i, k);
        d->n_like[i] = n_like >= LIKE_MIN ? n_like : 1;
        for (guint k = i + 1; n_like >= LIKE_MIN && k < n; k++) {
            if (d->like[k] == k && are_like(d->t, i, k))
                d->like[k] = i;
        }
    }
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* A row below the host: each device under what it hangs on as far as its neighbours let it. */
static void place_row(struct drawing *d, guint host, int depth, int left, int right)
{
    int next = left, rest = row_width(d, host, depth);
    for (guint i = 0; i < d->t->devices->len; i++) {
        if (d->like[i] != i || d->place[i].host != host || d->place[i].depth != depth)
            continue;
        const int anchor = anchor_of(d, i), w = topology_device_width(d, i),
                  wanted = anchor < 0 ? next : anchor - w / 2;
        const int x = CLAMP(wanted, next, MAX(next, right - rest));
        d->device[i] = (struct box){ x,
                                     d->host[host].y + d->host[host].h + ROW_GAP +
                                         (depth - 1) * (DEVICE_H + ROW_GAP),
                                     w, DEVICE_H };
        next = x + w + d->size->device_gap;
        rest -= w + d->size->device_gap;
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
    d->host[h] = (struct box){ x + (w - own) / 2, y, own, d->head_h + d->size->socket_h + MARGIN };
    d->socket_first[h] = (struct box){ d->host[h].x + MARGIN, y + d->head_h, d->size->socket_w,
                                       d->size->socket_h };
    d->column_right[d->column[h]] = x + w;
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

/* A line for roles above the sockets, if there are any. */
static int head_height(const struct drawing *d)
{
    bool roles = false;
    for (guint h = 0; !d->brief && h < d->t->hosts->len; h++)
        roles = roles || *TOPOLOGY_AT(d->t->hosts, host, h)->role != '\0';
    return HOST_HEAD + (roles ? ROLE_H : 0);
}

/* Few hosts stand in one row, many in rows and columns such that the picture is about twice as wide
 * as high. Right of each column are the lanes of its cables. */
static void place(struct drawing *d)
{
    const int deepest = deepest_of(d, false);
    d->head_h = head_height(d);
    const int height = d->head_h + d->size->socket_h + MARGIN + deepest * (DEVICE_H + ROW_GAP);
    int x = MARGIN, y = MARGIN, same = 0;
    for (guint h = 0; (int)d->t->hosts->len > d->n_columns && h < d->t->hosts->len; h++)
        same = MAX(same, column_width(d, h, deepest));
    for (guint h = 0; h < d->t->hosts->len; h++) {
        const int w = MAX(same, column_width(d, h, deepest));
        if (h > 0 && d->column[h] == 0) {
            x = MARGIN;
            y += height + ROW_GAP;
        }
        place_host(d, h, x, y, w, deepest);
        topology_reach(d, x + w, y + height);
        x += w + d->size->host_gap + d->n_gap[d->column[h]];
    }
    d->levels_y = y + height;
    y += height + topology_levels_height(d) + ROW_GAP;
    place_nowhere(d, place_shared(d, y));
}

/* ---- Drawing --------------------------------------------------------------------------------- */

int topology_text_width(const char *text)
{
    return (int)g_utf8_strlen(text, -1) * 9;
}

void topology_reach(struct drawing *d, int right, int bottom)
{
    d->width = MAX(d->width, right + MARGIN);
    d->height = MAX(d->height, bottom + MARGIN);
}

void topology_draw_box(struct drawing *d, const struct box *box, const char *class)
{
    topology_reach(d, box->x + box->w, box->y + box->h);
    g_string_append_printf(d->svg,
                           "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
                           "rx=\"4\"/>\n",
                           class, box->x, box->y, box->w, box->h);
}

void topology_draw_text(struct drawing *d, GString *svg, int x, int y, const char *class,
                        const char *text)
{
    const int w = topology_text_width(text);
    if (strstr(class, "t-mid") != NULL) {
        x = MAX(x, w / 2);
        topology_reach(d, x + w / 2, y);
    } else {
        topology_reach(d, x + w, y);
    }
    g_string_append_printf(svg, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
    html_text(svg, text);
    g_string_append(svg, "</text>\n");
}

static void draw_host(struct drawing *d, guint index)
{
    const struct topology_host *host = TOPOLOGY_AT(d->t->hosts, host, index);
    topology_draw_box(d, &d->host[index], "t-host");
    topology_draw_text(d, d->svg, d->host[index].x + MARGIN, d->host[index].y + 23, "t-name",
                       host->name);
    if (!d->brief && *host->role != '\0')
        topology_draw_text(d, d->svg, d->host[index].x + MARGIN, d->host[index].y + 23 + ROLE_H,
                           "t-role", host->role);
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
            if (!d->brief)
                topology_draw_text(d, d->svg, middle, y - 8, "t-mid", host->interconnect);
        }
        topology_draw_box(d, &box, "t-socket");
        if (d->brief) {
            topology_draw_text(d, d->svg, box.x + box.w / 2, box.y + 20, "t-mid t-small", name);
            g_free(name);
            continue;
        }
        topology_draw_text(d, d->svg, box.x + MARGIN, box.y + 24, "t-name", name);
        topology_draw_text(d, d->svg, box.x + MARGIN, box.y + 48, "t-part", host->cores);
        topology_draw_text(d, d->svg, box.x + MARGIN, box.y + 70, "t-part", host->cache);
        topology_draw_text(d, d->svg, box.x + MARGIN, box.y + 92, "t-part", host->memory);
        g_free(name);
    }
}

/* One, or what stands for several: "30 x pcie.requester". */
static void draw_device(struct drawing *d, guint index)
{
    const struct topology_device *device = TOPOLOGY_AT(d->t->devices, device, index);
    const struct box *box = &d->device[index];
    const char *small = d->brief ? "t-mid t-small" : "t-mid";
    guint last = index;
    for (guint k = index; k < d->t->devices->len; k++)
        last = d->like[k] == index ? k : last;
    char *name = last == index ? g_strdup(device->name)
                               : g_strdup_printf("%s ... %s", device->name,
                                                 TOPOLOGY_AT(d->t->devices, device, last)->name);
    char *type = last == index ? g_strdup(device->type)
                               : g_strdup_printf("%u x %s", d->n_like[index], device->type);
    topology_draw_box(d, box, "t-device");
    topology_draw_text(d, d->svg, box->x + box->w / 2, box->y + 22, "t-mid t-name", name);
    topology_draw_text(d, d->svg, box->x + box->w / 2, box->y + 42, small, type);
    g_free(name);
    g_free(type);
}

static void draw_boxes(struct drawing *d)
{
    for (guint p = 0; p < d->t->ports->len; p++) {
        const char *name = TOPOLOGY_AT(d->t->ports, port, p)->name, *dot = strchr(name, '.');
        topology_draw_box(d, &d->port[p], "t-port");
        topology_draw_text(d, d->svg, d->port[p].x + d->port[p].w / 2,
                           d->port[p].y + d->port[p].h * 2 / 3,
                           !d->brief ? "t-mid" : "t-mid t-small", dot != NULL ? dot + 1 : name);
    }
    for (guint i = 0; i < d->t->devices->len; i++) {
        if (d->like[i] == i)
            draw_device(d, i);
    }
}

/* Brief hosts have no room for what they lend and borrow: it stands below, a line each. */
static void draw_roles(struct drawing *d)
{
    int y = d->height + ROLE_H / 2;
    for (guint h = 0; d->brief && h < d->t->hosts->len; h++) {
        const struct topology_host *host = TOPOLOGY_AT(d->t->hosts, host, h);
        if (*host->role == '\0')
            continue;
        char *text = g_strdup_printf("%s: %s", host->name, host->role);
        topology_draw_text(d, d->svg, MARGIN, y, "t-role", text);
        y += ROLE_H;
        g_free(text);
    }
}

/* The whole picture but for its frame: boxes and cables of every host. */
static void draw_all(struct drawing *d)
{
    const struct topology *t = d->t;
    const guint n = t->hosts->len;
    d->brief = n > DETAILED_MAX;
    d->size = d->brief ? &brief : &detailed;
    const guint n_columns = d->brief ? (guint)ceil(sqrt(2.0 * n)) : MAX(n, 1);
    d->n_columns = (int)n_columns;
    d->host = g_new0(struct box, n + 1);
    d->socket_first = g_new0(struct box, n + 1);
    d->port = g_new0(struct box, t->ports->len + 1);
    d->device = g_new0(struct box, t->devices->len + 1);
    d->column = g_new0(int, n + 1);
    d->column_right = g_new0(int, n_columns + 1);
    d->n_lanes = g_new0(int, n_columns + 1);
    d->n_gap = g_new0(int, n_columns + 1);
    for (guint h = 0; h < n; h++)
        d->column[h] = (int)(h % n_columns);
    find_like(d);
    topology_count_lanes(d);
    place(d);
    for (guint h = 0; h < n; h++)
        draw_host(d, h);
    topology_draw_cables(d);
    draw_boxes(d);
    g_string_append(d->svg, d->labels->str);
    if (n == 0 && t->devices->len == 0)
        topology_draw_text(d, d->svg, MARGIN, MARGIN + ROLE_H, "t-role", "no hosts, no devices");
    draw_roles(d);
    g_free(d->host);
    g_free(d->socket_first);
    g_free(d->port);
    g_free(d->device);
    g_free(d->column);
    g_free(d->column_right);
    g_free(d->n_lanes);
    g_free(d->n_gap);
    g_free(d->like);
    g_free(d->n_like);
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
    struct drawing d = {
        .t = t, .svg = g_string_new(NULL), .labels = g_string_new(NULL), .place = topology_places(t)
    };
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
    g_string_free(d.labels, TRUE);
    g_free(cluster);
    g_free(d.place);
    g_free(sentence);
    return g_string_free(svg, FALSE);
}
