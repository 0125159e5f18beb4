/* The facts, and which reader a file is for. */
#include "cli/import/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void free_function(gpointer pointer)
{
    struct import_function *function = pointer;
    g_free(function->text);
    g_free(function);
}

void import_machine_init(struct import_machine *machine)
{
    *machine = (struct import_machine){
        .functions = g_ptr_array_new_with_free_func(free_function),
    };
}

void import_machine_release(struct import_machine *machine)
{
    g_free(machine->product);
    g_free(machine->cpu_name);
    g_ptr_array_free(machine->functions, TRUE);
}

struct import_function *import_function_new(struct import_machine *machine, const char *file,
                                            unsigned line)
{
    struct import_function *function = g_new0(struct import_function, 1);
    *function = (struct import_function){
        .text = g_strdup(""),
        .class_code = IMPORT_NO_CLASS,
        .node = -1,
        .iommu_group = -1,
        .file = file,
        .line = line,
    };
    g_ptr_array_add(machine->functions, function);
    return function;
}

void import_fact_set(struct import_fact *fact, uint64_t value, const char *file, unsigned line)
{
    if (!import_known(fact))
        *fact = (struct import_fact){ value, file, line };
}

void import_set_cpu_name(struct import_machine *machine, const char *name, const char *file,
                         unsigned line)
{
    const char *at = strchr(name, '@');
    char *end = NULL;
    if (machine->cpu_name != NULL)
        return;
    machine->cpu_name = import_printable(name);
    const double ghz = at != NULL ? g_ascii_strtod(at + 1, &end) : 0.0;
    if (ghz >= 0.1 && ghz <= 10.0 && g_str_has_prefix(end, "GHz"))
        import_fact_set(&machine->name_clock_mhz, (uint64_t)(ghz * 1000.0 + 0.5), file, line);
}

char *import_printable(const char *text)
{
    char *copy = g_strdup(text);
    for (char *c = copy; *c != '\0'; c++)
        if (!g_ascii_isprint(*c))
            *c = '?';
    return g_strstrip(copy);
}

unsigned import_generation(double gt_s)
{
    static const double rate[] = { 2.5, 5, 8, 16, 32, 64 };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(rate); i++)
        if (gt_s > rate[i] * 0.99 && gt_s < rate[i] * 1.01)
            return i + 1;
    return 0;
}

/* ---- Which tool printed a file --------------------------------------------------------------- */

#define FILE_BYTES_MAX (16u << 20)

typedef void reader_fn(struct import_machine *machine, const char *file, const char *text,
                       struct sim_error_list *errors);

/* "00:1f.2 ", "0000:00:1f.2 " */
static bool is_lspci(const char *line)
{
    return g_regex_match_simple("^([0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7] ", line, 0, 0) ||
           g_str_has_prefix(line, "pcilib:") || g_str_has_prefix(line, "lspci:");
}

static bool is_xml(const char *line)
{
    return g_str_has_prefix(line, "<?xml") || g_str_has_prefix(line, "<topology") ||
           g_str_has_prefix(line, "<!DOCTYPE topology");
}

static bool is_lstopo(const char *line)
{
    return g_str_has_prefix(line, "Machine");
}

static bool is_dmidecode(const char *line)
{
    return g_str_has_prefix(line, "# dmidecode") || g_str_has_prefix(line, "SMBIOS ") ||
           g_str_has_prefix(line, "Handle 0x");
}

static bool is_numactl(const char *line)
{
    return g_str_has_prefix(line, "available: ");
}

static bool is_cpuinfo(const char *line)
{
    return g_regex_match_simple("^processor[ \t]*: [0-9]", line, 0, 0);
}

static reader_fn *reader_of(const char *line)
{
    static const struct {
        bool (*begins)(const char *line);
        reader_fn *read;
    } readers[] = {
        { is_lspci, import_lspci },       { is_xml, import_hwloc_xml },
        { is_lstopo, import_hwloc_text }, { is_dmidecode, import_dmidecode },
        { is_numactl, import_numactl },   { is_cpuinfo, import_cpuinfo },
    };
    for (size_t i = 0; i < SIM_N_ELEMENTS(readers); i++)
        if (readers[i].begins(line))
            return readers[i].read;
    return NULL;
}

/* What comes out of a pipe until it ends, `ssh server lspci -vvv | nudma import -`; NULL with the
 * mistake. One that nobody has opened for writing would never end; nothing is found in it. */
static char *read_pipe(const char *path, size_t *n_bytes, struct sim_error_list *errors)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        sim_error_add(errors, path, 0, "%s", g_strerror(errno));
        return NULL;
    }
    g_autofree char *text = g_malloc(FILE_BYTES_MAX + 2);
    ssize_t n = read(fd, text, FILE_BYTES_MAX + 1);
    *n_bytes = n > 0 ? (size_t)n : 0;
    if (n > 0 || (n < 0 && errno == EAGAIN))
        n = fcntl(fd, F_SETFL, 0) == 0 ? 1 : -1;
    while (n > 0 && *n_bytes <= FILE_BYTES_MAX) {
        n = read(fd, text + *n_bytes, FILE_BYTES_MAX + 1 - *n_bytes);
        *n_bytes += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    if (n < 0 || *n_bytes > FILE_BYTES_MAX) {
        sim_error_add(errors, path, 0, "%s",
                      n < 0 ? "cannot be read" : "found more bytes, expected at most 16 MiB");
        return NULL;
    }
    text[*n_bytes] = '\0';
    return g_realloc(g_steal_pointer(&text), *n_bytes + 1);
}

/* The whole text, or NULL with the mistake. Without `must` what is no text is none, silently. */
static char *read_text(const char *path, bool must, struct sim_error_list *errors)
{
    struct stat status;
    char *text = NULL;
    size_t bytes = 0;
    g_autoptr(GError) error = NULL;
    if (g_stat(path, &status) != 0) {
        sim_error_add(errors, path, 0, "%s", g_strerror(errno));
    } else if (must && S_ISFIFO(status.st_mode)) {
        text = read_pipe(path, &bytes, errors);
    } else if (!S_ISREG(status.st_mode)) {
        sim_error_add(errors, path, 0, "expected a file or a pipe");
    } else if (status.st_size > (off_t)FILE_BYTES_MAX) {
        if (must)
            sim_error_add(errors, path, 0, "found %lld bytes, expected at most 16 MiB",
                          (long long)status.st_size);
    } else if (!g_file_get_contents(path, &text, &bytes, &error)) {
        sim_error_add(errors, path, 0, "%s", error->message);
    } else if (bytes != strlen(text)) {
        const size_t at = strlen(text);
        int line = 1;
        for (size_t i = 0; i < at; i++)
            line += text[i] == '\n';
        if (must || reader_of(text) != NULL)
            sim_error_add(errors, path, line, "found a NUL byte, expected text");
        g_clear_pointer(&text, g_free);
    }
    return text;
}

char *import_read_text(const char *path, struct sim_error_list *errors)
{
    return read_text(path, true, errors);
}

bool import_file(struct import_machine *machine, const char *path, bool must, bool *known,
                 struct sim_error_list *errors)
{
    const size_t before = errors->n_messages;
    g_autofree char *text = read_text(path, must, errors);
    *known = false;
    if (text == NULL)
        return errors->n_messages == before;
    const char *begin = text;
    int line = 1;
    if (g_str_has_prefix(begin, "\xef\xbb\xbf"))
        begin += 3;
    for (; g_ascii_isspace(*begin); begin++)
        line += *begin == '\n';
    reader_fn *read = reader_of(begin);
    *known = read != NULL;
    if (read != NULL) {
        struct import_machine of_file;
        import_machine_init(&of_file);
        read(&of_file, g_intern_string(path), text, errors);
        if (read == import_lspci)
            of_file.lspci = g_intern_string(path);
        import_merge(machine, &of_file, errors);
        import_machine_release(&of_file);
    } else if (must) {
        g_autofree char *first = g_strndup(begin, MIN(strcspn(begin, "\r\n"), 40));
        g_autofree char *shown = import_printable(first);
        sim_error_add(
            errors, path, line,
            "found \"%s\", expected what lspci -vvv, lstopo (text, or --of xml), dmidecode "
            "or numactl -H print, or /proc/cpuinfo",
            shown);
    }
    return errors->n_messages == before;
}
