/*
 * Pages: lists per CPU, filled from the node in batches.
 *
 * Models: what was freed last on a CPU is what it gets next (the page is likely in its caches); a
 *   page freed by another CPU than its user's goes to the list of that other one, by node.
 * Does not model: a buddy allocator that splits and joins (a page keeps its size until memory runs
 *   out), the wait for a node's lock that another CPU holds.
 * Timing: page_alloc_cycles and a store to the page's structure; page_free_cycles, when the last
 *   reference goes. Every put loads the structure's line and changes its count atomically. With
 *   page_bulk_cycles these for each page that goes between a CPU's list and the node's, a store to
 *   its structure, and for each batch the node's lock.
 * Sources: Linux 4.14, mm/page_alloc.c (batch 31, high 186); docs/sources.md#a6.
 */
#include <stdlib.h>

#include "models/os/os_memory.h"

#define CHUNK_PAGES 256u

struct os_page_chunk {
    struct os_page_chunk *next;
    struct k_page page[CHUNK_PAGES];
};

static inline void push(struct os_page_list *list, struct k_page *page)
{
    page->next = list->first;
    list->first = page;
    list->n++;
}

static inline struct k_page *pop(struct os_page_list *list)
{
    struct k_page *page = list->first;
    if (page != NULL) {
        list->first = page->next;
        list->n--;
    }
    return page;
}

static inline struct os_page_list *cpu_list(struct os_memory *memory, unsigned cpu, unsigned node,
                                            unsigned order)
{
    return &memory->cpu_pages[(cpu * memory->n_nodes + node) * OS_PAGE_ORDERS + order];
}

/* As many bytes at once, whatever the size of a page; one at least. */
static unsigned of_order(unsigned pages, unsigned order)
{
    return SIM_MAX(pages >> order, 1u);
}

static struct k_page *take_structure(struct os_memory *memory)
{
    if (memory->spare_pages == NULL) {
        struct os_page_chunk *chunk = k_zalloc(sizeof(*chunk));
        chunk->next = memory->chunks;
        memory->chunks = chunk;
        for (unsigned i = 0; i < CHUNK_PAGES; i++) {
            chunk->page[i].next = memory->spare_pages;
            memory->spare_pages = &chunk->page[i];
        }
    }
    struct k_page *page = memory->spare_pages;
    memory->spare_pages = page->next;
    return page;
}

void os_pages_free(struct os_memory *memory)
{
    while (memory->chunks != NULL) {
        struct os_page_chunk *chunk = memory->chunks;
        memory->chunks = chunk->next;
        free(chunk);
    }
}

/* Takes one from the allocator of the node's memory; NULL if it has none. */
static struct k_page *page_from_memory(struct os_memory *memory, unsigned node, unsigned order)
{
    uint64_t bytes = (uint64_t)K_PAGE_BYTES << order;
    struct hpa hpa;
    if (!physmem_alloc(memory->space, node, bytes, bytes, &hpa))
        return NULL;
    struct k_page *page = take_structure(memory);
    *page = (struct k_page){ .addr = { hpa.v }, .node = (uint16_t)node, .order = (uint8_t)order };
    page->meta = os_page_struct(memory, page->addr);
    return page;
}

static void give_all(struct os_memory *memory, struct os_page_list *list)
{
    for (struct k_page *page; (page = pop(list)) != NULL;) {
        physmem_release(memory->space, (struct hpa){ page->addr.v },
                        (uint64_t)K_PAGE_BYTES << page->order);
        page->next = memory->spare_pages;
        memory->spare_pages = page;
    }
}

/* Free pages of all sizes become memory of the node again. */
static void give_back_node(struct os_memory *memory, unsigned node)
{
    for (unsigned order = 0; order < OS_PAGE_ORDERS; order++) {
        give_all(memory, &memory->node[node].pages[order]);
        for (unsigned cpu = 0; cpu < memory->kernel->n_cpus; cpu++)
            give_all(memory, cpu_list(memory, cpu, node, order));
    }
}

/* Pages that have gone between a CPU's list and the node's. Time passes. */
struct moved {
    unsigned n;
    struct kaddr meta[OS_PAGE_BATCH];
};

static void charge_moved(struct kernel *kernel, unsigned node, const struct moved *moved)
{
    const uint64_t cycles = kernel->params.costs.page_bulk_cycles;
    if (moved->n == 0 || cycles == 0 || os_self_or_null(kernel) == NULL)
        return;
    /* The structure of the node's first page, which nobody has, stands for the node's. */
    k_atomic(kernel, (struct kaddr){ kernel->memory->node[node].page_structs });
    for (unsigned i = 0; i < moved->n; i++)
        k_touch_write(kernel, moved->meta[i], sizeof(uint64_t));
    k_compute(kernel, moved->n * cycles);
}

/* The first of a batch, whose others go to the list so that it hands them out in order. */
static struct k_page *refill(struct os_memory *memory, struct os_page_list *list, unsigned node,
                             unsigned order, struct moved *moved)
{
    struct os_page_list *of_node = &memory->node[node].pages[order];
    struct k_page *batch[OS_PAGE_BATCH];
    unsigned n = 0, want = of_order(OS_PAGE_BATCH, order);
    while (n < want && (batch[n] = pop(of_node)) != NULL)
        n++;
    while (n < want && (batch[n] = page_from_memory(memory, node, order)) != NULL)
        n++;
    if (n == 0) {
        give_back_node(memory, node);
        return page_from_memory(memory, node, order);
    }
    while (moved->n < n) {
        moved->meta[moved->n] = batch[moved->n]->meta;
        moved->n++;
    }
    while (n > 1)
        push(list, batch[--n]);
    return batch[0];
}

struct k_page *k_page_alloc(struct kernel *kernel, int node_or_local, unsigned order)
{
    struct os_memory *memory = kernel->memory;
    struct os_cpu *cpu = os_cpu_or_first(kernel);
    unsigned node = os_node_of(kernel, node_or_local);
    struct k_page *page = NULL;
    struct moved moved = { .n = 0 };
    unsigned from = node;
    SIM_ASSERT(order < OS_PAGE_ORDERS, "page of order %u", order);
    for (unsigned i = 0; page == NULL && i < memory->n_nodes; i++) {
        struct os_page_list *list = cpu_list(memory, cpu->idx, node, order);
        from = node;
        page = list->first != NULL ? pop(list) : refill(memory, list, node, order, &moved);
        node = node + 1 < memory->n_nodes ? node + 1 : 0;
    }
    if (page == NULL)
        return NULL;
    page->refs = 1;
    page->next = NULL;
    memory->live_pages += UINT64_C(1) << order;
    charge_moved(kernel, from, &moved);
    if (os_self_or_null(kernel) != NULL) {
        k_touch_write(kernel, page->meta, sizeof(uint64_t));
        k_run(kernel, K_TEXT_PAGE_ALLOC, kernel->params.costs.page_alloc_cycles);
    }
    return page;
}

static void page_free(struct os_memory *memory, struct k_page *page)
{
    struct os_cpu *cpu = os_cpu_or_first(memory->kernel);
    struct os_page_list *list = cpu_list(memory, cpu->idx, page->node, page->order);
    memory->live_pages -= UINT64_C(1) << page->order;
    push(list, page);
    if (list->n <= of_order(OS_PAGE_HIGH, page->order))
        return;
    /* Those on top stay: they were used last. */
    struct k_page *last = list->first;
    unsigned n_back = of_order(OS_PAGE_BATCH, page->order);
    for (unsigned i = 1; i < list->n - n_back; i++)
        last = last->next;
    struct os_page_list *of_node = &memory->node[page->node].pages[page->order];
    struct moved moved = { .n = 0 };
    for (struct k_page *next, *p = last->next; p != NULL; p = next) {
        next = p->next;
        moved.meta[moved.n++] = p->meta;
        push(of_node, p);
    }
    list->n -= n_back;
    last->next = NULL;
    charge_moved(memory->kernel, page->node, &moved);
}

void k_page_put(struct kernel *kernel, struct k_page *page)
{
    bool charged = os_self_or_null(kernel) != NULL;
    SIM_ASSERT(page->refs > 0, "page %llx has no reference to give",
               (unsigned long long)page->addr.v);
    if (charged) {
        k_touch(kernel, page->meta, sizeof(uint64_t)); /* its flags */
        k_atomic(kernel, page->meta);                  /* its count */
    }
    if (--page->refs > 0)
        return;
    page_free(kernel->memory, page);
    if (charged)
        k_run(kernel, K_TEXT_PAGE_FREE, kernel->params.costs.page_free_cycles);
}
