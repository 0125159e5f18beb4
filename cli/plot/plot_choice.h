/* Which of a scenario's metrics are shown where nothing is asked for. */
#ifndef CLI_PLOT_PLOT_CHOICE_H
#define CLI_PLOT_PLOT_CHOICE_H

#include "cli/results/result_set.h"

/* Keeps the metrics that the scenario plots, in all panels; of one that plots none, or NULL, the
 * first few that are not of a part ("server.s0.dram_read_bytes"). */
void plot_keep_metrics(struct result_set *set, struct scenario *scenario);

#endif
