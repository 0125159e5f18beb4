/* Intel's Memory Latency Checker, versions 2 to 3.11: the sections of --latency_matrix,
 * --idle_latency, --bandwidth_matrix and --loaded_latency, alone or one below the other, as mlc
 * without options has them. */
#include <math.h>
#include <string.h>

#include "cli/measure/measurements.h"

#define LATENCY_NS_MAX   1e5
#define MBYTE_S_MAX      1e8
#define BUFFER_MIB_LEAST 64.0 /* below, --idle_latency may have measured a cache */

enum section { OTHER, LATENCIES, BANDWIDTHS, LOADS };

struct reader {
    struct measurements *m;
    struct sim_error_list *errors;
    const char *file;
    unsigned line;
    enum section section;
    struct measured_matrix *matrix; /* after its line of node numbers; else NULL */
    unsigned n_found;
    bool in_table; /* of loads, below its ruler */
    double buffer_mib;
};

static void mistake(const struct reader *r, const char *found, const char *expected)
{
    measured_mistake(r->file, r->line, found, expected, r->errors);
}

/* "Numa node\t     0\t     1\t"; version 2: "Socket\t     0\t". */
static void begin_matrix(struct reader *r, char **words)
{
    const bool numa = g_strcmp0(words[0], "Numa") == 0 && g_strcmp0(words[1], "node") == 0;
    char **word = words + (numa ? 2 : 1);
    struct measured_matrix *matrix = r->section == LATENCIES ? &r->m->latency_ns
                                                             : &r->m->read_gbyte_s;
    unsigned n = 0;
    if ((!numa && strcmp(words[0], "Socket") != 0) || *word == NULL)
        return;
    if (matrix->n_columns > 0) {
        mistake(r, "a second matrix", "the output of one machine, once");
        return;
    }
    for (; word[n] != NULL; n++) {
        g_autofree char *expected = g_strdup_printf("%u", n);
        if (strcmp(word[n], expected) != 0 || n >= MEASURED_NODES_MAX) {
            mistake(r, word[n], "the numbers of nodes, from 0 to at most 15");
            return;
        }
    }
    matrix->n_columns = n;
    r->matrix = matrix;
}

/* "       0\t  81.3\t 139.8\t". What is no row ends the matrix. */
static void take_row(struct reader *r, char **words)
{
    struct measured_matrix *matrix = r->matrix;
    const bool latency = r->section == LATENCIES;
    g_autofree char *number = g_strdup_printf("%u", matrix->n_rows);
    const guint n = g_strv_length(words);
    if (n == 0 || strcmp(words[0], number) != 0) {
        if (matrix->n_rows == 0)
            mistake(r, n > 0 ? words[0] : "", "the row of node 0");
        r->matrix = NULL;
        return;
    }
    if (n != matrix->n_columns + 1 || matrix->n_rows >= matrix->n_columns) {
        g_autofree char *row = g_strjoinv(" ", words);
        mistake(r, row, latency ? "a latency in ns for each node" : "MB/s for each node");
        r->matrix = NULL;
        return;
    }
    for (guint i = 1; i < n; i++) {
        const double value = measured_number(words[i], latency ? LATENCY_NS_MAX : MBYTE_S_MAX);
        if (isnan(value))
            mistake(r, words[i], latency ? "a latency in ns" : "a bandwidth in MB/s");
        matrix->at[matrix->n_rows][i - 1] = (struct measured){ latency ? value : value / 1000.0,
                                                               r->file, r->line };
    }
    matrix->n_rows++;
    r->n_found++;
}

/* " 00000\t253.16\t 108624.5" */
static void take_load(struct reader *r, char **words)
{
    const guint n = g_strv_length(words);
    if (n > 0 && g_str_has_prefix(words[0], "===")) {
        r->in_table = true;
        return;
    }
    if (!r->in_table)
        return;
    if (n == 0) {
        r->section = OTHER;
        return;
    }
    const double ns = n == 3 ? measured_number(words[1], LATENCY_NS_MAX) : (double)NAN;
    const double mbyte_s = n == 3 ? measured_number(words[2], MBYTE_S_MAX) : (double)NAN;
    if (isnan(ns) || isnan(mbyte_s)) {
        g_autofree char *row = g_strjoinv(" ", words);
        mistake(r, row, "delay, latency in ns and bandwidth in MB/s");
        r->section = OTHER;
        return;
    }
    const struct measured_load load = { ns, mbyte_s / 1000.0, r->file, r->line };
    g_array_append_val(r->m->loads, load);
    r->n_found++;
}

/* "Each iteration took 182.7 base frequency clocks ( 83.2 ns)" */
static void take_idle(struct reader *r, const char *line)
{
    const char *open = strchr(line, '(');
    g_autofree char *inside = open != NULL ? g_strndup(open + 1, strcspn(open + 1, ")")) : NULL;
    g_autofree char *ns = inside != NULL && strstr(inside, "ns") != NULL
                              ? g_strndup(inside, (gsize)(strstr(inside, "ns") - inside))
                              : g_strdup("");
    const double value = measured_number(g_strstrip(ns), LATENCY_NS_MAX);
    if (open == NULL || isnan(value) || strchr(open, ')') == NULL)
        mistake(r, line, "\"Each iteration took 186.1 core clocks ( 80.9 ns)\"");
    else if (r->buffer_mib > 0.0 && r->buffer_mib < BUFFER_MIB_LEAST)
        mistake(r, line, "the latency of memory: a buffer of 64 MiB or more (mlc without -b)");
    else
        measured_set(&r->m->idle_ns, value, r->file, r->line, r->errors);
    r->n_found++;
}

static void begin_section(struct reader *r, const char *line)
{
    r->matrix = NULL;
    r->in_table = false;
    r->section = g_str_has_prefix(line, "Measuring idle latencies")           ? LATENCIES
                 : g_str_has_prefix(line, "Measuring Memory Bandwidths betw") ? BANDWIDTHS
                 : g_str_has_prefix(line, "Measuring Loaded Latencies")       ? LOADS
                                                                              : OTHER;
    if (r->section == LOADS && r->m->loads->len > 0)
        mistake(r, "a second curve", "the output of one machine, once");
}

static void take_line(struct reader *r, const char *line)
{
    g_auto(GStrv) split = g_strsplit_set(line, " \t", -1);
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    for (char **word = split; *word != NULL; word++)
        if (**word != '\0')
            g_ptr_array_add(words, *word);
    g_ptr_array_add(words, NULL);
    char **list = (char **)words->pdata;
    const char *unit = g_strrstr(line, "traffic type");
    if (g_str_has_prefix(line, "Measuring "))
        begin_section(r, line);
    else if (g_str_has_prefix(line, "Each iteration took"))
        take_idle(r, line);
    else if (sscanf(line, "Using buffer size of %lf", &r->buffer_mib) == 1)
        return;
    else if (unit != NULL && (r->section == BANDWIDTHS || r->section == LOADS) &&
             strstr(line, "Read-only") == NULL)
        mistake(r, line, "\"Using Read-only traffic type\" (mlc without -W)");
    else if (r->matrix != NULL)
        take_row(r, list);
    else if ((r->section == LATENCIES || r->section == BANDWIDTHS) && words->len > 1)
        begin_matrix(r, list);
    else if (r->section == LOADS)
        take_load(r, list);
}

void measured_read_mlc(struct measurements *m, const char *file, char **lines,
                       struct sim_error_list *errors)
{
    struct reader r = { .m = m, .errors = errors, .file = file };
    for (char **line = lines; *line != NULL && errors->n_messages == 0; line++) {
        r.line++;
        take_line(&r, g_strstrip(*line));
    }
    if (r.matrix != NULL && r.matrix->n_rows == 0)
        mistake(&r, "the end of the file", "the rows of the matrix");
    if (r.n_found == 0 && errors->n_messages == 0)
        mistake(&r, "the end of the file",
                "what mlc --latency_matrix, --idle_latency, --bandwidth_matrix or "
                "--loaded_latency measures");
}
