/* Changing the tree: --set, `set` in a file, axis values. */
#include <string.h>

#include "sim/config/config_internal.h"
#include "sim/config/text.h"

bool config_string_valid(const char *string, const char *path, struct config_place place,
                         struct sim_error_list *errors)
{
    g_autofree char *fault = text_fault(string);

    if (fault)
        sim_error_add(errors, place.file, place.line,
                      "%s: found %s, expected text that can be shown", path, fault);
    return !fault;
}

/* A scalar that stands without quotes; NULL and a message if it does not fit. */
static struct config *parse_bare(const char *text, const char *path, struct config_place place,
                                 struct sim_error_list *errors)
{
    bool truth = g_ascii_strcasecmp(text, "true") == 0, long_suffix;
    struct config *config = config_new();
    enum config_kind kind = CONFIG_STRING;
    struct config_node *node;
    size_t n = 0;
    enum config_number number = config_scan_number(text, &n, &long_suffix);

    if (truth || g_ascii_strcasecmp(text, "false") == 0)
        kind = CONFIG_BOOL;
    else if (number != CONFIG_NO_NUMBER && text[n] == '\0')
        kind = number == CONFIG_NUMBER_INT ? CONFIG_INT : CONFIG_FLOAT;
    node = config_node_new(config, config->root, "value", kind, place, -1);
    node->truth = truth;
    if (kind == CONFIG_FLOAT)
        node->real = g_ascii_strtod(text, NULL);
    if (kind == CONFIG_STRING) {
        node->string = g_string_chunk_insert(config->strings, text);
        config_string_valid(text, path, place, errors);
    }
    if (kind == CONFIG_INT && config_leading_zero(text))
        sim_error_add(errors, place.file, place.line, CONFIG_LEADING_ZERO, path, text);
    if (kind == CONFIG_INT && !config_parse_integer(text, &node->integer)) {
        sim_error_add(errors, place.file, place.line,
                      "%s: found %.40s, expected an integer of at most 64 bits", path, text);
        config_free(config);
        return NULL;
    }
    return config;
}

/* The text is scanned as the setting "value" of a file: messages get the path of the real one. */
static void move_with_path(struct sim_error_list *more, const char *path, struct config_place place,
                           struct sim_error_list *errors)
{
    for (size_t i = 0; i < more->n_messages; i++) {
        const char *text = sim_error_text(more, i);
        const bool named = g_str_has_prefix(text, "value") && strchr(".:", text[strlen("value")]);

        sim_error_add(errors, place.file, place.line, "%s%s%s", path, named ? "" : ": ",
                      text + (named ? strlen("value") : 0));
    }
    sim_error_release(more);
}

struct config *config_parse_value(const char *text, const char *path, struct config_place place,
                                  struct sim_error_list *errors)
{
    g_autofree char *trimmed = g_strstrip(g_strdup(text));
    struct config *config = NULL;

    if (*trimmed == '\0') {
        sim_error_add(errors, place.file, place.line,
                      "%s: no value after \"=\"; the empty string is \"\"", path);
    } else if (strchr("\"([{", *trimmed)) {
        g_autofree char *setting = g_strdup_printf("value = %s", trimmed);
        struct sim_error_list own = { 0 };
        struct config_scan scan;

        config_scan(&scan, NULL, setting, place, NULL, &own);
        if (!scan.syntax_error)
            config = config_load_scanned(&scan, &own);
        config_scan_release(&scan);
        move_with_path(&own, path, place, errors);
        if (config && config_count(config->root) != 1) {
            sim_error_add(errors, place.file, place.line, "%s: found %.60s, expected one value",
                          path, trimmed);
            g_clear_pointer(&config, config_free);
        }
    } else {
        config = parse_bare(trimmed, path, place, errors);
    }
    return config;
}

struct config_node *config_value_form(struct config_node *node)
{
    return node->kind == CONFIG_GROUP ? config_child_named(node, "value", NULL) : NULL;
}

static bool path_valid(char **parts)
{
    for (char **part = parts; *part; part++) {
        size_t n = strlen(*part);
        bool element = n > 2 && (*part)[0] == '[' && strspn(*part + 1, "0123456789") == n - 2 &&
                       (*part)[n - 1] == ']';

        if (!element && !config_is_name(*part, n))
            return false;
    }
    return *parts != NULL;
}

/* "[4]" of a list of four: what is set there is a new element. */
static bool is_next_element(const struct config_node *node, const char *part)
{
    return node->kind == CONFIG_LIST && *part == '[' &&
           g_ascii_strtoull(part + 1, NULL, 10) == config_count(node);
}

/* The node that one part of a path names, made as a group where a group or list can have it. */
static struct config_node *enter(struct config_node *node, const char *part,
                                 struct config_place place, struct sim_error_list *errors)
{
    struct config_node *child = config_find(node, part);

    if (child)
        return child;
    if (node->kind == CONFIG_GROUP && *part != '[')
        return config_node_new(node->config, node, part, CONFIG_GROUP, place, -1);
    if (is_next_element(node, part))
        return config_node_new(node->config, node, NULL, CONFIG_GROUP, place, -1);
    g_autofree char *found = config_describe(node);
    if (node->kind == CONFIG_LIST && config_count(node) == 0)
        sim_error_add(errors, place.file, place.line,
                      "%s: found \"%s\", expected [0], as the list is empty", node->path, part);
    else if (node->kind == CONFIG_LIST)
        sim_error_add(errors, place.file, place.line,
                      "%s: found \"%s\", expected an element of the list, [0] to [%u], or [%u] to "
                      "add one",
                      node->path, part, config_count(node) - 1, config_count(node));
    else
        sim_error_add(errors, place.file, place.line, "%s: found %s, expected a group with \"%s\"",
                      *node->path ? node->path : "the scenario", found, part);
    return NULL;
}

static unsigned index_of(const struct config_node *node)
{
    unsigned index = 0;

    while (node->parent->children->pdata[index] != node)
        index++;
    return index;
}

/* A group of settings must not vanish behind one value by a slip of the path. */
static bool replaceable(struct config_node *old, const struct config_node *value,
                        struct config_place place, struct sim_error_list *errors)
{
    if (old->kind != CONFIG_GROUP || value->kind == CONFIG_GROUP || config_value_form(old))
        return true;
    g_autofree char *found = config_describe(value);
    sim_error_add(errors, place.file, place.line,
                  "%s: found %s, expected a group; set one of its settings, \"%s.name=value\"",
                  old->path, found, old->path);
    return false;
}

/* "x.value" of a setting with provenance means x: the provenance was that of the old value. */
static void drop_value_part(struct config *config, char **parts)
{
    guint n = g_strv_length(parts);
    struct config_node *node = config->root;

    if (n < 2 || strcmp(parts[n - 1], "value") != 0)
        return;
    for (guint i = 0; node && i + 1 < n; i++)
        node = config_find(node, parts[i]);
    if (node && config_value_form(node) && config_child_named(node, "provenance", NULL)) {
        g_free(parts[n - 1]);
        parts[n - 1] = NULL;
    }
}

static bool set_node(struct config *config, const char *path, const struct config_node *value,
                     struct config_place place, struct sim_error_list *errors)
{
    g_auto(GStrv) parts = g_strsplit(path, ".", -1);
    struct config_node *node = config->root, *old, *made;
    bool good = path_valid(parts), element;
    guint n;

    if (!good)
        sim_error_add(errors, place.file, place.line,
                      "found \"%s\", expected the path of a setting, \"name.name.[0].name\"", path);
    drop_value_part(config, parts);
    n = g_strv_length(parts);
    for (guint i = 0; good && i + 1 < n; i++) {
        node = enter(node, parts[i], place, errors);
        good = node != NULL;
    }
    if (good) {
        old = config_find(node, parts[n - 1]);
        element = node->kind == CONFIG_LIST;
        if (!old && !is_next_element(node, parts[n - 1]) &&
            (node->kind != CONFIG_GROUP || parts[n - 1][0] == '['))
            good = enter(node, parts[n - 1], place, errors) != NULL;
        else if (old)
            good = replaceable(old, value, place, errors);
        if (good) {
            made = config_node_new(config, node, element ? NULL : parts[n - 1], value->kind, place,
                                   old ? (int)index_of(old) : -1);
            config_node_fill(made, value, place.origin);
        }
    }
    return good;
}

bool config_set_at(struct config *config, const char *path, const char *value,
                   struct config_place place, struct sim_error_list *errors)
{
    struct config *parsed = config_parse_value(value, path, place, errors);
    bool good = parsed && set_node(config, path, parsed->root->children->pdata[0], place, errors);

    config_free(parsed);
    return good;
}

bool config_set(struct config *config, const char *path, const char *value, const char *origin,
                struct sim_error_list *errors)
{
    struct config_place place = { .file = origin, .origin = origin };

    return config_set_at(config, path, value, place, errors);
}

bool config_set_node(struct config *config, const char *path, const struct config_node *value,
                     const char *origin, struct sim_error_list *errors)
{
    struct config_place place = value->place;

    place.origin = origin;
    return set_node(config, path, value, place, errors);
}

bool config_split_setting(const char *text, char **path, char **value, struct config_place place,
                          struct sim_error_list *errors)
{
    const char *assign = strchr(text, '=');

    if (!assign) {
        sim_error_add(errors, place.file, place.line, "found \"%.60s\", expected \"path=value\"",
                      text);
        return false;
    }
    *path = g_strstrip(g_strndup(text, (gsize)(assign - text)));
    *value = g_strstrip(g_strdup(assign + 1));
    return true;
}

bool config_paths_overlap(const char *a, const char *b)
{
    size_t n_a = strlen(a), n_b = strlen(b), n = SIM_MIN(n_a, n_b);
    const char *longer = n_a > n_b ? a : b;

    return strncmp(a, b, n) == 0 && (longer[n] == '\0' || longer[n] == '.');
}
