/*
 * The administration of an NVMe controller by a process that polls.
 *
 * What it does: Reset, admin queue, Identify, number of queues; creates queue pairs for whoever has
 *   the memory, and deletes them in order; shutdown. One command at a time is waited for; those of
 *   others that share the admin queue (asynchronous events, say) end meanwhile.
 * Leaves out: interrupts, Abort, memory pages other than 4 KiB.
 * Follows: NVM Express 1.3, sections 3.1, 5, 7.4 (queues), 7.6 (initialisation, shutdown).
 * Costs: The time of the device, rounded up to the end of a sleep: 100 us for readiness, 1, 2, 4 ..
 *   32 us for commands.
 */
#include <errno.h>
#include <string.h>

#include "logic/nvme/nvme_user.h"

#define READY_SLEEP_PS  (100 * K_US)
#define SLEEP_MIN_PS    K_US
#define SLEEP_MAX_PS    (32 * K_US)
#define PROBE_PS        K_MS         /* period of checks whether the controller answers */
#define TIMEOUT_UNIT_PS (500 * K_MS) /* CAP.TO */

/* ---- Registers ------------------------------------------------------------------------------- */

static uint32_t read32(const struct nvme_user_controller *ctl, uint64_t at)
{
    const struct nvme_user_window *w = &ctl->params.registers;
    return w->ops->read32(w->context, w->base + at);
}

static void write32(const struct nvme_user_controller *ctl, uint64_t at, uint32_t value)
{
    const struct nvme_user_window *w = &ctl->params.registers;
    w->ops->write32(w->context, w->base + at, value);
}

static void write64(const struct nvme_user_controller *ctl, uint64_t at, uint64_t value)
{
    const struct nvme_user_window *w = &ctl->params.registers;
    w->ops->write64(w->context, w->base + at, value);
}

/* Until the bits of CSTS are so; 0, -ENODEV, -EIO, -ETIMEDOUT. */
static int wait_status(struct nvme_user_controller *ctl, uint32_t mask, uint32_t value)
{
    struct kernel *kernel = ctl->params.kernel;
    const uint64_t timeout_ps = ((ctl->capabilities >> NVME_CAP_TO_SHIFT & 0xffu) + 1) *
                                TIMEOUT_UNIT_PS;
    const uint64_t until_ps = k_now_ps(kernel) + timeout_ps;
    for (;;) {
        const uint32_t status = read32(ctl, NVME_REG_CSTS);
        if (status == UINT32_MAX)
            return -ENODEV;
        if ((status & mask) == value)
            return 0;
        if ((status & NVME_CSTS_CFS) != 0 && value != 0) /* a reset clears it */
            return -EIO;
        if (k_now_ps(kernel) >= until_ps)
            return -ETIMEDOUT;
        k_sleep(kernel, READY_SLEEP_PS);
    }
}

static int disable(struct nvme_user_controller *ctl)
{
    write32(ctl, NVME_REG_CC, 0);
    return wait_status(ctl, NVME_CSTS_RDY, 0);
}

static int enable(struct nvme_user_controller *ctl)
{
    const uint32_t last = ctl->params.admin_entries - 1u;
    write32(ctl, NVME_REG_AQA, last << 16 | last);
    write64(ctl, NVME_REG_ASQ, ctl->params.admin_sq.bus);
    write64(ctl, NVME_REG_ACQ, ctl->params.admin_cq.bus);
    write32(ctl, NVME_REG_CC,
            NVME_CC_IOSQES(NVME_SQE_LOG2) | NVME_CC_IOCQES(NVME_CQE_LOG2) | NVME_CC_EN |
                (ctl->params.weighted ? NVME_CC_AMS_WRR << NVME_CC_AMS_SHIFT : 0));
    return wait_status(ctl, NVME_CSTS_RDY, NVME_CSTS_RDY);
}

/* ---- Commands -------------------------------------------------------------------------------- */

static void command_done(struct nvme_user_command *command)
{
    bool *done = command->context;
    *done = true;
}

static int wait_for(struct nvme_user_controller *ctl)
{
    struct kernel *kernel = ctl->params.kernel;
    const uint64_t start_ps = k_now_ps(kernel);
    uint64_t probe_ps = start_ps + PROBE_PS, sleep_ps = SLEEP_MIN_PS;
    for (;;) {
        nvme_user_qp_poll(&ctl->admin, 0);
        if (ctl->waited_done)
            return 0;
        const uint64_t now_ps = k_now_ps(kernel);
        if (now_ps >= probe_ps) {
            if (read32(ctl, NVME_REG_CSTS) == UINT32_MAX)
                return -ENODEV;
            probe_ps = now_ps + PROBE_PS;
        }
        if (now_ps >= start_ps + ctl->params.timeout_ps)
            return -ETIMEDOUT;
        k_sleep(kernel, sleep_ps);
        if (sleep_ps < SLEEP_MAX_PS)
            sleep_ps *= 2;
    }
}

int nvme_user_admin(struct nvme_user_controller *ctl, struct nvme_user_command *command,
                    const struct nvme_user_piece *piece, unsigned n, uint32_t *result)
{
    struct nvme_user_command *waited = &ctl->waited;
    if (ctl->gone)
        return -ENODEV;
    *waited = (struct nvme_user_command){ .sqe = command->sqe,
                                          .done = command_done,
                                          .context = &ctl->waited_done };
    ctl->waited_done = false;
    int error = nvme_user_qp_submit(&ctl->admin, waited, piece, n);
    if (error != 0)
        return error;
    error = wait_for(ctl);
    if (error != 0) {
        if (error == -ETIMEDOUT)
            k_warn(ctl->params.kernel, "nvme: admin command %u was never answered",
                   command->sqe.opcode);
        ctl->gone = true; /* it may still write: the queue is of no use any more */
        return error;
    }
    command->status = waited->status;
    command->result = waited->result;
    if (result != NULL)
        *result = waited->result;
    return waited->status == NVME_SC_SUCCESS ? 0 : -EIO;
}

/* ---- What it is ------------------------------------------------------------------------------ */

int nvme_user_identify(struct nvme_user_controller *ctl, enum nvme_identify what, uint32_t nsid,
                       uint8_t data[])
{
    struct nvme_user_command command = {
        .sqe = { .opcode = NVME_ADMIN_IDENTIFY, .nsid = nsid, .cdw10 = what }
    };
    const struct nvme_user_piece page = { ctl->params.page.bus, NVME_IDENTIFY_BYTES };
    const int error = nvme_user_admin(ctl, &command, &page, 1, NULL);
    if (error == 0)
        k_load(ctl->params.kernel, ctl->params.page.at, data, NVME_IDENTIFY_BYTES);
    return error;
}

int nvme_user_identify_namespace(struct nvme_user_controller *ctl, uint32_t nsid,
                                 struct nvme_user_namespace *out)
{
    uint8_t data[NVME_IDENTIFY_BYTES];
    uint32_t lbaf;
    const int error = nvme_user_identify(ctl, NVME_IDENTIFY_NAMESPACE, nsid, data);
    if (error != 0)
        return error;
    memcpy(&out->blocks, &data[NVME_ID_NS_SIZE], sizeof out->blocks);
    memcpy(&lbaf, &data[NVME_ID_NS_LBAF0 + 4 * (data[NVME_ID_NS_FLBAS] & 0xfu)], sizeof lbaf);
    out->block_log2 = (uint8_t)(lbaf >> 16);
    return out->blocks == 0 || (out->block_log2 >= 9 && out->block_log2 <= 12) ? 0 : -ENODEV;
}

static int identify_controller(struct nvme_user_controller *ctl)
{
    uint8_t data[NVME_IDENTIFY_BYTES];
    const int error = nvme_user_identify(ctl, NVME_IDENTIFY_CONTROLLER, 0, data);
    if (error != 0)
        return error;
    const uint8_t mdts = data[NVME_ID_CTRL_MDTS];
    ctl->bytes_max = mdts != 0 && mdts < 32 ? (uint64_t)NVME_PAGE_BYTES << mdts : 0;
    memcpy(&ctl->n_namespaces, &data[NVME_ID_CTRL_NN], sizeof ctl->n_namespaces);
    return 0;
}

/* ---- Controllers come and go ----------------------------------------------------------------- */

static int read_capabilities(struct nvme_user_controller *ctl)
{
    const struct nvme_user_window *w = &ctl->params.registers;
    const uint64_t cap = w->ops->read64(w->context, w->base + NVME_REG_CAP);
    if (cap == UINT64_MAX || (cap & NVME_CAP_CSS_NVM) == 0 || (cap >> 48 & 0xfu) != 0)
        return -ENODEV;
    if (ctl->params.weighted && (cap & NVME_CAP_AMS_WRR) == 0)
        return -ENODEV;
    ctl->capabilities = cap;
    ctl->entries_max = NVME_CAP_MQES(cap);
    ctl->doorbell_bytes = 4u << NVME_CAP_DSTRD(cap);
    return 0;
}

static int admin_init(struct nvme_user_controller *ctl)
{
    const struct nvme_user_controller_params *p = &ctl->params;
    const struct nvme_user_qp_params params = { .kernel = p->kernel,
                                                .entries = p->admin_entries,
                                                .sq = p->admin_sq,
                                                .cq = p->admin_cq,
                                                .registers = p->registers,
                                                .doorbell_bytes = ctl->doorbell_bytes,
                                                .costs = p->costs };
    const int error = nvme_user_qp_init(&ctl->admin, &params);
    if (error == 0)
        nvme_user_qp_clear(&ctl->admin);
    return error;
}

int nvme_user_controller_open(struct nvme_user_controller *ctl,
                              const struct nvme_user_controller_params *params)
{
    *ctl = (struct nvme_user_controller){ .params = *params };
    if (params->registers.ops == NULL || params->page.at.v == 0 || params->timeout_ps == 0)
        return -EINVAL;
    int error = read_capabilities(ctl);
    if (error == 0)
        error = disable(ctl);
    if (error == 0)
        error = admin_init(ctl);
    if (error != 0)
        return error;
    error = enable(ctl);
    if (error == 0)
        error = identify_controller(ctl);
    if (error != 0) {
        if (error != -ENODEV)
            disable(ctl);
        nvme_user_qp_fail_all(&ctl->admin, NVME_SC_ABORTED_SQ_DELETED);
        nvme_user_qp_release(&ctl->admin);
    }
    return error;
}

static void shut_down(struct nvme_user_controller *ctl)
{
    const uint32_t cc = read32(ctl, NVME_REG_CC);
    int error = cc == UINT32_MAX ? -ENODEV : 0;
    if (error == 0) {
        write32(ctl, NVME_REG_CC, (cc & ~NVME_CC_SHN_MASK) | NVME_CC_SHN_NORMAL);
        error = wait_status(ctl, NVME_CSTS_SHST_MASK, NVME_CSTS_SHST_COMPLETE);
    }
    if (error == 0)
        error = disable(ctl);
    if (error != 0 && error != -ENODEV)
        k_warn(ctl->params.kernel, "nvme: no orderly shutdown");
}

void nvme_user_controller_close(struct nvme_user_controller *ctl)
{
    if (!ctl->gone)
        shut_down(ctl);
    else if (read32(ctl, NVME_REG_CSTS) != UINT32_MAX)
        disable(ctl);
    ctl->gone = true;
    nvme_user_qp_fail_all(&ctl->admin, NVME_SC_ABORTED_SQ_DELETED);
    nvme_user_qp_release(&ctl->admin);
}

/* ---- Queues ---------------------------------------------------------------------------------- */

int nvme_user_set_queues(struct nvme_user_controller *ctl, uint16_t *n)
{
    const uint32_t wanted = *n - 1u;
    uint32_t granted = 0;
    struct nvme_user_command command = { .sqe = { .opcode = NVME_ADMIN_SET_FEATURES,
                                                  .cdw10 = NVME_FEATURE_QUEUES,
                                                  .cdw11 = wanted << 16 | wanted } };
    if (*n == 0)
        return -EINVAL;
    const int error = nvme_user_admin(ctl, &command, NULL, 0, &granted);
    const uint32_t sqs = (granted & 0xffffu) + 1, cqs = (granted >> 16) + 1;
    if (error == 0 && sqs < *n)
        *n = (uint16_t)sqs;
    if (error == 0 && cqs < *n)
        *n = (uint16_t)cqs;
    return error;
}

int nvme_user_set_weights(struct nvme_user_controller *ctl, const unsigned weight[3])
{
    uint32_t value = 0;
    struct nvme_user_command command = { .sqe = { .opcode = NVME_ADMIN_GET_FEATURES,
                                                  .cdw10 = NVME_FEATURE_ARBITRATION } };
    for (unsigned i = 0; i < 3; i++)
        if (weight[i] < 1 || weight[i] > 256)
            return -EINVAL;
    const int error = nvme_user_admin(ctl, &command, NULL, 0, &value);
    if (error != 0)
        return error;
    command.sqe.opcode = NVME_ADMIN_SET_FEATURES;
    command.sqe.cdw11 = (value & NVME_ARBITRATION_NO_LIMIT) | (weight[0] - 1) << 24 |
                        (weight[1] - 1) << 16 | (weight[2] - 1) << 8;
    return nvme_user_admin(ctl, &command, NULL, 0, NULL);
}

static int simple(struct nvme_user_controller *ctl, uint8_t opcode, uint16_t id)
{
    struct nvme_user_command command = { .sqe = { .opcode = opcode, .cdw10 = id } };
    return nvme_user_admin(ctl, &command, NULL, 0, NULL);
}

int nvme_user_create_queues(struct nvme_user_controller *ctl, uint16_t id, uint16_t entries,
                            uint64_t sq_bus, uint64_t cq_bus, enum nvme_sq_priority priority)
{
    const uint32_t size = (entries - 1u) << 16;
    struct nvme_user_command cq = { .sqe = { .opcode = NVME_ADMIN_CREATE_CQ,
                                             .prp1 = cq_bus,
                                             .cdw10 = id | size,
                                             .cdw11 = NVME_QUEUE_CONTIGUOUS } };
    struct nvme_user_command sq = { .sqe = { .opcode = NVME_ADMIN_CREATE_SQ,
                                             .prp1 = sq_bus,
                                             .cdw10 = id | size,
                                             .cdw11 = NVME_QUEUE_CONTIGUOUS } };
    sq.sqe.cdw11 |= (uint32_t)priority << NVME_SQ_PRIORITY_SHIFT | (uint32_t)id << 16;
    if (entries < 2)
        return -EINVAL;
    int error = nvme_user_admin(ctl, &cq, NULL, 0, NULL);
    if (error != 0)
        return error;
    error = nvme_user_admin(ctl, &sq, NULL, 0, NULL);
    if (error == -EIO)
        simple(ctl, NVME_ADMIN_DELETE_CQ, id);
    return error;
}

int nvme_user_delete_queues(struct nvme_user_controller *ctl, uint16_t id)
{
    const int error = simple(ctl, NVME_ADMIN_DELETE_SQ, id);
    return error != 0 ? error : simple(ctl, NVME_ADMIN_DELETE_CQ, id);
}
