/*
 * Commands of dsa.accelerator: enable, disable, drain, abort, reset, of the device and of queues.
 *
 * Models: one command at a time (CMDSTS says Active meanwhile; another one is ignored), its error
 *   codes, its interrupt. Disable and drain wait for what was submitted before; abort and reset
 *   drop what is queued and wait until nothing of it is under way. A queue that is being disabled
 *   takes nothing more.
 * Does not model: PASIDs, interrupt handles (a handle is the number of a vector; CMDCAP says so),
 *   the halt state.
 * Timing: a command ends when what it waits for has ended.
 * Sources: Intel Data Streaming Accelerator Architecture Specification, "Command register",
 *   "Administrative commands".
 */
#include "models/dsa/dsa_internal.h"

uint32_t dsa_command_capability(void)
{
    return ((2u << DSA_CMD_RESET_WQ) - 1) & ~1u; /* 1 to 10 */
}

/* ---- Checks of the configuration ------------------------------------------------------------- */

static uint32_t reserved_of(const struct dsa_group *group)
{
    return (uint32_t)(group->flags >> DSA_GRPFLAGS_RESERVED_SHIFT) & 0xffu;
}
static uint32_t allowed_of(const struct dsa_group *group)
{
    return (uint32_t)(group->flags >> DSA_GRPFLAGS_ALLOWED_SHIFT) & 0xffu;
}

static enum dsa_command_error check_group(const struct dsa_device *dsa,
                                          const struct dsa_group *group, uint64_t *queues,
                                          uint64_t *engines)
{
    if ((group->queues & ~dsa_mask(dsa->params.queues)) != 0 || (group->queues & *queues) != 0 ||
        (group->engines & ~dsa_mask(dsa->params.engines)) != 0 || (group->engines & *engines) != 0)
        return DSA_CMDSTS_CONFIGURATION;
    if ((group->queues == 0) != (group->engines == 0))
        return DSA_CMDSTS_GROUP;
    *queues |= group->queues;
    *engines |= group->engines;
    if (group->queues == 0)
        return DSA_CMDSTS_OK;
    if (allowed_of(group) == 0 || allowed_of(group) < reserved_of(group) ||
        allowed_of(group) > dsa->params.read_buffers)
        return DSA_CMDSTS_GROUP_BUFFERS;
    return DSA_CMDSTS_OK;
}

static enum dsa_command_error check_groups(struct dsa_device *dsa)
{
    uint64_t queues = 0, engines = 0, entries = 0;
    dsa->reserved_buffers = 0;
    for (uint32_t i = 0; i < dsa->params.groups; i++) {
        const enum dsa_command_error error = check_group(dsa, &dsa->group[i], &queues, &engines);
        if (error != DSA_CMDSTS_OK)
            return error;
        if (dsa->group[i].queues != 0)
            dsa->reserved_buffers += reserved_of(&dsa->group[i]);
    }
    for (uint32_t i = 0; i < dsa->params.queues; i++)
        entries += dsa_queue_size(&dsa->queue[i]);
    if (entries > dsa->params.entries)
        return DSA_CMDSTS_ENTRIES;
    if (dsa->reserved_buffers > dsa->params.read_buffers)
        return DSA_CMDSTS_ALL_BUFFERS;
    return DSA_CMDSTS_OK;
}

static enum dsa_command_error check_queue(const struct dsa_device *dsa,
                                          const struct dsa_queue *queue)
{
    const uint32_t mode = queue->config[DSA_WQCFG_MODE / 4];
    const uint32_t limits = queue->config[DSA_WQCFG_LIMITS / 4];
    const uint32_t threshold = queue->config[DSA_WQCFG_THRESHOLD / 4];
    if (queue->enabled)
        return DSA_CMDSTS_QUEUE_ENABLED;
    if (dsa_queue_size(queue) == 0 || queue->group == NULL)
        return DSA_CMDSTS_QUEUE_SIZE;
    if ((mode & DSA_WQCFG_PRIORITY_MASK) == 0)
        return DSA_CMDSTS_QUEUE_PRIORITY;
    if ((mode & DSA_WQCFG_BLOCK) != 0)
        return DSA_CMDSTS_QUEUE_FAULT;
    if ((mode & DSA_WQCFG_PASID_ENABLE) != 0)
        return DSA_CMDSTS_QUEUE_PASID;
    if (!dsa_queue_dedicated(queue) && (threshold == 0 || threshold > dsa_queue_size(queue)))
        return DSA_CMDSTS_QUEUE_SIZE;
    if ((limits & DSA_WQCFG_BATCH_MASK) >> DSA_WQCFG_BATCH_SHIFT > dsa->params.batch_log2)
        return DSA_CMDSTS_QUEUE_BATCH;
    if ((limits & DSA_WQCFG_TRANSFER_MASK) > dsa->params.transfer_log2)
        return DSA_CMDSTS_QUEUE_TRANSFER;
    return DSA_CMDSTS_OK;
}

/* ---- The end --------------------------------------------------------------------------------- */

static void end(struct dsa_device *dsa, enum dsa_command_error error)
{
    dsa->command = 0;
    dsa->cmdsts = error;
    if (!dsa->command_vector)
        return;
    dsa->intcause |= DSA_INTCAUSE_COMMAND;
    pcie_function_interrupt(&dsa->function, 0);
}

static void disable_queue(struct dsa_queue *queue)
{
    queue->enabled = queue->closed = false;
}

static void finish(struct dsa_device *dsa)
{
    const uint32_t command = dsa->command;
    for (uint32_t i = 0; i < dsa->params.queues; i++) {
        struct dsa_queue *queue = &dsa->queue[i];
        if (!(dsa->command_queues & 1u << i))
            continue;
        if (command == DSA_CMD_DISABLE_WQ || command == DSA_CMD_DISABLE_DEVICE)
            disable_queue(queue);
        if (command == DSA_CMD_RESET_WQ) {
            disable_queue(queue);
            for (unsigned k = 0; k < DSA_WQCFG_BYTES / 4; k++)
                if (k != DSA_WQCFG_SIZE / 4) /* the size stays: other queues have the rest */
                    queue->config[k] = 0;
        }
    }
    if (command == DSA_CMD_DISABLE_DEVICE)
        dsa->state = DSA_DISABLED;
    if (command == DSA_CMD_RESET_DEVICE) {
        const bool vector = dsa->command_vector;
        dsa_registers_reset(dsa, DSA_RESET_SOFTWARE);
        dsa->command_vector = vector;
    }
    end(dsa, DSA_CMDSTS_OK);
}

void dsa_command_look(struct dsa_device *dsa)
{
    if (dsa->command == 0)
        return;
    for (uint32_t i = 0; i < dsa->params.queues; i++)
        if ((dsa->command_queues & 1u << i) != 0 &&
            dsa_queue_oldest(&dsa->queue[i]) < dsa->command_until[i])
            return;
    finish(dsa);
}

/* ---- The beginning --------------------------------------------------------------------------- */

/* The group that has bit i in its mask; NULL: none. The groups' masks do not overlap. */
static struct dsa_group *group_of(struct dsa_device *dsa, uint32_t i, bool of_engines)
{
    for (uint32_t g = 0; g < dsa->params.groups; g++) {
        struct dsa_group *group = &dsa->group[g];
        if (((of_engines ? group->engines : group->queues) & UINT64_C(1) << i) != 0)
            return group;
    }
    return NULL;
}

/* Nothing is under way. */
static void join_groups(struct dsa_device *dsa)
{
    for (uint32_t i = 0; i < dsa->params.queues; i++)
        dsa->queue[i].group = group_of(dsa, i, false);
    for (uint32_t i = 0; i < dsa->params.engines; i++)
        dsa->engine[i].group = group_of(dsa, i, true);
}

static void enable_device(struct dsa_device *dsa)
{
    enum dsa_command_error error = dsa->state != DSA_DISABLED ? DSA_CMDSTS_ENABLED
                                                              : check_groups(dsa);
    if (error == DSA_CMDSTS_OK && !cfg_bus_master(&dsa->function.cfg))
        error = DSA_CMDSTS_BUS_MASTER;
    if (error == DSA_CMDSTS_OK) {
        dsa->state = DSA_ENABLED;
        join_groups(dsa);
    }
    end(dsa, error);
}

static void enable_queue(struct dsa_device *dsa, uint32_t operand)
{
    enum dsa_command_error error = DSA_CMDSTS_OK;
    if (operand >= dsa->params.queues)
        error = DSA_CMDSTS_QUEUE;
    else if (dsa->state != DSA_ENABLED)
        error = DSA_CMDSTS_NOT_ENABLED;
    else
        error = check_queue(dsa, &dsa->queue[operand]);
    if (error == DSA_CMDSTS_OK)
        dsa->queue[operand].enabled = true;
    end(dsa, error);
}

/* Queues of the operand's mask: bit i of 15:0 is queue 16 * (19:16) + i. */
static uint32_t queues_of(uint32_t operand)
{
    return operand >> 16 == 0 ? operand & 0xffffu : 0;
}

static uint32_t enabled_queues(const struct dsa_device *dsa)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < dsa->params.queues; i++)
        mask |= dsa->queue[i].enabled ? 1u << i : 0;
    return mask;
}

static bool of_queues(uint32_t command)
{
    return command >= DSA_CMD_DISABLE_WQ && command <= DSA_CMD_RESET_WQ;
}

/* What was submitted so far has to end; an abort makes it end. */
static void wait_for(struct dsa_device *dsa, uint32_t queues)
{
    const uint32_t command = dsa->command;
    const bool abort = command == DSA_CMD_ABORT_ALL || command == DSA_CMD_ABORT_WQ ||
                       command == DSA_CMD_RESET_DEVICE || command == DSA_CMD_RESET_WQ;
    const bool close = command == DSA_CMD_DISABLE_DEVICE || command == DSA_CMD_DISABLE_WQ ||
                       command == DSA_CMD_RESET_DEVICE || command == DSA_CMD_RESET_WQ;
    dsa->command_queues = queues;
    for (uint32_t i = 0; i < dsa->params.queues; i++) {
        if (!(queues & 1u << i))
            continue;
        dsa->queue[i].closed |= close;
        dsa->command_until[i] = dsa->queue[i].submitted;
    }
    /* Aborting a queue may end what it waits for, and with it the command. */
    for (uint32_t i = 0; abort && i < dsa->params.queues; i++)
        if ((queues & 1u << i) != 0)
            dsa_queue_abort(dsa, &dsa->queue[i]);
    dsa_command_look(dsa);
}

static void stop_something(struct dsa_device *dsa, uint32_t operand)
{
    const uint32_t command = dsa->command, enabled = enabled_queues(dsa);
    if (of_queues(command)) {
        const uint32_t queues = queues_of(operand);
        if (queues == 0 || (queues & ~dsa_mask(dsa->params.queues)) != 0)
            end(dsa, DSA_CMDSTS_QUEUE);
        else if ((queues & enabled) == 0)
            end(dsa, DSA_CMDSTS_QUEUE_OFF);
        else
            wait_for(dsa, queues & enabled);
    } else if (dsa->state != DSA_ENABLED && command != DSA_CMD_RESET_DEVICE) {
        end(dsa, DSA_CMDSTS_DEVICE_OFF);
    } else {
        wait_for(dsa, enabled);
    }
}

void dsa_command_write(struct dsa_device *dsa, uint32_t value)
{
    const uint32_t command = (value & DSA_CMD_CODE_MASK) >> DSA_CMD_SHIFT;
    const uint32_t operand = value & DSA_CMD_OPERAND_MASK;
    if (dsa->command != 0)
        return;
    dsa->command_vector = (value & DSA_CMD_VECTOR) != 0;
    if ((dsa_command_capability() & 1u << command) == 0) {
        end(dsa, DSA_CMDSTS_COMMAND);
        return;
    }
    dsa->command = command;
    dsa->cmdsts = DSA_CMDSTS_ACTIVE;
    switch (command) {
    case DSA_CMD_ENABLE_DEVICE: enable_device(dsa); break;
    case DSA_CMD_ENABLE_WQ: enable_queue(dsa, operand); break;
    default: stop_something(dsa, operand); break;
    }
}
