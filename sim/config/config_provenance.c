/*
 * Settings that say where their value comes from:
 *     { value = 46; provenance = "calibrated"; source = "docs/sources.md#c3";
 *       fitted_to = "smio.fig31.read_off"; range = [32, 48]; }
 * and hosts that say which machine they are, so that values of another one can be told.
 */
#include <string.h>

#include "sim/config/config_internal.h"

static const char *const form_names[] = { "value",     "provenance", "source",  "range",
                                          "fitted_to", "on_bound",   "machine", NULL };

static bool read_provenance(struct config_node *node, struct config_setting *setting,
                            struct sim_error_list *errors)
{
    static const char *const names[] = { "datasheet", "published", "calibrated", "estimate", NULL };

    if (node->kind == CONFIG_STRING && param_provenance_find(node->string, &setting->provenance))
        return true;
    config_mistake(node, errors, "\"datasheet\", \"published\", \"calibrated\" or \"estimate\"",
                   node->kind == CONFIG_STRING && sim_nearest_name(node->string, names) ? names
                                                                                        : NULL);
    return false;
}

/* A string of the group, which may be left out; it has to be of a calibrated value if
 * `calibrated`. */
static bool read_text(struct config_node *group, const char *key, bool calibrated,
                      const char **text, struct sim_error_list *errors)
{
    struct config_node *node = config_child_named(group, key, NULL);

    if (!node)
        return true;
    node->is_param = true;
    if (node->kind != CONFIG_STRING) {
        config_mistake(node, errors, "a string", NULL);
        return false;
    }
    if (!calibrated) {
        config_mistake(node, errors, "it only where provenance is \"calibrated\"", NULL);
        return false;
    }
    *text = node->string;
    return true;
}

bool config_read_value_form(struct config_node *group, struct config_setting *setting,
                            struct sim_error_list *errors)
{
    struct config_node *provenance = config_child_named(group, "provenance", NULL);
    bool good = true, calibrated;

    group->is_param = true;
    config_allow(group, form_names);
    setting->node = config_value_form(group);
    setting->range = config_child_named(group, "range", NULL);
    if (provenance) {
        provenance->is_param = true;
        good = read_provenance(provenance, setting, errors);
    }
    calibrated = setting->provenance == PROV_CALIBRATED;
    good &= read_text(group, "source", true, &setting->source, errors);
    good &= read_text(group, "fitted_to", calibrated, &setting->fitted_to, errors);
    good &= read_text(group, "on_bound", calibrated, &setting->on_bound, errors);
    good &= read_text(group, "machine", true, &setting->machine, errors);
    if (setting->range)
        setting->range->is_param = true;
    return good;
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

/* In the unit of the key. */
static double number_of(const struct param_desc *desc, const struct param_value *value)
{
    g_autofree char *text = param_format(desc, value);

    return g_ascii_strtod(text, NULL);
}

/* The two ends of setting->range. */
static bool read_range(const struct param_desc *desc, struct config_setting *setting, double end[2],
                       struct sim_error_list *errors)
{
    struct config_node *range = setting->range;
    const char **text[2] = { &setting->lo, &setting->hi };
    const bool numeric = desc->type != PARAM_BOOL && desc->type != PARAM_ENUM &&
                         desc->type != PARAM_STRING;

    if (!numeric || range->kind != CONFIG_LIST || config_count(range) != 2) {
        config_mistake(range, errors,
                       numeric ? "a list of two values, [lowest, highest]"
                               : "no range: the setting is no number",
                       NULL);
        return false;
    }
    for (unsigned i = 0; i < 2; i++) {
        struct config_node *node = config_child(range, i);
        struct param_value value = { 0 };

        node->is_param = true;
        if (!config_read_value(desc, node, &value, errors))
            return false;
        g_autofree char *formatted = param_format(desc, &value);
        *text[i] = g_string_chunk_insert(range->config->strings, formatted);
        end[i] = number_of(desc, &value);
    }
    if (end[0] < end[1])
        return true;
    config_mistake(range, errors, "the lower end before the higher one", NULL);
    return false;
}

/* Bounds are compared as they are written: no arithmetic has come between. */
static bool same(double a, double b)
{
    return !(a < b) && !(a > b);
}

/* A fit that ends on a bound has not found a minimum: it was stopped there. */
static bool check_bound(const struct param_desc *desc, const struct config_setting *setting,
                        double number, const double end[2], struct sim_error_list *errors)
{
    const bool limits = desc->lo < desc->hi;
    const bool on_bound = (setting->range && (same(number, end[0]) || same(number, end[1]))) ||
                          (limits && (same(number, desc->lo) || same(number, desc->hi)));

    if (on_bound && !setting->on_bound) {
        config_mistake(
            setting->node, errors,
            "a calibrated value off the bounds of its range (or on_bound = \"the reason\")", NULL);
        return false;
    }
    if (!on_bound && setting->on_bound) {
        config_mistake(setting->node, errors, "a bound of its range, since on_bound says so", NULL);
        return false;
    }
    return true;
}

bool config_check_range(const struct param_desc *desc, struct config_setting *setting,
                        const struct param_value *value, struct sim_error_list *errors)
{
    double end[2] = { 0 }, number;

    if (setting->range && !read_range(desc, setting, end, errors))
        return false;
    if (desc->type == PARAM_BOOL || desc->type == PARAM_ENUM || desc->type == PARAM_STRING)
        return true;
    number = number_of(desc, value);
    if (setting->range && (number < end[0] || number > end[1])) {
        g_autofree char *expected = g_strdup_printf("a value within its range, %s to %s",
                                                    setting->lo, setting->hi);
        config_mistake(setting->node, errors, expected, NULL);
        return false;
    }
    return setting->provenance != PROV_CALIBRATED ||
           check_bound(desc, setting, number, end, errors);
}

/* ---- Machines -------------------------------------------------------------------------------- */

bool config_read_machine(struct config_node *host, struct sim_error_list *errors)
{
    struct config_node *node = config_get(host, "machine");

    if (!node)
        return true;
    if (!config_expect(node, CONFIG_STRING, errors, "the name of the machine"))
        return false;
    node->mark = CONFIG_ASIDE; /* changes nothing that is simulated */
    return true;
}

/* "hosts.server.dram.controller_ns" -> "dram.controller_ns"; NULL: of no host. */
static const char *below_host(const char *path)
{
    static const char hosts[] = "hosts.";
    const char *dot = g_str_has_prefix(path, hosts) ? strchr(path + strlen(hosts), '.') : NULL;

    return dot ? dot + 1 : NULL;
}

const char *config_borrowed(const struct config *config, const struct config_resolved *r)
{
    const char *below = below_host(r->path);
    const struct config_node *node;

    if (!below)
        return NULL;
    if (r->is_default)
        return r->provenance == PROV_CALIBRATED ? "default" : NULL;
    if (!r->machine)
        return NULL;
    g_autofree char *path = g_strdup_printf("%.*smachine", (int)(below - r->path), r->path);
    node = config_find(config->root, path);
    return node && node->kind == CONFIG_STRING && strcmp(node->string, r->machine) == 0
               ? NULL
               : r->machine;
}

static gint by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char *config_borrowed_text(const struct config *config)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    GString *text = g_string_new(NULL);
    const char *last = "";
    GHashTableIter iter;
    gpointer kept;

    g_hash_table_iter_init(&iter, config->resolved);
    while (g_hash_table_iter_next(&iter, NULL, &kept)) {
        const struct config_resolved r = config_resolved_of(kept);
        const char *from = config_borrowed(config, &r);

        if (from)
            g_ptr_array_add(all, g_strconcat(from, ": ", below_host(r.path), NULL));
    }
    g_ptr_array_sort(all, by_text);
    for (guint i = 0; i < all->len; i++) {
        char *item = all->pdata[i], *value = strstr(item, ": ") + 2;

        if (!g_hash_table_add(seen, item)) /* another host has it, too */
            continue;
        if (strncmp(item, last, (size_t)(value - item)) == 0)
            g_string_append_printf(text, ", %s", value);
        else
            g_string_append_printf(text, "%s%s", text->len ? "; " : "", item);
        last = item;
    }
    if (text->len == 0) {
        g_string_free(text, TRUE);
        return NULL;
    }
    return g_string_free(text, FALSE);
}
