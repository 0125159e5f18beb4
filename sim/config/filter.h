/*
 * Choosing points by the values of their axes: what `constraints`, `nudma run --filter` and
 * `nudma results --filter` take. "config=remote buffer_bytes>1024 || op=read,write": comparisons
 * (= != < <= > >=) that all have to hold, "&&" between them if one likes, alternatives after "||".
 *
 * - Values that are numbers, with or without a unit, compare as numbers, any others as texts.
 * - "=a,b" is one of several, "!=a,b" none of them; both take the wildcards * and ?.
 * - A value ends at a comma, an operator or the next comparison, so that "size>4 KiB op=read" needs
 *   no quotes; '"' and "'" quote.
 * - A comparison with an axis that does not exist never holds.
 *
 * The caller supplies axes and values: those of a scenario, or of the names of points in a
 * database.
 */
#ifndef SIM_CONFIG_FILTER_H
#define SIM_CONFIG_FILTER_H

#include "sim/config/unit.h"

struct filter;

/* Points as a table of indices: point p has on axis a the value number point_value(p, a). */
struct filter_table {
    const char *title; /* stands before a fault if there are several tables; not owned */
    /* True: an axis has no other values, so that a and b of "=a,b" both have to exist. False
     * (results may be incomplete): one of them has to, and none of "!=a,b". */
    bool complete;
    size_t n_axes, n_points;
    const void *context; /* of the functions below; not owned */
    const char *(*axis)(const void *context, size_t axis);
    /* The unit of plain numbers on this axis; NULL: none. */
    const struct unit *(*unit)(const void *context, size_t axis);
    /* The value of this index; NULL beyond the last. */
    const char *(*value)(const void *context, size_t axis, size_t value);
    /* The index of the point's value; SIZE_MAX if the point lacks the axis. */
    size_t (*point_value)(const void *context, size_t point, size_t axis);
};

/* NULL with what is wrong in *fault (caller g_free()s). */
struct filter *filter_parse(const char *text, char **fault);
void filter_free(struct filter *filter); /* NULL is fine */

/* NULL if for each comparison one of the tables has the axis, and values that can be compared so;
 * otherwise what is wrong, with the nearest name (caller g_free()s). */
char *filter_fault(const struct filter *filter, const struct filter_table *tables, size_t n_tables);
/* Clears selected[point] of all points that do not match. */
void filter_apply(const struct filter *filter, const struct filter_table *table, bool *selected);

/* A number in the base of its unit: "64KiB", "0x10", "1e3 ns"; without a unit in that of `plain`,
 * which may be NULL. False if the text is something else. */
bool filter_number(const char *text, const struct unit *plain, double *value,
                   enum unit_dimension *dimension);
/* Whether such numbers can be compared: plain ones beside a size are bytes, as in scenarios. */
bool filter_same_kind(enum unit_dimension a, enum unit_dimension b);

#endif
