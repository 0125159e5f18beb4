/* Values by name or address: open addressing, linear probing, at most half full. */
#include "sim/engine/map.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/types.h"

#define ADDRESS SIZE_MAX /* instead of a length */

struct entry {
    const void *key; /* NULL: free */
    size_t n;        /* characters, or ADDRESS */
    uint64_t hash;
    size_t value;
};

struct sim_map {
    struct entry *entry;
    size_t n, room; /* room: a power of two, or 0 */
};

struct sim_map *sim_map_new(void)
{
    return sim_zalloc(1, sizeof(struct sim_map));
}

void sim_map_free(struct sim_map *map)
{
    if (map == NULL)
        return;
    free(map->entry);
    free(map);
}

/* FNV-1a; an address as the number that it is. */
static uint64_t hash_of(const void *key, size_t n)
{
    const uintptr_t address = (uintptr_t)key;
    const unsigned char *byte = n == ADDRESS ? (const void *)&address : key;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < (n == ADDRESS ? sizeof(address) : n); i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

static bool same(const struct entry *entry, const void *key, size_t n, uint64_t hash)
{
    if (entry->hash != hash || entry->n != n)
        return false;
    return n == ADDRESS ? entry->key == key : memcmp(entry->key, key, n) == 0;
}

/* The entry of the key, or the free one where it would be. There is room. */
static struct entry *place_of(const struct sim_map *map, const void *key, size_t n, uint64_t hash)
{
    size_t i = hash & (map->room - 1);

    while (map->entry[i].key != NULL && !same(&map->entry[i], key, n, hash))
        i = (i + 1) & (map->room - 1);
    return &map->entry[i];
}

static void make_room(struct sim_map *map)
{
    const struct sim_map old = *map;

    if (2 * (map->n + 1) <= map->room)
        return;
    map->room = map->room != 0 ? 2 * map->room : 16;
    map->entry = sim_zalloc(map->room, sizeof(*map->entry));
    for (size_t i = 0; i < old.room; i++) {
        const struct entry *entry = &old.entry[i];

        if (entry->key != NULL)
            *place_of(map, entry->key, entry->n, entry->hash) = *entry;
    }
    free(old.entry);
}

static bool add(struct sim_map *map, const void *key, size_t n, size_t value)
{
    const uint64_t hash = hash_of(key, n);

    make_room(map);
    struct entry *entry = place_of(map, key, n, hash);
    if (entry->key != NULL)
        return false;
    *entry = (struct entry){ key, n, hash, value };
    map->n++;
    return true;
}

static bool find(const struct sim_map *map, const void *key, size_t n, size_t *value)
{
    if (map->n == 0)
        return false;
    const struct entry *entry = place_of(map, key, n, hash_of(key, n));
    if (entry->key == NULL)
        return false;
    *value = entry->value;
    return true;
}

bool sim_map_add(struct sim_map *map, const char *name, size_t value)
{
    return add(map, name, strlen(name), value);
}

bool sim_map_find_n(const struct sim_map *map, const char *name, size_t n, size_t *value)
{
    return find(map, name, n, value);
}

bool sim_map_find(const struct sim_map *map, const char *name, size_t *value)
{
    return find(map, name, strlen(name), value);
}

bool sim_map_add_address(struct sim_map *map, const void *address, size_t value)
{
    SIM_ASSERT(address != NULL, "NULL has no value");
    return add(map, address, ADDRESS, value);
}

bool sim_map_find_address(const struct sim_map *map, const void *address, size_t *value)
{
    return address != NULL && find(map, address, ADDRESS, value);
}
