/*
 * Commands of rdma.adapter: queues, regions, queue pairs.
 *
 * Models: command blocks in host memory, one after the other: read, firmware, written back; what is
 *   destroyed is gone when nothing of it is under way any more.
 * Does not model: several command slots, pages that the firmware borrows from the host.
 * Timing: read of the block, command_latency, until nothing is under way if something is destroyed,
 *   the answer's write.
 * Sources: IBTA 11.2 (verbs); docs/models/rdma.md.
 */
#include <string.h>

#include "models/rdma/rdma_internal.h"

#define PAGE_LOG_MIN 12u
#define PAGE_LOG_MAX 30u
#define MR_BYTES_MAX (UINT64_C(1) << 46)

/* ---- Queues ---------------------------------------------------------------------------------- */

static uint8_t create_eq(struct rdma *rdma, struct rdma_command *c)
{
    if (c->number >= rdma->params.n_eqs || c->log_entries > RDMA_RING_LOG_MAX ||
        c->target >= rdma->params.n_vectors || c->iova % RDMA_ALIGNMENT_BYTES != 0)
        return RDMA_COMMAND_BAD;
    struct rdma_eq *eq = &rdma->eq[c->number];
    if (eq->there)
        return RDMA_COMMAND_BUSY;
    *eq = (struct rdma_eq){ .there = true,
                            .number = c->number,
                            .vector = c->target,
                            .log = c->log_entries,
                            .iova = c->iova };
    return RDMA_COMMAND_OK;
}

static uint8_t create_cq(struct rdma *rdma, struct rdma_command *c)
{
    if (c->target >= rdma->params.n_eqs || c->log_entries > RDMA_RING_LOG_MAX ||
        c->iova % RDMA_ALIGNMENT_BYTES != 0 || c->record_iova % sizeof(uint32_t) != 0)
        return RDMA_COMMAND_BAD;
    if (!rdma->eq[c->target].there)
        return RDMA_COMMAND_NOT_FOUND;
    uint32_t number = 0;
    while (number < rdma->params.n_cqs && rdma->cq[number].there)
        number++;
    if (number == rdma->params.n_cqs)
        return RDMA_COMMAND_NO_RESOURCE;
    struct rdma_cq *cq = &rdma->cq[number];
    *cq = (struct rdma_cq){ .rdma = rdma,
                            .there = true,
                            .number = number,
                            .log = c->log_entries,
                            .eq = &rdma->eq[c->target],
                            .iova = c->iova,
                            .record_iova = c->record_iova,
                            .wait_tail = &cq->wait_head };
    cq->eq->n_users++;
    c->number = number;
    return RDMA_COMMAND_OK;
}

static uint8_t destroy_eq(struct rdma *rdma, const struct rdma_command *c)
{
    struct rdma_eq *eq = c->number < rdma->params.n_eqs ? &rdma->eq[c->number] : NULL;
    if (eq == NULL || !eq->there)
        return RDMA_COMMAND_NOT_FOUND;
    if (eq->n_users != 0)
        return RDMA_COMMAND_BUSY;
    eq->there = false;
    rdma->command.busy = &eq->n_dma;
    return RDMA_COMMAND_OK;
}

static uint8_t destroy_cq(struct rdma *rdma, const struct rdma_command *c)
{
    struct rdma_cq *cq = c->number < rdma->params.n_cqs ? &rdma->cq[c->number] : NULL;
    if (cq == NULL || !cq->there)
        return RDMA_COMMAND_NOT_FOUND;
    if (cq->n_users != 0)
        return RDMA_COMMAND_BUSY;
    rdma_cq_close(cq);
    cq->eq->n_users--;
    rdma->command.busy = &cq->n_dma;
    return RDMA_COMMAND_OK;
}

/* ---- Protection domains, regions ------------------------------------------------------------- */

static bool pd_there(const struct rdma *rdma, uint32_t pd)
{
    return pd < rdma->params.n_pds && rdma->pd_users[pd] != RDMA_NO_PD;
}

static uint8_t create_pd(struct rdma *rdma, struct rdma_command *c)
{
    for (uint32_t pd = 0; pd < rdma->params.n_pds; pd++)
        if (rdma->pd_users[pd] == RDMA_NO_PD) {
            rdma->pd_users[pd] = 0;
            c->number = pd;
            return RDMA_COMMAND_OK;
        }
    return RDMA_COMMAND_NO_RESOURCE;
}

static uint8_t destroy_pd(struct rdma *rdma, const struct rdma_command *c)
{
    if (!pd_there(rdma, c->number))
        return RDMA_COMMAND_NOT_FOUND;
    if (rdma->pd_users[c->number] != 0)
        return RDMA_COMMAND_BUSY;
    rdma->pd_users[c->number] = RDMA_NO_PD;
    return RDMA_COMMAND_OK;
}

/* Who may be written from afar may be written from here (IBTA 10.6.3.1). */
static bool access_valid(uint8_t access)
{
    const uint8_t remote = RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_REMOTE_ATOMIC;
    return (access & ~RDMA_ACCESS_ALL) == 0 &&
           ((access & remote) == 0 || (access & RDMA_ACCESS_LOCAL_WRITE) != 0);
}

static bool region_valid(const struct rdma_command *c)
{
    if (c->bytes == 0 || c->bytes > MR_BYTES_MAX || c->va + c->bytes - 1 < c->va)
        return false;
    if (c->page_log == 0)
        return c->iova + c->bytes - 1 >= c->iova;
    return c->page_log >= PAGE_LOG_MIN && c->page_log <= PAGE_LOG_MAX &&
           c->iova % sizeof(uint64_t) == 0;
}

static uint8_t create_mr(struct rdma *rdma, struct rdma_command *c)
{
    const uint32_t n = rdma->params.n_keys - 1; /* index 0 is that of RDMA_KEY_NONE */
    if (!access_valid(c->access) || !region_valid(c))
        return RDMA_COMMAND_BAD;
    if (!pd_there(rdma, c->pd))
        return RDMA_COMMAND_NOT_FOUND;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t idx = 1 + (rdma->next_mr + i) % n;
        struct rdma_mr *mr = &rdma->mr[idx];
        if (mr->there)
            continue;
        rdma->next_mr = idx;
        c->key = idx * RDMA_KEY_VARIANTS + c->key % RDMA_KEY_VARIANTS;
        *mr = (struct rdma_mr){ .there = true,
                                .access = c->access,
                                .page_log = c->page_log,
                                .key = c->key,
                                .pd = c->pd,
                                .va = c->va,
                                .bytes = c->bytes,
                                .iova = c->iova };
        rdma->pd_users[c->pd]++;
        return RDMA_COMMAND_OK;
    }
    return RDMA_COMMAND_NO_RESOURCE;
}

static uint8_t destroy_mr(struct rdma *rdma, const struct rdma_command *c)
{
    struct rdma_mr *mr = rdma_mr_find(rdma, c->key);
    if (mr == NULL)
        return RDMA_COMMAND_NOT_FOUND;
    mr->there = false;
    rdma_mtt_forget(rdma, mr);
    rdma->pd_users[mr->pd]--;
    rdma->command.busy = &mr->n_users;
    return RDMA_COMMAND_OK;
}

/* ---- Queue pairs ----------------------------------------------------------------------------- */

static struct rdma_cq *find_cq(struct rdma *rdma, uint32_t number)
{
    return number < rdma->params.n_cqs && rdma->cq[number].there ? &rdma->cq[number] : NULL;
}

static uint8_t create_qp(struct rdma *rdma, struct rdma_command *c)
{
    struct rdma_cq *send_cq = find_cq(rdma, c->send_cq);
    struct rdma_cq *receive_cq = find_cq(rdma, c->receive_cq);
    if (c->log_entries > RDMA_RING_LOG_MAX || c->rq_log > RDMA_RING_LOG_MAX ||
        c->rq_entry_log > RDMA_RQ_ENTRY_LOG || c->iova % RDMA_ALIGNMENT_BYTES != 0 ||
        c->rq_iova % RDMA_ALIGNMENT_BYTES != 0 || c->record_iova % sizeof(uint32_t) != 0)
        return RDMA_COMMAND_BAD;
    if (send_cq == NULL || receive_cq == NULL || !pd_there(rdma, c->pd))
        return RDMA_COMMAND_NOT_FOUND;
    struct rdma_qp *qp = rdma_qp_new(rdma);
    if (qp == NULL)
        return RDMA_COMMAND_NO_RESOURCE;
    qp->pd = c->pd;
    qp->send_cq = send_cq;
    qp->receive_cq = receive_cq;
    qp->sq.iova = c->iova;
    qp->sq.log = c->log_entries;
    qp->rq.iova = c->rq_iova;
    qp->rq.record_iova = c->record_iova;
    qp->rq.log = c->rq_log;
    qp->rq.entry_log = c->rq_entry_log;
    send_cq->n_users++;
    receive_cq->n_users++;
    rdma->pd_users[c->pd]++;
    c->number = qp->number;
    return RDMA_COMMAND_OK;
}

static uint8_t destroy_qp(struct rdma *rdma, const struct rdma_command *c)
{
    struct rdma_qp *qp = rdma_qp_find(rdma, c->number);
    if (qp == NULL)
        return RDMA_COMMAND_NOT_FOUND;
    rdma_qp_close(qp);
    qp->there = false;
    qp->send_cq->n_users--;
    qp->receive_cq->n_users--;
    rdma->pd_users[qp->pd]--;
    rdma->command.busy = &qp->n_under_way;
    return RDMA_COMMAND_OK;
}

static uint8_t modify_qp(struct rdma *rdma, struct rdma_command *c)
{
    struct rdma_qp *qp = rdma_qp_find(rdma, c->number);
    if (qp == NULL)
        return RDMA_COMMAND_NOT_FOUND;
    const uint8_t status = rdma_qp_modify(qp, c);
    if (status == RDMA_COMMAND_OK && c->state == RDMA_QP_RESET)
        rdma->command.busy = &qp->n_under_way;
    return status;
}

static uint8_t query_qp(struct rdma *rdma, struct rdma_command *c)
{
    const struct rdma_qp *qp = rdma_qp_find(rdma, c->number);
    if (qp == NULL)
        return RDMA_COMMAND_NOT_FOUND;
    c->state = qp->state;
    c->send_psn = qp->unacked_psn;
    c->receive_psn = qp->expected_psn;
    return RDMA_COMMAND_OK;
}

static uint8_t set_offload(struct rdma *rdma, const struct rdma_command *c)
{
    struct rdma_offload_command offload;
    memcpy(&offload, c, sizeof(offload));
    return rdma_offload_set(rdma, &offload);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static uint8_t execute(struct rdma *rdma, struct rdma_command *c)
{
    switch (c->opcode) {
    case RDMA_CREATE_EQ: return create_eq(rdma, c);
    case RDMA_CREATE_CQ: return create_cq(rdma, c);
    case RDMA_CREATE_PD: return create_pd(rdma, c);
    case RDMA_CREATE_MR: return create_mr(rdma, c);
    case RDMA_CREATE_QP: return create_qp(rdma, c);
    case RDMA_MODIFY_QP: return modify_qp(rdma, c);
    case RDMA_QUERY_QP: return query_qp(rdma, c);
    case RDMA_DESTROY_EQ: return destroy_eq(rdma, c);
    case RDMA_DESTROY_CQ: return destroy_cq(rdma, c);
    case RDMA_DESTROY_PD: return destroy_pd(rdma, c);
    case RDMA_DESTROY_MR: return destroy_mr(rdma, c);
    case RDMA_DESTROY_QP: return destroy_qp(rdma, c);
    case RDMA_SET_OFFLOAD: return set_offload(rdma, c);
    default: return RDMA_COMMAND_BAD;
    }
}

static void written(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    (void)status; /* nobody is told */
    SIM_CONTAINER(request, struct rdma_command_unit, request)->step = RDMA_STEP_IDLE;
}

static void answer(struct rdma *rdma)
{
    struct rdma_command_unit *unit = &rdma->command;
    unit->step = RDMA_STEP_WRITE;
    unit->busy = NULL;
    unit->request = (struct pcie_dma_request){ .iova = { unit->iova },
                                               .bytes = sizeof(unit->block),
                                               .buffer = (uint8_t *)&unit->block,
                                               .done = written };
    pcie_dma_write(&rdma->function.dma, &unit->request, rdma_now(rdma));
}

static void run(struct sim *sim, struct sim_event *event)
{
    struct rdma *rdma = SIM_CONTAINER(event, struct rdma, command.event);
    struct rdma_command_unit *unit = &rdma->command;
    (void)sim;
    if (unit->step == RDMA_STEP_RUN) {
        unit->block.status = execute(rdma, &unit->block);
        rdma->stats.commands++;
        rdma->stats.failed_commands += unit->block.status != RDMA_COMMAND_OK;
        unit->step = RDMA_STEP_QUIET;
    }
    if (unit->step == RDMA_STEP_QUIET && (unit->busy == NULL || *unit->busy == 0))
        answer(rdma);
}

void rdma_command_quiet(struct rdma *rdma)
{
    struct rdma_command_unit *unit = &rdma->command;
    if (unit->step == RDMA_STEP_QUIET && !sim_event_pending(&unit->event))
        sim_schedule_in(rdma->model->sim, &unit->event, 0);
}

static void block_here(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct rdma *rdma = SIM_CONTAINER(request, struct rdma, command.request);
    struct rdma_command_unit *unit = &rdma->command;
    if (status != PCIE_DMA_OK || unit->step != RDMA_STEP_READ) {
        unit->step = RDMA_STEP_IDLE; /* there is no block to answer in */
        return;
    }
    unit->step = RDMA_STEP_RUN;
    sim_schedule_in(rdma->model->sim, &unit->event, rdma->params.command_ps);
}

void rdma_command_start(struct rdma *rdma, uint64_t iova)
{
    struct rdma_command_unit *unit = &rdma->command;
    if (unit->step != RDMA_STEP_IDLE || iova % RDMA_ALIGNMENT_BYTES != 0) {
        rdma->stats.bad_doorbells++;
        return;
    }
    unit->step = RDMA_STEP_READ;
    unit->iova = iova;
    unit->request = (struct pcie_dma_request){ .iova = { iova },
                                               .bytes = sizeof(unit->block),
                                               .buffer = (uint8_t *)&unit->block,
                                               .independent = true,
                                               .done = block_here };
    pcie_dma_read(&rdma->function.dma, &unit->request, rdma_now(rdma));
}

void rdma_command_init(struct rdma *rdma)
{
    sim_event_init(&rdma->command.event, run);
}

void rdma_command_abort(struct rdma *rdma)
{
    struct rdma_command_unit *unit = &rdma->command;
    sim_cancel(rdma->model->sim, &unit->event);
    unit->busy = NULL;
    unit->low = 0;
    if (unit->step == RDMA_STEP_RUN || unit->step == RDMA_STEP_QUIET)
        unit->step = RDMA_STEP_IDLE;
    else if (unit->step == RDMA_STEP_READ)
        unit->step = RDMA_STEP_WRITE; /* what is read is not run */
}
