/* What plot_data.c shares with plot_claims.c. */
#ifndef CLI_PLOT_PLOT_DATA_INTERNAL_H
#define CLI_PLOT_PLOT_DATA_INTERNAL_H

#include "cli/plot/plot_data.h"

/* Where text stands along x: the number, or the index of the category. False if it is neither. */
bool plot_data_to_x(const struct plot_data *data, const char *text, double *x);
/* Whether an axis of the scenario stands along x, not a metric. */
bool plot_has_x_axis(const struct scenario *scenario, const struct plot_spec *spec);
/* What the legend calls a published curve: `own`, or, if that is "", what suits the kind.
 * simulated: the curve that it belongs to, or NULL; g_free(). */
char *plot_measured_label(const struct plot_spec *spec, const char *own,
                          const struct plot_curve *simulated);
/* The simulated curve of that series and metric, or NULL. */
struct plot_curve *plot_simulated_curve(const struct plot_data *data, const char *series,
                                        const char *metric);
struct plot_value *plot_value_at(const struct plot_curve *curve, double x);
/* Sorts the values of a curve along x. */
void plot_sort_values(struct plot_curve *curve);
/* Adds what claims say of the panel's points: published values and ranges as curves, published
 * ratios beside simulated ones (plot_claims.c). */
void plot_claims_collect(const struct scenario *scenario, const struct plot_spec *spec,
                         const struct plot_published *published, struct plot_data *data);

#endif
