/* nudma import: from what lspci, lstopo, dmidecode and numactl say of a server to a scenario. */
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/import/machine.h"
#include "sim/config/scenario.h"
#include "workloads/experiment.h"

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Of a folder: all regular files, those of no known format are passed over. */
static void read_folder(struct import_machine *machine, const char *folder, const char *output,
                        unsigned *n_read, struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;
    GDir *dir = g_dir_open(folder, 0, &error);
    const unsigned before = *n_read;
    if (dir == NULL) {
        sim_error_add(errors, folder, 0, "%s", error->message);
        return;
    }
    for (const char *name; (name = g_dir_read_name(dir)) != NULL;) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
            g_ptr_array_add(paths, g_steal_pointer(&path));
    }
    g_dir_close(dir);
    g_ptr_array_sort(paths, by_name);
    for (guint i = 0; i < paths->len; i++) {
        bool known;
        import_file(machine, paths->pdata[i], false, &known, errors);
        *n_read += known;
        if (known && output != NULL && cli_same_file(paths->pdata[i], output))
            sim_error_add(errors, output, 0,
                          "is a file that is read here, expected another one to write");
    }
    if (*n_read == before && errors->n_messages == 0)
        sim_error_add(errors, folder, 0,
                      "no file in it is what lspci -vvv, lstopo, dmidecode or numactl -H print");
}

/* Loads what was written, as nudma run would: a fault here is ours or the family's. */
static void check_result(const struct import_machine *machine, struct import_choice choice,
                         struct sim_error_list *errors)
{
    g_autofree char *path = NULL;
    g_autoptr(GPtrArray) notes = g_ptr_array_new_with_free_func(g_free);
    const int fd = g_file_open_tmp("nudma-import-XXXXXX.cfg", &path, NULL);
    if (fd < 0)
        return; /* no folder for it: nudma run will check */
    close(fd);
    choice.platform = false;
    g_autofree char *text = import_write(machine, &choice, notes, errors);
    if (text != NULL && g_file_set_contents(path, text, -1, NULL)) {
        struct scenario *scenario = scenario_load(path, choice.roots, NULL, errors);
        struct config *config = scenario != NULL && errors->n_messages == 0
                                    ? scenario_point(scenario, 0, errors)
                                    : NULL;
        if (config != NULL)
            experiment_check(config, errors);
        config_free(config);
        scenario_free(scenario);
    }
    g_unlink(path);
}

static int write_result(const char *text, const char *output)
{
    if (output == NULL) {
        fputs(text, stdout);
        return CLI_DONE;
    }
    struct cli_output *out = cli_output_new(output);
    if (out == NULL)
        return CLI_FAILED;
    fputs(text, cli_output_file(out));
    return cli_output_end(out, true) ? CLI_DONE : CLI_FAILED;
}

/* What was written before has perhaps been edited since. */
static bool is_new(const char *output)
{
    if (output == NULL || strcmp(output, "-") == 0 || !g_file_test(output, G_FILE_TEST_IS_REGULAR))
        return true;
    fprintf(stderr, "nudma import: %s: is there already, and stays as it is; name another file\n",
            output);
    return false;
}

static int import(struct cli_options *options, const struct import_choice *choice,
                  const char *output)
{
    struct sim_error_list errors = { 0 };
    struct import_machine machine;
    g_autoptr(GPtrArray) notes = g_ptr_array_new_with_free_func(g_free);
    unsigned n_read = 0;
    int status = CLI_WRONG;
    import_machine_init(&machine);
    for (char **argument = options->arguments; *argument != NULL; argument++) {
        bool known;
        const bool standard = strcmp(*argument, "-") == 0;
        if (!standard && g_file_test(*argument, G_FILE_TEST_IS_DIR)) {
            read_folder(&machine, *argument, output, &n_read, &errors);
        } else {
            import_file(&machine, standard ? "/dev/stdin" : *argument, true, &known, &errors);
            n_read++;
        }
    }
    g_autofree char *text = errors.n_messages == 0 ? import_write(&machine, choice, notes, &errors)
                                                   : NULL;
    if (errors.n_messages == 0) {
        check_result(&machine, *choice, &errors);
        if (errors.n_messages != 0)
            fprintf(stderr, "nudma import: what was read makes no platform that loads:\n");
    }
    const bool good = errors.n_messages == 0 && is_new(output);
    for (guint i = 0; good && i < notes->len; i++)
        fprintf(stderr, "nudma import: %s\n", (const char *)notes->pdata[i]);
    if (good)
        status = write_result(text, output);
    cli_report(&errors);
    import_machine_release(&machine);
    return status;
}

static bool is_name(const char *name)
{
    return g_regex_match_simple("^[a-z][a-z0-9_]*$", name, 0, 0);
}

int cli_import(int argc, char **argv)
{
    struct cli_options options = { .no_db = true };
    g_autofree char *output = NULL, *family = NULL, *host = NULL;
    gboolean platform = FALSE;
    const GOptionEntry entries[] = {
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &output, "Write FILE", "FILE" },
        { "platform", 0, 0, G_OPTION_ARG_NONE, &platform,
          "Hosts, devices and cables alone, for @include and --set @FILE", NULL },
        { "family", 0, 0, G_OPTION_ARG_STRING, &family,
          "The processor family to take what is unknown from (default: by the processor)", "NAME" },
        { "host", 0, 0, G_OPTION_ARG_STRING, &host, "The name of the host (default server)",
          "NAME" },
        { .long_name = NULL },
    };
    int status = CLI_DONE;
    if (cli_parse(
            &options, "FILE|FOLDER...",
            "Writes a scenario of a real server from what its tools print.",
            "On the server, as root:\n  lspci -vvv >lspci.txt; lstopo --of xml >lstopo.xml; "
            "dmidecode >dmidecode.txt; numactl -H >numactl.txt\nAny of them will do; each is "
            "known by its first line; - is standard input. What no tool says is\ntaken from the "
            "nearest family.",
            entries, argc, argv, &status)) {
        const struct import_choice choice = {
            .roots = (const char *const *)options.roots,
            .family = family,
            .host = host != NULL ? host : "server",
            .platform = platform,
        };
        status = CLI_WRONG;
        if (*options.arguments == NULL)
            fprintf(stderr, "nudma import: which files? (lspci -vvv >lspci.txt, see --help)\n");
        else if (!is_name(choice.host))
            fprintf(stderr, "nudma import: --host %s: expected a name of a-z, 0-9 and _\n",
                    choice.host);
        else if (cli_writes_elsewhere(output, &options, NULL))
            status = import(&options, &choice, output);
    }
    cli_options_release(&options);
    return status;
}
