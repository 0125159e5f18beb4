/* Who lends and borrows what, and whose IOMMU is on: a line for each host of a topology. */
#include <string.h>

#include "cli/topology/topology.h"

enum { NAMES_MAX = 4 }; /* of more the first and the last are named */

static const char *machine_host(struct config_node *machine)
{
    struct config_node *host = config_find(machine, "host");
    return host != NULL && config_kind(host) == CONFIG_STRING ? config_string(host) : "";
}

/* The i-th name of a list of the machine, or NULL. */
static const char *name_at(struct config_node *machine, const char *key, unsigned i)
{
    struct config_node *list = config_find(machine, key);
    struct config_node *node = list != NULL && config_kind(list) == CONFIG_LIST &&
                                       i < config_count(list)
                                   ? config_child(list, i)
                                   : NULL;
    return node != NULL && config_kind(node) == CONFIG_STRING ? config_string(node) : NULL;
}

static bool lends(struct config_node *machine, const char *device)
{
    const char *name;
    for (unsigned i = 0; (name = name_at(machine, "lend", i)) != NULL; i++) {
        if (strcmp(name, device) == 0)
            return true;
    }
    return false;
}

/* "a, b" or "a0 ... a33 (34)" */
static char *names_text(const GPtrArray *names)
{
    GString *text = g_string_new(NULL);
    if (names->len > NAMES_MAX) {
        g_string_append_printf(text, "%s ... %s (%u)", (const char *)names->pdata[0],
                               (const char *)names->pdata[names->len - 1], names->len);
        return g_string_free(text, FALSE);
    }
    for (guint i = 0; i < names->len; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", (const char *)names->pdata[i]);
    return g_string_free(text, FALSE);
}

static void append_role(GString *role, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void append_role(GString *role, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_string_append(role, role->len > 0 ? ", " : "");
    g_string_append_vprintf(role, format, args);
    va_end(args);
}

/* What is in the machine's list `key`; from: only what this one lends, if not NULL. */
static GPtrArray *devices_of(struct config_node *machine, const char *key, struct config_node *from)
{
    GPtrArray *names = g_ptr_array_new();
    const char *name;
    for (unsigned i = 0; (name = name_at(machine, key, i)) != NULL; i++) {
        if (from == NULL || lends(from, name))
            g_ptr_array_add(names, (gpointer)(uintptr_t)name);
    }
    return names;
}

static void append_devices(GString *role, GString *alike, const char *verb, GPtrArray *names,
                           const char *lender)
{
    g_autofree char *text = names_text(names);
    if (names->len > 0) {
        append_role(role, "%s %s%s%s", verb, text, lender != NULL ? " of " : "",
                    lender != NULL ? lender : "");
        append_role(alike, "%s %u", verb, names->len);
    }
    g_ptr_array_free(names, TRUE);
}

static void append_machine(GString *role, GString *alike, struct config_node *lending,
                           struct config_node *machine)
{
    append_devices(role, alike, "lends", devices_of(machine, "lend", NULL), NULL);
    for (unsigned i = 0; i < config_count(lending); i++) {
        struct config_node *lender = config_child(lending, i);
        if (config_kind(lender) == CONFIG_GROUP)
            append_devices(role, alike, "borrows", devices_of(machine, "borrow", lender),
                           machine_host(lender));
    }
    if (config_find(machine, "vm") != NULL) {
        append_role(role, "runs a guest");
        append_role(alike, "runs a guest");
    }
}

void topology_read_roles(struct topology *t, struct config *config, const bool *iommu)
{
    struct config_node *lending = config_find(config_root(config), "lending");
    if (lending != NULL && config_kind(lending) != CONFIG_GROUP)
        lending = NULL;
    for (guint h = 0; h < t->hosts->len; h++) {
        struct topology_host *host = TOPOLOGY_AT(t->hosts, host, h);
        GString *role = g_string_new(NULL), *alike = g_string_new(NULL);
        for (unsigned i = 0; lending != NULL && i < config_count(lending); i++) {
            struct config_node *machine = config_child(lending, i);
            if (config_kind(machine) == CONFIG_GROUP &&
                strcmp(machine_host(machine), host->name) == 0)
                append_machine(role, alike, lending, machine);
        }
        if (iommu[h] || role->len > 0) {
            const char *state = iommu[h] ? "IOMMU on" : "IOMMU off";
            const char *comma = role->len > 0 ? ", " : "";
            g_string_prepend(role, comma);
            g_string_prepend(role, state);
            g_string_prepend(alike, comma);
            g_string_prepend(alike, state);
        }
        host->role = g_string_free(role, FALSE);
        host->role_alike = g_string_free(alike, FALSE);
    }
}
