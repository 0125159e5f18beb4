/*
 * The results of one scenario, with the axes of its points apart: what all commands show that show
 * values, as tables or as figures.
 */
#ifndef CLI_RESULTS_RESULT_SET_H
#define CLI_RESULTS_RESULT_SET_H

#include "cli/base/cli.h"
#include "sim/config/scenario.h"

struct result_value {
    double mean, ci95; /* ci95 NAN: unknown */
    int n;             /* seeds; 0: there is no value */
};

struct result_quantity {
    char *name, *unit;
};

struct result_point {
    char *name;                  /* "op=read transfer_bytes=64" */
    char **axis;                 /* values, one for each axis of the set; "" without */
    guint *rank;                 /* and the place of each in the order of that axis' values */
    struct result_value *values; /* one for each metric of the set */
    bool overtaken;              /* they are of an earlier run: a later one has failed */
    char *changes;               /* what --set has changed, "a.b=1"; NULL: nothing, or not known */
};

struct result_set {
    char *scenario;
    GPtrArray *axes;   /* char *, sorted, or as result_set_order_as() has them */
    GPtrArray *values; /* of each axis: a GPtrArray of char *, in the order of ranks */
    GArray *metrics;   /* struct result_quantity, in the order in which they were first stored */
    GPtrArray *points; /* struct result_point, sorted by the values of their axes */
    GHashTable *by_name;
};

/* A selection of results; each list is NULL-terminated or NULL. */
struct result_choice {
    char **scenarios; /* names, folders of them, wildcards; none: all */
    char **metrics;   /* wildcards; none: all */
    char **filters;   /* see sim/config/filter.h; all of them have to hold */
    /* Takes the scenarios chosen by name of which all runs have failed (char *, owned), sorted;
     * NULL: such a name is a mistake */
    GPtrArray *failed;
};

/*
 * The sets (struct result_set, owned) of the scenarios chosen, sorted by name, with the names of
 * their points and metrics but without values. A name or wildcard that matches nothing is a
 * mistake; the matches of the others are returned all the same. Of a database that cannot be read
 * (results_failed()) not all are there, and nothing that is missing is a mistake.
 */
GPtrArray *result_sets_find(struct results_db *db, const struct result_choice *choice,
                            struct sim_error_list *errors);
/* True if there are runs of the scenario and none of them is done. */
bool result_all_failed(struct results_db *db, const char *scenario);
/* The set of one scenario, without values; empty if it has no results. metrics: names, or
 * beginnings of names that end in a dot ("latency_part_ns."); NULL: all. */
struct result_set *result_set_of(struct results_db *db, const char *scenario,
                                 const char *const *metrics);
void result_set_free(struct result_set *set);
/* Makes the points exactly those named (NULL-terminated): removes others, adds those without
 * results. */
void result_set_keep_points(struct result_set *set, const char *const *names);
/* Sorts axes, their values and the points as the scenario's file has them. An axis keeps its order
 * if the file lacks one of its values. */
void result_set_order_as(struct result_set *set, const struct scenario *scenario);
/* Reads the values of set->metrics, from which the caller may have removed some, and whether points
 * are `overtaken`. False with the reason printed. */
bool result_set_read(struct result_set *set, struct results_db *db);
#define RESULT_NOTE_CHANGES "note.set"     /* parameters of runs: what --set has changed */
#define RESULT_NOTE_SAMPLED "note.sampled" /* what measure.precision_ratio has left out of a run */
#define RESULT_NOTE_FILE \
    "note.file" /* the file of a scenario outside of the scenarios
                                         * folders */
/* What --set has changed of the scenario's newest runs, "--set a.b=1, --set a.b=2; at some points
 * only"; NULL if nothing. g_free(). */
char *result_changes(struct results_db *db, const char *scenario);
/* Of which of the scenario's newest runs measure.precision_ratio has left out some of what the
 * scenario says: "12 of 33 points, to 1 %"; NULL: of none. g_free(). */
char *result_sampled(struct results_db *db, const char *scenario);
/* NULL if there is none. */
struct result_point *result_set_point(const struct result_set *set, const char *name);
/* The value of a metric, in any unit, at a point; NULL if there is none. */
const struct result_value *result_set_value(const struct result_set *set, const char *point,
                                            const char *metric);
/* -1 if there is none. */
int result_set_metric(const struct result_set *set, const char *name, const char *unit);
const struct result_quantity *result_metric(const struct result_set *set, guint index);
/* "latency_mean_ns [ns]"; g_free(). */
char *result_metric_title(const struct result_quantity *quantity);
/* "552.4 +-1.2" with two digits of the interval, as more mean nothing; "-" without a value.
 * g_free(). */
char *result_value_text(const struct result_value *value);
/* Likewise, of a metric of the point: "552.4 +-1.2 *" if that is overtaken. */
char *result_point_text(const struct result_point *point, guint metric);
/* What the mark says, for below a table. */
#define RESULT_OVERTAKEN_TEXT \
    "* of an earlier run: a later one has failed (nudma run, of the same settings, runs it again)"
/* True if the interval is known and more than a rounding error of the mean. */
bool result_value_has_interval(const struct result_value *value);

#endif
