/* Every setting that `nudma describe` knows has an effect: changed in a small scenario in which it
 * matters, it changes the fingerprint of the run, or settings/table.h says why it cannot. */
#include <stdio.h>
#include <string.h>

#include "models/world/registry.h"
#include "tests/scenario/settings/table.h"
#include "tests/support/scenario_fixture.h"
#include "workloads/base/describe.h"

#define FOLDER "tests/scenario/settings/"

struct settings {
    GHashTable *fingerprints; /* name of a base -> its run's, as text */
    GHashTable *seen;         /* "ENTRY.KEY" that a row names */
    unsigned n_faults;
};

/* ---- What there is --------------------------------------------------------------------------- */

/* The parameters of that name in `nudma describe`; false: nothing is called so. */
static bool find_params(const char *entry, const struct param_desc **params)
{
    struct describe_entry part;
    for (unsigned i = 0; describe_entry(i, &part); i++)
        if (strcmp(part.name, entry) == 0) {
            *params = part.params;
            return true;
        }
    for (unsigned i = 0; model_registry[i] != NULL; i++)
        if (strcmp(model_registry[i]->type, entry) == 0) {
            *params = model_registry[i]->params;
            return true;
        }
    return false;
}

static bool has_param(const char *entry, const char *key)
{
    const struct param_desc *params = NULL;
    if (!find_params(entry, &params))
        return false;
    for (; params != NULL && params->type != PARAM_END; params++)
        if (strcmp(params->key, key) == 0)
            return true;
    return false;
}

static void fault(struct settings *s, const char *what, const char *base, const char *why)
{
    fprintf(stderr, "%s (%s): %s\n", what, base, why);
    s->n_faults++;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* Sets PATH=VALUE; a path without a dot is one of the group `at`. */
static void set(struct config *config, const char *at, const char *text,
                struct sim_error_list *errors)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL)
        fail_msg("table.h: \"%s\", expected PATH=VALUE", text);
    g_autofree char *path = g_strndup(text, (gsize)(equals - text));
    g_autofree char *whole = strchr(path, '.') != NULL ? g_strdup(path)
                                                       : g_strdup_printf("%s.%s", at, path);
    config_set(config, whole, equals + 1, "--set", errors);
}

static void set_all(struct config *config, const char *at, const char *text, const char *between,
                    struct sim_error_list *errors)
{
    g_auto(GStrv) parts = g_strsplit(text, between, 0);
    for (char **part = parts; *part != NULL; part++)
        if (**part != '\0')
            set(config, at, *part, errors);
}

/* The fingerprint of a run as text; NULL with *error. */
static char *run(const struct base *base, const char *at, const char *change, char **error)
{
    static const char *const folders[] = { "scenarios", NULL };
    struct sim_error_list errors = { 0 };
    struct experiment_outcome ended;
    struct run_result *result = run_result_new();
    g_autofree char *path = g_strdup_printf(FOLDER "%s.cfg", base->file);
    struct config *config = config_load_searching(path, folders, &errors);
    char *fingerprint = NULL;

    fixture_fail(&errors);
    set_all(config, "", base->sets, " ", &errors);
    set_all(config, at, change, "+", &errors);
    *error = NULL;
    if (errors.n_messages != 0)
        *error = g_strdup(errors.message[0]);
    else if (experiment_run(config, 1, result, &ended, NULL, error))
        fingerprint = g_strdup_printf("%016" G_GINT64_MODIFIER "x",
                                      run_result_fingerprint(result, ended.fingerprint));
    sim_error_release(&errors);
    run_result_free(result);
    config_free(config);
    return fingerprint;
}

/* That of a base without a change; owned by the settings. */
static const char *fingerprint_of(struct settings *s, const struct base *base)
{
    char *error = NULL;
    char *known = g_hash_table_lookup(s->fingerprints, base->name);
    if (known == NULL) {
        known = run(base, "", "", &error);
        if (known == NULL)
            fault(s, "the base", base->name, error);
        known = known != NULL ? known : error;
        g_hash_table_insert(s->fingerprints, g_strdup(base->name), known);
    }
    return known;
}

/* ---- The table ------------------------------------------------------------------------------- */

/* What a change is compared with, owned by the settings: the base after all parts but the first, or
 * the base itself where those are refused without the first. Then all go together (both ends of a
 * link), and it is enough that together they have an effect. */
static const char *fingerprint_without(struct settings *s, const struct row *row,
                                       const struct base *base, const char *change)
{
    const char *rest = strchr(change, '+');
    if (rest == NULL)
        return fingerprint_of(s, base);
    g_autofree char *name = g_strdup_printf("%s %s%s", base->name, row->at, rest);
    char *known = g_hash_table_lookup(s->fingerprints, name);
    if (known == NULL) {
        g_autofree char *error = NULL;
        known = run(base, row->at, rest + 1, &error);
        if (known == NULL)
            known = g_strdup(fingerprint_of(s, base));
        g_hash_table_insert(s->fingerprints, g_steal_pointer(&name), known);
    }
    return known;
}

static void try_change(struct settings *s, const struct row *row, const char *what,
                       const char *change)
{
    const struct base *base = find_base(row->base);
    g_autofree char *error = NULL;
    g_autofree char *changed = run(base, row->at, change, &error);

    if (changed == NULL)
        fault(s, what, base->name, error);
    else if (strcmp(changed, fingerprint_without(s, row, base, change)) == 0)
        fault(s, what, base->name, "no effect");
}

/* runs: else the row is only looked at. */
static void try_row(struct settings *s, const struct row *row, bool runs)
{
    g_auto(GStrv) changes = g_strsplit(row->changes, " ", 0);
    for (char **change = changes; *change != NULL; change++) {
        if (**change == '\0')
            continue;
        g_autofree char *key = g_strndup(*change, strcspn(*change, "="));
        g_autofree char *what = g_strdup_printf("%s: %s", row->entry, *change);
        if (!has_param(row->entry, key))
            fault(s, what, "table.h", "no such setting");
        g_hash_table_add(s->seen, g_strdup_printf("%s.%s", row->entry, key));
        if (row->base != NULL && runs)
            try_change(s, row, what, *change);
    }
}

static void look_for(struct settings *s, const char *entry, const struct param_desc *params)
{
    for (; params != NULL && params->type != PARAM_END; params++) {
        g_autofree char *name = g_strdup_printf("%s.%s", entry, params->key);
        if (!g_hash_table_contains(s->seen, name))
            fault(s, name, "table.h", "neither a change nor a reason");
    }
}

static void test_every_setting_has_an_effect(void **state)
{
    struct settings s = {
        .fingerprints = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
        .seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
    };
    struct describe_entry part;
    (void)state;

    for (unsigned i = 0; i < SIM_N_ELEMENTS(rows); i++)
        try_row(&s, &rows[i], i % scenario_stride(8) == 0);
    for (unsigned i = 0; describe_entry(i, &part); i++)
        look_for(&s, part.name, part.params);
    for (unsigned i = 0; model_registry[i] != NULL; i++)
        look_for(&s, model_registry[i]->type, model_registry[i]->params);
    g_hash_table_destroy(s.seen);
    g_hash_table_destroy(s.fingerprints);
    assert_int_equal(s.n_faults, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_setting_has_an_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
