/*
 * Two allocators of addresses. Neither touches the memory behind them, if there is any, and neither
 * takes simulated time. Ranges have any size and alignment (I/O virtual addresses of exports,
 * segments of a pool) and are found in linear time. Pages come in blocks of powers of two (buffers
 * in a DMA window) and are found and given back in constant time.
 */
#ifndef LOGIC_LENDING_RANGES_H
#define LOGIC_LENDING_RANGES_H

#include <stdbool.h>
#include <stdint.h>

/* ---- Ranges ---------------------------------------------------------------------------------- */

struct lend_range {
    struct lend_range *next; /* ascending by base */
    uint64_t base, bytes;
};
struct lend_ranges {
    uint64_t base, end;       /* addresses base .. end - 1 */
    struct lend_range *taken; /* disjoint */
};

/* Starts with everything free. */
void lend_ranges_init(struct lend_ranges *ranges, uint64_t base, uint64_t end);
/* Gives every range back and frees the book-keeping. */
void lend_ranges_release(struct lend_ranges *ranges);
/* Takes the lowest free range of that size; align: a power of two. False: there is none, or bytes
 * is 0. */
bool lend_ranges_take(struct lend_ranges *ranges, uint64_t bytes, uint64_t align, uint64_t *base);
/* Takes exactly this range. False: part of it is taken or out of bounds. */
bool lend_ranges_take_at(struct lend_ranges *ranges, uint64_t base, uint64_t bytes);
/* Gives back the range that begins at `base`. False: there is none. */
bool lend_ranges_give(struct lend_ranges *ranges, uint64_t base);
uint64_t lend_ranges_taken_bytes(const struct lend_ranges *ranges);

/* ---- Pages ----------------------------------------------------------------------------------- */

#define LEND_ORDERS 24u

/* A buddy system over 2^log2 pages. It hands out the block that was given back last, whose
 * translations are most likely still in the IOMMU's cache. */
struct lend_pages {
    uint8_t *state; /* per page: order + 1 of the free block that begins here; 0: none begins */
    uint32_t *next, *prev; /* in the free list of that order */
    uint32_t first[LEND_ORDERS];
    unsigned log2;
    uint64_t n_free;
};

/* Starts with everything free; log2 < LEND_ORDERS. */
void lend_pages_init(struct lend_pages *pages, unsigned log2);
void lend_pages_release(struct lend_pages *pages);
/* Takes 2^order pages; *page is the first. False: no such block is free. */
bool lend_pages_take(struct lend_pages *pages, unsigned order, uint32_t *page);
/* Gives them back; both arguments as in lend_pages_take(). */
void lend_pages_give(struct lend_pages *pages, unsigned order, uint32_t page);
static inline bool lend_power_of_two(uint64_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}
/* The smallest order whose blocks hold n_pages. */
static inline unsigned lend_order_of(uint64_t n_pages)
{
    return n_pages <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(n_pages - 1);
}

#endif
