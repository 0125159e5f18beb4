/*
 * What it does: maps bytes of a segment for a device. The host that asks brings the device's lender
 *   and the segment's host together; neither waits for the other.
 * Follows: SmartIO, 4.4, 6.1, 6.3; SISCI API, SCIMapLocalSegmentForDevice(),
 *   SCIMapRemoteSegmentForDevice().
 * Costs: segment at the lender: one request. Elsewhere: two requests to the lender and one to the
 *   segment's host, unless that is this one.
 *
 * Order. The segment's host lets the device in before the device gets the address; the device loses
 * the address before the segment's host shuts it out.
 */
#include "logic/sisci/sisci_internal.h"

/* What is to be mapped. */
struct wanted {
    struct sisci_window *window;
    struct wire_segment segment;
    uint32_t host; /* of the segment */
    unsigned adapter;
    uint64_t offset, bytes; /* in the segment, as its host knows it */
    enum k_dma_direction direction;
    bool group;      /* a multicast group instead of a segment, */
    uint64_t fabric; /* at this address among the groups */
};

static uint32_t lender_of(const struct sisci_window *w)
{
    return w->device->info.name.host;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static struct wire_window request_of(const struct wanted *want, enum sisci_operation op)
{
    return (struct wire_window){ .op = op,
                                 .borrower = want->window->device->borrower,
                                 .mapping = want->window->mapping,
                                 .host = want->host,
                                 .direction = want->direction,
                                 .segment = want->segment,
                                 .offset = want->offset,
                                 .bytes = want->bytes };
}

/* One request does it: the segment is the lender's, or a multicast group. */
static int map_here(struct wanted *want, struct lend_error *error)
{
    struct sisci_window *w = want->window;
    struct wire_window request = request_of(want, want->group ? OP_WINDOW_GROUP : OP_WINDOW_HERE);
    struct wire_window_here here;
    request.fabric = want->fabric;
    const int status = sisci_ask(w->device->process->sisci, w->path, &request, sizeof request,
                                 &here, sizeof here, error);
    if (status == 0) {
        w->mapping = here.mapping;
        w->dma = here.dma;
    }
    return status;
}

static int grant(struct wanted *want, const struct wire_window_opened *opened, uint64_t *fabric,
                 struct lend_error *error)
{
    struct sisci_window *w = want->window;
    const struct wire_grant request = { .op = OP_GRANT,
                                        .adapter = opened->peer_adapter,
                                        .segment = want->segment,
                                        .node = opened->node,
                                        .device = opened->device,
                                        .function = opened->function,
                                        .n_cpus = opened->n_cpus,
                                        .payload_bytes = opened->payload_bytes };
    struct wire_granted granted;
    const int status = sisci_ask(w->device->process->sisci, w->grant_path, &request, sizeof request,
                                 &granted, sizeof granted, error);
    if (status == 0) {
        w->grant = granted.grant;
        *fabric = granted.fabric + want->offset;
    }
    return status;
}

static int map_away(struct wanted *want, struct lend_error *error)
{
    struct sisci_window *w = want->window;
    struct sisci *sisci = w->device->process->sisci;
    struct wire_window request = request_of(want, OP_WINDOW_OPEN);
    struct wire_window_opened opened;
    int status = sisci_ask(sisci, w->path, &request, sizeof request, &opened, sizeof opened, error);
    if (status != 0)
        return status;
    w->mapping = opened.mapping;
    request = request_of(want, OP_WINDOW_MAP);
    status = grant(want, &opened, &request.fabric, error);
    return status == 0
               ? sisci_ask(sisci, w->path, &request, sizeof request, &w->dma, sizeof w->dma, error)
               : status;
}

/* Connections to the lender, and to the segment's host if that is a third. */
static int reach(struct wanted *want, struct lend_error *error)
{
    struct sisci_window *w = want->window;
    struct sisci *sisci = w->device->process->sisci;
    int status = sisci_reach(sisci, lender_of(w), want->adapter, &w->path, error);
    if (status == 0 && want->host != lender_of(w))
        status = sisci_reach(sisci, want->host, SISCI_ANY, &w->grant_path, error);
    return status;
}

static enum sisci_error map(struct wanted *want, struct lend_error *error)
{
    struct sisci_window *w = want->window;
    struct sisci_device *d = w->device;
    int status = d->lost ? lend_fail(error, -ECONNRESET, "host %u was lost", lender_of(w)) : 0;
    if (status == 0)
        status = reach(want, error);
    /* From here on a loss of the connections marks the window. */
    w->next = d->windows;
    d->windows = w;
    if (w->remote != NULL)
        w->remote->n_windows++;
    if (status == 0)
        status = want->host == lender_of(w) ? map_here(want, error) : map_away(want, error);
    if (status == 0 && w->lost)
        status = lend_fail(error, -ECONNRESET, "host %u was lost", lender_of(w));
    if (status != 0)
        sisci_window_close(w);
    return sisci_error_of(status);
}

static bool in_range(uint64_t offset, uint64_t bytes, uint64_t all, struct lend_error *error)
{
    if (bytes != 0 && offset <= all && bytes <= all - offset)
        return true;
    lend_fail(error, -EDOM, "[%#llx, + %#llx) of a segment of %#llx bytes",
              (unsigned long long)offset, (unsigned long long)bytes, (unsigned long long)all);
    return false;
}

/* The segment as its host knows it: a device that we have borrowed is at its lender. */
static void name_local(const struct sisci_segment *s, struct wanted *want)
{
    want->host = s->host;
    want->segment = (struct wire_segment){ .kind = WIRE_NUMBER, .number = s->number };
    if (s->host == s->sisci->id)
        return;
    want->segment = (struct wire_segment){ .kind = WIRE_BAR, .number = s->bar, .id = s->id };
    want->offset += s->bar_offset;
}

enum sisci_error sisci_segment_map_for_device(struct sisci_segment *segment,
                                              struct sisci_device *device, unsigned adapter,
                                              uint64_t offset, uint64_t bytes,
                                              enum k_dma_direction direction,
                                              struct sisci_window *window, struct lend_error *error)
{
    struct wanted want = { .window = window,
                           .adapter = adapter,
                           .offset = offset,
                           .bytes = bytes,
                           .direction = direction };
    k_syscall(device->process->sisci->kernel);
    if (!in_range(offset, bytes, segment->bytes, error))
        return SISCI_ERR_OUT_OF_RANGE;
    *window = (struct sisci_window){ .bytes = bytes, .device = device, .segment = segment };
    name_local(segment, &want);
    sisci_lock(device->process);
    const enum sisci_error result = map(&want, error);
    sisci_unlock(device->process);
    return result;
}

enum sisci_error sisci_remote_map_for_device(struct sisci_remote *remote,
                                             struct sisci_device *device, unsigned adapter,
                                             uint64_t offset, uint64_t bytes,
                                             enum k_dma_direction direction,
                                             struct sisci_window *window, struct lend_error *error)
{
    struct wanted want = { .window = window,
                           .segment = remote->segment,
                           .host = remote->host,
                           .adapter = adapter,
                           .offset = offset,
                           .bytes = bytes,
                           .direction = direction };
    k_syscall(device->process->sisci->kernel);
    if (!in_range(offset, bytes, remote->bytes, error))
        return SISCI_ERR_OUT_OF_RANGE;
    *window = (struct sisci_window){ .bytes = bytes, .device = device, .remote = remote };
    sisci_lock(device->process);
    if (remote->local != NULL && remote->segment.kind == WIRE_NUMBER)
        name_local(remote->local, &want);
    enum sisci_error result = SISCI_ERR_SEGMENT_NOT_CONNECTED;
    if (remote->lost)
        lend_fail(error, -ENOTCONN, "segment %u of host %u is lost", remote->segment.number,
                  remote->host);
    else
        result = map(&want, error);
    sisci_unlock(device->process);
    return result;
}

enum sisci_error sisci_window_open_group(struct sisci_window *window, uint64_t fabric,
                                         unsigned adapter, struct lend_error *error)
{
    struct sisci_process *process = window->device->process;
    struct wanted want = { .window = window,
                           .host = lender_of(window),
                           .adapter = adapter,
                           .bytes = window->bytes,
                           .direction = K_DMA_FROM_DEVICE,
                           .group = true,
                           .fabric = fabric };
    sisci_lock(process);
    const enum sisci_error result = map(&want, error);
    sisci_unlock(process);
    return result;
}

/* ---- Undoing --------------------------------------------------------------------------------- */

/* There is somebody to ask: this host, or a peer that is up. */
static bool answers(const struct lend_connection *c)
{
    return c == NULL || lend_service_up(c);
}

/* Lender and segment's host drop what is left when they lose us. */
static void undo(struct sisci_window *w)
{
    struct sisci *sisci = w->device->process->sisci;
    const struct wire_window close = { .op = OP_WINDOW_CLOSE,
                                       .borrower = w->device->borrower,
                                       .mapping = w->mapping };
    const struct wire_number revoke = { .op = OP_REVOKE, .number = w->grant };
    if (w->mapping != 0 && answers(w->path))
        sisci_ask(sisci, w->path, &close, sizeof close, NULL, 0, NULL);
    if (w->grant != 0 && answers(w->grant_path))
        sisci_ask(sisci, w->grant_path, &revoke, sizeof revoke, NULL, 0, NULL);
    w->mapping = w->grant = 0;
    sisci_put(&w->path);
    sisci_put(&w->grant_path);
}

void sisci_window_close(struct sisci_window *w)
{
    undo(w);
    K_LIST_REMOVE(w->device->windows, w);
    if (w->remote != NULL)
        w->remote->n_windows--;
    w->device = NULL;
    w->lost = true;
}

void sisci_window_unmap(struct sisci_window *w)
{
    if (w->device == NULL)
        return; /* the device was returned, or the process has been closed */
    struct sisci_process *process = w->device->process;
    k_syscall(process->sisci->kernel);
    sisci_lock(process);
    if (w->device != NULL)
        sisci_window_close(w);
    sisci_unlock(process);
}

/* ---- Losing ---------------------------------------------------------------------------------- */

void sisci_windows_lose(struct sisci_remote *r)
{
    for (struct sisci_device *d = r->process->devices; d != NULL; d = d->next)
        for (struct sisci_window *w = d->windows; w != NULL; w = w->next)
            if (w->remote == r) {
                w->lost = true;
                undo(w);
            }
}

void sisci_windows_mark(struct sisci_device *d, const struct lend_connection *c)
{
    for (struct sisci_window *w = d->windows; w != NULL; w = w->next)
        w->lost = w->lost || w->path == c || w->grant_path == c;
    d->pending = d->pending || d->connection == c;
    for (struct sisci_window *w = d->windows; w != NULL; w = w->next)
        d->pending = d->pending || w->lost;
}

void sisci_windows_settle(struct sisci_device *d)
{
    for (struct sisci_window *w = d->windows; w != NULL; w = w->next)
        if (w->lost)
            undo(w);
}
