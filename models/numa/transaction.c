#include "models/numa/transaction.h"

#include <stdlib.h>

#include "models/numa/numa_internal.h"

#define CONTENDED_PS SIM_PS_PER_US /* callers are no further apart */

_Static_assert(TRANSACTION_MAX_SOCKETS == NUMA_MAX_SOCKETS, "a pool of IDs for each home");

void transactions_init(struct numa *n)
{
    const struct numa_coherence_params *p = n->params->coherence;
    const uint32_t trackers[] = { [TRACKER_LOCAL] = p->local_trackers,
                                  [TRACKER_REMOTE] = p->remote_trackers,
                                  [TRACKER_IO] = p->io_trackers };

    for (uint32_t i = 0; i < n->sockets; i++) {
        struct transaction_pools *pools = &n->socket[i].pools;
        pools->table = sim_zalloc(n->params->cache->llc_slices, sizeof(*pools->table));
        for (uint32_t s = 0; s < n->params->cache->llc_slices; s++)
            pool_init(&pools->table[s], p->request_entries);
        for (uint32_t home = 0; home < n->sockets; home++)
            pool_init(&pools->ids[home], home != i ? p->transaction_ids : 0);
        for (uint32_t k = 0; k < N_TRACKERS; k++)
            pool_init(&pools->tracker[k], trackers[k]);
    }
}

void transactions_release(struct numa *n)
{
    for (uint32_t i = 0; i < n->sockets; i++) {
        struct transaction_pools *pools = &n->socket[i].pools;
        for (uint32_t s = 0; pools->table != NULL && s < n->params->cache->llc_slices; s++)
            pool_release(&pools->table[s]);
        free(pools->table);
        pools->table = NULL;
        for (uint32_t home = 0; home < n->sockets; home++)
            pool_release(&pools->ids[home]);
        for (uint32_t k = 0; k < N_TRACKERS; k++)
            pool_release(&pools->tracker[k]);
    }
}

/* A pool was waited for until at_ps. */
static void contend(struct numa *n, sim_time at_ps)
{
    n->contended_until_ps = SIM_MAX(n->contended_until_ps, at_ps + CONTENDED_PS);
}

sim_time transaction_wait(struct numa *n, const struct transaction *t, sim_time at_ps)
{
    struct numa_counters *counters = &n->socket[t->from].counters;
    uint64_t *other_wait_ps = t->from == t->home ? &counters->tracker_wait_ps
                                                 : &counters->transaction_id_wait_ps;
    sim_time now_ps = at_ps, table_ps, other_ps;

    /* Until there is room in both: nothing is held meanwhile. */
    do {
        table_ps = pool_wait(t->table, 1, now_ps);
        counters->request_entry_wait_ps += table_ps - now_ps;
        other_ps = pool_wait(t->other, 1, table_ps);
        *other_wait_ps += other_ps - table_ps;
        now_ps = other_ps;
    } while (other_ps != table_ps);
    if (now_ps > at_ps) /* or its window was passed */
        contend(n, now_ps);
    return now_ps;
}

sim_time transaction_wait_at_home(struct numa *n, const struct transaction *t, enum message message,
                                  sim_time at_ps)
{
    const sim_time tracker_ps = pool_wait(t->tracker, 1, at_ps);

    n->socket[t->home].counters.tracker_wait_ps += tracker_ps - at_ps;
    interconnect_stall(&n->interconnect, t->from, t->home, message, at_ps, tracker_ps);
    if (tracker_ps > at_ps)
        contend(n, tracker_ps);
    return tracker_ps;
}
