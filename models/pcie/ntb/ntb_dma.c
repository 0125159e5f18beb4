/*
 * Models: the DMA engine of a bridge chip: channels with rings of descriptors, fetched ahead;
 *   copies as reads of at most the size in the channel's control register, so many in flight, each
 *   with a place in the buffer until its data has left as a write; write-back of results; MSI-X;
 *   pause; failures. The engine stands beside the port of its host, where PLX chips have it (their
 *   DMA functions are functions 1 to 4 of the upstream port's device): an address in an aperture is
 *   translated there, crosses the chip and leaves by the cable; any other leaves towards the host.
 *   Reading and writing halves do not wait for each other.
 * Does not model: abort, block mode, descriptors on chip, weights of channels, traffic classes.
 * Timing: descriptors are fetched by a read; the first read of a copy leaves the engine
 *   `descriptor` after its descriptor came. Between engine and host's port `port` each way, between
 *   engine and cable the latency of the chip more. A place in the buffer is taken from the read's
 *   issue until the last byte of its data has left the chip, as receive buffers of ports are; so n
 *   bytes with reads of r bytes and w places move at w * r per
 *       round trip of the read + way of the write to the wire
 *   at most. Writes leave in the order of the reads of their channel, each read's data as TLPs of
 *   its own.
 * Sources: docs/models/ntb.md#dma; docs/sources.md#ntb.
 */
#include "models/pcie/ntb/ntb_dma.h"

#include <stdlib.h>
#include <string.h>

#include "models/pcie/ntb/ntb.h"

#define DESCRIPTOR_BYTES sizeof(struct ntb_dma_descriptor)
#define PREFETCH_DEFAULT 4u

enum { FROM_HOST = NTB_HOST, FROM_CABLE = NTB_CABLE, FROM_CHIP, N_ORIGINS };

/* Completions on their way in, in order. */
struct arrivals {
    struct ntb_dma *dma;
    struct tlp *first, *last;
    struct sim_event event;
};

struct channel;

/* A descriptor that was fetched. */
struct job {
    struct channel *channel;
    uint64_t source, destination;
    uint32_t bytes, issued, moved; /* issued: reads were made for these */
    uint32_t idx;                  /* in the ring */
    uint32_t n_units;              /* under way */
    uint32_t result;               /* NTB_DMA_READ_FAIL, NTB_DMA_WRITE_FAIL, 0 */
    bool notify, ending;
    bool dropped;      /* one before it has failed: it will be fetched again */
    sim_time ready_ps; /* of its first read */
    uint32_t word, message;
    struct pcie_dma_request write_back, interrupt;
};

/* A read and the write that its data becomes: a place in the buffer. */
struct unit {
    struct unit *next;
    struct job *job;
    bool arrived, failed;
    struct pcie_dma_request read, write;
    struct sim_event left; /* its data has left the chip */
    uint8_t buffer[NTB_DMA_SIZE_MAX];
};

struct channel {
    struct ntb_dma *dma;
    uint32_t number;
    /* Registers. */
    uint64_t ring;
    uint32_t ring_size, next, last, last_bytes, prefetch, size_code, interrupt, status;
    /* running: there is or may be something to do; exhausted: the ring had nothing more when it
     * was read last, asked: software has written START since (then, or since a failure). */
    bool running, fetching, exhausted, asked, pausing, failed;
    struct job job[NTB_DMA_PREFETCH_MAX]; /* ring, oldest first */
    uint32_t first_job, n_jobs;
    struct unit *units, **units_tail; /* in order of their reads */
    struct pcie_dma_request fetch;
    struct ntb_dma_descriptor fetched[NTB_DMA_PREFETCH_MAX];
};

struct ntb_dma {
    struct model *model;
    struct ntb_dma_params params;
    struct ntb_dma_stats *stats;
    struct pcie_function function;
    /* The halves: TLPs in order each, but not among each other. */
    struct pcie_dma *reads, writes;
    struct pcie_dma_path path;
    struct arrivals arrivals[N_ORIGINS];
    uint32_t turn;          /* the channel to read for next */
    struct sim_event start; /* pending while a job is decoded that may go next */
    struct unit *free_unit;
    struct channel channel[NTB_DMA_CHANNELS_MAX];
    struct unit unit[];
};

static void fetch(struct channel *channel);
static void issue(struct ntb_dma *dma);
static void retire(struct channel *channel);

/* ---- Ways out and in ------------------------------------------------------------------------- */

/* There is never more under way than there are places, and a few words of each channel. */
static bool path_ready(void *context, enum tlp_class class)
{
    (void)context;
    (void)class;
    return true;
}

static void refuse(struct ntb_dma *dma, struct tlp *tlp)
{
    struct pcie_context *pcie = dma->model->pcie;
    if (tlp_class_of(tlp) == TLP_NON_POSTED)
        ntb_dma_refused(dma, tlp_completion(pcie, tlp, dma->function.cfg.id, TLP_UR));
    tlp_free(pcie, tlp);
}

static void path_send(void *context, struct tlp *tlp)
{
    struct ntb_dma *dma = context;
    struct model *model = dma->model;
    struct ntb *ntb = model->state;
    unsigned tag = tlp->type == TLP_MWR ? tlp->tag : 0;
    int bar = cfg_bar_match(&ntb->function.cfg, tlp->address, tlp->length_bytes);
    bool passes = true;

    if (bar > 0) {
        passes = ntb_request_out(ntb, (unsigned)bar / 2 - 1, tlp) == NTB_PASS;
    } else if (bar == 0 ||
               cfg_bar_match(&dma->function.cfg, tlp->address, tlp->length_bytes) == 0) {
        dma->stats->unsupported++;
        passes = false;
    }
    if (!passes) {
        refuse(dma, tlp);
        if (tag != 0)
            ntb_dma_left(dma, tag, sim_now(model->sim) + dma->params.port_ps);
    } else if (bar > 0) {
        crossbar_send(&ntb->xbar, NTB_INNER, NTB_CABLE, tlp,
                      sim_now(model->sim) + dma->params.port_ps);
    } else {
        crossbar_send_near(&ntb->xbar, NTB_INNER, NTB_HOST, tlp, dma->params.port_ps);
    }
}

void ntb_dma_left(struct ntb_dma *dma, unsigned tag, sim_time end_ps)
{
    sim_schedule(dma->model->sim, &dma->unit[tag - 1].left, end_ps);
}

static void arrive(struct sim *sim, struct sim_event *event)
{
    struct arrivals *arrivals = SIM_CONTAINER(event, struct arrivals, event);
    struct ntb_dma *dma = arrivals->dma;
    struct tlp *tlp = arrivals->first;

    arrivals->first = tlp->next;
    if (arrivals->first != NULL)
        sim_schedule(sim, event, arrivals->first->sent_ps);
    pcie_dma_complete(dma->reads, tlp);
}

/* It is with the engine at at_ps; those of one origin come one after the other. */
static void put_arrival(struct ntb_dma *dma, uint32_t origin, struct tlp *tlp, sim_time at_ps)
{
    struct arrivals *arrivals = &dma->arrivals[origin];

    tlp->next = NULL;
    tlp->sent_ps = at_ps;
    if (arrivals->first == NULL) {
        arrivals->first = tlp;
        sim_schedule(dma->model->sim, &arrivals->event, at_ps);
    } else {
        arrivals->last->next = tlp;
    }
    arrivals->last = tlp;
}

void ntb_dma_completion(struct ntb_dma *dma, uint32_t port, struct tlp *tlp)
{
    struct model *model = dma->model;
    const struct ntb *ntb = model->state;
    sim_time at_ps = SIM_MAX(tlp->tail_ps, sim_now(model->sim));

    if (port == NTB_CABLE)
        at_ps += ntb->xbar.latency_ps;
    pcie_port_release(&model->ports[port], TLP_COMPLETION, tlp_data_credits(tlp), at_ps);
    put_arrival(dma, port, tlp, at_ps + dma->params.port_ps);
}

void ntb_dma_refused(struct ntb_dma *dma, struct tlp *tlp)
{
    put_arrival(dma, FROM_CHIP, tlp, sim_now(dma->model->sim) + 2 * dma->params.port_ps);
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

static void message_write(struct ntb_dma *dma, struct pcie_dma_request *request, uint32_t *data,
                          uint64_t address, pcie_dma_done_fn *done)
{
    *request = (struct pcie_dma_request){
        .iova = { address }, .bytes = 4, .buffer = (uint8_t *)data, .done = done
    };
    dma->stats->interrupts++;
    pcie_dma_write(&dma->writes, request, 0);
}

/* Of a vector whose mask was lifted. */
static void send_message(struct pcie_function *function, uint64_t address, uint32_t data)
{
    struct ntb_dma *dma = SIM_CONTAINER(function, struct ntb_dma, function);
    dma->stats->interrupts++;
    pcie_function_message(function, &dma->writes, address, data);
}

/* ---- The end of a job ------------------------------------------------------------------------ */

static void rest(struct channel *channel)
{
    if (channel->n_jobs != 0 || channel->fetching || !channel->running)
        return;
    if (!channel->exhausted && !channel->failed && !channel->pausing)
        return;
    if (channel->exhausted && !channel->failed)
        channel->status |= NTB_DMA_CONTROL_INVALID;
    if (channel->pausing)
        channel->status |= NTB_DMA_CONTROL_PAUSE_DONE;
    channel->running = channel->asked && !channel->pausing;
    channel->failed = channel->asked = false;
    if (channel->running) {
        channel->exhausted = false;
        fetch(channel);
    }
}

static void pop_job(struct channel *channel)
{
    channel->first_job = (channel->first_job + 1) % NTB_DMA_PREFETCH_MAX;
    channel->n_jobs--;
}

static void job_told(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct job *job = SIM_CONTAINER(request, struct job, interrupt);
    struct channel *channel = job->channel;
    (void)status;
    pop_job(channel);
    retire(channel);
    fetch(channel);
}

/* The result has been handed over; an interrupt goes behind it. */
static void job_written_back(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct job *job = SIM_CONTAINER(request, struct job, write_back);
    struct channel *channel = job->channel;
    struct ntb_dma *dma = channel->dma;
    bool failed = job->result != 0;
    uint64_t address;

    channel->last = job->idx;
    channel->last_bytes = job->moved;
    channel->interrupt |= failed ? NTB_DMA_INTERRUPT_ERROR : NTB_DMA_INTERRUPT_DONE;
    bool tell = failed ? (channel->interrupt & NTB_DMA_INTERRUPT_ERROR_ENABLE) != 0 : job->notify;
    if (tell && status == PCIE_DMA_OK &&
        pcie_function_vector(&dma->function, channel->number, &address, &job->message))
        message_write(dma, &job->interrupt, &job->message, address, job_told);
    else
        job_told(&job->interrupt, status);
}

static void end_job(struct job *job)
{
    struct channel *channel = job->channel;

    job->ending = true;
    channel->dma->stats->descriptors++;
    channel->dma->stats->bytes += job->moved;
    if (job->result != 0) {
        channel->dma->stats->failed++;
        channel->next = (job->idx + 1) % channel->ring_size;
    }
    job->word = (job->result != 0 ? job->result : NTB_DMA_OK) | job->moved;
    job->write_back =
        (struct pcie_dma_request){ .iova = { channel->ring + job->idx * DESCRIPTOR_BYTES },
                                   .bytes = sizeof(job->word),
                                   .buffer = (uint8_t *)&job->word,
                                   .done = job_written_back };
    pcie_dma_write(&channel->dma->writes, &job->write_back, 0);
}

/* The oldest job is done, or is not to be done any more. */
static void retire(struct channel *channel)
{
    while (channel->n_jobs != 0) {
        struct job *job = &channel->job[channel->first_job];
        if (job->ending || job->n_units != 0)
            return;
        if (job->dropped) {
            pop_job(channel);
            continue;
        }
        if (job->issued == job->bytes)
            end_job(job);
        return;
    }
    rest(channel);
}

/* ---- Units ----------------------------------------------------------------------------------- */

/* The place is free again. */
static void unit_free(struct unit *unit)
{
    struct job *job = unit->job;
    struct ntb_dma *dma = job->channel->dma;

    job->n_units--;
    unit->next = dma->free_unit;
    dma->free_unit = unit;
}

/* The channel will rest behind it. Jobs before it have sent all their data. */
static void fail(struct job *job, uint32_t result)
{
    struct channel *channel = job->channel;
    bool later = false;

    if (job->dropped || job->result != 0)
        return;
    job->result = result;
    job->bytes = job->issued; /* no more reads */
    channel->failed = true;
    for (uint32_t i = 0; i < channel->n_jobs; i++) {
        struct job *other = &channel->job[(channel->first_job + i) % NTB_DMA_PREFETCH_MAX];
        other->dropped = later;
        later = later || other == job;
    }
}

static void unit_done(struct unit *unit)
{
    struct job *job = unit->job;

    unit_free(unit);
    retire(job->channel);
    issue(job->channel->dma);
}

static void unit_left(struct sim *sim, struct sim_event *event)
{
    struct unit *unit = SIM_CONTAINER(event, struct unit, left);
    (void)sim;
    unit->job->moved += (uint32_t)unit->write.bytes;
    unit_done(unit);
}

/* Handed over to the chip; unit_left() follows if that was well. */
static void unit_written(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct unit *unit = SIM_CONTAINER(request, struct unit, write);

    if (status == PCIE_DMA_OK)
        return;
    fail(unit->job, NTB_DMA_WRITE_FAIL);
    unit_done(unit);
}

/* The channel's oldest data goes, if it is here. */
static void drain(struct channel *channel)
{
    while (channel->units != NULL && channel->units->arrived) {
        struct unit *unit = channel->units;
        channel->units = unit->next;
        if (channel->units == NULL)
            channel->units_tail = &channel->units;
        if (unit->failed)
            fail(unit->job, NTB_DMA_READ_FAIL);
        if (unit->job->dropped || unit->job->result != 0) {
            unit_free(unit);
            continue;
        }
        channel->dma->stats->writes++;
        pcie_dma_write(&channel->dma->writes, &unit->write, 0);
    }
    retire(channel);
    issue(channel->dma);
}

static void unit_arrived(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct unit *unit = SIM_CONTAINER(request, struct unit, read);
    struct channel *channel = unit->job->channel;

    unit->arrived = true;
    unit->failed = status != PCIE_DMA_OK;
    drain(channel);
}

static struct job *job_to_issue(struct channel *channel, sim_time *ready_ps)
{
    for (uint32_t i = 0; i < channel->n_jobs && !channel->failed; i++) {
        struct job *job = &channel->job[(channel->first_job + i) % NTB_DMA_PREFETCH_MAX];
        if (job->issued == job->bytes)
            continue;
        *ready_ps = job->ready_ps;
        return job;
    }
    return NULL;
}

/* The next piece of the job: up to the next multiple of the largest read. */
static void issue_unit(struct ntb_dma *dma, struct job *job)
{
    struct channel *channel = job->channel;
    uint32_t largest = SIM_MIN(NTB_DMA_SIZE_MIN << channel->size_code,
                               cfg_mrrs_bytes(&dma->function.cfg));
    uint64_t source = job->source + job->issued;
    uint32_t bytes = SIM_MIN(largest - (uint32_t)(source & (largest - 1)),
                             job->bytes - job->issued);
    struct unit *unit = dma->free_unit;

    dma->free_unit = unit->next;
    unit->next = NULL;
    unit->job = job;
    unit->arrived = unit->failed = false;
    unit->read = (struct pcie_dma_request){
        .iova = { source }, .bytes = bytes, .buffer = unit->buffer, .done = unit_arrived
    };
    unit->write = (struct pcie_dma_request){ .iova = { job->destination + job->issued },
                                             .bytes = bytes,
                                             .buffer = unit->buffer,
                                             .tag = (uint16_t)(unit - dma->unit + 1),
                                             .done = unit_written };
    *channel->units_tail = unit;
    channel->units_tail = &unit->next;
    job->issued += bytes;
    job->n_units++;
    dma->stats->reads++;
    pcie_dma_read(dma->reads, &unit->read, 0);
}

/* Places are filled with reads, channel by channel. */
static void issue(struct ntb_dma *dma)
{
    sim_time now_ps = sim_now(dma->model->sim), first_ps = SIM_TIME_MAX;
    uint32_t n = dma->params.channels;

    for (uint32_t idle = 0; idle < n && dma->free_unit != NULL;) {
        struct channel *channel = &dma->channel[dma->turn];
        sim_time ready_ps = SIM_TIME_MAX;
        struct job *job = job_to_issue(channel, &ready_ps);
        dma->turn = dma->turn + 1 < n ? dma->turn + 1 : 0;
        if (job != NULL && ready_ps <= now_ps) {
            idle = 0;
            first_ps = SIM_TIME_MAX;
            issue_unit(dma, job);
        } else {
            idle++;
            first_ps = SIM_MIN(first_ps, ready_ps);
        }
    }
    if (first_ps == SIM_TIME_MAX)
        return;
    if (sim_event_pending(&dma->start)) {
        if (dma->start.time_ps <= first_ps)
            return;
        sim_cancel(dma->model->sim, &dma->start);
    }
    sim_schedule(dma->model->sim, &dma->start, first_ps);
}

static void start_fire(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    issue(SIM_CONTAINER(event, struct ntb_dma, start));
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

static void add_job(struct channel *channel, const struct ntb_dma_descriptor *d)
{
    struct ntb_dma *dma = channel->dma;
    struct job *job =
        &channel->job[(channel->first_job + channel->n_jobs++) % NTB_DMA_PREFETCH_MAX];

    *job = (struct job){ .channel = channel,
                         .source = (uint64_t)d->source_high << 32 | d->source_low,
                         .destination = (uint64_t)d->destination_high << 32 | d->destination_low,
                         .bytes = d->flags_bytes & NTB_DMA_BYTES_MASK,
                         .idx = channel->next,
                         .notify = (d->flags_bytes & NTB_DMA_NOTIFY) != 0,
                         .ready_ps = sim_now(dma->model->sim) + dma->params.descriptor_ps };
    channel->next = (channel->next + 1) % channel->ring_size;
}

static void fetched(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct channel *channel = SIM_CONTAINER(request, struct channel, fetch);
    uint32_t n = (uint32_t)(request->bytes / DESCRIPTOR_BYTES);
    bool asked = channel->asked;

    channel->fetching = false;
    channel->asked = channel->asked && channel->failed;
    if (status != PCIE_DMA_OK) { /* as if there were nothing, but told */
        channel->exhausted = true;
        channel->interrupt |= NTB_DMA_INTERRUPT_ERROR;
    }
    if (status != PCIE_DMA_OK || channel->failed)
        n = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!(channel->fetched[i].flags_bytes & NTB_DMA_VALID)) {
            channel->exhausted = !asked;
            break;
        }
        add_job(channel, &channel->fetched[i]);
    }
    fetch(channel);
    retire(channel); /* also those of no bytes */
    issue(channel->dma);
}

/* As many as there is room for, to the end of the ring; none again that is still to be written
 * back. */
static void fetch(struct channel *channel)
{
    const uint32_t most = SIM_MIN(channel->prefetch, channel->ring_size);
    const uint32_t room = most - SIM_MIN(channel->n_jobs, most);

    if (!channel->running || channel->fetching || channel->exhausted || channel->pausing ||
        channel->failed || room == 0)
        return;
    channel->fetching = true;
    channel->fetch = (struct pcie_dma_request){
        .iova = { channel->ring + channel->next * DESCRIPTOR_BYTES },
        .bytes = SIM_MIN(room, channel->ring_size - channel->next) * DESCRIPTOR_BYTES,
        .buffer = (uint8_t *)channel->fetched,
        .done = fetched
    };
    pcie_dma_read(channel->dma->reads, &channel->fetch, 0);
}

/* ---- Registers ------------------------------------------------------------------------------- */

static void control_write(struct channel *channel, uint32_t value)
{
    uint32_t code = (value & NTB_DMA_CONTROL_SIZE_MASK) >> NTB_DMA_CONTROL_SIZE_SHIFT;

    channel->size_code = SIM_MIN(code, 5u);
    channel->status &= ~(value & NTB_DMA_CONTROL_STATUS);
    channel->pausing = (value & NTB_DMA_CONTROL_PAUSE) != 0;
    if (channel->pausing && !channel->running)
        channel->status |= NTB_DMA_CONTROL_PAUSE_DONE;
    if ((value & NTB_DMA_CONTROL_START) && !channel->pausing && channel->ring_size != 0) {
        channel->running = true;
        channel->asked = channel->fetching || channel->failed;
        if (!channel->asked)
            channel->exhausted = false;
        fetch(channel);
    }
    retire(channel);
}

static uint32_t control_read(const struct channel *channel)
{
    return channel->status | channel->size_code << NTB_DMA_CONTROL_SIZE_SHIFT |
           (channel->running ? NTB_DMA_CONTROL_IN_PROGRESS : 0) |
           (channel->pausing ? NTB_DMA_CONTROL_PAUSE : 0);
}

static uint32_t channel_read(const struct channel *channel, uint64_t offset)
{
    switch (offset) {
    case NTB_DMA_RING_LOW: return (uint32_t)channel->ring;
    case NTB_DMA_RING_HIGH: return (uint32_t)(channel->ring >> 32);
    case NTB_DMA_NEXT_LOW: return (uint32_t)(channel->ring + channel->next * DESCRIPTOR_BYTES);
    case NTB_DMA_RING_SIZE: return channel->ring_size;
    case NTB_DMA_LAST_LOW: return (uint32_t)(channel->ring + channel->last * DESCRIPTOR_BYTES);
    case NTB_DMA_LAST_SIZE: return channel->last_bytes;
    case NTB_DMA_PREFETCH: return channel->prefetch;
    case NTB_DMA_CONTROL: return control_read(channel);
    case NTB_DMA_INTERRUPT: return channel->interrupt;
    default: return 0;
    }
}

/* Where the ring is does not change under a channel that works. */
static void ring_write(struct channel *channel, uint64_t offset, uint32_t value)
{
    if (channel->running)
        return;
    switch (offset) {
    case NTB_DMA_RING_LOW:
        channel->ring = (channel->ring & ~(uint64_t)UINT32_MAX) | (value & ~(LINE_BYTES - 1u));
        break;
    case NTB_DMA_RING_HIGH:
        channel->ring = (channel->ring & UINT32_MAX) | (uint64_t)value << 32;
        break;
    case NTB_DMA_RING_SIZE:
        channel->ring_size = value;
        channel->next = 0;
        break;
    default:
        value = (value - (uint32_t)channel->ring) / (uint32_t)DESCRIPTOR_BYTES;
        channel->next = channel->ring_size != 0 ? value % channel->ring_size : 0;
        break;
    }
}

static void channel_write(struct channel *channel, uint64_t offset, uint32_t value)
{
    switch (offset) {
    case NTB_DMA_RING_LOW:
    case NTB_DMA_RING_HIGH:
    case NTB_DMA_RING_SIZE:
    case NTB_DMA_NEXT_LOW: ring_write(channel, offset, value); break;
    case NTB_DMA_PREFETCH:
        channel->prefetch = SIM_MAX(SIM_MIN(value, NTB_DMA_PREFETCH_MAX), 1u);
        break;
    case NTB_DMA_CONTROL: control_write(channel, value); break;
    case NTB_DMA_INTERRUPT:
        channel->interrupt &= ~(value & NTB_DMA_INTERRUPT_STATUS) & ~NTB_DMA_INTERRUPT_ENABLES;
        channel->interrupt |= value & NTB_DMA_INTERRUPT_ENABLES;
        break;
    default: break;
    }
}

/* The channel whose registers these are; NULL: none. *offset: within them. */
static const struct channel *channel_at(const struct ntb_dma *dma, uint64_t *offset)
{
    uint64_t n = (*offset - NTB_DMA_CHANNEL(0)) / 0x100;

    if (n >= dma->params.channels) /* also what lies below the first */
        return NULL;
    *offset -= NTB_DMA_CHANNEL(n);
    return &dma->channel[n];
}

static uint32_t register_read(struct pcie_function *function, uint64_t offset)
{
    const struct ntb_dma *dma = SIM_CONTAINER(function, struct ntb_dma, function);
    if (offset == NTB_DMA_REG_CHANNELS)
        return dma->params.channels;
    const struct channel *channel = channel_at(dma, &offset);
    return channel != NULL ? channel_read(channel, offset) : 0;
}

static void register_write(struct pcie_function *function, uint64_t offset, uint32_t value)
{
    struct ntb_dma *dma = SIM_CONTAINER(function, struct ntb_dma, function);
    const struct channel *channel = channel_at(dma, &offset);
    if (channel != NULL)
        channel_write(&dma->channel[channel->number], offset, value);
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct pcie_function *ntb_dma_function(struct ntb_dma *dma)
{
    return &dma->function;
}

static void init_function(struct ntb_dma *dma)
{
    static const struct pcie_function_ops ops = { .message = send_message };
    struct ntb *ntb = dma->model->state;
    const struct pcie_function_desc desc = { .ops = &ops,
                                             .params = &ntb->pcie,
                                             .identity = { .vendor_id = NTB_VENDOR_ID,
                                                           .device_id = NTB_DMA_DEVICE_ID,
                                                           .class_code = NTB_DMA_CLASS,
                                                           .multi_function = true },
                                             .port = NTB_HOST,
                                             .number = NTB_DMA_FUNCTION,
                                             .n_vectors = (uint16_t)dma->params.channels,
                                             .msix_table = NTB_DMA_REG_MSIX_TABLE,
                                             .msix_pba = NTB_DMA_REG_MSIX_PBA,
                                             .bar = { { NTB_DMA_BAR_BYTES, 0, register_read,
                                                        register_write, .by_bytes = false } } };
    pcie_function_init(&dma->function, dma->model, &desc);
    dma->function.unsupported = &ntb->stats.unsupported;
    dma->reads = &dma->function.dma;
    pcie_dma_init(&dma->writes, dma->model, NTB_HOST, &dma->function.cfg, &ntb->pcie.dma);
    dma->path = (struct pcie_dma_path){ path_ready, path_send, dma };
    pcie_dma_set_path(dma->reads, &dma->path);
    pcie_dma_set_path(&dma->writes, &dma->path);
}

static void init_channel(struct ntb_dma *dma, uint32_t i)
{
    struct channel *channel = &dma->channel[i];

    channel->dma = dma;
    channel->number = i;
    channel->prefetch = PREFETCH_DEFAULT;
    channel->size_code = (uint32_t)__builtin_ctz(dma->params.request_bytes / NTB_DMA_SIZE_MIN);
    channel->units_tail = &channel->units;
}

struct ntb_dma *ntb_dma_new(struct model *model, const struct ntb_dma_params *params,
                            struct ntb_dma_stats *stats)
{
    struct ntb_dma *dma = sim_zalloc(1,
                                     sizeof(*dma) + params->reads_in_flight * sizeof(dma->unit[0]));
    dma->model = model;
    dma->params = *params;
    dma->stats = stats;
    init_function(dma);
    for (uint32_t i = 0; i < params->channels; i++)
        init_channel(dma, i);
    for (uint32_t i = params->reads_in_flight; i-- > 0;) {
        sim_event_init(&dma->unit[i].left, unit_left);
        dma->unit[i].next = dma->free_unit;
        dma->free_unit = &dma->unit[i];
    }
    for (unsigned i = 0; i < N_ORIGINS; i++) {
        dma->arrivals[i].dma = dma;
        sim_event_init(&dma->arrivals[i].event, arrive);
    }
    sim_event_init(&dma->start, start_fire);
    return dma;
}

void ntb_dma_free(struct ntb_dma *dma)
{
    if (dma == NULL)
        return;
    for (unsigned i = 0; i < N_ORIGINS; i++) {
        sim_cancel(dma->model->sim, &dma->arrivals[i].event);
        tlp_free_list(dma->model->pcie, dma->arrivals[i].first);
    }
    for (uint32_t i = 0; i < dma->params.reads_in_flight; i++)
        sim_cancel(dma->model->sim, &dma->unit[i].left);
    sim_cancel(dma->model->sim, &dma->start);
    pcie_function_release(&dma->function);
    pcie_dma_release(&dma->writes);
    free(dma);
}
