/* Kinds of media of nvme.controller: how long accesses take, and what is counted of them. */
#ifndef MODELS_NVME_NVME_MEDIA_H
#define MODELS_NVME_NVME_MEDIA_H

#include "models/nvme/nvme_internal.h"

/* Within a page of NVME_PAGE_BYTES. */
struct nvme_media_access {
    uint64_t offset; /* in the media: those of namespace 1, then those of 2, ... */
    uint32_t bytes;
    bool write;
    sim_time from_ps; /* a read: the command is known; a write: the data are here, which is now */
};

struct nvme_media_ops {
    const char *name;
    /* Allocates sub->media_state; the parameters have been checked. */
    void (*init)(struct nvme_subsystem *sub);
    void (*release)(struct nvme_subsystem *sub);
    /* When what is read can be sent, or what is written is safe from a loss of power. Reserves what
     * that takes. Allocates from pools at most. */
    sim_time (*ready)(struct nvme_subsystem *sub, const struct nvme_media_access *access);
    /* Whole pages hold nothing any more. NULL: the media do not care. */
    void (*deallocate)(struct nvme_subsystem *sub, uint64_t offset, uint64_t bytes);
    /* Whole pages hold something, from before the run: no time passes. NULL: the media do not
     * care. */
    void (*hold)(struct nvme_subsystem *sub, uint64_t offset, uint64_t bytes);
    /* Time of channels that is reserved after now, of all of them. */
    uint64_t (*ahead_ps)(const struct nvme_subsystem *sub, sim_time now_ps);
    /* The share of the media's life that is used. NULL: they do not wear. */
    double (*wear)(const struct nvme_subsystem *sub);
};

extern const struct nvme_media_ops nvme_media_flat;
extern const struct nvme_media_ops nvme_media_xpoint;
extern const struct nvme_media_ops nvme_media_dram;
extern const struct nvme_media_ops nvme_media_nand;

/* False: so much, or so little, cannot be managed. */
bool nvme_media_nand_fits(const struct nvme_params *params);

/* A time at which nothing is being refreshed, ready_ps or the next. Part `part` of n has its turn
 * of refresh_ps in each refresh_interval_ps at another time than the others. An access that has
 * begun is not disturbed: what falls due meanwhile is done in the part's next idle time. */
static inline sim_time nvme_media_refreshed(const struct nvme_media_params *params, uint32_t part,
                                            uint32_t n, sim_time ready_ps)
{
    const sim_time interval_ps = params->refresh_interval_ps;
    if (params->refresh_ps == 0 || interval_ps == 0)
        return ready_ps;
    const sim_time into_ps = (ready_ps + interval_ps / n * part) % interval_ps;
    return into_ps < params->refresh_ps ? ready_ps + params->refresh_ps - into_ps : ready_ps;
}

/* What a read takes longer because its data have to be read again. */
static inline sim_time nvme_media_retry(struct nvme_subsystem *sub)
{
    const struct nvme_media_params *params = &sub->params.media;
    if (params->retry_ratio == 0 || sim_random_unit(&sub->model->random) >= params->retry_ratio)
        return 0;
    sub->stats.media_retries++;
    return params->retry_ps;
}

/* On a channel. */
static inline sim_time nvme_media_wire_ps(const struct nvme_media_params *params, uint32_t bytes)
{
    return (sim_time)(bytes * (1 + params->ecc_ratio) * 1e3 / params->channel_gbyte_s + 0.5);
}

#endif
