/* Text tables: columns as wide as their widest cell; the last one is not padded. */
#include <stdarg.h>
#include <string.h>

#include "cli/cli.h"

struct column {
    char *title;
    bool right;
};

struct cli_table {
    GArray *columns;
    GPtrArray *cells;
};

static void clear_column(gpointer column)
{
    g_free(((struct column *)column)->title);
}

struct cli_table *cli_table_new(void)
{
    struct cli_table *table = g_new0(struct cli_table, 1);
    table->columns = g_array_new(FALSE, FALSE, sizeof(struct column));
    g_array_set_clear_func(table->columns, clear_column);
    table->cells = g_ptr_array_new_with_free_func(g_free);
    return table;
}

void cli_table_free(struct cli_table *table)
{
    g_array_free(table->columns, TRUE);
    g_ptr_array_free(table->cells, TRUE);
    g_free(table);
}

void cli_table_column(struct cli_table *table, const char *title, bool right)
{
    const struct column column = { g_strdup(title), right };
    SIM_ASSERT(table->cells->len == 0, "column %s after the first cell", title);
    g_array_append_val(table->columns, column);
}

void cli_table_cell(struct cli_table *table, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    g_ptr_array_add(table->cells, g_strdup_vprintf(fmt, args));
    va_end(args);
}

static int width_of(const char *text)
{
    return (int)g_utf8_strlen(text, -1);
}

static void append_cell(GString *line, const struct column *column, const char *text, int width)
{
    const int padding = width - width_of(text);
    if (column->right)
        g_string_append_printf(line, "%*s%s  ", padding, "", text);
    else
        g_string_append_printf(line, "%s%*s  ", text, padding, "");
}

static void print_line(GString *line, FILE *out)
{
    g_strchomp(line->str);
    fprintf(out, "%s\n", line->str);
    g_string_truncate(line, 0);
}

void cli_table_print(const struct cli_table *table, const char *indent, FILE *out)
{
    const guint n = table->columns->len;
    const struct column *columns = (const struct column *)(const void *)table->columns->data;
    GString *line = g_string_new(NULL);
    int *width = g_new0(int, n);
    for (guint i = 0; i < n; i++)
        width[i] = width_of(columns[i].title);
    for (guint i = 0; i < table->cells->len; i++)
        width[i % n] = MAX(width[i % n], width_of(table->cells->pdata[i]));
    g_string_append(line, indent);
    for (guint i = 0; i < n; i++)
        append_cell(line, &columns[i], columns[i].title, width[i]);
    print_line(line, out);
    for (guint i = 0; i < table->cells->len; i++) {
        g_string_append(line, i % n == 0 ? indent : "");
        append_cell(line, &columns[i % n], table->cells->pdata[i], width[i % n]);
        if (i % n == n - 1)
            print_line(line, out);
    }
    g_string_free(line, TRUE);
    g_free(width);
}

const char *cli_number(double value, char buffer[32])
{
    g_snprintf(buffer, 32, "%.6g", value);
    return buffer;
}
