/*
 * The workload "programs": kernels, interfaces, programs side by side, measured together.
 *
 * All programs start at once. After measure.warmup_us everything is cleared and measured for
 * measure.duration_us; if there are programs that end by themselves (PageRank), until the last of
 * them has, and duration_us bounds it.
 */
#include "workloads/programs/programs_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/gpu/gpu.h"
#include "models/nvme/nvme.h"

#define CONNECT_TRIES    100u
#define CONNECT_PAUSE_PS (50 * SIM_PS_PER_US)
#define END_PS           (20 * SIM_PS_PER_MS)
#define CLOSING_PS       (2 * SIM_PS_PER_S) /* a device that waits for time-outs is done by then */
#define PORTS            64u                /* of a program */

static const struct param_desc programs_params[] = {
    PARAM_TEXT("measured", struct programs, measured_name, "server",
               "the host whose processors and memory the metrics are about"),
    PARAM("connect_within_us", PARAM_TIME, struct programs, connect_within_ps, 20, 0, 1000,
          PROV_NONE, "",
          "TCP clients connect after as long at most, at random by the seed: results of several"
          " seeds do not hang on one order of events"),
    PARAM(
        "warm_misses_ratio", PARAM_DOUBLE, struct programs, warm_misses_ratio, 0.5, 0, 1, PROV_NONE,
        "",
        "share of the warm-up in which devices' writes fill no way of an LLC, so that cores' misses bring in"
        " what they read, as they do within seconds"),
    { .type = PARAM_END },
};

/* Of every program, besides its own. */
struct program_common {
    bool enabled;
};
const struct param_desc program_params_table[] = {
    PARAM("enabled", PARAM_BOOL, struct program_common, enabled, 1, 0, 1, PROV_NONE, "",
          "false: the program is left out"),
    { .type = PARAM_END },
};

/* ---- Building -------------------------------------------------------------------------------- */

static const struct program_ops *find_ops(const struct program_ops *const *registry,
                                          struct config_node *programs, struct config_node *group,
                                          struct sim_error_list *errors)
{
    const char *names[64] = { NULL };
    struct config_node *type = config_get(group, "type");
    config_allow_settings(group, program_settings);
    for (unsigned i = 0; registry[i] != NULL && i < 63; i++)
        names[i] = registry[i]->type;
    if (type != NULL && config_kind(type) == CONFIG_STRING)
        for (unsigned i = 0; registry[i] != NULL; i++)
            if (strcmp(registry[i]->type, config_string(type)) == 0)
                return registry[i];
    if (config_refuse_made(programs, group, "type", "program", errors))
        return NULL;
    config_mistake(type != NULL ? type : group, errors, "`type`: a program", names);
    config_mark_read(group);
    return NULL;
}

static void release_program(struct program *program)
{
    if (program->ops->release != NULL)
        program->ops->release(program);
    stat_histogram_release(&program->histogram_ps);
    for (unsigned i = 0; i < program->n_owned; i++)
        free(program->owned[i]);
    free(program->owned);
}

static void read_program(struct programs *all, struct config_node *programs,
                         struct config_node *group, struct sim_error_list *errors)
{
    struct program *program = &all->program[all->n_programs];
    struct program_common common = { .enabled = true };
    if (config_kind(group) != CONFIG_GROUP) {
        config_mistake(group, errors, "a group that describes a program", NULL);
        return;
    }
    const struct program_ops *ops = find_ops(all->workload->programs, programs, group, errors);
    if (ops == NULL)
        return;
    *program = (struct program){ .ops = ops,
                                 .records = ops->records,
                                 .name = config_name(group),
                                 .group = group,
                                 .all = all,
                                 .workload = all->workload,
                                 .network = all->network,
                                 .lending = all->lending };
    program->state = program_zalloc(program, 1, ops->state_bytes);
    stat_histogram_init(&program->histogram_ps);
    all->n_programs++;
    config_read_params(all->workload->config, group, config_path(group), program_params_table,
                       &common, errors);
    config_read_params(all->workload->config, group, config_path(group), ops->params,
                       program->state, errors);
    program->enabled = common.enabled;
    ops->check(program, errors);
    if (!common.enabled) {
        release_program(program);
        all->n_programs--;
    }
}

static void unknown_measured(struct programs *all, struct sim_error_list *errors)
{
    const char **names = network_and_lending_names(all->network);
    workload_mistake(all->workload, "measured", errors,
                     all->network->n_hosts == 0 ? "a host of the group `lending`"
                     : all->lending == NULL     ? "a host of the group `network`"
                                                : "a host of the group `network` or `lending`",
                     names);
    free(names);
}

/* The host by its name in either group. */
static void find_measured(struct programs *all, struct sim_error_list *errors)
{
    const char *name = all->measured_name;
    all->measured_net = network_find(all->network, name);
    if (all->lending != NULL)
        all->measured_lend = all->measured_net != NULL ? all->measured_net->lending
                                                       : lending_find(all->lending, name);
    if (all->measured_net != NULL) /* its host is NULL where there is a message about it */
        all->measured = all->measured_net->host;
    else if (all->measured_lend != NULL)
        all->measured = all->measured_lend->host;
    else if (!all->network->unknown && (all->lending == NULL || lending_sound(all->lending)))
        unknown_measured(all, errors);
}

/* Of a host whose payload takes no lines and links, nothing is worth measuring. */
static void check_detail(struct programs *all, struct sim_error_list *errors)
{
    if (all->measured != NULL && host_payload_by_rate(all->measured))
        workload_mistake(all->workload, "measured", errors,
                         "a host with detail.payload = \"lines\"", NULL);
}

/* Programs are measured for a time, or until they end. */
static void check_measure(struct workload *workload, struct sim_error_list *errors)
{
    if (workload->measure.transactions != 0)
        workload_measure_no_effect(workload, "transactions", NULL, errors,
                                   "no transactions: programs are measured for duration_us");
    if (workload->measure.latency_parts)
        workload_measure_no_effect(workload, "latency_parts", NULL, errors,
                                   "no latency_parts: programs do not record them");
}

/* A mistake if this program would share a CPU with one that spins. */
static void check_spinning(struct program *program, struct sim_error_list *errors)
{
    const struct programs *all = program->all;
    char expected[192];
    for (unsigned i = 0; i < program->n_cpus; i++)
        for (unsigned p = 0; p < all->n_programs; p++)
            for (unsigned k = 0; k < all->program[p].n_cpus; k++) {
                const struct program_cpus *own = &program->cpus[i],
                                          *other = &all->program[p].cpus[k];
                if (own->spins || !other->spins || own->host != other->host ||
                    other->first < own->first || other->first >= own->first + own->n)
                    continue;
                snprintf(expected, sizeof(expected),
                         "a CPU of %.60s of its own: %.60s spins on CPU %u until it ends",
                         own->host->name, all->program[p].name, other->first);
                program_mistake(program, "cpu", errors, expected, NULL);
                return;
            }
}

static void programs_check(struct workload *workload, struct sim_error_list *errors)
{
    struct programs *all = workload->state;
    struct config_node *group = config_get(config_root(workload->config), "programs");
    all->workload = workload;
    check_measure(workload, errors);
    function_check_names(workload->world, errors);
    all->lending = lending_new(workload->world, workload->config, errors);
    all->network = network_new(workload->world, workload->config, all->lending, errors);
    find_measured(all, errors);
    check_detail(all, errors);
    if (group == NULL || config_kind(group) != CONFIG_GROUP || config_count(group) == 0) {
        config_mistake(group != NULL ? group : workload->group, errors,
                       "a group `programs` with what runs, { NAME = { type = ...; }; }", NULL);
        return;
    }
    all->program = sim_zalloc(config_count(group), sizeof(*all->program));
    for (unsigned i = 0; i < config_count(group); i++)
        read_program(all, group, config_get(group, config_name(config_child(group, i))), errors);
    for (unsigned i = 0; i < all->n_programs; i++)
        check_spinning(&all->program[i], errors);
    programs_check_series(all, errors);
    for (unsigned i = 0; i < all->n_programs && errors->n_messages == 0; i++)
        programs_check_names(workload, &all->program[i], errors);
}

/* ---- Running --------------------------------------------------------------------------------- */

static bool any_finite(const struct programs *all)
{
    for (unsigned i = 0; i < all->n_programs; i++)
        if (all->program[i].finite)
            return true;
    return false;
}

static bool all_finished(const struct programs *all)
{
    for (unsigned i = 0; i < all->n_programs; i++)
        if (all->program[i].finite && !all->program[i].finished)
            return false;
    return true;
}

/* Nothing ends or changes by itself; *event_ps: but what is done then. */
static bool is_steady(const struct programs *all, sim_time *event_ps)
{
    *event_ps = 0;
    for (unsigned i = 0; i < all->n_programs; i++) {
        const struct program *program = &all->program[i];
        if (!program->ops->steady || program->eventful || program->finite ||
            (program->event_ps != 0 && *event_ps != 0))
            return false;
        *event_ps = SIM_MAX(*event_ps, program->event_ps);
    }
    return true;
}

static bool may_sample(const struct programs *all)
{
    const struct measure_params *measure = &all->workload->measure;
    sim_time event_ps;
    return measure->precision_ratio != 0 && measure->sample_interval_ps == 0 &&
           is_steady(all, &event_ps) && event_ps == 0;
}

/* A series of steady programs: a part of each interval. */
static void plan_series(struct programs *all)
{
    struct workload *workload = all->workload;
    workload->series_sampled = workload->measure.precision_ratio != 0 &&
                               workload_series_long(workload) &&
                               is_steady(all, &workload->series_event_ps);
}

static void note_series(struct programs *all)
{
    struct workload *workload = all->workload;
    char text[192];
    snprintf(
        text, sizeof(text),
        "series: %.6g of %.6g us simulated, a tenth of intervals in which nothing is done, and "
        "one in two to eight of them",
        (double)(sim_now(workload->sim) - all->begin_ps) / 1e6,
        (double)workload->measure.duration_ps / 1e6);
    run_result_note(workload->result, "sampled", text);
}

/* Names those that should have ended. */
static void fail_unfinished(const struct programs *all)
{
    char names[256] = "";
    size_t n = 0;
    for (unsigned i = 0; i < all->n_programs && n < sizeof(names); i++)
        if (all->program[i].finite && !all->program[i].finished)
            n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%.40s", n != 0 ? ", " : "",
                                  all->program[i].name);
    if (n >= sizeof(names))
        memcpy(names + sizeof(names) - sizeof("..."), "...", sizeof("..."));
    sim_fail(all->workload->sim,
             "%s: not ended within the %.15g us of measure.duration_us, as programs that end by "
             "themselves must: raise measure.duration_us",
             names, (double)all->workload->measure.duration_ps / 1e6);
}

/* A connection that was never made: what would be recorded says nothing about the hosts. */
static bool all_connected(const struct programs *all)
{
    for (unsigned i = 0; i < all->n_programs; i++)
        if (all->program[i].n_connecting != 0) {
            program_fail(&all->program[i],
                         "%u of its connections were not made before the measurement ended: raise "
                         "measure.warmup_us; or is there a cable, and does it lose frames?",
                         all->program[i].n_connecting);
            return false;
        }
    return true;
}

/* True: it is until_ps, or done. */
static bool go_on(struct workload *workload, const bool *done, sim_time until_ps)
{
    workload_run_until(workload, done, until_ps);
    return workload_goes_on(workload);
}

static bool any_closing(const struct programs *all)
{
    for (unsigned i = 0; i < all->n_programs; i++)
        if (all->program[i].closing)
            return true;
    return false;
}

/* Lets programs end and what is under way arrive, then shuts the hosts down; not where the run has
 * been interrupted or has failed already. */
static void end(struct programs *all)
{
    struct workload *workload = all->workload;
    const bool never = false;
    all->measuring = false;
    all->ending = true;
    const sim_time until_ps = sim_now(workload->sim) + CLOSING_PS;
    do {
        if (!go_on(workload, &never, sim_now(workload->sim) + END_PS))
            return;
    } while (any_closing(all) && sim_now(workload->sim) < until_ps);
    for (unsigned i = 0; i < all->n_programs; i++)
        if (all->program[i].closing)
            program_fail(&all->program[i],
                         "%g s after the end of the measurement it still waits for what it has "
                         "under way",
                         (double)CLOSING_PS / (double)SIM_PS_PER_S);
    if (all->fault[0] != '\0' && all->lending != NULL)
        lending_excuse(all->lending);
    network_down(all->network, workload->interrupt);
    if (all->lending != NULL && workload_goes_on(workload))
        lending_down(all->lending, workload->interrupt);
}

static void warm_by_misses(struct workload *workload, bool on)
{
    for (unsigned i = 0; i < world_n_hosts(workload->world); i++)
        numa_warm_by_misses(host_numa(world_host_at(workload->world, i)), on);
}

static void warm_up(struct programs *all, bool sampled)
{
    struct workload *workload = all->workload;
    const sim_time warmup_ps = workload->measure.warmup_ps;
    const sim_time misses_ps = (sim_time)((double)warmup_ps * all->warm_misses_ratio);
    const bool never = false;
    if (misses_ps != 0) {
        warm_by_misses(workload, true);
        workload_run_until(workload, &never, sim_now(workload->sim) + misses_ps);
        warm_by_misses(workload, false);
    }
    if (sampled)
        sampling_warm_up(&all->sampling, warmup_ps - misses_ps);
    else
        workload_run_until(workload, &never, sim_now(workload->sim) + warmup_ps - misses_ps);
}

static void measure(struct programs *all)
{
    struct workload *workload = all->workload;
    bool never = false;
    const bool sampled = may_sample(all);
    warm_up(all, sampled);
    if (!workload_goes_on(workload) || all->fault[0] != '\0')
        return;
    plan_series(all);
    programs_begin(all);
    all->done = any_finite(all) && all_finished(all);
    const sim_time until_ps = all->begin_ps +
                              workload_simulated_ps(workload, workload->measure.duration_ps);
    if (sampled)
        sampling_measure(&all->sampling, &never, until_ps, programs_sample, all);
    else
        workload_run_parts(workload, any_finite(all) ? &all->done : &never, until_ps,
                           programs_sample, all);
    if (!workload_goes_on(workload))
        return;
    rate_sampler_stop(&all->sampler);
    if (all->fault[0] != '\0')
        return; /* what could be recorded says nothing: a program could not do its work */
    if (sim_now(workload->sim) == all->begin_ps)
        sim_fail(workload->sim, "no time was measured: all programs that end by themselves had "
                                "ended when measure.warmup_us was over: lower measure.warmup_us");
    else if (any_finite(all) && !all_finished(all))
        fail_unfinished(all);
    else if (all_connected(all)) {
        programs_record(all, sim_now(workload->sim) - all->begin_ps);
        programs_settled(all);
        if (sampled)
            sampling_note(&all->sampling);
        if (workload->series_sampled)
            note_series(all);
    }
}

static void programs_run(struct workload *workload)
{
    struct programs *all = workload->state;
    if ((all->lending != NULL && !lending_up(all->lending, workload->interrupt)) ||
        !network_up(all->network, workload->interrupt))
        return;
    sim_random_init(&all->random, sim_seed(workload->sim), "programs");
    sampling_init(&all->sampling, workload, programs_read, all);
    all->sampling.measured = all->measured;
    all->kernel = all->measured_net != NULL ? all->measured_net->kernel
                                            : all->measured_lend->kernel;
    for (unsigned i = 0; i < all->n_programs; i++)
        all->program[i].ops->start(&all->program[i]);
    if (all->fault[0] == '\0') { /* else there are threads without the memory that they use */
        measure(all);
        end(all);
    }
    if (all->fault[0] != '\0' && sim_error(workload->sim) == NULL)
        sim_fail(workload->sim, "%s", all->fault);
}

static void programs_release(struct workload *workload)
{
    struct programs *all = workload->state;
    for (unsigned i = 0; i < all->n_programs; i++)
        release_program(&all->program[i]);
    free(all->program);
    free(all->sum);
    programs_series_release(all);
    sampling_release(&all->sampling);
    if (all->network != NULL)
        network_free(all->network);
    lending_free(all->lending);
}

static const char *const programs_groups[] = { "network", "lending", "functions", "programs",
                                               NULL };

const struct workload_ops workload_programs_ops = {
    .measures_one = true,
    .type = "programs",
    .help =
        "programs on hosts with kernels and networks: the groups `network`, `lending`, `functions`, "
        "`programs`",
    .state_bytes = sizeof(struct programs),
    .params = programs_params,
    .records = programs_records,
    .declare = programs_declare,
    .groups = programs_groups,
    .check = programs_check,
    .run = programs_run,
    .release = programs_release,
};

/* ---- For programs
 * -------------------------------------------------------------------------------- */

bool program_measuring(const struct program *program)
{
    return program->all->measuring;
}

void *program_zalloc(struct program *program, size_t n, size_t bytes)
{
    program->owned = sim_grow(program->owned, program->n_owned + 1, sizeof(*program->owned));
    return program->owned[program->n_owned++] = sim_zalloc(n, bytes);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double program_sort(double *value, size_t n)
{
    qsort(value, n, sizeof(*value), ascending);
    return (value[(n - 1) / 2] + value[n / 2]) / 2.0;
}

void program_finish(struct program *program)
{
    program->finished = true;
    if (all_finished(program->all)) {
        program->all->done = true;
        sim_stop(program->workload->sim);
    }
}

void program_fail(struct program *program, const char *fmt, ...)
{
    struct programs *all = program->all;
    char text[sizeof(all->fault) - 64];
    va_list args;
    if (all->fault[0] != '\0')
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    snprintf(all->fault, sizeof(all->fault), "%.60s: %s", program->name, text);
}

const struct program *program_earlier(const struct program *program, unsigned i)
{
    const struct program *earlier = &program->all->program[i];
    return earlier < program ? earlier : NULL;
}

uint64_t program_take(struct program *program, const void *of, const char *what, uint64_t n)
{
    const struct program *other;
    uint64_t n_taken = 0;
    if (!program->enabled)
        return 0;
    for (unsigned i = 0; (other = program_earlier(program, i)) != NULL; i++)
        for (unsigned k = 0; k < other->n_shares; k++)
            if (other->share[k].of == of && strcmp(other->share[k].what, what) == 0)
                n_taken += other->share[k].n;
    SIM_ASSERT(program->n_shares < PROGRAM_SHARES_MAX, "%s takes too much", program->ops->type);
    program->share[program->n_shares++] = (struct program_share){ of, what, n };
    return n_taken;
}

void program_mistake(struct program *program, const char *key, struct sim_error_list *errors,
                     const char *expected, const char *const *names)
{
    config_mistake_at(program->group, key, errors, expected, names);
}

struct network_host *program_host(struct program *program, const char *key, const char *name,
                                  struct sim_error_list *errors)
{
    struct network_host *host = network_find(program->network, name);
    if (host == NULL && !program->network->unknown)
        program_mistake(program, key, errors, "a host of the group `network`",
                        network_names(program->network));
    return host != NULL && host->host != NULL ? host : NULL;
}

struct lending_host *program_lending_host(struct program *program, const char *key,
                                          const char *name, struct sim_error_list *errors)
{
    struct lending_host *host = program->lending != NULL ? lending_find(program->lending, name)
                                                         : NULL;
    if (program->lending != NULL ? !lending_sound(program->lending) : program->network->unknown)
        return NULL; /* there is a message */
    if (host == NULL)
        program_mistake(program, key, errors,
                        program->lending != NULL
                            ? "a host of the group `lending`"
                            : "a host of the group `lending`, which the scenario does not have",
                        program->lending != NULL ? lending_names(program->lending) : NULL);
    return host;
}

struct lending_host *program_member(struct program *program, const char *key, const char *name,
                                    bool bare, struct sim_error_list *errors)
{
    struct lending_host *host = program_lending_host(program, key, name, errors);
    const char *expected = NULL;
    if (host != NULL && !host->takes_part)
        expected = "a host that lends or borrows, if only nothing ([])";
    else if (host != NULL && bare && host->vm != NULL)
        expected = "a host without a group `vm`";
    if (expected == NULL)
        return host;
    program_mistake(program, key, errors, expected, NULL);
    return NULL;
}

const char **program_device_names(struct program *program, struct lending_host *host,
                                  const struct model_ops *type)
{
    const char *const *used = lending_used_names(host);
    const char **names = sim_zalloc(1, sizeof(*names));
    struct function_name f;
    unsigned n = 0;
    for (unsigned i = 0; used[i] != NULL; i++)
        if (function_find(program->workload->world, used[i], &f) && f.model->ops == type) {
            names = sim_grow(names, n + 2, sizeof(*names));
            names[n++] = used[i];
            names[n] = NULL;
        }
    return names;
}

struct model *program_device(struct program *program, const char *key, struct lending_host *host,
                             const char *device, const struct model_ops *type,
                             struct sim_error_list *errors)
{
    struct world *world = program->workload->world;
    struct function_name f;
    char expected[128], text[FUNCTION_TEXT_BYTES];
    if (function_faulty(world, device))
        return NULL; /* there is a message */
    if (lending_uses(host, device) && function_find(world, device, &f) && f.model->ops == type)
        return f.model;
    snprintf(expected, sizeof(expected),
             "a device of type %s that the host borrows, or has and does not lend", type->type);
    const char **names = program_device_names(program, host, type);
    program_mistake(program, key, errors,
                    lending_expected(program->lending, device, expected, text), names);
    free(names);
    return NULL;
}

struct model *program_block_device(struct program *program, const char *key,
                                   struct lending_host *host, const char *device,
                                   struct sim_error_list *errors)
{
    struct model *model = program_device(program, key, host, device, &nvme_ops, errors);
    if (model == NULL || host->params.nvme_driver)
        return model;
    program_mistake(program, key, errors, "an NVMe device whose host has nvme_driver = true", NULL);
    return NULL;
}

unsigned program_take_engines(struct program *program, const char *key, const struct model *gpu,
                              unsigned n, struct sim_error_list *errors)
{
    const unsigned have = gpu_n_copy_engines(gpu);
    const unsigned first = (unsigned)program_take(program, gpu, "copy engine", n);
    char expected[128];
    if (first + n <= have)
        return first;
    snprintf(expected, sizeof(expected),
             "a GPU with %u copy engines for the programs that use it; it has %u", first + n, have);
    program_mistake(program, key, errors, expected, NULL);
    return 0;
}

void program_take_controller(struct program *program, const struct model *model, const char *name,
                             struct sim_error_list *errors)
{
    if (program_take(program, model, name, 1) != 0)
        program_mistake(program, "device", errors, "a controller that no other program drives",
                        NULL);
}

bool program_is_measured(const struct program *program, const struct lending_host *host)
{
    return host == program->all->measured_lend;
}

void program_lending_uses_cpu(struct program *program, const struct lending_host *host,
                              unsigned cpu)
{
    if (host == program->all->measured_lend && cpu < PROGRAMS_CPUS_MAX)
        program->all->uses_cpu[cpu] = true;
}

static void says_cpus(struct program *program, struct program_cpus cpus)
{
    SIM_ASSERT(program->n_cpus < PROGRAM_CPUS_MAX, "%s: CPUs of too many hosts",
               program->ops->type);
    program->cpus[program->n_cpus++] = cpus;
}

static bool spins_earlier(const struct program *program, const struct lending_host *host,
                          unsigned cpu)
{
    const struct program *other;
    for (unsigned i = 0; program->enabled && (other = program_earlier(program, i)) != NULL; i++)
        for (unsigned k = 0; k < other->n_cpus; k++)
            if (other->cpus[k].spins && other->cpus[k].host == host && other->cpus[k].first == cpu)
                return true;
    return false;
}

unsigned program_take_spinning_cpu(struct program *program, const struct lending_host *host,
                                   unsigned first)
{
    while (spins_earlier(program, host, first))
        first++;
    says_cpus(program, (struct program_cpus){ host, first, 1, true });
    return first;
}

void program_check_cpus(struct program *program, const char *key, const struct lending_host *host,
                        unsigned first, unsigned n, struct sim_error_list *errors)
{
    const unsigned cpus = lending_cpus(host);
    char whose[80] = "host", expected[160];
    if (host->vm != NULL)
        snprintf(whose, sizeof(whose), "guest %.60s", host->name);
    if (first < cpus && n <= cpus - first) {
        says_cpus(program, (struct program_cpus){ host, first, n, false });
        return;
    }
    if (n == 1)
        snprintf(expected, sizeof(expected), "a CPU of the %s, 0..%u", whose, cpus - 1);
    else
        snprintf(expected, sizeof(expected), "%u CPUs of the %s in a row, of 0..%u", n, whose,
                 cpus - 1);
    program_mistake(program, key, errors, expected, NULL);
}

void program_check_cores(struct program *program, const struct network_host *host,
                         const struct program_cores *cores, struct sim_error_list *errors)
{
    const unsigned sockets = network_sockets(host), n_cores = network_cores_per_socket(host);
    const unsigned per_unit = SIM_MAX(cores->per_unit, 1U);
    char expected[160];
    if (cores->socket_key != NULL && cores->socket >= sockets) {
        snprintf(expected, sizeof(expected), "a socket of the host \"%.60s\", 0..%u", host->name,
                 sockets - 1);
        program_mistake(program, cores->socket_key, errors, expected, NULL);
    }
    if (cores->n == 0)
        return;
    if (cores->first >= n_cores) {
        snprintf(expected, sizeof(expected), "a core of a socket of the host \"%.60s\", 0..%u",
                 host->name, n_cores - 1);
        program_mistake(program, cores->first_key, errors, expected, NULL);
    } else if (cores->n_key != NULL && cores->n > (n_cores - cores->first) / per_unit) {
        snprintf(expected, sizeof(expected),
                 "at most %u: a socket of the host \"%.60s\" has %u cores, %s is %u%s",
                 (n_cores - cores->first) / per_unit, host->name, n_cores, cores->first_key,
                 cores->first, per_unit > 1 ? ", each takes two" : "");
        program_mistake(program, cores->n_key, errors, expected, NULL);
    }
}

void program_check_interface(struct program *program, const char *key,
                             const struct network_host *host, const char *interface,
                             struct sim_error_list *errors)
{
    if (network_is_mx(host))
        config_mistake_at(host->group, "device", errors,
                          "a NIC with Ethernet firmware, as a program uses the network", NULL);
    else if (!network_interface_named(host, interface))
        program_mistake(program, key, errors, "an interface of the host",
                        network_interface_names(host));
}

bool program_check_pair(struct program *program, struct program_pair *pair, const char *first_key,
                        const char *n_key, unsigned n, const char *client_first_key,
                        const char *client_n_key, unsigned client_n, struct sim_error_list *errors)
{
    pair->server = program_host(program, "server", pair->server_name, errors);
    pair->client = program_host(program, "client", pair->client_name, errors);
    if (pair->server == NULL || pair->client == NULL)
        return false;
    if (pair->server == pair->client)
        program_mistake(program, "client", errors, "another host than `server`", NULL);
    program_check_cores(program, pair->server,
                        &(struct program_cores){ "server_socket", first_key, n_key,
                                                 pair->server_socket, pair->first_core, n, 0 },
                        errors);
    program_check_cores(program, pair->client,
                        &(struct program_cores){ "client_socket", client_first_key, client_n_key,
                                                 pair->client_socket, pair->client_first_core,
                                                 client_n, 0 },
                        errors);
    program_check_interface(program, "interface", pair->server, pair->interface, errors);
    program_check_interface(program, "client", pair->client, "", errors);
    return true;
}

void program_pair_idle(struct program *program)
{
    static const char *const keys[] = { "interface", "server_socket", "client_socket", "first_core",
                                        "client_first_core" };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(keys); i++)
        config_idle(program->workload->config, program->group, keys[i]);
}

unsigned program_cpu(const struct network_host *host, unsigned socket, unsigned idx)
{
    const unsigned per_socket = network_cores_per_socket(host);
    SIM_ASSERT(socket < network_sockets(host) && idx < per_socket, "socket %u, core %u", socket,
               idx);
    return socket * per_socket + idx;
}

void program_uses_cpu(struct program *program, const struct network_host *host, unsigned cpu)
{
    if (host == program->all->measured_net && cpu < PROGRAMS_CPUS_MAX)
        program->all->uses_cpu[cpu] = true;
}

void program_counts_packets(struct program *program, enum program_packets which)
{
    program->all->packets_which |= (unsigned)which;
}

void program_operation_ended(struct program *program, uint64_t begin_ps)
{
    if (program->all->measuring && begin_ps >= program->all->begin_ps)
        program->has_whole = true;
}

bool program_has_measured(struct program *program, const char *what)
{
    if (!program->has_whole)
        program_fail(program,
                     "not one %s began and ended within the %.15g us that were measured: raise "
                     "measure.duration_us, or lower measure.warmup_us if all had ended before",
                     what,
                     (double)(sim_now(program->workload->sim) - program->all->begin_ps) / 1e6);
    return program->has_whole;
}

void program_count_operations(struct program *program, uint64_t n)
{
    program->all->operations += n;
}

bool program_ending(const struct program *program)
{
    return program->all->ending;
}

bool program_failed(const struct program *program)
{
    return program->all->fault[0] != '\0';
}

struct socket *program_connect(struct program *program, const struct network_host *host,
                               uint32_t from_ip, uint32_t ip, uint16_t port)
{
    struct programs *all = program->all;
    program->n_connecting++;
    if (all->connect_within_ps != 0)
        k_sleep(host->kernel, sim_random_below(&all->random, all->connect_within_ps));
    for (unsigned i = 0; i < CONNECT_TRIES; i++) {
        struct socket *socket = socket_tcp_connect(host->net, from_ip, ip, port);
        if (socket != NULL) {
            program->n_connecting--;
            program->n_connected_late += all->measuring;
            return socket;
        }
        k_sleep(host->kernel, CONNECT_PAUSE_PS);
    }
    k_fault(host->kernel, "%s: nobody listens on port %u", program->name, port);
    return NULL;
}

bool program_receive(struct socket *socket, struct kaddr to, uint64_t bytes)
{
    for (uint64_t got = 0; got < bytes;) {
        int64_t n = socket_receive(socket, kaddr_add(to, got), bytes - got);
        if (n <= 0)
            return false;
        got += (uint64_t)n;
    }
    return true;
}

bool program_alone(const struct program *program)
{
    return program->all->n_programs == 1;
}

unsigned program_number(const struct program *program)
{
    return (unsigned)(program - program->all->program);
}

uint16_t program_port(const struct program *program, uint16_t base, unsigned idx)
{
    SIM_ASSERT(idx < PORTS, "port %u of a program", idx);
    return (uint16_t)(base + PORTS * program_number(program) + idx);
}

uint16_t program_new_stream(struct program *program)
{
    return ++program->all->next_stream;
}
