/* Points and jobs of a command line. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/campaign/plan.h"
#include "cli/plot/plot_measured.h"

/* --set changes what is simulated, and leaves `plot` as it is in the file. */
static bool is_changed(const char *const *sets)
{
    bool changed = false;
    for (; sets != NULL && *sets != NULL; sets++) {
        if (g_str_has_prefix(*sets, "plot."))
            return false;
        changed = true;
    }
    return changed;
}

/* Mistakes in how results would be shown are found before they are made. With --set the file's plot
 * may not suit what is left of the scenario: that is said, and stops no run. */
static void check_plot(const struct cli_options *options, struct scenario *scenario,
                       const char *const *sets, struct sim_error_list *errors)
{
    struct sim_error_list own = { 0 };
    struct plot_figure figure;
    if (plot_figure_read(scenario, &figure, &own))
        plot_figure_check(scenario, &figure, &own);
    if (own.n_messages == 0)
        plot_measured_check(options, scenario, &figure, &own);
    plot_figure_release(&figure);
    if (!is_changed(sets)) {
        sim_error_move(errors, &own);
        return;
    }
    sim_error_print(&own, stderr);
    if (own.n_messages != 0)
        fprintf(stderr, "%s: with these --set there is no figure (no run depends on it)\n",
                scenario_name(scenario));
    sim_error_release(&own);
}

static void add_points(struct plan *plan, struct scenario *scenario, bool quick,
                       const GPtrArray *filters)
{
    const size_t n = scenario_n_points(scenario);
    g_autofree bool *selected = g_new(bool, n);
    memset(selected, true, n * sizeof(*selected));
    for (guint i = 0; i < filters->len; i++) {
        const struct filter_table table = scenario_table(scenario);
        filter_apply(filters->pdata[i], &table, selected);
    }
    for (size_t i = 0; i < n; i++) {
        const struct plan_point point = { .scenario = scenario, .index = i };
        if (selected[i] && (!quick || scenario_point_is_quick(scenario, i)))
            g_array_append_val(plan->points, point);
    }
}

/* Values that `quick` names may have been taken away: no success without a run. */
static void check_quick(const struct scenario *scenario, struct sim_error_list *errors)
{
    const size_t n = scenario_n_points(scenario);
    size_t i = 0;
    while (i < n && !scenario_point_is_quick(scenario, i))
        i++;
    if (i == n)
        sim_error_add(errors, scenario_path(scenario), 0,
                      "--quick: no point has the values that `quick` names; they are not among "
                      "those of --set axes.NAME, or a constraint leaves them out");
}

static void check_filters(const struct plan *plan, const GPtrArray *filters, const char *option,
                          struct sim_error_list *errors)
{
    const size_t before = errors->n_messages;
    if (plan->scenarios->len == 0 || filters->len == 0)
        return;
    g_autofree struct filter_table *tables = g_new(struct filter_table, plan->scenarios->len);
    for (guint i = 0; i < plan->scenarios->len; i++)
        tables[i] = scenario_table(plan->scenarios->pdata[i]);
    for (guint i = 0; i < filters->len; i++) {
        g_autofree char *fault = filter_fault(filters->pdata[i], tables, plan->scenarios->len);
        if (fault != NULL)
            sim_error_add(errors, NULL, 0, "%s: %s", option, fault);
    }
    if (errors->n_messages == before && plan->points->len == 0)
        sim_error_add(errors, NULL, 0, "%s: no point matches (nudma run --list shows all of them)",
                      option);
}

static void clear_point(gpointer pointer)
{
    struct plan_point *point = pointer;
    g_free(point->stored_as);
    if (point->outputs != NULL)
        g_array_unref(point->outputs);
}

static GArray *new_points(void)
{
    GArray *points = g_array_new(FALSE, TRUE, sizeof(struct plan_point));
    g_array_set_clear_func(points, clear_point);
    return points;
}

/* ---- Shards ---------------------------------------------------------------------------------- */

struct dealt {
    guint64 hash;
    guint point;
};

/* FNV-1a, 64 bits. */
static guint64 hash_text(guint64 hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

static gint by_hash(gconstpointer a, gconstpointer b)
{
    const struct dealt *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->point < y->point ? -1 : 1;
}

static gint by_point(gconstpointer a, gconstpointer b)
{
    const struct dealt *x = a, *y = b;
    return x->point < y->point ? -1 : 1;
}

/* Points are dealt out in the order of their names' hashes: the parts differ by one point at most,
 * and neighbours on an axis, which cost about the same, do not all come into the same part. */
static void keep_shard(struct plan *plan, unsigned shard, unsigned n_shards)
{
    g_autoptr(GArray) dealt = g_array_new(FALSE, TRUE, sizeof(struct dealt));
    GArray *kept = new_points();
    guint n_mine = 0;
    for (guint i = 0; i < plan->points->len; i++) {
        const struct plan_point *point = plan_point(plan, i);
        const guint64 hash = hash_text(UINT64_C(0xcbf29ce484222325),
                                       scenario_name(point->scenario));
        const struct dealt one = { .hash = hash_text(hash, plan_point_name(point)), .point = i };
        g_array_append_val(dealt, one);
    }
    g_array_sort(dealt, by_hash);
    for (guint i = shard - 1; i < dealt->len; i += n_shards)
        g_array_index(dealt, struct dealt, n_mine++) = g_array_index(dealt, struct dealt, i);
    g_array_set_size(dealt, n_mine);
    g_array_sort(dealt, by_point);
    for (guint i = 0; i < n_mine; i++)
        g_array_append_val(kept, *plan_point(plan, g_array_index(dealt, struct dealt, i).point));
    g_array_free(plan->points, TRUE);
    plan->points = kept;
}

/* ---- Points ---------------------------------------------------------------------------------- */

struct plan *plan_new_empty(void)
{
    struct plan *plan = g_new0(struct plan, 1);
    plan->scenarios = cli_scenario_array();
    plan->points = new_points();
    plan->jobs = g_array_new(FALSE, TRUE, sizeof(struct plan_job));
    return plan;
}

void plan_add_point(struct plan *plan, const struct plan_point *point)
{
    g_ptr_array_add(plan->scenarios, point->scenario);
    g_array_append_val(plan->points, *point);
}

struct plan *plan_new(const struct cli_options *options, char **arguments,
                      const struct plan_choice *choice, struct sim_error_list *errors)
{
    struct plan *plan = plan_new_empty();
    g_ptr_array_free(plan->scenarios, TRUE);
    plan->scenarios = cli_load_scenarios(options, arguments, choice->sets, errors);
    const char *option = choice->filter_option != NULL ? choice->filter_option : "--filter";
    g_autoptr(GPtrArray) filters = cli_filters(choice->filters, option, errors);
    for (guint i = 0; i < plan->scenarios->len; i++) {
        struct scenario *scenario = plan->scenarios->pdata[i];
        check_plot(options, scenario, choice->sets, errors);
        if (choice->precision != NULL)
            scenario_sample(scenario, choice->precision, errors);
        if (choice->quick)
            check_quick(scenario, errors);
        add_points(plan, scenario, choice->quick, filters);
    }
    check_filters(plan, filters, option, errors);
    if (choice->n_shards > 0)
        keep_shard(plan, choice->shard, choice->n_shards);
    return plan;
}

void plan_free(struct plan *plan)
{
    g_array_free(plan->jobs, TRUE);
    g_array_free(plan->points, TRUE);
    g_ptr_array_free(plan->scenarios, TRUE);
    g_free(plan);
}

struct plan_point *plan_point(const struct plan *plan, size_t index)
{
    return &g_array_index(plan->points, struct plan_point, index);
}

struct plan_job *plan_job(const struct plan *plan, size_t index)
{
    return &g_array_index(plan->jobs, struct plan_job, index);
}

const char *plan_point_name(const struct plan_point *point)
{
    return point->stored_as != NULL ? point->stored_as
                                    : scenario_point_name(point->scenario, point->index);
}

bool plan_add_job(struct plan *plan, struct results_db *db, size_t index, uint64_t seed, bool force,
                  char **message)
{
    struct plan_point *point = plan_point(plan, index);
    const char *scenario = scenario_name(point->scenario), *name = plan_point_name(point);
    struct plan_job job = { .point = index, .seed = seed };
    if (!force && results_have(db, scenario, name, seed, point->config_sha256)) {
        job.state = PLAN_STORED_BEFORE;
        if (!results_select(db, scenario, name, seed, point->config_sha256, message))
            return false;
    } else if (plan_twin_waits(plan, point, seed)) {
        job.state = PLAN_SHARING;
    }
    plan->n_points_ended -= point->n_jobs > 0 && point->n_ended == point->n_jobs;
    point->n_jobs++;
    point->n_ended += job.state == PLAN_STORED_BEFORE;
    plan->n_points_ended += point->n_ended == point->n_jobs;
    g_array_append_val(plan->jobs, job);
    plan->n_in_state[job.state]++;
    return true;
}

bool plan_make_jobs(struct plan *plan, struct results_db *db, uint64_t first_seed, unsigned n_seeds,
                    bool force, char **message)
{
    for (guint i = 0; i < plan->points->len; i++) {
        for (uint64_t seed = first_seed; seed < first_seed + n_seeds; seed++) {
            if (!plan_add_job(plan, db, i, seed, force, message))
                return false;
        }
    }
    return true;
}

static gint longest_first(gconstpointer a, gconstpointer b)
{
    const struct plan_job *x = a, *y = b;
    const double x_s = x->expected_s > 0.0 ? x->expected_s : (double)INFINITY;
    const double y_s = y->expected_s > 0.0 ? y->expected_s : (double)INFINITY;
    if (x_s != y_s)
        return x_s > y_s ? -1 : 1;
    if (x->point != y->point)
        return x->point < y->point ? -1 : 1;
    return x->seed < y->seed ? -1 : 1;
}

void plan_sort_jobs(struct plan *plan)
{
    g_array_sort(plan->jobs, longest_first);
}

void plan_set_state(struct plan *plan, struct plan_job *job, enum plan_state state)
{
    struct plan_point *point = plan_point(plan, job->point);
    plan->n_in_state[job->state]--;
    plan->n_in_state[state]++;
    job->state = state;
    if (state == PLAN_DONE || state == PLAN_FAILED || state == PLAN_STORED_BEFORE) {
        point->n_ended++;
        plan->n_points_ended += point->n_ended == point->n_jobs;
    }
}

unsigned plan_count(const struct plan *plan, enum plan_state state)
{
    return plan->n_in_state[state];
}

char *plan_job_name(const struct plan *plan, const struct plan_job *job)
{
    const struct plan_point *point = plan_point(plan, job->point);
    const char *name = plan_point_name(point);
    return g_strdup_printf("%s%s%s seed %" G_GUINT64_FORMAT, scenario_name(point->scenario),
                           *name != '\0' ? " " : "", name, job->seed);
}
