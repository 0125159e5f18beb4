/* Claims at the ends of ranges: whether they hold in the whole band, in a part of it, or
 * nowhere. */
#include <math.h>
#include <string.h>

#include "cli/claims/claims.h"

/* Adds the variants of the scenario's points that begin with `point`: "p2p_reads_max=16". */
static void find_variants(struct results_db *db, const struct claim_reference *reference,
                          GHashTable *variants)
{
    g_autofree char *stem = results_variant_name(reference->point, "");
    struct results_cursor *cursor = results_points(db, reference->scenario);
    for (const char *name; (name = results_next_name(cursor)) != NULL;)
        if (g_str_has_prefix(name, stem))
            g_hash_table_add(variants, g_strdup(name + strlen(stem)));
    results_end(cursor, NULL);
}

static gint by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted; g_free() the array alone. */
static GPtrArray *variants_of(const struct claim *claim, struct results_db *db,
                              GHashTable *variants)
{
    g_autoptr(GArray) references = claim_references(claim);
    GPtrArray *sorted = g_ptr_array_new();
    GHashTableIter iter;
    gpointer variant;
    for (guint i = 0; i < references->len; i++)
        find_variants(db, &g_array_index(references, struct claim_reference, i), variants);
    g_hash_table_iter_init(&iter, variants);
    while (g_hash_table_iter_next(&iter, &variant, NULL))
        g_ptr_array_add(sorted, variant);
    g_ptr_array_sort(sorted, by_text);
    return sorted;
}

static bool evaluate(struct claim *claim, struct results_db *db, const char *variant, double *value,
                     struct sim_error_list *errors)
{
    g_autofree char *message = NULL;
    results_set_variant(db, variant);
    const bool good = results_evaluate(db, claim->expr, value, &message);
    results_set_variant(db, NULL);
    if (!good)
        sim_error_add(errors, config_file(claim->node), config_line(claim->node), "%s: expr: %s",
                      claim->id, message);
    return good && !isnan(*value);
}

static void evaluate_band(struct claim *claim, struct results_db *db, struct sim_error_list *errors)
{
    g_autoptr(GHashTable) owner = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) variants = variants_of(claim, db, owner);
    g_autoptr(GString) misses = g_string_new(NULL);
    claim->band_lo = claim->band_hi = claim->value;
    for (guint i = 0; i < variants->len && !isnan(claim->value); i++) {
        double value = (double)NAN;
        char text[32];
        if (!evaluate(claim, db, variants->pdata[i], &value, errors))
            continue;
        const bool holds = value >= claim->lo && value <= claim->hi;
        claim->n_variants++;
        claim->n_variants_hold += holds;
        claim->band_lo = fmin(claim->band_lo, value);
        claim->band_hi = fmax(claim->band_hi, value);
        if (!holds)
            g_string_append_printf(misses, "%s%s (%s)", misses->len > 0 ? ", " : "",
                                   (const char *)variants->pdata[i], cli_number(value, text));
    }
    claim->band_misses = misses->len > 0 ? g_strdup(misses->str) : NULL;
}

void claims_evaluate_bands(GPtrArray *files, struct results_db *db, struct sim_error_list *errors)
{
    for (guint i = 0; i < files->len; i++) {
        const struct claims_file *file = files->pdata[i];
        for (guint k = 0; k < file->claims->len; k++)
            evaluate_band(claims_at(file, k), db, errors);
    }
}
