/*
 * Queue pairs of an RDMA adapter: their connection, posting, what a completion stands for.
 *
 * What it does: Writes WQEs into rings, rings doorbells or writes the WQE with them (BlueFlame),
 *   keeps the caller's numbers of work requests.
 * Leaves out: shared receive queues, several requests by one doorbell, locks (one caller at a
 *   time).
 * Follows: IBTA 11.2.5, 11.4.1; Linux 5.4, drivers/infiniband/hw/mlx5/qp.c; rdma-core 28, mlx5.
 * Costs: rdma_post_cycles per work request, the cache lines of its WQE, one register write (send)
 *   or one store of the doorbell record (receive).
 */
#include <errno.h>
#include <string.h>

#include "logic/rdma/rdma_internal.h"

#define SEGMENT_BYTES 16u

const struct rdma_drv_connection rdma_drv_connection_default = {
    .mtu_bytes = 4096,
    .timeout = 14,
    .retries = 7,
    .rnr_retries = 7,
    .rnr_timer = 12,
    .responder_resources = RDMA_DRV_READS_MAX,
    .initiator_depth = RDMA_DRV_READS_MAX,
};

/* ---- Life ------------------------------------------------------------------------------------ */

static uint32_t wqe_blocks(uint32_t n_segments)
{
    const uint32_t per_block = RDMA_WQE_BLOCK_BYTES / SEGMENT_BYTES;
    return (n_segments + per_block - 1) / per_block;
}

static uint32_t inline_segments(uint32_t bytes)
{
    return ((uint32_t)sizeof(uint32_t) + bytes + SEGMENT_BYTES - 1) / SEGMENT_BYTES;
}

static uint8_t log_of(uint32_t n)
{
    uint8_t log = 0;
    while (log <= RDMA_RING_LOG_MAX && 1u << log < n)
        log++;
    return log;
}

/* Sizes of the rings. False: out of range. */
static bool set_sizes(struct rdma_drv_qp *qp)
{
    const struct rdma_drv_qp_params *p = &qp->params;
    const uint32_t inlined = inline_segments(p->inline_bytes);
    const uint32_t data = inlined > p->send_sges ? inlined : p->send_sges;
    const uint32_t blocks = wqe_blocks(3 + data); /* control, remote, atomic */
    qp->rq_entry_log = log_of(p->receive_sges);
    qp->rq_log = log_of(p->n_receives);
    if (p->n_sends > 1u << RDMA_RING_LOG_MAX || blocks > RDMA_WQE_BLOCKS_MAX ||
        p->inline_bytes > qp->rdma->limits.inline_bytes || p->send_sges > RDMA_SGES_MAX)
        return false;
    qp->sq_log = log_of(p->n_sends * blocks);
    return qp->sq_log <= RDMA_RING_LOG_MAX && qp->rq_log <= RDMA_RING_LOG_MAX &&
           qp->rq_entry_log <= 4;
}

static void release(struct rdma_drv_qp *qp)
{
    struct rdma_drv *rdma = qp->rdma;
    rdma_drv_memory_free(rdma, &qp->sq);
    rdma_drv_memory_free(rdma, &qp->rq);
    rdma_drv_memory_free(rdma, &qp->record);
    k_free(qp->send_id);
    k_free(qp->send_blocks);
    k_free(qp->receive_id);
    rdma->n_objects--;
    k_free(qp);
}

static int allocate(struct rdma_drv_qp *qp)
{
    struct rdma_drv *rdma = qp->rdma;
    int error = set_sizes(qp) ? 0 : -EINVAL;
    if (error == 0)
        error = rdma_drv_memory_alloc(rdma, &qp->sq, (size_t)RDMA_WQE_BLOCK_BYTES << qp->sq_log);
    if (error == 0)
        error = rdma_drv_memory_alloc(rdma, &qp->rq,
                                      (size_t)SEGMENT_BYTES << (qp->rq_entry_log + qp->rq_log));
    if (error == 0)
        error = rdma_drv_memory_alloc(rdma, &qp->record, sizeof(uint32_t));
    if (error != 0)
        return error;
    qp->send_id = k_zalloc(sizeof *qp->send_id << qp->sq_log);
    qp->send_blocks = k_zalloc(sizeof *qp->send_blocks << qp->sq_log);
    qp->receive_id = k_zalloc(sizeof *qp->receive_id << qp->rq_log);
    return 0;
}

int rdma_drv_qp_new(struct rdma_drv *rdma, const struct rdma_drv_qp_params *params,
                    struct rdma_drv_qp **out)
{
    struct rdma_drv_qp *qp = k_zalloc(sizeof *qp);
    *qp = (struct rdma_drv_qp){ .rdma = rdma, .params = *params };
    rdma->n_objects++;
    int error = allocate(qp);
    struct rdma_command command = { .opcode = RDMA_CREATE_QP,
                                    .log_entries = qp->sq_log,
                                    .iova = qp->sq.dma,
                                    .rq_iova = qp->rq.dma,
                                    .record_iova = qp->record.dma,
                                    .pd = params->pd,
                                    .send_cq = params->send_cq->number,
                                    .receive_cq = params->receive_cq->number,
                                    .rq_log = qp->rq_log,
                                    .rq_entry_log = qp->rq_entry_log };
    if (error == 0)
        error = rdma_drv_command(rdma, &command);
    if (error != 0) {
        release(qp);
        return error;
    }
    qp->number = command.number;
    qp->psn = qp->number * 4099 & RDMA_PSN_MASK; /* not the same for all */
    rdma->qp[qp->number] = qp;
    *out = qp;
    return 0;
}

void rdma_drv_qp_free(struct rdma_drv_qp *qp)
{
    struct rdma_command command = { .opcode = RDMA_DESTROY_QP, .number = qp->number };
    const int error = rdma_drv_command(qp->rdma, &command);
    if (error != 0 && error != -ENODEV)
        k_warn(qp->rdma->kernel, "rdma: a queue pair could not be destroyed (%d)", error);
    qp->rdma->qp[qp->number] = NULL;
    release(qp);
}

/* ---- Connection ------------------------------------------------------------------------------ */

static uint8_t at_most(uint8_t wanted, uint32_t most)
{
    return wanted < most ? wanted : (uint8_t)most;
}

struct rdma_drv_endpoint rdma_drv_endpoint(const struct rdma_drv_qp *qp,
                                           const struct rdma_drv_connection *c)
{
    const uint32_t most = qp->rdma->limits.reads;
    return (struct rdma_drv_endpoint){ .lid = qp->rdma->lid,
                                       .qp = qp->number,
                                       .psn = qp->psn,
                                       .responder_resources = at_most(c->responder_resources, most),
                                       .initiator_depth = at_most(c->initiator_depth, most) };
}

static uint8_t mtu_code(uint32_t bytes)
{
    uint8_t code = RDMA_MTU_CODE_MIN;
    while (code < RDMA_MTU_CODE_MAX && RDMA_MTU_BYTES(code) < bytes)
        code++;
    return code;
}

int rdma_drv_qp_modify(struct rdma_drv_qp *qp, enum rdma_qp_state state)
{
    struct rdma_command command = { .opcode = RDMA_MODIFY_QP,
                                    .number = qp->number,
                                    .state = (uint8_t)state,
                                    .access = qp->params.access };
    const int error = rdma_drv_command(qp->rdma, &command);
    if (error == 0 && state == RDMA_QP_ERR)
        rdma_drv_qp_failed(qp);
    return error;
}

int rdma_drv_connect(struct rdma_drv_qp *qp, const struct rdma_drv_endpoint *peer,
                     const struct rdma_drv_connection *c)
{
    /* Each end's numbers are limited by its adapter, then by the peer's (12.7.29, 12.7.30). */
    const struct rdma_drv_endpoint own = rdma_drv_endpoint(qp, c);
    struct rdma_command to_rtr = { .opcode = RDMA_MODIFY_QP,
                                   .number = qp->number,
                                   .state = RDMA_QP_RTR,
                                   .access = qp->params.access,
                                   .mtu = mtu_code(c->mtu_bytes),
                                   .lid = peer->lid,
                                   .destination_qp = peer->qp,
                                   .receive_psn = peer->psn,
                                   .remote_reads = at_most(own.responder_resources,
                                                           peer->initiator_depth),
                                   .rnr_timer = c->rnr_timer };
    struct rdma_command to_rts = { .opcode = RDMA_MODIFY_QP,
                                   .number = qp->number,
                                   .state = RDMA_QP_RTS,
                                   .send_psn = qp->psn,
                                   .timeout = c->timeout,
                                   .retries = c->retries,
                                   .rnr_retries = c->rnr_retries,
                                   .reads = at_most(own.initiator_depth,
                                                    peer->responder_resources) };
    int error = rdma_drv_qp_modify(qp, RDMA_QP_INIT);
    if (error == 0)
        error = rdma_drv_command(qp->rdma, &to_rtr);
    if (error == 0)
        error = rdma_drv_command(qp->rdma, &to_rts);
    return error;
}

int rdma_drv_qp_state(struct rdma_drv_qp *qp)
{
    struct rdma_command command = { .opcode = RDMA_QUERY_QP, .number = qp->number };
    const int error = rdma_drv_command(qp->rdma, &command);
    return error == 0 ? command.state : error;
}

/* ---- Sends ----------------------------------------------------------------------------------- */

static bool is_atomic(enum rdma_opcode opcode)
{
    return opcode == RDMA_OP_COMPARE_SWAP || opcode == RDMA_OP_FETCH_ADD;
}

/* Returns the number of segments. */
static uint32_t build(const struct rdma_drv_qp *qp, const struct rdma_drv_send *send, uint8_t *wqe)
{
    struct rdma_wqe_control control = { .opcode = (uint8_t)send->opcode,
                                        .index = qp->sq_tail,
                                        .qp = qp->number,
                                        .immediate = send->immediate };
    uint32_t n = 1;
    if (send->opcode >= RDMA_OP_WRITE) {
        const struct rdma_wqe_remote remote = { .va = send->remote_va, .rkey = send->rkey };
        memcpy(wqe + SEGMENT_BYTES * n++, &remote, sizeof remote);
    }
    if (is_atomic(send->opcode)) {
        const struct rdma_wqe_atomic atomic = { send->swap_or_add, send->compare };
        memcpy(wqe + SEGMENT_BYTES * n++, &atomic, sizeof atomic);
    }
    if (send->inline_data != NULL) {
        const uint32_t head = RDMA_WQE_INLINE | send->inline_bytes;
        memcpy(wqe + SEGMENT_BYTES * n, &head, sizeof head);
        memcpy(wqe + SEGMENT_BYTES * n + sizeof head, send->inline_data, send->inline_bytes);
        n += inline_segments(send->inline_bytes);
    }
    for (uint32_t i = 0; send->inline_data == NULL && i < send->n_sges; i++) {
        const struct rdma_wqe_data data = { send->sge[i].bytes, send->sge[i].key, send->sge[i].va };
        memcpy(wqe + SEGMENT_BYTES * n++, &data, sizeof data);
    }
    control.n_segments = (uint8_t)n;
    control.flags = (uint8_t)((send->signaled ? RDMA_WQE_COMPLETION : 0) |
                              (send->solicited ? RDMA_WQE_SOLICITED : 0) |
                              (send->fence ? RDMA_WQE_FENCE : 0));
    memcpy(wqe, &control, sizeof control);
    return n;
}

int rdma_drv_post_send(struct rdma_drv_qp *qp, const struct rdma_drv_send *send)
{
    struct rdma_drv *rdma = qp->rdma;
    const uint32_t mask = (1u << qp->sq_log) - 1, first = qp->sq_tail & mask;
    uint8_t wqe[RDMA_WQE_BLOCKS_MAX * RDMA_WQE_BLOCK_BYTES] = { 0 };
    if (rdma_drv_gone(rdma))
        return -ENODEV;
    if (send->inline_data != NULL ? send->inline_bytes > qp->params.inline_bytes
                                  : send->n_sges > qp->params.send_sges)
        return -EINVAL;
    const uint32_t n = wqe_blocks(build(qp, send, wqe));
    if ((uint16_t)(qp->sq_tail - qp->sq_head) + n > 1u << qp->sq_log)
        return -EBUSY;
    k_compute(rdma->kernel, rdma->costs->rdma_post_cycles);
    qp->send_id[first] = send->id;
    qp->send_blocks[first] = (uint8_t)n;
    qp->sq_tail = (uint16_t)(qp->sq_tail + n);
    for (uint32_t i = 0; i < n; i++)
        k_store(rdma->kernel,
                kaddr_add(qp->sq.at, (uint64_t)((first + i) & mask) * RDMA_WQE_BLOCK_BYTES),
                wqe + (size_t)i * RDMA_WQE_BLOCK_BYTES, RDMA_WQE_BLOCK_BYTES);
    rdma->stats.sends++;
    if (qp->params.blueflame && n * RDMA_WQE_BLOCK_BYTES <= RDMA_BLUEFLAME_BYTES) {
        rdma->stats.blueflame++;
        k_write_lines(rdma->pci, rdma->pci->bar_base[0] + RDMA_BLUEFLAME(qp->number), wqe,
                      (size_t)n * RDMA_WQE_BLOCK_BYTES);
    } else {
        k_writel(rdma->pci, 0, RDMA_DOORBELL_SQ(qp->number), qp->sq_tail);
    }
    return 0;
}

/* ---- Receives -------------------------------------------------------------------------------- */

int rdma_drv_post_receive(struct rdma_drv_qp *qp, const struct rdma_drv_receive *receive)
{
    struct rdma_drv *rdma = qp->rdma;
    const uint32_t slot = qp->rq_tail & ((1u << qp->rq_log) - 1);
    struct rdma_wqe_data entry[16] = { { 0 } };
    const size_t entry_bytes = (size_t)SEGMENT_BYTES << qp->rq_entry_log;
    if (rdma_drv_gone(rdma))
        return -ENODEV;
    if (receive->n_sges > qp->params.receive_sges)
        return -EINVAL;
    if (qp->rq_tail - qp->rq_head >= 1u << qp->rq_log)
        return -EBUSY;
    for (uint32_t i = 0; i < receive->n_sges; i++)
        entry[i] = (struct rdma_wqe_data){ receive->sge[i].bytes, receive->sge[i].key,
                                           receive->sge[i].va };
    k_compute(rdma->kernel, rdma->costs->rdma_post_cycles);
    qp->receive_id[slot] = receive->id;
    qp->rq_tail++;
    k_store(rdma->kernel, kaddr_add(qp->rq.at, slot * entry_bytes), entry, entry_bytes);
    k_store(rdma->kernel, qp->record.at, &qp->rq_tail, sizeof qp->rq_tail);
    if (qp->failed)
        k_writel(rdma->pci, 0, RDMA_DOORBELL_RQ(qp->number), 0);
    rdma->stats.receives++;
    return 0;
}

/* ---- Errors ---------------------------------------------------------------------------------- */

void rdma_drv_qp_failed(struct rdma_drv_qp *qp)
{
    if (qp->failed || qp->rdma->gone)
        return;
    qp->failed = true;
    k_writel(qp->rdma->pci, 0, RDMA_DOORBELL_RQ(qp->number), 0);
}

/* ---- Completions ----------------------------------------------------------------------------- */

static bool complete_receive(struct rdma_drv_qp *qp, const struct rdma_cqe *cqe,
                             struct rdma_drv_wc *wc)
{
    if (qp->rq_head == qp->rq_tail || (uint16_t)qp->rq_head != cqe->wqe_index)
        return false;
    wc->id = qp->receive_id[qp->rq_head++ & ((1u << qp->rq_log) - 1)];
    return true;
}

/* With it, all before it are complete. */
static bool complete_send(struct rdma_drv_qp *qp, const struct rdma_cqe *cqe,
                          struct rdma_drv_wc *wc)
{
    const uint16_t n = (uint16_t)(qp->sq_tail - qp->sq_head);
    const uint32_t slot = cqe->wqe_index & ((1u << qp->sq_log) - 1);
    if ((uint16_t)(cqe->wqe_index - qp->sq_head) >= n || qp->send_blocks[slot] == 0)
        return false;
    wc->id = qp->send_id[slot];
    qp->sq_head = (uint16_t)(cqe->wqe_index + qp->send_blocks[slot]);
    qp->send_blocks[slot] = 0;
    return true;
}

bool rdma_drv_qp_pending(const struct rdma_drv_qp *qp, const struct rdma_drv_cq *cq)
{
    return (qp->params.send_cq == cq && qp->sq_head != qp->sq_tail) ||
           (qp->params.receive_cq == cq && qp->rq_head != qp->rq_tail);
}

bool rdma_drv_qp_flush(struct rdma_drv_qp *qp, const struct rdma_drv_cq *cq, struct rdma_drv_wc *wc)
{
    struct rdma_cqe cqe = { .status = RDMA_FLUSHED };
    *wc = (struct rdma_drv_wc){ .qp = qp, .status = RDMA_FLUSHED };
    if (qp->params.send_cq == cq && qp->sq_head != qp->sq_tail) {
        cqe.wqe_index = qp->sq_head;
        return complete_send(qp, &cqe, wc);
    }
    if (qp->params.receive_cq != cq || qp->rq_head == qp->rq_tail)
        return false;
    cqe.wqe_index = (uint16_t)qp->rq_head;
    wc->receive = true;
    return complete_receive(qp, &cqe, wc);
}

bool rdma_drv_qp_complete(struct rdma_drv_qp *qp, const struct rdma_cqe *cqe,
                          struct rdma_drv_wc *wc)
{
    *wc = (struct rdma_drv_wc){ .qp = qp,
                                .status = (enum rdma_status)cqe->status,
                                .opcode = cqe->opcode,
                                .receive = (cqe->flags & RDMA_CQE_RECEIVE) != 0,
                                .has_immediate = (cqe->flags & RDMA_CQE_IMMEDIATE) != 0,
                                .bytes = cqe->bytes,
                                .immediate = cqe->immediate };
    if (cqe->status != RDMA_SUCCESS)
        rdma_drv_qp_failed(qp);
    return wc->receive ? complete_receive(qp, cqe, wc) : complete_send(qp, cqe, wc);
}
