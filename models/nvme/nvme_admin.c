/*
 * Admin commands of nvme.controller.
 *
 * Models: Identify (controller, namespace, list of namespaces), Create and Delete of I/O queues,
 *   the feature Number of Queues, Abort (which does not abort: the command ends by itself soon),
 *   one Asynchronous Event Request, which waits.
 * Does not model: log pages, other features, firmware, format, namespace management; events.
 * Timing: a command acts when it has been fetched; Delete of a submission queue is complete when
 *   the last of its commands is.
 * Sources: NVM Express 1.3, section 5.
 */
#include <stdio.h>
#include <string.h>

#include "models/nvme/nvme_internal.h"

#define MAX_QUEUE_PAIRS_BITS 16

/* ---- Identify -------------------------------------------------------------------------------- */

static unsigned log2_of(uint64_t value)
{
    return 63 - (unsigned)__builtin_clzll(value);
}

/* Text in a field that is filled up with spaces. */
static void put_text(uint8_t *at, size_t bytes, const char *text)
{
    size_t n = strlen(text);
    memset(at, ' ', bytes);
    memcpy(at, text, SIM_MIN(n, bytes));
}

static void identify_controller(const struct nvme *nvme, uint8_t *page)
{
    const struct nvme_params *params = nvme_params(nvme);
    uint16_t ids[2] = { (uint16_t)params->vendor_id, (uint16_t)params->vendor_id };
    uint32_t version = NVME_VERSION_1_3, n = params->n_namespaces;
    memcpy(page + NVME_ID_CTRL_VID, ids, sizeof(ids));
    put_text(page + NVME_ID_CTRL_SERIAL, 20, nvme->sub->model->name);
    put_text(page + NVME_ID_CTRL_MODEL, 40, nvme_ops.type);
    page[NVME_ID_CTRL_MDTS] = (uint8_t)log2_of(params->transfer_bytes_max / NVME_PAGE_BYTES);
    memcpy(page + NVME_ID_CTRL_VER, &version, sizeof(version));
    page[NVME_ID_CTRL_SQES] = NVME_SQE_LOG2 << 4 | NVME_SQE_LOG2;
    page[NVME_ID_CTRL_CQES] = NVME_CQE_LOG2 << 4 | NVME_CQE_LOG2;
    memcpy(page + NVME_ID_CTRL_NN, &n, sizeof(n));
}

static void identify_namespace(const struct nvme *nvme, uint8_t *page)
{
    uint64_t blocks = nvme_params(nvme)->capacity_bytes / nvme_params(nvme)->block_bytes;
    uint32_t format = log2_of(nvme_params(nvme)->block_bytes) << 16;
    memcpy(page + NVME_ID_NS_SIZE, &blocks, sizeof(blocks));
    memcpy(page + NVME_ID_NS_CAPACITY, &blocks, sizeof(blocks));
    memcpy(page + NVME_ID_NS_USE, &blocks, sizeof(blocks));
    memcpy(page + NVME_ID_NS_LBAF0, &format, sizeof(format));
}

static void identify(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    uint8_t page[NVME_PAGE_BYTES] = { 0 };
    uint32_t nsid = command->sqe.nsid;
    switch (command->sqe.cdw10 & 0xffu) {
    case NVME_IDENTIFY_CONTROLLER: identify_controller(nvme, page); break;
    case NVME_IDENTIFY_NAMESPACE:
        if (nsid == 0 || nsid > nvme_params(nvme)->n_namespaces) {
            nvme_complete(command, NVME_SC_INVALID_NAMESPACE);
            return;
        }
        identify_namespace(nvme, page);
        break;
    case NVME_IDENTIFY_ACTIVE:
        for (uint32_t i = nsid, n = 0; i < nvme_params(nvme)->n_namespaces; i++, n++) {
            uint32_t id = i + 1;
            memcpy(page + sizeof(id) * n, &id, sizeof(id));
        }
        break;
    default: nvme_complete(command, NVME_SC_INVALID_FIELD); return;
    }
    nvme_send_page(command, page);
}

/* ---- Queues ---------------------------------------------------------------------------------- */

/* What both kinds are asked alike. */
static enum nvme_status check_create(const struct nvme *nvme, const struct nvme_sqe *sqe,
                                     bool exists)
{
    uint32_t number = sqe->cdw10 & 0xffffu, entries = (sqe->cdw10 >> 16) + 1;
    if (number == 0 || number >= nvme->n_queues || exists)
        return NVME_SC_QUEUE_ID_INVALID;
    if (entries < 2 || entries > nvme_params(nvme)->queue_entries)
        return NVME_SC_QUEUE_SIZE_INVALID;
    if ((sqe->cdw11 & NVME_QUEUE_CONTIGUOUS) == 0)
        return NVME_SC_INVALID_FIELD;
    return sqe->prp1 % NVME_PAGE_BYTES == 0 ? NVME_SC_SUCCESS : NVME_SC_PRP_OFFSET_INVALID;
}

static enum nvme_status create_cq(struct nvme *nvme, const struct nvme_sqe *sqe)
{
    uint32_t number = sqe->cdw10 & 0xffffu, vector = sqe->cdw11 >> 16;
    bool exists = number < nvme->n_queues && nvme->cq[number].there;
    enum nvme_status status = check_create(nvme, sqe, exists);
    if (status != NVME_SC_SUCCESS)
        return status;
    if (vector >= nvme->n_vectors)
        return NVME_SC_VECTOR_INVALID;
    nvme_cq_create(nvme, (uint16_t)number, sqe->prp1, (sqe->cdw10 >> 16) + 1,
                   (sqe->cdw11 & NVME_CQ_INTERRUPTS) != 0, (uint16_t)vector);
    return NVME_SC_SUCCESS;
}

static enum nvme_status create_sq(struct nvme *nvme, const struct nvme_sqe *sqe)
{
    uint32_t number = sqe->cdw10 & 0xffffu, cq = sqe->cdw11 >> 16;
    bool exists = number < nvme->n_queues && nvme->sq[number] != NULL && nvme->sq[number]->there;
    enum nvme_status status = check_create(nvme, sqe, exists);
    if (status != NVME_SC_SUCCESS)
        return status;
    if (cq == 0 || cq >= nvme->n_queues || !nvme->cq[cq].there)
        return NVME_SC_CQ_INVALID;
    nvme_sq_create(nvme, (uint16_t)number, sqe->prp1, (sqe->cdw10 >> 16) + 1, (uint16_t)cq);
    return NVME_SC_SUCCESS;
}

static enum nvme_status delete_cq(struct nvme *nvme, uint32_t number)
{
    if (number == 0 || number >= nvme->n_queues || !nvme->cq[number].there)
        return NVME_SC_QUEUE_ID_INVALID;
    if (nvme->cq[number].n_sqs != 0)
        return NVME_SC_QUEUE_DELETION_INVALID;
    nvme->cq[number].there = false;
    return NVME_SC_SUCCESS;
}

static void delete_sq(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    uint32_t number = command->sqe.cdw10 & 0xffffu;
    struct nvme_sq *sq = number < nvme->n_queues ? nvme->sq[number] : NULL;
    if (number == 0 || sq == NULL || !sq->there || sq->deleting) {
        nvme_complete(command, NVME_SC_QUEUE_ID_INVALID);
        return;
    }
    sq->deleting = true;
    if (sq->n_commands != 0 || sq->fetching) {
        sq->delete_command = command;
        return;
    }
    nvme_sq_delete(nvme, (uint16_t)number);
    nvme_complete(command, NVME_SC_SUCCESS);
}

/* ---- The rest -------------------------------------------------------------------------------- */

static enum nvme_status feature(struct nvme_command *command)
{
    uint32_t most = command->nvme->n_queues - 2; /* as a value that counts from 0 */
    if ((command->sqe.cdw10 & 0xffu) != NVME_FEATURE_QUEUES)
        return NVME_SC_INVALID_FIELD;
    command->result = most << MAX_QUEUE_PAIRS_BITS | most;
    return NVME_SC_SUCCESS;
}

static void async_event(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    if (nvme->async != NULL) {
        nvme_complete(command, NVME_SC_ASYNC_LIMIT);
        return;
    }
    nvme->async = command;
    nvme->sub->n_commands--; /* takes no room that others need */
    nvme_fetch(nvme->sub);
}

void nvme_admin(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    const struct nvme_sqe *sqe = &command->sqe;
    nvme->sub->stats.admin_commands++;
    switch ((enum nvme_admin_opcode)sqe->opcode) {
    case NVME_ADMIN_IDENTIFY: identify(command); break;
    case NVME_ADMIN_DELETE_SQ: delete_sq(command); break;
    case NVME_ADMIN_ASYNC_EVENT: async_event(command); break;
    case NVME_ADMIN_CREATE_SQ: nvme_complete(command, create_sq(nvme, sqe)); break;
    case NVME_ADMIN_CREATE_CQ: nvme_complete(command, create_cq(nvme, sqe)); break;
    case NVME_ADMIN_DELETE_CQ: nvme_complete(command, delete_cq(nvme, sqe->cdw10 & 0xffffu)); break;
    case NVME_ADMIN_SET_FEATURES:
    case NVME_ADMIN_GET_FEATURES: nvme_complete(command, feature(command)); break;
    case NVME_ADMIN_ABORT:
        command->result = NVME_ABORT_NOT_ABORTED;
        nvme_complete(command, NVME_SC_SUCCESS);
        break;
    default: nvme_complete(command, NVME_SC_INVALID_OPCODE); break;
    }
}
