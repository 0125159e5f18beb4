/* nudma explain: what limits one point of a scenario. */
#include <string.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/campaign/plan.h"
#include "cli/campaign/stop.h"
#include "cli/explain/explain.h"

static int explain(const struct cli_options *options, const struct plan_choice *choice,
                   struct explain_request *request, const char *command_line)
{
    struct sim_error_list errors = { 0 };
    struct explain_answer answer = { 0 };
    g_autofree char *error = NULL;
    int status = CLI_WRONG;
    struct plan *plan = plan_new(options, options->arguments, choice, &errors);
    if (errors.n_messages == 0)
        plan_check_first(plan, &errors);
    if (errors.n_messages == 0) {
        const struct plan_point *point = plan_point(plan, 0);
        const char *name = plan_point_name(point);
        request->scenario = point->scenario;
        request->point = point->index;
        struct stop stop;
        stop_begin(&stop);
        request->stop_fd = stop.fd;
        const bool good = explain_point(request, &answer, &errors, &error);
        const bool stopped = stop_has_come(stop.fd);
        stop_end(&stop);
        if (stopped) {
            g_autofree char *typed = cli_typed(command_line);
            fprintf(stderr,
                    "interrupted: nothing is kept, as explain stores no runs; begin again with\n"
                    "  %s\n",
                    typed);
            status = CLI_INTERRUPTED;
        } else if (good) {
            g_autofree char *text = explain_text(&answer);
            cli_print_line(stdout, "%s%s%s, seed %" G_GUINT64_FORMAT,
                           scenario_name(point->scenario), *name != '\0' ? " " : "", name,
                           request->seed);
            cli_print_lines(text);
            status = CLI_DONE;
        } else if (error != NULL) {
            fprintf(stderr, "%s %s: %s\n", scenario_name(point->scenario), name, error);
            status = CLI_FAILED;
        }
    }
    if (errors.n_messages > 0 && status != CLI_INTERRUPTED)
        status = CLI_WRONG;
    cli_report(&errors);
    explain_release(&answer);
    plan_free(plan);
    return status;
}

int cli_explain(int argc, char **argv)
{
    struct cli_options options = { .no_db = true };
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    g_autofree char *metric = NULL, *better = NULL;
    g_auto(GStrv) sets = NULL, points = NULL;
    int n_workers = online > 0 ? (int)online : 1, status = CLI_DONE;
    gint64 seed = 1;
    gboolean brief = FALSE;
    g_autofree char *command_line = cli_command_line("explain", argc, argv);
    const GOptionEntry entries[] = {
        { "point", 'f', 0, G_OPTION_ARG_STRING_ARRAY, &points,
          "The first point whose axis values match: 'op=read transfer_bytes=64'", "EXPRESSION" },
        { "metric", 'm', 0, G_OPTION_ARG_STRING, &metric,
          "What is to be better (default: the first that the scenario plots)", "NAME" },
        { "better", 0, 0, G_OPTION_ARG_STRING, &better,
          "Whether more or less of it is better (default: by its name and unit; of mere numbers, "
          "changes to either side are shown)",
          "more|less" },
        { "set", 's', 0, G_OPTION_ARG_STRING_ARRAY, &sets, "Change a setting, as run does",
          "PATH=VALUE" },
        { "jobs", 'j', 0, G_OPTION_ARG_INT, &n_workers,
          "Run N at a time (default: one per processor)", "N" },
        { "brief", 0, 0, G_OPTION_ARG_NONE, &brief,
          "Only the limit, not what comes next: half of the runs", NULL },
        { "seed", 0, 0, G_OPTION_ARG_INT64, &seed, "The seed (default 1)", "S" },
        { .long_name = NULL },
    };
    if (cli_parse(&options, "SCENARIO", "Says what limits a point, and what would come next.",
                  "Each resource (links, credits, tags, DDIO ways, DRAM, cores ...) gets twice as "
                  "much, and the point\nruns again. Nothing is stored.",
                  entries, argc, argv, &status)) {
        const struct plan_choice choice = { .sets = (const char *const *)sets,
                                            .filters = (const char *const *)points,
                                            .filter_option = "--point" };
        struct explain_request request = { .seed = (uint64_t)seed,
                                           .metric = metric,
                                           .better = better == NULL                ? EXPLAIN_BY_NAME
                                                     : strcmp(better, "less") == 0 ? EXPLAIN_LESS
                                                                                   : EXPLAIN_MORE,
                                           .n_workers = (unsigned)n_workers,
                                           .threshold_ratio = 0.01,
                                           .brief = brief,
                                           .shows_progress = cli_is_terminal(STDERR_FILENO),
                                           .prints_runs = !cli_is_terminal(STDERR_FILENO) };
        status = CLI_WRONG;
        if (options.arguments[0] == NULL || options.arguments[1] != NULL)
            fprintf(stderr, "nudma explain: expected one scenario (nudma list shows them)\n");
        else if (n_workers < 1 || n_workers > 4096 || seed < 0)
            fprintf(stderr, "nudma explain: -j: expected 1..4096; --seed: 0 or more\n");
        else if (better != NULL && strcmp(better, "more") != 0 && strcmp(better, "less") != 0)
            fprintf(stderr, "nudma explain: --better: found \"%s\", expected more or less\n",
                    better);
        else
            status = explain(&options, &choice, &request, command_line);
    }
    cli_options_release(&options);
    return status;
}
