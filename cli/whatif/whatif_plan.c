/*
 * What-ifs as points of a plan. A run is stored as the point "<filter's point> <settings>", so that
 * questions with a run in common share it, and results of different settings do not mix.
 */
#include <math.h>
#include <string.h>

#include "cli/plot/plot_spec.h"
#include "cli/whatif/whatif.h"
#include "workloads/experiment.h"

struct planner {
    const struct cli_options *options;
    struct plan *plan;
    GHashTable *index; /* "scenario point" -> index of the plan's point + 1; keys owned */
};

/* `base`, then `change`; NULL-terminated. Both may be NULL. */
static GPtrArray *join_settings(const GPtrArray *base, const GPtrArray *change)
{
    const GPtrArray *const lists[] = { base, change };
    GPtrArray *all = g_ptr_array_new();
    for (unsigned i = 0; i < 2; i++)
        for (guint k = 0; lists[i] != NULL && k + 1 < lists[i]->len; k++)
            g_ptr_array_add(all, lists[i]->pdata[k]);
    g_ptr_array_add(all, NULL);
    return all;
}

/* "a=1 b=2", for messages and names; g_free(). */
static char *settings_text(const GPtrArray *settings)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i + 1 < settings->len; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? " " : "", (const char *)settings->pdata[i]);
    return g_string_free(text, FALSE);
}

/* The one point that the question's filter leaves; scenario_n_points() with a mistake if it is not
 * one. */
static size_t find_point(const struct whatif *whatif, struct scenario *scenario,
                         struct sim_error_list *errors)
{
    const size_t n = scenario_n_points(scenario), before = errors->n_messages;
    const char *const filters[] = { whatif->filter, NULL };
    const struct filter_table table = scenario_table(scenario);
    g_autofree bool *selected = g_new(bool, n);
    size_t n_selected = 0, found = n;
    memset(selected, true, n * sizeof(*selected));
    g_autoptr(GPtrArray) parsed = cli_filters(filters, "filter", errors);
    for (guint i = 0; i < parsed->len; i++) {
        g_autofree char *fault = filter_fault(parsed->pdata[i], &table, 1);
        if (fault != NULL)
            sim_error_add(errors, NULL, 0, "filter: %s", fault);
        filter_apply(parsed->pdata[i], &table, selected);
    }
    for (size_t i = n; i-- > 0;) {
        if (selected[i]) {
            n_selected++;
            found = i;
        }
    }
    if (errors->n_messages == before && n_selected != 1)
        sim_error_add(errors, NULL, 0, "filter: leaves %zu points of %s, expected one", n_selected,
                      scenario_name(scenario));
    return errors->n_messages == before ? found : n;
}

/* What scenario_load() takes: a file beside that of the question, if there is one; g_free(). */
static char *scenario_place(const struct whatif *whatif)
{
    const char *asked = whatif->scenario;
    g_autofree char *folder = g_path_get_dirname(config_file(whatif->node));
    if (g_str_has_suffix(asked, ".cfg") && !g_path_is_absolute(asked) && strcmp(folder, ".") != 0) {
        g_autofree char *beside = g_build_filename(folder, asked, NULL);
        if (g_file_test(beside, G_FILE_TEST_IS_REGULAR))
            return g_steal_pointer(&beside);
    }
    return g_strdup(asked);
}

/* The scenario with these settings, and its point, built once. NULL with mistakes in errors. */
static struct scenario *load_point(const struct planner *planner, const struct whatif *whatif,
                                   const GPtrArray *settings, size_t *point, char sha256[65],
                                   struct sim_error_list *errors)
{
    const size_t before = errors->n_messages;
    g_autofree char *place = scenario_place(whatif);
    struct scenario *scenario = scenario_load(place, (const char *const *)planner->options->roots,
                                              (const char *const *)settings->pdata, errors);
    if (scenario == NULL)
        return NULL;
    *point = find_point(whatif, scenario, errors);
    struct config *config = errors->n_messages == before ? scenario_point(scenario, *point, errors)
                                                         : NULL;
    if (config != NULL && experiment_check(config, errors))
        config_sha256(config, sha256);
    config_free(config);
    if (errors->n_messages == before)
        return scenario;
    scenario_free(scenario);
    return NULL;
}

/* Takes the mistakes over, each after the question that they belong to. */
static void say_mistakes(const struct whatif *whatif, struct sim_error_list *own,
                         struct sim_error_list *errors)
{
    for (size_t i = 0; i < own->n_messages; i++)
        sim_error_add(errors, config_file(whatif->node), config_line(whatif->node), "%s: %s",
                      whatif->id, own->message[i]);
    sim_error_release(own);
}

/* Each word of the metric that is no number and no operator names one that the run records. Of this
 * point alone: at others the settings may be a mistake. */
static void check_metric(const struct whatif *whatif, struct scenario *scenario, size_t point,
                         struct sim_error_list *errors)
{
    g_auto(GStrv) words = g_strsplit(whatif->metric != NULL ? whatif->metric : "", " ", 0);
    for (char **word = words; *word != NULL; word++) {
        g_autofree char *fault = whatif_word_is_metric(*word)
                                     ? plot_unknown_metric_at(scenario, point, *word)
                                     : NULL;
        if (fault != NULL)
            sim_error_add(errors, config_file(whatif->node), config_line(whatif->node),
                          "%s: metric: %s%s", whatif->id, fault,
                          strpbrk(*word, "+*/()") != NULL ? "; signs are words of their own" : "");
    }
}

/* The index of the run in the plan; WHATIF_NO_POINT with mistakes in errors. */
static size_t plan_run(struct planner *planner, const struct whatif *whatif,
                       const GPtrArray *change, struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) settings = join_settings(whatif->base, change);
    g_autofree char *text = settings_text(settings);
    g_autofree char *place = scenario_place(whatif);
    char *key = g_strdup_printf("%s %s %s", place, whatif->filter != NULL ? whatif->filter : "",
                                text);
    struct sim_error_list own = { 0 };
    const size_t known = GPOINTER_TO_SIZE(g_hash_table_lookup(planner->index, key));
    if (known != 0) {
        g_free(key);
        const struct plan_point *planned = plan_point(planner->plan, known - 1);
        check_metric(whatif, planned->scenario, planned->index, errors);
        return known - 1;
    }
    struct plan_point point = { 0 };
    point.scenario = load_point(planner, whatif, settings, &point.index, point.config_sha256, &own);
    if (point.scenario == NULL) {
        g_free(key);
        say_mistakes(whatif, &own, errors);
        return WHATIF_NO_POINT;
    }
    check_metric(whatif, point.scenario, point.index, errors);
    const char *name = scenario_point_name(point.scenario, point.index);
    point.stored_as = g_strdup_printf("%s%s%s", name, *name != '\0' && *text != '\0' ? " " : "",
                                      text);
    plan_add_point(planner->plan, &point);
    g_hash_table_insert(planner->index, key, GSIZE_TO_POINTER(planner->plan->points->len));
    return planner->plan->points->len - 1;
}

/* Without the change the run has to be without mistakes. */
static void try_refused(struct planner *planner, struct whatif *whatif,
                        struct sim_error_list *errors)
{
    struct sim_error_list own = { 0 };
    char sha256[65];
    size_t point;
    g_autoptr(GPtrArray) base = join_settings(whatif->base, NULL);
    struct scenario *scenario = load_point(planner, whatif, base, &point, sha256, &own);
    if (scenario == NULL) {
        say_mistakes(whatif, &own, errors);
        return;
    }
    scenario_free(scenario);
    g_autoptr(GPtrArray) changed = join_settings(whatif->base, whatif->change);
    scenario = load_point(planner, whatif, changed, &point, sha256, &own);
    whatif->message = scenario == NULL ? sim_error_join(&own) : NULL;
    scenario_free(scenario);
    sim_error_release(&own);
}

struct plan *whatif_plan(const struct cli_options *options, GPtrArray *files,
                         struct sim_error_list *errors)
{
    struct planner planner = { .options = options, .plan = plan_new_empty() };
    planner.index = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < files->len; i++) {
        const struct whatif_file *file = files->pdata[i];
        for (guint k = 0; k < file->whatifs->len; k++) {
            struct whatif *whatif = whatif_at(file, k);
            if (whatif->kind == WHATIF_REFUSED) {
                try_refused(&planner, whatif, errors);
                continue;
            }
            if (whatif->kind == WHATIF_RATIO || whatif->kind == WHATIF_DIFFERENCE)
                whatif->base_point = plan_run(&planner, whatif, NULL, errors);
            whatif->changed_point = plan_run(&planner, whatif, whatif->change, errors);
            if (whatif->kind == WHATIF_FAILS && whatif->changed_point != WHATIF_NO_POINT)
                plan_point(planner.plan, whatif->changed_point)->may_fail = true;
        }
    }
    g_hash_table_destroy(planner.index);
    return planner.plan;
}

/* ---- Judging --------------------------------------------------------------------------------- */

static double read_value(const struct whatif *whatif, const struct plan *plan, size_t point,
                         struct results_db *db, struct sim_error_list *errors)
{
    double value = (double)NAN;
    if (point == WHATIF_NO_POINT || whatif->metric == NULL)
        return value;
    g_autofree char *message = NULL;
    g_autofree char *sql = whatif_metric_sql(whatif->metric,
                                             scenario_name(plan_point(plan, point)->scenario),
                                             plan_point_name(plan_point(plan, point)));
    if (!results_evaluate(db, sql, &value, &message))
        sim_error_add(errors, config_file(whatif->node), config_line(whatif->node), "%s: %s",
                      whatif->id, message);
    return value;
}

/* Of the point's last run, if it failed; g_free(). */
static char *failure(const struct plan *plan, size_t index, struct results_db *db)
{
    const struct plan_point *point = plan_point(plan, index);
    for (guint i = 0; i < plan->jobs->len; i++)
        if (plan_job(plan, i)->point == index && plan_job(plan, i)->state == PLAN_FAILED)
            return results_failure(db, scenario_name(point->scenario), plan_point_name(point));
    return NULL;
}

static enum whatif_verdict judge(const struct whatif *whatif)
{
    bool holds;
    if (whatif->refusal != NULL) {
        holds = whatif->message != NULL && strstr(whatif->message, whatif->refusal) != NULL;
    } else {
        if (isnan(whatif->value))
            return WHATIF_NO_DATA;
        holds = whatif->value >= whatif->lo && whatif->value <= whatif->hi;
    }
    if (whatif->misses != NULL)
        return holds ? WHATIF_NOW_AS_EXPECTED : WHATIF_KNOWN;
    return holds ? WHATIF_AS_EXPECTED : WHATIF_UNEXPECTED;
}

bool whatif_judge(GPtrArray *files, const struct plan *plan, struct results_db *db,
                  struct sim_error_list *errors)
{
    const size_t before = errors->n_messages;
    for (guint i = 0; i < files->len; i++) {
        const struct whatif_file *file = files->pdata[i];
        for (guint k = 0; k < file->whatifs->len; k++) {
            struct whatif *whatif = whatif_at(file, k);
            const double base = read_value(whatif, plan, whatif->base_point, db, errors);
            const double changed = read_value(whatif, plan, whatif->changed_point, db, errors);
            whatif->base_value = base;
            whatif->changed_value = changed;
            whatif->value = whatif->kind == WHATIF_RATIO        ? changed / base
                            : whatif->kind == WHATIF_DIFFERENCE ? changed - base
                                                                : changed;
            if (whatif->kind != WHATIF_REFUSED)
                whatif->message = failure(plan, whatif->changed_point, db);
            if (whatif->message == NULL && whatif->base_point != WHATIF_NO_POINT)
                whatif->message = failure(plan, whatif->base_point, db);
            whatif->verdict = judge(whatif);
        }
    }
    return errors->n_messages == before;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

const char *whatif_verdict_name(enum whatif_verdict verdict)
{
    static const char *const names[N_WHATIF_VERDICTS] = {
        [WHATIF_AS_EXPECTED] = "as expected", [WHATIF_NOW_AS_EXPECTED] = "now as expected",
        [WHATIF_UNEXPECTED] = "UNEXPECTED",   [WHATIF_KNOWN] = "known",
        [WHATIF_NO_DATA] = "no data",
    };
    return names[verdict];
}

char *whatif_expected_text(const struct whatif *whatif)
{
    char lo[32], hi[32];
    if (whatif->refusal != NULL)
        return g_strdup_printf("%s: \"%s\"", whatif->kind == WHATIF_FAILS ? "fails" : "refused",
                               whatif->refusal);
    const char *what = whatif->kind == WHATIF_RATIO        ? "ratio "
                       : whatif->kind == WHATIF_DIFFERENCE ? "difference "
                                                           : "";
    cli_number(whatif->lo, lo);
    cli_number(whatif->hi, hi);
    return strcmp(lo, hi) == 0 ? g_strdup_printf("%s%s", what, lo)
                               : g_strdup_printf("%s%s to %s", what, lo, hi);
}

char *whatif_found_text(const struct whatif *whatif)
{
    char base[32], changed[32], value[32];
    if (whatif->kind == WHATIF_REFUSED)
        return g_strdup(whatif->message == NULL ? "not refused" : "refused");
    if (whatif->kind == WHATIF_FAILS)
        return g_strdup(whatif->message == NULL ? "does not fail" : "fails");
    if (isnan(whatif->value))
        return g_strdup("-");
    if (whatif->kind == WHATIF_VALUE)
        return g_strdup(cli_number(whatif->value, value));
    return g_strdup_printf("%s to %s: %s%s", cli_number(whatif->base_value, base),
                           cli_number(whatif->changed_value, changed),
                           whatif->kind == WHATIF_DIFFERENCE && whatif->value >= 0 ? "+" : "",
                           cli_number(whatif->value, value));
}

char *whatif_no_data_text(const struct whatif *whatif)
{
    char base[32], changed[32];
    if (whatif->message != NULL)
        return g_strdup_printf("a run failed: %s", whatif->message);
    return g_strdup_printf("without the change %s, with it %s",
                           cli_number(whatif->base_value, base),
                           cli_number(whatif->changed_value, changed));
}
