/*
 * What it does: segments that a process is connected to, of other hosts or of this one, and the
 *   maps by which CPUs reach them.
 * Follows: SISCI API, SCIConnectSegment(), SCIMapRemoteSegment(), SCIDisconnectSegment(),
 *   SCIStoreBarrier(), SCICheckSequence().
 * Costs: a system call and one request to connect and to disconnect; window entries to map.
 */
#include "logic/sisci/sisci_internal.h"

#define LINE K_LINE_BYTES

static const char *name_of(const struct sisci_process *process)
{
    return lend_options_of(process->sisci->host)->name;
}

/* ---- Connecting ------------------------------------------------------------------------------ */

/* The segment is of this host: what the CPU reaches without a window. */
static void find_local(struct sisci_remote *r)
{
    struct sisci_link *link = r->process->sisci->links;
    while (link->number != r->link)
        link = link->next;
    r->local = link->segment;
}

int sisci_remote_open(struct sisci_process *process, uint32_t host,
                      struct lend_connection *connection, const struct wire_segment *name,
                      struct sisci_remote **result, struct lend_error *error)
{
    struct sisci *sisci = process->sisci;
    struct wire_connected connected;
    struct sisci_remote *r = k_zalloc(sizeof *r);
    *r = (struct sisci_remote){ .next = process->remotes,
                                .process = process,
                                .number = ++sisci->last_number,
                                .host = host,
                                .segment = *name,
                                .connection = connection };
    process->remotes = r; /* the owner may take it back before its answer is here */
    const struct wire_connect request = { .op = OP_CONNECT, .remote = r->number, .segment = *name };
    int status = sisci_ask(sisci, connection, &request, sizeof request, &connected,
                           sizeof connected, error);
    if (status == 0 && connection != NULL && !lend_service_up(connection))
        status = lend_fail(error, -ECONNRESET, "%s: host %u was lost", name_of(process), host);
    if (status != 0) {
        K_LIST_REMOVE(process->remotes, r);
        k_free(r);
        return status;
    }
    r->link = connected.link;
    r->fabric = connected.fabric;
    r->bytes = connected.bytes;
    if (connection == NULL)
        find_local(r);
    *result = r;
    return 0;
}

enum sisci_error sisci_segment_connect(struct sisci_process *process, uint32_t host,
                                       uint32_t number, unsigned adapter, sisci_remote_fn *changed,
                                       void *context, struct sisci_remote **remote,
                                       struct lend_error *error)
{
    const struct wire_segment name = { .kind = WIRE_NUMBER, .number = number };
    struct lend_connection *c;
    k_syscall(process->sisci->kernel);
    sisci_lock(process);
    int status = sisci_reach(process->sisci, host, adapter, &c, error);
    if (status == 0 && (status = sisci_remote_open(process, host, c, &name, remote, error)) != 0)
        sisci_put(&c);
    if (status == 0) {
        (*remote)->changed = changed;
        (*remote)->context = context;
    }
    sisci_unlock(process);
    return sisci_error_of(status);
}

/* The caller's structure stays; loads and stores by it have no effect any more. */
static void map_close(struct sisci_map *map)
{
    map->lost = true;
    if (map->adapter != NULL)
        lend_unmap(map->adapter, &map->windows);
    map->adapter = NULL;
}

void sisci_remote_close(struct sisci_remote *r)
{
    struct sisci *sisci = r->process->sisci;
    const struct wire_number request = { .op = OP_DISCONNECT, .number = r->link };
    while (r->maps != NULL) {
        struct sisci_map *map = r->maps;
        r->maps = map->next;
        map_close(map);
        map->remote = NULL;
    }
    if (r->local != NULL || r->connection != NULL) /* fails if the peer is lost, or took it back */
        sisci_ask(sisci, r->connection, &request, sizeof request, NULL, 0, NULL);
    sisci_put(&r->connection);
    if (r->device != NULL)
        r->device->n_remotes--;
    K_LIST_REMOVE(r->process->remotes, r);
    k_free(r);
}

enum sisci_error sisci_segment_disconnect(struct sisci_remote *r, struct lend_error *error)
{
    struct sisci_process *process = r->process;
    k_syscall(process->sisci->kernel);
    sisci_lock_idle(process, r);
    if (r->maps != NULL || r->n_windows != 0) {
        lend_fail(error, -EBUSY, "%s: segment %u of host %u is mapped, and for devices %u times",
                  name_of(process), r->segment.number, r->host, r->n_windows);
        sisci_unlock(process);
        return SISCI_ERR_BUSY;
    }
    sisci_remote_close(r);
    sisci_unlock(process);
    return SISCI_OK;
}

uint64_t sisci_remote_bytes(const struct sisci_remote *r)
{
    return r->bytes;
}

uint32_t sisci_remote_host(const struct sisci_remote *r)
{
    return r->local != NULL ? r->local->host : r->host;
}

bool sisci_remote_lost(const struct sisci_remote *r)
{
    return r->lost;
}

struct kaddr sisci_remote_memory(const struct sisci_remote *r)
{
    return (struct kaddr){ r->local != NULL && r->local->pci == NULL ? r->fabric : 0 };
}

/* ---- Losing ---------------------------------------------------------------------------------- */

void sisci_remote_mark(struct sisci_remote *r, enum sisci_event event)
{
    if (r->lost)
        return;
    if (event == SISCI_CB_OPERATIONAL) /* the last of these counts */
        r->pending &= ~(1u << SISCI_CB_NOT_OPERATIONAL);
    if (event == SISCI_CB_NOT_OPERATIONAL)
        r->pending &= ~(1u << SISCI_CB_OPERATIONAL);
    r->pending |= 1u << event;
    if (event != SISCI_CB_LOST && event != SISCI_CB_DISCONNECT)
        return;
    r->lost = true;
    for (struct sisci_map *map = r->maps; map != NULL; map = map->next)
        map->lost = true;
}

/* The connection is let go at once: as long as it has users it cannot be opened again. */
void sisci_remote_lose(struct sisci_remote *r)
{
    const struct wire_number request = { .op = OP_DISCONNECT, .number = r->link };
    for (struct sisci_map *map = r->maps; map != NULL; map = map->next)
        map_close(map);
    sisci_windows_lose(r);
    if (r->local != NULL || (r->connection != NULL && lend_service_up(r->connection)))
        sisci_ask(r->process->sisci, r->connection, &request, sizeof request, NULL, 0, NULL);
    r->local = NULL;
    sisci_put(&r->connection);
}

int sisci_serve_taken_back(struct sisci *sisci, struct lend_connection *connection,
                           const void *body, void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_number request;
    (void)reply;
    (void)bytes;
    (void)error;
    memcpy(&request, body, sizeof request);
    for (struct sisci_process *p = sisci->processes; p != NULL; p = p->next)
        for (struct sisci_remote *r = p->remotes; r != NULL; r = r->next)
            if (r->number == request.number && r->connection == connection) {
                sisci_remote_mark(r, SISCI_CB_DISCONNECT);
                sisci_notify(p);
                return 0;
            }
    return 0;
}

/* ---- Maps ------------------------------------------------------------------------------------ */

static enum sisci_error map_check(const struct sisci_remote *r, uint64_t offset, uint64_t bytes,
                                  struct lend_error *error)
{
    const char *name = name_of(r->process);
    if (r->lost) {
        lend_fail(error, -ENOTCONN, "%s: segment %u of host %u is lost", name, r->segment.number,
                  r->host);
        return SISCI_ERR_SEGMENT_NOT_CONNECTED;
    }
    if (offset % 4 != 0) {
        lend_fail(error, -EINVAL, "%s: offset %#llx is no multiple of 4", name,
                  (unsigned long long)offset);
        return SISCI_ERR_OFFSET_ALIGNMENT;
    }
    if (bytes % 4 != 0 || bytes == 0) {
        lend_fail(error, -EINVAL, "%s: %llu bytes are no multiple of 4", name,
                  (unsigned long long)bytes);
        return SISCI_ERR_SIZE_ALIGNMENT;
    }
    if (offset > r->bytes || bytes > r->bytes - offset) {
        lend_fail(error, -EDOM,
                  "%s: [%#llx, + %#llx) of segment %u of host %u, which has %#llx bytes", name,
                  (unsigned long long)offset, (unsigned long long)bytes, r->segment.number, r->host,
                  (unsigned long long)r->bytes);
        return SISCI_ERR_OUT_OF_RANGE;
    }
    return SISCI_OK;
}

static int map_open(struct sisci_map *map, uint64_t offset, struct lend_error *error)
{
    const struct sisci_remote *r = map->remote;
    if (r->local != NULL) {
        map->pci = r->local->pci;
        map->address = r->fabric + offset;
        return 0;
    }
    struct lend_adapter *adapter = lend_service_adapter(r->connection);
    const int status = lend_map(adapter, lend_service_node(r->connection), r->fabric + offset,
                                map->bytes, 0, "segments", &map->windows, error);
    if (status != 0)
        return status;
    map->adapter = adapter;
    map->pci = adapter->pci;
    map->address = map->windows.address;
    return 0;
}

enum sisci_error sisci_map(struct sisci_remote *r, uint64_t offset, uint64_t bytes,
                           struct sisci_map *map, struct lend_error *error)
{
    struct sisci_process *process = r->process;
    k_syscall(process->sisci->kernel);
    sisci_lock(process);
    enum sisci_error result = map_check(r, offset, bytes, error);
    if (result == SISCI_OK) {
        *map = (struct sisci_map){ .kernel = process->sisci->kernel, .remote = r, .bytes = bytes };
        result = sisci_error_of(map_open(map, offset, error));
    }
    if (result == SISCI_OK) {
        map->next = r->maps;
        r->maps = map;
        map->lost = r->lost; /* meanwhile */
    }
    sisci_unlock(process);
    return result;
}

void sisci_unmap(struct sisci_map *map)
{
    struct sisci_process *process;
    if (map->remote == NULL)
        return; /* its process has been closed, or it was unmapped */
    process = map->remote->process;
    k_syscall(process->sisci->kernel);
    sisci_lock(process);
    if (map->remote != NULL) { /* a callback may have done it meanwhile */
        K_LIST_REMOVE(map->remote->maps, map);
        map_close(map);
        map->remote = NULL;
    }
    sisci_unlock(process);
}

/* ---- Copies ---------------------------------------------------------------------------------- */

void sisci_read_bytes(const struct sisci_map *map, uint64_t offset, void *to, size_t bytes)
{
    uint8_t *at = to;
    if (map->lost) {
        memset(to, 0xff, bytes);
        return;
    }
    if (map->pci == NULL) {
        k_load(map->kernel, (struct kaddr){ map->address + offset }, to, bytes);
        return;
    }
    for (size_t i = 0; i < bytes;) {
        const unsigned n = (offset + i) % 8 == 0 && bytes - i >= 8 ? 8 : 4;
        const uint64_t value = sisci_read(map, offset + i, n);
        memcpy(at + i, &value, n);
        i += n;
    }
}

void sisci_write_bytes(const struct sisci_map *map, uint64_t offset, const void *from, size_t bytes)
{
    const uint8_t *at = from;
    if (map->pci == NULL && !map->lost) {
        k_store(map->kernel, (struct kaddr){ map->address + offset }, from, bytes);
        return;
    }
    for (size_t i = 0; i < bytes;) {
        const uint64_t address = map->address + offset + i;
        const size_t lines = (bytes - i) / LINE * LINE;
        if (address % LINE == 0 && lines != 0) {
            sisci_write_lines(map, offset + i, at + i, lines);
            sisci_drain(map);
            i += lines;
            continue;
        }
        const unsigned n = (offset + i) % 8 == 0 && bytes - i >= 8 ? 8 : 4;
        uint64_t value = 0;
        memcpy(&value, at + i, n);
        sisci_write(map, offset + i, n, value);
        i += n;
    }
}

enum sisci_error sisci_flush(const struct sisci_map *map)
{
    if (map->lost)
        return SISCI_ERR_TRANSFER_FAILED;
    sisci_drain(map);
    if (map->pci == NULL)
        return SISCI_OK;
    if (sisci_read(map, 0, 4) != UINT32_MAX)
        return SISCI_OK;
    /* All ones may be what is there. */
    return !map->lost && (map->adapter == NULL || lend_adapter_link_up(map->adapter))
               ? SISCI_OK
               : SISCI_ERR_TRANSFER_FAILED;
}
