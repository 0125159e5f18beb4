/* nudma calibrate: named parameters are fitted to named baselines; nothing else is. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/blame.h"
#include "cli/base/scenarios.h"
#include "cli/campaign/stop.h"
#include "cli/commands/calibrate.h"

/* ---- What was asked for ---------------------------------------------------------------------- */

/* "PATH", "PATH=lo..hi" */
static bool split_param(char *text, double *lo, double *hi)
{
    char *equals = strchr(text, '='), *end = NULL;
    if (equals == NULL)
        return true;
    *equals = '\0';
    char *dots = strstr(equals + 1, ".."); /* strtod() would take the first of them */
    if (dots == NULL)
        return false;
    *dots = '\0';
    *lo = g_ascii_strtod(equals + 1, &end);
    if (end == equals + 1 || *end != '\0')
        return false;
    *hi = g_ascii_strtod(dots + 2, &end);
    return end != dots + 2 && *end == '\0' && *lo < *hi;
}

struct current {
    const char *path;
    char *value, *origin;
};

static void take_current(void *context, const char *path, const char *value, const char *unit,
                         enum param_provenance provenance, const char *origin)
{
    struct current *current = context;
    (void)unit, (void)provenance;
    if (strcmp(path, current->path) != 0)
        return;
    current->value = g_strdup(value);
    current->origin = g_strdup(origin);
}

static void collect_path(void *context, const char *path, const char *value, const char *unit,
                         enum param_provenance provenance, const char *origin)
{
    (void)value, (void)unit, (void)provenance, (void)origin;
    g_ptr_array_add(context, g_strdup(path));
}

static void unknown_param(const struct config *config, const char *path, const char *scenario,
                          struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    config_each_param(config, collect_path, paths);
    g_ptr_array_add(paths, NULL);
    g_autofree char *suggestion = sim_suggestion(path, (const char *const *)paths->pdata);
    sim_error_add(errors, NULL, 0, "--param %s: no such parameter in %s%s%s", path, scenario,
                  *suggestion != '\0' ? "; " : "", suggestion);
}

/* What cannot be fitted: names and switches, and what describes the experiment. */
static const char *unfit(const struct param_desc *desc)
{
    if (desc->type == PARAM_BOOL || desc->type == PARAM_ENUM || desc->type == PARAM_STRING)
        return "is no quantity";
    if (desc->provenance == PROV_NONE)
        return "describes the experiment, not the hardware";
    return NULL;
}

/* One parameter at one point: its entry, and its value if that is not known yet. */
static void look_up(struct trial_param *param, const struct config *config,
                    const struct trial_point *point, struct sim_error_list *errors)
{
    const struct param_desc *desc = config_param_desc(config, param->path);
    struct current current = { .path = param->path };
    if (desc == NULL) {
        unknown_param(config, param->path, scenario_name(point->scenario), errors);
        return;
    }
    config_each_param(config, take_current, &current);
    if (unfit(desc) != NULL)
        sim_error_add(errors, NULL, 0, "--param %s: %s", param->path, unfit(desc));
    if (g_str_has_prefix(current.origin, "axis "))
        sim_error_add(errors, NULL, 0, "--param %s: %s of %s sets it", param->path, current.origin,
                      scenario_name(point->scenario));
    if (param->desc == NULL && unfit(desc) == NULL)
        param->start = g_ascii_strtod(current.value, NULL);
    param->desc = desc;
    g_free(current.value);
    g_free(current.origin);
}

/* Within the range of the table; that is the default too. */
static void bound(struct trial_param *param, struct sim_error_list *errors)
{
    const struct param_desc *desc = param->desc;
    char lo[32], hi[32], start[32];
    if (desc == NULL || unfit(desc) != NULL)
        return;
    const bool limits = desc->lo < desc->hi && desc->hi < 0x1p53;
    if (isnan(param->lo) && !limits) {
        sim_error_add(errors, NULL, 0, "--param %s: has no range of its own; give one, %s=lo..hi",
                      param->path, param->path);
        return;
    }
    param->lo = isnan(param->lo) ? desc->lo : param->lo;
    param->hi = isnan(param->hi) ? desc->hi : param->hi;
    if (limits && (param->lo < desc->lo || param->hi > desc->hi))
        sim_error_add(errors, NULL, 0, "--param %s: the range has to be within %s..%s", param->path,
                      cli_number(desc->lo, lo), cli_number(desc->hi, hi));
    if (param->start < param->lo || param->start > param->hi)
        sim_error_add(errors, NULL, 0, "--param %s: is %s, outside %s..%s; start within with --set",
                      param->path, cli_number(param->start, start), cli_number(param->lo, lo),
                      cli_number(param->hi, hi));
}

/* Builds every point once: its own mistakes, and what it says of the parameters. */
static void read_params(struct calibration *c, struct sim_error_list *errors)
{
    for (guint i = 0; i < c->trials.points->len; i++) {
        const struct trial_point *point = &g_array_index(c->trials.points, struct trial_point, i);
        struct config *config = cli_checked_point(point->scenario, point->index, errors);
        for (guint k = 0; config != NULL && k < c->trials.params->len; k++)
            look_up(calibration_param(c, k), config, point, errors);
        config_free(config);
    }
    for (guint k = 0; k < c->trials.params->len; k++)
        bound(calibration_param(c, k), errors);
}

static void list_params(struct calibration *c, struct sim_error_list *errors)
{
    const double none = (double)NAN;
    for (char **text = c->param_texts; text != NULL && *text != NULL; text++) {
        struct trial_param param = { .lo = none, .hi = none, .start = none };
        if (!split_param(*text, &param.lo, &param.hi))
            sim_error_add(errors, NULL, 0, "--param %s: expected PATH or PATH=lo..hi with lo < hi",
                          *text);
        param.path = *text;
        for (guint i = 0; i < c->trials.params->len; i++) {
            if (strcmp(calibration_param(c, i)->path, param.path) == 0)
                sim_error_add(errors, NULL, 0, "--param %s: named twice", param.path);
        }
        g_array_append_val(c->trials.params, param);
    }
    if (c->trials.params->len == 0)
        sim_error_add(errors, NULL, 0, "which parameters? (--param PATH)");
    if (c->trials.params->len > MINIMISE_VARIABLES_MAX)
        sim_error_add(errors, NULL, 0, "more than %d parameters", MINIMISE_VARIABLES_MAX);
}

static void unknown_claim(const struct calibration *c, const char *id,
                          struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) ids = g_ptr_array_new();
    for (guint i = 0; i < c->files->len; i++) {
        const struct claims_file *file = c->files->pdata[i];
        for (guint k = 0; k < file->claims->len; k++)
            g_ptr_array_add(ids, (gpointer)(uintptr_t)claims_at(file, k)->id);
    }
    g_ptr_array_add(ids, NULL);
    g_autofree char *suggestion = sim_suggestion(id, (const char *const *)ids->pdata);
    sim_error_add(errors, NULL, 0, "--claim %s: no such claim%s%s", id,
                  *suggestion != '\0' ? "; " : "", suggestion);
}

/* Named claims have to be baselines, and their points among those of the scenarios. */
static void list_claims(struct calibration *c, struct sim_error_list *errors)
{
    for (char **id = c->claim_ids; id != NULL && *id != NULL; id++) {
        struct claim *claim = claims_find(c->files, *id);
        if (claim == NULL)
            unknown_claim(c, *id, errors);
        else if (!claim->baseline)
            sim_error_add(errors, config_file(claim->node), config_line(claim->node),
                          "%s: has use K: it has to come out by itself, and nothing may be fitted "
                          "to it (use C marks the baselines)",
                          *id);
        else if (!trials_add_claim(&c->trials, claim, true))
            sim_error_add(errors, NULL, 0, "--claim %s: its point is not one of the scenarios: %s",
                          *id, claim->expr);
        else if (!g_ptr_array_find(c->fitted, claim, NULL))
            g_ptr_array_add(c->fitted, claim);
    }
    if (c->claim_ids == NULL)
        sim_error_add(errors, NULL, 0, "which claims? (--claim ID)");
    for (guint i = 0; i < c->files->len; i++) {
        const struct claims_file *file = c->files->pdata[i];
        for (guint k = 0; k < file->claims->len; k++) {
            if (trials_add_claim(&c->trials, claims_at(file, k), false))
                g_ptr_array_add(c->all, claims_at(file, k));
        }
    }
}

/* ---- The search ------------------------------------------------------------------------------ */

/* In units of half of what is accepted, so that tight claims weigh more: 1 is just within. */
static double distance(const struct claim *claim, double value)
{
    const double half = (claim->hi - claim->lo) / 2.0, target = claim_target(claim);
    return (value - target) / (half > 0.0 ? half : fabs(target) / 100.0);
}

/* "96.5 12": what the parameters can take nearest to x. */
static char *values_text(const struct calibration *c, const double *x)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < c->trials.params->len; i++) {
        g_autofree char *value = trials_value_text(calibration_param(c, i), x[i]);
        g_string_append_printf(text, "%s%s", i > 0 ? " " : "", value);
    }
    return g_string_free(text, FALSE);
}

static double run_trial(struct calibration *c, const double *x)
{
    double sum = 0.0;
    if (!trials_run(&c->trials, x, true))
        return (double)INFINITY;
    for (guint i = 0; i < c->fitted->len; i++) {
        const struct claim *claim = calibration_claim(c->fitted, i);
        const double d = distance(claim, trials_claim(&c->trials, claim));
        sum += isnan(d) ? (double)INFINITY : d * d;
    }
    return sum;
}

/* A search comes back to where it was, above all near the end. */
static double cost(void *context, const double *x)
{
    struct calibration *c = context;
    g_autofree char *values = values_text(c, x);
    const double *known = g_hash_table_lookup(c->costs, values);
    if (known == NULL) {
        const double sum = run_trial(c, x);
        if (stop_has_come(c->trials.stop_fd))
            return (double)INFINITY;
        if (sum < c->best) {
            c->best = sum;
            memcpy(c->best_x, x, c->trials.params->len * sizeof(*x));
        }
        if (!c->quiet)
            fprintf(stderr, "trial %s: cost %.6g\n", values, sum);
        g_hash_table_insert(c->costs, g_strdup(values), g_memdup2(&sum, sizeof(sum)));
        known = g_hash_table_lookup(c->costs, values);
    }
    return *known;
}

/* All claims at x. */
bool calibration_measure(struct calibration *c, const double *x, double *values)
{
    if (!trials_run(&c->trials, x, false))
        return false;
    for (guint i = 0; i < c->all->len; i++)
        values[i] = trials_claim(&c->trials, calibration_claim(c->all, i));
    return true;
}

static bool fit(struct calibration *c)
{
    double lo[MINIMISE_VARIABLES_MAX], hi[MINIMISE_VARIABLES_MAX];
    for (guint i = 0; i < c->trials.params->len; i++) {
        lo[i] = calibration_param(c, i)->lo;
        hi[i] = calibration_param(c, i)->hi;
        c->x[i] = calibration_param(c, i)->start;
    }
    if (!calibration_measure(c, c->x, c->before))
        return false;
    c->search = (struct minimise){ .n = c->trials.params->len,
                                   .lo = lo,
                                   .hi = hi,
                                   .tolerance = c->tolerance,
                                   .max_evaluations = (unsigned)c->max_evaluations,
                                   .cost = cost,
                                   .context = c };
    minimise(&c->search, c->x);
    for (guint i = 0; i < c->trials.params->len; i++)
        c->x[i] = trials_value(calibration_param(c, i), c->x[i]);
    return calibration_measure(c, c->x, c->after);
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* What a search that was stopped has come to: runs are not kept, values can be begun with. */
static void print_best(const struct calibration *c)
{
    g_autofree char *typed = cli_typed(c->command_line);
    g_autoptr(GString) again = g_string_new(typed);
    const bool any = isfinite(c->best);
    for (guint i = 0; any && i < c->trials.params->len; i++) {
        const struct trial_param *param = calibration_param(c, i);
        g_autofree char *value = trials_value_text(param, c->best_x[i]);
        g_autofree char *set = g_strconcat(param->path, "=", value, NULL);
        g_autofree char *quoted = g_shell_quote(set);
        printf("%s = %s\n", param->path, value);
        g_string_append_printf(again, " --set %s", quoted);
    }
    fflush(stdout);
    if (any)
        fprintf(stderr,
                "interrupted: the best of %u trials so far, of cost %.6g; go on from it with\n",
                g_hash_table_size(c->costs), c->best);
    else
        fprintf(stderr, "interrupted before any trial has ended; begin again with\n");
    fprintf(stderr, "  %s\n", again->str);
}

static int calibrate(struct calibration *c)
{
    c->before = g_new0(double, c->all->len);
    c->after = g_new0(double, c->all->len);
    c->best = (double)INFINITY;
    c->tables = g_strcmp0(c->write_path, "-") == 0 ? stderr : stdout;
    struct stop stop;
    stop_begin(&stop);
    c->trials.stop_fd = stop.fd;
    bool good = fit(c);
    if (good) {
        const bool fitted = calibration_print_fit(c);
        good = calibration_print_sensitivity(c);
        good = good && (c->write_path == NULL || calibration_write(c)) && fitted &&
               c->search.converged && c->trials.error == NULL;
    }
    const bool stopped = stop_has_come(stop.fd);
    c->trials.stop_fd = -1;
    stop_end(&stop);
    if (stopped)
        print_best(c);
    else if (c->trials.error != NULL)
        fprintf(stderr, "a trial failed: %s\n", c->trials.error);
    g_free(c->before);
    g_free(c->after);
    return stopped ? CLI_INTERRUPTED : good ? CLI_DONE : CLI_FAILED;
}

/* ---- The command ----------------------------------------------------------------------------- */

static bool in_ranges(const struct calibration *c)
{
    if (c->n_workers >= 1 && c->n_workers <= 4096 && c->max_evaluations >= 1 && c->seed >= 0 &&
        c->tolerance > 0.0 && c->tolerance < 1.0)
        return true;
    fprintf(stderr, "nudma calibrate: expected -j and --max-trials of 1 or more, --seed of 0 or "
                    "more, --tolerance between 0 and 1\n");
    return false;
}

static int prepare_and_calibrate(struct calibration *c)
{
    static char *const none[] = { NULL };
    struct sim_error_list errors = { 0 };
    g_autofree char *message = NULL;
    int status = CLI_WRONG;
    c->trials.params = g_array_new(FALSE, TRUE, sizeof(struct trial_param));
    c->trials.n_workers = (unsigned)c->n_workers;
    c->trials.seed = (uint64_t)c->seed;
    c->trials.scenarios = cli_load_scenarios(&c->options, c->options.arguments,
                                             (const char *const *)c->sets, &errors);
    c->files = claims_load(&c->options, (char **)(uintptr_t)none, &errors);
    claims_load_beside(c->files, c->trials.scenarios, &errors);
    c->costs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    c->fitted = g_ptr_array_new();
    c->all = g_ptr_array_new();
    if (!trials_init(&c->trials, &message)) {
        fprintf(stderr, "%s\n", message);
        status = CLI_FAILED;
    } else {
        list_params(c, &errors);
        if (errors.n_messages == 0)
            list_claims(c, &errors);
        if (errors.n_messages == 0)
            read_params(c, &errors);
        if (errors.n_messages == 0)
            status = calibrate(c);
    }
    cli_report(&errors);
    trials_release(&c->trials);
    g_hash_table_destroy(c->costs);
    g_ptr_array_free(c->all, TRUE);
    g_ptr_array_free(c->fitted, TRUE);
    g_ptr_array_free(c->files, TRUE);
    g_ptr_array_free(c->trials.scenarios, TRUE);
    g_array_free(c->trials.params, TRUE);
    return status;
}

int cli_calibrate(int argc, char **argv)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    struct calibration c = { .options.no_db = true,
                             .n_workers = online > 0 ? (int)online : 1,
                             .max_evaluations = 200,
                             .seed = 1,
                             .tolerance = 1e-4 };
    c.command_line = cli_command_line("calibrate", argc, argv);
    const GOptionEntry entries[] = {
        { "param", 'p', 0, G_OPTION_ARG_STRING_ARRAY, &c.param_texts,
          "Fit this parameter, within lo..hi or its own range", "PATH[=lo..hi]" },
        { "claim", 'c', 0, G_OPTION_ARG_STRING_ARRAY, &c.claim_ids, "To this claim, of use C",
          "ID" },
        { "write", 'w', 0, G_OPTION_ARG_FILENAME, &c.write_path,
          "Write the fitted values to FILE, as settings with provenance", "FILE" },
        { "set", 's', 0, G_OPTION_ARG_STRING_ARRAY, &c.sets,
          "Change a setting of every scenario named, as in nudma run", "PATH=VALUE" },
        { "jobs", 'j', 0, G_OPTION_ARG_INT, &c.n_workers,
          "Run N points at a time (default: one per processor)", "N" },
        { "seed", 0, 0, G_OPTION_ARG_INT64, &c.seed, "The seed of all runs (default 1)", "S" },
        { "max-trials", 0, 0, G_OPTION_ARG_INT, &c.max_evaluations,
          "Give up after about N trials (default 200)", "N" },
        { "tolerance", 0, 0, G_OPTION_ARG_DOUBLE, &c.tolerance,
          "Find values to this share of their range (default 1e-4)", "SHARE" },
        { "quiet", 'q', 0, G_OPTION_ARG_NONE, &c.quiet, "Do not print the trials", NULL },
        { .long_name = NULL },
    };
    int status = CLI_DONE;
    if (cli_parse(&c.options, "SCENARIO...",
                  "Fits parameters to published baselines, and shows what every claim of the "
                  "scenarios depends on.",
                  "Claims of use K have to come out by themselves: nothing is fitted to them. The "
                  "database is not touched.",
                  entries, argc, argv, &status)) {
        status = CLI_WRONG;
        if (*c.options.arguments == NULL)
            fprintf(stderr, "nudma calibrate: which scenario? (nudma list shows them)\n");
        else if (cli_writes_elsewhere(c.write_path, &c.options, NULL) && in_ranges(&c))
            status = prepare_and_calibrate(&c);
    }
    g_strfreev(c.param_texts);
    g_strfreev(c.claim_ids);
    g_strfreev(c.sets);
    g_free(c.write_path);
    g_free(c.command_line);
    cli_options_release(&c.options);
    return status;
}
