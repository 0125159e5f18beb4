/*
 * Copy engines: channels, cookies, the end of copies.
 *
 * What it does: keeps the engines of a kernel and gives out their channels; numbers copies, issues
 *   those that are submitted without a gap, once at a time; finds their ends, in the soft interrupt
 *   after an engine's interrupt or when somebody asks; lets threads wait; goes on after errors;
 *   ends everything at terminate, release and removal.
 * Leaves out: operations other than copies; channels bound to devices (slaves, cyclic transfers);
 *   hot plug of users: they ask for a channel again by themselves.
 * Follows: Linux, Documentation/driver-api/dmaengine, drivers/dma/dmaengine.[ch] and virt-dma.h.
 * Costs: dma_prepare_cycles and dma_complete_cycles per copy, and what the driver's functions
 *   touch.
 */
#include <errno.h>
#include <string.h>

#include "logic/dma/dma_driver.h"
#include "logic/kcosts.h"

#define POLL_PS (1 * K_US)  /* between looks whether somebody else has finished */
#define SPIN_PS (10 * K_US) /* of a poll, before others may have the driver to themselves */

struct dma_core {
    struct kernel *kernel;
    struct dma_device *devices;
};

static struct kernel *kernel_of(const struct dma_channel *c)
{
    return c->device->kernel;
}

static void issue_wanted(struct dma_channel *c);

static struct dma_descriptor *slot_of(const struct dma_channel *c, uint64_t sequence)
{
    return &c->slot[sequence & (c->device->limits.ring - 1)];
}

/* ---- Engines --------------------------------------------------------------------------------- */

struct dma_core *dma_core_new(struct kernel *kernel)
{
    struct dma_core *core = k_zalloc(sizeof *core);
    core->kernel = kernel;
    return core;
}

struct kernel *dma_core_kernel(const struct dma_core *core)
{
    return core->kernel;
}

void dma_core_free(struct dma_core *core)
{
    k_free(core);
}

const char *dma_engine_name(const struct dma_core *core, unsigned i)
{
    const struct dma_device *device = core->devices;
    while (device != NULL && i-- > 0)
        device = device->next;
    return device != NULL ? device->name : NULL;
}

static bool is_engine(const struct dma_device *device, const char *engine)
{
    return engine == NULL || strcmp(engine, device->name) == 0 || strcmp(engine, device->kind) == 0;
}

static bool may_have(const struct dma_channel *c, unsigned mode)
{
    if (c->gone)
        return false;
    return mode & DMA_EXCLUSIVE ? c->requests == 0 : c->requests == 0 || !(c->mode & DMA_EXCLUSIVE);
}

unsigned dma_channels_free(const struct dma_core *core, const char *engine, unsigned mode)
{
    unsigned n = 0;
    for (const struct dma_device *d = core->devices; d != NULL; d = d->next)
        for (unsigned i = 0; i < d->n_channels && is_engine(d, engine); i++)
            n += may_have(&d->channel[i], mode);
    return n;
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void note_failure(struct dma_channel *c, const struct dma_descriptor *d, uint32_t code,
                         const char *text)
{
    c->failure = (struct dma_failure){ .n = c->failure.n + 1,
                                       .cookie = (dma_cookie)d->sequence + 1,
                                       .destination = d->destination,
                                       .source = d->source,
                                       .bytes = d->bytes,
                                       .code = code,
                                       .text = text != NULL ? text : "" };
}

/* Slots are free up to the first copy that has not ended, or is not submitted yet. */
static void advance(struct dma_channel *c)
{
    while (c->ended < c->prepared && slot_of(c, c->ended)->submitted &&
           slot_of(c, c->ended)->state != DMA_IN_PROGRESS)
        c->ended++;
}

void dma_copy_ended(struct dma_channel *c, uint64_t sequence, enum dma_state state, uint32_t code,
                    const char *text)
{
    struct dma_descriptor *d = slot_of(c, sequence);
    if (d->sequence != sequence || !d->submitted || d->state != DMA_IN_PROGRESS) {
        k_fault(kernel_of(c), "%s: copy %llu of channel %u ends twice", c->device->name,
                (unsigned long long)sequence + 1, c->number);
        return;
    }
    const struct dma_descriptor ended = *d; /* its slot may be taken again by the callback */
    if (state == DMA_ERROR)
        note_failure(c, d, code, text);
    d->state = (uint8_t)state;
    c->woken = true;
    advance(c);
    k_compute(kernel_of(c), k_costs(kernel_of(c))->dma_complete_cycles);
    if (ended.callback != NULL)
        ended.callback(ended.arg, (dma_cookie)sequence + 1, state);
}

void dma_copies_complete(struct dma_channel *c, uint64_t end)
{
    for (uint64_t s = c->ended; s < end; s++)
        if (slot_of(c, s)->sequence == s && slot_of(c, s)->state == DMA_IN_PROGRESS)
            dma_copy_ended(c, s, DMA_COMPLETE, 0, NULL);
}

/* Looks at what has ended, unless somebody else is doing so, who then looks once more, or is
 * stopping or restarting the engine, which ends with a look. */
static void clean(struct dma_channel *c)
{
    c->clean_again = true;
    if (c->cleaning || !c->started || c->gone || c->resuming || c->terminating)
        return;
    c->cleaning = true;
    c->busy++;
    while (c->clean_again && !c->gone && !c->resuming && !c->terminating) {
        c->clean_again = false;
        c->device->ops->clean(c);
    }
    c->busy--;
    c->cleaning = false;
    if (c->woken) {
        c->woken = false;
        k_wake(kernel_of(c), &c->wait);
    }
}

/* All copies that have not ended are aborted. Those between prepare and submit end at submit. */
static void end_all(struct dma_channel *c)
{
    const uint64_t end = c->prepared;
    c->issued = c->wanted = end;
    c->busy++;
    for (uint64_t s = c->ended; s < end; s++) {
        struct dma_descriptor *d = slot_of(c, s);
        if (d->sequence != s || d->state != DMA_IN_PROGRESS)
            continue; /* it has ended, and its slot may have another copy */
        if (d->submitted)
            dma_copy_ended(c, s, DMA_ABORTED, 0, NULL);
        else
            d->state = DMA_ABORTED;
    }
    c->busy--;
    c->halted = false;
    c->woken = false;
    k_wake(kernel_of(c), &c->wait);
}

/* ---- Interrupts, errors ---------------------------------------------------------------------- */

void dma_channel_interrupt(struct dma_channel *c)
{
    if (!c->started)
        return;
    c->interrupted = true;
    k_napi_schedule(&c->napi);
}

static int napi_poll(struct k_napi *napi, int budget)
{
    struct dma_channel *c = K_CONTAINER(napi, struct dma_channel, napi);
    (void)budget;
    k_napi_complete(napi);
    c->busy++;
    if (c->started && !c->gone)
        c->device->ops->rearm(c);
    c->busy--;
    clean(c);
    c->interrupted = false;
    return 0;
}

/* With c->resuming set, which ends here. */
static int resume(struct dma_channel *c)
{
    while (c->issuing || c->cleaning)
        k_sleep(kernel_of(c), POLL_PS);
    c->busy++;
    const int status = c->gone ? -ENODEV : c->device->ops->resume(c);
    c->busy--;
    c->halted = status != 0;
    c->resuming = false;
    if (status == 0) {
        issue_wanted(c);
        clean(c);
    }
    return status;
}

static void resume_work(struct k_work *work)
{
    struct dma_channel *c = K_CONTAINER(work, struct dma_channel, resume_work);
    if (resume(c) != 0 && !c->gone)
        k_warn(kernel_of(c), "%s: channel %u does not go on after an error", c->device->name,
               c->number);
}

void dma_channel_stopped(struct dma_channel *c)
{
    c->halted = true;
    if (c->terminating || (c->mode & DMA_HOLD_ERRORS) || c->resuming)
        return;
    c->resuming = true;
    k_work_queue(kernel_of(c), &c->resume_work, K_CPU_ANY);
}

int dma_resume(struct dma_channel *c)
{
    if (c->gone)
        return -ENODEV;
    if (!c->halted || c->resuming || c->terminating)
        return -EINVAL;
    c->resuming = true;
    return resume(c);
}

const struct dma_failure *dma_channel_failure(const struct dma_channel *c)
{
    static const struct dma_failure none = { .text = "" };
    return c->failure.n != 0 ? &c->failure : &none;
}

bool dma_channel_halted(const struct dma_channel *c)
{
    return c->halted;
}

/* No operation of the driver is under way but fill(), with `gone` or `terminating` set. */
static void quiesce(struct dma_channel *c)
{
    while (c->busy != 0 || c->resuming || c->issuing || c->cleaning)
        k_sleep(kernel_of(c), POLL_PS);
}

/* Nothing is issued from here on, until the caller allows it. The engine may go at any moment: then
 * dma_device_unregister() ends all copies, too, and waits for what has begun. */
static void terminate(struct dma_channel *c)
{
    while (c->terminating) /* somebody else does so */
        k_sleep(kernel_of(c), POLL_PS);
    if (!c->started)
        return;
    c->terminating = !c->gone;
    quiesce(c);
    c->busy++;
    if (!c->gone)
        c->device->ops->abort(c);
    if (!c->gone)
        c->device->ops->clean(c);
    c->busy--;
    end_all(c);
    if (c->gone)
        quiesce(c); /* callbacks that the other calls */
}

void dma_terminate(struct dma_channel *c)
{
    terminate(c);
    c->terminating = false;
    issue_wanted(c); /* what callbacks have submitted */
}

/* ---- Copies that do not come back ------------------------------------------------------------ */

static void watch(struct dma_channel *c)
{
    if (c->device->timeout_ps == 0 || c->overdue || k_timer_pending(&c->watch))
        return;
    c->watched = c->ended;
    k_timer_set(&c->watch, k_now_ps(kernel_of(c)) + c->device->timeout_ps);
}

static void watch_fires(struct k_timer *timer)
{
    struct dma_channel *c = K_CONTAINER(timer, struct dma_channel, watch);
    if (!c->started || c->gone || c->ended == c->issued || c->overdue)
        return;
    if (c->ended != c->watched || c->halted) {
        watch(c);
        return;
    }
    c->overdue = true;
    k_work_queue(kernel_of(c), &c->watch_work, K_CPU_ANY);
}

static void watch_work(struct k_work *work)
{
    struct dma_channel *c = K_CONTAINER(work, struct dma_channel, watch_work);
    clean(c); /* an interrupt was lost, or nobody asks */
    if (c->ended == c->watched && c->ended != c->issued && !c->gone && !c->terminating) {
        k_warn(kernel_of(c), "%s: copies of channel %u do not come back", c->device->name,
               c->number);
        dma_terminate(c);
    }
    c->overdue = false;
    if (c->ended != c->issued && !c->gone)
        watch(c);
}

/* ---- Channels -------------------------------------------------------------------------------- */

static void channel_stop(struct dma_channel *c)
{
    if (!c->started)
        return;
    c->started = false;
    c->stopping = true;
    while (c->interrupted || c->overdue || c->busy != 0) /* what has begun before */
        k_sleep(kernel_of(c), POLL_PS);
    k_timer_release(&c->watch);
    c->device->ops->stop(c);
    c->stopping = false;
}

static int channel_start(struct dma_channel *c)
{
    const uint32_t ring = c->device->limits.ring;
    if (c->slot == NULL)
        c->slot = k_zalloc(ring * sizeof *c->slot);
    k_napi_init(&c->napi, kernel_of(c), napi_poll);
    k_timer_init(&c->watch, kernel_of(c), watch_fires);
    c->resume_work.fn = resume_work;
    c->watch_work.fn = watch_work;
    c->starting = true;
    const int status = c->device->ops->start(c);
    c->starting = false;
    c->started = status == 0;
    return status;
}

static bool is_better(struct kernel *kernel, const struct dma_channel *c,
                      const struct dma_channel *best)
{
    if (best == NULL || c->requests != best->requests)
        return best == NULL || c->requests < best->requests;
    const int node = (int)k_node_of_cpu(kernel, k_cpu(kernel));
    return c->device->device->node == node && best->device->device->node != node;
}

static bool is_taken(const struct dma_channel *c, struct dma_channel *const *taken, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (taken[i] == c)
            return true;
    return false;
}

static struct dma_channel *request(struct dma_core *core, const char *engine, unsigned mode,
                                   struct dma_channel *const *taken, unsigned n)
{
    struct dma_channel *best = NULL;
    for (const struct dma_device *d = core->devices; d != NULL; d = d->next)
        for (unsigned i = 0; i < d->n_channels && is_engine(d, engine); i++) {
            struct dma_channel *c = &d->channel[i];
            if (may_have(c, mode) && !is_taken(c, taken, n) && is_better(core->kernel, c, best))
                best = c;
        }
    if (best == NULL)
        return NULL;
    best->requests++;
    best->device->requests++;
    best->mode = mode & DMA_EXCLUSIVE ? mode : DMA_SHARED;
    while (best->starting || best->releasing)
        k_sleep(core->kernel, POLL_PS);
    if (best->requests == 1)
        best->failure = (struct dma_failure){ .n = 0 };
    if (!best->gone && (best->started || channel_start(best) == 0))
        return best;
    dma_channel_release(best);
    return NULL;
}

struct dma_channel *dma_channel_request(struct dma_core *core, const char *engine, unsigned mode)
{
    return request(core, engine, mode, NULL, 0);
}

int dma_channels_request(struct dma_core *core, const char *engine, unsigned mode, unsigned n,
                         struct dma_channel **channels)
{
    for (unsigned i = 0; i < n; i++) {
        channels[i] = request(core, engine, mode, channels, i);
        if (channels[i] != NULL)
            continue;
        while (i-- > 0)
            dma_channel_release(channels[i]);
        return -ENODEV;
    }
    return 0;
}

static void device_freed(struct dma_device *device)
{
    for (unsigned i = 0; i < device->n_channels; i++) {
        k_free(device->channel[i].slot);
        device->channel[i].slot = NULL;
    }
    if (device->freed != NULL)
        device->freed(device);
}

void dma_channel_release(struct dma_channel *c)
{
    struct dma_device *device = c->device;
    if (c->requests == 1 && c->started) {
        c->releasing = true; /* a thread that asks for the channel waits, then starts it again */
        dma_terminate(c);
        channel_stop(c);
        c->releasing = false;
    }
    c->requests--;
    if (--device->requests == 0 && device->core == NULL)
        device_freed(device);
}

const struct dma_limits *dma_channel_limits(const struct dma_channel *c)
{
    return &c->device->limits;
}

struct k_device *dma_channel_device(const struct dma_channel *c)
{
    return c->gone ? NULL : c->device->device;
}

bool dma_channels_share(const struct dma_channel *one, const struct dma_channel *other)
{
    return one->device == other->device || !(one->device->translated || other->device->translated);
}

const char *dma_channel_engine(const struct dma_channel *c)
{
    return c->device->name;
}

unsigned dma_channel_number(const struct dma_channel *c)
{
    return c->number;
}

unsigned dma_channel_room(const struct dma_channel *c)
{
    return c->gone ? 0 : c->device->limits.ring - 1 - (unsigned)(c->prepared - c->ended);
}

unsigned dma_channel_pending(const struct dma_channel *c)
{
    unsigned n = 0;
    for (uint64_t s = c->ended; s < c->prepared; s++)
        n += slot_of(c, s)->submitted && slot_of(c, s)->state == DMA_IN_PROGRESS;
    return n;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static bool overlaps(uint64_t a, uint64_t b, uint64_t bytes)
{
    return a - b < bytes || b - a < bytes;
}

int dma_prepare_copy(struct dma_channel *c, uint64_t destination, uint64_t source, uint64_t bytes,
                     unsigned flags, struct dma_descriptor **descriptor)
{
    const struct dma_limits *limits = &c->device->limits;
    if (bytes == 0 || bytes > limits->copy_bytes_max || overlaps(destination, source, bytes))
        return -EINVAL;
    if (!c->gone && dma_channel_room(c) == 0)
        clean(c);
    if (c->gone)
        return -ENODEV;
    if (c->halted && (c->mode & DMA_HOLD_ERRORS))
        return -EIO;
    if (dma_channel_room(c) == 0)
        return -EBUSY;
    struct dma_descriptor *d = slot_of(c, c->prepared);
    *d = (struct dma_descriptor){ .channel = c,
                                  .sequence = c->prepared++,
                                  .destination = destination,
                                  .source = source,
                                  .bytes = bytes,
                                  .flags = flags,
                                  .state = DMA_IN_PROGRESS };
    c->busy++;
    k_compute(kernel_of(c), k_costs(kernel_of(c))->dma_prepare_cycles);
    if (!c->gone)
        c->device->ops->fill(c, d);
    c->busy--;
    *descriptor = d;
    return 0;
}

dma_cookie dma_submit(struct dma_descriptor *d)
{
    struct dma_channel *c = d->channel;
    const dma_cookie cookie = (dma_cookie)d->sequence + 1;
    d->submitted = true;
    if (d->state == DMA_IN_PROGRESS && !c->gone) {
        issue_wanted(c);
        return cookie;
    }
    /* It was terminated since it was prepared. */
    const struct dma_descriptor ended = *d;
    d->state = DMA_ABORTED;
    advance(c);
    if (ended.callback != NULL)
        ended.callback(ended.arg, cookie, DMA_ABORTED);
    return cookie;
}

/* Issues what is wanted and submitted without a gap. If somebody else is issuing, he goes on with
 * it. */
static void issue_wanted(struct dma_channel *c)
{
    if (c->issuing)
        return;
    c->issuing = true;
    while (c->started && !c->gone && !c->halted && !c->terminating) {
        const uint64_t first = c->issued;
        uint64_t end = first;
        while (end < c->wanted && slot_of(c, end)->submitted)
            end++;
        if (end == first)
            break;
        c->issued = end;
        c->busy++;
        c->device->ops->issue(c, first, end);
        c->busy--;
        watch(c);
    }
    c->issuing = false;
}

void dma_issue_pending(struct dma_channel *c)
{
    c->wanted = c->prepared;
    issue_wanted(c);
}

static enum dma_state state_of(const struct dma_channel *c, dma_cookie cookie)
{
    const uint64_t sequence = (uint64_t)cookie - 1;
    const struct dma_descriptor *d = slot_of(c, sequence);
    return d->sequence == sequence ? (enum dma_state)d->state : DMA_COMPLETE;
}

enum dma_state dma_status(struct dma_channel *c, dma_cookie cookie)
{
    if (state_of(c, cookie) == DMA_IN_PROGRESS)
        clean(c);
    return state_of(c, cookie);
}

static int result_of(enum dma_state state)
{
    return state == DMA_COMPLETE ? 0 : state == DMA_ERROR ? -EIO : -ECANCELED;
}

int dma_wait(struct dma_channel *c, dma_cookie cookie, enum dma_wait_how how, uint64_t until_ps)
{
    struct kernel *kernel = kernel_of(c);
    for (;;) {
        const enum dma_state state = dma_status(c, cookie);
        if (state != DMA_IN_PROGRESS)
            return result_of(state);
        if (c->halted && (c->mode & DMA_HOLD_ERRORS))
            return -EIO;
        if (k_now_ps(kernel) >= until_ps)
            return -ETIMEDOUT;
        if (how == DMA_SLEEP) {
            /* No time passes between the look, which found nothing, and this. */
            if (state_of(c, cookie) == DMA_IN_PROGRESS)
                k_wait(kernel, &c->wait, until_ps);
        } else if (c->cleaning || c->halted || c->terminating || c->gone) {
            k_sleep(kernel, POLL_PS);
        } else {
            const uint64_t spin_ps = k_now_ps(kernel) + SPIN_PS;
            c->busy++;
            c->device->ops->spin(c, spin_ps < until_ps ? spin_ps : until_ps);
            c->busy--;
        }
    }
}

/* ---- Registration ---------------------------------------------------------------------------- */

int dma_device_register(struct dma_core *core, struct dma_device *device)
{
    struct dma_device **link = &core->devices;
    for (; *link != NULL; link = &(*link)->next)
        if (strcmp((*link)->name, device->name) == 0)
            return -EEXIST;
    device->core = core;
    device->kernel = core->kernel;
    for (unsigned i = 0; i < device->n_channels; i++) {
        device->channel[i].device = device;
        device->channel[i].number = i;
    }
    *link = device;
    return 0;
}

void dma_device_unregister(struct dma_device *device, bool gone,
                           void (*freed)(struct dma_device *device))
{
    struct dma_core *core = device->core;
    K_LIST_REMOVE(core->devices, device);
    for (unsigned i = 0; i < device->n_channels; i++) {
        struct dma_channel *c = &device->channel[i];
        if (!gone && c->started)
            terminate(c);
        c->gone = true;
        c->terminating = false;
        k_wake(core->kernel, &c->wait);
        while (c->starting)
            k_sleep(core->kernel, POLL_PS);
        quiesce(c);
        end_all(c);
        quiesce(c); /* callbacks that dma_terminate() calls */
        channel_stop(c);
        while (c->stopping) /* by the last release */
            k_sleep(core->kernel, POLL_PS);
    }
    device->freed = freed;
    device->core = NULL;
    if (device->requests == 0)
        device_freed(device);
}
