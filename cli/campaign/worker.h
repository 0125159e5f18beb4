/*
 * Worker processes: each runs one job at a time and sends back what came of it, then waits for the
 * next. What a worker prints is kept and handed over with its report; a worker that crashes costs
 * its own job only, and is replaced. Workers die with their parent, and own nothing that could be
 * left half done.
 */
#ifndef CLI_CAMPAIGN_WORKER_H
#define CLI_CAMPAIGN_WORKER_H

#include "sim/store/results.h"

struct worker_pool;

/* The order to a worker. Workers may have been forked before the job was made, so that the body
 * finds what to run by point and seed alone. */
struct worker_task {
    size_t job; /* the number under which it is reported */
    size_t point;
    uint64_t seed;
    uint64_t expected_bytes; /* of memory, 0: unknown */
};

/* The outcome of a job. error is NULL if it is done; result may be NULL if it is not. */
struct worker_report {
    struct run_result *result; /* owned by the pool, like the strings: valid during the call */
    char *error;
    char *log; /* what it printed, of very much the beginning and the end; "" */
    sim_time sim_ps;
    uint64_t events, fingerprint;
    double wall_s;
    uint64_t peak_memory_bytes; /* resident, without what was there when the worker was made, and
                                   without kept memory that the run did not use */
};

/* A worker that exceeds a limit is ended; its error names the limit. 0: no limit. Looked at every
 * WORKER_WATCH_MS, and at the end. */
struct worker_limits {
    double timeout_s;
    uint64_t memory_bytes; /* resident, beside what was there when the worker was made */
    uint64_t all_bytes;    /* that all workers may need together: an eighth of it is kept by them */
};
#define WORKER_WATCH_MS 50

/* Runs in the worker: fills in result, error, sim_ps, events and fingerprint; g_malloc'ed strings.
 * context is what it was when the worker was made. */
typedef void worker_body_fn(void *context, const struct worker_task *task,
                            struct worker_report *report);
typedef void worker_report_fn(void *context, size_t job, const struct worker_report *report);

/* For such a body: runs config with the task's seed, unless it has mistakes, and fills in the
 * report. Takes config (NULL: there are mistakes) and releases errors. */
void worker_run(struct config *config, const struct worker_task *task,
                struct sim_error_list *errors, struct worker_report *report);

/* Workers are made as they are needed. context: of the body and of reports. */
struct worker_pool *worker_pool_new(unsigned max_workers, struct worker_limits limits,
                                    worker_body_fn *body, worker_report_fn *report, void *context);
/* Kills what still runs. */
void worker_pool_free(struct worker_pool *pool);

/* Workers that have a job. */
unsigned worker_pool_running(const struct worker_pool *pool);
bool worker_pool_full(const struct worker_pool *pool);
/* The sum over the running workers of what each was expected to need or holds now, whichever is
 * more. */
uint64_t worker_pool_memory_bytes(const struct worker_pool *pool);
/* Gives a task to an idle worker; the pool must not be full. False with errno set if no process
 * could be created. */
bool worker_start(struct worker_pool *pool, const struct worker_task *task);
/* Waits until workers have finished, and reports them; at most for timeout_ms. True only if a
 * signal is readable at signal_fd, which ends the wait. A worker is idle when it is reported: the
 * report function may give it the next job. */
bool worker_wait(struct worker_pool *pool, int signal_fd, int timeout_ms);

#endif
