/* The curves of a figure: simulated ones from the database, measured ones from files. */
#ifndef CLI_PLOT_DATA_H
#define CLI_PLOT_DATA_H

#include "cli/cli.h"
#include "cli/plot_spec.h"

struct plot_value {
    double x;       /* with categories: their index */
    double y, ci95; /* ci95 0: unknown */
};

struct plot_curve {
    char *label;  /* for the legend */
    char *series; /* "op=read"; of measured ones as written */
    bool measured;
    unsigned color; /* curves of one series share it */
    GArray *values; /* struct plot_value, ascending in x unless x is a metric */
};

struct plot_data {
    char *x_name;          /* what stands below the x axis */
    GPtrArray *curves;     /* struct plot_curve, owned */
    GPtrArray *categories; /* char *, owned: the values along x in order; empty: x is a number */
};

/* False if there are no results (said so), or with mistakes in errors. */
bool plot_data_collect(struct scenario *scenario, const struct plot_spec *spec,
                       struct results_db *db, const struct cli_options *options,
                       struct plot_data *data, struct sim_error_list *errors);
void plot_data_release(struct plot_data *data);
/* The curve's value at a category, or NULL. */
const struct plot_value *plot_data_at(const struct plot_curve *curve, guint category);

#endif
