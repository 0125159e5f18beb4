/* Each run is a worker process; this process keeps what they report. */
#include <math.h>
#include <string.h>

#include "cli/campaign/stop.h"
#include "cli/campaign/trials.h"
#include "cli/campaign/worker.h"
#include "sim/config/unit.h"
#include "workloads/experiment.h"

/* ---- Points ---------------------------------------------------------------------------------- */

bool trials_init(struct trials *trials, char **message)
{
    trials->points = g_array_new(FALSE, TRUE, sizeof(struct trial_point));
    trials->stop_fd = -1;
    trials->db = results_open(RESULTS_IN_MEMORY, false, message);
    return trials->db != NULL;
}

void trials_release(struct trials *trials)
{
    results_close(trials->db);
    g_array_free(trials->points, TRUE);
    g_free(trials->error);
}

static bool find_point(const struct trials *trials, const struct claim_reference *reference,
                       struct trial_point *point)
{
    for (guint i = 0; i < trials->scenarios->len; i++) {
        struct scenario *scenario = trials->scenarios->pdata[i];
        if (strcmp(scenario_name(scenario), reference->scenario) != 0)
            continue;
        for (size_t k = 0; k < scenario_n_points(scenario); k++) {
            if (strcmp(scenario_point_name(scenario, k), reference->point) == 0) {
                *point = (struct trial_point){ .scenario = scenario, .index = k };
                return true;
            }
        }
    }
    return false;
}

static void add_point(struct trials *trials, const struct trial_point *point)
{
    for (guint i = 0; i < trials->points->len; i++) {
        struct trial_point *other = &g_array_index(trials->points, struct trial_point, i);
        if (other->scenario == point->scenario && other->index == point->index) {
            other->fitted = other->fitted || point->fitted;
            return;
        }
    }
    g_array_append_val(trials->points, *point);
}

bool trials_add_claim(struct trials *trials, const struct claim *claim, bool fitted)
{
    g_autoptr(GArray) references = claim_references(claim);
    struct trial_point point;
    bool found = references->len > 0;
    for (guint i = 0; i < references->len && found; i++)
        found = find_point(trials, &g_array_index(references, struct claim_reference, i), &point);
    for (guint i = 0; i < references->len && found; i++) {
        find_point(trials, &g_array_index(references, struct claim_reference, i), &point);
        point.fitted = fitted;
        add_point(trials, &point);
    }
    return found;
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* Ten to the power of the key's unit in picoseconds or bytes. */
static double base_of(const struct param_desc *desc)
{
    const struct unit *unit = param_key_unit(desc);
    return desc->type == PARAM_TIME && unit != NULL ? pow(10.0, unit->pow10) : 1.0;
}

char *trials_value_text(const struct trial_param *param, double x)
{
    struct param_value value = { .real = x };
    const struct param_desc *desc = param->desc;
    char text[32];
    if (desc->type == PARAM_DOUBLE || desc->type == PARAM_RATE)
        value.real = g_ascii_strtod(cli_number(x, text), NULL); /* six digits say enough */
    else
        value.whole = (uint64_t)llround(fmax(x, 0.0) * base_of(desc));
    return param_format(desc, &value);
}

double trials_value(const struct trial_param *param, double x)
{
    g_autofree char *text = trials_value_text(param, x);
    return g_ascii_strtod(text, NULL);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

struct trial {
    struct trials *trials;
    char **values; /* of the parameters, as text */
    bool failed;
    bool stopped;
};

/* For a worker to end, or for what stops all. */
static void wait_for_worker(struct trial *trial, struct worker_pool *pool)
{
    const int fd = trial->trials->stop_fd;
    trial->stopped = trial->stopped || stop_has_come(fd) || worker_wait(pool, fd, -1);
}

/* In the worker. */
static void run_point(void *context, const struct worker_task *task, struct worker_report *report)
{
    const struct trial *trial = context;
    const struct trials *trials = trial->trials;
    const struct trial_point *point = &g_array_index(trials->points, struct trial_point,
                                                     task->point);
    struct sim_error_list errors = { 0 };
    struct config *config = scenario_point(point->scenario, point->index, &errors);
    for (guint i = 0; i < trials->params->len && config != NULL; i++)
        config_set(config, g_array_index(trials->params, struct trial_param, i).path,
                   trial->values[i], "calibrate", &errors);
    worker_run(config, task, &errors, report);
}

static void keep_run(void *context, size_t index, const struct worker_report *report)
{
    struct trial *trial = context;
    struct trials *trials = trial->trials;
    const struct trial_point *point = &g_array_index(trials->points, struct trial_point, index);
    g_autofree char *message = NULL, *values = g_strjoinv(" ", trial->values);
    struct run_record record = {
        .scenario = scenario_name(point->scenario),
        .point = scenario_point_name(point->scenario, point->index),
        .seed = trials->seed,
        .status = "done",
        .command_line = "nudma calibrate",
        .host = g_get_host_name(),
        .wall_s = report->wall_s,
        .sim_ps = report->sim_ps,
        .events = report->events,
    };
    g_autofree char *digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, values, -1);
    g_strlcpy(record.config_sha256, digest, sizeof(record.config_sha256));
    trials->n_runs++;
    if (report->error != NULL)
        message = g_strdup(report->error);
    else
        results_store(trials->db, &record, NULL, report->result, &message);
    if (message != NULL) {
        trial->failed = true;
        if (trials->error == NULL)
            trials->error = g_strdup_printf("%s %s: %s", record.scenario, record.point, message);
    }
}

/* Every worker fits, or this waits until one has ended. */
static void start_point(struct worker_pool *pool, guint index, struct trial *trial)
{
    const struct worker_task task = { .job = index, .point = index, .seed = trial->trials->seed };
    while (!trial->stopped && worker_pool_full(pool))
        wait_for_worker(trial, pool);
    if (!trial->stopped && !worker_start(pool, &task)) {
        trial->failed = true;
        if (trial->trials->error == NULL)
            trial->trials->error = g_strdup("no worker process can be made");
    }
}

bool trials_run(struct trials *trials, const double *x, bool only_fitted)
{
    struct trial trial = { .trials = trials, .stopped = stop_has_come(trials->stop_fd) };
    struct worker_pool *pool = worker_pool_new(trials->n_workers, (struct worker_limits){ 0 },
                                               run_point, keep_run, &trial);
    trial.values = g_new0(char *, trials->params->len + 1);
    for (guint i = 0; i < trials->params->len; i++)
        trial.values[i] = trials_value_text(&g_array_index(trials->params, struct trial_param, i),
                                            x[i]);
    for (guint i = 0; i < trials->points->len && !trial.failed && !trial.stopped; i++) {
        if (!only_fitted || g_array_index(trials->points, struct trial_point, i).fitted)
            start_point(pool, i, &trial);
    }
    while (!trial.stopped && worker_pool_running(pool) > 0)
        wait_for_worker(&trial, pool);
    worker_pool_free(pool);
    g_strfreev(trial.values);
    return !trial.failed && !trial.stopped;
}

double trials_claim(struct trials *trials, const struct claim *claim)
{
    double value = (double)NAN;
    g_autofree char *message = NULL;
    results_evaluate(trials->db, claim->expr, &value, &message);
    return value;
}
