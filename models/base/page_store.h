/*
 * Pages of sparse simulated memory, of a host or a device. A page that many others have come after
 * lies packed (page_pack.h), if it fits, as most bulk payload does, until it is opened again; of
 * what is in it nothing changes.
 */
#ifndef MODELS_BASE_PAGE_STORE_H
#define MODELS_BASE_PAGE_STORE_H

#include "models/base/address.h"

#define PAGE_REGION_LOG2  21 /* 2 MiB: 512 pages */
#define PAGE_REGION_PAGES 512u

/* A part of a memory. */
struct page_region {
    uint8_t *page[PAGE_REGION_PAGES]; /* those that lie open, on pages of the real machine */
    uint8_t **packed;                 /* by page; NULL: none ever was */
    struct page_region *next;         /* of the store */
};
struct page_store;

/* *held, the owner's: a page that stays open; it may change at any time. NULL: none does. */
struct page_store *page_store_new(const uint8_t *const *held);
/* Frees the store, its regions and all of their pages. NULL is allowed. */
void page_store_free(struct page_store *store);
/* A region, the store's, in which no page exists. */
struct page_region *page_region_new(struct page_store *store);

static inline bool page_is_packed(const struct page_region *region, uint32_t idx)
{
    return region->packed != NULL && region->packed[idx] != NULL;
}
/* Opens a page that is not open: with what was packed, or zeros. Returns it; region->page[idx]
 * points at it, too. It stays open until another page is opened, of which this may be packed. */
uint8_t *page_store_open(struct page_store *store, struct page_region *region, uint32_t idx);
/* Makes a packed page one that does not exist. */
void page_store_drop(struct page_store *store, struct page_region *region, uint32_t idx);
/* What pages take of the real machine's memory, open and packed. */
uint64_t page_store_bytes(const struct page_store *store);

#endif
