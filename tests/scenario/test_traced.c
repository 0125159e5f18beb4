/* Runs that are recorded: nothing of them changes, and what is recorded is what the links have
 * counted. */
#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/trace/pcap.h"
#include "models/trace/perfetto.h"
#include "models/trace/tlp_log.h"
#include "sim/config/scenario.h"
#include "tests/support/scenario_fixture.h"
#include "workloads/experiment.h"

struct recording {
    struct trace_window window;
    bool measured; /* from the measurement on, compared with the statistics */
    struct world *world;
    struct pcap *pcap;
    struct tlp_log *tlp;
    struct perfetto *perfetto;
    char pcap_path[64], tlp_path[64], perfetto_path[64];
    volatile int ended;
    unsigned n_compared;
    struct trace_file_counts pcap_counts, tlp_counts, perfetto_counts;
};

static void begins(void *arg, sim_time now_ps)
{
    struct recording *recording = arg;
    recording->window.from_ps = now_ps;
}

static bool attach(void *arg, struct world *world, struct sim_error_list *errors)
{
    struct recording *recording = arg;
    const struct pcap_settings settings = { .path = recording->pcap_path };
    struct tlp_filter filter;
    assert_true(tlp_filter_parse(&filter, NULL, errors));
    recording->world = world;
    if (recording->measured) {
        recording->window.from_ps = SIM_TIME_MAX;
        world_at_measurement(world, begins, recording);
    }
    recording->tlp = tlp_log_new(world, recording->tlp_path, &filter, "test", &recording->window,
                                 &recording->ended, errors);
    recording->pcap = pcap_new(world, &settings, &recording->window, &recording->ended, errors);
    if (recording->pcap == NULL) /* no Ethernet in this one */
        sim_error_release(errors);
    recording->perfetto = perfetto_new(world, recording->perfetto_path, &recording->window,
                                       &recording->ended);
    assert_non_null(recording->perfetto);
    return recording->tlp != NULL;
}

/* The sums of the summary over types, against the statistics of each direction. */
static void compare(struct recording *recording)
{
    struct pcie_port *end[2];
    struct pcie_link *link;
    char *summary = tlp_log_summary(recording->tlp);
    char **lines = g_strsplit(summary, "\n", -1);
    for (unsigned i = 0;
         (link = pcie_context_link(world_pcie(recording->world), i, &end[0], &end[1])) != NULL; i++)
        for (unsigned side = 0; side < 2; side++) {
            unsigned long long tlps = 0, wire = 0, payload = 0;
            for (char **line = lines; *line != NULL; line++) {
                char name[128], arrow, type[16];
                unsigned long long n, w, p;
                if (sscanf(*line, "%127s %c %15s %llu %llu %llu", name, &arrow, type, &n, &w, &p) ==
                        6 &&
                    strcmp(name, pcie_link_name(link)) == 0 && arrow == "><"[side]) {
                    tlps += n;
                    wire += w;
                    payload += p;
                }
            }
            const struct pcie_link_stats *stats = pcie_port_stats(end[side]);
            assert_int_equal(tlps, stats->tlps);
            assert_int_equal(wire, stats->tlp_bytes);
            assert_int_equal(payload, stats->payload_bytes);
            recording->n_compared += tlps != 0;
        }
    g_strfreev(lines);
    free(summary);
}

static void detach(void *arg)
{
    struct recording *recording = arg;
    if (recording->measured)
        compare(recording);
    pcap_end(recording->pcap, &recording->pcap_counts);
    tlp_log_end(recording->tlp, &recording->tlp_counts);
    perfetto_end(recording->perfetto, &recording->perfetto_counts);
}

static struct experiment_outcome observe(struct recording *recording, struct scenario *scenario)
{
    const struct experiment_observer observer = { recording, attach, detach, &recording->ended };
    struct experiment_outcome outcome;
    struct sim_error_list errors = { 0 };
    struct config *config = scenario_point(scenario, 0, &errors);
    char *error = NULL;
    const int a = g_mkstemp(recording->pcap_path), b = g_mkstemp(recording->tlp_path);
    const int c = g_mkstemp(recording->perfetto_path);
    assert_true(a >= 0 && b >= 0 && c >= 0);
    close(a);
    close(b);
    close(c);
    if (!experiment_observe(config, 1, &observer, &outcome, &errors, &error))
        fail_msg("%s", error != NULL ? error : errors.message[0]);
    unlink(recording->pcap_path);
    unlink(recording->tlp_path);
    unlink(recording->perfetto_path);
    perfetto_free(recording->perfetto);
    config_free(config);
    return outcome;
}

static struct recording recording_new(bool measured)
{
    struct recording recording = { .window = { 0, SIM_TIME_MAX, UINT64_MAX, false },
                                   .measured = measured };
    snprintf(recording.pcap_path, sizeof(recording.pcap_path), "/tmp/test_traced.XXXXXX");
    snprintf(recording.perfetto_path, sizeof(recording.perfetto_path), "/tmp/test_traced.XXXXXX");
    snprintf(recording.tlp_path, sizeof(recording.tlp_path), "/tmp/test_traced.XXXXXX");
    return recording;
}

static struct experiment_outcome run(struct scenario *scenario)
{
    struct experiment_outcome outcome;
    struct sim_error_list errors = { 0 };
    struct run_result *result = run_result_new();
    struct config *config = scenario_point(scenario, 0, &errors);
    char *error;
    if (!experiment_run(config, 1, result, &outcome, NULL, &error))
        fail_msg("%s", error);
    outcome.fingerprint = run_result_fingerprint(result, outcome.fingerprint);
    run_result_free(result);
    config_free(config);
    return outcome;
}

static void unchanged(const char *name, bool ethernet)
{
    struct scenario *scenario = scenario_named(name);
    struct recording recording = recording_new(false);
    const struct experiment_outcome plain = run(scenario), traced = observe(&recording, scenario);
    assert_int_equal(recording.ended, 0);
    assert_true(recording.tlp_counts.records > 100);
    assert_true(recording.perfetto_counts.records > recording.tlp_counts.records);
    assert_int_equal(recording.pcap_counts.records > 10, ethernet);
    assert_int_equal(traced.sim_ps, plain.sim_ps);
    assert_int_equal(traced.events, plain.events);
    assert_int_equal(traced.fingerprint, plain.fingerprint);
    scenario_free(scenario);
}

static void test_nothing_changes(void **state)
{
    (void)state;
    unchanged("tests/scenario/settings/net.cfg", true);
    unchanged("examples/borrowed_nic", true);
    unchanged("tests/scenario/settings/rdma.cfg", false);
}

static void counts_agree(const char *name)
{
    struct scenario *scenario = scenario_named(name);
    struct recording recording = recording_new(true);
    observe(&recording, scenario);
    assert_true(recording.n_compared >= 2);
    scenario_free(scenario);
}

static void test_links_have_counted_the_same(void **state)
{
    (void)state;
    counts_agree("tests/scenario/settings/net.cfg");
    counts_agree("examples/borrowed_nic");
    counts_agree("tests/scenario/settings/bench.cfg");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_changes),
        cmocka_unit_test(test_links_have_counted_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
