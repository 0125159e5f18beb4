/*
 * The kernel's memory, for models/os/ only: pages, objects, memory for good.
 *
 * Invariants:
 *   - A free page is in exactly one list: of a CPU, or of its node. Lists are by node and order, so
 *     that a page never changes its size; when a node is full, free pages of all sizes go back to
 *     the allocator of the node's memory.
 *   - An object is in the magazine of a CPU of its node, or in the depot of its node.
 */
#ifndef MODELS_OS_OS_MEMORY_H
#define MODELS_OS_OS_MEMORY_H

#include "models/os/os_internal.h"

#define OS_PAGE_ORDERS 11u  /* 4 KiB .. 4 MiB */
#define OS_PAGE_BATCH  31u  /* pages that a CPU takes at once, and gives back at once */
#define OS_PAGE_HIGH   186u /* it keeps at most that many */
#define OS_CACHE_BATCH 32u  /* objects: the same, twice that are kept */

struct os_page_list {
    struct k_page *first; /* last in, first out */
    uint32_t n;
};

struct os_node {
    uint64_t page_structs; /* one line a page of the node, in order */
    uint64_t base;         /* address of the first page */
    struct os_page_list pages[OS_PAGE_ORDERS];
    uint64_t small, small_end; /* where k_alloc() puts what is small */
};

struct os_memory {
    struct kernel *kernel;
    struct physmem *mem;       /* the host's bytes */
    struct physmem *space;     /* addresses that there are and that are free: mem, or a guest's */
    const struct hpa *backing; /* of a guest: os_guest.backing; NULL: addresses are the host's */
    uint64_t n_backing;
    struct os_page_list *cpu_pages; /* [cpu][node][order] */
    struct k_page *spare_pages;     /* structures without memory */
    struct os_page_chunk *chunks;   /* of such structures */
    struct k_cache *caches;
    unsigned n_polled;   /* places that threads poll (os_spin.c) */
    uint64_t live_pages; /* of 4 KiB, in use */
    uint64_t pinned_pages;
    unsigned n_nodes;
    struct os_node node[];
};

void os_memory_new(struct kernel *kernel);
void os_memory_free(struct kernel *kernel);
/* os_page.c, os_cache.c: their part of it. */
void os_pages_free(struct os_memory *memory);
void os_caches_free(struct os_memory *memory);

/* The CPU that asks; the first from outside of all threads. */
static inline struct os_cpu *os_cpu_or_first(struct kernel *kernel)
{
    struct k_thread *self = os_self_or_null(kernel);
    return self != NULL ? self->on : &kernel->cpu[0];
}
/* Where the bytes of an address are. In a guest they go on from each other up to the next multiple
 * of OS_HUGE_BYTES only. */
static inline struct hpa os_hpa(const struct os_memory *memory, struct kaddr at)
{
    if (SIM_LIKELY(memory->backing == NULL))
        return (struct hpa){ at.v };
    const uint64_t i = at.v / OS_HUGE_BYTES;
    SIM_ASSERT(i < memory->n_backing && memory->backing[i].v != 0,
               "%s: %llx is no memory of this guest", memory->kernel->name,
               (unsigned long long)at.v);
    return (struct hpa){ memory->backing[i].v + at.v % OS_HUGE_BYTES };
}
/* How many of the bytes lie in one piece of the host's memory. */
static inline uint64_t os_run(const struct os_memory *memory, struct kaddr at, uint64_t bytes)
{
    if (SIM_LIKELY(memory->backing == NULL))
        return bytes;
    const uint64_t left = OS_HUGE_BYTES - at.v % OS_HUGE_BYTES;
    return SIM_MIN(bytes, left);
}
/* os_memory.c: pays for the translation of all pages of a range of a guest. */
void os_guest_touch(struct k_thread *self, struct kaddr at, uint64_t bytes);
/* As os_hpa(), for a CPU that is about to touch a line there: in a guest it pays for the
 * translation. */
static inline struct hpa os_touched(struct k_thread *self, struct kaddr at)
{
    const struct os_memory *memory = self->kernel->memory;
    if (SIM_LIKELY(memory->backing == NULL))
        return (struct hpa){ at.v };
    os_guest_touch(self, at, 1);
    return os_hpa(memory, at);
}
/* As os_run(), for a CPU that is about to touch all that lies in the piece. */
static inline uint64_t os_touched_run(struct k_thread *self, struct kaddr at, uint64_t bytes)
{
    if (SIM_LIKELY(self->kernel->memory->backing == NULL))
        return bytes;
    const uint64_t here = os_run(self->kernel->memory, at, bytes);
    os_guest_touch(self, at, here);
    return here;
}
/* Makes a range zero, without time. */
void os_memory_clear(struct os_memory *memory, struct kaddr at, uint64_t bytes);
/* K_NODE_LOCAL or a node of the host. */
unsigned os_node_of(struct kernel *kernel, int node);
/* The kernel's own structure of the page that holds an address. */
struct kaddr os_page_struct(const struct os_memory *memory, struct kaddr at);
/* Pages in use, of 4 KiB; for tests. */
uint64_t os_live_pages(const struct kernel *kernel);
uint64_t os_pinned_pages(const struct kernel *kernel);

#endif
