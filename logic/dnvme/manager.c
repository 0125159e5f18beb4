/*
 * The manager of an NVMe controller.
 *
 * What it does: Takes the controller exclusively, resets it, sets up the admin queue in a segment
 *   of its host, has the number of queues set before the first one exists (a sequence error
 *   afterwards), identifies the namespaces, finds the memory buffer; then shares the device and
 *   serves mailboxes in a thread. The controller sees the admin queue by the address that SISCI
 *   resolves, so the manager's host may be any.
 * Leaves out: asynchronous events; a reset once clients are there: if the controller stops
 *   answering, all lose it.
 * Follows: SmartIO, 6.2; NVM Express 1.3, sections 3.1.11 (CMBLOC), 5.21.1.7, 7.6.
 * Costs: A look at the mailboxes every poll_ps.
 */
#include "logic/dnvme/dnvme_internal.h"

#define ADMIN_ENTRIES  64u /* a page */
#define ADMIN_SQ       0u
#define ADMIN_CQ       4096u
#define ADMIN_PAGE     8192u
#define NAMESPACES_MAX 16u
#define END_PS         K_MS /* for queue pairs to be deleted before the controller is reset */

const struct dnvme_manager_params dnvme_manager_params_default = {
    .segment = 0x4e564d00,
    .n_clients = 64,
    .client_queues = 8,
    .lease_ps = 20 * K_MS,
    .poll_ps = 20 * K_US,
    .timeout_ps = 500 * K_MS,
    .weight = { 1, 1, 1 },
    .cpu = K_CPU_ANY,
};

struct dnvme_manager {
    struct kernel *kernel;
    struct sisci_process *process;
    struct dnvme_manager_params params;
    struct sisci_device *device;
    struct sisci_remote *bar_remote, *cmb_remote;
    struct sisci_map bar;
    struct sisci_segment *segment;
    struct sisci_window window, cmb_window;
    bool has_bar, has_window, has_cmb_window, has_controller, has_server;
    struct nvme_user_controller controller;
    struct nvme_user_namespace namespace[NAMESPACES_MAX];
    uint64_t cmb_bytes;
    struct dnvme_server server;
    struct dnvme_deletions deletions;
    bool stopping, stopped;
    struct k_wait_queue wait;
};

/* ---- What clients ask for -------------------------------------------------------------------- */

/* A buffer is divided among all queues alike. */
static uint64_t cmb_share(const struct dnvme_manager *m)
{
    return (m->cmb_bytes / (m->server.queue_end - 1)) & ~(uint64_t)(NVME_PAGE_BYTES - 1);
}

static int create(void *context, uint16_t id, const struct wire_create *c, uint64_t *sq_bus)
{
    struct dnvme_manager *m = context;
    *sq_bus = c->sq_bus;
    if (c->sq_bus == WIRE_SQ_IN_CMB) {
        if (m->cmb_bytes == 0)
            return -ENXIO;
        if ((uint64_t)c->entries * NVME_SQE_BYTES > cmb_share(m))
            return -ENOSPC;
        *sq_bus = m->server.hello.cmb_bus + (id - 1u) * cmb_share(m);
    }
    return nvme_user_create_queues(&m->controller, id, (uint16_t)c->entries, *sq_bus, c->cq_bus,
                                   (enum nvme_sq_priority)c->priority);
}

static void delete_pair(void *context, uint16_t id)
{
    struct dnvme_manager *m = context;
    dnvme_deletions_begin(&m->deletions, id);
}

static int admin(void *context, const struct nvme_sqe *sqe, struct wire_admin *reply)
{
    struct dnvme_manager *m = context;
    struct nvme_user_command command = { .sqe = *sqe };
    const int status = nvme_user_admin(&m->controller, &command, NULL, 0, NULL);
    if (status != 0 && status != -EIO)
        return status;
    *reply = (struct wire_admin){ .result = command.result, .status = command.status };
    return 0;
}

static int namespace(void *context, uint32_t nsid, struct wire_namespace *reply)
{
    const struct dnvme_manager *m = context;
    if (nsid == 0 || nsid > m->controller.n_namespaces || nsid > NAMESPACES_MAX)
        return -ENOENT;
    *reply = (struct wire_namespace){ .blocks = m->namespace[nsid - 1].blocks,
                                      .block_log2 = m->namespace[nsid - 1].block_log2 };
    return 0;
}

static void body(void *arg)
{
    struct dnvme_manager *m = arg;
    while (!m->stopping) {
        dnvme_server_round(&m->server);
        nvme_user_qp_poll(&m->controller.admin, 0);
        dnvme_deletions_continue(&m->deletions);
        k_wait(m->kernel, &m->wait, k_now_ps(m->kernel) + m->params.poll_ps);
    }
    m->stopped = true;
    k_wake(m->kernel, &m->wait);
}

/* ---- Up -------------------------------------------------------------------------------------- */

static int take_device(struct dnvme_manager *m, struct sisci_device_name name,
                       struct lend_error *error)
{
    const uint64_t bytes = DNVME_MAILBOXES + (uint64_t)m->params.n_clients * WIRE_SLOT_BYTES;
    enum sisci_error e = sisci_device_borrow(m->process, name, SISCI_EXCLUSIVE, NULL, NULL,
                                             &m->device, error);
    if (e == SISCI_OK)
        e = sisci_device_bar_connect(m->device, 0, SISCI_ANY, NULL, NULL, &m->bar_remote, error);
    if (e == SISCI_OK)
        e = sisci_map(m->bar_remote, 0, sisci_remote_bytes(m->bar_remote), &m->bar, error);
    m->has_bar = e == SISCI_OK;
    if (e == SISCI_OK)
        e = sisci_segment_create(m->process, m->params.segment, bytes, K_NODE_LOCAL, NULL, NULL,
                                 &m->segment, error);
    if (e == SISCI_OK) /* queues and page, not the mailboxes */
        e = sisci_segment_map_for_device(m->segment, m->device, SISCI_ANY, 0, DNVME_MAILBOXES,
                                         K_DMA_BOTH, &m->window, error);
    m->has_window = e == SISCI_OK;
    return dnvme_code(e, error);
}

static struct nvme_user_memory memory_at(const struct dnvme_manager *m, uint64_t offset)
{
    return (struct nvme_user_memory){ .at = kaddr_add(sisci_segment_memory(m->segment), offset),
                                      .bus = m->window.dma + offset };
}

static int open_controller(struct dnvme_manager *m, uint16_t *n_queues)
{
    const struct nvme_user_controller_params params = {
        .kernel = m->kernel,
        .registers = dnvme_map_window(&m->bar, 0),
        .admin_entries = ADMIN_ENTRIES,
        .admin_sq = memory_at(m, ADMIN_SQ),
        .admin_cq = memory_at(m, ADMIN_CQ),
        .page = memory_at(m, ADMIN_PAGE),
        .timeout_ps = m->params.timeout_ps,
        .weighted = m->params.weighted,
    };
    int status = nvme_user_controller_open(&m->controller, &params);
    m->has_controller = status == 0;
    if (status == 0 && m->params.weighted)
        status = nvme_user_set_weights(&m->controller, m->params.weight);
    if (status == 0)
        status = nvme_user_set_queues(&m->controller, n_queues);
    for (uint32_t i = 0; status == 0 && i < m->controller.n_namespaces && i < NAMESPACES_MAX; i++)
        status = nvme_user_identify_namespace(&m->controller, i + 1, &m->namespace[i]);
    return status;
}

/* The address by which the controller itself finds its buffer: that of the register in the lender's
 * tree, which is what a window leads to if no IOMMU translates the controller's requests. Then two
 * windows of the same bytes have the same address; else each has its own, and a request to it would
 * leave the controller. */
static bool bus_address(struct dnvme_manager *m, uint64_t offset, uint64_t bytes)
{
    struct sisci_window other;
    if (sisci_remote_map_for_device(m->cmb_remote, m->device, SISCI_ANY, offset, bytes, K_DMA_BOTH,
                                    &m->cmb_window, NULL) != SISCI_OK)
        return false;
    m->has_cmb_window = true;
    if (sisci_remote_map_for_device(m->cmb_remote, m->device, SISCI_ANY, offset, bytes, K_DMA_BOTH,
                                    &other, NULL) != SISCI_OK)
        return false;
    const bool same = other.dma == m->cmb_window.dma;
    sisci_window_unmap(&other);
    return same;
}

/* Where the controller has its memory buffer, if submission queues can lie there. */
static void find_cmb(struct dnvme_manager *m, struct wire_hello *hello)
{
    const uint32_t size = (uint32_t)sisci_read(&m->bar, NVME_REG_CMBSZ, 4);
    if (size == UINT32_MAX || (size & NVME_CMBSZ_SQS) == 0 || NVME_CMBSZ_BYTES(size) == 0)
        return;
    const uint32_t where = (uint32_t)sisci_read(&m->bar, NVME_REG_CMBLOC, 4);
    const unsigned bar = where & NVME_CMBLOC_BAR_MASK;
    const uint64_t offset = NVME_CMBSZ_BYTES((where & ~0xfffu) | (size & 0xfffu));
    if (bar == 0 || bar >= K_PCI_BARS ||
        sisci_device_bar_connect(m->device, bar, SISCI_ANY, NULL, NULL, &m->cmb_remote, NULL) !=
            SISCI_OK)
        return;
    if (!bus_address(m, offset, NVME_CMBSZ_BYTES(size)))
        return;
    m->cmb_bytes = NVME_CMBSZ_BYTES(size);
    hello->cmb_bus = m->cmb_window.dma;
    hello->cmb_bar = bar;
    hello->cmb_offset = offset;
}

static void fill_server(struct dnvme_manager *m, uint16_t n_queues)
{
    static const struct dnvme_server_ops ops = { create, delete_pair, admin, namespace };
    m->server = (struct dnvme_server){
        .kernel = m->kernel,
        .mailboxes = kaddr_add(sisci_segment_memory(m->segment), DNVME_MAILBOXES),
        .n = m->params.n_clients,
        .lease_ps = m->params.lease_ps,
        .hello = { .lease_ps = m->params.lease_ps,
                   .bytes_max = m->controller.bytes_max,
                   .entries_max = m->controller.entries_max,
                   .doorbell_bytes = m->controller.doorbell_bytes,
                   .n_namespaces = m->controller.n_namespaces,
                   .client_queues = m->params.client_queues },
        .queue_end = n_queues + 1u,
        .reserved = { { m->window.dma, DNVME_MAILBOXES } },
        .ops = &ops,
        .context = m,
    };
    find_cmb(m, &m->server.hello);
    if (m->cmb_bytes != 0 && cmb_share(m) < NVME_PAGE_BYTES)
        m->cmb_bytes = 0;
    if (m->cmb_bytes == 0)
        m->server.hello.cmb_bar = 0;
    else /* places there are given by us alone */
        m->server.reserved[1] = (struct dnvme_range){ m->server.hello.cmb_bus, m->cmb_bytes };
    dnvme_server_init(&m->server);
    m->has_server = true;
}

/* What is not deleted in time goes with the controller's reset. */
static void end_server(struct dnvme_manager *m)
{
    const uint64_t until_ps = k_now_ps(m->kernel) + END_PS;
    dnvme_server_end(&m->server);
    while (m->server.stats.n_queues != 0 && !m->controller.gone && k_now_ps(m->kernel) < until_ps) {
        k_sleep(m->kernel, m->params.poll_ps);
        nvme_user_qp_poll(&m->controller.admin, 0);
        dnvme_deletions_continue(&m->deletions);
    }
}

static void release(struct dnvme_manager *m)
{
    if (m->has_server)
        end_server(m);
    if (m->has_controller)
        nvme_user_controller_close(&m->controller);
    if (m->has_server)
        dnvme_server_release(&m->server);
    if (m->has_cmb_window)
        sisci_window_unmap(&m->cmb_window);
    if (m->cmb_remote != NULL)
        sisci_segment_disconnect(m->cmb_remote, NULL);
    if (m->segment != NULL)
        sisci_segment_unexport(m->segment, true, NULL);
    if (m->has_window)
        sisci_window_unmap(&m->window);
    if (m->segment != NULL)
        sisci_segment_remove(m->segment, NULL);
    if (m->has_bar)
        sisci_unmap(&m->bar);
    if (m->bar_remote != NULL)
        sisci_segment_disconnect(m->bar_remote, NULL);
    if (m->device != NULL)
        sisci_device_return(m->device, NULL);
    k_free(m);
}

/* Clients may come once the controller works. */
static int export_mailboxes(struct dnvme_manager *m, struct lend_error *error)
{
    enum sisci_error e = sisci_device_share(m->device, error);
    if (e == SISCI_OK)
        e = sisci_segment_prepare(m->segment, SISCI_ANY, error);
    if (e == SISCI_OK)
        e = sisci_segment_export(m->segment, SISCI_ANY, error);
    return dnvme_code(e, error);
}

int dnvme_manager_new(struct kernel *kernel, struct sisci_process *process,
                      struct sisci_device_name name, const struct dnvme_manager_params *params,
                      struct dnvme_manager **manager, struct lend_error *error)
{
    struct lend_error own = { 0 };
    uint16_t n_queues = NVME_QUEUES_MAX - 1;
    *manager = NULL;
    error = error != NULL ? error : &own;
    if (params->n_clients == 0 || params->n_clients > DNVME_CLIENTS_MAX ||
        params->client_queues == 0 || params->poll_ps == 0 || params->timeout_ps == 0 ||
        params->lease_ps < 4 * DNVME_HEARTBEATS * params->poll_ps)
        return lend_fail(error, -EINVAL, "a parameter of the manager is out of range");
    struct dnvme_manager *m = k_zalloc(sizeof *m);
    m->kernel = kernel;
    m->process = process;
    m->deletions = (struct dnvme_deletions){ .controller = &m->controller, .server = &m->server };
    m->params = *params;
    int status = take_device(m, name, error);
    if (status == 0 && (status = open_controller(m, &n_queues)) != 0)
        lend_fail(error, status, "the controller of host %u does not start (%d)", name.host,
                  status);
    if (status == 0) {
        fill_server(m, n_queues);
        status = export_mailboxes(m, error);
    }
    if (status != 0) {
        release(m);
        return status;
    }
    k_thread_new(m->kernel, "dnvme_manager", params->cpu, body, m);
    *manager = m;
    return 0;
}

static void stop(struct dnvme_manager *m)
{
    m->stopping = true;
    k_wake(m->kernel, &m->wait);
    while (!m->stopped)
        k_wait(m->kernel, &m->wait, k_now_ps(m->kernel) + K_MS);
}

void dnvme_manager_free(struct dnvme_manager *m)
{
    stop(m);
    release(m);
}

void dnvme_manager_kill(struct dnvme_manager *m)
{
    stop(m);
    m->controller.gone = true;
    nvme_user_qp_fail_all(&m->controller.admin, NVME_SC_ABORTED_SQ_DELETED);
    nvme_user_qp_release(&m->controller.admin);
    dnvme_server_release(&m->server);
    k_free(m);
}

struct dnvme_manager_stats dnvme_manager_stats(const struct dnvme_manager *m)
{
    return m->server.stats;
}
