/*
 * The engines of dsa.accelerator move bytes.
 *
 * Models: a move as reads of the lines that hold a line of the destination, each with a read buffer
 *   from its issue until its data has left as a write; read buffers of all engines together, those
 *   reserved for a group, those it may have at most, the limit that groups may share; engines by
 *   turns, an engine's descriptors in the order in which they began; a move of ranges that overlap,
 *   line after line from the end that is safe; errors of reads.
 * Does not model: source lines kept for the next line of the destination where both lie differently
 *   in their lines (such a line is read twice); the Cache Control flag (writes go where the root
 *   complex sends those of devices: with DDIO into the LLC).
 * Timing: one line, of whatever engine, is read per `read_interval_ns`; writes come as far apart as
 *   the data of their reads. Read buffers * 64 bytes per round trip of a read at most. The rest is
 *   the root complex's and memory's.
 * Sources: Intel Data Streaming Accelerator Architecture Specification, "Read buffers" (before:
 *   bandwidth tokens), "Memory Move"; docs/sources.md#dsa.
 */
#include <string.h>

#include "models/base/payload.h"
#include "models/dsa/dsa_internal.h"

/* ---- Read buffers ---------------------------------------------------------------------------- */

static uint32_t reserved_of(const struct dsa_group *group)
{
    return (uint32_t)(group->flags >> DSA_GRPFLAGS_RESERVED_SHIFT) & 0xffu;
}

/* Its next buffer would be one that all groups share. */
static bool takes_shared(const struct dsa_group *group)
{
    return group->buffers >= reserved_of(group);
}

static bool may_take(const struct dsa_device *dsa, const struct dsa_group *group)
{
    const uint32_t allowed = (uint32_t)(group->flags >> DSA_GRPFLAGS_ALLOWED_SHIFT) & 0xffu;
    if (dsa->free_unit == NULL || group->buffers >= allowed)
        return false;
    if (!takes_shared(group))
        return true;
    if (dsa->shared_buffers >= dsa->params.read_buffers - dsa->reserved_buffers)
        return false;
    return (group->flags & DSA_GRPFLAGS_LIMIT) == 0 || dsa->limited_buffers < dsa->gencfg;
}

static struct dsa_unit *buffer_take(struct dsa_device *dsa, struct dsa_group *group)
{
    struct dsa_unit *unit = dsa->free_unit;
    dsa->free_unit = unit->next;
    if (takes_shared(group)) {
        dsa->shared_buffers++;
        dsa->limited_buffers += (group->flags & DSA_GRPFLAGS_LIMIT) != 0;
    }
    group->buffers++;
    dsa->buffers++;
    dsa->stats.buffers_max = SIM_MAX(dsa->stats.buffers_max, dsa->buffers);
    return unit;
}

static void buffer_free(struct dsa_device *dsa, struct dsa_group *group, struct dsa_unit *unit)
{
    unit->next = dsa->free_unit;
    dsa->free_unit = unit;
    group->buffers--;
    dsa->buffers--;
    if (takes_shared(group)) {
        dsa->shared_buffers--;
        dsa->limited_buffers -= (group->flags & DSA_GRPFLAGS_LIMIT) != 0;
    }
}

/* ---- Units ----------------------------------------------------------------------------------- */

static void fail(struct dsa_work *work, const struct dsa_unit *unit, bool write, uint64_t address)
{
    if (work->outcome.status != DSA_STATUS_NONE && work->outcome.completed <= unit->offset)
        return;
    work->outcome = (struct dsa_outcome){ .status = DSA_STATUS_FAULT,
                                          .fault_write = write,
                                          .fault_address = address,
                                          .completed = work->backward ? 0 : unit->offset };
}

static void unit_ends(struct dsa_unit *unit)
{
    struct dsa_work *work = unit->work;
    struct dsa_device *dsa = work->dsa;

    buffer_free(dsa, work->engine->group, unit);
    work->n_units--;
    const bool stops = work->aborted || work->outcome.status != DSA_STATUS_NONE;
    if (work->n_units == 0 && (stops || work->issued == work->descriptor.bytes)) {
        if (!stops)
            work->outcome = (struct dsa_outcome){ .status = DSA_STATUS_SUCCESS,
                                                  .completed = work->descriptor.bytes };
        dsa_work_end(work);
    }
    dsa_move(dsa);
}

static void unit_written(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct dsa_unit *unit = SIM_CONTAINER(request, struct dsa_unit, write);
    if (status == PCIE_DMA_OK)
        unit->work->dsa->stats.bytes += unit->bytes;
    else
        fail(unit->work, unit, true, request->iova.v);
    unit_ends(unit);
}

/* Puts n bytes at `from` of the lines read into the destination's line at `to`. Marks of bulk
 * payload are made anew where they lie differently in their line; all other bytes are what they
 * were. */
static void shift_bytes(struct dsa_unit *unit, unsigned to, unsigned from, unsigned n)
{
    if (to == 0 && from % LINE_BYTES == 0 && n == LINE_BYTES) {
        memcpy(unit->line, unit->source + from, n);
        return;
    }
    while (n != 0) {
        const unsigned in_line = from % LINE_BYTES;
        uint64_t mark;
        unsigned run = payload_line_run(unit->source + from - in_line, in_line,
                                        SIM_MIN(n, (unsigned)LINE_BYTES - in_line), &mark);
        if (mark != 0)
            payload_line_put(unit->line, to, mark, run);
        else
            memcpy(unit->line + to, unit->source + from, run);
        to += run;
        from += run;
        n -= run;
    }
}

static void unit_arrived(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct dsa_unit *unit = SIM_CONTAINER(request, struct dsa_unit, read);
    struct dsa_work *work = unit->work;
    const struct dsa_descriptor *d = &work->descriptor;
    const uint64_t source = d->source + unit->offset, destination = d->destination + unit->offset;
    const unsigned to = (unsigned)(destination % LINE_BYTES);

    if (status != PCIE_DMA_OK)
        fail(work, unit, false, source);
    if (status != PCIE_DMA_OK || work->aborted) {
        unit_ends(unit);
        return;
    }
    shift_bytes(unit, to, (unsigned)(source % LINE_BYTES), unit->bytes);
    unit->write = (struct pcie_dma_request){ .iova = { destination },
                                             .bytes = unit->bytes,
                                             .buffer = unit->line + to,
                                             .done = unit_written };
    pcie_dma_write(&work->dsa->function.dma, &unit->write, 0);
}

/* Where the work's next line of the destination begins within the move, and its bytes. */
static uint64_t next_line(const struct dsa_work *work, uint32_t *bytes)
{
    const struct dsa_descriptor *d = &work->descriptor;
    const uint64_t left = d->bytes - work->issued;
    if (!work->backward) {
        const uint64_t at = d->destination + work->issued;
        *bytes = (uint32_t)SIM_MIN(left, LINE_BYTES - at % LINE_BYTES);
        return work->issued;
    }
    const uint64_t end = d->destination + left;
    *bytes = (uint32_t)SIM_MIN(left, (end - 1) % LINE_BYTES + 1);
    return left - *bytes;
}

/* When the line that is to be read now leaves. */
static sim_time read_slot(struct dsa_device *dsa)
{
    const sim_time at_ps = SIM_MAX(dsa_now(dsa), dsa->next_read_ps);
    dsa->next_read_ps = at_ps + dsa->params.read_interval_ps;
    return at_ps;
}

static void issue(struct dsa_work *work)
{
    struct dsa_device *dsa = work->dsa;
    struct dsa_unit *unit = buffer_take(dsa, work->engine->group);
    unit->work = work;
    unit->offset = next_line(work, &unit->bytes);
    const uint64_t source = work->descriptor.source + unit->offset;
    const uint64_t first = source & ~(LINE_BYTES - 1);
    const uint64_t end = (source + unit->bytes + LINE_BYTES - 1) & ~(LINE_BYTES - 1);
    work->issued += unit->bytes;
    work->n_units++;
    unit->read = (struct pcie_dma_request){ .iova = { first },
                                            .bytes = end - first,
                                            .buffer = unit->source,
                                            .independent = !work->serial,
                                            .done = unit_arrived };
    pcie_dma_read(&dsa->function.dma, &unit->read, read_slot(dsa));
}

/* ---- Engines --------------------------------------------------------------------------------- */

static struct dsa_work *next_work(const struct dsa_engine *engine)
{
    for (struct dsa_work *work = engine->moving; work != NULL; work = work->next)
        if (work->issued != work->descriptor.bytes && !work->aborted &&
            work->outcome.status == DSA_STATUS_NONE && (!work->serial || work->n_units == 0))
            return work;
    return NULL;
}

void dsa_move(struct dsa_device *dsa)
{
    const uint32_t n = dsa->params.engines;
    bool short_of = false;
    for (uint32_t idle = 0; idle < n;) {
        struct dsa_engine *engine = &dsa->engine[dsa->move_turn];
        struct dsa_work *work = next_work(engine);
        dsa->move_turn = (dsa->move_turn + 1) % n;
        if (work == NULL || !may_take(dsa, engine->group)) {
            short_of |= work != NULL;
            idle++;
            continue;
        }
        idle = 0;
        issue(work);
    }
    dsa->stats.buffer_waits += short_of && !dsa->short_of;
    dsa->short_of = short_of;
}

void dsa_move_begin(struct dsa_work *work)
{
    const struct dsa_descriptor *d = &work->descriptor;
    struct dsa_work **at = &work->engine->moving;
    work->serial = d->source < d->destination + d->bytes && d->destination < d->source + d->bytes;
    work->backward = work->serial && d->source < d->destination;
    work->moving = true;
    work->next = NULL;
    while (*at != NULL)
        at = &(*at)->next;
    *at = work;
    dsa_move(work->dsa);
}

void dsa_move_init(struct dsa_device *dsa)
{
    dsa->units = sim_zalloc(dsa->params.read_buffers, sizeof(*dsa->units));
    for (uint32_t i = dsa->params.read_buffers; i-- > 0;) {
        dsa->units[i].next = dsa->free_unit;
        dsa->free_unit = &dsa->units[i];
    }
}
