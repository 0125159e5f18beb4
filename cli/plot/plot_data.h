/* The curves of a figure: simulated ones from the database, measured ones from files. */
#ifndef CLI_PLOT_PLOT_DATA_H
#define CLI_PLOT_PLOT_DATA_H

#include "cli/base/cli.h"
#include "cli/plot/plot_published.h"
#include "cli/plot/plot_spec.h"
#include "cli/plot/plot_unit.h"

struct plot_value {
    double x;       /* with categories: their index */
    double y, ci95; /* ci95 0: unknown */
    /* Over the variants of the point (nudma run --bands); of published values, their range; equal:
     * none. */
    double band_lo, band_hi;
    double ratio;          /* to the curve that the panel compares with; 0: no label */
    const char *published; /* what was published of the ratio, "1.25", ">1"; NULL: nothing */
};

/* Of a distribution. */
struct plot_box {
    double low, q1, median, q3, high; /* low, high: of the whiskers */
    double lowest, highest;
    double below_pct, above_pct; /* samples beyond the ends of the y axis */
};

struct plot_curve {
    char *label;        /* for the legend */
    char *series;       /* "op=read"; of measured ones as written */
    const char *metric; /* the panel's; NULL: measured, from a file */
    bool measured;
    bool by_ratio;             /* where simulated values would be if published ratios held */
    bool level;                /* one published value, for all x */
    double y_factor;           /* from the metric's unit to that along y, which values are in */
    unsigned color;            /* curves of one series share it */
    unsigned n_below, n_above; /* curves drawn before and after it that run where it runs */
    /* struct plot_value, ascending in x unless x is a metric. PLOT_BOX: the median at the number of
     * the curve. PLOT_HISTOGRAM: the outline, x: share in percent, y: value. From (0, lowest edge)
     * on, two for each bin, to (0, highest edge). */
    GArray *values;
    struct plot_box box; /* of PLOT_HISTOGRAM and PLOT_BOX */
};

/* Below a bar: "read 64", then "128", "1Ki", without what is as at the bar before. */
struct plot_tic {
    char *name;
    bool begins; /* more than the last axis' value stands there */
};

struct plot_data {
    char *x_name;                /* what stands below the x axis */
    const char *x_unit, *y_unit; /* the panel's, else those of what was recorded */
    GPtrArray *curves;           /* struct plot_curve, owned */
    char *common;     /* what all curves are of, "adce_4ch": in no label, but for the title; "":
                 * nothing */
    char *ratio_name; /* "local over remote": what ratios of claims are of; NULL: as ratio_labels */
    GPtrArray *categories; /* char *, owned: the values along x in order; empty: x is a number */
    GArray *tics;          /* struct plot_tic: of stacks the same as they stand below the bars */
    GStringChunk *strings; /* of units */
    double factor;         /* of a distribution: from the metric's unit to that shown */
    double y_lo, y_hi;     /* PLOT_HISTOGRAM, PLOT_BOX, or with shares_y: the ends of the y axis */
    bool shares_y;         /* with other panels of the figure */
};

/* published: drawn beside the results; NULL: nothing. False if there are no results, or with
 * mistakes in errors. */
bool plot_data_collect(struct scenario *scenario, const struct plot_spec *spec,
                       struct results_db *db, const struct cli_options *options,
                       const struct plot_published *published, struct plot_data *data,
                       struct sim_error_list *errors);
/* Prints one line to standard error that names the panels of `missing` (const struct plot_spec *),
 * which have no results in the database, and what makes them; nothing if there are none
 * (plot_check.c). */
void plot_data_say_missing(const struct scenario *scenario, const struct plot_figure *figure,
                           const GPtrArray *missing, const struct cli_options *options,
                           struct results_db *db);
void plot_data_release(struct plot_data *data);
/* Appends an empty curve; takes ownership of label and series. */
struct plot_curve *plot_curve_new(struct plot_data *data, char *label, char *series,
                                  const char *metric);
/* For the legend; g_free(). */
char *plot_curve_label(const struct plot_spec *spec, const char *series, const char *metric);
/* The title of a panel with what its curves have in common, "Latency (local)"; g_free(). */
char *plot_title_with_common(const char *title, const struct plot_data *data);
/* "op=read transfer_bytes=64" -> "read transfer_bytes=64": labels, values that say what they are
 * alone; g_free(). */
char *plot_short_series(const struct plot_spec *spec, const char *series);
/* A value of an axis as a name in words, "back_to_back" -> "back to back"; g_free(). */
char *plot_value_name(const char *value);
/* The same of a value along x, or its label; g_free(). */
char *plot_x_name(const struct plot_spec *spec, const char *value);
/* "throughput_gbit_s" -> "throughput", and *unit "Gbit/s" ("" if the name ends with none);
 * g_free(). */
char *plot_metric_words(const char *name, const char **unit);
/* The metric's label, or its name. */
const char *plot_metric_name(const struct plot_spec *spec, const char *metric);
/* Of PLOT_STACK: the sum of the parts at a category; whether a part is large enough anywhere to be
 * seen. */
double plot_stack_height(const struct plot_data *data, guint row);
bool plot_part_is_seen(const struct plot_data *data, const struct plot_curve *part);
/* Adds the curves of PLOT_SERIES and PLOT_CDF (plot_samples.c). */
void plot_samples_collect(struct scenario *scenario, const struct plot_spec *spec,
                          struct results_db *db, struct plot_data *data);
/* Adds the curves of PLOT_HISTOGRAM and PLOT_BOX (plot_distribution.c). */
void plot_distributions_collect(struct scenario *scenario, const struct plot_spec *spec,
                                struct results_db *db, struct plot_data *data);
/* What of the curve's samples the axis does not reach, at its upper or lower end: "0.6 % up to
 * 30.2"; NULL: none. g_free(). */
char *plot_beyond(const struct plot_curve *curve, bool above);
/* Bins of an outline: their number, and number i. */
guint plot_n_bins(const struct plot_curve *curve);
struct plot_bin {
    double lo, hi, share_pct;
};
struct plot_bin plot_bin(const struct plot_curve *curve, guint i);
/* Which quantile of the histogram the metric is: 0.99 for "latency_p99_ns" and "latency_ns"; 0 if
 * it is none. */
double plot_quantile_of(const char *metric, const char *histogram);
/* The curve's value at a category, or NULL. */
const struct plot_value *plot_data_at(const struct plot_curve *curve, guint category);

#endif
