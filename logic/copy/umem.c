/*
 * What it does: a process's address space: areas of user virtual addresses, in order, each with the
 *   pieces of memory behind it; first fit, so that addresses are used again as malloc() and free()
 *   do.
 * Leaves out: page tables and their costs, faults (memory is there when it is mapped), protection,
 *   swapping, memory that two processes share.
 * Follows: mmap(), munmap(), mmu notifiers of Linux; memcpy() of a C library.
 * Costs: page_alloc_cycles and page_free_cycles a piece; a copy what k_copy() does, once for each
 *   run of memory that is contiguous on both sides.
 */
#include "logic/copy/umem.h"

#include <errno.h>
#include <string.h>

#include "logic/kcosts.h"

#define BASE      UINT64_C(0x100000000) /* of the first area */
#define ORDER_MAX 10u

struct area {
    struct area *next; /* by address */
    uint64_t start, bytes;
    unsigned order;
    uint64_t n_pieces;
    struct k_page **piece;
};

struct umem {
    struct kernel *kernel;
    struct area *areas;
    struct area *last; /* that was found */
    struct umem_notifier *notifiers;
};

struct umem *umem_new(struct kernel *kernel)
{
    struct umem *umem = k_zalloc(sizeof(*umem));
    umem->kernel = kernel;
    return umem;
}

struct kernel *umem_kernel(const struct umem *umem)
{
    return umem->kernel;
}

static void free_area(struct umem *umem, struct area *area)
{
    for (uint64_t i = 0; i < area->n_pieces; i++)
        if (area->piece[i] != NULL)
            k_page_put(umem->kernel, area->piece[i]);
    k_free(area->piece);
    k_free(area);
}

void umem_free(struct umem *umem)
{
    while (umem->areas != NULL)
        umem_unmap(umem, (struct uaddr){ umem->areas->start });
    if (umem->notifiers != NULL)
        k_fault(umem->kernel, "memory of a process is freed while a module still uses it");
    k_free(umem);
}

/* ---- Mapping --------------------------------------------------------------------------------- */

static bool fill(struct umem *umem, struct area *area, int node)
{
    const uint64_t piece_bytes = (uint64_t)K_PAGE_BYTES << area->order;
    for (uint64_t i = 0; i < area->n_pieces; i++) {
        uint64_t left = area->bytes - i * piece_bytes;
        unsigned order = area->order;
        while (order > 0 && ((uint64_t)K_PAGE_BYTES << (order - 1)) >= left)
            order--;
        area->piece[i] = k_page_alloc(umem->kernel, node, order);
        if (area->piece[i] == NULL)
            return false;
    }
    return true;
}

/* Puts the area into the first gap that has room for it. */
static void place(struct umem *umem, struct area *area)
{
    struct area **link = &umem->areas;
    uint64_t at = BASE;
    while (*link != NULL && (*link)->start < at + area->bytes) {
        at = (*link)->start + (*link)->bytes;
        link = &(*link)->next;
    }
    area->start = at;
    area->next = *link;
    *link = area;
}

struct uaddr umem_map(struct umem *umem, int node, uint64_t bytes, unsigned order)
{
    struct area *area;
    if (bytes == 0 || order > ORDER_MAX)
        return (struct uaddr){ 0 };
    bytes = (bytes + K_PAGE_BYTES - 1) / K_PAGE_BYTES * K_PAGE_BYTES;
    const uint64_t piece_bytes = (uint64_t)K_PAGE_BYTES << order;
    area = k_zalloc(sizeof(*area));
    area->bytes = bytes;
    area->order = order;
    area->n_pieces = (bytes + piece_bytes - 1) / piece_bytes;
    area->piece = k_zalloc(area->n_pieces * sizeof(struct k_page *));
    if (!fill(umem, area, node)) {
        free_area(umem, area);
        return (struct uaddr){ 0 };
    }
    place(umem, area);
    return (struct uaddr){ area->start };
}

int umem_unmap(struct umem *umem, struct uaddr at)
{
    struct area *area = umem->areas;
    while (area != NULL && area->start != at.v)
        area = area->next;
    if (area == NULL)
        return -EINVAL;
    K_LIST_REMOVE(umem->areas, area);
    umem->last = NULL;
    for (struct umem_notifier *n = umem->notifiers, *next; n != NULL; n = next) {
        next = n->next;
        n->unmap(n, at, area->bytes);
    }
    free_area(umem, area);
    return 0;
}

void umem_notifier_add(struct umem *umem, struct umem_notifier *notifier)
{
    notifier->next = umem->notifiers;
    umem->notifiers = notifier;
}

void umem_notifier_remove(struct umem *umem, struct umem_notifier *notifier)
{
    K_LIST_REMOVE(umem->notifiers, notifier);
}

/* ---- What is where --------------------------------------------------------------------------- */

static struct area *find(const struct umem *umem, uint64_t at)
{
    struct area *area = umem->last;
    if (area == NULL || at < area->start || at - area->start >= area->bytes)
        for (area = umem->areas; area != NULL; area = area->next)
            if (at >= area->start && at - area->start < area->bytes)
                break;
    if (area != NULL)
        ((struct umem *)umem)->last = area;
    return area;
}

bool umem_mapped(const struct umem *umem, struct uaddr at, uint64_t bytes)
{
    if (bytes > UINT64_MAX - at.v)
        return false;
    while (bytes > 0) {
        const struct area *area = find(umem, at.v);
        if (area == NULL)
            return false;
        const uint64_t there = area->start + area->bytes - at.v;
        const uint64_t here = bytes < there ? bytes : there;
        at.v += here;
        bytes -= here;
    }
    return true;
}

struct k_page *umem_page(const struct umem *umem, struct uaddr at, struct kaddr *addr)
{
    const struct area *area = find(umem, at.v);
    if (area == NULL)
        return NULL;
    const uint64_t offset = at.v - area->start;
    const uint64_t piece_bytes = (uint64_t)K_PAGE_BYTES << area->order;
    struct k_page *page = area->piece[offset / piece_bytes];
    *addr = kaddr_add(page->addr, offset % piece_bytes);
    return page;
}

uint64_t umem_run(const struct umem *umem, struct uaddr at, uint64_t bytes, struct kaddr *addr)
{
    uint64_t run;
    umem_page(umem, at, addr);
    run = K_PAGE_BYTES - at.v % K_PAGE_BYTES;
    while (run < bytes) {
        struct kaddr next;
        if (umem_page(umem, uaddr_add(at, run), &next) == NULL || next.v != addr->v + run)
            break;
        run += K_PAGE_BYTES;
    }
    return run < bytes ? run : bytes;
}

static void copy_piece(struct umem *umem, struct kaddr to, struct kaddr from, uint64_t bytes,
                       uint64_t whole_bytes)
{
    const uint32_t non_temporal_from = k_costs(umem->kernel)->memcpy_nt_bytes;
    if (non_temporal_from != 0 && whole_bytes >= non_temporal_from)
        k_copy_nt(umem->kernel, to, from, bytes);
    else
        k_copy(umem->kernel, to, from, bytes);
}

void umem_copy(struct umem *umem, struct uaddr to, struct uaddr from, uint64_t bytes)
{
    for (uint64_t done = 0, n; done < bytes; done += n) {
        struct kaddr source, target;
        n = umem_run(umem, uaddr_add(from, done), bytes - done, &source);
        n = umem_run(umem, uaddr_add(to, done), n, &target);
        copy_piece(umem, target, source, n, bytes);
    }
}

void umem_copy_out(struct umem *umem, struct kaddr to, struct uaddr from, uint64_t bytes)
{
    for (uint64_t done = 0, n; done < bytes; done += n) {
        struct kaddr source;
        n = umem_run(umem, uaddr_add(from, done), bytes - done, &source);
        copy_piece(umem, kaddr_add(to, done), source, n, bytes);
    }
}

void umem_copy_in(struct umem *umem, struct uaddr to, struct kaddr from, uint64_t bytes)
{
    for (uint64_t done = 0, n; done < bytes; done += n) {
        struct kaddr target;
        n = umem_run(umem, uaddr_add(to, done), bytes - done, &target);
        copy_piece(umem, target, kaddr_add(from, done), n, bytes);
    }
}
