/*
 * What it does: Large messages: the regions that are registered for them, and kept for the next use
 *   of the same buffer; the receiver's pull and its notification of the sender.
 *   A pull that a board gives up ends its partner.
 * Leaves out: a region that is kept is not given up when its memory is unmapped, as nothing here
 *   unmaps.
 * Follows: Open-MX 0.9.2 libopen-mx/omx_large.c (region cache, pull, notify).
 * Costs: pin_lookup_cycles where a kept region is found; else what the board takes.
 */
#include "logic/mx/mx_internal.h"

/* ---- Regions --------------------------------------------------------------------------------- */

static void region_free(struct mx_lib *lib, struct mx_region *region)
{
    lib->region[region->number] = NULL;
    lib->n_regions_kept -= region->kept;
    lib->room = true;
    if (!lib->closed) /* else the board has done so */
        lib->board->ops->region_free(lib->port, region->number);
    k_free(region);
}

static bool free_oldest(struct mx_lib *lib)
{
    struct mx_region *oldest = NULL;
    for (unsigned i = 0; i < MX_REGIONS; i++) {
        struct mx_region *region = lib->region[i];
        if (region != NULL && region->kept && region->users == 0 &&
            (oldest == NULL || region->used < oldest->used))
            oldest = region;
    }
    if (oldest != NULL)
        region_free(lib, oldest);
    return oldest != NULL;
}

static struct mx_region *find_kept(struct mx_lib *lib, const struct mx_segment *segment)
{
    for (unsigned i = 0; i < MX_REGIONS && lib->n_regions_kept > 0; i++) {
        struct mx_region *region = lib->region[i];
        if (region != NULL && region->kept && region->segment.at.v == segment->at.v &&
            region->segment.bytes == segment->bytes)
            return region;
    }
    return NULL;
}

/* The request's segments up to `bytes`. */
static unsigned cut(const struct mx_request *r, uint64_t bytes, struct mx_segment *to)
{
    unsigned n = 0;
    for (unsigned i = 0; i < r->n_segments && bytes > 0; i++) {
        if (r->segment[i].bytes == 0)
            continue;
        to[n] = r->segment[i];
        if (to[n].bytes > bytes)
            to[n].bytes = bytes;
        bytes -= to[n++].bytes;
    }
    return n;
}

int mx_region_get(struct mx_lib *lib, struct mx_request *r, uint64_t bytes)
{
    struct mx_segment segment[MX_SEGMENTS_MAX];
    const unsigned n = cut(r, bytes, segment);
    const bool keeps = n == 1 && lib->options.cached_regions > 0;
    struct mx_region *region = NULL;
    if (keeps) {
        k_compute(lib->kernel, lib->costs->pin_lookup_cycles);
        region = find_kept(lib, segment);
    }
    if (region != NULL)
        lib->stats.region_hits++;
    else {
        uint8_t number, sequence;
        if (keeps && lib->n_regions_kept >= lib->options.cached_regions)
            free_oldest(lib);
        int result = lib->board->ops->region_new(lib->port, segment, n, &number, &sequence);
        if (result == -ENOSPC && free_oldest(lib))
            result = lib->board->ops->region_new(lib->port, segment, n, &number, &sequence);
        if (result != 0)
            return result;
        region = k_zalloc(sizeof *region);
        *region = (struct mx_region){
            .number = number, .sequence = sequence, .segment = segment[0], .kept = keeps
        };
        lib->region[number] = region;
        lib->n_regions_kept += keeps;
        lib->stats.regions++;
    }
    region->users++;
    region->used = ++lib->region_uses;
    r->region = region;
    return 0;
}

void mx_region_put(struct mx_lib *lib, struct mx_request *r)
{
    struct mx_region *region = r->region;
    r->region = NULL;
    if (region == NULL)
        return;
    if (r->kind == MX_KIND_LARGE) {
        lib->n_large_sends--;
        lib->room = true;
    }
    if (--region->users > 0)
        return;
    if (!region->kept || lib->n_regions_kept > lib->options.cached_regions)
        region_free(lib, region);
    else
        lib->room = true;
}

void mx_regions_free(struct mx_lib *lib)
{
    for (unsigned i = 0; i < MX_REGIONS; i++)
        if (lib->region[i] != NULL)
            region_free(lib, lib->region[i]);
}

/* ---- The receiver ---------------------------------------------------------------------------- */

static uint64_t pull_bytes(const struct mx_request *r)
{
    return r->arrival.bytes < r->bytes ? r->arrival.bytes : r->bytes;
}

static void tell_sender(struct mx_request *r, uint64_t bytes)
{
    struct mx_partner *partner = r->partner;
    if (partner->connection == r->arrival.connection)
        mx_send_notify(partner->lib, partner, r->arrival.region, r->arrival.region_sequence,
                       (uint32_t)bytes);
}

static uint32_t handle_get(struct mx_lib *lib, struct mx_request *r)
{
    unsigned i = 0;
    while (i < lib->n_handles && lib->handle[i] != NULL)
        i++;
    if (i == lib->n_handles) {
        const unsigned n = lib->n_handles * 2 + 16;
        struct mx_request **handle = k_zalloc(n * sizeof *handle);
        if (lib->n_handles > 0)
            memcpy(handle, lib->handle, lib->n_handles * sizeof *handle);
        k_free(lib->handle);
        lib->handle = handle;
        lib->n_handles = n;
    }
    lib->handle[i] = r;
    return i;
}

/* False: it has to wait for a region, or for room for its event. */
static bool pull(struct mx_lib *lib, struct mx_request *r)
{
    const uint64_t bytes = pull_bytes(r);
    if (r->partner->connection != r->arrival.connection) {
        mx_receive_ends(r, MX_PEER_DEAD, 0);
        return true;
    }
    if (bytes == 0) {
        tell_sender(r, 0);
        mx_receive_ends(r, MX_SUCCESS, 0);
        return true;
    }
    if (lib->n_expected >= lib->events_max || mx_region_get(lib, r, bytes) != 0)
        return false;
    r->handle = handle_get(lib, r);
    const struct mx_pull_command c = { .from = r->partner->address,
                                       .region = r->arrival.region,
                                       .region_sequence = r->arrival.region_sequence,
                                       .local_region = r->region->number,
                                       .bytes = (uint32_t)bytes,
                                       .handle = r->handle };
    lib->n_pulls++;
    lib->n_expected++;
    const int result = lib->board->ops->pull(lib->port, &c);
    if (result > 0) {
        const union mx_event event = {
            .pulled = { .handle = c.handle, .bytes = c.bytes, .status = (uint8_t)(result - 1) }
        };
        mx_large_pulled_event(lib, &event);
    }
    if (result >= 0)
        return true;
    lib->n_pulls--;
    lib->n_expected--;
    lib->handle[r->handle] = NULL;
    mx_region_put(lib, r);
    return false;
}

void mx_large_pull(struct mx_request *r)
{
    struct mx_lib *lib = r->partner->lib;
    if (!mx_list_empty(&lib->pullable) || !pull(lib, r))
        mx_list_append(&lib->pullable, &r->queue);
}

void mx_large_pullable(struct mx_lib *lib)
{
    while (!mx_list_empty(&lib->pullable)) {
        struct mx_request *r = MX_ITEM(lib->pullable.next, queue);
        mx_list_remove(&r->queue);
        if (pull(lib, r))
            continue;
        r->queue.next = lib->pullable.next; /* first again */
        r->queue.before = &lib->pullable;
        lib->pullable.next->before = &r->queue;
        lib->pullable.next = &r->queue;
        return;
    }
}

void mx_large_pulled_event(struct mx_lib *lib, const union mx_event *event)
{
    struct mx_request *r = lib->handle[event->pulled.handle];
    lib->handle[event->pulled.handle] = NULL;
    lib->n_pulls--;
    lib->n_expected--;
    lib->room = true;
    mx_region_put(lib, r);
    if (event->pulled.status == MX_PULL_DONE) {
        tell_sender(r, event->pulled.bytes);
        mx_receive_ends(r, MX_SUCCESS, event->pulled.bytes);
        return;
    }
    /* The sender, who has been told nothing, learns it when it asks. */
    if (r->partner->connection == r->arrival.connection)
        mx_partner_ends(r->partner, MX_PEER_DEAD);
    mx_receive_ends(r, MX_PEER_DEAD, 0);
}

/* ---- The sender ------------------------------------------------------------------------------ */

static struct mx_request *find_large(struct mx_link *list, const union mx_event *event)
{
    for (struct mx_link *l = list->next; l != list; l = l->next) {
        struct mx_request *r = MX_ITEM(l, of_partner);
        if (r->kind == MX_KIND_LARGE && r->region->number == event->notify.region &&
            r->region->sequence == event->notify.region_sequence)
            return r;
    }
    return NULL;
}

void mx_large_notified(struct mx_partner *partner, const union mx_event *event)
{
    struct mx_lib *lib = partner->lib;
    struct mx_request *r = find_large(&partner->unnotified, event);
    if (r == NULL) { /* a message before it is not whole there: pulled before it is acknowledged */
        r = find_large(&partner->unacked, event);
        if (r == NULL)
            return;
        mx_list_remove(&r->unacked);
        r->need_ack = false;
    }
    mx_list_remove(&r->of_partner);
    mx_hope_ends(r);
    mx_region_put(lib, r);
    mx_done(r, MX_SUCCESS, r->bytes);
}
