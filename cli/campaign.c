/* The loop of a campaign: start workers, store what they report, stop when told to. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/campaign.h"
#include "cli/progress.h"
#include "cli/worker.h"
#include "workloads/experiment.h"

struct running {
    const struct campaign *campaign;
    struct progress progress;
    guint next_job; /* those before it do not wait any more */
    bool any_failed, database_refused;
};

/* ---- In the worker ------------------------------------------------------------------------- */

static char *join(const struct sim_error_list *errors)
{
    GString *text = g_string_new(NULL);
    for (size_t i = 0; i < errors->n_messages; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? "; " : "", errors->message[i]);
    return g_string_free(text, FALSE);
}

/* A worker is killed rather than interrupted: it has nothing that could be left half done. */
static void run_job(void *context, size_t index, struct worker_report *report)
{
    const struct running *running = context;
    const struct plan_job *job = plan_job(running->campaign->plan, index);
    const struct plan_point *point = plan_point(running->campaign->plan, job->point);
    const volatile int never = 0;
    struct sim_error_list errors = { 0 };
    struct experiment_outcome outcome = { 0 };
    struct config *config = scenario_point(point->scenario, point->index, &errors);
    report->result = run_result_new();
    if (config == NULL)
        report->error = join(&errors);
    else if (!experiment_run(config, job->seed, report->result, &outcome, &never, &report->error) &&
             report->error == NULL)
        report->error = g_strdup("failed without a message");
    if (config != NULL)
        run_result_params(report->result, config);
    report->sim_ps = outcome.sim_ps;
    report->events = outcome.events;
    report->fingerprint = run_result_fingerprint(report->result, outcome.fingerprint);
}

/* ---- In the process that writes ------------------------------------------------------------ */

static void store_job(void *context, size_t index, const struct worker_report *report)
{
    struct running *running = context;
    const struct campaign *campaign = running->campaign;
    struct plan_job *job = plan_job(campaign->plan, index);
    const struct plan_point *point = plan_point(campaign->plan, job->point);
    char *message = NULL;
    struct run_record record = {
        .scenario = scenario_name(point->scenario),
        .point = plan_point_name(point),
        .seed = job->seed,
        .status = report->error == NULL ? "done" : "failed",
        .error = report->error,
        .command_line = campaign->command_line,
        .host = g_get_host_name(),
        .started_utc = job->started_utc,
        .wall_s = report->wall_s,
        .sim_ps = report->sim_ps,
        .events = report->events,
        .fingerprint = report->fingerprint,
    };
    if (running->database_refused)
        return;
    g_strlcpy(record.config_sha256, point->config_sha256, sizeof(record.config_sha256));
    job->wall_s = report->wall_s;
    if (!results_store(campaign->db, &record, NULL, report->result, &message)) {
        plan_set_state(campaign->plan, job, PLAN_WAITING);
        running->database_refused = true;
        progress_end(&running->progress);
        fprintf(stderr, "%s\n", message);
        g_free(message);
        return;
    }
    plan_set_state(campaign->plan, job, report->error == NULL ? PLAN_DONE : PLAN_FAILED);
    running->any_failed = running->any_failed || report->error != NULL;
    progress_run(&running->progress, job, report->error, report->log);
}

/* Starts as many as there is room for. False if there is room and no process can be made. */
static bool start_workers(struct running *running, struct worker_pool *pool)
{
    struct plan *plan = running->campaign->plan;
    while (running->next_job < plan->jobs->len && !worker_pool_full(pool)) {
        struct plan_job *job = plan_job(plan, running->next_job);
        if (job->state == PLAN_WAITING) {
            job->started_utc = g_get_real_time() / G_USEC_PER_SEC;
            if (!worker_start(pool, running->next_job, run_job, running))
                return false;
            plan_set_state(plan, job, PLAN_RUNNING);
        }
        running->next_job++;
    }
    return true;
}

/* True when all is done, or nothing more can be; false if it was interrupted. */
static bool work(struct running *running, struct worker_pool *pool, int signal_fd)
{
    while (!running->database_refused) {
        if (!start_workers(running, pool) && worker_pool_running(pool) == 0) {
            fprintf(stderr, "no worker process: %s\n", g_strerror(errno));
            running->any_failed = true;
            return true;
        }
        if (worker_pool_running(pool) == 0)
            return true;
        progress_show(&running->progress);
        if (worker_wait(pool, signal_fd, 250, store_job, running))
            return false;
    }
    return true;
}

static void say_how_to_go_on(const struct campaign *campaign)
{
    const struct plan *plan = campaign->plan;
    const unsigned n_stored = plan_count(plan, PLAN_DONE) + plan_count(plan, PLAN_STORED_BEFORE);
    fprintf(stderr, "interrupted: %u of %u runs are done and stored; the others go on with\n  %s\n",
            n_stored, plan->jobs->len, campaign->command_line);
}

/* What ends a campaign; not what nohup or a shell's background job has set to be ignored. */
static sigset_t stop_signals(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    sigset_t stops;
    sigemptyset(&stops);
    for (size_t i = 0; i < SIM_N_ELEMENTS(signals); i++) {
        struct sigaction action;
        if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&stops, signals[i]);
    }
    return stops;
}

int campaign_run(const struct campaign *campaign)
{
    struct running running = { .campaign = campaign };
    struct worker_pool *pool = worker_pool_new(campaign->n_workers);
    sigset_t before;
    const sigset_t stops = stop_signals();
    sigprocmask(SIG_BLOCK, &stops, &before);
    const int signal_fd = signalfd(-1, &stops, SFD_CLOEXEC);
    progress_begin(&running.progress, campaign->plan, campaign->n_workers, campaign->quiet);
    const bool finished = work(&running, pool, signal_fd);
    worker_pool_free(pool);
    progress_end(&running.progress);
    if (!finished) {
        struct signalfd_siginfo taken; /* or it would come once signals are let in again */
        const ssize_t got = read(signal_fd, &taken, sizeof(taken));
        (void)got;
        say_how_to_go_on(campaign);
    }
    close(signal_fd);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (!finished)
        return CLI_INTERRUPTED;
    return running.any_failed || running.database_refused ? CLI_FAILED : CLI_DONE;
}
