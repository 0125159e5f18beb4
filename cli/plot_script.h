/* A figure as a script for gnuplot, or as text by itself. */
#ifndef CLI_PLOT_SCRIPT_H
#define CLI_PLOT_SCRIPT_H

#include "cli/plot_data.h"

enum plot_format { PLOT_TEXT, PLOT_PNG, PLOT_SVG, PLOT_GNUPLOT };

struct plot_output {
    enum plot_format format;
    const char *path; /* NULL: standard output */
    /* PLOT_TEXT: characters. PLOT_SVG: pixels of a small picture, as for a page; 0: as for a file.
     */
    int columns, rows;
};

/* The script; g_free(). */
char *plot_script(const struct plot_spec *spec, const struct plot_data *data,
                  const struct plot_output *output);
/* Bars lie down in text: a line each; gnuplot's own do not tell their series apart. */
void plot_text_bars(const struct plot_spec *spec, const struct plot_data *data, int columns,
                    FILE *out);

#endif
