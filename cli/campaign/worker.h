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

/* What a worker is told. */
struct worker_task {
    size_t job;              /* as which it is reported */
    size_t point;            /* what the body runs, for the body to understand: the worker may be */
    uint64_t seed;           /* older than what its parent knows of the job */
    uint64_t expected_bytes; /* of memory, 0: unknown */
};

/* What came of a job. error is NULL if it is done; result may be NULL if it is not. */
struct worker_report {
    struct run_result *result; /* owned by the pool, like the strings: valid during the call */
    char *error;
    char *log; /* what it printed, of very much the beginning and the end; "" */
    sim_time sim_ps;
    uint64_t events, fingerprint;
    double wall_s;
    uint64_t peak_memory_bytes; /* resident, of the process */
};

/* A worker that exceeds one is ended, and reported with what it exceeded as its error. 0: none. */
struct worker_limits {
    double timeout_s;
    uint64_t memory_bytes; /* resident; looked at every WORKER_WATCH_MS, and at the end */
};
#define WORKER_WATCH_MS 50

/* Runs in the worker: fills in result, error, sim_ps, events and fingerprint; g_malloc'ed strings.
 * context is what it was when the worker was made. */
typedef void worker_body_fn(void *context, const struct worker_task *task,
                            struct worker_report *report);
typedef void worker_report_fn(void *context, size_t job, const struct worker_report *report);

/* Workers are made as they are needed. context: of the body and of reports. */
struct worker_pool *worker_pool_new(unsigned max_workers, struct worker_limits limits,
                                    worker_body_fn *body, worker_report_fn *report, void *context);
/* Kills what still runs. */
void worker_pool_free(struct worker_pool *pool);

/* Workers that have a job. */
unsigned worker_pool_running(const struct worker_pool *pool);
bool worker_pool_full(const struct worker_pool *pool);
/* Of each worker that runs, what it was expected to need or holds now, whatever is more; summed. */
uint64_t worker_pool_memory_bytes(const struct worker_pool *pool);
/* Hands a task to a worker that has none; the pool is not full. False if no process could be made;
 * errno says why. */
bool worker_start(struct worker_pool *pool, const struct worker_task *task);
/* Waits until workers have finished, and reports them; until a signal is readable at signal_fd
 * (true is returned then, and only then); or for timeout_ms. A worker has no job any more when it
 * is reported, so that the report function can give it the next one before anything else. */
bool worker_wait(struct worker_pool *pool, int signal_fd, int timeout_ms);

#endif
