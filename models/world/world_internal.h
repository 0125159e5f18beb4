/* The inside of a world, for world.c and world_cables.c only. */
#ifndef MODELS_WORLD_WORLD_INTERNAL_H
#define MODELS_WORLD_WORLD_INTERNAL_H

#include "models/world/world.h"
#include "sim/engine/map.h"
#include "sim/engine/watchdog.h"

struct cable {
    struct world_cable ends;
    void *object;    /* of cable_kind.join() */
    char *prefix[2]; /* "server.s0.rp0.tx." */
};

struct world {
    struct sim *sim;
    struct pcie_context *pcie;
    struct config *config;
    struct host **host;
    const char **host_name;
    unsigned n_hosts;
    struct model **device;
    const char **device_name;
    char **device_prefix;
    unsigned n_devices;
    struct cable *cable;
    unsigned n_cables;
    struct stamp_trace *trace;                              /* or NULL */
    void (*measurement_begins)(void *arg, sim_time now_ps); /* or NULL */
    void *measurement_arg;
    struct sim_map *host_idx;   /* by name */
    struct sim_map *device_idx; /* by name */
    struct sim_map *root_idx;   /* host by the addresses of its root complexes */
    struct sim_map *faulty;     /* names for world_faulty(); values mean nothing */
    bool any_faulty;            /* whatever is missing may have been meant */
    bool unsound;
    struct sim_watch watch; /* what all statistics count */
    char **text;            /* strings of ours */
    unsigned n_texts, max_texts;
    struct {
        unsigned host, first; /* world_stats(): the host it was at, the index of its first table */
    } stats_at;
};

/* Both strings in one; owned by the world. */
char *world_text(struct world *world, const char *a, const char *b);
/* `cables` as the scenario has them. NULL: there are none. */
void world_build_cables(struct world *world, struct config_node *cables,
                        struct sim_error_list *errors);

#endif
