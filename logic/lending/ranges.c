/*
 * What it does: first fit over a sorted list; a buddy system with one free list per order.
 * Follows: Knuth, The Art of Computer Programming 1, 2.5.
 * Costs: no simulated time; the caller charges for what it maps.
 */
#include "logic/lending/ranges.h"

#include <stddef.h>

#include "logic/kapi.h"

#define NONE UINT32_MAX

/* ---- Ranges ---------------------------------------------------------------------------------- */

void lend_ranges_init(struct lend_ranges *ranges, uint64_t base, uint64_t end)
{
    *ranges = (struct lend_ranges){ .base = base, .end = end };
}

void lend_ranges_release(struct lend_ranges *ranges)
{
    while (ranges->taken != NULL)
        lend_ranges_give(ranges, ranges->taken->base);
}

static void insert(struct lend_range **link, uint64_t base, uint64_t bytes)
{
    struct lend_range *range = k_zalloc(sizeof *range);
    *range = (struct lend_range){ .next = *link, .base = base, .bytes = bytes };
    *link = range;
}

bool lend_ranges_take(struct lend_ranges *ranges, uint64_t bytes, uint64_t align, uint64_t *base)
{
    uint64_t at = ranges->base;
    for (struct lend_range **link = &ranges->taken;; link = &(*link)->next) {
        uint64_t limit = *link != NULL ? (*link)->base : ranges->end;
        at = (at + align - 1) & ~(align - 1);
        if (bytes != 0 && at < limit && bytes <= limit - at) {
            insert(link, at, bytes);
            *base = at;
            return true;
        }
        if (*link == NULL)
            return false;
        at = (*link)->base + (*link)->bytes;
    }
}

bool lend_ranges_take_at(struct lend_ranges *ranges, uint64_t base, uint64_t bytes)
{
    struct lend_range **link = &ranges->taken;
    if (bytes == 0 || base < ranges->base || base > ranges->end || bytes > ranges->end - base)
        return false;
    while (*link != NULL && (*link)->base + (*link)->bytes <= base)
        link = &(*link)->next;
    if (*link != NULL && (*link)->base < base + bytes)
        return false;
    insert(link, base, bytes);
    return true;
}

bool lend_ranges_give(struct lend_ranges *ranges, uint64_t base)
{
    struct lend_range **link = &ranges->taken;
    while (*link != NULL && (*link)->base != base)
        link = &(*link)->next;
    if (*link == NULL)
        return false;
    struct lend_range *range = *link;
    *link = range->next;
    k_free(range);
    return true;
}

uint64_t lend_ranges_taken_bytes(const struct lend_ranges *ranges)
{
    uint64_t bytes = 0;
    for (const struct lend_range *range = ranges->taken; range != NULL; range = range->next)
        bytes += range->bytes;
    return bytes;
}

/* ---- Pages ----------------------------------------------------------------------------------- */

static void push(struct lend_pages *pages, unsigned order, uint32_t page)
{
    uint32_t head = pages->first[order];
    pages->state[page] = (uint8_t)(order + 1);
    pages->next[page] = head;
    pages->prev[page] = NONE;
    if (head != NONE)
        pages->prev[head] = page;
    pages->first[order] = page;
}

static void unlink_block(struct lend_pages *pages, unsigned order, uint32_t page)
{
    uint32_t next = pages->next[page], prev = pages->prev[page];
    if (next != NONE)
        pages->prev[next] = prev;
    if (prev != NONE)
        pages->next[prev] = next;
    else
        pages->first[order] = next;
    pages->state[page] = 0;
}

void lend_pages_init(struct lend_pages *pages, unsigned log2)
{
    const size_t n = (size_t)1 << log2;
    *pages = (struct lend_pages){ .log2 = log2, .n_free = n };
    pages->state = k_zalloc(n);
    pages->next = k_zalloc(n * sizeof pages->next[0]);
    pages->prev = k_zalloc(n * sizeof pages->prev[0]);
    for (unsigned i = 0; i < LEND_ORDERS; i++)
        pages->first[i] = NONE;
    push(pages, log2, 0);
}

void lend_pages_release(struct lend_pages *pages)
{
    k_free(pages->state);
    k_free(pages->next);
    k_free(pages->prev);
    *pages = (struct lend_pages){ .state = NULL };
}

bool lend_pages_take(struct lend_pages *pages, unsigned order, uint32_t *page)
{
    unsigned from = order;
    while (from <= pages->log2 && pages->first[from] == NONE)
        from++;
    if (from > pages->log2)
        return false;
    *page = pages->first[from];
    unlink_block(pages, from, *page);
    while (from-- > order)
        push(pages, from, *page + (1u << from));
    pages->n_free -= UINT64_C(1) << order;
    return true;
}

void lend_pages_give(struct lend_pages *pages, unsigned order, uint32_t page)
{
    pages->n_free += UINT64_C(1) << order;
    for (; order < pages->log2; order++) {
        uint32_t buddy = page ^ (1u << order);
        if (pages->state[buddy] != order + 1)
            break;
        unlink_block(pages, order, buddy);
        page &= ~(1u << order);
    }
    push(pages, order, page);
}
