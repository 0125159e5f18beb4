/* From a scanned file to a tree: libconfig parses, its setting tree is copied into ours. */
#include <libconfig.h>
#include <string.h>

#include "sim/config/config_internal.h"

static struct config_place place_of(const struct config_scan *scan, unsigned line)
{
    guint n = scan->places->len, index = line ? line - 1 : 0;

    if (n == 0)
        return (struct config_place){ 0 };
    return g_array_index(scan->places, struct config_place, SIM_MIN(index, n - 1));
}

static enum config_kind kind_of(const config_setting_t *setting)
{
    switch (config_setting_type(setting)) {
    case CONFIG_TYPE_GROUP: return CONFIG_GROUP;
    case CONFIG_TYPE_ARRAY:
    case CONFIG_TYPE_LIST: return CONFIG_LIST;
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_INT64: return CONFIG_INT;
    case CONFIG_TYPE_FLOAT: return CONFIG_FLOAT;
    case CONFIG_TYPE_BOOL: return CONFIG_BOOL;
    case CONFIG_TYPE_STRING: return CONFIG_STRING;
    default: break;
    }
    SIM_ASSERT(false, "libconfig type %d", config_setting_type(setting));
    return CONFIG_GROUP;
}

/* Every getter is of the setting's own type: of another it would return 0. */
static void take_value(struct config_node *node, const config_setting_t *setting,
                       struct sim_error_list *errors)
{
    switch (config_setting_type(setting)) {
    case CONFIG_TYPE_INT: node->integer = config_setting_get_int(setting); break;
    case CONFIG_TYPE_INT64: node->integer = config_setting_get_int64(setting); break;
    case CONFIG_TYPE_FLOAT: node->real = config_setting_get_float(setting); break;
    case CONFIG_TYPE_BOOL: node->truth = config_setting_get_bool(setting) != 0; break;
    case CONFIG_TYPE_STRING:
        if (config_setting_get_string(setting) ==
            NULL) /* the parser had none, and has not said so */
            sim_out_of_memory("the string of %s", config_setting_name(setting));
        node->string = g_string_chunk_insert(node->config->strings,
                                             config_setting_get_string(setting));
        config_string_valid(node->string, node->path, node->place, errors);
        break;
    default: break;
    }
}

static void take_children(struct config_node *node, const config_setting_t *setting,
                          const struct config_scan *scan, struct sim_error_list *errors);

/* A group of settings, but not one that is a value with its provenance. */
static bool is_plain_group(const config_setting_t *setting)
{
    return config_setting_is_group(setting) && !config_setting_get_member(setting, "value");
}

static void take_child(struct config_node *node, const config_setting_t *from,
                       const struct config_scan *scan, struct sim_error_list *errors)
{
    struct config_place place = place_of(scan, config_setting_source_line(from));
    const char *name = config_setting_name(from);
    struct config_node *child, *before = NULL;
    unsigned index = 0;

    if (name && g_str_has_prefix(name, CONFIG_AGAIN)) {
        name = strchr(name + strlen(CONFIG_AGAIN), '*') + 1;
        before = config_child_named(node, name, &index);
    }
    if (before && before->kind == CONFIG_GROUP && !config_value_form(before) &&
        is_plain_group(from)) {
        take_children(before, from, scan, errors);
        return;
    }
    child = config_node_new(node->config, node, name, kind_of(from), place,
                            before ? (int)index : -1);
    if (config_setting_is_aggregate(from))
        take_children(child, from, scan, errors);
    else
        take_value(child, from, errors);
}

static void take_children(struct config_node *node, const config_setting_t *setting,
                          const struct config_scan *scan, struct sim_error_list *errors)
{
    int n = config_setting_length(setting);

    for (int i = 0; i < n; i++)
        take_child(node, config_setting_get_elem(setting, (unsigned)i), scan, errors);
}

struct config *config_load_scanned(const struct config_scan *scan, struct sim_error_list *errors)
{
    struct config *config = NULL;
    config_t parsed;

    config_init(&parsed);
    if (config_read_string(&parsed, scan->text->str)) {
        config = config_new();
        config_take_includes(config, scan->includes);
        take_children(config->root, config_root_setting(&parsed), scan, errors);
    } else {
        struct config_place place = place_of(scan, (unsigned)config_error_line(&parsed));
        const char *text = config_error_text(&parsed);

        sim_error_add(errors, place.file, place.line, "%s", text);
    }
    config_destroy(&parsed);
    return config;
}

struct config *config_load_searching(const char *path, const char *const *include_dirs,
                                     struct sim_error_list *errors)
{
    struct config *config = NULL;
    struct config_scan scan;

    config_scan(&scan, path, NULL, (struct config_place){ 0 }, include_dirs, errors);
    if (!scan.syntax_error)
        config = config_load_scanned(&scan, errors);
    if (config) /* what is missing at the top is missing in this file */
        config->root->place.file = g_string_chunk_insert_const(config->strings, path);
    config_scan_release(&scan);
    return config;
}

struct config *config_load(const char *path, const char *include_dir, struct sim_error_list *errors)
{
    g_autofree char *own = include_dir ? NULL : g_path_get_dirname(path);
    const char *const dirs[] = { include_dir ? include_dir : own, NULL };
    struct config *config = config_load_searching(path, dirs, errors);

    return config;
}
