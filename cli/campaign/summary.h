/* The table of a scenario's points and main metrics, from the database. */
#ifndef CLI_CAMPAIGN_SUMMARY_H
#define CLI_CAMPAIGN_SUMMARY_H

#include "cli/campaign/plan.h"

/* all: every metric, not only those that the scenario plots */
void summary_print(const struct plan *plan, struct results_db *db, bool all);

#endif
