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

struct plot_panel {
    const struct plot_spec *spec;
    struct plot_data data;
};

/* The script; g_free(). Several panels stand side by side, below the title; not with PLOT_TEXT. */
char *plot_script(const char *title, const struct plot_panel *panels, guint n_panels,
                  const struct plot_output *output);
/* Bars lie down in text: a line each; gnuplot's own do not tell their series apart. */
void plot_text_bars(const char *title, const struct plot_panel *panel, int columns, FILE *out);

#endif
