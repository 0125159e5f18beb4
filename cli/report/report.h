/* What the report_*.c files share: one page, written section by section. */
#ifndef CLI_REPORT_REPORT_H
#define CLI_REPORT_REPORT_H

#include "cli/base/html.h"
#include "cli/base/scenarios.h"
#include "cli/claims/claims.h"

/* A folder of scenarios. */
struct report_paper {
    char *name;                       /* "pcie_bench" */
    const struct claims_file *claims; /* NULL: none */
    GPtrArray *scenarios;             /* struct scenario, not owned */
    unsigned n_points;                /* with results */
};

struct report {
    const struct cli_options *options;
    struct results_db *db;
    GPtrArray *scenarios; /* struct scenario, owned */
    GPtrArray *claims;    /* struct claims_file, owned */
    GPtrArray *papers;    /* struct report_paper, owned */
    GString *html;
    unsigned n_pictures;  /* so far: their ids are numbered */
    bool drawing_failed;  /* gnuplot is missing, say; said so */
    bool topology_failed; /* dot is missing, likewise */
    struct sim_error_list errors;
};

/* report_figure.c: a scenario with its figure, claims, values and latency breakdown. */
void report_scenario(struct report *report, const struct report_paper *paper,
                     struct scenario *scenario);
/* The paper's claims that name none of the scenarios above. */
void report_other_claims(struct report *report, const struct report_paper *paper);
/* The anchor of a claim's row; g_free(). */
char *report_claim_anchor(const struct claim *claim);
char *report_scenario_anchor(const struct scenario *scenario);
/* Its title, with the paper and the figure that it shows; its name if it has none; g_free(). */
char *report_scenario_title(const struct report_paper *paper, const struct scenario *scenario);

/* report_setup.c: topologies, parameters, versions. */
void report_setup(struct report *report, const struct report_paper *paper);
void report_params(struct report *report, const struct report_paper *paper);
void report_versions(struct report *report);

/* report_style.c */
extern const char report_style[], report_script[];

/* The points of a scenario that have results. */
unsigned report_n_points(struct report *report, const struct scenario *scenario);
/* A region that scrolls by itself if it is wide; label says what it holds. Close with </div>. */
void report_wide(GString *html, const char *label);

#endif
