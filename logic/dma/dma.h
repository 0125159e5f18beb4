/*
 * Copy engines for software of the kernel, in the form of Linux's dmaengine: whoever has bytes to
 * move asks for a channel, and does not know which engine is behind it.
 *
 *   struct dma_core *core = dma_core_new(kernel);        once; drivers register their engines with it
 *   c = dma_channel_request(core, NULL, DMA_SHARED);     [thread]
 *   k_dma_map(dma_channel_device(c), ...);               both buffers
 *   dma_prepare_copy(c, destination, source, bytes, DMA_INTERRUPT, &d);
 *   cookie = dma_submit(d);                              as often as the ring has room
 *   dma_issue_pending(c);                                one doorbell for all of them
 *   status = dma_wait(c, cookie, DMA_POLL, until_ps);    or dma_status() from time to time
 *   dma_channel_release(c);                              [thread]
 *
 * Order. A channel starts its copies in the order of their cookies, and may work on several at a
 * time. A copy with DMA_FENCE has written all its bytes before a later copy of the channel begins
 * to read. Only if limits->in_order, a copy that is done means that all before it have ended.
 *
 * No copy is lost: each that was submitted ends with one status, whatever happens to the engine,
 * and its callback is called once. Nothing here allocates memory between dma_channel_request() and
 * dma_channel_release(). All calls but those marked [thread] may also be made in a soft interrupt.
 * A shared channel may be used by several threads and CPUs at a time.
 */
#ifndef LOGIC_DMA_DMA_H
#define LOGIC_DMA_DMA_H

#include "logic/kapi.h"

struct dma_core;
struct dma_channel;

/* ---- Engines and channels -------------------------------------------------------------------- */

/* The engines of one kernel. The caller owns the result, and frees it when no channel is requested
 * and no engine is registered any more. */
struct dma_core *dma_core_new(struct kernel *kernel);
void dma_core_free(struct dma_core *core);
struct kernel *dma_core_kernel(const struct dma_core *core);
/* An `engine` below is the name of one ("ioat0"), a kind of engines ("ioat"), or NULL: any. */

/* Different channels that dma_channels_request() of this mode could still give. */
unsigned dma_channels_free(const struct dma_core *core, const char *engine, unsigned mode);
/* The i-th registered engine's name, valid as long as it is registered; NULL: there are fewer. */
const char *dma_engine_name(const struct dma_core *core, unsigned i);

/* Mode of a request. */
#define DMA_SHARED    0u /* other requests for shared channels may get the same channel */
#define DMA_EXCLUSIVE 1u /* nobody else gets it until it is released */
/* With DMA_EXCLUSIVE: a failed copy stops the channel until dma_resume(). */
#define DMA_HOLD_ERRORS 2u

/* [thread] Requests a channel: of those that are allowed, the one with the fewest requests, then
 * the nearest to the calling CPU's node, then the first. NULL: there is none. */
struct dma_channel *dma_channel_request(struct dma_core *core, const char *engine, unsigned mode);
/* [thread] Requests n different channels, chosen one after the other like that. Returns 0, or
 * -ENODEV and nothing. */
int dma_channels_request(struct dma_core *core, const char *engine, unsigned mode, unsigned n,
                         struct dma_channel **channels);
/* [thread] Undoes one request. The last one of a channel ends what is still under way, as
 * dma_terminate() does, and stops the channel. */
void dma_channel_release(struct dma_channel *channel);

/* What a channel can do; constant between request and release. */
struct dma_limits {
    uint64_t copy_bytes_max; /* of one copy: 1 .. copy_bytes_max bytes */
    uint32_t ring;           /* slots, a power of two: up to ring - 1 copies from prepare to end */
    bool in_order;           /* copies end in the order of their cookies */
};
const struct dma_limits *dma_channel_limits(const struct dma_channel *channel);
/* The device that copies, for k_dma_map(); NULL after the engine has been removed. */
struct k_device *dma_channel_device(const struct dma_channel *channel);
/* What k_dma_map() gives for the device of one is good for the other, too: it is the same, or no
 * IOMMU translates for either. */
bool dma_channels_share(const struct dma_channel *one, const struct dma_channel *other);
const char *dma_channel_engine(const struct dma_channel *channel);
unsigned dma_channel_number(const struct dma_channel *channel); /* within its engine */
/* Copies that can still be prepared before dma_prepare_copy() returns -EBUSY. */
unsigned dma_channel_room(const struct dma_channel *channel);
/* Copies submitted, and not ended as far as the driver has seen. */
unsigned dma_channel_pending(const struct dma_channel *channel);

/* ---- Copies ---------------------------------------------------------------------------------- */

typedef int64_t dma_cookie; /* of a channel: 1, 2, ... in order of preparation */

enum dma_state {
    DMA_IN_PROGRESS,
    DMA_COMPLETE,
    DMA_ERROR,   /* the engine reported an error; some of the bytes may have been written */
    DMA_ABORTED, /* ended by dma_terminate(), release or removal; may have been written in part */
};

/* Flags of a copy. */
#define DMA_INTERRUPT 1u /* the engine raises an interrupt at its end; callbacks follow soon */
#define DMA_FENCE     2u /* see "Order" */

/* A copy between prepare and submit. */
struct dma_descriptor {
    /* For the caller to set between both; zeroed by prepare. Called once at the copy's end, in the
     * context that has found it: a soft interrupt, or a call of dma_status(), dma_wait(),
     * dma_prepare_copy(), dma_terminate() or dma_channel_release(). Calls may be nested: a callback
     * may prepare, submit and issue. */
    void (*callback)(void *arg, dma_cookie cookie, enum dma_state state);
    void *arg;
    /* Private to dma.c and drivers. */
    struct dma_channel *channel;
    uint64_t sequence; /* from 0; the cookie is one more */
    uint64_t destination, source, bytes;
    uint32_t flags;
    uint8_t state; /* enum dma_state */
    bool submitted;
};

/* Prepares a copy of physically (for the device) contiguous bytes; ranges must not overlap. Charges
 * the driver's work and the stores to the ring. Returns 0 and the descriptor, which the caller must
 * submit before it sleeps; -EBUSY: the ring is full, even after a look at what has ended; -EINVAL:
 * bytes out of range, or an overlap; -EIO: the channel has stopped on an error (DMA_HOLD_ERRORS);
 * -ENODEV: the engine is gone. */
int dma_prepare_copy(struct dma_channel *channel, uint64_t destination, uint64_t source,
                     uint64_t bytes, unsigned flags, struct dma_descriptor **descriptor);
/* Queues the copy. The engine need not start it before dma_issue_pending(). From now on the
 * descriptor belongs to the channel. */
dma_cookie dma_submit(struct dma_descriptor *descriptor);
/* Starts all that was submitted so far: at most one write to the device. */
void dma_issue_pending(struct dma_channel *channel);

/* The state of a copy. A look costs the load of what the engine writes (a cache miss if it has
 * written). Known for the last limits->ring - 1 cookies; DMA_COMPLETE for older ones. */
enum dma_state dma_status(struct dma_channel *channel, dma_cookie cookie);

enum dma_wait_how {
    DMA_POLL,  /* the CPU looks again and again */
    DMA_SLEEP, /* [thread] until the interrupt of this copy or of a later one, which needs
                * DMA_INTERRUPT */
};
/* Waits for the end of a copy that was issued. 0: complete; -EIO; -ECANCELED: aborted; -ETIMEDOUT:
 * still in progress at until_ps (UINT64_MAX: no limit). [thread] */
int dma_wait(struct dma_channel *channel, dma_cookie cookie, enum dma_wait_how how,
             uint64_t until_ps);

/* ---- Errors, the end ------------------------------------------------------------------------- */

/* What the engine said of the last copy that failed. */
struct dma_failure {
    uint64_t n; /* of failed copies since the request; 0: none, and the rest is 0 */
    dma_cookie cookie;
    uint64_t destination, source, bytes;
    uint32_t code;    /* the engine's register, see hw/ */
    const char *text; /* its first bit in words; never NULL */
};
const struct dma_failure *dma_channel_failure(const struct dma_channel *channel);

/* The channel has stopped on an error, with copies behind it waiting. */
bool dma_channel_halted(const struct dma_channel *channel);
/* Goes on behind the failed copy. 0; -ENODEV; -EINVAL: it has not stopped, or is being terminated.
 * [thread] Without DMA_HOLD_ERRORS the driver does so by itself. */
int dma_resume(struct dma_channel *channel);
/* Ends all copies: those that are done are complete, all others are aborted when it returns, and
 * the engine does not touch their memory any more. The channel can be used again. [thread] */
void dma_terminate(struct dma_channel *channel);

#endif
