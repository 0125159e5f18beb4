/*
 * The inside of the copy module.
 *
 *   adma.c        the module, processes: open, close, kill; times
 *   requests.c    cookies, waits, copies within a process
 *   connection.c  copies between two: matching of reads and writes
 *   transfer.c    one range of bytes through channels, or by the CPU
 *   schedule.c    which channels
 *   threshold.c   the engine or the CPU
 *   pins.c        pinned pages and their cache
 *
 * A request is what a process has posted, with a buffer (a copy has two). A transfer moves bytes
 * from one buffer to another. It is part of the request that receives: a copy or a read has exactly
 * one.
 *
 * Between two calls that charge time nothing else runs (logic/kapi.h), so there are no locks:
 * whoever is about to charge leaves lists and states whole. Callbacks of channels come in any such
 * call.
 */
#ifndef LOGIC_COPY_ADMA_INTERNAL_H
#define LOGIC_COPY_ADMA_INTERNAL_H

#include "logic/copy/adma.h"
#include "logic/kcosts.h"

#define ADMA_CLASSES 40u /* of sizes, by powers of two */
#define PIN_BUCKETS  4096u

/* ---- Pins ------------------------------------------------------------------------------------ */

/* A pinned page of a process. */
struct adma_pin {
    uint64_t number;     /* of the page, in its process's addresses */
    struct k_page *page; /* one reference is this pin's */
    struct kaddr addr;
    uint64_t dma[ADMA_CHANNELS_MAX]; /* for each adma->mapper; one bit of `mapped` says: valid */
    uint32_t users;                  /* buffers that contain it */
    bool ready;                      /* paid for: pinned and mapped are final */
    bool pinned;                     /* k_pin() has succeeded */
    uint16_t mapped;
    bool cached;                    /* in the table: found by later buffers */
    struct adma_pin *next;          /* in its bucket, or among free ones */
    struct adma_pin *newer, *older; /* cached and without users */
};

/* Memory of a request, pinned or about to be. */
struct adma_buffer {
    struct uaddr at;
    uint64_t bytes;
    uint32_t n_pins, n_room;
    bool all_hit; /* every page was pinned before, and ready */
    struct adma_pin **pin;
};

/* ---- Transfers ------------------------------------------------------------------------------- */

/* What a transfer has given to one channel, or will give it: units (parts of the range that lie in
 * one page of the source) first, first + lanes, first + 2 lanes ... */
struct adma_lane {
    struct adma_transfer *transfer;
    struct adma_lane *next; /* waiting for room in the channel's ring */
    uint64_t unit, at;      /* the next byte to give: its unit, and its place in the transfer */
    struct adma_piece *oldest, *newest; /* that have not ended */
    uint32_t under_way;                 /* copies given that have not ended */
    struct adma_channel *channel;
    bool open;    /* something is still to be given */
    bool waiting; /* in its channel's list */
};

enum adma_transfer_state {
    TRANSFER_NONE,
    TRANSFER_RUNS,
    TRANSFER_BAD,    /* the engine is done with it; a CPU has to copy [bad_from, bad_to) */
    TRANSFER_BY_CPU, /* one copies */
    TRANSFER_DONE,
};

struct adma_transfer {
    struct adma *adma;
    struct adma_request *source, *target; /* source == target: a copy within a process */
    const struct adma_buffer *from, *to;
    uint64_t from_at, to_at, bytes; /* places in the buffers */
    enum adma_transfer_state state;
    bool by_engine;
    bool hit; /* all pages were pinned before */
    uint64_t bad_from, bad_to;
    uint64_t n_units;
    uint64_t started_ps;
    unsigned n_lanes, n_open;
    uint64_t under_way; /* copies of all lanes */
    struct adma_lane lane[ADMA_CHANNELS_MAX];
    struct adma_transfer *next; /* of the same write */
    uint64_t spent_ps;          /* by calls, for the threshold */
};

/* A copy that a channel works on: whose it is. As many as its ring has slots. */
struct adma_piece {
    struct adma_channel *channel;
    struct adma_lane *lane;
    uint64_t at, bytes;
    uint64_t number;                  /* of all that the channel was given; 0: free */
    dma_cookie cookie;                /* 0: it is about to be submitted */
    struct adma_piece *next, *before; /* of the lane, in order; next: among free ones, too */
};

struct adma_channel {
    struct adma *adma;
    struct dma_channel *dma;
    unsigned idx;
    unsigned map; /* of its device, in adma->mapper and pins */
    struct adma_piece *pieces, *free_pieces;
    dma_cookie newest;
    uint64_t n_given;
    unsigned not_issued;
    uint64_t bytes_under_way;                 /* and waiting */
    struct adma_lane *waiting, *waiting_last; /* for room, first come, first served */
    bool feeding, terminating;
};

/* ---- Requests -------------------------------------------------------------------------------- */

enum adma_kind { ADMA_COPY, ADMA_READ, ADMA_WRITE };
enum adma_state {
    REQUEST_FREE,
    REQUEST_POSTED, /* it, or the rest of a write, has no counterpart yet */
    REQUEST_MATCHED,
    REQUEST_ENDED,
};

struct adma_request {
    struct adma_process *process;
    enum adma_kind kind;
    enum adma_state state;
    bool queued;       /* in its endpoint's list */
    bool cut;          /* a write whose rest nobody will read */
    bool leaving;      /* put, as soon as no visitor is left */
    unsigned visitors; /* threads that work on its transfer */
    uint32_t generation;
    struct adma_buffer buffer, second; /* a copy: source, target */
    uint64_t matched, moved;           /* bytes */
    int error;
    unsigned n_transfers;            /* of a write: not done yet */
    struct adma_transfer *transfers; /* of a write, in order, until they are done */
    struct adma_transfer transfer;   /* of a copy or a read */
    struct adma_endpoint *endpoint;
    struct adma_request *next;     /* in its endpoint's list, or among free ones */
    struct k_wait_queue semaphore; /* released when a counterpart is there, or the end is */
};

struct adma_endpoint {
    struct adma_process *process; /* NULL: closed */
    struct adma_connection *connection;
    struct adma_request *reads, *last_read, *writes, *last_write; /* without a counterpart */
};

struct adma_connection {
    struct adma *adma;
    struct adma_connection *next;
    unsigned holds;
    struct adma_endpoint end[2];
    uint32_t port;
    bool connects; /* who waits has called adma_connect() */
    bool whole;    /* both ends are there */
    struct k_wait_queue wait;
};

struct adma_process {
    struct adma *adma;
    struct umem *umem;
    struct kernel *kernel;
    struct adma_process *next;
    struct umem_notifier notifier;
    bool killed, closed;
    struct adma_request request[ADMA_REQUESTS_MAX];
    struct adma_request *free_requests;
    struct adma_endpoint *fd[ADMA_FDS_MAX];
    struct adma_times times;
    /* pins.c */
    struct adma_pin *bucket[PIN_BUCKETS];
    struct adma_pin *free_pins, *chunks;
    struct adma_pin idle; /* head of the list of cached pins without users, oldest first */
    uint64_t n_cached, n_pins;
    struct k_wait_queue to_be_ready; /* threads that have found pins that are not ready */
};

struct adma_estimate {
    uint64_t ps[2]; /* by the CPU, by the engine */
    uint32_t n[2];
    uint32_t until_trial, between_trials;
};

struct adma {
    struct kernel *kernel;
    struct adma_options options;
    struct adma_channel channel[ADMA_CHANNELS_MAX];
    unsigned n_channels;
    /* Channels whose devices pages are mapped for: one of those that share addresses. */
    struct dma_channel *mapper[ADMA_CHANNELS_MAX];
    unsigned n_mappers;
    unsigned
        next_channel; /* round robin; of channels for large copies, if small ones have their own */
    unsigned next_dedicated;
    uint64_t small_seen_ps;         /* when the last small copy came; 0: never */
    struct adma_process *processes; /* open, or with something under way */
    struct adma_connection *connections;
    struct adma_stats stats;
    struct adma_estimate estimate[ADMA_CLASSES][2];
    bool stopping, stopped; /* the reaper, which ends what closed processes have left */
    struct k_wait_queue to_reap;
};

/* pins.c. [thread] Pins the pages of the buffer; adds to the process's pin_ps. 0, -EFAULT: not
 * mapped, -ENOMEM: nothing is pinned. */
int adma_pin_buffer(struct adma_process *process, struct adma_buffer *buffer, struct uaddr at,
                    uint64_t bytes);
/* [thread] */
void adma_unpin_buffer(struct adma_process *process, struct adma_buffer *buffer);
void adma_pins_init(struct adma_process *process);
/* [thread] Unpins what the cache holds; pins with users go with them. */
void adma_pins_drop(struct adma_process *process);
void adma_pins_release(struct adma_process *process);
/* Memory of a buffer at a place, and how many of the bytes go on from there within its page. */
static inline const struct adma_pin *adma_pin_at(const struct adma_buffer *buffer, uint64_t at,
                                                 uint64_t *in_page)
{
    const uint64_t offset = buffer->at.v % K_PAGE_BYTES + at;
    *in_page = offset % K_PAGE_BYTES;
    return buffer->pin[offset / K_PAGE_BYTES];
}

/* transfer.c. Requests the channels; frees what belongs to them. [thread] */
int adma_channels_init(struct adma *adma, struct dma_core *core);
void adma_channels_release(struct adma *adma);
/* [thread] Begins a transfer whose ranges, source and target are set. When it returns, all of it
 * has been given to channels, or waits for their room, or it is done. `by` pays. */
void adma_transfer_start(struct adma_transfer *transfer, struct adma_process *by);
/* [thread] Looks once; copies what the engine could not, or has not in time. */
void adma_transfer_check(struct adma_transfer *transfer, struct adma_process *by);
/* [thread] Does what can be done next, or waits for the engine, until_ps at the latest; callers
 * loop on the state of their request. */
void adma_transfer_step(struct adma_transfer *transfer, struct adma_process *by,
                        struct adma_request *waiter, uint64_t until_ps);
/* requests.c: both sides get to know of it. Charges wake-ups. */
void adma_transfer_ended(struct adma_transfer *transfer);

/* schedule.c. Sets lanes: channels and first units. */
void adma_schedule_lanes(struct adma *adma, struct adma_transfer *transfer);

/* threshold.c */
bool adma_by_engine(struct adma *adma, uint64_t bytes, bool hit);
void adma_learn(struct adma *adma, const struct adma_transfer *transfer);

/* requests.c. NULL: too many. */
struct adma_request *adma_request_get(struct adma_process *process, enum adma_kind kind);
/* [thread] It has ended, or has never begun: unpins and frees. */
void adma_request_put(struct adma_request *request);
adma_cookie adma_request_cookie(const struct adma_request *request);
/* Ends a request that has no transfer under way; its semaphore is released. */
void adma_request_end(struct adma_request *request, int error);
void adma_request_visit(struct adma_request *request);
void adma_request_leave(struct adma_request *request);
/* [thread] Looks once at its transfers. */
void adma_request_look(struct adma_request *request, struct adma_process *by);
/* [thread] Until it has ended, the process is killed, or until_ps. */
void adma_request_wait(struct adma_request *request, uint64_t until_ps);
/* Like adma_request_wait(), but withdraws at until_ps what has no counterpart. The result of it. */
int64_t adma_request_finish(struct adma_request *request, uint64_t until_ps);
/* The request of a cookie; NULL: there is none. */
struct adma_request *adma_request_find(struct adma_process *process, adma_cookie cookie);
bool adma_overlap(struct uaddr a, struct uaddr b, uint64_t bytes);

/* connection.c. The request, which waits for a counterpart, does so no longer. */
void adma_withdraw(struct adma_request *request, int error);
void adma_disconnect_all(struct adma_process *process);

/* pins.c: the process learns of memory that goes away. */
void adma_notifier_init(struct adma_process *process);

/* adma.c. [thread] The transition. False: the process has been killed. */
bool adma_enter(struct adma_process *process);
/* Has the reaper look after closed processes. From any context. */
void adma_reap(struct adma *adma);

static inline uint64_t adma_lap(struct kernel *kernel, uint64_t *since_ps)
{
    const uint64_t now = k_now_ps(kernel), lap = now - *since_ps;
    *since_ps = now;
    return lap;
}

#endif
