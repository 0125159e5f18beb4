#include "tests/random/random_scenario.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/types.h"

static struct random_setting *find(const struct random_scenario *s, const char *path)
{
    for (unsigned i = 0; i < s->n; i++)
        if (strcmp(s->setting[i].path, path) == 0)
            return (struct random_setting *)&s->setting[i];
    return NULL;
}

void random_put(struct random_scenario *s, const char *path, const char *format, ...)
{
    struct random_setting *setting = find(s, path);
    va_list args;
    if (setting == NULL) {
        SIM_ASSERT(s->n < RANDOM_SETTINGS_MAX, "more settings than there is room for");
        setting = &s->setting[s->n++];
        g_strlcpy(setting->path, path, sizeof(setting->path));
    }
    va_start(args, format);
    vsnprintf(setting->value, sizeof(setting->value), format, args);
    va_end(args);
}

const char *random_get(const struct random_scenario *s, const char *path)
{
    const struct random_setting *setting = find(s, path);
    return setting != NULL ? setting->value : NULL;
}

static bool below(const char *path, const char *group)
{
    const size_t n = strlen(group);
    return strncmp(path, group, n) == 0 && (path[n] == '.' || path[n] == '\0');
}

unsigned random_remove(struct random_scenario *s, const char *path)
{
    unsigned kept = 0, n = s->n;
    for (unsigned i = 0; i < n; i++)
        if (!below(s->setting[i].path, path))
            s->setting[kept++] = s->setting[i];
    s->n = kept;
    return n - kept;
}

/* ---- Text ------------------------------------------------------------------------------------ */

/* The part of the path after `skip` bytes up to the next dot; false: it is the last. */
static bool component(const char *path, size_t skip, char *name, size_t bytes)
{
    const char *from = path + skip, *dot = strchr(from, '.');
    const size_t n = dot != NULL ? (size_t)(dot - from) : strlen(from);
    snprintf(name, bytes, "%.*s", (int)n, from);
    return dot != NULL;
}

static bool is_first(const struct random_scenario *s, unsigned idx, size_t bytes)
{
    for (unsigned i = 0; i < idx; i++)
        if (strncmp(s->setting[i].path, s->setting[idx].path, bytes) == 0)
            return false;
    return true;
}

/* All below `prefix` ("" or "hosts.server."). */
static void write_group(const struct random_scenario *s, const char *prefix, int indent,
                        GString *out)
{
    const size_t skip = strlen(prefix);
    const char *between = "";
    for (unsigned i = 0; i < s->n; i++) {
        char name[RANDOM_PATH_BYTES], inner[2 * RANDOM_PATH_BYTES];
        if (strncmp(s->setting[i].path, prefix, skip) != 0)
            continue;
        const bool group = component(s->setting[i].path, skip, name, sizeof(name));
        if (!group) {
            g_string_append_printf(out, "%*s%s = %s;\n", indent, "", name, s->setting[i].value);
            continue;
        }
        snprintf(inner, sizeof(inner), "%s%s.", prefix, name);
        if (!is_first(s, i, strlen(inner)))
            continue;
        const bool element = name[0] == '[';
        const bool list = s->setting[i].path[strlen(inner)] == '[';
        if (element)
            g_string_append_printf(out, "%s%*s{\n", between, indent, "");
        else
            g_string_append_printf(out, "%*s%s = %c\n", indent, "", name, list ? '(' : '{');
        write_group(s, inner, indent + 4, out);
        g_string_append_printf(out, "%*s%s", indent, "", element ? "}" : list ? ");\n" : "};\n");
        if (element)
            between = ",\n";
    }
    if (*between != '\0')
        g_string_append(out, "\n");
}

static const char *const relation_names[] = { "", "not_worse", "same", "differs" };

char *random_text(const struct random_scenario *s)
{
    GString *out = g_string_new(NULL);
    const struct random_pair *pair = &s->pair;
    if (pair->relation != RANDOM_NO_PAIR)
        g_string_append_printf(out, "# pair: %s %s %g %s=%s\n", relation_names[pair->relation],
                               *pair->metric != '\0' ? pair->metric : "-", pair->tolerance,
                               pair->path, pair->value);
    write_group(s, "", 0, out);
    return g_string_free(out, FALSE);
}

void random_pair_read(const char *text, struct random_pair *pair)
{
    char relation[16];
    const char *at = strstr(text, "# pair: ");
    *pair = (struct random_pair){ 0 };
    if (at == NULL || sscanf(at, "# pair: %15s %63s %lg %95[^=]=%63[^\n]", relation, pair->metric,
                             &pair->tolerance, pair->path, pair->value) != 5)
        return;
    for (unsigned i = 1; i < SIM_N_ELEMENTS(relation_names); i++)
        if (strcmp(relation, relation_names[i]) == 0)
            pair->relation = (enum random_relation)i;
}

/* ---- Smaller ones ---------------------------------------------------------------------------- */

/* The group that the first `depth` parts of the path name; false: it has no more than those. */
static bool group_of(const char *path, unsigned depth, char *group)
{
    const char *dot = path - 1;
    for (unsigned i = 0; i < depth && dot != NULL; i++)
        dot = strchr(dot + 1, '.');
    if (dot == NULL)
        return false;
    snprintf(group, RANDOM_PATH_BYTES, "%.*s", (int)(dot - path), path);
    return true;
}

/* Whether the value names the device or a port of it. */
static bool names(const char *value, const char *device)
{
    const size_t n = strlen(device);
    for (const char *at = value; (at = strchr(at, '"')) != NULL; at++)
        if (strncmp(at + 1, device, n) == 0 && (at[1 + n] == '.' || at[1 + n] == '"'))
            return true;
    return false;
}

/* Takes a device (or host) out, with the cables and programs that name it. */
static bool without(struct random_scenario *s, const char *place, const char *device)
{
    char group[RANDOM_PATH_BYTES], other[RANDOM_PATH_BYTES];
    snprintf(group, sizeof(group), "%.15s.%.75s", place, device);
    random_remove(s, group);
    for (unsigned i = 0; i < s->n;) {
        const char *path = s->setting[i].path;
        const bool list = s->setting[i].value[0] == '[';
        if (!names(s->setting[i].value, device) || !group_of(path, 2, other)) {
            i++;
        } else if (list) {
            random_put(s, path, "[]"); /* lend and borrow */
        } else {
            random_remove(s, other);
            i = 0;
        }
    }
    return true;
}

static bool halve(struct random_setting *setting)
{
    char *end;
    const long long v = strtoll(setting->value, &end, 10);
    if (*end != '\0' || end == setting->value || v < 2)
        return false;
    snprintf(setting->value, sizeof(setting->value), "%lld", v / 2);
    return true;
}

bool random_smaller(const struct random_scenario *s, unsigned n, struct random_scenario *smaller)
{
    static const char *const places[] = { "devices", "programs", "hosts" };
    char group[RANDOM_PATH_BYTES], name[RANDOM_PATH_BYTES];
    *smaller = *s;
    for (unsigned p = 0; p < SIM_N_ELEMENTS(places); p++)
        for (unsigned i = 0; i < s->n; i++) {
            if (!below(s->setting[i].path, places[p]) || !group_of(s->setting[i].path, 2, group) ||
                !is_first(s, i, strlen(group) + 1))
                continue;
            component(s->setting[i].path, strlen(places[p]) + 1, name, sizeof(name));
            if (n-- == 0)
                return without(smaller, places[p], name);
        }
    for (unsigned depth = 1; depth <= 4; depth++)
        for (unsigned i = 0; i < s->n; i++)
            if (group_of(s->setting[i].path, depth, group) && is_first(s, i, strlen(group) + 1) &&
                n-- == 0)
                return random_remove(smaller, group) != 0;
    for (unsigned i = 0; i < s->n; i++)
        if (n-- == 0)
            return random_remove(smaller, s->setting[i].path) != 0;
    for (unsigned i = 0; i < s->n; i++) {
        struct random_setting copy = s->setting[i];
        if (halve(&copy) && n-- == 0)
            return halve(&smaller->setting[i]);
    }
    return false;
}
