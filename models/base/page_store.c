/* Pages open and packed. */
#include "models/base/page_store.h"

#include <stdlib.h>
#include <string.h>

#include "models/base/page_pack.h"
#include "sim/engine/zeroed.h"

/* Pages come from slabs, each twice as large as the one before, up to a large page of the host. */
#define SLAB_PAGES_MIN 16u
#define SLAB_PAGES_MAX 512u

/* So many pages lie open before any is packed; with 40 MiB figures take as long. */
#ifdef SIM_HOSTILE
#define OPEN_PAGES 2u
#else
#define OPEN_PAGES 3072u /* 12 MiB */
#endif
#define PACK_TRIES 8u /* pages that are looked at before there is to be another open one */

struct slab {
    struct slab *next;
    uint8_t *page;
    size_t n_pages;
};

/* Pages that lie open, in a ring: the hand points at the one that is looked at next. */
struct page_store {
    struct open_page {
        struct page_region *region;
        uint32_t idx; /* in the region */
    } * ring;
    uint32_t n, max, hand;
    const uint8_t *const *held; /* *held stays open */
    struct page_region *regions;
    struct slab *slabs;    /* the newest first */
    size_t n_fresh;        /* of its pages, the last ones, are not in use */
    uint64_t packed_bytes; /* of all that are packed */
};

struct page_store *page_store_new(const uint8_t *const *held)
{
    struct page_store *store = sim_zalloc(1, sizeof(*store));

    store->held = held;
    return store;
}

static void region_free(struct page_region *region)
{
    for (unsigned i = 0; region->packed != NULL && i < PAGE_REGION_PAGES; i++)
        free(region->packed[i]);
    free(region->packed);
    free(region);
}

void page_store_free(struct page_store *store)
{
    if (store == NULL)
        return;
    while (store->regions != NULL) {
        struct page_region *region = store->regions;
        store->regions = region->next;
        region_free(region);
    }
    while (store->slabs != NULL) {
        struct slab *slab = store->slabs;
        store->slabs = slab->next;
        sim_zeroed_free(slab->page, slab->n_pages * PAGE_BYTES);
        free(slab);
    }
    free(store->ring);
    free(store);
}

struct page_region *page_region_new(struct page_store *store)
{
    struct page_region *region = sim_zalloc(1, sizeof(*region));

    region->next = store->regions;
    store->regions = region;
    return region;
}

static uint8_t *fresh_page(struct page_store *store)
{
    if (store->n_fresh == 0) {
        struct slab *slab = sim_zalloc(1, sizeof(*slab));

        slab->n_pages = store->slabs == NULL ? SLAB_PAGES_MIN
                                             : SIM_MIN(2 * store->slabs->n_pages, SLAB_PAGES_MAX);
        slab->page = sim_zeroed_new(slab->n_pages * PAGE_BYTES);
        slab->next = store->slabs;
        store->slabs = slab;
        store->n_fresh = slab->n_pages;
    }
    return store->slabs->page + (store->slabs->n_pages - store->n_fresh--) * PAGE_BYTES;
}

static void put_packed(struct page_region *region, uint32_t idx, uint8_t *packed)
{
    if (packed == NULL && region->packed == NULL)
        return;
    if (region->packed == NULL)
        region->packed = sim_zalloc(PAGE_REGION_PAGES, sizeof(*region->packed));
    region->packed[idx] = packed;
}

/* Packs the first of the next few open pages that fits: returns it, zeroed, and its place in *ring;
 * NULL: none fits. */
static uint8_t *pack_one(struct page_store *store, struct open_page **ring)
{
    for (unsigned tries = 0; tries < PACK_TRIES; tries++) {
        struct open_page *at = &store->ring[store->hand];
        uint8_t **page = &at->region->page[at->idx], *freed = *page, *packed;
        size_t bytes;
        store->hand = store->hand + 1 < store->n ? store->hand + 1 : 0;
        if ((store->held != NULL && freed == *store->held) || !page_pack(freed, &packed, &bytes))
            continue;
        put_packed(at->region, at->idx, packed);
        store->packed_bytes += bytes;
        *page = NULL;
        memset(freed, 0, PAGE_BYTES);
        *ring = at;
        return freed;
    }
    return NULL;
}

uint8_t *page_store_open(struct page_store *store, struct page_region *region, uint32_t idx)
{
    struct open_page *at;
    uint8_t *page = store->n >= OPEN_PAGES ? pack_one(store, &at) : NULL;

    if (page == NULL) {
        if (store->n == store->max) {
            store->max = SIM_MAX(2 * store->max, SLAB_PAGES_MIN);
            store->ring = sim_grow(store->ring, store->max, sizeof(*store->ring));
        }
        at = &store->ring[store->n++];
        page = fresh_page(store);
    }
    if (region->packed != NULL && region->packed[idx] != NULL) {
        store->packed_bytes -= page_unpack(region->packed[idx], page);
        free(region->packed[idx]);
        region->packed[idx] = NULL;
    }
    *at = (struct open_page){ region, idx };
    return region->page[idx] = page;
}

void page_store_drop(struct page_store *store, struct page_region *region, uint32_t idx)
{
    uint8_t page[PAGE_BYTES];

    store->packed_bytes -= page_unpack(region->packed[idx], page);
    free(region->packed[idx]);
    region->packed[idx] = NULL;
}

uint64_t page_store_bytes(const struct page_store *store)
{
    return store->n * PAGE_BYTES + store->packed_bytes;
}
