/* Runs the programs that draw. */
#ifndef CLI_BASE_SCRIPT_H
#define CLI_BASE_SCRIPT_H

/* What gnuplot prints when it runs the script, g_free(); NULL with the reason on standard error. */
char *script_gnuplot(const char *script);
/* The SVG that Graphviz's dot makes of the graph, likewise. */
char *script_dot(const char *graph);

/* An empty temporary file that has no name any more, so that nothing of it is left however the
 * program ends; another process opens it by *path as long as it is open here. -1 with *message,
 * g_free(). */
int script_file(char **path, char **message);

#endif
