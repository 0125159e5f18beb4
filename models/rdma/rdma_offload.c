/*
 * Offload of an NVMe-oF target to rdma.adapter: reads without the target's processor.
 *
 * Models: an NVMe queue pair in host memory that the adapter owns: a capsule becomes a submission
 *   queue entry whose data goes to a staging buffer, the controller's doorbell is written
 *   peer-to-peer, the completion queue is read until the completion is there, then an RDMA write of
 *   the data and the response leave on the queue pair that the capsule came by. SQ head is counted
 *   over all responses of the queue pair. A command that is none of these, or that finds no buffer,
 *   is received by the processor.
 * Does not model: offload of writes and flushes, several namespaces and controllers of a queue
 *   pair, queues that several queue pairs share, a command's time-out.
 * Timing: a capsule takes receive_latency as any packet, data and response transmit_latency. While
 *   a command is under way one read of the completion queue is, too; the next one begins when it
 *   has ended. How often an adapter looks is not published; nothing tells it of a completion (see
 *   Sources).
 * Sources: the interfaces of Mellanox' NVMe-oF target offload (MLNX_OFED 4.x: nvme_peer_resource
 *   with addresses of SQ, CQ and both doorbells, and no interrupt; the verbs' staging buffer); NVM
 *   Express over Fabrics 1.0, 2.1 to 2.3; docs/models/nvmeof.md.
 */
#include <stdlib.h>
#include <string.h>

#include "hw/nvmeof_regs.h"
#include "models/rdma/rdma_internal.h"

#define CQES_OF_READ 4u /* of a line */

struct rdma_offload_slot {
    struct rdma_offload *offload;
    bool used, in_device; /* in_device: the controller has its command */
    uint8_t n_dma;
    uint16_t cid;   /* of the peer */
    uint32_t bytes; /* of data */
    uint32_t rkey;
    uint64_t va;
    struct nvme_sqe sqe;
    uint32_t tail;
    struct pcie_dma_request write, ring;
};

struct rdma_offload {
    struct rdma_qp *qp;
    struct rdma_offload_command set;
    bool closed;
    uint32_t n_dma;
    uint32_t n_slots, next_slot, n_in_device; /* next_slot: where a free one is looked for */
    uint32_t tail, head, phase;               /* of the NVMe queues */
    uint16_t sq_head;                         /* of the peer's queue */
    bool reading, ringing;
    uint32_t n_read, told; /* entries that are being read; head that the controller is told */
    struct pcie_dma_request read, ring;
    struct nvme_cqe cqe[CQES_OF_READ];
    struct rdma_offload_slot slot[];
};

/* ---- DMA ------------------------------------------------------------------------------------- */

static void begin(struct rdma_offload *offload)
{
    offload->n_dma++;
    offload->qp->n_under_way++;
}

static void end(struct rdma_offload *offload)
{
    struct rdma_qp *qp = offload->qp;
    offload->n_dma--;
    if (offload->closed && offload->n_dma == 0) {
        qp->offload = NULL;
        free(offload);
    }
    rdma_qp_ended(qp);
}

/* Memory or the controller does not answer: no command can end in order any more. */
static void fail(struct rdma_offload *offload)
{
    if (!offload->closed)
        rdma_qp_error(offload->qp, true);
}

static void start_write(struct rdma_offload *offload, struct pcie_dma_request *request,
                        uint64_t iova, const void *from, uint64_t bytes, pcie_dma_done_fn *done)
{
    struct rdma *rdma = offload->qp->rdma;
    begin(offload);
    *request = (struct pcie_dma_request){
        .iova = { iova }, .bytes = bytes, .buffer = (uint8_t *)(uintptr_t)from, .done = done
    };
    pcie_dma_write(&rdma->function.dma, request, rdma_now(rdma));
}

/* ---- Commands -------------------------------------------------------------------------------- */

static void slot_dma_done(struct rdma_offload_slot *slot, enum pcie_dma_status status)
{
    slot->n_dma--;
    if (status != PCIE_DMA_OK)
        fail(slot->offload);
    end(slot->offload);
}

static void entry_written(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    slot_dma_done(SIM_CONTAINER(request, struct rdma_offload_slot, write), status);
}

static void slot_rung(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    slot_dma_done(SIM_CONTAINER(request, struct rdma_offload_slot, ring), status);
}

static struct rdma_offload_slot *free_slot(struct rdma_offload *offload)
{
    if (offload->n_in_device + 1 >= offload->set.nvme_entries)
        return NULL;
    for (uint32_t n = 0; n < offload->n_slots; n++) {
        struct rdma_offload_slot *slot = &offload->slot[offload->next_slot];
        offload->next_slot = (offload->next_slot + 1) % offload->n_slots;
        if (!slot->used && slot->n_dma == 0)
            return slot;
    }
    return NULL;
}

static bool parse(const struct rdma_offload *offload, const struct ib_packet *packet,
                  struct nvme_sqe *sqe, struct nvmeof_sgl *sgl)
{
    if (packet->bytes != sizeof(*sqe))
        return false;
    memcpy(sqe, packet->payload, sizeof(*sqe));
    memcpy(sgl, packet->payload + NVMEOF_SGL_OFFSET, sizeof(*sgl));
    const uint32_t bytes = sgl->bytes[0] | (uint32_t)sgl->bytes[1] << 8 |
                           (uint32_t)sgl->bytes[2] << 16;
    const uint64_t wanted = ((sqe->cdw12 & 0xffffu) + UINT64_C(1)) << offload->set.block_log;
    return sqe->opcode == NVME_READ && sqe->flags == NVME_PSDT_SGL &&
           sqe->nsid == offload->set.nsid && sgl->type == NVMEOF_SGL_KEYED && bytes == wanted &&
           bytes <= offload->set.slot_bytes;
}

/* The controller's command: that of the peer with PRPs of the staging buffer. */
static void build(struct rdma_offload_slot *slot, const struct nvme_sqe *sqe)
{
    const struct rdma_offload_command *set = &slot->offload->set;
    const uint64_t i = (uint64_t)(slot - slot->offload->slot);
    const uint64_t prp1 = set->staging_bus + i * set->slot_bytes;
    uint64_t prp2 = 0;
    if (slot->bytes > 2 * NVME_PAGE_BYTES)
        prp2 = set->lists_bus + i * set->list_bytes;
    else if (slot->bytes > NVME_PAGE_BYTES)
        prp2 = prp1 + NVME_PAGE_BYTES;
    slot->sqe = (struct nvme_sqe){ .opcode = sqe->opcode,
                                   .cid = (uint16_t)i,
                                   .nsid = sqe->nsid,
                                   .prp1 = prp1,
                                   .prp2 = prp2,
                                   .cdw10 = sqe->cdw10,
                                   .cdw11 = sqe->cdw11,
                                   .cdw12 = sqe->cdw12,
                                   .cdw13 = sqe->cdw13,
                                   .cdw14 = sqe->cdw14,
                                   .cdw15 = sqe->cdw15 };
}

static void submit(struct rdma_offload_slot *slot)
{
    struct rdma_offload *offload = slot->offload;
    const uint64_t at = offload->set.sq_iova + (uint64_t)offload->tail * sizeof(slot->sqe);
    offload->tail = (offload->tail + 1) % offload->set.nvme_entries;
    slot->tail = offload->tail;
    slot->n_dma = 2;
    slot->in_device = true;
    offload->n_in_device++;
    offload->qp->rdma->stats.offloaded++;
    start_write(offload, &slot->write, at, &slot->sqe, sizeof(slot->sqe), entry_written);
    start_write(offload, &slot->ring, offload->set.sq_doorbell_iova, &slot->tail,
                sizeof(slot->tail), slot_rung);
}

static void look(struct rdma_offload *offload);

bool rdma_offload_take(struct rdma_qp *qp, const struct ib_packet *packet)
{
    struct rdma_offload *offload = qp->offload;
    struct nvme_sqe sqe;
    struct nvmeof_sgl sgl;
    if (offload->closed || !parse(offload, packet, &sqe, &sgl))
        return false;
    struct rdma_offload_slot *slot = free_slot(offload);
    if (slot == NULL)
        return false;
    slot->used = true;
    slot->cid = sqe.cid;
    slot->bytes = (uint32_t)(((sqe.cdw12 & 0xffffu) + 1) << offload->set.block_log);
    slot->va = sgl.address;
    memcpy(&slot->rkey, sgl.key, sizeof(slot->rkey));
    build(slot, &sqe);
    submit(slot);
    look(offload);
    return true;
}

/* ---- Responses ------------------------------------------------------------------------------- */

void rdma_offload_response(struct rdma_qp *qp, struct rdma_send *send)
{
    struct rdma_offload *offload = qp->offload;
    if (send->opcode != RDMA_OP_SEND || !send->inlined || send->bytes != NVMEOF_RESPONSE_BYTES)
        return;
    offload->sq_head = (uint16_t)((offload->sq_head + 1u) % offload->set.entries);
    memcpy(send->data + offsetof(struct nvmeof_response, sq_head), &offload->sq_head,
           sizeof(offload->sq_head));
}

void rdma_offload_slot_free(struct rdma_offload_slot *slot)
{
    slot->used = false;
}

static struct rdma_send *send_new(struct rdma_qp *qp, enum rdma_opcode opcode, uint32_t bytes)
{
    struct rdma_send *send = sim_pool_get(qp->rdma->sends);
    memset(send, 0, offsetof(struct rdma_send, sge));
    send->opcode = (uint8_t)opcode;
    send->bytes = bytes;
    send->offloaded = true;
    return send;
}

static void send_data(const struct rdma_offload_slot *slot)
{
    const struct rdma_offload *offload = slot->offload;
    struct rdma_send *send = send_new(offload->qp, RDMA_OP_WRITE, slot->bytes);
    const uint64_t i = (uint64_t)(slot - offload->slot);
    send->va = slot->va;
    send->rkey = slot->rkey;
    send->n_sges = 1;
    send->sge[0] = (struct rdma_sge){ .bytes = slot->bytes,
                                      .key = offload->set.staging_key,
                                      .va = offload->set.staging_va + i * offload->set.slot_bytes };
    rdma_requester_add(offload->qp, send);
}

/* The slot is free when the response has arrived: until then the data may have to be sent again. */
static void send_response(struct rdma_offload_slot *slot, const struct nvme_cqe *cqe)
{
    struct rdma_qp *qp = slot->offload->qp;
    struct rdma_send *send = send_new(qp, RDMA_OP_SEND, NVMEOF_RESPONSE_BYTES);
    const struct nvmeof_response response = { .result = cqe->result,
                                              .cid = slot->cid,
                                              .status = cqe->status & (uint16_t)~NVME_CQE_PHASE };
    send->inlined = true;
    send->slot = slot;
    memcpy(send->data, &response, sizeof(response));
    rdma_requester_add(qp, send);
}

/* ---- Completions ----------------------------------------------------------------------------- */

static void complete(struct rdma_offload *offload, const struct nvme_cqe *cqe)
{
    struct rdma_offload_slot *slot = cqe->cid < offload->n_slots ? &offload->slot[cqe->cid] : NULL;
    if (slot == NULL || !slot->in_device) {
        fail(offload); /* a completion of no command */
        return;
    }
    slot->in_device = false;
    offload->n_in_device--;
    if (cqe->status >> 1 == NVME_SC_SUCCESS)
        send_data(slot);
    send_response(slot, cqe); /* in state ERR they end at once */
}

static void tell_head(struct rdma_offload *offload);

static void head_told(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct rdma_offload *offload = SIM_CONTAINER(request, struct rdma_offload, ring);
    offload->ringing = false;
    if (status != PCIE_DMA_OK)
        fail(offload);
    else if (!offload->closed && offload->told != offload->head)
        tell_head(offload);
    end(offload);
}

static void tell_head(struct rdma_offload *offload)
{
    if (offload->ringing)
        return;
    offload->ringing = true;
    offload->told = offload->head;
    start_write(offload, &offload->ring, offload->set.cq_doorbell_iova, &offload->told,
                sizeof(offload->told), head_told);
}

static void take_completions(struct rdma_offload *offload)
{
    const uint32_t was = offload->head;
    for (uint32_t i = 0; i < offload->n_read && offload->n_in_device != 0; i++) {
        if ((offload->cqe[i].status & NVME_CQE_PHASE) != offload->phase)
            break;
        offload->head++;
        if (offload->head == offload->set.nvme_entries) {
            offload->head = 0;
            offload->phase ^= NVME_CQE_PHASE;
        }
        complete(offload, &offload->cqe[i]);
    }
    if (offload->head != was)
        tell_head(offload);
}

static void looked(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct rdma_offload *offload = SIM_CONTAINER(request, struct rdma_offload, read);
    offload->reading = false;
    if (status != PCIE_DMA_OK) {
        offload->n_in_device = 0; /* nobody will know */
        fail(offload);
    } else if (!offload->closed) {
        take_completions(offload);
        look(offload);
    }
    end(offload);
}

/* Reads what may be there of the line with the next completion. */
static void look(struct rdma_offload *offload)
{
    struct rdma *rdma = offload->qp->rdma;
    if (offload->reading || offload->n_in_device == 0)
        return;
    offload->reading = true;
    offload->n_read = SIM_MIN(CQES_OF_READ - offload->head % CQES_OF_READ,
                              offload->set.nvme_entries - offload->head);
    begin(offload);
    rdma->stats.offload_polls++;
    offload->read = (struct pcie_dma_request){
        .iova = { offload->set.cq_iova + (uint64_t)offload->head * sizeof(struct nvme_cqe) },
        .bytes = offload->n_read * sizeof(struct nvme_cqe),
        .buffer = (uint8_t *)offload->cqe,
        .independent = true,
        .done = looked,
    };
    pcie_dma_read(&rdma->function.dma, &offload->read, rdma_now(rdma));
}

/* ---- Life ------------------------------------------------------------------------------------ */

static bool are_valid(const struct rdma_offload_command *c)
{
    const uint64_t pages = c->slot_bytes / NVME_PAGE_BYTES;
    return c->block_log >= 9 && c->block_log <= 12 && c->sq_iova % RDMA_ALIGNMENT_BYTES == 0 &&
           c->cq_iova % RDMA_ALIGNMENT_BYTES == 0 && c->sq_doorbell_iova % 4 == 0 &&
           c->cq_doorbell_iova % 4 == 0 && c->staging_bus % NVME_PAGE_BYTES == 0 &&
           c->slot_bytes != 0 && c->slot_bytes % NVME_PAGE_BYTES == 0 &&
           c->slot_bytes <= RDMA_OFFLOAD_SLOT_MAX && c->list_bytes >= 8 &&
           c->list_bytes <= NVME_PAGE_BYTES && (c->list_bytes & (c->list_bytes - 1)) == 0 &&
           c->lists_bus % c->list_bytes == 0 && (pages - 1) * 8 <= c->list_bytes &&
           c->nvme_entries >= 2 && c->nvme_entries <= RDMA_OFFLOAD_ENTRIES_MAX && c->entries >= 2 &&
           c->entries <= RDMA_OFFLOAD_ENTRIES_MAX && c->sq_head < c->entries;
}

/* The staging buffers: a region's limits are checked by segments, whose length has 32 bits. */
static bool staging_allowed(const struct rdma_qp *qp, const struct rdma_offload_command *c)
{
    for (uint32_t i = 0; i < c->entries; i++) {
        const struct rdma_sge sge = { .bytes = c->slot_bytes,
                                      .key = c->staging_key,
                                      .va = c->staging_va + (uint64_t)i * c->slot_bytes };
        if (!rdma_access_allowed(qp->rdma, qp->pd, &sge, RDMA_ACCESS_LOCAL_WRITE))
            return false;
    }
    return true;
}

uint8_t rdma_offload_set(struct rdma *rdma, const struct rdma_offload_command *c)
{
    struct rdma_qp *qp = rdma_qp_find(rdma, c->number);
    if (qp == NULL)
        return RDMA_COMMAND_NOT_FOUND;
    if (!are_valid(c) || !staging_allowed(qp, c))
        return RDMA_COMMAND_BAD;
    if (qp->offload != NULL)
        return RDMA_COMMAND_BUSY;
    if (qp->state != RDMA_QP_RTS)
        return RDMA_COMMAND_STATE;
    struct rdma_offload *offload =
        sim_zalloc(1, sizeof(*offload) + c->entries * sizeof(offload->slot[0]));
    offload->qp = qp;
    offload->set = *c;
    offload->n_slots = c->entries;
    offload->phase = NVME_CQE_PHASE;
    offload->sq_head = c->sq_head;
    for (uint32_t i = 0; i < offload->n_slots; i++)
        offload->slot[i].offload = offload;
    qp->offload = offload;
    return RDMA_COMMAND_OK;
}

void rdma_offload_close(struct rdma_qp *qp)
{
    struct rdma_offload *offload = qp->offload;
    if (offload == NULL)
        return;
    offload->closed = true;
    if (offload->n_dma == 0)
        rdma_offload_release(qp);
}

void rdma_offload_release(struct rdma_qp *qp)
{
    free(qp->offload);
    qp->offload = NULL;
}
