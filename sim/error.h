/*
 * Mistakes in the input (scenario, command line, claims). All of them are collected, then printed
 * together; the command exits with status 2 and nothing has run.
 */
#ifndef SIM_ERROR_H
#define SIM_ERROR_H

#include "sim/types.h"

/* A list of messages. Zero-initialise; release with sim_error_release(). */
struct sim_error_list {
    char **message; /* each without a newline */
    size_t n_messages;
};

/* Adds one message; `file` may be NULL, `line` 0. Printed as "file:line: message". */
void sim_error_add(struct sim_error_list *errors, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void sim_error_release(struct sim_error_list *errors);

/* The nearest of `names` (NULL-terminated) to `found`, or NULL if none is near. For messages. */
const char *sim_nearest_name(const char *found, const char *const *names);

#endif
