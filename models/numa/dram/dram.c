#include "models/numa/dram/fbdimm.h"

#include <math.h>
#include <stdlib.h>

#define BANK_GROUPS_LOG2 2u
#define BURST_CLOCKS     4u    /* BL8: the bus calendar counts in clocks, a slot is a burst */
#define MIX_BURSTS       256u  /* a window: about as long as callers may be apart */
#define MIX_MAX          4095u /* so that n^2 * 256 fits */
#define NO_ROW           UINT64_MAX
#define CHANNEL_HASH_MAX 7u

struct dram_place {
    uint32_t channel;
    uint32_t bank; /* within the channel */
    uint64_t row;
};

static sim_time dram_burst_ps(const struct numa_dram_params *params)
{
    /* A line is 64 / bus_bytes transfers. */
    return (sim_time)llround(64.0 / params->bus_bytes * 1e6 / params->data_rate_mt_s);
}

static uint32_t clocks_of(const struct dram *dram, sim_time ps)
{
    return (uint32_t)((ps * BURST_CLOCKS + dram->burst_ps / 2) / dram->burst_ps);
}

/* Ranks of all channels take turns within tREFI. */
static void init_refresh(struct dram *dram)
{
    const struct numa_dram_params *params = dram->params;
    const uint32_t n = params->channels * params->ranks * params->dimms;

    if (params->trfc_ps == 0)
        return;
    dram->trefi_reciprocal = UINT64_MAX / params->trefi_ps + 1;
    for (uint32_t i = 0; i < n; i++)
        dram->refresh_ps[i] = params->trefi_ps - params->trefi_ps * (i + 1) / (n + 1);
}

void dram_init(struct dram *dram, const struct numa_dram_params *params, struct dram_counts *counts)
{
    *dram = (struct dram){ .params = params, .burst_ps = dram_burst_ps(params) };
    dram->counts = counts != NULL ? counts : &dram->own_counts;
    dram->n_banks = params->ranks * params->banks;
    dram->banks_log2 = (uint32_t)__builtin_ctz(dram->n_banks);
    dram->row_log2 = (uint32_t)__builtin_ctz(params->row_lines);
    dram->group_log2 = SIM_MIN(BANK_GROUPS_LOG2, dram->banks_log2);
    dram->turnaround_clocks = clocks_of(dram, params->turnaround_ps);
    dram->rank_switch_clocks = clocks_of(dram, params->rank_switch_ps);
    dram->channel_reciprocal = params->channels > 1 ? UINT64_MAX / params->channels + 1 : 0;
    dram->rank_shift = (uint32_t)__builtin_ctz(params->banks);
    for (uint32_t i = 0; i < SIM_N_ELEMENTS(dram->channel_of); i++)
        dram->channel_of[i] = (uint8_t)(i % params->channels);
    init_refresh(dram);
    if (params->fb_dimm) {
        fbdimm_init(dram);
        return;
    }
    dram->channel = sim_zalloc(params->channels, sizeof(*dram->channel));
    dram->bank = sim_zalloc((size_t)params->channels * dram->n_banks, sizeof(*dram->bank));
    for (uint32_t i = 0; i < params->channels; i++)
        calendar_init(&dram->channel[i].bus, dram->burst_ps, BURST_CLOCKS);
    for (uint32_t i = 0; i < params->channels * dram->n_banks; i++)
        dram->bank[i] = (struct dram_bank){ .row = NO_ROW, .previous_row = NO_ROW };
}

void dram_release(struct dram *dram)
{
    fbdimm_release(dram);
    free(dram->channel);
    free(dram->bank);
    dram->channel = NULL;
    dram->bank = NULL;
}

/*
 * Consecutive lines go round the channels, then round the bank groups (so that bursts follow each
 * other without the longer same-group gap), then along the row. Channel and bank numbers are
 * hashed with higher bits, so that strides do not fall onto one of them.
 */
static struct dram_place place_of(const struct dram *dram, uint64_t line)
{
    struct dram_place p = { 0, 0, 0 };
    uint64_t q = line;

    if (dram->params->channels > 1) {
        q = (uint64_t)(((unsigned __int128)line * dram->channel_reciprocal) >> 64);
        const uint64_t hashed = (line - q * dram->params->channels) +
                                ((q ^ (q >> 3) ^ (q >> 7) ^ (q >> 11)) & CHANNEL_HASH_MAX);
        p.channel = dram->channel_of[hashed];
    }
    const uint32_t high_log2 = dram->banks_log2 - dram->group_log2;
    const uint64_t group = q & ((1u << dram->group_log2) - 1);
    const uint64_t high = (q >> (dram->group_log2 + dram->row_log2)) & ((1u << high_log2) - 1);

    p.row = q >> (dram->row_log2 + dram->banks_log2);
    const uint64_t hash = p.row ^ (p.row >> dram->banks_log2) ^ (p.row >> (2 * dram->banks_log2));
    p.bank = (uint32_t)((group | (high << dram->group_log2)) ^ hash) & (dram->n_banks - 1);
    return p;
}

static uint32_t rank_of(const struct dram *dram, struct dram_place p)
{
    return p.bank >> dram->rank_shift;
}

/* When the column command for the row may be given, the bank being free at start_ps; the bank's
 * row state moves on. */
static sim_time open_row(const struct dram *dram, struct dram_bank *bank, uint64_t row,
                         sim_time start_ps)
{
    const struct numa_dram_params *params = dram->params;
    const bool closed = bank->row == NO_ROW ||
                        start_ps >= bank->busy_until_ps + params->page_idle_ps;

    if (!closed && bank->row == row)
        return start_ps;
    dram->counts->read_activates++;
    sim_time act_ps = start_ps;
    if (!closed) {
        const sim_time precharge_ps = SIM_MAX(start_ps, bank->act_ps + params->tras_ps);
        act_ps = precharge_ps + params->trp_ps;
        bank->previous_row = bank->row;
        bank->switch_ps = precharge_ps;
        dram->counts->read_conflicts++;
    } else {
        bank->previous_row = NO_ROW;
    }
    bank->row = row;
    bank->act_ps = act_ps;
    return act_ps + params->trcd_ps;
}

/*
 * How many changes of rank more there are in random order, in 1/256, with a burst of this rank that is ready at
 * slot `burst` of the bus: of n bursts that come in random order, (n^2 - sum of n_r^2) / n are
 * expected to follow one of another rank. Over a window this adds up to the same in whatever order
 * the callers come; the rank of the burst placed last would depend on it.
 */
static inline uint32_t more_changes(struct dram_channel *channel, uint32_t rank, uint64_t burst)
{
    const uint64_t window = burst / MIX_BURSTS;
    struct dram_mix *mix = &channel->mix[window % DRAM_MIXES];

    if (mix->window != window || mix->n == MIX_MAX)
        *mix = (struct dram_mix){ .window = window };
    mix->squares += 2u * mix->of_rank[rank]++ + 1u;
    mix->n++;
    const uint32_t changes = (mix->n * mix->n - mix->squares) * 256 / mix->n;
    const uint32_t more = changes - mix->changes;
    mix->changes = changes;
    return more;
}

/*
 * How many of these changes remain if the controller serves all reads of a rank that are ready
 * before it changes. Of q ready ones, each replaced by one of any rank when it is served, 2 q / r
 * are of the next of r ranks, so that it serves 2 q / (r - 1) there: a share of r / (2 q) of the
 * changes in random order remains, and all of them if few are ready.
 */
static inline uint32_t collected(const struct dram *dram, uint32_t changes, sim_time waited_ps)
{
    const uint32_t ranks = dram->params->ranks;
    const uint32_t ready = (uint32_t)(waited_ps / dram->burst_ps) + 1;

    return 2 * ready <= ranks ? changes : changes * ranks / (2 * ready);
}

/* The data bus for one burst from data_ps on; behind it the gaps that have become due. */
static sim_time take_bus(struct dram *dram, struct dram_place p, sim_time data_ps)
{
    struct dram_channel *channel = &dram->channel[p.channel];
    const uint64_t slot = calendar_slot_of(&channel->bus, data_ps);
    const struct calendar_grant grant = calendar_take_in(&channel->bus, slot, data_ps,
                                                         BURST_CLOCKS);

    const sim_time start_ps = SIM_MAX(data_ps, grant.end_ps - dram->burst_ps);

    if (dram->rank_switch_clocks > 0 && dram->params->ranks > 1) {
        const uint32_t changes = more_changes(channel, rank_of(dram, p), slot);
        channel->gap_due += dram->rank_switch_clocks * collected(dram, changes, start_ps - data_ps);
        if (channel->gap_due >= 256)
            calendar_take(&channel->bus, grant.end_ps, channel->gap_due >> 8);
        channel->gap_due &= 255;
    }
    return start_ps;
}

/*
 * Reserves bank and bus for one read that reaches the devices at at_ps; returns the end of the
 * burst.
 */
static sim_time read_bank(struct dram *dram, struct dram_place p, sim_time at_ps)
{
    const struct numa_dram_params *params = dram->params;
    struct dram_bank *bank = &dram->bank[p.channel * dram->n_banks + p.bank];
    const sim_time closed_ps = params->trcd_ps + dram->burst_ps;

    /* A row about to be closed for a later request: the scheduler serves its hits first. */
    if (p.row == bank->previous_row && at_ps < bank->switch_ps)
        return take_bus(dram, p, at_ps + params->tcl_ps) + dram->burst_ps;
    /* Behind the others, and done before their work begins. */
    if (at_ps + closed_ps <= bank->busy_from_ps) {
        dram->counts->read_activates++;
        return take_bus(dram, p, at_ps + params->trcd_ps + params->tcl_ps) + dram->burst_ps;
    }

    const sim_time start_ps = SIM_MAX(at_ps, bank->busy_until_ps);
    if (start_ps > bank->busy_until_ps)
        bank->busy_from_ps = start_ps;
    const sim_time column_ps = open_row(dram, bank, p.row, start_ps);
    const sim_time data_ps = take_bus(dram, p, column_ps + params->tcl_ps);
    bank->busy_until_ps = data_ps - params->tcl_ps + dram->burst_ps;
    return data_ps + dram->burst_ps;
}

sim_time dram_read(struct dram *dram, uint64_t line, sim_time at_ps)
{
    if (SIM_UNLIKELY(dram->branch != NULL))
        return fbdimm_read(dram, line, at_ps);
    const struct dram_place p = place_of(dram, line);
    const uint32_t rank = p.channel * dram->params->ranks + rank_of(dram, p);
    const sim_time queued_ps = at_ps + dram->params->controller_ps;
    const sim_time end_ps = read_bank(dram, p, dram_after_refresh(dram, rank, queued_ps));

    dram->counts->read_wait_ps += end_ps - dram->burst_ps - dram->params->tcl_ps - queued_ps;
    return end_ps;
}

/* The write that comes at at_ps is taken at taken_ps; returns that. */
static sim_time count_wait(struct dram *dram, struct dram_channel *channel, sim_time at_ps,
                           sim_time taken_ps)
{
    const sim_time from_ps = SIM_MAX(at_ps, channel->full_until_ps);

    dram->counts->write_wait_ps += taken_ps - at_ps;
    if (taken_ps > from_ps) {
        dram->counts->write_full_ps += taken_ps - from_ps;
        channel->full_until_ps = taken_ps;
    }
    return taken_ps;
}

sim_time dram_write(struct dram *dram, uint64_t line, sim_time at_ps)
{
    if (SIM_UNLIKELY(dram->branch != NULL))
        return fbdimm_write(dram, line, at_ps);
    const struct numa_dram_params *params = dram->params;
    struct dram_channel *channel = &dram->channel[place_of(dram, line).channel];
    const sim_time queue_ps = params->write_queue * dram->burst_ps;

    if (++channel->n_queued >= params->write_batch) {
        const uint32_t clocks = channel->n_queued * BURST_CLOCKS + dram->turnaround_clocks;
        const struct calendar_grant grant = calendar_take(&channel->bus, at_ps, clocks);
        const bool apart = at_ps > channel->drained_ps;
        if (apart || (at_ps < channel->drain_from_ps && grant.end_ps > channel->drain_from_ps))
            channel->drain_from_ps = at_ps;
        channel->drained_ps = SIM_MAX(channel->drained_ps, grant.end_ps);
        channel->n_queued = 0;
        dram->counts->write_modes++;
    }
    if (at_ps < channel->drain_from_ps || channel->drained_ps < queue_ps)
        return at_ps;
    return count_wait(dram, channel, at_ps, SIM_MAX(at_ps, channel->drained_ps - queue_ps));
}

sim_time dram_idle_read_ps(const struct dram *dram)
{
    if (dram->branch != NULL)
        return fbdimm_idle_read_ps(dram);
    return dram->params->controller_ps + dram->params->trcd_ps + dram->params->tcl_ps +
           dram->burst_ps;
}

struct dram_peaks dram_peaks(const struct dram *dram, sim_time now_ps)
{
    if (dram->branch != NULL)
        return fbdimm_peaks(dram, now_ps);
    const uint32_t n = dram->params->channels;
    const double per_s = n * 64e12 / (double)dram->burst_ps;
    struct dram_peaks peaks = { .read.per_s = per_s, .write.per_s = per_s, .both.per_s = per_s };

    for (uint32_t i = 0; i < n; i++) {
        const struct dram_channel *channel = &dram->channel[i];
        /* The units of a slot, a burst, are quarters of it; one slot may be cut by either edge. */
        peaks.read.slack += 16.0 * (double)calendar_units_after(&channel->bus, now_ps) + 64;
        peaks.write.slack += 64.0 * channel->n_queued;
    }
    peaks.both.slack = peaks.read.slack + peaks.write.slack;
    peaks.read.slack = peaks.write.slack = peaks.both.slack;
    return peaks;
}
