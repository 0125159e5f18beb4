/*
 * What it does: moves one range of bytes between two pinned buffers: cuts it where a page ends on
 *   either side, gives the pieces to the lanes (channels) that schedule.c has chosen, and knows
 *   when all have ended. What a channel cannot take for want of room waits in its list, and goes on
 *   when copies end. What the engine has failed to copy, or has not in time, the CPU copies.
 * Follows: sections 3.1 and 3.4 of the paper. Linux' ioatdma (2.6.18) has the engine begin after
 *   every 20 descriptors of a channel, and at the end of a call.
 * Costs: a descriptor and its doorbell what logic/dma charges; a check a look at each channel.
 */
#include <errno.h>

#include "logic/copy/adma_internal.h"

#define ISSUE_EVERY 20u
#define STEP_PS     (20 * K_US) /* a killed process notices at the latest after that */

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- The CPU --------------------------------------------------------------------------------- */

/* A place of a buffer in memory, and how many bytes its page goes on. */
static struct kaddr place(const struct adma_buffer *buffer, uint64_t at, uint64_t *left)
{
    uint64_t in_page;
    const struct adma_pin *pin = adma_pin_at(buffer, at, &in_page);
    *left = K_PAGE_BYTES - in_page;
    return kaddr_add(pin->addr, in_page);
}

/* [at, end), in runs that are contiguous on both sides. */
static void cpu_copy(struct adma_transfer *t, uint64_t at, uint64_t end)
{
    while (at < end) {
        uint64_t from_left, to_left, run = 0;
        const struct kaddr from = place(t->from, t->from_at + at, &from_left);
        const struct kaddr to = place(t->to, t->to_at + at, &to_left);
        for (struct kaddr a = from, b = to; a.v == from.v + run && b.v == to.v + run;) {
            run += min_u64(end - at - run, min_u64(from_left, to_left));
            if (at + run == end)
                break;
            a = place(t->from, t->from_at + at + run, &from_left);
            b = place(t->to, t->to_at + at + run, &to_left);
        }
        k_copy(t->adma->kernel, to, from, run);
        at += run;
    }
}

static void copy_by_cpu(struct adma_transfer *t, struct adma_process *by, uint64_t at, uint64_t end)
{
    struct kernel *kernel = t->adma->kernel;
    uint64_t since_ps = k_now_ps(kernel);
    t->state = TRANSFER_BY_CPU;
    cpu_copy(t, at, end);
    const uint64_t took_ps = adma_lap(kernel, &since_ps);
    t->adma->stats.cpu_bytes += end - at;
    by->times.cpu_copy_ps += took_ps;
    t->spent_ps += took_ps;
    t->state = TRANSFER_DONE;
    adma_transfer_ended(t);
}

/* ---- Ends of copies -------------------------------------------------------------------------- */

static void settle(struct adma_transfer *t)
{
    if (t->state != TRANSFER_RUNS || t->n_open != 0 || t->under_way != 0)
        return;
    if (t->bad_from < t->bad_to) {
        t->state = TRANSFER_BAD;
        if (t->target->process->closed)
            adma_reap(t->adma);
        return;
    }
    t->state = TRANSFER_DONE;
    adma_transfer_ended(t);
}

static void note_bad(struct adma_transfer *t, uint64_t at, uint64_t end)
{
    if (t->bad_from >= t->bad_to) {
        t->bad_from = at;
        t->bad_to = end;
        t->adma->stats.redone++;
    }
    t->bad_from = min_u64(t->bad_from, at);
    if (t->bad_to < end)
        t->bad_to = end;
}

static void append_piece(struct adma_lane *lane, struct adma_piece *piece)
{
    piece->next = NULL;
    piece->before = lane->newest;
    if (lane->newest != NULL)
        lane->newest->next = piece;
    else
        lane->oldest = piece;
    lane->newest = piece;
    lane->under_way++;
    lane->transfer->under_way++;
}

static void free_piece(struct adma_piece *piece)
{
    piece->number = 0;
    piece->next = piece->channel->free_pieces;
    piece->channel->free_pieces = piece;
}

static void remove_piece(struct adma_piece *piece)
{
    struct adma_lane *lane = piece->lane;
    if (piece->before != NULL)
        piece->before->next = piece->next;
    else
        lane->oldest = piece->next;
    if (piece->next != NULL)
        piece->next->before = piece->before;
    else
        lane->newest = piece->before;
    lane->under_way--;
    lane->transfer->under_way--;
    free_piece(piece);
}

/* What to wait for: the lane's last copy, or, where copies end in any order, its first. */
static dma_cookie next_end(const struct adma_lane *lane)
{
    const struct adma_piece *piece = lane->newest;
    if (!dma_channel_limits(lane->channel->dma)->in_order)
        piece = lane->oldest;
    return piece != NULL ? piece->cookie : 0;
}

static void feed(struct adma_channel *channel);

static void copy_ended(void *arg, dma_cookie cookie, enum dma_state state)
{
    struct adma_piece *piece = arg;
    struct adma_channel *channel = piece->channel;
    struct adma_lane *lane = piece->lane;
    struct adma_transfer *t = lane->transfer;
    (void)cookie;
    channel->bytes_under_way -= piece->bytes;
    if (state == DMA_COMPLETE)
        t->adma->stats.engine_bytes += piece->bytes;
    else
        note_bad(t, piece->at, piece->at + piece->bytes);
    remove_piece(piece);
    settle(t);
    if (channel->waiting != NULL &&
        dma_channel_room(channel->dma) >= dma_channel_limits(channel->dma)->ring / 4)
        feed(channel);
}

/* ---- Giving copies to channels --------------------------------------------------------------- */

/* Where the unit ends, as a place in the transfer. */
static uint64_t unit_end(const struct adma_transfer *t, uint64_t unit)
{
    const uint64_t in_page = (t->from->at.v + t->from_at) % K_PAGE_BYTES;
    return min_u64(t->bytes, (unit + 1) * K_PAGE_BYTES - in_page);
}

/* All of it has been given. Its transfer may end as soon as time passes, and its structure be
 * another's: so it leaves the list now, whose first it is if it waits. */
static void close_lane(struct adma_lane *lane)
{
    struct adma_channel *channel = lane->channel;
    if (lane->waiting)
        channel->waiting = lane->next;
    lane->waiting = false;
    lane->open = false;
    lane->transfer->n_open--;
}

static void advance(struct adma_lane *lane, uint64_t bytes)
{
    const struct adma_transfer *t = lane->transfer;
    lane->at += bytes;
    if (lane->at < unit_end(t, lane->unit))
        return;
    lane->unit += t->n_lanes;
    if (lane->unit >= t->n_units)
        close_lane(lane);
    else
        lane->at = unit_end(t, lane->unit - 1);
}

/* The CPU has to copy the lane's next bytes. */
static bool refuse(struct adma_lane *lane, uint64_t bytes)
{
    lane->channel->bytes_under_way -= bytes;
    note_bad(lane->transfer, lane->at, lane->at + bytes);
    advance(lane, bytes);
    settle(lane->transfer);
    return true;
}

/* Gives the next copy of the lane. False: the ring is full. What the engine refuses is the
 * CPU's. */
static bool give(struct adma_lane *lane)
{
    struct adma_transfer *t = lane->transfer;
    struct adma_channel *channel = lane->channel;
    const unsigned ring = dma_channel_limits(channel->dma)->ring;
    const unsigned room = dma_channel_room(channel->dma);
    const uint64_t at = lane->at, unit = unit_end(t, lane->unit);
    const bool more = (t->n_units - lane->unit) / t->n_lanes >= room;
    uint64_t in_from, in_to, bytes;
    const struct adma_pin *from = adma_pin_at(t->from, t->from_at + at, &in_from);
    const struct adma_pin *to = adma_pin_at(t->to, t->to_at + at, &in_to);
    struct adma_piece *piece = channel->free_pieces;
    struct dma_descriptor *descriptor;
    int status = -ENODEV;

    if (piece == NULL)
        return false;
    channel->free_pieces = piece->next;
    bytes = min_u64(unit - at, K_PAGE_BYTES - in_to);
    bytes = min_u64(bytes, dma_channel_limits(channel->dma)->copy_bytes_max);
    if ((from->mapped & to->mapped) >> channel->map & 1)
        status = dma_prepare_copy(
            channel->dma, to->dma[channel->map] + in_to, from->dma[channel->map] + in_from, bytes,
            more && (room <= 1 || room == ring / 2) ? DMA_INTERRUPT : 0, &descriptor);
    if (status != 0) {
        free_piece(piece);
        return status != -EBUSY && refuse(lane, bytes);
    }
    const uint64_t number = ++channel->n_given;
    *piece = (struct adma_piece){
        .channel = channel, .lane = lane, .at = at, .bytes = bytes, .number = number
    };
    descriptor->callback = copy_ended;
    descriptor->arg = piece;
    append_piece(lane, piece);
    t->adma->stats.descriptors++;
    advance(lane, bytes);
    const dma_cookie cookie = dma_submit(descriptor);
    if (cookie > channel->newest)
        channel->newest = cookie;
    if (piece->number == number) /* else it has been aborted */
        piece->cookie = cookie;
    channel->not_issued++;
    return true;
}

static void issue(struct adma_channel *channel, unsigned at_least)
{
    if (channel->not_issued < at_least)
        return;
    channel->not_issued = 0;
    dma_issue_pending(channel->dma);
}

static void wait_for_room(struct adma_lane *lane)
{
    struct adma_channel *channel = lane->channel;
    lane->next = NULL;
    lane->waiting = true;
    if (channel->waiting == NULL)
        channel->waiting = lane;
    else
        channel->waiting_last->next = lane;
    channel->waiting_last = lane;
}

/* As much of what waits as there is room for. */
static void feed(struct adma_channel *channel)
{
    if (channel->feeding || channel->terminating)
        return;
    channel->feeding = true;
    /* A lane that has been given wholly has left the list, and may be gone. */
    while (channel->waiting != NULL && give(channel->waiting))
        issue(channel, ISSUE_EVERY);
    channel->feeding = false;
    issue(channel, 1);
}

/* Rounds over the lanes, a unit each, as pages go round over channels. */
static void give_all(struct adma_transfer *t)
{
    for (bool more = true; more;) {
        more = false;
        for (unsigned i = 0; i < t->n_lanes; i++) {
            struct adma_lane *lane = &t->lane[i];
            const uint64_t unit = lane->unit;
            while (lane->open && !lane->waiting && lane->unit == unit)
                if (lane->channel->waiting != NULL || !give(lane))
                    wait_for_room(lane);
            issue(lane->channel, ISSUE_EVERY);
            more = more || (lane->open && !lane->waiting);
        }
    }
    for (unsigned i = 0; i < t->n_lanes; i++)
        issue(t->lane[i].channel, 1);
}

void adma_transfer_start(struct adma_transfer *t, struct adma_process *by)
{
    struct adma *adma = t->adma;
    uint64_t since_ps = k_now_ps(adma->kernel);
    const uint64_t in_page = (t->from->at.v + t->from_at) % K_PAGE_BYTES;

    t->spent_ps = 0;
    t->bad_from = t->bad_to = 0;
    t->n_lanes = 0;
    t->under_way = 0;
    t->hit = t->from->all_hit && t->to->all_hit;
    t->by_engine = adma_by_engine(adma, t->bytes, t->hit);
    if (!t->by_engine) {
        adma->stats.cpu_copies++;
        copy_by_cpu(t, by, 0, t->bytes);
        return;
    }
    adma->stats.engine_copies++;
    t->state = TRANSFER_RUNS;
    t->started_ps = since_ps;
    t->n_units = (in_page + t->bytes + K_PAGE_BYTES - 1) / K_PAGE_BYTES;
    adma_schedule_lanes(adma, t);
    t->n_open = t->n_lanes + 1; /* one is the start's own: it does not end before all are given */
    for (unsigned i = 0; i < t->n_lanes; i++) {
        struct adma_lane *lane = &t->lane[i];
        lane->transfer = t;
        lane->unit = i;
        lane->at = i == 0 ? 0 : unit_end(t, i - 1);
        lane->oldest = lane->newest = NULL;
        lane->under_way = 0;
        lane->open = true;
        lane->waiting = false;
    }
    give_all(t);
    t->n_open--;
    const uint64_t took_ps = adma_lap(adma->kernel, &since_ps);
    by->times.startup_ps += took_ps;
    t->spent_ps += took_ps;
    settle(t);
}

/* ---- Checks and waits ------------------------------------------------------------------------ */

static uint64_t deadline_of(const struct adma_transfer *t)
{
    const uint64_t timeout_ps = t->adma->options.engine_timeout_ps;
    return timeout_ps != 0 ? t->started_ps + timeout_ps : UINT64_MAX;
}

/* The engine takes too long: everything that its channels still have ends. */
static void terminate(struct adma_transfer *t)
{
    for (unsigned i = 0; i < t->n_lanes && t->state == TRANSFER_RUNS; i++) {
        struct adma_channel *channel = t->lane[i].channel;
        if ((t->lane[i].under_way == 0 && !t->lane[i].waiting) || channel->terminating)
            continue;
        t->adma->stats.timeouts++;
        channel->not_issued = 0;
        channel->terminating = true; /* no feeding from callbacks: what begins now would end now */
        dma_terminate(channel->dma);
        channel->terminating = false;
        feed(channel);
    }
    t->started_ps = k_now_ps(t->adma->kernel);
}

void adma_transfer_check(struct adma_transfer *t, struct adma_process *by)
{
    for (unsigned i = 0; i < t->n_lanes && t->state == TRANSFER_RUNS; i++) {
        struct adma_lane *lane = &t->lane[i];
        const dma_cookie cookie = next_end(lane);
        if (cookie != 0)
            dma_status(lane->channel->dma, cookie);
        if (lane->waiting)
            feed(lane->channel);
    }
    if (t->state == TRANSFER_RUNS && k_now_ps(t->adma->kernel) >= deadline_of(t))
        terminate(t);
    if (t->state == TRANSFER_BAD)
        copy_by_cpu(t, by, t->bad_from, t->bad_to);
}

/* A copy to wait for: one of this transfer, or one whose end makes room for it. */
static void wait_for_lane(struct adma_transfer *t, uint64_t until_ps)
{
    for (unsigned i = 0; i < t->n_lanes; i++) {
        struct adma_lane *lane = &t->lane[i];
        struct adma_channel *channel = lane->channel;
        if (lane->under_way == 0 && !lane->waiting)
            continue;
        dma_cookie cookie = next_end(lane);
        if (lane->waiting && channel->newest > dma_channel_limits(channel->dma)->ring / 2)
            cookie = channel->newest - dma_channel_limits(channel->dma)->ring / 2;
        if (cookie == 0 || dma_wait(channel->dma, cookie, DMA_POLL, until_ps) != -ETIMEDOUT)
            k_compute(t->adma->kernel, 1); /* time passes: its callback may be about to be called */
        if (lane->waiting)
            feed(channel);
        return;
    }
    k_sleep(t->adma->kernel, K_US); /* another thread is about to give copies */
}

void adma_transfer_step(struct adma_transfer *t, struct adma_process *by,
                        struct adma_request *waiter, uint64_t until_ps)
{
    struct adma *adma = t->adma;
    uint64_t since_ps = k_now_ps(adma->kernel);
    const uint64_t deadline_ps = deadline_of(t);

    if (t->state == TRANSFER_BAD) {
        copy_by_cpu(t, by, t->bad_from, t->bad_to);
        return;
    }
    if (t->state == TRANSFER_BY_CPU) {
        k_wait(adma->kernel, &waiter->semaphore, min_u64(until_ps, since_ps + STEP_PS));
        return;
    }
    if (since_ps >= deadline_ps)
        terminate(t);
    else
        wait_for_lane(t, min_u64(min_u64(until_ps, deadline_ps), since_ps + STEP_PS));
    const uint64_t took_ps = adma_lap(adma->kernel, &since_ps);
    by->times.completion_ps += took_ps;
    t->spent_ps += took_ps;
}

/* ---- Channels -------------------------------------------------------------------------------- */

static void init_channel(struct adma *adma, unsigned i, struct dma_channel *dma)
{
    struct adma_channel *channel = &adma->channel[i];
    const unsigned ring = dma_channel_limits(dma)->ring;
    *channel = (struct adma_channel){ .adma = adma, .dma = dma, .idx = i };
    while (channel->map < adma->n_mappers && !dma_channels_share(adma->mapper[channel->map], dma))
        channel->map++;
    if (channel->map == adma->n_mappers)
        adma->mapper[adma->n_mappers++] = dma;
    channel->pieces = k_zalloc(ring * sizeof(struct adma_piece));
    for (unsigned k = ring; k > 0; k--) {
        channel->pieces[k - 1].channel = channel;
        free_piece(&channel->pieces[k - 1]);
    }
}

int adma_channels_init(struct adma *adma, struct dma_core *core)
{
    struct dma_channel *channels[ADMA_CHANNELS_MAX];
    const unsigned n = adma->options.n_channels;
    if (n == 0)
        return 0;
    const int status = dma_channels_request(core, adma->options.engine, DMA_SHARED, n, channels);
    if (status != 0)
        return status;
    adma->n_channels = n;
    for (unsigned i = 0; i < n; i++)
        init_channel(adma, i, channels[i]);
    return 0;
}

void adma_channels_release(struct adma *adma)
{
    for (unsigned i = 0; i < adma->n_channels; i++) {
        dma_channel_release(adma->channel[i].dma);
        k_free(adma->channel[i].pieces);
    }
    adma->n_channels = 0;
}
