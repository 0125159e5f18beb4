#include "models/numa/dram/fbdimm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/zeroed.h"

#define RANK_LINES_LOG2   7u    /* ranks take turns by 8 KiB of a channel */
#define LOW_ROWS_LOG2     3u    /* rows of a bank that follow each other */
#define BURST_CLOCKS      4u    /* BL8: the bus calendar counts in clocks, a slot is a burst */
#define MIX_BURSTS        256u  /* a window: about as long as callers may be apart */
#define MEAN_WAIT_LOG2    8u    /* reads */
#define MIX_MAX           4095u /* so that n^2 * 256 fits */
#define NO_ROW            UINT32_MAX
#define CHANNEL_HASH_MAX  7u
#define READ_WRITE_CLOCKS 2u /* gap between a read's data and a write's: tRTW less the burst */

struct dram_place {
    uint32_t channel;
    uint32_t bank; /* within the channel */
    uint32_t row;
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
    dram->contended_until_ps = &dram->own_contended_ps;
    dram->n_banks = params->ranks * params->banks;
    dram->rank_log2 = (uint32_t)__builtin_ctz(params->ranks);
    dram->bank_log2 = (uint32_t)__builtin_ctz(params->banks);
    dram->row_log2 = (uint32_t)__builtin_ctz(params->row_lines);
    dram->n_groups = SIM_MIN(params->bank_groups, params->banks);
    dram->group_log2 = dram->n_groups > 1 ? 1 : 0;
    dram->whole_turns = dram->group_log2 + dram->row_log2 >= RANK_LINES_LOG2;
    dram->write_high = SIM_MAX(params->write_queue * 3 / 4, 1u);
    dram->write_low = params->write_queue / 4;
    dram->write_read_ps = params->twtr_ps + params->tcl_ps;
    dram->write_read_slots = (uint32_t)SIM_MIN(dram->write_read_ps / dram->burst_ps + 1, 64u);
    dram->rank_switch_clocks = clocks_of(dram, params->rank_switch_ps);
    dram->rank_switches = dram->rank_switch_clocks > 0 && params->ranks > 1;
    dram->group_mask = (1u << dram->group_log2) - 1;
    dram->channel_reciprocal = params->channels > 1 ? UINT64_MAX / params->channels + 1 : 0;
    for (uint32_t i = 0; i < SIM_N_ELEMENTS(dram->channel_of); i++)
        dram->channel_of[i] = (uint8_t)(i % params->channels);
    init_refresh(dram);
    if (params->fb_dimm) {
        fbdimm_init(dram);
        return;
    }
    dram->channel = sim_zeroed_new(params->channels * sizeof(*dram->channel));
    dram->bank = sim_zalloc((size_t)params->channels * dram->n_banks, sizeof(*dram->bank));
    const uint32_t n_groups = params->ranks * dram->n_groups;
    dram->column_ps = SIM_MAX(params->tccd_l_ps, dram->burst_ps);
    dram->group = sim_zalloc((size_t)params->channels * n_groups, sizeof(*dram->group));
    for (uint32_t i = 0; i < params->channels; i++) {
        calendar_init(&dram->channel[i].bus, dram->burst_ps, BURST_CLOCKS);
        dram->channel[i].bank = &dram->bank[i * dram->n_banks];
        dram->channel[i].group = &dram->group[i * n_groups];
        for (uint32_t r = 0; r < params->ranks; r++)
            dram->channel[i].rank[r].due_ps =
                params->trfc_ps == 0 ? SIM_TIME_MAX
                                     : params->trefi_ps - dram->refresh_ps[i * params->ranks + r];
    }
    for (uint32_t i = 0; i < params->channels * dram->n_banks; i++)
        dram->bank[i] = (struct dram_bank){ .row = NO_ROW };
}

void dram_release(struct dram *dram)
{
    fbdimm_release(dram);
    if (dram->channel != NULL)
        sim_zeroed_free(dram->channel, dram->params->channels * sizeof(*dram->channel));
    free(dram->bank);
    free(dram->group);
    dram->group = NULL;
    dram->channel = NULL;
    dram->bank = NULL;
}

/*
 * Consecutive lines go round the channels, then take turns between two groups of banks and go along
 * their rows; every 8 KiB of a channel the ranks take turns; then come a few rows of the same
 * banks, then the other banks, each of whose bits is XOR-ed with one of the row. That is how
 * skx_edac decodes open pages; channel numbers are hashed with higher bits, so that strides do not
 * fall onto one.
 */
static struct dram_place place_in_rank(const struct dram *dram, uint64_t q)
{
    const uint64_t turn = q >> RANK_LINES_LOG2;
    const uint32_t rank = (uint32_t)turn & (dram->params->ranks - 1);
    const uint64_t of_rank = (turn >> dram->rank_log2 << RANK_LINES_LOG2) |
                             (q & ((1u << RANK_LINES_LOG2) - 1));
    const uint32_t group = (uint32_t)of_rank & ((1u << dram->group_log2) - 1);
    const uint64_t rows = of_rank >> (dram->group_log2 + dram->row_log2);
    const uint64_t banks = rows >> LOW_ROWS_LOG2 << dram->group_log2;
    const uint32_t high = (uint32_t)(banks >> dram->bank_log2);
    const uint32_t bank = (group ^ (uint32_t)banks ^ high) & (dram->params->banks - 1);

    return (struct dram_place){
        .row = high << LOW_ROWS_LOG2 | ((uint32_t)rows & ((1u << LOW_ROWS_LOG2) - 1)),
        .bank = rank << dram->bank_log2 | bank,
    };
}

static __attribute__((noinline)) void find_turn(const struct dram *dram, struct dram_turn *turn,
                                                uint64_t number)
{
    const struct dram_place p = place_in_rank(dram, number << RANK_LINES_LOG2);

    *turn = (struct dram_turn){ number + 1, p.bank, p.row, (uint32_t)(number ^ (number >> 4)) };
}

static inline __attribute__((always_inline)) struct dram_place place_of(struct dram *dram,
                                                                        uint64_t line)
{
    const uint32_t channels = dram->params->channels;
    const uint64_t q = channels > 1
                           ? (uint64_t)(((unsigned __int128)line * dram->channel_reciprocal) >> 64)
                           : line;
    const uint64_t number = q >> RANK_LINES_LOG2;
    struct dram_turn *turn = &dram->turn[number % DRAM_TURNS];

    if (SIM_UNLIKELY(turn->key != number + 1))
        find_turn(dram, turn, number);
    struct dram_place p = { 0, turn->bank ^ ((uint32_t)q & dram->group_mask), turn->row };
    if (SIM_UNLIKELY(!dram->whole_turns))
        p = place_in_rank(dram, q);
    /* q ^ (q >> 3) ^ (q >> 7) ^ (q >> 11) */
    const uint32_t hash = ((uint32_t)(q ^ (q >> 3)) ^ turn->hash) & CHANNEL_HASH_MAX;
    if (channels > 1)
        p.channel = dram->channel_of[line - q * channels + hash];
    return p;
}

static uint32_t rank_of(const struct dram *dram, struct dram_place p)
{
    return p.bank >> dram->bank_log2;
}

/* If the row is open at at_ps or will be, before the one that the bank has open last: when it takes
 * column commands, else 0. The scheduler serves its hits first, and a caller behind others finds
 * what was open then. */
static inline sim_time open_before(const struct dram *dram, struct dram_bank *bank, uint32_t row,
                                   sim_time at_ps)
{
    for (uint32_t i = 0; i < DRAM_CLOSING && at_ps < bank->closing[i].until_ps; i++) {
        if (bank->closing[i].row != row)
            continue;
        const sim_time column_ps = SIM_MAX(at_ps, bank->closing[i].from_ps);
        const sim_time next_ps = i == 0 ? bank->busy_from_ps : bank->closing[i - 1].from_ps;
        const sim_time idle_ps = SIM_MIN(column_ps + dram->params->page_idle_ps, next_ps);
        bank->closing[i].until_ps = SIM_MAX(bank->closing[i].until_ps, idle_ps);
        return column_ps;
    }
    return 0;
}

/* A row takes column commands from from_ps on and is closed at until_ps, before the bank's last. */
static inline void note_closing(struct dram_bank *bank, uint32_t row, sim_time from_ps,
                                sim_time until_ps)
{
    struct dram_closing *at = bank->closing, *end = &bank->closing[DRAM_CLOSING];

    while (SIM_UNLIKELY(until_ps < at->until_ps))
        if (++at == end)
            return;
    for (struct dram_closing *to = end - 1; to > at; to--)
        *to = to[-1];
    *at = (struct dram_closing){ from_ps, until_ps, row };
}

/* When the column command for the row may be given, the bank being free at start_ps; the bank's
 * row state moves on. */
static inline __attribute__((always_inline)) sim_time open_row(const struct dram *dram,
                                                               struct dram_bank *bank, uint32_t row,
                                                               sim_time start_ps, bool *conflict)
{
    const struct numa_dram_params *params = dram->params;
    const bool closed = bank->row == NO_ROW ||
                        start_ps >= bank->busy_until_ps + params->page_idle_ps;

    if (!closed && bank->row == row)
        return start_ps;
    sim_time act_ps = start_ps;
    *conflict = !closed;
    if (!closed) {
        const sim_time active_ps = bank->act_ps + params->tras_ps;
        const sim_time precharge_ps = SIM_MAX(start_ps, SIM_MAX(active_ps, bank->recovered_ps));
        act_ps = precharge_ps + params->trp_ps;
        note_closing(bank, bank->row, bank->act_ps + params->trcd_ps, precharge_ps);
    } else if (bank->row != NO_ROW) {
        note_closing(bank, bank->row, bank->act_ps + params->trcd_ps,
                     bank->busy_until_ps + params->page_idle_ps);
    }
    bank->row = row;
    bank->act_ps = act_ps;
    return act_ps + params->trcd_ps;
}

/* The window of a burst that is ready at slot `burst` of the bus. */
static inline struct dram_mix *mix_of(struct dram_channel *channel, uint64_t burst)
{
    const uint64_t window = burst / MIX_BURSTS;
    struct dram_mix *mix = &channel->mix[window % DRAM_MIXES];

    if (mix->window != window || mix->n == MIX_MAX)
        *mix = (struct dram_mix){ .window = window };
    return mix;
}

/*
 * How many changes of rank more there are in random order, in 1/256, with a burst of this rank in
 * the window: of n bursts that come in random order, (n^2 - sum of n_r^2) / n are expected to
 * follow one of another rank. Over a window this adds up to the same in whatever order the callers
 * come; the rank of the burst placed last would depend on it.
 */
static inline uint32_t more_changes(struct dram_mix *mix, uint32_t rank)
{
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
 * changes in random order remains, and all of them if few are ready. q is how many bursts a read of
 * the window has to wait for in the mean, and itself: the mean of all waits does not depend on who
 * is served, or called, first.
 */
static inline uint32_t collected(const struct dram *dram, struct dram_mix *mix, uint32_t changes,
                                 sim_time waited_ps)
{
    const uint32_t ranks = dram->params->ranks;
    const sim_time most_ps = dram->params->read_queue * dram->burst_ps;

    mix->waited_ps += SIM_MIN(waited_ps + dram->burst_ps, most_ps);
    const sim_time alone_ps = mix->n * ranks * dram->burst_ps;
    return 2 * mix->waited_ps <= alone_ps ? changes
                                          : (uint32_t)(changes * alone_ps / (2 * mix->waited_ps));
}

/* The last of the write_read_slots slots up to `slot` in which writes to the rank have data, or
 * 0. */
static inline uint64_t last_written(const struct dram *dram, const struct dram_channel *channel,
                                    uint32_t rank, uint64_t slot)
{
    const struct dram_written *w = &channel->written[rank][(slot >> 6) % WRITTEN_WORDS];
    const uint32_t n = dram->write_read_slots, here = (uint32_t)(slot & 63) + 1;
    uint64_t bits = w->word == slot >> 6 ? w->bits << (64 - here) : 0;

    if (here < n) {
        w = &channel->written[rank][((slot >> 6) - 1) % WRITTEN_WORDS];
        bits |= w->word == (slot >> 6) - 1 ? w->bits >> here : 0;
    }
    bits &= UINT64_MAX << (64 - n);
    return bits != 0 ? slot - (uint64_t)__builtin_clzll(bits) : 0;
}

/* From when on the bus has room for data of a read that is tWTR and tCL behind writes to its
 * rank. */
static sim_time after_writes(struct dram *dram, struct dram_channel *channel, uint32_t rank,
                             sim_time data_ps)
{
    while (data_ps < channel->turned_ps) {
        const uint64_t at = calendar_slot_of(&channel->bus, data_ps);
        const uint64_t slot = calendar_next_free(&channel->bus, at);
        const uint64_t last = last_written(dram, channel, rank, slot);
        const sim_time turned_ps = (last + 1) * dram->burst_ps + dram->write_read_ps;

        if (slot != at)
            data_ps = slot * dram->burst_ps;
        if (last == 0 || turned_ps <= data_ps)
            break;
        data_ps = turned_ps;
    }
    return data_ps;
}

/* The first time from at_ps on at which the bank's group takes a column command. As a bank, a group
 * has one interval of commands that touch; who is before it is not queued behind it. */
static inline sim_time take_column(const struct dram *dram, const struct dram_channel *channel,
                                   uint32_t bank, sim_time at_ps)
{
    const uint32_t rank = bank >> dram->bank_log2, idx = bank & (dram->n_groups - 1);
    struct dram_group *group = &channel->group[rank * dram->n_groups + idx];

    if (at_ps + dram->column_ps <= group->busy_from_ps)
        return at_ps;
    const sim_time start_ps = SIM_MAX(at_ps, group->busy_until_ps);
    if (start_ps > group->busy_until_ps)
        group->busy_from_ps = start_ps;
    group->busy_until_ps = start_ps + dram->column_ps;
    return start_ps;
}

/* A read that is ready at ready_ps has waited for the bus. When reads wait for each other in the
 * mean, callers should come in order: one ahead of the others takes what those behind it ask for
 * first, and a rank for idle that they use. */
static inline void note_wait(struct dram *dram, struct dram_channel *channel, sim_time ready_ps,
                             sim_time waited_ps)
{
    channel->waited_ps += waited_ps - (channel->waited_ps >> MEAN_WAIT_LOG2);
    if (channel->waited_ps >= dram->burst_ps << MEAN_WAIT_LOG2)
        *dram->contended_until_ps = SIM_MAX(*dram->contended_until_ps, ready_ps + SIM_PS_PER_US);
}

/* The data bus for one burst of a read that could go since since_ps if others did not, and whose
 * column command may be given from column_ps on; behind it the gaps that have become due. */
static inline __attribute__((always_inline)) sim_time
take_bus(struct dram *dram, struct dram_place p, sim_time column_ps, sim_time since_ps)
{
    struct dram_channel *channel = &dram->channel[p.channel];
    const sim_time ready_ps = take_column(dram, channel, p.bank, column_ps) + dram->params->tcl_ps;
    const sim_time data_ps = after_writes(dram, channel, rank_of(dram, p), ready_ps);
    const uint64_t slot = calendar_slot_of(&channel->bus, data_ps);
    const struct calendar_grant grant = calendar_take_in(&channel->bus, slot, data_ps,
                                                         BURST_CLOCKS);

    const sim_time start_ps = SIM_MAX(data_ps, grant.end_ps - dram->burst_ps);

    const sim_time waited_ps = start_ps - dram->params->tcl_ps - since_ps;
    note_wait(dram, channel, data_ps, waited_ps);
    if (dram->rank_switches) {
        struct dram_mix *mix = mix_of(channel, slot);
        const uint32_t changes = more_changes(mix, rank_of(dram, p));
        channel->gap_due += dram->rank_switch_clocks * collected(dram, mix, changes, waited_ps);
        if (channel->gap_due >= 256)
            calendar_take(&channel->bus, grant.end_ps, channel->gap_due >> 8);
        channel->gap_due &= 255;
    }
    return start_ps;
}

/*
 * Refreshes that are due at at_ps, and a rank that nobody has used. Each is done when the rank has
 * been idle for refresh_idle_ps, or when refresh_postponed more are due: then what the queues hold
 * of the rank goes first, and who comes waits.
 */
static void refresh(const struct dram *dram, struct dram_rank *rank, sim_time at_ps)
{
    const struct numa_dram_params *params = dram->params;
    const sim_time most_ps = (params->refresh_postponed + 1) * params->trefi_ps;
    const sim_time queue_ps = (params->read_queue + params->write_queue) * dram->burst_ps;

    while (rank->due_ps <= at_ps) {
        /* Of a long pause, the last ones do. */
        if (at_ps - rank->due_ps > 2 * most_ps && rank->used_ps < rank->due_ps)
            rank->due_ps += (at_ps - rank->due_ps - most_ps) / params->trefi_ps * params->trefi_ps;
        const sim_time idle_ps = SIM_MAX(rank->used_ps + params->refresh_idle_ps, rank->until_ps);
        const sim_time forced_ps = rank->due_ps + params->refresh_postponed * params->trefi_ps;
        sim_time from_ps = SIM_MAX(rank->due_ps, idle_ps), begin_ps = from_ps;
        if (from_ps > forced_ps) {
            from_ps = SIM_MAX(forced_ps, rank->until_ps);
            begin_ps = SIM_MAX(from_ps, SIM_MIN(rank->used_ps, at_ps + queue_ps));
        }
        if (from_ps > at_ps)
            break;
        rank->from_ps = from_ps;
        rank->until_ps = begin_ps + params->trfc_ps;
        rank->due_ps += params->trefi_ps;
    }
}

/* When the rank takes commands: at_ps, or the end of the refresh that covers it. */
static inline sim_time after_refresh(const struct dram *dram, struct dram_rank *rank,
                                     sim_time at_ps)
{
    if (SIM_UNLIKELY(at_ps >= rank->due_ps))
        refresh(dram, rank, at_ps);
    return at_ps < rank->until_ps && at_ps >= rank->from_ps ? rank->until_ps : at_ps;
}

/* The same for a caller that is done before the bank's last interval of work begins: the row that
 * the others have open then, or one of its own, which stays open for those who come behind it. */
static sim_time row_between(struct dram *dram, struct dram_bank *bank, uint32_t row, sim_time at_ps)
{
    const struct numa_dram_params *params = dram->params;
    const sim_time open_ps = at_ps + params->trcd_ps;

    if (bank->row == row && at_ps >= bank->act_ps + params->trcd_ps)
        return at_ps;
    dram->counts->read_activates++;
    note_closing(bank, row, open_ps, SIM_MIN(open_ps + params->page_idle_ps, bank->busy_from_ps));
    return open_ps;
}

/*
 * Reserves bank and bus for one read that reaches the devices at at_ps; returns the end of the
 * burst.
 */
static sim_time read_bank(struct dram *dram, struct dram_place p, sim_time at_ps)
{
    const struct numa_dram_params *params = dram->params;
    struct dram_bank *bank = &dram->channel[p.channel].bank[p.bank];
    const sim_time closed_ps = params->trcd_ps + dram->burst_ps;

    sim_time column_ps = open_before(dram, bank, p.row, at_ps), open_ps;
    const bool behind = column_ps == 0 && at_ps + closed_ps > bank->busy_from_ps;
    if (SIM_LIKELY(behind)) {
        const sim_time start_ps = SIM_MAX(at_ps, bank->busy_until_ps);
        if (start_ps > bank->busy_until_ps)
            bank->busy_from_ps = start_ps;
        bool conflict = false;
        column_ps = open_row(dram, bank, p.row, start_ps, &conflict);
        dram->counts->read_activates += column_ps > start_ps;
        dram->counts->read_conflicts += conflict;
        /* Its row is open: it waits for the bus, also while others of the row do. */
        open_ps = SIM_MIN(column_ps, SIM_MAX(at_ps, bank->act_ps + params->trcd_ps));
    } else {
        if (column_ps == 0) /* the caller is late, and done before the others' work begins */
            column_ps = row_between(dram, bank, p.row, at_ps);
        open_ps = column_ps;
    }
    const sim_time data_ps = take_bus(dram, p, column_ps, open_ps);
    if (SIM_LIKELY(behind))
        bank->busy_until_ps = data_ps - params->tcl_ps + dram->burst_ps;
    return data_ps + dram->burst_ps;
}

/* Reserves bank (from at_ps on) and bus (from bus_ps on) for one write, and notes that its rank has
 * been written; returns the end of its data. */
static inline __attribute__((always_inline)) sim_time
write_bank(struct dram *dram, struct dram_channel *channel, struct dram_bank *bank,
           struct dram_write write, sim_time at_ps, sim_time bus_ps)
{
    const struct numa_dram_params *params = dram->params;
    struct dram_rank *of = &channel->rank[write.bank >> dram->bank_log2];
    at_ps = after_refresh(dram, of, at_ps);
    sim_time column_ps = open_before(dram, bank, write.row, at_ps);
    const bool hit_before = column_ps > 0;

    if (!hit_before) {
        bool conflict;
        const sim_time start_ps = SIM_MAX(at_ps, bank->busy_until_ps);
        if (start_ps > bank->busy_until_ps)
            bank->busy_from_ps = start_ps;
        column_ps = open_row(dram, bank, write.row, start_ps, &conflict);
    }
    column_ps = SIM_MAX(column_ps, bus_ps - SIM_MIN(bus_ps, params->tcwl_ps));
    column_ps = take_column(dram, channel, write.bank, column_ps);
    const sim_time data_ps = column_ps + params->tcwl_ps;
    const struct calendar_grant grant = calendar_take(&channel->bus, data_ps, BURST_CLOCKS);
    const sim_time end_ps = SIM_MAX(data_ps + dram->burst_ps, grant.end_ps);
    if (!hit_before) {
        bank->busy_until_ps = end_ps - params->tcwl_ps;
        bank->recovered_ps = end_ps + params->twr_ps;
    }
    of->used_ps = SIM_MAX(of->used_ps, end_ps);

    const uint32_t rank = write.bank >> dram->bank_log2;
    const uint64_t slot = calendar_slot_of(&channel->bus, end_ps - 1);
    struct dram_written *w = &channel->written[rank][(slot >> 6) % WRITTEN_WORDS];
    if (w->word != slot >> 6)
        *w = (struct dram_written){ slot >> 6, 0 };
    w->bits |= UINT64_C(1) << (slot & 63);
    channel->turned_ps = SIM_MAX(channel->turned_ps,
                                 (slot + 1) * dram->burst_ps + dram->write_read_ps);
    return end_ps;
}

/* n writes from the first on are no longer queued. */
static void remove_writes(struct dram_channel *channel, uint32_t first, uint32_t n)
{
    struct dram_write *queued = &channel->queued[first];

    channel->n_arrived -= n;
    channel->n_queued -= n;
    memmove(queued, queued + n, (channel->n_queued - first) * sizeof(*queued));
}

/* Writes that write modes have given to the devices and that are not on the bus at at_ps. */
static uint32_t still_given(const struct dram *dram, const struct dram_channel *channel,
                            sim_time at_ps)
{
    if (at_ps >= channel->drained_ps)
        return 0;
    return (uint32_t)SIM_MIN((channel->drained_ps - at_ps) / dram->burst_ps, channel->n_given);
}

/*
 * Write mode begins at at_ps: writes go until the low threshold is reached, oldest first, but of
 * each bank one row in a round. The bus turns round once, and changes ranks as often as they do.
 */
static void write_mode(struct dram *dram, struct dram_channel *channel, sim_time at_ps)
{
    const uint32_t n_given = channel->n_arrived - dram->write_low;
    const bool apart = at_ps > channel->drained_ps;
    uint32_t clocks = READ_WRITE_CLOCKS;
    sim_time end_ps = at_ps;

    channel->n_given = n_given + still_given(dram, channel, at_ps);
    while (channel->n_arrived > dram->write_low) {
        const uint32_t n = channel->n_arrived, most = n - dram->write_low;
        uint64_t used = 0;
        uint32_t kept = 0, i = 0;
        for (; i < n && i - kept < most; i++) {
            const struct dram_write write = channel->queued[i];
            struct dram_bank *bank = &channel->bank[write.bank];
            const uint64_t bit = UINT64_C(1) << (write.bank & 63);
            if ((used & bit) != 0 && bank->row != write.row) {
                channel->queued[kept++] = write;
                continue;
            }
            const uint32_t rank = write.bank >> dram->bank_log2;
            clocks += rank != channel->last_rank ? dram->rank_switch_clocks : 0;
            channel->last_rank = rank;
            const sim_time from_ps = SIM_MAX(at_ps, write.at_ps);
            const sim_time written_ps = write_bank(dram, channel, bank, write, from_ps, 0);
            end_ps = SIM_MAX(end_ps, written_ps);
            used |= bit;
        }
        remove_writes(channel, kept, i - kept);
    }
    calendar_take(&channel->bus, at_ps + dram->params->tcwl_ps, clocks);
    if (apart || (at_ps < channel->drain_from_ps && end_ps > channel->drain_from_ps))
        channel->drain_from_ps = at_ps;
    channel->drained_ps = SIM_MAX(channel->drained_ps, end_ps);
    dram->counts->write_modes++;
}

/* How many slots before `slot` are idle and follow each other, as far back as to `first`. */
static uint64_t idle_before(const struct calendar *bus, uint64_t slot, uint64_t first)
{
    uint64_t idle = 0;
    uint32_t more = 64;

    while (more == 64 && slot - idle > first) {
        if (idle >= CALENDAR_SLOTS) /* nothing is known of what is before */
            return slot - first;
        more = (uint32_t)SIM_MIN(calendar_idle_before(bus, slot - idle), slot - idle);
        idle += more;
    }
    return idle;
}

/* If no read waits at at_ps, writes that had arrived went one by one since the bus became idle. */
static void write_idle(struct dram *dram, struct dram_channel *channel, sim_time at_ps)
{
    const struct calendar *bus = &channel->bus;
    const uint64_t slot = calendar_slot_of(bus, at_ps + dram->params->tcl_ps);

    if (calendar_full_from(bus, slot) != 0)
        return;
    const uint64_t first = calendar_slot_of(bus, channel->queued[0].at_ps);
    const uint64_t idle = idle_before(bus, slot, SIM_MIN(first, slot));
    const sim_time idle_ps = (slot - idle) * dram->burst_ps;
    const sim_time until_ps = slot * dram->burst_ps;
    const uint32_t most = (uint32_t)SIM_MIN(channel->n_arrived, idle);
    uint32_t n = 0;
    for (; n < most; n++) {
        const struct dram_write write = channel->queued[n];
        const sim_time from_ps = SIM_MAX(write.at_ps + dram->params->tcwl_ps, idle_ps);
        if (from_ps + dram->burst_ps > until_ps)
            break;
        write_bank(dram, channel, &channel->bank[write.bank], write, write.at_ps, from_ps);
    }
    if (n > 0)
        remove_writes(channel, 0, n);
}

/* What the controller has done with writes until at_ps: reads before are known now. */
static void advance(struct dram *dram, struct dram_channel *channel, sim_time at_ps)
{
    while (channel->n_arrived < channel->n_queued &&
           channel->queued[channel->n_arrived].at_ps <= at_ps) {
        const sim_time arrived_ps = channel->queued[channel->n_arrived].at_ps;
        if (++channel->n_arrived < dram->write_high)
            continue;
        write_idle(dram, channel, arrived_ps);
        if (channel->n_arrived >= dram->write_high)
            write_mode(dram, channel, arrived_ps);
    }
    if (channel->n_arrived > 0)
        write_idle(dram, channel, at_ps);
}

/*
 * When a read that comes at at_ps has a place in the read queue. A place is free from the column
 * command on, and whose is next does not matter: as many commands as there are places must not be
 * later. A read behind the caller of the oldest of them is not queued behind it.
 */
static inline sim_time read_place(const struct dram_channel *channel, sim_time at_ps)
{
    const struct dram_waiting *oldest = &channel->waiting[channel->oldest];

    return at_ps < oldest->at_ps ? at_ps : SIM_MAX(at_ps, oldest->column_ps);
}

/* The read that came at at_ps has its column command at column_ps. */
static inline void note_read(const struct dram *dram, struct dram_channel *channel, sim_time at_ps,
                             sim_time column_ps)
{
    struct dram_waiting *waiting = channel->waiting;
    const uint32_t n = dram->params->read_queue;
    uint32_t to = channel->oldest;

    if (column_ps <= waiting[to].column_ps)
        return;
    channel->oldest = to + 1 == n ? 0 : to + 1;
    for (uint32_t i = 1; i < n; i++) {
        const uint32_t before = to == 0 ? n - 1 : to - 1;
        if (waiting[before].column_ps <= column_ps)
            break;
        waiting[to] = waiting[before];
        to = before;
    }
    waiting[to] = (struct dram_waiting){ at_ps, column_ps };
}

sim_time dram_read(struct dram *dram, uint64_t line, sim_time at_ps)
{
    if (SIM_UNLIKELY(dram->branch != NULL))
        return fbdimm_read(dram, line, at_ps);
    const struct dram_place p = place_of(dram, line);
    const sim_time queued_ps = at_ps + dram->params->controller_ps;
    struct dram_channel *channel = &dram->channel[p.channel];
    struct dram_rank *rank = &channel->rank[rank_of(dram, p)];

    if (channel->n_queued > 0)
        advance(dram, channel, queued_ps);
    channel->known_ps = SIM_MAX(channel->known_ps, queued_ps);
    const sim_time place_ps = read_place(channel, queued_ps);
    const sim_time end_ps = read_bank(dram, p, after_refresh(dram, rank, place_ps));
    const sim_time column_ps = end_ps - dram->burst_ps - dram->params->tcl_ps;

    note_read(dram, channel, queued_ps, column_ps);
    rank->used_ps = SIM_MAX(rank->used_ps, end_ps);
    dram->counts->read_wait_ps += column_ps - queued_ps;
    return end_ps;
}

/* More writes wait than there are places: without more reads a write mode has begun, at the latest
 * when as many had come as it takes. */
static void make_room(struct dram *dram, struct dram_channel *channel)
{
    sim_time at_ps = 0;

    for (uint32_t i = 0; i < dram->write_high; i++)
        at_ps = SIM_MAX(at_ps, channel->queued[i].at_ps);
    advance(dram, channel, at_ps);
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
    const struct dram_place p = place_of(dram, line);
    struct dram_channel *channel = &dram->channel[p.channel];

    /* Whether reads wait when a write arrives is known when their calls have come that far. */
    channel->queued[channel->n_queued++] = (struct dram_write){ at_ps, p.row, p.bank };
    if (at_ps <= channel->known_ps)
        advance(dram, channel, at_ps);
    if (SIM_UNLIKELY(channel->n_queued > params->write_queue))
        make_room(dram, channel);
    const uint32_t room = params->write_queue - channel->n_queued;
    if (at_ps < channel->drain_from_ps || still_given(dram, channel, at_ps) <= room)
        return at_ps;
    return count_wait(dram, channel, at_ps, channel->drained_ps - room * dram->burst_ps);
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
