/*
 * What it does: channels of the GPU: rings of commands, and events. An event is a slot in a page of
 *   semaphores and a number of its own; the device writes number and time there. Slots are used in
 *   turn. A channel executes its commands in order, so finished events tell how much room its ring
 *   has.
 * Costs: SUBMIT_CYCLES per group of commands, one doorbell; SPIN_CYCLES per look at a semaphore.
 */
#include <errno.h>

#include "logic/gpu/gpu_internal.h"

#define STOP_POLL_PS (5 * K_US)
#define STOP_POLLS   20000u /* a read may take its completion time-out, 50 ms */
/* cudaMemcpyAsync() until the doorbell: 5 to 7 us at some GHz, all commands of one together. */
#define SUBMIT_CYCLES 12000u
#define SPIN_CYCLES   200u /* a turn of the loop that polls a semaphore */

static uint64_t channel_register(unsigned idx, uint64_t offset)
{
    return GPU_CHANNEL(idx) + offset;
}

/* ---- On and off ------------------------------------------------------------------------------ */

static void interrupted(void *arg)
{
    struct gpu_ring *ring = arg;
    ring->interrupts++;
    k_wake(ring->gpu->kernel, &ring->waiters);
}

int gpu_drv_ring_on(struct gpu_drv *gpu, unsigned idx)
{
    struct gpu_ring *ring = &gpu->ring[idx];
    struct k_pci_dev *pci = gpu->pci;
    *ring = (struct gpu_ring){ .gpu = gpu, .idx = idx };
    int error = gpu_drv_memory_new(gpu, GPU_RING * sizeof(struct gpu_command), &ring->memory);
    if (error == 0)
        error = k_irq_request(pci, idx, k_cpu(gpu->kernel), interrupted, ring, &ring->irq);
    if (error != 0)
        return error;
    k_writel(pci, 0, channel_register(idx, GPU_CHANNEL_RING_LOW), (uint32_t)ring->memory.dma);
    k_writel(pci, 0, channel_register(idx, GPU_CHANNEL_RING_HIGH),
             (uint32_t)(ring->memory.dma >> 32));
    k_writel(pci, 0, channel_register(idx, GPU_CHANNEL_LOG), GPU_RING_LOG);
    k_writel(pci, 0, channel_register(idx, GPU_CHANNEL_CONTROL), 1);
    ring->on = true;
    return gpu_channel_state(gpu, idx) == GPU_CHANNEL_ON ? 0 : -EIO;
}

void gpu_drv_ring_off(struct gpu_ring *ring)
{
    struct gpu_drv *gpu = ring->gpu;
    bool was_on = ring->on;
    ring->on = false;
    if (was_on && !gpu->gone) {
        unsigned polls = 0;
        k_writel(gpu->pci, 0, channel_register(ring->idx, GPU_CHANNEL_CONTROL), 0);
        while (gpu_channel_state(gpu, ring->idx) != GPU_CHANNEL_OFF && !gpu->gone &&
               polls++ < STOP_POLLS)
            k_sleep(gpu->kernel, STOP_POLL_PS);
    }
    if (ring->irq != NULL)
        k_irq_free(ring->irq);
    ring->irq = NULL;
    k_wake(gpu->kernel, &ring->waiters);
}

enum gpu_channel_status gpu_channel_state(struct gpu_drv *gpu, unsigned channel)
{
    if (gpu->removed)
        return GPU_CHANNEL_OFF;
    uint32_t status = k_readl(gpu->pci, 0, channel_register(channel, GPU_CHANNEL_STATUS));
    if (status == UINT32_MAX)
        gpu->gone = true;
    return status == UINT32_MAX ? GPU_CHANNEL_OFF : (enum gpu_channel_status)status;
}

/* ---- Commands -------------------------------------------------------------------------------- */

/* Whether one more can be put; charges nothing, so that this still holds for what follows. */
static int ring_room(const struct gpu_ring *ring)
{
    if (ring->gpu->gone || !ring->on)
        return -ENODEV;
    if (ring->failed)
        return -EIO;
    return ring->put - ring->done == GPU_RING ? -EAGAIN : 0;
}

static int ring_put(struct gpu_ring *ring, const struct gpu_command *command)
{
    struct gpu_drv *gpu = ring->gpu;
    int error = ring_room(ring);
    if (error != 0)
        return error;
    uint64_t slot = ring->put++ % GPU_RING;
    gpu->users++;
    k_store(gpu->kernel, kaddr_add(ring->memory.at, slot * sizeof(*command)), command,
            sizeof(*command));
    gpu->users--;
    return 0;
}

/* What a command says of the place: an address, or a place in a table. */
static uint64_t address_of(struct gpu_place place)
{
    if (place.mapping == NULL || place.mapping->tabled)
        return place.offset;
    return place.mapping->run[0].bus + place.offset;
}

static bool within(struct gpu_place place, uint64_t bytes)
{
    return place.mapping == NULL ||
           (bytes <= place.mapping->bytes && place.offset <= place.mapping->bytes - bytes);
}

int gpu_copy(struct gpu_drv *gpu, unsigned channel, struct gpu_place to, struct gpu_place from,
             uint64_t bytes)
{
    const struct gpu_mapping *a = from.mapping, *b = to.mapping;
    struct gpu_command command = { .launch = GPU_LAUNCH_COPY,
                                   .bytes = bytes,
                                   .source = address_of(from),
                                   .destination = address_of(to) };
    bool tabled = (a != NULL && a->tabled) || (b != NULL && b->tabled);
    command.launch |= a == NULL ? GPU_SOURCE_DEVICE : 0;
    command.launch |= b == NULL ? GPU_DESTINATION_DEVICE : GPU_FLUSH;
    if (channel >= gpu->n_engines || bytes == 0 || !within(to, bytes) || !within(from, bytes) ||
        (tabled && a != NULL && b != NULL))
        return -EINVAL;
    if (tabled) {
        command.launch |= GPU_TABLE;
        command.table = a != NULL ? a->table : b->table;
    }
    return ring_put(&gpu->ring[channel], &command);
}

int gpu_launch(struct gpu_drv *gpu, const struct gpu_launch *launch)
{
    struct gpu_command command = { .launch = GPU_LAUNCH_KERNEL,
                                   .kernel = launch->kernel,
                                   .bytes = launch->iterations,
                                   .source = launch->local,
                                   .destination =
                                       launch->remote != NULL ? launch->remote->run[0].bus : 0,
                                   .times = launch->times };
    return ring_put(&gpu->ring[gpu->n_engines], &command);
}

int gpu_submit(struct gpu_drv *gpu, unsigned channel)
{
    struct gpu_ring *ring = &gpu->ring[channel];
    if (gpu->gone || !ring->on)
        return -ENODEV;
    if (ring->failed)
        return -EIO;
    gpu->users++;
    k_compute(gpu->kernel, SUBMIT_CYCLES);
    k_writel(gpu->pci, 0, channel_register(channel, GPU_CHANNEL_PUT), ring->put);
    gpu->users--;
    return 0;
}

/* ---- Events ---------------------------------------------------------------------------------- */

static uint64_t slot_offset(unsigned slot)
{
    return slot * sizeof(struct gpu_semaphore);
}

int gpu_event_record(struct gpu_drv *gpu, unsigned channel, bool blocking, struct gpu_event *event)
{
    struct gpu_ring *ring = &gpu->ring[channel];
    int error = ring_room(ring);
    if (error != 0)
        return error;
    /* Its number is taken before the command takes time: other threads record on other channels. */
    unsigned slot = gpu->next_event++ % GPU_EVENTS;
    struct gpu_command command = { .launch = GPU_RELEASE_TIME | (blocking ? GPU_INTERRUPT : 0),
                                   .semaphore = gpu->semaphores.dma + slot_offset(slot),
                                   .payload = gpu->next_event };
    *event = (struct gpu_event){ .channel = channel,
                                 .slot = slot,
                                 .payload = command.payload,
                                 .put = ring->put + 1,
                                 .blocking = blocking };
    return ring_put(ring, &command);
}

/* Looks at the slot; what was put into the channel before has ended with the event. */
static bool has_come(struct gpu_drv *gpu, const struct gpu_event *event)
{
    struct gpu_ring *ring = &gpu->ring[event->channel];
    uint32_t payload;
    k_load(gpu->kernel, kaddr_add(gpu->semaphores.at, slot_offset(event->slot)), &payload,
           sizeof(payload));
    if (payload != event->payload)
        return false;
    if ((int32_t)(event->put - ring->done) > 0)
        ring->done = event->put;
    if (event->put == ring->put) /* nothing behind it that can have failed */
        ring->looked = ring->interrupts;
    return true;
}

static bool came_meanwhile(struct gpu_drv *gpu, const struct gpu_event *event)
{
    uint32_t payload;
    k_peek(gpu->kernel, kaddr_add(gpu->semaphores.at, slot_offset(event->slot)), &payload,
           sizeof(payload));
    return payload == event->payload;
}

/* Until an interrupt; or, if the event has none, for a turn of a loop, whose next one looks at it.
 * False: until_ps has come. */
static bool pause_for(struct gpu_drv *gpu, const struct gpu_event *event, uint64_t until_ps)
{
    if (event->blocking)
        return k_wait(gpu->kernel, &gpu->ring[event->channel].waiters, until_ps);
    k_compute(gpu->kernel, SPIN_CYCLES);
    return k_now_ps(gpu->kernel) < until_ps;
}

static int wait_for(struct gpu_drv *gpu, const struct gpu_event *event, uint64_t until_ps)
{
    struct gpu_ring *ring = &gpu->ring[event->channel];
    if (gpu->removed)
        return -ENODEV;
    while (!has_come(gpu, event)) {
        if (gpu->gone || !ring->on)
            return -ENODEV;
        if (gpu->next_event - event->payload >= GPU_EVENTS) /* its slot is another's */
            return -EINVAL;
        if (ring->failed)
            return -EIO;
        if (came_meanwhile(gpu, event))
            continue;
        /* One that came before us may have told of a failure. */
        bool in_time = ring->looked != ring->interrupts || pause_for(gpu, event, until_ps);
        if (came_meanwhile(gpu, event))
            continue;
        if (in_time && !event->blocking && ring->interrupts == ring->looked)
            continue;
        ring->looked = ring->interrupts;
        /* An interrupt for another event, or for a failure. */
        enum gpu_channel_status status = gpu_channel_state(gpu, event->channel);
        ring->failed = !gpu->gone && status != GPU_CHANNEL_ON;
        if (!in_time && !ring->failed && !gpu->gone)
            return -ETIMEDOUT;
    }
    return 0;
}

int gpu_event_wait(struct gpu_drv *gpu, const struct gpu_event *event, uint64_t until_ps)
{
    gpu->users++;
    int error = wait_for(gpu, event, until_ps);
    gpu->users--;
    return error;
}

uint64_t gpu_event_ns(struct gpu_drv *gpu, const struct gpu_event *event)
{
    struct gpu_semaphore semaphore;
    k_load(gpu->kernel, kaddr_add(gpu->semaphores.at, slot_offset(event->slot)), &semaphore,
           sizeof(semaphore));
    return semaphore.time_ns;
}
