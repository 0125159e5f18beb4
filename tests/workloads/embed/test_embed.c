/* The library's functions as another program calls them, on scenarios of the tree; and a model and
 * a workload that this program brings along. */
#include <string.h>

#include "models/base/model.h"
#include "models/world/registry.h"
#include "tests/support/test.h"
#include "workloads/base/workload.h"
#include "workloads/embed/nudma.h"
#include "workloads/registry.h"

static void own_init(struct model *model, struct sim_error_list *errors)
{
    (void)model;
    (void)errors;
}

static const struct model_ops own_model = { .type = "own.model", .help = "", .init = own_init };
NUDMA_MODEL(own_model);
static const struct workload_ops own_workload = { .type = "own.workload", .help = "" };
NUDMA_WORKLOAD(own_workload);

static struct nudma_scenario *load(const char *const *sets)
{
    char *error;
    struct nudma_scenario *scenario = nudma_scenario_load("pcie_bench/latency_size", sets, &error);
    if (scenario == NULL)
        fail_msg("%s", error);
    assert_null(error);
    return scenario;
}

static void refused(const char *name, const char *const *sets, const char *message)
{
    char *error;
    assert_null(nudma_scenario_load(name, sets, &error));
    assert_non_null(strstr(error, message));
    nudma_free(error);
}

static void test_load(void **unused)
{
    const char *const both[] = { "axes.op=read", "axes.transfer_bytes=64,128", NULL };
    const char *const none[] = { "axes.transfer_byte=64", NULL };
    struct nudma_scenario *scenario = load(both);

    (void)unused;
    assert_string_equal(nudma_scenario_name(scenario), "pcie_bench/latency_size");
    assert_int_equal(nudma_scenario_n_points(scenario), 2);
    assert_string_equal(nudma_scenario_point(scenario, 1), "op=read transfer_bytes=128");
    nudma_scenario_free(scenario);
    refused("pcie_bench/latency_sise", NULL, "did you mean \"pcie_bench/latency_size\"");
    refused("pcie_bench/latency_size", none, "did you mean \"transfer_bytes\"");
    nudma_scenario_free(NULL);
    nudma_result_free(NULL);
    assert_true(strlen(nudma_version()) > 0);
}

static struct nudma_result *run(struct nudma_scenario *scenario, uint64_t seed)
{
    char *error;
    struct nudma_result *result = nudma_run(scenario, 0, seed, &error);
    if (result == NULL)
        fail_msg("%s", error);
    return result;
}

static void test_run(void **unused)
{
    const char *const sets[] = { "axes.op=read", "axes.transfer_bytes=64",
                                 "measure.transactions=100", NULL };
    struct nudma_scenario *scenario = load(sets);
    struct nudma_result *a = run(scenario, 1), *b = run(scenario, 1), *c = run(scenario, 2);
    const char *unit = NULL, *name, *before = "";
    double value = -1;
    bool found = false;

    (void)unused;
    nudma_scenario_free(scenario); /* results outlive it */
    assert_true(nudma_result_value(a, "latency_mean_ns", &value));
    assert_true(value > 400 && value < 700);
    assert_false(nudma_result_value(a, "latency_mean_us", &value));
    for (size_t i = 0; (name = nudma_result_metric(a, i, &unit)) != NULL; i++) {
        assert_true(strcmp(before, name) < 0);
        before = name;
        assert_true(nudma_result_value(a, name, &value));
        if (strcmp(name, "latency_mean_ns") == 0) {
            found = true;
            assert_string_equal(unit, "ns");
        }
    }
    assert_true(found);
    assert_true(nudma_result_sim_ps(a) > 0);
    assert_true(nudma_result_fingerprint(a) == nudma_result_fingerprint(b));
    assert_true(nudma_result_fingerprint(a) != nudma_result_fingerprint(c));
    nudma_result_free(a);
    nudma_result_free(b);
    nudma_result_free(c);
}

static void fails(struct nudma_scenario *scenario, size_t point, const char *message)
{
    char *error;
    assert_null(nudma_run(scenario, point, 1, &error));
    if (strstr(error, message) == NULL)
        fail_msg("\"%s\" instead of \"%s\"", error, message);
    nudma_free(error);
}

static void test_errors(void **unused)
{
    const char *const wrong[] = { "workload.device=nobody", "measure.warmup_us=-1", NULL };
    const char *const large[] = { "workload.window_bytes=68000000000", NULL };
    struct nudma_scenario *scenario = load(wrong);

    (void)unused;
    fails(scenario, 0, "workload.device: found \"nobody\"");
    fails(scenario, 0, "measure.warmup_us: found -1"); /* all of them */
    fails(scenario, 28, "has 28 points, and none of index 28");
    nudma_scenario_free(scenario);
    scenario = load(large);
    fails(scenario, 0, "no memory for a window of 68000000000 bytes");
    nudma_scenario_free(scenario);
}

static void test_extensions(void **unused)
{
    unsigned n_models = 0, n_workloads = 0, i;

    (void)unused;
    for (i = 0; model_at(i) != NULL; i++)
        n_models += model_at(i) == &own_model;
    assert_null(model_at(i + 1));
    assert_int_equal(n_models, 1);
    assert_ptr_equal(model_at(i - 1), &own_model); /* behind those of the tree */
    assert_ptr_equal(model_find("own.model"), &own_model);
    for (i = 0; workload_at(i) != NULL; i++)
        n_workloads += workload_at(i) == &own_workload;
    assert_int_equal(n_workloads, 1);
    assert_null(workload_at(i + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load),
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_extensions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
