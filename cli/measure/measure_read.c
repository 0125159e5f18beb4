/* Which benchmark printed a file; and those of which a line or two are read. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "cli/import/machine.h"
#include "cli/measure/measurements.h"

void measurements_init(struct measurements *measurements)
{
    *measurements = (struct measurements){
        .loads = g_array_new(FALSE, FALSE, sizeof(struct measured_load)),
        .dma = g_array_new(FALSE, FALSE, sizeof(struct measured_dma)),
    };
}

void measurements_release(struct measurements *measurements)
{
    g_array_free(measurements->loads, TRUE);
    g_array_free(measurements->dma, TRUE);
}

void measured_mistake(const char *file, unsigned line, const char *found, const char *expected,
                      struct sim_error_list *errors)
{
    g_autofree char *start = g_strndup(found, 60);
    g_autofree char *shown = import_printable(start);
    sim_error_add(errors, file, (int)line, "found \"%s\", expected %s", shown, expected);
}

void measured_set(struct measured *measured, double value, const char *file, unsigned line,
                  struct sim_error_list *errors)
{
    if (measured_known(measured))
        sim_error_add(errors, file, (int)line,
                      "is measured by %s:%u, too; expected the output of one machine, once",
                      measured->file, measured->line);
    else
        *measured = (struct measured){ value, file, line };
}

double measured_number(const char *word, double most)
{
    char *end = NULL;
    const double number = g_ascii_strtod(word, &end);
    const bool decimal = strspn(word, "0123456789.") == strlen(word);
    return decimal && end != word && *end == '\0' && number > 0.0 && number <= most ? number
                                                                                    : (double)NAN;
}

const struct measured_dma *measurements_dma(const struct measurements *measurements,
                                            const char *test, const char *cache,
                                            uint64_t window_bytes, uint64_t transfer_bytes,
                                            bool iommu)
{
    for (guint i = 0; i < measurements->dma->len; i++) {
        const struct measured_dma *dma = &g_array_index(measurements->dma, struct measured_dma, i);
        if (strcmp(dma->test, test) == 0 && strcmp(dma->cache, cache) == 0 &&
            dma->window_bytes == window_bytes && dma->transfer_bytes == transfer_bytes &&
            dma->iommu == iommu)
            return dma;
    }
    return NULL;
}

/* ---- lmbench's lat_mem_rd: "stride=64, then size in MB and ns -------------------------------- */

static void read_lat_mem_rd(struct measurements *m, const char *file, char **lines,
                            struct sim_error_list *errors)
{
    double largest_mb = 0.0, ns = 0.0;
    unsigned at = 0;
    for (unsigned i = 1; lines[i] != NULL && *g_strstrip(lines[i]) != '\0'; i++) {
        g_auto(GStrv) words = g_strsplit(lines[i], " ", -1);
        const bool two = g_strv_length(words) == 2;
        const double mb = two ? measured_number(words[0], 1e7) : (double)NAN;
        const double latency = two ? measured_number(words[1], 1e5) : (double)NAN;
        if (isnan(mb) || isnan(latency)) {
            measured_mistake(file, i + 1, lines[i], "a size in MB and a latency in ns", errors);
            return;
        }
        if (mb >= largest_mb) {
            largest_mb = mb;
            ns = latency;
            at = i + 1;
        }
    }
    if (largest_mb < 64.0)
        sim_error_add(errors, file, (int)MAX(at, 1),
                      "found sizes up to %g MB, expected 64 MB or more: the latency of memory",
                      largest_mb);
    else
        measured_set(&m->idle_ns, ns, file, at, errors);
}

/* ---- likwid-bench -t load: "MByte/s:\t\t12345.67" -------------------------------------------- */

static void read_likwid(struct measurements *m, const char *file, char **lines,
                        struct sim_error_list *errors)
{
    bool load = false;
    for (unsigned i = 0; lines[i] != NULL; i++) {
        const char *line = g_strstrip(lines[i]);
        if (g_str_has_prefix(line, "Test: "))
            load = g_str_has_prefix(line + 6, "load");
        if (!g_str_has_prefix(line, "MByte/s:"))
            continue;
        g_autofree char *word = g_strdup(line + strlen("MByte/s:"));
        const double mbyte_s = measured_number(g_strstrip(word), 1e8);
        if (isnan(mbyte_s) || !load)
            measured_mistake(file, i + 1, line, "MByte/s of a test \"load\" (likwid-bench -t load)",
                             errors);
        else
            measured_set(&m->node_gbyte_s, mbyte_s / 1000.0, file, i + 1, errors);
        return;
    }
    measured_mistake(file, g_strv_length(lines), "the end of the file",
                     "a line \"MByte/s: ...\" of likwid-bench", errors);
}

/* ---- perf stat -e .../cas_count_read/: "   12,345.67 MiB  uncore_imc_0/cas_count_read/" ------ */

static void read_perf(struct measurements *m, const char *file, char **lines,
                      struct sim_error_list *errors)
{
    double mib = 0.0, seconds = (double)NAN;
    unsigned at = 0;
    for (unsigned i = 0; lines[i] != NULL; i++) {
        const char *line = g_strstrip(lines[i]);
        g_auto(GStrv) pieces = g_strsplit(line, ",", -1); /* of thousands */
        g_autofree char *digits = g_strjoinv("", pieces);
        g_autofree char *first = g_strndup(digits, strcspn(digits, " \t"));
        const double number = measured_number(first, 1e12);
        if (strstr(line, "cas_count_read") != NULL && strstr(line, "MiB") != NULL) {
            mib += isnan(number) ? 0.0 : number;
            at = at == 0 ? i + 1 : at;
        } else if (strstr(line, "seconds time elapsed") != NULL) {
            seconds = number;
        }
    }
    if (mib <= 0.0 || isnan(seconds))
        measured_mistake(file, g_strv_length(lines), "the end of the file",
                         "MiB of uncore_imc_*/cas_count_read/ and the seconds elapsed", errors);
    else
        measured_set(&m->all_gbyte_s, mib * 1048576.0 / seconds / 1e9, file, at, errors);
}

/* ---- Which one ------------------------------------------------------------------------------- */

typedef void reader_fn(struct measurements *m, const char *file, char **lines,
                       struct sim_error_list *errors);

static reader_fn *reader_of(const char *text)
{
    static const struct {
        const char *begins, *has; /* NULL: any */
        reader_fn *read;
    } readers[] = {
        { NULL, "Memory Latency Checker", measured_read_mlc },
        { NULL, "Measuring idle latencies", measured_read_mlc },
        { NULL, "Measuring Memory Bandwidths between nodes", measured_read_mlc },
        { NULL, "Measuring Loaded Latencies", measured_read_mlc },
        { "Test,PAT,Cache", NULL, measured_read_pcie_bench },
        { "Test ", "WinSZ", measured_read_pcie_bench },
        { "config,", "winsz", measured_read_pcie_bench },
        { "\"stride=", NULL, read_lat_mem_rd },
        { NULL, "LIKWID MICRO BENCHMARK", read_likwid },
        { NULL, "Performance counter stats for", read_perf },
    };
    for (size_t i = 0; i < SIM_N_ELEMENTS(readers); i++)
        if ((readers[i].begins == NULL || g_str_has_prefix(text, readers[i].begins)) &&
            (readers[i].has == NULL || strstr(text, readers[i].has) != NULL))
            return readers[i].read;
    return NULL;
}

bool measurements_read(struct measurements *measurements, const char *path,
                       struct sim_error_list *errors)
{
    const size_t before = errors->n_messages;
    g_autofree char *text = import_read_text(path, errors);
    if (text == NULL)
        return false;
    const char *begin = text + strspn(text, " \t\r\n");
    reader_fn *read = reader_of(begin);
    if (read != NULL) {
        g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
        read(measurements, g_intern_string(path), lines, errors);
    } else {
        g_autofree char *first = g_strndup(begin, strcspn(begin, "\r\n"));
        measured_mistake(path, 1, first,
                         "what mlc, pcie-bench, lat_mem_rd, likwid-bench or perf stat print",
                         errors);
    }
    return errors->n_messages == before;
}
