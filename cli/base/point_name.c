/* The axes and values of a point, out of its name. */
#define _GNU_SOURCE /* strverscmp(): [2] before [10] */
#include <glib.h>
#include <string.h>

#include "cli/base/point_name.h"
#include "sim/config/filter.h"
#include "sim/config/param.h"

/* A word with "=" begins the next pair; one without belongs to the value before it. */
char **point_split(const char *point)
{
    GPtrArray *split = g_ptr_array_new();
    g_auto(GStrv) words = g_strsplit(point, " ", -1);
    for (char **word = words; *word != NULL; word++) {
        const char *equals = strchr(*word, '=');
        if (equals != NULL) {
            g_ptr_array_add(split, g_strndup(*word, (gsize)(equals - *word)));
            g_ptr_array_add(split, g_strdup(equals + 1));
        } else if (split->len > 0) {
            char *longer = g_strconcat(split->pdata[split->len - 1], " ", *word, NULL);
            g_free(split->pdata[split->len - 1]);
            split->pdata[split->len - 1] = longer;
        }
    }
    g_ptr_array_add(split, NULL);
    return (char **)g_ptr_array_free(split, FALSE);
}

int point_value_compare(const char *axis, const char *a, const char *b)
{
    const struct unit *plain = param_unit_in_name(axis);
    enum unit_dimension dimension;
    double x, y;
    const bool a_number = filter_number(a, plain, &x, &dimension);
    const bool b_number = filter_number(b, plain, &y, &dimension);
    if (a_number != b_number)
        return a_number ? -1 : 1;
    if (a_number && x < y)
        return -1;
    if (a_number && x > y)
        return 1;
    return strverscmp(a, b);
}
