/*
 * What a cluster takes grows as its hosts do, counted: bytes allocated, mappings of stacks, events.
 * bench/cluster measures time and memory of up to 10,000 hosts.
 */
#include "tests/support/world_fixture.h"

#include <malloc.h>

#include "sim/engine/sanitizer.h"
#include "sim/engine/sim_internal.h"
#include "sim/engine/task_stack.h"
#include "tests/support/cluster_scenario.h"
#include "workloads/experiment.h"

struct counts {
    double bytes, mappings, events;
};

#if SIM_ASAN
/* Of sanitizer/allocator_interface.h, which gcc does not bring along. */
size_t __sanitizer_get_current_allocated_bytes(void);
#endif

/* Bytes that are allocated now; 0: the allocator does not tell. */
static double allocated(void)
{
#if SIM_ASAN
    return (double)__sanitizer_get_current_allocated_bytes();
#else
    const struct mallinfo2 info = mallinfo2();
    return (double)(info.uordblks + info.hblkhd);
#endif
}

/* Hosts and fabric, booted. */
static struct counts of_booted(unsigned n_hosts)
{
    char *text = cluster_scenario(n_hosts, CLUSTER_LIGHT, 0);
    const double before = allocated();
    struct sim_error_list errors = { 0 };
    struct config *config = fixture_config(text, &errors);
    struct world *world = world_new(config, 1, &errors);
    fixture_fail(&errors);
    assert_true(world_boot(world, NULL));
    const struct sim *sim = world_sim(world);
    const struct counts counts = { allocated() - before,
                                   (double)task_stacks_mappings(sim_tasks_stacks(sim)),
                                   (double)sim_events_fired(sim) };
    world_free(world);
    config_free(config);
    g_free(text);
    return counts;
}

/* As much for each host of the larger cluster as for each of the smaller one. */
static void assert_linear(double few, double many, double ratio)
{
    if (few != 0 && many > 1.1 * ratio * few)
        fail_msg("%.15g grows to %.15g, more than %.15g times", few, many, ratio);
}

static void building_is_linear(void **state)
{
    (void)state;
    const struct counts few = of_booted(100), many = of_booted(300);
    assert_linear(few.bytes, many.bytes, 3);
    assert_linear(few.mappings, many.mappings, 3);
    assert_linear(few.events, many.events, 3);
    assert_true(many.mappings >= 300); /* it was counted */
    assert_true(many.bytes / 300 < 100 * 1024);
}

/* All hosts run kernels and take part, one of ten lends, one of ten borrows. */
static double events_of_work(unsigned n_hosts)
{
    char *text = cluster_scenario(n_hosts, CLUSTER_LIGHT, n_hosts / 10);
    struct sim_error_list errors = { 0 };
    struct config *config = fixture_config(text, &errors);
    fixture_fail(&errors);
    struct run_result *result = run_result_new();
    struct experiment_outcome outcome;
    char *error = NULL;
    if (!experiment_run(config, 1, result, &outcome, NULL, &error))
        fail_msg("%s", error);
    assert_true(run_result_value(result, "throughput_gbyte_s") > 0.15 * n_hosts / 10);
    run_result_free(result);
    config_free(config);
    g_free(text);
    return (double)outcome.events;
}

static void work_is_linear(void **state)
{
    (void)state;
    assert_linear(events_of_work(40), events_of_work(120), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(building_is_linear),
        cmocka_unit_test(work_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
