/* Bars and stacks as text: one line a bar, its length the value. */
#include <math.h>
#include <string.h>

#include "cli/plot/plot_script.h"

#define MIN_BAR 20

static double largest(const struct plot_data *data, bool stacked)
{
    double hi = 0.0;
    for (guint row = 0; row < data->categories->len; row++) {
        hi = stacked ? MAX(hi, plot_stack_height(data, row)) : hi;
        for (guint i = 0; i < data->curves->len; i++) {
            const struct plot_curve *curve = data->curves->pdata[i];
            const struct plot_value *value = stacked && !curve->measured ? NULL
                                                                         : plot_data_at(curve, row);
            hi = value != NULL ? MAX(hi, value->y) : hi;
        }
    }
    return hi;
}

static void append_mark(GString *bar, char mark, double value, double hi, int width)
{
    const int n = hi > 0.0 ? (int)lround(value / hi * width) : 0;
    for (int i = 0; i < n; i++)
        g_string_append_c(bar, mark);
}

/* ratio: how large it is beside the bar that the panel compares with; 0: it does not */
static void add_row(struct cli_table *table, const char *category, const char *label, double value,
                    double ratio, const char *bar)
{
    char number[32];
    cli_table_cell(table, "%s", category);
    cli_table_cell(table, "%s", label);
    cli_table_cell(table, "%s", cli_number(value, number));
    if (ratio != 0.0)
        cli_table_cell(table, "%s %.2f", bar, ratio);
    else
        cli_table_cell(table, "%s", bar);
}

static unsigned highest_color(const struct plot_data *data)
{
    unsigned highest = 0;
    for (guint i = 0; i < data->curves->len; i++)
        highest = MAX(highest, ((const struct plot_curve *)data->curves->pdata[i])->color);
    return highest;
}

/* only_measured: of a stack, below it. */
static void add_bars(struct cli_table *table, const struct plot_data *data, guint row, double hi,
                     int width, bool only_measured)
{
    const char *category = only_measured ? "" : data->categories->pdata[row];
    for (unsigned color = 0; color <= highest_color(data); color++) {
        for (guint i = 0; i < data->curves->len; i++) {
            const struct plot_curve *curve = data->curves->pdata[i];
            const struct plot_value *value = plot_data_at(curve, row);
            if (curve->color != color || value == NULL || (only_measured && !curve->measured))
                continue;
            g_autoptr(GString) bar = g_string_new(NULL);
            append_mark(bar, curve->measured ? '-' : '#', value->y, hi, width);
            add_row(table, category, curve->label, value->y, value->ratio, bar->str);
            category = "";
        }
    }
}

/* A=link B=memory: AAAAAABBBB */
static void add_stack(struct cli_table *table, const struct plot_data *data, guint row, double hi,
                      int width)
{
    g_autoptr(GString) bar = g_string_new(NULL);
    bool any = false; /* nothing of something is a value, too */
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        const struct plot_value *value = plot_data_at(curve, row);
        if (value != NULL && !curve->measured) {
            append_mark(bar, (char)('A' + (char)(i % 26)), value->y, hi, width);
            any = true;
        }
    }
    if (any)
        add_row(table, data->categories->pdata[row], "", plot_stack_height(data, row), 0.0,
                bar->str);
}

static int widest(const struct plot_data *data)
{
    size_t category = strlen(data->x_name), label = 0;
    for (guint i = 0; i < data->categories->len; i++)
        category = MAX(category, strlen(data->categories->pdata[i]));
    for (guint i = 0; i < data->curves->len; i++)
        label = MAX(label, strlen(((struct plot_curve *)data->curves->pdata[i])->label));
    return (int)(category + label);
}

static void print_legend(const struct plot_data *data, int columns, FILE *out)
{
    g_autoptr(GString) words = g_string_new(NULL);
    g_autoptr(GString) text = g_string_new("  ");
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        if (curve->measured || !plot_part_is_seen(data, curve))
            continue;
        g_string_append_printf(words, "%s%c=%s", words->len > 0 ? ", " : "", 'A' + (int)(i % 26),
                               curve->label);
    }
    cli_wrap(text, words->str, 2, columns);
    fprintf(out, "%s\n", text->str);
}

void plot_text_bars(const char *title, const struct plot_panel *panel, int columns, FILE *out)
{
    const struct plot_spec *spec = panel->spec;
    const struct plot_data *data = &panel->data;
    const bool stacked = spec->kind == PLOT_STACK;
    g_autofree char *y_name = plot_y_name(spec);
    const int ratio = spec->ratio_of != NULL ? 5 : 0;
    const int width = MAX(columns - widest(data) - 17 - ratio, MIN_BAR);
    const double hi = largest(data, stacked);
    struct cli_table *table = cli_table_new(NULL);
    cli_table_column(table, data->x_name, false);
    cli_table_column(table, "", false);
    cli_table_column(table, *data->y_unit != '\0' ? data->y_unit : "value", true);
    cli_table_column(table, "", false);
    for (guint row = 0; row < data->categories->len; row++) {
        if (stacked)
            add_stack(table, data, row, hi, width);
        add_bars(table, data, row, hi, width, stacked);
    }
    fprintf(out, "%s: %s\n", title, y_name);
    cli_table_print(table, "  ", out);
    if (stacked)
        print_legend(data, columns, out);
    fprintf(out, "\n");
    cli_table_free(table);
}
