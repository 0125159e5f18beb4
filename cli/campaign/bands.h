/* Values that nothing constrains but the range of their source: what comes out at its ends. */
#ifndef CLI_CAMPAIGN_BANDS_H
#define CLI_CAMPAIGN_BANDS_H

#include "cli/campaign/plan.h"

/* Adds to the plan, for each of its points and each value with a range (config_each_band()), the
 * point with the value at the lower and at the higher end. A value that several hosts or devices
 * have alike moves in all of them at a time. sets: of the command line; may be NULL. False with
 * mistakes in errors, or if no point has such a value, which is one but in a part of a campaign. */
bool bands_plan(struct plan *plan, const struct cli_options *options, const char *const *sets,
                bool is_part, struct sim_error_list *errors);
/* Prints, of each point and metric that its scenario plots, the value, the lowest and the highest,
 * and at which ends these come out. */
void bands_print(const struct plan *plan, struct results_db *db);

#endif
