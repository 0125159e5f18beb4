/*
 * Models: the chain of a channel: descriptors fetched from memory, some ahead of the one that is
 *   read for; version 1.2: next addresses up to 0, APPEND reads the last descriptor's once more;
 *   version 3.2: as many as DMACOUNT says; fences; completions and interrupts in order behind the
 *   data; suspend, resume, abort, reset; errors, which halt the channel behind what was before.
 * Does not model: arbitration by channel priority, status writes to I/O, bundles, page breaks.
 * Timing: a descriptor is fetched by one read of 64 bytes, as soon as descriptors_ahead allows. The
 *   first read of its copy leaves descriptor_start after it came and after the last read of the
 *   copy before was issued, whichever is later.
 * Sources: docs/sources.md#ioat; sections by register name in the data sheets (hw/ioat_regs.h):
 *   CHANCMD, CHANSTS, CHAINADDR, CHANCMP, CDAR, CHANERR, DMACOUNT.
 */
#include <stdlib.h>
#include <string.h>

#include "models/ioat/ioat_internal.h"

static void chain_ended(struct ioat_channel *ch)
{
    ch->armed = false;
    ch->suspending = false;
    ch->status = IOAT_CHANSTS_IDLE;
}

/* Descriptors are left that were not fetched. */
static bool more_to_fetch(const struct ioat_channel *ch)
{
    return ioat_is_v1(ch->engine) ? !ch->at_end || ch->append : ch->n_fetched != ch->count;
}

/* ---- Fetching -------------------------------------------------------------------------------- */

static uint32_t check(const struct ioat_channel *ch, const struct ioat_descriptor *d)
{
    const struct ioat_params *params = &ch->engine->params;
    const uint64_t limit = UINT64_C(1) << params->address_bits;
    if (d->control >> IOAT_CONTROL_OP_SHIFT != IOAT_CONTROL_OP_COPY)
        return IOAT_CHANERR_CONTROL;
    if (d->control & IOAT_CONTROL_NULL)
        return 0;
    if (d->bytes == 0 || d->bytes > params->transfer_bytes_max)
        return IOAT_CHANERR_LENGTH;
    if (d->source >= limit || d->bytes > limit - d->source)
        return IOAT_CHANERR_SOURCE;
    if (d->destination >= limit || d->bytes > limit - d->destination)
        return IOAT_CHANERR_DESTINATION;
    if (d->control & IOAT_CONTROL_COMPLETION &&
        (ch->completion_address % 8 != 0 || ch->completion_address >= limit))
        return IOAT_CHANERR_COMPLETION;
    return 0;
}

static void add_job(struct ioat_channel *ch, uint64_t address, uint32_t error)
{
    struct ioat_job *job = ioat_job_at(ch, ch->n_jobs++);
    *job = (struct ioat_job){ .channel = ch,
                              .descriptor = ch->fetched,
                              .address = address,
                              .error = error,
                              .ready_ps = SIM_TIME_MAX };
    if (error != 0 || job->descriptor.control & IOAT_CONTROL_NULL)
        job->descriptor.bytes = 0;
    if (job->descriptor.control & IOAT_CONTROL_FENCE)
        ch->engine->stats.fences++;
    /* The start-up of a copy whose turn has come begins now. */
    if (ch->n_issued == ch->n_jobs - 1 && error == 0 && !ch->suspending)
        job->ready_ps = sim_now(ch->engine->model->sim) + ch->engine->params.descriptor_start_ps;
}

/* An error of the fetch itself. */
static void add_failed(struct ioat_channel *ch, uint64_t address, uint32_t error)
{
    memset(&ch->fetched, 0, sizeof(ch->fetched));
    add_job(ch, address, error);
}

static void descriptor_here(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct ioat_channel *ch = SIM_CONTAINER(request, struct ioat_channel, fetch);
    ch->fetching = false;
    if (ch->stopping) {
        ioat_channel_go(ch);
        return;
    }
    if (status != PCIE_DMA_OK) {
        add_failed(ch, ch->fetch_address, ch->first ? IOAT_CHANERR_CHAIN : IOAT_CHANERR_NEXT);
        ioat_channel_go(ch);
        return;
    }
    ch->next = ch->fetched.next;
    ch->at_end = ioat_is_v1(ch->engine) && ch->next == 0;
    if (!ch->reloading) {
        ch->first = false;
        ch->n_fetched++;
        ch->tail = ch->fetch_address;
        add_job(ch, ch->fetch_address, check(ch, &ch->fetched));
    }
    ioat_channel_go(ch);
}

/* The oldest job that has failed, and those behind it, will not be done. */
static bool has_failed(struct ioat_channel *ch)
{
    for (uint32_t i = 0; i < ch->n_jobs; i++)
        if (ioat_job_at(ch, i)->error != 0)
            return true;
    return false;
}

static void fetch(struct ioat_channel *ch)
{
    const uint32_t waiting = ch->n_jobs - ch->n_issued;
    if (!ch->armed || ch->fetching || ch->stopping || ch->suspending || !more_to_fetch(ch) ||
        waiting > ch->engine->params.descriptors_ahead || ch->n_jobs == IOAT_JOBS || has_failed(ch))
        return;
    ch->reloading = ioat_is_v1(ch->engine) && ch->at_end;
    if (ch->reloading)
        ch->append = false;
    ch->fetch_address = ch->reloading ? ch->tail : ch->next;
    if (ch->fetch_address % IOAT_DESC_BYTES != 0) {
        add_failed(ch, ch->fetch_address, ch->first ? IOAT_CHANERR_CHAIN : IOAT_CHANERR_NEXT_ALIGN);
        ioat_channel_go(ch);
        return;
    }
    ch->fetching = true;
    ch->engine->stats.fetches++;
    ch->fetch = (struct pcie_dma_request){ .iova = { ch->fetch_address },
                                           .bytes = IOAT_DESC_BYTES,
                                           .buffer = (uint8_t *)&ch->fetched,
                                           .independent = true,
                                           .done = descriptor_here };
    pcie_dma_read(&ch->func->function.dma, &ch->fetch, ioat_slot(ch->engine));
}

/* ---- The end of a copy ----------------------------------------------------------------------- */

static void job_over(struct ioat_job *job)
{
    struct ioat_channel *ch = job->channel;
    const bool interrupt = (job->descriptor.control & IOAT_CONTROL_INTERRUPT) != 0;
    ch->first_job = (ch->first_job + 1) % IOAT_JOBS;
    ch->n_jobs--;
    ch->n_issued--;
    if (interrupt)
        ioat_interrupt_raise(ch);
}

static void completion_written(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct ioat_job *job = SIM_CONTAINER(request, struct ioat_job, completion);
    struct ioat_channel *ch = job->channel;
    (void)status;
    job_over(job);
    ioat_channel_go(ch);
}

/* Whether another descriptor follows the oldest one, as far as the channel knows. */
static bool is_last(const struct ioat_channel *ch)
{
    return ch->n_jobs == 1 && !ch->fetching && !more_to_fetch(ch);
}

static void end_job(struct ioat_channel *ch, struct ioat_job *job)
{
    job->ending = true;
    ch->engine->stats.descriptors++;
    ch->last = job->address;
    if (!(job->descriptor.control & IOAT_CONTROL_COMPLETION)) {
        job_over(job);
        ch->again = true;
        return;
    }
    job->status = job->address | (is_last(ch) ? IOAT_CHANSTS_IDLE : IOAT_CHANSTS_ACTIVE);
    job->completion = (struct pcie_dma_request){ .iova = { ch->completion_address },
                                                 .bytes = sizeof(job->status),
                                                 .buffer = (uint8_t *)&job->status,
                                                 .done = completion_written };
    ch->engine->stats.completions++;
    if (ch->control & IOAT_CHANCTRL_COMPLETION_DCA)
        ioat_steer(ch, &job->completion);
    pcie_dma_write(&ch->func->function.dma, &job->completion, ioat_slot(ch->engine));
}

/* Of a failed job, the units have been dropped as they came. */
static bool holds_units(const struct ioat_channel *ch, const struct ioat_job *job)
{
    return ch->n_units != 0 && &ch->job[ch->unit[ch->first_unit].job] == job;
}

static void retire(struct ioat_channel *ch)
{
    if (ch->n_jobs == 0) {
        if (ch->armed && !ch->fetching && !ch->stopping && !more_to_fetch(ch))
            chain_ended(ch);
        return;
    }
    struct ioat_job *job = ioat_job_at(ch, 0);
    ch->current = job->address;
    if (job->ending || job->n_writes != 0)
        return;
    if (job->error != 0) {
        if (!holds_units(ch, job)) {
            ch->stopping = true;
            ch->halt_error = job->error;
        }
    } else if (job->written == job->descriptor.bytes && ch->n_issued != 0) {
        end_job(ch, job);
    }
}

/* ---- Stopping -------------------------------------------------------------------------------- */

static void halt_written(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct ioat_channel *ch = SIM_CONTAINER(request, struct ioat_channel, halt_completion);
    (void)status;
    ch->halt_writing = false;
    if (ch->control & IOAT_CHANCTRL_ERR_INT)
        ioat_interrupt_raise(ch);
    ioat_channel_go(ch);
}

static void signal_error(struct ioat_channel *ch)
{
    if (!(ch->control & IOAT_CHANCTRL_ERR_COMPLETION) || ch->completion_address % 8 != 0) {
        if (ch->control & IOAT_CHANCTRL_ERR_INT)
            ioat_interrupt_raise(ch);
        return;
    }
    ch->halt_status = ch->last | IOAT_CHANSTS_HALTED;
    ch->halt_writing = true;
    ch->halt_completion = (struct pcie_dma_request){ .iova = { ch->completion_address },
                                                     .bytes = sizeof(ch->halt_status),
                                                     .buffer = (uint8_t *)&ch->halt_status,
                                                     .done = halt_written };
    pcie_dma_write(&ch->func->function.dma, &ch->halt_completion, ioat_slot(ch->engine));
}

/* Nothing is under way any more. */
static void stopped(struct ioat_channel *ch)
{
    const uint32_t error = ch->halt_error;
    ioat_data_drop(ch);
    sim_cancel(ch->engine->model->sim, &ch->start);
    ch->n_jobs = ch->n_issued = 0;
    ch->stopping = ch->suspending = ch->resetting = ch->armed = ch->append = false;
    ch->halt_error = 0;
    ch->status = IOAT_CHANSTS_HALTED;
    if (error == 0)
        return;
    ch->error |= error;
    ch->engine->stats.errors++;
    if (!(ch->error_mask & error))
        signal_error(ch);
}

static bool is_quiet(const struct ioat_channel *ch)
{
    const struct ioat_job *job = &ch->job[ch->first_job];
    return ch->n_reads == 0 && ch->n_writes == 0 && !ch->fetching && !ch->halt_writing &&
           !(ch->n_jobs != 0 && job->ending);
}

/* The copies that have begun are done; those behind them keep their place. */
static void suspend(struct ioat_channel *ch)
{
    if (!ch->suspending || ch->fetching || ch->status != IOAT_CHANSTS_ACTIVE || ch->n_issued != 0 ||
        (ch->n_jobs != 0 && ioat_job_at(ch, 0)->read != 0))
        return;
    for (uint32_t i = 0; i < ch->n_jobs; i++)
        ioat_job_at(ch, i)->ready_ps = SIM_TIME_MAX;
    sim_cancel(ch->engine->model->sim, &ch->start);
    ch->status = IOAT_CHANSTS_SUSPENDED;
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* The ends of requests may come within their submission. */
void ioat_channel_go(struct ioat_channel *ch)
{
    ch->again = true;
    if (ch->looping)
        return;
    ch->looping = true;
    while (ch->again) {
        ch->again = false;
        if (ch->stopping) {
            if (is_quiet(ch))
                stopped(ch);
            continue;
        }
        ioat_data_write(ch);
        retire(ch);
        suspend(ch);
        if (ch->status != IOAT_CHANSTS_ACTIVE || ch->stopping) {
            ch->again = ch->again || ch->stopping;
            continue;
        }
        fetch(ch);
        ioat_data_read(ch);
    }
    ch->looping = false;
}

static void start_fire(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    ioat_channel_go(SIM_CONTAINER(event, struct ioat_channel, start));
}

/* ---- Commands -------------------------------------------------------------------------------- */

static void activate(struct ioat_channel *ch)
{
    ch->armed = true;
    ch->suspending = false;
    ch->status = IOAT_CHANSTS_ACTIVE;
    ioat_channel_go(ch);
}

static void bad_command(struct ioat_channel *ch)
{
    ch->engine->stats.bad_commands++;
    ch->error |= IOAT_CHANERR_COMMAND;
    if (ch->status != IOAT_CHANSTS_ACTIVE || ch->stopping)
        return;
    ch->stopping = true;
    ch->halt_error = IOAT_CHANERR_COMMAND;
    ioat_channel_go(ch);
}

static void begin_stop(struct ioat_channel *ch, bool reset)
{
    ch->stopping = true;
    ch->resetting = reset;
    ch->halt_error = 0;
    ch->engine->stats.resets += reset;
    ioat_channel_go(ch);
}

static void start_chain(struct ioat_channel *ch)
{
    ch->next = ch->chain_address;
    ch->first = true;
    ch->at_end = ch->append = false;
    activate(ch);
}

static void append(struct ioat_channel *ch)
{
    ch->append = true;
    if (ch->status == IOAT_CHANSTS_IDLE)
        activate(ch);
    else
        ioat_channel_go(ch);
}

void ioat_channel_command(struct ioat_channel *ch, uint32_t command)
{
    const bool v1 = ioat_is_v1(ch->engine);
    const uint8_t status = ch->status;
    if (command == 0)
        return;
    if (command == IOAT_CHANCMD_RESET)
        begin_stop(ch, true);
    else if (ch->stopping) /* whatever it is, it comes too early */
        ch->engine->stats.bad_commands++;
    else if (command == IOAT_CHANCMD_SUSPEND && status == IOAT_CHANSTS_ACTIVE) {
        ch->suspending = true;
        ioat_channel_go(ch);
    } else if (command == IOAT_CHANCMD_SUSPEND) {
        /* there is nothing to suspend */
    } else if (v1 && command == IOAT_CHANCMD_ABORT)
        begin_stop(ch, false);
    else if (v1 && command == IOAT_CHANCMD_START &&
             (status == IOAT_CHANSTS_IDLE || status == IOAT_CHANSTS_HALTED))
        start_chain(ch);
    else if (v1 && command == IOAT_CHANCMD_APPEND && status != IOAT_CHANSTS_HALTED)
        append(ch);
    else if (v1 && command == IOAT_CHANCMD_RESUME && status == IOAT_CHANSTS_SUSPENDED)
        activate(ch);
    else
        bad_command(ch);
}

/* 3.2. A channel that was suspended goes on. */
void ioat_channel_count(struct ioat_channel *ch, uint16_t count)
{
    const uint16_t before = (uint16_t)(ch->count - ch->n_fetched);
    const uint16_t now = (uint16_t)(count - ch->n_fetched);
    ch->count = count;
    if (ch->stopping || ch->status == IOAT_CHANSTS_HALTED)
        return;
    if (now < before || now > 0x8000) { /* fewer than were asked for */
        ch->error |= IOAT_CHANERR_COUNT;
        ch->stopping = true;
        ch->halt_error = IOAT_CHANERR_COUNT;
        ioat_channel_go(ch);
    } else if (now != 0 || ch->n_jobs != 0) {
        activate(ch);
    }
}

/* 3.2: a new chain for a channel that does not work; its count begins anew. */
void ioat_channel_chain(struct ioat_channel *ch, uint64_t address)
{
    ch->chain_address = address;
    if (ioat_is_v1(ch->engine) || ch->stopping || ch->status == IOAT_CHANSTS_ACTIVE)
        return;
    ch->n_jobs = ch->n_issued = 0;
    ch->next = address;
    ch->first = true;
    ch->n_fetched = ch->count = 0;
    ch->status = IOAT_CHANSTS_IDLE;
}

/* ---- Life ------------------------------------------------------------------------------------ */

void ioat_channel_init(struct ioat_channel *ch, struct ioat_func *func, uint32_t number)
{
    const uint32_t n = func->engine->params.reads_in_flight;
    *ch = (struct ioat_channel){ .engine = func->engine, .func = func, .number = number };
    ch->status = IOAT_CHANSTS_HALTED;
    ch->unit = sim_zalloc(n, sizeof(*ch->unit));
    ch->write = sim_zalloc(n, sizeof(*ch->write));
    for (uint32_t i = n; i-- > 0;) {
        ch->unit[i].channel = ch;
        ch->write[i].channel = ch;
        ch->write[i].next = ch->free_write;
        ch->free_write = &ch->write[i];
    }
    sim_event_init(&ch->start, start_fire);
    sim_event_init(&ch->interrupt, ioat_interrupt_due);
}

void ioat_channel_release(struct ioat_channel *ch)
{
    sim_cancel(ch->engine->model->sim, &ch->start);
    sim_cancel(ch->engine->model->sim, &ch->interrupt);
    free(ch->unit);
    free(ch->write);
}

void ioat_channel_gone(struct ioat_channel *ch)
{
    sim_cancel(ch->engine->model->sim, &ch->interrupt);
    ch->error_mask = UINT32_MAX;
    begin_stop(ch, false);
}

void ioat_channel_reset(struct ioat_channel *ch)
{
    SIM_ASSERT(!ch->stopping && ch->n_jobs == 0 && ch->n_writes == 0,
               "%s: channel %u is reset while it works", ch->engine->model->name, ch->number);
    ch->control = ch->error = ch->error_mask = ch->dca = 0;
    ch->chain_address = ch->completion_address = ch->last = ch->current = 0;
    ch->count = ch->n_fetched = 0;
    ch->status = IOAT_CHANSTS_HALTED;
    ch->armed_ps = 0;
}
