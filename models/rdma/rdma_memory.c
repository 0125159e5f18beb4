/*
 * Memory regions of rdma.adapter, and transfers between its buffers and memory.
 *
 * Models: keys with protection domain, access rights and bounds, checked for every piece of every
 *   transfer; regions that are contiguous, or described by a table of page addresses in host
 *   memory, of which a direct-mapped cache on the adapter keeps groups of eight.
 * Does not model: memory windows, on-demand paging, tables of several levels.
 * Timing: a translation that is cached takes no time; others a read of 64 bytes of the table, for
 *   which all that wait for the same group wait together. The pieces of a transfer follow each
 *   other.
 * Sources: IBTA 10.6 (memory management); docs/models/rdma.md.
 */
#include "models/rdma/rdma_internal.h"

struct piece {
    struct pcie_dma_request request;
    struct rdma_move *move;
    struct rdma_mr *mr;
};

static void move_step(struct rdma_move *move);

struct sim_pool *rdma_pieces(struct sim *sim)
{
    return sim_pool_shared(sim, "rdma piece", sizeof(struct piece));
}

/* ---- Keys ------------------------------------------------------------------------------------ */

struct rdma_mr *rdma_mr_find(const struct rdma *rdma, uint32_t key)
{
    const uint32_t idx = key / RDMA_KEY_VARIANTS;
    struct rdma_mr *mr = idx < rdma->params.n_keys ? &rdma->mr[idx] : NULL;
    return mr != NULL && mr->there && mr->key == key ? mr : NULL;
}

static struct rdma_mr *allowed(const struct rdma *rdma, uint32_t pd, const struct rdma_sge *sge,
                               uint8_t access)
{
    struct rdma_mr *mr = rdma_mr_find(rdma, sge->key);
    if (mr == NULL || mr->pd != pd || (mr->access & access) != access)
        return NULL;
    const uint64_t offset = sge->va - mr->va;
    return offset < mr->bytes && sge->bytes <= mr->bytes - offset ? mr : NULL;
}

bool rdma_access_allowed(const struct rdma *rdma, uint32_t pd, const struct rdma_sge *sge,
                         uint8_t access)
{
    return allowed(rdma, pd, sge, access) != NULL;
}

static void mr_unuse(struct rdma *rdma, struct rdma_mr *mr)
{
    if (--mr->n_users == 0)
        rdma_command_quiet(rdma);
}

/* ---- Translation ----------------------------------------------------------------------------- */

static void filled(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct rdma_mtt *mtt = SIM_CONTAINER(request, struct rdma_mtt, request);
    struct rdma_move *move = mtt->wait_head;
    struct rdma_mr *mr = mtt->mr; /* a waiting transfer may fill it with another one's pages */
    const uint64_t tag = mtt->tag;
    const bool good = status == PCIE_DMA_OK && mr->there;
    mtt->state = good ? RDMA_MTT_VALID : RDMA_MTT_EMPTY;
    mtt->wait_head = NULL;
    mtt->wait_tail = &mtt->wait_head;
    /* Each waiting transfer takes what it needs before another one may replace it. */
    while (move != NULL) {
        struct rdma_move *next = move->next;
        if (!good && move->wanted == tag)
            move->fault = RDMA_FAULT_BUS;
        move_step(move);
        move = next;
    }
    mr_unuse(mtt->rdma, mr);
}

static void fill(struct rdma *rdma, struct rdma_mtt *mtt, struct rdma_mr *mr, uint64_t tag,
                 uint64_t group)
{
    const uint64_t page_bytes = UINT64_C(1) << mr->page_log;
    const uint64_t n = (mr->va % page_bytes + mr->bytes + page_bytes - 1) >> mr->page_log;
    const uint64_t first = group * RDMA_MTT_GROUP;
    mtt->tag = tag;
    mtt->state = RDMA_MTT_FILLING;
    mtt->rdma = rdma;
    mtt->mr = mr;
    mr->n_users++;
    rdma->stats.translation_misses++;
    mtt->request = (struct pcie_dma_request){
        .iova = { mr->iova + 8 * first },
        .bytes = 8 * SIM_MIN(n - first, RDMA_MTT_GROUP),
        .buffer = (uint8_t *)mtt->page,
        .independent = true,
        .done = filled,
    };
    pcie_dma_read(&rdma->function.dma, &mtt->request, rdma_now(rdma));
}

/* The address of a page; false: the transfer waits for it. */
static bool translate(struct rdma_move *move, struct rdma_mr *mr, uint64_t page, uint64_t *iova)
{
    struct rdma *rdma = move->qp->rdma;
    const uint64_t group = page / RDMA_MTT_GROUP, idx = (uint64_t)(mr - rdma->mr);
    const uint64_t tag = idx << 40 | group;
    struct rdma_mtt *mtt = &rdma->mtt[(idx * 31 + group) % rdma->params.mtt_entries];
    if (mtt->state == RDMA_MTT_VALID && mtt->tag == tag) {
        *iova = mtt->page[page % RDMA_MTT_GROUP];
        rdma->stats.translation_hits++;
        return true;
    }
    move->wanted = tag;
    move->next = NULL;
    if (mtt->state != RDMA_MTT_FILLING)
        mtt->wait_head = NULL, mtt->wait_tail = &mtt->wait_head;
    *mtt->wait_tail = move;
    mtt->wait_tail = &move->next;
    if (mtt->state != RDMA_MTT_FILLING)
        fill(rdma, mtt, mr, tag, group);
    return false;
}

void rdma_mtt_forget(struct rdma *rdma, const struct rdma_mr *mr)
{
    for (uint32_t i = 0; i < rdma->params.mtt_entries; i++)
        if (rdma->mtt[i].state == RDMA_MTT_VALID && rdma->mtt[i].mr == mr)
            rdma->mtt[i].state = RDMA_MTT_EMPTY;
}

/* ---- Transfers ------------------------------------------------------------------------------- */

static void move_unuse(struct rdma_move *move)
{
    struct rdma_qp *qp = move->qp;
    if (--move->in_flight != 0 || !move->all_issued)
        return;
    move->ended(move); /* may free it */
    rdma_qp_ended(qp);
}

static void piece_done(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct piece *piece = SIM_CONTAINER(request, struct piece, request);
    struct rdma_move *move = piece->move;
    struct rdma *rdma = move->qp->rdma;
    if (status != PCIE_DMA_OK && move->fault == RDMA_FAULT_NONE)
        move->fault = RDMA_FAULT_BUS;
    mr_unuse(rdma, piece->mr);
    sim_pool_put(rdma->pieces, piece);
    move_unuse(move);
}

static void issue(struct rdma_move *move, struct rdma_mr *mr, uint64_t iova, uint32_t bytes)
{
    struct rdma *rdma = move->qp->rdma;
    struct piece *piece = sim_pool_get(rdma->pieces);
    piece->move = move;
    piece->mr = mr;
    piece->request = (struct pcie_dma_request){
        .iova = { iova },
        .bytes = bytes,
        .buffer = move->buffer + move->at,
        .done = piece_done,
    };
    mr->n_users++;
    move->in_flight++;
    move->at += bytes;
    if (move->write)
        pcie_dma_write(&rdma->function.dma, &piece->request, rdma_now(rdma));
    else
        pcie_dma_read(&rdma->function.dma, &piece->request, rdma_now(rdma));
}

/* The segment that the next byte lies in, and its place there; NULL: there are too few. */
static const struct rdma_sge *segment_at(const struct rdma_move *move, uint64_t *offset)
{
    *offset = move->offset + move->at;
    for (uint32_t i = 0; i < move->n_sges; i++) {
        if (*offset < move->sge[i].bytes)
            return &move->sge[i];
        *offset -= move->sge[i].bytes;
    }
    return NULL;
}

/* False: it waits for a translation, or has a fault. */
static bool next_piece(struct rdma_move *move)
{
    struct rdma_qp *qp = move->qp;
    uint64_t offset, iova;
    const struct rdma_sge *sge = segment_at(move, &offset);
    struct rdma_mr *mr = sge != NULL ? allowed(qp->rdma, qp->pd, sge, move->access) : NULL;
    if (mr == NULL) {
        move->fault = RDMA_FAULT_PROTECTION;
        return false;
    }
    uint64_t bytes = SIM_MIN(sge->bytes - offset, move->bytes - move->at);
    const uint64_t at = sge->va + offset - mr->va;
    if (mr->page_log == 0) {
        issue(move, mr, mr->iova + at, (uint32_t)bytes);
        return true;
    }
    const uint64_t page_bytes = UINT64_C(1) << mr->page_log;
    const uint64_t place = mr->va % page_bytes + at;
    if (!translate(move, mr, place >> mr->page_log, &iova))
        return false;
    bytes = SIM_MIN(bytes, page_bytes - place % page_bytes);
    issue(move, mr, iova + place % page_bytes, (uint32_t)bytes);
    return true;
}

static void move_step(struct rdma_move *move)
{
    while (move->fault == RDMA_FAULT_NONE && move->at < move->bytes) {
        if (move->generation != move->qp->generation)
            move->fault = RDMA_FAULT_CLOSED;
        else if (!next_piece(move) && move->fault == RDMA_FAULT_NONE)
            return;
    }
    if (move->issued != NULL)
        move->issued(move);
    move->all_issued = true;
    move_unuse(move);
}

void rdma_move_start(struct rdma_move *move)
{
    move->generation = move->qp->generation;
    move->fault = RDMA_FAULT_NONE;
    move->at = 0;
    move->in_flight = 1; /* none may end it before all are issued */
    move->all_issued = false;
    move->qp->n_under_way++;
    move_step(move);
}
