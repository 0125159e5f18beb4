/* The world of one point: the hosts, devices and cables that the scenario names, built, checked and
 * booted. */
#ifndef MODELS_WORLD_WORLD_H
#define MODELS_WORLD_WORLD_H

#include "models/base/cable.h"
#include "models/host/host.h"

struct world;

/* Settings of a cable beside those of its kind. */
extern const struct param_desc world_cable_params[];
/* Settings of every cable and of every device that are no parameters. */
extern const struct setting_desc world_cable_settings[];
extern const struct setting_desc world_device_settings[];

/* Builds everything under `hosts`, `devices` and `cables`. Never returns NULL; world_sound() tells
 * whether the world may run. The configuration must outlive it. */
struct world *world_new(struct config *config, uint64_t seed, struct sim_error_list *errors);
/* Frees the world. TLPs that are still alive are a fault unless the run failed. */
void world_free(struct world *world);

struct sim *world_sim(struct world *world);
/* The scenario that the world was built from. */
struct config *world_config(const struct world *world);
struct pcie_context *world_pcie(struct world *world);
/* Return NULL if there is none of the name, or it is faulty. */
struct host *world_host(struct world *world, const char *name);
struct model *world_device(struct world *world, const char *name);
/* False: there were mistakes. The world cannot run; it may only be checked further. */
bool world_sound(const struct world *world);
/* Whether the host or device of this name has mistakes, or may be one that could not be read.
 * References to it must not be reported as mistakes. */
bool world_faulty(const struct world *world, const char *name);
/* The port for that kind of cable by its name ("server_nic.e0"), or NULL. */
void *world_port(struct world *world, const struct cable_kind *kind, const char *name);
/* Returns the host at the root of the tree that contains the device's port p0; NULL: none does. */
struct host *world_host_of(struct world *world, const struct model *device);
/* Like world_host_of(), for another port: functions of a device may be in different hosts. */
struct host *world_host_of_port(struct world *world, const struct model *device, unsigned port);
/* Returns in *id the requester ID of the first function at the device's port, once its host has
 * booted. False: the port is in no host's tree. */
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
/* Returns the i-th cable in the order of the scenario; false: there are fewer. */
bool world_cable_at(const struct world *world, unsigned i, struct world_cable *cable);
unsigned world_n_hosts(const struct world *world);
struct host *world_host_at(struct world *world, unsigned idx);

/* Runs the simulation until all hosts have booted. False after sim_fail(). */
bool world_boot(struct world *world, const volatile int *interrupt);

/* At the end of a run that has been left to drain: whether all TLPs are freed, all credits are
 * whole and nothing is under way on a cable. If not, calls sim_fail() with the port. */
bool world_check_idle(struct world *world);

/* Follows the transfers that the trace asks for: of its device or, without one, of the first device
 * that transfers. Transfers count from the next world_stats_clear() on. The caller owns the trace.
 */
struct stamp_trace;
void world_trace(struct world *world, struct stamp_trace *trace);

/* Returns the index-th table of statistics with its prefix and state, which is up to now; false
 * beyond the last. */
bool world_stats(struct world *world, unsigned index, const char **prefix,
                 const struct stat_desc **table, void **state);
/* Clears all statistics when the measurement begins. */
void world_stats_clear(struct world *world);
/* Has the function called when that happens. */
void world_at_measurement(struct world *world, void (*begins)(void *arg, sim_time now_ps),
                          void *arg);

#endif
