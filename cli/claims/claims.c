/* Reading claims, and holding them against the results. */
#include <math.h>
#include <string.h>

#include "cli/claims/claims.h"

static const char *const claim_keys[] = { "id", "use",       "kind", "expr",   "lo",
                                          "hi", "published", "text", "misses", NULL };
static const char *const kind_names[N_CLAIM_KINDS] = {
    [CLAIM_UNLABELLED] = "-",
    [CLAIM_FITTED] = "fitted",
    [CLAIM_INTERPOLATED] = "interpolated",
    [CLAIM_BY_CONSTRUCTION] = "by construction",
    [CLAIM_PREDICTED] = "predicted",
};
static const char *const file_keys[] = { "title", "paper", "claims", NULL };

/* ---- Reading --------------------------------------------------------------------------------- */

static double claim_number(struct config_node *node, const char *key, struct sim_error_list *errors)
{
    struct config_node *value = config_get(node, key);
    if (value != NULL && (config_kind(value) == CONFIG_FLOAT || config_kind(value) == CONFIG_INT))
        return config_number(value);
    if (value != NULL)
        config_mistake(value, errors, "a number", NULL);
    else
        cli_missing(node, key, errors);
    return (double)NAN;
}

/* "552.4", "63-68"; what follows the number ("2.1x") does not matter. */
static void read_published(struct claim *claim)
{
    char *end = NULL;
    claim->published_lo = claim->published_hi = (double)NAN;
    const double first = g_ascii_strtod(claim->published, &end);
    if (end == claim->published || !isfinite(first))
        return;
    claim->published_lo = claim->published_hi = first;
    if (*end != '-')
        return;
    const char *rest = end + 1;
    const double second = g_ascii_strtod(rest, &end);
    if (end != rest && isfinite(second) && second >= first)
        claim->published_hi = second;
}

/* A baseline may have been calibrated on, so that it is no evidence even if it was not. */
static void read_kind(struct config_node *node, struct claim *claim, struct sim_error_list *errors)
{
    const char *kind = cli_string(node, "kind", errors);
    if (kind == NULL)
        return;
    for (unsigned i = CLAIM_UNLABELLED + 1; i < N_CLAIM_KINDS; i++) {
        if (strcmp(kind, kind_names[i]) == 0)
            claim->kind = i;
    }
    if (claim->kind == CLAIM_UNLABELLED)
        config_mistake(config_get(node, "kind"), errors,
                       "\"fitted\", \"interpolated\", \"by construction\" or \"predicted\"", NULL);
    else if (claim->baseline && claim->kind == CLAIM_PREDICTED)
        config_mistake(config_get(node, "kind"), errors,
                       "another kind: a baseline (use = \"C\") is no prediction", NULL);
    else if (!claim->baseline && claim->kind == CLAIM_FITTED)
        config_mistake(config_get(node, "kind"), errors,
                       "another kind: only baselines (use = \"C\") may be fitted", NULL);
}

/* The name alone: point and metric may be put together by the expression. NULL: it names none. */
static char *first_scenario(const char *expr)
{
    GMatchInfo *match = NULL;
    GRegex *regex = g_regex_new("\\bv\\s*\\(\\s*'((?:[^']|'')*)'", G_REGEX_CASELESS, 0, NULL);
    char *first = g_regex_match(regex, expr, 0, &match) ? g_match_info_fetch(match, 1) : NULL;
    g_match_info_free(match);
    g_regex_unref(regex);
    return first;
}

static bool read_claim(struct config_node *node, struct claim *claim, struct sim_error_list *errors)
{
    const size_t before = errors->n_messages;
    if (!config_expect(node, CONFIG_GROUP, errors,
                       "a group { id, use, expr, lo, hi, published, text }"))
        return false;
    config_allow(node, claim_keys);
    claim->node = node;
    claim->id = cli_required_string(node, "id", errors);
    const char *use = cli_required_string(node, "use", errors);
    claim->expr = cli_required_string(node, "expr", errors);
    claim->published = cli_required_string(node, "published", errors);
    claim->text = cli_required_string(node, "text", errors);
    claim->misses = cli_string(node, "misses", errors);
    claim->lo = claim_number(node, "lo", errors);
    claim->hi = claim_number(node, "hi", errors);
    claim->value = (double)NAN;
    claim->verdict = CLAIM_NO_DATA;
    claim->baseline = use != NULL && strcmp(use, "C") == 0;
    if (use != NULL && !claim->baseline && strcmp(use, "K") != 0)
        config_mistake(config_get(node, "use"), errors, "\"C\" or \"K\"", NULL);
    read_kind(node, claim, errors);
    if (claim->misses != NULL && *claim->misses == '\0')
        config_mistake(config_get(node, "misses"), errors, "the reason why it does not come out",
                       NULL);
    if (claim->lo > claim->hi)
        config_mistake(config_get(node, "lo"), errors, "at most hi", NULL);
    if (errors->n_messages != before)
        return false;
    read_published(claim);
    claim->scenario = first_scenario(claim->expr);
    return true;
}

static void read_claims(struct claims_file *file, struct config_node *list,
                        struct sim_error_list *errors)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (unsigned i = 0; i < config_count(list); i++) {
        struct config_node *node = config_child(list, i);
        struct claim claim = { 0 };
        if (!read_claim(node, &claim, errors))
            continue;
        if (!g_hash_table_add(seen, (gpointer)(uintptr_t)claim.id))
            sim_error_add(errors, config_file(node), config_line(node), "%s: there already",
                          claim.id);
        g_array_append_val(file->claims, claim);
    }
}

static void free_file(gpointer pointer)
{
    struct claims_file *file = pointer;
    for (guint i = 0; i < file->claims->len; i++) {
        g_free(claims_at(file, i)->scenario);
        g_free(claims_at(file, i)->band_misses);
    }
    g_array_free(file->claims, TRUE);
    config_free(file->config);
    g_free(file->path);
    g_free(file->name);
    g_free(file);
}

static void load_file(GPtrArray *files, const char *path, struct sim_error_list *errors)
{
    struct config *config = config_load(path, NULL, errors);
    if (config == NULL)
        return;
    struct claims_file *file = g_new0(struct claims_file, 1);
    struct config_node *root = config_root(config);
    const char *title = cli_string(root, "title", errors);
    const char *paper = cli_string(root, "paper", errors);
    struct config_node *claims = config_get(root, "claims");
    file->path = g_strdup(path);
    file->name = cli_folder_of(path, CLAIMS_FILE);
    file->title = title != NULL ? title : "";
    file->paper = paper != NULL ? paper : "";
    file->config = config;
    file->claims = g_array_new(FALSE, TRUE, sizeof(struct claim));
    config_allow(root, file_keys);
    if (claims == NULL || config_kind(claims) != CONFIG_LIST)
        sim_error_add(errors, path, 0, "claims: not there, expected a list of claims");
    else
        read_claims(file, claims, errors);
    config_check_unknown(config, errors);
    g_ptr_array_add(files, file);
}

/* Also beside the claims: a scenario of one's own. One below the roots has its folder's name before
 * its own. */
static bool is_there(const struct claims_file *file, const struct cli_options *options,
                     const char *scenario, char **names)
{
    g_autofree char *name = g_strconcat(scenario, ".cfg", NULL);
    g_autofree char *own = cli_file_beside(file->path, name);
    if (names != NULL && g_strv_contains((const char *const *)names, scenario))
        return true;
    if (own == NULL)
        return false;
    struct sim_error_list ignored = { 0 };
    struct scenario *loaded = scenario_load(own, (const char *const *)options->roots, NULL,
                                            &ignored);
    const bool there = loaded == NULL || strcmp(scenario_name(loaded), scenario) == 0;
    scenario_free(loaded);
    sim_error_release(&ignored);
    return there;
}

static void find_scenarios(GPtrArray *files, const struct cli_options *options)
{
    static char *const none[] = { NULL };
    struct sim_error_list errors = { 0 };
    g_auto(GStrv) names = cli_scenario_names(options, (char **)(uintptr_t)none, false, &errors);
    sim_error_release(&errors);
    for (guint i = 0; i < files->len; i++) {
        const struct claims_file *file = files->pdata[i];
        for (guint k = 0; k < file->claims->len; k++) {
            g_autoptr(GArray) references = claim_references(claims_at(file, k));
            bool all = true;
            for (guint r = 0; r < references->len && all; r++)
                all = is_there(file, options,
                               g_array_index(references, struct claim_reference, r).scenario,
                               names);
            claims_at(file, k)->has_scenario = all;
        }
    }
}

GPtrArray *claims_load(const struct cli_options *options, char **arguments,
                       struct sim_error_list *errors)
{
    GPtrArray *files = g_ptr_array_new_with_free_func(free_file);
    g_autoptr(GPtrArray) paths = cli_files_beside(options, CLAIMS_FILE, "claims", arguments,
                                                  errors);
    for (guint i = 0; i < paths->len; i++)
        if (!cli_refuse_scenario(options, paths->pdata[i], "claims",
                                 "a file of claims (docs/claims.md): the claims of a scenario "
                                 "stand in a file " CLAIMS_FILE " beside it",
                                 errors))
            load_file(files, paths->pdata[i], errors);
    find_scenarios(files, options);
    return files;
}

static bool is_loaded(const GPtrArray *files, const char *path)
{
    for (guint i = 0; i < files->len; i++)
        if (cli_same_file(((const struct claims_file *)files->pdata[i])->path, path))
            return true;
    return false;
}

void claims_load_beside(GPtrArray *files, const GPtrArray *scenarios, struct sim_error_list *errors)
{
    for (guint i = 0; i < scenarios->len; i++) {
        g_autofree char *path = cli_file_beside(scenario_path(scenarios->pdata[i]), CLAIMS_FILE);
        if (path != NULL && !is_loaded(files, path))
            load_file(files, path, errors);
    }
}

/* ---- Comparing ------------------------------------------------------------------------------- */

/* A scenario of one's own need not be below the roots. */
static bool has_results(const struct claim *claim, struct results_db *db)
{
    g_autoptr(GArray) references = claim_references(claim);
    bool all = references->len > 0;
    for (guint i = 0; i < references->len && all; i++)
        all = claim_scenario_has_results(
            db, g_array_index(references, struct claim_reference, i).scenario);
    return all;
}

static enum claim_verdict judge(const struct claim *claim, struct results_db *db)
{
    if (isnan(claim->value))
        return claim->has_scenario || has_results(claim, db) ? CLAIM_NO_DATA : CLAIM_NO_SCENARIO;
    const bool holds = claim->value >= claim->lo && claim->value <= claim->hi;
    if (claim->misses != NULL)
        return holds ? CLAIM_NOW_HOLDS : CLAIM_KNOWN_MISS;
    return holds ? CLAIM_OK : CLAIM_MISS;
}

static void evaluate(struct claim *claim, struct results_db *db, struct sim_error_list *errors)
{
    g_autofree char *message = NULL;
    if (!results_evaluate(db, claim->expr, &claim->value, &message))
        sim_error_add(errors, config_file(claim->node), config_line(claim->node), "%s: expr: %s",
                      claim->id, message);
    claim->verdict = judge(claim, db);
}

void claims_evaluate(GPtrArray *files, const char *scenario, struct results_db *db,
                     struct sim_error_list *errors)
{
    for (guint i = 0; i < files->len; i++) {
        const struct claims_file *file = files->pdata[i];
        for (guint k = 0; k < file->claims->len; k++) {
            if (scenario == NULL || g_strcmp0(claims_at(file, k)->scenario, scenario) == 0)
                evaluate(claims_at(file, k), db, errors);
        }
    }
}

struct claim *claims_at(const struct claims_file *file, guint index)
{
    return &g_array_index(file->claims, struct claim, index);
}

struct claim *claims_find(const GPtrArray *files, const char *id)
{
    for (guint i = 0; i < files->len; i++) {
        const struct claims_file *file = files->pdata[i];
        for (guint k = 0; k < file->claims->len; k++) {
            if (strcmp(claims_at(file, k)->id, id) == 0)
                return claims_at(file, k);
        }
    }
    return NULL;
}

bool claim_holds(const struct claim *claim)
{
    return claim->verdict == CLAIM_OK || claim->verdict == CLAIM_NOW_HOLDS;
}

void claims_count(const struct claims_file *file, struct claims_tally *tally)
{
    for (guint k = 0; k < file->claims->len; k++) {
        const struct claim *claim = claims_at(file, k);
        tally->n[claim->verdict]++;
        tally->n_baselines += claim->baseline;
        tally->n_predictions += !claim->baseline;
        tally->baselines_hold += claim->baseline && claim_holds(claim);
        tally->predictions_hold += !claim->baseline && claim_holds(claim);
        tally->n_kind[claim->kind]++;
        tally->kind_holds[claim->kind] += claim_holds(claim);
    }
}

unsigned claims_holding(const struct claims_tally *tally)
{
    return tally->baselines_hold + tally->predictions_hold;
}

unsigned claims_total(const struct claims_tally *tally)
{
    return tally->n_baselines + tally->n_predictions;
}

unsigned claims_covered(const struct claims_tally *tally)
{
    return claims_total(tally) - tally->n[CLAIM_NO_SCENARIO];
}

/* "; 2 known misses hold now" */
static void append_count(GString *text, unsigned n, const char *one, const char *many)
{
    if (n > 0)
        g_string_append_printf(text, "; %u %s", n, n == 1 ? one : many);
}

char *claims_summary(const struct claims_tally *tally)
{
    GString *text = g_string_new(NULL);
    g_string_append_printf(
        text, "%u of %u given claims hold, %u covered (C: %u of %u, K: %u of %u)",
        claims_holding(tally), claims_total(tally), claims_covered(tally), tally->baselines_hold,
        tally->n_baselines, tally->predictions_hold, tally->n_predictions);
    append_count(text, tally->n[CLAIM_KNOWN_MISS], "known miss", "known misses");
    append_count(text, tally->n[CLAIM_MISS], "MISS without a known reason",
                 "MISSES without a known reason");
    append_count(text, tally->n[CLAIM_NOW_HOLDS], "known miss holds now", "known misses hold now");
    append_count(text, tally->n[CLAIM_NO_DATA], "without data", "without data");
    append_count(text, tally->n[CLAIM_NO_SCENARIO], "without a scenario", "without a scenario");
    return g_string_free(text, FALSE);
}

char *claims_kinds_summary(const struct claims_tally *tally)
{
    GString *text = g_string_new(NULL);
    if (tally->n_kind[CLAIM_UNLABELLED] == claims_total(tally))
        return g_string_free(text, FALSE);
    for (unsigned i = CLAIM_UNLABELLED + 1; i < N_CLAIM_KINDS; i++)
        g_string_append_printf(text, "%s%s %u of %u", text->len > 0 ? ", " : "", kind_names[i],
                               tally->kind_holds[i], tally->n_kind[i]);
    if (tally->n_kind[CLAIM_UNLABELLED] > 0)
        g_string_append_printf(text, ", without a kind %u of %u",
                               tally->kind_holds[CLAIM_UNLABELLED],
                               tally->n_kind[CLAIM_UNLABELLED]);
    return g_string_free(text, FALSE);
}

const char *claim_kind_name(enum claim_kind kind)
{
    return kind_names[kind];
}

const char *claim_verdict_name(enum claim_verdict verdict)
{
    static const char *const names[N_CLAIM_VERDICTS] = {
        [CLAIM_OK] = "ok",           [CLAIM_NOW_HOLDS] = "now holds",
        [CLAIM_MISS] = "MISS",       [CLAIM_KNOWN_MISS] = "known miss",
        [CLAIM_NO_DATA] = "no data", [CLAIM_NO_SCENARIO] = "no scenario",
    };
    return names[verdict];
}

double claim_error_pct(const struct claim *claim)
{
    const double lo = claim->published_lo, hi = claim->published_hi, value = claim->value;
    if (isnan(value) || isnan(lo))
        return (double)NAN;
    const double from = value < lo ? lo : value > hi ? hi : value;
    if (value == from)
        return 0.0;
    return from != 0.0 ? 100.0 * (value - from) / fabs(from) : (double)NAN;
}

const char *claim_error_text(const struct claim *claim, char buffer[32])
{
    const double error = claim_error_pct(claim);
    if (isnan(error))
        g_strlcpy(buffer, "-", 32);
    else
        g_snprintf(buffer, 32, fabs(error) < 0.05 ? "0.0" : "%+.1f", error);
    return buffer;
}

double claim_target(const struct claim *claim)
{
    return isnan(claim->published_lo) ? (claim->lo + claim->hi) / 2.0
                                      : (claim->published_lo + claim->published_hi) / 2.0;
}

/* ---- What an expression asks for ------------------------------------------------------------- */

static void clear_reference(gpointer pointer)
{
    struct claim_reference *reference = pointer;
    g_free(reference->scenario);
    g_free(reference->point);
    g_free(reference->metric);
}

GArray *claim_references(const struct claim *claim)
{
    static const char text[] = "'((?:[^']|'')*)'";
    GArray *references = g_array_new(FALSE, TRUE, sizeof(struct claim_reference));
    GMatchInfo *match = NULL;
    g_autofree char *pattern = g_strdup_printf("\\bv\\s*\\(\\s*%s\\s*,\\s*%s\\s*,\\s*%s\\s*\\)",
                                               text, text, text);
    GRegex *regex = g_regex_new(pattern, G_REGEX_CASELESS, 0, NULL);
    g_array_set_clear_func(references, clear_reference);
    for (g_regex_match(regex, claim->expr, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL)) {
        const struct claim_reference reference = { g_match_info_fetch(match, 1),
                                                   g_match_info_fetch(match, 2),
                                                   g_match_info_fetch(match, 3) };
        g_array_append_val(references, reference);
    }
    g_match_info_free(match);
    g_regex_unref(regex);
    return references;
}
