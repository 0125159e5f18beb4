/*
 * The copy engines of gpu.cuda.
 *
 * Models: copies between device memory and bus addresses (memory of the host, registers or memory
 *   of another device), of device memory to itself, between bus addresses through the GPU; in parts
 *   that lie within a page; reads limited by what the function may have in flight, in requests of
 *   at most read_bytes; posted writes limited by credits and Max_Payload_Size; the flush that makes
 *   sure that what was written has arrived: a read from where it went. All bytes are
 *   carried, tags among them or not.
 *   A table of runs of bus addresses stands for the GPU's page tables.
 * Does not model: layouts other than a row of bytes, remapping, compression, misses of the GPU's
 *   own translation, a first copy that is slower.
 * Timing: copy_start from the command to its first request. Then reads in flight x read_bytes per
 *   round trip, or what the link takes of writes, but copy_write_gbyte_s of all engines together at
 *   most; device memory serves memory_gbyte_s, of copies from it and into it.
 * Sources: LAUNCH_DMA in clb0b5.h and clc1b5.h of NVIDIA's open kernel modules; docs/models/gpu.md.
 */
#include "models/gpu/gpu_internal.h"

static void pump(struct gpu_channel *channel);

static bool from_device(const struct gpu_channel *channel)
{
    return (channel->command.launch & GPU_SOURCE_DEVICE) != 0;
}
static bool to_device(const struct gpu_channel *channel)
{
    return (channel->command.launch & GPU_DESTINATION_DEVICE) != 0;
}

/* ---- Addresses outside ----------------------------------------------------------------------- */

/* Of the copy's next byte. Without a table, that of its first byte goes on. */
static uint64_t outside(const struct gpu_channel *channel)
{
    const struct gpu_command *c = &channel->command;
    if ((c->launch & GPU_TABLE) != 0)
        return channel->run.bus + channel->run_bytes;
    return (from_device(channel) ? c->destination : c->source) + channel->issued_bytes;
}

static uint64_t source(const struct gpu_channel *channel)
{
    return from_device(channel) ? channel->command.source + channel->issued_bytes
                                : outside(channel);
}

static uint64_t destination(const struct gpu_channel *channel)
{
    if (to_device(channel) || !from_device(channel)) /* into the GPU, or through it */
        return channel->command.destination + channel->issued_bytes;
    return outside(channel);
}

/* Bytes of the copy before the run ends. */
static uint64_t run_rest(const struct gpu_channel *channel)
{
    return (channel->command.launch & GPU_TABLE) != 0 ? channel->run.bytes - channel->run_bytes
                                                      : UINT64_MAX;
}

/* False: the table makes no sense, or leads to where the GPU does not reach. */
static bool load_run(struct gpu_channel *channel)
{
    struct gpu_device *gpu = channel->gpu;
    if (!gpu_in_memory(gpu, channel->entry, sizeof(channel->run)))
        return false;
    gpu_load(gpu, channel->entry, &channel->run, sizeof(channel->run), false);
    channel->run_bytes = 0;
    return channel->run.bytes != 0 && gpu_reaches(gpu, channel->run.bus, channel->run.bytes);
}

/* The run in which the copy begins. */
static bool find_run(struct gpu_channel *channel)
{
    const struct gpu_command *c = &channel->command;
    uint64_t offset = from_device(channel) ? c->destination : c->source;
    channel->entry = c->table;
    while (load_run(channel)) {
        if (offset < channel->run.bytes) {
            channel->run_bytes = offset;
            return true;
        }
        offset -= channel->run.bytes;
        channel->entry += sizeof(channel->run);
    }
    return false;
}

/* Bytes have been issued. False: as load_run(). */
static bool advance(struct gpu_channel *channel, uint32_t bytes)
{
    channel->issued_bytes += bytes;
    channel->run_bytes += bytes;
    if (run_rest(channel) != 0 || channel->issued_bytes == channel->command.bytes)
        return true;
    channel->entry += sizeof(channel->run);
    return load_run(channel);
}

/* ---- The end --------------------------------------------------------------------------------- */

static void flush_done(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct gpu_channel *channel = SIM_CONTAINER(request, struct gpu_channel, request);
    channel->waiting = false;
    if (status == PCIE_DMA_OK)
        gpu_channel_ended(channel);
    else
        gpu_channel_fail(channel, GPU_CHANNEL_BUS_ERROR);
}

/* A read never passes a write: its answer says that all have arrived. */
static void flush(struct gpu_channel *channel)
{
    uint64_t last = (destination(channel) - 1) & ~UINT64_C(3);
    channel->request = (struct pcie_dma_request){ .iova = { last },
                                                  .bytes = sizeof(channel->flushed),
                                                  .buffer = channel->flushed,
                                                  .done = flush_done };
    channel->waiting = true;
    pcie_dma_read(&channel->gpu->function.dma, &channel->request, gpu_now(channel->gpu));
}

static void chunk_ends(struct gpu_chunk *chunk)
{
    struct gpu_channel *channel = chunk->channel;
    channel->done_bytes += chunk->bytes;
    channel->n_chunks--;
    sim_pool_put(channel->gpu->chunks, chunk);
    if (channel->status != GPU_CHANNEL_ON) {
        if (channel->n_chunks == 0)
            gpu_channel_fail(channel, channel->status);
    } else if (channel->done_bytes < channel->command.bytes) {
        pump(channel);
    } else if ((channel->command.launch & GPU_FLUSH) != 0 && !to_device(channel)) {
        flush(channel);
    } else {
        gpu_channel_ended(channel);
    }
}

/* Nothing more is asked for; the channel stops when all parts have come back. */
static void chunk_fails(struct gpu_chunk *chunk)
{
    if (chunk->channel->status == GPU_CHANNEL_ON)
        chunk->channel->status = GPU_CHANNEL_BUS_ERROR;
    chunk_ends(chunk);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static void chunk_written(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct gpu_chunk *chunk = SIM_CONTAINER(request, struct gpu_chunk, request);
    if (status == PCIE_DMA_OK)
        chunk_ends(chunk);
    else
        chunk_fails(chunk);
}

static void write_chunk(struct gpu_chunk *chunk, sim_time at_ps)
{
    struct gpu_device *gpu = chunk->channel->gpu;
    if (gpu->params.copy_write_gbyte_s > 0) {
        at_ps = SIM_MAX(at_ps, gpu->copy_write_free_ps);
        gpu->copy_write_free_ps = at_ps +
                                  gpu_bytes_ps(chunk->bytes, gpu->params.copy_write_gbyte_s);
    }
    chunk->request = (struct pcie_dma_request){ .iova = { chunk->destination },
                                                .bytes = chunk->bytes,
                                                .buffer = chunk->buffer,
                                                .done = chunk_written };
    pcie_dma_write(&gpu->function.dma, &chunk->request, at_ps);
}

/* Device memory is read and written in turn; returns when these bytes have been. */
static sim_time memory_serves(struct gpu_device *gpu, uint64_t bytes)
{
    const sim_time busy_ps = gpu_bytes_ps(bytes, gpu->params.memory_gbyte_s);
    gpu->memory_free_ps = SIM_MAX(gpu->memory_free_ps, gpu_now(gpu)) + busy_ps;
    gpu->stats.memory.ps += busy_ps;
    return gpu->memory_free_ps;
}

/* Nothing is written once the channel was stopped: after a reset memory may have another user. */
static void chunk_lands(struct sim *sim, struct sim_event *event)
{
    struct gpu_chunk *chunk = SIM_CONTAINER(event, struct gpu_chunk, event);
    struct gpu_channel *channel = chunk->channel;
    (void)sim;
    if (channel->status == GPU_CHANNEL_ON)
        gpu_store(channel->gpu, chunk->destination, chunk->buffer, chunk->bytes, false);
    chunk_ends(chunk);
}

static void chunk_read(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct gpu_chunk *chunk = SIM_CONTAINER(request, struct gpu_chunk, request);
    struct gpu_channel *channel = chunk->channel;
    if (status != PCIE_DMA_OK) {
        chunk_fails(chunk);
    } else if (to_device(channel)) {
        sim_event_init(&chunk->event, chunk_lands);
        sim_schedule(channel->gpu->model->sim, &chunk->event,
                     memory_serves(channel->gpu, chunk->bytes));
    } else {
        write_chunk(chunk, gpu_now(channel->gpu));
    }
}

static void read_chunk(struct gpu_chunk *chunk)
{
    struct gpu_device *gpu = chunk->channel->gpu;
    chunk->request = (struct pcie_dma_request){ .iova = { chunk->source },
                                                .bytes = chunk->bytes,
                                                .buffer = chunk->buffer,
                                                .independent = true,
                                                .done = chunk_read };
    pcie_dma_read(&gpu->function.dma, &chunk->request, gpu_now(gpu));
}

static uint32_t next_bytes(const struct gpu_channel *channel)
{
    const struct gpu_command *c = &channel->command;
    uint64_t bytes = SIM_MIN(c->bytes - channel->issued_bytes, (uint64_t)GPU_CHUNK_BYTES);
    uint64_t from = source(channel), to = destination(channel);
    bytes = SIM_MIN(bytes, run_rest(channel));
    bytes = SIM_MIN(bytes, PAGE_BYTES - (from & (PAGE_BYTES - 1)));
    return (uint32_t)SIM_MIN(bytes, PAGE_BYTES - (to & (PAGE_BYTES - 1)));
}

/* Within the GPU: one event, when its memory has read and written all of it. */
static void copy_within(struct gpu_channel *channel)
{
    struct gpu_device *gpu = channel->gpu;
    const struct gpu_command *c = &channel->command;
    uint8_t buffer[GPU_CHUNK_BYTES];
    for (; channel->issued_bytes < c->bytes; channel->issued_bytes += next_bytes(channel)) {
        uint32_t n = next_bytes(channel);
        gpu_load(gpu, c->source + channel->issued_bytes, buffer, n, false);
        gpu_store(gpu, c->destination + channel->issued_bytes, buffer, n, false);
    }
    channel->done_bytes = c->bytes;
    sim_schedule(gpu->model->sim, &channel->start, memory_serves(gpu, 2 * c->bytes));
}

static void pump(struct gpu_channel *channel)
{
    struct gpu_device *gpu = channel->gpu;
    const struct gpu_command *c = &channel->command;
    /* What a part ends may be the copy, and the channel's next command not begun yet. */
    while (channel->status == GPU_CHANNEL_ON && channel->begun &&
           channel->issued_bytes < c->bytes && channel->n_chunks < GPU_CHUNKS_MAX) {
        struct gpu_chunk *chunk = sim_pool_get(gpu->chunks);
        chunk->channel = channel;
        chunk->source = source(channel);
        chunk->destination = destination(channel);
        chunk->bytes = next_bytes(channel);
        channel->n_chunks++;
        if (!advance(channel, chunk->bytes))
            channel->status = GPU_CHANNEL_BAD_ADDRESS; /* once what is under way has ended */
        if (from_device(channel)) {
            gpu_load(gpu, chunk->source, chunk->buffer, chunk->bytes, false);
            write_chunk(chunk, memory_serves(gpu, chunk->bytes));
        } else {
            read_chunk(chunk);
        }
    }
}

static enum gpu_channel_status check(struct gpu_channel *channel)
{
    const struct gpu_command *c = &channel->command;
    const struct gpu_device *gpu = channel->gpu;
    bool tabled = (c->launch & GPU_TABLE) != 0;
    bool good = channel->idx < gpu->params.copy_engines && c->bytes != 0 &&
                (!from_device(channel) || gpu_in_memory(gpu, c->source, c->bytes)) &&
                (!to_device(channel) || gpu_in_memory(gpu, c->destination, c->bytes)) &&
                (!tabled || from_device(channel) != to_device(channel));
    if (!good)
        return GPU_CHANNEL_BAD_COMMAND;
    if (tabled)
        return find_run(channel) ? GPU_CHANNEL_ON : GPU_CHANNEL_BAD_ADDRESS;
    if ((!from_device(channel) && !gpu_reaches(gpu, c->source, c->bytes)) ||
        (!to_device(channel) && !gpu_reaches(gpu, c->destination, c->bytes)))
        return GPU_CHANNEL_BAD_ADDRESS;
    return GPU_CHANNEL_ON;
}

void gpu_copy_start(struct gpu_channel *channel)
{
    enum gpu_channel_status status = channel->begun ? GPU_CHANNEL_ON : check(channel);
    if (status != GPU_CHANNEL_ON) {
        gpu_channel_fail(channel, status);
    } else if (channel->begun) {
        gpu_channel_ended(channel);
    } else {
        channel->begun = true;
        channel->issued_bytes = channel->done_bytes = 0;
        channel->gpu->stats.copies++;
        channel->gpu->stats.copy_bytes += channel->command.bytes;
        if (from_device(channel) && to_device(channel))
            copy_within(channel);
        else
            pump(channel);
    }
}
