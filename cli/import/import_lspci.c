/*
 * lspci with any of -v, -vv, -vvv, -n, -nn, -D, -x .. -xxxx, of any user. What a line says is taken
 * where the line is one that is known; other lines are passed over, known ones that are damaged are
 * mistakes.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/import/machine.h"
#include "hw/pci_regs.h"

struct reader {
    struct import_machine *machine;
    struct sim_error_list *errors;
    const char *file;
    unsigned line;
    struct import_function *at;       /* NULL before the first */
    GHashTable *seen;                 /* addresses, as in address_key() */
    uint8_t config[PCI_CONFIG_BYTES]; /* of -x */
    size_t n_config;
};

static void mistake(struct reader *r, const char *found, const char *expected)
{
    g_autofree char *start = g_strndup(found, 60);
    g_autofree char *shown = import_printable(start);
    sim_error_add(r->errors, r->file, (int)r->line, "found \"%s\", expected %s", shown, expected);
}

/* ---- Classes by name (pci.ids), for output without -n ---------------------------------------- */

static unsigned class_named(const char *name)
{
    static const struct {
        const char *name;
        unsigned code;
    } classes[] = {
        { "SCSI storage controller", 0x0100 },
        { "IDE interface", 0x0101 },
        { "RAID bus controller", 0x0104 },
        { "SATA controller", 0x0106 },
        { "Serial Attached SCSI", 0x0107 },
        { "Non-Volatile memory controller", 0x0108 },
        { "Mass storage controller", 0x0180 },
        { "Ethernet controller", 0x0200 },
        { "Infiniband controller", 0x0207 },
        { "InfiniBand", 0x0c06 },
        { "Fabric controller", 0x0208 },
        { "Network controller", 0x0280 },
        { "VGA compatible controller", 0x0300 },
        { "3D controller", 0x0302 },
        { "Display controller", 0x0380 },
        { "Memory controller", 0x0580 },
        { "Host bridge", 0x0600 },
        { "ISA bridge", 0x0601 },
        { "PCI bridge", 0x0604 },
        { "Communication controller", 0x0780 },
        { "PIC", 0x0800 },
        { "System peripheral", 0x0880 },
        { "Co-processor", 0x0b40 },
        { "USB controller", 0x0c03 },
        { "Fibre Channel", 0x0c04 },
        { "SMBus", 0x0c05 },
        { "Signal processing controller", 0x1180 },
        { "Performance counters", 0x1101 },
        { "Processing accelerators", 0x1200 },
    };
    for (size_t i = 0; i < SIM_N_ELEMENTS(classes); i++)
        if (g_ascii_strncasecmp(name, classes[i].name, strlen(classes[i].name)) == 0)
            return classes[i].code;
    return IMPORT_NO_CLASS;
}

/* ---- The line that begins a function --------------------------------------------------------- */

static bool parse_address(const char *text, struct import_function *f, const char **rest)
{
    unsigned part[4] = { 0 };
    int n = 0;
    if (sscanf(text, "%8x:%2x:%2x.%1x%n", &part[0], &part[1], &part[2], &part[3], &n) != 4 ||
        n == 0) {
        part[0] = 0;
        n = 0;
        if (sscanf(text, "%2x:%2x.%1x%n", &part[1], &part[2], &part[3], &n) != 3 || n == 0)
            return false;
    }
    f->domain = part[0];
    f->bus = part[1];
    f->device = part[2];
    f->function = part[3];
    *rest = text + n;
    return **rest == ' ' && f->bus < 256 && f->device < 32 && f->function < 8; /* "-1" is no bus */
}

/* The last "[8086:1583]" of the line, or the first "8086:1583" of one of -n. */
static void parse_ids(struct import_function *f, const char *name, bool numeric)
{
    unsigned vendor, device;
    if (numeric && sscanf(name, "%4x:%4x", &vendor, &device) == 2) {
        f->vendor_id = vendor;
        f->device_id = device;
    }
    for (const char *c = name; (c = strchr(c, '[')) != NULL; c++) {
        int n = 0;
        if (sscanf(c, "[%4x:%4x]%n", &vendor, &device, &n) == 2 && n == 11) {
            f->vendor_id = vendor;
            f->device_id = device;
        }
    }
}

static void begin_function(struct reader *r, const char *line)
{
    struct import_function *f = import_function_new(r->machine, r->file, r->line);
    const char *rest = NULL;
    const char *expected = "a function as lspci prints it, \"3b:00.0 Ethernet controller: NAME\"";
    r->at = NULL;
    const bool good = parse_address(line, f, &rest);
    const char *colon = good ? strstr(rest + 1, ": ") : NULL;
    if (colon == NULL) {
        mistake(r, line, expected);
        g_ptr_array_remove_index(r->machine->functions, r->machine->functions->len - 1);
        return;
    }
    unsigned code;
    int n = 0;
    g_autofree char *class_name = g_strndup(rest + 1, (gsize)(colon - rest - 1));
    const char *bracket = strrchr(class_name, '[');
    const bool numeric = sscanf(class_name, "%4x%n", &code, &n) == 1 && class_name[n] == '\0' &&
                         n == 4;
    if (numeric || (bracket != NULL && sscanf(bracket, "[%4x]%n", &code, &n) == 1 && n == 6))
        f->class_code = code;
    else
        f->class_code = class_named(class_name);
    parse_ids(f, colon + 2, numeric);
    f->bridge = f->class_code == 0x0604;
    g_free(f->text);
    f->text = import_printable(rest + 1);
    r->at = f;
    g_autofree char *key = g_strdup_printf("%x:%02x:%02x.%x", f->domain, f->bus, f->device,
                                           f->function);
    if (!g_hash_table_add(r->seen, g_steal_pointer(&key)))
        mistake(r, line, "each function once; is this the output of several servers?");
}

/* ---- Lines about it -------------------------------------------------------------------------- */

static void fact(struct reader *r, struct import_fact *fact, uint64_t value)
{
    import_fact_set(fact, value, r->file, r->line);
}

static void take_payload(struct reader *r, struct import_fact *fact_of, const char *line,
                         const char *word)
{
    const char *at = strstr(line, word);
    if (at == NULL)
        return;
    char *end = NULL;
    const guint64 bytes = g_ascii_strtoull(at + strlen(word), &end, 10);
    if (bytes < 128 || bytes > 4096 || (bytes & (bytes - 1)) != 0 ||
        !g_str_has_prefix(end, " bytes"))
        mistake(r, line, "a size of 128 to 4096 bytes, a power of two");
    else
        fact(r, fact_of, bytes);
}

/* "Speed 8GT/s (ok), Width x8 (downgraded)"; "Speed unknown, Width x0": nothing is there. */
static void take_link(struct reader *r, struct import_link *link, const char *line)
{
    const char *speed = strstr(line, "Speed "), *width = strstr(line, "Width x");
    char *end = NULL;
    const guint64 lanes = width != NULL ? g_ascii_strtoull(width + 7, &end, 10) : 0;
    if (speed == NULL || width == NULL || end == width + 7 || lanes > 255) {
        mistake(r, line, "\"Speed 8GT/s, Width x8\"");
        return;
    }
    const unsigned generation = import_generation(g_ascii_strtod(speed + 6, NULL));
    if (lanes == 0 || lanes > 32)
        return;
    fact(r, &link->lanes, lanes);
    if (generation != 0)
        fact(r, &link->generation, generation);
}

static void take_kind(struct import_function *f, const char *capability)
{
    static const struct {
        const char *text;
        enum import_kind kind;
    } kinds[] = {
        { "Root Complex Integrated Endpoint", IMPORT_INTEGRATED },
        { "Root Complex Event Collector", IMPORT_INTEGRATED },
        { "Root Port", IMPORT_ROOT_PORT },
        { "Upstream Port", IMPORT_UPSTREAM },
        { "Downstream Port", IMPORT_DOWNSTREAM },
        { "PCI-Express to PCI", IMPORT_PCI_BRIDGE },
        { "PCI/PCI-X to PCI-Express", IMPORT_PCI_BRIDGE },
        { "Endpoint", IMPORT_ENDPOINT }, /* "Legacy Endpoint", too */
    };
    for (size_t i = 0; i < SIM_N_ELEMENTS(kinds) && f->kind == IMPORT_UNKNOWN; i++)
        if (strstr(capability, kinds[i].text) != NULL)
            f->kind = kinds[i].kind;
}

/* "[size=16M]" of a memory BAR; ROMs and ports do not count. */
static void take_bar(struct reader *r, const char *line)
{
    const char *at = strstr(line, "[size=");
    char *end = NULL;
    if (at == NULL)
        return;
    guint64 bytes = g_ascii_strtoull(at + 6, &end, 10);
    const char *units = "KMGT", *unit = *end != '\0' ? strchr(units, *end) : NULL;
    if (unit != NULL)
        bytes <<= 10 * (unit - units + 1);
    if (end == at + 6 || bytes == 0 || bytes > (UINT64_C(1) << 50) ||
        *(unit != NULL ? end + 1 : end) != ']')
        mistake(r, line, "\"[size=16M]\"");
    else if (!import_known(&r->at->bar_bytes) || bytes > r->at->bar_bytes.value)
        r->at->bar_bytes = (struct import_fact){ bytes, r->file, r->line };
}

static void take_bus(struct reader *r, const char *line)
{
    unsigned secondary;
    const char *at = strstr(line, "secondary=");
    if (at == NULL || sscanf(at, "secondary=%2x", &secondary) != 1 || secondary > 255) {
        mistake(r, line, "\"Bus: primary=00, secondary=02, subordinate=02\"");
        return;
    }
    r->at->bridge = true;
    r->at->secondary = secondary;
}

static void take_line(struct reader *r, const char *line)
{
    struct import_function *f = r->at;
    const char *express = strstr(line, "] Express "), *vfs = strstr(line, "Total VFs: ");
    unsigned number;
    if (g_str_has_prefix(line, "Bus: "))
        take_bus(r, line);
    else if (g_str_has_prefix(line, "Capabilities: ") && express != NULL)
        take_kind(f, express);
    else if (g_str_has_prefix(line, "DevCap:"))
        take_payload(r, &f->mps_possible, line, "MaxPayload ");
    else if (g_str_has_prefix(line, "MaxPayload ")) {
        take_payload(r, &f->mps, line, "MaxPayload ");
        take_payload(r, &f->mrrs, line, "MaxReadReq ");
    } else if (g_str_has_prefix(line, "LnkCap:"))
        take_link(r, &f->possible, line);
    else if (g_str_has_prefix(line, "LnkSta:"))
        take_link(r, &f->trained, line);
    else if (strstr(line, "emory at ") != NULL)
        take_bar(r, line);
    else if (g_str_has_prefix(line, "AERCap:") && strstr(line, "CGenEn+") != NULL)
        fact(r, &f->ecrc, 1); /* "ECRCGenEn+" in later versions */
    else if (vfs != NULL && sscanf(vfs, "Total VFs: %u", &number) == 1)
        fact(r, &f->vfs, number);
    else if (sscanf(line, "NUMA node: %u", &number) == 1)
        f->node = number < 1024 ? (int)number : -1;
    else if (sscanf(line, "IOMMU group: %u", &number) == 1)
        f->iommu_group = number < 65536 ? (int)number : -1;
}

/* ---- -x -------------------------------------------------------------------------------------- */

/* "3f0: 00 11 .." */
static bool is_hex(const char *line)
{
    const size_t digits = strspn(line, "0123456789abcdefABCDEF");
    return digits >= 2 && digits <= 3 && line[digits] == ':' &&
           (line[digits + 1] == ' ' || line[digits + 1] == '\0');
}

static void take_hex(struct reader *r, const char *line)
{
    char *end = NULL;
    const guint64 offset = g_ascii_strtoull(line, &end, 16);
    const char *c = end + 1;
    size_t n = 0;
    if (offset != r->n_config || offset % 16 != 0) {
        mistake(r, line, "16 bytes in hexadecimal that follow those before");
        return;
    }
    for (; *c == ' ' && g_ascii_isxdigit(c[1]) && g_ascii_isxdigit(c[2]) && n < 16; c += 3, n++)
        r->config[r->n_config++] =
            (uint8_t)(g_ascii_xdigit_value(c[1]) * 16 + g_ascii_xdigit_value(c[2]));
    if (n != 16 || *c != '\0')
        mistake(r, line, "16 bytes in hexadecimal");
}

static void end_function(struct reader *r)
{
    if (r->at != NULL && r->n_config >= 64)
        import_config_space(r->at, r->config, r->n_config);
    r->n_config = 0;
}

void import_lspci(struct import_machine *machine, const char *file, const char *text,
                  struct sim_error_list *errors)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    struct reader *r = g_new0(struct reader, 1);
    *r = (struct reader){ .machine = machine, .errors = errors, .file = file, .seen = seen };
    for (char **line = lines; *line != NULL; line++) {
        char *words = g_strchomp(*line);
        r->line++;
        if (*words == '\0' || g_str_has_prefix(words, "pcilib:") ||
            g_str_has_prefix(words, "lspci:"))
            continue;
        if (is_hex(words) && r->at != NULL) {
            take_hex(r, words);
        } else if (!g_ascii_isspace(**line)) {
            end_function(r);
            begin_function(r, words);
        } else if (r->at != NULL) {
            take_line(r, g_strchug(words));
        }
    }
    end_function(r);
    g_free(r);
}
