/* Runs gnuplot. */
#ifndef CLI_PLOT_PLOT_GNUPLOT_H
#define CLI_PLOT_PLOT_GNUPLOT_H

/* What gnuplot prints when it runs the script, g_free(); NULL with the reason on standard error. */
char *plot_gnuplot(const char *script);

#endif
