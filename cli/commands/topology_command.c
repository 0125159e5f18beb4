/* nudma topology: what is plugged in where, as a scenario's first point builds it. */
#include <errno.h>
#include <string.h>

#include "cli/base/blame.h"
#include "cli/base/cli.h"
#include "cli/base/scenarios.h"
#include "cli/topology/topology.h"
#include "sim/config/filter.h"

static const char *const format_names[] = { "text", "dot", "svg", "hwloc", NULL };

/* What follows the last dot of the file's name; NULL without. */
static const char *ending_of(const char *output)
{
    const char *slash = output != NULL ? strrchr(output, '/') : NULL;
    const char *name = slash != NULL ? slash + 1 : output;
    const char *dot = name != NULL ? strrchr(name, '.') : NULL;
    return dot != NULL ? dot + 1 : NULL;
}

/* The format asked for, else that of the file's ending, else text; NULL with a message. */
static const char *find_format(const char *format, const char *output)
{
    const char *ending = ending_of(output), *wanted = format != NULL ? format : ending;
    if (wanted == NULL || (format == NULL && strcmp(ending, "txt") == 0))
        return format_names[0];
    for (const char *const *name = format_names; *name != NULL; name++) {
        if (strcmp(*name, wanted) == 0)
            return *name;
    }
    if (format == NULL) {
        fprintf(stderr,
                "nudma topology: --output %s: no format has this ending; expected .txt, .dot or "
                ".svg, or --format\n",
                output);
        return NULL;
    }
    g_autofree char *suggestion = sim_suggestion(format, format_names);
    fprintf(stderr, "nudma topology: --format %s: no such format; %s\n", format, suggestion);
    return NULL;
}

/* What is drawn of a scenario. */
struct wanted {
    const char *format;
    const char *host;      /* that hwloc's XML is of; NULL: the only one */
    GPtrArray *filters;    /* struct filter */
    struct results_db *db; /* NULL: no results */
};

/* The first point that all filters leave. */
static size_t choose_point(const struct scenario *scenario, const struct wanted *wanted,
                           struct sim_error_list *errors)
{
    const struct filter_table table = scenario_table(scenario);
    const size_t n = scenario_n_points(scenario);
    g_autofree bool *selected = g_new(bool, n + 1);
    for (size_t i = 0; i < n; i++)
        selected[i] = true;
    for (guint i = 0; i < wanted->filters->len; i++) {
        g_autofree char *fault = filter_fault(wanted->filters->pdata[i], &table, 1);
        if (fault != NULL) {
            sim_error_add(errors, NULL, 0, "--point: %s", fault);
            return 0;
        }
        filter_apply(wanted->filters->pdata[i], &table, selected);
    }
    for (size_t i = 0; i < n; i++)
        if (selected[i])
            return i;
    sim_error_add(errors, NULL, 0, "--point: no point of %s matches", scenario_name(scenario));
    return 0;
}

static bool read_results(struct topology *topology, const struct scenario *scenario, size_t point,
                         const struct wanted *wanted)
{
    const char *name = scenario_point_name(scenario, point);
    if (wanted->db == NULL ||
        topology_read_results(topology, wanted->db, scenario_name(scenario), name) > 0)
        return true;
    fprintf(stderr,
            "%s%s%s: the database has no run that says how busy its links were (nudma run)\n",
            scenario_name(scenario), *name != '\0' ? " " : "", name);
    return false;
}

static char *draw(const struct topology *topology, const struct scenario *scenario,
                  const struct wanted *wanted, bool heading, struct sim_error_list *errors)
{
    const char *format = wanted->format;
    if (strcmp(format, "svg") == 0)
        return topology_svg(topology, "topology");
    if (strcmp(format, "dot") == 0)
        return topology_dot(topology, scenario_name(scenario));
    if (strcmp(format, "hwloc") == 0)
        return topology_hwloc(topology, wanted->host, errors);
    char *text = topology_text(topology);
    if (!heading)
        return text;
    char *whole = g_strdup_printf("%s\n%s\n", scenario_name(scenario), text);
    g_free(text);
    return whole;
}

/* The whole drawing of all scenarios; NULL with mistakes in errors, or if dot failed, which has
 * then said so. */
static char *draw_all(GPtrArray *scenarios, const struct wanted *wanted,
                      struct sim_error_list *errors)
{
    GString *all = g_string_new(NULL);
    bool failed = false;
    for (guint i = 0; i < scenarios->len; i++) {
        struct scenario *scenario = scenarios->pdata[i];
        const size_t before = errors->n_messages, point = choose_point(scenario, wanted, errors);
        struct config *config = errors->n_messages == before
                                    ? cli_checked_point(scenario, point, errors)
                                    : NULL;
        struct topology *topology = config != NULL ? topology_new(config, errors) : NULL;
        const bool sound = topology != NULL && read_results(topology, scenario, point, wanted);
        g_autofree char *drawn = sound
                                     ? draw(topology, scenario, wanted, scenarios->len > 1, errors)
                                     : NULL;
        failed = failed || drawn == NULL;
        g_string_append(all, drawn != NULL ? drawn : "");
        topology_free(topology);
        config_free(config);
    }
    return g_string_free(all, failed);
}

static int write_topology(const char *drawn, const char *output, bool is_text)
{
    if (output == NULL) { /* main() says what cannot be written */
        if (is_text)
            cli_print_lines(drawn);
        else
            fputs(drawn, stdout);
        return CLI_DONE;
    }
    struct cli_output *out = cli_output_new(output);
    if (out == NULL)
        return CLI_FAILED;
    fputs(drawn, cli_output_file(out));
    return cli_output_end(out, true) ? CLI_DONE : CLI_FAILED;
}

static int run_topology(const struct cli_options *options, char **sets, struct wanted *wanted,
                        char **points, const char *output)
{
    const char *format = wanted->format;
    struct sim_error_list errors = { 0 };
    int status = CLI_WRONG;
    if (*options->arguments == NULL) {
        fprintf(stderr, "nudma topology: which scenario? (nudma list shows them)\n");
        return CLI_WRONG;
    }
    g_autoptr(GPtrArray) scenarios = cli_load_scenarios(options, options->arguments,
                                                        (const char *const *)sets, &errors);
    if (errors.n_messages == 0 && scenarios->len > 1 && strcmp(format, "text") != 0)
        sim_error_add(&errors, NULL, 0,
                      "--format %s: found %u scenarios, expected one (text shows several)", format,
                      scenarios->len);
    wanted->filters = cli_filters((const char *const *)points, "--point", &errors);
    g_autofree char *drawn = errors.n_messages == 0 ? draw_all(scenarios, wanted, &errors) : NULL;
    g_ptr_array_free(wanted->filters, TRUE);
    if (errors.n_messages == 0)
        status = drawn != NULL ? write_topology(drawn, output, strcmp(format, "text") == 0)
                               : CLI_FAILED;
    cli_report(&errors);
    return status;
}

int cli_topology(int argc, char **argv)
{
    struct cli_options options = { 0 };
    g_autofree char *format = NULL, *output = NULL, *host = NULL;
    g_auto(GStrv) sets = NULL, points = NULL;
    gboolean results = FALSE;
    const GOptionEntry entries[] = {
        { "format", 'F', 0, G_OPTION_ARG_STRING, &format,
          "text (default), dot (for Graphviz), svg, hwloc (XML for lstopo -i); without: as FILE ends",
          "FORMAT" },
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &output, "Write FILE", "FILE" },
        { "host", 0, 0, G_OPTION_ARG_STRING, &host, "Of several hosts the one for --format hwloc",
          "NAME" },
        { "set", 's', 0, G_OPTION_ARG_STRING_ARRAY, &sets, "Change a setting, as run does",
          "PATH=VALUE" },
        { "point", 'f', 0, G_OPTION_ARG_STRING_ARRAY, &points,
          "The first point whose axis values match: 'op=read transfer_bytes=64'", "EXPRESSION" },
        { "results", 0, 0, G_OPTION_ARG_NONE, &results,
          "Say how busy each link was in the runs of the database, by number and colour; --db says so, too",
          NULL },
        { .long_name = NULL },
    };
    int status = CLI_DONE;
    if (cli_parse(&options, "SCENARIO...", "Shows hosts, sockets, root ports, devices and cables.",
                  "As the scenario's first point builds them; --point chooses another.", entries,
                  argc, argv, &status)) {
        const char *found = find_format(format, output);
        struct wanted wanted = { .format = found, .host = host };
        results = results || options.db_said; /* a database is named for nothing else */
        if (found != NULL && results)
            wanted.db = cli_open_for_reading(&options);
        const bool no_host = host != NULL && found != NULL && strcmp(found, "hwloc") != 0;
        if (no_host)
            fprintf(stderr, "nudma topology: --host %s: --format %s shows all hosts\n", host,
                    found);
        if (found == NULL || no_host || !cli_writes_elsewhere(output, &options, NULL))
            status = CLI_WRONG;
        else if (results && wanted.db == NULL)
            status = CLI_FAILED;
        else
            status = run_topology(&options, sets, &wanted, points, output);
        if (wanted.db != NULL)
            results_close(wanted.db);
    }
    cli_options_release(&options);
    return status;
}
