/*
 * Coherence by front-side buses: one bus per socket to a memory controller hub with all DRAM.
 *
 * Models: arbitration, and an address phase on the requester's bus, which all its caches snoop; the
 *   hub snoops the other buses, all of them or (snoop_filter) those whose caches may have the line;
 *   a filter of limited size, which takes a line from the caches when its entry is needed for
 *   another; modified lines are supplied by their owner over its bus and written back at the same
 *   time; a load for which another bus is snooped has its snoop phase stalled until that one has
 *   answered; a request for ownership is deferred meanwhile, and answered by an address phase of
 *   the hub (deferred reply); data phase on the requester's bus, with idle clocks before and after
 *   data that a processor drives. A bus gives the results of snoops, and then responses and data,
 *   in the order of its address phases (bus_in_order transactions at most): what is ready earlier
 *   waits. While the hub arbitrates for a bus that its processors have used (BPRI#), they begin no
 *   address phase; what the hub has to say directly afterwards follows without that. Devices are at
 *   the hub: their writes go to DRAM and invalidate copies, their reads snoop; both take two
 *   requests of the I/O unit, one that snoops and fetches, one that moves the data.
 * Does not model: retries, the sockets' order of arbitration, partial writes of write-combining
 *   buffers; transactions that are called later than one behind them on the bus do not hold it up.
 * Timing:
 *   idle load = L2 + arbitration + address + hub + DRAM idle read (or the snoop of the other buses)
 *     + hub return + 64 bytes on the bus; a store's miss, another bus snooped: + address same bus,
 *   modified: L2 + arbitration + address + stall + snoop + owner's read + hub + hub return + data
 *   other bus, modified: + arbitration, address and data phases of that bus; where DRAM is not
 *     waited for; modified in an L1: + L1 + L2
 *   device's read: IIO + DRAM idle read (or snoops) + hub return + IIO + hub return
 *   device's write: IIO + snoops + hub return + IIO
 * Sources: docs/sources.md#fsb, docs/sources.md#f
 */
#include "models/numa/numa_internal.h"
#include "models/numa/snoop_filter.h"

#include <math.h>
#include <stdlib.h>

#include "models/base/times.h"
#include "sim/engine/zeroed.h"

#define IN_ORDER_MAX  16u
#define DATA_UNITS    4u /* of the data calendar's slot, which is a line */
#define ADDRESS_UNITS 4u /* of the address calendar's slot, which is an address phase */
#define PRESENT_BITS  8u /* of numa.present: L2s, and filters of limited size */

/* The transactions that have been on a bus last. */
struct in_order {
    uint32_t depth;   /* 0: no order */
    uint32_t next;    /* the one that the next replaces */
    sim_time last_ps; /* the latest done_ps of all so far; none has its snooped_ps after that */
    /* models/base/times.h; of those that there are not, 0. */
    double address[IN_ORDER_MAX], snooped[IN_ORDER_MAX], done[IN_ORDER_MAX];
};

/* The front-side bus of one socket; numa.protocol is an array of them. */
struct bus {
    struct in_order in_order;
    struct calendar address; /* address phases: requests, snoops, deferred replies */
    struct calendar data;
    struct snoop_filter filter; /* snoop_filter_size > 0: the lines of this bus's caches */
    uint32_t turnaround;        /* units of idle time that a processor's data cost */
    uint32_t takeover;          /* units of time in which the hub takes the bus from processors */
    bool of_hub;                /* the hub drove the last address phase */
};

#define NO_GROUP UINT32_MAX

struct round {
    sim_time done_ps;             /* all answers are in; a modified line's data are at the hub */
    sim_time asked_ps, looked_ps; /* on the bus that answered last: address seen, caches read */
    bool dirty;
    bool found;
    bool asked; /* a bus was snooped by the hub */
};

static struct bus *bus_of(const struct numa *n, unsigned socket)
{
    return (struct bus *)n->protocol + socket;
}

static bool has_filter(const struct numa *n)
{
    return n->params->coherence->snoop_filter && n->params->coherence->snoop_filter_bytes > 0;
}

/* The bit of a bus's filter in n->present. */
static unsigned filter_bit(const struct numa *n, unsigned socket)
{
    return n->sockets * n->groups_per_socket + socket;
}

static bool filter_has(const struct numa *n, unsigned socket, uint64_t line)
{
    if (n->present != NULL)
        return numa_may_have(n, filter_bit(n, socket), line);
    return snoop_filter_has(&bus_of(n, socket)->filter, line);
}

static void filter_remove(struct numa *n, unsigned socket, uint64_t line)
{
    if (!filter_has(n, socket, line))
        return;
    numa_note_present(n, filter_bit(n, socket), line, false);
    snoop_filter_remove(&bus_of(n, socket)->filter, line);
}

/* As snoop_filter_add(). */
static uint64_t filter_add(struct numa *n, unsigned socket, uint64_t line)
{
    const uint64_t victim = snoop_filter_add(&bus_of(n, socket)->filter, line);

    numa_note_present(n, filter_bit(n, socket), line, true);
    if (victim != SNOOP_FILTER_NONE)
        numa_note_present(n, filter_bit(n, socket), victim, false);
    return victim;
}

/* ---- The in-order queue ---------------------------------------------------------------------- */

/* When the results of snoops, and the responses, of all that had its address phase before are
 * over; or 0, if that is not after its own. */
struct turn {
    sim_time snoop_ps, data_ps;
};

/* The turn of what follows those of the queue that were before address_ps; without a branch on
 * which were: nobody could predict it. */
static inline __attribute__((always_inline)) struct turn turn_in(const struct in_order *q,
                                                                 uint32_t depth, double address)
{
    double snooped = 0, done = 0;

#ifdef __SSE2__
    const __m128d all = _mm_set1_pd(address);
    __m128d s = _mm_setzero_pd(), d = _mm_setzero_pd();
    for (uint32_t i = 0; i < depth; i += 2) {
        const __m128d before = _mm_cmplt_pd(_mm_loadu_pd(&q->address[i]), all);
        s = _mm_max_pd(s, _mm_and_pd(before, _mm_loadu_pd(&q->snooped[i])));
        d = _mm_max_pd(d, _mm_and_pd(before, _mm_loadu_pd(&q->done[i])));
    }
    snooped = _mm_cvtsd_f64(_mm_max_sd(s, _mm_unpackhi_pd(s, s)));
    done = _mm_cvtsd_f64(_mm_max_sd(d, _mm_unpackhi_pd(d, d)));
#else
    for (uint32_t i = 0; i < depth; i++) {
        if (q->address[i] >= address)
            continue;
        snooped = SIM_MAX(snooped, q->snooped[i]);
        done = SIM_MAX(done, q->done[i]);
    }
#endif
    return (struct turn){ times_ps(snooped), times_ps(done) };
}

static inline struct turn turn_of(const struct numa *n, unsigned socket, sim_time address_ps)
{
    const struct in_order *q = &bus_of(n, socket)->in_order;

    if (q->last_ps <= address_ps)
        return (struct turn){ 0, 0 };
    /* Of Intel's buses: a loop that unrolls. */
    return q->depth == 12 ? turn_in(q, 12, times_of(address_ps))
                          : turn_in(q, q->depth, times_of(address_ps));
}

static void turn_note(struct numa *n, unsigned socket, sim_time address_ps, sim_time snooped_ps,
                      sim_time done_ps)
{
    struct in_order *q = &bus_of(n, socket)->in_order;

    if (q->depth == 0 || n->quiet)
        return;
    SIM_ASSERT(done_ps < TIMES_EXACT_PS, "%s: a bus at %llu ps", n->name,
               (unsigned long long)done_ps);
    q->address[q->next] = times_of(address_ps);
    q->snooped[q->next] = times_of(snooped_ps);
    q->done[q->next] = times_of(done_ps);
    q->last_ps = SIM_MAX(q->last_ps, done_ps);
    q->next = q->next + 1 < q->depth ? q->next + 1 : 0;
}

/* When there is room for one more, whose address would be seen ahead_ps after at_ps: now, unless
 * all are before that address and none is over. */
static sim_time turn_room(const struct numa *n, unsigned socket, sim_time at_ps, sim_time ahead_ps)
{
    const struct in_order *q = &bus_of(n, socket)->in_order;
    double first = times_of(TIMES_EXACT_PS);

    if (q->last_ps <= at_ps) /* also if there is no order */
        return at_ps;
    /* The oldest is most likely to be over. */
    if (q->done[q->next] <= times_of(at_ps) || q->address[q->next] > times_of(at_ps + ahead_ps))
        return at_ps;
    const uint64_t over = times_over(q->done, q->depth, at_ps);
    const uint64_t after = ~times_over(q->address, q->depth, at_ps + ahead_ps);
    if ((over | (after & ((UINT64_C(1) << q->depth) - 1))) != 0)
        return at_ps;
    for (uint32_t i = 0; i < q->depth; i++)
        first = SIM_MIN(first, q->done[i]);
    return times_ps(first);
}

/* ---- Phases ---------------------------------------------------------------------------------- */

/* Takes the address lines at or after at_ps; returns when the address has been seen. */
static sim_time address_phase(struct numa *n, unsigned socket, sim_time at_ps)
{
    struct calendar *address = &bus_of(n, socket)->address;

    if (n->quiet)
        return at_ps;
    const struct calendar_grant grant = calendar_take(address, at_ps, ADDRESS_UNITS);
    return SIM_MAX(at_ps, grant.end_ps - address->slot_ps) +
           n->params->interconnect->bus_address_ps;
}

/* A processor's request. */
static sim_time request(struct numa *n, unsigned socket, sim_time at_ps)
{
    const struct numa_interconnect_params *p = n->params->interconnect;

    bus_of(n, socket)->of_hub = false;
    if (!n->quiet)
        at_ps = turn_room(n, socket, at_ps, p->bus_arbitration_ps + p->bus_address_ps);
    return address_phase(n, socket, at_ps + p->bus_arbitration_ps);
}

/* An address phase of the hub, which asks for the bus at at_ps and could use it at ready_ps. If
 * processors have it, they have to stop first. */
static sim_time hub_phase(struct numa *n, unsigned socket, sim_time at_ps, sim_time ready_ps)
{
    struct bus *bus = bus_of(n, socket);

    if (n->quiet)
        return ready_ps;
    if (!bus->of_hub && bus->takeover > 0) {
        const struct calendar_grant idle = calendar_take(&bus->address, at_ps, bus->takeover);
        ready_ps = SIM_MAX(ready_ps, idle.end_ps);
    }
    bus->of_hub = true;
    return address_phase(n, socket, ready_ps);
}

/* The hub snoops a bus. */
static sim_time hub_request(struct numa *n, unsigned socket, sim_time at_ps)
{
    return hub_phase(n, socket, at_ps, at_ps + n->params->interconnect->bus_arbitration_ps);
}

/* A deferred reply: the hub knows beforehand when it needs the bus. */
static sim_time deferred_reply(struct numa *n, unsigned socket, sim_time at_ps)
{
    const sim_time takeover_ps = n->params->interconnect->bus_arbitration_ps;

    return hub_phase(n, socket, at_ps - SIM_MIN(at_ps, takeover_ps), at_ps);
}

/* A line that the hub (MESSAGE_DATA) or a processor (MESSAGE_WRITEBACK) drives. */
static sim_time data_phase(struct numa *n, unsigned socket, enum message message, sim_time at_ps)
{
    struct bus *bus = bus_of(n, socket);
    const uint32_t turnaround = message == MESSAGE_WRITEBACK ? bus->turnaround : 0;

    if (n->quiet)
        return at_ps;
    numa_count_message(n, socket, socket, message, LINE_BYTES);
    const struct calendar_grant grant = calendar_take(&bus->data, at_ps, DATA_UNITS);
    if (turnaround > 0)
        calendar_take(&bus->data, grant.end_ps, turnaround);
    return SIM_MAX(at_ps, grant.end_ps - bus->data.slot_ps) + bus->data.slot_ps;
}

/* The caches on a bus may have the line, as far as the hub knows. */
static bool on_bus(const struct numa *n, unsigned socket, uint64_t line)
{
    const unsigned first = socket * n->groups_per_socket;

    if (has_filter(n))
        return filter_has(n, socket, line);
    for (unsigned c = first; c < first + n->groups_per_socket; c++)
        if (numa_has(n, c, line))
            return true;
    return false;
}

/* Every cache on the bus but that of group `except` sees the address. */
static struct round snoop_bus(struct numa *n, unsigned socket, uint64_t line, unsigned except,
                              bool invalidate, sim_time at_ps)
{
    const unsigned first = socket * n->groups_per_socket;
    const sim_time looked_ps = at_ps + n->params->coherence->snoop_lookup_ps +
                               (except != NO_GROUP ? n->params->coherence->snoop_stall_ps : 0);
    struct round r = { looked_ps, at_ps, looked_ps, false, false, false };

    bool in_l1 = false;
    for (uint32_t groups = numa_groups_with(n, first, line); groups != 0; groups &= groups - 1) {
        const unsigned c = first + (unsigned)__builtin_ctz(groups);
        if (c == except)
            continue;
        const enum line_state was = core_group_snoop(n, c, line, invalidate, &in_l1);
        r.dirty |= was == LINE_M;
        r.found |= was != LINE_I;
    }
    if (r.dirty) /* its owner's L2 has to read it, and before that may have to take it from an L1 */
        r.done_ps = r.looked_ps = looked_ps + n->params->cache->core_snoop_dirty_ps +
                                  (in_l1 ? n->l1_ps + n->l2_ps : 0);
    if (invalidate && except == NO_GROUP && has_filter(n))
        filter_remove(n, socket, line);
    NUMA_COUNT(n, socket, core_snoops);
    return r;
}

/* The hub asks a bus, whose owner of a modified line drives it when its turn has come. */
static struct round hub_snoop(struct numa *n, unsigned socket, uint64_t line, bool invalidate,
                              sim_time at_ps)
{
    const sim_time address_ps = hub_request(n, socket, at_ps);
    const struct turn turn = turn_of(n, socket, address_ps);
    struct round r = snoop_bus(n, socket, line, NO_GROUP, invalidate, address_ps);

    r.looked_ps = SIM_MAX(r.looked_ps, turn.snoop_ps);
    r.done_ps = SIM_MAX(r.done_ps, turn.snoop_ps);
    sim_time over_ps = SIM_MAX(r.done_ps, turn.data_ps);
    if (r.dirty)
        over_ps = r.done_ps = data_phase(n, socket, MESSAGE_WRITEBACK, over_ps);
    turn_note(n, socket, address_ps, r.looked_ps, over_ps);
    return r;
}

static inline struct round no_round(sim_time at_ps)
{
    return (struct round){ at_ps, at_ps, at_ps, false, false, false };
}

/* No bus but that of `from` (n->sockets: none at all) can have to be snooped. */
static inline bool is_nowhere(const struct numa *n, unsigned from, uint64_t line)
{
    if (n->present == NULL || !has_filter(n))
        return false;
    const uint32_t listed = (uint32_t)n->present[line] >> filter_bit(n, 0);
    return (listed & ~(UINT32_C(1) << from)) == 0;
}

/* The hub asks the buses of the other sockets (for a device: of all, from = n->sockets). */
static struct round snoop_buses(struct numa *n, unsigned from, uint64_t line, bool invalidate,
                                sim_time at_ps)
{
    struct round all = no_round(at_ps);

    if (is_nowhere(n, from, line))
        return all;
    for (unsigned s = 0; s < n->sockets; s++) {
        if (s == from)
            continue;
        if (n->params->coherence->snoop_filter && !on_bus(n, s, line))
            continue;
        struct round r = hub_snoop(n, s, line, invalidate, at_ps);
        NUMA_COUNT(n, s, snoops_sent);
        r.dirty |= all.dirty;
        r.found |= all.found;
        if (r.done_ps > all.done_ps) {
            all = r;
        } else {
            all.dirty = r.dirty;
            all.found = r.found;
        }
        all.asked = true;
    }
    return all;
}

/* The filter lists the line for a bus, and what had to go for it leaves the caches there. Returns
 * how long full write queues hold that up. */
static sim_time list_line(struct numa *n, unsigned socket, uint64_t line, sim_time at_ps)
{
    if (!has_filter(n))
        return 0;
    const uint64_t victim = filter_add(n, socket, line);
    if (victim == SNOOP_FILTER_NONE)
        return 0;
    const struct round r = hub_snoop(n, socket, victim, true, at_ps);
    if (r.found)
        NUMA_COUNT(n, socket, llc_back_invalidations);
    return r.dirty ? numa_dram_write(n, victim, WRITE_SNOOP, r.done_ps) - r.done_ps : 0;
}

static void mark_round(struct round r, struct sim_stamp *stamp)
{
    sim_stamp_mark(stamp, PART_INTERCONNECT, r.asked_ps);
    sim_stamp_mark(stamp, PART_CACHE, r.looked_ps);
    sim_stamp_mark(stamp, PART_INTERCONNECT, r.done_ps);
}

struct request {
    sim_time address_ps;
    sim_time looked_ps;  /* the caches of its bus have been asked */
    sim_time snooped_ps; /* all have */
    sim_time turn_ps;    /* those before it are over */
};

/* The hub, which has the answer at at_ps, gives it when its turn has come; a deferred one with an
 * address phase of its own, and the request itself is over with its snoop phase. */
static sim_time answer(struct numa *n, unsigned socket, struct request request, bool deferred,
                       bool data, sim_time at_ps)
{
    if (deferred) {
        turn_note(n, socket, request.address_ps, request.looked_ps,
                  SIM_MAX(request.looked_ps, request.turn_ps));
        at_ps = deferred_reply(n, socket, at_ps);
        request.address_ps = request.snooped_ps = at_ps;
        request.turn_ps = turn_of(n, socket, at_ps).data_ps;
    }
    sim_time t = SIM_MAX(at_ps + n->params->coherence->hub_return_ps, request.turn_ps);
    if (data)
        t = data_phase(n, socket, MESSAGE_DATA, t);
    turn_note(n, socket, request.address_ps, request.snooped_ps, t);
    return t;
}

static struct fetched fetch(struct numa *n, unsigned core, uint64_t line, bool store,
                            sim_time at_ps, struct sim_stamp *stamp, struct numa_result *result)
{
    const struct numa_coherence_params *p = n->params->coherence;
    const unsigned group = core_group_of(n, core);
    const unsigned socket = n->core_group[group].socket;
    if (has_filter(n))
        snoop_filter_prefetch(&bus_of(n, socket)->filter, line);
    const bool upgrade = numa_has(n, group, line);
    const sim_time address_ps = request(n, socket, at_ps);
    const struct turn turn = turn_of(n, socket, address_ps);
    struct round own = snoop_bus(n, socket, line, group, store, address_ps);
    own.looked_ps = SIM_MAX(own.looked_ps, turn.snoop_ps);
    own.done_ps = SIM_MAX(own.done_ps, turn.snoop_ps);
    const sim_time hub_ps = address_ps + p->hub_ps;
    /* The hub sees the answers of the requester's bus before it would ask another. */
    const struct round other = own.dirty || is_nowhere(n, socket, line)
                                   ? no_round(hub_ps)
                                   : snoop_buses(n, socket, line, store, hub_ps);
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
    t += list_line(n, socket, line, hub_ps);
    t = answer(n, socket, (struct request){ address_ps, own.looked_ps, snooped_ps, turn.data_ps },
               other.asked && store, !upgrade, t);
    sim_stamp_mark(stamp, PART_INTERCONNECT, t);
    n->observed_ps = other.asked ? t : own.looked_ps;
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
    if (has_filter(n))
        snoop_filter_prefetch(&bus_of(n, socket)->filter, line);
    const sim_time address_ps = request(n, socket, at_ps);
    const sim_time turn_ps = turn_of(n, socket, address_ps).data_ps;
    const sim_time over_ps = data_phase(n, socket, MESSAGE_WRITEBACK, SIM_MAX(address_ps, turn_ps));
    const sim_time t = over_ps + n->params->coherence->hub_ps;
    turn_note(n, socket, address_ps, address_ps, over_ps);
    const sim_time accepted_ps = numa_dram_write(n, line, WRITE_VICTIM, t);
    if (has_filter(n)) /* nobody else on the bus had it */
        filter_remove(n, socket, line);
    return accepted_ps - t;
}

static sim_time store_nt(struct numa *n, unsigned core, uint64_t line, sim_time at_ps,
                         struct sim_stamp *stamp)
{
    const unsigned group = core_group_of(n, core);
    const unsigned socket = n->core_group[group].socket;
    sim_time t = request(n, socket, at_ps + n->l2_ps);

    sim_stamp_mark(stamp, PART_CORE, at_ps + n->l2_ps);
    core_group_invalidate(n, group, line);
    const struct round own = snoop_bus(n, socket, line, NO_GROUP, true, t);
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
    sim_time t = request(n, socket, at_ps + n->l2_ps);
    bool dirty = core_group_invalidate(n, group, line) == LINE_M;
    const struct round own = snoop_bus(n, socket, line, NO_GROUP, true, t);
    const struct round other = snoop_buses(n, socket, line, true, t + n->params->coherence->hub_ps);

    if (dirty || own.dirty)
        t = data_phase(n, socket, MESSAGE_WRITEBACK, own.done_ps);
    t = SIM_MAX(SIM_MAX(t, own.done_ps), other.done_ps);
    if (dirty || own.dirty || other.dirty)
        t = numa_dram_write(n, line, WRITE_FLUSH, t + n->params->coherence->hub_ps) -
            n->params->coherence->hub_ps;
    return t;
}

/* A device's request has been looked at, and the I/O unit been told so: it asks for the data, or
 * sends them, with a second request. */
static sim_time second_phase(const struct numa *n, sim_time at_ps)
{
    return at_ps + n->params->coherence->hub_return_ps + n->params->cache->iio_ps;
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
    t = second_phase(n, t) + n->params->coherence->hub_return_ps;
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
    sim_stamp_mark(stamp, PART_CACHE, hub_ps);
    mark_round(r, stamp);
    sim_stamp_mark(stamp, PART_DRAM, t);
    t = second_phase(n, t);
    sim_stamp_mark(stamp, PART_INTERCONNECT, t);
    t = numa_dram_write(n, line, WRITE_DMA, t);
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
                               LINE_BYTES *
                                   ((double)calendar_units_after(data, now_ps) / DATA_UNITS + 1) };
}

static sim_time idle_load_ps(const struct numa *n, unsigned from, unsigned home)
{
    const struct numa_coherence_params *p = n->params->coherence;

    (void)home;
    const struct numa_interconnect_params *bus = n->params->interconnect;
    const bool asks = n->sockets > 1 && !p->snoop_filter;
    const sim_time dram_ps = dram_idle_read_ps(&n->socket[0].dram);
    const sim_time snoop_ps = bus->bus_arbitration_ps + bus->bus_address_ps + p->snoop_lookup_ps;

    return n->l2_ps + bus->bus_arbitration_ps + bus->bus_address_ps + p->hub_ps +
           (asks ? SIM_MAX(dram_ps, snoop_ps) : dram_ps) + p->hub_return_ps +
           bus_of(n, from)->data.slot_ps;
}

/* ---- Set-up and warming ---------------------------------------------------------------------- */

static bool params_check(const struct numa_params *params, const char **why)
{
    const struct numa_coherence_params *p = params->coherence;
    const struct numa_rule rules[] = {
        { params->cache->llc_bytes != 0,
          "cache.llc_size must be 0 with coherence.protocol = \"front_side_bus\"" },
        { p->snoop_filter_bytes != 0 &&
              !numa_sets_fit(p->snoop_filter_bytes, 1, p->snoop_filter_ways),
          "coherence.snoop_filter_size / 64 / coherence.snoop_filter_ways must be a power of two" },
    };

    return numa_rules_hold(rules, SIM_N_ELEMENTS(rules), why);
}

/* All memory is the hub's. */
static unsigned nodes(const struct numa_params *params)
{
    (void)params;
    return 1;
}

static unsigned present_bits(const struct numa *n)
{
    return filter_bit(n, has_filter(n) ? n->sockets : 0);
}

static void init(struct numa *n)
{
    const struct numa_interconnect_params *p = n->params->interconnect;
    const struct numa_coherence_params *filter = n->params->coherence;
    const sim_time line_ps = (sim_time)llround(1000.0 * LINE_BYTES / p->bus_gbyte_s);

    n->protocol = sim_zalloc(n->sockets, sizeof(struct bus));
    if (present_bits(n) <= PRESENT_BITS)
        n->present = sim_zeroed_new(numa_lines(n));
    for (uint32_t i = 0; i < n->sockets; i++) {
        struct bus *bus = bus_of(n, i);
        bus->in_order.depth = p->bus_in_order;
        calendar_init(&bus->address, p->bus_address_ps, ADDRESS_UNITS);
        bus->takeover = (uint32_t)((p->bus_arbitration_ps * ADDRESS_UNITS + p->bus_address_ps / 2) /
                                   p->bus_address_ps);
        calendar_init(&bus->data, line_ps, DATA_UNITS);
        bus->turnaround =
            (uint32_t)((2 * p->bus_turnaround_ps * DATA_UNITS + line_ps / 2) / line_ps);
        if (has_filter(n))
            snoop_filter_init(&bus->filter, filter->snoop_filter_bytes, filter->snoop_filter_ways,
                              numa_lines(n));
    }
}

static void release(struct numa *n)
{
    for (uint32_t i = 0; n->protocol != NULL && has_filter(n) && i < n->sockets; i++)
        snoop_filter_release(&bus_of(n, i)->filter);
    free(n->protocol);
    sim_zeroed_free(n->present, numa_lines(n));
}

static void drop(struct numa *n, uint64_t first, uint64_t end)
{
    for (uint64_t line = first; line < end; line++)
        for (unsigned s = 0; s < n->sockets; s++)
            snoop_bus(n, s, line, NO_GROUP, true, 0);
}

static void drop_all(struct numa *n)
{
    for (uint32_t i = 0; has_filter(n) && i < n->sockets; i++)
        snoop_filter_clear(&bus_of(n, i)->filter);
    if (n->present == NULL)
        return;
    sim_zeroed_free(n->present, numa_lines(n));
    n->present = sim_zeroed_new(numa_lines(n));
}

/* ---- Invariant: a filter of limited size lists every line of its bus's caches, and is noted -- */

struct walk {
    const struct numa *n;
    unsigned group;
    struct coherence_check *check;
};

static void check_line(void *context, uint64_t line, int way, uint32_t word)
{
    struct walk *w = context;
    const unsigned socket = w->n->core_group[w->group].socket;

    (void)way, (void)word;
    if (has_filter(w->n) && !snoop_filter_has(&bus_of(w->n, socket)->filter, line))
        coherence_check_fail(w->check, line, "in an L2, but not in the snoop filter");
    if (has_filter(w->n) && !filter_has(w->n, socket, line))
        coherence_check_fail(w->check, line, "in a snoop filter, but not noted");
    if (!numa_may_have(w->n, w->group, line))
        coherence_check_fail(w->check, line, "in an L2, but not noted");
}

static void check(const struct numa *n, struct coherence_check *check)
{
    for (unsigned c = 0; c < n->sockets * n->groups_per_socket; c++) {
        struct walk w = { n, c, check };
        cache_each(&n->core_group[c].l2, &w, check_line);
    }
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
    .drop_all = drop_all,
    .check = check,
};
