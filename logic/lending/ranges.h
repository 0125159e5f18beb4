/*
 * Two allocators of addresses, both without memory behind them: ranges of any size and alignment
 * (I/O virtual addresses of exports, segments of a pool), and pages in blocks of powers of two
 * (buffers in a DMA window: found and given back in constant time).
 */
#ifndef LOGIC_LENDING_RANGES_H
#define LOGIC_LENDING_RANGES_H

#include <stdbool.h>
#include <stdint.h>

/* ---- Ranges ---------------------------------------------------------------------------------- */

struct lend_range {
    struct lend_range *next; /* by ascending base */
    uint64_t base, bytes;
};
struct lend_ranges {
    uint64_t base, end;       /* end: first address beyond */
    struct lend_range *taken; /* none overlap */
};

void lend_ranges_init(struct lend_ranges *ranges, uint64_t base, uint64_t end);
void lend_ranges_release(struct lend_ranges *ranges);
/* The lowest free range; align: a power of two. False: there is none. */
bool lend_ranges_take(struct lend_ranges *ranges, uint64_t bytes, uint64_t align, uint64_t *base);
/* This very range; false: it is not all free. */
bool lend_ranges_take_at(struct lend_ranges *ranges, uint64_t base, uint64_t bytes);
/* A range that was taken, by its base. False: there is none. */
bool lend_ranges_give(struct lend_ranges *ranges, uint64_t base);
uint64_t lend_ranges_taken_bytes(const struct lend_ranges *ranges);

/* ---- Pages ----------------------------------------------------------------------------------- */

#define LEND_ORDERS 24u

/* A buddy system over 2^log2 pages. Blocks that were given back last are taken first, so that their
 * translations are still in the IOMMU's cache. */
struct lend_pages {
    uint8_t *state;        /* of each page: free block of order (state - 1) begins here; 0: not */
    uint32_t *next, *prev; /* in the list of that order */
    uint32_t first[LEND_ORDERS];
    unsigned log2;
    uint64_t n_free;
};

/* log2 < LEND_ORDERS. */
void lend_pages_init(struct lend_pages *pages, unsigned log2);
void lend_pages_release(struct lend_pages *pages);
/* The first page of 2^order, or false. */
bool lend_pages_take(struct lend_pages *pages, unsigned order, uint32_t *page);
void lend_pages_give(struct lend_pages *pages, unsigned order, uint32_t page);
/* The order that n_pages need. */
static inline unsigned lend_order_of(uint64_t n_pages)
{
    return n_pages <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(n_pages - 1);
}

#endif
