/* The resolved configuration: for --print-config, the results and the hash that names a run. */
#define _GNU_SOURCE /* strverscmp(): [2] before [10] */
#include <string.h>

#include "sim/config/config_internal.h"

#define MAX_COLUMN 64 /* of the aligned comments */

static gint by_path(gconstpointer a, gconstpointer b)
{
    const struct config_resolved *const *x = a, *const *y = b;

    return strverscmp((*x)->path, (*y)->path);
}

const char *config_full_origin(struct config_node *node)
{
    const struct config_place *place = &node->place;

    if (!place->origin || !g_str_has_prefix(place->origin, "axis ") || !place->file ||
        place->line <= 0)
        return config_origin(node);
    g_autofree char *text = g_strdup_printf("%s, %s:%d", place->origin, place->file, place->line);
    return g_string_chunk_insert_const(node->config->strings, text);
}

/* Values that somebody read otherwise than through a table: types, cables, names. */
static void collect_values(struct config_node *node, GPtrArray *all)
{
    for (unsigned i = 0; i < config_count(node); i++) {
        struct config_node *child = node->children->pdata[i];
        struct config_resolved *value;

        if (child->mark == CONFIG_ASIDE || child->is_param ||
            (child->mark == CONFIG_UNREAD && node->kind == CONFIG_GROUP))
            continue;
        if (child->kind == CONFIG_GROUP || child->kind == CONFIG_LIST) {
            collect_values(child, all);
            continue;
        }
        value = g_new0(struct config_resolved, 1);
        value->path = child->path;
        value->value = config_text(child);
        value->unit = "";
        value->origin = config_full_origin(child);
        value->is_string = child->kind == CONFIG_STRING;
        g_ptr_array_add(all, value);
    }
}

/* Parameters and other values by path; the caller frees the array, which owns its elements. */
static GPtrArray *resolved_sorted(const struct config *config)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    gpointer kept;

    g_hash_table_iter_init(&iter, config->resolved);
    while (g_hash_table_iter_next(&iter, NULL, &kept)) {
        const struct config_resolved resolved = config_resolved_of(kept);

        g_ptr_array_add(all, g_memdup2(&resolved, sizeof(resolved)));
    }
    collect_values(config->root, all);
    g_ptr_array_sort(all, by_path);
    return all;
}

void config_each_param(const struct config *config, config_param_fn *fn, void *context)
{
    g_autoptr(GPtrArray) all = resolved_sorted(config);

    for (guint i = 0; i < all->len; i++) {
        const struct config_resolved *r = all->pdata[i];
        g_autofree char *origin = g_strdup_printf("%s%s%s", r->why != NULL ? r->why : r->origin,
                                                  r->source ? ", " : "",
                                                  r->source ? r->source : "");

        fn(context, r->path, r->settled != NULL ? r->settled : r->value, r->unit, r->provenance,
           origin);
    }
}

void config_settle(struct config *config, const struct config_node *group, const char *key,
                   uint32_t value, const char *why)
{
    g_autofree char *path = g_strdup_printf("%s.%s", group->path, key);
    g_autofree char *text = g_strdup_printf("%u", value);
    struct config_kept *kept = config_kept_of(config, path);

    if (kept == NULL)
        return;
    struct config_resolved resolved = config_resolved_of(kept);
    if (strcmp(resolved.origin, "default") != 0)
        return;
    resolved.settled = g_string_chunk_insert(config->strings, text);
    resolved.why = g_string_chunk_insert(config->strings, why);
    g_free(kept->all);
    kept->all = g_memdup2(&resolved, sizeof(resolved));
}

void config_each_band(const struct config *config, config_band_fn *fn, void *context)
{
    g_autoptr(GPtrArray) all = resolved_sorted(config);

    for (guint i = 0; i < all->len; i++) {
        const struct config_resolved *r = all->pdata[i];

        if (r->lo && r->provenance != PROV_CALIBRATED)
            fn(context, r->path, r->lo, r->hi);
    }
}

/* path = value unit */
static char *assignment(const struct config_resolved *r)
{
    const char *quote = r->is_string ? "\"" : "";

    return g_strdup_printf("%s = %s%s%s%s%s", r->path, quote, r->value, quote, *r->unit ? " " : "",
                           r->unit);
}

void config_print(const struct config *config, FILE *out)
{
    g_autoptr(GPtrArray) all = resolved_sorted(config);
    int column = 0;

    for (guint i = 0; i < all->len; i++) {
        struct config_resolved *r = all->pdata[i];
        if (r->settled != NULL) {
            r->value = r->settled;
            r->origin = r->why;
        }
        g_autofree char *text = assignment(r);

        column = SIM_MAX(column, (int)SIM_MIN(strlen(text), (size_t)MAX_COLUMN));
    }
    for (guint i = 0; i < all->len; i++) {
        const struct config_resolved *r = all->pdata[i];
        const char *provenance = param_provenance_name(r->provenance);
        const char *from = config_borrowed(config, r);
        g_autofree char *text = assignment(r);

        fprintf(out, "%-*s  # %s%s%s%s%s%s%s%s\n", column, text, r->origin, *provenance ? ", " : "",
                provenance, r->source ? " (" : "", r->source ? r->source : "", r->source ? ")" : "",
                from ? ", borrowed: " : "", from ? from : "");
    }
}

void config_idle(struct config *config, const struct config_node *group, const char *key)
{
    g_autofree char *path = g_strdup_printf("%s.%s", group->path, key);
    struct config_kept *kept = config_kept_of(config, path);

    if (kept != NULL)
        kept->idle = true;
}

void config_sha256(const struct config *config, char hex[65])
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    g_autoptr(GPtrArray) all = resolved_sorted(config);

    for (guint i = 0; i < all->len; i++) {
        const struct config_resolved *r = all->pdata[i];
        g_autofree char *text = assignment(r);

        if (!r->idle)
            g_checksum_update(sum, (const guchar *)text, (gssize)strlen(text) + 1);
    }
    g_strlcpy(hex, g_checksum_get_string(sum), 65);
}
