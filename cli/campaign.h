/* Running what is planned: workers run, this process alone writes the database. */
#ifndef CLI_CAMPAIGN_H
#define CLI_CAMPAIGN_H

#include "cli/plan.h"

struct campaign {
    struct plan *plan;
    struct results_db *db;
    unsigned n_workers;
    bool quiet;
    const char *command_line;
};

/* CLI_DONE; CLI_FAILED if a run failed or the database refused one (said then); CLI_INTERRUPTED. */
int campaign_run(const struct campaign *campaign);

#endif
