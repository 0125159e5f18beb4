/*
 * The cables of a picture. From a box to what hangs on it a cable is short: down, across halfway,
 * down. To a bar below all hosts it goes straight down if nothing stands in its way, else through a
 * lane of its own in the gap right of its column. What joins two hosts (bridges back to back,
 * Ethernet) does the same down to a level of its own below all hosts, so that no two such cables
 * share a line.
 */
#include <string.h>

#include "cli/topology_svg.h"

enum {
    LANE_STEP = 6,   /* between cables beside each other */
    LEVEL_STEP = 24, /* below each other, with their labels */
    TURN = 6,        /* below a box: the first turn to a lane; bends of short cables are lower */
    TURN_STEP = 4,
    N_TURNS = 4,
    BEND = 26, /* below a box: the turn of a short cable; labels are lower still */
    PLUG_STEP = 14
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

/* ---- Lines ---------------------------------------------------------------------------------- */

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
    enum { FIRST = 28, LABEL = 68 };
    const struct box *box = end_box(d, end);
    int n;
    const int rank = rank_of(d, end, index, &n);
    if (n == 1)
        return box->x + box->w / 2;
    if (upper)
        return box->x + box->w * (rank + 1) / (n + 1);
    return box->x + FIRST + rank * MAX(box->w - FIRST - LABEL, 0) / (n - 1);
}

/* From the lower edge of the upper box to the upper edge of the lower one; between bars beside each
 * other from the lower edges. */
static void draw_short(struct drawing *d, const struct topology_cable *cable, guint index,
                       const char *text)
{
    const bool down = end_box(d, &cable->from)->y <= end_box(d, &cable->to)->y;
    const struct topology_end *above = down ? &cable->from : &cable->to;
    const struct topology_end *below = topology_other_end(cable, above);
    const struct box *upper = end_box(d, above), *lower = end_box(d, below);
    const bool beside = lower->y == upper->y;
    const int x1 = short_x(d, above, index, true), y1 = upper->y + upper->h;
    const int y2 = beside ? lower->y + lower->h : lower->y;
    int x2 = short_x(d, below, index, false), n;
    /* straight down to what stands almost below; labels of neighbours keep their distance */
    rank_of(d, below, index, &n);
    const int leeway = lower->w / 4 + 8;
    if (!beside && n == 1)
        x2 = CLAMP(x1, x2 - leeway, x2 + leeway);
    /* neighbours of one box do not cross: the further it goes, the sooner it turns */
    const int rank = rank_of(d, above, index, &n);
    const int turn = n == 1 ? (int)index : x2 > x1 ? n - 1 - rank : rank;
    const int bend = y1 + BEND + TURN_STEP * (turn % N_TURNS);
    begin_wire(d, "t-wire");
    g_string_append_printf(d->svg, "M%d %dV%dH%dV%d", x1, y1, bend, x2, y2);
    end_wire(d);
    topology_reach(d, MAX(x1, x2), bend);
    if (beside)
        topology_draw_text(d, d->labels, (x1 + x2) / 2, bend + 16, "t-line t-mid", text);
    else
        topology_draw_text(d, d->labels, x2 + 8, y2 - 8, "t-line", text);
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
