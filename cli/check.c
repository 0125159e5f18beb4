/* nudma check: published claims against the results. docs/commands.md describes the files. */
#include <math.h>
#include <string.h>

#include "cli/cli.h"
#include "sim/config.h"

struct claim {
    const char *id, *use, *expr, *published, *text;
    double lo, hi;
};

/* What was counted: C baselines, K predictions. */
struct tally {
    unsigned n, hold, n_no_data;
};

struct checker {
    struct results_db *db;
    struct cli_table *table;
    struct tally c, k;
    struct sim_error_list errors;
};

static const char *const claim_keys[] = {
    "id", "use", "expr", "lo", "hi", "published", "text", NULL
};

static const char *claim_string(struct config_node *node, const char *key,
                                struct sim_error_list *errors)
{
    struct config_node *value = config_get(node, key);
    if (value != NULL && config_kind(value) == CONFIG_STRING)
        return config_string(value);
    if (value != NULL)
        config_mistake(value, errors, "a string", NULL);
    else
        sim_error_add(errors, config_file(node), config_line(node), "%s: no setting \"%s\"",
                      config_path(node), key);
    return NULL;
}

static double claim_number(struct config_node *node, const char *key, struct sim_error_list *errors)
{
    struct config_node *value = config_get(node, key);
    if (value != NULL && (config_kind(value) == CONFIG_FLOAT || config_kind(value) == CONFIG_INT))
        return config_number(value);
    if (value != NULL)
        config_mistake(value, errors, "a number", NULL);
    else
        sim_error_add(errors, config_file(node), config_line(node), "%s: no setting \"%s\"",
                      config_path(node), key);
    return (double)NAN;
}

static bool read_claim(struct config_node *node, struct claim *claim, struct sim_error_list *errors)
{
    const size_t before = errors->n_messages;
    if (config_kind(node) != CONFIG_GROUP) {
        config_mistake(node, errors, "a group { id, use, expr, lo, hi, published, text }", NULL);
        return false;
    }
    config_allow(node, claim_keys);
    claim->id = claim_string(node, "id", errors);
    claim->use = claim_string(node, "use", errors);
    claim->expr = claim_string(node, "expr", errors);
    claim->published = claim_string(node, "published", errors);
    claim->text = claim_string(node, "text", errors);
    claim->lo = claim_number(node, "lo", errors);
    claim->hi = claim_number(node, "hi", errors);
    if (claim->use != NULL && strcmp(claim->use, "C") != 0 && strcmp(claim->use, "K") != 0)
        config_mistake(config_get(node, "use"), errors, "\"C\" or \"K\"", NULL);
    if (claim->lo > claim->hi)
        config_mistake(config_get(node, "lo"), errors, "at most hi", NULL);
    return errors->n_messages == before;
}

static void check_claim(struct checker *checker, struct config_node *node)
{
    struct claim claim;
    char *message = NULL, text[32], lo[32], hi[32];
    double value = (double)NAN;
    if (!read_claim(node, &claim, &checker->errors))
        return;
    if (!results_evaluate(checker->db, claim.expr, &value, &message)) {
        sim_error_add(&checker->errors, config_file(node), config_line(node), "%s: expr: %s",
                      claim.id, message);
        g_free(message);
        return;
    }
    struct tally *tally = *claim.use == 'C' ? &checker->c : &checker->k;
    const bool no_data = isnan(value), holds = value >= claim.lo && value <= claim.hi;
    tally->n++;
    tally->hold += holds;
    tally->n_no_data += no_data;
    cli_table_cell(checker->table, "%s", claim.id);
    cli_table_cell(checker->table, "%s", claim.use);
    cli_table_cell(checker->table, "%s", claim.published);
    cli_table_cell(checker->table, "%s..%s", cli_number(claim.lo, lo), cli_number(claim.hi, hi));
    cli_table_cell(checker->table, "%s", no_data ? "-" : cli_number(value, text));
    cli_table_cell(checker->table, "%s", no_data ? "no data" : holds ? "ok" : "MISS");
}

static void check_file(struct checker *checker, const char *path)
{
    static const char *const keys[] = { "claims", NULL };
    struct config *config = config_load(path, NULL, &checker->errors);
    if (config == NULL)
        return;
    config_allow(config_root(config), keys);
    struct config_node *claims = config_get(config_root(config), "claims");
    if (claims == NULL || config_kind(claims) != CONFIG_LIST)
        sim_error_add(&checker->errors, path, 0, "claims: not there, expected a list of claims");
    for (unsigned i = 0; claims != NULL && i < config_count(claims); i++)
        check_claim(checker, config_child(claims, i));
    config_check_unknown(config, &checker->errors);
    config_free(config);
}

static int by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every claims.cfg in a folder below the roots; a folder of that name in an earlier root hides it.
 */
static GPtrArray *default_files(const struct cli_options *options)
{
    GPtrArray *files = g_ptr_array_new_with_free_func(g_free);
    GHashTable *seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (char **root = options->roots; *root != NULL; root++) {
        GDir *dir = g_dir_open(*root, 0, NULL);
        for (const char *name; dir != NULL && (name = g_dir_read_name(dir)) != NULL;) {
            char *path = g_build_filename(*root, name, "claims.cfg", NULL);
            if (g_file_test(path, G_FILE_TEST_IS_REGULAR) && g_hash_table_add(seen, g_strdup(name)))
                g_ptr_array_add(files, path);
            else
                g_free(path);
        }
        if (dir != NULL)
            g_dir_close(dir);
    }
    g_hash_table_destroy(seen);
    g_ptr_array_sort(files, by_name);
    return files;
}

/* A path, or a folder of scenarios: "pcie_bench" means scenarios/pcie_bench/claims.cfg. */
static char *find_claims(const struct cli_options *options, const char *argument)
{
    if (g_file_test(argument, G_FILE_TEST_IS_REGULAR))
        return g_strdup(argument);
    char *name = g_build_filename(argument, "claims.cfg", NULL);
    char *path = cli_find_file(options, name);
    g_free(name);
    return path != NULL ? path : g_strdup(argument); /* config_load() says what is wrong */
}

static int print_outcome(struct checker *checker)
{
    const struct tally *c = &checker->c, *k = &checker->k;
    cli_table_print(checker->table, "", stdout);
    printf("\n%u of %u claims hold (C: %u of %u, K: %u of %u)", c->hold + k->hold, c->n + k->n,
           c->hold, c->n, k->hold, k->n);
    if (c->n_no_data + k->n_no_data > 0)
        printf("; %u without data", c->n_no_data + k->n_no_data);
    printf("\n");
    return c->hold + k->hold == c->n + k->n ? CLI_DONE : CLI_FAILED;
}

static int check_files(struct checker *checker, const struct cli_options *options, char **arguments)
{
    GPtrArray *files = *arguments != NULL ? g_ptr_array_new_with_free_func(g_free)
                                          : default_files(options);
    for (; *arguments != NULL; arguments++)
        g_ptr_array_add(files, find_claims(options, *arguments));
    if (files->len == 0)
        sim_error_add(&checker->errors, NULL, 0, "no claims.cfg beside any scenario");
    for (guint i = 0; i < files->len; i++)
        check_file(checker, files->pdata[i]);
    g_ptr_array_free(files, TRUE);
    if (checker->errors.n_messages == 0)
        return print_outcome(checker);
    cli_report(&checker->errors);
    return CLI_WRONG;
}

int cli_check(int argc, char **argv)
{
    static const struct {
        const char *title;
        bool right;
    } columns[] = { { "claim", false },    { "use", false },      { "published", true },
                    { "accepted", false }, { "simulated", true }, { "verdict", false } };
    struct cli_options options = { 0 };
    int status = CLI_DONE;
    if (cli_parse(&options, "[CLAIMS...]", "Compares results with published claims.",
                  "CLAIMS is a file of claims, or a folder of scenarios that has one; without, all "
                  "files claims.cfg\nbeside the scenarios. Use C: a baseline that may be "
                  "calibrated on; K: an outcome that has to come out\nby itself. Exit status 1 if "
                  "a claim misses or has no data.",
                  NULL, argc, argv, &status)) {
        struct checker checker = { .table = cli_table_new() };
        for (size_t i = 0; i < SIM_N_ELEMENTS(columns); i++)
            cli_table_column(checker.table, columns[i].title, columns[i].right);
        checker.db = cli_open_for_reading(&options);
        status = checker.db == NULL ? CLI_FAILED
                                    : check_files(&checker, &options, options.arguments);
        results_close(checker.db);
        cli_table_free(checker.table);
    }
    cli_options_release(&options);
    return status;
}
