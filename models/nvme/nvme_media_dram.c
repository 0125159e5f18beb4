/*
 * media = "dram": DRAM behind a controller with firmware, as a drive of NVRAM.
 *
 * Models: channels of banks; pages of 4 KiB that lie in one bank each; refresh, which stops a
 *   channel's banks for refresh_ns every refresh_interval.
 * Does not model: rows that stay open (4 KiB are half of one and more), turnarounds between reads
 *   and writes, saving to flash when power goes.
 * Timing: of a part of a page, with n bytes,
 *     from = begin of the command + read_latency, or data here + write_latency: the firmware
 *     open = max(from; bank free; not refreshed) + die_read
 *     ready = max(open; channel free) + n (1 + ecc_ratio) / channel_gbyte_s; channel free = ready
 *     bank free = ready + die_write (the row is closed)
 * Sources: docs/sources.md#c4.
 */
#include <stdlib.h>

#include "models/nvme/nvme_media.h"

struct dram {
    sim_time *channel_free_ps;
    sim_time *bank_free_ps; /* of the first channel, of the second, ... */
};

static void dram_init(struct nvme_subsystem *sub)
{
    const struct nvme_params *params = &sub->params;
    const size_t n_banks = (size_t)params->n_channels * params->media.n_dies;
    struct dram *dram = sim_zalloc(1, sizeof(*dram));
    dram->channel_free_ps = sim_zalloc(params->n_channels, sizeof(*dram->channel_free_ps));
    dram->bank_free_ps = sim_zalloc(n_banks, sizeof(*dram->bank_free_ps));
    sub->media_state = dram;
}

static void dram_release(struct nvme_subsystem *sub)
{
    struct dram *dram = sub->media_state;
    free(dram->channel_free_ps);
    free(dram->bank_free_ps);
    free(dram);
}

static sim_time dram_ready(struct nvme_subsystem *sub, const struct nvme_media_access *access)
{
    const struct nvme_params *params = &sub->params;
    struct dram *dram = sub->media_state;
    const uint64_t page = access->offset / NVME_PAGE_BYTES;
    const uint32_t c = (uint32_t)(page % params->n_channels);
    const uint32_t b = (uint32_t)(page / params->n_channels % params->media.n_dies);
    sim_time *channel_ps = &dram->channel_free_ps[c];
    sim_time *bank_ps = &dram->bank_free_ps[c * params->media.n_dies + b];
    const sim_time wire_ps = nvme_media_wire_ps(&params->media, access->bytes);
    sim_time at_ps = access->from_ps + (access->write ? params->write_ps : params->read_ps);
    at_ps = nvme_media_refreshed(&params->media, c, params->n_channels, SIM_MAX(at_ps, *bank_ps));
    at_ps = SIM_MAX(at_ps + params->media.die_read_ps, *channel_ps) + wire_ps;
    *channel_ps = at_ps;
    *bank_ps = at_ps + params->media.die_write_ps;
    sub->stats.media.ps += wire_ps;
    return at_ps;
}

static uint64_t dram_ahead_ps(const struct nvme_subsystem *sub, sim_time now_ps)
{
    const struct dram *dram = sub->media_state;
    uint64_t ahead_ps = 0;
    for (uint32_t i = 0; i < sub->params.n_channels; i++)
        ahead_ps += SIM_MAX(dram->channel_free_ps[i], now_ps) - now_ps;
    return ahead_ps;
}

const struct nvme_media_ops nvme_media_dram = {
    .name = "dram",
    .init = dram_init,
    .release = dram_release,
    .ready = dram_ready,
    .ahead_ps = dram_ahead_ps,
};
