/*
 * What software does to memory: loads and stores of cache lines with their bytes, allocation of
 * memory that is never freed, pinning.
 *
 * Models: every line through the caches of the CPU that runs; the kernel's page structures, a line
 *   a page, in the memory of the page's node.
 * Does not model: translation look-aside buffers of hosts (those of guests are in models/vm), page
 *   faults.
 * Timing: a load waits for its lines, which overlap; a store issues. Interrupts come in afterwards.
 *   A load of bytes, which a device may have written, sees what was there at its time; it
 *   synchronises for that. Touching does not: there the bytes are nobody else's.
 * Sources: docs/sources.md#a6.
 */
#include "models/os/os_memory.h"

#include <stdlib.h>
#include <string.h>

#define SMALL_BYTES UINT64_C(0x10000) /* of a piece that small ones come from */
#define SMALL_MAX   UINT64_C(0x4000)

/* ---- Making ---------------------------------------------------------------------------------- */

static void node_init(struct os_memory *memory, unsigned n)
{
    struct os_node *node = &memory->node[n];
    uint64_t bytes = physmem_node_bytes(memory->space, n);
    struct hpa structs;
    node->base = (uint64_t)n << physmem_stride_log2(memory->space);
    /* The hole below 4 GiB has structures, too, if the node has more. */
    bool there = physmem_alloc(memory->space, n, bytes / PAGE_BYTES * LINE_BYTES, PAGE_BYTES,
                               &structs);
    SIM_ASSERT(there, "%s: node %u has no room for its page structures", memory->kernel->name, n);
    node->page_structs = structs.v;
}

void os_memory_new(struct kernel *kernel)
{
    unsigned n_nodes = kernel->n_nodes;
    struct os_memory *memory = k_zalloc(sizeof(*memory) + n_nodes * sizeof(memory->node[0]));
    memory->kernel = kernel;
    memory->mem = memory->space = host_physmem(kernel->host);
    if (kernel->guest != NULL) {
        memory->space = kernel->guest->space;
        memory->backing = kernel->guest->backing;
        memory->n_backing = kernel->guest->n_backing;
    }
    memory->n_nodes = n_nodes;
    memory->cpu_pages =
        k_zalloc((size_t)kernel->n_cpus * n_nodes * OS_PAGE_ORDERS * sizeof(memory->cpu_pages[0]));
    kernel->memory = memory;
    for (unsigned n = 0; n < n_nodes; n++)
        node_init(memory, n);
}

void os_memory_free(struct kernel *kernel)
{
    os_caches_free(kernel->memory);
    os_pages_free(kernel->memory);
    free(kernel->memory->cpu_pages);
    free(kernel->memory);
}

unsigned os_node_of(struct kernel *kernel, int node)
{
    if (node == K_NODE_LOCAL)
        return os_cpu_or_first(kernel)->node;
    SIM_ASSERT(node >= 0 && (unsigned)node < kernel->n_nodes, "node %d of %u", node,
               kernel->n_nodes);
    return (unsigned)node;
}

struct kaddr os_page_struct(const struct os_memory *memory, struct kaddr at)
{
    int n = physmem_node_of(memory->space, (struct hpa){ at.v });
    SIM_ASSERT(n >= 0, "%llx is not memory", (unsigned long long)at.v);
    const struct os_node *node = &memory->node[n];
    return (struct kaddr){ node->page_structs + (at.v - node->base) / PAGE_BYTES * LINE_BYTES };
}

uint64_t os_live_pages(const struct kernel *kernel)
{
    return kernel->memory->live_pages;
}

uint64_t os_pinned_pages(const struct kernel *kernel)
{
    return kernel->memory->pinned_pages;
}

/* ---- Lines and bytes ------------------------------------------------------------------------- */

static inline bool in_one_line(struct kaddr at, size_t bytes)
{
    return at.v % LINE_BYTES + bytes <= LINE_BYTES;
}

void os_guest_touch(struct k_thread *self, struct kaddr at, uint64_t bytes)
{
    const struct os_guest *guest = self->kernel->guest;
    const uint64_t end = at.v + bytes;
    for (uint64_t page = at.v; page < end; page = (page | (PAGE_BYTES - 1)) + 1)
        guest->touch(guest, self->on->idx, self->on->core, self->task, page);
}

/* Loads a range of which the first `touched` bytes are what os_touched_run() has just returned. */
static inline void load_touched(struct k_thread *self, struct kaddr at, size_t bytes,
                                uint64_t touched)
{
    const struct os_memory *memory = self->kernel->memory;
    for (;;) {
        core_load_range(self->on->core, self->task, os_hpa(memory, at), touched);
        at.v += touched;
        bytes -= touched;
        if (bytes == 0)
            break;
        touched = os_touched_run(self, at, bytes);
    }
    os_interrupts_of(self);
}

static inline void load_lines(struct k_thread *self, struct kaddr at, size_t bytes)
{
    if (SIM_LIKELY(in_one_line(at, bytes))) {
        core_load(self->on->core, self->task, os_touched(self, at), NULL);
        os_interrupts_of(self);
        return;
    }
    load_touched(self, at, bytes, os_touched_run(self, at, bytes));
}

static inline void store_lines(struct k_thread *self, struct kaddr at, size_t bytes)
{
    const uint64_t end = at.v + bytes;
    for (uint64_t line = at.v & ~(LINE_BYTES - 1); line < end; line += LINE_BYTES)
        core_store(self->on->core, self->task, os_touched(self, (struct kaddr){ line }));
    os_interrupts_of(self);
}

/* Most accesses are to a field or a line: no loop over pages. */
static inline void read_bytes(const struct os_memory *memory, struct kaddr from, void *to,
                              size_t bytes)
{
    if (SIM_LIKELY(in_one_line(from, bytes))) {
        memcpy(to, physmem_bytes(memory->mem, os_hpa(memory, from)), bytes);
        return;
    }
    for (uint8_t *out = to; bytes > 0;) {
        const uint64_t here = os_run(memory, from, bytes);
        physmem_read(memory->mem, os_hpa(memory, from), out, here);
        out += here;
        from.v += here;
        bytes -= here;
    }
}

static inline void write_bytes(struct os_memory *memory, struct kaddr to, const void *from,
                               size_t bytes)
{
    if (SIM_LIKELY(in_one_line(to, bytes))) {
        const struct hpa hpa = os_hpa(memory, to);
        memcpy(physmem_bytes_made(memory->mem, hpa), from, bytes);
        if (SIM_UNLIKELY(memory->n_polled != 0))
            physmem_stored(memory->mem, hpa, bytes);
        return;
    }
    for (const uint8_t *in = from; bytes > 0;) {
        const uint64_t here = os_run(memory, to, bytes);
        physmem_write(memory->mem, os_hpa(memory, to), in, here);
        in += here;
        to.v += here;
        bytes -= here;
    }
}

void k_load(struct kernel *kernel, struct kaddr from, void *to, size_t bytes)
{
    struct k_thread *self = os_self(kernel);
    if (SIM_LIKELY(in_one_line(from, bytes))) {
        const struct hpa hpa = os_touched(self, from);
        sim_task_sync(self->task);
        memcpy(to, physmem_bytes(kernel->memory->mem, hpa), bytes);
        core_load(self->on->core, self->task, hpa, NULL);
        os_interrupts_of(self);
        return;
    }
    const uint64_t touched = os_touched_run(self, from, bytes); /* before they are looked at */
    sim_task_sync(self->task);
    read_bytes(kernel->memory, from, to, bytes);
    load_touched(self, from, bytes, touched);
}

void k_store(struct kernel *kernel, struct kaddr to, const void *from, size_t bytes)
{
    write_bytes(kernel->memory, to, from, bytes);
    store_lines(os_self(kernel), to, bytes);
}

void k_touch(struct kernel *kernel, struct kaddr at, size_t bytes)
{
    load_lines(os_self(kernel), at, bytes);
}

void k_touch_write(struct kernel *kernel, struct kaddr at, size_t bytes)
{
    store_lines(os_self(kernel), at, bytes);
}

void k_atomic(struct kernel *kernel, struct kaddr at)
{
    struct k_thread *self = os_self(kernel);
    os_registers_written(self);
    core_atomic(self->on->core, self->task, os_touched(self, at));
    os_interrupts_of(self);
}

void k_fence(struct kernel *kernel)
{
    struct k_thread *self = os_self(kernel);
    os_drain(self);
    os_interrupts_of(self);
}

void k_prefetch(struct kernel *kernel, struct kaddr at, size_t bytes)
{
    struct k_thread *self = os_self(kernel);
    const uint64_t end = at.v + bytes;
    for (uint64_t line = at.v & ~(LINE_BYTES - 1); line < end; line += LINE_BYTES)
        core_load_async(self->on->core, self->task, os_touched(self, (struct kaddr){ line }));
    os_interrupts_of(self);
}

void k_peek(struct kernel *kernel, struct kaddr from, void *to, size_t bytes)
{
    read_bytes(kernel->memory, from, to, bytes);
}

void k_poke(struct kernel *kernel, struct kaddr to, const void *from, size_t bytes)
{
    write_bytes(kernel->memory, to, from, bytes);
}

/* ---- Memory for good ------------------------------------------------------------------------- */

void os_memory_clear(struct os_memory *memory, struct kaddr at, uint64_t bytes)
{
    while (bytes > 0) {
        const uint64_t here = os_run(memory, at, bytes);
        physmem_clear(memory->mem, os_hpa(memory, at), here);
        at.v += here;
        bytes -= here;
    }
}

static struct kaddr alloc_large(struct os_memory *memory, unsigned node, uint64_t bytes,
                                uint64_t align)
{
    struct hpa hpa;
    if (!physmem_alloc(memory->space, node, bytes, SIM_MAX(align, PAGE_BYTES), &hpa))
        return (struct kaddr){ 0 };
    os_memory_clear(memory, (struct kaddr){ hpa.v }, bytes);
    return (struct kaddr){ hpa.v };
}

struct kaddr k_alloc(struct kernel *kernel, int node_or_local, size_t bytes, size_t align)
{
    struct os_memory *memory = kernel->memory;
    unsigned n = os_node_of(kernel, node_or_local);
    struct os_node *node = &memory->node[n];
    SIM_ASSERT(bytes > 0 && align > 0 && (align & (align - 1)) == 0,
               "%zu bytes of memory aligned to %zu", bytes, align);
    if (bytes > SMALL_MAX || align > PAGE_BYTES)
        return alloc_large(memory, n, bytes, align);
    uint64_t at = (node->small + align - 1) & ~(uint64_t)(align - 1);
    if (at + bytes > node->small_end) {
        at = alloc_large(memory, n, SMALL_BYTES, PAGE_BYTES).v;
        if (at == 0)
            return (struct kaddr){ 0 };
        node->small_end = at + SMALL_BYTES;
    }
    node->small = at + bytes;
    return (struct kaddr){ at };
}

/* ---- Pinning --------------------------------------------------------------------------------- */

static uint64_t pages_of(struct kaddr at, size_t bytes)
{
    return (at.v % PAGE_BYTES + bytes + PAGE_BYTES - 1) / PAGE_BYTES;
}

struct kaddr k_page_line(struct kernel *kernel, struct kaddr at)
{
    return os_page_struct(kernel->memory, at);
}

int k_pin(struct kernel *kernel, struct kaddr at, size_t bytes)
{
    const struct k_costs *costs = k_costs(kernel);
    uint64_t n_pages = pages_of(at, bytes);
    k_compute(kernel, costs->pin_cycles);
    for (uint64_t i = 0; i < n_pages; i++) {
        const struct kaddr meta = k_page_line(kernel, kaddr_add(at, i * PAGE_BYTES));
        k_touch(kernel, meta, LINE_BYTES); /* its flags */
        k_atomic(kernel, meta);            /* its count */
        k_compute(kernel, costs->pin_page_cycles);
    }
    kernel->memory->pinned_pages += n_pages;
    return 0;
}

void k_unpin(struct kernel *kernel, struct kaddr at, size_t bytes)
{
    const struct k_costs *costs = k_costs(kernel);
    uint64_t n_pages = pages_of(at, bytes);
    SIM_ASSERT(n_pages <= kernel->memory->pinned_pages, "%llu pages unpinned of %llu pinned",
               (unsigned long long)n_pages, (unsigned long long)kernel->memory->pinned_pages);
    for (uint64_t i = 0; i < n_pages; i++) {
        const struct kaddr meta = k_page_line(kernel, kaddr_add(at, i * PAGE_BYTES));
        k_touch(kernel, meta, LINE_BYTES);
        k_atomic(kernel, meta);
        k_compute(kernel, costs->unpin_page_cycles);
    }
    kernel->memory->pinned_pages -= n_pages;
}
