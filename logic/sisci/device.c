/*
 * What it does: devices that a process has borrowed: exclusively or with others, their registers as
 *   segments, and segments that are allocated where hints say that they are best.
 * Follows: SmartIO, 6.1, 7.4.1; SISCI API, SCIBorrowDevice(), SCIReleaseExclusiveBorrow(),
 *   SCIReturnDevice(), SCIConnectDeviceSegment(), SCICreateDeviceSegment().
 * Costs: a system call and one request each; a reset, 100 ms.
 */
#include "logic/sisci/sisci_internal.h"

#define RESET_LOOK_PS K_MS

static const char *name_of(const struct sisci_process *process)
{
    return lend_options_of(process->sisci->host)->name;
}

/* ---- Borrowing ------------------------------------------------------------------------------- */

enum sisci_error sisci_device_at(struct sisci_process *process, uint32_t host, unsigned i,
                                 struct sisci_device_info *info, struct lend_error *error)
{
    const struct wire_number request = { .op = OP_DEVICE_AT, .number = i };
    struct lend_connection *c;
    k_syscall(process->sisci->kernel);
    int status = sisci_reach(process->sisci, host, SISCI_ANY, &c, error);
    if (status == 0)
        status = sisci_ask(process->sisci, c, &request, sizeof request, info, sizeof *info, error);
    sisci_put(&c);
    return status == -ENOENT ? SISCI_ERR_ILLEGAL_PARAMETER : sisci_error_of(status);
}

static int lost(const struct sisci_device *d, struct lend_error *error)
{
    return lend_fail(error, -ECONNRESET, "%s: host %u was lost", name_of(d->process),
                     d->info.name.host);
}

/* The connection has ended since the device has got it. */
static bool was_cut(const struct sisci_device *d)
{
    return d->connection != NULL && !lend_service_up(d->connection);
}

/* Asks the lender; as long as the connection ends meanwhile, once more by another. The lender does
 * a request once. Under the process's lock. */
static int ask(struct sisci_device *d, const void *request, size_t request_bytes, void *reply,
               size_t reply_bytes, struct lend_error *error)
{
    int status;
    do {
        sisci_device_recover(d);
        if (d->lost)
            return lost(d, error);
        status = sisci_ask(d->process->sisci, d->connection, request, request_bytes, reply,
                           reply_bytes, error);
    } while (was_cut(d) && (status == 0 || status == -ECONNRESET));
    return status;
}

static int borrow(struct sisci_device *d, enum sisci_borrow how, struct lend_error *error)
{
    struct sisci *sisci = d->process->sisci;
    struct wire_borrowed borrowed;
    struct wire_borrow request = {
        .op = OP_BORROW, .id = d->info.name.id, .how = (uint16_t)how, .key = ++sisci->last_number
    };
    int status = sisci_reach(sisci, d->info.name.host, SISCI_ANY, &d->connection, error);
    if (status != 0)
        return status;
    if (d->connection != NULL) {
        d->incarnation = lend_service_incarnation(d->connection);
        request.payload_bytes = lend_adapter_payload(lend_service_adapter(d->connection));
    }
    status = ask(d, &request, sizeof request, &borrowed, sizeof borrowed, error);
    if (status != 0) {
        sisci_put(&d->connection);
        return status;
    }
    d->borrower = borrowed.borrower;
    d->info = borrowed.info;
    d->exclusive = how == SISCI_EXCLUSIVE;
    return 0;
}

enum sisci_error sisci_device_borrow(struct sisci_process *process, struct sisci_device_name name,
                                     enum sisci_borrow how, sisci_device_fn *changed, void *context,
                                     struct sisci_device **device, struct lend_error *error)
{
    struct sisci_device *d = k_zalloc(sizeof *d);
    *d = (struct sisci_device){
        .process = process, .info = { .name = name }, .changed = changed, .context = context
    };
    k_syscall(process->sisci->kernel);
    sisci_lock(process);
    const int status = borrow(d, how, error);
    if (status == 0) {
        d->next = process->devices;
        process->devices = d;
        *device = d;
    } else {
        k_free(d);
    }
    sisci_unlock(process);
    return status == -ENOENT ? SISCI_ERR_ILLEGAL_PARAMETER : sisci_error_of(status);
}

/* A request that concerns the borrow. */
static int ask_of(struct sisci_device *d, enum sisci_operation op, void *reply, size_t bytes,
                  struct lend_error *error)
{
    const struct wire_number request = { .op = op, .number = d->borrower };
    return ask(d, &request, sizeof request, reply, bytes, error);
}

static int need_exclusive(const struct sisci_device *d, struct lend_error *error)
{
    return d->exclusive ? 0
                        : lend_fail(error, -EPERM, "%s: %s is not borrowed exclusively",
                                    name_of(d->process), d->info.text);
}

enum sisci_error sisci_device_share(struct sisci_device *d, struct lend_error *error)
{
    k_syscall(d->process->sisci->kernel);
    sisci_lock(d->process);
    int status = need_exclusive(d, error);
    if (status == 0 && (status = ask_of(d, OP_SHARE, NULL, 0, error)) == 0)
        d->exclusive = false;
    sisci_unlock(d->process);
    return sisci_error_of(status);
}

enum sisci_error sisci_device_reset(struct sisci_device *d, struct lend_error *error)
{
    uint64_t resetting = 1;
    k_syscall(d->process->sisci->kernel);
    sisci_lock(d->process);
    int status = need_exclusive(d, error);
    if (status == 0)
        status = ask_of(d, OP_RESET, NULL, 0, error);
    while (status == 0 && resetting != 0) {
        k_sleep(d->process->sisci->kernel, RESET_LOOK_PS);
        status = ask_of(d, OP_IS_RESETTING, &resetting, sizeof resetting, error);
    }
    sisci_unlock(d->process);
    return sisci_error_of(status);
}

/* Segments that were allocated here; those at the lender go with the borrow. */
static void end_segments(struct sisci_device *d)
{
    while (d->segments != NULL) {
        struct sisci_own_segment *own = d->segments;
        d->segments = own->next;
        sisci_segment_end(own->segment, d->process);
        k_free(own);
    }
}

void sisci_device_close(struct sisci_device *d)
{
    d->changed = NULL; /* no callback any more, though the lock is left below */
    while (d->windows != NULL)
        sisci_window_close(d->windows);
    d->lost = false;                     /* it may have been reached again since */
    ask_of(d, OP_RETURN, NULL, 0, NULL); /* fails if the lender is lost, which ends it as well */
    end_segments(d);
    sisci_put(&d->connection);
    K_LIST_REMOVE(d->process->devices, d);
    k_free(d);
}

enum sisci_error sisci_device_return(struct sisci_device *d, struct lend_error *error)
{
    struct sisci_process *process = d->process;
    k_syscall(process->sisci->kernel);
    sisci_lock_idle(process, d);
    if (d->n_remotes != 0) {
        lend_fail(error, -EBUSY, "%s: %u segments of %s are connected", name_of(process),
                  d->n_remotes, d->info.text);
        sisci_unlock(process);
        return SISCI_ERR_BUSY;
    }
    sisci_device_close(d);
    sisci_unlock(process);
    return SISCI_OK;
}

struct sisci_device_name sisci_device_name(const struct sisci_device *d)
{
    return d->info.name;
}

const struct sisci_device_info *sisci_device_info(const struct sisci_device *d)
{
    return &d->info;
}

bool sisci_device_lost(const struct sisci_device *d)
{
    return d->lost;
}

void sisci_device_recover(struct sisci_device *d)
{
    struct sisci *sisci = d->process->sisci;
    if (d->lost || d->info.name.host == sisci->id ||
        (d->connection != NULL && lend_service_up(d->connection) &&
         !lend_service_adapter(d->connection)->down))
        return;
    struct lend_connection *better = lend_service_find(sisci->host, d->info.name.host,
                                                       d->incarnation);
    if (better != NULL)
        lend_service_get(better);
    struct lend_connection *former = d->connection;
    d->connection = better;
    d->lost = better == NULL;
    sisci_put(&former);
}

/* ---- Registers ------------------------------------------------------------------------------- */

/* Connects to a segment at a host on behalf of a device. Under the process's lock. */
static int connect(struct sisci_device *d, uint32_t host, const struct wire_segment *name,
                   unsigned adapter, sisci_remote_fn *changed, void *context,
                   struct sisci_remote **remote, struct lend_error *error)
{
    struct lend_connection *c;
    int status = sisci_reach(d->process->sisci, host, adapter, &c, error);
    if (status != 0)
        return status;
    status = sisci_remote_open(d->process, host, c, name, remote, error);
    if (status != 0) {
        sisci_put(&c);
        return status;
    }
    (*remote)->device = d;
    (*remote)->changed = changed;
    (*remote)->context = context;
    d->n_remotes++;
    return 0;
}

enum sisci_error sisci_device_bar_connect(struct sisci_device *d, unsigned bar, unsigned adapter,
                                          sisci_remote_fn *changed, void *context,
                                          struct sisci_remote **remote, struct lend_error *error)
{
    const struct wire_segment name = { .kind = WIRE_BAR, .number = bar, .id = d->info.name.id };
    k_syscall(d->process->sisci->kernel);
    sisci_lock(d->process);
    const int status = connect(d, d->info.name.host, &name, adapter, changed, context, remote,
                               error);
    sisci_unlock(d->process);
    return sisci_error_of(status);
}

/* ---- Segments by hints ----------------------------------------------------------------------- */

/* A process waits for what it loads, a device for what it reads; stores and writes are posted. */
static bool better_at_lender(unsigned hints)
{
    const unsigned cpu = SISCI_CPU_READ | SISCI_CPU_WRITE;
    return (hints & cpu) == 0 ||
           ((hints & SISCI_DEVICE_READ) != 0 && (hints & SISCI_CPU_READ) == 0);
}

static int ask_entry(struct sisci_device *d, const struct wire_entry *request,
                     struct wire_entry *reply, struct lend_error *error)
{
    return ask(d, request, sizeof *request, reply, reply != NULL ? sizeof *reply : 0, error);
}

/* Allocates the segment here, exports it by every adapter and tells the lender where it is. */
static int allocate_here(struct sisci_device *d, struct wire_entry *entry, struct lend_error *error)
{
    struct sisci *sisci = d->process->sisci;
    struct sisci_segment *s;
    lend_service_lock(sisci->host);
    int status = sisci_segment_new_exported(sisci, entry->bytes, K_NODE_LOCAL, &s, error);
    if (status == 0) {
        s->process = d->process;
        entry->host = sisci->id;
        entry->segment = s->number;
    }
    lend_service_unlock(sisci->host);
    if (status != 0)
        return status;
    entry->op = OP_PUBLISH;
    status = ask_entry(d, entry, NULL, error);
    if (status != 0) {
        sisci_segment_end(s, NULL);
        return status;
    }
    struct sisci_own_segment *own = k_zalloc(sizeof *own);
    *own = (struct sisci_own_segment){ .next = d->segments, .segment = s, .number = entry->number };
    d->segments = own;
    return 0;
}

/* Takes back what was allocated but cannot be connected to. */
static void forget(struct sisci_device *d, const struct wire_entry *entry)
{
    struct wire_entry request = *entry;
    struct sisci_own_segment *own = d->segments;
    request.op = OP_WITHDRAW;
    ask_entry(d, &request, NULL, NULL);
    if (own == NULL || own->segment->number != entry->segment || entry->host != own->segment->host)
        return;
    d->segments = own->next;
    sisci_segment_end(own->segment, d->process);
    k_free(own);
}

enum sisci_error sisci_device_segment_create(struct sisci_device *d, uint32_t number,
                                             uint64_t bytes, unsigned hints, bool shared,
                                             unsigned adapter, sisci_remote_fn *changed,
                                             void *context, struct sisci_remote **remote,
                                             struct lend_error *error)
{
    const struct wire_entry request = { .op = OP_ALLOCATE,
                                        .borrower = d->borrower,
                                        .number = number,
                                        .shared = shared,
                                        .bytes = bytes,
                                        .segment = ++d->process->sisci->last_number };
    struct wire_entry entry = request;
    if (hints == 0 || bytes == 0) {
        lend_fail(error, -EINVAL, "%s: a segment of %s without %s", name_of(d->process),
                  d->info.text, bytes == 0 ? "bytes" : "hints");
        return SISCI_ERR_ILLEGAL_PARAMETER;
    }
    k_syscall(d->process->sisci->kernel);
    sisci_lock(d->process);
    int status = better_at_lender(hints) ? ask_entry(d, &request, &entry, error)
                                         : allocate_here(d, &entry, error);
    if (status == 0) {
        const struct wire_segment name = { .kind = WIRE_NUMBER, .number = entry.segment };
        status = connect(d, entry.host, &name, adapter, changed, context, remote, error);
        if (status != 0)
            forget(d, &entry);
    }
    sisci_unlock(d->process);
    return sisci_error_of(status);
}

enum sisci_error sisci_device_segment_connect(struct sisci_device *d, uint32_t number,
                                              unsigned adapter, sisci_remote_fn *changed,
                                              void *context, struct sisci_remote **remote,
                                              struct lend_error *error)
{
    const struct wire_entry request = { .op = OP_LOOK_UP,
                                        .borrower = d->borrower,
                                        .number = number };
    struct wire_entry entry;
    k_syscall(d->process->sisci->kernel);
    sisci_lock(d->process);
    int status = ask_entry(d, &request, &entry, error);
    if (status == 0) {
        const struct wire_segment name = { .kind = WIRE_NUMBER, .number = entry.segment };
        status = connect(d, entry.host, &name, adapter, changed, context, remote, error);
    }
    sisci_unlock(d->process);
    return sisci_error_of(status);
}
