/*
 * Models: the data path of a channel: lines of the source read ahead, so many in flight; lines of
 *   the destination written in order, as soon as all their bytes are here, whatever the alignment
 *   of both; one read and write engine for all channels, which starts a line at a time; content in
 *   tag mode (models/base/payload.h) that moves to another place within its lines.
 * Does not model: no-snoop (the attribute is set, root complexes snoop all the same), XOR, P+Q,
 *   CRC, fill; a read of less than a line: the engine reads the whole line at either end of a
 *   source.
 * Timing: a line of n in flight takes a place from its read's issue until its last byte was put
 *   into a write, so a channel moves at most
 *       reads_in_flight * 64 / (engine slot + round trip of a read)
 *   and all of them together two lines, one read and one written, per 2 * engine_interval.
 * Sources: docs/sources.md#ioat.
 */
#include <string.h>

#include "models/base/payload.h"
#include "models/ioat/ioat_internal.h"

/* ---- Reads ----------------------------------------------------------------------------------- */

static uint32_t error_of(enum pcie_dma_status status)
{
    return status == PCIE_DMA_UNSUPPORTED ? IOAT_CHANERR_SOURCE : IOAT_CHANERR_READ_DATA;
}

static void line_arrives(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct ioat_unit *unit = SIM_CONTAINER(request, struct ioat_unit, read);
    struct ioat_channel *ch = unit->channel;
    unit->arrived = true;
    unit->error = (uint8_t)status;
    ch->n_reads--;
    ioat_channel_go(ch);
}

/* The next line of the job. A fenced read keeps the order behind the writes before it. */
static void read_line(struct ioat_channel *ch, struct ioat_job *job)
{
    struct ioat_engine *engine = ch->engine;
    struct ioat_unit *unit =
        &ch->unit[(ch->first_unit + ch->n_units) % engine->params.reads_in_flight];
    const uint64_t source = job->descriptor.source + job->read;
    const uint64_t left = job->descriptor.bytes - job->read;
    unit->at = (uint32_t)(source % LINE_BYTES);
    unit->end = (uint32_t)SIM_MIN(LINE_BYTES, unit->at + left);
    unit->job = (uint32_t)(job - ch->job);
    unit->arrived = false;
    unit->read = (struct pcie_dma_request){
        .iova = { source - unit->at },
        .bytes = LINE_BYTES,
        .buffer = unit->line,
        .attr = job->descriptor.control & IOAT_CONTROL_SOURCE_NO_SNOOP ? TLP_ATTR_NO_SNOOP : 0,
        .independent = true,
        .done = line_arrives
    };
    job->read += unit->end - unit->at;
    ch->n_units++;
    ch->n_reads++;
    engine->stats.read_lines++;
    pcie_dma_read(&ch->func->function.dma, &unit->read, ioat_slot(engine));
}

/* The descriptor before it lets it begin: its reads are issued; with a fence, its data written. */
static bool may_begin(struct ioat_channel *ch, uint32_t i)
{
    if (i == 0)
        return true;
    const struct ioat_job *before = ioat_job_at(ch, i - 1);
    return !(before->descriptor.control & IOAT_CONTROL_FENCE);
}

void ioat_data_read(struct ioat_channel *ch)
{
    const struct ioat_params *params = &ch->engine->params;
    struct sim *sim = ch->engine->model->sim;
    while (ch->n_issued < ch->n_jobs) {
        struct ioat_job *job = ioat_job_at(ch, ch->n_issued);
        if (job->error != 0 || !may_begin(ch, ch->n_issued) || (ch->suspending && job->read == 0))
            return;
        if (job->ready_ps == SIM_TIME_MAX)
            job->ready_ps = sim_now(sim) + params->descriptor_start_ps;
        if (job->ready_ps > sim_now(sim)) {
            if (!sim_event_pending(&ch->start))
                sim_schedule(sim, &ch->start, job->ready_ps);
            return;
        }
        while (job->read < job->descriptor.bytes) {
            if (ch->n_units == params->reads_in_flight || job->error != 0 || ch->stopping)
                return;
            read_line(ch, job);
        }
        ch->n_issued++;
        ch->again = ch->again || job->descriptor.bytes == 0; /* it is done at once */
    }
}

/* ---- Writes ---------------------------------------------------------------------------------- */

static void line_written(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct ioat_write *write = SIM_CONTAINER(request, struct ioat_write, request);
    struct ioat_channel *ch = write->channel;
    struct ioat_job *job = &ch->job[write->job];
    write->next = ch->free_write;
    ch->free_write = write;
    ch->n_writes--;
    job->n_writes--;
    if (status != PCIE_DMA_OK && job->error == 0)
        job->error = IOAT_CHANERR_WRITE_DATA;
    ioat_channel_go(ch);
}

/* What is being put together: a run of a stream that may go on. */
struct run {
    uint32_t at, bytes;
    uint64_t mark; /* of its first byte; 0: none */
};

/* Moves bytes of a line to another place in a line; marks of streams stay in the first eight bytes
 * of what they mark. */
static void move_bytes(uint8_t *to_line, uint32_t to, const uint8_t *line, uint32_t from,
                       uint32_t bytes, struct run *run)
{
    if ((to | from) == 0) {
        memcpy(to_line, line, bytes);
        run->mark = 0; /* what follows begins a run of its own, if anything follows */
        return;
    }
    while (bytes != 0) {
        uint64_t mark;
        const uint32_t n = payload_line_run(line, from, bytes, &mark);
        if (mark == 0) {
            memcpy(to_line + to, line + from, n);
            run->mark = 0;
        } else if (run->mark != 0 && mark == payload_mark_add(run->mark, run->bytes)) {
            run->bytes += n;
            payload_line_put(to_line, run->at, run->mark, run->bytes);
        } else {
            *run = (struct run){ .at = to, .bytes = n, .mark = mark };
            payload_line_put(to_line, to, mark, n);
        }
        from += n;
        to += n;
        bytes -= n;
    }
}

/* The units that hold the next `bytes` bytes of the job have arrived. */
static bool is_here(const struct ioat_channel *ch, uint32_t bytes)
{
    const uint32_t n = ch->engine->params.reads_in_flight;
    for (uint32_t i = 0; i < ch->n_units; i++) {
        const struct ioat_unit *unit = &ch->unit[(ch->first_unit + i) % n];
        if (!unit->arrived)
            return false;
        if (unit->end - unit->at >= bytes)
            return true;
        bytes -= unit->end - unit->at;
    }
    return false;
}

static void unit_pop(struct ioat_channel *ch)
{
    ch->first_unit = (ch->first_unit + 1) % ch->engine->params.reads_in_flight;
    ch->n_units--;
}

static void write_piece(struct ioat_channel *ch, struct ioat_job *job, uint32_t bytes)
{
    struct ioat_engine *engine = ch->engine;
    struct ioat_write *write = ch->free_write;
    const uint64_t destination = job->descriptor.destination + job->written;
    const uint32_t offset = (uint32_t)(destination % LINE_BYTES);
    struct run run = { .mark = 0 };
    ch->free_write = write->next;
    for (uint32_t done = 0; done < bytes;) {
        struct ioat_unit *unit = &ch->unit[ch->first_unit];
        const uint32_t n = SIM_MIN(bytes - done, unit->end - unit->at);
        move_bytes(write->line, offset + done, unit->line, unit->at, n, &run);
        done += n;
        unit->at += n;
        if (unit->at == unit->end)
            unit_pop(ch);
    }
    write->job = (uint32_t)(job - ch->job);
    write->request = (struct pcie_dma_request){
        .iova = { destination },
        .bytes = bytes,
        .buffer = write->line + offset,
        .attr = job->descriptor.control & IOAT_CONTROL_DEST_NO_SNOOP ? TLP_ATTR_NO_SNOOP : 0,
        .done = line_written
    };
    if (job->descriptor.control & IOAT_CONTROL_DCA)
        ioat_steer(ch, &write->request);
    job->written += bytes;
    job->n_writes++;
    ch->n_writes++;
    engine->stats.write_lines++;
    engine->stats.bytes += bytes;
    pcie_dma_write(&ch->func->function.dma, &write->request, ioat_slot(engine));
}

/* The oldest unit's read has failed, or belongs to a job that has: it goes. */
static bool drop_failed(struct ioat_channel *ch)
{
    const struct ioat_unit *unit = &ch->unit[ch->first_unit];
    if (ch->n_units == 0 || !unit->arrived)
        return false;
    struct ioat_job *job = &ch->job[unit->job];
    if (unit->error != PCIE_DMA_OK && job->error == 0)
        job->error = error_of((enum pcie_dma_status)unit->error);
    if (job->error == 0)
        return false;
    unit_pop(ch);
    return true;
}

/* The second unit of a piece may have failed while the first is good. */
static bool is_good(struct ioat_channel *ch, struct ioat_job *job, uint32_t bytes)
{
    const uint32_t n = ch->engine->params.reads_in_flight;
    for (uint32_t i = 0, have = 0; i < ch->n_units && have < bytes; i++) {
        const struct ioat_unit *unit = &ch->unit[(ch->first_unit + i) % n];
        if (unit->error != PCIE_DMA_OK) {
            job->error = error_of((enum pcie_dma_status)unit->error);
            return false;
        }
        have += unit->end - unit->at;
    }
    return true;
}

void ioat_data_write(struct ioat_channel *ch)
{
    for (;;) {
        while (drop_failed(ch))
            ;
        if (ch->n_units == 0 || ch->free_write == NULL)
            return;
        struct ioat_job *job = &ch->job[ch->unit[ch->first_unit].job];
        if (job->error != 0)
            return;
        const uint64_t destination = job->descriptor.destination + job->written;
        const uint32_t bytes = (uint32_t)SIM_MIN(LINE_BYTES - destination % LINE_BYTES,
                                                 job->descriptor.bytes - job->written);
        if (!is_here(ch, bytes))
            return;
        if (is_good(ch, job, bytes))
            write_piece(ch, job, bytes);
    }
}

void ioat_data_drop(struct ioat_channel *ch)
{
    SIM_ASSERT(ch->n_reads == 0, "%s: %u reads under way", ch->engine->model->name, ch->n_reads);
    ch->first_unit = ch->n_units = 0;
}
