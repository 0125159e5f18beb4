/*
 * Commands of nic.ethernet: queues, tables and rules.
 *
 * Models: command blocks in host memory, executed one after the other per function: read, firmware,
 *   written back; queues that are destroyed once what they have under way has ended.
 * Does not model: several command slots, asynchronous events, command timeouts.
 * Timing: read of the block, command_latency (then, for RSS, a read of the table), the answer's
 *   write. What a command sets is in force from command_latency on: rules neither earlier nor
 *   gradually. The answer of a rule lies behind the packets that came in for this function before
 *   (those of other functions have ports of their own).
 * Sources: docs/sources.md#a5.
 */
#include <stdlib.h>
#include <string.h>

#include "models/nic/nic_internal.h"

static void next_command(struct nic_function *function);

/* ---- Queues ---------------------------------------------------------------------------------- */

static bool number_fits(const struct nic_function *function, const struct nic_command *c)
{
    return c->queue < function->nic->params.n_queues;
}

static bool ring_fits(const struct nic_function *function, const struct nic_command *c)
{
    return number_fits(function, c) && c->log_entries <= NIC_RING_LOG_MAX;
}

static uint8_t create_eq(struct nic_function *function, const struct nic_command *c)
{
    if (!ring_fits(function, c) || c->target >= NIC_MSIX_VECTORS || function->eq[c->queue] != NULL)
        return NIC_COMMAND_BAD;
    struct nic_eq *eq = function->eq[c->queue] = sim_zalloc(1, sizeof(*eq));
    *eq = (struct nic_eq){ .iova = c->iova, .vector = c->target, .log = c->log_entries };
    return NIC_COMMAND_OK;
}

static uint8_t moderate(struct nic_cq *cq, const struct nic_command *c)
{
    if (c->moderation_mode > NIC_MODERATION_CQE)
        return NIC_COMMAND_BAD;
    cq->moderation_ps = c->moderation_us * SIM_PS_PER_US;
    cq->moderation_count = c->moderation_count;
    cq->mode = c->moderation_mode;
    return NIC_COMMAND_OK;
}

static uint8_t create_cq(struct nic_function *function, const struct nic_command *c)
{
    if (!ring_fits(function, c) || c->target >= function->nic->params.n_queues ||
        function->cq[c->queue] != NULL || function->eq[c->target] == NULL ||
        c->moderation_mode > NIC_MODERATION_CQE)
        return NIC_COMMAND_BAD;
    struct nic_cq *cq = function->cq[c->queue] = sim_zalloc(1, sizeof(*cq));
    *cq = (struct nic_cq){ .function = function,
                           .iova = c->iova,
                           .number = c->queue,
                           .eq = c->target,
                           .log = c->log_entries };
    sim_event_init(&cq->timer, nic_cq_timer);
    return moderate(cq, c);
}

static uint8_t modify_cq(struct nic_function *function, const struct nic_command *c)
{
    if (!number_fits(function, c) || function->cq[c->queue] == NULL)
        return NIC_COMMAND_NOT_FOUND;
    uint8_t status = moderate(function->cq[c->queue], c);
    nic_cq_moderate(function->cq[c->queue]);
    return status;
}

static uint8_t create_sq(struct nic_function *function, const struct nic_command *c)
{
    if (!ring_fits(function, c) || c->target >= function->nic->params.n_queues ||
        function->sq[c->queue] != NULL || function->cq[c->target] == NULL)
        return NIC_COMMAND_BAD;
    struct nic_sq *sq = function->sq[c->queue] = sim_zalloc(1, sizeof(*sq));
    sq->function = function;
    sq->number = c->queue;
    sq->cq = c->target;
    sq->iova = c->iova;
    sq->log = c->log_entries;
    nic_sq_init(sq);
    return NIC_COMMAND_OK;
}

static uint8_t create_rq(struct nic_function *function, const struct nic_command *c)
{
    if (!ring_fits(function, c) || c->target >= function->nic->params.n_queues ||
        function->rq[c->queue] != NULL || function->cq[c->target] == NULL)
        return NIC_COMMAND_BAD;
    struct nic_rq *rq = function->rq[c->queue] = sim_zalloc(1, sizeof(*rq));
    rq->function = function;
    rq->number = c->queue;
    rq->cq = c->target;
    rq->iova = c->iova;
    rq->record_iova = c->record_iova;
    rq->flags = c->flags;
    rq->log = c->log_entries;
    nic_rq_init(rq);
    return NIC_COMMAND_OK;
}

static uint8_t destroy_eq(struct nic_function *function, const struct nic_command *c)
{
    if (!number_fits(function, c) || function->eq[c->queue] == NULL)
        return NIC_COMMAND_NOT_FOUND;
    free(function->eq[c->queue]);
    function->eq[c->queue] = NULL;
    return NIC_COMMAND_OK;
}

static uint8_t destroy_cq(struct nic_function *function, const struct nic_command *c)
{
    if (!number_fits(function, c) || function->cq[c->queue] == NULL)
        return NIC_COMMAND_NOT_FOUND;
    sim_cancel(function->nic->model->sim, &function->cq[c->queue]->timer);
    free(function->cq[c->queue]);
    function->cq[c->queue] = NULL;
    return NIC_COMMAND_OK;
}

/* NIC_COMMAND_PENDING until the queue is quiet. */
static uint8_t destroy_sq(struct nic_function *function, const struct nic_command *c)
{
    if (!number_fits(function, c) || function->sq[c->queue] == NULL)
        return NIC_COMMAND_NOT_FOUND;
    struct nic_sq *sq = function->sq[c->queue];
    if (!sq->closing)
        nic_sq_close(sq);
    if (!nic_sq_quiet(sq))
        return NIC_COMMAND_PENDING;
    nic_sent_forget(function, c->queue);
    nic_sq_free(sq);
    function->sq[c->queue] = NULL;
    return NIC_COMMAND_OK;
}

static uint8_t destroy_rq(struct nic_function *function, const struct nic_command *c)
{
    if (!number_fits(function, c) || function->rq[c->queue] == NULL)
        return NIC_COMMAND_NOT_FOUND;
    struct nic_rq *rq = function->rq[c->queue];
    if (!rq->closing)
        nic_rq_close(rq);
    if (!nic_rq_quiet(rq))
        return NIC_COMMAND_PENDING;
    nic_rq_free(rq);
    function->rq[c->queue] = NULL;
    return NIC_COMMAND_OK;
}

void nic_queues_free(struct nic_function *function)
{
    for (uint32_t i = 0; i < function->nic->params.n_queues; i++) {
        struct nic_command c = { .queue = (uint16_t)i };
        if (function->sq[i] != NULL) {
            nic_sq_close(function->sq[i]); /* of a virtual function that went with its queues */
            nic_sq_free(function->sq[i]);
        }
        if (function->rq[i] != NULL)
            nic_rq_free(function->rq[i]);
        function->sq[i] = NULL;
        function->rq[i] = NULL;
        destroy_cq(function, &c);
        destroy_eq(function, &c);
    }
}

/* ---- Tables and rules ------------------------------------------------------------------------ */

static struct ether_flow flow_of(const struct nic_command *c)
{
    return (struct ether_flow){ c->source_ip, c->destination_ip, c->source_port,
                                c->destination_port, c->protocol };
}

static uint8_t set_flow(struct nic_function *function, const struct nic_command *c)
{
    struct ether_flow flow = flow_of(c);
    if (c->target >= function->nic->params.n_queues)
        return NIC_COMMAND_BAD;
    return nic_flow_set(&function->flows, &flow, c->target) ? NIC_COMMAND_OK
                                                            : NIC_COMMAND_NO_RESOURCE;
}

static uint8_t delete_flow(struct nic_function *function, const struct nic_command *c)
{
    struct ether_flow flow = flow_of(c);
    return nic_flow_delete(&function->flows, &flow) ? NIC_COMMAND_OK : NIC_COMMAND_NOT_FOUND;
}

static struct ether_flow rule_of(const struct nic *nic, const struct nic_command *c)
{
    return nic->params.firmware == NIC_FIRMWARE_STANDARD ? nic_mac_key(ether_get_mac(c->mac))
                                                         : flow_of(c);
}

static uint8_t set_switch(struct nic_function *function, const struct nic_command *c)
{
    struct nic *nic = function->nic;
    struct ether_flow rule = rule_of(nic, c);
    if (c->target >= nic->params.n_functions || nic_is_vf(function))
        return NIC_COMMAND_BAD;
    if (nic->params.firmware == NIC_FIRMWARE_OCTONIC && c->protocol == 0) {
        nic->default_function = c->target;
        return NIC_COMMAND_OK;
    }
    return nic_flow_set(&nic->rules, &rule, c->target) ? NIC_COMMAND_OK : NIC_COMMAND_NO_RESOURCE;
}

static uint8_t delete_switch(struct nic_function *function, const struct nic_command *c)
{
    struct ether_flow rule = rule_of(function->nic, c);
    if (nic_is_vf(function))
        return NIC_COMMAND_BAD;
    return nic_flow_delete(&function->nic->rules, &rule) ? NIC_COMMAND_OK : NIC_COMMAND_NOT_FOUND;
}

/* The rules that a match belongs to; NULL: none that may be changed so. */
static struct nic_match_table *matches_of(struct nic_function *function,
                                          const struct nic_command *c)
{
    if ((c->flags & NIC_COMMAND_SWITCH) == 0)
        return &function->matches;
    return function->nic->params.firmware == NIC_FIRMWARE_OCTONIC && !nic_is_vf(function)
               ? &function->nic->switch_matches
               : NULL;
}

static uint8_t set_match(struct nic_function *function, const struct nic_command *c)
{
    const struct nic_params *params = &function->nic->params;
    struct nic_match_table *table = matches_of(function, c);
    if (table == NULL || c->queue >= NIC_MATCHES || !nic_match_valid(&c->match) ||
        c->target >= (table == &function->matches ? params->n_queues : params->n_functions))
        return NIC_COMMAND_BAD;
    nic_match_set(table, c->queue, &c->match, c->target);
    return NIC_COMMAND_OK;
}

static uint8_t delete_match(struct nic_function *function, const struct nic_command *c)
{
    struct nic_match_table *table = matches_of(function, c);
    if (table == NULL)
        return NIC_COMMAND_BAD;
    return nic_match_delete(table, c->queue) ? NIC_COMMAND_OK : NIC_COMMAND_NOT_FOUND;
}

static void table_here(struct pcie_dma_request *request, enum pcie_dma_status status);

/* NIC_COMMAND_PENDING: the table is being read. */
static uint8_t set_rss(struct nic_function *function, const struct nic_command *c)
{
    struct nic_command_unit *unit = &function->command;
    if (c->log_entries > NIC_RSS_LOG_MAX)
        return NIC_COMMAND_BAD;
    unit->step = NIC_COMMAND_TABLE;
    unit->request = (struct pcie_dma_request){ .iova = { c->iova },
                                               .bytes = sizeof(uint16_t) << c->log_entries,
                                               .buffer = (uint8_t *)unit->table,
                                               .independent = true,
                                               .done = table_here };
    nic_dma_read(function, &unit->request);
    return NIC_COMMAND_PENDING;
}

static uint8_t use_rss_table(struct nic_function *function)
{
    struct nic_command_unit *unit = &function->command;
    uint32_t n = UINT32_C(1) << unit->block.log_entries;
    for (uint32_t i = 0; i < n; i++)
        if (unit->table[i] >= function->nic->params.n_queues)
            return NIC_COMMAND_BAD;
    memcpy(function->rss_table, unit->table, n * sizeof(uint16_t));
    function->rss_mask = (uint16_t)(n - 1);
    function->rss_set = true;
    return NIC_COMMAND_OK;
}

/* ---- Virtual functions ----------------------------------------------------------------------- */

static uint8_t enable_vfs(struct nic_function *function, const struct nic_command *c)
{
    if (nic_is_vf(function))
        return NIC_COMMAND_BAD;
    if (c->n_vfs > function->nic->params.n_vfs)
        return NIC_COMMAND_NO_RESOURCE;
    function->n_vfs_ready = c->n_vfs;
    return NIC_COMMAND_OK;
}

/* The physical function's driver has not allowed it. */
static bool is_off(const struct nic_function *function)
{
    return nic_is_gone(function) ||
           (nic_is_vf(function) &&
            function->pcie.idx >= nic_function_of(function->pcie.pf)->n_vfs_ready);
}

/* ---- One after the other --------------------------------------------------------------------- */

static uint8_t execute(struct nic_function *function, struct nic_command *c)
{
    switch ((enum nic_command_opcode)c->opcode) {
    case NIC_CREATE_EQ: return create_eq(function, c);
    case NIC_CREATE_CQ: return create_cq(function, c);
    case NIC_MODIFY_CQ: return modify_cq(function, c);
    case NIC_CREATE_SQ: return create_sq(function, c);
    case NIC_CREATE_RQ: return create_rq(function, c);
    case NIC_DESTROY_EQ: return destroy_eq(function, c);
    case NIC_DESTROY_CQ: return destroy_cq(function, c);
    case NIC_DESTROY_SQ: return destroy_sq(function, c);
    case NIC_DESTROY_RQ: return destroy_rq(function, c);
    case NIC_SET_RSS: return set_rss(function, c);
    case NIC_SET_FLOW: return set_flow(function, c);
    case NIC_DELETE_FLOW: return delete_flow(function, c);
    case NIC_SET_SWITCH: return set_switch(function, c);
    case NIC_DELETE_SWITCH: return delete_switch(function, c);
    case NIC_QUERY_DROPS: c->value = (uint32_t)function->dropped_no_buffer; return NIC_COMMAND_OK;
    case NIC_ENABLE_VFS: return enable_vfs(function, c);
    case NIC_SET_MATCH: return set_match(function, c);
    case NIC_DELETE_MATCH: return delete_match(function, c);
    }
    return NIC_COMMAND_BAD;
}

static void answer(struct nic_function *function, uint8_t status)
{
    struct nic_command_unit *unit = &function->command;
    unit->block.status = status;
    function->nic->stats.commands++;
    nic_post(function, unit->iova, &unit->block, sizeof(unit->block));
    unit->step = NIC_COMMAND_IDLE;
    next_command(function);
}

/* A rule is in force; its answer comes behind all packets that came in for this function before. */
static void answer_behind_packets(struct nic_function *function, uint8_t status)
{
    struct nic_command_unit *unit = &function->command;
    unit->block.status = status;
    unit->step = NIC_COMMAND_PASSING;
    unit->epoch ^= 1;
    if (function->n_waiting[unit->epoch ^ 1] == 0)
        nic_command_passed(function);
}

void nic_command_passed(struct nic_function *function)
{
    struct nic_command_unit *unit = &function->command;
    if (unit->step == NIC_COMMAND_PASSING && function->n_waiting[unit->epoch ^ 1] == 0) {
        nic_lro_flush_all(function);
        answer(function, unit->block.status);
    }
}

static void table_here(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct nic_function *function = SIM_CONTAINER(request, struct nic_function, command.request);
    answer(function, status == PCIE_DMA_OK ? use_rss_table(function) : NIC_COMMAND_BAD);
}

/* The queue that was to be destroyed waits no longer, perhaps. */
void nic_command_quiet(struct nic_function *function)
{
    struct nic_command_unit *unit = &function->command;
    if (unit->step != NIC_COMMAND_QUIET)
        return;
    uint8_t status = execute(function, &unit->block);
    if (status != NIC_COMMAND_PENDING)
        answer(function, status);
}

static bool is_rule(uint16_t opcode)
{
    return opcode == NIC_SET_FLOW || opcode == NIC_DELETE_FLOW || opcode == NIC_SET_SWITCH ||
           opcode == NIC_DELETE_SWITCH || opcode == NIC_SET_MATCH || opcode == NIC_DELETE_MATCH;
}

void nic_command_event(struct sim *sim, struct sim_event *event)
{
    struct nic_function *function = SIM_CONTAINER(event, struct nic_function, command.event);
    struct nic_command_unit *unit = &function->command;
    (void)sim;
    unit->step = NIC_COMMAND_QUIET;
    uint8_t status = is_off(function) ? NIC_COMMAND_BAD : execute(function, &unit->block);
    if (is_rule(unit->block.opcode))
        answer_behind_packets(function, status);
    else if (status != NIC_COMMAND_PENDING)
        answer(function, status);
}

static void block_here(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct nic_function *function = SIM_CONTAINER(request, struct nic_function, command.request);
    struct nic_command_unit *unit = &function->command;
    if (status != PCIE_DMA_OK) { /* nor can it be answered */
        unit->step = NIC_COMMAND_IDLE;
        next_command(function);
        return;
    }
    unit->step = NIC_COMMAND_RUNNING;
    sim_schedule_in(function->nic->model->sim, &unit->event, function->nic->params.command_ps);
}

static void next_command(struct nic_function *function)
{
    struct nic_command_unit *unit = &function->command;
    if (unit->step != NIC_COMMAND_IDLE || unit->n_queued == 0)
        return;
    unit->iova = unit->queued[unit->first];
    unit->first = (unit->first + 1) % NIC_COMMANDS_MAX;
    unit->n_queued--;
    unit->step = NIC_COMMAND_READING;
    unit->request = (struct pcie_dma_request){ .iova = { unit->iova },
                                               .bytes = sizeof(unit->block),
                                               .buffer = (uint8_t *)&unit->block,
                                               .independent = true,
                                               .done = block_here };
    nic_dma_read(function, &unit->request);
}

void nic_command_start(struct nic_function *function, uint64_t iova)
{
    struct nic_command_unit *unit = &function->command;
    if (unit->n_queued == NIC_COMMANDS_MAX) {
        function->nic->stats.bad_doorbells++;
        return;
    }
    unit->queued[(unit->first + unit->n_queued++) % NIC_COMMANDS_MAX] = iova;
    next_command(function);
}
