/* What jobs are expected to take, from runs of their scenarios that the database has. */
#ifndef CLI_CAMPAIGN_HISTORY_H
#define CLI_CAMPAIGN_HISTORY_H

#include "cli/campaign/plan.h"

/* Fills in expected_s and expected_bytes of the jobs that wait: those of their point, else the mean
 * (of memory the most) over the scenario's points; nothing of a scenario that has never run. */
void history_expect(struct plan *plan, struct results_db *db);

#endif
