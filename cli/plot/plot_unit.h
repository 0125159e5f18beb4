/* Units of figures: what a metric's unit can be shown in. */
#ifndef CLI_PLOT_PLOT_UNIT_H
#define CLI_PLOT_PLOT_UNIT_H

#include <stdbool.h>

/* *factor turns values in `from`, the unit of a metric, into values in `to`, that of an axis. False
 * if they are of different kinds. Where `to` says no more than a label does, it is 1: "", or what
 * things that have no unit are called. */
bool plot_unit_factor(const char *from, const char *to, double *factor);
/* The units that `from` can be shown in, NULL-terminated; g_strfreev(). */
char **plot_units_like(const char *from);

#endif
