/* Each rule of explain is the first to fit some setting: none names one that is gone, and none is
 * hidden. */
#include <glib.h>

#include "cli/explain/explain.h"
#include "models/base/model.h"
#include "models/world/registry.h"
#include "tests/support/test.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
