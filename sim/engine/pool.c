/* Pools: objects of one size, carved from slabs, handed out last in first out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/sanitizer.h"
#include "sim/engine/sim_internal.h"

#define SLAB_BYTES       (64u * 1024u)
#define FIRST_SLAB_BYTES (4u * 1024u) /* each is twice as large as the one before */
#define SLAB_ALIGN       64u /* of the first object; a size that is a multiple keeps lines apart */

/* Poisoned while they are free, so that the inline functions are to leave them alone. */
#if SIM_ASAN || defined(SIM_HOSTILE)
#define CHECKED true
#else
#define CHECKED false
#endif

struct sim_pool {
    struct sim_pool_stack stack;
    struct sim_pool *next;
    struct sim *sim;
    char *name;
    size_t object_bytes;
    size_t slab_objects; /* of the next one */
    size_t n_objects;
    size_t n_given;   /* that were ever handed out */
    size_t n_checked; /* stands for stack.n_free if CHECKED */
    char *fresh;      /* objects of the newest slab that were never handed out */
    size_t n_fresh;
    struct slab *slabs;
};

_Static_assert(offsetof(struct sim_pool, stack) == 0, "where the inline functions look for it");

/* Lies behind the objects of its slab. */
struct slab {
    struct slab *next;
    void *memory;
    size_t n_objects;
};

static size_t slab_objects(const struct sim_pool *pool, size_t bytes)
{
#ifdef SIM_HOSTILE
    (void)pool, (void)bytes;
    return 2;
#else
    return SIM_MAX((bytes - sizeof(struct slab)) / pool->object_bytes, (size_t)1);
#endif
}

struct sim_pool *sim_pool_new(struct sim *sim, const char *name, size_t object_bytes)
{
    struct sim_pool *pool = sim_zalloc(1, sizeof(*pool));

    SIM_ASSERT(object_bytes > 0, "pool %s of objects without a size", name);
    pool->sim = sim;
    pool->name = sim_strdup(name);
    pool->object_bytes = (object_bytes + 15) / 16 * 16;
    pool->slab_objects = slab_objects(pool, FIRST_SLAB_BYTES);
    pool->next = sim->pools;
    sim->pools = pool;
    return pool;
}

struct sim_pool *sim_pool_shared(struct sim *sim, const char *name, size_t object_bytes)
{
    for (struct sim_pool *pool = sim->pools; pool != NULL; pool = pool->next) {
        if (strcmp(pool->name, name) != 0)
            continue;
        SIM_ASSERT(pool->object_bytes == (object_bytes + 15) / 16 * 16,
                   "pool %s holds objects of %zu bytes, not %zu", name, pool->object_bytes,
                   object_bytes);
        return pool;
    }
    return sim_pool_new(sim, name, object_bytes);
}

static __attribute__((cold, noinline)) void add_slab(struct sim_pool *pool)
{
    size_t objects_bytes = pool->slab_objects * pool->object_bytes;
    size_t bytes = objects_bytes + sizeof(struct slab);
    char *memory = aligned_alloc(SLAB_ALIGN, (bytes + SLAB_ALIGN - 1) / SLAB_ALIGN * SLAB_ALIGN);

    if (memory == NULL)
        sim_out_of_memory("a slab of pool %s", pool->name);
    struct slab *slab = (struct slab *)(void *)(memory + objects_bytes);

    slab->next = pool->slabs;
    slab->memory = memory;
    slab->n_objects = pool->slab_objects;
    pool->slabs = slab;
    pool->fresh = memory;
    pool->n_fresh = pool->slab_objects;
    pool->n_objects += pool->slab_objects;
    pool->stack.free = sim_grow(pool->stack.free, pool->n_objects, sizeof(void *));
    pool->slab_objects = slab_objects(pool, SIM_MIN(2 * bytes, (size_t)SLAB_BYTES));
    SIM_POISON(memory, objects_bytes);
}

void *sim_pool_get_slow(struct sim_pool *pool)
{
    void *object;

    if (pool->n_checked != 0) {
        object = pool->stack.free[--pool->n_checked];
    } else {
        if (pool->n_fresh == 0)
            add_slab(pool);
        object = pool->fresh;
        pool->fresh += pool->object_bytes;
        pool->n_fresh--;
        pool->n_given++;
        pool->stack.n_room = CHECKED ? 0 : pool->n_given;
    }
    SIM_UNPOISON(object, pool->object_bytes);
    return object;
}

void sim_pool_put_slow(struct sim_pool *pool, void *object)
{
    SIM_ASSERT(sim_pool_live(pool) > 0, "pool %s got back more than it gave", pool->name);
#ifdef SIM_HOSTILE
    memset(object, 0xa5, pool->object_bytes);
#endif
    pool->stack.free[pool->n_checked++] = object;
    SIM_POISON(object, pool->object_bytes);
}

uint64_t sim_pool_live(const struct sim_pool *pool)
{
    return pool->n_given - pool->stack.n_free - pool->n_checked;
}

static void pool_free(struct sim_pool *pool)
{
    struct slab *next;

    for (struct slab *slab = pool->slabs; slab != NULL; slab = next) {
        next = slab->next;
        SIM_UNPOISON(slab->memory, slab->n_objects * pool->object_bytes);
        free(slab->memory);
    }
    free(pool->stack.free);
    free(pool->name);
    free(pool);
}

void sim_pools_free(struct sim *sim, bool check)
{
    struct sim_pool *next;

    for (struct sim_pool *pool = sim->pools; pool != NULL; pool = next) {
        next = pool->next;
        SIM_ASSERT(!check || sim_pool_live(pool) == 0, "%llu objects of pool %s are still alive",
                   (unsigned long long)sim_pool_live(pool), pool->name);
        pool_free(pool);
    }
    sim->pools = NULL;
}
