/*
 * nvme.controller: an NVMe controller with one PCIe port.
 *
 * Models: registers of NVMe 1.3 (CAP, VS, CC, CSTS, AQA, ASQ, ACQ, doorbells, CMBLOC, CMBSZ), reset
 *   by CC.EN, shutdown, function-level reset, surprise removal; a controller memory buffer in BAR 2
 *   that queues, PRP lists and data may lie in; MSI-X. Queues: nvme_queue.c; admin commands:
 *   nvme_admin.c; I/O and PRPs: nvme_io.c; media: nvme_media.c.
 * Does not model: pin interrupts and MSI (INTMS, INTMC), subsystem reset, memory pages other than
 *   4 KiB, queues that are not contiguous, SGLs, metadata, firmware, power states.
 * Timing: a register's read is answered after register_latency; CSTS.RDY follows CC.EN by
 *   enable_latency, and its end as soon as nothing is under way. An access to the own memory buffer
 *   takes cmb_latency and no time on the link. The rest: the files above.
 * Sources: NVM Express Base Specification 1.3; PCIe Base 3.1, 6.6.2 (function-level reset);
 *   docs/sources.md#c4; docs/models/nvme.md.
 */
#include "models/nvme/nvme.h"

#include <stdlib.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "models/nvme/nvme_internal.h"
#include "models/pcie/endpoint/endpoint.h"

#define READY_TIMEOUT_500MS UINT64_C(30) /* CAP.TO: 15 s */
#define REGISTER_BYTES_MAX  8u
#define TAG_BYTES           8u

static const char *const payload_names[] = { "tag", "bytes", NULL };

#define FROM_C4 "docs/sources.md#c4"
static const struct param_desc nvme_params_table[] = {
    PARAM("lanes", PARAM_U32, struct nvme, params.lanes, 4, 1, 16, PROV_DATASHEET, FROM_C4,
          "of the port"),
    PARAM("generation", PARAM_U32, struct nvme, params.generation, 3, 1, 5, PROV_DATASHEET, FROM_C4,
          "highest PCIe generation"),
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
    PARAM("register_latency_ns", PARAM_TIME, struct nvme, params.register_ps, 300, 0, 10000,
          PROV_ESTIMATE, FROM_C4, "a register's read to its answer"),
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
    PARAM("mps_bytes", PARAM_U32, struct nvme, params.mps_bytes, 256, 128, 4096, PROV_ESTIMATE,
          FROM_C4, "Max_Payload_Size it supports"),
    PARAM("tx_queue_tlps", PARAM_U32, struct nvme, params.tx_queue_tlps, 4, 1, 64, PROV_ESTIMATE,
          FROM_C4, "TLPs that wait for the link, per class"),
    PARAM("extended_tags", PARAM_BOOL, struct nvme, params.extended_tags, 1, 0, 1, PROV_ESTIMATE,
          FROM_C4, "256 tags instead of 32"),
    PARAM("function_level_reset", PARAM_BOOL, struct nvme, params.function_reset, 1, 0, 1,
          PROV_DATASHEET, FROM_C4, "the capability"),
    PARAM("posted_header_credits", PARAM_U32, struct nvme, params.advertise.header[TLP_POSTED], 32,
          1, 127, PROV_ESTIMATE, "docs/sources.md#g", "its receive buffers"),
    PARAM("posted_data_credits", PARAM_U32, struct nvme, params.advertise.data[TLP_POSTED], 128, 32,
          2047, PROV_ESTIMATE, "docs/sources.md#g", "its receive buffers, units of 16 bytes"),
    PARAM("non_posted_header_credits", PARAM_U32, struct nvme,
          params.advertise.header[TLP_NON_POSTED], 16, 1, 127, PROV_ESTIMATE, "docs/sources.md#g",
          "its receive buffers"),
    PARAM("completion_timeout_us", PARAM_TIME, struct nvme, params.dma.completion_timeout_ps, 50000,
          50, 64e6, PROV_DATASHEET, "docs/models/dma.md#sources",
          "a read without its data for so long is given up"),
    PARAM("read_requests_max", PARAM_U32, struct nvme, params.dma.read_tlps_max, 32, 1, 256,
          PROV_ESTIMATE, FROM_C4, "read requests in flight"),
    { .type = PARAM_END },
};

#define COUNT(NAME, FIELD, UNIT, HELP) \
    STAT(NAME, STAT_COUNTER, struct nvme, stats.FIELD, UNIT, 0, HELP)
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
    COUNT("interrupts", interrupts, "1", "MSI-X messages sent"),
    COUNT("bad_doorbells", bad_doorbells, "1", "doorbells that make no sense; ignored"),
    COUNT("unsupported", unsupported, "1", "requests to it that it does not support"),
    COUNT("resets", resets, "1", "times that CC.EN was cleared"),
    COUNT("function_resets", function_resets, "1", "function-level resets"),
    COUNT("fatal", fatal, "1", "times that it could not go on (CSTS.CFS)"),
    STAT("media_pages", STAT_MAX, struct nvme, stats.media_pages, "1", 0,
         "pages of 4 KiB that hold something"),
    STAT("commands_max", STAT_MAX, struct nvme, stats.commands_max, "1", 0,
         "most commands under way"),
    PCIE_DMA_STATS(struct nvme, dma),
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
    uint64_t offset = address - cfg_bar_base(&nvme->cfg, NVME_CMB_BAR);
    if (nvme->cmb == NULL || !cfg_memory_enabled(&nvme->cfg) || offset >= nvme->params.cmb_bytes ||
        bytes > nvme->params.cmb_bytes - offset)
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
        pcie_dma_write(&nvme->dma, &dma->request, nvme_now(nvme));
    } else {
        pcie_dma_read(&nvme->dma, &dma->request, nvme_now(nvme));
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

static void msix_reset(struct nvme *nvme)
{
    memset(nvme->msix_pba, 0, sizeof(nvme->msix_pba));
    memset(nvme->msix_table, 0, sizeof(nvme->msix_table));
    for (unsigned i = 0; i < nvme->params.n_vectors; i++)
        nvme->msix_table[NVME_MSIX_ENTRY * i + PCI_MSIX_ENTRY_CONTROL] = PCI_MSIX_ENTRY_MASKED;
}

static void config_init(struct nvme *nvme)
{
    const struct nvme_params *params = &nvme->params;
    const struct cfg_identity identity = { .vendor_id = (uint16_t)params->vendor_id,
                                           .device_id = (uint16_t)params->device_id,
                                           .subsystem_vendor_id = (uint16_t)params->vendor_id,
                                           .class_code = NVME_CLASS_CODE };
    struct cfg_space *cfg = &nvme->cfg;
    cfg_init_endpoint(cfg, &identity);
    cfg_add_bar(cfg, 0, NVME_BAR_BYTES, CFG_BAR_64);
    if (params->cmb_bytes != 0)
        cfg_add_bar(cfg, NVME_CMB_BAR, params->cmb_bytes, CFG_BAR_64 | CFG_BAR_PREFETCH);
    cfg_add_pcie(cfg, CFG_ENDPOINT, params->generation, params->lanes, params->mps_bytes,
                 params->extended_tags);
    if (params->function_reset)
        cfg_add_flr(cfg);
    cfg_add_msix(cfg, params->n_vectors, 0, NVME_MSIX_TABLE, 0, NVME_MSIX_PBA);
    msix_reset(nvme);
}

void nvme_function_reset(struct model *model)
{
    struct nvme *nvme = nvme_state(model);
    nvme->stats.function_resets++;
    cfg_reset(&nvme->cfg);
    msix_reset(nvme);
    registers_reset(nvme);
    stop(nvme);
    pcie_dma_abort(&nvme->dma);
}

void nvme_remove(struct model *model)
{
    struct nvme *nvme = nvme_state(model);
    nvme->removed = true;
    cfg_set(&nvme->cfg, PCI_COMMAND, 2, 0);
    stop(nvme);
    pcie_dma_credit(&nvme->dma);
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

static uint32_t read_register(const struct nvme *nvme, uint64_t offset)
{
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

static uint32_t read_word(const struct nvme *nvme, uint64_t offset)
{
    uint32_t value;
    if (offset >= NVME_MSIX_TABLE && offset - NVME_MSIX_TABLE < sizeof(nvme->msix_table))
        memcpy(&value, &nvme->msix_table[offset - NVME_MSIX_TABLE], 4);
    else if (offset >= NVME_MSIX_PBA && offset - NVME_MSIX_PBA < sizeof(nvme->msix_pba))
        memcpy(&value, &nvme->msix_pba[offset - NVME_MSIX_PBA], 4);
    else
        value = read_register(nvme, offset);
    return value;
}

static void set_low(uint64_t *reg, uint32_t value)
{
    *reg = (*reg & ~(uint64_t)UINT32_MAX) | (value & ~(NVME_PAGE_BYTES - 1));
}

static void set_high(uint64_t *reg, uint32_t value)
{
    *reg = (*reg & UINT32_MAX) | (uint64_t)value << 32;
}

static void write_register(struct nvme *nvme, uint64_t offset, uint32_t value)
{
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

/* One aligned double word. */
static void write_word(struct nvme *nvme, uint64_t offset, uint32_t value)
{
    if (offset >= NVME_MSIX_TABLE) {
        if (offset - NVME_MSIX_TABLE < NVME_MSIX_ENTRY * nvme->params.n_vectors) {
            memcpy(&nvme->msix_table[offset - NVME_MSIX_TABLE], &value, 4);
            nvme_msix_unmask(nvme);
        }
    } else if (offset >= NVME_REG_DOORBELLS) {
        nvme_doorbell(nvme, offset, value);
    } else {
        write_register(nvme, offset, value);
    }
}

/* ---- Requests to it -------------------------------------------------------------------------- */

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

static void take_write(struct nvme *nvme, const struct tlp *tlp)
{
    int bar = cfg_bar_match(&nvme->cfg, tlp->address, tlp->length_bytes);
    if (bar == (int)NVME_CMB_BAR) {
        cmb_write(cmb_at(nvme, tlp->address, tlp->length_bytes), tlp);
        return;
    }
    if (bar != 0 || tlp->address % 4 != 0 || tlp->length_bytes % 4 != 0) {
        nvme->stats.unsupported++;
        return;
    }
    uint64_t offset = tlp->address - cfg_bar_base(&nvme->cfg, 0);
    for (unsigned i = 0; i < tlp->length_bytes; i += 4) {
        uint32_t value;
        memcpy(&value, tlp->payload + i, 4);
        write_word(nvme, offset + i, value);
    }
}

static void answer_leaves(struct sim *sim, struct sim_event *event)
{
    struct nvme_answer *answer = SIM_CONTAINER(event, struct nvme_answer, event);
    struct nvme *nvme = answer->nvme;
    struct model *model = nvme->model;
    if (nvme->removed)
        tlp_free(model->pcie, answer->completion);
    else
        pcie_port_send(&model->ports[0], answer->completion, sim_now(sim));
    sim_pool_put(nvme->answers, answer);
}

static void send_answer(struct nvme *nvme, struct tlp *completion, sim_time delay_ps)
{
    struct nvme_answer *answer = sim_pool_get(nvme->answers);
    answer->nvme = nvme;
    answer->completion = completion;
    sim_event_init(&answer->event, answer_leaves);
    sim_schedule_in(nvme->model->sim, &answer->event, delay_ps);
}

/* Completions end at multiples of the payload size (a multiple of the read completion boundary). */
static void answer_cmb(struct nvme *nvme, struct tlp *tlp)
{
    struct pcie_context *pcie = nvme->model->pcie;
    unsigned mps = cfg_mps_bytes(&nvme->cfg);
    for (unsigned at = 0; at < tlp->length_bytes;) {
        struct tlp *completion = tlp_completion(pcie, tlp, nvme->cfg.id, TLP_SC);
        uint64_t address = tlp->address + at;
        unsigned n = SIM_MIN(tlp->length_bytes - at, mps - (unsigned)(address % mps));
        completion->address = address;
        completion->byte_count = (uint16_t)(tlp->length_bytes - at);
        completion->length_bytes = (uint16_t)n;
        completion->bulk = tlp->bulk;
        tlp_payload_new(pcie, completion);
        memcpy(completion->payload, cmb_at(nvme, address, n), n);
        send_answer(nvme, completion, nvme->params.cmb_ps);
        at += n;
    }
}

static void answer_read(struct nvme *nvme, struct tlp *tlp)
{
    struct pcie_context *pcie = nvme->model->pcie;
    int bar = cfg_bar_match(&nvme->cfg, tlp->address, tlp->length_bytes);
    if (bar == (int)NVME_CMB_BAR) {
        answer_cmb(nvme, tlp);
        return;
    }
    bool ours = bar == 0 && tlp->address % 4 + tlp->length_bytes <= REGISTER_BYTES_MAX;
    struct tlp *completion = tlp_completion(pcie, tlp, nvme->cfg.id, ours ? TLP_SC : TLP_UR);
    if (ours) {
        uint64_t offset = tlp->address - cfg_bar_base(&nvme->cfg, 0);
        uint32_t words[2] = { read_word(nvme, offset & ~UINT64_C(3)),
                              read_word(nvme, (offset & ~UINT64_C(3)) + 4) };
        tlp_payload_new(pcie, completion);
        memcpy(completion->payload, (const uint8_t *)words + offset % 4, tlp->length_bytes);
    } else {
        nvme->stats.unsupported++;
    }
    send_answer(nvme, completion, nvme->params.register_ps);
}

static struct tlp *answer_config(struct nvme *nvme, struct tlp *tlp)
{
    struct cfg_space *cfg = &nvme->cfg;
    struct tlp *completion = cfg_answer(cfg, nvme->model->pcie, tlp);
    if (cfg_take_flr(cfg))
        nvme_function_reset(nvme->model);
    nvme->model->ports[0].mps_bytes = cfg_mps_bytes(cfg);
    nvme_msix_unmask(nvme);
    return completion;
}

static void take_request(struct nvme *nvme, struct tlp *tlp)
{
    struct model *model = nvme->model;
    struct tlp *completion = NULL;
    switch ((enum tlp_type)tlp->type) {
    case TLP_CFG_RD0:
    case TLP_CFG_WR0: completion = answer_config(nvme, tlp); break;
    case TLP_MRD: answer_read(nvme, tlp); break;
    case TLP_MWR: take_write(nvme, tlp); break;
    case TLP_MSG: break;
    default:
        nvme->stats.unsupported++;
        completion = tlp_completion(model->pcie, tlp, nvme->cfg.id, TLP_UR);
        break;
    }
    if (completion != NULL)
        pcie_port_send(&model->ports[0], completion, nvme_now(nvme));
}

static void nvme_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct nvme *nvme = nvme_state(model);
    if (tlp_class_of(tlp) == TLP_COMPLETION) {
        pcie_dma_receive(&nvme->dma, tlp);
        return;
    }
    pcie_port_release(&model->ports[port], tlp_class_of(tlp), tlp_data_credits(tlp),
                      sim_now(model->sim));
    if (!nvme->removed)
        take_request(nvme, tlp);
    tlp_free(model->pcie, tlp);
}

static void nvme_credit(struct model *model, uint32_t port)
{
    (void)port;
    pcie_dma_credit(&nvme_state(model)->dma);
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static void port_init(struct model *model)
{
    const struct nvme_params *params = &nvme_state(model)->params;
    pcie_endpoint_ports(model, 1,
                        &(struct pcie_endpoint_port){ .generation = params->generation,
                                                      .lanes = params->lanes,
                                                      .mps_bytes = params->mps_bytes,
                                                      .tx_queue_tlps = params->tx_queue_tlps,
                                                      .advertise = params->advertise });
}

static void nvme_init(struct model *model, struct sim_error_list *errors)
{
    struct nvme *nvme = nvme_state(model);
    const struct nvme_params *params = &nvme->params;
    size_t before = errors->n_messages;
    nvme->model = model;
    pcie_endpoint_power_of_two(model, "mps_bytes", params->mps_bytes, errors);
    pcie_endpoint_power_of_two(model, "block_bytes", params->block_bytes, errors);
    pcie_endpoint_power_of_two(model, "transfer_bytes_max", params->transfer_bytes_max, errors);
    pcie_endpoint_power_of_two(model, "cmb_bytes", params->cmb_bytes, errors);
    port_init(model);
    if (errors->n_messages != before)
        return;
    nvme->commands = sim_pool_shared(model->sim, "nvme command", sizeof(struct nvme_command));
    nvme->pieces = sim_pool_shared(model->sim, "nvme piece", sizeof(struct nvme_piece));
    nvme->answers = sim_pool_shared(model->sim, "nvme answer", sizeof(struct nvme_answer));
    nvme->messages = sim_pool_shared(model->sim, "nvme message", sizeof(struct nvme_message));
    if (params->cmb_bytes >= NVME_PAGE_BYTES) {
        nvme->cmb = sim_zalloc(1, params->cmb_bytes);
    } else {
        nvme->params.cmb_bytes = 0;
    }
    nvme_media_init(nvme);
    sim_event_init(&nvme->enable, enabled);
    config_init(nvme);
    pcie_dma_init(&nvme->dma, model, 0, &nvme->cfg, &params->dma);
    nvme->initialised = true;
}

static void nvme_start(struct model *model)
{
    struct nvme *nvme = nvme_state(model);
    if (pcie_port_connected(&model->ports[0]))
        cfg_set_link(&nvme->cfg, pcie_port_generation(&model->ports[0]),
                     pcie_port_lanes(&model->ports[0]));
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
    pcie_dma_release(&nvme->dma);
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
    .start = nvme_start,
    .receive = nvme_receive,
    .credit = nvme_credit,
    .release = nvme_release,
};
