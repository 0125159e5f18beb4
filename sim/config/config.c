/* The tree of settings: making, copying and walking it. */
#include "sim/config/config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config/config_internal.h"
#include "sim/config/unit.h"

#define MAX_QUOTED 60  /* characters of a value that a message repeats */
#define MANY       32u /* names: more are looked up in tables */

static void node_free(gpointer data)
{
    struct config_node *node = data;

    if (node->children)
        g_ptr_array_free(node->children, TRUE);
    if (node->valid)
        g_ptr_array_free(node->valid, TRUE);
    if (node->named)
        g_hash_table_destroy(node->named);
    if (node->asked)
        g_hash_table_destroy(node->asked);
    g_free(node);
}

static void kept_free(gpointer memory)
{
    struct config_kept *kept = memory;

    g_free(kept->all);
    g_free(kept);
}

static unsigned kept_hash(const void *kept)
{
    return g_str_hash(((const struct config_kept *)kept)->path);
}

static int kept_equal(const void *a, const void *b)
{
    return g_str_equal(((const struct config_kept *)a)->path,
                       ((const struct config_kept *)b)->path);
}

struct config_kept *config_kept_of(const struct config *config, const char *path)
{
    const struct config_kept key = { .path = path };

    return g_hash_table_lookup(config->resolved, &key);
}

struct config *config_new(void)
{
    struct config *config = g_new0(struct config, 1);

    config->strings = g_string_chunk_new(4096);
    config->nodes = g_ptr_array_new_with_free_func(node_free);
    config->varied = g_ptr_array_new();
    config->outputs = g_array_new(FALSE, FALSE, sizeof(struct config_output));
    config->includes = config_includes_new();
    config->point = "";
    config->resolved = g_hash_table_new_full(kept_hash, kept_equal, kept_free, NULL);
    config->root = config_node_new(config, NULL, NULL, CONFIG_GROUP, (struct config_place){ 0 },
                                   -1);
    return config;
}

void config_free(struct config *config)
{
    if (!config)
        return;
    g_hash_table_destroy(config->resolved);
    g_ptr_array_free(config->varied, TRUE);
    g_array_free(config->outputs, TRUE);
    g_array_unref(config->includes);
    g_ptr_array_free(config->nodes, TRUE);
    g_string_chunk_free(config->strings);
    g_free(config);
}

static const char *node_path(const struct config_node *node, unsigned index)
{
    const char *above = node->parent ? node->parent->path : "";
    const char *dot = *above ? "." : "";
    g_autofree char *path = *node->name ? g_strconcat(above, dot, node->name, NULL)
                                        : g_strdup_printf("%s%s[%u]", above, dot, index);
    const char *kept = g_string_chunk_insert(node->config->strings, path);

    return kept;
}

/* The first of a name counts, as in a search. */
static void add_named(struct config_node *node, unsigned index)
{
    const struct config_node *child = node->children->pdata[index];

    if (*child->name && !g_hash_table_contains(node->named, child->name))
        g_hash_table_insert(node->named, (gpointer)child->name, GUINT_TO_POINTER(index + 1));
}

static void add_all_named(struct config_node *node)
{
    node->named = g_hash_table_new(g_str_hash, g_str_equal);
    for (unsigned i = 0; i < config_count(node); i++)
        add_named(node, i);
}

struct config_node *config_node_new(struct config *config, struct config_node *parent,
                                    const char *name, enum config_kind kind,
                                    struct config_place place, int replaces_index)
{
    struct config_node *node = g_new0(struct config_node, 1);
    GStringChunk *strings = config->strings;

    g_ptr_array_add(config->nodes, node);
    node->config = config;
    node->parent = parent;
    node->kind = kind;
    node->name = name ? g_string_chunk_insert_const(strings, name) : "";
    node->place.file = place.file ? g_string_chunk_insert_const(strings, place.file) : NULL;
    node->place.line = place.line;
    node->place.origin = place.origin ? g_string_chunk_insert_const(strings, place.origin) : NULL;
    if (kind == CONFIG_GROUP || kind == CONFIG_LIST)
        node->children = g_ptr_array_new();
    if (!parent)
        node->path = "";
    else if (replaces_index >= 0)
        node->path = node_path(node, (unsigned)replaces_index);
    else
        node->path = node_path(node, parent->children->len);
    if (parent && replaces_index >= 0) {
        parent->children->pdata[replaces_index] = node;
    } else if (parent) {
        g_ptr_array_add(parent->children, node);
        if (parent->named)
            add_named(parent, parent->children->len - 1);
        else if (parent->kind == CONFIG_GROUP && parent->children->len > MANY)
            add_all_named(parent);
    }
    return node;
}

void config_node_fill(struct config_node *node, const struct config_node *value, const char *origin)
{
    node->integer = value->integer;
    node->real = value->real;
    node->truth = value->truth;
    if (value->string)
        node->string = g_string_chunk_insert(node->config->strings, value->string);
    for (unsigned i = 0; i < config_count(value); i++) {
        const struct config_node *from = value->children->pdata[i];
        struct config_place place = from->place;
        struct config_node *to;

        if (origin)
            place.origin = origin;
        to = config_node_new(node->config, node, *from->name ? from->name : NULL, from->kind, place,
                             -1);
        config_node_fill(to, from, origin);
        if (from->mark == CONFIG_ASIDE)
            to->mark = CONFIG_ASIDE;
    }
}

struct config *config_copy(const struct config *config)
{
    struct config *copy = config_new();

    const char *file = config->root->place.file;

    if (file)
        copy->root->place.file = g_string_chunk_insert_const(copy->strings, file);
    config_node_fill(copy->root, config->root, NULL);
    for (guint i = 0; i < config->varied->len; i++)
        config_vary(copy, config->varied->pdata[i]);
    config_take_includes(copy, config->includes);
    return copy;
}

void config_name_point(struct config *config, const char *point)
{
    config->point = g_string_chunk_insert_const(config->strings, point);
}

const char *config_point_name(const struct config *config)
{
    return config->point;
}

void config_add_output(struct config *config, const struct config_node *node, const char *file)
{
    const struct config_output output = { node, g_string_chunk_insert(config->strings, file) };
    g_array_append_val(config->outputs, output);
}

const struct config_output *config_output_at(const struct config *config, unsigned i)
{
    return i < config->outputs->len ? &g_array_index(config->outputs, struct config_output, i)
                                    : NULL;
}

void config_vary(struct config *config, const char *path)
{
    for (guint i = 0; i < config->varied->len; i++) {
        if (strcmp(config->varied->pdata[i], path) == 0)
            return;
    }
    g_ptr_array_add(config->varied, g_string_chunk_insert_const(config->strings, path));
}

struct config_node *config_root(struct config *config)
{
    return config->root;
}

const char *config_name(const struct config_node *node)
{
    return node->name;
}

enum config_kind config_kind(const struct config_node *node)
{
    return node->kind;
}

const char *config_path(const struct config_node *node)
{
    return node->path;
}

const char *config_file(const struct config_node *node)
{
    return node->place.file;
}

int config_line(const struct config_node *node)
{
    return node->place.line;
}

const char *config_origin(struct config_node *node)
{
    if (!node->place.origin) {
        g_autofree char *origin = g_strdup_printf("%s:%d", node->place.file ? node->place.file : "",
                                                  node->place.line);

        node->place.origin = g_string_chunk_insert_const(node->config->strings, origin);
    }
    return node->place.origin;
}

unsigned config_count(const struct config_node *node)
{
    return node->children ? node->children->len : 0;
}

struct config_node *config_child(struct config_node *node, unsigned index)
{
    SIM_ASSERT(index < config_count(node), "%s has no child %u", node->path, index);
    return node->children->pdata[index];
}

struct config_node *config_child_named(const struct config_node *node, const char *name,
                                       unsigned *index)
{
    if (node->named) {
        const unsigned found = GPOINTER_TO_UINT(g_hash_table_lookup(node->named, name));

        if (found && index)
            *index = found - 1;
        return found ? node->children->pdata[found - 1] : NULL;
    }
    for (unsigned i = 0; i < config_count(node); i++) {
        struct config_node *child = node->children->pdata[i];

        if (*child->name && strcmp(child->name, name) == 0) {
            if (index)
                *index = i;
            return child;
        }
    }
    return NULL;
}

struct config_node *config_get(struct config_node *node, const char *name)
{
    struct config_node *child;

    if (node->kind != CONFIG_GROUP)
        return NULL;
    child = config_child_named(node, name, NULL);
    config_valid_name(node, name);
    if (child && child->mark == CONFIG_UNREAD)
        child->mark = CONFIG_READ;
    return child;
}

/* The child that one part of a path names: "dram" or "[2]". */
static struct config_node *find_part(struct config_node *node, const char *part)
{
    char *end;
    guint64 index;

    if (*part != '[')
        return config_child_named(node, part, NULL);
    index = g_ascii_strtoull(part + 1, &end, 10);
    if (!g_ascii_isdigit(part[1]) || strcmp(end, "]") != 0 || node->kind != CONFIG_LIST ||
        index >= config_count(node))
        return NULL;
    return node->children->pdata[index];
}

struct config_node *config_find(struct config_node *node, const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, ".", -1);

    for (char **part = parts; *part && node; part++)
        node = find_part(node, *part);
    return node;
}

int64_t config_int(const struct config_node *node)
{
    SIM_ASSERT(node->kind == CONFIG_INT, "%s is no integer", node->path);
    return node->integer;
}

double config_number(const struct config_node *node)
{
    SIM_ASSERT(node->kind == CONFIG_INT || node->kind == CONFIG_FLOAT, "%s is no number",
               node->path);
    return node->kind == CONFIG_INT ? (double)node->integer : node->real;
}

bool config_bool(const struct config_node *node)
{
    SIM_ASSERT(node->kind == CONFIG_BOOL, "%s is no boolean", node->path);
    return node->truth;
}

const char *config_string(const struct config_node *node)
{
    SIM_ASSERT(node->kind == CONFIG_STRING, "%s is no string", node->path);
    return node->string;
}

const char *config_text(struct config_node *node)
{
    char buffer[UNIT_TEXT_BYTES];

    if (node->text)
        return node->text;
    switch (node->kind) {
    case CONFIG_INT: snprintf(buffer, sizeof(buffer), "%" PRId64, node->integer); break;
    case CONFIG_FLOAT: unit_format_double(node->real, buffer); break;
    case CONFIG_BOOL: g_strlcpy(buffer, node->truth ? "true" : "false", sizeof(buffer)); break;
    case CONFIG_STRING: return node->text = node->string;
    case CONFIG_GROUP: return node->text = "{...}";
    case CONFIG_LIST: return node->text = "(...)";
    }
    return node->text = g_string_chunk_insert(node->config->strings, buffer);
}

char *config_describe(const struct config_node *node)
{
    char buffer[UNIT_TEXT_BYTES];

    switch (node->kind) {
    case CONFIG_INT: return g_strdup_printf("%" PRId64 " (an integer)", node->integer);
    case CONFIG_FLOAT:
        return g_strdup_printf("%s (a number)", unit_format_double(node->real, buffer));
    case CONFIG_BOOL: return g_strdup_printf("%s (a boolean)", node->truth ? "true" : "false");
    case CONFIG_GROUP: return g_strdup("a group");
    case CONFIG_LIST: return g_strdup("a list");
    case CONFIG_STRING: break;
    }
    if (strlen(node->string) > MAX_QUOTED)
        return g_strdup_printf("\"%.*s...\" (a string)", MAX_QUOTED, node->string);
    return g_strdup_printf("\"%s\" (a string)", node->string);
}

void config_mark_below(struct config_node *node, enum config_mark mark)
{
    node->mark = mark;
    for (unsigned i = 0; i < config_count(node); i++)
        config_mark_below(node->children->pdata[i], mark);
}

void config_mark_read(struct config_node *node)
{
    config_mark_below(node, CONFIG_READ);
}

/* ---- Valid names and unknown settings -------------------------------------------------------- */

void config_valid_name(struct config_node *group, const char *name)
{
    if (!group->valid)
        group->valid = g_ptr_array_new();
    if (group->asked && g_hash_table_contains(group->asked, name))
        return;
    for (unsigned i = 0; !group->asked && i < group->valid->len; i++) {
        if (strcmp(group->valid->pdata[i], name) == 0)
            return;
    }
    g_ptr_array_add(group->valid, g_string_chunk_insert_const(group->config->strings, name));
    if (group->asked) {
        g_hash_table_add(group->asked, group->valid->pdata[group->valid->len - 1]);
    } else if (group->valid->len > MANY) {
        group->asked = g_hash_table_new(g_str_hash, g_str_equal);
        for (unsigned i = 0; i < group->valid->len; i++)
            g_hash_table_add(group->asked, group->valid->pdata[i]);
    }
}

static const char **valid_names(const struct config_node *group)
{
    unsigned n = group->valid ? group->valid->len : 0;
    const char **names = g_new0(const char *, n + 1);

    for (unsigned i = 0; i < n; i++)
        names[i] = group->valid->pdata[i];
    return names;
}

void config_allow(struct config_node *group, const char *const *names)
{
    for (size_t i = 0; names[i]; i++)
        config_get(group, names[i]);
}

void config_allow_settings(struct config_node *group, const struct setting_desc *settings)
{
    for (; settings->key; settings++)
        config_get(group, settings->key);
}

static void report_unknown(const struct config_node *node, struct sim_error_list *errors)
{
    g_autofree const char **names = valid_names(node->parent);
    g_autofree char *suggestion = sim_suggestion(node->name, names);
    bool by_axis = node->place.origin && g_str_has_prefix(node->place.origin, "axis ");

    sim_error_add(errors, node->place.file, node->place.line, "%s: unknown setting%s%s%s%s%s",
                  node->path, by_axis ? " (set by " : "", by_axis ? node->place.origin : "",
                  by_axis ? ")" : "", *suggestion ? "; " : "", suggestion);
}

bool config_is_unknown(const struct config_node *parent, const struct config_node *child)
{
    return child->mark == CONFIG_UNREAD && parent->kind == CONFIG_GROUP;
}

bool config_check_unknown_below(struct config_node *node, struct sim_error_list *errors)
{
    bool good = true;

    for (unsigned i = 0; i < config_count(node); i++) {
        struct config_node *child = node->children->pdata[i];

        if (child->mark == CONFIG_ASIDE)
            continue;
        if (config_is_unknown(node, child)) {
            if (!config_report_misplaced(node, i, errors))
                report_unknown(child, errors);
            good = false;
        } else {
            good &= config_check_unknown_below(child, errors);
        }
    }
    return good;
}

bool config_check_unknown(struct config *config, struct sim_error_list *errors)
{
    return config_check_unknown_below(config->root, errors);
}

static void add_mistake(const struct config_place *place, const char *path, const char *found,
                        const char *text, struct sim_error_list *errors, const char *expected,
                        const char *const *names)
{
    g_autofree char *suggestion = sim_suggestion(text, names);

    sim_error_add(errors, place->file, place->line, "%s: found %s%s%s%s%s", path, found,
                  expected ? ", expected " : "", expected ? expected : "",
                  !*suggestion ? "" : (expected ? "; " : ", "), suggestion);
}

void config_mistake(const struct config_node *node, struct sim_error_list *errors,
                    const char *expected, const char *const *names)
{
    g_autofree char *found = config_describe(node);

    add_mistake(&node->place, node->path, found, node->kind == CONFIG_STRING ? node->string : "",
                errors, expected, names);
}

void config_no_such(const struct config_node *group, struct sim_error_list *errors,
                    const char *what, const char *const *names)
{
    g_autofree char *suggestion = sim_suggestion(group->name, names);

    sim_error_add(errors, group->place.file, group->place.line, "%s: no %s \"%s\"%s%s", group->path,
                  what, group->name, *suggestion ? "; " : "", suggestion);
}

bool config_refuse_made(struct config_node *parent, struct config_node *group, const char *key,
                        const char *what, struct sim_error_list *errors)
{
    const char *origin = config_origin(group);
    unsigned n = 0;

    if (group->kind != CONFIG_GROUP || config_find(group, key) ||
        (strcmp(origin, "--set") != 0 && !g_str_has_prefix(origin, "axis ")))
        return false;
    g_autofree const char **names = g_new0(const char *, config_count(parent) + 1);

    for (unsigned i = 0; i < config_count(parent); i++) {
        struct config_node *child = config_child(parent, i);

        if (child->kind == CONFIG_GROUP && config_find(child, key))
            names[n++] = child->name;
    }
    config_no_such(group, errors, what, names);
    config_mark_read(group);
    return true;
}

bool config_expect(const struct config_node *node, enum config_kind kind,
                   struct sim_error_list *errors, const char *expected)
{
    if (node && node->kind != kind)
        config_mistake(node, errors, expected, NULL);
    return node && node->kind == kind;
}

void config_mistake_at(struct config_node *group, const char *key, struct sim_error_list *errors,
                       const char *expected, const char *const *names)
{
    struct config_node *node = config_child_named(group, key, NULL);
    struct config_node *value = node ? config_value_form(node) : NULL;
    const struct config_kept *kept;

    if (value)
        node = value;
    if (node && node->refused)
        return;
    if (node) {
        config_mistake(node, errors, expected, names);
        return;
    }
    g_autofree char *path = g_strdup_printf("%s%s%s", group->path, *group->path ? "." : "", key);
    kept = config_kept_of(group->config, path);
    const char *quote = kept && config_resolved_of(kept).is_string ? "\"" : "";
    g_autofree char *found = kept ? g_strdup_printf("%s%s%s (the default)", quote, kept->value,
                                                    quote)
                                  : g_strdup("nothing");
    add_mistake(&group->place, path, found, kept ? kept->value : "", errors, expected, names);
}

void config_no_effect(struct config_node *group, const char *key, const char *decider,
                      struct sim_error_list *errors, const char *expected)
{
    const GPtrArray *varied = group->config->varied;

    if (!config_child_named(group, key, NULL))
        return;
    for (guint i = 0; i < varied->len; i++) {
        if (config_paths_overlap(varied->pdata[i], decider))
            return;
    }
    config_mistake_at(group, key, errors, expected, NULL);
}
