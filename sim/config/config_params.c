/* Reading settings through parameter tables: types, units, ranges, provenance. */
#include <inttypes.h>
#include <string.h>

#include "sim/config/config_internal.h"
#include "sim/config/unit.h"

/* ": found X, expected an integer 1..16" */
static void mistake(const struct param_desc *desc, const struct config_node *node,
                    const char *found, struct sim_error_list *errors)
{
    g_autofree char *expected = param_expected(desc), *suggestion = NULL;

    if (desc->type == PARAM_ENUM && node->kind == CONFIG_STRING) {
        const char *nearest = sim_nearest_name(node->string, desc->names);

        if (nearest)
            suggestion = g_strdup_printf("; did you mean \"%s\"?", nearest);
    }
    sim_error_add(errors, node->place.file, node->place.line, "%s: found %s, expected %s%s",
                  node->path, found, expected, suggestion ? suggestion : "");
}

/* Why a quantity in a string was refused: "a size", "a string without unit". */
static const char *quantity_fault(enum unit_status status, enum unit_dimension dimension,
                                  enum unit_dimension found)
{
    switch (status) {
    case UNIT_MISSING: return "a string without a unit";
    case UNIT_UNKNOWN: return "no unit known here";
    case UNIT_MISFIT: return unit_dimension_name(found);
    case UNIT_NEGATIVE: return "negative";
    case UNIT_FRACTION:
        return dimension == UNIT_TIME ? "not a whole number of picoseconds"
                                      : "not a whole number of bytes";
    case UNIT_TOO_LARGE: return "too large";
    case UNIT_NO_NUMBER:
    case UNIT_OK: break;
    }
    return "a string";
}

static bool read_quantity_string(const struct param_desc *desc, const struct config_node *node,
                                 struct param_value *value, struct sim_error_list *errors)
{
    const struct unit *unit = param_key_unit(desc);
    enum unit_dimension found_dimension = UNIT_NONE;
    g_autofree char *suggestion = NULL;
    enum unit_status status;

    if (desc->type == PARAM_RATE)
        status = unit_parse_scaled(node->string, unit, &value->real, &found_dimension);
    else
        status = unit_parse_whole(node->string, unit->dimension, &value->whole, &found_dimension);
    if (status == UNIT_OK)
        return true;
    if (status == UNIT_UNKNOWN)
        suggestion = unit_suggestion(node->string, unit->dimension);
    g_autofree char *found =
        g_strdup_printf("\"%.60s\" (%s%s%s)", node->string,
                        quantity_fault(status, unit->dimension, found_dimension),
                        suggestion ? "; " : "", suggestion ? suggestion : "");
    mistake(desc, node, found, errors);
    return false;
}

/* ": found "40 us" = 40000 ns, expected 0..1000 ns": its unit is right. */
static void quantity_out_of_range(const struct param_desc *desc, const struct config_node *node,
                                  const struct param_value *value, struct sim_error_list *errors)
{
    g_autofree char *range = param_expected_range(desc), *number = param_format(desc, value);

    sim_error_add(errors, node->place.file, node->place.line,
                  "%s: found \"%.60s\" = %s %s, expected %s", node->path, node->string, number,
                  param_unit(desc), range ? range : "less");
}

/* Without a unit: in the unit of the key. False without a message: the type is wrong. */
static bool read_number(const struct param_desc *desc, const struct config_node *node,
                        struct param_value *value, enum unit_status *status)
{
    *status = UNIT_OK;
    if (desc->type == PARAM_DOUBLE || desc->type == PARAM_RATE) {
        if (node->kind != CONFIG_INT && node->kind != CONFIG_FLOAT)
            return false;
        value->real = config_number(node);
    } else if (desc->type == PARAM_TIME && node->kind == CONFIG_FLOAT) {
        *status = unit_whole_from_double(node->real, param_key_unit(desc), &value->whole);
    } else if (desc->type == PARAM_TIME && node->kind == CONFIG_INT) {
        *status = unit_whole_from_int(node->integer, param_key_unit(desc), &value->whole);
    } else if (node->kind == CONFIG_INT) {
        *status = node->integer < 0 ? UNIT_NEGATIVE : UNIT_OK;
        value->whole = (uint64_t)node->integer;
    } else {
        return false;
    }
    return true;
}

static bool read_name(const struct param_desc *desc, const struct config_node *node,
                      struct param_value *value)
{
    for (size_t i = 0; node->kind == CONFIG_STRING && desc->names[i]; i++) {
        if (strcmp(desc->names[i], node->string) == 0) {
            value->whole = i;
            return true;
        }
    }
    return false;
}

static bool read_typed(const struct param_desc *desc, const struct config_node *node,
                       struct param_value *value, enum unit_status *status)
{
    *status = UNIT_OK;
    switch (desc->type) {
    case PARAM_BOOL: value->truth = node->truth; return node->kind == CONFIG_BOOL;
    case PARAM_STRING: value->string = node->string; return node->kind == CONFIG_STRING;
    case PARAM_ENUM: return read_name(desc, node, value);
    default: return read_number(desc, node, value, status);
    }
}

/* Like config_describe(), but a whole number where only an integer will do has its point: "4.0 (a
 * number)". */
static char *describe_misfit(const struct param_desc *desc, const struct config_node *node)
{
    char number[UNIT_TEXT_BYTES];
    const bool is_float = node->kind == CONFIG_FLOAT && desc->type != PARAM_TIME;
    const char *text = is_float ? unit_format_double(node->real, number) : ".";

    return strpbrk(text, ".en") ? config_describe(node) : g_strdup_printf("%s.0 (a number)", text);
}

bool config_read_value(const struct param_desc *desc, const struct config_node *node,
                       struct param_value *value, struct sim_error_list *errors)
{
    bool quantity = desc->type == PARAM_BYTES || desc->type == PARAM_TIME ||
                    desc->type == PARAM_RATE;
    enum unit_status status;

    if (quantity && node->kind == CONFIG_STRING) {
        if (!read_quantity_string(desc, node, value, errors))
            return false;
    } else if (!read_typed(desc, node, value, &status) || status != UNIT_OK) {
        g_autofree char *found = status == UNIT_FRACTION
                                     ? g_strdup_printf("%s (%s)",
                                                       config_text((struct config_node *)node),
                                                       quantity_fault(status, UNIT_TIME, UNIT_TIME))
                                     : describe_misfit(desc, node);
        mistake(desc, node, found, errors);
        return false;
    }
    if (param_in_range(desc, value))
        return true;
    if (quantity && node->kind == CONFIG_STRING) {
        quantity_out_of_range(desc, node, value, errors);
        return false;
    }
    g_autofree char *found = config_describe(node);
    mistake(desc, node, found, errors);
    return false;
}

struct config_resolved config_resolved_of(const struct config_kept *kept)
{
    const struct param_desc *desc = kept->desc;
    struct config_resolved resolved = {
        .path = kept->path,
        .value = kept->value,
        .unit = param_unit(desc),
        .desc = desc,
        .is_string = desc->type == PARAM_STRING || desc->type == PARAM_ENUM,
        .is_default = true,
        .origin = "default",
        .provenance = desc->provenance,
        .source = desc->source,
    };

    if (kept->all != NULL)
        resolved = *kept->all;
    resolved.idle = kept->idle;
    return resolved;
}

static void record(struct config *config, const char *path, const struct param_desc *desc,
                   const struct param_value *value, const struct config_setting *setting)
{
    struct config_kept *kept = g_new0(struct config_kept, 1);
    g_autofree char *text = param_format(desc, value);

    kept->path = g_string_chunk_insert(config->strings, path);
    kept->value = g_string_chunk_insert_const(config->strings, text);
    kept->desc = desc;
    if (setting->node) {
        const struct config_resolved as_default = config_resolved_of(kept);
        struct config_resolved *resolved = g_memdup2(&as_default, sizeof(as_default));

        resolved->is_default = false;
        resolved->origin = config_full_origin(setting->node);
        resolved->provenance = setting->provenance;
        resolved->source = setting->source;
        resolved->fitted_to = setting->fitted_to;
        resolved->on_bound = setting->on_bound;
        resolved->machine = setting->machine;
        resolved->lo = setting->lo;
        resolved->hi = setting->hi;
        kept->all = resolved;
    }
    g_hash_table_add(config->resolved, kept);
}

/* One entry of the table; its default is in *value already. */
static bool read_param(struct config_node *node, const struct param_desc *desc,
                       struct param_value *value, struct config_setting *setting,
                       struct sim_error_list *errors)
{
    struct param_value read = *value;
    bool good = true;

    *setting = (struct config_setting){ .node = node };
    setting->provenance = desc->provenance == PROV_NONE ? PROV_NONE : PROV_ESTIMATE;
    if (config_value_form(node))
        good = config_read_value_form(node, setting, errors);
    setting->node->is_param = true;
    if (!config_read_value(desc, setting->node, &read, errors)) {
        setting->node->refused = true;
        return false;
    }
    *value = read;
    return config_check_range(desc, setting, value, errors) && good;
}

static void missing(const struct config_node *group, const char *path,
                    const struct param_desc *desc, struct sim_error_list *errors)
{
    g_autofree char *expected = param_expected(desc);

    sim_error_add(errors, group ? group->place.file : NULL, group ? group->place.line : 0,
                  "%s: missing, expected %s", path, expected);
}

static char *param_path(const struct config_node *group, const char *where, const char *key)
{
    const char *above = group ? group->path : (where ? where : "");

    return g_strdup_printf("%s%s%s", above, *above ? "." : "", key);
}

bool config_read_params(struct config *config, struct config_node *group, const char *where,
                        const struct param_desc *table, void *state, struct sim_error_list *errors)
{
    bool good = true;

    if (group && group->kind != CONFIG_GROUP) {
        config_mistake(group, errors, "a group", NULL);
        good = false;
        group = NULL;
    }
    for (const struct param_desc *desc = table; desc->type != PARAM_END; desc++) {
        struct param_value value = param_default(desc);
        struct config_node *node = group ? config_get(group, desc->key) : NULL;
        struct config_setting setting = { 0 };
        g_autofree char *path = param_path(group, where, desc->key);

        if (node) {
            good &= read_param(node, desc, &value, &setting, errors);
        } else if (param_required(desc)) {
            missing(group, path, desc, errors);
            good = false;
        }
        if (node || !param_required(desc)) {
            param_store(desc, state, &value);
            if (desc->type != PARAM_STRING || value.string)
                record(config, path, desc, &value, &setting);
        }
    }
    return good;
}

const struct param_desc *config_param_desc(const struct config *config, const char *path)
{
    const struct config_kept *kept = config_kept_of(config, path);

    return kept ? kept->desc : NULL;
}
