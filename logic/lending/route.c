/*
 * What it does: keeps the entries of this host's requesters in the tables of the cluster switches
 *   between its adapters and others. A route is found when it is needed, switch by switch: each
 *   names the port towards a node, and the neighbour behind that port. Entries are counted by the
 *   host; a switch has one word per node, of which only that node's host writes, so no two hosts
 *   write the same word. There is one route to a node; a change of routes is not noticed. The
 *   smallest Max_Payload_Size on the way bounds what may travel it: a switch drops what is larger.
 * Follows: docs/models/ntb.md; hw/ntb_regs.h.
 * Costs: for each switch of a route two reads to find the next, a write and a read to take or to
 *   give an entry.
 *
 * A switch refuses requests of a requester without an entry when its table is full. So our CPUs
 * take theirs in the nearest switch first (its own registers can be reached without one), and give
 * them back in the farthest first. A switch that could not be told is told later, by a thread that
 * runs only as long as there are any.
 */
#include "logic/lending/lending_internal.h"

#include <stdio.h>

#define PAYLOAD_MAX 4096u /* PCI Express Base 3.1, 7.8.3 */

/* ---- Registers of switches ------------------------------------------------------------------- */

uint64_t lend_register_read(struct lend_adapter *adapter, uint32_t node, uint64_t offset,
                            unsigned bytes)
{
    struct lend_map map;
    const uint64_t page = offset & ~(uint64_t)(K_PAGE_BYTES - 1);
    if (lend_map(adapter, node, NTB_FABRIC_REGISTERS | page, K_PAGE_BYTES, 0, "switch", &map,
                 NULL) != 0)
        return UINT64_MAX;
    const uint64_t value = lend_map_read(adapter, &map, offset - page, bytes);
    lend_unmap(adapter, &map);
    return value;
}

static uint32_t wanted_of(const struct lend_hop *hop)
{
    uint32_t mask = 0;
    for (unsigned i = 0; i < NTB_OUTGOING_MAX; i++)
        mask |= hop->refs[i] != 0 ? UINT32_C(1) << i : 0;
    return mask;
}

/* Writes which of our requesters have an entry; all or none are taken. *has: what the switch has
 * then; all ones: it does not answer. 0, or the error of the table of windows, if none is free to
 * write through: the switch has not been told. */
static int hop_write(struct lend_hop *hop, uint32_t *has, struct lend_error *error)
{
    struct lend_adapter *adapter = hop->adapter;
    const uint64_t at = CLUSTER_REQUESTER + 4 * (uint64_t)adapter->node;
    const uint64_t page = at & ~(uint64_t)(K_PAGE_BYTES - 1);
    char owner[LEND_OWNER_BYTES];
    struct lend_map map;
    int status = 0;
    *has = UINT32_MAX;
    snprintf(owner, sizeof owner, "switch %u", hop->node);
    if (lend_adapter_link_up(adapter)) {
        status = lend_map(adapter, hop->node, NTB_FABRIC_REGISTERS | page, K_PAGE_BYTES, 0, owner,
                          &map, error);
        if (status == 0) {
            lend_map_write(adapter, &map, at - page, 4, wanted_of(hop));
            *has = lend_remote_read(adapter, &map, at - page);
            lend_unmap(adapter, &map);
        }
    }
    hop->dirty = *has != wanted_of(hop);
    return status;
}

static void settle(void *arg);

/* ---- Entries of one switch; under route_lock ------------------------------------------------- */

static struct lend_hop *hop_of(struct lend_host *host, struct lend_adapter *adapter, uint32_t node)
{
    struct lend_hop *hop = host->hops;
    while (hop != NULL && (hop->adapter != adapter || hop->node != node))
        hop = hop->next;
    if (hop != NULL)
        return hop;
    hop = k_zalloc(sizeof *hop);
    *hop = (struct lend_hop){ .next = host->hops, .adapter = adapter, .node = node };
    host->hops = hop;
    return hop;
}

/* Frees it if we hold nothing there; a thread tells the switch what it could not be told. */
static void hop_put(struct lend_host *host, struct lend_hop *hop)
{
    if (hop->dirty && !host->settling && !host->stopping && !host->dead) {
        host->settling = true;
        host->n_threads++;
        k_thread_new(host->kernel, "lend_settle", K_CPU_ANY, settle, host);
    }
    if (hop->dirty || wanted_of(hop) != 0)
        return;
    K_LIST_REMOVE(host->hops, hop);
    k_free(hop);
}

static void hop_drop(struct lend_hop *hop, uint32_t devices)
{
    for (unsigned i = 0; i < NTB_OUTGOING_MAX; i++)
        if ((devices >> i & 1) != 0)
            hop->refs[i]--;
}

static int no_answer(const struct lend_adapter *adapter, uint32_t node, struct lend_error *error)
{
    return lend_fail(error, -EHOSTUNREACH, "%s: switch %u does not answer",
                     adapter->pci->device.name, node);
}

/* 0: there is room in the table. */
static int table_full(struct lend_adapter *adapter, uint32_t node, struct lend_error *error)
{
    const uint32_t n = (uint32_t)lend_register_read(adapter, node, CLUSTER_REQUESTERS, 4);
    if (n == UINT32_MAX)
        return no_answer(adapter, node, error);
    if ((n & 0xffff) < n >> 16)
        return 0;
    char setting[80];
    lend_setting(adapter, node, "requesters", setting, sizeof setting);
    return lend_fail(error, -ENOSPC,
                     "requester table of cluster switch %u: %u of %u entries in use; %s has to be "
                     "%u at least",
                     node, n & 0xffff, n >> 16, setting, (n >> 16) + 1);
}

static int hop_take(struct lend_host *host, struct lend_adapter *adapter, uint32_t node,
                    uint32_t devices, struct lend_error *error)
{
    struct lend_hop *hop = hop_of(host, adapter, node);
    const uint32_t held = wanted_of(hop);
    const bool was_dirty = hop->dirty;
    int status = 0;
    for (unsigned i = 0; i < NTB_OUTGOING_MAX; i++)
        if ((devices >> i & 1) != 0)
            hop->refs[i]++;
    const uint32_t wanted = wanted_of(hop);
    uint32_t has = wanted;
    if (wanted != held || was_dirty)
        status = hop_write(hop, &has, error);
    if (status != 0) {
        hop_drop(hop, devices);
        hop->dirty = was_dirty;
        hop_put(host, hop);
        return status;
    }
    if (has == wanted)
        return 0;
    if (has == UINT32_MAX) {
        status = no_answer(adapter, node, error);
    } else if ((status = table_full(adapter, node, error)) == 0) { /* not so many at a time */
        char setting[80];
        lend_setting(adapter, node, "requesters", setting, sizeof setting);
        status = lend_fail(error, -ENOSPC,
                           "requester table of cluster switch %u: too few entries (%s)", node,
                           setting);
    }
    hop_drop(hop, devices);
    hop->dirty = has != wanted_of(hop);
    hop_put(host, hop);
    return status;
}

static void hop_give(struct lend_host *host, struct lend_adapter *adapter, uint32_t node,
                     uint32_t devices)
{
    struct lend_hop *hop = hop_of(host, adapter, node);
    const uint32_t held = wanted_of(hop);
    uint32_t has;
    hop_drop(hop, devices);
    if (wanted_of(hop) != held)
        hop_write(hop, &has, NULL);
    hop_put(host, hop);
}

/* ---- Routes ---------------------------------------------------------------------------------- */

static uint32_t cpus_of(const struct lend_adapter *adapter)
{
    return (UINT32_C(1) << (adapter->n_cpus - 1) << 1) - 1; /* the first of the table */
}

static void give(struct lend_host *host, struct lend_adapter *adapter,
                 const struct lend_route *route, unsigned n, uint32_t devices)
{
    while (n-- > 0)
        hop_give(host, adapter, route->hop[n], devices);
}

static int no_way(const struct lend_adapter *adapter, uint32_t from, uint32_t node,
                  struct lend_error *error)
{
    return lend_fail(error, -EHOSTUNREACH, "%s: no way from switch %u to node %u",
                     adapter->pci->device.name, from, node);
}

/* The node after switch `from` on the way to `node`, or an error. *is_switch: it is one. The route
 * gets to know what payload `from` passes. */
static int next_hop(struct lend_adapter *adapter, uint32_t from, uint32_t node,
                    struct lend_route *route, bool *is_switch, struct lend_error *error)
{
    const uint64_t port = lend_register_read(adapter, from, CLUSTER_ROUTE + 4 * (uint64_t)node, 4);
    if (port >> 32 != 0 || port == UINT32_MAX || !(port & CLUSTER_ROUTE_VALID))
        return no_way(adapter, from, node, error);
    const uint64_t neighbour = lend_register_read(adapter, from,
                                                  CLUSTER_NEIGHBOUR + 4 * (port & 0xff), 4);
    if (neighbour >> 32 != 0 || neighbour == UINT32_MAX || !(neighbour & CLUSTER_NEIGHBOUR_VALID))
        return no_way(adapter, from, node, error);
    *is_switch = (neighbour & CLUSTER_NEIGHBOUR_SWITCH) != 0;
    const unsigned payload = 128u << (neighbour >> CLUSTER_NEIGHBOUR_MPS_SHIFT &
                                      CLUSTER_NEIGHBOUR_MPS_MASK);
    if (payload < route->payload_bytes) {
        route->payload_bytes = (uint16_t)payload;
        route->narrowest = (uint16_t)from;
    }
    return (int)(neighbour & CLUSTER_NEIGHBOUR_NODE_MASK);
}

static int walk(struct lend_host *host, struct lend_adapter *adapter, uint32_t node,
                struct lend_route *route, struct lend_error *error)
{
    const uint64_t id = lend_register_read(adapter, NTB_NODE_PARTNER, NTB_FABRIC_ID, 4);
    bool is_switch = id == CLUSTER_SWITCH_ID;
    if (!is_switch)
        return 0;
    int at = (int)lend_register_read(adapter, NTB_NODE_PARTNER, CLUSTER_NODE, 4);
    while (at >= 0 && at != (int)node) {
        if (!is_switch || route->n == LEND_HOPS_MAX)
            return no_way(adapter, (uint32_t)at, node, error);
        const int status = hop_take(host, adapter, (uint32_t)at, cpus_of(adapter), error);
        if (status != 0)
            return status;
        route->hop[route->n++] = (uint16_t)at;
        at = next_hop(adapter, (uint32_t)at, node, route, &is_switch, error);
    }
    return at == (int)node ? 0 : -EHOSTUNREACH;
}

int lend_route_open(struct lend_host *host, struct lend_adapter *adapter, uint32_t node,
                    struct lend_route *route, struct lend_error *error)
{
    *route = (struct lend_route){ .payload_bytes = PAYLOAD_MAX };
    lend_lock(host, &host->route_lock);
    const int status = walk(host, adapter, node, route, error);
    if (status != 0) {
        give(host, adapter, route, route->n, cpus_of(adapter));
        route->n = 0;
    }
    lend_unlock(host, &host->route_lock);
    return status;
}

void lend_route_close(struct lend_host *host, struct lend_adapter *adapter,
                      struct lend_route *route)
{
    lend_lock(host, &host->route_lock);
    give(host, adapter, route, route->n, cpus_of(adapter));
    route->n = 0;
    lend_unlock(host, &host->route_lock);
}

int lend_route_take(struct lend_host *host, struct lend_adapter *adapter,
                    const struct lend_route *route, unsigned device, struct lend_error *error)
{
    int status = 0;
    unsigned n = 0;
    lend_lock(host, &host->route_lock);
    while (n < route->n && status == 0) {
        status = hop_take(host, adapter, route->hop[n], UINT32_C(1) << device, error);
        n += status == 0;
    }
    if (status != 0)
        give(host, adapter, route, n, UINT32_C(1) << device);
    lend_unlock(host, &host->route_lock);
    return status;
}

void lend_route_give(struct lend_host *host, struct lend_adapter *adapter,
                     const struct lend_route *route, unsigned device)
{
    lend_lock(host, &host->route_lock);
    give(host, adapter, route, route->n, UINT32_C(1) << device);
    lend_unlock(host, &host->route_lock);
}

int lend_route_payload(const struct lend_route *route, unsigned bytes, struct lend_error *error)
{
    if (bytes <= route->payload_bytes)
        return 0;
    return lend_fail(
        error, -EMSGSIZE,
        "cluster switch %u passes payloads of %u bytes (mps_bytes_max), but they are of "
        "%u (root_complex.mps_bytes)",
        route->narrowest, route->payload_bytes, bytes);
}

int lend_route_full(struct lend_adapter *adapter, const struct lend_route *route,
                    struct lend_error *error)
{
    int status = 0;
    for (unsigned i = 0; i < route->n && status == 0; i++)
        status = table_full(adapter, route->hop[i], error);
    return status;
}

int lend_hop_open(struct lend_host *host, struct lend_adapter *adapter, uint32_t node,
                  struct lend_error *error)
{
    lend_lock(host, &host->route_lock);
    const int status = hop_take(host, adapter, node, cpus_of(adapter), error);
    lend_unlock(host, &host->route_lock);
    return status;
}

void lend_hop_close(struct lend_host *host, struct lend_adapter *adapter, uint32_t node)
{
    lend_lock(host, &host->route_lock);
    hop_give(host, adapter, node, cpus_of(adapter));
    lend_unlock(host, &host->route_lock);
}

/* Writes one hop that is dirty. False: it does not answer; the others get their turns first. */
static bool settle_one(struct lend_host *host)
{
    lend_lock(host, &host->route_lock);
    struct lend_hop **last = &host->hops, *hop = host->hops;
    uint32_t has;
    while (hop != NULL && !hop->dirty)
        hop = hop->next;
    if (hop != NULL)
        hop_write(hop, &has, NULL);
    const bool told = hop == NULL || !hop->dirty;
    if (hop != NULL && !told) {
        K_LIST_REMOVE(host->hops, hop);
        while (*last != NULL)
            last = &(*last)->next;
        hop->next = NULL;
        *last = hop;
    } else if (hop != NULL) {
        hop_put(host, hop);
    }
    lend_unlock(host, &host->route_lock);
    return told;
}

static bool any_dirty(const struct lend_host *host)
{
    const struct lend_hop *hop = host->hops;
    while (hop != NULL && !hop->dirty)
        hop = hop->next;
    return hop != NULL;
}

/* Tries a hop per heartbeat: a cable between switches comes back without a word, and a read that
 * nobody answers takes long. */
static void settle(void *arg)
{
    struct lend_host *host = arg;
    while (!host->stopping && !host->dead && any_dirty(host)) {
        k_wait(host->kernel, &host->settle, k_now_ps(host->kernel) + host->options.heartbeat_ps);
        while (!host->stopping && !host->dead && any_dirty(host) && settle_one(host))
            ;
    }
    host->settling = false;
    host->n_threads--;
    k_wake(host->kernel, &host->stopped);
}

void lend_routes_settle(struct lend_host *host)
{
    k_wake(host->kernel, &host->settle);
}

void lend_routes_free(struct lend_host *host)
{
    while (host->hops != NULL) {
        struct lend_hop *hop = host->hops;
        host->hops = hop->next;
        k_free(hop);
    }
}
