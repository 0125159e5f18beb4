/* Reading files of measured curves: the first line that is no comment is the header. */
#include "cli/plot/plot_measured.h"

#include <math.h>
#include <string.h>

#include "sim/config/text.h"

static void clear_row(gpointer row)
{
    g_free(((struct plot_row *)row)->x);
}

static bool to_number(const char *text, double *number)
{
    char *end = NULL;
    *number = g_ascii_strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*number);
}

/* NULL, or what is wrong with a line that is no comment. */
static const char *row_fault(char **cells, bool is_header, struct plot_row *row)
{
    if (g_strv_length(cells) != 2 || *g_strstrip(cells[0]) == '\0')
        return is_header ? "expected a header of two names, x,y" : "expected x,y";
    const bool is_row = to_number(g_strstrip(cells[1]), &row->y);
    if (is_header)
        return is_row ? "found numbers, expected a header of two names, x,y" : NULL;
    return is_row ? NULL : "expected x,y, and y a number";
}

static GArray *parse_rows(const char *path, const char *content, struct sim_error_list *errors)
{
    g_auto(GStrv) lines = g_strsplit(content, "\n", -1);
    const size_t before = errors->n_messages;
    bool is_header = true;
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(struct plot_row));
    g_array_set_clear_func(rows, clear_row);
    for (int i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) cells = g_strsplit(g_strstrip(lines[i]), ",", -1);
        struct plot_row row = { .line = i + 1 };
        if (*lines[i] == '\0' || *lines[i] == '#')
            continue;
        const char *fault = row_fault(cells, is_header, &row);
        if (fault != NULL) {
            sim_error_add(errors, path, row.line, "%s", fault);
        } else if (!is_header) {
            row.x = g_strdup(cells[0]);
            g_array_append_val(rows, row);
        }
        is_header = false;
    }
    if (rows->len == 0 && errors->n_messages == before)
        sim_error_add(errors, path, 0, "has no values, expected lines x,y below a header");
    if (errors->n_messages == before)
        return rows;
    g_array_unref(rows);
    return NULL;
}

/* NULL if there is none. */
static char *find(const struct cli_options *options, const struct scenario *scenario,
                  const char *file)
{
    char *path = cli_find_file(options, file);
    if (path != NULL || scenario_has_root(scenario))
        return path;
    g_autofree char *folder = g_path_get_dirname(scenario_path(scenario));
    path = g_build_filename(folder, file, NULL);
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        g_clear_pointer(&path, g_free);
    return path;
}

GArray *plot_measured_rows(const struct cli_options *options, const struct scenario *scenario,
                           const struct plot_measured *measured, char **path,
                           struct sim_error_list *errors)
{
    *path = find(options, scenario, measured->file);
    if (*path == NULL) {
        sim_error_add(errors, config_file(measured->node), config_line(measured->node),
                      "%s: no file \"%s\" below the scenarios", config_path(measured->node),
                      measured->file);
        return NULL;
    }
    const char *why = NULL;
    g_autofree char *content = text_read(*path, &why);
    if (content == NULL)
        sim_error_add(errors, *path, 0, "cannot be read: %s", why);
    else if (text_check(content, *path, errors))
        return parse_rows(*path, content, errors);
    return NULL;
}

void plot_measured_check(const struct cli_options *options, const struct scenario *scenario,
                         const struct plot_figure *figure, struct sim_error_list *errors)
{
    for (guint i = 0; i < figure->panels->len; i++) {
        const struct plot_spec *panel = figure->panels->pdata[i];
        for (guint k = 0; k < panel->measured->len; k++) {
            g_autofree char *path = NULL;
            GArray *rows = plot_measured_rows(
                options, scenario, &g_array_index(panel->measured, struct plot_measured, k), &path,
                errors);
            if (rows != NULL)
                g_array_unref(rows);
        }
    }
}
