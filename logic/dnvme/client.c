/*
 * A client of an NVMe controller that another process manages.
 *
 * What it does: Connects to its mailbox and to the controller's registers by each of its paths,
 *   registers with the manager, renews its lease in a thread of its own; memory for data, mapped
 *   for the device by each path.
 * Follows: SmartIO, 6.2 and 6.3.
 * Costs: A heartbeat eight times a lease: a store by each path and a read over the fabric.
 */
#include "logic/dnvme/dnvme_internal.h"

/* ---- The lease ------------------------------------------------------------------------------- */

static void body(void *arg)
{
    struct dnvme_client *c = arg;
    const uint64_t heartbeat_ps = c->mail.lease_ps / DNVME_HEARTBEATS;
    while (!c->stopping) {
        dnvme_mail_heartbeat(&c->mail);
        k_wait(c->kernel, &c->wait,
               k_now_ps(c->kernel) + (c->mail.echoed ? heartbeat_ps : heartbeat_ps / 4));
        if (!c->stopping && !dnvme_mail_look(&c->mail)) {
            c->mail.over = true;
            break;
        }
    }
    c->stopped = true;
    k_wake(c->kernel, &c->wait);
}

static void stop(struct dnvme_client *c)
{
    c->stopping = true;
    k_wake(c->kernel, &c->wait);
    while (!c->stopped)
        k_wait(c->kernel, &c->wait, k_now_ps(c->kernel) + K_MS);
}

/* ---- Paths ----------------------------------------------------------------------------------- */

static void link_changed(struct sisci_remote *remote, enum sisci_event event, void *context)
{
    struct dnvme_path *path = context;
    (void)remote;
    if (event == SISCI_CB_NOT_OPERATIONAL || event == SISCI_CB_LOST)
        path->down = true;
    else if (event == SISCI_CB_OPERATIONAL)
        path->down = false;
}

static int path_open(struct dnvme_client *c, unsigned i, struct lend_error *error)
{
    struct dnvme_path *path = &c->path[i];
    const struct dnvme_client_params *p = &c->params;
    path->adapter = p->adapter[i];
    enum sisci_error e = sisci_segment_connect(c->process, p->manager, p->segment, path->adapter,
                                               NULL, NULL, &path->mailbox_remote, error);
    if (e == SISCI_OK)
        e = sisci_map(path->mailbox_remote, DNVME_MAILBOXES + (uint64_t)p->number * WIRE_SLOT_BYTES,
                      WIRE_SLOT_BYTES, &path->mailbox, error);
    path->has_mailbox = e == SISCI_OK;
    if (e == SISCI_OK)
        e = sisci_device_bar_connect(c->device, 0, path->adapter, link_changed, path,
                                     &path->bar_remote, error);
    if (e == SISCI_OK)
        e = sisci_map(path->bar_remote, 0, sisci_remote_bytes(path->bar_remote), &path->bar, error);
    path->has_bar = e == SISCI_OK;
    if (e == SISCI_OK)
        c->mail.map[i] = &path->mailbox;
    return dnvme_code(e, error);
}

/* The mailbox cannot be reached by it; other threads may use that meanwhile. */
static void path_close(struct dnvme_client *c, unsigned i)
{
    struct dnvme_path *path = &c->path[i];
    c->mail.map[i] = &c->none;
    if (path->has_cmb)
        sisci_unmap(&path->cmb);
    if (path->cmb_remote != NULL)
        sisci_segment_disconnect(path->cmb_remote, NULL);
    if (path->has_bar)
        sisci_unmap(&path->bar);
    if (path->bar_remote != NULL)
        sisci_segment_disconnect(path->bar_remote, NULL);
    if (path->has_mailbox)
        sisci_unmap(&path->mailbox);
    if (path->mailbox_remote != NULL)
        sisci_segment_disconnect(path->mailbox_remote, NULL);
    const unsigned adapter = path->adapter;
    *path = (struct dnvme_path){ .adapter = adapter, .stale = true };
    path->mailbox.lost = path->bar.lost = path->cmb.lost = true;
}

bool dnvme_path_works(const struct dnvme_client *c, unsigned i)
{
    return !c->path[i].down && !c->path[i].bar.lost;
}

int dnvme_path_connect(struct dnvme_client *c, unsigned i)
{
    struct lend_error error = { 0 };
    if (!c->path[i].bar.lost && !c->path[i].mailbox.lost)
        return 0;
    path_close(c, i);
    const int status = path_open(c, i, &error);
    if (status != 0)
        path_close(c, i);
    return status;
}

static void lock_buffers(struct dnvme_client *c)
{
    while (c->mapping)
        k_wait(c->kernel, &c->mapped, UINT64_MAX);
    c->mapping = true;
}

static void unlock_buffers(struct dnvme_client *c)
{
    c->mapping = false;
    k_wake(c->kernel, &c->mapped);
}

/* Lets the device reach a buffer by a path. */
static int map_by(struct dnvme_client *c, struct dnvme_buffer *b, unsigned i,
                  struct lend_error *error)
{
    const enum sisci_error e = sisci_segment_map_for_device(
        b->segment, c->device, c->path[i].adapter, 0, b->bytes, K_DMA_BOTH, &b->window[i], error);
    b->mapped[i] = e == SISCI_OK;
    b->bus[i] = b->mapped[i] ? b->window[i].dma : 0;
    const int status = dnvme_code(e, error);
    c->revoked = c->revoked || status == -ENOTCONN;
    return status;
}

static void unmap_by(struct dnvme_buffer *b, unsigned i)
{
    if (b->mapped[i])
        sisci_window_unmap(&b->window[i]);
    b->mapped[i] = false;
    b->bus[i] = 0;
}

int dnvme_path_restore(struct dnvme_client *c, unsigned i, bool *rebuilt)
{
    struct dnvme_path *path = &c->path[i];
    struct lend_error error = { 0 };
    int status = dnvme_path_connect(c, i);
    if (status != 0 || path->down)
        return status != 0 ? status : -EHOSTUNREACH;
    *rebuilt = path->stale;
    lock_buffers(c);
    for (struct dnvme_buffer *b = c->buffers; b != NULL && status == 0; b = b->next) {
        if (*rebuilt)
            unmap_by(b, i);
        if (!b->mapped[i])
            status = map_by(c, b, i, &error);
    }
    if (status == 0)
        path->stale = false;
    unlock_buffers(c);
    return status;
}

static void release(struct dnvme_client *c)
{
    for (unsigned i = 0; i < c->params.n_paths; i++)
        path_close(c, i);
    if (c->device != NULL)
        sisci_device_return(c->device, NULL);
    k_free(c);
}

/* ---- Life ------------------------------------------------------------------------------------ */

int dnvme_client_new(struct kernel *kernel, struct sisci_process *process,
                     struct sisci_device_name name, const struct dnvme_client_params *params,
                     struct dnvme_client **client, struct lend_error *error)
{
    struct lend_error own = { 0 };
    *client = NULL;
    error = error != NULL ? error : &own;
    if (params->n_paths == 0 || params->n_paths > DNVME_PATHS_MAX || params->timeout_ps == 0)
        return lend_fail(error, -EINVAL, "a parameter of the client is out of range");
    struct dnvme_client *c = k_zalloc(sizeof *c);
    *c = (struct dnvme_client){ .kernel = kernel,
                                .process = process,
                                .params = *params,
                                .none = { .kernel = kernel, .lost = true } };
    for (unsigned i = 0; i < DNVME_PATHS_MAX; i++)
        c->path[i].bar.lost = c->path[i].mailbox.lost = true; /* until it is open */
    c->mail = (struct dnvme_mail){ .kernel = kernel,
                                   .n_maps = params->n_paths,
                                   .incarnation = (uint32_t)(k_now_ps(kernel) / K_NS) | 1u,
                                   .timeout_ps = params->timeout_ps };
    int status = dnvme_code(
        sisci_device_borrow(process, name, SISCI_SHARED, NULL, NULL, &c->device, error), error);
    for (unsigned i = 0; status == 0 && i < params->n_paths; i++)
        status = path_open(c, i, error);
    if (status == 0 && (status = dnvme_mail_open(&c->mail, &c->hello)) != 0)
        lend_fail(error, status, "the manager on host %u does not register client %u (%d)",
                  params->manager, params->number, status);
    if (status != 0) {
        release(c);
        return status;
    }
    k_thread_new(kernel, "dnvme_client", params->cpu, body, c);
    *client = c;
    return 0;
}

void dnvme_client_free(struct dnvme_client *c)
{
    stop(c);
    if (!c->dead && !c->mail.over)
        dnvme_mail_call(&c->mail, WIRE_BYE, NULL, 0, NULL, 0);
    release(c);
}

void dnvme_client_kill(struct dnvme_client *c)
{
    c->dead = true;
    c->mail.over = true;
    stop(c);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

int dnvme_client_namespace(struct dnvme_client *c, uint32_t nsid, struct dnvme_namespace *out)
{
    const uint64_t number = nsid;
    struct wire_namespace reply;
    const int status = dnvme_mail_call(&c->mail, WIRE_NAMESPACE, &number, sizeof number, &reply,
                                       sizeof reply);
    if (status == 0)
        *out = (struct dnvme_namespace){ reply.blocks, reply.block_log2 };
    return status;
}

int dnvme_client_admin(struct dnvme_client *c, struct nvme_user_command *command)
{
    struct wire_admin reply;
    const int status = dnvme_mail_call(&c->mail, WIRE_ADMIN, &command->sqe, sizeof command->sqe,
                                       &reply, sizeof reply);
    if (status == 0) {
        command->result = reply.result;
        command->status = (uint16_t)reply.status;
    }
    return status;
}

uint64_t dnvme_client_bytes_max(const struct dnvme_client *c)
{
    return c->hello.bytes_max;
}

bool dnvme_client_lost(const struct dnvme_client *c)
{
    return c->mail.over || c->revoked || sisci_device_lost(c->device);
}

struct sisci_device *dnvme_client_device(const struct dnvme_client *c)
{
    return c->device;
}

/* ---- Numbers of segments --------------------------------------------------------------------- */

static int no_number(struct lend_error *error)
{
    return lend_fail(error, -ENOSPC, "the client has used all its %u numbers of segments",
                     DNVME_SEGMENTS);
}

int dnvme_segment_number(struct dnvme_client *c, uint32_t *number, struct lend_error *error)
{
    for (unsigned i = 0; i < DNVME_SEGMENTS / 64; i++)
        if (c->segments[i] != UINT64_MAX) {
            const unsigned bit = (unsigned)__builtin_ctzll(~c->segments[i]);
            c->segments[i] |= UINT64_C(1) << bit;
            *number = c->params.first_segment + 64 * i + bit;
            return 0;
        }
    return no_number(error);
}

void dnvme_number_free(struct dnvme_client *c, uint32_t number)
{
    const uint32_t i = number - c->params.first_segment;
    c->segments[i / 64] &= ~(UINT64_C(1) << i % 64);
}

void dnvme_segment_free(struct dnvme_client *c, struct sisci_segment *segment)
{
    const uint32_t number = sisci_segment_number(segment);
    if (sisci_segment_remove(segment, NULL) == SISCI_OK)
        dnvme_number_free(c, number);
}

int dnvme_near_number(struct dnvme_client *c, uint32_t *number, struct lend_error *error)
{
    if (c->n_near == DNVME_SEGMENTS)
        return no_number(error);
    *number = (sisci_host_id(c->process) * DNVME_CLIENTS_MAX + c->params.number) * DNVME_SEGMENTS +
              c->n_near++;
    return 0;
}

/* ---- Data ------------------------------------------------------------------------------------ */

/* The way to the device failed, not the call: another may do. */
static bool is_unreachable(int status)
{
    return status == -EHOSTUNREACH || status == -ECONNRESET || status == -ENOTCONN ||
           status == -ETIMEDOUT;
}

/* By each path that works. */
static int map_all(struct dnvme_client *c, struct dnvme_buffer *b, struct lend_error *error)
{
    unsigned n = 0;
    for (unsigned i = 0; i < c->params.n_paths; i++) {
        const int status = dnvme_path_works(c, i) ? map_by(c, b, i, error) : -EHOSTUNREACH;
        n += status == 0;
        if (status != 0 && !is_unreachable(status) && dnvme_path_works(c, i))
            return status;
    }
    return n != 0 ? 0 : lend_fail(error, -EHOSTUNREACH, "no path to the device works");
}

static int add_buffer(struct dnvme_client *c, struct dnvme_buffer *b, struct lend_error *error)
{
    b->bytes = sisci_segment_bytes(b->segment);
    b->at = sisci_segment_memory(b->segment);
    lock_buffers(c);
    b->next = c->buffers;
    c->buffers = b;
    const int status = map_all(c, b, error);
    unlock_buffers(c);
    if (status != 0)
        dnvme_buffer_free(c, b);
    return status;
}

/* Memory of the kind that is asked for as a segment. */
struct memory {
    struct kaddr at; /* v is 0: pages are allocated */
    struct k_pci_dev *pci;
    unsigned bar;
    uint64_t offset, bytes;
};

static int new_buffer(struct dnvme_client *c, const struct memory *memory, struct dnvme_buffer *b,
                      struct lend_error *error)
{
    struct lend_error own = { 0 };
    uint32_t number = 0;
    enum sisci_error e;
    error = error != NULL ? error : &own;
    *b = (struct dnvme_buffer){ 0 };
    const int status = dnvme_segment_number(c, &number, error);
    if (status != 0)
        return status;
    if (memory->pci != NULL)
        e = sisci_segment_attach_bar(c->process, number, memory->pci, memory->bar, memory->offset,
                                     memory->bytes, &b->segment, error);
    else if (memory->at.v != 0)
        e = sisci_segment_attach(c->process, number, memory->at, memory->bytes, NULL, NULL,
                                 &b->segment, error);
    else
        e = sisci_segment_create(c->process, number, memory->bytes, K_NODE_LOCAL, NULL, NULL,
                                 &b->segment, error);
    if (e == SISCI_OK)
        return add_buffer(c, b, error);
    dnvme_number_free(c, number);
    return dnvme_code(e, error);
}

int dnvme_buffer_new(struct dnvme_client *c, uint64_t bytes, struct dnvme_buffer *buffer,
                     struct lend_error *error)
{
    const struct memory memory = { .bytes = bytes };
    return new_buffer(c, &memory, buffer, error);
}

int dnvme_buffer_of_memory(struct dnvme_client *c, struct kaddr at, uint64_t bytes,
                           struct dnvme_buffer *buffer, struct lend_error *error)
{
    const struct memory memory = { .at = at, .bytes = bytes };
    return new_buffer(c, &memory, buffer, error);
}

int dnvme_buffer_of_bar(struct dnvme_client *c, struct k_pci_dev *pci, unsigned bar,
                        uint64_t offset, uint64_t bytes, struct dnvme_buffer *buffer,
                        struct lend_error *error)
{
    const struct memory memory = { .pci = pci, .bar = bar, .offset = offset, .bytes = bytes };
    return new_buffer(c, &memory, buffer, error);
}

void dnvme_buffer_free(struct dnvme_client *c, struct dnvme_buffer *buffer)
{
    struct dnvme_buffer **link = &c->buffers;
    lock_buffers(c);
    while (*link != NULL && *link != buffer)
        link = &(*link)->next;
    if (*link != NULL)
        *link = buffer->next;
    for (unsigned i = 0; i < DNVME_PATHS_MAX; i++)
        unmap_by(buffer, i);
    unlock_buffers(c);
    if (buffer->segment != NULL)
        dnvme_segment_free(c, buffer->segment);
    *buffer = (struct dnvme_buffer){ 0 };
}
