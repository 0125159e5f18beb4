/*
 * Identify of nvme.controller.
 *
 * Models: controller, namespace, list of active namespaces, namespace identification descriptors
 *   (EUI-64 and NGUID), lists of controllers.
 * Does not model: namespace management; power states and identifiers by which anything is computed.
 * Sources: NVM Express 1.3, section 5.15.
 */
#include <stdio.h>
#include <string.h>

#include "models/nvme/nvme_internal.h"

#define NQN_BYTES 256u
/* Of a controller list: number of entries, identifiers. */
#define CONTROLLERS_MAX 2047u

static unsigned log2_of(uint64_t value)
{
    return 63 - (unsigned)__builtin_clzll(value);
}

static void put16(uint8_t *at, uint32_t value)
{
    uint16_t bytes = (uint16_t)value;
    memcpy(at, &bytes, sizeof(bytes));
}

static void put32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof(value));
}

static void put64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, sizeof(value));
}

/* Text in a field that is filled up with spaces. */
static void put_text(uint8_t *at, size_t bytes, const char *text)
{
    size_t n = strlen(text);
    memset(at, ' ', bytes);
    memcpy(at, text, SIM_MIN(n, bytes));
}

/* ---- Controller (5.15.3) ----------------------------------------------------------------- */

static void put_commands(const struct nvme *nvme, uint8_t *page)
{
    const struct nvme_params *params = nvme_params(nvme);
    page[NVME_ID_CTRL_SQES] = NVME_SQE_LOG2 << 4 | NVME_SQE_LOG2;
    page[NVME_ID_CTRL_CQES] = NVME_CQE_LOG2 << 4 | NVME_CQE_LOG2;
    put16(page + NVME_ID_CTRL_MAXCMD, SIM_MIN(params->queue_entries, 65535u));
    put32(page + NVME_ID_CTRL_NN, params->n_namespaces);
    put16(page + NVME_ID_CTRL_ONCS, NVME_ONCS_COMPARE | NVME_ONCS_WRITE_UNCORRECTABLE |
                                        NVME_ONCS_DATASET | NVME_ONCS_WRITE_ZEROES |
                                        NVME_ONCS_SAVE_SELECT);
    put32(page + NVME_ID_CTRL_SGLS,
          NVME_SGLS_ANY_ALIGNMENT | NVME_SGLS_BIT_BUCKET | NVME_SGLS_LONGER);
}

static enum nvme_status controller(struct nvme_command *command, uint8_t *page)
{
    const struct nvme *nvme = command->nvme;
    const struct nvme_params *params = nvme_params(nvme);
    const char *name = nvme->sub->model->name;
    put16(page + NVME_ID_CTRL_VID, params->vendor_id);
    put16(page + NVME_ID_CTRL_SSVID, params->vendor_id);
    put_text(page + NVME_ID_CTRL_SERIAL, 20, name);
    put_text(page + NVME_ID_CTRL_MODEL, 40, nvme_ops.type);
    put_text(page + NVME_ID_CTRL_FIRMWARE, 8, NVME_FIRMWARE);
    page[NVME_ID_CTRL_RAB] = (uint8_t)nvme->features[NVME_SELECT_DEFAULT].arbitration;
    page[NVME_ID_CTRL_MDTS] = (uint8_t)log2_of(params->transfer_bytes_max / NVME_PAGE_BYTES);
    page[NVME_ID_CTRL_CMIC] = (uint8_t)((params->n_ports > 1 ? NVME_CMIC_PORTS : 0) |
                                        (nvme->sub->n_controllers > 1 ? NVME_CMIC_CONTROLLERS : 0) |
                                        (nvme->primary != NULL ? NVME_CMIC_VF : 0));
    put16(page + NVME_ID_CTRL_CNTLID, nvme->id);
    put16(page + NVME_ID_CTRL_OACS, nvme->n_secondary != 0 ? NVME_OACS_VIRTUALIZATION : 0);
    put32(page + NVME_ID_CTRL_VER, NVME_VERSION_1_3);
    page[NVME_ID_CTRL_ACL] = NVME_ABORTS_MAX - 1;
    page[NVME_ID_CTRL_AERL] = NVME_EVENT_REQUESTS_MAX - 1;
    page[NVME_ID_CTRL_FRMW] = NVME_FRMW_SLOT1_READ_ONLY | NVME_FRMW_ONE_SLOT;
    page[NVME_ID_CTRL_LPA] = NVME_LPA_EFFECTS | NVME_LPA_EXTENDED;
    page[NVME_ID_CTRL_ELPE] = NVME_ERRORS_MAX - 1;
    put16(page + NVME_ID_CTRL_WCTEMP, NVME_WARNING_K);
    put16(page + NVME_ID_CTRL_CCTEMP, NVME_CRITICAL_K);
    put_commands(nvme, page);
    snprintf((char *)page + NVME_ID_CTRL_SUBNQN, NQN_BYTES, "nqn.2014-08.org.nvmexpress:nudma:%s",
             name);
    return NVME_SC_SUCCESS;
}

/* ---- Namespaces ------------------------------------------------------------------------------ */

static enum nvme_status check_namespace(struct nvme_command *command)
{
    const uint32_t nsid = command->sqe.nsid;
    if (nsid == 0 || nsid > nvme_params(command->nvme)->n_namespaces)
        return nvme_wrong(command, NVME_SC_INVALID_NAMESPACE, NVME_AT(nsid, 0));
    return NVME_SC_SUCCESS;
}

/* The same for all controllers, different for each namespace of a run (FNV-1a of the name). */
static uint64_t eui64(const struct nvme_command *command)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *at = command->nvme->sub->model->name; *at != '\0'; at++)
        hash = (hash ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
    return (hash ^ command->sqe.nsid) * UINT64_C(0x100000001b3);
}

static void put_big_endian(uint8_t *at, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> (56 - 8 * i));
}

static enum nvme_status namespace(struct nvme_command *command, uint8_t *page) {
    const struct nvme_params *params = nvme_params(command->nvme);
    const uint64_t blocks = params->capacity_bytes / params->block_bytes;
    enum nvme_status status = check_namespace(command);
    if (status != NVME_SC_SUCCESS) return status;
    put64(page + NVME_ID_NS_SIZE, blocks);
    put64(page + NVME_ID_NS_CAPACITY, blocks);
    put64(page + NVME_ID_NS_USE, blocks);
    page[NVME_ID_NS_NMIC] = command->nvme->sub->n_controllers > 1 ? NVME_NMIC_SHARED : 0;
    page[NVME_ID_NS_DLFEAT] = NVME_DLFEAT_ZEROS | NVME_DLFEAT_WRITE_ZEROES;
    put_big_endian(page + NVME_ID_NS_NGUID + 8, eui64(command));
    put_big_endian(page + NVME_ID_NS_EUI64, eui64(command));
    put32(page + NVME_ID_NS_LBAF0, log2_of(params->block_bytes) << 16);
    return NVME_SC_SUCCESS;
}

/* Ascending, those behind the one that is named. */
static enum nvme_status active(struct nvme_command *command, uint8_t *page)
{
    const uint32_t n = nvme_params(command->nvme)->n_namespaces, nsid = command->sqe.nsid;
    if (nsid >= NVME_NSID_ALL - 1)
        return nvme_wrong(command, NVME_SC_INVALID_NAMESPACE, NVME_AT(nsid, 0));
    for (uint32_t id = nsid + 1, i = 0; id <= n; id++, i++)
        put32(page + sizeof(id) * i, id);
    return NVME_SC_SUCCESS;
}

/* 5.15.5. */
static enum nvme_status descriptors(struct nvme_command *command, uint8_t *page)
{
    enum nvme_status status = check_namespace(command);
    if (status != NVME_SC_SUCCESS)
        return status;
    page[0] = NVME_NS_EUI64;
    page[1] = 8;
    put_big_endian(page + 4, eui64(command));
    page[12] = NVME_NS_NGUID;
    page[13] = 16;
    put_big_endian(page + 12 + 4 + 8, eui64(command));
    return NVME_SC_SUCCESS;
}

/* ---- Controllers ----------------------------------------------------------------------------- */

/* Those of the subsystem from identifier cdw10 31:16 on: all namespaces are attached to all. */
static enum nvme_status controllers(struct nvme_command *command, uint8_t *page)
{
    const struct nvme_subsystem *sub = command->nvme->sub;
    uint32_t n = 0;
    for (uint32_t id = command->sqe.cdw10 >> 16; id < sub->n_controllers && n < CONTROLLERS_MAX;
         id++)
        put16(page + 2 + 2 * n++, id);
    put16(page, n);
    return NVME_SC_SUCCESS;
}

static enum nvme_status namespace_controllers(struct nvme_command *command, uint8_t *page)
{
    enum nvme_status status = check_namespace(command);
    return status == NVME_SC_SUCCESS ? controllers(command, page) : status;
}

/* ---- Identify -------------------------------------------------------------------------------- */

const struct nvme_identify_desc nvme_identifies[NVME_IDENTIFIES] = {
    [NVME_IDENTIFY_NAMESPACE] = { "namespace", namespace },
    [NVME_IDENTIFY_CONTROLLER] = { "controller", controller },
    [NVME_IDENTIFY_ACTIVE] = { "active namespaces", active },
    [NVME_IDENTIFY_DESCRIPTORS] = { "namespace identification descriptors", descriptors },
    [NVME_IDENTIFY_NS_CONTROLLERS] = { "controllers of a namespace", namespace_controllers },
    [NVME_IDENTIFY_CONTROLLERS] = { "controllers", controllers },
    [NVME_IDENTIFY_PRIMARY] = { "primary controller capabilities", nvme_virtual_primary },
    [NVME_IDENTIFY_SECONDARY] = { "secondary controllers", nvme_virtual_secondary },
};

void nvme_identify(struct nvme_command *command)
{
    const uint32_t cns = command->sqe.cdw10 & 0xffu;
    const struct nvme_identify_desc *desc = cns < NVME_IDENTIFIES ? &nvme_identifies[cns] : NULL;
    enum nvme_status status;
    if (desc == NULL || desc->put == NULL)
        status = nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw10, 0));
    else
        status = desc->put(command, nvme_data_page(command));
    if (status == NVME_SC_SUCCESS)
        nvme_data_send(command, 0, NVME_IDENTIFY_BYTES);
    else
        nvme_complete(command, status);
}
