/*
 * The part of the fake of logic/kapi.h that is memory: pages of real bytes at addresses that are
 * never used twice, caches, failures on demand.
 */
#include "tests/support/fake/fake_kapi.h"

unsigned fake_node_of(struct kaddr at)
{
    return (unsigned)(at.v >> 40) - 1;
}

static struct fake_frame **fake_frame_link(struct kernel *kernel, uint64_t number)
{
    struct fake_frame **link = &kernel->frame[(number ^ (number >> 28)) % FAKE_FRAMES];
    while (*link && (*link)->number != number)
        link = &(*link)->next;
    return link;
}

uint64_t fake_map_pages(struct kernel *kernel, unsigned node, uint64_t n_pages,
                        uint64_t align_pages)
{
    uint64_t first = kernel->node_next[node];
    first = (first + align_pages - 1) / align_pages * align_pages;
    kernel->node_next[node] = first + n_pages + 1; /* a gap, so that overruns are seen */
    for (uint64_t i = 0; i < n_pages; i++) {
        struct fake_frame *frame = calloc(1, sizeof *frame), **link;
        frame->number = ((uint64_t)(node + 1) << 28) + first + i;
        link = fake_frame_link(kernel, frame->number);
        *link = frame;
    }
    return ((uint64_t)(node + 1) << 40) + first * K_PAGE_BYTES;
}

void fake_unmap_pages(struct kernel *kernel, uint64_t at, uint64_t n_pages)
{
    for (uint64_t i = 0; i < n_pages; i++) {
        struct fake_frame **link = fake_frame_link(kernel, at / K_PAGE_BYTES + i), *frame = *link;
        FAKE_CHECK(kernel, frame != NULL);
        if (!frame)
            return;
        *link = frame->next;
        free(frame);
    }
}

bool fake_spin_differs(struct kernel *kernel, const struct fake_spin *spin)
{
    uint8_t now[K_LINE_BYTES];
    for (unsigned i = 0; i < spin->n; i++) {
        k_peek(kernel, spin->at[i].at, now, spin->at[i].bytes);
        if (memcmp(now, spin->at[i].seen, spin->at[i].bytes) != 0)
            return true;
    }
    return false;
}

void fake_bytes(struct kernel *kernel, struct kaddr at, void *to, const void *from, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        uint64_t v = at.v + done, within = v % K_PAGE_BYTES;
        size_t part = K_PAGE_BYTES - within < bytes - done ? K_PAGE_BYTES - within : bytes - done;
        struct fake_frame *frame = *fake_frame_link(kernel, v / K_PAGE_BYTES);
        if (!frame) {
            k_fault(kernel, "no memory at %#llx (of %zu bytes)", (unsigned long long)v, bytes);
            return;
        }
        if (to)
            memcpy((char *)to + done, frame->byte + within, part);
        if (from)
            memcpy(frame->byte + within, (const char *)from + done, part);
        done += part;
    }
    for (struct fake_spin *spin = from ? kernel->spins : NULL; spin; spin = spin->next)
        if (k_has_waiters(&spin->written) && fake_spin_differs(kernel, spin))
            k_wake(kernel, &spin->written);
}

static void fake_charge_lines(struct kernel *kernel, struct kaddr at, size_t bytes)
{
    uint64_t lines = bytes ? (at.v + bytes - 1) / K_LINE_BYTES - at.v / K_LINE_BYTES + 1 : 0;
    bool remote = fake_node_of(at) != k_node_of_cpu(kernel, kernel->cpu_now);
    kernel->lines += lines;
    fake_charge(kernel, lines * FAKE_LINE_PS * (remote ? 3 : 1));
}

void k_peek(struct kernel *kernel, struct kaddr from, void *to, size_t bytes)
{
    fake_bytes(kernel, from, to, NULL, bytes);
}
void k_poke(struct kernel *kernel, struct kaddr to, const void *from, size_t bytes)
{
    fake_bytes(kernel, to, NULL, from, bytes);
}
void k_load(struct kernel *kernel, struct kaddr from, void *to, size_t bytes)
{
    fake_charge_lines(kernel, from, bytes);
    fake_bytes(kernel, from, to, NULL, bytes);
}
void k_store(struct kernel *kernel, struct kaddr to, const void *from, size_t bytes)
{
    fake_bytes(kernel, to, NULL, from, bytes);
    fake_charge_lines(kernel, to, bytes);
}
void k_touch(struct kernel *kernel, struct kaddr at, size_t bytes)
{
    fake_bytes(kernel, at, NULL, NULL, bytes);
    fake_charge_lines(kernel, at, bytes);
}
void k_touch_write(struct kernel *kernel, struct kaddr at, size_t bytes)
{
    k_touch(kernel, at, bytes);
}
void k_atomic(struct kernel *kernel, struct kaddr at)
{
    k_touch(kernel, at, 8);
}
void k_fence(struct kernel *kernel)
{
    kernel->n_fences++;
}
void k_prefetch(struct kernel *kernel, struct kaddr at, size_t bytes)
{
    fake_bytes(kernel, at, NULL, NULL, bytes);
}
void k_copy(struct kernel *kernel, struct kaddr to, struct kaddr from, size_t bytes)
{
    uint8_t part[K_PAGE_BYTES];
    for (size_t done = 0; done < bytes; done += sizeof part) {
        size_t n = bytes - done < sizeof part ? bytes - done : sizeof part;
        k_load(kernel, kaddr_add(from, done), part, n);
        k_store(kernel, kaddr_add(to, done), part, n);
    }
}

void k_copy_nt(struct kernel *kernel, struct kaddr to, struct kaddr from, size_t bytes)
{
    k_copy(kernel, to, from, bytes);
}

bool fake_fails(unsigned *count, unsigned every)
{
    return every && ++*count % every == 0;
}

unsigned fake_node(struct kernel *kernel, int node)
{
    return node == K_NODE_LOCAL ? k_node_of_cpu(kernel, kernel->cpu_now) : (unsigned)node;
}

struct k_page *k_page_alloc(struct kernel *kernel, int node, unsigned order)
{
    k_compute(kernel, kernel->costs.page_alloc_cycles);
    if (fake_fails(&kernel->n_page_allocs, kernel->options.fail_page_every))
        return NULL;
    struct k_page *page = k_zalloc(sizeof *page);
    unsigned on = fake_node(kernel, node);
    page->addr.v = fake_map_pages(kernel, on, 1u << order, 1u << order);
    page->meta.v = fake_map_pages(kernel, on, 1, 1);
    page->refs = 1;
    page->node = (uint16_t)on;
    page->order = (uint8_t)order;
    kernel->pages_live++;
    return page;
}

void k_page_put(struct kernel *kernel, struct k_page *page)
{
    FAKE_CHECK(kernel, page->refs > 0);
    if (--page->refs)
        return;
    kernel->pages_live--;
    fake_unmap_pages(kernel, page->addr.v, 1u << page->order);
    fake_unmap_pages(kernel, page->meta.v, 1);
    free(page);
    k_compute(kernel, kernel->costs.page_free_cycles);
}

static uint64_t pages_of(struct kaddr at, size_t bytes)
{
    return (at.v % K_PAGE_BYTES + bytes + K_PAGE_BYTES - 1) / K_PAGE_BYTES;
}

/* One page stands for the structures of all: nobody looks into them. */
struct kaddr k_page_line(struct kernel *kernel, struct kaddr at)
{
    if (kernel->page_lines.v == 0)
        kernel->page_lines.v = fake_map_pages(kernel, 0, 1, 1);
    return kaddr_add(kernel->page_lines, at.v / K_PAGE_BYTES % 64 * K_LINE_BYTES);
}

int k_pin(struct kernel *kernel, struct kaddr at, size_t bytes)
{
    fake_bytes(kernel, at, NULL, NULL, bytes);
    k_compute(kernel, kernel->costs.pin_cycles);
    if (fake_fails(&kernel->n_pins, kernel->options.fail_pin_every))
        return -ENOMEM;
    kernel->pins_live += pages_of(at, bytes);
    return 0;
}
void k_unpin(struct kernel *kernel, struct kaddr at, size_t bytes)
{
    fake_bytes(kernel, at, NULL, NULL, bytes);
    FAKE_CHECK(kernel, kernel->pins_live >= pages_of(at, bytes));
    kernel->pins_live -= pages_of(at, bytes);
}

struct kaddr k_alloc(struct kernel *kernel, int node, size_t bytes, size_t align)
{
    uint64_t pages = (bytes + K_PAGE_BYTES - 1) / K_PAGE_BYTES;
    uint64_t align_pages = align > K_PAGE_BYTES ? align / K_PAGE_BYTES : 1;
    return (struct kaddr){ fake_map_pages(kernel, fake_node(kernel, node), pages ? pages : 1,
                                          align_pages) };
}

struct k_cache *k_cache_new(struct kernel *kernel, const char *name, size_t bytes,
                            size_t touched_bytes)
{
    struct k_cache *cache = k_zalloc(sizeof *cache);
    *cache = (struct k_cache){ .next = kernel->caches,
                               .kernel = kernel,
                               .name = name,
                               .bytes = bytes,
                               .touched_bytes = touched_bytes };
    kernel->caches = cache;
    return cache;
}

void *k_cache_get(struct k_cache *cache, struct kaddr *addr)
{
    struct fake_object *object = cache->free;
    if (object)
        cache->free = object->next_free;
    else {
        size_t bytes = (sizeof *object + cache->bytes + 63) & ~(size_t)63;
        object = memset(aligned_alloc(64, bytes), 0, bytes);
        object->next = cache->all;
        cache->all = object;
        if (cache->touched_bytes)
            object->addr = k_alloc(cache->kernel, K_NODE_LOCAL, cache->touched_bytes, 64);
    }
    ASAN_UNPOISON_MEMORY_REGION(object->body, cache->bytes);
    cache->live++;
    if (addr)
        *addr = object->addr;
    return object->body;
}

void k_cache_put(struct k_cache *cache, void *p)
{
    struct fake_object *object = K_CONTAINER(p, struct fake_object, body);
    FAKE_CHECK(cache->kernel, cache->live > 0);
    cache->live--;
    object->next_free = cache->free;
    cache->free = object;
    ASAN_POISON_MEMORY_REGION(object->body, cache->bytes);
}

uint64_t k_cache_live(const struct k_cache *cache)
{
    return cache->live;
}
