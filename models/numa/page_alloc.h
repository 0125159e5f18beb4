/*
 * Pages of one node: free runs in order of address (first fit, from `from` on and then from the
 * lowest: a zone before those below it), and which runs are
 * allocated, so that a release of anything else is found. Book-keeping grows with what is
 * allocated and with how the free memory is cut up.
 */
#ifndef MODELS_NUMA_PAGE_ALLOC_H
#define MODELS_NUMA_PAGE_ALLOC_H

#include "sim/engine/types.h"

struct page_run {
    uint64_t first, count; /* pages */
};

struct page_alloc {
    struct page_run *free_run; /* ascending, never adjacent */
    size_t n_free, free_capacity;
    struct page_run *allocated; /* open addressing by first; count 0: empty */
    size_t n_allocated, allocated_capacity;
    uint64_t free_pages;
    uint64_t from; /* pages below this are given when those above do not suffice */
};

void page_alloc_init(struct page_alloc *a);
void page_alloc_release(struct page_alloc *a);
/* Adds memory; runs must not overlap. */
void page_alloc_add(struct page_alloc *a, uint64_t first, uint64_t count);
/* align: a power of two, in pages. False if there is no such run. */
bool page_alloc_take(struct page_alloc *a, uint64_t count, uint64_t align, uint64_t *first);
/* The same in order of address, whatever `from` is. */
bool page_alloc_take_lowest(struct page_alloc *a, uint64_t count, uint64_t align, uint64_t *first);
/* False if exactly this run is not allocated. */
bool page_alloc_give(struct page_alloc *a, uint64_t first, uint64_t count);

#endif
