/* Axes of a scenario: their names, how they go together, what --set and `quick` choose of them. */
#include <string.h>

#include "sim/config/scenario_internal.h"

static const char *const axis_keys[] = { "name",     "setting", "values", "range",
                                         "variants", "with",    NULL };

void axis_free(gpointer data)
{
    struct axis *axis = data;

    g_free(axis->name);
    g_free(axis->origin);
    g_strfreev(axis->quick);
    g_ptr_array_free(axis->values, TRUE);
    if (axis->replaced)
        g_ptr_array_free(axis->replaced, TRUE);
    g_free(axis);
}

size_t scenario_axis_find(const struct scenario *scenario, const char *name)
{
    size_t i;

    for (i = 0; i < scenario->axes->len; i++) {
        const struct axis *axis = scenario->axes->pdata[i];

        if (strcmp(axis->name, name) == 0)
            break;
    }
    return i;
}

static const char **axis_names(const struct scenario *scenario)
{
    const char **names = g_new0(const char *, scenario->axes->len + 1);

    for (guint i = 0; i < scenario->axes->len; i++)
        names[i] = ((const struct axis *)scenario->axes->pdata[i])->name;
    return names;
}

static const char **axis_labels(const struct axis *axis)
{
    const char **labels = g_new0(const char *, axis->values->len + 1);

    for (guint i = 0; i < axis->values->len; i++)
        labels[i] = ((const struct axis_value *)axis->values->pdata[i])->label;
    return labels;
}

/* "prefix: no axis \"x\"; did you mean \"y\"?" */
static void no_such(const char *what, const char *found, const char **names,
                    struct config_place place, struct sim_error_list *errors)
{
    g_autofree char *suggestion = sim_suggestion(found, names);

    sim_error_add(errors, place.file, place.line, "%s \"%s\"%s%s", what, found,
                  *suggestion ? "; " : "", suggestion);
}

static struct axis *axis_or_message(const struct scenario *scenario, const char *name,
                                    struct config_place place, struct sim_error_list *errors)
{
    size_t i = scenario_axis_find(scenario, name);

    if (i < scenario->axes->len)
        return scenario->axes->pdata[i];
    g_autofree const char **names = axis_names(scenario);
    no_such("there is no axis", name, names, place, errors);
    return NULL;
}

/* Name and setting of an axis; NULL with a message. */
static struct axis *axis_new(const struct scenario *scenario, struct config_node *node,
                             struct sim_error_list *errors)
{
    struct config_node *name = config_get(node, "name");
    struct axis *axis;

    if (!name) {
        sim_error_add(errors, node->place.file, node->place.line, "%s: an axis has no name",
                      node->path);
        return NULL;
    }
    if (name->kind != CONFIG_STRING || !config_is_name(name->string, strlen(name->string))) {
        config_mistake(name, errors, "a name of letters, digits and \"_\"", NULL);
        return NULL;
    }
    if (scenario_axis_find(scenario, name->string) < scenario->axes->len) {
        sim_error_add(errors, name->place.file, name->place.line, "%s: two axes are named %s",
                      name->path, name->string);
        return NULL;
    }
    axis = g_new0(struct axis, 1);
    axis->name = g_strdup(name->string);
    axis->origin = g_strdup_printf("axis %s", name->string);
    axis->node = node;
    axis->values = g_ptr_array_new_with_free_func(axis_value_free);
    axis->leader = scenario->axes->len;
    return axis;
}

/* Exactly one of values, range and variants, and a setting for the first two. */
static bool form_valid(struct axis *axis, const struct config_node *setting, unsigned n_forms,
                       bool variants, struct sim_error_list *errors)
{
    struct config_place place = axis->node->place;
    const char *fault = NULL;

    if (n_forms == 0)
        fault = "has no values; give values = [...], range = {...} or variants = (...)";
    else if (n_forms > 1)
        fault = "has more than one of values, range and variants";
    else if (variants && setting)
        fault = "has both a setting and variants; a variant names its settings in set = (...)";
    else if (!variants && !setting)
        fault = "has no setting that its values belong to";
    if (fault)
        sim_error_add(errors, place.file, place.line, "%s: axis %s %s", axis->node->path,
                      axis->name, fault);
    return !fault;
}

/* Whichever of the three forms the axis has. */
static void read_form(struct scenario *scenario, struct axis *axis, struct sim_error_list *errors)
{
    static const char *const forms[] = { "values", "range", "variants" };
    struct config_node *setting = config_get(axis->node, "setting"), *found[3];
    unsigned n_forms = 0;

    for (size_t i = 0; i < SIM_N_ELEMENTS(forms); i++) {
        found[i] = config_get(axis->node, forms[i]);
        n_forms += found[i] ? 1U : 0U;
    }
    if (setting && setting->kind != CONFIG_STRING) {
        config_mistake(setting, errors, "the path of a setting", NULL);
    } else if (form_valid(axis, setting, n_forms, found[2] != NULL, errors)) {
        axis->setting = setting ? setting->string : NULL;
        if (found[0])
            axis_read_values(axis, found[0], errors);
        else if (found[1])
            axis_read_range(scenario, axis, found[1], errors);
        else
            axis_read_variants(scenario, axis, found[2], errors);
        return;
    }
    for (size_t i = 0; i < SIM_N_ELEMENTS(forms); i++) {
        if (found[i])
            config_mark_read(found[i]); /* not looked into: no unknown settings there */
    }
}

/* with = "cores": the axis advances in lock-step with an earlier one. */
static void read_leader(const struct scenario *scenario, struct axis *axis,
                        struct sim_error_list *errors)
{
    struct config_node *with = config_get(axis->node, "with");
    const struct axis *leader;

    if (!config_expect(with, CONFIG_STRING, errors, "the name of an axis"))
        return;
    if (strcmp(with->string, axis->name) == 0) {
        config_mistake(with, errors, "the name of another axis, which stands before this one",
                       NULL);
        return;
    }
    leader = axis_or_message(scenario, with->string, with->place, errors);
    if (leader)
        axis->leader = leader->leader;
}

/* The axes of one step have as many values as each other; --set may have changed some. */
bool scenario_check_leaders(const struct scenario *scenario, struct sim_error_list *errors)
{
    bool good = true;

    for (guint i = 0; i < scenario->axes->len; i++) {
        const struct axis *axis = scenario->axes->pdata[i];
        const struct axis *leader = scenario->axes->pdata[axis->leader];

        if (axis->values->len == leader->values->len)
            continue;
        good = false;
        sim_error_add(errors, axis->node->place.file, axis->node->place.line,
                      "%s: axis %s has %u values, but advances with %s, which has %u",
                      axis->node->path, axis->name, axis->values->len, leader->name,
                      leader->values->len);
    }
    return good;
}

static void read_axis(struct scenario *scenario, struct config_node *node,
                      struct sim_error_list *errors)
{
    struct axis *axis;

    if (node->kind != CONFIG_GROUP) {
        config_mistake(node, errors, "an axis, { name = ...; setting = ...; values = [...]; }",
                       NULL);
        return;
    }
    config_allow(node, axis_keys);
    axis = axis_new(scenario, node, errors);
    if (!axis) {
        config_mark_read(node);
        return;
    }
    read_leader(scenario, axis, errors);
    read_form(scenario, axis, errors);
    if (axis->values->len)
        g_ptr_array_add(scenario->axes, axis);
    else
        axis_free(axis); /* no values: there is a message */
}

/* Whether the axis names the setting itself; false: it is one of the settings of an "@FILE". */
static bool is_named(const struct axis *axis, const struct assignment *assignment)
{
    return axis->setting || !assignment->node;
}

/* Values of one setting all set the same. */
static guint n_different(const struct axis *axis)
{
    return axis->setting ? MIN(axis->values->len, 1) : axis->values->len;
}

/* The axes that set this setting, or a part of it or what it is a part of; named: by name, not as
 * one of the settings of a file. */
static const struct axis *axis_that_sets(const struct scenario *scenario, const char *path,
                                         const struct axis *but, bool named)
{
    for (guint i = 0; i < scenario->axes->len; i++) {
        const struct axis *axis = scenario->axes->pdata[i];

        for (guint j = 0; axis != but && j < n_different(axis); j++) {
            const struct axis_value *value = axis->values->pdata[j];

            for (guint k = 0; k < value->assignments->len; k++) {
                const struct assignment *assignment = value->assignments->pdata[k];

                if (config_paths_overlap(assignment->path, path) &&
                    (!named || is_named(axis, assignment)))
                    return axis;
            }
        }
    }
    return NULL;
}

const char *scenario_axis_of_setting(const struct scenario *scenario, const char *path)
{
    const struct axis *axis = axis_that_sets(scenario, path, NULL, false);

    return axis ? axis->name : NULL;
}

const char *scenario_axis_naming(const struct scenario *scenario, const char *path)
{
    const struct axis *axis = axis_that_sets(scenario, path, NULL, true);

    return axis ? axis->name : NULL;
}

/* Whether a variant of any axis takes the settings of a file. */
static bool any_file(const struct scenario *scenario)
{
    for (guint i = 0; i < scenario->axes->len; i++) {
        const struct axis *axis = scenario->axes->pdata[i];

        for (guint j = 0; j < axis->values->len; j++) {
            const struct axis_value *value = axis->values->pdata[j];

            for (guint k = 0; k < value->assignments->len; k++)
                if (!is_named(axis, value->assignments->pdata[k]))
                    return true;
        }
    }
    return false;
}

bool scenario_set_is_late(const struct scenario *scenario, const char *path)
{
    const char *dot = strrchr(path, '.');
    g_autofree char *group = g_strndup(path, dot ? (size_t)(dot - path) : 0);

    if (scenario_axis_of_setting(scenario, path) || scenario_where_sets(scenario, path))
        return true;
    return dot && !config_find(scenario->base->root, group) && any_file(scenario);
}

/* Two axes that set the same setting: which one wins would be an accident of their order. */
static void check_overlaps(const struct scenario *scenario, struct sim_error_list *errors)
{
    for (guint i = 0; i < scenario->axes->len; i++) {
        const struct axis *axis = scenario->axes->pdata[i];

        for (guint j = 0; j < n_different(axis); j++) {
            const struct axis_value *value = axis->values->pdata[j];

            for (guint k = 0; k < value->assignments->len; k++) {
                const struct assignment *a = value->assignments->pdata[k];
                const struct axis *other = axis_that_sets(scenario, a->path, axis, false);

                if (other)
                    sim_error_add(
                        errors, a->place.file, a->place.line, "%s: set by the axes %s and %s",
                        a->path, g_strcmp0(axis->name, other->name) < 0 ? axis->name : other->name,
                        g_strcmp0(axis->name, other->name) < 0 ? other->name : axis->name);
            }
        }
    }
}

void scenario_read_axes(struct scenario *scenario, struct sim_error_list *errors)
{
    struct config_node *axes = config_get(scenario->base->root, "axes");

    if (!axes)
        return;
    if (axes->kind != CONFIG_LIST) {
        config_mistake(axes, errors, "a list of axes, ( { name = ...; }, ... )", NULL);
        return;
    }
    for (unsigned i = 0; i < config_count(axes); i++)
        read_axis(scenario, config_child(axes, i), errors);
    config_check_unknown_below(axes, errors);
    check_overlaps(scenario, errors);
}

void scenario_tell_axes(struct scenario *scenario)
{
    for (guint i = 0; i < scenario->axes->len; i++) {
        const struct axis *axis = scenario->axes->pdata[i];

        for (guint j = 0; j < n_different(axis); j++) {
            const struct axis_value *value = axis->values->pdata[j];

            for (guint k = 0; k < value->assignments->len; k++)
                config_vary(scenario->base,
                            ((const struct assignment *)value->assignments->pdata[k])->path);
        }
    }
    for (guint i = 0; i < scenario->where->len; i++) {
        const struct axis_value *value = ((const struct where *)scenario->where->pdata[i])->value;

        for (guint k = 0; k < value->assignments->len; k++)
            config_vary(scenario->base,
                        ((const struct assignment *)value->assignments->pdata[k])->path);
    }
}

/* ---- --set axes.NAME=a,b --------------------------------------------------------------------- */

/* Of all variants of the file, whatever an earlier --set has left. */
static void choose_variant(struct axis *axis, const struct axis *old, const char *label,
                           struct config_place place, struct sim_error_list *errors)
{
    const struct axis file = { .values = old->replaced ? old->replaced : old->values };
    const struct axis_value *from = axis_value_named(&file, label);

    if (!from) {
        g_autofree const char **labels = axis_labels(&file);
        g_autofree char *what = g_strdup_printf("axes.%s: there is no variant", axis->name);

        no_such(what, label, labels, place, errors);
        return;
    }
    axis_copy_value(axis, from, place, errors);
}

bool scenario_override_axis(struct scenario *scenario, const char *name, const char *values,
                            struct sim_error_list *errors)
{
    struct config_place place = { .file = "--set", .origin = "--set" };
    struct axis *axis = axis_or_message(scenario, name, place, errors);
    struct axis old;
    size_t before = errors->n_messages;

    if (!axis)
        return false;
    old = *axis;
    axis->values = g_ptr_array_new_with_free_func(axis_value_free);
    g_auto(GStrv) texts = g_strsplit(values, ",", -1);
    if (*values != '\0' && strchr("[({", *values))
        sim_error_add(errors, place.file, 0,
                      "axes.%s: found %.60s, expected values with \",\" between them, without "
                      "brackets",
                      name, values);
    if (g_strv_length(texts) > AXIS_MAX_VALUES)
        sim_error_add(errors, place.file, 0, "axes.%s: more than %d values", name, AXIS_MAX_VALUES);
    for (char **text = texts; *text && errors->n_messages == before; text++) {
        struct config *parsed;

        g_strstrip(*text);
        if (!axis->setting) {
            choose_variant(axis, &old, *text, place, errors);
            continue;
        }
        parsed = config_parse_value(*text, axis->origin, place, errors);
        if (!parsed)
            continue;
        g_ptr_array_add(scenario->parsed, parsed);
        axis_add_value_of_setting(axis, parsed->root->children->pdata[0], axis->setting, errors);
    }
    if (!*texts)
        sim_error_add(errors, place.file, 0, "axes.%s: axis %s has no values", name, name);
    if (axis->values->len == 0) {
        g_ptr_array_free(axis->values, TRUE);
        axis->values = old.values;
    } else if (!axis->replaced) {
        axis->replaced = old.values;
    } else {
        g_ptr_array_free(old.values, TRUE);
    }
    return errors->n_messages == before;
}

/* ---- The fast subset ------------------------------------------------------------------------- */

static void read_quick(struct scenario *scenario, struct config_node *node,
                       struct sim_error_list *errors)
{
    struct axis *axis;
    g_autofree char *name = NULL, *label = NULL;
    guint n;

    if (!config_expect(node, CONFIG_STRING, errors, "a string \"axis=value\""))
        return;
    if (!config_split_setting(node->string, &name, &label, node->place, errors))
        return;
    axis = axis_or_message(scenario, name, node->place, errors);
    if (axis && axis_value_named(axis, label)) {
        n = axis->quick ? g_strv_length(axis->quick) : 0;
        axis->quick = g_renew(char *, axis->quick, n + 2);
        axis->quick[n] = g_strdup(label);
        axis->quick[n + 1] = NULL;
    } else if (axis) {
        g_autofree const char **labels = axis_labels(axis);
        g_autofree char *what = g_strdup_printf("%s: axis %s has no value", node->path, name);

        no_such(what, label, labels, node->place, errors);
    }
}

void scenario_read_quick(struct scenario *scenario, struct sim_error_list *errors)
{
    struct config_node *quick = config_get(scenario->base->root, "quick");

    if (!config_expect(quick, CONFIG_LIST, errors, "a list, ( \"axis=value\", ... )"))
        return;
    for (unsigned i = 0; i < config_count(quick); i++)
        read_quick(scenario, config_child(quick, i), errors);
}
