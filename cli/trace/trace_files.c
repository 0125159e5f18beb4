/* nudma run --pcap, --tlp, --trace FILE: one run that is recorded. */
#include "cli/trace/trace_files.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/trace/trace_apart.h"
#include "sim/config/unit.h"
#include "sim/store/version.h"
#include "workloads/experiment.h"

#define LIMIT_BYTES_DEFAULT (UINT64_C(1) << 30)
#define LARGE_BYTES         (UINT64_C(100) * 1000000) /* of a file that nobody has bounded */
#define SNAP_BYTES_MAX      262144 /* what readers of the format expect at most */

/* ---- Options --------------------------------------------------------------------------------- */

void trace_files_entries(struct trace_files *files, GOptionEntry entries[TRACE_FILES_ENTRIES])
{
    const GOptionEntry all[TRACE_FILES_ENTRIES] = {
        { "pcap", 0, 0, G_OPTION_ARG_FILENAME, &files->pcap,
          "Run one point and write its Ethernet frames to FILE, as pcapng", "FILE" },
        { "pcap-port", 0, 0, G_OPTION_ARG_STRING, &files->pcap_port,
          "Only frames that ports of this name send or receive: 'server_nic.*' (default: all)",
          "PATTERN" },
        { "pcap-snap", 0, 0, G_OPTION_ARG_STRING, &files->pcap_snap,
          "How much of a frame is written: headers (default), all, or so many bytes", "BYTES" },
        { "tlp", 0, 0, G_OPTION_ARG_FILENAME, &files->tlp,
          "Run one point and write its TLPs to FILE, a line each, with a summary", "FILE" },
        { "tlp-filter", 0, 0, G_OPTION_ARG_STRING, &files->tlp_filter,
          "Only TLPs that match all terms: 'link=server.* type=MRd,CplD requester=04:00.0'; from and to "
          "are ports",
          "EXPRESSION" },
        { "trace-from", 0, 0, G_OPTION_ARG_STRING, &files->from,
          "Trace from this simulated time on (default 0), or from the end of the warm-up: measurement",
          "US" },
        { "trace-until", 0, 0, G_OPTION_ARG_STRING, &files->until,
          "Trace until this simulated time, +US: for so long, and end the run then", "US" },
        { "trace-limit", 0, 0, G_OPTION_ARG_STRING, &files->limit,
          "The most that a trace's file takes (default 1 GiB); with ',ring' the last records stay, "
          "else the first",
          "SIZE[,ring]" },
        { .long_name = NULL },
    };
    memcpy(entries, all, sizeof(all));
}

bool trace_files_wanted(const struct trace_files *files)
{
    return files->pcap != NULL || files->tlp != NULL || files->perfetto != NULL;
}

/* A number of microseconds, or a time with its unit. */
static bool parse_time(const char *option, const char *text, sim_time *time_ps)
{
    if (text == NULL)
        return true;
    g_autofree char *in_us = g_strdup_printf("%s us", text);
    if (unit_parse_whole(text, UNIT_TIME, time_ps, NULL) == UNIT_OK ||
        unit_parse_whole(in_us, UNIT_TIME, time_ps, NULL) == UNIT_OK)
        return true;
    fprintf(stderr,
            "nudma run: %s %s: expected a simulated time in microseconds, or with its unit: 1500, "
            "\"1.5 ms\"\n",
            option, text);
    return false;
}

static bool parse_limit(const char *text, struct trace_window *window)
{
    window->limit_bytes = LIMIT_BYTES_DEFAULT;
    if (text == NULL)
        return true;
    const char *comma = strchr(text, ',');
    g_autofree char *size = comma != NULL ? g_strndup(text, (gsize)(comma - text)) : g_strdup(text);
    g_autofree char *in_bytes = g_strdup_printf("%s B", size);
    window->ring = comma != NULL && strcmp(comma, ",ring") == 0;
    if ((comma == NULL || window->ring) &&
        (unit_parse_whole(size, UNIT_SIZE, &window->limit_bytes, NULL) == UNIT_OK ||
         unit_parse_whole(in_bytes, UNIT_SIZE, &window->limit_bytes, NULL) == UNIT_OK) &&
        window->limit_bytes > 0)
        return true;
    fprintf(stderr,
            "nudma run: --trace-limit %s: expected a size, with ',ring' to keep the last records: "
            "\"64 MiB\", \"64 MiB,ring\"\n",
            text);
    return false;
}

static bool parse_snap(const char *text, uint32_t *snap_bytes)
{
    char *end = NULL;
    *snap_bytes = PCAP_SNAP_HEADERS;
    if (text == NULL || strcmp(text, "headers") == 0)
        return true;
    if (strcmp(text, "all") == 0) {
        *snap_bytes = 0;
        return true;
    }
    const guint64 bytes = g_ascii_strtoull(text, &end, 10);
    *snap_bytes = (uint32_t)bytes;
    if (g_ascii_isdigit(*text) && *end == '\0' && bytes >= 1 && bytes <= SNAP_BYTES_MAX)
        return true;
    fprintf(stderr, "nudma run: --pcap-snap %s: expected headers, all, or 1..%d bytes\n", text,
            SNAP_BYTES_MAX);
    return false;
}

/* Each file has a name of its own: the second one would write over the first. */
static bool are_apart(const struct trace_files *files)
{
    const struct {
        const char *option, *path;
    } file[] = { { "--pcap", files->pcap },
                 { "--tlp", files->tlp },
                 { "--trace", files->perfetto } };
    for (size_t i = 0; i < G_N_ELEMENTS(file); i++)
        for (size_t k = 0; k < i && file[i].path != NULL; k++) {
            g_autofree char *a = g_canonicalize_filename(file[i].path, NULL);
            g_autofree char *b = file[k].path != NULL ? g_canonicalize_filename(file[k].path, NULL)
                                                      : NULL;
            if (g_strcmp0(a, b) != 0)
                continue;
            fprintf(stderr, "nudma run: %s %s: expected another file than that of %s\n",
                    file[i].option, file[i].path, file[k].option);
            return false;
        }
    return true;
}

/* What only means something with another option. */
static bool is_complete(const struct trace_files *files)
{
    const struct {
        const char *option, *given, *needs, *needed;
    } rule[] = {
        { "--pcap-port", files->pcap_port, "--pcap", files->pcap },
        { "--pcap-snap", files->pcap_snap, "--pcap", files->pcap },
        { "--tlp-filter", files->tlp_filter, "--tlp", files->tlp },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rule); i++) {
        if (rule[i].given == NULL || rule[i].needed != NULL)
            continue;
        fprintf(stderr, "nudma run: %s: expected %s FILE as well\n", rule[i].option, rule[i].needs);
        return false;
    }
    const bool bounded = files->from != NULL || files->until != NULL || files->limit != NULL;
    if (bounded && !trace_files_wanted(files)) {
        fprintf(stderr, "nudma run: --trace-from, --trace-until, --trace-limit: expected --pcap "
                        "FILE, --tlp FILE or --trace FILE.pftrace as well\n");
        return false;
    }
    return true;
}

static bool parse_filter(const char *text, struct tlp_filter *filter)
{
    struct sim_error_list errors = { 0 };
    if (tlp_filter_parse(filter, text, &errors))
        return true;
    fprintf(stderr, "nudma run: %s\n", errors.message[0]);
    sim_error_release(&errors);
    return false;
}

/* Names the options not given that make the file smaller. Once a run: of several files the first
 * says enough. */
static void say_large(void *arg, const char *path)
{
    struct trace_files *files = arg;
    g_autoptr(GString) text = g_string_new(NULL);
    if (files->large_said || !g_file_test(path, G_FILE_TEST_IS_REGULAR)) /* a pipe keeps nothing */
        return;
    files->large_said = true;
    g_string_printf(text,
                    "nudma run: %s has more than %d MB, and the run goes on. For less: ", path,
                    (int)(LARGE_BYTES / 1000000));
    if (files->from == NULL && files->until == NULL)
        g_string_append(text, "--trace-from measurement --trace-until +50 (50 us of it)");
    else if (files->until == NULL)
        g_string_append(text, "--trace-until +50 (50 us)");
    else
        g_string_append(text, "an earlier --trace-until");
    if (path == files->tlp && files->tlp_filter == NULL)
        g_string_append(text, ", --tlp-filter 'type=MWr' (TLPs that match)");
    if (path == files->pcap && files->pcap_port == NULL)
        g_string_append(text, ", --pcap-port 'NIC.*' (frames of some ports)");
    if (path == files->pcap && files->snap_bytes == 0)
        g_string_append(text, ", --pcap-snap headers");
    g_string_append(text, ", --trace-limit 100MB (the run ends there)");
    fprintf(stderr, "%s\n", text->str);
}

static void begin_window(struct trace_files *files, sim_time from_ps)
{
    files->window.from_ps = from_ps;
    if (files->length_ps != 0)
        files->window.until_ps = from_ps + SIM_MIN(files->length_ps, SIM_TIME_MAX - from_ps);
}

/* "-" */
static void name_standard_output(char **path)
{
    if (g_strcmp0(*path, "-") == 0) {
        g_free(*path);
        *path = g_strdup("/dev/stdout");
    }
}

bool trace_files_parse(struct trace_files *files)
{
    const char *until = files->until;
    const bool is_length = until != NULL && *until == '+';
    sim_time from_ps = 0;
    name_standard_output(&files->pcap);
    name_standard_output(&files->tlp);
    files->window.until_ps = SIM_TIME_MAX;
    if (files->limit == NULL)
        files->window.watch = (struct trace_watch){ LARGE_BYTES, say_large, files };
    files->from_measurement = g_strcmp0(files->from, "measurement") == 0;
    if (!is_complete(files) || !are_apart(files) ||
        !parse_snap(files->pcap_snap, &files->snap_bytes) ||
        !parse_time("--trace-until", is_length ? until + 1 : until,
                    is_length ? &files->length_ps : &files->window.until_ps) ||
        !parse_limit(files->limit, &files->window) ||
        !parse_filter(files->tlp_filter, &files->filter) ||
        (!files->from_measurement && !parse_time("--trace-from", files->from, &from_ps)))
        return false;
    if (is_length && files->length_ps == 0) {
        fprintf(stderr, "nudma run: --trace-until %s: expected a time of more than 0\n", until);
        return false;
    }
    if (files->from_measurement)
        files->window.from_ps = SIM_TIME_MAX;
    else
        begin_window(files, from_ps);
    if (files->from_measurement || from_ps <= files->window.until_ps)
        return true;
    fprintf(stderr, "nudma run: --trace-from %s is after --trace-until %s\n", files->from,
            files->until);
    return false;
}

void trace_files_release(struct trace_files *files)
{
    g_free(files->pcap);
    g_free(files->pcap_port);
    g_free(files->pcap_snap);
    g_free(files->tlp);
    g_free(files->tlp_filter);
    g_free(files->perfetto);
    g_free(files->from);
    g_free(files->until);
    g_free(files->limit);
}

/* The file must not be one that the run was read from, nor that of its results. */
static void check_place(const char *option, const char *path, const struct plan *plan,
                        const char *db, struct sim_error_list *errors)
{
    if (path == NULL)
        return;
    if (cli_same_file(path, db))
        sim_error_add(errors, NULL, 0, "%s %s: found the database, expected another file", option,
                      path);
    for (guint i = 0; i < plan->scenarios->len; i++)
        if (cli_same_file(path, scenario_path(plan->scenarios->pdata[i])))
            sim_error_add(errors, NULL, 0, "%s %s: found the scenario, expected another file",
                          option, path);
}

/* A setting below the node names the file, as job files of fio and captures are: relative to the
 * file that says so, or to the working folder. */
static bool names_file(struct config_node *node, const char *path)
{
    if (config_kind(node) == CONFIG_STRING) {
        const char *name = config_string(node), *from = config_file(node);
        g_autofree char *folder = from != NULL ? g_path_get_dirname(from) : g_strdup(".");
        g_autofree char *beside = g_build_filename(folder, name, NULL);
        return cli_same_file(name, path) || cli_same_file(beside, path);
    }
    for (unsigned i = 0; i < config_count(node); i++)
        if (names_file(config_child(node, i), path))
            return true;
    return false;
}

static void check_named(const struct trace_files *files, struct config *config,
                        struct sim_error_list *errors)
{
    const char *const paths[] = { files->pcap, files->tlp, files->perfetto };
    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++)
        if (paths[i] != NULL && g_file_test(paths[i], G_FILE_TEST_IS_REGULAR) &&
            names_file(config_root(config), paths[i]))
            sim_error_add(errors, NULL, 0, "%s: a setting names this file, expected another one",
                          paths[i]);
}

void trace_files_check(const struct trace_files *files, const struct plan *plan, const char *db,
                       int n_seeds, struct sim_error_list *errors)
{
    if (!trace_files_wanted(files))
        return;
    const char *option = files->pcap != NULL ? "--pcap" : files->tlp != NULL ? "--tlp" : "--trace";
    if (plan->points->len > 1) {
        const char *name = plan_point_name(plan_point(plan, 0));
        sim_error_add(errors, NULL, 0,
                      "%s: %u points, expected one: --filter chooses it, --filter '%s'", option,
                      plan->points->len, name);
    }
    if (n_seeds > 1)
        sim_error_add(errors, NULL, 0, "%s: %d seeds, expected one (--seed chooses it)", option,
                      n_seeds);
    check_place("--pcap", files->pcap, plan, db, errors);
    check_place("--tlp", files->tlp, plan, db, errors);
    check_place("--trace", files->perfetto, plan, db, errors);
}

/* ---- The run --------------------------------------------------------------------------------- */

/* A signal handler has nothing else to write to. */
static volatile int ended, interrupted;

static void interrupt(int number)
{
    (void)number;
    interrupted = ended = 1;
}

struct recording {
    struct trace_files *files;
    const char *comment; /* which run it is */
    struct pcap *pcap;
    struct tlp_log *tlp;
    struct perfetto *perfetto;
    struct trace_file_counts pcap_counts, tlp_counts, perfetto_counts;
    char *tlp_summary;
    const char *failed; /* a file that could not be begun */
    int error;
};

static void measurement_begins(void *arg, sim_time now_ps)
{
    begin_window(arg, now_ps);
}

static struct pcap *begin_pcap(struct recording *recording, struct world *world,
                               struct sim_error_list *errors)
{
    const struct trace_files *files = recording->files;
    g_autofree char *application = g_strdup_printf("nudma %s", sim_version());
    const struct pcap_settings settings = { .path = files->pcap,
                                            .ports = files->pcap_port,
                                            .snap_bytes = files->snap_bytes,
                                            .application = application,
                                            .comment = recording->comment };
    return pcap_new(world, &settings, &files->window, &ended, errors);
}

static bool attach(void *arg, struct world *world, struct sim_error_list *errors)
{
    struct recording *recording = arg;
    struct trace_files *files = recording->files;
    if (files->from_measurement)
        world_at_measurement(world, measurement_begins, files);
    if (files->pcap != NULL) {
        recording->pcap = begin_pcap(recording, world, errors);
        recording->failed = recording->pcap == NULL ? files->pcap : NULL;
    }
    if (files->tlp != NULL && recording->failed == NULL) {
        recording->tlp = tlp_log_new(world, files->tlp, &files->filter, recording->comment,
                                     &files->window, &ended, errors);
        recording->failed = recording->tlp == NULL ? files->tlp : NULL;
    }
    if (files->perfetto != NULL && recording->failed == NULL) {
        recording->perfetto = perfetto_new(world, files->perfetto, &files->window, &ended);
        recording->failed = recording->perfetto == NULL ? files->perfetto : NULL;
    }
    recording->error = errno;
    return recording->failed == NULL;
}

static void detach(void *arg)
{
    struct recording *recording = arg;
    pcap_end(recording->pcap, &recording->pcap_counts);
    if (recording->tlp != NULL)
        recording->tlp_summary = tlp_log_summary(recording->tlp);
    tlp_log_end(recording->tlp, &recording->tlp_counts);
    perfetto_end(recording->perfetto, &recording->perfetto_counts);
}

/* Half a head at most is in it, which nothing can read. */
static bool remove_half(const char *path, int error)
{
    const bool full = error == ENOSPC || error == EFBIG || error == EDQUOT || error == EIO;
    return full && g_file_test(path, G_FILE_TEST_IS_REGULAR) && g_unlink(path) == 0;
}

/* Whether the records go where the program's own words do: `-`, or what stdout leads to, a terminal
 * or /dev/null aside, which keep nothing that words could spoil. */
static bool is_standard_output(const char *path)
{
    struct stat file, out;
    return path != NULL &&
           (strcmp(path, "/dev/stdout") == 0 ||
            (stat(path, &file) == 0 && fstat(STDOUT_FILENO, &out) == 0 && !S_ISCHR(out.st_mode) &&
             file.st_dev == out.st_dev && file.st_ino == out.st_ino));
}

/* " (216 MB)"; "" of less than 10 */
static const char *in_megabytes(uint64_t bytes, char text[32])
{
    *text = '\0';
    if (bytes >= 10000000)
        g_snprintf(text, 32, " (%" G_GUINT64_FORMAT " MB)", (bytes + 500000) / 1000000);
    return text;
}

/* What became of a file, to `out`; false: the file system refused. */
static bool say(FILE *out, const char *path, const char *what,
                const struct trace_file_counts *counts, const struct trace_window *window)
{
    char text[32];
    if (path == NULL)
        return true;
    if (counts->error != 0 && counts->records == 0 && remove_half(path, counts->error))
        fprintf(stderr, "nudma run: %s: %s; nothing is written\n", path, g_strerror(counts->error));
    else if (counts->error != 0)
        fprintf(stderr, "nudma run: %s: %s; it ends after %" G_GUINT64_FORMAT " %s\n", path,
                g_strerror(counts->error), counts->records, what);
    else
        fprintf(out, "%s: %" G_GUINT64_FORMAT " %s, %" G_GUINT64_FORMAT " bytes%s\n", path,
                counts->records, what, counts->bytes, in_megabytes(counts->bytes, text));
    if (counts->dropped != 0 && counts->error == 0)
        fprintf(stderr,
                window->ring ? "%s: the limit of %" G_GUINT64_FORMAT
                               " bytes was reached: the first %" G_GUINT64_FORMAT " %s are gone "
                               "(--trace-limit, --trace-from)\n"
                             : "%s: the limit of %" G_GUINT64_FORMAT
                               " bytes was reached, and the run ended: %" G_GUINT64_FORMAT
                               " %s or more are "
                               "not in it (--trace-limit, --trace-until)\n",
                path, window->limit_bytes, counts->dropped, what);
    return counts->error == 0;
}

/* Whether the window had ended before its beginning was known; says so. */
static bool was_too_early(const struct trace_files *files)
{
    if (!files->from_measurement || files->window.from_ps <= files->window.until_ps)
        return false;
    fprintf(stderr,
            "nudma run: --trace-until %s is before the measurement, nothing was recorded: expected "
            "a later time, or +US from the measurement on\n",
            files->until);
    return true;
}

/* Whether the run had ended before the window began; says so. */
static bool was_too_late(const struct trace_files *files, sim_time end_ps)
{
    if (files->from == NULL || files->from_measurement || files->window.from_ps <= end_ps)
        return false;
    fprintf(
        stderr,
        "nudma run: --trace-from %s is after the end of the run, at %g us: nothing was recorded\n",
        files->from, (double)end_ps / 1e6);
    return true;
}

static int finish(const struct recording *recording, sim_time end_ps, const char *name,
                  const char *error)
{
    const struct trace_files *files = recording->files;
    if (recording->failed != NULL) {
        fprintf(stderr, "nudma run: %s: %s\n", recording->failed, g_strerror(recording->error));
        remove_half(recording->failed, recording->error);
        return CLI_FAILED;
    }
    const bool taken = is_standard_output(files->pcap) || is_standard_output(files->tlp) ||
                       is_standard_output(files->perfetto);
    FILE *out = taken ? stderr : stdout; /* behind a capture words would be a block without sense */
    bool good = say(out, files->pcap, "frames", &recording->pcap_counts, &files->window);
    good = say(out, files->tlp, "TLPs", &recording->tlp_counts, &files->window) && good;
    good = say(out, files->perfetto, "records", &recording->perfetto_counts, &files->window) &&
           good;
    if (recording->tlp_summary != NULL)
        fprintf(out, "%s", recording->tlp_summary);
    if (error != NULL)
        fprintf(stderr, "%s: %s\n", name, error);
    if (error != NULL || (!interrupted && (was_too_early(files) || was_too_late(files, end_ps))))
        good = false;
    if (interrupted)
        fprintf(stderr, "interrupted; the trace has what happened until then\n");
    return interrupted ? CLI_INTERRUPTED : good ? CLI_DONE : CLI_FAILED;
}

static int record(const struct plan *plan, uint64_t seed, struct trace_files *files)
{
    const struct plan_point *point = plan_point(plan, 0);
    const char *point_name = plan_point_name(point);
    g_autofree char *name = g_strdup_printf("%s%s%s seed %" G_GUINT64_FORMAT,
                                            scenario_name(point->scenario),
                                            *point_name != '\0' ? " " : "", point_name, seed);
    struct recording recording = { .files = files, .comment = name };
    const struct experiment_observer observer = { &recording, attach, detach, &ended };
    struct experiment_outcome outcome = { 0 };
    struct sim_error_list errors = { 0 };
    g_autofree char *error = NULL;
    int status = CLI_WRONG;

    signal(SIGINT, interrupt);
    signal(SIGTERM, interrupt);
    struct config *config = scenario_point(point->scenario, point->index, &errors);
    if (config != NULL)
        check_named(files, config, &errors);
    if (config != NULL && errors.n_messages == 0)
        experiment_observe(config, seed, &observer, &outcome, &errors, &error);
    if (errors.n_messages != 0)
        cli_report(&errors);
    else
        status = finish(&recording, outcome.sim_ps, name, error);
    free(recording.tlp_summary);
    perfetto_free(recording.perfetto);
    config_free(config);
    return status;
}

struct request {
    const struct plan *plan;
    uint64_t seed;
    struct trace_files *files;
};

static int record_request(const void *arg)
{
    const struct request *r = arg;
    return record(r->plan, r->seed, r->files);
}

int trace_files_run(const struct plan *plan, uint64_t seed, struct trace_files *files)
{
    signal(SIGINT, SIG_IGN); /* the run ends the files */
    return trace_apart(record_request, &(struct request){ plan, seed, files });
}
