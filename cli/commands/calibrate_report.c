/* What a fit came to: tables, sensitivities, the file of values. */
#include <math.h>
#include <string.h>

#include "cli/commands/calibrate.h"

#define SENSITIVITY_STEP 0.05 /* of a parameter, to either side: beyond the noise of short runs */

/* ---- Sensitivity ----------------------------------------------------------------------------- */

/* d ln claim / d ln parameter between the values a and b of the parameter; NAN where there is no
 * logarithm. */
static double elasticity(double value_a, double value_b, double a, double b)
{
    if (!(value_a > 0.0 && value_b > 0.0 && a > 0.0 && b > a))
        return (double)NAN;
    return (log(value_b) - log(value_a)) / (log(b) - log(a));
}

/* Integers take a step of one at least. */
static double moved(const struct trial_param *param, double x, double sign)
{
    const bool whole = param->desc->type == PARAM_U32 || param->desc->type == PARAM_U64;
    const double step = fmax(fabs(x) * SENSITIVITY_STEP, whole ? 1.0 : 0.0);
    return trials_value(param, fmin(fmax(x + sign * step, param->lo), param->hi));
}

/* One column for each parameter, claim by claim. */
static bool measure_sensitivity(struct calibration *c, guint column, double *sensitivity)
{
    double x[MINIMISE_VARIABLES_MAX];
    g_autofree double *below = g_new0(double, c->all->len), *above = g_new0(double, c->all->len);
    const struct trial_param *param = calibration_param(c, column);
    memcpy(x, c->x, sizeof(x));
    const double a = moved(param, c->x[column], -1.0), b = moved(param, c->x[column], 1.0);
    x[column] = a;
    bool good = calibration_measure(c, x, below);
    x[column] = b;
    good = good && calibration_measure(c, x, above);
    for (guint i = 0; i < c->all->len && good; i++)
        sensitivity[i] = elasticity(below[i], above[i], a, b);
    return good;
}

static const char *short_path(const struct calibration *c, guint column)
{
    const char *path = calibration_param(c, column)->path, *dot = strrchr(path, '.');
    const char *name = dot != NULL ? dot + 1 : path;
    for (guint i = 0; i < c->trials.params->len; i++) {
        if (i != column && g_str_has_suffix(calibration_param(c, i)->path, name))
            return path;
    }
    return name;
}

bool calibration_print_sensitivity(struct calibration *c)
{
    const guint n = c->trials.params->len;
    g_autofree double *sensitivity = g_new0(double, (gsize)n * c->all->len);
    struct cli_table *table = cli_table_new(NULL);
    bool good = true;
    cli_table_column(table, "claim", false);
    cli_table_column(table, "use", false);
    for (guint p = 0; p < n; p++) {
        good = good && measure_sensitivity(c, p, sensitivity + (gsize)p * c->all->len);
        cli_table_column(table, short_path(c, p), true);
    }
    for (guint i = 0; i < c->all->len && good; i++) {
        cli_table_cell(table, "%s", calibration_claim(c->all, i)->id);
        cli_table_cell(table, "%s", calibration_claim(c->all, i)->baseline ? "C" : "K");
        for (guint p = 0; p < n; p++) {
            const double value = sensitivity[(gsize)p * c->all->len + i];
            if (isnan(value))
                cli_table_cell(table, "-");
            else
                cli_table_cell(table, "%.3f", fabs(value) < 0.0005 ? 0.0 : value);
        }
    }
    if (good) {
        fputc('\n', c->tables);
        cli_print_line(c->tables, "sensitivity: d ln claim / d ln parameter, at the fit");
        cli_table_print(table, "", c->tables);
    }
    cli_table_free(table);
    return good;
}

/* ---- What came of it ------------------------------------------------------------------------- */

static void print_params(const struct calibration *c)
{
    struct cli_table *table = cli_table_new("parameter|unit|range|>before|>fitted");
    for (guint i = 0; i < c->trials.params->len; i++) {
        const struct trial_param *param = calibration_param(c, i);
        char lo[32], hi[32];
        g_autofree char *before = trials_value_text(param, param->start);
        g_autofree char *after = trials_value_text(param, c->x[i]);
        cli_table_cell(table, "%s", param->path);
        cli_table_cell(table, "%s", param_unit(param->desc));
        cli_table_cell(table, "%s..%s", cli_number(param->lo, lo), cli_number(param->hi, hi));
        cli_table_cell(table, "%s", before);
        cli_table_cell(table, "%s", after);
    }
    cli_table_print(table, "", c->tables);
    cli_table_free(table);
}

static bool holds(const struct claim *claim, double value)
{
    return value >= claim->lo && value <= claim->hi;
}

/* True if all fitted claims hold. */
static bool print_claims(const struct calibration *c)
{
    struct cli_table *table =
        cli_table_new("claim|>published|accepted|>before|>fitted|>error %|verdict");
    bool good = true;
    for (guint i = 0; i < c->all->len; i++) {
        struct claim claim = *calibration_claim(c->all, i);
        char text[32];
        if (!g_ptr_array_find(c->fitted, c->all->pdata[i], NULL))
            continue;
        claim.value = c->after[i];
        good = good && holds(&claim, claim.value);
        cli_table_cell(table, "%s", claim.id);
        cli_table_cell(table, "%s", claim.published);
        cli_table_cell(table, "%g..%g", claim.lo, claim.hi);
        cli_table_cell(table, "%s", cli_number(c->before[i], text));
        cli_table_cell(table, "%s", cli_number(c->after[i], text));
        cli_table_cell(table, "%s", claim_error_text(&claim, text));
        cli_table_cell(table, "%s", holds(&claim, claim.value) ? "ok" : "MISS");
    }
    fputc('\n', c->tables);
    cli_table_print(table, "", c->tables);
    cli_table_free(table);
    return good;
}

/* What the fit did to everything else: fitting is no licence to break predictions. */
static void print_others(const struct calibration *c)
{
    unsigned n = 0, n_before = 0, n_after = 0;
    for (guint i = 0; i < c->all->len; i++) {
        const struct claim *claim = calibration_claim(c->all, i);
        if (claim->baseline)
            continue;
        n++;
        n_before += holds(claim, c->before[i]);
        n_after += holds(claim, c->after[i]);
    }
    fputc('\n', c->tables);
    cli_print_line(c->tables, "cost %.6g after %u trials%s; %u runs of points", c->search.best,
                   g_hash_table_size(c->costs),
                   c->search.converged ? "" : ", given up (--max-trials allows more)",
                   c->trials.n_runs);
    if (n > 0)
        cli_print_line(
            c->tables,
            "predictions (K) of these scenarios that hold: %u of %u before, %u of %u now", n_before,
            n, n_after, n);
}

bool calibration_print_fit(const struct calibration *c)
{
    print_params(c);
    const bool good = print_claims(c);
    print_others(c);
    return good;
}

/* ---- The file -------------------------------------------------------------------------------- */

static char *claim_names(const struct calibration *c)
{
    GString *names = g_string_new(NULL);
    for (guint i = 0; i < c->fitted->len; i++)
        g_string_append_printf(names, "%s%s", i > 0 ? ", " : "",
                               calibration_claim(c->fitted, i)->id);
    return g_string_free(names, FALSE);
}

static int by_path(gconstpointer a, gconstpointer b)
{
    return strcmp(((const struct trial_param *)a)->path, ((const struct trial_param *)b)->path);
}

/* Closes the groups of the path before that the next one is not in, opens its others. */
static void change_group(GString *text, char **before, char **next)
{
    const guint n_before = g_strv_length(before), n_next = g_strv_length(next);
    guint shared = 0;
    while (shared < n_before && shared < n_next && strcmp(before[shared], next[shared]) == 0)
        shared++;
    for (guint k = n_before; k > shared; k--)
        g_string_append_printf(text, "%*s};\n", (int)(4 * (k - 1)), "");
    for (guint k = shared; k < n_next; k++)
        g_string_append_printf(text, "%*s%s = {\n", (int)(4 * k), "", next[k]);
}

/* In groups: "hosts.server.dram.controller_ns" as hosts = { server = { ... }; }. */
static char *file_text(const struct calibration *c)
{
    GString *text = g_string_new(NULL);
    g_autoptr(GArray) params = g_array_new(FALSE, FALSE, sizeof(struct trial_param));
    g_autofree char *names = claim_names(c);
    g_auto(GStrv) group = g_new0(char *, 1);
    g_auto(GStrv) none = g_new0(char *, 1);
    g_string_append_printf(text,
                           "# Fitted by: %s\n"
                           "# Used with --set @FILE, or by a scenario with set = ( \"@FILE\" );\n",
                           c->command_line);
    for (guint i = 0; i < c->trials.params->len; i++) {
        struct trial_param param = *calibration_param(c, i);
        param.start = c->x[i];
        g_array_append_val(params, param);
    }
    g_array_sort(params, by_path);
    for (guint i = 0; i < params->len; i++) {
        const struct trial_param *param = &g_array_index(params, struct trial_param, i);
        char **parts = g_strsplit(param->path, ".", -1);
        const guint depth = g_strv_length(parts) - 1;
        g_autofree char *key = parts[depth], *value = trials_value_text(param, param->start);
        parts[depth] = NULL;
        change_group(text, group, parts);
        g_string_append_printf(text,
                               "%*s%s = { value = %s; provenance = \"calibrated\"; "
                               "source = \"claims %s\"; };\n",
                               (int)(4 * depth), "", key, value, names);
        g_strfreev(group);
        group = parts;
    }
    change_group(text, group, none);
    return g_string_free(text, FALSE);
}

bool calibration_write(const struct calibration *c)
{
    struct cli_output *output = cli_output_new(c->write_path);
    if (output == NULL)
        return false;
    g_autofree char *text = file_text(c);
    fputs(text, cli_output_file(output));
    const bool written = cli_output_end(output, true);
    if (written && strcmp(c->write_path, "-") != 0) {
        puts("");
        cli_print_line(stdout, "written to %s; runs use it with --set @%s", c->write_path,
                       c->write_path);
    }
    return written;
}
