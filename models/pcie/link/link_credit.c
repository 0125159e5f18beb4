/*
 * Models: flow-control credits on their way back, and when UpdateFC and ACK DLLPs become due;
 *   whether all are whole at the end.
 * Does not model: DLLPs that fill idle wire time; UpdateFCs for infinite pools.
 * Timing: an UpdateFC is due when fc_update_ratio_pct of the pool's headers or data has been freed
 *   since the last, when the sender may be out of credits for a TLP of maximum size, or the
 *   FC-update guideline (the ACK latency limit) after the first freed credit; it is at the sender
 *   after its wire time and the link's latency. It costs no event: arrivals are looked at when the
 *   sender lacks credits, and an event is scheduled only if it waits for them.
 *   ACK latency limit = ((MPS + 28) * AckFactor / lanes, rounded down, + delay) symbol times.
 * Sources: PCI Express Base 3.1, 2.6.1.2 and 3.5.2.1 (limits; AckFactor as in docs/sources.md);
 *   the delays of Gen4 and Gen5 are estimates.
 */
#include "models/pcie/link/link.h"

#include <stdlib.h>

/* ---- Rings ----------------------------------------------------------------------------------- */

static void ring_grow(struct link_ring *ring)
{
#ifdef SIM_HOSTILE
    uint32_t capacity = ring->capacity == 0 ? 2 : ring->capacity * 2;
#else
    uint32_t capacity = ring->capacity == 0 ? 8 : ring->capacity * 2;
#endif
    struct link_dllp *entry = sim_zalloc(capacity, sizeof(*entry));

    for (uint32_t i = 0; i < ring->n; i++)
        entry[i] = *link_ring_at(ring, i);
    free(ring->entry);
    *ring = (struct link_ring){ .entry = entry, .capacity = capacity, .n = ring->n };
}

struct link_dllp *link_ring_insert(struct link_ring *ring, sim_time at_ps, uint32_t kind)
{
    if (SIM_UNLIKELY(ring->n == ring->capacity))
        ring_grow(ring);
    uint32_t i = ring->n++;
    for (; i > 0 && link_ring_at(ring, i - 1)->at_ps > at_ps; i--)
        *link_ring_at(ring, i) = *link_ring_at(ring, i - 1);
    struct link_dllp *dllp = link_ring_at(ring, i);
    dllp->at_ps = at_ps;
    dllp->kind = kind;
    return dllp;
}

void link_owes(struct link_dir *wire)
{
    if (SIM_UNLIKELY(wire->replay != NULL))
        link_replay_owed(wire);
    else
        link_settle(wire, sim_now(wire->sim));
}

/* ---- Limits ---------------------------------------------------------------------------------- */

/* AckFactor in tenths, by maximum payload size and width. */
static uint32_t ack_factor_tenths(uint32_t mps_bytes, uint32_t lanes)
{
    if (mps_bytes >= 512)
        return lanes <= 8 ? 10 : 20;
    return lanes <= 4 ? 14 : lanes == 8 ? 25 : 30;
}

sim_time link_limit_ps(struct link_dir *dir)
{
    static const uint32_t delay_symbols[] = { 0, 19, 70, 115, 185, 333 };
    static const sim_time symbol_ps[] = { 0, 4000, 2000, 1000, 500, 250 };
    uint32_t mps_bytes = dir->from->mps_bytes, lanes = dir->link->lanes;

    if (SIM_UNLIKELY(dir->limit_mps_bytes != mps_bytes)) {
        uint32_t symbols = (mps_bytes + 28) * ack_factor_tenths(mps_bytes, lanes) / (10 * lanes) +
                           delay_symbols[dir->link->generation];
        dir->limit_mps_bytes = mps_bytes;
        dir->limit_ps = symbols * symbol_ps[dir->link->generation];
    }
    return dir->limit_ps;
}

/* ---- The receiver's side --------------------------------------------------------------------- */

static void send_update(struct link_dir *dir, enum tlp_class class, sim_time due_ps)
{
    struct link_pool *pool = &dir->pool[class];
    struct link_dllp *update = link_ring_put(&dir->reverse->owed, due_ps, class);

    update->header = pool->freed_header;
    update->data = pool->freed_data;
    pool->open_header += pool->freed_header;
    pool->open_data += pool->freed_data;
    pool->freed_header = pool->freed_data = 0;
    link_owes(dir->reverse);
}

/* The sender may lack credits for one more TLP of the class. */
static bool is_low(const struct link_dir *dir, enum tlp_class class)
{
    const struct link_pool *pool = &dir->pool[class];
    uint32_t data = class == TLP_NON_POSTED ? 1 : dir->from->mps_bytes / 16;

    return pool->open_header < 1 || pool->open_data < SIM_MAX(data, pool->need_data);
}

static bool awaits_credits(const struct link_dir *dir)
{
    return dir->n_queued != 0 || (dir->want & WANT_CREDITS) != 0;
}

static __attribute__((noinline)) void send_update_and_look(struct link_dir *dir,
                                                           enum tlp_class class, sim_time at_ps)
{
    send_update(dir, class, at_ps);
    if (awaits_credits(dir))
        link_arm_for_credits(dir);
}

/* As pcie_port_release(), but that what was freed before has gone into an UpdateFC if it was due.
 * Calls only at the end, and then as its last act: it saves no registers. */
static inline __attribute__((always_inline)) void release(struct pcie_port *port,
                                                          struct link_dir *dir,
                                                          enum tlp_class class,
                                                          unsigned data_credits, sim_time at_ps)
{
    struct link_pool *pool = &dir->pool[class];

    pool->last_freed_ps = at_ps;
    pool->freed_header += pool->finite_header;
    pool->freed_data += data_credits * pool->finite_data;
    /* Holds for infinite credits too: of these nothing is ever freed. */
    SIM_ASSERT(pool->open_header + pool->freed_header <= port->advertise.header[class] &&
                   pool->open_data + pool->freed_data <= port->advertise.data[class],
               "%s: more was released than received", port->name);
    if (pool->freed_header >= pool->update_header || pool->freed_data >= pool->update_data ||
        is_low(dir, class))
        send_update_and_look(dir, class, at_ps);
    else if (SIM_UNLIKELY(awaits_credits(dir)))
        link_arm_for_credits(dir);
}

/* The first that is freed since an UpdateFC, or since one has become due. */
static __attribute__((noinline)) void release_first(struct pcie_port *port, struct link_dir *dir,
                                                    enum tlp_class class, unsigned data_credits,
                                                    sim_time at_ps)
{
    struct link_pool *pool = &dir->pool[class];

    if ((pool->freed_header | pool->freed_data) != 0)
        send_update(dir, class, pool->update_deadline_ps);
    pool->update_deadline_ps = at_ps + link_limit_ps(dir);
    release(port, dir, class, data_credits, at_ps);
}

void pcie_port_release(struct pcie_port *port, enum tlp_class class, unsigned data_credits,
                       sim_time at_ps)
{
    struct link_dir *dir = port->tx->reverse;
    struct link_pool *pool = &dir->pool[class];

    if ((pool->finite_header | pool->finite_data) == 0)
        return;
    SIM_ASSERT(at_ps >= sim_now(dir->sim), "%s: released in the past", port->name);
    if (SIM_UNLIKELY((pool->freed_header | pool->freed_data) == 0)) {
        release_first(port, dir, class, data_credits, at_ps);
        return;
    }
    at_ps = SIM_MAX(at_ps, pool->last_freed_ps);
    if (SIM_UNLIKELY(at_ps > pool->update_deadline_ps))
        release_first(port, dir, class, data_credits, at_ps);
    else
        release(port, dir, class, data_credits, at_ps);
}

/* ---- The sender's side ----------------------------------------------------------------------- */

/* Takes up the UpdateFCs that have arrived by now. */
static void collect(struct link_dir *dir)
{
    sim_time now_ps = sim_now(dir->sim);

    link_settle(dir->reverse, now_ps);
    while (dir->arrivals.n != 0) {
        const struct link_dllp *update = link_ring_at(&dir->arrivals, 0);
        struct link_pool *pool = &dir->pool[update->kind];

        if (update->at_ps > now_ps)
            break;
        pool->avail_header += update->header;
        pool->avail_data += update->data;
        link_ring_pop(&dir->arrivals);
    }
}

bool link_has_credits_slow(struct link_dir *dir, enum tlp_class class, uint32_t data)
{
    struct link_pool *pool = &dir->pool[class];

    collect(dir);
    if (pool->avail_header >= 1 && pool->avail_data >= data)
        return true;
    /* What was freed since the last UpdateFC goes back as soon as the receiver has seen the TLP
     * that used the rest up. */
    if ((pool->freed_header | pool->freed_data) != 0) {
        sim_time seen_ps = SIM_MAX(pool->last_freed_ps, dir->last_tail_ps);
        send_update(dir, class, SIM_MIN(seen_ps, pool->update_deadline_ps));
        collect(dir);
    }
    if (pool->avail_header >= 1 && pool->avail_data >= data)
        return true;
    pool->need_data = SIM_MAX(pool->need_data, data);
    return false;
}

void link_arm_for_credits(struct link_dir *dir)
{
    sim_time now_ps = sim_now(dir->sim), at_ps = SIM_TIME_MAX;

    if (dir->arrivals.n != 0)
        at_ps = link_ring_at(&dir->arrivals, 0)->at_ps;
    const struct link_ring *owed = &dir->reverse->owed;
    for (uint32_t i = 0; at_ps == SIM_TIME_MAX && i < owed->n; i++)
        if (link_ring_at(owed, i)->kind < N_TLP_CLASSES)
            at_ps = link_ring_at(owed, i)->at_ps + dir->dllp_ps + dir->latency_ps;
    if (at_ps != SIM_TIME_MAX)
        link_arm(dir, SIM_MAX(at_ps, now_ps));
}

/* One direction at the end of a run; false after sim_fail(). */
static bool check_idle(const struct link_dir *dir)
{
    uint64_t n = dir->n_queued;

    for (const struct tlp *tlp = dir->flight_first; tlp != NULL; tlp = tlp->next)
        n++;
    if (n != 0)
        sim_fail(dir->sim, "link %s: %llu TLPs of port %s never reached port %s", dir->link->name,
                 (unsigned long long)n, dir->from->name, dir->to->name);
    else if (!pcie_port_credits_whole(dir->to))
        sim_fail(dir->sim, "link %s: port %s has not given back the buffers of all it received",
                 dir->link->name, dir->to->name);
    else
        return true;
    return false;
}

bool pcie_context_check_idle(struct pcie_context *pcie)
{
    for (unsigned i = 0; i < pcie->n_links; i++)
        for (unsigned side = 0; side < 2; side++)
            if (!check_idle(&pcie->links[i]->dir[side]))
                return false;
    if (tlp_live(pcie) == 0)
        return true;
    sim_fail(pcie->sim, "%llu TLPs are alive at the end, with models that gave their buffers back",
             (unsigned long long)tlp_live(pcie));
    return false;
}

void pcie_context_describe(struct sim_watch *watch, struct sim_waits *waits)
{
    static const char *const class_name[N_TLP_CLASSES] = { "posted requests", "non-posted requests",
                                                           "completions" };
    const struct pcie_context *pcie = SIM_CONTAINER(watch, struct pcie_context, watch);

    for (unsigned i = 0; i < 2 * pcie->n_links; i++) {
        const struct link_dir *dir = &pcie->links[i / 2]->dir[i % 2];

        for (unsigned class = 0; class < N_TLP_CLASSES; class ++)
            if (dir->queue[class].n != 0)
                sim_waits_add(waits, "%u %s wait at %s: %s has %u header and %u data credits left",
                              dir->queue[class].n, class_name[class], dir->from->name,
                              dir->to->name, dir->pool[class].avail_header,
                              dir->pool[class].avail_data);
    }
}

bool pcie_port_credits_whole(const struct pcie_port *port)
{
    const struct link_dir *dir = port->tx->reverse;

    if (dir->flight_first != NULL || dir->n_queued != 0)
        return false;
    for (unsigned class = 0; class < N_TLP_CLASSES; class ++) {
        const struct link_pool *pool = &dir->pool[class];
        uint32_t header = pool->avail_header, data = pool->avail_data;

        for (int ring = 0; ring < 2; ring++) {
            const struct link_ring *on_way = ring == 0 ? &dir->arrivals : &dir->reverse->owed;
            for (uint32_t i = 0; i < on_way->n; i++) {
                const struct link_dllp *dllp = link_ring_at(on_way, i);
                header += dllp->kind == class ? dllp->header : 0;
                data += dllp->kind == class ? dllp->data : 0;
            }
        }
        if (header != pool->open_header || data != pool->open_data ||
            header + pool->freed_header != port->advertise.header[class] ||
            data + pool->freed_data != port->advertise.data[class])
            return false;
    }
    return true;
}
