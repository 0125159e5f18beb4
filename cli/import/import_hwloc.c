/* The XML of lstopo: objects of hwloc 1 (Socket, Cache with depth) and of hwloc 2 and 3. */
#include <string.h>

#include "cli/import/machine.h"

/* An object that is open. */
struct object {
    int node;       /* the NUMA node that it is, or has; -1: neither */
    unsigned cores; /* within */
    unsigned line;
    bool is_object;
    bool is_l2;
};

struct reader {
    struct import_machine *machine;
    struct sim_error_list *errors;
    const char *file;
    GArray *open; /* struct object */
    uint64_t packages, nodes, cores, threads, l3_caches, node_bytes;
    unsigned first_package, first_core, first_l3, first_node;
    int line;
    bool topology;
};

static const char *attribute(const char **names, const char **values, const char *name)
{
    for (; *names != NULL; names++, values++)
        if (strcmp(*names, name) == 0)
            return *values;
    return "";
}

static void mistake(struct reader *r, const char *what, const char *found, const char *expected)
{
    g_autofree char *start = g_strndup(found, 60);
    g_autofree char *shown = import_printable(start);
    sim_error_add(r->errors, r->file, r->line, "%s: found \"%s\", expected %s", what, shown,
                  expected);
}

static uint64_t number(struct reader *r, const char *what, const char *text)
{
    char *end = NULL;
    const guint64 value = g_ascii_strtoull(text, &end, 10);
    if (*text == '\0')
        return 0;
    if (*end != '\0' || end == text || value > (UINT64_C(1) << 60)) {
        mistake(r, what, text, "a number");
        return 0;
    }
    return value;
}

static void fact(struct reader *r, struct import_fact *fact, uint64_t value)
{
    if (value > 0)
        import_fact_set(fact, value, r->file, (unsigned)r->line);
}

/* ---- Caches, cores, nodes -------------------------------------------------------------------- */

static void take_cache(struct reader *r, uint64_t level, const char **names, const char **values)
{
    struct import_machine *m = r->machine;
    const uint64_t bytes = number(r, "cache_size", attribute(names, values, "cache_size"));
    const char *associativity = attribute(names, values, "cache_associativity");
    const bool full = strcmp(associativity, "-1") == 0;
    const uint64_t ways = full ? 0 : number(r, "cache_associativity", associativity);
    if (level == 1 && strcmp(attribute(names, values, "cache_type"), "2") == 0)
        return; /* of instructions */
    if (level == 1) {
        fact(r, &m->l1_bytes, bytes);
        fact(r, &m->l1_ways, ways);
    } else if (level == 2) {
        fact(r, &m->l2_bytes, bytes);
        fact(r, &m->l2_ways, ways);
    } else if (level == 3) {
        fact(r, &m->l3_bytes, bytes);
        fact(r, &m->l3_ways, ways);
        r->first_l3 = r->l3_caches++ == 0 ? (unsigned)r->line : r->first_l3;
    }
}

static struct object *above(struct reader *r, guint steps)
{
    return r->open->len > steps ? &g_array_index(r->open, struct object, r->open->len - 1 - steps)
                                : NULL;
}

static void take_node(struct reader *r, struct object *object, const char **names,
                      const char **values)
{
    const uint64_t bytes = number(r, "local_memory", attribute(names, values, "local_memory"));
    object->node = (int)MIN(number(r, "os_index", attribute(names, values, "os_index")), 1023);
    if (above(r, 0) != NULL)
        above(r, 0)->node = object->node; /* hwloc 2: memory hangs below what it is local to */
    r->first_node = r->nodes++ == 0 ? (unsigned)r->line : r->first_node;
    if (bytes > r->node_bytes) {
        r->node_bytes = bytes;
        r->machine->node_bytes = (struct import_fact){ bytes, r->file, (unsigned)r->line };
    }
}

static void take_core(struct reader *r)
{
    r->first_core = r->cores++ == 0 ? (unsigned)r->line : r->first_core;
    for (guint i = 0; i < r->open->len; i++)
        g_array_index(r->open, struct object, i).cores++;
}

/* ---- PCI ------------------------------------------------------------------------------------- */

/* hwloc knows the product of rate and width alone, in GB/s after encoding: the narrowest width of
 * the highest generation up to 3 that gives it, else of a later one. */
static void take_speed(struct reader *r, struct import_function *f, const char *text)
{
    static const double lane_gbyte_s[] = { 0.25,
                                           0.5,
                                           8.0 / 8 * 128 / 130,
                                           16.0 / 8 * 128 / 130,
                                           32.0 / 8 * 128 / 130,
                                           64.0 / 8 * 242 / 256 };
    static const unsigned order[] = { 3, 2, 1, 4, 5, 6 };
    const double speed = g_ascii_strtod(text, NULL);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(order) && speed > 0.0; i++) {
        for (unsigned lanes = 1; lanes <= 32; lanes *= 2) {
            const double there = lane_gbyte_s[order[i] - 1] * lanes;
            if (speed < there * 0.99 || speed > there * 1.01)
                continue;
            fact(r, &f->trained.generation, order[i]);
            fact(r, &f->trained.lanes, lanes);
            return;
        }
    }
}

static void take_pci(struct reader *r, const char *type, const char **names, const char **values)
{
    const char *address = attribute(names, values, "pci_busid");
    const char *ids = attribute(names, values, "pci_type");
    unsigned domain, bus, device, function, code, vendor, id, from, to;
    if (strcmp(type, "Bridge") == 0 &&
        g_str_has_prefix(attribute(names, values, "bridge_type"), "0-"))
        return; /* a root bus */
    if (sscanf(address, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4 || bus > 255 ||
        device > 31 || function > 7) {
        mistake(r, "pci_busid", address, "an address such as 0000:3b:00.0");
        return;
    }
    if (sscanf(ids, "%4x [%4x:%4x]", &code, &vendor, &id) != 3) {
        mistake(r, "pci_type", ids, "class and identity, \"0200 [8086:1583] ...\"");
        return;
    }
    struct import_function *f = import_function_new(r->machine, r->file, (unsigned)r->line);
    f->from_hwloc = true;
    f->domain = domain;
    f->bus = bus;
    f->device = device;
    f->function = function;
    f->class_code = code;
    f->vendor_id = vendor;
    f->device_id = id;
    g_free(f->text);
    f->text = g_strdup_printf("class %04x: %04x:%04x", code, vendor, id);
    if (strcmp(type, "Bridge") == 0) {
        f->bridge = true;
        const char *range = strchr(attribute(names, values, "bridge_pci"), '[');
        if (range != NULL && sscanf(range, "[%x-%x]", &from, &to) == 2 && from < 256)
            f->secondary = from;
    }
    for (guint i = r->open->len; i > 0 && f->node < 0; i--)
        f->node = g_array_index(r->open, struct object, i - 1).node;
    take_speed(r, f, attribute(names, values, "pci_link_speed"));
}

/* ---- Elements -------------------------------------------------------------------------------- */

static void take_object(struct reader *r, struct object *object, const char **names,
                        const char **values)
{
    const char *type = attribute(names, values, "type");
    if (strcmp(type, "Package") == 0 || strcmp(type, "Socket") == 0) {
        r->first_package = r->packages++ == 0 ? (unsigned)r->line : r->first_package;
    } else if (strcmp(type, "NUMANode") == 0) {
        take_node(r, object, names, values);
    } else if (strcmp(type, "Core") == 0) {
        take_core(r);
    } else if (strcmp(type, "PU") == 0) {
        r->threads++;
    } else if (strcmp(type, "Cache") == 0) {
        const uint64_t level = number(r, "depth", attribute(names, values, "depth"));
        object->is_l2 = level == 2;
        take_cache(r, level, names, values);
    } else if (type[0] == 'L' && g_ascii_isdigit(type[1]) &&
               (strcmp(type + 2, "Cache") == 0 || strcmp(type + 2, "dCache") == 0)) {
        object->is_l2 = type[1] == '2';
        take_cache(r, (uint64_t)(type[1] - '0'), names, values);
    } else if (strcmp(type, "PCIDev") == 0 || strcmp(type, "Bridge") == 0) {
        take_pci(r, type, names, values);
    } else if (*type == '\0') {
        mistake(r, "object", "", "its type");
    }
}

/* The name of the PCI function that is open. */
static void take_pci_name(struct reader *r, const char *value)
{
    const GPtrArray *functions = r->machine->functions;
    const struct object *object = above(r, 0);
    struct import_function *f = functions->len > 0 ? functions->pdata[functions->len - 1] : NULL;
    if (f == NULL || object == NULL || f->file != r->file || f->line != object->line)
        return;
    g_autofree char *name = import_printable(value);
    char *text = g_strdup_printf("%s %s", f->text, name);
    g_free(f->text);
    f->text = text;
}

static void take_info(struct reader *r, const char *name, const char *value)
{
    struct import_machine *m = r->machine;
    if (strcmp(name, "PCIVendor") == 0 || strcmp(name, "PCIDevice") == 0)
        take_pci_name(r, value);
    if (strcmp(name, "CPUModel") == 0)
        import_set_cpu_name(m, value, r->file, (unsigned)r->line);
    else if (strcmp(name, "CPUFamilyNumber") == 0)
        fact(r, &m->cpu_family, number(r, name, value));
    else if (strcmp(name, "CPUModelNumber") == 0)
        fact(r, &m->cpu_model, number(r, name, value));
    else if (strcmp(name, "DMIProductName") == 0 && m->product == NULL && *value != '\0')
        m->product = import_printable(value);
}

static void start_element(GMarkupParseContext *context, const char *element, const char **names,
                          const char **values, gpointer data, GError **error)
{
    struct reader *r = data;
    struct object object = { .node = -1, .is_object = strcmp(element, "object") == 0 };
    (void)error;
    g_markup_parse_context_get_position(context, &r->line, NULL);
    object.line = (unsigned)r->line;
    if (strcmp(element, "topology") == 0)
        r->topology = true;
    else if (!r->topology && r->errors->n_messages == 0)
        mistake(r, "first element", element, "topology");
    if (object.is_object)
        take_object(r, &object, names, values);
    else if (strcmp(element, "info") == 0)
        take_info(r, attribute(names, values, "name"), attribute(names, values, "value"));
    g_array_append_val(r->open, object);
}

static void end_element(GMarkupParseContext *context, const char *element, gpointer data,
                        GError **error)
{
    struct reader *r = data;
    const struct object *object = above(r, 0);
    (void)context, (void)element, (void)error;
    if (object->is_l2 && object->cores > 0)
        import_fact_set(&r->machine->l2_cores, object->cores, r->file, object->line);
    g_array_set_size(r->open, r->open->len - 1);
}

static void keep_counts(struct reader *r)
{
    struct import_machine *m = r->machine;
    const struct {
        struct import_fact *fact;
        uint64_t value;
        unsigned line;
    } counts[] = {
        { &m->sockets, r->packages, r->first_package }, { &m->nodes, r->nodes, r->first_node },
        { &m->cores, r->cores, r->first_core },         { &m->threads, r->threads, r->first_core },
        { &m->l3_caches, r->l3_caches, r->first_l3 },
    };
    for (size_t i = 0; i < SIM_N_ELEMENTS(counts); i++)
        if (counts[i].value > 0)
            import_fact_set(counts[i].fact, counts[i].value, r->file, counts[i].line);
}

void import_hwloc_xml(struct import_machine *machine, const char *file, const char *text,
                      struct sim_error_list *errors)
{
    static const GMarkupParser parser = { .start_element = start_element,
                                          .end_element = end_element };
    struct reader r = { .machine = machine, .errors = errors, .file = file };
    g_autoptr(GError) error = NULL;
    r.open = g_array_new(FALSE, FALSE, sizeof(struct object));
    GMarkupParseContext *context = g_markup_parse_context_new(&parser, 0, &r, NULL);
    if (!g_markup_parse_context_parse(context, text, -1, &error) ||
        !g_markup_parse_context_end_parse(context, &error)) {
        g_markup_parse_context_get_position(context, &r.line, NULL);
        g_autofree char *message = import_printable(error->message);
        const char *reason = strncmp(message, "Error on line ", 14) == 0 ? strstr(message, ": ")
                                                                         : NULL;
        sim_error_add(errors, file, r.line, "no XML as lstopo writes it: %s",
                      reason != NULL ? reason + 2 : message);
    }
    keep_counts(&r);
    g_markup_parse_context_free(context);
    g_array_free(r.open, TRUE);
}
