/*
 * media = "flat": one latency and one bandwidth.
 *
 * Models: a latency, and a bandwidth that channels share.
 * Does not model: what media are made of.
 * Timing: of a read or write of n bytes of a page, on the page's channel,
 *     start = max(read: begin of the command, write: data here; channel free)
 *     channel free = start + n / (bandwidth / channels)
 *     ready = start + latency
 */
#include <stdlib.h>

#include "models/nvme/nvme_media.h"

struct flat {
    uint64_t read_fs_per_byte, write_fs_per_byte; /* of a channel */
    sim_time free_ps[];                           /* of each channel */
};

static void flat_init(struct nvme_subsystem *sub)
{
    const struct nvme_params *params = &sub->params;
    struct flat *flat = sim_zalloc(1, sizeof(*flat) + params->n_channels * sizeof(sim_time));
    flat->read_fs_per_byte = (uint64_t)(1e6 * params->n_channels / params->read_gbyte_s + 0.5);
    flat->write_fs_per_byte = (uint64_t)(1e6 * params->n_channels / params->write_gbyte_s + 0.5);
    sub->media_state = flat;
}

static void flat_release(struct nvme_subsystem *sub)
{
    free(sub->media_state);
}

static sim_time flat_ready(struct nvme_subsystem *sub, const struct nvme_media_access *access)
{
    const struct nvme_params *params = &sub->params;
    struct flat *flat = sub->media_state;
    /* Pages of namespaces share channels as if each namespace began on the first one. */
    const uint64_t pages = (params->capacity_bytes + NVME_PAGE_BYTES - 1) / NVME_PAGE_BYTES;
    const uint64_t page = access->offset / NVME_PAGE_BYTES % pages;
    sim_time *free_ps = &flat->free_ps[page % params->n_channels];
    const uint64_t fs_per_byte = access->write ? flat->write_fs_per_byte : flat->read_fs_per_byte;
    const sim_time busy_ps = (access->bytes * fs_per_byte + 500) / 1000;
    const sim_time start_ps = SIM_MAX(access->from_ps, *free_ps);
    *free_ps = start_ps + busy_ps;
    sub->stats.media.ps += busy_ps;
    return start_ps + (access->write ? params->write_ps : params->read_ps);
}

static uint64_t flat_ahead_ps(const struct nvme_subsystem *sub, sim_time now_ps)
{
    const struct flat *flat = sub->media_state;
    uint64_t ahead_ps = 0;
    for (uint32_t i = 0; i < sub->params.n_channels; i++)
        ahead_ps += SIM_MAX(flat->free_ps[i], now_ps) - now_ps;
    return ahead_ps;
}

const struct nvme_media_ops nvme_media_flat = {
    .name = "flat",
    .init = flat_init,
    .release = flat_release,
    .ready = flat_ready,
    .ahead_ps = flat_ahead_ps,
};
