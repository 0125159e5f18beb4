/*
 * Virtualization enhancements of nvme.controller.
 *
 * Models: a secondary controller in each virtual function (SR-IOV; models/pcie/endpoint/pcie_vf.c);
 *   queues and interrupt vectors that belong to the primary controller's pool and are assigned to
 *   secondary controllers, or to the primary one (from its next reset on); secondary controllers
 *   that are usable online only: with two queues and a vector at least and their virtual function
 *   enabled. A controller-level reset of the primary controller takes its secondary ones offline.
 * Does not model: ARI, hence seven of them at most for a port; assignment of a namespace.
 * Sources: NVM Express 1.3, sections 8.5, 5.22, 5.15.10, 5.15.11; SR-IOV 1.1.
 */
#include <stdlib.h>
#include <string.h>

#include "models/nvme/nvme_internal.h"

#define FIRST_OFFSET 1u /* requester IDs: functions 1, 2, ... of the device */
#define STRIDE       1u
#define QUEUES_MIN   2u /* to be online */
#define VECTORS_MIN  1u

/* ---- The pool -------------------------------------------------------------------------------- */

static uint32_t total(const struct nvme *primary, enum nvme_resource resource)
{
    const struct nvme_params *params = nvme_params(primary);
    if (primary->n_secondary == 0)
        return 0;
    return resource == NVME_RESOURCE_QUEUES ? params->flexible_queues : params->flexible_vectors;
}

static uint32_t assigned(const struct nvme *primary, enum nvme_resource resource)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < primary->n_secondary; i++)
        n += primary->secondary[i].flexible[resource];
    return n;
}

/* ---- State ----------------------------------------------------------------------------------- */

static void set_online(struct nvme *secondary, bool online)
{
    secondary->offline = !online;
    secondary->n_queues = secondary->flexible[NVME_RESOURCE_QUEUES];
    secondary->n_vectors = secondary->flexible[NVME_RESOURCE_INTERRUPTS];
    nvme_controller_restart(secondary);
}

void nvme_virtual_reset(struct nvme *nvme)
{
    const struct nvme_params *params = nvme_params(nvme);
    if (nvme->primary != NULL)
        return;
    nvme->n_queues = params->n_queues + nvme->flexible[NVME_RESOURCE_QUEUES];
    nvme->n_vectors = params->n_vectors + nvme->flexible[NVME_RESOURCE_INTERRUPTS];
    for (uint32_t i = 0; i < nvme->n_secondary; i++)
        if (!nvme->secondary[i].offline)
            set_online(&nvme->secondary[i], false);
}

/* ---- Virtualization Management (5.22) -------------------------------------------------------- */

static struct nvme *find(const struct nvme *primary, uint32_t id)
{
    for (uint32_t i = 0; i < primary->n_secondary; i++)
        if (primary->secondary[i].id == id)
            return &primary->secondary[i];
    return NULL;
}

/* Takes effect with the next reset of the primary controller. */
static enum nvme_status allocate(struct nvme_command *command, enum nvme_resource resource,
                                 uint32_t n)
{
    struct nvme *primary = command->nvme;
    const uint32_t private = resource == NVME_RESOURCE_QUEUES ? nvme_params(primary)->n_queues
                                                              : nvme_params(primary)->n_vectors;
    if (n > total(primary, resource) - assigned(primary, resource) || n > NVME_QUEUES_MAX - private)
        return nvme_wrong(command, NVME_SC_RESOURCE_COUNT_INVALID, NVME_AT(cdw11, 0));
    primary->flexible[resource] = n;
    command->result = n;
    return NVME_SC_SUCCESS;
}

static enum nvme_status assign(struct nvme_command *command, struct nvme *secondary,
                               enum nvme_resource resource, uint32_t n)
{
    struct nvme *primary = command->nvme;
    const uint32_t others = assigned(primary, resource) - secondary->flexible[resource];
    if (!secondary->offline)
        return nvme_wrong(command, NVME_SC_SECONDARY_STATE_INVALID, NVME_AT(cdw10, 0));
    if (n > total(primary, resource) - others - primary->flexible[resource])
        return nvme_wrong(command, NVME_SC_RESOURCE_COUNT_INVALID, NVME_AT(cdw11, 0));
    secondary->flexible[resource] = n;
    command->result = n;
    return NVME_SC_SUCCESS;
}

static enum nvme_status online(struct nvme_command *command, struct nvme *secondary)
{
    if (secondary->flexible[NVME_RESOURCE_QUEUES] < QUEUES_MIN ||
        secondary->flexible[NVME_RESOURCE_INTERRUPTS] < VECTORS_MIN || secondary->function.gone)
        return nvme_wrong(command, NVME_SC_SECONDARY_STATE_INVALID, NVME_AT(cdw10, 0));
    if (secondary->offline)
        set_online(secondary, true);
    return NVME_SC_SUCCESS;
}

static enum nvme_status manage(struct nvme_command *command)
{
    struct nvme *primary = command->nvme;
    const uint32_t cdw10 = command->sqe.cdw10, action = cdw10 & 0xfu, resource = cdw10 >> 8 & 0x7u;
    const uint32_t id = cdw10 >> 16, n = command->sqe.cdw11 & 0xffffu;
    struct nvme *secondary = find(primary, id);
    if (primary->n_secondary == 0)
        return nvme_wrong(command, NVME_SC_INVALID_OPCODE, NVME_AT(opcode, 0));
    if (action != NVME_VIRTUAL_PRIMARY_ALLOCATE && action != NVME_VIRTUAL_OFFLINE &&
        action != NVME_VIRTUAL_ASSIGN && action != NVME_VIRTUAL_ONLINE)
        return nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw10, 0));
    if (action == NVME_VIRTUAL_PRIMARY_ALLOCATE ? id != primary->id : secondary == NULL)
        return nvme_wrong(command, NVME_SC_CONTROLLER_ID_INVALID, NVME_AT(cdw10, 16));
    if ((action == NVME_VIRTUAL_PRIMARY_ALLOCATE || action == NVME_VIRTUAL_ASSIGN) &&
        resource > NVME_RESOURCE_INTERRUPTS)
        return nvme_wrong(command, NVME_SC_RESOURCE_ID_INVALID, NVME_AT(cdw10, 8));
    switch (action) {
    case NVME_VIRTUAL_PRIMARY_ALLOCATE: return allocate(command, (enum nvme_resource)resource, n);
    case NVME_VIRTUAL_ASSIGN: return assign(command, secondary, (enum nvme_resource)resource, n);
    case NVME_VIRTUAL_ONLINE: return online(command, secondary);
    default:
        if (!secondary->offline)
            set_online(secondary, false);
        return NVME_SC_SUCCESS;
    }
}

void nvme_virtualization(struct nvme_command *command)
{
    nvme_complete(command, manage(command));
}

/* ---- Identify (5.15.10, 5.15.11) ----------------------------------------------------------- */

static void put16(uint8_t *at, uint32_t value)
{
    uint16_t bytes = (uint16_t)value;
    memcpy(at, &bytes, sizeof(bytes));
}

static void put32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof(value));
}

/* The fields of one resource: total, assigned, of the primary controller, private, at most. */
static void put_resource(const struct nvme *primary, uint8_t *at, enum nvme_resource resource,
                         uint32_t private)
{
    put32(at, total(primary, resource));
    put32(at + 4, assigned(primary, resource));
    put16(at + 8, primary->flexible[resource]);
    put16(at + 10, private);
    put16(at + 12, total(primary, resource));
    put16(at + 14, 1); /* granularity */
}

enum nvme_status nvme_virtual_primary(struct nvme_command *command, uint8_t *page)
{
    const struct nvme *primary = command->nvme;
    if (primary->n_secondary == 0)
        return nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw10, 0));
    put16(page + NVME_ID_PRIMARY_CNTLID, primary->id);
    put16(page + NVME_ID_PRIMARY_PORTID, primary->port);
    page[NVME_ID_PRIMARY_CRT] = 1u << NVME_RESOURCE_QUEUES | 1u << NVME_RESOURCE_INTERRUPTS;
    put_resource(primary, page + NVME_ID_PRIMARY_VQFRT, NVME_RESOURCE_QUEUES,
                 nvme_params(primary)->n_queues);
    put_resource(primary, page + NVME_ID_PRIMARY_VIFRT, NVME_RESOURCE_INTERRUPTS,
                 nvme_params(primary)->n_vectors);
    return NVME_SC_SUCCESS;
}

/* Those from identifier cdw10 31:16 on. */
enum nvme_status nvme_virtual_secondary(struct nvme_command *command, uint8_t *page)
{
    const struct nvme *primary = command->nvme;
    uint8_t *at = page + NVME_ID_SECONDARY_ENTRIES;
    if (primary->n_secondary == 0)
        return nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw10, 0));
    for (uint32_t i = 0; i < primary->n_secondary; i++) {
        const struct nvme *secondary = &primary->secondary[i];
        if (secondary->id < command->sqe.cdw10 >> 16)
            continue;
        put16(at + NVME_SECONDARY_SCID, secondary->id);
        put16(at + NVME_SECONDARY_PCID, primary->id);
        at[NVME_SECONDARY_STATE] = !secondary->offline;
        put16(at + NVME_SECONDARY_VFN, i + 1);
        put16(at + NVME_SECONDARY_NVQ, secondary->flexible[NVME_RESOURCE_QUEUES]);
        put16(at + NVME_SECONDARY_NVI, secondary->flexible[NVME_RESOURCE_INTERRUPTS]);
        at += NVME_SECONDARY_BYTES;
        page[NVME_ID_SECONDARY_COUNT]++;
    }
    return NVME_SC_SUCCESS;
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

void nvme_virtual_init(struct nvme *primary)
{
    struct nvme_subsystem *sub = primary->sub;
    const struct nvme_params *params = &sub->params;
    const struct cfg_sriov sriov = { .total_vfs = (uint16_t)params->n_vfs,
                                     .first_offset = FIRST_OFFSET,
                                     .stride = STRIDE,
                                     .vf_device_id = (uint16_t)params->device_id,
                                     .bar_bytes = NVME_BAR_BYTES };
    if (params->n_vfs == 0)
        return;
    pcie_vf_add(&primary->function, &sriov);
    primary->n_secondary = params->n_vfs;
    primary->secondary = sim_zalloc(params->n_vfs, sizeof(*primary->secondary));
    for (uint32_t v = 0; v < params->n_vfs; v++)
        nvme_controller_init(sub, &primary->secondary[v], primary->port, primary);
}

void nvme_virtual_release(struct nvme *primary)
{
    for (uint32_t v = 0; v < primary->n_secondary; v++)
        nvme_controller_release(&primary->secondary[v]);
    free(primary->secondary);
}
