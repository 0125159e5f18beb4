/*
 * A client's queue pairs.
 *
 * What it does: The completion queue and the PRP lists lie in memory of the client's host, where it
 *   polls and where the device's writes arrive without a wait; the submission queue wherever the
 *   client asks for. The manager creates and deletes both; entries and doorbells go to the device
 *   directly, by one path, on which a doorbell cannot pass the entry.
 * Follows: SmartIO, 6.2, 7.4.1; NVM Express 1.3, section 4.
 * Costs: Of a process that runs on its own: submission and completion 0.1 to 0.2 us together.
 */
#include "logic/dnvme/dnvme_internal.h"

#define RENEW_PS     (50 * K_US) /* between looks whether the lease is renewed */
#define DRAIN_PS     (5 * K_MS)
#define PAGES(bytes) (((uint64_t)(bytes) + NVME_PAGE_BYTES - 1) & ~(uint64_t)(NVME_PAGE_BYTES - 1))

const struct dnvme_pair_params dnvme_pair_params_default = {
    .entries = 64,
    .list_bytes = 256,
    .costs = { .submit_cycles = 200, .complete_cycles = 150, .poll_cycles = 10 },
};

/* The queues are certainly ours: the manager does not delete them before the lease is over. */
static bool is_ours(const struct dnvme_client *c)
{
    return !c->mail.over && k_now_ps(c->kernel) < c->mail.valid_until_ps;
}

/* ---- Where the submission queue lies --------------------------------------------------------- */

/* At the lender, as the device reads it and we write it. */
static int sq_near_device(struct dnvme_pair *pair, struct nvme_user_memory *sq,
                          struct lend_error *error)
{
    struct dnvme_client *c = pair->client;
    const unsigned adapter = c->path[pair->params.path].adapter;
    const uint64_t bytes = PAGES(pair->params.entries * NVME_SQE_BYTES);
    uint32_t number = 0;
    const int status = dnvme_near_number(c, &number, error);
    if (status != 0)
        return status;
    enum sisci_error e = sisci_device_segment_create(c->device, number, bytes,
                                                     SISCI_DEVICE_READ | SISCI_CPU_WRITE, false,
                                                     adapter, NULL, NULL, &pair->sq_remote, error);
    if (e == SISCI_OK)
        e = sisci_remote_map_for_device(pair->sq_remote, c->device, adapter, 0, bytes,
                                        K_DMA_TO_DEVICE, &pair->sq_window, error);
    pair->sq_windowed = e == SISCI_OK;
    if (e != SISCI_OK)
        return dnvme_code(e, error);
    sq->bus = pair->sq_window.dma;
    sq->at = sisci_remote_memory(pair->sq_remote);
    if (sq->at.v != 0)
        return 0;
    e = sisci_map(pair->sq_remote, 0, bytes, &pair->sq_map, error);
    pair->sq_mapped = e == SISCI_OK;
    sq->window = dnvme_map_window(&pair->sq_map, 0);
    return dnvme_code(e, error);
}

static int sq_in_bar(struct dnvme_pair *pair, struct nvme_user_memory *sq, struct lend_error *error)
{
    struct dnvme_client *c = pair->client;
    const struct dnvme_pair_params *p = &pair->params;
    const uint64_t bytes = PAGES(p->entries * NVME_SQE_BYTES);
    uint32_t number = 0;
    const int status = dnvme_segment_number(c, &number, error);
    if (status != 0)
        return status;
    enum sisci_error e = sisci_segment_attach_bar(c->process, number, p->bar_device, p->bar,
                                                  p->bar_offset, bytes, &pair->sq_segment, error);
    if (e != SISCI_OK)
        dnvme_number_free(c, number);
    if (e == SISCI_OK)
        e = sisci_segment_map_for_device(pair->sq_segment, c->device, c->path[p->path].adapter, 0,
                                         bytes, K_DMA_TO_DEVICE, &pair->sq_window, error);
    pair->sq_windowed = e == SISCI_OK;
    sq->bus = pair->sq_window.dma;
    sq->window = nvme_user_bar_window(p->bar_device, p->bar);
    sq->window.base += p->bar_offset;
    return dnvme_code(e, error);
}

/* The manager chooses the place; until then the window is that of the whole buffer. */
static int sq_in_cmb(struct dnvme_pair *pair, struct nvme_user_memory *sq, struct lend_error *error)
{
    struct dnvme_client *c = pair->client;
    struct dnvme_path *path = &c->path[pair->params.path];
    const struct wire_hello *hello = &c->hello;
    if (hello->cmb_bar == 0)
        return lend_fail(
            error, -ENXIO,
            "the controller has no memory buffer for submission queues, or an IOMMU is "
            "before it, so that it would not know its own addresses");
    if (path->cmb_remote == NULL) {
        enum sisci_error e = sisci_device_bar_connect(c->device, hello->cmb_bar, path->adapter,
                                                      NULL, NULL, &path->cmb_remote, error);
        if (e == SISCI_OK)
            e = sisci_map(path->cmb_remote, 0, sisci_remote_bytes(path->cmb_remote), &path->cmb,
                          error);
        path->has_cmb = e == SISCI_OK;
        if (e != SISCI_OK)
            return dnvme_code(e, error);
    }
    sq->bus = WIRE_SQ_IN_CMB;
    sq->window = dnvme_map_window(&path->cmb, hello->cmb_offset);
    return 0;
}

static int place_sq(struct dnvme_pair *pair, struct nvme_user_memory *sq, struct lend_error *error)
{
    switch (pair->params.sq) {
    case DNVME_SQ_NEAR_DEVICE: return sq_near_device(pair, sq, error);
    case DNVME_SQ_BAR: return sq_in_bar(pair, sq, error);
    case DNVME_SQ_CMB: return sq_in_cmb(pair, sq, error);
    case DNVME_SQ_LOCAL: break;
    }
    return 0;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static int create(struct dnvme_pair *pair, struct nvme_user_qp_params *qp, struct lend_error *error)
{
    struct dnvme_client *c = pair->client;
    const struct wire_create request = { .sq_bus = qp->sq.bus,
                                         .cq_bus = qp->cq.bus,
                                         .entries = qp->entries,
                                         .priority = pair->params.priority };
    struct wire_created reply;
    int status = dnvme_mail_call(&c->mail, WIRE_CREATE, &request, sizeof request, &reply,
                                 sizeof reply);
    if (status != 0)
        return lend_fail(error, status, "the manager does not create a queue pair (%d)", status);
    pair->handle = reply.handle;
    qp->id = WIRE_HANDLE_NUMBER(reply.handle);
    if (qp->sq.bus == WIRE_SQ_IN_CMB) {
        qp->sq.bus = reply.sq_bus;
        qp->sq.window.base += reply.sq_bus - c->hello.cmb_bus;
    }
    status = nvme_user_qp_init(&pair->qp, qp);
    pair->initialised = status == 0;
    return status == 0 ? 0 : lend_fail(error, status, "a parameter of the pair is out of range");
}

int dnvme_pair_new(struct dnvme_client *c, const struct dnvme_pair_params *wanted,
                   struct dnvme_pair **pair_out, struct lend_error *error)
{
    struct lend_error own = { 0 };
    *pair_out = NULL;
    error = error != NULL ? error : &own;
    if (wanted->entries < 2 || wanted->entries > DNVME_ENTRIES_MAX ||
        wanted->path >= c->params.n_paths)
        return lend_fail(error, -EINVAL, "a parameter of the pair is out of range");
    struct dnvme_pair *pair = k_zalloc(sizeof *pair);
    *pair = (struct dnvme_pair){ .client = c, .params = *wanted };
    struct dnvme_pair_params *params = &pair->params;
    if (params->entries > c->hello.entries_max)
        params->entries = (uint16_t)c->hello.entries_max;
    const uint64_t cq_bytes = PAGES(params->entries * NVME_CQE_BYTES);
    const uint64_t list_bytes = PAGES((uint64_t)params->entries * params->list_bytes);
    const uint64_t sq_bytes = params->sq != DNVME_SQ_LOCAL
                                  ? 0
                                  : PAGES(params->entries * NVME_SQE_BYTES);
    int status = dnvme_buffer_new(c, cq_bytes + list_bytes + sq_bytes, &pair->memory, error);
    if (status == 0 && !pair->memory.mapped[params->path])
        status = lend_fail(error, -EHOSTUNREACH, "path %u to the device is down", params->path);
    if (status == 0) {
        const struct kaddr at = pair->memory.at;
        const uint64_t bus = pair->memory.bus[params->path];
        const uint64_t lists = cq_bytes, sq = cq_bytes + list_bytes;
        struct nvme_user_qp_params qp = {
            .kernel = c->kernel,
            .entries = params->entries,
            .cq = { .at = at, .bus = bus },
            .lists = { .at = kaddr_add(at, lists), .bus = bus + lists },
            .list_bytes = params->list_bytes,
            .registers = dnvme_map_window(&c->path[params->path].bar, 0),
            .doorbell_bytes = c->hello.doorbell_bytes,
            .costs = params->costs,
        };
        if (params->sq == DNVME_SQ_LOCAL)
            qp.sq = (struct nvme_user_memory){ .at = kaddr_add(at, sq), .bus = bus + sq };
        status = place_sq(pair, &qp.sq, error);
        if (status == 0)
            status = create(pair, &qp, error);
    }
    if (status != 0) {
        dnvme_pair_free(pair);
        return status;
    }
    *pair_out = pair;
    return 0;
}

/* Commands under way get some time to end. */
static void drain(struct dnvme_pair *pair)
{
    const uint64_t until_ps = k_now_ps(pair->client->kernel) + DRAIN_PS;
    while (nvme_user_qp_outstanding(&pair->qp) != 0 && is_ours(pair->client) &&
           k_now_ps(pair->client->kernel) < until_ps)
        dnvme_pair_wait(pair, until_ps);
}

/* Until the controller does not execute commands of the pair any more; a request that is repeated
 * waits for the same deletion. Of a client that is lost the manager deletes it. -EIO, -ENODEV: the
 * controller does not delete queues any more. */
static void delete_queues(struct dnvme_pair *pair)
{
    struct dnvme_client *c = pair->client;
    const uint64_t handle = pair->handle;
    while (!c->dead && !dnvme_client_lost(c)) {
        const int status = dnvme_mail_call(&c->mail, WIRE_DELETE, &handle, sizeof handle, NULL, 0);
        if (status != -ETIMEDOUT && status != -EHOSTUNREACH)
            return;
        k_sleep(c->kernel, RENEW_PS); /* -EHOSTUNREACH comes at once */
    }
}

void dnvme_pair_free(struct dnvme_pair *pair)
{
    struct dnvme_client *c = pair->client;
    if (pair->initialised)
        drain(pair);
    if (pair->handle != 0)
        delete_queues(pair);
    if (pair->initialised) {
        nvme_user_qp_fail_all(&pair->qp, NVME_SC_ABORTED_SQ_DELETED);
        nvme_user_qp_release(&pair->qp);
    }
    if (pair->sq_mapped)
        sisci_unmap(&pair->sq_map);
    if (pair->sq_windowed)
        sisci_window_unmap(&pair->sq_window);
    if (pair->sq_remote != NULL)
        sisci_segment_disconnect(pair->sq_remote, NULL);
    if (pair->sq_segment != NULL)
        dnvme_segment_free(c, pair->sq_segment);
    dnvme_buffer_free(c, &pair->memory);
    k_free(pair);
}

struct nvme_user_qp *dnvme_pair_qp(struct dnvme_pair *pair)
{
    return &pair->qp;
}

uint16_t dnvme_pair_number(const struct dnvme_pair *pair)
{
    return WIRE_HANDLE_NUMBER(pair->handle);
}

/* ---- Wild queues ----------------------------------------------------------------------------- */

int dnvme_wild_pair_new(struct dnvme_client *c, uint64_t sq_bus, uint64_t cq_bus, uint16_t entries,
                        uint64_t *handle)
{
    const struct wire_create request = {
        .sq_bus = sq_bus, .cq_bus = cq_bus, .entries = entries, .priority = NVME_SQ_MEDIUM
    };
    struct wire_created reply;
    const int status = dnvme_mail_call(&c->mail, WIRE_CREATE, &request, sizeof request, &reply,
                                       sizeof reply);
    *handle = status == 0 ? reply.handle : 0;
    return status;
}

void dnvme_wild_pair_ring(struct dnvme_client *c, uint64_t handle, uint16_t tail)
{
    const unsigned number = WIRE_HANDLE_NUMBER(handle);
    const struct nvme_user_window w = dnvme_map_window(&c->path[0].bar, 0);
    w.ops->write32(w.context, w.base + NVME_REG_DOORBELLS + 2u * number * c->hello.doorbell_bytes,
                   tail);
}

void dnvme_wild_pair_free(struct dnvme_client *c, uint64_t handle)
{
    dnvme_mail_call(&c->mail, WIRE_DELETE, &handle, sizeof handle, NULL, 0);
}

/* ---- I/O ------------------------------------------------------------------------------------- */

int dnvme_pair_put(struct dnvme_pair *pair, struct nvme_user_command *command,
                   const struct nvme_user_piece *piece, unsigned n)
{
    return is_ours(pair->client) ? nvme_user_qp_put(&pair->qp, command, piece, n) : -ESTALE;
}

int dnvme_pair_ring(struct dnvme_pair *pair)
{
    if (!is_ours(pair->client))
        return -ESTALE;
    nvme_user_qp_ring(&pair->qp);
    return 0;
}

/* The time that a look took which found nothing is that of the next ones. */
unsigned dnvme_pair_wait(struct dnvme_pair *pair, uint64_t until_ps)
{
    struct kernel *kernel = pair->client->kernel;
    struct nvme_user_qp *qp = &pair->qp;
    for (unsigned looks = 0;; looks++) {
        struct nvme_cqe seen;
        const uint64_t now_ps = k_now_ps(kernel);
        const struct kaddr at = kaddr_add(qp->params.cq.at, (uint64_t)qp->head * NVME_CQE_BYTES);
        if (!is_ours(pair->client)) { /* a completion rings a doorbell, too */
            if (now_ps >= until_ps)
                return 0;
            k_sleep(kernel, RENEW_PS);
            continue;
        }
        k_peek(kernel, at, &seen, sizeof seen);
        const unsigned n = nvme_user_qp_poll(qp, 0);
        if (n != 0 || now_ps >= until_ps)
            return n;
        if (looks > 0) /* the first may have missed in the caches */
            k_spin(kernel, at, &seen, sizeof seen, k_now_ps(kernel) - now_ps, until_ps);
    }
}
