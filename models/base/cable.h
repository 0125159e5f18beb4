/*
 * A kind of cable: what joins two ports of models, with its parameters and statistics.
 *
 * A kind is one file with its struct cable_kind and one line in models/world/cable_registry.c. Its
 * ports are any structure; a model creates them in init() by model_ports_new().
 */
#ifndef MODELS_BASE_CABLE_H
#define MODELS_BASE_CABLE_H

#include "models/base/model.h"

/* A cable to be made. All it points to but params and errors outlives the cable. */
struct cable_plan {
    const char *name; /* "server.s0.rp0-nic.p0" */
    void *port[2];
    const void *params; /* as read by cable_kind.params, propagation added to the latency */
    const char *file;   /* of the scenario, for messages */
    int line;
};

struct cable_setting {
    const char *key;
    uint32_t value;
    char why[96];
};

struct cable_kind {
    const char *name; /* "PCIe"; for messages */
    const char *type; /* "link"; for `nudma describe` */
    const char *help; /* one line, likewise */
    char suffix;      /* ports of a device are DEVICE.p0, DEVICE.p1, ... */
    /* Cables of this kind form the trees below the root ports of hosts (for pictures). */
    bool tree;
    /* The size of a port; 0 with port(). */
    size_t port_bytes;
    /* The idx-th port of the model, NULL: it has fewer. NULL for ports of model_ports_new(). */
    void *(*port)(const struct model *model, uint32_t idx);

    const struct param_desc *params; /* settings of the cable; its length is read elsewhere */
    size_t params_bytes;
    size_t latency_offset; /* of a sim_time in the parameters: one way, propagation is added */

    /* What is expected instead if the two ports do not fit together, else NULL. May be NULL. */
    const char *(*mismatch)(const void *a, const void *b);
    /* Joins the ports. NULL: mistakes were added to errors. */
    void *(*join)(const struct cable_plan *plan, struct sim_error_list *errors);
    /* Frees what join() returned, before the models. NULL: something else owns it. */
    void (*free)(void *cable);

    const struct stat_desc *stats;   /* of one direction */
    void *(*port_stats)(void *port); /* of the direction that the port transmits */
    /* Writes what the cable of a connected port can do: "Gen3 x8". */
    void (*describe)(const void *port, char *text, size_t bytes);
    /* Whether what both ports can do has decided about a setting that the scenario left open and
     * that one port alone would have decided otherwise: its key, value, and why. `port` is
     * connected; i counts from 0, false: there are no more. May be NULL. */
    bool (*settled)(const void *port, unsigned i, struct cable_setting *setting);
    /* At the end of a run that has been left to drain: nothing is under way on cables of this kind
     * nor held by models; else sim_fail(), and false. ports: all that are connected. NULL:
     * something else checks. */
    bool (*check_idle)(struct sim *sim, void *const *ports, unsigned n);
};

/* Whether all that is required is there and agrees; false with what is wrong in *why. */
bool cable_kind_valid(const struct cable_kind *kind, const char **why);
/* The idx-th port of that kind of the model, NULL: it has fewer. */
void *cable_port(const struct cable_kind *kind, const struct model *model, uint32_t idx);

#endif
