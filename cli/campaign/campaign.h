/* Running what is planned: workers run, this process alone writes the database. */
#ifndef CLI_CAMPAIGN_CAMPAIGN_H
#define CLI_CAMPAIGN_CAMPAIGN_H

#include "cli/campaign/until.h"
#include "cli/campaign/worker.h"

struct campaign {
    struct plan *plan;
    struct results_db *db;
    unsigned n_workers;
    bool quiet, force;
    unsigned progress_s; /* off a terminal a line of progress every so often; 0: one for each run */
    const char *command_line;
    uint64_t first_seed;
    unsigned n_seeds;          /* with `until` at most so many */
    const struct until *until; /* NULL: all of them */
    uint64_t memory_bytes;     /* what runs may need together; 0: as much as is free now */
    struct worker_limits limits;
};

/* From now on until campaign_run() has taken over, what stops the command is answered with a line
 * that nothing is lost, and how to begin again. */
void campaign_expect_stop(const char *command_line);

/* Makes the jobs and runs those that the database does not have. CLI_DONE; CLI_FAILED if a run
 * failed or the database refused one (said then); CLI_INTERRUPTED. */
int campaign_run(const struct campaign *campaign);

#endif
