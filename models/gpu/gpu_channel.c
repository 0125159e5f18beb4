/*
 * Channels of gpu.cuda: rings of commands in host memory, read by DMA when a doorbell rings.
 *
 * Models: commands fetched several at once, done in order, one at a time per channel; semaphores
 *   with a time and interrupts at their ends, as posted writes in that order, behind what the
 *   command wrote; failures that stop the channel; switching it off while it is at work.
 * Does not model: push buffers of methods, time slices, priorities, the scheduler of channels on
 *   engines: each engine has one channel.
 * Timing: doorbell, then a round trip for the commands, then the first of them. A command without
 *   copy or kernel takes no time of its own.
 * Sources: docs/models/gpu.md.
 */
#include <string.h>

#include "models/gpu/gpu_internal.h"

static void next_command(struct gpu_channel *channel);

/* Nothing of it is under way any more: off, if it was to be. */
static void settle(struct gpu_channel *channel)
{
    if (channel->status == GPU_CHANNEL_ENDING && !channel->waiting && channel->n_chunks == 0)
        channel->status = GPU_CHANNEL_OFF;
}

void gpu_channel_fail(struct gpu_channel *channel, enum gpu_channel_status status)
{
    channel->running = false;
    channel->begun = false;
    if (channel->status == GPU_CHANNEL_ENDING) {
        settle(channel);
        return;
    }
    channel->status = status;
    channel->gpu->stats.failures++;
    pcie_function_interrupt(&channel->gpu->function, channel->idx);
}

/* ---- Ends of commands ------------------------------------------------------------------------ */

static void release_semaphore(struct gpu_channel *channel)
{
    const struct gpu_command *c = &channel->command;
    struct gpu_semaphore semaphore = { .payload = c->payload,
                                       .time_ns = gpu_timer_ns(channel->gpu) };
    bool whole = (c->launch & GPU_RELEASE_TIME) != 0;
    uint32_t n = whole ? sizeof(semaphore) : sizeof(semaphore.payload);
    channel->gpu->stats.semaphores++;
    gpu_post(channel->gpu, c->semaphore, &semaphore, n, gpu_now(channel->gpu));
}

void gpu_channel_ended(struct gpu_channel *channel)
{
    const struct gpu_command *c = &channel->command;
    if (channel->status != GPU_CHANNEL_ON) {
        gpu_channel_fail(channel, channel->status);
        return;
    }
    if ((c->launch & (GPU_RELEASE | GPU_RELEASE_TIME)) != 0)
        release_semaphore(channel);
    if ((c->launch & GPU_INTERRUPT) != 0)
        pcie_function_interrupt(&channel->gpu->function, channel->idx);
    channel->get++;
    channel->running = false;
    channel->begun = false;
    next_command(channel);
}

/* ---- Beginnings ------------------------------------------------------------------------------ */

static void command_starts(struct sim *sim, struct sim_event *event)
{
    struct gpu_channel *channel = SIM_CONTAINER(event, struct gpu_channel, start);
    const struct gpu_command *c = &channel->command;
    bool releases = (c->launch & (GPU_RELEASE | GPU_RELEASE_TIME)) != 0;
    (void)sim;
    if (releases && !gpu_reaches(channel->gpu, c->semaphore, sizeof(struct gpu_semaphore)))
        gpu_channel_fail(channel, GPU_CHANNEL_BAD_ADDRESS);
    else if ((c->launch & GPU_LAUNCH_KERNEL) != 0)
        gpu_kernel_start(channel);
    else if ((c->launch & GPU_LAUNCH_COPY) != 0)
        gpu_copy_start(channel);
    else
        gpu_channel_ended(channel);
}

static void fetched(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct gpu_channel *channel = SIM_CONTAINER(request, struct gpu_channel, request);
    channel->waiting = false;
    if (status != PCIE_DMA_OK || channel->status != GPU_CHANNEL_ON) {
        gpu_channel_fail(channel, GPU_CHANNEL_BUS_ERROR);
        return;
    }
    channel->n_ahead = (uint32_t)(request->bytes / sizeof(struct gpu_command));
    channel->next_ahead = 0;
    channel->fetched += channel->n_ahead;
    next_command(channel);
}

static void fetch(struct gpu_channel *channel)
{
    uint32_t slot = channel->fetched & (channel->size - 1);
    uint32_t n = SIM_MIN(channel->put - channel->fetched, channel->size - slot);
    n = SIM_MIN(n, GPU_FETCH_MAX);
    channel->request =
        (struct pcie_dma_request){ .iova = { channel->ring + slot * sizeof(struct gpu_command) },
                                   .bytes = n * sizeof(struct gpu_command),
                                   .buffer = (uint8_t *)channel->ahead,
                                   .independent = true,
                                   .done = fetched };
    channel->waiting = true;
    pcie_dma_read(&channel->gpu->function.dma, &channel->request, gpu_now(channel->gpu));
}

static void next_command(struct gpu_channel *channel)
{
    struct gpu_device *gpu = channel->gpu;
    if (channel->status != GPU_CHANNEL_ON || channel->running || channel->waiting)
        return;
    if (channel->next_ahead < channel->n_ahead) {
        channel->command = channel->ahead[channel->next_ahead++];
        channel->running = true;
        bool copies = (channel->command.launch & GPU_LAUNCH_COPY) != 0;
        sim_schedule_in(gpu->model->sim, &channel->start, copies ? gpu->params.copy_start_ps : 0);
    } else if (channel->put != channel->fetched) {
        fetch(channel);
    }
}

/* ---- Registers ------------------------------------------------------------------------------- */

void gpu_channel_doorbell(struct gpu_channel *channel, uint32_t put)
{
    uint32_t ahead = put - channel->get; /* it never goes back, nor beyond the ring */
    if (channel->status != GPU_CHANNEL_ON || ahead > channel->size ||
        ahead < channel->put - channel->get) {
        channel->gpu->stats.bad_doorbells++;
        return;
    }
    channel->put = put;
    next_command(channel);
}

static void switch_on(struct gpu_channel *channel)
{
    uint64_t ring = (uint64_t)channel->high << 32 | channel->low;
    uint32_t size = UINT32_C(1) << SIM_MIN(channel->log, GPU_RING_LOG_MAX);
    if (channel->status != GPU_CHANNEL_OFF)
        return;
    channel->ring = ring;
    channel->size = size;
    channel->put = channel->get = channel->fetched = 0;
    channel->n_ahead = channel->next_ahead = 0;
    channel->status = gpu_reaches(channel->gpu, ring, size * sizeof(struct gpu_command))
                          ? GPU_CHANNEL_ON
                          : GPU_CHANNEL_BAD_ADDRESS;
}

void gpu_channel_control(struct gpu_channel *channel, uint32_t value)
{
    if (value != 0) {
        switch_on(channel);
        return;
    }
    sim_cancel(channel->gpu->model->sim, &channel->start);
    gpu_kernel_stop(channel);
    channel->running = channel->begun = false;
    channel->status = GPU_CHANNEL_ENDING;
    settle(channel);
}

void gpu_channel_init(struct gpu_device *gpu, uint32_t idx)
{
    struct gpu_channel *channel = &gpu->channel[idx];
    channel->gpu = gpu;
    channel->idx = idx;
    sim_event_init(&channel->start, command_starts);
    gpu_kernel_init(channel);
}
