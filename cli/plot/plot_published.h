/* What was published of the outcomes that a figure shows: the claims that stand with its
 * scenario. */
#ifndef CLI_PLOT_PLOT_PUBLISHED_H
#define CLI_PLOT_PLOT_PUBLISHED_H

#include "cli/claims/claims.h"

struct plot_published {
    GPtrArray *files;               /* struct claims_file, owned; NULL: those of another */
    const struct claims_file *file; /* NULL: there is none, or with mistakes */
    GPtrArray *claims;              /* struct claim *, evaluated; those of the scenario */
};

/* Reads the claims beside the scenario and holds them against the results. Mistakes in them are for
 * `nudma check`: there are then none. */
void plot_published_read(struct plot_published *published, const struct scenario *scenario,
                         const struct cli_options *options, struct results_db *db);
/* The same of a file whose claims have been evaluated, and which has to live longer; NULL: none. */
void plot_published_of(struct plot_published *published, const struct scenario *scenario,
                       const struct claims_file *file);
void plot_published_release(struct plot_published *published);

/* "2 of 3 published values hold: fig06.ratio 1.3, published 1.25 (1.2 to 1.3); ...", those that do
 * not hold first; what would make the text longer than `room` characters is counted at its end. ""
 * if nothing was published; g_free(). */
char *plot_published_text(const struct plot_published *published, size_t room);
/* "IOctopus, figure 6: Single-core TCP receive": the title, with the paper and what the scenario's
 * name says of the place in it; g_free(). */
char *plot_published_title(const struct plot_published *published, const struct scenario *scenario,
                           const char *title);

#endif
