/*
 * Files of claims: published outcomes, what counts as reproduced, and how the results compare.
 * docs/claims.md is the manual.
 */
#ifndef CLI_CLAIMS_CLAIMS_H
#define CLI_CLAIMS_CLAIMS_H

#include "cli/base/scenarios.h"
#include "sim/config/config.h"

/* Its name beside scenarios. */
#define CLAIMS_FILE "claims.cfg"

enum claim_verdict {
    CLAIM_OK,
    CLAIM_NOW_HOLDS, /* marked as a known miss, and holds */
    CLAIM_MISS,
    CLAIM_KNOWN_MISS,
    CLAIM_NO_DATA,
    CLAIM_NO_SCENARIO, /* no data either: the scenario that it names is not there, and has no results */
    N_CLAIM_VERDICTS
};

/* How a claim's outcome came about; docs/claims.md has the rules. */
enum claim_kind {
    CLAIM_UNLABELLED, /* the file does not say */
    CLAIM_FITTED,
    CLAIM_INTERPOLATED,
    CLAIM_BY_CONSTRUCTION,
    CLAIM_PREDICTED,
    N_CLAIM_KINDS
};

/* Strings belong to the file's configuration. */
struct claim {
    const char *id, *expr, *published, *text;
    const char *misses; /* why it is known not to come out; NULL */
    char *scenario; /* the first that expr names, with which the claim stands; owned; NULL: none */
    bool baseline;  /* use "C": may be calibrated on; else "K": has to come out by itself */
    enum claim_kind kind;
    bool has_scenario; /* all scenarios that it names are there */
    double lo, hi;
    double published_lo, published_hi; /* NAN: what is published is no number */
    double value;                      /* simulated; NAN without data */
    enum claim_verdict verdict;
    unsigned n_variants, n_variants_hold; /* of results with --bands: 0 without */
    double band_lo, band_hi;              /* of the value and its variants */
    char *band_misses; /* "p2p_reads_max=16 (4.1)", where it does not hold; owned; NULL: nowhere */
    struct config_node *node; /* for messages */
};

struct claims_tally {
    unsigned n[N_CLAIM_VERDICTS];
    unsigned n_baselines, baselines_hold, n_predictions, predictions_hold;
    unsigned n_kind[N_CLAIM_KINDS], kind_holds[N_CLAIM_KINDS];
};

/* The claims of one paper: one file. */
struct claims_file {
    char *path;
    char *name;        /* "pcie_bench": its folder; the path if it is called otherwise */
    const char *title; /* "" if it has none */
    const char *paper; /* its short name, for titles of figures: "IOctopus"; "" if it has none */
    struct config *config;
    GArray *claims; /* struct claim */
};

/* What v(scenario, point, metric) in an expression names. */
struct claim_reference {
    char *scenario, *point, *metric;
};

/* The files that the arguments name (a file, a folder of scenarios that has one, or a scenario that
 * has one beside it), or all claims.cfg beside scenarios; struct claims_file, owned. Mistakes go to
 * errors. */
GPtrArray *claims_load(const struct cli_options *options, char **arguments,
                       struct sim_error_list *errors);
/* Adds those beside the scenarios, struct scenario *, that are not among them. */
void claims_load_beside(GPtrArray *files, const GPtrArray *scenarios,
                        struct sim_error_list *errors);
/* Sets value and verdict of every claim, or of those that stand with the scenario if it is not
 * NULL; invalid expressions go to errors. */
void claims_evaluate(GPtrArray *files, const char *scenario, struct results_db *db,
                     struct sim_error_list *errors);

/* After claims_evaluate(): the same for each variant of the claim's points that `nudma run --bands`
 * has stored; sets the band of every claim. */
void claims_evaluate_bands(GPtrArray *files, struct results_db *db, struct sim_error_list *errors);

/* Of a claim without data: which scenario, point or metric of its expression the database does not
 * know, with the nearest name (claim_missing.c); g_free(). NULL: all are known, or a run of a
 * scenario that is below the roots is missing. */
char *claim_missing_name(const struct claim *claim, const struct cli_options *options,
                         GHashTable *scenarios, struct results_db *db);
/* Of whatever point (claim_missing.c). */
bool claim_scenario_has_results(struct results_db *db, const char *scenario);
/* For claim_missing_name(), so that it loads each scenario once. */
GHashTable *claim_scenarios_new(void);

struct claim *claims_at(const struct claims_file *file, guint index);
/* The claim of that id in any of the files, or NULL. */
struct claim *claims_find(const GPtrArray *files, const char *id);
/* Adds the verdicts of the file's claims to the tally. */
void claims_count(const struct claims_file *file, struct claims_tally *tally);
unsigned claims_holding(const struct claims_tally *tally);
unsigned claims_total(const struct claims_tally *tally);
/* Those whose scenario is there. */
unsigned claims_covered(const struct claims_tally *tally);
/* "79 of 90 given claims hold, 86 covered (C: 6 of 6, K: 73 of 84); 7 known misses"; g_free(). */
char *claims_summary(const struct claims_tally *tally);
/* "fitted 3 of 3, interpolated 58 of 63, by construction 5 of 5, predicted 13 of 15": how many of
 * each kind hold; "" if no claim has a kind; g_free(). */
char *claims_kinds_summary(const struct claims_tally *tally);

bool claim_holds(const struct claim *claim);
const char *claim_verdict_name(enum claim_verdict verdict); /* "ok", "MISS", "known miss", ... */
const char *claim_kind_name(enum claim_kind kind);          /* "predicted"; "-": unlabelled */
/* The error of the simulated value in percent of the published one, or of the nearer end of the
 * published range (0 within it). NAN if either is missing. */
double claim_error_pct(const struct claim *claim);
/* "+1.4", "-"; buffer of 32, which is returned. */
const char *claim_error_text(const struct claim *claim, char buffer[32]);
/* The value to fit to: the published one, or the middle of the published range; without either, the
 * middle of lo and hi. */
double claim_target(const struct claim *claim);
/* Every v('...','...','...') of the expression, in order; struct claim_reference, owned. */
GArray *claim_references(const struct claim *claim);

#endif
