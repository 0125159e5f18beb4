/* Points and jobs of a command line. */
#include <string.h>

#include "cli/plan.h"
#include "cli/plot_spec.h"
#include "workloads/experiment.h"

/* Mistakes in how results would be shown are found before they are made. */
static void check_plot(struct scenario *scenario, struct sim_error_list *errors)
{
    struct plot_spec spec;
    plot_spec_read(scenario, &spec, errors);
    plot_spec_release(&spec);
}

struct plan *plan_new(const struct cli_options *options, char **arguments, const char *const *sets,
                      bool quick, struct sim_error_list *errors)
{
    struct plan *plan = g_new0(struct plan, 1);
    plan->scenarios = cli_load_scenarios(options, arguments, sets, errors);
    plan->points = g_array_new(FALSE, TRUE, sizeof(struct plan_point));
    plan->jobs = g_array_new(FALSE, TRUE, sizeof(struct plan_job));
    for (guint i = 0; i < plan->scenarios->len; i++) {
        struct scenario *scenario = plan->scenarios->pdata[i];
        check_plot(scenario, errors);
        for (size_t k = 0; k < scenario_n_points(scenario); k++) {
            const struct plan_point point = { .scenario = scenario, .index = k };
            if (!quick || scenario_point_is_quick(scenario, k))
                g_array_append_val(plan->points, point);
        }
    }
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
    return scenario_point_name(point->scenario, point->index);
}

void plan_check(struct plan *plan, bool print, struct sim_error_list *errors)
{
    for (guint i = 0; i < plan->points->len; i++) {
        struct plan_point *point = plan_point(plan, i);
        struct config *config = scenario_point(point->scenario, point->index, errors);
        if (config == NULL)
            continue;
        if (experiment_check(config, errors)) {
            config_sha256(config, point->config_sha256);
            if (print) {
                printf("# %s %s\n", scenario_name(point->scenario), plan_point_name(point));
                config_print(config, stdout);
            }
        }
        config_free(config);
    }
}

bool plan_make_jobs(struct plan *plan, struct results_db *db, uint64_t first_seed, unsigned n_seeds,
                    bool force, char **message)
{
    for (guint i = 0; i < plan->points->len; i++) {
        const struct plan_point *point = plan_point(plan, i);
        const char *scenario = scenario_name(point->scenario), *name = plan_point_name(point);
        for (uint64_t seed = first_seed; seed < first_seed + n_seeds; seed++) {
            struct plan_job job = { .point = i, .seed = seed };
            if (!force && results_have(db, scenario, name, seed, point->config_sha256)) {
                job.state = PLAN_STORED_BEFORE;
                if (!results_select(db, scenario, name, seed, point->config_sha256, message))
                    return false;
            }
            g_array_append_val(plan->jobs, job);
            plan->n_in_state[job.state]++;
        }
    }
    return true;
}

void plan_set_state(struct plan *plan, struct plan_job *job, enum plan_state state)
{
    plan->n_in_state[job->state]--;
    plan->n_in_state[state]++;
    job->state = state;
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
