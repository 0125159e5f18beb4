/*
 * What it does: Memory of an endpoint: requests with the cache lines that represent them, buffers
 *   for messages that nobody has asked for, copies between a request's segments and contiguous
 *   memory. What was allocated stays with the endpoint until it is closed.
 * Costs: a request stores its first line when it is taken. Copies go line by line through the
 *   caches.
 */
#include "logic/mx/mx_internal.h"

static struct kaddr page_get(struct mx_lib *lib, unsigned order)
{
    struct k_page *page = k_page_alloc(lib->kernel, K_NODE_LOCAL, order);
    if (page == NULL)
        return (struct kaddr){ 0 };
    struct mx_chunk *chunk = k_zalloc(sizeof *chunk);
    *chunk = (struct mx_chunk){ .next = lib->pages, .page = page };
    lib->pages = chunk;
    return page->addr;
}

struct kaddr mx_lines_get(struct mx_lib *lib, unsigned bytes)
{
    if (lib->free_lines_bytes < bytes) {
        lib->free_lines = page_get(lib, 0);
        if (lib->free_lines.v == 0) {
            lib->free_lines_bytes = 0;
            return lib->free_lines;
        }
        lib->free_lines_bytes = K_PAGE_BYTES;
    }
    const struct kaddr lines = lib->free_lines;
    lib->free_lines = kaddr_add(lines, bytes);
    lib->free_lines_bytes -= bytes;
    return lines;
}

struct mx_request *mx_request_get(struct mx_lib *lib, enum mx_kind kind)
{
    struct mx_request *r = lib->free_requests;
    if (r != NULL)
        lib->free_requests = (struct mx_request *)(void *)r->queue.next;
    else {
        const struct kaddr lines = mx_lines_get(lib, MX_REQUEST_BYTES);
        if (lines.v == 0)
            return NULL;
        r = k_zalloc(sizeof *r);
        r->lines = lines;
    }
    const struct kaddr lines = r->lines;
    memset(r, 0, offsetof(struct mx_request, event));
    r->lines = lines;
    r->kind = kind;
    r->segment = &r->one;
    k_touch_write(lib->kernel, lines, K_LINE_BYTES);
    return r;
}

void mx_request_put(struct mx_lib *lib, struct mx_request *r)
{
    if (r->buffer != NULL)
        mx_buffer_put(lib, r->buffer);
    if (r->segment != &r->one)
        k_free(r->segment);
    r->buffer = NULL;
    r->segment = &r->one;
    r->queue.next = (struct mx_link *)(void *)lib->free_requests;
    lib->free_requests = r;
}

int mx_request_segments(struct mx_request *r, const struct mx_segment *segment, unsigned n)
{
    if (n > MX_SEGMENTS_MAX)
        return -EINVAL;
    if (n > 1)
        r->segment = k_zalloc(n * sizeof *segment);
    for (unsigned i = 0; i < n; i++) {
        r->segment[i] = segment[i];
        r->bytes += segment[i].bytes;
    }
    r->n_segments = n;
    return r->bytes <= UINT32_MAX ? 0 : -EINVAL;
}

struct mx_buffer *mx_buffer_get(struct mx_lib *lib)
{
    struct mx_buffer *buffer = lib->free_buffers;
    if (buffer != NULL) {
        lib->free_buffers = buffer->next;
        return buffer;
    }
    struct k_page *page = k_page_alloc(lib->kernel, K_NODE_LOCAL, 3);
    _Static_assert(K_PAGE_BYTES << 3 == MX_MEDIUM_BYTES, "the order of the pages");
    if (page == NULL)
        return NULL;
    buffer = k_zalloc(sizeof *buffer);
    buffer->page = page;
    return buffer;
}

void mx_buffer_put(struct mx_lib *lib, struct mx_buffer *buffer)
{
    buffer->next = lib->free_buffers;
    lib->free_buffers = buffer;
}

void mx_memory_release(struct mx_lib *lib)
{
    for (struct mx_request *r = lib->free_requests, *next; r != NULL; r = next) {
        next = (struct mx_request *)(void *)r->queue.next;
        k_free(r);
    }
    for (struct mx_buffer *buffer = lib->free_buffers, *next; buffer != NULL; buffer = next) {
        next = buffer->next;
        k_page_put(lib->kernel, buffer->page);
        k_free(buffer);
    }
    for (struct mx_chunk *chunk = lib->pages, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        k_page_put(lib->kernel, chunk->page);
        k_free(chunk);
    }
}

/* ---- Segments -------------------------------------------------------------------------------- */

enum how { SCATTER, GATHER, SCATTER_BYTES, GATHER_BYTES };

/* Calls for each piece of [offset, offset + bytes) of the segments. */
static uint64_t walk(struct mx_lib *lib, const struct mx_request *r, uint64_t offset,
                     uint64_t bytes, enum how how, struct kaddr at, uint8_t *there)
{
    const unsigned before = k_account(lib->kernel, MX_ACCOUNT_USER_DATA);
    uint64_t done = 0;
    for (unsigned i = 0; i < r->n_segments && done < bytes; i++) {
        const struct mx_segment *s = &r->segment[i];
        if (offset >= s->bytes) {
            offset -= s->bytes;
            continue;
        }
        const uint64_t room = s->bytes - offset;
        const uint64_t n = room < bytes - done ? room : bytes - done;
        const struct kaddr here = kaddr_add(s->at, offset);
        if (how == SCATTER)
            k_copy(lib->kernel, here, kaddr_add(at, done), n);
        else if (how == GATHER)
            k_copy(lib->kernel, kaddr_add(at, done), here, n);
        else if (how == SCATTER_BYTES)
            k_store(lib->kernel, here, there + done, n);
        else
            k_load(lib->kernel, here, there + done, n);
        done += n;
        offset = 0;
    }
    k_account(lib->kernel, before);
    return done;
}

uint64_t mx_scatter(struct mx_lib *lib, const struct mx_request *r, uint64_t offset,
                    struct kaddr from, uint64_t bytes)
{
    return walk(lib, r, offset, bytes, SCATTER, from, NULL);
}

uint64_t mx_gather(struct mx_lib *lib, const struct mx_request *r, uint64_t offset, struct kaddr to,
                   uint64_t bytes)
{
    return walk(lib, r, offset, bytes, GATHER, to, NULL);
}

uint64_t mx_scatter_bytes(struct mx_lib *lib, const struct mx_request *r, const void *from,
                          uint64_t bytes)
{
    uint8_t data[MX_TINY_BYTES];
    memcpy(data, from, bytes);
    return walk(lib, r, 0, bytes, SCATTER_BYTES, (struct kaddr){ 0 }, data);
}

void mx_buffer_fill(struct mx_lib *lib, struct kaddr to, struct kaddr from, uint64_t bytes)
{
    const unsigned before = k_account(lib->kernel, MX_ACCOUNT_USER_DATA);
    k_copy(lib->kernel, to, from, bytes);
    k_account(lib->kernel, before);
}

void mx_gather_bytes(struct mx_lib *lib, const struct mx_request *r, void *to, uint64_t bytes)
{
    walk(lib, r, 0, bytes, GATHER_BYTES, (struct kaddr){ 0 }, to);
}
