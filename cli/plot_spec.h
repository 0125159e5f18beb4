/* The group `plot` of a scenario: what its figure shows. docs/commands.md is the manual. */
#ifndef CLI_PLOT_SPEC_H
#define CLI_PLOT_SPEC_H

#include <glib.h>

#include "sim/scenario.h"

enum plot_kind { PLOT_LINES, PLOT_BARS, PLOT_STACK };

/* A published curve: x,y rows in a file below a scenarios root. */
struct plot_measured {
    const char *series; /* whose colour it takes: "op=read"; "" if there is one curve */
    const char *file;   /* as written */
    const char *label;
    struct config_node *node; /* for messages */
};

/* All strings belong to the scenario's configuration. */
struct plot_spec {
    int kind; /* enum plot_kind */
    const char *title, *x, *x_label, *x_unit, *y_label, *y_unit, *key;
    uint32_t log_x, log_y;             /* the base; 0: linear */
    double x_min, x_max, y_min, y_max; /* NAN: as the values ask for */
    GPtrArray *metrics;      /* const char *: y; PLOT_STACK: one, the prefix of the parts */
    GPtrArray *metric_nodes; /* struct config_node *, of each of them, for messages */
    struct config_node *x_node;
    GPtrArray *series; /* const char *: the axes that tell the curves apart */
    GArray *measured;  /* struct plot_measured */
};

/* False if the scenario has no plot, or mistakes in it, which are then in errors. */
bool plot_spec_read(struct scenario *scenario, struct plot_spec *spec,
                    struct sim_error_list *errors);
/* Whether the scenario's workload may record what the figure shows, and x, if it is no axis, and
 * whether measured curves belong to one of those simulated. Builds
 * points until all names are found. Points that cannot be built are for others to complain about.
 */
void plot_spec_check(struct scenario *scenario, const struct plot_spec *spec,
                     struct sim_error_list *errors);
void plot_spec_release(struct plot_spec *spec);

/* The value of an axis at a point, NULL if there is no such axis. */
const char *plot_axis_value(const struct scenario *scenario, size_t point, const char *axis);
/* "op=read transfer_bytes=64": the values of the series' axes at a point; g_free(). */
char *plot_series_name(const struct plot_spec *spec, const struct scenario *scenario, size_t point);

#endif
