/*
 * Objects of one kind: magazines per CPU, depots per node.
 *
 * Models: an object lies in the memory of the node whose CPU first asked for its slab; freed by a
 *   CPU of the node it is the next that this CPU gets, freed elsewhere it goes home. CPUs of a node
 *   that is full get objects of others.
 * Does not model: the cycles of the allocator (costs.* of its users contain them), slabs that are
 *   given back.
 * Timing: what is done to an object touches its lines.
 * Sources: Linux 4.14, mm/slab.c.
 */
#include <stdlib.h>
#include <string.h>

#include "models/os/os_memory.h"

#define SLAB_BYTES UINT64_C(0x4000)

/* In front of the object. */
struct os_object {
    struct os_object *next; /* while free */
    uint64_t addr;          /* of its simulated memory, 0: none */
    uint32_t node;
    uint32_t is_live;
};
_Static_assert(sizeof(struct os_object) % 8 == 0, "objects are aligned to 8 bytes");

struct object_list {
    struct os_object *first;
    uint32_t n;
};

struct object_slab {
    struct object_slab *next;
    uint64_t private_data[]; /* the objects */
};

struct k_cache {
    struct kernel *kernel;
    struct k_cache *next;
    const char *name;
    size_t stride, touched_bytes;
    unsigned per_slab;
    uint64_t live;
    struct object_slab *slabs;
    struct object_list *magazine; /* by CPU */
    struct object_list depot[];   /* by node */
};

static void push(struct object_list *list, struct os_object *object)
{
    object->next = list->first;
    list->first = object;
    list->n++;
}

static struct os_object *pop(struct object_list *list)
{
    struct os_object *object = list->first;
    list->first = object->next;
    list->n--;
    return object;
}

static void move(struct object_list *to, struct object_list *from, unsigned n)
{
    while (n-- > 0 && from->n > 0)
        push(to, pop(from));
}

struct k_cache *k_cache_new(struct kernel *kernel, const char *name, size_t bytes,
                            size_t touched_bytes)
{
    struct os_memory *memory = kernel->memory;
    struct k_cache *cache = k_zalloc(sizeof(*cache) + memory->n_nodes * sizeof(cache->depot[0]));
    cache->magazine = k_zalloc(kernel->n_cpus * sizeof(cache->magazine[0]));
    cache->kernel = kernel;
    cache->name = name;
    cache->stride = sizeof(struct os_object) + ((bytes + 7) & ~(size_t)7);
    cache->touched_bytes = (touched_bytes + LINE_BYTES - 1) & ~(size_t)(LINE_BYTES - 1);
    cache->per_slab = OS_CACHE_BATCH;
    if (cache->touched_bytes > SLAB_BYTES / OS_CACHE_BATCH)
        cache->per_slab = (unsigned)SIM_MAX(SLAB_BYTES / cache->touched_bytes, UINT64_C(1));
    cache->next = memory->caches;
    memory->caches = cache;
    return cache;
}

void os_caches_free(struct os_memory *memory)
{
    while (memory->caches != NULL) {
        struct k_cache *cache = memory->caches;
        memory->caches = cache->next;
        while (cache->slabs != NULL) {
            struct object_slab *slab = cache->slabs;
            cache->slabs = slab->next;
            free(slab);
        }
        free(cache->magazine);
        free(cache);
    }
}

static struct kaddr slab_memory_on(struct k_cache *cache, unsigned node)
{
    return k_alloc(cache->kernel, (int)node, cache->per_slab * cache->touched_bytes, LINE_BYTES);
}

/* The simulated memory of a slab: of the node, or of another if it is full. v 0: there are free
 * objects of another, which have come to the list. */
static struct kaddr slab_memory(struct k_cache *cache, struct object_list *list, unsigned *node)
{
    const unsigned n_nodes = cache->kernel->n_nodes;
    struct kaddr at = slab_memory_on(cache, *node);
    for (unsigned i = 1; at.v == 0 && i < n_nodes; i++) {
        move(list, &cache->depot[(*node + i) % n_nodes], OS_CACHE_BATCH);
        if (list->n > 0)
            return at;
    }
    for (unsigned i = 1; at.v == 0 && i < n_nodes; i++) {
        *node = (*node + 1) % n_nodes;
        at = slab_memory_on(cache, *node);
    }
    SIM_ASSERT(at.v != 0, "%s: no memory for objects `%s`", cache->kernel->name, cache->name);
    return at;
}

/* The list is empty, and is not any more. */
static void add_slab(struct k_cache *cache, struct object_list *list, unsigned node)
{
    struct kaddr at = { 0 };
    if (cache->touched_bytes != 0 && (at = slab_memory(cache, list, &node)).v == 0)
        return;
    struct object_slab *slab = k_zalloc(sizeof(*slab) + cache->per_slab * cache->stride);
    slab->next = cache->slabs;
    cache->slabs = slab;
    for (unsigned i = cache->per_slab; i-- > 0;) { /* the first is the first to go */
        struct os_object *object = (void *)((char *)slab->private_data + i * cache->stride);
        object->addr = at.v != 0 ? at.v + i * cache->touched_bytes : 0;
        object->node = node;
        push(list, object);
    }
}

void *k_cache_get(struct k_cache *cache, struct kaddr *addr)
{
    struct os_cpu *cpu = os_cpu_or_first(cache->kernel);
    struct object_list *magazine = &cache->magazine[cpu->idx];
    if (SIM_UNLIKELY(magazine->n == 0)) {
        move(magazine, &cache->depot[cpu->node], OS_CACHE_BATCH);
        if (magazine->n == 0)
            add_slab(cache, magazine, cpu->node);
    }
    struct os_object *object = pop(magazine);
    object->is_live = 1;
    cache->live++;
    if (addr != NULL)
        addr->v = object->addr;
    return object + 1;
}

void k_cache_put(struct k_cache *cache, void *ptr)
{
    struct os_cpu *cpu = os_cpu_or_first(cache->kernel);
    struct os_object *object = (struct os_object *)ptr - 1;
    SIM_ASSERT(object->is_live == 1, "an object of `%s` is put twice", cache->name);
    object->is_live = 0;
    cache->live--;
    if (object->node != cpu->node) {
        push(&cache->depot[object->node], object);
        return;
    }
    struct object_list *magazine = &cache->magazine[cpu->idx];
    push(magazine, object);
    if (SIM_LIKELY(magazine->n <= 2 * OS_CACHE_BATCH))
        return;
    /* The older half goes to the depot. */
    struct object_list keep = { NULL, 0 };
    move(&keep, magazine, OS_CACHE_BATCH);
    move(&cache->depot[cpu->node], magazine, magazine->n);
    move(magazine, &keep, keep.n);
}

uint64_t k_cache_live(const struct k_cache *cache)
{
    return cache->live;
}
