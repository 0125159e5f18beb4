/* What jobs are expected to take, from runs of their scenarios that the database has. */
#ifndef CLI_CAMPAIGN_HISTORY_H
#define CLI_CAMPAIGN_HISTORY_H

#include "cli/campaign/plan.h"

/* Sets expected_s and expected_bytes of the waiting jobs from runs of their point; else, over all
 * points of the scenario, to the mean duration and the largest memory. Leaves them at 0 if the
 * scenario has never run. */
void history_expect(struct plan *plan, struct results_db *db);

#endif
