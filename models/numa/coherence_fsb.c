/*
 * Coherence by front-side buses: one bus per socket to a memory controller hub with all DRAM.
 *
 * Models: address phase on the requester's bus, which all its caches snoop; the hub snoops the
 *   other buses, all of them or (snoop_filter) those that have the line; modified lines are
 *   supplied by their owner over its bus and written back at the same time; data phase on the
 *   requester's bus. Devices are at the hub: their writes go to DRAM and invalidate copies, their
 *   reads snoop.
 * Does not model: deferred and retried transactions, the filter's capacity, the two branches'
 *   lockstep other than as wider channels.
 * Timing:
 *   idle load = L2 + address + hub + DRAM idle read + hub return + 64 bytes on the bus
 *   same bus, modified: L2 + address + snoop + hub + hub return + data
 *   other bus, modified: + address and data phases of that bus
 * Sources: docs/sources.md#e1
 */
#include "models/numa/numa_internal.h"

#include <math.h>
#include <stdlib.h>

/* The front-side bus of one socket; numa.protocol is an array of them. */
struct bus {
    struct calendar address; /* address phases, snoops included */
    struct calendar data;
};

struct round {
    sim_time done_ps;             /* all answers are in; a modified line's data are at the hub */
    sim_time asked_ps, looked_ps; /* on the bus that answered last: address seen, caches read */
    bool dirty;
    bool found;
};

static struct bus *bus_of(const struct numa *n, unsigned socket)
{
    return (struct bus *)n->protocol + socket;
}

static sim_time address_phase(struct numa *n, unsigned socket, sim_time at_ps)
{
    if (n->quiet)
        return at_ps;
    return calendar_take_slot(&bus_of(n, socket)->address, at_ps) +
           n->params->interconnect->bus_address_ps;
}

static sim_time data_phase(struct numa *n, unsigned socket, enum message message, sim_time at_ps)
{
    struct calendar *bus = &bus_of(n, socket)->data;

    if (n->quiet)
        return at_ps;
    numa_count_message(n, socket, socket, message, LINE_BYTES);
    return calendar_take_slot(bus, at_ps) + bus->slot_ps;
}

/* The caches on a bus but the requester's: true if one has the line. */
static bool on_bus(const struct numa *n, unsigned socket, uint64_t line, unsigned except)
{
    const unsigned first = socket * n->groups_per_socket;

    for (unsigned c = first; c < first + n->groups_per_socket; c++)
        if (c != except && core_group_peek(n, c, line) != LINE_I)
            return true;
    return false;
}

/* Every cache on the bus but the requester's sees the address. */
static struct round snoop_bus(struct numa *n, unsigned socket, uint64_t line, unsigned except,
                              bool invalidate, sim_time at_ps)
{
    const unsigned first = socket * n->groups_per_socket;
    const sim_time looked_ps = at_ps + n->params->coherence->snoop_lookup_ps;
    struct round r = { looked_ps, at_ps, looked_ps, false, false };

    for (unsigned c = first; c < first + n->groups_per_socket; c++) {
        if (c == except)
            continue;
        const enum line_state was = invalidate ? core_group_invalidate(n, c, line)
                                               : core_group_downgrade(n, c, line);
        r.dirty |= was == LINE_M;
        r.found |= was != LINE_I;
    }
    NUMA_COUNT(n, socket, core_snoops);
    return r;
}

/* The hub asks the buses of the other sockets (for a device: of all, from = n->sockets). */
static struct round snoop_buses(struct numa *n, unsigned from, uint64_t line, bool invalidate,
                                sim_time at_ps)
{
    struct round all = { at_ps, at_ps, at_ps, false, false };

    for (unsigned s = 0; s < n->sockets; s++) {
        if (s == from)
            continue;
        if (n->params->coherence->snoop_filter && !on_bus(n, s, line, UINT32_MAX))
            continue;
        struct round r = snoop_bus(n, s, line, UINT32_MAX, invalidate, address_phase(n, s, at_ps));
        NUMA_COUNT(n, s, snoops_sent);
        if (r.dirty)
            r.done_ps = data_phase(n, s, MESSAGE_WRITEBACK, r.done_ps);
        r.dirty |= all.dirty;
        r.found |= all.found;
        if (r.done_ps > all.done_ps) {
            all = r;
        } else {
            all.dirty = r.dirty;
            all.found = r.found;
        }
    }
    return all;
}

static void mark_round(struct round r, struct sim_stamp *stamp)
{
    sim_stamp_mark(stamp, PART_INTERCONNECT, r.asked_ps);
    sim_stamp_mark(stamp, PART_CACHE, r.looked_ps);
    sim_stamp_mark(stamp, PART_INTERCONNECT, r.done_ps);
}

static struct fetched fetch(struct numa *n, unsigned core, uint64_t line, bool store,
                            sim_time at_ps, struct sim_stamp *stamp, struct numa_result *result)
{
    const struct numa_coherence_params *p = n->params->coherence;
    const unsigned group = core_group_of(n, core);
    const unsigned socket = n->core_group[group].socket;
    const bool upgrade = core_group_peek(n, group, line) != LINE_I;
    const sim_time address_ps = address_phase(n, socket, at_ps);
    const struct round own = snoop_bus(n, socket, line, group, store, address_ps);
    const sim_time hub_ps = address_ps + p->hub_ps;
    const struct round other = snoop_buses(n, socket, line, store, hub_ps);
    const bool dirty = own.dirty || other.dirty;
    const sim_time snooped_ps = SIM_MAX(SIM_MAX(own.done_ps, other.done_ps), hub_ps);
    sim_time t = snooped_ps;

    result->source = own.dirty     ? NUMA_PEER_CACHE
                     : other.dirty ? NUMA_REMOTE_CACHE
                                   : NUMA_LOCAL_DRAM;
    if (dirty) {
        /* An implicit write-back: memory takes the line as it passes the hub. */
        t = SIM_MAX(t, own.done_ps + p->hub_ps);
        if (t > snooped_ps)
            mark_round(own, stamp);
        const sim_time accepted_ps = numa_dram_write(n, line, WRITE_SNOOP, t);
        if (accepted_ps > t) {
            if (t == snooped_ps)
                mark_round(other.done_ps >= own.done_ps ? other : own, stamp);
            sim_stamp_mark(stamp, PART_DRAM, accepted_ps);
        }
        t = accepted_ps;
    } else if (!upgrade) {
        const sim_time dram_ps = numa_dram_read(n, line, store ? READ_RFO : READ_LOAD, hub_ps);
        t = SIM_MAX(t, dram_ps);
        if (t > snooped_ps) {
            sim_stamp_mark(stamp, PART_INTERCONNECT, hub_ps);
            sim_stamp_mark(stamp, PART_DRAM, dram_ps);
        }
    } else {
        result->source = NUMA_L2;
    }
    if (t == snooped_ps)
        mark_round(other.done_ps >= own.done_ps ? other : own, stamp);
    t += p->hub_return_ps;
    if (!upgrade)
        t = data_phase(n, socket, MESSAGE_DATA, t);
    sim_stamp_mark(stamp, PART_INTERCONNECT, t);
    result->done_ps = t;
    return (struct fetched){ store || !(own.found || other.found) ? LINE_E : LINE_S, 0 };
}

/* The core group's buffer is free once the hub has passed the line on. */
static sim_time writeback(struct numa *n, unsigned group, uint64_t line, uint32_t llc_at,
                          bool dirty, sim_time at_ps)
{
    (void)llc_at; /* there is none */
    const unsigned socket = n->core_group[group].socket;

    if (!dirty)
        return 0;
    const sim_time address_ps = address_phase(n, socket, at_ps);
    const sim_time t = data_phase(n, socket, MESSAGE_WRITEBACK, address_ps) +
                       n->params->coherence->hub_ps;
    return numa_dram_write(n, line, WRITE_VICTIM, t) - t;
}

static sim_time store_nt(struct numa *n, unsigned core, uint64_t line, sim_time at_ps,
                         struct sim_stamp *stamp)
{
    const unsigned group = core_group_of(n, core);
    const unsigned socket = n->core_group[group].socket;
    sim_time t = address_phase(n, socket, at_ps + n->l2_ps);

    sim_stamp_mark(stamp, PART_CORE, at_ps + n->l2_ps);
    core_group_invalidate(n, group, line);
    const struct round own = snoop_bus(n, socket, line, group, true, t);
    const struct round other = snoop_buses(n, socket, line, true, t + n->params->coherence->hub_ps);
    t = data_phase(n, socket, MESSAGE_WRITEBACK, own.done_ps) + n->params->coherence->hub_ps;
    mark_round(t >= other.done_ps ? own : other, stamp);
    t = SIM_MAX(t, other.done_ps);
    sim_stamp_mark(stamp, PART_INTERCONNECT, t);
    t = numa_dram_write(n, line, WRITE_NT, t);
    sim_stamp_mark(stamp, PART_DRAM, t);
    return t;
}

static sim_time flush(struct numa *n, unsigned core, uint64_t line, sim_time at_ps)
{
    const unsigned group = core_group_of(n, core);
    const unsigned socket = n->core_group[group].socket;
    sim_time t = address_phase(n, socket, at_ps + n->l2_ps);
    bool dirty = core_group_invalidate(n, group, line) == LINE_M;
    const struct round own = snoop_bus(n, socket, line, group, true, t);
    const struct round other = snoop_buses(n, socket, line, true, t + n->params->coherence->hub_ps);

    if (dirty || own.dirty)
        t = data_phase(n, socket, MESSAGE_WRITEBACK, own.done_ps);
    t = SIM_MAX(SIM_MAX(t, own.done_ps), other.done_ps);
    if (dirty || own.dirty || other.dirty)
        t = numa_dram_write(n, line, WRITE_FLUSH, t + n->params->coherence->hub_ps) -
            n->params->coherence->hub_ps;
    return t;
}

static sim_time dma_read(struct numa *n, unsigned socket, uint64_t line, sim_time at_ps,
                         struct sim_stamp *stamp, enum numa_source *source)
{
    const sim_time hub_ps = at_ps + n->params->cache->iio_ps;
    const struct round r = snoop_buses(n, n->sockets, line, false, hub_ps);
    sim_time t = r.done_ps;

    (void)socket; /* devices are at the hub */
    sim_stamp_mark(stamp, PART_CACHE, hub_ps);
    if (r.dirty) {
        NUMA_COUNT(n, 0, dma_read_hits);
        *source = NUMA_PEER_CACHE;
        mark_round(r, stamp);
        t = numa_dram_write(n, line, WRITE_SNOOP, t);
        sim_stamp_mark(stamp, PART_DRAM, t);
    } else {
        NUMA_COUNT(n, 0, dma_read_misses);
        *source = NUMA_LOCAL_DRAM;
        const sim_time dram_ps = numa_dram_read(n, line, READ_DMA, hub_ps);
        if (dram_ps > t)
            sim_stamp_mark(stamp, PART_DRAM, dram_ps);
        t = SIM_MAX(t, dram_ps);
    }
    if (t == r.done_ps)
        mark_round(r, stamp);
    t += n->params->coherence->hub_return_ps;
    sim_stamp_mark(stamp, PART_INTERCONNECT, t);
    return t;
}

static sim_time dma_write(struct numa *n, unsigned socket, uint64_t line, bool full, sim_time at_ps,
                          struct sim_stamp *stamp, enum numa_source *source)
{
    const sim_time hub_ps = at_ps + n->params->cache->iio_ps;
    const struct round r = snoop_buses(n, n->sockets, line, true, hub_ps);

    (void)socket;
    /* A modified copy passes the hub and is merged there; without one, DRAM's masked write needs
     * no read. A full line replaces the copy. */
    sim_time t = r.done_ps;
    if (r.dirty && !full)
        t = numa_dram_write(n, line, WRITE_SNOOP, t);
    t = numa_dram_write(n, line, WRITE_DMA, t);
    sim_stamp_mark(stamp, PART_CACHE, hub_ps);
    mark_round(r, stamp);
    sim_stamp_mark(stamp, PART_DRAM, t);
    NUMA_COUNT(n, 0, dma_write_to_dram);
    *source = NUMA_LOCAL_DRAM;
    return t;
}

/* Devices are at the hub, which all sockets reach by their own buses. */
static sim_time io_send(struct numa *n, unsigned from, unsigned to, enum message message,
                        sim_time at_ps)
{
    (void)n, (void)from, (void)to, (void)message;
    return at_ps;
}

static struct stat_peak to_peak(const struct numa *n, unsigned from, unsigned to, sim_time now_ps)
{
    const struct calendar *data = &bus_of(n, from)->data;

    if (from != to)
        return (struct stat_peak){ 0, 0 };
    return (struct stat_peak){ LINE_BYTES * 1e12 / (double)data->slot_ps,
                               LINE_BYTES * (double)(calendar_units_after(data, now_ps) + 1) };
}

static sim_time idle_load_ps(const struct numa *n, unsigned from, unsigned home)
{
    const struct numa_coherence_params *p = n->params->coherence;

    (void)home;
    return n->l2_ps + n->params->interconnect->bus_address_ps + p->hub_ps +
           dram_idle_read_ps(&n->socket[0].dram) + p->hub_return_ps + bus_of(n, from)->data.slot_ps;
}

/* ---- Set-up and warming ---------------------------------------------------------------------- */

static bool params_check(const struct numa_params *params, const char **why)
{
    const struct numa_rule no_llc = {
        params->cache->llc_bytes != 0,
        "cache.llc_size must be 0 with coherence.protocol = \"front_side_bus\""
    };

    return numa_rules_hold(&no_llc, 1, why);
}

/* All memory is the hub's. */
static unsigned nodes(const struct numa_params *params)
{
    (void)params;
    return 1;
}

static void init(struct numa *n)
{
    const struct numa_interconnect_params *p = n->params->interconnect;
    const sim_time line_ps = (sim_time)llround(1000.0 * LINE_BYTES / p->bus_gbyte_s);

    n->protocol = sim_zalloc(n->sockets, sizeof(struct bus));
    for (uint32_t i = 0; i < n->sockets; i++) {
        calendar_init(&bus_of(n, i)->address, p->bus_address_ps, 1);
        calendar_init(&bus_of(n, i)->data, line_ps, 1);
    }
}

static void release(struct numa *n)
{
    free(n->protocol);
}

static void drop(struct numa *n, uint64_t line)
{
    for (unsigned c = 0; c < n->sockets * n->groups_per_socket; c++)
        core_group_invalidate(n, c, line);
}

const struct coherence_ops coherence_fsb_ops = {
    .params_check = params_check,
    .nodes = nodes,
    .init = init,
    .release = release,
    .fetch = fetch,
    .writeback = writeback,
    .store_nt = store_nt,
    .flush = flush,
    .dma_read = dma_read,
    .dma_write = dma_write,
    .io_send = io_send,
    .to_peak = to_peak,
    .idle_load_ps = idle_load_ps,
    .drop = drop,
};
