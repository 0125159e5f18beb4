/* What the two graphs share: of few hosts (topology_dot.c), of many (topology_dot_cluster.c). */
#ifndef CLI_TOPOLOGY_TOPOLOGY_DOT_H
#define CLI_TOPOLOGY_TOPOLOGY_DOT_H

#include "cli/topology/topology.h"

#define TOPOLOGY_DOT_INK      "#1b1f24"
#define TOPOLOGY_DOT_ETHERNET ", style=dashed, color=\"#0b6e4f\"" /* attributes of its cables */

/* The attributes of a cable's edge by how busy it was; "" if that is not known. */
const char *topology_dot_busy(const struct topology_cable *cable);
/* Appends the node of a device. */
void topology_dot_device(GString *out, guint index, const char *name, const char *type);
/* Appends nodes and edges of a topology of many hosts. */
void topology_dot_cluster(GString *out, const struct topology *topology,
                          const struct topology_place *place);

#endif
