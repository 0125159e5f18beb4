/* What the two halves of the picture share: boxes (topology_svg.c), cables (topology_svg_cables.c).
 */
#ifndef CLI_TOPOLOGY_TOPOLOGY_SVG_H
#define CLI_TOPOLOGY_TOPOLOGY_SVG_H

#include "cli/topology/topology.h"

enum {
    TOPOLOGY_MARGIN = 10,
    TOPOLOGY_ROW_GAP = 64 /* below a box: the cables' bends and labels */
};

struct sizes {
    int socket_w, socket_h;
    int socket_gap; /* the interconnect's label */
    int port_w, port_h, device_w, device_gap, host_gap;
};

struct box {
    int x, y, w, h;
};

struct drawing {
    const struct topology *t;
    const struct sizes *size;
    bool brief;
    struct topology_place *place; /* of devices */
    guint *like;                  /* of devices: the one that is drawn for it and others like it */
    guint *n_like;                /* of devices drawn: how many that are */
    struct box *host, *socket_first, *port, *device;
    int *column;       /* of hosts */
    int n_columns;     /* hosts beside each other */
    int *column_right; /* of columns: where the gap begins */
    int *n_lanes;      /* of columns: cables in the gap so far */
    int *n_gap;        /* of columns: at most so many will be */
    int levels_y;      /* below all hosts and what hangs on them */
    int n_levels;      /* cables there so far */
    int head_h;        /* of hosts, above the sockets */
    int width, height; /* of everything drawn so far */
    GString *svg;
    GString *labels; /* of cables: drawn after all lines */
};

/* At most; fonts differ. */
int topology_text_width(const char *text);
/* Everything is drawn through these, so that the picture is as large as what is in it. */
void topology_draw_box(struct drawing *d, const struct box *box, const char *class);
void topology_draw_text(struct drawing *d, GString *svg, int x, int y, const char *class,
                        const char *text);
void topology_reach(struct drawing *d, int right, int bottom);

guint topology_host_of(const struct drawing *d, const struct topology_end *end);
/* Cables that run below all hosts, each on a level of its own; the space that they need there. */
int topology_levels_height(const struct drawing *d);
/* How wide a device below a host has to be so that the labels of the cables that come from above
 * have room beside each other. */
int topology_device_width(const struct drawing *d, guint device);
/* Sets n_gap from the cables that may need a lane. */
void topology_count_lanes(struct drawing *d);
/* All cables, then Ethernet; boxes hide what runs behind them if they are drawn afterwards. */
void topology_draw_cables(struct drawing *d);

#endif
