/* Followed transfers: nothing of a run changes by it, and what is written down hangs together. */
#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "models/pcie/link/tlp_trace.h"
#include "sim/config/scenario.h"
#include "tests/support/scenario_fixture.h"
#include "workloads/experiment.h"

#define NEVER UINT32_MAX /* no run has so many transfers: it goes to its end, and frees all */

static struct config *point_of(struct scenario *scenario, size_t index)
{
    struct sim_error_list errors = { 0 };
    struct config *config = scenario_point(scenario, index, &errors);
    if (errors.n_messages != 0)
        fail_msg("%s", errors.message[0]);
    return config;
}

static struct stamp_trace *follow(struct scenario *scenario, size_t index, const char *device,
                                  uint64_t nth_write, uint64_t nth_read,
                                  struct experiment_outcome *outcome)
{
    const struct experiment_followed followed = { .device = device,
                                                  .nth_write = nth_write,
                                                  .nth_read = nth_read };
    struct sim_error_list errors = { 0 };
    struct config *config = point_of(scenario, index);
    char *error;
    struct stamp_trace *trace = experiment_follow(config, 1, &followed, outcome, &errors, &error);
    if (trace == NULL)
        fail_msg("%s", errors.n_messages != 0 ? errors.message[0] : error);
    config_free(config);
    return trace;
}

static struct experiment_outcome run(struct scenario *scenario, size_t index)
{
    struct experiment_outcome outcome;
    struct run_result *result = run_result_new();
    struct config *config = point_of(scenario, index);
    char *error;
    if (!experiment_run(config, 1, result, &outcome, NULL, &error))
        fail_msg("%s", error);
    outcome.fingerprint = run_result_fingerprint(result, outcome.fingerprint);
    run_result_free(result);
    config_free(config);
    return outcome;
}

/* Time, number and order of events, every metric: with the transfers followed and without. */
static void unchanged(const char *name, size_t index, const char *device, uint64_t nth_write,
                      uint64_t nth_read)
{
    struct scenario *scenario = scenario_named(name);
    struct experiment_outcome plain = run(scenario, index), followed = { 0 };
    struct stamp_trace *trace = follow(scenario, index, device, nth_write, nth_read, &followed);
    assert_true(trace->n_records > 5);
    assert_int_equal(trace->done, 0);
    assert_int_equal(followed.sim_ps, plain.sim_ps);
    assert_int_equal(followed.events, plain.events);
    assert_int_equal(followed.fingerprint, plain.fingerprint);
    tlp_trace_free(trace);
    scenario_free(scenario);
}

static void test_nothing_changes(void **state)
{
    (void)state;
    for (size_t point = 0; point < 2; point++) {
        unchanged("examples/borrowed_nic", point, "nic", 1, NEVER);
        unchanged("examples/borrowed_nic", point, "nic", NEVER, 1);
    }
    /* Its transactions have stamps of their own. */
    unchanged("pcie_bench/latency_iommu", 0, "nfp", NEVER, 7);
}

static unsigned count(const struct stamp_trace *trace, enum tlp_trace_walk walk,
                      enum tlp_trace_kind kind)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < trace->n_records; i++)
        n += TLP_TRACE_WALK_OF(trace->record[i].leg) == walk && trace->record[i].kind == kind;
    return n;
}

static const struct tlp_trace_record *find(const struct stamp_trace *trace,
                                           enum tlp_trace_walk walk, enum tlp_trace_kind kind,
                                           const char *who)
{
    for (uint32_t i = 0; i < trace->n_records; i++) {
        const struct tlp_trace_record *record = &trace->record[i];
        if (TLP_TRACE_WALK_OF(record->leg) == walk && record->kind == kind &&
            strcmp(record->who, who) == 0)
            return record;
    }
    fail_msg("no record of kind %d by %s", (int)kind, who);
    return NULL;
}

/* What one element made of the address is what the next one met. */
static void check_write(const struct stamp_trace *trace)
{
    const enum tlp_trace_walk walk = TLP_TRACE_WRITE;
    const struct tlp_trace_record *sent = find(trace, walk, TRACE_SENT, "nic");
    const struct tlp_trace_record *lender = find(trace, walk, TRACE_IOMMU, "lender.s0");
    const struct tlp_trace_record *out = find(trace, walk, TRACE_NTB_OUT, "lender_ntb");
    const struct tlp_trace_record *in = find(trace, walk, TRACE_NTB_IN, "borrower_ntb");
    const struct tlp_trace_record *borrower = find(trace, walk, TRACE_IOMMU, "borrower.s0");
    const struct tlp_trace_record *line = find(trace, walk, TRACE_LINE, "");
    assert_int_equal(lender->iommu.iova, sent->tlp.address);
    assert_int_equal(out->ntb.address, lender->iommu.hpa);
    assert_int_equal(in->ntb.address, out->ntb.to_address);
    assert_int_equal(in->ntb.requester, out->ntb.to_requester);
    assert_int_equal(borrower->iommu.iova, in->ntb.to_address);
    assert_int_equal(borrower->iommu.requester_id, in->ntb.to_requester);
    assert_int_equal(line->line.hpa, borrower->iommu.hpa);
    find(trace, walk, TRACE_CLUSTER, "cluster");
    find(trace, walk, TRACE_ROUTE, "chassis");
    find(trace, walk, TRACE_VISIBLE, "borrower.s0");
    assert_int_equal(count(trace, walk, TRACE_IOMMU_LEVEL), 3 + 4);
    assert_int_equal(count(trace, walk, TRACE_ARRIVED), 0);
}

/* Every byte comes back, and each by the way that its request came. */
static void check_read(const struct stamp_trace *trace)
{
    const enum tlp_trace_walk walk = TLP_TRACE_READ;
    const struct tlp_trace_record *sent = find(trace, walk, TRACE_SENT, "nic");
    uint32_t arrived = 0, read = 0;
    for (uint32_t i = 0; i < trace->n_records; i++) {
        const struct tlp_trace_record *record = &trace->record[i];
        if (TLP_TRACE_WALK_OF(record->leg) != walk)
            continue;
        arrived += record->kind == TRACE_ARRIVED ? record->tlp.bytes : 0;
        read += record->kind == TRACE_LINE ? record->line.bytes : 0;
    }
    assert_int_equal(arrived, sent->tlp.bytes);
    assert_int_equal(read, sent->tlp.bytes);
    assert_int_equal(count(trace, walk, TRACE_NTB_OUT), count(trace, walk, TRACE_NTB_CPL_IN));
    assert_int_equal(count(trace, walk, TRACE_NTB_IN), count(trace, walk, TRACE_NTB_CPL_OUT));
    assert_true(count(trace, walk, TRACE_NTB_IN) > 0);
}

static void test_every_step_follows_from_the_one_before(void **state)
{
    (void)state;
    struct scenario *scenario = scenario_named("examples/borrowed_nic");
    struct stamp_trace *trace = follow(scenario, 0, "nic", 4, NEVER, NULL);
    assert_int_equal(trace->n_lost, 0);
    check_write(trace);
    tlp_trace_free(trace);
    trace = follow(scenario, 0, "nic", NEVER, 2, NULL);
    assert_int_equal(trace->n_lost, 0);
    check_read(trace);
    tlp_trace_free(trace);
    scenario_free(scenario);
}

/* With the lender's IOMMU off the shortest way is through the chassis. */
static void test_shortest_way(void **state)
{
    (void)state;
    struct scenario *scenario = scenario_named("examples/borrowed_nic");
    struct stamp_trace *trace = follow(scenario, 1, NULL, 1, NEVER, NULL);
    assert_string_equal(trace->device_name, "nic");
    assert_int_equal(find(trace, TLP_TRACE_WRITE, TRACE_ROUTE, "chassis")->route.why,
                     TRACE_ROUTE_PEER);
    assert_int_equal(count(trace, TLP_TRACE_WRITE, TRACE_PEER), 0);
    assert_int_equal(count(trace, TLP_TRACE_WRITE, TRACE_ROOT), 1);
    tlp_trace_free(trace);
    scenario_free(scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_changes),
        cmocka_unit_test(test_every_step_follows_from_the_one_before),
        cmocka_unit_test(test_shortest_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
