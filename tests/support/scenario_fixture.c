#include <math.h>
#include <string.h>

#include "tests/support/scenario_fixture.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

struct scenario *scenario_named(const char *name)
{
    static const char *const roots[] = { "scenarios", NULL };
    struct sim_error_list errors = { 0 };
    struct scenario *scenario = scenario_load(name, roots, NULL, &errors);
    fixture_fail(&errors);
    return scenario;
}

char *scenario_run_into(const char *text, struct run_result *result)
{
    struct sim_error_list errors = { 0 };
    struct config *config = fixture_config(text, &errors);
    struct experiment_outcome ended;
    char *error = NULL;
    fixture_fail(&errors);
    const bool ok = experiment_run(config, 1, result, &ended, NULL, &error);
    assert_int_equal(ok, error == NULL);
    config_free(config);
    return error;
}

struct run_result *scenario_run(const char *text)
{
    struct run_result *result = run_result_new();
    char *error = scenario_run_into(text, result);
    if (error != NULL)
        fail_msg("%s", error);
    return result;
}

void scenario_fails(const char *text, const char *message)
{
    struct run_result *result = run_result_new();
    char *error = scenario_run_into(text, result);
    if (error == NULL || strstr(error, message) == NULL)
        fail_msg("\"%s\" instead of \"%s\"", error != NULL ? error : "no failure", message);
    g_free(error);
    run_result_free(result);
}

void scenario_breaks_off(const char *text, const char *message)
{
    struct run_result *result = run_result_new();
#ifdef __SANITIZE_ADDRESS__
    __lsan_disable();
#endif
    g_autofree char *error = scenario_run_into(text, result);
#ifdef __SANITIZE_ADDRESS__
    __lsan_enable();
#endif
    run_result_free(result);
    assert_non_null(error);
    assert_string_equal(error, message);
}

unsigned scenario_stride(unsigned sanitized)
{
#ifdef __SANITIZE_ADDRESS__
    return sanitized;
#else
    (void)sanitized;
    return 1;
#endif
}

double scenario_value(struct run_result *result, const char *metric)
{
    const double value = run_result_value(result, metric);
    if (!isfinite(value))
        fail_msg("no metric %s", metric);
    return value;
}

static void refused(const char *text, const char *message, bool alone)
{
    struct sim_error_list errors = { 0 };
    struct config *config = fixture_config(text, &errors);
    bool found = false;
    fixture_fail(&errors);
    assert_false(experiment_check(config, &errors));
    for (size_t i = 0; i < errors.n_messages; i++)
        found |= strstr(errors.message[i], message) != NULL;
    if (!found || (alone && errors.n_messages != 1)) {
        sim_error_print(&errors, stderr);
        fail_msg("\"%s\" instead of \"%s\"", errors.message[0], message);
    }
    sim_error_release(&errors);
    config_free(config);
}

void scenario_refused(const char *text, const char *message)
{
    refused(text, message, true);
}

void scenario_refused_among(const char *text, const char *message)
{
    refused(text, message, false);
}
