/* What is plugged in where: read off the world that a configuration builds. */
#ifndef CLI_TOPOLOGY_TOPOLOGY_H
#define CLI_TOPOLOGY_TOPOLOGY_H

#include <glib.h>

#include "models/base/cable.h"
#include "sim/config/config.h"

struct topology_host {
    char *name;
    unsigned n_sockets;
    char *cores, *cache, *memory, *interconnect; /* a line each, of one socket; "" if unknown */
    unsigned n_cores;                            /* of a socket */
    uint64_t l1_bytes, l2_bytes, llc_bytes,
        node_bytes; /* of a core, a core or l2_cores, a socket, a node; 0: none */
    unsigned l1_ways, l2_ways, llc_ways, l2_cores;
    char *role;       /* "IOMMU on, lends nic", "" if neither its IOMMU nor lending is in use */
    char *role_alike; /* the same without names: "IOMMU on, lends 1" */
};

struct topology_port { /* of a host */
    char *name;        /* "s0.rp0" */
    guint host;
    unsigned socket;
    char link[32]; /* the most that it can do, "Gen3 x16" */
};

struct topology_device {
    char *name, *type;
    bool bridge;        /* non-transparent: the tree of its host ends at port 0 */
    char *root_complex; /* that it is integrated into: "server.s0"; NULL: it has cables */
};

enum topology_kind { TOPOLOGY_PORT, TOPOLOGY_DEVICE };

struct topology_end {
    enum topology_kind kind;
    guint index;   /* in ports or devices */
    unsigned port; /* of the device */
    char suffix;   /* of the port's kind: p0, e0 */
};

struct topology_cable {
    struct topology_end from, to;
    const struct cable_kind *kind;
    char link[32];   /* "Gen3 x8" */
    double length_m; /* 0: a slot */
    double busy;     /* the share of its peak that the busier direction carried; NAN: not known */
    char busy_text[96]; /* "98 % sent by nic.p0"; "" */
};

struct topology {
    GArray *hosts, *ports, *devices, *cables; /* of the above */
    GArray *wires; /* cables that are in no tree below a root port: Ethernet */
};

/* Builds the world of the configuration and takes it down again; NULL with mistakes in errors. */
struct topology *topology_new(struct config *config, struct sim_error_list *errors);
void topology_free(struct topology *topology);

/* What hosts lend and borrow, by the group `lending`, and their IOMMUs. Sets role and role_alike of
 * the hosts; iommu: of each, whether it is on. */
void topology_read_roles(struct topology *topology, struct config *config, const bool *iommu);

struct results_db;
/* Reads how busy each cable was, the mean over the newest runs of the point. The number of cables
 * that the results have. */
unsigned topology_read_results(struct topology *topology, struct results_db *db,
                               const char *scenario, const char *point);

/* Where a device belongs: to the host whose root ports are nearest. The far side of a bridge is no
 * longer its host's: what is only reached there is between hosts. */
#define TOPOLOGY_SHARED  G_MAXUINT       /* to several hosts: equally near, or beyond bridges */
#define TOPOLOGY_NOWHERE (G_MAXUINT - 1) /* no cables lead to a host */
struct topology_place {
    guint host;
    int depth; /* cables from the root port; TOPOLOGY_NOWHERE: 0 */
};
/* One for each device; g_free(). */
struct topology_place *topology_places(const struct topology *topology);
const struct topology_end *topology_other_end(const struct topology_cable *cable,
                                              const struct topology_end *end);

/* "server: 2 sockets, each 10 cores, ...; nfp (pcie.requester) at server.s0.rp0, Gen3 x8." g_free()
 */
char *topology_sentence(const struct topology *topology);
/* A tree of lines; hosts like one before them in a line. g_free() */
char *topology_text(const struct topology *topology);
/* The lines of one host; without names two hosts that look alike have the same. g_free() */
char *topology_host_text(const struct topology *topology, const struct topology_place *places,
                         guint host, bool names);
/* The same as a graph for Graphviz; g_free(). */
char *topology_dot(const struct topology *topology, const char *title);
/* The host of that name (NULL: there is one alone) as hwloc's XML, version 2, for lstopo -i; bus
 * numbers are made up. g_free(); NULL with the mistake in errors. */
char *topology_hwloc(const struct topology *topology, const char *host,
                     struct sim_error_list *errors);
/* A picture with a title and a description for those who do not see it; `id` begins their ids,
 * unique in the page. g_free(); NULL if dot could not draw it, with the reason on standard
 * error. */
char *topology_svg(const struct topology *topology, const char *id);

/* "Gen3 x8", "Gen3 x8, 2 m", "100 Gb/s"; g_free() */
char *topology_cable_text(const struct topology_cable *cable);
/* "server.s0.rp0", "sw.p1", "nic.e0"; g_free() */
char *topology_end_text(const struct topology *topology, const struct topology_end *end);

#define TOPOLOGY_AT(array, type, index) (&g_array_index((array), struct topology_##type, (index)))

#endif
