/*
 * A controller of nvme.controller: its registers and its function.
 *
 * Models: registers of NVMe 1.3 (CAP, VS, CC, CSTS, AQA, ASQ, ACQ, doorbells, CMBLOC, CMBSZ), reset
 *   by CC.EN, shutdown, function-level reset, surprise removal; a controller memory buffer in BAR 2
 *   that queues, PRP lists and data may lie in; MSI-X. A function-level reset clears the memory
 *   buffer, the error log and the features: the next user of the function reads nothing of the last
 *   one. A reset by CC.EN keeps buffer and log.
 * Does not model: pin interrupts and MSI (INTMS, INTMC), subsystem reset, memory pages other than
 *   4 KiB, queues that are not contiguous.
 * Timing: CSTS.RDY follows CC.EN by enable_latency, and its end as soon as nothing is under way. An
 *   access to the own memory buffer takes cmb_latency and no time on the link.
 * Sources: NVM Express Base Specification 1.3, section 3; PCIe Base 3.1, 6.6.2 (function-level
 *   reset).
 */
#include <stdlib.h>
#include <string.h>

#include "models/nvme/nvme_internal.h"

#define READY_TIMEOUT_500MS UINT64_C(30) /* CAP.TO: 15 s */
#define TAG_BYTES           8u

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
        offset >= nvme_params(nvme)->cmb_bytes || bytes > nvme_params(nvme)->cmb_bytes - offset)
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
        sim_schedule_in(nvme_sim(nvme), &dma->event, nvme_params(nvme)->cmb_ps);
    } else if (dma->write) {
        pcie_dma_write(&nvme->function.dma, &dma->request, nvme_now(nvme));
    } else {
        pcie_dma_read(&nvme->function.dma, &dma->request, nvme_now(nvme));
    }
}

/* ---- Enabling, resets ------------------------------------------------------------------------ */

/* Of a controller that is disabled (8.5: of one that is offline). */
static uint32_t idle_status(const struct nvme *nvme)
{
    return nvme->offline ? NVME_CSTS_CFS : 0;
}

static void registers_reset(struct nvme *nvme)
{
    nvme->cc = nvme->aqa = 0;
    nvme->csts = idle_status(nvme);
    nvme->asq = nvme->acq = 0;
}

static void enabled(struct sim *sim, struct sim_event *event)
{
    struct nvme *nvme = SIM_CONTAINER(event, struct nvme, enable);
    (void)sim;
    nvme_sq_create(nvme, 0, nvme->asq, (nvme->aqa & 0xfffu) + 1, 0, NVME_SQ_URGENT);
    nvme_cq_create(nvme, 0, nvme->acq, (nvme->aqa >> 16 & 0xfffu) + 1, true, 0);
    nvme->cq[0].n_sqs = 1;
    nvme->state = NVME_READY;
    nvme->csts = NVME_CSTS_RDY;
}

/* What CAP does not offer, and admin queues of one entry (3.1.5, 3.1.8). */
static bool cannot_enable(const struct nvme *nvme)
{
    return NVME_CC_CSS(nvme->cc) != 0 || NVME_CC_MPS(nvme->cc) != 0 ||
           NVME_CC_AMS(nvme->cc) > NVME_CC_AMS_WRR || (nvme->aqa & 0xfffu) == 0 ||
           (nvme->aqa >> 16 & 0xfffu) == 0;
}

static void enable(struct nvme *nvme)
{
    if (cannot_enable(nvme)) {
        nvme_fatal(nvme);
        return;
    }
    nvme->state = NVME_ENABLING;
    sim_schedule_in(nvme_sim(nvme), &nvme->enable, nvme_params(nvme)->enable_ps);
}

static void stopped(struct nvme *nvme)
{
    nvme_queues_delete(nvme);
    nvme_features_reset(nvme);
    nvme->state = NVME_DISABLED;
    nvme->csts = idle_status(nvme);
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
    sim_cancel(nvme_sim(nvme), &nvme->enable);
    if (nvme->state == NVME_STOPPING)
        return;
    nvme->state = NVME_STOPPING;
    nvme_interrupts_stop(nvme);
    nvme->n_under_way++;
    nvme_queues_delete(nvme); /* what waits for others ends now */
    nvme_virtual_reset(nvme);
    nvme_ended(nvme);
}

void nvme_controller_restart(struct nvme *nvme)
{
    registers_reset(nvme);
    stop(nvme);
}

void nvme_fatal(struct nvme *nvme)
{
    nvme->sub->stats.fatal += (nvme->csts & NVME_CSTS_CFS) == 0;
    nvme->csts |= NVME_CSTS_CFS;
}

static void write_cc(struct nvme *nvme, uint32_t value)
{
    if (nvme->offline)
        return;
    bool was = nvme->cc & NVME_CC_EN, is = value & NVME_CC_EN;
    nvme->cc = value;
    if (is && !was && nvme->state == NVME_DISABLED) {
        enable(nvme);
    } else if (was && !is) {
        nvme->sub->stats.resets++;
        stop(nvme);
    }
    /* The media are safe as soon as a command is complete: there is nothing to be waited for. */
    nvme->csts &= ~NVME_CSTS_SHST_MASK;
    if (is && (value & NVME_CC_SHN_MASK) != 0)
        nvme->csts |= NVME_CSTS_SHST_COMPLETE;
}

/* State that may hold secrets of the function's last user (PCIe Base 3.1, 6.6.2). Memory space is
 * disabled, so nothing that is under way reaches the buffer any more. */
static void forget(struct nvme *nvme)
{
    if (nvme->cmb != NULL)
        memset(nvme->cmb, 0, nvme_params(nvme)->cmb_bytes);
    nvme->errors = (struct nvme_errors){ .count = nvme->errors.count };
}

static void function_reset(struct pcie_function *function)
{
    struct nvme *nvme = nvme_of(function);
    nvme->sub->stats.function_resets++;
    registers_reset(nvme);
    stop(nvme);
    forget(nvme);
}

/* A secondary controller is offline when its virtual function is gone. */
static void function_stop(struct pcie_function *function)
{
    struct nvme *nvme = nvme_of(function);
    nvme->cc = 0; /* it does not become ready again */
    nvme->offline = nvme->primary != NULL;
    stop(nvme);
}

static bool function_appears(struct pcie_function *function)
{
    struct nvme *nvme = nvme_of(function);
    if (nvme->n_under_way != 0 || !pcie_dma_idle(&function->dma))
        return false;
    registers_reset(nvme);
    forget(nvme);
    return true;
}

/* ---- Registers ------------------------------------------------------------------------------- */

static uint64_t capabilities(const struct nvme *nvme)
{
    return (uint64_t)(nvme_params(nvme)->queue_entries - 1) | NVME_CAP_CQR | NVME_CAP_AMS_WRR |
           READY_TIMEOUT_500MS << NVME_CAP_TO_SHIFT | NVME_CAP_CSS_NVM;
}

static uint32_t cmb_size(const struct nvme *nvme)
{
    if (nvme->cmb == NULL)
        return 0;
    return NVME_CMBSZ_SQS | NVME_CMBSZ_CQS | NVME_CMBSZ_LISTS | NVME_CMBSZ_RDS | NVME_CMBSZ_WDS |
           (uint32_t)(nvme_params(nvme)->cmb_bytes / NVME_PAGE_BYTES) << NVME_CMBSZ_SIZE_SHIFT;
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
        pcie_function_answer(function, completion, nvme_params(nvme)->cmb_ps);
    }
    tlp_free(function->model->pcie, tlp);
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static void send_message(struct pcie_function *function, uint64_t address, uint32_t data)
{
    nvme_of(function)->sub->stats.interrupts++;
    pcie_function_message(function, &function->dma, address, data);
}

static void function_init(struct nvme *nvme)
{
    static const struct pcie_function_ops ops = { .reset = function_reset,
                                                  .stop = function_stop,
                                                  .appear = function_appears,
                                                  .message = send_message };
    const struct nvme_params *params = nvme_params(nvme);
    const uint32_t flexible = params->n_vfs != 0 ? params->flexible_vectors : 0;
    const uint32_t own = nvme->primary == NULL ? params->n_vectors : 0;
    const uint32_t vectors_max = SIM_MIN(own + flexible, NVME_QUEUES_MAX);
    const struct pcie_function_desc desc = {
        .ops = &ops,
        .params = &params->pcie,
        .identity = { .vendor_id = (uint16_t)params->vendor_id,
                      .device_id = (uint16_t)params->device_id,
                      .subsystem_vendor_id = (uint16_t)params->vendor_id,
                      .class_code = NVME_CLASS_CODE },
        .port = nvme->port,
        .function_reset = params->function_reset,
        .n_vectors = (uint16_t)vectors_max,
        .msix_table = NVME_MSIX_TABLE,
        .msix_pba = NVME_MSIX_PBA,
        .bar = { [0] = { NVME_BAR_BYTES, CFG_BAR_64, read_register, write_register,
                         .by_bytes = false },
                 [NVME_CMB_BAR] = { params->cmb_bytes, CFG_BAR_64 | CFG_BAR_PREFETCH,
                                    .request = cmb_request } }
    };
    if (nvme->primary == NULL)
        pcie_function_init(&nvme->function, nvme->sub->model, &desc);
    else
        pcie_vf_init(&nvme->function, &nvme->primary->function,
                     (unsigned)(nvme - nvme->primary->secondary), &desc);
    nvme->function.unsupported = &nvme->sub->stats.unsupported;
}

/* Into the circle, behind those that are there. */
static void join(struct nvme_subsystem *sub, struct nvme *nvme)
{
    nvme->id = (uint16_t)sub->n_controllers++;
    nvme->next = &sub->first;
    if (sub->last != NULL)
        sub->last->next = nvme;
    sub->last = nvme;
}

void nvme_controller_init(struct nvme_subsystem *sub, struct nvme *nvme, uint32_t port,
                          struct nvme *primary)
{
    nvme->sub = sub;
    nvme->port = port;
    nvme->primary = primary;
    nvme->offline = primary != NULL;
    nvme->csts = idle_status(nvme);
    join(sub, nvme);
    if (primary == NULL) {
        nvme->n_queues = sub->params.n_queues;
        nvme->n_vectors = sub->params.n_vectors;
    }
    if (sub->params.cmb_bytes != 0 && primary == NULL)
        nvme->cmb = sim_zalloc(1, sub->params.cmb_bytes);
    nvme_features_init(nvme);
    nvme_interrupts_init(nvme);
    sim_event_init(&nvme->enable, enabled);
    function_init(nvme);
    if (primary == NULL)
        nvme_virtual_init(nvme);
}

void nvme_controller_release(struct nvme *nvme)
{
    if (nvme->sub == NULL)
        return;
    nvme->state = NVME_DISABLED; /* nothing answers any more */
    nvme_interrupts_stop(nvme);
    nvme_queues_delete(nvme);
    for (unsigned q = 0; q < NVME_QUEUES_MAX; q++)
        free(nvme->sq[q]);
    sim_cancel(nvme_sim(nvme), &nvme->enable);
    pcie_function_release(&nvme->function);
    free(nvme->cmb);
    nvme_virtual_release(nvme);
}
