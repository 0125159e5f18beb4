/*
 * nudma diff: what changed from one database to another. A value counts as changed if the
 * difference of the means is beyond its confidence interval and beyond the tolerance; the interval
 * of a difference of independent means is the root of the sum of the squares of theirs.
 */
#include <math.h>
#include <string.h>

#include "cli/results/result_set.h"

#define ROUNDING 1e-12 /* of the mean: what another order of additions may make of it */

struct diff_request {
    struct cli_options options;
    char **scenarios, **metrics, **filters;
    char *tolerance_text;
    double tolerance; /* 0.01: 1 % of the mean in A */
    int limit;        /* lines of each list; 0: all */
    gboolean params, common, all;
};

struct change {
    const struct result_set *set;
    const struct result_point *point;
    const struct result_quantity *metric;
    struct result_value a, b;
    double ratio; /* of the difference to the mean in A; infinite from 0 */
    bool counts;
};

struct param_change {
    char *text; /* "scenario\nname\nvalue in A\nvalue in B" */
    unsigned n_points;
};

struct diff {
    const struct diff_request *request;
    struct results_db *a, *b;
    GPtrArray *sets_a, *sets_b;
    GArray *changes;            /* struct change: those that are not equal */
    GPtrArray *only_a, *only_b; /* char *: what the other side does not have */
    GArray *params;             /* struct param_change */
    GHashTable *param_index;    /* text -> index + 1 */
    unsigned n_equal, n_counting;
};

/* ---- Values ---------------------------------------------------------------------------------- */

static void compare_values(struct diff *diff, const struct result_set *set, guint metric,
                           const struct result_point *point, const struct result_value *b)
{
    const struct result_value *a = &point->values[metric];
    const double difference = b->mean - a->mean, size = fabs(difference);
    const double interval = hypot(isnan(a->ci95) ? 0.0 : a->ci95, isnan(b->ci95) ? 0.0 : b->ci95);
    const double base = fabs(a->mean);
    if (size <= ROUNDING * base) {
        diff->n_equal++;
        return;
    }
    struct change change = { set,
                             point,
                             result_metric(set, metric),
                             *a,
                             *b,
                             difference / base,
                             size > interval && size > diff->request->tolerance * base };
    diff->n_counting += change.counts;
    g_array_append_val(diff->changes, change);
}

static void add_missing_point(GPtrArray *list, const struct result_set *set,
                              const struct result_point *point, struct results_db *other)
{
    g_autofree char *error = results_failure(other, set->scenario, point->name);
    g_ptr_array_add(list, g_strdup_printf("%s %s%s%s", set->scenario, point->name,
                                          error != NULL ? ": failed in the other: " : "",
                                          error != NULL ? error : ""));
}

static void add_missing_metrics(GPtrArray *list, const struct result_set *set,
                                const struct result_set *other)
{
    for (guint m = 0; m < set->metrics->len; m++) {
        const struct result_quantity *metric = result_metric(set, m);
        if (result_set_metric(other, metric->name, metric->unit) >= 0)
            continue;
        g_autofree char *title = result_metric_title(metric);
        g_ptr_array_add(list, g_strdup_printf("%s: the metric %s", set->scenario, title));
    }
}

/* A value of a metric that both know, at a point that both have, on one side only. */
static void add_missing_value(GPtrArray *list, const struct result_set *set,
                              const struct result_point *point, guint metric)
{
    g_ptr_array_add(list, g_strdup_printf("%s %s: the metric %s", set->scenario, point->name,
                                          result_metric(set, metric)->name));
}

static void compare_points(struct diff *diff, const struct result_set *a,
                           const struct result_set *b)
{
    for (guint m = 0; m < a->metrics->len; m++) {
        const struct result_quantity *metric = result_metric(a, m);
        const int other = result_set_metric(b, metric->name, metric->unit);
        for (guint i = 0; other >= 0 && i < a->points->len; i++) {
            const struct result_point *pa = a->points->pdata[i];
            const struct result_point *pb = result_set_point(b, pa->name);
            const int n_a = pa->values[m].n, n_b = pb != NULL ? pb->values[other].n : 0;
            if (n_a > 0 && n_b > 0)
                compare_values(diff, a, m, pa, &pb->values[other]);
            else if (pb != NULL && n_a > 0)
                add_missing_value(diff->only_a, a, pa, m);
            else if (pb != NULL && n_b > 0)
                add_missing_value(diff->only_b, a, pa, m);
        }
    }
}

static const struct result_set *set_of(const GPtrArray *sets, const char *scenario)
{
    for (guint i = 0; i < sets->len; i++) {
        const struct result_set *set = sets->pdata[i];
        if (strcmp(set->scenario, scenario) == 0)
            return set;
    }
    return NULL;
}

/* What `sets` have and the others do not. */
static void find_missing(GPtrArray *list, const GPtrArray *sets, const GPtrArray *others,
                         struct results_db *other_db)
{
    for (guint i = 0; i < sets->len; i++) {
        const struct result_set *set = sets->pdata[i], *other = set_of(others, set->scenario);
        if (other == NULL) {
            g_ptr_array_add(list,
                            g_strdup_printf("%s: all %u points", set->scenario, set->points->len));
            continue;
        }
        for (guint k = 0; k < set->points->len; k++) {
            const struct result_point *point = set->points->pdata[k];
            if (result_set_point(other, point->name) == NULL)
                add_missing_point(list, set, point, other_db);
        }
        add_missing_metrics(list, set, other);
    }
}

/* ---- Parameters ------------------------------------------------------------------------------ */

/* name -> "value unit (provenance)" of the newest run of a point */
static GHashTable *params_of(struct results_db *db, const char *scenario, const char *point)
{
    GHashTable *params = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    struct results_cursor *cursor = results_params(db, scenario, point);
    for (const struct results_param *p; (p = results_next_param(cursor)) != NULL;)
        g_hash_table_insert(params, g_strdup(p->name),
                            g_strdup_printf("%s%s%s%s%s%s", p->value, *p->unit != '\0' ? " " : "",
                                            p->unit, *p->provenance != '\0' ? " (" : "",
                                            p->provenance, *p->provenance != '\0' ? ")" : ""));
    cli_end(cursor);
    return params;
}

static void add_param(struct diff *diff, const char *scenario, const char *name, const char *a,
                      const char *b)
{
    char *text = g_strjoin("\n", scenario, name, a, b, NULL);
    const guint index = GPOINTER_TO_UINT(g_hash_table_lookup(diff->param_index, text));
    if (index > 0) {
        g_array_index(diff->params, struct param_change, index - 1).n_points++;
        g_free(text);
        return;
    }
    const struct param_change change = { text, 1 };
    g_array_append_val(diff->params, change);
    g_hash_table_insert(diff->param_index, text, GUINT_TO_POINTER(diff->params->len));
}

static void compare_params(struct diff *diff, const char *scenario, GHashTable *a, GHashTable *b)
{
    GHashTableIter iter;
    gpointer name, value;
    g_hash_table_iter_init(&iter, a);
    while (g_hash_table_iter_next(&iter, &name, &value)) {
        const char *other = g_hash_table_lookup(b, name);
        if (other == NULL || strcmp(other, value) != 0)
            add_param(diff, scenario, name, value, other != NULL ? other : "-");
    }
    g_hash_table_iter_init(&iter, b);
    while (g_hash_table_iter_next(&iter, &name, &value)) {
        if (!g_hash_table_contains(a, name))
            add_param(diff, scenario, name, "-", value);
    }
}

static void find_params(struct diff *diff)
{
    for (guint i = 0; i < diff->sets_a->len; i++) {
        const struct result_set *set = diff->sets_a->pdata[i];
        const struct result_set *other = set_of(diff->sets_b, set->scenario);
        for (guint k = 0; other != NULL && k < set->points->len; k++) {
            const char *point = ((struct result_point *)set->points->pdata[k])->name;
            if (result_set_point(other, point) == NULL)
                continue;
            g_autoptr(GHashTable) in_a = params_of(diff->a, set->scenario, point);
            g_autoptr(GHashTable) in_b = params_of(diff->b, set->scenario, point);
            compare_params(diff, set->scenario, in_a, in_b);
        }
    }
}

/* ---- Printing -------------------------------------------------------------------------------- */

static int by_size(gconstpointer a, gconstpointer b)
{
    const struct change *x = a, *y = b;
    const double p = fabs(x->ratio), q = fabs(y->ratio);
    if (p < q || p > q)
        return p < q ? 1 : -1;
    const int order = strcmp(x->set->scenario, y->set->scenario);
    if (order != 0)
        return order;
    const int metrics = strcmp(x->metric->name, y->metric->name);
    return metrics != 0 ? metrics : strcmp(x->point->name, y->point->name);
}

static guint lines_of(const struct diff *diff, guint n)
{
    const int limit = diff->request->limit;
    return limit > 0 && (guint)limit < n ? (guint)limit : n;
}

static void say_more(guint shown, guint n)
{
    if (shown < n)
        printf("... and %u more (--limit 0 shows all)\n", n - shown);
}

static void print_changes(struct diff *diff)
{
    struct cli_table *table = cli_table_new(">change|>A|>B|metric|point");
    guint shown = 0, n = 0;
    g_array_sort(diff->changes, by_size);
    for (guint i = 0; i < diff->changes->len; i++) {
        const struct change *change = &g_array_index(diff->changes, struct change, i);
        if (!change->counts && !diff->request->all)
            continue;
        if (n++ >= lines_of(diff, diff->changes->len))
            continue;
        g_autofree char *a = result_value_text(&change->a), *b = result_value_text(&change->b);
        g_autofree char *title = result_metric_title(change->metric);
        if (isinf(change->ratio))
            cli_table_cell(table, "from 0");
        else
            cli_table_cell(table, fabs(change->ratio) < 10.0 ? "%+.3g%%" : "%+.0f%%",
                           100.0 * change->ratio);
        cli_table_cell(table, "%s", a);
        cli_table_cell(table, "%s", b);
        cli_table_cell(table, "%s", title);
        cli_table_cell(table, "%s %s%s", change->set->scenario, change->point->name,
                       change->counts ? "" : "  (does not count)");
        shown++;
    }
    if (shown > 0)
        cli_table_print(table, "", stdout);
    say_more(shown, n);
    cli_table_free(table);
}

static void print_list(const struct diff *diff, const char *side, const GPtrArray *list)
{
    const guint shown = lines_of(diff, list->len);
    for (guint i = 0; i < shown; i++)
        printf("only %s has %s\n", side, (const char *)list->pdata[i]);
    say_more(shown, list->len);
}

static int by_param(gconstpointer a, gconstpointer b)
{
    return strcmp(((const struct param_change *)a)->text, ((const struct param_change *)b)->text);
}

static void print_params(struct diff *diff)
{
    struct cli_table *table = cli_table_new("parameter|A|B|>points|scenario");
    const guint shown = lines_of(diff, diff->params->len);
    g_array_sort(diff->params, by_param);
    for (guint i = 0; i < shown; i++) {
        const struct param_change *change = &g_array_index(diff->params, struct param_change, i);
        g_auto(GStrv) parts = g_strsplit(change->text, "\n", 4);
        for (int k = 1; k <= 3; k++)
            cli_table_cell(table, "%s", parts[k]);
        cli_table_cell(table, "%u", change->n_points);
        cli_table_cell(table, "%s", parts[0]);
    }
    if (shown > 0)
        cli_table_print(table, "", stdout);
    else
        printf("no parameter differs\n");
    say_more(shown, diff->params->len);
    cli_table_free(table);
}

/* "A: old.db, 0.1.0 4f2a91c": by which versions the values were found. */
static void print_side(const char *side, const char *path, struct results_db *db)
{
    g_autoptr(GString) versions = g_string_new(NULL);
    struct results_cursor *cursor = results_versions(db);
    for (const char *version; (version = results_next_name(cursor)) != NULL;)
        g_string_append_printf(versions, "%s%s", versions->len > 0 ? "; " : "", version);
    cli_end(cursor);
    printf("%s: %s (%s)\n", side, path, versions->len > 0 ? versions->str : "no finished runs");
}

static int print_all(struct diff *diff)
{
    const struct diff_request *request = diff->request;
    char tolerance[32];
    print_side("A", request->options.arguments[0], diff->a);
    print_side("B", request->options.arguments[1], diff->b);
    print_changes(diff);
    if (!request->common) {
        print_list(diff, "A", diff->only_a);
        print_list(diff, "B", diff->only_b);
    }
    if (request->params)
        print_params(diff);
    g_autoptr(GString) all = g_string_new(NULL);
    g_string_append_printf(
        all,
        "%u values compared: %u changed by more than interval and tolerance (%s %%), %u by "
        "less, %u equal",
        diff->n_equal + diff->changes->len, diff->n_counting,
        cli_number(100.0 * request->tolerance, tolerance), diff->changes->len - diff->n_counting,
        diff->n_equal);
    if (!request->common)
        g_string_append_printf(all, "; only A has %u, only B has %u", diff->only_a->len,
                               diff->only_b->len);
    cli_print_words(all->str, 0);
    return diff->n_counting > 0 || (!request->common && diff->only_a->len > 0) ? CLI_FAILED
                                                                               : CLI_DONE;
}

/* ---- The command ----------------------------------------------------------------------------- */

/* A name that only one side does not know is no mistake: these are. Up to the suggestion, which
 * depends on what else there is. */
static bool both_mistaken(const struct sim_error_list *a, const struct sim_error_list *b)
{
    for (size_t i = 0; i < a->n_messages; i++) {
        for (size_t k = 0; k < b->n_messages; k++) {
            const size_t n = strcspn(a->message[i], ";");
            if (n == strcspn(b->message[k], ";") && strncmp(a->message[i], b->message[k], n) == 0)
                return true;
        }
    }
    return false;
}

static bool read_sets(GPtrArray *sets, struct results_db *db)
{
    bool good = true;
    for (guint i = 0; good && i < sets->len; i++)
        good = result_set_read(sets->pdata[i], db);
    return good;
}

static int compare(struct diff *diff)
{
    if (!read_sets(diff->sets_a, diff->a) || !read_sets(diff->sets_b, diff->b))
        return CLI_FAILED;
    for (guint i = 0; i < diff->sets_a->len; i++) {
        const struct result_set *a = diff->sets_a->pdata[i];
        const struct result_set *b = set_of(diff->sets_b, a->scenario);
        if (b != NULL)
            compare_points(diff, a, b);
    }
    if (diff->n_equal + diff->changes->len == 0) {
        fprintf(stderr, "nudma diff: %s and %s have no point with a metric in common\n",
                diff->request->options.arguments[0], diff->request->options.arguments[1]);
        return CLI_WRONG;
    }
    find_missing(diff->only_a, diff->sets_a, diff->sets_b, diff->b);
    find_missing(diff->only_b, diff->sets_b, diff->sets_a, diff->a);
    if (diff->request->params)
        find_params(diff);
    return results_failed(diff->a) || results_failed(diff->b) ? CLI_FAILED : print_all(diff);
}

static void clear_param(gpointer change)
{
    g_free(((struct param_change *)change)->text);
}

static int compare_databases(const struct diff_request *request, struct results_db *a,
                             struct results_db *b)
{
    const struct result_choice choice = { request->scenarios, request->metrics, request->filters,
                                          NULL };
    struct sim_error_list errors_a = { 0 }, errors_b = { 0 };
    struct diff diff = {
        .request = request,
        .a = a,
        .b = b,
        .changes = g_array_new(FALSE, FALSE, sizeof(struct change)),
        .only_a = g_ptr_array_new_with_free_func(g_free),
        .only_b = g_ptr_array_new_with_free_func(g_free),
        .params = g_array_new(FALSE, FALSE, sizeof(struct param_change)),
        .param_index = g_hash_table_new(g_str_hash, g_str_equal),
    };
    g_array_set_clear_func(diff.params, clear_param);
    diff.sets_a = result_sets_find(a, &choice, &errors_a);
    diff.sets_b = result_sets_find(b, &choice, &errors_b);
    int status = CLI_WRONG;
    if (results_failed(a) || results_failed(b))
        status = CLI_FAILED;
    else if (both_mistaken(&errors_a, &errors_b))
        sim_error_print(&errors_a, stderr);
    else
        status = compare(&diff);
    if (results_failed(a) || results_failed(b))
        status = CLI_FAILED;
    sim_error_release(&errors_a);
    sim_error_release(&errors_b);
    g_ptr_array_free(diff.sets_a, TRUE);
    g_ptr_array_free(diff.sets_b, TRUE);
    g_array_free(diff.changes, TRUE);
    g_ptr_array_free(diff.only_a, TRUE);
    g_ptr_array_free(diff.only_b, TRUE);
    g_hash_table_destroy(diff.param_index);
    g_array_free(diff.params, TRUE);
    return status;
}

/* "1%" or "0.01" */
static bool read_tolerance(struct diff_request *request)
{
    const char *text = request->tolerance_text;
    char *end = NULL;
    if (text == NULL)
        return true;
    request->tolerance = g_ascii_strtod(text, &end);
    const bool percent = strcmp(end, "%") == 0 || strcmp(end, " %") == 0;
    if (percent)
        request->tolerance /= 100.0;
    if (end != text && (percent || *end == '\0') && isfinite(request->tolerance) &&
        request->tolerance >= 0.0)
        return true;
    fprintf(stderr, "nudma diff: --tolerance %s: expected 1%% or a share, 0.01\n", text);
    return false;
}

static int diff_files(struct diff_request *request)
{
    char **paths = request->options.arguments, *message[2] = { NULL, NULL };
    if (g_strv_length(paths) != 2) {
        fprintf(stderr, "nudma diff: expected two databases, A.db and B.db (see --help)\n");
        return CLI_WRONG;
    }
    if (request->limit < 0) {
        fprintf(stderr, "nudma diff: --limit %d: expected 0 or more\n", request->limit);
        return CLI_WRONG;
    }
    if (!read_tolerance(request))
        return CLI_WRONG;
    struct results_db *a = results_open(paths[0], true, &message[0]);
    struct results_db *b = results_open(paths[1], true, &message[1]);
    int status = CLI_WRONG;
    for (int i = 0; i < 2; i++) {
        if (message[i] != NULL)
            fprintf(stderr, "%s\n", message[i]);
        g_free(message[i]);
    }
    if (a != NULL && b != NULL)
        status = cli_snapshot(a) && cli_snapshot(b) ? compare_databases(request, a, b) : CLI_FAILED;
    results_close(a);
    results_close(b);
    return status;
}

int cli_diff(int argc, char **argv)
{
    struct diff_request request = { .options.no_db = true, .limit = 50 };
    const GOptionEntry entries[] = {
        { "scenario", 0, 0, G_OPTION_ARG_STRING_ARRAY, &request.scenarios,
          "Only these: a name, a folder, wildcards (again for more; default: all)", "NAME" },
        { "metric", 'm', 0, G_OPTION_ARG_STRING_ARRAY, &request.metrics,
          "Only these; with * and ? (again for more; default: all)", "NAME" },
        { "filter", 'f', 0, G_OPTION_ARG_STRING_ARRAY, &request.filters,
          "Only points that meet all conditions: 'op=read transfer_bytes>64'", "CONDITION" },
        { "tolerance", 't', 0, G_OPTION_ARG_STRING, &request.tolerance_text,
          "Relative to A, 1% or as a share, 0.01 (so 1 is 100%); smaller differences do not count "
          "(default 0)",
          "T" },
        { "common", 0, 0, G_OPTION_ARG_NONE, &request.common,
          "Only what both have: what B lacks does not count", NULL },
        { "params", 0, 0, G_OPTION_ARG_NONE, &request.params,
          "Also show the parameters that differ", NULL },
        { "all", 0, 0, G_OPTION_ARG_NONE, &request.all, "Also show differences that do not count",
          NULL },
        { "limit", 0, 0, G_OPTION_ARG_INT, &request.limit,
          "Lines of each list (default 50; 0: all)", "N" },
        { .long_name = NULL },
    };
    int status = CLI_DONE;
    if (cli_parse(
            &request.options, "A.db B.db", "Says what changed from results A to results B.",
            "A value has changed if its means differ by more than the 95 % confidence "
            "interval of the difference\nand by more than the tolerance. Exit status 0: "
            "nothing has; 1: something has, or B lacks what A has;\n2: the input is wrong, or "
            "there is nothing to compare.",
            entries, argc, argv, &status))
        status = diff_files(&request);
    cli_options_release(&request.options);
    g_strfreev(request.scenarios);
    g_strfreev(request.metrics);
    g_strfreev(request.filters);
    g_free(request.tolerance_text);
    return status;
}
