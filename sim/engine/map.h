/*
 * Values by name or by address, in constant time: for set-up and for messages, not for what happens
 * per packet. Nothing can be taken out, and there is no order to go through a map in: results
 * cannot depend on addresses.
 */
#ifndef SIM_ENGINE_MAP_H
#define SIM_ENGINE_MAP_H

#include <stdbool.h>
#include <stddef.h>

struct sim_map;

/* Returns an empty map. Never NULL; the caller frees it with sim_map_free(). */
struct sim_map *sim_map_new(void);
/* NULL is allowed. */
void sim_map_free(struct sim_map *map);

/* Adds `name`, which must outlive the map. False: it is there already, and keeps its value. */
bool sim_map_add(struct sim_map *map, const char *name, size_t value);
/* Finds the first n characters of `name` as a name. False: not there, *value is unchanged. */
bool sim_map_find_n(const struct sim_map *map, const char *name, size_t n, size_t *value);
bool sim_map_find(const struct sim_map *map, const char *name, size_t *value);

/* The same for an address, which is only compared. No address equals a name. */
bool sim_map_add_address(struct sim_map *map, const void *address, size_t value);
bool sim_map_find_address(const struct sim_map *map, const void *address, size_t *value);

#endif
