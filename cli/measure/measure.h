/* What the command (cli/commands/measure.c) and measure_fit.c share. */
#ifndef CLI_MEASURE_MEASURE_H
#define CLI_MEASURE_MEASURE_H

#include "cli/base/cli.h"
#include "cli/measure/measurements.h"

struct measure {
    struct cli_options options;
    char **read;           /* files; NULL: print what to run */
    char *output, *claims; /* NULL: not asked for */
    char *command_line;
    const char *platform; /* as named */
    char *set_path;       /* a file without a name around the group of a host; NULL: none */
    int set_fd;           /* of it */
    char *sets[2];        /* "@PATH", for scenario_load() */
    int n_workers;
    struct measurements measurements;
};

/* The platform of the one argument; false with mistakes in errors. */
bool measure_find_platform(struct measure *measure, struct sim_error_list *errors);
/* Finds the settings at which the model shows what was measured, and prints and writes them. A
 * status for exit(). */
int measure_fit(struct measure *measure);

#endif
