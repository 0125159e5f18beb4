/*
 * The picture of a cluster: hosts below the switches that they share. A switch is a bar; below it
 * stand the switches that hang on it, side by side or in rows, and its hosts in columns, each a
 * small box with a letter for its kind. What a host of each kind consists of is said once, in a
 * card below the picture. Whatever closes a circle of cables is said there, too.
 */
#include <math.h>
#include <string.h>

#include "cli/base/html.h"
#include "cli/topology/topology.h"

enum {
    MARGIN = 14,
    GAP = 12,
    HOST_W = 92,
    HOST_H = 30,
    TWIG = 14, /* from the trunk of a column to its hosts */
    BAR_H = 44,
    DROP = 40, /* from a bar to what hangs below, with the cables' label */
    LINE_H = 19,
    CHAR_W = 8,   /* of a card's text, at most on average */
    IN_A_ROW = 8, /* switches below a switch */
    N_FILLS = 6,
    ROLES_MAX = 16 /* hosts whose borrowed devices are named */
};

struct region { /* of a switch, with all that is below it */
    int x, y, w, h, columns;
    GArray *below;                   /* guint: switches */
    GArray *hosts;                   /* guint */
    const struct topology_cable *up; /* NULL: the top */
    bool seen;
};

struct kind {
    char *shape;
    guint first;
    guint n;
};

struct picture {
    const struct topology *t;
    struct topology_place *place;
    struct region *region; /* one per device, used where it is shared; then one for other hosts */
    GArray *tops;          /* guint: of regions */
    GArray *kinds;
    guint *kind_of; /* hosts */
    GString *more;  /* cables that close circles, a line each */
    GString *svg;
    int width, y;
};

/* ---- What hangs on what ---------------------------------------------------------------------- */

static bool is_shared(const struct picture *p, const struct topology_end *end)
{
    return end->kind == TOPOLOGY_DEVICE && p->place[end->index].host == TOPOLOGY_SHARED;
}

/* Breadth first from the switch that is furthest from hosts; each is below the one that finds it.
 */
static void hang_switches(struct picture *p, guint top)
{
    GArray *queue = g_array_new(FALSE, FALSE, sizeof(guint));
    p->region[top].seen = true;
    g_array_append_val(queue, top);
    for (guint i = 0; i < queue->len; i++) {
        const guint above = g_array_index(queue, guint, i);
        for (guint c = 0; c < p->t->cables->len; c++) {
            const struct topology_cable *cable = TOPOLOGY_AT(p->t->cables, cable, c);
            const struct topology_end *near = &cable->from;
            if (!is_shared(p, &cable->from) || !is_shared(p, &cable->to))
                continue;
            if (near->index != above)
                near = &cable->to;
            const guint below = topology_other_end(cable, near)->index;
            if (near->index != above || p->region[below].seen)
                continue;
            p->region[below].seen = true;
            p->region[below].up = cable;
            g_array_append_val(p->region[above].below, below);
            g_array_append_val(queue, below);
        }
    }
    g_array_free(queue, TRUE);
}

static void hang_all_switches(struct picture *p)
{
    for (;;) {
        guint top = G_MAXUINT;
        for (guint i = 0; i < p->t->devices->len; i++) {
            if (p->place[i].host == TOPOLOGY_SHARED && !p->region[i].seen &&
                (top == G_MAXUINT || p->place[i].depth > p->place[top].depth))
                top = i;
        }
        if (top == G_MAXUINT)
            return;
        g_array_append_val(p->tops, top);
        hang_switches(p, top);
    }
}

static guint host_at(const struct picture *p, const struct topology_end *end)
{
    return end->kind == TOPOLOGY_PORT ? TOPOLOGY_AT(p->t->ports, port, end->index)->host
                                      : p->place[end->index].host;
}

/* Each below the first switch that a cable leads to; others in a region of their own. */
static void hang_hosts(struct picture *p)
{
    guint *at = g_new(guint, p->t->hosts->len + 1);
    guint alone = p->t->devices->len;
    for (guint h = 0; h < p->t->hosts->len; h++)
        at[h] = alone;
    for (guint c = 0; c < p->t->cables->len; c++) {
        const struct topology_cable *cable = TOPOLOGY_AT(p->t->cables, cable, c);
        const bool from = is_shared(p, &cable->from), to = is_shared(p, &cable->to);
        const struct topology_end *chip = from ? &cable->from : &cable->to;
        const guint host = from != to ? host_at(p, topology_other_end(cable, chip)) : G_MAXUINT;
        if (host < p->t->hosts->len && at[host] == alone)
            at[host] = chip->index;
    }
    for (guint h = 0; h < p->t->hosts->len; h++)
        g_array_append_val(p->region[at[h]].hosts, h);
    if (p->region[alone].hosts->len != 0)
        g_array_append_val(p->tops, alone);
    g_free(at);
}

static void note_circles(struct picture *p)
{
    for (guint c = 0; c < p->t->cables->len; c++) {
        const struct topology_cable *cable = TOPOLOGY_AT(p->t->cables, cable, c);
        const bool from_shared = is_shared(p, &cable->from), to_shared = is_shared(p, &cable->to);
        const bool bars = from_shared && to_shared && p->region[cable->from.index].up != cable &&
                          p->region[cable->to.index].up != cable;
        const bool hosts = !from_shared && !to_shared &&
                           host_at(p, &cable->from) != host_at(p, &cable->to);
        if (!bars && !hosts)
            continue;
        char *from = topology_end_text(p->t, &cable->from);
        char *to = topology_end_text(p->t, &cable->to), *link = topology_cable_text(cable);
        g_string_append_printf(p->more, "also cabled: %s -- %s -- %s\n", from, link, to);
        g_free(from);
        g_free(to);
        g_free(link);
    }
}

static void find_kinds(struct picture *p)
{
    for (guint h = 0; h < p->t->hosts->len; h++) {
        char *shape = topology_host_text(p->t, p->place, h, false);
        guint k = 0;
        while (k < p->kinds->len &&
               strcmp(g_array_index(p->kinds, struct kind, k).shape, shape) != 0)
            k++;
        if (k == p->kinds->len) {
            const struct kind kind = { .shape = g_strdup(shape), .first = h };
            g_array_append_val(p->kinds, kind);
        }
        g_array_index(p->kinds, struct kind, k).n++;
        p->kind_of[h] = k;
        g_free(shape);
    }
}

/* ---- Who stands where ------------------------------------------------------------------------ */

static int host_columns(const struct region *r)
{
    return r->hosts->len == 0 ? 0 : MAX(1, (int)ceil(sqrt(r->hosts->len / 2.5)));
}

static int hosts_width(const struct region *r)
{
    return host_columns(r) * (TWIG + HOST_W + GAP);
}

static int hosts_height(const struct region *r)
{
    const int n = host_columns(r), rows = n == 0 ? 0 : ((int)r->hosts->len + n - 1) / n;
    return rows == 0 ? 0 : DROP + rows * (HOST_H + GAP);
}

/* Sizes, from below. */
static void measure(struct picture *p, guint index)
{
    struct region *r = &p->region[index];
    const guint n = r->below->len;
    int row_w = 0, row_h = 0;
    r->columns = (int)(n <= IN_A_ROW ? n : (guint)ceil(sqrt(2.0 * n)));
    r->w = hosts_width(r);
    r->h = BAR_H + hosts_height(r);
    for (guint i = 0; i < n; i++) {
        const guint below = g_array_index(r->below, guint, i);
        if ((int)i % r->columns == 0)
            row_w = row_h = 0;
        measure(p, below);
        row_w += p->region[below].w + 2 * GAP;
        r->h -= row_h;
        row_h = MAX(row_h, DROP + p->region[below].h + GAP);
        r->h += row_h;
        r->w = MAX(r->w, row_w + (n > (guint)r->columns ? 2 * GAP : 0));
    }
    r->w = MAX(r->w, 2 * HOST_W);
}

static void stand(struct picture *p, guint index, int x, int y)
{
    struct region *r = &p->region[index];
    const guint n = r->below->len;
    const int left = x + (n > (guint)r->columns ? 2 * GAP : 0);
    int next_x = left, next_y = y + BAR_H + hosts_height(r), row_h = 0;
    r->x = x;
    r->y = y;
    for (guint i = 0; i < n; i++) {
        const guint below = g_array_index(r->below, guint, i);
        if (i > 0 && (int)i % r->columns == 0) {
            next_x = left;
            next_y += row_h;
            row_h = 0;
        }
        stand(p, below, next_x + GAP, next_y + DROP);
        next_x += p->region[below].w + 2 * GAP;
        row_h = MAX(row_h, DROP + p->region[below].h + GAP);
    }
}

/* ---- Drawing --------------------------------------------------------------------------------- */

static void draw_box(struct picture *p, const char *class, int x, int y, int w, int h)
{
    g_string_append_printf(
        p->svg, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\"/>\n",
        class, x, y, w, h);
}

static void draw_text(struct picture *p, const char *class, int x, int y, const char *text)
{
    g_string_append_printf(p->svg, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
    html_text(p->svg, text);
    g_string_append(p->svg, "</text>\n");
}

static void draw_line(struct picture *p, int x1, int y1, int x2, int y2)
{
    g_string_append_printf(p->svg, "<path class=\"t-wire\" d=\"M%d %d V%d H%d\"/>\n", x1, y1, y2,
                           x2);
}

static char letter(guint kind)
{
    return kind < 26 ? (char)('A' + kind) : '+';
}

static void draw_hosts(struct picture *p, const struct region *r)
{
    const int n = host_columns(r), rows = n == 0 ? 0 : ((int)r->hosts->len + n - 1) / n;
    const int left = r->x + (r->w - hosts_width(r)) / 2, top = r->y + BAR_H + DROP / 2;
    for (guint i = 0; i < r->hosts->len; i++) {
        const guint h = g_array_index(r->hosts, guint, i), kind = p->kind_of[h];
        const int x = left + (int)i / rows * (TWIG + HOST_W + GAP);
        const int y = top + (int)i % rows * (HOST_H + GAP);
        const char mark[] = { letter(kind), '\0' };
        char class[24];
        g_snprintf(class, sizeof(class), "t-host t-kind%u", kind % N_FILLS);
        draw_line(p, x + TWIG / 2, r->y + BAR_H, x + TWIG, y + HOST_H / 2);
        draw_box(p, class, x + TWIG, y, HOST_W, HOST_H);
        draw_text(p, "t-name t-small", x + TWIG + 6, y + 20,
                  TOPOLOGY_AT(p->t->hosts, host, h)->name);
        draw_text(p, "t-small t-mid", x + TWIG + HOST_W - 12, y + 20, mark);
    }
}

static void draw_region(struct picture *p, guint index)
{
    const struct region *r = &p->region[index];
    const bool chip = index < p->t->devices->len;
    const int bottom = r->y + BAR_H, many = r->below->len > (guint)r->columns;
    draw_hosts(p, r);
    for (guint i = 0; i < r->below->len; i++) {
        const struct region *below = &p->region[g_array_index(r->below, guint, i)];
        const int middle = below->x + below->w / 2, bend = below->y - DROP / 2;
        const int trunk = many ? r->x + GAP : r->x + r->w / 2;
        char *text = topology_cable_text(below->up);
        draw_line(p, trunk, bottom, middle, bend);
        draw_line(p, middle, bend, middle, below->y);
        draw_text(p, "t-small", middle + 6, below->y - 6, text);
        draw_region(p, g_array_index(r->below, guint, i));
        g_free(text);
    }
    draw_box(p, chip ? "t-device" : "t-socket", r->x, r->y, r->w, BAR_H);
    draw_text(p, "t-mid t-name", r->x + r->w / 2, r->y + 19,
              chip ? TOPOLOGY_AT(p->t->devices, device, index)->name : "at no switch");
    draw_text(p, "t-mid t-small", r->x + r->w / 2, r->y + 37,
              chip ? TOPOLOGY_AT(p->t->devices, device, index)->type : "");
}

/* Lines of text in a box; returns its height. */
static int draw_card(struct picture *p, const char *class, int x, int y, int w, const char *head,
                     char **lines)
{
    const int n = (int)g_strv_length(lines), h = (n + 1) * LINE_H + GAP;
    draw_box(p, class, x, y, w, h);
    draw_text(p, "t-name t-small", x + GAP, y + LINE_H, head);
    for (int i = 0; i < n; i++) {
        const int indent = (int)strspn(lines[i], " ");
        draw_text(p, "t-small", x + GAP + CHAR_W * indent, y + (i + 2) * LINE_H, lines[i] + indent);
    }
    return h;
}

static char **lines_of(const char *text)
{
    char *copy = g_strchomp(g_strdup(text));
    char **lines = g_strsplit(copy, "\n", -1);
    g_free(copy);
    return lines;
}

static int widest(char **lines)
{
    size_t n = 40;
    for (guint i = 0; lines[i] != NULL; i++)
        n = MAX(n, strlen(lines[i]));
    return (int)n * CHAR_W + 2 * GAP;
}

/* One per kind, as many side by side as the picture is wide. */
static void draw_cards(struct picture *p)
{
    int x = MARGIN, row_h = 0;
    for (guint k = 0; k < p->kinds->len; k++) {
        const struct kind *kind = &g_array_index(p->kinds, struct kind, k);
        const char *name = TOPOLOGY_AT(p->t->hosts, host, kind->first)->name;
        char *text = topology_host_text(p->t, p->place, kind->first, true);
        char **lines = lines_of(text), class[24];
        char *head = g_strdup_printf("%c: %u host%s like this, the first of them %s", letter(k),
                                     kind->n, kind->n == 1 ? "" : "s", name);
        const int w = widest(lines);
        if (x > MARGIN && x + w > p->width - MARGIN) {
            x = MARGIN;
            p->y += row_h + GAP;
            row_h = 0;
        }
        g_snprintf(class, sizeof(class), "t-socket t-kind%u", k % N_FILLS);
        const int card_h = draw_card(p, class, x, p->y, w, head, lines);
        row_h = MAX(row_h, card_h);
        x += w + GAP;
        p->width = MAX(p->width, x - GAP + MARGIN);
        g_free(head);
        g_free(text);
        g_strfreev(lines);
    }
    p->y += row_h + GAP;
    if (p->more->len > 0) {
        char **lines = lines_of(p->more->str);
        p->width = MAX(p->width, MARGIN + widest(lines) + MARGIN);
        p->y += draw_card(p, "t-socket", MARGIN, p->y, widest(lines), "Besides", lines) + GAP;
        g_strfreev(lines);
    }
}

/* A card names what the first host of its kind borrows; this, what each does. */
static void note_borrowers(struct picture *p)
{
    unsigned n = 0;
    for (guint h = 0; h < p->t->hosts->len; h++) {
        const struct topology_host *host = TOPOLOGY_AT(p->t->hosts, host, h);
        if (strstr(host->role_alike, "borrows ") == NULL)
            continue;
        if (n++ < ROLES_MAX)
            g_string_append_printf(p->more, "%s: %s\n", host->name, host->role);
    }
    if (n > ROLES_MAX)
        g_string_append_printf(p->more, "%u more hosts borrow\n", n - ROLES_MAX);
}

static void note_rest(struct picture *p)
{
    note_circles(p);
    note_borrowers(p);
    for (guint w = 0; w < p->t->wires->len; w++) {
        const struct topology_cable *wire = TOPOLOGY_AT(p->t->wires, cable, w);
        char *from = topology_end_text(p->t, &wire->from), *to = topology_end_text(p->t, &wire->to);
        char *rate = topology_cable_text(wire);
        g_string_append_printf(p->more, "Ethernet: %s -- %s -- %s\n", from, rate, to);
        g_free(from);
        g_free(to);
        g_free(rate);
    }
    for (guint i = 0; i < p->t->devices->len; i++)
        if (p->place[i].host == TOPOLOGY_NOWHERE)
            g_string_append_printf(p->more, "at no host: %s (%s)\n",
                                   TOPOLOGY_AT(p->t->devices, device, i)->name,
                                   TOPOLOGY_AT(p->t->devices, device, i)->type);
}

char *topology_cluster_svg(const struct topology *t, int *width, int *height)
{
    struct picture p = { .t = t, .y = MARGIN, .svg = g_string_new(NULL) };
    p.place = topology_places(t);
    p.region = g_new0(struct region, t->devices->len + 1);
    p.kind_of = g_new0(guint, t->hosts->len + 1);
    p.tops = g_array_new(FALSE, FALSE, sizeof(guint));
    p.kinds = g_array_new(FALSE, FALSE, sizeof(struct kind));
    p.more = g_string_new(NULL);
    for (guint i = 0; i <= t->devices->len; i++) {
        p.region[i].below = g_array_new(FALSE, FALSE, sizeof(guint));
        p.region[i].hosts = g_array_new(FALSE, FALSE, sizeof(guint));
    }
    hang_all_switches(&p);
    hang_hosts(&p);
    find_kinds(&p);
    note_rest(&p);
    for (guint i = 0; i < p.tops->len; i++) {
        const guint top = g_array_index(p.tops, guint, i);
        measure(&p, top);
        stand(&p, top, MARGIN, p.y);
        p.y += p.region[top].h + 2 * GAP;
        p.width = MAX(p.width, p.region[top].w + 2 * MARGIN);
        draw_region(&p, top);
    }
    draw_cards(&p);
    *width = p.width;
    *height = p.y;
    for (guint i = 0; i <= t->devices->len; i++) {
        g_array_free(p.region[i].below, TRUE);
        g_array_free(p.region[i].hosts, TRUE);
    }
    for (guint k = 0; k < p.kinds->len; k++)
        g_free(g_array_index(p.kinds, struct kind, k).shape);
    g_array_free(p.kinds, TRUE);
    g_array_free(p.tops, TRUE);
    g_string_free(p.more, TRUE);
    g_free(p.region);
    g_free(p.kind_of);
    g_free(p.place);
    return g_string_free(p.svg, FALSE);
}
