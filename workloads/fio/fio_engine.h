/*
 * Engines of fio: how a job gets its requests to a device, in the manner of fio's ioengines. A job
 * is a kernel thread on one CPU with `depth` requests (struct fio_io_u) and a buffer for each. The
 * job chooses what a request is and measures it; the engine carries it out and charges what its
 * calls cost. An engine is a struct fio_engine_ops in a file of its own and a row in fio_engines[]
 * (fio_engines.c).
 *
 * Order of calls, for each job:
 *   check()              before time starts, once per program
 *   open()               [thread] on the job's CPU
 *   submit() ... commit() ... reap() ...   [thread] never more than `depth` requests under way
 *   close()              [thread] no request is under way
 *   release()            outside the simulation, whether or not close() was reached
 *
 * Functions return 0 or a negative errno value unless it says otherwise. An engine that gets an
 * error of a request puts it into io_u->status and completes the request.
 */
#ifndef WORKLOADS_FIO_FIO_ENGINE_H
#define WORKLOADS_FIO_FIO_ENGINE_H

#include "workloads/programs/program.h"

struct fio_engine_ops;
struct fio_job;

/* Jobs that have the device open at a time, and their requests. */
struct fio_load {
    unsigned jobs, requests;
};

/* What the jobs of one program do I/O on: a namespace. */
struct fio_device {
    /* ---- set before check() ------------------------------------------------------------------ */
    const struct fio_engine_ops *engine;
    struct program *program;
    struct lending_host *host;  /* on which the jobs run */
    const char *name;           /* setting `device` */
    uint64_t request_bytes_max; /* the largest request that a job will make */
    unsigned n_jobs;            /* that will open it */
    /* ---- set by check() ---------------------------------------------------------------------- */
    struct model *model;  /* the nvme.controller: programs that have the same divide its blocks */
    uint64_t bytes;       /* of the namespace; 0: not known before it is opened */
    uint32_t block_bytes; /* of its logical blocks */
    uint64_t limit_bytes; /* the largest request that the engine can make; 0: any */
    /* ---- the engine's ------------------------------------------------------------------------ */
    void *state; /* engine->device_bytes, zeroed before check(); freed by the caller */
    /* ---- fio's own --------------------------------------------------------------------------- */
    bool bad; /* check() has failed */
};

/* A request. */
struct fio_io_u {
    struct fio_job *job;
    /* ---- set by the job before submit(), unchanged until the request is done ----------------- */
    bool write;
    uint64_t offset, bytes; /* on the device: whole logical blocks, at most buffer_bytes */
    /* ---- set by open() ----------------------------------------------------------------------- */
    struct kaddr buffer; /* of buffer_bytes; memory of the host, unless the engine has put() */
    /* ---- set by the engine when the request is done ------------------------------------------ */
    int status; /* 0, or a negative errno value */
    /* ---- the job's --------------------------------------------------------------------------- */
    uint64_t start_ps, issue_ps, end_ps; /* before submit(), after it, after reap() */
    struct fio_io_u *next;
    uint64_t tag, number;
    /* ---- the engine's ------------------------------------------------------------------------ */
    void *state; /* engine->io_u_bytes, zeroed before open(); freed by the caller */
};

/* The part of a job that engines see. */
struct fio_job {
    struct fio_device *device;
    unsigned number;       /* among the jobs of the program */
    unsigned cpu;          /* that the thread runs on */
    unsigned depth;        /* io_u[] */
    uint64_t buffer_bytes; /* of each request's buffer: the largest request of this job */
    struct fio_io_u *io_u;
    void *state; /* engine->job_bytes, zeroed before open(); freed by the caller */
};

struct fio_engine_ops {
    const char *name; /* as in the setting `engine` and in job files */
    const char *help;
    size_t device_bytes, job_bytes, io_u_bytes; /* of the states; 0: none */
    bool synchronous;  /* a request is done when submit() returns: depth is 1, no reap() */
    bool needs_direct; /* job files must say direct=1: else there would be a page cache */
    /* Checks the settings, before time starts, and fills struct fio_device; false after a mistake
     * (program_mistake()). */
    bool (*check)(struct fio_device *device, struct sim_error_list *errors);
    /* Before time starts: so many jobs of the program have the device open at a time, at least:
     * when the programs begin, and later on; what is too many is a mistake (fio_jobs_key()).
     * NULL: any number. */
    void (*check_jobs)(struct fio_device *device, const struct fio_load *first,
                       const struct fio_load *most, struct sim_error_list *errors);
    /* [thread] Opens the device and allocates the buffers (fio_buffers_alloc()); sets
     * device->bytes. Jobs open and close one at a time; of those that share blocks which are
     * written first, the first has written them before the second opens. -EFBIG: buffer_bytes is
     * more than the device takes. */
    int (*open)(struct fio_job *job);
    /* [thread] Starts a request. 0: it will be reaped, or, of a synchronous engine, is done;
     * -EBUSY: no room until a request is reaped, io_u is the caller's; other errors: the same, for
     * good. */
    int (*submit)(struct fio_job *job, struct fio_io_u *io_u);
    /* [thread] What was submitted since the last commit() must be under way at return (one
     * io_submit(), one doorbell). The job calls it after every iodepth_batch requests and before
     * reap(). NULL: submit() does it. */
    int (*commit)(struct fio_job *job);
    /* [thread] Waits until at least min requests are done (0: does not wait), and stores up to max
     * that are, the oldest completion first. Returns their number; fewer than min only if fewer are
     * under way. NULL for a synchronous engine. */
    unsigned (*reap)(struct fio_job *job, unsigned min, unsigned max, struct fio_io_u **done);
    /* [thread] Whole blocks from or into memory of the host, one request after the other, without
     * measuring: for what is written before a job begins. NULL: done with submit() and reap(). */
    int (*transfer)(struct fio_job *job, bool write, uint64_t offset, struct kaddr buffer,
                    uint64_t bytes);
    /* Put a stream (models/base/payload.h) into the buffer of a request, and compare it, from byte
     * `at` on; both without time. NULL: the buffer is memory of the host. */
    void (*put)(struct fio_io_u *io_u, uint64_t at, uint64_t tag, uint64_t bytes);
    bool (*same)(struct fio_io_u *io_u, uint64_t at, uint64_t tag, uint64_t bytes,
                 struct payload_difference *difference);
    void (*close)(struct fio_job *job); /* may be NULL; not called if open() failed */
    /* May be NULL; also of a job that never came to open(). */
    void (*release)(struct fio_job *job);
};

extern const struct fio_engine_ops fio_engine_sync, fio_engine_libaio, fio_engine_io_uring,
    fio_engine_spdk, fio_engine_smartio;

/* Ends with NULL. */
extern const struct fio_engine_ops *const fio_engines[];
/* NULL-terminated, for messages. */
extern const char *const fio_engine_names[];
/* NULL: there is none of this name. */
const struct fio_engine_ops *fio_engine_find(const char *name);
/* The setting that says how many jobs the program has. */
const char *fio_jobs_key(const struct program *program);

/* [thread] Allocates a buffer per request of the job from memory of its CPU's node; -ENOMEM. */
int fio_buffers_alloc(struct fio_job *job);

#endif
