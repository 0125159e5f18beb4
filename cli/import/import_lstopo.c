/* The text of lstopo, "Package L#0 + L3 L#0 (25MB)": cores, caches and nodes. Its PCI tree has
 * neither addresses nor links in older versions; lspci and the XML say more. */
#include <string.h>

#include "cli/import/machine.h"

struct counts {
    uint64_t packages, nodes, cores, threads, l2_caches, l3_caches;
    unsigned package_line, node_line, core_line, l2_line, l3_line;
};

static void count(uint64_t *n, unsigned *first, unsigned line)
{
    if ((*n)++ == 0)
        *first = line;
}

/* "(25MB)", "(P#0 63GB)", "(P#0 total=66060288KB)"; 0: none. */
static uint64_t size_of(const char *object)
{
    static const char *const units[] = { "KB", "MB", "GB", "TB" };
    const char *open = strchr(object, '(');
    for (const char *c = open != NULL ? open : ""; *c != '\0'; c++) {
        char *end = NULL;
        if (!g_ascii_isdigit(*c) || g_ascii_isalnum(c[-1]) || c[-1] == '#')
            continue;
        const guint64 value = g_ascii_strtoull(c, &end, 10);
        for (unsigned i = 0; i < SIM_N_ELEMENTS(units); i++)
            if (g_str_has_prefix(end, units[i]) && value <= (UINT64_C(1) << 30))
                return value << (10 * (i + 1));
    }
    return 0;
}

static void take_object(struct import_machine *m, struct counts *n, const char *object,
                        const char *file, unsigned line)
{
    const uint64_t bytes = size_of(object);
    if (g_str_has_prefix(object, "Package L#") || g_str_has_prefix(object, "Socket L#"))
        count(&n->packages, &n->package_line, line);
    else if (g_str_has_prefix(object, "NUMANode "))
        count(&n->nodes, &n->node_line, line);
    else if (g_str_has_prefix(object, "Core "))
        count(&n->cores, &n->core_line, line);
    else if (g_str_has_prefix(object, "PU "))
        n->threads++;
    else if (g_str_has_prefix(object, "L3 ")) {
        count(&n->l3_caches, &n->l3_line, line);
        if (bytes > 0)
            import_fact_set(&m->l3_bytes, bytes, file, line);
    } else if (g_str_has_prefix(object, "L2 ")) {
        count(&n->l2_caches, &n->l2_line, line);
        if (bytes > 0)
            import_fact_set(&m->l2_bytes, bytes, file, line);
    } else if (g_str_has_prefix(object, "L1d ") && bytes > 0) {
        import_fact_set(&m->l1_bytes, bytes, file, line);
    }
    if (g_str_has_prefix(object, "NUMANode ") && bytes > 0)
        import_fact_set(&m->node_bytes, bytes, file, line);
}

void import_hwloc_text(struct import_machine *m, const char *file, const char *text,
                       struct sim_error_list *errors)
{
    struct counts n = { 0 };
    unsigned number = 0;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        g_auto(GStrv) objects = g_strsplit(g_strstrip(*line), " + ", -1);
        number++;
        for (char **object = objects; *object != NULL; object++)
            take_object(m, &n, *object, file, number);
    }
    if (n.cores == 0) {
        sim_error_add(errors, file, 1, "found no core, expected lines such as \"Core L#0\"");
        return;
    }
    import_fact_set(&m->cores, n.cores, file, n.core_line);
    import_fact_set(&m->threads, MAX(n.threads, n.cores), file, n.core_line);
    if (n.packages > 0)
        import_fact_set(&m->sockets, n.packages, file, n.package_line);
    if (n.nodes > 0)
        import_fact_set(&m->nodes, n.nodes, file, n.node_line);
    if (n.l2_caches > 0)
        import_fact_set(&m->l2_cores, MAX(n.cores / n.l2_caches, 1), file, n.l2_line);
    if (n.l3_caches > 0)
        import_fact_set(&m->l3_caches, n.l3_caches, file, n.l3_line);
}
