/* Reading files of what-ifs. */
#include <math.h>
#include <string.h>

#include "cli/whatif/whatif.h"

static const char *const whatif_keys[] = { "id",      "text",   "scenario",   "filter",
                                           "metric",  "base",   "change",     "ratio",
                                           "value",   "source", "difference", "refused",
                                           "because", "misses", "fails",      NULL };
static const char *const file_keys[] = { "title", "whatifs", NULL };

/* [ "path=value", ... ] */
static GPtrArray *read_settings(struct config_node *node, const char *key,
                                struct sim_error_list *errors)
{
    GPtrArray *settings = g_ptr_array_new_with_free_func(g_free);
    struct config_node *list = config_get(node, key);
    if (list != NULL && config_expect(list, CONFIG_LIST, errors, "a list of settings")) {
        for (unsigned i = 0; i < config_count(list); i++) {
            struct config_node *child = config_child(list, i);
            if (!config_expect(child, CONFIG_STRING, errors, "\"path=value\""))
                continue;
            const char *text = config_string(child), *equals = strchr(text, '=');
            if (*text != '@' && (equals == NULL || equals == text))
                config_mistake(child, errors, "\"path=value\" or \"@FILE\"", NULL);
            g_ptr_array_add(settings, g_strdup(text));
        }
    }
    g_ptr_array_add(settings, NULL);
    return settings;
}

/* [ lo, hi ], or a number: exactly that. */
static bool read_range(struct config_node *node, const char *key, struct whatif *whatif,
                       struct sim_error_list *errors)
{
    struct config_node *range = config_get(node, key);
    if (range == NULL)
        return false;
    double *const bounds[] = { &whatif->lo, &whatif->hi };
    const bool is_list = config_kind(range) == CONFIG_LIST;
    bool good = !is_list || config_count(range) == 2;
    for (unsigned i = 0; i < 2 && good; i++) {
        struct config_node *bound = is_list ? config_child(range, i) : range;
        good = config_kind(bound) == CONFIG_INT || config_kind(bound) == CONFIG_FLOAT;
        *bounds[i] = good ? config_number(bound) : (double)NAN;
    }
    if (!good)
        config_mistake(range, errors, "a number, or [ lo, hi ]", NULL);
    else if (whatif->lo > whatif->hi)
        sim_error_add(errors, config_file(range), config_line(range),
                      "%s: found [ %g, %g ], expected the lower bound first", config_path(range),
                      whatif->lo, whatif->hi);
    return true;
}

/* Part of the message with which the change is refused, or the run fails. */
static bool read_message(struct config_node *node, const char *key, enum whatif_kind kind,
                         struct whatif *whatif, struct sim_error_list *errors)
{
    const char *text = cli_string(node, key, errors);
    if (text == NULL)
        return false;
    whatif->refusal = text;
    whatif->kind = kind;
    return true;
}

static void read_metric(struct config_node *node, struct whatif *whatif,
                        struct sim_error_list *errors)
{
    whatif->metric = cli_required_string(node, "metric", errors);
    g_autofree char *fault = whatif->metric != NULL ? whatif_metric_fault(whatif->metric) : NULL;
    if (fault != NULL)
        sim_error_add(errors, config_file(node), config_line(config_get(node, "metric")),
                      "%s.metric: \"%s\": %s", config_path(node), whatif->metric, fault);
}

/* Exactly one of the five. */
static void read_expectation(struct config_node *node, struct whatif *whatif,
                             struct sim_error_list *errors)
{
    static const char *const keys[N_WHATIF_KINDS] = {
        [WHATIF_RATIO] = "ratio",
        [WHATIF_DIFFERENCE] = "difference",
        [WHATIF_VALUE] = "value",
    };
    unsigned n = 0;
    for (enum whatif_kind kind = 0; kind < WHATIF_REFUSED; kind++) {
        if (read_range(node, keys[kind], whatif, errors)) {
            whatif->kind = kind;
            n++;
        }
    }
    n += read_message(node, "refused", WHATIF_REFUSED, whatif, errors);
    n += read_message(node, "fails", WHATIF_FAILS, whatif, errors);
    if (n != 1)
        sim_error_add(errors, config_file(node), config_line(node),
                      "%s: found %u expectations, expected one of `ratio`, `difference`, `value`, "
                      "`refused`, `fails`",
                      config_path(node), n);
    const bool has_value = whatif->kind != WHATIF_REFUSED && whatif->kind != WHATIF_FAILS;
    if (!has_value && config_find(node, "metric") != NULL)
        config_mistake(config_get(node, "metric"), errors,
                       "no metric: what is refused or fails has none", NULL);
    else if (has_value)
        read_metric(node, whatif, errors);
    if (whatif->kind != WHATIF_VALUE && whatif->change->len == 1)
        sim_error_add(errors, config_file(node), config_line(node), "%s: no setting \"change\"",
                      config_path(node));
}

static bool read_whatif(struct config_node *node, struct whatif *whatif,
                        struct sim_error_list *errors)
{
    const size_t before = errors->n_messages;
    if (!config_expect(node, CONFIG_GROUP, errors,
                       "a group { id, text, scenario, change, metric, ratio, because, source }"))
        return false;
    config_allow(node, whatif_keys);
    *whatif = (struct whatif){ .node = node,
                               .base_point = WHATIF_NO_POINT,
                               .changed_point = WHATIF_NO_POINT,
                               .base_value = (double)NAN,
                               .changed_value = (double)NAN,
                               .value = (double)NAN };
    whatif->id = cli_required_string(node, "id", errors);
    whatif->text = cli_required_string(node, "text", errors);
    whatif->scenario = cli_required_string(node, "scenario", errors);
    whatif->filter = cli_string(node, "filter", errors);
    whatif->base = read_settings(node, "base", errors);
    whatif->change = read_settings(node, "change", errors);
    read_expectation(node, whatif, errors);
    whatif->because = cli_required_string(node, "because", errors);
    whatif->source = cli_required_string(node, "source", errors);
    whatif->misses = cli_string(node, "misses", errors);
    return errors->n_messages == before;
}

static void clear_whatif(gpointer pointer)
{
    struct whatif *whatif = pointer;
    g_ptr_array_free(whatif->base, TRUE);
    g_ptr_array_free(whatif->change, TRUE);
    g_free(whatif->message);
}

static void read_list(struct whatif_file *file, struct config_node *list,
                      struct sim_error_list *errors)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (unsigned i = 0; i < config_count(list); i++) {
        struct config_node *node = config_child(list, i);
        struct whatif whatif = { 0 };
        if (read_whatif(node, &whatif, errors) &&
            !g_hash_table_add(seen, (gpointer)(uintptr_t)whatif.id))
            sim_error_add(errors, config_file(node), config_line(node), "%s: there already",
                          whatif.id);
        if (whatif.base != NULL)
            g_array_append_val(file->whatifs, whatif);
    }
}

static void free_file(gpointer pointer)
{
    struct whatif_file *file = pointer;
    g_array_free(file->whatifs, TRUE);
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
    struct whatif_file *file = g_new0(struct whatif_file, 1);
    struct config_node *root = config_root(config), *list = config_get(root, "whatifs");
    const char *title = cli_string(root, "title", errors);
    file->path = g_strdup(path);
    file->name = cli_folder_of(path, WHATIF_FILE);
    file->title = title != NULL ? title : "";
    file->config = config;
    file->whatifs = g_array_new(FALSE, TRUE, sizeof(struct whatif));
    g_array_set_clear_func(file->whatifs, clear_whatif);
    config_allow(root, file_keys);
    if (list == NULL || config_kind(list) != CONFIG_LIST)
        sim_error_add(errors, path, 0, "whatifs: not there, expected a list of what-ifs");
    else if (config_count(list) == 0)
        config_mistake(list, errors, "at least one what-if", NULL);
    else
        read_list(file, list, errors);
    config_check_unknown(config, errors);
    g_ptr_array_add(files, file);
}

GPtrArray *whatif_load(const struct cli_options *options, char **arguments,
                       struct sim_error_list *errors)
{
    GPtrArray *files = g_ptr_array_new_with_free_func(free_file);
    g_autoptr(GPtrArray) paths = cli_files_beside(options, WHATIF_FILE, "whatifs", arguments,
                                                  errors);
    for (guint i = 0; i < paths->len; i++)
        if (!cli_refuse_scenario(options, paths->pdata[i], "whatifs",
                                 "a file of what-ifs (docs/whatif.md): those of a scenario stand "
                                 "in a file " WHATIF_FILE " beside it",
                                 errors))
            load_file(files, paths->pdata[i], errors);
    return files;
}

struct whatif *whatif_at(const struct whatif_file *file, guint index)
{
    return &g_array_index(file->whatifs, struct whatif, index);
}
