/*
 * An initiator of NVMe over Fabrics by RDMA: the controller that it has at the target.
 *
 * What it does: Connects an admin queue, enables the controller by its properties, identifies it,
 *   connects I/O queues; keeps it alive; shuts it down.
 * Leaves out: discovery, reconnecting, asynchronous events.
 * Follows: NVM Express over Fabrics 1.0, 1.5.5 (initialisation), 3, 7.3; SPDK 19.01.
 * Costs: round trips; waiting for admin commands, which is polled with growing sleeps of 1 to 32
 *   us.
 */
#include <errno.h>

#include "logic/nvmeof/nvmeof_initiator_internal.h"

#define ADMIN_ENTRIES 8u
#define SLEEP_MIN_PS  K_US
#define SLEEP_MAX_PS  (32 * K_US)
#define READY_TRIES   100u

/* ---- Admin commands -------------------------------------------------------------------------- */

struct waiter {
    struct nvmeof_request request;
    bool done;
};

static void waiter_done(struct nvmeof_request *request)
{
    struct waiter *waiter = request->context;
    waiter->done = true;
}

static int execute(struct initiator_queue *queue, struct waiter *waiter)
{
    struct nvmeof_initiator *initiator = queue->initiator;
    const uint64_t until_ps = k_now_ps(initiator->kernel) + initiator->params.timeout_ps;
    uint64_t sleep_ps = SLEEP_MIN_PS;
    waiter->request.done = waiter_done;
    waiter->request.context = waiter;
    const int error = initiator_queue_submit(queue, &waiter->request);
    if (error != 0)
        return error;
    for (;;) {
        initiator_queue_poll(queue);
        if (waiter->done)
            return waiter->request.error;
        if (k_now_ps(initiator->kernel) >= until_ps)
            break;
        k_sleep(initiator->kernel, sleep_ps);
        if (sleep_ps < SLEEP_MAX_PS)
            sleep_ps *= 2;
    }
    /* The target may still write: the connection goes before the data does. */
    initiator_queue_close(queue);
    return -ETIMEDOUT;
}

static int property_get(struct nvmeof_initiator *initiator, uint32_t offset, uint64_t *value)
{
    const struct nvmeof_property property = { .opcode = NVMEOF_OPCODE,
                                              .type = NVMEOF_PROPERTY_GET,
                                              .size = offset == NVME_REG_CAP,
                                              .offset = offset };
    struct waiter waiter = { .done = false };
    memcpy(&waiter.request.sqe, &property, sizeof property);
    const int error = execute(&initiator->admin, &waiter);
    *value = waiter.request.result;
    return error;
}

static int property_set(struct nvmeof_initiator *initiator, uint32_t offset, uint64_t value)
{
    const struct nvmeof_property property = {
        .opcode = NVMEOF_OPCODE, .type = NVMEOF_PROPERTY_SET, .offset = offset, .value = value
    };
    struct waiter waiter = { .done = false };
    memcpy(&waiter.request.sqe, &property, sizeof property);
    return execute(&initiator->admin, &waiter);
}

static int identify(struct nvmeof_initiator *initiator, enum nvme_identify what, uint32_t nsid,
                    uint8_t data[])
{
    struct waiter waiter = { .request = {
                                 .sqe = { .opcode = NVME_ADMIN_IDENTIFY,
                                          .nsid = nsid,
                                          .cdw10 = what },
                                 .buffer = initiator->page,
                                 .bytes = NVME_IDENTIFY_BYTES,
                             } };
    const int error = execute(&initiator->admin, &waiter);
    if (error == 0)
        k_load(initiator->kernel, initiator->page.at, data, NVME_IDENTIFY_BYTES);
    return error;
}

/* ---- Queues ---------------------------------------------------------------------------------- */

static int connect_queue(struct nvmeof_initiator *initiator, struct initiator_queue *queue,
                         uint16_t qid, uint16_t entries)
{
    struct nvmeof_connect_data data = { .cntlid = qid == 0 ? NVMEOF_CNTLID_DYNAMIC
                                                           : initiator->cntlid };
    int error = initiator_queue_open(initiator, queue, qid, entries);
    if (error != 0)
        return error;
    const struct nvmeof_connect connect = { .opcode = NVMEOF_OPCODE,
                                            .type = NVMEOF_CONNECT,
                                            .qid = qid,
                                            .entries = (uint16_t)(queue->entries - 1u),
                                            .keep_alive_ms =
                                                qid == 0 ? initiator->params.keep_alive_ms : 0 };
    struct waiter waiter = {
        .request = { .buffer = initiator->page, .bytes = NVMEOF_CONNECT_BYTES, .write = true }
    };
    memcpy(data.subsystem, initiator->subsystem, sizeof data.subsystem);
    memcpy(data.host, initiator->host, sizeof data.host);
    k_store(initiator->kernel, initiator->page.at, &data, sizeof data);
    memcpy(&waiter.request.sqe, &connect, sizeof connect);
    error = execute(queue, &waiter);
    if (error == 0 && qid == 0)
        initiator->cntlid = (uint16_t)waiter.request.result;
    queue->in_capsule_bytes = qid != 0 ? initiator->in_capsule_bytes : 0;
    return error;
}

static int set_queues(struct nvmeof_initiator *initiator, uint16_t *n)
{
    const uint32_t wanted = *n - 1u;
    struct waiter waiter = { .request = { .sqe = { .opcode = NVME_ADMIN_SET_FEATURES,
                                                   .cdw10 = NVME_FEATURE_QUEUES,
                                                   .cdw11 = wanted << 16 | wanted } } };
    const int error = execute(&initiator->admin, &waiter);
    const uint32_t granted = (uint32_t)waiter.request.result & 0xffffu;
    if (error == 0 && granted < wanted)
        *n = (uint16_t)(granted + 1);
    return error;
}

/* ---- The controller -------------------------------------------------------------------------- */

static int enable(struct nvmeof_initiator *initiator, uint16_t *entries)
{
    uint64_t cap = 0, csts = 0;
    int error = property_get(initiator, NVME_REG_CAP, &cap);
    if (error == 0)
        error = property_set(initiator, NVME_REG_CC,
                             NVME_CC_IOSQES(NVME_SQE_LOG2) | NVME_CC_IOCQES(NVME_CQE_LOG2) |
                                 NVME_CC_EN);
    for (unsigned i = 0; error == 0 && (csts & NVME_CSTS_RDY) == 0; i++)
        error = i < READY_TRIES ? property_get(initiator, NVME_REG_CSTS, &csts) : -ETIMEDOUT;
    if (NVME_CAP_MQES(cap) < *entries)
        *entries = (uint16_t)NVME_CAP_MQES(cap);
    return error;
}

static int learn(struct nvmeof_initiator *initiator)
{
    uint8_t data[NVME_IDENTIFY_BYTES];
    uint32_t capsule, lbaf;
    int error = identify(initiator, NVME_IDENTIFY_CONTROLLER, 0, data);
    if (error != 0)
        return error;
    memcpy(&capsule, &data[NVMEOF_ID_CTRL_IOCCSZ], sizeof capsule);
    if (capsule < NVMEOF_COMMAND_BYTES / 16 || capsule > UINT16_MAX)
        return -EIO;
    initiator->in_capsule_bytes = capsule * 16 - NVMEOF_COMMAND_BYTES;
    const uint8_t mdts = data[NVME_ID_CTRL_MDTS];
    initiator->bytes_max = (uint64_t)NVME_PAGE_BYTES << (mdts != 0 && mdts < 9 ? mdts : 5);
    error = identify(initiator, NVME_IDENTIFY_NAMESPACE, NVMEOF_NSID, data);
    if (error != 0)
        return error;
    memcpy(&initiator->namespace.blocks, &data[NVME_ID_NS_SIZE],
           sizeof initiator->namespace.blocks);
    memcpy(&lbaf, &data[NVME_ID_NS_LBAF0 + 4 * (data[NVME_ID_NS_FLBAS] & 0xfu)], sizeof lbaf);
    initiator->namespace.block_log2 = (uint8_t)(lbaf >> 16);
    return initiator->namespace.block_log2 >= 9 ? 0 : -EIO;
}

static int bring_up(struct nvmeof_initiator *initiator)
{
    uint16_t n = initiator->params.n_queues, entries = initiator->params.entries;
    int error = rdma_drv_pd_new(initiator->params.rdma, &initiator->pd);
    initiator->has_pd = error == 0;
    if (error == 0)
        error = nvmeof_buffer_new(initiator, K_NODE_LOCAL, NVME_IDENTIFY_BYTES, &initiator->page);
    if (error == 0)
        error = connect_queue(initiator, &initiator->admin, 0, ADMIN_ENTRIES);
    if (error == 0)
        error = enable(initiator, &entries);
    if (error == 0)
        error = learn(initiator);
    if (error == 0)
        error = set_queues(initiator, &n);
    initiator->queue = k_zalloc(n * sizeof *initiator->queue);
    while (error == 0 && initiator->n_queues < n) {
        initiator->n_queues++;
        error = connect_queue(initiator, &initiator->queue[initiator->n_queues - 1],
                              initiator->n_queues, entries);
    }
    return error;
}

int nvmeof_initiator_open(const struct nvmeof_initiator_params *params,
                          struct nvmeof_initiator **out)
{
    if (params->n_queues == 0 || params->n_queues > NVMEOF_QUEUES_MAX || params->entries < 2 ||
        params->entries > NVMEOF_ENTRIES_MAX || strlen(params->subsystem) >= NVMEOF_NQN_BYTES ||
        strlen(params->host) >= NVMEOF_NQN_BYTES)
        return -EINVAL;
    struct nvmeof_initiator *initiator = k_zalloc(sizeof *initiator);
    initiator->params = *params;
    initiator->kernel = rdma_drv_pci(params->rdma)->device.kernel;
    initiator->costs = k_costs(initiator->kernel);
    initiator->bytes_max = NVME_IDENTIFY_BYTES;
    memcpy(initiator->subsystem, params->subsystem, strlen(params->subsystem));
    memcpy(initiator->host, params->host, strlen(params->host));
    const int error = bring_up(initiator);
    if (error != 0) {
        nvmeof_initiator_close(initiator);
        return error;
    }
    initiator->keep_alive_ps = k_now_ps(initiator->kernel) + params->keep_alive_ms * K_MS / 2;
    *out = initiator;
    return 0;
}

void nvmeof_initiator_close(struct nvmeof_initiator *initiator)
{
    struct rdma_drv *rdma = initiator->params.rdma;
    if (initiator->admin.initiator != NULL && !initiator->admin.broken && initiator->cntlid != 0)
        property_set(initiator, NVME_REG_CC, NVME_CC_EN | NVME_CC_SHN_NORMAL);
    for (uint16_t i = 0; i < initiator->n_queues; i++)
        initiator_queue_close(&initiator->queue[i]);
    initiator_queue_close(&initiator->admin);
    for (struct initiator_buffer *b = initiator->buffers; b != NULL; b = b->next)
        initiator_memory_free(initiator, &b->memory);
    if (initiator->has_pd)
        rdma_drv_pd_free(rdma, initiator->pd);
    nvmeof_initiator_abandon(initiator);
}

static void queue_abandon(struct initiator_queue *queue)
{
    k_free(queue->slot);
    k_free(queue->free_cid);
}

void nvmeof_initiator_abandon(struct nvmeof_initiator *initiator)
{
    if (initiator == NULL)
        return;
    for (uint16_t i = 0; i < initiator->n_queues; i++)
        queue_abandon(&initiator->queue[i]);
    queue_abandon(&initiator->admin);
    while (initiator->buffers != NULL) {
        struct initiator_buffer *gone = initiator->buffers;
        initiator->buffers = gone->next;
        k_free(gone);
    }
    k_free(initiator->queue);
    k_free(initiator);
}

/* ---- For its users --------------------------------------------------------------------------- */

int nvmeof_buffer_new(struct nvmeof_initiator *initiator, int node, uint64_t bytes,
                      struct nvmeof_buffer *out)
{
    struct initiator_buffer *made = k_zalloc(sizeof *made);
    const int error = initiator_memory_new(initiator, node, bytes,
                                           RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE_WRITE |
                                               RDMA_ACCESS_REMOTE_READ,
                                           &made->memory);
    if (error != 0) {
        k_free(made);
        return error;
    }
    made->next = initiator->buffers;
    initiator->buffers = made;
    *out = (struct nvmeof_buffer){ made->memory.at, rdma_drv_key(made->memory.mr) };
    return 0;
}

int nvmeof_submit(struct nvmeof_initiator *initiator, unsigned i, struct nvmeof_request *request)
{
    return initiator_queue_submit(&initiator->queue[i], request);
}

unsigned nvmeof_poll(struct nvmeof_initiator *initiator, unsigned i)
{
    return initiator_queue_poll(&initiator->queue[i]);
}

static void keep_alive_done(struct nvmeof_request *request)
{
    struct nvmeof_initiator *initiator = request->context;
    initiator->keep_alive_under_way = false;
}

int nvmeof_keep_alive(struct nvmeof_initiator *initiator)
{
    const uint64_t half_ps = initiator->params.keep_alive_ms * K_MS / 2;
    if (initiator->keep_alive_under_way)
        initiator_queue_poll(&initiator->admin);
    if (initiator->admin.broken)
        return -ENOTCONN;
    if (half_ps == 0 || initiator->keep_alive_under_way ||
        k_now_ps(initiator->kernel) < initiator->keep_alive_ps)
        return 0;
    initiator->keep_alive = (struct nvmeof_request){ .sqe = { .opcode = NVME_ADMIN_KEEP_ALIVE },
                                                     .done = keep_alive_done,
                                                     .context = initiator };
    const int error = initiator_queue_submit(&initiator->admin, &initiator->keep_alive);
    initiator->keep_alive_under_way = error == 0;
    initiator->keep_alive_ps = k_now_ps(initiator->kernel) + half_ps;
    return error;
}

struct nvme_user_namespace nvmeof_namespace(const struct nvmeof_initiator *initiator)
{
    return initiator->namespace;
}

uint64_t nvmeof_bytes_max(const struct nvmeof_initiator *initiator)
{
    return initiator->bytes_max;
}

uint32_t nvmeof_in_capsule_bytes(const struct nvmeof_initiator *initiator)
{
    return initiator->in_capsule_bytes;
}

unsigned nvmeof_n_queues(const struct nvmeof_initiator *initiator)
{
    return initiator->n_queues;
}

uint16_t nvmeof_entries(const struct nvmeof_initiator *initiator)
{
    return initiator->queue[0].entries;
}

void nvmeof_transfer(const struct nvmeof_initiator *initiator, struct nvmeof_request *request,
                     bool write, uint64_t offset, uint64_t bytes)
{
    const unsigned log2 = initiator->namespace.block_log2;
    const uint64_t block = offset >> log2;
    request->sqe = (struct nvme_sqe){ .opcode = write ? NVME_WRITE : NVME_READ,
                                      .nsid = NVMEOF_NSID,
                                      .cdw10 = (uint32_t)block,
                                      .cdw11 = (uint32_t)(block >> 32) };
    request->sqe.cdw12 = (uint32_t)(bytes >> log2) - 1;
    request->write = write;
    request->bytes = bytes;
}
