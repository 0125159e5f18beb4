/*
 * What-ifs: questions about a change of a scenario, each with what physics or a specification says
 * must come of it. Both runs of a question, without and with the change, are points of a plan.
 * docs/whatif.md is the manual.
 */
#ifndef CLI_WHATIF_WHATIF_H
#define CLI_WHATIF_WHATIF_H

#include "cli/campaign/plan.h"

enum whatif_kind {
    WHATIF_RATIO,      /* changed / base */
    WHATIF_DIFFERENCE, /* changed - base, in the metric's unit */
    WHATIF_VALUE,      /* changed alone, in the metric's unit */
    WHATIF_REFUSED,    /* the change is a mistake, which is found before anything runs */
    WHATIF_FAILS,      /* the changed run fails */
    N_WHATIF_KINDS
};

enum whatif_verdict {
    WHATIF_AS_EXPECTED,
    WHATIF_NOW_AS_EXPECTED, /* marked as one that misses, and does not */
    WHATIF_UNEXPECTED,
    WHATIF_KNOWN, /* it is known that and why it misses */
    WHATIF_NO_DATA,
    N_WHATIF_VERDICTS
};

/* Its name beside scenarios. */
#define WHATIF_FILE     "whatif.cfg"
#define WHATIF_NO_POINT SIZE_MAX

/* Strings belong to the file's configuration unless said otherwise. */
struct whatif {
    const char *id, *text; /* the question */
    const char *scenario, *filter, *metric;
    GPtrArray *base, *change; /* char *, NULL-terminated: settings as --set takes them; owned */
    enum whatif_kind kind;
    double lo, hi;       /* what is expected, both included */
    const char *refusal; /* WHATIF_REFUSED: is part of a message */
    const char *because, *source;
    const char *misses;       /* why it is known not to come out; NULL */
    struct config_node *node; /* for messages */
    /* Set by whatif_plan(): of the plan; WHATIF_NO_POINT: is not run */
    size_t base_point, changed_point;
    char *message; /* of the mistake, or of a run that failed; owned; NULL: neither */
    /* Set by whatif_judge() */
    double base_value, changed_value, value; /* NAN: there is none */
    enum whatif_verdict verdict;
};

/* The what-ifs of one file. */
struct whatif_file {
    char *path;
    char *name;        /* "pcie_bench": its folder; the path if it is called otherwise */
    const char *title; /* "" if it has none */
    struct config *config;
    GArray *whatifs; /* struct whatif */
};

/* The files that the arguments name (a file, or a folder of scenarios that has a whatif.cfg), or
 * all whatif.cfg beside scenarios; struct whatif_file, owned. Mistakes go to errors. */
GPtrArray *whatif_load(const struct cli_options *options, char **arguments,
                       struct sim_error_list *errors);
struct whatif *whatif_at(const struct whatif_file *file, guint index);

/* All runs that the questions need, each once, checked; those with a change that is refused are not
 * among them. Mistakes go to errors. plan_free(). */
struct plan *whatif_plan(const struct cli_options *options, GPtrArray *files,
                         struct sim_error_list *errors);
/* Sets values, verdicts and messages of runs that failed by what the database has of the plan's
 * points. False with a message in errors if it cannot be read. */
bool whatif_judge(GPtrArray *files, const struct plan *plan, struct results_db *db,
                  struct sim_error_list *errors);

/* ---- The metric (whatif_metric.c) ------------------------------------------------------------ */
/* What is wrong with the expression, g_free(); NULL: nothing. Names are not looked up. */
char *whatif_metric_fault(const char *metric);
/* Whether a word of it is the name of a metric. */
bool whatif_word_is_metric(const char *word);
/* The expression as SQL over v(); g_free(). */
char *whatif_metric_sql(const char *metric, const char *scenario, const char *point);

/* ---- Texts ----------------------------------------------------------------------------------- */
const char *whatif_verdict_name(enum whatif_verdict verdict); /* "as expected", ... */
/* "ratio 0.49..0.51", "+950..+1050", "refused: lanes"; g_free(). */
char *whatif_expected_text(const struct whatif *whatif);
/* "32.1 to 16.0: 0.498", "refused"; g_free(). */
char *whatif_found_text(const struct whatif *whatif);
/* Why there is no value; g_free(). */
char *whatif_no_data_text(const struct whatif *whatif);

#endif
