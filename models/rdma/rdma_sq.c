/*
 * Send queues of rdma.adapter: how WQEs come to the adapter.
 *
 * Models: doorbells; reads of several blocks at once, as far as the ring goes on; WQEs that wrap
 *   around its end; inline data; an entry of up to four blocks that comes with the BlueFlame write
 *   and is taken without a read if nothing is posted before it. WQEs stay on the adapter until they
 *   are complete, at most wqes_per_queue of a queue pair.
 * Does not model: several UAR pages, send queues that share their doorbell.
 * Timing: doorbell, read of the blocks; the WQE is known when the read has ended, or with the last
 *   bytes of a BlueFlame write.
 * Sources: IBTA 10.7, 11.4.1.1; the mlx5 work queue layout; docs/models/rdma.md.
 */
#include <string.h>

#include "models/rdma/rdma_internal.h"

#define SEGMENT_BYTES  16u
#define BLOCK_SEGMENTS (RDMA_WQE_BLOCK_BYTES / SEGMENT_BYTES)

/* ---- WQEs ------------------------------------------------------------------------------------ */

static uint32_t blocks_of(const struct rdma_wqe_control *control)
{
    return SIM_MAX((control->n_segments + BLOCK_SEGMENTS - 1) / BLOCK_SEGMENTS, 1u);
}

static bool is_atomic(uint8_t opcode)
{
    return opcode == RDMA_OP_COMPARE_SWAP || opcode == RDMA_OP_FETCH_ADD;
}

static bool has_remote(uint8_t opcode)
{
    return opcode >= RDMA_OP_WRITE;
}

/* Inline data, which begins behind its length. */
static enum rdma_status parse_inline(const struct rdma_qp *qp, struct rdma_send *send,
                                     const uint8_t *segment, uint32_t n_segments, uint32_t bytes)
{
    if (send->opcode >= RDMA_OP_READ || bytes > qp->rdma->params.inline_bytes ||
        sizeof(bytes) + bytes > n_segments * SEGMENT_BYTES)
        return RDMA_LOCAL_QP;
    memcpy(send->data, segment + sizeof(bytes), bytes);
    send->inlined = true;
    send->bytes = bytes;
    return RDMA_SUCCESS;
}

static enum rdma_status parse_data(const struct rdma_qp *qp, struct rdma_send *send,
                                   const uint8_t *segment, uint32_t n_segments)
{
    uint64_t total = 0;
    if (n_segments > RDMA_SGES_MAX)
        return RDMA_LOCAL_QP;
    for (uint32_t i = 0; i < n_segments; i++) {
        struct rdma_wqe_data data;
        memcpy(&data, segment + (size_t)i * SEGMENT_BYTES, sizeof(data));
        if ((data.bytes & RDMA_WQE_INLINE) != 0)
            return i != 0
                       ? RDMA_LOCAL_QP
                       : parse_inline(qp, send, segment, n_segments, data.bytes & ~RDMA_WQE_INLINE);
        send->sge[i] = (struct rdma_sge){ .bytes = data.bytes, .key = data.lkey, .va = data.va };
        total += data.bytes;
    }
    send->n_sges = n_segments;
    if (total > RDMA_MESSAGE_MAX)
        return RDMA_LOCAL_LENGTH;
    send->bytes = (uint32_t)total;
    return is_atomic(send->opcode) && (total != sizeof(uint64_t) || n_segments != 1)
               ? RDMA_LOCAL_LENGTH
               : RDMA_SUCCESS;
}

static enum rdma_status parse(const struct rdma_qp *qp, struct rdma_send *send, const uint8_t *wqe,
                              const struct rdma_wqe_control *control)
{
    const uint32_t n_fixed = 1u + has_remote(send->opcode) + is_atomic(send->opcode);
    struct rdma_wqe_remote remote;
    struct rdma_wqe_atomic atomic;
    if (send->opcode < RDMA_OP_SEND || send->opcode > RDMA_OP_FETCH_ADD ||
        control->n_segments < n_fixed || control->qp != qp->number ||
        control->index != send->index || (send->opcode >= RDMA_OP_READ && qp->reads_max == 0))
        return RDMA_LOCAL_QP;
    if (has_remote(send->opcode)) {
        memcpy(&remote, wqe + SEGMENT_BYTES, sizeof(remote));
        send->va = remote.va;
        send->rkey = remote.rkey;
    }
    if (is_atomic(send->opcode)) {
        memcpy(&atomic, wqe + 2u * SEGMENT_BYTES, sizeof(atomic));
        send->swap_or_add = atomic.swap_or_add;
        send->compare = atomic.compare;
    }
    return parse_data(qp, send, wqe + (size_t)n_fixed * SEGMENT_BYTES,
                      control->n_segments - n_fixed);
}

/* Takes the WQE, whose blocks are all there; fits: it does not go beyond what is posted. */
static void take(struct rdma_qp *qp, const uint8_t *wqe, bool fits)
{
    struct rdma_send *send = sim_pool_get(qp->rdma->sends);
    struct rdma_wqe_control control;
    memcpy(&control, wqe, sizeof(control));
    memset(send, 0, offsetof(struct rdma_send, sge));
    send->opcode = control.opcode;
    send->flags = control.flags;
    send->immediate = control.immediate;
    send->index = qp->sq.fetched;
    send->status = (uint8_t)(fits ? parse(qp, send, wqe, &control) : RDMA_LOCAL_QP);
    qp->sq.fetched = (uint16_t)(qp->sq.fetched + (fits ? blocks_of(&control) : 1u));
    qp->rdma->stats.wqes++;
    rdma_requester_add(qp, send);
}

/* ---- Fetching -------------------------------------------------------------------------------- */

static bool has_room(const struct rdma_qp *qp)
{
    return qp->state == RDMA_QP_ERR ||
           (qp->state == RDMA_QP_RTS && qp->n_sends < qp->rdma->params.sends_max);
}

/* Takes what lies in the buffer; a WQE of which blocks are missing stays. */
static void take_buffered(struct rdma_qp *qp)
{
    struct rdma_sq *sq = &qp->sq;
    while (sq->n_buffered != 0 && has_room(qp)) {
        const struct rdma_wqe_control *control = (const void *)sq->buffer;
        const uint32_t n_posted = (uint16_t)(sq->tail - sq->fetched);
        uint32_t n = blocks_of(control);
        const bool fits = n <= RDMA_WQE_BLOCKS_MAX && n <= n_posted;
        if (!fits)
            n = 1;
        if (n > sq->n_buffered)
            return;
        take(qp, sq->buffer, fits);
        if (sq->n_buffered == 0) /* it ended the queue pair */
            return;
        sq->n_buffered -= n;
        memmove(sq->buffer, sq->buffer + (size_t)n * RDMA_WQE_BLOCK_BYTES,
                (size_t)sq->n_buffered * RDMA_WQE_BLOCK_BYTES);
    }
}

static void fetched(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct rdma_qp *qp = SIM_CONTAINER(request, struct rdma_qp, sq.request);
    struct rdma_sq *sq = &qp->sq;
    sq->fetching = false;
    if (sq->generation == qp->generation && status == PCIE_DMA_OK) {
        sq->n_buffered += sq->n_fetch;
        rdma_sq_fetch(qp);
    } else if (sq->generation == qp->generation) {
        sq->n_buffered = 0; /* nobody will know what was posted */
        sq->fetched = sq->asked = sq->tail;
        rdma_qp_error(qp, true);
    }
    rdma_qp_ended(qp);
}

static void read_blocks(struct rdma_qp *qp)
{
    struct rdma *rdma = qp->rdma;
    struct rdma_sq *sq = &qp->sq;
    const uint32_t at = sq->asked & ((1u << sq->log) - 1);
    uint32_t n = (uint16_t)(sq->tail - sq->asked);
    n = SIM_MIN(n, (1u << sq->log) - at);
    n = SIM_MIN(n, rdma->params.fetch_blocks);
    sq->n_fetch = n;
    sq->asked = (uint16_t)(sq->asked + n);
    sq->fetching = true;
    sq->generation = qp->generation;
    qp->n_under_way++;
    rdma->stats.wqe_fetches++;
    sq->request = (struct pcie_dma_request){
        .iova = { sq->iova + (uint64_t)at * RDMA_WQE_BLOCK_BYTES },
        .bytes = (uint64_t)n * RDMA_WQE_BLOCK_BYTES,
        .buffer = sq->buffer + (size_t)sq->n_buffered * RDMA_WQE_BLOCK_BYTES,
        .independent = true,
        .done = fetched,
    };
    pcie_dma_read(&rdma->function.dma, &sq->request, rdma_now(rdma));
}

void rdma_sq_fetch(struct rdma_qp *qp)
{
    struct rdma_sq *sq = &qp->sq;
    if (sq->fetching)
        return;
    sq->fetching = true; /* what is taken may want more */
    take_buffered(qp);
    sq->fetching = false;
    if (has_room(qp) && sq->asked != sq->tail && sq->n_buffered < RDMA_WQE_BLOCKS_MAX)
        read_blocks(qp);
}

/* ---- Doorbells ------------------------------------------------------------------------------- */

void rdma_sq_doorbell(struct rdma_qp *qp, uint16_t tail)
{
    struct rdma_sq *sq = &qp->sq;
    const uint16_t was = (uint16_t)(sq->tail - sq->fetched), is = (uint16_t)(tail - sq->fetched);
    if (is < was || is > 1u << sq->log || qp->state < RDMA_QP_RTS) {
        qp->rdma->stats.bad_doorbells++;
        return;
    }
    sq->tail = tail;
    rdma_sq_fetch(qp);
}

/* The entry is there: takes it, or has it read with what is posted before it. */
static void blueflame_rings(struct rdma_qp *qp)
{
    struct rdma_sq *sq = &qp->sq;
    const struct rdma_wqe_control *control = (const void *)sq->blueflame;
    const uint32_t n = blocks_of(control);
    sq->blueflame_mask = 0;
    if (qp->state != RDMA_QP_RTS || sq->fetching || sq->tail != sq->fetched ||
        control->index != sq->fetched || n > 1u << sq->log || !has_room(qp)) {
        rdma_sq_doorbell(qp, (uint16_t)(control->index + n));
        return;
    }
    sq->tail = sq->asked = (uint16_t)(sq->fetched + n);
    qp->rdma->stats.blueflame++;
    take(qp, sq->blueflame, true);
}

void rdma_sq_blueflame(struct rdma_qp *qp, unsigned offset, uint32_t value)
{
    struct rdma_sq *sq = &qp->sq;
    const unsigned block = offset / RDMA_WQE_BLOCK_BYTES;
    memcpy(sq->blueflame + offset, &value, sizeof(value));
    if ((offset + sizeof(value)) % RDMA_WQE_BLOCK_BYTES != 0)
        return;
    /* A first block begins anew where another one was never completed. */
    if (block == 0 && (sq->blueflame_mask & 1) != 0)
        sq->blueflame_mask = 0;
    sq->blueflame_mask |= 1u << block;
    const uint32_t n = blocks_of((const void *)sq->blueflame);
    const uint32_t all = n <= RDMA_BLUEFLAME_BYTES / RDMA_WQE_BLOCK_BYTES ? (1u << n) - 1 : 0;
    if (all != 0 && (sq->blueflame_mask & all) == all)
        blueflame_rings(qp);
}
