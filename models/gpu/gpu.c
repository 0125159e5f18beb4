/*
 * gpu.cuda: a GPU as PCIe sees it.
 *
 * Models: a function with registers (BAR 0), an aperture onto device memory (BAR 1: gpu_memory.c),
 *   MSI-X, a DMA front end; channels with rings of commands (gpu_channel.c) that drive copy engines
 *   (gpu_copy.c) and run the kernels ping and pong (gpu_kernel.c); addresses that it cannot form;
 *   function-level reset.
 * Does not model: graphics, other kernels, the GPU's own page tables, training the link down to
 *   save power, the one MSI vector with a status register that the real ones have.
 * Timing: a read of a register is answered after register_latency; a doorbell acts when it arrives.
 *   The rest: the files above.
 * Sources: docs/models/gpu.md, docs/sources.md#c3.
 */
#include "models/gpu/gpu.h"

#include <stdlib.h>
#include <string.h>

#include "models/gpu/gpu_internal.h"

#define STAMP_EVERY   17u
#define CHANNEL_BYTES (GPU_CHANNEL(1u) - GPU_CHANNEL(0u))
#define SOURCE        "docs/sources.md#c3"

static const struct param_desc gpu_params_table[] = {
    PCIE_FUNCTION_PARAMS(struct gpu_device, params.pcie, SOURCE, /* lanes */ 16, /* payload */ 256,
                         PROV_ESTIMATE, /* extended tags */ 1, PROV_ESTIMATE, /* queue */ 4,
                         /* credits */ 64, 512, 32, /* register */ 300, /* reads */ 64),
    PARAM("device_id", PARAM_U32, struct gpu_device, params.device_id, GPU_DEVICE_ID_P4000, 1,
          65535, PROV_DATASHEET, SOURCE, "PCI device ID"),
    PARAM("memory_bytes", PARAM_BYTES, struct gpu_device, params.memory_bytes, 8589934592, 1048576,
          1e12, PROV_DATASHEET, SOURCE, "device memory"),
    PARAM("memory_gbyte_s", PARAM_RATE, struct gpu_device, params.memory_gbyte_s, 243, 1, 10000,
          PROV_DATASHEET, SOURCE, "its bandwidth, as copies see it"),
    PARAM("copy_write_gbyte_s", PARAM_RATE, struct gpu_device, params.copy_write_gbyte_s, 0, 0,
          10000, PROV_ESTIMATE, SOURCE,
          "what its copy engines write to the link at most, an input; 0: what the link takes"),
    PARAM("bar1_bytes", PARAM_BYTES, struct gpu_device, params.aperture_bytes, 268435456, 1048576,
          1e12, PROV_DATASHEET, SOURCE, "BAR 1: a power of two; what others see of the memory"),
    PARAM("address_bits", PARAM_U32, struct gpu_device, params.address_bits, 47, 32, 64,
          PROV_PUBLISHED, SOURCE, "of bus addresses that it can form"),
    PARAM("copy_engines", PARAM_U32, struct gpu_device, params.copy_engines, 2, 1,
          GPU_CHANNELS_MAX - 1, PROV_DATASHEET, SOURCE, "copies at a time"),
    PARAM("copy_start_us", PARAM_TIME, struct gpu_device, params.copy_start_ps, 1.5, 0, 100,
          PROV_ESTIMATE, SOURCE, "copy command decoded to its first request"),
    PARAM("read_bytes", PARAM_BYTES, struct gpu_device, params.pcie.dma.read_bytes_max, 256, 64,
          4096, PROV_PUBLISHED, SOURCE, "of a read request at most, below Max_Read_Request_Size"),
    PARAM("launch_us", PARAM_TIME, struct gpu_device, params.launch_ps, 5, 0, 1000, PROV_ESTIMATE,
          SOURCE, "launch command to a kernel's first instruction"),
    PARAM("store_latency_ns", PARAM_TIME, struct gpu_device, params.store_ps, 400, 0, 10000,
          PROV_ESTIMATE, SOURCE, "a kernel's store to the link"),
    PARAM("clock_call_ns", PARAM_TIME, struct gpu_device, params.clock_ps, 32, 0, 1000,
          PROV_PUBLISHED, SOURCE, "a call of clock64()"),
    PARAM("poll_ns", PARAM_TIME, struct gpu_device, params.poll_ps, 15, 1, 10000, PROV_PUBLISHED,
          SOURCE, "reading a word of own memory in a loop"),
    PARAM("nvme_submit_ns", PARAM_TIME, struct gpu_device, params.nvme_submit_ps, 300, 0, 10000,
          PROV_ESTIMATE, SOURCE, "a thread builds an NVMe command"),
    PARAM("nvme_complete_ns", PARAM_TIME, struct gpu_device, params.nvme_complete_ps, 150, 0, 10000,
          PROV_ESTIMATE, SOURCE, "a thread is done with an NVMe completion that it has seen"),
    PARAM("fence_ns", PARAM_TIME, struct gpu_device, params.fence_ps, 500, 0, 10000, PROV_ESTIMATE,
          SOURCE, "a store to own memory until others see it (__threadfence_system())"),
    PARAM("clock_mhz", PARAM_RATE, struct gpu_device, params.clock_mhz, 1480, 100, 10000,
          PROV_DATASHEET, SOURCE, "what clock64() counts"),
    PARAM("timer_ns", PARAM_TIME, struct gpu_device, params.timer_ps, 32, 1, 10000, PROV_ESTIMATE,
          SOURCE, "resolution of the time in semaphores"),
    PARAM("inbound_write_latency_ns", PARAM_TIME, struct gpu_device, params.inbound_write_ps, 200,
          0, 10000, PROV_ESTIMATE, SOURCE, "a write of another's to where a kernel sees it"),
    PARAM("inbound_write_gbyte_s", PARAM_RATE, struct gpu_device, params.inbound_write_gbyte_s, 16,
          0.01, 1000, PROV_ESTIMATE, SOURCE, "others' writes into its memory, an input"),
    PARAM("inbound_read_latency_ns", PARAM_TIME, struct gpu_device, params.inbound_read_ps, 450, 0,
          10000, PROV_ESTIMATE, SOURCE, "another's read of its memory to the answer"),
    PARAM("inbound_read_gbyte_s", PARAM_RATE, struct gpu_device, params.inbound_read_gbyte_s, 5,
          0.01, 1000, PROV_ESTIMATE, SOURCE, "others' reads of its memory, an input"),
    { .type = PARAM_END },
};

#define GPU_STAT(NAME, FIELD, UNIT, HELP) \
    STAT(NAME, STAT_COUNTER, struct gpu_device, stats.FIELD, UNIT, 0, HELP)
#define GPU_BUSY(NAME, FIELD, HELP) \
    STAT_BOUND_ONLY(NAME, struct gpu_device, stats.FIELD.ps, "ps", HELP, stats.one)
static const struct stat_desc gpu_stats_table[] = {
    PCIE_DMA_STATS(struct gpu_device, function.dma),
    GPU_STAT("copies", copies, "1", "copies begun"),
    GPU_STAT("copy_bytes", copy_bytes, "bytes", "of these"),
    GPU_STAT("kernel_launches", launches, "1", "kernels begun"),
    GPU_STAT("semaphores", semaphores, "1", "semaphores released"),
    STAT("interrupts", STAT_COUNTER, struct gpu_device, function.stats.interrupts, "1", 0,
         "MSI-X messages sent"),
    GPU_STAT("bar1_read_bytes", aperture_read_bytes, "bytes", "read by others"),
    GPU_STAT("bar1_write_bytes", aperture_write_bytes, "bytes", "written by others"),
    GPU_BUSY("memory_busy_ps", memory, "time that its memory served copies"),
    GPU_BUSY("bar1_read_busy_ps", aperture_read, "time that it served reads of others"),
    GPU_BUSY("bar1_write_busy_ps", aperture_write, "time that it took writes of others"),
    GPU_STAT("failures", failures, "1", "channels that stopped because of a command"),
    GPU_STAT("bad_doorbells", bad_doorbells, "1", "doorbells that make no sense; ignored"),
    STAT("unsupported", STAT_COUNTER, struct gpu_device, function.stats.unsupported, "1", 0,
         "requests to it that it does not support"),
    { .kind = STAT_END },
};

/* ---- Posted writes --------------------------------------------------------------------------- */

static void post_done(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct gpu_post *post = SIM_CONTAINER(request, struct gpu_post, request);
    (void)status;
    sim_pool_put(post->gpu->posts, post);
}

void gpu_post(struct gpu_device *gpu, uint64_t address, const void *bytes, uint32_t n,
              sim_time at_ps)
{
    struct gpu_post *post = sim_pool_get(gpu->posts);
    post->gpu = gpu;
    memcpy(post->bytes, bytes, n);
    post->request = (struct pcie_dma_request){
        .iova = { address }, .bytes = n, .buffer = post->bytes, .done = post_done
    };
    pcie_dma_write(&gpu->function.dma, &post->request, at_ps);
}

/* ---- Registers ------------------------------------------------------------------------------- */

uint64_t gpu_timer_ns(const struct gpu_device *gpu)
{
    sim_time now_ps = gpu_now(gpu);
    return (now_ps - now_ps % gpu->params.timer_ps) / SIM_PS_PER_NS;
}

static uint32_t channel_register(const struct gpu_channel *channel, uint64_t offset)
{
    switch (offset) {
    case GPU_CHANNEL_RING_LOW: return channel->low;
    case GPU_CHANNEL_RING_HIGH: return channel->high;
    case GPU_CHANNEL_LOG: return channel->log;
    case GPU_CHANNEL_CONTROL: return channel->status != GPU_CHANNEL_OFF;
    case GPU_CHANNEL_PUT: return channel->put;
    case GPU_CHANNEL_GET: return channel->get;
    case GPU_CHANNEL_STATUS: return channel->status;
    default: return 0;
    }
}

static uint32_t read_register(struct pcie_function *function, uint64_t offset)
{
    const struct gpu_device *gpu = gpu_of(function);
    uint64_t at = offset - GPU_CHANNEL(0);
    if (at < gpu->n_channels * CHANNEL_BYTES)
        return channel_register(&gpu->channel[at / CHANNEL_BYTES], at % CHANNEL_BYTES);
    switch (offset) {
    case GPU_REG_VERSION: return GPU_VERSION;
    case GPU_REG_MEMORY_MIB: return (uint32_t)(gpu->params.memory_bytes >> 20);
    case GPU_REG_COPY_ENGINES: return gpu->params.copy_engines;
    case GPU_REG_ADDRESS_BITS: return gpu->params.address_bits;
    case GPU_REG_CLOCK_KHZ: return (uint32_t)(gpu->params.clock_mhz * 1000.0 + 0.5);
    case GPU_REG_TIMER: return (uint32_t)gpu_timer_ns(gpu);
    case GPU_REG_TIMER + 4: return (uint32_t)(gpu_timer_ns(gpu) >> 32);
    default: return 0;
    }
}

static void write_register(struct pcie_function *function, uint64_t offset, uint32_t value)
{
    struct gpu_device *gpu = gpu_of(function);
    uint64_t at = offset - GPU_CHANNEL(0);
    if (at >= gpu->n_channels * CHANNEL_BYTES)
        return;
    struct gpu_channel *channel = &gpu->channel[at / CHANNEL_BYTES];
    switch (at % CHANNEL_BYTES) {
    case GPU_CHANNEL_RING_LOW: channel->low = value; break;
    case GPU_CHANNEL_RING_HIGH: channel->high = value; break;
    case GPU_CHANNEL_LOG: channel->log = value; break;
    case GPU_CHANNEL_CONTROL: gpu_channel_control(channel, value); break;
    case GPU_CHANNEL_PUT: gpu_channel_doorbell(channel, value); break;
    default: break;
    }
}

/* ---- Reset, removal -------------------------------------------------------------------------- */

/* Copies and kernels end where they are, nobody is told. */
static void function_stop(struct pcie_function *function)
{
    struct gpu_device *gpu = gpu_of(function);
    for (uint32_t i = 0; i < gpu->n_channels; i++)
        gpu_channel_control(&gpu->channel[i], 0);
}

/* The memory is cleared when the last copy has ended: nothing of one user may be left for the next
 * (6.6.2). */
static void function_reset(struct pcie_function *function)
{
    struct gpu_device *gpu = gpu_of(function);
    function_stop(function);
    pcie_dma_abort(&function->dma);
    for (uint32_t i = 0; i < gpu->n_channels; i++)
        gpu->channel[i].low = gpu->channel[i].high = gpu->channel[i].log = 0;
    gpu_memory_clear(gpu);
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static void check_params(const struct model *model, struct sim_error_list *errors)
{
    const struct gpu_params *params = &gpu_device_of(model)->params;
    pcie_function_power_of_two(model, "bar1_bytes", params->aperture_bytes, errors);
    pcie_function_power_of_two(model, "read_bytes", params->pcie.dma.read_bytes_max, errors);
    if (params->aperture_bytes > params->memory_bytes)
        model_mistake(model, errors, ".bar1_bytes: found %llu, expected at most memory_bytes, %llu",
                      (unsigned long long)params->aperture_bytes,
                      (unsigned long long)params->memory_bytes);
}

static void function_init(struct gpu_device *gpu)
{
    static const struct pcie_function_ops ops = { .reset = function_reset, .stop = function_stop };
    const struct gpu_params *params = &gpu->params;
    const struct pcie_function_desc desc = {
        .ops = &ops,
        .params = &params->pcie,
        .identity = { .vendor_id = GPU_VENDOR_ID,
                      .device_id = (uint16_t)params->device_id,
                      .subsystem_vendor_id = GPU_VENDOR_ID,
                      .class_code = GPU_CLASS_CODE },
        .function_reset = true,
        .msix_bar = GPU_REGISTER_BAR,
        .n_vectors = GPU_MSIX_VECTORS,
        .msix_table = GPU_MSIX_TABLE,
        .msix_pba = GPU_MSIX_PBA,
        .bar = { [GPU_REGISTER_BAR] = { GPU_BAR_BYTES, 0, read_register, write_register,
                                        .by_bytes = false },
                 [GPU_MEMORY_BAR] = { params->aperture_bytes, CFG_BAR_64 | CFG_BAR_PREFETCH,
                                      .request = gpu_aperture_request } }
    };
    pcie_function_init(&gpu->function, gpu->model, &desc);
}

static void gpu_init(struct model *model, struct sim_error_list *errors)
{
    struct gpu_device *gpu = gpu_device_of(model);
    size_t before = errors->n_messages;
    gpu->model = model;
    check_params(model, errors);
    pcie_function_ports(model, 1, &gpu->params.pcie, errors);
    if (errors->n_messages != before)
        return;
    gpu->chunks = sim_pool_shared(model->sim, "gpu chunk", sizeof(struct gpu_chunk));
    gpu->posts = sim_pool_shared(model->sim, "gpu post", sizeof(struct gpu_post));
    gpu->reads = sim_pool_shared(model->sim, "gpu read", sizeof(struct gpu_read));
    gpu->params.pcie.dma.stamp_every = STAMP_EVERY;
    gpu->n_channels = gpu->params.copy_engines + 1;
    gpu_memory_init(gpu);
    for (uint32_t i = 0; i < gpu->n_channels; i++)
        gpu_channel_init(gpu, i);
    function_init(gpu);
    gpu->ready = true;
}

static void gpu_release(struct model *model)
{
    struct gpu_device *gpu = gpu_device_of(model);
    if (!gpu->ready)
        return;
    pcie_function_release(&gpu->function);
    for (uint32_t i = 0; i < gpu->n_channels; i++) {
        sim_cancel(model->sim, &gpu->channel[i].start);
        gpu_kernel_stop(&gpu->channel[i]);
    }
    gpu_memory_release(gpu);
}

unsigned gpu_n_copy_engines(const struct model *gpu)
{
    return ((const struct gpu_device *)gpu->state)->params.copy_engines;
}

static sim_time ahead_ps(const struct gpu_device *gpu, sim_time free_ps)
{
    return free_ps > gpu_now(gpu) ? free_ps - gpu_now(gpu) : 0;
}

static void gpu_settle(struct model *model)
{
    struct gpu_device *gpu = gpu_device_of(model);
    stat_busy_settle(&gpu->stats.memory, ahead_ps(gpu, gpu->memory_free_ps));
    stat_busy_settle(&gpu->stats.aperture_read, ahead_ps(gpu, gpu->read_free_ps));
    stat_busy_settle(&gpu->stats.aperture_write, ahead_ps(gpu, gpu->write_free_ps));
    gpu->stats.one.per_s = (double)SIM_PS_PER_S;
}

const struct model_ops gpu_ops = {
    .type = "gpu.cuda",
    .help = "a GPU: copy engines, memory behind a base address register, spinning kernels",
    .state_bytes = sizeof(struct gpu_device),
    .params = gpu_params_table,
    .stats = gpu_stats_table,
    .init = gpu_init,
    .start = pcie_function_start,
    .receive = pcie_function_receive,
    .credit = pcie_function_credit,
    .link_change = pcie_function_link_change,
    .settle = gpu_settle,
    .release = gpu_release,
};
