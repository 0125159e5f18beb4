#include "models/numa/page_alloc.h"

#include <stdlib.h>
#include <string.h>

#ifdef SIM_HOSTILE
#define FIRST_CAPACITY 2u
#else
#define FIRST_CAPACITY 16u
#endif

void page_alloc_init(struct page_alloc *a)
{
    memset(a, 0, sizeof(*a));
}

void page_alloc_release(struct page_alloc *a)
{
    free(a->free_run);
    free(a->allocated);
    memset(a, 0, sizeof(*a));
}

/* ---- Free runs ------------------------------------------------------------------------------- */

static void insert_free(struct page_alloc *a, size_t at, struct page_run run)
{
    if (a->n_free == a->free_capacity) {
        a->free_capacity = a->free_capacity ? 2 * a->free_capacity : FIRST_CAPACITY;
        a->free_run = sim_grow(a->free_run, a->free_capacity, sizeof(*a->free_run));
    }
    memmove(&a->free_run[at + 1], &a->free_run[at], (a->n_free - at) * sizeof(*a->free_run));
    a->free_run[at] = run;
    a->n_free++;
}

static void remove_free(struct page_alloc *a, size_t at)
{
    a->n_free--;
    memmove(&a->free_run[at], &a->free_run[at + 1], (a->n_free - at) * sizeof(*a->free_run));
}

void page_alloc_add(struct page_alloc *a, uint64_t first, uint64_t count)
{
    size_t lo = 0, hi = a->n_free;

    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (a->free_run[mid].first < first)
            lo = mid + 1;
        else
            hi = mid;
    }
    struct page_run *before = lo > 0 ? &a->free_run[lo - 1] : NULL;
    struct page_run *after = lo < a->n_free ? &a->free_run[lo] : NULL;
    const bool joins_before = before != NULL && before->first + before->count == first;
    const bool joins_after = after != NULL && first + count == after->first;

    a->free_pages += count;
    if (joins_before) {
        before->count += count;
        if (joins_after) {
            before->count += after->count;
            remove_free(a, lo);
        }
    } else if (joins_after) {
        after->first = first;
        after->count += count;
    } else {
        insert_free(a, lo, (struct page_run){ first, count });
    }
}

/* ---- Allocated runs -------------------------------------------------------------------------- */

static size_t slot_of(const struct page_alloc *a, uint64_t first)
{
    size_t i = (size_t)((first * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & (a->allocated_capacity - 1);

    while (a->allocated[i].count != 0 && a->allocated[i].first != first)
        i = (i + 1) & (a->allocated_capacity - 1);
    return i;
}

static void grow(struct page_alloc *a)
{
    struct page_run *old = a->allocated;
    const size_t old_capacity = a->allocated_capacity;

    a->allocated_capacity = old_capacity ? 2 * old_capacity : FIRST_CAPACITY;
    a->allocated = sim_zalloc(a->allocated_capacity, sizeof(*a->allocated));
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].count != 0)
            a->allocated[slot_of(a, old[i].first)] = old[i];
    free(old);
}

/* Takes out slot i and puts back those behind it that had been pushed on. */
static void forget(struct page_alloc *a, size_t i)
{
    const size_t mask = a->allocated_capacity - 1;

    a->allocated[i].count = 0;
    for (size_t j = (i + 1) & mask; a->allocated[j].count != 0; j = (j + 1) & mask) {
        const struct page_run run = a->allocated[j];
        a->allocated[j].count = 0;
        a->allocated[slot_of(a, run.first)] = run;
    }
    a->n_allocated--;
}

/* The first free run that ends above `from`. */
static size_t first_above(const struct page_alloc *a, uint64_t from)
{
    size_t lo = 0, hi = a->n_free;

    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (a->free_run[mid].first + a->free_run[mid].count <= from)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Takes from free runs from the i-th on. */
static bool take(struct page_alloc *a, size_t i, uint64_t from, uint64_t count, uint64_t align,
                 uint64_t *first)
{
    for (; i < a->n_free; i++) {
        const struct page_run run = a->free_run[i];
        const uint64_t start = (SIM_MAX(run.first, from) + align - 1) & ~(align - 1);
        const uint64_t gap = start - run.first;
        if (gap > run.count || run.count - gap < count)
            continue;
        const uint64_t rest = run.count - gap - count;
        if (gap > 0) {
            a->free_run[i].count = gap;
            if (rest > 0)
                insert_free(a, i + 1, (struct page_run){ start + count, rest });
        } else if (rest > 0) {
            a->free_run[i] = (struct page_run){ start + count, rest };
        } else {
            remove_free(a, i);
        }
        if (2 * (a->n_allocated + 1) > a->allocated_capacity)
            grow(a);
        a->allocated[slot_of(a, start)] = (struct page_run){ start, count };
        a->n_allocated++;
        a->free_pages -= count;
        *first = start;
        return true;
    }
    return false;
}

bool page_alloc_take(struct page_alloc *a, uint64_t count, uint64_t align, uint64_t *first)
{
    return take(a, a->from == 0 ? 0 : first_above(a, a->from), a->from, count, align, first) ||
           (a->from != 0 && take(a, 0, 0, count, align, first));
}

bool page_alloc_take_lowest(struct page_alloc *a, uint64_t count, uint64_t align, uint64_t *first)
{
    return take(a, 0, 0, count, align, first);
}

bool page_alloc_give(struct page_alloc *a, uint64_t first, uint64_t count)
{
    if (a->n_allocated == 0 || count == 0)
        return false;
    const size_t i = slot_of(a, first);
    if (a->allocated[i].count != count)
        return false;
    forget(a, i);
    page_alloc_add(a, first, count);
    return true;
}
