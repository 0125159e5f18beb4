/*
 * The graph of many hosts. A host is a small box with a letter for its kind; what a host of each
 * kind consists of is said once, in a card below the picture. Hosts that have one cable to a switch
 * and no other to elsewhere stand together in a table below it, those without cables in a table of
 * their own; every other host is a node, with all its cables to other hosts and switches.
 */
#include <math.h>
#include <string.h>

#include "cli/base/html.h"
#include "cli/topology/topology_dot.h"

enum {
    CARDS_IN_A_ROW = 2,
    ROLES_MAX = 16 /* hosts whose borrowed devices are named */
};
#define NO_TABLE (G_MAXUINT - 1) /* a node of its own; G_MAXUINT: the table of no switch */

static const char *const fills[] = { "#eef6ea", "#e4ecfa", "#fdeeee",
                                     "#f6ecfb", "#fff8dc", "#e6f6f6" };

struct kind {
    char *shape;
    guint first, n;
};

struct cluster {
    const struct topology *t;
    const struct topology_place *place;
    GArray *kinds;
    guint *kind_of; /* hosts */
    guint *table;   /* of hosts: the switch, G_MAXUINT, or NO_TABLE */
    GString *out;
};

/* ---- What hangs on what ---------------------------------------------------------------------- */

static bool is_shared(const struct cluster *c, const struct topology_end *end)
{
    return end->kind == TOPOLOGY_DEVICE && c->place[end->index].host == TOPOLOGY_SHARED;
}

static guint host_at(const struct cluster *c, const struct topology_end *end)
{
    return end->kind == TOPOLOGY_PORT ? TOPOLOGY_AT(c->t->ports, port, end->index)->host
                                      : c->place[end->index].host;
}

/* Whether it leads from one node of the picture to another. */
static bool is_drawn(const struct cluster *c, const struct topology_cable *cable)
{
    const guint from = host_at(c, &cable->from), to = host_at(c, &cable->to);
    return from == TOPOLOGY_SHARED || to == TOPOLOGY_SHARED || from != to ||
           from == TOPOLOGY_NOWHERE;
}

static void find_tables(struct cluster *c)
{
    const GArray *const lists[] = { c->t->cables, c->t->wires };
    for (guint h = 0; h < c->t->hosts->len; h++)
        c->table[h] = G_MAXUINT;
    for (int k = 0; k < 2; k++) {
        for (guint i = 0; i < lists[k]->len; i++) {
            const struct topology_cable *cable = TOPOLOGY_AT(lists[k], cable, i);
            const struct topology_end *const ends[] = { &cable->from, &cable->to };
            for (int e = 0; e < 2 && is_drawn(c, cable); e++) {
                const guint h = host_at(c, ends[e]);
                const bool first = h < c->t->hosts->len && c->table[h] == G_MAXUINT;
                if (h < c->t->hosts->len)
                    c->table[h] = first && k == 0 && is_shared(c, ends[1 - e]) ? ends[1 - e]->index
                                                                               : NO_TABLE;
            }
        }
    }
}

static void find_kinds(struct cluster *c)
{
    for (guint h = 0; h < c->t->hosts->len; h++) {
        struct kind kind = { topology_host_text(c->t, c->place, h, false), h, 0 };
        guint k = 0;
        while (k < c->kinds->len &&
               strcmp(g_array_index(c->kinds, struct kind, k).shape, kind.shape) != 0)
            k++;
        if (k == c->kinds->len)
            g_array_append_val(c->kinds, kind);
        else
            g_free(kind.shape);
        g_array_index(c->kinds, struct kind, k).n++;
        c->kind_of[h] = k;
    }
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static char letter(guint kind)
{
    return kind < 26 ? (char)('A' + kind) : '+';
}

static const char *fill(guint kind)
{
    return fills[kind % G_N_ELEMENTS(fills)];
}

static void append_host(struct cluster *c, guint h)
{
    html_text(c->out, TOPOLOGY_AT(c->t->hosts, host, h)->name);
    g_string_append_printf(c->out, "</b>&#160;&#160;&#160;%c", letter(c->kind_of[h]));
}

/* The hosts of a table in columns, about two and a half times as high as wide. */
static void append_table(struct cluster *c, guint of)
{
    g_autoptr(GArray) hosts = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint h = 0; h < c->t->hosts->len; h++) {
        if (c->table[h] == of)
            g_array_append_val(hosts, h);
    }
    const guint n = hosts->len, n_columns = (guint)ceil(sqrt(n / 2.5));
    const guint n_rows = n > 0 ? (n + n_columns - 1) / n_columns : 0;
    if (n > 0)
        g_string_append_printf(c->out,
                               "  t%u [shape=plain, style=\"\", color=\"" TOPOLOGY_DOT_INK
                               "\", label=<<table border=\"0\" cellborder=\"1\" "
                               "cellspacing=\"6\" cellpadding=\"5\">",
                               of);
    for (guint row = 0; row < n_rows; row++) {
        g_string_append(c->out, "<tr>");
        for (guint i = row; i < n; i += n_rows) {
            const guint h = g_array_index(hosts, guint, i);
            g_string_append_printf(c->out, "<td width=\"80\" bgcolor=\"%s\"><b>",
                                   fill(c->kind_of[h]));
            append_host(c, h);
            g_string_append(c->out, "</td>");
        }
        g_string_append(c->out, "</tr>");
    }
    g_string_append(c->out, n > 0 ? "</table>>];\n" : "");
}

static void append_nodes(struct cluster *c)
{
    for (guint i = 0; i < c->t->devices->len; i++) {
        const struct topology_device *device = TOPOLOGY_AT(c->t->devices, device, i);
        const bool nowhere = c->place[i].host == TOPOLOGY_NOWHERE;
        if (nowhere || c->place[i].host == TOPOLOGY_SHARED)
            topology_dot_device(c->out, i, device->name, device->type);
        append_table(c, i);
    }
    append_table(c, G_MAXUINT);
    for (guint h = 0; h < c->t->hosts->len; h++) {
        if (c->table[h] != NO_TABLE)
            continue;
        g_string_append_printf(
            c->out, "  h%u [color=\"" TOPOLOGY_DOT_INK "\", fillcolor=\"%s\", label=<<b>", h,
            fill(c->kind_of[h]));
        append_host(c, h);
        g_string_append(c->out, ">];\n");
    }
}

/* ---- Cables ---------------------------------------------------------------------------------- */

static void append_end(struct cluster *c, const struct topology_end *end)
{
    const guint host = host_at(c, end);
    if (host < c->t->hosts->len)
        g_string_append_printf(c->out, "h%u", host);
    else
        g_string_append_printf(c->out, "d%u", end->index);
}

/* The far sides of one end in a table: it is drawn with all of that table. */
static bool is_of_table(const struct cluster *c, const struct topology_cable *cable)
{
    const guint from = host_at(c, &cable->from), to = host_at(c, &cable->to);
    return (from < c->t->hosts->len && c->table[from] != NO_TABLE) ||
           (to < c->t->hosts->len && c->table[to] != NO_TABLE);
}

/* The switch furthest from hosts above, hosts last. */
static int height_of(const struct cluster *c, const struct topology_end *end)
{
    return is_shared(c, end) ? 1 + c->place[end->index].depth : 0;
}

static void append_cable(struct cluster *c, const struct topology_cable *cable)
{
    const bool dashed = !cable->kind->tree;
    const bool swapped = height_of(c, &cable->to) > height_of(c, &cable->from);
    const struct topology_end *a = swapped ? &cable->to : &cable->from;
    if (!is_drawn(c, cable) || is_of_table(c, cable))
        return;
    g_autofree char *text = topology_cable_text(cable);
    g_string_append(c->out, "  ");
    append_end(c, a);
    g_string_append(c->out, " -- ");
    append_end(c, topology_other_end(cable, a));
    g_string_append_printf(c->out, " [label=\" %s \"%s%s];\n", text,
                           dashed ? TOPOLOGY_DOT_ETHERNET : "", topology_dot_busy(cable));
}

/* One line for all cables of a table: "10 x Gen3 x8, 2 m". */
static void append_trunk(struct cluster *c, guint of)
{
    g_autofree char *text = NULL;
    unsigned n = 0;
    bool alike = true;
    for (guint i = 0; i < c->t->cables->len; i++) {
        const struct topology_cable *cable = TOPOLOGY_AT(c->t->cables, cable, i);
        if (!is_drawn(c, cable) || !is_of_table(c, cable) ||
            !((is_shared(c, &cable->from) && cable->from.index == of) ||
              (is_shared(c, &cable->to) && cable->to.index == of)))
            continue;
        char *this = topology_cable_text(cable);
        alike = alike && (n++ == 0 || strcmp(this, text) == 0);
        g_free(text);
        text = this;
    }
    if (n > 0)
        g_string_append_printf(c->out, "  d%u -- t%u [label=\" %u x %s \"];\n", of, of, n,
                               alike ? text : "PCIe");
}

static void append_cables(struct cluster *c)
{
    for (guint i = 0; i < c->t->devices->len; i++)
        append_trunk(c, i);
    for (guint i = 0; i < c->t->cables->len; i++)
        append_cable(c, TOPOLOGY_AT(c->t->cables, cable, i));
    for (guint i = 0; i < c->t->wires->len; i++)
        append_cable(c, TOPOLOGY_AT(c->t->wires, cable, i));
}

/* ---- Cards ----------------------------------------------------------------------------------- */

/* Lines of text in a cell of the graph's label. */
static void append_card(GString *out, const char *color, const char *head, const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_string_append_printf(out,
                           "<td border=\"1\" color=\"#6a7580\" bgcolor=\"%s\" align=\"left\" "
                           "valign=\"top\"><b>%s</b><br align=\"left\"/>",
                           color, head);
    for (guint i = 0; lines[i] != NULL; i++) {
        const size_t indent = strspn(lines[i], " ");
        for (size_t s = 0; s < indent; s++)
            g_string_append(out, "&#160;&#160;");
        html_text(out, lines[i] + indent);
        g_string_append(out, lines[i][0] != '\0' ? "<br align=\"left\"/>" : "");
    }
    g_string_append(out, "</td>");
}

/* A card names what the first host of its kind borrows; this, what each does. g_free() */
static char *borrowers(const struct topology *t)
{
    GString *text = g_string_new(NULL);
    unsigned n = 0;
    for (guint h = 0; h < t->hosts->len; h++) {
        const struct topology_host *host = TOPOLOGY_AT(t->hosts, host, h);
        if (strcmp(host->role, host->role_alike) == 0 ||
            strstr(host->role_alike, "borrows ") == NULL)
            continue;
        if (n++ < ROLES_MAX)
            g_string_append_printf(text, "%s: %s\n", host->name, host->role);
    }
    if (n > ROLES_MAX)
        g_string_append_printf(text, "%u more hosts borrow\n", n - ROLES_MAX);
    return g_string_free(text, FALSE);
}

static void append_cards(struct cluster *c)
{
    g_autofree char *more = borrowers(c->t);
    const guint n = c->kinds->len + (*more != '\0');
    g_string_append(c->out, "  label=<<table border=\"0\" cellspacing=\"8\" cellpadding=\"8\">");
    for (guint k = 0; k < n; k++) {
        g_string_append(c->out, k % CARDS_IN_A_ROW == 0 ? "<tr>" : "");
        if (k < c->kinds->len) {
            const struct kind *kind = &g_array_index(c->kinds, struct kind, k);
            g_autofree char *text = topology_host_text(c->t, c->place, kind->first, true);
            g_autofree char *head = g_strdup_printf(
                "%c: %u host%s like this, the first of them %s", letter(k), kind->n,
                kind->n == 1 ? "" : "s", TOPOLOGY_AT(c->t->hosts, host, kind->first)->name);
            append_card(c->out, fill(k), head, text);
        } else {
            append_card(c->out, "#f3f5f7", "Who borrows what", more);
        }
        g_string_append(c->out,
                        k % CARDS_IN_A_ROW == CARDS_IN_A_ROW - 1 || k == n - 1 ? "</tr>" : "");
    }
    g_string_append(c->out, "</table>>;\n");
}

void topology_dot_cluster(GString *out, const struct topology *t,
                          const struct topology_place *place)
{
    struct cluster c = { .t = t, .place = place, .out = out };
    c.kinds = g_array_new(FALSE, FALSE, sizeof(struct kind));
    c.kind_of = g_new0(guint, t->hosts->len + 1);
    c.table = g_new0(guint, t->hosts->len + 1);
    find_tables(&c);
    find_kinds(&c);
    g_string_append(out, "  graph [ordering=out];\n");
    append_nodes(&c);
    append_cables(&c);
    append_cards(&c);
    for (guint k = 0; k < c.kinds->len; k++)
        g_free(g_array_index(c.kinds, struct kind, k).shape);
    g_array_free(c.kinds, TRUE);
    g_free(c.kind_of);
    g_free(c.table);
}
