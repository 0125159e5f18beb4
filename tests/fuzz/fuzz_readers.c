/* The readers: files of people (scenarios, claims, measured curves, jobs of fio), the texts of
 * filters and units, what-ifs, what a worker writes, databases of other programs, captures and
 * traces, and what the tools of a server print. */
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

#include "cli/campaign/until.h"
#include "cli/campaign/worker_internal.h"
#include "cli/claims/claims.h"
#include "cli/import/machine.h"
#include "cli/measure/measurements.h"
#include "cli/plot/plot_measured.h"
#include "cli/whatif/whatif.h"
#include "sim/trace/pcap_read.h"
#include "tests/fuzz/fuzz_read.h"
#include "workloads/experiment.h"
#include "workloads/fio/fio_internal.h"

#define SCENARIO "pcie_bench/latency_size"
#define SMALL    "small" /* in tests/fuzz/scenarios/ */

static const char *const roots[] = { "scenarios", NULL };

/* What is refused is refused with a message. */
static void refused(struct sim_error_list *errors)
{
    g_assert_cmpuint(errors->n_messages, >, 0);
    for (size_t i = 0; i < errors->n_messages; i++)
        g_assert_true(*errors->message[i] != '\0');
}

static char *text_of(const uint8_t *data, size_t bytes)
{
    return g_strndup((const char *)data, bytes);
}

/* ---- A scenario, to the check of its first point --------------------------------------------- */

/* Looks at the first two, one in the middle and the last. */
static void look_at_points(struct scenario *scenario)
{
    const size_t n = scenario_n_points(scenario);
    for (size_t p = 0; p < n; p = p == 0 ? 1 : p < n / 2 ? n / 2 : p < n - 1 ? n - 1 : n) {
        struct sim_error_list errors = { 0 };
        struct config *config = scenario_point(scenario, p, &errors);
        g_assert_nonnull(scenario_point_name(scenario, p));
        scenario_point_is_quick(scenario, p);
        if (config == NULL || errors.n_messages != 0)
            refused(&errors);
        else if (p == 0 && !experiment_check(config, &errors))
            refused(&errors);
        config_free(config);
        sim_error_release(&errors);
    }
}

static void read_scenario(const uint8_t *data, size_t bytes)
{
    struct sim_error_list errors = { 0 };
    struct scenario *scenario = scenario_load(fuzz_read_file(data, bytes), roots, NULL, &errors);
    if (scenario == NULL)
        refused(&errors);
    else if (errors.n_messages == 0) {
        struct plot_figure figure = { 0 };
        if (plot_figure_read(scenario, &figure, &errors))
            plot_figure_release(&figure);
        look_at_points(scenario);
    }
    scenario_free(scenario);
    sim_error_release(&errors);
}

/* ---- Filters, units, --until ----------------------------------------------------------------- */

/* Of one scenario, which is loaded once. */
static struct scenario *known_scenario(void)
{
    static struct scenario *scenario;
    struct sim_error_list errors = { 0 };
    if (scenario == NULL)
        scenario = scenario_load(SCENARIO, roots, NULL, &errors);
    g_assert_nonnull(scenario);
    return scenario;
}

static void apply(const struct filter *filter)
{
    struct scenario *scenario = known_scenario();
    const struct filter_table table = scenario_table(scenario);
    const size_t n = scenario_n_points(scenario);
    g_free(filter_fault(filter, &table, 1));
    g_autofree bool *selected = g_new(bool, n);
    memset(selected, true, n);
    filter_apply(filter, &table, selected);
}

static void measure(const char *text)
{
    static const struct unit *keys[3];
    uint64_t whole = 0;
    double value = 0;
    enum unit_dimension dimension;
    struct until until = { 0 };
    keys[0] = unit_find("ns"), keys[1] = unit_find("KiB"), keys[2] = unit_find("Gbit/s");
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_free(unit_suggestion(text, keys[i]->dimension));
        unit_parse_whole(text, keys[i]->dimension, &whole, NULL);
        unit_parse_scaled(text, keys[i], &value, NULL);
        filter_number(text, keys[i], &value, &dimension);
    }
    if (until_parse(&until, text))
        until_release(&until);
}

static void read_filter(const uint8_t *data, size_t bytes)
{
    g_autofree char *text = text_of(data, bytes);
    g_autofree char *fault = NULL;
    if (!g_utf8_validate(text, -1, NULL))
        return; /* main() and the reader of files have refused it */
    struct filter *filter = filter_parse(text, &fault);
    g_assert_true((filter == NULL) == (fault != NULL && *fault != '\0'));
    if (filter != NULL)
        apply(filter);
    filter_free(filter);
    measure(text);
}

/* ---- Claims ---------------------------------------------------------------------------------- */

static void store_point(struct results_db *db, const char *scenario, uint64_t seed)
{
    char *message = NULL;
    struct run_result *result = run_result_new();
    const struct run_record record = {
        .scenario = scenario,
        .point = "op=read transfer_bytes=64",
        .seed = seed,
        .status = "done",
        .config_sha256 = "0",
        .command_line = "",
        .host = "",
    };
    run_result_metric(result, "latency_mean_ns", "ns", 550.0 + (double)seed);
    g_assert_true(results_store(db, &record, NULL, result, &message));
    run_result_free(result);
}

/* With the runs of one point of two scenarios, and nothing that lasts. */
static struct results_db *known_results(void)
{
    static struct results_db *db;
    char *message = NULL;
    if (db != NULL)
        return db;
    db = results_open(RESULTS_IN_MEMORY, false, &message);
    g_assert_nonnull(db);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        store_point(db, SCENARIO, seed);
        store_point(db, SMALL, seed);
    }
    return db;
}

static void evaluate(GPtrArray *files)
{
    struct sim_error_list errors = { 0 };
    claims_evaluate(files, NULL, known_results(), &errors);
    for (guint i = 0; i < files->len; i++) {
        const struct claims_file *file = files->pdata[i];
        for (guint k = 0; k < file->claims->len; k++) {
            const struct claim *claim = claims_at(file, k);
            char buffer[32];
            claim_error_text(claim, buffer);
            claim_target(claim);
            GArray *references = claim_references(claim);
            g_array_unref(references);
        }
    }
    sim_error_release(&errors);
}

static void read_claims(const uint8_t *data, size_t bytes)
{
    struct sim_error_list errors = { 0 };
    char *folders[] = { (char[]){ "scenarios" }, NULL };
    const struct cli_options options = { .roots = folders };
    g_auto(GStrv) arguments = g_new0(char *, 2);
    arguments[0] = g_strdup(fuzz_read_file(data, bytes));
    GPtrArray *files = claims_load(&options, arguments, &errors);
    if (errors.n_messages == 0)
        evaluate(files);
    else
        refused(&errors);
    g_ptr_array_unref(files);
    sim_error_release(&errors);
}

/* ---- What-ifs -------------------------------------------------------------------------------- */

/* Each text of a question that was judged. */
static void look_at_whatifs(GPtrArray *files)
{
    for (guint i = 0; i < files->len; i++) {
        const struct whatif_file *file = files->pdata[i];
        for (guint k = 0; k < file->whatifs->len; k++) {
            const struct whatif *whatif = whatif_at(file, k);
            g_assert_cmpint(whatif->verdict, <, N_WHATIF_VERDICTS);
            g_free(whatif_expected_text(whatif));
            g_free(whatif_found_text(whatif));
            if (whatif->verdict == WHATIF_NO_DATA)
                g_free(whatif_no_data_text(whatif));
        }
    }
}

static void judge(GPtrArray *files, const struct plan *plan)
{
    struct sim_error_list errors = { 0 };
    if (whatif_judge(files, plan, known_results(), &errors))
        look_at_whatifs(files);
    else
        refused(&errors);
    sim_error_release(&errors);
}

/* Beside scenarios that are read in a tenth of a millisecond: a question reads two. */
static void read_whatif(const uint8_t *data, size_t bytes)
{
    struct sim_error_list errors = { 0 };
    char *folders[] = { (char[]){ "tests/fuzz/scenarios" }, NULL };
    const struct cli_options options = { .roots = folders };
    g_auto(GStrv) arguments = g_new0(char *, 2);
    arguments[0] = g_strdup(fuzz_read_file(data, bytes));
    GPtrArray *files = whatif_load(&options, arguments, &errors);
    struct plan *plan = errors.n_messages == 0 ? whatif_plan(&options, files, &errors) : NULL;
    if (errors.n_messages != 0)
        refused(&errors);
    else
        judge(files, plan);
    if (plan != NULL)
        plan_free(plan);
    g_ptr_array_unref(files);
    sim_error_release(&errors);
}

/* ---- Measured curves ------------------------------------------------------------------------- */

static void read_measured(const uint8_t *data, size_t bytes)
{
    g_autofree char *folder = g_path_get_dirname(fuzz_read_file(data, bytes));
    g_autofree char *path = NULL;
    char *folders[] = { folder, NULL };
    const struct cli_options options = { .roots = folders };
    const struct plot_measured measured = { .file = "input.cfg",
                                            .node = config_root(scenario_base(known_scenario())) };
    struct sim_error_list errors = { 0 };
    GArray *rows = plot_measured_rows(&options, known_scenario(), &measured, &path, &errors);
    if (rows == NULL)
        refused(&errors);
    else
        g_assert_cmpuint(rows->len, >, 0);
    if (rows != NULL)
        g_array_unref(rows);
    sim_error_release(&errors);
}

/* ---- What a worker writes -------------------------------------------------------------------- */

/* What is taken can be packed again, to the same bytes but for the double that is no number. */
static void read_report(const uint8_t *data, size_t bytes)
{
    g_autoptr(GByteArray) sent = g_byte_array_new();
    struct worker_report report = { 0 };
    bool leaves = false;
    g_byte_array_append(sent, data, (guint)bytes);
    if (!worker_report_unpack(sent, &report, &leaves))
        return;
    g_assert_true(worker_report_whole(sent));
    g_autoptr(GByteArray) again = worker_report_pack(&report, leaves);
    struct worker_report second = { 0 };
    g_assert_true(worker_report_unpack(again, &second, &leaves));
    run_result_free(report.result);
    run_result_free(second.result);
    g_free(report.error);
    g_free(second.error);
}

/* ---- Databases ------------------------------------------------------------------------------- */

#define MERGED_MAX 64u

static void ask(struct results_db *db)
{
    const char *name;
    double value = 0;
    char *message = NULL;
    struct results_cursor *cursor = results_scenarios(db);
    while (results_next_name(cursor) != NULL)
        ;
    results_end(cursor, &message);
    g_clear_pointer(&message, g_free);
    cursor = results_points(db, SCENARIO);
    while ((name = results_next_name(cursor)) != NULL)
        g_assert_true(g_utf8_validate(name, -1, NULL) || *name != '\0');
    results_end(cursor, &message);
    g_clear_pointer(&message, g_free);
    cursor = results_values(db, SCENARIO, "latency_mean_ns", "ns");
    while (results_next_value(cursor) != NULL)
        ;
    results_end(cursor, &message);
    g_clear_pointer(&message, g_free);
    results_evaluate(db, "v('" SCENARIO "','op=read transfer_bytes=64','latency_mean_ns')", &value,
                     &message);
    g_free(message);
}

/* What inputs are merged into. To make one takes as long as all else, hence one for several
 * inputs. */
static struct results_db *merged_results(void)
{
    static struct results_db *db;
    static unsigned n_merged;
    g_autofree char *why = NULL;
    if (n_merged++ % MERGED_MAX == 0) {
        if (db != NULL)
            results_close(db);
        db = results_open(RESULTS_IN_MEMORY, false, &why);
        g_assert_nonnull(db);
    }
    return db;
}

static void read_results(const uint8_t *data, size_t bytes)
{
    const char *path = fuzz_read_file(data, bytes);
    struct results_merged merged;
    g_autofree char *message = NULL, *refusal = NULL;
    struct results_db *db = results_open(path, true, &message);
    if (db != NULL) {
        ask(db);
        results_close(db);
    } else {
        g_assert_nonnull(message);
    }
    if (!results_merge(merged_results(), path, &merged, &refusal))
        g_assert_nonnull(refusal);
    g_autofree char *journal = g_strconcat(path, "-journal", NULL);
    g_remove(journal);
}

/* ---- Jobs of fio ----------------------------------------------------------------------------- */

static void read_jobfile(const uint8_t *data, size_t bytes)
{
    struct fio_strings *strings = fio_strings_new();
    struct sim_error_list errors = { 0 };
    struct fio_job_list jobs = { 0 };
    if (!fio_job_file_read(fuzz_read_file(data, bytes), strings, &jobs, &errors))
        refused(&errors);
    fio_job_list_release(&jobs);
    fio_strings_free(strings);
    sim_error_release(&errors);
}

/* ---- Traces of fio --------------------------------------------------------------------------- */

/* Once with every file and action, once redirected and without syncs and trims. */
static void read_iolog(const uint8_t *data, size_t bytes)
{
    const char *path = fuzz_read_file(data, bytes);
    for (unsigned pass = 0; pass < 2; pass++) {
        struct sim_error_list errors = { 0 };
        struct fio_options options;
        struct fio_trace trace;
        fio_options_default(&options);
        options.redirect = pass == 1 ? "ssd" : NULL;
        options.skip_sync = options.skip_trim = pass == 1;
        if (!fio_trace_read(path, &options, &trace, &errors))
            refused(&errors);
        else
            g_assert_cmpuint(trace.n_steps, >, 0);
        for (uint64_t i = 0; i < trace.n_steps; i++) {
            g_assert_cmpuint(trace.step[i].offset + trace.step[i].bytes, <=, trace.end);
            g_assert_cmpuint(trace.step[i].at_us, <=, FIO_TRACE_MAX_US);
        }
        fio_trace_release(&trace);
        sim_error_release(&errors);
    }
}

/* ---- Captures -------------------------------------------------------------------------------- */

static void read_capture(const uint8_t *data, size_t bytes)
{
    g_autofree char *message = NULL;
    unsigned sum = 0;
    struct pcap_capture *capture = pcap_read_memory(g_memdup2(data, bytes), bytes, &message);
    g_assert_true((capture == NULL) == (message != NULL && *message != '\0'));
    for (guint i = 0; capture != NULL && i < capture->frames->len; i++) {
        const struct pcap_frame *frame = &g_array_index(capture->frames, struct pcap_frame, i);
        g_assert_cmpuint(frame->bytes, <=, frame->wire_bytes);
        g_assert_cmpuint(frame->wire_bytes, <=, 262144);
        for (uint32_t k = 0; k < frame->bytes; k++)
            sum += frame->data[k];
    }
    g_assert_cmpuint(sum, <=, 255 * bytes); /* each byte is the file's, and of one frame */
    pcap_free(capture);
}

/* ---- What tools of a server print ------------------------------------------------------------ */

/* Where the next file of an input ends: a NUL, which no text has, stands between two. */
static size_t file_bytes(const uint8_t *data, size_t bytes)
{
    const uint8_t *end = bytes > 0 ? memchr(data, '\0', bytes) : NULL;
    return end != NULL ? (size_t)(end - data) : bytes;
}

/* What is written of it is UTF-8. */
static void write_import(const struct import_machine *machine, bool platform)
{
    struct sim_error_list errors = { 0 };
    const struct import_choice choice = { .roots = roots, .host = "server", .platform = platform };
    g_autoptr(GPtrArray) notes = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *text = import_write(machine, &choice, notes, &errors);
    if (text == NULL)
        refused(&errors);
    else
        g_assert_true(g_utf8_validate(text, -1, NULL));
    sim_error_release(&errors);
}

static void read_import(const uint8_t *data, size_t bytes)
{
    struct sim_error_list errors = { 0 };
    struct import_machine machine;
    bool all = true;
    import_machine_init(&machine);
    for (size_t at = 0; all && at < bytes;) {
        const size_t n = file_bytes(data + at, bytes - at);
        bool known = false;
        all = import_file(&machine, fuzz_read_file(data + at, n), true, &known, &errors);
        if (all)
            g_assert_true(known);
        else
            refused(&errors);
        at += n + 1;
    }
    if (all && bytes > 0)
        write_import(&machine, bytes % 2 == 0);
    import_machine_release(&machine);
    sim_error_release(&errors);
}

static void read_measure(const uint8_t *data, size_t bytes)
{
    struct sim_error_list errors = { 0 };
    struct measurements measurements;
    bool all = true;
    measurements_init(&measurements);
    for (size_t at = 0; all && at < bytes;) {
        const size_t n = file_bytes(data + at, bytes - at);
        all = measurements_read(&measurements, fuzz_read_file(data + at, n), &errors);
        if (!all)
            refused(&errors);
        at += n + 1;
    }
    for (guint i = 0; i < measurements.dma->len; i++) {
        const struct measured_dma *dma = &g_array_index(measurements.dma, struct measured_dma, i);
        g_assert_nonnull(measurements_dma(&measurements, dma->test, dma->cache, dma->window_bytes,
                                          dma->transfer_bytes, dma->iommu));
    }
    measurements_release(&measurements);
    sim_error_release(&errors);
}

const struct fuzz_reader fuzz_scenario = { "scenario", read_scenario },
                         fuzz_claims = { "claims", read_claims },
                         fuzz_measured = { "measured", read_measured },
                         fuzz_filter = { "filter", read_filter },
                         fuzz_report = { "report", read_report },
                         fuzz_results = { "results", read_results },
                         fuzz_jobfile = { "jobfile", read_jobfile },
                         fuzz_iolog = { "iolog", read_iolog },
                         fuzz_capture = { "capture", read_capture },
                         fuzz_import = { "import", read_import },
                         fuzz_measure = { "measure", read_measure },
                         fuzz_whatif = { "whatif", read_whatif };
