/*
 * nvme.controller: an NVMe controller with one PCIe port.
 *
 * Models: registers of NVMe 1.3 (CAP, VS, CC, CSTS, AQA, ASQ, ACQ, doorbells, CMBLOC, CMBSZ), reset
 *   by CC.EN, shutdown, function-level reset, surprise removal; a controller memory buffer in BAR 2
 *   that queues, PRP lists and data may lie in; MSI-X. Queues: nvme_queue.c; admin commands:
 *   nvme_admin.c; I/O and PRPs: nvme_io.c; media: nvme_media.c.
 * Does not model: pin interrupts and MSI (INTMS, INTMC), subsystem reset, memory pages other than
 *   4 KiB, queues that are not contiguous, SGLs, metadata, firmware, power states.
 * Timing: CSTS.RDY follows CC.EN by enable_latency, and its end as soon as nothing is under way. An access to the own memory buffer
 *   takes cmb_latency and no time on the link. The rest: the files above.
 * Sources: NVM Express Base Specification 1.3; PCIe Base 3.1, 6.6.2 (function-level reset);
 *   docs/sources.md#c4; docs/models/nvme.md.
 */
#include "models/nvme/nvme.h"

#include <stdlib.h>
#include <string.h>

#include "models/nvme/nvme_internal.h"

#define READY_TIMEOUT_500MS UINT64_C(30) /* CAP.TO: 15 s */
#define TAG_BYTES           8u

static const char *const payload_names[] = { "tag", "bytes", NULL };

#define FROM_C4 "docs/sources.md#c4"
static const struct param_desc nvme_params_table[] = {
    PCIE_FUNCTION_PARAMS(struct nvme, params.pcie, FROM_C4, /* lanes */ 4, /* payload */ 256,
                         PROV_ESTIMATE, /* extended tags */ 1, PROV_ESTIMATE, /* queue */ 4,
                         /* credits */ 32, 128, 16, /* register */ 300, /* reads */ 32),
    PARAM("vendor_id", PARAM_U32, struct nvme, params.vendor_id, NVME_VENDOR_INTEL, 1, 65534,
          PROV_DATASHEET, FROM_C4, "PCI vendor"),
    PARAM("device_id", PARAM_U32, struct nvme, params.device_id, NVME_DEVICE_P4800X, 1, 65534,
          PROV_DATASHEET, FROM_C4, "PCI device"),
    PARAM("queue_pairs", PARAM_U32, struct nvme, params.n_queues, 32, 2, NVME_QUEUES_MAX,
          PROV_DATASHEET, FROM_C4, "submission and completion queues, that of administration too"),
    PARAM("queue_entries", PARAM_U32, struct nvme, params.queue_entries, 4096, 2, 65536,
          PROV_ESTIMATE, FROM_C4, "of a queue at most (CAP.MQES)"),
    PARAM("interrupt_vectors", PARAM_U32, struct nvme, params.n_vectors, 32, 1, NVME_QUEUES_MAX,
          PROV_ESTIMATE, FROM_C4, "of MSI-X"),
    PARAM("namespaces", PARAM_U32, struct nvme, params.n_namespaces, 1, 1, NVME_NAMESPACES_MAX,
          PROV_DATASHEET, FROM_C4, "of capacity_bytes each"),
    PARAM("capacity_bytes", PARAM_BYTES, struct nvme, params.capacity_bytes, 375083606016, 4096,
          1e15, PROV_DATASHEET, FROM_C4, "of a namespace"),
    PARAM("block_bytes", PARAM_U32, struct nvme, params.block_bytes, 512, 512, 4096, PROV_DATASHEET,
          FROM_C4, "logical block"),
    PARAM("transfer_bytes_max", PARAM_BYTES, struct nvme, params.transfer_bytes_max, 131072, 8192,
          1e9, PROV_ESTIMATE, FROM_C4,
          "of one command (MDTS, which cannot say one page); a power of two"),
    PARAM("cmb_bytes", PARAM_BYTES, struct nvme, params.cmb_bytes, 0, 0, 1073741824, PROV_DATASHEET,
          FROM_C4, "controller memory buffer; a power of two from 4096 on, 0: none"),
    PARAM_ONE_OF("payload", struct nvme, params.payload, NVME_PAYLOAD_TAG, payload_names, PROV_NONE,
                 "", "what is kept of data: a tag for each cache line, or all bytes"),
    PARAM("enable_latency_us", PARAM_TIME, struct nvme, params.enable_ps, 2000, 0, 1e7,
          PROV_ESTIMATE, FROM_C4, "CC.EN to CSTS.RDY"),
    PARAM("command_interval_ns", PARAM_TIME, struct nvme, params.command_ps, 1700, 0, 1e6,
          PROV_PUBLISHED, FROM_C4, "between the starts of two I/O commands: what bounds IOPS"),
    PARAM("cmb_latency_ns", PARAM_TIME, struct nvme, params.cmb_ps, 100, 0, 10000, PROV_ESTIMATE,
          FROM_C4,
          "an access of the controller to its own memory buffer, or a read of it by others"),
    PARAM("read_latency_ns", PARAM_TIME, struct nvme, params.read_ps, 4200, 0, 1e8, PROV_ESTIMATE,
          FROM_C4, "command known to its page of data ready, idle"),
    PARAM("write_latency_ns", PARAM_TIME, struct nvme, params.write_ps, 3000, 0, 1e8, PROV_ESTIMATE,
          FROM_C4, "data here to safe in the media, idle"),
    PARAM("jitter_mean_ns", PARAM_TIME, struct nvme, params.jitter_ps, 0, 0, 1e7, PROV_PUBLISHED,
          FROM_C4, "more of both latencies, per command: exponential with this mean; 0: none"),
    PARAM("read_gbyte_s", PARAM_RATE, struct nvme, params.read_gbyte_s, 2.4, 0.001, 1000,
          PROV_DATASHEET, FROM_C4, "of the media, all channels"),
    PARAM("write_gbyte_s", PARAM_RATE, struct nvme, params.write_gbyte_s, 2.0, 0.001, 1000,
          PROV_DATASHEET, FROM_C4, "of the media, all channels"),
    PARAM("channels", PARAM_U32, struct nvme, params.n_channels, 1, 1, 1024, PROV_ESTIMATE, FROM_C4,
          "that serve different pages of 4 KiB side by side; 1: each page is spread over them all"),
    PARAM("fetch_burst", PARAM_U32, struct nvme, params.fetch_burst, 4, 1, NVME_FETCH_MAX,
          PROV_ESTIMATE, FROM_C4,
          "submission queue entries in one read, and in one turn of a queue"),
    PARAM("commands_max", PARAM_U32, struct nvme, params.commands_max, 128, 2, 65536, PROV_ESTIMATE,
          FROM_C4, "commands under way; others wait in their queues"),
    PARAM("function_level_reset", PARAM_BOOL, struct nvme, params.function_reset, 1, 0, 1,
          PROV_DATASHEET, FROM_C4, "the capability"),
    { .type = PARAM_END },
};

#define COUNT(NAME, FIELD, UNIT, HELP) \
    STAT(NAME, STAT_COUNTER, struct nvme, stats.FIELD, UNIT, 0, HELP)
#define FRONT(NAME, FIELD, UNIT, HELP) \
    STAT(NAME, STAT_COUNTER, struct nvme, function.stats.FIELD, UNIT, 0, HELP)
static const struct stat_desc nvme_stats_table[] = {
    COUNT("reads", reads, "1", "read commands that succeeded"),
    COUNT("writes", writes, "1", "write commands that succeeded"),
    COUNT("read_bytes", read_bytes, "bytes", "data of these reads"),
    COUNT("write_bytes", write_bytes, "bytes", "data of these writes"),
    COUNT("admin_commands", admin_commands, "1", "commands of the admin queue"),
    COUNT("errors", errors, "1", "completions with a status other than success"),
    COUNT("sqes", sqes, "1", "submission queue entries fetched"),
    COUNT("sqe_fetches", sqe_fetches, "1", "reads of them"),
    COUNT("cmb_fetches", cmb_fetches, "1", "of these, out of the controller memory buffer"),
    COUNT("prp_lists", prp_lists, "1", "reads of PRP lists"),
    COUNT("cqes", cqes, "1", "completion queue entries written"),
    COUNT("cq_waits", cq_waits, "1", "completions that waited for room in their queue"),
    FRONT("interrupts", interrupts, "1", "MSI-X messages sent"),
    COUNT("bad_doorbells", bad_doorbells, "1", "doorbells that make no sense; ignored"),
    FRONT("unsupported", unsupported, "1", "requests to it that it does not support"),
    COUNT("resets", resets, "1", "times that CC.EN was cleared"),
    FRONT("function_resets", resets, "1", "function-level resets"),
    COUNT("fatal", fatal, "1", "times that it could not go on (CSTS.CFS)"),
    STAT("media_pages", STAT_MAX, struct nvme, stats.media_pages, "1", 0,
         "pages of 4 KiB that hold something"),
    STAT("commands_max", STAT_MAX, struct nvme, stats.commands_max, "1", 0,
         "most commands under way"),
    STAT_BOUND_ONLY("media_busy_ps", struct nvme, stats.media.ps, "ps",
                    "time that its channels moved data, of all of them", stats.media_peak),
    PCIE_DMA_STATS(struct nvme, function.dma),
    { .kind = STAT_END },
};

/* ---- DMA ------------------------------------------------------------------------------------- */

static void dma_ends(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct nvme_dma *dma = SIM_CONTAINER(request, struct nvme_dma, request);
    dma->done(dma, status);
}

/* The byte of the memory buffer that lies at a bus address; NULL: it does not. */
static uint8_t *cmb_at(const struct nvme *nvme, uint64_t address, uint64_t bytes)
{
    uint64_t offset = address - cfg_bar_base(&nvme->function.cfg, NVME_CMB_BAR);
    if (nvme->cmb == NULL || !cfg_memory_enabled(&nvme->function.cfg) ||
        offset >= nvme->params.cmb_bytes || bytes > nvme->params.cmb_bytes - offset)
        return NULL;
    return nvme->cmb + offset;
}

static void local_ends(struct sim *sim, struct sim_event *event)
{
    struct nvme_dma *dma = SIM_CONTAINER(event, struct nvme_dma, event);
    const struct pcie_dma_request *request = &dma->request;
    uint8_t *at = cmb_at(dma->nvme, request->iova.v, request->bytes);
    (void)sim;
    if (at != NULL && dma->write)
        memcpy(at, request->buffer, request->bytes);
    else if (at != NULL)
        memcpy(request->buffer, at, request->bytes);
    dma->done(dma, at != NULL ? PCIE_DMA_OK : PCIE_DMA_UNSUPPORTED);
}

void nvme_dma_start(struct nvme *nvme, struct nvme_dma *dma)
{
    dma->nvme = nvme;
    dma->request.done = dma_ends;
    if (cmb_at(nvme, dma->request.iova.v, dma->request.bytes) != NULL) {
        sim_event_init(&dma->event, local_ends);
        sim_schedule_in(nvme->model->sim, &dma->event, nvme->params.cmb_ps);
    } else if (dma->write) {
        pcie_dma_write(&nvme->function.dma, &dma->request, nvme_now(nvme));
    } else {
        pcie_dma_read(&nvme->function.dma, &dma->request, nvme_now(nvme));
    }
}

/* ---- Enabling, resets ------------------------------------------------------------------------ */

static void registers_reset(struct nvme *nvme)
{
    nvme->cc = nvme->csts = nvme->aqa = 0;
    nvme->asq = nvme->acq = 0;
}

static void enabled(struct sim *sim, struct sim_event *event)
{
    struct nvme *nvme = SIM_CONTAINER(event, struct nvme, enable);
    (void)sim;
    nvme_sq_create(nvme, 0, nvme->asq, (nvme->aqa & 0xfffu) + 1, 0);
    nvme_cq_create(nvme, 0, nvme->acq, (nvme->aqa >> 16 & 0xfffu) + 1, true, 0);
    nvme->cq[0].n_sqs = 1;
    nvme->state = NVME_READY;
    nvme->csts = NVME_CSTS_RDY;
}

static void enable(struct nvme *nvme)
{
    nvme->state = NVME_ENABLING;
    sim_schedule_in(nvme->model->sim, &nvme->enable, nvme->params.enable_ps);
}

static void stopped(struct nvme *nvme)
{
    nvme_queues_delete(nvme);
    nvme->state = NVME_DISABLED;
    nvme->csts = 0;
    if ((nvme->cc & NVME_CC_EN) != 0) /* set meanwhile */
        enable(nvme);
}

void nvme_ended(struct nvme *nvme)
{
    nvme->n_under_way--;
    if (nvme->state == NVME_STOPPING && nvme->n_under_way == 0)
        stopped(nvme);
}

/* Nothing new starts from now on; disabled when all that is under way has ended. */
static void stop(struct nvme *nvme)
{
    sim_cancel(nvme->model->sim, &nvme->enable);
    if (nvme->state == NVME_STOPPING)
        return;
    nvme->state = NVME_STOPPING;
    nvme->n_under_way++;
    nvme_queues_delete(nvme); /* what waits for others ends now */
    nvme_ended(nvme);
}

void nvme_fatal(struct nvme *nvme)
{
    nvme->stats.fatal += (nvme->csts & NVME_CSTS_CFS) == 0;
    nvme->csts |= NVME_CSTS_CFS;
}

static void write_cc(struct nvme *nvme, uint32_t value)
{
    bool was = nvme->cc & NVME_CC_EN, is = value & NVME_CC_EN;
    nvme->cc = value;
    if (is && !was && nvme->state == NVME_DISABLED) {
        enable(nvme);
    } else if (was && !is) {
        nvme->stats.resets++;
        stop(nvme);
    }
    /* The media are safe as soon as a command is complete: there is nothing to be waited for. */
    nvme->csts &= ~NVME_CSTS_SHST_MASK;
    if (is && (value & NVME_CC_SHN_MASK) != 0)
        nvme->csts |= NVME_CSTS_SHST_COMPLETE;
}

static void function_reset(struct pcie_function *function)
{
    struct nvme *nvme = nvme_of(function);
    registers_reset(nvme);
    stop(nvme);
}

static void function_stop(struct pcie_function *function)
{
    struct nvme *nvme = nvme_of(function);
    nvme->cc = 0; /* it does not become ready again */
    stop(nvme);
}

/* ---- Registers ------------------------------------------------------------------------------- */

static uint64_t capabilities(const struct nvme *nvme)
{
    return (uint64_t)(nvme->params.queue_entries - 1) | NVME_CAP_CQR |
           READY_TIMEOUT_500MS << NVME_CAP_TO_SHIFT | NVME_CAP_CSS_NVM;
}

static uint32_t cmb_size(const struct nvme *nvme)
{
    if (nvme->cmb == NULL)
        return 0;
    return NVME_CMBSZ_SQS | NVME_CMBSZ_CQS | NVME_CMBSZ_LISTS | NVME_CMBSZ_RDS | NVME_CMBSZ_WDS |
           (uint32_t)(nvme->params.cmb_bytes / NVME_PAGE_BYTES) << NVME_CMBSZ_SIZE_SHIFT;
}

static uint32_t read_register(struct pcie_function *function, uint64_t offset)
{
    const struct nvme *nvme = nvme_of(function);
    switch (offset) {
    case NVME_REG_CAP: return (uint32_t)capabilities(nvme);
    case NVME_REG_CAP + 4: return (uint32_t)(capabilities(nvme) >> 32);
    case NVME_REG_VS: return NVME_VERSION_1_3;
    case NVME_REG_CC: return nvme->cc;
    case NVME_REG_CSTS: return nvme->csts;
    case NVME_REG_AQA: return nvme->aqa;
    case NVME_REG_ASQ: return (uint32_t)nvme->asq;
    case NVME_REG_ASQ + 4: return (uint32_t)(nvme->asq >> 32);
    case NVME_REG_ACQ: return (uint32_t)nvme->acq;
    case NVME_REG_ACQ + 4: return (uint32_t)(nvme->acq >> 32);
    case NVME_REG_CMBLOC: return nvme->cmb != NULL ? NVME_CMB_BAR : 0;
    case NVME_REG_CMBSZ: return cmb_size(nvme);
    default: return 0;
    }
}

static void set_low(uint64_t *reg, uint32_t value)
{
    *reg = (*reg & ~(uint64_t)UINT32_MAX) | (value & ~(NVME_PAGE_BYTES - 1));
}

static void set_high(uint64_t *reg, uint32_t value)
{
    *reg = (*reg & UINT32_MAX) | (uint64_t)value << 32;
}

static void write_register(struct pcie_function *function, uint64_t offset, uint32_t value)
{
    struct nvme *nvme = nvme_of(function);
    if (offset >= NVME_REG_DOORBELLS && offset < NVME_MSIX_TABLE) {
        nvme_doorbell(nvme, offset, value);
        return;
    }
    switch (offset) {
    case NVME_REG_CC: write_cc(nvme, value); break;
    case NVME_REG_AQA: nvme->aqa = value & 0x0fff0fffu; break;
    case NVME_REG_ASQ: set_low(&nvme->asq, value); break;
    case NVME_REG_ASQ + 4: set_high(&nvme->asq, value); break;
    case NVME_REG_ACQ: set_low(&nvme->acq, value); break;
    case NVME_REG_ACQ + 4: set_high(&nvme->acq, value); break;
    default: break;
    }
}

/* ---- Memory buffer --------------------------------------------------------------------------- */

/* Of bulk payload the beginning of each line's share travels; the rest of the share is zero. */
static void cmb_write(uint8_t *to, const struct tlp *tlp)
{
    if (!tlp->bulk) {
        memcpy(to, tlp->payload, tlp->length_bytes);
        return;
    }
    memset(to, 0, tlp->length_bytes);
    for (unsigned at = 0; at < tlp->length_bytes;) {
        unsigned share = (unsigned)(LINE_BYTES - (tlp->address + at) % LINE_BYTES);
        share = SIM_MIN(share, tlp->length_bytes - at);
        memcpy(to + at, tlp->payload + at, SIM_MIN(share, TAG_BYTES));
        at += share;
    }
}

static void cmb_request(struct pcie_function *function, uint64_t offset, struct tlp *tlp)
{
    struct nvme *nvme = nvme_of(function);
    pcie_function_buffer_free(function, tlp, nvme_now(nvme));
    if (tlp->type == TLP_MWR)
        cmb_write(nvme->cmb + offset, tlp);
    for (unsigned at = 0; tlp->type == TLP_MRD && at < tlp->length_bytes;) {
        struct tlp *completion = pcie_function_data(function, tlp, at);
        memcpy(completion->payload, nvme->cmb + offset + at, completion->length_bytes);
        at += completion->length_bytes;
        pcie_function_answer(function, completion, nvme->params.cmb_ps);
    }
    tlp_free(function->model->pcie, tlp);
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static void function_init(struct nvme *nvme)
{
    static const struct pcie_function_ops ops = { .reset = function_reset, .stop = function_stop };
    const struct nvme_params *params = &nvme->params;
    const struct pcie_function_desc desc = {
        .ops = &ops,
        .params = &params->pcie,
        .identity = { .vendor_id = (uint16_t)params->vendor_id,
                      .device_id = (uint16_t)params->device_id,
                      .subsystem_vendor_id = (uint16_t)params->vendor_id,
                      .class_code = NVME_CLASS_CODE },
        .function_reset = params->function_reset,
        .n_vectors = (uint16_t)params->n_vectors,
        .msix_table = NVME_MSIX_TABLE,
        .msix_pba = NVME_MSIX_PBA,
        .bar = { [0] = { NVME_BAR_BYTES, CFG_BAR_64, read_register, write_register, 0, NULL },
                 [NVME_CMB_BAR] = { params->cmb_bytes, CFG_BAR_64 | CFG_BAR_PREFETCH,
                                    .request = cmb_request } }
    };
    pcie_function_init(&nvme->function, nvme->model, &desc);
}

static void nvme_init(struct model *model, struct sim_error_list *errors)
{
    struct nvme *nvme = nvme_state(model);
    const struct nvme_params *params = &nvme->params;
    size_t before = errors->n_messages;
    nvme->model = model;
    pcie_function_power_of_two(model, "block_bytes", params->block_bytes, errors);
    pcie_function_power_of_two(model, "transfer_bytes_max", params->transfer_bytes_max, errors);
    pcie_function_power_of_two(model, "cmb_bytes", params->cmb_bytes, errors);
    pcie_function_ports(model, 1, &params->pcie, errors);
    if (errors->n_messages != before)
        return;
    nvme->commands = sim_pool_shared(model->sim, "nvme command", sizeof(struct nvme_command));
    nvme->pieces = sim_pool_shared(model->sim, "nvme piece", sizeof(struct nvme_piece));
    if (params->cmb_bytes >= NVME_PAGE_BYTES) {
        nvme->cmb = sim_zalloc(1, params->cmb_bytes);
    } else {
        nvme->params.cmb_bytes = 0;
    }
    nvme_media_init(nvme);
    sim_event_init(&nvme->enable, enabled);
    function_init(nvme);
    nvme->initialised = true;
}

static void nvme_release(struct model *model)
{
    struct nvme *nvme = nvme_state(model);
    if (!nvme->initialised)
        return;
    nvme_queues_delete(nvme);
    for (unsigned q = 0; q < NVME_QUEUES_MAX; q++)
        free(nvme->sq[q]);
    sim_cancel(model->sim, &nvme->enable);
    pcie_function_release(&nvme->function);
    nvme_media_release(nvme);
    free(nvme->cmb);
}

const struct nvme_stats *nvme_stats(const struct model *model)
{
    return &((const struct nvme *)model->state)->stats;
}

uint64_t nvme_namespace_bytes(const struct model *model)
{
    return ((const struct nvme *)model->state)->params.capacity_bytes;
}

uint32_t nvme_namespace_block_bytes(const struct model *model)
{
    return ((const struct nvme *)model->state)->params.block_bytes;
}

const struct model_ops nvme_ops = {
    .type = "nvme.controller",
    .help = "an NVMe controller with its media",
    .state_bytes = sizeof(struct nvme),
    .params = nvme_params_table,
    .stats = nvme_stats_table,
    .init = nvme_init,
    .start = pcie_function_start,
    .receive = pcie_function_receive,
    .credit = pcie_function_credit,
    .link_change = pcie_function_link_change,
    .settle = nvme_media_settle,
    .release = nvme_release,
};
