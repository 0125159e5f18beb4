/*
 * Queues of an initiator of NVMe over Fabrics by RDMA.
 *
 * What it does: A reliable connection per queue with a completion queue of its own; a receive for
 *   each response that can come; command capsules inline in their work request, or, with data in
 *   the capsule, gathered from the capsule and the caller's buffer; from the capsule alone if the
 *   adapter takes less inline. A capsule goes as long as the target has room by the SQ head of its
 *   responses and a command identifier is free.
 * Leaves out: locks, time-outs of requests, SGLs of more than one descriptor.
 * Follows: NVM Express over Fabrics 1.0, 2.4 (flow control), 7.3; SPDK 19.01, lib/nvme/nvme_rdma.c.
 * Costs: nvmeof_initiator_cycles per request and per response; verbs as they are.
 */
#include <errno.h>

#include "logic/nvmeof/nvmeof_initiator_internal.h"

#define SENDS_PER_ENTRY 2u
#define WORK_RECEIVE    UINT64_C(0x100000000) /* in the number of a receive; the rest is its slot */

/* ---- Memory ---------------------------------------------------------------------------------- */

int initiator_memory_new(struct nvmeof_initiator *initiator, int node, uint64_t bytes,
                         uint8_t access, struct initiator_memory *out)
{
    *out = (struct initiator_memory){ .bytes = (bytes + K_PAGE_BYTES - 1) &
                                               ~(uint64_t)(K_PAGE_BYTES - 1) };
    int error = k_pages_get(initiator->kernel, node, out->bytes, &out->at);
    if (error != 0)
        return error;
    error = rdma_drv_mr_new(initiator->params.rdma, initiator->pd, out->at, out->bytes, access,
                            &out->mr);
    if (error != 0) {
        k_pages_put(initiator->kernel, out->bytes, out->at);
        *out = (struct initiator_memory){ 0 };
    }
    return error;
}

void initiator_memory_free(struct nvmeof_initiator *initiator, struct initiator_memory *memory)
{
    if (memory->mr == NULL)
        return;
    rdma_drv_mr_free(memory->mr);
    k_pages_put(initiator->kernel, memory->bytes, memory->at);
    memory->mr = NULL;
}

static struct kaddr capsule_at(const struct initiator_queue *queue, uint16_t i)
{
    return kaddr_add(queue->memory.at, (uint64_t)i * NVMEOF_COMMAND_BYTES);
}

static struct kaddr response_at(const struct initiator_queue *queue, uint16_t i)
{
    return capsule_at(queue, (uint16_t)(queue->entries + i));
}

/* ---- Connections ----------------------------------------------------------------------------- */

static bool post_receive(struct initiator_queue *queue, uint16_t i)
{
    const struct rdma_drv_sge sge = { response_at(queue, i).v, NVMEOF_RESPONSE_BYTES,
                                      rdma_drv_key(queue->memory.mr) };
    const struct rdma_drv_receive receive = { WORK_RECEIVE | i, &sge, 1 };
    return rdma_drv_post_receive(queue->qp, &receive) == 0;
}

static int make_qp(struct initiator_queue *queue)
{
    struct nvmeof_initiator *initiator = queue->initiator;
    struct rdma_drv *rdma = initiator->params.rdma;
    const uint32_t n_works = (SENDS_PER_ENTRY + 1) * queue->entries;
    int error = rdma_drv_cq_new(rdma, n_works, k_cpu(initiator->kernel), NULL, NULL, &queue->cq);
    queue->inlines = rdma_drv_limits(rdma).inline_bytes >= NVMEOF_COMMAND_BYTES;
    const struct rdma_drv_qp_params params = {
        .pd = initiator->pd,
        .send_cq = queue->cq,
        .receive_cq = queue->cq,
        .n_sends = SENDS_PER_ENTRY * queue->entries,
        .n_receives = queue->entries,
        .send_sges = 2,
        .receive_sges = 1,
        .inline_bytes = queue->inlines ? NVMEOF_COMMAND_BYTES : 0,
        .access = RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_REMOTE_READ,
        .blueflame = true
    };
    return error != 0 ? error : rdma_drv_qp_new(rdma, &params, &queue->qp);
}

static int exchange(struct initiator_queue *queue)
{
    const struct nvmeof_initiator_params *p = &queue->initiator->params;
    struct rdma_drv_connection connection = rdma_drv_connection_default;
    const struct nvmeof_hello hello = { .endpoint = rdma_drv_endpoint(queue->qp, &connection),
                                        .qid = queue->qid,
                                        .entries = queue->entries,
                                        .mtu_bytes = p->mtu_bytes };
    struct nvmeof_hello answer = { .entries = 0 };
    const int error = p->exchange(p->context, &hello, &answer);
    if (error != 0)
        return error;
    if (answer.entries < 2 || answer.entries > queue->entries || answer.mtu_bytes > p->mtu_bytes)
        return -EIO;
    connection.mtu_bytes = answer.mtu_bytes;
    queue->entries = answer.entries;
    return rdma_drv_connect(queue->qp, &answer.endpoint, &connection);
}

int initiator_queue_open(struct nvmeof_initiator *initiator, struct initiator_queue *queue,
                         uint16_t qid, uint16_t entries)
{
    *queue = (struct initiator_queue){ .initiator = initiator, .qid = qid, .entries = entries };
    const uint64_t bytes = (uint64_t)entries * (NVMEOF_COMMAND_BYTES + K_LINE_BYTES);
    int error = initiator_memory_new(initiator, K_NODE_LOCAL, bytes, RDMA_ACCESS_LOCAL_WRITE,
                                     &queue->memory);
    if (error == 0)
        error = make_qp(queue);
    if (error == 0)
        error = exchange(queue);
    if (error == 0) {
        queue->slot = k_zalloc(queue->entries * sizeof *queue->slot);
        queue->free_cid = k_zalloc(queue->entries * sizeof *queue->free_cid);
        for (uint16_t i = (uint16_t)(queue->entries - 1); i > 0; i--)
            queue->free_cid[queue->n_free++] = (uint16_t)(i - 1);
        for (uint16_t i = 0; i < queue->entries; i++)
            queue->broken |= !post_receive(queue, i);
        if (queue->broken)
            error = -ENODEV;
    }
    if (error != 0)
        initiator_queue_close(queue);
    return error;
}

static void end(struct initiator_queue *queue, uint16_t cid, int error, uint16_t status,
                uint64_t result)
{
    struct nvmeof_request *request = queue->slot[cid];
    queue->slot[cid] = NULL;
    queue->free_cid[queue->n_free++] = cid;
    request->error = error;
    request->status = status;
    request->result = result;
    request->done(request);
}

static void end_all(struct initiator_queue *queue)
{
    queue->broken = true;
    for (uint16_t cid = 0; queue->slot != NULL && cid < queue->entries; cid++)
        if (queue->slot[cid] != NULL)
            end(queue, cid, -ENOTCONN, 0, 0);
}

void initiator_queue_close(struct initiator_queue *queue)
{
    struct nvmeof_initiator *initiator = queue->initiator;
    if (initiator == NULL)
        return;
    queue->broken = true;
    if (queue->qp != NULL)
        rdma_drv_qp_free(queue->qp); /* from here on nobody writes to what requests have */
    end_all(queue);
    if (queue->cq != NULL)
        rdma_drv_cq_free(queue->cq);
    initiator_memory_free(initiator, &queue->memory);
    k_free(queue->slot);
    k_free(queue->free_cid);
    *queue = (struct initiator_queue){ .broken = true };
}

/* ---- Requests -------------------------------------------------------------------------------- */

static uint16_t next_of(const struct initiator_queue *queue, uint16_t i)
{
    return (uint16_t)(i + 1u == queue->entries ? 0 : i + 1u);
}

/* Sends the capsule: inline if it is alone, and the adapter can. */
static int send_capsule(struct initiator_queue *queue, const struct nvmeof_request *request,
                        const struct nvme_sqe *sqe, bool in_capsule)
{
    const struct rdma_drv_sge sge[2] = {
        { capsule_at(queue, sqe->cid).v, NVMEOF_COMMAND_BYTES, rdma_drv_key(queue->memory.mr) },
        { request->buffer.at.v, (uint32_t)request->bytes, request->buffer.key },
    };
    struct rdma_drv_send send = { .id = sqe->cid, .opcode = RDMA_OP_SEND, .signaled = true };
    if (in_capsule || !queue->inlines) {
        k_store(queue->initiator->kernel, capsule_at(queue, sqe->cid), sqe, sizeof *sqe);
        send.sge = sge;
        send.n_sges = in_capsule ? 2 : 1;
    } else {
        send.inline_data = sqe;
        send.inline_bytes = sizeof *sqe;
    }
    return rdma_drv_post_send(queue->qp, &send);
}

/* Fabrics commands: their SGL and their data are in the capsule. */
static bool is_in_capsule(const struct initiator_queue *queue, const struct nvmeof_request *request)
{
    return request->write && request->bytes != 0 &&
           (request->bytes <= queue->in_capsule_bytes || request->sqe.opcode == NVMEOF_OPCODE);
}

int initiator_queue_submit(struct initiator_queue *queue, struct nvmeof_request *request)
{
    struct kernel *kernel = queue->initiator->kernel;
    if (queue->broken)
        return -ENOTCONN;
    if (queue->n_free == 0 || next_of(queue, queue->sq_tail) == queue->sq_head)
        return -EBUSY;
    if (request->bytes > queue->initiator->bytes_max)
        return -EINVAL;
    struct nvme_sqe sqe = request->sqe;
    const uint16_t cid = queue->free_cid[queue->n_free - 1];
    const bool in_capsule = is_in_capsule(queue, request);
    const struct nvmeof_sgl sgl =
        in_capsule ? nvmeof_sgl(NVMEOF_SGL_IN_CAPSULE, 0, (uint32_t)request->bytes, 0)
                   : nvmeof_sgl(NVMEOF_SGL_KEYED, request->buffer.at.v, (uint32_t)request->bytes,
                                request->buffer.key);
    k_compute(kernel, queue->initiator->costs->nvmeof_initiator_cycles);
    sqe.cid = cid;
    sqe.flags = NVME_PSDT_SGL;
    if (request->bytes != 0)
        memcpy((uint8_t *)&sqe + NVMEOF_SGL_OFFSET, &sgl, sizeof sgl);
    const int error = send_capsule(queue, request, &sqe, in_capsule);
    k_trace(kernel, "nvmeof 1: the initiator has posted a command capsule", queue->qid);
    if (error != 0) /* room for sends is what acknowledgements of earlier ones leave */
        return error == -EBUSY ? -EBUSY : -ENOTCONN;
    queue->n_free--;
    queue->slot[cid] = request;
    queue->sq_tail = next_of(queue, queue->sq_tail);
    return 0;
}

/* A response. False: it makes no sense, and the connection with it. */
static bool take(struct initiator_queue *queue, uint16_t i)
{
    struct nvmeof_initiator *initiator = queue->initiator;
    struct nvmeof_response response;
    k_trace(initiator->kernel, "nvmeof 5: the initiator takes the response", queue->qid);
    k_load(initiator->kernel, response_at(queue, i), &response, sizeof response);
    if (!post_receive(queue, i) || response.cid >= queue->entries ||
        queue->slot[response.cid] == NULL || response.sq_head >= queue->entries)
        return false;
    queue->sq_head = response.sq_head;
    k_compute(initiator->kernel, initiator->costs->nvmeof_initiator_cycles);
    const uint16_t status = (uint16_t)(response.status >> 1);
    end(queue, response.cid, status == NVME_SC_SUCCESS ? 0 : -EIO, status, response.result);
    return true;
}

unsigned initiator_queue_poll(struct initiator_queue *queue)
{
    struct rdma_drv_wc wc[NVMEOF_WCS];
    unsigned n_taken = 0;
    if (queue->broken || queue->polling)
        return 0;
    queue->polling = true;
    const unsigned n = rdma_drv_poll(queue->cq, wc, NVMEOF_WCS);
    bool good = true;
    for (unsigned i = 0; i < n && good; i++) {
        good = wc[i].status == RDMA_SUCCESS;
        if (!good || !wc[i].receive)
            continue;
        good = wc[i].bytes == NVMEOF_RESPONSE_BYTES && take(queue, (uint16_t)wc[i].id);
        n_taken += good;
    }
    queue->polling = false;
    if (!good)
        end_all(queue);
    return n_taken;
}
