/*
 * What it does: finds other hosts and the paths to them: the node at the other end of each cable
 *   and, behind a switch, every node that the switch has a route to. There are no routes through
 *   other hosts; a change of the fabric is noticed at the next discovery only.
 * Follows: SmartIO, 2.2, 3.3, 4.4; docs/models/ntb.md.
 * Costs: a read over the fabric for each register, a write of the look-up table for each node.
 */
#include <string.h>

#include "logic/lending/lending_internal.h"

#define NODES_TO_ASK 4096u /* entries of a switch's routing table that are read */
#define UNKNOWN_MAX  64u   /* so many nodes without a route in a row: there are no more */

/* ---- Discovery ------------------------------------------------------------------------------- */

static int map_registers(struct lend_adapter *adapter, uint32_t node, uint64_t bytes,
                         struct lend_map *map, struct lend_error *error)
{
    return lend_map(adapter, node, NTB_FABRIC_REGISTERS, bytes, 0, "discovery", map, error);
}

/* Results of a discovery. They replace the known paths and switches when it is complete. */
struct findings {
    struct lend_path *paths;
    struct lend_switch *switches;
    unsigned n_paths, n_switches;
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

/* Looks at one node and records the path if it is an adapter of a started host. Returns the node's
 * identity register. */
static uint32_t look_at(struct lend_host *host, struct lend_adapter *adapter, uint32_t node,
                        struct findings *found)
{
    struct lend_map map;
    if (map_registers(adapter, node, 4096, &map, NULL) != 0)
        return UINT32_MAX;
    uint32_t id = lend_remote_read(adapter, &map, NTB_FABRIC_ID);
    if (id == NTB_ID && lend_pad_read(adapter, &map, PAD_MAGIC) == LEND_MAGIC) {
        uint32_t shape = lend_pad_read(adapter, &map, PAD_SHAPE);
        struct lend_path path = { .peer = lend_pad_read(adapter, &map, PAD_HOST),
                                  .adapter = adapter->index,
                                  .node = lend_remote_read(adapter, &map, NTB_FABRIC_NODE),
                                  .peer_adapter = shape & 0xff };
        if (path.peer != host->options.id) {
            found->paths = grow(found->paths, found->n_paths, sizeof path);
            found->paths[found->n_paths++] = path;
        }
    } else if (id == CLUSTER_SWITCH_ID) {
        struct lend_switch this_switch = { adapter->index,
                                           lend_remote_read(adapter, &map, CLUSTER_NODE) };
        bool known = false;
        for (unsigned i = 0; i < found->n_switches && !known; i++)
            known = found->switches[i].adapter == this_switch.adapter &&
                    found->switches[i].node == this_switch.node;
        if (!known) {
            found->switches = grow(found->switches, found->n_switches, sizeof this_switch);
            found->switches[found->n_switches++] = this_switch;
        }
    }
    lend_unmap(adapter, &map);
    return id;
}

/* Looks at all nodes that the switch at the other end of the cable has a route to. */
static void look_behind(struct lend_host *host, struct lend_adapter *adapter,
                        struct findings *found)
{
    const uint64_t bytes = CLUSTER_ROUTE + 4 * (uint64_t)NODES_TO_ASK;
    struct lend_map routes;
    unsigned unknown = 0;
    if (map_registers(adapter, NTB_NODE_PARTNER, bytes, &routes, NULL) != 0)
        return;
    for (uint32_t node = 1; node < NODES_TO_ASK && unknown < UNKNOWN_MAX; node++) {
        uint32_t route = lend_remote_read(adapter, &routes, CLUSTER_ROUTE + 4 * (uint64_t)node);
        bool known = route != UINT32_MAX && (route & CLUSTER_ROUTE_VALID) != 0;
        unknown = known ? 0 : unknown + 1;
        if (known && node != adapter->node)
            look_at(host, adapter, node, found);
    }
    lend_unmap(adapter, &routes);
}

int lend_discover(struct lend_host *host)
{
    struct findings found = { .n_paths = 0 };
    for (unsigned i = 0; i < host->n_adapters; i++) {
        struct lend_adapter *adapter = &host->adapter[i];
        if (!lend_adapter_link_up(adapter))
            continue;
        if (look_at(host, adapter, NTB_NODE_PARTNER, &found) == CLUSTER_SWITCH_ID)
            look_behind(host, adapter, &found);
    }
    k_free(host->paths);
    k_free(host->switches);
    host->paths = found.paths;
    host->n_paths = found.n_paths;
    host->switches = found.switches;
    host->n_switches = found.n_switches;
    host->discovered = true;
    return (int)host->n_paths;
}

void lend_switches_forget(struct lend_host *host, const struct lend_adapter *where, unsigned device)
{
    struct lend_adapter *adapter = &host->adapter[where->index];
    const uint64_t at = CLUSTER_REQUESTER + 4 * (uint64_t)adapter->node;
    if (!host->discovered)
        lend_discover(host);
    for (unsigned i = 0; i < host->n_switches; i++) {
        struct lend_map map;
        if (host->switches[i].adapter != adapter->index ||
            lend_map(adapter, host->switches[i].node, NTB_FABRIC_REGISTERS | (at & ~UINT64_C(4095)),
                     4096, 0, "switch", &map, NULL) != 0)
            continue;
        uint32_t devices = lend_remote_read(adapter, &map, at & 4095);
        if (devices != UINT32_MAX && (devices >> device & 1) != 0)
            lend_map_write(adapter, &map, at & 4095, 4, devices & ~(UINT32_C(1) << device));
        lend_unmap(adapter, &map);
    }
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
        return lend_fail(error, -EHOSTUNREACH, "%s: no path to host %u (%u paths known, %u down)",
                         host->options.name, peer, host->n_paths, n_down);
    *path = *best;
    return 0;
}

int lend_resolve(struct lend_host *host, uint32_t peer, unsigned peer_adapter,
                 struct lend_path *path, struct lend_error *error)
{
    return lend_resolve_by(host, peer, LEND_ANY, peer_adapter, path, error);
}
