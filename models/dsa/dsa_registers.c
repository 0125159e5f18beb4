/*
 * Registers of dsa.accelerator (BAR 0).
 *
 * Models: capabilities, table offsets, GENCFG, GENCTRL, GENSTS, INTCAUSE, commands (dsa_command.c),
 *   SWERR, the tables of groups and work queues. Configuration can be written while what it is
 *   about is off: GENCFG, groups and sizes of queues with the device, the rest of a queue's with
 *   the queue (but its occupancy vector, ours: none).
 * Does not model: performance monitors, the event log, interrupts from a message store, WQ
 *   operation configuration (OPCFG).
 * Sources: Intel Data Streaming Accelerator Architecture Specification, "Register descriptions";
 *   Linux commit 0fff71c5a311: the size of a queue can be changed while the device is disabled
 *   only.
 */
#include <string.h>

#include "models/dsa/dsa_internal.h"

static uint64_t capability(const struct dsa_params *params, uint64_t offset)
{
    switch (offset) {
    case DSA_VERSION: return DSA_VERSION_1;
    case DSA_GENCAP:
        return DSA_GENCAP_OVERLAP | DSA_GENCAP_CACHE_MEMORY | DSA_GENCAP_COMMAND_CAPABILITY |
               (uint64_t)params->transfer_log2 << DSA_GENCAP_TRANSFER_LOG2_SHIFT |
               (uint64_t)params->batch_log2 << DSA_GENCAP_BATCH_LOG2_SHIFT |
               DSA_GENCAP_CONFIGURABLE;
    case DSA_WQCAP:
        return params->entries | (uint64_t)params->queues << DSA_WQCAP_QUEUES_SHIFT |
               DSA_WQCAP_SHARED | DSA_WQCAP_DEDICATED | DSA_WQCAP_PRIORITY | DSA_WQCAP_OCCUPANCY;
    case DSA_GRPCAP:
        return params->groups | (uint64_t)params->read_buffers << DSA_GRPCAP_READ_BUFFERS_SHIFT |
               DSA_GRPCAP_READ_BUFFERS_SET | DSA_GRPCAP_READ_BUFFERS_LIMIT;
    case DSA_ENGCAP: return params->engines;
    case DSA_OPCAP:
        return UINT64_C(1) << DSA_OP_NOOP | UINT64_C(1) << DSA_OP_BATCH |
               UINT64_C(1) << DSA_OP_DRAIN | UINT64_C(1) << DSA_OP_MOVE;
    case DSA_OFFSETS:
        return (uint64_t)(DSA_TABLE_GROUPS / DSA_OFFSETS_UNIT) << DSA_OFFSETS_GROUPS_SHIFT |
               (uint64_t)(DSA_TABLE_QUEUES / DSA_OFFSETS_UNIT) << DSA_OFFSETS_QUEUES_SHIFT |
               (uint64_t)(DSA_TABLE_PERMISSION / DSA_OFFSETS_UNIT) << DSA_OFFSETS_PERMISSION_SHIFT;
    default: return 0;
    }
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static struct dsa_group *group_at(struct dsa_device *dsa, uint64_t offset)
{
    const uint64_t n = (offset - DSA_TABLE_GROUPS) / DSA_GRPCFG_BYTES;
    return offset >= DSA_TABLE_GROUPS && n < dsa->params.groups ? &dsa->group[n] : NULL;
}

static struct dsa_queue *queue_at(struct dsa_device *dsa, uint64_t offset)
{
    const uint64_t n = (offset - DSA_TABLE_QUEUES) / DSA_WQCFG_BYTES;
    return offset >= DSA_TABLE_QUEUES && n < dsa->params.queues ? &dsa->queue[n] : NULL;
}

/* The 64 bits of the group's table that hold this byte; NULL: reserved. */
static uint64_t *group_word(struct dsa_group *group, uint64_t offset)
{
    switch (offset % DSA_GRPCFG_BYTES & ~UINT64_C(7)) {
    case DSA_GRPCFG_QUEUES: return &group->queues;
    case DSA_GRPCFG_ENGINES: return &group->engines;
    case DSA_GRPCFG_FLAGS: return &group->flags;
    default: return NULL;
    }
}

static uint32_t queue_read(const struct dsa_queue *queue, uint64_t offset)
{
    if (offset % DSA_WQCFG_BYTES == DSA_WQCFG_STATUS)
        return queue->n | (uint32_t)(queue->enabled ? DSA_ENABLED : DSA_DISABLED)
                              << DSA_WQCFG_STATE_SHIFT;
    return queue->config[offset % DSA_WQCFG_BYTES / 4];
}

/* The threshold of a queue in use may be changed (WQCFG, bytes 4 to 7); sizes with the device off
 * only, since enabling it adds them up. */
static bool may_write(const struct dsa_device *dsa, const struct dsa_queue *queue, uint64_t i)
{
    switch (i) {
    case DSA_WQCFG_SIZE / 4: return dsa->state == DSA_DISABLED;
    case DSA_WQCFG_THRESHOLD / 4: return true;
    default: return !queue->enabled;
    }
}

static void queue_write(const struct dsa_device *dsa, struct dsa_queue *queue, uint64_t offset,
                        uint32_t value)
{
    static const uint32_t writable[DSA_WQCFG_BYTES / 4] = {
        [DSA_WQCFG_SIZE / 4] = 0xffff,
        [DSA_WQCFG_THRESHOLD / 4] = 0xffff,
        [DSA_WQCFG_MODE / 4] = DSA_WQCFG_DEDICATED | DSA_WQCFG_BLOCK | DSA_WQCFG_PRIORITY_MASK |
                               DSA_WQCFG_PASID_ENABLE,
        [DSA_WQCFG_LIMITS / 4] = DSA_WQCFG_TRANSFER_MASK | DSA_WQCFG_BATCH_MASK,
    };
    const uint64_t i = offset % DSA_WQCFG_BYTES / 4;
    if (may_write(dsa, queue, i))
        queue->config[i] = value & writable[i];
}

/* ---- Reads ----------------------------------------------------------------------------------- */

static uint32_t half(uint64_t value, uint64_t offset)
{
    return (uint32_t)(value >> 8 * (offset & 4));
}

uint32_t dsa_register_read(struct pcie_function *function, uint64_t offset)
{
    struct dsa_device *dsa = dsa_of(function);
    switch (offset) {
    case DSA_GENCFG: return dsa->gencfg;
    case DSA_GENCTRL: return dsa->genctrl;
    case DSA_GENSTS: return dsa->state | dsa->reset_type << DSA_GENSTS_RESET_SHIFT;
    case DSA_INTCAUSE: return dsa->intcause;
    case DSA_CMDSTS: return dsa->cmdsts;
    case DSA_CMDCAP: return dsa_command_capability();
    default: break;
    }
    if (offset < DSA_GENCFG)
        return half(capability(&dsa->params, offset & ~UINT64_C(7)), offset);
    if (offset - DSA_SWERR < sizeof(dsa->swerr))
        return half(dsa->swerr[(offset - DSA_SWERR) / 8], offset);
    struct dsa_group *group = offset < DSA_TABLE_QUEUES ? group_at(dsa, offset) : NULL;
    const uint64_t *word = group != NULL ? group_word(group, offset) : NULL;
    if (word != NULL)
        return half(*word, offset);
    const struct dsa_queue *queue = queue_at(dsa, offset);
    return queue != NULL ? queue_read(queue, offset) : 0;
}

/* ---- Writes ---------------------------------------------------------------------------------- */

static void group_write(struct dsa_device *dsa, struct dsa_group *group, uint64_t offset,
                        uint32_t value)
{
    uint64_t *word = group_word(group, offset);
    const unsigned shift = 8 * (offset & 4);
    if (word != NULL && dsa->state == DSA_DISABLED)
        *word = (*word & ~((uint64_t)UINT32_MAX << shift)) | (uint64_t)value << shift;
}

/* A 1 in VALID or OVERFLOW clears it; without VALID, the rest says nothing. */
static void swerr_write(struct dsa_device *dsa, uint32_t value)
{
    dsa->swerr[0] &= ~(value & (DSA_SWERR_VALID | DSA_SWERR_OVERFLOW));
    if (!(dsa->swerr[0] & DSA_SWERR_VALID))
        memset(dsa->swerr, 0, sizeof(dsa->swerr));
}

void dsa_register_write(struct pcie_function *function, uint64_t offset, uint32_t value)
{
    struct dsa_device *dsa = dsa_of(function);
    switch (offset) {
    case DSA_GENCFG:
        if (dsa->state == DSA_DISABLED)
            dsa->gencfg = value & DSA_GENCFG_READ_BUFFERS_MASK;
        return;
    case DSA_GENCTRL:
        dsa->genctrl = value & (DSA_GENCTRL_ERROR_VECTOR | DSA_GENCTRL_HALT_VECTOR);
        return;
    case DSA_INTCAUSE: dsa->intcause &= ~value; return;
    case DSA_CMD: dsa_command_write(dsa, value); return;
    case DSA_SWERR: swerr_write(dsa, value); return;
    default: break;
    }
    struct dsa_group *group = offset < DSA_TABLE_QUEUES ? group_at(dsa, offset) : NULL;
    if (group != NULL) {
        group_write(dsa, group, offset, value);
        return;
    }
    struct dsa_queue *queue = queue_at(dsa, offset);
    if (queue != NULL)
        queue_write(dsa, queue, offset, value);
}

/* ---- Reset ----------------------------------------------------------------------------------- */

void dsa_registers_reset(struct dsa_device *dsa, enum dsa_reset type)
{
    dsa->gencfg = dsa->genctrl = dsa->intcause = dsa->cmdsts = 0;
    dsa->command = 0;
    dsa->state = DSA_DISABLED;
    dsa->reset_type = type;
    memset(dsa->swerr, 0, sizeof(dsa->swerr));
    for (uint32_t i = 0; i < dsa->params.queues; i++) {
        struct dsa_queue *queue = &dsa->queue[i];
        memset(queue->config, 0, sizeof(queue->config));
        queue->enabled = queue->closed = false;
        queue->group = NULL;
    }
    for (uint32_t i = 0; i < dsa->params.groups; i++) {
        struct dsa_group *group = &dsa->group[i];
        group->queues = group->engines = 0;
        group->flags = (uint64_t)dsa->params.read_buffers << DSA_GRPFLAGS_ALLOWED_SHIFT;
    }
    for (uint32_t i = 0; i < dsa->params.engines; i++)
        dsa->engine[i].group = NULL;
}
