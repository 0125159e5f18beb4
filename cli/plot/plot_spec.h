/* The group `plot` of a scenario: what its figure shows. docs/commands.md is the manual. */
#ifndef CLI_PLOT_PLOT_SPEC_H
#define CLI_PLOT_PLOT_SPEC_H

#include <glib.h>

#include "sim/config/scenario.h"

enum plot_kind {
    PLOT_LINES,
    PLOT_BARS,
    PLOT_STACK,
    PLOT_SERIES,
    PLOT_CDF,
    PLOT_HISTOGRAM,
    PLOT_BOX
};

/* How far the whiskers of PLOT_BOX reach: to the last sample within 1.5 interquartile ranges of the
 * box, or to the lowest and the highest. */
enum plot_whiskers { PLOT_WHISKERS_IQR, PLOT_WHISKERS_MINMAX };

/* A published curve: x,y rows in a file below a scenarios root. */
struct plot_measured {
    const char *series; /* whose colour it takes: "op=read"; "" if there is one curve */
    const char *file;   /* as written */
    const char *label;
    struct config_node *node; /* for messages */
};

/* What a curve is called instead of a name of the scenario. */
struct plot_label {
    const char *of; /* a value of an axis, "config=local", or a metric */
    const char *label;
    struct config_node *node; /* for messages */
};

/* One panel of a figure. All strings but those said to be owned belong to the scenario's
 * configuration. */
struct plot_spec {
    struct config_node *group; /* where it is written, for messages */
    int kind;                  /* enum plot_kind */
    int whiskers;              /* enum plot_whiskers */
    const char *title, *x, *x_label, *x_unit, *y_label, *y_unit, *key, *filter, *ratio_labels;
    uint32_t log_x, log_y;             /* the base; 0: linear */
    double x_min, x_max, y_min, y_max; /* NAN: as the values ask for */
    /* const char *: y, or `metric` of what is sampled; PLOT_STACK: the prefix of the parts */
    GPtrArray *metrics;
    GPtrArray *metric_nodes; /* struct config_node *, of each of them, for messages */
    struct config_node *x_node, *x_unit_node, *y_unit_node; /* NULL: not written */
    GPtrArray *series; /* const char *: the axes that tell the curves apart */
    GArray *measured;  /* struct plot_measured */
    GArray *labels;    /* struct plot_label */
    bool normalised;   /* values of PLOT_LINES relative to the first of their curve */
    bool slowdown;     /* of what is relative: the reference over the value */
    /* const char *: values of PLOT_LINES and PLOT_BARS relative to those of that curve at the same
     * x, by its name as of plot_series_name(), or to their own curve's value at one x,
     * "<x>=<value>"; one for all metrics, or one for each; none: as they are */
    GPtrArray *relative_to;
    bool *shown; /* of each point of the scenario: it matches the filter; owned */
    /* Labels at the points of the first of two curves: its value over that of the second, by name
     * as of plot_series_name(); NULL: none; owned. */
    char *ratio_of, *ratio_to;
};

struct plot_figure {
    const char *title;
    GPtrArray *panels; /* struct plot_spec *, owned; one unless there are `panels` */
};

/* False if the scenario has no plot, or mistakes in it, which are then in errors. */
bool plot_figure_read(struct scenario *scenario, struct plot_figure *figure,
                      struct sim_error_list *errors);
/* Checks that the scenario's workload can record the metrics that the figure shows, and that each
 * measured curve belongs to a simulated one. Builds points until all names are found; skips points
 * that cannot be built without reporting them. */
void plot_figure_check(struct scenario *scenario, const struct plot_figure *figure,
                       struct sim_error_list *errors);
/* *factor turns values of the metric, as recorded in that unit, into what the panel's axis shows;
 * false with a mistake in errors, and a factor of 1, if that is something else. */
bool plot_check_unit(const struct plot_spec *spec, const char *metric, const char *recorded,
                     double *factor, struct sim_error_list *errors);
/* The axes, "memory, window", for whose values a curve of the panel has several points at one x;
 * NULL if there are none: x and series tell the points apart, or x is a metric. g_free(). */
char *plot_ambiguous_axes(const struct scenario *scenario, const struct plot_spec *spec);
/* A message about a metric that no point of the scenario can record, with the nearest name that one
 * can; NULL if the name is right, or points cannot be built. g_free(). */
char *plot_unknown_metric(struct scenario *scenario, const char *metric);
/* The same of one point: others need not be sound. */
char *plot_unknown_metric_at(struct scenario *scenario, size_t point, const char *metric);
void plot_figure_release(struct plot_figure *figure);
/* Whether a panel shows that metric, along x or y. */
bool plot_figure_shows(const struct plot_figure *figure, const char *metric);

/* Bars stand over categories, everything else is a curve over numbers. */
static inline bool plot_is_bars(const struct plot_spec *spec)
{
    return spec->kind == PLOT_BARS || spec->kind == PLOT_STACK;
}

/* Out of what a run recorded besides its metrics: over time, or as a distribution. */
static inline bool plot_is_sampled(const struct plot_spec *spec)
{
    return spec->kind >= PLOT_SERIES;
}

/* Values are ratios to others. */
static inline bool plot_is_relative(const struct plot_spec *spec)
{
    return (spec->kind == PLOT_LINES || spec->kind == PLOT_BARS) &&
           (spec->normalised || spec->relative_to->len > 0);
}

/* Values stand along y, beside each other or by their share. */
static inline bool plot_is_distribution(const struct plot_spec *spec)
{
    return spec->kind == PLOT_HISTOGRAM || spec->kind == PLOT_BOX;
}

/* Whether a part of relative_to names a place along x, not a curve. */
bool plot_is_own_reference(const struct plot_spec *spec, const char *relative_to);
/* The label of "config=local", or of a metric; NULL if it has none. */
const char *plot_label_of(const struct plot_spec *spec, const char *of);
/* The value of an axis at a point, NULL if there is no such axis. */
const char *plot_axis_value(const struct scenario *scenario, size_t point, const char *axis);
/* "op=read transfer_bytes=64": the values of the series' axes at a point; g_free(). */
char *plot_series_name(const struct plot_spec *spec, const struct scenario *scenario, size_t point);

#endif
