/*
 * Models: second-level page tables as an operating system keeps them, in simulated memory only.
 *     Both operations look before they change anything: what is in the way, what is missing, and
 *     how many tables the change needs, which are then taken from the host before the first write.
 *     Thus failure changes nothing.
 * Does not model: choice of the page size (the caller's), splitting of superpages.
 * Sources: VT-d 3.0, 3.7, 6.5.2.3, 9.7.
 */
#include "models/host/iommu_driver_internal.h"

#include <errno.h>

/* A range of one domain's tables on its way through map or unmap. */
struct range {
    struct iommu_driver *driver;
    uint64_t first, last; /* addresses */
    unsigned level;       /* map: of the tables that hold the pages */
    uint64_t n_missing;   /* map: tables to be made */
    uint64_t spare;       /* tables taken from the host, linked by their first word; 0 ends */
    uint64_t dead;        /* tables unlinked, to be freed after the invalidation; likewise */
    bool later;           /* unmap: the IOMMU may still read such tables: they stay as they are */
    uint64_t value;       /* map: entry of the page at `first` */
};

static uint64_t span(unsigned level)
{
    return UINT64_C(1) << VTD_SPAN_LOG2(level);
}

static unsigned index_of(uint64_t address, unsigned level)
{
    return (unsigned)(address >> VTD_SPAN_LOG2(level)) & (VTD_ENTRIES - 1);
}

static bool is_leaf(uint64_t entry, unsigned level)
{
    return level == 1 || (entry & VTD_PTE_PS) != 0;
}

/* Last address of the entry that covers `address`, or of the range if that ends earlier. */
static uint64_t entry_last(const struct range *range, uint64_t address, unsigned level)
{
    return SIM_MIN(address | (span(level) - 1), range->last);
}

static void list_push(struct range *range, uint64_t *list, uint64_t table)
{
    iommu_driver_scribble(range->driver, table, *list);
    *list = table;
}

static uint64_t list_pop(struct range *range, uint64_t *list)
{
    uint64_t table = *list;
    *list = iommu_driver_read(range->driver, table);
    iommu_driver_scribble(range->driver, table, 0);
    return table;
}

static void list_free(struct range *range, uint64_t *list)
{
    while (*list != 0)
        iommu_page_put(range->driver, (struct hpa){ list_pop(range, list) });
}

/* A table that is unlinked. */
static void dead_push(struct range *range, uint64_t table)
{
    struct iommu_driver *driver = range->driver;
    if (!range->later) {
        list_push(range, &range->dead, table);
        return;
    }
    if (driver->n_later == driver->later_capacity) {
        driver->later_capacity = 2 * driver->later_capacity + 64;
        driver->later = sim_grow(driver->later, driver->later_capacity, sizeof(driver->later[0]));
    }
    driver->later[driver->n_later++] = (struct hpa){ table };
}

void iommu_tables_free(struct iommu_driver *driver, uint64_t table, unsigned level)
{
    for (unsigned i = 0; level > 1 && i < VTD_ENTRIES; i++) {
        uint64_t entry = iommu_driver_read(driver, table + 8 * i);
        if ((entry & VTD_PTE_RW) != 0 && !is_leaf(entry, level))
            iommu_tables_free(driver, entry & VTD_PTE_ADDR, level - 1);
    }
    iommu_page_put(driver, (struct hpa){ table });
}

/* No page is mapped by this table or below it. */
static bool table_empty(const struct iommu_driver *driver, uint64_t table, unsigned level)
{
    for (unsigned i = 0; i < VTD_ENTRIES; i++) {
        uint64_t entry = iommu_driver_read(driver, table + 8 * i);
        if ((entry & VTD_PTE_RW) != 0 &&
            (is_leaf(entry, level) || !table_empty(driver, entry & VTD_PTE_ADDR, level - 1)))
            return false;
    }
    return true;
}

/* Tables of range->level up to level - 1 that a missing entry of `level` stands for. */
static uint64_t tables_missing(const struct range *range, uint64_t first, uint64_t last,
                               unsigned level)
{
    uint64_t n = 0;
    for (unsigned below = range->level; below < level; below++) {
        unsigned log2 = VTD_SPAN_LOG2(below + 1);
        n += (last >> log2) - (first >> log2) + 1;
    }
    return n;
}

/* ---- Map ------------------------------------------------------------------------------------- */

static int map_check(struct range *range, uint64_t table, unsigned level, uint64_t first,
                     uint64_t last)
{
    for (uint64_t at = first;;) {
        uint64_t end = SIM_MIN(entry_last(range, at, level), last);
        uint64_t entry = iommu_driver_read(range->driver, table + 8 * index_of(at, level));
        uint64_t below = entry & VTD_PTE_ADDR;
        if ((entry & VTD_PTE_RW) == 0) {
            range->n_missing += tables_missing(range, at, end, level);
        } else if (is_leaf(entry, level)) {
            return -EEXIST;
        } else if (level == range->level) {
            if (!table_empty(range->driver, below, level - 1))
                return -EEXIST;
        } else {
            int error = map_check(range, below, level - 1, at, end);
            if (error != 0)
                return error;
        }
        if (end == last)
            return 0;
        at = end + 1;
    }
}

static bool spares_get(struct range *range)
{
    for (; range->n_missing != 0; range->n_missing--) {
        struct hpa page;
        if (!iommu_page_get(range->driver, &page)) {
            list_free(range, &range->spare);
            return false;
        }
        list_push(range, &range->spare, page.v);
    }
    return true;
}

/* An empty table and those below it. */
static void tables_unlink(struct range *range, uint64_t table, unsigned level)
{
    for (unsigned i = 0; level > 1 && i < VTD_ENTRIES; i++) {
        uint64_t entry = iommu_driver_read(range->driver, table + 8 * i);
        if ((entry & VTD_PTE_RW) != 0 && !is_leaf(entry, level))
            tables_unlink(range, entry & VTD_PTE_ADDR, level - 1);
    }
    list_push(range, &range->dead, table);
}

static void map_write(struct range *range, uint64_t table, unsigned level, uint64_t first,
                      uint64_t last)
{
    for (uint64_t at = first;;) {
        uint64_t end = SIM_MIN(entry_last(range, at, level), last);
        uint64_t slot = table + 8 * index_of(at, level);
        uint64_t entry = iommu_driver_read(range->driver, slot);
        if (level == range->level) {
            if ((entry & VTD_PTE_RW) != 0)
                tables_unlink(range, entry & VTD_PTE_ADDR, level - 1);
            iommu_driver_write(range->driver, slot, range->value + (at - range->first));
        } else {
            if ((entry & VTD_PTE_RW) == 0) {
                entry = list_pop(range, &range->spare) | VTD_PTE_RW;
                iommu_driver_write(range->driver, slot, entry);
            }
            map_write(range, entry & VTD_PTE_ADDR, level - 1, at, end);
        }
        if (end == last)
            return;
        at = end + 1;
    }
}

/* Of the smallest aligned power of two that covers the range; a domain at a time beyond that. */
static void range_invalidate(struct iommu_domain *domain, const struct range *range, bool leaf_only)
{
    unsigned mask_log2 = 0;
    while ((range->first ^ range->last) >> (PAGE_LOG2 + mask_log2) != 0)
        mask_log2++;
    if (mask_log2 > domain->driver->mamv) {
        iommu_domain_flush(domain);
        return;
    }
    iommu_queue_submit(domain->driver, (struct vtd_entry128){
                                           VTD_QI_IOTLB | (uint64_t)VTD_SELECTIVE << VTD_QI_G_LSB |
                                               (uint64_t)domain->did << VTD_QI_DID_LSB,
                                           (range->first & ~((PAGE_BYTES << mask_log2) - 1)) |
                                               (leaf_only ? VTD_QI_IOTLB_IH : 0) | mask_log2 });
}

/* bytes pages from v lie below the limit of the domain's tables, and wrap nowhere. */
static bool range_fits(const struct iommu_domain *domain, uint64_t v, uint64_t bytes)
{
    uint64_t limit = UINT64_C(1) << VTD_WIDTH_OF_LEVELS(domain->driver->levels);
    return bytes != 0 && v < limit && bytes <= limit - v;
}

int iommu_map(struct iommu_domain *domain, struct iova iova, struct hpa hpa, uint64_t bytes,
              uint64_t page_bytes, unsigned permissions)
{
    unsigned level = 1;
    domain->driver->n_runs = 0;
    while (level < 3 && span(level) != page_bytes)
        level++;
    uint64_t host_limit = UINT64_C(1) << VTD_HAW;
    if (span(level) != page_bytes || ((iova.v | hpa.v | bytes) & (page_bytes - 1)) != 0 ||
        !range_fits(domain, iova.v, bytes) || hpa.v >= host_limit || bytes > host_limit - hpa.v ||
        permissions == 0 || (permissions & ~(IOMMU_READ | IOMMU_WRITE)) != 0)
        return -EINVAL;
    _Static_assert(IOMMU_READ == VTD_PTE_R && IOMMU_WRITE == VTD_PTE_W, "the entry's own bits");
    struct range range = {
        .driver = domain->driver,
        .first = iova.v,
        .last = iova.v + bytes - 1,
        .level = level,
        .value = hpa.v | permissions | (level > 1 ? VTD_PTE_PS : 0),
    };
    int error = map_check(&range, domain->top.v, domain->driver->levels, range.first, range.last);
    if (error != 0)
        return error;
    if (!spares_get(&range))
        return -ENOMEM;
    map_write(&range, domain->top.v, domain->driver->levels, range.first, range.last);
    if (range.dead != 0)
        range_invalidate(domain, &range, false);
    list_free(&range, &range.dead);
    SIM_ASSERT(range.spare == 0, "more tables taken than needed");
    return 0;
}

/* ---- Unmap ----------------------------------------------------------------------------------- */

static int unmap_check(const struct range *range, uint64_t table, unsigned level, uint64_t first,
                       uint64_t last)
{
    for (uint64_t at = first;;) {
        uint64_t end = SIM_MIN(entry_last(range, at, level), last);
        uint64_t entry = iommu_driver_read(range->driver, table + 8 * index_of(at, level));
        if ((entry & VTD_PTE_RW) == 0)
            return -ENOENT;
        if (is_leaf(entry, level)) {
            if (end - at != span(level) - 1)
                return -EINVAL;
        } else {
            int error = unmap_check(range, entry & VTD_PTE_ADDR, level - 1, at, end);
            if (error != 0)
                return error;
        }
        if (end == last)
            return 0;
        at = end + 1;
    }
}

static void unmap_write(struct range *range, uint64_t table, unsigned level, uint64_t first,
                        uint64_t last)
{
    for (uint64_t at = first;;) {
        uint64_t end = SIM_MIN(entry_last(range, at, level), last);
        uint64_t slot = table + 8 * index_of(at, level);
        uint64_t entry = iommu_driver_read(range->driver, slot);
        bool whole = end - at == span(level) - 1;
        if (!is_leaf(entry, level)) {
            unmap_write(range, entry & VTD_PTE_ADDR, level - 1, at, end);
            if (whole)
                dead_push(range, entry & VTD_PTE_ADDR);
        }
        if (whole)
            iommu_driver_write(range->driver, slot, 0);
        if (end == last)
            return;
        at = end + 1;
    }
}

static int unmap(struct iommu_domain *domain, struct iova iova, uint64_t bytes, bool later)
{
    domain->driver->n_runs = 0;
    if (((iova.v | bytes) & (PAGE_BYTES - 1)) != 0 || !range_fits(domain, iova.v, bytes))
        return -EINVAL;
    struct range range = {
        .driver = domain->driver,
        .first = iova.v,
        .last = iova.v + bytes - 1,
        .later = later,
    };
    int error = unmap_check(&range, domain->top.v, domain->driver->levels, range.first, range.last);
    if (error != 0)
        return error;
    unmap_write(&range, domain->top.v, domain->driver->levels, range.first, range.last);
    if (later)
        return 0;
    range_invalidate(domain, &range, range.dead == 0);
    list_free(&range, &range.dead);
    return 0;
}

int iommu_unmap(struct iommu_domain *domain, struct iova iova, uint64_t bytes)
{
    return unmap(domain, iova, bytes, false);
}

int iommu_unmap_later(struct iommu_domain *domain, struct iova iova, uint64_t bytes)
{
    return unmap(domain, iova, bytes, true);
}
