/* Which text of a scenario a run was made with: digests of what the file says of the system, and of
 * each variant of its axes and each `where` that holds. */
#include <string.h>

#include "sim/config/scenario_internal.h"

/* Says where a value comes from, or how a value is shown; no part of what is simulated. */
static bool is_aside(const char *name)
{
    static const char *const names[] = { "title", "text",        "axes",  "plot",   "set",
                                         "quick", "constraints", "where", "source", NULL };
    for (unsigned i = 0; names[i] != NULL; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static void add_node(GChecksum *sum, struct config_node *node, bool top)
{
    const enum config_kind kind = config_kind(node);
    const char *name = config_name(node);
    if (kind == CONFIG_GROUP || kind == CONFIG_LIST) {
        g_checksum_update(sum, (const guchar *)name, (gssize)strlen(name));
        g_checksum_update(sum, (const guchar *)"(", 1);
        for (unsigned i = 0; i < config_count(node); i++) {
            struct config_node *child = config_child(node, i);
            if (!(top && is_aside(config_name(child))) && strcmp(config_name(child), "source") != 0)
                add_node(sum, child, false);
        }
        g_checksum_update(sum, (const guchar *)")", 1);
        return;
    }
    g_autofree char *text = g_strdup_printf("%s=%s;", name, config_text(node));
    g_checksum_update(sum, (const guchar *)text, (gssize)strlen(text));
}

/* Eight digits are enough for texts of one scenario. */
static char *end(GChecksum *sum)
{
    char *digits = g_strndup(g_checksum_get_string(sum), 8);
    g_checksum_free(sum);
    return digits;
}

static char *digest_of_value(const struct axis_value *value)
{
    GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
    for (guint i = 0; i < value->assignments->len; i++) {
        const struct assignment *assignment = value->assignments->pdata[i];
        g_checksum_update(sum, (const guchar *)assignment->path, (gssize)strlen(assignment->path));
        if (assignment->node != NULL)
            add_node(sum, assignment->node, false);
        else
            g_checksum_update(sum, (const guchar *)assignment->text,
                              (gssize)strlen(assignment->text));
    }
    return end(sum);
}

char *scenario_digest_base(struct config *base)
{
    GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
    add_node(sum, config_root(base), true);
    return end(sum);
}

char *scenario_digest(const struct scenario *scenario, size_t point)
{
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "file:%s", scenario->digest);
    for (size_t a = 0; a < scenario->axes->len; a++) {
        const struct axis *axis = scenario->axes->pdata[a];
        const struct axis_value *value =
            axis->values->pdata[scenario_point_value(scenario, point, a)];
        if (axis->setting != NULL) /* its values are their names */
            continue;
        g_autofree char *digest = digest_of_value(value);
        g_string_append_printf(text, " %s=%s:%s", axis->name, value->label, digest);
    }
    for (guint i = 0; i < scenario->where->len; i++) {
        const struct where *where = scenario->where->pdata[i];
        if (!where->holds[point])
            continue;
        g_autofree char *digest = digest_of_value(where->value);
        g_string_append_printf(text, " where:%s", digest);
    }
    return g_string_free(text, FALSE);
}
