/* Bars and stacks as text, one line a bar, its length the value; histograms and boxes. */
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

/* at: its ratio stands behind the bar; NULL: none */
static void add_row(struct cli_table *table, const char *category, const char *label, double value,
                    const struct plot_value *at, const char *bar)
{
    char number[32];
    cli_table_cell(table, "%s", category);
    cli_table_cell(table, "%s", label);
    if (at != NULL && at->ci95 > 0.0)
        cli_table_cell(table, "%s +- %.2g", cli_number(value, number), at->ci95);
    else
        cli_table_cell(table, "%s", cli_number(value, number));
    if (at != NULL && at->ratio != 0.0 && at->published != NULL)
        cli_table_cell(table, "%s %.2f (%s)", bar, at->ratio, at->published);
    else if (at != NULL && at->ratio != 0.0)
        cli_table_cell(table, "%s %.2f", bar, at->ratio);
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
            if (curve->color != color || value == NULL || curve->by_ratio ||
                (only_measured && !curve->measured))
                continue;
            g_autoptr(GString) bar = g_string_new(NULL);
            append_mark(bar, curve->measured ? '-' : '#', value->y, hi, width);
            add_row(table, category, curve->label, value->y, value, bar->str);
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
        add_row(table, data->categories->pdata[row], "", plot_stack_height(data, row), NULL,
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

static bool has_interval(const struct plot_data *data)
{
    bool any = false;
    for (guint i = 0; i < data->curves->len; i++) {
        const GArray *values = ((const struct plot_curve *)data->curves->pdata[i])->values;
        for (guint k = 0; k < values->len; k++)
            any = any || g_array_index(values, struct plot_value, k).ci95 > 0.0;
    }
    return any;
}

void plot_text_bars(const char *title, const struct plot_panel *panel, int columns, FILE *out)
{
    const struct plot_spec *spec = panel->spec;
    const struct plot_data *data = &panel->data;
    const bool stacked = spec->kind == PLOT_STACK;
    g_autofree char *y_name = plot_y_name(spec);
    g_autofree char *numbers = plot_ratio_title(panel);
    const int ratio = numbers == NULL ? 0 : strstr(numbers, "published") != NULL ? 16 : 5;
    const int interval = has_interval(data) ? 11 : 0;
    const int width = MAX(columns - widest(data) - 17 - ratio - interval, MIN_BAR);
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
    if (numbers != NULL)
        fprintf(out, "  %s\n", numbers);
    if (stacked)
        print_legend(data, columns, out);
    fprintf(out, "\n");
    cli_table_free(table);
}

/* ---- Distributions --------------------------------------------------------------------------- */

#define ROWS_MAX 16u
#define MIN_BOX  8

static struct cli_table *value_table(const struct plot_data *data, const char *what)
{
    struct cli_table *table = cli_table_new(NULL);
    g_autofree char *head = *data->y_unit != '\0' ? g_strdup_printf("%s, %s", what, data->y_unit)
                                                  : g_strdup(what);
    cli_table_column(table, head, true);
    return table;
}

static double row_share(const struct plot_curve *curve, guint row, guint n)
{
    double share = 0.0;
    for (guint i = row; i < row + n && i < plot_n_bins(curve); i++)
        share += plot_bin(curve, i).share_pct;
    return share;
}

static void print_histogram(const struct plot_data *data, int columns, FILE *out)
{
    struct cli_table *table = value_table(data, "from");
    const guint n_bins = plot_n_bins(data->curves->pdata[0]);
    const guint n = (n_bins + ROWS_MAX - 1) / ROWS_MAX; /* bins of a row */
    const int width = MAX(columns - widest(data) - 32, MIN_BAR);
    double hi = 0.0;
    cli_table_column(table, "", false);
    cli_table_column(table, "%", true);
    cli_table_column(table, "", false);
    for (guint i = 0; i < data->curves->len; i++)
        for (guint row = 0; row < n_bins; row += n)
            hi = MAX(hi, row_share(data->curves->pdata[i], row, n));
    for (guint row = 0; row < n_bins; row += n) {
        for (guint i = 0; i < data->curves->len; i++) {
            const struct plot_curve *curve = data->curves->pdata[i];
            g_autoptr(GString) bar = g_string_new(NULL);
            char number[32], share[32];
            append_mark(bar, '#', row_share(curve, row, n), hi, width);
            cli_table_cell(table, "%s", i == 0 ? cli_number(plot_bin(curve, row).lo, number) : "");
            cli_table_cell(table, "%s", curve->label);
            cli_table_cell(table, "%s", cli_number(row_share(curve, row, n), share));
            cli_table_cell(table, "%s", bar->str);
        }
    }
    cli_table_print(table, "  ", out);
    cli_table_free(table);
}

/* |---[==#==]-----| */
static char *box_text(const struct plot_data *data, const struct plot_box *box, int width)
{
    const double value[] = { box->low, box->q1, box->median, box->q3, box->high };
    static const char mark[] = "|[#]|", between[] = "-==-";
    int at[SIM_N_ELEMENTS(value)];
    GString *text = g_string_new(NULL);
    for (size_t i = 0; i < SIM_N_ELEMENTS(value); i++) {
        const double part = (value[i] - data->y_lo) / (data->y_hi - data->y_lo);
        at[i] = (int)lround(CLAMP(part, 0.0, 1.0) * (width - 1));
    }
    for (int k = 0; k <= at[4]; k++) {
        char c = k < at[0] ? ' ' : between[0];
        for (size_t i = 0; i + 1 < SIM_N_ELEMENTS(value); i++)
            c = k > at[i] && k < at[i + 1] ? between[i] : c;
        for (size_t i = 0; i < SIM_N_ELEMENTS(value); i++)
            c = k == at[i] && (i == 2 || k != at[2]) ? mark[i] : c;
        g_string_append_c(text, c);
    }
    return g_string_free(text, FALSE);
}

static void print_boxes(const struct plot_data *data, int columns, FILE *out)
{
    static const char *const heads[] = { "low", "quartile", "median", "quartile", "high" };
    struct cli_table *table = cli_table_new(NULL);
    const int width = MAX(columns - widest(data) - 58, MIN_BOX);
    cli_table_column(table, *data->y_unit != '\0' ? data->y_unit : "", false);
    for (size_t i = 0; i < SIM_N_ELEMENTS(heads); i++)
        cli_table_column(table, heads[i], true);
    cli_table_column(table, "", false);
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        const struct plot_box *b = &curve->box;
        const double values[] = { b->low, b->q1, b->median, b->q3, b->high };
        char number[32];
        if (curve->measured)
            continue;
        g_autofree char *drawn = box_text(data, b, width);
        cli_table_cell(table, "%s", curve->label);
        for (size_t k = 0; k < SIM_N_ELEMENTS(values); k++)
            cli_table_cell(table, "%s", cli_number(values[k], number));
        cli_table_cell(table, "%s", drawn);
    }
    cli_table_print(table, "  ", out);
    cli_table_free(table);
}

/* What the axis does not reach. */
static void print_beyond(const struct plot_data *data, FILE *out)
{
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        for (int above = 0; above < 2 && !curve->measured; above++) {
            g_autofree char *text = plot_beyond(curve, above != 0);
            if (text != NULL)
                fprintf(out, "  %s, beyond the axis: %s %s\n", curve->label, text, data->y_unit);
        }
    }
}

void plot_text_distribution(const char *title, const struct plot_panel *panel, int columns,
                            FILE *out)
{
    g_autofree char *y_name = plot_y_name(panel->spec);
    fprintf(out, "%s: %s\n  %s\n", title, y_name, panel->spec->x_label);
    if (panel->spec->kind == PLOT_HISTOGRAM)
        print_histogram(&panel->data, columns, out);
    else
        print_boxes(&panel->data, columns, out);
    print_beyond(&panel->data, out);
    fprintf(out, "\n");
}
