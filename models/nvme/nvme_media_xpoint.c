/*
 * media = "xpoint": memory that is written in place, on dies behind channels, as 3D XPoint.
 *
 * Models: a page cut into codewords of codeword_bytes that lie on dies of all channels in turn;
 *   dies that do one thing at a time, reads before writes that wait; channels; what the drive does
 *   to its dies by itself (rewriting against drift and wear, refresh_ns every refresh_interval);
 *   reads with another reference voltage (retry_ratio). A write is safe when its dies have taken it
 *   into their registers: a capacitor's charge lasts for the rest.
 * Does not model: the table of wear levelling, which would move codewords between dies that are all
 *   alike; wear.
 * Timing: of each codeword, with wire = codeword_bytes (1 + ecc_ratio) / channel_gbyte_s,
 *     read   from = begin + read_latency
 *            sent = max(max(from; die free; not refreshed) + die_read, channel free) + wire
 *            die free = channel free = sent
 *     write  sent = max(data here + write_latency; channel free) + wire; channel free = sent
 *            taken = max(sent; die has done what it was given before); die free = taken + die_write
 *   and of a page the latest of them. Idle, 4 KiB with n codewords on the channel with the most:
 *     read   read_latency + die_read + n wire    write   write_latency + n wire
 * Sources: docs/sources.md#c4.
 */
#include <stdlib.h>

#include "models/nvme/nvme_media.h"

struct xpoint_die {
    sim_time free_ps;  /* of what it does or has done last */
    uint32_t n_writes; /* wait behind that */
};

struct xpoint {
    sim_time wire_ps;
    sim_time *channel_free_ps;
    struct xpoint_die *die; /* of the first channel, of the second, ... */
};

static void xpoint_init(struct nvme_subsystem *sub)
{
    const struct nvme_params *params = &sub->params;
    struct xpoint *xpoint = sim_zalloc(1, sizeof(*xpoint));
    xpoint->wire_ps = nvme_media_wire_ps(&params->media, params->media.codeword_bytes);
    xpoint->channel_free_ps = sim_zalloc(params->n_channels, sizeof(*xpoint->channel_free_ps));
    xpoint->die = sim_zalloc((size_t)params->n_channels * params->media.n_dies,
                             sizeof(*xpoint->die));
    sub->media_state = xpoint;
}

static void xpoint_release(struct nvme_subsystem *sub)
{
    struct xpoint *xpoint = sub->media_state;
    free(xpoint->channel_free_ps);
    free(xpoint->die);
    free(xpoint);
}

/* The writes that it can have begun by then. */
static void die_advance(struct xpoint_die *die, sim_time write_ps, sim_time to_ps)
{
    for (; die->n_writes != 0 && die->free_ps <= to_ps; die->n_writes--)
        die->free_ps += write_ps;
}

static sim_time codeword_read(struct nvme_subsystem *sub, uint32_t c, uint32_t d, sim_time from_ps)
{
    const struct nvme_media_params *params = &sub->params.media;
    struct xpoint *xpoint = sub->media_state;
    struct xpoint_die *die = &xpoint->die[d];
    sim_time *channel_free_ps = &xpoint->channel_free_ps[c], sent_ps;
    die_advance(die, params->die_write_ps, from_ps);
    sent_ps = nvme_media_refreshed(params, d, sub->params.n_channels * params->n_dies,
                                   SIM_MAX(from_ps, die->free_ps)) +
              params->die_read_ps;
    sent_ps = SIM_MAX(sent_ps, *channel_free_ps) + xpoint->wire_ps;
    die->free_ps = *channel_free_ps = sent_ps;
    return sent_ps;
}

static sim_time codeword_write(struct nvme_subsystem *sub, uint32_t c, uint32_t d, sim_time from_ps)
{
    const struct nvme_media_params *params = &sub->params.media;
    struct xpoint *xpoint = sub->media_state;
    struct xpoint_die *die = &xpoint->die[d];
    sim_time *channel_free_ps = &xpoint->channel_free_ps[c];
    const sim_time sent_ps = SIM_MAX(from_ps, *channel_free_ps) + xpoint->wire_ps;
    *channel_free_ps = sent_ps;
    die_advance(die, params->die_write_ps, sent_ps);
    if (die->n_writes == 0)
        die->free_ps = nvme_media_refreshed(params, d, sub->params.n_channels * params->n_dies,
                                            SIM_MAX(die->free_ps, sent_ps));
    return die->free_ps + die->n_writes++ * params->die_write_ps;
}

static sim_time xpoint_ready(struct nvme_subsystem *sub, const struct nvme_media_access *access)
{
    const struct nvme_params *params = &sub->params;
    const struct xpoint *xpoint = sub->media_state;
    const uint32_t codeword_bytes = params->media.codeword_bytes;
    const uint64_t first = access->offset / codeword_bytes;
    const uint64_t last = (access->offset + access->bytes - 1) / codeword_bytes;
    const sim_time from_ps = access->from_ps + (access->write ? params->write_ps : params->read_ps);
    sim_time ready_ps = 0, codeword_ps;
    for (uint64_t i = first; i <= last; i++) {
        const uint32_t c = (uint32_t)(i % params->n_channels);
        const uint32_t d = (uint32_t)(i / params->n_channels % params->media.n_dies);
        codeword_ps = (access->write ? codeword_write : codeword_read)(
            sub, c, c * params->media.n_dies + d, from_ps);
        ready_ps = SIM_MAX(ready_ps, codeword_ps);
    }
    sub->stats.media.ps += (last - first + 1) * xpoint->wire_ps;
    return access->write ? ready_ps : ready_ps + nvme_media_retry(sub);
}

static uint64_t xpoint_ahead_ps(const struct nvme_subsystem *sub, sim_time now_ps)
{
    const struct xpoint *xpoint = sub->media_state;
    uint64_t ahead_ps = 0;
    for (uint32_t i = 0; i < sub->params.n_channels; i++)
        ahead_ps += SIM_MAX(xpoint->channel_free_ps[i], now_ps) - now_ps;
    return ahead_ps;
}

const struct nvme_media_ops nvme_media_xpoint = {
    .name = "xpoint",
    .init = xpoint_init,
    .release = xpoint_release,
    .ready = xpoint_ready,
    .ahead_ps = xpoint_ahead_ps,
};
