/* Each rule of explain is the first to fit some setting: none names one that is gone, and none is
 * hidden. Links have the host below which they are, whose credits they may stand still for. */
#include <glib.h>

#include "cli/explain/explain.h"
#include "models/base/model.h"
#include "models/world/registry.h"
#include "tests/support/scenario_fixture.h"
#include "workloads/base/describe.h"

static void note_first(GHashTable *used, const char *path)
{
    const char *rule;
    for (size_t i = 0; (rule = explain_rule_path(i)) != NULL; i++)
        if (g_pattern_match_simple(rule, path)) {
            g_hash_table_add(used, GSIZE_TO_POINTER(i + 1));
            return;
        }
}

/* place: what stands before the entry's name, "hosts.h.". */
static void note_all(GHashTable *used, const char *place, const char *name,
                     const struct param_desc *params)
{
    for (; params != NULL && params->type != PARAM_END; params++) {
        g_autofree char *path = g_strconcat(place, name, *name != '\0' ? "." : "", params->key,
                                            NULL);
        note_first(used, path);
    }
}

static void test_rules_fit(void **state)
{
    GHashTable *used = g_hash_table_new(NULL, NULL);
    struct describe_entry entry;
    const char *rule;
    unsigned n_idle = 0;
    (void)state;
    for (unsigned i = 0; describe_entry(i, &entry); i++) {
        note_all(used, "hosts.h.", entry.name, entry.params);
        note_all(used, "workload.", "", entry.params);
        note_all(used, "programs.p.", "", entry.params);
        note_all(used, "cables.[0].", "", entry.params);
    }
    for (unsigned i = 0; model_registry[i] != NULL; i++)
        note_all(used, "devices.d.", "", model_registry[i]->params);
    for (size_t i = 0; (rule = explain_rule_path(i)) != NULL; i++)
        if (!g_hash_table_contains(used, GSIZE_TO_POINTER(i + 1))) {
            print_error("no setting is the first that fits %s\n", rule);
            n_idle++;
        }
    g_hash_table_destroy(used);
    assert_int_equal(n_idle, 0);
}

#define HOST(NAME)                                                                                \
    NAME " = { cpu = { sockets = 1; cores_per_socket = 2; }; dram = { node_size = \"64 MiB\"; };" \
         " ports = ( { name = \"rp0\"; socket = 0; lanes = 8; }, { name = \"rp1\"; socket = 0;"   \
         " lanes = 8; } ); };\n"
#define NTB " = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; }; "

/* A link is of the host that its ends lead to, through switches too; one between bridges is not. */
static void test_hosts_of_links(void **state)
{
    static const char text[] = "hosts = { " HOST("a") HOST(
        "b") "};\n"
             "devices = { sw = { type = \"pcie.switch\"; downstream_ports = 1; lanes = 8; };"
             " ssd = { type = \"nvme.controller\"; }; nfp = { type = \"pcie.requester\"; };"
             " n" NTB "m" NTB "};\n"
             "cables = ( { from = \"a.s0.rp0\"; to = \"sw.p0\"; }, { from = \"sw.p1\"; to = \"ssd.p0\"; },"
             " { from = \"b.s0.rp0\"; to = \"nfp.p0\"; }, { from = \"a.s0.rp1\"; to = \"n.p0\"; },"
             " { from = \"b.s0.rp1\"; to = \"m.p0\"; }, { from = \"n.p1\"; to = \"m.p1\"; } );\n"
             "workload = { type = \"pcie_bench\"; device = \"nfp\"; host = \"b\"; };\n"
             "measure = { };\n";
    static const struct {
        const char *link, *root;
    } cases[] = { { "PCIe link a.s0.rp0 to sw.p0 ", "hosts.a" },
                  { "PCIe link sw.p1 to ssd.p0 ", "hosts.a" },
                  { "PCIe link b.s0.rp0 to nfp.p0 ", "hosts.b" },
                  { "PCIe link a.s0.rp1 to n.p0 ", "hosts.a" },
                  { "PCIe link b.s0.rp1 to m.p0 ", "hosts.b" },
                  { "PCIe link n.p1 to m.p1 ", NULL } };
    struct sim_error_list errors = { 0 };
    struct config *config = fixture_config(text, &errors);
    (void)state;
    experiment_check(config, &errors);
    fixture_fail(&errors);
    GPtrArray *resources = explain_resources(config, 1, NULL, &errors);
    for (size_t i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        const struct explain_resource *found = NULL;
        for (guint k = 0; k < resources->len; k++) {
            const struct explain_resource *resource = resources->pdata[k];
            if (g_str_has_prefix(resource->name, cases[i].link))
                found = resource;
        }
        if (found == NULL || g_strcmp0(found->root, cases[i].root) != 0)
            fail_msg("%s: %s", cases[i].link, found != NULL ? found->root : "no such link");
    }
    g_ptr_array_free(resources, TRUE);
    config_free(config);
}

/* Credits of another host are none of the link's, however much they do. */
static void test_credits_of_a_link(void **state)
{
    struct explain_resource link = { .name = "PCIe link a.s0.rp0 to ssd.p0 (Gen3 x4)" };
    struct explain_resource near = { .name = "receive credits of root ports of a" };
    struct explain_resource far = { .name = "receive credits of root ports of b" };
    g_autofree char *hosts[2] = { g_strdup("hosts.a"), NULL };
    const struct explain_effect all[] = { { .resource = &link, .gain_ratio = 0.5 },
                                          { .resource = &far, .gain_ratio = 0.48 },
                                          { .resource = &near, .gain_ratio = 0.45 } };
    g_autoptr(GArray) effects = g_array_new(FALSE, FALSE, sizeof(struct explain_effect));
    (void)state;
    near.owner = link.root = hosts[0];
    far.owner = g_strdup("hosts.b");
    g_array_append_vals(effects, all, SIM_N_ELEMENTS(all));
    const struct explain_effect *best = &g_array_index(effects, struct explain_effect, 0);
    assert_ptr_equal(explain_credits_of_link(effects, 0.01, true, NULL, best)->resource, &near);
    assert_ptr_equal(explain_credits_of_link(effects, 0.01, true, near.name, best), best);
    link.root = NULL; /* between bridges: any */
    assert_ptr_equal(explain_credits_of_link(effects, 0.01, true, NULL, best)->resource, &far);
    g_free(far.owner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_fit),
        cmocka_unit_test(test_hosts_of_links),
        cmocka_unit_test(test_credits_of_a_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
