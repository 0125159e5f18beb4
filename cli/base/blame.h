/* Mistakes that a --set makes, where the message tells a line of a file. */
#ifndef CLI_BASE_BLAME_H
#define CLI_BASE_BLAME_H

#include <glib.h>

#include "sim/config/scenario.h"

/*
 * The point, checked as experiment_check() does; NULL with the mistakes in errors. One that is not
 * there without one of the scenario's --set has that for its place, "--set PATH=VALUE": models
 * report what two settings have to agree on at the group that both are in, or at a cable.
 */
struct config *cli_checked_point(struct scenario *scenario, size_t point,
                                 struct sim_error_list *errors);
/* Gives the point's mistakes such a place; errors has no others. `places` (of strings by message)
 * remembers which, for other points that have the same mistake. */
void cli_blame_sets(const struct scenario *scenario, size_t point, GHashTable *places,
                    struct sim_error_list *errors);
GHashTable *cli_places_new(void);

#endif
