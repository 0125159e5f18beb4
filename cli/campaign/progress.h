/* How far a campaign is: one line that is rewritten on a terminal; elsewhere a line per run, or one
 * every so many seconds. */
#ifndef CLI_CAMPAIGN_PROGRESS_H
#define CLI_CAMPAIGN_PROGRESS_H

#include "cli/campaign/plan.h"

struct progress {
    const struct plan *plan;
    unsigned n_workers;
    bool quiet, on_terminal;
    int64_t period_us; /* elsewhere; 0: a line per run */
    int64_t begun_us, shown_us;
    double simulated_s; /* of the runs that have ended */
};

void progress_begin(struct progress *progress, const struct plan *plan, unsigned n_workers,
                    bool quiet, unsigned period_s);
/* Rewrites the line, at most a few times a second; elsewhere a new one, at most every period. */
void progress_show(struct progress *progress);
/* A run has ended. error: NULL if it is done; log: what its process printed. */
void progress_run(struct progress *progress, const struct plan_job *job, const char *error,
                  const char *log);
/* Takes the line away. */
void progress_end(struct progress *progress);
/* The same at the end: where runs have left no lines, their sum stays. */
void progress_sum(struct progress *progress);

#endif
