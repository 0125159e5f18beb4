/*
 * The cables of a picture. From a box to what hangs on it a cable is short: down, across halfway,
 * down. To a bar below all hosts it goes straight down if nothing stands in its way, else through a
 * lane of its own in the gap right of its column. What joins two hosts (bridges back to back,
 * Ethernet) does the same down to a level of its own below all hosts, so that no two such cables
 * share a line.
 */
#include <string.h>

#include "cli/topology/topology_svg.h"

enum {
    LANE_STEP = 6,   /* between cables beside each other */
    LEVEL_STEP = 24, /* below each other, with their labels */
    TURN = 6,        /* below a box: the first turn to a lane; bends of short cables are lower */
    TURN_STEP = 4,
    N_TURNS = 4,
    BEND = 26, /* below a box: the turn of a short cable; labels are lower still */
    PLUG_STEP = 14,
    FIRST_PLUG = 28, /* of several short cables at an upper edge */
    LABEL_ROOM = 16  /* beside a label */
};

enum route { HIDDEN, SHORT, TO_BAR, LEVEL };

guint topology_host_of(const struct drawing *d, const struct topology_end *end)
{
    return end->kind == TOPOLOGY_PORT ? TOPOLOGY_AT(d->t->ports, port, end->index)->host
                                      : d->place[end->index].host;
}

static const struct box *end_box(const struct drawing *d, const struct topology_end *end)
{
    return end->kind == TOPOLOGY_PORT ? &d->port[end->index] : &d->device[end->index];
}

static int depth_of(const struct drawing *d, const struct topology_end *end)
{
    return end->kind == TOPOLOGY_PORT ? 0 : d->place[end->index].depth;
}

static bool is_hidden(const struct drawing *d, const struct topology_end *end)
{
    return end->kind == TOPOLOGY_DEVICE && d->like[end->index] != end->index;
}

static enum route route_of(const struct drawing *d, const struct topology_cable *cable)
{
    const guint from = topology_host_of(d, &cable->from), to = topology_host_of(d, &cable->to);
    const int apart = depth_of(d, &cable->from) - depth_of(d, &cable->to);
    if (is_hidden(d, &cable->from) || is_hidden(d, &cable->to))
        return HIDDEN;
    if (cable->rate_gbit_s > 0.0)
        return LEVEL;
    if ((from == TOPOLOGY_SHARED) != (to == TOPOLOGY_SHARED))
        return TO_BAR;
    if (from == TOPOLOGY_SHARED)
        return SHORT;
    return from == to && (apart == 1 || apart == -1) ? SHORT : LEVEL;
}

/* The i-th of all cables, then of the Ethernet ones; NULL beyond. */
static const struct topology_cable *cable_at(const struct drawing *d, guint i)
{
    const guint n = d->t->cables->len;
    if (i < n)
        return TOPOLOGY_AT(d->t->cables, cable, i);
    return i - n < d->t->wires->len ? TOPOLOGY_AT(d->t->wires, cable, i - n) : NULL;
}

int topology_levels_height(const struct drawing *d)
{
    const struct topology_cable *cable;
    int n = 0;
    for (guint i = 0; (cable = cable_at(d, i)) != NULL; i++)
        n += route_of(d, cable) == LEVEL;
    return n * LEVEL_STEP;
}

void topology_count_lanes(struct drawing *d)
{
    const struct topology_cable *cable;
    int most = 0;
    for (guint i = 0; (cable = cable_at(d, i)) != NULL; i++) {
        const enum route route = route_of(d, cable);
        const struct topology_end *end[2] = { &cable->from, &cable->to };
        for (int k = 0; k < 2 && (route == TO_BAR || route == LEVEL); k++) {
            const guint host = topology_host_of(d, end[k]);
            if (host < d->t->hosts->len)
                d->n_gap[d->column[host]] += LANE_STEP;
        }
    }
    /* columns stand below each other only if all are as wide */
    for (int c = 0; c < d->n_columns; c++)
        most = MAX(most, d->n_gap[c]);
    for (int c = 0; d->brief && c < d->n_columns; c++)
        d->n_gap[c] = most;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* Where a cable leaves the box: in the middle if it is the only one there, else beside the others,
 * right of the middle, where short ones leave to what hangs below. */
static int plug_x(const struct drawing *d, const struct topology_end *end, guint index)
{
    const struct box *box = end_box(d, end);
    const struct topology_cable *cable;
    int n = 0, n_before = 0;
    bool below = false;
    for (guint i = 0; (cable = cable_at(d, i)) != NULL; i++) {
        const enum route route = route_of(d, cable);
        for (int k = 0; k < 2; k++) {
            const struct topology_end *near = k == 0 ? &cable->from : &cable->to;
            const struct topology_end *far = topology_other_end(cable, near);
            if (near->kind != end->kind || near->index != end->index)
                continue;
            below = below || (route == SHORT && depth_of(d, far) > depth_of(d, near));
            n_before += i < index && (route == TO_BAR || route == LEVEL);
            n += route == TO_BAR || route == LEVEL;
        }
    }
    if (n == 1 && !below)
        return box->x + box->w / 2;
    return MAX(box->x + box->w - PLUG_STEP * (n_before + 1), box->x + 4);
}

static bool is_free(const struct drawing *d, int x, int top, int bottom)
{
    for (guint i = 0; i < d->t->devices->len + d->t->hosts->len; i++) {
        const struct box *box = i < d->t->devices->len ? &d->device[i]
                                                       : &d->host[i - d->t->devices->len];
        if (box->w > 0 && box->x - 4 < x && x < box->x + box->w + 4 && box->y < bottom &&
            box->y + box->h > top)
            return false;
    }
    return true;
}

/* From the end's box down to y (up, if the box is below); the x where it arrives. */
static int draw_descent(struct drawing *d, const struct topology_end *end, guint index, int y)
{
    const struct box *box = end_box(d, end);
    const guint host = topology_host_of(d, end);
    const int x = plug_x(d, end, index), bottom = box->y + box->h;
    if (box->y >= y) {
        g_string_append_printf(d->svg, "M%d %dV%d", x, box->y, y);
        return x;
    }
    /* a root port lies in its host, which ends a margin lower */
    const int out = end->kind == TOPOLOGY_PORT ? bottom + TOPOLOGY_MARGIN : bottom;
    if (host >= d->t->hosts->len || is_free(d, x, out, y)) {
        g_string_append_printf(d->svg, "M%d %dV%d", x, bottom, y);
        return x;
    }
    const int column = d->column[host], n = d->n_lanes[column]++;
    const int lane = d->column_right[column] + LANE_STEP * (n + 1);
    g_string_append_printf(d->svg, "M%d %dV%dH%dV%d", x, bottom,
                           out + TURN + TURN_STEP * (n % N_TURNS), lane, y);
    return lane;
}

static void begin_wire(struct drawing *d, const char *class)
{
    g_string_append_printf(d->svg, "<path class=\"%s\" d=\"", class);
}

static void end_wire(struct drawing *d)
{
    g_string_append(d->svg, "\"/>\n");
}

static void draw_to_bar(struct drawing *d, const struct topology_cable *cable, guint index,
                        const char *text)
{
    const bool from_bar = topology_host_of(d, &cable->from) == TOPOLOGY_SHARED;
    const struct topology_end *end = from_bar ? &cable->to : &cable->from;
    const struct box *bar = end_box(d, from_bar ? &cable->from : &cable->to);
    const int turn = bar->y - 8 - TURN_STEP * (int)(index % N_TURNS);
    begin_wire(d, "t-wire");
    const int x = draw_descent(d, end, index, turn);
    const int to = CLAMP(x, bar->x + TOPOLOGY_MARGIN, bar->x + bar->w - TOPOLOGY_MARGIN);
    g_string_append_printf(d->svg, "H%dV%d", to, bar->y);
    end_wire(d);
    topology_reach(d, x, bar->y);
    topology_draw_text(d, d->labels, x + 8, bar->y - 26, "t-line", text);
}

static void draw_level(struct drawing *d, const struct topology_cable *cable, guint index,
                       const char *text)
{
    const int y = d->levels_y + LEVEL_STEP * ++d->n_levels;
    begin_wire(d, cable->rate_gbit_s > 0.0 ? "t-wire t-ether" : "t-wire");
    const int x1 = draw_descent(d, &cable->from, index, y);
    const int x2 = draw_descent(d, &cable->to, index, y);
    g_string_append_printf(d->svg, "H%d", x1);
    end_wire(d);
    topology_reach(d, MAX(x1, x2), y);
    topology_draw_text(d, d->labels, (x1 + x2) / 2, y - 5, "t-line t-mid", text);
}

/* Of the two ends of a short cable the one at the upper box. */
static const struct topology_end *upper_end(const struct drawing *d,
                                            const struct topology_cable *cable)
{
    return end_box(d, &cable->from)->y <= end_box(d, &cable->to)->y ? &cable->from : &cable->to;
}

/* Among the short cables at the near box that leave on the same side: how many there are, and how
 * many of them lead further left. */
static int rank_of(const struct drawing *d, const struct topology_end *near, guint index, int *n)
{
    const struct topology_cable *cable = cable_at(d, index), *other;
    const struct box *box = end_box(d, near);
    const struct box *mine = end_box(d, topology_other_end(cable, near));
    int n_before = 0;
    *n = 0;
    for (guint i = 0; (other = cable_at(d, i)) != NULL; i++) {
        for (int k = 0; k < 2; k++) {
            const struct topology_end *end = k == 0 ? &other->from : &other->to;
            const struct box *far = end_box(d, topology_other_end(other, end));
            if (end_box(d, end) != box || route_of(d, other) != SHORT ||
                (far->y > box->y) != (mine->y > box->y))
                continue;
            (*n)++;
            n_before += far->x < mine->x || (far->x == mine->x && i < index);
        }
    }
    return n_before;
}

/* Where a short cable meets the box: in the middle if it is alone on this side, else in the order
 * of what the cables lead to, with room for a label right of each at an upper edge. */
static int short_x(const struct drawing *d, const struct topology_end *end, guint index, bool upper)
{
    const struct box *box = end_box(d, end);
    int n;
    const int rank = rank_of(d, end, index, &n);
    if (n == 1)
        return box->x + box->w / 2;
    if (upper)
        return box->x + box->w * (rank + 1) / (n + 1);
    return box->x + FIRST_PLUG + rank * (box->w - FIRST_PLUG) / n;
}

/* The box where the cable has neighbours: the upper one, or else the lower one. */
static const struct topology_end *shared_end(const struct drawing *d, guint index)
{
    const struct topology_cable *cable = cable_at(d, index);
    const struct topology_end *above = upper_end(d, cable);
    int n;
    rank_of(d, above, index, &n);
    return n > 1 ? above : topology_other_end(cable, above);
}

/* How far below the upper box a short cable turns. Neighbours of one box do not cross: the further
 * it goes, the sooner it turns; cables of one host's different boxes
 * never turn at the same height. */
static int bend_of(const struct drawing *d, guint index, int x1, int x2)
{
    const struct topology_cable *cable = cable_at(d, index), *other;
    const struct topology_end *shared = shared_end(d, index);
    const struct box *box = end_box(d, shared);
    const guint host = topology_host_of(d, upper_end(d, cable));
    const int y = end_box(d, upper_end(d, cable))->y;
    int n, n_all = 0, n_others = 0;
    const int rank = rank_of(d, shared, index, &n);
    bool seen = false; /* the first of this box */
    for (guint i = 0; (other = cable_at(d, i)) != NULL; i++) {
        if (route_of(d, other) != SHORT)
            continue;
        const struct topology_end *above = upper_end(d, other);
        if (end_box(d, above)->y != y || topology_host_of(d, above) != host)
            continue;
        const bool ours = end_box(d, shared_end(d, i)) == box;
        seen = seen || ours;
        n_all++;
        n_others += !ours && !seen;
    }
    const int turn = n_others + (x2 > x1 ? n - 1 - rank : rank);
    return BEND + (n_all <= N_TURNS ? TURN_STEP * turn : TURN_STEP * N_TURNS * turn / n_all);
}

/* "p0: Gen3 x8" where several cables come to the device from above; g_free(). */
static char *short_text(const struct topology_end *below, int n, const char *text)
{
    return n > 1 ? g_strdup_printf("p%u: %s", below->port, text) : g_strdup(text);
}

int topology_device_width(const struct drawing *d, guint device)
{
    const struct topology_cable *cable;
    int n = 0, widest = 0;
    for (guint i = 0; (cable = cable_at(d, i)) != NULL; i++) {
        for (int k = 0; k < 2; k++) {
            const struct topology_end *end = k == 0 ? &cable->from : &cable->to;
            if (end->kind != TOPOLOGY_DEVICE || end->index != device ||
                route_of(d, cable) != SHORT ||
                depth_of(d, topology_other_end(cable, end)) >= depth_of(d, end))
                continue;
            char *link = topology_cable_text(cable), *text = short_text(end, 2, link);
            widest = MAX(widest, topology_text_width(text));
            n++;
            g_free(text);
            g_free(link);
        }
    }
    return n > 1 ? MAX(d->size->device_w, FIRST_PLUG + n * (widest + LABEL_ROOM))
                 : d->size->device_w;
}

/* From the lower edge of the upper box to the upper edge of the lower one; between bars beside each
 * other from the lower edges. */
static void draw_short(struct drawing *d, const struct topology_cable *cable, guint index,
                       const char *link)
{
    const struct topology_end *above = upper_end(d, cable);
    const struct topology_end *below = topology_other_end(cable, above);
    const struct box *upper = end_box(d, above), *lower = end_box(d, below);
    const bool beside = lower->y == upper->y;
    const int x1 = short_x(d, above, index, true), y1 = upper->y + upper->h;
    const int y2 = beside ? lower->y + lower->h : lower->y;
    int x2 = short_x(d, below, index, false), n;
    /* straight down to what stands almost below; labels of neighbours keep their distance */
    rank_of(d, below, index, &n);
    const int leeway = n == 1 ? lower->w / 4 + 8 : LABEL_ROOM / 4;
    if (!beside)
        x2 = CLAMP(x1, x2 - leeway, x2 + leeway);
    const int bend = y1 + bend_of(d, index, x1, x2);
    char *text = short_text(below, beside ? 1 : n, link);
    begin_wire(d, "t-wire");
    g_string_append_printf(d->svg, "M%d %dV%dH%dV%d", x1, y1, bend, x2, y2);
    end_wire(d);
    topology_reach(d, MAX(x1, x2), bend);
    if (beside)
        topology_draw_text(d, d->labels, (x1 + x2) / 2, bend + 16, "t-line t-mid", text);
    else
        topology_draw_text(d, d->labels, x2 + 8, y2 - 8, "t-line", text);
    g_free(text);
}

void topology_draw_cables(struct drawing *d)
{
    const struct topology_cable *cable;
    for (guint i = 0; (cable = cable_at(d, i)) != NULL; i++) {
        char *text = topology_cable_text(cable);
        switch (route_of(d, cable)) {
        case HIDDEN: break;
        case SHORT: draw_short(d, cable, i, text); break;
        case TO_BAR: draw_to_bar(d, cable, i, text); break;
        case LEVEL: draw_level(d, cable, i, text); break;
        }
        g_free(text);
    }
}
