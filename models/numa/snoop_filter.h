/*
 * The part of a hub's snoop filter that tracks the caches of one front-side bus: tags of lines that
 * these caches may hold. A line that a cache evicts silently stays listed.
 */
#ifndef MODELS_NUMA_SNOOP_FILTER_H
#define MODELS_NUMA_SNOOP_FILTER_H

#include "models/numa/cache.h"

#define SNOOP_FILTER_NONE UINT64_MAX

struct snoop_filter {
    struct cache tags; /* a line that is listed is valid; its state has no meaning */
    bool usual;        /* the compiler knows its shape */
};

/* bytes: of the lines that it can list; bytes / 64 / ways is a power of two. lines: their numbers
 * are below. */
void snoop_filter_init(struct snoop_filter *f, uint64_t bytes, uint32_t ways, uint64_t lines);
void snoop_filter_release(struct snoop_filter *f);
/* Empties it. */
void snoop_filter_clear(struct snoop_filter *f);
/* Tells the real machine that the line will be looked up. */
void snoop_filter_prefetch(const struct snoop_filter *f, uint64_t line);
bool snoop_filter_has(const struct snoop_filter *f, uint64_t line);
/* Lists the line. Returns the line that had to go for it, which no cache of the bus may keep, or
 * SNOOP_FILTER_NONE. */
uint64_t snoop_filter_add(struct snoop_filter *f, uint64_t line);
/* Does nothing if the line is not listed. */
void snoop_filter_remove(struct snoop_filter *f, uint64_t line);

#endif
