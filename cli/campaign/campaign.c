/* The loop of a campaign: start workers, store what they report, stop when told to. */
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/base/last_words.h"
#include "cli/base/memory.h"
#include "cli/campaign/campaign.h"
#include "cli/campaign/history.h"
#include "cli/campaign/progress.h"
#include "cli/campaign/stop.h"
#include "cli/results/result_older.h"
#include "workloads/experiment.h"

/* What a run is expected to need while none has ended: most need 5 to 150 MB. */
#define UNKNOWN_BYTES (64u << 20)

struct running {
    const struct campaign *campaign;
    struct worker_pool *pool;
    struct progress progress;
    guint next_job;               /* those before it do not wait any more */
    guint last_job, n_jobs;       /* nor those from last_job on, of n_jobs */
    bool from_end;                /* the next job is the last that waits */
    unsigned n_left_out, n_twice; /* runs that another command has stored meanwhile */
    uint64_t memory_bytes;        /* what runs may need together */
    uint64_t most_bytes;          /* that a run has needed so far, of what is not known */
    unsigned n_wide;              /* points whose intervals are not tight enough with all seeds */
    bool any_failed, database_refused, said_no_metric;
    int signal_fd; /* -1: signals end the process */
};

/* ---- In the worker --------------------------------------------------------------------------- */

/* What the name of the scenario does not say of where the run comes from. */
static void note_origin(struct run_result *result, const struct plan_point *point)
{
    const struct scenario *scenario = point->scenario;
    /* The name of a variant (--bands) says what was changed; the rest is noted with its point. */
    const bool variant = point->stored_as != NULL &&
                         strstr(point->stored_as, RESULTS_VARIANT) != NULL;
    if (*scenario_changes(scenario) != '\0' && !variant)
        run_result_note(result, &RESULT_NOTE_CHANGES[strlen("note.")], scenario_changes(scenario));
    g_autofree char *digest = scenario_digest(scenario, point->index);
    run_result_note(result, &RESULT_NOTE_TEXT[strlen("note.")], digest);
    if (!scenario_has_root(scenario)) {
        g_autofree char *path = g_canonicalize_filename(scenario_path(scenario), NULL);
        run_result_note(result, &RESULT_NOTE_FILE[strlen("note.")], path);
    }
}

/* A worker is killed rather than interrupted: it has nothing that could be left half done. Of the
 * plan it knows the points; jobs may have been added since it was made. */
static void run_job(void *context, const struct worker_task *task, struct worker_report *report)
{
    const struct running *running = context;
    const struct plan_point *point = plan_point(running->campaign->plan, task->point);
    const volatile int never = 0;
    struct sim_error_list errors = { 0 };
    struct experiment_outcome outcome = { 0 };
    struct config *config = scenario_point(point->scenario, point->index, &errors);
    report->result = run_result_new();
    note_origin(report->result, point);
    if (config == NULL)
        report->error = sim_error_join(&errors);
    else if (!experiment_run(config, task->seed, report->result, &outcome, &never,
                             &report->error) &&
             report->error == NULL)
        report->error = g_strdup("failed without a message");
    if (config != NULL) {
        g_autofree char *borrowed = config_borrowed_text(config);
        if (borrowed != NULL)
            run_result_note(report->result, "borrowed", borrowed);
        run_result_params(report->result, config);
    }
    /* What is said here goes with the run's line. */
    const char *text;
    for (unsigned i = 0; (text = run_result_note_text(report->result, "not_settled.", i)); i++)
        fprintf(stderr, "not settled: %s\n", text);
    report->sim_ps = outcome.sim_ps;
    report->events = outcome.events;
    report->fingerprint = run_result_fingerprint(report->result, outcome.fingerprint);
    config_free(config);
    sim_error_release(&errors);
}

/* ---- Waiting for the database ---------------------------------------------------------------- */

/* Another program holds it: for as long as that takes, or until this campaign is told to stop. */
static bool wait_for_database(void *context, const char *path, double before_s, double waited_s)
{
    struct running *running = context;
    if (cli_says_wait(before_s, waited_s))
        progress_end(&running->progress);
    return !stop_has_come(running->signal_fd) &&
           cli_wait_for_database(NULL, path, before_s, waited_s);
}

/* ---- Seeds ----------------------------------------------------------------------------------- */

static void refuse(struct running *running, char *message)
{
    running->database_refused = true;
    progress_end(&running->progress);
    fprintf(stderr, "%s\n", message);
    g_free(message);
}

static void say_no_metric(struct running *running, const struct plan_point *point)
{
    running->any_failed = true;
    if (running->said_no_metric)
        return;
    running->said_no_metric = true;
    progress_end(&running->progress);
    fprintf(stderr, "--until: runs of %s have no metric \"%s\" (nudma run --stats prints all)\n",
            scenario_name(point->scenario), running->campaign->until->metric);
}

/* Called when all jobs of a point have ended: one seed more until the interval is tight enough.
 * Which seeds a point gets does not depend on what else runs. */
static void add_seeds(struct running *running, size_t index)
{
    const struct campaign *campaign = running->campaign;
    const struct plan *plan = campaign->plan;
    char *message = NULL;
    for (;;) {
        const struct plan_point *point = plan_point(plan, index);
        if (campaign->until == NULL || running->database_refused || point->n_ended < point->n_jobs)
            return;
        const enum until_verdict verdict = until_judge(campaign->until, campaign->db, point,
                                                       campaign->first_seed, point->n_jobs);
        if (verdict == UNTIL_NO_METRIC)
            say_no_metric(running, point);
        if (verdict == UNTIL_WIDE && point->n_jobs >= campaign->n_seeds)
            running->n_wide++;
        if (verdict != UNTIL_WIDE || point->n_jobs >= campaign->n_seeds)
            return;
        if (!plan_add_job(campaign->plan, campaign->db, index, campaign->first_seed + point->n_jobs,
                          campaign->force, &message)) {
            if (results_is_busy(campaign->db)) /* as in store_job() */
                g_free(message);
            else
                refuse(running, message);
            return;
        }
    }
}

/* False if the database refused. */
static bool make_jobs(struct running *running)
{
    const struct campaign *campaign = running->campaign;
    const unsigned n_seeds = campaign->until != NULL ? MIN(UNTIL_FIRST_SEEDS, campaign->n_seeds)
                                                     : campaign->n_seeds;
    char *message = NULL;
    plan_find_twins(campaign->plan);
    if (!plan_make_jobs(campaign->plan, campaign->db, campaign->first_seed, n_seeds,
                        campaign->force, &message)) {
        refuse(running, message);
        return false;
    }
    for (guint i = 0; i < campaign->plan->points->len; i++)
        add_seeds(running, i);
    history_expect(campaign->plan, campaign->db);
    plan_sort_jobs(campaign->plan);
    return !running->database_refused;
}

/* ---- In the process that writes -------------------------------------------------------------- */

/* A worker that died took its configuration with it. */
static struct config *resolved_config(const struct plan_point *point)
{
    struct sim_error_list errors = { 0 };
    struct config *config = scenario_point(point->scenario, point->index, &errors);
    if (config != NULL)
        experiment_check(config, &errors);
    sim_error_release(&errors);
    return config;
}

/* A report that is shared is stored with the parameters of the point itself. */
static bool store(const struct campaign *campaign, const struct plan_job *job,
                  const struct worker_report *report, bool shared, char **message)
{
    const struct plan_point *point = plan_point(campaign->plan, job->point);
    /* with what the process that died has printed, whatever that is */
    g_autofree char *error = report->error != NULL ? g_utf8_make_valid(report->error, -1) : NULL;
    struct run_record record = {
        .scenario = scenario_name(point->scenario),
        .point = plan_point_name(point),
        .seed = job->seed,
        .status = report->error == NULL ? "done" : "failed",
        .error = error,
        .command_line = campaign->command_line,
        .host = g_get_host_name(),
        .started_utc = job->started_utc,
        .wall_s = shared ? 0 : report->wall_s,
        .sim_ps = report->sim_ps,
        .events = report->events,
        .fingerprint = report->fingerprint,
        .peak_memory_bytes = report->peak_memory_bytes,
    };
    g_strlcpy(record.config_sha256, point->config_sha256, sizeof(record.config_sha256));
    struct config *config = report->result == NULL || shared ? resolved_config(point) : NULL;
    const bool stored = results_store(campaign->db, &record, config, report->result, message);
    config_free(config);
    return stored;
}

/* The first job that waits and whose memory is there; alone it may need what it will. */
static struct plan_job *next_job(struct running *running, guint *index)
{
    const struct worker_pool *pool = running->pool;
    const struct plan *plan = running->campaign->plan;
    while (running->next_job < plan->jobs->len &&
           plan_job(plan, running->next_job)->state != PLAN_WAITING)
        running->next_job++;
    if (running->n_jobs != plan->jobs->len)
        running->last_job = running->n_jobs = plan->jobs->len;
    while (running->last_job > running->next_job &&
           plan_job(plan, running->last_job - 1)->state != PLAN_WAITING)
        running->last_job--;
    const bool alone = worker_pool_running(pool) == 0;
    const uint64_t used = alone ? 0 : worker_pool_memory_bytes(pool);
    for (guint k = running->next_job; k < running->last_job; k++) {
        const guint i = running->from_end ? running->next_job + running->last_job - 1 - k : k;
        struct plan_job *job = plan_job(plan, i);
        if (job->state != PLAN_WAITING)
            continue;
        if (job->expected_bytes == 0)
            job->expected_bytes = running->most_bytes; /* of a scenario that has never run */
        *index = i;
        if (alone || used + job->expected_bytes <= running->memory_bytes)
            return job;
    }
    return NULL;
}

static bool is_stored(const struct campaign *campaign, const struct plan_job *job)
{
    const struct plan_point *point = plan_point(campaign->plan, job->point);
    return !campaign->force &&
           results_have(campaign->db, scenario_name(point->scenario), plan_point_name(point),
                        job->seed, point->config_sha256);
}

/* Jobs that wait for the result of this one run themselves. */
static void let_run(struct running *running, const struct plan_job *job)
{
    struct plan *plan = running->campaign->plan;
    guint at = 0;
    for (struct plan_job *other; (other = plan_next_sharing(plan, job, &at)) != NULL;) {
        plan_set_state(plan, other, PLAN_WAITING);
        running->next_job = running->n_jobs = 0; /* they may lie before what has been looked at */
    }
}

/* True if another command has stored the run since this one began. Commands that go through the
 * same list side by side would make each run twice: each goes on at a random end of it. */
static bool leave_out(struct running *running, struct plan_job *job)
{
    const size_t point = job->point;
    if (!is_stored(running->campaign, job))
        return false;
    running->n_left_out++;
    running->from_end = g_random_boolean();
    let_run(running, job);
    plan_set_state(running->campaign->plan, job, PLAN_STORED_BEFORE);
    add_seeds(running, point); /* may move the jobs */
    return true;
}

/* Starts as many as there is room for. False if there is room and no process can be made. */
static bool start_workers(struct running *running)
{
    while (!worker_pool_full(running->pool)) {
        guint index = 0;
        struct plan_job *job = next_job(running, &index);
        if (job == NULL)
            return true;
        if (leave_out(running, job))
            continue;
        const struct worker_task task = {
            .job = index,
            .point = job->point,
            .seed = job->seed,
            .expected_bytes = job->expected_bytes,
        };
        job->started_utc = g_get_real_time() / G_USEC_PER_SEC;
        if (!worker_start(running->pool, &task))
            return false;
        plan_set_state(running->campaign->plan, job, PLAN_RUNNING);
    }
    return true;
}

/* Stores what a job has brought for all that are the same. Jobs may move: `job` is a copy. */
static void share(struct running *running, const struct plan_job *job,
                  const struct worker_report *report)
{
    struct plan *plan = running->campaign->plan;
    g_autoptr(GArray) points = g_array_new(FALSE, FALSE, sizeof(size_t));
    guint at = 0;
    for (struct plan_job *other; (other = plan_next_sharing(plan, job, &at)) != NULL;) {
        char *message = NULL;
        other->started_utc = job->started_utc;
        if (!store(running->campaign, other, report, true, &message)) {
            if (results_is_busy(running->campaign->db)) /* as in store_job() */
                g_free(message);
            else
                refuse(running, message);
            let_run(running, job);
            return;
        }
        plan->n_shared++;
        plan_set_state(plan, other, PLAN_DONE);
        progress_run(&running->progress, other, NULL, "");
        g_array_append_val(points, other->point);
    }
    for (guint i = 0; i < points->len; i++)
        add_seeds(running, g_array_index(points, size_t, i)); /* may move the jobs */
}

static void store_job(void *context, size_t index, const struct worker_report *report)
{
    struct running *running = context;
    const struct campaign *campaign = running->campaign;
    char *message = NULL;
    if (running->database_refused)
        return;
    running->most_bytes = MAX(running->most_bytes, report->peak_memory_bytes);
    start_workers(running); /* so that none waits for the database; tried again if it fails */
    struct plan_job *job = plan_job(campaign->plan, index); /* they may have moved */
    job->wall_s = report->wall_s;
    job->sim_ps = report->sim_ps;
    if (!store(campaign, job, report, false, &message)) {
        plan_set_state(campaign->plan, job, PLAN_WAITING);
        if (results_is_busy(campaign->db)) /* and a signal has come: work() takes it */
            g_free(message);
        else
            refuse(running, message);
        return;
    }
    running->n_twice += !campaign->force && results_was_there(campaign->db);
    plan_set_state(campaign->plan, job, report->error == NULL ? PLAN_DONE : PLAN_FAILED);
    const struct plan_job ended = *job;
    if (report->error != NULL && !plan_point(campaign->plan, ended.point)->may_fail)
        running->any_failed = true;
    progress_run(&running->progress, job, report->error, report->log);
    add_seeds(running,
              ended.point); /* may move the jobs; those that share this one wait for these, too */
    if (report->error == NULL)
        share(running, &ended, report);
    else
        let_run(running, &ended);
}

/* True when all is done, or nothing more can be; false if it was interrupted. */
static bool work(struct running *running)
{
    while (!running->database_refused) {
        if (!start_workers(running) && worker_pool_running(running->pool) == 0) {
            fprintf(stderr, "no worker process: %s\n", g_strerror(errno));
            running->any_failed = true;
            return true;
        }
        if (worker_pool_running(running->pool) == 0)
            return true;
        progress_show(&running->progress);
        if (worker_wait(running->pool, running->signal_fd, 250))
            return false;
    }
    return true;
}

/* why: "interrupted" */
static void say_how_to_go_on(const struct campaign *campaign, const char *why)
{
    const struct plan *plan = campaign->plan;
    const unsigned n_failed = plan_count(plan, PLAN_FAILED);
    const unsigned n_stored = plan_count(plan, PLAN_DONE) + plan_count(plan, PLAN_STORED_BEFORE);
    g_autofree char *failed = n_failed > 0 ? g_strdup_printf(", %u failed", n_failed)
                                           : g_strdup("");
    g_autofree char *typed = cli_typed(campaign->command_line);
    fprintf(stderr, "%s: %u of %u runs are done and stored%s; %s\n  %s\n", why, n_stored,
            plan->jobs->len, failed,
            campaign->force
                ? "all of them run again with this, and without --force only what is missing"
                : "the others go on with",
            typed);
}

static void say_what_failed(const struct campaign *campaign)
{
    unsigned n_failed = 0;
    for (guint i = 0; i < campaign->plan->jobs->len; i++) {
        const struct plan_job *job = plan_job(campaign->plan, i);
        n_failed += job->state == PLAN_FAILED && !plan_point(campaign->plan, job->point)->may_fail;
    }
    if (n_failed > 0 && !campaign->quiet)
        fprintf(stderr, "%u of %u runs failed (the same command runs them again)\n", n_failed,
                campaign->plan->jobs->len);
}

/* Two files of one name have their results under that name. */
static void say_what_is_mixed(const struct campaign *campaign)
{
    for (guint i = 0; i < campaign->plan->scenarios->len; i++) {
        const struct scenario *scenario = campaign->plan->scenarios->pdata[i];
        g_autofree char *path = g_canonicalize_filename(scenario_path(scenario), NULL);
        struct results_cursor *cursor = results_noted(campaign->db, scenario_name(scenario),
                                                      RESULT_NOTE_FILE);
        for (const char *file; (file = results_next_name(cursor)) != NULL;)
            if (strcmp(file, path) != 0)
                fprintf(stderr,
                        "%s: %s has results of another file of this name, %s: they stand under one "
                        "name (a file below a scenarios folder has its folder in its name)\n",
                        scenario_path(scenario), results_path(campaign->db), file);
        cli_end(cursor);
    }
}

static void say_what_is_left_out(const struct campaign *campaign)
{
    const unsigned n = plan_count(campaign->plan, PLAN_STORED_BEFORE);
    if (n > 0 && !campaign->quiet)
        fprintf(stderr, "%u of %u runs %s in the database already (--force runs %s again)\n", n,
                campaign->plan->jobs->len, n == 1 ? "is" : "are", n == 1 ? "it" : "them");
}

static void say_what_others_did(const struct running *running)
{
    if (running->n_left_out + running->n_twice > 0 && !running->campaign->quiet)
        fprintf(stderr,
                "%u runs were made by another command at the same time: %u were left out here, %u "
                "were made twice\n",
                running->n_left_out + running->n_twice, running->n_left_out, running->n_twice);
}

static void say_what_is_shared(const struct campaign *campaign)
{
    if (campaign->plan->n_shared > 0 && !campaign->quiet)
        fprintf(stderr, "%u of %u runs are the same as others in every setting: not run again\n",
                campaign->plan->n_shared, campaign->plan->jobs->len);
}

static void say_what_is_wide(const struct running *running)
{
    if (running->n_wide > 0)
        fprintf(stderr, "--until: %u of %u points are not that tight with %u seeds\n",
                running->n_wide, running->campaign->plan->points->len, running->campaign->n_seeds);
}

/* No more than there can be runs, and as many as the system lets have their descriptors: two of
 * each here. Where it does not, there are as many as can be made. */
static unsigned worker_count(const struct campaign *campaign)
{
    const struct plan *plan = campaign->plan;
    const uint64_t most = campaign->until != NULL ? (uint64_t)plan->points->len * campaign->n_seeds
                                                  : plan->jobs->len;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    return (unsigned)MAX(MIN((uint64_t)campaign->n_workers, most), 1);
}

void campaign_expect_stop(const char *command_line)
{
    static char *text; /* a signal may come until the process ends */
    g_autofree char *typed = cli_typed(command_line);
    last_words_if_stopped(NULL);
    g_free(text);
    text =
        g_strdup_printf("interrupted before anything has run: nothing is lost; begin again with\n"
                        "  %s",
                        typed);
    last_words_if_stopped(text);
}

int campaign_run(const struct campaign *campaign)
{
    struct running running = { .campaign = campaign,
                               .memory_bytes = campaign->memory_bytes,
                               .most_bytes = UNKNOWN_BYTES };
    running.signal_fd = -1;
    results_set_wait(campaign->db, wait_for_database, &running);
    if (running.memory_bytes == 0)
        running.memory_bytes = memory_free_bytes();
    const bool planned = make_jobs(&running);
    if (!planned) {
        results_set_wait(campaign->db, cli_wait_for_database, NULL);
        return CLI_FAILED;
    }
    say_what_is_mixed(campaign);
    say_what_is_left_out(campaign);
    malloc_trim(
        0); /* what building all points has left would be copied page by page for each worker */
    const unsigned n_workers = worker_count(campaign);
    struct worker_limits limits = campaign->limits;
    limits.all_bytes = running.memory_bytes;
    running.pool = worker_pool_new(n_workers, limits, run_job, store_job, &running);
    sigset_t before;
    const sigset_t stops = stop_signals();
    sigprocmask(SIG_BLOCK, &stops, &before);
    last_words_if_stopped(NULL);
    running.signal_fd = signalfd(-1, &stops, SFD_CLOEXEC);
    progress_begin(&running.progress, campaign->plan, n_workers, campaign->quiet,
                   campaign->progress_s);
    const bool finished = work(&running);
    worker_pool_free(running.pool);
    results_set_wait(campaign->db, cli_wait_for_database, NULL);
    progress_sum(&running.progress);
    if (!finished) {
        struct signalfd_siginfo taken; /* or it would come once signals are let in again */
        const ssize_t got = read(running.signal_fd, &taken, sizeof(taken));
        (void)got;
        say_how_to_go_on(campaign, "interrupted");
    }
    close(running.signal_fd);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (!finished)
        return CLI_INTERRUPTED;
    const bool gone = results_is_gone(campaign->db);
    if (gone && !running.database_refused)
        fprintf(stderr, "%s: was deleted, moved or replaced while it was written\n",
                results_path(campaign->db));
    running.database_refused = running.database_refused || gone;
    if (gone) {
        g_autofree char *typed = cli_typed(campaign->command_line);
        fprintf(stderr,
                "stopped: with the database its runs are gone; the same command makes them again\n"
                "  %s\n",
                typed);
    } else if (running.database_refused)
        say_how_to_go_on(campaign, "stopped");
    else
        say_what_failed(campaign);
    say_what_others_did(&running);
    say_what_is_shared(campaign);
    say_what_is_wide(&running);
    return running.any_failed || running.database_refused ? CLI_FAILED : CLI_DONE;
}
