/*
 * Sparse physical memory with real bytes.
 *
 * Models: nodes of memory with a hole for memory-mapped I/O below 4 GiB; pages that appear when
 *   first written (models/base/page_store.h); a page allocator per node.
 * Does not model: ECC, firmware's reserved areas. Released pages keep their content.
 * Timing: see numa.h.
 */
#include "models/numa/physmem.h"

#include <stdlib.h>
#include <string.h>

#include "models/base/page_store.h"
#include "models/base/payload.h"
#include "models/numa/page_alloc.h"

#define HOLE_FIRST UINT64_C(0xF0000000)
#define HOLE_END   UINT64_C(0x100000000)
#define MIN_STRIDE UINT64_C(0x100000000)
#define TAG_BYTES  PAYLOAD_MARK_BYTES
struct node {
    uint64_t base, bytes;
    struct page_region **region;
    struct page_alloc pages; /* page numbers of the whole address space */
};

struct physmem {
    unsigned n_nodes;
    unsigned stride_log2;
    struct node *node;
    struct page_store *store; /* reading opens pages, too */
    const uint8_t *held;      /* the page that physmem_bytes_made() gave last */
    uint64_t n_regions;       /* that exist */
    struct physmem_watch *watches;
};

static void add_pages(struct node *node, uint64_t from, uint64_t to)
{
    if (from < to)
        page_alloc_add(&node->pages, from >> PAGE_LOG2, (to - from) >> PAGE_LOG2);
}

struct physmem *physmem_new(unsigned n_nodes, const uint64_t *node_bytes)
{
    struct physmem *mem = sim_zalloc(1, sizeof(*mem));
    uint64_t largest = MIN_STRIDE;

    SIM_ASSERT(n_nodes > 0, "%u nodes of memory", n_nodes);
    for (unsigned i = 0; i < n_nodes; i++)
        largest = SIM_MAX(largest, node_bytes[i]);
    mem->n_nodes = n_nodes;
    mem->stride_log2 = 63u - (unsigned)__builtin_clzll(largest);
    if ((largest & (largest - 1)) != 0)
        mem->stride_log2++;
    mem->node = sim_zalloc(n_nodes, sizeof(*mem->node));
    mem->store = page_store_new(&mem->held);
    for (unsigned i = 0; i < n_nodes; i++) {
        struct node *node = &mem->node[i];
        node->base = (uint64_t)i << mem->stride_log2;
        node->bytes = node_bytes[i];
        const uint64_t region_bytes = UINT64_C(1) << PAGE_REGION_LOG2;
        node->region = sim_zalloc((node->bytes + region_bytes - 1) >> PAGE_REGION_LOG2,
                                  sizeof(struct page_region *));
        page_alloc_init(&node->pages);
        const uint64_t end = node->base + (node->bytes & ~(PAGE_BYTES - 1));
        if (node->base <= HOLE_FIRST) {
            add_pages(node, node->base, SIM_MIN(end, HOLE_FIRST));
            add_pages(node, HOLE_END, end);
        } else {
            add_pages(node, node->base, end);
        }
    }
    return mem;
}

void physmem_free(struct physmem *mem)
{
    if (mem == NULL)
        return;
    for (unsigned i = 0; i < mem->n_nodes; i++) {
        struct node *node = &mem->node[i];
        free(node->region);
        page_alloc_release(&node->pages);
    }
    page_store_free(mem->store);
    free(mem->node);
    free(mem);
}

unsigned physmem_stride_log2(const struct physmem *mem)
{
    return mem->stride_log2;
}

unsigned physmem_nodes(const struct physmem *mem)
{
    return mem->n_nodes;
}

uint64_t physmem_node_bytes(const struct physmem *mem, unsigned node)
{
    SIM_ASSERT(node < mem->n_nodes, "node %u of %u", node, mem->n_nodes);
    return mem->node[node].bytes;
}

int physmem_node_of(const struct physmem *mem, struct hpa hpa)
{
    const uint64_t i = hpa.v >> mem->stride_log2;

    if (i >= mem->n_nodes || hpa.v - mem->node[i].base >= mem->node[i].bytes)
        return -1;
    return hpa.v >= HOLE_FIRST && hpa.v < HOLE_END ? -1 : (int)i;
}

/* Memory before the end of the hole, or none. */
static __attribute__((noinline)) bool contains_low(const struct physmem *mem, struct hpa hpa,
                                                   uint64_t bytes)
{
    const int node = physmem_node_of(mem, hpa);
    if (node < 0)
        return false;
    const uint64_t left = mem->node[node].base + mem->node[node].bytes - hpa.v;
    const uint64_t to_hole = hpa.v < HOLE_FIRST ? HOLE_FIRST - hpa.v : UINT64_MAX;
    return bytes <= left && bytes <= to_hole;
}

/* Nearly all memory is behind the hole. */
static inline bool contains(const struct physmem *mem, struct hpa hpa, uint64_t bytes)
{
    const uint64_t i = hpa.v >> mem->stride_log2;

    if (SIM_UNLIKELY(hpa.v < HOLE_END || i >= mem->n_nodes))
        return contains_low(mem, hpa, bytes);
    const uint64_t offset = hpa.v - mem->node[i].base;
    return offset < mem->node[i].bytes && bytes <= mem->node[i].bytes - offset;
}

bool physmem_contains(const struct physmem *mem, struct hpa hpa, uint64_t bytes)
{
    return contains(mem, hpa, bytes);
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

/* The host memory of an address, or NULL if its page is not open. hpa must be memory. */
static inline uint8_t *find_open(const struct physmem *mem, uint64_t hpa)
{
    const struct node *node = &mem->node[hpa >> mem->stride_log2];
    const uint64_t offset = hpa - node->base;
    const struct page_region *region = node->region[offset >> PAGE_REGION_LOG2];

    if (region == NULL)
        return NULL;
    uint8_t *page = region->page[(offset >> PAGE_LOG2) % PAGE_REGION_PAGES];
    return page == NULL ? NULL : page + offset % PAGE_BYTES;
}

/* A page that is not open: NULL if it does not exist, else it is now. */
static __attribute__((noinline)) uint8_t *find_packed(const struct physmem *mem, uint64_t hpa)
{
    const struct node *node = &mem->node[hpa >> mem->stride_log2];
    const uint64_t offset = hpa - node->base;
    struct page_region *region = node->region[offset >> PAGE_REGION_LOG2];
    const uint32_t idx = (uint32_t)(offset >> PAGE_LOG2) % PAGE_REGION_PAGES;

    if (region == NULL || !page_is_packed(region, idx))
        return NULL;
    return page_store_open(mem->store, region, idx) + offset % PAGE_BYTES;
}

/* The host memory of an address, or NULL if its page does not exist. hpa must be memory. */
static inline uint8_t *find(const struct physmem *mem, uint64_t hpa)
{
    uint8_t *found = find_open(mem, hpa);

    return SIM_LIKELY(found != NULL) ? found : find_packed(mem, hpa);
}

static __attribute__((noinline)) uint8_t *make_page(struct physmem *mem, uint64_t hpa)
{
    struct node *node = &mem->node[hpa >> mem->stride_log2];
    const uint64_t offset = hpa - node->base;
    struct page_region **region = &node->region[offset >> PAGE_REGION_LOG2];

    if (*region == NULL) {
        *region = page_region_new(mem->store);
        mem->n_regions++;
    }
    const uint32_t idx = (uint32_t)(offset >> PAGE_LOG2) % PAGE_REGION_PAGES;
    return page_store_open(mem->store, *region, idx) + offset % PAGE_BYTES;
}

static inline uint8_t *make(struct physmem *mem, uint64_t hpa)
{
    uint8_t *found = find_open(mem, hpa);

    return SIM_LIKELY(found != NULL) ? found : make_page(mem, hpa);
}

static inline void check(const struct physmem *mem, struct hpa hpa, uint64_t bytes)
{
    SIM_ASSERT(contains(mem, hpa, bytes), "[%llx, + %llu) is not memory of one node",
               (unsigned long long)hpa.v, (unsigned long long)bytes);
}

void physmem_clear(struct physmem *mem, struct hpa hpa, uint64_t bytes)
{
    uint64_t at = hpa.v;

    check(mem, hpa, bytes);
    while (bytes > 0) {
        const struct node *node = &mem->node[at >> mem->stride_log2];
        struct page_region *region = node->region[(at - node->base) >> PAGE_REGION_LOG2];
        const uint64_t unit = region == NULL ? UINT64_C(1) << PAGE_REGION_LOG2 : PAGE_BYTES;
        const uint64_t here = SIM_MIN(bytes, unit - at % unit);
        const uint32_t idx = (uint32_t)((at - node->base) >> PAGE_LOG2) % PAGE_REGION_PAGES;
        if (here == PAGE_BYTES && region != NULL && page_is_packed(region, idx)) {
            page_store_drop(mem->store, region, idx);
        } else {
            uint8_t *page = find(mem, at);
            if (page != NULL)
                memset(page, 0, here);
        }
        at += here;
        bytes -= here;
    }
}

static const uint8_t zeros[PAGE_BYTES];

const uint8_t *physmem_bytes(const struct physmem *mem, struct hpa hpa)
{
    check(mem, hpa, 1);
    const uint8_t *bytes = find(mem, hpa.v);
    return bytes != NULL ? bytes : zeros + hpa.v % PAGE_BYTES;
}

uint8_t *physmem_bytes_made(struct physmem *mem, struct hpa hpa)
{
    check(mem, hpa, 1);
    uint8_t *bytes = make(mem, hpa.v);
    mem->held = bytes - hpa.v % PAGE_BYTES;
    return bytes;
}

void physmem_prefetch(const struct physmem *mem, struct hpa hpa, uint64_t bytes)
{
    const uint64_t in_line = hpa.v % LINE_BYTES;
    const uint8_t *line = find_open(mem, hpa.v - in_line);

    bytes = SIM_MIN(bytes + in_line, PAGE_BYTES - (hpa.v - in_line) % PAGE_BYTES);
    for (uint64_t at = 0; line != NULL && at < bytes; at += LINE_BYTES)
        __builtin_prefetch(line + at, 1);
}

/* The first bytes of the part of a line: those that are there, or go on from others before. */
static void read_first(uint8_t *to, const uint8_t *line, unsigned in_line, unsigned bytes)
{
    const unsigned known = SIM_MIN(bytes, TAG_BYTES);

    for (unsigned at = 0, n; at < known; at += n) {
        uint64_t tag;
        n = payload_line_run(line, in_line + at, bytes - at, &tag);
        n = SIM_MIN(n, known - at);
        const uint64_t word = payload_word(tag);
        memcpy(to + at, tag != 0 ? (const uint8_t *)&word : line + in_line + at, n);
    }
}

/* What tag mode carries of a range within a page; page: of simulated memory. */
static void read_tags(uint8_t *to, const uint8_t *page, uint64_t in_page, uint64_t bytes)
{
    const uint64_t in_line = in_page % LINE_BYTES;
    uint64_t at = 0;

    page += in_page;
    if (in_line != 0) {
        at = SIM_MIN(bytes, LINE_BYTES - in_line);
        read_first(to, page - in_line, (unsigned)in_line, (unsigned)at);
    }
    for (; at + TAG_BYTES <= bytes; at += LINE_BYTES)
        memcpy(to + at, page + at, TAG_BYTES);
    if (at < bytes)
        memcpy(to + at, page + at, bytes - at);
}

static void write_part(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    const uint64_t known = SIM_MIN(bytes, TAG_BYTES);

    memcpy(to, from, known);
    memset(to + known, 0, bytes - known);
}

static void write_tags(uint8_t *page, uint64_t in_page, const uint8_t *from, uint64_t bytes)
{
    const uint64_t in_line = in_page % LINE_BYTES;
    uint64_t at = 0;

    page += in_page;
    if (in_line != 0) {
        at = SIM_MIN(bytes, LINE_BYTES - in_line);
        write_part(page, from, at);
    }
    for (; at + LINE_BYTES <= bytes; at += LINE_BYTES)
        write_part(page + at, from + at, LINE_BYTES);
    if (at < bytes)
        write_part(page + at, from + at, bytes - at);
}

/* All bytes of the range, or with `marks` those that tag mode carries. */
static inline void read_pages(const struct physmem *mem, struct hpa hpa, uint8_t *to,
                              uint64_t bytes, bool marks)
{
    check(mem, hpa, bytes);
    for (uint64_t at = hpa.v, here; bytes > 0; at += here, to += here, bytes -= here) {
        const uint64_t in_page = at % PAGE_BYTES;
        const uint8_t *page = find(mem, at - in_page);
        here = SIM_MIN(bytes, PAGE_BYTES - in_page);
        if (page == NULL)
            page = zeros;
        if (marks)
            read_tags(to, page, in_page, here);
        else
            memcpy(to, page + in_page, here);
    }
}

static inline void write_pages(struct physmem *mem, struct hpa hpa, const uint8_t *from,
                               uint64_t bytes, bool marks)
{
    check(mem, hpa, bytes);
    for (uint64_t at = hpa.v, here; bytes > 0; at += here, from += here, bytes -= here) {
        const uint64_t in_page = at % PAGE_BYTES;
        uint8_t *page = make(mem, at - in_page);
        here = SIM_MIN(bytes, PAGE_BYTES - in_page);
        if (marks)
            write_tags(page, in_page, from, here);
        else
            memcpy(page + in_page, from, here);
    }
}

void physmem_read(const struct physmem *mem, struct hpa hpa, void *to, uint64_t bytes)
{
    read_pages(mem, hpa, to, bytes, false);
}

/* The watches of a host are few: those of its CPUs that spin. */
static void tell(struct physmem *mem, uint64_t from, uint64_t bytes)
{
    for (struct physmem_watch *watch = mem->watches, *next; watch != NULL; watch = next) {
        next = watch->next;
        if (from < watch->hpa.v + watch->bytes && watch->hpa.v < from + bytes)
            watch->written(watch);
    }
}

void physmem_watch_add(struct physmem *mem, struct physmem_watch *watch)
{
    watch->next = mem->watches;
    mem->watches = watch;
}

void physmem_watch_remove(struct physmem *mem, struct physmem_watch *watch)
{
    struct physmem_watch **link = &mem->watches;
    while (*link != watch)
        link = &(*link)->next;
    *link = watch->next;
}

void physmem_stored(struct physmem *mem, struct hpa hpa, uint64_t bytes)
{
    tell(mem, hpa.v, bytes);
}

void physmem_write(struct physmem *mem, struct hpa hpa, const void *from, uint64_t bytes)
{
    write_pages(mem, hpa, from, bytes, false);
    if (SIM_UNLIKELY(mem->watches != NULL))
        tell(mem, hpa.v, bytes);
}

void physmem_read_marks(const struct physmem *mem, struct hpa hpa, void *to, uint64_t bytes)
{
    read_pages(mem, hpa, to, bytes, true);
}

void physmem_write_marks(struct physmem *mem, struct hpa hpa, const void *from, uint64_t bytes)
{
    write_pages(mem, hpa, from, bytes, true);
    if (SIM_UNLIKELY(mem->watches != NULL))
        tell(mem, hpa.v, bytes);
}

uint64_t physmem_resident_bytes(const struct physmem *mem)
{
    return page_store_bytes(mem->store) + mem->n_regions * sizeof(struct page_region);
}

/* ---- Allocation ------------------------------------------------------------------------------ */

static uint64_t pages_of(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) >> PAGE_LOG2;
}

bool physmem_alloc(struct physmem *mem, unsigned node, uint64_t bytes, uint64_t align_bytes,
                   struct hpa *hpa)
{
    uint64_t first;

    SIM_ASSERT(node < mem->n_nodes && bytes > 0 && align_bytes >= PAGE_BYTES &&
                   (align_bytes & (align_bytes - 1)) == 0,
               "allocation of %llu bytes aligned to %llu on node %u", (unsigned long long)bytes,
               (unsigned long long)align_bytes, node);
    if (!page_alloc_take(&mem->node[node].pages, pages_of(bytes), align_bytes >> PAGE_LOG2, &first))
        return false;
    hpa->v = first << PAGE_LOG2;
    return true;
}

bool physmem_alloc_low(struct physmem *mem, unsigned node, uint64_t bytes, uint64_t align_bytes,
                       struct hpa *hpa)
{
    struct page_alloc *pages = &mem->node[node].pages;
    uint64_t first;

    if (!page_alloc_take_lowest(pages, pages_of(bytes), align_bytes >> PAGE_LOG2, &first))
        return false;
    hpa->v = first << PAGE_LOG2;
    if (hpa->v + bytes <= HOLE_END)
        return true;
    physmem_release(mem, *hpa, bytes);
    return false;
}

void physmem_set_high_first(struct physmem *mem, bool high_first)
{
    struct page_alloc *first = &mem->node[0].pages;
    uint64_t page;

    for (unsigned i = 0; i < mem->n_nodes; i++)
        mem->node[i].pages.from = high_first ? HOLE_END >> PAGE_LOG2 : 0;
    /* Page 0 is the firmware's: address 0 is nowhere. Else it is what the first allocation gets. */
    if (high_first && mem->node[0].bytes > HOLE_END && first->free_run[0].first == 0)
        page_alloc_take_lowest(first, 1, 1, &page);
}

void physmem_release(struct physmem *mem, struct hpa hpa, uint64_t bytes)
{
    const int node = physmem_node_of(mem, hpa);

    SIM_ASSERT(node >= 0 && hpa.v % PAGE_BYTES == 0 &&
                   page_alloc_give(&mem->node[node].pages, hpa.v >> PAGE_LOG2, pages_of(bytes)),
               "[%llx, + %llu) was not allocated so", (unsigned long long)hpa.v,
               (unsigned long long)bytes);
}

uint64_t physmem_free_bytes(const struct physmem *mem, unsigned node)
{
    SIM_ASSERT(node < mem->n_nodes, "node %u of %u", node, mem->n_nodes);
    return mem->node[node].pages.free_pages << PAGE_LOG2;
}
