/*
 * From what was measured to settings: latencies decide the parameters that stand for them, by runs
 * of the points that measure the same, until both agree. Bandwidths decide nothing (no rate of a
 * path is a parameter); they are compared.
 */
#include <math.h>
#include <string.h>

#include "cli/campaign/trials.h"
#include "cli/measure/measure.h"
#include "workloads/experiment.h"

#define ROUNDS_MAX 8
#define NEAR_RATIO \
    5e-3                           /* of what was measured: agrees; clocks make latencies go in
                                    * steps */
#define REACH_RATIO           0.02 /* further away at the end: could not be reached */
#define CLAIM_FITTED_RATIO    0.02
#define CLAIM_PREDICTED_RATIO 0.1

struct item {
    char *what;
    const char *scenario, *metric, *unit;
    char *point;
    struct measured measured;
    const char *settings[2]; /* of hosts.server that it decides; NULL: none */
    double slope;            /* of the metric over the sum of the settings, about */
    struct claim claim;
    double before, now;
};

struct fit {
    struct measure *measure;
    GPtrArray *items; /* struct item */
    struct trials trials;
    double x[16];
};

static void free_item(gpointer pointer)
{
    struct item *item = pointer;
    g_free(item->what);
    g_free(item->point);
    g_free((char *)(uintptr_t)item->claim.expr);
    g_free(item);
}

/* Takes `what` and `point` over. */
static struct item *add_item(struct fit *fit, char *what, const char *scenario, char *point,
                             const char *metric, const char *unit, struct measured measured)
{
    struct item *item = g_new0(struct item, 1);
    *item = (struct item){ .what = what,
                           .scenario = scenario,
                           .point = point,
                           .metric = metric,
                           .unit = unit,
                           .measured = measured,
                           .slope = 1.0 };
    item->claim.expr = g_strdup_printf("v('%s','%s','%s')", scenario, point, metric);
    g_ptr_array_add(fit->items, item);
    return item;
}

/* ---- What was measured, and the point that measures the same --------------------------------- */

/* The mean of the rows' own nodes, or of the others, with the origin of the first; unknown:
 * none. */
static struct measured mean_of(const struct measured_matrix *matrix, bool own)
{
    struct measured mean = { 0 };
    double sum = 0.0;
    unsigned n = 0;
    for (unsigned i = 0; i < matrix->n_rows; i++) {
        for (unsigned k = 0; k < matrix->n_rows; k++) {
            if ((i == k) != own)
                continue;
            mean = n == 0 ? matrix->at[i][k] : mean;
            sum += matrix->at[i][k].value;
            n++;
        }
    }
    mean.value = n > 0 ? sum / n : 0.0;
    return mean;
}

static void add_memory(struct fit *fit)
{
    static const char latency[] = "numa/memory_latency", bandwidth[] = "numa/memory_bandwidth";
    const struct measurements *m = &fit->measure->measurements;
    const struct measured matrix_local = mean_of(&m->latency_ns, true);
    const struct measured local = measured_known(&matrix_local) ? matrix_local : m->idle_ns;
    const struct measured remote = mean_of(&m->latency_ns, false);
    struct measured local_bw = mean_of(&m->read_gbyte_s, true);
    const struct measured remote_bw = mean_of(&m->read_gbyte_s, false);
    if (!measured_known(&local_bw))
        local_bw = m->node_gbyte_s;
    if (measured_known(&local)) {
        struct item *item = add_item(fit, g_strdup("load, local memory, idle"), latency,
                                     g_strdup("from=s0 to=s0"), "load_latency_ns", "ns", local);
        item->settings[0] = "dram.controller_ns";
    }
    if (measured_known(&remote)) {
        struct item *item = add_item(fit, g_strdup("load, memory of another socket, idle"), latency,
                                     g_strdup("from=s0 to=s1"), "load_latency_ns", "ns", remote);
        item->settings[0] = "interconnect.one_way_ns";
        item->slope = 2.0; /* there and back */
    }
    if (measured_known(&local_bw))
        add_item(fit, g_strdup("reads of a socket, local memory"), bandwidth,
                 g_strdup("from=s0 to=s0"), "read_gbyte_s", "GB/s", local_bw);
    if (measured_known(&remote_bw))
        add_item(fit, g_strdup("reads of a socket, memory of another"), bandwidth,
                 g_strdup("from=s0 to=s1"), "read_gbyte_s", "GB/s", remote_bw);
}

/* MLC and perf count all sockets, each with its own memory. */
static void add_loads(struct fit *fit, unsigned sockets)
{
    const struct measurements *m = &fit->measure->measurements;
    const struct measured_load *most = NULL;
    for (guint i = 0; i < m->loads->len; i++) {
        const struct measured_load *load = &g_array_index(m->loads, struct measured_load, i);
        if (most == NULL || load->gbyte_s > most->gbyte_s)
            most = load;
    }
    if (most != NULL) {
        const struct measured ns = { most->latency_ns, most->file, most->line };
        const struct measured gbyte_s = { most->gbyte_s / sockets, most->file, most->line };
        add_item(fit, g_strdup("reads of a socket at full load"), "numa/loaded_latency",
                 g_strdup("inject_delay_ns=0"), "read_gbyte_s", "GB/s", gbyte_s);
        add_item(fit, g_strdup("load, local memory, full load"), "numa/loaded_latency",
                 g_strdup("inject_delay_ns=0"), "load_latency_ns", "ns", ns);
    }
    if (measured_known(&m->all_gbyte_s)) {
        struct measured gbyte_s = m->all_gbyte_s;
        gbyte_s.value /= sockets;
        add_item(fit, g_strdup("memory reads of a socket (perf)"), "numa/memory_bandwidth",
                 g_strdup("from=s0 to=s0"), "read_gbyte_s", "GB/s", gbyte_s);
    }
}

static void add_dma_bandwidth(struct fit *fit)
{
    static const struct {
        const char *test, *op;
    } tests[] = { { "BW_DMA_RD", "read" },
                  { "BW_DMA_WR", "write" },
                  { "BW_DMA_RW", "read_write" } };
    static const unsigned sizes[] = { 64, 256, 512, 1024, 2048 };
    for (size_t t = 0; t < SIM_N_ELEMENTS(tests); t++) {
        for (size_t i = 0; i < SIM_N_ELEMENTS(sizes); i++) {
            const struct measured_dma *dma = measurements_dma(
                &fit->measure->measurements, tests[t].test, "HWarm", 8192, sizes[i], false);
            if (dma != NULL)
                add_item(fit, g_strdup_printf("DMA %s of %u B", tests[t].op, sizes[i]),
                         "pcie_bench/bandwidth_size",
                         g_strdup_printf("op=%s transfer_bytes=%u", tests[t].op, sizes[i]),
                         "throughput_gbit_s", "Gbit/s", dma->result);
        }
    }
}

static void add_dma(struct fit *fit)
{
    const struct measurements *m = &fit->measure->measurements;
    const unsigned windows[] = { 4096, 16384, 262144 };
    const struct measured_dma *cold = NULL;
    for (size_t i = 0; i < SIM_N_ELEMENTS(windows) && cold == NULL; i++)
        cold = measurements_dma(m, "LAT_CMD_RD", "Cold", windows[i], 64, false);
    if (cold != NULL) {
        struct item *item =
            add_item(fit, g_strdup("DMA read of 64 B, cold"), "pcie_bench/latency_window",
                     g_strdup_printf("cache=cold window_bytes=%u", (unsigned)cold->window_bytes),
                     "latency_mean_ns", "ns", cold->result);
        item->settings[0] = "root_complex.inbound_ns";
        item->settings[1] = "root_complex.outbound_ns";
    }
    const struct measured_dma *walks = measurements_dma(m, "LAT_CMD_RD", "Cold", 64 << 20, 64,
                                                        true);
    if (walks != NULL) {
        struct item *item = add_item(fit, g_strdup("the same through the IOMMU, of 64 MiB"),
                                     "pcie_bench/latency_iommu", g_strdup("window_bytes=67108864"),
                                     "latency_mean_ns", "ns", walks->result);
        item->settings[0] = "iommu.walk_fixed_ns";
    }
    add_dma_bandwidth(fit);
}

/* ---- The model ------------------------------------------------------------------------------- */

/* The index among the parameters, which it may make. */
static guint param_of(struct fit *fit, const char *setting)
{
    GArray *params = fit->trials.params;
    g_autofree char *path = g_strconcat("hosts.server.", setting, NULL);
    for (guint i = 0; i < params->len; i++)
        if (strcmp(g_array_index(params, struct trial_param, i).path, path) == 0)
            return i;
    const struct trial_param param = { .path = g_intern_string(path) };
    g_array_append_val(params, param);
    return params->len - 1;
}

struct start {
    const char *path;
    double value;
};

static void take_start(void *context, const char *path, const char *value, const char *unit,
                       enum param_provenance provenance, const char *origin)
{
    struct start *start = context;
    (void)unit, (void)provenance, (void)origin;
    if (strcmp(path, start->path) == 0)
        start->value = g_ascii_strtod(value, NULL);
}

static double value_of(const struct config *config, const char *path)
{
    struct start start = { path, (double)NAN };
    config_each_param(config, take_start, &start);
    return start.value;
}

/* Of one point: its mistakes, and the parameters that it knows. */
static void read_point(struct fit *fit, const struct trial_point *point,
                       struct sim_error_list *errors)
{
    struct config *config = scenario_point(point->scenario, point->index, errors);
    if (config != NULL && experiment_check(config, errors)) {
        for (guint i = 0; i < fit->trials.params->len; i++) {
            struct trial_param *param = &g_array_index(fit->trials.params, struct trial_param, i);
            const struct param_desc *desc = config_param_desc(config, param->path);
            if (desc == NULL || param->desc != NULL)
                continue;
            param->desc = desc;
            param->lo = desc->lo;
            param->hi = desc->hi;
            param->start = value_of(config, param->path);
            fit->x[i] = param->start;
        }
    }
    config_free(config);
}

/* Every node that was measured has to be a socket of the platform. */
static void check_nodes(const struct fit *fit, const struct measured_matrix *matrix,
                        unsigned sockets, struct sim_error_list *errors)
{
    if (matrix->n_rows > 0 && matrix->n_rows != sockets)
        sim_error_add(errors, matrix->at[0][0].file, (int)matrix->at[0][0].line,
                      "%u nodes with processors, but %s has %u socket%s: another machine, or "
                      "sub-NUMA clustering",
                      matrix->n_rows, fit->measure->platform, sockets, sockets == 1 ? "" : "s");
}

static unsigned count_sockets(struct fit *fit, struct sim_error_list *errors)
{
    struct scenario *scenario = scenario_load("numa/memory_latency",
                                              (const char *const *)fit->measure->options.roots,
                                              (const char *const *)fit->measure->sets, errors);
    struct config *config = scenario != NULL && errors->n_messages == 0
                                ? scenario_point(scenario, 0, errors)
                                : NULL;
    double sockets = 1.0;
    if (config != NULL && experiment_check(config, errors))
        sockets = value_of(config, "hosts.server.cpu.sockets");
    config_free(config);
    scenario_free(scenario);
    return sockets >= 1.0 ? (unsigned)sockets : 1;
}

static void load_scenario(struct fit *fit, const char *name, struct sim_error_list *errors)
{
    GPtrArray *scenarios = fit->trials.scenarios;
    for (guint i = 0; i < scenarios->len; i++)
        if (strcmp(scenario_name(scenarios->pdata[i]), name) == 0)
            return;
    struct scenario *scenario = scenario_load(name,
                                              (const char *const *)fit->measure->options.roots,
                                              (const char *const *)fit->measure->sets, errors);
    if (scenario != NULL)
        g_ptr_array_add(scenarios, scenario);
}

/* Scenarios, points and parameters of the items. */
static void prepare(struct fit *fit, struct sim_error_list *errors)
{
    for (guint i = 0; i < fit->items->len; i++)
        load_scenario(fit, ((struct item *)fit->items->pdata[i])->scenario, errors);
    for (guint i = 0; i < fit->items->len && errors->n_messages == 0; i++) {
        struct item *item = fit->items->pdata[i];
        if (!trials_add_claim(&fit->trials, &item->claim, item->settings[0] != NULL))
            sim_error_add(errors, item->measured.file, (int)item->measured.line,
                          "%s has no point \"%s\" with this platform", item->scenario, item->point);
        for (int k = 0; k < 2 && item->settings[k] != NULL; k++)
            param_of(fit, item->settings[k]);
    }
    for (guint i = 0; i < fit->trials.points->len && errors->n_messages == 0; i++)
        read_point(fit, &g_array_index(fit->trials.points, struct trial_point, i), errors);
    for (guint i = 0; i < fit->trials.params->len && errors->n_messages == 0; i++) {
        const struct trial_param *param = &g_array_index(fit->trials.params, struct trial_param, i);
        if (param->desc == NULL || isnan(param->start))
            sim_error_add(errors, NULL, 0, "%s is no setting of this platform", param->path);
    }
}

/* All items at x; false if a run failed. */
static bool run_all(struct fit *fit, bool only_fitted)
{
    if (!trials_run(&fit->trials, fit->x, only_fitted))
        return false;
    for (guint i = 0; i < fit->items->len; i++) {
        struct item *item = fit->items->pdata[i];
        if (!only_fitted || item->settings[0] != NULL)
            item->now = trials_claim(&fit->trials, &item->claim);
    }
    return true;
}

static double error_ratio(const struct item *item)
{
    return item->now / item->measured.value - 1.0;
}

static bool is_near(const struct item *item)
{
    return item->settings[0] == NULL || fabs(error_ratio(item)) <= NEAR_RATIO;
}

/* Moves the item's settings, each by an equal part of what is missing. */
static void approach(struct fit *fit, const struct item *item)
{
    const double missing = item->measured.value - item->now;
    const int n = item->settings[1] != NULL ? 2 : 1;
    for (int k = 0; k < n; k++) {
        const guint i = param_of(fit, item->settings[k]);
        const struct trial_param *param = &g_array_index(fit->trials.params, struct trial_param, i);
        fit->x[i] = fmin(fmax(fit->x[i] + missing / item->slope / n, param->lo), param->hi);
        fit->x[i] = trials_value(param, fit->x[i]);
    }
}

/* Of what is fitted: the sum of squares of the errors. */
static double cost_of(const struct fit *fit)
{
    double sum = 0.0;
    for (guint i = 0; i < fit->items->len; i++) {
        const struct item *item = fit->items->pdata[i];
        if (item->settings[0] != NULL)
            sum += error_ratio(item) * error_ratio(item);
    }
    return sum;
}

/* Latencies add up, so that each round leaves little; those of a later item contain those of
 * earlier ones. The best round holds. */
static bool solve(struct fit *fit)
{
    double best[SIM_N_ELEMENTS(fit->x)], cost;
    if (!run_all(fit, false))
        return false;
    for (guint i = 0; i < fit->items->len; i++) {
        struct item *item = fit->items->pdata[i];
        item->before = item->now;
    }
    memcpy(best, fit->x, sizeof(best));
    cost = cost_of(fit);
    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        bool near = true;
        for (guint i = 0; i < fit->items->len; i++) {
            const struct item *item = fit->items->pdata[i];
            if (is_near(item) || isnan(item->now))
                continue;
            near = false;
            approach(fit, item);
        }
        if (near)
            break;
        if (!run_all(fit, true))
            return false;
        if (cost_of(fit) < cost) {
            cost = cost_of(fit);
            memcpy(best, fit->x, sizeof(best));
        }
    }
    memcpy(fit->x, best, sizeof(best));
    return fit->trials.params->len == 0 || run_all(fit, false);
}

/* ---- What came of it ------------------------------------------------------------------------- */

static bool reached(const struct item *item)
{
    return item->settings[0] == NULL || fabs(error_ratio(item)) <= REACH_RATIO;
}

static char *short_source(const struct measured *measured)
{
    g_autofree char *base = g_path_get_basename(measured->file);
    g_autofree char *name = g_strdelimit(g_strdup(base), "\"\\", '?');
    return g_strdup_printf("%s:%u", name, measured->line);
}

static char *value_text(struct fit *fit, const char *setting, bool start)
{
    const guint i = param_of(fit, setting);
    const struct trial_param *param = &g_array_index(fit->trials.params, struct trial_param, i);
    return trials_value_text(param, start ? param->start : fit->x[i]);
}

/* Where tables go: not behind or before settings or claims on standard output. */
static FILE *tables_of(const struct fit *fit)
{
    return g_strcmp0(fit->measure->output, "-") == 0 || g_strcmp0(fit->measure->claims, "-") == 0
               ? stderr
               : stdout;
}

static void print_items(const struct fit *fit)
{
    struct cli_table *table = cli_table_new("what|unit|>measured|>before|>now|>error %|read at");
    for (guint i = 0; i < fit->items->len; i++) {
        const struct item *item = fit->items->pdata[i];
        char text[32];
        g_autofree char *source = short_source(&item->measured);
        cli_table_cell(table, "%s", item->what);
        cli_table_cell(table, "%s", item->unit);
        cli_table_cell(table, "%s", cli_number(item->measured.value, text));
        cli_table_cell(table, "%s", cli_number(item->before, text));
        cli_table_cell(table, "%s", cli_number(item->now, text));
        cli_table_cell(table, "%+.1f", 100.0 * error_ratio(item));
        cli_table_cell(table, "%s", source);
    }
    cli_table_print(table, "", tables_of(fit));
    cli_table_free(table);
}

static void print_settings(struct fit *fit)
{
    struct cli_table *table = cli_table_new("setting|unit|>before|>now|from");
    for (guint i = 0; i < fit->items->len; i++) {
        const struct item *item = fit->items->pdata[i];
        for (int k = 0; k < 2 && item->settings[k] != NULL; k++) {
            const struct trial_param *param = &g_array_index(fit->trials.params, struct trial_param,
                                                             param_of(fit, item->settings[k]));
            g_autofree char *before = value_text(fit, item->settings[k], true);
            g_autofree char *now = value_text(fit, item->settings[k], false);
            cli_table_cell(table, "%s", param->path);
            cli_table_cell(table, "%s", param_unit(param->desc));
            cli_table_cell(table, "%s", before);
            cli_table_cell(table, "%s", now);
            cli_table_cell(table, "%s", item->what);
        }
    }
    fputc('\n', tables_of(fit));
    cli_table_print(table, "", tables_of(fit));
    cli_table_free(table);
}

/* False if one could not be reached, which is said. */
static bool report(struct fit *fit)
{
    bool good = true;
    print_items(fit);
    if (fit->trials.params->len > 0)
        print_settings(fit);
    for (guint i = 0; i < fit->items->len; i++) {
        const struct item *item = fit->items->pdata[i];
        char measured[32], now[32];
        if (reached(item))
            continue;
        g_autofree char *value = value_text(fit, item->settings[0], false);
        fprintf(stderr,
                "nudma measure: %s: %s %s is out of reach: with %s = %s it is %s %s; other values "
                "of the platform are not this machine's\n",
                item->what, cli_number(item->measured.value, measured), item->unit,
                item->settings[0], value, cli_number(item->now, now), item->unit);
        good = false;
    }
    return good;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static char *settings_text(struct fit *fit)
{
    GString *text = g_string_new(NULL);
    g_string_append_printf(
        text,
        "# What was measured on the real machine, as settings. Written by: %s\n"
        "# Used behind the platform: --set @platform.cfg --set @FILE, or set = ( \"@platform.cfg\", \"@FILE\" );\n"
        "hosts = { server = {\n",
        fit->measure->command_line);
    for (guint i = 0; i < fit->items->len; i++) {
        const struct item *item = fit->items->pdata[i];
        char value[32];
        if (item->settings[0] == NULL || !reached(item))
            continue;
        g_autofree char *source = short_source(&item->measured);
        const size_t n = strcspn(item->settings[0], ".");
        g_string_append_printf(text, "    %.*s = {  # %s: %s %s\n", (int)n, item->settings[0],
                               item->what, cli_number(item->measured.value, value), item->unit);
        for (int k = 0; k < 2 && item->settings[k] != NULL; k++) {
            g_autofree char *now = value_text(fit, item->settings[k], false);
            g_string_append_printf(
                text,
                "        %s = { value = %s; provenance = \"published\"; source = \"%s\"; };\n",
                item->settings[k] + n + 1, now, source);
        }
        g_string_append(text, "    };\n");
    }
    g_string_append(text, "}; };\n");
    return g_string_free(text, FALSE);
}

static char *claims_text(const struct fit *fit)
{
    GString *text = g_string_new(NULL);
    g_autofree char *title = g_strdelimit(g_strdup(fit->measure->platform), "\"\\", '?');
    g_string_append_printf(text,
                           "# What was measured on the real machine. Written by: %s\n"
                           "title = \"Measured on %s\";\nclaims = (\n",
                           fit->measure->command_line, title);
    for (guint i = 0; i < fit->items->len; i++) {
        const struct item *item = fit->items->pdata[i];
        const bool fitted = item->settings[0] != NULL;
        const double share = fitted ? CLAIM_FITTED_RATIO : CLAIM_PREDICTED_RATIO;
        char lo[32], hi[32], published[32];
        g_autofree char *source = short_source(&item->measured);
        g_string_append_printf(
            text,
            "  { id = \"measured.%u\"; use = \"%s\"; kind = \"%s\"; lo = %s; hi = %s; published = \"%s\";\n"
            "    expr = \"%s\";\n    text = \"%s, %s (%s)\"; }%s\n",
            i + 1, fitted ? "C" : "K", fitted ? "fitted" : "predicted",
            cli_number(item->measured.value * (1.0 - share), lo),
            cli_number(item->measured.value * (1.0 + share), hi),
            cli_number(item->measured.value, published), item->claim.expr, item->what, item->unit,
            source, i + 1 < fit->items->len ? "," : "");
    }
    g_string_append(text, ");\n");
    return g_string_free(text, FALSE);
}

static bool write_file(const char *path, const char *text)
{
    struct cli_output *output = path != NULL ? cli_output_new(path) : NULL;
    if (output == NULL)
        return path == NULL;
    fputs(text, cli_output_file(output));
    return cli_output_end(output, true);
}

static int finish(struct fit *fit)
{
    const bool good = report(fit);
    g_autofree char *settings = settings_text(fit), *claims = claims_text(fit);
    const bool written = write_file(fit->measure->output, settings) &&
                         write_file(fit->measure->claims, claims);
    return good && written ? CLI_DONE : CLI_FAILED;
}

int measure_fit(struct measure *measure)
{
    struct sim_error_list errors = { 0 };
    struct fit fit = { .measure = measure };
    g_autofree char *message = NULL;
    int status = CLI_WRONG;
    fit.items = g_ptr_array_new_with_free_func(free_item);
    fit.trials.params = g_array_new(FALSE, TRUE, sizeof(struct trial_param));
    fit.trials.scenarios = cli_scenario_array();
    fit.trials.n_workers = (unsigned)measure->n_workers;
    fit.trials.seed = 1;
    const unsigned sockets = count_sockets(&fit, &errors);
    check_nodes(&fit, &measure->measurements.latency_ns, sockets, &errors);
    check_nodes(&fit, &measure->measurements.read_gbyte_s, sockets, &errors);
    add_memory(&fit);
    add_loads(&fit, sockets);
    add_dma(&fit);
    if (fit.items->len == 0 && errors.n_messages == 0)
        sim_error_add(&errors, NULL, 0,
                      "nothing that was read can be compared: of pcie-bench, 64 B reads of a cold "
                      "window or bandwidth of a warm one of 8 KiB are");
    const bool ready = errors.n_messages == 0 && trials_init(&fit.trials, &message);
    if (message != NULL)
        fprintf(stderr, "nudma measure: %s\n", message);
    if (ready)
        prepare(&fit, &errors);
    if (ready && errors.n_messages == 0)
        status = solve(&fit) ? finish(&fit) : CLI_FAILED;
    if (fit.trials.error != NULL)
        fprintf(stderr, "nudma measure: a run failed: %s\n", fit.trials.error);
    cli_report(&errors);
    if (ready)
        trials_release(&fit.trials);
    g_ptr_array_free(fit.trials.scenarios, TRUE);
    g_array_free(fit.trials.params, TRUE);
    g_ptr_array_free(fit.items, TRUE);
    return status;
}
