/*
 * What a driver of a copy engine gives to logic/dma/dma.c, which does for all of them what does not
 * depend on the hardware: channels, cookies, states, callbacks, waiting, the end of everything.
 *
 * A driver embeds a struct dma_device and an array of struct dma_channel, fills in what is marked
 * so and calls dma_device_register() at the end of its probe(), dma_device_unregister() at the
 * begin of its remove(). dma.c calls the operations, which may charge time. Of one channel start(),
 * stop(), clean(), resume() and abort() are never under way at the same time. Between start() and
 * stop(), beside these:
 *   fill()   for several copies at a time, beside all of them;
 *   spin()   by several threads at a time, beside clean() and resume();
 *   issue()  once at a time, beside clean() and from callbacks within it;
 *   rearm()  once at a time, beside all of them.
 * Once the engine is `gone`, none begins but stop(), when all that have begun are over. Slots of a
 * ring are sequence & (limits.ring - 1).
 */
#ifndef LOGIC_DMA_DMA_DRIVER_H
#define LOGIC_DMA_DMA_DRIVER_H

#include "logic/dma/dma.h"

struct dma_channel_ops {
    /* [thread] The channel's first request: memory and interrupts may be set up. Sequences go on
     * from channel->prepared. 0 or a negative errno. */
    int (*start)(struct dma_channel *channel);
    /* [thread] After abort(), or when the engine is gone: undoes start(), without registers. */
    void (*stop)(struct dma_channel *channel);
    /* Writes the copy into its slot, where the engine must not find it yet. */
    void (*fill)(struct dma_channel *channel, const struct dma_descriptor *descriptor);
    /* Lets the engine have all slots from sequence `first` up to, but excluding, `end`. */
    void (*issue)(struct dma_channel *channel, uint64_t first, uint64_t end);
    /* Lets the engine raise its next interrupt: all that ends after this returns raises one. From
     * the soft interrupt that dma_channel_interrupt() has scheduled, before clean(). */
    void (*rearm)(struct dma_channel *channel);
    /* Looks at what the engine has written and calls dma_copy_ended() for each copy that has ended;
     * if the channel has halted, dma_channel_stopped() before it ends the copy that has failed,
     * whose callback may issue more. */
    void (*clean)(struct dma_channel *channel);
    /* [thread] Polls until clean() would find something new, or until_ps. */
    void (*spin)(struct dma_channel *channel, uint64_t until_ps);
    /* [thread] Goes on behind the copy that has failed. 0 or a negative errno. */
    int (*resume)(struct dma_channel *channel);
    /* [thread] Stops the engine: when it returns, the engine accesses no memory for this channel,
     * and clean() will find what had ended. The next issue() begins with channel->prepared of
     * then. */
    void (*abort)(struct dma_channel *channel);
};

struct dma_device {
    /* ---- filled by the driver ---------------------------------------------------------------- */
    const char *kind; /* "ioat" */
    const char *name; /* unique in its kernel: "ioat0" */
    struct k_device *device;
    bool translated; /* by an IOMMU: no other device's addresses are its own */
    const struct dma_channel_ops *ops;
    struct dma_limits limits;
    uint64_t
        timeout_ps; /* copies are aborted if none of a channel has ended for so long; 0: never */
    struct dma_channel *channel; /* an array of n_channels, zeroed */
    unsigned n_channels;
    void *driver; /* private to the driver */
    /* ---- private ----------------------------------------------------------------------------- */
    struct dma_core *core; /* NULL: not registered */
    struct kernel *kernel;
    struct dma_device *next;
    void (*freed)(struct dma_device *device);
    unsigned requests;
};

struct dma_channel {
    /* ---- for the driver to read -------------------------------------------------------------- */
    struct dma_device *device;
    unsigned number;
    /* Sequences: all before it are prepared ... ended <= issued <= prepared < ended + ring. */
    uint64_t prepared, issued, ended;
    struct dma_descriptor *slot; /* limits.ring of them */
    void *driver;                /* private to the driver */
    bool halted; /* stopped on an error: clean() has said so, resume() or abort() will follow */
    bool gone;   /* the engine does not answer any more */
    /* ---- private ----------------------------------------------------------------------------- */
    unsigned requests, mode;
    uint64_t wanted; /* sequences to be issued as soon as all before them are submitted */
    unsigned busy;   /* calls of operations under way */
    bool starting, started, stopping, releasing, issuing, cleaning, clean_again, resuming,
        terminating;
    bool woken, interrupted, overdue;
    uint64_t watched; /* `ended` when the watch was set */
    struct k_timer watch;
    struct k_work watch_work;
    struct dma_failure failure;
    struct k_wait_queue wait;
    struct k_napi napi;
    struct k_work resume_work;
};

/* [thread] The engine's channels can be requested from now on. 0; -EEXIST: there is one of this
 * name. */
int dma_device_register(struct dma_core *core, struct dma_device *device);
/* [thread] Ends all copies, those that are not done with DMA_ABORTED, and stops the channels. gone:
 * the engine does not answer; of its operations only stop() is called any more. Channels that are
 * still requested stay valid and return -ENODEV until they are released; `freed` is called at the
 * last release, within this function if none is left, and may free `device` and its channels. */
void dma_device_unregister(struct dma_device *device, bool gone,
                           void (*freed)(struct dma_device *device));

/* From clean(): the copy of this sequence has ended. Ends of one channel may come in any order if
 * limits.in_order is false. A `state` of DMA_ERROR comes with the engine's code and its text. */
void dma_copy_ended(struct dma_channel *channel, uint64_t sequence, enum dma_state state,
                    uint32_t code, const char *text);
/* From clean(): all copies before sequence `end` that have not ended are complete. */
void dma_copies_complete(struct dma_channel *channel, uint64_t end);
/* From clean(): the engine has stopped behind a failed copy, and waits for resume(). */
void dma_channel_stopped(struct dma_channel *channel);
/* From the driver's interrupt handler: schedules clean() in a soft interrupt, and wakes whoever
 * sleeps. */
void dma_channel_interrupt(struct dma_channel *channel);

#endif
