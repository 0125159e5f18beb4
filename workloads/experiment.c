/* Builds the world and the workload of one point, runs, records. */
#include "workloads/experiment.h"

#include <glib.h>
#include <string.h>

#include "models/pcie/link/tlp_trace.h"
#include "sim/config/unit.h"
#include "sim/engine/steps.h"
#include "workloads/base/describe.h"
#include "workloads/base/workload.h"
#include "workloads/registry.h"

const struct param_desc engine_params_table[] = {
    PARAM("quantum_ns", PARAM_TIME, struct engine_params, quantum_ps, 20, 0, 1000, PROV_NONE, "",
          "how far a core may run ahead of global time"),
    { .type = PARAM_END },
};

#define SAMPLES_MAX 100000 /* of a series */

/* The workload's type, or NULL with the mistake in errors. */
static const struct workload_ops *find_ops(struct config_node *root, struct config_node **group,
                                           struct sim_error_list *errors)
{
    const char *names[32] = { NULL };
    for (unsigned i = 0; i < 31 && workload_at(i) != NULL; i++)
        names[i] = workload_at(i)->type;
    *group = config_get(root, "workload");
    if (*group == NULL) {
        const bool part = config_find(root, "hosts") ==
                          NULL; /* whatever it sets is no mistake then */
        sim_error_add(errors, config_file(root), 0,
                      part ? "neither hosts nor workload are in it: no scenario, but a part that "
                             "scenarios @include?"
                           : "there is no group `workload`");
        for (unsigned i = 0; part && i < config_count(root); i++)
            config_mark_read(config_child(root, i));
        return NULL;
    }
    if (config_kind(*group) != CONFIG_GROUP) {
        config_mistake(*group, errors, "a group", NULL);
        return NULL;
    }
    struct config_node *type = config_get(*group, "type");
    if (type != NULL && config_kind(type) == CONFIG_STRING)
        for (unsigned i = 0; workload_at(i) != NULL; i++)
            if (strcmp(workload_at(i)->type, config_string(type)) == 0)
                return workload_at(i);
    config_mistake(type != NULL ? type : *group, errors, "`type`: a workload", names);
    config_mark_read(*group);
    return NULL;
}

static void check_sampling(const struct workload *workload, struct config_node *root,
                           struct sim_error_list *errors)
{
    const sim_time interval_ps = workload->measure.sample_interval_ps;
    const sim_time duration_ps = workload->measure.duration_ps;
    const struct unit *us = unit_find("us");
    char least[UNIT_TEXT_BYTES], most[UNIT_TEXT_BYTES], expected[160];
    if (interval_ps == 0 ||
        (duration_ps >= interval_ps && duration_ps / interval_ps <= SAMPLES_MAX))
        return;
    unit_format_whole((duration_ps + SAMPLES_MAX - 1) / SAMPLES_MAX, us, least);
    unit_format_whole(duration_ps, us, most);
    snprintf(expected, sizeof(expected), "%s..%s us: 1 to %d samples in measure.duration_us", least,
             most, SAMPLES_MAX);
    config_mistake(config_find(root, "measure.sample_interval_us"), errors, expected, NULL);
}

static void read_measure(struct workload *workload, struct config_node *root,
                         struct sim_error_list *errors)
{
    struct config_node *measure = config_get(root, "measure");
    struct config_node *engine = config_get(root, "engine");
    struct engine_params params = { 0 };
    config_read_params(workload->config, measure, "measure", measure_params_table,
                       &workload->measure, errors);
    config_read_params(workload->config, engine, "engine", engine_params_table, &params, errors);
    check_sampling(workload, root, errors);
    workload->precision.ratio = workload->measure.precision_ratio;
    sim_task_set_quantum(workload->sim, params.quantum_ps);
}

/* Which of the groups belong to the workload is not known. */
static void pass_over_groups(struct config_node *root)
{
    for (unsigned i = 0; workload_at(i) != NULL; i++) {
        const char *const *groups = workload_at(i)->groups;
        for (unsigned k = 0; groups != NULL && groups[k] != NULL; k++) {
            struct config_node *group = config_get(root, groups[k]);
            if (group != NULL)
                config_mark_read(group);
        }
    }
}

/* Of a host whose payload takes no lines and links, nothing is worth measuring. */
static void check_details(const struct workload *workload, struct config_node *root,
                          struct sim_error_list *errors)
{
    char path[128];
    for (unsigned h = 0; h < world_n_hosts(workload->world); h++) {
        const struct host *host = world_host_at(workload->world, h);
        if (!host_payload_by_rate(host))
            continue;
        snprintf(path, sizeof(path), "hosts.%s.detail.payload", host_name(host));
        config_mistake(config_find(root, path), errors,
                       "\"lines\": this workload measures all hosts", NULL);
    }
}

/* True if no mistake was found. What a mistake leaves unknown is passed over, so that all others
 * come out with it. */
static bool workload_build(struct workload *workload, struct config *config, uint64_t seed,
                           struct sim_error_list *errors)
{
    struct config_node *root = config_root(config);
    struct sim_error_list own = { 0 };
    *workload = (struct workload){ .config = config };
    workload->programs = program_registry;
    workload->world = world_new(config, seed, &own);
    workload->sim = world_sim(workload->world);
    workload->ops = find_ops(root, &workload->group, &own);
    read_measure(workload, root, &own);
    if (workload->ops != NULL) {
        workload->state = g_malloc0(workload->ops->state_bytes);
        config_allow_settings(workload->group, workload_settings);
        config_read_params(config, workload->group, "workload", workload->ops->params,
                           workload->state, &own);
        workload->ops->check(workload, &own);
        if (!workload->ops->measures_one)
            check_details(workload, root, &own);
    } else {
        pass_over_groups(root);
    }
    config_check_unknown(config, &own);
    return !sim_error_move(errors, &own);
}

static void workload_free(struct workload *workload)
{
    if (workload->state != NULL && workload->ops->release != NULL)
        workload->ops->release(workload);
    g_free(workload->state);
    world_free(workload->world);
}

bool experiment_check(struct config *config, struct sim_error_list *errors)
{
    struct workload workload;
    const bool good = workload_build(&workload, config, 1, errors);
    workload_free(&workload);
    return good;
}

bool experiment_declare(struct config *config, struct run_result *declared,
                        struct sim_error_list *errors)
{
    struct workload workload;
    const bool good = workload_build(&workload, config, 1, errors);
    if (good)
        workload_declare(&workload, declared);
    workload_free(&workload);
    return good;
}

static void check_declared(struct workload *workload)
{
    struct run_result *declared = run_result_new_declaring();
    workload_declare(workload, declared);
    const char *name = run_result_undeclared(workload->result, declared);
    if (name != NULL)
        sim_fail(workload->sim, "the workload %s recorded %s, which it does not declare",
                 workload->ops->type, name);
    run_result_free(declared);
}

/* Lets what is under way arrive, so that nothing lost goes unnoticed. */
static void drain(struct workload *workload)
{
    sim_time until_ps = sim_now(workload->sim) + 100 * SIM_PS_PER_MS;
    if (sim_error(workload->sim) == NULL)
        sim_run(workload->sim, until_ps, workload->interrupt);
    if (workload_goes_on(workload))
        world_check_idle(workload->world);
}

bool experiment_run(struct config *config, uint64_t seed, struct run_result *result,
                    struct experiment_outcome *outcome, const volatile int *interrupt, char **error)
{
    struct workload workload;
    struct sim_error_list errors = { 0 };
    *error = NULL;
    *outcome = (struct experiment_outcome){ 0 };
    const bool good = workload_build(&workload, config, seed, &errors);
    workload.result = result;
    workload.interrupt = interrupt;
    if (!good) {
        *error = g_strdup(errors.message[0]);
    } else if (world_boot(workload.world, interrupt)) {
        workload.ops->run(&workload);
        outcome->sim_ps = sim_now(workload.sim);
        outcome->events = sim_events_fired(workload.sim);
        outcome->fingerprint = sim_fingerprint(workload.sim);
        drain(&workload);
        check_declared(&workload);
    }
    sim_error_release(&errors);
    if (*error == NULL && sim_error(workload.sim) != NULL)
        *error = g_strdup(sim_error(workload.sim));
    if (*error == NULL && interrupt != NULL && *interrupt != 0)
        *error = g_strdup("interrupted");
    if (*error != NULL)
        sim_fail(workload.sim, "%s", *error); /* a run that failed may leave TLPs behind */
    workload_free(&workload);
    return *error == NULL;
}

/* ---- Followed transfers ---------------------------------------------------------------------- */

static bool find_followed(struct workload *workload, const char *name, struct model **device,
                          struct sim_error_list *errors)
{
    *device = NULL;
    if (name == NULL)
        return true;
    *device = world_device(workload->world, name);
    if (*device != NULL)
        return true;
    char *suggestion = sim_suggestion(name, world_device_names(workload->world));
    sim_error_add(errors, NULL, 0, "--trace-address: the scenario has no device \"%s\"%s%s", name,
                  *suggestion != '\0' ? "; " : "", suggestion);
    g_free(suggestion);
    return false;
}

/* Until the interrupt. The error of the run, if it failed before that, in *error; g_malloc'ed. */
static void run_watched(struct workload *workload, const volatile int *interrupt,
                        struct experiment_outcome *outcome, char **error)
{
    struct run_result *result = run_result_new();

    workload->result = result;
    workload->interrupt = interrupt;
    if (world_boot(workload->world, interrupt)) {
        workload->ops->run(workload);
        outcome->sim_ps = sim_now(workload->sim);
        outcome->events = sim_events_fired(workload->sim);
        outcome->fingerprint = run_result_fingerprint(result, sim_fingerprint(workload->sim));
        if (!*interrupt)
            drain(workload);
    }
    if (sim_error(workload->sim) != NULL && !*interrupt)
        *error = g_strdup(sim_error(workload->sim));
    run_result_free(result);
}

struct stamp_trace *experiment_follow(struct config *config, uint64_t seed,
                                      const struct experiment_followed *followed,
                                      struct experiment_outcome *outcome,
                                      struct sim_error_list *errors, char **error)
{
    struct experiment_outcome unused;
    struct stamp_trace *trace = NULL;
    struct workload workload;
    struct model *device;

    *error = NULL;
    const bool good = workload_build(&workload, config, seed, errors);
    if (find_followed(&workload, followed->device, &device, errors) && good) {
        trace = tlp_trace_new(device, followed->nth_write, followed->nth_read);
        trace->bytes_min = followed->bytes_min;
        world_trace(workload.world, trace);
        run_watched(&workload, &trace->done, outcome != NULL ? outcome : &unused, error);
    }
    sim_fail(workload.sim, "ended where it was"); /* such a run leaves TLPs behind */
    workload_free(&workload);
    if (*error != NULL) {
        tlp_trace_free(trace);
        trace = NULL;
    }
    return trace;
}

bool experiment_observe(struct config *config, uint64_t seed,
                        const struct experiment_observer *observer,
                        struct experiment_outcome *outcome, struct sim_error_list *errors,
                        char **error)
{
    struct workload workload;
    bool good = workload_build(&workload, config, seed, errors);

    *error = NULL;
    *outcome = (struct experiment_outcome){ 0 };
    if (good) {
        good = observer->attach(observer->arg, workload.world, errors);
        if (good)
            run_watched(&workload, observer->interrupt, outcome, error);
        observer->detach(observer->arg);
    }
    sim_fail(workload.sim, "ended where it was"); /* such a run leaves TLPs behind */
    workload_free(&workload);
    return good && *error == NULL;
}

void experiment_trace(struct config *config, uint64_t seed, struct sim_steps *steps,
                      struct sim_error_list *errors, char **error)
{
    struct workload workload;

    *error = NULL;
    if (workload_build(&workload, config, seed, errors)) {
        struct run_result *result = run_result_new();

        workload.result = result;
        workload.interrupt = &steps->full;
        sim_set_steps(workload.sim, steps);
        if (world_boot(workload.world, &steps->full))
            workload.ops->run(&workload);
        if (sim_error(workload.sim) != NULL && !steps->full)
            *error = g_strdup(sim_error(workload.sim));
        /* Hosts, whose names the steps have, are left to the end of the process. */
    }
}
