/* Text tables: columns as wide as their widest cell; on a terminal lines fit. */
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/base/cli.h"

struct column {
    char *title;
    bool right;
};

struct cli_table {
    GArray *columns;
    GPtrArray *cells;
    GByteArray *colours; /* enum cli_colour, of each cell */
};

static void clear_column(gpointer column)
{
    g_free(((struct column *)column)->title);
}

struct cli_table *cli_table_new(const char *columns)
{
    struct cli_table *table = g_new0(struct cli_table, 1);
    table->columns = g_array_new(FALSE, FALSE, sizeof(struct column));
    g_array_set_clear_func(table->columns, clear_column);
    table->cells = g_ptr_array_new_with_free_func(g_free);
    table->colours = g_byte_array_new();
    g_auto(GStrv) titles = g_strsplit(columns != NULL ? columns : "", "|", -1);
    for (char **title = titles; *title != NULL; title++)
        cli_table_column(table, *title + (**title == '>'), **title == '>');
    return table;
}

void cli_table_free(struct cli_table *table)
{
    g_array_free(table->columns, TRUE);
    g_ptr_array_free(table->cells, TRUE);
    g_byte_array_free(table->colours, TRUE);
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
    const guint8 plain = CLI_PLAIN;
    va_list args;
    va_start(args, fmt);
    g_byte_array_append(table->colours, &plain, 1);
    g_ptr_array_add(table->cells, g_strdup_vprintf(fmt, args));
    va_end(args);
}

void cli_table_colour(struct cli_table *table, enum cli_colour colour)
{
    SIM_ASSERT(table->colours->len > 0, "a colour before the first cell");
    table->colours->data[table->colours->len - 1] = (guint8)colour;
}

bool cli_is_terminal(int fd)
{
    return isatty(fd) && g_strcmp0(g_getenv("TERM"), "dumb") != 0;
}

bool cli_has_colours(void)
{
    const char *no_colour = g_getenv("NO_COLOR");
    return cli_is_terminal(STDOUT_FILENO) && (no_colour == NULL || *no_colour == '\0');
}

static int width_of(const char *text)
{
    return (int)g_utf8_strlen(text, -1);
}

/* ---- Lines that fit -------------------------------------------------------------------------- */

int cli_line_width(void)
{
    struct winsize size = { 0 };
    if (!isatty(STDOUT_FILENO))
        return 0;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void cli_wrap(GString *text, const char *words, int column, int line_width)
{
    g_auto(GStrv) list = g_strsplit(words, " ", -1);
    const int last_line =
        (int)(strrchr(text->str, '\n') != NULL ? strlen(strrchr(text->str, '\n') + 1) : text->len);
    int x = last_line;
    for (char **word = list; *word != NULL; word++) {
        const int space = word != list, n = width_of(*word);
        if (space && line_width > 0 && x + 1 + n > line_width) {
            g_string_append_printf(text, "\n%*s%s", column, "", *word);
            x = column + n;
        } else {
            g_string_append_printf(text, "%s%s", space ? " " : "", *word);
            x += space + n;
        }
    }
}

void cli_print_words(const char *words, int column)
{
    g_autoptr(GString) text = g_string_new(NULL);
    cli_wrap(text, words, column, cli_line_width());
    puts(text->str);
}

enum { CONTINUED = 4, NARROWEST = 24 };

void cli_print_line(FILE *out, const char *fmt, ...)
{
    g_autoptr(GString) text = g_string_new(NULL);
    va_list args;
    va_start(args, fmt);
    g_autofree char *line = g_strdup_vprintf(fmt, args);
    va_end(args);
    cli_wrap(text, line, CONTINUED, out == stdout ? cli_line_width() : 0);
    fprintf(out, "%s\n", text->str);
}

void cli_print_lines(const char *lines)
{
    g_auto(GStrv) list = g_strsplit(lines, "\n", -1);
    const int line_width = cli_line_width();
    for (char **line = list; *line != NULL && (line[1] != NULL || **line != '\0'); line++) {
        const int indent = (int)strspn(*line, " ");
        g_autoptr(GString) text = g_string_new_len(*line, indent);
        cli_wrap(text, *line + indent, indent + CONTINUED, line_width);
        puts(text->str);
    }
}

/* Where each column stands: below the first ones, further right, if the line is too narrow for all.
 * The last one, if it is text, needs no more than NARROWEST, since its words go on below. */
struct place {
    int x, width;
    bool new_line;
};

static struct place *place_columns(const struct cli_table *table, const char *indent,
                                   int line_width)
{
    const guint n = table->columns->len;
    struct place *place = g_new0(struct place, n + 1);
    for (guint i = 0; i < n; i++)
        place[i].width = width_of(g_array_index(table->columns, struct column, i).title);
    for (guint i = 0; i < table->cells->len; i++)
        place[i % n].width = MAX(place[i % n].width, width_of(table->cells->pdata[i]));
    int x = width_of(indent);
    for (guint i = 0; i < n; i++) {
        const bool text = i == n - 1 && !g_array_index(table->columns, struct column, i).right;
        const int needed = text ? MIN(place[i].width, NARROWEST) : place[i].width;
        if (i > 0 && line_width > 0 && x + needed > line_width) {
            place[i].new_line = true;
            x = width_of(indent) + CONTINUED;
        }
        place[i].x = x;
        x += place[i].width + 2;
    }
    return place;
}

bool cli_table_fits(const struct cli_table *table, const char *indent)
{
    g_autofree struct place *place = place_columns(table, indent, cli_line_width());
    bool fits = true;
    for (guint i = 0; i < table->columns->len; i++)
        fits = fits && !place[i].new_line;
    return fits;
}

/* Colours what stands in the line from `start` on. */
static void paint(GString *line, gsize start, enum cli_colour colour)
{
    static const char *const codes[] = {
        [CLI_PLAIN] = "", [CLI_RED] = "31", [CLI_GREEN] = "32", [CLI_YELLOW] = "33"
    };
    g_autofree char *begin = g_strdup_printf("\033[%sm", codes[colour]);
    if (colour == CLI_PLAIN || !cli_has_colours())
        return;
    g_string_insert(line, (gssize)start, begin);
    g_string_append(line, "\033[0m");
}

static void end_line(GString *line, FILE *out)
{
    g_auto(GStrv) lines = g_strsplit(line->str, "\n", -1);
    for (char **l = lines; *l != NULL; l++)
        fprintf(out, "%s\n", g_strchomp(*l));
    g_string_truncate(line, 0);
}

static void append_cell(GString *line, const struct column *column, const struct place *place,
                        const char *text, bool last, int line_width)
{
    const int padding = place->width - width_of(text);
    if (place->new_line)
        g_string_append_printf(line, "\n%*s", place->x, "");
    if (last && !column->right)
        cli_wrap(line, text, place->x, line_width);
    else if (column->right)
        g_string_append_printf(line, "%*s%s  ", padding, "", text);
    else
        g_string_append_printf(line, "%s%*s  ", text, padding, "");
}

void cli_table_print(const struct cli_table *table, const char *indent, FILE *out)
{
    const guint n = table->columns->len;
    const struct column *columns = (const struct column *)(const void *)table->columns->data;
    const int line_width = out == stdout ? cli_line_width() : 0;
    g_autofree struct place *place = place_columns(table, indent, line_width);
    g_autoptr(GString) line = g_string_new(indent);
    for (guint i = 0; i < n; i++)
        append_cell(line, &columns[i], &place[i], columns[i].title, i == n - 1, line_width);
    end_line(line, out);
    for (guint i = 0; i < table->cells->len; i++) {
        const guint column = i % n;
        g_string_append(line, column == 0 ? indent : "");
        const gsize start = line->len;
        append_cell(line, &columns[column], &place[column], table->cells->pdata[i], column == n - 1,
                    line_width);
        if (out == stdout)
            paint(line, start, table->colours->data[i]);
        if (column == n - 1)
            end_line(line, out);
    }
}

const char *cli_number(double value, char buffer[32])
{
    g_snprintf(buffer, 32, "%.6g", value);
    return buffer;
}

bool cli_is_number(const char *text)
{
    char *end = NULL;
    const bool begun = g_ascii_isdigit(text[*text == '-']);
    g_ascii_strtod(text, &end);
    return begun && *end == '\0';
}
