/*
 * Mistakes in the input (scenario, command line, claims). All of them are collected, then printed
 * together; the command exits with status 2 and nothing has run.
 */
#ifndef SIM_CONFIG_ERROR_H
#define SIM_CONFIG_ERROR_H

#include <stdio.h>

#include "sim/engine/types.h"

struct sim_error_place;

/* A list of messages. Zero-initialise; release with sim_error_release(). */
struct sim_error_list {
    char **message;                /* each without a newline */
    struct sim_error_place *place; /* of each; private */
    void *known;                   /* the messages, for finding them; private */
    size_t n_messages;
};

/* Adds one message; `file` may be NULL, `line` 0. Printed as "file:line: message". The same
 * message twice is kept once: the points of a scenario share most of their mistakes. Control
 * characters but newline and tab become question marks. */
void sim_error_add(struct sim_error_list *errors, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds all of `more`, which is released, as sim_error_add() would. True if there was any. */
bool sim_error_move(struct sim_error_list *errors, struct sim_error_list *more);
/* Appends the text to message i. */
void sim_error_append(struct sim_error_list *errors, size_t i, const char *text);
/* Message i without its place; of the list. */
const char *sim_error_text(const struct sim_error_list *errors, size_t i);
/* The mistake of message i is at `place`, and no line of a file: "place: message (file:line)". */
void sim_error_set_place(struct sim_error_list *errors, size_t i, const char *place);
void sim_error_release(struct sim_error_list *errors);
#define SIM_ERRORS_PRINTED 200
/* One message a line, by file and line, then in the order in which they were found; those of no
 * file are the last. Of more than SIM_ERRORS_PRINTED the rest is counted. */
void sim_error_print(const struct sim_error_list *errors, FILE *out);
/* All of them as one line, "; " between them; the caller g_free()s it. */
char *sim_error_join(const struct sim_error_list *errors);

/*
 * The nearest of `names` (NULL-terminated) to `found`, or NULL if none is near: the smallest number
 * of edits (insert, delete, replace, swap of neighbours), case aside, at most a third of the
 * longer name; failing that, a name that begins with `found` or with which `found` begins.
 */
const char *sim_nearest_name(const char *found, const char *const *names);

/* The end of a message: `did you mean "x"?`, or `expected one of "a", "b"` if nothing is near and
 * the names are few, or "", also where `found` is one of them. The caller g_free()s it. */
char *sim_suggestion(const char *found, const char *const *names);
/* Appends it to the last message of `errors`. */
void sim_error_suggest(struct sim_error_list *errors, const char *found, const char *const *names);

#endif
