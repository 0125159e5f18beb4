/*
 * What it does: The calls of Myrinet Express: opens and closes endpoints, ends requests, waits.
 * Follows: Open-MX 0.9.2 libopen-mx/omx_endpoint.c, omx_test.c; the MX API.
 * Costs: mx_test() and mx_wait() make progress (mx_progress.c).
 */
#include "logic/mx/mx_internal.h"

const struct mx_options mx_options_default = { .resend_ps = K_S / 2,
                                               .resends_max = 1000,
                                               .ack_delay_ps = K_S / 64,
                                               .acks_max = 4,
                                               .cached_regions = 0,
                                               .linger_ps = 2 * K_S,
                                               .poll_ps = 50 * K_NS };

/* ---- Calls that begin something: the program is in the library meanwhile --------------------- */

static int isend(struct mx_endpoint *ep, const struct mx_segment *segment, unsigned n,
                 const struct mx_peer *to, uint64_t match, void *context,
                 struct mx_request **request)
{
    const unsigned before = k_account(ep->kernel, MX_ACCOUNT_LIBRARY);
    const int result = mx_send_post(ep, segment, n, to, match, context, request);
    k_account(ep->kernel, before);
    return result;
}

static int irecv(struct mx_endpoint *ep, const struct mx_segment *segment, unsigned n,
                 uint64_t match, uint64_t mask, void *context, struct mx_request **request)
{
    const unsigned before = k_account(ep->kernel, MX_ACCOUNT_LIBRARY);
    const int result = mx_receive_post(ep, segment, n, match, mask, context, request);
    k_account(ep->kernel, before);
    return result;
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* The caller has the result. */
static void collect(struct mx_lib *lib, struct mx_request *r, struct mx_status *status)
{
    *status = r->status;
    mx_list_remove(&r->queue);
    r->user = false;
    if (!r->need_ack && r->n_sending == 0)
        mx_request_put(lib, r);
}

static bool test(struct mx_endpoint *ep, struct mx_request **request, struct mx_status *status)
{
    struct mx_lib *lib = mx_lib_of(ep);
    mx_progress(lib);
    if (!(*request)->done)
        return false;
    collect(lib, *request, status);
    *request = NULL;
    return true;
}

static bool wait(struct mx_endpoint *ep, struct mx_request **request, uint64_t until_ps,
                 struct mx_status *status)
{
    struct mx_lib *lib = mx_lib_of(ep);
    while (!test(ep, request, status)) {
        if (k_now_ps(lib->kernel) >= until_ps)
            return false;
        mx_idle(lib, until_ps);
    }
    return true;
}

static bool test_any(struct mx_endpoint *ep, uint64_t match, uint64_t mask,
                     struct mx_status *status)
{
    struct mx_lib *lib = mx_lib_of(ep);
    mx_progress(lib);
    for (struct mx_link *l = lib->done.next; l != &lib->done; l = l->next) {
        struct mx_request *r = MX_ITEM(l, queue);
        if ((r->status.match & mask) != (match & mask))
            continue;
        collect(lib, r, status);
        return true;
    }
    return false;
}

static bool iprobe(struct mx_endpoint *ep, uint64_t match, uint64_t mask, struct mx_status *status)
{
    struct mx_lib *lib = mx_lib_of(ep);
    mx_progress(lib);
    return mx_receive_probe(lib, match, mask, status);
}

static bool cancel(struct mx_endpoint *ep, struct mx_request **request)
{
    struct mx_lib *lib = mx_lib_of(ep);
    struct mx_request *r = *request;
    if (r->kind != MX_KIND_RECEIVE || r->done || r->partner != NULL)
        return false;
    mx_list_remove(&r->queue);
    mx_request_put(lib, r);
    *request = NULL;
    return true;
}

void mx_stats_get(struct mx_endpoint *ep, struct mx_stats *stats)
{
    *stats = mx_lib_of(ep)->stats;
}

/* ---- The endpoint ---------------------------------------------------------------------------- */

static bool all_acked(const struct mx_lib *lib)
{
    return mx_list_empty(&lib->unacked) && lib->n_waiting == 0 && lib->n_expected == 0;
}

/* The pool gets what is in the list. */
static void drain(struct mx_lib *lib, struct mx_link *list)
{
    while (!mx_list_empty(list)) {
        struct mx_request *r = MX_ITEM(list->next, queue);
        mx_list_remove(&r->queue);
        r->user = false;
        if (!r->need_ack && r->n_sending == 0)
            mx_request_put(lib, r);
    }
}

/* Nothing is sent any more: requests that the lists of the endpoint do not have are those of
 * partners, and pulls. */
static void drop_all(struct mx_lib *lib)
{
    for (struct mx_partner *p = lib->all_partners; p != NULL; p = p->all)
        mx_partner_ends(p, MX_CANCELLED);
    drain(lib, &lib->posted);
    drain(lib, &lib->unexpected);
    drain(lib, &lib->pullable);
    for (unsigned i = 0; i < lib->n_handles; i++)
        if (lib->handle[i] != NULL)
            mx_request_put(lib, lib->handle[i]);
    drain(lib, &lib->done);
    for (unsigned i = 0; i < MX_RING_SLOTS; i++) {
        struct mx_request *r = lib->slot_user[i];
        if (r == NULL)
            continue;
        for (unsigned j = 0; j < r->n_slots; j++)
            lib->slot_user[r->slot[j]] = NULL;
        mx_request_put(lib, r);
    }
}

static void close_endpoint(struct mx_endpoint *ep)
{
    struct mx_lib *lib = mx_lib_of(ep);
    const uint64_t until_ps = k_now_ps(lib->kernel) + lib->options.linger_ps;
    mx_progress(lib);
    while (!all_acked(lib) && k_now_ps(lib->kernel) < until_ps) {
        mx_idle(lib, until_ps);
        mx_progress(lib);
    }
    mx_acks_send(lib, k_now_ps(lib->kernel), true);
    lib->board->ops->close(lib->port);
    lib->closed = true;
    drop_all(lib);
    mx_regions_free(lib);
    mx_partner_free_all(lib);
    mx_memory_release(lib);
    k_free(lib->handle);
    k_free(lib);
}

static const struct mx_ops ops = { .connect = mx_partner_connect,
                                   .isend = isend,
                                   .irecv = irecv,
                                   .test = test,
                                   .test_any = test_any,
                                   .wait = wait,
                                   .iprobe = iprobe,
                                   .cancel = cancel,
                                   .close = close_endpoint };

static void init_lists(struct mx_lib *lib)
{
    struct mx_link *list[] = { &lib->posted,  &lib->unexpected, &lib->done,    &lib->pullable,
                               &lib->unacked, &lib->acks_later, &lib->acks_now };
    for (unsigned i = 0; i < sizeof list / sizeof list[0]; i++)
        mx_list_init(list[i]);
    for (unsigned i = 0; i < MX_RING_SLOTS; i++)
        lib->free_slot[i] = (uint16_t)(MX_RING_SLOTS - 1 - i);
    lib->n_free_slots = MX_RING_SLOTS;
}

int mx_open(struct mx_board *board, uint8_t id, uint32_t key, const struct mx_options *options,
            struct mx_endpoint **ep)
{
    struct mx_port *port;
    const int result = board->ops->open(board, id, &port);
    if (result != 0)
        return result;
    struct mx_lib *lib = k_zalloc(sizeof *lib);
    lib->ep = (struct mx_endpoint){
        .ops = &ops, .kernel = board->kernel, .nic_id = board->nic_id, .id = id, .key = key
    };
    lib->kernel = board->kernel;
    lib->costs = k_costs(board->kernel);
    lib->board = board;
    lib->port = port;
    lib->n_queues = port->queue[MX_QUEUE_LOCAL].v != 0 ? MX_QUEUES : MX_QUEUE_LOCAL;
    lib->options = *options;
    lib->events_max = MX_EVENTS - port->untold;
    lib->ping_ps = UINT64_MAX;
    init_lists(lib);
    if (options->bind && port->cpu >= 0)
        k_thread_set_cpu(k_thread_self(board->kernel), (unsigned)port->cpu);
    lib->lines = mx_lines_get(lib, MX_LIB_BYTES);
    if (lib->lines.v == 0) {
        board->ops->close(port);
        k_free(lib);
        return -ENOMEM;
    }
    *ep = &lib->ep;
    return 0;
}
