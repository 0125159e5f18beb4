/*
 * nudma export: results for other programs. CSV after RFC 4180: a row for each point; JSON after
 * RFC 8259: all that is known of each point. docs/results.md describes both.
 */
#include <math.h>
#include <string.h>

#include "cli/base/csv.h"
#include "cli/base/json.h"
#include "cli/base/scenarios.h"
#include "cli/results/result_older.h"
#include "cli/results/result_samples.h"
#include "sim/store/version.h"

struct export_request {
    struct cli_options options;
    char **metrics, **filters;
    char *format, *output;
    gboolean params, histograms, series;
};

/* What is asked for besides or, in CSV, in place of metrics. */
static struct result_samples samples_of(const struct export_request *request)
{
    return (struct result_samples){ .histograms = request->histograms,
                                    .series = request->series,
                                    .metrics = request->metrics };
}

/* ---- CSV ------------------------------------------------------------------------------------- */

/* The columns of all scenarios together, each once. */
struct csv_columns {
    GPtrArray *axes;   /* char *, owned */
    GArray *metrics;   /* struct result_quantity, not owned */
    GArray *intervals; /* bool: some point has one */
    bool changes;      /* what --set has changed of some point */
};

static bool has_intervals(const struct result_set *set, guint metric)
{
    for (guint i = 0; i < set->points->len; i++) {
        const struct result_point *point = set->points->pdata[i];
        if (point->values[metric].n > 0 && !isnan(point->values[metric].ci95))
            return true;
    }
    return false;
}

static void add_columns(struct csv_columns *columns, const struct result_set *set)
{
    for (guint i = 0; i < set->axes->len; i++) {
        const char *axis = set->axes->pdata[i];
        if (!g_ptr_array_find_with_equal_func(columns->axes, axis, g_str_equal, NULL))
            g_ptr_array_add(columns->axes, g_strdup(axis));
    }
    for (guint i = 0; i < set->metrics->len; i++) {
        const struct result_quantity *quantity = result_metric(set, i);
        const bool intervals = has_intervals(set, i);
        guint k = 0;
        for (; k < columns->metrics->len; k++) {
            const struct result_quantity *known = &g_array_index(columns->metrics,
                                                                 struct result_quantity, k);
            if (strcmp(known->name, quantity->name) == 0 &&
                strcmp(known->unit, quantity->unit) == 0)
                break;
        }
        if (k == columns->metrics->len) {
            g_array_append_vals(columns->metrics, quantity, 1);
            g_array_append_val(columns->intervals, intervals);
        }
        g_array_index(columns->intervals, bool, k) |= intervals;
    }
    for (guint i = 0; i < set->points->len && !columns->changes; i++)
        columns->changes = ((const struct result_point *)set->points->pdata[i])->changes != NULL;
}

static void csv_head(FILE *out, const struct csv_columns *columns)
{
    fputs("scenario", out);
    for (guint i = 0; i < columns->axes->len; i++) {
        putc(',', out);
        csv_text(out, columns->axes->pdata[i]);
    }
    fputs(columns->changes ? ",seeds,set" : ",seeds", out);
    for (guint i = 0; i < columns->metrics->len; i++) {
        const struct result_quantity *quantity = &g_array_index(columns->metrics,
                                                                struct result_quantity, i);
        g_autofree char *name = g_strconcat(quantity->name, ".ci95", NULL);
        const struct result_quantity interval = { name, quantity->unit };
        g_autofree char *title = result_metric_title(quantity);
        g_autofree char *title_ci95 = result_metric_title(&interval);
        putc(',', out);
        csv_text(out, title);
        if (g_array_index(columns->intervals, bool, i)) {
            putc(',', out);
            csv_text(out, title_ci95);
        }
    }
    fputs("\r\n", out);
}

static void csv_row(FILE *out, const struct csv_columns *columns, const struct result_set *set,
                    const int *axis_at, const int *metric_at, const struct result_point *point)
{
    int n_seeds = 0;
    for (guint m = 0; m < set->metrics->len; m++)
        n_seeds = MAX(n_seeds, point->values[m].n);
    csv_text(out, set->scenario);
    for (guint i = 0; i < columns->axes->len; i++) {
        putc(',', out);
        csv_text(out, axis_at[i] >= 0 ? point->axis[axis_at[i]] : "");
    }
    fprintf(out, ",%d", n_seeds);
    if (columns->changes) {
        putc(',', out);
        csv_text(out, point->changes != NULL ? point->changes : "");
    }
    for (guint i = 0; i < columns->metrics->len; i++) {
        const struct result_value *value = metric_at[i] >= 0 ? &point->values[metric_at[i]] : NULL;
        putc(',', out);
        if (value != NULL && value->n > 0)
            csv_number(out, value->mean);
        if (!g_array_index(columns->intervals, bool, i))
            continue;
        putc(',', out);
        if (value != NULL && value->n > 0 && !isnan(value->ci95))
            csv_number(out, value->ci95);
    }
    fputs("\r\n", out);
}

static void csv_set(FILE *out, const struct csv_columns *columns, const struct result_set *set)
{
    g_autofree int *axis_at = g_new(int, columns->axes->len + 1);
    g_autofree int *metric_at = g_new(int, columns->metrics->len + 1);
    for (guint i = 0; i < columns->axes->len; i++) {
        guint k;
        const bool found = g_ptr_array_find_with_equal_func(set->axes, columns->axes->pdata[i],
                                                            g_str_equal, &k);
        axis_at[i] = found ? (int)k : -1;
    }
    for (guint i = 0; i < columns->metrics->len; i++) {
        const struct result_quantity *quantity = &g_array_index(columns->metrics,
                                                                struct result_quantity, i);
        metric_at[i] = result_set_metric(set, quantity->name, quantity->unit);
    }
    for (guint i = 0; i < set->points->len; i++)
        csv_row(out, columns, set, axis_at, metric_at, set->points->pdata[i]);
}

static void export_csv(FILE *out, const GPtrArray *sets)
{
    struct csv_columns columns = {
        .axes = g_ptr_array_new_with_free_func(g_free),
        .metrics = g_array_new(FALSE, FALSE, sizeof(struct result_quantity)),
        .intervals = g_array_new(FALSE, FALSE, sizeof(bool)),
    };
    for (guint i = 0; i < sets->len; i++)
        add_columns(&columns, sets->pdata[i]);
    csv_head(out, &columns);
    for (guint i = 0; i < sets->len; i++)
        csv_set(out, &columns, sets->pdata[i]);
    g_array_free(columns.intervals, TRUE);
    g_array_free(columns.metrics, TRUE);
    g_ptr_array_free(columns.axes, TRUE);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)? */
static bool is_json_number(const char *text)
{
    text += *text == '-';
    if (!g_ascii_isdigit(*text) || (text[0] == '0' && g_ascii_isdigit(text[1])))
        return false;
    text += strspn(text, "0123456789");
    if (*text == '.') {
        if (!g_ascii_isdigit(*++text))
            return false;
        text += strspn(text, "0123456789");
    }
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '-' || *text == '+';
        if (!g_ascii_isdigit(*text))
            return false;
        text += strspn(text, "0123456789");
    }
    return *text == '\0';
}

/* As a number or a truth value if it is written as one. */
static void json_typed(FILE *out, const char *text)
{
    if (is_json_number(text) || strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        fputs(text, out);
    else
        json_text(out, text);
}

static void json_axes(FILE *out, const struct result_set *set, const struct result_point *point)
{
    bool first = true;
    fputs("      \"axes\": {", out);
    for (guint i = 0; i < set->axes->len; i++) {
        if (*point->axis[i] == '\0') /* an axis that other points have */
            continue;
        fputs(first ? " " : ", ", out);
        json_text(out, set->axes->pdata[i]);
        fputs(": ", out);
        json_typed(out, point->axis[i]);
        first = false;
    }
    fputs(" },\n", out);
}

static void json_metrics(FILE *out, const struct result_set *set, const struct result_point *point,
                         char **patterns)
{
    bool first = true;
    fputs("      \"metrics\": {", out);
    for (guint m = 0; m < set->metrics->len; m++) {
        const struct result_value *value = &point->values[m];
        if (value->n == 0 || !result_samples_choose(result_metric(set, m)->name, patterns))
            continue;
        fputs(first ? "\n        " : ",\n        ", out);
        json_text(out, result_metric(set, m)->name);
        fputs(": { \"unit\": ", out);
        json_text(out, result_metric(set, m)->unit);
        fputs(", \"mean\": ", out);
        json_number(out, value->mean);
        fputs(", \"ci95\": ", out);
        json_number(out, value->ci95);
        fprintf(out, ", \"n\": %d }", value->n);
        first = false;
    }
    fputs("\n      }", out);
}

/* The git state is the second word of the version, "0.1.0 4f2a91c". */
static void json_git(FILE *out, const char *version)
{
    g_auto(GStrv) words = g_strsplit(version, " ", 3);
    json_member(out, ", ", "git", words[0] != NULL && words[1] != NULL ? words[1] : "unknown");
}

/* The runs that the means are over, by seed. */
static bool json_runs(FILE *out, struct results_cursor *runs)
{
    bool first = true;
    fputs(",\n      \"runs\": [", out);
    for (const struct results_run *run; (run = results_next_run(runs)) != NULL; first = false) {
        fprintf(out,
                "%s\n        { \"id\": %s, \"seed\": %s, \"wall_s\": %s, \"sim_ps\": %s, "
                "\"events\": %s, \"peak_memory_bytes\": %s",
                first ? "" : ",", run->id, run->seed, run->wall_s, run->sim_ps, run->events,
                run->peak_memory_bytes);
        json_member(out, ", ", "version", run->version);
        json_member(out, ", ", "config_sha256", run->config_sha256);
        json_member(out, ", ", "command_line", run->command_line);
        json_member(out, ", ", "host", run->host);
        json_member(out, ", ", "started_utc", run->started_utc);
        json_member(out, ", ", "fingerprint", run->fingerprint);
        json_git(out, run->version);
        fputs(" }", out);
    }
    fputs("\n      ]", out);
    return cli_end(runs);
}

static bool json_params(FILE *out, struct results_cursor *params)
{
    bool first = true;
    fputs(",\n      \"parameters\": {", out);
    for (const struct results_param *p; (p = results_next_param(params)) != NULL; first = false) {
        fputs(first ? "\n        " : ",\n        ", out);
        json_text(out, p->name);
        fputs(": { \"value\": ", out);
        json_typed(out, p->value);
        json_member(out, ", ", "unit", p->unit);
        json_member(out, ", ", "provenance", p->provenance);
        fputs(" }", out);
    }
    fputs("\n      }", out);
    return cli_end(params);
}

static bool json_point(FILE *out, const struct result_set *set, const struct result_point *point,
                       struct results_db *db, bool with_params,
                       const struct result_samples *samples)
{
    json_member(out, "    {\n      ", "scenario", set->scenario);
    json_member(out, ",\n      ", "point", point->name);
    if (point->changes != NULL)
        json_member(out, ",\n      ", "set", point->changes);
    fputs(",\n", out);
    json_axes(out, set, point);
    json_metrics(out, set, point, samples->metrics);
    const bool good = json_runs(out, results_runs(db, set->scenario, point->name)) &&
                      (!with_params ||
                       json_params(out, results_params(db, set->scenario, point->name))) &&
                      result_samples_json(out, set, point, db, samples);
    fputs("\n    }", out);
    return good;
}

static bool export_json(FILE *out, const GPtrArray *sets, struct results_db *db, bool with_params,
                        const struct result_samples *samples)
{
    bool good = true, first = true;
    g_autofree char *program = g_strconcat("nudma ", sim_version(), NULL);
    json_member(out, "{\n  ", "format", "nudma results 1");
    json_member(out, ",\n  ", "exported_by", program);
    fputs(",\n  \"points\": [", out);
    for (guint i = 0; good && i < sets->len; i++) {
        const struct result_set *set = sets->pdata[i];
        for (guint k = 0; good && k < set->points->len; k++, first = false) {
            fputs(first ? "\n" : ",\n", out);
            good = json_point(out, set, set->points->pdata[k], db, with_params, samples);
        }
    }
    fputs("\n  ]\n}\n", out);
    return good;
}

/* ---- The command ----------------------------------------------------------------------------- */

static bool write_all(const struct export_request *request, const GPtrArray *sets,
                      struct results_db *db)
{
    const bool to_file = request->output != NULL;
    struct cli_output *output = to_file ? cli_output_new(request->output) : NULL;
    bool good = true;
    if (to_file && output == NULL)
        return false;
    FILE *out = to_file ? cli_output_file(output) : stdout;
    const struct result_samples samples = samples_of(request);
    if (strcmp(request->format, "json") == 0)
        good = export_json(out, sets, db, request->params, &samples);
    else if (samples.histograms || samples.series)
        good = result_samples_csv(out, sets, db, &samples);
    else
        export_csv(out, sets);
    if (!to_file)
        return good; /* main() sees whether standard output arrived */
    return cli_output_end(output, good) && good;
}

static int export_results(struct export_request *request)
{
    cli_name_scenario_files(&request->options);
    const struct result_samples samples = samples_of(request);
    const bool of_samples = samples.histograms || samples.series;
    const struct result_choice choice = { request->options.arguments,
                                          of_samples ? NULL : request->metrics, request->filters,
                                          NULL };
    struct sim_error_list errors = { 0 };
    struct results_db *db = cli_open_for_reading(&request->options);
    if (db == NULL)
        return CLI_FAILED;
    if (!cli_snapshot(db)) {
        results_close(db);
        return CLI_FAILED;
    }
    g_autoptr(GPtrArray) sets = result_sets_find(db, &choice, &errors);
    int status = results_failed(db) ? CLI_FAILED : errors.n_messages > 0 ? CLI_WRONG : CLI_DONE;
    for (guint i = 0; status == CLI_DONE && i < sets->len; i++) {
        const char *name = ((const struct result_set *)sets->pdata[i])->scenario;
        g_autofree char *older = result_older_by_name(db, name, request->options.roots);
        if (older != NULL)
            fprintf(stderr, "%s: of an older text of the scenario: %s\n", name, older);
        if (!result_set_read(sets->pdata[i], db))
            status = CLI_FAILED;
    }
    if (status == CLI_DONE && of_samples && !result_samples_check(sets, db, &samples, &errors))
        status = errors.n_messages > 0 ? CLI_WRONG : CLI_FAILED;
    if (status == CLI_DONE && !write_all(request, sets, db))
        status = CLI_FAILED;
    cli_report(&errors);
    results_close(db);
    return status;
}

/* As the file ends; of standard output csv. NULL if it ends otherwise. g_free(). */
static char *format_of(const char *output)
{
    if (output == NULL || strcmp(output, "-") == 0 || g_str_has_suffix(output, ".csv"))
        return g_strdup("csv");
    return g_str_has_suffix(output, ".json") ? g_strdup("json") : NULL;
}

static bool is_sound(struct export_request *request)
{
    if (request->format == NULL)
        request->format = format_of(request->output);
    const char *format = request->format;
    if (format != NULL && (strcmp(format, "csv") == 0 || strcmp(format, "json") == 0)) {
        const bool both = request->histograms && request->series;
        if (strcmp(format, "json") == 0 || (!request->params && !both))
            return true;
        fprintf(stderr, "nudma export: --%s: csv has no place for them, json has\n",
                both ? "histograms --series" : "params");
        return false;
    }
    if (format == NULL)
        fprintf(stderr,
                "nudma export: --output %s: ends neither with .csv nor with .json: --format "
                "says which it is\n",
                request->output);
    else
        fprintf(stderr, "nudma export: --format \"%s\": expected csv or json\n", format);
    return false;
}

int cli_export(int argc, char **argv)
{
    struct export_request request = { .format = NULL };
    const GOptionEntry entries[] = {
        { "format", 'F', 0, G_OPTION_ARG_STRING, &request.format,
          "csv or json (default: as FILE ends; csv on standard output)", "FORMAT" },
        { "metric", 'm', 0, G_OPTION_ARG_STRING_ARRAY, &request.metrics,
          "Only these; with * and ? (again for more; default: all)", "NAME" },
        { "filter", 'f', 0, G_OPTION_ARG_STRING_ARRAY, &request.filters,
          "Only points that meet all conditions: 'op=read transfer_bytes>64'", "CONDITION" },
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &request.output,
          "Write to FILE (default: standard output)", "FILE" },
        { "params", 0, 0, G_OPTION_ARG_NONE, &request.params,
          "With every parameter of each point (json)", NULL },
        { "histograms", 0, 0, G_OPTION_ARG_NONE, &request.histograms,
          "Distributions: in csv a row for each bucket, in place of metrics", NULL },
        { "series", 0, 0, G_OPTION_ARG_NONE, &request.series,
          "What was recorded over time: in csv a row for each sample, in place of metrics", NULL },
        { .long_name = NULL },
    };
    int status = CLI_DONE;
    if (cli_parse(
            &request.options, "[SCENARIO...]", "Writes results for other programs.",
            "SCENARIO is a name, a folder of names, or has wildcards: 'pcie_bench/*'. Without: "
            "all that have results.\ncsv has a row for each point: its axes, then its "
            "metrics with their units in the head;\njson also has intervals, and for each "
            "run its seed, version, host, command line and fingerprint.",
            entries, argc, argv, &status))
        status = is_sound(&request) && cli_writes_elsewhere(request.output, &request.options, NULL)
                     ? export_results(&request)
                     : CLI_WRONG;
    cli_options_release(&request.options);
    g_strfreev(request.metrics);
    g_strfreev(request.filters);
    g_free(request.format);
    g_free(request.output);
    return status;
}
