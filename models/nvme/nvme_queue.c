/*
 * Queues of nvme.controller.
 *
 * Models: submission and completion queues at any address, doorbells, completions with phase tag
 *   that wait for room, error completions. Arbitration: nvme_arbitration.c; interrupts:
 *   nvme_interrupt.c.
 * Does not model: shadow doorbells; identifiers of commands in use twice are not looked for.
 * Timing: commands begin command_interval after one another at the earliest. A completion goes out
 *   when the last data has been handed to the link, its message behind it: all are posted writes,
 *   in that order.
 * Sources: NVM Express 1.3, sections 4.1 (queues), 4.6 (completions).
 */
#include <stdlib.h>
#include <string.h>

#include "models/nvme/nvme_internal.h"

/* ---- Completion ------------------------------------------------------------------------------ */

static bool cq_full(const struct nvme_cq *cq)
{
    return (cq->tail + 1) % cq->entries == cq->head;
}

static void completion_written(struct nvme_dma *dma, enum pcie_dma_status status)
{
    struct nvme_command *command = SIM_CONTAINER(dma, struct nvme_command, completion);
    struct nvme *nvme = command->nvme;
    struct nvme_cq *cq = &nvme->cq[command->sq->cq];
    if (status != PCIE_DMA_OK)
        nvme_fatal(nvme);
    else if (nvme_running(nvme))
        nvme_interrupt(nvme, cq);
    nvme_command_free(command);
}

static void write_completion(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    struct nvme_sq *sq = command->sq;
    struct nvme_cq *cq = &nvme->cq[sq->cq];
    struct nvme_cqe cqe = { .result = command->result,
                            .sq_head = (uint16_t)sq->head,
                            .sq_id = sq->number,
                            .cid = command->sqe.cid,
                            .status = (uint16_t)(command->status << 1 | cq->phase) };
    memcpy(command->cqe, &cqe, sizeof(cqe));
    command->completion.request = (struct pcie_dma_request){
        .iova = { cq->iova + (uint64_t)cq->tail * NVME_CQE_BYTES },
        .bytes = NVME_CQE_BYTES,
        .buffer = command->cqe,
    };
    command->completion.write = true;
    command->completion.done = completion_written;
    cq->tail = (cq->tail + 1) % cq->entries;
    if (cq->tail == 0)
        cq->phase ^= 1;
    nvme->sub->stats.cqes++;
    nvme_dma_start(nvme, &command->completion);
}

/* What may succeed another time: the fault is not the command's (4.6.1, DNR). */
static bool worth_retrying(enum nvme_status status)
{
    switch (status) {
    case NVME_SC_DATA_TRANSFER_ERROR:
    case NVME_SC_ABORT_REQUESTED:
    case NVME_SC_ABORT_LIMIT:
    case NVME_SC_ASYNC_LIMIT:
    case NVME_SC_CQ_INVALID:
    case NVME_SC_QUEUE_DELETION_INVALID:
    case NVME_SC_SECONDARY_STATE_INVALID:
    case NVME_SC_RESOURCE_COUNT_INVALID: return true;
    default: return false;
    }
}

/* What the host asked for is no error that the log tells of. */
static void error(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    const enum nvme_status status = (enum nvme_status)command->status;
    nvme->sub->stats.errors++;
    if (!worth_retrying(status))
        command->status |= NVME_STATUS_DNR;
    if (status == NVME_SC_ABORT_REQUESTED)
        return;
    command->status |= NVME_STATUS_MORE;
    nvme_log_error(nvme, command, command->sq->number, command->status);
}

void nvme_complete(struct nvme_command *command, enum nvme_status status)
{
    struct nvme *nvme = command->nvme;
    struct nvme_cq *cq = &nvme->cq[command->sq->cq];
    if (!nvme_running(nvme) || !cq->there) {
        nvme_command_free(command);
        return;
    }
    command->step = NVME_COMPLETES;
    command->status = (uint16_t)status;
    if (SIM_UNLIKELY(status != NVME_SC_SUCCESS))
        error(command);
    if (cq->wait_head != NULL || cq_full(cq)) {
        command->next = NULL;
        *cq->wait_tail = command;
        cq->wait_tail = &command->next;
        nvme->sub->stats.cq_waits++;
        return;
    }
    write_completion(command);
}

/* There is room again. */
static void cq_flush(struct nvme_cq *cq)
{
    while (cq->wait_head != NULL && !cq_full(cq)) {
        struct nvme_command *command = cq->wait_head;
        cq->wait_head = command->next;
        if (cq->wait_head == NULL)
            cq->wait_tail = &cq->wait_head;
        write_completion(command);
    }
}

/* ---- Commands come and go -------------------------------------------------------------------- */

static void command_begins(struct sim *sim, struct sim_event *event)
{
    struct nvme_command *command = SIM_CONTAINER(event, struct nvme_command, event);
    (void)sim;
    command->step = NVME_EXECUTES;
    if (!nvme_running(command->nvme))
        nvme_command_free(command);
    else if (command->sq->number == 0)
        nvme_admin(command);
    else
        nvme_io(command);
}

static void command_new(struct nvme *nvme, struct nvme_sq *sq, const uint8_t *entry)
{
    struct nvme_command *command = sim_pool_get(nvme->sub->commands);
    sim_time begin_ps = nvme_now(nvme);
    command->nvme = nvme;
    command->sq = sq;
    command->result = 0;
    command->n_pieces = 0;
    command->list_pending = false;
    command->bytes_left = 0;
    command->status = NVME_SC_SUCCESS;
    command->location = NVME_NOWHERE;
    command->data = NVME_DATA_READ;
    command->step = NVME_QUEUED;
    command->page = NULL;
    command->pieces = NULL;
    command->aborter = NULL;
    command->sq_next = sq->commands;
    command->sq_from = &sq->commands;
    if (command->sq_next != NULL)
        command->sq_next->sq_from = &command->sq_next;
    sq->commands = command;
    memcpy(&command->sqe, entry, sizeof(command->sqe));
    sq->n_commands++;
    nvme->n_under_way++;
    if (sq->number != 0) {
        begin_ps = SIM_MAX(begin_ps, nvme->sub->command_free_ps);
        nvme->sub->command_free_ps = begin_ps + nvme_params(nvme)->command_ps;
    }
    sim_event_init(&command->event, command_begins);
    sim_schedule(nvme_sim(nvme), &command->event, begin_ps);
    if (SIM_UNLIKELY(sq->aborts != NULL))
        nvme_abort_fetched(command);
}

void nvme_sq_consider_deleted(struct nvme_sq *sq)
{
    struct nvme_command *command = sq->delete_command;
    if (command == NULL || sq->n_commands != 0 || sq->fetching)
        return;
    sq->delete_command = NULL;
    sq->there = false;
    nvme_sq_update(sq);
    sq->nvme->cq[sq->cq].n_sqs--;
    nvme_aborts_end(sq);
    nvme_complete(command, NVME_SC_SUCCESS);
}

void nvme_command_free(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    struct nvme_sq *sq = command->sq;
    struct nvme_command *aborter = command->aborter;
    sq->n_commands--;
    nvme->sub->n_commands -= sq->number != 0;
    *command->sq_from = command->sq_next;
    if (command->sq_next != NULL)
        command->sq_next->sq_from = command->sq_from;
    if (command->page != NULL)
        sim_pool_put(nvme->sub->data_pages, command->page);
    sim_pool_put(nvme->sub->commands, command);
    if (SIM_UNLIKELY(aborter != NULL))
        nvme_abort_done(aborter);
    if (SIM_UNLIKELY(sq->delete_command != NULL))
        nvme_sq_consider_deleted(sq);
    nvme_ended(nvme);
    nvme_fetch(nvme->sub);
}

/* ---- Fetching -------------------------------------------------------------------------------- */

/* Without the admin queue nothing can be told any more (9.5). Another queue rests until it is
 * deleted: that concerns its commands alone (5.2, Transient Internal Error). */
static void fetch_failed(struct nvme_sq *sq)
{
    struct nvme *nvme = sq->nvme;
    if (sq->number == 0) {
        nvme_fatal(nvme);
        return;
    }
    sq->stopped = true;
    nvme_aborts_end(sq); /* of commands that it will not fetch */
    nvme->sub->stats.stopped_queues++;
    nvme_log_error(nvme, NULL, sq->number, NVME_SC_DATA_TRANSFER_ERROR);
    nvme_event(nvme, NVME_EVENT_ERROR, NVME_EVENT_TRANSIENT);
}

static void entries_here(struct nvme_dma *dma, enum pcie_dma_status status)
{
    struct nvme_sq *sq = SIM_CONTAINER(dma, struct nvme_sq, fetch);
    struct nvme *nvme = dma->nvme;
    uint32_t n = sq->n_fetch;
    sq->fetching = false;
    if (status == PCIE_DMA_OK && nvme_running(nvme)) {
        nvme->sub->stats.sqes += n;
        sq->head = (sq->head + n) % sq->entries;
        for (uint32_t i = 0; i < n; i++)
            command_new(nvme, sq, &sq->fetched[i * NVME_SQE_BYTES]);
    } else {
        if (nvme_running(nvme))
            fetch_failed(sq);
        if (sq->number != 0)
            nvme->sub->n_commands -= n;
        nvme_sq_consider_deleted(sq);
    }
    nvme_sq_update(sq);
    nvme_ended(nvme);
    nvme_fetch(nvme->sub);
}

uint32_t nvme_fetch_from(struct nvme_sq *sq, uint32_t n)
{
    struct nvme *nvme = sq->nvme;
    struct nvme_stats *stats = &nvme->sub->stats;
    uint64_t iova = sq->iova + (uint64_t)sq->head * NVME_SQE_BYTES;
    uint64_t from_cmb = iova - cfg_bar_base(&nvme->function.cfg, NVME_CMB_BAR);
    sq->fetching = true;
    sq->n_fetch = n;
    nvme_sq_update(sq);
    if (sq->number != 0)
        nvme->sub->n_commands += n;
    stats->commands_max = SIM_MAX(stats->commands_max, nvme->sub->n_commands);
    stats->sqe_fetches++;
    stats->cmb_fetches += nvme->cmb != NULL && from_cmb < nvme_params(nvme)->cmb_bytes;
    nvme->n_under_way++;
    sq->fetch.request = (struct pcie_dma_request){
        .iova = { iova },
        .bytes = (uint64_t)n * NVME_SQE_BYTES,
        .buffer = sq->fetched,
    };
    sq->fetch.write = false;
    sq->fetch.done = entries_here;
    nvme_dma_start(nvme, &sq->fetch);
    return n;
}

/* ---- Doorbells ------------------------------------------------------------------------------- */

/* No such queue; or a value that it cannot have (5.2). */
static void bad_doorbell(struct nvme *nvme, uint64_t q, enum nvme_event_error error)
{
    nvme->sub->stats.bad_doorbells++;
    if (!nvme_running(nvme))
        return;
    nvme_log_error(nvme, NULL, (uint16_t)q, NVME_SC_SUCCESS);
    nvme_event(nvme, NVME_EVENT_ERROR, error);
}

static void ring_sq(struct nvme *nvme, uint64_t q, uint32_t value)
{
    struct nvme_sq *sq = nvme->sq[q];
    if (sq == NULL || !sq->there) {
        bad_doorbell(nvme, q, NVME_EVENT_DOORBELL_REGISTER);
    } else if (value >= sq->entries) {
        bad_doorbell(nvme, q, NVME_EVENT_DOORBELL_VALUE);
    } else {
        sq->tail = value;
        nvme_sq_update(sq);
        nvme_fetch(nvme->sub);
    }
}

/* The head goes no further than what has been written. */
static void ring_cq(struct nvme *nvme, uint64_t q, uint32_t value)
{
    struct nvme_cq *cq = &nvme->cq[q];
    if (!cq->there) {
        bad_doorbell(nvme, q, NVME_EVENT_DOORBELL_REGISTER);
    } else if (value >= cq->entries || (value + cq->entries - cq->head) % cq->entries >
                                           (cq->tail + cq->entries - cq->head) % cq->entries) {
        bad_doorbell(nvme, q, NVME_EVENT_DOORBELL_VALUE);
    } else {
        cq->head = value;
        cq_flush(cq);
    }
}

void nvme_doorbell(struct nvme *nvme, uint64_t offset, uint32_t value)
{
    uint64_t which = (offset - NVME_REG_DOORBELLS) / 4;
    if (!nvme_running(nvme) || which / 2 >= nvme->n_queues)
        bad_doorbell(nvme, which / 2, NVME_EVENT_DOORBELL_REGISTER);
    else if (which % 2 == 0)
        ring_sq(nvme, which / 2, value);
    else
        ring_cq(nvme, which / 2, value);
}

/* ---- Queues come and go ---------------------------------------------------------------------- */

void nvme_sq_create(struct nvme *nvme, uint16_t number, uint64_t iova, uint32_t entries,
                    uint16_t cq, uint32_t priority)
{
    struct nvme_sq *sq = nvme->sq[number];
    if (sq == NULL) {
        sq = sim_zalloc(1, sizeof(*sq));
        nvme->sq[number] = sq;
    }
    sq->nvme = nvme;
    sq->there = true;
    sq->deleting = sq->stopped = false;
    sq->number = number;
    sq->cq = cq;
    sq->entries = entries;
    sq->head = sq->tail = 0;
    sq->iova = iova;
    nvme_sq_classify(sq, priority);
    nvme_sq_update(sq);
    nvme->cq[cq].n_sqs++;
}

void nvme_cq_create(struct nvme *nvme, uint16_t number, uint64_t iova, uint32_t entries,
                    bool interrupts, uint16_t vector)
{
    struct nvme_cq *cq = &nvme->cq[number];
    *cq = (struct nvme_cq){ .there = true,
                            .interrupts = interrupts,
                            .phase = 1,
                            .number = number,
                            .vector = vector,
                            .entries = entries,
                            .iova = iova,
                            .wait_tail = &cq->wait_head };
}

static void sq_drop(struct nvme_sq *sq)
{
    struct nvme_command *command = sq->delete_command;
    sq->there = false;
    nvme_sq_update(sq);
    sq->delete_command = NULL;
    if (command != NULL)
        nvme_command_free(command);
    nvme_aborts_end(sq);
}

static void cq_drop(struct nvme_cq *cq)
{
    cq->there = false;
    while (cq->wait_head != NULL) {
        struct nvme_command *command = cq->wait_head;
        cq->wait_head = command->next;
        nvme_command_free(command);
    }
}

void nvme_queues_delete(struct nvme *nvme)
{
    nvme_events_reset(nvme);
    for (unsigned q = 0; q < NVME_QUEUES_MAX; q++) {
        if (nvme->sq[q] != NULL)
            sq_drop(nvme->sq[q]);
        cq_drop(&nvme->cq[q]);
    }
}
