/* libnudma's functions on those of sim/config, sim/store and workloads/. */
#include "workloads/embed/nudma.h"

#include <glib.h>
#include <string.h>

#include "sim/config/scenario.h"
#include "sim/store/version.h"
#include "workloads/experiment.h"

#ifndef NUDMA_DATADIR
#define NUDMA_DATADIR "/usr/local/share/nudma"
#endif

struct nudma_scenario {
    struct scenario *scenario;
};

struct nudma_result {
    struct run_result *result;
    struct experiment_outcome outcome;
    char **names;
    size_t n_names;
};

const char *nudma_version(void)
{
    return sim_version();
}

void nudma_free(char *text)
{
    g_free(text);
}

/* All messages, if there are any; releases the list. */
static bool take_errors(struct sim_error_list *errors, char **error)
{
    const bool any = errors->n_messages > 0;
    if (any)
        *error = sim_error_join(errors);
    sim_error_release(errors);
    return any;
}

struct nudma_scenario *nudma_scenario_load(const char *name, const char *const *sets, char **error)
{
    const char *environment = g_getenv("NUDMA_SCENARIOS");
    const char *const candidates[] = { environment != NULL ? environment : "", "scenarios",
                                       NUDMA_DATADIR "/scenarios" };
    const char *roots[SIM_N_ELEMENTS(candidates) + 1] = { NULL };
    struct sim_error_list errors = { 0 };
    unsigned n_roots = 0;
    *error = NULL;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(candidates); i++)
        if (g_file_test(candidates[i], G_FILE_TEST_IS_DIR))
            roots[n_roots++] = candidates[i];
    struct scenario *loaded = scenario_load(name, roots, sets, &errors);
    if (take_errors(&errors, error)) {
        scenario_free(loaded);
        return NULL;
    }
    struct nudma_scenario *scenario = g_new0(struct nudma_scenario, 1);
    scenario->scenario = loaded;
    return scenario;
}

void nudma_scenario_free(struct nudma_scenario *scenario)
{
    if (scenario != NULL)
        scenario_free(scenario->scenario);
    g_free(scenario);
}

const char *nudma_scenario_name(const struct nudma_scenario *scenario)
{
    return scenario_name(scenario->scenario);
}

size_t nudma_scenario_n_points(const struct nudma_scenario *scenario)
{
    return scenario_n_points(scenario->scenario);
}

const char *nudma_scenario_point(const struct nudma_scenario *scenario, size_t point)
{
    return scenario_point_name(scenario->scenario, point);
}

struct nudma_result *nudma_run(struct nudma_scenario *scenario, size_t point, uint64_t seed,
                               char **error)
{
    struct sim_error_list errors = { 0 };
    *error = NULL;
    if (point >= scenario_n_points(scenario->scenario)) {
        *error = g_strdup_printf("%s has %zu points, and none of index %zu",
                                 scenario_name(scenario->scenario),
                                 scenario_n_points(scenario->scenario), point);
        return NULL;
    }
    struct config *config = scenario_point(scenario->scenario, point, &errors);
    if (config != NULL)
        experiment_check(config, &errors);
    if (take_errors(&errors, error)) {
        config_free(config);
        return NULL;
    }
    struct nudma_result *result = g_new0(struct nudma_result, 1);
    result->result = run_result_new();
    const bool done = experiment_run(config, seed, result->result, &result->outcome, NULL, error);
    config_free(config);
    if (!done) {
        nudma_result_free(result);
        return NULL;
    }
    result->outcome.fingerprint = run_result_fingerprint(result->result,
                                                         result->outcome.fingerprint);
    result->names = run_result_names(result->result, RECORD_METRIC);
    result->n_names = g_strv_length(result->names);
    return result;
}

void nudma_result_free(struct nudma_result *result)
{
    if (result == NULL)
        return;
    run_result_free(result->result);
    g_strfreev(result->names);
    g_free(result);
}

bool nudma_result_value(const struct nudma_result *result, const char *name, double *value)
{
    if (!run_result_has(result->result, RECORD_METRIC, name))
        return false;
    *value = run_result_value(result->result, name);
    return true;
}

const char *nudma_result_metric(const struct nudma_result *result, size_t i, const char **unit)
{
    if (i >= result->n_names)
        return NULL;
    if (unit != NULL)
        *unit = run_result_unit(result->result, RECORD_METRIC, result->names[i]);
    return result->names[i];
}

uint64_t nudma_result_sim_ps(const struct nudma_result *result)
{
    return result->outcome.sim_ps;
}

uint64_t nudma_result_fingerprint(const struct nudma_result *result)
{
    return result->outcome.fingerprint;
}
