/* Runs made with another text of a scenario than it has now. */
#ifndef CLI_RESULTS_RESULT_OLDER_H
#define CLI_RESULTS_RESULT_OLDER_H

#include "cli/results/result_set.h"

#define RESULT_NOTE_TEXT "note.text" /* parameter of runs: scenario_digest() */

/* The points (char *, owned) of which the newest runs were made with another text: than the
 * scenario has; without a scenario (NULL), than the newest of all of them. Points that do not say
 * are none. */
GPtrArray *result_older_points(struct results_db *db, const char *scenario_name,
                               struct scenario *scenario);
/* "2 of 8 points: memory=local transfer_bytes=64; memory=..."; NULL: none. g_free(). */
char *result_older(struct results_db *db, const char *scenario_name, struct scenario *scenario);
/* The same of the scenario of that name, if it can be found. */
char *result_older_by_name(struct results_db *db, const char *scenario_name, char **roots);

#endif
