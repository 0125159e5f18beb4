/*
 * The target of NVMe over Fabrics by RDMA: its connections and its loop.
 *
 * What it does: One completion queue for all connections, polled in turn with the NVMe queue pairs
 *   that I/O queues are bound to. A request has a receive work request, a capsule and a data buffer
 *   for as long as its queue lives; its receive is posted again right before its response goes, so
 *   that an initiator that counts responses (SQ head) always finds one. Responses are inline in
 *   their work request; if the adapter takes less, they are gathered from memory of the queue. A
 *   connection that fails, or whose controller's keep-alive expires, is freed once the device has
 *   ended its commands.
 * Leaves out: discovery, authentication, several subsystems and namespaces, several threads, shared
 *   receive queues, error and health log pages.
 * Follows: NVM Express over Fabrics 1.0, 7.3 (RDMA transport); SPDK 19.01, lib/nvmf/rdma.c;
 *   SmartIO, 7.4.3 and figure 36.
 * Costs: spdk_reactor_cycles per round, nvmeof_target_cycles per capsule and per NVMe completion;
 *   verbs (logic/rdma/) and NVMe (logic/nvme/nvme_local.h) as they are.
 */
#include <errno.h>

#include "logic/nvmeof/nvmeof_internal.h"

#define KEEP_ALIVE_LOOK_PS K_MS
#define SENDS_PER_REQUEST \
    3u /* a write or read and a response, and one that is being acknowledged */
#define CONNECT_ROOM NVMEOF_CONNECT_BYTES
#define CQ_MAX       (1u << RDMA_RING_LOG_MAX)
#define DRAIN_PS     (2 * K_US)

/* What the low bits of a work request's number say; the rest is its request's address. */
enum work { WORK_RECEIVE = 0, WORK_RESPONSE = 1, WORK_READ = 2, WORK_WRITE = 3, WORK_MASK = 3 };

/* Behind capsules and data, where responses are not inline. */
static uint64_t responses_at(const struct nvmeof_target *target)
{
    return target_capsules_bytes(target) + target->params.entries_max * target->data_bytes;
}

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + K_PAGE_BYTES - 1) & ~(uint64_t)(K_PAGE_BYTES - 1);
}

/* ---- Posting --------------------------------------------------------------------------------- */

static uint64_t id_of(const struct target_request *request, enum work work)
{
    return (uint64_t)(uintptr_t)request | work;
}

static struct rdma_drv_sge data_sge(const struct target_request *request, uint32_t bytes)
{
    return (struct rdma_drv_sge){ request->data.at.v, bytes,
                                  rdma_drv_key(request->queue->memory->mr) };
}

static bool post_receive(struct target_request *request)
{
    const struct nvmeof_target *target = request->queue->target;
    const uint32_t room = target->params.in_capsule_bytes;
    const struct rdma_drv_sge sge[2] = {
        { request->capsule.v, NVMEOF_COMMAND_BYTES, rdma_drv_key(request->queue->memory->mr) },
        data_sge(request, room > CONNECT_ROOM ? room : CONNECT_ROOM),
    };
    const struct rdma_drv_receive receive = { id_of(request, WORK_RECEIVE), sge, 2 };
    return rdma_drv_post_receive(request->queue->qp, &receive) == 0;
}

static void post_send(struct target_request *request, const struct rdma_drv_send *send)
{
    if (request->queue->state != TARGET_BROKEN && rdma_drv_post_send(request->queue->qp, send) != 0)
        target_break(request->queue);
}

/* Places follow each other: when one comes again, the initiator has the response that was in it, as
 * it has no more commands under way than the queue has entries. */
static void respond_from_memory(struct target_request *request,
                                const struct nvmeof_response *response)
{
    struct target_queue *queue = request->queue;
    const struct nvmeof_target *target = queue->target;
    const struct kaddr at =
        kaddr_add(queue->memory->memory.at,
                  responses_at(target) + (uint64_t)queue->response * sizeof *response);
    const struct rdma_drv_sge sge = { at.v, sizeof *response, rdma_drv_key(queue->memory->mr) };
    const struct rdma_drv_send send = { .id = id_of(request, WORK_RESPONSE),
                                        .opcode = RDMA_OP_SEND,
                                        .signaled = true,
                                        .sge = &sge,
                                        .n_sges = 1 };
    queue->response = (uint16_t)((queue->response + 1u) % queue->entries);
    k_store(target->kernel, at, response, sizeof *response);
    post_send(request, &send);
}

void target_respond(struct target_request *request, uint16_t status, uint64_t result)
{
    struct target_queue *queue = request->queue;
    if (queue->state == TARGET_BROKEN)
        return;
    queue->sq_head = (uint16_t)((queue->sq_head + 1u) % queue->entries);
    queue->target->stats.failed += status != NVME_SC_SUCCESS;
    const struct nvmeof_response response = { .result = result,
                                              .sq_head = queue->sq_head,
                                              .cid = request->sqe.cid,
                                              .status = (uint16_t)(status << 1) };
    const struct rdma_drv_send send = { .id = id_of(request, WORK_RESPONSE),
                                        .opcode = RDMA_OP_SEND,
                                        .signaled = true,
                                        .inline_data = &response,
                                        .inline_bytes = sizeof response };
    if (!post_receive(request))
        target_break(queue);
    if (queue->target->inlines)
        post_send(request, &send);
    else
        respond_from_memory(request, &response);
}

void target_respond_data(struct target_request *request, uint32_t bytes, uint64_t result)
{
    const struct rdma_drv_sge sge = data_sge(request, bytes);
    const struct rdma_drv_send write = { .id = id_of(request, WORK_WRITE),
                                         .opcode = RDMA_OP_WRITE,
                                         .sge = &sge,
                                         .n_sges = 1,
                                         .remote_va = request->sgl.address,
                                         .rkey = nvmeof_sgl_key(&request->sgl) };
    struct kernel *kernel = request->queue->target->kernel;
    const uint16_t qid = request->queue->qid;
    post_send(request, &write);
    k_trace(kernel, "nvmeof 3: the target has posted the RDMA write of the data", qid);
    target_respond(request, NVME_SC_SUCCESS, result);
    k_trace(kernel, "nvmeof 4: the target has posted the response behind it", qid);
}

void target_fetch_data(struct target_request *request)
{
    const struct rdma_drv_sge sge = data_sge(request, request->bytes);
    const struct rdma_drv_send read = { .id = id_of(request, WORK_READ),
                                        .opcode = RDMA_OP_READ,
                                        .signaled = true,
                                        .sge = &sge,
                                        .n_sges = 1,
                                        .remote_va = request->sgl.address,
                                        .rkey = nvmeof_sgl_key(&request->sgl) };
    post_send(request, &read);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

uint64_t target_capsules_bytes(const struct nvmeof_target *target)
{
    return whole_pages((uint64_t)target->params.entries_max * NVMEOF_COMMAND_BYTES);
}

static int memory_new(struct nvmeof_target *target, struct target_memory **out)
{
    struct target_memory *made = k_zalloc(sizeof *made);
    const uint64_t n_responses = target->inlines ? 0 : target->params.entries_max;
    const uint64_t bytes = responses_at(target) + whole_pages(n_responses * NVMEOF_RESPONSE_BYTES);
    int error = nvme_local_memory(target->params.nvme,
                                  nvme_local_pci(target->params.nvme)->device.node, bytes,
                                  &made->memory);
    if (error == 0)
        error = rdma_drv_mr_new(target->params.rdma, target->pd, made->memory.at, bytes,
                                RDMA_ACCESS_LOCAL_WRITE, &made->mr);
    if (error != 0) {
        k_free(made);
        return error;
    }
    made->next = target->memories;
    target->memories = made;
    *out = made;
    return 0;
}

int target_memory_get(struct nvmeof_target *target, struct target_memory **out)
{
    int error = 0;
    *out = target->memories;
    while (*out != NULL && (*out)->used)
        *out = (*out)->next;
    if (*out == NULL)
        error = memory_new(target, out);
    if (error == 0)
        (*out)->used = true;
    return error;
}

/* ---- Connections ----------------------------------------------------------------------------- */

int target_nvme_get(struct nvmeof_target *target, struct nvme_user_qp **out)
{
    for (unsigned i = 0; i < nvme_local_n_queues(target->params.nvme); i++)
        if (!target->nvme_used[i]) {
            target->nvme_used[i] = true;
            *out = nvme_local_qp(target->params.nvme, i);
            return 0;
        }
    return -EBUSY;
}

void target_nvme_put(struct nvmeof_target *target, const struct nvme_user_qp *qp)
{
    for (unsigned i = 0; i < nvme_local_n_queues(target->params.nvme); i++)
        if (nvme_local_qp(target->params.nvme, i) == qp)
            target->nvme_used[i] = false;
}

static int make_qp(struct target_queue *queue)
{
    struct nvmeof_target *target = queue->target;
    const struct rdma_drv_qp_params params = { .pd = target->pd,
                                               .send_cq = target->cq,
                                               .receive_cq = target->cq,
                                               .n_sends = SENDS_PER_REQUEST * queue->entries,
                                               .n_receives = queue->entries,
                                               .send_sges = 1,
                                               .receive_sges = 2,
                                               .inline_bytes =
                                                   target->inlines ? NVMEOF_RESPONSE_BYTES : 0,
                                               .blueflame = true };
    return rdma_drv_qp_new(target->params.rdma, &params, &queue->qp);
}

static bool make_requests(struct target_queue *queue)
{
    const struct nvmeof_target *target = queue->target;
    const struct nvme_user_memory *memory = &queue->memory->memory;
    bool posted = true;
    queue->request = k_zalloc(queue->entries * sizeof *queue->request);
    for (uint16_t i = 0; i < queue->entries && posted; i++) {
        struct target_request *request = &queue->request[i];
        const uint64_t at = target_capsules_bytes(target) + i * target->data_bytes;
        request->queue = queue;
        request->capsule = kaddr_add(memory->at, (uint64_t)i * NVMEOF_COMMAND_BYTES);
        request->data = (struct nvme_user_memory){ .at = kaddr_add(memory->at, at),
                                                   .bus = memory->bus + at };
        request->command.done = target_io_done;
        request->command.context = request;
        posted = post_receive(request);
    }
    return posted;
}

static void queue_free(struct target_queue *queue)
{
    struct nvmeof_target *target = queue->target;
    if (queue->qp != NULL)
        rdma_drv_qp_free(queue->qp);
    target_offload_end(queue);
    if (queue->nvme != NULL)
        target_nvme_put(target, queue->nvme);
    if (queue->memory != NULL)
        queue->memory->used = false;
    if (queue->controller != NULL && --queue->controller->n_queues == 0)
        queue->controller->used = false;
    k_free(queue->request);
    k_free(queue);
}

static int connect_queue(struct target_queue *queue, const struct nvmeof_hello *hello,
                         struct nvmeof_hello *answer)
{
    struct nvmeof_target *target = queue->target;
    struct rdma_drv_connection connection = rdma_drv_connection_default;
    connection.mtu_bytes = target->params.mtu_bytes;
    if (hello->mtu_bytes < connection.mtu_bytes)
        connection.mtu_bytes = hello->mtu_bytes;
    int error = queue->qid != 0 ? target_nvme_get(target, &queue->nvme) : 0;
    if (error == 0)
        error = target_memory_get(target, &queue->memory);
    if (error == 0)
        error = target_offload_prepare(queue);
    if (error == 0)
        error = make_qp(queue);
    if (error == 0 && !make_requests(queue))
        error = -ENODEV;
    if (error == 0)
        error = rdma_drv_connect(queue->qp, &hello->endpoint, &connection);
    if (error == 0)
        *answer = (struct nvmeof_hello){ .endpoint = rdma_drv_endpoint(queue->qp, &connection),
                                         .qid = queue->qid,
                                         .entries = queue->entries,
                                         .mtu_bytes = connection.mtu_bytes };
    return error;
}

int nvmeof_target_accept(struct nvmeof_target *target, const struct nvmeof_hello *hello,
                         struct nvmeof_hello *answer)
{
    if (hello->entries < 2)
        return -EINVAL;
    if (target->n_queues >= target->params.queues_max)
        return -EBUSY;
    const uint16_t most = target->params.entries_max;
    struct target_queue *queue = k_zalloc(sizeof *queue);
    *queue = (struct target_queue){ .target = target,
                                    .qid = hello->qid,
                                    .entries = hello->entries < most ? hello->entries : most };
    target->n_queues++;
    const int error = connect_queue(queue, hello, answer);
    if (error != 0) {
        target->n_queues--;
        queue_free(queue);
        return error;
    }
    queue->next = target->first;
    target->first = queue;
    return 0;
}

void target_break(struct target_queue *queue)
{
    struct nvmeof_target *target = queue->target;
    if (queue->state == TARGET_BROKEN)
        return;
    struct target_controller *controller = queue->controller;
    target->n_broken++;
    target->stats.broken += controller == NULL || !controller->closing;
    queue->state = TARGET_BROKEN;
    /* A controller lives as long as its admin queue, and takes no new queues afterwards. */
    if (queue->qid == 0 && controller != NULL)
        controller->closing = true;
    for (struct target_queue *other = target->first; other != NULL && queue->qid == 0;
         other = other->next)
        if (other->controller == controller && controller != NULL)
            target_break(other);
}

/* Those whose commands the device has ended. */
static void reap_broken(struct nvmeof_target *target)
{
    struct target_queue **link = &target->first;
    while (*link != NULL) {
        struct target_queue *queue = *link;
        if (queue->state != TARGET_BROKEN || queue->n_nvme != 0) {
            link = &queue->next;
            continue;
        }
        *link = queue->next;
        target->n_queues--;
        target->n_broken--;
        queue_free(queue);
    }
}

/* ---- The loop -------------------------------------------------------------------------------- */

static void on_capsule(struct target_request *request, uint32_t bytes)
{
    struct target_queue *queue = request->queue;
    struct nvmeof_target *target = queue->target;
    k_trace(target->kernel, "nvmeof 2: the target takes a command capsule", queue->qid);
    k_compute(target->kernel, target->costs->nvmeof_target_cycles);
    k_load(target->kernel, request->capsule, &request->sqe, sizeof request->sqe);
    memcpy(&request->sgl, (const uint8_t *)&request->sqe + NVMEOF_SGL_OFFSET, sizeof request->sgl);
    target->stats.commands++;
    if (bytes < NVMEOF_COMMAND_BYTES)
        target_break(queue); /* no command */
    else if (queue->qid == 0 || request->sqe.opcode == NVMEOF_OPCODE)
        target_admin(request, bytes - NVMEOF_COMMAND_BYTES);
    else
        target_io(request, bytes - NVMEOF_COMMAND_BYTES);
}

static void on_completion(const struct rdma_drv_wc *wc)
{
    struct target_request *request = (struct target_request *)(uintptr_t)(wc->id &
                                                                          ~(uint64_t)WORK_MASK);
    struct target_queue *queue = request->queue;
    if (queue->state == TARGET_BROKEN)
        return;
    if (wc->status != RDMA_SUCCESS) {
        target_break(queue);
        return;
    }
    switch ((enum work)(wc->id & WORK_MASK)) {
    case WORK_RECEIVE: on_capsule(request, wc->bytes); break;
    case WORK_READ: target_io_data_is_here(request); break;
    case WORK_RESPONSE:
        if (queue->controller != NULL && queue->controller->last == request)
            target_break(queue); /* the initiator has what it waits for */
        break;
    default: break;
    }
}

static void look_at_keep_alive(struct nvmeof_target *target)
{
    const uint64_t now_ps = k_now_ps(target->kernel);
    if (now_ps < target->look_ps)
        return;
    target->look_ps = now_ps + KEEP_ALIVE_LOOK_PS;
    for (struct target_queue *queue = target->first; queue != NULL; queue = queue->next) {
        const struct target_controller *controller = queue->controller;
        if (queue->qid == 0 && queue->state == TARGET_CONNECTED && controller->keep_alive_ps != 0 &&
            now_ps > controller->deadline_ps) {
            target->stats.expired++;
            target_break(queue);
        }
    }
}

unsigned nvmeof_target_poll(struct nvmeof_target *target)
{
    struct rdma_drv_wc wc[NVMEOF_WCS];
    k_compute(target->kernel, target->costs->spdk_reactor_cycles);
    unsigned n = rdma_drv_poll(target->cq, wc, NVMEOF_WCS);
    for (unsigned i = 0; i < n; i++)
        on_completion(&wc[i]);
    for (const struct target_queue *queue = target->first; queue != NULL; queue = queue->next)
        if (queue->nvme != NULL)
            n += nvme_user_qp_poll(queue->nvme, 0);
    look_at_keep_alive(target);
    if (target->n_broken != 0)
        reap_broken(target);
    target->stats.rounds++;
    target->stats.idle_rounds += n == 0;
    return n;
}

/* ---- The target ------------------------------------------------------------------------------ */

static bool are_valid(const struct nvmeof_target_params *p)
{
    return p->entries_max >= 2 && p->entries_max <= NVMEOF_ENTRIES_MAX && p->queues_max >= 1 &&
           p->queues_max <= 1024 && p->in_capsule_bytes <= 8192 && p->in_capsule_bytes % 16 == 0 &&
           strlen(p->subsystem) < NVMEOF_NQN_BYTES &&
           (!p->offload || (nvme_local_n_queues(p->nvme) >= 2 &&
                            rdma_drv_limits(p->rdma).inline_bytes >= NVMEOF_RESPONSE_BYTES));
}

int nvmeof_target_new(const struct nvmeof_target_params *params, struct nvmeof_target **out)
{
    if (!are_valid(params))
        return -EINVAL;
    struct nvmeof_target *target = k_zalloc(sizeof *target);
    const uint16_t entries = nvme_local_qp(params->nvme, 0)->params.entries;
    target->params = *params;
    target->inlines = rdma_drv_limits(params->rdma).inline_bytes >= NVMEOF_RESPONSE_BYTES;
    if (entries < params->entries_max)
        target->params.entries_max = entries;
    const uint32_t n_works = (SENDS_PER_REQUEST + 1) * target->params.entries_max *
                             params->queues_max;
    target->kernel = nvme_local_pci(params->nvme)->device.kernel;
    target->costs = k_costs(target->kernel);
    memcpy(target->subsystem, params->subsystem, strlen(params->subsystem));
    target->namespace = nvme_local_namespace(params->nvme);
    target->data_bytes = nvme_local_bytes_max(params->nvme) & ~(uint64_t)(K_PAGE_BYTES - 1);
    target->nvme_used = k_zalloc(nvme_local_n_queues(params->nvme) * sizeof *target->nvme_used);
    int error = target_identify(target);
    if (error == 0)
        error = rdma_drv_pd_new(params->rdma, &target->pd);
    const bool has_pd = error == 0;
    if (error == 0)
        error = rdma_drv_cq_new(params->rdma, n_works < CQ_MAX ? n_works : CQ_MAX, 0, NULL, NULL,
                                &target->cq);
    if (error != 0) {
        if (has_pd)
            rdma_drv_pd_free(params->rdma, target->pd);
        nvmeof_target_abandon(target);
        return error;
    }
    *out = target;
    return 0;
}

void nvmeof_target_free(struct nvmeof_target *target)
{
    for (struct target_queue *queue = target->first; queue != NULL; queue = queue->next)
        target_break(queue);
    while (target->first != NULL) {
        nvmeof_target_poll(target);
        k_sleep(target->kernel, DRAIN_PS);
    }
    for (struct target_memory *m = target->memories; m != NULL; m = m->next)
        rdma_drv_mr_free(m->mr);
    rdma_drv_cq_free(target->cq);
    rdma_drv_pd_free(target->params.rdma, target->pd);
    nvmeof_target_abandon(target);
}

void nvmeof_target_abandon(struct nvmeof_target *target)
{
    if (target == NULL)
        return;
    while (target->first != NULL) {
        struct target_queue *gone = target->first;
        target->first = gone->next;
        rdma_drv_offload_abandon(gone->offload);
        k_free(gone->request);
        k_free(gone);
    }
    while (target->memories != NULL) {
        struct target_memory *gone = target->memories;
        target->memories = gone->next;
        k_free(gone);
    }
    k_free(target->nvme_used);
    k_free(target);
}

unsigned nvmeof_target_n_queues(const struct nvmeof_target *target)
{
    return target->n_queues;
}

struct nvmeof_target_stats nvmeof_target_stats(const struct nvmeof_target *target)
{
    return target->stats;
}
