/*
 * Results as tables. Axes stand as rows or as columns; a value is found by its row and its column,
 * and axes that are neither make a table of their own for each combination of their values.
 */
#include <string.h>

#include "cli/results/result_table.h"

#define TITLE_WIDTH 26        /* of a metric on a terminal: longer ones take several lines */
#define METRIC      G_MAXUINT /* in a list of axes: the metric's name takes part as an axis */

/* One value: which point, which metric. */
struct item {
    const struct result_point *point;
    guint metric;
};

/* How a set is laid out: places in set->axes, or METRIC. */
struct result_layout {
    const struct result_set *set;
    const struct result_table_choice *choice;
    GArray *tables, *rows, *columns; /* guint */
    bool one_metric;                 /* it stands above the table */
    size_t title_width;              /* of a metric in the head */
};

/* ---- Which axes go where --------------------------------------------------------------------- */

static bool contains(const GArray *axes, guint axis)
{
    for (guint i = 0; i < axes->len; i++) {
        if (g_array_index(axes, guint, i) == axis)
            return true;
    }
    return false;
}

/* "op,transfer_bytes"; "metric" is the metric's name. */
static void read_axes(const struct result_set *set, const char *option, char **texts, GArray *axes,
                      struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; i < set->axes->len; i++)
        g_ptr_array_add(names, set->axes->pdata[i]);
    g_ptr_array_add(names, (gpointer)(uintptr_t) "metric");
    g_ptr_array_add(names, NULL);
    for (; texts != NULL && *texts != NULL; texts++) {
        g_auto(GStrv) words = g_strsplit(*texts, ",", -1);
        for (char **word = words; *word != NULL; word++) {
            guint axis = 0;
            while (names->pdata[axis] != NULL && strcmp(names->pdata[axis], *word) != 0)
                axis++;
            if (names->pdata[axis] == NULL) {
                g_autofree char *suggestion = sim_suggestion(*word,
                                                             (const char *const *)names->pdata);
                sim_error_add(errors, NULL, 0, "%s: %s has no axis \"%s\"%s%s", option,
                              set->scenario, *word, *suggestion != '\0' ? "; " : "", suggestion);
                continue;
            }
            axis = axis == set->axes->len ? METRIC : axis;
            if (!contains(axes, axis))
                g_array_append_val(axes, axis);
        }
    }
}

#define MOST_COLUMNS \
    20 /* of metrics on a line without an end, unless it is said what makes columns */

struct result_layout *result_layout_new(const struct result_set *set,
                                        const struct result_table_choice *choice,
                                        struct sim_error_list *errors)
{
    struct result_layout *layout = g_new0(struct result_layout, 1);
    layout->set = set;
    layout->choice = choice;
    layout->title_width = choice->width > 0 ? TITLE_WIDTH : G_MAXINT;
    layout->tables = g_array_new(FALSE, FALSE, sizeof(guint));
    layout->rows = g_array_new(FALSE, FALSE, sizeof(guint));
    layout->columns = g_array_new(FALSE, FALSE, sizeof(guint));
    const guint metric = METRIC;
    read_axes(set, "--rows", choice->rows, layout->rows, errors);
    read_axes(set, "--columns", choice->columns, layout->columns, errors);
    /* what is named nowhere goes where nothing is named */
    GArray *rest = choice->rows == NULL      ? layout->rows
                   : choice->columns == NULL ? layout->columns
                                             : layout->tables;
    for (guint axis = 0; axis < set->axes->len; axis++) {
        const bool in_rows = contains(layout->rows, axis),
                   in_columns = contains(layout->columns, axis);
        if (in_rows && in_columns)
            sim_error_add(errors, NULL, 0, "%s stands in --rows and in --columns",
                          (char *)set->axes->pdata[axis]);
        if (!in_rows && !in_columns)
            g_array_append_val(rest, axis);
    }
    if (!contains(layout->rows, metric) && !contains(layout->columns, metric)) {
        const bool many = choice->width == 0 && choice->rows == NULL && choice->columns == NULL &&
                          set->metrics->len > MOST_COLUMNS;
        layout->one_metric = set->metrics->len == 1 && layout->columns->len > 0;
        g_array_append_val(many ? layout->rows : layout->columns, metric);
    }
    return layout;
}

void result_layout_free(struct result_layout *layout)
{
    g_array_free(layout->tables, TRUE);
    g_array_free(layout->rows, TRUE);
    g_array_free(layout->columns, TRUE);
    g_free(layout);
}

/* ---- Order ----------------------------------------------------------------------------------- */

struct order {
    const GArray *axes, *then; /* then may be NULL */
};

static int compare_along(const GArray *axes, const struct item *a, const struct item *b)
{
    int order = 0;
    for (guint i = 0; axes != NULL && i < axes->len && order == 0; i++) {
        const guint axis = g_array_index(axes, guint, i);
        const guint x = axis == METRIC ? a->metric : a->point->rank[axis];
        const guint y = axis == METRIC ? b->metric : b->point->rank[axis];
        order = (x > y) - (x < y);
    }
    return order;
}

static int by_order(gconstpointer a, gconstpointer b, gpointer pointer)
{
    const struct order *order = pointer;
    const int first = compare_along(order->axes, a, b);
    return first != 0 ? first : compare_along(order->then, a, b);
}

/* The first item of each combination of the axes' values, in order. */
static GArray *distinct(const struct item *items, guint n, const GArray *axes)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(struct item));
    struct order order = { axes, NULL };
    g_autoptr(GArray) sorted = g_array_new(FALSE, FALSE, sizeof(struct item));
    g_array_append_vals(sorted, items, n);
    g_array_sort_with_data(sorted, by_order, &order);
    for (guint i = 0; i < n; i++) {
        const struct item *item = &g_array_index(sorted, struct item, i);
        if (i == 0 || compare_along(axes, item - 1, item) != 0)
            g_array_append_vals(found, item, 1);
    }
    return found;
}

/* The place of the item's combination in the list that distinct() made. */
static guint place_of(const GArray *found, const GArray *axes, const struct item *item)
{
    guint lo = 0, hi = found->len;
    while (lo + 1 < hi) {
        const guint middle = lo + (hi - lo) / 2;
        if (compare_along(axes, &g_array_index(found, struct item, middle), item) <= 0)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

/* ---- A table --------------------------------------------------------------------------------- */

/* Text by line and column; the first n_labels columns are the rows' axes and stand on the left of
 * every block of columns; the first n_head lines are the head. */
struct grid {
    guint n_lines, n_columns, n_labels, n_head;
    char **cell; /* owned; NULL: empty */
};

static char **grid_at(const struct grid *grid, guint line, guint column)
{
    return &grid->cell[(gsize)line * grid->n_columns + column];
}

static char *value_of(const struct result_layout *layout, const struct item *item, guint axis)
{
    if (axis == METRIC)
        return result_metric_title(result_metric(layout->set, item->metric));
    return g_strdup(item->point->axis[axis]);
}

static const char *name_of(const struct result_layout *layout, guint axis)
{
    return axis == METRIC ? "metric" : layout->set->axes->pdata[axis];
}

/* "latency_part_ns.device [ns]" in lines of at most that width, parted after "." and before "[",
 * after "_" if need be; NULL-terminated, g_strfreev(). */
static char **wrap(const char *title, size_t width)
{
    GPtrArray *lines = g_ptr_array_new();
    while (strlen(title) > width) {
        const size_t n_name = strcspn(title, " ");
        size_t cut = n_name <= width ? n_name : 0;
        for (size_t i = 1; cut == 0 && i <= width; i++)
            cut = title[width - i] == '.' ? width - i + 1 : 0;
        for (size_t i = 1; cut == 0 && i <= width; i++)
            cut = title[width - i] == '_' ? width - i + 1 : 0;
        cut = cut == 0 ? width : cut;
        g_ptr_array_add(lines, g_strndup(title, cut));
        title += cut + (title[cut] == ' ');
    }
    g_ptr_array_add(lines, g_strdup(title));
    g_ptr_array_add(lines, NULL);
    return (char **)g_ptr_array_free(lines, FALSE);
}

static char **title_lines(const struct result_layout *layout, const struct item *item)
{
    g_autofree char *title = value_of(layout, item, METRIC);
    return wrap(title, layout->title_width);
}

/* How many lines of the head an axis along the columns takes. */
static guint level_lines(const struct result_layout *layout, const GArray *columns, guint axis)
{
    guint n = 1;
    for (guint c = 0; axis == METRIC && c < columns->len; c++) {
        g_auto(GStrv) lines = title_lines(layout, &g_array_index(columns, struct item, c));
        n = MAX(n, g_strv_length(lines));
    }
    return n;
}

/* The title of a column's metric, its end on the last of the lines before `end`. */
static void fill_title(struct grid *grid, guint end, guint column, char **lines)
{
    const guint n = g_strv_length(lines);
    for (guint i = 0; i < n; i++)
        *grid_at(grid, end - n + i, column) = lines[i];
    g_free(lines);
}

/* The names of axes along the columns stand on the left of their values, those of the rows below,
 * or beside the metrics, which need no name. */
static void fill_head(struct grid *grid, const struct result_layout *layout, const GArray *columns)
{
    guint line = 0;
    for (guint level = 0; level < layout->columns->len - layout->one_metric; level++) {
        const guint axis = g_array_index(layout->columns, guint, level);
        const guint end = line + level_lines(layout, columns, axis);
        if (axis != METRIC && grid->n_labels > 0)
            *grid_at(grid, line, 0) = g_strdup(name_of(layout, axis));
        for (guint c = 0; c < columns->len; c++) {
            const struct item *item = &g_array_index(columns, struct item, c);
            if (axis == METRIC)
                fill_title(grid, end, grid->n_labels + c, title_lines(layout, item));
            else
                *grid_at(grid, line, grid->n_labels + c) = value_of(layout, item, axis);
        }
        line = end;
    }
    for (guint i = 0; i < grid->n_labels; i++)
        *grid_at(grid, grid->n_head - 1,
                 i) = g_strdup(name_of(layout, g_array_index(layout->rows, guint, i)));
}

static struct grid grid_make(const struct result_layout *layout, const struct item *items, guint n)
{
    g_autoptr(GArray) rows = distinct(items, n, layout->rows);
    g_autoptr(GArray) columns = distinct(items, n, layout->columns);
    const guint n_levels = layout->columns->len - layout->one_metric;
    const bool last_is_metric = n_levels > 0 &&
                                g_array_index(layout->columns, guint, n_levels - 1) == METRIC;
    struct grid grid = { .n_labels = layout->rows->len };
    grid.n_head = !last_is_metric;
    for (guint level = 0; level < n_levels; level++)
        grid.n_head += level_lines(layout, columns, g_array_index(layout->columns, guint, level));
    grid.n_lines = grid.n_head + rows->len;
    grid.n_columns = grid.n_labels + columns->len;
    grid.cell = g_new0(char *, (gsize)grid.n_lines *grid.n_columns);
    fill_head(&grid, layout, columns);
    for (guint r = 0; r < rows->len; r++) {
        for (guint i = 0; i < grid.n_labels; i++)
            *grid_at(&grid, grid.n_head + r, i) = value_of(layout,
                                                           &g_array_index(rows, struct item, r),
                                                           g_array_index(layout->rows, guint, i));
    }
    for (guint i = 0; i < n; i++) {
        char **cell = grid_at(&grid, grid.n_head + place_of(rows, layout->rows, &items[i]),
                              grid.n_labels + place_of(columns, layout->columns, &items[i]));
        *cell = result_point_text(items[i].point, items[i].metric);
    }
    return grid;
}

static void grid_release(struct grid *grid)
{
    for (gsize i = 0; i < (gsize)grid->n_lines * grid->n_columns; i++)
        g_free(grid->cell[i]);
    g_free(grid->cell);
}

static int text_width(const char *text)
{
    return (int)g_utf8_strlen(text, -1);
}

static void print_line(const struct grid *grid, guint line, guint first, guint end,
                       const int *width, const bool *right)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint c = 0; c < end; c++) {
        if (c >= grid->n_labels && c < first)
            continue;
        const char *cell = *grid_at(grid, line, c);
        if (cell == NULL)
            cell = line >= grid->n_head ? "-" : "";
        const int padding = width[c] - text_width(cell);
        if (!right[c])
            g_string_append_printf(text, "%s%*s  ", cell, padding, "");
        else
            g_string_append_printf(text, "%*s%s  ", padding, "", cell);
    }
    while (text->len > 0 && text->str[text->len - 1] == ' ')
        g_string_truncate(text, text->len - 1);
    if (text->len > 0 || line >= grid->n_head) /* titles in other blocks may have more lines */
        puts(text->str);
}

/* A column of values is, one of an axis if each of its values is a number. */
static bool is_right(const struct grid *grid, guint column)
{
    bool right = true;
    for (guint line = grid->n_head; column < grid->n_labels && line < grid->n_lines; line++) {
        const char *cell = *grid_at(grid, line, column);
        right = right && cell != NULL && cli_is_number(cell);
    }
    return right;
}

/* In blocks of as many columns as the line is wide, the rows' axes on the left of each. */
static void grid_print(const struct grid *grid, int line_width)
{
    g_autofree int *width = g_new0(int, grid->n_columns + 1);
    g_autofree bool *right = g_new0(bool, grid->n_columns + 1);
    int labels = 0;
    for (guint c = 0; c < grid->n_columns; c++) {
        right[c] = is_right(grid, c);
        for (guint line = 0; line < grid->n_lines; line++) {
            const char *cell = *grid_at(grid, line, c);
            width[c] = MAX(width[c], cell != NULL ? text_width(cell) : 1);
        }
        labels += c < grid->n_labels ? width[c] + 2 : 0;
    }
    for (guint first = grid->n_labels; first < grid->n_columns;) {
        guint end = first + 1;
        int used = labels + width[first];
        while (end < grid->n_columns && (line_width == 0 || used + 2 + width[end] <= line_width))
            used += 2 + width[end++];
        if (first > grid->n_labels)
            putchar('\n');
        for (guint line = 0; line < grid->n_lines; line++)
            print_line(grid, line, first, end, width, right);
        first = end;
    }
}

/* ---- A scenario ------------------------------------------------------------------------------ */

/* Of how many seeds the values are means: "", ", 3 seeds", ", 1 to 3 seeds". */
static char *seeds_text(const struct item *items, guint n)
{
    int lo = items[0].point->values[items[0].metric].n, hi = lo;
    for (guint i = 1; i < n; i++) {
        const int seeds = items[i].point->values[items[i].metric].n;
        lo = MIN(lo, seeds);
        hi = MAX(hi, seeds);
    }
    if (hi <= 1)
        return g_strdup("");
    return lo == hi ? g_strdup_printf(", %d seeds", hi)
                    : g_strdup_printf(", %d to %d seeds", lo, hi);
}

static void print_head(const struct result_layout *layout, bool first)
{
    const char *title = layout->choice->title;
    printf("%s%s%s%s", first ? "" : "\n", layout->set->scenario, title != NULL ? ": " : "",
           title != NULL ? title : "");
}

static bool any_overtaken(const struct item *items, guint n)
{
    for (guint i = 0; i < n; i++)
        if (items[i].point->overtaken && items[i].point->values[items[i].metric].n > 0)
            return true;
    return false;
}

static void print_table(const struct result_layout *layout, const struct item *items, guint n,
                        bool first)
{
    g_autofree char *seeds = seeds_text(items, n);
    print_head(layout, first);
    for (guint i = 0; i < layout->tables->len; i++) {
        const guint axis = g_array_index(layout->tables, guint, i);
        printf("%s%s=%s", i == 0 ? ": " : " ", name_of(layout, axis), items->point->axis[axis]);
    }
    printf("%s\n", seeds);
    if (layout->one_metric) {
        g_autofree char *title = result_metric_title(result_metric(layout->set, items->metric));
        puts(title);
    }
    struct grid grid = grid_make(layout, items, n);
    grid_print(&grid, layout->choice->width);
    grid_release(&grid);
    if (any_overtaken(items, n))
        puts(RESULT_OVERTAKEN_TEXT);
}

static GArray *items_of(const struct result_layout *layout)
{
    const struct result_set *set = layout->set;
    GArray *items = g_array_new(FALSE, FALSE, sizeof(struct item));
    for (guint i = 0; i < set->points->len; i++) {
        const struct result_point *point = set->points->pdata[i];
        for (guint m = 0; m < set->metrics->len; m++) {
            const struct item item = { point, m };
            if (point->values[m].n > 0 || layout->choice->with_valueless)
                g_array_append_val(items, item);
        }
    }
    return items;
}

void result_layout_print(const struct result_layout *layout, bool first)
{
    g_autoptr(GArray) array = items_of(layout);
    struct order order = { layout->tables, layout->rows };
    g_array_sort_with_data(array, by_order, &order);
    const struct item *items = (const struct item *)(const void *)array->data;
    if (array->len == 0) {
        print_head(layout, first);
        puts("");
    }
    for (guint begin = 0; begin < array->len;) {
        guint end = begin + 1;
        while (end < array->len && compare_along(layout->tables, &items[begin], &items[end]) == 0)
            end++;
        print_table(layout, &items[begin], end - begin, first && begin == 0);
        begin = end;
    }
}

#define NOT_SETTLED_SHOWN 3

bool result_not_settled_print(const struct result_set *set, struct results_db *db)
{
    unsigned n = 0;
    struct results_cursor *cursor = results_not_settled(db, set->scenario);
    for (const struct results_quantity *row; (row = results_next_quantity(cursor)) != NULL;)
        if (result_set_point(set, row->name) != NULL && ++n <= NOT_SETTLED_SHOWN)
            printf("not settled: %s%s%s: %s\n", set->scenario, *row->name != '\0' ? " " : "",
                   row->name, row->unit);
    if (n > NOT_SETTLED_SHOWN)
        printf("not settled: %u point%s more\n", n - NOT_SETTLED_SHOWN,
               n == NOT_SETTLED_SHOWN + 1 ? "" : "s");
    return cli_end(cursor);
}
