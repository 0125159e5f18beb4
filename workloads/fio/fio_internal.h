/* The inside of fio: fio*.c only. */
#ifndef WORKLOADS_FIO_FIO_INTERNAL_H
#define WORKLOADS_FIO_FIO_INTERNAL_H

#include <stdio.h>

#include "models/base/payload.h"
#include "workloads/fio/fio_engine.h"
#include "workloads/fio/fio_options.h"

#define FIO_DEVICES_MAX 8u
#define FIO_THREADS_MAX 1024u
#define FIO_FILL_BYTES  131072u

struct fio;
struct fio_thread;

/* ---- Statistics (fio_stats.c) ---------------------------------------------------------------- */

struct fio_latency {
    struct stat_histogram ps;
    double mean, m2; /* running mean and sum of squared deviations, ps (Welford 1962) */
};

#define FIO_DEPTH_LEVELS 7u
#define FIO_NS_LEVELS    10u
#define FIO_MS_LEVELS    12u

/* Of a job, or of a group of them. */
struct fio_stats {
    struct fio_direction_stats {
        uint64_t n, bytes;
        struct fio_latency slat, clat, lat;
    } of[FIO_DIRECTIONS];
    uint64_t n_errors, n_syncs;
    int first_error;
    uint64_t depth[FIO_DEPTH_LEVELS];    /* requests, by what was under way with each */
    uint64_t submit[FIO_DEPTH_LEVELS];   /* submissions, by how many requests they were */
    uint64_t complete[FIO_DEPTH_LEVELS]; /* the same of completions */
    uint64_t level_ns[FIO_NS_LEVELS], level_us[FIO_NS_LEVELS], level_ms[FIO_MS_LEVELS]; /* clat */
    uint64_t begin_ps, end_ps; /* of what counts */
};

void fio_stats_init(struct fio_stats *stats);
void fio_stats_release(struct fio_stats *stats);
void fio_stats_clear(struct fio_stats *stats);
/* asynchronous: it has a submission latency. */
void fio_stats_add(struct fio_stats *stats, const struct fio_io_u *io_u, bool asynchronous);
void fio_stats_depth(struct fio_stats *stats, unsigned n_under_way);
void fio_stats_batch(uint64_t level[FIO_DEPTH_LEVELS], unsigned n);
/* Adds `from`; the times are those of both. */
void fio_stats_merge(struct fio_stats *to, const struct fio_stats *from);
double fio_latency_deviation(const struct fio_latency *latency); /* ps */

/* ---- Blocks and what they hold (fio_data.c) -------------------------------------------------- */

/*
 * The blocks that jobs share, or that one job has for itself: fio's file. Each unit (the largest
 * size that divides all requests) has a version, which a write raises; what a read returns is
 * compared with the version written last, but where a write to the same unit was under way at any
 * time during the read, or two writes at once. Units that were never written are zero, or have
 * version 0 if the file was filled first.
 */
struct fio_file {
    const char *name;        /* as in the job file, or of the job: "job.0.0" */
    const char *device_name; /* in the scenario */
    uint64_t begin, bytes;   /* on the device */
    uint64_t unit_bytes;
    uint16_t stream;
    bool fill, filled; /* written before jobs begin, or before the run */
    bool own;          /* of one job */
    bool *busy;        /* of each unit: a request is under way; NULL: overlaps are allowed */
    struct fio_chunk **chunk;
    uint64_t n_chunks;
    uint32_t sequence; /* of beginnings and ends of requests */
};

/* In start(). exclusive: `busy` is kept. */
void fio_data_init(struct fio_file *file, struct program *program, bool exclusive);
/* Marks for a request that begins: the buffer holds what is to be written, or is poisoned. */
void fio_data_begin(struct fio_file *file, struct fio_io_u *io_u);
/* Has ended. False: what was read is wrong; *is says what, at *at of the file. */
bool fio_data_end(struct fio_file *file, struct fio_io_u *io_u, struct payload_difference *is,
                  uint64_t *at);
/* True: each unit of the range has been written. */
bool fio_data_written(const struct fio_file *file, uint64_t at, uint64_t bytes);
void fio_data_put(struct fio_io_u *io_u, uint64_t at, uint64_t tag, uint64_t bytes);
uint64_t fio_data_tag(const struct fio_file *file, uint32_t version, uint64_t at);
void fio_data_release(struct fio_file *file);

/* ---- Which request is next (fio_next.c, fio_random.c) ---------------------------------------- */

uint64_t fio_common_divisor(uint64_t a, uint64_t b);
/* Ranks 1 .. n with P(k) ~ k^-theta, exactly, by rejection (Hormann and Derflinger 1996). */
struct fio_zipf {
    double theta, integral_half, integral_n, threshold;
    uint64_t n;
};
void fio_zipf_init(struct fio_zipf *zipf, uint64_t n, double theta);
uint64_t fio_zipf_draw(const struct fio_zipf *zipf, struct sim_random *random);

/* Blocks 0 .. n - 1 by the distribution of the options. */
struct fio_draw {
    const struct fio_options *options;
    uint64_t n;
    struct fio_zipf zipf;
    uint64_t step, shift; /* rank r is block (r * step + shift) mod n: a permutation */
};
void fio_draw_init(struct fio_draw *draw, const struct fio_options *options, uint64_t n,
                   struct sim_random *random);
uint64_t fio_draw_block(const struct fio_draw *draw, struct sim_random *random);

struct fio_next {
    struct sim_random offsets, mix, sizes;
    struct fio_draw draw;
    uint64_t *map; /* of blocks that were used; NULL: none is kept */
    uint64_t n_blocks, n_used, block_bytes;
    uint64_t position[FIO_DIRECTIONS]; /* where the next sequential request begins, in the span */
    uint64_t last[FIO_DIRECTIONS];     /* where the last one began */
    uint64_t left[FIO_DIRECTIONS];     /* of the N requests of rw=...:N */
};
void fio_next_init(struct fio_thread *thread);
/* In bytes. */
uint64_t fio_smallest_request(const struct fio_options *options);
/* What a job without io_size does of its span: all, but where it never comes back to a place the
 * rest that is no whole request. */
uint64_t fio_next_pass_bytes(const struct fio_options *options, uint64_t span);
/* Everything from the beginning, but for the random numbers. */
void fio_next_rewind(struct fio_thread *thread);
/* The direction of the next request. */
unsigned fio_next_direction(struct fio_thread *thread);
/* Its place in the span and its size, at least a block of the smallest size. */
void fio_next_place(struct fio_thread *thread, unsigned direction, uint64_t *at, uint64_t *bytes);

/* ---- Traces (fio_iolog.c) -------------------------------------------------------------------- */

/* 27 hours: at a hundredth of the rate, the least, within the picoseconds of a simulation. */
#define FIO_TRACE_MAX_US 100000000000u

enum fio_action { FIO_ACTION_READ, FIO_ACTION_WRITE, FIO_ACTION_SYNC };
struct fio_step {
    enum fio_action action;
    uint64_t at_us; /* since the beginning; at most FIO_TRACE_MAX_US */
    uint64_t offset, bytes;
};
struct fio_trace {
    struct fio_step *step;
    uint64_t n_steps;
    uint64_t end;        /* the highest byte */
    uint64_t unit_bytes; /* what divides all offsets and sizes; 0: none has any */
};
/* Mistakes go to errors, with their lines. */
bool fio_trace_read(const char *path, const struct fio_options *options, struct fio_trace *trace,
                    struct sim_error_list *errors);
void fio_trace_release(struct fio_trace *trace);

/* ---- Jobs (fio_run.c) ------------------------------------------------------------------------ */

/* A job of the description; numjobs make as many threads of it. */
struct fio_group_job {
    struct fio_options *options;
    unsigned group; /* of reports */
    unsigned after; /* all jobs before this one end first (stonewall) */
    int waits_for;  /* index of the job that ends first (wait_for); -1: none */
    unsigned n_running;
    struct fio_trace trace;
};

struct fio_thread {
    struct fio_job job; /* what the engine sees */
    struct fio *fio;
    const struct fio_options *options;
    const struct fio_trace *trace; /* to be replayed, or NULL */
    unsigned description;          /* index of its struct fio_group_job */
    struct fio_file *file;
    uint64_t begin, span, io_bytes; /* of the file; the job ends after io_bytes */
    char name[64];
    struct sim_random times; /* of rates and delays; fio_next has its own */
    struct fio_next next;
    struct fio_io_u *free, *queued, **done; /* done: room for depth of them */
    unsigned in_flight, n_queued;           /* n_queued of these: not committed yet */
    bool full;                              /* has been: as many requests under way as may be */
    bool opened, ended, stopped;
    uint64_t begun_ps, counts_from_ps;             /* ramp_time is over */
    uint64_t loop_ps;                              /* this loop has begun */
    uint64_t issued, issued_bytes[FIO_DIRECTIONS]; /* of this loop */
    uint64_t due_ps[FIO_DIRECTIONS];               /* rates */
    uint64_t completed, n_writes;                  /* for thinktime and fsync */
    uint64_t measured;                             /* operations */
    struct fio_range {
        uint64_t at, bytes;
    } * written; /* to be verified */
    uint64_t n_written, room_written;
    bool reads_back; /* what it has written */
    struct fio_stats stats;
    uint64_t step; /* of the trace */
    FILE *log;
};

struct fio {
    /* parameters */
    const char *host_name, *device_name, *engine_name;
    const char *job_file, *job_options, *filenames, *json_output;
    uint32_t n_jobs, cpu, queue_depth, think_cycles;
    uint64_t block_bytes, span_bytes, operations;
    double read_ratio;
    bool laid_out;
    /* built by check() */
    struct program *program;
    struct lending_host *host;
    bool from_file;        /* job_file or job_options, not the settings */
    const char *json_path; /* json_output with the point's name; NULL: none */
    struct fio_strings *strings;
    struct fio_job_list list;
    struct fio_override *override; /* NULL: no job_options */
    struct fio_options plain;      /* what the settings say */
    struct fio_group_job *description;
    unsigned n_descriptions;
    struct fio_device device[FIO_DEVICES_MAX];
    unsigned n_devices;
    struct fio_file **file;
    unsigned n_files;
    struct fio_thread **thread;
    unsigned n_threads;
    struct fio
        *first; /* of the programs with job files, which begin together: this one or before it */
    /* running */
    unsigned n_all_threads, n_all_ready; /* of the first: the sums over all */
    struct k_wait_queue turn_wait; /* jobs open one after the other; groups wait for each other */
    bool opening, failed;
    unsigned n_ready; /* threads whose files are filled */
    unsigned n_full;  /* jobs that have filled their queues */
    sim_time full_ps; /* when the last of them had */
    unsigned n_done, n_closed;
    /* measured */
    double *sample_ps;   /* latencies one by one: medians are compared to a few ns */
    uint32_t *sample_of; /* of a job file: whose they are, fio_sample_of() */
    uint64_t n_samples, room;
    double bytes;
    uint64_t n_of[FIO_DIRECTIONS], n_errors;
    sim_time begin_ps;          /* of the measurement */
    sim_time first_ps, last_ps; /* the first submission and the last completion of these */
};

static inline struct kernel *fio_kernel(const struct fio_thread *thread)
{
    return thread->fio->host->kernel;
}
static inline const struct fio_engine_ops *fio_engine(const struct fio_thread *thread)
{
    return thread->job.device->engine;
}
/* Whose a latency is: of the description's job, in that direction. */
static inline uint32_t fio_sample_of(unsigned description, unsigned direction)
{
    return description * FIO_DIRECTIONS + direction;
}
/* When runtime is over. */
static inline uint64_t fio_end_ps(const struct fio_thread *thread)
{
    const uint64_t runtime_ps = thread->options->runtime_ps;
    return runtime_ps != 0 ? thread->counts_from_ps + runtime_ps : UINT64_MAX;
}
/* The job makes no more requests. */
static inline bool fio_stops(const struct fio_thread *thread)
{
    const struct fio *fio = thread->fio;
    return fio->failed || thread->stopped || program_ending(fio->program);
}

/* ---- Requests (fio_io.c), all [thread] ------------------------------------------------------- */

/* Submit one request: any block, by the settings; the next by the options, when its rate allows;
 * the next step of the trace, when it is time; this one. Those that wait do so until runtime is
 * over, and submit nothing then. */
void fio_io_plain(struct fio_thread *thread);
void fio_io_next(struct fio_thread *thread);
void fio_io_replay(struct fio_thread *thread);
void fio_io_issue(struct fio_thread *thread, unsigned direction, uint64_t at, uint64_t bytes);
/* Takes completions as the iodepth_batch settings say, while requests are under way. */
void fio_io_take(struct fio_thread *thread);
/* Until nothing is under way. */
void fio_io_quiesce(struct fio_thread *thread);
/* fsync() of a raw device without a volatile cache. */
void fio_io_flush(struct fio_thread *thread);
/* Until this time, or another job ends this one (exitall). */
void fio_sleep_until(struct fio_thread *thread, uint64_t until_ps);
/* thinktime, if it is time for it. */
void fio_io_pause(struct fio_thread *thread);

/* Makes the kernel's threads; they begin at once. */
void fio_run_start(struct fio *fio);
/* Fails the run, once; the jobs end. */
void fio_fail(struct fio *fio, const char *what, int status);
/* A request has ended as it should and counts in the program's metrics. */
void fio_measured(struct fio_thread *thread, const struct fio_io_u *io_u);

/* ---- What is to run (fio_setup.c) ------------------------------------------------------------ */

/* From the settings, or from a job file: jobs, files, devices; mistakes go to errors. */
void fio_setup(struct fio *fio, struct sim_error_list *errors);
void fio_setup_release(struct fio *fio);

/* ---- Metrics (fio_record.c) ------------------------------------------------------------------ */

extern const struct record_desc fio_records[];
extern const struct program_rate fio_rates[];
/* Of a job file: with those of its jobs, by their names. */
void fio_records_make(struct fio *fio);
void fio_record(struct program *program, sim_time duration_ps);
/* A job's statistics with their time: within the measurement, after ramp_time, until the job's end.
 * The latencies stay the job's. */
struct fio_stats fio_stats_of(const struct fio_thread *thread);

/* ---- Reports (fio_json.c) -------------------------------------------------------------------- */

/* Writes json_output, as fio --output-format=json would. False: *error (g_free()) says why not. */
bool fio_json_write(const struct fio *fio, char **error);

#endif
