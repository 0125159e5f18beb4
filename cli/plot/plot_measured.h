/* Files of measured curves: rows "x,y", below a scenarios folder or beside the scenario. */
#ifndef CLI_PLOT_PLOT_MEASURED_H
#define CLI_PLOT_PLOT_MEASURED_H

#include "cli/base/cli.h"
#include "cli/plot/plot_spec.h"

struct plot_row {
    char *x; /* owned by the array */
    double y;
    int line;
};

/* The rows of the file (struct plot_row), at least one; g_array_unref(). NULL with mistakes in
 * errors. *path: the file, g_free(). */
GArray *plot_measured_rows(const struct cli_options *options, const struct scenario *scenario,
                           const struct plot_measured *measured, char **path,
                           struct sim_error_list *errors);
/* Reads the measured files of all panels for their mistakes. */
void plot_measured_check(const struct cli_options *options, const struct scenario *scenario,
                         const struct plot_figure *figure, struct sim_error_list *errors);

#endif
