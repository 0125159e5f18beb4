/* nudma topology: what is plugged in where, as a scenario's first point builds it. */
#include <errno.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/scenarios.h"
#include "cli/topology/topology.h"
#include "workloads/experiment.h"

static const char *const format_names[] = { "text", "dot", "svg", NULL };

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

static char *draw(const struct topology *topology, const struct scenario *scenario,
                  const char *format, bool heading)
{
    if (strcmp(format, "svg") == 0)
        return topology_svg(topology, "topology");
    if (strcmp(format, "dot") == 0)
        return topology_dot(topology, scenario_name(scenario));
    char *text = topology_text(topology);
    if (!heading)
        return text;
    char *whole = g_strdup_printf("%s\n%s\n", scenario_name(scenario), text);
    g_free(text);
    return whole;
}

/* The whole drawing of all scenarios; NULL with mistakes in errors, or if dot failed, which has then
 * said so. */
static char *draw_all(GPtrArray *scenarios, const char *format, struct sim_error_list *errors)
{
    GString *all = g_string_new(NULL);
    bool failed = false;
    for (guint i = 0; i < scenarios->len; i++) {
        struct scenario *scenario = scenarios->pdata[i];
        struct config *config = scenario_point(scenario, 0, errors);
        struct topology *topology = config != NULL && experiment_check(config, errors)
                                        ? topology_new(config, errors)
                                        : NULL;
        g_autofree char *drawn = topology != NULL
                                     ? draw(topology, scenario, format, scenarios->len > 1)
                                     : NULL;
        failed = failed || drawn == NULL;
        g_string_append(all, drawn != NULL ? drawn : "");
        topology_free(topology);
        config_free(config);
    }
    return g_string_free(all, failed);
}

static int write_topology(const char *drawn, const char *output)
{
    if (output == NULL) { /* main() says what cannot be written */
        fputs(drawn, stdout);
        return CLI_DONE;
    }
    struct cli_output *out = cli_output_new(output);
    if (out == NULL)
        return CLI_FAILED;
    fputs(drawn, cli_output_file(out));
    return cli_output_end(out, true) ? CLI_DONE : CLI_FAILED;
}

static int run_topology(const struct cli_options *options, char **sets, const char *format,
                        const char *output)
{
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
    g_autofree char *drawn = errors.n_messages == 0 ? draw_all(scenarios, format, &errors) : NULL;
    if (errors.n_messages == 0)
        status = drawn != NULL ? write_topology(drawn, output) : CLI_FAILED;
    cli_report(&errors);
    return status;
}

int cli_topology(int argc, char **argv)
{
    struct cli_options options = { 0 };
    g_autofree char *format = NULL, *output = NULL;
    g_auto(GStrv) sets = NULL;
    const GOptionEntry entries[] = {
        { "format", 'F', 0, G_OPTION_ARG_STRING, &format,
          "text (default), dot (for Graphviz), svg; without: as FILE ends", "FORMAT" },
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &output, "Write FILE", "FILE" },
        { "set", 's', 0, G_OPTION_ARG_STRING_ARRAY, &sets, "Change a setting, as run does",
          "PATH=VALUE" },
        { .long_name = NULL },
    };
    int status = CLI_DONE;
    if (cli_parse(
            &options, "SCENARIO...", "Shows hosts, sockets, root ports, devices and cables.",
            "As the scenario's first point builds them; --set axes.NAME=VALUE chooses another.",
            entries, argc, argv, &status)) {
        const char *found = find_format(format, output);
        status = found != NULL ? run_topology(&options, sets, found, output) : CLI_WRONG;
    }
    cli_options_release(&options);
    return status;
}
