/*
 * Channels of the driver of Intel's Data Streaming Accelerator.
 *
 * What it does: writes descriptors into a ring in memory; hands over a single one by a store of 64
 *   bytes into a portal, several at once as a batch whose list they are; in a dedicated queue
 *   counts the entries that are free, in a shared one tries again what was refused; asks for
 *   interrupts as a queue fills, so that its entries are freed though nobody looks; finds ends by
 *   completion records, of a batch by the batch's, and in that of each copy only after a failure;
 *   keeps what follows a fence until the copies before it have ended. A channel does not stop on an
 *   error by itself: with DMA_HOLD_ERRORS copies are handed over one by one.
 * Leaves out: operations other than moves; PASIDs; waiting by UMWAIT.
 * Follows: Intel Data Streaming Accelerator Architecture Specification; Linux, drivers/dma/idxd
 *   (dma.c, submit.c, irq.c), which makes no batches.
 * Costs: those of dma.c; 64 bytes of the descriptor and 32 of its record per copy; a store of 64
 *   bytes per submission, in a shared queue a round trip to the device; the record's line at each
 *   look, which misses after the engine has written it.
 */
#include <errno.h>

#include "logic/dma/dsa_internal.h"
#include "logic/kcosts.h"

#define REFUSED_PS    (200 * K_NS) /* between tries at a full shared queue */
#define REFUSED_TRIES 32u          /* before others may have the CPU */

static struct kernel *kernel_of(const struct dsa_channel *ch)
{
    return ch->function->drv->kernel;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static uint64_t slot_of(const struct dsa_channel *ch, uint64_t sequence)
{
    return sequence & (ch->function->dma.limits.ring - 1);
}

static uint64_t descriptor_offset(const struct dsa_channel *ch, uint64_t sequence)
{
    return slot_of(ch, sequence) * DSA_DESCRIPTOR_BYTES;
}

/* Of a copy, or of the batch that ends with it. */
static uint64_t record_offset(const struct dsa_channel *ch, uint64_t sequence, bool batch)
{
    const uint64_t ring = ch->function->dma.limits.ring;
    return ((batch ? ring : 0) + slot_of(ch, sequence)) * DSA_RECORD_BYTES;
}

static struct kaddr record_of(const struct dsa_channel *ch, const struct dsa_run *run)
{
    return kaddr_add(ch->records, record_offset(ch, run->first + run->n - 1, run->n != 1));
}

static void clear_record(const struct dsa_channel *ch, uint64_t sequence, bool batch)
{
    const struct dsa_record none = { .status = DSA_STATUS_NONE };
    k_store(kernel_of(ch), kaddr_add(ch->records, record_offset(ch, sequence, batch)), &none,
            sizeof none);
}

static size_t ring_bytes(const struct dsa_channel *ch)
{
    return (size_t)ch->function->dma.limits.ring * DSA_DESCRIPTOR_BYTES;
}
static size_t records_bytes(const struct dsa_channel *ch)
{
    return (size_t)ch->function->dma.limits.ring * 2 * DSA_RECORD_BYTES;
}

/* As an element of a batch: a record only of an error. */
static void fill(struct dma_channel *c, const struct dma_descriptor *d)
{
    const struct dsa_channel *ch = c->driver;
    const struct dsa_descriptor descriptor = {
        .flags_operation = (uint32_t)DSA_OP_MOVE << DSA_OPERATION_SHIFT | DSA_FLAG_RECORD_VALID |
                           DSA_FLAG_CACHE,
        .record = ch->records_dma + record_offset(ch, d->sequence, false),
        .source = d->source,
        .destination = d->destination,
        .bytes = (uint32_t)d->bytes,
    };
    k_store(kernel_of(ch), kaddr_add(ch->ring, descriptor_offset(ch, d->sequence)), &descriptor,
            sizeof descriptor);
    clear_record(ch, d->sequence, false);
}

/* ---- Submission ------------------------------------------------------------------------------ */

static const struct dma_descriptor *copy_of(const struct dsa_channel *ch, uint64_t sequence)
{
    return &ch->dma->slot[slot_of(ch, sequence)];
}

/* Copies from ch->next on that can be handed over together: none behind a fence, within the
 * ring. */
static uint32_t run_length(const struct dsa_channel *ch)
{
    const uint32_t ring = ch->function->dma.limits.ring;
    uint64_t max = ch->function->batch_max;
    uint32_t n = 0;
    if (ch->dma->mode & DMA_HOLD_ERRORS)
        max = 1;
    if (max > ring - slot_of(ch, ch->next))
        max = ring - slot_of(ch, ch->next);
    if (max > ch->wanted - ch->next)
        max = ch->wanted - ch->next;
    while (n < max)
        if (copy_of(ch, ch->next + n++)->flags & DMA_FENCE)
            break;
    return n;
}

static bool holds(const struct dsa_channel *ch, const struct dsa_run *run)
{
    return (ch->dma->mode & DMA_HOLD_ERRORS) != 0 ||
           (copy_of(ch, run->first + run->n - 1)->flags & DMA_FENCE) != 0;
}

/* Whether the run raises an interrupt of the driver's own, whose look frees entries and hands over
 * what waits for them. None as long as the channel's share of the queue is at most half full;
 * beyond, one in a quarter of it, so that a full queue always holds one. */
static bool asks(const struct dsa_channel *ch)
{
    const struct dsa_function *f = ch->function;
    const unsigned share = f->drv->options.shared ? f->wq_entries / f->dma.n_channels
                                                  : f->wq_entries;
    return ch->n_runs + 1 > share / 2 && ch->unasked + 1 >= share / 4;
}

static struct dsa_descriptor describe(const struct dsa_channel *ch, const struct dsa_run *run)
{
    struct dsa_descriptor d;
    bool interrupt = asks(ch);
    for (uint32_t i = 0; i < run->n; i++)
        interrupt |= (copy_of(ch, run->first + i)->flags & DMA_INTERRUPT) != 0;
    if (run->n == 1) {
        k_load(kernel_of(ch), kaddr_add(ch->ring, descriptor_offset(ch, run->first)), &d, sizeof d);
    } else {
        const uint64_t last = run->first + run->n - 1;
        d = (struct dsa_descriptor){
            .flags_operation = (uint32_t)DSA_OP_BATCH << DSA_OPERATION_SHIFT |
                               DSA_FLAG_RECORD_VALID,
            .record = ch->records_dma + record_offset(ch, last, true),
            .source = ch->ring_dma + descriptor_offset(ch, run->first),
            .bytes = run->n,
        };
        clear_record(ch, last, true);
    }
    d.flags_operation |= DSA_FLAG_RECORD | (interrupt ? DSA_FLAG_INTERRUPT : 0);
    d.interrupt_handle = interrupt ? (uint16_t)(ch->dma->number + 1) : 0;
    return d;
}

/* False: the shared queue is full. If nothing of this channel is with the engine, nobody would try
 * again later: it goes on until the device is gone. */
static bool enqueue(const struct dsa_channel *ch, uint64_t portal, const struct dsa_descriptor *d)
{
    struct dsa_drv *drv = ch->function->drv;
    for (unsigned tries = 0; tries < REFUSED_TRIES; tries++) {
        if (k_enqueue_line(ch->function->pci, portal, d))
            return true;
        drv->stats.retries++;
        if (ch->n_runs != 0)
            return false;
        k_compute(drv->kernel, REFUSED_PS / K_NS);
    }
    return false;
}

static bool hand_over(struct dsa_channel *ch, const struct dsa_run *run)
{
    const struct dsa_descriptor d = describe(ch, run);
    struct dsa_drv *drv = ch->function->drv;
    const bool shared = drv->options.shared;
    const uint64_t portal = ch->function->pci->bar_base[DSA_BAR_PORTALS] +
                            DSA_PORTAL(ch->wq, shared ? DSA_PORTAL_LIMITED : DSA_PORTAL_UNLIMITED);
    if (shared && !enqueue(ch, portal, &d))
        return false;
    if (!shared)
        k_write_lines(ch->function->pci, portal, &d, sizeof d);
    ch->unasked = d.flags_operation & DSA_FLAG_INTERRUPT ? 0 : ch->unasked + 1;
    drv->stats.submissions++;
    drv->stats.batches += run->n != 1;
    return true;
}

/* As much as the queue takes. */
static void submit(struct dsa_channel *ch)
{
    const unsigned entries = ch->function->wq_entries;
    if (ch->submitting)
        return;
    ch->submitting = true;
    while (ch->next != ch->wanted && !ch->held && !ch->aborted && !ch->dma->halted &&
           ch->n_runs != entries) {
        const struct dsa_run run = { ch->next, run_length(ch) };
        if (!hand_over(ch, &run))
            break;
        ch->held = holds(ch, &run);
        ch->run[(ch->first_run + ch->n_runs++) % entries] = run;
        ch->next += run.n;
    }
    ch->submitting = false;
}

static void issue(struct dma_channel *c, uint64_t first, uint64_t end)
{
    struct dsa_channel *ch = c->driver;
    if (ch->idle) {
        ch->idle = false;
        ch->next = first;
    }
    ch->wanted = end;
    submit(ch);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static const char *status_text(uint8_t status)
{
    switch (status & DSA_STATUS_MASK) {
    case DSA_STATUS_FAULT: return "address";
    case DSA_STATUS_BATCH_FAULT: return "address of the list";
    case DSA_STATUS_OPERATION: return "operation";
    case DSA_STATUS_FLAGS: return "flags";
    case DSA_STATUS_RESERVED: return "reserved field";
    case DSA_STATUS_BYTES: return "transfer size";
    case DSA_STATUS_COUNT: return "descriptor count";
    case DSA_STATUS_LIST_ALIGNMENT: return "alignment of the list";
    case DSA_STATUS_HANDLE: return "interrupt handle";
    case DSA_STATUS_RECORD_ALIGNMENT: return "alignment of the record";
    default: return "unknown error";
    }
}

static void copy_ends(struct dsa_channel *ch, uint64_t sequence, uint8_t status)
{
    if (status == DSA_STATUS_SUCCESS) {
        dma_copy_ended(ch->dma, sequence, DMA_COMPLETE, 0, NULL);
        return;
    }
    if (ch->dma->mode & DMA_HOLD_ERRORS) /* before the callback, which may issue more */
        dma_channel_stopped(ch->dma);
    dma_copy_ended(ch->dma, sequence, DMA_ERROR, status, status_text(status));
}

/* Of a batch that failed, a copy without a record did not. */
static uint8_t status_in_batch(const struct dsa_channel *ch, uint64_t sequence, uint8_t of_batch)
{
    struct dsa_record record;
    if (of_batch != DSA_STATUS_BATCH)
        return of_batch;
    k_load(kernel_of(ch), kaddr_add(ch->records, record_offset(ch, sequence, false)), &record,
           sizeof record);
    return record.status == DSA_STATUS_NONE ? DSA_STATUS_SUCCESS : record.status;
}

static void run_ends(struct dsa_channel *ch, const struct dsa_run *run, uint8_t status)
{
    for (uint32_t i = 0; i < run->n; i++)
        copy_ends(ch, run->first + i,
                  run->n == 1 ? status : status_in_batch(ch, run->first + i, status));
}

/* The oldest run, copied, leaves the list. */
static struct dsa_run take_run(struct dsa_channel *ch)
{
    const struct dsa_run run = ch->run[ch->first_run];
    ch->first_run = (ch->first_run + 1) % ch->function->wq_entries;
    ch->n_runs--;
    return run;
}

static void clean(struct dma_channel *c)
{
    struct dsa_channel *ch = c->driver;
    while (ch->n_runs != 0) {
        struct dsa_record record;
        k_load(kernel_of(ch), record_of(ch, &ch->run[ch->first_run]), &record, sizeof record);
        if (record.status == DSA_STATUS_NONE && !ch->aborted)
            break;
        const struct dsa_run run = take_run(ch);
        if (ch->n_runs == 0)
            ch->held = false;
        if (record.status != DSA_STATUS_NONE)
            run_ends(ch, &run, record.status);
    }
    if (ch->aborted && ch->n_runs == 0) {
        ch->aborted = ch->held = false;
        ch->idle = true;
        ch->next = ch->wanted;
    }
    submit(ch);
}

static void spin(struct dma_channel *c, uint64_t until_ps)
{
    struct dsa_channel *ch = c->driver;
    const uint8_t none = DSA_STATUS_NONE;
    if (ch->n_runs == 0)
        submit(ch);
    if (ch->n_runs == 0)
        k_compute(kernel_of(ch), REFUSED_PS / K_NS);
    else
        k_spin(kernel_of(ch), record_of(ch, &ch->run[ch->first_run]), &none, sizeof none,
               ch->function->drv->options.poll_ps, until_ps);
}

static void rearm(struct dma_channel *c)
{
    (void)c; /* each record that was asked for an interrupt has one */
}

/* ---- Life of a channel ----------------------------------------------------------------------- */

static int start(struct dma_channel *c)
{
    struct dsa_channel *ch = c->driver;
    struct k_device *device = &ch->function->pci->device;
    int status = k_dma_alloc(device, device->node, ring_bytes(ch), &ch->ring, &ch->ring_dma);
    if (status != 0)
        return status;
    status = k_dma_alloc(device, device->node, records_bytes(ch), &ch->records, &ch->records_dma);
    if (status != 0) {
        k_dma_free(device, ring_bytes(ch), ch->ring, ch->ring_dma);
        return status;
    }
    ch->run = k_zalloc(ch->function->wq_entries * sizeof *ch->run);
    ch->first_run = ch->n_runs = ch->unasked = 0;
    ch->idle = true;
    ch->aborted = ch->held = false;
    ch->next = ch->wanted = c->prepared;
    return 0;
}

static void stop(struct dma_channel *c)
{
    struct dsa_channel *ch = c->driver;
    struct k_device *device = &ch->function->pci->device;
    k_dma_free(device, records_bytes(ch), ch->records, ch->records_dma);
    k_dma_free(device, ring_bytes(ch), ch->ring, ch->ring_dma);
    k_free(ch->run);
}

/* The engine has not stopped. */
static int resume(struct dma_channel *c)
{
    (void)c;
    return 0;
}

/* A queue of its own is aborted; of a shared one all is waited for that is in it. Somebody may have
 * reset the function, or another channel's recovery is under way, in which the command fails,
 * too. */
static void abort_all(struct dma_channel *c)
{
    struct dsa_channel *ch = c->driver;
    struct dsa_function *f = ch->function;
    const enum dsa_command code = f->drv->options.shared ? DSA_CMD_DRAIN_WQ : DSA_CMD_ABORT_WQ;
    ch->aborted = true;
    while (ch->submitting)
        k_sleep(kernel_of(ch), 1 * K_US);
    while (f->recovering)
        k_sleep(kernel_of(ch), 1 * K_US);
    int status = dsa_command(f, code, 1u << ch->wq);
    if (status != 0)
        status = dsa_recover(f);
    if (status != 0 && status != -ENODEV) /* which removal follows */
        k_warn(kernel_of(ch), "%s: does not work any more", f->name);
}

const struct dma_channel_ops dsa_channel_ops = {
    .start = start,
    .stop = stop,
    .fill = fill,
    .issue = issue,
    .rearm = rearm,
    .clean = clean,
    .spin = spin,
    .resume = resume,
    .abort = abort_all,
};
