/*
 * What the namespaces of nvme.controller hold.
 *
 * Models: namespaces that hold what was written, before the run too (nvme_hold()), zeros elsewhere,
 *   in pages of 4 KiB that appear when they are first written and go when they are deallocated;
 *   blocks that were made unreadable.
 *   With payload = "tag" a page is a tag for each of its cache lines.
 * Does not model: loss of power.
 * Timing: of the kind of media that the parameter `media` names, nvme_media_*.c.
 * Sources: docs/sources.md#c4; docs/models/nvme.md.
 */
#include <stdlib.h>
#include <string.h>

#include "models/base/payload.h"
#include "models/nvme/nvme_media.h"

#define CHUNK_PAGES 4096u
#define TAG_BYTES   8u
#define UNIT_BYTES  512u

struct nvme_chunk {
    uint8_t *page[CHUNK_PAGES];
    uint8_t bad[CHUNK_PAGES]; /* a bit for each UNIT_BYTES that cannot be read */
};

static size_t page_bytes(const struct nvme_subsystem *sub)
{
    return sub->params.payload == NVME_PAYLOAD_TAG ? NVME_PAGE_LINES * TAG_BYTES : NVME_PAGE_BYTES;
}

static const struct nvme_media_ops *const kinds[] = {
    [NVME_MEDIA_FLAT] = &nvme_media_flat,
    [NVME_MEDIA_XPOINT] = &nvme_media_xpoint,
    [NVME_MEDIA_DRAM] = &nvme_media_dram,
    [NVME_MEDIA_NAND] = &nvme_media_nand,
};

/* Of a namespace, the last page whole. */
static uint64_t pages_of_namespace(const struct nvme_subsystem *sub)
{
    return (sub->params.capacity_bytes + NVME_PAGE_BYTES - 1) / NVME_PAGE_BYTES;
}

void nvme_media_init(struct nvme_subsystem *sub)
{
    const struct nvme_params *params = &sub->params;
    const uint64_t n_pages = pages_of_namespace(sub);
    sub->pages = sim_pool_new(sub->model->sim, "nvme page", page_bytes(sub));
    sub->media = kinds[params->media.kind];
    sub->media_of_dies = params->media.kind == NVME_MEDIA_FLAT   ? 0
                         : params->media.kind == NVME_MEDIA_NAND ? 2
                                                                 : 1;
    sub->media->init(sub);
    for (uint32_t i = 0; i < params->n_namespaces; i++) {
        struct nvme_namespace *namespace = &sub->namespace[i];
        namespace->n_chunks = (n_pages + CHUNK_PAGES - 1) / CHUNK_PAGES;
        namespace->chunk = sim_zalloc(namespace->n_chunks, sizeof(struct nvme_chunk *));
    }
}

static void chunk_free(struct nvme_subsystem *sub, struct nvme_chunk *chunk)
{
    for (unsigned i = 0; chunk != NULL && i < CHUNK_PAGES; i++)
        if (chunk->page[i] != NULL)
            sim_pool_put(sub->pages, chunk->page[i]);
    free(chunk);
}

void nvme_media_release(struct nvme_subsystem *sub)
{
    for (uint32_t i = 0; i < sub->params.n_namespaces; i++) {
        for (uint64_t c = 0; c < sub->namespace[i].n_chunks; c++)
            chunk_free(sub, sub->namespace[i].chunk[c]);
        free(sub->namespace[i].chunk);
        free(sub->namespace[i].held);
    }
    sub->media->release(sub);
}

/* ---- Time ------------------------------------------------------------------------------------ */

static uint64_t media_offset(const struct nvme_subsystem *sub,
                             const struct nvme_namespace *namespace, uint64_t offset)
{
    return (uint64_t)(namespace - sub->namespace) * pages_of_namespace(sub) * NVME_PAGE_BYTES +
           offset;
}

sim_time nvme_media_ready(struct nvme_subsystem *sub, const struct nvme_command *command,
                          uint64_t offset, uint32_t bytes)
{
    const struct nvme_media_access access = {
        .offset = media_offset(sub, command->namespace, offset),
        .bytes = bytes,
        .write = command->data == NVME_DATA_WRITE,
        .from_ps = command->data == NVME_DATA_WRITE ? sim_now(sub->model->sim) : command->begin_ps,
    };
    return sub->media->ready(sub, &access) + command->jitter_ps;
}

void nvme_media_settle(struct model *model)
{
    struct nvme_subsystem *sub = nvme_state(model);
    stat_busy_settle(&sub->stats.media, sub->media->ahead_ps(sub, sim_now(model->sim)));
    sub->stats.media_peak.per_s = sub->params.n_channels * (double)SIM_PS_PER_S;
}

uint8_t nvme_media_used_percent(const struct nvme_subsystem *sub)
{
    const double used = sub->media->wear != NULL ? sub->media->wear(sub) * 100 : 0;
    return (uint8_t)SIM_MIN(used, 255.0);
}

/* ---- Content --------------------------------------------------------------------------------- */

static uint8_t **page_slot(const struct nvme_namespace *namespace, uint64_t offset)
{
    uint64_t page = offset / NVME_PAGE_BYTES;
    struct nvme_chunk *chunk = namespace->chunk[page / CHUNK_PAGES];
    return chunk != NULL ? &chunk->page[page % CHUNK_PAGES] : NULL;
}

static struct nvme_chunk *chunk_made(struct nvme_namespace *namespace, uint64_t offset)
{
    struct nvme_chunk **chunk = &namespace->chunk[offset / NVME_PAGE_BYTES / CHUNK_PAGES];
    if (*chunk == NULL)
        *chunk = sim_zalloc(1, sizeof(**chunk));
    return *chunk;
}

/* ---- What was written before the run: made when it is touched -------------------------------- */

struct nvme_held {
    uint64_t offset, bytes, mark;
};

static bool held_overlaps(const struct nvme_held *held, uint64_t offset, uint64_t bytes)
{
    return held->offset < offset + bytes && offset < held->offset + held->bytes;
}

/* Something is held of the page at `offset`. */
static bool is_held(const struct nvme_namespace *namespace, uint64_t offset)
{
    const uint64_t page = offset / NVME_PAGE_BYTES * NVME_PAGE_BYTES;
    for (unsigned i = 0; i < namespace->n_held; i++)
        if (held_overlaps(&namespace->held[i], page, NVME_PAGE_BYTES))
            return true;
    return false;
}

/* Puts what is held of the page at `offset` into it. */
static void put_held(const struct nvme_subsystem *sub, const struct nvme_held *held,
                     uint64_t offset, uint8_t *page)
{
    const uint64_t first = offset / NVME_PAGE_BYTES * NVME_PAGE_BYTES;
    const uint64_t begin = SIM_MAX(first, held->offset),
                   end = SIM_MIN(first + NVME_PAGE_BYTES, held->offset + held->bytes);
    const size_t step = page_bytes(sub) / NVME_PAGE_LINES;
    if (begin >= end)
        return;
    struct payload_words words = payload_words(payload_mark_add(held->mark, begin - held->offset));
    for (uint64_t at = begin; at < end; at += LINE_BYTES) {
        const uint64_t word = payload_words_here(&words);
        memcpy(page + (at - first) / LINE_BYTES * step, &word, sizeof(word));
        payload_words_line(&words);
    }
}

void nvme_media_hold(struct nvme_subsystem *sub, struct nvme_namespace *namespace, uint64_t offset,
                     uint64_t bytes, uint64_t mark)
{
    const struct nvme_held held = { offset, bytes, mark };
    const uint64_t first = offset / NVME_PAGE_BYTES * NVME_PAGE_BYTES;
    const uint64_t ends[] = { offset, offset + bytes - 1 };
    namespace->held = sim_grow(namespace->held, namespace->n_held + 1, sizeof(*namespace->held));
    namespace->held[namespace->n_held++] = held;
    for (unsigned i = 0; i < 2; i++) { /* pages there may have been touched, for what is beside */
        uint8_t *const *slot = page_slot(namespace, ends[i]);
        if (slot != NULL && *slot != NULL)
            put_held(sub, &held, ends[i], *slot);
    }
    if (sub->media->hold != NULL)
        sub->media->hold(sub, media_offset(sub, namespace, first), offset + bytes - first);
}

/* The page appears. */
static uint8_t *page_made(struct nvme_subsystem *sub, struct nvme_namespace *namespace,
                          uint64_t offset)
{
    chunk_made(namespace, offset);
    uint8_t **slot = page_slot(namespace, offset);
    if (*slot == NULL) {
        *slot = sim_pool_get(sub->pages);
        memset(*slot, 0, page_bytes(sub));
        for (unsigned i = 0; i < namespace->n_held; i++)
            put_held(sub, &namespace->held[i], offset, *slot);
        sub->stats.media_pages++;
    }
    return *slot;
}

/* The units that the bytes touch, a bit each. */
static uint8_t units(uint64_t offset, uint64_t bytes)
{
    unsigned first = (unsigned)(offset % NVME_PAGE_BYTES / UNIT_BYTES);
    unsigned last = (unsigned)((offset + bytes - 1) % NVME_PAGE_BYTES / UNIT_BYTES);
    return (uint8_t)((2u << last) - (1u << first));
}

static uint8_t *bad_units(const struct nvme_namespace *namespace, uint64_t offset)
{
    struct nvme_chunk *chunk = namespace->chunk[offset / NVME_PAGE_BYTES / CHUNK_PAGES];
    return chunk != NULL ? &chunk->bad[offset / NVME_PAGE_BYTES % CHUNK_PAGES] : NULL;
}

static void set_bad(struct nvme_namespace *namespace, uint64_t offset, uint64_t bytes, bool bad)
{
    uint8_t *now = bad_units(namespace, offset);
    if (now == NULL)
        return;
    namespace->n_bad -= (unsigned)__builtin_popcount(*now);
    *now = (uint8_t)(bad ? *now | units(offset, bytes) : *now & ~units(offset, bytes));
    namespace->n_bad += (unsigned)__builtin_popcount(*now);
}

static void load(struct nvme_subsystem *sub, struct nvme_namespace *namespace, uint64_t offset,
                 uint8_t *buffer, uint32_t bytes)
{
    uint8_t *const *slot = page_slot(namespace, offset);
    const uint8_t *page = slot != NULL ? *slot : NULL;
    if (page == NULL && is_held(namespace, offset))
        page = page_made(sub, namespace, offset);
    uint64_t at = offset % NVME_PAGE_BYTES;
    if (page != NULL && sub->params.payload == NVME_PAYLOAD_BYTES) {
        memcpy(buffer, page + at, bytes);
        return;
    }
    memset(buffer, 0, bytes);
    for (uint32_t i = 0; page != NULL && i < bytes; i += LINE_BYTES)
        memcpy(buffer + i, page + (at + i) / LINE_BYTES * TAG_BYTES, TAG_BYTES);
}

static bool readable(const struct nvme_piece *piece)
{
    const struct nvme_namespace *namespace = piece->command->namespace;
    if (SIM_LIKELY(namespace->n_bad == 0))
        return true;
    const uint8_t *bad = bad_units(namespace, piece->offset);
    return bad == NULL || (*bad & units(piece->offset, piece->bytes)) == 0;
}

bool nvme_media_load(struct nvme_subsystem *sub, const struct nvme_piece *piece, uint8_t *buffer)
{
    load(sub, piece->command->namespace, piece->offset, buffer, piece->bytes);
    return readable(piece);
}

void nvme_media_store(struct nvme_subsystem *sub, const struct nvme_piece *piece)
{
    struct nvme_namespace *namespace = piece->command->namespace;
    uint8_t *page = page_made(sub, namespace, piece->offset);
    uint64_t at = piece->offset % NVME_PAGE_BYTES;
    if (SIM_UNLIKELY(namespace->n_bad != 0))
        set_bad(namespace, piece->offset, piece->bytes, false);
    if (sub->params.payload == NVME_PAYLOAD_BYTES) {
        memcpy(page + at, piece->buffer, piece->bytes);
        return;
    }
    for (uint32_t i = 0; i < piece->bytes; i += LINE_BYTES)
        memcpy(page + (at + i) / LINE_BYTES * TAG_BYTES, piece->buffer + i, TAG_BYTES);
}

enum nvme_status nvme_media_compare(struct nvme_subsystem *sub, const struct nvme_piece *piece)
{
    uint8_t found[NVME_PAGE_BYTES];
    const bool tags = sub->params.payload == NVME_PAYLOAD_TAG;
    const uint32_t step = tags ? LINE_BYTES : piece->bytes, n = tags ? TAG_BYTES : piece->bytes;
    if (!readable(piece))
        return NVME_SC_UNRECOVERED_READ;
    load(sub, piece->command->namespace, piece->offset, found, piece->bytes);
    for (uint32_t i = 0; i < piece->bytes; i += step)
        if (memcmp(found + i, piece->buffer + i, n) != 0)
            return NVME_SC_COMPARE_FAILURE;
    return NVME_SC_SUCCESS;
}

/* Within a page. */
static void zero_in_page(struct nvme_subsystem *sub, struct nvme_namespace *namespace,
                         uint64_t offset, uint64_t bytes)
{
    uint8_t **slot = page_slot(namespace, offset);
    uint64_t at = offset % NVME_PAGE_BYTES;
    set_bad(namespace, offset, bytes, false);
    const bool held = is_held(namespace, offset);
    if (held) {
        page_made(sub, namespace, offset);
        slot = page_slot(namespace, offset);
    }
    if (slot == NULL || *slot == NULL)
        return;
    if (bytes == NVME_PAGE_BYTES && !held) {
        sim_pool_put(sub->pages, *slot);
        *slot = NULL;
        sub->stats.media_pages--;
    } else if (sub->params.payload == NVME_PAYLOAD_BYTES) {
        memset(*slot + at, 0, bytes);
    } else {
        memset(*slot + at / LINE_BYTES * TAG_BYTES, 0, bytes / LINE_BYTES * TAG_BYTES);
    }
}

/* Whole pages of these. */
static void deallocate(struct nvme_subsystem *sub, const struct nvme_namespace *namespace,
                       uint64_t offset, uint64_t bytes)
{
    const uint64_t end = (offset + bytes) / NVME_PAGE_BYTES * NVME_PAGE_BYTES;
    offset = (offset + NVME_PAGE_BYTES - 1) / NVME_PAGE_BYTES * NVME_PAGE_BYTES;
    if (sub->media->deallocate != NULL && offset < end)
        sub->media->deallocate(sub, media_offset(sub, namespace, offset), end - offset);
}

void nvme_media_zero(struct nvme_subsystem *sub, struct nvme_namespace *namespace, uint64_t offset,
                     uint64_t bytes)
{
    const uint64_t chunk_bytes = (uint64_t)CHUNK_PAGES * NVME_PAGE_BYTES, end = offset + bytes;
    deallocate(sub, namespace, offset, bytes);
    while (offset < end) {
        uint64_t n = SIM_MIN(end - offset, NVME_PAGE_BYTES - offset % NVME_PAGE_BYTES);
        if (namespace->chunk[offset / chunk_bytes] == NULL && namespace->n_held == 0)
            n = SIM_MIN(end - offset, chunk_bytes - offset % chunk_bytes); /* nothing there */
        else
            zero_in_page(sub, namespace, offset, n);
        offset += n;
    }
}

void nvme_media_spoil(struct nvme_namespace *namespace, uint64_t offset, uint64_t bytes)
{
    for (uint64_t end = offset + bytes, n; offset < end; offset += n) {
        n = SIM_MIN(end - offset, NVME_PAGE_BYTES - offset % NVME_PAGE_BYTES);
        chunk_made(namespace, offset);
        set_bad(namespace, offset, n, true);
    }
}
