/*
 * The platform as a scenario file: each group includes the family's file and sets below that what
 * was read, with file and line of each value.
 */
#include <math.h>
#include <string.h>

#include "cli/import/plan.h"
#include "models/pcie/root/root_complex.h"

/* Limits of the model (nudma describe cpu, dram). */
#define SOCKETS_MAX    4u
#define CORES_MAX      30u
#define CORES_DEFAULT  14u
#define NODE_BYTES_MAX (UINT64_C(1) << 40)
#define GENERATION_MAX 5u
#define VFS_MAX        7u /* of nic.ethernet */

struct writer {
    const struct import_machine *m;
    const struct import_choice *choice;
    struct import_plan *plan;
    const char *family;
    GString *out;
    GPtrArray *values;   /* of the group under way: key, text, key, text ...; owned */
    unsigned sockets;    /* of the model */
    uint64_t of_machine; /* those among which cores, caches and modules are divided: may be more */
    uint64_t mps_bytes;  /* of the host: firmware of the model has one; 0: not shown */
};

/* ---- A group: values read, over a file's ----------------------------------------------------- */

static char *short_name(const char *file)
{
    g_autofree char *base = g_path_get_basename(file);
    char *printable = import_printable(base);
    for (char *c = printable; *c != '\0'; c++)
        if (*c == '"' || *c == '\\')
            *c = '?';
    return printable;
}

/* A setting with its origin; comment may be NULL. */
static void put(struct writer *w, const char *key, const struct import_fact *fact,
                const char *comment, const char *value)
{
    g_autofree char *file = short_name(fact->file);
    g_ptr_array_add(w->values, g_strdup(key));
    g_ptr_array_add(
        w->values,
        g_strdup_printf("{ value = %s; provenance = \"published\"; source = \"%s:%u\"; };%s%s",
                        value, file, fact->line, comment != NULL ? "  # " : "",
                        comment != NULL ? comment : ""));
}

static void put_number(struct writer *w, const char *key, const struct import_fact *fact,
                       const char *comment, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    put(w, key, fact, comment, g_ascii_formatd(text, sizeof(text), "%.10g", value));
}

/* Derived from what was read by a rule that the comment says. */
static void put_estimate(struct writer *w, const char *key, const char *comment, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(text, sizeof(text), "%.10g", value);
    g_ptr_array_add(w->values, g_strdup(key));
    g_ptr_array_add(w->values, g_strdup_printf("{ value = %s; provenance = \"estimate\"; source = "
                                               "\"docs/import.md\"; };  # %s",
                                               text, comment));
}

static void put_size(struct writer *w, const char *key, const struct import_fact *fact,
                     const char *comment, uint64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
    unsigned i = 0;
    for (; i + 1 < SIM_N_ELEMENTS(units) && bytes % 1024 == 0; i++)
        bytes /= 1024;
    g_autofree char *text = g_strdup_printf("\"%" G_GUINT64_FORMAT " %s\"", bytes, units[i]);
    put(w, key, fact, comment, text);
}

static bool sets(const char *line, const char *key)
{
    const size_t n = strlen(key);
    return strncmp(line, key, n) == 0 && (line[n] == ' ' || line[n] == '=');
}

static char **lines_of(const struct writer *w, const char *file)
{
    for (const char *const *root = w->choice->roots; *root != NULL; root++) {
        char *text = NULL;
        g_autofree char *path = g_build_filename(*root, file, NULL);
        if (!g_file_get_contents(path, &text, NULL, NULL))
            continue;
        char **lines = g_strsplit(text, "\n", -1);
        g_free(text);
        return lines;
    }
    return g_new0(char *, 1);
}

#define INCLUDES_MAX 8

/* The number that the file, or one that it includes, has for the setting; NAN: none. The last one
 * holds. */
static double number_in(const struct writer *w, const char *file, const char *key, unsigned depth)
{
    g_auto(GStrv) lines = lines_of(w, file);
    double number = (double)NAN;
    for (char **line = lines; *line != NULL && depth < INCLUDES_MAX; line++) {
        const char *value = strstr(*line, "value = ");
        g_auto(GStrv) quoted = g_strsplit(*line, "\"", 3);
        double found = (double)NAN;
        if (sets(*line, key) && value != NULL)
            found = g_ascii_strtod(value + strlen("value = "), NULL);
        else if (g_str_has_prefix(*line, "@include ") && g_strv_length(quoted) == 3)
            found = number_in(w, quoted[1], key, depth + 1);
        number = isfinite(found) ? found : number;
    }
    return number;
}

/* What the family has for the setting; 0: nothing. */
static double family_number(const struct writer *w, const char *group, const char *key)
{
    g_autofree char *file = import_family_file(w->choice->roots, w->family, group);
    const double number = file != NULL ? number_in(w, file, key, 0) : (double)NAN;
    return isfinite(number) ? number : 0.0;
}

/* The file (NULL: none), then the values, which take the place of its; the list of values is empty
 * again. */
static void append_settings(struct writer *w, const char *file, const char *indent)
{
    if (file != NULL)
        g_string_append_printf(w->out, "%s@include \"%s\"\n", indent, file);
    for (guint i = 0; i < w->values->len; i += 2)
        g_string_append_printf(w->out, "%s%s = %s\n", indent, (const char *)w->values->pdata[i],
                               (const char *)w->values->pdata[i + 1]);
    g_ptr_array_set_size(w->values, 0);
}

/* What no tool says, and which measurement would. */
static const struct {
    const char *group, *text;
} measurements[] = {
    { "cpu", "l1_hit_cycles, l2_hit_cycles: mlc --idle_latency -b16k, -b128k" },
    { "core",
      "line_fill_buffers, superqueue_entries: bandwidth of one core, mlc --max_bandwidth -m1 x latency" },
    { "cache",
      "llc_request_ns + llc_return_ns: mlc --idle_latency, a buffer larger than the L2 and smaller than the LLC\n"
      "        # ddio_ways: rdmsr 0xc8b, or the window at which pcie-bench's reads begin to miss" },
    { "coherence",
      "protocol, directory: snoop mode and clustering of the firmware; core to core: mlc --c2c_latency" },
    { "interconnect",
      "one_way_ns: mlc --latency_matrix, remote less local; links: mlc --bandwidth_matrix" },
    { "dram", "controller_ns: mlc --idle_latency; timing: decode-dimms" },
    { "root_complex",
      "inbound_ns + outbound_ns: pcie-bench LAT_RD of 64 B, cold; line_interval_ns: BW_RD of 64 B\n"
      "        # p2p_*: bandwidth between two devices below different root ports" },
    { "iommu",
      "iotlb_entries: pcie-bench LAT_RD over the window, where it rises; walk_fixed_ns: by how much" },
    { "os", "perf stat -e cycles of each path; perf trace -s for system calls" },
};

static void append_group(struct writer *w, const char *group)
{
    g_autofree char *file = import_family_file(w->choice->roots, w->family, group);
    if (file == NULL && w->values->len == 0)
        return;
    g_string_append_printf(w->out, "    %s = {\n", group);
    for (size_t i = 0; i < SIM_N_ELEMENTS(measurements); i++)
        if (strcmp(measurements[i].group, group) == 0)
            g_string_append_printf(w->out, "        # measured by: %s\n", measurements[i].text);
    append_settings(w, file, "        ");
    g_string_append(w->out, "    };\n");
}

static void note(struct writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void note(struct writer *w, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    g_ptr_array_add(w->plan != NULL ? w->plan->notes : NULL, g_strdup_vprintf(fmt, args));
    va_end(args);
}

/* ---- Sockets, cores, caches ------------------------------------------------------------------ */

static void append_cpu(struct writer *w)
{
    const struct import_machine *m = w->m;
    const bool nodes = import_known(&m->nodes) && import_known(&m->sockets) &&
                       m->nodes.value < m->sockets.value;
    if (w->of_machine > w->sockets)
        put_estimate(w, "sockets", "fewer than were read: the most of the model", w->sockets);
    else if (import_known(&m->sockets) || import_known(&m->nodes))
        put_number(w, "sockets", nodes || !import_known(&m->sockets) ? &m->nodes : &m->sockets,
                   nodes ? "NUMA nodes: several packages share the memory of one" : NULL,
                   w->sockets);
    if (!import_known(&m->cores))
        note(w, "no tool shows the number of cores: %u a socket are the model's default",
             CORES_DEFAULT);
    if (import_known(&m->cores)) {
        const uint64_t cores = MAX(m->cores.value / w->of_machine, 1);
        if (cores > CORES_MAX) {
            note(w, "%" G_GUINT64_FORMAT " cores a socket: the model has %u at most", cores,
                 CORES_MAX);
            put_estimate(w, "cores_per_socket", "fewer than were read: the most of the model",
                         CORES_MAX);
        } else
            put_number(w, "cores_per_socket", &m->cores,
                       import_known(&m->threads) && m->threads.value > m->cores.value
                           ? "two threads each are not modelled"
                           : NULL,
                       (double)cores);
    }
    if (import_known(&m->clock_mhz))
        put_number(w, "clock_ghz", &m->clock_mhz, NULL, (double)m->clock_mhz.value / 1000.0);
    else if (import_known(&m->name_clock_mhz))
        put_number(w, "clock_ghz", &m->name_clock_mhz, "by the processor's name",
                   (double)m->name_clock_mhz.value / 1000.0);
    else
        note(w, "no tool shows the clock of the cores: 2 GHz are the model's default (dmidecode, "
                "lstopo --of xml and /proc/cpuinfo tell)");
    append_group(w, "cpu");
}

static double slice_bytes(const struct writer *w)
{
    const double kib = strcmp(w->family, "skylake_sp") == 0        ? 1408
                       : strcmp(w->family, "sapphire_rapids") == 0 ? 1920
                                                                   : 2560;
    return kib * 1024.0;
}

/* Nobody said: a slice of the family's for each core. */
static void put_llc_estimate(struct writer *w)
{
    const uint64_t cores = import_known(&w->m->cores) ? w->m->cores.value / w->of_machine
                                                      : CORES_DEFAULT;
    const uint64_t slices = CLAMP(cores, 1, CORES_MAX);
    put_estimate(w, "llc_size", "not shown: a slice for each core; lstopo tells",
                 slice_bytes(w) * (double)slices);
    put_estimate(w, "llc_slices", "one a core", (double)slices);
}

static void put_llc(struct writer *w)
{
    const struct import_machine *m = w->m;
    unsigned slices, ways;
    const uint64_t caches = import_known(&m->l3_caches) ? m->l3_caches.value : w->of_machine;
    const uint64_t bytes = m->l3_bytes.value * CLAMP(caches / w->of_machine, 1, 64);
    const double family_ways = family_number(w, "cache", "llc_ways");
    const uint64_t cores = import_known(&m->cores) ? m->cores.value / w->of_machine : 0;
    if (bytes > (UINT64_C(1) << 30) ||
        !import_divide_llc(bytes, cores, slice_bytes(w),
                           import_known(&m->l3_ways) ? m->l3_ways.value : 0, family_ways, &slices,
                           &ways)) {
        note(w,
             "an LLC of %" G_GUINT64_FORMAT
             " bytes cannot be divided into slices: one of the family's "
             "for each core stands in",
             bytes);
        put_llc_estimate(w);
        return;
    }
    put_size(w, "llc_size", &m->l3_bytes,
             caches > w->of_machine ? "of all caches of a socket" : NULL, bytes);
    put_estimate(w, "llc_slices", "those of the family's size, else one a core", slices);
    if ((double)ways != family_ways || import_known(&m->l3_ways))
        put_estimate(w, "llc_ways", "as read if slices of it have a power of two of sets", ways);
}

/* A private cache, "l1" or "l2": with the ways that were read, else the family's, if these leave a
 * power of two of sets. */
static void put_private(struct writer *w, const char *name, const struct import_fact *bytes,
                        const struct import_fact *ways, uint64_t most_bytes)
{
    g_autofree char *size_key = g_strdup_printf("%s_size", name);
    g_autofree char *ways_key = g_strdup_printf("%s_ways", name);
    const uint64_t family_ways = (uint64_t)family_number(w, "cache", ways_key);
    const uint64_t wanted = import_known(ways) ? ways->value : family_ways;
    const unsigned fitting = import_divide_private(bytes->value, wanted);
    if (!import_known(bytes) || bytes->value < 4096 || bytes->value > most_bytes)
        return;
    if (fitting == 0) {
        note(w,
             "an %s of %" G_GUINT64_FORMAT
             " bytes has no power of two of sets: the family's stands in",
             name, bytes->value);
        return;
    }
    put_size(w, size_key, bytes, NULL, bytes->value);
    if (import_known(ways) && fitting == ways->value)
        put_number(w, ways_key, ways, NULL, fitting);
    else if (fitting != family_ways)
        put_estimate(w, ways_key,
                     "those read, or the family's, or more, for a power of two of sets", fitting);
}

static bool is_bus(const struct writer *w)
{
    return strcmp(w->family, "core2") == 0 || strcmp(w->family, "netburst") == 0;
}

static void append_cache(struct writer *w)
{
    const struct import_machine *m = w->m;
    put_private(w, "l1", &m->l1_bytes, &m->l1_ways, 1048576);
    put_private(w, "l2", &m->l2_bytes, &m->l2_ways, 67108864);
    if (import_known(&m->l2_cores) && (m->l2_cores.value == 2 || m->l2_cores.value == 4))
        put_number(w, "l2_cores", &m->l2_cores, NULL, (double)m->l2_cores.value);
    if (import_known(&m->l3_bytes) && m->l3_bytes.value > 0 && !is_bus(w))
        put_llc(w);
    else if (!is_bus(w))
        put_llc_estimate(w);
    append_group(w, "cache");
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* tCL = tRCD = tRP of JEDEC's usual bin of each rate (JESD79-3, -4, -5; docs/sources.md#h). */
static const struct {
    unsigned mt_s;
    double ns;
} bins[] = { { 1066, 13.13 }, { 1333, 13.5 },  { 1600, 13.75 }, { 1866, 13.93 },
             { 2133, 14.06 }, { 2400, 14.16 }, { 2666, 14.25 }, { 2933, 14.32 },
             { 3200, 13.75 }, { 4400, 16.36 }, { 4800, 16.67 }, { 5600, 16.43 } };

static void put_timing(struct writer *w, uint64_t rate)
{
    static const char *const keys[] = { "trcd_ns", "tcl_ns", "trp_ns" };
    for (size_t i = 0; i < SIM_N_ELEMENTS(bins); i++)
        for (size_t k = 0; rate >= bins[i].mt_s && rate <= bins[i].mt_s + 1 && k < 3; k++)
            put_estimate(w, keys[k], "JEDEC's bin of this rate; decode-dimms shows the DIMM's",
                         bins[i].ns);
}

/* Channels of a socket, of which the model has `parts` each: two halves of DDR5's. */
static void put_channels(struct writer *w)
{
    static const struct {
        const char *family;
        unsigned channels, parts;
    } sockets[] = { { "skylake_sp", 6, 1 }, { "ice_lake_sp", 8, 1 }, { "sapphire_rapids", 8, 2 } };
    const struct import_fact *dimms = &w->m->dimms;
    unsigned channels = 4, parts = 1;
    for (size_t i = 0; i < SIM_N_ELEMENTS(sockets); i++)
        if (strcmp(sockets[i].family, w->family) == 0) {
            channels = sockets[i].channels;
            parts = sockets[i].parts;
        }
    if (is_bus(w))
        return;
    if (!import_known(dimms)) {
        note(w,
             "no tool shows memory modules: all %u channels of a socket are taken to have one "
             "(dmidecode tells)",
             channels);
        put_estimate(w, "channels", "all of the family's; dmidecode tells how many have DIMMs",
                     channels * parts);
        return;
    }
    const uint64_t of_socket = MAX(dimms->value / w->of_machine, 1);
    if (of_socket > channels)
        note(w, "%" G_GUINT64_FORMAT " DIMMs a socket on %u channels: one a channel is modelled",
             of_socket, channels);
    put_number(w, "channels", dimms, parts > 1 ? "two halves of each DIMM" : "as many as DIMMs",
               (double)(MIN(of_socket, channels) * parts));
}

/* No tool shows the rate: the fastest of the family. */
static void put_family_dram(struct writer *w)
{
    double mt_s, gt_s;
    import_family_rates(w->family, &mt_s, &gt_s);
    if (mt_s > 0.0) {
        put_estimate(w, "rate_mt_s", "not shown: the fastest of the family; dmidecode tells", mt_s);
        note(w,
             "no tool shows the rate of the memory: %g MT/s are the most of %s (dmidecode tells)",
             mt_s, w->family);
        if (!is_bus(w))
            put_timing(w, (uint64_t)mt_s);
    } else {
        note(w,
             "no tool shows the rate of the memory: it is the model's default (dmidecode tells)");
    }
}

static void append_dram(struct writer *w)
{
    const struct import_machine *m = w->m;
    if (import_known(&m->dimm_total_bytes)) {
        put_size(w, "node_size", &m->dimm_total_bytes, NULL,
                 MIN(m->dimm_total_bytes.value / w->of_machine, NODE_BYTES_MAX));
    } else if (import_known(&m->node_bytes)) {
        const uint64_t gib = (m->node_bytes.value + (1u << 30) - 1) >> 30;
        put_size(w, "node_size", &m->node_bytes, "rounded up to GiB",
                 MIN(gib << 30, NODE_BYTES_MAX));
    }
    put_channels(w);
    if (import_known(&m->dimm_mt_s) && m->dimm_mt_s.value >= 100 && m->dimm_mt_s.value <= 10000) {
        put_number(w, "rate_mt_s", &m->dimm_mt_s, NULL, (double)m->dimm_mt_s.value);
        if (!is_bus(w))
            put_timing(w, m->dimm_mt_s.value);
    } else {
        put_family_dram(w);
    }
    if (import_known(&m->dimm_ranks) && m->dimm_ranks.value >= 1 && m->dimm_ranks.value <= 8)
        put_number(w, "ranks", &m->dimm_ranks, NULL, (double)m->dimm_ranks.value);
    append_group(w, "dram");
}

static void put_family_link(struct writer *w)
{
    double mt_s, gt_s;
    import_family_rates(w->family, &mt_s, &gt_s);
    if (gt_s > 0.0) {
        put_estimate(w, "rate_gt_s", "not shown: the fastest of the family; its data sheet tells",
                     gt_s);
        note(w,
             "no tool shows the rate between sockets: %g GT/s are the most of %s (the processor's "
             "data sheet tells)",
             gt_s, w->family);
    }
}

static void append_interconnect(struct writer *w)
{
    const struct import_fact *rate = &w->m->interconnect_mt_s;
    if (import_known(rate) && rate->value <= 64000 && !is_bus(w))
        put_number(w, "rate_gt_s", rate, "SMBIOS' external clock", (double)rate->value / 1000.0);
    else if (w->sockets > 1 && !is_bus(w))
        put_family_link(w);
    append_group(w, "interconnect");
}

/* ---- PCI Express ----------------------------------------------------------------------------- */

static bool is_width(uint64_t lanes)
{
    return (lanes & (lanes - 1)) == 0 || lanes == 12;
}

static void append_root_complex(struct writer *w)
{
    struct import_fact mps = { 0 };
    for (guint i = 0; i < w->plan->ports->len; i++) {
        const struct import_port *port = &g_array_index(w->plan->ports, struct import_port, i);
        const struct import_fact *fact = &port->function->mps_possible;
        if (import_known(fact) && (!import_known(&mps) || fact->value > mps.value))
            mps = *fact;
    }
    if (import_known(&mps))
        put_number(w, "mps_bytes", &mps, "the most of any root port", (double)mps.value);
    for (guint i = 0; i < w->plan->ports->len; i++) {
        const struct import_port *port = &g_array_index(w->plan->ports, struct import_port, i);
        if (!port->used || !import_known(&port->function->ecrc))
            continue;
        put(w, "ecrc", &port->function->ecrc, "CGenEn+ of a root port", "true");
        break;
    }
    append_group(w, "root_complex");
}

/* Groups of the IOMMU are there if Linux uses it. */
static void append_iommu(struct writer *w)
{
    for (guint i = 0; i < w->m->functions->len; i++) {
        const struct import_function *f = w->m->functions->pdata[i];
        if (f->iommu_group < 0)
            continue;
        const struct import_fact fact = { 1, f->file, f->line };
        put(w, "enabled", &fact,
            "lspci shows groups; with iommu=pt the kernel's drivers go past it", "true");
        break;
    }
    if (w->values->len == 0)
        g_string_append(
            w->out, "    # no IOMMU group was shown: it is taken to be off (dmesg | grep -e DMAR "
                    "-e IOMMU tells)\n");
    append_group(w, "iommu");
}

/* What an end of a link can do, at least what it does; 0: not shown. */
static unsigned best_generation(const struct import_function *f)
{
    return (unsigned)MIN(MAX(f->possible.generation.value, f->trained.generation.value),
                         GENERATION_MAX);
}

static unsigned best_lanes(const struct import_function *f)
{
    const uint64_t lanes = MAX(f->possible.lanes.value, f->trained.lanes.value);
    return is_width(lanes) ? (unsigned)lanes : 0;
}

static const struct import_fact *fact_of(const struct import_fact *a, const struct import_fact *b,
                                         uint64_t value)
{
    return import_known(a) && a->value == value ? a : b;
}

/* What a port that was not shown may be taken for. */
static unsigned port_generation(const struct writer *w, const struct import_function *port)
{
    const unsigned shown = best_generation(port);
    return shown != 0 ? shown : import_pcie_generation(w->m);
}

static unsigned port_lanes(const struct import_function *port)
{
    const unsigned shown = best_lanes(port);
    return shown != 0 ? shown : 16;
}

/* What a device that was not shown may be taken for, in this slot. */
static unsigned device_generation(const struct writer *w, const struct import_device *device)
{
    const unsigned shown = best_generation(device->function);
    return shown != 0 ? shown : port_generation(w, device->above);
}

static unsigned device_lanes(const struct import_device *device)
{
    const unsigned shown = best_lanes(device->function);
    const bool nvme = device->profile != NULL && strcmp(device->profile->name, "nvme") == 0;
    return shown != 0 ? shown : MIN(port_lanes(device->above), nvme ? 4u : 16u);
}

static void put_link(struct writer *w, const struct import_device *device)
{
    const struct import_function *f = device->function;
    const unsigned generation = device_generation(w, device), lanes = device_lanes(device);
    const struct import_fact *g = fact_of(&f->possible.generation, &f->trained.generation,
                                          generation);
    const struct import_fact *l = fact_of(&f->possible.lanes, &f->trained.lanes, lanes);
    if (MAX(f->possible.generation.value, f->trained.generation.value) > GENERATION_MAX)
        note(w, "%02x:%02x.%x: generation 6 of PCI Express is modelled as %u", f->bus, f->device,
             f->function, GENERATION_MAX);
    if (import_known(g))
        put_number(w, "generation", g, NULL, generation);
    else
        put_estimate(w, "generation", "not shown: that of the slot", generation);
    if (import_known(l))
        put_number(w, "lanes", l, NULL, lanes);
    else
        put_estimate(w, "lanes", "not shown", lanes);
}

static void append_ports(struct writer *w)
{
    g_string_append(w->out, "    ports = (\n");
    for (guint i = 0; i < w->plan->ports->len; i++) {
        const struct import_port *port = &g_array_index(w->plan->ports, struct import_port, i);
        const struct import_function *f = port->function;
        g_string_append_printf(
            w->out,
            "        { name = \"%s\"; socket = %u; generation = %u; lanes = %u; }%s  # "
            "%02x:%02x.%x%s%s\n",
            port->name, port->socket, port_generation(w, f), port_lanes(f),
            i + 1 < w->plan->ports->len ? "," : "", f->bus, f->device, f->function,
            best_lanes(f) == 0 ? ", its link was not shown"
            : f->from_hwloc    ? ", as hwloc has it: the product of rate and width alone"
                               : "",
            port->used ? "" : ", nothing behind it");
    }
    if (w->plan->ports->len == 0) /* of the model */
        g_string_append(w->out,
                        "        { name = \"rp0\"; socket = 0; generation = 3; lanes = 16; }"
                        "  # no tool showed root ports\n");
    g_string_append(w->out, "    );\n");
}

/* Payload in use at the fastest link: the model's firmware sets one size for all of a host. */
static uint64_t find_payload(const struct import_plan *plan)
{
    uint64_t best = 0, mps_bytes = 0;
    for (guint i = 0; i < plan->devices->len; i++) {
        const struct import_device *device = plan->devices->pdata[i];
        const struct import_link *link = &device->function->trained;
        const uint64_t rate = link->lanes.value << link->generation.value;
        if (device->profile == NULL || !import_known(&device->function->mps) || rate <= best)
            continue;
        best = rate;
        mps_bytes = device->function->mps.value;
    }
    return mps_bytes;
}

static void put_payload(struct writer *w, const struct import_device *device)
{
    const struct import_function *f = device->function;
    if (!import_known(&f->mps))
        return;
    const bool raised = f->mps.value < w->mps_bytes;
    g_autoptr(GString) comment = g_string_new("in use");
    if (raised)
        g_string_printf(comment,
                        "%u in use; the model's firmware has one for all, that of the fastest link",
                        (unsigned)f->mps.value);
    if (import_known(&f->mps_possible))
        g_string_append_printf(comment, "; it supports %u", (unsigned)f->mps_possible.value);
    put_number(w, device->profile != NULL ? "mps_bytes" : "mps_bytes_max", &f->mps, comment->str,
               (double)MAX(f->mps.value, w->mps_bytes));
}

/* "XL710 for 40GbE QSFP+", "Ethernet 10-Gigabit X540", "I350 Gigabit" */
static void put_rate(struct writer *w, const struct import_function *f)
{
    g_autoptr(GMatchInfo) match = NULL;
    g_autoptr(GRegex) regex = g_regex_new("(?<![A-Za-z0-9])([0-9]+)?[ -]?(GbE|Gigabit|GBASE)", 0, 0,
                                          NULL);
    g_autofree char *digits = g_regex_match(regex, f->text, 0, &match)
                                  ? g_match_info_fetch(match, 1)
                                  : NULL;
    const guint64 rate = digits == NULL    ? 0
                         : *digits == '\0' ? 1
                                           : g_ascii_strtoull(digits, NULL, 10);
    if (rate >= 1 && rate <= 1600)
        put_estimate(w, "rate_gbit_s", "by its name; ethtool tells", (double)rate);
    else
        g_string_append(w->out, "        # rate_gbit_s is the model's default: ethtool tells\n");
}

static void put_adapter(struct writer *w, const struct import_device *device)
{
    const struct import_function *f = device->function;
    const char *type = device->profile->type;
    const uint64_t bar = f->bar_bytes.value;
    if (strcmp(type, "pcie.requester") == 0) {
        if (import_known(&f->mrrs))
            put_number(w, "mrrs_bytes", &f->mrrs, NULL, (double)f->mrrs.value);
        if (import_known(&f->bar_bytes) && bar >= 4096 && (bar & (bar - 1)) == 0)
            put_size(w, "bar_bytes", &f->bar_bytes, "its largest", bar);
    }
    if (strcmp(type, "nic.ethernet") == 0 && device->profile->file == NULL)
        put_rate(w, f);
    if (strcmp(type, "nic.ethernet") == 0 && import_known(&f->vfs) && f->vfs.value > 0) {
        g_autofree char *comment = g_strdup_printf("TotalVFs is %u", (unsigned)f->vfs.value);
        put_number(w, "vfs", &f->vfs, comment, (double)MIN(f->vfs.value, VFS_MAX));
    }
}

/* The switch's ports; those below have one width, and cables say what each is trained to. */
static void put_switch(struct writer *w, const struct import_device *device)
{
    unsigned lanes = 0, generation = 0;
    for (guint i = 0; i < device->below->len; i++) {
        lanes = MAX(lanes, port_lanes(device->below->pdata[i]));
        generation = MAX(generation, port_generation(w, device->below->pdata[i]));
    }
    put_link(w, device);
    if (generation > device_generation(w, device)) { /* one for all of its ports */
        g_ptr_array_remove_range(w->values, 0, 2);
        put_estimate(w, "generation", "of its fastest port", generation);
    }
    if (lanes != 0)
        put_estimate(w, "downstream_lanes", "of its widest port", lanes);
    g_string_append_printf(w->out, "        type = \"pcie.switch\"; downstream_ports = %u;\n",
                           MAX(device->below->len, 1));
}

static void append_device(struct writer *w, const struct import_device *device)
{
    const struct import_function *f = device->function;
    const struct import_profile *profile = device->profile;
    const char *file = profile != NULL ? profile->file : NULL;
    g_string_append_printf(w->out, "    # %02x:%02x.%x %s\n", f->bus, f->device, f->function,
                           f->text);
    if (device->n_functions > 1)
        g_string_append_printf(w->out, "    # %u functions, which the model has as one\n",
                               device->n_functions);
    if (import_known(&f->mrrs) && profile != NULL && strcmp(profile->type, "pcie.requester") != 0)
        g_string_append_printf(w->out,
                               "    # Max_Read_Request_Size %u; the model's drivers set theirs\n",
                               (unsigned)f->mrrs.value);
    g_string_append_printf(w->out, "    %s = {\n", device->name);
    if (profile != NULL && file == NULL) /* the files of scenarios/devices/ have theirs */
        g_string_append_printf(w->out,
                               "        type = \"%s\";  # what is not read is the model's default, "
                               "of another device\n",
                               profile->type);
    if (profile == NULL)
        put_switch(w, device);
    else if (profile->integrated)
        g_string_append_printf(w->out, "        integrated = \"%s.s%u\";\n", w->choice->host,
                               device->socket);
    else
        put_link(w, device);
    if (profile == NULL || !profile->integrated)
        put_payload(w, device);
    if (profile != NULL)
        put_adapter(w, device);
    append_settings(w, file, "        ");
    g_string_append(w->out, "    };\n");
}

/* The link as it is trained, which both ends say; else the best that both can do. */
static void append_cable(struct writer *w, const struct import_device *device, bool last)
{
    const struct import_function *port = device->above, *f = device->function;
    const unsigned generation = MIN(port_generation(w, port), device_generation(w, device));
    const unsigned lanes = MIN(port_lanes(port), device_lanes(device));
    const struct import_link *end = import_known(&f->trained.lanes) ? &f->trained : &port->trained;
    const unsigned is_generation = (unsigned)MIN(end->generation.value, generation);
    const unsigned is_lanes = is_width(end->lanes.value) ? (unsigned)MIN(end->lanes.value, lanes)
                                                         : 0;
    const bool shown = is_generation != 0 && is_lanes != 0;
    g_string_append_printf(w->out,
                           "    { from = \"%s\"; to = \"%s.p0\"; generation = %u; lanes = %u; }%s",
                           device->from, device->name, shown ? is_generation : generation,
                           shown ? is_lanes : lanes, last ? "" : ",");
    if (!shown)
        g_string_append(w->out, "  # how it is trained was not shown");
    else if (is_generation < generation || is_lanes < lanes)
        g_string_append_printf(w->out, "  # trained so; both ends could do Gen%u x%u", generation,
                               lanes);
    g_string_append_c(w->out, '\n');
}

static void append_devices(struct writer *w)
{
    const GPtrArray *devices = w->plan->devices;
    guint last = devices->len;
    g_string_append(w->out, "devices = {\n");
    for (guint i = 0; i < devices->len; i++) {
        const struct import_device *device = devices->pdata[i];
        append_device(w, device);
        last = device->above != NULL ? i : last;
    }
    g_string_append(w->out, "};\ncables = (\n");
    for (guint i = 0; i < devices->len; i++) {
        const struct import_device *device = devices->pdata[i];
        if (device->above != NULL)
            append_cable(w, device, i == last);
    }
    g_string_append(w->out, ");\n");
}

/* ---- The file -------------------------------------------------------------------------------- */

static void append_host(struct writer *w)
{
    g_string_append_printf(w->out, "hosts = { %s = {\n", w->choice->host);
    append_cpu(w);
    append_group(w, "core");
    append_cache(w);
    append_group(w, "coherence");
    append_interconnect(w);
    append_dram(w);
    append_root_complex(w);
    append_iommu(w);
    append_group(w, "os");
    append_ports(w);
    g_string_append(w->out, "}; };\n");
}

/* The adapter with the fastest link: what pcie_bench can run on. */
static const struct import_device *find_adapter(const struct import_plan *plan)
{
    const struct import_device *best = NULL;
    uint64_t best_rate = 0;
    for (guint i = 0; i < plan->devices->len; i++) {
        const struct import_device *device = plan->devices->pdata[i];
        if (device->profile == NULL || strcmp(device->profile->type, "pcie.requester") != 0)
            continue;
        const struct import_link *link = &device->function->trained;
        const uint64_t known = device->profile->file != NULL; /* rather than an unknown adapter */
        const uint64_t rate = (link->lanes.value << link->generation.value) * 2 + known + 1;
        if (rate > best_rate) {
            best = device;
            best_rate = rate;
        }
    }
    return best;
}

static void append_axis(struct writer *w, const char *name, const char *setting)
{
    g_string_append_printf(w->out, "    { name = \"%s\"; variants = (", name);
    for (unsigned s = 0; s < w->sockets; s++)
        g_string_append_printf(w->out, "%s{ name = \"s%u\"; set = ( \"workload.%s=%u\" ); }",
                               s > 0 ? ", " : " ", s, setting, s);
    g_string_append(w->out, " ); }");
}

static void append_workload(struct writer *w)
{
    const struct import_device *adapter = find_adapter(w->plan);
    if (adapter != NULL) {
        g_string_append_printf(
            w->out,
            "\n# Latency of DMA reads by %s, of the memory of each socket.\n"
            "workload = {\n    type = \"pcie_bench\"; device = \"%s\"; host = \"%s\";\n"
            "    interface = \"bulk\"; measure = \"latency\"; op = \"read\"; window_bytes = \"8 KiB\";\n};\n"
            "measure = { warmup_us = 20; duration_us = 20000; transactions = 2000; latency_parts = true; };\n"
            "axes = (\n",
            adapter->name, adapter->name, w->choice->host);
        append_axis(w, "memory", "memory_socket");
        g_string_append(
            w->out,
            ",\n    { name = \"transfer_bytes\"; setting = \"workload.transfer_bytes\"; values = [64, 256, 1024, 4096]; }\n"
            ");\nquick = ( \"transfer_bytes=64\" );\n"
            "plot = {\n    x = \"transfer_bytes\"; x_label = \"transfer size\"; x_unit = \"B\"; log_x = 2; series = [\"memory\"];\n"
            "    y = \"latency_mean_ns\"; y_label = \"mean latency\"; y_unit = \"ns\"; y_min = 0.0;\n"
            "    labels = ( { of = \"memory=s0\"; label = \"memory of socket 0\"; }");
        for (unsigned i = 1; i < w->sockets; i++)
            g_string_append_printf(
                w->out,
                ",\n               { of = \"memory=s%u\"; label = \"memory of socket %u\"; }", i,
                i);
        g_string_append(w->out, " );\n};\n");
        return;
    }
    g_string_append_printf(
        w->out,
        "\n# Idle load-to-use latency from each socket to the memory of each.\n"
        "workload = { type = \"memory\"; host = \"%s\"; mode = \"latency\"; buffer_bytes = \"256 MiB\"; };\n"
        "measure = { warmup_us = 10; duration_us = 2000; transactions = 8000; latency_parts = true; };\naxes = (\n",
        w->choice->host);
    append_axis(w, "from", "from_socket");
    g_string_append(w->out, ",\n");
    append_axis(w, "to", "to_socket");
    g_string_append(
        w->out,
        "\n);\nquick = ( \"from=s0\" );\n"
        "plot = { kind = \"bars\"; x = \"to\"; y = \"load_latency_ns\"; y_unit = \"ns\"; series = [\"from\"]; y_min = 0.0; };\n");
}

static char *escaped(const char *text)
{
    char *copy = g_strdup(text);
    return g_strdelimit(copy, "\"\\", '\'');
}

static void append_head(struct writer *w)
{
    const struct import_machine *m = w->m;
    g_string_append_printf(w->out, "# %s%s%s: written by nudma import (docs/import.md).\n",
                           m->product != NULL ? m->product : "A server",
                           m->cpu_name != NULL ? ", " : "", m->cpu_name != NULL ? m->cpu_name : "");
    g_string_append_printf(
        w->out,
        "# A source FILE:LINE says where a value was read. The rest is that of "
        "families/%s: of other machines;\n# \"measured by\" says what would tell it of this "
        "one.\n",
        w->family);
    if (w->choice->platform)
        return;
    g_autofree char *title = escaped(m->product != NULL ? m->product : "An imported server");
    g_string_append_printf(w->out, "title = \"%s\";\n", title);
}

static uint64_t count_sockets(const struct import_machine *m, GPtrArray *notes)
{
    uint64_t sockets = import_known(&m->sockets) ? m->sockets.value
                       : import_known(&m->nodes) ? m->nodes.value
                                                 : 2;
    if (import_known(&m->nodes) && import_known(&m->sockets) && m->nodes.value < sockets)
        sockets = m->nodes.value;
    if (import_known(&m->nodes) && m->nodes.value > sockets)
        g_ptr_array_add(notes,
                        g_strdup_printf("%" G_GUINT64_FORMAT " NUMA nodes of %" G_GUINT64_FORMAT
                                        " sockets: a socket of the model is one node",
                                        m->nodes.value, sockets));
    if (sockets > SOCKETS_MAX)
        g_ptr_array_add(notes,
                        g_strdup_printf("%" G_GUINT64_FORMAT " sockets: the model has %u at most",
                                        sockets, SOCKETS_MAX));
    return MAX(sockets, 1);
}

char *import_write(const struct import_machine *machine, const struct import_choice *choice,
                   GPtrArray *notes, struct sim_error_list *errors)
{
    const size_t before = errors->n_messages;
    struct writer w = { .m = machine, .choice = choice, .out = g_string_new(NULL) };
    w.values = g_ptr_array_new_with_free_func(g_free);
    w.family = import_family_of(machine, choice, notes, errors);
    w.of_machine = count_sockets(machine, notes);
    w.sockets = (unsigned)MIN(w.of_machine, SOCKETS_MAX);
    w.plan = import_plan_new(machine, w.sockets, choice->host, notes, errors);
    if (errors->n_messages == before) {
        w.mps_bytes = find_payload(w.plan);
        append_head(&w);
        append_host(&w);
        append_devices(&w);
        if (!choice->platform)
            append_workload(&w);
    }
    import_plan_free(w.plan);
    g_ptr_array_free(w.values, TRUE);
    return g_string_free(w.out, errors->n_messages != before);
}
