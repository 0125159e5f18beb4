/*
 * Which points of results are meant: "config=remote buffer_bytes>1024 || op=read,write". Conditions
 * on axes, all of which have to hold, alternatives after "||"; docs/commands.md is the manual.
 * Works on the names of points, as a database may be shown without its scenario files.
 */
#ifndef CLI_FILTER_H
#define CLI_FILTER_H

#include <glib.h>

#include "sim/error.h"

struct filter;

/* texts: NULL-terminated, may be NULL; all of them have to hold. Mistakes in errors; what is left
 * of the filter is returned all the same. */
struct filter *filter_new(char **texts, struct sim_error_list *errors);
void filter_free(struct filter *filter);
/* point: "op=read transfer_bytes=64". A point without the axis of a condition does not match. */
bool filter_matches(struct filter *filter, const char *point);
/* After every point has been asked for: a condition on an axis that none of them has, or none that
 * any point meets, is a mistake. */
void filter_check(const struct filter *filter, struct sim_error_list *errors);

/* The axes of a point and their values, in its order: "op", "read", "transfer_bytes", "64", NULL;
 * g_strfreev(). A value may have blanks in it. */
char **point_split(const char *point);
/* The order of two values of an axis: numbers and quantities by size, before all else; texts as a
 * reader sorts them, with the numbers in them by size. */
int point_value_compare(const char *axis, const char *a, const char *b);

#endif
