/*
 * The kernel module of "Designing Efficient Asynchronous Memory Operations Using Hardware Copy
 * Engine" (IPDPS 2007): copies for processes by a copy engine (logic/dma/dma.h), within a process
 * and between two of them.
 *
 *   struct adma *adma = adma_new(kernel, core, &options, &status);      the module is loaded
 *   struct adma_process *p = adma_open(adma, umem);                     [thread] a process opens it
 *   cookie = adma_icopy(p, to, from, bytes);      ... compute ...       adma_wait_copy(p, cookie);
 *   fd = adma_connect(p, port, until_ps);         the other process:    adma_accept(q, port, until_ps)
 *   cookie = adma_iwrite(p, fd, from, bytes);                           adma_iread(q, fd, to, bytes)
 *   n = adma_wait(p, cookie, until_ps);
 *   adma_close(p);
 *
 * Every call of a process but adma_kill() is a system call: it charges the transition and is made
 * from a thread. Threads of one process may call at a time, each with cookies of its own.
 *
 * What holds
 *   - The bytes of a copy are right when a check or a wait has said that it is done, whatever
 *     channels, the CPU or an engine's errors did with it; before, any of them may have been
 *     written.
 *   - Source and destination of one copy must not overlap: -EINVAL. Copies are not ordered among
 *     each other: whoever needs what an earlier one writes waits for it first.
 *   - Memory may be unmapped while a copy runs: umem_unmap() does not wait. The copy keeps the
 *     pages that it has pinned and ends there; they are free when it has been waited for, or its
 *     process is closed.
 *   - Pins and pages balance: after adma_close() and the end of what is under way, none is left.
 *   - Nobody waits for ever on an engine: what has not ended within engine_timeout_ps is ended, and
 *     the CPU copies it. Waits for another process end when it closes, is killed, or at until_ps.
 */
#ifndef LOGIC_COPY_ADMA_H
#define LOGIC_COPY_ADMA_H

#include "logic/copy/umem.h"
#include "logic/dma/dma.h"

struct adma;
struct adma_process;

#define ADMA_CHANNELS_MAX 16u
#define ADMA_REQUESTS_MAX 256u /* of a process, posted and not yet waited for */
#define ADMA_FDS_MAX      16u  /* of a process */

/* Which channels a copy uses. Pages go round over them. */
enum adma_schedule {
    ADMA_ROUND_ROBIN, /* all, going on where the last copy has ended: the paper's */
    ADMA_DEDICATED,   /* small copies have channels of their own, the others the rest */
    /* a small copy: the one with the fewest bytes under way; the others: all, but for one that is
     * left to small ones as long as there were some within reserve_ps */
    ADMA_ADAPTIVE,
};

struct adma_options {
    const char *engine;  /* of logic/dma; NULL: any */
    unsigned n_channels; /* 0: no engine, the CPU copies all */
    enum adma_schedule schedule;
    uint64_t small_bytes;  /* copies up to this size are small */
    unsigned n_dedicated;  /* channels for small copies: 1 .. n_channels - 1 */
    uint64_t reserve_ps;   /* see ADMA_ADAPTIVE */
    uint64_t engine_bytes; /* smaller copies are the CPU's; 0: none is */
    bool learns;           /* the CPU copies what it has been quicker with; see threshold.c */
    /* Pages of a process that stay pinned after their copies, the least recently used ones going
     * first; 0: none, they are unpinned when the copy has been waited for. */
    uint64_t pin_cache_pages;
    uint64_t engine_timeout_ps; /* from the start of a copy; 0: no limit */
};
extern const struct adma_options adma_options_default;

/* ---- The module ------------------------------------------------------------------------------ */

/* [thread] Copies the options and requests shared channels. `core` may be NULL if n_channels is 0.
 * NULL, and *status: -EINVAL: an option is out of range; -ENODEV: no engine has so many channels.
 * The caller owns the result. */
struct adma *adma_new(struct kernel *kernel, struct dma_core *core,
                      const struct adma_options *options, int *status);
/* [thread] Waits until what closed processes have left under way has ended, and frees. All must
 * have been closed. */
void adma_free(struct adma *adma);

struct adma_stats {
    uint64_t engine_copies, cpu_copies; /* transfers by who copied them */
    uint64_t engine_bytes, cpu_bytes;
    uint64_t descriptors; /* given to channels */
    uint64_t redone;   /* transfers that the CPU copied after an error of the engine, or in part */
    uint64_t timeouts; /* channels that were terminated */
    uint64_t pages_pinned; /* get_user_pages() */
    uint64_t pages_unpinned;
    uint64_t pages_hit;        /* found pinned already */
    uint64_t pages_dropped;    /* pins that unmapping took out of the cache */
    uint64_t pages_not_mapped; /* pinned, but not mapped for the engine: unpinned after the copy */
    uint64_t semaphore_waits;
};
const struct adma_stats *adma_stats(const struct adma *adma);

/* ---- Processes ------------------------------------------------------------------------------- */

/* The memory must outlive the process. NULL: there is no memory for it. */
struct adma_process *adma_open(struct adma *adma, struct umem *umem);
/* Ends all connections and lets go of everything. What the engine works on goes on to its end with
 * the pages that are pinned for it; this does not wait for it. No thread of the process may be in a
 * call. The process's memory may be freed when it returns. */
void adma_close(struct adma_process *process);
/* The process is about to die: its calls that wait return -EINTR, as do all later ones. From any
 * context. adma_close() must follow. */
void adma_kill(struct adma_process *process);

/* Time that its calls have spent, by what they did. */
struct adma_times {
    uint64_t transition_ps; /* entry and return */
    uint64_t pin_ps;        /* looking up and pinning pages */
    uint64_t startup_ps;    /* descriptors and doorbells */
    uint64_t cpu_copy_ps;   /* copies by the CPU */
    uint64_t semaphore_ps;  /* waiting for the other process */
    uint64_t completion_ps; /* looking for the end of transfers, the wait for it included */
};
const struct adma_times *adma_times(const struct adma_process *process);

typedef int64_t adma_cookie; /* of a process; positive */

/* ---- Copies within a process ----------------------------------------------------------------- */

/* Begins a copy. The cookie, which needs one adma_wait_copy(), or adma_check_copy() that does not
 * return 0; or -EFAULT: a range is not mapped; -EINVAL: they overlap, or `bytes` is 0; -EAGAIN: too
 * many requests; -ENOMEM; -EINTR. */
adma_cookie adma_icopy(struct adma_process *process, struct uaddr to, struct uaddr from,
                       uint64_t bytes);
/* 1: done, and the cookie is void; 0: not yet; -EINVAL: no such cookie; -EINTR. */
int adma_check_copy(struct adma_process *process, adma_cookie cookie);
/* 0: done, and the cookie is void; -EINVAL; -EINTR: the process has been killed. */
int adma_wait_copy(struct adma_process *process, adma_cookie cookie);
/* One system call: begins the copy and waits for it. 0 or an error of either. */
int adma_copy(struct adma_process *process, struct uaddr to, struct uaddr from, uint64_t bytes);

/* ---- Copies between two processes ------------------------------------------------------------ */

/* Meet another process that calls the other one for the same port. Return a descriptor, or
 * -ETIMEDOUT, -EMFILE, -EINTR, or -EBADF: another thread has disconnected the descriptor
 * meanwhile. */
int adma_connect(struct adma_process *process, uint32_t port, uint64_t until_ps);
int adma_accept(struct adma_process *process, uint32_t port, uint64_t until_ps);
/* Ends the connection. Requests of it that have no counterpart end: reads with 0 bytes, as at the
 * end of a stream, writes with what was read of them, or -EPIPE if nothing was. 0 or -EBADF. */
int adma_disconnect(struct adma_process *process, int fd);

/* Post a buffer: a stream of bytes, as of a socket. A read gets at most the rest of one write, so
 * it may end with fewer bytes than asked for; a write ends when all its bytes have been read, by as
 * many reads as that takes. Requests of one direction are served in the order of posting. The data
 * move as soon as both sides have posted. A cookie, which needs one adma_wait() or adma_check()
 * that ends it; or -EFAULT, -EBADF, -EPIPE: the other side has gone (writes), -EAGAIN, -ENOMEM,
 * -EINTR. */
adma_cookie adma_iread(struct adma_process *process, int fd, struct uaddr to, uint64_t bytes);
adma_cookie adma_iwrite(struct adma_process *process, int fd, struct uaddr from, uint64_t bytes);
/* True: it has ended, with *result as adma_wait() says. */
bool adma_check(struct adma_process *process, adma_cookie cookie, int64_t *result);
/* The bytes that were read or written; -EPIPE; -EINVAL: no such cookie, or a read and a write of
 * one process whose ranges overlap; -ETIMEDOUT: it goes on, and the cookie stays valid; -EINTR. */
int64_t adma_wait(struct adma_process *process, adma_cookie cookie, uint64_t until_ps);
/* One system call each: post and wait. At until_ps a request that has no counterpart yet is
 * withdrawn, and the result is -ETIMEDOUT, or what was written of it. */
int64_t adma_read(struct adma_process *process, int fd, struct uaddr to, uint64_t bytes,
                  uint64_t until_ps);
int64_t adma_write(struct adma_process *process, int fd, struct uaddr from, uint64_t bytes,
                   uint64_t until_ps);

#endif
