/*
 * A scenario file: the base configuration and its axes. A point is one combination of axis values;
 * a run is a point and a seed. docs/scenario-files.md is the manual.
 *
 * Precedence: a value of the file < `set` in the file < an axis value, `where` < --set. A --set of
 * a setting that an axis names is a mistake, of one that a variant takes from an "@FILE" it is not;
 * `--set axes.NAME=a,b` replaces the values of that axis (of an axis with variants: chooses among
 * them). "@FILE" in `set` or as a --set stands for all settings of a file, each of which replaces
 * what is there, groups aside.
 */
#ifndef SIM_CONFIG_SCENARIO_H
#define SIM_CONFIG_SCENARIO_H

#include "sim/config/config.h"
#include "sim/config/filter.h"

struct scenario;

/*
 * name_or_path: "pcie_bench/latency_size" below one of the roots, with or without ".cfg", or a
 * file. roots and sets ("path=value" or "@FILE") are NULL-terminated, sets may be NULL. Includes
 * are searched in the root that holds the file, then in the other roots.
 *
 * NULL with messages if the file cannot be found, read or parsed. Other mistakes are in errors and
 * the scenario is returned, so that what the builder finds can be reported with them.
 */
struct scenario *scenario_load(const char *name_or_path, const char *const *roots,
                               const char *const *sets, struct sim_error_list *errors);
/* The `sets` that it was loaded with; NULL: none. */
const char *const *scenario_sets(const struct scenario *scenario);
/* Loads it once more, with these. NULL with messages, as scenario_load(). */
struct scenario *scenario_with_sets(const struct scenario *scenario, const char *const *sets,
                                    struct sim_error_list *errors);
/* Names, title, axes and points alone: the platforms that `set` and variants name ("@FILE") are not
 * read unless they mention any of these, nor are mistakes in them. scenario_point() and
 * scenario_digest() are not for it. */
struct scenario *scenario_load_outline(const char *name_or_path, const char *const *roots,
                                       struct sim_error_list *errors);
void scenario_free(struct scenario *scenario);
/* Sets measure.precision_ratio to `text` in all points: they may end once what they measure is
 * known. Nothing changes in a scenario that sets it itself, or that measures a number of
 * transactions (measure.transactions). No change that scenario_changes() tells. */
void scenario_sample(struct scenario *scenario, const char *text, struct sim_error_list *errors);

/* "pcie_bench/latency_size": below its root without the ending; of a file elsewhere its base. */
const char *scenario_name(const struct scenario *scenario);
const char *scenario_path(const struct scenario *scenario);  /* of the file */
const char *scenario_title(const struct scenario *scenario); /* "" if it has none */
const char *scenario_text(const struct scenario *scenario);  /* "" if it has none */
/* What --set has changed of what is simulated, "a.b=1; @fit.cfg"; "" without. Values of axes, which
 * stand in the names of points, and `plot` do not count. */
const char *scenario_changes(const struct scenario *scenario);
/* Digests of what the file says of the point, without --set: "file:1a2b3c4d memory=local:5e6f7a8b",
 * the second of a variant; then " where:9c0d1e2f" for each `where` that holds. What does not change
 * what is simulated (title, plot, values of axes) does not count. g_free(). */
char *scenario_digest(const struct scenario *scenario, size_t point);
/* False for a file outside of the scenarios folders, of which others may have the same name. */
bool scenario_has_root(const struct scenario *scenario);
/* The file with `set` and --set applied, without axis values: for `plot`. */
struct config *scenario_base(struct scenario *scenario);

/* ---- Points: the first axis of the file varies slowest --------------------------------------- */
/* 1 without axes. */
size_t scenario_n_points(const struct scenario *scenario);
/* The axes sorted by name, "memory=local transfer_bytes=64"; "" without axes. */
const char *scenario_point_name(const struct scenario *scenario, size_t point);
/* The point of that name; scenario_n_points() if there is none. */
size_t scenario_point_find(const struct scenario *scenario, const char *name);
/* The index of the axis' value at the point. */
size_t scenario_point_value(const struct scenario *scenario, size_t point, size_t axis);
/* Whether the point is in the fast subset: for each axis that `quick` names, one of the values that
 * it names. All points are without `quick`. */
bool scenario_point_is_quick(const struct scenario *scenario, size_t point);
/* Whether the scenario has `quick`. */
bool scenario_has_quick(const struct scenario *scenario);
/* A copy of the base with the point's axis values. Of its settings only those that describe no part
 * of the simulated system (title, text, axes, plot, set, quick, constraints, where) are marked as
 * read. The caller frees it. NULL with messages if an axis value cannot be set. */
struct config *scenario_point(struct scenario *scenario, size_t point,
                              struct sim_error_list *errors);

/* ---- Axes, in the order of the file ---------------------------------------------------------- */
size_t scenario_n_axes(const struct scenario *scenario);
const char *scenario_axis_name(const struct scenario *scenario, size_t axis);
/* scenario_n_axes() if there is none of that name. */
size_t scenario_axis_find(const struct scenario *scenario, const char *name);
size_t scenario_axis_n_values(const struct scenario *scenario, size_t axis);
/* The axis with which this one advances in lock-step (`with` in the file); its own index if
 * none. */
size_t scenario_axis_leader(const struct scenario *scenario, size_t axis);
/* As in a point's name: "64", "read", the name of a variant. */
const char *scenario_axis_value(const struct scenario *scenario, size_t axis, size_t value);

/* The points for filter_fault() and filter_apply(); valid as long as the scenario. */
struct filter_table scenario_table(const struct scenario *scenario);
/* Likewise, for filter_fault() alone, with the values that an axis had before --set replaced them:
 * for a filter in the file, which knows of no --set. */
struct filter_table scenario_file_table(const struct scenario *scenario);

/* ---- What there is --------------------------------------------------------------------------- */
/* The names of all scenarios below a root, sorted, NULL-terminated; g_strfreev(). The folders
 * families/, platforms/ and devices/ hold parts for @include, templates/ what `nudma init` writes,
 * claims.cfg holds claims and whatif.cfg what-ifs: no scenarios. */
char **scenario_list(const char *root);

#endif
