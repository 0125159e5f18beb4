/*
 * What it does: pins the pages of buffers for an engine, and keeps them pinned for the next copy
 *   from or to the same memory. A table by page number finds pins; those without users are in order
 *   of last use, and the oldest go when the cache is full. Unmapping takes pins out of the table;
 *   those in use stay pinned for their buffers and go with the last of these, the others go at
 *   once. Threads of a process that pin the same page pin it once: all but the first wait until it
 *   is ready. A page that cannot be mapped for the engine leaves the table: the CPU copies it for
 *   the buffers that have it now, its pin goes with them, and the next buffer tries again.
 * Leaves out: a limit for all processes together.
 * Follows: section 3.5 of the paper (pages stay locked; the module knows of freed memory);
 *   get_user_pages() and mmu notifiers of Linux.
 * Costs: pin_lookup_cycles a buffer; k_pin() for each contiguous run of pages that are not pinned,
 *   a mapping a page, behind IOMMUs one for each of the engines' devices; k_unpin() and
 *   k_page_put() a page that goes.
 */
#include <errno.h>
#include <string.h>

#include "logic/copy/adma_internal.h"

#define CHUNK 128u

struct pin_chunk {
    struct adma_pin pin[CHUNK]; /* the first one links chunks */
};

/* ---- Lists ----------------------------------------------------------------------------------- */

static struct adma_pin **bucket_of(struct adma_process *process, uint64_t number)
{
    const uint64_t hash = number * UINT64_C(0x9e3779b97f4a7c15);
    return &process->bucket[hash >> 52];
}

static void to_idle(struct adma_process *process, struct adma_pin *pin)
{
    pin->older = process->idle.older;
    pin->newer = &process->idle;
    pin->older->newer = pin;
    process->idle.older = pin;
}

static void from_idle(struct adma_pin *pin)
{
    pin->older->newer = pin->newer;
    pin->newer->older = pin->older;
    pin->newer = pin->older = NULL;
}

static struct adma_pin *new_pin(struct adma_process *process)
{
    if (process->free_pins == NULL) {
        struct pin_chunk *chunk = k_zalloc(sizeof(*chunk));
        chunk->pin[0].next = process->chunks;
        process->chunks = &chunk->pin[0];
        for (unsigned i = CHUNK - 1; i > 0; i--) {
            chunk->pin[i].next = process->free_pins;
            process->free_pins = &chunk->pin[i];
        }
    }
    struct adma_pin *pin = process->free_pins;
    process->free_pins = pin->next;
    *pin = (struct adma_pin){ 0 };
    process->n_pins++;
    return pin;
}

void adma_pins_init(struct adma_process *process)
{
    process->idle.newer = process->idle.older = &process->idle;
}

void adma_pins_release(struct adma_process *process)
{
    if (process->n_pins != 0)
        k_fault(process->kernel, "a closed process has %llu pinned pages left",
                (unsigned long long)process->n_pins);
    while (process->chunks != NULL) {
        struct adma_pin *chunk = process->chunks;
        process->chunks = chunk->next;
        k_free(K_CONTAINER(chunk, struct pin_chunk, pin[0]));
    }
}

/* ---- One page -------------------------------------------------------------------------------- */

/* Out of all lists already. Charges time. */
static void unpin(struct adma_process *process, struct adma_pin *pin)
{
    struct adma *adma = process->adma;
    const struct adma_pin was = *pin;
    pin->next = process->free_pins;
    process->free_pins = pin;
    process->n_pins--;
    adma->stats.pages_unpinned += was.pinned;
    for (unsigned i = 0; was.mapped >> i != 0; i++) {
        struct k_device *device = dma_channel_device(adma->mapper[i]);
        if ((was.mapped >> i & 1) != 0 && device != NULL)
            k_dma_unmap(device, was.dma[i], K_PAGE_BYTES, K_DMA_BOTH);
    }
    if (was.pinned)
        k_unpin(process->kernel, was.addr, K_PAGE_BYTES);
    k_page_put(process->kernel, was.page);
}

static void out_of_table(struct adma_process *process, struct adma_pin *pin)
{
    struct adma_pin **bucket = bucket_of(process, pin->number);
    K_LIST_REMOVE(*bucket, pin);
    pin->cached = false;
    process->n_cached--;
    if (pin->users == 0)
        from_idle(pin);
}

static void make_room(struct adma_process *process)
{
    while (process->n_cached > process->adma->options.pin_cache_pages &&
           process->idle.newer != &process->idle) {
        struct adma_pin *oldest = process->idle.newer;
        out_of_table(process, oldest);
        unpin(process, oldest);
    }
}

static struct adma_pin *find(struct adma_process *process, uint64_t number)
{
    struct adma_pin *pin = *bucket_of(process, number);
    while (pin != NULL && pin->number != number)
        pin = pin->next;
    return pin;
}

/* ---- Buffers --------------------------------------------------------------------------------- */

static void give_up(struct adma_process *process, struct adma_pin *pin)
{
    if (--pin->users > 0)
        return;
    if (pin->cached)
        to_idle(process, pin);
    else
        unpin(process, pin);
}

void adma_unpin_buffer(struct adma_process *process, struct adma_buffer *buffer)
{
    while (buffer->n_pins > 0) {
        struct adma_pin *pin = buffer->pin[--buffer->n_pins];
        give_up(process, pin);
    }
    make_room(process);
}

/* A pin of a page that is there, with one user; without the charge for it. */
static struct adma_pin *add_pin(struct adma_process *process, uint64_t number)
{
    struct kaddr addr;
    struct k_page *page = umem_page(process->umem, (struct uaddr){ number * K_PAGE_BYTES }, &addr);
    if (page == NULL)
        return NULL;
    struct adma_pin *pin = new_pin(process), **bucket = bucket_of(process, number);
    k_page_get(page);
    *pin = (struct adma_pin){ .number = number, .page = page, .addr = addr, .users = 1 };
    if (process->adma->options.pin_cache_pages != 0) {
        pin->cached = true;
        pin->next = *bucket;
        *bucket = pin;
        process->n_cached++;
    }
    return pin;
}

/* It is being paid for, and pinning or mapping fails: no later buffer finds it. */
static void fail_pin(struct adma_process *process, struct adma_pin *pin)
{
    if (pin->cached)
        out_of_table(process, pin);
}

/* For all engines; where that fails, only for those before. */
static void map(struct adma_process *process, struct adma_pin *pin)
{
    struct adma *adma = process->adma;
    for (unsigned i = 0; i < adma->n_mappers; i++) {
        struct k_device *device = dma_channel_device(adma->mapper[i]);
        uint64_t dma;
        if (device == NULL)
            continue;
        if (k_dma_map(device, pin->addr, K_PAGE_BYTES, K_DMA_BOTH, &dma) != 0) {
            fail_pin(process, pin);
            adma->stats.pages_not_mapped++;
            return;
        }
        pin->dma[i] = dma;
        pin->mapped |= (uint16_t)(1u << i);
    }
}

/* Pays for the new pins [from, n_pins) of the buffer: a call for each run of contiguous pages.
 * Memory may be unmapped meanwhile, and others may find the pins: they wait until these are ready,
 * as all of them are at return, on an error, too. */
static int pay(struct adma_process *process, struct adma_buffer *buffer, uint32_t from)
{
    int error = 0;
    for (uint32_t i = from, end; i < buffer->n_pins; i = end) {
        const struct kaddr at = buffer->pin[i]->addr;
        for (end = i + 1; end < buffer->n_pins; end++)
            if (buffer->pin[end]->addr.v != at.v + (uint64_t)(end - i) * K_PAGE_BYTES)
                break;
        const int status = k_pin(process->kernel, at, (size_t)(end - i) * K_PAGE_BYTES);
        error = error != 0 ? error : status;
        for (uint32_t k = i; k < end; k++)
            if (status == 0)
                buffer->pin[k]->pinned = true;
            else
                fail_pin(process, buffer->pin[k]);
        process->adma->stats.pages_pinned += status == 0 ? end - i : 0;
    }
    for (uint32_t i = from; i < buffer->n_pins; i++) {
        if (buffer->pin[i]->pinned)
            map(process, buffer->pin[i]);
        buffer->pin[i]->ready = true;
    }
    if (k_has_waiters(&process->to_be_ready))
        k_wake(process->kernel, &process->to_be_ready);
    return error;
}

/* Until those who pin the buffer's pages, too, have done so. The buffer's own new pins are ready:
 * two threads do not wait for each other. */
static int wait_for_others(struct adma_process *process, const struct adma_buffer *buffer)
{
    for (uint32_t i = 0; i < buffer->n_pins; i++) {
        while (!buffer->pin[i]->ready)
            k_wait(process->kernel, &process->to_be_ready, UINT64_MAX);
        if (!buffer->pin[i]->pinned)
            return -ENOMEM;
    }
    return 0;
}

static void room_for(struct adma_buffer *buffer, uint64_t n)
{
    if (n <= buffer->n_room)
        return;
    k_free(buffer->pin);
    buffer->n_room = (uint32_t)n;
    buffer->pin = k_zalloc(n * sizeof(struct adma_pin *));
}

/* Pins more pages: first those that are in the table, then those that are not, each as far as
 * they go. Those of the table may not be ready yet. */
static int pin_some(struct adma_process *process, struct adma_buffer *buffer, uint64_t n_pages)
{
    const uint64_t first = buffer->at.v / K_PAGE_BYTES, end = first + n_pages;
    uint64_t number = first + buffer->n_pins;
    struct adma_pin *pin;
    while (number < end && (pin = find(process, number)) != NULL) {
        if (pin->users++ == 0)
            from_idle(pin);
        buffer->all_hit = buffer->all_hit && pin->ready;
        buffer->pin[buffer->n_pins++] = pin;
        process->adma->stats.pages_hit++;
        number++;
    }
    const uint32_t from = buffer->n_pins;
    while (number < end && find(process, number) == NULL) {
        pin = add_pin(process, number);
        if (pin == NULL)
            return buffer->n_pins > from && pay(process, buffer, from) != 0 ? -ENOMEM : -EFAULT;
        buffer->pin[buffer->n_pins++] = pin;
        number++;
    }
    if (buffer->n_pins == from)
        return 0;
    buffer->all_hit = false;
    return pay(process, buffer, from);
}

int adma_pin_buffer(struct adma_process *process, struct adma_buffer *buffer, struct uaddr at,
                    uint64_t bytes)
{
    const uint64_t in_page = at.v % K_PAGE_BYTES;
    const uint64_t n_pages = bytes == 0 ? 0 : (in_page + bytes + K_PAGE_BYTES - 1) / K_PAGE_BYTES;
    uint64_t since_ps = k_now_ps(process->kernel);
    int error = 0;
    if (!umem_mapped(process->umem, at, bytes))
        return -EFAULT;
    room_for(buffer, n_pages);
    buffer->at = at;
    buffer->bytes = bytes;
    buffer->n_pins = 0;
    buffer->all_hit = true;
    if (process->adma->options.pin_cache_pages != 0)
        k_compute(process->kernel, k_costs(process->kernel)->pin_lookup_cycles);
    while (error == 0 && buffer->n_pins < n_pages)
        error = pin_some(process, buffer, n_pages);
    if (error == 0 && !buffer->all_hit)
        error = wait_for_others(process, buffer);
    if (error != 0)
        adma_unpin_buffer(process, buffer);
    process->times.pin_ps += adma_lap(process->kernel, &since_ps);
    return error;
}

/* ---- Memory goes away ------------------------------------------------------------------------ */

/* Of a range; n_pages UINT64_MAX: all. */
static void drop(struct adma_process *process, uint64_t number, uint64_t n_pages)
{
    struct adma_pin *gone = NULL;
    uint64_t left = process->n_cached;
    for (unsigned b = 0; b < PIN_BUCKETS && left > 0; b++)
        for (struct adma_pin *pin = process->bucket[b], *next; pin != NULL; pin = next) {
            next = pin->next;
            left--;
            if (pin->number < number || pin->number - number >= n_pages)
                continue;
            out_of_table(process, pin);
            process->adma->stats.pages_dropped++;
            if (pin->users > 0)
                continue;
            pin->next = gone;
            gone = pin;
        }
    while (gone != NULL) { /* charges time: others may come in, and see a table without them */
        struct adma_pin *pin = gone;
        gone = pin->next;
        unpin(process, pin);
    }
}

void adma_pins_drop(struct adma_process *process)
{
    drop(process, 0, UINT64_MAX);
}

static void unmapped(struct umem_notifier *notifier, struct uaddr at, uint64_t bytes)
{
    struct adma_process *process = K_CONTAINER(notifier, struct adma_process, notifier);
    drop(process, at.v / K_PAGE_BYTES, bytes / K_PAGE_BYTES);
}

void adma_notifier_init(struct adma_process *process)
{
    process->notifier.unmap = unmapped;
    umem_notifier_add(process->umem, &process->notifier);
}
