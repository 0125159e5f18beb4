/*
 * What it does: finds other hosts and the paths to them: the node at the other end of each cable
 *   and, behind a switch, every node that switches name as a neighbour. There are no routes through
 *   other hosts; a change of the fabric is noticed at the next discovery only. A host with a list
 *   of the nodes of each peer looks there and nowhere else.
 * Follows: SmartIO, 2.2, 3.3, 4.4; docs/models/ntb.md. The list is what a cluster's configuration
 *   file has (dishosts.conf of Dolphin's drivers).
 * Costs: three reads over the fabric for each adapter, about twelve for each switch; an entry for
 *   our CPUs in each switch, until it is over. By a list: the same reads for the peer's adapters,
 *   and those that find the way to them (route.c), whatever the cluster's size.
 */
#include <stdio.h>
#include <string.h>

#include "logic/lending/lending_internal.h"

/* ---- Discovery ------------------------------------------------------------------------------- */

/* Nodes by number. */
struct node_set {
    uint8_t bits[(NTB_NODE_MAX + 8) / 8];
};

static bool set_has(const struct node_set *set, uint32_t node)
{
    return (set->bits[node / 8] >> node % 8 & 1) != 0;
}

static void set_add(struct node_set *set, uint32_t node)
{
    set->bits[node / 8] |= (uint8_t)(1u << node % 8);
}

/* Results of a discovery. They replace the known paths when it is complete. */
struct findings {
    struct lend_path *paths;
    unsigned n_paths;
    struct node_set adapters, switches;
    uint32_t *queue; /* of switches, in the order of their distance */
    unsigned n_queue;
    struct lend_error error; /* the first */
};

/* Makes room for one more element in an array of n. */
static void *grow(void *array, unsigned n, size_t bytes)
{
    if (n != 0 && (n & (n - 1)) != 0) /* full at 0, 1, 2, 4, ... */
        return array;
    void *grown = k_zalloc((n == 0 ? 1 : 2 * (size_t)n) * bytes);
    if (n != 0)
        memcpy(grown, array, n * bytes);
    k_free(array);
    return grown;
}

static uint64_t pad_offset(unsigned pad)
{
    return NTB_FABRIC_SCRATCHPAD + 4 * (uint64_t)pad;
}

/* Records the path to an adapter if it is that of a started host; `node` may be the partner. */
static void look_at(struct lend_host *host, struct lend_adapter *adapter, uint32_t node,
                    struct findings *found)
{
    _Static_assert(PAD_MAGIC % 2 == 0 && PAD_HOST == PAD_MAGIC + 1, "read together");
    const uint64_t who = lend_register_read(adapter, node, pad_offset(PAD_MAGIC), 8);
    if ((uint32_t)who != LEND_MAGIC || who >> 32 == host->options.id)
        return;
    struct lend_path path = { .peer = (uint32_t)(who >> 32),
                              .adapter = adapter->index,
                              .node = node };
    if (node == NTB_NODE_PARTNER)
        path.node = (uint32_t)lend_register_read(adapter, node, NTB_FABRIC_NODE, 4);
    path.peer_adapter = lend_register_read(adapter, node, pad_offset(PAD_SHAPE), 4) & 0xff;
    found->paths = grow(found->paths, found->n_paths, sizeof path);
    found->paths[found->n_paths++] = path;
}

static void queue_switch(struct findings *found, uint32_t node)
{
    if (set_has(&found->switches, node))
        return;
    set_add(&found->switches, node);
    found->queue = grow(found->queue, found->n_queue, sizeof *found->queue);
    found->queue[found->n_queue++] = node;
}

/* Notes the neighbours of a switch. */
static void look_around(struct lend_adapter *adapter, uint32_t node, struct findings *found)
{
    const uint32_t n_ports = (uint32_t)lend_register_read(adapter, node, CLUSTER_PORTS, 4);
    uint64_t two = 0;
    for (uint32_t p = 0; p < n_ports && n_ports <= 64; p++) {
        if (p % 2 == 0)
            two = lend_register_read(adapter, node, CLUSTER_NEIGHBOUR + 4 * (uint64_t)p, 8);
        const uint32_t neighbour = (uint32_t)(two >> 32 * (p % 2));
        const uint32_t other = neighbour & CLUSTER_NEIGHBOUR_NODE_MASK;
        if (neighbour == UINT32_MAX || !(neighbour & CLUSTER_NEIGHBOUR_VALID))
            continue;
        if (neighbour & CLUSTER_NEIGHBOUR_SWITCH)
            queue_switch(found, other);
        else if (other != adapter->node && other <= NTB_NODE_MAX)
            set_add(&found->adapters, other);
    }
}

/* All that switches lead to. Each is reached through nearer ones, in which our CPUs have entries by
 * then. */
static void look_behind(struct lend_host *host, struct lend_adapter *adapter,
                        struct findings *found)
{
    struct lend_error error;
    unsigned n = 0;
    queue_switch(found, (uint32_t)lend_register_read(adapter, NTB_NODE_PARTNER, CLUSTER_NODE, 4) &
                            CLUSTER_NEIGHBOUR_NODE_MASK);
    for (unsigned i = 0; i < found->n_queue; i++) {
        if (lend_hop_open(host, adapter, found->queue[i], &error) != 0) {
            found->error = found->error.code == 0 ? error : found->error;
            continue;
        }
        const uint32_t node = found->queue[i];
        found->queue[n++] = node;
        look_around(adapter, node, found);
    }
    for (uint32_t node = 1; node <= NTB_NODE_MAX; node++)
        if (set_has(&found->adapters, node))
            look_at(host, adapter, node, found);
    while (n-- > 0)
        lend_hop_close(host, adapter, found->queue[n]);
}

static void discover_by(struct lend_host *host, struct lend_adapter *adapter,
                        struct findings *found)
{
    const uint64_t id = lend_register_read(adapter, NTB_NODE_PARTNER, NTB_FABRIC_ID, 4);
    memset(&found->adapters, 0, sizeof found->adapters);
    memset(&found->switches, 0, sizeof found->switches);
    found->n_queue = 0;
    if (id == NTB_ID)
        look_at(host, adapter, NTB_NODE_PARTNER, found);
    else if (id == CLUSTER_SWITCH_ID)
        look_behind(host, adapter, found);
    k_free(found->queue);
    found->queue = NULL;
}

/* ---- Switches -------------------------------------------------------------------------------- */

int lend_switches_open(struct lend_host *host, unsigned index, struct lend_switches *switches,
                       struct lend_error *error)
{
    struct lend_adapter *adapter = &host->adapter[index];
    struct findings *found = k_zalloc(sizeof *found);
    *switches = (struct lend_switches){ .adapter = adapter };
    int status = 0;
    if (lend_register_read(adapter, NTB_NODE_PARTNER, NTB_FABRIC_ID, 4) == CLUSTER_SWITCH_ID)
        queue_switch(found,
                     (uint32_t)lend_register_read(adapter, NTB_NODE_PARTNER, CLUSTER_NODE, 4) &
                         CLUSTER_NEIGHBOUR_NODE_MASK);
    for (unsigned i = 0; i < found->n_queue && status == 0; i++) {
        const uint32_t node = found->queue[i];
        status = i < LEND_SWITCHES_MAX
                     ? lend_hop_open(host, adapter, node, error)
                     : lend_fail(error, -ENOSPC, "%s: more than %u cluster switches",
                                 host->options.name, LEND_SWITCHES_MAX);
        if (status != 0)
            break;
        switches->node[switches->n++] = (uint16_t)node;
        look_around(adapter, node, found);
    }
    k_free(found->queue);
    k_free(found);
    if (status != 0)
        lend_switches_close(host, switches);
    return status;
}

void lend_switches_close(struct lend_host *host, struct lend_switches *switches)
{
    while (switches->n > 0)
        lend_hop_close(host, switches->adapter, switches->node[--switches->n]);
}

uint64_t lend_switch_read(const struct lend_switches *switches, unsigned i, uint64_t offset,
                          unsigned bytes)
{
    return lend_register_read(switches->adapter, switches->node[i], offset, bytes);
}

bool lend_switch_write(const struct lend_switches *switches, unsigned i, uint64_t offset,
                       unsigned bytes, uint64_t value)
{
    struct lend_map map;
    const uint64_t page = offset & ~(uint64_t)(K_PAGE_BYTES - 1);
    if (lend_map(switches->adapter, switches->node[i], NTB_FABRIC_REGISTERS | page, K_PAGE_BYTES, 0,
                 "switch", &map, NULL) != 0)
        return false;
    lend_map_write(switches->adapter, &map, offset - page, bytes, value);
    const bool there = lend_map_read(switches->adapter, &map, offset - page, bytes) == value;
    lend_unmap(switches->adapter, &map);
    return there;
}

/* ---- All hosts ------------------------------------------------------------------------------- */

int lend_discover(struct lend_host *host)
{
    struct findings *found = k_zalloc(sizeof *found);
    for (unsigned i = 0; i < host->n_adapters; i++)
        if (lend_adapter_link_up(&host->adapter[i]))
            discover_by(host, &host->adapter[i], found);
    k_free(host->paths);
    host->paths = found->paths;
    host->n_paths = found->n_paths;
    snprintf(host->not_found, sizeof host->not_found, "%s%s", found->error.code != 0 ? "; " : "",
             found->error.text);
    k_free(found);
    return (int)host->n_paths;
}

/* By one adapter, the list of nodes that the peer has. */
static void look_for_by(struct lend_host *host, struct lend_adapter *adapter, const uint32_t *node,
                        unsigned n, struct findings *found)
{
    struct lend_route route;
    struct lend_error error;
    if (lend_register_read(adapter, NTB_NODE_PARTNER, NTB_FABRIC_ID, 4) == NTB_ID) {
        look_at(host, adapter, NTB_NODE_PARTNER, found);
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        if (node[i] == adapter->node)
            continue;
        if (lend_route_open(host, adapter, node[i], &route, &error) != 0) {
            found->error = found->error.code == 0 ? error : found->error;
            continue;
        }
        look_at(host, adapter, node[i], found);
        lend_route_close(host, adapter, &route);
    }
}

/* Takes what was found of the peer in place of what was known of it. */
static void take_paths_to(struct lend_host *host, uint32_t peer, const struct findings *found)
{
    struct lend_path *paths = NULL;
    unsigned n = 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        const struct lend_path *from = pass == 0 ? host->paths : found->paths;
        const unsigned n_from = pass == 0 ? host->n_paths : found->n_paths;
        for (unsigned i = 0; i < n_from; i++)
            if ((from[i].peer == peer) == (pass == 1)) {
                paths = grow(paths, n, sizeof *paths);
                paths[n++] = from[i];
            }
    }
    k_free(host->paths);
    host->paths = paths;
    host->n_paths = n;
}

void lend_look_for(struct lend_host *host, uint32_t peer)
{
    uint32_t node[LEND_ADAPTERS_MAX];
    if (host->options.nodes == NULL) {
        lend_discover(host);
        return;
    }
    struct findings *found = k_zalloc(sizeof *found);
    const unsigned n = host->options.nodes(peer, node, host->options.context);
    for (unsigned i = 0; i < host->n_adapters; i++)
        if (lend_adapter_link_up(&host->adapter[i]))
            look_for_by(host, &host->adapter[i], node, n, found);
    take_paths_to(host, peer, found);
    snprintf(host->not_found, sizeof host->not_found, "%s%s", found->error.code != 0 ? "; " : "",
             found->error.text);
    k_free(found->paths);
    k_free(found);
}

bool lend_path_at(const struct lend_host *host, unsigned i, struct lend_path *path)
{
    if (i >= host->n_paths)
        return false;
    *path = host->paths[i];
    return true;
}

static unsigned free_windows(const struct lend_adapter *adapter)
{
    return adapter->window[0].n + adapter->window[1].n - lend_windows_used(adapter);
}

/* How many of the path's two adapters are the preferred ones. */
static unsigned nearness(const struct lend_path *path, unsigned own, unsigned peer_adapter)
{
    return (path->adapter == own ? 1u : 0) + (path->peer_adapter == peer_adapter ? 1u : 0);
}

int lend_resolve_by(struct lend_host *host, uint32_t peer, unsigned own, unsigned peer_adapter,
                    struct lend_path *path, struct lend_error *error)
{
    const struct lend_path *best = NULL;
    bool up[LEND_ADAPTERS_MAX];
    unsigned n_down = 0;
    for (unsigned i = 0; i < host->n_adapters; i++)
        up[i] = lend_adapter_link_up(&host->adapter[i]);
    /* Takes no simulated time, so nothing changes meanwhile. */
    for (unsigned i = 0; i < host->n_paths; i++) {
        const struct lend_path *p = &host->paths[i];
        const struct lend_adapter *adapter = &host->adapter[p->adapter];
        if (p->peer != peer)
            continue;
        if (!up[p->adapter]) {
            n_down++;
            continue;
        }
        unsigned near = nearness(p, own, peer_adapter);
        unsigned best_near = best != NULL ? nearness(best, own, peer_adapter) : 0;
        if (best == NULL || near > best_near ||
            (near == best_near &&
             free_windows(adapter) > free_windows(&host->adapter[best->adapter])))
            best = p;
    }
    if (best == NULL)
        return lend_fail(error, -EHOSTUNREACH, "%s: no path to host %u (%u paths known, %u down)%s",
                         host->options.name, peer, host->n_paths, n_down, host->not_found);
    *path = *best;
    return 0;
}

int lend_resolve(struct lend_host *host, uint32_t peer, unsigned peer_adapter,
                 struct lend_path *path, struct lend_error *error)
{
    return lend_resolve_by(host, peer, LEND_ANY, peer_adapter, path, error);
}
