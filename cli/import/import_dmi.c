/* dmidecode (SMBIOS 3.0: processor 7.5, cache 7.8, memory device 7.18) and numactl -H. */
#include <string.h>

#include "cli/import/machine.h"

struct reader {
    struct import_machine *machine;
    struct sim_error_list *errors;
    const char *file;
    unsigned line;
};

static void mistake(const struct reader *r, const char *found, const char *expected)
{
    g_autofree char *start = g_strndup(found, 60);
    g_autofree char *shown = import_printable(start);
    sim_error_add(r->errors, r->file, (int)r->line, "found \"%s\", expected %s", shown, expected);
}

static void fact(const struct reader *r, struct import_fact *fact, uint64_t value)
{
    import_fact_set(fact, value, r->file, r->line);
}

/* Adds to what other structures of the same file have said. */
static void add(const struct reader *r, struct import_fact *fact, uint64_t value)
{
    if (!import_known(fact))
        *fact = (struct import_fact){ value, r->file, r->line };
    else if (fact->file == r->file)
        fact->value += value;
}

/* "16384 MB", "16 GB", "25600 kB" in bytes; 0: "No Module Installed", "Unknown" and the like. */
static uint64_t size_of(const struct reader *r, const char *value)
{
    static const char *const units[] = { "bytes", "kB", "MB", "GB", "TB" };
    char *end = NULL;
    const guint64 number = g_ascii_strtoull(value, &end, 10);
    if (end == value)
        return 0;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(units); i++)
        if (*end == ' ' && strcmp(end + 1, units[i]) == 0 && number <= (UINT64_C(1) << 30))
            return number << (10 * i);
    mistake(r, value, "a size such as \"16384 MB\"");
    return 0;
}

/* "2133 MHz", "2133 MT/s"; 0: "Unknown". */
static uint64_t rate_of(const struct reader *r, const char *value)
{
    char *end = NULL;
    const guint64 number = g_ascii_strtoull(value, &end, 10);
    if (end == value)
        return 0;
    if ((strcmp(end, " MHz") == 0 || strcmp(end, " MT/s") == 0) && number <= 100000)
        return number;
    mistake(r, value, "a rate such as \"2133 MHz\"");
    return 0;
}

static uint64_t count_of(const struct reader *r, const char *value)
{
    char *end = NULL;
    const guint64 number = g_ascii_strtoull(value, &end, 10);
    if (end == value || strcmp(value, "Unknown") == 0)
        return 0;
    if (*end == '\0' && number <= 100000)
        return number;
    mistake(r, value, "a number");
    return 0;
}

/* ---- Structures of dmidecode ----------------------------------------------------------------- */

struct pair { /* "\tKey: Value" */
    const char *key, *value;
    unsigned line;
};

static const char *value_of(struct reader *r, const GArray *pairs, const char *key)
{
    for (guint i = 0; i < pairs->len; i++) {
        const struct pair *pair = &g_array_index(pairs, struct pair, i);
        if (strcmp(pair->key, key) == 0) {
            r->line = pair->line;
            return pair->value;
        }
    }
    return "";
}

static void take_processor(struct reader *r, const GArray *pairs)
{
    struct import_machine *m = r->machine;
    unsigned family, model;
    if (!g_str_has_prefix(value_of(r, pairs, "Status"), "Populated"))
        return;
    add(r, &m->sockets, 1);
    const char *version = value_of(r, pairs, "Version");
    if (*version != '\0' && strcmp(version, "Not Specified") != 0)
        import_set_cpu_name(m, version, r->file, r->line);
    const char *signature = value_of(r, pairs, "Signature");
    const char *numbers = strstr(signature, "Family ");
    if (numbers != NULL && sscanf(numbers, "Family %u, Model %u", &family, &model) == 2) {
        fact(r, &m->cpu_family, family);
        fact(r, &m->cpu_model, model);
    }
    const uint64_t external = rate_of(r, value_of(r, pairs, "External Clock"));
    if (external >= 4800) /* that of QPI or UPI; others give a bus clock of 100 MHz */
        fact(r, &m->interconnect_mt_s, external);
    const uint64_t clock = rate_of(r, value_of(r, pairs, "Current Speed"));
    if (clock > 0)
        fact(r, &m->clock_mhz, clock);
    const uint64_t cores = count_of(r, value_of(r, pairs, "Core Enabled"));
    if (cores > 0)
        add(r, &m->cores, cores);
    const uint64_t threads = count_of(r, value_of(r, pairs, "Thread Count"));
    if (threads > 0)
        add(r, &m->threads, threads);
}

/* Of each socket: the sum over its cores, but for the last level. */
static void take_cache(struct reader *r, const GArray *pairs)
{
    struct import_machine *m = r->machine;
    unsigned ways;
    const bool last = strstr(value_of(r, pairs, "Configuration"), "Level 3") != NULL;
    const uint64_t bytes = size_of(r, value_of(r, pairs, "Installed Size"));
    if (!last || bytes == 0)
        return;
    fact(r, &m->l3_bytes, bytes);
    add(r, &m->l3_caches, 1);
    if (sscanf(value_of(r, pairs, "Associativity"), "%u-way", &ways) == 1)
        fact(r, &m->l3_ways, ways);
}

static void take_dimm(struct reader *r, const GArray *pairs)
{
    struct import_machine *m = r->machine;
    const uint64_t bytes = size_of(r, value_of(r, pairs, "Size"));
    if (bytes == 0)
        return;
    add(r, &m->dimm_total_bytes, bytes);
    add(r, &m->dimms, 1);
    static const char *const rates[] = { "Configured Memory Speed", "Configured Clock Speed",
                                         "Speed" };
    for (size_t i = 0; i < SIM_N_ELEMENTS(rates); i++) {
        const uint64_t rate = rate_of(r, value_of(r, pairs, rates[i]));
        if (rate > 0)
            fact(r, &m->dimm_mt_s, rate);
    }
    const uint64_t ranks = count_of(r, value_of(r, pairs, "Rank"));
    if (ranks > 0)
        fact(r, &m->dimm_ranks, ranks);
}

static void take_system(struct reader *r, const GArray *pairs)
{
    const char *maker = value_of(r, pairs, "Manufacturer"),
               *name = value_of(r, pairs, "Product Name");
    if (r->machine->product == NULL && *name != '\0') {
        g_autofree char *both = g_strdup_printf("%s %s", maker, name);
        r->machine->product = import_printable(both);
    }
}

static void take_structure(struct reader *r, unsigned type, const GArray *pairs)
{
    const unsigned line = r->line;
    if (type == 1)
        take_system(r, pairs);
    else if (type == 4)
        take_processor(r, pairs);
    else if (type == 7)
        take_cache(r, pairs);
    else if (type == 17)
        take_dimm(r, pairs);
    r->line = line;
}

/* "\tKey: Value" in place; deeper lines are elements of lists. */
static void take_pair(const struct reader *r, char *line, GArray *pairs)
{
    char *colon = strchr(line, ':');
    if (line[0] != '\t' || line[1] == '\t' || colon == NULL)
        return;
    *colon = '\0';
    const struct pair pair = { line + 1, g_strstrip(colon + 1), r->line };
    g_array_append_val(pairs, pair);
}

void import_dmidecode(struct import_machine *machine, const char *file, const char *text,
                      struct sim_error_list *errors)
{
    struct reader r = { machine, errors, file, 0 };
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GArray) pairs = g_array_new(FALSE, FALSE, sizeof(struct pair));
    unsigned type = 0, handle, next;
    for (char **line = lines; *line != NULL; line++) {
        r.line++;
        g_strchomp(*line);
        if (!g_str_has_prefix(*line, "Handle ")) {
            take_pair(&r, *line, pairs);
            continue;
        }
        if (sscanf(*line, "Handle 0x%x, DMI type %u, %*u bytes", &handle, &next) != 2) {
            mistake(&r, *line, "\"Handle 0x0400, DMI type 4, 42 bytes\"");
            next = 0;
        }
        take_structure(&r, type, pairs);
        g_array_set_size(pairs, 0);
        type = next;
    }
    take_structure(&r, type, pairs);
}

/* ---- numactl -H ------------------------------------------------------------------------------ */

#define NODES_MAX 1024u /* CONFIG_NODES_SHIFT is at most 10 */

struct numa_nodes {
    bool has_cpus[NODES_MAX], told;
    unsigned n, n_with_cpus, line;
    uint64_t bytes, bytes_with_cpus; /* the most of one */
    unsigned bytes_line, bytes_with_cpus_line;
};

static void take_node_bytes(struct reader *r, struct numa_nodes *nodes, unsigned node,
                            uint64_t bytes)
{
    nodes->n += bytes > 0;
    nodes->line = nodes->line == 0 && bytes > 0 ? r->line : nodes->line;
    if (bytes > nodes->bytes) {
        nodes->bytes = bytes;
        nodes->bytes_line = r->line;
    }
    if (bytes > nodes->bytes_with_cpus && nodes->has_cpus[node]) {
        nodes->bytes_with_cpus = bytes;
        nodes->bytes_with_cpus_line = r->line;
    }
}

/* What stands behind "node 0 ", and which node it is of; NULL: the line is none of a node's. */
static const char *node_of(struct reader *r, struct numa_nodes *nodes, const char *line,
                           unsigned *node)
{
    char *end = NULL;
    if (!g_str_has_prefix(line, "node ") || !g_ascii_isdigit(line[5]))
        return NULL;
    const guint64 number = g_ascii_strtoull(line + 5, &end, 10);
    if (number < NODES_MAX) {
        *node = (unsigned)number;
        return g_str_has_prefix(end, " ") ? end + 1 : NULL;
    }
    if (!nodes->told)
        mistake(r, line, "a node of 0 to 1023, as Linux has");
    nodes->told = true;
    return NULL;
}

static void take_node_line(struct reader *r, struct numa_nodes *nodes, const char *line)
{
    char text[64], *end = NULL;
    unsigned node;
    const char *shown = node_of(r, nodes, line, &node);
    if (shown == NULL)
        return;
    if (sscanf(shown, "cpus: %60[0-9]", text) == 1) {
        nodes->n_with_cpus += !nodes->has_cpus[node];
        nodes->has_cpus[node] = true;
    }
    if (sscanf(shown, "size: %60[^\n]", text) != 1)
        return;
    const guint64 mbytes = g_ascii_strtoull(text, &end, 10);
    if (end == text || strcmp(end, " MB") != 0 || mbytes > (UINT64_C(1) << 40))
        mistake(r, line, "\"node 0 size: 64324 MB\"");
    else
        take_node_bytes(r, nodes, node, mbytes << 20);
}

/* A socket's node has its processors, even if it has no memory; one without processors is memory of
 * another kind. Where no processors are shown, nodes are those with memory. */
void import_numactl(struct import_machine *machine, const char *file, const char *text,
                    struct sim_error_list *errors)
{
    struct reader r = { machine, errors, file, 0 };
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    struct numa_nodes nodes = { .n = 0 };
    for (char **line = lines; *line != NULL; line++) {
        unsigned n;
        r.line++;
        g_strchomp(*line);
        if (g_str_has_prefix(*line, "available: ") && sscanf(*line, "available: %u nodes", &n) != 1)
            mistake(&r, *line, "\"available: 2 nodes (0-1)\"");
        take_node_line(&r, &nodes, *line);
    }
    if (nodes.n == 0)
        return;
    import_fact_set(&machine->nodes, nodes.n_with_cpus != 0 ? nodes.n_with_cpus : nodes.n, file,
                    nodes.line);
    if (nodes.bytes_with_cpus != 0)
        import_fact_set(&machine->node_bytes, nodes.bytes_with_cpus, file,
                        nodes.bytes_with_cpus_line);
    else
        import_fact_set(&machine->node_bytes, nodes.bytes, file, nodes.bytes_line);
}

/* ---- /proc/cpuinfo: a paragraph for each thread ---------------------------------------------- */

void import_cpuinfo(struct import_machine *machine, const char *file, const char *text,
                    struct sim_error_list *errors)
{
    struct reader r = { machine, errors, file, 0 };
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GHashTable) packages = g_hash_table_new(NULL, NULL); /* ids may have gaps: 0 and 3 */
    uint64_t threads = 0, cores = 0;                               /* cores: of each package */
    unsigned at_cores = 1;
    for (char **line = lines; *line != NULL; line++) {
        r.line++;
        char *colon = strchr(*line, ':');
        if (colon == NULL)
            continue;
        *colon = '\0';
        const char *key = g_strstrip(*line), *value = g_strstrip(colon + 1);
        if (strcmp(key, "processor") == 0)
            threads++;
        else if (strcmp(key, "model name") == 0)
            import_set_cpu_name(machine, value, file, r.line);
        else if (strcmp(key, "cpu family") == 0)
            fact(&r, &machine->cpu_family, count_of(&r, value));
        else if (strcmp(key, "model") == 0)
            fact(&r, &machine->cpu_model, count_of(&r, value));
        else if (strcmp(key, "physical id") == 0)
            g_hash_table_add(packages, GSIZE_TO_POINTER(count_of(&r, value) + 1));
        else if (strcmp(key, "cpu cores") == 0) {
            cores = count_of(&r, value);
            at_cores = r.line;
        }
    }
    const uint64_t n_packages = g_hash_table_size(packages);
    if (n_packages > 0 && cores > 0) {
        import_fact_set(&machine->sockets, n_packages, file, at_cores);
        import_fact_set(&machine->cores, n_packages * cores, file, at_cores);
        import_fact_set(&machine->threads, threads, file, at_cores);
    }
}
