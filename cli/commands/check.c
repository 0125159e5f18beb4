/* nudma check: published claims against the results, as a table or as JSON. */
#include <math.h>
#include <string.h>

#include "cli/base/json.h"
#include "cli/base/scenarios.h"
#include "cli/claims/claims.h"
#include "cli/results/result_older.h"
#include "sim/store/version.h"

/* ---- As a table ------------------------------------------------------------------------------ */

static enum cli_colour colour_of(const struct claim *claim)
{
    switch (claim->verdict) {
    case CLAIM_OK:
    case CLAIM_NOW_HOLDS: return CLI_GREEN;
    case CLAIM_MISS: return CLI_RED;
    case CLAIM_KNOWN_MISS: return CLI_YELLOW;
    case CLAIM_NO_DATA:
    case CLAIM_NO_SCENARIO:
    case N_CLAIM_VERDICTS: break;
    }
    return CLI_PLAIN;
}

static void add_published(struct cli_table *table, const struct claim *claim)
{
    char lo[32], hi[32];
    cli_table_cell(table, "%s", claim->baseline ? "C" : "K");
    cli_table_cell(table, "%s", claim_kind_name(claim->kind));
    cli_table_cell(table, "%s", claim->published);
    cli_table_cell(table, "%s..%s", cli_number(claim->lo, lo), cli_number(claim->hi, hi));
}

static void add_simulated(struct cli_table *table, const struct claim *claim)
{
    char text[32], error[32];
    cli_table_cell(table, "%s", isnan(claim->value) ? "-" : cli_number(claim->value, text));
    cli_table_cell(table, "%s", claim_error_text(claim, error));
}

static void add_verdict(struct cli_table *table, const struct claim *claim)
{
    cli_table_cell(table, "%s", claim_verdict_name(claim->verdict));
    cli_table_colour(table, colour_of(claim));
}

static void print_claims(const struct claims_file *file)
{
    struct cli_table *wide =
        cli_table_new("claim|use|kind|>published|accepted|>simulated|>error %|verdict");
    /* On lines that are continued, what matters most comes first. */
    struct cli_table *narrow =
        cli_table_new("claim|verdict|>simulated|>error %|use|kind|>published|accepted");
    for (guint k = 0; k < file->claims->len; k++) {
        const struct claim *claim = claims_at(file, k);
        cli_table_cell(wide, "%s", claim->id);
        add_published(wide, claim);
        add_simulated(wide, claim);
        add_verdict(wide, claim);
        cli_table_cell(narrow, "%s", claim->id);
        add_verdict(narrow, claim);
        add_simulated(narrow, claim);
        add_published(narrow, claim);
    }
    cli_table_print(cli_table_fits(wide, "") ? wide : narrow, "", stdout);
    cli_table_free(wide);
    cli_table_free(narrow);
}

static void print_now_holds(const struct claim *claim)
{
    puts("");
    cli_print_line(stdout,
                   "now holds: %s, although %s:%d marks it as a known miss: take `misses` out",
                   claim->id, config_file(claim->node), config_line(claim->node));
}

/* Every reason once, below the claims that share it. */
static void print_reasons(const struct claims_file *file)
{
    for (guint i = 0; i < file->claims->len; i++) {
        const struct claim *claim = claims_at(file, i);
        bool said = false;
        if (claim->verdict != CLAIM_KNOWN_MISS)
            continue;
        for (guint k = 0; k < i; k++)
            said = said || (claims_at(file, k)->verdict == CLAIM_KNOWN_MISS &&
                            strcmp(claims_at(file, k)->misses, claim->misses) == 0);
        if (said)
            continue;
        g_autoptr(GString) ids = g_string_new("known miss:");
        for (guint k = i; k < file->claims->len; k++) {
            const struct claim *other = claims_at(file, k);
            if (other->verdict == CLAIM_KNOWN_MISS && strcmp(other->misses, claim->misses) == 0)
                g_string_append_printf(ids, "%s %s", k > i ? "," : "", other->id);
        }
        g_autofree char *why = g_strconcat("    ", claim->misses, NULL);
        puts("");
        cli_print_words(ids->str, 4);
        cli_print_words(why, 4);
    }
    for (guint i = 0; i < file->claims->len; i++) {
        const struct claim *claim = claims_at(file, i);
        if (claim->verdict == CLAIM_NOW_HOLDS)
            print_now_holds(claim);
    }
}

/* Names in expressions that the database does not know, each below the first claim with it. */
static void print_missing(const struct cli_options *options, const struct claims_file *file,
                          struct results_db *db)
{
    g_autoptr(GHashTable) said = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) scenarios = claim_scenarios_new();
    for (guint i = 0; i < file->claims->len; i++) {
        const struct claim *claim = claims_at(file, i);
        if (claim->verdict != CLAIM_NO_DATA && claim->verdict != CLAIM_NO_SCENARIO)
            continue;
        char *why = claim_missing_name(claim, options, scenarios, db);
        if (why == NULL || !g_hash_table_add(said, why))
            continue;
        g_autofree char *text = g_strdup_printf("%s: %s: %s", claim_verdict_name(claim->verdict),
                                                claim->id, why);
        cli_print_words(text, 4);
    }
}

/* "band: dl.fig04a.read: 2.9..5.6 at the ends of 3 ranges' values; holds in part: ..." */
static void print_bands(const struct claims_file *file)
{
    for (guint i = 0; i < file->claims->len; i++) {
        const struct claim *claim = claims_at(file, i);
        char lo[32], hi[32];
        if (claim->n_variants == 0)
            continue;
        const bool all = claim->n_variants_hold == claim->n_variants && claim_holds(claim);
        const bool none = claim->n_variants_hold == 0 && !claim_holds(claim);
        g_autofree char *where =
            all || none ? g_strdup(all ? "holds in all of it" : "holds nowhere in it")
                        : g_strdup_printf("holds in part of it%s%s",
                                          claim->band_misses != NULL ? ", not with " : "",
                                          claim->band_misses != NULL ? claim->band_misses : "");
        g_autofree char *text =
            g_strdup_printf("band: %s: %s..%s with %u values at the ends of their "
                            "ranges; %s",
                            claim->id, cli_number(claim->band_lo, lo),
                            cli_number(claim->band_hi, hi), claim->n_variants, where);
        cli_print_words(text, 4);
    }
}

/* Whether a run of the point has failed since the one whose values count. */
static bool is_overtaken(struct results_db *db, const struct claim_reference *r)
{
    bool found = false;
    struct results_cursor *cursor = results_overtaken(db, r->scenario);
    for (const char *point; (point = results_next_name(cursor)) != NULL;)
        found = found || strcmp(point, r->point) == 0;
    results_end(cursor, NULL);
    return found;
}

static bool is_changed(struct results_db *db, const struct claim_reference *r)
{
    bool changed = false;
    struct results_cursor *cursor = results_params(db, r->scenario, r->point);
    for (const struct results_param *param; (param = results_next_param(cursor)) != NULL;)
        changed = changed || strcmp(param->name, RESULT_NOTE_CHANGES) == 0;
    results_end(cursor, NULL);
    return changed;
}

/* Adds "SCENARIO POINT" of each point of the scenario that was run with another text than its file
 * has. */
static void find_older(GHashTable *older, const struct cli_options *options, struct results_db *db,
                       const char *name)
{
    struct sim_error_list errors = { 0 };
    struct scenario *scenario = scenario_load(name, (const char *const *)options->roots, NULL,
                                              &errors);
    g_autoptr(GPtrArray) points = result_older_points(db, name,
                                                      errors.n_messages == 0 ? scenario : NULL);
    for (guint i = 0; i < points->len; i++)
        g_hash_table_add(older, g_strconcat(name, " ", points->pdata[i], NULL));
    scenario_free(scenario);
    sim_error_release(&errors);
}

/* Points behind the claims whose newest run had not settled, or is not the last; each once. */
static void print_notes(const struct cli_options *options, const struct claims_file *file,
                        struct results_db *db)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) scenarios = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) older = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < file->claims->len; i++) {
        g_autoptr(GArray) references = claim_references(claims_at(file, i));
        for (guint k = 0; k < references->len; k++) {
            const struct claim_reference *r = &g_array_index(references, struct claim_reference, k);
            g_autofree char *name = g_strconcat(r->scenario, " ", r->point, NULL);
            if (!g_hash_table_add(seen, g_strdup(name)))
                continue;
            if (g_hash_table_add(scenarios, g_strdup(r->scenario)))
                find_older(older, options, db, r->scenario);
            struct results_cursor *cursor = results_params(db, r->scenario, r->point);
            for (const struct results_param *param; (param = results_next_param(cursor)) != NULL;)
                if (g_str_has_prefix(param->name, "note.not_settled."))
                    cli_print_line(stdout, "not settled: %s %s: %s", r->scenario, r->point,
                                   param->value);
            results_end(cursor, NULL);
            if (is_changed(db, r))
                cli_print_line(stdout, "changed by --set: %s %s", r->scenario, r->point);
            if (g_hash_table_contains(older, name))
                cli_print_line(stdout, "of an older text of the scenario: %s", name);
            if (is_overtaken(db, r))
                cli_print_line(stdout, "of an earlier run: %s %s: a later one has failed",
                               r->scenario, r->point);
        }
    }
}

/* One line for the kinds, and below it one for all. */
static void print_summary(const char *prefix, const struct claims_tally *tally)
{
    g_autofree char *kinds = claims_kinds_summary(tally), *summary = claims_summary(tally);
    g_autofree char *first = g_strconcat(prefix, kinds, NULL);
    g_autofree char *second = g_strconcat(prefix, summary, NULL);
    if (*kinds != '\0')
        cli_print_words(first, 0);
    cli_print_words(second, 0);
}

static void print_tables(const struct cli_options *options, const GPtrArray *files,
                         const struct claims_tally *all, struct results_db *db)
{
    for (guint i = 0; i < files->len; i++) {
        const struct claims_file *file = files->pdata[i];
        struct claims_tally tally = { 0 };
        cli_print_line(stdout, "%s%s%s", file->name, *file->title != '\0' ? ": " : "", file->title);
        print_claims(file);
        print_reasons(file);
        print_missing(options, file, db);
        print_bands(file);
        print_notes(options, file, db);
        claims_count(file, &tally);
        printf("\n");
        if (files->len > 1) {
            g_autofree char *prefix = g_strconcat(file->name, ": ", NULL);
            print_summary(prefix, &tally);
            printf("\n");
        }
    }
    print_summary("", all);
}

/* ---- As JSON --------------------------------------------------------------------------------- */

/* JSON has no NAN. */
static void print_number(const char *key, double value)
{
    if (isfinite(value))
        printf(", \"%s\": %.12g", key, value);
    else
        printf(", \"%s\": null", key);
}

static void print_claim(const struct claim *claim)
{
    json_member(stdout, "      { ", "id", claim->id);
    json_member(stdout, ", ", "use", claim->baseline ? "C" : "K");
    json_member(stdout, ", ", "kind",
                claim->kind != CLAIM_UNLABELLED ? claim_kind_name(claim->kind) : "");
    json_member(stdout, ", ", "published", claim->published);
    print_number("lo", claim->lo);
    print_number("hi", claim->hi);
    print_number("simulated", claim->value);
    print_number("error_percent", claim_error_pct(claim));
    if (claim->n_variants > 0) {
        print_number("band_lo", claim->band_lo);
        print_number("band_hi", claim->band_hi);
        printf(", \"variants\": %u, \"variants_hold\": %u", claim->n_variants,
               claim->n_variants_hold);
    }
    json_member(stdout, ", ", "verdict", claim_verdict_name(claim->verdict));
    if (claim->misses != NULL)
        json_member(stdout, ", ", "misses", claim->misses);
    else
        printf(", \"misses\": null");
    json_member(stdout, ", ", "expr", claim->expr);
    json_member(stdout, ", ", "text", claim->text);
    printf(" }");
}

static void print_tally(const char *indent, const struct claims_tally *tally)
{
    printf("%s\"summary\": { \"claims\": %u, \"hold\": %u, \"baselines\": %u, "
           "\"baselines_hold\": %u, \"predictions\": %u, \"predictions_hold\": %u, "
           "\"misses\": %u, \"known_misses\": %u, \"now_hold\": %u, \"no_data\": %u, "
           "\"covered\": %u",
           indent, claims_total(tally), claims_holding(tally), tally->n_baselines,
           tally->baselines_hold, tally->n_predictions, tally->predictions_hold,
           tally->n[CLAIM_MISS], tally->n[CLAIM_KNOWN_MISS], tally->n[CLAIM_NOW_HOLDS],
           tally->n[CLAIM_NO_DATA], claims_covered(tally));
    for (unsigned i = CLAIM_UNLABELLED + 1; i < N_CLAIM_KINDS; i++)
        printf(", \"%s\": { \"claims\": %u, \"hold\": %u }", claim_kind_name(i), tally->n_kind[i],
               tally->kind_holds[i]);
    printf(" }");
}

static void print_json(const GPtrArray *files, const struct claims_tally *all)
{
    json_member(stdout, "{\n  ", "version", sim_version());
    printf(",\n  \"papers\": [\n");
    for (guint i = 0; i < files->len; i++) {
        const struct claims_file *file = files->pdata[i];
        struct claims_tally tally = { 0 };
        claims_count(file, &tally);
        json_member(stdout, "    { ", "paper", file->name);
        json_member(stdout, ", ", "title", file->title);
        printf(", \"claims\": [\n");
        for (guint k = 0; k < file->claims->len; k++) {
            print_claim(claims_at(file, k));
            printf(k + 1 < file->claims->len ? ",\n" : "\n");
        }
        print_tally("      ], ", &tally);
        printf(i + 1 < files->len ? " },\n" : " }\n");
    }
    print_tally("  ],\n  ", all);
    printf("\n}\n");
}

/* ---- The command ----------------------------------------------------------------------------- */

struct check_request {
    struct cli_options options;
    gboolean json, known_ok, bands;
};

static int check_files(const struct check_request *request, GPtrArray *files, struct results_db *db)
{
    struct sim_error_list errors = { 0 };
    struct claims_tally all = { 0 };
    claims_evaluate(files, NULL, db, &errors);
    claims_evaluate_bands(files, db, &errors);
    if (errors.n_messages > 0) {
        cli_report(&errors);
        return results_failed(db) ? CLI_FAILED : CLI_WRONG;
    }
    for (guint i = 0; i < files->len; i++)
        claims_count(files->pdata[i], &all);
    if (request->json)
        print_json(files, &all);
    else
        print_tables(&request->options, files, &all, db);
    const unsigned excused = request->known_ok ? all.n[CLAIM_KNOWN_MISS] : 0;
    return claims_holding(&all) + excused == claims_total(&all) ? CLI_DONE : CLI_FAILED;
}

static int check(const struct check_request *request)
{
    struct sim_error_list errors = { 0 };
    int status = CLI_WRONG;
    g_autoptr(GPtrArray) files = claims_load(&request->options, request->options.arguments,
                                             &errors);
    if (errors.n_messages > 0) {
        cli_report(&errors);
    } else {
        struct results_db *db = cli_open_for_reading(&request->options);
        status = db != NULL ? check_files(request, files, db) : CLI_FAILED;
        results_close(db);
    }
    return status;
}

int cli_check(int argc, char **argv)
{
    struct check_request request = { 0 };
    const GOptionEntry entries[] = {
        { "json", 0, 0, G_OPTION_ARG_NONE, &request.json, "Print JSON instead of tables", NULL },
        { "bands", 0, 0, G_OPTION_ARG_NONE, &request.bands,
          "Of results/bands.db, unless --db says otherwise: what nudma run --bands has stored",
          NULL },
        { "known-ok", 0, 0, G_OPTION_ARG_NONE, &request.known_ok,
          "Exit status 0 if only claims miss that are marked as known misses", NULL },
        { .long_name = NULL },
    };
    int status = CLI_DONE;
    if (cli_has_option("--bands", argc, argv))
        request.options.default_db = "bands.db";
    if (cli_parse(
            &request.options, "[CLAIMS...]", "Compares results with published claims.",
            "CLAIMS is a file of claims, a folder of scenarios that has one, or a scenario with a "
            "file\nclaims.cfg beside it; without, all of these beside the scenarios. Use C: a "
            "baseline that may be\ncalibrated on; K: an outcome that has to come out by itself. "
            "Kind: how the outcome came about\n(docs/claims.md). Error: of the simulated value "
            "from the published one. Exit status 1 if a claim\nmisses, known to or not, or has no "
            "data.",
            entries, argc, argv, &status))
        status = check(&request);
    cli_options_release(&request.options);
    return status;
}
