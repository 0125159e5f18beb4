/*
 * What it does: segments of shared memory from a pool that is reserved when the host starts, as in
 *   SISCI: created under a number, connected and mapped by other hosts. There are no notifications,
 *   and no segments outside the pool.
 * Follows: SmartIO, 3.3.
 * Costs: one request and the window entries.
 */
#include <string.h>

#include "logic/lending/lending_internal.h"

static struct lend_segment **find(struct lend_host *host, uint32_t number)
{
    struct lend_segment **link = &host->segments;
    while (*link != NULL && (*link)->number != number)
        link = &(*link)->next;
    return link;
}

int lend_segment_new(struct lend_host *host, uint32_t number, uint64_t bytes, struct kaddr *at,
                     struct lend_error *error)
{
    static const uint8_t zeros[K_PAGE_BYTES];
    uint64_t offset;
    bytes = lend_whole_pages(bytes);
    if (*find(host, number) != NULL)
        return lend_fail(error, -EEXIST, "%s: segment %u exists", host->options.name, number);
    if (!lend_ranges_take(&host->pool_space, bytes, K_PAGE_BYTES, &offset))
        return lend_fail(
            error, -ENOSPC,
            "%s: %llu KiB in a row for segment %u: %llu of %llu KiB of the pool in use",
            host->options.name, (unsigned long long)(bytes >> 10), number,
            (unsigned long long)(lend_ranges_taken_bytes(&host->pool_space) >> 10),
            (unsigned long long)(host->options.pool_bytes >> 10));
    struct lend_segment *segment = k_zalloc(sizeof *segment);
    *segment = (struct lend_segment){
        .next = host->segments, .number = number, .offset = offset, .bytes = bytes
    };
    host->segments = segment;
    *at = kaddr_add(host->pool, offset);
    for (uint64_t i = 0; i < bytes; i += K_PAGE_BYTES)
        k_store(host->kernel, kaddr_add(*at, i), zeros, K_PAGE_BYTES);
    return 0;
}

int lend_segment_free(struct lend_host *host, uint32_t number)
{
    struct lend_segment **link = find(host, number), *segment = *link;
    if (segment == NULL)
        return -ENOENT;
    *link = segment->next;
    lend_ranges_give(&host->pool_space, segment->offset);
    k_free(segment);
    return 0;
}

void lend_segments_free(struct lend_host *host)
{
    while (host->segments != NULL)
        lend_segment_free(host, host->segments->number);
}

int lend_serve_segment(struct lend_connection *c, unsigned type, const void *body, void *reply,
                       size_t *bytes, struct lend_error *error)
{
    uint32_t number;
    (void)type;
    memcpy(&number, body, sizeof number);
    const struct lend_segment *segment = *find(c->host, number);
    if (segment == NULL)
        return lend_fail(error, -ENOENT, "no segment %u", number);
    const struct msg_range range = { c->host->pool_fabric[c->adapter->index] + segment->offset,
                                     segment->bytes };
    return lend_reply(reply, bytes, &range, sizeof range);
}

int lend_segment_connect(struct lend_host *host, uint32_t peer, uint32_t number,
                         struct lend_remote *remote, struct lend_error *error)
{
    struct lend_connection *c;
    struct msg_range range;
    int status = lend_connect_peer(host, peer, &c, error);
    if (status != 0)
        return status;
    status = lend_call(c, MSG_SEGMENT, &number, sizeof number, &range, sizeof range, error);
    if (status == 0)
        status = lend_map(c->adapter, c->node, range.fabric, range.bytes, 0, "segment",
                          &remote->map, error);
    if (status != 0) {
        lend_connection_put(c);
        return status;
    }
    remote->adapter = c->adapter;
    remote->private_data = c;
    return 0;
}

bool lend_segment_lost(const struct lend_remote *remote)
{
    const struct lend_connection *c = remote->private_data;
    return c->state == CONNECTION_LOST;
}

void lend_segment_disconnect(struct lend_remote *remote)
{
    lend_unmap(remote->adapter, &remote->map);
    lend_connection_put(remote->private_data);
}
