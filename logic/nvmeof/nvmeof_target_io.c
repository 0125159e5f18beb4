/*
 * Commands on the I/O queues of a target.
 *
 * What it does: Reads: the controller writes into the request's buffer; then an RDMA write of the
 *   data and the response, one after the other on the same queue pair, so that the response cannot
 *   arrive before the data (SmartIO, figure 36). Writes: the data is in the capsule, where the
 *   controller gets it from, or is fetched by an RDMA read first. Commands without data go straight
 *   on. Commands keep their fields and lose their SGL: the controller gets PRPs of the request's
 *   buffer.
 * Leaves out: metadata, SGLs of more than one descriptor, fused commands.
 * Follows: NVM Express over Fabrics 1.0, 2.3, 7.3.
 * Costs: nvmeof_target_cycles per completion (that of the capsule is in nvmeof_target.c).
 */
#include <errno.h>

#include "logic/nvmeof/nvmeof_internal.h"

#define DNR NVME_STATUS_DNR

enum direction { NO_DATA = 0, TO_DEVICE = 1, FROM_DEVICE = 2 }; /* bits 1:0 of an opcode (4.6) */

/* Of the data that the command's own fields speak of; UINT32_MAX: they do not. */
static uint32_t bytes_by_command(const struct nvmeof_target *target, const struct nvme_sqe *sqe)
{
    switch (sqe->opcode) {
    case NVME_READ:
    case NVME_WRITE:
    case NVME_COMPARE: return ((sqe->cdw12 & 0xffffu) + 1) << target->namespace.block_log2;
    case NVME_DATASET: return ((sqe->cdw10 & 0xffu) + 1) * (uint32_t)sizeof(struct nvme_range);
    default: return UINT32_MAX;
    }
}

/* Sets request->bytes; a status. */
static uint16_t check_data(struct target_request *request, uint32_t capsule_data_bytes)
{
    const struct nvmeof_target *target = request->queue->target;
    const struct nvmeof_sgl *sgl = &request->sgl;
    const enum direction direction = (enum direction)(request->sqe.opcode & 3u);
    const uint32_t wanted = bytes_by_command(target, &request->sqe);
    const uint32_t nsid = request->sqe.nsid;
    request->bytes = 0;
    /* The one that is exported; a Flush may mean all (6.8). */
    if (nsid != NVMEOF_NSID && (request->sqe.opcode != NVME_FLUSH || nsid != NVME_NSID_ALL))
        return NVME_SC_INVALID_NAMESPACE | DNR;
    if (direction == NO_DATA)
        return NVME_SC_SUCCESS;
    if ((request->sqe.flags & NVME_PSDT_MASK) != NVME_PSDT_SGL)
        return NVME_SC_INVALID_FIELD | DNR;
    const bool in_capsule = sgl->type == NVMEOF_SGL_IN_CAPSULE;
    if (direction == 3 || wanted == UINT32_MAX)
        return NVME_SC_INVALID_OPCODE | DNR;
    if ((!in_capsule && sgl->type != NVMEOF_SGL_KEYED) || (in_capsule && direction != TO_DEVICE))
        return NVME_SC_SGL_TYPE_INVALID | DNR;
    if (in_capsule && sgl->address != 0) /* it begins where the buffer does */
        return NVMEOF_SC_SGL_OFFSET_INVALID | DNR;
    const uint32_t bytes = nvmeof_sgl_bytes(sgl);
    if (bytes != wanted || bytes > target->data_bytes || (in_capsule && bytes > capsule_data_bytes))
        return NVME_SC_SGL_LENGTH_INVALID | DNR;
    request->bytes = bytes;
    return NVME_SC_SUCCESS;
}

static void submit(struct target_request *request)
{
    struct target_queue *queue = request->queue;
    const struct nvme_sqe *sqe = &request->sqe;
    const struct nvme_user_piece piece = { request->data.bus, request->bytes };
    request->command.sqe = (struct nvme_sqe){ .opcode = sqe->opcode,
                                              .nsid = NVMEOF_NSID,
                                              .cdw10 = sqe->cdw10,
                                              .cdw11 = sqe->cdw11,
                                              .cdw12 = sqe->cdw12,
                                              .cdw13 = sqe->cdw13,
                                              .cdw14 = sqe->cdw14,
                                              .cdw15 = sqe->cdw15 };
    queue->n_nvme++;
    const int error = nvme_user_qp_submit(queue->nvme, &request->command, &piece,
                                          request->bytes != 0);
    k_trace(queue->target->kernel, "nvmeof 2: the target rings the controller's doorbell",
            queue->qid);
    if (error != 0) { /* it has an entry for each request */
        queue->n_nvme--;
        target_respond(request, NVME_SC_INTERNAL_ERROR, 0);
    }
}

void target_io_data_is_here(struct target_request *request)
{
    submit(request);
}

void target_io(struct target_request *request, uint32_t capsule_data_bytes)
{
    struct target_queue *queue = request->queue;
    struct nvmeof_target *target = queue->target;
    if (queue->state != TARGET_CONNECTED || (queue->controller->csts & NVME_CSTS_RDY) == 0) {
        target_respond(request, NVME_SC_SEQUENCE_ERROR | DNR, 0);
        return;
    }
    const uint16_t status = check_data(request, capsule_data_bytes);
    if (status != NVME_SC_SUCCESS) {
        target_respond(request, status, 0);
        return;
    }
    target->stats.reads += request->sqe.opcode == NVME_READ;
    target->stats.writes += request->sqe.opcode == NVME_WRITE;
    if ((request->sqe.opcode & 3u) != TO_DEVICE) {
        submit(request);
    } else if (request->sgl.type == NVMEOF_SGL_IN_CAPSULE) {
        target->stats.in_capsule++;
        submit(request);
    } else {
        target_fetch_data(request);
    }
}

void target_io_done(struct nvme_user_command *command)
{
    struct target_request *request = command->context;
    struct target_queue *queue = request->queue;
    struct nvmeof_target *target = queue->target;
    queue->n_nvme--;
    if (queue->state == TARGET_BROKEN)
        return;
    k_trace(target->kernel, "nvmeof 3: the target takes the controller's completion", queue->qid);
    k_compute(target->kernel, target->costs->nvmeof_target_cycles);
    if (command->status == NVME_SC_SUCCESS && (command->sqe.opcode & 3u) == FROM_DEVICE)
        target_respond_data(request, request->bytes, command->result);
    else
        target_respond(request, command->status, command->result);
}
