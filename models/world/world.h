/*
 * The world of one point: hosts, devices and cables as the scenario names them, built, checked and
 * booted.
 */
#ifndef MODELS_WORLD_WORLD_H
#define MODELS_WORLD_WORLD_H

#include "models/base/cable.h"
#include "models/host/host.h"

struct world;

/* Settings of a cable beside those of its kind. */
extern const struct param_desc world_cable_params[];

/* Builds everything under `hosts`, `devices` and `cables`. Never NULL; errors tells whether it may
 * be used. The configuration must outlive it. */
struct world *world_new(struct config *config, uint64_t seed, struct sim_error_list *errors);
/* Takes it down; TLPs still alive are a fault unless the run failed. */
void world_free(struct world *world);

struct sim *world_sim(struct world *world);
struct pcie_context *world_pcie(struct world *world);
/* NULL: there is none, or it is faulty. */
struct host *world_host(struct world *world, const char *name);
struct model *world_device(struct world *world, const char *name);
/* False: there are mistakes, and the world is good for nothing but for finding more of them. */
bool world_sound(const struct world *world);
/* The scenario has, or may mean, a host or device of this name, of which there is a message:
 * nothing is to be said of what refers to it. */
bool world_faulty(const struct world *world, const char *name);
/* The port for that kind of cable by its name ("server_nic.e0"), or NULL. */
void *world_port(struct world *world, const struct cable_kind *kind, const char *name);
/* The host at the root of the tree that the device is plugged into by its port p0; NULL if it is
 * not. */
struct host *world_host_of(struct world *world, const struct model *device);
/* The same by the cable of one of its ports: functions of a device may be in different hosts. */
struct host *world_host_of_port(struct world *world, const struct model *device, unsigned port);
/* The requester ID of the first function at the device's port in its host's tree, once that host
 * has booted. False: nothing leads to it from a host. */
bool world_function_id(const struct model *device, unsigned port, uint16_t *id);
/* Names for messages; NULL-terminated. */
const char *const *world_host_names(const struct world *world);
const char *const *world_device_names(const struct world *world);
/* A cable and its ports, in the order of `from` and `to`. */
struct world_cable {
    const struct cable_kind *kind;
    void *port[2];
    double length_m;
};
/* The i-th in the order of the scenario; false: there are fewer. */
bool world_cable_at(const struct world *world, unsigned i, struct world_cable *cable);
unsigned world_n_hosts(const struct world *world);
struct host *world_host_at(struct world *world, unsigned idx);

/* Boots all hosts (runs the simulation until they have). False after sim_fail(). */
bool world_boot(struct world *world, const volatile int *interrupt);

/* At the end of a run that has been left to drain: no TLP and no Ethernet frame is alive, all
 * credits are whole. Else sim_fail() with the port, and false. */
bool world_check_idle(struct world *world);

/* Follows the transfers that the trace asks for, of its device or, if it has none, of all (the
 * first to transfer is taken). They count from the next world_stats_clear() on. Not owned. */
struct stamp_trace;
void world_trace(struct world *world, struct stamp_trace *trace);

/* Statistics of everything, one table per call with ascending index until false. */
bool world_stats(struct world *world, unsigned index, const char **prefix,
                 const struct stat_desc **table, void **state);
/* Clears them all: the measurement begins. */
void world_stats_clear(struct world *world);

#endif
