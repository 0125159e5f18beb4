/*
 * The values of an axis. Whatever form they are written in (values, range, variants), they become a
 * list of named values, each a list of assignments; points know nothing else.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "sim/config/scenario_internal.h"
#include "sim/config/unit.h"

void assignment_free(gpointer data)
{
    struct assignment *assignment = data;

    g_free(assignment->path);
    g_free(assignment->text);
    g_free(assignment);
}

void axis_value_free(gpointer data)
{
    struct axis_value *value = data;

    g_free(value->label);
    g_ptr_array_free(value->assignments, TRUE);
    g_free(value);
}

struct axis_value *axis_value_new(const char *label)
{
    struct axis_value *value = g_new0(struct axis_value, 1);

    value->label = g_strdup(label);
    value->assignments = g_ptr_array_new_with_free_func(assignment_free);
    return value;
}

struct assignment *assignment_new(const char *path, struct config_node *node, const char *text,
                                  struct config_place place)
{
    struct assignment *assignment = g_new0(struct assignment, 1);

    assignment->path = g_strdup(path);
    assignment->node = node;
    assignment->text = g_strdup(text);
    assignment->place = place;
    return assignment;
}

static void assign(struct axis_value *value, const char *path, struct config_node *node,
                   const char *text, struct config_place place)
{
    g_ptr_array_add(value->assignments, assignment_new(path, node, text, place));
}

struct axis_value *axis_value_named(const struct axis *axis, const char *label)
{
    for (guint i = 0; i < axis->values->len; i++) {
        struct axis_value *value = axis->values->pdata[i];

        if (strcmp(value->label, label) == 0)
            return value;
    }
    return NULL;
}

/* Names stand in points, "axis=value axis=value", and in --set axes.NAME=a,b. */
static bool label_valid(const char *label)
{
    return *label && !strpbrk(label, "=,\n\t") && !g_ascii_isspace(*label) &&
           !g_ascii_isspace(label[strlen(label) - 1]);
}

/* The value that is the same number, "1 KiB" of 1024; NULL: none. Plain numbers have the same
 * label then. */
static const struct axis_value *same_number(const struct axis *axis, const struct axis_value *value)
{
    for (guint i = 0; i < axis->values->len && value->is_number; i++) {
        const struct axis_value *other = axis->values->pdata[i];
        const double rounding = 4 * DBL_EPSILON * fabs(value->number);

        if (other->is_number && (value->is_quoted || other->is_quoted) &&
            filter_same_kind(value->dimension, other->dimension) &&
            fabs(value->number - other->number) <= rounding)
            return other;
    }
    return NULL;
}

/* Takes the value over, or frees it with a message. One whose label cannot stand in a point stays,
 * with a message, for what refers to the axis. */
static bool add_value(struct axis *axis, struct axis_value *value, struct config_place place,
                      struct sim_error_list *errors)
{
    const struct axis_value *same = same_number(axis, value);
    const bool valid = label_valid(value->label);
    bool good = false;

    if (!valid)
        sim_error_add(errors, place.file, place.line,
                      "axis %s: found the value \"%.60s\", expected one without \"=\", \",\" and "
                      "blanks around it%s",
                      axis->name, value->label,
                      axis->setting ? "; `variants` give names to such values" : "");
    else if (axis_value_named(axis, value->label))
        sim_error_add(errors, place.file, place.line, "axis %s: value %s stands there twice",
                      axis->name, value->label);
    else if (same)
        sim_error_add(errors, place.file, place.line,
                      "axis %s: the values %s and %s are the same, expected one of them",
                      axis->name, same->label, value->label);
    else
        good = true;
    if (good || (!valid && *value->label))
        g_ptr_array_add(axis->values, value);
    else
        axis_value_free(value);
    return good;
}

/* A string is a number where it has a unit; else it may be a name. */
static void read_number(struct axis_value *value, const struct config_node *node,
                        const struct unit *plain)
{
    value->is_quoted = node->kind == CONFIG_STRING;
    value->is_number = filter_number(value->label, value->is_quoted ? NULL : plain, &value->number,
                                     &value->dimension) &&
                       (!value->is_quoted || value->dimension != UNIT_NONE);
}

bool axis_add_value_of_setting(struct axis *axis, struct config_node *node, const char *element,
                               struct sim_error_list *errors)
{
    struct axis_value *value;

    if (node->kind == CONFIG_GROUP || node->kind == CONFIG_LIST) {
        config_mistake(node, errors, "one value; \"variants\" set several settings", NULL);
        return false;
    }
    value = axis_value_new(config_text(node));
    read_number(value, node, param_unit_in_name(axis->setting));
    assign(value, element, node, NULL, node->place);
    return add_value(axis, value, node->place, errors);
}

void axis_copy_value(struct axis *axis, const struct axis_value *from, struct config_place place,
                     struct sim_error_list *errors)
{
    struct axis_value *value = axis_value_new(from->label);

    for (guint i = 0; i < from->assignments->len; i++) {
        const struct assignment *a = from->assignments->pdata[i];

        assign(value, a->path, a->node, a->text, a->place);
    }
    add_value(axis, value, place, errors);
}

void axis_read_values(struct axis *axis, struct config_node *values, struct sim_error_list *errors)
{
    if (!config_expect(values, CONFIG_LIST, errors, "a list of values, [1, 2, 4]"))
        return;
    if (config_count(values) == 0)
        sim_error_add(errors, values->place.file, values->place.line, "%s: axis %s has no values",
                      values->path, axis->name);
    if (config_count(values) > AXIS_MAX_VALUES) {
        sim_error_add(errors, values->place.file, values->place.line, "%s: more than %d values",
                      values->path, AXIS_MAX_VALUES);
        return;
    }
    for (unsigned i = 0; i < config_count(values); i++)
        axis_add_value_of_setting(axis, config_child(values, i), axis->setting, errors);
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

/* { from = 64; to = 65536; factor = 2; } or { from = 0; to = 10; step = 2.5; } */
struct range {
    struct config_node *from, *to, *step, *factor;
    bool whole;
};

static bool is_number(const struct config_node *node)
{
    return node && (node->kind == CONFIG_INT || node->kind == CONFIG_FLOAT);
}

static bool range_read(struct config_node *node, struct range *range, struct sim_error_list *errors)
{
    const struct config_node *by;

    if (node->kind != CONFIG_GROUP) {
        config_mistake(node, errors, "{ from = 64; to = 4096; factor = 2; }", NULL);
        return false;
    }
    range->from = config_get(node, "from");
    range->to = config_get(node, "to");
    range->step = config_get(node, "step");
    range->factor = config_get(node, "factor");
    by = range->step ? range->step : range->factor;
    if (!is_number(range->from) || !is_number(range->to) || !is_number(by) ||
        (range->step && range->factor)) {
        sim_error_add(errors, node->place.file, node->place.line,
                      "%s: expected the numbers from, to, and either step or factor", node->path);
        return false;
    }
    if (config_number(range->to) < config_number(range->from) ||
        (range->step && config_number(range->step) <= 0) ||
        (range->factor && (config_number(range->factor) <= 1 || config_number(range->from) <= 0))) {
        sim_error_add(errors, node->place.file, node->place.line,
                      "%s: expected from <= to, and step > 0 or factor > 1 with from > 0",
                      node->path);
        return false;
    }
    range->whole = range->from->kind == CONFIG_INT && by->kind == CONFIG_INT;
    return true;
}

/* The value number i. Rounded to 12 digits, so that 0.1 + 2 * 0.1 is written 0.3. */
static double range_value(const struct range *range, unsigned i)
{
    double from = config_number(range->from), value;
    char text[UNIT_TEXT_BYTES];

    value = range->step ? from + i * config_number(range->step)
                        : from * pow(config_number(range->factor), i);
    if (range->whole)
        return rint(value);
    return g_ascii_strtod(g_ascii_formatd(text, sizeof(text), "%.12g", value), NULL);
}

void axis_read_range(struct scenario *scenario, struct axis *axis, struct config_node *node,
                     struct sim_error_list *errors)
{
    struct config_place place = node->place;
    struct range range;
    struct config *values;

    if (!range_read(node, &range, errors))
        return;
    values = config_new();
    g_ptr_array_add(scenario->parsed, values);
    for (unsigned i = 0; range_value(&range, i) <= config_number(range.to); i++) {
        double value = range_value(&range, i);
        struct config_node *made;

        if (i == AXIS_MAX_VALUES || fabs(value) > 0x1p53) {
            sim_error_add(errors, place.file, place.line, "%s: more than %d values", node->path,
                          AXIS_MAX_VALUES);
            return;
        }
        made = config_node_new(values, values->root, NULL, range.whole ? CONFIG_INT : CONFIG_FLOAT,
                               place, -1);
        made->real = value;
        made->integer = range.whole ? (int64_t)value : 0;
        axis_add_value_of_setting(axis, made, axis->setting, errors);
    }
}

/* ---- Variants -------------------------------------------------------------------------------- */

/* All settings of a file; groups with what else is in them. */
static void assign_all(struct axis_value *value, struct config_node *node)
{
    if (node->kind != CONFIG_GROUP || config_value_form(node)) {
        assign(value, node->path, node, NULL, node->place);
        return;
    }
    for (unsigned i = 0; i < config_count(node); i++)
        assign_all(value, node->children->pdata[i]);
}

void axis_value_read_sets(struct scenario *scenario, struct axis_value *value,
                          struct config_node *sets, struct sim_error_list *errors)
{
    if (!config_expect(sets, CONFIG_LIST, errors, "a list of settings, ( \"path=value\" )"))
        return;
    for (unsigned i = 0; i < config_count(sets); i++) {
        struct config_node *element = config_child(sets, i);
        g_autofree char *path = NULL, *text = NULL;

        if (element->kind != CONFIG_STRING) {
            config_mistake(element, errors, "a string \"path=value\"", NULL);
        } else if (*element->string == '@' && scenario_skips_file(scenario, element->string + 1)) {
            /* what it sets is no part of the outline */
        } else if (*element->string == '@') {
            struct config *file = scenario_load_set_file(scenario, element->string + 1,
                                                         element->place, false, errors);
            for (unsigned k = 0; file && k < config_count(file->root); k++) {
                const struct config_node *top = config_child(file->root, k);

                scenario_refuse_set(top->path, top->place, errors);
            }
            if (file) {
                g_ptr_array_add(scenario->parsed, file);
                assign_all(value, file->root);
            }
        } else if (config_split_setting(element->string, &path, &text, element->place, errors) &&
                   !scenario_refuse_set(path, element->place, errors)) {
            assign(value, path, NULL, text, element->place);
        }
    }
}

static void read_variant(struct scenario *scenario, struct axis *axis, struct config_node *variant,
                         struct sim_error_list *errors)
{
    struct config_node *name, *sets;
    struct axis_value *value;

    if (variant->kind != CONFIG_GROUP) {
        config_mistake(variant, errors, "a variant, { name = \"local\"; set = ( ... ); }", NULL);
        return;
    }
    name = config_get(variant, "name");
    sets = config_get(variant, "set");
    if (!name) {
        sim_error_add(errors, variant->place.file, variant->place.line,
                      "%s: a variant of axis %s has no name", variant->path, axis->name);
    } else if (name->kind != CONFIG_STRING) {
        config_mistake(name, errors, "a string", NULL);
    } else if (!sets) {
        sim_error_add(errors, variant->place.file, variant->place.line,
                      "%s: variant %s of axis %s sets nothing; a variant without changes has "
                      "set = ()",
                      variant->path, name->string, axis->name);
    } else {
        value = axis_value_new(name->string);
        axis_value_read_sets(scenario, value, sets, errors);
        add_value(axis, value, name->place, errors);
    }
}

void axis_read_variants(struct scenario *scenario, struct axis *axis, struct config_node *variants,
                        struct sim_error_list *errors)
{
    if (!config_expect(variants, CONFIG_LIST, errors, "a list of variants"))
        return;
    if (config_count(variants) == 0)
        sim_error_add(errors, variants->place.file, variants->place.line,
                      "%s: axis %s has no variants", variants->path, axis->name);
    for (unsigned i = 0; i < config_count(variants); i++)
        read_variant(scenario, axis, config_child(variants, i), errors);
}
