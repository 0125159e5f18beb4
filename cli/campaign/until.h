/* --until: more seeds of a point, until the confidence interval of a metric is tight enough. */
#ifndef CLI_CAMPAIGN_UNTIL_H
#define CLI_CAMPAIGN_UNTIL_H

#include "cli/campaign/plan.h"

#define UNTIL_FIRST_SEEDS 3   /* before the first interval */
#define UNTIL_MOST_SEEDS  100 /* unless --seeds says so */

struct until {
    char *metric;
    double half_width; /* of the 95 % interval: a share of the mean, or in the metric's unit */
    bool is_share;
};

enum until_verdict { UNTIL_TIGHT, UNTIL_WIDE, UNTIL_NO_METRIC };

/* "latency_mean_ns 1%" or "latency_mean_ns 2.5"; false if the text is neither. */
bool until_parse(struct until *until, const char *text);
void until_release(struct until *until);
/* Judges the interval by Student's t over the newest finished runs of the point with the seeds
 * first_seed..+n_seeds-1. UNTIL_TIGHT if none is finished, since more seeds would not help. */
enum until_verdict until_judge(const struct until *until, struct results_db *db,
                               const struct plan_point *point, uint64_t first_seed,
                               unsigned n_seeds);

#endif
