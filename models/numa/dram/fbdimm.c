/*
 * FB-DIMM branches.
 *
 * Models: read data northbound, write data southbound at half the rate, neither waiting for the
 *   other; the buffer (AMB) of each DIMM with a DDR2 bus that its reads and writes share; the delay
 *   of the whole chain for every DIMM, as the controller sets it; banks whose row is closed after
 *   each access (auto-precharge), busy with reads and writes; refresh; writes that wait in a queue
 *   and are drained in batches, with one turnaround of each DDR2 bus that the batch has used.
 * Does not model: the commands' share of southbound frames (three fit a frame, one beside data),
 *   gaps for changes of rank behind one buffer, open pages, tFAW, throttling.
 * Timing:
 *   idle read = controller + frame + tRCD + tCL + buffer + (dimms - 1) hops + line northbound
 *   a bank serves one access in the longer of the cycles of a read, max(tRAS, tRCD + line) + tRP,
 *   and of a write, tRCD + tCL - clock + line + tWR + tRP
 *   a line takes bus_bytes x rate northbound and on a DDR2 bus, twice as long southbound
 * Sources: docs/sources.md#fsb, docs/sources.md#h
 */
#include "models/numa/dram/fbdimm.h"

#include <stdlib.h>

#define LINE_UNITS 4u /* of a calendar's slot */

static uint32_t banks_of_branch(const struct numa_dram_params *params)
{
    return params->dimms * params->ranks * params->banks;
}

/* Frames carry half a line of a branch northbound; there is one for each clock of the DRAM. */
static sim_time frame_ps(const struct dram *dram)
{
    return dram->burst_ps / 2;
}

/* x / channels, without a division. */
static inline uint64_t per_channel(const struct dram *dram, uint64_t x)
{
    if (dram->params->channels <= 2)
        return x >> (dram->params->channels - 1);
    return (uint64_t)(((unsigned __int128)x * dram->channel_reciprocal) >> 64);
}

/* Consecutive lines go round the branches, then round all DIMMs, ranks and banks, which is what
 * closed rows ask for; the bank is hashed with higher bits. */
static inline struct fbdimm_place place_of(const struct dram *dram, uint64_t line)
{
    const struct fbdimm_shape *shape = &dram->fbdimm;
    const uint32_t log2 = shape->banks_log2;
    const uint64_t q = per_channel(dram, line), turn = line + q + (q >> 7);
    const uint32_t idx = (uint32_t)(turn - per_channel(dram, turn) * dram->params->channels);
    const uint32_t flat = (uint32_t)(q ^ (q >> log2) ^ (q >> 2 * log2)) & shape->banks_mask;
    struct fbdimm_branch *branch = &dram->branch[idx];
    const uint32_t rank = flat & shape->rank_mask;

    return (struct fbdimm_place){ branch, &branch->bank[flat], rank & shape->dimm_mask,
                                  idx * shape->ranks + rank };
}

/* From a write's activation to its data: one clock less than a read's. */
static sim_time write_delay_ps(const struct dram *dram)
{
    const struct numa_dram_params *params = dram->params;

    return params->trcd_ps + params->tcl_ps - SIM_MIN(params->tcl_ps, frame_ps(dram));
}

static sim_time bank_cycle_ps(const struct dram *dram)
{
    const struct numa_dram_params *params = dram->params;
    const sim_time read_ps = SIM_MAX(params->tras_ps, params->trcd_ps + dram->burst_ps);
    const sim_time write_ps = write_delay_ps(dram) + dram->burst_ps + params->twr_ps;

    return SIM_MAX(read_ps, write_ps) + params->trp_ps;
}

static sim_time chain_ps(const struct numa_dram_params *params)
{
    return params->buffer_ps + (params->dimms - 1) * params->hop_ps;
}

/* Banks, ranks and DIMMs are powers of two. */
static struct fbdimm_shape shape_of(const struct dram *dram)
{
    const struct numa_dram_params *params = dram->params;
    const uint32_t n_banks = banks_of_branch(params), ranks = params->ranks * params->dimms;

    return (struct fbdimm_shape){ .banks_log2 = (uint32_t)__builtin_ctz(n_banks),
                                  .banks_mask = n_banks - 1,
                                  .rank_mask = ranks - 1,
                                  .dimm_mask = params->dimms - 1,
                                  .ranks = ranks,
                                  .command_ps = params->controller_ps + frame_ps(dram),
                                  .write_delay_ps = write_delay_ps(dram),
                                  .chain_ps = chain_ps(params) };
}

void fbdimm_init(struct dram *dram)
{
    const struct numa_dram_params *params = dram->params;

    dram->fbdimm = shape_of(dram);

    dram->branch = sim_zalloc(params->channels, sizeof(*dram->branch));
    for (uint32_t i = 0; i < params->channels; i++) {
        struct fbdimm_branch *branch = &dram->branch[i];
        calendar_init(&branch->north, dram->burst_ps, LINE_UNITS);
        calendar_init(&branch->south, 2 * dram->burst_ps, LINE_UNITS);
        for (uint32_t d = 0; d < params->dimms; d++)
            calendar_init(&branch->bus[d], dram->burst_ps, LINE_UNITS);
        branch->bank = sim_zalloc(banks_of_branch(params), sizeof(*branch->bank));
        for (uint32_t b = 0; b < banks_of_branch(params); b++)
            calendar_slots_init(&branch->bank[b], bank_cycle_ps(dram));
    }
}

void fbdimm_release(struct dram *dram)
{
    for (uint32_t i = 0; dram->branch != NULL && i < dram->params->channels; i++)
        free(dram->branch[i].bank);
    free(dram->branch);
    dram->branch = NULL;
}

/* Takes a line's time on a bus at or after at_ps; returns when it begins. */
static sim_time take_line(struct calendar *bus, sim_time at_ps, sim_time line_ps)
{
    const struct calendar_grant grant = calendar_take(bus, at_ps, LINE_UNITS);

    return SIM_MAX(at_ps, grant.end_ps - line_ps);
}

sim_time fbdimm_read(struct dram *dram, uint64_t line, sim_time at_ps)
{
    const struct numa_dram_params *params = dram->params;
    const struct fbdimm_place p = place_of(dram, line);
    const sim_time command_ps = at_ps + dram->fbdimm.command_ps;
    const sim_time start_ps = calendar_slots_take(p.bank,
                                                  dram_after_refresh(dram, p.refresh, command_ps));
    const sim_time data_ps = take_line(&p.branch->bus[p.dimm],
                                       start_ps + params->trcd_ps + params->tcl_ps, dram->burst_ps);

    return take_line(&p.branch->north, data_ps + dram->fbdimm.chain_ps, dram->burst_ps) +
           dram->burst_ps;
}

/* One write of a batch; returns when its data have left the controller. */
static sim_time drain_line(struct dram *dram, struct fbdimm_place p, sim_time at_ps,
                           uint32_t *dimms)
{
    const sim_time sent_ps = calendar_take(&p.branch->south, at_ps, LINE_UNITS).end_ps;
    const sim_time start_ps = calendar_slots_take(p.bank,
                                                  dram_after_refresh(dram, p.refresh, sent_ps));

    take_line(&p.branch->bus[p.dimm], start_ps + dram->fbdimm.write_delay_ps, dram->burst_ps);
    *dimms |= 1u << p.dimm;
    return sent_ps;
}

static void drain(struct dram *dram, struct fbdimm_branch *branch, sim_time at_ps)
{
    /* tWTR and tCL from a write's data to a read's, a clock from a read's to a write's. */
    const sim_time turnaround_ps = dram->params->twtr_ps + dram->params->tcl_ps + frame_ps(dram);
    const uint32_t turnaround =
        (uint32_t)((turnaround_ps * LINE_UNITS + dram->burst_ps / 2) / dram->burst_ps);
    uint32_t dimms = 0;
    sim_time end_ps = at_ps;

    for (uint32_t i = 0; i < branch->n_queued; i++) {
        const sim_time sent_ps = drain_line(dram, branch->queued[i], at_ps, &dimms);
        end_ps = SIM_MAX(end_ps, sent_ps);
    }
    for (uint32_t d = 0; d < dram->params->dimms; d++)
        if ((dimms >> d & 1u) != 0)
            calendar_take(&branch->bus[d], end_ps, turnaround);
    const bool apart = at_ps > branch->drained_ps;
    if (apart || (at_ps < branch->drain_from_ps && end_ps > branch->drain_from_ps))
        branch->drain_from_ps = at_ps;
    branch->drained_ps = SIM_MAX(branch->drained_ps, end_ps);
    branch->n_queued = 0;
}

sim_time fbdimm_write(struct dram *dram, uint64_t line, sim_time at_ps)
{
    const struct numa_dram_params *params = dram->params;
    const struct fbdimm_place place = place_of(dram, line);
    struct fbdimm_branch *branch = place.branch;
    const sim_time queue_ps = params->write_queue * 2 * dram->burst_ps;

    branch->queued[branch->n_queued++] = place;
    if (branch->n_queued >= params->write_batch)
        drain(dram, branch, at_ps);
    if (at_ps < branch->drain_from_ps || branch->drained_ps < queue_ps)
        return at_ps;
    return SIM_MAX(at_ps, branch->drained_ps - queue_ps);
}

sim_time fbdimm_idle_read_ps(const struct dram *dram)
{
    const struct numa_dram_params *params = dram->params;

    return params->controller_ps + frame_ps(dram) + params->trcd_ps + params->tcl_ps +
           chain_ps(params) + dram->burst_ps;
}

struct dram_peaks fbdimm_peaks(const struct dram *dram, sim_time now_ps)
{
    const uint32_t n = dram->params->channels;
    const double per_s = n * 64e12 / (double)dram->burst_ps;
    struct dram_peaks peaks = { .read.per_s = per_s,
                                .write.per_s = per_s / 2,
                                .both.per_s = per_s * 1.5 };

    for (uint32_t i = 0; i < n; i++) {
        const struct fbdimm_branch *branch = &dram->branch[i];
        /* A slot's units are quarters of a line; one slot may be cut by either edge. */
        peaks.read.slack += 16.0 * (double)calendar_units_after(&branch->north, now_ps) + 64;
        peaks.write.slack += 16.0 * (double)calendar_units_after(&branch->south, now_ps) + 64 +
                             64.0 * branch->n_queued;
    }
    peaks.both.slack = peaks.read.slack + peaks.write.slack;
    return peaks;
}
