/*
 * The kernel's memory, for models/host/os_*.c only: pages, objects, memory for good.
 *
 * Invariants:
 *   - A free page is in exactly one list: of a CPU, or of its node. Lists are by node and order, so
 *     that a page never changes its size; when a node is full, free pages of all sizes go back to
 *     the allocator of the node's memory.
 *   - An object is in the magazine of a CPU of its node, or in the depot of its node.
 */
#ifndef MODELS_HOST_OS_MEMORY_H
#define MODELS_HOST_OS_MEMORY_H

#include "models/host/os_internal.h"

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
    struct physmem *mem;
    struct os_page_list *cpu_pages; /* [cpu][node][order] */
    struct k_page *spare_pages;     /* structures without memory */
    struct os_page_chunk *chunks;   /* of such structures */
    struct k_cache *caches;
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
/* K_NODE_LOCAL or a node of the host. */
unsigned os_node_of(struct kernel *kernel, int node);
/* The kernel's own structure of the page that holds an address. */
struct kaddr os_page_struct(const struct os_memory *memory, struct kaddr at);
/* Pages in use, of 4 KiB; for tests. */
uint64_t os_live_pages(const struct kernel *kernel);
uint64_t os_pinned_pages(const struct kernel *kernel);

#endif
