/*
 * Media of nvme.controller: what namespaces hold, and how long that takes.
 *
 * Models: namespaces that hold what was written, zeros elsewhere, in pages of 4 KiB that appear
 * when they are first written; a latency, and a bandwidth that channels share. Does not model: what
 * media are made of: dies, refresh, wear, a cache with loss of power; sectors that go bad. With
 * payload = "tag" a page is a tag for each of its cache lines. Timing: of a read or write of n
 * bytes of a page, on the page's channel, start = max(read: begin of the command, write: data here;
 * channel free) channel free = start + n / (bandwidth / channels) ready = start + latency + jitter
 * of the command. Sources: docs/sources.md#c4; docs/models/nvme.md.
 */
#include <stdlib.h>
#include <string.h>

#include "models/nvme/nvme_internal.h"

#define CHUNK_PAGES 4096u
#define TAG_BYTES   8u

struct nvme_chunk {
    uint8_t *page[CHUNK_PAGES];
};

static size_t page_bytes(const struct nvme_subsystem *sub)
{
    return sub->params.payload == NVME_PAYLOAD_TAG ? NVME_PAGE_LINES * TAG_BYTES : NVME_PAGE_BYTES;
}

void nvme_media_init(struct nvme_subsystem *sub)
{
    const struct nvme_params *params = &sub->params;
    uint64_t n_pages = (params->capacity_bytes + NVME_PAGE_BYTES - 1) / NVME_PAGE_BYTES;
    sub->pages = sim_pool_new(sub->model->sim, "nvme page", page_bytes(sub));
    sub->channel_free_ps = sim_zalloc(params->n_channels, sizeof(*sub->channel_free_ps));
    sub->read_fs_per_byte = (uint64_t)(1e6 * params->n_channels / params->read_gbyte_s + 0.5);
    sub->write_fs_per_byte = (uint64_t)(1e6 * params->n_channels / params->write_gbyte_s + 0.5);
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
    }
    free(sub->channel_free_ps);
}

/* ---- Time ------------------------------------------------------------------------------------ */

sim_time nvme_media_ready(struct nvme_subsystem *sub, const struct nvme_command *command,
                          uint64_t offset, uint32_t bytes)
{
    const struct nvme_params *params = &sub->params;
    sim_time *free_ps = &sub->channel_free_ps[offset / NVME_PAGE_BYTES % params->n_channels];
    sim_time start_ps = command->write ? sim_now(sub->model->sim) : command->begin_ps;
    uint64_t fs_per_byte = command->write ? sub->write_fs_per_byte : sub->read_fs_per_byte;
    const sim_time busy_ps = (bytes * fs_per_byte + 500) / 1000;
    start_ps = SIM_MAX(start_ps, *free_ps);
    *free_ps = start_ps + busy_ps;
    sub->stats.media.ps += busy_ps;
    return start_ps + (command->write ? params->write_ps : params->read_ps) + command->jitter_ps;
}

void nvme_media_settle(struct model *model)
{
    struct nvme_subsystem *sub = nvme_state(model);
    const sim_time now_ps = sim_now(model->sim);
    uint64_t ahead_ps = 0;
    for (uint32_t i = 0; i < sub->params.n_channels; i++)
        ahead_ps += SIM_MAX(sub->channel_free_ps[i], now_ps) - now_ps;
    stat_busy_settle(&sub->stats.media, ahead_ps);
    sub->stats.media_peak.per_s = sub->params.n_channels * (double)SIM_PS_PER_S;
}

/* ---- Content --------------------------------------------------------------------------------- */

static uint8_t **page_slot(const struct nvme_namespace *namespace, uint64_t offset)
{
    uint64_t page = offset / NVME_PAGE_BYTES;
    struct nvme_chunk *chunk = namespace->chunk[page / CHUNK_PAGES];
    return chunk != NULL ? &chunk->page[page % CHUNK_PAGES] : NULL;
}

/* The page appears. */
static uint8_t *page_made(struct nvme_subsystem *sub, struct nvme_namespace *namespace,
                          uint64_t offset)
{
    struct nvme_chunk **chunk = &namespace->chunk[offset / NVME_PAGE_BYTES / CHUNK_PAGES];
    if (*chunk == NULL) {
        *chunk = sim_zalloc(1, sizeof(**chunk));
    }
    uint8_t **slot = page_slot(namespace, offset);
    if (*slot == NULL) {
        *slot = sim_pool_get(sub->pages);
        memset(*slot, 0, page_bytes(sub));
        sub->stats.media_pages++;
    }
    return *slot;
}

void nvme_media_load(struct nvme_subsystem *sub, const struct nvme_piece *piece, uint8_t *buffer)
{
    const struct nvme_namespace *namespace = &sub->namespace[piece->command->namespace_idx];
    uint8_t *const *slot = page_slot(namespace, piece->media_offset);
    const uint8_t *page = slot != NULL ? *slot : NULL;
    uint64_t at = piece->media_offset % NVME_PAGE_BYTES;
    if (page != NULL && sub->params.payload == NVME_PAYLOAD_BYTES) {
        memcpy(buffer, page + at, piece->bytes);
        return;
    }
    memset(buffer, 0, piece->bytes);
    for (uint32_t i = 0; page != NULL && i < piece->bytes; i += LINE_BYTES)
        memcpy(buffer + i, page + (at + i) / LINE_BYTES * TAG_BYTES, TAG_BYTES);
}

void nvme_media_store(struct nvme_subsystem *sub, const struct nvme_piece *piece)
{
    struct nvme_namespace *namespace = &sub->namespace[piece->command->namespace_idx];
    uint8_t *page = page_made(sub, namespace, piece->media_offset);
    uint64_t at = piece->media_offset % NVME_PAGE_BYTES;
    if (sub->params.payload == NVME_PAYLOAD_BYTES) {
        memcpy(page + at, piece->buffer, piece->bytes);
        return;
    }
    for (uint32_t i = 0; i < piece->bytes; i += LINE_BYTES)
        memcpy(page + (at + i) / LINE_BYTES * TAG_BYTES, piece->buffer + i, TAG_BYTES);
}
