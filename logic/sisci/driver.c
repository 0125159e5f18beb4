/*
 * What it does: the driver of one kernel: dispatches requests of other hosts, hears of losses,
 *   finds connections, and has the table of errors.
 * Follows: SISCI API, sci_error_t; SmartIO, 6.1.
 * Costs: those of the functions that it calls.
 */
#include <stdio.h>

#include "logic/sisci/sisci_internal.h"

/* A host that all others greet at a time has four places for their hellos, and answers one after
 * the other: who got no answer tries again, each host after another time. */
#define REACH_TRIES    6u
#define REACH_TURNS    16u
#define REACH_PAUSE_PS (100 * K_US)

/* ---- Errors ---------------------------------------------------------------------------------- */

const char *sisci_error_name(enum sisci_error error)
{
    static const char *const names[SISCI_N_ERRORS] = {
        [SISCI_OK] = "SCI_ERR_OK",
        [SISCI_ERR_BUSY] = "SCI_ERR_BUSY",
        [SISCI_ERR_NOSPC] = "SCI_ERR_NOSPC",
        [SISCI_ERR_HW_NOSPC] = "SCI_ERR_HW_NOSPC",
        [SISCI_ERR_NOT_IMPLEMENTED] = "SCI_ERR_NOT_IMPLEMENTED",
        [SISCI_ERR_NO_SUCH_ADAPTERNO] = "SCI_ERR_NO_SUCH_ADAPTERNO",
        [SISCI_ERR_TIMEOUT] = "SCI_ERR_TIMEOUT",
        [SISCI_ERR_OUT_OF_RANGE] = "SCI_ERR_OUT_OF_RANGE",
        [SISCI_ERR_NO_SUCH_SEGMENT] = "SCI_ERR_NO_SUCH_SEGMENT",
        [SISCI_ERR_CONNECTION_REFUSED] = "SCI_ERR_CONNECTION_REFUSED",
        [SISCI_ERR_SEGMENT_NOT_CONNECTED] = "SCI_ERR_SEGMENT_NOT_CONNECTED",
        [SISCI_ERR_SIZE_ALIGNMENT] = "SCI_ERR_SIZE_ALIGNMENT",
        [SISCI_ERR_OFFSET_ALIGNMENT] = "SCI_ERR_OFFSET_ALIGNMENT",
        [SISCI_ERR_ILLEGAL_PARAMETER] = "SCI_ERR_ILLEGAL_PARAMETER",
        [SISCI_ERR_SEGMENT_NOT_PREPARED] = "SCI_ERR_SEGMENT_NOT_PREPARED",
        [SISCI_ERR_ILLEGAL_ADDRESS] = "SCI_ERR_ILLEGAL_ADDRESS",
        [SISCI_ERR_ILLEGAL_OPERATION] = "SCI_ERR_ILLEGAL_OPERATION",
        [SISCI_ERR_SEGMENTID_USED] = "SCI_ERR_SEGMENTID_USED",
        [SISCI_ERR_SYSTEM] = "SCI_ERR_SYSTEM",
        [SISCI_ERR_NOT_AVAILABLE] = "SCI_ERR_NOT_AVAILABLE",
        [SISCI_ERR_NO_SUCH_NODEID] = "SCI_ERR_NO_SUCH_NODEID",
        [SISCI_ERR_NO_LINK_ACCESS] = "SCI_ERR_NO_LINK_ACCESS",
        [SISCI_ERR_TRANSFER_FAILED] = "SCI_ERR_TRANSFER_FAILED",
    };
    return error < SISCI_N_ERRORS ? names[error] : "SCI_ERR_SYSTEM";
}

enum sisci_error sisci_error_of(int status)
{
    switch (-status) {
    case 0: return SISCI_OK;
    case EBUSY: return SISCI_ERR_BUSY;
    case ENOMEM: return SISCI_ERR_NOSPC;
    case ENOSPC:
    case EFBIG: return SISCI_ERR_HW_NOSPC;
    case EOPNOTSUPP: return SISCI_ERR_NOT_IMPLEMENTED;
    case ENODEV: return SISCI_ERR_NO_SUCH_ADAPTERNO;
    case ETIMEDOUT: return SISCI_ERR_TIMEOUT;
    case EDOM: return SISCI_ERR_OUT_OF_RANGE;
    case ENOENT: return SISCI_ERR_NO_SUCH_SEGMENT;
    case ECONNREFUSED: return SISCI_ERR_CONNECTION_REFUSED;
    case ENOTCONN:
    case ECONNRESET: return SISCI_ERR_SEGMENT_NOT_CONNECTED;
    case EINVAL: return SISCI_ERR_ILLEGAL_PARAMETER;
    case ERANGE: return SISCI_ERR_ILLEGAL_ADDRESS;
    case EPERM: return SISCI_ERR_ILLEGAL_OPERATION;
    case EEXIST: return SISCI_ERR_SEGMENTID_USED;
    case EAGAIN: return SISCI_ERR_NOT_AVAILABLE;
    case EHOSTUNREACH: return SISCI_ERR_NO_SUCH_NODEID;
    case ENETDOWN: return SISCI_ERR_NO_LINK_ACCESS;
    default: return SISCI_ERR_SYSTEM;
    }
}

/* ---- Requests -------------------------------------------------------------------------------- */

static int serve(void *context, struct lend_connection *connection, const void *body, void *reply,
                 size_t *bytes, struct lend_error *error)
{
    static sisci_serve_fn *const serves[] = {
        [OP_CONNECT] = sisci_serve_connect,
        [OP_DISCONNECT] = sisci_serve_disconnect,
        [OP_GRANT] = sisci_serve_grant,
        [OP_REVOKE] = sisci_serve_revoke,
        [OP_TAKEN_BACK] = sisci_serve_taken_back,
        [OP_DEVICE_AT] = sisci_serve_device_at,
        [OP_BORROW] = sisci_serve_borrow,
        [OP_SHARE] = sisci_serve_share,
        [OP_RETURN] = sisci_serve_return,
        [OP_RESET] = sisci_serve_reset,
        [OP_IS_RESETTING] = sisci_serve_is_resetting,
        [OP_WINDOW_OPEN] = sisci_serve_window_open,
        [OP_WINDOW_MAP] = sisci_serve_window_map,
        [OP_WINDOW_HERE] = sisci_serve_window_here,
        [OP_WINDOW_GROUP] = sisci_serve_window_group,
        [OP_WINDOW_CLOSE] = sisci_serve_window_close,
        [OP_ALLOCATE] = sisci_serve_allocate,
        [OP_PUBLISH] = sisci_serve_publish,
        [OP_WITHDRAW] = sisci_serve_withdraw,
        [OP_LOOK_UP] = sisci_serve_look_up,
        [OP_GROUP_JOIN] = sisci_serve_group_join,
        [OP_GROUP_LEAVE] = sisci_serve_group_leave,
        [OP_GROUP_SIZE] = sisci_serve_group_size,
    };
    uint32_t op;
    memcpy(&op, body, sizeof op);
    if (op >= sizeof serves / sizeof serves[0] || serves[op] == NULL)
        return lend_fail(error, -EPROTO, "operation %u of SISCI is not known", op);
    return serves[op](context, connection, body, reply, bytes, error);
}

int sisci_ask(struct sisci *sisci, struct lend_connection *connection, const void *request,
              size_t request_bytes, void *reply, size_t reply_bytes, struct lend_error *error)
{
    uint8_t body[LEND_SERVICE_BYTES] = { 0 }, answer[LEND_SERVICE_BYTES];
    size_t bytes = 0;
    if (connection != NULL)
        return lend_service_call(connection, request, request_bytes, reply, reply_bytes, error);
    memcpy(body, request, request_bytes);
    lend_service_lock(sisci->host);
    const int status = serve(sisci, NULL, body, answer, &bytes, error);
    lend_service_unlock(sisci->host);
    if (status == 0 && reply_bytes != 0)
        memcpy(reply, answer, reply_bytes);
    return status;
}

/* ---- Connections ----------------------------------------------------------------------------- */

int sisci_adapter_check(const struct sisci *sisci, unsigned adapter, struct lend_error *error)
{
    if (lend_adapter_at(sisci->host, adapter) != NULL)
        return 0;
    return lend_fail(error, -ENODEV, "%s: no adapter %u", lend_options_of(sisci->host)->name,
                     adapter);
}

static bool link_down(const struct sisci *sisci, unsigned adapter)
{
    for (unsigned i = 0; lend_adapter_at(sisci->host, i) != NULL; i++)
        if ((adapter == SISCI_ANY || adapter == i) &&
            lend_adapter_link_up(lend_adapter_at(sisci->host, i)))
            return false;
    return true;
}

int sisci_reach(struct sisci *sisci, uint32_t host, unsigned adapter,
                struct lend_connection **connection, struct lend_error *error)
{
    *connection = NULL;
    if (adapter != SISCI_ANY && sisci_adapter_check(sisci, adapter, error) != 0)
        return -ENODEV;
    if (host == sisci->id)
        return 0;
    if (adapter == SISCI_ANY && (*connection = lend_service_find(sisci->host, host, 0)) != NULL) {
        lend_service_get(*connection);
        return 0;
    }
    int status = lend_service_connect(sisci->host, host, adapter, LEND_ANY, connection, error);
    for (unsigned i = 1; status == -ETIMEDOUT && i < REACH_TRIES; i++) {
        k_sleep(sisci->kernel, i * (sisci->id % REACH_TURNS) * REACH_PAUSE_PS);
        status = lend_service_connect(sisci->host, host, adapter, LEND_ANY, connection, error);
    }
    if (status != 0)
        *connection = NULL;
    if (status != -EHOSTUNREACH || !link_down(sisci, adapter))
        return status;
    if (error != NULL)
        error->code = -ENETDOWN;
    return -ENETDOWN;
}

void sisci_put(struct lend_connection **connection)
{
    struct lend_connection *c = *connection;
    *connection = NULL;
    if (c != NULL)
        lend_service_put(c);
}

/* ---- Losses ---------------------------------------------------------------------------------- */

static void cut(void *context, struct lend_connection *connection)
{
    struct sisci *sisci = context;
    for (struct sisci_process *p = sisci->processes; p != NULL; p = p->next) {
        for (struct sisci_device *d = p->devices; d != NULL; d = d->next)
            sisci_windows_mark(d, connection);
        for (struct sisci_remote *r = p->remotes; r != NULL; r = r->next)
            if (r->connection == connection)
                sisci_remote_mark(r, SISCI_CB_LOST);
    }
    sisci_notify_all(sisci);
    sisci_owner_cut(sisci, connection);
}

static void lost(void *context, struct lend_connection *connection)
{
    struct sisci *sisci = context;
    lend_service_lock(sisci->host);
    sisci_lender_lost(sisci, connection);
    sisci_owner_lost(sisci, connection);
    sisci_groups_lost(sisci, connection);
    lend_service_unlock(sisci->host);
}

/* Lending ends a connection whose link is down, unless it holds links (lend_options.hold_links):
 * then all maps and windows stay valid, and it says so when the link is back in time. */
static void link_changed(void *context, unsigned adapter, bool up)
{
    struct sisci *sisci = context;
    const enum sisci_event event = up ? SISCI_CB_OPERATIONAL : SISCI_CB_NOT_OPERATIONAL;
    for (struct sisci_process *p = sisci->processes; p != NULL; p = p->next) {
        for (struct sisci_remote *r = p->remotes; r != NULL; r = r->next)
            if (r->connection != NULL && lend_service_adapter(r->connection)->index == adapter)
                sisci_remote_mark(r, event);
        for (struct sisci_device *d = p->devices; d != NULL; d = d->next)
            d->pending = d->pending || d->connection != NULL; /* it may have a better one */
    }
    sisci_notify_all(sisci);
}

static void take_back(void *context, struct lend_lease *lease)
{
    struct sisci *sisci = context;
    lend_service_lock(sisci->host);
    sisci_lender_stop(sisci, lease);
    lend_service_unlock(sisci->host);
}

static void stop(void *context)
{
    take_back(context, NULL);
}

static void release(void *context)
{
    struct sisci *sisci = context;
    sisci_processes_free(sisci);
    sisci_lender_free(sisci);
    sisci_groups_free(sisci);
    while (sisci->links != NULL) {
        struct sisci_link *link = sisci->links;
        sisci->links = link->next;
        k_free(link);
    }
    while (sisci->grants != NULL) {
        struct sisci_grant *grant = sisci->grants;
        sisci->grants = grant->next;
        k_free(grant);
    }
    while (sisci->segments != NULL) {
        struct sisci_segment *segment = sisci->segments;
        sisci->segments = segment->next;
        k_free(segment);
    }
    k_free(sisci);
}

struct sisci *sisci_new(struct lend_host *host)
{
    static const struct lend_service_ops ops = { .serve = serve,
                                                 .cut = cut,
                                                 .lost = lost,
                                                 .link = link_changed,
                                                 .take_back = take_back,
                                                 .stop = stop,
                                                 .release = release };
    struct sisci *sisci = k_zalloc(sizeof *sisci);
    sisci->host = host;
    sisci->kernel = lend_kernel(host);
    sisci->id = lend_options_of(host)->id;
    lend_service_register(host, &ops, sisci);
    return sisci;
}

/* ---- Inspection ------------------------------------------------------------------------------ */

static void usage_of_process(const struct sisci_process *p, struct sisci_usage *u)
{
    u->processes++;
    for (const struct sisci_remote *r = p->remotes; r != NULL; r = r->next) {
        u->remotes++;
        for (const struct sisci_map *m = r->maps; m != NULL; m = m->next)
            u->maps++;
    }
    for (const struct sisci_device *d = p->devices; d != NULL; d = d->next)
        u->borrows++;
}

struct sisci_usage sisci_usage(const struct sisci *sisci)
{
    struct sisci_usage u = { 0 };
    for (const struct sisci_process *p = sisci->processes; p != NULL; p = p->next)
        usage_of_process(p, &u);
    for (const struct sisci_segment *s = sisci->segments; s != NULL; s = s->next) {
        u.segments += s->process != NULL;
        for (unsigned a = 0; a < LEND_ADAPTERS_MAX; a++)
            u.exported_bytes += s->at[a].users != 0 ? s->bytes : 0;
        u.lent_bytes += s->process == NULL && s->owned ? s->bytes : 0;
    }
    for (const struct sisci_grant *g = sisci->grants; g != NULL; g = g->next)
        u.grants++;
    for (const struct sisci_lent *l = sisci->lents; l != NULL; l = l->next)
        for (const struct sisci_borrower *b = l->borrowers; b != NULL; b = b->next) {
            u.borrowers++;
            for (const struct sisci_mapping *m = b->mappings; m != NULL; m = m->next)
                u.device_windows++;
        }
    return u;
}
