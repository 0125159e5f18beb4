/*
 * pcie-bench's tables: as its program writes them (.csv and .txt; "Test,PAT,Cache,...,Avg(ns)"),
 * and as nudma's measured data has them ("config,file,test,cache,winsz,size_B,avg_ns").
 */
#include <math.h>
#include <string.h>

#include "cli/measure/measurements.h"

enum column { CONFIG, TEST, CACHE, WINDOW, SIZE, HOST_OFFSET, DEVICE_OFFSET, RESULT, N_COLUMNS };

struct reader {
    struct measurements *m;
    struct sim_error_list *errors;
    const char *file;
    unsigned line;
    int column[N_COLUMNS]; /* where it stands; -1: it does not */
    unsigned n_columns;
    bool csv;
    const char *of_file; /* the configuration, by the names of folder and file */
};

/* The program's "BW (GB/s)" is bytes * 8 / ns. */
static const struct {
    const char *name;
    enum column column;
} headings[] = {
    { "config", CONFIG }, { "Test", TEST },        { "test", TEST },        { "Cache", CACHE },
    { "cache", CACHE },   { "WinSZ", WINDOW },     { "winsz", WINDOW },     { "SZ", SIZE },
    { "size_B", SIZE },   { "HO", HOST_OFFSET },   { "DO", DEVICE_OFFSET }, { "Avg(ns)", RESULT },
    { "avg_ns", RESULT }, { "BW (GB/s)", RESULT }, { "BW(GB/s)", RESULT },  { "Gbps", RESULT },
};

static char **cells_of(const struct reader *r, const char *line)
{
    if (r->csv)
        return g_strsplit(line, ",", -1);
    GPtrArray *cells = g_ptr_array_new();
    g_auto(GStrv) pieces = g_strsplit(line, "BW (", -1); /* a heading of two words */
    g_autofree char *joined = g_strjoinv("BW(", pieces);
    g_auto(GStrv) words = g_strsplit_set(joined, " \t", -1);
    for (char **word = words; *word != NULL; word++)
        if (**word != '\0')
            g_ptr_array_add(cells, g_strdup(*word));
    g_ptr_array_add(cells, NULL);
    return (char **)g_ptr_array_free(cells, FALSE);
}

static bool take_head(struct reader *r, const char *line)
{
    static const enum column needed[] = { TEST, CACHE, WINDOW, SIZE, RESULT };
    r->csv = strchr(line, ',') != NULL;
    g_auto(GStrv) cells = cells_of(r, line);
    for (int i = 0; i < N_COLUMNS; i++)
        r->column[i] = -1;
    r->n_columns = g_strv_length(cells);
    for (int c = 0; cells[c] != NULL; c++)
        for (size_t i = 0; i < SIM_N_ELEMENTS(headings); i++)
            if (strcmp(g_strstrip(cells[c]), headings[i].name) == 0 &&
                r->column[headings[i].column] < 0)
                r->column[headings[i].column] = c;
    for (size_t i = 0; i < SIM_N_ELEMENTS(needed); i++) {
        if (r->column[needed[i]] >= 0)
            continue;
        measured_mistake(r->file, r->line, line,
                         "columns for test, cache, window, size and mean latency or bandwidth",
                         r->errors);
        return false;
    }
    return true;
}

static const char *cell(const struct reader *r, char **cells, enum column column)
{
    return r->column[column] >= 0 ? cells[r->column[column]] : "";
}

/* "8192", "1572864.0", "4KB", "1.5MB" */
static uint64_t bytes_of(const char *text)
{
    static const char *const units[] = { "", "KB", "MB", "GB" };
    char *end = NULL;
    const double number = g_ascii_strtod(text, &end);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(units) && end != text; i++)
        if (strcmp(end, units[i]) == 0 && number >= 1.0 && number < 0x1p40)
            return (uint64_t)(number * (double)(UINT64_C(1) << (10 * i)));
    return 0;
}

/* Its configurations end in -s0-s0-s0 (sockets of device, memory and core), and -iommu or, with
 * pages of 4 KiB, -iommu-nosp. */
static bool is_local(const char *config)
{
    return strstr(config, "-s0-s1") == NULL && strstr(config, "-s1-s0") == NULL;
}

static void take_row(struct reader *r, const char *line)
{
    g_auto(GStrv) cells = cells_of(r, line);
    if (g_strv_length(cells) != r->n_columns) {
        measured_mistake(r->file, r->line, line, "as many columns as the first line has",
                         r->errors);
        return;
    }
    const char *config = r->column[CONFIG] >= 0 ? cell(r, cells, CONFIG) : r->of_file;
    struct measured_dma dma = {
        .test = g_intern_string(cell(r, cells, TEST)),
        .cache = g_intern_string(cell(r, cells, CACHE)),
        .window_bytes = bytes_of(cell(r, cells, WINDOW)),
        .transfer_bytes = bytes_of(cell(r, cells, SIZE)),
        .iommu = strstr(config, "iommu-nosp") != NULL,
        .result = { measured_number(cell(r, cells, RESULT), 1e6), r->file, r->line },
    };
    const bool known = g_str_has_prefix(dma.test, "LAT_") || g_str_has_prefix(dma.test, "BW_");
    if (!known || dma.window_bytes == 0 || dma.transfer_bytes == 0 || isnan(dma.result.value)) {
        measured_mistake(r->file, r->line, line,
                         "a row of pcie-bench: test (LAT_..., BW_...), sizes, a result", r->errors);
        return;
    }
    const bool offset =
        strspn(cell(r, cells, HOST_OFFSET), "0") != strlen(cell(r, cells, HOST_OFFSET)) ||
        strspn(cell(r, cells, DEVICE_OFFSET), "0") != strlen(cell(r, cells, DEVICE_OFFSET));
    const bool superpages = !dma.iommu && strstr(config, "iommu") != NULL;
    if (!offset && !superpages && is_local(config))
        g_array_append_val(r->m->dma, dma);
}

void measured_read_pcie_bench(struct measurements *m, const char *file, char **lines,
                              struct sim_error_list *errors)
{
    g_autofree char *folder = g_path_get_dirname(file);
    g_autofree char *parent = g_path_get_basename(folder), *base = g_path_get_basename(file);
    g_autofree char *of_file = g_strconcat(parent, "/", base, NULL);
    struct reader r = { .m = m, .errors = errors, .file = file, .of_file = of_file };
    const guint before = m->dma->len;
    bool head = false;
    for (char **line = lines; *line != NULL && errors->n_messages == 0; line++) {
        r.line++;
        if (*g_strstrip(*line) == '\0')
            continue;
        if (!head && !take_head(&r, *line))
            return;
        if (head)
            take_row(&r, *line);
        head = true;
    }
    if (m->dma->len == before && errors->n_messages == 0)
        measured_mistake(file, r.line, "no row that can be used",
                         "rows of memory of the device's own socket, without an offset", errors);
}
