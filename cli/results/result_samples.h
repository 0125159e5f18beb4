/* Distributions and series as nudma export writes them. */
#ifndef CLI_RESULTS_RESULT_SAMPLES_H
#define CLI_RESULTS_RESULT_SAMPLES_H

#include <stdio.h>

#include "cli/results/result_set.h"

struct result_samples {
    bool histograms, series;
    char **metrics; /* wildcards for their names; NULL: all */
};

/* Whether any of the wildcards matches; NULL: true. */
bool result_samples_choose(const char *name, char **patterns);
/* A name or wildcard that no histogram or series of the sets matches, or nothing at all to export,
 * is a mistake. False, too, if the database cannot be read. */
bool result_samples_check(const GPtrArray *sets, struct results_db *db,
                          const struct result_samples *samples, struct sim_error_list *errors);
/* A row for each bucket (over all seeds) or each sample (mean over the seeds), of one of the two
 * kinds. */
bool result_samples_csv(FILE *out, const GPtrArray *sets, struct results_db *db,
                        const struct result_samples *samples);
/* The members "histograms" and "series" of a point, as far as asked for. */
bool result_samples_json(FILE *out, const struct result_set *set, const struct result_point *point,
                         struct results_db *db, const struct result_samples *samples);

#endif
