#include "tests/support/dma_fake.h"

#include "tests/support/test.h"

struct turn {
    struct dma_fake_channel *own;
    uint64_t run;
};

/* ---- The engine ------------------------------------------------------------------------------ */

static uint8_t *state_at(struct dma_fake_channel *own, uint64_t sequence)
{
    return &own->state[sequence & (own->fake->options.ring - 1)];
}

static const struct dma_descriptor *slot_at(const struct dma_fake_channel *own, uint64_t sequence)
{
    return &own->dma->slot[sequence & (own->fake->options.ring - 1)];
}

static void move_bytes(struct dma_fake *fake, const struct dma_descriptor *d, uint64_t bytes)
{
    uint8_t buffer[256];
    for (uint64_t at = 0; at < bytes; at += sizeof buffer) {
        const uint64_t n = bytes - at < sizeof buffer ? bytes - at : sizeof buffer;
        k_peek(fake->kernel, (struct kaddr){ d->source + at }, buffer, n);
        k_poke(fake->kernel, (struct kaddr){ d->destination + at }, buffer, n);
    }
}

/* The copy to end now: the oldest, or any that has not. */
static uint64_t choose(struct dma_fake_channel *own)
{
    struct dma_fake *fake = own->fake;
    uint64_t sequence = own->next;
    if (fake->options.any_order && own->end > own->next)
        sequence += fake_random(fake->kernel, own->end - own->next);
    while (*state_at(own, sequence) != DMA_IN_PROGRESS)
        sequence = sequence + 1 < own->end ? sequence + 1 : own->next;
    return sequence;
}

static void end_one(struct dma_fake_channel *own)
{
    struct dma_fake *fake = own->fake;
    const uint64_t sequence = choose(own);
    const struct dma_descriptor *d = slot_at(own, sequence);
    const struct dma_fake_options *o = &fake->options;
    fake->n_copies++;
    if (fake_random(fake->kernel, 1000) < o->hang_permille) {
        own->hangs = true;
        fake->n_hangs++;
        return;
    }
    const bool fails = fake_random(fake->kernel, 1000) < o->error_permille;
    move_bytes(fake, d, fails ? fake_random(fake->kernel, d->bytes) : d->bytes);
    *state_at(own, sequence) = fails ? DMA_ERROR : DMA_COMPLETE;
    fake->n_errors += fails;
    own->halted = fails && !o->any_order && fake_random(fake->kernel, 100) < o->halt_percent;
    while (own->next < own->end && *state_at(own, own->next) != DMA_IN_PROGRESS)
        own->next++;
    if (fails || (d->flags & DMA_INTERRUPT))
        fake_irq_raise(fake->kernel, &fake->pci, 0);
}

static void go_on(struct dma_fake_channel *own);

static void turn_comes(void *arg)
{
    struct turn *turn = arg;
    struct dma_fake_channel *own = turn->own;
    const bool mine = turn->run == own->run;
    free(turn);
    if (!mine)
        return;
    own->at_work = false;
    end_one(own);
    go_on(own);
}

static void go_on(struct dma_fake_channel *own)
{
    struct dma_fake *fake = own->fake;
    if (own->at_work || own->hangs || own->halted || own->next == own->end)
        return;
    struct turn *turn = calloc(1, sizeof *turn);
    *turn = (struct turn){ own, own->run };
    own->at_work = true;
    const uint64_t ps = fake->options.copy_ps + slot_at(own, own->next)->bytes * 250;
    fake_at(fake->kernel, fake->kernel->now_ps + ps + fake_random(fake->kernel, ps), turn_comes,
            turn);
}

/* ---- Its driver ------------------------------------------------------------------------------ */

static struct dma_fake_channel *own_of(struct dma_channel *channel)
{
    struct dma_fake *fake = channel->device->driver;
    return &fake->own[channel->number];
}

static int start(struct dma_channel *channel)
{
    struct dma_fake_channel *own = own_of(channel);
    own->dma = channel;
    own->next = own->end = own->cleaned = channel->prepared;
    k_compute(own->fake->kernel, 100);
    return 0;
}

static void stop(struct dma_channel *channel)
{
    own_of(channel)->run++;
    own_of(channel)->at_work = false;
}

static void fill(struct dma_channel *channel, const struct dma_descriptor *descriptor)
{
    struct dma_fake_channel *own = own_of(channel);
    *state_at(own, descriptor->sequence) = DMA_IN_PROGRESS;
    k_compute(own->fake->kernel, 50);
}

static void issue(struct dma_channel *channel, uint64_t first, uint64_t end)
{
    struct dma_fake_channel *own = own_of(channel);
    assert_true(first >= own->end);
    if (own->next == own->end) /* what lies between was aborted before it was issued */
        own->next = first;
    own->end = end;
    k_compute(own->fake->kernel, 50);
    go_on(own);
}

static void rearm(struct dma_channel *channel)
{
    k_compute(own_of(channel)->fake->kernel, 50);
}

static void clean(struct dma_channel *channel)
{
    struct dma_fake_channel *own = own_of(channel);
    k_compute(own->fake->kernel, 50);
    for (uint64_t s = channel->ended; s < own->end; s++) {
        const enum dma_state state = *state_at(own, s);
        if (slot_at(own, s)->sequence == s && slot_at(own, s)->state == DMA_IN_PROGRESS &&
            state != DMA_IN_PROGRESS)
            dma_copy_ended(channel, s, state, state == DMA_ERROR ? 4 : 0,
                           state == DMA_ERROR ? "it fails" : NULL);
    }
    if (own->halted && !own->stopped_said) {
        own->stopped_said = true;
        dma_channel_stopped(channel);
    }
}

static void spin(struct dma_channel *channel, uint64_t until_ps)
{
    struct dma_fake_channel *own = own_of(channel);
    struct kernel *kernel = own->fake->kernel;
    const uint64_t seen = own->next;
    while (own->next == seen && !channel->gone && k_now_ps(kernel) < until_ps)
        k_compute(kernel, 200);
}

static int resume(struct dma_channel *channel)
{
    struct dma_fake_channel *own = own_of(channel);
    k_compute(own->fake->kernel, 500);
    own->halted = own->stopped_said = false;
    go_on(own);
    return 0;
}

static void abort_all(struct dma_channel *channel)
{
    struct dma_fake_channel *own = own_of(channel);
    k_compute(own->fake->kernel, 500);
    own->fake->n_aborts++;
    own->run++;
    own->at_work = own->hangs = own->halted = own->stopped_said = false;
    for (uint64_t sequence = own->end; sequence < channel->prepared; sequence++)
        *state_at(own, sequence) = DMA_IN_PROGRESS; /* prepared, perhaps not filled */
    own->next = own->end = channel->prepared;
}

static void handle(void *arg)
{
    struct dma_fake *fake = arg;
    for (unsigned i = 0; i < fake->options.n_channels; i++)
        dma_channel_interrupt(&fake->channel[i]);
}

static const struct dma_channel_ops ops = {
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

/* ---- The device ------------------------------------------------------------------------------ */

void dma_fake_init(struct dma_fake *fake, struct kernel *kernel, struct dma_core *core,
                   const struct dma_fake_options *options)
{
    memset(fake, 0, sizeof *fake);
    fake->kernel = kernel;
    fake->options = *options;
    assert_true(options->n_channels <= DMA_FAKE_CHANNELS_MAX && options->ring <= DMA_FAKE_RING_MAX);
    fake_device_init(kernel, &fake->pci.device, 0, "engine");
    assert_int_equal(k_irq_request(&fake->pci, 0, 0, handle, fake, &fake->irq), 0);
    for (unsigned i = 0; i < options->n_channels; i++)
        fake->own[i] = (struct dma_fake_channel){ .fake = fake };
    fake->device = (struct dma_device){
        .kind = "fake",
        .name = "fake0",
        .device = &fake->pci.device,
        .ops = &ops,
        .limits = { options->copy_bytes_max != 0 ? options->copy_bytes_max : K_PAGE_BYTES,
                    options->ring, !options->any_order },
        .channel = fake->channel,
        .n_channels = options->n_channels,
        .driver = fake,
    };
    assert_int_equal(dma_device_register(core, &fake->device), 0);
}

void dma_fake_remove(struct dma_fake *fake, bool gone)
{
    if (gone)
        for (unsigned i = 0; i < fake->options.n_channels; i++)
            stop(&fake->channel[i]);
    dma_device_unregister(&fake->device, gone, NULL);
    k_irq_free(fake->irq);
}
