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

#include "hw/pci_regs.h"
#include "models/gpu/gpu_internal.h"
#include "models/pcie/endpoint/endpoint.h"

#define MSIX_ENTRY     16u
#define READ_BYTES_MAX 8u
#define STAMP_EVERY    17u
#define CHANNEL_BYTES  (GPU_CHANNEL(1u) - GPU_CHANNEL(0u))
#define SOURCE         "docs/sources.md#c3"
#define CREDITS        "docs/sources.md#g"

static const struct param_desc gpu_params_table[] = {
    PARAM("device_id", PARAM_U32, struct gpu_device, params.device_id, GPU_DEVICE_ID_P4000, 1,
          65535, PROV_DATASHEET, SOURCE, "PCI device ID"),
    PARAM("lanes", PARAM_U32, struct gpu_device, params.lanes, 16, 1, 16, PROV_DATASHEET, SOURCE,
          "link width"),
    PARAM("generation", PARAM_U32, struct gpu_device, params.generation, 3, 1, 5, PROV_DATASHEET,
          SOURCE, "highest PCIe generation"),
    PARAM("memory_bytes", PARAM_BYTES, struct gpu_device, params.memory_bytes, 8589934592, 1048576,
          1e12, PROV_DATASHEET, SOURCE, "device memory"),
    PARAM("memory_gbyte_s", PARAM_RATE, struct gpu_device, params.memory_gbyte_s, 243, 1, 10000,
          PROV_DATASHEET, SOURCE, "its bandwidth, as copies see it"),
    PARAM("bar1_bytes", PARAM_BYTES, struct gpu_device, params.aperture_bytes, 268435456, 1048576,
          1e12, PROV_DATASHEET, SOURCE, "BAR 1: a power of two; what others see of the memory"),
    PARAM("address_bits", PARAM_U32, struct gpu_device, params.address_bits, 47, 32, 64,
          PROV_PUBLISHED, SOURCE, "of bus addresses that it can form"),
    PARAM("copy_engines", PARAM_U32, struct gpu_device, params.copy_engines, 2, 1,
          GPU_CHANNELS_MAX - 1, PROV_DATASHEET, SOURCE, "copies at a time"),
    PARAM("copy_start_us", PARAM_TIME, struct gpu_device, params.copy_start_ps, 1.5, 0, 100,
          PROV_ESTIMATE, SOURCE, "copy command decoded to its first request"),
    PARAM("read_bytes", PARAM_BYTES, struct gpu_device, params.dma.read_bytes_max, 256, 64, 4096,
          PROV_PUBLISHED, SOURCE, "of a read request at most, below Max_Read_Request_Size"),
    PARAM("launch_us", PARAM_TIME, struct gpu_device, params.launch_ps, 5, 0, 1000, PROV_ESTIMATE,
          SOURCE, "launch command to a kernel's first instruction"),
    PARAM("store_latency_ns", PARAM_TIME, struct gpu_device, params.store_ps, 400, 0, 10000,
          PROV_ESTIMATE, SOURCE, "a kernel's store to the link"),
    PARAM("clock_call_ns", PARAM_TIME, struct gpu_device, params.clock_ps, 32, 0, 1000,
          PROV_PUBLISHED, SOURCE, "a call of clock64()"),
    PARAM("poll_ns", PARAM_TIME, struct gpu_device, params.poll_ps, 15, 1, 10000, PROV_PUBLISHED,
          SOURCE, "reading a word of own memory in a loop"),
    PARAM("clock_mhz", PARAM_RATE, struct gpu_device, params.clock_mhz, 1480, 100, 10000,
          PROV_DATASHEET, SOURCE, "what clock64() counts"),
    PARAM("timer_ns", PARAM_TIME, struct gpu_device, params.timer_ps, 32, 1, 10000, PROV_ESTIMATE,
          SOURCE, "resolution of the time in semaphores"),
    PARAM("inbound_write_latency_ns", PARAM_TIME, struct gpu_device, params.inbound_write_ps, 200,
          0, 10000, PROV_ESTIMATE, SOURCE, "a write of another's to where a kernel sees it"),
    PARAM("inbound_write_gbyte_s", PARAM_RATE, struct gpu_device, params.inbound_write_gbyte_s, 16,
          0.01, 1000, PROV_ESTIMATE, SOURCE, "others' writes into its memory"),
    PARAM("inbound_read_latency_ns", PARAM_TIME, struct gpu_device, params.inbound_read_ps, 450, 0,
          10000, PROV_ESTIMATE, SOURCE, "another's read of its memory to the answer"),
    PARAM("inbound_read_gbyte_s", PARAM_RATE, struct gpu_device, params.inbound_read_gbyte_s, 5,
          0.01, 1000, PROV_ESTIMATE, SOURCE, "others' reads of its memory"),
    PARAM("register_latency_ns", PARAM_TIME, struct gpu_device, params.register_ps, 300, 0, 10000,
          PROV_ESTIMATE, SOURCE, "a register's read to its answer"),
    PARAM("mps_bytes", PARAM_U32, struct gpu_device, params.mps_bytes, 256, 128, 4096,
          PROV_ESTIMATE, SOURCE, "Max_Payload_Size it supports"),
    PARAM("tx_queue_tlps", PARAM_U32, struct gpu_device, params.tx_queue_tlps, 4, 1, 64,
          PROV_ESTIMATE, SOURCE, "TLPs that wait for the link, per class"),
    PARAM("extended_tags", PARAM_BOOL, struct gpu_device, params.extended_tags, 1, 0, 1,
          PROV_ESTIMATE, SOURCE, "256 tags instead of 32"),
    PARAM("posted_header_credits", PARAM_U32, struct gpu_device,
          params.advertise.header[TLP_POSTED], 64, 1, 127, PROV_ESTIMATE, CREDITS,
          "its receive buffers"),
    PARAM("posted_data_credits", PARAM_U32, struct gpu_device, params.advertise.data[TLP_POSTED],
          512, 32, 2047, PROV_ESTIMATE, CREDITS, "its receive buffers, units of 16 bytes"),
    PARAM("non_posted_header_credits", PARAM_U32, struct gpu_device,
          params.advertise.header[TLP_NON_POSTED], 32, 1, 127, PROV_ESTIMATE, CREDITS,
          "its receive buffers"),
    PARAM("completion_timeout_us", PARAM_TIME, struct gpu_device, params.dma.completion_timeout_ps,
          50000, 50, 64e6, PROV_DATASHEET, "docs/models/dma.md#sources",
          "a read without its data for so long is given up"),
    PARAM("read_requests_max", PARAM_U32, struct gpu_device, params.dma.read_tlps_max, 64, 1, 256,
          PROV_ESTIMATE, SOURCE, "read requests in flight, of all engines together"),
    { .type = PARAM_END },
};

#define GPU_STAT(NAME, FIELD, UNIT, HELP) \
    STAT(NAME, STAT_COUNTER, struct gpu_device, stats.FIELD, UNIT, 0, HELP)
static const struct stat_desc gpu_stats_table[] = {
    PCIE_DMA_STATS(struct gpu_device, dma),
    GPU_STAT("copies", copies, "1", "copies begun"),
    GPU_STAT("copy_bytes", copy_bytes, "bytes", "of these"),
    GPU_STAT("kernel_launches", launches, "1", "kernels begun"),
    GPU_STAT("semaphores", semaphores, "1", "semaphores released"),
    GPU_STAT("interrupts", interrupts, "1", "MSI-X messages sent"),
    GPU_STAT("bar1_read_bytes", aperture_read_bytes, "bytes", "read by others"),
    GPU_STAT("bar1_write_bytes", aperture_write_bytes, "bytes", "written by others"),
    GPU_STAT("failures", failures, "1", "channels that stopped because of a command"),
    GPU_STAT("bad_doorbells", bad_doorbells, "1", "doorbells that make no sense; ignored"),
    GPU_STAT("unsupported", unsupported, "1", "requests to it that it does not support"),
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
    pcie_dma_write(&gpu->dma, &post->request, at_ps);
}

static void send_message(struct gpu_device *gpu, uint64_t address, uint32_t data)
{
    uint8_t bytes[4] = { (uint8_t)data, (uint8_t)(data >> 8), (uint8_t)(data >> 16),
                         (uint8_t)(data >> 24) };
    gpu->stats.interrupts++;
    gpu_post(gpu, address, bytes, sizeof(bytes), gpu_now(gpu));
}

void gpu_interrupt(struct gpu_device *gpu, uint32_t vector)
{
    uint64_t address;
    uint32_t data;
    if (cfg_msix_message(&gpu->cfg, gpu->msix_table, gpu->msix_pba, vector, &address, &data))
        send_message(gpu, address, data);
}

static void unmask(struct gpu_device *gpu)
{
    uint64_t address;
    uint32_t data;
    unsigned vector;
    while (
        cfg_msix_take_pending(&gpu->cfg, gpu->msix_table, gpu->msix_pba, &vector, &address, &data))
        send_message(gpu, address, data);
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

static uint32_t read_word(const struct gpu_device *gpu, uint64_t offset)
{
    uint64_t at = offset - GPU_CHANNEL(0);
    uint32_t value;
    if (at < gpu->n_channels * CHANNEL_BYTES)
        return channel_register(&gpu->channel[at / CHANNEL_BYTES], at % CHANNEL_BYTES);
    if (offset - GPU_MSIX_TABLE < sizeof(gpu->msix_table)) {
        memcpy(&value, &gpu->msix_table[offset - GPU_MSIX_TABLE], 4);
        return value;
    }
    if (offset - GPU_MSIX_PBA < sizeof(gpu->msix_pba)) {
        memcpy(&value, &gpu->msix_pba[offset - GPU_MSIX_PBA], 4);
        return value;
    }
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

static void write_word(struct gpu_device *gpu, uint64_t offset, uint32_t value)
{
    uint64_t at = offset - GPU_CHANNEL(0);
    if (offset - GPU_MSIX_TABLE < sizeof(gpu->msix_table)) {
        memcpy(&gpu->msix_table[offset - GPU_MSIX_TABLE], &value, 4);
        unmask(gpu);
        return;
    }
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

static void write_registers(struct gpu_device *gpu, const struct tlp *tlp)
{
    uint64_t offset = tlp->address - cfg_bar_base(&gpu->cfg, GPU_REGISTER_BAR);
    if (tlp->address % 4 != 0 || tlp->length_bytes % 4 != 0) {
        gpu->stats.unsupported++;
        return;
    }
    for (unsigned i = 0; i < tlp->length_bytes; i += 4) {
        uint32_t value;
        memcpy(&value, tlp->payload + i, 4);
        write_word(gpu, offset + i, value);
    }
}

static void answer_leaves(struct sim *sim, struct sim_event *event)
{
    struct gpu_answer *answer = SIM_CONTAINER(event, struct gpu_answer, event);
    struct gpu_device *gpu = answer->gpu;
    pcie_port_send(&gpu->model->ports[0], answer->request, sim_now(sim));
    sim_pool_put(gpu->answers, answer);
}

/* supported: within the registers. What is answered is a completion here. */
static void answer_read(struct gpu_device *gpu, struct tlp *tlp, bool supported)
{
    struct gpu_answer *answer = sim_pool_get(gpu->answers);
    supported = supported && tlp->address % 4 + tlp->length_bytes <= READ_BYTES_MAX;
    answer->gpu = gpu;
    answer->request = tlp_completion(gpu->model->pcie, tlp, gpu->cfg.id,
                                     supported ? TLP_SC : TLP_UR);
    if (supported) {
        uint64_t offset = tlp->address - cfg_bar_base(&gpu->cfg, GPU_REGISTER_BAR);
        uint32_t words[2] = { read_word(gpu, offset & ~UINT64_C(3)),
                              read_word(gpu, (offset & ~UINT64_C(3)) + 4) };
        tlp_payload_new(gpu->model->pcie, answer->request);
        memcpy(answer->request->payload, (const uint8_t *)words + offset % 4, tlp->length_bytes);
    } else {
        gpu->stats.unsupported++;
    }
    sim_event_init(&answer->event, answer_leaves);
    sim_schedule_in(gpu->model->sim, &answer->event, gpu->params.register_ps);
}

/* ---- Reset ----------------------------------------------------------------------------------- */

static void mask_vectors(struct gpu_device *gpu)
{
    memset(gpu->msix_pba, 0, sizeof(gpu->msix_pba));
    memset(gpu->msix_table, 0, sizeof(gpu->msix_table));
    for (unsigned i = 0; i < GPU_MSIX_VECTORS; i++)
        gpu->msix_table[MSIX_ENTRY * i + 12] = 1; /* masked after reset */
}

/* Function-level: copies and kernels end where they are, nobody is told, the memory is cleared, as
 * nothing of one user may be left for the next (6.6.2). */
static void reset(struct gpu_device *gpu)
{
    cfg_reset(&gpu->cfg);
    for (uint32_t i = 0; i < gpu->n_channels; i++)
        gpu_channel_control(&gpu->channel[i], 0);
    pcie_dma_abort(&gpu->dma);
    for (uint32_t i = 0; i < gpu->n_channels; i++)
        gpu->channel[i].low = gpu->channel[i].high = gpu->channel[i].log = 0;
    mask_vectors(gpu);
    gpu_memory_clear(gpu);
}

/* ---- TLPs ------------------------------------------------------------------------------------ */

static void answer_config(struct gpu_device *gpu, struct tlp *tlp)
{
    struct model *model = gpu->model;
    struct tlp *completion = cfg_answer(&gpu->cfg, model->pcie, tlp);
    model->ports[0].mps_bytes = cfg_mps_bytes(&gpu->cfg);
    unmask(gpu);
    pcie_port_send(&model->ports[0], completion, sim_now(model->sim));
    if (cfg_take_flr(&gpu->cfg))
        reset(gpu);
}

static void refuse(struct gpu_device *gpu, struct tlp *tlp)
{
    struct model *model = gpu->model;
    gpu->stats.unsupported++;
    pcie_port_send(&model->ports[0], tlp_completion(model->pcie, tlp, gpu->cfg.id, TLP_UR),
                   sim_now(model->sim));
}

static void take_request(struct gpu_device *gpu, struct tlp *tlp, int bar)
{
    switch ((enum tlp_type)tlp->type) {
    case TLP_CFG_RD0:
    case TLP_CFG_WR0: answer_config(gpu, tlp); break;
    case TLP_MRD: answer_read(gpu, tlp, bar == (int)GPU_REGISTER_BAR); break;
    case TLP_MWR:
        if (bar == (int)GPU_REGISTER_BAR)
            write_registers(gpu, tlp);
        else
            gpu->stats.unsupported++;
        break;
    case TLP_MSG: break;
    default: refuse(gpu, tlp); break;
    }
}

static void gpu_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct gpu_device *gpu = gpu_device_of(model);
    if (tlp_class_of(tlp) == TLP_COMPLETION) {
        pcie_dma_receive(&gpu->dma, tlp);
        return;
    }
    bool memory = tlp->type == TLP_MRD || tlp->type == TLP_MWR;
    int bar = memory ? cfg_bar_match(&gpu->cfg, tlp->address, tlp->length_bytes) : -1;
    if (bar == (int)GPU_MEMORY_BAR && tlp->length_bytes != 0) {
        if (tlp->type == TLP_MRD)
            gpu_aperture_read(gpu, tlp);
        else
            gpu_aperture_write(gpu, tlp);
        return;
    }
    pcie_port_release(&model->ports[port], tlp_class_of(tlp), tlp_data_credits(tlp),
                      sim_now(model->sim));
    take_request(gpu, tlp, bar);
    tlp_free(model->pcie, tlp);
}

static void gpu_credit(struct model *model, uint32_t port)
{
    (void)port;
    pcie_dma_credit(&gpu_device_of(model)->dma);
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static void check_params(const struct model *model, struct sim_error_list *errors)
{
    const struct gpu_params *params = &gpu_device_of(model)->params;
    pcie_endpoint_power_of_two(model, "mps_bytes", params->mps_bytes, errors);
    pcie_endpoint_power_of_two(model, "bar1_bytes", params->aperture_bytes, errors);
    pcie_endpoint_power_of_two(model, "read_bytes", params->dma.read_bytes_max, errors);
    if (params->aperture_bytes > params->memory_bytes)
        sim_error_add(errors, model->config != NULL ? config_file(model->config) : NULL,
                      model->config != NULL ? config_line(model->config) : 0,
                      "%s.bar1_bytes: found %llu, expected at most memory_bytes, %llu", model->name,
                      (unsigned long long)params->aperture_bytes,
                      (unsigned long long)params->memory_bytes);
}

static void config_init(struct gpu_device *gpu)
{
    const struct gpu_params *params = &gpu->params;
    const struct cfg_identity identity = { .vendor_id = GPU_VENDOR_ID,
                                           .device_id = (uint16_t)params->device_id,
                                           .subsystem_vendor_id = GPU_VENDOR_ID,
                                           .class_code = 0x030200 };
    cfg_init_endpoint(&gpu->cfg, &identity);
    cfg_add_bar(&gpu->cfg, GPU_REGISTER_BAR, GPU_BAR_BYTES, 0);
    cfg_add_bar(&gpu->cfg, GPU_MEMORY_BAR, params->aperture_bytes, CFG_BAR_64 | CFG_BAR_PREFETCH);
    cfg_add_pcie(&gpu->cfg, CFG_ENDPOINT, params->generation, params->lanes, params->mps_bytes,
                 params->extended_tags);
    cfg_add_flr(&gpu->cfg);
    cfg_add_msix(&gpu->cfg, GPU_MSIX_VECTORS, GPU_REGISTER_BAR, GPU_MSIX_TABLE, GPU_REGISTER_BAR,
                 GPU_MSIX_PBA);
    mask_vectors(gpu);
}

static void port_init(struct model *model)
{
    const struct gpu_params *params = &gpu_device_of(model)->params;
    pcie_endpoint_ports(model, 1,
                        &(struct pcie_endpoint_port){ .generation = params->generation,
                                                      .lanes = params->lanes,
                                                      .mps_bytes = params->mps_bytes,
                                                      .tx_queue_tlps = params->tx_queue_tlps,
                                                      .advertise = params->advertise });
}

static void gpu_init(struct model *model, struct sim_error_list *errors)
{
    struct gpu_device *gpu = gpu_device_of(model);
    size_t before = errors->n_messages;
    gpu->model = model;
    check_params(model, errors);
    port_init(model);
    if (errors->n_messages != before)
        return;
    gpu->chunks = sim_pool_shared(model->sim, "gpu chunk", sizeof(struct gpu_chunk));
    gpu->posts = sim_pool_shared(model->sim, "gpu post", sizeof(struct gpu_post));
    gpu->answers = sim_pool_shared(model->sim, "gpu answer", sizeof(struct gpu_answer));
    gpu->params.dma.stamp_every = STAMP_EVERY;
    gpu->n_channels = gpu->params.copy_engines + 1;
    gpu_memory_init(gpu);
    for (uint32_t i = 0; i < gpu->n_channels; i++)
        gpu_channel_init(gpu, i);
    config_init(gpu);
    pcie_dma_init(&gpu->dma, model, 0, &gpu->cfg, &gpu->params.dma);
    gpu->ready = true;
}

static void gpu_start(struct model *model)
{
    if (pcie_port_connected(&model->ports[0]))
        cfg_set_link(&gpu_device_of(model)->cfg, pcie_port_generation(&model->ports[0]),
                     pcie_port_lanes(&model->ports[0]));
}

static void gpu_release(struct model *model)
{
    struct gpu_device *gpu = gpu_device_of(model);
    if (!gpu->ready)
        return;
    pcie_dma_release(&gpu->dma);
    for (uint32_t i = 0; i < gpu->n_channels; i++) {
        sim_cancel(model->sim, &gpu->channel[i].start);
        gpu_kernel_stop(&gpu->channel[i]);
    }
    gpu_memory_release(gpu);
}

const struct model_ops gpu_ops = {
    .type = "gpu.cuda",
    .help = "a GPU: copy engines, memory behind a base address register, spinning kernels",
    .state_bytes = sizeof(struct gpu_device),
    .params = gpu_params_table,
    .stats = gpu_stats_table,
    .init = gpu_init,
    .start = gpu_start,
    .receive = gpu_receive,
    .credit = gpu_credit,
    .release = gpu_release,
};
