/* Runs the programs that draw. */
#ifndef CLI_BASE_SCRIPT_H
#define CLI_BASE_SCRIPT_H

/* What gnuplot prints when it runs the script, g_free(); NULL with the reason on standard error. */
char *script_gnuplot(const char *script);
/* The SVG that Graphviz's dot makes of the graph, likewise. */
char *script_dot(const char *graph);

#endif
