/*
 * media = "nand": TLC flash behind a translation layer and a buffer of DRAM.
 *
 * Models: dies on channels, with planes that read and program together; three kinds of pages with
 *   times of their own; reads of the same unit that share one; programming and erasing that reads
 *   suspend, or wait for; reads before queued programs, as long as few of these wait; a buffer
 *   that keeps data when power goes, so that a write is safe in it, and that is full when dies are
 *   behind; the controller's path for data; the translation layer with garbage collection
 *   (nvme_ftl.c); reads repeated with other reference voltages.
 * Does not model: reads ahead, reads of single planes at different places at once, what collection
 *   does to channels (it takes the dies' time), a limit to how often a program is suspended. A
 *   write that waits for room is not delayed by reads that come after it. Data that do not fill a
 *   page take a page; what it held before is not read for them.
 * Timing: wire(n) = n (1 + ecc_ratio) / channel_gbyte_s; a unit is a page of all planes of a die.
 *     read  from = begin + read_latency
 *           start = max(from; what the die does is done, or from + suspend)
 *           sensed = start + die_read + kind x page_kind_step [+ retry]
 *           there = sensed + wire(bytes), when the channel has a gap for that;
 *                   from, if the page is in the buffer or nowhere
 *           ready = there + bytes / read_gbyte_s, when the path has a gap
 *     write ready = max(through the path at write_gbyte_s; a unit in the buffer is programmed, if
 *     it is full)
 *                   + write_latency
 *           a unit is programmed in what its die has to do before + wire(unit) + die_write
 *     collection: die_read and wire for units read, wire and die_write for units written, die_erase
 * Sources: docs/sources.md#media.
 */
#include <stdlib.h>
#include <string.h>

#include "models/nvme/nvme_ftl.h"
#include "models/nvme/nvme_media.h"

#define NAND_OPS  32u /* of a die that are kept apart; more are done as one */
#define NAND_GAPS 64u /* reservations of a channel that are kept apart */
#define NO_UNIT   UINT32_MAX
#define KINDS     3u /* of pages: a cell has three bits */

struct nand_die {
    sim_time free_ps;      /* of what it does, or has done last */
    bool can_suspend;      /* what it does */
    uint32_t in_registers; /* unit, or NO_UNIT */
    sim_time registers_ps; /* since */
    uint32_t head, n_ops;  /* what it has to do behind that: */
    sim_time op_ps[NAND_OPS];
    sim_time backlog_ps;          /* the sum */
    struct nand_pending *pending; /* units in the buffer: n_pending of nand, in a ring */
    uint32_t next_pending;
};
struct nand_pending {
    uint32_t unit;
    sim_time programmed_ps;
};

struct nand_channel {
    uint32_t n;
    struct {
        sim_time from_ps, to_ps;
    } busy[NAND_GAPS]; /* in their order, with gaps */
};

struct nand {
    struct ftl ftl;
    struct nand_die *die;
    struct nand_channel *channel; /* and behind them the controller's path to the host */
    uint64_t read_fs_per_byte, write_fs_per_byte; /* on that */
    sim_time write_path_ps;                       /* it is free for writes */
    uint32_t unit_bytes, n_pending;
    sim_time unit_wire_ps;
    sim_time *programmed_ps; /* of the units in the buffer, a heap: the first is the earliest */
    uint32_t n_buffered, n_buffer;
};

/* ---- Set-up ---------------------------------------------------------------------------------- */

static struct ftl_geometry geometry_of(const struct nvme_params *params)
{
    const struct nvme_media_params *media = &params->media;
    const uint64_t pages = (params->capacity_bytes + NVME_PAGE_BYTES - 1) / NVME_PAGE_BYTES;
    return (struct ftl_geometry){
        .n_dies = params->n_channels * media->n_dies,
        .unit_pages = media->n_planes * media->flash_page_bytes / NVME_PAGE_BYTES,
        .block_units = media->block_pages,
        .n_pages = (uint32_t)SIM_MIN(pages * params->n_namespaces, UINT32_MAX),
        .spare_ratio = media->spare_ratio,
        .gc_blocks = media->gc_blocks,
        .preconditioned = media->preconditioned,
    };
}

bool nvme_media_nand_fits(const struct nvme_params *params)
{
    const struct ftl_geometry geometry = geometry_of(params);
    return ftl_fits(&geometry);
}

static void nand_init(struct nvme_subsystem *sub)
{
    const struct nvme_params *params = &sub->params;
    const struct ftl_geometry geometry = geometry_of(params);
    struct nand *nand = sim_zalloc(1, sizeof(*nand));
    ftl_init(&nand->ftl, sub->model->sim, &geometry, &sub->model->random);
    nand->unit_bytes = geometry.unit_pages * NVME_PAGE_BYTES;
    nand->unit_wire_ps = nvme_media_wire_ps(&params->media, nand->unit_bytes);
    nand->n_buffer = (uint32_t)SIM_MAX(params->media.write_buffer_bytes / nand->unit_bytes, 1u);
    nand->n_pending = SIM_MIN(nand->n_buffer, 4 * (nand->n_buffer / geometry.n_dies + 2));
    nand->programmed_ps = sim_zalloc(nand->n_buffer, sizeof(*nand->programmed_ps));
    nand->die = sim_zalloc(geometry.n_dies, sizeof(*nand->die));
    nand->channel = sim_zalloc(params->n_channels + 1, sizeof(*nand->channel));
    nand->read_fs_per_byte = (uint64_t)(1e6 / params->read_gbyte_s + 0.5);
    nand->write_fs_per_byte = (uint64_t)(1e6 / params->write_gbyte_s + 0.5);
    for (uint32_t i = 0; i < geometry.n_dies; i++) {
        nand->die[i].in_registers = NO_UNIT;
        nand->die[i].pending = sim_zalloc(nand->n_pending, sizeof(struct nand_pending));
    }
    sub->media_state = nand;
}

static void nand_release(struct nvme_subsystem *sub)
{
    struct nand *nand = sub->media_state;
    for (uint32_t i = 0; i < nand->ftl.geometry.n_dies; i++)
        free(nand->die[i].pending);
    ftl_release(&nand->ftl);
    free(nand->programmed_ps);
    free(nand->die);
    free(nand->channel);
    free(nand);
}

/* ---- Channels -------------------------------------------------------------------------------- */

static void channel_forget(struct nand_channel *channel, sim_time now_ps)
{
    uint32_t n = 0;
    while (n < channel->n && channel->busy[n].to_ps <= now_ps)
        n++;
    if (n == 0)
        return;
    channel->n -= n;
    memmove(channel->busy, channel->busy + n, channel->n * sizeof(channel->busy[0]));
}

/* The end of the first ps that are free from `from_ps` on; they are taken. */
static sim_time channel_take(struct nand_channel *channel, sim_time now_ps, sim_time from_ps,
                             sim_time ps)
{
    uint32_t i;
    channel_forget(channel, now_ps);
    for (i = 0; i < channel->n && channel->busy[i].from_ps < from_ps + ps; i++)
        from_ps = SIM_MAX(from_ps, channel->busy[i].to_ps);
    if (i != 0 && channel->busy[i - 1].to_ps == from_ps) {
        channel->busy[i - 1].to_ps += ps;
    } else if (channel->n == NAND_GAPS) { /* behind all; the gap before is lost */
        from_ps = SIM_MAX(from_ps, channel->busy[NAND_GAPS - 1].to_ps);
        channel->busy[NAND_GAPS - 1].to_ps = from_ps + ps;
    } else {
        memmove(channel->busy + i + 1, channel->busy + i,
                (channel->n - i) * sizeof(channel->busy[0]));
        channel->busy[i].from_ps = from_ps;
        channel->busy[i].to_ps = from_ps + ps;
        channel->n++;
    }
    return from_ps + ps;
}

static sim_time die_sends(struct nvme_subsystem *sub, uint32_t die, sim_time from_ps, sim_time ps)
{
    struct nand *nand = sub->media_state;
    sub->stats.media.ps += ps;
    return channel_take(&nand->channel[die % sub->params.n_channels], sim_now(sub->model->sim),
                        from_ps, ps);
}

/* ---- Dies ------------------------------------------------------------------------------------ */

static void op_begin(struct nand_die *die)
{
    const sim_time ps = die->op_ps[die->head];
    die->head = (die->head + 1) % NAND_OPS;
    die->n_ops--;
    die->free_ps += ps;
    die->backlog_ps -= ps;
    die->can_suspend = true;
    die->in_registers = NO_UNIT;
}

/* What it can have begun by then. */
static void die_advance(struct nand_die *die, sim_time to_ps)
{
    while (die->n_ops != 0 && die->free_ps <= to_ps)
        op_begin(die);
}

/* Something to do behind what it has; returns when that will be done. */
static sim_time die_add(struct nand_die *die, sim_time now_ps, sim_time ps)
{
    die_advance(die, now_ps);
    if (die->n_ops == 0)
        die->free_ps = SIM_MAX(die->free_ps, now_ps);
    if (die->n_ops == NAND_OPS)
        die->op_ps[(die->head + NAND_OPS - 1) % NAND_OPS] += ps;
    else
        die->op_ps[(die->head + die->n_ops++) % NAND_OPS] = ps;
    die->backlog_ps += ps;
    return die->free_ps + die->backlog_ps;
}

/* The rest of what it does comes behind a read that begins now. */
static void die_suspend(struct nand_die *die, sim_time at_ps)
{
    const sim_time rest_ps = die->free_ps - at_ps;
    if (die->n_ops == NAND_OPS) {
        die->op_ps[die->head] += rest_ps;
    } else {
        die->head = (die->head + NAND_OPS - 1) % NAND_OPS;
        die->op_ps[die->head] = rest_ps;
        die->n_ops++;
    }
    die->backlog_ps += rest_ps;
}

/* The unit is in the die's registers. */
static sim_time die_read(struct nvme_subsystem *sub, uint32_t number, uint32_t unit,
                         sim_time from_ps)
{
    const struct nvme_media_params *params = &sub->params.media;
    struct nand *nand = sub->media_state;
    struct nand_die *die = &nand->die[number];
    die_advance(die, from_ps);
    if (die->in_registers == unit && from_ps <= die->registers_ps)
        return die->registers_ps;
    sim_time start_ps = SIM_MAX(from_ps, die->free_ps);
    if (die->n_ops >= NAND_OPS / 2) { /* the buffer needs room, too */
        op_begin(die);
        start_ps = die->free_ps;
    } else if (die->can_suspend && params->suspend_ps != 0 &&
               start_ps > from_ps + params->suspend_ps) {
        start_ps = from_ps + params->suspend_ps;
        die_suspend(die, start_ps);
        sub->stats.media_suspends++;
    }
    die->free_ps = start_ps + params->die_read_ps +
                   unit % params->block_pages % KINDS * params->page_kind_step_ps +
                   nvme_media_retry(sub);
    die->can_suspend = false;
    die->in_registers = unit;
    die->registers_ps = die->free_ps;
    return die->free_ps;
}

/* ---- Reads ----------------------------------------------------------------------------------- */

/* Filled, and not programmed yet. */
static bool is_pending(const struct nand *nand, const struct ftl_place *place, sim_time at_ps)
{
    const struct nand_die *die = &nand->die[place->die];
    if (die->free_ps + die->backlog_ps <= at_ps)
        return false;
    for (uint32_t i = 0; i < nand->n_pending; i++)
        if (die->pending[i].unit == place->unit && die->pending[i].programmed_ps > at_ps)
            return true;
    return false;
}

static sim_time nand_read(struct nvme_subsystem *sub, const struct nvme_media_access *access)
{
    struct nand *nand = sub->media_state;
    const sim_time from_ps = access->from_ps + sub->params.read_ps;
    const struct ftl_place place = ftl_find(&nand->ftl,
                                            (uint32_t)(access->offset / NVME_PAGE_BYTES));
    if (!place.somewhere || place.in_buffer || is_pending(nand, &place, from_ps))
        return from_ps;
    const sim_time registers_ps = die_read(sub, place.die, place.unit, from_ps);
    return die_sends(sub, place.die, registers_ps,
                     nvme_media_wire_ps(&sub->params.media, access->bytes));
}

/* Through the controller. */
static sim_time nand_read_path(struct nvme_subsystem *sub, const struct nvme_media_access *access)
{
    struct nand *nand = sub->media_state;
    return channel_take(&nand->channel[sub->params.n_channels], sim_now(sub->model->sim),
                        nand_read(sub, access),
                        (access->bytes * nand->read_fs_per_byte + 500) / 1000);
}

/* ---- Writes ---------------------------------------------------------------------------------- */

static void collection_adds(struct nvme_subsystem *sub, const struct ftl_collection *work,
                            sim_time now_ps)
{
    const struct nvme_media_params *params = &sub->params.media;
    const struct nand *nand = sub->media_state;
    struct nand_die *die = &nand->die[work->die];
    const sim_time page_ps = nvme_media_wire_ps(params, NVME_PAGE_BYTES);
    if (work->n_reads != 0)
        die_add(die, now_ps,
                work->n_reads * (params->die_read_ps + params->page_kind_step_ps) +
                    work->n_moved * page_ps);
    for (uint32_t i = 0; i < work->n_programs; i++)
        die_add(die, now_ps, nand->unit_wire_ps + params->die_write_ps);
    for (uint32_t i = 0; i < work->n_erases; i++)
        die_add(die, now_ps, params->die_erase_ps);
    sub->stats.media_moved_bytes += (uint64_t)work->n_moved * NVME_PAGE_BYTES;
    sub->stats.media_erases += work->n_erases;
    sub->stats.media_programmed_bytes += (uint64_t)work->n_programs * nand->unit_bytes;
}

/* A unit is in the buffer until then; in the place of the one that leaves first, if it is full. */
static void buffer_add(struct nand *nand, sim_time programmed_ps)
{
    sim_time *heap = nand->programmed_ps;
    uint32_t at = 0, next;
    if (nand->n_buffered < nand->n_buffer) {
        for (at = nand->n_buffered++; at != 0 && heap[(at - 1) / 2] > programmed_ps;
             at = (at - 1) / 2)
            heap[at] = heap[(at - 1) / 2];
        heap[at] = programmed_ps;
        return;
    }
    for (; (next = 2 * at + 1) < nand->n_buffer; at = next) {
        next += next + 1 < nand->n_buffer && heap[next + 1] < heap[next];
        if (heap[next] >= programmed_ps)
            break;
        heap[at] = heap[next];
    }
    heap[at] = programmed_ps;
}

static void unit_full(struct nvme_subsystem *sub, const struct ftl_work *work, sim_time now_ps)
{
    struct nand *nand = sub->media_state;
    struct nand_die *die = &nand->die[work->die];
    const sim_time programmed_ps = die_add(die, now_ps,
                                           nand->unit_wire_ps + sub->params.media.die_write_ps);
    die_sends(sub, work->die, now_ps, nand->unit_wire_ps);
    buffer_add(nand, programmed_ps);
    die->pending[die->next_pending++ % nand->n_pending] =
        (struct nand_pending){ .unit = work->unit, .programmed_ps = programmed_ps };
    sub->stats.media_programmed_bytes += nand->unit_bytes;
}

static sim_time nand_write(struct nvme_subsystem *sub, const struct nvme_media_access *access)
{
    struct nand *nand = sub->media_state;
    const uint32_t page = (uint32_t)(access->offset / NVME_PAGE_BYTES);
    const sim_time now_ps = access->from_ps;
    const struct ftl_place place = ftl_find(&nand->ftl, page);
    const sim_time room_ps = nand->n_buffered == nand->n_buffer ? nand->programmed_ps[0] : 0;
    struct ftl_work work;
    nand->write_path_ps = SIM_MAX(nand->write_path_ps, now_ps) +
                          (access->bytes * nand->write_fs_per_byte + 500) / 1000;
    if (place.in_buffer)
        return nand->write_path_ps + sub->params.write_ps;
    ftl_write(&nand->ftl, page, &work);
    if (work.program)
        unit_full(sub, &work, now_ps);
    for (uint32_t i = 0; i < work.n_collections; i++)
        collection_adds(sub, &work.collection[i], now_ps);
    sub->stats.media_buffer_waits += room_ps > now_ps;
    return SIM_MAX(nand->write_path_ps, room_ps) + sub->params.write_ps;
}

static sim_time nand_ready(struct nvme_subsystem *sub, const struct nvme_media_access *access)
{
    return access->write ? nand_write(sub, access) : nand_read_path(sub, access);
}

/* What the drive is preconditioned with is somewhere already. */
static void nand_hold(struct nvme_subsystem *sub, uint64_t offset, uint64_t bytes)
{
    struct nand *nand = sub->media_state;
    struct ftl_work work;
    if (nand->ftl.geometry.preconditioned != NVME_FRESH)
        return;
    for (uint64_t at = offset; at < offset + bytes; at += NVME_PAGE_BYTES) {
        const uint32_t page = (uint32_t)(at / NVME_PAGE_BYTES);
        if (!ftl_find(&nand->ftl, page).somewhere)
            ftl_write(&nand->ftl, page, &work);
    }
}

static void nand_deallocate(struct nvme_subsystem *sub, uint64_t offset, uint64_t bytes)
{
    struct nand *nand = sub->media_state;
    ftl_deallocate(&nand->ftl, (uint32_t)(offset / NVME_PAGE_BYTES),
                   (uint32_t)(bytes / NVME_PAGE_BYTES));
}

static uint64_t nand_ahead_ps(const struct nvme_subsystem *sub, sim_time now_ps)
{
    const struct nand *nand = sub->media_state;
    uint64_t ahead_ps = 0;
    for (uint32_t c = 0; c < sub->params.n_channels; c++)
        for (uint32_t i = 0; i < nand->channel[c].n; i++) {
            const sim_time from_ps = SIM_MAX(nand->channel[c].busy[i].from_ps, now_ps);
            ahead_ps += SIM_MAX(nand->channel[c].busy[i].to_ps, from_ps) - from_ps;
        }
    return ahead_ps;
}

static double nand_wear(const struct nvme_subsystem *sub)
{
    const struct nand *nand = sub->media_state;
    return ftl_wear(&nand->ftl) / sub->params.media.endurance_cycles;
}

const struct nvme_media_ops nvme_media_nand = {
    .name = "nand",
    .init = nand_init,
    .release = nand_release,
    .ready = nand_ready,
    .deallocate = nand_deallocate,
    .hold = nand_hold,
    .ahead_ps = nand_ahead_ps,
    .wear = nand_wear,
};
