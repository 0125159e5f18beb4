/* The axes and values of a point, out of its name: a database may be shown without its scenarios.
 */
#ifndef CLI_BASE_POINT_NAME_H
#define CLI_BASE_POINT_NAME_H

/* "op", "read", "transfer_bytes", "64", NULL of "op=read transfer_bytes=64"; g_strfreev(). A value
 * may have blanks in it. */
char **point_split(const char *point);
/* The order of two values of an axis: numbers and quantities by size, before all else; texts as a
 * reader sorts them, with the numbers in them by size. */
int point_value_compare(const char *axis, const char *a, const char *b);

#endif
