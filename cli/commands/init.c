/* nudma init: a commented scenario to begin with, after one of scenarios/templates/. */
#include <glib/gstdio.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/scenarios.h"
#include "workloads/experiment.h"

#define TEMPLATE_DEFAULT  "pcie_bench"
#define PLATFORM_DEFAULT  "r730"
#define TEMPLATE_PLATFORM "platforms/" PLATFORM_DEFAULT ".cfg" /* what --platform replaces */
#define REMOTE            "{ name = \"remote\";" /* begins the line of a variant with a second socket */
#define USERS_SHOWN       3u

/* The path of folder/name.cfg, g_free(); NULL with the nearest names printed. */
static char *find(const struct cli_options *options, const char *option, const char *folder,
                  const char *name, bool lists_all)
{
    g_autofree char *file = g_strconcat(folder, "/", name, ".cfg", NULL);
    char *path = strchr(name, '/') == NULL ? cli_find_file(options, file) : NULL;
    if (path != NULL)
        return path;
    g_auto(GStrv) names = cli_names_in(options, folder);
    const bool near = sim_nearest_name(name, (const char *const *)names) != NULL;
    g_autofree char *suggestion = near || !lists_all
                                      ? sim_suggestion(name, (const char *const *)names)
                                      : g_strdup("");
    g_autofree char *all = g_strjoinv(", ", names);
    fprintf(stderr, "nudma init: %s %s: expected %s%s%s%s\n", option, name,
            lists_all ? "one of " : "a machine of scenarios/platforms", lists_all ? all : "",
            *suggestion != '\0' ? "; "
            : lists_all         ? ""
                                : "; nudma list --names=machines shows them",
            suggestion);
    return NULL;
}

/* False with a message: the platform is more than a machine, which is what templates have a place
 * for. */
static bool is_machine(const struct cli_options *options, const char *platform)
{
    if (cli_is_machine(options, platform))
        return true;
    g_auto(GStrv) machines = cli_machine_names(options);
    g_autofree char *file = g_strconcat("platforms/", platform, ".cfg", NULL);
    g_autofree char *all = g_strjoinv(", ", machines);
    g_auto(GStrv) users = cli_scenarios_that_name(options, file, USERS_SHOWN);
    g_autofree char *used = g_strjoinv(", ", users);
    fprintf(
        stderr,
        "nudma init: --platform %s: is a set-up with hosts and devices of its own, expected one "
        "machine, to be laid out here: %s%s%s\n",
        platform, all, *used != '\0' ? "; scenarios on it to begin with: " : "", used);
    return false;
}

/* The text of the new file; g_free(). NULL with the reason printed. */
static char *compose(const struct cli_options *options, const char *workload, const char *platform)
{
    g_autofree char *path = find(options, "--workload", "templates", workload, true);
    g_autofree char *machine = path != NULL
                                   ? find(options, "--platform", "platforms", platform, false)
                                   : NULL;
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    if (machine == NULL || !is_machine(options, platform))
        return NULL;
    if (!g_file_get_contents(path, &text, NULL, &error)) {
        fprintf(stderr, "nudma init: %s\n", error->message);
        return NULL;
    }
    g_autofree char *include = g_strconcat("platforms/", platform, ".cfg", NULL);
    g_auto(GStrv) pieces = g_strsplit(text, TEMPLATE_PLATFORM, -1);
    return g_strjoinv(include, pieces);
}

/* The text without the variants that need a second socket; g_free(). NULL: it has none. */
static char *without_remote(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    unsigned n = 0, n_before = g_strv_length(lines);
    for (char **line = lines; *line != NULL; line++) {
        const bool last = !g_str_has_suffix(*line, ",");
        if (g_str_has_prefix(*line + strspn(*line, " "), REMOTE)) {
            g_free(*line);
            if (last && n > 0 && g_str_has_suffix(lines[n - 1], ","))
                lines[n - 1][strlen(lines[n - 1]) - 1] = '\0';
        } else
            lines[n++] = *line;
    }
    lines[n] = NULL;
    return n < n_before ? g_strjoinv("\n", lines) : NULL;
}

/* Writes the text and builds every point, as nudma run will: the machine may lack a port. The file
 * is gone if it does not do: CLI_WRONG, with mistakes in errors. */
static int write_and_check(const struct cli_options *options, const char *text, const char *path,
                           struct sim_error_list *errors)
{
    struct cli_output *out = cli_output_new(path);
    if (out == NULL)
        return CLI_FAILED;
    fputs(text, cli_output_file(out));
    if (!cli_output_end(out, true))
        return CLI_FAILED;
    struct scenario *scenario = scenario_load(path, (const char *const *)options->roots, NULL,
                                              errors);
    for (size_t i = 0;
         scenario != NULL && errors->n_messages == 0 && i < scenario_n_points(scenario); i++) {
        struct config *config = scenario_point(scenario, i, errors);
        if (config != NULL)
            experiment_check(config, errors);
        config_free(config);
    }
    scenario_free(scenario);
    if (errors->n_messages == 0)
        return CLI_DONE;
    g_unlink(path);
    return CLI_WRONG;
}

/* A machine of one socket, or with memory at one only, gets what suits it of the template. */
static int write_what_suits(const struct cli_options *options, const char *text, const char *path,
                            const char *workload, const char *platform)
{
    struct sim_error_list errors = { 0 }, fewer_errors = { 0 };
    int status = write_and_check(options, text, path, &errors);
    g_autofree char *fewer = status == CLI_WRONG ? without_remote(text) : NULL;
    if (fewer != NULL &&
        (status = write_and_check(options, fewer, path, &fewer_errors)) == CLI_DONE) {
        printf("Without the variant \"remote\": %s has no second socket for it, or none with "
               "memory.\n",
               platform);
        sim_error_release(&errors);
    }
    cli_report(&errors);
    sim_error_release(&fewer_errors);
    if (status == CLI_WRONG)
        fprintf(stderr,
                "nudma init: --platform %s does not suit --workload %s; nothing is written\n",
                platform, workload);
    return status;
}

static int init(const struct cli_options *options, const char *workload, const char *platform,
                const char *path)
{
    if (strcmp(path, "-") == 0) {
        fprintf(stderr, "nudma init: -: expected the name of a file, mine.cfg\n");
        return CLI_WRONG;
    }
    if (g_file_test(path, G_FILE_TEST_EXISTS) || g_file_test(path, G_FILE_TEST_IS_SYMLINK)) {
        fprintf(stderr, "nudma init: %s: is there already, and stays as it is; name another file\n",
                path);
        return CLI_WRONG;
    }
    if (!cli_folder_exists("", path))
        return CLI_WRONG;
    g_autofree char *text = compose(options, workload, platform);
    if (text == NULL)
        return CLI_WRONG;
    const int status = write_what_suits(options, text, path, workload, platform);
    if (status != CLI_DONE)
        return status;
    g_autofree char *quoted = g_shell_quote(path);
    const char *shown = strpbrk(path, " '\"\\$&;()<>|*?[]#~`!") != NULL ? quoted : path;
    printf("%s is written. What to do with it:\n"
           "  nudma topology %s\n"
           "  nudma run %s\n"
           "  nudma plot %s --format text\n",
           path, shown, shown, shown);
    return CLI_DONE;
}

/* The templates that there are, as far as is known before --scenarios is read; g_free(). */
static char *about_workloads(void)
{
    struct cli_options options = { .roots = cli_roots(NULL) };
    g_auto(GStrv) names = cli_names_in(&options, "templates");
    g_autofree char *all = g_strjoinv(", ", names);
    g_strfreev(options.roots);
    return g_strdup_printf(
        "What puts load on it: %s (default " TEMPLATE_DEFAULT ", an adapter's DMA)", all);
}

int cli_init(int argc, char **argv)
{
    struct cli_options options = { .no_db = true };
    g_autofree char *workload = NULL, *platform = NULL;
    g_autofree char *about = about_workloads();
    const GOptionEntry entries[] = {
        { "workload", 0, 0, G_OPTION_ARG_STRING, &workload, about, "NAME" },
        { "platform", 0, 0, G_OPTION_ARG_STRING, &platform,
          "The machine, of scenarios/platforms (default " PLATFORM_DEFAULT "); nudma list "
          "--names=machines",
          "NAME" },
        { .long_name = NULL },
    };
    int status = CLI_DONE;
    if (cli_parse(
            &options, "[FILE]", "Writes a commented scenario to begin with.",
            "FILE: what to write (default scenario.cfg); it must not exist. It has a platform, "
            "devices, a workload,\naxes, fast points and a figure, and runs as it stands.",
            entries, argc, argv, &status)) {
        char **files = options.arguments;
        status = CLI_WRONG;
        if (files[0] != NULL && files[1] != NULL)
            fprintf(stderr, "nudma init: %s: expected one file\n", files[1]);
        else
            status = init(&options, workload != NULL ? workload : TEMPLATE_DEFAULT,
                          platform != NULL ? platform : PLATFORM_DEFAULT,
                          files[0] != NULL ? files[0] : "scenario.cfg");
    }
    cli_options_release(&options);
    return status;
}
