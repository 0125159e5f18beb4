/*
 * Commands on the admin queues of a target, and Fabrics commands.
 *
 * What it does: Connect (a controller per admin queue, I/O queues that belong to it), properties as
 *   registers of that controller, Identify with what the backing controller says and what Fabrics
 *   adds, number of queues, Keep Alive, Abort that aborts nothing, one asynchronous event request
 *   that waits.
 * Leaves out: log pages, other features, discovery, reservations.
 * Follows: NVM Express over Fabrics 1.0, 3.3 to 3.5, 4.1; NVM Express 1.3, 5.
 * Costs: none of its own: these are not in the data path.
 */
#include <errno.h>

#include "logic/nvmeof/nvmeof_internal.h"

#define DNR NVME_STATUS_DNR

/* ---- Connect --------------------------------------------------------------------------------- */

static struct target_controller *controller_new(struct nvmeof_target *target)
{
    for (uint16_t i = 0; i < NVMEOF_CONTROLLERS; i++)
        if (!target->controller[i].used) {
            target->controller[i] = (struct target_controller){ .used = true,
                                                                .cntlid = (uint16_t)(i + 1u) };
            return &target->controller[i];
        }
    return NULL;
}

/* That of an I/O queue, which its host has made before. */
static struct target_controller *controller_of(struct nvmeof_target *target,
                                               const struct nvmeof_connect_data *data)
{
    if (data->cntlid == 0 || data->cntlid > NVMEOF_CONTROLLERS)
        return NULL;
    struct target_controller *controller = &target->controller[data->cntlid - 1];
    const bool same = memcmp(controller->host, data->host, sizeof controller->host) == 0;
    return controller->used && !controller->closing && same ? controller : NULL;
}

static uint16_t check_connect(const struct target_queue *queue,
                              const struct nvmeof_connect *connect,
                              const struct nvmeof_connect_data *data, uint32_t capsule_data_bytes)
{
    if (queue->state != TARGET_NEW)
        return NVME_SC_SEQUENCE_ERROR | DNR;
    if (connect->data.type != NVMEOF_SGL_IN_CAPSULE || connect->data.address != 0 ||
        nvmeof_sgl_bytes(&connect->data) != NVMEOF_CONNECT_BYTES ||
        capsule_data_bytes < NVMEOF_CONNECT_BYTES)
        return NVME_SC_SGL_LENGTH_INVALID | DNR;
    if (connect->format != 0)
        return NVMEOF_SC_INCOMPATIBLE_FORMAT | DNR;
    if (strncmp(data->subsystem, queue->target->subsystem, sizeof data->subsystem) != 0 ||
        connect->qid != queue->qid || connect->entries == 0 ||
        connect->entries + 1u > queue->entries ||
        (connect->qid == 0) != (data->cntlid == NVMEOF_CNTLID_DYNAMIC))
        return NVMEOF_SC_INVALID_PARAMETERS | DNR;
    return NVME_SC_SUCCESS;
}

/* I/O queues that a controller can have, by what the device has: Set Features says so. */
static unsigned queues_there(const struct nvmeof_target *target)
{
    return nvme_local_n_queues(target->params.nvme) / (target->params.offload ? 2 : 1);
}

/* Of an I/O queue that is to be the controller's. */
static uint16_t check_queue(const struct target_queue *queue,
                            const struct target_controller *controller)
{
    if ((controller->csts & NVME_CSTS_RDY) == 0)
        return NVME_SC_SEQUENCE_ERROR | DNR;
    if (queue->qid > queues_there(queue->target))
        return NVME_SC_QUEUE_ID_INVALID | DNR;
    for (const struct target_queue *other = queue->target->first; other != NULL;
         other = other->next)
        if (other->controller == controller && other->qid == queue->qid &&
            other->state == TARGET_CONNECTED)
            return NVME_SC_SEQUENCE_ERROR | DNR;
    return NVME_SC_SUCCESS;
}

static void connect_queue(struct target_request *request, uint32_t capsule_data_bytes)
{
    struct target_queue *queue = request->queue;
    struct nvmeof_target *target = queue->target;
    struct nvmeof_connect connect;
    struct nvmeof_connect_data data = { .cntlid = 0 };
    memcpy(&connect, &request->sqe, sizeof connect);
    if (capsule_data_bytes >= sizeof data)
        k_load(target->kernel, request->data.at, &data, sizeof data);
    uint16_t status = check_connect(queue, &connect, &data, capsule_data_bytes);
    struct target_controller *controller = NULL;
    if (status == NVME_SC_SUCCESS) {
        controller = queue->qid == 0 ? controller_new(target) : controller_of(target, &data);
        if (controller == NULL)
            status = queue->qid == 0 ? NVMEOF_SC_CONTROLLER_BUSY
                                     : NVMEOF_SC_INVALID_PARAMETERS | DNR;
        else if (queue->qid != 0)
            status = check_queue(queue, controller);
    }
    if (status == NVME_SC_SUCCESS && queue->adapters_nvme != NULL) {
        queue->entries = (uint16_t)(connect.entries + 1u);
        status = target_offload_begin(queue);
    }
    if (status != NVME_SC_SUCCESS) {
        target_respond(request, status, 0);
        return;
    }
    if (queue->qid == 0) {
        memcpy(controller->host, data.host, sizeof controller->host);
        controller->keep_alive_ps = connect.keep_alive_ms * K_MS;
        controller->deadline_ps = k_now_ps(target->kernel) + controller->keep_alive_ps;
    }
    queue->entries = (uint16_t)(connect.entries + 1u);
    queue->controller = controller;
    queue->state = TARGET_CONNECTED;
    controller->n_queues++;
    target->stats.connected++;
    target_respond(request, NVME_SC_SUCCESS, controller->cntlid);
}

/* ---- Properties ------------------------------------------------------------------------------ */

static void property_get(struct target_request *request)
{
    const struct target_controller *controller = request->queue->controller;
    struct nvmeof_property property;
    uint64_t value;
    memcpy(&property, &request->sqe, sizeof property);
    switch (property.offset) {
    case NVME_REG_CAP: /* 500 ms to be ready, the memory page is 4 KiB */
        value = (request->queue->target->params.entries_max - 1u) | NVME_CAP_CQR |
                1u << NVME_CAP_TO_SHIFT | NVME_CAP_CSS_NVM;
        break;
    case NVME_REG_VS: value = NVME_VERSION_1_3; break;
    case NVME_REG_CC: value = controller->cc; break;
    case NVME_REG_CSTS: value = controller->csts; break;
    default: target_respond(request, NVME_SC_INVALID_FIELD | DNR, 0); return;
    }
    if (property.size != (property.offset == NVME_REG_CAP))
        target_respond(request, NVME_SC_INVALID_FIELD | DNR, 0);
    else
        target_respond(request, NVME_SC_SUCCESS, value);
}

/* The controller's connections end behind the response. */
static void close_behind(const struct target_request *request)
{
    request->queue->controller->closing = true;
    request->queue->controller->last = request;
}

/* A controller reset ends the association (NVM Express 2.0, 3.1.1): no I/O queue outlives it, as
 * none does on PCIe, and the connection of administration ends behind the response. */
static void reset(const struct target_request *request)
{
    const struct target_controller *controller = request->queue->controller;
    close_behind(request);
    for (struct target_queue *queue = request->queue->target->first; queue != NULL;
         queue = queue->next)
        if (queue->controller == controller && queue->qid != 0)
            target_break(queue);
}

static void property_set(struct target_request *request)
{
    struct target_controller *controller = request->queue->controller;
    struct nvmeof_property property;
    memcpy(&property, &request->sqe, sizeof property);
    if (property.offset != NVME_REG_CC || property.size != 0) {
        target_respond(request, NVME_SC_INVALID_FIELD | DNR, 0);
        return;
    }
    const bool was_enabled = (controller->cc & NVME_CC_EN) != 0;
    controller->cc = (uint32_t)property.value;
    controller->csts = (controller->cc & NVME_CC_EN) != 0 ? NVME_CSTS_RDY : 0;
    if (was_enabled && controller->csts == 0)
        reset(request);
    if (NVME_CC_SHN(controller->cc) != 0) {
        controller->csts |= NVME_CSTS_SHST_COMPLETE;
        close_behind(request);
    }
    target_respond(request, NVME_SC_SUCCESS, 0);
}

static void fabrics(struct target_request *request, uint32_t capsule_data_bytes)
{
    const struct target_queue *queue = request->queue;
    const uint8_t type = (uint8_t)(request->sqe.nsid & 0xffu); /* byte 4 */
    if (type == NVMEOF_CONNECT)
        connect_queue(request, capsule_data_bytes);
    else if (queue->state != TARGET_CONNECTED)
        target_respond(request, NVME_SC_SEQUENCE_ERROR | DNR, 0);
    else if (queue->qid != 0 || (type != NVMEOF_PROPERTY_GET && type != NVMEOF_PROPERTY_SET))
        target_respond(request, NVME_SC_INVALID_FIELD | DNR, 0);
    else if (type == NVMEOF_PROPERTY_GET)
        property_get(request);
    else
        property_set(request);
}

/* ---- Admin commands -------------------------------------------------------------------------- */

/* What the controller behind it says, made that of a controller over Fabrics. */
int target_identify(struct nvmeof_target *target)
{
    struct nvme_user_controller *ctl = nvme_local_controller(target->params.nvme);
    uint8_t *id = target->id_controller;
    const uint32_t sgls = NVMEOF_SGLS_KEYED | NVMEOF_SGLS_OFFSET | 1u, one = 1;
    const uint32_t capsule = (NVMEOF_COMMAND_BYTES + target->params.in_capsule_bytes) / 16;
    const uint16_t granularity = 1;
    int error = nvme_user_identify(ctl, NVME_IDENTIFY_CONTROLLER, 0, id);
    if (error == 0)
        error = nvme_user_identify(ctl, NVME_IDENTIFY_NAMESPACE, NVMEOF_NSID, target->id_namespace);
    memcpy(&id[NVME_ID_CTRL_SGLS], &sgls, sizeof sgls);
    memcpy(&id[NVME_ID_CTRL_NN], &one, sizeof one);
    memcpy(&id[NVMEOF_ID_CTRL_IOCCSZ], &capsule, sizeof capsule);
    memcpy(&id[NVMEOF_ID_CTRL_IORCSZ], &one, sizeof one);
    memset(&id[NVMEOF_ID_CTRL_ICDOFF], 0, 2);
    id[NVMEOF_ID_CTRL_MSDBD] = 1;
    memcpy(&id[NVMEOF_ID_CTRL_KAS], &granularity, sizeof granularity);
    id[NVME_ID_CTRL_AERL] = 0; /* one event request */
    id[NVME_ID_CTRL_MDTS] = 0;
    while ((uint64_t)NVME_PAGE_BYTES << (id[NVME_ID_CTRL_MDTS] + 1) <= target->data_bytes)
        id[NVME_ID_CTRL_MDTS]++;
    memcpy(&id[NVME_ID_CTRL_SUBNQN], target->subsystem, sizeof target->subsystem);
    return error;
}

static void identify(struct target_request *request)
{
    const struct target_queue *queue = request->queue;
    struct nvmeof_target *target = queue->target;
    uint8_t data[NVME_IDENTIFY_BYTES] = { 0 };
    const uint32_t what = request->sqe.cdw10 & 0xffu, nsid = request->sqe.nsid;
    uint16_t status = NVME_SC_SUCCESS;
    if (request->sgl.type != NVMEOF_SGL_KEYED)
        status = NVME_SC_SGL_TYPE_INVALID;
    else if (nvmeof_sgl_bytes(&request->sgl) != sizeof data)
        status = NVME_SC_SGL_LENGTH_INVALID;
    else if (what == NVME_IDENTIFY_NAMESPACE && nsid != NVMEOF_NSID)
        status = NVME_SC_INVALID_NAMESPACE;
    else if (what == NVME_IDENTIFY_NAMESPACE)
        memcpy(data, target->id_namespace, sizeof data);
    else if (what == NVME_IDENTIFY_CONTROLLER)
        memcpy(data, target->id_controller, sizeof data);
    else if (what == NVME_IDENTIFY_ACTIVE)
        data[0] = nsid < NVMEOF_NSID ? NVMEOF_NSID : 0;
    else
        status = NVME_SC_INVALID_FIELD;
    if (status != NVME_SC_SUCCESS) {
        target_respond(request, status | DNR, 0);
        return;
    }
    if (what == NVME_IDENTIFY_CONTROLLER)
        memcpy(&data[NVME_ID_CTRL_CNTLID], &queue->controller->cntlid, sizeof(uint16_t));
    k_store(target->kernel, request->data.at, data, sizeof data);
    target_respond_data(request, sizeof data, 0);
}

static void features(struct target_request *request)
{
    const unsigned have = queues_there(request->queue->target);
    uint32_t wanted = request->sqe.cdw11 & 0xffffu;
    if ((request->sqe.cdw10 & 0xffu) != NVME_FEATURE_QUEUES) {
        target_respond(request, NVME_SC_INVALID_FIELD | DNR, 0);
        return;
    }
    if (request->sqe.opcode == NVME_ADMIN_GET_FEATURES || wanted > have - 1)
        wanted = have - 1;
    target_respond(request, NVME_SC_SUCCESS, wanted << 16 | wanted);
}

static void administer(struct target_request *request)
{
    struct target_controller *controller = request->queue->controller;
    switch (request->sqe.opcode) {
    case NVME_ADMIN_IDENTIFY: identify(request); break;
    case NVME_ADMIN_SET_FEATURES:
    case NVME_ADMIN_GET_FEATURES: features(request); break;
    case NVME_ADMIN_KEEP_ALIVE:
        controller->deadline_ps = k_now_ps(request->queue->target->kernel) +
                                  controller->keep_alive_ps;
        target_respond(request, NVME_SC_SUCCESS, 0);
        break;
    case NVME_ADMIN_ABORT: target_respond(request, NVME_SC_SUCCESS, NVME_ABORT_NOT_ABORTED); break;
    case NVME_ADMIN_ASYNC_EVENT: /* it waits for an event that does not come */
        if (controller->has_event_request)
            target_respond(request, NVME_SC_ASYNC_LIMIT | DNR, 0);
        controller->has_event_request = true;
        break;
    default: target_respond(request, NVME_SC_INVALID_OPCODE | DNR, 0); break;
    }
}

void target_admin(struct target_request *request, uint32_t capsule_data_bytes)
{
    const struct target_queue *queue = request->queue;
    queue->target->stats.admin++;
    if (request->sqe.opcode == NVMEOF_OPCODE)
        fabrics(request, capsule_data_bytes);
    else if (queue->state != TARGET_CONNECTED || (queue->controller->csts & NVME_CSTS_RDY) == 0)
        target_respond(request, NVME_SC_SEQUENCE_ERROR | DNR, 0);
    else
        administer(request);
}
