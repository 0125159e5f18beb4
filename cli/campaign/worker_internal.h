/* What the worker*.c files share. */
#ifndef CLI_CAMPAIGN_WORKER_INTERNAL_H
#define CLI_CAMPAIGN_WORKER_INTERNAL_H

#include <glib.h>
#include <stdnoreturn.h>
#include <sys/types.h>
#include <unistd.h>

#include "cli/campaign/worker.h"

struct worker {
    pid_t pid; /* 0: none */
    bool busy; /* has a task */
    size_t job;
    int socket, log_fd; /* -1 once at its end */
    GByteArray *report;
    GString *log;
    int64_t started_us;
    uint64_t expected_bytes;
    uint64_t inherited_bytes; /* resident when it was made: shared with the parent */
    char *exceeded;           /* why it was ended, or NULL */
};

struct worker_pool {
    struct worker *workers;
    unsigned n_workers;
    struct worker_limits limits;
    worker_body_fn *body;
    worker_report_fn *report;
    void *context;
};

/* Resident memory beside what is not the run's own; that need not all be resident any more. */
static inline uint64_t worker_beside(uint64_t resident_bytes, uint64_t others_bytes)
{
    return resident_bytes - SIM_MIN(resident_bytes, others_bytes);
}

static inline void worker_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- worker_report.c: a report as bytes ------------------------------------------------------ */
/* All but what the parent knows by itself (log). leaves: the worker ends after it. */
GByteArray *worker_report_pack(const struct worker_report *report, bool leaves);
/* Whether the bytes that have come so far are a whole report, by the sizes that it begins with. */
bool worker_report_whole(const GByteArray *bytes);
/* False, with nothing to be freed in *report, if the bytes are no report. */
bool worker_report_unpack(const GByteArray *bytes, struct worker_report *report, bool *leaves);

/* worker_process.c: the life of a worker, in a child that has just been made; sockets[1] and
 * log_pipe[1] are its ends. */
noreturn void worker_process(struct worker_pool *pool, const int sockets[2], const int log_pipe[2],
                             pid_t parent);

#endif
