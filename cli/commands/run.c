/* nudma run: everything is checked, then run, then shown. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/last_words.h"
#include "cli/campaign/bands.h"
#include "cli/campaign/campaign.h"
#include "cli/campaign/summary.h"
#include "cli/commands/run.h"
#include "cli/plot/plot_spec.h"
#include "cli/trace/trace_address.h"
#include "cli/trace/trace_software.h"
#include "sim/config/unit.h"

#define SEEDS_UNSAID INT_MIN

static bool in_range(const char *option, int64_t value, int64_t lo, int64_t hi)
{
    if (value >= lo && value <= hi)
        return true;
    fprintf(stderr,
            "%s: %s %" G_GINT64_FORMAT ": expected %" G_GINT64_FORMAT "..%" G_GINT64_FORMAT "\n",
            g_get_prgname(), option, value, lo, hi);
    return false;
}

static void print_points(const struct plan *plan, bool quiet)
{
    for (guint i = 0; i < plan->points->len; i++) {
        const struct plan_point *point = plan_point(plan, i);
        const char *name = plan_point_name(point);
        printf("%s%s%s\n", scenario_name(point->scenario), *name != '\0' ? " " : "", name);
    }
    if (!quiet)
        fprintf(stderr, "%u points\n", plan->points->len);
}

/* Who asked for the fast subset, and gets everything, is told. */
static void say_without_quick(const struct plan *plan)
{
    for (guint i = 0; i < plan->scenarios->len; i++) {
        const struct scenario *scenario = plan->scenarios->pdata[i];
        if (scenario_has_quick(scenario))
            continue;
        const size_t n = scenario_n_points(scenario);
        fprintf(stderr, "%s: names no points for --quick: %s\n", scenario_name(scenario),
                n == 1 ? "its one point counts" : "all of them count");
    }
}

static int run_plan(struct plan *plan, const struct run_request *request)
{
    struct results_db *db = cli_open_for_writing(&request->options);
    if (db == NULL)
        return CLI_FAILED;
    const struct campaign campaign = {
        .plan = plan,
        .db = db,
        .n_workers = (unsigned)request->n_workers,
        .quiet = request->quiet,
        .progress_s = (unsigned)request->progress_s,
        .force = request->force,
        .command_line = request->command_line,
        .first_seed = (uint64_t)request->first_seed,
        .n_seeds = (unsigned)request->n_seeds,
        .until = request->until.metric != NULL ? &request->until : NULL,
        .memory_bytes = request->memory_bytes,
        .limits = request->limits,
    };
    const int status = campaign_run(&campaign);
    if (status != CLI_INTERRUPTED && request->bands)
        bands_print(plan, db);
    else if (status != CLI_INTERRUPTED && request->with_table)
        summary_print(plan, db, request->stats);
    results_close(db);
    return status;
}

/* "3/10"; 0 of 0 without text. */
static bool parse_shard(const char *text, unsigned *shard, unsigned *n_shards)
{
    *shard = *n_shards = 0;
    if (text == NULL)
        return true;
    char *end = NULL;
    const guint64 i = g_ascii_strtoull(text, &end, 10);
    const guint64 n = *end == '/' && g_ascii_isdigit(end[1]) ? g_ascii_strtoull(end + 1, &end, 10)
                                                             : 0;
    if (!g_ascii_isdigit(*text) || *end != '\0' || i < 1 || i > n || n > 1000000)
        return false;
    *shard = (unsigned)i;
    *n_shards = (unsigned)n;
    return true;
}

/* Hours of runs would go before the first point that has all its seeds says so. */
static void check_until(const struct plan *plan, const struct until *until,
                        struct sim_error_list *errors)
{
    for (guint i = 0; until->metric != NULL && i < plan->scenarios->len; i++) {
        g_autofree char *fault = plot_unknown_metric(plan->scenarios->pdata[i], until->metric);
        if (fault != NULL)
            sim_error_add(errors, NULL, 0, "--until: %s", fault);
    }
}

#define MOST_RUNS 5000000 /* some 500 MB of a plan */

static void check_size(const struct plan *plan, const struct run_request *request,
                       struct sim_error_list *errors)
{
    const uint64_t n_seeds = request->until.metric != NULL ? UNTIL_FIRST_SEEDS
                                                           : (uint64_t)request->n_seeds;
    const uint64_t n = plan->points->len * n_seeds;
    if (n > MOST_RUNS)
        sim_error_add(errors, NULL, 0,
                      "%u points of %" G_GUINT64_FORMAT " seeds are %" G_GUINT64_FORMAT
                      " runs, expected at most %d (--shard or --filter takes a part)",
                      plan->points->len, n_seeds, n, MOST_RUNS);
}

/* One run, into no database. */
static int run_traced(const struct plan *plan, struct run_request *request)
{
    const uint64_t seed = (uint64_t)request->first_seed;
    last_words_if_stopped(NULL);
    if (trace_files_wanted(&request->trace_files))
        return trace_files_run(plan, seed, &request->trace_files);
    if (request->trace_text != NULL)
        return trace_address_run(plan, seed, &request->followed);
    return trace_software_run(plan, seed, (unsigned)request->n_steps);
}

int run_scenarios(struct run_request *request, char **arguments)
{
    struct sim_error_list errors = { 0 };
    const bool traced = !request->print_config && /* runs nothing */
                        (request->trace_text != NULL || request->n_steps != 0 ||
                         trace_files_wanted(&request->trace_files));
    if (!request->list && !request->print_config && !traced &&
        !cli_folder_exists("--db", request->options.db))
        return CLI_WRONG;
    campaign_expect_stop(request->command_line);
    struct plan_choice choice = {
        .sets = (const char *const *)request->sets,
        .quick = request->quick,
        .filters = (const char *const *)request->filters,
        .precision = request->precision,
    };
    parse_shard(request->shard, &choice.shard, &choice.n_shards);
    struct plan *plan = plan_new(&request->options, arguments, &choice, &errors);
    int status = CLI_WRONG;
    if (request->bands && errors.n_messages == 0)
        bands_plan(plan, &request->options, choice.sets, request->shard != NULL, &errors);
    if (!request->list)
        check_size(plan, request, &errors);
    if (traced && errors.n_messages == 0 && plan->points->len == 0)
        sim_error_add(&errors, NULL, 0, "--shard %s: has no point to trace, expected one",
                      request->shard);
    if (!request->list && !request->print_config && errors.n_messages == 0)
        trace_files_check(&request->trace_files, plan, request->options.db, request->n_seeds,
                          &errors);
    if ((request->list || traced) && errors.n_messages == 0)
        plan_check_first(plan, &errors);
    if (!request->list && !traced && plan->points->len <= MOST_RUNS)
        plan_check(plan, (unsigned)request->n_workers,
                   request->print_config && errors.n_messages == 0, &errors);
    if (errors.n_messages == 0)
        plan_check_outputs(plan, request->options.db, (unsigned)request->n_seeds, &errors);
    if (errors.n_messages == 0)
        check_until(plan, &request->until, &errors);
    if (errors.n_messages == 0 && request->quick && !request->quiet)
        say_without_quick(plan);
    if (errors.n_messages == 0 && request->list)
        print_points(plan, request->quiet);
    if (errors.n_messages > 0)
        cli_report(&errors);
    else if (request->list || request->print_config)
        status = CLI_DONE;
    else
        status = traced ? run_traced(plan, request) : run_plan(plan, request);
    plan_free(plan);
    last_words_if_stopped(NULL);
    return status;
}

#define LEAST_MEMORY (1u << 20) /* that a run may be given: none needs less */

/* "512 MiB", or bytes; 0 without text. */
static bool parse_size(const char *option, const char *text, uint64_t *n_bytes)
{
    *n_bytes = 0;
    if (text == NULL)
        return true;
    g_autofree char *digits = g_strdup_printf("%s B", text);
    const bool is_size = unit_parse_whole(text, UNIT_SIZE, n_bytes, NULL) == UNIT_OK ||
                         unit_parse_whole(digits, UNIT_SIZE, n_bytes, NULL) == UNIT_OK;
    if (is_size && *n_bytes >= LEAST_MEMORY)
        return true;
    fprintf(stderr, "nudma run: %s %s: expected a size such as \"512 MiB\"%s\n", option, text,
            is_size ? ", at least the 1 MiB that any run needs" : "");
    return false;
}

/* A number of steps, or a file. */
static bool take_trace(struct run_request *request)
{
    const char *text = request->steps_text;
    char *end = NULL;
    if (text == NULL)
        return true;
    if (g_str_has_suffix(text, ".pftrace")) {
        request->trace_files.perfetto = g_strdup(text);
        return true;
    }
    const gint64 n = g_ascii_strtoll(text, &end, 10);
    if (end == text || *end != '\0') {
        fprintf(stderr,
                "nudma run: --trace %s: expected a file NAME.pftrace, or a number of steps\n",
                text);
        return false;
    }
    request->n_steps = (int)SIM_MIN(n, TRACE_STEPS_MAX + 1);
    return in_range("--trace", n, 1, TRACE_STEPS_MAX);
}

/* What belongs to runs that are stored, or to several: the first that was given; NULL: none. */
static const char *option_of_campaign(const struct run_request *request)
{
    const struct {
        const char *option;
        bool given;
    } options[] = {
        { "--bands", request->bands },
        { "--until", request->until_text != NULL },
        { "--missing", request->missing },
        { "--force", request->force },
        { "--timeout", request->timeout_s > 0.0 },
        { "--run-memory", request->run_memory_text != NULL },
        { "--memory", request->memory_text != NULL },
        { "--stats", request->stats },
        { "--progress", request->progress_s != 0 },
        { "--db", request->options.db_said },
        /* files say so themselves */
        { "--seeds", request->n_seeds > 1 && !trace_files_wanted(&request->trace_files) },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(options); i++)
        if (options[i].given)
            return options[i].option;
    return NULL;
}

/* Files, the way of an address, or steps: a run shows one of these, and does nothing else. */
static bool is_one_trace(const struct run_request *request)
{
    const struct trace_files *files = &request->trace_files;
    const char *file = files->pcap != NULL  ? "--pcap"
                       : files->tlp != NULL ? "--tlp"
                                            : "--trace FILE.pftrace";
    const char *const chosen[] = { trace_files_wanted(files) ? file : NULL,
                                   request->trace_text != NULL ? "--trace-address" : NULL,
                                   request->n_steps != 0 ? "--trace N" : NULL };
    const char *first = NULL, *without = option_of_campaign(request);
    for (size_t i = 0; i < G_N_ELEMENTS(chosen); i++) {
        if (chosen[i] != NULL && first != NULL) {
            fprintf(stderr, "nudma run: %s and %s: expected one of them\n", first, chosen[i]);
            return false;
        }
        first = chosen[i] != NULL ? chosen[i] : first;
    }
    if (first == NULL || without == NULL || request->list || request->print_config)
        return true;
    fprintf(stderr, "nudma run: %s: makes one run and stores nothing, expected no %s\n", first,
            without);
    return false;
}

/* What texts say; false with what is wrong printed. n_seeds is negative if nobody said. */
static bool take_texts(struct run_request *request)
{
    if (request->until_text != NULL && !until_parse(&request->until, request->until_text)) {
        fprintf(stderr,
                "nudma run: --until '%s': expected a metric and the half-width of its interval, "
                "'latency_mean_ns 1%%' or in its unit 'latency_mean_ns 2.5'\n",
                request->until_text);
        return false;
    }
    if (request->n_seeds == SEEDS_UNSAID)
        request->n_seeds = request->until_text != NULL ? UNTIL_MOST_SEEDS : 1;
    if (request->until_text != NULL && request->n_seeds < UNTIL_FIRST_SEEDS) {
        fprintf(stderr, "nudma run: --seeds %d: with --until expected %d or more\n",
                request->n_seeds, UNTIL_FIRST_SEEDS);
        return false;
    }
    if (!(request->timeout_s >= 0.0 && request->timeout_s < 1e9)) {
        fprintf(stderr, "nudma run: --timeout %g: expected seconds, 0 for none\n",
                request->timeout_s);
        return false;
    }
    request->limits.timeout_s = request->timeout_s;
    if (request->trace_text != NULL &&
        !trace_address_parse(request->trace_text, &request->followed, &request->trace_device))
        return false;
    if (!take_trace(request) || !is_one_trace(request) || !trace_files_parse(&request->trace_files))
        return false;
    return parse_size("--memory", request->memory_text, &request->memory_bytes) &&
           parse_size("--run-memory", request->run_memory_text, &request->limits.memory_bytes);
}

static bool is_sound(struct run_request *request, char **arguments)
{
    if (*arguments == NULL) {
        fprintf(stderr, "nudma run: which scenario? (nudma list shows them)\n");
        return false;
    }
    for (char **set = request->sets; set != NULL && *set != NULL; set++) {
        const char *equals = strchr(*set, '=');
        if (**set != '@' && (equals == NULL || equals == *set)) {
            fprintf(stderr, "nudma run: --set %s: expected path=value or @FILE\n", *set);
            return false;
        }
    }
    unsigned shard, n_shards;
    if (!parse_shard(request->shard, &shard, &n_shards)) {
        fprintf(stderr, "nudma run: --shard %s: expected I/N, the part I (1..N) of N\n",
                request->shard);
        return false;
    }
    if (request->missing && request->force) {
        fprintf(stderr, "nudma run: --missing leaves out what is there, --force runs it again: "
                        "expected one of them\n");
        return false;
    }
    return run_request_sound(request);
}

void run_request_init(struct run_request *request)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    *request = (struct run_request){
        .n_workers = online > 0 ? (int)online : 1,
        .n_seeds = 1,
        .first_seed = 1,
        .with_table = true,
    };
}

/* "1 %" or "0.01"; false with what is wrong printed. */
static bool take_precision(struct run_request *request)
{
    char *end = NULL;
    if (request->precision_text == NULL)
        return true;
    double ratio = g_ascii_strtod(request->precision_text, &end);
    const bool any = end != request->precision_text;
    const char *rest = end + strspn(end, " ");
    ratio /= *rest == '%' ? 100 : 1;
    rest += *rest == '%';
    if (!any || *rest != '\0' || !(ratio >= 0.0001 && ratio <= 0.2)) {
        fprintf(stderr, "%s: --precision '%s': expected a share of 0.01 %% to 20 %%, '1%%'\n",
                g_get_prgname(), request->precision_text);
        return false;
    }
    request->precision = g_strdup_printf("%.6g", ratio);
    return true;
}

bool run_request_sound(struct run_request *request)
{
    return take_precision(request) && in_range("-j", request->n_workers, 1, 4096) &&
           in_range("--progress", request->progress_s, 0, 86400) &&
           in_range("--seeds", request->n_seeds, 1, 1000000) &&
           in_range("--seed", request->first_seed, 0, INT64_MAX - 1000000);
}

void run_request_release(struct run_request *request)
{
    g_strfreev(request->sets);
    g_strfreev(request->filters);
    g_free(request->shard);
    g_free(request->until_text);
    g_free(request->precision_text);
    g_free(request->precision);
    g_free(request->memory_text);
    g_free(request->run_memory_text);
    g_free(request->trace_text);
    g_free(request->trace_device);
    g_free(request->steps_text);
    trace_files_release(&request->trace_files);
    until_release(&request->until);
    g_free(request->command_line);
    cli_options_release(&request->options);
}

/* GOption would take the word after an option with an optional value for that value. */
static void allow_no_value(const char *option, char *with_value, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], option) == 0)
            argv[i] = with_value;
}

/* Both, in an array that g_free() frees. */
static GOptionEntry *with_trace_files(const GOptionEntry *entries, struct trace_files *files)
{
    GOptionEntry of_files[TRACE_FILES_ENTRIES];
    GArray *all = g_array_new(TRUE, TRUE, sizeof(*entries));
    trace_files_entries(files, of_files);
    for (; entries->long_name != NULL; entries++)
        g_array_append_val(all, *entries);
    g_array_append_vals(all, of_files, G_N_ELEMENTS(of_files));
    return (GOptionEntry *)(void *)g_array_free(all, FALSE);
}

int cli_run(int argc, char **argv)
{
    char trace_address[] = "--trace-address=";
    struct run_request request;
    run_request_init(&request);
    request.n_seeds = SEEDS_UNSAID;
    request.command_line = cli_command_line("run", argc, argv);
    const GOptionEntry entries[] = {
        { "jobs", 'j', 0, G_OPTION_ARG_INT, &request.n_workers,
          "Run N points at a time (default: one per processor)", "N" },
        { "set", 's', 0, G_OPTION_ARG_STRING_ARRAY, &request.sets,
          "Change a setting of every scenario named; axes.NAME=a,b changes an axis; @FILE: all settings of a file",
          "PATH=VALUE" },
        { "filter", 'f', 0, G_OPTION_ARG_STRING_ARRAY, &request.filters,
          "Only points whose axis values match: 'config=remote buffer_bytes>1024'; several: all of "
          "them have to",
          "EXPRESSION" },
        { "shard", 0, 0, G_OPTION_ARG_STRING, &request.shard,
          "Only part I of the points, split into N parts", "I/N" },
        { "quick", 0, 0, G_OPTION_ARG_NONE, &request.quick,
          "Only the few points that a scenario names as its fast subset", NULL },
        { "bands", 0, 0, G_OPTION_ARG_NONE, &request.bands,
          "Each point also with every value that has a range, and was not fitted, at both ends of it; "
          "into results/bands.db, unless --db says otherwise",
          NULL },
        { "seeds", 0, 0, G_OPTION_ARG_INT, &request.n_seeds, "Run each point with N seeds", "N" },
        { "seed", 0, 0, G_OPTION_ARG_INT64, &request.first_seed, "The first seed (default 1)",
          "S" },
        { "until", 0, 0, G_OPTION_ARG_STRING, &request.until_text,
          "More seeds, at most --seeds N, until half a metric's 95 % interval is within 1 % of the "
          "mean; 'METRIC 2.5' within 2.5 of the metric's unit",
          "'METRIC 1%'" },
        { "precision", 0, 0, G_OPTION_ARG_STRING, &request.precision_text, RUN_PRECISION_TEXT,
          "RATIO" },
        { "missing", 0, 0, G_OPTION_ARG_NONE, &request.missing,
          "Run only what the database does not have (the default)", NULL },
        { "force", 0, 0, G_OPTION_ARG_NONE, &request.force,
          "Run what the database has already, too", NULL },
        { "timeout", 0, 0, G_OPTION_ARG_DOUBLE, &request.timeout_s,
          "A run that takes longer has failed", "SECONDS" },
        { "run-memory", 0, 0, G_OPTION_ARG_STRING, &request.run_memory_text,
          "A run that needs more memory has failed", "SIZE" },
        { "memory", 0, 0, G_OPTION_ARG_STRING, &request.memory_text,
          "Runs wait while those that go on need that much (default: what is free)", "SIZE" },
        { "list", 0, 0, G_OPTION_ARG_NONE, &request.list, "Print the points, run nothing", NULL },
        { "print-config", 0, 0, G_OPTION_ARG_NONE, &request.print_config,
          "Print the resolved configuration of each point, run nothing", NULL },
        { "trace-address", 0, 0, G_OPTION_ARG_STRING, &request.trace_text,
          "Run the first point only and print the way of a device's DMA write and read, address by "
          "address, with the tables' entries; DEVICE (default: the first that does any), write=N, "
          "read=N, bytes=N",
          "[DEVICE],..." },
        { "trace", 0, 0, G_OPTION_ARG_FILENAME, &request.steps_text,
          "Run one point and write a trace for Perfetto to FILE.pftrace; a number: run the first point and "
          "print the first N steps of its software after the warm-up",
          "FILE.pftrace|N" },
        { "stats", 0, 0, G_OPTION_ARG_NONE, &request.stats,
          "Print every metric, not only those that the scenario plots", NULL },
        { "progress", 0, 0, G_OPTION_ARG_INT, &request.progress_s, RUN_PROGRESS_TEXT, "SECONDS" },
        { "quiet", 'q', 0, G_OPTION_ARG_NONE, &request.quiet, "No progress, only faults", NULL },
        { .long_name = NULL },
    };
    g_autofree GOptionEntry *all = with_trace_files(entries, &request.trace_files);
    int status = CLI_DONE;
    if (cli_has_option("--bands", argc, argv))
        request.options.default_db = "bands.db";
    allow_no_value("--trace-address", trace_address, argc, argv);
    if (cli_parse(&request.options, "SCENARIO...",
                  "Runs the points of scenarios and stores the results.",
                  "SCENARIO is a name (nudma list), a folder of names, or a file. Mistakes in any "
                  "point are found before\nanything runs. What the database has for the same "
                  "configuration, seed and version is not run again.\nCtrl-C loses no finished "
                  "run; the same command goes on.",
                  all, argc, argv, &status))
        status = take_texts(&request) && is_sound(&request, request.options.arguments)
                     ? run_scenarios(&request, request.options.arguments)
                     : CLI_WRONG;
    run_request_release(&request);
    return status;
}
