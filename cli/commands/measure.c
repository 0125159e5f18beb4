/* nudma measure: which benchmarks tell what the model has to be told of a real server. */
#include <errno.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/scenarios.h"
#include "cli/base/script.h"
#include "cli/measure/measure.h"
#include "sim/config/config.h"
#include "workloads/experiment.h"

/* ---- The platform ---------------------------------------------------------------------------- */

/* NULL with the mistake. */
static char *find_path(const struct measure *measure, struct sim_error_list *errors)
{
    const char *name = measure->platform;
    if (g_file_test(name, G_FILE_TEST_IS_REGULAR))
        return g_strdup(name);
    g_autofree char *file = g_strconcat("platforms/", name, ".cfg", NULL);
    char *path = strchr(name, '/') == NULL ? cli_find_file(&measure->options, file) : NULL;
    if (path == NULL) {
        g_auto(GStrv) names = cli_names_in(&measure->options, "platforms");
        g_autofree char *suggestion = sim_suggestion(name, (const char *const *)names);
        sim_error_add(errors, NULL, 0,
                      "%s: neither a file nor a machine of scenarios/platforms%s%s", name,
                      *suggestion != '\0' ? "; " : "", suggestion);
    }
    return path;
}

/* A platform is the group of a host, as below scenarios/platforms/, or hosts, devices and cables,
 * as `nudma import --platform` writes them: `*group` says which. False with the mistake. */
static bool is_platform(const struct measure *measure, const char *path, bool *group,
                        struct sim_error_list *errors)
{
    struct config *config = config_load_searching(path, (const char *const *)measure->options.roots,
                                                  errors);
    struct config_node *root = config != NULL ? config_root(config) : NULL;
    struct config_node *hosts = root != NULL ? config_find(root, "hosts") : NULL;
    if (config == NULL)
        return false;
    if (config_find(root, "workload") != NULL || config_find(root, "axes") != NULL)
        sim_error_add(errors, path, 0,
                      "is a scenario, expected a platform (nudma import --platform)");
    else if (hosts != NULL && (config_count(hosts) != 1 || config_find(hosts, "server") == NULL))
        sim_error_add(errors, path, config_line(hosts),
                      "hosts: expected one, called \"server\" (nudma import --platform)");
    else if (hosts == NULL && config_find(root, "dram") == NULL)
        sim_error_add(errors, path, 0, "expected a platform: neither hosts nor dram are in it");
    *group = hosts == NULL;
    config_free(config);
    return errors->n_messages == 0;
}

/* The group of a host becomes a file that includes it, so that mistakes name the platform's own. */
static bool wrap(struct measure *measure, const char *path, struct sim_error_list *errors)
{
    g_autofree char *message = NULL;
    g_autofree char *whole = g_canonicalize_filename(path, NULL);
    g_autofree char *text = g_strdup_printf("hosts = { server = {\n@include \"%s\"\n}; };\n",
                                            whole);
    if (strpbrk(whole, "\"\n") != NULL) {
        sim_error_add(errors, path, 0, "a path with a quote or a newline cannot be included");
        return false;
    }
    measure->set_fd = script_file(&measure->set_path, &message);
    const bool written = measure->set_fd >= 0 &&
                         write(measure->set_fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (!written) {
        sim_error_add(errors, NULL, 0, "a file for the platform cannot be written: %s",
                      message != NULL ? message : g_strerror(errno));
        return false;
    }
    return true;
}

bool measure_find_platform(struct measure *measure, struct sim_error_list *errors)
{
    g_autofree char *path = find_path(measure, errors);
    bool group = false;
    if (path == NULL || !is_platform(measure, path, &group, errors) ||
        (group && !wrap(measure, path, errors)))
        return false;
    measure->sets[0] = g_strconcat("@", group ? measure->set_path : path, NULL);
    return true;
}

/* ---- What to run ----------------------------------------------------------------------------- */

struct values {
    const char *path;
    char *text; /* "19 ns, calibrated" */
};

static void take_value(void *context, const char *path, const char *value, const char *unit,
                       enum param_provenance provenance, const char *origin)
{
    struct values *values = context;
    (void)origin;
    if (strcmp(path, values->path) != 0)
        return;
    g_free(values->text);
    values->text = g_strdup_printf(
        "%s%s%s%s%s", value, *unit != '\0' ? " " : "", unit, provenance != PROV_NONE ? ", " : "",
        provenance != PROV_NONE ? param_provenance_name(provenance) : "");
}

/* "19 ns, calibrated"; g_free() */
static char *value_of(const struct config *config, const char *path)
{
    struct values values = { .path = path };
    config_each_param(config, take_value, &values);
    return values.text != NULL ? values.text : g_strdup("-");
}

static const struct {
    const char *command, *reads; /* what it tells */
    const char *settings[2];     /* of hosts.server; "": none, the value is compared */
} commands[] = {
    { "mlc --latency_matrix >mlc_latency.txt",
      "idle latency of memory",
      { "dram.controller_ns", "interconnect.one_way_ns" } },
    { "mlc --bandwidth_matrix >mlc_bandwidth.txt", "read bandwidth, of all cores", { "", "" } },
    { "mlc --loaded_latency >mlc_loaded.txt", "latency under load", { "", "" } },
    { "nfp_pciebench.py: lat_cmd_sweep_rd_rnd_64.csv",
      "64 B DMA read, cold, without IOMMU",
      { "root_complex.inbound_ns", "root_complex.outbound_ns" } },
    { "nfp_pciebench.py: lat_cmd_sweep_rd_rnd_64.csv below ...-iommu-nosp/",
      "the same of 64 MiB, through the IOMMU",
      { "iommu.walk_fixed_ns", "" } },
    { "nfp_pciebench.py: bw_dma_sz_sweep.csv", "DMA bandwidth", { "", "" } },
};

static const struct {
    const char *command, *reads;
} instead[] = {
    { "numactl -N0 -m0 lat_mem_rd -t 1024 512 2>lat_mem_rd.txt",
      "idle latency of local memory (lmbench)" },
    { "likwid-bench -t load -w S0:2GB >likwid.txt", "read bandwidth of a socket (likwid)" },
    { "perf stat -a -o perf.txt -e uncore_imc/cas_count_read/ PROGRAM",
      "what memory controllers read while all cores of all sockets do" },
};

static void print_list(const struct measure *measure, const struct config *config)
{
    struct cli_table *table = cli_table_new("command|measures|decides|now");
    for (size_t i = 0; i < SIM_N_ELEMENTS(commands); i++) {
        for (unsigned k = 0; k < 2; k++) {
            const char *setting = commands[i].settings[k];
            if (k > 0 && *setting == '\0')
                continue;
            g_autofree char *path = g_strconcat("hosts.server.", setting, NULL);
            g_autofree char *now = *setting != '\0' ? value_of(config, path) : g_strdup("");
            cli_table_cell(table, "%s", k == 0 ? commands[i].command : "");
            cli_table_cell(table, "%s", k == 0 ? commands[i].reads : "");
            cli_table_cell(table, "%s", *setting != '\0' ? setting : "(compared)");
            cli_table_cell(table, "%s", now);
        }
    }
    printf("On the real machine, as root and with nothing else running:\n");
    cli_table_print(table, "  ", stdout);
    cli_table_free(table);
    table = cli_table_new("where there is no MLC|measures");
    for (size_t i = 0; i < SIM_N_ELEMENTS(instead); i++) {
        cli_table_cell(table, "%s", instead[i].command);
        cli_table_cell(table, "%s", instead[i].reads);
    }
    printf("\n");
    cli_table_print(table, "  ", stdout);
    cli_table_free(table);
    g_autofree char *quoted = g_shell_quote(measure->platform);
    const bool plain = strpbrk(measure->platform, " '\"\\$&;()<>|*?[]#~`!") == NULL;
    printf(
        "\nThen here: nudma measure %s --read mlc_latency.txt --read ... --output measured.cfg\n",
        plain ? measure->platform : quoted);
}

static int list(struct measure *measure)
{
    struct sim_error_list errors = { 0 };
    struct scenario *scenario = scenario_load("numa/memory_latency",
                                              (const char *const *)measure->options.roots,
                                              (const char *const *)measure->sets, &errors);
    struct config *config = scenario != NULL && errors.n_messages == 0
                                ? scenario_point(scenario, 0, &errors)
                                : NULL;
    const bool good = config != NULL && experiment_check(config, &errors);
    if (good)
        print_list(measure, config);
    config_free(config);
    scenario_free(scenario);
    cli_report(&errors);
    return good ? CLI_DONE : CLI_WRONG;
}

/* ---- The command ----------------------------------------------------------------------------- */

static int run(struct measure *measure)
{
    struct sim_error_list errors = { 0 };
    measurements_init(&measure->measurements);
    bool good = measure_find_platform(measure, &errors);
    for (char **file = measure->read; good && file != NULL && *file != NULL; file++)
        good = measurements_read(&measure->measurements, *file, &errors);
    cli_report(&errors);
    const int status = !good                   ? CLI_WRONG
                       : measure->read == NULL ? list(measure)
                                               : measure_fit(measure);
    if (measure->set_path != NULL)
        close(measure->set_fd);
    g_free(measure->set_path);
    g_free(measure->sets[0]);
    measurements_release(&measure->measurements);
    return status;
}

/* Regular files: both may go to /dev/stdout. */
static bool same_outputs(const struct measure *measure)
{
    if (measure->output == NULL || measure->claims == NULL)
        return false;
    g_autofree char *settings = g_canonicalize_filename(measure->output, NULL);
    g_autofree char *claims = g_canonicalize_filename(measure->claims, NULL);
    const bool there = g_file_test(settings, G_FILE_TEST_EXISTS);
    if (there && !g_file_test(settings, G_FILE_TEST_IS_REGULAR))
        return false;
    return strcmp(settings, claims) == 0 || cli_same_file(settings, claims);
}

int cli_measure(int argc, char **argv)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    struct measure measure = { .options.no_db = true, .n_workers = online > 0 ? (int)online : 1 };
    measure.command_line = cli_command_line("measure", argc, argv);
    const GOptionEntry entries[] = {
        { "read", 'r', 0, G_OPTION_ARG_FILENAME_ARRAY, &measure.read,
          "Read what a benchmark has printed (several times)", "FILE" },
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &measure.output,
          "Write the settings that follow to FILE", "FILE" },
        { "claims", 0, 0, G_OPTION_ARG_FILENAME, &measure.claims,
          "Write what was measured to FILE, as claims", "FILE" },
        { "jobs", 'j', 0, G_OPTION_ARG_INT, &measure.n_workers,
          "Run N points at a time (default: one per processor)", "N" },
        { .long_name = NULL },
    };
    int status = CLI_DONE;
    if (cli_parse(&measure.options, "PLATFORM",
                  "Says what to measure on a real machine, and takes it into its platform.",
                  "PLATFORM: a machine of scenarios/platforms, or a file as nudma import "
                  "--platform writes it.\nWithout --read the commands are printed; --read takes "
                  "the output of mlc,\npcie-bench, lat_mem_rd, likwid-bench, perf stat.",
                  entries, argc, argv, &status)) {
        char **names = measure.options.arguments;
        status = CLI_WRONG;
        if (names[0] == NULL || names[1] != NULL)
            fprintf(stderr, "nudma measure: expected one PLATFORM (see --help)\n");
        else if (measure.read == NULL && (measure.output != NULL || measure.claims != NULL))
            fprintf(stderr,
                    "nudma measure: --output and --claims need what was measured: --read FILE\n");
        else if (measure.n_workers < 1 || measure.n_workers > 4096)
            fprintf(stderr, "nudma measure: expected -j of 1 or more\n");
        else if (same_outputs(&measure))
            fprintf(stderr, "nudma measure: --output and --claims are one file, expected two\n");
        else if (cli_writes_elsewhere(measure.output, &measure.options, measure.read) &&
                 cli_writes_elsewhere(measure.claims, &measure.options, measure.read)) {
            measure.platform = names[0];
            status = run(&measure);
        }
    }
    g_strfreev(measure.read);
    g_free(measure.output);
    g_free(measure.claims);
    g_free(measure.command_line);
    cli_options_release(&measure.options);
    return status;
}
